/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Forward and back-projection of the raster backend compared with its own rows: adjoint, windows of LORs, the same bits
 * in every run, and which shaders they use. */
#include "backend_arrays.h"
#include "subject.h"

#include "device/place.h"

/* Tolerance relative to the norms, in float. */
static const double adjoint_tolerance = 1e-6;

/* Tolerance of one LOR or voxel: a sum of some hundred positive floats. */
static const double sum_tolerance = 5e-6;

/* A raster backend with a small grid. */
struct bench {
    struct subject *subject;
    struct lr_backend_params params;
    struct lr_backend backend;
    int64_t num_voxels, num_lors;
};

static void end_bench(void *object)
{
    struct bench *bench = object;
    if (bench->backend.fns != NULL) bench->backend.fns->destroy(bench->backend.self);
    free(bench);
}

/* memory: max_memory_bytes of the backend. The bench lives until destroy_kept. */
static struct bench *bench_open(lr_scanner *scanner, double reach_mm, int rays, const int samples[3],
                                bool deterministic, int64_t memory)
{
    const double edge = reach_mm / 4;
    struct bench *bench = non_null(calloc(1, sizeof(*bench)));
    struct subject *subject = bench->subject = subject_open("raster", scanner);
    subject->grid = lr_grid_centred((const int[3]){5, 4, 3}, (const double[3]){edge, edge * 1.1, edge * 0.7});
    subject->grid.origin_mm[0] += 0.13 * edge;
    bench->num_voxels = lr_grid_num_voxels(&subject->grid);
    bench->num_lors = subject->lors->count;
    bench->params =
        filled(struct lr_backend_params, .scanner = scanner, .lors = subject->lors, .grid = &subject->grid,
               .mode = LR_MODE_SAMPLED, .rays = rays, .samples = {samples[0], samples[1], samples[2]}, .threads = 2,
               .max_memory_bytes = memory, .deterministic = deterministic, .log = &subject->log.log);
    stage_check(subject, lr_raster_backend_create(&bench->params, &bench->backend) == LR_OK);
    return keep_object(bench, end_bench);
}

/* Reads the matrix; *num_elements becomes the number of its elements. */
static struct row *read_matrix(struct bench *bench, int64_t *num_elements)
{
    struct row *matrix = kept(bench->num_voxels, sizeof(*matrix));
    const int *samples = bench->params.samples;
    const struct lr_rows rows = {
        .grid = &bench->subject->grid, .samples = {samples[0], samples[1], samples[2]}, .end = bench->num_voxels};
    const lr_row_sink sink = {take_row, matrix};
    stage_check(bench->subject, bench->backend.fns->rows(bench->backend.self, &rows, &sink) == LR_OK);
    *num_elements = 0;
    for (int64_t v = 0; v < bench->num_voxels; v++) *num_elements += matrix[v].count;
    assert_true(*num_elements > 30);
    return matrix;
}

struct vectors {
    float *image, *data;         /* inputs */
    float *projected, *gathered; /* A image, A^T data */
};

static lr_status forward(const struct bench *bench, const float *image, float *data)
{
    return backend_forward(&bench->backend, lr_vector_of_floats(image, bench->num_voxels),
                           lr_vector_of_floats(data, bench->num_lors));
}

static lr_status back(const struct bench *bench, const float *data, float *image)
{
    return backend_back(&bench->backend, lr_vector_of_floats(data, bench->num_lors),
                        lr_vector_of_floats(image, bench->num_voxels));
}

static struct vectors project(struct bench *bench, uint64_t *state)
{
    struct vectors vectors = {.image = kept_random_floats(bench->num_voxels, 0.5, 2, state),
                              .data = kept_random_floats(bench->num_lors, 0.5, 2, state),
                              .projected = kept(bench->num_lors, sizeof(float)),
                              .gathered = kept(bench->num_voxels, sizeof(float))};
    vectors.image[7] = 0;
    vectors.projected[0] = vectors.gathered[0] = 123; /* outputs are overwritten */
    stage_check(bench->subject, forward(bench, vectors.image, vectors.projected) == LR_OK);
    stage_check(bench->subject, back(bench, vectors.data, vectors.gathered) == LR_OK);
    return vectors;
}

/* |<A x, y> - <x, A^T y>| / (|A x| |y|) */
static double adjoint_error(const struct bench *bench, const struct vectors *vectors)
{
    const int64_t num_lors = bench->num_lors;
    const double left = dot_product(vectors->projected, vectors->data, num_lors);
    const double right = dot_product(vectors->image, vectors->gathered, bench->num_voxels);
    return fabs(left - right) / sqrt(dot_product(vectors->projected, vectors->projected, num_lors) *
                                     dot_product(vectors->data, vectors->data, num_lors));
}

static void check_projections(lr_scanner *scanner, const char *name, double reach_mm, int rays, const int samples[3],
                              uint64_t *state)
{
    int64_t num_elements;
    struct bench *bench = bench_open(scanner, reach_mm, rays, samples, false, 0);
    const struct row *matrix = read_matrix(bench, &num_elements);
    const struct vectors vectors = project(bench, state);
    const double error = adjoint_error(bench, &vectors);
    print_message("%-14s R = %d, N = %d: %lld elements, adjoint to %.1e\n", name, rays,
                  samples[0] * samples[1] * samples[2], (long long)num_elements, error);
    assert_true(error <= adjoint_tolerance);
    double *data = kept(bench->num_lors, sizeof(*data));
    for (int64_t voxel = 0; voxel < bench->num_voxels; voxel++) {
        const struct row *row = &matrix[voxel];
        double sum = 0;
        for (int64_t k = 0; k < row->count; k++) {
            data[row->lor[k]] += row->value[k] * (double)vectors.image[voxel];
            sum += row->value[k] * (double)vectors.data[row->lor[k]];
        }
        assert_close((double)vectors.gathered[voxel], sum, sum_tolerance);
    }
    for (int64_t lor = 0; lor < bench->num_lors; lor++)
        assert_close((double)vectors.projected[lor], data[lor], sum_tolerance);
    destroy_kept(NULL);
}

static void test_projections_meet_rows(void **unused)
{
    uint64_t state = test_seed();
    for (int k = 0; k < length_of(scanner_cases) - 1; k++) {
        const struct scanner_case *at = &scanner_cases[k];
        check_projections(at->create(), at->name, at->reach_mm, 1 + k % 4, (const int[3]){1, 1, 1}, &state);
    }
    check_projections(create_two_rings(), "two rings", 10, 2, (const int[3]){2, 2, 2}, &state);
    check_projections(create_unequal(), "unequal", 8, 5, (const int[3]){1, 3, 2}, &state);
}

/* Many batches follow each other, and the data of each exceed a command buffer. */
static void test_batches_follow_each_other(void **unused)
{
    lr_scanner *scanner =
        scanner_from("ring: {radius_mm: 59, modules: 18, rings: 2, ring_pitch_mm: 27.85}\nmodule: {crystals: [13, 13], "
                     "pitch_mm: [1.55, 1.55], face_mm: [1.45, 1.45], depth_mm: 15}");
    uint64_t state = test_seed();
    check_projections(scanner, "two of 18", 20, 1, (const int[3]){3, 2, 2}, &state);
}

/* --- windows of LORs, made necessary by a small memory limit --- */

static void test_windows_make_no_difference(void **unused)
{
    static const int64_t limits[] = {1, 2 * 3 * 4096 * 4, 2 * 10 * 4096 * 4};
    uint64_t state = 5;
    struct bench *whole = bench_open(create_two_rings(), 10, 3, (const int[3]){1, 1, 2}, true, 0);
    const struct vectors expected = project(whole, &state);
    for (int k = 0; k < 3; k++) {
        uint64_t same_state = 5;
        const int mark = num_kept();
        struct bench *parts = bench_open(create_two_rings(), 10, 3, (const int[3]){1, 1, 2}, true, limits[k]);
        assert_true(parts->num_lors > 20 * 4096);
        const struct vectors vectors = project(parts, &same_state);
        /* Each LOR lies in one window and adds up the same points in the same order. */
        assert_memory_equal(vectors.projected, expected.projected, (size_t)parts->num_lors * sizeof(float));
        for (int64_t voxel = 0; voxel < parts->num_voxels; voxel++)
            assert_close((double)vectors.gathered[voxel], (double)expected.gathered[voxel], sum_tolerance);
        assert_true(adjoint_error(parts, &vectors) <= adjoint_tolerance);
        destroy_kept_since(mark);
    }
}

/* --- the same bits --- */

static void test_same_bits_twice(void **unused)
{
    struct bench *benches[2];
    uint64_t states[3] = {3, 3, 3};
    for (int k = 0; k < 2; k++) benches[k] = bench_open(create_blocks(), 14, 2, (const int[3]){2, 1, 1}, true, 0);
    const struct vectors first = project(benches[0], &states[0]);
    for (int k = 0; k < 2; k++) {
        const struct vectors again = project(benches[k], &states[1 + k]);
        assert_memory_equal(first.projected, again.projected, (size_t)benches[k]->num_lors * sizeof(float));
        assert_memory_equal(first.gathered, again.gathered, (size_t)benches[k]->num_voxels * sizeof(float));
    }
}

/* Rows that are read between projections in several windows are complete. */
static void test_rows_after_windows(void **unused)
{
    int64_t num_elements;
    uint64_t state = test_seed();
    struct bench *whole = bench_open(create_two_rings(), 10, 2, (const int[3]){1, 1, 1}, false, 0);
    struct bench *parts = bench_open(create_two_rings(), 10, 2, (const int[3]){1, 1, 1}, false, 1);
    project(parts, &state);
    check_same_rows(read_matrix(whole, &num_elements), read_matrix(parts, &num_elements), whole->num_voxels, 0);
}

/* --- shaders that are used: points and fragments as in the paper, and no compute shader --- */

/* Counts the device's work for one projection at the backend's place. Skips the test if the device does not count. */
static struct stage_counts count_projection(struct bench *bench, bool is_forward)
{
    struct subject *subject = bench->subject;
    struct gl_context *ctx = bench->backend.place->ctx;
    struct stage_counts counts, of_sums;
    lr_vector image = kept_vector(bench->backend.place, bench->num_voxels, LR_FLOAT32);
    lr_vector data = kept_vector(bench->backend.place, bench->num_lors, LR_FLOAT32);
    stage_check(subject, lr_vector_fill(&image, 1.0) == LR_OK);
    stage_check(subject, lr_vector_fill(&data, 1.0) == LR_OK);
    stage_check(subject, gl_context_make_current(ctx) == LR_OK);
    const bool can_count = stage_counts_begin(&counts);
    if (can_count) {
        const lr_status status =
            is_forward ? backend_forward(&bench->backend, image, data) : backend_back(&bench->backend, data, image);
        stage_counts_end(&counts);
        stage_check(subject, status == LR_OK);
        /* The counter of compute shaders works: a sum over vectors is computed by one. */
        lr_vector_sums added;
        assert_true(stage_counts_begin(&of_sums));
        stage_check(subject, lr_vector_add_up(&data, NULL, &added) == LR_OK);
        stage_counts_end(&of_sums);
        assert_all(of_sums.counts[STAGE_COMPUTE] > 0, added.sum > 0.0);
    }
    gl_context_release(ctx);
    if (!can_count) skip();
    print_message("%s: %llu vertices, %llu fragments, %llu samples\n", is_forward ? "forward" : "back",
                  (unsigned long long)counts.counts[STAGE_VERTICES], (unsigned long long)counts.counts[STAGE_FRAGMENTS],
                  (unsigned long long)counts.counts[STAGE_SAMPLES]);
    assert_int_equal(counts.counts[STAGE_COMPUTE], 0);
    assert_true(counts.counts[STAGE_FRAGMENTS] >= counts.counts[STAGE_SAMPLES]);
    return counts;
}

static void test_points_and_fragments(void **unused)
{
    int64_t num_elements;
    struct bench *bench = bench_open(create_opposed(), 8, 3, (const int[3]){1, 1, 1}, false, 0);
    read_matrix(bench, &num_elements);
    const struct stage_counts forward_counts = count_projection(bench, true);
    const struct stage_counts back_counts = count_projection(bench, false);
    /* Each voxel is seen through one module, whose image shows the other module as one quad. */
    int tile[2];
    lr_plan_tile_size(bench->subject->scanner, 3, tile);
    const uint64_t pixels = (uint64_t)tile[0] * (uint64_t)tile[1];
    const uint64_t voxels = (uint64_t)bench->num_voxels, points = (uint64_t)num_elements;
    assert_int_equal(forward_counts.counts[STAGE_VERTICES], voxels * (4 + pixels));
    /* One point for each element; the element covers at least one pixel of an image. */
    assert_in_range(forward_counts.counts[STAGE_SAMPLES], 2 * points, points + voxels * pixels);
    /* Back-projection: each halving draws a quad, which writes the texels of its tiles; and one point is drawn for each
     * voxel. */
    uint64_t halvings = 0, texels = 0;
    for (int edge[2] = {tile[0], tile[1]}; halvings == 0 || edge[0] > 1 || edge[1] > 1; halvings++) {
        edge[0] = (edge[0] + 1) / 2;
        edge[1] = (edge[1] + 1) / 2;
        texels += (uint64_t)edge[0] * (uint64_t)edge[1];
    }
    assert_int_equal(back_counts.counts[STAGE_VERTICES], voxels * (4 + 1) + 4 * halvings);
    assert_true(back_counts.counts[STAGE_SAMPLES] >= voxels * (texels + 1) + points);
}

/* An empty image has a forward projection of 0, and empty data have a back-projection of 0. */
static void test_zeros(void **unused)
{
    struct bench *bench = bench_open(create_ring_of_8(), 10, 2, (const int[3]){1, 1, 1}, false, 0);
    float *image = kept(bench->num_voxels, sizeof(*image)), *data = kept(bench->num_lors, sizeof(*data));
    data[17] = 5;
    stage_check(bench->subject, forward(bench, image, data) == LR_OK);
    for (int64_t lor = 0; lor < bench->num_lors; lor++) assert_true(data[lor] == 0.0f);
    image[3] = 5;
    stage_check(bench->subject, back(bench, data, image) == LR_OK);
    for (int64_t voxel = 0; voxel < bench->num_voxels; voxel++) assert_true(image[voxel] == 0.0f);
}

/* --- progress --- */

struct watch {
    double last;
    int calls, stop_after;
};

static bool watch_report(void *user, const char *what, double done, double total)
{
    struct watch *watch = user;
    assert_all(what != NULL, done >= watch->last && done <= total * (1 + 1e-9));
    watch->last = done;
    return ++watch->calls != watch->stop_after;
}

static void test_progress_and_cancel(void **unused)
{
    struct watch watch = {0};
    const lr_progress progress = {watch_report, &watch};
    struct bench *bench = bench_open(create_two_rings(), 10, 1, (const int[3]){1, 1, 1}, false, 1);
    bench->backend.fns->destroy(bench->backend.self);
    bench->backend = (struct lr_backend){0};
    bench->params.progress = &progress;
    stage_check(bench->subject, lr_raster_backend_create(&bench->params, &bench->backend) == LR_OK);
    uint64_t state = 1;
    float *image = kept_random_floats(bench->num_voxels, 0.5, 2, &state),
          *data = kept_random_floats(bench->num_lors, 0.5, 2, &state);
    stage_check(bench->subject, forward(bench, image, data) == LR_OK);
    assert_true(watch.calls > 3);
    assert_close(watch.last, 1, 1e-9);
    watch = (struct watch){.stop_after = 2};
    assert_int_equal(forward(bench, image, data), LR_CANCELLED);
    watch = (struct watch){.stop_after = 2};
    assert_int_equal(back(bench, data, image), LR_CANCELLED);
    /* After a cancellation the backend still works. */
    watch = (struct watch){0};
    stage_check(bench->subject, back(bench, data, image) == LR_OK);
}

stage_main("render_projections", CASES(test_projections_meet_rows, test_batches_follow_each_other,
                                       test_windows_make_no_difference, test_same_bits_twice, test_rows_after_windows,
                                       test_points_and_fragments, test_zeros, test_progress_and_cancel))
