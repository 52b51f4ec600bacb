/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of scanners whose modules share an axial direction along a grid axis, by gathering
 * in both directions: docs/method/correspondence.md, "Columns". No atomics, the same bits in every
 * run. */
#ifndef LR_RENDER_COLUMNS_COLUMNS_H
#define LR_RENDER_COLUMNS_COLUMNS_H

#include "gl/pass.h"
#include "gl/timer.h"
#include "model/lors/pair_window.h"
#include "render/method.h"
#include "render/rows/merge.h"
#include "render/values.h"

#include <lr/vector.h>

/* The block of shaders/columns/scene.glsl. */
struct lr_columns_pass {
    int32_t num_points[4], num_samples[4], first[4], count[4];
    float spacing_mm[4], origin[4];
    int32_t angles[4];
};
_Static_assert(sizeof(struct lr_columns_pass) == 112, "the shaders' layout");

enum lr_columns_program {
    LR_COLUMNS_FORWARD = 0, /* in sampled mode */
    LR_COLUMNS_PACK,        /* before LR_COLUMNS_FORWARD_EXACT, if there is memory for it */
    LR_COLUMNS_FORWARD_EXACT,
    LR_COLUMNS_BACK, /* in sampled mode */
    LR_COLUMNS_ONES, /* back in sampled mode, for values of 1 */
    LR_COLUMNS_BACK_EXACT,
    LR_COLUMNS_BACK_HALF_TURN, /* if the image of every pair of stacks is there */
    LR_COLUMNS_TO_STACKS,
    LR_COLUMNS_ONES_TO_STACKS,
    LR_COLUMNS_STACKS_TO_LOR_ORDER,
    LR_COLUMNS_SUM, /* adds up the shares of back */
    LR_COLUMNS_TO_LOR_ORDER,
    LR_COLUMNS_FROM_LOR_ORDER,
    LR_COLUMNS_ROWS,       /* elements of the grid's points */
    LR_COLUMNS_POINT_ROWS, /* elements of points anywhere, also near modules */
    LR_COLUMNS_LIST_FORWARD,
    LR_COLUMNS_LIST_BACK,
    LR_COLUMNS_TAKE_SUMS,  /* sums in fixed point to the image */
    LR_COLUMNS_TAKE_IMAGE, /* an image in the grid's order to the columns' one, and back */
    LR_COLUMNS_GIVE_IMAGE,
    LR_NUM_COLUMNS_PROGRAMS
};

struct lr_columns_stacks;

struct lr_columns {
    struct lr_backend_params params;
    struct gl_context *ctx; /* the backend's */
    int axis;               /* axis of the grid, along the columns */
    int across[2];
    /* Set if faces of crystals, seen from some point of the grid, may be so large that the expansion of
     * shaders/columns/exact.glsl is too coarse: if the grid comes near both modules of a pair at once. An overlap is no
     * larger than the farther face. */
    bool may_be_near;
    bool has_masks;                /* whether some pair has LORs out of coincidence */
    bool has_angles;               /* whether passes can leave out LORs by their angle */
    bool is_mirrored;              /* in exact mode: stacks and points are symmetric along the columns */
    int forward_group, back_group; /* threads of a group */
    int back_columns;              /* columns of a group of back in exact mode */
    int strips;                    /* strips that a group holds at once */
    int64_t max_window;            /* values */
    struct gl_buffer *modules, *points, *cells, *mask_entries, *mask_words;
    struct gl_buffer *packed;         /* four values a voxel, or NULL */
    int shares;                       /* groups that a column is divided among in back, each with sums of its own */
    struct gl_buffer *image;          /* [shares][across 1][across 0][along]: input or output */
    struct lr_columns_stacks *stacks; /* owned */
    struct gl_program *programs[LR_NUM_COLUMNS_PROGRAMS];
    struct lr_merge_programs merge; /* programs for rows */
    uint64_t ended_well[64];        /* keys of lists whose loops have been checked; 0: none */
    int next_ended;                 /* entry that the next key takes */
    struct gl_buffer *state;        /* nonzero once the device has ended a loop early; NULL on devices that do not */
    int64_t most_rounds;            /* rounds of loops that a thread may take; INT64_MAX on devices that end none */
    int element_rounds;             /* rounds of an element, about: the pieces of a strip at one point */
    struct gl_stopwatch *watch;     /* laps are passes, so that waiting for the host does not count */
};

/* errors: NULL, logged. The context is current, here and below. Columns serve if in every pair both modules have the
 * same in-plane axis (u or v) along one axis of the grid, no voxel has more points along it than a group has threads,
 * no module hides another, and nothing is counted along lines. */
void *lr_columns_create(const struct lr_method_params *params);
void lr_columns_destroy(void *columns); /* NULL is allowed */

/* True on software renderers, which end long loops, and in tests that ask for the same small batches. */
bool lr_columns_ends_loops(const struct lr_columns *columns);

/* errors: LR_USAGE, logged, if the device has ended a loop early. Waits for devices that may do so. */
lr_status lr_columns_check_loops(const struct lr_columns *columns);

/* The same for a projection over a list of pairs, but only for the first one with this list: rounds of loops depend
 * on scanner, grid and list, not on the values. */
lr_status lr_columns_check_pairs(struct lr_columns *columns, const struct lr_pair_list *list, bool is_back);

/* The functions of struct lr_method. */
lr_status lr_columns_forward(void *self, const struct lr_pair_list *list, const float *image, lr_vector *values);
lr_status lr_columns_back(void *self, const struct lr_pair_list *list, const lr_vector *values, float *image);
lr_status lr_columns_prepare(void *self, bool lists);
lr_status lr_columns_take_image(void *self, const lr_vector *image);
lr_status lr_columns_give_image(void *self, lr_vector *image);

lr_status lr_columns_forward_lors(void *self, const struct lr_lor_list *list, const float *image, float *values);
lr_status lr_columns_back_lors(void *self, const struct lr_lor_list *list, const float *values, float *image);
lr_status lr_columns_read_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink);

/* --- scene --- */

/* The scanner and the grid as shaders/columns/scene.glsl declares them. */

/* Uploads modules, points and masks, which do not depend on the pairs. */
lr_status lr_columns_upload_scene(struct lr_columns *columns);

/* Module pairs list[begin .. end-1]. first_values: [list], the number of each pair's first value; NULL: values follow
 * each other. */
struct gl_buffer *lr_columns_upload_pairs(const struct lr_columns *columns, const struct lr_pair_list *list,
                                          int64_t begin, int64_t end, const int64_t *first_values);

/* Sample points of the grid along one of its axes. */
int lr_columns_num_points(const struct lr_columns *columns, int axis);

/* Distance of the grid to the nearest module's plane; 0 if the grid reaches one. */
double lr_columns_nearest_mm(const struct lr_columns *columns);

/* The work of a thread that walks through voxels, relative to one point in each voxel. A dispatch has fewer threads
 * by this factor, since a driver's watchdog allows it a few seconds. */
int lr_columns_work_of_thread(const struct lr_columns *columns);

/* Sample point k along an axis of the grid, mm. */
double lr_columns_coordinate(const struct lr_columns *columns, int axis, int k);

/* The middle of the grid's points along an axis, mm; places along the columns are counted from it. */
double lr_columns_middle(const struct lr_columns *columns, int axis);

/* Crystals of a module: across the columns, and along them. */
void lr_columns_count_crystals(const struct lr_columns *columns, int module, int counts[2]);

/* Puts modules, the grid's points and masks into a pass. */
void lr_columns_bind_scene(const struct lr_columns *columns, struct gl_pass *pass);

/* The uniforms of every pass, without `first` and `count`. */
struct lr_columns_pass lr_columns_uniforms(const struct lr_columns *columns);

/* --- images --- */

/* Copies of images between the grid's order and the order of columns, [across 1][across 0][along]. */

int64_t lr_columns_image_bytes(const struct lr_columns *columns);

/* Copies to columns->image, and from it. image: [num_voxels] in the grid's order. sums: read instead of
 * columns->image if not NULL; in fixed point, one a voxel in the order of columns. errors: LR_FAILED, LR_NO_DEVICE.
 * */
lr_status lr_columns_upload_image(struct lr_columns *columns, const float *image);
lr_status lr_columns_read_image(const struct lr_columns *columns, const struct lr_fixed *sums, float *image);

/* Copies sums in fixed point into columns->image, on the device. */
lr_status lr_columns_take_sums(struct lr_columns *columns, const struct lr_fixed *sums);

/* --- programs --- */

/* The programs of the column passes, started when first asked for. */

/* errors: NULL, logged. */
struct gl_program *lr_columns_program(struct lr_columns *columns, enum lr_columns_program which);

/* Starts the programs of a projection, all at once. has_images: the image of every pair of stacks after half a turn
 * is in the window. */
lr_status lr_columns_start_projection(struct lr_columns *columns, bool is_forward, bool is_sensitivity,
                                      bool has_images);

/* --- stacks --- */

/* A stack has modules in a line along the columns, alike and evenly spaced. Its strips are worked out once
 * (shaders/columns/forward_exact.comp, columns/back_exact.comp). */

struct lr_columns_stacks {
    int num_stacks;
    int most_modules;   /* most modules of a stack */
    int most_cells;     /* most cells of a stack, along the columns */
    int *stack_of;      /* [num_modules]; -1 = not along the columns */
    int *place_of;      /* [num_modules]: from the stack's lowest module */
    int *first;         /* [num_stacks]: lowest module */
    int *count;         /* [num_stacks] */
    int *image;         /* [num_stacks]: the stack at its place after half a turn about the grid's middle; -1 = none */
    bool has_half_turn; /* whether all stacks have an image */
    /* Set if all stacks and the grid's points have one middle along the columns, so that a crystal pair sees a point
     * as its mirror image sees the point's mirror image. */
    bool are_mirrored;
    int *first_cell;    /* [num_stacks]: number of its first cell on the device */
    double *spacing_mm; /* [num_stacks] */
};

/* errors: LR_FAILED if memory runs out; then and after _finish it holds nothing. */
lr_status lr_columns_stacks_init(struct lr_columns_stacks *stacks, const struct lr_columns *columns);
void lr_columns_stacks_finish(struct lr_columns_stacks *stacks);

/* The middles of all cells along the columns, as shaders/columns/stacks.glsl declares them; notes the first cell of
 * each stack. */
struct gl_buffer *lr_columns_upload_cells(const struct lr_columns *columns);

/* Module pairs sorted so that pairs of the same stacks follow each other, and the places of their values in the data
 * of the original list. Pairs within a stack are left out: its modules lie in one plane and do not see each other. */
struct lr_stack_order {
    struct lr_pair_list list;
    int32_t *pairs;      /* owned; list.pairs */
    int64_t *sources;    /* owned */
    int64_t num_sources; /* values of the data */
};
lr_status lr_columns_order_by_stacks(const struct lr_columns *columns, const struct lr_pair_list *list,
                                     struct lr_stack_order *order);
void lr_stack_order_finish(struct lr_stack_order *order);

/* Zeros for the pairs of a list that its order leaves out; data: of the list. */
lr_status lr_columns_clear_left_out(const struct lr_columns *columns, const struct lr_pair_list *list,
                                    const lr_vector *data);

bool lr_columns_same_stacks(const struct lr_columns *columns, int64_t pair, int64_t other);

/* The pairs of stacks of module pairs list[range[0] .. range[1]-1], which are in that order. */
struct lr_stack_buffers {
    struct gl_buffer *pairs, *members;
    int num_pairs;
    int64_t num_values; /* in stack order */
    bool has_half_turn; /* whether the image of every pair after half a turn is in the window, too */
};
lr_status lr_columns_upload_stacks(const struct lr_columns *columns, const struct lr_pair_list *list,
                                   const int64_t range[2], struct lr_stack_buffers *buffers);

/* --- windows of pairs --- */

/* The module pairs of a projection by columns that are handled together, and their values on the
 * device in the orders that passes need. */

struct lr_window {
    struct lr_columns *columns;
    const struct lr_pair_list *list;
    struct lr_pair_window part;  /* of the list */
    int most_across, most_along; /* crystal pairs of a module pair */
    int most_stacked;            /* of a pair of stacks along the columns */
    int64_t rounds, most_rounds; /* rounds of loops in a thread, about and at most */
    const int64_t *sources;      /* [list] number of a pair's first value in the data; NULL: values follow each other */
    int64_t num_sources;         /* values of the data; 0 without sources */
    struct lr_stack_buffers stacks;               /* in exact mode */
    struct gl_buffer *pairs, *by_lor, *by_column; /* values in LOR and column order */
    struct gl_range lor_order;                    /* of by_lor, or of the data itself; no buffer: there are none */
};

/* Begins before the list's first window. order: of the pairs in exact mode; lr_stack_order_finish ends it. */
lr_status lr_window_begin(struct lr_window *window, struct lr_columns *columns, const struct lr_pair_list *list,
                          struct lr_stack_order *order);

/* The next pairs whose values fit a buffer; false when none is left. */
bool lr_window_next(struct lr_window *window);

/* Makes the buffers of the window's pairs, in exact mode in the order of stacks. data: the values of the whole list,
 * which are read, or written later if is_written; NULL: ones are projected back. Values at the backend's place are
 * used in place if drivers can bind them there. */
lr_status lr_window_open(struct lr_window *window, const lr_vector *data, bool is_written);

/* Destroys the buffers. */
void lr_window_close(struct lr_window *window);

#endif
