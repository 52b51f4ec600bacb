/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Look-up tables of the family `direct` in the device's memory, as the passes of each variant take
 * them. Those of several views are made together, and kept while there is room. */
#ifndef LR_CUDA_DIRECT_TABLES_H
#define LR_CUDA_DIRECT_TABLES_H

#include "cuda_interop/direct/passes.h"
#include "cuda_interop/direct/plans.h"
#include "render/direct/direct.h"

#include <lr/log.h>

/* Blocks of the device's memory, and what is copied into them. Asking CUDA for memory takes longer than
 * filling it, so that the last block that was returned waits for the next one who wants as much. */

/* Zero is none. */
struct lr_cuda_block {
    void *memory; /* owned */
    int64_t bytes;
};

/* Zero is one without any. */
struct lr_cuda_blocks {
    struct lr_cuda_block spare;   /* of the device */
    struct lr_cuda_block staging; /* of the host, for copies to the device */
};
/* --- tables --- */

/* The tables of a view; none until `is_there`. */
struct lr_cuda_tables {
    bool is_there;
    lr_cuda_gather gather;
    lr_cuda_bands bands[2][LR_CUDA_BANDS_SHAPES]; /* back, forward; no tiles: by columns */
    lr_cuda_columns columns[2];                   /* back, forward */
    lr_cuda_cloud cloud;
    uint16_t *map;
    struct lr_cuda_group *group;   /* whose memory they lie in */
    struct lr_cuda_making *making; /* only while they are made */
};

/* The tables of all views. */
struct lr_cuda_table_set {
    struct lr_direct_compute *compute; /* borrowed */
    struct lr_cuda_tables *views;      /* owned [num_views] */
    int64_t bytes, room_bytes;         /* that are taken, and that may be, beyond one view's */
    int64_t view_bytes;                /* of a view made last, about; 0: not known */
    bool is_tight;                     /* there has not been room for all that was asked for */
    struct lr_cuda_blocks blocks;
};

/* The CUDA device is current, here and below. errors: LR_FAILED; *set may be finished then. */
lr_status lr_cuda_table_set_init(struct lr_cuda_table_set *set, struct lr_direct_compute *compute);
void lr_cuda_table_set_finish(struct lr_cuda_table_set *set);

/* Makes the tables of views[0], and along with them those of as many of the views after it as there is
 * room for; those that are there stay, unless there is no room for views[0]. Where that one is there,
 * nothing is made. errors: LR_FAILED, and as
 * lr_direct_shape_init; none are made then. */
lr_status lr_cuda_make_tables(struct lr_cuda_table_set *set, const int *views, int num_views);

/* The tables of a view. They live until those of another view are asked for, longer if there is room. If
 * they must be made, the next views' are made at the same time, one view per thread, as an algorithm will
 * soon need them. errors: NULL, logged. */
const struct lr_cuda_tables *lr_cuda_open_tables(struct lr_cuda_table_set *set, int view);

/* Forgets the tables of a view. */
void lr_cuda_forget_tables(struct lr_cuda_table_set *set, int view);

#endif
