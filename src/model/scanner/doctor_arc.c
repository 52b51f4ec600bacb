/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The geometry doctor on lengths: what stands around the axis, along it, and in which unit. */
#include "model/scanner/doctor.h"

#include "base/mem.h"
#include "base/vec.h"

#include <stdio.h>
#include <stdlib.h>

static const double pi = 3.14159265358979323846;

/* Rings are filled to 87 to 101 % in the scanners that were looked up. Wider gaps may be meant;
 * more than is room for cannot. */
static const double wide_gaps = 0.84, too_full = 1.15;

/* A ring that passes is filled to more than half of too_full, so that its double does not. A radius
 * that is too small by some factor fills it to that factor times (least_full, too_full]. */
static const double least_full = 0.575;

/* Below this, too many modules are as likely as half of the radius. */
static const double surely_half = 1.3;

/* Of 511 keV photons the crystals of all scanners stop more than this. */
static const double least_stopped = 0.25;
static const double lso_mu_per_mm = 0.087;

/* Lengths in another unit come out by one of these factors. */
static const struct unit {
    double factor;
    const char *name;
} units[] = {{10, "cm"}, {25.4, "inch"}, {1000, "m"}};
enum { NUM_UNITS = sizeof(units) / sizeof(units[0]) };

/* --- around --- */

/* Whether a ring that would pass looks like this where its radius is too small by a factor. */
static bool is_filled_by(double ratio, double factor)
{
    return ratio > least_full * factor && ratio <= too_full * factor;
}

static bool suspect_radius(struct lr_examination *examination, double ratio)
{
    const double radius = examination->belt.radius_mm;
    const struct lr_finding_head head = {LR_SUSPECT,
                                         LR_FINDING_RADIUS,
                                         {-1, -1},
                                         "check whether the radius is given from the axis to the "
                                         "front faces"};
    if (is_filled_by(ratio, 0.5)) {
        lr_examination_add(examination, &head,
                           "the crystals around come to %.6g mm, %.0f %% of the circumference at a "
                           "radius of %.6g mm, about half of what is usual: the radius looks like "
                           "the diameter; a ring of radius %.4g mm would just be filled, and half "
                           "of the radius is %.4g mm",
                           examination->belt.width_mm, 100 * ratio, radius, examination->belt.width_mm / (2 * pi),
                           0.5 * radius);
        return true;
    }
    if (ratio > surely_half && is_filled_by(ratio, 2)) {
        lr_examination_add(examination, &head,
                           "the crystals around come to %.6g mm, %.2f times the circumference at a "
                           "radius of %.6g mm: the radius looks like half of itself, or the "
                           "crystals are counted twice; a ring of radius %.4g mm would be filled",
                           examination->belt.width_mm, ratio, radius, examination->belt.width_mm / (2 * pi));
        return true;
    }
    return false;
}

static bool suspect_unit(struct lr_examination *examination, double ratio)
{
    const struct lr_finding_head head = {LR_SUSPECT, LR_FINDING_UNITS, {-1, -1}, "give every length in millimetres"};
    for (int k = 0; k < NUM_UNITS; k++) {
        if (is_filled_by(ratio, units[k].factor)) {
            lr_examination_add(examination, &head,
                               "the crystals around come to %.6g mm, %.3g times the circumference "
                               "at a radius of %.6g mm: the radius looks like %s (%.6g mm)",
                               examination->belt.width_mm, ratio, examination->belt.radius_mm, units[k].name,
                               examination->belt.radius_mm * units[k].factor);
            return true;
        }
        if (is_filled_by(ratio, 1 / units[k].factor)) {
            lr_examination_add(examination, &head,
                               "the crystals around come to %.6g mm, 1/%.3g of the circumference "
                               "at a radius of %.6g mm: the crystal pitch around looks like %s",
                               examination->belt.width_mm, 1 / ratio, examination->belt.radius_mm, units[k].name);
            return true;
        }
    }
    return false;
}

void lr_examine_arc(struct lr_examination *examination)
{
    const struct lr_belt *belt = &examination->belt;
    if (!belt->closed) return;
    const double ratio = belt->width_mm / (2 * pi * belt->radius_mm);
    if ((ratio >= wide_gaps && ratio <= too_full) || suspect_radius(examination, ratio) ||
        suspect_unit(examination, ratio))
        return;
    const bool suspected = ratio > too_full;
    const struct lr_finding_head head = {
        suspected ? LR_SUSPECT : LR_NOTE,
        LR_FINDING_ARC,
        {-1, -1},
        "check the radius, the number of modules, the crystals in each and their pitch"};
    lr_examination_add(examination, &head,
                       "the crystals around (%d modules) come to %.6g mm, %.1f %% of the "
                       "circumference at a radius of %.6g mm, %s; a ring of radius %.4g mm would just "
                       "be filled",
                       belt->count, belt->width_mm, 100 * ratio, belt->radius_mm,
                       ratio > 1 ? "more than there is room for" : "while rings are usually filled to 85 % or more",
                       belt->width_mm / (2 * pi));
}

/* --- units of single lengths --- */

static double stopped_share(const lr_scanner_params *params, double depth_mm)
{
    const double mu = params->crystal_mu_per_mm;
    return -expm1(-(mu > 0.015 && mu < 0.3 ? mu : lso_mu_per_mm) * depth_mm);
}

static void examine_depth(struct lr_examination *examination)
{
    const lr_scanner_params *params = &examination->draft->params;
    const struct lr_finding_head head = {LR_SUSPECT, LR_FINDING_UNITS, {-1, -1}, "give every length in millimetres"};
    const double depth = params->modules[0].depth_mm;
    const double stopped = stopped_share(params, depth);
    if (stopped < least_stopped) {
        lr_examination_add(examination, &head,
                           "crystals %.4g mm long stop %.0f %% of the photons%s: the depth, and "
                           "perhaps every length, looks like cm (%.4g mm) or inch (%.4g mm)",
                           depth, 100 * stopped, params->crystal_mu_per_mm > 0 ? "" : " (were they LSO)", depth * 10,
                           depth * 25.4);
    } else if (depth > 80) {
        lr_examination_add(examination, &head,
                           "crystals %.4g mm long are longer than any scanner's: the depth looks "
                           "like tenths of a millimetre",
                           depth);
    }
}

static void examine_tof(struct lr_examination *examination)
{
    const double ps = examination->draft->params.tof_resolution_ps;
    const struct lr_finding_head head = {LR_SUSPECT,
                                         LR_FINDING_UNITS,
                                         {-1, -1},
                                         "give the time-of-flight resolution as FWHM in "
                                         "picoseconds"};
    if (ps > 0 && ps < 10) {
        lr_examination_add(examination, &head,
                           "a time-of-flight resolution of %.4g ps is beyond any scanner: it looks "
                           "like ns (%.4g ps)",
                           ps, ps * 1000);
    } else if (ps > 5000) {
        lr_examination_add(examination, &head,
                           "a time-of-flight resolution of %.6g ps (%.3g m along the line) tells "
                           "nothing within a bore: it looks like a coincidence window, or "
                           "femtoseconds",
                           ps, ps * 0.29979 / 2000);
    }
}

static void examine_mu(struct lr_examination *examination)
{
    const double mu = examination->draft->params.crystal_mu_per_mm;
    const struct lr_finding_head head = {LR_SUSPECT, LR_FINDING_UNITS, {-1, -1}, "give crystal_mu_per_mm in 1/mm"};
    if (mu > 0.3) {
        lr_examination_add(examination, &head,
                           "crystals that attenuate with %.4g/mm stop more than lead (0.18/mm at "
                           "511 keV): it looks like 1/cm (%.4g/mm)",
                           mu, mu / 10);
    } else if (mu > 0 && mu < 0.015) {
        lr_examination_add(examination, &head,
                           "crystals that attenuate with %.4g/mm stop hardly more than water "
                           "(0.0096/mm at 511 keV): it looks like 1/10 mm, or a wrong energy",
                           mu);
    }
}

void lr_examine_units(struct lr_examination *examination)
{
    examine_depth(examination);
    examine_tof(examination);
    examine_mu(examination);
}

/* --- along the axis --- */

static void name_length(double ratio, char text[128])
{
    static const struct {
        double ratio;
        const char *words;
    } known[] = {
        {0.5, "half of it: half of the rings seem to be missing"},
        {2, "twice as much: the rings seem to be counted twice"},
        {10, "ten times as much: one of the two looks like cm"},
        {0.1, "a tenth of it: one of the two looks like cm"},
        {25.4, "25.4 times as much: one of the two looks like inch"},
        {1 / 25.4, "1/25.4 of it: one of the two looks like inch"},
    };
    snprintf(text, 128, "%.1f %% %s", 100 * fabs(ratio - 1), ratio > 1 ? "too much" : "too little");
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
        if (fabs(ratio / known[k].ratio - 1) < 0.06) snprintf(text, 128, "%s", known[k].words);
}

void lr_examine_length(struct lr_examination *examination)
{
    const double said = examination->draft->axial_length_mm;
    const double found = examination->high_mm - examination->low_mm;
    const struct lr_finding_head head = {LR_SUSPECT,
                                         LR_FINDING_LENGTH,
                                         {-1, -1},
                                         "check the crystals along the axis, their pitch, the gaps "
                                         "between blocks and the ring pitch"};
    if (said > 0 && fabs(found / said - 1) > 0.05) {
        char words[128];
        name_length(found / said, words);
        lr_examination_add(examination, &head,
                           "from edge to edge the modules are %.6g mm long, the axial length is "
                           "given as %.6g mm: %s",
                           found, said, words);
    }
    const double middle = 0.5 * (examination->high_mm + examination->low_mm);
    if (fabs(middle) > 0.02 * found) {
        const struct lr_finding_head off = {
            LR_NOTE, LR_FINDING_LENGTH, {-1, -1}, "nothing, if grids are placed accordingly"};
        lr_examination_add(examination, &off, "the middle of the scanner lies at z = %.4g mm, not at the origin",
                           middle);
    }
}

/* --- gaps --- */

/* From the edge of one module to the nearest edge of the next, across u. */
static double edge_gap(const lr_module *a, const lr_module *b)
{
    double least = INFINITY;
    for (int k = 0; k < 4; k++) {
        double from[3], to[3], way[3];
        vec_add_scaled(a->centre_mm, (k & 1 ? 0.5 : -0.5) * a->crystals[0] * a->pitch_mm[0], a->u, from);
        vec_add_scaled(b->centre_mm, (k & 2 ? 0.5 : -0.5) * b->crystals[0] * b->pitch_mm[0], b->u, to);
        vec_sub(to, from, way);
        least = fmin(least, hypot(way[0], way[1]));
    }
    return least;
}

static int compare_doubles(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static bool is_hole(const struct lr_examination *examination, int from, double gap, double usual)
{
    const lr_module *module = &examination->modules[from];
    return gap > 0.6 * module->crystals[0] * module->pitch_mm[0] && gap > 2.5 * usual;
}

static double gap_after(const struct lr_examination *examination, int k)
{
    const struct lr_belt *belt = &examination->belt;
    return edge_gap(&examination->modules[belt->modules[k]],
                    &examination->modules[belt->modules[(k + 1) % belt->count]]);
}

static void name_holes(struct lr_examination *examination, double usual)
{
    const struct lr_belt *belt = &examination->belt;
    int count = 0, first = -1;
    for (int k = 0; k < belt->count; k++) {
        if (is_hole(examination, belt->modules[k], gap_after(examination, k), usual)) {
            first = first < 0 ? k : first;
            count++;
        }
    }
    if (count == 0 || 4 * count > belt->count) return; /* a scanner of that build */
    const int from = belt->modules[first], to = belt->modules[(first + 1) % belt->count];
    const struct lr_finding_head head = {LR_SUSPECT,
                                         LR_FINDING_GAP,
                                         {from, to},
                                         "add the missing module, or check where the neighbours "
                                         "stand"};
    lr_examination_add(examination, &head,
                       "between modules %d and %d there is a gap of %.4g mm around, while the usual "
                       "one is %.3g mm: a module seems to be missing or to stand elsewhere%s",
                       from, to, gap_after(examination, first), usual, count > 1 ? "; there are more such gaps" : "");
}

static void name_displaced(struct lr_examination *examination)
{
    const struct lr_belt *belt = &examination->belt;
    int count = 0, first = -1;
    double distance = 0;
    for (int k = 0; k < belt->count; k++) {
        const lr_module *module = &examination->modules[belt->modules[k]];
        const double at = fabs(vec_dot(module->normal, module->centre_mm));
        if (fabs(at / belt->radius_mm - 1) > 0.05) {
            distance = first < 0 ? at : distance;
            first = first < 0 ? belt->modules[k] : first;
            count++;
        }
    }
    if (count == 0 || 4 * count > belt->count) return;
    const struct lr_finding_head head = {LR_SUSPECT, LR_FINDING_GAP, {first, -1}, "check its centre and axes"};
    lr_examination_add(examination, &head,
                       "the front plane of module %d passes the axis at %.6g mm, those of the "
                       "others at %.6g mm: it seems to be misplaced or turned%s",
                       first, distance, belt->radius_mm, count > 1 ? "; there are more such" : "");
}

/* Panels that all stand beside the point of their plane that is nearest to the axis, to the same side: a file with
 * another idea of where a panel's middle is. */
static void name_pinwheel(struct lr_examination *examination)
{
    const struct lr_belt *belt = &examination->belt;
    double beside_mm = 0, pitch_mm = 0;
    for (int k = 0; k < belt->count; k++) {
        const lr_module *module = &examination->modules[belt->modules[k]];
        const double *n = module->normal, *c = module->centre_mm;
        beside_mm += (n[1] * c[0] - n[0] * c[1]) / hypot(n[0], n[1]) / belt->count;
        pitch_mm += module->pitch_mm[0] / belt->count;
    }
    if (fabs(beside_mm) > 0.25 * pitch_mm) {
        const struct lr_finding_head head = {
            LR_SUSPECT, LR_FINDING_GAP, {-1, -1}, "check where the first crystal of a module stands"};
        lr_examination_add(examination, &head,
                           "the modules stand like a pinwheel: their middles lie %.3g mm %s (seen "
                           "from +z) of where "
                           "their planes come nearest to the axis",
                           fabs(beside_mm), beside_mm < 0 ? "clockwise" : "counterclockwise");
    }
}

void lr_examine_gaps(struct lr_examination *examination)
{
    const struct lr_belt *belt = &examination->belt;
    double *gaps = lr_alloc(belt->count, sizeof(*gaps), "an examination", examination->log);
    if (gaps == NULL) {
        examination->failed = true;
        return;
    }
    for (int k = 0; k < belt->count; k++) gaps[k] = gap_after(examination, k);
    qsort(gaps, (size_t)belt->count, sizeof(*gaps), compare_doubles);
    if (belt->closed) {
        name_holes(examination, gaps[belt->count / 2]);
        name_displaced(examination);
        name_pinwheel(examination);
    }
    free(gaps);
}
