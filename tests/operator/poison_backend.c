/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "poison_backend.h"

#include "base/log.h"
#include "fixtures.h"

struct poison {
    struct lr_backend inner;
};

/* A call of the wrapped backend. part NULL = all LORs. */
struct call {
    const struct poison *poison;
    const lr_selection *part;
    bool forward;
};

/* Calls the backend with arrays that end exactly at the end of memory, with outputs filled with NaN. in NULL stays
 * NULL: values of 1. */
static lr_status run(const struct call *call, const lr_vector *in, lr_vector *out)
{
    const size_t in_bytes = in != NULL ? (size_t)in->count * sizeof(double) : 0;
    const size_t out_bytes = (size_t)out->count * sizeof(double);
    double *in_copy = in != NULL ? malloc(in_bytes) : NULL, *out_copy = malloc(out_bytes);
    lr_status status = (in == NULL || in_copy != NULL) && out_copy != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) {
        if (in != NULL) memcpy(in_copy, in->values, in_bytes);
        for (int64_t k = 0; k < out->count; k++) out_copy[k] = NAN;
        const struct lr_backend *inner = &call->poison->inner;
        status = inner->fns->project(inner->self, call->forward, call->part,
                                     in != NULL ? vector_of(in_copy, in != NULL ? in->count : 0) : NULL,
                                     vector_of(out_copy, out->count));
        memcpy(out->values, out_copy, out_bytes);
    }
    free(in_copy);
    free(out_copy);
    return status;
}

/* The selection is copied, too, to memory that ends exactly after it. */
static lr_status project_part(const struct call *call, const lr_vector *in, lr_vector *out)
{
    const lr_selection *part = call->part;
    const size_t lors_bytes = (size_t)part->num_lors * sizeof(*part->lors);
    const size_t pairs_bytes = (size_t)part->num_pairs * sizeof(*part->pairs);
    int64_t *lors = part->lors != NULL ? malloc(lors_bytes) : NULL;
    int32_t *pairs = part->pairs != NULL ? malloc(pairs_bytes) : NULL;
    lr_status status = LR_FAILED;
    if (lors != NULL || pairs != NULL) {
        if (lors != NULL)
            memcpy(lors, part->lors, lors_bytes);
        else
            memcpy(pairs, part->pairs, pairs_bytes);
        const lr_selection copy =
            filled(lr_selection, .lors = lors, .num_lors = part->num_lors, .pairs = pairs, .num_pairs = part->num_pairs,
                   .interleave = part->interleave, .interleave_turn = part->interleave_turn);
        status = run(&(struct call){call->poison, &copy, call->forward}, in, out);
    }
    free(lors);
    free(pairs);
    return status;
}

static lr_status project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in, lr_vector *out)
{
    return (part != NULL ? project_part : run)(&(struct call){self, part, is_forward}, in, out);
}

static lr_status take_copy(void *user, const lr_row *row)
{
    const lr_row_sink *sink = user;
    const size_t count = (size_t)row->count;
    int64_t *lor = malloc(count * sizeof(*lor) + 1);
    double *probability = malloc(count * sizeof(*probability) + 1);
    lr_status status = LR_FAILED;
    if (lor != NULL && probability != NULL) {
        memcpy(lor, row->lor, count * sizeof(*lor));
        memcpy(probability, row->probability, count * sizeof(*probability));
        status = sink->take(sink->user, &(lr_row){row->row, row->count, lor, probability});
        for (size_t k = 0; k < count; k++) {
            lor[k] = -1;
            probability[k] = NAN;
        }
    }
    free(lor);
    free(probability);
    return status;
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    const struct poison *poison = self;
    lr_row_sink through = *sink;
    return poison->inner.fns->rows(poison->inner.self, wanted, &(lr_row_sink){take_copy, &through});
}

static lr_status picture(void *self, const double point_mm[3], int module, lr_pixel *pixels)
{
    const struct poison *poison = self;
    return poison->inner.fns->picture(poison->inner.self, point_mm, module, pixels);
}

static void destroy(void *self)
{
    struct poison *poison = self;
    poison->inner.fns->destroy(poison->inner.self);
    free(poison);
}

lr_status poison_create(const struct lr_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {.name = "poison",
                                              .computes_in_double = true,
                                              .has_parts = true,
                                              .project = project,
                                              .rows = rows,
                                              .picture = picture,
                                              .destroy = destroy};
    struct poison *poison = calloc(1, sizeof(*poison));
    if (poison == NULL) return LR_FAILED;
    const lr_status status = lr_cpu_backend_create(params, &poison->inner);
    if (status != LR_OK) {
        free(poison);
        return status;
    }
    backend->fns = &fns;
    backend->self = poison;
    return LR_OK;
}
