/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "native/strip.h"

#include <math.h>

#define TWO_PI 6.283185307179586

/* A slope of tau this small moves no edge: rounding of parallel modules' axes. */
#define PARALLEL 1e-13

/* The density over a piece is taken to second order, and its edges along the axis as straight: edge
 * of a piece over its distance, and change of tau over it, at most. Either leaves an error of some
 * 5e-6 of an element, in corners next to a module; elsewhere it is less. */
#define PIECE 0.1
#define BEND 0.04

/* Part of a face below which a strip is left out. */
#define SLIVER 1e-9

static double dot(const double a[2], const double b[2])
{
    return a[0] * b[0] + a[1] * b[1];
}

static struct lr_native_side make_side(const struct lr_native_module *module, const double point[2])
{
    struct lr_native_side side = {.module = module,
                                  .centre = {module->centre[0] - point[0], module->centre[1] - point[1]}};
    side.foot = dot(module->tangent, side.centre);
    side.height = -dot(module->normal, side.centre);
    return side;
}

bool lr_native_sees(const struct lr_native_scene *scene, int64_t pair, const double point[2],
                    struct lr_native_side sides[2])
{
    const struct lr_native_pair *at = &scene->pairs[pair];
    sides[0] = make_side(&scene->modules[at->i], point);
    sides[1] = make_side(&scene->modules[at->j], point);
    return sides[0].height > 0.0 && sides[1].height > 0.0;
}

struct lr_native_crossing lr_native_cross(const struct lr_native_side sides[2], bool i_is_primary)
{
    const struct lr_native_side *a = &sides[i_is_primary ? 0 : 1];
    const struct lr_native_side *b = &sides[i_is_primary ? 1 : 0];
    const struct lr_native_module *on_a = a->module, *on_b = b->module;
    const double turn = dot(on_b->normal, on_a->tangent);
    return (struct lr_native_crossing){
        .primary = *a,
        .secondary = *b,
        .i_is_primary = i_is_primary,
        .tau = {dot(on_b->normal, a->centre) / b->height, fabs(turn) < PARALLEL ? 0.0 : turn / b->height},
        .on_second = {dot(on_b->tangent, a->centre), dot(on_b->tangent, on_a->tangent)},
        .reach = {dot(on_a->normal, b->centre), dot(on_a->normal, on_b->tangent)},
        .on_first = {dot(on_a->tangent, b->centre), dot(on_a->tangent, on_b->tangent)},
    };
}

static double tau_at(const struct lr_native_crossing *crossing, double u)
{
    return crossing->tau[0] + crossing->tau[1] * u;
}

/* Coordinate on the primary from where a line comes to coordinate w of the secondary. Where it comes
 * from beside or behind, the end to which the last lines from the front went. */
static double on_primary(const struct lr_native_crossing *crossing, double w)
{
    const double *reach = crossing->reach, *on_first = crossing->on_first;
    const double height = crossing->primary.height, depth = reach[0] + reach[1] * w;
    if (depth > 1e-9 * height) return -height * (on_first[0] + on_first[1] * w) / depth - crossing->primary.foot;
    const double level = reach[1] != 0.0 ? -reach[0] / reach[1] : w; /* along the primary */
    return on_first[0] + on_first[1] * level > 0.0 ? -1e12 : 1e12;
}

/* Coordinate on the secondary that a line from u meets; tau is positive there. */
static double on_secondary(const struct lr_native_crossing *crossing, double u)
{
    return -(crossing->on_second[0] + crossing->on_second[1] * u) / tau_at(crossing, u) - crossing->secondary.foot;
}

static double column_middle(const struct lr_native_module *module, int column)
{
    return (column - 0.5 * (module->num_columns - 1)) * module->pitch;
}

/* Columns between two coordinates, with room for rounding: begin, end. */
static void columns_between(const struct lr_native_module *module, double from, double to, int between[2])
{
    const double half = 0.5 * module->num_columns, num = module->num_columns;
    const double low = floor(fmin(from, to) / module->pitch + half - 1e-6);
    const double high = floor(fmax(from, to) / module->pitch + half + 1e-6);
    between[0] = (int)fmin(fmax(low, 0.0), num);
    between[1] = (int)fmin(fmax(high + 1.0, 0.0), num);
}

/* Columns of the secondary that those of the primary between u0 < u1 may be seen through. */
static void secondary_columns(const struct lr_native_crossing *crossing, double u0, double u1, int between[2])
{
    const struct lr_native_module *module = crossing->secondary.module;
    if (tau_at(crossing, u0) <= 1e-9 || tau_at(crossing, u1) <= 1e-9) {
        between[0] = 0;
        between[1] = module->num_columns;
        return;
    }
    columns_between(module, on_secondary(crossing, u0), on_secondary(crossing, u1), between);
}

/* Columns of the primary through which some of the secondary's, begin .. end-1, may be seen. */
static void primary_columns(const struct lr_native_crossing *crossing, const int secondary[2], int between[2])
{
    const struct lr_native_module *module = crossing->secondary.module;
    const double half = 0.5 * module->pitch;
    columns_between(crossing->primary.module, on_primary(crossing, column_middle(module, secondary[0]) - half),
                    on_primary(crossing, column_middle(module, secondary[1] - 1) + half), between);
}

static void make_strip(const struct lr_native_crossing *crossing, double middle, double width,
                       struct lr_native_strip *strip)
{
    const double height = crossing->primary.height;
    const double x = crossing->primary.foot + middle;
    strip->tau_exactly = tau_at(crossing, middle);
    strip->tau = (float)strip->tau_exactly;
    strip->dtau = (float)(crossing->tau[1] * width);
    strip->squared = (float)(height * height + x * x);
    strip->width = (float)width;
    strip->share = (float)(height * width / TWO_PI);
    strip->slant = (float)x;
}

static void name_strip(const struct lr_native_crossing *crossing, int p, int r, struct lr_native_strip *strip)
{
    strip->ci = crossing->i_is_primary ? p : r;
    strip->cj = crossing->i_is_primary ? r : p;
}

/* Pieces for an edge that long at a distance. */
static int num_pieces(double edge, double distance)
{
    return (int)fmin(fmax(ceil(edge / (PIECE * distance)), 1.0), LR_NATIVE_MAX_PARTS);
}

/* The stretch u0 .. u1 of the primary, in as many strips as its nearness asks for. */
static int cut_strips(const struct lr_native_crossing *crossing, double u0, double u1, struct lr_native_strip *strips)
{
    const double height = crossing->primary.height, foot = crossing->primary.foot;
    const double aside = fmax(fmax(foot + u0, -(foot + u1)), 0.0);
    const double distance = sqrt(height * height + aside * aside);
    const double bend = fabs(crossing->tau[1]) * (u1 - u0) / tau_at(crossing, 0.5 * (u0 + u1));
    const int num = num_pieces(fmax(u1 - u0, bend * PIECE / BEND * distance), distance);
    /* Parallel modules share overlaps between strips, and so the number of parts. */
    const double nearest = crossing->tau[1] == 0.0 ? height : distance;
    for (int n = 0; n < num; n++) {
        const double width = (u1 - u0) / num;
        make_strip(crossing, u0 + (n + 0.5) * width, width, &strips[n]);
        strips[n].parts = num_pieces(crossing->primary.module->face_along, nearest);
    }
    return num;
}

/* The part of column p of the primary that is seen through column r of the secondary. Returns the
 * number of strips. */
static int exact_strip(const struct lr_native_crossing *crossing, int p, int r, struct lr_native_strip *strips)
{
    const struct lr_native_module *a = crossing->primary.module, *b = crossing->secondary.module;
    const double u = column_middle(a, p), w = column_middle(b, r);
    const double from = on_primary(crossing, w - 0.5 * b->face);
    const double to = on_primary(crossing, w + 0.5 * b->face);
    const double u0 = fmax(u - 0.5 * a->face, fmin(from, to));
    const double u1 = fmin(u + 0.5 * a->face, fmax(from, to));
    if (u1 - u0 <= SLIVER * a->face) return 0;
    const int num = cut_strips(crossing, u0, u1, strips);
    for (int n = 0; n < num; n++) name_strip(crossing, p, r, &strips[n]);
    return num;
}

/* Line `ray` of column p, and the column of the secondary that it meets. */
static bool sampled_strip(const struct lr_native_scene *scene, const struct lr_native_crossing *crossing,
                          const int at[2], struct lr_native_strip *strip)
{
    const int p = at[0], ray = at[1], rays = scene->params.rays;
    const struct lr_native_module *a = crossing->primary.module, *b = crossing->secondary.module;
    const double u = column_middle(a, p) + ((ray + 0.5) / rays - 0.5) * a->face;
    if (tau_at(crossing, u) <= 0.0) return false;
    const double w = on_secondary(crossing, u);
    const double place = w / b->pitch + 0.5 * b->num_columns;
    if (!(place >= 0.0 && place <= b->num_columns)) return false;
    const int met = place < b->num_columns ? (int)place : b->num_columns - 1;
    if (fabs(w - column_middle(b, met)) > 0.5 * b->face) return false;
    make_strip(crossing, u, a->face / rays, strip);
    strip->dtau = 0.0f;
    strip->parts = 1;
    name_strip(crossing, p, met, strip);
    return true;
}

int64_t lr_native_max_strips(const struct lr_native_scene *scene)
{
    int64_t most = 0;
    for (int m = 0; m < scene->params.scanner->num_modules; m++)
        most = scene->modules[m].num_columns > most ? scene->modules[m].num_columns : most;
    return scene->params.mode == LR_MODE_EXACT ? (4 * most + 4) * LR_NATIVE_MAX_PARTS : most * scene->params.rays;
}

static int exact_strips(const struct lr_native_crossing *crossing, const struct lr_native_range *range,
                        const int along_a[2], struct lr_native_strip *strips)
{
    const int of_b = crossing->i_is_primary ? 1 : 0;
    const struct lr_native_module *a = crossing->primary.module;
    const int most = 2 * (a->num_columns + crossing->secondary.module->num_columns);
    int num = 0, pairs = 0;
    for (int p = along_a[0]; p < along_a[1]; p++) {
        int between[2];
        const double u = column_middle(a, p);
        secondary_columns(crossing, u - 0.5 * a->face, u + 0.5 * a->face, between);
        const int begin = between[0] > range->begin[of_b] ? between[0] : range->begin[of_b];
        const int end = between[1] < range->end[of_b] ? between[1] : range->end[of_b];
        for (int r = begin; r < end && pairs < most; r++) {
            if (!lr_native_takes(range, of_b == 1 ? p : r, of_b == 1 ? r : p)) continue;
            const int found = exact_strip(crossing, p, r, &strips[num]);
            num += found;
            pairs += found > 0;
        }
    }
    return num;
}

static int sampled_strips(const struct lr_native_scene *scene, const struct lr_native_crossing *crossing,
                          const int along_a[2], struct lr_native_strip *strips)
{
    int num = 0;
    for (int p = along_a[0]; p < along_a[1]; p++)
        for (int ray = 0; ray < scene->params.rays; ray++)
            num += sampled_strip(scene, crossing, (const int[2]){p, ray}, &strips[num]);
    return num;
}

/* Leaves out strips of other columns than the range's. */
static int keep_range(const struct lr_native_range *range, struct lr_native_strip *strips, int num)
{
    int kept = 0;
    for (int k = 0; k < num; k++) {
        const struct lr_native_strip *strip = &strips[k];
        if (strip->ci >= range->begin[0] && strip->ci < range->end[0] && strip->cj >= range->begin[1] &&
            strip->cj < range->end[1] && lr_native_takes(range, strip->ci, strip->cj))
            strips[kept++] = *strip;
    }
    return kept;
}

int lr_native_find_strips(const struct lr_native_scene *scene, const struct lr_native_crossing *crossing,
                          const struct lr_native_range *range, struct lr_native_strip *strips)
{
    const int a = crossing->i_is_primary ? 0 : 1, b = 1 - a;
    const int wanted_b[2] = {range->begin[b], range->end[b]};
    int along_a[2];
    primary_columns(crossing, wanted_b, along_a);
    along_a[0] = along_a[0] > range->begin[a] ? along_a[0] : range->begin[a];
    along_a[1] = along_a[1] < range->end[a] ? along_a[1] : range->end[a];
    if (scene->params.mode == LR_MODE_EXACT) return exact_strips(crossing, range, along_a, strips);
    return keep_range(range, strips, sampled_strips(scene, crossing, along_a, strips));
}
