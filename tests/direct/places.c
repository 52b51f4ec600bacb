/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The family direct with its vectors at the place of the backend compute, in buffers or textures (argv[1]). One of the
 * two vectors of a projection may be on the host, buffers may belong to the caller, and a reconstruction copies only
 * sums to the host. Laws of vectors at any place are in tests/operator/laws.h. */
#include "direct/cases.h"

#include "common/bindings.h"
#include "gl/resource.h"

#include <lr/recon.h>

enum { NUM_VIEWS = 6, NX = 16, NY = 15, NZ = 9, NUM_VOXELS = NX * NY * NZ, NUM_DATA = NUM_VIEWS * NUM_VOXELS };

/* Largest relative difference: the passes are the same, and the host adds up back-projections in double. */
static const double rounding = 1e-6;

static struct session {
    struct test_log log;
    struct gl_context *ctx; /* the caller's, current */
    lr_shared_context shared;
    lr_operator *op;
    uint64_t random;
} s;

static lr_operator *create(const char *backend, bool has_factors)
{
    const lr_grid grid = lr_grid_centred((const int[3]){NX, NY, NZ}, (const double[3]){4, 4, 4});
    const lr_view_set set = {3, 2, 12};
    lr_view views[NUM_VIEWS];
    for (int k = 0; k < NUM_VIEWS; k++) views[k] = lr_view_set_at(&set, k);
    return kept_direct(filled(lr_direct_params, .grid = &grid, .views = views, .num_views = NUM_VIEWS,
                              .kernel = {.resolution = case_resolution(6)}, .backend = backend,
                              .shared = s.shared.context != NULL ? &s.shared : NULL,
                              .factors = has_factors ? &fixture_factors : NULL, .log = &s.log.log));
}

static void session_open(bool has_factors)
{
    s = (struct session){.random = test_seed()};
    test_log_init(&s.log);
    s.op = create("compute", has_factors);
    assert_non_null(lr_operator_place(s.op));
    assert_int_equal(lr_place_get_info(lr_operator_place(s.op)).kind, LR_PLACE_GL);
}

static void fill(float *values, int64_t count)
{
    for (int64_t k = 0; k < count; k++) values[k] = 0.5f + (float)test_random(&s.random);
}

static void assert_same(const float *got, const float *wanted, int64_t count)
{
    const double off = worst_apart(got, wanted, count); /* the result is NaN if a number is NaN or all are 0 */
    if (!(off <= rounding)) fail_msg("off by %g of the largest", off);
}

/* A part of a longer vector at the operator's place; it begins at a position to which no driver aligns. */
static lr_vector make(int64_t count)
{
    const lr_vector whole = kept_vector(lr_operator_place(s.op), count + 9, LR_FLOAT32);
    return lr_vector_part(&whole, 5, count);
}

static void get(const lr_vector *vector, float *values)
{
    assert_ok(lr_vector_copy(vector, vector_of(values, vector->count)));
}

/* --- projections --- */

static float x[NUM_VOXELS], y[NUM_DATA], on_host[NUM_DATA], there[NUM_DATA];

/* One of the two vectors of a projection is on the host. */
static void places_may_differ(void **state)
{
    session_open(false);
    lr_vector image = make(NUM_VOXELS), values = make(NUM_DATA), host_image = lr_vector_of_floats(x, NUM_VOXELS);
    lr_vector host_values = lr_vector_of_floats(there, NUM_DATA);
    fill(x, NUM_VOXELS);
    assert_ok(lr_vector_copy(vector_of(x, image.count), &image));
    assert_ok(array_forward(s.op, x, on_host), lr_operator_forward(s.op, NULL, &image, &host_values));
    assert_same(there, on_host, NUM_DATA);
    assert_ok(lr_operator_forward(s.op, NULL, &host_image, &values));
    get(&values, there);
    assert_same(there, on_host, NUM_DATA);
    assert_ok(array_back(s.op, there, on_host), lr_operator_back(s.op, NULL, &host_values, &image));
    get(&image, y);
    assert_same(y, on_host, NUM_VOXELS);
    assert_ok(lr_operator_back(s.op, NULL, &values, &host_image));
    assert_same(x, on_host, NUM_VOXELS);
}

/* --- reconstruction --- */

/* Bytes copied from the end of the first iteration to the end of the last. */
struct watch {
    lr_place *place; /* NULL = the image must be on the host */
    lr_traffic before, during;
    int iterations;
};

static lr_status look(void *user, const lr_iteration *done)
{
    struct watch *watch = user;
    const lr_traffic now = lr_place_get_info(watch->place).traffic;
    assert_ptr_equal(done->image->place != NULL && done->image->values == NULL ? done->image->place : NULL,
                     watch->place);
    watch->before = done->number == 1 ? now : watch->before;
    watch->during = (lr_traffic){now.to_device - watch->before.to_device, now.to_host - watch->before.to_host};
    watch->iterations++;
    return LR_OK;
}

/* Bytes of the sums of three iterations. In each iteration every subset adds up four vectors, each at most as long as
 * the subset's values, in groups of threads. */
static int64_t sums_bytes(int subsets)
{
    const int64_t longest = NUM_DATA / subsets, groups = (longest + LR_VECTOR_GROUP - 1) / LR_VECTOR_GROUP;
    return (int64_t)3 * subsets * 4 * groups * LR_VECTOR_NUM_SUMS * (int64_t)sizeof(double);
}

/* data_place: place of the counts y; NULL = the host. Returns the number of bytes copied to the device. */
static int64_t reconstruct(lr_operator *op, lr_place *data_place, lr_recon_params params, float *image)
{
    const lr_vector_params like = {.place = data_place, .name = "counts", .log = &s.log.log};
    lr_vector data;
    assert_ok(lr_vector_bring(vector_of(y, NUM_DATA), &like, &data));
    const lr_traffic before = lr_place_get_info(lr_operator_place(op)).traffic;
    struct watch watch = {.place = lr_operator_place(op)};
    params.op = op;
    params.data = &data;
    params.iterations = 4;
    params.iteration = look;
    params.user = &watch;
    params.log = &s.log.log;
    assert_ok(lr_recon(&params, vector_of(image, NUM_VOXELS)));
    assert_ints(watch.iterations, 4, watch.during.to_device, 0);
    assert_true(watch.during.to_host <= (watch.place != NULL ? sums_bytes(params.subsets) : 0));
    assert_true(params.without_fit || watch.place == NULL || watch.during.to_host > 0);
    lr_vector_destroy(&data);
    return lr_place_get_info(lr_operator_place(op)).traffic.to_device - before.to_device;
}

/* Every rule, with and without a fit, with factors. After the first iteration nothing is copied to the device, and the
 * image equals that of the backend cpu. Counts at the operator's place give the same bits as counts on the host, and
 * are not copied. Without factors nothing at all is copied to the device. */
static void an_iteration_stays_there(void **state)
{
    static float images[2][NUM_VOXELS];
    session_open(true);
    lr_operator *reference = create("cpu", true), *plain = create("compute", false);
    for (int k = 0; k < NUM_VOXELS; k++) x[k] = k % NX > 4 && k % NX < 9 ? 20.0f : 2.0f;
    assert_ok(array_forward(reference, x, y));
    for (int way = 0; way < 8; way++) {
        const bool is_ramla = way & 1;
        const lr_recon_params params = {.algorithm = is_ramla ? LR_ALGORITHM_RAMLA : LR_ALGORITHM_OSEM,
                                        .relaxation = is_ramla ? 0.6 : 0,
                                        .relaxation_fall = is_ramla ? 0.4 : 0,
                                        .subsets = way & 2 ? NUM_VIEWS : 2,
                                        .without_fit = way & 4};
        const int64_t from_host = reconstruct(s.op, NULL, params, images[0]);
        const int64_t from_place = reconstruct(s.op, lr_operator_place(s.op), params, images[1]);
        assert_true(from_place <= from_host - NUM_DATA * (int64_t)sizeof(float));
        assert_memory_equal(images[0], images[1], sizeof(images[0]));
        assert_int_equal(reconstruct(plain, lr_operator_place(plain), params, images[1]), 0);
        reconstruct(reference, NULL, params, images[1]);
        const double off = l2_apart(images[0], images[1], NUM_VOXELS);
        print_message("way %d: %.2g\n", way, off);
        assert_true(off < 1e-5); /* NaN if the image is 0 */
    }
}

/* --- together with another context --- */

/* A buffer of the caller is the image, and is written directly. */
static void a_callers_buffer_is_the_image(void **state)
{
    s = (struct session){.random = test_seed()};
    test_log_init(&s.log);
    s.ctx = non_null(gl_context_create(&(struct gl_context_params){.log = &s.log.log}));
    assert_ok(gl_context_make_current(s.ctx));
    assert_true(gl_context_share(&s.shared));
    s.op = create("compute", false);
    struct gl_buffer *buffer =
        non_null(gl_buffer_create(s.ctx, &(struct gl_buffer_params){.label = "the caller's", .size_bytes = sizeof(x)}));
    lr_vector_gl_buffer name = {.buffer = buffer->name, .after = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0)};
    glFlush();
    lr_vector image;
    assert_ok(lr_vector_wrap_gl(
        &(lr_vector_params){.place = lr_operator_place(s.op), .count = NUM_VOXELS, .log = &s.log.log}, &name, &image));
    fill(y, NUM_DATA);
    void *done;
    assert_ok(lr_operator_back(s.op, NULL, vector_of(y, NUM_DATA), &image), lr_place_fence(image.place, &done));
    while (glClientWaitSync(done, 0, UINT64_C(1000000000)) == GL_TIMEOUT_EXPIRED) {
    }
    glDeleteSync(done);
    assert_ok(gl_buffer_read(buffer, 0, sizeof(x), x), array_back(s.op, y, there));
    assert_same(x, there, NUM_VOXELS);
    lr_vector_destroy(&image);
    gl_buffer_destroy(buffer);
    destroy_kept_since(0);
    gl_context_release(s.ctx);
    gl_context_destroy(s.ctx);
}

usable_main(case_is_usable(argc, argv),
            CASES(places_may_differ, an_iteration_stays_there, a_callers_buffer_is_the_image))
