/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The geometry doctor's checks: lengths around the axis and along it, their units, gaps, overlaps, normals, the
 * direction of counting, coincidence rules, grids, sizes, and modules that hide others. */
#include "base/order.h"
#include "model/scanner/doctor.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "base/vec.h"
#include "model/scanner/coincidence.h"
#include "model/scanner/scanner.h"

#include <lr/lors.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* --- findings --- */

void lr_examination_add(struct lr_examination *examination, const struct lr_finding_head *head, const char *format, ...)
{
    char sentence[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(sentence, sizeof(sentence), format, values);
    va_end(values);
    lr_finding finding = {.severity = head->severity,
                          .kind = head->kind,
                          .modules = {head->modules[0], head->modules[1]},
                          .sentence = lr_copy_string(sentence, examination->log),
                          .remedy = lr_copy_string(head->remedy, examination->log)};
    lr_diagnosis *diagnosis = examination->diagnosis;
    lr_finding *grown = NULL;
    if (finding.sentence != NULL && finding.remedy != NULL) {
        grown = lr_resize(diagnosis->findings, (int64_t)diagnosis->num_findings + 1, sizeof(*grown), "findings",
                          examination->log);
    }
    if (grown == NULL) {
        lr_free_all(finding.sentence, finding.remedy);
        examination->failed = true;
        return;
    }
    diagnosis->findings = grown;
    grown[diagnosis->num_findings++] = finding;
    diagnosis->num_suspects += finding.severity == LR_SUSPECT;
}

/* Adds "12 more like these" if there are more findings than are listed. */
static void examination_rest(struct lr_examination *examination, const struct lr_finding_head *head, int count)
{
    if (count > LR_FINDINGS_SPELLED) {
        const struct lr_finding_head rest = {head->severity, head->kind, {-1, -1}, head->remedy};
        lr_examination_add(examination, &rest, "%d more like these", count - LR_FINDINGS_SPELLED);
    }
}

/* Limits of the filled fraction of the circumference, which is 87 to 101 % in known scanners. A fraction below
 * wide_gaps may be intended and gives a note. A fraction above too_full is an error and gives a suspicion. */
static const double wide_gaps = 0.84, too_full = 1.15;

/* Scanners with fewer panels than this are not round, and have open corners. */
static const int least_round = 6;

/* Share of the circumference that panels fill if they leave more than half of it open. */
static const double half_open = 0.5;

/* Least share of the circumference that a correct ring may fill. This share is just more than half of too_full, so that
 * a correct ring and a ring with a factor of 2 in its radius cannot have the same share. */
static const double least_full = 0.575;

/* Filled fraction above which the cause is a radius of half the true value. Below this fraction, too many modules are
 * an equally likely cause. */
static const double surely_half = 1.3;

/* Least fraction of 511 keV photons that crystals of known scanners stop, and the attenuation of LSO. */
static const double least_stopped = 0.25;
static const double lso_mu_per_mm = 0.087;

/* Factors by which lengths are wrong if they are in another unit. */
static const struct unit {
    double factor;
    const char *name;
} units[] = {{10, "cm"}, {25.4, "inch"}, {1000, "m"}};
enum { NUM_UNITS = sizeof(units) / sizeof(units[0]) };

/* --- around --- */

/* True if `ratio` is the filled share of a correct ring whose radius was made too small by `factor`. */
static bool is_filled_by(double ratio, double factor)
{
    return ratio > least_full * factor && ratio <= too_full * factor;
}

/* Looks for two numbers that fill the ring once they are swapped back. Returns true, with a finding, if there are such
 * numbers. ratio: filled share of the circumference. */
static bool find_swap(struct lr_examination *examination, double ratio)
{
    const lr_scanner_params *params = &examination->draft->params;
    const struct lr_belt *belt = &examination->belt;
    int rings = 0;
    for (int m = 0; m < params->num_modules; m++)
        rings = params->modules[m].ring >= rings ? params->modules[m].ring + 1 : rings;
    struct lr_finding_head head = {
        belt->count >= least_round ? LR_SUSPECT : LR_NOTE,
        LR_FINDING_ARC,
        {-1, -1},
        "give the number of modules around the ring as 'modules', and that of rings along the axis as 'rings'"};
    const double by_rings = params->num_positions > 0 ? ratio * rings / params->num_positions : 0;
    if (!examination->draft->lists_modules && ratio < least_full && rings >= least_round &&
        rings > params->num_positions && by_rings >= wide_gaps && by_rings <= too_full) {
        lr_examination_add(examination, &head,
                           "'modules' and 'rings' look swapped: %d modules around would fill %.0f %% of the "
                           "circumference at a radius of %.6g mm, and now %.0f %% are filled",
                           rings, 100 * by_rings, belt->radius_mm, 100 * ratio);
        return true;
    }

    const lr_module *first = &examination->modules[belt->modules[0]];
    const int *crystals = first->crystals;
    head.remedy = "give 'crystals', pitch_mm and face_mm as [around the ring, along the axis]";
    for (int axis = 0; axis < 2 && ratio > too_full; axis++) { /* their pitches may be swapped, too */
        const double swapped = ratio * crystals[1] * first->pitch_mm[axis] / (crystals[0] * first->pitch_mm[0]);
        if (crystals[0] != crystals[1] && swapped >= wide_gaps && swapped <= too_full) {
            lr_examination_add(examination, &head,
                               "'crystals' look swapped: [%d, %d] would fill %.0f %% of the circumference at a radius "
                               "of %.6g mm, and now they would fill %.0f %%",
                               crystals[1], crystals[0], 100 * swapped, belt->radius_mm, 100 * ratio);
            return true;
        }
    }
    return false;
}

void lr_examine_arc(struct lr_examination *examination)
{
    const struct lr_belt *belt = &examination->belt;
    const double width = belt->width_mm, radius = belt->radius_mm, filled_mm = width / (2 * LR_PI);
    if (!belt->closed && belt->count != 2) return;
    const bool is_round = belt->count >= least_round;
    const double ratio = width / (2 * LR_PI * radius);
    if (is_round ? ratio >= wide_gaps && ratio <= too_full : ratio >= half_open) return;
    const bool is_swapped = find_swap(examination, ratio);
    if (!is_round) return; /* boxes and pairs of modules may be as open as this */

    struct lr_finding_head head = {
        LR_SUSPECT, LR_FINDING_RADIUS, {-1, -1}, "check whether radius_mm is given from the axis to the front faces"};
    if (is_filled_by(ratio, 0.5)) {
        lr_examination_add(examination, &head,
                           "the crystals around come to %.6g mm, %.0f %% of the circumference at a radius of %.6g mm, "
                           "about half of what is usual: the radius looks like the diameter; a ring of radius %.4g mm "
                           "would just be filled, and half of the radius is %.4g mm",
                           width, 100 * ratio, radius, filled_mm, 0.5 * radius);
        return;
    }
    if (ratio > surely_half && is_filled_by(ratio, 2)) {
        lr_examination_add(
            examination, &head,
            "the crystals around come to %.6g mm, %.2f times the circumference at a radius of %.6g mm: the radius "
            "looks like half of the right one, or the crystals are counted twice; a ring of radius %.4g mm would be "
            "filled",
            width, ratio, radius, filled_mm);
        return;
    }

    head.kind = LR_FINDING_UNITS;
    for (int k = 0; k < NUM_UNITS; k++) {
        if (is_filled_by(ratio, units[k].factor)) {
            head.remedy = "give radius_mm, or the modules' centres, in millimetres";
            lr_examination_add(examination, &head,
                               "the crystals around come to %.6g mm, %.3g times the circumference at a radius of %.6g "
                               "mm: the radius looks like %s (%.6g mm), or the pitch around is %.4g times too large",
                               width, ratio, radius, units[k].name, radius * units[k].factor, units[k].factor);
            return;
        }
        if (is_filled_by(ratio, 1 / units[k].factor)) {
            head.remedy = "give pitch_mm in millimetres, as every length";
            lr_examination_add(examination, &head,
                               "the crystals around come to %.6g mm, 1/%.3g of the circumference at a radius of %.6g "
                               "mm: the crystal pitch around looks like %s",
                               width, 1 / ratio, radius, units[k].name);
            return;
        }
    }

    if (is_swapped) return;
    head.kind = LR_FINDING_ARC;
    head.severity = ratio > too_full ? LR_SUSPECT : LR_NOTE;
    head.remedy = "check radius_mm, the number of modules, the crystals in each and their pitch";
    lr_examination_add(examination, &head,
                       "the crystals around (%d modules) come to %.6g mm, %.1f %% of the circumference at a radius of "
                       "%.6g mm, %s: a ring of radius %.4g mm would just be filled",
                       belt->count, width, 100 * ratio, radius,
                       ratio > 1 ? "more than there is room for" : "while rings are usually filled to 85 % or more",
                       filled_mm);
}

/* --- units of single lengths --- */

void lr_examine_units(struct lr_examination *examination)
{
    const lr_scanner_params *params = &examination->draft->params;
    struct lr_finding_head head = {
        LR_SUSPECT, LR_FINDING_UNITS, {-1, -1}, "give depth_mm in millimetres, as every length"};
    const lr_module *first = &params->modules[0];
    double depth = first->depth_mm; /* that of all layers of the first block */
    for (int m = 1; m < params->num_modules && first->block > 0; m++)
        if (params->modules[m].block == first->block) depth += params->modules[m].depth_mm;
    const double mu = params->crystal_mu_per_mm;
    const double stopped = -expm1(-(mu > 0.015 && mu < 0.3 ? mu : lso_mu_per_mm) * depth);

    if (stopped < least_stopped) {
        lr_examination_add(examination, &head,
                           "crystals %.4g mm long stop %.0f %% of the photons%s: the depth, and perhaps every length, "
                           "looks like cm (%.4g mm) or inch (%.4g mm)",
                           depth, 100 * stopped, params->crystal_mu_per_mm > 0 ? "" : " (were they LSO)", depth * 10,
                           depth * 25.4);
    } else if (depth > 80) {
        lr_examination_add(
            examination, &head,
            "crystals %.4g mm long are longer than any scanner's: the depth looks like tenths of a millimetre", depth);
    }

    /* Sizes that would be usual if they were ten times as large. */
    head.remedy = "give every length in millimetres";
    bool has_found = false;
    for (int n = 0; n < 2 * params->num_modules && !has_found; n++) {
        const double face = params->modules[n / 2].face_mm[n % 2], pitch = params->modules[n / 2].pitch_mm[n % 2];
        has_found = 10 * face > 0.75 * pitch && 10 * face < 1.01 * pitch;
        if (has_found) {
            head.modules[0] = n / 2;
            lr_examination_add(examination, &head,
                               "faces of %.4g mm in module %d fill a tenth of the pitch of %.4g mm: face_mm looks like "
                               "cm (%.4g mm)",
                               face, n / 2, pitch, 10 * face);
        }
    }
    head.modules[0] = -1;
    const double read_mm = params->detection_depth_mm;
    if (read_mm > 0 && read_mm < 0.1 * first->depth_mm) {
        lr_examination_add(examination, &head,
                           "hits are read %.4g mm behind the front of crystals %.4g mm long, where few photons stop: "
                           "detection_depth_mm looks like cm (%.4g mm)",
                           read_mm, first->depth_mm, 10 * read_mm);
    }

    const double ps = examination->draft->params.tof_resolution_ps;
    const struct lr_finding_head tof_head = {
        LR_SUSPECT, LR_FINDING_UNITS, {-1, -1}, "give resolution_ps as FWHM in picoseconds"};
    if (ps > 0 && ps < 10) {
        lr_examination_add(examination, &tof_head,
                           "a time-of-flight resolution of %.4g ps is beyond any scanner: it looks like ns (%.4g ps)",
                           ps, ps * 1000);
    } else if (ps > 5000) {
        lr_examination_add(examination, &tof_head,
                           "a time-of-flight resolution of %.6g ps (%.3g m along the line) tells nothing within a "
                           "bore: it looks like a coincidence window, or femtoseconds",
                           ps, ps * 0.29979 / 2000);
    }

    const double crystal_mu = examination->draft->params.crystal_mu_per_mm;
    const struct lr_finding_head mu_head = {LR_SUSPECT, LR_FINDING_UNITS, {-1, -1}, "give crystal_mu_per_mm in 1/mm"};
    if (crystal_mu > 0.3) {
        lr_examination_add(examination, &mu_head,
                           "crystals that attenuate with %.4g/mm stop more than lead (0.18/mm at 511 keV): it looks "
                           "like 1/cm (%.4g/mm)",
                           crystal_mu, crystal_mu / 10);
    } else if (crystal_mu > 0 && crystal_mu < 0.015) {
        lr_examination_add(examination, &mu_head,
                           "crystals that attenuate with %.4g/mm stop hardly more than water (0.0096/mm at 511 keV): "
                           "it looks like 1/10 mm, or a wrong energy",
                           crystal_mu);
    }
}

/* --- along the axis --- */

void lr_examine_length(struct lr_examination *examination)
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
    const double said = examination->draft->axial_length_mm;
    const double found = examination->high_mm - examination->low_mm;
    const struct lr_finding_head head = {
        LR_SUSPECT,
        LR_FINDING_LENGTH,
        {-1, -1},
        "check axial_length_mm, the crystals along the axis, their pitch, the gaps between blocks and the ring pitch"};
    if (said > 0 && fabs(found / said - 1) > 0.05) {
        const double ratio = found / said;
        char words[128];
        snprintf(words, sizeof(words), "%.1f %% %s", 100 * fabs(ratio - 1), ratio > 1 ? "too much" : "too little");
        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
            if (fabs(ratio / known[k].ratio - 1) < 0.06) snprintf(words, sizeof(words), "%s", known[k].words);
        lr_examination_add(examination, &head,
                           "from edge to edge the modules are %.6g mm long, the axial length is given as %.6g mm: %s",
                           found, said, words);
    }
    const double middle = 0.5 * (examination->high_mm + examination->low_mm);
    if (fabs(middle) > 0.02 * found) {
        const struct lr_finding_head off = {LR_NOTE, LR_FINDING_LENGTH, {-1, -1}, "place grids around that middle"};
        lr_examination_add(examination, &off, "the middle of the scanner lies at z = %.4g mm, not at the origin",
                           middle);
    }
}

/* --- gaps --- */

/* Transaxial distance between the edges of a module of the belt and the nearest edge of the next module, mm. */
static double gap_after(const struct lr_examination *examination, int k)
{
    const struct lr_belt *belt = &examination->belt;
    const lr_module *a = &examination->modules[belt->modules[k]];
    const lr_module *b = &examination->modules[belt->modules[(k + 1) % belt->count]];
    double least = INFINITY;
    for (int edges = 0; edges < 4; edges++) {
        double from[3], to[3], gap[3];
        vec_add_scaled(a->centre_mm, (edges & 1 ? 0.5 : -0.5) * a->crystals[0] * a->pitch_mm[0], a->u, from);
        vec_add_scaled(b->centre_mm, (edges & 2 ? 0.5 : -0.5) * b->crystals[0] * b->pitch_mm[0], b->u, to);
        vec_sub(to, from, gap);
        least = fmin(least, hypot(gap[0], gap[1]));
    }
    return least;
}

/* Notes the widest gap along the axis if it is longer than a module, as between rings that are too far apart. */
static void examine_axial_gap(struct lr_examination *examination)
{
    const int count = examination->draft->params.num_modules;
    double(*ends)[2] = lr_alloc(count, sizeof(*ends), "an examination", examination->log); /* of each module, along z */
    if (ends == NULL) {
        examination->failed = true;
        return;
    }
    double longest_mm = 0, from_mm = 0, to_mm = 0;
    for (int m = 0; m < count; m++) {
        const lr_module *module = &examination->modules[m];
        const double half_mm = lr_module_half_mm(module, 2);
        ends[m][0] = module->centre_mm[2] - half_mm;
        ends[m][1] = module->centre_mm[2] + half_mm;
        longest_mm = fmax(longest_mm, 2 * half_mm);
    }
    qsort(ends, (size_t)count, sizeof(*ends), lr_compare_doubles);
    double reach_mm = count > 0 ? ends[0][1] : 0; /* largest z that the modules so far reach */
    for (int m = 1; m < count; m++) {
        if (ends[m][0] - reach_mm > to_mm - from_mm) {
            from_mm = reach_mm;
            to_mm = ends[m][0];
        }
        reach_mm = fmax(reach_mm, ends[m][1]);
    }
    free(ends);
    if (to_mm - from_mm > longest_mm) {
        /* Rings that stand ten times farther apart than they would with no gap between them. */
        const double ratio = 10 * longest_mm / (to_mm - from_mm + longest_mm);
        const bool is_unit = ratio >= wide_gaps && ratio < 1.01;
        const struct lr_finding_head head = {
            is_unit ? LR_SUSPECT : LR_NOTE,
            LR_FINDING_GAP,
            {-1, -1},
            is_unit ? "check the distance from ring to ring (ring_pitch_mm), and pitch_mm along the axis"
                    : "nothing, if it is meant; else check the distance from ring to ring"};
        lr_examination_add(examination, &head,
                           "from z = %.4g to %.4g mm there are no crystals, and modules are %.4g mm long%s", from_mm,
                           to_mm, longest_mm,
                           is_unit ? ": rings look ten times too far apart, or the pitch along the axis is in cm" : "");
    }
}

void lr_examine_gaps(struct lr_examination *examination)
{
    const struct lr_belt *belt = &examination->belt;
    const int *modules = belt->modules, count = belt->count;
    double *gaps = lr_alloc(count, sizeof(*gaps), "an examination", examination->log);
    if (gaps == NULL) {
        examination->failed = true;
        return;
    }
    for (int k = 0; k < count; k++) gaps[k] = gap_after(examination, k);
    qsort(gaps, (size_t)count, sizeof(*gaps), lr_compare_doubles);
    const double usual = count > 0 ? gaps[count / 2] : 0;
    free(gaps);
    if (!belt->closed) return;
    examine_axial_gap(examination);

    /* Finds holes, displaced modules, and modules that are all shifted to one side. A hole or displacement that many
     * modules share is taken as the scanner's design and not reported. */
    int num_holes = 0, hole = -1, num_displaced = 0, displaced = -1;
    double distance = 0, beside_mm = 0, pitch_mm = 0;
    for (int k = 0; k < count; k++) {
        const lr_module *module = &examination->modules[modules[k]];
        const double gap = gap_after(examination, k), *n = module->normal, *c = module->centre_mm;
        if (gap > 0.6 * module->crystals[0] * module->pitch_mm[0] && gap > 2.5 * usual) {
            hole = hole < 0 ? k : hole;
            num_holes++;
        }
        const double plane_mm = fabs(vec_dot(n, c));
        if (fabs(plane_mm / belt->radius_mm - 1) > 0.05) {
            distance = displaced < 0 ? plane_mm : distance;
            displaced = displaced < 0 ? modules[k] : displaced;
            num_displaced++;
        }
        beside_mm += (n[1] * c[0] - n[0] * c[1]) / hypot(n[0], n[1]) / count;
        pitch_mm += module->pitch_mm[0] / count;
    }
    if (num_holes > 0 && 4 * num_holes <= count) {
        const int from = modules[hole], to = modules[(hole + 1) % count];
        const struct lr_finding_head head = {
            LR_SUSPECT, LR_FINDING_GAP, {from, to}, "add the missing module, or check where the neighbours stand"};
        lr_examination_add(examination, &head,
                           "between modules %d and %d there is a gap of %.4g mm around, while the usual one is %.3g "
                           "mm: a module seems to be missing or to stand elsewhere%s",
                           from, to, gap_after(examination, hole), usual,
                           num_holes > 1 ? "; there are more such gaps" : "");
    }
    if (num_displaced > 0 && 4 * num_displaced <= count) {
        const struct lr_finding_head head = {LR_SUSPECT, LR_FINDING_GAP, {displaced, -1}, "check its centre and axes"};
        lr_examination_add(examination, &head,
                           "the front plane of module %d passes the axis at %.6g mm, those of the others at %.6g mm: "
                           "it seems to be misplaced or turned%s",
                           displaced, distance, belt->radius_mm, num_displaced > 1 ? "; there are more such" : "");
    }
    if (fabs(beside_mm) > 0.25 * pitch_mm) {
        /* In the file, the middle of a panel is not the point of its plane that is nearest to the axis. */
        const struct lr_finding_head head = {
            LR_SUSPECT, LR_FINDING_GAP, {-1, -1}, "check where the first crystal of a module stands"};
        lr_examination_add(examination, &head,
                           "the modules stand like a pinwheel: their middles lie %.3g mm %s (seen from +z) of where "
                           "their planes come nearest to the axis",
                           fabs(beside_mm), beside_mm < 0 ? "clockwise" : "counterclockwise");
    }
}

/* --- overlaps --- */

/* Largest number of overlaps that are counted, because a file may put all its modules in one place. */
enum { MOST_OVERLAPS = 10000 };

void lr_examine_overlaps(struct lr_examination *examination)
{
    const int count = examination->draft->params.num_modules;
    struct lr_finding_head head = {
        LR_SUSPECT,
        LR_FINDING_OVERLAP,
        {-1, -1},
        "reduce the pitch or the number of modules, or move them apart (in a ring: a larger radius_mm)"};
    struct lr_module_index index;
    int overlaps = 0;
    if (lr_module_index_init(&index, examination->modules, count, examination->log) != LR_OK) {
        examination->failed = true;
        return;
    }
    for (int m = 0; m < count && overlaps < MOST_OVERLAPS; m++) {
        const int num_met = lr_module_index_meet(&index, m);
        for (int k = 0; k < num_met && overlaps < MOST_OVERLAPS; k++) {
            const int other = index.met[k];
            const double overlap = lr_module_overlap_mm(&examination->modules[m], &examination->modules[other]);
            if (overlap > LR_OVERLAP_TOLERANCE_MM && ++overlaps <= LR_FINDINGS_SPELLED) {
                char words[LR_OVERLAP_WORDS];
                if (lr_module_say_overlap(&examination->modules[m], &examination->modules[other], words))
                    head.remedy = "give a larger distance from ring to ring, in mm (ring_pitch_mm), or shorter modules";
                head.modules[0] = m;
                head.modules[1] = other;
                lr_examination_add(examination, &head,
                                   "modules %d and %d overlap by %s: their crystals would fill the same space", m,
                                   other, words);
            }
        }
    }
    lr_module_index_finish(&index);
    head.modules[0] = head.modules[1] = -1;
    if (overlaps >= MOST_OVERLAPS)
        lr_examination_add(examination, &head, "thousands more like these");
    else
        examination_rest(examination, &head, overlaps);
}

/* --- normals --- */

void lr_examine_normals(struct lr_examination *examination)
{
    const lr_scanner_params *params = &examination->draft->params;
    struct lr_finding_head head = {
        LR_SUSPECT,
        LR_FINDING_NORMAL,
        {-1, -1},
        "turn 'normal' round, or check on which side of the axis the module stands; normals may also be left out"};
    int outward = 0;
    for (int m = 0; m < params->num_modules; m++) {
        const double *said = params->modules[m].normal;
        if (vec_dot(said, examination->modules[m].normal) < 0 && ++outward <= LR_FINDINGS_SPELLED) {
            head.modules[0] = m;
            lr_examination_add(examination, &head,
                               "the normal of module %d, (%.3g, %.3g, %.3g), points away from the axis: its crystals "
                               "would look outwards",
                               m, said[0], said[1], said[2]);
        }
    }
    examination_rest(examination, &head, outward);
}

/* --- handedness --- */

void lr_examine_handedness(struct lr_examination *examination)
{
    /* Single modules whose axes differ in handedness from most others. */
    const int count = examination->draft->params.num_modules;
    struct lr_finding_head axes_head = {
        LR_SUSPECT,
        LR_FINDING_HANDEDNESS,
        {-1, -1},
        "reverse its axis 'u' or 'v', or check whether its crystals are really numbered the other way round"};
    int num_mirrored = 0, num_odd = 0;
    for (int m = 0; m < count; m++) num_mirrored += lr_module_is_mirrored(&examination->modules[m]);
    const bool odd_ones = count >= 3 && num_mirrored > 0 && 4 * num_mirrored <= count;
    const bool odd_rest = count >= 3 && num_mirrored < count && 4 * (count - num_mirrored) <= count;
    for (int m = 0; m < count && (odd_ones || odd_rest); m++) {
        if (lr_module_is_mirrored(&examination->modules[m]) == odd_ones && ++num_odd <= LR_FINDINGS_SPELLED) {
            axes_head.modules[0] = m;
            lr_examination_add(examination, &axes_head,
                               "u x v of module %d points %s, of %s: its crystals are counted in mirrored order", m,
                               odd_ones ? "inwards" : "outwards",
                               odd_ones ? "most others outwards" : "most others inwards");
        }
    }
    examination_rest(examination, &axes_head, num_odd);
    if (count >= 3 && num_mirrored > 0 && num_mirrored < count && !odd_ones && !odd_rest) {
        axes_head.severity = LR_NOTE;
        axes_head.modules[0] = -1;
        lr_examination_add(examination, &axes_head,
                           "%d of %d modules count their crystals the other way round than the others",
                           num_mirrored < count - num_mirrored ? num_mirrored : count - num_mirrored, count);
    }

    if (examination->belt.closed && examination->draft->params.num_positions >= 3) {
        const struct lr_belt *belt = &examination->belt;
        double along_u = 0;
        for (int k = 0; k < belt->count; k++) {
            const lr_module *module = &examination->modules[belt->modules[k]];
            /* The sum is positive if u runs in the direction of increasing azimuth. */
            const double sense = module->centre_mm[0] * module->u[1] - module->centre_mm[1] * module->u[0];
            along_u += sense > 0 ? 1 : -1;
        }
        /* The direction in which places are counted: the sum of steps from each place to the next. */
        const int positions = examination->draft->params.num_positions;
        double places = 0;
        for (int k = 0; k < belt->count; k++) {
            const lr_module *here = &examination->modules[belt->modules[k]];
            const lr_module *next = &examination->modules[belt->modules[(k + 1) % belt->count]];
            const int step = (next->position - here->position + positions) % positions;
            places += step == 0 ? 0 : step <= positions / 2 ? 1 : -1;
        }
        /* The belt is sorted by increasing angle. */
        if (along_u * places < 0 && fabs(along_u) > 0.5 * belt->count &&
            fabs(places) > 0.25 * examination->draft->params.num_positions) {
            const struct lr_finding_head head = {LR_SUSPECT,
                                                 LR_FINDING_HANDEDNESS,
                                                 {-1, -1},
                                                 "count places and crystals the same way round; a left-handed frame "
                                                 "(CASToR's) must be mirrored as a whole"};
            lr_examination_add(examination, &head,
                               "places around the ring are counted %s and the crystals in them %s (seen from +z): one "
                               "of the two is mirrored",
                               places > 0 ? "counterclockwise" : "clockwise",
                               along_u > 0 ? "counterclockwise" : "clockwise");
        }
    }
}

/* --- rules --- */

/* Diameter of the cylinder around the axis that contains all lines between modules `difference` places apart. The
 * widest lines join the edges of the two modules that are nearest to each other. */
static double field_of_difference(const struct lr_examination *examination, int difference)
{
    const int places = examination->draft->params.num_positions;
    return 2 * examination->belt.radius_mm * cos(LR_PI * (difference - 1) / places);
}

void lr_examine_rules(struct lr_examination *examination)
{
    if (examination->belt.closed) {
        const double field = examination->draft->params.coincidence.field_of_view_mm;
        const double bore = 2 * examination->belt.radius_mm;
        struct lr_finding_head head = {
            LR_SUSPECT, LR_FINDING_COINCIDENCE, {-1, -1}, "give field_of_view_mm as a diameter in millimetres"};
        if (field > bore) {
            lr_examination_add(
                examination, &head,
                "the field of view of %.6g mm is wider than the bore of %.6g mm: the rule leaves no LOR out", field,
                bore);
        } else if (field > 0 && field < 0.15 * bore) {
            const char *unit = NULL;
            for (int k = 0; k < NUM_UNITS && unit == NULL; k++)
                if (units[k].factor * field > 0.3 * bore && units[k].factor * field < bore) unit = units[k].name;
            head.severity = unit != NULL ? LR_SUSPECT : LR_NOTE; /* a small one may be intended */
            lr_examination_add(examination, &head, "the field of view of %.6g mm is %.2g %% of the bore of %.6g mm%s%s",
                               field, 100 * field / bore, bore, unit != NULL ? ": it looks like " : "",
                               unit != NULL ? unit : "");
        }

        const int places = examination->draft->params.num_positions;
        const int difference = examination->draft->params.coincidence.min_module_difference;
        /* lr_scanner_create reports differences that are too large. */
        const bool has_rule = places >= 3 && difference >= 1 && difference <= places / 2;
        const double wide = has_rule ? field_of_difference(examination, difference) : 0;
        head.severity = LR_SUSPECT;
        head.remedy = "reduce min_module_difference: it counts places around the ring, not crystals";
        if (has_rule && field > 0 && wide < 0.9 * field) {
            lr_examination_add(examination, &head,
                               "lines between modules at least %d of %d places apart stay within %.4g mm of diameter, "
                               "while field_of_view_mm says %.6g: the rules contradict each other",
                               difference, places, wide, field);
        } else if (has_rule && wide < 0.2 * 2 * examination->belt.radius_mm) {
            lr_examination_add(examination, &head,
                               "modules at least %d of %d places apart are nearly opposite: only %.4g mm of the bore "
                               "of %.4g mm are seen",
                               difference, places, wide, bore);
        }
    }
    const lr_scanner_params *params = &examination->draft->params;
    int rings = 0;
    for (int m = 0; m < params->num_modules; m++) {
        const int last = params->modules[m].first_crystal_ring + params->modules[m].crystals[1];
        rings = last > rings ? last : rings;
    }
    if (!params->coincidence.limits_ring_difference || params->num_positions == 0) return;
    const int most = params->coincidence.max_ring_difference;
    const struct lr_finding_head head = {LR_NOTE, LR_FINDING_COINCIDENCE, {-1, -1}, ""};
    if (most >= rings) {
        lr_examination_add(examination, &head, "ring differences up to %d leave no LOR out: there are %d crystal rings",
                           most, rings);
    } else if (most == 0 && rings > 1) {
        lr_examination_add(
            examination, &head,
            "a ring difference of 0 measures each of the %d crystal rings for itself, without oblique LORs", rings);
    }
}

/* --- the grid --- */

void lr_examine_grid(struct lr_examination *examination)
{
    if (examination->grid == NULL) return;
    if (examination->belt.closed) {
        const lr_grid *grid = examination->grid;
        const lr_coincidence *rules = &examination->draft->params.coincidence;
        double reach = 0; /* largest |x| or |y| of the grid's edges */
        for (int k = 0; k < 2; k++) {
            const double first = grid->origin_mm[k] - 0.5 * grid->voxel_mm[k];
            const double last = first + grid->size[k] * grid->voxel_mm[k];
            reach = fmax(reach, fmax(fabs(first), fabs(last)));
        }
        const double radius = examination->belt.radius_mm;
        double field = rules->field_of_view_mm > 0 ? rules->field_of_view_mm : 2 * radius;
        if (rules->min_module_difference > 0 && examination->draft->params.num_positions >= 3)
            field = fmin(field, field_of_difference(examination, rules->min_module_difference));
        if (reach > radius) {
            const struct lr_finding_head head = {
                LR_SUSPECT,
                LR_FINDING_COINCIDENCE,
                {-1, -1},
                "make the grid smaller, or check its voxel size and the unit of radius_mm"};
            lr_examination_add(examination, &head,
                               "the grid reaches %.4g mm from the axis, the detectors begin at %.4g mm: voxels would "
                               "lie within the crystals",
                               reach, radius);
        } else if (2 * reach > 1.02 * field) {
            const struct lr_finding_head head = {
                LR_NOTE, LR_FINDING_COINCIDENCE, {-1, -1}, "make the grid smaller to save time"};
            lr_examination_add(examination, &head,
                               "the grid is %.4g mm wide, and LORs in coincidence pass within a diameter of %.4g mm: "
                               "what lies beyond is not measured",
                               2 * reach, field);
        }
    }

    const lr_grid *grid = examination->grid;
    const double low = grid->origin_mm[2] - 0.5 * grid->voxel_mm[2];
    const double high = low + grid->size[2] * grid->voxel_mm[2];
    if (high <= examination->low_mm || low >= examination->high_mm) {
        const struct lr_finding_head head = {
            LR_SUSPECT, LR_FINDING_COINCIDENCE, {-1, -1}, "move the grid: its origin is the centre of its first voxel"};
        lr_examination_add(examination, &head,
                           "the grid lies at z = %.4g to %.4g mm, the scanner at %.4g to %.4g mm: they do not meet",
                           low, high, examination->low_mm, examination->high_mm);
    } else if (high - low > 1.1 * (examination->high_mm - examination->low_mm)) {
        const struct lr_finding_head head = {
            LR_NOTE, LR_FINDING_COINCIDENCE, {-1, -1}, "make the grid shorter to save time"};
        lr_examination_add(
            examination, &head,
            "the grid is %.4g mm long, the scanner %.4g mm: hardly any LOR passes the planes beyond its ends",
            high - low, examination->high_mm - examination->low_mm);
    }
}

/* --- modules that hide others from the field of view --- */

/* Lines go from points of the field of view to points of a module's face. These are the numbers of points. */
struct sampling {
    int points[3]; /* numbers of points along x, y and z */
    int faces;     /* number of points along each axis of the face */
};

/* Largest number of tests whether a module hides the end of a line. */
static const double most_meetings = 3e8;

/* Least hidden share that is reported. */
static const double least_share = 1e-3;

struct hidden_pair {
    int hider, hidden;
    double share; /* hidden share of the module's face, averaged over the points that it faces */
    double least, most;
};

struct search {
    const lr_scanner *scanner;
    double middle_mm[3], half_mm[3]; /* middle and half sizes of the field of view */
    struct sampling sampling;
    struct hidden_pair found[LR_FINDINGS_SPELLED]; /* the largest shares, descending */
    int num_found;                                 /* number of all hidden pairs */
    int num_hidden;
};

/* True if module `hider` may be near a line between the field of view and module `hidden`. All these lines stay within
 * the hull of the sphere around the field of view and the sphere around the module. */
static bool may_hide(const struct search *search, int hider, int hidden)
{
    const lr_module *modules = search->scanner->modules;
    double to[3], offset[3], foot[3];
    if (hider == hidden || modules[hider].layer != modules[hidden].layer) return false;
    vec_sub(modules[hidden].centre_mm, search->middle_mm, offset);
    vec_sub(modules[hider].centre_mm, search->middle_mm, to);
    const double length2 = vec_dot(offset, offset);
    const double part = length2 > 0 ? fmin(fmax(vec_dot(to, offset) / length2, 0), 1) : 0;
    vec_add_scaled(to, -part, offset, foot);
    const double width = fmax(vec_length(search->half_mm), lr_module_radius_mm(&modules[hidden]));
    const double depth = modules[hider].depth_mm + modules[hidden].depth_mm; /* the detection planes lie within these
                                                                                depths */
    return vec_length(foot) <= lr_module_radius_mm(&modules[hider]) + width + depth;
}

/* The share of a module's face that another module hides from points of the field of view. Only points in front of the
 * face count. */
static struct hidden_pair look_at(const struct search *search, int hider, int hidden)
{
    const lr_module *front = &search->scanner->modules[hider], *back = &search->scanner->modules[hidden];
    const int *points = search->sampling.points, faces = search->sampling.faces;
    struct hidden_pair pair = {.hider = hider, .hidden = hidden, .least = 1};
    double front_mm[3], back_mm[3]; /* centres of the detection planes */
    int num_facing = 0;
    lr_scanner_detection_centre(search->scanner, hider, front_mm);
    lr_scanner_detection_centre(search->scanner, hidden, back_mm);
    for (int k = 0; k < points[0] * points[1] * points[2]; k++) {
        double point_mm[3], to_hidden[3], to_hider[3];
        for (int axis = 0, number = k; axis < 3; axis++) {
            const double part = (number % points[axis] + 0.5) / points[axis];
            point_mm[axis] = search->middle_mm[axis] + (2 * part - 1) * search->half_mm[axis];
            number /= points[axis];
        }
        vec_sub(point_mm, back_mm, to_hidden);
        vec_sub(point_mm, front_mm, to_hider);
        if (!(vec_dot(back->normal, to_hidden) > 0)) continue;

        int num_stopped = 0;
        for (int n = 0; n < faces * faces; n++) {
            const int at[2] = {n % faces, n / faces};
            double place_mm[3], ray[3], hit[3];
            vec_add_scaled(back_mm, 0, back->u, place_mm);
            for (int axis = 0; axis < 2; axis++) {
                const double extent = back->crystals[axis] * back->pitch_mm[axis];
                vec_add_scaled(place_mm, extent * ((at[axis] + 0.5) / faces - 0.5), axis == 0 ? back->u : back->v,
                               place_mm);
            }
            /* The line from the point to this place may cross the rectangle of the hiding module. */
            vec_sub(place_mm, point_mm, ray);
            const double part = -vec_dot(front->normal, to_hider) / vec_dot(front->normal, ray);
            if (!(part > 0 && part < 1 - 1e-9)) continue;
            vec_add_scaled(to_hider, part, ray, hit);
            num_stopped += fabs(vec_dot(hit, front->u)) < 0.5 * front->crystals[0] * front->pitch_mm[0] &&
                           fabs(vec_dot(hit, front->v)) < 0.5 * front->crystals[1] * front->pitch_mm[1];
        }
        const double share = (double)num_stopped / (faces * faces);
        pair.share += share;
        pair.least = fmin(pair.least, share);
        pair.most = fmax(pair.most, share);
        num_facing++;
    }
    pair.share /= num_facing > 0 ? num_facing : 1;
    return pair;
}

/* Checks for modules that hide others. The scanner is valid. */
static void examine_hiding(struct lr_examination *examination, const lr_scanner *scanner)
{
    struct search search = {.scanner = scanner};
    if (lr_modules_may_hide(scanner)) {
        /* The field of view is the grid, if there is one. Otherwise the field of view has half the length of the bore,
         * and the diameter that the rules allow or half the diameter of the bore. */
        const lr_grid *grid = examination->grid;
        const double rule = examination->draft->params.coincidence.field_of_view_mm;
        const double bore = examination->belt.radius_mm;
        /* Half the side of the square that is inscribed in the circle. */
        const double across = rule > 0 && rule < 2 * bore ? 0.5 * rule * sqrt(0.5) : 0.5 * bore * sqrt(0.5);
        for (int k = 0; k < 3; k++) {
            search.middle_mm[k] = k == 2 ? 0.5 * (examination->low_mm + examination->high_mm) : 0;
            search.half_mm[k] = k == 2 ? 0.25 * (examination->high_mm - examination->low_mm) : across;
            if (grid != NULL) {
                search.half_mm[k] = 0.5 * grid->size[k] * grid->voxel_mm[k];
                search.middle_mm[k] = grid->origin_mm[k] - 0.5 * grid->voxel_mm[k] + search.half_mm[k];
            }
        }

        /* The finest sampling that the number of candidates allows. */
        static const struct sampling choices[] = {{{5, 5, 3}, 16}, {{5, 5, 3}, 6}, {{3, 3, 1}, 4}, {{1, 1, 1}, 1}};
        double candidates = 0;
        for (int hidden = 0; hidden < scanner->num_modules; hidden++)
            for (int hider = 0; hider < scanner->num_modules; hider++) candidates += may_hide(&search, hider, hidden);
        for (size_t k = 0; k < sizeof(choices) / sizeof(choices[0]); k++) {
            const int *points = choices[k].points, faces = choices[k].faces;
            search.sampling = choices[k];
            if ((double)points[0] * points[1] * points[2] * faces * faces * candidates <= most_meetings) break;
        }

        for (int hidden = 0; hidden < scanner->num_modules; hidden++) {
            const int found_before = search.num_found;
            for (int hider = 0; hider < scanner->num_modules; hider++) {
                if (!may_hide(&search, hider, hidden)) continue;
                struct hidden_pair pair = look_at(&search, hider, hidden);
                if (!(pair.share >= least_share)) continue;
                for (int k = 0; k < LR_FINDINGS_SPELLED; k++) {
                    if (k >= search.num_found || pair.share > search.found[k].share) {
                        const struct hidden_pair smaller = search.found[k];
                        search.found[k] = pair;
                        pair = smaller;
                    }
                }
                search.num_found++;
            }
            search.num_hidden += search.num_found > found_before;
        }

        struct lr_finding_head head = {
            LR_NOTE,
            LR_FINDING_HIDING,
            {-1, -1},
            "good where they are meant to stand so, as inserts do (layers of one block are given as layers): lines "
            "that the first stops are not counted for the second; else check their places"};
        for (int k = 0; k < search.num_found && k < LR_FINDINGS_SPELLED; k++) {
            const struct hidden_pair *pair = &search.found[k];
            head.modules[0] = pair->hider;
            head.modules[1] = pair->hidden;
            lr_examination_add(examination, &head,
                               "module %d stands before module %d and hides %.3g %% of its face from the field of view "
                               "(%.3g to %.3g %%, by the point)",
                               pair->hider, pair->hidden, 100 * pair->share, 100 * pair->least, 100 * pair->most);
        }
        if (search.num_found > LR_FINDINGS_SPELLED) {
            head.modules[0] = head.modules[1] = -1;
            lr_examination_add(examination, &head, "%d more like these: of %d modules %d are hidden in part, or wholly",
                               search.num_found - LR_FINDINGS_SPELLED, scanner->num_modules, search.num_hidden);
        }
    }
}

/* --- sizes --- */

/* Passes on only messages about lack of memory, because other checks report errors of the scanner. */
static void pass_failures(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct lr_examination *examination = user;
    if (level == LR_LOG_ERROR && status == LR_FAILED) {
        examination->failed = true;
        lr_error(examination->log, status, "%s", sentence);
    }
}

void lr_examine_size(struct lr_examination *examination)
{
    const lr_log failures = {pass_failures, examination};
    lr_scanner_params params = examination->draft->params;
    params.log = &failures;
    lr_scanner *scanner = lr_scanner_create(&params);
    lr_lors_size size;
    const lr_status status = scanner != NULL ? lr_lors_count(scanner, NULL, &size, &failures) : LR_FAILED;
    if (scanner != NULL && !examination->failed) examine_hiding(examination, scanner);
    if (examination->failed) {
        /* the lack of memory has been logged */
    } else if (status == LR_OK) {
        char dense[32];
        const double modules = examination->draft->params.num_modules;
        const double bytes = 4.0 * (double)size.num_lors;
        const bool much = bytes > 0.5 * (double)lr_physical_memory();
        const struct lr_finding_head head = {LR_NOTE,
                                             LR_FINDING_SIZE,
                                             {-1, -1},
                                             much ? "keep data sparse, or limit the coincidences: dense data would "
                                                    "take more than half of this machine's memory"
                                                  : ""};
        lr_examination_add(examination, &head,
                           "%lld LORs in %lld of %.0f pairs of modules: a measurement with a number for each takes %s",
                           (long long)size.num_lors, (long long)size.num_pairs, 0.5 * modules * (modules - 1),
                           lr_bytes_text(bytes, dense));
    } else if (status == LR_BAD_INPUT) {
        const struct lr_finding_head head = {LR_SUSPECT,
                                             LR_FINDING_COINCIDENCE,
                                             {-1, -1},
                                             "relax min_module_difference, max_ring_difference or field_of_view_mm"};
        lr_examination_add(examination, &head,
                           "no pair of modules has a LOR in coincidence: the rules exclude everything");
    }
    lr_scanner_destroy(scanner);
}
