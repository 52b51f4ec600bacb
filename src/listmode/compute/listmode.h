/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `compute` backend of the family `listmode` (docs/method/listmode.md, "Backend compute"). Events stay on the
 * device if they fit. Lines are computed from the events chunk by chunk. Shaders follow the lines through the slices
 * of the image. */
#ifndef LR_LISTMODE_COMPUTE_LISTMODE_H
#define LR_LISTMODE_COMPUTE_LISTMODE_H

#include "device/place.h"
#include "gl/pass.h"
#include "gl/timer.h"
#include "listmode/backend.h"
#include "listmode/rows.h"
#include "listmode/schedule.h"

/* The programs of the backend. With the exact kernel, a program is replaced by its version for exact elements if there
 * is such a version. */
enum lr_listmode_program {
    LR_LISTMODE_PREPARE,
    LR_LISTMODE_EXPONENTS,
    LR_LISTMODE_USUAL,
    LR_LISTMODE_TO_SLICES,
    LR_LISTMODE_TO_GRID,
    LR_LISTMODE_FORWARD, /* forward directly, then by slabs */
    LR_LISTMODE_FORWARD_SLABS,
    LR_LISTMODE_BACK,
    LR_LISTMODE_BOUND,
    LR_LISTMODE_ELEMENTS,
    LR_LISTMODE_CACHED_VALUES, /* programs for cached lines */
    LR_LISTMODE_CACHED_FORWARD,
    LR_LISTMODE_CACHED_BACK,
    LR_LISTMODE_CACHED_BOUND,
    LR_LISTMODE_CACHED_OTHERS,
    LR_LISTMODE_NUM_PROGRAMS
};

/* A program's number: each has a version for lines without time of flight, and one for lines with it. */
static inline int lr_listmode_for(enum lr_listmode_program which, bool has_tof)
{
    return 2 * (int)which + (has_tof ? 1 : 0);
}

/* Sizes in bytes of data on the device. LR_LISTMODE_ENDS_BYTES is for the two ends of a line, if lines are given by
 * their ends. Lines are longer with bins of time of flight, and with the exact kernel. */
enum {
    LR_LISTMODE_EVENT_BYTES = 16,
    LR_LISTMODE_ENDS_BYTES = 64,
    LR_LISTMODE_LINE_BYTES = 64,
    LR_LISTMODE_BINNED_LINE_BYTES = 80,
    LR_LISTMODE_EXACT_LINE_BYTES = 240
};

/* A part of the events on the device. */
struct lr_listmode_segment {
    struct gl_buffer *events;
    struct gl_buffer *ends;  /* two points for each event, the ends of its line; NULL = lines join crystals */
    struct gl_buffer *kinds; /* the kinds of these points; NULL = all are of kind 0, or `ends` is NULL */
};

/* All events on the device. */
struct lr_listmode_device_events {
    struct lr_listmode_segment *segments; /* owned [num_segments]; if not all events fit, one segment for the current
                                           * events */
    int num_segments;
    int64_t segment_events;
    /* Owned [count]: each device event's index in the arrays. NULL = the device has the order of the arrays. */
    uint32_t *order;
    struct lr_listmode_pieces pieces; /* the pieces in this order; used until the jobs have been made */
    bool is_streamed;
    int64_t streamed_begin, streamed_end; /* streamed events on the device */
    struct gl_buffer *crystals, *sigmas, *kinds;
    struct gl_buffer *modules; /* NULL if elements are not exact */
};

/* State that only the exact kernel uses. */
struct lr_listmode_exact {
    bool is_leaning;      /* modules share no axial direction */
    int exponent;         /* 2^exponent exceeds every element */
    int point_bits;       /* log2 of the ratio of a voxel's element to a sample point's share, in bits */
    int64_t plane_points; /* most points of one line in one plane of sample points */
    int64_t pieces;       /* most pieces of a face */
};

/* Work of a workgroup, in the layout of shaders/listmode/job.glsl. */
struct lr_listmode_job {
    int32_t lines[4];  /* index of the first line, number of lines, axis */
    int32_t slices[4]; /* first slice, and one after the last */
};

/* Jobs of all ranges. In range r, jobs for events without time of flight begin at first[2 r], and jobs for events
 * with time of flight begin at first[2 r + 1]. */
struct lr_listmode_jobs {
    struct gl_buffer *buffer;
    int64_t *first; /* owned [2 ranges + 1] */
};

/* Lines that are computed once, before the first projection, and further data that projections of cached lines need.
 * All members are zero if lines are not cached. */
struct lr_listmode_line_cache {
    struct gl_buffer *lines, *values, *others; /* [events]: a line, a value and a number for each event */
    struct lr_listmode_jobs forward, back;
    bool has_lines[3];   /* [axis]: true if there are lines across it */
    int64_t num_untimed; /* events without time of flight */
    bool *are_taken;     /* owned [ranges]: the range takes part in the current back-projection */
    bool are_found;      /* the lines are found */
};

struct lr_listmode_compute {
    struct lr_listmode_backend_params params;
    lr_place *place;                                               /* a reference is kept */
    bool owns_place;                                               /* the place was opened for this backend */
    struct gl_context *ctx;                                        /* context of the place */
    struct gl_program *own_programs[2 * LR_LISTMODE_NUM_PROGRAMS]; /* each program is created when it is first used */
    struct gl_program **programs; /* own_programs, or the programs of the backend whose sensitivity this one computes */
    struct gl_stopwatch *watch;
    struct lr_listmode_device_events events;
    struct gl_buffer *lines; /* lines of the current events */
    int64_t most_lines;      /* capacity of `lines` */
    struct lr_listmode_exact exact;
    struct gl_buffer *slices, *sums, *scale, *table; /* if lines are cached, slices and sums cover all axes */
    bool has_sums;                                   /* sums may not be zero, since a back-projection failed */
    bool caches_lines;
    struct lr_listmode_line_cache cache;
    double largest_elements[LR_LISTMODE_GROUPS]; /* [group]; 0: no events in the group, or the exact kernel */
};

/* Consecutive events of one group that a pass handles together. */
struct lr_listmode_chunk {
    int64_t begin, end;
    int axis;
    bool has_tof;
};

/* --- the block of shaders/listmode/pass.glsl --- */

struct lr_listmode_pass {
    int32_t size[4], strides[4], window[4], slab[4];
    float voxel_mm[4], tube[4], unit[4];
};
_Static_assert(sizeof(struct lr_listmode_pass) == 112, "the shaders' layout");

struct lr_listmode_pass lr_listmode_pass_of(const struct lr_listmode_compute *compute, int axis);

/* Adds program `number` (lr_listmode_for) and its uniforms to a pass, and runs the pass. errors: LR_FAILED, LR_NO_DEVICE. */
lr_status lr_listmode_run_program(struct lr_listmode_compute *compute, int number, const void *uniforms, int64_t bytes,
                                  struct gl_pass *pass);

/* Runs a program with the uniforms above and the barriers that most passes need. */
lr_status lr_listmode_run(struct lr_listmode_compute *compute, int number, const struct lr_listmode_pass *uniforms,
                          struct gl_pass *pass);

/* Returns the program; creates it when it is first used. errors: NULL, logged. */
struct gl_program *lr_listmode_program(struct lr_listmode_compute *compute, int number);

static inline bool lr_listmode_is_exact(const struct lr_listmode_compute *compute)
{
    return compute->params.model->kernel == LR_LISTMODE_EXACT;
}

/* True if times of flight are in bins. */
static inline bool lr_listmode_has_bins(const struct lr_listmode_compute *compute)
{
    return compute->params.events->bin_mm != NULL;
}

/* Bytes of a line. */
static inline int64_t lr_listmode_line_bytes(const struct lr_listmode_compute *compute)
{
    return lr_listmode_is_exact(compute)   ? LR_LISTMODE_EXACT_LINE_BYTES
           : lr_listmode_has_bins(compute) ? LR_LISTMODE_BINNED_LINE_BYTES
                                           : LR_LISTMODE_LINE_BYTES;
}

/* The number of 32-bit words in a workgroup's shared memory. */
int lr_listmode_cells(const struct lr_listmode_compute *compute);

/* The largest number of voxels of a slice in which a line has shares; with the exact kernel, the largest number of
 * points of a plane. A shader's loops have this many rounds. */
int64_t lr_listmode_most_shares(const struct lr_listmode_compute *compute);

/* --- events --- */

/* Bytes of an event on the device. If lines are given by their ends, the ends are included. */
int64_t lr_listmode_event_bytes(const struct lr_listmode_events *events);

/* Uploads the events that fit into `bytes`. The context is current, here and below. errors: LR_FAILED, LR_NO_DEVICE. */
lr_status lr_listmode_device_events_init(struct lr_listmode_compute *compute, int64_t bytes);

/* A thread adds LR_LISTMODE_LINES_OF_THREAD lines, one after the other. Pieces have LR_LISTMODE_PIECE events. */
enum { LR_LISTMODE_LINES_OF_THREAD = 32, LR_LISTMODE_PIECE = 256 };

/* Sets the chunk to the next events of a group. Events are taken from chunk->end on; the group ends at `end`.
 * Returns false if no events are left. */
bool lr_listmode_next_chunk(const struct lr_listmode_compute *compute, int64_t end, struct lr_listmode_chunk *chunk);

/* --- lines --- */

/* The values of a range's lines. */
struct lr_listmode_selected {
    const struct lr_listmode_places *places;
    const struct gl_buffer *map; /* map of the indices of values, or NULL */
    struct gl_range values;      /* values; buffer NULL = all are 1 */
    int64_t values_first;        /* index in `values` of the first value of the window */
    int64_t window[2];           /* the window: indices of the range's current values, first, and one after the last */
    bool only_large;             /* follows only lines whose values are larger than usual; other lines get no slices */
};

/* Computes the lines of a chunk. selected: NULL = all events of the chunk. are_cached: lines are stored in
 * compute->cache.lines, each at its event's index; otherwise they are stored in compute->lines. */
lr_status lr_listmode_prepare(struct lr_listmode_compute *compute, const struct lr_listmode_chunk *chunk,
                              const struct lr_listmode_selected *selected, bool are_cached);

/* lr_listmode_all_slices returns the number of slices across an axis. lr_listmode_slices_at_once returns the number of
 * slices that a thread can handle in one pass; 0 = not even one slice. With the exact kernel, planes of sample points
 * replace slices. */
int lr_listmode_all_slices(const struct lr_listmode_compute *compute, int axis);
int lr_listmode_slices_at_once(const struct lr_listmode_compute *compute, int axis);

/* Sets uniforms->slab to the slab of a workgroup: several slices, or bands of rows of one slice. */
void lr_listmode_cut_slabs(const struct lr_listmode_compute *compute, struct lr_listmode_pass *uniforms);

/* --- cached lines --- */

/* True if lines can be cached. bytes: memory for all data on the device. */
bool lr_listmode_may_cache(const struct lr_listmode_compute *compute, int64_t bytes);

/* Fills compute->cache, except for the lines; events are on the device.
 * errors: LR_FAILED, LR_NO_DEVICE. */
lr_status lr_listmode_cache_init(struct lr_listmode_compute *compute);

/* True if each projection computes its lines anew. */
bool lr_listmode_finds_lines(void);

/* lr_listmode_job_threads returns the number of threads of a workgroup, for forward or back projections.
 * lr_listmode_most_jobs returns the largest number of jobs of a back-projection, by default `most`. */
int lr_listmode_job_threads(bool forward);
int lr_listmode_most_jobs(int most);

/* True if workgroups add zero terms instead of branching around them. */
bool lr_listmode_adds_zeros(const struct lr_listmode_compute *compute);

/* --- projections, and rows --- */

/* The functions of struct lr_backend_fns. in, out: image and values if is_forward; otherwise values and image. */
lr_status lr_listmode_project(struct lr_listmode_compute *compute, bool is_forward, const lr_selection *part,
                              const lr_vector *in, lr_vector *out);
lr_status lr_listmode_compute_rows(struct lr_listmode_compute *compute, const struct lr_rows *request,
                                   const lr_row_sink *sink);

/* --- a projection in progress --- */

/* Most workgroups of a pass whose threads handle several items each. */
enum { LR_LISTMODE_MOST_GROUPS = 1024 };

struct lr_listmode_projection {
    struct lr_listmode_compute *compute;
    const lr_selection *part;
    const char *what;
    bool forward, only_large;         /* only_large: finds only terms of values that are larger than usual */
    const lr_vector *values;          /* at the place; NULL = all values are 1 */
    int axis;                         /* current axis */
    struct lr_listmode_pass uniforms; /* uniforms of the current axis */
    struct lr_listmode_places places; /* indices of the current range's values */
    struct gl_buffer *map;            /* map of these indices, or NULL */
    struct lr_listmode_selected selected;
    double done, total; /* selected events */
};

/* Returns numbers floats[0] .. floats[1] - 1 of a vector at the place as a pass binds them. first: index in the range of
 * the first one. */
struct gl_range lr_listmode_align(const lr_vector *vector, const int64_t floats[2], int64_t *first);

/* Copies an image from the grid's order to slices, across the current axis, or across all axes if lines are cached.
 * to_grid: moves the sums of slices to the image instead, or adds them to it (is_added), and clears them. */
lr_status lr_listmode_reorder(struct lr_listmode_projection *p, const lr_vector *image, bool to_grid, bool is_added);

/* Sets uniforms->unit: bits and exponent of the sums of a projection. */
void lr_listmode_find_unit(const struct lr_listmode_projection *p, struct lr_listmode_pass *uniforms);

/* Finds the usual exponent of the values, and fills compute->scale except for its largest term of larger values.
 * values: NULL = all are 1. */
lr_status lr_listmode_find_usual(struct lr_listmode_projection *p, const lr_vector *values);

/* Calls `take` for each range that has selected events. If the values of a range do not fit into one binding, they are
 * divided into parts that fit, and `take` is called once for each part. errors: also those of `take`. */
typedef lr_status lr_listmode_range_fn(struct lr_listmode_projection *p, int64_t r);
lr_status lr_listmode_each_range(struct lr_listmode_projection *p, lr_listmode_range_fn *take);

/* Does the same for one range, for which the indices of values are already known. */
lr_status lr_listmode_take_range(struct lr_listmode_projection *p, int64_t r, lr_listmode_range_fn *take);

/* Projects with cached lines. values: NULL = all are 1. */
lr_status lr_listmode_cached_project(struct lr_listmode_projection *p, const lr_vector *image, const lr_vector *values);

#endif
