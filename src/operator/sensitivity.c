/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sensitivities A^T n: in windows of LORs, so that no array holds all of them. */
#include "base/log.h"
#include "base/mem.h"
#include "model/lors/pair_window.h"
#include "model/lors/selection.h"
#include "operator/listmode_facade.h"
#include "operator/project.h"
#include "operator/scaling.h"

#include <stdlib.h>

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

/* Through single precision. */
static lr_status blank(const struct lr_operator *op, const lr_selection *part, lr_vector *values)
{
    float *kept = lr_alloc(values->count, sizeof(*kept), "a window of LORs", op->params.log);
    lr_vector host = lr_vector_of_floats(kept, values->count);
    lr_status status = kept != NULL ? lr_vector_copy(values, &host) : LR_FAILED;
    if (status == LR_OK) {
        lr_selection_blank(op->params.lors, part, kept);
        status = lr_vector_copy(&host, values);
    }
    free(kept);
    return status;
}

/* 1 for each of the LORs among so many, times their factors. */
static lr_status make_ones(const struct lr_operator *op, const lr_selection *part, int64_t count, lr_vector *values)
{
    LR_TRY(lr_make_numbers(op, "LOR data in the backend's precision", count, values));
    lr_status status = lr_vector_fill(values, 1.0);
    if (status == LR_OK && part != NULL && part->interleave > 1) status = blank(op, part, values);
    return status == LR_OK ? lr_scaling_apply_once(op, part, values) : status;
}

static lr_status add_window(struct sum *sum, const lr_selection *window)
{
    struct lr_operator *op = sum->op;
    const int64_t count = lr_selection_count(op->params.lors, window);
    lr_vector values = {0};
    sum->op->progress_filter.from = (double)sum->done / (double)sum->num_values;
    sum->op->progress_filter.share = (double)count / (double)sum->num_values;
    lr_status status = make_ones(op, window, count, &values);
    if (status == LR_OK) status = lr_project_back_part(op, window, &values, &sum->image);
    for (int64_t v = 0; status == LR_OK && v < sum->image.count; v++) sum->total[v] += lr_number_get(&sum->image, v);
    sum->done += count;
    lr_vector_destroy(&values);
    return status;
}

static lr_status add_windows(struct sum *sum)
{
    const struct lr_backend_fns *fns = sum->op->backend.fns;
    const bool is_divided = fns->has_parts && !fns->projects_by_rows;
    const int64_t most = is_divided ? WINDOW_LORS : LARGE_WINDOW_LORS;
    const int64_t end = sum->part->lors != NULL ? sum->part->num_lors : sum->part->num_pairs;
    for (int64_t begin = 0; begin < end;) {
        const lr_selection window = cut_window(sum->op->params.lors, sum->part, begin, most);
        LR_TRY(add_window(sum, &window));
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
    return lr_has_factors(op) || part->interleave > 1 ? sum_windows(op, part, image)
                                                      : lr_project_back_part(op, part, NULL, image);
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

static lr_status check_image(const struct lr_operator *op, const lr_vector *image)
{
    if (image == NULL || (image->values == NULL && image->storage == NULL))
        return lr_error(op->params.log, LR_USAGE, "a sensitivity needs an image to go to");
    return image->count == op->info.num_voxels
               ? LR_OK
               : lr_error(op->params.log, LR_USAGE, "the image has %lld numbers where the operator has %lld",
                          (long long)image->count, (long long)op->info.num_voxels);
}

/* Without the resolution. */
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
    LR_TRY(check_image(op, image));
    LR_TRY(lr_selection_check(op->params.lors, part, op->params.log));
    LR_TRY(find(op, part, image));
    return lr_psf_apply(&op->psf, image);
}
