/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/region.h"

#include "base/mem.h"
#include "base/parallel.h"
#include "base/vec.h"

#include <float.h>
#include <stdlib.h>

/* The largest number of cells along an axis. */
enum { MOST_CELLS = 128 };

/* The smallest step along a line, as a fraction of a cell. A line counts as near if its distance is at most the reach
 * plus this step. */
static const double least_step = 0.05;

static int cell_at(const struct lr_listmode_region *region, int axis, double mm)
{
    const int cell = (int)((mm - region->low_mm[axis]) / region->cell_mm[axis]);
    return cell < 0 ? 0 : cell < region->size[axis] ? cell : region->size[axis] - 1;
}

/* Marks every cell that a voxel touches, even with only a corner. */
static void mark(struct lr_listmode_region *region, const lr_grid *grid, const int voxel[3])
{
    int first[3], last[3];
    for (int k = 0; k < 3; k++) {
        const double centre = grid->origin_mm[k] + voxel[k] * grid->voxel_mm[k];
        first[k] = cell_at(region, k, centre - 0.499 * grid->voxel_mm[k]);
        last[k] = cell_at(region, k, centre + 0.499 * grid->voxel_mm[k]);
    }
    for (int z = first[2]; z <= last[2]; z++) {
        for (int y = first[1]; y <= last[1]; y++)
            for (int x = first[0]; x <= last[0]; x++)
                region->gap_mm[((int64_t)z * region->size[1] + y) * region->size[0] + x] = 0;
    }
}

struct spreading {
    const struct lr_listmode_region *region;
    int axis;
};

/* Updates the squared gaps along one axis. A cell's new gap is the smallest sum of any cell's old gap and the squared
 * distance to that cell along the axis. Each thread works on some lines of cells. */
static void spread(void *user, int64_t begin, int64_t end)
{
    const struct spreading *spreading = user;
    const struct lr_listmode_region *region = spreading->region;
    const int axis = spreading->axis, count = region->size[axis];
    const double cell = region->cell_mm[axis];
    const int64_t inner = axis == 0 ? 1 : axis == 1 ? region->size[0] : (int64_t)region->size[0] * region->size[1];
    for (int64_t line = begin; line < end; line++) {
        float *const of_line = region->gap_mm + line / inner * inner * count + line % inner;
        float before[MOST_CELLS + 1];
        for (int k = 0; k < count; k++) before[k] = of_line[k * inner];
        for (int k = 0; k < count; k++) {
            float least = before[k];
            for (int by = 1; by < count; by++) {
                const float away = (float)((by - 1) * cell * (by - 1) * cell);
                if (away >= least) break;
                least = k >= by ? fminf(least, before[k - by] + away) : least;
                least = k + by < count ? fminf(least, before[k + by] + away) : least;
            }
            of_line[k * inner] = least;
        }
    }
}

lr_status lr_listmode_region_init(struct lr_listmode_region *region, const struct lr_listmode_labelled *voxels,
                                  int threads, const lr_log *log)
{
    *region = (struct lr_listmode_region){.size = {0}};
    int first[2][3], last[2][3]; /* the boxes of voxels that are searched for the label */
    for (int g = 0; g < voxels->num_grids; g++) {
        for (int k = 0; k < 3; k++) {
            first[g][k] = voxels->num_grids > 1 ? 0 : voxels->first[k];
            last[g][k] = voxels->num_grids > 1 ? voxels->grids[g].size[k] : voxels->last[k];
        }
    }

    /* A cell consists of whole voxels of the first grid. The cells cover the voxels of the second grid, too. */
    for (int k = 0; k < 3; k++) {
        double low = DBL_MAX, high = -DBL_MAX;
        for (int g = 0; g < voxels->num_grids; g++) {
            const lr_grid *grid = &voxels->grids[g];
            low = fmin(low, grid->origin_mm[k] + (first[g][k] - 0.5) * grid->voxel_mm[k]);
            high = fmax(high, grid->origin_mm[k] + (last[g][k] - 0.5) * grid->voxel_mm[k]);
        }
        const double edge = voxels->grids[0].voxel_mm[k];
        const int across = (int)ceil((high - low) / edge - 1e-6);
        const int each = (across + MOST_CELLS - 1) / MOST_CELLS;
        region->size[k] = (across + each - 1) / each;
        region->cell_mm[k] = each * edge;
        region->low_mm[k] = low;
        region->high_mm[k] = high;
        region->least_mm = k == 0 ? each * edge : fmin(region->least_mm, each * edge);
    }
    region->least_mm *= least_step;
    const int64_t count = (int64_t)region->size[0] * region->size[1] * region->size[2];
    region->gap_mm = lr_alloc(count, sizeof(*region->gap_mm), "cells", log);
    if (region->gap_mm == NULL) return LR_FAILED;
    for (int64_t k = 0; k < count; k++) region->gap_mm[k] = FLT_MAX;
    const unsigned char *labels = voxels->labels;
    for (int g = 0; g < voxels->num_grids; g++) {
        const lr_grid *grid = &voxels->grids[g];
        int at[3];
        for (at[2] = first[g][2]; at[2] < last[g][2]; at[2]++) {
            for (at[1] = first[g][1]; at[1] < last[g][1]; at[1]++) {
                const unsigned char *row = labels + ((int64_t)at[2] * grid->size[1] + at[1]) * grid->size[0];
                for (at[0] = first[g][0]; at[0] < last[g][0]; at[0]++)
                    if (row[at[0]] == voxels->label) mark(region, grid, at);
            }
        }
        labels += (int64_t)grid->size[0] * grid->size[1] * grid->size[2];
    }

    for (int axis = 0; axis < 3; axis++)
        lr_parallel_for(threads, count / region->size[axis], 64, spread, &(struct spreading){region, axis});
    for (int64_t k = 0; k < count; k++) region->gap_mm[k] = sqrtf(region->gap_mm[k]);
    return LR_OK;
}

void lr_listmode_region_finish(struct lr_listmode_region *region)
{
    free(region->gap_mm);
    region->gap_mm = NULL;
}

bool lr_listmode_region_is_near(const struct lr_listmode_region *region, const double a[3], const double b[3],
                                double reach_mm)
{
    double along[3], begin = 0, end = 1;
    for (int k = 0; k < 3; k++) { /* a quick test, because most lines of a scanner are far away */
        const double low = region->low_mm[k] - reach_mm, high = region->high_mm[k] + reach_mm;
        if ((a[k] < low && b[k] < low) || (a[k] > high && b[k] > high)) return false;
    }
    vec_sub(b, a, along);
    for (int k = 0; k < 3; k++) { /* a line can be near voxels only inside the voxels' box, widened by the reach */
        const double low = region->low_mm[k] - reach_mm - a[k], high = region->high_mm[k] + reach_mm - a[k];
        if (fabs(along[k]) > 1e-9) {
            const double per = 1 / along[k];
            const double first = (per > 0 ? low : high) * per, last = (per > 0 ? high : low) * per;
            begin = first > begin ? first : begin;
            end = last < end ? last : end;
        }
    }
    if (begin > end) return false;
    const double length = vec_length(along);
    begin *= length;
    end *= length;
    for (double at = begin; at <= end;) {
        double point[3];
        vec_add_scaled(a, at / length, along, point);
        const int64_t row = (int64_t)cell_at(region, 2, point[2]) * region->size[1] + cell_at(region, 1, point[1]);
        const double step = (double)region->gap_mm[row * region->size[0] + cell_at(region, 0, point[0])] - reach_mm;
        if (step < region->least_mm) return true;
        at += step;
    }
    return false;
}
