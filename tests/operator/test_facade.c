/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Tests of the operator's public functions with made-up backends: which parameters are accepted, refused, replaced by
 * defaults or converted, and which backends are chosen. */
#include "fixtures.h"

#include "made_up_backends.h"

static struct world {
    struct fixture fixture;
    struct test_log log;
    lr_operator_params params;
    double num_reports, cancel_at; /* cancel_at 0 = never */
} w;

static bool count_report(void *user, const char *what, double done, double total)
{
    assert_true(what != NULL && done >= 0.0 && done <= total);
    w.num_reports++;
    return w.cancel_at == 0.0 || w.num_reports < w.cancel_at;
}

static int set_up(void **state)
{
    static const lr_progress progress = {count_report, NULL};
    w = (struct world){.fixture = kept_fixture(FIXTURE_OPPOSED)};
    test_log_init(&w.log);
    w.params = fixture_params(&w.fixture, "fake", &w.log.log);
    w.params.progress = &progress;
    return 0;
}

static const struct lr_backend_choice fakes[] = {{.name = "fake", .create = fake_float_create},
                                                 {.name = "fake64", .has_exact = true, .create = fake_double_create}};

static lr_operator *create(void)
{
    w.log.status = LR_OK;
    w.log.error[0] = '\0';
    return lr_operator_create_among(&w.params, fakes, 2);
}

static void expect_refusal(lr_status status, const char *words)
{
    assert_none(create(), status, &w.log, words);
    w.params = fixture_params(&w.fixture, "fake", &w.log.log);
}

static void test_bad_parameters_are_refused(void **state)
{
    lr_grid grid = w.fixture.grid;
    grid.size[1] = 0;
    const struct {
        lr_operator_params params;
        const char *words;
    } cases[] = {{{.lors = NULL, .grid = &w.fixture.grid}, "needs lors"},
                 {{.lors = w.fixture.lors}, "needs a grid"},
                 {{.mode = (lr_mode)7}, "mode 7"},
                 {{.store = (lr_store)9}, "store 9"},
                 {{.rays = -1}, "rays = -1"},
                 {{.samples = {1, -2, 1}}, "samples = -2 along y"},
                 {{.samples = {2000000000, 2000000000, 2000000000}}, "sample points per voxel"},
                 {{.mu_steps = -1}, "-1 steps"},
                 {{.threads = -1}, "threads = -1"},
                 {{.device = -3}, "device = -3"},
                 {{.max_memory_bytes = -1}, "memory limit of -1"},
                 {{.lors = w.fixture.lors, .grid = &grid}, ""}};
    for (int k = 0; k < length_of(cases); k++) {
        w.params = cases[k].params;
        if (w.params.lors == NULL && w.params.grid == NULL) {
            w.params.lors = w.fixture.lors;
            w.params.grid = &w.fixture.grid;
        }
        w.params.backend = "fake";
        w.params.log = &w.log.log;
        assert_null(create());
        assert_int_not_equal(w.log.status, LR_OK);
        if (cases[k].words[0] != '\0') assert_error(&w.log, LR_USAGE, cases[k].words);
    }
}

static void test_bad_attenuation_is_refused(void **state)
{
    float values[8] = {0.0096f, 0.0096f, 0, 0, 0, 0, 0, 0};
    const lr_image mu = {lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){9, 9, 9}), values};
    w.params.mu = &mu;
    keep(create());
    assert_int_equal(w.log.num_warnings, 0);
    spoilt(values[6] = -1e-3f, expect_refusal(LR_BAD_INPUT, "voxel (0, 1, 1)"));
    values[6] = NAN;
    spoilt(w.params.mu = &mu, expect_refusal(LR_BAD_INPUT, "voxel (0, 1, 1)"));
    values[6] = 0.096f; /* water in 1/cm */
    w.params.mu = &mu;
    keep(create());
    assert_int_equal(w.log.num_warnings, 1);
    assert_says(w.log.warning, "1/cm");
}

static void test_backend_names(void **state)
{
    spoilt(w.params.backend = "abacus", expect_refusal(LR_USAGE, "no backend \"abacus\": use auto, fake, fake64"));
    w.params.backend = "fake";
    spoilt(w.params.mode = LR_MODE_EXACT, expect_refusal(LR_USAGE, "use backend fake64"));
}

static void test_defaults(void **state)
{
    float values[8] = {0};
    const lr_image mu = {lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){9, 10, 11}), values};
    lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){4.3, 4.4, 8.7});
    w.params =
        (lr_operator_params){.lors = w.fixture.lors, .grid = &grid, .backend = "fake", .mu = &mu, .log = &w.log.log};
    const lr_operator_info *info = lr_operator_get_info(keep(create()));
    assert_int_equal(info->rays, 4);
    /* An even number of points, at most half of the pitch of 4.3 mm apart. */
    assert_ints(info->samples[0], 2, info->samples[1], 4);
    assert_int_equal(info->samples[2], 8); /* two more, because rings line up along z */
    /* corners are 80 mm apart across, 21.5 mm along u, 17.2 mm along v: 84.6 mm in steps of 9 mm */
    assert_int_equal(info->mu_steps, 10);
    assert_true(info->threads >= 1);
    assert_ints(info->num_voxels, 8, info->num_lors, 400);
    assert_all(info->stored, info->lors == w.fixture.lors);
}

static void test_precisions_meet(void **state)
{
    for (int k = 0; k < 4; k++) {
        /* Every combination of the caller's and the backend's precision, stored and not. */
        const lr_store store = k < 2 ? LR_STORE_NO : LR_STORE_YES;
        w.params.backend = (k % 2 ? "fake64" : "fake");
        w.params.store = store;
        lr_operator *op = keep(create());
        const int64_t nv = lr_operator_get_info(op)->num_voxels, nl = lr_operator_get_info(op)->num_lors;
        assert_int_equal(lr_operator_get_info(op)->stored, store == LR_STORE_YES);
        double *image = kept_doubles(nv), *data = kept_doubles(nl);
        float *image32 = kept_floats(nv), *data32 = kept_floats(nl);
        for (int64_t v = 0; v < nv; v++) {
            image32[v] = (float)(v % 5);
            image[v] = image32[v];
        }
        assert_ok(array_forward(op, image32, data32), array_forward_f64(op, image, data));
        for (int64_t l = 0; l < nl; l++) {
            double expected = 0.0;
            for (int64_t v = 0; v < nv; v++) expected += fake_element(l, v) * (double)(v % 5);
            assert_close(data[l], expected, 2e-7); /* elements or results are floats */
            assert_close(data32[l], expected, 2e-7);
            data[l] = data32[l] = (float)(l % 3);
        }
        assert_ok(array_back(op, data32, image32), array_back_f64(op, data, image));
        for (int64_t v = 0; v < nv; v++) {
            double expected = 0.0;
            for (int64_t l = 0; l < nl; l++) expected += fake_element(l, v) * (double)(l % 3);
            assert_close(image[v], expected, 2e-7);
            assert_close(image32[v], expected, 2e-7);
        }
    }
}

static void test_values_that_are_not_finite(void **state)
{
    lr_operator *op = keep(create());
    float image[6 * 7 * 5] = {0}, data[400] = {0};
    double large[6 * 7 * 5] = {0}, data64[400] = {0};
    image[1 + 6 * (2 + 7 * 3)] = NAN;
    assert_fails(array_forward(op, image, data), LR_BAD_INPUT, &w.log, "voxel (1, 2, 3)");
    data[7 + 20 * 6] = INFINITY; /* crystal 6 = (1, 1) of module 0, 7 = (2, 1) of module 1 */
    assert_fails(array_back(op, data, image), LR_BAD_INPUT, &w.log,
                 "LOR 127 (crystal 1, 1 of module 0 with crystal 2, 1 of module 1)");
    large[0] = 1e300; /* finite, but not in a float backend */
    assert_ints(array_forward_f64(op, large, data64), LR_BAD_INPUT, array_forward(op, NULL, data), LR_USAGE);
    assert_int_equal(array_back(op, data, NULL), LR_USAGE);
}

static void test_memory_limit(void **state)
{
    w.params.store = LR_STORE_YES;
    w.params.max_memory_bytes = 1000;
    assert_null(create());
    assert_says(w.log.error, "needs an estimated");
    assert_error(&w.log, LR_FAILED, "limit of 1000 bytes: raise the memory limit");
    w.params.store = LR_STORE_AUTO; /* not kept, without a message */
    w.log.error[0] = '\0';
    lr_operator *op = keep(create());
    assert_false(lr_operator_get_info(op)->stored);
    assert_string_equal(w.log.error, "");
    assert_int_equal(w.log.num_warnings, 0);
    w.params.max_memory_bytes = 0;
    op = keep(create());
    const lr_operator_info *info = lr_operator_get_info(op);
    assert_true(info->stored);
    int64_t elements = 0;
    for (int64_t k = 0; k < info->num_lors * info->num_voxels; k++)
        elements += fake_element(k % info->num_lors, k / info->num_lors) > 0.0;
    assert_int_equal(info->num_elements, elements);
    assert_true(info->memory_bytes >= 8 * elements);
}

/* Rows whose matrix is larger than estimated: the estimate fits into memory, the matrix does not. */
static lr_status swelling_rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
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

static void destroy_nothing(void *self) {}

static lr_status swelling_create(const struct lr_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {.name = "swelling", .rows = swelling_rows, .destroy = destroy_nothing};
    backend->fns = &fns;
    return LR_OK;
}

static void test_a_matrix_larger_than_estimated(void **state)
{
    w.params.backend = "swelling";
    const struct lr_backend_choice swelling = {.name = "swelling", .create = swelling_create};
    w.params.max_memory_bytes = 100000; /* estimate 3 KB, in fact 670 KB */
    w.params.store = LR_STORE_YES;
    assert_none(lr_operator_create_among(&w.params, &swelling, 1), LR_FAILED, &w.log, "a part of it already takes");
    w.params.store = LR_STORE_AUTO;
    w.log.error[0] = '\0';
    assert_false(lr_operator_get_info(keep(lr_operator_create_among(&w.params, &swelling, 1)))->stored);
    assert_string_equal(w.log.error, "");
}

static lr_status count_rows(void *user, const lr_row *row)
{
    assert_int_equal(row->row, (*(int64_t *)user)++);
    return LR_OK;
}

static void test_cancelling(void **state)
{
    float image[6 * 7 * 5] = {0}, data[400] = {0};
    int64_t next = 0;
    const lr_row_sink sink = {count_rows, &next};
    lr_operator *op = keep(create());
    w.cancel_at = w.num_reports + 1;
    assert_ints(array_forward(op, image, data), LR_CANCELLED, array_back(op, data, image), LR_CANCELLED);
    assert_int_equal(array_sensitivity(op, image), LR_CANCELLED);
    w.cancel_at = w.num_reports + 3;
    assert_ints(lr_operator_rows(op, 0, 20, &sink), LR_CANCELLED, next, 3);
    w.cancel_at = w.num_reports + 1; /* the backend's reports arrive again */
    assert_int_equal(array_forward(op, image, data), LR_CANCELLED);
    w.cancel_at = 0;
    assert_ok(array_sensitivity(op, image)); /* the cancelled call has no effect */
    w.params.store = LR_STORE_YES;
    w.cancel_at = w.num_reports + 60; /* after the 48 sampled rows, before the end of the 210 */
    assert_null(create());
    assert_string_equal(w.log.error, ""); /* a cancellation is not an error */
    w.cancel_at = 0;
    op = keep(create());
    w.cancel_at = w.num_reports + 1;
    assert_int_equal(array_forward(op, image, data), LR_CANCELLED);
}

static void test_rows_and_pictures_are_checked(void **state)
{
    int64_t next = 0;
    const lr_row_sink sink = {count_rows, &next};
    const double points[2][3] = {{0, 0, 0}, {0, NAN, 0}};
    lr_pixel pixels[80];
    lr_operator *op = keep(create());
    assert_ints(lr_operator_rows(op, -1, 3, &sink), LR_USAGE, lr_operator_rows(op, 5, 4, &sink), LR_USAGE);
    assert_ints(lr_operator_rows(op, 0, 211, &sink), LR_USAGE, lr_operator_rows(op, 0, 2, NULL), LR_USAGE);
    assert_ok(lr_operator_rows(op, 210, 210, &sink));
    assert_int_equal(next, 0);
    assert_ok(lr_operator_rows(op, 0, 210, &sink));
    assert_int_equal(next, 210);
    assert_fails(lr_operator_point_rows(op, points, 2, &sink), LR_BAD_INPUT, &w.log, "point 1");
    assert_int_equal(lr_operator_picture(op, points[0], 0, pixels), LR_USAGE); /* this backend has none */
}

static void test_one_warning_beyond_the_detectors(void **state)
{
    lr_grid grid = lr_grid_centred((const int[3]){1, 1, 3}, (const double[3]){1, 1, 10});
    w.params.grid = &grid;
    keep(create());
    assert_int_equal(w.log.num_warnings, 1);
    assert_says(w.log.warning, "2 of the grid's 3 voxels");
    grid.origin_mm[2] = 50.0;
    assert_null(create());
    assert_int_equal(w.log.status, LR_BAD_INPUT);
    lr_operator_destroy(NULL);
}

test_main("operator_test_facade",
          CASES_SET_UP(test_bad_parameters_are_refused, test_bad_attenuation_is_refused, test_backend_names,
                       test_defaults, test_precisions_meet, test_values_that_are_not_finite, test_memory_limit,
                       test_a_matrix_larger_than_estimated, test_cancelling, test_rows_and_pictures_are_checked,
                       test_one_warning_beyond_the_detectors))
