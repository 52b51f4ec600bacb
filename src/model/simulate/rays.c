/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The modules and crystals that rays hit. Modules for a single ray are found by its azimuth. The point where a line
 * of a parallel bundle crosses a module's plane, and its distance, are linear functions of the line's position on
 * the lattice. */
#include "model/simulate/rays.h"

#include "base/mem.h"
#include "base/units.h"
#include "base/vec.h"
#include "model/scanner/scanner.h"

#include <math.h>
#include <stdlib.h>

/* --- one ray --- */

/* Margins of bounds, so that rounding excludes no module. */
static const double margin_mm = 1e-6, margin_rad = 1e-6;

static const struct lr_sight_sectors everywhere = {0, LR_SIGHT_SECTORS - 1}, nowhere = {0, -1};

/* --- modules --- */

/* Range of azimuths of a module, relative to the azimuth of its middle. */
struct arc {
    double middle, low, high;
};

static double wrap(double angle)
{
    return angle - 2 * LR_PI * floor((angle + LR_PI) / (2 * LR_PI));
}

/* Lists the modules that a sector may contain, if `to` is not NULL. Returns their number. */
static int fill_sector(struct lr_sight *sight, const struct arc *arcs, int sector, int *to)
{
    int count = 0;
    for (int m = 0; m < sight->scanner->num_modules; m++) {
        const struct arc *arc = &arcs[m];
        const double half = LR_PI / LR_SIGHT_SECTORS;
        const double from_middle = wrap((2 * sector + 1) * half - arc->middle);

        if (from_middle > arc->low - half - margin_rad && from_middle < arc->high + half + margin_rad) {
            if (to != NULL) to[count] = m;
            count++;
        }
    }
    return count;
}

lr_status lr_sight_init(struct lr_sight *sight, const lr_scanner *scanner, const lr_log *log)
{
    *sight = (struct lr_sight){
        .scanner = scanner, .radius_mm = {HUGE_VAL, 0}, .axial_mm = {HUGE_VAL, -HUGE_VAL}, .is_open = true};
    struct arc *arcs = lr_alloc(scanner->num_modules, sizeof(*arcs), "modules", log);
    if (arcs == NULL) return LR_FAILED;
    for (int m = 0; m < scanner->num_modules; m++) {
        double corners[4][3];
        const lr_module *module = &scanner->modules[m];
        double centre[3];
        lr_scanner_detection_centre(scanner, m, centre);
        for (int k = 0; k < 4; k++) lr_module_corner(module, centre, k ^ k >> 1, corners[k]); /* around the face */

        struct arc arc = {.middle = atan2(corners[0][1] + corners[2][1], corners[0][0] + corners[2][0])};
        /* Sum of the azimuth's changes from corner to corner; not 0 if the module surrounds the axis. */
        double winding = 0;
        for (int k = 0; k < 4; k++) {
            /* The point of the edge from a to b that is nearest to the axis, in the transaxial plane, is a + held
             * along. */
            const double *a = corners[k], *b = corners[(k + 1) % 4], along[2] = {b[0] - a[0], b[1] - a[1]};
            const double square = along[0] * along[0] + along[1] * along[1];
            const double t = square > 0 ? -(a[0] * along[0] + a[1] * along[1]) / square : 0;
            const double held = fmin(fmax(t, 0), 1);
            const double edge = hypot(a[0] + held * along[0], a[1] + held * along[1]);
            sight->radius_mm[0] = fmin(sight->radius_mm[0], edge);
            sight->radius_mm[1] = fmax(sight->radius_mm[1], hypot(a[0], a[1]));
            sight->axial_mm[0] = fmin(sight->axial_mm[0], a[2]);
            sight->axial_mm[1] = fmax(sight->axial_mm[1], a[2]);

            const double at = atan2(a[1], a[0]), from_middle = wrap(at - arc.middle);
            arc.low = fmin(arc.low, from_middle);
            arc.high = fmax(arc.high, from_middle);
            winding += wrap(atan2(b[1], b[0]) - at);
        }
        arcs[m] = arc;
        sight->is_open = sight->is_open && !(fabs(winding) > LR_PI || arc.high - arc.low > LR_PI);
    }
    for (int s = 0; s < LR_SIGHT_SECTORS; s++)
        sight->first[s + 1] = sight->first[s] + fill_sector(sight, arcs, s, NULL);
    sight->modules = lr_alloc(sight->first[LR_SIGHT_SECTORS], sizeof(*sight->modules), "sectors", log);
    for (int s = 0; sight->modules != NULL && s < LR_SIGHT_SECTORS; s++)
        (void)fill_sector(sight, arcs, s, sight->modules + sight->first[s]);
    free(arcs);
    return sight->modules != NULL ? LR_OK : LR_FAILED;
}

void lr_sight_finish(struct lr_sight *sight)
{
    free(sight->modules);
    *sight = (struct lr_sight){0};
}

/* --- rays --- */

struct lr_sight_sectors lr_sight_find(const struct lr_sight *sight, const double point_mm[3], const double direction[3])
{
    const double inner = sight->radius_mm[0] - margin_mm, outer = sight->radius_mm[1] + margin_mm;
    const double across = direction[0] * direction[0] + direction[1] * direction[1];
    const double square = point_mm[0] * point_mm[0] + point_mm[1] * point_mm[1];
    const double within = fmax(0, inner - margin_mm);
    if (!sight->is_open || !(across > 1e-12) || !(square < within * within)) return everywhere;
    /* Finds where the ray leaves two cylinders around the axis. The cylinders contain the ray's starting point. */
    const double along = point_mm[0] * direction[0] + point_mm[1] * direction[1], radii_mm[2] = {inner, outer};
    double end_mm[2][3], t[2];
    for (int k = 0; k < 2; k++) {
        t[k] = (sqrt(along * along + across * (radii_mm[k] * radii_mm[k] - square)) - along) / across;
        vec_add_scaled(point_mm, t[k], direction, end_mm[k]);
    }
    const double slack_mm = margin_mm * (1 + t[1]);
    if (fmin(end_mm[0][2], end_mm[1][2]) > sight->axial_mm[1] + slack_mm ||
        fmax(end_mm[0][2], end_mm[1][2]) < sight->axial_mm[0] - slack_mm)
        return nowhere;
    int sectors[2];
    for (int k = 0; k < 2; k++) {
        const int sector = (int)floor((atan2(end_mm[k][1], end_mm[k][0]) / (2 * LR_PI)) * LR_SIGHT_SECTORS);
        sectors[k] = (sector + LR_SIGHT_SECTORS) % LR_SIGHT_SECTORS;
    }
    const int a = sectors[0], b = sectors[1];
    const int up = (b - a + LR_SIGHT_SECTORS) % LR_SIGHT_SECTORS;
    const struct lr_sight_sectors upwards = {a, a + up};
    const struct lr_sight_sectors downwards = {b, b + LR_SIGHT_SECTORS - up};
    return up <= LR_SIGHT_SECTORS / 2 ? upwards : downwards;
}

/* --- parallel lines --- */

/* Least cosine between a module's normal and a line that may hit the module. At a smaller cosine the line runs along
 * the face. */
static const double least_cosine = 1e-12;

/* A linear function of a line's position (i, k): base + step[0] i + step[1] k. */
struct linear {
    double base, step[2];
};

/* Returns, as a linear function, the scalar product of `axis` and the point of line (i, k), plus `offset`. */
static struct linear linear_of(const struct lr_bundle_lines *lines, const double axis[3], double offset)
{
    struct linear found = {.base = offset};
    for (int n = 0; n < 2; n++) {
        const double slope = vec_dot(axis, lines->across[n]);
        found.base += slope * lines->first_mm[n];
        found.step[n] = slope * lines->step_mm[n];
    }
    return found;
}

static double at(const struct linear *function, double i, double k)
{
    return function->base + function->step[0] * i + function->step[1] * k;
}

void lr_bundle_follow(struct lr_bundle *bundle, const struct lr_bundle_lines *lines)
{
    const double *along = lines->along, across = along[0] * along[0] + along[1] * along[1];
    bundle->num_lines = (int64_t)lines->size[0] * lines->size[1];
    for (int64_t k = 0; k < 2 * bundle->num_layers * bundle->num_lines; k++) {
        bundle->distance_mm[k] = HUGE_VALF;
        bundle->crystals[k] = -1;
    }
    for (int m = 0; m < bundle->scanner->num_modules; m++) {
        const lr_module *module = &bundle->scanner->modules[m];
        const double *centre_mm = bundle->detection_mm[m], cosine = vec_dot(module->normal, along);
        const int first_crystal = bundle->scanner->first_crystal[m], *count = module->crystals;
        if (fabs(cosine) < least_cosine) continue; /* the lines run along the module's face */

        /* Distances along a line are measured from the line's point that is nearest to the axis. */
        double from_axis[3];
        for (int k = 0; k < 3; k++) {
            from_axis[k] = -module->normal[k] / cosine;
            from_axis[k] += k < 2 && across > 0 ? along[k] / across : 0;
        }
        const struct linear distance = linear_of(lines, from_axis, vec_dot(module->normal, centre_mm) / cosine);
        /* cell: position of the hit along u and v, in cells from the module's corner. half_face: half the size of a
         * crystal face, in cells. */
        struct linear cell[2];
        double half_face[2];
        for (int n = 0; n < 2; n++) {
            const double *side = n == 0 ? module->u : module->v;
            const double slope = vec_dot(side, along) / cosine;
            double axis[3];
            for (int k = 0; k < 3; k++) axis[k] = (side[k] - slope * module->normal[k]) / module->pitch_mm[n];
            cell[n] = linear_of(lines, axis, 0.5 * count[n] - vec_dot(axis, centre_mm));
            half_face[n] = 0.5 * module->face_mm[n] / module->pitch_mm[n];
        }
        /* Rows from the lowest to the highest corner: lines of other rows do not hit the module. */
        const double *axis = lines->across[1];
        const double middle_mm = vec_dot(axis, centre_mm) - lines->first_mm[1];
        const double half_mm = 0.5 * (fabs(vec_dot(axis, module->u)) * count[0] * module->pitch_mm[0] +
                                      fabs(vec_dot(axis, module->v)) * count[1] * module->pitch_mm[1]);
        const double last = lines->size[1];
        const int first_row = (int)fmin(fmax(floor((middle_mm - half_mm) / lines->step_mm[1]), 0), last);
        const int end_row = (int)fmin(fmax(ceil((middle_mm + half_mm) / lines->step_mm[1]) + 1, 0), last);

        for (int k = first_row; k < end_row; k++) {
            /* The range of i whose cells may lie in the module. If a row is parallel to an edge, each of its lines is
             * checked. */
            double begin = 0, end = lines->size[0];
            for (int n = 0; n < 2; n++) {
                const double step = cell[n].step[0], first = at(&cell[n], 0, k);
                if (fabs(step) < least_cosine) continue;
                const double a = -first / step, b = (count[n] - first) / step;
                begin = fmax(begin, floor(fmin(a, b)));
                end = fmin(end, ceil(fmax(a, b)) + 1);
            }
            const int64_t row = 2 * module->layer * bundle->num_lines + (int64_t)k * lines->size[0];
            for (int i = (int)begin; begin < end && i < end; i++) {
                const double u = at(&cell[0], i, k), v = at(&cell[1], i, k);
                if (!(u >= 0 && u < count[0] && v >= 0 && v < count[1])) continue;
                const double distance_mm = at(&distance, i, k);
                const int side = distance_mm > 0 ? 1 : 0;
                const int64_t line = row + side * bundle->num_lines + i;
                if (!((float)fabs(distance_mm) < bundle->distance_mm[line])) continue;
                /* Finds the crystal whose face contains the point. A gap or the back of a module stops the photon, too.
                 * On side 1, the line hits the front if the normal points against the line. */
                const int p = (int)u, q = (int)v;
                const bool is_face = fabs(u - p - 0.5) <= half_face[0] && fabs(v - q - 0.5) <= half_face[1];
                bundle->distance_mm[line] = (float)fabs(distance_mm);
                bundle->crystals[line] = is_face && side == (cosine < 0) ? first_crystal + q * count[0] + p : -1;
            }
        }
    }
}

const int32_t *lr_bundle_crystals(const struct lr_bundle *bundle, int layer, int side)
{
    return bundle->crystals + (2 * layer + side) * bundle->num_lines;
}

lr_status lr_bundle_init(struct lr_bundle *bundle, const lr_scanner *scanner, int64_t room, const lr_log *log)
{
    *bundle = (struct lr_bundle){.scanner = scanner, .num_layers = lr_scanner_num_layers(scanner)};
    const int64_t ends = 2 * bundle->num_layers * room;
    bundle->detection_mm = lr_alloc(scanner->num_modules, sizeof(*bundle->detection_mm), "modules", log);
    bundle->distance_mm = lr_alloc(ends, sizeof(*bundle->distance_mm), "parallel lines", log);
    bundle->crystals = lr_alloc(ends, sizeof(*bundle->crystals), "parallel lines", log);
    if (!bundle->detection_mm || !bundle->distance_mm || !bundle->crystals) return LR_FAILED;
    for (int m = 0; m < scanner->num_modules; m++) lr_scanner_detection_centre(scanner, m, bundle->detection_mm[m]);
    return LR_OK;
}

void lr_bundle_finish(struct lr_bundle *bundle)
{
    lr_free_all(bundle->detection_mm, bundle->distance_mm, bundle->crystals);
    *bundle = (struct lr_bundle){.scanner = NULL};
}
