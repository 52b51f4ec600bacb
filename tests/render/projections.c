/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Forward and back-projection of the raster backend against its own rows: adjoint, windows of LORs,
 * the same bits every time; and which shaders they run. */
#include "backend_arrays.h"
#include "stage.h"

#include "device/place.h"

/* Relative to the norms, in float. */
static const double adjoint_tolerance = 1e-6;

/* Of one LOR or voxel: some hundred float additions of positive numbers. */
static const double sum_tolerance = 5e-6;

/* A raster backend with a small grid, and its matrix from fns->rows. */
struct bench {
    bool deterministic; /* the caller's, before it is opened */
    struct test_log log;
    lr_scanner *scanner;
    lr_lors *lors;
    lr_grid grid;
    struct lr_backend_params params;
    struct lr_backend backend;
    int64_t num_voxels, num_elements, capacity;
    struct element {
        int64_t voxel, lor;
        double probability;
    } * elements;
};

static lr_status take_row(void *user, const lr_row *row)
{
    struct bench *bench = user;
    for (int64_t k = 0; k < row->count; k++) {
        if (bench->num_elements == bench->capacity) {
            bench->capacity = 2 * bench->capacity + 1024;
            bench->elements = realloc(bench->elements, (size_t)bench->capacity * sizeof(*bench->elements));
            assert_non_null(bench->elements);
        }
        bench->elements[bench->num_elements++] = (struct element){row->row, row->lor[k], row->probability[k]};
    }
    return LR_OK;
}

static void read_matrix(struct bench *bench)
{
    const struct lr_rows rows = {
        .grid = &bench->grid,
        .samples = {bench->params.samples[0], bench->params.samples[1], bench->params.samples[2]},
        .end = bench->num_voxels};
    stage_check(bench, bench->backend.fns->rows(bench->backend.self, &rows, &(lr_row_sink){take_row, bench}) == LR_OK);
    assert_true(bench->num_elements > 30);
}

/* memory: max_memory_bytes of the backend. */
static void bench_open(struct bench *bench, lr_scanner *scanner, double reach_mm, int rays, const int samples[3],
                       int64_t memory)
{
    *bench = (struct bench){.scanner = scanner, .deterministic = bench->deterministic};
    test_log_init(&bench->log);
    bench->lors = lr_lors_create(scanner, &bench->log.log);
    stage_check(bench, bench->lors != NULL);
    const int size[3] = {5, 4, 3};
    const double edge = reach_mm / 4;
    bench->grid = lr_grid_centred(size, (const double[3]){edge, edge * 1.1, edge * 0.7});
    bench->grid.origin_mm[0] += 0.13 * edge;
    bench->num_voxels = lr_grid_num_voxels(&bench->grid);
    bench->params = (struct lr_backend_params){.scanner = scanner,
                                               .lors = bench->lors,
                                               .grid = &bench->grid,
                                               .mode = LR_MODE_SAMPLED,
                                               .rays = rays,
                                               .samples = {samples[0], samples[1], samples[2]},
                                               .threads = 2,
                                               .max_memory_bytes = memory,
                                               .deterministic = bench->deterministic,
                                               .log = &bench->log.log};
    stage_check(bench, lr_raster_backend_create(&bench->params, &bench->backend) == LR_OK);
}

static void bench_close(struct bench *bench)
{
    bench->backend.fns->destroy(bench->backend.self);
    free(bench->elements);
    lr_lors_destroy(bench->lors);
    lr_scanner_destroy(bench->scanner);
}

static float *random_values(int64_t count, uint64_t *state)
{
    float *values = test_alloc(count, sizeof(*values));
    for (int64_t k = 0; k < count; k++) values[k] = (float)random_between(state, 0.5, 2);
    return values;
}

static double dot(const float *a, const float *b, int64_t count)
{
    double sum = 0;
    for (int64_t k = 0; k < count; k++) sum += (double)a[k] * (double)b[k];
    return sum;
}

struct vectors {
    float *image, *data;         /* inputs */
    float *projected, *gathered; /* A image, A^T data */
};

static lr_status forward(const struct bench *bench, const float *image, float *data)
{
    return backend_forward(&bench->backend, lr_vector_of_floats(image, bench->num_voxels),
                           lr_vector_of_floats(data, bench->lors->count));
}

static lr_status back(const struct bench *bench, const float *data, float *image)
{
    return backend_back(&bench->backend, lr_vector_of_floats(data, bench->lors->count),
                        lr_vector_of_floats(image, bench->num_voxels));
}

static void project(struct bench *bench, struct vectors *vectors, uint64_t *state)
{
    vectors->image = random_values(bench->num_voxels, state);
    vectors->data = random_values(bench->lors->count, state);
    vectors->image[7] = 0;
    vectors->projected = test_alloc(bench->lors->count, sizeof(float));
    vectors->gathered = test_alloc(bench->num_voxels, sizeof(float));
    vectors->projected[0] = 123; /* outputs are overwritten */
    vectors->gathered[0] = 123;
    stage_check(bench, forward(bench, vectors->image, vectors->projected) == LR_OK);
    stage_check(bench, back(bench, vectors->data, vectors->gathered) == LR_OK);
}

static void vectors_finish(struct vectors *vectors)
{
    free(vectors->image);
    free(vectors->data);
    free(vectors->projected);
    free(vectors->gathered);
}

/* |<A x, y> - <x, A^T y>| / (|A x| |y|) */
static double adjoint_error(const struct bench *bench, const struct vectors *vectors)
{
    const int64_t num_lors = bench->lors->count;
    const double left = dot(vectors->projected, vectors->data, num_lors);
    const double right = dot(vectors->image, vectors->gathered, bench->num_voxels);
    return fabs(left - right) /
           sqrt(dot(vectors->projected, vectors->projected, num_lors) * dot(vectors->data, vectors->data, num_lors));
}

/* Largest relative difference of forward and back from the rows. */
static void compare_with_rows(const struct bench *bench, const struct vectors *vectors)
{
    double *data = test_alloc(bench->lors->count, sizeof(*data));
    double *image = test_alloc(bench->num_voxels, sizeof(*image));
    for (int64_t k = 0; k < bench->num_elements; k++) {
        const struct element *element = &bench->elements[k];
        data[element->lor] += element->probability * (double)vectors->image[element->voxel];
        image[element->voxel] += element->probability * (double)vectors->data[element->lor];
    }
    for (int64_t lor = 0; lor < bench->lors->count; lor++)
        assert_close((double)vectors->projected[lor], data[lor], sum_tolerance);
    for (int64_t voxel = 0; voxel < bench->num_voxels; voxel++)
        assert_close((double)vectors->gathered[voxel], image[voxel], sum_tolerance);
    free(data);
    free(image);
}

static void check_projections(lr_scanner *scanner, const char *name, double reach_mm, int rays, const int samples[3],
                              uint64_t *state)
{
    struct bench bench = {0};
    struct vectors vectors;
    bench_open(&bench, scanner, reach_mm, rays, samples, 0);
    read_matrix(&bench);
    project(&bench, &vectors, state);
    const double error = adjoint_error(&bench, &vectors);
    print_message("%-14s R = %d, N = %d: %lld elements, adjoint to %.1e\n", name, rays,
                  samples[0] * samples[1] * samples[2], (long long)bench.num_elements, error);
    assert_true(error <= adjoint_tolerance);
    compare_with_rows(&bench, &vectors);
    vectors_finish(&vectors);
    bench_close(&bench);
}

static void test_projections_meet_rows(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    for (int k = 0; k < NUM_SCANNER_CASES - 1; k++) {
        const struct scanner_case *at = &scanner_cases[k];
        check_projections(at->create(), at->name, at->reach_mm, 1 + k % 4, (const int[3]){1, 1, 1}, &state);
    }
    check_projections(create_two_rings(), "two rings", 10, 2, (const int[3]){2, 2, 2}, &state);
    check_projections(create_unequal(), "unequal", 8, 5, (const int[3]){1, 3, 2}, &state);
}

/* --- many batches one after another, each with more to upload than a command buffer holds --- */

static lr_scanner *create_vista(void)
{
    static const int crystals[1] = {13};
    const lr_ring ring = {.radius_mm = 59,
                          .modules = 18,
                          .rings = 2,
                          .ring_pitch_mm = 27.85,
                          .block_crystals = {crystals, crystals},
                          .pitch_mm = {1.55, 1.55},
                          .face_mm = {1.45, 1.45},
                          .depth_mm = 15};
    return lr_scanner_create_ring(&(lr_scanner_params){.name = "two rings of 18"}, &ring);
}

static void test_batches_follow_each_other(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    check_projections(create_vista(), "two of 18", 20, 4, (const int[3]){3, 2, 2}, &state);
}

/* --- windows of LORs, forced through a small memory limit --- */

static void test_windows_make_no_difference(void **unused)
{
    (void)unused;
    static const int64_t limits[] = {1, 2 * 3 * 4096 * 4, 2 * 10 * 4096 * 4};
    for (int k = 0; k < 3; k++) {
        uint64_t state = 5;
        struct bench whole = {.deterministic = true}, parts = {.deterministic = true};
        struct vectors expected, vectors;
        bench_open(&whole, create_two_rings(), 10, 3, (const int[3]){1, 1, 2}, 0);
        project(&whole, &expected, &state);
        state = 5;
        bench_open(&parts, create_two_rings(), 10, 3, (const int[3]){1, 1, 2}, limits[k]);
        assert_true(parts.lors->count > 20 * 4096);
        project(&parts, &vectors, &state);
        /* Each LOR lies in one window and adds up the same points in the same order. */
        assert_memory_equal(vectors.projected, expected.projected, (size_t)parts.lors->count * sizeof(float));
        for (int64_t voxel = 0; voxel < parts.num_voxels; voxel++)
            assert_close((double)vectors.gathered[voxel], (double)expected.gathered[voxel], sum_tolerance);
        assert_true(adjoint_error(&parts, &vectors) <= adjoint_tolerance);
        vectors_finish(&vectors);
        vectors_finish(&expected);
        bench_close(&parts);
        bench_close(&whole);
    }
}

/* --- the same bits --- */

static void test_same_bits_twice(void **unused)
{
    (void)unused;
    struct bench bench = {.deterministic = true};
    struct vectors first, second;
    uint64_t state = 3;
    bench_open(&bench, create_blocks(), 14, 2, (const int[3]){2, 1, 1}, 0);
    project(&bench, &first, &state);
    state = 3;
    project(&bench, &second, &state);
    const size_t data_bytes = (size_t)bench.lors->count * sizeof(float);
    const size_t image_bytes = (size_t)bench.num_voxels * sizeof(float);
    assert_memory_equal(first.projected, second.projected, data_bytes);
    assert_memory_equal(first.gathered, second.gathered, image_bytes);
    vectors_finish(&second);

    struct bench other = {.deterministic = true};
    bench_open(&other, create_blocks(), 14, 2, (const int[3]){2, 1, 1}, 0);
    state = 3;
    project(&other, &second, &state);
    assert_memory_equal(first.projected, second.projected, data_bytes);
    assert_memory_equal(first.gathered, second.gathered, image_bytes);
    vectors_finish(&second);
    vectors_finish(&first);
    bench_close(&other);
    bench_close(&bench);
}

/* Rows asked for between projections that were cut into windows are whole. */
static void test_rows_after_windows(void **unused)
{
    (void)unused;
    struct bench whole = {0}, parts = {0};
    struct vectors vectors;
    uint64_t state = test_seed();
    bench_open(&whole, create_two_rings(), 10, 2, (const int[3]){1, 1, 1}, 0);
    bench_open(&parts, create_two_rings(), 10, 2, (const int[3]){1, 1, 1}, 1);
    project(&parts, &vectors, &state);
    read_matrix(&whole);
    read_matrix(&parts);
    assert_int_equal(whole.num_elements, parts.num_elements);
    assert_memory_equal(whole.elements, parts.elements, (size_t)whole.num_elements * sizeof(*whole.elements));
    vectors_finish(&vectors);
    bench_close(&parts);
    bench_close(&whole);
}

/* --- what runs: the paper's points and fragments, and no compute shader --- */

/* One projection at the backend's place, and what the device ran for it. false: it does not count. */
static bool count_projection(struct bench *bench, bool is_forward, struct stage_counts *counts)
{
    lr_vector_params params = {.place = bench->backend.place, .count = bench->num_voxels, .log = &bench->log.log};
    lr_vector image, data;
    stage_check(bench, lr_vector_create(&params, &image) == LR_OK);
    params.count = bench->lors->count;
    stage_check(bench, lr_vector_create(&params, &data) == LR_OK);
    stage_check(bench, lr_vector_fill(&image, 1.0) == LR_OK);
    stage_check(bench, lr_vector_fill(&data, 1.0) == LR_OK);
    struct gl_context *ctx = bench->backend.place->ctx;
    stage_check(bench, gl_context_make_current(ctx) == LR_OK);
    const bool can_count = stage_counts_begin(counts);
    if (can_count) {
        stage_check(bench, (is_forward ? backend_forward(&bench->backend, image, data)
                                       : backend_back(&bench->backend, data, image)) == LR_OK);
        stage_counts_end(counts);
    }
    /* The counter of compute shaders does count: sums of vectors are made by one. */
    struct stage_counts sums;
    if (can_count && stage_counts_begin(&sums)) {
        lr_vector_sums added;
        stage_check(bench, lr_vector_add_up(&data, NULL, &added) == LR_OK);
        stage_counts_end(&sums);
        assert_true(sums.counts[STAGE_COMPUTE] > 0);
        assert_true(added.sum > 0.0);
    }
    gl_context_release(ctx);
    lr_vector_destroy(&data);
    lr_vector_destroy(&image);
    return can_count;
}

static void test_points_and_fragments(void **unused)
{
    (void)unused;
    struct bench bench = {0};
    struct stage_counts forward_counts, back_counts;
    bench_open(&bench, create_opposed(), 8, 3, (const int[3]){1, 1, 1}, 0);
    read_matrix(&bench);
    if (!count_projection(&bench, true, &forward_counts) || !count_projection(&bench, false, &back_counts)) {
        bench_close(&bench);
        skip();
    }
    /* Each voxel is seen through one module, and shows the other one, a quad, in it. */
    int tile[2];
    lr_plan_tile_size(bench.scanner, 3, tile);
    const uint64_t pixels = (uint64_t)tile[0] * (uint64_t)tile[1];
    const uint64_t voxels = (uint64_t)bench.num_voxels, points = (uint64_t)bench.num_elements;
    const uint64_t *counts = forward_counts.counts;
    print_message("forward: %llu vertices, %llu fragments, %llu samples for %llu elements\n",
                  (unsigned long long)counts[STAGE_VERTICES], (unsigned long long)counts[STAGE_FRAGMENTS],
                  (unsigned long long)counts[STAGE_SAMPLES], (unsigned long long)points);
    assert_int_equal(counts[STAGE_COMPUTE], 0);
    assert_int_equal(counts[STAGE_VERTICES], voxels * (4 + pixels));
    /* One point for each element, behind at least one pixel of an image. */
    assert_in_range(counts[STAGE_SAMPLES], 2 * points, points + voxels * pixels);
    assert_true(counts[STAGE_FRAGMENTS] >= counts[STAGE_SAMPLES]);
    /* Back: a quad for each halving, each of which leaves its tiles' texels, and a point a voxel. */
    counts = back_counts.counts;
    uint64_t halvings = 0, texels = 0;
    for (int edge[2] = {tile[0], tile[1]}; halvings == 0 || edge[0] > 1 || edge[1] > 1; halvings++) {
        edge[0] = (edge[0] + 1) / 2;
        edge[1] = (edge[1] + 1) / 2;
        texels += (uint64_t)edge[0] * (uint64_t)edge[1];
    }
    print_message("back: %llu vertices, %llu fragments, %llu samples\n", (unsigned long long)counts[STAGE_VERTICES],
                  (unsigned long long)counts[STAGE_FRAGMENTS], (unsigned long long)counts[STAGE_SAMPLES]);
    assert_int_equal(counts[STAGE_COMPUTE], 0);
    assert_int_equal(counts[STAGE_VERTICES], voxels * (4 + 1) + 4 * halvings);
    assert_true(counts[STAGE_SAMPLES] >= voxels * (texels + 1) + points);
    assert_true(counts[STAGE_FRAGMENTS] >= counts[STAGE_SAMPLES]);
    bench_close(&bench);
}

/* An empty image projects to nothing, and nothing back to an empty image. */
static void test_zeros(void **unused)
{
    (void)unused;
    struct bench bench = {0};
    bench_open(&bench, create_ring_of_8(), 10, 2, (const int[3]){1, 1, 1}, 0);
    float *image = test_alloc(bench.num_voxels, sizeof(*image));
    float *data = test_alloc(bench.lors->count, sizeof(*data));
    data[17] = 5;
    stage_check(&bench, forward(&bench, image, data) == LR_OK);
    for (int64_t lor = 0; lor < bench.lors->count; lor++) assert_true(data[lor] == 0.0f);
    image[3] = 5;
    stage_check(&bench, back(&bench, data, image) == LR_OK);
    for (int64_t voxel = 0; voxel < bench.num_voxels; voxel++) assert_true(image[voxel] == 0.0f);
    free(image);
    free(data);
    bench_close(&bench);
}

/* --- progress --- */

struct watch {
    double last;
    int calls, stop_after;
};

static bool watch_report(void *user, const char *what, double done, double total)
{
    struct watch *watch = user;
    assert_non_null(what);
    assert_true(done >= watch->last && done <= total * (1 + 1e-9));
    watch->last = done;
    return ++watch->calls != watch->stop_after;
}

static void test_progress_and_cancel(void **unused)
{
    (void)unused;
    struct bench bench = {0};
    struct watch watch = {0};
    const lr_progress progress = {watch_report, &watch};
    bench_open(&bench, create_two_rings(), 10, 1, (const int[3]){1, 1, 1}, 1);
    bench.backend.fns->destroy(bench.backend.self);
    bench.params.progress = &progress;
    stage_check(&bench, lr_raster_backend_create(&bench.params, &bench.backend) == LR_OK);
    uint64_t state = 1;
    float *image = random_values(bench.num_voxels, &state);
    float *data = random_values(bench.lors->count, &state);
    stage_check(&bench, forward(&bench, image, data) == LR_OK);
    assert_true(watch.calls > 3);
    assert_close(watch.last, 1, 1e-9);
    watch = (struct watch){.stop_after = 2};
    assert_int_equal(forward(&bench, image, data), LR_CANCELLED);
    watch = (struct watch){.stop_after = 2};
    assert_int_equal(back(&bench, data, image), LR_CANCELLED);
    /* Cancelled work leaves a backend that works. */
    watch = (struct watch){0};
    stage_check(&bench, back(&bench, data, image) == LR_OK);
    free(image);
    free(data);
    bench_close(&bench);
}

int main(void)
{
    struct gl_context *ctx = stage_context();
    if (ctx == NULL) return 77;
    stage_leave(ctx);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_projections_meet_rows),
        cmocka_unit_test(test_batches_follow_each_other),
        cmocka_unit_test(test_windows_make_no_difference),
        cmocka_unit_test(test_same_bits_twice),
        cmocka_unit_test(test_rows_after_windows),
        cmocka_unit_test(test_points_and_fragments),
        cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_progress_and_cancel),
    };
    return cmocka_run_group_tests_name("render_projections", tests, NULL, NULL);
}
