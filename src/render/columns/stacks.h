/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Modules behind each other along the columns, alike and evenly spaced: one stack, whose strips
 * are worked out once (shaders/columns/forward_exact.comp, columns/back_exact.comp). */
#ifndef LR_RENDER_COLUMNS_STACKS_H
#define LR_RENDER_COLUMNS_STACKS_H

#include "render/columns/columns.h"

struct lr_columns_stacks {
    int num_stacks;
    int most_modules;   /* of a stack */
    int most_cells;     /* of a stack, along the columns */
    int *stack_of;      /* [num_modules]; -1 = not along the columns */
    int *place_of;      /* [num_modules]: from the stack's lowest module */
    int *first;         /* [num_stacks]: lowest module */
    int *count;         /* [num_stacks] */
    int *image;         /* [num_stacks]: after half a turn about the grid's middle; -1 = none */
    bool has_half_turn; /* whether all of them have one */
    int *first_cell;    /* [num_stacks]: where its cells begin on the device */
    double *spacing_mm; /* [num_stacks] */
};

/* errors: LR_FAILED without memory; then and after _finish it holds nothing. */
lr_status lr_columns_stacks_init(struct lr_columns_stacks *stacks, const struct lr_columns *columns);
void lr_columns_stacks_finish(struct lr_columns_stacks *stacks);

/* A bound of the cells that a stack may have, for scanners of any make. */
int64_t lr_columns_most_cells(const lr_scanner *scanner);

/* The middles of all cells along the columns, as shaders/columns/stacks.glsl declares them;
 * notes where those of each stack begin. */
struct gl_buffer *lr_columns_upload_cells(const struct lr_columns *columns);

/* The module that half a turn puts in a module's place. Needs stacks->has_half_turn. */
int lr_columns_turned_module(const struct lr_columns *columns, int module);

/* Number of the first cell of a module, once they are uploaded. */
int lr_columns_first_cell(const struct lr_columns *columns, int module);

/* Module pairs sorted so that those of the same stacks follow each other, and where the values of
 * each begin in the data of the list that was given. Pairs within a stack are left out: its modules
 * lie in one plane and see nothing of each other. */
struct lr_stack_order {
    struct lr_pair_list list;
    int32_t *pairs;      /* owned; list.pairs */
    int64_t *sources;    /* owned */
    int64_t num_sources; /* values of the data */
};
lr_status lr_columns_order_by_stacks(const struct lr_columns *columns, const struct lr_pair_list *list,
                                     struct lr_stack_order *order);
void lr_stack_order_finish(struct lr_stack_order *order);

/* Whether all stacks and the grid's points have one middle along the columns, so that a crystal
 * pair sees of a point what its mirror image sees of the point's. */
bool lr_columns_are_mirrored(const struct lr_columns *columns);

/* Zeros for the pairs of a list that its order leaves out; data: of the list. */
lr_status lr_columns_clear_left_out(const struct lr_columns *columns, const struct lr_pair_list *list,
                                    const lr_vector *data);

/* Whether the higher module of a pair is the primary in exact mode: that of the lower stack is. */
bool lr_columns_is_swapped(const struct lr_columns *columns, int64_t pair);

bool lr_columns_same_stacks(const struct lr_columns *columns, int64_t pair, int64_t other);

/* The pairs of stacks of module pairs list[range[0] .. range[1]-1], which are in that order. */
struct lr_stack_buffers {
    struct gl_buffer *pairs, *members;
    int num_pairs;
    int64_t num_values; /* in stack order */
    bool has_half_turn; /* whether the image of every pair after half a turn is there too */
};
lr_status lr_columns_upload_stacks(const struct lr_columns *columns, const struct lr_pair_list *list,
                                   const int64_t range[2], struct lr_stack_buffers *buffers);

#endif
