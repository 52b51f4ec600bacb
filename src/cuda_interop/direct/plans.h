/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Plans that the host makes of views, for any variant. This file uses no CUDA. */
#pragma once

#include "cuda_interop/direct/passes.h"
#include "direct/backend.h"
#include "direct/compute/direct.h"
#include "direct/lattice.h"
#include "direct/tables.h"

/* --- gathers by bands --- */

/* Shapes of blocks: one for a pass that has the device alone, one for a pass that runs next to other passes. */
enum { LR_CUDA_BANDS_ALONE, LR_CUDA_BANDS_BESIDE, LR_CUDA_BANDS_SHAPES };

/* The plan, except for the passes' pointers to the device. */
struct lr_cuda_band_plan {
    lr_cuda_bands passes[LR_CUDA_BANDS_SHAPES];
    lr_cuda_band_step *steps;         /* owned [num_steps + 3] */
    int32_t (*lists)[4], (*cuts)[2];  /* owned, like all pointers down to `offsets`; contents as in lr_cuda_bands */
    int32_t (*tiles)[2], (*bases)[4]; /* tiles: the tiles of all shapes, shape by shape */
    int32_t (*spots)[LR_CUDA_BAND_ROWS][2];
    int32_t (*places)[LR_CUDA_BAND_ROWS][2]; /* contents as described in lr_cuda_band_fill; the same for `ranges` and
                                              * `offsets` */
    int32_t (*ranges)[2], *offsets;
    int32_t num_tiles, num_steps, num_places; /* num_places: length of the list of offsets */
};

/* rows: number of rows of mSRval. errors: LR_FAILED; *plan then holds nothing. */
lr_status lr_cuda_band_plan_init(struct lr_cuda_band_plan *plan, const struct lr_direct_shape *shape,
                                 const lr_cuda_layout *layout, int rows, const lr_log *log);
void lr_cuda_band_plan_finish(struct lr_cuda_band_plan *plan);

/* True if the plan can run: a block's shared memory suffices, slabs are small enough for copies, and tables are not too
 * large. */
bool lr_cuda_band_plan_fits(const struct lr_cuda_band_plan *plan, int64_t room_bytes);

/* Returns the size of a sorted source in bytes. The numbers come first, then their units. */
int64_t lr_cuda_band_source_bytes(const lr_cuda_bands *pass);
lr_cuda_band_source lr_cuda_band_source_at(const lr_cuda_bands *pass, void *memory);

/* --- the gathers of paper 2 of lr/direct.h: projection mask, sorted cloud and separable tables --- */

/* The tables, except for the pass's pointers to the device. */
struct lr_cuda_cloud_tables {
    lr_cuda_cloud pass;
    int32_t (*points)[4]; /* owned, like the members below; contents as in lr_cuda_cloud */
    float *factors, *profiles;
    int32_t *shift;
};

/* rows: number of rows of mSRval. errors: LR_FAILED; *tables then holds nothing. */
lr_status lr_cuda_cloud_init(struct lr_cuda_cloud_tables *tables, const struct lr_direct_shape *shape,
                             const lr_cuda_layout *layout, int rows, const lr_log *log);
void lr_cuda_cloud_finish(struct lr_cuda_cloud_tables *tables);

/* --- gathers by columns --- */

/* The plan, except for the pass's pointers to the device. */
struct lr_cuda_column_plan {
    lr_cuda_columns pass;
    lr_cuda_column_step *steps; /* owned [steps] */
    int32_t *indices;           /* owned [steps][outputs][4], in mSR; -1 = none */
    int64_t num_weights;        /* groups of four floats */
};

/* rows: number of rows of mSRval. errors: LR_FAILED; *plan then holds nothing. */
lr_status lr_cuda_column_plan_init(struct lr_cuda_column_plan *plan, const struct lr_direct_shape *shape,
                                   const lr_cuda_layout *layout, int rows, const lr_log *log);
void lr_cuda_column_plan_finish(struct lr_cuda_column_plan *plan);

/* Margins that gathers by columns need: quads of slices, and columns along x and y. Bands look up kernels within the
 * x and y margins. */
void lr_cuda_column_margins(const struct lr_direct_shape *shape, int margin[3]);

/* --- views, whatever the variant --- */

struct lr_cuda_plan_params {
    const struct lr_direct_backend_params *backend;
    lr_cuda_layout layout;
    bool bands_work;     /* the device can run gathers by bands */
    int64_t shared_room; /* bytes of shared memory that a block may have */
};

/* A struct of zeros is valid: no plan. */
struct lr_cuda_view_plan {
    struct lr_direct_shape shape;
    int num_rows;          /* rows of mSRval */
    int32_t (*offsets)[4]; /* owned, like `kernels` and `samples`; contents as in lr_cuda_value_fill */
    double (*kernels)[2];
    float *samples;
    bool has_bands, has_columns, has_cloud; /* at most one is true */
    struct lr_cuda_band_plan bands;
    struct lr_cuda_column_plan columns;
    struct lr_cuda_cloud_tables cloud;
};

/* The layout of images for the passes. */
lr_cuda_layout lr_cuda_layout_of(const struct lr_direct_compute *compute);

/* Plans some views, with as many threads as the backend may use. A view whose bands do not fit gets columns. errors,
 * for any view: LR_FAILED, and as lr_direct_shape_init; the plans then hold nothing. */
lr_status lr_cuda_view_plans_init(struct lr_cuda_view_plan *plans, const struct lr_cuda_plan_params *params,
                                  const int *views, int num_views);
void lr_cuda_view_plans_finish(struct lr_cuda_view_plan *plans, int num_views);
