/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The columns method (docs/method/correspondence.md, "Columns"), for scanners whose modules share an axial direction
 * along a grid axis. Projections over module pairs need no atomics, because a sum is never shared: one thread adds up
 * the sum of a LOR (forward) or of a voxel (backward). Results have the same bits in every run. */
#pragma once

#include "correspondence/compute/method.h"
#include "correspondence/compute/rows/merge.h"
#include "correspondence/scene.h"
#include "correspondence/values.h"
#include "gl/pass.h"
#include "gl/timer.h"
#include "model/lors/pair_window.h"

#include <lr/vector.h>

/* The uniform block of shaders/correspondence/columns/scene.glsl. */
struct lr_columns_pass {
    int32_t num_points[4], num_samples[4], first[4], count[4];
    float spacing_mm[4], origin[4];
    int32_t angles[4];
};
_Static_assert(sizeof(struct lr_columns_pass) == 112, "the shaders' layout");

enum lr_columns_program {
    LR_COLUMNS_FORWARD = 0, /* in sampled mode */
    LR_COLUMNS_PACK,        /* packs the image before LR_COLUMNS_FORWARD_EXACT, if the buffer `packed` exists */
    LR_COLUMNS_FORWARD_EXACT,
    LR_COLUMNS_BACK, /* in sampled mode */
    LR_COLUMNS_ONES, /* back-projection of ones in sampled mode */
    LR_COLUMNS_BACK_EXACT,
    LR_COLUMNS_BACK_HALF_TURN, /* used if the window of pairs is symmetric: half a turn maps each pair of stacks to
                                  another pair in the window */
    LR_COLUMNS_TO_STACKS,
    LR_COLUMNS_ONES_TO_STACKS,
    LR_COLUMNS_STACKS_TO_LOR_ORDER,
    LR_COLUMNS_SUM, /* adds up the shares of a back-projection */
    LR_COLUMNS_TO_LOR_ORDER,
    LR_COLUMNS_FROM_LOR_ORDER,
    LR_COLUMNS_ROWS,       /* rows of voxels of the grid */
    LR_COLUMNS_POINT_ROWS, /* rows of any points, including points near modules */
    LR_COLUMNS_LIST_FORWARD,
    LR_COLUMNS_LIST_BACK,
    LR_COLUMNS_TAKE_SUMS,  /* converts sums in fixed point to an image */
    LR_COLUMNS_TAKE_IMAGE, /* copies an image from the grid's order to the order of columns */
    LR_COLUMNS_GIVE_IMAGE, /* copies an image from the order of columns to the grid's order */
    LR_NUM_COLUMNS_PROGRAMS
};

struct lr_columns_stacks;

struct lr_columns {
    struct lr_backend_params params;
    struct gl_context *ctx; /* the backend's context */
    int axis;               /* grid axis along the columns */
    int across[2];
    /* True if the expansion of shaders/correspondence/columns/exact.glsl may be too inaccurate, because a face may look
     * too large from a point of the grid. The test is cautious: it assumes that the largest face is at the distance of
     * the nearest module. In fact, an overlap is no larger than the farther face, so the expansion is inaccurate only
     * for points that are near both modules of a pair. */
    bool may_be_near;
    bool has_angles;               /* true if passes can skip LORs by their angle */
    bool is_mirrored;              /* exact mode: true if stacks and sample points are symmetric along the columns */
    int forward_group, back_group; /* threads of a workgroup */
    int back_columns;              /* columns of a workgroup of the exact back-projection */
    int strips;                    /* number of strips that a workgroup has in memory at the same time */
    int64_t max_window;            /* largest number of LOR values of a window */
    struct gl_buffer *modules, *points, *cells;
    struct lr_scene_masks masks;
    struct gl_buffer *packed;         /* each voxel with its three mirror and half-turn images; NULL = not needed */
    int shares;                       /* number of workgroups per column in a back-projection; each workgroup has
                                         separate sums */
    struct gl_buffer *image;          /* [shares][across 1][across 0][along], input or output of a projection */
    struct lr_columns_stacks *stacks; /* owned */
    struct gl_program *programs[LR_NUM_COLUMNS_PROGRAMS];
    struct lr_merge_programs merge; /* programs for matrix rows */
    uint64_t ended_well[64];        /* keys of the lists of pairs whose loops the device is known to finish; 0 = no
                                       key */
    int next_ended;                 /* entry of ended_well where the next key is stored */
    struct gl_buffer *state;        /* nonzero once the device has ended a loop too early; NULL if it never does so */
    int64_t most_rounds;            /* largest number of loop rounds that a thread may have; INT64_MAX = no limit */
    int element_rounds;             /* approximate number of loop rounds for one element */
    struct gl_stopwatch *watch;     /* not owned; times each pass alone, so that waiting for the host does not count */
};

/* Creates the method. It requires that:
 * 1. both modules of every pair have the same in-plane axis (u or v) along one axis of the grid,
 * 2. no voxel has more points along this axis than a workgroup has threads,
 * 3. no module hides another,
 * 4. there is no attenuation and no penetration along lines.
 * The context must be current in this call and in those below. errors: NULL, logged. */
void *lr_columns_create(const struct lr_method_params *params);
void lr_columns_destroy(void *columns); /* NULL is allowed */

/* Returns true if the device ends long loops early, as software renderers do. Also returns true in tests that need
 * batches as small as on such a device. */
bool lr_columns_ends_loops(const struct lr_columns *columns);

/* Checks that the device has ended no loop too early. Waits for the passes only on devices that end loops early.
 * errors: LR_USAGE, logged, if a loop was ended. */
lr_status lr_columns_check_loops(const struct lr_columns *columns);

/* Like lr_columns_check_loops, but checks each list of pairs only after its first projection. The number of loop rounds
 * depends on the scanner, the grid and the list, but not on the values. */
lr_status lr_columns_check_pairs(struct lr_columns *columns, const lr_selection *list, bool is_back);

/* Functions of struct lr_method. */
lr_status lr_columns_prepare(void *self, bool lists);
lr_status lr_columns_project(void *self, bool is_forward, const lr_selection *list, lr_vector *image, lr_vector *data);
lr_status lr_columns_project_lors(void *self, bool is_forward, const lr_selection *list, lr_vector *image,
                                  float *values);
lr_status lr_columns_read_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink);

/* --- scene --- */

/* The scanner and the grid, in the form that shaders/correspondence/columns/scene.glsl declares. */

/* Uploads modules, points and masks, which are the same for all pairs. */
lr_status lr_columns_upload_scene(struct lr_columns *columns);

/* Uploads the module pairs list[begin .. end - 1]. first_values: [list], index of each pair's first value; NULL = the
 * values of all pairs follow one another in the order of the list. errors: NULL, logged. */
struct gl_buffer *lr_columns_upload_pairs(const struct lr_columns *columns, const lr_selection *list, int64_t begin,
                                          int64_t end, const int64_t *first_values);

/* Returns the number of sample points of the grid along one of its axes. */
int lr_columns_num_points(const struct lr_columns *columns, int axis);

/* Returns the distance from the grid to the plane of the nearest module, mm; 0 if a module's plane touches or cuts the
 * grid. */
double lr_columns_nearest_mm(const struct lr_columns *columns);

/* Returns the approximate run time of a thread that visits voxels, relative to a thread with 64 points per voxel; at
 * least 1. Dispatches are made smaller by this factor, because a driver stops a dispatch that takes more than a few
 * seconds. */
int lr_columns_work_of_thread(const struct lr_columns *columns);

/* Returns the coordinate of sample point k along an axis of the grid, mm. */
double lr_columns_coordinate(const struct lr_columns *columns, int axis, int k);

/* Returns the coordinate of the middle of the grid's points along an axis, mm. The shaders use positions along the
 * columns relative to this middle. */
double lr_columns_middle(const struct lr_columns *columns, int axis);

/* Returns in `counts` the numbers of crystals of a module: counts[0] across the columns, counts[1] along them. */
void lr_columns_count_crystals(const struct lr_columns *columns, int module, int counts[2]);

/* Binds modules, the grid's points and masks to a pass. */
void lr_columns_bind_scene(const struct lr_columns *columns, struct gl_pass *pass);

/* Returns the uniforms that all passes share. The caller sets `first` and `count`. */
struct lr_columns_pass lr_columns_uniforms(const struct lr_columns *columns);

/* --- images --- */

/* Images are copied between the grid's order and the order of columns, which is [across 1][across 0][along]. */

/* Copies an image to columns->image or from it. image: on the host or at the backend's place. sums: one sum in fixed
 * point per voxel, in the order of columns; they are read instead of columns->image. sums NULL = columns->image is read
 * or written. errors: LR_FAILED, LR_NO_DEVICE. */
lr_status lr_columns_copy_image(struct lr_columns *columns, const lr_vector *image, const struct lr_fixed *sums,
                                bool to_columns);

/* --- programs --- */

/* Programs of the passes. Each program is started at its first use. */

/* errors: NULL, logged. */
struct gl_program *lr_columns_program(struct lr_columns *columns, enum lr_columns_program which);

/* Starts all programs of a projection, so that the driver builds them in parallel. has_images: true if half a turn maps
 * each pair of stacks in the window to another pair in the window. */
lr_status lr_columns_start_projection(struct lr_columns *columns, bool is_forward, bool is_sensitivity,
                                      bool has_images);

/* --- stacks --- */

/* A stack is a line of equal, evenly spaced modules along the columns. Its crystals along the columns are called cells.
 * Strips are computed once for a whole stack (shaders/correspondence/columns/forward_exact.comp and
 * back_exact.comp). */

struct lr_columns_stacks {
    int num_stacks;
    int most_modules;   /* largest number of modules in a stack */
    int most_cells;     /* largest number of cells in a stack, along the columns */
    int *stack_of;      /* [num_modules]: number of the module's stack; -1 = the module is not along the columns */
    int *place_of;      /* [num_modules]: number of the module in its stack, 0 for the lowest */
    int *first;         /* [num_stacks]: number of the lowest module */
    int *count;         /* [num_stacks] */
    int *image;         /* [num_stacks]: the stack onto which half a turn about the grid's middle maps this stack; -1 =
                           none */
    bool has_half_turn; /* exact mode: true if half a turn maps every stack onto a stack */
    /* True if all stacks and the grid's points have the same middle along the columns. Mirroring a crystal pair and a
     * point at this middle then leaves the element unchanged. */
    bool are_mirrored;
    int *first_cell;    /* [num_stacks]: number of the stack's first cell on the device */
    double *spacing_mm; /* [num_stacks] */
};

/* Finds the stacks. *stacks is empty after an error, and after lr_columns_stacks_finish. errors: LR_FAILED if memory
 * runs out. */
lr_status lr_columns_stacks_init(struct lr_columns_stacks *stacks, const struct lr_columns *columns);
void lr_columns_stacks_finish(struct lr_columns_stacks *stacks);

/* Uploads the middles of all cells along the columns, in the layout of shaders/correspondence/columns/stacks.glsl. Also
 * sets stacks.first_cell and stacks.most_cells. errors: NULL, logged. */
struct gl_buffer *lr_columns_upload_cells(const struct lr_columns *columns);

/* Module pairs, sorted so that pairs of the same two stacks are together. Each pair has the index of its first value in
 * the data of the original list. Pairs within one stack are left out, because modules in one plane do not see each
 * other. */
struct lr_stack_order {
    lr_selection list;
    int32_t *pairs;      /* owned; list.pairs uses this memory */
    int64_t *sources;    /* owned; [list] index of a pair's first value in the data */
    int64_t num_sources; /* number of values in the original list's data */
};
lr_status lr_columns_order_by_stacks(const struct lr_columns *columns, const lr_selection *list,
                                     struct lr_stack_order *order);
void lr_stack_order_finish(struct lr_stack_order *order);

/* Writes zeros to the values of pairs that are in the original list, but not in the sorted list. data: the values of
 * the original list. */
lr_status lr_columns_clear_left_out(const struct lr_columns *columns, const lr_selection *list, const lr_vector *data);

bool lr_columns_same_stacks(const struct lr_columns *columns, int64_t pair, int64_t other);

/* Buffers for the module pairs list[range[0] .. range[1] - 1], grouped by pairs of stacks. The list is in the order of
 * struct lr_stack_order. */
struct lr_stack_buffers {
    struct gl_buffer *pairs, *members;
    int num_pairs;
    int64_t num_values; /* number of values, in the order of stacks */
    bool has_half_turn; /* true if half a turn maps each pair of stacks in the window to another pair in the window */
};
lr_status lr_columns_upload_stacks(const struct lr_columns *columns, const lr_selection *list, const int64_t range[2],
                                   struct lr_stack_buffers *buffers);

/* --- windows of pairs --- */

/* A window is a group of module pairs whose values are on the device at the same time. It has these values in the
 * orders that the passes need. */

struct lr_window {
    struct lr_columns *columns;
    const lr_selection *list;
    struct lr_pair_window part;     /* the window's range in the list of pairs */
    int most_across, most_along;    /* largest number of crystal pairs of a module pair, across and along the columns */
    int most_stacked;               /* largest number of crystal pairs of two stacks; stacks run along the columns */
    int64_t rounds, most_rounds;    /* number of loop rounds of a thread: estimate and limit */
    const int64_t *sources;         /* [list] index of a pair's first value in the data; NULL = values are in the order
                                       of the list */
    int64_t num_sources;            /* number of values of the data; 0 if sources is NULL */
    struct lr_stack_buffers stacks; /* in exact mode */
    struct gl_buffer *pairs, *by_lor, *by_column; /* values in the order of LORs and of columns */
    struct gl_range lor_order;                    /* by_lor, or the vector's buffer itself; no buffer if there are no
                                                     values */
};

/* Begins a projection. lr_window_next then finds the first window. order: in exact mode, receives the sorted pairs. The
 * caller frees them by lr_stack_order_finish. */
lr_status lr_window_begin(struct lr_window *window, struct lr_columns *columns, const lr_selection *list,
                          struct lr_stack_order *order);

/* Moves to the next pairs whose values fit into a buffer. Returns false if no pairs are left. */
bool lr_window_next(struct lr_window *window);

/* Makes the buffers of the window. In exact mode, pairs are in the order of stacks. data: values of the whole list;
 * NULL = a back-projection of ones. is_written: true if the projection writes the data later, false if the data are
 * read now. Values in the backend's memory are bound without a copy if the driver allows this. */
lr_status lr_window_open(struct lr_window *window, const lr_vector *data, bool is_written);

/* Destroys the window's buffers. */
void lr_window_close(struct lr_window *window);
