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
        {HEAD MODULE ",\n layers: [{front_mm: 4}]}\n", "layers.yaml:3:11: a layer lacks 'depth_mm'"},
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
        if (scanner != NULL || log.status != LR_BAD_INPUT || strstr(log.error, cases[k][1]) == NULL)
            fail_msg("for\n%s\nexpected '%s'\nfound '%s'", cases[k][0], cases[k][1], log.error);
    }
}

/* Whatever is cut off, there is a sentence or a scanner. */
static void truncated_layers_are_survived(void **state)
{
    (void)state;
    static const char text[] =
        HEAD MODULE ", layers: [{depth_mm: 4}, {depth_mm: 3, front_mm: 5, crystals: [5, [4]], pitch_mm: [2, "
                    "2], face_mm: [1, 1], offset_mm: [1, -0.5]}]}\n";
    for (size_t length = sizeof(HEAD) - 1; length < sizeof(text); length++) {
        struct test_log log;
        char cut[sizeof(text)];
        snprintf(cut, sizeof(cut), "%.*s", (int)length, text);
        lr_scanner *scanner = read_text(cut, &log);
        assert_true(scanner != NULL || (log.status == LR_BAD_INPUT && log.error[0] != '\0'));
        lr_scanner_destroy(scanner);
    }
}

static void assert_point(const double point[3], double x, double y, double z)
{
    assert_true(fabs(point[0] - x) < 1e-12 && fabs(point[1] - y) < 1e-12 && fabs(point[2] - z) < 1e-12);
}

/* A module a layer, front to back, each behind the one before unless it says where. */
static void layers_are_modules(void **state)
{
    (void)state;
    struct test_log log;
    lr_scanner *scanner =
        read_text(HEAD MODULE ", layers: [{depth_mm: 4}, {depth_mm: 3, crystals: [5, 4], offset_mm: [1, "
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
        assert_point(module->centre_mm, r * cos(a) - off * sin(a), r * sin(a) + off * cos(a), -0.5 * off);
    }
    lr_scanner_destroy(scanner);
}

/* The same in the list form, with a plain module beside. */
static void listed_modules_have_layers(void **state)
{
    (void)state;
    struct test_log log;
    lr_scanner *scanner =
        read_text("modules:\n"
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
        if (least == 0) snprintf(text, sizeof(text), HEAD MODULE ", layers: [{depth_mm: 4}, {depth_mm: 8}]}\n");
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
    assert_true(fabs(a->mu_per_mm - b->mu_per_mm) <= most);
}

static void assert_same_modules(const lr_scanner *a, const lr_scanner *b, double most)
{
    assert_int_equal(a->num_modules, b->num_modules);
    assert_int_equal(a->num_positions, b->num_positions);
    for (int m = 0; m < a->num_modules; m++) assert_same_module(&a->modules[m], &b->modules[m], most);
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
    if (lr_scanner_write(path, scanner, &log.log) != LR_OK) fail_msg("%s", log.error);
    size_t bytes;
    char *written = (char *)bytes_read(path, &bytes);
    written[bytes] = '\0';
    if (text != NULL && strstr(written, text) == NULL) fail_msg("no '%s' in\n%s", text, written);
    free(written);
    lr_scanner *again = lr_scanner_read(path, &log.log);
    if (again == NULL) fail_msg("%s", log.error);
    folder_finish(&folder);
    return again;
}

/* Layers may be of other materials than the scanner. */
static void layers_have_materials(void **state)
{
    (void)state;
    struct test_log log;
    lr_scanner *scanner = read_text(HEAD MODULE ", layers: [{depth_mm: 4, crystal_material: lyso}, {depth_mm: 3, "
                                                "crystal_mu_per_mm: 0.07}, {depth_mm: 4}]}\ncrystal_material: BGO\n",
                                    &log);
    assert_non_null(scanner);
    lr_scanner *again = there_and_back(scanner, "again.yaml", NULL);
    assert_same_modules(scanner, again, 1e-12);
    assert_true(fabs(again->crystal_mu_per_mm - 0.0963) < 1e-4);
    lr_scanner_destroy(again);
    static const double wanted[3] = {0.0818, 0.07, 0};
    for (int m = 0; m < scanner->num_modules; m++)
        assert_true(fabs(scanner->modules[m].mu_per_mm - wanted[m % 3]) < 1e-4);
    lr_scanner_destroy(scanner);
    scanner = read_text(HEAD MODULE ", layers: [{depth_mm: 4, crystal_material: lead}]}\n", &log);
    assert_null(scanner);
    assert_non_null(strstr(log.error, "LSO, LYSO, BGO, GSO or LaBr3"));
    scanner = read_text(HEAD MODULE "}\ncrystal_material: LSO\ncrystal_mu_per_mm: 0.08\n", &log);
    assert_null(scanner);
    assert_non_null(strstr(log.error, "keep one of the two"));
}

/* Two rings of panels of blocks, with layers of other blocks. */
static lr_scanner *blocks_of_layers(void)
{
    static const int around[2] = {3, 4}, along[2] = {4, 5}, fewer[2] = {3, 4};
    const lr_layer layers[3] = {{.depth_mm = 2.5},
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
    return layered_checked(lr_scanner_create_ring(&(lr_scanner_params){.name = "blocks", .log = &log.log}, &ring),
                           &log);
}

static void yaml_there_and_back(void **state)
{
    (void)state;
    lr_scanner *scanners[3] = {layered_ring(), blocks_of_layers(), layered_tilted()};
    static const char *const texts[3] = {
        "layers:\n    - {depth_mm: 5}\n    - {depth_mm: 7, front_mm: 6, crystals: [5, 3]",
        "crystals: [[3, 4], [3, 4]], offset_mm: [0.25, -0.5]}", "layer: 1, block: 4"};
    for (int k = 0; k < 3; k++) {
        lr_scanner *again = there_and_back(scanners[k], "again.yaml", texts[k]);
        assert_same_modules(scanners[k], again, 1e-12);
        lr_scanner_destroy(again);
        lr_scanner_destroy(scanners[k]);
    }
}

/* Centred layers of the same crystals everywhere, as .geom can have them. */
static lr_scanner *centred_layers(void)
{
    static const int around[2] = {3, 3}, along[2] = {4, 4}, fewer_around[2] = {2, 2}, fewer[2] = {3, 3};
    const lr_layer layers[2] = {{.depth_mm = 5},
                                {.depth_mm = 4,
                                 .front_mm = 6.5,
                                 .block_crystals = {fewer_around, fewer},
                                 .pitch_mm = {2.5, 2.25},
                                 .face_mm = {2.25, 2}}};
    const lr_ring ring = {.radius_mm = 50,
                          .modules = 7,
                          .first_angle_deg = 90,
                          .rings = 2,
                          .ring_pitch_mm = 31,
                          .blocks = {2, 2},
                          .block_crystals = {around, along},
                          .block_gap_mm = {0.75, 0.5},
                          .pitch_mm = {2, 1.75},
                          .face_mm = {1.75, 1.5},
                          .depth_mm = 12,
                          .layers = layers,
                          .num_layers = 2};
    struct test_log log;
    test_log_init(&log);
    return layered_checked(lr_scanner_create_ring(&(lr_scanner_params){.name = "centred",
                                                                       .detection_depth_mm = 1.5,
                                                                       .coincidence.min_module_difference = 2,
                                                                       .log = &log.log},
                                                  &ring),
                           &log);
}

static const lr_module *crystal_place(const lr_scanner *scanner, int crystal, double centre_mm[3])
{
    const int m = lr_scanner_module_of(scanner, crystal);
    const lr_module *module = &scanner->modules[m];
    const int within = crystal - scanner->first_crystal[m];
    lr_module_crystal_centre(module, within % module->crystals[0], within / module->crystals[0], centre_mm);
    return module;
}

/* Every crystal of one scanner is one of the other, in a module of its layer; blocks are alike. */
static void assert_same_crystals(const lr_scanner *a, const lr_scanner *b, double most_mm)
{
    int *block_of = calloc((size_t)a->num_modules + 1, sizeof(int));
    assert_non_null(block_of);
    assert_int_equal(a->num_crystals, b->num_crystals);
    assert_int_equal(a->num_modules, b->num_modules);
    for (int c = 0; c < a->num_crystals; c++) {
        const lr_module *one = &a->modules[lr_scanner_module_of(a, c)];
        double centre[3], nearest = INFINITY;
        const lr_module *found = NULL;
        crystal_place(a, c, centre);
        for (int other = 0; other < b->num_crystals; other++) {
            double there[3];
            crystal_place(b, other, there);
            const double off = hypot(hypot(there[0] - centre[0], there[1] - centre[1]), there[2] - centre[2]);
            if (off < nearest) {
                nearest = off;
                found = &b->modules[lr_scanner_module_of(b, other)];
            }
        }
        assert_true(nearest <= most_mm);
        assert_int_equal(one->layer, found->layer);
        assert_true(fabs(one->depth_mm - found->depth_mm) <= most_mm);
        assert_true(one->block >= 0 && one->block <= a->num_modules);
        assert_true(block_of[one->block] == 0 || block_of[one->block] == found->block);
        block_of[one->block] = found->block;
    }
    free(block_of);
}

static void castor_there_and_back(void **state)
{
    (void)state;
    lr_scanner *scanner = centred_layers();
    lr_scanner *again = there_and_back(scanner, "again.geom", "crystals size depth               : 5,4\n");
    assert_same_modules(scanner, again, 1e-6);
    lr_scanner_destroy(again);
    again = there_and_back(scanner, "again.hscan", "number of crystals in layer(s): 672,336\n");
    assert_same_modules(scanner, again, 2e-5); /* float32 */
    assert_int_equal(again->coincidence.min_module_difference, 2);
    lr_scanner_destroy(again);
    lr_scanner_destroy(scanner);
    scanner = layered_ring();
    again = there_and_back(scanner, "again.hscan", "number of layers              : 2\n");
    assert_int_equal(again->num_positions, 8);
    assert_same_crystals(scanner, again, 2e-5);
    lr_scanner_destroy(again);
    lr_scanner_destroy(scanner);
}

/* Depths of interaction that differ by layer cannot be kept. */
static void castor_depths_differ(void **state)
{
    (void)state;
    static const char text[] = "modality: PET\nscanner name: two\nnumber of elements: 128\nnumber of layers: 2\n"
                               "scanner radius: 30,38\nnumber of rsectors: 8\nnumber of crystals transaxial: 4\n"
                               "number of crystals axial: 2\ncrystals size depth: 7,8\ncrystals size transaxial: 4\n"
                               "crystals size axial: 2\nmean depth of interaction: 2.5,3\n"
                               "field of view axial: 10\n";
    struct test_log log;
    struct test_folder folder;
    char path[128];
    test_log_init(&log);
    folder_init(&folder);
    folder_file(&folder, path, "two.geom");
    bytes_write(path, text, strlen(text));
    lr_scanner *scanner = lr_scanner_read(path, &log.log);
    if (scanner == NULL) fail_msg("%s", log.error);
    assert_non_null(strstr(log.warning, "hits are read 2.5 mm behind the front faces of all layers"));
    assert_true(scanner->detection_depth_mm == 2.5);
    for (int m = 0; m < scanner->num_modules; m++) {
        assert_int_equal(scanner->modules[m].layer, m % 2);
        assert_int_equal(scanner->modules[m].block, m / 2 + 1);
        assert_int_equal(scanner->modules[m].position, m / 2);
    }
    lr_scanner_destroy(scanner);
    folder_finish(&folder);
}

/* --- other lists of crystals --- */

/* STIR's map, with the layer behind numbered 1 and the one in front 2. */
static void maps_have_layers(void **state)
{
    (void)state;
    struct test_log log;
    struct test_folder folder;
    char path[128];
    test_log_init(&log);
    folder_init(&folder);
    folder_file(&folder, path, "map.txt");
    static const int nu = 4, nv = 3;
    const lr_layer layers[2] = {{.depth_mm = 6}, {.depth_mm = 6}};
    const lr_ring ring = {.radius_mm = 40,
                          .modules = 8,
                          .block_crystals = {&nu, &nv},
                          .pitch_mm = {3, 3.5},
                          .face_mm = {3, 3.5},
                          .depth_mm = 12,
                          .layers = layers,
                          .num_layers = 2};
    lr_scanner *scanner = layered_checked(lr_scanner_create_ring(&(lr_scanner_params){.log = &log.log}, &ring), &log);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "# depth_mm: 6\n");
    for (int c = 0; c < scanner->num_crystals; c++) {
        double centre[3];
        const lr_module *module = crystal_place(scanner, c, centre);
        const int within = c % (nu * nv);
        fprintf(file, "%d %d %d %.6f %.6f %.6f\n", within / nu, module->position * nu + within % nu, 2 - module->layer,
                centre[0], centre[1], centre[2]);
    }
    fclose(file);
    lr_scanner *again = lr_scanner_read(path, &log.log);
    if (again == NULL) fail_msg("%s", log.error);
    assert_int_equal(again->num_positions, 8);
    assert_same_modules(scanner, again, 1e-5);
    lr_scanner_destroy(again);
    lr_scanner_destroy(scanner);
    folder_finish(&folder);
}

/* Nothing but places: modules behind others become their layers, inserts do not. */
static void layers_are_found(void **state)
{
    (void)state;
    struct test_log log;
    test_log_init(&log);
    for (int far = 0; far < 2; far++) {
        lr_crystal crystals[2 * 2 * 6];
        int count = 0, crystal_of[2 * 2 * 6];
        for (int side = -1; side <= 1; side += 2) {
            for (int n = 0; n < 12; n++) {
                const double y = 40 + (n < 6 ? 3 : far ? 15 : 9);
                crystals[count++] = (lr_crystal){.centre_mm = {2.5 * (n % 3 - 1), side * y, 3 * (n / 3 % 2)},
                                                 .axes = {{1, 0, 0}, {0, 0, 1}, {0, 1, 0}},
                                                 .size_mm = {2.5, 3, 5},
                                                 .group = side};
            }
        }
        lr_scanner *scanner = lr_scanner_from_crystals(
            &(lr_crystal_list){.crystals = crystals, .num_crystals = count, .finds_layers = true, .log = &log.log},
            crystal_of, NULL);
        if (scanner == NULL) fail_msg("%s", log.error);
        assert_int_equal(scanner->num_modules, 4);
        for (int c = 0; c < count; c++) {
            double centre[3];
            const lr_module *module = crystal_place(scanner, crystal_of[c], centre);
            assert_int_equal(module->layer, far ? 0 : c / 6 % 2);
            assert_int_equal(module->block, far ? 0 : c / 12 + 1);
            for (int k = 0; k < 3; k++) assert_true(fabs(centre[k] - crystals[c].centre_mm[k]) < 1e-9);
        }
        lr_scanner_destroy(scanner);
    }
}

/* Data files keep layers of their scanner, and tell scanners apart by them. */
static void hdf5_keeps_layers(void **state)
{
    (void)state;
    struct test_log log;
    struct test_folder folder;
    char path[128];
    test_log_init(&log);
    folder_init(&folder);
    folder_file(&folder, path, "data.h5");
    lr_scanner *scanner = layered_tilted();
    scanner->modules[3].mu_per_mm = 0.07;
    lr_lors *lors = lr_lors_create(scanner, &log.log);
    lr_lor_data *data = lr_lor_data_create(lors, &log.log);
    assert_int_equal(lr_lor_data_write(path, lors, data, &log.log), LR_OK);
    lr_scanner *again = lr_scanner_read_hdf5(path, &log.log);
    if (again == NULL) fail_msg("%s", log.error);
    assert_same_modules(scanner, again, 0);
    bool keep[256];
    memset(keep, true, sizeof(keep));
    struct layered_rest rest = layered_keep(scanner, keep);
    lr_lors *flat = lr_lors_create(rest.scanner, &log.log);
    assert_null(lr_lor_data_read(path, flat, &log.log));
    assert_non_null(strstr(log.error, "has no blocks of layers, and the file's has"));
    lr_lors_destroy(flat);
    layered_rest_finish(&rest);
    lr_scanner_destroy(again);
    lr_lor_data_destroy(data);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    folder_finish(&folder);
}

/* --- events --- */

static lr_scanner *read_scanner(const char *path)
{
    struct test_log log;
    test_log_init(&log);
    lr_scanner *scanner = lr_scanner_read(path, &log.log);
    if (scanner == NULL || log.num_warnings > 0) fail_msg("%s%s", log.error, log.warning);
    return scanner;
}

static void write_events(const char *path, const lr_lors *lors, const lr_event *events, int count)
{
    struct test_log log;
    test_log_init(&log);
    const lr_events_info info = {.duration_s = 1};
    lr_events_writer *writer =
        lr_events_writer_create(&(lr_events_writer_params){.path = path, .lors = lors, .info = &info, .log = &log.log});
    if (writer == NULL) fail_msg("%s", log.error);
    const lr_event_sink sink = lr_events_writer_sink(writer);
    assert_int_equal(sink.take(sink.user, events, count), LR_OK);
    if (lr_events_writer_finish(writer) != LR_OK) fail_msg("%s", log.error);
}

/* Crystals of two scanners at one place, in the same layer. */
static bool is_same_crystal(const lr_scanner *a, int in_a, const lr_scanner *b, int in_b)
{
    double x[3], y[3];
    const lr_module *one = crystal_place(a, in_a, x), *other = crystal_place(b, in_b, y);
    return hypot(hypot(x[0] - y[0], x[1] - y[1]), x[2] - y[2]) < 1e-3 && one->layer == other->layer;
}

static bool is_same_event(const lr_scanner *a, const lr_event *in_a, const lr_scanner *b, const lr_event *in_b)
{
    return (is_same_crystal(a, in_a->crystals[0], b, in_b->crystals[0]) &&
            is_same_crystal(a, in_a->crystals[1], b, in_b->crystals[1])) ||
           (is_same_crystal(a, in_a->crystals[0], b, in_b->crystals[1]) &&
            is_same_crystal(a, in_a->crystals[1], b, in_b->crystals[0]));
}

enum { NUM_EVENTS = 200 };

static void draw_events(const lr_lors *lors, lr_event *events)
{
    uint64_t seed = test_seed();
    for (int k = 0; k < NUM_EVENTS; k++) {
        int64_t lor;
        do {
            lor = (int64_t)(test_random(&seed) * (double)lors->count);
        } while (!lr_lors_in_coincidence(lors, lor));
        events[k] = (lr_event){.weight = 1, .time_ms = (uint32_t)k};
        lr_lors_crystals(lors, lor, events[k].crystals);
    }
}

/* Written for one scanner, read for it and for the one that the file brings. */
static void check_events(lr_scanner *scanner, const char *name, const char *scanner_name)
{
    struct test_log log;
    struct test_folder folder;
    char path[128], scanner_path[128];
    lr_event events[NUM_EVENTS];
    test_log_init(&log);
    folder_init(&folder);
    folder_file(&folder, path, name);
    folder_file(&folder, scanner_path, scanner_name);
    lr_lors *lors = lr_lors_create(scanner, &log.log);
    draw_events(lors, events);
    write_events(path, lors, events, NUM_EVENTS);
    if (strcmp(name, scanner_name) != 0) assert_int_equal(lr_scanner_write(scanner_path, scanner, &log.log), LR_OK);
    lr_scanner *brought = read_scanner(scanner_path);
    assert_int_equal(brought->num_positions, scanner->num_positions);
    assert_int_equal(brought->coincidence.min_module_difference, scanner->coincidence.min_module_difference);
    assert_same_crystals(scanner, brought, 1e-3);
    for (int own = 0; own < 2; own++) {
        const lr_scanner *with = own ? scanner : brought;
        const lr_events_source source = {.path = path, .scanner = with, .log = &log.log};
        lr_event_list *list = lr_event_list_read(&source);
        if (list == NULL) fail_msg("%s", log.error);
        assert_int_equal(list->count, NUM_EVENTS);
        for (int k = 0; k < NUM_EVENTS; k++) assert_true(is_same_event(scanner, &events[k], with, &list->events[k]));
        lr_event_list_destroy(list);
    }
    lr_scanner_destroy(brought);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    folder_finish(&folder);
}

static void events_find_their_layer(void **state)
{
    (void)state;
    check_events(layered_ring(), "a.petsird", "a.petsird");
    check_events(centred_layers(), "a.petsird", "a.petsird");
    check_events(centred_layers(), "a.Cdh", "a.geom");
    check_events(centred_layers(), "a.Cdh", "a.hscan");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_layers_are_refused),
        cmocka_unit_test(truncated_layers_are_survived),
        cmocka_unit_test(layers_are_modules),
        cmocka_unit_test(layers_have_materials),
        cmocka_unit_test(listed_modules_have_layers),
        cmocka_unit_test(rules_count_blocks),
        cmocka_unit_test(yaml_there_and_back),
        cmocka_unit_test(castor_there_and_back),
        cmocka_unit_test(castor_depths_differ),
        cmocka_unit_test(maps_have_layers),
        cmocka_unit_test(layers_are_found),
        cmocka_unit_test(hdf5_keeps_layers),
        cmocka_unit_test(events_find_their_layer),
    };
    return cmocka_run_group_tests_name("scanner layers", tests, NULL, NULL);
}
