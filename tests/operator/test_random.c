/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Random scanners and grids, and crystals that are large compared with voxels, compared with the backend cpu: values,
 * single LORs and the sensitivity. Scanners have few or many modules in one to three rings, crystals of any number and
 * size with or without gaps, tilted modules, and modules behind modules. Voxels are from far smaller to far larger
 * than a crystal, up to the modules' faces. Arguments: the backend, and the only test to run. LORASTER_TEST_CASES:
 * number of cases. LORASTER_TEST_SEED: seed of the cases. */
#include "fixtures.h"

/* --- two backends --- */

/* Results of an operator for the fixture. */
struct results {
    float *values, *sensitivity, *some; /* NULL: refused */
    int64_t num_values, num_voxels, num_some;
};

/* Single LORs are every seventh one. */
enum { EVERY = 7 };

/* True if the call worked. A software renderer refuses crystals for which it would end a shader's loops too early. */
static bool is_done(const lr_operator *op, lr_status status, const struct test_log *log)
{
    if (status == LR_OK) return true;
    const lr_operator_info *info = lr_operator_get_info(op);
    assert_int_equal(status, LR_USAGE);
    assert_string_equal(info->backend, "compute");
    assert_says(info->device, "llvmpipe");
    if (strstr(log->error, "65,535 rounds") == NULL) fail_msg("%s", log->error);
    print_message("refused: %s\n", log->error);
    return false;
}

static struct results results_of(const struct fixture *fixture, const lr_operator_params *params)
{
    struct test_log *log = kept_log();
    lr_operator_params logged = *params;
    logged.log = &log->log;
    lr_operator *op = keep(lr_operator_create(&logged));
    struct results results = {.num_values = fixture->lors->count,
                              .num_voxels = test_num_voxels(op),
                              .num_some = (fixture->lors->count + EVERY - 1) / EVERY};
    uint64_t state = 7;
    const float *image = kept_random_floats(results.num_voxels, 0.0, 1.0, &state);
    results.values = kept_floats(results.num_values);
    results.sensitivity = kept_floats(results.num_voxels);
    results.some = kept_floats(results.num_some);
    int64_t *numbers = kept(results.num_some, sizeof(*numbers));
    for (int64_t k = 0; k < results.num_some; k++) numbers[k] = EVERY * k;
    const lr_selection part = {.lors = numbers, .num_lors = results.num_some};
    if (!is_done(op, array_forward(op, image, results.values), log)) results.values = NULL;
    if (!is_done(op, array_sensitivity(op, results.sensitivity), log)) results.sensitivity = NULL;
    if (!is_done(op, array_forward_part(op, &part, image, results.some), log)) results.some = NULL;
    return results;
}

/* Difference relative to the length of the second vector; 0 if the result was refused. */
static double distance(const float *a, const float *b, int64_t count)
{
    const double size = sqrt(dot_product(b, b, count));
    return a == NULL ? 0.0 : size > 0.0 ? l2_apart(a, b, count) : sqrt(dot_product(a, a, count));
}

/* Compares the results of the backend in the parameters with those of cpu. apart: relative differences of the values,
 * of the values of single LORs, and of the sensitivity. */
static void compare_with_cpu(const struct fixture *fixture, const lr_operator_params *params, double apart[3])
{
    lr_operator_params reference = *params;
    reference.backend = "cpu";
    const int mark = num_kept();
    struct results here = results_of(fixture, params), there = results_of(fixture, &reference);
    apart[0] = distance(here.values, there.values, here.num_values);
    /* A few single LORs may have small values compared with all. */
    const double share = sqrt((double)there.num_some / (double)there.num_values);
    const double some = sqrt(dot_product(there.some, there.some, there.num_some));
    const double usual = share * sqrt(dot_product(there.values, there.values, there.num_values));
    apart[1] = distance(here.some, there.some, here.num_some);
    apart[1] *= some > 0.0 ? some / fmax(some, usual) : 1.0;
    apart[2] = distance(here.sensitivity, there.sensitivity, here.num_voxels);
    destroy_kept_since(mark);
}

/* --- random scanners --- */

enum { USUAL_CASES = 24, MOST_MODULES = 64 };

/* Sizes for which the backend cpu takes a fraction of a second. */
static const int64_t most_lors = 60000, most_voxels = 3000, most_elements = 20000000;

/* Largest difference relative to a vector's length. Exact elements are accurate to 1e-5
 * (docs/method/correspondence.md). In sampled mode, a few lines end so near to a border that rounding decides
 * between two crystals. */
static const double agreement[] = {[LR_MODE_SAMPLED] = 3e-3, [LR_MODE_EXACT] = 1e-5};

struct random_case {
    lr_module modules[MOST_MODULES];
    int num_modules;
    double radius_mm;
    bool is_tilted, has_shell;
    uint64_t *state;
};

static int one_of(uint64_t *state, const int *numbers, int count)
{
    return numbers[(int)(test_random(state) * count)];
}

/* Tilts a module by some degrees out of the axial direction. */
static void tilt(lr_module *module, double angle)
{
    const double c = cos(angle), s = sin(angle);
    for (int k = 0; k < 3; k++) {
        const double u = module->u[k], v = module->v[k];
        module->u[k] = c * u + s * v;
        module->v[k] = c * v - s * u;
    }
}

/* Place of a module with such crystals on a ring; width: across and along. */
struct placing {
    double radius_mm, angle, z_mm, width_mm[2], face;
    int crystals[2];
};

static void add_module(struct random_case *random, const struct placing *at)
{
    const double c = cos(at->angle), s = sin(at->angle);
    lr_module *module = &random->modules[random->num_modules++];
    *module = filled(lr_module, .centre_mm = {at->radius_mm * c, at->radius_mm * s, at->z_mm}, .u = {-s, c, 0.0},
                     .v = {0.0, 0.0, 1.0}, .depth_mm = 0.05 * at->radius_mm);
    for (int k = 0; k < 2; k++) {
        module->crystals[k] = at->crystals[k];
        module->pitch_mm[k] = at->width_mm[k] / at->crystals[k];
        module->face_mm[k] = at->face * module->pitch_mm[k];
    }
    if (random->is_tilted) tilt(module, random_between(random->state, -0.2, 0.2));
}

static lr_grid make_grid(struct random_case *random)
{
    static const int sizes[] = {1, 2, 3, 5, 8, 13, 24};
    static const double extents[] = {0.3, 0.8, 1.2, 1.38};
    const double extent = extents[(int)(test_random(random->state) * 4)] * random->radius_mm;
    int size[3];
    double voxel_mm[3];
    for (int k = 0; k < 3; k++) {
        size[k] = one_of(random->state, sizes, 7);
        voxel_mm[k] = random_between(random->state, 0.5, 1.0) * extent / size[k];
    }
    lr_grid grid = lr_grid_centred(size, voxel_mm);
    for (int k = 0; k < 3; k++) grid.origin_mm[k] += random_between(random->state, -0.07, 0.07) * random->radius_mm;
    return grid;
}

/* Returns true if LORs cross any voxel centre. Otherwise no operator can be made. */
static bool is_seen(const struct fixture *fixture)
{
    struct test_log log = TEST_LOG(log);
    const lr_operator_params params = fixture_params(fixture, "cpu", &log.log);
    lr_operator *op = lr_operator_create(&params);
    lr_operator_destroy(op);
    assert_true(op != NULL || strstr(log.error, "the grid misses the scanner") != NULL);
    return op != NULL;
}

/* Returns false if the fixture has too many elements, or is not a valid scanner. */
static bool make_fixture(struct random_case *random, struct fixture *fixture)
{
    struct test_log heard = TEST_LOG(heard);
    static const int modules[] = {2, 2, 3, 4, 4, 6, 8}, rings[] = {1, 1, 2, 3};
    static const int crystals[] = {1, 1, 2, 3, 5, 8, 13};
    uint64_t *state = random->state;
    const int around = one_of(state, modules, 7), along = one_of(state, rings, 4);
    random->radius_mm = exp(random_between(state, log(12.0), log(400.0)));
    random->is_tilted = test_random(state) < 0.2;
    random->has_shell = test_random(state) < 0.1;
    const double widest = around > 2 ? 1.94 * tan(3.14159265358979 / around) : 2.5;
    struct placing at = {.radius_mm = random->radius_mm,
                         .face = test_random(state) < 0.3 ? random_between(state, 0.5, 0.95) : 1.0,
                         .crystals = {one_of(state, crystals, 7), one_of(state, crystals, 7)}};
    at.width_mm[0] = random_between(state, 0.3, 1.0) * widest * at.radius_mm;
    at.width_mm[1] = random_between(state, 0.1, 1.5) * at.radius_mm;
    for (int ring = 0; ring < along; ring++) {
        at.z_mm = (ring - 0.5 * (along - 1)) * 1.05 * at.width_mm[1];
        static const int few[] = {1, 2, 3};
        for (int k = 0; k < around; k++) {
            struct placing placing = at;
            placing.angle = 6.283185307179586 * k / around;
            add_module(random, &placing);
            if (random->has_shell && test_random(random->state) < 0.3) {
                placing.radius_mm *= random_between(random->state, 1.15, 1.5);
                placing.crystals[0] = one_of(random->state, few, 3);
                placing.crystals[1] = one_of(random->state, few, 3);
                add_module(random, &placing);
            }
        }
    }
    *fixture = (struct fixture){.name = "random", .grid = make_grid(random)};
    fixture->scanner = lr_scanner_create(&(lr_scanner_params){
        .name = "random", .modules = random->modules, .num_modules = random->num_modules, .log = &heard.log});
    fixture->lors = fixture->scanner != NULL ? lr_lors_create(fixture->scanner, &heard.log) : NULL;
    const int64_t voxels = lr_grid_num_voxels(&fixture->grid);
    return fixture->lors != NULL && fixture->lors->count <= most_lors && voxels <= most_voxels &&
           fixture->lors->count * voxels <= most_elements && is_seen(fixture);
}

/* Returns true if the backend has elements of this mode and can project with these modules. */
static bool takes(bool is_upright, lr_mode mode)
{
    if (test_backend_is("raster")) return mode == LR_MODE_SAMPLED;
    return !test_backend_is("native") || is_upright;
}

static const lr_mode modes[2] = {LR_MODE_EXACT, LR_MODE_SAMPLED};

/* Returns false if the case was not usable. */
static bool run_case(uint64_t *state)
{
    struct random_case random = {.state = state};
    struct fixture fixture;
    const bool is_case = make_fixture(&random, &fixture);
    for (int mode = 0; is_case && mode < 2; mode++)
        if (takes(!random.is_tilted && !random.has_shell, modes[mode])) {
            lr_operator_params params = fixture_params(&fixture, test_backend, NULL);
            params.mode = modes[mode];
            double apart[3];
            compare_with_cpu(&fixture, &params, apart);
            const int *size = fixture.grid.size, *crystals = random.modules[0].crystals;
            for (int k = 0; k < 3; k++) {
                if (!(apart[k] < agreement[modes[mode]])) {
                    fail_msg("%s, %d modules of %d x %d crystals, radius %g mm, %s%s, %d x %d x %d voxels: values "
                             "%.1e, single "
                             "LORs %.1e, sensitivity %.1e apart",
                             modes[mode] == LR_MODE_EXACT ? "exact" : "sampled", random.num_modules, crystals[0],
                             crystals[1], random.radius_mm, random.is_tilted ? "tilted" : "upright",
                             random.has_shell ? ", some behind others" : "", size[0], size[1], size[2], apart[0],
                             apart[1], apart[2]);
                }
            }
        }
    fixture_finish(&fixture);
    return is_case;
}

static void test_random_scanners(void **unused)
{
    const char *const asked = getenv("LORASTER_TEST_CASES");
    const int wanted = asked != NULL ? atoi(asked) : USUAL_CASES;
    uint64_t state = test_seed();
    for (int done = 0; done < wanted;) {
        const uint64_t before = state;
        done += run_case(&state) ? 1 : 0;
        assert_true(state != before);
    }
}

/* --- crystals that are large compared with voxels, or close to them --- */

struct arrangement {
    const char *name;
    int modules;
    double radius_mm;
    int crystals; /* along both edges */
    double pitch_mm;
    double tilt; /* degrees; tilt of every second module out of the axial direction */
    int size[3];
    double voxel_mm;
};

static const struct arrangement arrangements[] = {{"two of one crystal", 2, 60.0, 1, 64.0, 0.0, {36, 36, 36}, 0.87},
                                                  {"two of 2 x 2", 2, 60.0, 2, 32.0, 0.0, {36, 36, 36}, 0.87},
                                                  {"two of 40 x 40", 2, 50.0, 40, 3.0, 0.0, {5, 3, 2}, 8.9},
                                                  {"four of 20 x 20", 4, 55.0, 20, 5.0, 0.0, {4, 4, 2}, 8.9},
                                                  {"two of 2 x 2, tilted", 2, 60.0, 2, 32.0, 5.0, {28, 28, 28}, 1.12}};

/* Largest difference of two vectors, relative to the length of a vector. */
static const double coarse_agreement[] = {[LR_MODE_SAMPLED] = 1e-5, [LR_MODE_EXACT] = 4e-6};

/* A LOR then has up to a million terms, and a thread of a shader makes more iterations than a software renderer
 * allows. */
static void test_coarse_crystals(void **state)
{
    for (int k = 0; k < 2 * length_of(arrangements); k++) {
        const struct arrangement *of = &arrangements[k / 2];
        if (takes(of->tilt == 0.0, modes[k % 2])) {
            const lr_mode mode = modes[k % 2];
            lr_module modules[4];
            for (int m = 0; m < of->modules; m++) {
                const double angle = 6.283185307179586 * m / of->modules, c = cos(angle), s = sin(angle);
                modules[m] = filled(lr_module, .centre_mm = {of->radius_mm * c, of->radius_mm * s, 0.0},
                                    .u = {-s, c, 0.0}, .v = {0.0, 0.0, 1.0}, .crystals = {of->crystals, of->crystals},
                                    .pitch_mm = {of->pitch_mm, of->pitch_mm}, .face_mm = {of->pitch_mm, of->pitch_mm},
                                    .depth_mm = 10.0);
                if (m % 2 != 0) tilt(&modules[m], of->tilt * 3.14159265358979323846 / 180.0);
            }
            struct fixture fixture = {.name = of->name, .scanner = scanner_of_modules(modules, of->modules)};
            fixture.lors = keep(lr_lors_create(fixture.scanner, NULL));
            fixture.grid = shifted_grid(of->size, (const double[3]){of->voxel_mm, of->voxel_mm, of->voxel_mm},
                                        (const double[3]){0.113, -0.271, 0.197});
            lr_operator_params params = fixture_params(&fixture, test_backend, NULL);
            params.mode = mode;
            double apart[3];
            compare_with_cpu(&fixture, &params, apart);
            print_message("%s, %s: values %.1e, single LORs %.1e, sensitivity %.1e apart\n", of->name,
                          mode == LR_MODE_EXACT ? "exact" : "sampled", apart[0], apart[1], apart[2]);
            for (int i = 0; i < 3; i++) assert_true(apart[i] < coarse_agreement[mode]);
        }
    }
}

backend_main("compute", CASE(test_random_scanners), CASE(test_coarse_crystals))
