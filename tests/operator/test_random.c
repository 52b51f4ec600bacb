/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Random scanners and grids, compared with the backend cpu. Scanners have few or many modules in one to three rings,
 * crystals of any number and size with or without gaps, tilted modules, and modules behind modules. Voxels are from
 * far smaller to far larger than a crystal, up to the modules' faces. Argument: the backend. LORASTER_TEST_CASES:
 * number of cases. LORASTER_TEST_SEED: seed of the cases. */
#include "against_cpu.h"

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

static double between(uint64_t *state, double low, double high)
{
    return low + (high - low) * test_random(state);
}

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
    if (random->is_tilted) tilt(module, between(random->state, -0.2, 0.2));
}

static void add_ring(struct random_case *random, const struct placing *at, int modules)
{
    static const int few[] = {1, 2, 3};
    for (int k = 0; k < modules; k++) {
        struct placing placing = *at;
        placing.angle = 6.283185307179586 * k / modules;
        add_module(random, &placing);
        if (random->has_shell && test_random(random->state) < 0.3) {
            placing.radius_mm *= between(random->state, 1.15, 1.5);
            placing.crystals[0] = one_of(random->state, few, 3);
            placing.crystals[1] = one_of(random->state, few, 3);
            add_module(random, &placing);
        }
    }
}

static void make_modules(struct random_case *random)
{
    static const int modules[] = {2, 2, 3, 4, 4, 6, 8}, rings[] = {1, 1, 2, 3};
    static const int crystals[] = {1, 1, 2, 3, 5, 8, 13};
    uint64_t *state = random->state;
    const int around = one_of(state, modules, 7), along = one_of(state, rings, 4);
    random->radius_mm = exp(between(state, log(12.0), log(400.0)));
    random->is_tilted = test_random(state) < 0.2;
    random->has_shell = test_random(state) < 0.1;
    const double widest = around > 2 ? 1.94 * tan(3.14159265358979 / around) : 2.5;
    struct placing at = {.radius_mm = random->radius_mm,
                         .face = test_random(state) < 0.3 ? between(state, 0.5, 0.95) : 1.0,
                         .crystals = {one_of(state, crystals, 7), one_of(state, crystals, 7)}};
    at.width_mm[0] = between(state, 0.3, 1.0) * widest * at.radius_mm;
    at.width_mm[1] = between(state, 0.1, 1.5) * at.radius_mm;
    for (int ring = 0; ring < along; ring++) {
        at.z_mm = (ring - 0.5 * (along - 1)) * 1.05 * at.width_mm[1];
        add_ring(random, &at, around);
    }
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
        voxel_mm[k] = between(random->state, 0.5, 1.0) * extent / size[k];
    }
    lr_grid grid = lr_grid_centred(size, voxel_mm);
    for (int k = 0; k < 3; k++) grid.origin_mm[k] += between(random->state, -0.07, 0.07) * random->radius_mm;
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
    struct test_log log = TEST_LOG(log);
    make_modules(random);
    *fixture = (struct fixture){.name = "random", .grid = make_grid(random)};
    fixture->scanner = lr_scanner_create(&(lr_scanner_params){
        .name = "random", .modules = random->modules, .num_modules = random->num_modules, .log = &log.log});
    fixture->lors = fixture->scanner != NULL ? lr_lors_create(fixture->scanner, &log.log) : NULL;
    const int64_t voxels = lr_grid_num_voxels(&fixture->grid);
    return fixture->lors != NULL && fixture->lors->count <= most_lors && voxels <= most_voxels &&
           fixture->lors->count * voxels <= most_elements && is_seen(fixture);
}

/* Returns true if the backend has elements of this mode and can project with these modules. */
static bool takes(const struct random_case *random, lr_mode mode)
{
    if (test_backend_is("raster")) return mode == LR_MODE_SAMPLED;
    return !test_backend_is("native") || (!random->is_tilted && !random->has_shell);
}

static void check(const struct fixture *fixture, const struct random_case *random, lr_mode mode)
{
    lr_operator_params params = fixture_params(fixture, test_backend, NULL);
    params.mode = mode;
    double apart[3];
    compare_with_cpu(fixture, &params, apart);
    const int *size = fixture->grid.size, *crystals = random->modules[0].crystals;
    for (int k = 0; k < 3; k++) {
        if (!(apart[k] < agreement[mode])) {
            fail_msg("%s, %d modules of %d x %d crystals, radius %g mm, %s%s, %d x %d x %d voxels: values %.1e, single "
                     "LORs %.1e, sensitivity %.1e apart",
                     mode == LR_MODE_EXACT ? "exact" : "sampled", random->num_modules, crystals[0], crystals[1],
                     random->radius_mm, random->is_tilted ? "tilted" : "upright",
                     random->has_shell ? ", some behind others" : "", size[0], size[1], size[2], apart[0], apart[1],
                     apart[2]);
        }
    }
}

/* Returns false if the case was not usable. */
static bool run_case(uint64_t *state)
{
    struct random_case random = {.state = state};
    struct fixture fixture;
    const bool is_case = make_fixture(&random, &fixture);
    for (int mode = 0; is_case && mode < 2; mode++)
        if (takes(&random, mode == 0 ? LR_MODE_EXACT : LR_MODE_SAMPLED))
            check(&fixture, &random, mode == 0 ? LR_MODE_EXACT : LR_MODE_SAMPLED);
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

backend_main("compute", CASE(test_random_scanners))
