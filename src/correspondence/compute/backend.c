/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `compute` backend, on OpenGL compute shaders. The forward and back-projections of the cluster paper (sections II
 * to IV) are one pass each, in sampled or exact mode. */
#include "base/log.h"
#include "base/mem.h"
#include "correspondence/compute/method.h"
#include "correspondence/values.h"
#include "device/place.h"
#include "model/scanner/scanner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct lr_compute {
    struct lr_backend_params params;
    struct lr_backend_fns fns;
    lr_place *place;        /* owned */
    struct gl_context *ctx; /* the place's context */
    struct lr_method_params method_params;
    const struct lr_method *method, *rows_method;
    void *projector; /* object of `method` */
    void *lister;    /* object of `rows_method`, made at its first use; the same pointer as `projector` if both methods
                        are the same */
    struct lr_blanks blanks;
};

static const struct lr_method *const methods[] = {&lr_columns_method, &lr_pairs_method, &lr_points_method};

/* Finds the first method that can do the work for this scanner and grid. The last method of the list can do any
 * work. */
static const struct lr_method *find_method(const struct lr_method_params *params, enum lr_method_work work)
{
    int k = 0;
    while (methods[k]->serves != NULL && !methods[k]->serves(params, work)) k++;
    return methods[k];
}

/* --- projections --- */

static lr_status project(struct lr_compute *compute, bool is_forward, const lr_selection *part, const lr_vector *in,
                         lr_vector *out)
{
    const struct lr_method *method = compute->method;
    const lr_selection all = {0}, *selection = part != NULL ? part : &all;
    lr_vector from = in != NULL ? *in : (lr_vector){0};
    lr_vector *image = is_forward ? &from : out, *values = is_forward ? out : in != NULL ? &from : NULL;
    lr_values_count_traffic(compute->place, in, out);
    if (selection->lors == NULL) return method->project(compute->projector, is_forward, selection, image, values);

    /* Methods read the LORs of a list, and the values of these LORs, from host memory. */
    const bool is_copied = values != NULL && values->values == NULL;
    lr_vector host = values != NULL ? *values : (lr_vector){0};
    lr_status status = LR_OK;
    if (is_copied)
        LR_TRY(lr_vector_create(
            &(lr_vector_params){.count = values->count, .name = "values of a list of LORs", .log = compute->params.log},
            &host));
    if (is_copied && !is_forward) status = lr_vector_copy(values, &host);
    if (status == LR_OK) status = method->project_lors(compute->projector, is_forward, selection, image, host.values);
    if (status == LR_OK && is_copied && is_forward) status = lr_vector_copy(&host, out);
    if (is_copied) lr_vector_destroy(&host);
    return status;
}

/* --- the backend --- */

static lr_status project_here(void *self, bool is_forward, const lr_selection *part, const lr_vector *in,
                              lr_vector *out)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    return gl_context_leave(compute->ctx, project(compute, is_forward, part, in, out));
}

static double read_clock(const struct lr_compute *compute, double (*clock)(struct gl_stopwatch *watch))
{
    struct gl_stopwatch *watch = compute->method_params.watch;
    if (watch == NULL || gl_context_make_current(compute->ctx) != LR_OK) return 0.0;
    const double seconds = clock(watch);
    gl_context_release(compute->ctx);
    return seconds;
}

static double device_seconds(void *self)
{
    return read_clock(self, gl_stopwatch_seconds);
}

static double device_clock(void *self)
{
    return read_clock(self, gl_stopwatch_total);
}

static lr_status blank(void *self, const lr_selection *part, lr_vector *values)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = lr_blanks_run(&compute->blanks, compute->params.lors, part, values);
    return gl_context_leave(compute->ctx, status);
}

static lr_status rows(void *self, const struct lr_rows *request, const lr_row_sink *sink)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    if (compute->lister == NULL) compute->lister = compute->rows_method->create(&compute->method_params);
    const lr_status status =
        compute->lister != NULL ? compute->rows_method->rows(compute->lister, request, sink) : LR_FAILED;
    return gl_context_leave(compute->ctx, status);
}

static lr_status prepare(void *self, bool lists)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = compute->method->prepare(compute->projector, lists);
    return gl_context_leave(compute->ctx, status);
}

static void destroy(void *self)
{
    struct lr_compute *compute = self;
    if (compute->ctx != NULL && gl_context_make_current_to_free(compute->ctx)) {
        if (compute->lister != NULL && compute->lister != compute->projector)
            compute->rows_method->destroy(compute->lister);
        if (compute->projector != NULL) compute->method->destroy(compute->projector);
        gl_stopwatch_destroy(compute->method_params.watch);
        lr_blanks_finish(&compute->blanks);
        gl_context_release(compute->ctx);
    }
    lr_place_silence(compute->place); /* vectors can keep the place open after the log is gone */
    lr_place_close(compute->place);
    free(compute);
}

static const struct lr_backend_fns compute_fns = {
    .name = "compute",
    .voxel_bytes = 12,
    .project = project_here,
    .blank = blank,
    .rows = rows,
    .device_seconds = device_seconds,
    .prepare = prepare,
    .destroy = destroy,
};

/* With the pairs method, sums are in fixed point if LORs have more terms than this on average. A float sum of that many
 * terms loses digits. */
static const double many_terms = 8192.0;

/* Returns true if the LORs of some module pair have more than `many_terms` terms on average. A LOR has one term for
 * each element of each sample point between the modules. */
static bool has_many_terms(const struct lr_backend_params *params)
{
    enum { ELEMENTS_PER_CRYSTAL = 5 }; /* approximate number of elements that a sample point has per crystal */
    const lr_grid *grid = params->grid;
    const double points =
        (double)lr_grid_num_voxels(grid) * params->samples[0] * params->samples[1] * params->samples[2];
    double most = 0.0;
    for (int m = 0; m < params->scanner->num_modules; m++) {
        const lr_module *module = &params->scanner->modules[m];
        const double crystals = (double)module->crystals[0] * module->crystals[1];
        const double area = crystals * module->pitch_mm[0] * module->pitch_mm[1];
        double widest = 0.0;
        for (int k = 0; k < 3; k++) widest = fmax(widest, grid->size[k] * grid->voxel_mm[k]);
        const double share = fmin(area / (widest * widest), 1.0);
        most = fmax(most, ELEMENTS_PER_CRYSTAL * points * share / crystals);
    }
    return most > many_terms;
}

lr_status lr_compute_backend_create(const struct lr_backend_params *params, struct lr_backend *backend)
{
    if (params->penetration) LR_TRY(lr_penetration_check(params->scanner, params->mode, params->log));
    struct lr_compute *compute = lr_alloc(1, sizeof(*compute), "the compute backend", params->log);
    if (compute == NULL) return LR_FAILED;
    compute->params = *params;
    lr_status status = lr_place_open_on(
        &(lr_place_params){.kind = LR_PLACE_GL, .device = params->device, .shared = params->shared, .log = params->log},
        &compute->place);
    const struct gl_limits *limits = NULL;
    if (status == LR_OK) {
        compute->ctx = compute->place->ctx;
        limits = gl_context_limits(compute->ctx);
        backend->is_gpu = !limits->software;
        backend->is_emulated = limits->software;

        /* LOR numbers have 32 bits on the device, and rows need a single window with all LORs. */
        if (params->lors->count >= (int64_t)UINT32_MAX)
            status = lr_error(params->log, LR_USAGE,
                              "%lld LORs are more than the %lld that backend compute can number on %s: use "
                              "backend native or cpu",
                              (long long)params->lors->count, (long long)UINT32_MAX - 1, limits->renderer);
    }
    if (status == LR_OK) status = gl_context_make_current(compute->ctx);
    if (status == LR_OK) {
        const int64_t most = limits->max_storage_bytes, limit = params->max_memory_bytes;
        compute->method_params = (struct lr_method_params){
            .ctx = compute->ctx,
            .backend = &compute->params,
            .may_hide = !params->penetration && lr_modules_may_hide(params->scanner),
            .max_window = (limit > 0 && limit < most ? limit : most) / (int64_t)sizeof(float)};
        compute->method = find_method(&compute->method_params, LR_METHOD_PROJECTIONS);
        compute->rows_method = find_method(&compute->method_params, LR_METHOD_ROWS);
        compute->fns = compute_fns;
        compute->fns.has_parts = compute->method->project_lors != NULL;
        compute->fns.device_clock = compute->method->has_clock ? device_clock : NULL;
        compute->params.deterministic =
            compute->params.deterministic || (compute->method == &lr_pairs_method && has_many_terms(params));
        const char *label = compute->method->watch;
        struct gl_stopwatch *watch = label != NULL ? gl_stopwatch_create(compute->ctx, label) : NULL;
        compute->method_params.watch = watch;
        if (label == NULL || watch != NULL) compute->projector = compute->method->create(&compute->method_params);
        compute->fns.ones_by_angle = compute->projector != NULL && compute->method->leaves_out != NULL &&
                                     compute->method->leaves_out(compute->projector);
        if (compute->rows_method == compute->method) compute->lister = compute->projector;
        status = compute->projector != NULL ? LR_OK : LR_FAILED;
        status = gl_context_leave(compute->ctx, status);
    }
    if (status != LR_OK) {
        destroy(compute);
        return status;
    }

    backend->fns = &compute->fns;
    backend->self = compute;
    /* In deterministic mode, vectors are on the host: sums are in fixed point, and the host finds their scale from the
     * image. */
    backend->place = compute->fns.has_parts && !compute->params.deterministic ? compute->place : NULL;
    snprintf(backend->device, sizeof(backend->device), "%s", limits->renderer);
    return LR_OK;
}
