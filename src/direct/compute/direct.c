/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `compute` backend of the family `direct`: its functions, creation and destruction. */
#include "direct/compute/direct.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "gl/context.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Projects one view between arrays on the host, for struct lr_direct_views. */
static lr_status direct_project(void *self, const struct lr_direct_projection *projection)
{
    struct lr_direct_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    lr_status status = projection->is_same ? LR_OK : lr_direct_put(compute, &compute->in, projection->in);
    if (status == LR_OK) status = lr_direct_run_view(compute, projection->is_forward, projection->view);
    if (status == LR_OK) status = lr_direct_fetch(compute, &compute->out, projection->out);
    gl_context_release(compute->ctx);
    return status;
}

/* --- the backend --- */

enum { FLOATS = 4 };

static lr_status forward(void *self, const lr_selection *part, const lr_vector *image, lr_vector *values)
{
    return lr_direct_project_vectors(self, true, part, image, values);
}

static lr_status back(void *self, const lr_selection *part, const lr_vector *values, lr_vector *image)
{
    return lr_direct_project_vectors(self, false, part, values, image);
}

static lr_status rows(void *self, const struct lr_rows *request, const lr_row_sink *sink)
{
    return lr_direct_views_rows(&((struct lr_direct_compute *)self)->views, request, sink);
}

static double device_seconds(void *self)
{
    struct lr_direct_compute *compute = self;
    if (compute->has_laps && gl_context_make_current_to_free(compute->ctx)) {
        compute->device_seconds += lr_direct_read_laps(compute);
        gl_context_release(compute->ctx);
    }
    return compute->device_seconds;
}

/* --- creating --- */

static lr_status init(struct lr_direct_compute *compute)
{
    const struct lr_direct_backend_params *params = &compute->params;
    int *margin = compute->builder.margin;
    compute->builder.ctx = compute->ctx;
    compute->builder.params = &compute->params;
    compute->borrowed_view = -1;
    compute->views = (struct lr_direct_views){.params = &compute->params, .project = direct_project, .self = compute};
    LR_TRY(lr_direct_views_init(&compute->views));

    /* A gather reads this far beyond the grid. The distance is rounded up to whole blocks of outputs and quads. */
    for (int view = 0; view < params->num_views; view++) {
        struct lr_direct_shape shape;
        LR_TRY(lr_direct_shape_init(&shape, &(lr_direct_tables_params){.grid = &params->grid,
                                                                       .view = params->views[view],
                                                                       .kernel = params->kernel,
                                                                       .log = params->log}));
        const int *half = shape.info.half;
        int reach[3] = {half[2] / FLOATS + 1 + LR_DIRECT_QUADS, half[0] + LR_DIRECT_OUTPUTS - 1,
                        half[1] + LR_DIRECT_OUTPUTS - 1};
        if (compute->functions != NULL) compute->functions->margins(&shape, reach);
        for (int k = 0; k < 3; k++) margin[k] = reach[k] > margin[k] ? reach[k] : margin[k];
        lr_direct_shape_finish(&shape);
    }

    struct lr_direct_layout *layout = &compute->layout;
    *layout = (struct lr_direct_layout){
        .ctx = compute->ctx,
        .log = compute->params.log,
        .traffic = &compute->place->traffic,
        .quads = (compute->params.grid.size[2] + FLOATS - 1) / FLOATS,
        .buffers = compute->params.storage == LR_DIRECT_BUFFERS,
    };
    layout->data_buffers = layout->buffers && compute->functions != NULL;
    for (int k = 0; k < 3; k++) {
        layout->size[k] = compute->params.grid.size[k];
        layout->margin[k] = compute->builder.margin[k];
    }

    LR_TRY(lr_direct_image_init(&compute->in, &compute->layout, "input of a projection", true));
    LR_TRY(lr_direct_image_init(&compute->out, &compute->layout, "output of a projection", true));
    compute->tables =
        lr_alloc(compute->params.num_views, sizeof(*compute->tables), "look-up tables", compute->params.log);
    compute->watch = gl_stopwatch_create(compute->ctx, "DIRECT");
    if (!compute->tables || !compute->watch) return LR_FAILED;
    compute->self = compute->functions != NULL ? compute->functions->create(compute) : NULL;
    return compute->functions == NULL || compute->self != NULL ? LR_OK : LR_NO_DEVICE;
}

static void destroy(void *self)
{
    struct lr_direct_compute *compute = self;
    if (compute->ctx != NULL && gl_context_make_current_to_free(compute->ctx)) {
        lr_direct_resident_destroy(compute);
        lr_vector_destroy(&compute->exchange.ones);
        lr_vector_destroy(&compute->exchange.sum);
        for (int k = 0; k < 6; k++) gl_program_destroy(compute->exchange.programs[k / 2][k % 2]);
        if (compute->self != NULL) compute->functions->destroy(compute->self);
        gl_stopwatch_destroy(compute->watch);
        lr_direct_view_tables_finish(&compute->borrowed);
        for (int view = 0; compute->tables != NULL && view < compute->params.num_views; view++)
            lr_direct_view_tables_finish(&compute->tables[view]);
        free(compute->tables);
        lr_direct_image_finish(&compute->out);
        lr_direct_image_finish(&compute->in);
        gl_program_destroy(compute->back);
        gl_program_destroy(compute->forward);
        gl_program_destroy(compute->builder.values);
        gl_program_destroy(compute->builder.map);
        gl_context_release(compute->ctx);
    }
    lr_place_silence(compute->place); /* vectors may keep the place open after the log has ended */
    lr_place_close(compute->place);
    lr_direct_views_finish(&compute->views);
    free(compute);
}

static lr_status find_attributes(void *self, lr_direct_attributes *attributes)
{
    const struct lr_direct_compute *compute = self;
    return compute->functions->attributes(compute->self, attributes);
}

static const struct lr_backend_fns compute_fns = {
    .name = "compute",
    .has_parts = true,
    .forward = forward,
    .back = back,
    .rows = rows,
    .device_seconds = device_seconds,
    .updates = &lr_direct_compute_updates,
    .time = lr_direct_compute_time,
    .destroy = destroy,
};

lr_status lr_direct_compute_create_with(const struct lr_direct_backend_params *params,
                                        const struct lr_direct_functions *functions, struct lr_backend *backend)
{
    struct lr_direct_compute *compute = lr_alloc(1, sizeof(*compute), "the compute backend", params->log);
    if (compute == NULL) return LR_FAILED;
    compute->params = *params;
    compute->functions = functions;
    compute->fns = compute_fns;
    if (functions != NULL) compute->fns.name = functions->name;
    if (functions != NULL && functions->attributes != NULL) compute->fns.attributes = find_attributes;
    lr_status status = lr_place_open_on(
        &(lr_place_params){.kind = LR_PLACE_GL, .device = params->device, .shared = params->shared, .log = params->log},
        &compute->place);
    if (status == LR_OK) {
        compute->ctx = compute->place->ctx;
        status = gl_context_make_current(compute->ctx);
    }
    if (status == LR_OK) {
        status = init(compute);
        status = gl_context_leave(compute->ctx, status);
    }
    if (status != LR_OK) {
        destroy(compute);
        return status;
    }
    *backend = (struct lr_backend){.fns = &compute->fns, .self = compute, .place = compute->place};
    snprintf(backend->device, sizeof(backend->device), "%s", gl_context_limits(compute->ctx)->renderer);
    return LR_OK;
}

lr_status lr_direct_compute_create(const struct lr_direct_backend_params *params, struct lr_backend *backend)
{
    return lr_direct_compute_create_with(params, NULL, backend);
}
