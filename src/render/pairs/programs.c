/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/pairs/pairs.h"

static const struct {
    const char *shader, *label;
} descriptions[LR_NUM_PAIRS_PROGRAMS] = {
    [LR_PAIRS_FORWARD] = {"pairs/forward.comp", "forward by pairs"},
    [LR_PAIRS_BACK] = {"pairs/back.comp", "back by pairs"},
    [LR_PAIRS_ROWS] = {"pairs/rows.comp", "matrix elements by pairs"},
    [LR_PAIRS_POINT_ROWS] = {"pairs/rows.comp", "matrix elements of points by pairs"},
};

struct gl_program *lr_pairs_program(struct lr_pairs *pairs, enum lr_pairs_program which)
{
    const bool anywhere = which == LR_PAIRS_POINT_ROWS;
    struct gl_define defines[6] = {{0}};
    int next = 0;
    if (pairs->programs[which] != NULL) return pairs->programs[which];
    if (pairs->may_be_near || anywhere) defines[next++].name = "NEAR";
    if (pairs->meets_horizon || anywhere) defines[next++].name = "HORIZON";
    if (pairs->has_masks) defines[next++].name = "MASKS";
    if (gl_context_limits(pairs->ctx)->software) defines[next++].name = "LIMITED_LOOPS";
    if (which == LR_PAIRS_FORWARD && pairs->params.deterministic) defines[next].name = "FIXED";
    pairs->programs[which] = gl_program_start(
        pairs->ctx, &(struct gl_program_params){
                        .compute = descriptions[which].shader, .defines = defines, .label = descriptions[which].label});
    return pairs->programs[which];
}
