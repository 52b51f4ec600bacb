/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * OSEM with its vectors at the operator's place gives the same image as the backend cpu, and no LOR value passes
 * through the host. Images are copied to a texture of another context without a change. Laws of projections of
 * vectors at any place are in tests/operator/laws.h. */
#include "fixtures.h"

#include "gl/resource.h"

#include <lr/recon.h>

enum { MOST_VOXELS = 2000 };

struct bench {
    struct test_log log;
    struct fixture fixture;
    struct gl_context *ctx; /* the caller's, current */
    lr_shared_context shared;
    lr_operator *op;
    int64_t num_voxels;
    uint64_t random;
};

/* Fixtures projected by columns, in both modes; by pairs; and by the rasteriser. */
static const struct way {
    enum fixture_kind kind;
    lr_mode mode;
    const char *backend;
} ways[] = {{FIXTURE_RING, LR_MODE_SAMPLED, "compute"},
            {FIXTURE_RING, LR_MODE_EXACT, "compute"},
            {FIXTURE_TILTED, LR_MODE_EXACT, "compute"},
            {FIXTURE_RING, LR_MODE_SAMPLED, "raster"}};

static struct bench benches[length_of(ways)]; /* programs are compiled once */

static void bench_init(struct bench *bench, const struct way *way, struct gl_context *ctx)
{
    *bench = (struct bench){.random = 11, .ctx = ctx};
    test_log_init(&bench->log);
    fixture_init(&bench->fixture, way->kind);
    assert_true(gl_context_share(&bench->shared));
    lr_operator_params params = fixture_params(&bench->fixture, way->backend, &bench->log.log);
    params.mode = way->mode;
    params.rays = way->mode == LR_MODE_SAMPLED ? 2 : 0;
    params.shared = &bench->shared;
    bench->op = lr_operator_create(&params);
    if (bench->op == NULL) fail_msg("%s", bench->log.error);
    bench->num_voxels = lr_grid_num_voxels(&bench->fixture.grid);
    assert_in_range(bench->num_voxels, 1, MOST_VOXELS);
    assert_non_null(lr_operator_place(bench->op));
}

static void fill(struct bench *bench, float *values, int64_t count)
{
    for (int64_t k = 0; k < count; k++) values[k] = (float)(0.5 + 1.5 * test_random(&bench->random));
}

static lr_vector make(const struct bench *bench, int64_t count)
{
    return kept_vector(lr_operator_place(bench->op), count, LR_FLOAT32);
}

/* The texture is made in the caller's context and written in the operator's context. */
static void a_texture_of_another_context_gets_it(void **state)
{
    static float image[MOST_VOXELS], texels[MOST_VOXELS];
    for (int k = 0; k < length_of(ways); k++) {
        struct bench *bench = &benches[k];
        const int *size = bench->fixture.grid.size;
        struct gl_texture *texture = non_null(gl_texture_create(
            bench->ctx, &filled(struct gl_texture_params, .label = "shared", .target = GL_TEXTURE_3D, .format = GL_R32F,
                                .width = size[0], .height = size[1], .depth = size[2])));
        lr_vector_texture copy = {.texture = texture->name, .size = {size[0], size[1], size[2]}};
        lr_vector x = make(bench, bench->num_voxels);
        fill(bench, image, bench->num_voxels);
        assert_ok(lr_vector_copy(vector_of(image, x.count), &x));
        copy.after = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
        glFlush();
        assert_ok(lr_vector_show(&x, &copy));
        while (glClientWaitSync(copy.done, 0, UINT64_C(1000000000)) == GL_TIMEOUT_EXPIRED) {
        }
        assert_ok(gl_texture_read(texture, NULL, texels));
        assert_memory_equal(texels, image, (size_t)bench->num_voxels * sizeof(*image));
        glDeleteSync(copy.done);
        gl_texture_destroy(texture);
    }
}

/* --- OSEM --- */

/* Results of each iteration, of the reference (backend cpu on the host) or of a device at its place. */
struct watch {
    double said[3][3];         /* of each iteration: log-likelihood, estimated and sensitive counts */
    bool is_there;             /* the image must be at the place */
    lr_place *place;           /* or NULL */
    lr_traffic before, during; /* copied bytes from the end of the first iteration to the end of the last */
};

static lr_status look(void *user, const lr_iteration *done)
{
    struct watch *watch = user;
    assert_true((done->image->values == NULL) == watch->is_there);
    const double said[3] = {done->log_likelihood, done->estimated_counts, done->sensitive_counts};
    memcpy(watch->said[done->number - 1], said, sizeof(said));
    const lr_traffic now = lr_place_get_info(watch->place).traffic;
    if (done->number == 1) watch->before = now;
    watch->during.to_host = now.to_host - watch->before.to_host;
    watch->during.to_device = now.to_device - watch->before.to_device;
    return LR_OK;
}

static void compare_watches(const struct watch *found, const struct watch *expected)
{
    for (int k = 0; k < 9; k++) assert_close(found->said[k / 3][k % 3], expected->said[k / 3][k % 3], 1e-5);
}

static void reconstruct(struct bench *bench, const lr_lor_data *data, int subsets)
{
    static float images[2][MOST_VOXELS];
    const lr_operator_info *info = lr_operator_get_info(bench->op);
    lr_operator_params reference = fixture_params(&bench->fixture, "cpu", NULL);
    reference.mode = info->mode;
    reference.rays = info->rays;
    lr_operator *ops[2] = {keep(lr_operator_create(&reference)), bench->op};
    struct watch watches[2] = {{.is_there = false}, {.is_there = true, .place = lr_operator_place(bench->op)}};
    const lr_vector counts = lr_lor_data_vector(data);
    for (int k = 0; k < 2; k++) {
        const lr_osem_params params =
            filled(lr_osem_params, .op = ops[k], .data = &counts, .data_lors = data->index, .iterations = 3,
                   .subsets = subsets, .iteration = look, .user = &watches[k], .log = &bench->log.log);
        assert_ok(array_osem(&params, images[k]));
    }
    /* differences grow from one update to the next */
    assert_true(l2_apart(images[1], images[0], bench->num_voxels) < 1e-5);
    compare_watches(&watches[1], &watches[0]);
    if (data->index == NULL) { /* only sums are copied, of at most 1024 groups, four for each update */
        const int64_t sums = INT64_C(2) * subsets * 4 * 1024 * 6 * (int64_t)sizeof(double);
        assert_all(watches[1].during.to_device == 0, watches[1].during.to_host <= sums);
        assert_true(watches[1].during.to_host < bench->fixture.lors->count * (int64_t)sizeof(float));
    }
}

static void osem_is_the_references(void **state)
{
    static float image[MOST_VOXELS];
    for (int k = 0; k < length_of(ways); k++) {
        struct bench *bench = &benches[k];
        lr_lor_data *data = keep(lr_lor_data_create(bench->fixture.lors, NULL));
        fill(bench, image, bench->num_voxels);
        for (int64_t v = 0; v < bench->num_voxels; v++) image[v] *= v % 7 == 0 ? 4000.0f : 500.0f;
        assert_ok(array_forward(bench->op, image, data->values), lr_poisson(data->values, data->count, 5, NULL));
        reconstruct(bench, data, 1);
        if (ways[k].kind == FIXTURE_RING) reconstruct(bench, data, 3);
        const lr_lor_data *sparse = kept_sparse(data);
        assert_true(sparse->count > 0);
        reconstruct(bench, sparse, ways[k].kind == FIXTURE_RING ? 3 : 1);
    }
}

/* The place has memory for images only, or for nothing. The result is the same, and the number of copied bytes shows
 * where the vectors are. */
static void reconstruct_within(struct bench *bench, const lr_lor_data *data, int64_t bytes, struct watch *watch,
                               float *image)
{
    lr_operator_params params = fixture_params(&bench->fixture, "compute", &bench->log.log);
    params.mode = LR_MODE_EXACT;
    params.max_memory_bytes = bytes;
    lr_operator *op = keep(lr_operator_create(&params));
    assert_int_equal(lr_operator_get_info(op)->max_memory_bytes, bytes);
    watch->place = lr_operator_place(op);
    const lr_vector counts = lr_lor_data_vector(data);
    const lr_osem_params osem = filled(lr_osem_params, .op = op, .data = &counts, .iterations = 3, .subsets = 3,
                                       .iteration = look, .user = watch, .log = &bench->log.log);
    assert_ok(array_osem(&osem, image));
}

static void osem_heeds_a_limit_of_memory(void **state)
{
    static float images[3][MOST_VOXELS];
    struct bench *bench = &benches[1];
    lr_lor_data *data = keep(lr_lor_data_create(bench->fixture.lors, NULL));
    for (int64_t n = 0; n < data->count; n++) data->values[n] = 1.0f + (float)(n % 5);
    const int64_t image_bytes = bench->num_voxels * (int64_t)sizeof(float);
    const int64_t value_bytes = data->count * (int64_t)sizeof(float);
    assert_true(6 * image_bytes < 3 * value_bytes); /* otherwise the second case has room for values, too */
    struct watch watches[3] = {{.is_there = true}, {.is_there = true}, {.is_there = false}};
    reconstruct_within(bench, data, 6 * image_bytes + 4 * value_bytes, &watches[0], images[0]);
    reconstruct_within(bench, data, 6 * image_bytes, &watches[1], images[1]);
    reconstruct_within(bench, data, 5 * image_bytes, &watches[2], images[2]);
    assert_true(watches[0].during.to_device == 0);
    assert_true(watches[1].during.to_host >= 2 * value_bytes); /* in two iterations */
    assert_true(watches[2].during.to_host >= 2 * (value_bytes + 3 * image_bytes));
    for (int k = 1; k < 3; k++) compare_watches(&watches[k], &watches[0]);
    for (int64_t v = 0; v < 2 * bench->num_voxels; v++) {
        const float found = images[1 + v % 2][v / 2], expected = images[0][v / 2];
        assert_true(fabsf(found - expected) <= 1e-4f * expected);
    }
}

/* --- refusals --- */

static void wrong_numbers_are_refused(void **state)
{
    struct bench *bench = &benches[0];
    lr_vector x = make(bench, bench->num_voxels), y = make(bench, bench->fixture.lors->count);
    lr_vector one = lr_vector_part(&x, 2, 1), few = lr_vector_part(&y, 0, y.count - 1);
    test_log_init(&bench->log);
    assert_ok(lr_vector_fill(&one, NAN));
    assert_fails(lr_operator_forward(bench->op, NULL, &x, &y), LR_BAD_INPUT, &bench->log, "voxel (2, 0, 0)");
    assert_fails(lr_operator_back(bench->op, NULL, &few, &x), LR_USAGE, &bench->log, "numbers where the operator has");
    assert_int_equal(lr_operator_forward(bench->op, NULL, &x, NULL), LR_USAGE);
}

/* Such an update leaves the image unchanged. */
static void an_update_that_overflows_is_refused(void **state)
{
    static float image[MOST_VOXELS];
    struct bench *bench = &benches[0];
    lr_lor_data *data = keep(lr_lor_data_create(bench->fixture.lors, NULL));
    for (int64_t k = 0; k < data->count; k++) data->values[k] = 1e38f;
    for (int64_t v = 0; v < bench->num_voxels; v++) image[v] = 1e38f;
    float *initial = kept_floats(bench->num_voxels);
    memcpy(initial, image, (size_t)bench->num_voxels * sizeof(*initial));
    const lr_vector counts = lr_lor_data_vector(data);
    const lr_osem_params params = {
        .op = bench->op, .data = &counts, .initial = vector_of(initial, bench->num_voxels), .log = &bench->log.log};
    test_log_init(&bench->log);
    assert_fails(array_osem(&params, image), LR_FAILED, &bench->log, "beyond the largest number");
    assert_true(image[0] == 1e38f);
}

static void a_vector_outlives_its_operator(void **state)
{
    lr_operator_params params = fixture_params(&benches[0].fixture, "compute", NULL);
    lr_operator *op = fixture_operator(&params);
    lr_vector x;
    lr_vector_sums sums;
    assert_ok(lr_vector_create(&(lr_vector_params){.place = lr_operator_place(op), .count = 12}, &x));
    lr_operator_destroy(op);
    assert_ok(lr_vector_fill(&x, 1.5), lr_vector_add_up(&x, NULL, &sums));
    assert_true(sums.sum == 18.0);
    lr_vector_destroy(&x);
}

/* The context was made by nobody: the call fails, and does not silently compute on another device. */
static void a_context_that_is_none_is_refused(void **state)
{
    struct bench *bench = &benches[0];
    struct test_log log = TEST_LOG(log);
    const lr_shared_context none = {bench->shared.display, &log};
    lr_operator_params params = fixture_params(&bench->fixture, "compute", &log.log);
    params.shared = &none;
    assert_none(lr_operator_create(&params), LR_NO_DEVICE, &log, "shares objects");
}

int main(void)
{
    const struct CMUnitTest tests[] = {CASES(a_texture_of_another_context_gets_it, osem_is_the_references,
                                             osem_heeds_a_limit_of_memory, wrong_numbers_are_refused,
                                             an_update_that_overflows_is_refused, a_vector_outlives_its_operator,
                                             a_context_that_is_none_is_refused)};
    static struct test_log log = TEST_LOG(log);
    struct gl_context *ctx = gl_context_create(&(struct gl_context_params){.log = &log.log});
    if (ctx == NULL || gl_context_make_current(ctx) != LR_OK) {
        print_message("skipped: %s\n", log.error);
        gl_context_destroy(ctx);
        return 77;
    }
    for (int k = 0; k < length_of(ways); k++) bench_init(&benches[k], &ways[k], ctx);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int k = 0; k < length_of(ways); k++) {
        lr_operator_destroy(benches[k].op);
        assert_int_equal(glGetError(), GL_NO_ERROR);
        fixture_finish(&benches[k].fixture);
    }
    gl_context_release(ctx);
    gl_context_destroy(ctx);
    return failed;
}
