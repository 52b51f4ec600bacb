/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The public functions of vectors. They check their arguments and call the functions of the vector's place. */
#include "device/vector.h"

#include "base/log.h"
#include "base/mem.h"
#include "device/kinds.h"
#include "device/place.h"

#include <math.h>
#include <stdlib.h>

/* The largest count of numbers that pass through the host's memory at once. */
enum { CHUNK = 1 << 18 };

/* The largest count of numbers that are converted and exchanged with CUDA at once. The count is large, because lending
 * OpenGL's memory to CUDA takes longer than copying a few numbers. */
enum { LENT_CHUNK = 1 << 24 };

static const struct lr_vector_fns *fns_of(const lr_vector *vector)
{
    return lr_vector_is_at_device(vector) ? &vector->place->fns->vectors : &lr_vector_host_fns;
}

static const lr_log *log_of(const lr_vector *vector)
{
    return vector->place != NULL ? &vector->place->log : NULL;
}

/* --- creation --- */

lr_status lr_vector_create_sized(size_t given_bytes, const lr_vector_params *given, lr_vector *vector)
{
    LR_TAKE(lr_vector_params, params, given, given_bytes);
    *vector = (lr_vector){0};
    if (params->count < 0)
        return lr_error(params->log, LR_USAGE, "a vector of %lld numbers cannot be", (long long)params->count);
    lr_vector made = {.count = params->count, .precision = params->precision, .place = params->place};
    LR_TRY(fns_of(&made)->create(params, made.count * lr_vector_size(&made), &made));
    lr_place_keep(made.place);
    *vector = made;
    return LR_OK;
}

void lr_vector_destroy(lr_vector *vector)
{
    if (vector == NULL) return;
    if (vector->storage != NULL && !vector->is_part) {
        fns_of(vector)->destroy(vector);
        lr_place_close(vector->place);
    }
    *vector = (lr_vector){0};
}

lr_vector lr_vector_part(const lr_vector *vector, int64_t begin, int64_t count)
{
    lr_vector part = *vector;
    part.is_part = true;
    begin = begin < 0 ? 0 : begin > vector->count ? vector->count : begin;
    part.count = count < 0 ? 0 : count > vector->count - begin ? vector->count - begin : count;
    if (part.values != NULL)
        part.values = (char *)part.values + begin * lr_vector_size(vector);
    else
        part.begin += begin;
    return part;
}

/* --- checks --- */

static lr_status check_counts(const lr_vector *x, const lr_vector *y)
{
    if (x->count == y->count) return LR_OK;
    const lr_log *log = log_of(x) != NULL ? log_of(x) : log_of(y);
    return lr_error(log, LR_USAGE, "vectors of %lld and %lld numbers do not go together", (long long)x->count,
                    (long long)y->count);
}

/* All host places share one memory. They differ only in their number of threads. */
static bool is_same_place(const lr_vector *x, const lr_vector *y)
{
    return x->place == y->place || (!lr_vector_is_at_device(x) && !lr_vector_is_at_device(y));
}

static lr_status check_alike(const lr_vector *x, const lr_vector *y)
{
    LR_TRY(check_counts(x, y));
    if (is_same_place(x, y) && x->precision == y->precision) return LR_OK;
    const lr_log *log = log_of(x) != NULL ? log_of(x) : log_of(y);
    return lr_error(log, LR_USAGE,
                    "vectors of different places or precisions do not go together: copy one of "
                    "them to where the other is");
}

/* --- copies --- */

static lr_status copy_at_place(const lr_vector *from, lr_vector *to)
{
    return from->precision == to->precision
               ? fns_of(to)->copy(from, to)
               : fns_of(to)->apply(&(struct lr_vector_task){.op = LR_VECTOR_CONVERT, .y = *to, .in = {from}});
}

/* Copies between OpenGL and CUDA if precisions differ. *is_done: as for `exchange` in kinds.h. */
static lr_status exchange_converted(const lr_vector *from, lr_vector *to, bool *is_done)
{
    const bool to_cuda = lr_vector_kind(to) == LR_PLACE_CUDA;
    const int64_t longest = from->count < LENT_CHUNK ? from->count : LENT_CHUNK;
    lr_vector between;
    LR_TRY(lr_vector_create(&(lr_vector_params){.place = to_cuda ? to->place : from->place,
                                                .count = longest,
                                                .precision = (to_cuda ? from : to)->precision,
                                                .name = "a copy of numbers",
                                                .log = log_of(to)},
                            &between));
    lr_status status = LR_OK;
    *is_done = true;
    for (int64_t at = 0; status == LR_OK && *is_done && at < from->count; at += longest) {
        const lr_vector source = lr_vector_part(from, at, longest);
        lr_vector target = lr_vector_part(to, at, longest);
        lr_vector piece = lr_vector_part(&between, 0, source.count);
        /* `piece` is at the CUDA place, in the precision of the OpenGL vector. */
        if (to_cuda) {
            status = to->place->fns->exchange(&source, &piece, is_done);
            if (status == LR_OK && *is_done) status = copy_at_place(&piece, &target);
        } else {
            status = copy_at_place(&source, &piece);
            if (status == LR_OK) status = from->place->fns->exchange(&piece, &target, is_done);
        }
    }
    lr_vector_destroy(&between);
    return status;
}

lr_status lr_vector_copy(const lr_vector *from, lr_vector *to)
{
    LR_TRY(check_counts(from, to));
    if (from->count == 0) return LR_OK;
    if (is_same_place(from, to)) return copy_at_place(from, to);
    if (from->precision == to->precision && !lr_vector_is_at_device(from)) return fns_of(to)->write(to, from->values);
    if (from->precision == to->precision && !lr_vector_is_at_device(to)) return fns_of(from)->read(from, to->values);
    bool is_done = false;
    if (lr_vector_is_at_device(from) && lr_vector_is_at_device(to) &&
        (lr_vector_kind(from) == LR_PLACE_CUDA || lr_vector_kind(to) == LR_PLACE_CUDA)) {
        const lr_place *cuda = lr_vector_kind(to) == LR_PLACE_CUDA ? to->place : from->place;
        LR_TRY(from->precision == to->precision ? cuda->fns->exchange(from, to, &is_done)
                                                : exchange_converted(from, to, &is_done));
    }
    if (is_done) return LR_OK;

    /* No direct copy was possible, so chunks pass through the host's memory. The host converts the numbers if
     * precisions differ. */
    const int64_t longest = from->count < CHUNK ? from->count : CHUNK;
    const lr_log *log = log_of(to) != NULL ? log_of(to) : log_of(from);
    double *numbers = lr_alloc(2 * longest, sizeof(*numbers), "a copy of numbers", log);
    lr_status status = numbers != NULL ? LR_OK : LR_FAILED;
    for (int64_t at = 0; status == LR_OK && at < from->count; at += longest) {
        const lr_vector source = lr_vector_part(from, at, longest);
        lr_vector target = lr_vector_part(to, at, longest);
        lr_vector read = {.count = source.count, .precision = source.precision, .values = numbers};
        lr_vector converted = {.count = source.count, .precision = target.precision, .values = numbers + longest};
        const bool is_converted = read.precision != converted.precision;
        if (!lr_vector_is_at_device(from)) read.values = source.values;
        if (!lr_vector_is_at_device(to)) converted.values = target.values;
        if (lr_vector_is_at_device(from)) status = fns_of(from)->read(&source, read.values);
        if (status == LR_OK && is_converted) {
            status = lr_vector_host_fns.apply(
                &(struct lr_vector_task){.op = LR_VECTOR_CONVERT, .y = converted, .in = {&read}});
        }
        if (status == LR_OK && lr_vector_is_at_device(to))
            status = fns_of(to)->write(&target, (is_converted ? &converted : &read)->values);
    }
    free(numbers);
    return status;
}

lr_status lr_vector_bring_sized(size_t given_bytes, const lr_vector *from, const lr_vector_params *given, lr_vector *to)
{
    LR_TAKE(lr_vector_params, params, given, given_bytes);
    const lr_vector wanted = {.place = params->place, .precision = params->precision};
    if (is_same_place(from, &wanted) && from->precision == wanted.precision) {
        *to = lr_vector_part(from, 0, from->count);
        return LR_OK;
    }
    lr_vector_params like = *params;
    like.count = from->count;
    LR_TRY(lr_vector_create(&like, to));
    const lr_status status = lr_vector_copy(from, to);
    if (status != LR_OK) lr_vector_destroy(to);
    return status;
}

lr_status lr_vector_work_at(const struct lr_vector_work *work, const lr_vector *in, lr_vector *out)
{
    const lr_vector wanted = {.place = work->at.place, .precision = work->at.precision};
    const bool is_there = is_same_place(out, &wanted) && out->precision == wanted.precision;
    lr_vector_params like = work->at;
    like.count = out->count;
    lr_vector from = {0}, to = lr_vector_part(out, 0, out->count);
    LR_TRY(is_there ? LR_OK : lr_vector_create(&like, &to));
    lr_status status = in != NULL ? lr_vector_bring(in, &like, &from) : LR_OK;
    if (status == LR_OK) status = work->run(work->self, in != NULL ? &from : NULL, &to);
    if (status == LR_OK && !is_there) status = lr_vector_copy(&to, out);
    lr_vector_destroy(&from);
    lr_vector_destroy(&to);
    return status;
}

/* --- element by element --- */

lr_status lr_vector_apply(const struct lr_vector_task *task)
{
    for (int k = 0; k < LR_VECTOR_INPUTS; k++) LR_TRY(task->in[k] != NULL ? check_alike(&task->y, task->in[k]) : LR_OK);
    return task->y.count > 0 ? fns_of(&task->y)->apply(task) : LR_OK;
}

lr_status lr_vector_fill(lr_vector *vector, double value)
{
    return vector->count > 0 ? fns_of(vector)->fill(vector, value) : LR_OK;
}

lr_status lr_vector_multiply(lr_vector *y, const lr_vector *x)
{
    return lr_vector_apply(&(struct lr_vector_task){.op = LR_VECTOR_MULTIPLY, .y = *y, .in = {y, x}});
}

lr_status lr_vector_divide(lr_vector *y, const lr_vector *x, double otherwise)
{
    return lr_vector_apply(&(struct lr_vector_task){.op = LR_VECTOR_DIVIDE, .y = *y, .in = {x}, .scalar = otherwise});
}

lr_status lr_vector_add_scaled(lr_vector *y, double factor, const lr_vector *x)
{
    return lr_vector_apply(&(struct lr_vector_task){.op = LR_VECTOR_ADD_SCALED, .y = *y, .in = {x}, .scalar = factor});
}

lr_status lr_vector_update_em(const lr_em_update *update)
{
    return lr_vector_apply(&(struct lr_vector_task){
        .op = LR_VECTOR_UPDATE_EM, .y = *update->next, .in = {update->x, update->correction, update->sensitivity}});
}

lr_status lr_vector_update_ramla(const lr_ramla_update *update)
{
    return lr_vector_apply(&(struct lr_vector_task){.op = LR_VECTOR_UPDATE_RAMLA,
                                                    .y = *update->next,
                                                    .in = {update->x, update->correction, update->sensitivity},
                                                    .scalar = update->lambda});
}

lr_status lr_vector_update_bsrem(const lr_bsrem_update *update)
{
    return lr_vector_apply(&(struct lr_vector_task){.op = LR_VECTOR_UPDATE_BSREM,
                                                    .y = *update->next,
                                                    .in = {update->x, update->gradient, update->scale},
                                                    .scalar = update->relaxation,
                                                    .floor = update->floor});
}

/* --- neighbours --- */

static lr_status check_size(const lr_vector *x, const int size[3])
{
    const bool is_positive = size[0] > 0 && size[1] > 0 && size[2] > 0;
    if (is_positive && (int64_t)size[0] * size[1] * size[2] == x->count) return LR_OK;
    return lr_error(log_of(x), LR_USAGE,
                    "%lld numbers are not a row of %d x %d x %d: give the sizes of the image's grid",
                    (long long)x->count, size[0], size[1], size[2]);
}

lr_status lr_vector_relative_differences(const lr_relative_differences *differences)
{
    const lr_vector *y = differences->y;
    LR_TRY(check_alike(y, differences->x));
    LR_TRY(differences->kappa != NULL ? check_alike(y, differences->kappa) : LR_OK);
    LR_TRY(check_size(differences->x, differences->size));
    return fns_of(y)->relative_differences(differences);
}

lr_status lr_vector_convolve(const lr_convolution *convolution)
{
    LR_TRY(check_alike(convolution->y, convolution->x));
    LR_TRY(check_size(convolution->x, convolution->size));
    if (convolution->axis < 0 || convolution->axis > 2 || convolution->reach < 0 ||
        convolution->reach >= LR_CONVOLUTION_REACH) {
        return lr_error(log_of(convolution->x), LR_USAGE,
                        "a convolution along axis %d that reaches %d numbers: axes are 0 to 2, and it may reach %d",
                        convolution->axis, convolution->reach, LR_CONVOLUTION_REACH - 1);
    }
    return fns_of(convolution->y)->convolve(convolution);
}

/* --- sums --- */

lr_status lr_vector_add_up(const lr_vector *x, const lr_vector *y, lr_vector_sums *sums)
{
    *sums = (lr_vector_sums){.largest = -INFINITY, .smallest = INFINITY};
    LR_TRY(y != NULL ? check_alike(x, y) : LR_OK);
    if (x->count == 0) return LR_OK;
    if (!lr_vector_is_at_device(x)) return lr_vector_host_fns.add_up(x, y != NULL ? y : x, sums);
    struct lr_later now = {.slot = LR_SLOT_NOW};
    LR_TRY(lr_place_hold(x->place));
    lr_status status = lr_vector_add_up_later(x, y, &now);
    if (status == LR_OK) status = lr_later_finish(&now);
    lr_place_release(x->place);
    *sums = now.sums;
    return status;
}

lr_status lr_vector_add_up_later(const lr_vector *x, const lr_vector *y, struct lr_later *later)
{
    *later = (struct lr_later){.slot = later->slot};
    if (!lr_vector_is_at_device(x) || x->count == 0) return lr_vector_add_up(x, y, &later->sums);
    LR_TRY(y != NULL ? check_alike(x, y) : LR_OK);
    LR_TRY(fns_of(x)->begin_sums(x, y != NULL ? y : x, later->slot));
    later->place = x->place;
    return LR_OK;
}

lr_status lr_later_finish(struct lr_later *later)
{
    double found[LR_VECTOR_NUM_SUMS] = {0};
    lr_place *place = later->place;
    if (place == NULL) return LR_OK;
    later->place = NULL;
    LR_TRY(place->fns->vectors.finish_later(place, later->slot, found));
    if (later->is_fit)
        later->fit = lr_vector_name_fit(found);
    else
        later->sums = lr_vector_name_sums(found);
    return LR_OK;
}

lr_status lr_later_send(lr_place *place, int turn)
{
    return place != NULL && place->kind != LR_PLACE_HOST ? place->fns->vectors.send_later(place, turn) : LR_OK;
}

lr_status lr_vector_add_terms(const struct lr_vector_terms *terms)
{
    const lr_vector *y = terms->y;
    const int64_t needed = terms->stride * (terms->num - 1) + y->count;
    if (fns_of(y)->add_terms == NULL) {
        return lr_error(log_of(y), LR_USAGE,
                        "numbers of ranks are added up on the host or in CUDA's memory, not in "
                        "OpenGL's: copy them there");
    }
    if (!is_same_place(y, terms->pieces) || y->precision != terms->pieces->precision || terms->stride < y->count ||
        needed > terms->pieces->count) {
        return lr_error(log_of(y), LR_USAGE, "%d pieces of %lld numbers cannot be added up where %lld are there",
                        terms->num, (long long)terms->stride, (long long)terms->pieces->count);
    }
    return y->count > 0 ? fns_of(y)->add_terms(terms) : LR_OK;
}

static lr_status check_ratio(const lr_poisson_ratio *ratio)
{
    LR_TRY(check_alike(ratio->values, ratio->measured));
    LR_TRY(ratio->additive != NULL ? check_alike(ratio->values, ratio->additive) : LR_OK);
    return ratio->values->precision == LR_FLOAT32
               ? LR_OK
               : lr_error(log_of(ratio->values), LR_USAGE, "counts are divided in float32 alone");
}

lr_status lr_vector_divide_counts(const lr_poisson_ratio *ratio, lr_poisson_fit *fit)
{
    const bool is_wanted = fit != NULL;
    lr_poisson_fit own;
    fit = is_wanted ? fit : &own;
    *fit = (lr_poisson_fit){0};
    LR_TRY(check_ratio(ratio));
    if (ratio->values->count == 0) return LR_OK;
    if (!lr_vector_is_at_device(ratio->values)) return lr_vector_host_fns.divide_counts(ratio, fit);
    struct lr_later now = {.slot = LR_SLOT_NOW};
    LR_TRY(lr_place_hold(ratio->values->place));
    lr_status status = lr_vector_divide_counts_later(ratio, &now);
    if (status == LR_OK && is_wanted) status = lr_later_finish(&now);
    lr_place_release(ratio->values->place);
    *fit = now.fit;
    return status;
}

lr_status lr_vector_divide_counts_later(const lr_poisson_ratio *ratio, struct lr_later *later)
{
    *later = (struct lr_later){.slot = later->slot, .is_fit = true};
    if (!lr_vector_is_at_device(ratio->values) || ratio->values->count == 0)
        return lr_vector_divide_counts(ratio, &later->fit);
    LR_TRY(check_ratio(ratio));
    LR_TRY(fns_of(ratio->values)->begin_fit(ratio, later->slot));
    later->place = ratio->values->place;
    return LR_OK;
}

/* --- pictures --- */

lr_status lr_vector_show(const lr_vector *image, lr_vector_texture *copy)
{
    const int64_t texels = (int64_t)copy->size[0] * copy->size[1] * copy->size[2];
    copy->done = NULL;
    if (lr_vector_kind(image) != LR_PLACE_GL || image->precision != LR_FLOAT32 || image->count != texels) {
        return lr_error(log_of(image), LR_USAGE,
                        "%lld numbers cannot be shown as %d x %d x %d texels: that takes as many, in "
                        "float32, at an OpenGL place",
                        (long long)image->count, copy->size[0], copy->size[1], copy->size[2]);
    }
    return image->place->fns->show(image, copy);
}
