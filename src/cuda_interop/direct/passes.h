/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Parameters of the CUDA passes of the family `direct`, in memory of the device, and the functions that start the
 * passes. C and CUDA files include this file; for C files, the device's vector types are opaque. */
#pragma once

#include <lr/direct.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#else
typedef struct int2 int2;
typedef struct int4 int4;
typedef struct double2 double2;
typedef struct float4 float4;
#endif

/* Threads of a block, if the kernel does not define another number. */
enum { LR_CUDA_GROUP = 256 };

/* Layout of images and LORmap (direct/compute/direct.h): texels (q, x, y), slices fastest. */
typedef struct lr_cuda_layout {
    int32_t size[3]; /* extent of the grid */
    int32_t quads;
    int32_t margin[3]; /* quads, x, y */
    int32_t extent[3]; /* extent with margins */
} lr_cuda_layout;

/* One gather over mSR. */
typedef struct lr_cuda_gather {
    lr_cuda_layout layout;
    const int4 *offsets; /* mSR [num_offsets]: x, y, z */
    const float *values; /* mSRval [num_offsets][num_rows] */
    int32_t num_offsets, num_rows;
} lr_cuda_gather;

/* One gather over the cloud of paper 2: mSR sorted along the line of response. Each value is the product of two
 * factors: one from time of flight and axial distance, and a profile across the line. Voxels are taken in lists
 * along the line, which follow from the projection mask. At place k on axis `along`, list n is at n + shift[k] on
 * the other transaxial axis. */
typedef struct lr_cuda_cloud {
    lr_cuda_layout layout;
    const int4 *points;    /* [num_points]: x, y, z: the point's offset from the voxel; w: its column of `profiles` */
    const float *factors;  /* [num_points] */
    const float *profiles; /* [num_rows][num_columns]; normalised; num_columns - 1 - k mirrors k */
    const int32_t *shift;  /* [extent of axis `along`], margins included */
    int32_t num_points, num_columns, num_rows;
    int32_t along; /* 0 = x, 1 = y */
    int32_t least_list, num_lists;
    int32_t reach[3]; /* reach of the cloud: along a list, across lists, and in quads of slices */
} lr_cuda_cloud;

/* The outputs of a block in the shared-memory scheme: numbers of places, lists and quads. */
enum { LR_CUDA_TILE_PLACES = 32, LR_CUDA_TILE_LISTS = 8, LR_CUDA_TILE_QUADS = 2 };

/* A step of a columns gather (direct/lattice.h). */
typedef struct lr_cuda_column_step {
    int32_t source;  /* texels from the first output's first slice to the source */
    int32_t weights; /* index of the step's first weight in the list of weights */
    int32_t mask;
    int32_t map; /* LORmap entries from the first output's entry to the step's entry */
} lr_cuda_column_step;

enum {
    LR_CUDA_OUTPUTS = 4,
    LR_CUDA_SLICES = 12,
    LR_CUDA_CLASSES = 24,
    LR_CUDA_COLUMN_LANES = 32, /* lanes of a warp, and warps of a block */
    LR_CUDA_COLUMN_WARPS = 4
};

/* One gather by columns: images are arrays. */
typedef struct lr_cuda_columns {
    lr_cuda_layout layout;
    const lr_cuda_column_step *steps; /* steps, sorted by class */
    int32_t first[LR_CUDA_CLASSES + 1];
    /* Weights of a step: [output][row], each of up to four taps. Steps of one tap have floats, aligned to a float4. */
    const float4 *weights;
    const uint16_t *map; /* LORmap with margins, y slowest */
    int32_t num_rows;
    int32_t next[2], across[2];      /* steps of the lattice */
    int32_t least[2], num_places[2]; /* first outputs: from `least` to least + num_places - 1. Units: [0] four columns
                                        along the lattice, [1] one lattice row */
} lr_cuda_columns;

/* A step of a bands gather: products of 16 sources by eight outputs in each of a warp's rows. The sources are two
 * groups of eight, called halves, and each half begins at any slice. One load instruction reads the four numbers of
 * a step. */
typedef struct lr_cuda_band_step {
    int32_t source[2]; /* per half: offset of its sources from the first slice of octet 0, the warp's own octet.
                        * Unit: slices of an octet */
    int32_t kernel[2]; /* per half of the next step: offset in `kernels` from the place of the first output to the
                        * kernel of the half's first source */
} lr_cuda_band_step;

enum {
    LR_CUDA_OCTET = 8,           /* outputs of a warp: neighbours on a row of the lattice */
    LR_CUDA_BAND_ROWS = 2,       /* rows of a warp, which are consecutive */
    LR_CUDA_BAND_PAIRS = 2,      /* warps of a block, across the rows */
    LR_CUDA_BAND_SIDES = 4,      /* largest number of warps of a block along the rows */
    LR_CUDA_BAND_FEW_SIDES = 2,  /* the same limit for bands that are crowded (is_crowded) or have the greatest
                                    height */
    LR_CUDA_BAND_SLICES = 16,    /* slices of a product */
    LR_CUDA_BAND_HEIGHT = 4,     /* largest number of products above each other */
    LR_CUDA_BAND_BARRIERS = 128, /* bytes of shared memory for barriers */
    LR_CUDA_BAND_MARGIN = 8,     /* places before a span's first octet, and after its last */
    LR_CUDA_BAND_BLOCK = 32,     /* entries of a block of weights, one for each lane */
    LR_CUDA_BAND_MOST = 128      /* limit on a slab's slices and on its octets, because one copy transfers a slab */
};

/* One gather by bands. Column (l, r) of the lattice is at l next + r across. The source is first sorted along the
 * lattice's rows: octet k of row r starts at l = 8 (bases[r] + k). The numbers of an octet are stored slice by slice,
 * each number as a high and a low part. A slab is the part of one row of sources that a block reads. */
typedef struct lr_cuda_bands {
    lr_cuda_layout layout;
    const lr_cuda_band_step *steps; /* [steps + 3]: one entry before the steps, all steps list by list, two after */
    const int4 *lists;              /* [num_lists]: list d has the source row that is least_offset + d rows from a
                                       warp's first row, and least_offset + d - 1 from its second row. x: the list's
                                       first step; y: one after its last step; z, w: first octet of the slab for the
                                       first and the second pair of warps, counted from the block's first octet */
    const int2 *cuts;               /* [num_lists][num_cuts]: cuts of list d, one for each octet of sources from
                                       least_octet on, counted from the warp's own octet. x: first step that has sources
                                       of this octet or a later one. y: first step after all steps that have sources of
                                       an earlier octet */
    const int2 *tiles;              /* [num_tiles]: first octet and row of a block */
    const int4 *bases;              /* [num_lattice_rows]: x, y: first octet of the row, and one after the last. z,
                                     * w: first place of the row that has a column of the grid, and one after the
                                     * last such place, counted from the first place of the row's first octet */

    /* Weights for the case of one kernel: [steps + 1][2 rows][32]. Entry e has the weights of four sources for output
     * e / 4. The sources are numbers 2 (e % 4) and 2 (e % 4) + 1 of each half. The high parts of the weights come
     * first, and then the low parts. */
    const int4 *weights;

    /* Tables for varying kernels.
     * spans: [spans][num_rows][span_pitch], the weights that a kernel has for consecutive places on a lattice row. Each
     * weight has both parts, the high one first. Span 0 has no weights.
     * spots: [steps + 2], for kernel 0, the positions in `spans` of the weights of source 0 for output 0. The order is:
     * halves 0 and 1 of the first row, and then of the next row.
     * kernels: [num_kernel_rows][kernel_pitch], distance in `spans` from the weight of kernel 0 to the weight of the
     * kernel at each place. Entries cover the surroundings of the grid as far as steps reach. */
    const uint32_t *spans;
    const int4 *spots;
    const int32_t *kernels;

    const float *peak;           /* maximum of mSRval; scales the weights */
    int32_t num_rows, num_tiles; /* rows of mSRval */
    int32_t next[2], across[2];
    int32_t least_row, num_lattice_rows; /* rows of the lattice that the grid has */
    int32_t pitch;                       /* numbers of a sorted row: whole octets */
    int32_t least_offset;                /* smallest offset of source rows from the outputs' row */
    int32_t num_lists;                   /* lists of steps; more than source rows, because a warp has several rows */
    int32_t num_cuts, least_octet;
    int32_t num_slabs;
    int32_t low_slice, slices; /* slices of a slab; the first is the block's first slice + low_slice */
    int32_t width;             /* octets of a slab */
    int32_t height;            /* products above each other */
    int32_t sides;             /* number of warps side by side along a row */
    int32_t is_crowded;        /* a multiprocessor holds many small blocks */
    int32_t num_spans, span_pitch;
    int32_t kernel_pitch, num_kernel_rows;
    int32_t first_kernel[2];               /* [0]: place, [1]: lattice row of the first kernel */
    int32_t depth;                         /* slabs that a block holds */
    int32_t held_steps;                    /* steps that a crowded block holds */
    int32_t list_bytes, slab_bytes, bytes; /* bytes of shared memory: before the slabs; per slab; in all */
} lr_cuda_bands;

/* A sorted source. */
typedef struct lr_cuda_band_source {
    uint16_t *numbers; /* [num_lattice_rows][pitch / 8][2: high and low parts][slices][8] */
    float *units;      /* [num_lattice_rows]: factor from each row's numbers to true values */
    int32_t is_clear;  /* octets without any grid columns are already zero */
} lr_cuda_band_source;

/* Sources and targets of the weights and kernels that the device fills in. */
typedef struct lr_cuda_band_fill {
    int4 *weights;
    uint32_t *spans;
    int32_t *kernels;
    float *peak;
    const int32_t *places;  /* used if there is one kernel. [num_steps][2][2]: for each row and half, the index in
                             * `offsets` of the weight of source 0 for output 0 */
    const int2 *ranges;     /* [num_spans]: x: first index in `offsets`; y: count */
    const int32_t *offsets; /* for the places along rows: indices into mSR; -1 = none */
    const float *values;    /* mSRval [num_offsets][num_rows] */
    const uint16_t *map;    /* LORmap with margins, y slowest */
    int32_t num_steps, num_offsets;
} lr_cuda_band_fill;

/* LORmap of a view (shaders/direct/map.comp). */
typedef struct lr_cuda_map_fill {
    double origin_mm[2], voxel_mm[2], radial[2];
    double epsilon_mm, tie; /* tie: tolerance at borders between kernels, in units of epsilon_mm */
    lr_cuda_layout layout;
    int32_t mirrored; /* added to the kernel's number on the negative radial side */
    uint16_t *map;    /* map with margins, y slowest */
} lr_cuda_map_fill;

/* Threads of a block of mSRval's pass. A block has some neighbouring rows. */
enum { LR_CUDA_VALUE_THREADS = 256 };

/* Fills the table of kernel values of a view (shaders/direct/values.comp), which is mSRval in the paper. */
typedef struct lr_cuda_value_fill {
    /* Distances per voxel along x, y, z. radial is in mm; tof and axial are divided by the standard deviation. */
    double tof[3], radial[3], axial[3];
    double first_sample_mm, sample_step_mm;
    double second_width, second_shift; /* width 0: one Gaussian */
    const int4 *offsets;               /* mSR [num_offsets]: x, y, z */
    const double2 *kernels;            /* [num_rows]; x: standard deviation in mm; y: 1, or -1 if mirrored */
    const float *samples;              /* measured profiles, [num_rows][num_samples] */
    float *values;                     /* [num_offsets][num_rows] */
    float *peak;                       /* the maximum of `values`; 0 before the pass */
    int32_t num_offsets, num_rows;
    int32_t block_rows;  /* rows of a block: a power of two */
    int32_t num_samples; /* 0: Gaussians */
} lr_cuda_value_fill;

/* All tables that passes fill in for a view, except for the tables of columns. bands: for back projection, then for
 * forward projection; without tiles if the view has no bands. */
typedef struct lr_cuda_view_fill {
    lr_cuda_map_fill map;
    lr_cuda_value_fill values;
    lr_cuda_bands bands[2];
    lr_cuda_band_fill band_fills[2];
} lr_cuda_view_fill;

/* Sizes of one launch for several views. value_blocks is the largest number of blocks that any of the views needs. The
   last four members are the largest numbers of threads. */
typedef struct lr_cuda_fill_sizes {
    int32_t num_views;
    int32_t value_blocks;
    int64_t map, weights, spans, kernels;
} lr_cuda_fill_sizes;

/* An image that updates work on: an array or a surface, with margins or without. A struct of zeros is no image. */
typedef struct lr_cuda_image {
    float4 *texels;    /* NULL = a surface */
    uint64_t surface;  /* a cudaSurfaceObject_t */
    int32_t margin[3]; /* quads, x, y */
    int32_t extent[2]; /* quads, x; with margins */
} lr_cuda_image;

/* Replaces the estimated projection of a view by the values to project back, for instance by the ratio of measured
 * and estimated counts (shaders/direct/discrepancy.comp). */
typedef struct lr_cuda_discrepancy {
    lr_cuda_layout layout;
    int32_t what; /* LR_DIRECT_DO_* of shaders/common/bindings.h, here and below */
    lr_cuda_image histo, counts;
    lr_cuda_image additive, factors; /* both optional */
} lr_cuda_discrepancy;

/* An image that is changed by another image (shaders/direct/combine.comp). */
typedef struct lr_cuda_change {
    lr_cuda_layout layout;
    int32_t what;
    float lambda; /* RAMLA */
    lr_cuda_image image, by;
    lr_cuda_image sensitivity; /* EM */
} lr_cuda_change;

/* The functions below start the CUDA passes of the family `direct`. All return a cudaError_t, and none waits for the
 * device. */

/* Copies of a view's look-up tables in 3-D textures: LORmap, and the points, factors and profiles of the cloud. Points
 * and factors are cut into rows. */
enum { LR_CUDA_MAP, LR_CUDA_POINTS, LR_CUDA_FACTORS, LR_CUDA_PROFILES, LR_CUDA_NUM_TEXTURES };
enum { LR_CUDA_LIST_WIDTH = 1024 /* number of points or factors in a row */ };

typedef struct lr_cuda_table_textures {
    uint64_t textures[LR_CUDA_NUM_TEXTURES]; /* cudaTextureObject_t; 0 = the view has no such texture */
    int32_t slice;                           /* the view's slice in each texture */
} lr_cuda_table_textures;

/* Source and target of a pass, and its tables. Both images are 3-D textures, or both are arrays. */
typedef struct lr_cuda_images {
    uint64_t source_texture, target_surface; /* 0 = source and target are arrays */
    lr_cuda_table_textures tables;           /* not read if source and target are arrays */
    const float4 *source;
    float4 *target;
    const uint16_t *map;        /* LORmap with margins */
    lr_cuda_band_source sorted; /* the source, for gathers by bands */
    void *stream;               /* a cudaStream_t; NULL = the default one */
} lr_cuda_images;

/* A kernel of a projection, and the sizes with which it was started. */
typedef struct lr_cuda_kernel {
    const void *function; /* NULL = none yet */
    int threads;          /* threads per block */
    int64_t shared_bytes; /* per block, as started */
} lr_cuda_kernel;

/* Records the kernel that this thread's last projection started. */
void lr_cuda_note_kernel(const void *function, int threads, int64_t shared_bytes);

enum lr_cuda_gather_kind { LR_CUDA_VOXELS, LR_CUDA_TEXELS };

int lr_cuda_launch_gather(enum lr_cuda_gather_kind kind, bool forward, const lr_cuda_gather *pass,
                          const lr_cuda_images *images);

/* shared: true = a block first copies its sources to shared memory; false = each source is loaded from the image. */
int lr_cuda_launch_cloud(bool shared, bool forward, const lr_cuda_cloud *pass, const lr_cuda_images *images);

/* Bytes of shared memory that a block of the cloud gather needs. */
int64_t lr_cuda_shared_bytes(const lr_cuda_cloud *pass);

/* Bytes of shared memory that a block may have on the current device; -1 = not known. */
int64_t lr_cuda_shared_room(void);

/* images: arrays only. */
int lr_cuda_launch_columns(bool forward, const lr_cuda_columns *pass, const lr_cuda_images *images);

/* Fills pass->weights; indices: [steps][outputs][4] on the device. */
int lr_cuda_launch_column_weights(bool forward, const lr_cuda_columns *pass, const lr_cuda_gather *tables,
                                  const int32_t *indices);

/* True if the current device has the copies and products that bands need: compute capability 9.0 or above. */
bool lr_cuda_bands_work(void);

/* Sorts the source for all gathers along the same lattice. images: arrays only, as for the gather. */
int lr_cuda_launch_sort(const lr_cuda_bands *pass, const lr_cuda_images *images);

/* Gathers from a source that was sorted earlier, either on this stream or on a stream that this one waits for. */
int lr_cuda_launch_bands(bool forward, const lr_cuda_bands *pass, const lr_cuda_images *images);

/* Fills in LORmap and mSRval of several views at once. views: on the device. This function and the next one use the
 * default stream. */
int lr_cuda_launch_value_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes);

/* Fills in the tables of bands. With one kernel, these tables are weights. With several kernels, the tables are spans,
 * and LORmap by rows of the lattice. Call this function after the value fills. */
int lr_cuda_launch_band_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes);

/* These functions use the default stream. Images of a pass are all arrays, or all surfaces. */
int lr_cuda_launch_discrepancy(const lr_cuda_discrepancy *pass);
int lr_cuda_launch_change(const lr_cuda_change *pass);

/* --- attributes of kernels: paper 1, table II --- */

/* Attributes of the kernel that this thread's last projection started, as the driver reports them. The device is
 * current. errors: LR_USAGE before the first projection; LR_FAILED; logged. */
lr_status lr_cuda_find_attributes(lr_direct_attributes *attributes, const lr_log *log);

#ifdef __cplusplus
}
#endif
