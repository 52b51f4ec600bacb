/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * How many turns of loops threads of the column passes take. A renderer in software ends all loops of a thread
 * after some turns (render/loop_limit.h); passes are dealt out so that it is unlikely to, tell when it does all the same
 * (shaders/columns/scene.glsl), and are then done anew in smaller parts. */
#ifndef LR_RENDER_COLUMNS_TURNS_H
#define LR_RENDER_COLUMNS_TURNS_H

#include "render/columns/columns.h"

/* Whether the device ends loops, or a test asks for it. */
bool lr_columns_ends_loops(const struct lr_columns *columns);

/* That a thread may take. */
int64_t lr_columns_most_turns(const struct lr_columns *columns);

/* Finds element_turns and column_turns, when the stacks are there, and makes what passes tell by. errors: LR_FAILED,
 * logged. */
lr_status lr_columns_turns_init(struct lr_columns *columns);

/* What a projection is of: some pairs or LORs (NULL = all), and one kind of work. Turns depend on
 * nothing else. */
struct lr_columns_task {
    const void *numbers;
    int64_t bytes;
    int work;
};

/* Behind a projection whose status is given: true where it is to be done anew, as loops were ended. The status is an
 * error, logged, where smaller parts do not help. The device is asked, and waited for, once for each task. */
bool lr_columns_go_again(struct lr_columns *columns, const struct lr_columns_task *task, lr_status *status);

/* The same of what cannot be done anew. */
lr_status lr_columns_check_turns(struct lr_columns *columns);

#endif
