/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Programs of the columns method, and checks that the device has ended no loop early. */
#include "base/hash.h"
#include "correspondence/compute/columns/columns.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "correspondence/compute/method.h"

#include <math.h>
#include <stdio.h>

static const struct {
    const char *shader, *define, *label;
} descriptions[LR_NUM_COLUMNS_PROGRAMS] = {
    [LR_COLUMNS_FORWARD] = {"correspondence/columns/forward.comp", NULL, "forward by columns"},
    [LR_COLUMNS_PACK] = {"correspondence/columns/pack.comp", NULL, "image with its images"},
    [LR_COLUMNS_FORWARD_EXACT] = {"correspondence/columns/forward_exact.comp", NULL, "forward by stacks"},
    [LR_COLUMNS_BACK] = {"correspondence/columns/back.comp", NULL, "back by columns"},
    [LR_COLUMNS_ONES] = {"correspondence/columns/back.comp", "ONES", "sensitivity by columns"},
    [LR_COLUMNS_BACK_EXACT] = {"correspondence/columns/back_exact.comp", NULL, "back by stacks"},
    [LR_COLUMNS_BACK_HALF_TURN] = {"correspondence/columns/back_exact.comp", "HALF_TURN",
                                   "back by stacks and their images"},
    [LR_COLUMNS_TO_STACKS] = {"correspondence/columns/stack_order.comp", NULL, "values to stack order"},
    [LR_COLUMNS_ONES_TO_STACKS] = {"correspondence/columns/stack_order.comp", "ONES", "ones in stack order"},
    [LR_COLUMNS_STACKS_TO_LOR_ORDER] = {"correspondence/columns/stack_order.comp", "TO_LOR_ORDER",
                                        "values of stacks to LOR order"},
    [LR_COLUMNS_SUM] = {"correspondence/columns/sum.comp", NULL, "sum of shares"},
    [LR_COLUMNS_TO_LOR_ORDER] = {"correspondence/columns/order.comp", "TO_LOR_ORDER", "values to LOR order"},
    [LR_COLUMNS_FROM_LOR_ORDER] = {"correspondence/columns/order.comp", NULL, "values to column order"},
    [LR_COLUMNS_ROWS] = {"correspondence/columns/rows.comp", NULL, "matrix elements by columns"},
    [LR_COLUMNS_POINT_ROWS] = {"correspondence/columns/rows.comp", NULL, "matrix elements of points"},
    [LR_COLUMNS_LIST_FORWARD] = {"correspondence/columns/list_forward.comp", NULL, "forward by LORs"},
    [LR_COLUMNS_TAKE_SUMS] = {"correspondence/columns/take_sums.comp", NULL, "sums by LORs"},
    [LR_COLUMNS_TAKE_IMAGE] = {"correspondence/columns/image_order.comp", NULL, "image to columns"},
    [LR_COLUMNS_GIVE_IMAGE] = {"correspondence/columns/image_order.comp", "TO_GRID", "image to the grid's order"},
    [LR_COLUMNS_LIST_BACK] = {"correspondence/columns/list_back.comp", NULL, "back by LORs"},
};

struct gl_program *lr_columns_program(struct lr_columns *columns, enum lr_columns_program which)
{
    char rays[16], group[16], strips[16], cells[16], across[16];
    struct gl_define list[15] = {{"RAYS", rays},
                                 {"COLUMN_GROUP", group},
                                 {"COLUMN_STRIPS", strips},
                                 {"COLUMN_COLUMNS", across},
                                 {"COLUMN_CELLS", cells}};
    int next = 5;
    if (columns->programs[which] != NULL) return columns->programs[which];
    const bool is_forward = which == LR_COLUMNS_FORWARD || which == LR_COLUMNS_FORWARD_EXACT;
    const bool is_back = which == LR_COLUMNS_BACK || which == LR_COLUMNS_ONES || which == LR_COLUMNS_BACK_EXACT ||
                         which == LR_COLUMNS_BACK_HALF_TURN;
    snprintf(rays, sizeof(rays), "%d", columns->params.rays);
    snprintf(group, sizeof(group), "%d",
             is_forward ? columns->forward_group
             : is_back  ? columns->back_group
                        : LR_GROUP_SIZE);
    snprintf(strips, sizeof(strips), "%d", columns->strips);
    snprintf(cells, sizeof(cells), "%d", columns->stacks->most_cells + 2);
    snprintf(across, sizeof(across), "%d", columns->back_columns);
    if (columns->params.mode == LR_MODE_EXACT) list[next++].name = "EXACT";
    if (columns->may_be_near || which == LR_COLUMNS_POINT_ROWS) list[next++].name = "NEAR";
    if (columns->has_masks) list[next++].name = "MASKS";
    if (columns->is_mirrored) list[next++].name = "MIRROR";
    if (columns->packed != NULL) list[next++].name = "PACKED";
    if (which == LR_COLUMNS_FORWARD_EXACT && columns->stacks->has_half_turn) list[next++].name = "HALF_TURN";
    if (columns->params.samples[columns->axis] == 1) list[next++].name = "ONE_POINT_ALONG";
    if (gl_context_limits(columns->ctx)->software) list[next++].name = "LIMITED_LOOPS";
    list[next].name = descriptions[which].define;
    columns->programs[which] = gl_program_start(
        columns->ctx, &(struct gl_program_params){
                          .compute = descriptions[which].shader, .defines = list, .label = descriptions[which].label});
    return columns->programs[which];
}

static lr_status start(struct lr_columns *columns, const enum lr_columns_program *list, int count)
{
    for (int k = 0; k < count; k++) LR_TRY(lr_columns_program(columns, list[k]) != NULL ? LR_OK : LR_FAILED);
    return LR_OK;
}

/* The program that takes longest to build is started first. */
lr_status lr_columns_start_projection(struct lr_columns *columns, bool is_forward, bool is_sensitivity, bool has_images)
{
    const enum lr_columns_program lists[4][3] = {
        {LR_COLUMNS_FORWARD, LR_COLUMNS_TO_LOR_ORDER},
        {LR_COLUMNS_FORWARD_EXACT, LR_COLUMNS_STACKS_TO_LOR_ORDER, LR_COLUMNS_PACK},
        {is_sensitivity ? LR_COLUMNS_ONES : LR_COLUMNS_BACK, LR_COLUMNS_FROM_LOR_ORDER},
        {has_images ? LR_COLUMNS_BACK_HALF_TURN : LR_COLUMNS_BACK_EXACT,
         is_sensitivity ? LR_COLUMNS_ONES_TO_STACKS : LR_COLUMNS_TO_STACKS, LR_COLUMNS_SUM}};
    const int counts[4] = {2, columns->packed != NULL ? 3 : 2, is_sensitivity ? 1 : 2, columns->shares > 1 ? 3 : 2};
    const int which = (is_forward ? 0 : 2) + (columns->params.mode == LR_MODE_EXACT ? 1 : 0);
    return start(columns, lists[which], counts[which]);
}

/* If batches are small, it depends on a window whether back-projection uses images after half a turn. Its programs are
 * started later then. */
lr_status lr_columns_prepare(void *self, bool lists)
{
    static const enum lr_columns_program list[] = {LR_COLUMNS_LIST_FORWARD, LR_COLUMNS_LIST_BACK, LR_COLUMNS_TAKE_SUMS};
    struct lr_columns *columns = self;
    const bool has_images = columns->stacks->has_half_turn;
    if (!has_images || !lr_columns_ends_loops(columns)) {
        LR_TRY(lr_columns_start_projection(columns, false, true, has_images));
        LR_TRY(lists ? LR_OK : lr_columns_start_projection(columns, false, false, has_images));
    }
    return lists ? start(columns, list, 3) : lr_columns_start_projection(columns, true, false, false);
}

bool lr_columns_ends_loops(const struct lr_columns *columns)
{
    const struct gl_limits *limits = gl_context_limits(columns->ctx);
    return limits->software || limits->small_batches;
}

lr_status lr_columns_check_loops(const struct lr_columns *columns)
{
    uint32_t were_ended = 0;
    if (columns->state == NULL) return LR_OK;
    LR_TRY(gl_buffer_read(columns->state, 0, sizeof(were_ended), &were_ended));
    if (were_ended == 0) return LR_OK;
    gl_buffer_clear(columns->state, 0);
    return lr_error(columns->params.log, LR_USAGE,
                    "crystals are too large beside the voxels, or too near to them, for the software renderer, which "
                    "ends a shader's loops after 65,535 rounds: use backend native or cpu, or a graphics processor");
}

lr_status lr_columns_check_pairs(struct lr_columns *columns, const struct lr_pair_list *list, bool is_back)
{
    enum { NUM_KEYS = sizeof(columns->ended_well) / sizeof(columns->ended_well[0]) };
    const int64_t head[] = {is_back, list->interleave, list->turn, list->num_pairs};
    uint64_t key = LR_HASH_BEGIN;
    if (columns->state == NULL) return LR_OK;
    for (size_t k = 0; k < sizeof(head) / sizeof(head[0]); k++) key = lr_hash_add(key, (uint64_t)head[k]);
    for (int64_t k = 0; list->pairs != NULL && k < list->num_pairs; k++)
        key = lr_hash_add(key, (uint64_t)list->pairs[k]);
    for (int k = 0; k < NUM_KEYS; k++)
        if (columns->ended_well[k] == key) return LR_OK;
    LR_TRY(lr_columns_check_loops(columns));
    columns->ended_well[columns->next_ended] = key;
    columns->next_ended = (columns->next_ended + 1) % NUM_KEYS;
    return LR_OK;
}
