/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Look-up tables of the family `direct` in device memory, for the passes of each variant. Tables of several views are
 * made together, and kept while there is room. */
#ifndef LR_CUDA_INTEROP_DIRECT_TABLES_H
#define LR_CUDA_INTEROP_DIRECT_TABLES_H

#include "cuda_interop/direct/passes.h"
#include "cuda_interop/direct/plans.h"
#include "direct/compute/direct.h"

#include <lr/log.h>

/* Blocks of device memory, and their staging memory. A CUDA allocation takes longer than filling the block. The last
 * returned block is therefore kept for the next request of about its size. */

/* Zero is none. */
struct lr_cuda_block {
    void *memory; /* owned */
    int64_t bytes;
};

/* Zero is valid: no blocks. */
struct lr_cuda_blocks {
    struct lr_cuda_block spare;   /* device memory */
    struct lr_cuda_block staging; /* host memory, for copies to the device */
};
/* --- tables --- */

/* The tables of a view; none until `is_there`. */
struct lr_cuda_tables {
    bool is_there;
    lr_cuda_gather gather;
    lr_cuda_bands bands[2][LR_CUDA_BANDS_SHAPES]; /* back, forward; without tiles, the view has columns */
    lr_cuda_columns columns[2];                   /* back, forward */
    lr_cuda_cloud cloud;
    uint16_t *map;
    struct lr_cuda_group *group;   /* group whose memory holds the tables */
    struct lr_cuda_making *making; /* NULL, except while the tables are made */
};

/* The tables of all views. */
struct lr_cuda_table_set {
    struct lr_direct_compute *compute; /* borrowed */
    struct lr_cuda_tables *views;      /* owned [num_views] */
    int64_t bytes, room_bytes;         /* bytes taken, and bytes that may be taken, beyond one view's */
    int64_t view_bytes;                /* approximate bytes of the last view made; 0 = not known */
    bool is_tight;                     /* there was no room for all requested tables */
    struct lr_cuda_blocks blocks;
};

/* The CUDA device is current, here and below. errors: LR_FAILED; *set may be finished then. */
lr_status lr_cuda_table_set_init(struct lr_cuda_table_set *set, struct lr_direct_compute *compute);
void lr_cuda_table_set_finish(struct lr_cuda_table_set *set);

/* Makes the tables of views[0], and of as many later views as fit. Existing tables stay, unless there is no room for
 * views[0]. If views[0] has tables, none are made. errors: LR_FAILED, and as lr_direct_shape_init; then none are
 * made. */
lr_status lr_cuda_make_tables(struct lr_cuda_table_set *set, const int *views, int num_views);

/* The tables of a view. They live until another view's tables are requested, or longer if there is room. If they
 * must be made, the next views' are made too, one view per thread: an algorithm will soon need them. errors: NULL,
 * logged. */
const struct lr_cuda_tables *lr_cuda_open_tables(struct lr_cuda_table_set *set, int view);

/* Forgets the tables of a view. */
void lr_cuda_forget_tables(struct lr_cuda_table_set *set, int view);

#endif
