/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Tests of the facade with made-up backends: parameters that it accepts, refuses, replaces by defaults and converts,
 * and backends that it chooses. */
#include "fixtures.h"

#include "fake_backend.h"

struct world {
    struct fixture fixture;
    struct test_log log;
    lr_operator_params params;
    double num_reports, cancel_at; /* cancel_at 0 = never */
    lr_progress progress;
};

static bool count_report(void *user, const char *what, double done, double total)
{
    struct world *world = user;
    assert_true(what != NULL && done >= 0.0 && done <= total);
    world->num_reports++;
    return world->cancel_at == 0.0 || world->num_reports < world->cancel_at;
}

static void world_init(struct world *world)
{
    *world = (struct world){0};
    fixture_init(&world->fixture, FIXTURE_OPPOSED);
    test_log_init(&world->log);
    world->params = fixture_params(&world->fixture, "fake", &world->log.log);
    world->progress = (lr_progress){count_report, world};
    world->params.progress = &world->progress;
}

static void world_finish(struct world *world)
{
    fixture_finish(&world->fixture);
}

static const struct lr_backend_choice fakes[] = {
    {.name = "fake", .create = fake_float_create},
    {.name = "fake64", .has_exact = true, .create = fake_double_create},
};

static lr_operator *create(struct world *world)
{
    world->log.status = LR_OK;
    world->log.error[0] = '\0';
    return lr_operator_create_among(&world->params, fakes, 2);
}

static void expect_refusal(struct world *world, lr_status status, const char *words)
{
    assert_null(create(world));
    assert_int_equal(world->log.status, status);
    if (strstr(world->log.error, words) == NULL) fail_msg("\"%s\" does not say \"%s\"", world->log.error, words);
    world->params = fixture_params(&world->fixture, "fake", &world->log.log);
}

static void test_bad_parameters_are_refused(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.params.lors = NULL;
    expect_refusal(&w, LR_USAGE, "needs lors");
    w.params.grid = NULL;
    expect_refusal(&w, LR_USAGE, "needs a grid");
    w.params.mode = (lr_mode)7;
    expect_refusal(&w, LR_USAGE, "mode 7");
    w.params.store = (lr_store)9;
    expect_refusal(&w, LR_USAGE, "store 9");
    w.params.rays = -1;
    expect_refusal(&w, LR_USAGE, "rays = -1");
    w.params.samples[1] = -2;
    expect_refusal(&w, LR_USAGE, "samples = -2 along y");
    w.params.samples[0] = w.params.samples[1] = w.params.samples[2] = 2000000000;
    expect_refusal(&w, LR_USAGE, "sample points per voxel");
    w.params.mu_steps = -1;
    expect_refusal(&w, LR_USAGE, "-1 steps");
    w.params.threads = -1;
    expect_refusal(&w, LR_USAGE, "threads = -1");
    w.params.device = -3;
    expect_refusal(&w, LR_USAGE, "device = -3");
    w.params.max_memory_bytes = -1;
    expect_refusal(&w, LR_USAGE, "memory limit of -1");
    lr_grid grid = w.fixture.grid;
    grid.size[1] = 0;
    w.params.grid = &grid;
    assert_null(create(&w));
    assert_int_not_equal(w.log.status, LR_OK);
    world_finish(&w);
}

static void test_bad_attenuation_is_refused(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    float values[8] = {0.0096f, 0.0096f, 0, 0, 0, 0, 0, 0};
    const lr_image mu = {lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){9, 9, 9}), values};
    w.params.mu = &mu;
    lr_operator *op = create(&w);
    assert_non_null(op);
    assert_int_equal(w.log.num_warnings, 0);
    lr_operator_destroy(op);
    values[6] = -1e-3f;
    expect_refusal(&w, LR_BAD_INPUT, "voxel (0, 1, 1)");
    values[6] = NAN;
    w.params.mu = &mu;
    expect_refusal(&w, LR_BAD_INPUT, "voxel (0, 1, 1)");
    values[6] = 0.096f; /* water in 1/cm */
    w.params.mu = &mu;
    op = create(&w);
    assert_non_null(op);
    assert_int_equal(w.log.num_warnings, 1);
    assert_non_null(strstr(w.log.warning, "1/cm"));
    lr_operator_destroy(op);
    world_finish(&w);
}

static void test_backend_names(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.params.backend = "abacus";
    expect_refusal(&w, LR_USAGE, "no backend \"abacus\": use auto, fake, fake64");
    w.params.backend = "fake";
    w.params.mode = LR_MODE_EXACT;
    expect_refusal(&w, LR_USAGE, "use backend fake64");
    w.params.backend = "auto";
    w.params.mode = LR_MODE_EXACT; /* auto goes past the one without */
    lr_operator *op = create(&w);
    assert_non_null(op);
    assert_string_equal(lr_operator_get_info(op)->backend, "fake64");
    lr_operator_destroy(op);
    world_finish(&w);
}

static void test_auto_falls_back_without_a_device_only(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    const struct lr_backend_choice absent[] = {{.name = "moon", .has_exact = true, .create = fake_absent_create},
                                               {.name = "fake", .create = fake_float_create}};
    w.params.backend = NULL;
    lr_operator *op = lr_operator_create_among(&w.params, absent, 2);
    assert_non_null(op);
    assert_string_equal(w.log.error, ""); /* it is no error that another one was taken */
    assert_string_equal(lr_operator_get_info(op)->backend, "fake");
    lr_operator_destroy(op);
    assert_null(lr_operator_create_among(&w.params, absent, 1));
    assert_int_equal(w.log.status, LR_NO_DEVICE);
    assert_non_null(strstr(w.log.error, "the moon is not up"));
    w.params.backend = "moon";
    assert_null(lr_operator_create_among(&w.params, absent, 2));
    assert_string_equal(w.log.error, "the moon is not up");
    w.params.backend = "auto";
    const struct lr_backend_choice broken[] = {{.name = "gears", .has_exact = true, .create = fake_broken_create},
                                               {.name = "fake", .create = fake_float_create}};
    assert_null(lr_operator_create_among(&w.params, broken, 2));
    assert_int_equal(w.log.status, LR_FAILED);
    world_finish(&w);
}

static void test_defaults(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    float values[8] = {0};
    const lr_image mu = {lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){9, 10, 11}), values};
    lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){4.3, 4.4, 8.7});
    w.params =
        (lr_operator_params){.lors = w.fixture.lors, .grid = &grid, .backend = "fake", .mu = &mu, .log = &w.log.log};
    lr_operator *op = create(&w);
    assert_non_null(op);
    const lr_operator_info *info = lr_operator_get_info(op);
    assert_int_equal(info->rays, 4);
    /* Even, and no farther apart than half the pitch of 4.3. */
    assert_int_equal(info->samples[0], 2);
    assert_int_equal(info->samples[1], 4);
    assert_int_equal(info->samples[2], 8); /* and two more, as rings line up along z */
    /* corners 80 mm apart across, 21.5 along u, 17.2 along v: 84.6 mm in steps of 9 */
    assert_int_equal(info->mu_steps, 10);
    assert_true(info->threads >= 1);
    assert_int_equal(info->num_voxels, 8);
    assert_int_equal(info->num_lors, 400);
    assert_true(info->stored);
    assert_true(info->lors == w.fixture.lors);
    lr_operator_destroy(op);
    world_finish(&w);
}

/* Every combination of the caller's and the backend's precision, stored and not. */
static void check_conversion(struct world *w, const char *backend, lr_store store)
{
    w->params.backend = backend;
    w->params.store = store;
    lr_operator *op = create(w);
    assert_non_null(op);
    const int64_t nv = lr_operator_get_info(op)->num_voxels;
    const int64_t nl = lr_operator_get_info(op)->num_lors;
    assert_int_equal(lr_operator_get_info(op)->stored, store == LR_STORE_YES);
    double *image = fixture_doubles(nv), *data = fixture_doubles(nl);
    float *image32 = calloc((size_t)nv, sizeof(float)), *data32 = calloc((size_t)nl, sizeof(float));
    assert_true(image32 != NULL && data32 != NULL);
    for (int64_t v = 0; v < nv; v++) {
        image32[v] = (float)(v % 5);
        image[v] = image32[v];
    }
    assert_int_equal(array_forward(op, image32, data32), LR_OK);
    assert_int_equal(array_forward_f64(op, image, data), LR_OK);
    for (int64_t l = 0; l < nl; l++) {
        double expected = 0.0;
        for (int64_t v = 0; v < nv; v++) expected += fake_element(l, v) * (double)(v % 5);
        assert_close(data[l], expected, 2e-7); /* elements or results in float */
        assert_close(data32[l], expected, 2e-7);
        data[l] = data32[l] = (float)(l % 3);
    }
    assert_int_equal(array_back(op, data32, image32), LR_OK);
    assert_int_equal(array_back_f64(op, data, image), LR_OK);
    for (int64_t v = 0; v < nv; v++) {
        double expected = 0.0;
        for (int64_t l = 0; l < nl; l++) expected += fake_element(l, v) * (double)(l % 3);
        assert_close(image[v], expected, 2e-7);
        assert_close(image32[v], expected, 2e-7);
    }
    free(image);
    free(data);
    free(image32);
    free(data32);
    lr_operator_destroy(op);
}

static void test_precisions_meet(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    check_conversion(&w, "fake", LR_STORE_NO);
    check_conversion(&w, "fake64", LR_STORE_NO);
    check_conversion(&w, "fake", LR_STORE_YES);
    check_conversion(&w, "fake64", LR_STORE_YES);
    world_finish(&w);
}

static void test_values_that_are_not_finite(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    lr_operator *op = create(&w);
    assert_non_null(op);
    float image[6 * 7 * 5] = {0}, data[400] = {0};
    double large[6 * 7 * 5] = {0}, data64[400] = {0};
    image[1 + 6 * (2 + 7 * 3)] = NAN;
    assert_int_equal(array_forward(op, image, data), LR_BAD_INPUT);
    assert_non_null(strstr(w.log.error, "voxel (1, 2, 3)"));
    data[7 + 20 * 6] = INFINITY; /* crystal 6 = (1, 1) of module 0, 7 = (2, 1) of module 1 */
    assert_int_equal(array_back(op, data, image), LR_BAD_INPUT);
    assert_non_null(strstr(w.log.error, "LOR 127 (crystal 1, 1 of module 0 with crystal 2, 1 of "
                                        "module 1)"));
    large[0] = 1e300; /* finite, but not in a float backend */
    assert_int_equal(array_forward_f64(op, large, data64), LR_BAD_INPUT);
    assert_int_equal(array_forward(op, NULL, data), LR_USAGE);
    assert_int_equal(array_back(op, data, NULL), LR_USAGE);
    lr_operator_destroy(op);
    world_finish(&w);
}

static void test_memory_limit(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.params.store = LR_STORE_YES;
    w.params.max_memory_bytes = 1000;
    assert_null(create(&w));
    assert_int_equal(w.log.status, LR_FAILED);
    assert_non_null(strstr(w.log.error, "needs an estimated"));
    assert_non_null(strstr(w.log.error, "limit of 1000 bytes: raise the memory limit"));
    w.params.store = LR_STORE_AUTO; /* quietly not kept */
    w.log.error[0] = '\0';
    lr_operator *op = create(&w);
    assert_non_null(op);
    assert_false(lr_operator_get_info(op)->stored);
    assert_string_equal(w.log.error, "");
    assert_int_equal(w.log.num_warnings, 0);
    lr_operator_destroy(op);
    w.params.max_memory_bytes = 0;
    op = create(&w);
    assert_non_null(op);
    const lr_operator_info *info = lr_operator_get_info(op);
    assert_true(info->stored);
    int64_t elements = 0;
    for (int64_t k = 0; k < info->num_lors * info->num_voxels; k++)
        elements += fake_element(k % info->num_lors, k / info->num_lors) > 0.0;
    assert_int_equal(info->num_elements, elements);
    assert_true(info->memory_bytes >= 8 * elements);
    lr_operator_destroy(op);
    world_finish(&w);
}

/* The estimate fits, the matrix does not: found out on the way. */
static lr_status swelling_rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    (void)self;
    int64_t lor[400];
    double probability[400];
    for (int64_t row = wanted->begin; row < wanted->end; row++) {
        lr_row out = {.row = row, .lor = lor, .probability = probability};
        const int64_t count = wanted->end - wanted->begin == 1 ? 1 : 400;
        for (; out.count < count; out.count++) {
            lor[out.count] = out.count;
            probability[out.count] = 0.25;
        }
        const lr_status status = sink->take(sink->user, &out);
        if (status != LR_OK) return status;
    }
    return LR_OK;
}

static void destroy_nothing(void *self)
{
    (void)self;
}

static lr_status swelling_create(const struct lr_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {.name = "swelling", .rows = swelling_rows, .destroy = destroy_nothing};
    (void)params;
    backend->fns = &fns;
    return LR_OK;
}

static void test_a_matrix_larger_than_estimated(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.params.backend = "swelling";
    const struct lr_backend_choice swelling = {.name = "swelling", .create = swelling_create};
    w.params.max_memory_bytes = 100000; /* estimated 3 KB, really 670 KB */
    w.params.store = LR_STORE_YES;
    assert_null(lr_operator_create_among(&w.params, &swelling, 1));
    assert_int_equal(w.log.status, LR_FAILED);
    assert_non_null(strstr(w.log.error, "a part of it already takes"));
    w.params.store = LR_STORE_AUTO;
    w.log.error[0] = '\0';
    lr_operator *op = lr_operator_create_among(&w.params, &swelling, 1);
    assert_non_null(op);
    assert_false(lr_operator_get_info(op)->stored);
    assert_string_equal(w.log.error, "");
    lr_operator_destroy(op);
    world_finish(&w);
}

static lr_status count_rows(void *user, const lr_row *row)
{
    int64_t *next = user;
    assert_int_equal(row->row, (*next)++);
    return LR_OK;
}

static void test_cancelling(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    float image[6 * 7 * 5] = {0}, data[400] = {0};
    int64_t next = 0;
    const lr_row_sink sink = {count_rows, &next};
    lr_operator *op = create(&w);
    assert_non_null(op);
    w.cancel_at = w.num_reports + 1;
    assert_int_equal(array_forward(op, image, data), LR_CANCELLED);
    assert_int_equal(array_back(op, data, image), LR_CANCELLED);
    assert_int_equal(array_sensitivity(op, image), LR_CANCELLED);
    w.cancel_at = w.num_reports + 3;
    assert_int_equal(lr_operator_rows(op, 0, 20, &sink), LR_CANCELLED);
    assert_int_equal(next, 3);
    w.cancel_at = w.num_reports + 1; /* the backend is heard again */
    assert_int_equal(array_forward(op, image, data), LR_CANCELLED);
    w.cancel_at = 0;
    assert_int_equal(array_sensitivity(op, image), LR_OK); /* as if nothing had happened */
    lr_operator_destroy(op);
    w.params.store = LR_STORE_YES;
    w.cancel_at = w.num_reports + 60; /* beyond the 48 sampled rows, within the 210 */
    assert_null(create(&w));
    assert_string_equal(w.log.error, ""); /* cancelling is no failure */
    w.cancel_at = 0;
    op = create(&w);
    assert_non_null(op);
    w.cancel_at = w.num_reports + 1;
    assert_int_equal(array_forward(op, image, data), LR_CANCELLED);
    lr_operator_destroy(op);
    world_finish(&w);
}

static void test_rows_and_pictures_are_checked(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    int64_t next = 0;
    const lr_row_sink sink = {count_rows, &next};
    const double points[2][3] = {{0, 0, 0}, {0, NAN, 0}};
    lr_pixel pixels[80];
    lr_operator *op = create(&w);
    assert_non_null(op);
    assert_int_equal(lr_operator_rows(op, -1, 3, &sink), LR_USAGE);
    assert_int_equal(lr_operator_rows(op, 5, 4, &sink), LR_USAGE);
    assert_int_equal(lr_operator_rows(op, 0, 211, &sink), LR_USAGE);
    assert_int_equal(lr_operator_rows(op, 0, 2, NULL), LR_USAGE);
    assert_int_equal(lr_operator_rows(op, 210, 210, &sink), LR_OK);
    assert_int_equal(next, 0);
    assert_int_equal(lr_operator_rows(op, 0, 210, &sink), LR_OK);
    assert_int_equal(next, 210);
    assert_int_equal(lr_operator_point_rows(op, points, 2, &sink), LR_BAD_INPUT);
    assert_non_null(strstr(w.log.error, "point 1"));
    assert_int_equal(lr_operator_picture(op, points[0], 0, pixels), LR_USAGE); /* has none */
    lr_operator_destroy(op);
    world_finish(&w);
}

static void test_one_warning_beyond_the_detectors(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    lr_grid grid = lr_grid_centred((const int[3]){1, 1, 3}, (const double[3]){1, 1, 10});
    w.params.grid = &grid;
    lr_operator *op = create(&w);
    assert_non_null(op);
    assert_int_equal(w.log.num_warnings, 1);
    assert_non_null(strstr(w.log.warning, "2 of the grid's 3 voxels"));
    lr_operator_destroy(op);
    grid.origin_mm[2] = 50.0;
    assert_null(create(&w));
    assert_int_equal(w.log.status, LR_BAD_INPUT);
    lr_operator_destroy(NULL);
    world_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_parameters_are_refused),
        cmocka_unit_test(test_bad_attenuation_is_refused),
        cmocka_unit_test(test_backend_names),
        cmocka_unit_test(test_auto_falls_back_without_a_device_only),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_precisions_meet),
        cmocka_unit_test(test_values_that_are_not_finite),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_a_matrix_larger_than_estimated),
        cmocka_unit_test(test_cancelling),
        cmocka_unit_test(test_rows_and_pictures_are_checked),
        cmocka_unit_test(test_one_warning_beyond_the_detectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
