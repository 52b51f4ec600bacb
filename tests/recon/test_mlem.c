/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The laws of ML-EM on a small ring. Argument: the backend. */
#include "ring.h"

static lr_mlem_params mlem_params(int iterations)
{
    return (lr_mlem_params){.op = s.op, .data = &s.counts, .iterations = iterations, .log = &s.log.log};
}

/* |x - phantom| / |phantom|, norms over all voxels. */
static double distance(const float *image)
{
    return l2_apart(image, s.phantom, NUM_VOXELS);
}

static double sum_data(const lr_lor_data *data)
{
    double sum = 0.0;
    for (int64_t k = 0; k < data->count; k++) sum += data->values[k];
    return sum;
}

/* --- properties of every iteration --- */

struct watch {
    int num_iterations;
    bool has_additive;
    double log_likelihood, first_log_likelihood, last_distance;
    int64_t left_out_lors;
    double estimated_counts;
};

static lr_status watch_iteration(void *user, const lr_iteration *done)
{
    struct watch *watch = user;
    assert_int_equal(done->number, ++watch->num_iterations);
    if (done->number == 1)
        watch->first_log_likelihood = done->log_likelihood;
    else
        assert_true(done->log_likelihood >= watch->log_likelihood - 1e-6 * fabs(watch->log_likelihood));
    watch->log_likelihood = done->log_likelihood;
    if (!watch->has_additive) /* an update distributes exactly the counts that it explains */
        assert_close(done->sensitive_counts, done->measured_counts, 1e-5);
    watch->left_out_lors = done->left_out_lors;
    watch->estimated_counts = done->estimated_counts;
    float image[NUM_VOXELS];
    assert_ok(lr_vector_copy(done->image, vector_of(image, NUM_VOXELS)));
    watch->last_distance = distance(image);
    assert_true(done->seconds >= 0.0);
    return LR_OK;
}

/* Adds an additive term to the data, which is `times` the mean value in each LOR, with or without LORs not in
 * coincidence; returns the term. */
static lr_lor_data *add_terms(double times, bool to_all)
{
    lr_lor_data *additive = keep(lr_lor_data_create(s.fixture.lors, NULL));
    const double mean = sum_data(s.data) / (double)s.data->count;
    for (int64_t l = 0; l < s.data->count; l++) {
        if (!to_all && !lr_lors_in_coincidence(s.fixture.lors, l)) continue;
        additive->values[l] = (float)(times * mean);
        s.data->values[l] += additive->values[l];
    }
    return additive;
}

/* Reconstructs, and checks each iteration. */
static struct watch watch_mlem(lr_mlem_params params)
{
    struct watch watch = {.has_additive = params.additive != NULL};
    params.iteration = watch_iteration;
    params.user = &watch;
    assert_ok(array_mlem(&params, s.image));
    assert_int_equal(watch.num_iterations, params.iterations);
    return watch;
}

static void test_noise_free_data_leads_to_the_phantom(void **state)
{
    const struct watch first = watch_mlem(mlem_params(20)), watch = watch_mlem(mlem_params(400));
    assert_true(first.log_likelihood > first.first_log_likelihood);
    assert_all(watch.last_distance < 0.5 * first.last_distance, watch.last_distance < 0.03);
    assert_true(distance(s.image) == watch.last_distance);
    assert_ints(watch.left_out_lors, 0, s.log.num_warnings, 0);
    /* The fit: the estimated counts equal the measured counts. */
    assert_close(watch.estimated_counts, sum_data(s.data), 1e-5);
}

static void test_noisy_data_keeps_the_laws(void **state)
{
    draw_counts(3.0);
    const struct watch watch = watch_mlem(mlem_params(60));
    assert_true(watch.log_likelihood > watch.first_log_likelihood);
}

/* Sparse data give the same image as dense data with the same counts. */
static void test_sparse_data_is_dense_data(void **state)
{
    float from_dense[NUM_VOXELS];
    draw_counts(1.0);
    lr_mlem_params params = mlem_params(5);
    assert_ok(array_mlem(&params, from_dense));
    params.data = &s.few;
    params.data_lors = s.sparse->index;
    assert_ok(array_mlem(&params, s.image));
    assert_memory_equal(s.image, from_dense, sizeof(s.image));
}

/* --- additive term --- */

/* Data are A x + b. If b is known, the result is near x; if b is not known, it is not. */
static void test_additive_term_is_taken_out(void **state)
{
    const lr_vector terms = lr_lor_data_vector(add_terms(0.5, false));
    lr_mlem_params params = mlem_params(400);
    params.additive = &terms;
    const struct watch known = watch_mlem(params);
    assert_close(known.estimated_counts, sum_data(s.data), 1e-4);
    params.additive = NULL;
    assert_true(known.last_distance < 0.04 && known.last_distance < 0.5 * watch_mlem(params).last_distance);
}

/* Data in another unit give the same image in that unit, also with an additive term four times as large. If the
 * first image were always 1, large counts would hardly change it. */
static void test_start_beside_an_additive_term_has_the_size_of_the_counts(void **state)
{
    enum { FACTOR = 4096 };
    float first[NUM_VOXELS];
    lr_lor_data *additive = add_terms(4.0, true);
    lr_mlem_params params = mlem_params(2);
    const lr_vector terms = lr_lor_data_vector(additive);
    params.additive = &terms;
    assert_ok(array_mlem(&params, first));
    for (int64_t l = 0; l < s.data->count; l++) {
        additive->values[l] *= FACTOR;
        s.data->values[l] *= FACTOR;
    }
    assert_ok(array_mlem(&params, s.image));
    for (int64_t v = 0; v < NUM_VOXELS; v++) assert_close(s.image[v], FACTOR * (double)first[v], 1e-4);
}

/* The additive term explains more than all counts, so that the image gets nothing. */
static void test_additive_term_above_the_counts_is_warned_of(void **state)
{
    lr_mlem_params params = mlem_params(1);
    params.additive = &s.counts;
    assert_ok(array_mlem(&params, s.image));
    assert_int_equal(s.log.num_warnings, 0);
    lr_lor_data *additive = keep(lr_lor_data_create(s.fixture.lors, NULL));
    for (int64_t l = 0; l < s.data->count; l++) additive->values[l] = 2.0f * s.data->values[l];
    const lr_vector terms = lr_lor_data_vector(additive);
    params.additive = &terms;
    assert_ok(array_mlem(&params, s.image));
    assert_says(s.log.warning, "the additive term adds up to");
}

/* --- stopping --- */

static lr_status stop_at_three(void *user, const lr_iteration *done)
{
    assert_ok(lr_vector_copy(done->image, vector_of((float *)user, NUM_VOXELS)));
    return done->number == 3 ? LR_CANCELLED : LR_OK;
}

static bool stop_when_told(void *user, const char *what, double done, double total)
{
    assert_true(done <= total);
    return done < *(const double *)user;
}

static void test_stopping_leaves_the_last_iteration(void **state)
{
    float seen[NUM_VOXELS], three[NUM_VOXELS];
    lr_mlem_params params = mlem_params(3);
    assert_ok(array_mlem(&params, three));
    params.iterations = 10;
    params.iteration = stop_at_three;
    params.user = seen;
    assert_int_equal(array_mlem(&params, s.image), LR_CANCELLED);
    assert_memory_equal(s.image, three, sizeof(three));
    assert_memory_equal(seen, three, sizeof(three));
    double last = 3.0; /* three iterations are done when the fourth is about to start */
    const lr_progress progress = {stop_when_told, &last};
    params.iteration = NULL;
    params.progress = &progress;
    memset(s.image, 0, sizeof(three));
    assert_int_equal(array_mlem(&params, s.image), LR_CANCELLED);
    assert_memory_equal(s.image, three, sizeof(three));
}

static void test_going_on_from_an_image(void **state)
{
    float five[NUM_VOXELS];
    lr_mlem_params params = mlem_params(5);
    assert_ok(array_mlem(&params, five));
    params.iterations = 2;
    assert_ok(array_mlem(&params, s.image));
    params.iterations = 3;
    const lr_vector initial = lr_vector_of_floats(s.image, NUM_VOXELS);
    params.initial = &initial; /* may be the image that is overwritten */
    assert_ok(array_mlem(&params, s.image));
    assert_memory_equal(s.image, five, sizeof(five));
}

/* --- voxels that no LOR sees --- */

static void test_unseen_voxels_stay_zero(void **state)
{
    struct fixture fixture = kept_fixture(FIXTURE_RING); /* 17.2 mm long: the outer two layers of voxels are outside */
    fixture.grid = lr_grid_centred((const int[3]){2, 2, 4}, (const double[3]){4.0, 4.0, 7.0});
    lr_operator_params params = fixture_params(&fixture, test_backend, NULL);
    lr_operator *op = keep(lr_operator_create(&params));
    lr_lor_data *data = keep(lr_lor_data_create(fixture.lors, NULL));
    float initial[16], image[16];
    for (int v = 0; v < 16; v++) initial[v] = v < 4 || v >= 12 ? 1.0f : 0.0f;
    const lr_vector counts = lr_lor_data_vector(data);
    lr_mlem_params mlem = {.op = op, .data = &counts, .initial = vector_of(initial, 16)};
    assert_int_equal(array_mlem(&mlem, image), LR_BAD_INPUT); /* 0 wherever the scanner sees */
    for (int v = 0; v < 16; v++) initial[v] = 1.0f;
    assert_ok(array_forward(op, initial, data->values), array_mlem(&mlem, image));
    for (int v = 0; v < 16; v++) assert_int_equal(image[v] > 0.0f, v >= 4 && v < 12);
}

/* --- bad input --- */

static void expect(const lr_mlem_params *params, lr_status status, const char *words)
{
    assert_fails(array_mlem(params, s.image), status, &s.log, words);
}

static void test_bad_input(void **state)
{
    lr_mlem_params params = mlem_params(-1);
    expect(&params, LR_USAGE, "-1 iterations");
    params = mlem_params(1);
    spoilt(params.op = NULL, expect(&params, LR_USAGE, "needs an operator"));

    const int64_t lor = s.fixture.lors->offsets[1] + 3 * 20 + 7;
    const lr_lor spelled = lr_lors_describe(s.fixture.lors, lor);
    char words[200];
    snprintf(words, sizeof(words), "crystal 3, 0 of module %d with crystal 2, 1 of module %d", spelled.module_i,
             spelled.module_j);
    params = mlem_params(1);
    const float kept = s.data->values[lor];
    spoilt(s.data->values[lor] = -1.0f, expect(&params, LR_BAD_INPUT, words));
    spoilt(s.data->values[lor] = INFINITY, expect(&params, LR_BAD_INPUT, "the data of LOR"));
    s.data->values[lor] = kept;

    int64_t index[3] = {4, 9, 9};
    float values[3] = {1, 1, NAN};
    const lr_vector list = lr_vector_of_floats(values, 3);
    params.data = &list;
    spoilt(params.data_lors = index, expect(&params, LR_BAD_INPUT, "entry 2 of the data names LOR 9 after LOR 9"));
    spoilt(index[2] = s.data->count, expect(&params, LR_BAD_INPUT, "LORs are numbered 0 to"));
    spoilt(index[2] = 10, expect(&params, LR_BAD_INPUT, "the data of LOR 10"));
    values[2] = 1.0f;
    spoilt(params.additive = &list, expect(&params, LR_USAGE, "give its sum over all LORs"));
    params = mlem_params(1);
    spoilt(params.additive = &list, expect(&params, LR_USAGE, "the additive term has 3 values, the operator"));

    float initial[NUM_VOXELS] = {0};
    params = mlem_params(1);
    const lr_vector start = lr_vector_of_floats(initial, NUM_VOXELS), few = lr_vector_part(&start, 1, 7);
    params.initial = &few;
    expect(&params, LR_USAGE, "the initial image has 7 voxels where the operator has 405");
    spoilt(params.initial = &start, expect(&params, LR_BAD_INPUT, "initial image is 0 wherever"));
    spoilt(initial[44] = -1.0f, expect(&params, LR_BAD_INPUT, "voxel 44 of the initial image is -1"));
}

#define STORED(test) CASE_AFTER(set_up_stored, test)
backend_main("cpu", EACH(STORED, test_noise_free_data_leads_to_the_phantom, test_noisy_data_keeps_the_laws,
                         test_sparse_data_is_dense_data, test_additive_term_is_taken_out,
                         test_start_beside_an_additive_term_has_the_size_of_the_counts,
                         test_additive_term_above_the_counts_is_warned_of, test_stopping_leaves_the_last_iteration,
                         test_going_on_from_an_image, test_unseen_voxels_stay_zero, test_bad_input))
