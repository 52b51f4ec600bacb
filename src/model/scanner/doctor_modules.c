/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The geometry doctor on how modules stand: overlaps, normals, and which way things are counted. */
#include "model/scanner/doctor.h"

#include "base/vec.h"
#include "model/scanner/module_index.h"
#include "model/scanner/scanner_check.h"

/* --- overlaps --- */

static const char overlap_remedy[] = "reduce the pitch or the number of modules, or move them apart";

/* So many are counted: a file may put all its modules in one place. */
enum { MOST_OVERLAPS = 10000 };

static int examine_module(struct lr_examination *examination, struct lr_module_index *index, int module, int overlaps)
{
    struct lr_finding_head head = {LR_SUSPECT, LR_FINDING_OVERLAP, {module, -1}, overlap_remedy};
    const int count = lr_module_index_meet(index, module);
    for (int k = 0; k < count && overlaps < MOST_OVERLAPS; k++) {
        const double overlap =
            lr_module_overlap_mm(&examination->modules[module], &examination->modules[index->met[k]]);
        if (overlap > LR_OVERLAP_TOLERANCE_MM && ++overlaps <= LR_FINDINGS_SPELLED) {
            head.modules[1] = index->met[k];
            lr_examination_add(examination, &head,
                               "modules %d and %d overlap by %.3g mm: their crystals would fill "
                               "the same space",
                               module, index->met[k], overlap);
        }
    }
    return overlaps;
}

void lr_examine_overlaps(struct lr_examination *examination)
{
    const int count = examination->draft->params.num_modules;
    const struct lr_finding_head head = {LR_SUSPECT, LR_FINDING_OVERLAP, {-1, -1}, overlap_remedy};
    struct lr_module_index index;
    int overlaps = 0;
    if (lr_module_index_init(&index, examination->modules, count, examination->log) != LR_OK) {
        examination->failed = true;
        return;
    }
    for (int m = 0; m < count && overlaps < MOST_OVERLAPS; m++)
        overlaps = examine_module(examination, &index, m, overlaps);
    lr_module_index_finish(&index);
    if (overlaps >= MOST_OVERLAPS)
        lr_examination_add(examination, &head, "thousands more like these");
    else
        lr_examination_rest(examination, &head, overlaps);
}

/* --- normals --- */

void lr_examine_normals(struct lr_examination *examination)
{
    const lr_scanner_params *params = &examination->draft->params;
    struct lr_finding_head head = {LR_SUSPECT,
                                   LR_FINDING_NORMAL,
                                   {-1, -1},
                                   "turn the normal round, or check on which side of the axis the "
                                   "module stands; normals may also be left out"};
    int outward = 0;
    for (int m = 0; m < params->num_modules; m++) {
        const double *said = params->modules[m].normal;
        if (vec_dot(said, examination->modules[m].normal) < 0 && ++outward <= LR_FINDINGS_SPELLED) {
            head.modules[0] = m;
            lr_examination_add(examination, &head,
                               "the normal of module %d, (%.3g, %.3g, %.3g), points away from the "
                               "axis: its crystals would look outwards",
                               m, said[0], said[1], said[2]);
        }
    }
    lr_examination_rest(examination, &head, outward);
}

/* --- handedness --- */

/* Whether u x v points inwards; in rings it points outwards. */
static bool is_mirrored(const lr_module *module)
{
    double product[3];
    vec_cross(module->u, module->v, product);
    return vec_dot(product, module->normal) > 0;
}

static void examine_axes(struct lr_examination *examination)
{
    const int count = examination->draft->params.num_modules;
    struct lr_finding_head head = {LR_SUSPECT,
                                   LR_FINDING_HANDEDNESS,
                                   {-1, -1},
                                   "reverse its axis u or v, or check whether its crystals are "
                                   "really numbered the other way round"};
    int mirrored = 0;
    for (int m = 0; m < count; m++) mirrored += is_mirrored(&examination->modules[m]);
    const bool odd_ones = count >= 3 && mirrored > 0 && 4 * mirrored <= count;
    const bool odd_rest = count >= 3 && mirrored < count && 4 * (count - mirrored) <= count;
    if (!odd_ones && !odd_rest) return;
    int found = 0;
    for (int m = 0; m < count; m++) {
        if (is_mirrored(&examination->modules[m]) == odd_ones && ++found <= LR_FINDINGS_SPELLED) {
            head.modules[0] = m;
            lr_examination_add(examination, &head,
                               "u x v of module %d points %s, of %s: its crystals are counted in "
                               "mirrored order",
                               m, odd_ones ? "inwards" : "outwards",
                               odd_ones ? "most others outwards" : "most others inwards");
        }
    }
    lr_examination_rest(examination, &head, found);
}

/* Which way u runs around the axis at a module: > 0 with the angle. */
static double turn_of(const double from[3], const double way[3])
{
    return from[0] * way[1] - from[1] * way[0];
}

/* Which way places are counted: the sum of turns from each place to the next. */
static double turn_of_places(const struct lr_examination *examination)
{
    const struct lr_belt *belt = &examination->belt;
    const int positions = examination->draft->params.num_positions;
    double sum = 0;
    for (int k = 0; k < belt->count; k++) {
        const lr_module *here = &examination->modules[belt->modules[k]];
        const lr_module *next = &examination->modules[belt->modules[(k + 1) % belt->count]];
        const int step = (next->position - here->position + positions) % positions;
        sum += step == 0 ? 0 : step <= positions / 2 ? 1 : -1;
    }
    return sum; /* the belt runs with the angle */
}

static void examine_places(struct lr_examination *examination)
{
    const struct lr_belt *belt = &examination->belt;
    double along_u = 0;
    for (int k = 0; k < belt->count; k++) {
        const lr_module *module = &examination->modules[belt->modules[k]];
        along_u += turn_of(module->centre_mm, module->u) > 0 ? 1 : -1;
    }
    const double places = turn_of_places(examination);
    if (along_u * places < 0 && fabs(along_u) > 0.5 * belt->count &&
        fabs(places) > 0.25 * examination->draft->params.num_positions) {
        const struct lr_finding_head head = {LR_SUSPECT,
                                             LR_FINDING_HANDEDNESS,
                                             {-1, -1},
                                             "count places and crystals the same way round; a "
                                             "left-handed frame (CASToR's) must be mirrored as a "
                                             "whole"};
        lr_examination_add(examination, &head,
                           "places around the ring are counted %s and the crystals in them %s "
                           "(seen from +z): one of the two is mirrored",
                           places > 0 ? "counterclockwise" : "clockwise",
                           along_u > 0 ? "counterclockwise" : "clockwise");
    }
}

void lr_examine_handedness(struct lr_examination *examination)
{
    examine_axes(examination);
    if (examination->belt.closed && examination->draft->params.num_positions >= 3) examine_places(examination);
}
