/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanners written and read back in every format, places of crystals as other programs define them,
 * and files that are not what they seem. */
#include "files.h"

#include "io/scanners/scanner_formats.h"

/* --- scanners that no symmetry hides an error of --- */

static lr_scanner *checked(lr_scanner *scanner, const struct test_log *log)
{
    if (scanner == NULL) fail_msg("%s", log->error);
    return scanner;
}

/* Two rings of seven panels of 2 x 3 blocks, beginning at 17 degrees. */
static lr_scanner *turned_ring(void)
{
    static const int around[2] = {3, 3}, along[3] = {4, 4, 4};
    const lr_ring ring = {.radius_mm = 50,
                          .modules = 7,
                          .first_angle_deg = 17,
                          .rings = 2,
                          .ring_pitch_mm = 31,
                          .blocks = {2, 3},
                          .block_crystals = {around, along},
                          .block_gap_mm = {0.75, 0.5},
                          .pitch_mm = {2, 1.75},
                          .face_mm = {1.75, 1.5},
                          .depth_mm = 9};
    const lr_scanner_params params = {
        .name = "a \"turned\" ring: 7\\2",
        .coincidence = {.min_module_difference = 2,
                        .field_of_view_mm = 60.5,
                        .limits_ring_difference = true,
                        .max_ring_difference = 17},
        .detection_depth_mm = 2.5,
        .tof_resolution_ps = 321,
        .crystal_mu_per_mm = 0.083,
        .source = "# made up: \"here\"\nsecond line\nunverified: everything\nunverified: - this"};
    struct test_log log;
    test_log_init(&log);
    return checked(lr_scanner_create_ring(&params, &ring), &log);
}

/* Modules of one crystal size with no symmetry at all. */
static lr_scanner *odd_list(void)
{
    const lr_module modules[3] = {
        {.centre_mm = {61, 3, -4},
         .u = {0, 1, 0},
         .v = {0, 0, 1},
         .crystals = {5, 3},
         .pitch_mm = {2, 3},
         .face_mm = {1.75, 2.5},
         .depth_mm = 9},
        {.centre_mm = {-40, 31, 7},
         .u = {-0.6, -0.8, 0},
         .v = {0, 0, 1},
         .crystals = {4, 7},
         .pitch_mm = {2.25, 2.5},
         .face_mm = {1.75, 2.5},
         .depth_mm = 9},
        {.centre_mm = {-11, -53, 12},
         .u = {1, 0, 0},
         .v = {0, -0.28, 0.96},
         .crystals = {3, 6},
         .pitch_mm = {3, 2.75},
         .face_mm = {1.75, 2.5},
         .depth_mm = 9},
    };
    const lr_scanner_params params = {.name = "odd", .modules = modules, .num_modules = 3, .detection_depth_mm = 1.5};
    struct test_log log;
    test_log_init(&log);
    return checked(lr_scanner_create(&params), &log);
}

static double distance(const double a[3], const double b[3])
{
    return sqrt(pow(a[0] - b[0], 2) + pow(a[1] - b[1], 2) + pow(a[2] - b[2], 2));
}

static void assert_same_module(const lr_module *a, const lr_module *b, double most)
{
    if (distance(a->centre_mm, b->centre_mm) > most) {
        fail_msg("(%g, %g, %g) against (%g, %g, %g)", a->centre_mm[0], a->centre_mm[1], a->centre_mm[2],
                 b->centre_mm[0], b->centre_mm[1], b->centre_mm[2]);
    }
    assert_true(distance(a->u, b->u) <= most);
    assert_true(distance(a->v, b->v) <= most);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(a->crystals[k], b->crystals[k]);
        assert_true(fabs(a->pitch_mm[k] - b->pitch_mm[k]) <= most);
        assert_true(fabs(a->face_mm[k] - b->face_mm[k]) <= most);
    }
    assert_true(fabs(a->depth_mm - b->depth_mm) <= most);
    assert_int_equal(a->position, b->position);
    assert_int_equal(a->ring, b->ring);
    assert_int_equal(a->first_crystal_ring, b->first_crystal_ring);
}

static void assert_same_modules(const lr_scanner *a, const lr_scanner *b, double most)
{
    assert_int_equal(a->num_modules, b->num_modules);
    assert_int_equal(a->num_positions, b->num_positions);
    for (int m = 0; m < a->num_modules; m++) assert_same_module(&a->modules[m], &b->modules[m], most);
}

/* lost: what the one warning says that the format has no place for; NULL = none. */
static lr_scanner *there_and_back(const lr_scanner *scanner, const char *name, const char *lost)
{
    struct test_log log;
    struct test_folder folder;
    char path[128];
    test_log_init(&log);
    folder_init(&folder);
    folder_file(&folder, path, name);
    if (lr_scanner_write(path, scanner, &log.log) != LR_OK) fail_msg("%s", log.error);
    assert_int_equal(log.num_warnings, lost != NULL);
    if (lost != NULL && strstr(log.warning, lost) == NULL) fail_msg("expected '%s' in '%s'", lost, log.warning);
    test_log_init(&log);
    lr_scanner *back = checked(lr_scanner_read(path, &log.log), &log);
    assert_int_equal(log.num_warnings, 0);
    folder_finish(&folder);
    return back;
}

/* --- YAML --- */

static void assert_identical(const lr_scanner *a, const lr_scanner *b)
{
    assert_same_modules(a, b, 1e-13);
    assert_string_equal(a->name, b->name);
    assert_true((a->source == NULL) == (b->source == NULL));
    if (a->source != NULL) assert_string_equal(a->source, b->source);
    assert_true(a->detection_depth_mm == b->detection_depth_mm);
    assert_true(a->tof_resolution_ps == b->tof_resolution_ps);
    assert_true(a->crystal_mu_per_mm == b->crystal_mu_per_mm);
    assert_true(a->coincidence.field_of_view_mm == b->coincidence.field_of_view_mm);
    assert_int_equal(a->coincidence.min_module_difference, b->coincidence.min_module_difference);
    assert_int_equal(a->coincidence.limits_ring_difference, b->coincidence.limits_ring_difference);
    assert_int_equal(a->coincidence.max_ring_difference, b->coincidence.max_ring_difference);
}

static void yaml_is_identical(void **state)
{
    (void)state;
    lr_scanner *scanner = turned_ring();
    lr_scanner *back = there_and_back(scanner, "ring.yaml", NULL);
    assert_identical(scanner, back);
    lr_scanner_destroy(back);
    /* A gap that no ring has: places and rings are listed. */
    scanner->modules[scanner->num_modules - 1].centre_mm[2] += 1.25;
    back = there_and_back(scanner, "list.yml", NULL);
    assert_identical(scanner, back);
    lr_scanner_destroy(back);
    lr_scanner_destroy(scanner);
    scanner = odd_list();
    back = there_and_back(scanner, "odd.yaml", NULL);
    assert_identical(scanner, back);
    lr_scanner_destroy(back);
    lr_scanner_destroy(scanner);
}

static void presets_as_yaml_are_identical(void **state)
{
    (void)state;
    for (const char *const *name = lr_scanner_presets(); *name != NULL; name++) {
        lr_scanner *scanner = lr_scanner_read(*name, NULL);
        assert_non_null(scanner);
        lr_scanner *back = there_and_back(scanner, "preset.yaml", NULL);
        assert_identical(scanner, back);
        lr_scanner_destroy(back);
        lr_scanner_destroy(scanner);
    }
}

/* Places of a list: as many modules at each, and only together with their number. */
static void places_are_even(void **state)
{
    (void)state;
    static const char head[] = "modules:\n";
    static const char module[] =
        "  - {center_mm: [%d, 0, 0], u: [0, 1, 0], v: [0, 0, 1], crystals: [2, 2], pitch_mm: [4, "
        "4], "
        "face_mm: [4, 4], depth_mm: 9, position: %d, ring: 0, first_crystal_ring: 0}\n";
    static const struct {
        const char *first;
        int places[2];
        const char *words; /* NULL = good */
    } cases[] = {
        {"num_positions: 2\n", {0, 1}, NULL},
        {"num_positions: 2\n", {1, 1}, "do not stand evenly at places 0 to 1"},
        {"num_positions: 3\n", {0, 1}, "do not stand evenly"},
        {"num_positions: 2000000000\n", {0, 1}, "do not stand evenly"},
        {"num_positions: 2\n", {0, 7}, "do not stand evenly"},
        {"", {0, 1}, "needs 'num_positions'"},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        char text[2048];
        struct test_log log;
        struct test_folder folder;
        char path[128];
        test_log_init(&log);
        folder_init(&folder);
        int used = snprintf(text, sizeof(text), "%s%s", cases[k].first, head);
        for (int m = 0; m < 2; m++)
            used += snprintf(text + used, sizeof(text) - (size_t)used, module, m ? -50 : 50, cases[k].places[m]);
        bytes_write(folder_file(&folder, path, "x.yaml"), text, (size_t)used);
        lr_scanner *scanner = lr_scanner_read(path, &log.log);
        assert_true((scanner != NULL) == (cases[k].words == NULL));
        if (cases[k].words != NULL && strstr(log.error, cases[k].words) == NULL)
            fail_msg("expected '%s', found '%s'", cases[k].words, log.error);
        lr_scanner_destroy(scanner);
        folder_finish(&folder);
    }
}

/* --- CASToR --- */

static void geom_comes_back(void **state)
{
    (void)state;
    lr_scanner *scanner = turned_ring();
    lr_scanner *back = there_and_back(scanner, "ring.geom",
                                      "field_of_view_mm 60.5 as a rule of coincidence (it is that "
                                      "of images there); max_ring_difference 17; "
                                      "tof_resolution_ps 321; crystal_mu_per_mm 0.083");
    assert_same_modules(scanner, back, 1e-6);
    assert_int_equal(back->coincidence.min_module_difference, 2);
    assert_close(back->detection_depth_mm, 2.5, 1e-12);
    assert_string_equal(scanner->name, back->name);
    lr_scanner_destroy(back);
    lr_scanner_destroy(scanner);
}

static void hscan_comes_back(void **state)
{
    (void)state;
    lr_scanner *scanner = turned_ring();
    lr_scanner *back =
        there_and_back(scanner, "ring.hscan", "max_ring_difference 17; tof_resolution_ps 321; crystal_mu_per_mm 0.083");
    assert_same_modules(scanner, back, 2e-5); /* float32 of 60 mm: 4e-6 */
    assert_int_equal(back->coincidence.min_module_difference, 2);
    assert_close(back->detection_depth_mm, 2.5, 1e-12);
    lr_scanner_destroy(back);
    lr_scanner_destroy(scanner);
    scanner = odd_list();
    back = there_and_back(scanner, "odd.hscan", NULL);
    assert_int_equal(back->num_modules, 3);
    for (int m = 0; m < 3; m++) {
        const lr_module *a = &scanner->modules[m], *b = &back->modules[m];
        assert_true(distance(a->centre_mm, b->centre_mm) < 2e-5);
        assert_true(distance(a->normal, b->normal) < 2e-5);
        assert_int_equal(a->crystals[1], b->crystals[1]);
    }
    lr_scanner_destroy(back);
    lr_scanner_destroy(scanner);
}

static lr_scanner *read_geom(const char *text)
{
    struct test_log log;
    struct test_folder folder;
    char path[128];
    test_log_init(&log);
    folder_init(&folder);
    bytes_write(folder_file(&folder, path, "x.geom"), text, strlen(text));
    lr_scanner *scanner = checked(lr_scanner_read(path, &log.log), &log);
    folder_finish(&folder);
    return scanner;
}

#define GEOM                                                                                                           \
    "modality: PET\nscanner name: four\nnumber of elements: 24\nnumber of layers: 1\n"                                 \
    "scanner radius: 30 # mm\nnumber of rsectors: 4\nnumber of crystals transaxial: 3\n"                               \
    "number of crystals axial: 2\ncrystals size depth: 10\ncrystals size trans: 3\n"                                   \
    "crystals size axial: 2\ncrystal gap transaxial: 0.5\ncrystal gap axial: 0.25\n"                                   \
    "rsectors first angle: 0\n"

/* CASToR puts its first rsector above the axis and turns clockwise: (x, y) = (R sin a, R cos a) in
 * its left-handed frame; with x reversed that is counterclockwise from +y. */
static void geom_stands_as_castor_has_it(void **state)
{
    (void)state;
    static const char *const directions[] = {"", "rotation direction: CW\n", "rotation direction: CCW\n"};
    for (int k = 0; k < 3; k++) {
        char text[1024];
        snprintf(text, sizeof(text), "%s%s", GEOM, directions[k]);
        lr_scanner *scanner = read_geom(text);
        const double second_x = k < 2 ? -30 : 30;
        assert_int_equal(scanner->num_positions, 4);
        assert_true(distance(scanner->modules[0].centre_mm, (double[]){0, 30, 0}) < 1e-9);
        const lr_module *second = &scanner->modules[k < 2 ? 1 : 3];
        assert_true(distance(second->centre_mm, (double[]){second_x, 0, 0}) < 1e-9);
        assert_close(second->pitch_mm[0], 3.5, 1e-9);
        assert_close(second->pitch_mm[1], 2.25, 1e-9);
        assert_close(second->face_mm[0], 3, 1e-9);
        assert_close(second->depth_mm, 10, 1e-9);
        assert_close(scanner->detection_depth_mm, 5, 1e-9);
        lr_scanner_destroy(scanner);
    }
}

/* Shifts along z are of rsectors in turn: no ring any more. */
static void geom_shifts(void **state)
{
    (void)state;
    lr_scanner *scanner = read_geom(GEOM "rsectors nbZShift: 2\nrsectors ZShift: 0,7\n");
    assert_int_equal(scanner->num_positions, 0);
    for (int m = 0; m < 4; m++) {
        const lr_module *module = &scanner->modules[m];
        const bool upright = fabs(module->centre_mm[0]) < 1;
        assert_close(module->centre_mm[2] + 1, upright ? 1 : 8, 1e-9);
    }
    lr_scanner_destroy(scanner);
}

/* Two layers are modules one behind the other. */
static void geom_layers(void **state)
{
    (void)state;
    lr_scanner *scanner =
        read_geom("number of layers: 2\nscanner radius: 30,38\nnumber of rsectors: 8,8\nnumber of crystals "
                  "transaxial: 4,4\nnumber of crystals axial: 2,2\ncrystals size depth: 7,8\ncrystals size "
                  "transaxial: 4,4\ncrystals size axial: 2,2\n");
    assert_int_equal(scanner->num_modules, 16);
    assert_int_equal(scanner->num_positions, 8);
    assert_close(scanner->modules[0].depth_mm, 7, 1e-9);
    assert_close(scanner->modules[1].depth_mm, 8, 1e-9);
    assert_int_equal(scanner->modules[1].position, 0);
    lr_scanner_destroy(scanner);
}

/* The table itself: ring by ring, around within each; x reversed; orientations outwards. */
static void lut_rows(void **state)
{
    (void)state;
    struct test_log log;
    struct test_folder folder;
    char path[128];
    size_t count;
    test_log_init(&log);
    folder_init(&folder);
    lr_scanner *scanner = turned_ring();
    assert_int_equal(lr_scanner_write(folder_file(&folder, path, "a.hscan"), scanner, &log.log), LR_OK);
    float *rows = (float *)(void *)bytes_read(folder_file(&folder, path, "a.lut"), &count);
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
    free(rows);
    lr_scanner_destroy(scanner);
    folder_finish(&folder);
}

/* --- STIR --- */

static void safir_header_and_map_are_the_preset(void **state)
{
    (void)state;
    char path[1024];
    struct test_log log;
    test_log_init(&log);
    if (test_data(path, "safir/muppet.hs") == NULL) skip();
    lr_scanner *scanner = checked(lr_scanner_read(path, &log.log), &log);
    lr_scanner *preset = lr_scanner_read("safir-dual-ring-prototype", NULL);
    for (int m = 0; m < preset->num_modules; m++) /* STIR has no faces */
        preset->modules[m].face_mm[0] = preset->modules[m].face_mm[1] = 2.2;
    assert_same_modules(preset, scanner, 1e-12);
    assert_close(scanner->detection_depth_mm, 6.5, 1e-12);
    lr_scanner_destroy(scanner);
    lr_scanner_destroy(preset);
}

/* Distance of the plane on which hits are read from the axis. */
static double hits_mm(const lr_scanner *scanner, int m)
{
    const lr_module *module = &scanner->modules[m];
    return scanner->detection_depth_mm - module->normal[0] * module->centre_mm[0] -
           module->normal[1] * module->centre_mm[1];
}

/* A map alone says nothing of sizes, unless its comments do: hits are then read where it says. */
static void maps_say_where_hits_are(void **state)
{
    (void)state;
    static const char *const comments[] = {"", "# face_mm: 1.5 1.75, depth_mm: 9\n"};
    lr_scanner *scanner = turned_ring();
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    folder_file(&folder, path, "map.txt");
    for (int k = 0; k < 2; k++) {
        struct test_log log;
        test_log_init(&log);
        FILE *file = fopen(path, "w");
        fputs(comments[k], file);
        for (int c = 0; c < scanner->num_crystals; c++) {
            const int m = lr_scanner_module_of(scanner, c), cell = c - scanner->first_crystal[m];
            double at[3];
            lr_module_crystal_centre(&scanner->modules[m], cell % 3, cell / 3, at);
            fprintf(file, "%d, %d, %.9f, %.9f, %.9f\n", c / 42, c % 42, at[0], at[1], at[2]);
        }
        fclose(file);
        lr_scanner *read = lr_scanner_read(path, &log.log);
        read = checked(read, &log);
        if (k == 0) {
            assert_int_equal(log.num_warnings, 1);
            assert_non_null(strstr(log.warning, "# depth_mm: 20"));
            assert_int_equal(read->num_modules, scanner->num_modules);
            for (int m = 0; m < read->num_modules; m++) assert_close(hits_mm(read, m), 50 + 0.5 * 9, 1e-6);
        } else {
            assert_int_equal(log.num_warnings, 0);
            for (int m = 0; m < scanner->num_modules; m++) {
                scanner->modules[m].face_mm[0] = 1.5;
                scanner->modules[m].face_mm[1] = 1.75;
            }
            assert_same_modules(scanner, read, 1e-6);
        }
        lr_scanner_destroy(read);
    }
    folder_finish(&folder);
    lr_scanner_destroy(scanner);
}

static void write_circles(const char *path, const char *comment, int around, int rings)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#ring\tdet\tx\ty\tz\n%s", comment);
    for (int n = 0; n < around * rings; n++) {
        const double angle = n % around * 2 * 3.14159265358979323846 / around;
        fprintf(file, "%d\t%d\t%.3f\t%.3f\t%.3f\n", n / around, n % around, 63.019 * cos(angle), 63.019 * sin(angle),
                2.2 * (n / around) - 1.1 * (rings - 1));
    }
    assert_int_equal(fclose(file), 0);
}

/* Single crystals on circles, as STIR's example for the SAFIR scanner has them: 180 places of 3
 * decimals at 63.019 mm, rings 2.2 mm apart. Each line along the axis is a module. */
static void maps_of_circles(void **state)
{
    (void)state;
    static const struct {
        const char *comment;
        int rings;
        double depth_mm;
        bool centres; /* places are centres of crystals: hits are read in front of them */
    } cases[] = {{"", 7, 2.2, false}, {"# depth_mm: 10\n", 7, 10, true}, {"", 1, 2.2, false}};
    enum { AROUND = 180 };
    struct test_folder folder;
    struct test_log log;
    char path[128];
    folder_init(&folder);
    folder_file(&folder, path, "a_crystal_map.txt");
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        write_circles(path, cases[k].comment, AROUND, cases[k].rings);
        test_log_init(&log);
        lr_scanner *scanner = checked(lr_scanner_read(path, &log.log), &log);
        assert_non_null(strstr(log.warning, "make no flat panels"));
        assert_int_equal(scanner->num_modules, AROUND);
        assert_int_equal(scanner->num_positions, AROUND);
        assert_int_equal(scanner->num_crystals, AROUND * cases[k].rings);
        for (int m = 0; m < AROUND; m++) {
            const lr_module *module = &scanner->modules[m];
            const double front_mm = 63.019 - 0.5 * cases[k].depth_mm;
            assert_close(module->depth_mm, cases[k].depth_mm, 1e-9);
            assert_true(fabs(hits_mm(scanner, m) - (cases[k].centres ? front_mm : 63.019)) < 1e-3);
            assert_true(fabs(module->face_mm[1] - 2.2) < 1e-3);
            /* As wide as the circle of the fronts leaves them, to 1 %. */
            const double room_mm = 2 * front_mm * tan(3.14159265358979323846 / AROUND);
            assert_true(module->face_mm[0] < room_mm && module->face_mm[0] > 0.99 * room_mm);
        }
        lr_scanner_destroy(scanner);
    }
    folder_finish(&folder);
}

/* The header's numbers give the preset: angles, rules, virtual crystals left out. Its pitch is that
 * of 504 equal parts of the circle; the preset has the blocks' width instead. */
static void mmr_header_is_the_preset(void **state)
{
    (void)state;
    char path[1024];
    struct test_log log;
    test_log_init(&log);
    if (test_data(path, "interfile/template_span11.hs") == NULL) skip();
    lr_scanner *scanner = checked(lr_scanner_read(path, &log.log), &log);
    lr_scanner *preset = lr_scanner_read("siemens-mmr", NULL);
    assert_non_null(strstr(log.warning, "twice the average depth"));
    assert_int_equal(scanner->num_modules, 56);
    for (int m = 0; m < 56; m++) {
        assert_true(distance(scanner->modules[m].centre_mm, preset->modules[m].centre_mm) < 1e-6);
        assert_int_equal(scanner->modules[m].crystals[0], 8);
        assert_close(scanner->modules[m].pitch_mm[0], 4.09, 3e-4);
    }
    assert_int_equal(scanner->coincidence.min_module_difference, preset->coincidence.min_module_difference);
    assert_int_equal(scanner->coincidence.max_ring_difference, preset->coincidence.max_ring_difference);
    lr_scanner_destroy(scanner);
    lr_scanner_destroy(preset);
}

/* 55 rings of 672 places, of which every 14th is virtual both ways: 32,448 crystals are left. */
static void mct_lacks_its_virtual_crystals(void **state)
{
    (void)state;
    static const char text[] =
        "!INTERFILE :=\nScanner type := Siemens mCT\nNumber of rings := 55\nNumber of detectors "
        "per ring := 672\nInner ring diameter (cm) := 84.2\nAverage depth of interaction (cm) := "
        "0.7\nDistance between rings (cm) := 0.4054\nMaximum number of non-arc-corrected bins := "
        "400\nNumber of crystals per block in axial direction := 14\nNumber of crystals per block "
        "in transaxial direction := 14\nTOF timing resolution (ps) := 555\n!END OF INTERFILE :=\n";
    struct test_log log;
    struct test_folder folder;
    char path[128];
    test_log_init(&log);
    folder_init(&folder);
    bytes_write(folder_file(&folder, path, "mct.hs"), text, sizeof(text) - 1);
    lr_scanner *scanner = checked(lr_scanner_read(path, &log.log), &log);
    assert_int_equal(scanner->num_crystals, 32448);
    assert_int_equal(scanner->num_modules, 48 * 4);
    assert_int_equal(scanner->num_positions, 48);
    assert_int_equal(scanner->modules[48].ring, 1);
    assert_int_equal(scanner->modules[48].first_crystal_ring, 13);
    assert_close(scanner->modules[48].centre_mm[2] - scanner->modules[0].centre_mm[2], 14 * 4.054, 1e-9);
    assert_close(scanner->modules[0].centre_mm[2] + scanner->modules[191].centre_mm[2] + 1, 1, 1e-9);
    assert_int_equal(scanner->coincidence.min_module_difference, 9);
    assert_close(scanner->tof_resolution_ps, 555, 0);
    lr_scanner_destroy(scanner);
    folder_finish(&folder);
}

#define BLOCKS                                                                                                         \
    "!INTERFILE :=\nScanner parameters:=\nScanner type := mine\nNumber of rings := 6\n"                                \
    "Number of detectors per ring := 48\nInner ring diameter (cm) := 10\n"                                             \
    "Average depth of interaction (cm) := 0.5\nDistance between rings (cm) := 0.3\n"                                   \
    "View offset (degrees) := 10\nNumber of blocks per bucket in transaxial direction := 2\n"                          \
    "Number of crystals per block in axial direction := 3\n"                                                           \
    "Number of crystals per block in transaxial direction := 3\n"                                                      \
    "Scanner geometry := BlocksOnCylindrical\n"                                                                        \
    "Distance between crystals in axial direction (cm) := 0.3\n"                                                       \
    "Distance between crystals in transaxial direction (cm) := 0.5\n"                                                  \
    "Distance between blocks in axial direction (cm) := 1\n"                                                           \
    "Distance between blocks in transaxial direction (cm) := 1.7\nend scanner parameters:=\n"                          \
    "!END OF INTERFILE :=\n"

/* Eight flat buckets of two blocks, whose middles stand on their normals; STIR turns a bucket by half of its share of
 * the ring, less a crystal's half and a gap of its own in blocks. STIR's x, y and z are ours reversed. */
static void blocks_on_a_cylinder(void **state)
{
    (void)state;
    struct test_log log;
    struct test_folder folder;
    char path[128];
    test_log_init(&log);
    folder_init(&folder);
    bytes_write(folder_file(&folder, path, "x.hs"), BLOCKS, strlen(BLOCKS));
    lr_scanner *scanner = checked(lr_scanner_read(path, &log.log), &log);
    assert_int_equal(scanner->num_positions, 8);
    assert_int_equal(scanner->num_modules, 8 * 2 * 2);
    assert_close(scanner->modules[0].pitch_mm[0], 5, 1e-9);
    assert_close(scanner->modules[1].centre_mm[2], scanner->modules[0].centre_mm[2], 1e-9);
    assert_true(fabs(scanner->modules[2].centre_mm[2] - scanner->modules[0].centre_mm[2] - 10) < 1e-6);
    /* The first bucket: its offset of 10 degrees from the top, and the turn; its first crystal 16 mm from the
     * middle. */
    double at[3];
    lr_module_crystal_centre(&scanner->modules[0], 0, 0, at);
    const double turn = 22.5 * (1 - 2 * (2.5 + 2.0) / 17.0), pi = acos(-1.0);
    const double *normal = scanner->modules[0].normal;
    assert_true(fabs(atan2(-normal[1], -normal[0]) * 180 / pi - (100 + turn)) < 0.01);
    assert_true(fabs(atan2(at[1], at[0]) * 180 / pi - (100 + turn - atan2(13.5, 55) * 180 / pi)) < 0.01);
    assert_true(fabs(-scanner->modules[0].normal[0] * at[0] - scanner->modules[0].normal[1] * at[1] - 55) < 1e-6);
    lr_scanner_destroy(scanner);
    folder_finish(&folder);
}

/* Forms that STIR reads: without a depth of interaction, a scanner by its name alone, less than a block along the axis,
 * and a mark of UTF-8 before it all. */
static void headers_that_say_less(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int crystals;
        double radius_mm, depth_mm, hit_mm;
    } cases[] = {
        {"\xef\xbb\xbf!INTERFILE :=\noriginating system := ECAT 962\n!END OF INTERFILE :=\n", 576 * 32, 412, 14, 7},
        {"!INTERFILE :=\nScanner type := Discovery MI\nNumber of rings := 36\n!END OF INTERFILE "
         ":=\n",
         544 * 36, 371.1, 18.8, 9.4},
        {"!INTERFILE :=\nNumber of rings := 1\nNumber of detectors per ring := 64\nInner ring "
         "diameter (cm) := 12\n"
         "Average depth of interaction (cm) := 0\nDistance between rings (cm) := 0.4\nNumber of "
         "crystals per block in "
         "axial direction := 4\nNumber of crystals per block in transaxial direction := 8\n!END OF "
         "INTERFILE :=\n",
         64, 60, 20, 0},
    };
    for (int k = 0; k < 3; k++) {
        struct test_log log;
        struct test_folder folder;
        char path[128];
        test_log_init(&log);
        folder_init(&folder);
        bytes_write(folder_file(&folder, path, "x.hs"), cases[k].text, strlen(cases[k].text));
        lr_scanner *scanner = checked(lr_scanner_read(path, &log.log), &log);
        const lr_module *module = &scanner->modules[0];
        assert_int_equal(scanner->num_crystals, cases[k].crystals);
        assert_close(hypot(module->centre_mm[0], module->centre_mm[1]), cases[k].radius_mm, 1e-9);
        assert_close(module->depth_mm, cases[k].depth_mm, 1e-9);
        assert_close(scanner->detection_depth_mm, cases[k].hit_mm, 1e-9);
        lr_scanner_destroy(scanner);
        folder_finish(&folder);
    }
}

/* --- hostile files --- */

static const struct sample {
    const char *name, *text;
} samples[] = {
    {"x.geom", GEOM},
    {"x.hs", BLOCKS},
    {"x.hscan", "modality: PET\nscanner name: x\nnumber of elements: 2\nnumber of layers: 1\n"
                "crystals size depth: 10\ncrystals size trans: 3\ncrystals size axial: 2\n"
                "scanner radius: 30\n"},
    {"x.txt", "# depth_mm: 9\n0 0 10.5 30 0.5\n0 1 13.5 30 0.5\n0 2 10.5 -30 0.5\n"
              "0 3 13.5 -30 0.5\n"},
    {"x.yaml", "name: x\nring: {radius_mm: 30, modules: 4}\nmodule: {crystals: [3, 2], pitch_mm: "
               "[3, 3], face_mm: [3, 3], depth_mm: 9}\n"},
};
enum { NUM_SAMPLES = sizeof(samples) / sizeof(samples[0]) };

/* A scanner, or one sentence about bad input. */
static void survive(const char *path)
{
    struct test_log log;
    test_log_init(&log);
    lr_scanner *scanner = lr_scanner_read(path, &log.log);
    if ((scanner == NULL) != (log.status == LR_BAD_INPUT))
        fail_msg("%s: status %d, '%s'", path, (int)log.status, log.error);
    if (scanner == NULL) assert_true(strlen(log.error) > 10);
    lr_scanner_destroy(scanner);
}

static void refuse(const char *path, const char *words)
{
    struct test_log log;
    test_log_init(&log);
    lr_scanner *scanner = lr_scanner_read(path, &log.log);
    assert_null(scanner);
    assert_int_equal(log.status, LR_BAD_INPUT);
    if (strstr(log.error, words) == NULL) fail_msg("expected '%s', found '%s'", words, log.error);
}

static void damaged_files(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    for (int s = 0; s < NUM_SAMPLES; s++) {
        const size_t length = strlen(samples[s].text);
        char bytes[2048];
        folder_file(&folder, path, samples[s].name);
        for (int part = 0; part <= 64; part++) {
            bytes_write(path, samples[s].text, length * (size_t)part / 64);
            survive(path);
        }
        for (int run = 0; run < 400; run++) {
            memcpy(bytes, samples[s].text, length);
            for (int k = 0; k < 1 + run / 40; k++) {
                bytes[(size_t)(test_random(&seed) * (double)length)] =
                    (char)(run % 2 ? '0' + test_random(&seed) * 10 : test_random(&seed) * 256);
            }
            bytes_write(path, bytes, length);
            survive(path);
        }
        for (int k = 0; k < 2048; k++) bytes[k] = (char)(test_random(&seed) * 256);
        bytes_write(path, bytes, sizeof(bytes));
        survive(path);
    }
    folder_finish(&folder);
}

static void damaged_tables(void **state)
{
    (void)state;
    struct test_log log;
    struct test_folder folder;
    char header[128], table[128];
    size_t count;
    test_log_init(&log);
    folder_init(&folder);
    lr_scanner *scanner = odd_list();
    folder_file(&folder, header, "t.hscan");
    folder_file(&folder, table, "t.lut");
    assert_int_equal(lr_scanner_write(header, scanner, &log.log), LR_OK);
    unsigned char *bytes = bytes_read(table, &count);
    for (int part = 0; part < 64; part++) {
        bytes_write(table, bytes, count * (size_t)part / 64);
        refuse(header, "the table is truncated");
        refuse(table, "the table is truncated"); /* named by its table */
    }
    bytes_write(table, bytes, count);
    survive(header);
    memset(bytes + 24 * 7 + 12, 0, 12);
    bytes_write(table, bytes, count);
    refuse(header, "the orientation of crystal 7");
    memset(bytes, 0xff, 24);
    bytes_write(table, bytes, count);
    refuse(header, "crystal 0");
    free(bytes);
    remove(table);
    refuse(header, "t.lut: cannot be opened");
    lr_scanner_destroy(scanner);
    folder_finish(&folder);
}

static void huge_counts(void **state)
{
    (void)state;
    static const struct sample cases[] = {
        {"a.geom", "scanner radius: 30\nnumber of rsectors: 1000000\nnumber of crystals "
                   "transaxial: 1000000\nnumber of crystals axial: 1000000\ncrystals size depth: "
                   "1\ncrystals size trans: 1\ncrystals size axial: 1\n"},
        {"b.hscan", "number of elements: 900000000\nnumber of layers: 1\ncrystals size depth: "
                    "1\ncrystals size trans: 1\ncrystals size axial: 1\nscanner radius: 3\n"},
        {"c.hs", "!INTERFILE :=\nNumber of rings := 100000\nNumber of detectors per ring := "
                 "1000000\nInner ring diameter (cm) := 1\nDistance between rings (cm) := 1\n"},
        {"d.hs", "!INTERFILE :=\nNumber of rings := 1e300\n"},
        {"e.geom", "scanner radius: nan\nnumber of rsectors: 4\n"},
        {"f.geom", "scanner radius: 30\nnumber of rsectors: 4.5\n"},
    };
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        bytes_write(folder_file(&folder, path, cases[k].name), cases[k].text, strlen(cases[k].text));
        refuse(path, cases[k].name);
    }
    folder_finish(&folder);
}

static void no_files(void **state)
{
    (void)state;
    static const char *const endings[] = {"geom", "hscan", "hs", "txt", "yaml"};
    struct test_folder folder;
    char path[128], name[32];
    folder_init(&folder);
    for (size_t k = 0; k < sizeof(endings) / sizeof(endings[0]); k++) {
        snprintf(name, sizeof(name), "x.%s", endings[k]);
        folder_file(&folder, path, name);
        refuse(path, "cannot be opened");
        assert_int_equal(symlink("nowhere", path), 0);
        refuse(path, "cannot be opened");
        remove(path);
        assert_int_equal(mkdir(path, 0777), 0);
        refuse(path, "is a folder");
        rmdir(path);
        assert_int_equal(mkfifo(path, 0600), 0);
        refuse(path, "is no regular file");
        remove(path);
    }
    folder_finish(&folder);
}

/* Whole or not at all, and what formats cannot hold. */
static void writers_refuse(void **state)
{
    (void)state;
    struct test_log log;
    struct test_folder folder;
    char path[128];
    test_log_init(&log);
    folder_init(&folder);
    lr_scanner *list = odd_list(), *ring = turned_ring();
    assert_int_equal(lr_scanner_write(folder_file(&folder, path, "x.geom"), list, &log.log), LR_BAD_INPUT);
    assert_non_null(strstr(log.error, "write .hscan instead"));
    list->modules[1].face_mm[0] = 1;
    assert_int_equal(lr_scanner_write(folder_file(&folder, path, "x.hscan"), list, &log.log), LR_BAD_INPUT);
    assert_non_null(strstr(log.error, "modules 0 and 1 differ in size"));
    assert_int_equal(lr_scanner_write(folder_file(&folder, path, "x.bin"), list, &log.log), LR_USAGE);
    assert_non_null(strstr(log.error, ".yaml, .yml, .geom, .hscan"));
    const struct rlimit before = disk_fill(100);
    const lr_status full = lr_scanner_write(folder_file(&folder, path, "x.yaml"), ring, &log.log);
    disk_empty(before);
    assert_int_equal(full, LR_FAILED);
    assert_int_equal(folder_visit(&folder, false), 0);
    lr_scanner_destroy(list);
    lr_scanner_destroy(ring);
    folder_finish(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_is_identical),
        cmocka_unit_test(presets_as_yaml_are_identical),
        cmocka_unit_test(places_are_even),
        cmocka_unit_test(geom_comes_back),
        cmocka_unit_test(hscan_comes_back),
        cmocka_unit_test(geom_stands_as_castor_has_it),
        cmocka_unit_test(geom_shifts),
        cmocka_unit_test(geom_layers),
        cmocka_unit_test(lut_rows),
        cmocka_unit_test(safir_header_and_map_are_the_preset),
        cmocka_unit_test(maps_say_where_hits_are),
        cmocka_unit_test(maps_of_circles),
        cmocka_unit_test(mmr_header_is_the_preset),
        cmocka_unit_test(mct_lacks_its_virtual_crystals),
        cmocka_unit_test(blocks_on_a_cylinder),
        cmocka_unit_test(headers_that_say_less),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(damaged_tables),
        cmocka_unit_test(huge_counts),
        cmocka_unit_test(no_files),
        cmocka_unit_test(writers_refuse),
    };
    return cmocka_run_group_tests_name("scanner formats", tests, NULL, NULL);
}
