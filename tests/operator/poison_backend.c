/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "poison_backend.h"

#include "base/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct poison {
    struct lr_backend inner;
    int64_t num_voxels, num_lors;
};

typedef lr_status projection(void *self, const void *in, void *out);

static lr_status project(const struct poison *poison, projection *inner, const void *in, void *out,
                         const int64_t counts[2])
{
    const size_t in_bytes = (size_t)counts[0] * sizeof(double);
    const size_t out_bytes = (size_t)counts[1] * sizeof(double);
    double *in_copy = malloc(in_bytes), *out_copy = malloc(out_bytes);
    lr_status status = in_copy != NULL && out_copy != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) {
        memcpy(in_copy, in, in_bytes);
        for (int64_t k = 0; k < counts[1]; k++) {
            out_copy[k] = NAN;
        }
        status = inner(poison->inner.self, in_copy, out_copy);
        memcpy(out, out_copy, out_bytes);
    }
    free(in_copy);
    free(out_copy);
    return status;
}

static lr_status forward(void *self, const void *image, void *data)
{
    const struct poison *poison = self;
    const int64_t counts[2] = {poison->num_voxels, poison->num_lors};
    return project(poison, poison->inner.fns->forward, image, data, counts);
}

static lr_status back(void *self, const void *data, void *image)
{
    const struct poison *poison = self;
    const int64_t counts[2] = {poison->num_lors, poison->num_voxels};
    return project(poison, poison->inner.fns->back, data, image, counts);
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
    poison->num_lors = params->lors->count;
    backend->fns = &fns;
    backend->self = poison;
    return LR_OK;
}
