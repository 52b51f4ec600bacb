/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Builds the look-up tables of views, LORmap and mSRval, on the device. The tables stay there as long as memory
 * suffices. */
#include "direct/tables.h"
#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "direct/compute/direct.h"
#include "gl/vectors.h"

#include <math.h>
#include <stdlib.h>

/* A step of a gather over the offsets of mSR (shaders/direct/gather.glsl). The shader reads it as two ivec4. */
struct step {
    int32_t along, across, quads, mask;
    int32_t first[4]; /* one for each of LR_DIRECT_OUTPUTS outputs */
};
_Static_assert(sizeof(struct step) == 32, "the shader's layout");

/* mSR by columns, and the axis of a thread's outputs: 0 = x, 1 = y. */
struct columns {
    const struct lr_direct_shape *shape;
    struct lr_direct_column *list; /* owned */
    int axis;
};

/* Counts the steps of a gather, and writes the steps if `steps` is not NULL. */
static int walk(const struct columns *columns, struct step *steps)
{
    const lr_direct_tables_info *info = &columns->shape->info;
    const int along_half = info->half[columns->axis], across_half = info->half[1 - columns->axis];
    const int quads[2] = {-((info->half[2] + 3) / 4), info->half[2] / 4};
    int count = 0;
    for (int across = -across_half; across <= across_half; across++) {
        for (int along = -along_half; along <= along_half + LR_DIRECT_OUTPUTS - 1; along++) {
            bool fresh = true;
            for (int quad = quads[0]; quad <= quads[1]; quad++) {
                /* The step gets the offsets within a quad of slices. Without such offsets, its mask stays 0. */
                struct step step = {.along = along, .across = across, .quads = quad};
                for (int j = 0; j < LR_DIRECT_OUTPUTS; j++) {
                    /* Output j reads this column of mSR, unless the column is outside mSR or empty. */
                    const int place = along - j;
                    const struct lr_direct_column *column =
                        lr_direct_column_at(columns->shape, columns->list, columns->axis == 0 ? place : across,
                                            columns->axis == 0 ? across : place);
                    if (column->low > column->high) continue;
                    step.first[j] = column->first + 4 * quad - column->low;
                    for (int r = 0; r < 4; r++) {
                        const int slice = 4 * quad + r;
                        if (slice >= column->low && slice <= column->high) step.mask |= 1 << (4 * r + j);
                    }
                }

                if (step.mask == 0) {
                    fresh = true;
                    continue;
                }
                step.mask |= fresh ? LR_DIRECT_FRESH : 0;
                fresh = false;
                if (steps != NULL) steps[count] = step;
                count++;
            }
        }
    }
    return count;
}

/* --- tables --- */

/* The uniform block of shaders/direct/map.comp. */
struct map_pass {
    double origin_mm[2], voxel_mm[2], radial[2];
    double epsilon_mm, tie;
    int32_t size[2], margin[2];
    int32_t mirrored, unused[3];
};
_Static_assert(sizeof(struct map_pass) == 96, "the shader's layout");

/* The uniform block of shaders/direct/values.comp. */
struct values_pass {
    float tof[4], radial[4], axial[4];
    int32_t num_offsets, num_kernels, num_samples;
    float first_sample_mm, samples_per_mm, second_width, second_shift, unused;
};
_Static_assert(sizeof(struct values_pass) == 80, "the shader's layout");

/* --- LORmap --- */

static lr_status build_map(struct lr_direct_view_tables *tables, const struct lr_direct_compute *compute,
                           const struct lr_direct_shape *shape)
{
    const lr_direct_tables_info *info = &shape->info;
    struct map_pass uniforms = {
        .epsilon_mm = info->epsilon_mm,
        .tie = LR_DIRECT_TIE,
        .mirrored = info->num_kernels > info->num_identifiers ? info->num_identifiers : 0,
    };
    for (int k = 0; k < 2; k++) {
        uniforms.origin_mm[k] = info->grid.origin_mm[k];
        uniforms.voxel_mm[k] = info->grid.voxel_mm[k];
        uniforms.radial[k] = shape->axes[1][k];
        uniforms.size[k] = info->grid.size[k];
        uniforms.margin[k] = compute->layout.margin[1 + k];
    }
    tables->map = gl_texture_create(
        compute->ctx, &(struct gl_texture_params){.label = "LORmap",
                                                  .format = GL_R16UI,
                                                  .width = info->grid.size[0] + 2 * compute->layout.margin[1],
                                                  .height = info->grid.size[1] + 2 * compute->layout.margin[2]});
    if (tables->map == NULL) return LR_FAILED;
    const int64_t slice = (int64_t)info->grid.size[0] * info->grid.size[1];
    struct gl_pass pass = gl_pass_compute(compute->map_program, &uniforms, sizeof(uniforms),
                                          (const int[3]){gl_divide_up(slice, LR_DIRECT_GROUP), 1, 1});
    pass.barriers = GL_TEXTURE_FETCH_BARRIER_BIT;
    pass.images[LR_IMAGE_DIRECT_TARGET] = (struct gl_image){.texture = tables->map, .access = GL_WRITE_ONLY};
    return gl_pass_run(compute->ctx, &pass);
}

/* --- mSRval --- */

static lr_status build_values(struct lr_direct_view_tables *tables, const struct lr_direct_compute *compute,
                              const struct lr_direct_shape *shape)
{
    const lr_direct_tables_info *info = &shape->info;
    const int64_t most = gl_context_limits(compute->ctx)->max_storage_bytes;
    tables->num_offsets = (int)info->num_offsets;
    tables->num_rows = lr_direct_count_rows(shape);
    const int64_t bytes = info->num_offsets * tables->num_rows * (int64_t)sizeof(float);
    if (bytes > most) {
        return lr_error(compute->params.log, LR_FAILED,
                        "mSRval of %d kernels of %lld offsets takes %lld MiB, and %s has tables of "
                        "%lld at most: take a larger epsilon, a smaller support or backend cpu",
                        tables->num_rows, (long long)info->num_offsets, (long long)(bytes >> 20),
                        gl_context_limits(compute->ctx)->renderer, (long long)(most >> 20));
    }
    tables->values = gl_data_buffer(compute->ctx, "mSRval", bytes, NULL);
    tables->bytes = bytes;
    const int64_t count = info->num_offsets;
    int32_t(*list)[4] = lr_alloc(count, sizeof(*list), "mSR", compute->params.log);
    for (int64_t i = 0; list != NULL && i < count; i++)
        for (int k = 0; k < 3; k++) list[i][k] = shape->offsets[i][k];
    if (list != NULL) tables->offsets = gl_data_buffer(compute->ctx, "mSR", count * (int64_t)sizeof(*list), list);
    free(list);
    if (tables->values == NULL || tables->offsets == NULL) return LR_FAILED;

    /* A pass computes the values from the parameters of each kernel. */
    const int num_rows = tables->num_rows;
    const lr_resolution *resolution = &shape->resolution;
    const lr_radial_profiles *measured = resolution->measured;
    struct values_pass uniforms = {
        .num_offsets = (int32_t)info->num_offsets,
        .num_kernels = num_rows,
        .second_width = resolution->asymmetric ? (float)resolution->second_width : 0.0f,
        .second_shift = (float)resolution->second_shift,
    };
    for (int k = 0; k < 3; k++) {
        const double voxel_mm = info->grid.voxel_mm[k];
        uniforms.tof[k] = (float)(shape->axes[0][k] * voxel_mm / info->sigma_mm[0]);
        uniforms.radial[k] = (float)(shape->axes[1][k] * voxel_mm);
        uniforms.axial[k] = (float)(shape->axes[2][k] * voxel_mm / info->sigma_mm[2]);
    }
    if (resolution->model == LR_RADIAL_MEASURED) {
        uniforms.num_samples = measured->num_offsets;
        uniforms.first_sample_mm = (float)measured->first_offset_mm;
        uniforms.samples_per_mm = (float)(1 / measured->offset_step_mm);
    }

    const int64_t num_samples = (int64_t)num_rows * lr_direct_count_samples(shape);
    float(*parameters)[2] = lr_alloc(num_rows, sizeof(*parameters), "kernels", compute->params.log);
    for (int k = 0; parameters != NULL && k < num_rows; k++) {
        double kernel[2];
        lr_direct_describe_kernel(shape, k, kernel);
        parameters[k][0] = (float)kernel[0];
        parameters[k][1] = (float)kernel[1];
    }
    struct gl_buffer *kernels =
        parameters ? gl_data_buffer(compute->ctx, "kernels", num_rows * (int64_t)sizeof(*parameters), parameters)
                   : NULL;
    free(parameters);

    struct gl_buffer *profiles = num_samples == 0 ? gl_data_buffer(compute->ctx, "measured profiles", 4, NULL) : NULL;
    float *samples =
        num_samples > 0 ? lr_alloc(num_samples, sizeof(*samples), "measured profiles", compute->params.log) : NULL;
    if (samples != NULL) {
        lr_direct_list_samples(shape, samples);
        profiles = gl_data_buffer(compute->ctx, "measured profiles", num_samples * (int64_t)sizeof(*samples), samples);
    }
    free(samples);

    struct gl_pass pass =
        gl_pass_compute(compute->values_program, &uniforms, sizeof(uniforms), (const int[3]){tables->num_rows, 1, 1});
    gl_pass_bind(&pass, {LR_BIND_DIRECT_VALUES, tables->values}, {LR_BIND_DIRECT_OFFSETS, tables->offsets},
                 {LR_BIND_DIRECT_KERNELS, kernels}, {LR_BIND_DIRECT_PROFILES, profiles});
    const lr_status status = kernels && profiles ? gl_pass_run(compute->ctx, &pass) : LR_FAILED;
    gl_buffers_destroy(profiles, kernels);
    return status;
}

/* --- steps --- */

static lr_status build_steps(struct lr_direct_view_tables *tables, const struct lr_direct_compute *compute,
                             const struct lr_direct_shape *shape)
{
    struct columns columns = {
        .shape = shape,
        .list = lr_direct_list_columns(shape, compute->params.log),
        /* The thread's outputs lie along the axis nearer to the line. Rows of mSR are longest along this axis, and at
         * the ends of long rows little work is wasted. */
        .axis = fabs(shape->axes[0][0]) >= fabs(shape->axes[0][1]) ? 0 : 1,
    };
    if (columns.list == NULL) return LR_FAILED;
    tables->axis = columns.axis;
    tables->num_steps = walk(&columns, NULL);
    const int64_t bytes = tables->num_steps * (int64_t)sizeof(struct step);
    struct step *steps = lr_alloc(tables->num_steps, sizeof(*steps), "steps of a view", compute->params.log);
    if (steps != NULL) {
        walk(&columns, steps);
        tables->steps = gl_data_buffer(compute->ctx, "steps of a view", bytes, steps);
    }
    tables->bytes += bytes;
    lr_free_all(steps, columns.list);
    return tables->steps != NULL ? LR_OK : LR_FAILED;
}

/* --- the tables of all views --- */

static void finish(struct lr_direct_view_tables *tables)
{
    gl_buffers_destroy(tables->steps, tables->offsets, tables->values);
    gl_texture_destroy(tables->map);
    *tables = (struct lr_direct_view_tables){0};
}

static lr_status init(struct lr_direct_view_tables *tables, struct lr_direct_compute *compute, int view)
{
    struct lr_direct_shape shape;
    const struct lr_direct_backend_params *params = &compute->params;
    *tables = (struct lr_direct_view_tables){0};
    if (compute->map_program == NULL) {
        compute->map_program = gl_program_start(
            compute->ctx, &(struct gl_program_params){.compute = "direct/map.comp", .label = "LORmap"});
    }
    if (compute->values_program == NULL) {
        compute->values_program = gl_program_start(
            compute->ctx, &(struct gl_program_params){.compute = "direct/values.comp", .label = "mSRval"});
    }
    LR_TRY(compute->map_program && compute->values_program ? LR_OK : LR_FAILED);

    lr_status status = lr_direct_shape_init(
        &shape, &(lr_direct_tables_params){
                    .grid = &params->grid, .view = params->views[view], .kernel = params->kernel, .log = params->log});
    if (status == LR_OK) status = build_map(tables, compute, &shape);
    if (status == LR_OK) status = build_values(tables, compute, &shape);
    if (status == LR_OK) status = build_steps(tables, compute, &shape);
    if (status == LR_OK) tables->bytes += gl_texture_bytes(tables->map) + tables->offsets->size_bytes;

    if (status != LR_OK) finish(tables);
    lr_direct_shape_finish(&shape);
    return status;
}

const struct lr_direct_view_tables *lr_direct_open_tables(struct lr_direct_compute *compute, int view)
{
    struct lr_direct_view_tables *kept = &compute->tables[view];
    if (kept->map != NULL) return kept;
    if (compute->borrowed_view == view) return &compute->borrowed;
    const int64_t most_bytes = lr_place_budget(compute->place, compute->params.max_memory_bytes, 4);
    finish(&compute->borrowed);
    compute->borrowed_view = -1;
    if (init(kept, compute, view) != LR_OK) return NULL;
    if (compute->cached_bytes + kept->bytes <= most_bytes) {
        compute->cached_bytes += kept->bytes;
        return kept;
    }
    compute->borrowed = *kept;
    compute->borrowed_view = view;
    *kept = (struct lr_direct_view_tables){0};
    return &compute->borrowed;
}

void lr_direct_drop_tables(struct lr_direct_compute *compute, int view)
{
    compute->cached_bytes -= compute->tables[view].bytes;
    finish(&compute->tables[view]);
    if (compute->borrowed_view == view) {
        finish(&compute->borrowed);
        compute->borrowed_view = -1;
    }
}

void lr_direct_close_tables(struct lr_direct_compute *compute)
{
    finish(&compute->borrowed);
    for (int view = 0; compute->tables != NULL && view < compute->params.num_views; view++)
        finish(&compute->tables[view]);
    free(compute->tables);
    gl_program_destroy(compute->values_program);
    gl_program_destroy(compute->map_program);
}
