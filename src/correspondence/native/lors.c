/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of single LORs. For each LOR, the sample points in its tube are found. LORs that join the same crystal
 * columns are projected together: they see the same columns of points, through the same strips. */
#include "base/order.h"
#include "correspondence/native/native.h"

#include "base/log.h"
#include "base/mem.h"
#include "correspondence/native/kernels.h"

#include <stdlib.h>

/* The number of LORs of a stretch. A stretch is a range of the list whose LORs are sorted together. */
#define STRETCH ((int64_t)1 << 22)

/* The number of jobs per thread, and the number of groups of LORs per job. */
enum { JOBS_PER_THREAD = 8, GROUPS_PER_JOB = 64 };

struct entry {
    int32_t pair;
    int32_t columns[2]; /* columns of modules i and j */
    int32_t cells[2];
    float value;
    int64_t position; /* index in the caller's values */
};

struct lors {
    struct lr_native *native;
    struct entry *entries;
    int64_t num;
    int64_t *groups; /* [num_groups + 1] first entry of each group; all entries of a group have the same pair of modules
                        and the same crystal columns */
    int64_t num_groups;
    const float *columns; /* forward: the image */
    float *values;        /* forward: the caller's values, which hold the latest float sums; back: NULL */
    double *totals;       /* forward: [num] sums for the LORs from `first` on */
    int64_t first;
    double *sums;     /* back: the image */
    int rows_per_job; /* back: rows of voxels per job */
};

/* --- sorting --- */

static int compare(const void *one, const void *other)
{
    const struct entry *a = one, *b = other;
    return lr_order_lists((const double[]){a->pair, a->columns[0], a->columns[1], (double)a->position},
                          (const double[]){b->pair, b->columns[0], b->columns[1], (double)b->position}, 4);
}

/* Finds the column and cell of a crystal within its module. */
static void place_crystal(const struct lr_native_module *module, int crystal, int32_t *column, int32_t *cell)
{
    const int along = crystal / abs(module->step_along) % module->num_cells;
    *column = crystal / module->step % module->num_columns;
    *cell = module->step_along > 0 ? along : module->num_cells - 1 - along;
}

/* Lists the LORs of a stretch that are in coincidence, sorted by group, without those whose value is 0. */
static void fill(struct lors *lors, const lr_selection *list, const float *values, const int64_t stretch[2])
{
    const struct lr_native_scene *scene = &lors->native->scene;
    const int64_t *offsets = scene->params.lors->offsets;
    int64_t pair = 0;
    lors->num = lors->num_groups = 0;
    for (int64_t k = stretch[0]; k < stretch[1]; k++) {
        while (list->lors[k] >= offsets[pair + 1]) pair++;
        const struct lr_native_pair *at = &scene->pairs[pair];
        const struct lr_native_module *i = &scene->modules[at->i], *j = &scene->modules[at->j];
        const int64_t crystals = (int64_t)j->num_columns * j->num_cells;
        const int64_t within = list->lors[k] - offsets[pair];
        struct entry entry = {.pair = (int32_t)pair, .position = k, .value = values != NULL ? values[k] : 1.0f};
        place_crystal(i, (int)(within / crystals), &entry.columns[0], &entry.cells[0]);
        place_crystal(j, (int)(within % crystals), &entry.columns[1], &entry.cells[1]);
        if (entry.value != 0.0f && lr_native_allowed(scene, pair, entry.columns, entry.cells))
            lors->entries[lors->num++] = entry;
    }
    qsort(lors->entries, (size_t)lors->num, sizeof(*lors->entries), compare);
    for (int64_t k = 0; k < lors->num; k++) {
        const struct entry *here = &lors->entries[k], *last = k > 0 ? here - 1 : NULL;
        if (last == NULL || last->pair != here->pair || last->columns[0] != here->columns[0] ||
            last->columns[1] != here->columns[1])
            lors->groups[lors->num_groups++] = k;
    }
    lors->groups[lors->num_groups] = lors->num;
}

/* --- one column of points --- */

/* A strip between the crystal columns of a group, seen from a column of points. */
struct meeting {
    const struct lors *lors;
    struct lr_native_view *view;
    const struct lr_native_strip *strip;
    struct lr_native_axial axial;
    bool i_is_primary;
    int x, y;         /* sample point across the axis */
    double starts[2]; /* start of the primary's and of the secondary's first cell */
};

/* Returns the solid angle / 2 pi of the region of primary cell cells[0] that is visible through secondary cell
 * cells[1]. If the strip's cells are cut into pieces, only piece `part` of the primary cell counts. */
static float exact_element(const struct meeting *meeting, const struct lr_native_starts *starts, const int cells[2],
                           int part)
{
    const struct lr_native_strip *strip = meeting->strip;
    struct lr_native_axial axial = meeting->axial;
    lr_native_look_at(&axial, part, strip->parts);
    const float at[2] = {(float)cells[0] * axial.pitch_a + axial.middle_a,
                         (float)cells[1] * axial.pitch_b + axial.gap_b};
    const bool is_straight = strip->dtau == 0.0f;
    const struct lr_native_overlap overlap = is_straight ? lr_native_straight_overlap(strip, &axial, starts, at)
                                                         : lr_native_bent_overlap(strip, &axial, starts, at);
    if (!(overlap.height > LR_NATIVE_THIN * axial.half_a)) return 0.0f;
    return is_straight ? lr_native_straight_weight(strip, overlap.y, overlap.height)
                       : lr_native_weight(strip, &overlap);
}

/* Returns the weight of line `ray` of primary cell cells[0] if the line hits secondary cell cells[1], else 0. */
static float sampled_element(const struct meeting *meeting, const struct lr_native_starts *starts, const int cells[2],
                             int ray)
{
    const struct lr_native_strip *strip = meeting->strip;
    const struct lr_native_axial *axial = &meeting->axial;
    const double y = lr_native_line_start(axial, starts->exact_a, cells[0], ray);
    const double place = lr_native_line_place(strip, axial, starts->exact_b, y);
    if (!(place >= 0.0 && place <= axial->num_b)) return 0.0f;
    const int met = place < axial->num_b ? (int)place : axial->num_b - 1;
    return met == cells[1] && lr_native_line_meets(axial, place, met)
               ? (float)(axial->exact_face_a / axial->rays) * lr_native_line_weight(strip, (float)y)
               : 0.0f;
}

/* Adds the elements of one LOR for this strip: forward to its value, back to the voxels. */
static void meet_entry(const struct meeting *meeting, const struct entry *entry)
{
    const struct lr_native_scene *scene = meeting->view->scene;
    const bool is_exact = scene->params.mode == LR_MODE_EXACT;
    const int primary = meeting->i_is_primary ? 0 : 1;
    const int cells[2] = {entry->cells[primary], entry->cells[1 - primary]};
    const int64_t column =
        (int64_t)(meeting->y / scene->num_samples[1]) * scene->num_voxels[0] + meeting->x / scene->num_samples[0];
    const int64_t row = column * scene->num_voxels[2]; /* index of the row of voxels along the axis */
    /* Finds the range `low` to `high` of the points from which the primary cell may be visible through the secondary
     * cell. `slack` is a margin for rounding. */
    const struct lr_native_axial *axial = &meeting->axial;
    const double bend = 0.5 * fabs((double)meeting->strip->dtau), slack = 1e-3 * scene->spacing[2];
    const double on_a = meeting->starts[0] + (cells[0] + 0.5) * axial->exact_pitch_a;
    const double on_b = meeting->starts[1] + (cells[1] + 0.5) * axial->exact_pitch_b;
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (int k = 0; k < 2; k++) {
        const double tau = fmax(meeting->strip->tau_exactly + (k == 0 ? -bend : bend), 0.0);
        const double middle = (on_a + on_b * tau) / (1.0 + tau);
        const double reach = 0.5 * (axial->exact_face_a + axial->exact_face_b * tau) / (1.0 + tau);
        low = fmin(low, middle - reach);
        high = fmax(high, middle + reach);
    }
    const double start = scene->points[2][0], num = scene->num_points[2];
    const int first = (int)fmin(fmax(ceil((low - slack - start) / scene->spacing[2]), 0.0), num);
    const int last = (int)fmin(fmax(floor((high + slack - start) / scene->spacing[2]), -1.0), num - 1.0);
    for (int k = first; k <= last; k++) {
        const double z = scene->points[2][k];
        const double place[2] = {scene->points[0][meeting->x], scene->points[1][meeting->y]};
        if (!is_exact && lr_native_farther_is_i(scene, entry->pair, place, z) != meeting->i_is_primary) continue;
        const struct lr_native_starts starts =
            lr_native_start(meeting->strip, (const double[2]){meeting->starts[0] - z, meeting->starts[1] - z});
        const int count = is_exact ? meeting->strip->parts : scene->params.rays;
        for (int n = 0; n < count; n++) {
            const float weight =
                is_exact ? exact_element(meeting, &starts, cells, n) : sampled_element(meeting, &starts, cells, n);
            if (weight == 0.0f) continue;
            const int64_t voxel = row + k / scene->num_samples[2];
            if (meeting->lors->values != NULL)
                meeting->lors->values[entry->position] += weight * meeting->lors->columns[voxel];
            else
                meeting->lors->sums[voxel] += (double)(weight * entry->value);
        }
    }
}

/* Adds the elements of a group of LORs for one column of points. */
static void meet_column(struct meeting *meeting, const int64_t group[2])
{
    struct lr_native_view *view = meeting->view;
    const struct lr_native_scene *scene = view->scene;
    const struct entry *entries = meeting->lors->entries, *first = &entries[group[0]];
    const double point[2] = {scene->points[0][meeting->x], scene->points[1][meeting->y]};
    struct lr_native_side sides[2];
    if (!lr_native_sees(scene, first->pair, point, sides)) return;

    /* In sampled mode, the role of the primary can change from one module to the other at one point of the column. */
    bool roles[2] = {sides[0].height >= sides[1].height};
    int num_roles = 1;
    if (scene->params.mode != LR_MODE_EXACT) {
        const double *along = scene->points[2];
        roles[0] = lr_native_farther_is_i(scene, first->pair, point, along[0]);
        roles[1] = lr_native_farther_is_i(scene, first->pair, point, along[scene->num_points[2] - 1]);
        num_roles = roles[1] != roles[0] ? 2 : 1;
    }
    const struct lr_native_range range = {.begin = {first->columns[0], first->columns[1]},
                                          .end = {first->columns[0] + 1, first->columns[1] + 1}};
    for (int r = 0; r < num_roles; r++) {
        const struct lr_native_crossing crossing = lr_native_cross(sides, roles[r]);
        const int num = lr_native_find_strips(scene, &crossing, &range, view->strips);
        if (num == 0) continue;
        meeting->i_is_primary = roles[r];
        meeting->axial = lr_native_make_axial(scene, first->pair, roles[r]);
        meeting->starts[0] = crossing.primary.module->start_along;
        meeting->starts[1] = crossing.secondary.module->start_along;
        for (int n = 0; n < num; n++) {
            meeting->strip = &view->strips[n];
            for (int64_t k = group[0]; k < group[1]; k++) meet_entry(meeting, &entries[k]);
        }
    }
}

/* In a forward projection, adds the float sums of a group to the totals in double. */
static void add_to_totals(const struct lors *lors, const int64_t group[2])
{
    for (int64_t k = group[0]; lors->values != NULL && k < group[1]; k++) {
        const int64_t position = lors->entries[k].position;
        lors->totals[position - lors->first] += (double)lors->values[position];
        lors->values[position] = 0.0f;
    }
}

/* Projects a group of LORs for the points in rows begin .. end - 1. */
static void meet_group(struct meeting *meeting, int64_t number, const int between[2])
{
    const struct lors *lors = meeting->lors;
    const struct lr_native_scene *scene = meeting->view->scene;
    const int64_t group[2] = {lors->groups[number], lors->groups[number + 1]};
    const struct entry *first = &lors->entries[group[0]];
    const struct lr_native_range range = {.begin = {first->columns[0], first->columns[1]},
                                          .end = {first->columns[0] + 1, first->columns[1] + 1}};
    const struct lr_native_hull hull = lr_native_make_hull(scene, first->pair, &range);
    int rows[2], columns[2];
    lr_native_hull_rows(scene, &hull, rows);
    const bool each_column = lr_native_block_size(scene, first->pair) <= LR_NATIVE_FEW_CELLS;
    const int begin = rows[0] > between[0] ? rows[0] : between[0];
    const int end = rows[1] < between[1] ? rows[1] : between[1];
    for (meeting->y = begin; meeting->y < end; meeting->y++) {
        lr_native_hull_columns(scene, &hull, meeting->y, columns);
        for (meeting->x = columns[0]; meeting->x < columns[1]; meeting->x++) {
            meet_column(meeting, group);
            if (each_column) add_to_totals(lors, group);
        }
        if ((meeting->y + 1) % LR_NATIVE_ROWS_OF_SUMS == 0) add_to_totals(lors, group);
    }
    add_to_totals(lors, group);
}

/* A job either projects some groups forward for all rows, or projects all groups back into some rows of voxels. */
static lr_status do_job(void *user, int64_t job, struct lr_native_view *view)
{
    const struct lors *lors = user;
    struct meeting meeting = {.lors = lors, .view = view};
    int between[2] = {0, view->scene->num_points[1]};
    int64_t groups[2] = {0, lors->num_groups};
    if (lors->values != NULL) {
        groups[0] = job * GROUPS_PER_JOB;
        groups[1] = groups[0] + GROUPS_PER_JOB < groups[1] ? groups[0] + GROUPS_PER_JOB : groups[1];
    } else {
        const int rows = lors->rows_per_job * view->scene->num_samples[1];
        between[0] = (int)job * rows;
        between[1] = between[0] + rows < between[1] ? between[0] + rows : between[1];
    }
    for (int64_t k = groups[0]; k < groups[1]; k++) {
        LR_TRY(lr_native_ask(view));
        meet_group(&meeting, k, between);
    }
    return LR_OK;
}

lr_status lr_native_project_lors(struct lr_native *native, bool is_forward, const lr_selection *list, float *image,
                                 float *values)
{
    const struct lr_native_scene *scene = &native->scene;
    const lr_log *log = scene->params.log;
    const float scale = 1.0f / (float)scene->num_all_samples;
    const int rows = scene->num_voxels[1];
    const int64_t num = list->num_lors, most = num < STRETCH ? num : STRETCH;
    const int64_t jobs = (int64_t)JOBS_PER_THREAD * native->num_views;
    const int64_t voxels = lr_grid_num_voxels(scene->params.grid);
    struct lors lors = {.native = native, .rows_per_job = (int)((rows + jobs - 1) / jobs)};
    float *columns = is_forward ? lr_alloc(voxels, sizeof(*columns), "an image in columns", log) : NULL;
    if (is_forward) {
        lors.values = values;
        lors.totals = lr_alloc(most, sizeof(*lors.totals), "the values of LORs", log);
    } else {
        lors.sums = lr_alloc(voxels, sizeof(*lors.sums), "an image in columns", log);
    }
    lors.entries = lr_alloc(most, sizeof(*lors.entries), "LORs", log);
    lors.groups = lr_alloc(most + 1, sizeof(*lors.groups), "LORs", log);
    const bool has_memory = is_forward ? columns != NULL && lors.totals != NULL : lors.sums != NULL;
    lr_status status = has_memory && lors.entries != NULL && lors.groups != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK && is_forward) lr_native_to_columns(scene, image, columns);
    lors.columns = columns;
    for (; status == LR_OK && lors.first < num; lors.first += STRETCH) {
        const int64_t begin = lors.first, end = begin + STRETCH < num ? begin + STRETCH : num;
        const struct lr_native_work work = {is_forward ? "projecting forward" : "back-projecting",
                                            (double)begin / (double)num, (double)(end - begin) / (double)num, do_job,
                                            &lors};
        fill(&lors, list, is_forward ? NULL : values, (const int64_t[2]){begin, end});
        for (int64_t k = begin; is_forward && k < end; k++) {
            values[k] = 0.0f;
            lors.totals[k - begin] = 0.0;
        }
        status = lr_native_run(native, &work,
                               is_forward ? (lors.num_groups + GROUPS_PER_JOB - 1) / GROUPS_PER_JOB
                                          : (rows + lors.rows_per_job - 1) / lors.rows_per_job);
        for (int64_t k = begin; status == LR_OK && is_forward && k < end; k++)
            values[k] = (float)lors.totals[k - begin] * scale;
    }
    if (status == LR_OK && !is_forward) lr_native_from_columns(scene, lors.sums, image);
    lr_free_all(lors.entries, lors.groups, lors.totals, lors.sums, columns);
    return status;
}
