/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the host prepares of a view for gathers by strips. No CUDA in it. */
#ifndef LR_CUDA_DIRECT_STRIPS_H
#define LR_CUDA_DIRECT_STRIPS_H

#include "cuda_interop/direct/passes.h"
#include "direct/lattice.h"

/* Blocks for a projection by itself: as many as there may be; and for one of several that go on at the
 * same time: those that read the least. */
enum { LR_CUDA_STRIPS_ALONE, LR_CUDA_STRIPS_BESIDE, LR_CUDA_STRIPS_SHAPES };

/* All but the passes' pointers to the device. */
struct lr_cuda_strip_plan {
    lr_cuda_strips passes[LR_CUDA_STRIPS_SHAPES];
    int32_t (*tiles[LR_CUDA_STRIPS_SHAPES])[2]; /* owned [passes[].num_tiles] */
    lr_cuda_strip_step *steps; /* owned [num_steps]; weights are filled in on the device */
    lr_cuda_slab *slabs;       /* owned [num_slabs] */
    int32_t (*offsets)[LR_CUDA_OUTPUTS][4]; /* owned, as in lr_cuda_strip_fill, these four */
    float *factors;
    int32_t *columns, *peaks;
    int32_t num_steps, num_slabs, num_offsets, num_columns;
};

struct lr_cuda_strip_params {
    const struct lr_direct_shape *shape;
    const lr_cuda_layout *layout;
    int rows;          /* of mSRval */
    int sides, splits; /* of all blocks: 1, 2 or 4, together up to 4; 0 = what is best */
    const lr_log *log;
};

/* errors: LR_FAILED; *plan holds nothing then. */
lr_status lr_cuda_strip_plan_init(struct lr_cuda_strip_plan *plan,
                                  const struct lr_cuda_strip_params *params);
/* Whether a block's shared memory has the room, and slabs are not too large for copies. */
bool lr_cuda_strip_plan_fits(const struct lr_cuda_strip_plan *plan, int64_t room_bytes);

void lr_cuda_strip_plan_finish(struct lr_cuda_strip_plan *plan);

#endif
