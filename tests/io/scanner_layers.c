/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Layers of crystals in scanner files: errors and their positions in the file, positions around the ring, LORs, and
 * reading and writing in every format that has layers. */
#include "io/lists.h"
#include "io/scanners.h"
#include "io/text_cases.h"
#include "model/scanner/scanner.h"
#include "operator/layered.h"

#define HEAD "ring: {radius_mm: 40, modules: 8}\n"
#define MODULE "module: {crystals: [6, 4], pitch_mm: [2, 2], face_mm: [1.9, 1.9], depth_mm: 12"

#define UPPER "modules:\n  - {center_mm: [0, 40, 0], u: [1, 0, 0], v: [0, 0, 1], "
#define LOWER "  - {center_mm: [0, -40, 0], u: [1, 0, 0], v: [0, 0, 1], "

static lr_scanner *parse(const char *text, int64_t length, struct test_log *log)
{
    test_log_init(log);
    return lr_scanner_parse(lr_yaml_parse("layers.yaml", text, length, &log->log));
}

/* Each sentence begins with file, line and column. */
static void impossible_layers_are_refused(void **state)
{
    for (struct text_cases cases = cases_of(IO_CASES, "layers"); next_case(&cases);) {
        struct test_log log;
        lr_scanner *scanner = parse(cases.fields[1], (int64_t)strlen(cases.fields[1]), &log);
        if (scanner != NULL || log.status != LR_BAD_INPUT || strstr(log.error, cases.fields[0]) == NULL)
            fail_msg("for\n%s\nexpected '%s'\nfound '%s'", cases.fields[1], cases.fields[0], log.error);
    }
}

static void assert_point(const double point[3], double x, double y, double z)
{
    assert_true(fabs(point[0] - x) < 1e-12 && fabs(point[1] - y) < 1e-12 && fabs(point[2] - z) < 1e-12);
}

/* Each layer becomes a module, from front to back; it lies behind the layer before unless its own position is given. */
static void layers_are_modules(void **state)
{
    lr_scanner *scanner = scanner_of(HEAD MODULE ", layers: [{depth_mm: 4}, {depth_mm: 3, crystals: [5, 4], offset_mm: "
                                                 "[1, -0.5]}, {depth_mm: 4, front_mm: 8, pitch_mm: [2.2, 2.1]}]}\n");
    assert_pairs(0, {scanner->num_modules, 24}, {scanner->num_crystals, 8 * (24 + 20 + 24)},
                 {lr_scanner_num_layers(scanner), 3});
    static const double front_mm[3] = {0, 4, 8}, depth_mm[3] = {4, 3, 4};
    for (int m = 0; m < 24; m++) {
        const lr_module *module = &scanner->modules[m];
        const double a = m / 3 * acos(-1.0) / 4, r = 40 + front_mm[m % 3], off = m % 3 == 1;
        assert_pairs(0, {module->layer, m % 3}, {module->block, m / 3 + 1}, {module->position, m / 3},
                     {module->crystals[0], m % 3 == 1 ? 5 : 6});
        assert_true(module->depth_mm == depth_mm[m % 3]);
        assert_true(module->pitch_mm[0] == (m % 3 == 2 ? 2.2 : 2) && module->face_mm[0] == 1.9);
        assert_point(module->centre_mm, r * cos(a) - off * sin(a), r * sin(a) + off * cos(a), -0.5 * off);
    }
}

/* The same in a list of modules, next to a module without layers. */
static void listed_modules_have_layers(void **state)
{
    lr_lors *lors =
        lors_of(scanner_of(UPPER "crystals: [3, 2], pitch_mm: [2, 3], face_mm: [2, 3], depth_mm: 5}\n" LOWER
                                 "crystals: [3, 2], pitch_mm: [2, 3], face_mm: [2, 3], depth_mm: 15,\n"
                                 "     layers: [{depth_mm: 4, front_mm: 1}, {depth_mm: 6, crystals: [2, 2]}]}\n"));
    const lr_module *modules = lors->scanner->modules;
    assert_int_equal(lors->scanner->num_modules, 3);
    assert_point(modules[1].centre_mm, 0, -41, 0);
    assert_point(modules[2].centre_mm, 0, -45, 0);
    assert_pairs(0, {modules[1].block, modules[2].block}, {modules[0].block, 0}, {modules[2].layer, 1});
    assert_int_equal(lors->num_pairs, 2); /* layers of one block have no LORs with each other */
    assert_pairs(0, {lr_lors_pair(lors, 1, 2), -1}, {lors->count, 6 * 6 + 6 * 4});
}

/* Positions around the ring count blocks, whatever their layers. */
static void rules_count_blocks(void **state)
{
    for (int least = 0; least <= 4; least++) {
        char rule[64] = "";
        if (least > 0) snprintf(rule, sizeof(rule), "coincidence: {min_module_difference: %d}\n", least);
        lr_lors *lors = lors_of(scanner_of(HEAD MODULE ", layers: [{depth_mm: 4}, {depth_mm: 8}]}\n%s", rule));
        int64_t pairs = 0;
        for (int i = 0; i < 16; i++) {
            for (int j = i + 1; j < 16; j++) {
                const int apart = abs(i / 2 - j / 2), around = apart < 4 ? apart : 8 - apart;
                const bool wanted = around >= least && i / 2 != j / 2;
                assert_int_equal(lr_lors_pair(lors, i, j) >= 0, wanted);
                pairs += wanted;
            }
        }
        assert_int_equal(lors->num_pairs, pairs);
    }
}

/* --- writing and reading back --- */

/* Layers may have other materials than the scanner. */
static void layers_have_materials(void **state)
{
    static const char *const wrong[][2] = {
        {HEAD MODULE ", layers: [{depth_mm: 4, crystal_material: lead}]}\n", "LSO, LYSO, BGO, GSO or LaBr3"},
        {HEAD MODULE "}\ncrystal_material: LSO\ncrystal_mu_per_mm: 0.08\n", "keep one of the two"}};
    static const double wanted[3] = {0.0818, 0.07, 0};
    lr_scanner *scanner = scanner_of(HEAD MODULE ", layers: [{depth_mm: 4, crystal_material: lyso}, {depth_mm: 3, "
                                                 "crystal_mu_per_mm: 0.07}, {depth_mm: 4}]}\ncrystal_material: BGO\n");
    lr_scanner *again = there_and_back(scanner, "again.yaml", NULL, NULL);
    assert_same_modules(scanner, again, 1e-12);
    assert_true(fabs(again->crystal_mu_per_mm - 0.0963) < 1e-4);
    for (int m = 0; m < scanner->num_modules; m++)
        assert_true(fabs(scanner->modules[m].mu_per_mm - wanted[m % 3]) < 1e-4);
    for (int k = 0; k < 2; k++) {
        assert_none(parse(wrong[k][0], (int64_t)strlen(wrong[k][0]), &files.log), LR_BAD_INPUT, &files.log,
                    wrong[k][1]);
    }
}

/* Two rings of panels of blocks; the blocks have different layers. */
static lr_scanner *blocks_of_layers(void)
{
    return scanner_of(
        "name: blocks\nring: {radius_mm: 50, modules: 7, first_angle_deg: 17, rings: 2, ring_pitch_mm: 31}\n"
        "module: {crystals: [[3, 4], [4, 5]], block_gap_mm: [0.75, 0.5], pitch_mm: [2, 1.75], face_mm: [1.75, 1.5], "
        "depth_mm: 12, layers: [{depth_mm: 2.5}, {depth_mm: 3, crystals: [[3, 4], [3, 4]], offset_mm: [0.25, -0.5]}, "
        "{depth_mm: 4, front_mm: 7.5, face_mm: [1.5, 1.25]}]}\n");
}

static void yaml_there_and_back(void **state)
{
    lr_scanner *scanners[3] = {layered_ring(), blocks_of_layers(), layered_tilted()};
    static const char *const texts[3] = {
        "layers:\n    - {depth_mm: 5}\n    - {depth_mm: 7, front_mm: 6, crystals: [5, 3]",
        "crystals: [[3, 4], [3, 4]], offset_mm: [0.25, -0.5]}", "layer: 1, block: 4"};
    for (int k = 0; k < 3; k++)
        assert_same_modules(scanners[k], there_and_back(scanners[k], "again.yaml", NULL, texts[k]), 1e-12);
}

/* Layers are centred and have the same crystals everywhere, as .geom requires. */
static lr_scanner *centred_layers(void)
{
    return scanner_of(
        "name: centred\nring: {radius_mm: 50, modules: 7, first_angle_deg: 90, rings: 2, ring_pitch_mm: 31}\n"
        "module: {crystals: [[3, 3], [4, 4]], block_gap_mm: [0.75, 0.5], pitch_mm: [2, 1.75], face_mm: [1.75, 1.5], "
        "depth_mm: 12, layers: [{depth_mm: 5}, {depth_mm: 4, front_mm: 6.5, crystals: [[2, 2], [3, 3]], pitch_mm: "
        "[2.5, 2.25], face_mm: [2.25, 2]}]}\n"
        "detection_depth_mm: 1.5\ncoincidence: {min_module_difference: 2}\n");
}

static const lr_module *module_of(const lr_scanner *scanner, int crystal)
{
    return &scanner->modules[lr_scanner_module_of(scanner, crystal)];
}

/* Every crystal of one scanner has a counterpart in the other, in a module of the same layer; both have the same
   blocks. */
static void assert_same_crystals(const lr_scanner *a, const lr_scanner *b, double most_mm)
{
    int *block_of = kept((size_t)a->num_modules + 1, sizeof(int));
    assert_pairs(0, {a->num_crystals, b->num_crystals}, {a->num_modules, b->num_modules});
    for (int c = 0; c < a->num_crystals; c++) {
        double centre[3], off;
        lr_scanner_crystal_centre(a, c, centre);
        const lr_module *one = module_of(a, c), *found = module_of(b, nearest_crystal(b, centre, &off));
        assert_true(off <= most_mm);
        assert_int_equal(one->layer, found->layer);
        assert_all(fabs(one->depth_mm - found->depth_mm) <= most_mm, one->block >= 0 && one->block <= a->num_modules);
        assert_true(block_of[one->block] == 0 || block_of[one->block] == found->block);
        block_of[one->block] = found->block;
    }
}

static void castor_there_and_back(void **state)
{
    lr_scanner *scanner = centred_layers();
    lr_scanner *again = there_and_back(scanner, "again.geom", NULL, "crystals size depth               : 5,4\n");
    assert_same_modules(scanner, again, 1e-6);
    again = there_and_back(scanner, "again.hscan", NULL, "number of crystals in layer(s): 672,336\n");
    assert_same_modules(scanner, again, 2e-5); /* single precision */
    assert_int_equal(again->coincidence.min_module_difference, 2);
    scanner = layered_ring();
    again = there_and_back(scanner, "again.hscan", "", "number of layers              : 2\n");
    assert_int_equal(again->num_positions, 8);
    assert_same_crystals(scanner, again, 2e-5);
}

/* If depths of interaction differ between layers, they cannot be kept. */
static void castor_depths_differ(void **state)
{
    const char *path = "two.geom";
    text_write(path, "modality: PET\nscanner name: two\nnumber of elements: 128\nnumber of layers: 2\n"
                     "scanner radius: 30,38\nnumber of rsectors: 8\nnumber of crystals transaxial: 4\n"
                     "number of crystals axial: 2\ncrystals size depth: 7,8\ncrystals size transaxial: 4\n"
                     "crystals size axial: 2\nmean depth of interaction: 2.5,3\nfield of view axial: 10\n");
    lr_scanner *scanner = keep(lr_scanner_read(path, &files.log.log));
    assert_warning(&files.log, "hits are read 2.5 mm behind the front faces of all layers");
    assert_true(scanner->detection_depth_mm == 2.5);
    for (int m = 0; m < scanner->num_modules; m++) {
        assert_pairs(0, {scanner->modules[m].layer, m % 2}, {scanner->modules[m].block, m / 2 + 1},
                     {scanner->modules[m].position, m / 2});
    }
}

/* --- other lists of crystals --- */

/* STIR's map, in which the layer behind has number 1 and the layer in front number 2. */
static void maps_have_layers(void **state)
{
    enum { NU = 4, NV = 3 };
    static char text[32768];
    const char *path = "map.txt";
    lr_scanner *scanner = scanner_of("ring: {radius_mm: 40, modules: 8}\nmodule: {crystals: [%d, %d], pitch_mm: [3, "
                                     "3.5], face_mm: [3, 3.5], depth_mm: 12, layers: [{depth_mm: 6}, {depth_mm: 6}]}\n",
                                     NU, NV);
    int used = sprintf(text, "# depth_mm: 6\n");
    for (int c = 0; c < scanner->num_crystals; c++) {
        double at[3];
        const lr_module *module = module_of(scanner, c);
        const int within = c % (NU * NV);
        lr_scanner_crystal_centre(scanner, c, at);
        used += sprintf(text + used, "%d %d %d %.6f %.6f %.6f\n", within / NU, module->position * NU + within % NU,
                        2 - module->layer, at[0], at[1], at[2]);
    }
    text_write(path, text);
    lr_scanner *again = keep(lr_scanner_read(path, &files.log.log));
    assert_int_equal(again->num_positions, 8);
    assert_same_modules(scanner, again, 1e-5);
}

/* Only positions are known: modules behind others become layers of these, modules of an insert do not. */
static void layers_are_found(void **state)
{
    struct test_log log = TEST_LOG(log);
    for (int far = 0; far < 2; far++) {
        lr_crystal crystals[2 * 2 * 6];
        int count = 0, crystal_of[2 * 2 * 6];
        for (int side = -1; side <= 1; side += 2) {
            for (int n = 0; n < 12; n++) {
                const double y = 40 + (n < 6 ? 3 : far ? 15 : 9);
                crystals[count++] =
                    filled(lr_crystal, .centre_mm = {2.5 * (n % 3 - 1), side * y, 3 * (n / 3 % 2)},
                           .axes = {{1, 0, 0}, {0, 0, 1}, {0, 1, 0}}, .size_mm = {2.5, 3, 5}, .group = side);
            }
        }
        lr_scanner *scanner = keep(lr_scanner_from_crystals(
            &(lr_crystal_list){.crystals = crystals, .num_crystals = count, .finds_layers = true, .log = &log.log},
            crystal_of, NULL));
        assert_int_equal(scanner->num_modules, 4);
        for (int c = 0; c < count; c++) {
            double centre[3];
            const lr_module *module = module_of(scanner, crystal_of[c]);
            lr_scanner_crystal_centre(scanner, crystal_of[c], centre);
            assert_pairs(0, {module->layer, far ? 0 : c / 6 % 2}, {module->block, far ? 0 : c / 12 + 1});
            for (int k = 0; k < 3; k++) assert_true(fabs(centre[k] - crystals[c].centre_mm[k]) < 1e-9);
        }
    }
}

/* Data files store the layers of their scanner, and a scanner with other layers is refused. */
static void hdf5_keeps_layers(void **state)
{
    const char *path = "data.h5";
    lr_scanner *scanner = layered_tilted();
    scanner->modules[3].mu_per_mm = 0.07;
    lr_lors *lors = lors_of(scanner);
    lr_lor_data *data = keep(lr_lor_data_create(lors, NULL));
    assert_int_equal(lr_lor_data_write(path, lors, data, &files.log.log), LR_OK);
    assert_same_modules(scanner, keep(lr_scanner_read_hdf5(path, &files.log.log)), 0);
    bool keep[256];
    memset(keep, true, sizeof(keep));
    struct layered_rest rest = layered_keep(scanner, keep);
    lr_lors *flat = lors_of(rest.scanner);
    assert_none(lr_lor_data_read(path, flat, &files.log.log), LR_BAD_INPUT, &files.log,
                "has no blocks of layers, and the file's has");
}

/* --- events --- */

/* Returns true if two crystals of two scanners are at the same position and in the same layer. */
static bool is_same_crystal(const lr_scanner *a, int in_a, const lr_scanner *b, int in_b)
{
    double x[3], y[3];
    lr_scanner_crystal_centre(a, in_a, x);
    lr_scanner_crystal_centre(b, in_b, y);
    return distance_mm(x, y) < 1e-3 && module_of(a, in_a)->layer == module_of(b, in_b)->layer;
}

/* Writes events for a scanner, and reads them for this scanner and for the one that the file contains. */
static void check_events(lr_scanner *scanner, const char *name, const char *scanner_name)
{
    enum { NUM_EVENTS = 200 };
    struct test_log log = TEST_LOG(log);
    lr_event events[NUM_EVENTS];
    uint64_t seed = test_seed();
    const char *path = name, *scanner_path = scanner_name;
    lr_lors *lors = lors_of(scanner);
    for (int k = 0; k < NUM_EVENTS; k++) {
        events[k] = (lr_event){.weight = 1, .time_ms = (uint32_t)k};
        lr_lors_crystals(lors, draw_lor(lors, &seed), events[k].crystals);
    }
    const lr_events_info info = {.duration_s = 1};
    const lr_events_writer_params params = {.path = path, .lors = lors, .info = &info, .log = &log.log};
    write_list(&params, events, NUM_EVENTS);
    if (strcmp(name, scanner_name) != 0) assert_int_equal(lr_scanner_write(scanner_path, scanner, &log.log), LR_OK);
    test_log_init(&log);
    lr_scanner *brought = keep(lr_scanner_read(scanner_path, &log.log));
    assert_string_equal(log.warning, "");
    assert_int_equal(brought->num_positions, scanner->num_positions);
    assert_int_equal(brought->coincidence.min_module_difference, scanner->coincidence.min_module_difference);
    assert_same_crystals(scanner, brought, 1e-3);
    for (int own = 0; own < 2; own++) {
        const lr_scanner *with = own ? scanner : brought;
        const lr_events_source source = {.path = path, .scanner = with, .log = &log.log};
        lr_event_list *list = keep(lr_event_list_read(&source));
        assert_int_equal(list->count, NUM_EVENTS);
        for (int k = 0; k < NUM_EVENTS; k++) {
            const int32_t *was = events[k].crystals, *is = list->events[k].crystals;
            assert_true(
                (is_same_crystal(scanner, was[0], with, is[0]) && is_same_crystal(scanner, was[1], with, is[1])) ||
                (is_same_crystal(scanner, was[0], with, is[1]) && is_same_crystal(scanner, was[1], with, is[0])));
        }
    }
}

static void events_find_their_layer(void **state)
{
    check_events(layered_ring(), "a.petsird", "a.petsird");
    check_events(centred_layers(), "a.petsird", "a.petsird");
    check_events(centred_layers(), "a.Cdh", "a.geom");
    check_events(centred_layers(), "a.Cdh", "a.hscan");
}

group_main("scanner layers", NULL, NULL,
           EACH(FILES_CASE, impossible_layers_are_refused, layers_are_modules, layers_have_materials,
                listed_modules_have_layers, rules_count_blocks, yaml_there_and_back, castor_there_and_back,
                castor_depths_differ, maps_have_layers, layers_are_found, hdf5_keeps_layers, events_find_their_layer))
