/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the host prepares of a view for gathers by strips. No CUDA in it. */
#ifndef LR_CUDA_DIRECT_STRIPS_H
#define LR_CUDA_DIRECT_STRIPS_H

#include "cuda_interop/direct_passes.h"
#include "direct/lattice.h"

/* All but the pass's pointers to the device. */
struct lr_cuda_strip_plan {
    lr_cuda_strips pass;
    lr_cuda_strip_step *steps; /* owned [first[num_slabs] + 1]: threads read one ahead */
    int32_t *first;            /* owned [num_slabs + 1] */
    int32_t (*tiles)[2];       /* owned [num_tiles] */
    int32_t (*entries)[4]; /* owned [num_entries + num_singles]: their offsets in mSR, -1 = none;
                                  those of several taps come first */
};

struct lr_cuda_strip_params {
    const struct lr_direct_shape *shape;
    const lr_cuda_layout *layout;
    int rows;       /* of mSRval */
    int room_bytes; /* of shared memory: blocks that would take more have their warps side by side.
                       0 = what leaves room for three on a multiprocessor */
    const lr_log *log;
};

/* errors: LR_FAILED; *plan holds nothing then. */
lr_status lr_cuda_strip_plan_init(struct lr_cuda_strip_plan *plan,
                                  const struct lr_cuda_strip_params *params);
void lr_cuda_strip_plan_finish(struct lr_cuda_strip_plan *plan);

#endif
