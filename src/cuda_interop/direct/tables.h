/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Look-up tables of the family `direct` in device memory, for the passes of each variant. Tables of several views
 * are made together, and kept until their memory is needed. */
#pragma once

#include "cuda_interop/direct/passes.h"
#include "cuda_interop/direct/plans.h"
#include "direct/compute/direct.h"

#include <lr/log.h>
#include <stdint.h>

/* Blocks of device memory, and their staging memory. A CUDA allocation takes longer than filling the block. The largest
 * block that was returned is therefore kept for a later request of about its size. */

/* A struct of zeros has no memory. */
struct lr_cuda_block {
    void *memory; /* owned */
    int64_t bytes;
};

/* Frees device memory. The block is empty afterwards. */
void lr_cuda_block_free(struct lr_cuda_block *block);

/* A struct of zeros is valid: no blocks. */
struct lr_cuda_blocks {
    struct lr_cuda_block spare;   /* device memory */
    struct lr_cuda_block staging; /* host memory, for copies to the device */
};

/* --- tables --- */

/* The tables of a view, which exist once `is_there` is set. */
struct lr_cuda_tables {
    bool is_there;
    lr_cuda_gather gather;
    lr_cuda_bands bands[2][LR_CUDA_BANDS_SHAPES]; /* back, forward; a view whose bands have no tiles has columns */
    lr_cuda_columns columns[2];                   /* back, forward */
    lr_cuda_cloud cloud;
    uint16_t *map;
    lr_cuda_table_textures textures; /* copies of LORmap and the cloud, if images are in textures */
    struct lr_cuda_group *group;     /* group whose memory holds the tables */
    struct lr_cuda_making *making;   /* NULL, except while the tables are made */
};

/* The tables of all views. */
struct lr_cuda_table_set {
    struct lr_direct_compute *compute; /* borrowed */
    struct lr_cuda_tables *views;      /* owned [num_views] */
    int64_t bytes, room_bytes;         /* bytes of all tables, and their limit, which one view's tables may exceed */
    int64_t view_bytes;                /* approximate bytes of the last view made; 0 = not known */
    bool is_tight;                     /* memory did not suffice for all requested tables */
    struct lr_cuda_blocks blocks;
};

/* The CUDA device is current, here and below. errors: LR_FAILED; *set may then be finished. */
lr_status lr_cuda_table_set_init(struct lr_cuda_table_set *set, struct lr_direct_compute *compute);
void lr_cuda_table_set_finish(struct lr_cuda_table_set *set);

/* Makes the tables of views[0], and of as many later views as fit. Existing tables stay if memory suffices for them and
 * for the tables of views[0]. If views[0] has tables already, no tables are made. errors: LR_FAILED, and as
 * lr_direct_shape_init; no tables are made then. */
lr_status lr_cuda_make_tables(struct lr_cuda_table_set *set, const int *views, int num_views);

/* The tables of a view. They stay valid at least until another view's tables are requested. If the tables do not exist
 * yet, those of the next views are made at the same time, one view per thread, because an algorithm will soon need
 * them. errors: NULL, logged. */
const struct lr_cuda_tables *lr_cuda_open_tables(struct lr_cuda_table_set *set, int view);

/* Forgets the tables of a view. */
void lr_cuda_forget_tables(struct lr_cuda_table_set *set, int view);

/* --- the lists of several views in device memory --- */

/* Allocation of the lists of several views in one piece of memory. Lists made by the host come first, so that one
 * copy transfers all of them. Lists that the device fills come after them. Two passes visit the same lists: the
 * first counts their bytes, the second assigns addresses. These functions use no CUDA (plans.c). */

/* A struct of zeros is valid; bytes are then only counted. */
struct lr_cuda_memory {
    char *device;        /* borrowed, [copied_room + filled_room]; aligned as lists are */
    char *host;          /* borrowed, [copied_room]: the bytes to copy to the device */
    int64_t copied_room; /* bytes of all copied lists, as the counting pass found them */
    int64_t filled_room;
    int64_t copied_bytes; /* bytes of the copied lists so far; filled_bytes: of the filled lists */
    int64_t filled_bytes;
};

/* The address of a list on the device; NULL if the lists are not those that were counted. data: the list's content;
 * NULL = the device fills it. While bytes are counted, the address may only be compared with NULL. */
void *lr_cuda_place(struct lr_cuda_memory *memory, int64_t bytes, const void *data);

/* --- the sources of a view's LORmap and mSRval --- */

/* Assigns addresses to the lists. errors: LR_FAILED, not logged: the lists differ from the counted ones. */
lr_status lr_cuda_place_values(struct lr_cuda_memory *memory, const struct lr_cuda_view_plan *plan,
                               const lr_cuda_layout *layout, lr_cuda_view_fill *fill);

/* Sizes of one launch that covers all of these views. */
lr_cuda_fill_sizes lr_cuda_fill_sizes_of(const lr_cuda_view_fill *views, int num_views);

/* --- the lists of gathers by bands --- */

/* Assigns addresses to a view's lists and to the tables that the device fills in, and adds these tables to *fill. Call
 * this function after lr_cuda_place_values. bands: passes for back projection, then for forward projection. errors: as
 * lr_cuda_place_values. */
lr_status lr_cuda_place_bands(struct lr_cuda_memory *memory, const struct lr_cuda_band_plan *plan,
                              lr_cuda_view_fill *fill, lr_cuda_bands bands[2][LR_CUDA_BANDS_SHAPES]);
