/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/direct/tables.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "direct/tables.h"
#include "render/direct/steps.h"

#include <stdlib.h>

/* The block of shaders/direct/map.comp. */
struct map_pass {
    double origin_mm[2], voxel_mm[2], radial[2];
    double epsilon_mm, tie;
    int32_t size[2], margin[2];
    int32_t mirrored, unused[3];
};
_Static_assert(sizeof(struct map_pass) == 96, "the shader's layout");

/* The block of shaders/direct/values.comp. */
struct values_pass {
    float tof[4], radial[4], axial[4];
    int32_t num_offsets, num_kernels, num_samples;
    float first_sample_mm, samples_per_mm, second_width, second_shift, unused;
};
_Static_assert(sizeof(struct values_pass) == 80, "the shader's layout");

static lr_status start_programs(struct lr_direct_builder *builder)
{
    if (builder->map == NULL) {
        builder->map = gl_program_start(builder->ctx,
                                        &(struct gl_program_params){.compute = "direct/map.comp", .label = "LORmap"});
    }
    if (builder->values == NULL) {
        builder->values = gl_program_start(
            builder->ctx, &(struct gl_program_params){.compute = "direct/values.comp", .label = "mSRval"});
    }
    return builder->map && builder->values ? LR_OK : LR_FAILED;
}

void lr_direct_builder_finish(struct lr_direct_builder *builder)
{
    gl_program_destroy(builder->values);
    gl_program_destroy(builder->map);
    builder->map = builder->values = NULL;
}

/* --- LORmap --- */

static lr_status build_map(struct lr_direct_view_tables *tables, const struct lr_direct_builder *builder,
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
        uniforms.margin[k] = builder->margin[1 + k];
    }
    tables->map = gl_texture_create(builder->ctx,
                                    &(struct gl_texture_params){.label = "LORmap",
                                                                .format = GL_R16UI,
                                                                .width = info->grid.size[0] + 2 * builder->margin[1],
                                                                .height = info->grid.size[1] + 2 * builder->margin[2]});
    if (tables->map == NULL) return LR_FAILED;
    const int64_t slice = (int64_t)info->grid.size[0] * info->grid.size[1];
    struct gl_pass pass = {
        .label = "LORmap",
        .program = builder->map,
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .groups = {gl_divide_up(slice, LR_DIRECT_GROUP), 1, 1},
        .barriers = GL_TEXTURE_FETCH_BARRIER_BIT,
    };
    pass.images[LR_IMAGE_DIRECT_TARGET] = (struct gl_image){.texture = tables->map, .access = GL_WRITE_ONLY};
    return gl_pass_run(builder->ctx, &pass);
}

/* --- mSRval --- */

static struct gl_buffer *make_buffer(const struct lr_direct_builder *builder, const char *label, int64_t bytes,
                                     const void *data)
{
    return gl_buffer_create(builder->ctx,
                            &(struct gl_buffer_params){.label = label, .size_bytes = bytes, .data = data});
}

static struct gl_buffer *make_offsets(const struct lr_direct_builder *builder, const struct lr_direct_shape *shape)
{
    const int64_t count = shape->info.num_offsets;
    int32_t(*list)[4] = lr_alloc(count, sizeof(*list), "mSR", builder->params->log);
    for (int64_t i = 0; list != NULL && i < count; i++)
        for (int k = 0; k < 3; k++) list[i][k] = shape->offsets[i][k];
    struct gl_buffer *buffer = list ? make_buffer(builder, "mSR", count * (int64_t)sizeof(*list), list) : NULL;
    free(list);
    return buffer;
}

static struct gl_buffer *make_kernels(const struct lr_direct_builder *builder, const struct lr_direct_shape *shape,
                                      int num_rows)
{
    float(*list)[2] = lr_alloc(num_rows, sizeof(*list), "kernels", builder->params->log);
    for (int k = 0; list != NULL && k < num_rows; k++) {
        double kernel[2];
        lr_direct_describe_kernel(shape, k, kernel);
        list[k][0] = (float)kernel[0];
        list[k][1] = (float)kernel[1];
    }
    struct gl_buffer *buffer = list ? make_buffer(builder, "kernels", num_rows * (int64_t)sizeof(*list), list) : NULL;
    free(list);
    return buffer;
}

static struct gl_buffer *make_profiles(const struct lr_direct_builder *builder, const struct lr_direct_shape *shape,
                                       int num_rows)
{
    const int64_t count = (int64_t)num_rows * lr_direct_count_samples(shape);
    if (count == 0) return make_buffer(builder, "measured profiles", 4, NULL);
    float *list = lr_alloc(count, sizeof(*list), "measured profiles", builder->params->log);
    struct gl_buffer *buffer = NULL;
    if (list != NULL) {
        lr_direct_list_samples(shape, list);
        buffer = make_buffer(builder, "measured profiles", count * (int64_t)sizeof(*list), list);
    }
    free(list);
    return buffer;
}

static struct values_pass values_uniforms(const struct lr_direct_shape *shape, int num_rows)
{
    const lr_direct_tables_info *info = &shape->info;
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
    return uniforms;
}

static lr_status fill_values(struct lr_direct_view_tables *tables, const struct lr_direct_builder *builder,
                             const struct lr_direct_shape *shape)
{
    const struct values_pass uniforms = values_uniforms(shape, tables->num_rows);
    struct gl_buffer *kernels = make_kernels(builder, shape, tables->num_rows);
    struct gl_buffer *profiles = make_profiles(builder, shape, tables->num_rows);
    struct gl_pass pass = {
        .label = "mSRval",
        .program = builder->values,
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .groups = {tables->num_rows, 1, 1},
        .barriers = GL_SHADER_STORAGE_BARRIER_BIT,
    };
    pass.buffers[LR_BIND_DIRECT_VALUES].buffer = tables->values;
    pass.buffers[LR_BIND_DIRECT_OFFSETS].buffer = tables->offsets;
    pass.buffers[LR_BIND_DIRECT_KERNELS].buffer = kernels;
    pass.buffers[LR_BIND_DIRECT_PROFILES].buffer = profiles;
    const lr_status status = kernels && profiles ? gl_pass_run(builder->ctx, &pass) : LR_FAILED;
    gl_buffer_destroy(profiles);
    gl_buffer_destroy(kernels);
    return status;
}

static lr_status build_values(struct lr_direct_view_tables *tables, const struct lr_direct_builder *builder,
                              const struct lr_direct_shape *shape)
{
    const int64_t most = gl_context_limits(builder->ctx)->max_storage_bytes;
    tables->num_offsets = (int)shape->info.num_offsets;
    tables->num_rows = lr_direct_count_rows(shape);
    const int64_t bytes = shape->info.num_offsets * tables->num_rows * (int64_t)sizeof(float);
    if (bytes > most) {
        return lr_error(builder->params->log, LR_FAILED,
                        "mSRval of %d kernels of %lld offsets takes %lld MiB, and %s has tables of "
                        "%lld at most: take a larger epsilon, a smaller support or backend cpu",
                        tables->num_rows, (long long)shape->info.num_offsets, (long long)(bytes >> 20),
                        gl_context_limits(builder->ctx)->renderer, (long long)(most >> 20));
    }
    tables->values = make_buffer(builder, "mSRval", bytes, NULL);
    tables->offsets = make_offsets(builder, shape);
    tables->bytes = bytes;
    return tables->values && tables->offsets ? fill_values(tables, builder, shape) : LR_FAILED;
}

/* --- steps --- */

static lr_status build_steps(struct lr_direct_view_tables *tables, const struct lr_direct_builder *builder,
                             const struct lr_direct_shape *shape)
{
    struct lr_direct_steps steps;
    lr_status status = lr_direct_steps_init(&steps, shape, builder->params->log);
    if (status == LR_OK) {
        tables->num_steps = steps.count;
        tables->axis = steps.axis;
        tables->steps =
            make_buffer(builder, "steps of a view", steps.count * (int64_t)sizeof(*steps.steps), steps.steps);
        status = tables->steps ? LR_OK : LR_FAILED;
        tables->bytes += steps.count * (int64_t)sizeof(*steps.steps);
    }
    lr_direct_steps_finish(&steps);
    return status;
}

static lr_status build(struct lr_direct_view_tables *tables, const struct lr_direct_builder *builder,
                       const struct lr_direct_shape *shape)
{
    LR_TRY(build_map(tables, builder, shape));
    LR_TRY(build_values(tables, builder, shape));
    LR_TRY(build_steps(tables, builder, shape));
    tables->bytes += gl_texture_bytes(tables->map) + tables->offsets->size_bytes;
    return LR_OK;
}

lr_status lr_direct_view_tables_init(struct lr_direct_view_tables *tables, struct lr_direct_builder *builder, int view)
{
    struct lr_direct_shape shape;
    const struct lr_direct_backend_params *params = builder->params;
    *tables = (struct lr_direct_view_tables){0};
    LR_TRY(start_programs(builder));
    lr_status status = lr_direct_shape_init(
        &shape, &(lr_direct_tables_params){
                    .grid = &params->grid, .view = params->views[view], .kernel = params->kernel, .log = params->log});
    if (status == LR_OK) status = build(tables, builder, &shape);
    if (status != LR_OK) lr_direct_view_tables_finish(tables);
    lr_direct_shape_finish(&shape);
    return status;
}

void lr_direct_view_tables_finish(struct lr_direct_view_tables *tables)
{
    gl_buffer_destroy(tables->steps);
    gl_buffer_destroy(tables->offsets);
    gl_buffer_destroy(tables->values);
    gl_texture_destroy(tables->map);
    *tables = (struct lr_direct_view_tables){0};
}
