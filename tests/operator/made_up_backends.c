/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "made_up_backends.h"

#include "base/log.h"
#include "fixtures.h"

/* --- a hash --- */

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

/* --- poisoned memory --- */

struct poison {
    struct lr_backend inner;
};

/* A call of the wrapped backend. part NULL = all LORs. */
struct poison_call {
    const struct poison *poison;
    const lr_selection *part;
    bool forward;
};

/* Calls the backend with arrays that end exactly at the end of memory, with outputs filled with NaN. in NULL stays
 * NULL: values of 1. */
static lr_status poison_run(const struct poison_call *call, const lr_vector *in, lr_vector *out)
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
static lr_status poison_project_part(const struct poison_call *call, const lr_vector *in, lr_vector *out)
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
        status = poison_run(&(struct poison_call){call->poison, &copy, call->forward}, in, out);
    }
    free(lors);
    free(pairs);
    return status;
}

static lr_status poison_project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in,
                                lr_vector *out)
{
    return (part != NULL ? poison_project_part : poison_run)(&(struct poison_call){self, part, is_forward}, in, out);
}

static lr_status poison_take_copy(void *user, const lr_row *row)
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

static lr_status poison_rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    const struct poison *poison = self;
    lr_row_sink through = *sink;
    return poison->inner.fns->rows(poison->inner.self, wanted, &(lr_row_sink){poison_take_copy, &through});
}

static lr_status poison_picture(void *self, const double point_mm[3], int module, lr_pixel *pixels)
{
    const struct poison *poison = self;
    return poison->inner.fns->picture(poison->inner.self, point_mm, module, pixels);
}

static void poison_destroy(void *self)
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
                                              .project = poison_project,
                                              .rows = poison_rows,
                                              .picture = poison_picture,
                                              .destroy = poison_destroy};
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
