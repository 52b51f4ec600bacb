/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The family `direct` as an operator: a backend over a projector, whose data are the histo-images of
 * its views one after the other. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "direct/tables.h"
#include "model/lors/owned_row.h"
#include "model/lors/selection.h"
#include "operator/direct_facade.h"
#include "operator/facade.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct direct_operator {
    lr_direct *direct; /* the caller's */
    struct lr_backend_fns fns;
    lr_lors layout; /* without scanner: a view for each pair of modules */
    int64_t *offsets;
    int64_t num_voxels;
    void *one;   /* a histo-image or image, in the projector's precision */
    double *sum; /* of back-projections */
    double device_seconds;
    lr_direct_tables **tables; /* [num_views] of rows; NULL until they are asked for */
    const lr_progress *progress;
    const lr_log *log;
};

static int num_views(const struct direct_operator *self)
{
    return lr_direct_get_info(self->direct)->num_views;
}

/* --- values in the projector's precision --- */

static size_t value_bytes(const struct direct_operator *self)
{
    return self->fns.computes_in_double ? sizeof(double) : sizeof(float);
}

static void *value_at(const struct direct_operator *self, const void *values, int64_t at)
{
    return (char *)(uintptr_t)values + (size_t)at * value_bytes(self);
}

static double get(const struct direct_operator *self, const void *values, int64_t at)
{
    return self->fns.computes_in_double ? ((const double *)values)[at]
                                        : (double)((const float *)values)[at];
}

static void put(const struct direct_operator *self, void *values, int64_t at, double value)
{
    if (self->fns.computes_in_double) {
        ((double *)values)[at] = value;
    } else {
        ((float *)values)[at] = (float)value;
    }
}

static lr_status project(struct direct_operator *self, bool is_forward, int view, const void *in,
                         void *out)
{
    lr_status status;
    if (self->fns.computes_in_double) {
        status =
            (is_forward ? lr_direct_forward_f64 : lr_direct_back_f64)(self->direct, view, in, out);
    } else {
        status = (is_forward ? lr_direct_forward : lr_direct_back)(self->direct, view, in, out);
    }
    self->device_seconds += lr_direct_device_seconds(self->direct);
    return status;
}

/* --- projections --- */

/* The values of a view that a selection has; false: none. */
static bool find_values(const struct direct_operator *self, const lr_selection *part, int view,
                        struct lr_selection_walk *walk)
{
    *walk = (struct lr_selection_walk){.lors = &self->layout,
                                       .selection = part,
                                       .begin = self->offsets[view],
                                       .end = self->offsets[view + 1]};
    return lr_selection_next(walk);
}

static bool is_whole(const struct direct_operator *self, const struct lr_selection_walk *walk)
{
    return walk->span.numbers == NULL && walk->span.count == self->num_voxels;
}

static int64_t voxel_of(const struct direct_operator *self, const struct lr_selection_walk *walk,
                        int64_t k)
{
    const int64_t at = walk->span.numbers != NULL ? walk->span.numbers[k] : walk->span.first + k;
    return at % self->num_voxels;
}

static lr_status forward_part(void *user, const lr_selection *part, const void *image, void *values)
{
    struct direct_operator *self = user;
    struct lr_selection_walk walk;
    self->device_seconds = 0;
    for (int view = 0; view < num_views(self); view++) {
        LR_TRY(lr_progress_report(self->progress, "projecting", view, num_views(self)));
        if (!find_values(self, part, view, &walk)) {
            continue;
        }
        if (is_whole(self, &walk)) {
            LR_TRY(project(self, true, view, image, value_at(self, values, walk.position)));
            continue;
        }
        LR_TRY(project(self, true, view, image, self->one));
        for (int64_t k = 0; k < walk.span.count; k++) {
            put(self, values, walk.position + k, get(self, self->one, voxel_of(self, &walk, k)));
        }
    }
    return LR_OK;
}

/* The histo-image of a view: the values themselves where they are all of it. values NULL: ones. */
static const void *fill_view(const struct direct_operator *self,
                             const struct lr_selection_walk *walk, const void *values)
{
    if (values != NULL && is_whole(self, walk)) {
        return value_at(self, values, walk->position);
    }
    memset(self->one, 0, (size_t)self->num_voxels * value_bytes(self));
    for (int64_t k = 0; k < walk->span.count; k++) {
        put(self, self->one, voxel_of(self, walk, k),
            values != NULL ? get(self, values, walk->position + k) : 1.0);
    }
    return self->one;
}

static lr_status back_part(void *user, const lr_selection *part, const void *values, void *image)
{
    struct direct_operator *self = user;
    struct lr_selection_walk walk;
    self->device_seconds = 0;
    memset(self->sum, 0, (size_t)self->num_voxels * sizeof(*self->sum));
    for (int view = 0; view < num_views(self); view++) {
        LR_TRY(lr_progress_report(self->progress, "projecting back", view, num_views(self)));
        if (!find_values(self, part, view, &walk)) {
            continue;
        }
        LR_TRY(project(self, false, view, fill_view(self, &walk, values), image));
        for (int64_t v = 0; v < self->num_voxels; v++) {
            self->sum[v] += get(self, image, v);
        }
    }
    for (int64_t v = 0; v < self->num_voxels; v++) {
        put(self, image, v, self->sum[v]);
    }
    return LR_OK;
}

static lr_status forward(void *user, const lr_selection *part, const lr_vector *image,
                         lr_vector *values)
{
    return forward_part(user, part, image->values, values->values);
}

static lr_status back(void *user, const lr_selection *part, const lr_vector *values,
                      lr_vector *image)
{
    return back_part(user, part, values != NULL ? values->values : NULL, image->values);
}

static double device_seconds(void *user)
{
    return ((struct direct_operator *)user)->device_seconds;
}

/* --- rows: what a voxel spreads --- */

static lr_status open_tables(struct direct_operator *self, int64_t *most)
{
    const lr_direct_info *info = lr_direct_get_info(self->direct);
    *most = 0;
    for (int view = 0; view < info->num_views; view++) {
        if (self->tables[view] == NULL) {
            self->tables[view] = lr_direct_tables_create(
                &(lr_direct_tables_params){.grid = &info->grid,
                                           .view = self->direct->views[view],
                                           .kernel = self->direct->kernel,
                                           .log = self->log});
        }
        if (self->tables[view] == NULL) {
            return LR_FAILED;
        }
        *most += lr_direct_tables_get_info(self->tables[view])->num_offsets;
    }
    return LR_OK;
}

struct element {
    int64_t lor;
    double probability;
};

static int compare_elements(const void *a, const void *b)
{
    const int64_t left = ((const struct element *)a)->lor, right = ((const struct element *)b)->lor;
    return (left > right) - (left < right);
}

/* What the voxel gives to a view: its kernel, but for what lies beyond the grid. */
static int64_t list_view(const struct direct_operator *self, int view, int64_t voxel,
                         struct element *elements)
{
    const lr_direct_tables *tables = self->tables[view];
    const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
    const int *size = info->grid.size;
    const int64_t slice = (int64_t)size[0] * size[1];
    const int at[3] = {(int)(voxel % size[0]), (int)(voxel % slice / size[0]),
                       (int)(voxel / slice)};
    const int32_t(*offsets)[3] = lr_direct_tables_offsets(tables);
    const double *values =
        lr_direct_tables_values(tables, lr_direct_tables_map(tables)[voxel % slice]);
    int64_t count = 0;
    for (int64_t i = 0; i < info->num_offsets; i++) {
        bool inside = values[i] > 0;
        for (int k = 0; k < 3; k++) {
            inside = inside && at[k] + offsets[i][k] >= 0 && at[k] + offsets[i][k] < size[k];
        }
        if (inside) {
            elements[count++] =
                (struct element){self->offsets[view] + voxel + offsets[i][0] +
                                     (int64_t)size[0] * offsets[i][1] + slice * offsets[i][2],
                                 values[i]};
        }
    }
    qsort(elements, (size_t)count, sizeof(*elements), compare_elements);
    return count;
}

static lr_status hand_row(const struct direct_operator *self, int64_t voxel,
                          struct element *elements, struct lr_owned_row *out,
                          const lr_row_sink *sink)
{
    out->count = 0;
    for (int view = 0; view < num_views(self); view++) {
        const int64_t count = list_view(self, view, voxel, elements);
        for (int64_t k = 0; k < count; k++) {
            lr_owned_row_put(out, elements[k].lor, elements[k].probability);
        }
    }
    const lr_row row = lr_owned_row_view(out, voxel);
    return sink->take(sink->user, &row);
}

static lr_status rows(void *user, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    struct direct_operator *self = user;
    int64_t most;
    if (wanted->grid == NULL) {
        return lr_error(self->log, LR_USAGE,
                        "the family direct knows voxels of its grid, not points between them: ask "
                        "for rows of voxels");
    }
    LR_TRY(open_tables(self, &most));
    struct lr_owned_row row = {0};
    struct element *elements = lr_alloc(most, sizeof(*elements), "a row", self->log);
    lr_status status = elements != NULL ? lr_owned_row_reserve(&row, most, self->log) : LR_FAILED;
    for (int64_t voxel = wanted->begin; status == LR_OK && voxel < wanted->end; voxel++) {
        status = hand_row(self, voxel, elements, &row, sink);
    }
    free(elements);
    lr_owned_row_finish(&row);
    return status;
}

/* --- creating --- */

static void destroy(void *user)
{
    struct direct_operator *self = user;
    for (int view = 0; self->tables != NULL && view < num_views(self); view++) {
        lr_direct_tables_destroy(self->tables[view]);
    }
    free(self->tables);
    free(self->sum);
    free(self->one);
    free(self->offsets);
    free(self);
}

static lr_status init(struct direct_operator *self)
{
    const lr_direct_info *info = lr_direct_get_info(self->direct);
    self->num_voxels = info->num_voxels;
    self->fns = (struct lr_backend_fns){
        .name = info->backend,
        .computes_in_double = self->direct->backend.fns->computes_in_double,
        .forward = forward,
        .back = back,
        .rows = rows,
        .has_parts = true,
        .device_seconds = device_seconds,
        .destroy = destroy,
    };
    self->offsets = lr_alloc(info->num_views + 1, sizeof(int64_t), "an operator", self->log);
    self->tables = lr_alloc(info->num_views, sizeof(*self->tables), "an operator", self->log);
    self->one = lr_alloc(self->num_voxels, value_bytes(self), "a histo-image", self->log);
    self->sum = lr_alloc(self->num_voxels, sizeof(*self->sum), "an image", self->log);
    for (int view = 0; self->offsets != NULL && view <= info->num_views; view++) {
        self->offsets[view] = view * self->num_voxels;
    }
    self->layout = (lr_lors){.num_pairs = info->num_views,
                             .offsets = self->offsets,
                             .count = info->num_views * self->num_voxels};
    return self->offsets && self->tables && self->one && self->sum ? LR_OK : LR_FAILED;
}

static lr_status open_on(struct lr_operator *op, const lr_direct_operator_params *params)
{
    const double begin = lr_clock_seconds();
    const lr_direct_info *info = lr_direct_get_info(params->direct);
    struct direct_operator *self = lr_alloc(1, sizeof(*self), "an operator", &op->log_filter.log);
    if (self == NULL) {
        return LR_FAILED;
    }
    self->direct = params->direct;
    self->log = &op->log_filter.log;
    self->progress = &op->progress_filter.progress;
    const lr_status status = init(self);
    op->backend.fns = &self->fns;
    op->backend.self = self;
    snprintf(op->backend.device, sizeof(op->backend.device), "%s", info->device);
    op->grid = info->grid;
    op->params = (struct lr_backend_params){.lors = &self->layout,
                                            .grid = &op->grid,
                                            .samples = {1, 1, 1},
                                            .threads = info->threads,
                                            .log = self->log,
                                            .progress = self->progress};
    if (params->factors != NULL) {
        op->factors = *params->factors;
    }
    op->info = (lr_operator_info){.backend = info->backend,
                                  .device = op->backend.device,
                                  .num_voxels = info->num_voxels,
                                  .num_lors = self->layout.count,
                                  .samples = {1, 1, 1},
                                  .threads = info->threads,
                                  .build_seconds = lr_clock_seconds() - begin,
                                  .lors = &self->layout};
    return status;
}

lr_operator *lr_direct_operator_create(const lr_direct_operator_params *params)
{
    if (params->direct == NULL) {
        lr_error(params->log, LR_USAGE, "an operator of the family direct needs a projector");
        return NULL;
    }
    lr_operator *op = lr_alloc(1, sizeof(*op), "an operator", params->log);
    if (op == NULL) {
        return NULL;
    }
    lr_log_filter_init(&op->log_filter, params->log);
    lr_progress_filter_init(&op->progress_filter, params->progress);
    if (open_on(op, params) != LR_OK) {
        lr_operator_destroy(op);
        return NULL;
    }
    return op;
}
