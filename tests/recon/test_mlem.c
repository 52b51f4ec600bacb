/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The laws of ML-EM on a small ring. Argument: the backend. */
#include "fixtures.h"

struct session {
    struct fixture fixture;
    struct test_log log;
    lr_operator *op;
    int64_t num_voxels;
    float *phantom, *image; /* [num_voxels] */
    lr_lor_data *data;      /* what the phantom gives, without noise */
    lr_vector counts;       /* its values */
};

/* Two spots on a weak background. */
static void draw_phantom(const lr_grid *grid, float *phantom)
{
    for (int64_t v = 0; v < lr_grid_num_voxels(grid); v++) {
        double p[3];
        lr_grid_voxel_centre(grid, v, p);
        const double spot = hypot(hypot(p[0] - 3.0, p[1] - 2.0), p[2] - 1.0);
        const double other = hypot(hypot(p[0] + 4.0, p[1] + 3.0), p[2] + 2.0);
        phantom[v] = spot < 4.0 ? 1000.0f : other < 3.5 ? 600.0f : 50.0f;
    }
}

static void session_init(struct session *s, const char *backend)
{
    *s = (struct session){0};
    fixture_init(&s->fixture, FIXTURE_RING);
    test_log_init(&s->log);
    s->fixture.grid = lr_grid_centred((const int[3]){9, 9, 5}, (const double[3]){2.5, 2.5, 3.0});
    lr_operator_params params = fixture_params(&s->fixture, backend, NULL);
    params.rays = 4;
    params.store = LR_STORE_YES;
    s->op = keep(lr_operator_create(&params));
    s->num_voxels = lr_grid_num_voxels(&s->fixture.grid);
    s->phantom = kept_floats(s->num_voxels);
    s->image = kept_floats(s->num_voxels);
    draw_phantom(&s->fixture.grid, s->phantom);
    s->data = keep(lr_lor_data_create(s->fixture.lors, NULL));
    s->counts = lr_lor_data_vector(s->data);
    assert_ok(array_forward(s->op, s->phantom, s->data->values));
}

static void session_finish(struct session *s)
{
    lr_lor_data_destroy(s->data);
    lr_operator_destroy(s->op);
    fixture_finish(&s->fixture);
}

static lr_mlem_params mlem_params(const struct session *s, int iterations)
{
    return (lr_mlem_params){.op = s->op, .data = &s->counts, .iterations = iterations, .log = &s->log.log};
}

static void draw_counts(struct session *s, double scale, uint64_t seed)
{
    for (int64_t l = 0; l < s->data->count; l++) s->data->values[l] *= (float)scale;
    assert_ok(lr_poisson(s->data->values, s->data->count, seed, NULL));
}

/* |x - phantom| / |phantom|, over voxels. */
static double distance(const struct session *s, const float *image)
{
    double difference = 0.0, size = 0.0;
    for (int64_t v = 0; v < s->num_voxels; v++) {
        difference += pow((double)image[v] - s->phantom[v], 2.0);
        size += pow(s->phantom[v], 2.0);
    }
    return sqrt(difference / size);
}

static double sum_data(const lr_lor_data *data)
{
    double sum = 0.0;
    for (int64_t k = 0; k < data->count; k++) sum += data->values[k];
    return sum;
}

/* --- what every iteration owes --- */

struct watch {
    const struct session *session;
    int num_iterations;
    bool has_additive;
    double log_likelihood, first_log_likelihood, last_distance;
    int64_t left_out_lors;
    double left_out_counts, estimated_counts;
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
    if (!watch->has_additive) /* each update spreads exactly the counts that it explains */
        assert_close(done->sensitive_counts, done->measured_counts, 1e-5);
    watch->left_out_lors = done->left_out_lors;
    watch->left_out_counts = done->left_out_counts;
    watch->estimated_counts = done->estimated_counts;
    float *image = kept_floats(done->image->count);
    lr_vector host = lr_vector_of_floats(image, done->image->count);
    assert_ok(lr_vector_copy(done->image, &host));
    watch->last_distance = distance(watch->session, image);
    assert_true(done->seconds >= 0.0);
    return LR_OK;
}

static void test_noise_free_data_leads_to_the_phantom(void **state)
{
    struct session s;
    session_init(&s, test_backend);
    struct watch watch = {.session = &s};
    lr_mlem_params params = mlem_params(&s, 20);
    params.iteration = watch_iteration;
    params.user = &watch;
    assert_ok(array_mlem(&params, s.image));
    const double after_20 = watch.last_distance;
    assert_true(watch.log_likelihood > watch.first_log_likelihood);
    watch = (struct watch){.session = &s};
    params.iterations = 400;
    assert_ok(array_mlem(&params, s.image));
    assert_int_equal(watch.num_iterations, 400);
    assert_true(watch.last_distance < 0.5 * after_20);
    assert_true(watch.last_distance < 0.03);
    assert_true(distance(&s, s.image) == watch.last_distance);
    assert_int_equal(watch.left_out_lors, 0);
    assert_int_equal(s.log.num_warnings, 0);
    /* The fit itself: what is estimated is what was measured. */
    assert_close(watch.estimated_counts, sum_data(s.data), 1e-5);
    session_finish(&s);
}

static void test_noisy_data_keeps_the_laws(void **state)
{
    struct session s;
    session_init(&s, test_backend);
    draw_counts(&s, 3.0, test_seed());
    struct watch watch = {.session = &s};
    lr_mlem_params params = mlem_params(&s, 60);
    params.iteration = watch_iteration;
    params.user = &watch;
    assert_ok(array_mlem(&params, s.image));
    assert_true(watch.log_likelihood > watch.first_log_likelihood);
    session_finish(&s);
}

/* Sparse data give the same image as dense data with the same counts. */
static void test_sparse_data_is_dense_data(void **state)
{
    struct session s;
    session_init(&s, test_backend);
    draw_counts(&s, 1.0, test_seed());
    float *from_dense = kept_floats(s.num_voxels);
    lr_lor_data list = {.index = kept(s.data->count, sizeof(int64_t)), .values = kept_floats(s.data->count)};
    assert_true(from_dense != NULL && list.index != NULL && list.values != NULL);
    for (int64_t l = 0; l < s.data->count; l++) {
        if (s.data->values[l] > 0.0f) {
            list.index[list.count] = l;
            list.values[list.count++] = s.data->values[l];
        }
    }
    lr_mlem_params params = mlem_params(&s, 5);
    assert_ok(array_mlem(&params, from_dense));
    const lr_vector listed = lr_lor_data_vector(&list);
    params.data = &listed;
    params.data_lors = list.index;
    assert_ok(array_mlem(&params, s.image));
    assert_memory_equal(s.image, from_dense, (size_t)s.num_voxels * sizeof(float));
    session_finish(&s);
}

/* --- additive term --- */

/* Data = A x + b with b known leads to x; with b unknown it cannot. */
static void test_additive_term_is_taken_out(void **state)
{
    struct session s;
    session_init(&s, test_backend);
    lr_lor_data *additive = keep(lr_lor_data_create(s.fixture.lors, NULL));
    const double mean = sum_data(s.data) / (double)s.data->count;
    for (int64_t l = 0; l < s.data->count; l++) {
        if (lr_lors_in_coincidence(s.fixture.lors, l)) {
            additive->values[l] = (float)(0.5 * mean);
            s.data->values[l] += additive->values[l];
        }
    }
    struct watch watch = {.session = &s, .has_additive = true};
    lr_mlem_params params = mlem_params(&s, 400);
    const lr_vector terms = lr_lor_data_vector(additive);
    params.additive = &terms;
    params.iteration = watch_iteration;
    params.user = &watch;
    assert_ok(array_mlem(&params, s.image));
    const double known = watch.last_distance;
    assert_close(watch.estimated_counts, sum_data(s.data), 1e-4);
    watch = (struct watch){.session = &s, .has_additive = true};
    params.additive = NULL;
    assert_ok(array_mlem(&params, s.image));
    assert_true(known < 0.04 && known < 0.5 * watch.last_distance);
    session_finish(&s);
}

/* The image of the same data in another unit is the same one in that unit, beside an additive term four
 * times as large, too: where the first image is always 1, large counts hardly move it. */
static void test_start_beside_an_additive_term_has_the_size_of_the_counts(void **state)
{
    enum { FACTOR = 4096 };
    struct session s;
    session_init(&s, test_backend);
    lr_lor_data *additive = lr_lor_data_create(s.fixture.lors, NULL);
    float *first = kept_floats(s.num_voxels);
    assert_true(additive != NULL && first != NULL);
    const double mean = sum_data(s.data) / (double)s.data->count;
    for (int64_t l = 0; l < s.data->count; l++) {
        additive->values[l] = (float)(4.0 * mean);
        s.data->values[l] += additive->values[l];
    }
    lr_mlem_params params = mlem_params(&s, 2);
    const lr_vector terms = lr_lor_data_vector(additive);
    params.additive = &terms;
    assert_ok(array_mlem(&params, first));
    for (int64_t l = 0; l < s.data->count; l++) {
        additive->values[l] *= FACTOR;
        s.data->values[l] *= FACTOR;
    }
    assert_ok(array_mlem(&params, s.image));
    for (int64_t v = 0; v < s.num_voxels; v++) assert_close(s.image[v], FACTOR * (double)first[v], 1e-4);
    lr_lor_data_destroy(additive);
    session_finish(&s);
}

/* The additive term explains more than all counts, so that nothing is left for the image. */
static void test_additive_term_above_the_counts_is_warned_of(void **state)
{
    struct session s;
    session_init(&s, test_backend);
    lr_mlem_params params = mlem_params(&s, 1);
    params.additive = &s.counts;
    assert_ok(array_mlem(&params, s.image));
    assert_int_equal(s.log.num_warnings, 0);
    lr_lor_data *additive = keep(lr_lor_data_create(s.fixture.lors, NULL));
    for (int64_t l = 0; l < s.data->count; l++) additive->values[l] = 2.0f * s.data->values[l];
    const lr_vector terms = lr_lor_data_vector(additive);
    params.additive = &terms;
    assert_ok(array_mlem(&params, s.image));
    assert_says(s.log.warning, "the additive term adds up to");
    session_finish(&s);
}

/* --- LORs that the image cannot reach --- */

static void test_left_out_lors_are_counted_once(void **state)
{
    struct session s;
    session_init(&s, test_backend);
    int64_t unreachable = 0;
    double unreachable_counts = 0.0;
    for (int64_t l = 0; l < s.data->count && unreachable < 7; l++) {
        if (s.data->values[l] == 0.0f) {
            s.data->values[l] = (float)(2 + unreachable % 3);
            unreachable_counts += s.data->values[l];
            unreachable++;
        }
    }
    assert_int_equal(unreachable, 7);
    struct watch watch = {.session = &s};
    lr_mlem_params params = mlem_params(&s, 4);
    params.iteration = watch_iteration;
    params.user = &watch;
    assert_ok(array_mlem(&params, s.image));
    assert_int_equal(watch.left_out_lors, 7);
    assert_close(watch.left_out_counts, unreachable_counts, 1e-12);
    assert_int_equal(s.log.num_warnings, 1);
    assert_says(s.log.warning, "7 LORs with 20 counts");
    session_finish(&s);
}

static void test_counts_that_nothing_reaches_are_refused(void **state)
{
    struct session s;
    session_init(&s, test_backend);
    bool has_one = false;
    for (int64_t l = 0; l < s.data->count; l++) {
        const bool is_first = s.data->values[l] == 0.0f && !has_one;
        has_one = has_one || is_first;
        s.data->values[l] = is_first ? 5.0f : 0.0f;
    }
    assert_true(has_one);
    const lr_mlem_params params = mlem_params(&s, 2);
    assert_int_equal(array_mlem(&params, s.image), LR_BAD_INPUT);
    assert_says(s.log.error, "none of the 5 counts");
    session_finish(&s);
}

/* --- stopping --- */

static lr_status stop_at_three(void *user, const lr_iteration *done)
{
    lr_vector host = lr_vector_of_floats(user, 9 * 9 * 5);
    assert_ok(lr_vector_copy(done->image, &host));
    return done->number == 3 ? LR_CANCELLED : LR_OK;
}

static bool stop_when_told(void *user, const char *what, double done, double total)
{
    assert_true(done <= total);
    return done < *(const double *)user;
}

static void test_stopping_leaves_the_last_iteration(void **state)
{
    struct session s;
    session_init(&s, test_backend);
    float seen[9 * 9 * 5], three[9 * 9 * 5];
    lr_mlem_params params = mlem_params(&s, 3);
    assert_ok(array_mlem(&params, three));
    params.iterations = 10;
    params.iteration = stop_at_three;
    params.user = seen;
    assert_int_equal(array_mlem(&params, s.image), LR_CANCELLED);
    assert_memory_equal(s.image, three, sizeof(three));
    assert_memory_equal(seen, three, sizeof(three));
    double last = 3.0; /* three are done when the fourth is about to start */
    const lr_progress progress = {stop_when_told, &last};
    params.iteration = NULL;
    params.progress = &progress;
    memset(s.image, 0, sizeof(three));
    assert_int_equal(array_mlem(&params, s.image), LR_CANCELLED);
    assert_memory_equal(s.image, three, sizeof(three));
    session_finish(&s);
}

static void test_going_on_from_an_image(void **state)
{
    struct session s;
    session_init(&s, test_backend);
    float five[9 * 9 * 5];
    lr_mlem_params params = mlem_params(&s, 5);
    assert_ok(array_mlem(&params, five));
    params.iterations = 2;
    assert_ok(array_mlem(&params, s.image));
    params.iterations = 3;
    const lr_vector initial = lr_vector_of_floats(s.image, s.num_voxels);
    params.initial = &initial; /* may be the image that is overwritten */
    assert_ok(array_mlem(&params, s.image));
    assert_memory_equal(s.image, five, sizeof(five));
    session_finish(&s);
}

/* --- voxels that no LOR sees --- */

static void test_unseen_voxels_stay_zero(void **state)
{
    struct fixture fixture;
    struct test_log log;
    test_log_init(&log);
    fixture_init(&fixture, FIXTURE_RING); /* 17.2 mm long: the outer two layers are beyond it */
    fixture.grid = lr_grid_centred((const int[3]){2, 2, 4}, (const double[3]){4.0, 4.0, 7.0});
    lr_operator_params params = fixture_params(&fixture, test_backend, NULL);
    lr_operator *op = keep(lr_operator_create(&params));
    lr_lor_data *data = keep(lr_lor_data_create(fixture.lors, NULL));
    float initial[16], image[16];
    for (int v = 0; v < 16; v++) initial[v] = v < 4 || v >= 12 ? 1.0f : 0.0f;
    const lr_vector counts = lr_lor_data_vector(data), start = lr_vector_of_floats(initial, 16);
    lr_mlem_params mlem = {.op = op, .data = &counts, .initial = &start, .log = &log.log};
    assert_int_equal(array_mlem(&mlem, image), LR_BAD_INPUT); /* nothing where the scanner sees */
    for (int v = 0; v < 16; v++) initial[v] = 1.0f;
    assert_ok(array_forward(op, initial, data->values));
    assert_ok(array_mlem(&mlem, image));
    for (int v = 0; v < 16; v++) assert_int_equal(image[v] > 0.0f, v >= 4 && v < 12);
    fixture_finish(&fixture);
}

/* --- bad input --- */

static void expect(struct session *s, const lr_mlem_params *params, lr_status status, const char *words)
{
    s->log.error[0] = '\0';
    s->image[0] = -5.0f;
    assert_int_equal(array_mlem(params, s->image), status);
    assert_int_equal(s->log.status, status);
    if (strstr(s->log.error, words) == NULL) fail_msg("\"%s\" does not say \"%s\"", s->log.error, words);
}

static void test_bad_input(void **state)
{
    struct session s;
    session_init(&s, test_backend);
    lr_mlem_params params = mlem_params(&s, -1);
    expect(&s, &params, LR_USAGE, "-1 iterations");
    params = mlem_params(&s, 1);
    params.op = NULL;
    expect(&s, &params, LR_USAGE, "needs an operator");

    const int64_t lor = s.fixture.lors->offsets[1] + 3 * 20 + 7;
    const lr_lor spelled = lr_lors_describe(s.fixture.lors, lor);
    char words[200];
    snprintf(words, sizeof(words), "crystal 3, 0 of module %d with crystal 2, 1 of module %d", spelled.module_i,
             spelled.module_j);
    params = mlem_params(&s, 1);
    const float kept = s.data->values[lor];
    s.data->values[lor] = -1.0f;
    expect(&s, &params, LR_BAD_INPUT, words);
    s.data->values[lor] = INFINITY;
    expect(&s, &params, LR_BAD_INPUT, "the data of LOR");
    s.data->values[lor] = kept;

    int64_t index[3] = {4, 9, 9};
    float values[3] = {1, 1, NAN};
    const lr_vector list = lr_vector_of_floats(values, 3);
    params.data = &list;
    params.data_lors = index;
    expect(&s, &params, LR_BAD_INPUT, "entry 2 of the data names LOR 9 after LOR 9");
    index[2] = s.data->count;
    expect(&s, &params, LR_BAD_INPUT, "LORs are numbered 0 to");
    index[2] = 10;
    expect(&s, &params, LR_BAD_INPUT, "the data of LOR 10");
    values[2] = 1.0f;
    params.additive = &list;
    expect(&s, &params, LR_USAGE, "give its sum over all LORs");
    params = mlem_params(&s, 1);
    params.additive = &list;
    expect(&s, &params, LR_USAGE, "the additive term has 3 values, the operator");

    float initial[9 * 9 * 5] = {0};
    params = mlem_params(&s, 1);
    const lr_vector start = lr_vector_of_floats(initial, s.num_voxels), few = lr_vector_part(&start, 1, 7);
    params.initial = &few;
    expect(&s, &params, LR_USAGE, "the initial image has 7 voxels where the operator has 405");
    params.initial = &start;
    expect(&s, &params, LR_BAD_INPUT, "initial image is 0 wherever");
    initial[44] = -1.0f;
    expect(&s, &params, LR_BAD_INPUT, "voxel 44 of the initial image is -1");
    session_finish(&s);
}

int main(int argc, char **argv)
{
    if (!test_backend_is_usable(argc, argv, "cpu")) return 77;
    const struct CMUnitTest tests[] = {CASE(test_noise_free_data_leads_to_the_phantom),
                                       CASE(test_noisy_data_keeps_the_laws),
                                       CASE(test_sparse_data_is_dense_data),
                                       CASE(test_additive_term_is_taken_out),
                                       CASE(test_start_beside_an_additive_term_has_the_size_of_the_counts),
                                       CASE(test_additive_term_above_the_counts_is_warned_of),
                                       CASE(test_left_out_lors_are_counted_once),
                                       CASE(test_counts_that_nothing_reaches_are_refused),
                                       CASE(test_stopping_leaves_the_last_iteration),
                                       CASE(test_going_on_from_an_image),
                                       CASE(test_unseen_voxels_stay_zero),
                                       CASE(test_bad_input)};
    return cmocka_run_group_tests_name(test_backend, tests, NULL, NULL);
}
