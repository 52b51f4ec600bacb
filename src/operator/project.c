/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections: conversion between the caller's and the backend's precision, and the check that
 * what goes in is finite. */
#include "operator/facade.h"

#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One side of a projection: the image or the data, float or double. */
struct side {
    const char *name;
    int64_t count;
    bool is_double;
    void *values;
};

/* Values looked at before the answer is read: the loop inside has no branch. */
enum { BLOCK = 4096 };

static bool block_is_finite(const struct side *side, int64_t begin, int64_t end)
{
    int wrong = 0;
    if (side->is_double) {
        const double *values = side->values;
        for (int64_t k = begin; k < end; k++) {
            wrong |= !isfinite(values[k]);
        }
    } else {
        const float *values = side->values;
        for (int64_t k = begin; k < end; k++) {
            wrong |= !isfinite(values[k]);
        }
    }
    return !wrong;
}

/* The first value that is not finite, or -1. */
static int64_t find_not_finite(const struct side *side)
{
    for (int64_t begin = 0; begin < side->count; begin += BLOCK) {
        const int64_t end = begin + BLOCK < side->count ? begin + BLOCK : side->count;
        if (block_is_finite(side, begin, end)) {
            continue;
        }
        for (int64_t k = begin; k < end; k++) {
            if (!block_is_finite(side, k, k + 1)) {
                return k;
            }
        }
    }
    return -1;
}

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
    const lr_lor lor = lr_lors_describe(op->params.lors, number);
    return lr_error(op->params.log, LR_BAD_INPUT,
                    "the value of LOR %lld (crystal %d, %d of module %d with crystal %d, %d of "
                    "module %d) is not a finite number that fits the backend: replace NaN and "
                    "infinities before back-projecting",
                    (long long)number, lor.p, lor.q, lor.module_i, lor.r, lor.s, lor.module_j);
}

static void convert(const struct side *from, const struct side *to)
{
    if (from->is_double) {
        const double *in = from->values;
        float *out = to->values;
        for (int64_t k = 0; k < from->count; k++) {
            out[k] = (float)in[k];
        }
    } else {
        const float *in = from->values;
        double *out = to->values;
        for (int64_t k = 0; k < from->count; k++) {
            out[k] = in[k];
        }
    }
}

/* `side` in the backend's precision: the same array, or a new one to be freed when `owned`. */
static lr_status side_at_door(const struct lr_operator *op, const struct side *side,
                              struct side *inner)
{
    *inner = *side;
    inner->is_double = op->backend.fns->computes_in_double;
    if (inner->is_double == side->is_double) {
        return LR_OK;
    }
    const size_t size = inner->is_double ? sizeof(double) : sizeof(float);
    inner->values = lr_alloc(side->count, size, side->name, op->params.log);
    return inner->values == NULL ? LR_FAILED : LR_OK;
}

static void leave_door(const struct side *side, const struct side *inner)
{
    if (inner->values != side->values) {
        free(inner->values);
    }
}

static lr_status check_input(const struct lr_operator *op, const struct side *in, bool forward)
{
    const int64_t wrong = find_not_finite(in);
    if (wrong < 0) {
        return LR_OK;
    }
    return forward ? report_voxel(op, wrong) : report_lor(op, wrong);
}

static lr_status run(const struct lr_operator *op, const struct side *in, const struct side *out,
                     bool forward)
{
    const struct lr_backend *backend = &op->backend;
    LR_TRY(check_input(op, in, forward));
    return forward ? backend->fns->forward(backend->self, in->values, out->values)
                   : backend->fns->back(backend->self, in->values, out->values);
}

static lr_status project(const struct lr_operator *op, const struct side *in,
                         const struct side *out, bool forward)
{
    if (in->values == NULL || out->values == NULL) {
        return lr_error(op->params.log, LR_USAGE, "a projection needs an image and a data array");
    }
    struct side inner_in, inner_out;
    LR_TRY(side_at_door(op, in, &inner_in));
    lr_status status = side_at_door(op, out, &inner_out);
    if (status == LR_OK) {
        if (inner_in.values != in->values) {
            convert(in, &inner_in);
        }
        status = run(op, &inner_in, &inner_out, forward);
        if (status == LR_OK && inner_out.values != out->values) {
            convert(&inner_out, out);
        }
        leave_door(out, &inner_out);
    }
    leave_door(in, &inner_in);
    return status;
}

static struct side image_side(const struct lr_operator *op, const void *values, bool is_double)
{
    return (struct side){"an image in the backend's precision", op->info.num_voxels, is_double,
                         (void *)(uintptr_t)values};
}

static struct side data_side(const struct lr_operator *op, const void *values, bool is_double)
{
    return (struct side){"LOR data in the backend's precision", op->info.num_lors, is_double,
                         (void *)(uintptr_t)values};
}

static lr_status project_forward(const struct lr_operator *op, const void *image, void *data,
                                 bool is_double)
{
    const struct side in = image_side(op, image, is_double);
    const struct side out = data_side(op, data, is_double);
    return project(op, &in, &out, true);
}

static lr_status project_back(const struct lr_operator *op, const void *data, void *image,
                              bool is_double)
{
    const struct side in = data_side(op, data, is_double);
    const struct side out = image_side(op, image, is_double);
    return project(op, &in, &out, false);
}

/* The value is kept only when it is complete. */
static lr_status compute_sensitivity(struct lr_operator *op)
{
    float *ones = lr_alloc(op->info.num_lors, sizeof(*ones), "LOR data of ones", op->params.log);
    float *image = lr_alloc(op->info.num_voxels, sizeof(*image), "the sensitivity", op->params.log);
    lr_status status = ones == NULL || image == NULL ? LR_FAILED : LR_OK;
    if (status == LR_OK) {
        for (int64_t k = 0; k < op->info.num_lors; k++) {
            ones[k] = 1.0f;
        }
        status = project_back(op, ones, image, false);
    }
    free(ones);
    if (status == LR_OK) {
        op->sensitivity = image;
    } else {
        free(image);
    }
    return status;
}

lr_status lr_operator_forward(lr_operator *op, const float *image, float *data)
{
    return project_forward(op, image, data, false);
}

lr_status lr_operator_back(lr_operator *op, const float *data, float *image)
{
    return project_back(op, data, image, false);
}

lr_status lr_operator_forward_f64(lr_operator *op, const double *image, double *data)
{
    return project_forward(op, image, data, true);
}

lr_status lr_operator_back_f64(lr_operator *op, const double *data, double *image)
{
    return project_back(op, data, image, true);
}

lr_status lr_operator_sensitivity(lr_operator *op, float *image)
{
    if (image == NULL) {
        return lr_error(op->params.log, LR_USAGE, "the sensitivity needs an image to go to");
    }
    if (op->sensitivity == NULL) {
        LR_TRY(compute_sensitivity(op));
    }
    memcpy(image, op->sensitivity, (size_t)op->info.num_voxels * sizeof(*image));
    return LR_OK;
}
