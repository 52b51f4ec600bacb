/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "poison_backend.h"

#include "base/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct poison {
    struct lr_backend inner;
    const lr_lors *lors;
    int64_t num_voxels;
};

/* What is asked of the backend inside; part NULL = all LORs. */
struct call {
    const struct poison *poison;
    const lr_selection *part;
    bool forward;
};

static lr_status run(const struct call *call, const double *in, double *out)
{
    const struct lr_backend_fns *fns = call->poison->inner.fns;
    void *self = call->poison->inner.self;
    if (call->part != NULL) {
        return call->forward ? fns->forward_part(self, call->part, in, out)
                             : fns->back_part(self, call->part, in, out);
    }
    return call->forward ? fns->forward(self, in, out) : fns->back(self, in, out);
}

/* in NULL stays NULL: values of 1. */
static lr_status project(const struct call *call, const void *in, void *out)
{
    const struct poison *poison = call->poison;
    const int64_t num_values =
        call->part ? lr_selection_count(poison->lors, call->part) : poison->lors->count;
    const int64_t num_in = call->forward ? poison->num_voxels : num_values;
    const int64_t num_out = call->forward ? num_values : poison->num_voxels;
    double *in_copy = in != NULL ? malloc((size_t)num_in * sizeof(double)) : NULL;
    double *out_copy = malloc((size_t)num_out * sizeof(double));
    lr_status status = (in == NULL || in_copy != NULL) && out_copy != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) {
        if (in != NULL) {
            memcpy(in_copy, in, (size_t)num_in * sizeof(double));
        }
        for (int64_t k = 0; k < num_out; k++) {
            out_copy[k] = NAN;
        }
        status = run(call, in_copy, out_copy);
        memcpy(out, out_copy, (size_t)num_out * sizeof(double));
    }
    free(in_copy);
    free(out_copy);
    return status;
}

static lr_status forward(void *self, const void *image, void *data)
{
    return project(&(struct call){self, NULL, true}, image, data);
}

static lr_status back(void *self, const void *data, void *image)
{
    return project(&(struct call){self, NULL, false}, data, image);
}

/* The selection too is a copy that ends where it ends. */
static lr_status project_part(const struct poison *poison, bool forward_part,
                              const lr_selection *part, const void *arrays[2])
{
    const size_t lors_bytes = (size_t)part->num_lors * sizeof(*part->lors);
    const size_t pairs_bytes = (size_t)part->num_pairs * sizeof(*part->pairs);
    int64_t *lors = part->lors != NULL ? malloc(lors_bytes) : NULL;
    int32_t *pairs = part->pairs != NULL ? malloc(pairs_bytes) : NULL;
    lr_status status = LR_FAILED;
    if (lors != NULL || pairs != NULL) {
        if (lors != NULL) {
            memcpy(lors, part->lors, lors_bytes);
        } else {
            memcpy(pairs, part->pairs, pairs_bytes);
        }
        const lr_selection copy = {lors, part->num_lors, pairs, part->num_pairs};
        status = project(&(struct call){poison, &copy, forward_part}, arrays[0],
                         (void *)(uintptr_t)arrays[1]);
    }
    free(lors);
    free(pairs);
    return status;
}

static lr_status forward_part(void *self, const lr_selection *part, const void *image, void *values)
{
    return project_part(self, true, part, (const void *[2]){image, values});
}

static lr_status back_part(void *self, const lr_selection *part, const void *values, void *image)
{
    return project_part(self, false, part, (const void *[2]){values, image});
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
        const lr_row copy = {row->row, row->count, lor, probability};
        status = sink->take(sink->user, &copy);
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
    const lr_row_sink outer = {take_copy, &through};
    return poison->inner.fns->rows(poison->inner.self, wanted, &outer);
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
                                              .forward = forward,
                                              .back = back,
                                              .rows = rows,
                                              .picture = picture,
                                              .forward_part = forward_part,
                                              .back_part = back_part,
                                              .destroy = destroy};
    struct poison *poison = calloc(1, sizeof(*poison));
    if (poison == NULL) {
        return LR_FAILED;
    }
    const lr_status status = lr_cpu_backend_create(params, &poison->inner);
    if (status != LR_OK) {
        free(poison);
        return status;
    }
    poison->num_voxels = lr_grid_num_voxels(params->grid);
    poison->lors = params->lors;
    backend->fns = &fns;
    backend->self = poison;
    return LR_OK;
}
