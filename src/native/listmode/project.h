/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A projection of list mode under way, axis by axis. */
#ifndef LR_NATIVE_LISTMODE_PROJECT_H
#define LR_NATIVE_LISTMODE_PROJECT_H

#include "native/listmode/frame.h"

struct lr_native_listmode {
    struct lr_listmode_backend_params params;
    const struct lr_native_listmode_kernels *kernels;
    struct lr_native_tube tube;
    float *memory; /* [threads][5][tube.capacity] to work with */
};

/* Arranged events of one group, some at a time. */
struct lr_native_listmode_chunk {
    const struct lr_native_listmode *native;
    const struct lr_native_listmode_job *job;
    int64_t begin, end;
    bool has_tof;
};

static inline float *lr_native_listmode_memory(const struct lr_native_listmode *native, int worker)
{
    return native->memory + worker * 5 * native->tube.capacity;
}

/* part NULL: all events. values NULL: 1. errors: LR_FAILED without memory, LR_CANCELLED. */
lr_status lr_native_listmode_forward(const struct lr_native_listmode *native, const lr_selection *part,
                                     const float *image, float *values);
lr_status lr_native_listmode_back(const struct lr_native_listmode *native, const lr_selection *part,
                                  const float *values, float *image);

/* errors: as lr_listmode_rows. */
lr_status lr_native_listmode_rows(const struct lr_native_listmode *native, const struct lr_rows *wanted,
                                  const lr_row_sink *sink);

/* Adds the elements of a chunk to job->sums, slab of slices by slab: each voxel meets the events in order. */
void lr_native_listmode_back_slabs(const struct lr_native_listmode_chunk *chunk);

#endif
