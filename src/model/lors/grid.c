/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"

#include <lr/grid.h>
#include <math.h>
#include <stdlib.h>

/* Two spacings count as equal if their difference is at most this number times the larger spacing. */
#define TIE 1e-12

static const int64_t max_voxels = (int64_t)1 << 31;

lr_grid lr_grid_centred(const int size[3], const double voxel_mm[3])
{
    lr_grid grid;
    for (int k = 0; k < 3; k++) {
        grid.size[k] = size[k];
        grid.voxel_mm[k] = voxel_mm[k];
        grid.origin_mm[k] = -0.5 * (size[k] - 1) * voxel_mm[k];
    }
    return grid;
}

lr_status lr_grid_check(const lr_grid *grid, const lr_log *log)
{
    for (int axis = 0; axis < 3; axis++) {
        const char name = "xyz"[axis];
        if (grid->size[axis] < 1) {
            return lr_error(log, LR_BAD_INPUT, "the grid has %d voxels along %c: it needs at least 1", grid->size[axis],
                            name);
        }
        if (!isfinite(grid->voxel_mm[axis]) || grid->voxel_mm[axis] <= 0.0) {
            return lr_error(log, LR_BAD_INPUT, "the grid's voxels are %.6g mm long along %c: this must be positive",
                            grid->voxel_mm[axis], name);
        }
        if (!isfinite(grid->origin_mm[axis]))
            return lr_error(log, LR_BAD_INPUT, "the %c coordinate of the grid's origin is not a finite number", name);
    }

    const int64_t slice = (int64_t)grid->size[0] * grid->size[1];
    if (slice > max_voxels / grid->size[2]) {
        return lr_error(log, LR_BAD_INPUT, "the grid of %d x %d x %d has more than 2147483648 voxels: reduce its size",
                        grid->size[0], grid->size[1], grid->size[2]);
    }
    return LR_OK;
}

bool lr_grid_same(const lr_grid *a, const lr_grid *b)
{
    bool same = true;
    for (int k = 0; k < 3; k++) {
        const double slack_mm = 1e-3 * a->voxel_mm[k];
        same = same && a->size[k] == b->size[k] && fabs(a->voxel_mm[k] - b->voxel_mm[k]) * a->size[k] < slack_mm &&
               fabs(a->origin_mm[k] - b->origin_mm[k]) < slack_mm;
    }
    return same;
}

int64_t lr_grid_num_voxels(const lr_grid *grid)
{
    return (int64_t)grid->size[0] * grid->size[1] * grid->size[2];
}

void lr_grid_voxel_centre(const lr_grid *grid, int64_t row, double centre_mm[3])
{
    const int64_t line = row / grid->size[0];
    const int index[3] = {(int)(row % grid->size[0]), (int)(line % grid->size[1]), (int)(line / grid->size[1])};
    for (int k = 0; k < 3; k++) centre_mm[k] = grid->origin_mm[k] + index[k] * grid->voxel_mm[k];
}

void lr_grid_sample_point(const lr_grid *grid, const lr_sample *sample, double point_mm[3])
{
    const int *num = sample->num;
    const int part[3] = {sample->index % num[0], sample->index / num[0] % num[1], sample->index / num[0] / num[1]};
    lr_grid_voxel_centre(grid, sample->row, point_mm);
    for (int k = 0; k < 3; k++) point_mm[k] += ((part[k] + 0.5) / num[k] - 0.5) * grid->voxel_mm[k];
}

void lr_grid_split_samples(const lr_grid *grid, int count, int samples[3])
{
    double best_spacing = HUGE_VAL;
    samples[0] = count;
    samples[1] = samples[2] = 1;
    for (int c = 1; c <= count; c++) {
        for (int b = 1; count % c == 0 && b <= count / c; b++) {
            if (count / c % b != 0) continue;
            const int split[3] = {count / c / b, b, c};
            const double spacing =
                fmax(grid->voxel_mm[0] / split[0], fmax(grid->voxel_mm[1] / split[1], grid->voxel_mm[2] / split[2]));
            /* The best split has the smallest spacing. Among splits of equal spacing, the best one has the largest
             * number of parts along z, and then along y. */
            const bool is_tie = fabs(spacing - best_spacing) <= TIE * fmax(spacing, best_spacing);
            const bool is_better = !is_tie                  ? spacing < best_spacing
                                   : split[2] != samples[2] ? split[2] > samples[2]
                                                            : split[1] > samples[1];
            if (best_spacing == HUGE_VAL || is_better) {
                best_spacing = spacing;
                for (int k = 0; k < 3; k++) samples[k] = split[k];
            }
        }
    }
}

lr_image *lr_image_create(const lr_grid *grid, const lr_log *log)
{
    if (lr_grid_check(grid, log) != LR_OK) return NULL;
    lr_image *image = lr_alloc(1, sizeof(*image), "an image", log);
    if (image == NULL) return NULL;
    image->grid = *grid;
    image->values = lr_alloc(lr_grid_num_voxels(grid), sizeof(*image->values), "an image", log);
    if (image->values == NULL) {
        free(image);
        return NULL;
    }
    return image;
}

void lr_image_destroy(lr_image *image)
{
    if (image != NULL) lr_free_all(image->values, image);
}
