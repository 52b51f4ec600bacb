/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The fit of one panel: its grid of places, its plane and axes, its lines of crystals, their pitches, and uniform
 * blocks. */
#include "base/order.h"
#include "model/scanner/crystal_panels.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/scanner/scanner.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A panel being fitted, whose crystals fill a grid of n[0] x n[1] places: axes[0] = u, axes[1] = v, axes[2] = outward
 * normal. */
struct panel_fit {
    const struct lr_crystal_panel *panel;
    const lr_crystal *crystals;
    int (*places)[2];
    int n[2];
    double mean[3];
    double axes[3][3];
    double size_mm[3]; /* crystal sizes along the axes; 0 = not known */
    double *lines[2];  /* [n] mean coordinate of the crystals of each column, and of each row */
    double scatter_mm; /* largest distance, in the plane, between a crystal and the crossing of its two lines */
    double snap_mm;
    int *starts[2]; /* [num_segments + 1] first line of each uniform piece */
    int num_segments[2];
    int *segment_of[2];       /* [n] the piece that contains the line */
    double *middles_mm[2];    /* [num_segments] mean coordinate of the piece's lines */
    double *pitches_mm[2];    /* [num_segments] step from line to line within each piece */
    double least_pitch_mm[2]; /* least pitch of all pieces */
};

/* Crystals fill this fraction of the available width, so that they do not overlap after places are rounded. */
static const double spared_share = 0.995;

/* --- widths in panels of one line --- */

/* The nearest crystal of another panel along an axis. */
struct neighbour {
    const struct panel_fit *fit;
    int from, axis;
    double distance_mm; /* distance along `axis` and the normal only */
};

static void take_neighbour(void *user, int crystal, double distance2)
{
    struct neighbour *next = user;
    const int *panel = next->fit->panel->growth->panel;
    double offset[3], along[3];
    (void)distance2;
    if (panel[crystal] == panel[next->from]) return;
    vec_sub(next->fit->crystals[crystal].centre_mm, next->fit->crystals[next->from].centre_mm, offset);
    for (int k = 0; k < 3; k++) along[k] = fabs(vec_dot(offset, next->fit->axes[k]));
    const double distance = hypot(along[next->axis], along[2]);
    if (along[next->axis] > along[2] && along[next->axis] > along[1 - next->axis] && distance < next->distance_mm)
        next->distance_mm = distance;
}

/* Returns the width, along an axis, of the crystals of a panel that has one line. Crystals of this panel and of the
 * nearest other panel can both have this width. If no panel is near, the width is the list's spacing. */
static double room_for_line(const struct panel_fit *fit, int axis)
{
    const lr_crystal_list *list = fit->panel->growth->list;
    const struct lr_point_hash *hash = &fit->panel->growth->hash;
    struct neighbour next = {fit, fit->panel->members[0], axis, INFINITY};
    const struct lr_point_visit visit = {take_neighbour, &next};
    const double *at = fit->crystals[next.from].centre_mm;
    for (double reach = hash->cell_mm; reach <= 8.5 * hash->cell_mm && isinf(next.distance_mm); reach *= 2)
        lr_point_hash_visit(hash, at, reach, &visit);
    if (isinf(next.distance_mm)) return hash->cell_mm / LR_CELLS_PER_SPACING;
    /* Crystals around the axis have the least room at their fronts. */
    const double radius = vec_dot(fit->mean, fit->axes[2]);
    const double front = radius - 0.5 * (fit->size_mm[2] > 0 ? fit->size_mm[2] : list->depth_mm);
    const double sine = radius > 0 ? 0.5 * next.distance_mm / radius : 1;
    const bool is_around = axis == 0 && front > 0 && sine < 1;
    const double room = is_around ? 2 * front * tan(asin(sine)) : next.distance_mm;
    return lr_shortest_decimal(spared_share * room, 12, (1 - spared_share) * 0.8 * room);
}

/* --- axes --- */

/* Subtracts from `a` its component along the unit vector `b`, and normalises the rest. False if the rest is too
 * short. */
static bool straighten(double a[3], const double b[3])
{
    vec_add_scaled(a, -vec_dot(a, b), b, a);
    return vec_length(a) > 1e-3 && vec_normalise(a);
}

/* The direction from the scanner's axis to the panel. If the panel lies on the axis, the direction is that of the
 * axis. */
static void radial(const struct panel_fit *fit, double direction[3])
{
    const double *at = fit->mean;
    const bool on_axis = hypot(at[0], at[1]) < 1e-6 * (1 + fabs(at[2]));
    direction[0] = on_axis ? 0 : at[0];
    direction[1] = on_axis ? 0 : at[1];
    direction[2] = on_axis ? 1 : 0;
    (void)vec_normalise(direction);
}

/* Finds two orthogonal directions in the plane, along the two directions of the grid. */
static bool find_directions(const struct panel_fit *fit, double a[3], double b[3])
{
    double normal[3];
    /* Each direction is found by regression of the centres on the places along this direction. In a full grid, the
     * places along the other direction cancel, and gaps between crystals do not rotate the result. */
    double *slopes[2] = {a, b};
    for (int axis = 0; axis < 2; axis++) {
        double *slope = slopes[axis];
        slope[0] = slope[1] = slope[2] = 0;
        for (int m = 0; m < fit->panel->count; m++) {
            const int c = fit->panel->members[m];
            double offset[3];
            vec_sub(fit->crystals[c].centre_mm, fit->mean, offset);
            vec_add_scaled(slope, fit->places[c][axis] - 0.5 * (fit->n[axis] - 1), offset, slope);
        }
        (void)vec_normalise(slope);
    }
    if (fit->n[0] > 1 && fit->n[1] > 1) {
        /* Each direction is rotated by half of the deviation from a right angle. */
        const double off = vec_dot(a, b);
        double kept[3];
        memcpy(kept, a, sizeof(kept));
        vec_add_scaled(a, -0.5 * off, b, a);
        vec_add_scaled(b, -0.5 * off, kept, b);
        (void)vec_normalise(a);
        return straighten(b, a);
    }
    /* The direction that a narrow panel faces: the direction given for its crystals, or else towards the axis. */
    const lr_crystal *first = &fit->crystals[fit->panel->members[0]];
    memcpy(normal, first->axes[2], sizeof(first->axes[2]));
    if (!vec_normalise(normal)) {
        vec_cross(first->axes[0], first->axes[1], normal);
        if (!vec_normalise(normal)) radial(fit, normal);
    }

    if (fit->n[0] == 1 && fit->n[1] == 1) {
        /* A single crystal uses its own axis, or else z, or else y. */
        static const double z[3] = {0, 0, 1}, y[3] = {0, 1, 0};
        const double *const choices[] = {first->axes[1], z, y};
        for (int k = 0; k < 3; k++) {
            memcpy(b, choices[k], sizeof(z));
            if (vec_normalise(b) && straighten(b, normal)) break;
        }
        vec_cross(b, normal, a);
        return vec_normalise(a);
    }
    double *along = fit->n[0] > 1 ? a : b, *across = fit->n[0] > 1 ? b : a;
    if (!straighten(normal, along)) {
        radial(fit, normal);
        if (!straighten(normal, along)) return false;
    }
    vec_cross(along, normal, across);
    return vec_normalise(across);
}

/* --- orientation --- */

static void flip_places(struct panel_fit *fit, int axis)
{
    for (int m = 0; m < fit->panel->count; m++) {
        int *place = &fit->places[fit->panel->members[m]][axis];
        *place = fit->n[axis] - 1 - *place;
    }
}

/* Shifts the places so that they begin at 0, and sets n to their number. False if the crystals do not fill the grid
 * with one crystal per place. */
static bool fill_places(struct panel_fit *fit)
{
    const struct lr_crystal_panel *panel = fit->panel;
    int low[2] = {INT_MAX, INT_MAX}, high[2] = {INT_MIN, INT_MIN};
    for (int m = 0; m < panel->count; m++) {
        for (int k = 0; k < 2; k++) {
            const int at = fit->places[panel->members[m]][k];
            low[k] = at < low[k] ? at : low[k];
            high[k] = at > high[k] ? at : high[k];
        }
    }
    for (int k = 0; k < 2; k++) {
        fit->n[k] = high[k] - low[k] + 1;
        for (int m = 0; m < panel->count; m++) fit->places[panel->members[m]][k] -= low[k];
    }

    if ((int64_t)fit->n[0] * fit->n[1] != panel->count) return false;
    char *taken = lr_alloc(panel->count, 1, "a panel", panel->growth->list->log);
    bool full = taken != NULL;
    for (int m = 0; m < panel->count && full; m++) {
        const int *place = fit->places[panel->members[m]];
        char *here = &taken[place[1] * fit->n[0] + place[0]];
        full = *here == 0;
        *here = 1;
    }
    free(taken);
    return full;
}

/* Sets mean and axes. v is the one of the grid's two directions that is nearer to z, and points upwards. u = v x
 * outward, as in a ring. Places are rotated so that they run along u and v. Returns false if the panel has no plane. */
static bool find_axes(struct panel_fit *fit)
{
    const struct lr_crystal_panel *panel = fit->panel;
    double *u = fit->axes[0], *v = fit->axes[1], *outward = fit->axes[2], away[3], a[3], b[3];
    for (int m = 0; m < panel->count; m++)
        vec_add_scaled(fit->mean, 1.0 / panel->count, fit->crystals[panel->members[m]].centre_mm, fit->mean);
    if (!find_directions(fit, a, b)) return false;

    const bool is_swapped = fabs(a[2]) > fabs(b[2]) + 1e-9;
    memcpy(u, is_swapped ? b : a, sizeof(fit->axes[0]));
    memcpy(v, is_swapped ? a : b, sizeof(fit->axes[1]));
    if (is_swapped) {
        for (int m = 0; m < panel->count; m++) {
            int *place = fit->places[panel->members[m]];
            const int column = place[0];
            place[0] = place[1];
            place[1] = column;
        }
        const int columns = fit->n[0];
        fit->n[0] = fit->n[1];
        fit->n[1] = columns;
    }
    const bool points_down = fabs(v[2]) > 1e-9 ? v[2] < 0 : fabs(v[1]) > 1e-9 ? v[1] < 0 : v[0] < 0;
    if (points_down) {
        for (int k = 0; k < 3; k++) v[k] = -v[k];
        flip_places(fit, 1);
    }
    radial(fit, away);
    vec_cross(u, v, outward);
    const double along = vec_dot(outward, away);
    if ((fabs(along) > 1e-9 ? along : vec_dot(outward, fit->mean)) < 0) {
        for (int k = 0; k < 3; k++) {
            u[k] = -u[k];
            outward[k] = -outward[k];
        }
        flip_places(fit, 0);
    }
    return true;
}

/* Sine of the largest angle, about a degree, between a crystal's known axis and the axis of the grid. */
static const double axis_sine = 0.02;

/* Largest difference between the sizes of a panel's crystals, mm. */
static const double size_tolerance_mm = 0.01;

/* Two steps between lines count as different if their difference exceeds both least_gap_mm and gap_scatter times the
 * scatter of a line's mean. */
static const double least_gap_mm = 2e-3;
static const double gap_scatter = 6;

/* If longer steps are at least this many times as frequent as short steps, the short steps lie between blocks, and the
 * longer steps lie within a block. */
enum { RARE = 4 };

/* Numbers are rounded if crystals then move by less than this length, mm. */
static const double most_snap_mm = 2e-5;

/* --- lines, gaps and pitches --- */

static void coordinates(const struct panel_fit *fit, int crystal, double at[3])
{
    double offset[3];
    vec_sub(fit->crystals[crystal].centre_mm, fit->mean, offset);
    for (int k = 0; k < 3; k++) at[k] = vec_dot(offset, fit->axes[k]);
}

/* Finds the mean coordinate of each line, and the scatter of the crystals around the lines. */
static void find_lines(struct panel_fit *fit)
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
        double at[3]; /* relative to the crossing of the crystal's two lines */
        coordinates(fit, c, at);
        for (int k = 0; k < 2; k++) at[k] -= fit->lines[k][fit->places[c][k]];
        fit->scatter_mm = fmax(fit->scatter_mm, vec_length(at));
    }
    fit->snap_mm = fmin(2 * fit->scatter_mm + 1e-9, most_snap_mm);
}

static double step_at(const struct panel_fit *fit, int axis, int line)
{
    return fit->lines[axis][line + 1] - fit->lines[axis][line];
}

/* Number of sorted steps that equal steps[0] to within `off`. */
static int count_alike(const double *steps, int count, double off)
{
    int alike = 0;
    while (alike < count && steps[alike] <= steps[0] + off) alike++;
    return alike;
}

/* True if the lines of a piece are closer together than least_mm. */
static bool is_narrow(const struct panel_fit *fit, int axis, int s, double least_mm)
{
    const int begin = fit->starts[axis][s], end = fit->starts[axis][s + 1];
    return end - begin > 1 && step_at(fit, axis, begin) < least_mm;
}

/* Divides the lines along an axis into uniform pieces, and finds the pitch of each piece. */
static lr_status find_pitch(struct panel_fit *fit, int axis)
{
    const lr_crystal_list *list = fit->panel->growth->list;
    const int n = fit->n[axis];
    const double gap = fmax(least_gap_mm, gap_scatter * fit->scatter_mm / sqrt(fit->n[1 - axis]));
    double *steps = lr_alloc(n, sizeof(*steps), "a panel", list->log);
    if (steps == NULL) return LR_FAILED;
    /* The usual step from line to line is the median of the steps that are about as short as the shortest step. If
     * short steps are rare, the usual step is the median of the most frequent longer steps. */
    int first_alike = 0;
    for (int k = 0; k < n - 1; k++) steps[k] = step_at(fit, axis, k);
    qsort(steps, (size_t)n - 1, sizeof(*steps), lr_compare_doubles);
    int num_alike = count_alike(steps, n - 1, 2 * gap);
    for (int k = num_alike, alike; k < n - 1; k += alike) {
        alike = count_alike(&steps[k], n - 1 - k, 2 * gap);
        if (alike >= RARE * num_alike) {
            first_alike = k;
            num_alike = alike;
        }
    }
    const double usual = n > 1 ? steps[first_alike + num_alike / 2] : 0;
    free(steps);
    /* A uniform piece has lines at the usual step, or lines that are closer together. A line begins the next piece if
     * its successor is closer than usual. */
    int count = 0;
    fit->starts[axis][0] = 0;
    while (fit->starts[axis][count] < n) {
        const int begin = fit->starts[axis][count];
        int end = begin + 1;
        if (end < n && !(step_at(fit, axis, begin) > usual + gap)) {
            const double first = step_at(fit, axis, begin);
            const double step = first < usual - gap ? first : usual;
            while (end < n - 1 && fabs(step_at(fit, axis, end) - step) <= gap) end++;
            const bool is_closer = end < n - 1 && step_at(fit, axis, end) < step - gap;
            end = is_closer ? end : end + 1;
        }
        double sum = 0;
        for (int k = begin; k < end; k++) {
            sum += fit->lines[axis][k];
            fit->segment_of[axis][k] = count;
        }
        fit->middles_mm[axis][count] = sum / (end - begin);
        fit->starts[axis][++count] = end;
    }
    fit->num_segments[axis] = count;

    /* Regression within the pieces that have the usual step. All these pieces get one pitch. */
    const double least_mm = usual - gap;
    double product = 0, square = 0;
    for (int s = 0; s < count; s++) {
        const int begin = fit->starts[axis][s], end = fit->starts[axis][s + 1];
        for (int k = begin; k < end && !is_narrow(fit, axis, s, least_mm); k++) {
            const double from_middle = k - 0.5 * (begin + end - 1);
            product += from_middle * (fit->lines[axis][k] - fit->middles_mm[axis][s]);
            square += from_middle * from_middle;
        }
    }
    double pitch = square > 0 ? product / square : 0;
    if (pitch > 0) {
        pitch = lr_shortest_decimal(pitch, 12, fmin(2 * fit->snap_mm / n, 0.1 * pitch));
    } else {
        /* If no piece has two lines, the pitch is the size of the crystals, or the usual step if that is smaller or the
         * size is not known. */
        double known = fit->size_mm[axis] > 0 ? fit->size_mm[axis] : list->face_mm[axis];
        if (usual == 0 && known == 0 && list->infers_sizes) known = room_for_line(fit, axis);
        pitch = usual > 0 && (known == 0 || known > usual) ? usual : known;
        if (!(pitch > 0)) {
            return lr_error(
                list->log, LR_BAD_INPUT,
                "%s: crystal %d stands alone along %s, and its width is not known: give the size of the crystals",
                list->name ? list->name : "crystal list", fit->panel->members[0], axis == 0 ? "u" : "v");
        }
    }
    for (int s = 0; s < count; s++) {
        const int begin = fit->starts[axis][s], last = fit->starts[axis][s + 1] - 1;
        double *own = &fit->pitches_mm[axis][s], *least = &fit->least_pitch_mm[axis];
        *own = pitch;
        if (is_narrow(fit, axis, s, least_mm)) {
            *own = (fit->lines[axis][last] - fit->lines[axis][begin]) / (last - begin);
            *own = lr_shortest_decimal(*own, 12, fmin(2 * fit->snap_mm / (last - begin + 1), 0.1 * *own));
        }
        *least = s == 0 ? *own : fmin(*least, *own);
    }
    return LR_OK;
}

/* --- sizes and axes that the list gives --- */

static double sine_between(const double a[3], const double b[3])
{
    double cross[3];
    vec_cross(a, b, cross);
    return vec_length(cross);
}

/* Finds the sizes of the first crystal along the panel's axes, if the crystal's axes fit the panel's axes. */
static lr_status find_sizes(struct panel_fit *fit)
{
    const lr_crystal_list *list = fit->panel->growth->list;
    const int first = fit->panel->members[0];
    const lr_crystal *crystal = &list->crystals[first];
    for (int k = 0; k < 3; k++) {
        int own = -1; /* index of the crystal's axis that is parallel to the panel's axis */
        for (int n = 2; n >= 0; n--) {
            const bool is_along =
                vec_length(crystal->axes[n]) > 0.5 && sine_between(crystal->axes[n], fit->axes[k]) < axis_sine;
            own = is_along ? n : own;
        }
        if (own < 0 && vec_length(crystal->axes[k]) > 0.5) {
            return lr_error(list->log, LR_BAD_INPUT,
                            "%s: crystal %d is turned by %.3g degrees against the grid of the panel it stands in: "
                            "check the orientations, or list crystals that look elsewhere in groups of their own",
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
                                "%s: crystals %d and %d of one panel have the sizes %.6g and %.6g mm: crystals of a "
                                "panel must be alike",
                                list->name ? list->name : "crystal list", first, other, crystal->size_mm[k],
                                list->crystals[other].size_mm[k]);
            }
        }
    }
    return LR_OK;
}

/* --- blocks --- */

/* Appends the uniform pieces of the panel as blocks. */
static lr_status add_blocks(const struct panel_fit *fit, struct lr_crystal_blocks *blocks)
{
    const lr_crystal_list *list = fit->panel->growth->list;
    const char *title = list->name ? list->name : "crystal list";
    struct lr_crystal_block block = {.first_listed = -1};
    const int before = blocks->count;
    lr_module *module = &block.module;
    for (int k = 0; k < 3; k++) {
        module->u[k] = fit->axes[0][k];
        module->v[k] = fit->axes[1][k];
        module->normal[k] = -fit->axes[2][k];
    }
    for (int k = 0; k < 2; k++) {
        /* The face size along an axis is the known size, or else the size that the closest crystals allow. */
        const double size = fit->size_mm[k] > 0 ? fit->size_mm[k] : list->face_mm[k];
        const double least = fit->least_pitch_mm[k];
        if (size > least + fit->panel->tolerance_mm) {
            return lr_error(list->log, LR_BAD_INPUT,
                            "%s: crystals of %.6g mm stand every %.6g mm along %s (crystal %d): they would overlap; "
                            "check the sizes",
                            title, size, least, k == 0 ? "u" : "v", fit->panel->members[0]);
        }
        module->face_mm[k] = size > 0 ? fmin(size, least) : least;
    }
    module->depth_mm = fit->size_mm[2] > 0 ? fit->size_mm[2] : list->depth_mm;
    if (!(module->depth_mm > 0)) {
        return lr_error(list->log, LR_BAD_INPUT,
                        "%s: the list gives the centres of crystals, and not how long they are: give their depth",
                        title);
    }
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
            vec_add_scaled(module->centre_mm, 0.5 * module->depth_mm, module->normal, module->centre_mm);
            block.appended = blocks->count;
            if (blocks->count >= LR_MAX_CRYSTAL_MODULES) {
                return lr_error(list->log, LR_BAD_INPUT,
                                "the crystals do not stand in regular panels: they would make more than %d modules",
                                LR_MAX_CRYSTAL_MODULES);
            }
            const struct lr_items items = {sizeof(*blocks->items), "modules", list->log};
            LR_TRY(lr_grow(&blocks->items, &blocks->room, blocks->count + 1, &items));
            blocks->items[blocks->count++] = block;
        }
    }
    /* Records the block of each crystal, and the first crystal of each block. */
    struct lr_crystal_block *first = &blocks->items[before];
    for (int m = 0; m < fit->panel->count; m++) {
        const int c = fit->panel->members[m];
        const int r = fit->segment_of[0][fit->places[c][0]];
        const int s = fit->segment_of[1][fit->places[c][1]];
        struct lr_crystal_block *linked = &first[s * fit->num_segments[0] + r];
        fit->panel->growth->block[c] = linked->appended;
        if (linked->first_listed < 0 || c < linked->first_listed) linked->first_listed = c;
    }

    return LR_OK;
}

/* --- the whole fit --- */

lr_status lr_crystal_panel_fit(const struct lr_crystal_panel *panel, struct lr_crystal_blocks *blocks,
                               struct lr_crystal_misfit *misfit)
{
    const lr_log *log = panel->growth->list->log;
    struct panel_fit fit = {.panel = panel, .crystals = panel->growth->list->crystals, .places = panel->growth->places};
    *misfit = (struct lr_crystal_misfit){.crystals = {-1, -1, -1}};
    misfit->filled = fill_places(&fit);
    misfit->grid[0] = fit.n[0];
    misfit->grid[1] = fit.n[1];
    misfit->filled = misfit->filled && find_axes(&fit);
    if (!misfit->filled) return LR_OK;

    lr_status status = LR_FAILED;
    for (int k = 0; k < 2; k++) {
        fit.lines[k] = lr_alloc(fit.n[k], sizeof(double), "a panel", log);
        fit.starts[k] = lr_alloc((int64_t)fit.n[k] + 1, sizeof(int), "a panel", log);
        fit.pitches_mm[k] = lr_alloc(fit.n[k], sizeof(double), "a panel", log);
        fit.segment_of[k] = lr_alloc(fit.n[k], sizeof(int), "a panel", log);
        fit.middles_mm[k] = lr_alloc(fit.n[k], sizeof(double), "a panel", log);
        if (fit.lines[k] == NULL || fit.starts[k] == NULL || fit.pitches_mm[k] == NULL || fit.segment_of[k] == NULL ||
            fit.middles_mm[k] == NULL)
            goto done;
    }

    find_lines(&fit);

    /* Panels that are upright to within the scatter of their crystals are made exactly upright. */
    double *u = fit.axes[0], *v = fit.axes[1];
    const double half_mm =
        0.5 * (fit.lines[1][fit.n[1] - 1] - fit.lines[1][0]) + 0.5 * (fit.lines[0][fit.n[0] - 1] - fit.lines[0][0]);
    if (fmax(hypot(v[0], v[1]), fabs(u[2])) * half_mm <= fit.snap_mm && v[2] >= 0.5) {
        v[0] = v[1] = u[2] = 0;
        v[2] = 1;
        const double length = hypot(u[0], u[1]);
        u[0] /= length;
        u[1] /= length;
        vec_cross(u, v, fit.axes[2]);
    }
    find_lines(&fit);

    const bool is_flat = fit.scatter_mm <= panel->tolerance_mm;
    status = is_flat ? find_sizes(&fit) : LR_OK;
    if (is_flat && status == LR_OK) status = find_pitch(&fit, 0);
    if (is_flat && status == LR_OK) status = find_pitch(&fit, 1);
    misfit->fits = is_flat;
    /* Distances of the crystals from their places in the uniform pieces. If the crystals scatter around their lines by
     * more than the tolerance, distances are from the crossings of the lines. The panel does not fit if a distance is
     * beyond the tolerance. */
    for (int m = 0; m < panel->count && status == LR_OK; m++) {
        const int c = panel->members[m];
        double at[3];
        coordinates(&fit, c, at);
        for (int k = 0; k < 2; k++) {
            const int line = fit.places[c][k], s = fit.segment_of[k][line];
            const int begin = fit.starts[k][s], end = fit.starts[k][s + 1];
            at[k] -= is_flat ? fit.middles_mm[k][s] + (line - 0.5 * (begin + end - 1)) * fit.pitches_mm[k][s]
                             : fit.lines[k][line];
        }
        const double off_mm = vec_length(at);
        misfit->fits = misfit->fits && off_mm <= panel->tolerance_mm;
        /* Notes the three crystals that lie farthest off. */
        int rank = 3;
        while (rank > 0 && (misfit->crystals[rank - 1] < 0 || off_mm > misfit->off_mm[rank - 1])) rank--;
        for (int n = 2; n >= rank; n--) {
            misfit->crystals[n] = n > rank ? misfit->crystals[n - 1] : c;
            misfit->off_mm[n] = n > rank ? misfit->off_mm[n - 1] : off_mm;
        }
    }
    if (status == LR_OK && misfit->fits) status = add_blocks(&fit, blocks);

done:
    for (int k = 0; k < 2; k++)
        lr_free_all(fit.lines[k], fit.starts[k], fit.pitches_mm[k], fit.segment_of[k], fit.middles_mm[k]);
    return status;
}
