/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanners are divided into crystals and put together again; lists of crystals that form no scanner are refused. */
#include "cases.h"

#include <time.h>

/* Facts that a list gives about its crystals besides their centres. */
enum knowledge { CENTRES, DEPTH_AXES, EVERYTHING };

struct exploded {
    lr_crystal *crystals; /* [count] */
    int count;
};

static void fill_crystal(const lr_module *module, int cell, enum knowledge knowledge, lr_crystal *crystal)
{
    *crystal = (lr_crystal){.group = -1};
    lr_module_crystal_centre(module, cell % module->crystals[0], cell / module->crystals[0], crystal->centre_mm);
    for (int k = 0; k < 3; k++) {
        const double sign = cell % 2 ? -1 : 1; /* signs have no meaning */
        crystal->axes[2][k] = knowledge >= DEPTH_AXES ? sign * module->normal[k] : 0;
        crystal->axes[0][k] = knowledge == EVERYTHING ? sign * module->u[k] : 0;
        crystal->axes[1][k] = knowledge == EVERYTHING ? -module->v[k] : 0;
    }
    if (knowledge == EVERYTHING) {
        crystal->size_mm[0] = module->face_mm[0];
        crystal->size_mm[1] = module->face_mm[1];
        crystal->size_mm[2] = module->depth_mm;
    }
}

static struct exploded explode(const lr_scanner *scanner, enum knowledge knowledge)
{
    struct exploded exploded = {kept(scanner->num_crystals, sizeof(lr_crystal)), 0};
    for (int m = 0; m < scanner->num_modules; m++)
        for (int cell = 0; cell < scanner->modules[m].crystals[0] * scanner->modules[m].crystals[1]; cell++)
            fill_crystal(&scanner->modules[m], cell, knowledge, &exploded.crystals[exploded.count++]);
    return exploded;
}

static void shuffle(struct exploded *exploded, uint64_t *state)
{
    for (int k = exploded->count - 1; k > 0; k--) {
        const int other = (int)(test_random(state) * (k + 1));
        const lr_crystal kept = exploded->crystals[k];
        exploded->crystals[k] = exploded->crystals[other];
        exploded->crystals[other] = kept;
    }
}

static lr_crystal_list list_of(const struct exploded *exploded, const lr_scanner *scanner)
{
    return filled(lr_crystal_list, .crystals = exploded->crystals, .num_crystals = exploded->count,
                  .name = scanner->name, .face_mm = {scanner->modules[0].face_mm[0], scanner->modules[0].face_mm[1]},
                  .depth_mm = scanner->modules[0].depth_mm, .coincidence = scanner->coincidence,
                  .detection_depth_mm = scanner->detection_depth_mm);
}

/* Makes the scanner of these crystals; fails the test if this is not possible. */
static lr_scanner *assemble(lr_crystal_list list, int *crystal_of, double *residual_mm)
{
    return keep(lr_scanner_from_crystals(&list, crystal_of, residual_mm));
}

/* Checks that these crystals are refused, with a message that contains these words. Returns the largest deviation. */
static double assert_no_scanner(lr_crystal_list list, const char *words)
{
    struct test_log log = TEST_LOG(log);
    double residual_mm = 0;
    list.log = &log.log;
    assert_null(lr_scanner_from_crystals(&list, NULL, &residual_mm));
    assert_error(&log, LR_BAD_INPUT, words);
    return residual_mm;
}

static double distance(const double a[3], const double b[3])
{
    return sqrt(pow(a[0] - b[0], 2) + pow(a[1] - b[1], 2) + pow(a[2] - b[2], 2));
}

static int find_module(const lr_scanner *scanner, const double centre_mm[3])
{
    int nearest = 0;
    for (int m = 1; m < scanner->num_modules; m++)
        if (distance(scanner->modules[m].centre_mm, centre_mm) <
            distance(scanner->modules[nearest].centre_mm, centre_mm))
            nearest = m;
    return nearest;
}

/* In rings u points towards larger angles; elsewhere its sign is not fixed. */
static void assert_same_module(const lr_module *a, const lr_module *b, double most_mm)
{
    const double minus_u[3] = {-b->u[0], -b->u[1], -b->u[2]};
    assert_true(distance(a->u, b->u) <= most_mm || distance(a->u, minus_u) <= most_mm);
    assert_true(distance(a->centre_mm, b->centre_mm) <= most_mm && distance(a->v, b->v) <= most_mm);
    assert_true(fabs(a->depth_mm - b->depth_mm) <= most_mm);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(a->crystals[k], b->crystals[k]);
        assert_all(fabs(a->pitch_mm[k] - b->pitch_mm[k]) <= most_mm, fabs(a->face_mm[k] - b->face_mm[k]) <= most_mm);
    }
    assert_true(a->ring == b->ring && a->first_crystal_ring == b->first_crystal_ring);
}

/* Checks that the modules are the same; in a ring, numbering may begin at another module. */
static void assert_same_scanner(const lr_scanner *scanner, const lr_scanner *rebuilt, double most_mm)
{
    assert_ints(scanner->num_modules, rebuilt->num_modules, scanner->num_positions, rebuilt->num_positions);
    int turn = -1;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *was = &scanner->modules[m];
        const lr_module *is = &rebuilt->modules[find_module(rebuilt, was->centre_mm)];
        assert_same_module(was, is, most_mm);
        if (scanner->num_positions > 0) {
            const int n = scanner->num_positions;
            turn = turn < 0 ? (is->position - was->position + n) % n : turn;
            assert_true(distance(was->u, is->u) <= most_mm);
            assert_int_equal(is->position, (was->position + turn) % n);
        }
    }
}

static void assert_crystals_are_there(const struct exploded *exploded, const lr_scanner *rebuilt, const int *crystal_of,
                                      double most_mm)
{
    char *taken = kept(exploded->count, 1);
    for (int c = 0; c < exploded->count; c++) {
        const int m = lr_scanner_module_of(rebuilt, crystal_of[c]);
        const int cell = crystal_of[c] - rebuilt->first_crystal[m], nu = rebuilt->modules[m].crystals[0];
        double centre[3];
        lr_module_crystal_centre(&rebuilt->modules[m], cell % nu, cell / nu, centre);
        assert_all(distance(centre, exploded->crystals[c].centre_mm) <= most_mm, !taken[crystal_of[c]]);
        taken[crystal_of[c]] = 1;
    }
}

static void rebuild(const lr_scanner *scanner, struct exploded *exploded)
{
    int *crystal_of = kept(exploded->count, sizeof(int));
    double residual_mm = -1;
    lr_scanner *rebuilt = assemble(list_of(exploded, scanner), crystal_of, &residual_mm);
    assert_true(residual_mm >= 0 && residual_mm < 1e-8);
    assert_same_scanner(scanner, rebuilt, 1e-7);
    assert_crystals_are_there(exploded, rebuilt, crystal_of, 1e-7);
}

/* Total-body scanners take as long as all others together: they are tested once, except with LORASTER_FULL. */
static bool is_long(const lr_scanner *scanner)
{
    return scanner->num_crystals > 100000 && !test_is_full();
}

static void presets_come_back(void **state)
{
    uint64_t seed = test_seed();
    int number = 0;
    for (const char *const *name = lr_scanner_presets(); *name != NULL; name++) {
        destroy_kept_since(0);
        lr_scanner *scanner = keep(lr_scanner_read(*name, NULL));
        number++;
        for (int knowledge = CENTRES; knowledge <= EVERYTHING; knowledge++) {
            /* Usually each preset is tested with another knowledge, and long ones with the centres. */
            if (!test_is_full() && knowledge != (is_long(scanner) ? CENTRES : number % 3)) continue;
            struct exploded exploded = explode(scanner, knowledge);
            shuffle(&exploded, &seed);
            const clock_t start = clock();
            rebuild(scanner, &exploded);
            print_message("%s, %d crystals: %.2f s\n", *name, exploded.count,
                          (double)(clock() - start) / CLOCKS_PER_SEC);
        }
    }
}

/* The list has the order of the scanner's numbers, so every crystal keeps its number. */
static void numbers_are_kept(void **state)
{
    for (const char *const *name = lr_scanner_presets(); *name != NULL; name++) {
        destroy_kept_since(0);
        lr_scanner *scanner = keep(lr_scanner_read(*name, NULL));
        if (!is_long(scanner)) {
            struct exploded exploded = explode(scanner, CENTRES);
            int *crystal_of = kept(exploded.count, sizeof(int));
            assemble(list_of(&exploded, scanner), crystal_of, NULL);
            for (int c = 0; c < exploded.count; c++) assert_true(crystal_of[c] == c || scanner->num_positions == 0);
        }
    }
}

/* Modules without any symmetry between them: tilted, of different sizes and depths, in groups. */
static void unequal_modules_come_back(void **state)
{
    uint64_t seed = test_seed();
    /* centre, u, v; then crystals, pitch, face and depth */
    lr_module modules[3] = {{{61, 3, -4}, {0, 1, 0}, {0, 0, 1}, .crystals = {5, 3}, {2, 3}, {1.8, 2.5}, 9},
                            {{-40, 31, 7}, {-0.6, -0.8, 0}, {0, 0, 1}, .crystals = {4, 7}, {2.2, 1.7}, {2.2, 1.7}, 12},
                            {{-11, -53, 12}, {1, 0, 0}, {0, -0.28, 0.96}, .crystals = {1, 6}, {3, 2}, {3, 1.9}, 7}};
    lr_scanner *scanner = keep(lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = 3}));
    struct exploded exploded = explode(scanner, EVERYTHING);
    rebuild(scanner, &exploded);
    for (int c = 0; c < exploded.count; c++) exploded.crystals[c].group = lr_scanner_module_of(scanner, c);
    shuffle(&exploded, &seed);
    rebuild(scanner, &exploded);
}

/* Two halves that touch would form one module; different groups keep them apart. */
static void groups_never_share_a_module(void **state)
{
    lr_scanner *scanner = keep(lr_scanner_read("two-opposed-modules", NULL));
    struct exploded exploded = explode(scanner, EVERYTHING);
    for (int c = 0; c < exploded.count; c++) {
        exploded.crystals[c].group = exploded.crystals[c].centre_mm[0] > 8;
        exploded.crystals[c].size_mm[0] = 4.3;
    }
    double residual_mm;
    lr_scanner *rebuilt = assemble(list_of(&exploded, scanner), NULL, &residual_mm);
    assert_int_equal(rebuilt->num_modules, 4);
    assert_true(residual_mm < 1e-6);
}

/* Measured positions: the deviation is reported, and the list is refused if it is too large. */
static void noise_is_a_residual(void **state)
{
    uint64_t seed = test_seed();
    for (int is_refused = 0; is_refused < 2; is_refused++) {
        const double noise_mm = is_refused ? 0.05 : 0.02;
        lr_scanner *scanner = keep(lr_scanner_read("ge-explore-vista-dr", NULL));
        struct exploded exploded = explode(scanner, CENTRES);
        for (int c = 0; c < 3 * exploded.count; c++)
            exploded.crystals[c / 3].centre_mm[c % 3] += noise_mm * (2 * test_random(&seed) - 1);
        const lr_crystal_list list = list_of(&exploded, scanner);
        double residual_mm;
        if (is_refused)
            residual_mm = assert_no_scanner(list, "off the flat panel that fits best");
        else
            assert_same_scanner(scanner, assemble(list, NULL, &residual_mm), 2 * noise_mm);
        assert_true(residual_mm > noise_mm && residual_mm < (is_refused ? 2.0 : 2.5) * noise_mm);
    }
}

/* An arc of 20 columns of 6 crystals, 4 mm apart on a radius of 330 mm, and its opposite. */
static struct exploded curved(double radius_mm)
{
    struct exploded exploded = {kept(240, sizeof(lr_crystal)), 0};
    for (; exploded.count < 240; exploded.count++) {
        const int q = exploded.count % 6, p = exploded.count / 6 % 20, side = exploded.count / 120;
        const double angle = side * 3.14159265358979 + (p - 9.5) * 4 / radius_mm;
        exploded.crystals[exploded.count] =
            (lr_crystal){.centre_mm = {radius_mm * cos(angle), radius_mm * sin(angle), 4 * q}, .group = -1};
    }
    return exploded;
}

static void curved_panels_are_refused(void **state)
{
    for (int k = 0; k < 3; k++) {
        const double radius_mm = (double[]){330, 80, 60}[k];
        struct exploded exploded = curved(radius_mm);
        const double residual_mm = assert_no_scanner(
            (lr_crystal_list){.crystals = exploded.crystals, .num_crystals = exploded.count, .depth_mm = 20}, "curved");
        /* The ends of an arc are 2/3 of the sagitta off its mean plane. */
        const double half = 9.5 * 4 / radius_mm, sagitta = radius_mm * (1 - cos(half));
        assert_close(residual_mm, sagitta * 2 / 3, 0.12);
    }
}

/* The same curved panel, but with the depth axis of each column: it becomes flat modules one column wide. */
static void known_axes_part_a_curved_panel(void **state)
{
    struct exploded exploded = curved(330);
    for (int c = 0; c < exploded.count; c++) {
        lr_crystal *crystal = &exploded.crystals[c];
        const double r = hypot(crystal->centre_mm[0], crystal->centre_mm[1]);
        for (int k = 0; k < 2; k++) crystal->axes[2][k] = -crystal->centre_mm[k] / r;
    }
    const lr_crystal_list list = {exploded.crystals, exploded.count, .depth_mm = 20, .face_mm = {3.7, 3.8}};
    lr_scanner *scanner = assemble(list, NULL, NULL);
    assert_ints(scanner->num_modules, 40, scanner->modules[0].crystals[1], 6);
    assert_close(scanner->modules[0].face_mm[0], 3.7, 1e-9);
}

static void faults_are_named(void **state)
{
    static const char *const expected[] = {"do not fill a grid",      "crystals 7 and 9 have the same centre",
                                           "the centre of crystal 3", "within 1 km",
                                           "give their depth",        "crystals of a panel must be alike",
                                           "turned by 53.1 degrees",  "a coincidence needs two"};
    lr_scanner *scanner = keep(lr_scanner_read("two-opposed-modules", NULL));
    for (int fault = 0; fault < 8; fault++) {
        struct exploded exploded = explode(scanner, CENTRES);
        lr_crystal_list list = list_of(&exploded, scanner);
        lr_crystal *crystals = exploded.crystals;
        switch (fault) {
        case 0: crystals[100] = crystals[--list.num_crystals]; break;
        case 1: crystals[7] = crystals[9]; break;
        case 2: crystals[3].centre_mm[1] = NAN; break;
        case 3: crystals[3].centre_mm[1] = 1e30; break;
        case 4: list.depth_mm = 0; break;
        case 5: crystals[30].size_mm[0] = 1.1; break;
        case 6:
            for (int c = 0; c < list.num_crystals; c++)
                memcpy(crystals[c].axes, (double[2][3]){{0.6, 0, 0.8}, {-0.8, 0, 0.6}}, sizeof(double[2][3]));
            break;
        default: list.num_crystals = 0; break;
        }
        assert_no_scanner(list, expected[fault]);
    }
}

/* The published map has only centres, with four decimals, and counts detectors in the opposite direction. */
static void safir_map_is_the_preset(void **state)
{
    char path[1024];
    if (test_data(path, "safir/DualRingPrototype_crystal_map.txt") == NULL) skip();
    struct exploded exploded = {kept(2880, sizeof(lr_crystal)), 0};
    FILE *file = fopen(path, "r");
    char line[256];
    while (fgets(line, sizeof(line), file) != NULL) {
        double at[3];
        if (sscanf(line, "%*d %*d %*d %lf %lf %lf", &at[0], &at[1], &at[2]) == 3) {
            assert_true(exploded.count < 2880);
            exploded.crystals[exploded.count++] = (lr_crystal){.centre_mm = {at[0], at[1], at[2]}, .group = -1};
        }
    }
    fclose(file);
    assert_int_equal(exploded.count, 2880);
    lr_scanner *preset = keep(lr_scanner_read("safir-dual-ring-prototype", NULL));
    double residual_mm;
    int *crystal_of = kept(2880, sizeof(int));
    lr_scanner *scanner = assemble(list_of(&exploded, preset), crystal_of, &residual_mm);
    print_message("residual %.3g mm\n", residual_mm);
    assert_true(residual_mm < 0.01);
    assert_same_scanner(preset, scanner, 1e-12);
    assert_crystals_are_there(&exploded, scanner, crystal_of, 1e-4);
    for (int m = 0; m < 48; m++) {
        assert_same_module(&preset->modules[m], &scanner->modules[m], 1e-12);
        assert_int_equal(preset->modules[m].position, scanner->modules[m].position);
    }
}

/* A crystal from the corners of its box in the order of PETSIRD's helper functions: the inner face, then the outer
 * face. */
static lr_crystal box_crystal(double corners[8][3], int group)
{
    static const int ends[3] = {3, 1, 4}; /* corners that follow corner 0 along u, v and depth */
    lr_crystal crystal = {.group = group};
    for (int k = 0; k < 3; k++) {
        crystal.size_mm[k] = distance(corners[0], corners[ends[k]]);
        for (int a = 0; a < 3; a++) crystal.axes[k][a] = (corners[ends[k]][a] - corners[0][a]) / crystal.size_mm[k];
    }
    for (int c = 0; c < 8; c++)
        for (int a = 0; a < 3; a++) crystal.centre_mm[a] += corners[c][a] / 8;
    return crystal;
}

/* The scanner of the official generator: two rings of 8 modules of 4 x 4 touching crystals, with 5 decimals. */
static void petsird_boxes(void **state)
{
    char path[1024], line[1024];
    if (test_data(path, "petsird/small_cpp_v0.9.1.corners.txt") == NULL) skip();
    lr_crystal crystals[256];
    int count = 0;
    FILE *file = fopen(path, "r");
    while (fgets(line, sizeof(line), file) != NULL && count < 256) {
        double corners[8][3];
        char *at = line;
        if (line[0] == '#') continue;
        strtol(at, &at, 10);
        const int module = (int)strtol(at, &at, 10);
        strtol(at, &at, 10);
        for (int k = 0; k < 24; k++) corners[k / 3][k % 3] = strtod(at, &at);
        crystals[count++] = box_crystal(corners, module);
    }
    fclose(file);
    assert_int_equal(count, 256);
    int crystal_of[256];
    double residual_mm;
    lr_scanner *scanner =
        assemble((lr_crystal_list){.crystals = crystals, .num_crystals = 256}, crystal_of, &residual_mm);
    print_message("residual %.3g mm\n", residual_mm);
    assert_true(residual_mm < 2e-5);
    assert_ints(scanner->num_modules, 16, scanner->num_positions, 8);
    for (int m = 0; m < 16; m++) {
        const lr_module *module = &scanner->modules[m];
        assert_int_equal(module->crystals[0], 4);
        assert_close(hypot(module->centre_mm[0], module->centre_mm[1]), 60, 1e-12);
        assert_close(module->pitch_mm[0], 4, 1e-9);
        assert_close(module->face_mm[1], 4, 1e-5);
        assert_close(module->depth_mm, 20, 1e-5);
        assert_true(module->ring == m / 8 && module->position == m % 8);
    }
    assert_crystals_are_there(&(struct exploded){crystals, 256}, scanner, crystal_of, 1e-4);
}

/* A crystal that faces along x, with this edge of its face and this depth. */
static lr_crystal cuboid(const double centre_mm[3], double edge_mm, double depth_mm, int group)
{
    return filled(lr_crystal, .centre_mm = {centre_mm[0], centre_mm[1], centre_mm[2]},
                  .axes = {{0, 1, 0}, {0, 0, 1}, {1, 0, 0}}, .size_mm = {edge_mm, edge_mm, depth_mm}, .group = group);
}

/* Modules that touch, with centres rounded to float32: no overlap remains, and modules do not move. */
static void touching_modules_do_not_overlap(void **state)
{
    uint64_t seed = test_seed();
    lr_crystal crystals[4 * 36];
    for (int c = 0; c < 4 * 36; c++) {
        const int m = c / 36, n = c % 36;
        crystals[c] = cuboid((double[]){m < 2 ? 310 : -310, 3.3 * (n % 6) + 19.8 * (m % 2), 3.3 * (n / 6)}, 3.3, 20, m);
        for (int k = 0; k < 3; k++) crystals[c].centre_mm[k] += 3e-5 * (test_random(&seed) - 0.5);
    }
    double residual_mm;
    int crystal_of[4 * 36];
    lr_scanner *scanner =
        assemble((lr_crystal_list){.crystals = crystals, .num_crystals = 4 * 36}, crystal_of, &residual_mm);
    assert_int_equal(scanner->num_modules, 4);
    assert_true(residual_mm < 1e-4);
    assert_crystals_are_there(&(struct exploded){crystals, 4 * 36}, scanner, crystal_of, 1e-4);
}

/* Very many modules at the same place: the overlap of the first two is reported, without a search through all pairs. */
static void piles_are_refused_at_once(void **state)
{
    enum { COUNT = 20000 };
    lr_crystal *crystals = kept(COUNT, sizeof(*crystals));
    for (int n = 0; n < COUNT; n++)
        crystals[n] = cuboid((double[]){300 + 1e-3 * (n % 100), 1e-3 * (n / 100), 0}, 10, 10, n);
    assert_no_scanner((lr_crystal_list){.crystals = crystals, .num_crystals = COUNT}, "overlap by");
}

/* Processor time in seconds for two panels of one line each, `count` crystals long. */
static double time_lines(int count)
{
    lr_crystal *crystals = kept(2 * (int64_t)count, sizeof(*crystals));
    for (int n = 0; n < 2 * count; n++)
        crystals[n] = cuboid((double[]){n < count ? 100 : -100, 0, 2 * (n % count)}, 2, 10, n / count);
    const clock_t start = clock();
    lr_scanner *scanner = assemble((lr_crystal_list){.crystals = crystals, .num_crystals = 2 * count}, NULL, NULL);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    assert_int_equal(scanner->num_modules, 2);
    return seconds;
}

/* Four times as many crystals take four times as long, apart from effects of caches; with quadratic time it was sixteen
 * times. */
static void time_goes_with_the_crystals(void **state)
{
    double least[2] = {INFINITY, INFINITY};
    for (int k = 0; k < 6; k++) least[k % 2] = fmin(least[k % 2], time_lines(k % 2 == 0 ? 20000 : 80000));
    print_message("%.3f and %.3f s\n", least[0], least[1]);
    assert_true(least[1] < 9 * least[0]);
}

/* Crystals at random places and in random directions: more modules than allowed, which is found soon. */
static void heaps_are_refused_soon(void **state)
{
    enum { COUNT = 300000 };
    lr_crystal *crystals = kept(COUNT, sizeof(*crystals));
    uint64_t seed = test_seed();
    for (int n = 0; n < COUNT; n++) {
        const double a = 6.283185307179586 * test_random(&seed);
        crystals[n] = (lr_crystal){.axes = {{0}, {0}, {cos(a), sin(a), 0}}, .size_mm = {1, 1, 1}, .group = -1};
        for (int k = 0; k < 3; k++) crystals[n].centre_mm[k] = 500 * test_random(&seed);
    }
    assert_no_scanner((lr_crystal_list){.crystals = crystals, .num_crystals = COUNT}, "more than 65536 modules");
}

test_main("crystals", CASE(presets_come_back), CASE(numbers_are_kept), CASE(unequal_modules_come_back),
          CASE(groups_never_share_a_module), CASE(noise_is_a_residual), CASE(curved_panels_are_refused),
          CASE(known_axes_part_a_curved_panel), CASE(faults_are_named), CASE(safir_map_is_the_preset),
          CASE(petsird_boxes), CASE(touching_modules_do_not_overlap), CASE(piles_are_refused_at_once),
          CASE(time_goes_with_the_crystals), CASE(heaps_are_refused_soon))
