/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Correspondence images of a batch in one atlas, and the projections and matrix rows that are computed from them. The
 * cluster paper is Toth, Magdics, Szirmay-Kalos, Fast System Matrix Generation on a GPU Cluster; its section II
 * describes the images. */
#pragma once

#include "correspondence/scene.h"
#include "gl/resource.h"

#include <lr/operator.h>
#include <lr/vector.h>

struct lr_correspondence {
    struct lr_scene *scene;
    const struct lr_plan *plan;
    struct gl_program *program; /* NULL before lr_correspondence_start or the first batch */
    /* RG32UI: number of the secondary's crystal plus 1 (0 = no hit), and bits of the weight. If modules may hide
     * others, the target also has a depth buffer. If path_length is true, it also has path lengths, R32F, mm. */
    struct gl_target *atlas;
    struct gl_buffer *images, *draws;
    bool path_length;
};

/* Makes an atlas. path_length: true if it also stores the distance between the hits, for pictures. single: true if the
 * atlas has one tile, for batches of one image. */
lr_status lr_correspondence_init(struct lr_correspondence *images, struct lr_scene *scene, const struct lr_plan *plan,
                                 bool path_length, bool single);
void lr_correspondence_finish(struct lr_correspondence *images);

/* Starts to build the program, unless this has been done. Does not wait until it is built. */
lr_status lr_correspondence_start(struct lr_correspondence *images);

/* Renders a batch into the atlas. */
lr_status lr_correspondence_render(struct lr_correspondence *images, const struct lr_batch *batch);

/* --- vectors in textures --- */

/* A vector in a texture that passes can draw into: the voxels, or the LOR image of the cluster paper, section III.
 * Number k is at texel (k mod width, k / width). Vectors are copied to the texture and from it. */

struct lr_texels {
    struct gl_target *target; /* R32F; NULL = none */
    int64_t count;
};

/* Creates `count` zeros. If target is NULL, creation has failed; the error is logged. */
struct lr_texels lr_texels_create(struct gl_context *ctx, const char *label, int64_t count);
/* Sets *texels to `count` zeros. The texture is kept if it has the right size. */
lr_status lr_texels_renew(struct lr_texels *texels, struct gl_context *ctx, const char *label, int64_t count);
void lr_texels_destroy(struct lr_texels *texels);

/* Returns how many numbers fit into one texture of at most `bytes`. bytes: 0 = only the limits of the driver apply. */
int64_t lr_texels_capacity(const struct gl_context *ctx, int64_t bytes);

/* Copies a vector of `count` floats to the texture (to_texels is true), or the texture to the vector. The copy stays on
 * the device if the vector is at the backend's place. */
lr_status lr_texels_copy(const struct lr_texels *texels, const lr_vector *vector, bool to_texels);

/* --- forward --- */

/* Forward projection of correspondence images: cluster paper, section III. A vertex shader draws points, which are
 * blended additively into the LOR image. The device blends points in the order in which they are drawn, so sums have
 * the same bits in every run. */

struct lr_scatter {
    struct lr_scene *scene;
    const struct lr_plan *plan;
    struct gl_program *scatter, *add; /* `add` is built at its first use */
    float factor;                     /* 1 / N for N sample points per voxel; set by the caller */
    struct lr_texels voxels;          /* emission of the voxels; filled in by the caller */
    /* If the LOR image has many terms per LOR, it is added to this total and then cleared, because a large sum in float
     * loses digits of each new term. The target is NULL before the first addition. */
    struct lr_texels total;
    int64_t rays; /* upper bound of the number of terms in the LOR image */
};

/* Prepares forward projections. num_voxels: number of rows of later requests. After an error *scatter is empty. */
lr_status lr_scatter_init(struct lr_scatter *scatter, struct lr_scene *scene, const struct lr_plan *plan,
                          int64_t num_voxels);
void lr_scatter_finish(struct lr_scatter *scatter);

/* Begins a window of LORs. The caller provides a LOR image of zeros. */
void lr_scatter_begin(struct lr_scatter *scatter);

/* Adds the images of a batch in the atlas to the LORs of the window. */
lr_status lr_scatter_run(struct lr_scatter *scatter, const struct lr_correspondence *images,
                         const struct lr_batch *batch, struct lr_texels *lors);

/* Copies the window's sums to `values`. */
lr_status lr_scatter_end(struct lr_scatter *scatter, struct lr_texels *lors, lr_vector *values);

/* --- back --- */

/* Back-projection of correspondence images: cluster paper, section IV. The first run multiplies weights by LOR values,
 * and halves the edges of the images: each new texel is the sum of four pixels. Each further run halves the edges
 * again, until an image is one texel. With R rays per crystal edge, a crystal's macropixel is one texel after log2 R
 * runs. */

enum { LR_MOST_HALVINGS = 16 };

struct lr_gather {
    struct lr_scene *scene;
    const struct lr_plan *plan;
    struct gl_program *gather, *reduce, *collect;
    struct gl_target *sums[LR_MOST_HALVINGS]; /* R32F; tiles have half the size of those in the previous target */
    int tiles[LR_MOST_HALVINGS][2];           /* sizes of the tiles in `sums`; the last is 1 x 1 */
    int num_halvings;
    struct gl_buffer *rows;
    struct lr_texels image;                    /* sums of the voxels; the caller clears them */
    struct gl_stopwatch *gathers, *reductions; /* owned by the caller; NULL = not measured */
};

/* Prepares back-projections. num_voxels: number of voxels that each later back-projection covers. After an
 * error *gather is empty. */
lr_status lr_gather_init(struct lr_gather *gather, struct lr_scene *scene, const struct lr_plan *plan,
                         int64_t num_voxels);
void lr_gather_finish(struct lr_gather *gather);

/* Adds the images of a batch in the atlas to the sums of the voxels. */
lr_status lr_gather_run(struct lr_gather *gather, const struct lr_correspondence *images, const struct lr_batch *batch,
                        const struct lr_texels *lors);

/* The uniform block of shaders/correspondence/raster/reduce.frag. */
struct lr_reduce_pass {
    int32_t source_tile[2], target_tile[2];
};

/* --- matrix rows --- */

/* Matrix rows, read from correspondence images: cluster paper, section II.C. */

/* The inputs of lr_rows_read. */
struct lr_row_reader {
    struct lr_correspondence *images;
    struct lr_plan *plan;
    const struct lr_backend_params *params; /* threads, log and progress are read */
};

/* Renders the rows batch by batch, reads the atlas back to the host, and passes every row to the sink in order, even
 * empty rows. */
lr_status lr_rows_read(const struct lr_row_reader *reader, const struct lr_rows *rows, const lr_row_sink *sink);

/* --- pictures --- */

/* A picture is one correspondence image for display, with the distance between the hits. */

/* Renders one picture. images: must have been made with path_length. module: the primary. pixels: [rays * nv][rays *
 * nu] of the module. The scene's window must have all LORs. */
lr_status lr_picture_render(struct lr_correspondence *images, struct lr_plan *plan, const double point_mm[3],
                            int module, lr_pixel *pixels);
