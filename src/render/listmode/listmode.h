/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `compute` backend of the family `listmode` (docs/method/listmode.md, "Backend compute"): events stay on the
 * device as long as they fit, lines are made of them chunk by chunk, and shaders follow the lines through the slices
 * of the image. */
#ifndef LR_RENDER_LISTMODE_LISTMODE_H
#define LR_RENDER_LISTMODE_LISTMODE_H

#include "gl/pass.h"
#include "gl/timer.h"
#include "listmode/backend.h"
#include "listmode/rows.h"
#include "vector/place.h"

enum lr_listmode_program {
    LR_LISTMODE_PREPARE = 0,
    LR_LISTMODE_EXPONENTS,
    LR_LISTMODE_USUAL,
    LR_LISTMODE_TO_SLICES,
    LR_LISTMODE_TO_GRID,
    LR_LISTMODE_FORWARD, /* directly, then by slabs; each is followed by its program for time of flight */
    LR_LISTMODE_FORWARD_TOF,
    LR_LISTMODE_FORWARD_SLABS,
    LR_LISTMODE_FORWARD_SLABS_TOF,
    LR_LISTMODE_BACK,
    LR_LISTMODE_BACK_TOF,
    LR_LISTMODE_BOUND,
    LR_LISTMODE_BOUND_TOF,
    LR_LISTMODE_ELEMENTS,
    LR_LISTMODE_ELEMENTS_TOF,
    LR_LISTMODE_EXACT_PREPARE, /* programs for exact elements, in the same order as above */
    LR_LISTMODE_EXACT_FORWARD,
    LR_LISTMODE_EXACT_FORWARD_TOF,
    LR_LISTMODE_EXACT_BACK,
    LR_LISTMODE_EXACT_BACK_TOF,
    LR_LISTMODE_EXACT_BOUND,
    LR_LISTMODE_EXACT_BOUND_TOF,
    LR_LISTMODE_EXACT_ELEMENTS,
    LR_LISTMODE_EXACT_ELEMENTS_TOF,
    LR_LISTMODE_CACHED_TO_SLICES, /* programs for cached lines */
    LR_LISTMODE_CACHED_TO_GRID,
    LR_LISTMODE_CACHED_VALUES,
    LR_LISTMODE_CACHED_FORWARD,
    LR_LISTMODE_CACHED_FORWARD_TOF,
    LR_LISTMODE_CACHED_BACK,
    LR_LISTMODE_CACHED_BACK_TOF,
    LR_LISTMODE_CACHED_BOUND,
    LR_LISTMODE_CACHED_BOUND_TOF,
    LR_LISTMODE_CACHED_OTHERS,
    LR_LISTMODE_CACHED_OTHERS_TOF,
    LR_LISTMODE_NUM_PROGRAMS
};

/* Bytes on the device of an event; of a line without bins of time of flight, with them, and of the exact kernel. */
enum {
    LR_LISTMODE_EVENT_BYTES = 16,
    LR_LISTMODE_LINE_BYTES = 64,
    LR_LISTMODE_BINNED_LINE_BYTES = 80,
    LR_LISTMODE_EXACT_LINE_BYTES = 240
};

/* The arranged events on the device. */
struct lr_listmode_device_events {
    struct gl_buffer **segments; /* owned [num_segments]; a single one for the current events if not all fit */
    int num_segments;
    int64_t segment_events;
    /* Owned [count]: the number in the arrays of each event on the device; NULL: the same order as in the arrays. */
    uint32_t *order;
    uint32_t *keys; /* owned [count]: the keys of this order, until jobs are made; else NULL */
    bool is_streamed;
    int64_t streamed_begin, streamed_end; /* streamed events on the device */
    struct gl_buffer *crystals, *sigmas, *kinds;
    struct gl_buffer *modules; /* NULL unless elements are exact */
};

/* State of the exact kernel alone. */
struct lr_listmode_exact {
    bool is_leaning;      /* modules share no axial direction */
    int exponent;         /* 2^exponent is above every element */
    int point_bits;       /* bits by which a sample point's share is below a voxel's element */
    int64_t plane_points; /* most points of a line in a plane of sample points */
    int64_t pieces;       /* most pieces of a face */
};

/* A group's work, as shaders/listmode/job.glsl has it. */
struct lr_listmode_job {
    int32_t lines[4];  /* the first one, their number, their axis */
    int32_t slices[4]; /* the first one, and the end */
};

/* Jobs of range r without and with time of flight begin at first[2 r] and first[2 r + 1]. */
struct lr_listmode_jobs {
    struct gl_buffer *buffer;
    int64_t *first; /* owned [2 ranges + 1] */
};

/* Lines that are found once, before the first projection, and data that projections need in addition. Zero if lines
 * are not cached. */
struct lr_listmode_line_cache {
    struct gl_buffer *lines, *values, *others; /* a line, a value and a number for each event */
    struct lr_listmode_jobs forward, back;
    bool has_lines[3];   /* across an axis */
    int64_t num_untimed; /* events without time of flight */
    bool *are_taken;     /* owned [ranges] in the current back-projection */
    bool are_found;      /* the lines are found */
    bool are_sums_clear; /* false after a call that failed */
};

struct lr_listmode_compute {
    struct lr_listmode_backend_params params;
    lr_place *place;                                           /* kept */
    bool owns_place;                                           /* the place was opened for this backend */
    struct gl_context *ctx;                                    /* context of the place */
    struct gl_program *own_programs[LR_LISTMODE_NUM_PROGRAMS]; /* each made when first needed */
    struct gl_program **programs; /* own_programs, or the programs of the backend whose sensitivity this one makes */
    struct gl_stopwatch *watch;
    struct lr_listmode_device_events events;
    struct gl_buffer *lines; /* lines of the current events */
    int64_t most_lines;      /* capacity of `lines` */
    struct lr_listmode_exact exact;
    struct gl_buffer *slices, *sums, *scale, *table; /* slices, sums: across all axes if lines are cached */
    bool caches_lines;
    struct lr_listmode_line_cache cache;
    struct gl_buffer *image; /* in the grid's order, of vectors on the host; made when first needed */
    double largest_elements[LR_LISTMODE_GROUPS]; /* of groups that have events; 0 with the exact kernel */
    int bits;                                    /* of the sums of a projection: a term of 1 is 2^bits */
    double device_seconds;
};

/* Arranged events of one group that are worked on at once. */
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

/* Adds program and uniforms to a pass, and runs it. errors: LR_FAILED, LR_NO_DEVICE. */
lr_status lr_listmode_run_program(struct lr_listmode_compute *compute, enum lr_listmode_program which,
                                  const void *uniforms, int64_t bytes, struct gl_pass *pass);

/* Runs a program with the block above and the barriers that most passes need. */
lr_status lr_listmode_run(struct lr_listmode_compute *compute, enum lr_listmode_program which,
                          const struct lr_listmode_pass *uniforms, struct gl_pass *pass);

/* The program, started if need be. errors: NULL, logged. */
struct gl_program *lr_listmode_program(struct lr_listmode_compute *compute, enum lr_listmode_program which);

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

/* Words of the memory that a group shares. */
int lr_listmode_cells(const struct lr_listmode_compute *compute);

/* Most shares of a slice, for lines of any direction, which are rounds of a shader's loops; with the exact kernel
 * points of a plane. */
int64_t lr_listmode_most_shares(const struct lr_listmode_compute *compute);

/* --- events --- */

/* Uploads the events that fit into `bytes`. The context is current, here and below. errors: LR_FAILED, LR_NO_DEVICE. */
lr_status lr_listmode_device_events_init(struct lr_listmode_compute *compute, int64_t bytes);

/* Finds events->order, group by group, and the keys. There must be fewer than 2^32 events.
 * errors: LR_FAILED if memory runs out. */
lr_status lr_listmode_order(struct lr_listmode_compute *compute);

/* Slices that the line of an event with this key meets: the first one, and the end. */
void lr_listmode_key_slices(uint32_t key, int32_t slices[2]);

/* Lines that a thread adds one after the other. */
enum { LR_LISTMODE_LINES_OF_THREAD = 32 };

/* Most slices across an axis that keys can hold. */
enum { LR_LISTMODE_KEY_SLICES = (1 << 15) - 1 };

/* The next events of a group that ends at `end`, from chunk->end on; false: there are no more. */
bool lr_listmode_next_chunk(const struct lr_listmode_compute *compute, int64_t end, struct lr_listmode_chunk *chunk);

/* --- lines --- */

/* The values of a range's lines. */
struct lr_listmode_selected {
    const struct lr_listmode_places *places;
    const struct gl_buffer *map; /* of the places, or NULL */
    struct gl_range values;      /* buffer NULL: 1 each */
    int64_t values_first;        /* of the range, at the begin of the window */
    int64_t window[2];           /* current places of the range: the first one, and the end */
    bool only_large;             /* lines with larger values than usual; the others have no slices */
};

/* Finds the lines of a chunk. selected NULL: all its events. are_cached: the lines go to the places of their events
 * in compute->cache.lines; else to compute->lines. */
lr_status lr_listmode_prepare(struct lr_listmode_compute *compute, const struct lr_listmode_chunk *chunk,
                              const struct lr_listmode_selected *selected, bool are_cached);

/* Slices across an axis, and the number that a thread may go through in one pass; 0: not even one. With the exact
 * kernel planes of sample points. */
int lr_listmode_all_slices(const struct lr_listmode_compute *compute, int axis);
int lr_listmode_slices_at_once(const struct lr_listmode_compute *compute, int axis);

/* Finds the slab of a group, in uniforms->slab: several slices, or bands of rows of one slice. */
void lr_listmode_cut_slabs(const struct lr_listmode_compute *compute, struct lr_listmode_pass *uniforms);

/* --- cached lines --- */

/* True if lines can be cached. bytes: for all data on the device. */
bool lr_listmode_may_cache(const struct lr_listmode_compute *compute, int64_t bytes);

/* Fills compute->cache, except for the lines; events are on the device.
 * errors: LR_FAILED, LR_NO_DEVICE. */
lr_status lr_listmode_cache_init(struct lr_listmode_compute *compute);

/* True if each projection finds its lines anew. */
bool lr_listmode_finds_lines(void);

/* Threads of a group, forward or back; most jobs of a back-projection, by default `most`. */
int lr_listmode_job_threads(bool forward);
int lr_listmode_most_jobs(int most);

/* True if groups add terms of 0 rather than branch around them. */
bool lr_listmode_adds_zeros(const struct lr_listmode_compute *compute);

/* --- exact elements --- */

/* Fills compute->exact. */
void lr_listmode_exact_init(struct lr_listmode_compute *compute);

/* --- projections, and rows --- */

/* The functions of struct lr_backend_fns. in, out: an image and values, or values and an image. */
lr_status lr_listmode_project(struct lr_listmode_compute *compute, bool is_forward, const lr_selection *part,
                              const lr_vector *in, lr_vector *out);
lr_status lr_listmode_compute_rows(struct lr_listmode_compute *compute, const struct lr_rows *request,
                                   const lr_row_sink *sink);

/* --- a projection in progress --- */

/* A projection in progress. */

/* Most groups of passes whose threads go through several items. */
enum { LR_LISTMODE_MOST_GROUPS = 1024 };

/* Values of a call on the device; buffer NULL: 1 each. */
struct lr_listmode_values {
    struct gl_buffer *buffer;
    int64_t offset; /* bytes */
    bool is_ours;
};

struct lr_listmode_projection {
    struct lr_listmode_compute *compute;
    const lr_selection *part;
    const char *what;
    bool forward, only_large; /* only_large: looks for the terms of large values */
    struct lr_listmode_values values;
    int axis;                         /* current axis */
    struct lr_listmode_pass uniforms; /* of the axis */
    struct lr_listmode_places places; /* of the current range */
    struct gl_buffer *map;            /* of the places, or NULL */
    struct lr_listmode_selected selected;
    double done, total; /* selected events */
};

/* A range of a buffer that begins at the driver's alignment. first: number of the first float asked for, in the
 * range. */
struct gl_range lr_listmode_align(const struct lr_listmode_projection *p, const struct lr_listmode_values *values,
                                  const int64_t floats[2], int64_t *first);

/* An image in the grid's order, at the place or in compute->image. */
struct lr_listmode_values lr_listmode_image(const struct lr_listmode_projection *p, const lr_vector *image);

/* Bits and exponent of the sums of a projection, in uniforms->unit. */
void lr_listmode_find_unit(const struct lr_listmode_projection *p, struct lr_listmode_pass *uniforms);

/* Finds a bound of most values: fills compute->scale, except for the terms of larger values. values NULL: all are 1. */
lr_status lr_listmode_find_usual(struct lr_listmode_projection *p, const lr_vector *values);

/* Calls take for each range that has selected events, once for every stretch of its values that fits into one
 * binding. errors: also those of take. */
typedef lr_status lr_listmode_range_fn(struct lr_listmode_projection *p, int64_t r);
lr_status lr_listmode_each_range(struct lr_listmode_projection *p, lr_listmode_range_fn *take);

/* The same for one range, whose places are found. */
lr_status lr_listmode_take_range(struct lr_listmode_projection *p, int64_t r, lr_listmode_range_fn *take);

/* Projects with cached lines. values NULL: ones. */
lr_status lr_listmode_cached_project(struct lr_listmode_projection *p, const lr_vector *image, const lr_vector *values);

#endif
