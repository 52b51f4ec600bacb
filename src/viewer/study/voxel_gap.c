/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/voxel_gap.h"

#include <stdio.h>

static bool is_empty(const struct voxel_window *window)
{
    for (int64_t k = 0; k < (int64_t)window->size[0] * window->size[1]; k++)
        if (window->lors[k] >= 0) return false;
    return true;
}

/* LORs of the row that end in the module, and those of them whose farther end it is. */
struct share {
    int64_t ends, primary;
};

static struct share count_share(const struct voxel_row *row, const lr_lors *lors, int module, const double point_mm[3])
{
    struct share share = {0};
    for (int64_t k = 0; k < row->count; k++) {
        const lr_lor lor = lr_lors_describe(lors, row->lor[k]);
        if (lor.module_i == module || lor.module_j == module) {
            share.ends++;
            share.primary += lr_lors_primary(lors, row->lor[k], point_mm) == module;
        }
    }
    return share;
}

static void explain(const struct voxel_result *result, const struct voxel_window *window, const struct share *share,
                    struct voxel_gap *gap)
{
    const int module = window->module, rays = result->request.rays;
    if (gap->better < 0) {
        snprintf(gap->why, sizeof(gap->why),
                 "no LOR passes through the point: the scanner does not see it; choose another "
                 "point");
    } else if (share->ends == 0) {
        snprintf(gap->why, sizeof(gap->why), "module %d has no window: no LOR through the point ends in it", module);
    } else if (share->primary == 0) {
        snprintf(gap->why, sizeof(gap->why),
                 "module %d has no window: it is the nearer end of all %lld LORs through the point "
                 "that end in it, and windows are drawn on the farther end",
                 module, (long long)share->ends);
    } else {
        snprintf(gap->why, sizeof(gap->why),
                 "module %d has no window at R = %d: its %d x %d lines a crystal meet none of its "
                 "%lld LORs; raise R",
                 module, rays, rays, rays, (long long)share->primary);
    }
}

struct voxel_gap voxel_gap_find(const struct voxel_result *result, const lr_lors *lors,
                                const struct voxel_window *window)
{
    const double *point_mm = result->request.point_mm;
    const struct voxel_row *row = result->has_exact ? &result->point_exact : &result->point_sampled;
    struct voxel_gap gap = {.better = -1};
    if (!is_empty(window)) return gap;
    if (row->count > 0) gap.better = lr_lors_primary(lors, row->lor[row->order[0]], point_mm);
    const struct share share = count_share(row, lors, window->module, point_mm);
    explain(result, window, &share, &gap);
    return gap;
}
