/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The module pairs of a projection by columns that are handled together, and their values on the
 * device in the orders that passes want. */
#ifndef LR_RENDER_COLUMNS_PROJECT_H
#define LR_RENDER_COLUMNS_PROJECT_H

#include "model/lors/pair_window.h"
#include "render/columns/stacks.h"

#include <lr/vector.h>

struct lr_window {
    struct lr_columns *columns;
    const struct lr_pair_list *list;
    struct lr_pair_window part;                   /* of the list */
    int most_across, most_along;                  /* crystal pairs of a module pair */
    int most_stacked;                             /* of a pair of stacks along the columns */
    int64_t turns, most_turns;                    /* of loops in a thread, about and at most */
    int most_strips;                              /* of a pair of modules, or of stacks */
    int64_t strip_turns;                          /* of a thread at one of them, at most */
    const int64_t *sources;                       /* [list] where a pair's values begin in the data; NULL: in turn */
    int64_t num_sources;                          /* values of the data, where sources is set */
    struct lr_stack_buffers stacks;               /* in exact mode */
    struct gl_buffer *pairs, *by_lor, *by_column; /* values in LOR and column order */
    struct gl_range lor_order;                    /* of by_lor, or where the data has them; no buffer: there are none */
};

/* The list's first window is still to come. order NULL: pairs in turn, as in sampled mode. */
struct lr_window lr_window_begin(struct lr_columns *columns, const struct lr_pair_list *list,
                                 const struct lr_stack_order *order);

/* The next pairs whose values fit a buffer; false when none is left. */
bool lr_window_next(struct lr_window *window);

/* The values of the whole list, of which the window takes its own: they are read, or all of them are
 * written. What is at the backend's place is worked on where it is, if drivers can begin there. */
struct lr_window_data {
    const lr_vector *values; /* NULL: ones are projected back */
    bool is_written;
};

/* Makes the buffers of sampled mode. */
lr_status lr_window_open(struct lr_window *window, const struct lr_window_data *data);

/* Makes those of exact mode: values in stack order. */
lr_status lr_window_open_stacks(struct lr_window *window, const struct lr_window_data *data);

/* Copies the values in LOR order to where they belong. */
lr_status lr_window_read(const struct lr_window *window, const lr_vector *data);

/* Destroys the buffers. */
void lr_window_close(struct lr_window *window);

#endif
