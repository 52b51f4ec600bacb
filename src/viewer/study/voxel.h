/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Voxel mode: a row of the matrix as pictures of the primary modules' faces. The pictures show which LORs detect
 * emissions from a point and from the voxel around it. */
#pragma once

#include "gl/resource.h"
#include "model/lors/rows.h"
#include "viewer/study/operators.h"

/* Zero fields mean the defaults of lr_operator_params. */
struct voxel_request {
    double point_mm[3];
    bool all_primaries; /* true: a window for each module; false: only for module `primary` */
    int primary;
    lr_mode mode; /* sampled: only sampled elements; otherwise also exact ones */
    int rays;     /* R, the number of rays, for LOR windows and sampled elements */
    int samples;  /* N, points of the voxel, split over the axes; 0 = from the crystal pitch, as for the study's grid */
    int mu_steps; /* K */
    bool without_mu;
    bool wants_whole;    /* computes all LORs of the voxel, however many there are */
    bool on_graphics;    /* OpenGL runs on a graphics processor; backend compute is then tried first for exact
                          * elements */
    const char *backend; /* one of voxel_backends; NULL = the first */
};

/* "raster": the projector's shaders make windows and sampled elements; a fast available backend (compute, native or
 * cpu) makes the exact elements. "compute": backend compute makes all elements, raster the windows. "cpu":
 * everything is in double precision. A backend that cannot run is replaced by cpu, and the result gives the reason.
 * NULL at the end. */
extern const char *const voxel_backends[];

/* A row of the matrix, which may be missing (count 0, sum 0). The result owns the arrays. */
struct voxel_row {
    int64_t count;
    const int64_t *lor;        /* [count] ascending */
    const double *probability; /* [count] */
    const int64_t *order;      /* [count] indices into both arrays, in order of falling probability; NULL for rows of
                                  voxels */
    double sum;
};

/* The window of one primary module. Arrays have size[1] rows (axial) of size[0] values each; NaN = no LOR. */
struct voxel_window {
    int module;
    int size[2]; /* R nu, R nv */
    lr_pixel *pixels;
    int64_t *lors;     /* LOR of each pixel; -1 = none */
    float *weight;     /* weight of the pixel's line; 0 = none */
    float *sampled;    /* sampled element of the pixel's LOR */
    float *exact;      /* exact element; NULL in sampled mode */
    float *difference; /* sampled - exact; NULL in sampled mode */
};

struct voxel_result {
    const struct study_view *study; /* the study of the request; lives as long as the result */
    struct voxel_request request;   /* the request, with R, K and N as they were used; backend is NULL */
    int samples[3];
    lr_grid voxel;     /* grid of size 1: the voxel that contains the point */
    int64_t voxel_row; /* the voxel's row in the study's grid; -1: the point is outside, and a voxel of the same size
                          is centred on the point */
    bool has_mu, has_exact;
    const char *drawn_by, *sampled_by, *exact_by; /* backends that made windows and elements; exact_by is NULL in
                                                     sampled mode */
    char drawn_on[160];                           /* name of the device that backend drawn_by ran on */
    char why_not[1024];                           /* reason why backend cpu replaced another one; "" = it did not */
    int num_windows;
    const struct voxel_window *windows;          /* [num_windows] */
    float high_weight;                           /* largest value in all windows */
    float high_element;                          /* largest element of both modes */
    float high_difference;                       /* largest absolute difference */
    struct voxel_row point_sampled, point_exact; /* rows with one sample, at the point */
    bool has_means;                              /* the voxel's rows below exist; they may follow some time after the
                                                    windows */
    struct voxel_row voxel_sampled, voxel_exact; /* means over the voxel's points */
    bool is_part; /* the voxel's rows contain only the LORs of `pairs`, because all LORs would be too many; the windows
                     show these pairs */
    int64_t num_pairs;
    const int32_t *pairs; /* [num_pairs] ascending */
};

/* Purposes of operators. An operator is kept, with context and shaders, if the next request differs only in point and
 * windows. Backend cpu makes a new operator for each row. */
enum voxel_purpose {
    VOXEL_WINDOWS, /* draws windows, and samples elements unless backend compute is requested */
    VOXEL_SAMPLED, /* samples elements with backend compute */
    VOXEL_EXACT,   /* computes exact elements */
    VOXEL_NUM_PURPOSES
};

struct voxel {
    struct task_runner windows, means; /* `windows` runs the task for the windows and the point's rows, `means` the task
                                          for the voxel's rows. Callers may watch and cancel both runners. */

    /* the members below are private */
    struct cached_operator cached[VOXEL_NUM_PURPOSES];
    int64_t num_asked;          /* number of requests so far; also the number of the last one */
    int64_t means_for;          /* number of the request whose voxel rows have been requested */
    struct voxel_result result; /* results of both tasks combined */
};

struct voxel *voxel_create(const lr_log *log); /* NULL: out of memory */
void voxel_destroy(struct voxel *voxel);       /* NULL is allowed; stops the tasks and waits for their end */

/* Requests a result; the newest request replaces earlier ones. errors: LR_USAGE without a scanner, for a module that
 * does not exist, or for a point that is not finite; LR_FAILED if memory runs out. */
lr_status voxel_ask(struct voxel *voxel, const struct study_view *study, const struct voxel_request *request,
                    const lr_log *log);

/* Like task_runner_poll. Windows and the point's rows come first, then the voxel's rows. The state is JOB_RUNNING until
 * all of them exist. */
enum job_state voxel_poll(struct voxel *voxel, struct job_report *report);

/* The newest result; valid until the next poll; NULL = none yet. serial: grows with each result, and when the voxel's
 * rows arrive; may be NULL. */
const struct voxel_result *voxel_result(const struct voxel *voxel, int64_t *serial);

/* The values of a window's pixel. Elements that were not computed are NaN. */
struct voxel_pixel {
    int module, p, q;
    int other, r, s;       /* secondary module and crystal; -1: the line hits none */
    int64_t lor;           /* -1: no LOR, or out of coincidence */
    double weight;         /* weight of this line: its solid angle / 2 pi, times survival */
    double solid_angle_sr; /* solid angle, as seen from the point, of the part of the face that this line represents */
    double survival;       /* weight relative to the solid angle / 2 pi; NaN without a LOR, 1 without a mu-map */
    double distance_mm;    /* distance between the two hits; NaN if there is only one */
    double point_sampled, point_exact;
    double voxel_sampled, voxel_exact;
};

/* Finds the values of a pixel. number: the window's module. place: the pixel's column and row, counted along u and
 * along v. errors: LR_USAGE if the window or pixel does not exist. */
lr_status voxel_at(const struct voxel *voxel, int number, const int place[2], struct voxel_pixel *pixel);

/* --- windows without LORs --- */

/* The reason why a module has no window for a point, and a module that has one. */
struct voxel_gap {
    int better;    /* module whose window has the point's strongest LOR; -1: none */
    char why[240]; /* shown to the person; "" = the module has a window */
};

/* The row of the point: exact elements if they were computed, otherwise sampled ones. */
const struct voxel_row *voxel_best_row(const struct voxel_result *result);

struct voxel_gap voxel_gap_find(const struct voxel_result *result, const struct voxel_window *window);

/* --- copies of matrix rows --- */

/* A copy of a row; a struct of zeros is an empty one. */
struct row_copy {
    struct lr_owned_row row;
    int64_t *order; /* owned [row.count]: indices in order of falling probability; equal probabilities in order of
                       ascending index; NULL = not requested */
    double sum;
};

/* Copies a row into `copy`; serves as lr_row_sink; log may be NULL. */
struct row_copier {
    struct row_copy *copy;
    const lr_log *log;
    bool has_order;
};
lr_status row_copier_take(void *copier, const lr_row *row);

void row_copy_finish(struct row_copy *copy); /* a struct of zeros is allowed */

/* --- windows of primary modules as one picture: a single window, or all of them in a grid --- */

enum sheet_kind {
    SHEET_CRYSTALS = 0, /* false colours as in the paper */
    SHEET_WEIGHTS,
    SHEET_SAMPLED,
    SHEET_EXACT,
    SHEET_DIFFERENCE,
    SHEET_NUM_KINDS
};
extern const char *const sheet_names[SHEET_NUM_KINDS];

struct sheet {
    struct gl_texture *texture; /* RGBA8, row 0 at the bottom, so that v points up */
    int size[2];                /* texels */
    int tile[2], columns;       /* size of a window; the windows form a grid that begins at the upper left */
    int num_windows;
    double high; /* value at the end of the colour map; differences are shown from -high to high */
};

/* Draws the sheet again. A struct of zeros is an empty sheet; its owner destroys the texture. */
lr_status sheet_draw(struct sheet *sheet, struct gl_context *ctx, const struct voxel_result *result,
                     enum sheet_kind kind);

/* Finds the window and the pixel at a point of the sheet, 0 .. 1 from its left and top. Returns false if there is
 * none. */
bool sheet_pixel(const struct sheet *sheet, const double at[2], int *window, int place[2]);

/* Finds where the corner of a window's pixel lies on the sheet, in the coordinates of sheet_pixel. */
void sheet_corners(const struct sheet *sheet, int window, const double place[2], double at[2]);
