/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The threads of CUDA passes, run one after the other on the processor, from the same source that CUDA's compiler
 * compiles. */
#pragma once

#include "cuda_interop/direct/passes.h"
#include "fft/cufft_product.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cpu_gather { CPU_VOXELS, CPU_TEXELS } cpu_gather;

/* Images, float [y][x][q][4] with the layout's margins, and LORmap with margins. */
typedef struct cpu_images {
    const float *source;
    float *target;
    const uint16_t *map;
    bool in_textures; /* images, LORmap and the cloud are read from textures */
    int emptied;      /* bit n: the texture of table n (LR_CUDA_MAP and so on) holds zeros */
} cpu_images;

/* offsets: [num_offsets][4]. pass.offsets is not read. */
void on_cpu_gather(cpu_gather kind, bool forward, lr_cuda_gather pass, const int32_t *offsets,
                   const cpu_images *images);

/* Fills pass.weights, [num_weights] of four floats, and gathers by columns. num_places: number of places. indices:
 * [steps][outputs][4]. */
void on_cpu_columns(bool forward, lr_cuda_columns pass, const lr_cuda_gather *tables, const int32_t *indices,
                    int64_t num_weights, const float *source, float *target);

/* Fills in weights and profiles, sorts the source and gathers by bands, a warp at a time. lists: those of a plan.
 * Pointers in pass and fill, and arrays that are filled in, are not read. Returns the number of copies that a device
 * would refuse. */
typedef struct cpu_band_lists {
    const lr_cuda_band_step *steps;
    const int32_t *lists, *cuts, *tiles, *bases, *spots, *ranges;
} cpu_band_lists;
int on_cpu_bands(bool forward, lr_cuda_bands pass, lr_cuda_band_fill fill, const cpu_band_lists *lists,
                 const float *source, float *target);

/* Fills in LORmap and mSRval of several views, with a few threads more than needed. */
void on_cpu_value_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes);

/* Fills in the data that bands read, after the value fills. */
void on_cpu_band_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes);

/* Sorts the source and gathers by bands, with all tables already filled in; otherwise like on_cpu_bands. */
int on_cpu_filled_bands(bool forward, const lr_cuda_bands *pass, const float *source, float *target);

/* Gathers over the cloud, with or without a block's sources in shared memory. pass.points is not read:
 * [num_points][4]. */
void on_cpu_cloud(bool shared, bool forward, lr_cuda_cloud pass, const int32_t *points, const cpu_images *images);

/* Threads behind the last bin run, too. values and spectrum hold real and imaginary parts alternately; the pointers
 * in the product are not read. */
void on_cpu_product(fft_product product, float *values, const float *spectrum);

/* Runs a thread for every texel of the grid, and some more. Images are arrays. */
void on_cpu_discrepancy(lr_cuda_discrepancy pass);
void on_cpu_change(lr_cuda_change pass);

#ifdef __cplusplus
}
#endif
