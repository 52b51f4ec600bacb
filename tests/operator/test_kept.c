/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images that stay on the device are what the host's own are, in every step of OSEM, and reach a
 * texture of another context as they are. */
#include "fixtures.h"

#include "gl/resource.h"

#include <lr/recon.h>

enum { MOST_VOXELS = 2000 };

/* Sums in another order, divisions in single precision: of the largest value. */
static const double rounding = 2e-6;

struct bench {
    struct test_log log;
    struct fixture fixture;
    struct gl_context *ctx; /* the caller's, current */
    lr_shared_context shared;
    lr_operator *op;
    int64_t num_voxels;
    uint64_t random;
};

/* Where the fixture is projected by columns, in both modes, and by pairs. */
static const struct way {
    enum fixture_kind kind;
    lr_mode mode;
} ways[] = {{FIXTURE_RING, LR_MODE_SAMPLED},
            {FIXTURE_RING, LR_MODE_EXACT},
            {FIXTURE_TILTED, LR_MODE_EXACT}};
enum { NUM_WAYS = sizeof(ways) / sizeof(ways[0]) };

static struct bench benches[NUM_WAYS]; /* programs are compiled once */

static void bench_init(struct bench *bench, const struct way *way, struct gl_context *ctx)
{
    *bench = (struct bench){.random = 11, .ctx = ctx};
    test_log_init(&bench->log);
    fixture_init(&bench->fixture, way->kind);
    assert_true(gl_context_share(&bench->shared));
    lr_operator_params params = fixture_params(&bench->fixture, "compute", &bench->log.log);
    params.mode = way->mode;
    params.rays = way->mode == LR_MODE_SAMPLED ? 2 : 0;
    params.shared = &bench->shared;
    bench->op = fixture_operator(&params);
    bench->num_voxels = lr_grid_num_voxels(&bench->fixture.grid);
    assert_in_range(bench->num_voxels, 1, MOST_VOXELS);
    assert_true(lr_operator_keeps_images(bench->op));
    assert_int_equal(lr_operator_read_kept(bench->op, (float[1]){0}), LR_USAGE); /* none is kept */
}

static void bench_finish(struct bench *bench)
{
    lr_operator_destroy(bench->op);
    assert_int_equal(glGetError(), GL_NO_ERROR);
    fixture_finish(&bench->fixture);
}

static void fill(struct bench *bench, float *values, int64_t count)
{
    double *doubles = fixture_doubles(count);
    fixture_fill(doubles, count, (const double[2]){0.5, 2.0}, &bench->random);
    for (int64_t k = 0; k < count; k++) {
        values[k] = (float)doubles[k];
    }
    free(doubles);
}

static void assert_same(const float *got, const float *wanted, int64_t count)
{
    double largest = 0.0, off = 0.0;
    for (int64_t k = 0; k < count; k++) {
        assert_true(isfinite(got[k]));
        largest = fmax(largest, fabs((double)wanted[k]));
        off = fmax(off, fabs((double)got[k] - wanted[k]));
    }
    assert_true(largest > 0.0);
    if (off > rounding * largest) {
        fail_msg("off by %g of %g", off, largest);
    }
}

/* One step of EM with some of the LORs, on the device and by hand. */
static void step_once(struct bench *bench, const lr_selection *part)
{
    static float image[MOST_VOXELS], sensitivity[MOST_VOXELS], back[MOST_VOXELS], got[MOST_VOXELS];
    const int64_t count = lr_selection_count(bench->fixture.lors, part);
    float *values = calloc((size_t)count, sizeof(*values)),
          *wanted = calloc((size_t)count, sizeof(*wanted));
    assert_true(values != NULL && wanted != NULL);
    fill(bench, image, bench->num_voxels);
    assert_int_equal(lr_operator_sensitivity_part(bench->op, part, sensitivity), LR_OK);
    sensitivity[1] = 0.0f; /* as if no LOR saw it */
    assert_int_equal(lr_operator_keep_image(bench->op, 0, image), LR_OK);
    assert_int_equal(lr_operator_keep_image(bench->op, 3, sensitivity), LR_OK);
    assert_int_equal(lr_operator_forward_part(bench->op, part, image, wanted), LR_OK);
    assert_int_equal(lr_operator_forward_kept(bench->op, part, values), LR_OK);
    assert_same(values, wanted, count);
    fill(bench, values, count);
    assert_int_equal(lr_operator_back_part(bench->op, part, values, back), LR_OK);
    assert_int_equal(lr_operator_update_kept(bench->op, part, values, 3), LR_OK);
    lr_kept_sums sums, by_hand = {0};
    assert_int_equal(lr_operator_sum_kept(bench->op, 3, &sums), LR_OK);
    for (int64_t v = 0; v < bench->num_voxels; v++) {
        const double s = sensitivity[v];
        image[v] = s > 0.0 ? (float)(image[v] / s * back[v]) : image[v];
        by_hand.products += s * image[v];
        by_hand.differences += (image[v] - s) * (image[v] - s);
        by_hand.largest = fmax(by_hand.largest, (double)image[v]);
    }
    assert_int_equal(lr_operator_read_kept(bench->op, got), LR_OK);
    assert_same(got, image, bench->num_voxels);
    assert_true(got[1] == image[1]);
    assert_true(fabs(sums.products / by_hand.products - 1.0) < rounding);
    assert_true(fabs(sums.differences / by_hand.differences - 1.0) < rounding);
    assert_true(fabs(sums.largest / by_hand.largest - 1.0) < rounding);
    free(values);
    free(wanted);
}

static void a_step_is_the_hosts(void **state)
{
    (void)state;
    for (int k = 0; k < NUM_WAYS; k++) {
        struct bench *bench = &benches[k];
        const int32_t pairs[1] = {0};
        const int64_t lors[4] = {3, 17, 18, 40};
        step_once(bench, &(lr_selection){0});
        step_once(bench, &(lr_selection){.pairs = pairs, .num_pairs = 1});
        step_once(bench, &(lr_selection){.lors = lors, .num_lors = 4});
    }
}

/* The texture, made in the caller's context, written in the operator's. */
static void a_texture_of_another_context_gets_it(void **state)
{
    (void)state;
    static float image[MOST_VOXELS], texels[MOST_VOXELS];
    for (int k = 0; k < NUM_WAYS; k++) {
        struct bench *bench = &benches[k];
        const int *size = bench->fixture.grid.size;
        struct gl_texture *texture =
            gl_texture_create(bench->ctx, &(struct gl_texture_params){.label = "shared",
                                                                      .target = GL_TEXTURE_3D,
                                                                      .format = GL_R32F,
                                                                      .width = size[0],
                                                                      .height = size[1],
                                                                      .depth = size[2]});
        assert_non_null(texture);
        lr_texture_copy copy = {.texture = texture->name};
        fill(bench, image, bench->num_voxels);
        assert_int_equal(lr_operator_keep_image(bench->op, 0, image), LR_OK);
        copy.after = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
        glFlush();
        assert_int_equal(lr_operator_copy_kept(bench->op, &copy), LR_OK);
        while (glClientWaitSync(copy.done, 0, UINT64_C(1000000000)) == GL_TIMEOUT_EXPIRED) {
        }
        assert_int_equal(gl_texture_read(texture, NULL, texels), LR_OK);
        assert_memory_equal(texels, image, (size_t)bench->num_voxels * sizeof(*image));
        glDeleteSync(copy.done);
        gl_texture_destroy(texture);
    }
}

/* --- OSEM --- */

struct watch {
    lr_operator *op;
    double log_likelihood[4], estimated[4], sensitive[4];
    bool keeps;
};

static lr_status look(void *user, const lr_iteration *done)
{
    struct watch *watch = user;
    assert_true((done->image == NULL) == watch->keeps);
    watch->log_likelihood[done->number - 1] = done->log_likelihood;
    watch->estimated[done->number - 1] = done->estimated_counts;
    watch->sensitive[done->number - 1] = done->sensitive_counts;
    return LR_OK;
}

static void reconstruct(struct bench *bench, const lr_lor_data *data, int subsets)
{
    static float images[2][MOST_VOXELS];
    struct watch watches[2] = {{.op = bench->op}, {.op = bench->op, .keeps = true}};
    for (int k = 0; k < 2; k++) {
        const lr_osem_params params = {.op = bench->op,
                                       .data = data,
                                       .iterations = 3,
                                       .subsets = subsets,
                                       .keeps_image = k == 1,
                                       .iteration = look,
                                       .user = &watches[k],
                                       .log = &bench->log.log};
        assert_int_equal(lr_osem(&params, images[k]), LR_OK);
    }
    double off = 0.0, norm = 0.0; /* differences grow from one update to the next */
    for (int64_t v = 0; v < bench->num_voxels; v++) {
        off += pow((double)images[1][v] - images[0][v], 2);
        norm += pow(images[0][v], 2);
    }
    assert_true(sqrt(off / norm) < 1e-5);
    for (int n = 0; n < 3; n++) {
        assert_true(fabs(watches[1].log_likelihood[n] / watches[0].log_likelihood[n] - 1) < 1e-5);
        assert_true(fabs(watches[1].estimated[n] / watches[0].estimated[n] - 1) < 1e-5);
        assert_true(fabs(watches[1].sensitive[n] / watches[0].sensitive[n] - 1) < 1e-5);
    }
}

static void osem_is_the_hosts(void **state)
{
    (void)state;
    static float image[MOST_VOXELS];
    for (int k = 0; k < NUM_WAYS; k++) {
        struct bench *bench = &benches[k];
        lr_lor_data *data = lr_lor_data_create(bench->fixture.lors, NULL);
        fill(bench, image, bench->num_voxels);
        for (int64_t v = 0; v < bench->num_voxels; v++) {
            image[v] *= v % 7 == 0 ? 4000.0f : 500.0f;
        }
        assert_int_equal(lr_operator_forward(bench->op, image, data->values), LR_OK);
        assert_int_equal(lr_poisson(data->values, data->count, 5, NULL), LR_OK);
        reconstruct(bench, data, 1);
        if (ways[k].kind == FIXTURE_RING) {
            reconstruct(bench, data, 3);
        }
        int64_t *index = calloc((size_t)data->count, sizeof(*index));
        lr_lor_data sparse = {.index = index, .values = data->values};
        for (int64_t n = 0; n < data->count; n++) {
            if (data->values[n] > 0.0f) {
                index[sparse.count] = n;
                data->values[sparse.count++] = data->values[n];
            }
        }
        assert_true(sparse.count > 0);
        reconstruct(bench, &sparse, ways[k].kind == FIXTURE_RING ? 3 : 1);
        free(index);
        lr_lor_data_destroy(data);
    }
}

/* --- refusals --- */

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static float image[MOST_VOXELS], before[MOST_VOXELS];
    struct bench *bench = &benches[0];
    float *values = calloc((size_t)bench->fixture.lors->count, sizeof(*values));
    lr_kept_sums sums;
    fill(bench, before, bench->num_voxels);
    assert_int_equal(lr_operator_keep_image(bench->op, 0, before), LR_OK);
    assert_int_equal(lr_operator_sum_kept(bench->op, 7, &sums), LR_USAGE);
    assert_int_equal(lr_operator_sum_kept(bench->op, -1, &sums), LR_USAGE);
    image[2] = NAN;
    assert_int_equal(lr_operator_keep_image(bench->op, 1, image), LR_BAD_INPUT);
    for (int64_t v = 0; v < bench->num_voxels; v++) {
        image[v] = 1e-30f;
    }
    for (int64_t n = 0; n < bench->fixture.lors->count; n++) {
        values[n] = 1e30f;
    }
    assert_int_equal(lr_operator_keep_image(bench->op, 1, image), LR_OK);
    assert_int_equal(lr_operator_update_kept(bench->op, &(lr_selection){0}, values, 1), LR_FAILED);
    assert_non_null(strstr(bench->log.error, "beyond the largest number"));
    assert_int_equal(lr_operator_read_kept(bench->op, image), LR_OK);
    assert_memory_equal(image, before, (size_t)bench->num_voxels * sizeof(*image));
    free(values);
}

static void other_operators_say_that_they_do_not(void **state)
{
    (void)state;
    static float image[MOST_VOXELS];
    struct fixture fixture;
    fixture_init(&fixture, FIXTURE_RING);
    struct test_log log;
    test_log_init(&log);
    lr_operator_params params = fixture_params(&fixture, "cpu", &log.log);
    lr_operator *op = fixture_operator(&params);
    assert_false(lr_operator_keeps_images(op));
    assert_int_equal(lr_operator_keep_image(op, 0, image), LR_USAGE);
    assert_non_null(strstr(log.error, "cpu"));
    lr_operator_destroy(op);
    fixture_finish(&fixture);
}

/* Made by nobody: it is not computed on another device in silence. */
static void a_context_that_is_none_is_refused(void **state)
{
    (void)state;
    struct bench *bench = &benches[0];
    struct test_log log;
    test_log_init(&log);
    const lr_shared_context none = {bench->shared.display, &log};
    lr_operator_params params = fixture_params(&bench->fixture, "compute", &log.log);
    params.shared = &none;
    assert_null(lr_operator_create(&params));
    assert_int_equal(log.status, LR_NO_DEVICE);
    assert_non_null(strstr(log.error, "shares objects"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_the_hosts),
        cmocka_unit_test(a_texture_of_another_context_gets_it),
        cmocka_unit_test(osem_is_the_hosts),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(other_operators_say_that_they_do_not),
        cmocka_unit_test(a_context_that_is_none_is_refused),
    };
    static struct test_log log;
    test_log_init(&log);
    struct gl_context *ctx = gl_context_create(&(struct gl_context_params){.log = &log.log});
    if (ctx == NULL || gl_context_make_current(ctx) != LR_OK) {
        print_message("skipped: %s\n", log.error);
        gl_context_destroy(ctx);
        return 77;
    }
    for (int k = 0; k < NUM_WAYS; k++) {
        bench_init(&benches[k], &ways[k], ctx);
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int k = 0; k < NUM_WAYS; k++) {
        bench_finish(&benches[k]);
    }
    gl_context_release(ctx);
    gl_context_destroy(ctx);
    return failed;
}
