/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "correspondence/native/native.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "model/lors/rows.h"
#include "model/scanner/coincidence.h"
#include "model/scanner/scanner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float two_pi = 6.283185307179586f;

/* Two modules count as equally far if the relative difference of their squared distances is below this. */
static const double tie = 1e-9;

/* The tolerance of tests that exclude modules, and of numbers that are rounded up. */
static const double slack = 1e-9;

/* LANES: number of lines that are followed in parallel. MOST_MET: largest number of boxes that one line may hit in
 * front of the primary, or beyond the point. */
enum { LANES = 64, MOST_MET = 64 };

/* A forward projection keeps the modules as seen from several points. This is the largest number of combinations of a
 * point and a module. */
enum { MOST_SIGHTS = 1 << 16 };

/* The largest memory for the sums of one window of a forward projection, bytes. */
static const int64_t most_sum_bytes = INT64_C(2) << 30;

/* --- modules and points --- */

/* A module as a box of crystals. Coordinates are u, v, and depth behind the front face, with the origin at the centre
 * of the front face. Crystals extend from -half to half, and from 0 to depth. */
struct box {
    double axes[3][3];          /* u, v, outward normal */
    double front[3], centre[3]; /* the origin, and the middle of the detection plane */
    double middle[3], radius;   /* bounding sphere */
    float pitch[2], face[2], gap[2], half[2], depth, mu;
    int size[2];
    int gap_strata[2], num_strata[3];
};

/* A module seen from a point. */
struct seen_module {
    double at[3];        /* the point in the box's coordinates */
    double distance2;    /* squared distance from the middle of the detection plane */
    double towards[3];   /* axis of the cone around the bounding sphere */
    double sine, cosine; /* sine and cosine of half the cone's opening angle; 1 and 0 for a point within the sphere */
};

/* A box that lines of a primary may hit, in the coordinates of the primary. */
struct target {
    int module;
    float rotation[3][3]; /* rotates a vector from the primary's coordinates to the target's */
    float at[3];          /* the point */
    int64_t pair;         /* pair of the primary and this module; -1 = the module only stops photons */
};

/* A module that a line hits, and the position where the line enters it. */
struct met {
    int target;
    float entry;
};

struct crossing {
    int crystal[2];
    float stopped;
};

/* The lines of one row of strata. */
struct lanes {
    float step[3][LANES]; /* from the point to the surface of the primary, in the primary's coordinates */
    float length[LANES], weight[LANES];
    float enter[LANES], leave[LANES];
    int num_opposite[LANES], num_before[LANES];
    struct met opposite[LANES][MOST_MET], before[LANES][MOST_MET];
};

/* Working memory of a thread. */
struct worker {
    struct seen_module *seen;         /* [num_modules] as seen from the current point; not used in forward
                                         projections */
    struct target *opposite, *before; /* [num_modules] */
    int num_opposite, num_before;
    struct crossing *far; /* crystals of the primary that the current line crosses */
    struct lanes lanes;
    struct lr_elements elements; /* rows: elements of the current row */
    double sum;                  /* back: sum for the current voxel */
    lr_status status;
};

struct stopping {
    struct lr_backend_params params;
    struct box *boxes;      /* [num_modules] */
    struct worker *workers; /* [threads] */
};

/* The purpose for which the elements of a point are computed. */
struct use {
    const struct stopping *stopping;
    struct worker *worker;
    const unsigned char *wanted; /* [num_pairs] 1 = the pair's elements are needed; NULL = all pairs */
    const int64_t *places;       /* [num_pairs] index of each pair's first value */
    const float *values;         /* back: values of LORs; NULL = all are 1 */
    double *sums;                /* forward: two sums for each LOR; otherwise NULL */
    float scale;                 /* forward: the voxel's value */
    bool is_row;
};

static void see(const struct stopping *stopping, const double point[3], struct seen_module *seen)
{
    for (int m = 0; m < stopping->params.scanner->num_modules; m++) {
        const struct box *box = &stopping->boxes[m];
        struct seen_module *module = &seen[m];
        double offset[3];
        vec_sub(point, box->front, offset);
        for (int k = 0; k < 3; k++) module->at[k] = vec_dot(box->axes[k], offset);
        vec_sub(box->centre, point, offset);
        module->distance2 = vec_dot(offset, offset);
        vec_sub(box->middle, point, offset);
        const double distance = vec_length(offset);
        const bool within = distance <= box->radius;
        module->sine = within ? 1 : box->radius / distance;
        module->cosine = within ? 0 : sqrt(1 - module->sine * module->sine);
        for (int k = 0; k < 3; k++) module->towards[k] = within ? 0 : offset[k] / distance;
    }
}

/* Returns true if a line through the point may cross the bounding spheres of both modules. side: 1 if the modules are
 * on the same side of the point, -1 if they are on opposite sides. */
static bool may_share_line(const struct seen_module *a, const struct seen_module *b, int side)
{
    return a->cosine == 0 || b->cosine == 0 ||
           side * vec_dot(a->towards, b->towards) >= a->cosine * b->cosine - a->sine * b->sine - slack;
}

/* --- one line through one box --- */

/* The line `at` + t `step` in the coordinates of a box, and its current cell. */
struct path {
    const struct box *box;
    float at[3], step[3], range[2];
    int cell[2];
};

static void clip_slab(float at, float step, float low, float high, float range[2])
{
    if (step == 0.0f) {
        range[1] = at < low || at > high ? -HUGE_VALF : range[1];
        return;
    }
    const float a = (low - at) / step, b = (high - at) / step;
    const float first = a < b ? a : b, last = a < b ? b : a;
    range[0] = first > range[0] ? first : range[0];
    range[1] = last < range[1] ? last : range[1];
}

/* Finds the part of the line inside the box, within 0 <= t <= end. Returns false if there is none. */
static bool enter_box(struct path *path, float end)
{
    const struct box *box = path->box;
    path->range[0] = 0.0f;
    path->range[1] = end;
    for (int k = 0; k < 2; k++) clip_slab(path->at[k], path->step[k], -box->half[k], box->half[k], path->range);
    clip_slab(path->at[2], path->step[2], 0.0f, box->depth, path->range);
    for (int k = 0; k < 2; k++) {
        const float at = path->at[k] + path->range[0] * path->step[k];
        const float cell = floorf(at / box->pitch[k] + 0.5f * (float)box->size[k]);
        const float last = (float)(box->size[k] - 1);
        path->cell[k] = (int)(cell < 0.0f ? 0.0f : cell > last ? last : cell);
    }
    return path->range[1] > path->range[0];
}

/* Returns the length, in units of t, of the line's part within the crystal of the current cell. */
static float crystal_part(const struct path *path)
{
    const struct box *box = path->box;
    float range[2] = {path->range[0], path->range[1]};
    for (int k = 0; k < 2; k++) {
        const float centre = ((float)path->cell[k] - 0.5f * (float)(box->size[k] - 1)) * box->pitch[k];
        const float half = 0.5f * box->face[k];
        clip_slab(path->at[k], path->step[k], centre - half, centre + half, range);
    }
    return range[1] > range[0] ? range[1] - range[0] : 0.0f;
}

/* Moves to the next cell. Returns false if the line has left the box. */
static bool next_cell(struct path *path)
{
    const struct box *box = path->box;
    float leave[2]; /* values of t where the line leaves the cell along each axis */
    for (int k = 0; k < 2; k++) {
        const float step = path->step[k];
        const float edge =
            ((float)path->cell[k] - 0.5f * (float)box->size[k] + (step > 0.0f ? 1.0f : 0.0f)) * box->pitch[k];
        leave[k] = step == 0.0f ? HUGE_VALF : (edge - path->at[k]) / step;
    }
    const int k = leave[1] < leave[0];
    path->cell[k] += path->step[k] > 0.0f ? 1 : -1;
    return leave[k] < path->range[1] && path->cell[k] >= 0 && path->cell[k] < box->size[k];
}

static struct path target_path(const struct stopping *stopping, const struct target *target, const struct lanes *lanes,
                               int lane, float side)
{
    struct path path = {.box = &stopping->boxes[target->module]};
    for (int row = 0; row < 3; row++) {
        path.at[row] = target->at[row];
        path.step[row] =
            side * (target->rotation[row][0] * lanes->step[0][lane] + target->rotation[row][1] * lanes->step[1][lane] +
                    target->rotation[row][2] * lanes->step[2][lane]);
    }
    return path;
}

/* --- elements --- */

static float one_minus_exp(float x)
{
    return x < 0.1f ? x * (1.0f - x * 0.5f * (1.0f - x * (1.0f / 3.0f) * (1.0f - x * 0.25f))) : 1.0f - expf(-x);
}

/* Adds elements for one crystal of the target: `near` with every crystal of the primary on the line. weight: fraction
 * of photons that `near` stops, times the weight of the line. */
static void emit(const struct use *use, int primary, const struct target *target, const int near[2], int num_far,
                 float weight)
{
    const struct stopping *stopping = use->stopping;
    const lr_lors *lors = stopping->params.lors;
    struct worker *worker = use->worker;
    const bool is_lower = primary < target->module;
    const struct box *i = &stopping->boxes[is_lower ? primary : target->module];
    const struct box *j = &stopping->boxes[is_lower ? target->module : primary];
    const int64_t crystals_j = (int64_t)j->size[0] * j->size[1];
    const int64_t first = use->places != NULL ? use->places[target->pair] : lors->offsets[target->pair];
    for (int n = 0; n < num_far; n++) {
        const int *far = worker->far[n].crystal;
        const int *a = is_lower ? far : near, *b = is_lower ? near : far;
        const float value = weight * worker->far[n].stopped;
        if (!lr_coincidence_allows(lors, target->pair, a[0], a[1], b[0], b[1])) continue;
        const int64_t lor =
            first + ((int64_t)a[1] * i->size[0] + a[0]) * crystals_j + (int64_t)b[1] * j->size[0] + b[0];
        if (use->is_row) {
            const lr_status status =
                value > 0.0f ? lr_elements_add(&worker->elements, lor, (double)value, stopping->params.log) : LR_OK;
            worker->status = worker->status == LR_OK ? status : worker->status;
        } else if (use->sums != NULL) {
            use->sums[2 * lor + !is_lower] += (double)(value * use->scale);
        } else {
            worker->sum += (double)(use->values != NULL ? value * use->values[lor] : value);
        }
    }
}

/* Adds the elements of one line. start: the position of the line's point in the primary's coordinates. */
static void follow_line(const struct use *use, int primary, const struct path *start, int lane)
{
    const struct stopping *stopping = use->stopping;
    struct worker *worker = use->worker;
    struct lanes *lanes = &worker->lanes;
    const float length = lanes->length[lane];
    struct met *met = lanes->opposite[lane];
    for (int n = 1; n < lanes->num_opposite[lane]; n++) { /* insertion sort of a few items, nearest first */
        const struct met moved = met[n];
        int place = n;
        for (; place > 0 && met[place - 1].entry > moved.entry; place--) met[place] = met[place - 1];
        met[place] = moved;
    }
    /* Modules in front of the primary stop some of the photons. Each crystal of the primary then stops a fraction of
     * those that are left. */
    struct path path = *start;
    for (int k = 0; k < 3; k++) path.step[k] = lanes->step[k][lane];
    if (!enter_box(&path, HUGE_VALF)) return;
    float depth = 0.0f;
    for (int n = 0; n < lanes->num_before[lane]; n++) {
        const struct target *target = &worker->before[lanes->before[lane][n].target];
        struct path before = target_path(stopping, target, lanes, lane, 1.0f);
        if (enter_box(&before, 1.0f)) do {
                depth += before.box->mu * crystal_part(&before) * length;
            } while (next_cell(&before));
    }
    float left = expf(-depth);
    int num_far = 0;
    do {
        depth = path.box->mu * crystal_part(&path) * length;
        if (depth > 0.0f)
            worker->far[num_far++] = (struct crossing){{path.cell[0], path.cell[1]}, left * one_minus_exp(depth)};
        left *= expf(-depth);
    } while (next_cell(&path));

    left = lanes->weight[lane];
    for (int n = 0; n < lanes->num_opposite[lane] && num_far > 0; n++) {
        const struct target *target = &worker->opposite[met[n].target];
        struct path near = target_path(stopping, target, lanes, lane, -1.0f);
        if (!enter_box(&near, HUGE_VALF)) continue;
        do {
            depth = near.box->mu * crystal_part(&near) * length;
            if (depth > 0.0f && target->pair >= 0)
                emit(use, primary, target, near.cell, num_far, left * one_minus_exp(depth));
            left *= expf(-depth);
        } while (next_cell(&near));
    }
}

/* --- rows of lines --- */

/* Records which lines hit the box of target number k, and where they enter the box: in front of the primary (0 <= t <=
 * 1), or beyond the point. */
static void meet_box(const struct stopping *stopping, struct worker *worker, int count, int k, bool opposite)
{
    const struct target *target = opposite ? &worker->opposite[k] : &worker->before[k];
    const struct box *box = &stopping->boxes[target->module];
    struct lanes *restrict lanes = &worker->lanes;
    const float side = opposite ? -1.0f : 1.0f, end = opposite ? HUGE_VALF : 1.0f;
    const float low[3] = {-box->half[0], -box->half[1], 0.0f};
    const float high[3] = {box->half[0], box->half[1], box->depth};
    for (int n = 0; n < count; n++) {
        lanes->enter[n] = 0.0f;
        lanes->leave[n] = end;
    }
    for (int row = 0; row < 3; row++) {
        const float x = side * target->rotation[row][0], y = side * target->rotation[row][1],
                    z = side * target->rotation[row][2];
        const float to_low = low[row] - target->at[row], to_high = high[row] - target->at[row];
        for (int n = 0; n < count; n++) {
            const float over = 1.0f / (x * lanes->step[0][n] + y * lanes->step[1][n] + z * lanes->step[2][n]);
            const float a = to_low * over, b = to_high * over;
            const float first = a < b ? a : b, last = a < b ? b : a;
            lanes->enter[n] = first > lanes->enter[n] ? first : lanes->enter[n];
            lanes->leave[n] = last < lanes->leave[n] ? last : lanes->leave[n];
        }
    }

    for (int n = 0; n < count; n++) {
        if (!(lanes->leave[n] > lanes->enter[n])) continue;
        int *num = opposite ? &lanes->num_opposite[n] : &lanes->num_before[n];
        if (*num == MOST_MET) {
            worker->status = worker->status != LR_OK ? worker->status
                                                     : lr_error(stopping->params.log, LR_USAGE,
                                                                "a line meets more than %d modules on one side, more "
                                                                "than backend native can hold: use backend cpu",
                                                                MOST_MET);
            return;
        }
        (opposite ? lanes->opposite : lanes->before)[n][(*num)++] = (struct met){k, lanes->enter[n]};
    }
}

/* Returns the position of a line in its stratum, in units of the stratum's width. All backends use the same
 * positions. */
static float place_in_stratum(int module, int index, int other, int second)
{
    static const uint32_t own[2] = {3242174889, 2447445414}, shift[2] = {3518319155, 2882110345};
    const uint32_t sum = UINT32_C(0x80000000) + own[second] * (uint32_t)index + UINT32_C(2654435769) * (uint32_t)other +
                         shift[second] * (uint32_t)module;
    return (float)(sum >> 8) / 16777216.0f;
}

/* Returns the coordinate of a line along an axis. index: number of the line's stratum. place: position of the line in
 * this stratum, 0 to 1. *width: receives the width of the stratum. */
static float find_stratum(const struct box *box, int rays, int axis, int index, float place, float *width)
{
    if (axis == 2) {
        *width = box->depth / (float)box->num_strata[2];
        return ((float)index + place) * *width;
    }
    const int per_cell = rays + box->gap_strata[axis];
    const int cell = index / per_cell, part = index % per_cell;
    const float centre = ((float)cell - 0.5f * (float)(box->size[axis] - 1)) * box->pitch[axis];
    const float half = 0.5f * box->face[axis];
    if (part < rays) {
        *width = box->face[axis] / (float)rays;
        return centre - half + ((float)part + place) * *width;
    }
    *width = box->gap[axis] / (float)box->gap_strata[axis];
    return centre + half + ((float)(part - rays) + place) * *width;
}

/* Follows lines through the side of the primary's box that is perpendicular to `axis` at coordinate `level`. */
static void follow_side(const struct use *use, int primary, const struct path *path, int axis, float level)
{
    const struct box *box = path->box;
    const struct stopping *stopping = use->stopping;
    const int rays = stopping->params.rays;
    const int a = axis == 0 ? 1 : 0, b = axis == 2 ? 1 : 2;
    struct worker *worker = use->worker;
    struct lanes *lanes = &worker->lanes;
    for (int ib = 0; ib < box->num_strata[b]; ib++) {
        for (int begin = 0; begin < box->num_strata[a]; begin += LANES) {
            const int left = box->num_strata[a] - begin, count = left < LANES ? left : LANES;
            for (int n = 0; n < count; n++) {
                const int ia = begin + n;
                float widths[2];
                const float in_a = find_stratum(box, rays, a, ia, place_in_stratum(primary, ia, ib, 0), &widths[0]);
                const float in_b = find_stratum(box, rays, b, ib, place_in_stratum(primary, ib, ia, 1), &widths[1]);
                lanes->step[axis][n] = level - path->at[axis];
                lanes->step[a][n] = in_a - path->at[a];
                lanes->step[b][n] = in_b - path->at[b];
                const float length =
                    sqrtf(lanes->step[0][n] * lanes->step[0][n] + lanes->step[1][n] * lanes->step[1][n] +
                          lanes->step[2][n] * lanes->step[2][n]);
                lanes->length[n] = length;
                lanes->weight[n] =
                    widths[0] * widths[1] * fabsf(lanes->step[axis][n]) / (two_pi * length * length * length);
            }

            memset(lanes->num_opposite, 0, sizeof(lanes->num_opposite));
            memset(lanes->num_before, 0, sizeof(lanes->num_before));
            for (int k = 0; k < worker->num_opposite; k++) meet_box(stopping, worker, count, k, true);
            for (int k = 0; k < worker->num_before; k++) meet_box(stopping, worker, count, k, false);
            for (int n = 0; n < count; n++)
                if (lanes->num_opposite[n] > 0) follow_line(use, primary, path, n);
        }
    }
}

/* Adds all elements of a point that have this module as their primary. */
static void follow_primary(const struct use *use, const struct seen_module *seen, int primary)
{
    const struct stopping *stopping = use->stopping;
    const struct box *from = &stopping->boxes[primary];
    const double own2 = seen[primary].distance2;
    struct worker *worker = use->worker;
    bool any = false;

    /* Finds the modules that lines of the primary may hit. */
    worker->num_before = worker->num_opposite = 0;
    for (int m = 0; m < stopping->params.scanner->num_modules; m++) {
        const bool opposite = may_share_line(&seen[primary], &seen[m], -1);
        const bool before = may_share_line(&seen[primary], &seen[m], 1);
        if (m == primary || (!opposite && !before)) continue;
        const struct box *to = &stopping->boxes[m];
        struct target target = {.module = m, .pair = -1};
        for (int row = 0; row < 3; row++) {
            target.at[row] = (float)seen[m].at[row];
            for (int k = 0; k < 3; k++) target.rotation[row][k] = (float)vec_dot(to->axes[row], from->axes[k]);
        }
        if (before) worker->before[worker->num_before++] = target;
        if (opposite) {
            /* The primary is the farther module of a pair. If both modules are equally far, the primary is the module
             * with the lower number. */
            const double other2 = seen[m].distance2;
            const bool is_primary = fabs(own2 - other2) <= tie * fmax(own2, other2) ? primary < m : own2 > other2;
            const int64_t pair = is_primary ? lr_lors_pair(stopping->params.lors, primary, m) : -1;
            target.pair = pair >= 0 && (use->wanted == NULL || use->wanted[pair]) ? pair : -1;
            any = any || target.pair >= 0;
            worker->opposite[worker->num_opposite++] = target;
        }
    }
    if (!any) return;

    struct path path = {.box = from};
    for (int k = 0; k < 3; k++) path.at[k] = (float)seen[primary].at[k];
    for (int axis = 0; axis < 3; axis++) {
        const float low = axis < 2 ? -from->half[axis] : 0.0f;
        const float high = axis < 2 ? from->half[axis] : from->depth;
        if (path.at[axis] < low || path.at[axis] > high)
            follow_side(use, primary, &path, axis, path.at[axis] < low ? low : high);
    }
}

/* Adds the elements of all points of a row to the worker's sum or elements. The caller divides by the number of
 * points. */
static lr_status follow_row(const struct use *use, const struct lr_rows *rows, int64_t row)
{
    const struct stopping *stopping = use->stopping;
    struct worker *worker = use->worker;
    worker->status = LR_OK;
    worker->sum = 0;
    worker->elements.count = 0;
    for (int k = 0; k < lr_rows_per_row(rows); k++) {
        double point[3];
        lr_rows_point(rows, row, k, point);
        see(stopping, point, worker->seen);
        for (int m = 0; m < stopping->params.scanner->num_modules; m++) follow_primary(use, worker->seen, m);
        if (use->is_row)
            LR_TRY(lr_elements_merge(&worker->elements, stopping->params.lors->count, stopping->params.log));
    }
    return worker->status;
}

/* --- selected pairs --- */

/* The module pairs of a selection, and the index of each pair's first value. */
struct window {
    unsigned char *wanted; /* [num_pairs]; NULL = all pairs */
    int64_t *places;       /* [num_pairs] index of each pair's first value; NULL = values are in the order of LOR
                              numbers */
    int64_t count;         /* number of values */
};

static void close_window(struct window *window)
{
    lr_free_all(window->wanted, window->places);
}

static lr_status open_window(const struct stopping *stopping, const lr_selection *part, struct window *window)
{
    const lr_lors *lors = stopping->params.lors;
    *window = (struct window){.count = lors->count};
    if (part == NULL) return LR_OK;
    window->wanted = lr_alloc(lors->num_pairs, 1, "pairs of modules", stopping->params.log);
    window->places = lr_alloc(lors->num_pairs, sizeof(int64_t), "pairs of modules", stopping->params.log);
    if (window->wanted == NULL || window->places == NULL) {
        close_window(window);
        return LR_FAILED;
    }
    for (int64_t k = 0; k < part->num_pairs && part->lors == NULL; k++) window->wanted[part->pairs[k]] = 1;
    for (int64_t k = 0, pair = 0; k < part->num_lors && part->lors != NULL; k++) {
        while (part->lors[k] >= lors->offsets[pair + 1]) pair++;
        window->wanted[pair] = 1;
    }
    window->count = 0;
    for (int64_t pair = 0; pair < lors->num_pairs; pair++) {
        window->places[pair] = window->count;
        window->count += window->wanted[pair] ? lors->offsets[pair + 1] - lors->offsets[pair] : 0;
    }
    return LR_OK;
}

/* Returns the position of a LOR among the window's values. *pair: on entry, the module pair where the search begins; on
 * return, the pair of the LOR. */
static int64_t place_of(const struct window *window, const lr_lors *lors, int64_t lor, int64_t *pair)
{
    while (lor >= lors->offsets[*pair + 1]) (*pair)++;
    return window->places[*pair] + lor - lors->offsets[*pair];
}

/* --- back --- */

struct back {
    const struct stopping *stopping;
    const struct lr_rows *rows;
    const struct window *window;
    const float *values;
    float *image;
    int64_t first;
    atomic_int status;
};

static void back_rows(void *user, int64_t begin, int64_t end, int number)
{
    struct back *back = user;
    struct worker *worker = &back->stopping->workers[number];
    const struct use use = {.stopping = back->stopping,
                            .worker = worker,
                            .wanted = back->window->wanted,
                            .places = back->window->places,
                            .values = back->values};
    for (int64_t k = begin; k < end; k++) {
        lr_native_set_status(&back->status, follow_row(&use, back->rows, back->first + k));
        back->image[back->first + k] = (float)(worker->sum / lr_rows_per_row(back->rows));
    }
}

static lr_status back(const struct stopping *stopping, const lr_selection *part, const lr_vector *values,
                      lr_vector *image)
{
    const int64_t stretch = (int64_t)16 * stopping->params.threads;
    const struct lr_rows rows = lr_rows_of_voxels(&stopping->params, 0, lr_grid_num_voxels(stopping->params.grid));
    const float *given = values != NULL ? values->values : NULL;
    struct window window;
    LR_TRY(open_window(stopping, part, &window));
    struct back work = {
        .stopping = stopping, .rows = &rows, .window = &window, .values = given, .image = image->values};
    float *spread = NULL;
    lr_status status = LR_OK;
    if (part != NULL && part->lors != NULL) {
        /* If single LORs are given, their values are copied to arrays of whole pairs, which are 0 elsewhere. */
        const lr_lors *lors = stopping->params.lors;
        work.values = spread = lr_alloc(window.count, sizeof(float), "LOR values", stopping->params.log);
        status = spread != NULL ? LR_OK : LR_FAILED;
        for (int64_t k = 0, pair = 0; spread != NULL && k < part->num_lors; k++)
            spread[place_of(&window, lors, part->lors[k], &pair)] = given != NULL ? given[k] : 1.0f;
    }
    for (; work.first < rows.end && status == LR_OK; work.first += stretch) {
        const int64_t left = rows.end - work.first;
        lr_parallel_workers(stopping->params.threads, left < stretch ? left : stretch, 1, back_rows, &work);
        status = (lr_status)atomic_load(&work.status);
        const double done = (double)(left < stretch ? rows.end : work.first + stretch);
        status = status == LR_OK
                     ? lr_progress_report(stopping->params.progress, "back-projecting", done, (double)rows.end)
                     : status;
    }
    free(spread);
    close_window(&window);
    return status;
}

/* --- forward --- */

/* A forward projection of some points. Each thread works on some of the primaries. Each module of a LOR can be its
 * primary, so a LOR has two sums, and two threads never add to the same sum. */
struct forward {
    const struct stopping *stopping;
    const struct window *window;
    double *sums;             /* [count][2] */
    struct seen_module *seen; /* [points][num_modules] */
    const float *values;      /* [points] values of the image */
    int num_points;
    double (*points)[3];
    atomic_int status;
};

static void see_points(void *user, int64_t begin, int64_t end)
{
    struct forward *forward = user;
    const int64_t modules = forward->stopping->params.scanner->num_modules;
    for (int64_t k = begin; k < end; k++) see(forward->stopping, forward->points[k], &forward->seen[k * modules]);
}

static void forward_primaries(void *user, int64_t begin, int64_t end, int number)
{
    struct forward *forward = user;
    const struct stopping *stopping = forward->stopping;
    const int64_t modules = stopping->params.scanner->num_modules;
    struct worker *worker = &stopping->workers[number];
    struct use use = {.stopping = stopping,
                      .worker = worker,
                      .wanted = forward->window->wanted,
                      .places = forward->window->places,
                      .sums = forward->sums};
    worker->status = LR_OK;
    for (int64_t primary = begin; primary < end; primary++) {
        for (int k = 0; k < forward->num_points; k++) {
            use.scale = forward->values[k];
            follow_primary(&use, &forward->seen[k * modules], (int)primary);
        }
    }
    lr_native_set_status(&forward->status, worker->status);
}

static lr_status forward_points(struct forward *forward)
{
    const struct lr_backend_params *params = &forward->stopping->params;
    lr_parallel_for(params->threads, forward->num_points, 1, see_points, forward);
    lr_parallel_workers(params->threads, params->scanner->num_modules, 1, forward_primaries, forward);
    return (lr_status)atomic_load(&forward->status);
}

/* Projects all points to the LORs of one part. values: the values of these LORs, in the order of the selection. */
static lr_status forward_window(const struct stopping *stopping, const lr_selection *part, const float *image,
                                float *values)
{
    const lr_lors *lors = stopping->params.lors;
    const lr_log *log = stopping->params.log;
    const int modules = stopping->params.scanner->num_modules;
    const int most = modules < MOST_SIGHTS / 64 ? MOST_SIGHTS / modules : 64;
    struct window window;
    LR_TRY(open_window(stopping, part, &window));
    struct forward forward = {.stopping = stopping, .window = &window};
    float *point_values = lr_alloc(most, sizeof(float), "sample points", log);
    forward.values = point_values;
    forward.sums = lr_alloc(2 * window.count, sizeof(double), "the values of LORs", log);
    forward.points = lr_alloc(most, sizeof(*forward.points), "sample points", log);
    forward.seen = lr_alloc((int64_t)most * modules, sizeof(*forward.seen), "sample points", log);
    lr_status status = point_values && forward.sums && forward.points && forward.seen ? LR_OK : LR_FAILED;

    const struct lr_rows rows = lr_rows_of_voxels(&stopping->params, 0, lr_grid_num_voxels(stopping->params.grid));
    const lr_progress *progress = stopping->params.progress;
    const int per_row = lr_rows_per_row(&rows);
    for (int64_t row = 0; row < rows.end; row++) {
        for (int k = 0; status == LR_OK && k < per_row && image[row] != 0.0f; k++) {
            lr_rows_point(&rows, row, k, forward.points[forward.num_points]);
            point_values[forward.num_points++] = image[row] / (float)per_row;
            if (forward.num_points < most) continue;
            status = forward_points(&forward);
            if (status == LR_OK)
                status = lr_progress_report(progress, "projecting forward", (double)row, (double)rows.end);
            forward.num_points = 0;
        }
    }
    if (status == LR_OK) status = forward_points(&forward);
    if (status == LR_OK)
        status = lr_progress_report(progress, "projecting forward", (double)rows.end, (double)rows.end);
    const bool is_list = part != NULL && part->lors != NULL;
    const int64_t num = is_list ? part->num_lors : window.count;
    for (int64_t k = 0, pair = 0; k < num && status == LR_OK; k++) {
        const int64_t at = is_list ? place_of(&window, lors, part->lors[k], &pair) : k;
        values[k] = (float)(forward.sums[2 * at] + forward.sums[2 * at + 1]);
    }
    lr_free_all(forward.seen, forward.points, forward.sums, point_values);
    close_window(&window);
    return status;
}

/* Projects module pairs in windows whose sums fit into memory. */
static lr_status forward(const struct stopping *stopping, const lr_selection *part, const lr_vector *image,
                         lr_vector *values)
{
    const lr_lors *lors = stopping->params.lors;
    float *out = values->values;
    const int64_t most = most_sum_bytes / (2 * (int64_t)sizeof(double));
    if ((part != NULL && part->lors != NULL) || (part == NULL && lors->count <= most))
        return forward_window(stopping, part, image->values, out);
    const int64_t num = part != NULL ? part->num_pairs : lors->num_pairs;
    int32_t *pairs = lr_alloc(num, sizeof(*pairs), "pairs of modules", stopping->params.log);
    lr_status status = pairs != NULL ? LR_OK : LR_FAILED;
    for (int64_t begin = 0, end; begin < num && status == LR_OK; begin = end) {
        int64_t count = 0;
        for (end = begin; end < num; end++) {
            const int32_t pair = part != NULL ? part->pairs[end] : (int32_t)end;
            const int64_t own = lors->offsets[pair + 1] - lors->offsets[pair];
            if (end > begin && count + own > most) break;
            pairs[end - begin] = pair;
            count += own;
        }
        const lr_selection window = {.pairs = pairs, .num_pairs = end - begin};
        status = forward_window(stopping, &window, image->values, out);
        out += count;
    }
    free(pairs);
    return status;
}

/* --- rows --- */

struct row_work {
    const struct stopping *stopping;
    const struct lr_rows *rows;
    const struct window *window;
    struct lr_elements *out; /* [rows of the stretch] */
    int64_t first;
    atomic_int status;
};

static void compute_rows(void *user, int64_t begin, int64_t end, int number)
{
    struct row_work *work = user;
    const lr_log *log = work->stopping->params.log;
    struct worker *worker = &work->stopping->workers[number];
    const struct use use = {
        .stopping = work->stopping, .worker = worker, .wanted = work->window->wanted, .is_row = true};
    for (int64_t k = begin; k < end; k++) {
        lr_status status = follow_row(&use, work->rows, work->first + k);
        if (status == LR_OK)
            status = lr_elements_assign(&work->out[k], &worker->elements, 1.0 / lr_rows_per_row(work->rows), log);
        lr_native_set_status(&work->status, status);
    }
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    const struct stopping *stopping = self;
    const int64_t stretch = (int64_t)8 * stopping->params.threads;
    const lr_selection part = {.pairs = wanted->pairs, .num_pairs = wanted->num_pairs};
    struct lr_row_delivery delivery = {.sink = sink, .log = stopping->params.log};
    struct window window;
    LR_TRY(open_window(stopping, wanted->pairs != NULL ? &part : NULL, &window));
    struct row_work work = {.stopping = stopping, .rows = wanted, .window = &window, .first = wanted->begin};
    work.out = lr_alloc(stretch, sizeof(*work.out), "matrix rows", stopping->params.log);
    lr_status status = work.out != NULL ? LR_OK : LR_FAILED;
    for (; work.first < wanted->end && status == LR_OK; work.first += stretch) {
        const int64_t left = wanted->end - work.first, num = left < stretch ? left : stretch;
        status = lr_progress_report(stopping->params.progress, "computing matrix rows",
                                    (double)(work.first - wanted->begin), (double)(wanted->end - wanted->begin));
        if (status == LR_OK) {
            lr_parallel_workers(stopping->params.threads, num, 1, compute_rows, &work);
            status = (lr_status)atomic_load(&work.status);
        }
        for (int64_t k = 0; k < num && status == LR_OK; k++)
            status = lr_row_deliver(&delivery, work.first + k, &work.out[k]);
    }
    for (int64_t k = 0; work.out != NULL && k < stretch; k++) lr_elements_finish(&work.out[k]);
    free(work.out);
    lr_owned_row_finish(&delivery.row);
    close_window(&window);
    return status;
}

/* --- the backend --- */

static lr_status project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in, lr_vector *out)
{
    return (is_forward ? forward : back)(self, part, in, out);
}

static void destroy(void *self)
{
    struct stopping *stopping = self;
    for (int k = 0; stopping->workers != NULL && k < stopping->params.threads; k++) {
        lr_free_all(stopping->workers[k].seen, stopping->workers[k].opposite, stopping->workers[k].before,
                    stopping->workers[k].far);
        lr_elements_finish(&stopping->workers[k].elements);
    }
    lr_free_all(stopping->workers, stopping->boxes, stopping);
}

lr_status lr_native_penetration_create(const struct lr_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {
        .name = "native",
        .has_parts = true,
        .voxel_bytes = 12,
        .heeds_pairs = true,
        .project = project,
        .rows = rows,
        .destroy = destroy,
    };
    if (params->mu != NULL) {
        return lr_error(params->log, LR_USAGE,
                        "backend native follows no lines through an attenuation image: give "
                        "attenuation as factors per LOR, or use backend compute or cpu");
    }
    LR_TRY(lr_penetration_check(params->scanner, params->mode, params->log));
    struct stopping *stopping = lr_alloc(1, sizeof(*stopping), "the native backend", params->log);
    if (stopping == NULL) return LR_FAILED;
    stopping->params = *params;
    const int modules = params->scanner->num_modules;
    stopping->boxes = lr_alloc(modules, sizeof(*stopping->boxes), "the modules", params->log);
    stopping->workers = lr_alloc(params->threads, sizeof(*stopping->workers), "threads", params->log);
    if (stopping->boxes == NULL || stopping->workers == NULL) goto failed;
    int most = 0; /* largest number of crystals that a line crosses, if each step goes to a neighbour along u or v */
    for (int m = 0; m < modules; m++) {
        const lr_module *module = &params->scanner->modules[m];
        struct box *box = &stopping->boxes[m];
        double size2 = module->depth_mm * module->depth_mm;
        box->depth = (float)module->depth_mm;
        box->mu = (float)lr_module_mu_per_mm(params->scanner, m);
        for (int k = 0; k < 3; k++) {
            box->axes[0][k] = module->u[k];
            box->axes[1][k] = module->v[k];
            box->axes[2][k] = -module->normal[k];
            box->front[k] = module->centre_mm[k];
        }
        for (int k = 0; k < 2; k++) {
            const double pitch = module->pitch_mm[k], face = module->face_mm[k], gap = pitch - face;
            const double half = 0.5 * ((module->crystals[k] - 1) * pitch + face);
            box->size[k] = module->crystals[k];
            box->pitch[k] = (float)pitch;
            box->face[k] = (float)face;
            box->gap[k] = (float)gap;
            box->half[k] = (float)half;
            box->gap_strata[k] = gap > slack * pitch ? (int)ceil(params->rays * gap / face - slack) : 0;
            box->num_strata[k] = box->size[k] * (params->rays + box->gap_strata[k]) - box->gap_strata[k];
            size2 += 4 * half * half;
        }
        const double coarse = fmax(module->pitch_mm[0], module->pitch_mm[1]);
        const int deep = (int)ceil(params->rays * module->depth_mm / coarse - slack);
        box->num_strata[2] = deep > 1 ? deep : 1;
        vec_add_scaled(box->front, -0.5 * module->depth_mm, module->normal, box->middle);
        box->radius = 0.5 * sqrt(size2);
        lr_scanner_detection_centre(params->scanner, m, box->centre);
        most = box->size[0] + box->size[1] > most ? box->size[0] + box->size[1] : most;
    }
    for (int k = 0; k < params->threads; k++) {
        struct worker *worker = &stopping->workers[k];
        worker->seen = lr_alloc(modules, sizeof(*worker->seen), "modules", params->log);
        worker->opposite = lr_alloc(modules, sizeof(*worker->opposite), "modules", params->log);
        worker->before = lr_alloc(modules, sizeof(*worker->before), "modules", params->log);
        worker->far = lr_alloc(most, sizeof(*worker->far), "crystals", params->log);
        if (!worker->seen || !worker->opposite || !worker->before || !worker->far) goto failed;
    }
    lr_backend_on_host(backend, &fns, stopping, params->threads, NULL);
    return LR_OK;

failed:
    destroy(stopping);
    return LR_FAILED;
}
