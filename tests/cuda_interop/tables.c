/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Look-up tables of several views at once, as CUDA's threads make them (on_cpu.h) in memory that is laid
 * out as the device's: LORmap and mSRval against those of backend cpu, and bands that project from what
 * lies there. */
#include "direct/cases.h"

#include "cuda_interop/direct/tables.h"
#include "on_cpu.h"

enum { FLOATS = 4, NUM_VIEWS = 12 };

/* Views of all tests, and some that fit nothing. */
static const lr_view views[NUM_VIEWS] = {
    {0, 0},    {30, 0},  {45, 0},    {90, 0},      {0, 10},    {30, 10},
    {45, -10}, {90, 10}, {13.7, -6}, {101.3, 3.1}, {163.2, 0}, {-38.9, 8.5},
};

/* Tables of all views in memory of the machine, which host and device share here. */
struct group {
    struct lr_direct_backend_params backend;
    lr_cuda_layout layout;
    struct lr_cuda_view_plan plans[NUM_VIEWS];
    lr_cuda_view_fill fills[NUM_VIEWS];
    lr_cuda_bands bands[NUM_VIEWS][2][LR_CUDA_BANDS_SHAPES];
    lr_cuda_fill_sizes sizes;
    struct lr_cuda_memory memory;
    void *block; /* owned */
};

/* Wide enough for all views. */
static lr_cuda_layout find_layout(const struct lr_direct_backend_params *backend)
{
    const int *size = backend->grid.size;
    lr_cuda_layout layout = {.size = {size[0], size[1], size[2]}, .quads = (size[2] + 3) / 4};
    for (int view = 0; view < backend->num_views; view++) {
        struct lr_direct_shape shape;
        int margin[3];
        assert_int_equal(lr_direct_shape_init(&shape, &(lr_direct_tables_params){.grid = &backend->grid,
                                                                                 .view = backend->views[view],
                                                                                 .kernel = backend->kernel}),
                         LR_OK);
        lr_cuda_column_margins(&shape, margin);
        for (int k = 0; k < 3; k++) layout.margin[k] = margin[k] > layout.margin[k] ? margin[k] : layout.margin[k];
        lr_direct_shape_finish(&shape);
    }
    for (int k = 0; k < 3; k++) layout.extent[k] = (k == 0 ? layout.quads : size[k - 1]) + 2 * layout.margin[k];
    return layout;
}

static void place_all(struct group *group)
{
    for (int k = 0; k < group->backend.num_views; k++) {
        assert_int_equal(lr_cuda_place_values(&group->memory, &group->plans[k], &group->layout, &group->fills[k]),
                         LR_OK);
        if (group->plans[k].has_bands) {
            assert_int_equal(
                lr_cuda_place_bands(&group->memory, &group->plans[k].bands, &group->fills[k], group->bands[k]), LR_OK);
        }
    }
}

/* A value that is not copied or filled in is no number. */
static void open_memory(struct group *group)
{
    place_all(group);
    const struct lr_cuda_memory counted = group->memory;
    const int64_t bytes = lr_cuda_memory_bytes(&counted);
    group->block = aligned_alloc(256, (size_t)bytes);
    assert_non_null(group->block);
    memset(group->block, 0xff, (size_t)bytes);
    group->memory = (struct lr_cuda_memory){.device = group->block,
                                            .host = group->block,
                                            .copied_room = counted.copied_bytes,
                                            .filled_room = counted.filled_bytes};
    place_all(group);
    assert_int_equal(lr_cuda_memory_bytes(&group->memory), bytes);
}

static struct group *open_group(const lr_grid *grid, int model, bool bands_work)
{
    struct group *group = calloc(1, sizeof(*group));
    group->backend = (struct lr_direct_backend_params){.grid = *grid,
                                                       .views = views,
                                                       .num_views = NUM_VIEWS,
                                                       .kernel = {case_resolution(model), 0, 0},
                                                       .threads = 3,
                                                       .variant = LR_DIRECT_BANDS};
    group->layout = find_layout(&group->backend);
    int numbers[NUM_VIEWS];
    for (int k = 0; k < NUM_VIEWS; k++) numbers[k] = k;
    const struct lr_cuda_plan_params params = {
        .backend = &group->backend, .layout = group->layout, .bands_work = bands_work, .shared_room = 227 * 1024};
    assert_int_equal(lr_cuda_view_plans_init(group->plans, &params, numbers, NUM_VIEWS), LR_OK);
    open_memory(group);
    group->sizes = lr_cuda_fill_sizes_of(group->fills, NUM_VIEWS);
    on_cpu_value_fills(group->fills, &group->sizes);
    on_cpu_band_fills(group->fills, &group->sizes);
    return group;
}

static void close_group(struct group *group)
{
    lr_cuda_view_plans_finish(group->plans, NUM_VIEWS);
    free(group->block);
    free(group);
}

static lr_direct_tables *open_reference(const struct group *group, int view)
{
    lr_direct_tables *tables = lr_direct_tables_create(
        &(lr_direct_tables_params){.grid = &group->backend.grid, .view = views[view], .kernel = group->backend.kernel});
    assert_non_null(tables);
    return tables;
}

/* --- LORmap and mSRval --- */

static void check_map(const struct group *group, int view, const lr_direct_tables *reference)
{
    const lr_cuda_layout *layout = &group->layout;
    const uint16_t *map = group->fills[view].map.map;
    for (int k = 0; k < layout->extent[1] * layout->extent[2]; k++) {
        const int x = k % layout->extent[1] - layout->margin[1];
        const int y = k / layout->extent[1] - layout->margin[2];
        const bool is_there = x >= 0 && x < layout->size[0] && y >= 0 && y < layout->size[1];
        assert_int_equal(map[k], is_there ? lr_direct_tables_map(reference)[x + layout->size[0] * y] : 0);
    }
}

static double check_values(const struct group *group, int view, const lr_direct_tables *reference)
{
    const lr_cuda_value_fill *fill = &group->fills[view].values;
    double worst = 0;
    float peak = 0;
    assert_int_equal(fill->num_offsets, lr_direct_tables_get_info(reference)->num_offsets);
    for (int row = 0; row < fill->num_rows; row++) {
        const double *exact = lr_direct_tables_values(reference, row);
        double sum = 0;
        for (int i = 0; i < fill->num_offsets; i++) {
            const float value = fill->values[(int64_t)i * fill->num_rows + row];
            const double difference = fabs((double)value - exact[i]);
            assert_true(difference <= 1e-6 * exact[i]);
            worst = exact[i] > 0 ? fmax(worst, difference / exact[i]) : worst;
            sum += (double)value;
            peak = fmaxf(peak, value);
        }
        assert_true(fabs(sum - 1) < 1e-6);
    }
    assert_true(*fill->peak == peak);
    return worst;
}

static void tables_are_those_of_the_reference(void **state)
{
    const lr_grid grids[2] = {
        case_grid(),
        lr_grid_centred((const int[3]){29, 37, 14}, (const double[3]){3.1, 2.7, 4}),
    };
    double worst = 0;
    for (int k = 0; k < 2 * NUM_MODELS; k++) {
        struct group *group = open_group(&grids[k % 2], k / 2, true);
        for (int view = 0; view < NUM_VIEWS; view++) {
            lr_direct_tables *reference = open_reference(group, view);
            check_map(group, view, reference);
            worst = fmax(worst, check_values(group, view, reference));
            lr_direct_tables_destroy(reference);
        }
        close_group(group);
    }
    print_message("largest difference of a value %.2e\n", worst);
}

/* --- bands --- */

/* Copies between the grid's order and that of texels. */
static void reorder(const lr_cuda_layout *layout, float *image, float *texels, bool to_texels)
{
    const int *size = layout->size;
    for (int64_t k = 0; k < (int64_t)size[0] * size[1] * size[2]; k++) {
        const int64_t x = k % size[0], y = k / size[0] % size[1], z = k / size[0] / size[1];
        const int64_t column = x + layout->margin[1] + layout->extent[1] * (y + layout->margin[2]);
        float *texel = texels + FLOATS * (layout->extent[0] * column + layout->margin[0]) + z;
        *(to_texels ? texel : &image[k]) = to_texels ? image[k] : *texel;
    }
}

struct images {
    int64_t count, num_texels;
    float *image, *found, *expected; /* owned [count] */
    float *source, *target;          /* owned [num_texels][4] */
};

static void open_images(struct images *images, const lr_cuda_layout *layout)
{
    uint64_t seed = 8;
    images->count = (int64_t)layout->size[0] * layout->size[1] * layout->size[2];
    images->num_texels = (int64_t)layout->extent[0] * layout->extent[1] * layout->extent[2];
    images->image = calloc((size_t)images->count, sizeof(float));
    images->found = calloc((size_t)images->count, sizeof(float));
    images->expected = calloc((size_t)images->count, sizeof(float));
    images->source = calloc((size_t)images->num_texels, FLOATS * sizeof(float));
    images->target = calloc((size_t)images->num_texels, FLOATS * sizeof(float));
    for (int64_t k = 0; k < images->count; k++) images->image[k] = (float)test_random(&seed);
    reorder(layout, images->image, images->source, true);
}

static void close_images(struct images *images)
{
    free(images->target);
    free(images->source);
    free(images->expected);
    free(images->found);
    free(images->image);
}

static double difference(const struct images *images)
{
    double square = 0, norm = 0;
    for (int64_t k = 0; k < images->count; k++) {
        const double expected = (double)images->expected[k];
        square += ((double)images->found[k] - expected) * ((double)images->found[k] - expected);
        norm += expected * expected;
    }
    return sqrt(square / norm);
}

static double project_by_bands(const struct group *group, int view, bool forward, struct images *images)
{
    double worst = 0;
    for (int shape = 0; shape < LR_CUDA_BANDS_SHAPES; shape++) {
        memset(images->target, 0, (size_t)images->num_texels * FLOATS * sizeof(float));
        assert_int_equal(
            on_cpu_filled_bands(forward, &group->bands[view][forward][shape], images->source, images->target), 0);
        reorder(&group->layout, images->found, images->target, false);
        worst = fmax(worst, difference(images));
    }
    return worst;
}

static void bands_project_from_where_tables_lie(void **state)
{
    static const int models[] = {0, 2, 5, 6};
    const lr_grid grid = case_grid();
    double worst = 0;
    for (int m = 0; m < 4; m++) {
        struct group *group = open_group(&grid, models[m], true);
        struct images images;
        open_images(&images, &group->layout);
        lr_operator *reference = lr_direct_create(&(lr_direct_params){
            .grid = &grid, .views = views, .num_views = NUM_VIEWS, .kernel = group->backend.kernel, .backend = "cpu"});
        for (int view = m; view < NUM_VIEWS; view += 3) {
            assert_true(group->plans[view].has_bands);
            view_floats(reference, true, view, images.image, images.expected);
            worst = fmax(worst, project_by_bands(group, view, true, &images));
            view_floats(reference, false, view, images.image, images.expected);
            worst = fmax(worst, project_by_bands(group, view, false, &images));
        }
        lr_operator_destroy(reference);
        close_images(&images);
        close_group(group);
    }
    print_message("largest difference %.2e\n", worst);
    assert_true(worst < 1e-6);
}

/* --- plans --- */

/* A device that is too old for bands. */
static void columns_do_what_bands_cannot(void **state)
{
    const lr_grid grid = case_grid();
    struct group *group = open_group(&grid, 2, false);
    for (int view = 0; view < NUM_VIEWS; view++) {
        assert_true(group->plans[view].has_columns && !group->plans[view].has_bands);
        assert_int_equal(group->fills[view].bands[0].num_tiles, 0);
    }
    assert_int_equal(group->sizes.weights + group->sizes.spans + group->sizes.kernels, 0);
    close_group(group);
}

/* Whichever thread finds it, the first view's reason is told once. */
static void a_view_that_fails_says_why(void **state)
{
    static const lr_view wrong[6] = {{0, 0}, {10, 0}, {20, 95}, {30, 0}, {40, 0}, {50, -120}};
    static const int numbers[6] = {0, 1, 2, 3, 4, 5};
    const struct lr_direct_backend_params good = {
        .grid = case_grid(), .views = views, .num_views = 6, .kernel = {case_resolution(0), 0, 0}};
    struct test_log log;
    test_log_init(&log);
    const struct lr_direct_backend_params backend = {.grid = case_grid(),
                                                     .views = wrong,
                                                     .num_views = 6,
                                                     .kernel = {case_resolution(0), 0, 0},
                                                     .threads = 3,
                                                     .log = &log.log};
    const struct lr_cuda_plan_params params = {.backend = &backend, .layout = find_layout(&good), .bands_work = true};
    struct lr_cuda_view_plan plans[6], none[6] = {{.num_rows = 0}};
    memset(plans, 0, sizeof(plans));
    assert_int_equal(lr_cuda_view_plans_init(plans, &params, numbers, 6), LR_USAGE);
    assert_non_null(strstr(log.error, "a view's tilt of 95 degrees"));
    memset(none, 0, sizeof(none));
    assert_memory_equal(plans, none, sizeof(plans));
}

/* --- memory --- */

static void memory_is_that_which_was_counted(void **state)
{
    static const char data[300] = "what the host has made";
    static char device[1024], host[512];
    struct lr_cuda_memory memory = {0};
    assert_non_null(lr_cuda_place(&memory, 300, data));
    assert_non_null(lr_cuda_place(&memory, 17, NULL));
    assert_non_null(lr_cuda_place(&memory, 257, NULL));
    assert_int_equal(memory.copied_bytes, 512);
    assert_int_equal(memory.filled_bytes, 256 + 512);
    assert_int_equal(lr_cuda_memory_bytes(&memory), 1280);
    memory = (struct lr_cuda_memory){device, host, 512, 512, 0, 0};
    assert_ptr_equal(lr_cuda_place(&memory, 300, data), device);
    assert_ptr_equal(lr_cuda_place(&memory, 17, NULL), device + 512);
    assert_ptr_equal(lr_cuda_place(&memory, 256, NULL), device + 768);
    assert_memory_equal(host, data, 300);
    assert_null(lr_cuda_place(&memory, 1, NULL));
    assert_null(lr_cuda_place(&memory, 1, data));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_those_of_the_reference), cmocka_unit_test(bands_project_from_where_tables_lie),
        cmocka_unit_test(columns_do_what_bands_cannot),      cmocka_unit_test(a_view_that_fails_says_why),
        cmocka_unit_test(memory_is_that_which_was_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
