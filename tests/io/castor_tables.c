/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * CASToR's look-up tables as they occur in practice: orientations that contradict the positions, headers without
 * sizes, crystals too long for the room between panels. Positions take precedence. */
#include "io/scanners.h"

/* Positions read back agree to this, mm. */
static const double most_off_mm = 1e-4;

enum { MAX_ROWS = 40000 };

struct table {
    struct test_folder folder;
    struct test_log log;
    char header[128], path[128];
    float rows[MAX_ROWS][6];
    int count;
    int warned[4]; /* number of warnings that contain each text of `heard` */
};

/* Texts by which warnings are recognised. */
static const char *const heard[4] = {"contradict the positions", "has no 'crystals size", "would overlap",
                                     "make no panels together"};

static void hear(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct table *table = user;
    table->log.log.write(table->log.log.user, level, status, sentence);
    for (int k = 0; k < 4 && level == LR_LOG_WARNING; k++) table->warned[k] += strstr(sentence, heard[k]) != NULL;
}

static int begin(void **state)
{
    static struct table table;
    folder_init(&table.folder);
    folder_file(&table.folder, table.header, "table.hscan");
    folder_file(&table.folder, table.path, "table.lut");
    *state = &table;
    return 0;
}

static int end(void **state)
{
    folder_finish(&((struct table *)*state)->folder);
    return destroy_kept(state);
}

/* --- tables made by hand, in CASToR's frame --- */

/* Panels around the axis, the first one above it; crystals are listed ring by ring, and around the axis within each
   ring. */
struct form {
    int panels, across, rings;
    double centre_mm, first_deg; /* distance from the axis to the panels' middle planes */
    double pitch_mm;
    double (*z_mm)(int ring);
};

static void fill(struct table *table, const struct form *form)
{
    table->count = 0;
    for (int ring = 0; ring < form->rings; ring++) {
        for (int k = 0; k < form->panels * form->across; k++) {
            const double angle = (form->first_deg + k / form->across * 360.0 / form->panels) * pi / 180;
            const double out[2] = {sin(angle), cos(angle)};
            const double along = (k % form->across - 0.5 * (form->across - 1)) * form->pitch_mm;
            const double row[6] = {form->centre_mm * out[0] + along * out[1],
                                   form->centre_mm * out[1] - along * out[0],
                                   form->z_mm(ring),
                                   out[0],
                                   out[1],
                                   0};
            for (int i = 0; i < 6; i++) table->rows[table->count][i] = (float)row[i];
            table->count++;
        }
    }
}

/* Biograph mMR as in CASToR's table: 56 panels of 8 x 64, 4.17252 and 4.0625 mm apart. */
static double mmr_z(int ring)
{
    return 4.0625 * (ring - 31.5);
}

static const struct form mmr = {56, 8, 64, 338, 180 / 56.0, 4.17252, mmr_z};

/* The Inveon in CASToR's table: 20 crystals 1.63 mm apart at 85.54 mm from the axis, and blocks of 20 rings 1.592 mm
 * apart, with 1.5 mm between the last ring of a block and the first of the next. */
static double inveon_z(int ring)
{
    return 1.592 * ring - 0.092 * (ring / 20) - 62.746;
}

static const struct form inveon = {16, 20, 80, 85.54, 11.25, 1.63, inveon_z};

static void write_table(const struct table *table, const char *sizes)
{
    char text[512];
    snprintf(text, sizeof(text),
             "modality: PET\nscanner name: table\nnumber of elements: %d\nnumber of layers: 1\n"
             "number of crystals in layer: %d\n%s",
             table->count, table->count, sizes);
    text_write(table->header, text);
    bytes_write(table->path, table->rows, (size_t)table->count * sizeof(table->rows[0]));
}

static const char mmr_sizes[] = "crystals size depth: 20\ncrystals size transaxial: 4\ncrystals size axial: 4\n"
                                "field of view axial: 258\n";

static lr_scanner *read_table(struct table *table)
{
    test_log_init(&table->log);
    memset(table->warned, 0, sizeof(table->warned));
    return keep(lr_scanner_read(table->header, &(lr_log){hear, table}));
}

/* The scanner has as many crystals as the table has rows, and a crystal at the position of each row. */
static void assert_positions(const struct table *table, const lr_scanner *scanner)
{
    assert_int_equal(scanner->num_crystals, table->count);
    for (int c = 0; c < table->count; c++) {
        const double at[3] = {-(double)table->rows[c][0], (double)table->rows[c][1], (double)table->rows[c][2]};
        double least = INFINITY;
        for (int m = 0; m < scanner->num_modules && least > most_off_mm; m++) {
            const lr_module *module = &scanner->modules[m];
            const int nu = module->crystals[0], nv = module->crystals[1];
            const double way[3] = {at[0] - module->centre_mm[0], at[1] - module->centre_mm[1],
                                   at[2] - module->centre_mm[2]};
            const double across = way[0] * module->u[0] + way[1] * module->u[1];
            const double along = way[2] * module->v[2]; /* panels do not lean */
            if (fabs(across) >= 0.5 * nu * module->pitch_mm[0] || fabs(along) >= 0.5 * nv * module->pitch_mm[1])
                continue;
            /* The nearest crystal of this module. */
            const int p = (int)floor(across / module->pitch_mm[0] + 0.5 * nu);
            const int q = (int)floor(along / module->pitch_mm[1] + 0.5 * nv);
            double centre[3];
            lr_module_crystal_centre(module, p, q, centre);
            least = fmin(least, distance_mm(centre, at));
        }
        if (least > most_off_mm) fail_msg("crystal %d is %g mm off", c, least);
    }
}

/* --- orientations --- */

/* Orientations are correct, mirrored (the mMR's table), along the ring, and along the ring and mirrored (GE_GATE's). */
static void orientations_follow_positions(void **state)
{
    struct table *table = *state;
    static const int rows_of[4][2] = {{3, 4}, {3, 4}, {4, 3}, {4, 3}};
    static const int signs[4][2] = {{1, 1}, {1, -1}, {1, 1}, {-1, 1}};
    for (int way = 0; way < 4; way++) {
        fill(table, &mmr);
        for (int c = 0; c < table->count; c++) {
            float *row = table->rows[c];
            const float o[6] = {0, 0, 0, row[3], row[4], 0};
            row[3] = (float)signs[way][0] * o[rows_of[way][0]];
            row[4] = (float)signs[way][1] * o[rows_of[way][1]];
        }
        write_table(table, mmr_sizes);
        lr_scanner *scanner = read_table(table);
        assert_pairs(0, {table->warned[0], way > 0}, {table->log.num_warnings, way > 0}, {scanner->num_modules, 56},
                     {scanner->num_positions, 56}, {scanner->modules[0].crystals[0], 8});
        assert_positions(table, scanner);
    }
}

/* Each crystal of a flat panel has an orientation towards the axis; the panels are read as flat all the same. */
static void panels_stay_flat(void **state)
{
    struct table *table = *state;
    for (int n = 0; n < 2; n++) {
        fill(table, n == 0 ? &mmr : &inveon);
        for (int c = 0; c < table->count; c++) {
            float *row = table->rows[c];
            const float r = hypotf(row[0], row[1]);
            row[3] = row[0] / r;
            row[4] = row[1] / r;
        }
        write_table(table, n == 0 ? mmr_sizes : "crystals size depth: 5\n");
        lr_scanner *scanner = read_table(table);
        if (n == 0) assert_int_equal(scanner->num_modules, 56);
        if (n == 1) assert_int_equal(table->warned[3], 1); /* panels of 20: up to 11 degrees off, a warning */
        if (n == 1) assert_int_equal(scanner->modules[0].crystals[0], 20);
        assert_positions(table, scanner);
    }
}

/* --- sizes --- */

static void sizes_are_inferred(void **state)
{
    static const struct {
        const char *sizes;
        int warned;
        double face_mm[2]; /* 0 = not compared */
    } cases[] = {{"crystals size depth: 20\ncrystals size axial: 4\n", 1, {4.17252, 4}},
                 {"crystals size depth: 20\n", 2, {0, 4.0625}},
                 /* the default of CASToR */
                 {"crystals size depth: 20\ncrystals size trans: 0\ncrystals size axial: 0\n", 2, {0, 0}}};
    struct table *table = *state;
    fill(table, &mmr);
    for (int n = 0; n < 3; n++) {
        write_table(table, cases[n].sizes);
        lr_scanner *scanner = read_table(table);
        assert_int_equal(table->warned[1], cases[n].warned);
        for (int k = 0; k < 2; k++)
            if (cases[n].face_mm[k] > 0)
                assert_close(scanner->modules[0].face_mm[k], cases[n].face_mm[k], n == 0 && k == 1 ? 1e-12 : 1e-5);
        if (n == 0) assert_positions(table, scanner);
    }
}

/* Blocks are closer together than crystals, and crystals are 10 mm deep where flat panels leave room for 7.2 mm.
 * Positions and the plane of hits stay; crystals become as narrow as the smallest distance requires. */
static void inveon_is_made_to_fit(void **state)
{
    struct table *table = *state;
    fill(table, &inveon);
    write_table(table, "crystals size depth: 10.\nmean depth of interaction: 4.584\n");
    lr_scanner *scanner = read_table(table);
    assert_pairs(0, {table->warned[1], 2}, {table->warned[2], 1}, {scanner->num_positions, 16});
    assert_int_equal(scanner->num_modules, 16 * 7); /* modules of 19, 2, 18, 2, 18, 2 and 19 rings */
    assert_positions(table, scanner);
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double front_mm = -(module->normal[0] * module->centre_mm[0] + module->normal[1] * module->centre_mm[1]);
        assert_pairs(1e-4, {module->face_mm[0], 1.63}, {module->face_mm[1], 1.5});
        assert_true(module->depth_mm > 7.1 && module->depth_mm < 7.25);
        assert_close(front_mm + scanner->detection_depth_mm, 85.54 - 5 + 4.584, 1e-4);
        /* Neighbouring panels touch at their fronts, within the step in which depths are reduced: half of the
           panel's width there. */
        const double room_mm = front_mm * tan(pi / 16) - 0.5 * 20 * 1.63;
        assert_true(room_mm > -1e-3 && room_mm < 0.01);
    }
}

/* A table is refused if more than half of the depth would have to be cut, or if the plane of hits would lie outside
   the crystal. */
static void what_does_not_fit_is_refused(void **state)
{
    struct table *table = *state;
    static const char *const sizes[] = {"crystals size depth: 40\nmean depth of interaction: 20\n",
                                        "crystals size depth: 10\nmean depth of interaction: 0\n",
                                        "crystals size depth: 10\nmean depth of interaction: 9.9\n"};
    fill(table, &inveon);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        write_table(table, sizes[k]);
        test_log_init(&table->log);
        assert_none(lr_scanner_read(table->header, &table->log.log), LR_BAD_INPUT, &table->log, "overlap by");
    }
}

/* --- CASToR's own tables, if there is a copy --- */

static int check_real(struct table *table, const char *name)
{
    char path[1024], file[64];
    snprintf(file, sizeof(file), "castor/%s.lut", name);
    if (test_data(path, file) == NULL) return 0;
    size_t count;
    unsigned char *bytes = bytes_read(path, &count);
    table->count = (int)(count / sizeof(table->rows[0]));
    assert_true(table->count <= MAX_ROWS);
    snprintf(strrchr(path, '.'), 8, ".hscan");
    test_log_init(&table->log);
    lr_scanner *scanner = keep(lr_scanner_read(path, &table->log.log));
    memcpy(table->rows, bytes, count);
    assert_positions(table, scanner);
    return 1;
}

static void real_tables(void **state)
{
    static const char *const names[] = {
        "PET_BIOGRAPH6_TRUEPOINT_2D", "PET_CASTOR_BENCHMARK", "PET_GE_GATE",
        "PET_GE_SIGNA_PET-MR",        "PET_SIEMENS_INVEON",   "PET_SIEMENS_BIOGRAPH6_TRUEPOINT_TRUEV",
        "PET_SIEMENS_HRPLUS",         "PET_SIEMENS_MMR",      "PET_SIEMENS_MMR_2D"};
    int found = 0;
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) found += check_real(*state, names[k]);
    if (found == 0) skip();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
group_main("io castor tables", NULL, NULL, TEST(orientations_follow_positions), TEST(panels_stay_flat),
           TEST(sizes_are_inferred), TEST(inveon_is_made_to_fit), TEST(what_does_not_fit_is_refused), TEST(real_tables))
