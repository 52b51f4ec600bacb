/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `compute` backend: the cluster paper's forward and back-projection (sections II to IV) fused
 * into one pass each, sampled or exact, on OpenGL compute shaders. */
#include "render/points/points.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/scanner/penetration.h"
#include "render/columns/list.h"
#include "render/columns/rows.h"
#include "render/fixed.h"
#include "render/image_order.h"
#include "render/pairs/list.h"
#include "render/pairs/rows.h"
#include "render/sweep.h"
#include "render/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A buffer of floats on the device, for LOR values and voxel sums. */
static struct gl_buffer *make_values(const struct lr_compute *compute, const char *label,
                                     int64_t count)
{
    return gl_buffer_create(
        compute->ctx,
        &(struct gl_buffer_params){.label = label, .size_bytes = count * (int64_t)sizeof(float)});
}

/* What a batch of a projection works with. */
struct projection {
    struct lr_compute *compute;
    struct lr_compute_output output; /* LOR values, of either direction */
    const struct gl_buffer *voxels;  /* back only */
};

static lr_status forward_batch(void *user, const struct lr_batch *batch)
{
    const struct projection *at = user;
    LR_TRY(lr_compute_upload(at->compute, batch));
    return lr_compute_run(at->compute, LR_COMPUTE_FORWARD, batch, &at->output);
}

static lr_status forward_window(struct lr_compute *compute, const struct lr_plan_work *work,
                                const struct lr_compute_output *output)
{
    struct projection at = {.compute = compute, .output = *output};
    const struct lr_sweep sweep = {.params = &compute->params,
                                   .plan = compute->plan,
                                   .what = "projecting forward",
                                   .batch = forward_batch,
                                   .user = &at};
    return lr_sweep_run(&sweep, work);
}

static lr_status forward_floats(struct lr_compute *compute, const struct lr_plan_work *work,
                                float *values)
{
    const int64_t count = work->window.num_lors;
    const struct lr_compute_output output = {.buffer = make_values(compute, "LOR values", count),
                                             .num_lors = count};
    lr_status status = output.buffer ? forward_window(compute, work, &output) : LR_FAILED;
    if (status == LR_OK) {
        status = gl_buffer_read(output.buffer, 0, count * (int64_t)sizeof(float), values);
    }
    gl_buffer_destroy((struct gl_buffer *)(uintptr_t)output.buffer);
    return status;
}

/* One attempt at values that do not depend on the order of additions. */
static lr_status try_fixed(struct lr_compute *compute, const struct lr_plan_work *work,
                           struct lr_fixed *sums, float *values)
{
    const struct lr_compute_output output = {.buffer = sums->buffer,
                                             .num_lors = sums->count,
                                             .fixed_scale = ldexpf(1.0f, -sums->exponent)};
    LR_TRY(forward_window(compute, work, &output));
    LR_TRY(lr_fixed_overflowed(sums, &sums->overflowed));
    return sums->overflowed ? LR_OK : lr_fixed_read(sums, values);
}

static lr_status forward_fixed(struct lr_compute *compute, const struct lr_plan_work *work,
                               float *values)
{
    struct lr_fixed sums = {.overflowed = true};
    for (int exponent = lr_fixed_sum_exponent(&compute->params, work->emission); sums.overflowed;
         exponent += LR_FIXED_STEP) {
        LR_TRY(lr_fixed_init(&sums, compute->ctx, work->window.num_lors, exponent));
        const lr_status status = try_fixed(compute, work, &sums, values);
        lr_fixed_finish(&sums);
        LR_TRY(status);
    }
    return LR_OK;
}

static lr_status forward_windows(struct lr_compute *compute, const float *image, float *data)
{
    const struct lr_rows rows = lr_sweep_voxels(&compute->params);
    struct lr_plan_work work = {.rows = &rows, .emission = image};
    const bool fixed = compute->params.deterministic;
    const int64_t most = fixed ? lr_fixed_most(compute->max_window) : compute->max_window;
    while (lr_plan_next_window(compute->params.lors, most, &work.window)) {
        float *values = data + work.window.first_lor;
        LR_TRY(lr_scene_set_window(&compute->scene, &work.window));
        LR_TRY((fixed ? forward_fixed : forward_floats)(compute, &work, values));
    }
    return LR_OK;
}

/* --- the same bits each time: rows, added on the host in the order of the voxels --- */

struct ordered_sum {
    const float *image;
    float *data;
};

static lr_status add_row(void *user, const lr_row *row)
{
    const struct ordered_sum *sum = user;
    const double emission = (double)sum->image[row->row];
    for (int64_t k = 0; k < row->count; k++) {
        sum->data[row->lor[k]] += (float)(emission * row->probability[k]);
    }
    return LR_OK;
}

static lr_status forward_in_order(struct lr_compute *compute, const float *image, float *data)
{
    const lr_lors *lors = compute->params.lors;
    const struct lr_lor_window all = lr_plan_all_lors(lors);
    const struct lr_rows rows = lr_sweep_voxels(&compute->params);
    struct ordered_sum sum = {image, data};
    memset(data, 0, (size_t)lors->count * sizeof(*data));
    LR_TRY(lr_scene_set_window(&compute->scene, &all));
    return lr_compute_read_rows(compute, &rows, &(lr_row_sink){add_row, &sum});
}

/* Where neither columns nor pairs serve. */
static lr_status forward_batches(struct lr_compute *compute, const float *image, float *data)
{
    return compute->params.deterministic ? forward_in_order(compute, image, data)
                                         : forward_windows(compute, image, data);
}

static lr_status back_batch(void *user, const struct lr_batch *batch)
{
    const struct projection *at = user;
    LR_TRY(lr_compute_upload(at->compute, batch));
    LR_TRY(lr_compute_run(at->compute, LR_COMPUTE_BACK, batch, &at->output));
    return lr_compute_collect(at->compute, batch, at->voxels);
}

static lr_status back_window(struct lr_compute *compute, const struct lr_plan_work *work,
                             const struct gl_buffer *lors, const struct gl_buffer *voxels)
{
    struct projection at = {.compute = compute,
                            .output = {.buffer = lors, .num_lors = work->window.num_lors},
                            .voxels = voxels};
    const struct lr_sweep sweep = {.params = &compute->params,
                                   .plan = compute->plan,
                                   .what = "projecting back",
                                   .batch = back_batch,
                                   .user = &at};
    return lr_sweep_run(&sweep, work);
}

static lr_status back_windows(struct lr_compute *compute, const float *data,
                              const struct gl_buffer *voxels)
{
    const struct lr_rows rows = lr_sweep_voxels(&compute->params);
    struct lr_plan_work work = {.rows = &rows};
    while (lr_plan_next_window(compute->params.lors, compute->max_window, &work.window)) {
        LR_TRY(lr_scene_set_window(&compute->scene, &work.window));
        struct gl_buffer *lors = gl_buffer_create(
            compute->ctx,
            &(struct gl_buffer_params){.label = "LOR values",
                                       .size_bytes = work.window.num_lors * (int64_t)sizeof(float),
                                       .data = data + work.window.first_lor});
        const lr_status status = lors ? back_window(compute, &work, lors, voxels) : LR_FAILED;
        gl_buffer_destroy(lors);
        LR_TRY(status);
    }
    return LR_OK;
}

static lr_status back_batches(struct lr_compute *compute, const float *data, float *image)
{
    const int64_t num_voxels = lr_grid_num_voxels(compute->params.grid);
    struct gl_buffer *voxels = make_values(compute, "voxel sums", num_voxels);
    lr_status status = voxels ? back_windows(compute, data, voxels) : LR_FAILED;
    if (status == LR_OK) {
        status = gl_buffer_read(voxels, 0, num_voxels * (int64_t)sizeof(float), image);
    }
    gl_buffer_destroy(voxels);
    return status;
}

/* --- by columns or by pairs of modules --- */

static bool has_projector(const struct lr_compute *compute)
{
    return compute->columns != NULL || compute->pairs != NULL;
}

/* An image or values that are on the host pass between it and the device. */
static void count_traffic(struct lr_compute *compute, const lr_vector *in, const lr_vector *out)
{
    if (in != NULL && in->values != NULL) {
        compute->place->traffic.to_device += in->count * (int64_t)sizeof(float);
    }
    if (out->values != NULL) {
        compute->place->traffic.to_host += out->count * (int64_t)sizeof(float);
    }
}

/* image NULL: it is with the projector, here and below. */
static lr_status forward_pairs(struct lr_compute *compute, const struct lr_pair_list *pairs,
                               const float *image, lr_vector *values)
{
    return compute->columns != NULL ? lr_columns_forward(compute->columns, pairs, image, values)
                                    : lr_pairs_forward(compute->pairs, pairs, image, values);
}

static lr_status back_pairs(struct lr_compute *compute, const struct lr_pair_list *pairs,
                            const lr_vector *values, float *image)
{
    return compute->columns != NULL ? lr_columns_back(compute->columns, pairs, values, image)
                                    : lr_pairs_back(compute->pairs, pairs, values, image);
}

/* Lists are spelt out with their values by the host. */
static lr_status forward_list(struct lr_compute *compute, const struct lr_lor_list *list,
                              const float *image, float *values)
{
    return compute->columns != NULL ? lr_columns_list_forward(compute->columns, list, image, values)
                                    : lr_pairs_list_forward(compute->pairs, list, image, values);
}

static lr_status back_list(struct lr_compute *compute, const struct lr_lor_list *list,
                           const float *values, float *image)
{
    return compute->columns != NULL ? lr_columns_list_back(compute->columns, list, values, image)
                                    : lr_pairs_list_back(compute->pairs, list, values, image);
}

/* A copy on the host of values at the place. */
static lr_status make_host_copy(const struct lr_compute *compute, const lr_vector *values,
                                lr_vector *host)
{
    return lr_vector_create(&(lr_vector_params){.count = values->count,
                                                .name = "values of a list of LORs",
                                                .log = compute->params.log},
                            host);
}

static lr_status forward_list_from(struct lr_compute *compute, const struct lr_lor_list *list,
                                   const float *image, lr_vector *values)
{
    if (values->values != NULL) {
        return forward_list(compute, list, image, values->values);
    }
    lr_vector host;
    LR_TRY(make_host_copy(compute, values, &host));
    lr_status status = forward_list(compute, list, image, host.values);
    status = status == LR_OK ? lr_vector_copy(&host, values) : status;
    lr_vector_destroy(&host);
    return status;
}

static lr_status back_list_from(struct lr_compute *compute, const struct lr_lor_list *list,
                                const lr_vector *values, float *image)
{
    if (values == NULL || values->values != NULL) {
        return back_list(compute, list, values != NULL ? values->values : NULL, image);
    }
    lr_vector host;
    LR_TRY(make_host_copy(compute, values, &host));
    lr_status status = lr_vector_copy(values, &host);
    status = status == LR_OK ? back_list(compute, list, host.values, image) : status;
    lr_vector_destroy(&host);
    return status;
}

static lr_status project_forward(struct lr_compute *compute, const lr_selection *part,
                                 const lr_vector *image, lr_vector *values)
{
    if (!has_projector(compute)) {
        return forward_batches(compute, image->values, values->values);
    }
    const lr_selection all = {0}, *wanted = part != NULL ? part : &all;
    const struct lr_pair_list pairs = {wanted->pairs, wanted->num_pairs};
    const struct lr_lor_list list = {wanted->lors, wanted->num_lors};
    count_traffic(compute, image, values);
    LR_TRY(image->values == NULL ? lr_image_to_projector(compute, image) : LR_OK);
    return wanted->lors != NULL ? forward_list_from(compute, &list, image->values, values)
                                : forward_pairs(compute, &pairs, image->values, values);
}

static lr_status project_back(struct lr_compute *compute, const lr_selection *part,
                              const lr_vector *values, lr_vector *image)
{
    if (!has_projector(compute)) {
        return back_batches(compute, values->values, image->values);
    }
    const lr_selection all = {0}, *wanted = part != NULL ? part : &all;
    const struct lr_pair_list pairs = {wanted->pairs, wanted->num_pairs};
    const struct lr_lor_list list = {wanted->lors, wanted->num_lors};
    count_traffic(compute, values, image);
    LR_TRY(wanted->lors != NULL ? back_list_from(compute, &list, values, image->values)
                                : back_pairs(compute, &pairs, values, image->values));
    return image->values == NULL ? lr_image_from_projector(compute, image) : LR_OK;
}

/* --- the backend --- */

static lr_status forward(void *self, const lr_selection *part, const lr_vector *image,
                         lr_vector *values)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = project_forward(compute, part, image, values);
    gl_context_release(compute->ctx);
    return gl_context_status(compute->ctx, status);
}

static lr_status back(void *self, const lr_selection *part, const lr_vector *values,
                      lr_vector *image)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = project_back(compute, part, values, image);
    gl_context_release(compute->ctx);
    return gl_context_status(compute->ctx, status);
}

static double device_seconds(void *self)
{
    const struct lr_compute *compute = self;
    return compute->columns ? compute->columns->device_seconds
           : compute->pairs ? compute->pairs->device_seconds
                            : 0.0;
}

static lr_status read_rows(struct lr_compute *compute, const struct lr_rows *wanted,
                           const lr_row_sink *sink)
{
    const struct lr_lor_window all = lr_plan_all_lors(compute->params.lors);
    if (compute->columns && compute->params.mode == LR_MODE_EXACT) {
        return lr_columns_read_rows(compute->columns, wanted, sink);
    }
    if (compute->pairs != NULL) {
        return lr_pairs_read_rows(compute->pairs, wanted, sink);
    }
    LR_TRY(lr_scene_set_window(&compute->scene, &all));
    return lr_compute_read_rows(compute, wanted, sink);
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = read_rows(compute, wanted, sink);
    gl_context_release(compute->ctx);
    return gl_context_status(compute->ctx, status);
}

/* Vectors may keep the place open, but the backend's log goes. */
static void close_place(struct lr_compute *compute)
{
    lr_place_silence(compute->place);
    lr_place_close(compute->place);
}

static lr_status start_programs(struct lr_compute *compute)
{
    struct lr_columns *columns = compute->columns;
    if (columns != NULL) {
        LR_TRY(lr_columns_prepare_back(columns));
        return lr_columns_start_forward(columns);
    }
    if (compute->pairs != NULL) {
        const bool both = lr_pairs_program(compute->pairs, LR_PAIRS_BACK) != NULL &&
                          lr_pairs_program(compute->pairs, LR_PAIRS_FORWARD) != NULL;
        return both ? LR_OK : LR_FAILED;
    }
    LR_TRY(lr_compute_start(compute, LR_COMPUTE_BACK));
    /* Where results are the same bits each time without whole numbers, forward goes by rows. */
    return compute->params.deterministic ? LR_OK : lr_compute_start(compute, LR_COMPUTE_FORWARD);
}

static lr_status prepare(void *self)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = start_programs(compute);
    gl_context_release(compute->ctx);
    return gl_context_status(compute->ctx, status);
}

static void destroy(void *self)
{
    struct lr_compute *compute = self;
    if (gl_context_make_current(compute->ctx) == LR_OK) {
        lr_compute_finish(compute);
        gl_context_release(compute->ctx);
    }
    close_place(compute);
    free(compute);
}

static const struct lr_backend_fns fns_without_parts = {
    .name = "compute",
    .voxel_bytes = 12,
    .forward = forward,
    .back = back,
    .rows = rows,
    .device_seconds = device_seconds,
    .prepare = prepare,
    .destroy = destroy,
};

static const struct lr_backend_fns fns_with_parts = {
    .name = "compute",
    .has_parts = true,
    .voxel_bytes = 12,
    .forward = forward,
    .back = back,
    .rows = rows,
    .device_seconds = device_seconds,
    .prepare = prepare,
    .destroy = destroy,
};

/* LOR numbers on the device are 32 bit; rows need all of them in one window. */
static lr_status check_lors(const struct lr_backend_params *params)
{
    if (params->lors->count < (int64_t)UINT32_MAX) {
        return LR_OK;
    }
    return lr_error(params->log, LR_USAGE,
                    "%lld LORs are more than the compute backend can number: use backend cpu",
                    (long long)params->lors->count);
}

static lr_status open_compute(struct lr_compute *compute)
{
    const struct lr_backend_params *params = &compute->params;
    LR_TRY(lr_place_open_on(&(lr_place_params){.kind = LR_PLACE_GL,
                                               .device = params->device,
                                               .shared = params->shared,
                                               .log = params->log},
                            &compute->place));
    compute->ctx = compute->place->ctx;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = lr_compute_init(compute);
    gl_context_release(compute->ctx);
    return gl_context_status(compute->ctx, status);
}

lr_status lr_compute_backend_create(const struct lr_backend_params *params,
                                    struct lr_backend *backend)
{
    LR_TRY(check_lors(params));
    if (params->penetration) {
        LR_TRY(lr_penetration_check(params->scanner, params->mode, params->log));
    }
    struct lr_compute *compute = lr_alloc(1, sizeof(*compute), "the compute backend", params->log);
    if (compute == NULL) {
        return LR_FAILED;
    }
    compute->params = *params;
    const lr_status status = open_compute(compute);
    if (status != LR_OK) {
        close_place(compute);
        free(compute);
        return status;
    }
    const struct gl_limits *limits = gl_context_limits(compute->ctx);
    backend->fns = has_projector(compute) ? &fns_with_parts : &fns_without_parts;
    backend->self = compute;
    /* Sums in fixed point are scaled by what the host sees of the image. */
    backend->place = has_projector(compute) && !params->deterministic ? compute->place : NULL;
    snprintf(backend->device, sizeof(backend->device), "%s", limits->renderer);
    backend->is_emulated = limits->software;
    return LR_OK;
}
