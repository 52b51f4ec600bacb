/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Device memory that holds the lists of several views, one after another. Lists made by the host come first, so that
 * one copy transfers all of them. Lists that the device fills come after them. Two passes visit the same lists: the
 * first counts their bytes, the second places them. No CUDA in it. */
#ifndef LR_CUDA_INTEROP_DIRECT_MEMORY_H
#define LR_CUDA_INTEROP_DIRECT_MEMORY_H

#include "cuda_interop/direct/plans.h"
#include "cuda_interop/direct/tables.h"

#include <stdint.h>

/* Zero is valid: bytes are only counted. */
struct lr_cuda_memory {
    char *device;        /* borrowed, [copied_room + filled_room]; aligned as lists are */
    char *host;          /* borrowed, [copied_room]: what is copied to the device */
    int64_t copied_room; /* sizes of whole lists, as an earlier pass counted them; also below */
    int64_t filled_room;
    int64_t copied_bytes; /* bytes of lists so far */
    int64_t filled_bytes;
};

/* The address of a list on the device; NULL if the lists differ from those counted. data: the list's content; NULL =
 * the device fills it. While bytes are counted, compare the address only with NULL. */
void *lr_cuda_place(struct lr_cuda_memory *memory, int64_t bytes, const void *data);

/* Bytes of all lists so far. */
int64_t lr_cuda_memory_bytes(const struct lr_cuda_memory *memory);

/* --- the sources of a view's LORmap and mSRval --- */

/* Places the lists. errors: LR_FAILED, not logged: the lists are not those that were counted. */
lr_status lr_cuda_place_values(struct lr_cuda_memory *memory, const struct lr_cuda_view_plan *plan,
                               const lr_cuda_layout *layout, lr_cuda_view_fill *fill);

/* Sizes that cover the launches of all of these views. */
lr_cuda_fill_sizes lr_cuda_fill_sizes_of(const lr_cuda_view_fill *views, int num_views);

/* --- the lists of gathers by bands --- */

/* Places a view's lists, and the tables that the device fills in, which it adds to *fill. Call it after
 * lr_cuda_place_values. bands: passes for back projection, then for forward projection. errors: as of
 * lr_cuda_place_values. */
lr_status lr_cuda_place_bands(struct lr_cuda_memory *memory, const struct lr_cuda_band_plan *plan,
                              lr_cuda_view_fill *fill, lr_cuda_bands bands[2][LR_CUDA_BANDS_SHAPES]);

/* --- the lists of columns and clouds --- */

/* Places the lists of a view, and sets its passes in *tables, where LORmap and mSRval are placed already. *indices: the
 * indices of the steps' taps, from which the device fills in weights. errors, here and below: LR_FAILED, not logged:
 * the lists are not those that were counted. */
lr_status lr_cuda_place_columns(struct lr_cuda_memory *memory, const struct lr_cuda_column_plan *plan,
                                struct lr_cuda_tables *tables, const int32_t **indices);

lr_status lr_cuda_place_cloud(struct lr_cuda_memory *memory, const struct lr_cuda_cloud_tables *host,
                              struct lr_cuda_tables *tables);

#endif
