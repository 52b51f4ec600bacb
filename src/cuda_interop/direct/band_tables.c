/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/band_tables.h"

#include "base/log.h"

enum { NUMBER = sizeof(int32_t) };

/* What blocks of all shapes read, both ways. */
static lr_status place_lists(struct lr_cuda_memory *memory, const struct lr_cuda_band_plan *plan, lr_cuda_bands *pass)
{
    const int64_t steps = plan->num_steps + 2;
    pass->steps = lr_cuda_place(memory, (steps + 1) * (int64_t)sizeof(*plan->steps), plan->steps);
    pass->spots = lr_cuda_place(memory, steps * (int64_t)sizeof(*plan->spots), plan->spots);
    pass->lists = lr_cuda_place(memory, pass->num_lists * 4 * NUMBER, plan->lists);
    pass->cuts = lr_cuda_place(memory, pass->num_lists * pass->num_cuts * 2 * NUMBER, plan->cuts);
    pass->tiles = lr_cuda_place(memory, plan->num_tiles * 2 * NUMBER, plan->tiles);
    pass->bases = lr_cuda_place(memory, pass->num_lattice_rows * 4 * NUMBER, plan->bases);
    return pass->steps && pass->spots && pass->lists && pass->cuts && pass->tiles && pass->bases ? LR_OK : LR_FAILED;
}

/* What the device fills, both ways, and from what. */
static lr_status place_fill(struct lr_cuda_memory *memory, const struct lr_cuda_band_plan *plan,
                            const lr_cuda_view_fill *view, lr_cuda_band_fill *fill)
{
    const lr_cuda_bands *pass = &plan->passes[LR_CUDA_BANDS_ALONE];
    const int64_t kernels = (int64_t)pass->num_kernel_rows * pass->kernel_pitch;
    *fill = (lr_cuda_band_fill){.values = view->values.values,
                                .map = view->map.map,
                                .peak = view->values.peak,
                                .num_steps = plan->num_steps,
                                .num_offsets = view->values.num_offsets};
    fill->places = lr_cuda_place(memory, plan->num_steps * (int64_t)sizeof(*plan->places), plan->places);
    fill->ranges = lr_cuda_place(memory, pass->num_spans * 2 * NUMBER, plan->ranges);
    fill->offsets = lr_cuda_place(memory, plan->num_places * NUMBER, plan->offsets);
    fill->kernels = lr_cuda_place(memory, pass->num_rows > 1 ? kernels * NUMBER : 0, NULL);
    return fill->places && fill->ranges && fill->offsets && fill->kernels ? LR_OK : LR_FAILED;
}

/* Those of one way: blocks of the one kernel, or spans. */
static lr_status place_weights(struct lr_cuda_memory *memory, const lr_cuda_bands *pass, lr_cuda_band_fill *fill)
{
    const int64_t blocks = (int64_t)(fill->num_steps + 1) * LR_CUDA_BAND_ROWS;
    const int64_t entries = (int64_t)pass->num_spans * pass->num_rows * pass->span_pitch;
    void *const weights =
        lr_cuda_place(memory, (pass->num_rows == 1 ? blocks * LR_CUDA_BAND_BLOCK * 4 : entries) * NUMBER, NULL);
    fill->weights = weights;
    fill->spans = weights;
    return weights != NULL ? LR_OK : LR_FAILED;
}

/* A pass with all that it reads. */
static lr_cuda_bands complete(lr_cuda_bands pass, const lr_cuda_bands *lists, const lr_cuda_band_fill *fill)
{
    pass.steps = lists->steps;
    pass.spots = lists->spots;
    pass.lists = lists->lists;
    pass.cuts = lists->cuts;
    pass.tiles = lists->tiles;
    pass.bases = lists->bases;
    pass.weights = fill->weights;
    pass.spans = fill->spans;
    pass.kernels = fill->kernels;
    pass.peak = fill->peak;
    return pass;
}

lr_status lr_cuda_place_bands(struct lr_cuda_memory *memory, const struct lr_cuda_band_plan *plan,
                              lr_cuda_view_fill *fill, lr_cuda_bands bands[2][LR_CUDA_BANDS_SHAPES])
{
    lr_cuda_bands lists = plan->passes[LR_CUDA_BANDS_ALONE];
    lr_cuda_band_fill both;
    LR_TRY(place_lists(memory, plan, &lists));
    LR_TRY(place_fill(memory, plan, fill, &both));
    for (int forward = 0; forward < 2; forward++) {
        const int32_t *tiles = (const int32_t *)lists.tiles;
        lr_cuda_band_fill *own = &fill->band_fills[forward];
        *own = both;
        LR_TRY(place_weights(memory, &lists, own));
        for (int which = 0; which < LR_CUDA_BANDS_SHAPES; which++) {
            lr_cuda_bands *pass = &bands[forward][which];
            *pass = complete(plan->passes[which], &lists, own);
            pass->tiles = (const int2 *)tiles; /* those of all shapes follow each other */
            tiles += 2 * (int64_t)pass->num_tiles;
        }
        fill->bands[forward] = bands[forward][LR_CUDA_BANDS_ALONE];
    }
    return LR_OK;
}
