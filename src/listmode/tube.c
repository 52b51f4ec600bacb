/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/tube.h"

#include <math.h>

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

void lr_listmode_tube_halves(const struct lr_listmode_model *model, const struct lr_listmode_line *line,
                             const struct lr_listmode_walk *walk, double halves[2])
{
    const double radius = sqrt(lr_listmode_rim(&model->tube)) / line->direction[line->axis];
    for (int k = 0; k < 2; k++) {
        const double other = line->direction[walk->across[1 - k]];
        halves[k] = radius * sqrt(fmax(1.0 - other * other, 0.0)) / model->grid.voxel_mm[walk->across[k]];
    }
}

/* --- how large elements are --- */

/* The largest share of a perpendicular line that crosses a slice u, v voxels from a centre. */
static double share_near(const lr_listmode_tube *tube, const double edges_mm[2], const double at[2])
{
    enum { AROUND = 3 };
    double sum = 0, most = 0;
    for (int u = -AROUND; u <= AROUND; u++) {
        for (int v = -AROUND; v <= AROUND; v++) {
            const double r = hypot((u - at[0]) * edges_mm[0], (v - at[1]) * edges_mm[1]);
            const double share = 2 * r <= tube->width_mm ? lr_listmode_tube_value(tube, r) : 0.0;
            sum += share;
            most = fmax(most, share);
        }
    }
    return sum > 0 ? most / sum : 1.0;
}

static double largest_share(const struct lr_listmode_model *model, int axis)
{
    enum { PARTS = 10 };
    const double margin = 1.1;
    const double edges_mm[2] = {model->grid.voxel_mm[axis == 0 ? 1 : 0], model->grid.voxel_mm[axis == 2 ? 1 : 2]};
    double most = 0;
    if (model->kernel != LR_LISTMODE_TUBE || model->tube.table != NULL) return 1.0;
    for (int k = 0; k < PARTS * PARTS; k++) {
        const double at[2] = {0.5 * (k % PARTS) / (PARTS - 1), 0.5 * (k / PARTS) / (PARTS - 1)};
        most = fmax(most, share_near(&model->tube, edges_mm, at));
    }
    return fmin(margin * most, 1.0);
}

static double largest_of_paper(const lr_listmode_tube *tube)
{
    double peak = tube->table_count > 0 ? tube->table[0] : 1.0;
    for (int k = 1; k < tube->table_count; k++) peak = fmax(peak, tube->table[k]);
    return peak;
}

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
    if (model->tube.as_paper) return largest_of_paper(&model->tube);
    return largest_share(model, axis) *
           (has_tof ? fmin(chord * lr_listmode_largest_density(events), 1.0 / LR_LISTMODE_HELD) : chord);
}
