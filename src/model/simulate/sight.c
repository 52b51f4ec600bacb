/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/simulate/sight.h"

#include "base/mem.h"
#include "base/vec.h"

#include <math.h>
#include <stdlib.h>

static const double pi = 3.14159265358979323846;

/* Margins of bounds, so that rounding leaves no module out. */
static const double margin_mm = 1e-6, margin_rad = 1e-6;

static const struct lr_sight_sectors everywhere = {0, LR_SIGHT_SECTORS - 1}, nowhere = {0, -1};

/* --- modules --- */

/* Transaxial distance from the axis to the edge from a to b, mm. */
static double distance_to_edge(const double a[3], const double b[3])
{
    const double along[2] = {b[0] - a[0], b[1] - a[1]};
    const double square = along[0] * along[0] + along[1] * along[1];
    const double t = square > 0 ? -(a[0] * along[0] + a[1] * along[1]) / square : 0;
    const double held = fmin(fmax(t, 0), 1);
    return hypot(a[0] + held * along[0], a[1] + held * along[1]);
}

/* Azimuths of a module, from the one of its middle; their sum over the corners' steps tells whether it
 * goes around the axis. */
struct arc {
    double middle, low, high;
    bool is_around;
};

static double wrap(double angle)
{
    return angle - 2 * pi * floor((angle + pi) / (2 * pi));
}

static struct arc find_arc(double corners[4][3])
{
    const double x = corners[0][0] + corners[2][0], y = corners[0][1] + corners[2][1];
    struct arc arc = {.middle = atan2(y, x)};
    double turns = 0;
    for (int k = 0; k < 4; k++) {
        const double *next = corners[(k + 1) % 4];
        const double at = atan2(corners[k][1], corners[k][0]);
        const double from_middle = wrap(at - arc.middle);
        arc.low = fmin(arc.low, from_middle);
        arc.high = fmax(arc.high, from_middle);
        turns += wrap(atan2(next[1], next[0]) - at);
    }
    arc.is_around = fabs(turns) > pi || arc.high - arc.low > pi;
    return arc;
}

static int fill_sector(struct lr_sight *sight, const struct arc *arcs, int sector, int *to)
{
    int count = 0;
    for (int m = 0; m < sight->scanner->num_modules; m++) {
        const struct arc *arc = &arcs[m];
        const double half = pi / LR_SIGHT_SECTORS;
        const double from_middle = wrap((2 * sector + 1) * half - arc->middle);

        if (from_middle > arc->low - half - margin_rad && from_middle < arc->high + half + margin_rad) {
            if (to != NULL) to[count] = m;
            count++;
        }
    }
    return count;
}

static lr_status fill_sectors(struct lr_sight *sight, const struct arc *arcs, const lr_log *log)
{
    for (int s = 0; s < LR_SIGHT_SECTORS; s++)
        sight->first[s + 1] = sight->first[s] + fill_sector(sight, arcs, s, NULL);
    sight->modules = lr_alloc(sight->first[LR_SIGHT_SECTORS], sizeof(*sight->modules), "sectors", log);
    if (sight->modules == NULL) return LR_FAILED;
    for (int s = 0; s < LR_SIGHT_SECTORS; s++) (void)fill_sector(sight, arcs, s, sight->modules + sight->first[s]);
    return LR_OK;
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
        for (int k = 0; k < 4; k++) {
            const double u = (k == 0 || k == 3 ? -0.5 : 0.5) * module->crystals[0] * module->pitch_mm[0];
            const double v = (k < 2 ? -0.5 : 0.5) * module->crystals[1] * module->pitch_mm[1];
            vec_add_scaled(centre, u, module->u, corners[k]);
            vec_add_scaled(corners[k], v, module->v, corners[k]);
        }

        for (int k = 0; k < 4; k++) {
            const double edge = distance_to_edge(corners[k], corners[(k + 1) % 4]);
            sight->radius_mm[0] = fmin(sight->radius_mm[0], edge);
            sight->radius_mm[1] = fmax(sight->radius_mm[1], hypot(corners[k][0], corners[k][1]));
            sight->axial_mm[0] = fmin(sight->axial_mm[0], corners[k][2]);
            sight->axial_mm[1] = fmax(sight->axial_mm[1], corners[k][2]);
        }

        arcs[m] = find_arc(corners);
        sight->is_open = sight->is_open && !arcs[m].is_around;
    }
    const lr_status status = fill_sectors(sight, arcs, log);
    free(arcs);
    return status;
}

void lr_sight_finish(struct lr_sight *sight)
{
    free(sight->modules);
    *sight = (struct lr_sight){0};
}

/* --- rays --- */

/* Length of the ray from the point to its exit from a cylinder around the axis that contains the point. */
static double leave_mm(double radius_mm, const double point_mm[3], const double direction[3], double across)
{
    const double along = point_mm[0] * direction[0] + point_mm[1] * direction[1];
    const double square = point_mm[0] * point_mm[0] + point_mm[1] * point_mm[1];
    return (sqrt(along * along + across * (radius_mm * radius_mm - square)) - along) / across;
}

static int sector_of(double x, double y)
{
    const int sector = (int)floor((atan2(y, x) / (2 * pi)) * LR_SIGHT_SECTORS);
    return (sector + LR_SIGHT_SECTORS) % LR_SIGHT_SECTORS;
}

struct lr_sight_sectors lr_sight_find(const struct lr_sight *sight, const double point_mm[3], const double direction[3])
{
    const double inner = sight->radius_mm[0] - margin_mm, outer = sight->radius_mm[1] + margin_mm;
    const double across = direction[0] * direction[0] + direction[1] * direction[1];
    const double square = point_mm[0] * point_mm[0] + point_mm[1] * point_mm[1];
    const double within = fmax(0, inner - margin_mm);
    if (!sight->is_open || !(across > 1e-12) || !(square < within * within)) return everywhere;
    const double t[2] = {leave_mm(inner, point_mm, direction, across), leave_mm(outer, point_mm, direction, across)};
    double end_mm[2][3];
    for (int k = 0; k < 2; k++) vec_add_scaled(point_mm, t[k], direction, end_mm[k]);
    const double slack_mm = margin_mm * (1 + t[1]);
    if (fmin(end_mm[0][2], end_mm[1][2]) > sight->axial_mm[1] + slack_mm ||
        fmax(end_mm[0][2], end_mm[1][2]) < sight->axial_mm[0] - slack_mm)
        return nowhere;
    const int a = sector_of(end_mm[0][0], end_mm[0][1]), b = sector_of(end_mm[1][0], end_mm[1][1]);
    const int up = (b - a + LR_SIGHT_SECTORS) % LR_SIGHT_SECTORS;
    const struct lr_sight_sectors upwards = {a, a + up};
    const struct lr_sight_sectors downwards = {b, b + LR_SIGHT_SECTORS - up};
    return up <= LR_SIGHT_SECTORS / 2 ? upwards : downwards;
}
