/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections: vectors are taken to where the backend computes and in its precision, what goes in is
 * checked to be finite, factors are applied, and parts are picked where the backend knows only all
 * LORs. */
#include "operator/project.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lors/lor_check.h"
#include "model/lors/selection.h"
#include "operator/scaling.h"
#include "operator/updates.h"

#include <math.h>

/* What is projected: with an operator, forward or back, for all LORs (part NULL) or some. */
struct projection {
    struct lr_operator *op;
    const lr_selection *part;
    bool forward;
    bool is_finite; /* what goes in is known to be so */
};

/* --- memory --- */

/* Grids whose projections need less are not looked at. */
#define LARGE_BYTES 1e9

/* How much of the free memory they may take: others take some meanwhile. */
#define FREE_SHARE 0.9

double lr_project_bytes(const struct lr_operator *op)
{
    return (double)op->info.num_voxels * op->backend.fns->voxel_bytes;
}

lr_status lr_project_check_room(const struct lr_operator *op)
{
    const double needed = lr_project_bytes(op);
    if (needed < LARGE_BYTES) return LR_OK;
    const double free_bytes = FREE_SHARE * (double)lr_available_memory();
    if (needed <= free_bytes) return LR_OK;
    return lr_error(op->params.log, LR_FAILED,
                    "projections on a grid of %lld voxels need about %.3g GiB of memory on backend "
                    "%s, and %.3g GiB can be had: take at most %.2g voxels, such as edges %.2g times "
                    "as long, or a part of the grid",
                    (long long)op->info.num_voxels, needed / 0x1p30, op->backend.fns->name, free_bytes / 0x1p30,
                    free_bytes / op->backend.fns->voxel_bytes, cbrt(needed / free_bytes) + 0.05);
}

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

/* Numbers at a device come to the host only where one is wrong. */
static lr_status find_wrong(const struct projection *p, const lr_vector *in, int64_t *wrong)
{
    *wrong = -1;
    if (in->values != NULL) {
        *wrong = lr_numbers_find_not_finite(in);
        return LR_OK;
    }
    lr_vector_sums sums;
    LR_TRY(lr_vector_add_up(in, NULL, &sums));
    if (sums.not_finite == 0) return LR_OK;
    lr_vector host;
    LR_TRY(lr_vector_create(
        &(lr_vector_params){.count = in->count, .precision = in->precision, .log = p->op->params.log}, &host));
    const lr_status status = lr_vector_copy(in, &host);
    *wrong = status == LR_OK ? lr_numbers_find_not_finite(&host) : -1;
    lr_vector_destroy(&host);
    return status;
}

static lr_status check_input(const struct projection *p, const lr_vector *in)
{
    int64_t wrong;
    LR_TRY(find_wrong(p, in, &wrong));
    if (wrong < 0) return LR_OK;
    return p->forward ? report_voxel(p->op, wrong)
                      : report_lor(p->op, lr_selection_lor(p->op->params.lors, p->part, wrong));
}

/* --- parts by all --- */

static bool is_by_all(const struct projection *p)
{
    const struct lr_backend_fns *fns = p->op->backend.fns;
    return p->part != NULL && (!fns->has_parts || (fns->lists_by_all && p->part->lors != NULL));
}

/* Copies values between their places in a part and among all LORs. */
static void pick(const struct projection *p, const lr_vector *all, const lr_vector *values)
{
    struct lr_selection_walk walk = {.lors = p->op->params.lors, .selection = p->part};
    while (lr_selection_next(&walk)) {
        for (int64_t k = 0; k < walk.span.count; k++) {
            const int64_t lor = walk.span.numbers ? walk.span.numbers[k] : walk.span.first + k;
            if (p->forward)
                lr_number_put(values, walk.position + k, lr_number_get(all, lor));
            else
                lr_number_put(all, lor, values ? lr_number_get(values, walk.position + k) : 1.0);
        }
    }
}

lr_status lr_make_numbers(const struct lr_operator *op, const char *name, int64_t count, lr_vector *vector)
{
    return lr_vector_create(
        &(lr_vector_params){.count = count, .precision = lr_precision_of(op), .name = name, .log = op->params.log},
        vector);
}

/* A projection of all LORs of which only those of the part are taken. Back, in NULL: values of 1. */
static lr_status part_by_all(const struct projection *p, const lr_vector *in, lr_vector *out)
{
    const struct lr_backend *backend = &p->op->backend;
    lr_vector all;
    LR_TRY(lr_make_numbers(p->op, "LOR data in the backend's precision", p->op->info.num_lors, &all));
    lr_status status;
    if (p->forward) {
        status = backend->fns->forward(backend->self, NULL, in, &all);
        if (status == LR_OK) pick(p, &all, out);
    } else {
        pick(p, &all, in);
        status = backend->fns->back(backend->self, NULL, &all, out);
    }
    lr_vector_destroy(&all);
    return status;
}

lr_status lr_project_back_part(struct lr_operator *op, const lr_selection *part, const lr_vector *values,
                               lr_vector *image)
{
    const struct lr_backend *backend = &op->backend;
    const struct projection p = {op, part, false, false};
    if (is_by_all(&p)) return part_by_all(&p, values, image);
    return backend->fns->back(backend->self, part, values, image);
}

/* --- projections --- */

static lr_status call(const struct projection *p, const lr_vector *in, lr_vector *out)
{
    const struct lr_backend *backend = &p->op->backend;
    if (is_by_all(p)) return part_by_all(p, in, out);
    return p->forward ? backend->fns->forward(backend->self, p->part, in, out)
                      : backend->fns->back(backend->self, p->part, in, out);
}

/* in and out are such as the backend takes; in back projections with factors, `in` is ours. */
static lr_status run(const struct projection *p, lr_vector *in, lr_vector *out)
{
    LR_TRY(p->is_finite ? LR_OK : check_input(p, in));
    if (p->forward) {
        LR_TRY(call(p, in, out));
        return lr_scaling_apply(p->op, p->part, out);
    }
    LR_TRY(lr_scaling_apply(p->op, p->part, in));
    return call(p, in, out);
}

/* --- vectors such as the backend takes --- */

static bool is_taken(const struct lr_operator *op, const lr_vector *vector)
{
    const bool is_there = vector->values != NULL || vector->place == op->backend.place;
    return is_there && vector->precision == lr_precision_of(op);
}

enum { CHANGED = 1, ON_THE_HOST = 2 };

/* The vector itself, or a new one, which it must be when it is going to be changed: where the caller
 * has it, if the backend computes there, else on the host. */
static lr_status stage(const struct lr_operator *op, const lr_vector *vector, int how, lr_vector *staged)
{
    const bool is_there = vector->values == NULL && vector->place == op->backend.place && (how & ON_THE_HOST) == 0;
    *staged = *vector;
    if (is_taken(op, vector) && (how & CHANGED) == 0 && (is_there || vector->values != NULL)) return LR_OK;
    return lr_vector_create(&(lr_vector_params){.place = is_there ? vector->place : NULL,
                                                .count = vector->count,
                                                .precision = lr_precision_of(op),
                                                .name = "numbers in the backend's precision",
                                                .log = op->params.log},
                            staged);
}

static bool is_same(const lr_vector *one, const lr_vector *other)
{
    return one->storage == other->storage && one->values == other->values;
}

static void unstage(const lr_vector *vector, lr_vector *staged)
{
    if (!is_same(vector, staged)) lr_vector_destroy(staged);
}

static lr_status project(const struct projection *p, const lr_vector *in, lr_vector *out)
{
    lr_vector inner_in, inner_out;
    LR_TRY(lr_project_check_room(p->op));
    const int lors = is_by_all(p) ? ON_THE_HOST : 0; /* where they are picked */
    const int scaled = lr_has_factors(p->op) ? CHANGED : 0;
    LR_TRY(stage(p->op, in, p->forward ? 0 : lors | scaled, &inner_in));
    lr_status status = stage(p->op, out, p->forward ? lors : 0, &inner_out);
    if (status == LR_OK) {
        status = is_same(in, &inner_in) ? LR_OK : lr_vector_copy(in, &inner_in);
        status = status == LR_OK ? run(p, &inner_in, &inner_out) : status;
        if (status == LR_OK && !is_same(out, &inner_out)) status = lr_vector_copy(&inner_out, out);
        unstage(out, &inner_out);
    }
    unstage(in, &inner_in);
    return status;
}

/* --- the caller's side --- */

static bool is_missing(const lr_vector *vector)
{
    return vector == NULL || (vector->values == NULL && vector->storage == NULL);
}

static lr_status check_vector(const struct lr_operator *op, const lr_vector *vector, int64_t count, const char *what)
{
    if (is_missing(vector))
        return lr_error(op->params.log, LR_USAGE, "a projection needs an image and a data array: %s is missing", what);
    if (vector->count != count) {
        return lr_error(op->params.log, LR_USAGE, "%s has %lld numbers where the operator has %lld", what,
                        (long long)vector->count, (long long)count);
    }
    return LR_OK;
}

/* *part becomes NULL for all LORs. *count: how many are meant. */
static lr_status settle(const struct lr_operator *op, const lr_selection **part, int64_t *count)
{
    const lr_selection all = {0};
    LR_TRY(lr_selection_check(op->params.lors, *part != NULL ? *part : &all, op->params.log));
    if (*part == NULL || lr_selection_is_all(*part)) {
        *part = NULL;
        *count = op->info.num_lors;
    } else {
        *count = lr_selection_count(op->params.lors, *part);
    }
    return LR_OK;
}

lr_status lr_project_forward(const struct lr_projection *wanted, const lr_vector *image, lr_vector *values)
{
    struct lr_operator *op = wanted->op;
    struct projection p = {op, wanted->part, true, wanted->is_finite};
    int64_t count;
    LR_TRY(settle(op, &p.part, &count));
    if (count == 0) return LR_OK;
    LR_TRY(check_vector(op, image, op->info.num_voxels, "the image"));
    LR_TRY(check_vector(op, values, count, "the vector of LOR values"));
    const lr_vector *blurred;
    LR_TRY(lr_psf_blur(&op->psf, image, &blurred));
    return project(&p, blurred, values);
}

lr_status lr_project_back(const struct lr_projection *wanted, const lr_vector *values, lr_vector *image)
{
    struct lr_operator *op = wanted->op;
    struct projection p = {op, wanted->part, false, wanted->is_finite};
    int64_t count;
    LR_TRY(settle(op, &p.part, &count));
    LR_TRY(check_vector(op, image, op->info.num_voxels, "the image"));
    if (count == 0) return lr_vector_fill(image, 0.0);
    LR_TRY(check_vector(op, values, count, "the vector of LOR values"));
    LR_TRY(project(&p, values, image));
    return lr_psf_apply(&op->psf, image);
}

lr_status lr_operator_forward(lr_operator *op, const lr_selection *part, const lr_vector *image, lr_vector *values)
{
    return lr_project_forward(&(struct lr_projection){.op = op, .part = part}, image, values);
}

lr_status lr_operator_back(lr_operator *op, const lr_selection *part, const lr_vector *values, lr_vector *image)
{
    return lr_project_back(&(struct lr_projection){.op = op, .part = part}, values, image);
}

lr_place *lr_operator_place(const lr_operator *op)
{
    return op->backend.place;
}

int lr_operator_device_passes(const lr_operator *op, lr_device_pass *passes)
{
    const struct lr_backend *backend = &op->backend;
    return backend->fns->device_passes != NULL ? backend->fns->device_passes(backend->self, passes) : 0;
}

double lr_operator_device_seconds(const lr_operator *op)
{
    const struct lr_backend *backend = &op->backend;
    return backend->fns->device_seconds != NULL ? backend->fns->device_seconds(backend->self) : 0.0;
}

bool lr_updates_device_clock(const lr_operator *op, double *seconds)
{
    const struct lr_backend *backend = &op->backend;
    *seconds = backend->fns->device_clock != NULL ? backend->fns->device_clock(backend->self) : 0.0;
    return backend->fns->device_clock != NULL;
}
