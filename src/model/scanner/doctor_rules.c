/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The geometry doctor on coincidence rules, grids and sizes. */
#include "model/scanner/doctor.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/scanner/coincidence.h"

#include <lr/lors.h>
#include <stdio.h>

static const double pi = 3.14159265358979323846;

/* --- rules --- */

static void examine_field(struct lr_examination *examination)
{
    const double field = examination->draft->params.coincidence.field_of_view_mm;
    const double bore = 2 * examination->belt.radius_mm;
    struct lr_finding_head head = {
        LR_SUSPECT, LR_FINDING_COINCIDENCE, {-1, -1}, "give field_of_view_mm as a diameter in millimetres"};
    if (field > bore) {
        lr_examination_add(examination, &head,
                           "the field of view of %.6g mm is wider than the bore of %.6g mm: the "
                           "rule leaves no LOR out",
                           field, bore);
    } else if (field > 0 && field < 0.15 * bore) {
        const bool cm = 10 * field > 0.3 * bore && 10 * field < bore;
        lr_examination_add(examination, &head, "the field of view of %.6g mm is %.0f %% of the bore of %.6g mm%s",
                           field, 100 * field / bore, bore, cm ? ": it looks like cm" : "");
    }
}

/* The widest cylinder that lines between modules that far apart pass through: those between
 * neighbouring edges. */
static double field_of_difference(const struct lr_examination *examination, int difference)
{
    const int places = examination->draft->params.num_positions;
    return 2 * examination->belt.radius_mm * cos(pi * (difference - 1) / places);
}

static void examine_difference(struct lr_examination *examination)
{
    const lr_scanner_params *params = &examination->draft->params;
    const int difference = params->coincidence.min_module_difference;
    const struct lr_finding_head head = {LR_SUSPECT,
                                         LR_FINDING_COINCIDENCE,
                                         {-1, -1},
                                         "reduce min_module_difference: it counts places around "
                                         "the ring, not crystals"};
    if (params->num_positions < 3 || difference < 1 || difference > params->num_positions / 2)
        return; /* lr_scanner_create has a sentence for too large ones */
    const double wide = field_of_difference(examination, difference);
    const double field = params->coincidence.field_of_view_mm;
    if (field > 0 && wide < 0.9 * field) {
        lr_examination_add(examination, &head,
                           "lines between modules at least %d of %d places apart stay within "
                           "%.4g mm of diameter, while field_of_view_mm says %.6g: the rules "
                           "contradict each other",
                           difference, params->num_positions, wide, field);
    } else if (wide < 0.2 * 2 * examination->belt.radius_mm) {
        lr_examination_add(examination, &head,
                           "modules at least %d of %d places apart are nearly opposite: only "
                           "%.4g mm of the bore of %.4g mm are seen",
                           difference, params->num_positions, wide, 2 * examination->belt.radius_mm);
    }
}

static void examine_ring_difference(struct lr_examination *examination)
{
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
        lr_examination_add(examination, &head,
                           "a ring difference of 0 measures each of the %d crystal rings for "
                           "itself, without oblique LORs",
                           rings);
    }
}

void lr_examine_rules(struct lr_examination *examination)
{
    if (examination->belt.closed) {
        examine_field(examination);
        examine_difference(examination);
    }
    examine_ring_difference(examination);
}

/* --- the grid --- */

/* Half of the grid's extent along an axis, from the scanner's axis or middle. */
static double reach_along(const lr_grid *grid, int axis)
{
    const double first = grid->origin_mm[axis] - 0.5 * grid->voxel_mm[axis];
    const double last = first + grid->size[axis] * grid->voxel_mm[axis];
    return fmax(fabs(first), fabs(last));
}

static void examine_across(struct lr_examination *examination)
{
    const lr_grid *grid = examination->grid;
    const lr_coincidence *rules = &examination->draft->params.coincidence;
    const double reach = fmax(reach_along(grid, 0), reach_along(grid, 1));
    const double radius = examination->belt.radius_mm;
    double field = rules->field_of_view_mm > 0 ? rules->field_of_view_mm : 2 * radius;
    if (rules->min_module_difference > 0 && examination->draft->params.num_positions >= 3)
        field = fmin(field, field_of_difference(examination, rules->min_module_difference));
    if (reach > radius) {
        const struct lr_finding_head head = {LR_SUSPECT,
                                             LR_FINDING_COINCIDENCE,
                                             {-1, -1},
                                             "make the grid smaller, or check its voxel size and "
                                             "the unit of the radius"};
        lr_examination_add(examination, &head,
                           "the grid reaches %.4g mm from the axis, the detectors begin at %.4g "
                           "mm: voxels would lie within the crystals",
                           reach, radius);
    } else if (2 * reach > 1.02 * field) {
        const struct lr_finding_head head = {
            LR_NOTE, LR_FINDING_COINCIDENCE, {-1, -1}, "make the grid smaller to save time"};
        lr_examination_add(examination, &head,
                           "the grid is %.4g mm wide, and LORs in coincidence pass within a "
                           "diameter of %.4g mm: what lies beyond is not measured",
                           2 * reach, field);
    }
}

static void examine_along(struct lr_examination *examination)
{
    const lr_grid *grid = examination->grid;
    const double low = grid->origin_mm[2] - 0.5 * grid->voxel_mm[2];
    const double high = low + grid->size[2] * grid->voxel_mm[2];
    if (high <= examination->low_mm || low >= examination->high_mm) {
        const struct lr_finding_head head = {LR_SUSPECT,
                                             LR_FINDING_COINCIDENCE,
                                             {-1, -1},
                                             "move the grid: its origin is the centre of its "
                                             "first voxel"};
        lr_examination_add(examination, &head,
                           "the grid lies at z = %.4g to %.4g mm, the scanner at %.4g to %.4g mm: "
                           "they do not meet",
                           low, high, examination->low_mm, examination->high_mm);
    } else if (high - low > 1.1 * (examination->high_mm - examination->low_mm)) {
        const struct lr_finding_head head = {
            LR_NOTE, LR_FINDING_COINCIDENCE, {-1, -1}, "make the grid shorter to save time"};
        lr_examination_add(examination, &head,
                           "the grid is %.4g mm long, the scanner %.4g mm: hardly any LOR passes "
                           "the planes beyond its ends",
                           high - low, examination->high_mm - examination->low_mm);
    }
}

void lr_examine_grid(struct lr_examination *examination)
{
    if (examination->grid == NULL) return;
    if (examination->belt.closed) examine_across(examination);
    examine_along(examination);
}

/* --- sizes --- */

static const char *bytes_text(char text[32], double bytes)
{
    static const char *const names[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int k = 0;
    while (bytes >= 1024 && k < 4) {
        bytes /= 1024;
        k++;
    }
    snprintf(text, 32, k == 0 ? "%.0f %s" : "%.1f %s", bytes, names[k]);
    return text;
}

static void tell_size(struct lr_examination *examination, const lr_lors_size *size)
{
    char dense[32], table[32];
    const double modules = examination->draft->params.num_modules;
    const double bytes = 4.0 * (double)size->num_lors;
    const bool much = bytes > 0.5 * (double)lr_physical_memory();
    const struct lr_finding_head head = {
        LR_NOTE,
        LR_FINDING_SIZE,
        {-1, -1},
        much ? "keep data sparse, or limit the coincidences: dense data would take more than half "
               "of this machine's memory"
             : ""};
    lr_examination_add(examination, &head,
                       "%lld LORs in %lld of %.0f pairs of modules: one number for each takes %s, "
                       "the table of pairs %s",
                       (long long)size->num_lors, (long long)size->num_pairs, 0.5 * modules * (modules - 1),
                       bytes_text(dense, bytes), bytes_text(table, LR_PAIR_BYTES * (double)size->num_pairs));
}

/* What is wrong with the scanner is found elsewhere; that there is no memory is nobody's fault. */
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
    if (scanner != NULL && !examination->failed) lr_examine_hiding(examination, scanner);
    if (examination->failed) {
        /* told */
    } else if (status == LR_OK) {
        tell_size(examination, &size);
    } else if (status == LR_BAD_INPUT) {
        const struct lr_finding_head head = {
            LR_SUSPECT, LR_FINDING_COINCIDENCE, {-1, -1}, "relax the coincidence rules"};
        lr_examination_add(examination, &head,
                           "no pair of modules has a LOR in coincidence: the rules exclude "
                           "everything");
    }
    lr_scanner_destroy(scanner);
}
