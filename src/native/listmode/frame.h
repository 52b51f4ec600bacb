/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images slice by slice across an axis. */
#ifndef LR_NATIVE_LISTMODE_FRAME_H
#define LR_NATIVE_LISTMODE_FRAME_H

#include "native/listmode/kernels.h"

void lr_native_frame_init(struct lr_native_frame *frame, const struct lr_listmode_model *model, int axis);

/* Numbers of a frame, borders included. */
static inline int64_t lr_native_frame_count(const struct lr_native_frame *frame)
{
    return frame->slices * frame->plane;
}

/* An image of the grid and numbers of a frame; the borders of `numbers` are left as they are. */
struct lr_native_framing {
    const struct lr_native_frame *frame;
    const lr_grid *grid;
    int threads;
};
void lr_native_frame_fill(const struct lr_native_framing *framing, const float *image, float *numbers);

/* Adds numbers to a total in the grid's order. */
void lr_native_frame_add(const struct lr_native_framing *framing, const double *numbers, double *total);

/* errors: LR_FAILED without memory. Of another kernel than tubes it stays zero. */
lr_status lr_native_tube_init(struct lr_native_tube *tube, const struct lr_listmode_model *model, const lr_log *log);

/* How far from a crossing the shares of any line may be, in voxels along an axis. */
double lr_native_listmode_reach(const struct lr_listmode_model *model, int axis);

#endif
