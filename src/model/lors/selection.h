/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Selections of LORs (lr/lors.h): functions to check them, to walk over them, and to find LORs in them. The position
 * of a LOR is the index of its value, 0 <= position < lr_selection_count. */
#pragma once

#include <lr/lors.h>
#include <stddef.h>

/* True if every LOR is selected: neither list is set, or there is no selection. */
static inline bool lr_selection_is_all(const lr_selection *selection)
{
    return selection == NULL || (selection->lors == NULL && selection->pairs == NULL);
}

/* Checks a selection. errors: LR_USAGE if both lists are set, a count has no list or is negative, a list is not
 * ascending, or a number is out of range. */
lr_status lr_selection_check(const lr_lors *lors, const lr_selection *selection, const lr_log *log);

/* The LOR whose value is at this position among the selection's values. */
int64_t lr_selection_lor(const lr_lors *lors, const lr_selection *selection, int64_t position);

/* An iteration over the LORs of a selection, span by span, in order. The caller sets the first five fields, zeroes the
 * rest, and calls lr_selection_next until it returns false. Each call sets `span` and `position` for the next span. */
struct lr_selection_walk {
    const lr_lors *lors;
    const lr_selection *selection;
    int64_t begin, end;  /* LORs outside begin .. end - 1 are skipped; both 0 = none are skipped */
    int64_t longest;     /* largest number of values of a span; 0 = no limit */
    lr_lor_span span;    /* out: the span, never empty */
    int64_t position;    /* out: position of the span's first LOR */
    int64_t entry;       /* next entry of the list */
    int64_t inside;      /* number of LORs of this entry that are done */
    int64_t entry_begin; /* position of the entry's first LOR */
};

bool lr_selection_next(struct lr_selection_walk *walk);

/* Finds LORs in ascending order. The caller sets lors and selection, and zeroes the rest. */
struct lr_selection_finder {
    const lr_lors *lors;
    const lr_selection *selection;
    int64_t entry;       /* all entries before this one are below the last LOR that was searched */
    int64_t entry_begin; /* position of the entry's first LOR */
};

/* The position of `lor`, or -1 if it is not selected. */
int64_t lr_selection_find(struct lr_selection_finder *finder, int64_t lor);
