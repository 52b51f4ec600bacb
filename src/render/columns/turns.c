/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/columns/turns.h"

#include "base/log.h"
#include "common/bindings.h"
#include "render/columns/scene.h"
#include "render/columns/stacks.h"
#include "render/loop_limit.h"

#include <math.h>

/* How much smaller parts become each time, and at most. */
enum { LESS = 8, LEAST = 1 << 15 };

bool lr_columns_ends_loops(const struct lr_columns *columns)
{
    const struct gl_limits *limits = gl_context_limits(columns->ctx);
    return limits->software || limits->small_batches;
}

int64_t lr_columns_most_turns(const struct lr_columns *columns)
{
    return LR_MOST_TURNS_SOFTWARE / columns->caution;
}

/* Pieces that a strip is likely to have at most (count_pieces of shaders/columns/columns.glsl): along it the ratio
 * of the ways to both faces changes by its width over the way to the nearer one, and a piece is so wide that
 * this moves a line by one of the cells along. */
static int most_pieces(const struct lr_columns *columns)
{
    const lr_scanner *scanner = columns->params.scanner;
    double widest = 0.0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const double *face = scanner->modules[m].face_mm;
        widest = fmax(widest, hypot(face[0], face[1]));
    }
    const double change = fmin(widest / fmax(lr_columns_nearest_mm(columns), 1e-6), 1.0);
    return 1 + (int)ceil(change * columns->stacks->most_cells);
}

static int turns_of_element(const struct lr_columns *columns)
{
    enum { TRIANGLES = 8 };                                     /* of near_weight in shaders/columns/exact.glsl */
    const int turns = columns->may_be_near ? 1 + TRIANGLES : 1; /* rows of points ask each time */
    return columns->params.mode == LR_MODE_EXACT ? turns * most_pieces(columns) : 1;
}

/* The faces of a pair of cells are as wide as what they may see of a column. */
static int64_t turns_of_column(const struct lr_columns *columns)
{
    const lr_scanner *scanner = columns->params.scanner;
    const double step = columns->params.grid->voxel_mm[columns->axis] / columns->params.samples[columns->axis];
    double widest = 0.0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const double *face = scanner->modules[m].face_mm;
        widest = fmax(widest, fmax(face[0], face[1])); /* one of them is along the columns */
    }
    const double seen = fmin(ceil(widest / step) + 3.0, lr_columns_num_points(columns, columns->axis));
    const int of_element = columns->params.mode == LR_MODE_EXACT ? columns->element_turns : columns->params.rays;
    return (int64_t)seen * (1 + of_element);
}

lr_status lr_columns_turns_init(struct lr_columns *columns)
{
    columns->caution = 1;
    columns->element_turns = turns_of_element(columns);
    columns->column_turns = turns_of_column(columns);
    if (!gl_context_limits(columns->ctx)->software) return LR_OK;
    const uint32_t none = 0;
    columns->state = gl_buffer_create(
        columns->ctx, &(struct gl_buffer_params){.label = "loops ended", .size_bytes = sizeof(none), .data = &none});
    return columns->state != NULL ? LR_OK : LR_FAILED;
}

/* Since it was asked before. */
static lr_status ask(struct lr_columns *columns, bool *were_ended)
{
    uint32_t ended = 0;
    *were_ended = false;
    LR_TRY(gl_buffer_read(columns->state, 0, sizeof(ended), &ended));
    *were_ended = ended != 0;
    if (*were_ended) gl_buffer_clear(columns->state, 0);
    return LR_OK;
}

static lr_status refuse(const struct lr_columns *columns)
{
    return lr_error(columns->params.log, LR_FAILED,
                    "the software renderer ended a shader's loops before they were done, at crystals "
                    "that are very large beside the voxels or near to them: use backend native or cpu");
}

/* FNV-1a. */
static uint64_t key_of(const struct lr_columns_task *task)
{
    const unsigned char *bytes = task->numbers;
    uint64_t key = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)task->work;
    for (int64_t k = 0; bytes != NULL && k < task->bytes; k++) key = (key ^ bytes[k]) * UINT64_C(0x100000001b3);
    return key;
}

static bool is_known(const struct lr_columns *columns, uint64_t key)
{
    bool known = false;
    for (int k = 0; k < columns->num_known; k++) known = known || columns->known[k] == key;
    return known;
}

/* That it is done with no loop ended. */
static void know(struct lr_columns *columns, uint64_t key)
{
    if (columns->num_known < LR_COLUMNS_KNOWN) columns->known[columns->num_known++] = key;
}

bool lr_columns_go_again(struct lr_columns *columns, const struct lr_columns_task *task, lr_status *status)
{
    if (*status != LR_OK || columns->state == NULL) return false;
    const uint64_t key = key_of(task);
    bool were_ended = false;
    *status = is_known(columns, key) ? LR_OK : ask(columns, &were_ended);
    if (!were_ended) {
        if (*status == LR_OK && !is_known(columns, key)) know(columns, key);
        return false;
    }
    columns->num_known = 0;
    columns->caution *= LESS;
    *status = columns->caution > LEAST ? refuse(columns) : LR_OK;
    return *status == LR_OK;
}

lr_status lr_columns_check_turns(struct lr_columns *columns)
{
    bool were_ended;
    if (columns->state == NULL) return LR_OK;
    LR_TRY(ask(columns, &were_ended));
    return were_ended ? refuse(columns) : LR_OK;
}
