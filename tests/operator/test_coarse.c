/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystals that are large beside the voxels, or near to them: a LOR then has up to a million terms, and a thread of a
 * shader more turns than a software renderer allows. Values, single LORs, sensitivity and rows against backend
 * cpu, in double. Argument: the backend. */
#include "fixtures.h"

#include "projections.h"

struct arrangement {
    const char *name;
    int modules;
    double radius_mm;
    int crystals; /* along both edges */
    double pitch_mm;
    double tilt; /* of every other module out of the axial direction, degrees */
    int size[3];
    double voxel_mm;
};

static const struct arrangement arrangements[] = {
    {"two of one crystal", 2, 60.0, 1, 64.0, 0.0, {36, 36, 36}, 0.87},
    {"two of 2 x 2", 2, 60.0, 2, 32.0, 0.0, {36, 36, 36}, 0.87},
    {"two of 40 x 40", 2, 50.0, 40, 3.0, 0.0, {5, 3, 2}, 8.9},
    {"four of 20 x 20", 4, 55.0, 20, 5.0, 0.0, {4, 4, 2}, 8.9},
    {"two of 2 x 2, tilted", 2, 60.0, 2, 32.0, 5.0, {28, 28, 28}, 1.12},
};
enum { NUM_ARRANGEMENTS = sizeof(arrangements) / sizeof(arrangements[0]) };

/* Of a vector's length. */
static const double agreement[] = {[LR_MODE_SAMPLED] = 1e-5, [LR_MODE_EXACT] = 4e-6};

static const char *tested;

static void turn_out(lr_module *module, double degrees)
{
    const double angle = degrees * 3.14159265358979323846 / 180.0;
    const double u[3] = {module->u[0], module->u[1], module->u[2]};
    for (int k = 0; k < 3; k++) {
        const double v = module->v[k];
        module->u[k] = cos(angle) * u[k] + sin(angle) * v;
        module->v[k] = cos(angle) * v - sin(angle) * u[k];
    }
}

static lr_module module_of(const struct arrangement *of, int number)
{
    const double angle = 6.283185307179586 * number / of->modules;
    const double c = cos(angle), s = sin(angle);
    lr_module module = {
        .centre_mm = {of->radius_mm * c, of->radius_mm * s, 0.0},
        .u = {-s, c, 0.0},
        .v = {0.0, 0.0, 1.0},
        .crystals = {of->crystals, of->crystals},
        .pitch_mm = {of->pitch_mm, of->pitch_mm},
        .face_mm = {of->pitch_mm, of->pitch_mm},
        .depth_mm = 10.0,
    };
    turn_out(&module, number % 2 != 0 ? of->tilt : 0.0);
    return module;
}

static void arrange(const struct arrangement *of, struct fixture *fixture)
{
    struct test_log log;
    test_log_init(&log);
    lr_module modules[4];
    for (int m = 0; m < of->modules; m++) {
        modules[m] = module_of(of, m);
    }
    *fixture = (struct fixture){.name = of->name};
    fixture->scanner = lr_scanner_create(&(lr_scanner_params){
        .name = of->name, .modules = modules, .num_modules = of->modules, .log = &log.log});
    fixture->lors = fixture->scanner != NULL ? lr_lors_create(fixture->scanner, &log.log) : NULL;
    if (fixture->lors == NULL) {
        fail_msg("%s: %s", of->name, log.error);
    }
    fixture->grid =
        lr_grid_centred(of->size, (const double[3]){of->voxel_mm, of->voxel_mm, of->voxel_mm});
    fixture->grid.origin_mm[0] += 0.113;
    fixture->grid.origin_mm[1] -= 0.271;
    fixture->grid.origin_mm[2] += 0.197;
}

static float *floats(int64_t count)
{
    float *numbers = calloc((size_t)count, sizeof(*numbers));
    assert_non_null(numbers);
    return numbers;
}

/* What an operator makes of the fixture. */
struct results {
    float *values, *sensitivity, *some;
    int64_t num_values, num_voxels, num_some;
};

/* Every seventh LOR, by its number. */
enum { EACH = 7 };

static void project_some(lr_operator *op, const float *image, struct results *results)
{
    int64_t *numbers = calloc((size_t)results->num_some, sizeof(*numbers));
    assert_non_null(numbers);
    for (int64_t k = 0; k < results->num_some; k++) {
        numbers[k] = EACH * k;
    }
    const lr_selection part = {.lors = numbers, .num_lors = results->num_some};
    results->some = floats(results->num_some);
    assert_int_equal(array_forward_part(op, &part, image, results->some), LR_OK);
    free(numbers);
}

static struct results results_of(const struct fixture *fixture, const char *backend, lr_mode mode)
{
    lr_operator_params params = fixture_params(fixture, backend, NULL);
    params.mode = mode;
    lr_operator *op = fixture_operator(&params);
    struct results results = {.num_values = fixture->lors->count,
                              .num_voxels = test_num_voxels(op),
                              .num_some = (fixture->lors->count + EACH - 1) / EACH};
    float *image = floats(results.num_voxels);
    uint64_t state = 7;
    for (int64_t v = 0; v < results.num_voxels; v++) {
        image[v] = (float)test_random(&state);
    }
    results.values = floats(results.num_values);
    results.sensitivity = floats(results.num_voxels);
    assert_int_equal(array_forward(op, image, results.values), LR_OK);
    assert_int_equal(array_sensitivity(op, results.sensitivity), LR_OK);
    project_some(op, image, &results);
    free(image);
    lr_operator_destroy(op);
    return results;
}

static void free_results(struct results *results)
{
    free(results->values);
    free(results->sensitivity);
    free(results->some);
}

static double distance(const float *a, const float *b, int64_t count)
{
    double apart = 0.0, size = 0.0;
    for (int64_t k = 0; k < count; k++) {
        apart += ((double)a[k] - b[k]) * ((double)a[k] - b[k]);
        size += (double)b[k] * b[k];
    }
    assert_true(size > 0.0);
    return sqrt(apart / size);
}

static void check(const struct arrangement *of, lr_mode mode)
{
    struct fixture fixture;
    arrange(of, &fixture);
    struct results here = results_of(&fixture, tested, mode);
    struct results there = results_of(&fixture, "cpu", mode);
    const double apart[3] = {distance(here.values, there.values, here.num_values),
                             distance(here.some, there.some, here.num_some),
                             distance(here.sensitivity, there.sensitivity, here.num_voxels)};
    print_message("%s, %s: values %.1e, single LORs %.1e, sensitivity %.1e apart\n", of->name,
                  mode == LR_MODE_EXACT ? "exact" : "sampled", apart[0], apart[1], apart[2]);
    for (int k = 0; k < 3; k++) {
        assert_true(apart[k] < agreement[mode]);
    }
    free_results(&here);
    free_results(&there);
    fixture_finish(&fixture);
}

/* Whether the backend has elements of this mode, and projects so with these modules. */
static bool takes(const struct arrangement *of, lr_mode mode)
{
    if (strcmp(tested, "raster") == 0) {
        return mode == LR_MODE_SAMPLED;
    }
    return strcmp(tested, "native") != 0 || of->tilt == 0.0;
}

static void test_coarse_crystals(void **state)
{
    (void)state;
    static const lr_mode modes[2] = {LR_MODE_EXACT, LR_MODE_SAMPLED};
    for (int k = 0; k < 2 * NUM_ARRANGEMENTS; k++) {
        const struct arrangement *of = &arrangements[k / 2];
        if (takes(of, modes[k % 2])) {
            check(of, modes[k % 2]);
        }
    }
}

int main(int argc, char **argv)
{
    tested = argc > 1 ? argv[1] : "compute";
    if (!fixture_backend_is_usable(tested)) {
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_coarse_crystals)};
    return cmocka_run_group_tests_name(tested, tests, NULL, NULL);
}
