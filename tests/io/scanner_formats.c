/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanners written and read back in every format, crystal positions as other programs define them, and tables and
 * numbers that are impossible. damaged.c tests the errors that any file can have. */
#include "io/scanners.h"
#include "io/text_cases.h"

static const char *text_of(const char *section)
{
    return section_of(IO_TESTS "/texts.txt", section);
}

/* --- scanners without symmetry, which could hide an error --- */

/* Two rings of seven panels of 2 x 3 blocks, beginning at 17 degrees. */
static lr_scanner *turned_ring(void)
{
    lr_scanner *scanner = scanner_of("%s", text_of("turned ring"));
    assert_string_equal(scanner->name, "a \"turned\" ring: 7\\2");
    assert_string_equal(scanner->source,
                        "# made up: \"here\"\nsecond line\nunverified: everything\nunverified: - this");
    return scanner;
}

/* Modules of one crystal size without any symmetry. */
static lr_scanner *odd_list(void)
{
    return scanner_of("%s", text_of("odd list"));
}

/* Both texts, one after the other. */
static const char *with(const char *text, const char *more)
{
    char *both = kept((int64_t)(strlen(text) + strlen(more)) + 1, 1);
    return strcat(strcpy(both, text), more);
}

static lr_scanner *read_text(const char *name, const char *text)
{
    text_write(name, text);
    test_log_init(&files.log);
    return keep(lr_scanner_read(name, &files.log.log));
}

static void refuse(const char *path, const char *words)
{
    struct test_log log = TEST_LOG(log);
    assert_none(lr_scanner_read(path, &log.log), LR_BAD_INPUT, &log, words);
}

/* --- YAML --- */

static void assert_identical(lr_scanner *a, lr_scanner *b)
{
    assert_same_modules(a, b, 1e-13);
    assert_string_equal(a->name, b->name);
    assert_true((a->source == NULL) == (b->source == NULL));
    if (a->source != NULL) assert_string_equal(a->source, b->source);
    assert_all(a->detection_depth_mm == b->detection_depth_mm, a->tof_resolution_ps == b->tof_resolution_ps);
    assert_true(a->crystal_mu_per_mm == b->crystal_mu_per_mm);
    assert_true(a->coincidence.field_of_view_mm == b->coincidence.field_of_view_mm);
    assert_int_equal(a->coincidence.min_module_difference, b->coincidence.min_module_difference);
    assert_int_equal(a->coincidence.limits_ring_difference, b->coincidence.limits_ring_difference);
    assert_int_equal(a->coincidence.max_ring_difference, b->coincidence.max_ring_difference);
}

static void yaml_is_identical(void **state)
{
    lr_scanner *scanners[3] = {turned_ring(), turned_ring(), odd_list()};
    /* A gap that no ring has, so that the modules are written as a list, with positions and rings. */
    scanners[1]->modules[scanners[1]->num_modules - 1].centre_mm[2] += 1.25;
    for (int k = 0; k < 3; k++) assert_identical(scanners[k], there_and_back(scanners[k], "a.yml", NULL, NULL));
    for (const char *const *name = lr_scanner_presets(); *name != NULL; name++) {
        lr_scanner *scanner = keep(lr_scanner_read(*name, NULL));
        assert_identical(scanner, there_and_back(scanner, "preset.yaml", NULL, NULL));
    }
}

/* Positions around the axis in a list of modules: each position must have as many modules, and they may be given
   only together with the number of positions. */
static void places_are_even(void **state)
{
    static const char module[] =
        "  - {center_mm: [%d, 0, 0], u: [0, 1, 0], v: [0, 0, 1], crystals: [2, 2], pitch_mm: [4, 4], face_mm: [4, 4], "
        "depth_mm: 9, position: %d, ring: 0, first_crystal_ring: 0}\n";
    static const struct {
        const char *first;
        int places[2];
        const char *words; /* NULL = good */
    } cases[] = {{"num_positions: 2\n", {0, 1}, NULL},
                 {"num_positions: 2\n", {1, 1}, "do not stand evenly at places 0 to 1"},
                 {"num_positions: 3\n", {0, 1}, "do not stand evenly"},
                 {"num_positions: 2000000000\n", {0, 1}, "do not stand evenly"},
                 {"num_positions: 2\n", {0, 7}, "do not stand evenly"},
                 {"", {0, 1}, "needs 'num_positions'"}};
    const char *path = "x.yaml";
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        char text[2048];
        int used = snprintf(text, sizeof(text), "%smodules:\n", cases[k].first);
        for (int m = 0; m < 2; m++)
            used += snprintf(text + used, sizeof(text) - (size_t)used, module, m ? -50 : 50, cases[k].places[m]);
        text_write(path, text);
        if (cases[k].words != NULL)
            refuse(path, cases[k].words);
        else
            (void)read_text("x.yaml", text);
    }
}

/* --- CASToR --- */

static void geom_and_hscan_come_back(void **state)
{
    static const struct {
        const char *name, *lost;
        double most; /* single precision at 60 mm: 4e-6 */
    } cases[] = {{"ring.geom",
                  "field_of_view_mm 60.5 as a rule of coincidence (it is that of images there); max_ring_difference "
                  "17; tof_resolution_ps 321; crystal_mu_per_mm 0.083",
                  1e-6},
                 {"ring.hscan", "max_ring_difference 17; tof_resolution_ps 321; crystal_mu_per_mm 0.083", 2e-5}};
    lr_scanner *scanner = turned_ring();
    for (int k = 0; k < 2; k++) {
        lr_scanner *back = there_and_back(scanner, cases[k].name, cases[k].lost, NULL);
        assert_same_modules(scanner, back, cases[k].most);
        assert_int_equal(back->coincidence.min_module_difference, 2);
        assert_close(back->detection_depth_mm, 2.5, 1e-12);
        if (k == 0) assert_string_equal(scanner->name, back->name);
    }
    scanner = odd_list();
    lr_scanner *back = there_and_back(scanner, "odd.hscan", NULL, NULL);
    assert_int_equal(back->num_modules, 3);
    for (int m = 0; m < 3; m++) {
        const lr_module *a = &scanner->modules[m], *b = &back->modules[m];
        assert_true(distance_mm(a->centre_mm, b->centre_mm) < 2e-5 && distance_mm(a->normal, b->normal) < 2e-5);
        assert_int_equal(a->crystals[1], b->crystals[1]);
    }
}

/* CASToR puts its first rsector above the axis and counts clockwise: (x, y) = (R sin a, R cos a) in its left-handed
 * frame; with x reversed this is counterclockwise from +y. */
static void geom_stands_as_castor_has_it(void **state)
{
    static const char *const directions[] = {"", "rotation direction: CW\n", "rotation direction: CCW\n"};
    for (int k = 0; k < 3; k++) {
        lr_scanner *scanner = read_text("x.geom", with(text_of("geom"), directions[k]));
        const lr_module *second = &scanner->modules[k < 2 ? 1 : 3];
        assert_int_equal(scanner->num_positions, 4);
        assert_true(distance_mm(scanner->modules[0].centre_mm, (double[]){0, 30, 0}) < 1e-9);
        assert_true(distance_mm(second->centre_mm, (double[]){k < 2 ? -30 : 30, 0, 0}) < 1e-9);
        assert_pairs(1e-9, {second->pitch_mm[0], 3.5}, {second->pitch_mm[1], 2.25}, {second->face_mm[0], 3},
                     {second->depth_mm, 10}, {scanner->detection_depth_mm, 5});
    }
}

/* Shifts along z alternate between rsectors, so the scanner is no ring any more. */
static void geom_shifts(void **state)
{
    lr_scanner *scanner = read_text("x.geom", with(text_of("geom"), "rsectors nbZShift: 2\nrsectors ZShift: 0,7\n"));
    assert_int_equal(scanner->num_positions, 0);
    for (int m = 0; m < 4; m++) {
        const double *centre_mm = scanner->modules[m].centre_mm;
        assert_close(centre_mm[2] + 1, fabs(centre_mm[0]) < 1 ? 1 : 8, 1e-9);
    }
}

/* Two layers become modules one behind the other. */
static void geom_layers(void **state)
{
    lr_scanner *scanner = read_text("x.geom", text_of("two layers"));
    assert_pairs(0, {scanner->num_modules, 16}, {scanner->num_positions, 8});
    assert_pairs(1e-9, {scanner->modules[0].depth_mm, 7}, {scanner->modules[1].depth_mm, 8});
    assert_int_equal(scanner->modules[1].position, 0);
}

/* The table itself: ring by ring, around the axis within each ring; x is reversed, and orientations point outwards. */
static void lut_rows(void **state)
{
    size_t count;
    lr_scanner *scanner = turned_ring();
    assert_int_equal(lr_scanner_write("a.hscan", scanner, &files.log.log), LR_OK);
    float *rows = (float *)(void *)bytes_read("a.lut", &count);
    assert_int_equal(count, (size_t)scanner->num_crystals * 24);
    double centre[3];
    lr_module_crystal_centre(&scanner->modules[0], 0, 0, centre);
    assert_true(fabs(rows[0] + centre[0]) < 1e-5 && fabs(rows[1] - centre[1]) < 1e-5 &&
                fabs(rows[2] - centre[2]) < 1e-5);
    assert_true(fabs(rows[3] - scanner->modules[0].normal[0]) < 1e-6 &&
                fabs(rows[4] + scanner->modules[0].normal[1]) < 1e-6);
    lr_module_crystal_centre(&scanner->modules[6], 0, 0, centre); /* the next panel, row 6 */
    assert_true(fabs(rows[36] + centre[0]) < 1e-5 && fabs(rows[37] - centre[1]) < 1e-5);
    assert_true(rows[42 * 6 + 2] > rows[2]); /* 42 crystals a ring */
}

/* --- STIR --- */

/* The scanner of a real file; without the file, the case is skipped. */
static lr_scanner *read_real(const char *name)
{
    char path[1024];
    if (test_data(path, name) == NULL) skip();
    return keep(lr_scanner_read(path, &files.log.log));
}

static void safir_header_and_map_are_the_preset(void **state)
{
    lr_scanner *scanner = read_real("safir/muppet.hs");
    lr_scanner *preset = keep(lr_scanner_read("safir-dual-ring-prototype", NULL));
    for (int m = 0; m < preset->num_modules; m++) /* STIR has no sizes of faces */
        preset->modules[m].face_mm[0] = preset->modules[m].face_mm[1] = 2.2;
    assert_same_modules(preset, scanner, 1e-12);
    assert_close(scanner->detection_depth_mm, 6.5, 1e-12);
}

/* Distance from the axis to the plane of hits. */
static double hits_mm(const lr_scanner *scanner, int m)
{
    const lr_module *module = &scanner->modules[m];
    return scanner->detection_depth_mm - module->normal[0] * module->centre_mm[0] -
           module->normal[1] * module->centre_mm[1];
}

/* A map alone says nothing about sizes; hits are then read at its positions. If its comments have sizes, positions
   are centres of crystals. */
static void maps_say_where_hits_are(void **state)
{
    static char text[65536];
    lr_scanner *scanner = turned_ring();
    for (int k = 0; k < 2; k++) {
        int used = sprintf(text, "%s", k == 0 ? "" : "# face_mm: 1.5 1.75, depth_mm: 9\n");
        for (int c = 0; c < scanner->num_crystals; c++) {
            double at[3];
            lr_scanner_crystal_centre(scanner, c, at);
            used += sprintf(text + used, "%d, %d, %.9f, %.9f, %.9f\n", c / 42, c % 42, at[0], at[1], at[2]);
        }
        lr_scanner *read = read_text("map.txt", text);
        assert_int_equal(files.log.num_warnings, k == 0);
        if (k == 0) {
            assert_warning(&files.log, "# depth_mm: 20");
            assert_int_equal(read->num_modules, scanner->num_modules);
            for (int m = 0; m < read->num_modules; m++) assert_close(hits_mm(read, m), 50 + 0.5 * 9, 1e-6);
        } else {
            for (int m = 0; m < scanner->num_modules; m++) {
                scanner->modules[m].face_mm[0] = 1.5;
                scanner->modules[m].face_mm[1] = 1.75;
            }
            assert_same_modules(scanner, read, 1e-6);
        }
    }
}

/* Single crystals on circles, as in STIR's example for the SAFIR scanner: 180 positions of 3 decimals at 63.019 mm,
 * rings 2.2 mm apart. Each line of crystals along the axis becomes a module. */
static void maps_of_circles(void **state)
{
    static const struct {
        const char *comment;
        int rings;
        double depth_mm;
        bool centres; /* positions are centres of crystals: hits are read in front of them */
    } cases[] = {{"", 7, 2.2, false}, {"# depth_mm: 10\n", 7, 10, true}, {"", 1, 2.2, false}};
    enum { AROUND = 180 };
    static char text[65536];
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        const int rings = cases[k].rings;
        int used = sprintf(text, "#ring\tdet\tx\ty\tz\n%s", cases[k].comment);
        for (int n = 0; n < AROUND * rings; n++) {
            const double angle = n % AROUND * 2 * acos(-1.0) / AROUND;
            used += sprintf(text + used, "%d\t%d\t%.3f\t%.3f\t%.3f\n", n / AROUND, n % AROUND, 63.019 * cos(angle),
                            63.019 * sin(angle), 2.2 * (n / AROUND) - 1.1 * (rings - 1));
        }
        lr_scanner *scanner = read_text("a_crystal_map.txt", text);
        assert_warning(&files.log, "make no flat panels");
        assert_pairs(0, {scanner->num_modules, AROUND}, {scanner->num_positions, AROUND},
                     {scanner->num_crystals, AROUND * rings});
        for (int m = 0; m < AROUND; m++) {
            const lr_module *module = &scanner->modules[m];
            const double front_mm = 63.019 - 0.5 * cases[k].depth_mm;
            assert_close(module->depth_mm, cases[k].depth_mm, 1e-9);
            assert_true(fabs(hits_mm(scanner, m) - (cases[k].centres ? front_mm : 63.019)) < 1e-3);
            assert_true(fabs(module->face_mm[1] - 2.2) < 1e-3);
            /* The front faces fill their circle to within 1 %. */
            const double room_mm = 2 * front_mm * tan(acos(-1.0) / AROUND);
            assert_true(module->face_mm[0] < room_mm && module->face_mm[0] > 0.99 * room_mm);
        }
    }
}

/* The header's numbers give the preset: angles, rules, virtual crystals left out. Only the pitch differs: the
 * header's is 1/504 of the circle, the preset's follows from the width of the blocks. */
static void mmr_header_is_the_preset(void **state)
{
    lr_scanner *scanner = read_real("interfile/template_span11.hs");
    lr_scanner *preset = keep(lr_scanner_read("siemens-mmr", NULL));
    assert_warning(&files.log, "twice the average depth");
    assert_int_equal(scanner->num_modules, 56);
    for (int m = 0; m < 56; m++) {
        assert_true(distance_mm(scanner->modules[m].centre_mm, preset->modules[m].centre_mm) < 1e-6);
        assert_int_equal(scanner->modules[m].crystals[0], 8);
        assert_close(scanner->modules[m].pitch_mm[0], 4.09, 3e-4);
    }
    assert_int_equal(scanner->coincidence.min_module_difference, preset->coincidence.min_module_difference);
    assert_int_equal(scanner->coincidence.max_ring_difference, preset->coincidence.max_ring_difference);
}

/* 55 rings of 672 crystals; every 14th is virtual in both directions, which leaves 32,448 crystals. */
static void mct_lacks_its_virtual_crystals(void **state)
{
    lr_scanner *scanner = read_text("mct.hs", text_of("mCT"));
    assert_pairs(0, {scanner->num_crystals, 32448}, {scanner->num_modules, 48 * 4}, {scanner->num_positions, 48},
                 {scanner->modules[48].ring, 1}, {scanner->modules[48].first_crystal_ring, 13});
    assert_close(scanner->modules[48].centre_mm[2] - scanner->modules[0].centre_mm[2], 14 * 4.054, 1e-9);
    assert_close(scanner->modules[0].centre_mm[2] + scanner->modules[191].centre_mm[2] + 1, 1, 1e-9);
    assert_pairs(0, {scanner->coincidence.min_module_difference, 9}, {scanner->tof_resolution_ps, 555});
}

/* Eight flat buckets of two blocks, with the middle of each bucket at the foot of its normal. STIR rotates a bucket
 * by half of its share of the ring, minus half a crystal and a gap that STIR defines in units of blocks. STIR's x, y
 * and z are ours reversed. */
static void blocks_on_a_cylinder(void **state)
{
    lr_scanner *scanner = read_text("x.hs", text_of("blocks"));
    assert_pairs(0, {scanner->num_positions, 8}, {scanner->num_modules, 8 * 2 * 2});
    assert_pairs(1e-9, {scanner->modules[0].pitch_mm[0], 5},
                 {scanner->modules[1].centre_mm[2], scanner->modules[0].centre_mm[2]});
    assert_true(fabs(scanner->modules[2].centre_mm[2] - scanner->modules[0].centre_mm[2] - 10) < 1e-6);
    /* The first bucket is at its offset of 10 degrees from the top plus the rotation; its first crystal is 16 mm
     * from the middle. */
    double at[3];
    lr_module_crystal_centre(&scanner->modules[0], 0, 0, at);
    const double turn = 22.5 * (1 - 2 * (2.5 + 2.0) / 17.0), *normal = scanner->modules[0].normal;
    assert_true(fabs(atan2(-normal[1], -normal[0]) * 180 / pi - (100 + turn)) < 0.01);
    assert_true(fabs(atan2(at[1], at[0]) * 180 / pi - (100 + turn - atan2(13.5, 55) * 180 / pi)) < 0.01);
    assert_true(fabs(-scanner->modules[0].normal[0] * at[0] - scanner->modules[0].normal[1] * at[1] - 55) < 1e-6);
}

/* Headers that STIR reads: without a depth of interaction, with only the name of a scanner, with less than a block
 * along the axis, and with a UTF-8 byte order mark at the beginning. */
static void headers_that_say_less(void **state)
{
    const struct {
        const char *text;
        int crystals;
        double radius_mm, depth_mm, hit_mm;
    } cases[] = {
        {"\xef\xbb\xbf!INTERFILE :=\noriginating system := ECAT 962\n!END OF INTERFILE :=\n", 576 * 32, 412, 14, 7},
        {text_of("Discovery"), 544 * 36, 371.1, 18.8, 9.4},
        {text_of("no depth"), 64, 60, 20, 0}};
    for (int k = 0; k < 3; k++) {
        lr_scanner *scanner = read_text("x.hs", cases[k].text);
        const lr_module *module = &scanner->modules[0];
        assert_int_equal(scanner->num_crystals, cases[k].crystals);
        assert_pairs(1e-9, {hypot(module->centre_mm[0], module->centre_mm[1]), cases[k].radius_mm},
                     {module->depth_mm, cases[k].depth_mm}, {scanner->detection_depth_mm, cases[k].hit_mm});
    }
}

/* --- hostile files --- */

static void damaged_tables(void **state)
{
    size_t count;
    lr_scanner *scanner = odd_list();
    const char *header = "t.hscan", *table = "t.lut";
    assert_int_equal(lr_scanner_write(header, scanner, &files.log.log), LR_OK);
    unsigned char *bytes = bytes_read(table, &count);
    for (int part = 0; part < 64; part++) {
        bytes_write(table, bytes, count * (size_t)part / 64);
        refuse(header, "the table is truncated");
        refuse(table, "the table is truncated"); /* the table is given instead of the header */
    }
    memset(bytes + 24 * 7 + 12, 0, 12);
    bytes_write(table, bytes, count);
    refuse(header, "the orientation of crystal 7");
    memset(bytes, 0xff, 24);
    bytes_write(table, bytes, count);
    refuse(header, "crystal 0");
    remove(table);
    refuse(header, "t.lut: cannot be opened");
}

static void huge_counts(void **state)
{
    for (struct text_cases cases = cases_of(IO_CASES, "huge counts"); next_case(&cases);) {
        text_write(cases.fields[0], cases.fields[1]);
        refuse(cases.fields[0], cases.fields[0]);
    }
}

/* A file is written whole or not at all, and scanners that a format cannot hold are refused. */
static void writers_refuse(void **state)
{
    const struct test_folder *folder = &files.folder;
    const lr_log *log = &files.log.log;
    lr_scanner *list = odd_list(), *ring = turned_ring();
    assert_fails(lr_scanner_write(file_in(folder, "x.geom"), list, log), LR_BAD_INPUT, &files.log,
                 "write .hscan instead");
    list->modules[1].face_mm[0] = 1;
    assert_fails(lr_scanner_write(file_in(folder, "x.hscan"), list, log), LR_BAD_INPUT, &files.log,
                 "modules 0 and 1 differ in size");
    assert_fails(lr_scanner_write(file_in(folder, "x.bin"), list, log), LR_USAGE, &files.log,
                 ".yaml, .yml, .geom, .hscan");
    const struct rlimit before = disk_fill(100);
    const lr_status full = lr_scanner_write(file_in(folder, "x.yaml"), ring, log);
    disk_empty(before);
    assert_ints(full, LR_FAILED, folder_visit(folder, false), 0);
}

group_main("scanner formats", NULL, NULL,
           EACH(FILES_CASE, yaml_is_identical, places_are_even, geom_and_hscan_come_back, geom_stands_as_castor_has_it,
                geom_shifts, geom_layers, lut_rows, safir_header_and_map_are_the_preset, maps_say_where_hits_are,
                maps_of_circles, mmr_header_is_the_preset, mct_lacks_its_virtual_crystals, blocks_on_a_cylinder,
                headers_that_say_less, damaged_tables, huge_counts),
           EACH(FILES_CASE, writers_refuse))
