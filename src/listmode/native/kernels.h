/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The time-critical loops of list mode, compiled for several instruction sets. All versions give the same bits.
 * Positions are in double, shares and products in float, sums in double. */
#pragma once

#include "kernels/times.glsl"
#include "listmode/backend.h"
#include "listmode/line.h"
#include "listmode/rows.h"

/* The kernels work on this many shares at once. The number of shares of a slice is a multiple of this number. */
enum { LR_NATIVE_LISTMODE_LANES = 8 };

/* A tolerance in voxels. A crossing counts as inside if its distance from the image is at most the reach of its shares
 * plus this tolerance. */
#define LR_NATIVE_LISTMODE_SLACK 0.01

/* --- time of flight --- */

/* Let N(t) be the integral of the normal distribution from 0 to t. Returns the integral of N from 0 to z, divided by
 * z^2. y: z^2, with 0 <= z <= 3. The function is the polynomial of normal_over_z, integrated term by term. */
static inline double lr_native_normal_over_square(double y)
{
    double sum = 3.3023822445502444e-14;
    sum = sum * y - 2.4675640713982128e-12;
    sum = sum * y + 9.1494240832632331e-11;
    sum = sum * y - 2.316453606853464e-09;
    sum = sum * y + 4.6243166821051607e-08;
    sum = sum * y - 7.8250962200532041e-07;
    sum = sum * y + 1.1533315099385992e-05;
    sum = sum * y - 0.0001484020856062772;
    sum = sum * y + 0.0016622489402527245;
    sum = sum * y - 0.016622591481201768;
    return sum * y + 0.19947113993816903;
}

/* Returns the integral of the normal distribution from 0 to z. It is constant beyond the cut. */
static inline double lr_native_normal(double z)
{
    const double most = z < LR_LISTMODE_CUT ? z : LR_LISTMODE_CUT;
    const double held = most > -LR_LISTMODE_CUT ? most : -LR_LISTMODE_CUT;
    return held * normal_over_z(held * held);
}

/* Returns the integral of lr_native_normal from 0 to z. */
static inline double lr_native_normal_sum(double z)
{
    const double size = z < 0 ? -z : z, held = size < LR_LISTMODE_CUT ? size : LR_LISTMODE_CUT;
    return held * held * lr_native_normal_over_square(held * held) + 0.5 * LR_LISTMODE_HELD * (size - held);
}

/* --- kernels --- */

/* The layout of an image that is cut into slices across an axis. Each slice has a border of zeros, where kernels can
 * read and add without a test. Voxel (u, v) of slice s is at index s * plane + (v + border[1]) * row + u +
 * border[0]. */
struct lr_native_frame {
    int axis, across[2];
    int size[2]; /* numbers of voxels along the two axes across the slices' axis */
    int slices;
    int border[2]; /* width of the border before the first voxel; the border after the last voxel is wider */
    int64_t row, plane;
};

/* A tube in the form that the kernels read. */
struct lr_native_tube {
    float rim;        /* squared distance at which the shares are 0 */
    float fall;       /* decrease of shares per mm^2 of squared distance, from half the width to the rim */
    float scale;      /* table entries per mm */
    int last;         /* entry at half the width; the next entry has the same value */
    float *table;     /* owned, [last + 2] */
    int64_t capacity; /* largest number of shares of a slice, rounded up to full lanes */
};

/* Arranged events of one group, and the images and values of their projection. */
struct lr_native_listmode_job {
    const struct lr_listmode_model *model;
    const struct lr_listmode_events *events;
    const struct lr_listmode_places *places;
    const struct lr_native_frame *frame;
    const struct lr_native_tube *tube;
    const float *image; /* for forward: image in the frame */
    double *sums;       /* for back: sums in the frame */
    float *to;          /* for forward: receives the values */
    const float *from;  /* values, for back; NULL = all values are 1 */
};

struct lr_native_listmode_kernels {
    const char *name;
    /* Projects events range[0] .. range[1] - 1. memory: [5][tube->capacity] working memory. */
    void (*forward)(const struct lr_native_listmode_job *job, const int64_t range[2], float *memory);
    /* Adds the elements of events range[0] .. range[1] - 1 to the sums, but only in slices slab[0] .. slab[1] - 1. */
    void (*back)(const struct lr_native_listmode_job *job, const int64_t range[2], const int slab[2], float *memory);
    /* Visits the elements of event k, slice by slice. */
    void (*list)(const struct lr_native_listmode_job *job, int64_t k, const struct lr_listmode_visitor *visitor,
                 float *memory);
};

extern const struct lr_native_listmode_kernels lr_native_listmode_baseline;
extern const struct lr_native_listmode_kernels lr_native_listmode_avx2; /* if LR_NATIVE_AVX2 is defined */

/* The exact kernel in double. It needs no working memory. */
extern const struct lr_native_listmode_kernels lr_native_listmode_exact;

/* --- the backend --- */

struct lr_native_listmode {
    struct lr_listmode_backend_params params;
    const struct lr_native_listmode_kernels *kernels;
    struct lr_native_tube tube;
    float *memory; /* [threads][5][tube.capacity] working memory */
};

/* Returns one of the kernels that this processor can run, fastest first; NULL after the last one. */
const struct lr_native_listmode_kernels *lr_native_listmode_kernels_at(int index);
