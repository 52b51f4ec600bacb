/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Statistics of an image's region: mean, deviation, total and histogram. The caller passes all slices twice, from the
 * first to the last one. Each call may pass any number of slices. */
#pragma once

#include "viewer/frame/draw.h"

enum { SURVEY_BINS = 96 };

struct survey {
    bool is_done;   /* the fields up to `bins` are complete */
    int64_t voxels; /* in the region; values that are not finite are left out */
    double mean, total, smallest, largest;
    double deviation;        /* from the mean, over all voxels of the region (n, not n - 1) */
    float bins[SURVEY_BINS]; /* numbers of voxels, in equal steps from the smallest to the largest value */

    /* the members below are private */
    lr_grid grid;
    struct draw_region region;
    double squares;
    int first, end; /* slices that the region crosses */
    int next, pass;
};

/* Begins a survey. The survey of an empty region is done at once. */
void survey_begin(struct survey *survey, const lr_grid *grid, const struct draw_region *region);

/* Takes the values of `count` whole slices from slice survey->next on, [count][ny][nx]; count is at most survey->end -
 * survey->next. */
void survey_add(struct survey *survey, const float *values, int count);
