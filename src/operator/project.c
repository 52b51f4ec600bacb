/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections. Vectors are brought to the place and precision of the backend, inputs are checked for numbers that are
 * not finite, and factors are applied. If the backend cannot project parts, a part's values are taken from the values
 * of all LORs. */
#include "operator/facade.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lors/pair_window.h"
#include "model/lors/place.h"
#include "model/lors/selection.h"
#include "operator/updates.h"

#include <math.h>
#include <stdlib.h>

/* A forward or back-projection with the LORs of a part; part NULL = all LORs. */
struct projection {
    struct lr_operator *op;
    const lr_selection *part;
    bool forward;
    bool is_finite; /* true if the input is known to be finite */
};

/* --- memory --- */

/* Projections that need less memory than this are not checked. */
#define LARGE_BYTES 1e9

/* The fraction of the free memory that a projection may need. The rest is left to other programs. */
#define FREE_SHARE 0.9

lr_status lr_project_check_room(const struct lr_operator *op)
{
    const double needed = (double)op->info.num_voxels * op->backend.fns->voxel_bytes;
    if (needed < LARGE_BYTES) return LR_OK;
    const double free_bytes = FREE_SHARE * (double)lr_available_memory();
    if (needed <= free_bytes) return LR_OK;
    return lr_error(op->params.log, LR_FAILED,
                    "projections on a grid of %lld voxels need about %.3g GiB of memory on backend %s, and %.3g GiB "
                    "can be had: take at most %.2g voxels, such as edges %.2g times as long, or a part of the grid",
                    (long long)op->info.num_voxels, needed / 0x1p30, op->backend.fns->name, free_bytes / 0x1p30,
                    free_bytes / op->backend.fns->voxel_bytes, cbrt(needed / free_bytes) + 0.05);
}

/* --- checks --- */

/* Returns the index of the first number on the host that is not finite, or -1. */
static int64_t find_not_finite(const lr_vector *vector)
{
    const float *floats = vector->values;
    const double *doubles = vector->values;
    int wrong = 0; /* set without a branch, so that the compiler can vectorise the loops */
    if (vector->precision == LR_FLOAT64)
        for (int64_t k = 0; k < vector->count; k++) wrong |= !isfinite(doubles[k]);
    else
        for (int64_t k = 0; k < vector->count; k++) wrong |= !isfinite(floats[k]);
    int64_t first = wrong ? 0 : -1;
    while (wrong && isfinite(lr_number_get(vector, first))) first++;
    return first;
}

static lr_status check_input(const struct projection *p, const lr_vector *in)
{
    int64_t wrong = -1;
    if (in->values != NULL) {
        wrong = find_not_finite(in);
    } else {
        /* A device's numbers are copied to the host only if one of them is not finite. */
        lr_vector_sums sums;
        LR_TRY(lr_vector_add_up(in, NULL, &sums));
        if (sums.not_finite == 0) return LR_OK;
        lr_vector host;
        LR_TRY(lr_vector_bring(in, &(lr_vector_params){.precision = in->precision, .log = p->op->params.log}, &host));
        wrong = find_not_finite(&host);
        lr_vector_destroy(&host);
    }
    if (wrong < 0) return LR_OK;
    if (p->forward) {
        const int *size = p->op->grid.size;
        const int64_t line = wrong / size[0];
        return lr_error(p->op->params.log, LR_BAD_INPUT,
                        "voxel (%lld, %lld, %lld) of the image is not a finite number that fits the backend: replace "
                        "NaN and infinities before projecting",
                        (long long)(wrong % size[0]), (long long)(line % size[1]), (long long)(line / size[1]));
    }
    char text[160];
    const lr_lors *lors = p->op->params.lors;
    return lr_error(p->op->params.log, LR_BAD_INPUT,
                    "the value of %s is not a finite number that fits the backend: replace NaN and infinities before "
                    "back-projecting",
                    lr_lor_name(lors, lr_selection_lor(lors, p->part, wrong), text));
}

/* --- backends without parts --- */

static bool is_by_all(const struct projection *p)
{
    const struct lr_backend_fns *fns = p->op->backend.fns;
    return p->part != NULL && (!fns->has_parts || (fns->lists_by_all && p->part->lors != NULL));
}

/* Copies values between an array of the part's LORs and an array of all LORs. */
static void pick(const struct projection *p, const lr_vector *all, const lr_vector *values)
{
    struct lr_selection_walk walk = {.lors = p->op->params.lors, .selection = p->part};
    while (lr_selection_next(&walk)) {
        for (int64_t k = 0; k < walk.span.count; k++) {
            const int64_t lor = lr_span_lor(&walk.span, k);
            if (p->forward)
                lr_number_put(values, walk.position + k, lr_number_get(all, lor));
            else
                lr_number_put(all, lor, values ? lr_number_get(values, walk.position + k) : 1.0);
        }
    }
}

/* --- projections --- */

/* Projects without factors. The backend must be able to take the vectors as they are. A backend that can project parts
 * gets the part; `in` NULL then stands for 1 for each LOR. Any other backend projects all LORs. In a forward
 * projection, the part's values are copied from those of all LORs. In a back-projection, LORs outside the part have the
 * value 0. */
static lr_status call(const struct projection *p, const lr_vector *in, lr_vector *out)
{
    const struct lr_backend *backend = &p->op->backend;
    if (!is_by_all(p)) return backend->fns->project(backend->self, p->forward, p->part, in, out);
    lr_vector all;
    LR_TRY(lr_make_numbers(p->op, "LOR data in the backend's precision", p->op->info.num_lors, &all));
    if (!p->forward) pick(p, &all, in);
    const lr_status status =
        backend->fns->project(backend->self, p->forward, NULL, p->forward ? in : &all, p->forward ? &all : out);
    if (p->forward && status == LR_OK) pick(p, &all, out);
    lr_vector_destroy(&all);
    return status;
}

/* --- vectors that a backend takes --- */

/* Flags of stage(). CHANGED: the vector will be changed. SCALED: the same, by factors; its memory is kept for the next
 * back-projection. ON_THE_HOST: the vector must be on the host. */
enum { CHANGED = 1, SCALED = 2, ON_THE_HOST = 4 };

/* The largest number of values whose memory an operator keeps, 128 MiB of floats. With more values, the projection
 * takes so long that new memory costs nothing. */
enum { MOST_KEPT = 1 << 25 };

/* Sets *staged to the vector itself, or to a new vector if the backend cannot take the vector as it is or if its
 * numbers will be changed. The new vector is on the host if `vector` is, or if the backend has no place of its own.
 * Otherwise the new vector is at the backend's place, so that numbers of CUDA need not pass through the host. No
 * numbers are copied here. */
static lr_status stage(struct lr_operator *op, const lr_vector *vector, int how, lr_vector *staged)
{
    lr_place *place = vector->values == NULL && (how & ON_THE_HOST) == 0 ? op->backend.place : NULL;
    const bool is_there = place != NULL && vector->place == place;
    const bool is_taken = vector->precision == lr_precision_of(op) && (is_there || vector->values != NULL);
    *staged = *vector;
    if (is_taken && (how & (CHANGED | SCALED)) == 0) return LR_OK;
    const lr_vector_params params = {.place = place,
                                     .count = vector->count,
                                     .precision = lr_precision_of(op),
                                     .name = "numbers in the backend's precision",
                                     .log = op->params.log};
    if ((how & SCALED) == 0 || vector->count > MOST_KEPT) return lr_vector_create(&params, staged);

    /* Making a new vector takes a tenth of the time of a back-projection of a million events on a device. */
    lr_vector *kept = &op->scaled;
    const bool is_host = place == NULL;
    if (kept->count < vector->count || (kept->values != NULL) != is_host || kept->place != place) {
        lr_vector_destroy(kept);
        LR_TRY(lr_vector_create(&params, kept));
    }
    *staged = lr_vector_part(kept, 0, vector->count);
    return LR_OK;
}

static bool is_same(const lr_vector *one, const lr_vector *other)
{
    return one->storage == other->storage && one->values == other->values;
}

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

/* Projects the caller's vectors, with factors but without the resolution in image space. */
static lr_status project(const struct projection *p, const lr_vector *in, lr_vector *out)
{
    lr_vector inner_in, inner_out;
    LR_TRY(lr_project_check_room(p->op));
    const int lors = is_by_all(p) ? ON_THE_HOST : 0; /* the host copies the values of the part */
    const int scaled = lr_has_factors(p->op) ? SCALED : 0;
    LR_TRY(stage(p->op, in, p->forward ? 0 : lors | scaled, &inner_in));
    lr_status status = stage(p->op, out, p->forward ? lors : 0, &inner_out);
    if (status == LR_OK) {
        /* Values at the backend's place and in its precision are scaled while they are copied, in one pass. */
        const bool is_host = in->values != NULL, is_there = is_host || in->place == inner_in.place;
        const bool is_alike = is_there && is_host == (inner_in.values != NULL) && in->precision == inner_in.precision;
        const lr_vector *from = scaled && !p->forward && is_alike ? in : &inner_in;
        if (!is_same(in, from)) status = lr_vector_copy(in, &inner_in);
        if (status == LR_OK && !p->is_finite) status = check_input(p, from);
        if (status == LR_OK && !p->forward) status = lr_scaling_apply(p->op, p->part, from, &inner_in);
        if (status == LR_OK) status = call(p, &inner_in, &inner_out);
        if (status == LR_OK && p->forward) status = lr_scaling_apply(p->op, p->part, &inner_out, &inner_out);
        if (status == LR_OK && !is_same(out, &inner_out)) status = lr_vector_copy(&inner_out, out);
        if (!is_same(out, &inner_out)) lr_vector_destroy(&inner_out);
    }
    if (!is_same(in, &inner_in)) lr_vector_destroy(&inner_in);
    return status;
}

lr_status lr_project_forward(const struct lr_projection *wanted, const lr_vector *image, lr_vector *values)
{
    struct lr_operator *op = wanted->op;
    const lr_selection *part = lr_selection_is_all(wanted->part) ? NULL : wanted->part;
    LR_TRY(lr_selection_check(op->params.lors, wanted->part, op->params.log));
    const int64_t count = lr_selection_count(op->params.lors, part);
    if (count == 0) return LR_OK;
    LR_TRY(check_vector(op, image, op->info.num_voxels, "the image"));
    LR_TRY(check_vector(op, values, count, "the vector of LOR values"));
    const lr_vector *blurred;
    LR_TRY(lr_psf_blur(&op->psf, image, &blurred));
    return project(&(struct projection){op, part, true, wanted->is_finite}, blurred, values);
}

lr_status lr_project_back(const struct lr_projection *wanted, const lr_vector *values, lr_vector *image)
{
    struct lr_operator *op = wanted->op;
    const lr_selection *part = lr_selection_is_all(wanted->part) ? NULL : wanted->part;
    LR_TRY(lr_selection_check(op->params.lors, wanted->part, op->params.log));
    const int64_t count = lr_selection_count(op->params.lors, part);
    LR_TRY(check_vector(op, image, op->info.num_voxels, "the image"));
    if (count == 0) return lr_vector_fill(image, 0.0);
    LR_TRY(check_vector(op, values, count, "the vector of LOR values"));
    LR_TRY(project(&(struct projection){op, part, false, wanted->is_finite}, values, image));
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

/* --- sensitivities A^T n, computed in windows of LORs, so that no array holds the factors of all LORs --- */

/* The largest number of factors of a window. A window has at least one module pair, even if that has more. Windows are
 * larger for backends that need the same time for a window as for all LORs. */
#define WINDOW_LORS ((int64_t)1 << 22)
#define LARGE_WINDOW_LORS ((int64_t)1 << 26)

lr_status lr_project_blank(lr_operator *op, const lr_selection *part, lr_vector *values)
{
    const struct lr_backend *backend = &op->backend;
    if (part == NULL || part->interleave <= 1) return LR_OK;
    if (values->values == NULL) return backend->fns->blank(backend->self, part, values);
    lr_selection_blank(op->params.lors, part, values->values);
    return LR_OK;
}

/* Sets the values of the part's LORs to 1, and the values of LORs that are interleaved with these LORs to 0. Then
 * multiplies by the factors. place: place of the values; NULL = the host. */
static lr_status make_ones(struct lr_operator *op, const lr_selection *part, lr_place *place, lr_vector *values)
{
    lr_vector ones;
    lr_vector_params params = {.place = place,
                               .count = lr_selection_count(op->params.lors, part),
                               .name = "a window of LORs",
                               .log = op->params.log};
    LR_TRY(lr_vector_create(&params, &ones));
    lr_status status = lr_vector_fill(&ones, 1.0);
    if (status == LR_OK) status = lr_project_blank(op, part, &ones);
    if (status == LR_OK && lr_precision_of(op) != LR_FLOAT32) {
        params.precision = lr_precision_of(op);
        status = lr_vector_bring(&ones, &params, values);
        lr_vector_destroy(&ones);
    } else {
        *values = ones;
    }
    return status == LR_OK ? lr_scaling_apply_once(op, part, values, values) : status;
}

/* Computes the sensitivity of a part in windows of its LORs, because memory may not have room for all factors. image:
 * on the host or at the backend's place. */
static lr_status sum_windows(struct lr_operator *op, const lr_selection *part, lr_vector *image)
{
    const struct lr_backend_fns *fns = op->backend.fns;
    const lr_lors *lors = op->params.lors;
    const bool is_divided = fns->has_parts && !fns->projects_by_rows;
    const int64_t most = is_divided ? WINDOW_LORS : LARGE_WINDOW_LORS;
    const int64_t end = part->lors != NULL ? part->num_lors : part->num_pairs;
    const double num_values = (double)lr_selection_count(lors, part);
    const lr_vector_params wide = {.place = image->place,
                                   .count = image->count,
                                   .precision = LR_FLOAT64,
                                   .name = "the sensitivity",
                                   .log = op->params.log};
    int64_t done = 0;
    lr_vector total = {0};
    lr_status status = lr_vector_create(&wide, &total);
    for (int64_t begin = 0; status == LR_OK && begin < end;) {
        /* Entries of the part are added to the window as long as the window has at most `most` LORs. A window has at
         * least one entry. */
        lr_selection window = {0};
        if (part->lors != NULL) {
            window.lors = part->lors + begin;
            window.num_lors = part->num_lors - begin < most ? part->num_lors - begin : most;
        } else {
            struct lr_pair_window pairs = lr_pair_window_begin(lors, part->pairs, part->num_pairs);
            pairs.end = begin;
            (void)lr_pair_window_next(&pairs, most);
            window.pairs = part->pairs + begin;
            window.num_pairs = pairs.end - begin;
            window.interleave = part->interleave;
            window.interleave_turn = part->interleave_turn;
        }

        const int64_t count = lr_selection_count(lors, &window);
        const struct projection back = {.op = op, .part = &window};
        lr_place *place = is_by_all(&back) ? NULL : image->place;
        lr_vector values = {0}, added = {0};
        op->progress_filter.from = (double)done / num_values;
        op->progress_filter.share = (double)count / num_values;
        status = make_ones(op, &window, place, &values);
        if (status == LR_OK) status = call(&back, &values, image);
        if (status == LR_OK) status = lr_vector_bring(image, &wide, &added);
        if (status == LR_OK) status = lr_vector_add_scaled(&total, 1.0, &added);
        done += count;
        lr_vector_destroy(&added);
        lr_vector_destroy(&values);
        begin += window.num_lors + window.num_pairs;
    }
    op->progress_filter.share = 0.0;
    if (status == LR_OK) status = lr_vector_copy(&total, image);
    lr_vector_destroy(&total);
    return status;
}

/* Computes A^T n for a part; part NULL = all LORs. image: [num_voxels]; changed only if the call succeeds. */
static lr_status compute_sensitivity(struct lr_operator *op, const lr_selection *part, lr_vector *image)
{
    const int64_t num_pairs = op->params.lors->num_pairs;
    int32_t *pairs = NULL;
    lr_selection all;
    lr_vector inner;
    LR_TRY(lr_project_check_room(op));
    LR_TRY(stage(op, image, CHANGED, &inner));
    lr_status status = LR_OK;
    if (part == NULL && op->backend.fns->has_parts) { /* all LORs are passed as a part with every module pair */
        pairs = lr_alloc(num_pairs, sizeof(*pairs), "the list of pairs", op->params.log);
        for (int64_t k = 0; pairs != NULL && k < num_pairs; k++) pairs[k] = (int32_t)k;
        all = (lr_selection){.pairs = pairs, .num_pairs = num_pairs};
        part = &all;
        status = pairs != NULL ? LR_OK : LR_FAILED;
    }

    const struct projection back = {.op = op, .part = part};
    if (status == LR_OK && part == NULL) {
        lr_vector values = {0};
        status = make_ones(op, NULL, NULL, &values);
        if (status == LR_OK) status = call(&back, &values, &inner);
        lr_vector_destroy(&values);
    } else if (status == LR_OK) {
        const bool takes_ones = part->interleave <= 1 || (op->backend.fns->ones_by_angle &&
                                                          lr_turn_shift(op->params.lors, part->interleave) == 0);
        status = lr_has_factors(op) || !takes_ones ? sum_windows(op, part, &inner) : call(&back, NULL, &inner);
    }
    if (status == LR_OK) status = lr_vector_copy(&inner, image);
    lr_vector_destroy(&inner);
    free(pairs);
    return status;
}

/* Makes op->sensitivity, A^T n of all LORs, if it is empty. A list-mode operator copies it from the operator that the
 * caller has named (sensitivity_of), if there is one. Otherwise the sensitivity is computed. */
static lr_status keep_sensitivity(struct lr_operator *op)
{
    struct lr_listmode_family *listmode = op->info.of_lines ? NULL : op->listmode;
    struct lr_operator *from = listmode != NULL ? listmode->sensitivity_of : NULL;
    lr_vector made;
    if (op->sensitivity.count > 0) return LR_OK;
    LR_TRY(lr_make_sensitivity(op, &made));
    lr_status status = from != NULL ? keep_sensitivity(from) : LR_OK;
    if (status == LR_OK && from != NULL) status = lr_vector_copy(&from->sensitivity, &made);
    if (status == LR_OK && from != NULL) {
        lr_listmode_info *info = &listmode->info, *of_from = &from->listmode->info;
        info->sensitivity_lines = of_from->sensitivity_lines;
        info->sensitivity_error = of_from->sensitivity_error;
        info->sensitivity_worst = of_from->sensitivity_worst;
        info->sensitivity_left = of_from->sensitivity_left;
    } else if (listmode == NULL) {
        status = compute_sensitivity(op, NULL, &made);
    } else if (status != LR_CANCELLED && listmode->lors != NULL) {
        /* The operator computes its sensitivity itself. This also happens if the copy failed, for example because the
         * other operator's device was lost. */
        lr_vector host = {0};
        status = lr_vector_create(
            &(lr_vector_params){.count = made.count, .name = "the sensitivity", .log = op->params.log}, &host);
        status = status == LR_OK ? lr_listmode_sensitivity(op, host.values) : status;
        status = status == LR_OK ? lr_vector_copy(&host, &made) : status;
        lr_vector_destroy(&host);
    }
    if (status == LR_OK)
        op->sensitivity = made;
    else
        lr_vector_destroy(&made);
    return status;
}

lr_status lr_operator_sensitivity(lr_operator *op, const lr_selection *part, lr_vector *image)
{
    if (image == NULL || (image->values == NULL && image->storage == NULL))
        return lr_error(op->params.log, LR_USAGE, "a sensitivity needs an image to go to");
    LR_TRY(image->count == op->info.num_voxels
               ? LR_OK
               : lr_error(op->params.log, LR_USAGE, "the image has %lld numbers where the operator has %lld",
                          (long long)image->count, (long long)op->info.num_voxels));

    LR_TRY(lr_selection_check(op->params.lors, part, op->params.log));
    const int64_t count = lr_selection_count(op->params.lors, part);
    if (op->listmode != NULL && !op->info.of_lines) {
        /* The operator may copy its sensitivity from an operator of lines, which must compute it first. */
        lr_operator *from = op->listmode->sensitivity_of;
        while (from != NULL && !from->info.of_lines) from = from->listmode->sensitivity_of;
        LR_TRY(from != NULL ? keep_sensitivity(from) : LR_OK);
        LR_TRY(keep_sensitivity(op));
        /* The sensitivity of a part is approximated by the sensitivity of all LORs, times the part's fraction of the
           LORs. */
        lr_vector scaled;
        LR_TRY(lr_make_sensitivity(op, &scaled));
        lr_status status = lr_vector_fill(&scaled, (double)count / (double)op->info.num_lors);
        status = status == LR_OK ? lr_vector_multiply(&scaled, &op->sensitivity) : status;
        status = status == LR_OK ? lr_vector_copy(&scaled, image) : status;
        lr_vector_destroy(&scaled);
        LR_TRY(status);
    } else if (!lr_selection_is_all(part)) {
        LR_TRY(count == 0 ? lr_vector_fill(image, 0.0) : compute_sensitivity(op, part, image));
    } else {
        LR_TRY(keep_sensitivity(op));
        LR_TRY(lr_vector_copy(&op->sensitivity, image));
    }
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
    if (op->psf.is_on) /* each projection applies the resolution, so whole updates are impossible */
        return LR_OK;
    if (updates != NULL) LR_TRY(updates->open(op->backend.self, &whole, &has_room));
    *backend = has_room ? &op->backend : NULL;
    if (updates != NULL && !has_room) {
        lr_info(op->params.log,
                "half of the memory of %s does not hold the data of all subsets: they go there with each projection, "
                "which takes longer",
                op->info.device);
    }
    return LR_OK;
}

lr_status lr_updates_sensitivity(lr_operator *op, const lr_selection *part, lr_vector *image)
{
    const lr_listmode_info *info = lr_listmode_get_info(op);
    LR_TRY(lr_operator_sensitivity(op, part, image));
    const bool is_tube = info != NULL && info->kernel == LR_LISTMODE_TUBE && info->blobs.radius_mm == 0;
    if (!is_tube || info->tube.as_paper || op->listmode->lors == NULL) return LR_OK;
    lr_vector seen, there = {0};
    LR_TRY(
        lr_vector_create(&(lr_vector_params){.count = image->count, .name = "a mask", .log = op->params.log}, &seen));
    const float *values = seen.values;
    lr_status status = lr_vector_fill(&seen, 1.0);
    /* Its warnings came when the operator computed the sensitivity. */
    if (status == LR_OK) status = lr_listmode_cover(op, seen.values, NULL);
    int64_t k = 0;
    while (status == LR_OK && k < seen.count && values[k] > 0.0f) k++;
    if (status == LR_OK && k < seen.count) {
        const lr_vector_params like = {.place = image->place, .precision = image->precision, .log = op->params.log};
        status = lr_vector_bring(&seen, &like, &there);
        if (status == LR_OK) status = lr_vector_multiply(image, &there);
        lr_vector_destroy(&there);
    }
    lr_vector_destroy(&seen);
    return status;
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
        status = status == LR_OK ? lr_scaling_apply_once(op, data->part, &factors, &factors) : status;
        whole.factors = &factors;
    }
    if (status == LR_OK) status = op->backend.fns->updates->load(op->backend.self, subset, &whole);
    lr_vector_destroy(&factors);
    return status;
}
