/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One panel's lines of crystals, its pitches and its uniform blocks. */
#include "model/scanner/crystal_fit.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

/* Known axes may be off the grid's by this (a degree): they then say nothing new. */
static const double axis_sine = 0.02;

/* Sizes of a panel's crystals may differ by this, mm. */
static const double size_tolerance_mm = 0.01;

/* A gap between crystals counts as wider from here on, mm; and from this many times the scatter of
 * a line's mean. */
static const double least_gap_mm = 2e-3;
static const double gap_scatter = 6;

/* Steps that are shorter than others, and this many times as rare, are those between blocks that
 * stand closer than the crystals within them. */
enum { RARE = 4 };

/* Numbers are rounded as long as crystals move by less than this, mm. */
static const double most_snap_mm = 2e-5;

/* --- lines, gaps and pitches --- */

static void coordinates(const struct lr_crystal_fit *fit, int crystal, double at[3])
{
    double way[3];
    vec_sub(fit->crystals[crystal].centre_mm, fit->mean, way);
    for (int k = 0; k < 3; k++) at[k] = vec_dot(way, fit->axes[k]);
}

/* How far a crystal is from where its two lines cross. */
static double off_lines(const struct lr_crystal_fit *fit, int crystal)
{
    double at[3];
    coordinates(fit, crystal, at);
    for (int k = 0; k < 2; k++) at[k] -= fit->lines[k][fit->places[crystal][k]];
    return vec_length(at);
}

static void find_lines(struct lr_crystal_fit *fit)
{
    for (int k = 0; k < 2; k++) memset(fit->lines[k], 0, (size_t)fit->n[k] * sizeof(double));
    for (int m = 0; m < fit->panel->count; m++) {
        const int c = fit->panel->members[m];
        double at[3];
        coordinates(fit, c, at);
        for (int k = 0; k < 2; k++) fit->lines[k][fit->places[c][k]] += at[k] / fit->n[1 - k];
    }
    fit->scatter_mm = 0;
    for (int m = 0; m < fit->panel->count; m++) {
        const int c = fit->panel->members[m];
        fit->scatter_mm = fmax(fit->scatter_mm, off_lines(fit, c));
    }
    fit->snap_mm = fmin(2 * fit->scatter_mm + 1e-9, most_snap_mm);
}

/* Panels that are upright to within the scatter of their crystals become so. */
static void snap_upright(struct lr_crystal_fit *fit)
{
    double *u = fit->axes[0], *v = fit->axes[1], *outward = fit->axes[2];
    const double half_mm = 0.5 * (fit->lines[1][fit->n[1] - 1] - fit->lines[1][0]) +
                           0.5 * (fit->lines[0][fit->n[0] - 1] - fit->lines[0][0]);
    if (fmax(hypot(v[0], v[1]), fabs(u[2])) * half_mm > fit->snap_mm || v[2] < 0.5) return;
    v[0] = v[1] = u[2] = 0;
    v[2] = 1;
    const double length = hypot(u[0], u[1]);
    u[0] /= length;
    u[1] /= length;
    vec_cross(u, v, outward);
}

static int compare_doubles(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double step_at(const struct lr_crystal_fit *fit, int axis, int line)
{
    return fit->lines[axis][line + 1] - fit->lines[axis][line];
}

/* How many sorted steps, from one of them on, are as long as that. */
static int count_alike(const double *steps, int count, double off)
{
    int alike = 0;
    while (alike < count && steps[alike] <= steps[0] + off) alike++;
    return alike;
}

/* The usual step from line to line: the median of those that are about as short as the shortest,
 * unless these are rare. */
static double usual_step(const struct lr_crystal_fit *fit, int axis, double gap_mm, double *steps)
{
    const int count = fit->n[axis] - 1;
    for (int k = 0; k < count; k++) steps[k] = step_at(fit, axis, k);
    qsort(steps, (size_t)count, sizeof(*steps), compare_doubles);
    int first = 0, usual = count_alike(steps, count, 2 * gap_mm);
    for (int k = usual, alike; k < count; k += alike) {
        alike = count_alike(&steps[k], count - k, 2 * gap_mm);
        if (alike >= RARE * usual) {
            first = k;
            usual = alike;
        }
    }
    return count > 0 ? steps[first + usual / 2] : 0;
}

/* Where the uniform piece that begins at a line ends: lines at the usual step, or lines that stand
 * closer. Of two lines that stand closer the first is left to them. */
static int end_of_piece(const struct lr_crystal_fit *fit, int axis, int begin, double usual, double gap_mm)
{
    const int last = fit->n[axis] - 1;
    if (begin == last || step_at(fit, axis, begin) > usual + gap_mm) return begin + 1;
    const double first = step_at(fit, axis, begin);
    const double step = first < usual - gap_mm ? first : usual;
    int end = begin + 1;
    while (end < last && fabs(step_at(fit, axis, end) - step) <= gap_mm) end++;
    const bool is_closer = end < last && step_at(fit, axis, end) < step - gap_mm;
    return is_closer ? end : end + 1;
}

static void cut_segments(struct lr_crystal_fit *fit, int axis, double usual, double gap_mm)
{
    int count = 0;
    fit->starts[axis][0] = 0;
    while (fit->starts[axis][count] < fit->n[axis]) {
        const int begin = fit->starts[axis][count];
        const int end = end_of_piece(fit, axis, begin, usual, gap_mm);
        double sum = 0;
        for (int k = begin; k < end; k++) {
            sum += fit->lines[axis][k];
            fit->segment_of[axis][k] = count;
        }
        fit->middles_mm[axis][count] = sum / (end - begin);
        fit->starts[axis][++count] = end;
    }
    fit->num_segments[axis] = count;
}

/* Whether the lines of a piece stand closer than usual. */
static bool is_narrow(const struct lr_crystal_fit *fit, int axis, int s, double least_mm)
{
    const int begin = fit->starts[axis][s], end = fit->starts[axis][s + 1];
    return end - begin > 1 && step_at(fit, axis, begin) < least_mm;
}

/* Regression within the pieces of the usual step, all with one pitch; 0 when each has one line
 * only. */
static double regress_pitch(const struct lr_crystal_fit *fit, int axis, double least_mm)
{
    double product = 0, square = 0;
    for (int s = 0; s < fit->num_segments[axis]; s++) {
        const int begin = fit->starts[axis][s], end = fit->starts[axis][s + 1];
        for (int k = begin; k < end && !is_narrow(fit, axis, s, least_mm); k++) {
            const double from_middle = k - 0.5 * (begin + end - 1);
            product += from_middle * (fit->lines[axis][k] - fit->middles_mm[axis][s]);
            square += from_middle * from_middle;
        }
    }
    return square > 0 ? product / square : 0;
}

static double round_pitch(const struct lr_crystal_fit *fit, double pitch_mm, int lines)
{
    return lr_shortest_decimal(pitch_mm, fmin(2 * fit->snap_mm / lines, 0.1 * pitch_mm));
}

static void fill_pitches(struct lr_crystal_fit *fit, int axis, double usual_mm, double least_mm)
{
    for (int s = 0; s < fit->num_segments[axis]; s++) {
        const int begin = fit->starts[axis][s], last = fit->starts[axis][s + 1] - 1;
        fit->pitches_mm[axis][s] =
            is_narrow(fit, axis, s, least_mm)
                ? round_pitch(fit, (fit->lines[axis][last] - fit->lines[axis][begin]) / (last - begin),
                              last - begin + 1)
                : usual_mm;
        fit->least_pitch_mm[axis] =
            s == 0 ? fit->pitches_mm[axis][0] : fmin(fit->least_pitch_mm[axis], fit->pitches_mm[axis][s]);
    }
}

/* The place that a line takes where none of the pieces has two. */
static lr_status lone_pitch(const struct lr_crystal_fit *fit, int axis, double step, double *pitch)
{
    const lr_crystal_list *list = fit->panel->growth->list;
    double known = fit->size_mm[axis] > 0 ? fit->size_mm[axis] : list->face_mm[axis];
    if (step == 0 && known == 0 && list->infers_sizes) known = lr_crystal_fit_room(fit, axis);
    *pitch = step > 0 && (known == 0 || known > step) ? step : known;
    return *pitch > 0
               ? LR_OK
               : lr_error(list->log, LR_BAD_INPUT,
                          "%s: crystal %d stands alone along %s, and its width is not "
                          "known: give the size of the crystals",
                          list->name ? list->name : "crystal list", fit->panel->members[0], axis == 0 ? "u" : "v");
}

static lr_status find_pitch(struct lr_crystal_fit *fit, int axis)
{
    const int n = fit->n[axis];
    const double gap = fmax(least_gap_mm, gap_scatter * fit->scatter_mm / sqrt(fit->n[1 - axis]));
    double *steps = lr_alloc(n, sizeof(*steps), "a panel", fit->panel->growth->list->log);
    if (steps == NULL) return LR_FAILED;
    const double step = usual_step(fit, axis, gap, steps);
    free(steps);
    cut_segments(fit, axis, step, gap);
    double pitch = regress_pitch(fit, axis, step - gap);
    if (pitch > 0)
        pitch = round_pitch(fit, pitch, n);
    else
        LR_TRY(lone_pitch(fit, axis, step, &pitch));
    fill_pitches(fit, axis, pitch, step - gap);
    return LR_OK;
}

/* --- what the crystals say of themselves --- */

static double sine_between(const double a[3], const double b[3])
{
    double cross[3];
    vec_cross(a, b, cross);
    return vec_length(cross);
}

/* Which of a crystal's axes lies along one of the panel's; -1 where none is known to. */
static int match_axis(const lr_crystal *crystal, const double axis[3])
{
    for (int k = 0; k < 3; k++)
        if (vec_length(crystal->axes[k]) > 0.5 && sine_between(crystal->axes[k], axis) < axis_sine) return k;
    return -1;
}

/* Sizes of the first crystal along the panel's axes, once its axes fit them. */
static lr_status find_sizes(struct lr_crystal_fit *fit)
{
    const lr_crystal_list *list = fit->panel->growth->list;
    const int first = fit->panel->members[0];
    const lr_crystal *crystal = &list->crystals[first];
    for (int k = 0; k < 3; k++) {
        int own = match_axis(crystal, fit->axes[k]);
        if (own < 0 && vec_length(crystal->axes[k]) > 0.5) {
            return lr_error(list->log, LR_BAD_INPUT,
                            "%s: crystal %d is turned by %.3g degrees against the grid of the "
                            "panel it stands in: check the orientations, or list crystals that "
                            "look elsewhere in groups of their own",
                            list->name ? list->name : "crystal list", first,
                            asin(fmin(1, sine_between(crystal->axes[k], fit->axes[k]))) * 57.29577951308232);
        }
        own = own < 0 ? k : own;
        fit->size_mm[k] = crystal->size_mm[own];
    }
    for (int m = 1; m < fit->panel->count; m++) {
        const int other = fit->panel->members[m];
        for (int k = 0; k < 3; k++) {
            if (fabs(list->crystals[other].size_mm[k] - crystal->size_mm[k]) > size_tolerance_mm) {
                return lr_error(list->log, LR_BAD_INPUT,
                                "%s: crystals %d and %d of one panel have the sizes %.6g and "
                                "%.6g mm: crystals of a panel must be alike",
                                list->name ? list->name : "crystal list", first, other, crystal->size_mm[k],
                                list->crystals[other].size_mm[k]);
            }
        }
    }
    return LR_OK;
}

/* --- blocks --- */

/* The face of the crystals along one of the panel's axes: as known, else as wide as the closest of
 * them leave it. */
static lr_status find_face(const struct lr_crystal_fit *fit, int axis, double *face_mm)
{
    const lr_crystal_list *list = fit->panel->growth->list;
    const double size = fit->size_mm[axis] > 0 ? fit->size_mm[axis] : list->face_mm[axis];
    const double least = fit->least_pitch_mm[axis];
    if (size > least + fit->panel->tolerance_mm) {
        return lr_error(list->log, LR_BAD_INPUT,
                        "%s: crystals of %.6g mm stand every %.6g mm along %s (crystal %d): they "
                        "would overlap; check the sizes",
                        list->name ? list->name : "crystal list", size, least, axis == 0 ? "u" : "v",
                        fit->panel->members[0]);
    }
    *face_mm = size > 0 ? fmin(size, least) : least;
    return LR_OK;
}

/* What the modules of a panel share. */
static lr_status fill_module(const struct lr_crystal_fit *fit, lr_module *module)
{
    const lr_crystal_list *list = fit->panel->growth->list;
    for (int k = 0; k < 3; k++) {
        module->u[k] = fit->axes[0][k];
        module->v[k] = fit->axes[1][k];
        module->normal[k] = -fit->axes[2][k];
    }
    for (int k = 0; k < 2; k++) LR_TRY(find_face(fit, k, &module->face_mm[k]));
    module->depth_mm = fit->size_mm[2] > 0 ? fit->size_mm[2] : list->depth_mm;
    if (!(module->depth_mm > 0)) {
        return lr_error(list->log, LR_BAD_INPUT,
                        "%s: the list gives the centres of crystals, and not how long they are: "
                        "give their depth",
                        list->name ? list->name : "crystal list");
    }
    return LR_OK;
}

static lr_status add_block(struct lr_crystal_blocks *blocks, const struct lr_crystal_block *block, const lr_log *log)
{
    if (blocks->count >= LR_MAX_CRYSTAL_MODULES) {
        return lr_error(log, LR_BAD_INPUT,
                        "the crystals do not stand in regular panels: they would make more than "
                        "%d modules",
                        LR_MAX_CRYSTAL_MODULES);
    }
    const struct lr_items items = {sizeof(*blocks->items), "modules", log};
    LR_TRY(lr_grow(&blocks->items, &blocks->room, blocks->count + 1, &items));
    blocks->items[blocks->count++] = *block;
    return LR_OK;
}

/* Tells each crystal its block, and each block its first crystal. */
static void link_crystals(const struct lr_crystal_fit *fit, struct lr_crystal_block *first)
{
    for (int m = 0; m < fit->panel->count; m++) {
        const int c = fit->panel->members[m];
        const int r = fit->segment_of[0][fit->places[c][0]];
        const int s = fit->segment_of[1][fit->places[c][1]];
        struct lr_crystal_block *block = &first[s * fit->num_segments[0] + r];
        fit->panel->growth->block[c] = block->appended;
        if (block->first_listed < 0 || c < block->first_listed) block->first_listed = c;
    }
}

static lr_status add_blocks(const struct lr_crystal_fit *fit, struct lr_crystal_blocks *blocks)
{
    struct lr_crystal_block block = {.first_listed = -1};
    const int before = blocks->count;
    LR_TRY(fill_module(fit, &block.module));
    const lr_module panel = block.module;
    for (int s = 0; s < fit->num_segments[1]; s++) {
        for (int r = 0; r < fit->num_segments[0]; r++) {
            const int segment[2] = {r, s};
            memcpy(block.module.centre_mm, fit->mean, sizeof(fit->mean));
            for (int k = 0; k < 2; k++) {
                const int begin = fit->starts[k][segment[k]], end = fit->starts[k][segment[k] + 1];
                block.first[k] = begin;
                block.module.crystals[k] = end - begin;
                block.module.pitch_mm[k] = fit->pitches_mm[k][segment[k]];
                vec_add_scaled(block.module.centre_mm, fit->middles_mm[k][segment[k]], fit->axes[k],
                               block.module.centre_mm);
            }
            vec_add_scaled(block.module.centre_mm, 0.5 * panel.depth_mm, panel.normal, block.module.centre_mm);
            block.appended = blocks->count;
            LR_TRY(add_block(blocks, &block, fit->panel->growth->list->log));
        }
    }
    link_crystals(fit, &blocks->items[before]);
    return LR_OK;
}

/* --- all of it --- */

void lr_crystal_misfit_note(struct lr_crystal_misfit *misfit, int crystal, double off_mm)
{
    for (int k = 0; k < 3; k++) {
        if (misfit->crystals[k] < 0 || off_mm > misfit->off_mm[k]) {
            for (int m = 2; m > k; m--) {
                misfit->crystals[m] = misfit->crystals[m - 1];
                misfit->off_mm[m] = misfit->off_mm[m - 1];
            }
            misfit->crystals[k] = crystal;
            misfit->off_mm[k] = off_mm;
            return;
        }
    }
}

/* Distances of the crystals from their places; false where one is beyond the tolerance. */
static bool measure(const struct lr_crystal_fit *fit, struct lr_crystal_misfit *misfit)
{
    bool within = true;
    for (int m = 0; m < fit->panel->count; m++) {
        const int c = fit->panel->members[m];
        double at[3];
        coordinates(fit, c, at);
        for (int k = 0; k < 2; k++) {
            const int line = fit->places[c][k], s = fit->segment_of[k][line];
            const int begin = fit->starts[k][s], end = fit->starts[k][s + 1];
            at[k] -= fit->middles_mm[k][s] + (line - 0.5 * (begin + end - 1)) * fit->pitches_mm[k][s];
        }
        lr_crystal_misfit_note(misfit, c, vec_length(at));
        within = within && vec_length(at) <= fit->panel->tolerance_mm;
    }
    return within;
}

static lr_status allocate(struct lr_crystal_fit *fit, const lr_log *log)
{
    for (int k = 0; k < 2; k++) {
        fit->lines[k] = lr_alloc(fit->n[k], sizeof(double), "a panel", log);
        fit->starts[k] = lr_alloc((int64_t)fit->n[k] + 1, sizeof(int), "a panel", log);
        fit->pitches_mm[k] = lr_alloc(fit->n[k], sizeof(double), "a panel", log);
        fit->segment_of[k] = lr_alloc(fit->n[k], sizeof(int), "a panel", log);
        fit->middles_mm[k] = lr_alloc(fit->n[k], sizeof(double), "a panel", log);
        if (fit->lines[k] == NULL || fit->starts[k] == NULL || fit->pitches_mm[k] == NULL ||
            fit->segment_of[k] == NULL || fit->middles_mm[k] == NULL)
            return LR_FAILED;
    }
    return LR_OK;
}

/* Distances of the crystals from where their lines cross. */
static void measure_scatter(const struct lr_crystal_fit *fit, struct lr_crystal_misfit *misfit)
{
    for (int m = 0; m < fit->panel->count; m++) {
        const int c = fit->panel->members[m];
        lr_crystal_misfit_note(misfit, c, off_lines(fit, c));
    }
}

static lr_status fit_grid(struct lr_crystal_fit *fit, struct lr_crystal_blocks *blocks,
                          struct lr_crystal_misfit *misfit)
{
    LR_TRY(allocate(fit, fit->panel->growth->list->log));
    find_lines(fit);
    snap_upright(fit);
    find_lines(fit);
    misfit->fits = fit->scatter_mm <= fit->panel->tolerance_mm;
    if (!misfit->fits) {
        measure_scatter(fit, misfit);
        return LR_OK;
    }
    LR_TRY(find_sizes(fit));
    LR_TRY(find_pitch(fit, 0));
    LR_TRY(find_pitch(fit, 1));
    misfit->fits = measure(fit, misfit);
    return misfit->fits ? add_blocks(fit, blocks) : LR_OK;
}

lr_status lr_crystal_panel_fit(const struct lr_crystal_panel *panel, struct lr_crystal_blocks *blocks,
                               struct lr_crystal_misfit *misfit)
{
    struct lr_crystal_fit fit = {
        .panel = panel, .crystals = panel->growth->list->crystals, .places = panel->growth->places};
    *misfit = (struct lr_crystal_misfit){.crystals = {-1, -1, -1}};
    misfit->filled = lr_crystal_fit_places(&fit);
    misfit->grid[0] = fit.n[0];
    misfit->grid[1] = fit.n[1];
    if (!misfit->filled || !lr_crystal_fit_axes(&fit)) {
        misfit->filled = false;
        return LR_OK;
    }
    const lr_status status = fit_grid(&fit, blocks, misfit);
    for (int k = 0; k < 2; k++) {
        free(fit.lines[k]);
        free(fit.starts[k]);
        free(fit.pitches_mm[k]);
        free(fit.segment_of[k]);
        free(fit.middles_mm[k]);
    }
    return status;
}
