/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/survey.h"

#include <math.h>

void survey_begin(struct survey *survey, const lr_grid *grid, const struct draw_region *region)
{
    const bool is_shaped = region->shape == DRAW_BOX || region->shape == DRAW_ELLIPSOID;
    double ends[2] = {0.0, grid->size[2] - 1.0};
    for (int k = 0; k < 2 && is_shaped; k++) {
        const double face_mm = region->middle_mm[2] + (k == 0 ? -1.0 : 1.0) * region->half_mm[2];
        const double slice = (face_mm - grid->origin_mm[2]) / grid->voxel_mm[2];
        ends[k] = k == 0 ? fmax(floor(slice), ends[0]) : fmin(ceil(slice), ends[1]);
    }
    *survey = (struct survey){.grid = *grid, .region = *region, .smallest = INFINITY, .largest = -INFINITY};
    survey->is_done = region->shape == DRAW_NO_REGION || !(ends[0] <= ends[1]);
    if (survey->is_done) return;
    survey->first = survey->next = (int)ends[0];
    survey->end = (int)ends[1] + 1;
}

/* Squared distance of a voxel from the region's middle along an axis, in units of half the region's size along this
 * axis. */
static double away(const struct survey *survey, int axis, int voxel)
{
    const double mm = survey->grid.origin_mm[axis] + voxel * survey->grid.voxel_mm[axis];
    const double share = (mm - survey->region.middle_mm[axis]) / fmax(survey->region.half_mm[axis], 1e-30);
    return share * share;
}

void survey_add(struct survey *survey, const float *values, int count)
{
    const struct draw_region *region = &survey->region;
    const int *size = survey->grid.size;
    const bool is_box = region->shape == DRAW_BOX, is_ellipsoid = region->shape == DRAW_ELLIPSOID;
    const double to_bins = SURVEY_BINS / fmax(survey->largest - survey->smallest, 1e-300);
    for (int k = 0; k < count; k++) {
        const double away_z = is_box || is_ellipsoid ? away(survey, 2, survey->next + k) : 0.0;
        for (int j = 0; j < size[1]; j++) {
            const double away_y = is_box || is_ellipsoid ? away(survey, 1, j) : 0.0;
            const float *row = values + ((int64_t)k * size[1] + j) * size[0];
            if (is_box ? fmax(away_y, away_z) > 1.0 : away_y + away_z > 1.0) continue;
            for (int i = 0; i < size[0]; i++) {
                const double value = (double)row[i], away_x = is_box || is_ellipsoid ? away(survey, 0, i) : 0.0;
                const bool is_inside = is_box ? away_x <= 1.0 : away_x + away_y + away_z <= 1.0;
                if (!is_inside || !isfinite(value) || value < region->range[0] || value > region->range[1]) continue;
                if (survey->pass == 1) {
                    const double bin = (value - survey->smallest) * to_bins;
                    survey->bins[(int)fmin(fmax(bin, 0.0), SURVEY_BINS - 1.0)] += 1.0f;
                    continue;
                }
                /* Welford 1962: the sum of squares stays exact even if values are much larger than their spread. */
                const double off = value - survey->mean;
                survey->mean += off / (double)++survey->voxels;
                survey->squares += off * (value - survey->mean);
                survey->total += value;
                survey->smallest = fmin(survey->smallest, value);
                survey->largest = fmax(survey->largest, value);
            }
        }
    }
    survey->next += count;
    if (survey->next < survey->end) return;
    survey->deviation = survey->voxels > 0 ? sqrt(survey->squares / (double)survey->voxels) : 0.0;
    survey->is_done = survey->pass == 1 || survey->voxels == 0;
    survey->pass = 1;
    survey->next = survey->first;
}
