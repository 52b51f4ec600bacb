/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The family direct as an operator (lr/operator.h), for the backend in argv[1]: calls of this family only, and images
 * compared with formulas in double. Laws of all families are in tests/operator/laws.h. */
#include "direct/cases.h"
#include "model/lors/selection.h"

#include <lr/recon.h>

enum { NUM_VIEWS = 6, NX = 16, NY = 15, NZ = 9, NUM_VOXELS = NX * NY * NZ, NUM_DATA = NUM_VIEWS * NUM_VOXELS };

static struct session {
    struct test_log log;
    float *factors, *additive, *counts; /* [NUM_DATA] */
    lr_operator *op, *plain;            /* with factors, and without */
} s;

static int set_up(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){NX, NY, NZ}, (const double[3]){4, 4, 4});
    const lr_view_set set = {3, 2, 12};
    lr_view views[NUM_VIEWS];
    uint64_t seed = test_seed();
    s = (struct session){0};
    test_log_init(&s.log);
    for (int k = 0; k < NUM_VIEWS; k++) views[k] = lr_view_set_at(&set, k);
    s.factors = kept_random_floats(NUM_DATA, 0.2, 1.2, &seed);
    s.additive = kept_random_floats(NUM_DATA, 0, 1, &seed);
    s.counts = kept_random_floats(NUM_DATA, 0, 1, &seed);
    for (int k = 0; k < NUM_DATA; k++) /* many voxels without counts, as in a short scan */
        s.counts[k] = floorf(2.2f * s.counts[k]);
    const lr_lor_source factors = source_of_values(s.factors);
    lr_direct_params params =
        filled(lr_direct_params, .grid = &grid, .views = views, .num_views = NUM_VIEWS,
               .kernel = {.resolution = case_resolution(6)}, .backend = test_backend, .log = &s.log.log);
    s.plain = kept_direct(params);
    params.factors = &factors;
    s.op = kept_direct(params);
    return 0;
}

/* --- laws --- */

static void it_says_what_it_is(void **state)
{
    const lr_operator_info *info = lr_operator_get_info(s.op);
    assert_string_equal(info->backend, test_backend);
    assert_ints(info->num_voxels, NUM_VOXELS, info->num_lors, NUM_DATA, info->lors->num_pairs, NUM_VIEWS);
    assert_null(info->lors->scanner);
    const lr_direct_info *family = lr_direct_get_info(s.op);
    assert_ints(family->num_views, NUM_VIEWS, family->grid.size[1], NY);
    assert_true(family->views[1].azimuth_deg == 60 && family->views[4].tilt_deg == 6);
    assert_int_equal(lr_lors_describe(info->lors, 2 * NUM_VOXELS + 5).module_i, 2);
    assert_int_equal(lr_lors_number(info->lors, 0, 1), -1);
    assert_all(lr_lors_in_coincidence(info->lors, NUM_DATA - 1), !lr_lors_in_coincidence(info->lors, NUM_DATA));
}

static void data_are_the_histo_images(void **state)
{
    uint64_t seed = 3;
    float *x = kept_random_floats(NUM_VOXELS, 0, 1, &seed), *y = kept_random_floats(NUM_DATA, 0, 1, &seed);
    float one[NUM_VOXELS];
    assert_ok(array_forward(s.plain, x, y));
    for (int view = 0; view < NUM_VIEWS; view++) {
        assert_ok(view_floats(s.plain, true, view, x, one));
        assert_memory_equal(one, y + view * NUM_VOXELS, sizeof(one));
    }
}

struct column {
    const float *expected; /* [NUM_DATA] projection of a point of activity */
    int64_t row;
    int rows;
};

static lr_status check_row(void *user, const lr_row *row)
{
    struct column *column = user;
    float *found = kept_floats(NUM_DATA);
    for (int64_t k = 0; k < row->count; k++) {
        assert_all(k == 0 || row->lor[k] > row->lor[k - 1], row->probability[k] > 0);
        found[row->lor[k]] = (float)row->probability[k];
    }
    assert_int_equal(row->row, column->row);
    assert_true(l2_apart(found, column->expected, NUM_DATA) < 1e-6);
    column->rows++;
    return LR_OK;
}

static void rows_are_what_a_voxel_gives(void **state)
{
    static const int64_t voxels[3] = {0, NUM_VOXELS / 2 + 7, NUM_VOXELS - 30};
    const double point_mm[1][3] = {{0, 0, 0}};
    float *expected = kept_floats(NUM_DATA);
    struct column column = {.expected = expected};
    const lr_row_sink sink = {check_row, &column};
    for (int k = 0; k < 3; k++) {
        float x[NUM_VOXELS] = {0};
        x[voxels[k]] = 1;
        column.row = voxels[k];
        assert_ok(array_forward(s.plain, x, expected));
        assert_ok(lr_operator_rows(s.plain, voxels[k], voxels[k] + 1, &sink));
    }
    assert_int_equal(column.rows, 3);
    assert_fails(lr_operator_point_rows(s.plain, point_mm, 1, &sink), LR_USAGE, &s.log, "voxels of its grid");
}

/* --- reconstruction --- */

/* Forms of the data and of the run. */
enum way { DENSE, SPARSE, WHOLE, NUM_WAYS };

static void reconstruct(lr_recon_params params, enum way way, float *image)
{
    const lr_lor_data dense = {.count = NUM_DATA, .values = s.counts};
    const lr_lor_data *data = way == SPARSE ? kept_sparse(&dense) : &dense;
    const lr_vector counts = lr_lor_data_vector(data), additive = lr_vector_of_floats(s.additive, NUM_DATA);
    params.initial = vector_of(kept_equal_floats(NUM_VOXELS, 1.0f), NUM_VOXELS);
    params.data = &counts;
    params.data_lors = data->index;
    params.additive = &additive;
    params.without_fit = way == WHOLE;
    assert_ok(lr_recon(&params, vector_of(image, NUM_VOXELS)));
}

/* Three iterations by the loop and by the formulas: the same updates; in between, images are kept in single or in
 * double precision. */
static void check_recon(lr_recon_algorithm algorithm, int subsets)
{
    double x[NUM_VOXELS];
    float image[NUM_VOXELS], expected[NUM_VOXELS];
    const bool is_ramla = algorithm == LR_ALGORITHM_RAMLA;
    const lr_recon_params params =
        filled(lr_recon_params, .op = s.op, .iterations = 3, .subsets = subsets, .algorithm = algorithm,
               .relaxation = is_ramla ? 0.6 : 0, .relaxation_fall = is_ramla ? 0.4 : 0, .log = &s.log.log);
    for (int v = 0; v < NUM_VOXELS; v++) x[v] = 1;
    for (int n = 0; n < 3 * subsets; n++) {
        static double ratios[NUM_VOXELS], sensitivity[NUM_VOXELS];
        double *sums[2] = {ratios, sensitivity}, most = 0;
        int32_t views[NUM_VIEWS];
        lr_selection part = {.pairs = views};
        for (int view = n % params.subsets; view < NUM_VIEWS; view += params.subsets) views[part.num_pairs++] = view;
        /* r = A^T (y / (A x + b)) and s = A^T 1 for some views, in double except for projections by compute. */
        const int64_t count = part.num_pairs * NUM_VOXELS;
        double *values = kept_doubles(count);
        lr_vector data = lr_vector_of_doubles(values, count);
        lr_vector back[2] = {lr_vector_of_doubles(sums[0], NUM_VOXELS), lr_vector_of_doubles(sums[1], NUM_VOXELS)};
        assert_ok(lr_operator_forward(s.op, &part, vector_of(x, NUM_VOXELS), &data));
        for (int64_t k = 0; k < count; k++) {
            const int64_t at = lr_selection_lor(lr_operator_get_info(s.op)->lors, &part, k);
            values[k] = (double)s.counts[at] / (values[k] + (double)s.additive[at]);
        }
        assert_ok(lr_operator_back(s.op, &part, &data, &back[0]));
        for (int64_t k = 0; k < count; k++) values[k] = 1;
        assert_ok(lr_operator_back(s.op, &part, &data, &back[1]));
        for (int v = 0; v < NUM_VOXELS; v++) most = fmax(most, sensitivity[v]);
        const double fall = 1 + params.relaxation_fall * (n / params.subsets);
        const double lambda = params.relaxation / fall / most;
        for (int v = 0; v < NUM_VOXELS; v++) {
            x[v] *= params.algorithm == LR_ALGORITHM_RAMLA ? fmax(1 + lambda * (ratios[v] - sensitivity[v]), 0)
                                                           : ratios[v] / sensitivity[v];
        }
    }
    for (int v = 0; v < NUM_VOXELS; v++) expected[v] = (float)x[v];
    for (int way = DENSE; way < NUM_WAYS; way++) {
        reconstruct(params, (enum way)way, image);
        const double off = l2_apart(image, expected, NUM_VOXELS);
        print_message("%d subsets, way %d: %.2g\n", subsets, way, off);
        assert_true(off < 2e-6);
    }
}

static void images_are_those_of_the_formula(void **state)
{
    check_recon(LR_ALGORITHM_OSEM, 1);
    check_recon(LR_ALGORITHM_OSEM, 2);
}

static void ramla_is_that_of_the_formula(void **state)
{
    check_recon(LR_ALGORITHM_RAMLA, 1);
    check_recon(LR_ALGORITHM_RAMLA, 2);
}

static void bad_calls_are_refused(void **state)
{
    float image[NUM_VOXELS];
    const lr_vector counts = lr_vector_of_floats(s.counts, NUM_DATA);
    lr_osem_params params = {.op = s.op, .data = &counts, .subsets = 7, .log = &s.log.log};
    assert_fails(array_osem(&params, image), LR_USAGE, &s.log, "made of views, of which there are 6");
    params.subsets = 2;
    s.counts[3 * NUM_VOXELS + 17] = -1;
    assert_fails(array_osem(&params, image), LR_BAD_INPUT, &s.log, "voxel 17 of view 3 is -1");
    s.counts[3 * NUM_VOXELS + 17] = NAN;
    assert_fails(array_back(s.op, s.counts, image), LR_BAD_INPUT, &s.log, "voxel 17 of view 3");
    s.factors[2 * NUM_VOXELS] = -1;
    assert_fails(array_forward(s.op, s.additive, s.counts), LR_BAD_INPUT, &s.log,
                 "the factor of voxel 0 of view 2 is -1");
    lr_pixel pixel;
    const double point_mm[3] = {0};
    assert_int_equal(lr_operator_picture(s.op, point_mm, 0, &pixel), LR_USAGE);
    assert_null(lr_direct_create(&(lr_direct_params){.log = &s.log.log}));
}

usable_main(case_is_usable(argc, argv),
            CASES_SET_UP(it_says_what_it_is, data_are_the_histo_images, rows_are_what_a_voxel_gives,
                         images_are_those_of_the_formula, ramla_is_that_of_the_formula, bad_calls_are_refused))
