/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The family `direct` in the viewer: look-up tables of a view with the kernel of one voxel, and
 * histo-images of a file. */
#ifndef LR_VIEWER_DIRECT_MODEL_H
#define LR_VIEWER_DIRECT_MODEL_H

#include "viewer/frame/newest.h"

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

struct direct_model;

struct direct_model *direct_model_create(const lr_log *log); /* NULL: out of memory */
void direct_model_destroy(struct direct_model *model);       /* NULL is allowed; waits for the jobs */

/* Asks for other tables; the newest wins. errors: LR_USAGE for a grid of size 0. */
lr_status direct_model_ask(struct direct_model *model, const lr_grid *grid, const struct direct_request *request,
                           const lr_log *log);
enum job_state direct_model_poll(struct direct_model *model, struct job_report *report);

/* Until the next poll; NULL = none. *serial grows with each; NULL = not wanted. */
const struct direct_result *direct_model_result(const struct direct_model *model, int64_t *serial);

/* mSRval of the result's kernel at an offset in voxels; 0 where mSR has none. */
double direct_model_value(const struct direct_result *result, const int offset[3]);

void direct_model_cancel(struct direct_model *model);

/* --- histo-images --- */

/* Begins to read a file of lr_histo_images_write; the newest wins. */
lr_status direct_model_open(struct direct_model *model, const char *path, const lr_log *log);
enum job_state direct_model_poll_histo(struct direct_model *model, struct job_report *report);

/* As direct_model_result. */
const lr_histo_images *direct_model_histo(const struct direct_model *model, int64_t *serial);

#endif
