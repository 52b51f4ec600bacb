/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The family `direct` in the viewer: look-up tables of a view with the kernel of one voxel, and
 * histo-images of a file. */
#ifndef LR_VIEWER_DIRECT_MODEL_H
#define LR_VIEWER_DIRECT_MODEL_H

#include "viewer/frame/job.h"

#include <lr/direct.h>

/* --- tables --- */

struct direct_request {
    lr_view view;
    lr_direct_kernel kernel; /* not of measured profiles */
    double point_mm[3];      /* whose voxel's kernel is wanted */
};

struct direct_result {
    struct direct_request request;
    const lr_direct_tables *tables;
    bool is_inside;        /* the point, in the grid; the rest is there then */
    int voxel[3];          /* that holds it */
    int kernel;            /* its identifier in the view, LORmap */
    double radial_mm;      /* of its centre, from the axis along the view's radial direction */
    const lr_image *cloud; /* mSRval at each place of mSR around the voxel, 0 elsewhere; what is
                              beyond the grid is left out */
    double largest;        /* of the kernel */
};

extern const struct task_kind direct_tables_kind; /* for task_runner_init */

/* Asks for other tables; the newest wins. errors: LR_USAGE for a grid of size 0. */
lr_status direct_tables_ask(struct task_runner *runner, const lr_grid *grid, const struct direct_request *request,
                            const lr_log *log);

/* The newest tables, until the next poll; NULL = none. */
const struct direct_result *direct_tables_result(const struct task_runner *runner);

/* mSRval of the result's kernel at an offset in voxels; 0 where mSR has none. */
double direct_kernel_value(const struct direct_result *result, const int offset[3]);

/* --- histo-images --- */

extern const struct task_kind direct_histo_kind; /* for task_runner_init */

/* Begins to read a file of lr_histo_images_write; the newest wins. */
lr_status direct_histo_ask(struct task_runner *runner, const char *path, const lr_log *log);

/* The last ones that were read, until the next poll; NULL = none. */
const lr_histo_images *direct_histo_result(const struct task_runner *runner);

#endif
