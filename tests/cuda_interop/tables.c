/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Look-up tables of several views at once, made by CUDA's thread functions (on_cpu.h) in memory that is laid out as
 * on the device. LORmap and mSRval are compared with those of backend cpu, and bands project from these tables. The
 * data that the host prepares for the bands of a view are tested, too: all positions that are looked up are inside
 * the tables, and plans fit. */
#include "layouts.h"

#include "cuda_interop/direct/tables.h"

enum { NUM_VIEWS = 12 };

/* Views of all tests, and some for which bands do not fit. */
static const lr_view views[NUM_VIEWS] = {{0, 0},    {30, 0},  {45, 0},    {90, 0},      {0, 10},    {30, 10},
                                         {45, -10}, {90, 10}, {13.7, -6}, {101.3, 3.1}, {163.2, 0}, {-38.9, 8.5}};

/* Tables of all views in the host's memory, which stands for the device's memory, too. */
struct group {
    struct lr_direct_backend_params backend;
    lr_cuda_layout layout;
    struct lr_cuda_view_plan plans[NUM_VIEWS];
    lr_cuda_view_fill fills[NUM_VIEWS];
    lr_cuda_bands bands[NUM_VIEWS][2][LR_CUDA_BANDS_SHAPES];
    lr_cuda_fill_sizes sizes;
    struct lr_cuda_memory memory;
};

static void place_all(struct group *group)
{
    for (int k = 0; k < group->backend.num_views; k++) {
        assert_ok(lr_cuda_place_values(&group->memory, &group->plans[k], &group->layout, &group->fills[k]));
        if (group->plans[k].has_bands)
            assert_ok(lr_cuda_place_bands(&group->memory, &group->plans[k].bands, &group->fills[k], group->bands[k]));
    }
}

static void end_plans(void *object)
{
    lr_cuda_view_plans_finish(object, NUM_VIEWS);
}

static struct group *kept_group(const lr_grid *grid, int model, bool bands_work)
{
    struct group *group = kept(1, sizeof(*group));
    group->backend = filled(struct lr_direct_backend_params, .grid = *grid, .views = views, .num_views = NUM_VIEWS,
                            .kernel = {case_resolution(model), 0, 0}, .threads = 3, .variant = LR_DIRECT_BANDS);
    const lr_direct_tables_params tables = {.grid = grid, .kernel = group->backend.kernel};
    group->layout = layout_of(&tables, views, NUM_VIEWS);
    int numbers[NUM_VIEWS];
    for (int k = 0; k < NUM_VIEWS; k++) numbers[k] = k;
    const struct lr_cuda_plan_params params = {
        .backend = &group->backend, .layout = group->layout, .bands_work = bands_work, .shared_room = 227 * 1024};
    assert_ok(lr_cuda_view_plans_init(group->plans, &params, numbers, NUM_VIEWS));
    keep_object(group->plans, end_plans);
    /* Values that are not copied or filled in are NaN. */
    place_all(group);
    const struct lr_cuda_memory counted = group->memory;
    const int64_t bytes = counted.copied_bytes + counted.filled_bytes;
    void *block = keep_object(aligned_alloc(256, (size_t)bytes), free);
    memset(block, 0xff, (size_t)bytes);
    group->memory = (struct lr_cuda_memory){
        .device = block, .host = block, .copied_room = counted.copied_bytes, .filled_room = counted.filled_bytes};
    place_all(group);
    assert_int_equal(group->memory.copied_bytes + group->memory.filled_bytes, bytes);
    group->sizes = lr_cuda_fill_sizes_of(group->fills, NUM_VIEWS);
    on_cpu_value_fills(group->fills, &group->sizes);
    on_cpu_band_fills(group->fills, &group->sizes);
    return group;
}

/* --- LORmap and mSRval --- */

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
    const lr_grid grids[2] = {case_grid(), lr_grid_centred((const int[3]){29, 37, 14}, (const double[3]){3.1, 2.7, 4})};
    double worst = 0;
    for (int k = 0; k < 2 * NUM_MODELS; k++) {
        const struct group *group = kept_group(&grids[k % 2], k / 2, true);
        for (int view = 0; view < NUM_VIEWS; view++) {
            lr_direct_tables *reference = kept_tables(&group->backend.grid, views[view], &group->backend.kernel);
            const lr_cuda_layout *layout = &group->layout;
            const uint16_t *map = group->fills[view].map.map;
            for (int n = 0; n < layout->extent[1] * layout->extent[2]; n++) {
                const int x = n % layout->extent[1] - layout->margin[1], y = n / layout->extent[1] - layout->margin[2];
                const bool is_there = x >= 0 && x < layout->size[0] && y >= 0 && y < layout->size[1];
                assert_int_equal(map[n], is_there ? lr_direct_tables_map(reference)[x + layout->size[0] * y] : 0);
            }
            worst = fmax(worst, check_values(group, view, reference));
        }
        destroy_kept_since(0);
    }
    print_message("largest difference of a value %.2e\n", worst);
}

/* --- bands --- */

/* Returns the largest difference over both directions, in blocks of every shape. */
static double project_by_bands(const struct group *group, lr_operator *reference, int view)
{
    const lr_cuda_layout *layout = &group->layout;
    const int64_t count = (int64_t)layout->size[0] * layout->size[1] * layout->size[2];
    const int64_t num_floats = (int64_t)FLOATS * layout->extent[0] * layout->extent[1] * layout->extent[2];
    uint64_t seed = 8;
    double *image = kept_random_singles(count, 0, 1, &seed), *found = kept_doubles(count);
    double *expected = kept_doubles(count), worst = 0;
    float *source = kept_floats(num_floats);
    reorder(layout, image, source, true);
    for (int way = 0; way < 2 * LR_CUDA_BANDS_SHAPES; way++) {
        const bool forward = way % 2 == 0;
        float *target = kept_floats(num_floats);
        assert_ok(view_doubles(reference, forward, view, image, expected));
        assert_int_equal(on_cpu_filled_bands(forward, &group->bands[view][forward][way / 2], source, target), 0);
        reorder(layout, found, target, false);
        const double apart = l2_apart(found, expected, count);
        assert_true(isfinite(apart));
        worst = fmax(worst, apart);
    }
    return worst;
}

static void bands_project_from_where_tables_lie(void **state)
{
    static const int models[] = {0, 2, 5, 6};
    const lr_grid grid = case_grid();
    double worst = 0;
    for (int m = 0; m < 4; m++) {
        const struct group *group = kept_group(&grid, models[m], true);
        lr_operator *reference = keep(lr_direct_create(&(lr_direct_params){
            .grid = &grid, .views = views, .num_views = NUM_VIEWS, .kernel = group->backend.kernel, .backend = "cpu"}));
        for (int view = m; view < NUM_VIEWS; view += 3) {
            assert_true(group->plans[view].has_bands);
            worst = fmax(worst, project_by_bands(group, reference, view));
        }
    }
    print_message("largest difference %.2e\n", worst);
    assert_true(worst < 1e-6);
}

/* --- plans --- */

/* The device is too old for bands. */
static void columns_do_what_bands_cannot(void **state)
{
    const lr_grid grid = case_grid();
    const struct group *group = kept_group(&grid, 2, false);
    for (int view = 0; view < NUM_VIEWS; view++) {
        assert_true(group->plans[view].has_columns && !group->plans[view].has_bands);
        assert_int_equal(group->fills[view].bands[0].num_tiles, 0);
    }
    assert_int_equal(group->sizes.weights + group->sizes.spans + group->sizes.kernels, 0);
}

/* The log has the reason of the first view that fails, once, whichever thread finds it. */
static void a_view_that_fails_says_why(void **state)
{
    static const lr_view wrong[6] = {{0, 0}, {10, 0}, {20, 95}, {30, 0}, {40, 0}, {50, -120}};
    static const int numbers[6] = {0, 1, 2, 3, 4, 5};
    struct test_log log = TEST_LOG(log);
    const struct lr_direct_backend_params backend =
        filled(struct lr_direct_backend_params, .grid = case_grid(), .views = wrong, .num_views = 6,
               .kernel = {case_resolution(0), 0, 0}, .threads = 3, .log = &log.log);
    const lr_direct_tables_params tables = {.grid = &backend.grid, .kernel = backend.kernel};
    const struct lr_cuda_plan_params params = {
        .backend = &backend, .layout = layout_of(&tables, views, 6), .bands_work = true};
    struct lr_cuda_view_plan plans[6], none[6] = {{.num_rows = 0}};
    memset(plans, 0, sizeof(plans));
    assert_int_equal(lr_cuda_view_plans_init(plans, &params, numbers, 6), LR_USAGE);
    assert_says(log.error, "a view's tilt of 95 degrees");
    memset(none, 0, sizeof(none));
    assert_memory_equal(plans, none, sizeof(plans));
}

/* --- memory --- */

static void memory_is_that_which_was_counted(void **state)
{
    static const char data[300] = "what the host has made";
    static char device[1024], host[512];
    struct lr_cuda_memory memory = {0};
    assert_all(lr_cuda_place(&memory, 300, data) != NULL, lr_cuda_place(&memory, 17, NULL) != NULL);
    assert_non_null(lr_cuda_place(&memory, 257, NULL));
    assert_ints(memory.copied_bytes, 512, memory.filled_bytes, 256 + 512);
    assert_int_equal(memory.copied_bytes + memory.filled_bytes, 1280);
    memory = (struct lr_cuda_memory){device, host, 512, 512, 0, 0};
    assert_ptr_equal(lr_cuda_place(&memory, 300, data), device);
    assert_ptr_equal(lr_cuda_place(&memory, 17, NULL), device + 512);
    assert_ptr_equal(lr_cuda_place(&memory, 256, NULL), device + 768);
    assert_memory_equal(host, data, 300);
    assert_all(lr_cuda_place(&memory, 1, NULL) == NULL, lr_cuda_place(&memory, 1, data) == NULL);
}

/* --- what the host prepares for bands --- */

static void end_bands(void *plan)
{
    lr_cuda_band_plan_finish(plan);
    free(plan);
}

/* rows is 1 where there is only one kernel. */
static struct lr_cuda_band_plan *kept_bands(const lr_direct_tables_params *params, int rows)
{
    struct lr_direct_shape shape;
    struct lr_cuda_band_plan *plan = keep_object(calloc(1, sizeof(*plan)), end_bands);
    assert_ok(lr_direct_shape_init(&shape, params));
    const lr_cuda_layout layout = layout_of(params, &params->view, 1);
    assert_ok(lr_cuda_band_plan_init(plan, &shape, &layout, rows, NULL));
    lr_direct_shape_finish(&shape);
    return plan;
}

/* Kernels are long, thin and oblique: neither a step nor the step after a list reads beyond the tables. */
static void long_kernels_stay_within_their_tables(void **state)
{
    static const struct {
        int size;
        double voxel_mm, azimuth, tof_ps;
    } cases[] = {{300, 2, 13, 1451}, {440, 1.65, 8, 1500}, {120, 4, 71, 900}};
    for (int k = 0; k < 3; k++) {
        const double mm = cases[k].voxel_mm;
        const lr_grid grid =
            lr_grid_centred((const int[3]){cases[k].size, cases[k].size, 3}, (const double[3]){mm, mm, mm});
        const struct lr_cuda_band_plan *plan = kept_bands(
            &filled(lr_direct_tables_params, .grid = &grid, .view = {cases[k].azimuth, 0},
                    .kernel.resolution = {.tof_ps = cases[k].tof_ps, .radial_mm = 2 * mm, .axial_mm = 0.7 * mm}),
            5);
        assert_true(lr_cuda_band_plan_fits(plan, 227 * 1024));
        for (int d = 0; d < plan->passes[0].num_lists; d++) {
            for (int step = plan->lists[d][0]; step < plan->lists[d][1]; step++)
                for (int half = 0; half < 4; half++) {
                    /* Checks the positions at which a device looks up the kernels of eight neighbouring sources
                     * (an octet). */
                    const lr_cuda_bands *pass = &plan->passes[LR_CUDA_BANDS_ALONE];
                    const int row = pass->least_offset + d,
                              place = plan->steps[step].kernel[half % 2] - row * pass->kernel_pitch;
                    for (int32_t n = 0; n < pass->num_tiles; n++) {
                        const int first = LR_CUDA_OCTET * plan->tiles[n][0] + place - pass->first_kernel[0];
                        assert_in_range(first, 0, pass->kernel_pitch - LR_CUDA_OCTET * pass->sides);
                        assert_in_range(plan->tiles[n][1] + (half / 2) * LR_CUDA_BAND_ROWS + row -
                                            pass->first_kernel[1],
                                        0, pass->num_kernel_rows - 1);
                    }
                }
        }
    }
}

static struct lr_cuda_band_plan *kept_view(const lr_grid *grid, const lr_view *view, double axial_mm)
{
    const lr_resolution resolution = {.tof_ps = 400, .radial_mm = 6, .axial_mm = axial_mm};
    return kept_bands(&(lr_direct_tables_params){.grid = grid, .view = *view, .kernel.resolution = resolution}, 1);
}

/* The image is sorted only once for all of these views. */
static void views_along_a_lattice_sort_alike(void **state)
{
    enum { VIEWS = 40 };
    const struct lr_cuda_band_plan *plans[VIEWS];
    const lr_grid grid = lr_grid_centred((const int[3]){61, 44, 20}, (const double[3]){4, 4, 4});
    int alike = 0;
    for (int k = 0; k < VIEWS; k++) {
        plans[k] = kept_view(&grid, &(lr_view){4.5 * k, k % 3 * 10 - 10}, 6);
        const lr_cuda_bands *pass = plans[k]->passes;
        for (int other = 0; other < k; other++) {
            const lr_cuda_bands *of = plans[other]->passes;
            if (memcmp(pass->next, of->next, sizeof(pass->next)) != 0 ||
                memcmp(pass->across, of->across, sizeof(pass->across)) != 0)
                continue;
            alike++;
            assert_ints(pass->pitch, of->pitch, pass->least_row, of->least_row);
            assert_int_equal(pass->num_lattice_rows, of->num_lattice_rows);
            assert_memory_equal(plans[k]->bases, plans[other]->bases,
                                (size_t)pass->num_lattice_rows * sizeof(*plans[k]->bases));
        }
    }
    assert_true(alike > VIEWS);
}

/* Kernels reach far along the axis, so that blocks have fewer slices, and a single copy still loads a slab. */
static void high_kernels_fit(void **state)
{
    static const double axial_mm[] = {28, 40};
    const lr_grid grid = lr_grid_centred((const int[3]){40, 40, 120}, (const double[3]){4, 4, 1});
    for (int k = 0; k < 2; k++) {
        const struct lr_cuda_band_plan *plan = kept_view(&grid, &(lr_view){36, 0}, axial_mm[k]);
        assert_true(-2 * plan->passes[0].low_slice + LR_CUDA_BAND_SLICES * LR_CUDA_BAND_HEIGHT > LR_CUDA_BAND_MOST);
        assert_true(lr_cuda_band_plan_fits(plan, 227 * 1024));
    }
}

/* Blocks of passes that run at the same time as others also hold their steps, and may need more memory than blocks
   of a pass alone. */
static void blocks_of_both_shapes_fit(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){60, 60, 62}, (const double[3]){4, 4, 4});
    const struct lr_cuda_band_plan *plan = kept_view(&grid, &(lr_view){18, 10}, 5);
    const int32_t alone = plan->passes[LR_CUDA_BANDS_ALONE].bytes;
    const int32_t beside = plan->passes[LR_CUDA_BANDS_BESIDE].bytes;
    assert_all(beside > alone, lr_cuda_band_plan_fits(plan, beside), !lr_cuda_band_plan_fits(plan, beside - 1));
}

/* A plan takes a third slab only if four blocks still fit into a multiprocessor's shared memory. */
static void third_slabs_cost_no_block(void **state)
{
    static const double tof_ps[] = {200, 400, 600, 900, 1200};
    const lr_grid grid = lr_grid_centred((const int[3]){120, 120, 48}, (const double[3]){4, 4, 4});
    int depths[4] = {0};
    for (int k = 0; k < 5; k++) {
        const lr_resolution resolution = {.tof_ps = tof_ps[k], .radial_mm = 5, .axial_mm = 4};
        const struct lr_cuda_band_plan *plan =
            kept_bands(&(lr_direct_tables_params){.grid = &grid, .kernel.resolution = resolution}, 5);
        const lr_cuda_bands *beside = &plan->passes[LR_CUDA_BANDS_BESIDE];
        assert_all(beside->is_crowded, beside->depth == 2 || 4 * (beside->bytes + 1024) <= 228 * 1024);
        depths[beside->depth]++;
    }
    assert_true(depths[2] > 0 && depths[3] > 0);
}

test_main("tables", CASES(tables_are_those_of_the_reference, bands_project_from_where_tables_lie,
                          columns_do_what_bands_cannot, a_view_that_fails_says_why, memory_is_that_which_was_counted,
                          long_kernels_stay_within_their_tables, views_along_a_lattice_sort_alike, high_kernels_fit,
                          blocks_of_both_shapes_fit, third_slabs_cost_no_block))
