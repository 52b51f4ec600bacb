/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections: conversion between the caller's and the backend's precision, the check that what
 * goes in is finite, factors, and parts where the backend knows only all LORs. */
#include "operator/project.h"

#include "base/log.h"
#include "model/lor_check.h"
#include "model/selection.h"
#include "operator/scaling.h"

#include <stdlib.h>
#include <string.h>

/* What is projected: with an operator, forward or back, for all LORs (part NULL) or some. */
struct projection {
    const struct lr_operator *op;
    const lr_selection *part;
    bool forward;
};

/* --- checks --- */

static lr_status report_voxel(const struct lr_operator *op, int64_t row)
{
    const int64_t line = row / op->grid.size[0];
    return lr_error(op->params.log, LR_BAD_INPUT,
                    "voxel (%lld, %lld, %lld) of the image is not a finite number that fits the "
                    "backend: replace NaN and infinities before projecting",
                    (long long)(row % op->grid.size[0]), (long long)(line % op->grid.size[1]),
                    (long long)(line / op->grid.size[1]));
}

static lr_status report_lor(const struct lr_operator *op, int64_t number)
{
    char text[160];
    return lr_error(op->params.log, LR_BAD_INPUT,
                    "the value of %s is not a finite number that fits the backend: replace NaN and "
                    "infinities before back-projecting",
                    lr_lor_name(op->params.lors, number, text));
}

static lr_status check_input(const struct projection *p, const struct lr_side *in)
{
    const int64_t wrong = lr_side_find_not_finite(in);
    if (wrong < 0) {
        return LR_OK;
    }
    return p->forward ? report_voxel(p->op, wrong)
                      : report_lor(p->op, lr_selection_lor(p->op->params.lors, p->part, wrong));
}

/* --- parts by all --- */

/* Copies values between their places in a part and among all LORs. */
static void pick(const struct projection *p, const struct lr_side *all,
                 const struct lr_side *values)
{
    struct lr_selection_walk walk = {.lors = p->op->params.lors, .selection = p->part};
    while (lr_selection_next(&walk)) {
        for (int64_t k = 0; k < walk.span.count; k++) {
            const int64_t lor = walk.span.numbers ? walk.span.numbers[k] : walk.span.first + k;
            if (p->forward) {
                lr_side_put(values, walk.position + k, lr_side_get(all, lor));
            } else {
                lr_side_put(all, lor, values ? lr_side_get(values, walk.position + k) : 1.0);
            }
        }
    }
}

/* A projection of all LORs of which only those of the part are taken. Back, in NULL: values of 1. */
static lr_status part_by_all(const struct projection *p, const struct lr_side *in,
                             const struct lr_side *out)
{
    const struct lr_backend *backend = &p->op->backend;
    struct lr_side all = lr_data_side(p->op, NULL, backend->fns->computes_in_double);
    LR_TRY(lr_side_alloc(&all, p->op->params.log));
    lr_status status;
    if (p->forward) {
        status = backend->fns->forward(backend->self, in->values, all.values);
        if (status == LR_OK) {
            pick(p, &all, out);
        }
    } else {
        pick(p, &all, in);
        status = backend->fns->back(backend->self, all.values, out->values);
    }
    free(all.values);
    return status;
}

lr_status lr_project_back_part(const struct lr_operator *op, const lr_selection *part,
                               const struct lr_side *values, const struct lr_side *image)
{
    const struct lr_backend *backend = &op->backend;
    if (backend->fns->back_part == NULL) {
        const struct projection p = {op, part, false};
        return part_by_all(&p, values, image);
    }
    return backend->fns->back_part(backend->self, part, values ? values->values : NULL,
                                   image->values);
}

/* --- projections --- */

static lr_status call(const struct projection *p, const struct lr_side *in,
                      const struct lr_side *out)
{
    const struct lr_backend *backend = &p->op->backend;
    if (p->part == NULL) {
        return p->forward ? backend->fns->forward(backend->self, in->values, out->values)
                          : backend->fns->back(backend->self, in->values, out->values);
    }
    if (!p->forward) {
        return lr_project_back_part(p->op, p->part, in, out);
    }
    return backend->fns->forward_part != NULL
               ? backend->fns->forward_part(backend->self, p->part, in->values, out->values)
               : part_by_all(p, in, out);
}

/* in and out are in the backend's precision; in back projections with factors, `in` is ours. */
static lr_status run(const struct projection *p, const struct lr_side *in,
                     const struct lr_side *out)
{
    LR_TRY(check_input(p, in));
    if (p->forward) {
        LR_TRY(call(p, in, out));
        return lr_scaling_apply(p->op, p->part, out);
    }
    LR_TRY(lr_scaling_apply(p->op, p->part, in));
    return call(p, in, out);
}

/* `side` in the backend's precision: the same array, or a new one, which it must be when it is
 * going to be changed. */
static lr_status side_at_door(const struct lr_operator *op, const struct lr_side *side,
                              bool is_changed, struct lr_side *inner)
{
    *inner = *side;
    inner->is_double = op->backend.fns->computes_in_double;
    if (inner->is_double == side->is_double && !is_changed) {
        return LR_OK;
    }
    return lr_side_alloc(inner, op->params.log);
}

static void leave_door(const struct lr_side *side, const struct lr_side *inner)
{
    if (inner->values != side->values) {
        free(inner->values);
    }
}

static lr_status project(const struct projection *p, const struct lr_side *in,
                         const struct lr_side *out)
{
    struct lr_side inner_in, inner_out;
    LR_TRY(side_at_door(p->op, in, !p->forward && lr_has_factors(p->op), &inner_in));
    lr_status status = side_at_door(p->op, out, false, &inner_out);
    if (status == LR_OK) {
        if (inner_in.values != in->values) {
            lr_side_copy(in, &inner_in);
        }
        status = run(p, &inner_in, &inner_out);
        if (status == LR_OK && inner_out.values != out->values) {
            lr_side_copy(&inner_out, out);
        }
        leave_door(out, &inner_out);
    }
    leave_door(in, &inner_in);
    return status;
}

struct lr_side lr_image_side(const struct lr_operator *op, const void *values, bool is_double)
{
    return (struct lr_side){"an image in the backend's precision", op->info.num_voxels, is_double,
                            (void *)(uintptr_t)values};
}

struct lr_side lr_data_side(const struct lr_operator *op, const void *values, bool is_double)
{
    return (struct lr_side){"LOR data in the backend's precision", op->info.num_lors, is_double,
                            (void *)(uintptr_t)values};
}

static lr_status refuse_missing(const struct lr_operator *op, const void *one, const void *other)
{
    if (one != NULL && other != NULL) {
        return LR_OK;
    }
    return lr_error(op->params.log, LR_USAGE, "a projection needs an image and a data array");
}

static lr_status project_all(const struct lr_operator *op, bool forward, struct lr_side in,
                             struct lr_side out)
{
    LR_TRY(refuse_missing(op, in.values, out.values));
    return project(&(struct projection){op, NULL, forward}, &in, &out);
}

lr_status lr_operator_forward(lr_operator *op, const float *image, float *data)
{
    return project_all(op, true, lr_image_side(op, image, false), lr_data_side(op, data, false));
}

lr_status lr_operator_back(lr_operator *op, const float *data, float *image)
{
    return project_all(op, false, lr_data_side(op, data, false), lr_image_side(op, image, false));
}

lr_status lr_operator_forward_f64(lr_operator *op, const double *image, double *data)
{
    return project_all(op, true, lr_image_side(op, image, true), lr_data_side(op, data, true));
}

lr_status lr_operator_back_f64(lr_operator *op, const double *data, double *image)
{
    return project_all(op, false, lr_data_side(op, data, true), lr_image_side(op, image, true));
}

/* --- parts --- */

/* The values' side of a checked part. */
static lr_status open_part(const struct lr_operator *op, const lr_selection *part,
                           const float *values, struct lr_side *side)
{
    LR_TRY(lr_selection_check(op->params.lors, part, op->params.log));
    *side = lr_data_side(op, values, false);
    side->count = lr_selection_count(op->params.lors, part);
    return LR_OK;
}

lr_status lr_operator_forward_part(lr_operator *op, const lr_selection *part, const float *image,
                                   float *values)
{
    struct lr_side out;
    const struct lr_side in = lr_image_side(op, image, false);
    LR_TRY(open_part(op, part, values, &out));
    if (lr_selection_is_all(part)) {
        return lr_operator_forward(op, image, values);
    }
    if (out.count == 0) {
        return LR_OK;
    }
    LR_TRY(refuse_missing(op, image, values));
    return project(&(struct projection){op, part, true}, &in, &out);
}

lr_status lr_operator_back_part(lr_operator *op, const lr_selection *part, const float *values,
                                float *image)
{
    struct lr_side in;
    const struct lr_side out = lr_image_side(op, image, false);
    LR_TRY(open_part(op, part, values, &in));
    if (lr_selection_is_all(part)) {
        return lr_operator_back(op, values, image);
    }
    LR_TRY(refuse_missing(op, in.count > 0 ? (const void *)values : image, image));
    if (in.count == 0) {
        memset(image, 0, (size_t)out.count * sizeof(*image));
        return LR_OK;
    }
    return project(&(struct projection){op, part, false}, &in, &out);
}

double lr_operator_device_seconds(const lr_operator *op)
{
    const struct lr_backend *backend = &op->backend;
    return backend->fns->device_seconds != NULL ? backend->fns->device_seconds(backend->self) : 0.0;
}
