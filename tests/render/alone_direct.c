/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Single passes of the family direct: gathers and updates compared with plain loops on the host; tables and depositions
 * compared with src/direct and src/direct/cpu. Images are in textures and in buffers. */
#include "device.h"

#include "base/units.h"
#include "direct/backend.h"
#include "direct/cases.h"
#include "direct/tables.h"

/* Odd sizes: 9 slices are two quads and a quarter. */
static const int size[3] = {7, 5, 9};
enum { QUADS = 3, VOXELS = 7 * 5 * 9 };
static const int wide[3] = {3, 5, 6}, none[3]; /* margins: quads, x, y */

static uint64_t state = 11;

/* --- images --- */

/* Random values [nz][ny][nx] between low and high; every fifth value is 0. */
static float *draw(double low, double high)
{
    float *values = kept_random_floats(VOXELS, low, high, &state);
    for (int k = 2; k < VOXELS; k += 5) values[k] = 0;
    return values;
}

struct picture {
    struct gl_texture *texture;
    struct gl_buffer *buffer;
    const int *margin;
};

static void find_extent(const int margin[3], int extent[3])
{
    extent[0] = QUADS + 2 * margin[0];
    extent[1] = size[0] + 2 * margin[1];
    extent[2] = size[1] + 2 * margin[2];
}

/* Every voxel [nz][ny][nx] of `values` is copied to its texel, or from it. */
static void copy_voxels(const int margin[3], float *values, float *texels, bool to_texels)
{
    int extent[3];
    find_extent(margin, extent);
    for (int k = 0; k < VOXELS; k++) {
        /* A texel holds four slices; the slice index runs fastest. */
        const int x = k % size[0], y = k / size[0] % size[1], z = k / size[0] / size[1];
        float *texel = &texels[4LL * (margin[0] + extent[0] * (x + margin[1] + extent[1] * (y + margin[2]))) + z];
        if (to_texels)
            *texel = values[k];
        else
            values[k] = *texel;
    }
}

static struct picture put(const int margin[3], bool in_buffer, float *values)
{
    int extent[3];
    find_extent(margin, extent);
    const int64_t count = 4LL * extent[0] * extent[1] * extent[2];
    float *texels = kept_floats(count);
    if (values != NULL) copy_voxels(margin, values, texels, true);
    struct picture picture = {.margin = margin};
    if (in_buffer)
        picture.buffer = device_buffer(count * 4, texels);
    else
        picture.texture = device_texture(GL_TEXTURE_3D, GL_RGBA32F, extent, texels);
    return picture;
}

/* Reads the image, and checks that the margins and the slices beyond the last one are still 0. */
static float *take(const struct picture *picture)
{
    int extent[3];
    find_extent(picture->margin, extent);
    const int64_t count = 4LL * extent[0] * extent[1] * extent[2];
    float *texels = kept_floats(count), *values = kept_floats(VOXELS), *zeros = kept_floats(VOXELS);
    device_check((picture->buffer != NULL ? gl_buffer_read(picture->buffer, 0, count * 4, texels)
                                          : gl_texture_read(picture->texture, NULL, texels)) == LR_OK);
    copy_voxels(picture->margin, values, texels, false);
    copy_voxels(picture->margin, zeros, texels, true);
    for (int64_t k = 0; k < count; k++) assert_true(texels[k] == 0.0f);
    return values;
}

/* The block of shaders/direct/direct.glsl. */
struct direct_pass {
    int32_t grid[4], margin[4], counts[4], extent[4];
};

static struct direct_pass uniforms_of(const int margin[3])
{
    struct direct_pass uniforms = {.grid = {size[0], size[1], size[2], QUADS}};
    for (int k = 0; k < 3; k++) uniforms.margin[k] = margin[k];
    find_extent(margin, uniforms.extent);
    return uniforms;
}

static void bind_source(struct gl_pass *pass, const struct picture *picture)
{
    pass->buffers[LR_BIND_DIRECT_SOURCE].buffer = picture->buffer;
    pass->textures[LR_UNIT_DIRECT_SOURCE] = picture->texture;
}

static void bind_target(struct gl_pass *pass, const struct picture *picture)
{
    pass->buffers[LR_BIND_DIRECT_TARGET].buffer = picture->buffer;
    pass->images[LR_IMAGE_DIRECT_TARGET].texture = picture->texture;
}

/* Two groups along x, and as many along y as the threads require. */
static struct gl_pass pass_of(struct gl_program *program, const struct direct_pass *uniforms, int threads)
{
    struct gl_pass pass = device_pass(program, uniforms, sizeof(*uniforms), 2);
    pass.groups[1] = gl_divide_up(threads, 2 * LR_DIRECT_GROUP);
    return pass;
}

/* Compares results of a few operations in single precision. */
static void expect_floats(const float *found, const double *wanted, int count)
{
    for (int k = 0; k < count; k++)
        if (!(fabs((double)found[k] - wanted[k]) <= 1e-6 * (1 + fabs(wanted[k]))))
            fail_msg("number %d is %.9g, not %.9g", k, (double)found[k], wanted[k]);
}

/* --- gathers --- */

/* mSR is a box, ordered by y, then x, then z. Its slices begin and end inside a group of four. */
enum { KERNELS = 3, HALF_X = 1, HALF_Y = 2, HALF_Z = 2, OFFSETS = 3 * 5 * 5 };

static int offset_at(int x, int y, int z)
{
    const bool is_inside = abs(x) <= HALF_X && abs(y) <= HALF_Y && abs(z) <= HALF_Z;
    return is_inside ? z + HALF_Z + 5 * (x + HALF_X + 3 * (y + HALF_Y)) : -1;
}

/* Makes the steps of four neighbouring outputs along an axis; returns the number of steps. */
static int list_steps(int axis, int32_t (*steps)[8])
{
    int count = 0;
    for (int across = -3; across <= 3; across++) {
        for (int along = -3; along <= 6; along++) {
            bool is_fresh = true;
            for (int quad = -1; quad <= 0; quad++) {
                int32_t *step = memset(steps[count], 0, sizeof(*steps));
                for (int term = 0; term < 16; term++) {
                    const int j = term % 4, r = term / 4, place = along - j, z = 4 * quad + r;
                    const int offset = axis == 0 ? offset_at(place, across, z) : offset_at(across, place, z);
                    if (offset < 0) continue;
                    step[3] |= 1 << term;
                    step[4 + j] = offset - r;
                }
                if (step[3] == 0) continue;
                step[0] = along;
                step[1] = across;
                step[2] = quad;
                step[3] |= is_fresh ? LR_DIRECT_FRESH : 0;
                is_fresh = false;
                count++;
            }
        }
    }
    return count;
}

static void check_gather(bool is_forward, bool in_buffer, int axis)
{
    int32_t(*steps)[8] = kept(256, sizeof(*steps));
    uint16_t *map = kept((7 + 2 * 5) * (5 + 2 * 6), sizeof(*map)), kernel_of[7 * 5];
    float *values = kept_random_floats(OFFSETS * KERNELS, 0, 1, &state), *from = draw(0, 1);
    for (int k = 0; k < size[0] * size[1]; k++) { /* numbers beyond the last kernel mean the last one */
        kernel_of[k] = (uint16_t)(4 * test_random(&state));
        map[k % size[0] + wide[1] + (size[0] + 2 * wide[1]) * (k / size[0] + wide[2])] = kernel_of[k];
    }
    struct direct_pass uniforms = uniforms_of(wide);
    uniforms.margin[3] = axis;
    uniforms.counts[0] = list_steps(axis, steps);
    uniforms.counts[1] = OFFSETS;
    uniforms.counts[2] = KERNELS;
    struct gl_program *program =
        device_program(is_forward ? "direct/forward.comp" : "direct/back.comp", in_buffer ? "BUFFERS" : NULL);
    struct gl_pass pass = pass_of(program, &uniforms, 2 * VOXELS);
    const struct picture source = put(wide, in_buffer, from), target = put(wide, in_buffer, NULL);
    bind_source(&pass, &source);
    bind_target(&pass, &target);
    bind_buffers(&pass, LR_BIND_DIRECT_STEPS, device_buffer(uniforms.counts[0] * 32, steps), LR_BIND_DIRECT_VALUES,
                 device_buffer(OFFSETS * KERNELS * 4, values));
    pass.textures[LR_UNIT_DIRECT_MAP] =
        device_texture(GL_TEXTURE_2D, GL_R16UI, (const int[3]){size[0] + 2 * wide[1], size[1] + 2 * wide[2], 1}, map);
    device_run(&pass);
    double wanted[VOXELS];
    for (int v = 0; v < VOXELS; v++) { /* the sums of lr/direct.h, "operators" */
        const int at[3] = {v % size[0], v / size[0] % size[1], v / size[0] / size[1]};
        wanted[v] = 0;
        for (int row = 0; row < VOXELS; row++) {
            const int x = row % size[0], y = row / size[0] % size[1], z = row / size[0] / size[1];
            const int sign = is_forward ? -1 : 1, column = is_forward ? x + size[0] * y : at[0] + size[0] * at[1];
            const int offset = offset_at(sign * (x - at[0]), sign * (y - at[1]), sign * (z - at[2]));
            const int kernel = kernel_of[column] < KERNELS ? kernel_of[column] : KERNELS - 1;
            if (offset >= 0) wanted[v] += (double)values[offset * KERNELS + kernel] * (double)from[row];
        }
        wanted[v] /= 16; /* sums of up to 75 terms with roundings of 6e-8 each */
    }
    float *found = take(&target);
    for (int v = 0; v < VOXELS; v++) found[v] /= 16;
    expect_floats(found, wanted, VOXELS);
}

static void test_forward(void **context)
{
    for (int k = 0; k < 4; k++) check_gather(true, k % 2 != 0, k / 2);
}

static void test_back(void **context)
{
    for (int k = 0; k < 4; k++) check_gather(false, k % 2 != 0, k / 2);
}

/* --- updates --- */

static void test_combine(void **context)
{
    for (int n = 0; n < 6; n++) {
        static const int whats[3] = {LR_DIRECT_DO_RAMLA, LR_DIRECT_DO_EM, LR_DIRECT_DO_ADD};
        const bool in_buffer = n % 2 != 0;
        const int what = whats[n / 2];
        const float lambda = 0.75f;
        float *x = draw(0, 2), *by = draw(-3, 3), *over = draw(0, 2);
        over[0] = 1e-31f; /* so small that it counts as 0 */
        struct direct_pass uniforms = uniforms_of(wide);
        uniforms.counts[0] = what;
        memcpy(&uniforms.counts[1], &lambda, 4);
        struct gl_pass pass =
            pass_of(device_program("direct/combine.comp", in_buffer ? "BUFFERS" : NULL), &uniforms, VOXELS);
        const struct picture target = put(wide, in_buffer, x), source = put(wide, in_buffer, by);
        const struct picture sensitivity = put(wide, in_buffer, over);
        bind_source(&pass, &source);
        bind_target(&pass, &target);
        pass.buffers[LR_BIND_DIRECT_SENSITIVITY].buffer = sensitivity.buffer;
        pass.textures[LR_UNIT_DIRECT_FACTORS] = sensitivity.texture;
        device_run(&pass);
        double wanted[VOXELS];
        for (int k = 0; k < VOXELS; k++) {
            const double c = (double)by[k], s = (double)over[k], old = (double)x[k];
            wanted[k] = what == LR_DIRECT_DO_RAMLA ? old * fmax(0, 1 + (double)lambda * c)
                        : what == LR_DIRECT_DO_ADD ? old + c
                        : s > LR_DIRECT_LEAST      ? old * c / s
                                                   : old;
        }
        expect_floats(take(&target), wanted, VOXELS);
    }
}

static void test_discrepancy(void **context)
{
    for (int n = 0; n < 24; n++) {
        const int what = (const int[3]){LR_DIRECT_DO_RAMLA, LR_DIRECT_DO_EM, LR_DIRECT_DO_SENSITIVITY}[n % 3];
        const bool in_buffer = n / 3 % 2 != 0, has_factors = n / 6 % 2 != 0, has_additive = n / 12 != 0;
        float *estimate = draw(0.1, 2), *counts = draw(0, 3), *additive = draw(0.1, 1), *factors = draw(0.1, 1);
        char defines[64];
        estimate[0] = 1e-31f;
        snprintf(defines, sizeof(defines), "%s%s%s", in_buffer ? "BUFFERS " : "", has_factors ? "FACTORS " : "",
                 has_additive ? "ADDITIVE" : "");
        struct direct_pass uniforms = uniforms_of(wide);
        uniforms.counts[0] = what;
        struct gl_pass pass = pass_of(device_program("direct/discrepancy.comp", defines), &uniforms, VOXELS);
        const struct picture target = put(wide, in_buffer, estimate);
        bind_target(&pass, &target);
        pass.textures[LR_UNIT_DIRECT_COUNTS] = put(none, false, counts).texture;
        pass.textures[LR_UNIT_DIRECT_ADDITIVE] = put(none, false, additive).texture;
        pass.textures[LR_UNIT_DIRECT_FACTORS] = put(none, false, factors).texture;
        device_run(&pass);
        double wanted[VOXELS];
        for (int k = 0; k < VOXELS; k++) {
            const double factor = has_factors ? (double)factors[k] : 1;
            const double expected = factor * (double)estimate[k] + (has_additive ? (double)additive[k] : 0);
            const double ratio = (double)counts[k] / expected - (what == LR_DIRECT_DO_RAMLA ? 1 : 0);
            wanted[k] = factor * (what == LR_DIRECT_DO_SENSITIVITY ? 1 : expected > LR_DIRECT_LEAST ? ratio : 0);
        }
        expect_floats(take(&target), wanted, VOXELS);
    }
}

static void test_exchange(void **context)
{
    enum { FIRST = 3, ALL = VOXELS + 8 };
    for (int n = 0; n < 8; n++) {
        static const char *const directions[4] = {"TO_IMAGE", "", "TO_SUM", "TO_SUM"};
        const bool in_buffer = n % 2 != 0, to_image = n / 2 == 0, to_sum = n / 2 >= 2, is_added = n / 2 == 3;
        char defines[64];
        snprintf(defines, sizeof(defines), "%s%s", directions[n / 2], in_buffer ? " BUFFERS" : "");
        struct direct_pass uniforms = uniforms_of(wide);
        uniforms.counts[0] = FIRST;
        uniforms.counts[1] = is_added;
        struct gl_pass pass = pass_of(device_program("direct/exchange.comp", defines), &uniforms, VOXELS);
        float *voxels = draw(1, 2), *numbers = kept_random_floats(ALL, 1, 2, &state);
        double wanted[ALL], *doubles = kept_doubles(ALL);
        for (int k = 0; k < ALL; k++) wanted[k] = doubles[k] = (double)numbers[k];
        const struct picture picture = put(wide, in_buffer, to_image ? NULL : voxels);
        struct gl_buffer *vector = device_buffer(ALL * (to_sum ? 8 : 4), to_sum ? (void *)doubles : numbers);
        bind_source(&pass, &picture);
        if (to_image) bind_target(&pass, &picture);
        device_run_on(&pass, LR_BIND_DIRECT_VECTOR, vector);
        const void *read = device_read(vector, ALL, to_sum ? 8 : 4);
        if (to_image) voxels = take(&picture);
        for (int k = 0; k < VOXELS; k++)
            if (to_image)
                assert_true(voxels[k] == numbers[FIRST + k]);
            else
                wanted[FIRST + k] = (is_added ? doubles[FIRST + k] : 0) + (double)voxels[k];
        for (int k = 0; k < ALL; k++)
            assert_true((to_sum ? ((const double *)read)[k] : (double)((const float *)read)[k]) == wanted[k]);
    }
}

/* --- tables --- */

struct table {
    lr_direct_tables *tables;
    struct lr_direct_shape shape;
    lr_grid grid;
};

static void end_shape(void *shape)
{
    lr_direct_shape_finish(shape);
}

/* The cases loop over models inside views; in every second grid, columns lie on the borders between kernels. */
static struct table *open_table(int k)
{
    const lr_direct_kernel kernel = {.resolution = case_resolution(k % NUM_MODELS)};
    struct table *table = kept(1, sizeof(*table));
    table->grid = k / 2 % 2 == 0 ? case_odd_grid() : case_grid();
    table->tables = kept_tables(&table->grid, case_views[(k + k / NUM_MODELS) % NUM_ANGLES], &kernel);
    const lr_direct_tables_params params = {
        .grid = &table->grid, .view = lr_direct_tables_get_info(table->tables)->view, .kernel = kernel};
    assert_ok(lr_direct_shape_init(&table->shape, &params));
    keep_object(&table->shape, end_shape);
    return table;
}

static void test_map(void **context)
{
    struct gl_program *program = device_program("direct/map.comp", NULL);
    for (int n = 0; n < 2 * NUM_MODELS; n++) {
        const struct table *table = open_table(n);
        const lr_direct_tables_info *info = &table->shape.info;
        const int *grid = table->grid.size, row = grid[0] + 2 * wide[1];
        struct {
            double origin_mm[2], voxel_mm[2], radial[2], epsilon_mm, tie;
            int32_t size[2], margin[2], mirrored, unused[3];
        } uniforms = {.epsilon_mm = info->epsilon_mm,
                      .tie = LR_DIRECT_TIE,
                      .mirrored = info->num_kernels > info->num_identifiers ? info->num_identifiers : 0};
        for (int k = 0; k < 2; k++) {
            uniforms.origin_mm[k] = table->grid.origin_mm[k];
            uniforms.voxel_mm[k] = table->grid.voxel_mm[k];
            uniforms.radial[k] = table->shape.axes[1][k];
            uniforms.size[k] = grid[k];
            uniforms.margin[k] = wide[1 + k];
        }
        struct gl_pass pass =
            device_pass(program, &uniforms, sizeof(uniforms), gl_divide_up(grid[0] * grid[1], LR_DIRECT_GROUP));
        const int extent[3] = {row, grid[1] + 2 * wide[2], 1};
        struct gl_texture *map = device_texture(GL_TEXTURE_2D, GL_R16UI, extent, NULL);
        pass.images[LR_IMAGE_DIRECT_TARGET] = (struct gl_image){.texture = map, .access = GL_WRITE_ONLY};
        device_run(&pass);
        uint16_t *found = kept(row * extent[1], sizeof(*found));
        device_check(gl_texture_read(map, NULL, found) == LR_OK);
        for (int k = 0; k < row * extent[1]; k++) {
            const int x = k % row - wide[1], y = k / row - wide[2];
            const bool is_inside = x >= 0 && x < grid[0] && y >= 0 && y < grid[1];
            assert_int_equal(found[k], is_inside ? lr_direct_tables_map(table->tables)[x + grid[0] * y] : 0);
        }
    }
}

static void test_values(void **context)
{
    struct gl_program *program = device_program("direct/values.comp", NULL);
    for (int n = 0; n < 2 * NUM_MODELS; n++) {
        const struct table *table = open_table(n);
        const lr_direct_tables_info *info = &table->shape.info;
        const lr_resolution *resolution = &table->shape.resolution;
        const int rows = lr_direct_count_rows(&table->shape), samples = lr_direct_count_samples(&table->shape);
        struct {
            float tof[4], radial[4], axial[4];
            int32_t num_offsets, num_kernels, num_samples;
            float first_sample_mm, samples_per_mm, second_width, second_shift, unused;
        } uniforms = {.num_offsets = (int32_t)info->num_offsets,
                      .num_kernels = rows,
                      .num_samples = samples,
                      .second_width = resolution->asymmetric ? (float)resolution->second_width : 0,
                      .second_shift = (float)resolution->second_shift};
        int32_t(*offsets)[4] = kept(info->num_offsets, sizeof(*offsets));
        float(*kernels)[2] = kept(rows, sizeof(*kernels)), *profiles = kept_floats((int64_t)rows * samples + 1);
        for (int k = 0; k < 3; k++) {
            const double voxel_mm = info->grid.voxel_mm[k];
            uniforms.tof[k] = (float)(table->shape.axes[0][k] * voxel_mm / info->sigma_mm[0]);
            uniforms.radial[k] = (float)(table->shape.axes[1][k] * voxel_mm);
            uniforms.axial[k] = (float)(table->shape.axes[2][k] * voxel_mm / info->sigma_mm[2]);
            for (int64_t i = 0; i < info->num_offsets; i++)
                offsets[i][k] = lr_direct_tables_offsets(table->tables)[i][k];
        }
        for (int k = 0; k < rows; k++) {
            double described[2];
            lr_direct_describe_kernel(&table->shape, k, described);
            kernels[k][0] = (float)described[0];
            kernels[k][1] = (float)described[1];
        }
        if (samples > 0) {
            uniforms.first_sample_mm = (float)resolution->measured->first_offset_mm;
            uniforms.samples_per_mm = (float)(1 / resolution->measured->offset_step_mm);
            lr_direct_list_samples(&table->shape, profiles);
        }
        struct gl_pass pass = device_pass(program, &uniforms, sizeof(uniforms), rows);
        struct gl_buffer *values = device_buffer(info->num_offsets * rows * 4, NULL);
        device_run_on(&pass, LR_BIND_DIRECT_VALUES, values, LR_BIND_DIRECT_OFFSETS,
                      device_buffer(info->num_offsets * 16, offsets), LR_BIND_DIRECT_KERNELS,
                      device_buffer(rows * 8, kernels), LR_BIND_DIRECT_PROFILES,
                      device_buffer((rows * samples + 1) * 4, profiles));
        const float *found = device_read(values, info->num_offsets * rows, 4);
        for (int k = 0; k < info->num_kernels; k++) {
            const double *wanted = lr_direct_tables_values(table->tables, k);
            const double largest = largest_number(wanted, info->num_offsets);
            /* An exponent is up to about 10 in size; its rounding error is a relative error of the exponential. */
            for (int64_t i = 0; i < info->num_offsets; i++)
                assert_true(fabs((double)found[i * rows + k % rows] - wanted[i]) <= 5e-6 * largest);
        }
    }
}

/* --- depositions --- */

/* Four panels of 5 x 5 crystals 10 mm apart, 120 mm from the axis. */
static lr_scanner *make_panels(void)
{
    lr_module modules[4];
    for (int m = 0; m < 4; m++) {
        modules[m] = (lr_module){.crystals = {5, 5}, .pitch_mm = {10, 10}, .face_mm = {10, 10}, .depth_mm = 5};
        modules[m].centre_mm[m / 2] = m % 2 == 0 ? -120 : 120;
        modules[m].u[1 - m / 2] = 1;
        modules[m].v[2] = 1;
    }
    return keep(lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = 4}));
}

/* Deposits random events. In every third one the point lies on borders of voxels or of the grid: the line is straight
 * across, and the point at a quarter of it or in its middle. The views are divided into parts. */
static void check_deposit(lr_deposit_rule rule, int parts, int count)
{
    const lr_scanner *scanner = make_panels();
    const lr_grid grid = lr_grid_centred((const int[3]){12, 12, 9}, (const double[3]){10, 10, 5});
    struct lr_deposit_backend_params params = {.scanner = scanner, .rule = rule, .bin_mm = 12, .parts = parts};
    assert_ok(lr_view_set_complete(&(lr_view_set){.azimuths = 5, .tilts = 3, .acceptance_deg = 8}, &params.set, NULL));
    const int views = lr_view_set_count(&params.set), voxels = (int)lr_grid_num_voxels(&grid);
    lr_view *all = kept(views, sizeof(*all));
    for (int k = 0; k < views; k++) all[k] = lr_view_set_at(&params.set, k);
    params.images = keep(lr_histo_images_create(&grid, all, views, NULL));
    lr_event *events = kept(count, sizeof(*events));
    struct {
        int32_t a, b;
        float tof_mm, weight;
    } *sent = kept(count, sizeof(*sent));
    for (int k = 0; k < count; k++) {
        const bool is_tie = k % 3 == 0; /* straight across, at a quarter of the line or in its middle */
        const int a = (int)(50 * test_random(&state)), across = (int)(100 * test_random(&state));
        const int b = is_tie ? (a + 25) % 50 : across;
        events[k] = (lr_event){.crystals = {a, b == a ? a + 1 : b},
                               .tof_mm = is_tie ? 60.0f * (float)(k % 5 - 2) : (float)(160 * test_random(&state) - 80),
                               .weight = (float)(1 + k % 3)};
        sent[k].a = events[k].crystals[0];
        sent[k].b = events[k].crystals[1];
        sent[k].tof_mm = events[k].tof_mm;
        sent[k].weight = events[k].weight;
    }
    struct lr_deposit_backend cpu;
    lr_deposit_counts counts;
    assert_ok(lr_deposit_cpu_create(&params, &cpu), cpu.fns->take(cpu.self, events, count));
    assert_ok(cpu.fns->finish(cpu.self, &counts));
    cpu.fns->destroy(cpu.self);

    double(*crystals)[4] = kept(scanner->num_crystals, sizeof(*crystals)), borders[5 + 3 + 1][2];
    for (int k = 0; k < scanner->num_crystals; k++) lr_scanner_hit_centre(scanner, k, crystals[k]);
    for (int k = 0; k < 9; k++) {
        const double border_deg = lr_view_set_border_deg(&params.set, k);
        borders[k][0] = cos(border_deg * LR_DEGREE);
        borders[k][1] = sin(border_deg * LR_DEGREE);
    }
    struct gl_buffer *tallies = device_buffer(3 * 4, NULL);
    for (int first = 0; first < views; first += 8) {
        const int end = first + 8 < views ? first + 8 : views;
        struct {
            double origin_mm[4], voxel_mm[4];
            int32_t size[4], views[4];
            float scale;
            int32_t is_first, parts, unused;
        } uniforms = {.size = {grid.size[0], grid.size[1], grid.size[2], count},
                      .views = {5, 3, first, end - first},
                      .scale = 0x1p-20f,
                      .is_first = first == 0,
                      .parts = parts};
        memcpy(uniforms.origin_mm, grid.origin_mm, sizeof(grid.origin_mm));
        memcpy(uniforms.voxel_mm, grid.voxel_mm, sizeof(grid.voxel_mm));
        uniforms.origin_mm[3] = params.bin_mm;
        struct gl_pass pass =
            device_pass(device_program("direct/deposit.comp", rule == LR_DEPOSIT_TRILINEAR ? "TRILINEAR" : NULL),
                        &uniforms, sizeof(uniforms), gl_divide_up(count, LR_DIRECT_GROUP));
        struct gl_buffer *sums = device_buffer(8 * (1 + 8LL * voxels), NULL);
        device_run_on(&pass, LR_BIND_DEPOSIT_EVENTS, device_buffer(count * 16, sent), LR_BIND_DEPOSIT_CRYSTALS,
                      device_buffer(scanner->num_crystals * 32, crystals), LR_BIND_DEPOSIT_BORDERS,
                      device_buffer(sizeof(borders), borders), LR_BIND_DEPOSIT_TALLIES, tallies, LR_BIND_DEPOSIT_SUMS,
                      sums);
        const int64_t *words = device_read(sums, 1 + 8LL * voxels, 8); /* sums in units of 2^-61 / scale */
        assert_int_equal(words[0], 0);                                 /* no overflow */
        for (int k = 0; k < 8 * voxels; k++) {
            const double want = k < (end - first) * voxels ? (double)params.images->values[first * voxels + k] : 0;
            assert_true(fabs(ldexp((double)words[1 + k], 20 - 61) - want) <= 1e-6 * (1 + want));
        }
    }
    const uint32_t *tallied = device_read(tallies, 3, 4);
    assert_int_equal(tallied[LR_DEPOSIT_TALLY_DONE], counts.deposited);
    assert_int_equal(tallied[LR_DEPOSIT_TALLY_TILTED], counts.too_tilted);
    assert_int_equal(tallied[LR_DEPOSIT_TALLY_OUTSIDE], counts.outside_grid);
    if (count > 100) assert_true(counts.deposited > 10 && counts.too_tilted > 10 && counts.outside_grid > 10);
}

static void test_deposit(void **context)
{
    static const int counts[] = {0, 1, 63, 65, 1000};
    for (int n = 0; n < 20; n++)
        check_deposit(n % 2 == 0 ? LR_DEPOSIT_NEAREST : LR_DEPOSIT_TRILINEAR, n / 2 % 2 == 0 ? 1 : 3, counts[n / 4]);
}

stage_main("render_alone_direct", CASES(test_forward, test_back, test_combine, test_discrepancy, test_exchange,
                                        test_map, test_values, test_deposit))
