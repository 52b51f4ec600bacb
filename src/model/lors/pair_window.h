/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Windows over a list of module pairs. Each window holds as many pairs as there is memory for their values, and the
 * windows follow one another. */
#pragma once

#include "base/order.h"

#include <lr/lors.h>
#include <stddef.h>

/* A window on a list of pairs. lr_pair_window_begin makes an empty window that stands in front of the first pair. */
struct lr_pair_window {
    const lr_lors *lors;
    const int32_t *pairs; /* the list, [num_pairs] ascending; NULL = all pairs */
    int64_t num_pairs;
    int64_t begin, end;              /* the window has the list's pairs begin .. end - 1 */
    int64_t first_value, num_values; /* range of the window's values among the values of the whole list */
};

static inline int64_t lr_pair_size(const lr_lors *lors, int64_t pair)
{
    return lors->offsets[pair + 1] - lors->offsets[pair];
}

static inline struct lr_pair_window lr_pair_window_begin(const lr_lors *lors, const int32_t *pairs, int64_t num_pairs)
{
    return (struct lr_pair_window){
        .lors = lors, .pairs = pairs, .num_pairs = pairs != NULL ? num_pairs : lors->num_pairs};
}

/* Returns a single window that has all pairs. */
static inline struct lr_pair_window lr_pair_window_all(const lr_lors *lors)
{
    return (struct lr_pair_window){
        .lors = lors, .num_pairs = lors->num_pairs, .end = lors->num_pairs, .num_values = lors->count};
}

/* Pair k of the list. */
static inline int64_t lr_pair_window_pair(const struct lr_pair_window *window, int64_t k)
{
    return window->pairs != NULL ? window->pairs[k] : k;
}

/* Number of values of pair k of the list. */
static inline int64_t lr_pair_window_size(const struct lr_pair_window *window, int64_t k)
{
    return lr_pair_size(window->lors, lr_pair_window_pair(window, k));
}

/* Empties the window. The next pair to add is the pair after the window's last pair. */
static inline void lr_pair_window_leave(struct lr_pair_window *window)
{
    window->begin = window->end;
    window->first_value += window->num_values;
    window->num_values = 0;
}

/* Adds the pair after the window's last pair. The pair must exist: window->end < window->num_pairs. */
static inline void lr_pair_window_take(struct lr_pair_window *window)
{
    window->num_values += lr_pair_window_size(window, window->end++);
}

/* Moves to the next pairs, which have at most `most` values in total, or to a single pair with more. False if no pair
 * is left. */
static inline bool lr_pair_window_next(struct lr_pair_window *window, int64_t most)
{
    lr_pair_window_leave(window);
    while (window->end < window->num_pairs &&
           (window->end == window->begin || window->num_values + lr_pair_window_size(window, window->end) <= most))
        lr_pair_window_take(window);
    return window->end > window->begin;
}

/* True if the pair is in the window. */
static inline bool lr_pair_window_has(const struct lr_pair_window *window, int64_t pair)
{
    if (window->pairs == NULL) return pair >= window->begin && pair < window->end;
    const int64_t at =
        window->begin + lr_first_int_at_least(window->pairs + window->begin, window->end - window->begin, pair);
    return at < window->end && window->pairs[at] == pair;
}
