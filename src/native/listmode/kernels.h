/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The loops that take the time in list mode, compiled for several instruction sets, which give the same
 * bits. Positions are in double, shares and products in float, sums in double. */
#ifndef LR_NATIVE_LISTMODE_KERNELS_H
#define LR_NATIVE_LISTMODE_KERNELS_H

#include "listmode/backend.h"
#include "listmode/line.h"
#include "listmode/places.h"
#include "listmode/rows.h"

/* Shares of a slice come in multiples of this. */
enum { LR_NATIVE_LISTMODE_LANES = 8 };

/* Voxels by which crossings may be farther out than their shares reach into the image. */
#define LR_NATIVE_LISTMODE_SLACK 0.01

/* The grid's slices across an axis, slice by slice and row by row, each with a border of zeros in which
 * kernels may read and add: voxel (u, v) of slice s is at s plane + (v + border[1]) row + u + border[0]. */
struct lr_native_frame {
    int axis, across[2];
    int size[2]; /* voxels along across */
    int slices;
    int border[2]; /* before the first voxel; behind the last there is more */
    int64_t row, plane;
};

/* What kernels need of a tube. */
struct lr_native_tube {
    float rim;        /* the square of the largest distance */
    float fall;       /* of shares between half the width and the rim, per mm^2 */
    float scale;      /* entries of the table per mm */
    int last;         /* entry at half the width; one more has the same value */
    float *table;     /* owned */
    int64_t capacity; /* shares of a slice at most, filled up to lanes */
};

/* Arranged events of one group. */
struct lr_native_listmode_job {
    const struct lr_listmode_model *model;
    const struct lr_listmode_events *events;
    const struct lr_listmode_places *places;
    const struct lr_native_frame *frame;
    const struct lr_native_tube *tube;
    const float *image; /* forward: of the frame */
    double *sums;       /* back: likewise */
    float *to;          /* forward */
    const float *from;  /* back; NULL: 1 */
};

struct lr_native_listmode_kernels {
    const char *name;
    /* Events range[0] .. range[1] - 1. memory: [5][tube->capacity], to work with. */
    void (*forward)(const struct lr_native_listmode_job *job, const int64_t range[2],
                    float *memory);
    /* Of their elements those in slices slab[0] .. slab[1] - 1. */
    void (*back)(const struct lr_native_listmode_job *job, const int64_t range[2],
                 const int slab[2], float *memory);
    /* Visits the elements of event k, slice by slice. */
    void (*list)(const struct lr_native_listmode_job *job, int64_t k,
                 const struct lr_listmode_visitor *visitor, float *memory);
};

extern const struct lr_native_listmode_kernels lr_native_listmode_baseline;
extern const struct lr_native_listmode_kernels
    lr_native_listmode_avx2; /* where LR_NATIVE_AVX2 is */

/* Those of the exact kernel, in double; they need no memory. */
extern const struct lr_native_listmode_kernels lr_native_listmode_exact;

/* Those that this processor runs, the best first; NULL behind the last. */
const struct lr_native_listmode_kernels *lr_native_listmode_kernels_at(int index);

#endif
