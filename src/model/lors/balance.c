/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * How evenly subsets see the object: docs/method/common.md, "Subsets". From points where LORs cross, a
 * line leads to each crystal around; a subset is as good as its share of a point's lines, and as the
 * spread of their directions, come near those of all lines. */
#include <lr/recon.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/lors/angles.h"

#include <stdlib.h>
#include <string.h>

/* Subsets that are less even are interleaved more. A disc after 40 updates deviates less than 1.5 times as
 * much as with one subset where this is at most 0.1, and 2 to 60 times where whole pairs reach 0.2 to 1. */
#define EVEN_ENOUGH 0.1

/* Points, and waves of directions that are compared, the share of lines among them. */
enum { POINTS = 48, WAVES = 4 };

/* Steps of these shares, modulo one, spread evenly: over LORs, and along them. */
#define LOR_STEP 0.6180339887498949
#define WAY_STEP 0.7548776662466927

/* One way to make subsets: k has LORs of group k / interleave at the angles k mod interleave. */
struct dealing {
    const lr_lors *lors;
    int subsets, interleave;
    int32_t *group_of;                 /* [num_pairs] */
    double (*sums)[WAVES][2];          /* [subsets] of the point at hand */
    double *lines;                     /* [subsets] of all points */
    double squares[WAVES], num_points; /* what subsets differ by, relatively */
    int *level, num_level;             /* [num_modules] those about as high as the point at hand */
};

/* The crystal of another module than `from` that a line out of a crystal of that one meets first; -1: none. */
static int meet(const struct dealing *dealing, int from, const double origin[3], const double way[3])
{
    const lr_scanner *scanner = dealing->lors->scanner;
    double nearest = INFINITY;
    int met = -1;
    for (int k = 0; k < dealing->num_level; k++) {
        const int m = dealing->level[k];
        const lr_module *module = &scanner->modules[m];
        double centre[3], away[3], hit[3];
        lr_scanner_detection_centre(scanner, m, centre);
        vec_sub(centre, origin, away);
        const double slope = vec_dot(module->normal, way);
        const double t = vec_dot(module->normal, away) / slope;
        if (m == from || !(slope < 0.0) || !(t > 0.0 && t < nearest)) continue;
        vec_add_scaled(away, -t, way, hit); /* from there to the centre */
        const double p = floor(0.5 * module->crystals[0] - vec_dot(module->u, hit) / module->pitch_mm[0]);
        const double q = floor(0.5 * module->crystals[1] - vec_dot(module->v, hit) / module->pitch_mm[1]);
        if (p >= 0 && p < module->crystals[0] && q >= 0 && q < module->crystals[1]) {
            nearest = t;
            met = scanner->first_crystal[m] + (int)q * module->crystals[0] + (int)p;
        }
    }
    return met;
}

static void add_line(struct dealing *dealing, int64_t lor, double direction)
{
    const lr_lor at = lr_lors_describe(dealing->lors, lor);
    const int64_t pair = lr_lors_pair(dealing->lors, at.module_i, at.module_j);
    const int k =
        dealing->group_of[pair] * dealing->interleave + lr_lors_angle(dealing->lors, lor) % dealing->interleave;
    for (int wave = 0; wave < WAVES; wave++) {
        dealing->sums[k][wave][0] += cos(2 * wave * direction);
        dealing->sums[k][wave][1] += sin(2 * wave * direction);
    }
}

static void find_level(struct dealing *dealing, const double point[3])
{
    const lr_scanner *scanner = dealing->lors->scanner;
    dealing->num_level = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        double reach = 0.0;
        for (int axis = 0; axis < 2; axis++) {
            const double slope = axis == 0 ? module->u[2] : module->v[2];
            reach += fabs(slope) * module->pitch_mm[axis] * (0.5 * module->crystals[axis] + 1.0);
        }
        dealing->level[dealing->num_level] = m;
        dealing->num_level += fabs(point[2] - module->centre_mm[2]) <= reach + 1.0;
    }
}

/* Lines through a point, out of each crystal around that stands at its height. */
static void look_from(struct dealing *dealing, const double point[3])
{
    const lr_lors *lors = dealing->lors;
    const lr_scanner *scanner = lors->scanner;
    find_level(dealing, point);
    for (int k = 0; k < dealing->num_level; k++) {
        const int m = dealing->level[k];
        const lr_module *module = &scanner->modules[m];
        const bool is_v = lors->angles->modules[m].is_v; /* whose axis along the scanner's is u then */
        const double *along = is_v ? module->u : module->v, half = 0.5 * module->crystals[!is_v];
        const double level = (point[2] - module->centre_mm[2]) / (along[2] * module->pitch_mm[!is_v]);
        if (!(fabs(level) < half)) continue;
        const int row = (int)(level + half);
        for (int n = 0; n < module->crystals[is_v]; n++) {
            const int crystal =
                scanner->first_crystal[m] + (is_v ? n * module->crystals[0] + row : row * module->crystals[0] + n);
            double origin[3], way[3];
            lr_scanner_hit_centre(scanner, crystal, origin);
            vec_sub(point, origin, way);
            const int other = meet(dealing, m, origin, way);
            const int64_t lor = other >= 0 ? lr_lors_number(lors, crystal, other) : -1;
            if (lor >= 0 && lr_lors_in_coincidence(lors, lor)) add_line(dealing, lor, atan2(way[1], way[0]));
        }
    }
}

static void compare(struct dealing *dealing)
{
    double all[WAVES][2] = {{0.0}};
    for (int k = 0; k < dealing->subsets; k++) {
        dealing->lines[k] += dealing->sums[k][0][0];
        for (int n = 0; n < 2 * WAVES; n++) all[n / 2][n % 2] += dealing->sums[k][n / 2][n % 2];
    }
    for (int k = 0; all[0][0] > 0.0 && k < dealing->subsets; k++) {
        for (int n = 0; n < 2 * WAVES; n++) {
            const double away = dealing->subsets * dealing->sums[k][n / 2][n % 2] - all[n / 2][n % 2];
            dealing->squares[n / 2] += away * away / (all[0][0] * all[0][0]) / dealing->subsets;
            dealing->sums[k][n / 2][n % 2] = 0.0;
        }
    }
    dealing->num_points += all[0][0] > 0.0;
}

/* Looks from points within the middle half of LORs that are spread over all. INFINITY: some subset has no LOR. */
static double measure(struct dealing *dealing)
{
    const lr_lors *lors = dealing->lors;
    double lor_share = 0.5, way_share = 0.5, worst = 0.0;
    dealing->num_points = 0.0;
    memset(dealing->squares, 0, sizeof(dealing->squares));
    memset(dealing->lines, 0, (size_t)dealing->subsets * sizeof(*dealing->lines));
    for (int n = 0; n < 64 * POINTS && dealing->num_points < POINTS; n++) {
        lor_share = fmod(lor_share + LOR_STEP, 1.0);
        way_share = fmod(way_share + WAY_STEP, 1.0);
        const int64_t lor = (int64_t)(lor_share * (double)lors->count);
        int32_t crystals[2];
        double point[3], other[3], way[3];
        if (!lr_lors_in_coincidence(lors, lor)) continue;
        lr_lors_crystals(lors, lor, crystals);
        lr_scanner_hit_centre(lors->scanner, crystals[0], point);
        lr_scanner_hit_centre(lors->scanner, crystals[1], other);
        vec_sub(other, point, way);
        vec_add_scaled(point, 0.25 + 0.5 * way_share, way, point);
        look_from(dealing, point);
        compare(dealing);
    }
    for (int wave = 0; wave < WAVES; wave++)
        worst = fmax(worst, sqrt(dealing->squares[wave] / fmax(dealing->num_points, 1.0)));
    for (int k = 0; k < dealing->subsets; k++) worst = dealing->lines[k] > 0.0 ? worst : INFINITY;
    return worst;
}

static void finish_dealing(struct dealing *dealing)
{
    free(dealing->group_of);
    free(dealing->sums);
    free(dealing->lines);
    free(dealing->level);
}

static lr_status init_dealing(struct dealing *dealing, const lr_log *log)
{
    static const char *const what = "subsets";
    const lr_lors *lors = dealing->lors;
    dealing->group_of = lr_alloc(lors->num_pairs, sizeof(*dealing->group_of), what, log);
    dealing->sums = lr_alloc(dealing->subsets, sizeof(*dealing->sums), what, log);
    dealing->lines = lr_alloc(dealing->subsets, sizeof(*dealing->lines), what, log);
    dealing->level = lr_alloc(lors->scanner->num_modules, sizeof(*dealing->level), what, log);
    return dealing->group_of != NULL && dealing->sums != NULL && dealing->lines != NULL && dealing->level != NULL
               ? LR_OK
               : LR_FAILED;
}

/* The first divisor that is even enough, or else the most even one; 0: with each some subset has no LOR. */
static lr_status find_interleave(struct dealing *dealing, int *best, const lr_log *log)
{
    const lr_lors *lors = dealing->lors;
    const int subsets = dealing->subsets, angles = lr_lors_num_angles(lors);
    double whole = INFINITY, least = INFINITY;
    *best = 0;
    for (int interleave = 1; interleave <= subsets && interleave <= angles && least > EVEN_ENOUGH; interleave++) {
        const int groups = subsets / interleave;
        if (subsets % interleave != 0 || groups > lors->num_pairs) continue;
        LR_TRY(lr_osem_subsets(lors, groups, dealing->group_of, log));
        dealing->interleave = interleave;
        const double found = measure(dealing);
        whole = interleave == 1 ? found : whole;
        *best = found < least ? interleave : *best;
        least = fmin(found, least);
    }
    if (*best == 1) {
        lr_info(log, "%d subsets of whole pairs of modules; points see them unevenly by %.2g", subsets, least);
    } else if (*best > 1) {
        lr_info(log,
                "%d subsets of LORs interleaved %d-fold by angle; points see them unevenly by %.2g, "
                "and would see those of whole pairs by %.2g",
                subsets, *best, least, whole);
    }
    return LR_OK;
}

lr_status lr_osem_interleave(const lr_lors *lors, int subsets, int *interleave, const lr_log *log)
{
    *interleave = 1;
    if (lors->scanner == NULL || subsets <= 1) return LR_OK;
    struct dealing dealing = {.lors = lors, .subsets = subsets};
    lr_status status = init_dealing(&dealing, log);
    status = status == LR_OK ? find_interleave(&dealing, interleave, log) : status;
    finish_dealing(&dealing);
    if (status == LR_OK && *interleave == 0) {
        return lr_error(log, LR_USAGE,
                        "%d subsets: some would have no LOR, of %lld pairs of modules at %d angles; "
                        "take fewer",
                        subsets, (long long)lors->num_pairs, lr_lors_num_angles(lors));
    }
    return status;
}
