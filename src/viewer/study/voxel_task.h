/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What voxel mode computes, on its job's thread. */
#ifndef LR_VIEWER_VOXEL_TASK_H
#define LR_VIEWER_VOXEL_TASK_H

#include "viewer/study/row_copy.h"
#include "viewer/study/voxel.h"

/* One window's arrays, owned. */
struct voxel_arrays {
    lr_pixel *pixels;
    int64_t *lors;
    float *weight, *sampled, *exact, *difference;
};

enum voxel_row_kind {
    ROW_POINT_SAMPLED = 0,
    ROW_POINT_EXACT,
    ROW_VOXEL_SAMPLED,
    ROW_VOXEL_EXACT,
    NUM_VOXEL_ROWS
};

struct voxel_task {
    struct study_view study;      /* held */
    struct voxel_request request; /* as asked for, but for the backend, whose name is kept here */
    int64_t id;                   /* of the request */
    struct voxel_result result;
    struct voxel_window *windows; /* [result.num_windows] */
    struct voxel_arrays *arrays;  /* [result.num_windows] */
    struct row_copy rows[NUM_VOXEL_ROWS];
};

/* Checks the request and holds the study. errors: see voxel_ask; *task is NULL then. */
lr_status voxel_task_create(const struct study_view *study, const struct voxel_request *request,
                            const lr_log *log, struct voxel_task **task);

/* Windows with the point's rows; and the voxel's rows, which take as many times as long as it has
 * points. */
extern const struct newest_kind voxel_windows_kind, voxel_means_kind;

#endif
