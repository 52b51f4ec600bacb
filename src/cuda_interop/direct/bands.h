/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the host prepares of a view for gathers by bands. No CUDA in it. */
#ifndef LR_CUDA_DIRECT_BANDS_H
#define LR_CUDA_DIRECT_BANDS_H

#include "cuda_interop/direct/passes.h"
#include "direct/lattice.h"

/* Blocks of a pass that has the device for itself, or goes on beside others. */
enum { LR_CUDA_BANDS_ALONE, LR_CUDA_BANDS_BESIDE, LR_CUDA_BANDS_SHAPES };

/* All but the passes' pointers to the device. */
struct lr_cuda_band_plan {
    lr_cuda_bands passes[LR_CUDA_BANDS_SHAPES];
    lr_cuda_band_step *steps;         /* owned [num_steps + 3] */
    int32_t (*lists)[4], (*cuts)[2];  /* owned, as in lr_cuda_bands, these five */
    int32_t (*tiles)[2], (*bases)[4]; /* tiles: of all shapes, one after the other */
    int32_t (*spots)[LR_CUDA_BAND_ROWS][2];
    int32_t (*places)[LR_CUDA_BAND_ROWS][2]; /* owned, as in lr_cuda_band_fill, these three */
    int32_t (*ranges)[2], *offsets;
    int32_t num_tiles, num_steps, num_places; /* places: of the list of offsets */
};

/* rows: of mSRval. errors: LR_FAILED; *plan holds nothing then. */
lr_status lr_cuda_band_plan_init(struct lr_cuda_band_plan *plan, const struct lr_direct_shape *shape,
                                 const lr_cuda_layout *layout, int rows, const lr_log *log);
void lr_cuda_band_plan_finish(struct lr_cuda_band_plan *plan);

/* Whether a block's shared memory has the room, slabs are not too large for copies and tables not too
 * large. */
bool lr_cuda_band_plan_fits(const struct lr_cuda_band_plan *plan, int64_t room_bytes);

/* Bytes of a sorted source: the numbers, behind which the units lie. */
int64_t lr_cuda_band_source_bytes(const lr_cuda_bands *pass);
lr_cuda_band_source lr_cuda_band_source_at(const lr_cuda_bands *pass, void *memory);

#endif
