/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The arithmetic of CUDA's gathers, thread by thread on the processor (on_cpu.h), against backend cpu: all models and
 * views, both directions, and the borders of the grid. */
#include "layouts.h"

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

static void fill(struct tables *tables)
{
    const lr_cuda_gather *gather = &tables->gather;
    const int *size = gather->layout.size;
    const int64_t count = gather->num_offsets;
    const int64_t entries = (int64_t)gather->layout.extent[1] * gather->layout.extent[2];
    tables->offsets = kept(count, 4 * sizeof(*tables->offsets));
    tables->values = kept_floats(count * gather->num_rows);
    tables->map = kept(entries, sizeof(*tables->map));
    memset(tables->map, 0xff, (size_t)entries * sizeof(*tables->map)); /* the margins around the grid have no kernel */
    for (int64_t i = 0; i < count; i++) {
        memcpy(tables->offsets + 4 * i, tables->shape.offsets[i], 3 * sizeof(int32_t));
        for (int row = 0; row < gather->num_rows; row++)
            tables->values[i * gather->num_rows + row] = (float)lr_direct_tables_values(tables->exact, row)[i];
    }
    for (int k = 0; k < size[0] * size[1]; k++) {
        tables->map[column_of(&gather->layout, k % size[0], k / size[0])] =
            (uint16_t)lr_direct_tables_map(tables->exact)[k];
    }
}

/* rows is 1 where all kernels are the same. */
static void open_tables(struct tables *tables, const lr_direct_tables_params *params, bool one_row)
{
    *tables = (struct tables){0};
    assert_ok(lr_direct_shape_init(&tables->shape, params));
    tables->exact = non_null(lr_direct_tables_create(params));
    const lr_cuda_layout layout = layout_of(params, &params->view, 1);
    tables->num_texels = (int64_t)layout.extent[0] * layout.extent[1] * layout.extent[2];
    tables->gather = (lr_cuda_gather){.layout = layout,
                                      .num_offsets = (int32_t)tables->shape.info.num_offsets,
                                      .num_rows = one_row ? 1 : tables->shape.info.num_kernels};
    fill(tables);
    tables->gather.values = tables->values;
    assert_ok(lr_cuda_column_plan_init(&tables->plan, &tables->shape, &layout, tables->gather.num_rows, NULL));
    assert_ok(lr_cuda_band_plan_init(&tables->bands, &tables->shape, &layout, tables->gather.num_rows, NULL));
    assert_true(lr_cuda_band_plan_fits(&tables->bands, 227 * 1024));
    assert_ok(lr_cuda_cloud_init(&tables->cloud, &tables->shape, &layout, tables->gather.num_rows, NULL));
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
    lr_direct_tables_destroy(tables->exact);
    lr_direct_shape_finish(&tables->shape);
}

enum kind {
    VOXELS,
    TEXELS,
    SHARED,
    CLOUD,
    IN_TEXTURES, /* the four kinds above, with images and tables in textures */
    COLUMNS = 2 * IN_TEXTURES,
    BANDS, /* Gathers in blocks of every shape. */
    NUM_KINDS = BANDS + LR_CUDA_BANDS_SHAPES
};

/* A kind of gather that may be in textures. */
static void run_images(const struct tables *tables, int kind, bool forward, const cpu_images *images)
{
    if (kind == SHARED || kind == CLOUD)
        on_cpu_cloud(kind == SHARED, forward, tables->cloud.pass, tables->cloud.points[0], images);
    else
        on_cpu_gather(kind == VOXELS ? CPU_VOXELS : CPU_TEXELS, forward, tables->gather, tables->offsets, images);
}

static void run(const struct tables *tables, int kind, bool forward, const float *source, float *target)
{
    const struct lr_cuda_band_plan *plan = &tables->bands;
    const int shape = kind - BANDS;
    if (kind == COLUMNS) {
        on_cpu_columns(forward, tables->plan.pass, &tables->gather, tables->plan.indices, tables->plan.num_weights,
                       source, target);
    } else if (kind >= BANDS) {
        const lr_cuda_band_fill fill =
            filled(lr_cuda_band_fill, .places = plan->places[0][0], .offsets = plan->offsets, .values = tables->values,
                   .map = tables->map, .num_steps = plan->num_steps, .num_offsets = tables->gather.num_offsets);
        const cpu_band_lists lists =
            filled(cpu_band_lists, .steps = plan->steps, .lists = plan->lists[0], .cuts = plan->cuts[0],
                   .tiles = plan->tiles[shape == 0 ? 0 : plan->passes[0].num_tiles], .bases = plan->bases[0],
                   .spots = plan->spots[0][0], .ranges = plan->ranges[0]);
        assert_int_equal(on_cpu_bands(forward, plan->passes[shape], fill, &lists, source, target), 0);
    } else {
        const cpu_images images = {
            .source = source, .target = target, .map = tables->map, .in_textures = kind >= IN_TEXTURES};
        run_images(tables, kind % IN_TEXTURES, forward, &images);
    }
}

/* Returns the difference from what is expected. Texels beyond the grid must stay zero: the next gather reads them. */
static double check_kind(const struct tables *tables, int kind, bool forward, double *image, const double *expected)
{
    const lr_cuda_layout *layout = &tables->gather.layout;
    const int64_t count = (int64_t)layout->size[0] * layout->size[1] * layout->size[2];
    float *source = kept_floats(FLOATS * tables->num_texels), *target = kept_floats(FLOATS * tables->num_texels);
    double *found = kept_doubles(count), inside = 0, all = 0;
    reorder(layout, image, source, true);
    run(tables, kind, forward, source, target);
    reorder(layout, found, target, false);
    for (int64_t k = 0; k < count; k++) inside += fabs(found[k]);
    for (int64_t k = 0; k < FLOATS * tables->num_texels; k++) all += fabs((double)target[k]);
    assert_true(fabs(all - inside) <= 1e-9 * inside);
    const double apart = l2_apart(found, expected, count);
    assert_true(isfinite(apart));
    return apart;
}

/* Returns the largest difference over all kinds of gathers in both directions. Kinds in textures, whose bits are those
 * of arrays (see below), take half of the time: they may be left out, except with LORASTER_FULL. */
static double check_case(const lr_grid *grid, const lr_view *view, const lr_direct_kernel *kernel, bool also_textures)
{
    uint64_t seed = 5;
    struct tables tables;
    const int before = num_kept();
    const int64_t count = lr_grid_num_voxels(grid);
    const bool one_row = kernel->resolution.model == LR_RADIAL_INVARIANT && !kernel->resolution.asymmetric;
    open_tables(&tables, &(lr_direct_tables_params){.grid = grid, .view = *view, .kernel = *kernel}, one_row);
    lr_operator *reference = keep(lr_direct_create(
        &(lr_direct_params){.grid = grid, .views = view, .num_views = 1, .kernel = *kernel, .backend = "cpu"}));
    double *image = kept_random_singles(count, 0, 1, &seed), *expected = kept_doubles(count), worst = 0;
    for (int forward = 0; forward < 2; forward++) {
        assert_ok(view_doubles(reference, forward, 0, image, expected));
        for (int kind = 0; kind < NUM_KINDS; kind++) {
            if (kind >= IN_TEXTURES && kind < COLUMNS && !also_textures && !test_is_full()) continue;
            worst = fmax(worst, check_kind(&tables, kind, forward != 0, image, expected));
        }
    }
    close_tables(&tables);
    destroy_kept_since(before);
    return worst;
}

static void expect_worst(double worst, double most)
{
    print_message("largest difference %.2e\n", worst);
    assert_true(worst < most);
}

static void gathers_are_those_of_the_reference(void **state)
{
    const lr_grid grid = case_grid();
    double worst = 0;
    for (int k = 0; k < NUM_MODELS * NUM_ANGLES; k++) {
        /* Usually each model with every third view, and each view with every third model. */
        if ((k / NUM_ANGLES + k % NUM_ANGLES) % 3 > 0 && !test_is_full()) continue;
        const lr_direct_kernel kernel = {.resolution = case_resolution(k / NUM_ANGLES)};
        worst = fmax(worst, check_case(&grid, &case_views[k % NUM_ANGLES], &kernel, true));
    }
    expect_worst(worst, 1e-6); /* rounding of a sum of some hundred floats */
}

/* Textures give the same bits as arrays. With any one of its textures emptied, a variant has other results. */
static void tables_in_textures_are_read(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){25, 35, 19}, (const double[3]){4, 4, 2});
    const lr_direct_kernel kernel = {
        .resolution = {.tof_ps = 340, .model = LR_RADIAL_VARIANT2, .axial_mm = 7, .edge_mm = 60}};
    uint64_t seed = 9;
    struct tables tables;
    open_tables(&tables, &(lr_direct_tables_params){.grid = &grid, .view = {63, 3}, .kernel = kernel}, false);
    assert_true(tables.cloud.pass.num_points > LR_CUDA_LIST_WIDTH);
    const int64_t count = lr_grid_num_voxels(&grid), floats = FLOATS * tables.num_texels;
    double *image = kept_random_doubles(count, 0, 1, &seed);
    float *source = kept_floats(floats), *expected = kept_floats(floats), *found = kept_floats(floats);
    reorder(&tables.gather.layout, image, source, true);
    for (int k = 0; k < 2 * IN_TEXTURES; k++) {
        const int kind = k / 2, num_tables = kind == SHARED || kind == CLOUD ? LR_CUDA_NUM_TEXTURES : 1;
        const bool forward = k % 2 != 0;
        cpu_images images = {.source = source, .target = expected, .map = tables.map};
        run_images(&tables, kind, forward, &images);
        images.target = found;
        images.in_textures = true;
        run_images(&tables, kind, forward, &images);
        assert_memory_equal(found, expected, (size_t)floats * sizeof(*found));
        for (int n = 0; n < num_tables; n++) {
            images.emptied = 1 << n;
            run_images(&tables, kind, forward, &images);
            assert_true(l2_apart(found, expected, floats) > 0.01);
        }
    }
    close_tables(&tables);
}

/* The kernel has more slices than one step takes, and views lie between the directions of the lattice. */
static void long_columns_are_cut_into_steps(void **state)
{
    static const lr_view views[] = {{18, 8}, {63, -20}, {117, 0}, {152, 14}};
    const lr_grid grid = lr_grid_centred((const int[3]){23, 25, 29}, (const double[3]){4, 4, 2});
    const lr_direct_kernel kernel = {
        .resolution = {.tof_ps = 200, .model = LR_RADIAL_VARIANT2, .axial_mm = 7, .edge_mm = 60}};
    for (int k = 0; k < 4; k++) expect_worst(check_case(&grid, &views[k], &kernel, k == 0), 1e-6);
}

/* Threads compute 24, 16 and 8 slices, products are one to four high and in layers, kernels are oblique, and images
 * end within a piece. */
static void images_are_high_and_low(void **state)
{
    static const struct {
        int size[3];
        lr_view view;
        double widest_mm;
    } cases[] = {{{37, 30, 62}, {71, 9}, 12}, /* 48 slices and 14 */
                 {{35, 53, 41}, {160, 0}, 20},
                 {{31, 37, 30}, {27, -10}, 25},
                 {{24, 21, 83}, {50, 6}, 10}};
    for (int k = 0; k < (int)(length_of(cases)); k++) {
        const lr_grid grid = lr_grid_centred(cases[k].size, (const double[3]){4, 4, 4});
        const lr_direct_kernel kernel = {.resolution = filled(lr_resolution, .tof_ps = 150, .model = LR_RADIAL_LINEAR,
                                                              .radial_mm = 6, .radial_edge_mm = cases[k].widest_mm,
                                                              .axial_mm = 9, .edge_mm = 90)};
        expect_worst(check_case(&grid, &cases[k].view, &kernel, k == 0), 1e-6);
    }
}

/* Kernels have far more steps than a block holds at once. */
static void kernels_are_wide(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){9, 37, 47}, (const double[3]){4, 4, 2});
    const lr_view view = {1, 0};
    const lr_direct_kernel kernel = {.resolution =
                                         filled(lr_resolution, .tof_ps = 60, .model = LR_RADIAL_LINEAR, .radial_mm = 43,
                                                .radial_edge_mm = 47, .axial_mm = 33, .edge_mm = 60)};
    expect_worst(check_case(&grid, &view, &kernel, false), 2e-6); /* rounding of a sum of some thousand floats */
}

/* The support is so wide that a Gaussian is nothing at its end in single precision. */
static void kernels_end_in_nothing(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){41, 38, 9}, (const double[3]){4, 4, 4});
    const lr_view view = {25, 0};
    const lr_direct_kernel kernel = {.resolution =
                                         filled(lr_resolution, .tof_ps = 40, .model = LR_RADIAL_LINEAR, .radial_mm = 3,
                                                .radial_edge_mm = 6, .axial_mm = 1.5, .edge_mm = 80),
                                     .support = 250};
    expect_worst(check_case(&grid, &view, &kernel, false), 1e-6);
}

/* The product that stands between cuFFT's transforms: every volume is multiplied by the same spectrum, and nothing
   behind the last volume is written. */
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

test_main("kernels",
          CASES(gathers_are_those_of_the_reference, tables_in_textures_are_read, long_columns_are_cut_into_steps,
                images_are_high_and_low, kernels_are_wide, kernels_end_in_nothing, products_are_complex_ones))
