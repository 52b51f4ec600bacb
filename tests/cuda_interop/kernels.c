/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The arithmetic of CUDA's gathers, thread by thread on the processor (on_cpu.h), against backend
 * cpu: all models and views, both directions, at the borders too. */
#include "direct/cases.h"
#include "fixtures.h"

#include "cuda_interop/direct/plans.h"
#include "layouts.h"
#include "on_cpu.h"

enum { FLOATS = 4 };

/* A view's tables as the device would have them. */
struct tables {
    struct lr_direct_shape shape;
    lr_cuda_gather gather;
    struct lr_cuda_column_plan plan;
    struct lr_cuda_band_plan bands;
    struct lr_cuda_cloud_tables cloud;
    lr_direct_tables *exact;
    int32_t *offsets; /* [num_offsets][4] */
    float *values;
    uint16_t *map;
    int64_t num_texels;
};

static int64_t column_of(const lr_cuda_layout *layout, int x, int y)
{
    return x + layout->margin[1] + (int64_t)layout->extent[1] * (y + layout->margin[2]);
}

static void fill(struct tables *tables)
{
    const lr_cuda_gather *gather = &tables->gather;
    const int *size = gather->layout.size;
    const int64_t count = gather->num_offsets;
    tables->offsets = calloc((size_t)count, 4 * sizeof(*tables->offsets));
    tables->values = calloc((size_t)(count * gather->num_rows), sizeof(*tables->values));
    const size_t entries = (size_t)gather->layout.extent[1] * (size_t)gather->layout.extent[2];
    tables->map = calloc(entries, sizeof(*tables->map));
    memset(tables->map, 0xff, entries * sizeof(*tables->map)); /* no kernel around the grid */
    for (int64_t i = 0; i < count; i++) {
        memcpy(tables->offsets + 4 * i, tables->shape.offsets[i], 3 * sizeof(int32_t));
        for (int row = 0; row < gather->num_rows; row++)
            tables->values[i * gather->num_rows + row] = (float)lr_direct_tables_values(tables->exact, row)[i];
    }
    for (int y = 0; y < size[1]; y++) {
        for (int x = 0; x < size[0]; x++) {
            tables->map[column_of(&gather->layout, x, y)] =
                (uint16_t)lr_direct_tables_map(tables->exact)[x + size[0] * y];
        }
    }
}

/* rows = 1 where all kernels are the same. */
static void open_tables(struct tables *tables, const lr_direct_tables_params *params, bool one_row)
{
    *tables = (struct tables){0};
    assert_int_equal(lr_direct_shape_init(&tables->shape, params), LR_OK);
    tables->exact = lr_direct_tables_create(params);
    assert_non_null(tables->exact);
    const lr_cuda_layout layout = layout_of(&tables->shape);
    tables->num_texels = (int64_t)layout.extent[0] * layout.extent[1] * layout.extent[2];
    tables->gather = (lr_cuda_gather){.layout = layout,
                                      .num_offsets = (int32_t)tables->shape.info.num_offsets,
                                      .num_rows = one_row ? 1 : tables->shape.info.num_kernels};
    fill(tables);
    tables->gather.values = tables->values;
    assert_int_equal(lr_cuda_column_plan_init(&tables->plan, &tables->shape, &layout, tables->gather.num_rows, NULL),
                     LR_OK);
    assert_int_equal(lr_cuda_band_plan_init(&tables->bands, &tables->shape, &layout, tables->gather.num_rows, NULL),
                     LR_OK);
    assert_true(lr_cuda_band_plan_fits(&tables->bands, 227 * 1024));
    assert_int_equal(lr_cuda_cloud_init(&tables->cloud, &tables->shape, &layout, tables->gather.num_rows, NULL), LR_OK);
    tables->cloud.pass.factors = tables->cloud.factors;
    tables->cloud.pass.profiles = tables->cloud.profiles;
    tables->cloud.pass.shift = tables->cloud.shift;
    tables->plan.pass.steps = tables->plan.steps;
    tables->plan.pass.map = tables->map;
}

static void close_tables(struct tables *tables)
{
    lr_cuda_cloud_finish(&tables->cloud);
    lr_cuda_band_plan_finish(&tables->bands);
    lr_cuda_column_plan_finish(&tables->plan);
    free(tables->map);
    free(tables->values);
    free(tables->offsets);
    lr_direct_tables_destroy(tables->exact);
    lr_direct_shape_finish(&tables->shape);
}

/* Copies between the grid's order and that of texels. */
static void reorder(const lr_cuda_layout *layout, double *image, float *texels, bool to_texels)
{
    const int *size = layout->size;
    for (int64_t k = 0; k < (int64_t)size[0] * size[1] * size[2]; k++) {
        const int x = (int)(k % size[0]), y = (int)(k / size[0] % size[1]);
        const int64_t z = k / size[0] / size[1];
        float *texel = texels + FLOATS * ((int64_t)layout->extent[0] * column_of(layout, x, y) + layout->margin[0]) + z;
        if (to_texels)
            *texel = (float)image[k];
        else
            image[k] = *texel;
    }
}

enum kind {
    VOXELS,
    TEXELS,
    SHARED,
    CLOUD,
    COLUMNS,
    BANDS, /* in blocks of all shapes */
    NUM_KINDS = BANDS + LR_CUDA_BANDS_SHAPES
};

struct way {
    bool forward;
    const float *source;
    float *target;
};

static void run_bands(const struct tables *tables, int shape, struct way way)
{
    const struct lr_cuda_band_plan *plan = &tables->bands;
    const int32_t before = shape == 0 ? 0 : plan->passes[0].num_tiles;
    const lr_cuda_band_fill fill = {.places = plan->places[0][0],
                                    .offsets = plan->offsets,
                                    .values = tables->values,
                                    .map = tables->map,
                                    .num_steps = plan->num_steps,
                                    .num_offsets = tables->gather.num_offsets};
    const cpu_band_lists lists = {.steps = plan->steps,
                                  .lists = plan->lists[0],
                                  .cuts = plan->cuts[0],
                                  .tiles = plan->tiles[before],
                                  .bases = plan->bases[0],
                                  .spots = plan->spots[0][0],
                                  .ranges = plan->ranges[0]};
    assert_int_equal(on_cpu_bands(way.forward, plan->passes[shape], fill, &lists, way.source, way.target), 0);
}

static void run(const struct tables *tables, enum kind kind, bool forward, const float *source, float *target)
{
    if (kind == COLUMNS) {
        on_cpu_columns(forward, tables->plan.pass, &tables->gather, tables->plan.indices, tables->plan.num_weights,
                       source, target);
    } else if (kind >= BANDS) {
        run_bands(tables, (int)(kind - BANDS), (struct way){forward, source, target});
    } else if (kind == SHARED || kind == CLOUD) {
        on_cpu_cloud(kind == SHARED, forward, tables->cloud.pass, tables->cloud.points[0], tables->map, source, target);
    } else {
        on_cpu_gather(kind == VOXELS ? CPU_VOXELS : CPU_TEXELS, forward, tables->gather, tables->offsets, tables->map,
                      source, target);
    }
}

/* Texels beyond the grid must stay zero: the next gather reads them. */
static void assert_zero_around(const lr_cuda_layout *layout, const float *texels, int64_t num_texels,
                               const double *image)
{
    double inside = 0, all = 0;
    for (int64_t k = 0; k < (int64_t)layout->size[0] * layout->size[1] * layout->size[2]; k++) inside += fabs(image[k]);
    for (int64_t k = 0; k < FLOATS * num_texels; k++) all += fabs((double)texels[k]);
    assert_true(fabs(all - inside) <= 1e-9 * inside);
}

static double worst;

static void check_kind(const struct tables *tables, enum kind kind, bool forward, double *image, const double *expected)
{
    const lr_cuda_layout *layout = &tables->gather.layout;
    const int64_t count = (int64_t)layout->size[0] * layout->size[1] * layout->size[2];
    float *source = calloc((size_t)tables->num_texels, FLOATS * sizeof(*source));
    float *target = calloc((size_t)tables->num_texels, FLOATS * sizeof(*target));
    double *found = calloc((size_t)count, sizeof(*found)), square = 0, norm = 0;
    reorder(layout, image, source, true);
    run(tables, kind, forward, source, target);
    reorder(layout, found, target, false);
    assert_zero_around(layout, target, tables->num_texels, found);
    for (int64_t k = 0; k < count; k++) {
        square += (found[k] - expected[k]) * (found[k] - expected[k]);
        norm += expected[k] * expected[k];
    }
    assert_true(isfinite(square));
    worst = fmax(worst, sqrt(square / norm));
    free(found);
    free(target);
    free(source);
}

static void check_case(const lr_grid *grid, const lr_view *view, const lr_direct_kernel *kernel)
{
    uint64_t seed = 5;
    struct tables tables;
    const int64_t count = lr_grid_num_voxels(grid);
    const bool one_row = kernel->resolution.model == LR_RADIAL_INVARIANT && !kernel->resolution.asymmetric;
    open_tables(&tables, &(lr_direct_tables_params){.grid = grid, .view = *view, .kernel = *kernel}, one_row);
    lr_operator *reference = lr_direct_create(
        &(lr_direct_params){.grid = grid, .views = view, .num_views = 1, .kernel = *kernel, .backend = "cpu"});
    double *image = calloc((size_t)count, sizeof(*image));
    double *expected = calloc((size_t)count, sizeof(*expected));
    for (int64_t k = 0; k < count; k++) image[k] = (double)(float)test_random(&seed);
    for (int forward = 0; forward < 2; forward++) {
        assert_int_equal(view_doubles(reference, forward, 0, image, expected), LR_OK);
        for (int kind = 0; kind < NUM_KINDS; kind++) check_kind(&tables, kind, forward != 0, image, expected);
    }
    free(expected);
    free(image);
    lr_operator_destroy(reference);
    close_tables(&tables);
}

static void gathers_are_those_of_the_reference(void **state)
{
    const lr_grid grid = case_grid();
    for (int model = 0; model < NUM_MODELS; model++) {
        const lr_direct_kernel kernel = {.resolution = case_resolution(model)};
        for (int k = 0; k < NUM_ANGLES; k++) check_case(&grid, &case_views[k], &kernel);
    }
    print_message("largest difference %.2e\n", worst);
    assert_true(worst < 1e-6); /* of a sum of some hundred floats */
}

/* A kernel of more slices than a step has, in directions between those of the lattice. */
static void long_columns_are_cut_into_steps(void **state)
{
    static const lr_view views[] = {{18, 8}, {63, -20}, {117, 0}, {152, 14}};
    const lr_grid grid = lr_grid_centred((const int[3]){33, 35, 29}, (const double[3]){4, 4, 2});
    const lr_direct_kernel kernel = {
        .resolution = {.tof_ps = 200, .model = LR_RADIAL_VARIANT2, .axial_mm = 7, .edge_mm = 60}};
    worst = 0;
    for (int k = 0; k < 4; k++) check_case(&grid, &views[k], &kernel);
    print_message("largest difference %.2e\n", worst);
    assert_true(worst < 1e-6);
}

/* Threads of 24, 16 and 8 slices, products one to four high and in layers, kernels that lean, images that
 * end within a piece. */
static void images_are_high_and_low(void **state)
{
    static const struct {
        int size[3];
        lr_view view;
        double widest_mm;
    } cases[] = {
        {{37, 30, 62}, {71, 9}, 12}, /* 48 slices and 14 */
        {{35, 53, 41}, {160, 0}, 20},
        {{31, 37, 30}, {27, -10}, 25},
        {{24, 21, 83}, {50, 6}, 10},
    };
    worst = 0;
    for (int k = 0; k < (int)(sizeof(cases) / sizeof(cases[0])); k++) {
        const lr_grid grid = lr_grid_centred(cases[k].size, (const double[3]){4, 4, 4});
        const lr_direct_kernel kernel = {.resolution = {.tof_ps = 150,
                                                        .model = LR_RADIAL_LINEAR,
                                                        .radial_mm = 6,
                                                        .radial_edge_mm = cases[k].widest_mm,
                                                        .axial_mm = 9,
                                                        .edge_mm = 90}};
        check_case(&grid, &cases[k].view, &kernel);
    }
    print_message("largest difference %.2e\n", worst);
    assert_true(worst < 1e-6);
}

/* Kernels of far more steps than a block holds at once. */
static void kernels_are_wide(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){9, 37, 47}, (const double[3]){4, 4, 2});
    const lr_view view = {1, 0};
    const lr_direct_kernel kernel = {.resolution = {.tof_ps = 60,
                                                    .model = LR_RADIAL_LINEAR,
                                                    .radial_mm = 43,
                                                    .radial_edge_mm = 47,
                                                    .axial_mm = 33,
                                                    .edge_mm = 60}};
    worst = 0;
    check_case(&grid, &view, &kernel);
    print_message("largest difference %.2e\n", worst);
    assert_true(worst < 2e-6); /* of a sum of some thousand floats */
}

/* The support is so wide that a Gaussian is nothing at its end in single precision. */
static void kernels_end_in_nothing(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){41, 38, 9}, (const double[3]){4, 4, 4});
    const lr_view view = {25, 0};
    const lr_direct_kernel kernel = {.resolution = {.tof_ps = 40,
                                                    .model = LR_RADIAL_LINEAR,
                                                    .radial_mm = 3,
                                                    .radial_edge_mm = 6,
                                                    .axial_mm = 1.5,
                                                    .edge_mm = 80},
                                     .support = 250};
    worst = 0;
    check_case(&grid, &view, &kernel);
    print_message("largest difference %.2e\n", worst);
    assert_true(worst < 1e-6);
}

/* cuFFT's: every volume times the same spectrum, and nothing beyond the last. */
static void products_are_complex_ones(void **state)
{
    enum { BINS = 5, VOLUMES = 3, PAIRS = BINS * VOLUMES };
    float values[2 * (PAIRS + 3)], before[2 * (PAIRS + 3)], spectrum[2 * BINS];
    uint64_t seed = 4;
    for (int k = 0; k < 2 * (PAIRS + 3); k++) values[k] = before[k] = (float)(test_random(&seed) - 0.5);
    for (int k = 0; k < 2 * BINS; k++) spectrum[k] = (float)(test_random(&seed) - 0.5);
    on_cpu_product((fft_product){.bins = BINS, .volumes = VOLUMES, .scale = 0.25f}, values, spectrum);
    for (int k = 0; k < PAIRS; k++) {
        const double a[2] = {before[2 * k], before[2 * k + 1]};
        const double b[2] = {spectrum[2 * (k % BINS)], spectrum[2 * (k % BINS) + 1]};
        assert_true(fabs(values[2 * k] - 0.25 * (a[0] * b[0] - a[1] * b[1])) < 1e-7);
        assert_true(fabs(values[2 * k + 1] - 0.25 * (a[0] * b[1] + a[1] * b[0])) < 1e-7);
    }
    assert_memory_equal(values + 2 * PAIRS, before + 2 * PAIRS, 6 * sizeof(float));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathers_are_those_of_the_reference),
        cmocka_unit_test(long_columns_are_cut_into_steps),
        cmocka_unit_test(images_are_high_and_low),
        cmocka_unit_test(kernels_are_wide),
        cmocka_unit_test(kernels_end_in_nothing),
        cmocka_unit_test(products_are_complex_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
