/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `compute` backend of the family `listmode` (docs/method/listmode.md, "Backend compute"). Events stay on the
 * device if they fit. Lines are computed from the events chunk by chunk. Shaders follow the lines through the slices
 * of the image. */
#pragma once

#include "device/place.h"
#include "gl/pass.h"
#include "gl/timer.h"
#include "listmode/backend.h"
#include "listmode/rows.h"
#include "listmode/schedule.h"

/* The programs of the backend. Some programs have another version for the exact kernel. */
enum lr_listmode_program {
    LR_LISTMODE_PREPARE,
    LR_LISTMODE_EXPONENTS,
    LR_LISTMODE_USUAL,
    LR_LISTMODE_TO_SLICES,
    LR_LISTMODE_TO_GRID,
    LR_LISTMODE_FORWARD, /* forward projection: each line by itself, then slab by slab */
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

/* Returns the number of a program. Each program has a version for lines without time of flight, and one for lines with
 * it. */
static inline int lr_listmode_for(enum lr_listmode_program which, bool has_tof)
{
    return 2 * (int)which + (has_tof ? 1 : 0);
}

/* Sizes of data on the device, in bytes. LR_LISTMODE_ENDS_BYTES: both ends of a line that is given by its ends. A line
 * takes more bytes with bins of time of flight, and with the exact kernel. */
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
    struct gl_buffer *ends;  /* two points for each event, the ends of its line; NULL if lines join crystals */
    struct gl_buffer *kinds; /* the kinds of these points; NULL = all are of kind 0, or there is no `ends` */
};

/* All events on the device. */
struct lr_listmode_device_events {
    struct lr_listmode_segment *segments; /* owned [num_segments]; a single segment for the current events if not all
                                             events fit */
    int num_segments;
    int64_t segment_events;
    /* Owned [count]: index in the events' arrays for each event on the device. NULL = the device has the order of the
     * arrays. */
    uint32_t *order;
    struct lr_listmode_pieces pieces; /* the pieces of the events in the device's order; used until the jobs have been
                                         made */
    bool is_streamed;
    int64_t streamed_begin, streamed_end; /* streamed events on the device */
    struct gl_buffer *crystals, *sigmas, *kinds;
    struct gl_buffer *modules; /* NULL if elements are not exact */
};

/* State that only the exact kernel uses. */
struct lr_listmode_exact {
    bool is_leaning;      /* true if no grid axis is an axis of all modules */
    int exponent;         /* 2^exponent is larger than every element */
    int point_bits;       /* log2 of the number of sample points of a voxel, rounded down */
    int64_t plane_points; /* largest number of points of one line in one plane of sample points */
    int64_t pieces;       /* largest number of pieces of a face */
};

/* The work of one workgroup, in the layout of shaders/listmode/job.glsl. */
struct lr_listmode_job {
    int32_t lines[4];  /* index of the first line, number of lines, axis */
    int32_t slices[4]; /* first slice, and one after the last */
};

/* The jobs of all ranges. In range r, jobs for events without time of flight begin at first[2 r], and jobs for events
 * with time of flight at first[2 r + 1]. */
struct lr_listmode_jobs {
    struct gl_buffer *buffer;
    int64_t *first; /* owned [2 ranges + 1] */
};

/* Lines that are computed once, before the first projection, and further data for projections of these lines. All
 * members are zero if lines are not cached. */
struct lr_listmode_line_cache {
    struct gl_buffer *lines, *values, *others; /* [events]: a line, a value, and a number in the list of unusual
                                                  values */
    struct lr_listmode_jobs forward, back;
    bool has_lines[3];   /* [axis]: true if there are lines whose slices are across this axis */
    int64_t num_untimed; /* events without time of flight */
    bool *are_taken;     /* owned [ranges]: true if the range takes part in the current back-projection */
    bool are_found;      /* true if the lines have been computed */
};

struct lr_listmode_compute {
    struct lr_listmode_backend_params params;
    lr_place *place; /* the backend holds a reference */
    bool owns_place; /* true if the place was opened for this backend */
    struct gl_context *ctx;
    struct gl_program *own_programs[2 * LR_LISTMODE_NUM_PROGRAMS]; /* each program is created when it is first used */
    struct gl_program **programs; /* own_programs, or the programs of the backend whose sensitivity this one computes */
    struct gl_stopwatch *watch;
    struct lr_listmode_device_events events;
    struct gl_buffer *lines; /* lines of the current events */
    int64_t most_lines;      /* capacity of `lines` */
    struct lr_listmode_exact exact;
    struct gl_buffer *slices, *sums, *scale, *table; /* if lines are cached, slices and sums cover all axes */
    bool has_sums;                                   /* true if sums may be nonzero, because a back-projection has
                                                        failed */
    bool caches_lines;
    struct lr_listmode_line_cache cache;
    double largest_elements[LR_LISTMODE_GROUPS]; /* [group]; 0 if the group has no events, and with the exact kernel */
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

/* Adds a program and its uniforms to a pass, and runs the pass. number: see lr_listmode_for. errors: LR_FAILED,
 * LR_NO_DEVICE. */
lr_status lr_listmode_run_program(struct lr_listmode_compute *compute, int number, const void *uniforms, int64_t bytes,
                                  struct gl_pass *pass);

/* Runs a program with the uniforms of struct lr_listmode_pass, and with the barriers that most passes need. */
lr_status lr_listmode_run(struct lr_listmode_compute *compute, int number, const struct lr_listmode_pass *uniforms,
                          struct gl_pass *pass);

/* Returns the program, and creates it at its first use. errors: NULL, logged. */
struct gl_program *lr_listmode_program(struct lr_listmode_compute *compute, int number);

static inline bool lr_listmode_is_exact(const struct lr_listmode_compute *compute)
{
    return compute->params.model->kernel == LR_LISTMODE_EXACT;
}

/* Returns true if times of flight are in bins. */
static inline bool lr_listmode_has_bins(const struct lr_listmode_compute *compute)
{
    return compute->params.events->bin_mm != NULL;
}

static inline int64_t lr_listmode_line_bytes(const struct lr_listmode_compute *compute)
{
    return lr_listmode_is_exact(compute)   ? LR_LISTMODE_EXACT_LINE_BYTES
           : lr_listmode_has_bins(compute) ? LR_LISTMODE_BINNED_LINE_BYTES
                                           : LR_LISTMODE_LINE_BYTES;
}

/* Returns the number of 32-bit words of shared memory in which a workgroup adds up voxels. */
int lr_listmode_cells(const struct lr_listmode_compute *compute);

/* Returns how many voxels of a slice can have a share of one line; with the exact kernel, how many points of a plane.
 * The shaders' loops run this many times. */
int64_t lr_listmode_most_shares(const struct lr_listmode_compute *compute);

/* --- events --- */

/* Returns the bytes of an event on the device, including the ends of its line if these are given. */
int64_t lr_listmode_event_bytes(const struct lr_listmode_events *events);

/* Uploads the events that fit into `bytes`. The context must be current in this call and in those below. errors:
 * LR_FAILED, LR_NO_DEVICE. */
lr_status lr_listmode_device_events_init(struct lr_listmode_compute *compute, int64_t bytes);

/* LR_LISTMODE_LINES_OF_THREAD: number of lines that a thread adds, one after the other. LR_LISTMODE_PIECE: number of
 * events of a piece. */
enum { LR_LISTMODE_LINES_OF_THREAD = 32, LR_LISTMODE_PIECE = 256 };

/* Sets the chunk to the next events of a group. They begin at chunk->end; the group ends at `end`. Returns false if no
 * events are left. */
bool lr_listmode_next_chunk(const struct lr_listmode_compute *compute, int64_t end, struct lr_listmode_chunk *chunk);

/* --- lines --- */

/* The values of a range's lines. */
struct lr_listmode_selected {
    const struct lr_listmode_places *places;
    const struct gl_buffer *map; /* map of the indices of values; NULL = the values are consecutive */
    struct gl_range values;      /* the values; if its buffer is NULL, all values are 1 */
    int64_t values_first;        /* index in `values` of the first value in `window` */
    int64_t window[2];           /* indices of the range's values that are bound now: first, and one after the last */
    bool only_large;             /* true if only lines with unusually large values are followed; other lines get no
                                    slices */
};

/* Computes the lines of a chunk. selected: NULL = all events of the chunk. are_cached: true = lines are stored in
 * compute->cache.lines, each at its event's index; false = in compute->lines. */
lr_status lr_listmode_prepare(struct lr_listmode_compute *compute, const struct lr_listmode_chunk *chunk,
                              const struct lr_listmode_selected *selected, bool are_cached);

/* lr_listmode_all_slices returns the number of slices across an axis. lr_listmode_slices_at_once returns how many
 * slices a thread can handle in one pass; 0 = not even one. With the exact kernel, both count planes of sample points
 * instead of slices. */
int lr_listmode_all_slices(const struct lr_listmode_compute *compute, int axis);
int lr_listmode_slices_at_once(const struct lr_listmode_compute *compute, int axis);

/* Sets uniforms->slab to the size of a workgroup's slab. A slab is several slices, or a band of rows of one slice. */
void lr_listmode_cut_slabs(const struct lr_listmode_compute *compute, struct lr_listmode_pass *uniforms);

/* --- cached lines --- */

/* Returns true if lines can be cached. bytes: memory for all data on the device. */
bool lr_listmode_may_cache(const struct lr_listmode_compute *compute, int64_t bytes);

/* Fills compute->cache, except for the lines. The events must be on the device. errors: LR_FAILED, LR_NO_DEVICE. */
lr_status lr_listmode_cache_init(struct lr_listmode_compute *compute);

/* Sizes of workgroups and dispatches. */
struct lr_listmode_settings {
    int forward_threads, back_threads; /* threads of a workgroup for cached lines */
    int most_jobs;                     /* largest number of jobs of a back-projection; 0 = the usual one */
    bool adds_zeros;  /* workgroups add terms that are zero, instead of branching around them; slower on a processor */
    bool finds_lines; /* each projection computes its lines anew */
};
struct lr_listmode_settings lr_listmode_settings_of(const struct lr_listmode_compute *compute);

/* --- projections, and rows --- */

/* The functions of struct lr_backend_fns. in, out: image and values if is_forward is true; otherwise values and
 * image. */
lr_status lr_listmode_project(struct lr_listmode_compute *compute, bool is_forward, const lr_selection *part,
                              const lr_vector *in, lr_vector *out);
lr_status lr_listmode_compute_rows(struct lr_listmode_compute *compute, const struct lr_rows *request,
                                   const lr_row_sink *sink);

/* --- a projection in progress --- */

/* The largest number of workgroups of a pass whose threads handle several items each. */
enum { LR_LISTMODE_MOST_GROUPS = 1024 };

struct lr_listmode_projection {
    struct lr_listmode_compute *compute;
    const lr_selection *part;
    const char *what;
    bool forward, only_large;         /* only_large: true if only a bound is found for the terms of unusually large
                                         values */
    const lr_vector *values;          /* at the backend's place; NULL = all values are 1 */
    int axis;                         /* current axis */
    struct lr_listmode_pass uniforms; /* uniforms of the current axis */
    struct lr_listmode_places places; /* indices of the current range's values */
    struct gl_buffer *map;            /* map of these indices, or NULL */
    struct lr_listmode_selected selected;
    double done, total; /* numbers of events: projected so far, and selected */
};

/* Returns numbers floats[0] .. floats[1] - 1 of a vector as a range that a pass can bind. vector: at the backend's
 * place. first: receives the index of number floats[0] in the bound range. */
struct gl_range lr_listmode_align(const lr_vector *vector, const int64_t floats[2], int64_t *first);

/* Copies an image from the grid's order to slices: across the current axis, or across all axes if lines are cached. If
 * to_grid is true, instead copies the sums of slices to the image, or adds them to it (is_added), and clears the
 * sums. */
lr_status lr_listmode_reorder(struct lr_listmode_projection *p, const lr_vector *image, bool to_grid, bool is_added);

/* Sets uniforms->unit, which has the bits and the exponent of the sums of a projection. */
void lr_listmode_find_unit(const struct lr_listmode_projection *p, struct lr_listmode_pass *uniforms);

/* Finds the exponent that nearly all values stay below, and fills compute->scale, except for the bound for the terms of
 * larger values. values: NULL = all are 1. */
lr_status lr_listmode_find_usual(struct lr_listmode_projection *p, const lr_vector *values);

/* Calls `take` for each range that has selected events. If the values of a range do not fit into one binding, they are
 * divided into parts that fit, and `take` is called once for each part. errors: also those of `take`. */
typedef lr_status lr_listmode_range_fn(struct lr_listmode_projection *p, int64_t r);
lr_status lr_listmode_each_range(struct lr_listmode_projection *p, lr_listmode_range_fn *take);

/* Calls `take` for one range whose indices of values are already known. */
lr_status lr_listmode_take_range(struct lr_listmode_projection *p, int64_t r, lr_listmode_range_fn *take);

/* Projects with cached lines. values: NULL = all values are 1. */
lr_status lr_listmode_cached_project(struct lr_listmode_projection *p, const lr_vector *image, const lr_vector *values);
