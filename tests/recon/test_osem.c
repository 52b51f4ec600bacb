/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The laws of ordered subsets on a small ring. Argument: the backend. */
#include "fixtures.h"

enum { NUM_VOXELS = 9 * 9 * 5, SUBSETS = 4 };

struct session {
    struct fixture fixture;
    struct test_log log;
    lr_operator *op;
    float phantom[NUM_VOXELS], image[NUM_VOXELS], other[NUM_VOXELS];
    lr_lor_data *data;  /* dense: what the phantom gives, without noise */
    lr_lor_data sparse; /* its positive values, see make_sparse */
    lr_vector counts;   /* the values of the data */
    lr_vector few;      /* the positive ones */
};

/* Threads of the operator; 0 = all processors. */
static int threads;
static lr_store store = LR_STORE_YES;

/* An operator on the fixture at hand, and the data of a phantom. */
static void session_open(struct session *s, const char *backend)
{
    test_log_init(&s->log);
    s->fixture.grid = lr_grid_centred((const int[3]){9, 9, 5}, (const double[3]){2.5, 2.5, 3.0});
    lr_operator_params params = fixture_params(&s->fixture, backend, NULL);
    params.rays = 4;
    params.store = store;
    params.threads = threads;
    s->op = keep(lr_operator_create(&params));
    for (int64_t v = 0; v < NUM_VOXELS; v++) {
        double p[3];
        lr_grid_voxel_centre(&s->fixture.grid, v, p);
        const double spot = hypot(hypot(p[0] - 3.0, p[1] - 2.0), p[2] - 1.0);
        s->phantom[v] = spot < 4.5 ? 1000.0f : 50.0f;
    }
    s->data = keep(lr_lor_data_create(s->fixture.lors, NULL));
    s->counts = lr_lor_data_vector(s->data);
    assert_ok(array_forward(s->op, s->phantom, s->data->values));
}

static void session_init(struct session *s, const char *backend)
{
    *s = (struct session){0};
    fixture_init(&s->fixture, FIXTURE_RING);
    session_open(s, backend);
}

/* A ring of 16 modules, whose subsets see each voxel alike. */
static void session_init_fine(struct session *s, const char *backend)
{
    static const int crystals_u[1] = {5}, crystals_v[1] = {4};
    const lr_ring ring = {.radius_mm = 58.0,
                          .modules = 16,
                          .block_crystals = {crystals_u, crystals_v},
                          .pitch_mm = {4.3, 4.3},
                          .face_mm = {4.0, 4.0},
                          .depth_mm = 20.0};
    const lr_scanner_params params = {.name = "fine ring", .coincidence = {.field_of_view_mm = 40.0}};
    *s = (struct session){0};
    s->fixture.scanner = keep(lr_scanner_create_ring(&params, &ring));
    s->fixture.lors = keep(lr_lors_create(s->fixture.scanner, NULL));
    session_open(s, backend);
}

static void session_finish(struct session *s)
{
    lr_lor_data_destroy(s->data);
    lr_operator_destroy(s->op);
    fixture_finish(&s->fixture);
}

static void make_sparse(struct session *s)
{
    s->sparse.index = kept(s->data->count, sizeof(int64_t));
    s->sparse.values = kept_floats(s->data->count);
    for (int64_t l = 0; l < s->data->count; l++) {
        if (s->data->values[l] > 0.0f) {
            s->sparse.index[s->sparse.count] = l;
            s->sparse.values[s->sparse.count++] = s->data->values[l];
        }
    }
    s->few = lr_lor_data_vector(&s->sparse);
}

static void draw_counts(struct session *s, double scale)
{
    for (int64_t l = 0; l < s->data->count; l++) s->data->values[l] *= (float)scale;
    assert_ok(lr_poisson(s->data->values, s->data->count, test_seed(), NULL));
}

static lr_osem_params osem_params(const struct session *s, int iterations, int subsets)
{
    return (lr_osem_params){
        .op = s->op, .data = &s->counts, .iterations = iterations, .subsets = subsets, .log = &s->log.log};
}

/* Largest difference of two images over the largest value. */
static double difference(const float *a, const float *b)
{
    double largest = 0.0, worst = 0.0;
    for (int v = 0; v < NUM_VOXELS; v++) {
        largest = fmax(largest, fabs((double)a[v]));
        worst = fmax(worst, fabs((double)a[v] - b[v]));
    }
    return worst / largest;
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

/* --- one subset --- */

/* The update written out with plain projections. */
static void plain_mlem(struct session *s, int iterations, float *image)
{
    float sensitivity[NUM_VOXELS], back[NUM_VOXELS];
    float *data = kept_floats(s->data->count);
    assert_ok(array_sensitivity(s->op, sensitivity));
    for (int v = 0; v < NUM_VOXELS; v++) image[v] = sensitivity[v] > 0.0f ? 1.0f : 0.0f;
    for (int k = 0; k < iterations; k++) {
        assert_ok(array_forward(s->op, image, data));
        for (int64_t l = 0; l < s->data->count; l++) data[l] = data[l] > 0.0f ? s->data->values[l] / data[l] : 0.0f;
        assert_ok(array_back(s->op, data, back));
        for (int v = 0; v < NUM_VOXELS; v++)
            image[v] = sensitivity[v] > 0.0f ? image[v] / sensitivity[v] * back[v] : 0.0f;
    }
}

/* 1e-5: some roundings of floats in each of six iterations. */
static void test_one_subset_is_mlem(void **state)
{
    struct session s;
    session_init(&s, *state);
    draw_counts(&s, 2.0);
    make_sparse(&s);
    float plain[NUM_VOXELS];
    plain_mlem(&s, 6, plain);
    lr_osem_params params = osem_params(&s, 6, 0);
    struct seen dense = {0}, sparse = {0};
    params.iteration = see;
    params.user = &dense;
    assert_ok(array_osem(&params, s.image));
    assert_int_equal(dense.count, 6);
    assert_true(difference(plain, s.image) < 1e-5);
    params.data = &s.few;
    params.data_lors = s.sparse.index;
    params.user = &sparse;
    assert_ok(array_osem(&params, s.other));
    assert_true(difference(plain, s.other) < 1e-5);
    assert_close(sparse.last.log_likelihood, dense.last.log_likelihood, 1e-6);
    assert_close(sparse.last.estimated_counts, dense.last.estimated_counts, 1e-6);
    assert_close(sparse.last.measured_counts, dense.last.measured_counts, 1e-12);
    const lr_mlem_params mlem = {.op = s.op, .data = &s.counts, .iterations = 6};
    assert_ok(array_mlem(&mlem, s.other));
    assert_memory_equal(s.image, s.other, sizeof(s.image));
    session_finish(&s);
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

/* Adds up the counts of each subset. The image reaches all LORs with counts. */
static void sum_subsets(const struct session *s, const int32_t *subset_of, double *counts)
{
    for (int64_t l = 0; l < s->data->count; l++) counts[subset_of[l]] += s->data->values[l];
}

static void subset_sensitivity(const struct session *s, const int32_t *subset_of, int subset, float *sensitivity)
{
    int64_t *lors = kept(s->data->count, sizeof(*lors));
    lr_selection part = {.lors = lors};
    for (int64_t l = 0; l < s->data->count; l++)
        if (subset_of[l] == subset) lors[part.num_lors++] = l;
    assert_ok(array_sensitivity_part(s->op, &part, sensitivity));
}

/* The run is stopped after each update. Then sum_j s_j x_j equals the counts of the subset, and voxels that the
 * subset does not see have not changed. */
static void test_each_visit_spreads_its_counts(void **state)
{
    int32_t order[SUBSETS];
    struct session s;
    session_init(&s, *state);
    draw_counts(&s, 5.0);
    make_sparse(&s);
    lr_osem_visits(SUBSETS, order);
    double counts[SUBSETS] = {0};
    int32_t *subset_of = fixture_deal(s.fixture.lors, SUBSETS);
    sum_subsets(&s, subset_of, counts);
    int unseen = 0;
    float before[NUM_VOXELS], sensitivity[NUM_VOXELS];
    for (int n = 0; n < 12; n++) {
        struct stop stop = {0, n % 6 + 1};
        const lr_progress progress = {stop_before, &stop};
        lr_osem_params params = osem_params(&s, 2, SUBSETS);
        params.data = n < 6 ? &s.counts : &s.few;
        params.data_lors = n < 6 ? NULL : s.sparse.index;
        params.progress = &progress;
        assert_int_equal(array_osem(&params, s.image), LR_CANCELLED);
        const int subset = order[(stop.last - 1) % SUBSETS];
        subset_sensitivity(&s, subset_of, subset, sensitivity);
        double spread = 0.0;
        for (int v = 0; v < NUM_VOXELS; v++) {
            spread += (double)sensitivity[v] * s.image[v];
            if (sensitivity[v] == 0.0f && stop.last > 1) {
                unseen++;
                assert_true(s.image[v] == before[v]);
            }
        }
        assert_close(spread, counts[subset], 1e-5);
        memcpy(before, s.image, sizeof(before));
    }
    print_message("%d voxels that a subset does not see\n", unseen);
    session_finish(&s);
}

/* A run is stopped after the host has queued the next update on the device. */
static void test_a_device_is_stopped_after_whole_updates(void **state)
{
    store = !test_backend_is("cpu") ? LR_STORE_NO : LR_STORE_YES;
    test_each_visit_spreads_its_counts(state);
    store = LR_STORE_YES;
}

/* Sums per visit add up, over all subsets, to what all LORs hold. */
static void test_iterations_keep_the_sum_rule(void **state)
{
    struct session s;
    session_init(&s, *state);
    draw_counts(&s, 5.0);
    double counts = 0.0;
    for (int64_t l = 0; l < s.data->count; l++) counts += s.data->values[l];
    struct seen seen = {0};
    lr_osem_params params = osem_params(&s, 4, SUBSETS);
    params.iteration = see;
    params.user = &seen;
    assert_ok(array_osem(&params, s.image));
    assert_int_equal(seen.count, 4);
    assert_close(seen.last.measured_counts + seen.last.left_out_counts, counts, 1e-12);
    assert_close(seen.last.sensitive_counts, seen.last.measured_counts, 1e-5);
    session_finish(&s);
}

static double likelihood_of(const struct session *s, const float *image)
{
    struct seen seen = {0};
    float out[NUM_VOXELS];
    const lr_vector start = lr_vector_of_floats(image, NUM_VOXELS);
    const lr_mlem_params mlem = {
        .op = s->op, .data = &s->counts, .initial = &start, .iterations = 1, .iteration = see, .user = &seen};
    assert_ok(array_mlem(&mlem, out));
    return seen.last.log_likelihood;
}

/* Log-likelihood of the phantom minus that of the image after so many iterations with so many subsets. */
static double shortfall(struct session *s, int iterations, int subsets)
{
    const lr_osem_params params = osem_params(s, iterations, subsets);
    assert_ok(array_osem(&params, s->image));
    return likelihood_of(s, s->phantom) - likelihood_of(s, s->image);
}

/* With consistent data, ML-EM and OSEM converge to the maximum, which is the phantom. n iterations with four subsets
 * come about as near as 4 n with one subset: nearer than 3 n - 1, and not as near as 5 n + 2. */
static void test_subsets_are_faster(void **state)
{
    struct session s;
    session_init_fine(&s, *state);
    for (int n = 2; n <= 8; n *= 2) {
        const double subsets = shortfall(&s, n, SUBSETS), once = shortfall(&s, n, 1);
        const double fewer = shortfall(&s, 3 * n - 1, 1), as_many = shortfall(&s, 4 * n, 1);
        const double more = shortfall(&s, 5 * n + 2, 1);
        print_message("below the maximum: %.4g after %d iterations with %d subsets; with one %.4g, "
                      "and %.4g, %.4g, %.4g after %d, %d, %d iterations\n",
                      subsets, n, SUBSETS, once, fewer, as_many, more, 3 * n - 1, 4 * n, 5 * n + 2);
        assert_true(more < subsets && subsets < fewer && fewer < once);
    }
    session_finish(&s);
}

/* Given in groups, they are those that are dealt, and whole pairs by their numbers in the order of visits those
 * in groups of one; bit for bit: the matrix is kept. */
static void test_subsets_may_be_given(void **state)
{
    struct session s;
    int32_t group_of[28], order[SUBSETS], visit_of[SUBSETS];
    session_init(&s, *state);
    make_sparse(&s);
    lr_osem_visits(SUBSETS, order);
    for (int n = 0; n < SUBSETS; n++) visit_of[order[n]] = n;
    const lr_lors *lors = s.fixture.lors;
    int interleave = 0;
    assert_ok(lr_osem_interleave(lors, SUBSETS, &interleave, NULL));
    assert_true(interleave > 1 && lors->num_pairs <= 28);
    for (int k = 0; k < 4; k++) {
        const int given = k < 2 ? interleave : 1;
        lr_osem_params params = osem_params(&s, 2, SUBSETS);
        params.data = k % 2 ? &s.few : &s.counts;
        params.data_lors = k % 2 ? s.sparse.index : NULL;
        params.subset_of = group_of;
        params.interleave = given;
        assert_ok(lr_osem_subsets(lors, SUBSETS / given, group_of, NULL));
        assert_ok(array_osem(&params, s.image));
        for (int64_t pair = 0; given == 1 && pair < lors->num_pairs; pair++) group_of[pair] = visit_of[group_of[pair]];
        params.subset_of = given == 1 ? group_of : NULL;
        params.interleave = 0;
        assert_ok(array_osem(&params, s.other));
        assert_memory_equal(s.image, s.other, sizeof(s.image));
    }
    session_finish(&s);
}

static void test_sparse_is_dense(void **state)
{
    struct session s;
    session_init(&s, *state);
    draw_counts(&s, 2.0);
    make_sparse(&s);
    struct seen dense = {0}, sparse = {0};
    lr_osem_params params = osem_params(&s, 3, SUBSETS);
    params.iteration = see;
    params.user = &dense;
    assert_ok(array_osem(&params, s.image));
    params.data = &s.few;
    params.data_lors = s.sparse.index;
    params.user = &sparse;
    assert_ok(array_osem(&params, s.other));
    assert_true(difference(s.image, s.other) < 1e-5);
    assert_close(dense.last.log_likelihood, sparse.last.log_likelihood, 1e-6);
    assert_close(dense.last.estimated_counts, sparse.last.estimated_counts, 1e-6);
    assert_close(dense.last.sensitive_counts, sparse.last.sensitive_counts, 1e-6);
    assert_int_equal(dense.last.left_out_lors, sparse.last.left_out_lors);
    session_finish(&s);
}

/* --- additive term --- */

struct additive {
    lr_crystal_product product;
    float values[160];
    lr_lor_data *dense;
    lr_vector terms; /* the values of dense */
    double sum;
};

/* Crystals' products, and the same written out as data. */
static void additive_init(struct additive *additive, const struct session *s)
{
    uint64_t random = 3;
    const int num = s->fixture.scanner->num_crystals;
    assert_true(num <= 160);
    for (int c = 0; c < num; c++) additive->values[c] = (float)(0.5 + test_random(&random));
    additive->product = (lr_crystal_product){s->fixture.lors, additive->values, 0.02, NULL};
    additive->sum = lr_crystal_product_sum(&additive->product, 0);
    additive->dense = keep(lr_lor_data_create(s->fixture.lors, NULL));
    additive->terms = lr_lor_data_vector(additive->dense);
    const lr_lor_source source = lr_crystal_product_source(&additive->product);
    const lr_lor_span all = {.count = additive->dense->count};
    assert_ok(source.get(source.user, &all, additive->dense->values));
}

/* Given as data, as a source with its sum, as a source without; with dense and with sparse data. */
static void test_additive_source_is_additive_data(void **state)
{
    struct session s;
    session_init(&s, *state);
    struct additive additive;
    additive_init(&additive, &s);
    for (int64_t l = 0; l < s.data->count; l++) s.data->values[l] += additive.dense->values[l];
    draw_counts(&s, 1.0);
    make_sparse(&s);
    for (int subsets = 1; subsets <= SUBSETS; subsets += 3) {
        struct seen first = {0}, seen;
        for (int k = 0; k < 6; k++) {
            lr_osem_params params = osem_params(&s, 3, subsets);
            params.data = k % 2 ? &s.few : &s.counts;
            params.data_lors = k % 2 ? s.sparse.index : NULL;
            if (k < 2) {
                params.additive = &additive.terms;
            } else {
                params.additive_source = lr_crystal_product_source(&additive.product);
                params.additive_sum = k < 4 ? additive.sum : 0.0;
            }
            seen = (struct seen){0};
            params.iteration = see;
            params.user = &seen;
            assert_ok(array_osem(&params, k == 0 ? s.image : s.other));
            first = k == 0 ? seen : first;
            assert_true(difference(s.image, k == 0 ? s.image : s.other) < 1e-5);
            assert_close(seen.last.log_likelihood, first.last.log_likelihood, 1e-6);
            assert_close(seen.last.estimated_counts, first.last.estimated_counts, 1e-6);
            assert_int_equal(seen.last.left_out_lors, 0);
        }
    }
    lr_lor_data_destroy(additive.dense);
    session_finish(&s);
}

/* Counts where no activity reaches are left out, and counted once; an additive term reaches them. */
static void test_additive_term_reaches_counts(void **state)
{
    struct session s;
    session_init(&s, *state);
    struct additive additive;
    additive_init(&additive, &s);
    int lonely = 0;
    for (int64_t l = 0; l < s.data->count && lonely < 5; l++) {
        if (s.data->values[l] == 0.0f && additive.dense->values[l] > 0.0f) {
            s.data->values[l] = 2.0f;
            lonely++;
        }
    }
    assert_int_equal(lonely, 5);
    make_sparse(&s);
    for (int k = 0; k < 2; k++) {
        struct seen seen = {0};
        lr_osem_params params = osem_params(&s, 2, SUBSETS);
        params.data = k ? &s.few : &s.counts;
        params.data_lors = k ? s.sparse.index : NULL;
        params.iteration = see;
        params.user = &seen;
        s.log.num_warnings = 0;
        assert_ok(array_osem(&params, s.image));
        assert_int_equal(seen.last.left_out_lors, 5);
        assert_close(seen.last.left_out_counts, 10.0, 1e-12);
        assert_int_equal(s.log.num_warnings, 1);
        assert_says(s.log.warning, "5 LORs with 10 counts");
        seen = (struct seen){0};
        params.additive_source = lr_crystal_product_source(&additive.product);
        assert_ok(array_osem(&params, s.image));
        assert_int_equal(seen.last.left_out_lors, 0);
    }
    lr_lor_data_destroy(additive.dense);
    session_finish(&s);
}

/* --- subsets without counts --- */

/* Sets the counts of the subsets in `emptied` to 0. */
static void empty_subsets(struct session *s, int emptied)
{
    int32_t *subset_of = fixture_deal(s->fixture.lors, SUBSETS);
    for (int64_t l = 0; l < s->data->count; l++) s->data->values[l] *= emptied >> subset_of[l] & 1 ? 0.0f : 1.0f;
}

static lr_iteration run_emptied(const char *backend, int emptied, float *image)
{
    struct session s;
    struct seen seen = {0};
    session_init(&s, backend);
    assert_true((lr_operator_place(s.op) != NULL) == (store == LR_STORE_NO && strcmp(backend, "cpu") != 0));
    empty_subsets(&s, emptied);
    lr_osem_params params = osem_params(&s, 2, SUBSETS);
    params.iteration = see;
    params.user = &seen;
    assert_ok(array_osem(&params, image));
    session_finish(&s);
    return seen.last;
}

/* A device is told an update before it is known whether the one before was passed over: in the middle, at the
 * ends of both iterations. A matrix is kept on the host, which knows at once. */
static void test_a_device_passes_over_what_the_host_does(void **state)
{
    static const int emptied[] = {0x6, 0x9};
    static float here[NUM_VOXELS], there[NUM_VOXELS];
    for (size_t k = 0; k < sizeof(emptied) / sizeof(*emptied); k++) {
        store = LR_STORE_YES;
        const lr_iteration host = run_emptied(test_backend, emptied[k], here);
        store = LR_STORE_NO;
        const lr_iteration device = run_emptied(test_backend, emptied[k], there);
        store = LR_STORE_YES;
        assert_true(difference(here, there) < 1e-5);
        assert_true(fabs(host.measured_counts - device.measured_counts) <= 1e-6 * host.measured_counts);
        assert_true(fabs(host.log_likelihood - device.log_likelihood) <= 1e-6 * fabs(host.log_likelihood));
        assert_true(fabs(host.sensitive_counts - device.sensitive_counts) <= 1e-6 * host.sensitive_counts);
    }
}

static void test_empty_subset_is_passed_over(void **state)
{
    struct session s;
    session_init(&s, *state);
    empty_subsets(&s, 1 << 1);
    make_sparse(&s);
    for (int k = 0; k < 2; k++) {
        lr_osem_params params = osem_params(&s, 2, SUBSETS);
        params.data = k ? &s.few : &s.counts;
        params.data_lors = k ? s.sparse.index : NULL;
        s.log.num_warnings = 0;
        assert_ok(array_osem(&params, k ? s.other : s.image));
        assert_int_equal(s.log.num_warnings, 1);
        assert_says(s.log.warning, "a subset of 4 has no counts");
    }
    assert_true(difference(s.image, s.other) < 1e-5);
    double sum = 0.0;
    for (int v = 0; v < NUM_VOXELS; v++) sum += s.image[v];
    assert_true(sum > 0.0);
    session_finish(&s);
}

/* Data without counts give an image of zeros. */
static void test_no_counts_give_no_image(void **state)
{
    struct session s;
    session_init(&s, *state);
    const int64_t index = 0;
    const lr_vector none = {.count = 0};
    for (int subsets = 1; subsets <= SUBSETS; subsets += 3) {
        lr_osem_params params = osem_params(&s, 1, subsets);
        params.data = &none;
        params.data_lors = &index;
        assert_ok(array_osem(&params, s.image));
        for (int v = 0; v < NUM_VOXELS; v++) assert_true(s.image[v] == 0.0f);
    }
    session_finish(&s);
}

/* --- bad input --- */

static void expect(struct session *s, const lr_osem_params *params, lr_status status, const char *words)
{
    s->log.error[0] = '\0';
    s->log.status = LR_OK;
    assert_int_equal(array_osem(params, s->image), status);
    assert_int_equal(s->log.status, status);
    if (strstr(s->log.error, words) == NULL) fail_msg("\"%s\" does not say \"%s\"", s->log.error, words);
}

static lr_status negative(void *user, const lr_lor_span *span, float *values)
{
    for (int64_t k = 0; k < span->count; k++) values[k] = -1.0f;
    return LR_OK;
}

static void test_bad_input(void **state)
{
    struct session s;
    session_init(&s, *state);
    make_sparse(&s);
    lr_osem_params params = osem_params(&s, 1, -1);
    expect(&s, &params, LR_USAGE, "-1 subsets");
    params.subsets = 1 << 20;
    expect(&s, &params, LR_USAGE, "some would have no LOR");
    params = osem_params(&s, -2, SUBSETS);
    expect(&s, &params, LR_USAGE, "-2 iterations");
    params = osem_params(&s, 1, SUBSETS);
    params.additive = &s.counts;
    params.additive_source.get = negative;
    expect(&s, &params, LR_USAGE, "give one of the two");
    params.additive = NULL;
    expect(&s, &params, LR_BAD_INPUT, "the additive term of LOR");
    params.data = &s.few;
    params.data_lors = s.sparse.index;
    expect(&s, &params, LR_BAD_INPUT, "is -1: values must be finite");
    params.additive_sum = NAN;
    expect(&s, &params, LR_USAGE, "the sum of the additive source");
    int64_t index = 3;
    float value = 2.0f;
    for (int64_t l = 0; l < s.data->count; l++) /* a LOR that nothing reaches */
        index = s.data->values[l] == 0.0f ? l : index;
    const lr_vector lonely = lr_vector_of_floats(&value, 1);
    params = osem_params(&s, 1, SUBSETS);
    params.data = &lonely;
    params.data_lors = &index;
    expect(&s, &params, LR_BAD_INPUT, "none of the 2 counts");
    session_finish(&s);
}

/* --- threads --- */

static lr_status see_place(void *user, const lr_iteration *done)
{
    const char *wanted = user;
    assert_string_equal(lr_place_get_info(done->image->place).device, wanted);
    return LR_OK;
}

/* Loops over images and counts on the host take no more threads than the operator. */
static void test_threads_are_the_operators(void **state)
{
    struct session s;
    threads = 1;
    session_init(&s, *state);
    lr_osem_params params = osem_params(&s, 1, SUBSETS);
    params.iteration = see_place;
    params.user = "CPU, 1 thread";
    assert_null(lr_operator_place(s.op)); /* its matrix is kept */
    assert_ok(array_osem(&params, s.image));
    session_finish(&s);
    threads = 0;
}

int main(int argc, char **argv)
{
    if (!test_backend_is_usable(argc, argv, "cpu")) return 77;
    const struct CMUnitTest tests[] = {CASE(test_one_subset_is_mlem),
                                       CASE(test_each_visit_spreads_its_counts),
                                       CASE(test_a_device_is_stopped_after_whole_updates),
                                       CASE(test_iterations_keep_the_sum_rule),
                                       CASE(test_subsets_are_faster),
                                       CASE(test_subsets_may_be_given),
                                       CASE(test_sparse_is_dense),
                                       CASE(test_additive_source_is_additive_data),
                                       CASE(test_additive_term_reaches_counts),
                                       CASE(test_empty_subset_is_passed_over),
                                       CASE(test_a_device_passes_over_what_the_host_does),
                                       CASE(test_no_counts_give_no_image),
                                       CASE(test_bad_input),
                                       CASE(test_threads_are_the_operators)};
    return cmocka_run_group_tests_name(test_backend, tests, NULL, NULL);
}
