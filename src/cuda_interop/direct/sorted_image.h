/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sources of gathers by bands, sorted along lattices, in memory that is kept: one after the other, or an
 * image that is projected to view after view, which is sorted once for all views of a lattice as long
 * as it stays the same. What is sorted is alike for all views of a lattice. */
#ifndef LR_CUDA_SORTED_IMAGE_H
#define LR_CUDA_SORTED_IMAGE_H

#include "cuda_interop/direct/passes.h"
#include "direct/lattice.h"

/* Zero is none. */
struct lr_cuda_room {
    void *memory; /* owned, of the device */
    int64_t bytes;
    struct lr_cuda_sorted_lattice {
        int32_t next[2], across[2];
    } lattice;     /* that it was sorted along last, and */
    bool is_clear; /* what lies beyond the grid's columns is zero; false: never sorted */
};

/* Makes room for as many bytes, unless it is there. Waits then for all that was launched: it may use the former memory.
 * errors: LR_FAILED, here and below. */
lr_status lr_cuda_room_make(struct lr_cuda_room *room, int64_t bytes, const lr_log *log);
void lr_cuda_room_finish(struct lr_cuda_room *room);

/* Sorts images->source into a room, on images->stream, and sets images->sorted. */
lr_status lr_cuda_sort_source(const lr_cuda_bands *pass, struct lr_cuda_room *room, lr_cuda_images *images,
                              const lr_log *log);

/* An image as sorted along lattices. Zero is none. */
struct lr_cuda_sorted_image {
    uint64_t number; /* of the image, as lr_cuda_taking has it; 0: of none */
    struct lr_cuda_sorted_copy {
        struct lr_cuda_room room;
        struct lr_cuda_sorted_lattice lattice;
        bool is_there;
    } copies[LR_LATTICE_CANDIDATES];
};
void lr_cuda_sorted_image_finish(struct lr_cuda_sorted_image *sorted);

/* Makes room for a copy along the pass's lattice. */
lr_status lr_cuda_sorted_image_make_room(struct lr_cuda_sorted_image *sorted, const lr_cuda_bands *pass,
                                         const lr_log *log);

/* Sorts the image that has this number, unless that has been done for the pass's lattice, and sets
 * images->sorted. On images->stream, which has to come after the one that it was sorted on. */
lr_status lr_cuda_sort_image(struct lr_cuda_sorted_image *sorted, const lr_cuda_bands *pass, uint64_t number,
                             lr_cuda_images *images, const lr_log *log);

/* Called whenever that image changes. */
void lr_cuda_forget_sorted(struct lr_cuda_sorted_image *sorted, uint64_t number);

#endif
