/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The laws of ordered subsets on a small ring. Argument: the backend. */
#include "ring.h"

enum { SUBSETS = 4 };

static int set_up_anew(void **state)
{
    session_without_noise(kept_fixture(FIXTURE_RING), test_backend_is("cpu") ? LR_STORE_YES : LR_STORE_NO);
    return 0;
}

struct seen {
    int count;
    lr_iteration last;
};

static lr_status see(void *user, const lr_iteration *done)
{
    struct seen *seen = user;
    assert_int_equal(done->number, ++seen->count);
    seen->last = *done;
    return LR_OK;
}

/* Parameters for dense or for sparse data. */
static lr_osem_params osem_params(int iterations, int subsets, bool is_sparse)
{
    return filled(lr_osem_params, .op = s.op, .data = is_sparse ? &s.few : &s.counts,
                  .data_lors = is_sparse ? s.sparse->index : NULL, .iterations = iterations, .subsets = subsets,
                  .log = &s.log.log);
}

/* Reconstructs; returns the last iteration. */
static lr_iteration run(lr_osem_params params, float *image)
{
    struct seen seen = {0};
    params.iteration = see;
    params.user = &seen;
    assert_ok(array_osem(&params, image));
    assert_int_equal(seen.count, params.iterations);
    return seen.last;
}

/* --- one subset --- */

/* 1e-5: some roundings of floats in each of six iterations. */
static void test_one_subset_is_mlem(void **state)
{
    float plain[NUM_VOXELS], sensitivity[NUM_VOXELS], back[NUM_VOXELS];
    draw_counts(2.0);
    /* The update written out with plain projections. */
    float *data = kept_floats(s.data->count);
    assert_ok(array_sensitivity(s.op, sensitivity));
    for (int v = 0; v < NUM_VOXELS; v++) plain[v] = sensitivity[v] > 0.0f ? 1.0f : 0.0f;
    for (int k = 0; k < 6; k++) {
        assert_ok(array_forward(s.op, plain, data));
        for (int64_t l = 0; l < s.data->count; l++) data[l] = data[l] > 0.0f ? s.data->values[l] / data[l] : 0.0f;
        assert_ok(array_back(s.op, data, back));
        for (int v = 0; v < NUM_VOXELS; v++)
            plain[v] = sensitivity[v] > 0.0f ? plain[v] / sensitivity[v] * back[v] : 0.0f;
    }
    const lr_iteration dense = run(osem_params(6, 0, false), s.image);
    const lr_iteration sparse = run(osem_params(6, 0, true), s.other);
    assert_all(worst_apart(s.image, plain, NUM_VOXELS) < 1e-5, worst_apart(s.other, plain, NUM_VOXELS) < 1e-5);
    assert_close(sparse.log_likelihood, dense.log_likelihood, 1e-6);
    assert_close(sparse.estimated_counts, dense.estimated_counts, 1e-6);
    assert_close(sparse.measured_counts, dense.measured_counts, 1e-12);
    assert_ok(array_mlem(&(lr_mlem_params){.op = s.op, .data = &s.counts, .iterations = 6}, s.other));
    assert_memory_equal(s.image, s.other, sizeof(s.image));
}

/* --- subsets --- */

struct stop {
    int visits, last; /* stops when asked before visit number `last` */
};

static bool stop_before(void *user, const char *what, double done, double total)
{
    struct stop *stop = user;
    assert_true(done <= total);
    return strncmp(what, "iteration", 9) != 0 || stop->visits++ < stop->last;
}

/* The run is stopped after each update (on a device, after the host has queued the next one). Then sum_j s_j x_j
 * equals the counts of the subset, and voxels that the subset does not see have not changed. */
static void test_each_visit_spreads_its_counts(void **state)
{
    int32_t order[SUBSETS];
    draw_counts(5.0);
    lr_osem_visits(SUBSETS, order);
    double counts[SUBSETS] = {0};
    int32_t *subset_of = keep_object(fixture_deal(s.fixture.lors, SUBSETS), free);
    /* The image reaches all LORs with counts. */
    for (int64_t l = 0; l < s.data->count; l++) counts[subset_of[l]] += s.data->values[l];
    int unseen = 0, previous = 0;
    float before[NUM_VOXELS], sensitivity[NUM_VOXELS];
    for (int n = 0; n < 12; n++) {
        struct stop stop = {0, n % 6 + 1};
        /* On a device, the run is stopped only in the middle of both iterations of dense data and of the first
           iteration of sparse data. */
        if (lr_operator_place(s.op) != NULL && (stop.last % 3 == 0 || (n > 7 && n != 10))) continue;
        const lr_progress progress = {stop_before, &stop};
        lr_osem_params params = osem_params(2, SUBSETS, n >= 6);
        params.progress = &progress;
        assert_int_equal(array_osem(&params, s.image), LR_CANCELLED);
        const int subset = order[(stop.last - 1) % SUBSETS];
        int64_t *lors = kept(s.data->count, sizeof(*lors));
        lr_selection part = {.lors = lors};
        for (int64_t l = 0; l < s.data->count; l++)
            if (subset_of[l] == subset) lors[part.num_lors++] = l;
        assert_ok(array_sensitivity_part(s.op, &part, sensitivity));
        double spread = 0.0;
        for (int v = 0; v < NUM_VOXELS; v++) {
            spread += (double)sensitivity[v] * s.image[v];
            if (sensitivity[v] == 0.0f && stop.last == previous + 1 && previous > 0) {
                unseen++;
                assert_true(s.image[v] == before[v]);
            }
        }
        assert_close(spread, counts[subset], 1e-5);
        memcpy(before, s.image, sizeof(before));
        previous = stop.last;
    }
    print_message("%d voxels that a subset does not see\n", unseen);
}

/* Sums per visit, added over all subsets, equal those of all LORs. */
static void test_iterations_keep_the_sum_rule(void **state)
{
    draw_counts(5.0);
    double counts = 0.0;
    for (int64_t l = 0; l < s.data->count; l++) counts += s.data->values[l];
    const lr_iteration last = run(osem_params(4, SUBSETS, false), s.image);
    assert_close(last.measured_counts + last.left_out_counts, counts, 1e-12);
    assert_close(last.sensitive_counts, last.measured_counts, 1e-5);
}

static double likelihood_of(const float *image)
{
    struct seen seen = {0};
    float out[NUM_VOXELS];
    const lr_vector start = lr_vector_of_floats(image, NUM_VOXELS);
    const lr_mlem_params mlem = {
        .op = s.op, .data = &s.counts, .initial = &start, .iterations = 1, .iteration = see, .user = &seen};
    assert_ok(array_mlem(&mlem, out));
    return seen.last.log_likelihood;
}

/* Log-likelihood of the phantom minus that of the image after this number of iterations and subsets. */
static double shortfall(int iterations, int subsets)
{
    const lr_osem_params params = osem_params(iterations, subsets, false);
    assert_ok(array_osem(&params, s.image));
    return likelihood_of(s.phantom) - likelihood_of(s.image);
}

/* With consistent data, ML-EM and OSEM converge to the maximum, which is the phantom. n iterations with four subsets
 * come about as near as 4 n with one subset: nearer than 3 n - 1, and not as near as 5 n + 2. */
static void test_subsets_are_faster(void **state)
{
    /* With 16 modules, each subset sees the voxels equally well. */
    struct fixture fine = {
        .scanner = keep(
            scanner_from("name: fine ring\nring: {radius_mm: 58, modules: 16}\nmodule: {crystals: [5, 4], pitch_mm: "
                         "[4.3, 4.3], face_mm: [4, 4], depth_mm: 20}\ncoincidence: {field_of_view_mm: 40}"))};
    fine.lors = keep(lr_lors_create(fine.scanner, NULL));
    session_without_noise(fine, LR_STORE_YES);
    for (int n = 2; n <= 8; n *= 2) {
        const double subsets = shortfall(n, SUBSETS), once = shortfall(n, 1);
        const double fewer = shortfall(3 * n - 1, 1), as_many = shortfall(4 * n, 1);
        const double more = shortfall(5 * n + 2, 1);
        print_message("below the maximum: %.4g after %d iterations with %d subsets; with one %.4g, and %.4g, %.4g, "
                      "%.4g after %d, %d, %d iterations\n",
                      subsets, n, SUBSETS, once, fewer, as_many, more, 3 * n - 1, 4 * n, 5 * n + 2);
        assert_true(more < subsets && subsets < fewer && fewer < once);
    }
}

/* Subsets given in groups, or by their interleave alone, equal the default ones. Whole pairs given by their numbers, in the order of visits, equal
 * groups of one pair. Images agree bit for bit, because the matrix is stored. */
static void test_subsets_may_be_given(void **state)
{
    int32_t group_of[28], order[SUBSETS], visit_of[SUBSETS];
    make_sparse();
    lr_osem_visits(SUBSETS, order);
    for (int n = 0; n < SUBSETS; n++) visit_of[order[n]] = n;
    const lr_lors *lors = s.fixture.lors;
    int interleave = 0;
    assert_ok(lr_osem_interleave(lors, SUBSETS, &interleave, NULL));
    assert_true(interleave > 1 && lors->num_pairs <= 28);
    for (int k = 0; k < 4; k++) {
        const int given = k < 2 ? interleave : 1;
        lr_osem_params params = osem_params(2, SUBSETS, k % 2);
        params.subset_of = group_of;
        params.interleave = given;
        assert_ok(lr_osem_subsets(lors, SUBSETS / given, group_of, NULL), array_osem(&params, s.image));
        params.subset_of = NULL;
        assert_ok(array_osem(&params, s.other));
        assert_memory_equal(s.image, s.other, sizeof(s.image));
        for (int64_t pair = 0; given == 1 && pair < lors->num_pairs; pair++) group_of[pair] = visit_of[group_of[pair]];
        params.subset_of = given == 1 ? group_of : NULL;
        params.interleave = 0;
        assert_ok(array_osem(&params, s.other));
        assert_memory_equal(s.image, s.other, sizeof(s.image));
    }
}

static void test_sparse_is_dense(void **state)
{
    draw_counts(2.0);
    const lr_iteration dense = run(osem_params(3, SUBSETS, false), s.image);
    const lr_iteration sparse = run(osem_params(3, SUBSETS, true), s.other);
    assert_true(worst_apart(s.other, s.image, NUM_VOXELS) < 1e-5);
    assert_close(dense.log_likelihood, sparse.log_likelihood, 1e-6);
    assert_close(dense.estimated_counts, sparse.estimated_counts, 1e-6);
    assert_close(dense.sensitive_counts, sparse.sensitive_counts, 1e-6);
    assert_int_equal(dense.left_out_lors, sparse.left_out_lors);
}

/* --- additive term --- */

struct additive {
    lr_crystal_product product;
    float values[160];
    lr_lor_data *dense;
    lr_vector terms; /* the values of dense */
    double sum;
};

/* An additive term as products of a value per crystal, and the same term as data. */
static void additive_init(struct additive *additive)
{
    uint64_t random = 3;
    const int num = s.fixture.scanner->num_crystals;
    assert_true(num <= 160);
    for (int c = 0; c < num; c++) additive->values[c] = (float)(0.5 + test_random(&random));
    additive->product = (lr_crystal_product){s.fixture.lors, additive->values, 0.02, NULL};
    additive->sum = lr_crystal_product_sum(&additive->product, 0);
    additive->dense = keep(lr_lor_data_create(s.fixture.lors, NULL));
    additive->terms = lr_lor_data_vector(additive->dense);
    const lr_lor_source source = lr_crystal_product_source(&additive->product);
    assert_ok(source.get(source.user, &(lr_lor_span){.count = additive->dense->count}, additive->dense->values));
}

/* The additive term is given as data, as a source with its sum, and as a source without sum; each with dense and
   with sparse data. */
static void test_additive_source_is_additive_data(void **state)
{
    struct additive additive;
    additive_init(&additive);
    for (int64_t l = 0; l < s.data->count; l++) s.data->values[l] += additive.dense->values[l];
    assert_ok(lr_poisson(s.data->values, s.data->count, test_seed(), NULL));
    make_sparse();
    for (int subsets = 1; subsets <= SUBSETS; subsets += 3) {
        lr_iteration first = {0};
        for (int k = 0; k < 6; k++) {
            lr_osem_params params = osem_params(3, subsets, k % 2);
            if (k < 2) {
                params.additive = &additive.terms;
            } else {
                params.additive_source = lr_crystal_product_source(&additive.product);
                params.additive_sum = k < 4 ? additive.sum : 0.0;
            }
            const lr_iteration last = run(params, k == 0 ? s.image : s.other);
            first = k == 0 ? last : first;
            assert_true(worst_apart(k == 0 ? s.image : s.other, s.image, NUM_VOXELS) < 1e-5);
            assert_close(last.log_likelihood, first.log_likelihood, 1e-6);
            assert_close(last.estimated_counts, first.estimated_counts, 1e-6);
            assert_int_equal(last.left_out_lors, 0);
        }
    }
}

/* Counts on LORs that no activity reaches are left out, and reported once; an additive term can explain them. */
static void test_additive_term_reaches_counts(void **state)
{
    struct additive additive;
    additive_init(&additive);
    int lonely = 0;
    for (int64_t l = 0; l < s.data->count && lonely < 5; l++) {
        if (s.data->values[l] == 0.0f && additive.dense->values[l] > 0.0f) {
            s.data->values[l] = 2.0f;
            lonely++;
        }
    }
    assert_int_equal(lonely, 5);
    make_sparse();
    for (int k = 0; k < 4; k++) {
        lr_osem_params params = osem_params(2, k < 2 ? 1 : SUBSETS, k % 2);
        s.log.num_warnings = 0;
        const lr_iteration without = run(params, s.image);
        assert_int_equal(without.left_out_lors, 5);
        assert_close(without.left_out_counts, 10.0, 1e-12);
        assert_int_equal(s.log.num_warnings, 1);
        assert_says(s.log.warning, "5 LORs with 10 counts");
        params.additive_source = lr_crystal_product_source(&additive.product);
        assert_int_equal(run(params, s.image).left_out_lors, 0);
    }
}

/* --- subsets without counts --- */

/* Sets the counts of the subsets in `emptied` to 0. */
static void empty_subsets(int emptied)
{
    int32_t *subset_of = keep_object(fixture_deal(s.fixture.lors, SUBSETS), free);
    for (int64_t l = 0; l < s.data->count; l++) s.data->values[l] *= emptied >> subset_of[l] & 1 ? 0.0f : 1.0f;
}

static lr_iteration run_emptied(int emptied, lr_store how, float *image)
{
    session_without_noise(kept_fixture(FIXTURE_RING), how);
    assert_true((lr_operator_place(s.op) != NULL) == (how == LR_STORE_NO && !test_backend_is("cpu")));
    empty_subsets(emptied);
    return run(osem_params(2, SUBSETS, false), image);
}

/* A device gets an update before the host knows whether the update before was skipped. Empty subsets are in the
 * middle of an iteration, and at its ends, in both iterations. With a stored matrix, the host projects and knows
 * this at once. */
static void test_a_device_passes_over_what_the_host_does(void **state)
{
    static const int emptied[] = {0x6, 0x9};
    static float here[NUM_VOXELS], there[NUM_VOXELS];
    for (size_t k = 0; k < sizeof(emptied) / sizeof(*emptied); k++) {
        const lr_iteration host = run_emptied(emptied[k], LR_STORE_YES, here);
        const lr_iteration device = run_emptied(emptied[k], LR_STORE_NO, there);
        assert_true(worst_apart(there, here, NUM_VOXELS) < 1e-5);
        assert_true(fabs(host.measured_counts - device.measured_counts) <= 1e-6 * host.measured_counts);
        assert_true(fabs(host.log_likelihood - device.log_likelihood) <= 1e-6 * fabs(host.log_likelihood));
        assert_true(fabs(host.sensitive_counts - device.sensitive_counts) <= 1e-6 * host.sensitive_counts);
    }
}

static void test_empty_subset_is_passed_over(void **state)
{
    empty_subsets(1 << 1);
    make_sparse();
    for (int k = 0; k < 2; k++) {
        const lr_osem_params params = osem_params(2, SUBSETS, k);
        s.log.num_warnings = 0;
        assert_ok(array_osem(&params, k ? s.other : s.image));
        assert_int_equal(s.log.num_warnings, 1);
        assert_says(s.log.warning, "a subset of 4 has no counts");
    }
    assert_true(worst_apart(s.other, s.image, NUM_VOXELS) < 1e-5);
    double sum = 0.0;
    for (int v = 0; v < NUM_VOXELS; v++) sum += s.image[v];
    assert_true(sum > 0.0);
}

/* Data without counts give an image of zeros. */
static void test_no_counts_give_no_image(void **state)
{
    const int64_t index = 0;
    const lr_vector none = {.count = 0};
    for (int subsets = 1; subsets <= SUBSETS; subsets += 3) {
        lr_osem_params params = osem_params(1, subsets, false);
        params.data = &none;
        params.data_lors = &index;
        assert_ok(array_osem(&params, s.image));
        for (int v = 0; v < NUM_VOXELS; v++) assert_true(s.image[v] == 0.0f);
    }
}

/* --- bad input --- */

static void expect(const lr_osem_params *params, lr_status status, const char *words)
{
    assert_fails(array_osem(params, s.image), status, &s.log, words);
}

static lr_status negative(void *user, const lr_lor_span *span, float *values)
{
    for (int64_t k = 0; k < span->count; k++) values[k] = -1.0f;
    return LR_OK;
}

static void test_bad_input(void **state)
{
    make_sparse();
    lr_osem_params params = osem_params(1, -1, false);
    expect(&params, LR_USAGE, "-1 subsets");
    spoilt(params.subsets = 1 << 20, expect(&params, LR_USAGE, "some would have no LOR"));
    spoilt(params = osem_params(-2, SUBSETS, false), expect(&params, LR_USAGE, "-2 iterations"));
    params = osem_params(1, SUBSETS, false);
    params.additive = &s.counts;
    spoilt(params.additive_source.get = negative, expect(&params, LR_USAGE, "give one of the two"));
    spoilt(params.additive = NULL, expect(&params, LR_BAD_INPUT, "the additive term of LOR"));
    give_data(&params, true);
    expect(&params, LR_BAD_INPUT, "is -1: values must be finite");
    spoilt(params.additive_sum = NAN, expect(&params, LR_USAGE, "the sum of the additive source"));
    int64_t index = 3;
    float value = 2.0f;
    for (int64_t l = 0; l < s.data->count; l++) /* a LOR that no activity reaches */
        index = s.data->values[l] == 0.0f ? l : index;
    params = osem_params(1, SUBSETS, false);
    params.data = vector_of(&value, 1);
    spoilt(params.data_lors = &index, expect(&params, LR_BAD_INPUT, "none of the 2 counts"));
    for (int64_t l = 0; l < s.data->count; l++) s.data->values[l] = l == index ? 5.0f : 0.0f;
    spoilt(params = osem_params(2, 1, false), expect(&params, LR_BAD_INPUT, "none of the 5 counts"));
}

/* --- threads --- */

static lr_status see_place(void *user, const lr_iteration *done)
{
    assert_string_equal(lr_place_get_info(done->image->place).device, user);
    return LR_OK;
}

/* Loops over images and counts on the host use no more threads than the operator. */
static void test_threads_are_the_operators(void **state)
{
    threads = 1;
    set_up_stored(state);
    lr_osem_params params = osem_params(1, SUBSETS, false);
    params.iteration = see_place;
    params.user = "CPU, 1 thread";
    assert_null(lr_operator_place(s.op)); /* the operator's matrix is stored */
    assert_ok(array_osem(&params, s.image));
    threads = 2;
}

#define STORED(test) CASE_AFTER(set_up_stored, test)
backend_main("cpu", STORED(test_one_subset_is_mlem), STORED(test_each_visit_spreads_its_counts),
             CASE_AFTER(set_up_anew, test_each_visit_spreads_its_counts),
             EACH(STORED, test_iterations_keep_the_sum_rule, test_subsets_are_faster, test_subsets_may_be_given,
                  test_sparse_is_dense, test_additive_source_is_additive_data, test_additive_term_reaches_counts,
                  test_empty_subset_is_passed_over, test_a_device_passes_over_what_the_host_does,
                  test_no_counts_give_no_image, test_bad_input, test_threads_are_the_operators))
