/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Parameters of the CUDA passes of the family `listmode`, and their launches. Addresses are those of the device.
 * Launches return a cudaError_t, and do not wait for the device. */
#pragma once

#include "kernels/language.glsl"
#include "listmode/schedule.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LR_CUDA_LIST_GROUP = 256,                  /* threads of a block of most kernels */
    LR_CUDA_LIST_THREADS = 768,                /* largest number of threads of a block that projects */
    LR_CUDA_EXACT_THREADS = 512,               /* threads of a block for exact elements */
    LR_CUDA_LIST_PIECE = LR_CUDA_LIST_THREADS, /* number of events of a piece; a chunk has whole pieces */
    LR_CUDA_LIST_WARP = 32,
    LR_CUDA_LIST_AXES = 3,
    LR_CUDA_LIST_GROUPS = 7 /* the groups of LR_LISTMODE_GROUPS, and one for lines that are not in coincidence */
};

/* Sample points of exact elements in a frame. Arrays are in the order axis, across[0], across[1]. */
typedef struct lr_cuda_list_points {
    int32_t samples[3], points[3]; /* numbers of sample points of a voxel, and along the whole axis */
    double first_mm[3], step_mm[3], per_step[3];
    float per_sample[3]; /* width of a sample in voxels */
    float share;         /* factor from a sample point's solid angle to its share of the voxel's element */
} lr_cuda_list_points;

/* The grid's slices across an axis. Voxel (u, v) of slice s is at index s * plane + (u + window[0] - 1) * pitch + v +
 * window[1] - 1. Neighbouring rows and slices share margins of zeros, where kernels can read and add. */
typedef struct lr_cuda_list_frame {
    int32_t axis, across[2];
    int32_t slices, size[2]; /* voxels along `axis`, and along across[0], across[1] */
    int32_t window[2];       /* largest number of voxels of a slice that a line reaches, along across[0] and
                                across[1] */
    int32_t reach[2];        /* number of positions that the first voxel of a window can have */
    int32_t pitch, plane;    /* numbers in a row along v, and in a slice */
    int32_t tail;            /* count of numbers after the last slice's plane */
    bool is_tiled;           /* true if slabs of slices fit into a block's shared memory */
    bool has_events;
    int64_t begin;      /* first number of the frame in the common buffer; a multiple of 4, like `plane` */
    double voxel_mm[3]; /* this array and the next ones: axis, across[0], across[1] */
    double origin_mm[3];
    double per_voxel[3]; /* voxels per mm */
    double uu, uv, vv;   /* coefficients of equation 3 for a line along the axis; line_walk has those of its own line */
    float most[2];       /* largest element without and with time of flight */
    lr_cuda_list_points points;
} lr_cuda_list_frame;

/* Returns the count of numbers in a given number of slices, including the margin after them. */
LR_KERNEL int64_t lr_cuda_list_cells(const lr_cuda_list_frame *frame, int64_t slices)
{
    return slices * frame->plane + frame->tail;
}

/* The function of the distance from a tube's line. Squared distances are scaled so that a Gaussian is 2^-(scaled
 * square); for a table, they are in mm^2. */
typedef struct lr_cuda_list_tube {
    double reach_mm;    /* largest distance with a share */
    float half;         /* squared half width; the Gaussian is constant beyond it */
    float rim, fall;    /* shares fall as rim - fall * square, between 1 and 0 */
    const float *table; /* [last + 2] over the distance; NULL = Gaussian */
    uint64_t texture;   /* cudaTextureObject_t of the table, for the paper's steps; 0 = none */
    float entries;      /* table entries per unit of distance */
    int32_t last;
} lr_cuda_list_tube;

/* The end of a line at a crystal. */
typedef struct lr_cuda_list_hit {
    double mm[3];
    double kind;
} lr_cuda_list_hit;

/* The axes of a module's faces: struct lr_listmode_module. */
typedef struct lr_cuda_list_module {
    double across[4], along[4], normal[4];
} lr_cuda_list_module;

/* Data of the scanner and the grid for exact elements. */
typedef struct lr_cuda_list_exact {
    const lr_cuda_list_module *modules; /* NULL = the kernel is not the exact one */
    const int32_t *module_of;           /* module of each crystal */
    bool is_leaning;                    /* true if no grid axis is an axis of all modules */
    float face, radius_mm;              /* face: the largest face divided by 2 pi, mm^2; radius_mm: half of its
                                           diagonal */
    float per_edge;                     /* upper bound of a voxel's mean time-of-flight density */
    double reach_mm;                    /* as in struct lr_listmode_model */
} lr_cuda_list_exact;

/* An event's line, with the values that its slices need. With time of flight, positions along the line are in standard
 * deviations from the centre of the time of flight. Without time of flight, positions are in slices from the line's
 * first slice. */
typedef struct lr_cuda_list_line {
    int64_t at[2], step[2]; /* crossing of the first slice, and its step per slice: struct crossings */
    float uu, uv, vv, half[2];
    float place, step_along; /* position of the first slice's middle, and step per slice */
    float begin, end;        /* positions between which the line has elements */
    float peak;              /* without time of flight: factor of a whole slice; with it: half of the bin */
    int32_t slices[2];
} lr_cuda_list_line;

/* An event's line as exact elements need it. The line runs through planes of sample points, from the crystal face at
 * the lower end of the frame's axis to the face at the upper end. The struct fills one cache line. */
typedef struct lr_cuda_list_path {
    int64_t at[2], step[2];          /* crossing of the first plane, and step per plane; unit: the distance between
                                      * two points / 2^32 */
    float reach[2], widening[2];     /* distance from the crossing up to which elements are possible, in the first
                                        plane, and its increase per plane */
    int32_t planes[2];               /* first plane, and one after the last; equal if there are none */
    float way_mm, way_step_mm;       /* distance from the face at the lower end to the first plane, and its increase
                                      * per plane */
    float low_lean[3], high_lean[3]; /* `lean` of angle_face, for the faces at the lower and the upper end */
    int32_t modules[2];              /* modules of the two faces */
    float length_mm;
    float place, place_step, half, half_bin, gain[3]; /* as in exact_time, if the event has time of flight */
} lr_cuda_list_path;

/* Events as in lr_listmode_events, from the first event of a batch on. */
typedef struct lr_cuda_list_events {
    const int32_t *crystals[2];
    const float *tof_mm;
    const int32_t *number;
    const lr_cuda_list_line *lines; /* NULL = lines are computed when needed */
    const lr_cuda_list_path *paths; /* like `lines`, for exact elements */
    const lr_cuda_list_hit *hits;
    const double *sigma_mm;
    const double *bin_mm; /* NULL = times of flight have no bins */
    int32_t num_kinds;
} lr_cuda_list_events;

/* Events of one group that several blocks work on. Each block has some of the slices that the lines may cross. */
typedef struct lr_cuda_list_chunk {
    int64_t begin; /* index from the batch's first event */
    int32_t count;
    int32_t axis;
    int32_t has_tof;
    int32_t slabs;
    int64_t partial; /* the sums of slab s begin at index partial + s * count */
    int32_t warp;    /* in passes by chunks: number of the first warp */
} lr_cuda_list_chunk;

/* The work of one block. */
typedef struct lr_cuda_list_job {
    int32_t chunk, slab;
    int32_t slices[2]; /* first, and one after the last */
    int64_t work;      /* approximate number of slices that lines cross, or of steps of exact elements */
} lr_cuda_list_job;

/* Indices of the values of a range's events: struct lr_listmode_places. */
typedef struct lr_cuda_list_places {
    int64_t position, count, first;
    const int32_t *map; /* NULL = no map */
} lr_cuda_list_places;

typedef struct lr_cuda_list_pass {
    lr_cuda_list_frame frames[LR_CUDA_LIST_AXES];
    lr_cuda_list_tube tube;
    lr_cuda_list_events events;
    lr_cuda_list_exact exact;
    bool has_events[2];     /* [0]: there are events without time of flight; [1]: there are events with it */
    bool is_line, as_paper; /* is_line: true for thin lines and for exact elements */
    const lr_cuda_list_chunk *chunks;
    const lr_cuda_list_job *jobs;
    int32_t num_chunks, num_jobs;
    int32_t longest_chunk; /* number of events of the longest chunk */
    int32_t num_warps;     /* number of warps of passes by chunks, LR_CUDA_LIST_WARP events each */
    int32_t threads;       /* threads of a block */
    int64_t shared_bytes;  /* shared memory of a block; 0 = no frame is tiled */
    int64_t shared_room;   /* largest shared memory that a block could have */
    lr_cuda_list_places places;
    float *numbers;      /* numbers of all frames: images for a forward projection, sums for a back-projection */
    float *partial;      /* for a forward projection: sums of each slab */
    float *values;       /* output of a forward projection, input of a back-projection */
    bool values_are_one; /* back-projection: true = all values are 1, and `values` is not read */
    void *stream;        /* a cudaStream_t */
} lr_cuda_list_pass;

/* A stable sort of numbers by keys, from keys[0] and numbers[0] to keys[1] and numbers[1]. */
typedef struct lr_cuda_list_sort {
    uint32_t *keys[2];
    int32_t *numbers[2];
    int32_t count, bits; /* bits: number of the keys' lowest bits to sort by */
    void *room;          /* room_bytes of memory; lr_cuda_list_sort_room sets room_bytes */
    int64_t room_bytes;
    void *stream;
} lr_cuda_list_sort;

int lr_cuda_list_sort_room(int64_t most, int64_t *bytes);
int lr_cuda_launch_list_sort(const lr_cuda_list_sort *sort);

/* Arrays of events, and the numbers in whose order they are copied: to[k] = from[numbers[k]]. */
typedef struct lr_cuda_list_gather {
    const int32_t *numbers;
    const int32_t *from[4];
    int32_t *to[4];
    int32_t num_arrays, count;
    void *stream;
} lr_cuda_list_gather;

int lr_cuda_launch_list_gather(const lr_cuda_list_gather *gather);

/* Sorts the events of a group by the first and the last slice that their lines cross. */
typedef struct lr_cuda_list_ordering {
    lr_cuda_list_pass pass; /* its events are those of the group */
    int32_t axis, has_tof, count;
    uint32_t *keys;                    /* [count] list_keys in order.cu */
    int32_t *numbers;                  /* [count] 0, 1, ... */
    struct lr_listmode_extent *pieces; /* pieces of LR_CUDA_LIST_PIECE events, in the sorted order */
    lr_cuda_list_line *lines;          /* [count]; NULL = lines are not stored */
    lr_cuda_list_path *paths;          /* like `lines`, for exact elements */
} lr_cuda_list_ordering;

/* Steps of ordering. KEYS sets keys and numbers. After sorting, BOUNDS finds the pieces from the keys. When the group's
 * events have been sorted, LINES makes their lines or paths. */
enum lr_cuda_list_order_step { LR_CUDA_LIST_KEYS, LR_CUDA_LIST_BOUNDS, LR_CUDA_LIST_LINES };

int lr_cuda_launch_list_order(const lr_cuda_list_ordering *ordering, enum lr_cuda_list_order_step step);

/* A pair of modules i and j, with its mask of lr_coincidence_masks. */
typedef struct lr_cuda_list_pair {
    int64_t begin;      /* number of the pair's first LOR */
    int32_t first[2];   /* numbers of the first crystals of i and j */
    int32_t i[2], j[2]; /* numbers of crystals along u and v */
    int32_t crystals_j;
    uint32_t mask, words[2]; /* mask: LR_MASK_...; words: index of the first word of each of the mask's sets */
    double areas_mm2[2][3];  /* faces of crystals of i and j (lr_listmode_faces); 0 = lines have no weights */
} lr_cuda_list_pair;

enum { LR_CUDA_LIST_MASK_ALL = 0, LR_CUDA_LIST_MASK_FULL = 2 };

/* The lines of a sample: struct lr_listmode_sample. */
typedef struct lr_cuda_list_drawing {
    const lr_cuda_list_pair *pairs; /* [num_pairs], in ascending order */
    const uint32_t *words;
    int64_t num_pairs, num_lors;
    double stride;
    uint64_t seed;
    int64_t first, step, count;
    int32_t *crystals[2]; /* [count] */
    const lr_cuda_list_hit *hits;
    double per_voxel; /* lr_listmode_faces */
    float *weights;   /* [count] receives solid angles; NULL = none */
    void *stream;
} lr_cuda_list_drawing;

int lr_cuda_launch_list_draw(const lr_cuda_list_drawing *drawing);

/* Partition and sort of a range's events, which are in the caller's order. */
typedef struct lr_cuda_list_arranging {
    lr_cuda_list_events events; /* its member `number` is not read */
    bool has_kinds;             /* false = all crystals are of kind 0 */
    int32_t count;
    uint32_t *keys;           /* [count] */
    const int32_t *order;     /* [count] numbers of the events after partitioning */
    int32_t *numbers;         /* [count] 0, 1, ... */
    unsigned int *groups;     /* [LR_CUDA_LIST_GROUPS] number of events of each group */
    int32_t begin, end, axis; /* events and axis of a group */
    void *stream;
} lr_cuda_list_arranging;

/* lr_cuda_launch_list_groups sets each event's key to its group, sets `numbers` to 0, 1, 2 and so on, and counts the
 * events of each group. After partitioning, lr_cuda_launch_list_centres sets the keys of one group to the events'
 * centres along the group's axis. Results have the same bits as on the host. */
int lr_cuda_launch_list_groups(const lr_cuda_list_arranging *arranging);
int lr_cuda_launch_list_centres(const lr_cuda_list_arranging *arranging);

/* A copy between an image in the grid's order and the frames that have events. */
typedef struct lr_cuda_list_framing {
    lr_cuda_list_frame frames[LR_CUDA_LIST_AXES];
    int32_t size[3];
    float *image, *numbers;
    int64_t num_numbers; /* count of numbers in all frames */
    void *stream;
} lr_cuda_list_framing;

/* An event as a record: all its data are together. */
typedef struct lr_cuda_list_record {
    int32_t a, b;
    float tof_mm;
    int32_t number;
} lr_cuda_list_record;

/* The paper's steps, for the events of a range, or of one of its groups. */
typedef struct lr_cuda_list_step {
    lr_cuda_list_pass pass;             /* its events are those of the range or group */
    const lr_cuda_list_record *records; /* the events as records; NULL = they are in the pass's arrays */
    int32_t count;
    int32_t axis;       /* axis of all events, whose footprints then have the same size; -1 = events have different
                           axes */
    bool is_cached;     /* true: slices are in shared memory; false: threads read `image`, in the grid's order */
    bool skips;         /* true if slices that no line of the block crosses are skipped */
    bool is_fast;       /* true for faster, less accurate arithmetic */
    int32_t tile_bytes; /* bytes of shared memory */
    float *image;
    int32_t size[3]; /* size of the grid */
} lr_cuda_list_step;

/* A forward projection writes values. A back-projection adds to the numbers of the frames, or to the image. */
int lr_cuda_launch_list_step(const lr_cuda_list_step *step, bool is_back);

/* Copies the image into the frames, with zeros around it. */
int lr_cuda_launch_list_fill(const lr_cuda_list_framing *framing);

/* Sets the image to the sum of the frames. */
int lr_cuda_launch_list_add(const lr_cuda_list_framing *framing);

/* Launches two kernels. The first sets `partial` to the sums of each job's events. The second adds up these sums over
 * slabs, and sets `values`. */
int lr_cuda_launch_list_forward(const lr_cuda_list_pass *pass);

/* Adds the back-projection to the numbers of the frames. */
int lr_cuda_launch_list_back(const lr_cuda_list_pass *pass);

/* Passes of exact elements. A forward projection writes values, a back-projection adds to the numbers of the frames.
 * Both run by jobs if frames are tiled, otherwise by chunks. */
int lr_cuda_launch_exact_forward(const lr_cuda_list_pass *pass);
int lr_cuda_launch_exact_back(const lr_cuda_list_pass *pass);

struct lr_listmode_visitor; /* listmode/rows.h */

/* Visits the elements of a chunk that has one event. The pass's pointers are addresses of the host. size: the grid's
 * size. */
void lr_cuda_list_visit(const lr_cuda_list_pass *pass, const int32_t size[3], const lr_cuda_list_chunk *event,
                        const struct lr_listmode_visitor *visitor);

#ifdef __cplusplus
}
#endif
