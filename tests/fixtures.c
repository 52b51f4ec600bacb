/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "fixtures.h"

static const double degrees = 3.14159265358979323846 / 180.0;

static const char *const names[FIXTURE_COUNT] = {
    "opposed", "oblique", "tilted", "unequal", "gapped", "ring", "two rings",
};

/* A module of 5 x 4 crystals at an angle around the axis. */
static lr_module module_at(double radius_mm, double angle_deg)
{
    const double c = cos(angle_deg * degrees), s = sin(angle_deg * degrees);
    return (lr_module){
        .centre_mm = {radius_mm * c, radius_mm * s, 0.0},
        .u = {-s, c, 0.0},
        .v = {0.0, 0.0, 1.0},
        .crystals = {5, 4},
        .pitch_mm = {4.3, 4.3},
        .face_mm = {4.0, 4.0},
        .depth_mm = 20.0,
    };
}

static void rotate(double vector[3], int axis, double angle_deg)
{
    const double c = cos(angle_deg * degrees), s = sin(angle_deg * degrees);
    const int j = (axis + 1) % 3, k = (axis + 2) % 3;
    const double a = vector[j], b = vector[k];
    vector[j] = c * a - s * b;
    vector[k] = s * a + c * b;
}

static void tilt(lr_module *module, int axis, double angle_deg)
{
    rotate(module->u, axis, angle_deg);
    rotate(module->v, axis, angle_deg);
}

static lr_scanner *create_pair(enum fixture_kind kind, const lr_log *log)
{
    lr_module modules[2] = {module_at(40.0, 90.0), module_at(40.0, 270.0)};
    if (kind == FIXTURE_OBLIQUE) {
        modules[1] = module_at(40.0, 240.0);
    } else if (kind == FIXTURE_TILTED) {
        tilt(&modules[1], 0, 20.0);
        tilt(&modules[1], 2, -15.0);
    } else if (kind == FIXTURE_UNEQUAL) {
        modules[1].crystals[0] = 3;
        modules[1].crystals[1] = 7;
        modules[1].pitch_mm[0] = 6.0;
        modules[1].pitch_mm[1] = 3.0;
        modules[1].face_mm[0] = 5.5;
        modules[1].face_mm[1] = 2.9;
    } else if (kind == FIXTURE_GAPPED) {
        for (int k = 0; k < 4; k++) modules[k / 2].face_mm[k % 2] = 2.5;
    }
    return lr_scanner_create(
        &(lr_scanner_params){.name = names[kind], .modules = modules, .num_modules = 2, .log = log});
}

static lr_scanner *create_ring(enum fixture_kind kind, const lr_log *log)
{
    static const int crystals_u[1] = {5}, crystals_v[1] = {4};
    lr_ring ring = {
        .radius_mm = 32.0,
        .modules = 8,
        .rings = 1,
        .ring_pitch_mm = 20.0,
        .block_crystals = {crystals_u, crystals_v},
        .pitch_mm = {4.3, 4.3},
        .face_mm = {4.0, 4.0},
        .depth_mm = 20.0,
    };
    lr_scanner_params params = {.name = names[kind], .log = log};
    params.coincidence.field_of_view_mm = 40.0;
    if (kind == FIXTURE_TWO_RINGS) {
        ring.modules = 6;
        ring.rings = 2;
        params.coincidence =
            (lr_coincidence){.min_module_difference = 2, .limits_ring_difference = true, .max_ring_difference = 5};
        params.detection_depth_mm = 2.0;
    }
    return lr_scanner_create_ring(&params, &ring);
}

void fixture_init(struct fixture *fixture, enum fixture_kind kind)
{
    struct test_log log;
    test_log_init(&log);
    *fixture = (struct fixture){.name = names[kind]};
    fixture->scanner = kind < FIXTURE_RING ? create_pair(kind, &log.log) : create_ring(kind, &log.log);
    if (fixture->scanner == NULL) fail_msg("fixture %s: %s", names[kind], log.error);
    fixture->lors = lr_lors_create(fixture->scanner, &log.log);
    if (fixture->lors == NULL) fail_msg("fixture %s: %s", names[kind], log.error);
    fixture->grid = lr_grid_centred((const int[3]){6, 7, 5}, (const double[3]){2.5, 3.0, 3.2});
    if (kind == FIXTURE_OBLIQUE) { /* half-way between the two */
        fixture->grid.origin_mm[0] -= 10.0;
        fixture->grid.origin_mm[1] += 2.7;
    }
    fixture->grid.origin_mm[0] += 0.31;
    fixture->grid.origin_mm[1] -= 0.47;
    fixture->grid.origin_mm[2] += 0.23;
}

void fixture_finish(struct fixture *fixture)
{
    lr_lors_destroy(fixture->lors);
    lr_scanner_destroy(fixture->scanner);
}

lr_operator_params fixture_params(const struct fixture *fixture, const char *backend, const lr_log *log)
{
    return (lr_operator_params){
        .lors = fixture->lors,
        .grid = &fixture->grid,
        .backend = backend,
        .mode = LR_MODE_SAMPLED,
        .rays = 2,
        .samples = {1, 1, 1},
        .store = LR_STORE_NO,
        .threads = 2,
        .log = log,
    };
}

lr_operator *fixture_operator(const lr_operator_params *params)
{
    struct test_log log;
    test_log_init(&log);
    lr_operator_params logged = *params;
    if (logged.log == NULL) logged.log = &log.log;
    lr_operator *op = lr_operator_create(&logged);
    if (op == NULL) fail_msg("no operator: %s", log.error);
    return op;
}

bool fixture_backend_is_usable(const char *backend)
{
    struct test_log log;
    test_log_init(&log);
    struct fixture fixture;
    fixture_init(&fixture, FIXTURE_OPPOSED);
    const lr_operator_params params = fixture_params(&fixture, backend, &log.log);
    lr_operator *op = lr_operator_create(&params);
    const bool is_missing = op == NULL && log.status == LR_NO_DEVICE;
    if (is_missing) printf("skipped: backend %s: %s\n", backend, log.error);
    lr_operator_destroy(op);
    fixture_finish(&fixture);
    return !is_missing;
}

void fixture_fill(double *values, int64_t count, const double range[2], uint64_t *state)
{
    for (int64_t k = 0; k < count; k++) values[k] = range[0] + (range[1] - range[0]) * test_random(state);
}

double *fixture_doubles(int64_t count)
{
    double *values = calloc((size_t)count + 1, sizeof(*values));
    assert_non_null(values);
    return values;
}

int32_t *fixture_deal(const lr_lors *lors, int subsets)
{
    int32_t *of_pair = calloc((size_t)lors->num_pairs, sizeof(*of_pair));
    int32_t *of_lor = calloc((size_t)lors->count, sizeof(*of_lor));
    int interleave = 0;
    assert_int_equal(lr_osem_interleave(lors, subsets, &interleave, NULL), LR_OK);
    assert_true(of_pair != NULL && of_lor != NULL && interleave > 0);
    assert_int_equal(lr_osem_subsets(lors, subsets / interleave, of_pair, NULL), LR_OK);
    for (int64_t pair = 0; pair < lors->num_pairs; pair++)
        for (int64_t l = lors->offsets[pair]; l < lors->offsets[pair + 1]; l++)
            of_lor[l] = of_pair[pair] * interleave + lr_lors_turn(lors, l, interleave);
    free(of_pair);
    return of_lor;
}
