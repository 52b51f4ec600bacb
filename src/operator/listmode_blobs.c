/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Backends of list mode whose image is of blobs: for each of their two grids one of tubes whose function
 * is a blob's footprint, and projections are the sum (docs/method/listmode.md, "Blobs"). */
#include "base/log.h"
#include "base/mem.h"
#include "operator/listmode_facade.h"
#include "vector/place.h"

#include <stdlib.h>

/* Entries of a footprint. */
enum { ENTRIES = 2001 };

struct blobs_backend {
    struct lr_backend_fns fns; /* the inner ones' properties */
    struct lr_backend inner[2];
    int64_t each; /* coefficients of a grid */
    const lr_log *log;
    const lr_progress *progress; /* the caller's; NULL = none */
    lr_progress halves;          /* what the inner ones report to */
    int half;                    /* that is at work */
};

/* --- models --- */

lr_status lr_listmode_blobs_models(const lr_listmode_params *params, lr_blobs *blobs,
                                   struct lr_listmode_model models[2])
{
    lr_grid grids[2];
    *blobs = *params->blobs;
    LR_TRY(lr_grid_check(params->grid, params->log));
    LR_TRY(lr_blobs_complete(blobs, params->log));
    lr_blobs_grids(blobs, params->grid, grids);
    double *table = lr_alloc(ENTRIES, sizeof(*table), "the footprint of a blob", params->log);
    lr_status status = table != NULL ? LR_OK : LR_FAILED;
    for (int k = 0; status == LR_OK && k < ENTRIES; k++)
        table[k] = lr_blobs_footprint(blobs, blobs->radius_mm * k / (ENTRIES - 1));
    for (int g = 0; status == LR_OK && g < 2; g++) {
        lr_listmode_params of_grid = *params;
        of_grid.grid = &grids[g];
        of_grid.kernel = LR_LISTMODE_TUBE;
        of_grid.tube = (lr_listmode_tube){
            .width_mm = 2.0 * blobs->radius_mm, .table = table, .table_count = ENTRIES, .as_paper = true};
        status = lr_listmode_model_init(&models[g], &of_grid);
    }
    free(table);
    return status;
}

/* --- progress --- */

static bool report_half(void *user, const char *what, double done, double total)
{
    const struct blobs_backend *self = user;
    return lr_progress_report(self->progress, what, done + self->half * total, 2.0 * total) == LR_OK;
}

/* --- projections, where the vectors are --- */

static lr_status forward(void *user, const lr_selection *part, const lr_vector *image, lr_vector *values)
{
    struct blobs_backend *self = user;
    const lr_vector_params like = {.place = values->place,
                                   .count = values->count,
                                   .precision = values->precision,
                                   .name = "values of the second grid of blobs",
                                   .log = self->log};
    lr_vector more;
    LR_TRY(lr_vector_create(&like, &more));
    lr_status status = LR_OK;
    for (int g = 0; status == LR_OK && g < 2; g++) {
        const struct lr_backend *inner = &self->inner[g];
        const lr_vector half = lr_vector_part(image, g * self->each, self->each);
        self->half = g;
        status = inner->fns->forward(inner->self, part, &half, g == 0 ? values : &more);
    }
    status = status == LR_OK ? lr_vector_add_scaled(values, 1.0, &more) : status;
    lr_vector_destroy(&more);
    return status;
}

static lr_status back(void *user, const lr_selection *part, const lr_vector *values, lr_vector *image)
{
    struct blobs_backend *self = user;
    lr_status status = LR_OK;
    for (int g = 0; status == LR_OK && g < 2; g++) {
        const struct lr_backend *inner = &self->inner[g];
        lr_vector half = lr_vector_part(image, g * self->each, self->each);
        self->half = g;
        status = inner->fns->back(inner->self, part, values, &half);
    }
    return status;
}

/* Of both grids' projections; what adds them up is not in it. */
static double device_seconds(void *user)
{
    struct blobs_backend *self = user;
    double sum = 0;
    for (int g = 0; g < 2; g++) sum += self->inner[g].fns->device_seconds(self->inner[g].self);
    return sum;
}

/* --- rows --- */

struct shifted {
    const lr_row_sink *sink;
    int64_t by;
};

static lr_status take_shifted(void *user, const lr_row *row)
{
    const struct shifted *shifted = user;
    lr_row moved = *row;
    moved.row += shifted->by;
    return shifted->sink->take(shifted->sink->user, &moved);
}

static lr_status rows(void *user, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    struct blobs_backend *self = user;
    for (int g = 0; g < 2; g++) {
        const int64_t first = g * self->each, end = first + self->each;
        struct lr_rows of_grid = *wanted;
        of_grid.blocks = NULL; /* rows get other numbers */
        struct shifted shifted = {sink, wanted->grid != NULL ? first : 0};
        const lr_row_sink inner_sink = {take_shifted, &shifted};
        if (wanted->grid != NULL) {
            of_grid.begin = (wanted->begin > first ? wanted->begin : first) - first;
            of_grid.end = (wanted->end < end ? wanted->end : end) - first;
        }
        self->half = g;
        if (of_grid.begin < of_grid.end) LR_TRY(self->inner[g].fns->rows(self->inner[g].self, &of_grid, &inner_sink));
    }
    return LR_OK;
}

/* --- life --- */

/* The second one may run the first one's programs. */
static void destroy(void *user)
{
    struct blobs_backend *self = user;
    for (int g = 1; g >= 0; g--)
        if (self->inner[g].fns != NULL) self->inner[g].fns->destroy(self->inner[g].self);
    free(self);
}

/* Each grid's backend has half of the memory, which they take at the same time. */
static int64_t half_the_memory(const struct lr_listmode_backend_params *params)
{
    const int64_t device = params->place != NULL ? params->place->memory_bytes / 2 : 0;
    const int64_t all = params->max_memory_bytes > 0 ? params->max_memory_bytes : device;
    return all > 0 ? all / 2 + 1 : 0;
}

/* Whose programs a grid's backend may run: those of the same grid of another operator's, or of the first
 * grid, which has the same kernel. */
static const struct lr_backend *programs_of(const struct blobs_backend *self, const struct lr_backend *stands_for,
                                            int g)
{
    return stands_for != NULL ? &((const struct blobs_backend *)stands_for->self)->inner[g]
           : g > 0            ? &self->inner[0]
                              : NULL;
}

static lr_status open_inner(struct blobs_backend *self, const struct lr_listmode_family *family,
                            const struct lr_listmode_backend_params *params)
{
    struct lr_listmode_backend_params of_grid = *params;
    self->log = params->log;
    self->progress = params->progress;
    self->halves = (lr_progress){report_half, self};
    of_grid.progress = params->progress != NULL ? &self->halves : NULL;
    of_grid.max_memory_bytes = half_the_memory(params);
    for (int g = 0; g < 2; g++) {
        of_grid.model = g == 0 ? &family->model : &family->second;
        of_grid.stands_for = programs_of(self, params->stands_for, g);
        LR_TRY(family->create(&of_grid, &self->inner[g]));
    }
    self->each = lr_grid_num_voxels(&family->model.grid);
    const struct lr_backend_fns *inner = self->inner[0].fns;
    self->fns = (struct lr_backend_fns){.name = inner->name,
                                        .computes_in_double = inner->computes_in_double,
                                        .has_parts = inner->has_parts,
                                        .voxel_bytes = inner->voxel_bytes,
                                        .forward = forward,
                                        .back = back,
                                        .rows = rows,
                                        .device_seconds = inner->device_seconds != NULL ? device_seconds : NULL,
                                        .destroy = destroy};
    return LR_OK;
}

lr_status lr_listmode_open(const struct lr_listmode_family *family, const struct lr_listmode_backend_params *params,
                           struct lr_backend *backend)
{
    if (family->info.blobs.radius_mm == 0) return family->create(params, backend);
    struct blobs_backend *self = lr_alloc(1, sizeof(*self), "the grids of blobs", params->log);
    if (self == NULL) return LR_FAILED;
    const lr_status status = open_inner(self, family, params);
    if (status != LR_OK) {
        destroy(self);
        return status;
    }
    *backend = self->inner[0];
    backend->fns = &self->fns;
    backend->self = self;
    return LR_OK;
}
