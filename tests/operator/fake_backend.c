/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "fake_backend.h"

#include "base/log.h"
#include "operator/facade.h"

#include <stdio.h>
#include <stdlib.h>

struct fake {
    struct lr_backend_params params;
};

double fake_element(int64_t lor, int64_t row)
{
    uint64_t z = (uint64_t)lor * 0x9e3779b97f4a7c15u + (uint64_t)row * 0xd1342543de82ef95u + 1;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (z & 3) == 0 ? (double)(z >> 11) * 0x1.0p-53 * 1e-3 : 0.0;
}

static lr_status forward(const struct fake *fake, const lr_vector *image, lr_vector *values)
{
    const int64_t num_voxels = lr_grid_num_voxels(fake->params.grid);
    LR_TRY(lr_progress_report(fake->params.progress, "projecting", 0.0, 1.0));
    for (int64_t lor = 0; lor < fake->params.lors->count; lor++) {
        double sum = 0.0;
        for (int64_t row = 0; row < num_voxels; row++) sum += fake_element(lor, row) * lr_number_get(image, row);
        lr_number_put(values, lor, sum);
    }
    return LR_OK;
}

static lr_status back(const struct fake *fake, const lr_vector *values, lr_vector *image)
{
    const int64_t num_voxels = lr_grid_num_voxels(fake->params.grid);
    LR_TRY(lr_progress_report(fake->params.progress, "back-projecting", 0.0, 1.0));
    for (int64_t row = 0; row < num_voxels; row++) {
        double sum = 0.0;
        for (int64_t lor = 0; lor < fake->params.lors->count; lor++)
            sum += fake_element(lor, row) * lr_number_get(values, lor);
        lr_number_put(image, row, sum);
    }
    return LR_OK;
}

static lr_status project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in, lr_vector *out)
{
    (void)part;
    return (is_forward ? forward : back)(self, in, out);
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    const struct fake *fake = self;
    const int64_t num_lors = fake->params.lors->count;
    int64_t *lor = calloc((size_t)num_lors, sizeof(*lor));
    double *probability = calloc((size_t)num_lors, sizeof(*probability));
    lr_status status = lor != NULL && probability != NULL ? LR_OK : LR_FAILED;
    for (int64_t row = wanted->begin; row < wanted->end && status == LR_OK; row++) {
        lr_row out = {.row = row, .lor = lor, .probability = probability};
        for (int64_t k = 0; k < num_lors; k++) {
            const double element = fake_element(k, row);
            if (element > 0.0) {
                lor[out.count] = k;
                probability[out.count++] = element;
            }
        }
        status = sink->take(sink->user, &out);
    }
    free(lor);
    free(probability);
    return status;
}

static lr_status create(const struct lr_backend_params *params, const struct lr_backend_fns *fns,
                        struct lr_backend *backend)
{
    struct fake *fake = calloc(1, sizeof(*fake));
    if (fake == NULL) return LR_FAILED;
    fake->params = *params;
    backend->fns = fns;
    backend->self = fake;
    snprintf(backend->device, sizeof(backend->device), "a hash");
    return LR_OK;
}

lr_status fake_float_create(const struct lr_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {
        .name = "fake", .computes_in_double = false, .project = project, .rows = rows, .destroy = free};
    return create(params, &fns, backend);
}

lr_status fake_double_create(const struct lr_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {
        .name = "fake64", .computes_in_double = true, .project = project, .rows = rows, .destroy = free};
    return create(params, &fns, backend);
}
