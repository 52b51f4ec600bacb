/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Layers of crystals in scanner files: what is refused and where, places, LORs, and the way through
 * every format that has layers. */
#include "files.h"

#include "io/scanners/scanner_formats.h"
#include "model/scanner/layers.h"
#include "operator/layered.h"

#define HEAD "ring: {radius_mm: 40, modules: 8}\n"
#define MODULE "module: {crystals: [6, 4], pitch_mm: [2, 2], face_mm: [1.9, 1.9], depth_mm: 12"

static lr_scanner *read_text(const char *text, struct test_log *log)
{
    struct test_folder folder;
    char path[128];
    test_log_init(log);
    folder_init(&folder);
    folder_file(&folder, path, "layers.yaml");
    bytes_write(path, text, strlen(text));
    lr_scanner *scanner = lr_scanner_read(path, &log->log);
    folder_finish(&folder);
    return scanner;
}

/* The sentence begins with the place, behind the file's path. */
static void impossible_layers_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {HEAD MODULE ",\n layers: [{depth_mm: 4}, {depth_mm: 9}]}\n",
         "layers.yaml:3:26: layer 1 ends 1 mm behind the module's 'depth_mm' of 12"},
        {HEAD MODULE ",\n layers: [{depth_mm: 4}, {depth_mm: 5, front_mm: 3.5}]}\n",
         "layers.yaml:3:26: layer 1 begins 0.5 mm before the end of the layer in front of it"},
        {HEAD MODULE ",\n layers: []}\n", "layers.yaml:3:2: 'layers' must be a list of 1 to 16"},
        {HEAD MODULE ",\n layers: [{front_mm: 4}]}\n",
         "layers.yaml:3:11: a layer lacks 'depth_mm'"},
        {HEAD MODULE ",\n layers: [{depth_mm: 0}]}\n", "layers.yaml:3:22: 'depth_mm' must be"},
        {HEAD MODULE ",\n layers: [{depth_mm: 4, crystals: [[3, 3], 4]}]}\n",
         "layers.yaml:3:25: a layer must have as many blocks as its module, 1 along u, found 2"},
        {HEAD MODULE ",\n layers: [{depth_mm: 4, offset_mm: [1]}]}\n",
         "layers.yaml:3:36: 'offset_mm' must be a list of 2 numbers"},
        {HEAD MODULE ", layers: [{depth_mm: 4}, {depth_mm: 4, crystals: [6, 5]}]}\n"
                     "coincidence: {max_ring_difference: 2}\n",
         "layers.yaml:1:1: unnamed scanner: layer 1 has 5 crystals along v where the module has 4"},
        {HEAD MODULE ", layers: [{depth_mm: 4}, {depth_mm: 4, pitch_mm: [1, 1]}]}\n",
         "layers.yaml:1:1: unnamed scanner: module 1 has crystal faces of 1.9 mm along u"},
        {"modules:\n  - {center_mm: [0, 40, 0], u: [1, 0, 0], v: [0, 0, 1], layer: 1, block: 1, "
         "crystals: [2, 2], pitch_mm: [2, 2], face_mm: [2, 2], depth_mm: 5}\n  - {center_mm: "
         "[0, -40, 0], u: [1, 0, 0], v: [0, 0, 1], crystals: [2, 2], pitch_mm: [2, 2], face_mm: "
         "[2, 2], depth_mm: 5,\n     layers: [{depth_mm: 2}]}\n",
         "layers.yaml:4:6: 'layers' of a module and modules that are a 'layer' each are given "
         "(line 2)"},
        {"modules:\n  - {center_mm: [0, 40, 0], u: [1, 0, 0], v: [0, 0, 1], layer: 1, "
         "crystals: [2, 2], pitch_mm: [2, 2], face_mm: [2, 2], depth_mm: 5}\n  - {center_mm: "
         "[0, -40, 0], u: [1, 0, 0], v: [0, 0, 1], crystals: [2, 2], pitch_mm: [2, 2], face_mm: "
         "[2, 2], depth_mm: 5}\n",
         "layers.yaml:1:1: unnamed scanner: module 0 is layer 1 of block 0: layers run from 0 to "
         "15, and blocks of them from 1"},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct test_log log;
        lr_scanner *scanner = read_text(cases[k][0], &log);
        if (scanner != NULL || log.status != LR_BAD_INPUT ||
            strstr(log.error, cases[k][1]) == NULL) {
            fail_msg("for\n%s\nexpected '%s'\nfound '%s'", cases[k][0], cases[k][1], log.error);
        }
    }
}

static void assert_point(const double point[3], double x, double y, double z)
{
    assert_true(fabs(point[0] - x) < 1e-12 && fabs(point[1] - y) < 1e-12 &&
                fabs(point[2] - z) < 1e-12);
}

/* A module a layer, front to back, each behind the one before unless it says where. */
static void layers_are_modules(void **state)
{
    (void)state;
    struct test_log log;
    lr_scanner *scanner = read_text(
        HEAD MODULE ", layers: [{depth_mm: 4}, {depth_mm: 3, crystals: [5, 4], offset_mm: [1, "
                    "-0.5]}, {depth_mm: 4, front_mm: 8, pitch_mm: [2.2, 2.1]}]}\n",
        &log);
    assert_non_null(scanner);
    assert_int_equal(scanner->num_modules, 24);
    assert_int_equal(scanner->num_crystals, 8 * (24 + 20 + 24));
    assert_int_equal(lr_scanner_num_layers(scanner), 3);
    static const double front_mm[3] = {0, 4, 8}, depth_mm[3] = {4, 3, 4};
    for (int m = 0; m < 24; m++) {
        const lr_module *module = &scanner->modules[m];
        const double a = m / 3 * acos(-1.0) / 4, r = 40 + front_mm[m % 3], off = m % 3 == 1;
        assert_int_equal(module->layer, m % 3);
        assert_int_equal(module->block, m / 3 + 1);
        assert_int_equal(module->position, m / 3);
        assert_int_equal(module->crystals[0], m % 3 == 1 ? 5 : 6);
        assert_true(module->depth_mm == depth_mm[m % 3]);
        assert_true(module->pitch_mm[0] == (m % 3 == 2 ? 2.2 : 2) && module->face_mm[0] == 1.9);
        assert_point(module->centre_mm, r * cos(a) - off * sin(a), r * sin(a) + off * cos(a),
                     -0.5 * off);
    }
    lr_scanner_destroy(scanner);
}

/* The same in the list form, with a plain module beside. */
static void listed_modules_have_layers(void **state)
{
    (void)state;
    struct test_log log;
    lr_scanner *scanner = read_text(
        "modules:\n"
        "  - {center_mm: [0, 40, 0], u: [1, 0, 0], v: [0, 0, 1], crystals: [3, 2], pitch_mm: [2, "
        "3], face_mm: [2, 3], depth_mm: 5}\n"
        "  - {center_mm: [0, -40, 0], u: [1, 0, 0], v: [0, 0, 1], crystals: [3, 2], pitch_mm: [2, "
        "3], face_mm: [2, 3], depth_mm: 15,\n"
        "     layers: [{depth_mm: 4, front_mm: 1}, {depth_mm: 6, crystals: [2, 2]}]}\n",
        &log);
    assert_non_null(scanner);
    assert_int_equal(scanner->num_modules, 3);
    assert_point(scanner->modules[1].centre_mm, 0, -41, 0);
    assert_point(scanner->modules[2].centre_mm, 0, -45, 0);
    assert_int_equal(scanner->modules[1].block, scanner->modules[2].block);
    assert_int_equal(scanner->modules[0].block, 0);
    assert_int_equal(scanner->modules[2].layer, 1);
    lr_lors *lors = lr_lors_create(scanner, &log.log);
    assert_int_equal(lors->num_pairs, 2); /* layers of one block have none */
    assert_int_equal(lr_lors_pair(lors, 1, 2), -1);
    assert_int_equal(lors->count, 6 * 6 + 6 * 4);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

/* Places around the ring are those of blocks, whatever their layers. */
static void rules_count_blocks(void **state)
{
    (void)state;
    for (int least = 0; least <= 4; least++) {
        struct test_log log;
        char text[512];
        snprintf(text, sizeof(text),
                 HEAD MODULE ", layers: [{depth_mm: 4}, {depth_mm: 8}]}\ncoincidence: "
                             "{min_module_difference: %d}\n",
                 least > 0 ? least : 1);
        if (least == 0) {
            snprintf(text, sizeof(text), HEAD MODULE ", layers: [{depth_mm: 4}, {depth_mm: 8}]}\n");
        }
        lr_scanner *scanner = read_text(text, &log);
        assert_non_null(scanner);
        lr_lors *lors = lr_lors_create(scanner, &log.log);
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
        lr_lors_destroy(lors);
        lr_scanner_destroy(scanner);
    }
}

/* --- there and back --- */

static void assert_same_module(const lr_module *a, const lr_module *b, double most)
{
    for (int k = 0; k < 3; k++) {
        assert_true(fabs(a->centre_mm[k] - b->centre_mm[k]) <= most);
        assert_true(fabs(a->u[k] - b->u[k]) <= most && fabs(a->v[k] - b->v[k]) <= most);
    }
    for (int k = 0; k < 2; k++) {
        assert_int_equal(a->crystals[k], b->crystals[k]);
        assert_true(fabs(a->pitch_mm[k] - b->pitch_mm[k]) <= most);
        assert_true(fabs(a->face_mm[k] - b->face_mm[k]) <= most);
    }
    assert_true(fabs(a->depth_mm - b->depth_mm) <= most);
    assert_int_equal(a->position, b->position);
    assert_int_equal(a->ring, b->ring);
    assert_int_equal(a->first_crystal_ring, b->first_crystal_ring);
    assert_int_equal(a->layer, b->layer);
    assert_int_equal(a->block, b->block);
}

static void assert_same_modules(const lr_scanner *a, const lr_scanner *b, double most)
{
    assert_int_equal(a->num_modules, b->num_modules);
    assert_int_equal(a->num_positions, b->num_positions);
    for (int m = 0; m < a->num_modules; m++) {
        assert_same_module(&a->modules[m], &b->modules[m], most);
    }
}

/* Written, read, and whether the file has the text. */
static lr_scanner *there_and_back(const lr_scanner *scanner, const char *name, const char *text)
{
    struct test_log log;
    struct test_folder folder;
    char path[128];
    test_log_init(&log);
    folder_init(&folder);
    folder_file(&folder, path, name);
    if (lr_scanner_write(path, scanner, &log.log) != LR_OK) {
        fail_msg("%s", log.error);
    }
    size_t bytes;
    char *written = (char *)bytes_read(path, &bytes);
    written[bytes] = '\0';
    if (text != NULL && strstr(written, text) == NULL) {
        fail_msg("no '%s' in\n%s", text, written);
    }
    free(written);
    lr_scanner *again = lr_scanner_read(path, &log.log);
    if (again == NULL) {
        fail_msg("%s", log.error);
    }
    folder_finish(&folder);
    return again;
}

/* Two rings of panels of blocks, with layers of other blocks. */
static lr_scanner *blocks_of_layers(void)
{
    static const int around[2] = {3, 4}, along[2] = {4, 5}, fewer[2] = {3, 4};
    const lr_layer layers[3] = {
        {.depth_mm = 2.5},
        {.depth_mm = 3, .block_crystals = {around, fewer}, .offset_mm = {0.25, -0.5}},
        {.depth_mm = 4, .front_mm = 7.5, .face_mm = {1.5, 1.25}}};
    const lr_ring ring = {.radius_mm = 50,
                          .modules = 7,
                          .first_angle_deg = 17,
                          .rings = 2,
                          .ring_pitch_mm = 31,
                          .blocks = {2, 2},
                          .block_crystals = {around, along},
                          .block_gap_mm = {0.75, 0.5},
                          .pitch_mm = {2, 1.75},
                          .face_mm = {1.75, 1.5},
                          .depth_mm = 12,
                          .layers = layers,
                          .num_layers = 3};
    struct test_log log;
    test_log_init(&log);
    return layered_checked(
        lr_scanner_create_ring(&(lr_scanner_params){.name = "blocks", .log = &log.log}, &ring),
        &log);
}

static void yaml_there_and_back(void **state)
{
    (void)state;
    lr_scanner *scanners[3] = {layered_ring(), blocks_of_layers(), layered_tilted()};
    static const char *const texts[3] = {"layers:\n    - {depth_mm: 5}\n    - {depth_mm: 7, "
                                         "front_mm: 6, crystals: [5, 3], pitch_mm: [4.6, 4.6]",
                                         "crystals: [[3, 4], [3, 4]], offset_mm: [0.25, -0.5]}",
                                         "layer: 1, block: 4"};
    for (int k = 0; k < 3; k++) {
        lr_scanner *again = there_and_back(scanners[k], "again.yaml", texts[k]);
        assert_same_modules(scanners[k], again, 1e-12);
        lr_scanner_destroy(again);
        lr_scanner_destroy(scanners[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_layers_are_refused), cmocka_unit_test(layers_are_modules),
        cmocka_unit_test(listed_modules_have_layers),    cmocka_unit_test(rules_count_blocks),
        cmocka_unit_test(yaml_there_and_back),
    };
    return cmocka_run_group_tests_name("scanner layers", tests, NULL, NULL);
}
