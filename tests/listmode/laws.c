/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Laws of projections in list mode, for the backend that argv[1] names; argv[2]: the only test to run. */
#define COUNT 1800
#include "listmode/native/kernels.h"
#include "listmode/settings.h"
#include "listmode/usual.h"

typedef void case_fn(const lr_listmode_params *params);

/* Checks every kernel, without time of flight and with a resolution of 400 ps. */
static void each_of(case_fn *check)
{
    const lr_events_info info = tof_info(400);
    for (int k = 0; k < 2 * NUM_CASES; k++) {
        const lr_listmode_params params = params_of(k / 2, k % 2 ? &info : NULL);
        const int before = num_kept();
        check(&params);
        destroy_kept_since(before);
    }
}

static void each_case(void **state)
{
    each_of((case_fn *)given_check(state));
}

static double allowed(void)
{
    return test_backend_is("cpu") ? 1e-12 : 1e-6;
}

/* Returns true if sums have a fixed order. CUDA's blocks add in any order, and slabs of slices depend on the events. */
static bool is_ordered(void)
{
    return !test_backend_is("cuda");
}

/* Largest relative difference of sums in another order. CUDA adds integers, scaled so that the largest sum of a
 * block is 2^31. */
static double rounding(void)
{
    return is_ordered() ? allowed() : 3e-6;
}

/* --- back is the transpose of forward --- */

static void test_adjoint(const lr_listmode_params *params)
{
    const struct both both = case_both(params, test_backend, NULL);
    expect_adjoint(&both, allowed());
}

/* --- other backends have the elements of the reference --- */

static void check_reference(const lr_listmode_params *params)
{
    const struct both found = case_both(params, test_backend, NULL), expected = case_both(params, "cpu", NULL);
    const double rms = sqrt(dot_product(expected.values, expected.values, COUNT) / COUNT);
    expect_both(&found, &expected, 1e-5, 1e-5);
    for (int64_t k = 0; k < COUNT; k++) assert_true(fabs(found.values[k] - expected.values[k]) <= 1e-5 * rms);
}

static void test_reference(void **state)
{
    /* FWHM and bins in mm: slices are shorter than either one, or longer than both. */
    static const double widths_mm[4][2] = {{60, 12}, {60, 240}, {6, 24}, {1, 2}};
    if (test_backend_is("cpu")) return;
    each_of(check_reference);
    for (int k = 0; k < 4 * NUM_CASES; k++) {
        lr_events_info info = tof_info(widths_mm[k / NUM_CASES][0] / 0.149896229);
        info.tof_bin_mm = widths_mm[k / NUM_CASES][1];
        const lr_listmode_params params = params_of(k % NUM_CASES, &info);
        check_reference(&params);
    }
}

/* --- the same bits for any number of threads, and on all instruction sets that this processor has --- */

static void expect_same_bits(const struct both *a, const struct both *b)
{
    assert_memory_equal(a->values, b->values, COUNT * sizeof(double));
    if (is_ordered()) assert_memory_equal(a->image, b->image, (size_t)a->num_voxels * sizeof(double));
}

static void test_threads(const lr_listmode_params *params)
{
    lr_listmode_params more = *params;
    more.threads = 5;
    const struct both together = case_both(&more, test_backend, NULL);
    more.threads = 1;
    const struct both alone = case_both(&more, test_backend, NULL);
    expect_same_bits(&together, &alone);
    assert_true(l2_apart(together.image, alone.image, alone.num_voxels) <= rounding());
}

static void check_kernels(const lr_listmode_params *params)
{
    struct both both[2];
    for (int k = 0; k < 2; k++) {
        struct case_backend *open = case_open(params, "native");
        ((struct lr_native_listmode *)open->backend.self)->kernels = lr_native_listmode_kernels_at(k);
        both[k] = case_both_of(open, NULL);
    }
    assert_true(dot_product(both[0].values, both[0].values, COUNT) > 0);
    expect_same_bits(&both[0], &both[1]);
}

static void test_instruction_sets(void **state)
{
    if (!test_backend_is("native")) return;
    if (lr_native_listmode_kernels_at(1) == NULL) {
        print_message("one instruction set only\n");
        skip();
    }
    each_of(check_kernels);
}

/* --- the order of events changes nothing but rounding --- */

static void test_order(const lr_listmode_params *params)
{
    uint64_t seed = 11;
    lr_event *shuffled = kept(COUNT, sizeof(*shuffled));
    int *from = kept(COUNT, sizeof(*from));
    double *y = kept_doubles(COUNT);
    for (int k = 0; k < COUNT; k++) {
        const int other = (int)(test_random(&seed) * (k + 1));
        from[k] = from[other];
        from[other] = k;
    }
    const struct both plain = case_both(params, test_backend, NULL);
    for (int k = 0; k < COUNT; k++) {
        shuffled[k] = params->events[from[k]];
        y[k] = plain.y[from[k]];
    }
    lr_listmode_params other = *params;
    other.events = shuffled;
    other.num_ranges = 7;
    const struct both mixed = case_both(&other, test_backend, y);
    const double rms = sqrt(dot_product(plain.values, plain.values, COUNT) / COUNT);
    for (int k = 0; k < COUNT; k++)
        assert_true(fabs(mixed.values[k] - plain.values[from[k]]) <= (is_ordered() ? 0.0 : 1e-6 * rms));
    assert_true(l2_apart(mixed.image, plain.image, plain.num_voxels) < rounding());
}

/* --- values of all sizes --- */

/* An event that hardly sees the image has a nearly infinite ratio. Contributions of other events must not be lost. */
static void test_outlier(const lr_listmode_params *params)
{
    enum { ALONE, OTHERS, ALL, NUM };
    const struct case_backend *open = case_open(params, test_backend);
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    double *images[NUM], *y = kept_equal_doubles(COUNT, 1);
    for (int k = 0; k < NUM; k++) {
        images[k] = kept_doubles(num_voxels);
        for (int e = 0; e < COUNT; e++) y[e] = e == 0 ? (k != OTHERS ? 1e20 : 0) : (k != ALONE ? 1 : 0);
        case_back(open, NULL, y, images[k]);
    }
    const double most = largest_number(images[OTHERS], num_voxels);
    for (int64_t v = 0; v < num_voxels; v++)
        if (images[ALONE][v] == 0) assert_true(fabs(images[ALL][v] - images[OTHERS][v]) < 1e-5 * most);
}

/* Back-projects with the reference, with the width of the tube changed by this fraction. */
static double *back_of_reference(const lr_listmode_params *params, double change, const double *y)
{
    const struct case_backend *reference = case_open(params, "cpu");
    double *image = kept_doubles(lr_grid_num_voxels(&grid));
    lr_listmode_params with = *params;
    if (params->kernel == LR_LISTMODE_TUBE && change != 0) {
        with.tube = reference->model.tube;
        with.tube.width_mm *= 1 + change;
        reference = case_open(&with, "cpu");
    }
    case_back(reference, NULL, y, image);
    return image;
}

/* Factors from 1 down to 1e-4, like those of attenuation, with few events per voxel and with many: sums are as
 * accurate as sums of floats. At the edge of a tube, where shares fall to 0, rounding of the distance matters much,
 * so values must lie between those of a slightly thinner and a slightly wider tube. A table's shares are less
 * accurate there, so it is not tested. */
static void test_factors(const lr_listmode_params *params)
{
    if (params->tube.table != NULL) return;
    for (int few = 0; few < 2; few++) {
        lr_listmode_params with = *params;
        uint64_t seed = 15;
        with.count = few ? 240 : COUNT;
        const struct case_backend *open = case_open(&with, test_backend);
        const int64_t num_voxels = lr_grid_num_voxels(&grid);
        double *y = kept_random_singles(with.count, 0, 1, &seed), *found = kept_doubles(num_voxels), *expected[3];
        for (int64_t k = 0; k < with.count; k++) y[k] = pow(10, -4 * y[k]);
        case_back(open, NULL, y, found);
        for (int k = 0; k < 3; k++) expected[k] = back_of_reference(&with, (k - 1) * 3e-7, y);
        const double most = largest_number(expected[1], num_voxels);
        double *nearest = kept_doubles(num_voxels);
        for (int64_t v = 0; v < num_voxels; v++) {
            const double low = fmin(expected[0][v], expected[2][v]), high = fmax(expected[0][v], expected[2][v]);
            const double error = 1e-5 * high + 2e-6 * most;
            nearest[v] = fmin(fmax(found[v], low), high);
            if (found[v] >= low - error && found[v] <= high + error) continue;
            fail_msg("kernel %d, %lld events, %s time of flight: voxel %lld has %.9g in place of %.9g, at most %.9g",
                     (int)params->kernel, (long long)with.count, params->info != NULL ? "with" : "without",
                     (long long)v, found[v], expected[1][v], most);
        }
        const double apart = l2_apart(found, nearest, num_voxels);
        if (!(apart < (is_ordered() ? 3e-7 : 3e-6)))
            fail_msg("kernel %d, %lld events: %.3g apart", (int)params->kernel, (long long)with.count, apart);
    }
}

/* --- parts: ranges, and single events --- */

/* Checks that the values of a part equal those of all events, event by event, and checks the part's back-projection.
 * CUDA's warps add the shares of a slice in an order that depends on all of their lines. */
static void check_part(const struct case_backend *open, const lr_selection *part, const int64_t *numbers)
{
    const double neighbours = is_ordered() ? 0 : 1e-6;
    const struct both some = case_both_of(open, part);
    double *all = kept_doubles(COUNT), *y_all = kept_doubles(COUNT), *image = kept_doubles(some.num_voxels);
    case_forward(open, NULL, some.x, all);
    for (int64_t k = 0; k < some.count; k++) {
        assert_true(fabs(some.values[k] - all[numbers[k]]) <= neighbours * fabs(all[numbers[k]]));
        y_all[numbers[k]] = some.y[k];
    }
    case_back(open, NULL, y_all, image);
    assert_true(l2_apart(some.image, image, some.num_voxels) < rounding());
    for (int64_t k = 0; k < some.count; k++) y_all[numbers[k]] = 1.0;
    case_back(open, NULL, y_all, image);
    case_back(open, part, NULL, some.image);
    assert_true(l2_apart(some.image, image, some.num_voxels) < rounding());
}

static void test_parts(const lr_listmode_params *params)
{
    static const int64_t uneven[6] = {0, 400, 400, 700, COUNT - 1, COUNT};
    static const int32_t ranges[3] = {0, 1, 3};
    lr_listmode_params with = *params;
    with.ranges = uneven;
    with.num_ranges = 5;
    const struct case_backend *open = case_open(&with, test_backend);
    int64_t *numbers = kept(COUNT, sizeof(*numbers)), count = 0;
    for (int64_t k = 0; k < COUNT - 1; k++)
        if (k < 400 || k >= 700) numbers[count++] = k;
    check_part(open, &(lr_selection){.pairs = ranges, .num_pairs = 3}, numbers);
    count = 0;
    for (int64_t k = 390; k < COUNT; k += 3) numbers[count++] = k;
    check_part(open, &(lr_selection){.lors = numbers, .num_lors = count}, numbers);
}

/* --- rows: the events that see a voxel --- */

static void check_rows(const lr_listmode_params *params)
{
    uint64_t seed = 13;
    lr_listmode_params with = *params;
    with.num_ranges = 3;
    const struct case_backend *open = case_open(&with, test_backend);
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    const struct lr_rows wanted = {.grid = &grid, .samples = {1, 1, 1}, .end = num_voxels};
    struct rows_seen seen = {.x = kept_random_singles(num_voxels, 0, 1, &seed), .sums = kept_doubles(COUNT)};
    double *values = kept_doubles(COUNT);
    assert_ok(open->backend.fns->rows(open->backend.self, &wanted, &(lr_row_sink){see_row, &seen}));
    case_forward(open, NULL, seen.x, values);
    assert_int_equal(seen.next, num_voxels);
    assert_all(seen.elements > 0, l2_apart(seen.sums, values, COUNT) < allowed());
}

static void test_rows(void **state)
{
    const double point[1][3] = {{0}};
    const struct lr_rows wanted = {.points_mm = point, .end = 1};
    const lr_listmode_params params = params_of(CASE_LINE, NULL);
    each_of(check_rows);
    const struct case_backend *open = case_open(&params, test_backend);
    assert_int_equal(open->backend.fns->rows(open->backend.self, &wanted, &(lr_row_sink){see_row, NULL}), LR_USAGE);
}

/* --- progress: reports on the work of a call, and cancelling --- */

struct reports {
    int count, stop_at; /* -1 = never */
    double before;
};

static bool take_report(void *user, const char *what, double done, double total)
{
    struct reports *reports = user;
    assert_string_equal(what, "back-projecting");
    assert_true(total == COUNT / 3 && done >= reports->before && done < total);
    reports->before = done;
    return reports->count++ != reports->stop_at;
}

static void test_progress(void **state)
{
    const bool is_found = getenv("LR_TEST_LISTMODE_LINES") != NULL;
    const bool has_launches = test_backend_is("cuda") || (test_backend_is("compute") && !is_found);
    struct reports reports = {.stop_at = -1};
    const lr_progress progress = {take_report, &reports};
    const lr_selection part = {.pairs = (const int32_t[1]){2}, .num_pairs = 1};
    lr_listmode_params params = params_of(CASE_LINE, NULL);
    params.num_ranges = 3;
    struct case_backend *open = case_open(&params, test_backend);
    struct lr_backend *backend = &open->backend;
    lr_vector image = case_vector(open, lr_grid_num_voxels(&grid), NULL);
    open->params.progress = &progress;
    backend->fns->destroy(backend->self);
    assert_ok(case_create(test_backend, &open->params, backend));
    assert_ok(backend->fns->project(backend->self, false, &part, NULL, &image));
    assert_int_equal(reports.count, has_launches ? 1 : 3); /* one per launch, or one per axis's group */
    reports = (struct reports){.stop_at = has_launches ? 0 : 1};
    assert_int_equal(backend->fns->project(backend->self, false, &part, NULL, &image), LR_CANCELLED);
    assert_int_equal(reports.count, has_launches ? 1 : 2);
}

case_main("cpu", set_up, CASE_OF(each_case, test_adjoint), CASE(test_reference), CASE_OF(each_case, test_threads),
          CASE(test_instruction_sets), CASE_OF(each_case, test_order), CASE_OF(each_case, test_parts), CASE(test_rows),
          CASE(test_progress), CASE_OF(each_case, test_outlier), CASE_OF(each_case, test_factors))
