/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"

#include "base/mem.h"
#include "listmode/hull.h"
#include "listmode/line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOUR_LN_2 2.7725887222397812

double lr_listmode_tube_value(const lr_listmode_tube *tube, double distance_mm)
{
    const double within = fmin(distance_mm / (0.5 * tube->width_mm), 1.0);
    if (tube->table == NULL) {
        const double ratio = within * 0.5 * tube->width_mm / tube->fwhm_mm;
        return exp(-FOUR_LN_2 * ratio * ratio);
    }
    const int last = tube->table_count - 1;
    const double at = within * last;
    const int k = at < last ? (int)at : last - 1;
    return tube->table[k] + (at - k) * (tube->table[k + 1] - tube->table[k]);
}

float *lr_listmode_tube_table(const lr_listmode_tube *tube, const lr_log *log)
{
    const int last = tube->table_count - 1;
    float *table = lr_alloc(last + INT64_C(2), sizeof(*table), "the tube's table", log);
    for (int k = 0; table != NULL && k <= last + 1; k++) table[k] = (float)tube->table[k < last ? k : last];
    return table;
}

void lr_listmode_tube_halves(const struct lr_listmode_model *model, const struct lr_listmode_line *line,
                             const struct lr_listmode_walk *walk, double halves[2])
{
    const double radius = sqrt(lr_listmode_rim(&model->tube)) / line->direction[line->axis];
    for (int k = 0; k < 2; k++) {
        const double other = line->direction[walk->across[1 - k]];
        halves[k] = radius * sqrt(fmax(1.0 - other * other, 0.0)) / model->grid.voxel_mm[walk->across[k]];
    }
}

/* --- slices of time of flight --- */

double lr_listmode_centre_slice(const struct lr_listmode_model *model, const struct lr_listmode_events *events,
                                int64_t k, int axis)
{
    struct lr_listmode_line line;
    lr_listmode_line_of(events, k, axis, &line);
    const double centre_mm = line.middle[axis] + line.tof_mm * line.direction[axis];
    return (centre_mm - model->grid.origin_mm[axis]) / model->grid.voxel_mm[axis];
}

double lr_listmode_reach_slices(const struct lr_listmode_model *model, const struct lr_listmode_events *events,
                                int axis)
{
    return (events->reach_mm + model->reach_mm) / model->grid.voxel_mm[axis] + 1.5;
}

void lr_listmode_range_slices(const struct lr_listmode_model *model, const struct lr_listmode_events *events,
                              const int64_t range[2], int axis, int slices[2])
{
    const int size = model->grid.size[axis];
    const double reach = lr_listmode_reach_slices(model, events, axis);
    const double low = floor(lr_listmode_centre_slice(model, events, range[0], axis) - reach);
    const double high = ceil(lr_listmode_centre_slice(model, events, range[1] - 1, axis) + reach);
    slices[0] = (int)fmin(fmax(low, 0.0), size);
    slices[1] = (int)fmax(fmin(high, size), slices[0]);
}

/* --- the size of elements --- */

double lr_listmode_least_sigma_mm(const struct lr_listmode_events *events)
{
    double least = INFINITY;
    for (int k = 0; k < events->num_kinds * events->num_kinds; k++)
        least = events->sigma_mm[k] > 0 ? fmin(least, events->sigma_mm[k]) : least;
    return least;
}

double lr_listmode_largest_density(const struct lr_listmode_events *events)
{
    double most = 0;
    for (int k = 0; k < events->num_kinds * events->num_kinds; k++) {
        const double sigma = events->sigma_mm[k];
        const double bin = events->bin_mm != NULL ? events->bin_mm[k] : 0.0;
        if (sigma > 0) most = fmax(most, fmin(0.39894229 / (LR_LISTMODE_HELD * sigma), 1.0 / bin));
    }
    return most;
}

double lr_listmode_largest_element(const struct lr_listmode_model *model, const struct lr_listmode_events *events,
                                   int axis, bool has_tof)
{
    const double chord = sqrt(3.0) * model->grid.voxel_mm[axis];
    if (model->tube.as_paper) {
        double peak = model->tube.table_count > 0 ? model->tube.table[0] : 1.0;
        for (int k = 1; k < model->tube.table_count; k++) peak = fmax(peak, model->tube.table[k]);
        return peak;
    }

    /* Finds the largest share of a line that a voxel of a slice can have, by trying several positions of the line in a
     * voxel. */
    enum { PARTS = 10, AROUND = 3 };
    const double margin = 1.1;
    const double edges_mm[2] = {model->grid.voxel_mm[axis == 0 ? 1 : 0], model->grid.voxel_mm[axis == 2 ? 1 : 2]};
    const bool is_gaussian = model->kernel == LR_LISTMODE_TUBE && model->tube.table == NULL;
    double most = is_gaussian ? 0.0 : 1.0;
    for (int k = 0; is_gaussian && k < PARTS * PARTS; k++) {
        const double at[2] = {0.5 * (k % PARTS) / (PARTS - 1), 0.5 * (k / PARTS) / (PARTS - 1)};
        double sum = 0, largest = 0;
        for (int u = -AROUND; u <= AROUND; u++) {
            for (int v = -AROUND; v <= AROUND; v++) {
                const double r = hypot((u - at[0]) * edges_mm[0], (v - at[1]) * edges_mm[1]);
                const double share = 2 * r <= model->tube.width_mm ? lr_listmode_tube_value(&model->tube, r) : 0.0;
                sum += share;
                largest = fmax(largest, share);
            }
        }
        most = fmax(most, sum > 0 ? largest / sum : 1.0);
    }
    return fmin(margin * most, 1.0) *
           (has_tof ? fmin(chord * lr_listmode_largest_density(events), 1.0 / LR_LISTMODE_HELD) : chord);
}

/* --- models --- */

/* The distance from its centre, in FWHM, at which a Gaussian has fallen to 1 %: sqrt(log2(100)) / 2. */
#define FWHM_TO_ONE_PERCENT 1.2887839413

/* The largest width of a tube in voxels. It is limited because memory holds the shares of all voxels of a slice at
 * once. */
enum { MOST_VOXELS = 1000 };

static lr_status complete_tube(struct lr_listmode_model *model, const lr_listmode_params *params)
{
    lr_listmode_tube tube = params->tube;
    const lr_scanner *scanner = model->scanner;
    const double *edge = params->grid->voxel_mm;
    const lr_log *log = params->log;
    if (!(tube.width_mm >= 0) || !isfinite(tube.width_mm) || !(tube.fwhm_mm >= 0) || !isfinite(tube.fwhm_mm)) {
        return lr_error(log, LR_USAGE, "a tube of response cannot be %g mm wide with a FWHM of %g mm", tube.width_mm,
                        tube.fwhm_mm);
    }
    if (tube.table == NULL && tube.table_count != 0)
        return lr_error(log, LR_USAGE, "a tube's table of %d values needs the values", tube.table_count);
    if (tube.table != NULL) {
        double sum = 0;
        if (tube.table_count < 2 || tube.width_mm == 0) {
            return lr_error(log, LR_USAGE,
                            "a tube's table needs at least two values and the tube's width: it has %d "
                            "values and is %g mm wide",
                            tube.table_count, tube.width_mm);
        }
        for (int k = 0; k < tube.table_count; k++) {
            if (!(tube.table[k] >= 0) || !isfinite(tube.table[k])) {
                return lr_error(log, LR_USAGE, "value %d of the tube's table is %g: give finite ones, not negative", k,
                                tube.table[k]);
            }
            sum += tube.table[k];
        }
        if (!(sum > 0)) return lr_error(log, LR_USAGE, "the tube's table is 0 everywhere: it sees nothing");
    }

    if (tube.fwhm_mm == 0) {
        double pitch = 0;
        for (int m = 0; scanner != NULL && m < scanner->num_modules; m++)
            pitch = fmax(pitch, fmax(scanner->modules[m].pitch_mm[0], scanner->modules[m].pitch_mm[1]));
        tube.fwhm_mm = fmax(0.5 * pitch, fmax(edge[0], fmax(edge[1], edge[2])));
    }
    if (tube.width_mm == 0) tube.width_mm = 2.0 * FWHM_TO_ONE_PERCENT * tube.fwhm_mm;
    if (tube.table != NULL) {
        double *copy = lr_alloc(tube.table_count, sizeof(*copy), "the tube's table", log);
        if (copy == NULL) return LR_FAILED;
        memcpy(copy, tube.table, (size_t)tube.table_count * sizeof(*copy));
        tube.table = copy;
    }
    model->tube = tube;

    const double shortest = fmin(edge[0], fmin(edge[1], edge[2]));
    if (tube.width_mm > MOST_VOXELS * shortest) {
        return lr_error(log, LR_USAGE,
                        "a tube of response %g mm wide spans more than %d voxels of %g mm: give "
                        "its width in mm, or larger voxels",
                        tube.width_mm, MOST_VOXELS, shortest);
    }
    /* The narrowest tube: a disc as wide as the diagonal of a voxel's largest face always contains the centre of a
     * voxel. */
    const double least = fmax(hypot(edge[0], edge[1]), fmax(hypot(edge[0], edge[2]), hypot(edge[1], edge[2])));
    if (tube.as_paper || tube.width_mm >= least * (1.0 - 1e-9)) return LR_OK;
    return lr_error(log, LR_USAGE,
                    "a tube of response %g mm wide misses the centres of voxels as large as these: make it at least "
                    "%.4g mm wide, the diagonal of a voxel's largest face, or take thin lines",
                    tube.width_mm, least);
}

/* The largest number of sample points of a voxel along an axis. */
enum { MOST_SAMPLES = 1000 };

lr_status lr_listmode_model_init(struct lr_listmode_model *model, const lr_listmode_params *params)
{
    *model = (struct lr_listmode_model){.kernel = params->kernel, .samples = {1, 1, 1}};
    if ((params->lors == NULL && params->lines == NULL) || params->grid == NULL)
        return lr_error(params->log, LR_USAGE, "list mode needs the LORs of a scanner, or lines, and a grid");
    LR_TRY(lr_grid_check(params->grid, params->log));
    model->grid = *params->grid;
    model->scanner = params->lines == NULL ? params->lors->scanner : NULL;
    if (params->kernel == LR_LISTMODE_EXACT && model->scanner == NULL) {
        return lr_error(params->log, LR_USAGE,
                        "exact elements are of a scanner's crystals, which lines given by their ends lack: take tubes, "
                        "thin lines, or events");
    }
    if (params->kernel == LR_LISTMODE_TUBE) return complete_tube(model, params);
    if (params->kernel == LR_LISTMODE_EXACT) {
        for (int k = 0; k < 3; k++) {
            if (params->samples[k] < 0 || params->samples[k] > MOST_SAMPLES) {
                return lr_error(params->log, LR_USAGE, "samples = %d along %c: give 1 to %d, or 0 for the default",
                                params->samples[k], "xyz"[k], MOST_SAMPLES);
            }
            model->samples[k] = params->samples[k] > 0 ? params->samples[k] : 1;
        }
        /* A voxel's element belongs to points of the line that are at most half the diagonal of a face plus the
         * diagonal of a voxel away. */
        double diagonal = 0;
        for (int m = 0; m < model->scanner->num_modules; m++) {
            const double *face_mm = model->scanner->modules[m].face_mm;
            diagonal = fmax(diagonal, hypot(face_mm[0], face_mm[1]));
        }
        model->reach_mm = 0.5 * diagonal + vec_length(params->grid->voxel_mm);
        return LR_OK;
    }

    return params->kernel == LR_LISTMODE_LINE
               ? LR_OK
               : lr_error(params->log, LR_USAGE, "list mode has no kernel %d", (int)params->kernel);
}

void lr_listmode_model_finish(struct lr_listmode_model *model)
{
    free((double *)(uintptr_t)model->tube.table);
    model->tube = (lr_listmode_tube){0};
}
