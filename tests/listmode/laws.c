/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Laws of projections of list mode, for the backend that argv[1] names; argv[2]: the only test to run. */
#include "listmode/cases.h"
#include "listmode/settings.h"

enum { COUNT = 3000 };

static const char *backend;
static lr_scanner *scanner;
static lr_lors lors; /* of the scanner, which is all that list mode asks of them */
static lr_grid grid;
static lr_event *events;

static lr_events_info tof_info(double resolution_ps)
{
    return (lr_events_info){.has_tof = true, .tof_resolution_ps = resolution_ps};
}

static lr_listmode_params params_of(int model, const lr_events_info *info)
{
    lr_listmode_params params = {
        .lors = &lors, .grid = &grid, .events = events, .count = COUNT, .info = info, .threads = 2};
    case_kernel(&params, (enum case_model)model);
    return params;
}

static int setup(void **state)
{
    uint64_t seed = test_seed();
    scanner = case_scanner();
    lors = (lr_lors){.scanner = scanner};
    grid = case_grid();
    events = case_events(COUNT, &seed);
    return 0;
}

static int teardown(void **state)
{
    free(events);
    lr_scanner_destroy(scanner);
    return 0;
}

typedef void case_fn(const lr_listmode_params *params);

/* Every kernel, without time of flight and with a resolution of 400 ps. */
static void each_case(case_fn *check)
{
    const lr_events_info info = tof_info(400);
    for (int model = 0; model < NUM_CASES; model++) {
        lr_listmode_params params = params_of(model, NULL);
        check(&params);
        params = params_of(model, &info);
        check(&params);
    }
}

static double allowed(void)
{
    return strcmp(backend, "cpu") == 0 ? 1e-12 : 1e-6;
}

/* Returns true if sums have a fixed order. CUDA's blocks add in any order, and the slabs of slices depend on the
 * events. */
static bool is_ordered(void)
{
    return strcmp(backend, "cuda") != 0;
}

/* Largest relative difference of sums in another order. CUDA adds integers, scaled so that the largest sum of a
 * block is 2^31. */
static double rounding(void)
{
    return is_ordered() ? allowed() : 3e-6;
}

/* --- back is the transpose of forward --- */

static void check_adjoint(const lr_listmode_params *params)
{
    struct case_backend open;
    uint64_t seed = 7;
    case_open(&open, params, backend);
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    double *x = case_random(num_voxels, &seed), *y = case_random(COUNT, &seed);
    double *ax = case_doubles(COUNT), *aty = case_doubles(num_voxels);
    case_forward(&open, NULL, x, ax);
    case_back(&open, NULL, y, aty);
    assert_true(case_dot(ax, ax, COUNT) > 0);
    assert_close(case_dot(ax, y, COUNT), case_dot(x, aty, num_voxels), allowed());
    free(x);
    free(y);
    free(ax);
    free(aty);
    case_close(&open);
}

static void test_adjoint(void **state)
{
    each_case(check_adjoint);
}

/* --- other backends have the elements of the reference --- */

static void check_reference(const lr_listmode_params *params)
{
    struct case_backend open, reference;
    uint64_t seed = 8;
    case_open(&open, params, backend);
    case_open(&reference, params, "cpu");
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    double *x = case_random(num_voxels, &seed), *y = case_random(COUNT, &seed);
    double *values[2] = {case_doubles(COUNT), case_doubles(COUNT)};
    double *images[2] = {case_doubles(num_voxels), case_doubles(num_voxels)};
    case_forward(&open, NULL, x, values[0]);
    case_forward(&reference, NULL, x, values[1]);
    case_back(&open, NULL, y, images[0]);
    case_back(&reference, NULL, y, images[1]);
    assert_true(case_difference(values[0], values[1], COUNT) < 1e-5);
    assert_true(case_difference(images[0], images[1], num_voxels) < 1e-5);
    const double rms = sqrt(case_dot(values[1], values[1], COUNT) / COUNT);
    for (int64_t k = 0; k < COUNT; k++) assert_true(fabs(values[0][k] - values[1][k]) <= 1e-5 * rms);
    for (int k = 0; k < 2; k++) {
        free(values[k]);
        free(images[k]);
    }
    free(x);
    free(y);
    case_close(&open);
    case_close(&reference);
}

static void test_reference(void **state)
{
    /* FWHM and bins in mm: slices short against either one, and long against both. */
    static const double widths_mm[4][2] = {{60, 12}, {60, 240}, {6, 24}, {1, 2}};
    if (strcmp(backend, "cpu") == 0) return;
    each_case(check_reference);
    for (int k = 0; k < 4 * NUM_CASES; k++) {
        lr_events_info info = tof_info(widths_mm[k / NUM_CASES][0] / 0.149896229);
        info.tof_bin_mm = widths_mm[k / NUM_CASES][1];
        const lr_listmode_params params = params_of(k % NUM_CASES, &info);
        check_reference(&params);
    }
}

/* --- the same bits for any number of threads --- */

static void project_both(const lr_listmode_params *params, double *values, double *image)
{
    struct case_backend open;
    uint64_t seed = 9;
    double *x = case_random(lr_grid_num_voxels(&grid), &seed), *y = case_random(COUNT, &seed);
    case_open(&open, params, backend);
    case_forward(&open, NULL, x, values);
    case_back(&open, NULL, y, image);
    case_close(&open);
    free(x);
    free(y);
}

static void check_threads(const lr_listmode_params *params)
{
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    double *values[2] = {case_doubles(COUNT), case_doubles(COUNT)};
    double *images[2] = {case_doubles(num_voxels), case_doubles(num_voxels)};
    for (int k = 0; k < 2; k++) {
        lr_listmode_params with = *params;
        with.threads = k == 0 ? 1 : 5;
        project_both(&with, values[k], images[k]);
    }
    assert_memory_equal(values[0], values[1], COUNT * sizeof(double));
    if (is_ordered()) assert_memory_equal(images[0], images[1], (size_t)num_voxels * sizeof(double));
    assert_true(case_difference(images[1], images[0], num_voxels) <= rounding());
    for (int k = 0; k < 2; k++) {
        free(values[k]);
        free(images[k]);
    }
}

static void test_threads(void **state)
{
    each_case(check_threads);
}

/* --- the order of events changes nothing but rounding --- */

static void check_order(const lr_listmode_params *params)
{
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    uint64_t seed = 11;
    lr_event *shuffled = malloc(COUNT * sizeof(*shuffled));
    int *from = malloc(COUNT * sizeof(*from));
    for (int k = 0; k < COUNT; k++) {
        const int other = (int)(test_random(&seed) * (k + 1));
        from[k] = from[other];
        from[other] = k;
    }
    for (int k = 0; k < COUNT; k++) shuffled[k] = params->events[from[k]];
    struct case_backend open[2];
    lr_listmode_params other = *params;
    other.events = shuffled;
    other.num_ranges = 7;
    case_open(&open[0], params, backend);
    case_open(&open[1], &other, backend);
    double *x = case_random(num_voxels, &seed), *y[2] = {case_random(COUNT, &seed), case_doubles(COUNT)};
    double *values[2] = {case_doubles(COUNT), case_doubles(COUNT)};
    double *images[2] = {case_doubles(num_voxels), case_doubles(num_voxels)};
    for (int k = 0; k < COUNT; k++) y[1][k] = y[0][from[k]];
    for (int k = 0; k < 2; k++) {
        case_forward(&open[k], NULL, x, values[k]);
        case_back(&open[k], NULL, y[k], images[k]);
    }
    const double rms = sqrt(case_dot(values[0], values[0], COUNT) / COUNT);
    for (int k = 0; k < COUNT; k++)
        assert_true(fabs(values[1][k] - values[0][from[k]]) <= (is_ordered() ? 0.0 : 1e-6 * rms));
    assert_true(case_difference(images[1], images[0], num_voxels) < rounding());
    for (int k = 0; k < 2; k++) {
        case_close(&open[k]);
        free(values[k]);
        free(images[k]);
        free(y[k]);
    }
    free(x);
    free(from);
    free(shuffled);
}

static void test_order(void **state)
{
    each_case(check_order);
}

/* --- values of all sizes --- */

/* An event that hardly sees the image has a nearly infinite ratio. The contributions of other events are not lost. */
static void check_outlier(const lr_listmode_params *params)
{
    enum { ALONE, OTHERS, ALL, NUM };
    const double huge = 1e20;
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    struct case_backend open;
    double *images[NUM], *y = case_ones(COUNT), most = 0;
    case_open(&open, params, backend);
    for (int k = 0; k < NUM; k++) {
        images[k] = case_doubles(num_voxels);
        for (int e = 0; e < COUNT; e++) y[e] = e == 0 ? (k != OTHERS ? huge : 0) : (k != ALONE ? 1 : 0);
        case_back(&open, NULL, y, images[k]);
    }
    for (int64_t v = 0; v < num_voxels; v++) most = fmax(most, images[OTHERS][v]);
    for (int64_t v = 0; v < num_voxels; v++)
        if (images[ALONE][v] == 0) assert_true(fabs(images[ALL][v] - images[OTHERS][v]) < 1e-5 * most);
    for (int k = 0; k < NUM; k++) free(images[k]);
    free(y);
    case_close(&open);
}

static void test_outlier(void **state)
{
    each_case(check_outlier);
}

/* Back-projects by the reference, with a tube whose width is changed by this share. */
static void back_of_reference(const lr_listmode_params *params, double change, const double *y, double *image)
{
    struct case_backend reference;
    lr_listmode_params with = *params;
    case_open(&reference, params, "cpu");
    if (params->kernel == LR_LISTMODE_TUBE && change != 0) {
        with.tube = reference.model.tube;
        with.tube.width_mm *= 1 + change;
        case_close(&reference);
        case_open(&reference, &with, "cpu");
    }
    case_back(&reference, NULL, y, image);
    case_close(&reference);
}

/* Factors from 1 down to 1e-4, as attenuation has them, of few events a voxel and of many: sums lose no more than
 * floats do. At the rim of a tube, where shares fall to 0, a rounding error of the distance counts for much: values lie
 * between those of a slightly thinner and a slightly wider tube. A table's shares are less right there. */
static void check_factors(const lr_listmode_params *params)
{
    for (int few = 0; few < 2; few++) {
        struct case_backend open;
        lr_listmode_params with = *params;
        uint64_t seed = 15;
        with.count = few ? 400 : COUNT;
        case_open(&open, &with, backend);
        const int64_t num_voxels = lr_grid_num_voxels(&grid);
        double *y = case_random(with.count, &seed), most = 0;
        double *found = case_doubles(num_voxels), *expected[3];
        for (int64_t k = 0; k < with.count; k++) y[k] = pow(10, -4 * y[k]);
        case_back(&open, NULL, y, found);
        for (int k = 0; k < 3; k++) {
            expected[k] = case_doubles(num_voxels);
            back_of_reference(&with, (k - 1) * 3e-7, y, expected[k]);
        }
        for (int64_t v = 0; v < num_voxels; v++) most = fmax(most, expected[1][v]);
        for (int64_t v = 0; v < num_voxels; v++) {
            const double low = fmin(expected[0][v], expected[2][v]), high = fmax(expected[0][v], expected[2][v]);
            const double rounding = 1e-5 * high + 2e-6 * most;
            if (found[v] >= low - rounding && found[v] <= high + rounding) continue;
            fail_msg("kernel %d, %lld events, %s time of flight: voxel %lld has %.9g in place of %.9g, at most %.9g",
                     (int)params->kernel, (long long)with.count, params->info != NULL ? "with" : "without",
                     (long long)v, found[v], expected[1][v], most);
        }
        const double difference = case_difference(found, expected[1], num_voxels);
        if (difference >= (is_ordered() ? 5e-7 : 3e-6))
            fail_msg("kernel %d, %lld events: %.3g apart", (int)params->kernel, (long long)with.count, difference);
        for (int k = 0; k < 3; k++) free(expected[k]);
        free(y);
        free(found);
        case_close(&open);
    }
}

static void test_factors(void **state)
{
    const lr_events_info info = tof_info(400);
    for (int model = 0; model < NUM_CASES; model++) {
        if (model == CASE_TABLE) continue;
        lr_listmode_params params = params_of(model, NULL);
        check_factors(&params);
        params = params_of(model, &info);
        check_factors(&params);
    }
}

/* --- parts: ranges, and single events --- */

/* Largest relative change of a value by the events that are projected with it. CUDA's warps add a slice's shares in
 * an order that depends on all of their lines. */
static double neighbours(void)
{
    return strcmp(backend, "cuda") == 0 ? 1e-6 : 0;
}

/* Checks that a part's values equal those of all events, event by event, and checks the part's back-projection. */
static void check_part(const struct case_backend *open, const lr_selection *part, const int64_t *numbers)
{
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    const int64_t count = lr_selection_count(&open->events.layout, part);
    uint64_t seed = 12;
    double *x = case_random(num_voxels, &seed), *y = case_random(count, &seed);
    double *all = case_doubles(COUNT), *some = case_ones(count), *y_all = case_doubles(COUNT);
    double *images[2] = {case_doubles(num_voxels), case_ones(num_voxels)};
    case_forward(open, NULL, x, all);
    case_forward(open, part, x, some);
    for (int64_t k = 0; k < count; k++) {
        assert_true(fabs(some[k] - all[numbers[k]]) <= neighbours() * fabs(all[numbers[k]]));
        y_all[numbers[k]] = y[k];
    }
    case_back(open, NULL, y_all, images[0]);
    case_back(open, part, y, images[1]);
    assert_true(case_dot(images[0], images[0], num_voxels) > 0);
    assert_true(case_difference(images[1], images[0], num_voxels) < rounding());
    memset(y_all, 0, COUNT * sizeof(*y_all));
    for (int64_t k = 0; k < count; k++) y_all[numbers[k]] = 1.0;
    case_back(open, NULL, y_all, images[0]);
    case_back(open, part, NULL, images[1]);
    assert_true(case_difference(images[1], images[0], num_voxels) < rounding());
    free(x);
    free(y);
    free(all);
    free(some);
    free(y_all);
    free(images[0]);
    free(images[1]);
}

static const int64_t uneven[6] = {0, 700, 700, 1100, 2999, COUNT};

static void check_parts(const lr_listmode_params *params)
{
    struct case_backend open;
    lr_listmode_params with = *params;
    with.ranges = uneven;
    with.num_ranges = 5;
    case_open(&open, &with, backend);
    static const int32_t ranges[3] = {0, 1, 3};
    int64_t *numbers = malloc(COUNT * sizeof(*numbers));
    int64_t count = 0;
    for (int64_t k = 0; k < 2999; k++)
        if (k < 700 || k >= 1100) numbers[count++] = k;
    check_part(&open, &(lr_selection){.pairs = ranges, .num_pairs = 3}, numbers);
    count = 0;
    for (int64_t k = 690; k < COUNT; k += 3) numbers[count++] = k;
    check_part(&open, &(lr_selection){.lors = numbers, .num_lors = count}, numbers);
    free(numbers);
    case_close(&open);
}

static void test_parts(void **state)
{
    each_case(check_parts);
}

/* --- rows: the events that see a voxel --- */

struct rows_seen {
    double *x, *sums; /* sums of x over rows, by event */
    int64_t next, elements;
};

static lr_status see_row(void *user, const lr_row *row)
{
    struct rows_seen *seen = user;
    assert_int_equal(row->row, seen->next++);
    for (int64_t k = 0; k < row->count; k++) {
        assert_true(k == 0 || row->lor[k] > row->lor[k - 1]);
        assert_true(row->probability[k] > 0);
        seen->sums[row->lor[k]] += seen->x[row->row] * row->probability[k];
    }
    seen->elements += row->count;
    return LR_OK;
}

static void check_rows(const lr_listmode_params *params)
{
    struct case_backend open;
    uint64_t seed = 13;
    lr_listmode_params with = *params;
    with.num_ranges = 3;
    case_open(&open, &with, backend);
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    const struct lr_rows wanted = {.grid = &grid, .samples = {1, 1, 1}, .end = num_voxels};
    struct rows_seen seen = {.x = case_random(num_voxels, &seed), .sums = case_doubles(COUNT)};
    double *values = case_doubles(COUNT);
    assert_int_equal(open.backend.fns->rows(open.backend.self, &wanted, &(lr_row_sink){see_row, &seen}), LR_OK);
    case_forward(&open, NULL, seen.x, values);
    assert_int_equal(seen.next, num_voxels);
    assert_true(seen.elements > 0);
    assert_true(case_difference(seen.sums, values, COUNT) < allowed());
    free(seen.x);
    free(seen.sums);
    free(values);
    case_close(&open);
}

static void test_rows(void **state)
{
    each_case(check_rows);
    struct case_backend open;
    const lr_listmode_params params = params_of(CASE_LINE, NULL);
    const double point[1][3] = {{0}};
    const struct lr_rows wanted = {.points_mm = point, .end = 1};
    case_open(&open, &params, backend);
    assert_int_equal(open.backend.fns->rows(open.backend.self, &wanted, &(lr_row_sink){see_row, NULL}), LR_USAGE);
    case_close(&open);
}

/* --- progress: of the work of the call, and the end of it when asked --- */

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
    struct case_backend open;
    const bool is_found = getenv("LR_TEST_LISTMODE_LINES") != NULL;
    const bool has_launches = strcmp(backend, "cuda") == 0 || (strcmp(backend, "compute") == 0 && !is_found);
    struct reports reports = {.stop_at = -1};
    const lr_progress progress = {take_report, &reports};
    static const int32_t last[1] = {2};
    const lr_selection part = {.pairs = last, .num_pairs = 1};
    lr_listmode_params params = params_of(CASE_LINE, NULL);
    params.num_ranges = 3;
    case_open(&open, &params, backend);
    lr_vector image = case_vector(&open, lr_grid_num_voxels(&grid));
    open.params.progress = &progress;
    open.backend.fns->destroy(open.backend.self);
    assert_int_equal(case_create(backend, &open.params, &open.backend), LR_OK);
    assert_int_equal(open.backend.fns->back(open.backend.self, &part, NULL, &image), LR_OK);
    assert_int_equal(reports.count, has_launches ? 1 : 3); /* a launch; a group of each axis */
    reports = (struct reports){.stop_at = has_launches ? 0 : 1};
    assert_int_equal(open.backend.fns->back(open.backend.self, &part, NULL, &image), LR_CANCELLED);
    assert_int_equal(reports.count, has_launches ? 1 : 2);
    lr_vector_destroy(&image);
    case_close(&open);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adjoint),  cmocka_unit_test(test_reference), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_order),    cmocka_unit_test(test_parts),     cmocka_unit_test(test_rows),
        cmocka_unit_test(test_progress), cmocka_unit_test(test_outlier),   cmocka_unit_test(test_factors),
    };
    backend = argc > 1 ? argv[1] : "cpu";
    if (argc > 2) cmocka_set_test_filter(argv[2]);
    if (case_lacks_device(backend)) return 77;
    return cmocka_run_group_tests(tests, setup, teardown);
}
