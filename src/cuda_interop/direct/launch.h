/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Starts the CUDA passes of the family `direct`. All return a cudaError_t; none waits for the
 * device. */
#ifndef LR_CUDA_DIRECT_LAUNCH_H
#define LR_CUDA_DIRECT_LAUNCH_H

#include "cuda_interop/direct/passes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Source and target of a pass: 3-D textures, or arrays. */
typedef struct lr_cuda_images {
    uint64_t source_texture, target_surface; /* 0 = these are arrays */
    const float4 *source;
    float4 *target;
    const uint16_t *map;        /* LORmap with margins */
    lr_cuda_band_source sorted; /* the source, for gathers by bands */
    void *stream;               /* a cudaStream_t; NULL = the default one */
} lr_cuda_images;

/* A kernel of a projection, as it was started. */
typedef struct lr_cuda_kernel {
    const void *function; /* NULL = none yet */
    int threads;          /* of a block */
    int64_t shared_bytes; /* of a block, as many as it was started with */
} lr_cuda_kernel;

/* The last one that any of the projections below has started in this thread. */
lr_cuda_kernel lr_cuda_last_kernel(void);
void lr_cuda_note_kernel(const void *function, int threads, int64_t shared_bytes);

enum lr_cuda_gather_kind { LR_CUDA_VOXELS, LR_CUDA_TEXELS };

int lr_cuda_launch_gather(enum lr_cuda_gather_kind kind, bool forward, const lr_cuda_gather *pass,
                          const lr_cuda_images *images);

/* shared: sources in shared memory; else by fetches. */
int lr_cuda_launch_cloud(bool shared, bool forward, const lr_cuda_cloud *pass, const lr_cuda_images *images);

/* Bytes of shared memory that a block of it needs. */
int64_t lr_cuda_shared_bytes(const lr_cuda_cloud *pass);

/* Bytes that a block may have of it on the current device; -1 where that is not known. */
int64_t lr_cuda_shared_room(void);

/* images: arrays only. */
int lr_cuda_launch_columns(bool forward, const lr_cuda_columns *pass, const lr_cuda_images *images);

/* Fills pass->weights; indices: [steps][outputs][4] on the device. */
int lr_cuda_launch_column_weights(bool forward, const lr_cuda_columns *pass, const lr_cuda_gather *tables,
                                  const int32_t *indices);

/* Whether the current device makes the copies and products that bands live on: from compute capability
 * 9.0 on. */
bool lr_cuda_bands_work(void);

/* Sorts the source, for all gathers along the same lattice. images: arrays only, as for the gather. */
int lr_cuda_launch_sort(const lr_cuda_bands *pass, const lr_cuda_images *images);

/* Gathers from what was sorted before, on the stream or on one that it comes after. */
int lr_cuda_launch_bands(bool forward, const lr_cuda_bands *pass, const lr_cuda_images *images);

/* Fills in LORmap and mSRval of several views at once. views: on the device. On the default stream, as
 * the next one. */
int lr_cuda_launch_value_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes);

/* After that weights of bands, or where there are several kernels spans and LORmap by rows of the lattice. */
int lr_cuda_launch_band_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes);

/* On the default stream. Images of a pass are all arrays, or all surfaces. */
int lr_cuda_launch_discrepancy(const lr_cuda_discrepancy *pass);
int lr_cuda_launch_change(const lr_cuda_change *pass);

#ifdef __cplusplus
}
#endif

#endif
