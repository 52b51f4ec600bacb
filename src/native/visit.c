/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "native/visit.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lors/place.h"

#include <math.h>
#include <stdlib.h>

/* Relative difference of squared distances below which two modules count as equally far. */
#define TIE 1e-9

/* Where vectors begin best. */
enum { ALIGNMENT = 64 };

/* --- memory --- */

static void *align(void *memory)
{
    const uintptr_t at = (uintptr_t)memory;
    return (char *)memory + (ALIGNMENT - at % ALIGNMENT) % ALIGNMENT;
}

lr_status lr_native_view_init(struct lr_native_view *view, const struct lr_native_scene *scene)
{
    const int64_t slots = (lr_native_max_slots(scene) + LR_NATIVE_LANES - 1) / LR_NATIVE_LANES * LR_NATIVE_LANES;
    *view = (struct lr_native_view){.scene = scene, .kernels = lr_native_kernels_at(0), .flat.key.pair = -1};
    view->strips = lr_alloc(lr_native_max_strips(scene), sizeof(*view->strips), "strips", scene->params.log);
    view->memory = lr_alloc(9 * slots + ALIGNMENT, sizeof(float), "elements", scene->params.log);
    if (view->strips == NULL || view->memory == NULL) {
        lr_native_view_finish(view);
        return LR_FAILED;
    }
    view->slots.capacity = slots;
    view->slots.weight = align(view->memory);
    view->slots.overlaps = view->slots.weight + slots;
    view->slots.offset = (int32_t *)(view->slots.overlaps + 4 * slots);
    view->slots.scratch = view->slots.offset + slots;
    return LR_OK;
}

void lr_native_view_finish(struct lr_native_view *view)
{
    free(view->strips);
    free(view->memory);
    lr_native_flat_finish(&view->flat);
    *view = (struct lr_native_view){.flat.key.pair = -1};
}

/* --- along the axis --- */

struct lr_native_axial lr_native_make_axial(const struct lr_native_scene *scene, int64_t pair, bool i_is_primary)
{
    const struct lr_native_pair *at = &scene->pairs[pair];
    const struct lr_native_module *i = &scene->modules[at->i], *j = &scene->modules[at->j];
    const struct lr_native_module *a = i_is_primary ? i : j, *b = i_is_primary ? j : i;
    struct lr_native_axial axial = {
        .pitch_a = (float)a->pitch_along,
        .pitch_b = (float)b->pitch_along,
        .face_b = (float)b->face_along,
        .gap_b = (float)(0.5 * (b->pitch_along - b->face_along)),
        .num_a = a->num_cells,
        .num_b = b->num_cells,
        .stride_a = i_is_primary ? j->num_cells : 1,
        .stride_b = i_is_primary ? 1 : j->num_cells,
        .exact_pitch_a = a->pitch_along,
        .exact_face_a = a->face_along,
        .exact_pitch_b = b->pitch_along,
        .exact_face_b = b->face_along,
        .rays = scene->params.rays,
    };
    lr_native_look_at(&axial, 0, 1);
    return axial;
}

/* What is being visited. */
struct scan {
    struct lr_native_view *view;
    const struct lr_native_visit *visit;
    const struct lr_native_column *column;
    struct lr_native_axial axials[LR_NATIVE_MAX_PARTS]; /* of the strip's parts */
    int num_axials;
    double starts[2]; /* of the primary's and the secondary's first cell */
    bool i_is_primary;
    int begin, end; /* points in these roles */
    int num_strips;
};

static void cut_axials(struct scan *scan, int parts)
{
    for (int n = 0; n < parts && parts != scan->num_axials; n++) {
        scan->axials[n] = scan->axials[0];
        lr_native_look_at(&scan->axials[n], n, parts);
    }
    scan->num_axials = parts;
}

static lr_status prepare_flat(struct scan *scan)
{
    const struct lr_native_strip *strip = &scan->view->strips[0];
    const struct lr_native_flat_key key = {.pair = scan->visit->pair,
                                           .i_is_primary = scan->i_is_primary,
                                           .tau = strip->tau_exactly,
                                           .parts = strip->parts,
                                           .along = scan->column->along,
                                           .count = scan->column->count,
                                           .starts = {scan->starts[0], scan->starts[1]}};
    return lr_native_flat_fill(&scan->view->flat, &key, scan->axials, scan->view->scene->params.log);
}

/* --- points --- */

static lr_status hand_over(const struct scan *scan, const struct lr_native_part *part)
{
    return part->count > 0 ? scan->visit->take(scan->visit->user, part) : LR_OK;
}

/* The elements of a strip with point k. */
static lr_status visit_point(const struct scan *scan, const struct lr_native_strip *strip, struct lr_native_part *part)
{
    const struct lr_native_view *view = scan->view;
    const double z = scan->column->along[part->k];
    const bool is_exact = view->scene->params.mode == LR_MODE_EXACT;
    if (is_exact && strip->dtau == 0.0f) {
        part->count = lr_native_flat_weigh(view, strip, part->k, &part->offset);
        return hand_over(scan, part);
    }
    const struct lr_native_starts starts =
        lr_native_start(strip, (const double[2]){scan->starts[0] - z, scan->starts[1] - z});
    for (int n = 0; n < strip->parts; n++) {
        const struct lr_native_axial *axial = &scan->axials[n];
        part->count = is_exact ? view->kernels->exact(strip, axial, &starts, &view->slots)
                               : view->kernels->sampled(strip, axial, &starts, &view->slots);
        LR_TRY(hand_over(scan, part));
    }
    return LR_OK;
}

static lr_status visit_strip(struct scan *scan, const struct lr_native_strip *strip)
{
    const struct lr_native_scene *scene = scan->view->scene;
    const struct lr_native_pair *pair = &scene->pairs[scan->visit->pair];
    const float *wanted = scan->column->wanted;
    struct lr_native_part part = {
        .block = (int64_t)strip->ci * scene->modules[pair->j].num_columns + strip->cj,
        .ci = strip->ci,
        .cj = strip->cj,
        .weight = scan->view->slots.weight,
        .offset = scan->view->slots.offset,
    };
    cut_axials(scan, strip->parts);
    for (part.k = scan->begin; part.k < scan->end; part.k++)
        if (wanted == NULL || wanted[part.k] != 0.0f) LR_TRY(visit_point(scan, strip, &part));
    return LR_OK;
}

static lr_status visit_strips(struct scan *scan)
{
    for (int n = 0; n < scan->num_strips; n++) {
        const struct lr_native_strip *strip = &scan->view->strips[n];
        if (lr_native_columns_allowed(scan->view->scene, scan->visit->pair, strip->ci, strip->cj))
            LR_TRY(visit_strip(scan, strip));
    }
    return LR_OK;
}

/* The points scan->begin .. end-1 in the scan's roles. */
static lr_status visit_roles(struct scan *scan, const struct lr_native_side sides[2])
{
    const struct lr_native_scene *scene = scan->view->scene;
    const struct lr_native_crossing crossing = lr_native_cross(sides, scan->i_is_primary);
    scan->num_strips = lr_native_find_strips(scene, &crossing, &scan->visit->range, scan->view->strips);
    if (scan->num_strips == 0) return LR_OK;
    scan->axials[0] = lr_native_make_axial(scene, scan->visit->pair, scan->i_is_primary);
    scan->num_axials = 1;
    scan->starts[0] = crossing.primary.module->start_along;
    scan->starts[1] = crossing.secondary.module->start_along;
    if (scene->params.mode == LR_MODE_EXACT && crossing.tau[1] == 0.0) {
        cut_axials(scan, scan->view->strips[0].parts);
        LR_TRY(prepare_flat(scan));
    }
    return visit_strips(scan);
}

bool lr_native_farther_is_i(const struct lr_native_scene *scene, int64_t pair, const double point[2], double along)
{
    double squared[2] = {0.0, 0.0};
    for (int n = 0; n < 2; n++) {
        const struct lr_native_module *module = &scene->modules[n == 0 ? scene->pairs[pair].i : scene->pairs[pair].j];
        const double away[3] = {module->centre[0] - point[0], module->centre[1] - point[1],
                                module->start_along + 0.5 * module->num_cells * module->pitch_along - along};
        squared[n] = away[0] * away[0] + away[1] * away[1] + away[2] * away[2];
    }
    return squared[0] - squared[1] >= -TIE * fmax(squared[0], squared[1]);
}

/* Sampled mode: points with the same roles together, in order. */
static lr_status visit_runs(struct scan *scan, const struct lr_native_side sides[2])
{
    const struct lr_native_column *column = scan->column;
    const struct lr_native_scene *scene = scan->view->scene;
    for (int begin = 0, end; begin < column->count; begin = end) {
        scan->i_is_primary = lr_native_farther_is_i(scene, scan->visit->pair, column->point, column->along[begin]);
        for (end = begin + 1; end < column->count; end++)
            if (lr_native_farther_is_i(scene, scan->visit->pair, column->point, column->along[end]) !=
                scan->i_is_primary)
                break;
        scan->begin = begin;
        scan->end = end;
        LR_TRY(visit_roles(scan, sides));
    }
    return LR_OK;
}

lr_status lr_native_visit_column(struct lr_native_view *view, const struct lr_native_visit *visit,
                                 const struct lr_native_column *column)
{
    struct lr_native_side sides[2];
    if (!lr_native_sees(view->scene, visit->pair, column->point, sides)) return LR_OK;
    struct scan scan = {.view = view, .visit = visit, .column = column, .end = column->count};
    if (view->scene->params.mode != LR_MODE_EXACT) return visit_runs(&scan, sides);
    /* The solid angle is the same in either role; from the higher module it is more accurate. */
    scan.i_is_primary = sides[0].height >= sides[1].height;
    return visit_roles(&scan, sides);
}

/* Values of a pair's crystal columns. */
enum { FEW_CELLS = 256, ROWS_OF_SUMS = 8 };

bool lr_native_sums_each_column(const struct lr_native_scene *scene, int64_t pair)
{
    return lr_native_block_size(scene, pair) <= FEW_CELLS;
}

bool lr_native_sums_row(int y)
{
    return (y + 1) % ROWS_OF_SUMS == 0;
}

struct lr_native_range lr_native_whole_pair(const struct lr_native_scene *scene, int64_t pair, const lr_selection *part)
{
    const struct lr_native_pair *at = &scene->pairs[pair];
    const int modules[2] = {at->i, at->j};
    struct lr_native_range range = {.end = {scene->modules[at->i].num_columns, scene->modules[at->j].num_columns}};
    if (part == NULL || part->interleave <= 1) return range;
    range.interleave = part->interleave;
    range.turn = part->interleave_turn;
    range.angles = scene->params.lors->angles->count;
    for (int n = 0; n < 2; n++) {
        const struct lr_native_module *module = &scene->modules[modules[n]];
        const struct lr_module_places *places = &scene->params.lors->angles->modules[modules[n]];
        const int *crystals = scene->params.scanner->modules[modules[n]].crystals;
        if ((module->step != 1) != places->is_v || crystals[places->is_v] != module->num_columns)
            range.interleave = 0; /* a column has crystals of all places */
        range.first += places->first;
        range.step[n] = places->step;
    }
    return range;
}
