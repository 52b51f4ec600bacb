/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Programs and tables of views, and the passes that project with them. */
#include "direct/compute/direct.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "gl/context.h"

#include <math.h>

enum { MOST_GROUPS = 32768 };

/* --- tables --- */

const struct lr_direct_view_tables *lr_direct_open_tables(struct lr_direct_compute *compute, int view)
{
    struct lr_direct_view_tables *kept = &compute->tables[view];
    if (kept->map != NULL) return kept;
    if (compute->borrowed_view == view) return &compute->borrowed;
    const int64_t device_bytes = gl_context_limits(compute->ctx)->memory_bytes;
    const int64_t most_bytes = compute->params.max_memory_bytes > 0
                                   ? compute->params.max_memory_bytes
                                   : (device_bytes > 0 ? device_bytes : lr_physical_memory()) / 4;
    lr_direct_view_tables_finish(&compute->borrowed);
    compute->borrowed_view = -1;
    if (lr_direct_view_tables_init(kept, &compute->builder, view) != LR_OK) return NULL;
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
    lr_direct_view_tables_finish(&compute->tables[view]);
    if (compute->borrowed_view == view) {
        lr_direct_view_tables_finish(&compute->borrowed);
        compute->borrowed_view = -1;
    }
}

/* --- projections --- */

struct lr_direct_pass lr_direct_pass_of(const struct lr_direct_compute *compute)
{
    const struct lr_direct_layout *layout = &compute->layout;
    const int *size = layout->size, *margin = layout->margin;
    return (struct lr_direct_pass){
        .grid = {size[0], size[1], size[2], layout->quads},
        .margin = {margin[0], margin[1], margin[2], 0},
        .extent = {layout->quads + 2 * margin[0], size[0] + 2 * margin[1], size[1] + 2 * margin[2], 0},
    };
}

void lr_direct_groups(int64_t threads, int groups[3])
{
    const int64_t count = (threads + LR_DIRECT_GROUP - 1) / LR_DIRECT_GROUP;
    groups[0] = (int)(count < MOST_GROUPS ? count : MOST_GROUPS);
    groups[1] = (int)((count + MOST_GROUPS - 1) / MOST_GROUPS);
    groups[2] = 1;
}

struct gl_program *lr_direct_program(const struct lr_direct_compute *compute, const char *name,
                                     const char *const *defines)
{
    struct gl_define all[4] = {{0}};
    int next = 0;
    for (int k = 0; defines != NULL && defines[k] != NULL; k++) all[next++].name = defines[k];
    all[next].name = compute->layout.buffers ? "BUFFERS" : NULL;
    return gl_program_start(compute->ctx, &(struct gl_program_params){.compute = name, .defines = all, .label = name});
}

struct gl_program *lr_direct_open_program(struct lr_direct_compute *compute, bool forward)
{
    struct gl_program **program = forward ? &compute->forward : &compute->back;
    if (*program == NULL)
        *program = lr_direct_program(compute, forward ? "direct/forward.comp" : "direct/back.comp", NULL);
    return *program;
}

lr_status lr_direct_run(struct lr_direct_compute *compute, bool forward, int view, const struct lr_direct_image *source,
                        const struct lr_direct_image *target)
{
    if (compute->functions != NULL) return compute->functions->run(compute->self, forward, view, source, target);
    struct gl_program *program = lr_direct_open_program(compute, forward);
    const struct lr_direct_view_tables *tables = program != NULL ? lr_direct_open_tables(compute, view) : NULL;
    if (tables == NULL) return LR_FAILED;
    if (gl_context_limits(compute->ctx)->software && tables->num_steps > GL_MOST_ROUNDS_SOFTWARE)
        return lr_error(compute->params.log, LR_USAGE,
                        "a kernel of %d voxels is too long for the software renderer, which ends a "
                        "shader's loops after 65,535 rounds: use backend cpu, a graphics processor, "
                        "larger voxels or a smaller support",
                        tables->num_offsets);

    /* A thread does all steps of a kernel for one block of outputs. */
    const int *size = compute->params.grid.size;
    const int64_t quads = (compute->layout.quads + LR_DIRECT_QUADS - 1) / LR_DIRECT_QUADS;
    const int64_t blocks = (size[tables->axis] + LR_DIRECT_OUTPUTS - 1) / LR_DIRECT_OUTPUTS;

    struct lr_direct_pass uniforms = lr_direct_pass_of(compute);
    uniforms.margin[3] = tables->axis;
    uniforms.counts[0] = tables->num_steps;
    uniforms.counts[1] = tables->num_offsets;
    uniforms.counts[2] = tables->num_rows;
    struct gl_pass pass = {
        .label = forward ? "DIRECT forward" : "DIRECT back",
        .program = program,
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .barriers = compute->is_unordered ? 0 : lr_direct_barriers(),
    };
    lr_direct_groups(quads * blocks * size[1 - tables->axis], pass.groups);
    pass.buffers[LR_BIND_DIRECT_STEPS].buffer = tables->steps;
    pass.buffers[LR_BIND_DIRECT_VALUES].buffer = tables->values;
    lr_direct_bind_source(&pass, source);
    pass.textures[LR_UNIT_DIRECT_MAP] = tables->map;
    lr_direct_bind_target(&pass, target);
    return gl_pass_run(compute->ctx, &pass);
}

lr_status lr_direct_run_task(struct lr_direct_compute *compute, const lr_direct_task *task,
                             const struct lr_direct_image *source, const struct lr_direct_image *target,
                             double *device_seconds)
{
    if (compute->functions != NULL)
        return compute->functions->time(compute->self, task, source, target, device_seconds);
    gl_stopwatch_reset(compute->watch);
    gl_stopwatch_begin(compute->watch);
    lr_status status = LR_OK;
    for (int k = 0; status == LR_OK && k < task->num_views; k++)
        status = lr_direct_run(compute, task->work == LR_DIRECT_WORK_FORWARD, task->views[k], source, target);
    gl_stopwatch_end(compute->watch);
    *device_seconds = gl_stopwatch_seconds(compute->watch);
    return status;
}

/* --- images in and out --- */

lr_status lr_direct_reclaim(struct lr_direct_compute *compute, const struct lr_direct_image *image)
{
    return compute->functions != NULL ? compute->functions->give_back(compute->self, image) : LR_OK;
}

lr_status lr_direct_put(struct lr_direct_compute *compute, const struct lr_direct_image *image, const float *values)
{
    LR_TRY(lr_direct_reclaim(compute, image));
    return lr_direct_image_copy(image, &compute->layout, (float *)(uintptr_t)values, true);
}

lr_status lr_direct_fetch(struct lr_direct_compute *compute, const struct lr_direct_image *image, float *values)
{
    LR_TRY(lr_direct_reclaim(compute, image));
    return lr_direct_image_copy(image, &compute->layout, values, false);
}

/* --- the clock of projections, which waits for the device only when it is read --- */

double lr_direct_read_laps(struct lr_direct_compute *compute)
{
    if (!compute->has_laps) return 0.0;
    compute->has_laps = false;
    if (compute->functions != NULL) return compute->functions->read_laps(compute->self);
    const double seconds = gl_stopwatch_seconds(compute->watch);
    gl_stopwatch_reset(compute->watch);
    return seconds;
}

lr_status lr_direct_run_view(struct lr_direct_compute *compute, bool forward, int view)
{
    const bool is_ready = compute->functions != NULL || (lr_direct_open_program(compute, forward) != NULL &&
                                                         lr_direct_open_tables(compute, view) != NULL);
    LR_TRY(is_ready ? LR_OK : LR_FAILED);
    if (compute->functions != NULL)
        compute->functions->begin_lap(compute->self);
    else
        gl_stopwatch_begin(compute->watch);
    compute->has_laps = true;

    const lr_status status = lr_direct_run(compute, forward, view, &compute->in, &compute->out);
    if (compute->functions != NULL)
        compute->functions->end_lap(compute->self);
    else
        gl_stopwatch_end(compute->watch);
    return status;
}
