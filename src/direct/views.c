/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "direct/views.h"

#include "base/log.h"
#include "base/mem.h"
#include "direct/backend.h"
#include "direct/tables.h"
#include "model/lors/elements.h"
#include "model/lors/selection.h"

#include <lr/direct.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Views: directions of lines of response (paper 1 of lr/direct.h, section 6.1: 40 intervals in
 * azimuth, 3 in co-polar angle). */

static const double degree = 3.14159265358979323846 / 180.0;
static const int usual_azimuths = 40, usual_tilts = 3;
static const double usual_acceptance_deg = 10.0;
static const int64_t most_views = 65536;

/* Exact for multiples of 90 degrees, so that voxels on the border between two identifiers stay on
 * it. */
static void sine_cosine(double angle_deg, double *sine, double *cosine)
{
    const double quarters = nearbyint(angle_deg / 90.0);
    const double rest = (angle_deg - 90.0 * quarters) * degree;
    const double s = sin(rest), c = cos(rest);
    const int quarter = (int)(quarters - 4.0 * floor(quarters / 4.0));
    *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
    *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}

void lr_view_axes(const lr_view *view, double axes[3][3])
{
    double sf, cf, st, ct;
    sine_cosine(view->azimuth_deg, &sf, &cf);
    sine_cosine(view->tilt_deg, &st, &ct);
    const double tof[3] = {ct * cf, ct * sf, st};
    const double radial[3] = {-sf, cf, 0};
    const double axial[3] = {-st * cf, -st * sf, ct};
    for (int k = 0; k < 3; k++) {
        axes[0][k] = tof[k];
        axes[1][k] = radial[k];
        axes[2][k] = axial[k];
    }
}

lr_status lr_view_set_complete(const lr_view_set *set, lr_view_set *complete, const lr_log *log)
{
    *complete = *set;
    complete->azimuths = set->azimuths == 0 ? usual_azimuths : set->azimuths;
    complete->tilts = set->tilts == 0 ? usual_tilts : set->tilts;
    complete->acceptance_deg = set->acceptance_deg == 0 ? usual_acceptance_deg : set->acceptance_deg;
    if (complete->azimuths < 1 || complete->tilts < 1 || (int64_t)complete->azimuths * complete->tilts > most_views) {
        return lr_error(log, LR_USAGE,
                        "%d x %d views: at least one azimuth and one tilt are needed, and at most "
                        "%lld views",
                        complete->azimuths, complete->tilts, (long long)most_views);
    }
    if (!(complete->acceptance_deg > 0 && complete->acceptance_deg < 90)) {
        return lr_error(log, LR_USAGE, "an axial acceptance of %g degrees: it must be above 0 and below 90",
                        complete->acceptance_deg);
    }
    return LR_OK;
}

int lr_view_set_count(const lr_view_set *set)
{
    return set->azimuths * set->tilts;
}

lr_view lr_view_set_at(const lr_view_set *set, int index)
{
    const int azimuth = index % set->azimuths, tilt = index / set->azimuths;
    return (lr_view){180.0 * azimuth / set->azimuths, set->acceptance_deg * ((2.0 * tilt + 1.0) / set->tilts - 1.0)};
}

/* Lines on a border belong above it whatever rounding does: crystals in a ring have many. */
int lr_view_set_find(const lr_view_set *set, const double direction[3])
{
    const double across = hypot(direction[0], direction[1]);
    double tilt_deg = atan2(direction[2], across) / degree;
    double turns = atan2(direction[1], direction[0]) / degree / 180.0 * set->azimuths;
    if (fabs(tilt_deg) > lr_view_set_tilt_border_deg(set, set->tilts)) return -1;
    /* Intervals are centred on their azimuths; half a turn is the same line seen from behind. */
    int azimuth = (int)floor(turns + 0.5 + LR_DIRECT_TIE);
    while (azimuth < 0 || azimuth >= set->azimuths) {
        azimuth += azimuth < 0 ? set->azimuths : -set->azimuths;
        tilt_deg = -tilt_deg;
    }
    const double share = (tilt_deg / set->acceptance_deg + 1.0) / 2.0 * set->tilts;
    const int tilt = (int)fmin(fmax(floor(share + LR_DIRECT_TIE), 0), set->tilts - 1);
    return tilt * set->azimuths + azimuth;
}

double lr_view_set_azimuth_border_deg(const lr_view_set *set, int azimuth)
{
    return 180.0 * (azimuth - 0.5 - LR_DIRECT_TIE) / set->azimuths;
}

double lr_view_set_tilt_border_deg(const lr_view_set *set, int tilt)
{
    const double tie = tilt < set->tilts ? -LR_DIRECT_TIE : LR_DIRECT_TIE;
    return set->acceptance_deg * (2.0 * (tilt + tie) / set->tilts - 1.0);
}

/* The numbers 0 .. count-1 in the order of their bits read backwards. */
static int next_reversed(int *counter, int count)
{
    int bits = 1;
    while (bits < count) bits *= 2;
    for (;;) {
        int reversed = 0;
        for (int bit = 1, mirror = bits / 2; mirror > 0; bit *= 2, mirror /= 2)
            reversed += (*counter & bit) ? mirror : 0;
        ++*counter;
        if (reversed < count) return reversed;
    }
}

void lr_view_set_order(const lr_view_set *set, int *order)
{
    for (int round = 0; round < set->tilts; round++) {
        int counter = 0;
        for (int k = 0; k < set->azimuths; k++) {
            const int tilt = (round + k) % set->tilts;
            *order++ = tilt * set->azimuths + next_reversed(&counter, set->azimuths);
        }
    }
}

/* --- histo-images --- */

lr_histo_images *lr_histo_images_create(const lr_grid *grid, const lr_view *views, int num_views, const lr_log *log)
{
    if (lr_grid_check(grid, log) != LR_OK) return NULL;
    lr_histo_images *histo = lr_alloc(1, sizeof(*histo), "histo-images", log);
    if (histo == NULL) return NULL;
    histo->grid = *grid;
    histo->num_views = num_views;
    histo->views = lr_alloc(num_views, sizeof(*histo->views), "histo-images", log);
    histo->values = lr_alloc(num_views * lr_grid_num_voxels(grid), sizeof(*histo->values), "histo-images", log);
    if (histo->views == NULL || histo->values == NULL) {
        lr_histo_images_destroy(histo);
        return NULL;
    }
    memcpy(histo->views, views, (size_t)num_views * sizeof(*views));
    return histo;
}

void lr_histo_images_destroy(lr_histo_images *histo)
{
    if (histo != NULL) {
        free(histo->values);
        free(histo->views);
        free(histo);
    }
}

/* --- views --- */

/* --- values in the backend's precision --- */

static size_t value_bytes(const struct lr_direct_views *views)
{
    return views->in_double ? sizeof(double) : sizeof(float);
}

static void *value_at(const struct lr_direct_views *views, const void *values, int64_t at)
{
    return (char *)(uintptr_t)values + (size_t)at * value_bytes(views);
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

/* The values of a view that a selection has; false: none. */
static bool find_values(const struct lr_direct_views *views, const lr_selection *part, int view,
                        struct lr_selection_walk *walk)
{
    const lr_lors *lors = views->params->lors;
    *walk = (struct lr_selection_walk){
        .lors = lors, .selection = part, .begin = lors->offsets[view], .end = lors->offsets[view + 1]};
    return lr_selection_next(walk);
}

static bool is_whole(const struct lr_direct_views *views, const struct lr_selection_walk *walk)
{
    return walk->span.numbers == NULL && walk->span.count == views->num_voxels;
}

static int64_t voxel_of(const struct lr_direct_views *views, const struct lr_selection_walk *walk, int64_t k)
{
    const int64_t at = walk->span.numbers != NULL ? walk->span.numbers[k] : walk->span.first + k;
    return at % views->num_voxels;
}

static lr_status report(const struct lr_direct_views *views, const char *what, int view)
{
    return lr_progress_report(views->params->progress, what, view, views->params->num_views);
}

lr_status lr_direct_views_forward(struct lr_direct_views *views, const lr_selection *part, const lr_vector *image,
                                  lr_vector *values)
{
    struct lr_selection_walk walk;
    struct lr_direct_projection next = {.is_forward = true, .in = image->values};
    for (int view = 0; view < views->params->num_views; view++) {
        LR_TRY(report(views, "projecting", view));
        if (!find_values(views, part, view, &walk)) continue;
        next.view = view;
        next.out = is_whole(views, &walk) ? value_at(views, values->values, walk.position) : views->one;
        LR_TRY(views->project(views->self, &next));
        next.is_same = true;
        for (int64_t k = 0; next.out == views->one && k < walk.span.count; k++)
            put(views, values->values, walk.position + k, get(views, views->one, voxel_of(views, &walk, k)));
    }
    return LR_OK;
}

/* The histo-image of a view: the values themselves where they are all of it. values NULL: ones. */
static const void *fill_view(const struct lr_direct_views *views, const struct lr_selection_walk *walk,
                             const lr_vector *values)
{
    if (values != NULL && is_whole(views, walk)) return value_at(views, values->values, walk->position);
    memset(views->one, 0, (size_t)views->num_voxels * value_bytes(views));
    for (int64_t k = 0; k < walk->span.count; k++) {
        put(views, views->one, voxel_of(views, walk, k),
            values != NULL ? get(views, values->values, walk->position + k) : 1.0);
    }
    return views->one;
}

lr_status lr_direct_views_back(struct lr_direct_views *views, const lr_selection *part, const lr_vector *values,
                               lr_vector *image)
{
    struct lr_selection_walk walk;
    memset(views->sum, 0, (size_t)views->num_voxels * sizeof(*views->sum));
    for (int view = 0; view < views->params->num_views; view++) {
        LR_TRY(report(views, "projecting back", view));
        if (!find_values(views, part, view, &walk)) continue;
        LR_TRY(views->project(
            views->self,
            &(struct lr_direct_projection){.view = view, .in = fill_view(views, &walk, values), .out = image->values}));
        for (int64_t v = 0; v < views->num_voxels; v++) views->sum[v] += get(views, image->values, v);
    }
    for (int64_t v = 0; v < views->num_voxels; v++) put(views, image->values, v, views->sum[v]);
    return LR_OK;
}

/* --- rows: what a voxel spreads --- */

static lr_status open_tables(struct lr_direct_views *views, int64_t *most)
{
    const struct lr_direct_backend_params *params = views->params;
    *most = 0;
    for (int view = 0; view < params->num_views; view++) {
        if (views->tables[view] == NULL) {
            views->tables[view] = lr_direct_tables_create(&(lr_direct_tables_params){.grid = &params->grid,
                                                                                     .view = params->views[view],
                                                                                     .kernel = params->kernel,
                                                                                     .log = views->params->log});
        }
        if (views->tables[view] == NULL) return LR_FAILED;
        *most += lr_direct_tables_get_info(views->tables[view])->num_offsets;
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

/* A voxel's elements in a view: its kernel without what lies beyond the grid. */
static int64_t list_view(const struct lr_direct_views *views, int view, int64_t voxel, struct element *elements)
{
    const lr_direct_tables *tables = views->tables[view];
    const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
    const int *size = info->grid.size;
    const int64_t slice = (int64_t)size[0] * size[1];
    const int at[3] = {(int)(voxel % size[0]), (int)(voxel % slice / size[0]), (int)(voxel / slice)};
    const int32_t(*offsets)[3] = lr_direct_tables_offsets(tables);
    const double *values = lr_direct_tables_values(tables, lr_direct_tables_map(tables)[voxel % slice]);
    int64_t count = 0;
    for (int64_t i = 0; i < info->num_offsets; i++) {
        bool inside = values[i] > 0;
        for (int k = 0; k < 3; k++) inside = inside && at[k] + offsets[i][k] >= 0 && at[k] + offsets[i][k] < size[k];
        if (inside) {
            elements[count++] = (struct element){views->params->lors->offsets[view] + voxel + offsets[i][0] +
                                                     (int64_t)size[0] * offsets[i][1] + slice * offsets[i][2],
                                                 values[i]};
        }
    }
    qsort(elements, (size_t)count, sizeof(*elements), compare_elements);
    return count;
}

static lr_status hand_row(const struct lr_direct_views *views, int64_t voxel, struct element *elements,
                          struct lr_owned_row *out, const lr_row_sink *sink)
{
    out->count = 0;
    for (int view = 0; view < views->params->num_views; view++) {
        const int64_t count = list_view(views, view, voxel, elements);
        for (int64_t k = 0; k < count; k++) lr_owned_row_put(out, elements[k].lor, elements[k].probability);
    }
    const lr_row row = lr_owned_row_view(out, voxel);
    return sink->take(sink->user, &row);
}

lr_status lr_direct_views_rows(struct lr_direct_views *views, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    int64_t most;
    if (wanted->grid == NULL) {
        return lr_error(views->params->log, LR_USAGE,
                        "the family direct knows voxels of its grid, not points between them: ask "
                        "for rows of voxels");
    }
    LR_TRY(open_tables(views, &most));
    struct lr_owned_row row = {0};
    struct element *elements = lr_alloc(most, sizeof(*elements), "a row", views->params->log);
    lr_status status = elements != NULL ? lr_owned_row_reserve(&row, most, views->params->log) : LR_FAILED;
    for (int64_t voxel = wanted->begin; status == LR_OK && voxel < wanted->end; voxel++)
        status = hand_row(views, voxel, elements, &row, sink);
    free(elements);
    lr_owned_row_finish(&row);
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
    free(views->tables);
    free(views->sum);
    free(views->one);
}
