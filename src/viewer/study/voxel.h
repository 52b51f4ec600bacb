/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Voxel mode: a row of the matrix as pictures. Which LORs one point, and the voxel about it, give
 * to, seen on the faces of the primary modules. */
#ifndef LR_VIEWER_VOXEL_H
#define LR_VIEWER_VOXEL_H

#include "model/lors/elements.h"
#include "viewer/study/study.h"

/* Zero fields are defaults, those of lr_operator_params. */
struct voxel_request {
    double point_mm[3];
    bool all_primaries; /* a window for each module; else of this one: */
    int primary;
    lr_mode mode; /* sampled: no exact elements; else both */
    int rays;     /* R of windows and sampled elements */
    int samples;  /* N points of the voxel, split over the axes; 0 = by the crystal pitch, as for
                     the study's grid */
    int mu_steps; /* K */
    bool without_mu;
    bool wants_whole;    /* all LORs of the voxel, however many there are */
    bool on_graphics;    /* OpenGL has a graphics processor: compute is then asked first for exact
                            elements */
    const char *backend; /* of voxel_backends, or NULL for the first */
};

/* "raster": windows and sampled elements by the projector's shaders, exact ones by compute, native
 * or cpu, whichever is quick and can. "compute": elements by that, windows by raster. "cpu": all in
 * double. Where one cannot run, cpu does it, and the result says why. NULL at the end. */
extern const char *const voxel_backends[];

/* A row of the matrix, or none (count 0, sum 0). Arrays are the result's. */
struct voxel_row {
    int64_t count;
    const int64_t *lor;        /* [count] ascending */
    const double *probability; /* [count] */
    const int64_t *order;      /* [count] places in the two, largest probability first; NULL for
                                  rows of voxels */
    double sum;
};

/* The window of one primary module. Arrays have size[1] rows, axial, of size[0] numbers; NaN stands
 * where there is no LOR. */
struct voxel_window {
    int module;
    int size[2]; /* R nu, R nv */
    lr_pixel *pixels;
    int64_t *lors;     /* of each pixel; -1 = none */
    float *weight;     /* of the pixel's line; 0 = none */
    float *sampled;    /* element of its LOR */
    float *exact;      /* the same; NULL in sampled mode */
    float *difference; /* sampled - exact; NULL in sampled mode */
};

struct voxel_result {
    struct voxel_request request; /* with R, N's split and K filled in; backend is NULL */
    int samples[3];
    lr_grid voxel;     /* of size 1: the voxel that holds the point */
    int64_t voxel_row; /* its row in the study's grid; -1: the point is outside, and the voxel is
                           one of that size about the point */
    bool has_mu, has_exact;
    const char *drawn_by, *sampled_by, *exact_by; /* backends of windows and elements; exact_by is
                                                     NULL in sampled mode */
    char drawn_on[160];                           /* the device of drawn_by */
    char why_not[1024]; /* why backend cpu does what another was asked for; "" = it does not */
    int num_windows;
    const struct voxel_window *windows;          /* [num_windows] */
    float high_weight;                           /* largest of all windows */
    float high_element;                          /* largest of sampled and exact */
    float high_difference;                       /* largest absolute value */
    struct voxel_row point_sampled, point_exact; /* one sample, at the point */
    bool has_means;                              /* the next five have come, which may be some time after the rest */
    struct voxel_row voxel_sampled, voxel_exact; /* mean over the voxel's points */
    bool is_part; /* the two have the LORs of these pairs of modules alone, those that the windows
                     show: all LORs would be very many */
    int64_t num_pairs;
    const int32_t *pairs; /* [num_pairs] ascending */
};

struct voxel;

struct voxel *voxel_create(const lr_log *log); /* NULL: out of memory */
void voxel_destroy(struct voxel *voxel);       /* NULL is allowed; waits for the job to notice */

/* Asks for another result; of several the newest wins. errors: LR_USAGE without a scanner, for a
 * module that does not exist or a point that is not finite; LR_FAILED if memory runs out. */
lr_status voxel_ask(struct voxel *voxel, const struct study_view *study, const struct voxel_request *request,
                    const lr_log *log);

/* The same as task_runner_poll and task_runner_wait. Windows and the point's rows come first, the voxel's rows follow:
 * JOB_RUNNING until both are there. */
enum job_state voxel_poll(struct voxel *voxel, struct job_report *report);
enum job_state voxel_wait(struct voxel *voxel, struct job_report *report);

/* The runner of windows, 0, and of the voxel's rows, 1: to be watched and cancelled. */
struct task_runner *voxel_runner(struct voxel *voxel, int k);

/* The newest result, until the next poll, and the study it belongs to; NULL = none yet. serial:
 * grows with each, and with the voxel's rows; may be NULL. */
const struct voxel_result *voxel_result(const struct voxel *voxel, int64_t *serial);
const struct study_view *voxel_study(const struct voxel *voxel);

/* Operators made so far. With their contexts and shaders they stay for the next request that differs
 * in nothing but the point and the windows: one that draws windows, one that computes exact elements,
 * and of backend compute one that samples. Backend cpu has a new one for each row. */
int voxel_num_operators(const struct voxel *voxel);

/* Numbers of a pixel of a window. Elements that were not computed are NaN. */
struct voxel_pixel {
    int module, p, q;
    int other, r, s;       /* the secondary module and its crystal; -1: the line hits none */
    int64_t lor;           /* -1: none, or out of coincidence */
    double weight;         /* of this line: its solid angle / 2 pi, times survival */
    double solid_angle_sr; /* of this line's part of the face, from the point */
    double survival;       /* weight's share of it; NaN without a LOR, 1 without a map */
    double distance_mm;    /* between the two hits; NaN where there is no second */
    double point_sampled, point_exact;
    double voxel_sampled, voxel_exact;
};

/* x along u, y along v. errors: LR_USAGE when there is no such window or pixel. */
lr_status voxel_at(const struct voxel *voxel, int module, const int place[2], struct voxel_pixel *pixel);

/* --- windows without LORs --- */

/* Why a module has no window of a point, and which module has one. */
struct voxel_gap {
    int better;    /* the module whose window has the point's strongest LOR; -1: none has one */
    char why[240]; /* for people; "" = the module has a window */
};

/* lors: those that the result's rows count. */
struct voxel_gap voxel_gap_find(const struct voxel_result *result, const lr_lors *lors,
                                const struct voxel_window *window);

/* --- matrix rows that stay --- */

/* A copy of one row; zero is an empty one. */
struct row_copy {
    struct lr_owned_row row;
    int64_t *order; /* owned [row.count]: places by falling probability; of equals the first comes
                       first; NULL = not asked for */
    double sum;
};

/* Takes one row into `copy`, for lr_row_sink; log may be NULL. */
struct row_copier {
    struct row_copy *copy;
    const lr_log *log;
    bool has_order;
};
lr_status row_copier_take(void *copier, const lr_row *row);

void row_copy_finish(struct row_copy *copy); /* zero is allowed */

#endif
