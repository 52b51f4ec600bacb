/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The programs of the column passes, started when first asked for. */
#ifndef LR_RENDER_COLUMNS_PROGRAMS_H
#define LR_RENDER_COLUMNS_PROGRAMS_H

#include "render/columns/columns.h"

/* errors: NULL, logged. */
struct gl_program *lr_columns_program(struct lr_columns *columns, enum lr_columns_program which);

/* Starts the programs of a projection, all at once. has_images: those of pairs whose stacks all have
 * their images after half a turn. */
lr_status lr_columns_start_forward(struct lr_columns *columns);
lr_status lr_columns_start_back(struct lr_columns *columns, bool is_sensitivity, bool has_images);
lr_status lr_columns_start_lists(struct lr_columns *columns);

#endif
