/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections view by view, and rows from the look-up tables. */

#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "direct/backend.h"
#include "direct/tables.h"
#include "model/lors/rows.h"
#include "model/lors/selection.h"

#include <lr/direct.h>
#include <stdlib.h>
#include <string.h>

/* --- values in the backend's precision --- */

static size_t value_bytes(const struct lr_direct_views *views)
{
    return views->in_double ? sizeof(double) : sizeof(float);
}

static double get(const struct lr_direct_views *views, const void *values, int64_t at)
{
    return views->in_double ? ((const double *)values)[at] : (double)((const float *)values)[at];
}

static void put(const struct lr_direct_views *views, void *values, int64_t at, double value)
{
    if (views->in_double)
        ((double *)values)[at] = value;
    else
        ((float *)values)[at] = (float)value;
}

/* --- projections --- */

/* Finds the values of a view that are in the selection. Returns false if there are none. */
static bool find_values(const struct lr_direct_views *views, const lr_selection *part, int view,
                        struct lr_selection_walk *walk)
{
    const lr_lors *lors = views->params->lors;
    *walk = (struct lr_selection_walk){
        .lors = lors, .selection = part, .begin = lors->offsets[view], .end = lors->offsets[view + 1]};
    return lr_selection_next(walk);
}

static int64_t voxel_of(const struct lr_direct_views *views, const struct lr_selection_walk *walk, int64_t k)
{
    const int64_t at = walk->span.numbers != NULL ? walk->span.numbers[k] : walk->span.first + k;
    return at % views->num_voxels;
}

lr_status lr_direct_views_project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in,
                                  lr_vector *out)
{
    const struct lr_direct_views *views = self;
    const char *const what = is_forward ? "projecting" : "projecting back";
    struct lr_selection_walk walk;
    struct lr_direct_projection next = {.is_forward = is_forward};
    if (!is_forward) memset(views->sum, 0, (size_t)views->num_voxels * sizeof(*views->sum));
    for (int view = 0; view < views->params->num_views; view++) {
        LR_TRY(lr_progress_report(views->params->progress, what, view, views->params->num_views));
        if (!find_values(views, part, view, &walk)) continue;
        /* No copy is made if the caller's values are exactly the values of the whole view. Otherwise, a forward
         * projection writes an array of the whole view, from which the values are copied. A back-projection reads such
         * an array, of zeros and the copied values. */
        const lr_vector *values = is_forward ? out : in;
        const bool is_whole = walk.span.numbers == NULL && walk.span.count == views->num_voxels;
        const bool is_given = values != NULL && is_whole;
        const size_t offset = (size_t)walk.position * value_bytes(views);
        void *const histo = is_given ? (char *)(uintptr_t)values->values + offset : views->one;
        next.view = view;
        next.in = is_forward ? in->values : histo;
        next.out = is_forward ? histo : out->values;
        if (!is_forward && !is_given) memset(views->one, 0, (size_t)views->num_voxels * value_bytes(views));
        for (int64_t k = 0; !is_forward && !is_given && k < walk.span.count; k++) {
            const double value = values != NULL ? get(views, values->values, walk.position + k) : 1.0;
            put(views, views->one, voxel_of(views, &walk, k), value);
        }
        LR_TRY(views->project(views->self, &next));
        next.is_same = is_forward;
        for (int64_t k = 0; is_forward && !is_given && k < walk.span.count; k++)
            put(views, values->values, walk.position + k, get(views, views->one, voxel_of(views, &walk, k)));
        for (int64_t v = 0; !is_forward && v < views->num_voxels; v++) views->sum[v] += get(views, out->values, v);
    }
    for (int64_t v = 0; !is_forward && v < views->num_voxels; v++) put(views, out->values, v, views->sum[v]);
    return LR_OK;
}

/* --- rows of voxels --- */

lr_status lr_direct_views_rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    const struct lr_direct_views *views = self;
    const struct lr_direct_backend_params *params = views->params;
    if (wanted->grid == NULL) {
        return lr_error(params->log, LR_USAGE,
                        "the family direct knows voxels of its grid, not points between them: ask for rows of voxels");
    }
    int64_t most = 0; /* largest number of elements of a row */
    for (int view = 0; view < params->num_views; view++) {
        if (views->tables[view] == NULL) {
            views->tables[view] = lr_direct_tables_create(&(lr_direct_tables_params){
                .grid = &params->grid, .view = params->views[view], .kernel = params->kernel, .log = params->log});
        }
        if (views->tables[view] == NULL) return LR_FAILED;
        most += lr_direct_tables_get_info(views->tables[view])->num_offsets;
    }

    const int *size = params->grid.size;
    const int64_t slice = (int64_t)size[0] * size[1];
    struct lr_owned_row out = {0};
    struct lr_element *elements = lr_alloc(most, sizeof(*elements), "a row", params->log);
    lr_status status = elements != NULL ? lr_owned_row_reserve(&out, most, params->log) : LR_FAILED;
    for (int64_t voxel = wanted->begin; status == LR_OK && voxel < wanted->end; voxel++) {
        const int at[3] = {(int)(voxel % size[0]), (int)(voxel % slice / size[0]), (int)(voxel / slice)};
        out.count = 0;
        for (int view = 0; view < params->num_views; view++) {
            /* The elements of a voxel in a view are the values of its kernel inside the grid. */
            const lr_direct_tables *tables = views->tables[view];
            const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
            const int32_t(*offsets)[3] = lr_direct_tables_offsets(tables);
            const double *values = lr_direct_tables_values(tables, lr_direct_tables_map(tables)[voxel % slice]);
            const int64_t lor = params->lors->offsets[view] + voxel;
            int64_t count = 0;
            for (int64_t i = 0; i < info->num_offsets; i++) {
                const int32_t *offset = offsets[i];
                bool inside = values[i] > 0;
                for (int k = 0; k < 3; k++) inside = inside && at[k] + offset[k] >= 0 && at[k] + offset[k] < size[k];
                if (!inside) continue;
                elements[count].lor = lor + offset[0] + (int64_t)size[0] * offset[1] + slice * offset[2];
                elements[count++].value = values[i];
            }
            qsort(elements, (size_t)count, sizeof(*elements), lr_compare_int64s);
            for (int64_t k = 0; k < count; k++) lr_owned_row_put(&out, elements[k].lor, elements[k].value);
        }
        const lr_row row = lr_owned_row_view(&out, voxel);
        status = sink->take(sink->user, &row);
    }
    free(elements);
    lr_owned_row_finish(&out);
    return status;
}

/* --- life --- */

lr_status lr_direct_views_init(struct lr_direct_views *views)
{
    const lr_log *log = views->params->log;
    views->num_voxels = lr_grid_num_voxels(&views->params->grid);
    views->tables = lr_alloc(views->params->num_views, sizeof(*views->tables), "an operator", log);
    views->one = lr_alloc(views->num_voxels, value_bytes(views), "a histo-image", log);
    views->sum = lr_alloc(views->num_voxels, sizeof(*views->sum), "an image", log);
    return views->tables && views->one && views->sum ? LR_OK : LR_FAILED;
}

void lr_direct_views_finish(struct lr_direct_views *views)
{
    for (int view = 0; views->tables != NULL && view < views->params->num_views; view++)
        lr_direct_tables_destroy(views->tables[view]);
    lr_free_all(views->tables, views->sum, views->one);
}
