/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Tubes of response and quantities derived from them, compared with rows of the matrix. */
#include "waits.h"

#include "picture/pixel_lor.h"
#include "viewer/study/tube.h"

/* A study with LOR mode. */
struct bench {
    struct study *study;
    struct study_view view;
    struct task_runner tubes;
};

static void bench_finish(void *self)
{
    struct bench *bench = self;
    task_runner_finish(&bench->tubes);
    study_close(bench->study, &bench->view);
}

static struct bench *bench_open(const char *scanner, const lr_grid *grid)
{
    struct bench *bench = kept(1, sizeof(*bench));
    bench->study = study_opened(&bench->view, &(struct study_wish){.scanner = scanner, .grid = grid});
    task_runner_init(&bench->tubes, &tube_kind);
    return keep_object(bench, bench_finish);
}

static const struct tube_result *compute(struct bench *bench, const struct tube_request *request)
{
    assert_ok(tube_ask(&bench->tubes, &bench->view, request, NULL));
    if (task_runner_wait(&bench->tubes) != JOB_DONE) fail_msg("%s", bench->tubes.report.error);
    return bench->tubes.result;
}

/* Opposite crystals of the Vista on a line along x, and a grid around this line. */
static const struct tube_request opposite = {.crystals = {{0, 6, 6}, {9, 8, 3}}, .samples = 1};
static const lr_grid about = {{20, 7, 6}, {2.7, 0.9, 1.2}, {-26.2, -2.9, -17.3}};

/* Compares each row's element with the tube. */
struct comparison {
    const struct tube_result *result;
    double sum;
    int64_t count;
};

static lr_status compare(void *user, const lr_row *row)
{
    struct comparison *comparison = user;
    const struct tube_result *result = comparison->result;
    const double element = lr_row_element(row, result->lor);
    /* native computes in single precision: 1e-5 of the largest, as its own tests allow */
    if (fabs(result->image->values[row->row] - element) > 1e-5 * result->largest) {
        fail_msg("voxel %lld: %g in the tube, %g in the matrix", (long long)row->row,
                 (double)result->image->values[row->row], element);
    }
    comparison->sum += element;
    comparison->count += element > 0;
    return LR_OK;
}

/* Compared voxel by voxel with rows of the cpu reference. */
static void tubes_are_columns(void **state)
{
    struct bench *bench = bench_open("ge-explore-vista-dr", &about);
    for (int sampled = 0; sampled < 2; sampled++) {
        struct tube_request request = opposite;
        request.mode = sampled ? LR_MODE_SAMPLED : LR_MODE_EXACT;
        request.rays = 3;
        const struct tube_result *result = compute(bench, &request);
        const lr_operator_params params =
            filled(lr_operator_params, .lors = bench->view.lors, .grid = &about, .backend = "cpu", .mode = request.mode,
                   .rays = sampled ? 3 : 0, .samples = {1, 1, 1}, .store = LR_STORE_NO);
        lr_operator *op = keep(lr_operator_create(&params));
        struct comparison comparison = {.result = result};
        const lr_row_sink sink = {compare, &comparison};
        assert_ok(lr_operator_rows(op, 0, lr_grid_num_voxels(&about), &sink));
        print_message("%lld voxels\n", (long long)comparison.count);
        assert_true(comparison.count > 20 && comparison.count <= result->num_voxels + 5);
        assert_close(result->sum, comparison.sum, 1e-4);
    }
}

static double moment(const struct tube_profile *profile, int power)
{
    double sum = 0;
    for (int n = 0; n < profile->count; n++)
        sum += profile->weight[n] * pow(profile->first_mm + n * profile->step_mm, power);
    return sum;
}

/* The profile has the same sum and centre of mass as the image. */
static void profiles_keep_sum_and_centre(void **state)
{
    struct bench *bench = bench_open("ge-explore-vista-dr", &about);
    const struct tube_result *result = compute(bench, &opposite);
    double first = 0, length = 0;
    for (int64_t v = 0; v < lr_grid_num_voxels(&about); v++) {
        double centre_mm[3], t = 0;
        lr_grid_voxel_centre(&about, v, centre_mm);
        for (int k = 0; k < 3; k++) {
            const double along = result->ends_mm[1][k] - result->ends_mm[0][k];
            t += along / result->length_mm * (centre_mm[k] - 0.5 * (result->ends_mm[0][k] + result->ends_mm[1][k]));
        }
        first += t * result->image->values[v];
    }
    for (int k = 0; k < 3; k++) length += pow(result->ends_mm[1][k] - result->ends_mm[0][k], 2);
    assert_close(result->length_mm, sqrt(length), 1e-12);
    assert_close(moment(&result->profile, 0), result->sum, 1e-5); /* sums of floats */
    /* The profile moves each point to the middle of its plane, by at most half a step, to either side. */
    assert_true(fabs(moment(&result->profile, 1) - first) < 0.1 * result->profile.step_mm * result->sum);
}

static void exchanged_crystals_turn_the_profile_round(void **state)
{
    struct bench *bench = bench_open("ge-explore-vista-dr", &about);
    const struct tube_result *result = compute(bench, &opposite);
    const int count = result->profile.count;
    const int64_t lor = result->lor;
    float *before = kept(count, sizeof(*before));
    memcpy(before, result->profile.weight, (size_t)count * sizeof(*before));
    struct tube_request other = opposite;
    other.crystals[0] = opposite.crystals[1];
    other.crystals[1] = opposite.crystals[0];
    result = compute(bench, &other);
    assert_true(result->lor == lor);
    assert_int_equal(result->profile.count, count);
    for (int n = 0; n < count; n++) {
        /* A point on the border of two planes may be counted in either. */
        assert_true(fabs(result->profile.weight[n] - before[count - 1 - n]) < 0.02 * result->sum);
    }
}

/* The kernel's integral is 1. Its full width at half maximum is that of the scanner's resolution: c/2 * 214 ps = 32.08
 * mm. */
static void the_kernel_has_the_scanners_width(void **state)
{
    const lr_grid grid = {{40, 40, 3}, {10, 10, 10}, {-195, -195, -10}};
    struct bench *bench = bench_open("siemens-vision-600", &grid);
    assert_true(bench->view.scanner->tof_resolution_ps > 0);
    const struct tube_request request = {.crystals = {{0, 3, 3}, {19, 4, 5}}, .samples = 1};
    const struct tube_result *result = compute(bench, &request);
    const struct tube_profile *profile = &result->profile;
    const double width_mm = 299.792458e-3 / 2 * bench->view.scanner->tof_resolution_ps;
    double integral = 0, square = 0;
    for (int n = 0; n < profile->count; n++) {
        const double t = profile->first_mm + n * profile->step_mm;
        integral += profile->kernel[n] * profile->step_mm;
        square += profile->kernel[n] * profile->step_mm * t * t;
    }
    assert_close(integral, 1, 1e-4);
    assert_close(sqrt(square) * sqrt(8 * log(2)), width_mm, 1e-3);
    assert_true(profile->first_mm + profile->count / 2 * profile->step_mm == 0);
    bench = bench_open("ge-explore-vista-dr", &about);
    result = compute(bench, &opposite);
    assert_true(result->sigma_mm == 0 && result->profile.kernel == NULL);
}

/* The product of a row and an image is the event's value by the cpu reference, for every kernel. */
static void events_have_the_elements_of_list_mode(void **state)
{
    static const lr_listmode_kernel kernels[] = {LR_LISTMODE_TUBE, LR_LISTMODE_LINE, LR_LISTMODE_EXACT};
    static const struct tube_crystal ends[2] = {{0, 3, 3}, {19, 4, 5}};
    lr_grid grid = {{30, 28, 6}, {9, 9, 9}, {-130, -121, -22}};
    uint64_t seed = test_seed();
    double ends_mm[2][3];
    struct bench *bench = bench_open("siemens-vision-600", &grid);
    tube_ends(bench->view.scanner, ends, ends_mm);
    grid.origin_mm[2] = ends_mm[0][2] - 24;
    bench = bench_open("siemens-vision-600", &grid); /* the line crosses this grid */
    lr_image *image = keep(lr_image_create(&grid, NULL));
    const int64_t count = lr_grid_num_voxels(&grid);
    for (int64_t v = 0; v < count; v++) image->values[v] = (float)test_random(&seed);
    for (int k = 0; k < 6; k++) {
        const bool has_tof = k % 2 != 0;
        const struct tube_request request =
            filled(struct tube_request, .crystals = {ends[0], ends[1]}, .kernel = (enum tube_kernel)(TUBE_TUBE + k / 2),
                   .has_tof = has_tof, .tof_mm = has_tof ? -31.5 : 0, .samples = 1);
        const struct tube_result *result = compute(bench, &request);
        int32_t crystals[2];
        lr_lors_crystals(bench->view.lors, result->lor, crystals);
        const lr_event event = {.crystals = {crystals[0], crystals[1]}, .tof_mm = (float)request.tof_mm, .weight = 1};
        const lr_events_info info = {.has_tof = true};
        lr_operator *op = keep(lr_listmode_create(
            &filled(lr_listmode_params, .lors = bench->view.lors, .grid = &grid, .events = &event, .count = 1,
                    .info = has_tof ? &info : NULL, .no_solid_angles = true, .kernel = kernels[k / 2],
                    .samples = {k / 2 == 2, k / 2 == 2, k / 2 == 2}, .backend = "cpu")));
        float value = 0;
        double sum = 0;
        const lr_vector from = lr_image_vector(image);
        lr_vector to = lr_vector_of_floats(&value, 1);
        assert_ok(lr_operator_forward(op, NULL, &from, &to));
        for (int64_t v = 0; v < count; v++) sum += (double)result->image->values[v] * image->values[v];
        assert_close(sum, value, 1e-5);
        assert_true(result->num_voxels > 3 && (result->sigma_mm > 0) == has_tof);
        if (has_tof) /* bins of 9 mm, along the line from the first crystal */
            assert_true(fabs(result->peak_mm - request.tof_mm) < 9);
    }
}

static void refuse(const struct study_view *view, const struct tube_crystal *crystals, const char *words)
{
    struct test_log log = TEST_LOG(log);
    int64_t lor;
    assert_int_equal(tube_check(view, crystals, &lor, &log.log), LR_USAGE);
    assert_says(log.error, words);
}

/* Finds a LOR that the coincidence rules exclude although other LORs of its two modules are in coincidence. */
static bool find_excluded(const struct study_view *view, struct tube_crystal crystals[2])
{
    for (int64_t n = 0; n < view->lors->count; n++) {
        if (!lr_lors_in_coincidence(view->lors, n)) {
            const lr_lor lor = lr_lors_describe(view->lors, n);
            crystals[0] = (struct tube_crystal){lor.module_i, lor.p, lor.q};
            crystals[1] = (struct tube_crystal){lor.module_j, lor.r, lor.s};
            return true;
        }
    }
    return false;
}

static void pairs_without_a_lor_are_explained(void **state)
{
    const struct study_view nothing = {0};
    struct bench *bench = bench_open("siemens-mmr", &about);
    const int nu = bench->view.scanner->modules[0].crystals[0];
    int strangers = 0;
    char words[32];
    snprintf(words, sizeof(words), "no crystal (%d, 0)", nu);
    refuse(&nothing, opposite.crystals, "open one first");
    refuse(&bench->view, (struct tube_crystal[]){{56, 0, 0}, {0, 0, 0}}, "0 to 55");
    refuse(&bench->view, (struct tube_crystal[]){{0, 0, 0}, {9, nu, 0}}, words);
    refuse(&bench->view, (struct tube_crystal[]){{3, 0, 0}, {3, 1, 0}}, "same module");
    for (int m = 1; m < bench->view.scanner->num_modules; m++) {
        if (lr_lors_pair(bench->view.lors, 0, m) < 0) {
            refuse(&bench->view, (struct tube_crystal[]){{0, 0, 0}, {m, 0, 0}}, "are not in coincidence");
            strangers++;
        }
    }
    assert_true(strangers > 0);
    struct tube_crystal excluded[2];
    assert_true(find_excluded(&bench->view, excluded));
    refuse(&bench->view, excluded, "rules");
    const struct tube_request wrong = {.crystals = {{3, 0, 0}, {3, 1, 0}}};
    assert_int_equal(tube_ask(&bench->tubes, &bench->view, &wrong, NULL), LR_USAGE);
    assert_int_equal(task_runner_poll(&bench->tubes), JOB_IDLE);
    assert_null(bench->tubes.result);
}

test_main("viewer_tube", cmocka_unit_test(tubes_are_columns), cmocka_unit_test(profiles_keep_sum_and_centre),
          cmocka_unit_test(exchanged_crystals_turn_the_profile_round),
          cmocka_unit_test(the_kernel_has_the_scanners_width), cmocka_unit_test(events_have_the_elements_of_list_mode),
          cmocka_unit_test(pairs_without_a_lor_are_explained))
