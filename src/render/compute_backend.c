/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `compute` backend: the cluster paper's forward and back-projection (sections II to IV) fused
 * into one pass each, sampled or exact, on OpenGL compute shaders. */
#include "base/log.h"
#include "base/mem.h"
#include "model/scanner/arrangement.h"
#include "model/scanner/scanner.h"
#include "render/method.h"
#include "render/values.h"
#include "vector/place.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct lr_compute {
    struct lr_backend_params params;
    struct lr_backend_fns fns;
    lr_place *place;        /* owned */
    struct gl_context *ctx; /* of the place */
    struct lr_method_params method_params;
    const struct lr_method *method, *rows_method;
    void *projector, *lister; /* of these; the lister is made when it is first asked for, and may be
                                 the projector */
};

static const struct lr_method *const methods[] = {&lr_columns_method, &lr_pairs_method, &lr_points_method};

/* The first that serves; the last one always does. */
static const struct lr_method *find_method(const struct lr_method_params *params, enum lr_method_work work)
{
    int k = 0;
    while (!methods[k]->serves(params, work)) k++;
    return methods[k];
}

static bool has_parts(const struct lr_compute *compute)
{
    return compute->method->forward_lors != NULL;
}

/* --- projections --- */

/* A copy on the host of values at the place: lists are spelt out with their values by the host. */
static lr_status make_host_copy(const struct lr_compute *compute, const lr_vector *values, lr_vector *host)
{
    return lr_vector_create(
        &(lr_vector_params){.count = values->count, .name = "values of a list of LORs", .log = compute->params.log},
        host);
}

static lr_status forward_lors(struct lr_compute *compute, const struct lr_lor_list *list, const float *image,
                              lr_vector *values)
{
    const struct lr_method *method = compute->method;
    if (values->values != NULL) return method->forward_lors(compute->projector, list, image, values->values);
    lr_vector host;
    LR_TRY(make_host_copy(compute, values, &host));
    lr_status status = method->forward_lors(compute->projector, list, image, host.values);
    status = status == LR_OK ? lr_vector_copy(&host, values) : status;
    lr_vector_destroy(&host);
    return status;
}

static lr_status back_lors(struct lr_compute *compute, const struct lr_lor_list *list, const lr_vector *values,
                           float *image)
{
    const struct lr_method *method = compute->method;
    if (values == NULL || values->values != NULL)
        return method->back_lors(compute->projector, list, values != NULL ? values->values : NULL, image);
    lr_vector host;
    LR_TRY(make_host_copy(compute, values, &host));
    lr_status status = lr_vector_copy(values, &host);
    status = status == LR_OK ? method->back_lors(compute->projector, list, host.values, image) : status;
    lr_vector_destroy(&host);
    return status;
}

static lr_status project_forward(struct lr_compute *compute, const lr_selection *part, const lr_vector *image,
                                 lr_vector *values)
{
    const struct lr_method *method = compute->method;
    const lr_selection all = {0}, *wanted = part != NULL ? part : &all;
    const struct lr_pair_list pairs = {wanted->pairs, wanted->num_pairs, wanted->interleave, wanted->interleave_turn};
    const struct lr_lor_list list = {wanted->lors, wanted->num_lors};
    lr_values_count_traffic(compute->place, image, values);
    LR_TRY(image->values == NULL ? method->take_image(compute->projector, image) : LR_OK);
    return wanted->lors != NULL ? forward_lors(compute, &list, image->values, values)
                                : method->forward(compute->projector, &pairs, image->values, values);
}

static lr_status project_back(struct lr_compute *compute, const lr_selection *part, const lr_vector *values,
                              lr_vector *image)
{
    const struct lr_method *method = compute->method;
    const lr_selection all = {0}, *wanted = part != NULL ? part : &all;
    const struct lr_pair_list pairs = {wanted->pairs, wanted->num_pairs, wanted->interleave, wanted->interleave_turn};
    const struct lr_lor_list list = {wanted->lors, wanted->num_lors};
    lr_values_count_traffic(compute->place, values, image);
    LR_TRY(wanted->lors != NULL ? back_lors(compute, &list, values, image->values)
                                : method->back(compute->projector, &pairs, values, image->values));
    return image->values == NULL ? method->give_image(compute->projector, image) : LR_OK;
}

/* --- the backend --- */

static lr_status forward(void *self, const lr_selection *part, const lr_vector *image, lr_vector *values)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = project_forward(compute, part, image, values);
    gl_context_release(compute->ctx);
    return gl_context_status(compute->ctx, status);
}

static lr_status back(void *self, const lr_selection *part, const lr_vector *values, lr_vector *image)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = project_back(compute, part, values, image);
    gl_context_release(compute->ctx);
    return gl_context_status(compute->ctx, status);
}

static double read_clock(const struct lr_compute *compute, double (*clock)(const void *self))
{
    if (gl_context_make_current(compute->ctx) != LR_OK) return 0.0;
    const double seconds = clock(compute->projector);
    gl_context_release(compute->ctx);
    return seconds;
}

static double device_seconds(void *self)
{
    const struct lr_compute *compute = self;
    return read_clock(compute, compute->method->device_seconds);
}

static double device_clock(void *self)
{
    const struct lr_compute *compute = self;
    return read_clock(compute, compute->method->device_clock);
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    if (compute->lister == NULL) compute->lister = compute->rows_method->create(&compute->method_params);
    const lr_status status =
        compute->lister != NULL ? compute->rows_method->rows(compute->lister, wanted, sink) : LR_FAILED;

    gl_context_release(compute->ctx);
    return gl_context_status(compute->ctx, status);
}

static lr_status prepare(void *self, bool lists)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = compute->method->prepare(compute->projector, lists);
    gl_context_release(compute->ctx);
    return gl_context_status(compute->ctx, status);
}

/* Vectors may keep the place open, but the backend's log goes. */
static void close_place(struct lr_compute *compute)
{
    lr_place_silence(compute->place);
    lr_place_close(compute->place);
}

static void destroy(void *self)
{
    struct lr_compute *compute = self;
    if (gl_context_make_current_to_free(compute->ctx)) {
        if (compute->lister != NULL && compute->lister != compute->projector)
            compute->rows_method->destroy(compute->lister);
        compute->method->destroy(compute->projector);
        gl_context_release(compute->ctx);
    }
    close_place(compute);
    free(compute);
}

static const struct lr_backend_fns compute_fns = {
    .name = "compute",
    .voxel_bytes = 12,
    .forward = forward,
    .back = back,
    .rows = rows,
    .device_seconds = device_seconds,
    .prepare = prepare,
    .destroy = destroy,
};

/* LOR numbers on the device are 32 bit; rows need all of them in one window. */
static lr_status check_lors(const struct lr_backend_params *params, const char *renderer)
{
    if (params->lors->count < (int64_t)UINT32_MAX) return LR_OK;
    return lr_error(params->log, LR_USAGE,
                    "%lld LORs are more than the %lld that backend compute can number on %s: use "
                    "backend native or cpu",
                    (long long)params->lors->count, (long long)UINT32_MAX - 1, renderer);
}

static int64_t find_max_window(const struct lr_compute *compute)
{
    const int64_t most = gl_context_limits(compute->ctx)->max_storage_bytes;
    const int64_t wanted = compute->params.max_memory_bytes;
    return (wanted > 0 && wanted < most ? wanted : most) / (int64_t)sizeof(float);
}

/* Terms of a LOR in the mean, about, from which on they are added up in fixed point: a float, to which threads add
 * in any order, loses more and more of them. */
static const double many_terms = 8192.0;

/* True if any pair's LORs have so many of the points that stand between its modules. */
static bool has_many_terms(const struct lr_backend_params *params)
{
    enum { ELEMENTS_PER_CRYSTAL = 5 }; /* of a point */
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

static lr_status open_projector(struct lr_compute *compute)
{
    const struct lr_backend_params *params = &compute->params;
    compute->method_params =
        (struct lr_method_params){.ctx = compute->ctx,
                                  .backend = params,
                                  .may_hide = !params->penetration && lr_modules_may_hide(params->scanner),
                                  .max_window = find_max_window(compute)};
    compute->method = find_method(&compute->method_params, LR_METHOD_PROJECTIONS);
    compute->rows_method = find_method(&compute->method_params, LR_METHOD_ROWS);
    compute->fns = compute_fns;
    compute->fns.has_parts = has_parts(compute);
    compute->fns.device_clock = compute->method->device_clock != NULL ? device_clock : NULL;
    compute->params.deterministic =
        compute->params.deterministic || (compute->method == &lr_pairs_method && has_many_terms(&compute->params));
    compute->projector = compute->method->create(&compute->method_params);
    compute->fns.ones_by_angle = compute->projector != NULL && compute->method->leaves_out != NULL &&
                                 compute->method->leaves_out(compute->projector);
    if (compute->rows_method == compute->method) compute->lister = compute->projector;
    return compute->projector != NULL ? LR_OK : LR_FAILED;
}

static lr_status open_compute(struct lr_compute *compute, struct lr_backend *backend)
{
    const struct lr_backend_params *params = &compute->params;
    LR_TRY(lr_place_open_on(
        &(lr_place_params){.kind = LR_PLACE_GL, .device = params->device, .shared = params->shared, .log = params->log},
        &compute->place));
    compute->ctx = compute->place->ctx;
    const struct gl_limits *limits = gl_context_limits(compute->ctx);
    backend->is_gpu = !limits->software;
    LR_TRY(check_lors(params, limits->renderer));
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = open_projector(compute);
    gl_context_release(compute->ctx);
    return gl_context_status(compute->ctx, status);
}

lr_status lr_compute_backend_create(const struct lr_backend_params *params, struct lr_backend *backend)
{
    if (params->penetration) LR_TRY(lr_penetration_check(params->scanner, params->mode, params->log));
    struct lr_compute *compute = lr_alloc(1, sizeof(*compute), "the compute backend", params->log);
    if (compute == NULL) return LR_FAILED;
    compute->params = *params;
    const lr_status status = open_compute(compute, backend);
    if (status != LR_OK) {
        close_place(compute);
        free(compute);
        return status;
    }
    const struct gl_limits *limits = gl_context_limits(compute->ctx);
    backend->fns = &compute->fns;
    backend->self = compute;
    /* Sums in fixed point are scaled by what the host sees of the image. */
    backend->place = has_parts(compute) && !compute->params.deterministic ? compute->place : NULL;
    snprintf(backend->device, sizeof(backend->device), "%s", limits->renderer);
    backend->is_emulated = limits->software;
    return LR_OK;
}
