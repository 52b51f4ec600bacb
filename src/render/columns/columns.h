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
#include "render/method.h"
#include "render/rows/merge.h"

/* The block of shaders/columns/scene.glsl. */
struct lr_columns_pass {
    int32_t num_points[4], num_samples[4], first[4], count[4];
    float spacing_mm[4], origin[4];
    int32_t angles[4];
};
_Static_assert(sizeof(struct lr_columns_pass) == 112, "the shaders' layout");

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
    LR_COLUMNS_STACKS_TO_LOR_ORDER,
    LR_COLUMNS_SUM, /* of back's shares */
    LR_COLUMNS_TO_LOR_ORDER,
    LR_COLUMNS_FROM_LOR_ORDER,
    LR_COLUMNS_ROWS,       /* elements of the grid's points */
    LR_COLUMNS_POINT_ROWS, /* and of points anywhere, also near modules */
    LR_COLUMNS_LIST_FORWARD,
    LR_COLUMNS_LIST_BACK,
    LR_COLUMNS_TAKE_SUMS,  /* sums in fixed point to the image */
    LR_COLUMNS_TAKE_IMAGE, /* an image in the grid's order to the columns' one, and back */
    LR_COLUMNS_GIVE_IMAGE,
    LR_NUM_COLUMNS_PROGRAMS
};

struct lr_columns_stacks;

enum { LR_COLUMNS_KNOWN = 256 };

struct lr_columns {
    struct lr_backend_params params;
    struct gl_context *ctx; /* the backend's */
    int axis;               /* of the grid, along the columns */
    int across[2];
    bool may_be_near;              /* whether an overlap may be too large for its expansion */
    bool has_masks;                /* whether some pair has LORs out of coincidence */
    bool has_angles;               /* whether passes can leave out LORs by their angle */
    bool is_mirrored;              /* in exact mode: stacks and points are symmetric along the columns */
    int forward_group, back_group; /* threads of a group */
    int back_columns;              /* of a group of back in exact mode */
    int strips;                    /* that a group holds at once */
    int64_t max_window;            /* values */
    struct gl_buffer *modules, *points, *cells, *mask_entries, *mask_words;
    struct gl_buffer *packed;         /* four values a voxel, or NULL */
    int shares;                       /* groups that a column is divided among in back, each with sums of its own */
    struct gl_buffer *image;          /* [shares][across 1][across 0][along]: input or output */
    struct lr_columns_stacks *stacks; /* owned */
    struct gl_program *programs[LR_NUM_COLUMNS_PROGRAMS];
    struct lr_merge_programs merge;   /* of rows */
    struct gl_buffer *state;          /* whether loops were ended; NULL on devices that do not */
    int caution;                      /* how much shorter parts are than they might be: turns.h */
    uint64_t known[LR_COLUMNS_KNOWN]; /* what was projected with no loop ended */
    int num_known;
    int element_turns;          /* of loops, that an element may take: all pieces of a strip at one point, about */
    int64_t column_turns;       /* the same for all points of a column that a pair of cells may see */
    struct gl_stopwatch *watch; /* laps are passes, so that waiting for the host does not count */
};

/* errors: NULL, logged. The context is current, here and below. Columns serve where in every pair both
 * modules have the same in-plane axis (u or v) along one axis of the grid, no voxel has more points along
 * it than a group has threads, no module hides another, and nothing is counted along lines. */
struct lr_columns *lr_columns_create(const struct lr_method_params *params);
void lr_columns_destroy(struct lr_columns *columns); /* NULL is allowed */

/* As in struct lr_method: project.c, list.c, rows.c. */
lr_status lr_columns_forward(void *self, const struct lr_pair_list *list, const float *image, lr_vector *values);
lr_status lr_columns_back(void *self, const struct lr_pair_list *list, const lr_vector *values, float *image);
lr_status lr_columns_prepare(void *self, bool lists);
lr_status lr_columns_forward_lors(void *self, const struct lr_lor_list *list, const float *image, float *values);
lr_status lr_columns_back_lors(void *self, const struct lr_lor_list *list, const float *values, float *image);
lr_status lr_columns_read_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink);

#endif
