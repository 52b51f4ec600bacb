/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Why a module has no window of a point, and which module has one. */
#ifndef LR_VIEWER_VOXEL_GAP_H
#define LR_VIEWER_VOXEL_GAP_H

#include "viewer/study/voxel.h"

struct voxel_gap {
    int better;    /* the module whose window has the point's strongest LOR; -1: none has one */
    char why[240]; /* a sentence; "" = the module has a window */
};

/* lors: those that the result's rows count. */
struct voxel_gap voxel_gap_find(const struct voxel_result *result, const lr_lors *lors,
                                const struct voxel_window *window);

#endif
