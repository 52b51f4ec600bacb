/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of scanners whose modules share an axial direction along a grid axis, by gathering
 * in both directions: docs/method/correspondence.md, "Columns". No atomics, the same bits in every
 * run. */
#ifndef LR_RENDER_COLUMNS_H
#define LR_RENDER_COLUMNS_H

#include "gl/pass.h"
#include "gl/timer.h"
#include "operator/backend.h"
#include "render/plan.h"

/* The block of shaders/columns/scene.glsl. */
struct lr_columns_pass {
    int32_t num_points[4], num_samples[4], first[4], count[4];
    float spacing_mm[4], origin[4];
};
_Static_assert(sizeof(struct lr_columns_pass) == 96, "the shaders' layout");

enum lr_columns_program {
    LR_COLUMNS_FORWARD = 0, /* in sampled mode */
    LR_COLUMNS_PACK,        /* before the next one, where there is memory for it */
    LR_COLUMNS_FORWARD_EXACT,
    LR_COLUMNS_BACK, /* in sampled mode */
    LR_COLUMNS_ONES, /* back in sampled mode, of values that are all 1 */
    LR_COLUMNS_BACK_EXACT,
    LR_COLUMNS_BACK_HALF_TURN, /* where every pair of stacks has its image */
    LR_COLUMNS_TO_STACKS,
    LR_COLUMNS_ONES_TO_STACKS,
    LR_COLUMNS_STACKS_TO_FILE,
    LR_COLUMNS_SUM, /* of back's shares */
    LR_COLUMNS_TO_FILE,
    LR_COLUMNS_FROM_FILE,
    LR_COLUMNS_ROWS,         /* elements of the grid's points */
    LR_COLUMNS_POINT_ROWS,   /* and of points anywhere, also near modules */
    LR_COLUMNS_LIST_FORWARD, /* of columns_list.c */
    LR_COLUMNS_LIST_BACK,
    LR_COLUMNS_TAKE_SUMS, /* of columns_image.c */
    LR_NUM_COLUMNS_PROGRAMS
};

struct lr_columns_stacks;

struct lr_columns {
    struct lr_backend_params params;
    struct gl_context *ctx; /* the backend's */
    int axis;               /* of the grid, along the columns */
    int across[2];
    bool may_be_near; /* whether an overlap may be too large for its expansion */
    bool has_masks;   /* whether some pair has LORs out of coincidence */
    bool is_mirrored; /* in exact mode: stacks and points are symmetric along the columns */
    int forward_group, back_group; /* threads of a group */
    int back_columns;              /* of a group of back in exact mode */
    int strips;                    /* that a group holds at once */
    int64_t max_window;            /* values */
    struct gl_buffer *modules, *points, *cells, *mask_entries, *mask_words;
    struct gl_buffer *packed; /* four values a voxel, or NULL */
    int shares; /* groups that a column is divided among in back, each with sums of its own */
    struct gl_buffer *image;          /* [shares][across 1][across 0][along]: input or output */
    struct lr_columns_stacks *stacks; /* owned */
    struct gl_program *programs[LR_NUM_COLUMNS_PROGRAMS];
    struct gl_stopwatch *watch; /* laps are passes, so that waiting for the host does not count */
    double device_seconds;      /* of the last projection */
};

/* Whether columns can project: in every pair both modules have the same in-plane axis (u or v)
 * along one axis of the grid, and no voxel has more points along it than a group has threads. */
bool lr_columns_serve(const struct lr_backend_params *params);

/* errors: NULL, logged. The context is current, here and below. */
struct lr_columns *lr_columns_create(struct gl_context *ctx, const struct lr_backend_params *params,
                                     int64_t max_window);
void lr_columns_destroy(struct lr_columns *columns); /* NULL is allowed */

/* As the backend's. `pairs` NULL: all module pairs, else [num_pairs] ascending, whose values follow
 * each other, on the host or at the backend's place. data NULL in back: every value is 1. image: on the
 * host; NULL: it is in columns->image, and stays there. */
struct lr_pair_list {
    const int32_t *pairs;
    int64_t num_pairs;
};
lr_status lr_columns_forward(struct lr_columns *columns, const struct lr_pair_list *list,
                             const float *image, lr_vector *data);
lr_status lr_columns_back(struct lr_columns *columns, const struct lr_pair_list *list,
                          const lr_vector *data, float *image);

/* For what else runs column passes (render/columns/rows.h). A program is started when first asked for;
 * errors: NULL, logged. */
struct gl_program *lr_columns_program(struct lr_columns *columns, enum lr_columns_program which);

/* Starts the programs of a projection, all at once. has_images: those of pairs whose stacks all have
 * their images after half a turn. */
lr_status lr_columns_start_forward(struct lr_columns *columns);
lr_status lr_columns_start_back(struct lr_columns *columns, bool is_sensitivity, bool has_images);

/* Those of back, of all pairs, as far as it is known before which it will be. */
lr_status lr_columns_prepare_back(struct lr_columns *columns);

/* Whether a voxel has one point along the column, also in the grid that programs are made for. */
bool lr_columns_has_one_point(const struct lr_columns *columns);

/* Puts modules, the grid's points and masks into a pass. */
void lr_columns_bind_scene(const struct lr_columns *columns, struct gl_pass *pass);

/* End of the module pairs from `begin` on that one pass of LR_COLUMNS_ROWS may visit. */
int lr_columns_rows_pairs(const struct lr_columns *columns, int begin);

#endif
