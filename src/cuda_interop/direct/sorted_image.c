/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/sorted_image.h"

#include "base/log.h"
#include "cuda_interop/direct/plans.h"
#include "cuda_interop/lend.h"

#include <cuda_runtime_api.h>
#include <string.h>

lr_status lr_cuda_room_make(struct lr_cuda_room *room, int64_t bytes, const lr_log *log)
{
    if (room->bytes >= bytes) return LR_OK;
    cudaDeviceSynchronize();
    lr_cuda_room_finish(room);
    LR_TRY(lr_cuda_check((int)cudaMalloc(&room->memory, (size_t)bytes), "a sorted image", log));
    room->bytes = bytes;
    return LR_OK;
}

void lr_cuda_room_finish(struct lr_cuda_room *room)
{
    if (room->memory != NULL) /* there may be no device to ask */
        cudaFree(room->memory);
    *room = (struct lr_cuda_room){0};
}

static struct lr_cuda_sorted_lattice lattice_of(const lr_cuda_bands *pass)
{
    struct lr_cuda_sorted_lattice lattice;
    memcpy(lattice.next, pass->next, sizeof(lattice.next));
    memcpy(lattice.across, pass->across, sizeof(lattice.across));
    return lattice;
}

static bool is_along(const struct lr_cuda_sorted_lattice *lattice, const lr_cuda_bands *pass)
{
    return memcmp(lattice->next, pass->next, sizeof(pass->next)) == 0 &&
           memcmp(lattice->across, pass->across, sizeof(pass->across)) == 0;
}

/* Views along a lattice leave out the same places of a room, which then stay zero. */
lr_status lr_cuda_sort_source(const lr_cuda_bands *pass, struct lr_cuda_room *room, lr_cuda_images *images,
                              const lr_log *log)
{
    LR_TRY(lr_cuda_room_make(room, lr_cuda_band_source_bytes(pass), log));
    images->sorted = lr_cuda_band_source_at(pass, room->memory);
    images->sorted.is_clear = room->is_clear && is_along(&room->lattice, pass);
    room->is_clear = false;
    LR_TRY(lr_cuda_check(lr_cuda_launch_sort(pass, images), "sorting an image", log));
    room->lattice = lattice_of(pass);
    room->is_clear = true;
    return LR_OK;
}

void lr_cuda_sorted_image_finish(struct lr_cuda_sorted_image *sorted)
{
    for (int k = 0; k < LR_LATTICE_CANDIDATES; k++) lr_cuda_room_finish(&sorted->copies[k].room);
    *sorted = (struct lr_cuda_sorted_image){0};
}

/* The copy along the pass's lattice, or else an unused one: there are as many as lattices. */
static struct lr_cuda_sorted_copy *find_copy(struct lr_cuda_sorted_image *sorted, const lr_cuda_bands *pass)
{
    struct lr_cuda_sorted_copy *copy = sorted->copies;
    struct lr_cuda_sorted_copy *const last = sorted->copies + LR_LATTICE_CANDIDATES - 1;
    while (copy < last && copy->room.memory != NULL && !is_along(&copy->lattice, pass)) copy++;
    return copy;
}

lr_status lr_cuda_sorted_image_make_room(struct lr_cuda_sorted_image *sorted, const lr_cuda_bands *pass,
                                         const lr_log *log)
{
    struct lr_cuda_sorted_copy *copy = find_copy(sorted, pass);
    if (!is_along(&copy->lattice, pass)) {
        copy->is_there = false;
        copy->lattice = lattice_of(pass);
    }
    return lr_cuda_room_make(&copy->room, lr_cuda_band_source_bytes(pass), log);
}

lr_status lr_cuda_sort_image(struct lr_cuda_sorted_image *sorted, const lr_cuda_bands *pass, uint64_t number,
                             lr_cuda_images *images, const lr_log *log)
{
    LR_TRY(lr_cuda_sorted_image_make_room(sorted, pass, log));
    struct lr_cuda_sorted_copy *copy = find_copy(sorted, pass);
    if (number == 0 || sorted->number != number) {
        for (int k = 0; k < LR_LATTICE_CANDIDATES; k++) sorted->copies[k].is_there = false;
        sorted->number = number;
    }
    if (copy->is_there) {
        images->sorted = lr_cuda_band_source_at(pass, copy->room.memory);
        return LR_OK;
    }
    LR_TRY(lr_cuda_sort_source(pass, &copy->room, images, log));
    copy->is_there = true;
    return LR_OK;
}

void lr_cuda_forget_sorted(struct lr_cuda_sorted_image *sorted, uint64_t number)
{
    if (sorted->number == number) sorted->number = 0;
}
