/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sampled sensitivities of a long scanner, at whose ends few LORs see a voxel, against the sum over all LORs, for the
 * backend that argv[1] names. */
#include "listmode/cases.h"
#include "unit/scanners.h"

enum { SEEDS = 24, THINNED = 6, HALF = 2, ITERATIONS = 4, PARTS = 3 };

static lr_lors *lors;
static lr_grid grid;
static lr_event *all_lines;

/* Factors from 0.1 to 1.9. */
static double wide_range[2] = {0.1, 1.8};
static const lr_lor_source wide_factors = {get_factors, wide_range};

static lr_listmode_params params_of(const char *name, int64_t lines)
{
    lr_listmode_params params = case_params(lors, &grid, all_lines, 10);
    params.backend = name;
    params.sensitivity_lines = lines;
    return params;
}

static int set_up(void **state)
{
    lors = lors_from(
        scanner_from("name: tower\nring: {radius_mm: 60, modules: 10}\nmodule: {crystals: [4, 16], pitch_mm: [5, "
                     "5], face_mm: [5, 5], depth_mm: 10}\ncoincidence: {min_module_difference: 3}"));
    grid = lr_grid_centred((const int[3]){18, 17, 26}, (const double[3]){3, 3, 3});
    all_lines = kept(lors->count, sizeof(*all_lines));
    for (int64_t lor = 0; lor < lors->count; lor++) all_lines[lor] = event_of(lors, lor, false);
    return 0;
}

/* Over many seeds, the error of each voxel is at most the reported largest error, and the mean error is the reported
 * one. With only the lines drawn for all voxels, voxels at the ends would be off by 68 %. */
static void test_errors_are_those_told(void **state)
{
    /* Other backends have the same sample with the same errors (test_it_is_one_sample). */
    if (!test_backend_is("native") && !test_takes_all("the errors of many samples")) skip();
    const int64_t count = lr_grid_num_voxels(&grid);
    const lr_listmode_params all = params_of("native", lors->count);
    const double *exact = sensitivity_by(&all, NULL);
    double *squares = kept_doubles(count), *mean = kept_doubles(count);
    double said = 0, said_worst = 0, off = 0, worst = 0, level = 0, bias = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        lr_listmode_params params = params_of(test_backend, lors->count / THINNED);
        lr_listmode_info info;
        params.seed = (uint64_t)seed;
        const double *found = sensitivity_by(&params, &info);
        assert_int_equal(info.sensitivity_left, 0);
        for (int64_t v = 0; v < count; v++) {
            squares[v] += (found[v] - exact[v]) * (found[v] - exact[v]) / SEEDS;
            mean[v] += found[v] / SEEDS;
        }
        said += info.sensitivity_error / SEEDS;
        said_worst += info.sensitivity_worst / SEEDS;
    }
    for (int64_t v = 0; v < count; v++) {
        off += squares[v] / (double)count;
        level += exact[v] / (double)count;
        bias += (mean[v] - exact[v]) * (mean[v] - exact[v]) / (double)count;
        worst = exact[v] > 0 ? fmax(worst, sqrt(squares[v]) / exact[v]) : worst;
    }
    off = sqrt(off) / level;
    bias = sqrt(bias) / level;
    print_message("the mean voxel is off by %.3g, said %.3g; the worst by %.3g, said %.3g; their mean by %.3g\n", off,
                  said, worst, said_worst, bias);
    /* The reported error is larger than the real one if LORs within a stride are similar, since the lines drawn are
       then more evenly spread. */
    assert_true(said > 0.8 * off && said < 1.5 * off);
    /* This is the largest of thousands of deviations, each known to 14 % from this number of seeds. */
    assert_all(worst < 1.6 * said_worst && said_worst < 1.5 * worst, bias < 1.3 * off / sqrt(SEEDS));
}

static void check_likeness(const lr_listmode_params *params)
{
    const int64_t count = lr_grid_num_voxels(&grid);
    lr_listmode_params other = *params;
    lr_listmode_info info, of_other;
    double *found = sensitivity_by(params, &info), *sum = kept_doubles(count);
    other.backend = "native";
    other.threads = 3;
    double *by_native = sensitivity_by(&other, &of_other);
    other = *params;
    other.sensitivity_parts = PARTS;
    for (int part = 0; part < PARTS; part++) {
        other.sensitivity_part = part;
        const double *share = sensitivity_by(&other, NULL);
        for (int64_t v = 0; v < count; v++) sum[v] += share[v];
    }
    for (int64_t v = 0; v < count; v++) {
        assert_true(fabs(found[v] - by_native[v]) <= 1e-5 * by_native[v]);
        assert_true(fabs(sum[v] - found[v]) <= 1e-5 * found[v]);
    }
    assert_true(fabs(info.sensitivity_error - of_other.sensitivity_error) < 1e-3 * of_other.sensitivity_error);
    assert_true(fabs(info.sensitivity_worst - of_other.sensitivity_worst) < 1e-3 * of_other.sensitivity_worst);
}

/* Every backend, number of threads and division into parts gives the same voxels. */
static void test_it_is_one_sample(void **state)
{
    lr_listmode_params params = params_of(test_backend, lors->count / THINNED);
    params.seed = 3;
    check_likeness(&params);
    params.factors = &wide_factors;
    check_likeness(&params);
    params.kernel = LR_LISTMODE_LINE;
    check_likeness(&params);
}

/* Noise-free data of a rod as long as the scanner: if the sensitivity is too small somewhere, the image is too hot
   there. */
static void test_ends_are_not_hot(void **state)
{
    if (!test_backend_is("native") && !test_takes_all("an image by a sample that native has, too")) skip();
    const int64_t count = lr_grid_num_voxels(&grid);
    double *body = kept_doubles(count), *image = kept_doubles(count), largest[2] = {0, 0};
    for (int64_t v = 0; v < count; v++) {
        double centre[3];
        lr_grid_voxel_centre(&grid, v, centre);
        body[v] = hypot(centre[0], centre[1]) < 20 ? 1 : 0;
    }
    lr_listmode_params params = params_of(test_backend, lors->count / HALF);
    params.count = lors->count;
    lr_operator *op = kept_operator(&params);
    lr_vector data = lr_vector_of_floats(kept_floats(lors->count), lors->count);
    assert_ok(lr_operator_forward(op, NULL, vector_of(body, count), &data));
    const lr_recon_params recon = {.op = op, .data = &data, .iterations = ITERATIONS, .log = &test_log.log};
    assert_ok(lr_recon(&recon, vector_of(image, count)));
    for (int64_t v = 0; v < count; v++) {
        const int64_t slice = v / grid.size[0] / grid.size[1];
        const bool is_end = slice < 3 || slice >= grid.size[2] - 3;
        largest[is_end] = fmax(largest[is_end], image[v]);
    }
    print_message("largest voxel inside %.3f, at the ends %.3f\n", largest[0], largest[1]);
    assert_true(largest[1] < 1.5);
}

/* Progress of a sensitivity: it never goes back, and its total is the same once lines have been projected. */
struct heard {
    double done, total;
};

static bool hear_lines(void *user, const char *what, double done, double total)
{
    struct heard *heard = user;
    assert_string_equal(what, "sensitivity");
    assert_true(done >= heard->done && done <= total && (heard->done == 0 || total == heard->total));
    *heard = (struct heard){done, total};
    return true;
}

/* The total is a number of lines: those for all voxels, and more for the ends, whose boxes are a part of the image. Each
 * part of a sensitivity has its share of the lines. */
static void test_progress_counts_lines(void **state)
{
    const double lines = (double)(lors->count / THINNED);
    for (int parts = 1; parts <= PARTS; parts++) {
        struct heard heard = {0};
        const lr_progress progress = {hear_lines, &heard};
        lr_listmode_params params = params_of(test_backend, lors->count / THINNED);
        params.sensitivity_parts = parts;
        params.progress = &progress;
        (void)sensitivity_by(&params, NULL);
        assert_true(heard.total > lines / parts && heard.total < 4 * lines / parts);
        assert_true(heard.done > lines / parts);
    }
}

case_main("cpu", set_up,
          CASES(test_errors_are_those_told, test_it_is_one_sample, test_ends_are_not_hot, test_progress_counts_lines))
