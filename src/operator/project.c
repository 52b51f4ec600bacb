/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections: vectors are taken to where the backend computes and in its precision, what goes in is
 * checked to be finite, factors are applied, and parts are picked where the backend knows only all
 * LORs. */
#include "operator/facade.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lors/lor_check.h"
#include "model/lors/pair_window.h"
#include "model/lors/selection.h"
#include "operator/families.h"
#include "operator/updates.h"

#include <math.h>
#include <stdlib.h>

/* Values looked at before the answer is read: the loop inside has no branch. */
enum { BLOCK = 4096 };

static bool block_is_finite(const lr_vector *vector, int64_t begin, int64_t end)
{
    int wrong = 0;
    if (vector->precision == LR_FLOAT64) {
        const double *values = vector->values;
        for (int64_t k = begin; k < end; k++) wrong |= !isfinite(values[k]);
    } else {
        const float *values = vector->values;
        for (int64_t k = begin; k < end; k++) wrong |= !isfinite(values[k]);
    }
    return !wrong;
}

/* The first number that is not finite, or -1. */
static int64_t numbers_find_not_finite(const lr_vector *vector)
{
    for (int64_t begin = 0; begin < vector->count; begin += BLOCK) {
        const int64_t end = begin + BLOCK < vector->count ? begin + BLOCK : vector->count;
        if (block_is_finite(vector, begin, end)) continue;
        for (int64_t k = begin; k < end; k++)
            if (!block_is_finite(vector, k, k + 1)) return k;
    }
    return -1;
}

/* A projection with an operator, forward or back, of all LORs (part NULL) or some. */
struct projection {
    struct lr_operator *op;
    const lr_selection *part;
    bool forward;
    bool is_finite; /* what goes in is known to be so */
};

/* --- memory --- */

/* Grids whose projections need less are not looked at. */
#define LARGE_BYTES 1e9

/* Share of the free memory that projections may take: other programs take some meanwhile. */
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
        *wrong = numbers_find_not_finite(in);
        return LR_OK;
    }
    lr_vector_sums sums;
    LR_TRY(lr_vector_add_up(in, NULL, &sums));
    if (sums.not_finite == 0) return LR_OK;
    lr_vector host;
    LR_TRY(lr_vector_create(
        &(lr_vector_params){.count = in->count, .precision = in->precision, .log = p->op->params.log}, &host));
    const lr_status status = lr_vector_copy(in, &host);
    *wrong = status == LR_OK ? numbers_find_not_finite(&host) : -1;
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

/* image = A^T values, without factors: by the backend, or, where it has no parts, with an array of
 * all LORs that are zero outside the part. part: checked, not empty, not all. values, image: such
 * as the backend takes, on the host; values NULL: 1 for each. */
static lr_status project_back_part(struct lr_operator *op, const lr_selection *part, const lr_vector *values,
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

static lr_status check_vector(const struct lr_operator *op, const lr_vector *vector, int64_t count, const char *what)
{
    if (vector == NULL || (vector->values == NULL && vector->storage == NULL))
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

/* Sensitivities A^T n: in windows of LORs, so that no array holds all of them. */

/* Factors held at a time; a module pair is not divided. Where every window costs as much as all
 * LORs, fewer and larger ones. */
#define WINDOW_LORS ((int64_t)1 << 22)
#define LARGE_WINDOW_LORS ((int64_t)1 << 26)

/* Entries of `part` from `begin` on whose LORs are at most `most`, at least one entry. */
static lr_selection cut_window(const lr_lors *lors, const lr_selection *part, int64_t begin, int64_t most)
{
    lr_selection window = {0};
    if (part->lors != NULL) {
        const int64_t left = part->num_lors - begin;
        window.lors = part->lors + begin;
        window.num_lors = left < most ? left : most;
        return window;
    }
    struct lr_pair_window pairs = lr_pair_window_begin(lors, part->pairs, part->num_pairs);
    pairs.end = begin;
    (void)lr_pair_window_next(&pairs, most);
    window.pairs = part->pairs + begin;
    window.num_pairs = pairs.end - begin;
    window.interleave = part->interleave;
    window.interleave_turn = part->interleave_turn;
    return window;
}

struct sum {
    struct lr_operator *op;
    const lr_selection *part; /* checked, not empty, not all */
    lr_vector image;          /* of one window, on the host */
    double *total;            /* [num_voxels] */
    int64_t done, num_values;
};

/* 1 for each LOR of the part and 0 for those interleaved with them, times their factors. */
static lr_status make_ones(const struct lr_operator *op, const lr_selection *part, int64_t count, lr_vector *values)
{
    LR_TRY(lr_make_numbers(op, "LOR data in the backend's precision", count, values));
    lr_status status = LR_OK;
    if (part != NULL && part->interleave > 1) {
        float *ones = lr_alloc(count, sizeof(*ones), "a window of LORs", op->params.log);
        if (ones == NULL) return LR_FAILED;
        for (int64_t k = 0; k < count; k++) ones[k] = 1.0f;
        lr_selection_blank(op->params.lors, part, ones);
        const lr_vector host = lr_vector_of_floats(ones, count);
        status = lr_vector_copy(&host, values);
        free(ones);
    } else {
        status = lr_vector_fill(values, 1.0);
    }
    return status == LR_OK ? lr_scaling_apply_once(op, part, values) : status;
}

static lr_status add_windows(struct sum *sum)
{
    const struct lr_backend_fns *fns = sum->op->backend.fns;
    const bool is_divided = fns->has_parts && !fns->projects_by_rows;
    const int64_t most = is_divided ? WINDOW_LORS : LARGE_WINDOW_LORS;
    const int64_t end = sum->part->lors != NULL ? sum->part->num_lors : sum->part->num_pairs;
    for (int64_t begin = 0; begin < end;) {
        const lr_selection window = cut_window(sum->op->params.lors, sum->part, begin, most);
        struct lr_operator *op = sum->op;
        const int64_t count = lr_selection_count(op->params.lors, &window);
        lr_vector values = {0};
        sum->op->progress_filter.from = (double)sum->done / (double)sum->num_values;
        sum->op->progress_filter.share = (double)count / (double)sum->num_values;
        lr_status status = make_ones(op, &window, count, &values);
        if (status == LR_OK) status = project_back_part(op, &window, &values, &sum->image);
        for (int64_t v = 0; status == LR_OK && v < sum->image.count; v++)
            sum->total[v] += lr_number_get(&sum->image, v);
        sum->done += count;
        lr_vector_destroy(&values);
        LR_TRY(status);

        begin += window.num_lors + window.num_pairs;
    }
    return LR_OK;
}

static lr_status sum_windows(struct lr_operator *op, const lr_selection *part, lr_vector *image)
{
    struct sum sum = {.op = op, .part = part, .image = *image, .num_values = lr_selection_count(op->params.lors, part)};
    sum.total = lr_alloc(image->count, sizeof(*sum.total), "the sensitivity", op->params.log);
    lr_status status = sum.total != NULL ? add_windows(&sum) : LR_FAILED;
    op->progress_filter.share = 0.0;
    for (int64_t v = 0; status == LR_OK && v < image->count; v++) lr_number_put(image, v, sum.total[v]);
    free(sum.total);
    return status;
}

/* All LORs at once, where the backend knows no parts. */
static lr_status sum_all(const struct lr_operator *op, lr_vector *image)
{
    lr_vector values = {0};
    lr_status status = make_ones(op, NULL, op->info.num_lors, &values);
    if (status == LR_OK) status = op->backend.fns->back(op->backend.self, NULL, &values, image);
    lr_vector_destroy(&values);
    return status;
}

/* A^T n of a part, in the backend's precision. */
static lr_status sum_part(struct lr_operator *op, const lr_selection *part, lr_vector *image)
{
    const bool takes_ones = part->interleave <= 1 || op->backend.fns->ones_by_angle;
    return lr_has_factors(op) || !takes_ones ? sum_windows(op, part, image) : project_back_part(op, part, NULL, image);
}

/* Every module pair: all LORs as a part. */
static lr_status sum_pairs(struct lr_operator *op, lr_vector *image)
{
    const int64_t num_pairs = op->params.lors->num_pairs;
    int32_t *pairs = lr_alloc(num_pairs, sizeof(*pairs), "the list of pairs", op->params.log);
    if (pairs == NULL) return LR_FAILED;
    for (int64_t k = 0; k < num_pairs; k++) pairs[k] = (int32_t)k;
    const lr_status status = sum_part(op, &(lr_selection){.pairs = pairs, .num_pairs = num_pairs}, image);
    free(pairs);
    return status;
}

static lr_status compute(struct lr_operator *op, const lr_selection *part, lr_vector *image)
{
    if (part != NULL) return sum_part(op, part, image);
    return op->backend.fns->has_parts ? sum_pairs(op, image) : sum_all(op, image);
}

/* image: [num_voxels]; touched only when all is well. */
static lr_status compute_sensitivity(struct lr_operator *op, const lr_selection *part, lr_vector *image)
{
    lr_vector inner;
    LR_TRY(lr_project_check_room(op));
    LR_TRY(lr_make_numbers(op, "an image in the backend's precision", op->info.num_voxels, &inner));
    lr_status status = compute(op, part, &inner);
    if (status == LR_OK) status = lr_vector_copy(&inner, image);
    lr_vector_destroy(&inner);
    return status;
}

static lr_status keep_sensitivity(struct lr_operator *op)
{
    float *values = lr_alloc(op->info.num_voxels, sizeof(*values), "the sensitivity", op->params.log);
    if (values == NULL) return LR_FAILED;
    lr_vector image = lr_vector_of_floats(values, op->info.num_voxels);
    const lr_status status = compute_sensitivity(op, NULL, &image);
    if (status == LR_OK)
        op->sensitivity = values;
    else
        free(values);
    return status;
}

/* Finds the sensitivity without the resolution. */
static lr_status find(lr_operator *op, const lr_selection *part, lr_vector *image)
{
    if (op->listmode != NULL) return lr_listmode_sensitivity(op, part, image);
    if (!lr_selection_is_all(part)) {
        return lr_selection_count(op->params.lors, part) == 0 ? lr_vector_fill(image, 0.0)
                                                              : compute_sensitivity(op, part, image);
    }
    if (op->sensitivity == NULL) LR_TRY(keep_sensitivity(op));
    const lr_vector kept = lr_vector_of_floats(op->sensitivity, op->info.num_voxels);
    return lr_vector_copy(&kept, image);
}

lr_status lr_operator_sensitivity(lr_operator *op, const lr_selection *part, lr_vector *image)
{
    const lr_selection all = {0};
    part = part != NULL ? part : &all;
    if (image == NULL || (image->values == NULL && image->storage == NULL))
        return lr_error(op->params.log, LR_USAGE, "a sensitivity needs an image to go to");
    LR_TRY(image->count == op->info.num_voxels
               ? LR_OK
               : lr_error(op->params.log, LR_USAGE, "the image has %lld numbers where the operator has %lld",
                          (long long)image->count, (long long)op->info.num_voxels));

    LR_TRY(lr_selection_check(op->params.lors, part, op->params.log));
    LR_TRY(find(op, part, image));
    return lr_psf_apply(&op->psf, image);
}

/* --- whole updates --- */

lr_status lr_updates_open(lr_operator *op, const struct lr_update_plan *plan, const struct lr_backend **backend)
{
    const struct lr_backend_updates *updates = op->backend.fns->updates;
    struct lr_update_plan whole = *plan;
    bool has_room = false;
    whole.has_factors = lr_has_factors(op);
    *backend = NULL;
    if (op->psf.is_on) /* between images and the backend, with each projection */
        return LR_OK;
    if (updates != NULL) LR_TRY(updates->open(op->backend.self, &whole, &has_room));
    *backend = has_room ? &op->backend : NULL;
    if (updates != NULL && !has_room) {
        lr_info(op->params.log,
                "half of the memory of %s does not hold the data of all subsets: they go there with "
                "each projection, which takes longer",
                op->info.device);
    }
    return LR_OK;
}

lr_status lr_updates_load(lr_operator *op, int subset, const struct lr_update_data *data)
{
    lr_vector factors = {0};
    struct lr_update_data whole = *data;
    whole.factors = NULL;
    lr_status status = LR_OK;
    if (lr_has_factors(op)) {
        status = lr_vector_create(
            &(lr_vector_params){.count = data->measured->count, .name = "factors of LORs", .log = op->params.log},
            &factors);
        status = status == LR_OK ? lr_vector_fill(&factors, 1.0) : status;
        status = status == LR_OK ? lr_scaling_apply_once(op, data->part, &factors) : status;
        whole.factors = &factors;
    }
    if (status == LR_OK) status = op->backend.fns->updates->load(op->backend.self, subset, &whole);
    lr_vector_destroy(&factors);
    return status;
}
