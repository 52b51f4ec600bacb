/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Division of a device's work on arranged events among groups of threads. A group gets a portion of consecutive events,
 * and a slab of the slices that their lines cross. Events are first sorted by these slices. The threads of a warp then
 * have about the same work, and a group visits few slices. This header is also valid C++. */
#pragma once

#include "listmode/events.h"

struct lr_listmode_backend_params;

/* The slices that the lines of a piece of events cross. */
struct lr_listmode_extent {
    int32_t slices[2]; /* first, and one after the last; the first is larger if no line crosses a slice */
    int32_t visits;    /* number of slices that the lines cross, or of steps of exact elements if these are more, summed
                          over all lines */
};

/* The events of each group, cut into pieces, in the order of a device. The last piece of a group can be shorter. In a
 * struct of zeros, there are no pieces. */
struct lr_listmode_pieces {
    int32_t each;                    /* number of events of a piece */
    int64_t *first;                  /* owned [num_ranges * LR_LISTMODE_GROUPS + 1] first piece of each group */
    struct lr_listmode_extent *list; /* owned */
};

/* Allocates the pieces. The caller sets `each` before. Call the finish function even after an error. errors: LR_FAILED
 * if memory runs out. */
lr_status lr_listmode_pieces_init(struct lr_listmode_pieces *pieces, const struct lr_listmode_events *events,
                                  const lr_log *log);
void lr_listmode_pieces_finish(struct lr_listmode_pieces *pieces);

/* Sorts the events of each group on the host: first by the size class of their windows (up to four voxels, up to five,
 * larger), then by their slices. order: [count] index of each event in the arrays. Also fills the pieces; the number of
 * events of a piece must divide 8192. There must be fewer than 2^32 events. errors: LR_FAILED if memory runs out. */
lr_status lr_listmode_order(const struct lr_listmode_backend_params *params, uint32_t *order,
                            struct lr_listmode_pieces *pieces);

/* The largest number of slices across an axis for which the sort keys of lr_listmode_order have enough bits. */
enum { LR_LISTMODE_KEY_SLICES = (1 << 15) - 1 };

/* --- portions --- */

/* Some consecutive events of a group. */
struct lr_listmode_portion {
    int64_t events[2];                       /* first, and one after the last */
    int32_t slices[2];                       /* slices that the lines may cross */
    const struct lr_listmode_extent *pieces; /* Rules for dividing the events of a group. */
};

/* pieces of these events, from events[0] on; NULL = not known */
struct lr_listmode_cut {
    int32_t each;        /* number of events of a piece */
    int32_t line_work;   /* work of beginning a line in a slab, in slices */
    int32_t slab;        /* largest number of slices of a slab */
    int64_t most_events; /* a portion with this many events gets no further piece */
    int64_t job_work;    /* approximate work of a job, which is a slab of a portion */
};

/* Returns the work of a portion in some slices: the number of slices that its lines cross, or of steps of exact
 * elements, plus the work of beginning the lines. */
int64_t lr_listmode_work(const struct lr_listmode_cut *cut, const struct lr_listmode_portion *portion,
                         const int32_t slices[2]);

/* A range that contains all slices of any grid. */
extern const int32_t lr_listmode_all[2];

/* Returns the number of slabs for this number of slices, at least one. */
static inline int32_t lr_listmode_slabs(const struct lr_listmode_cut *cut, int32_t slices)
{
    const int32_t slabs = (slices + cut->slab - 1) / cut->slab;
    return slabs > 1 ? slabs : 1;
}

/* Finds the slices of slab k of a portion that is cut into `slabs` slabs. */
static inline void lr_listmode_slab(const struct lr_listmode_portion *portion, int32_t slabs, int32_t k,
                                    int32_t slices[2])
{
    const int64_t first = portion->slices[0], length = portion->slices[1] - first;
    slices[0] = (int32_t)(first + length * k / slabs);
    slices[1] = (int32_t)(first + length * (k + 1) / slabs);
}

/* Takes the next events of a group as a portion. The portion grows until each of its slabs has about the work of a job.
 * If further events would need more slabs, half of this work is enough. pieces: the pieces of the events from ends[0]
 * on. ends: the next event, and the end of the group. */
struct lr_listmode_portion lr_listmode_next_portion(const struct lr_listmode_cut *cut,
                                                    const struct lr_listmode_extent *pieces, const int64_t ends[2]);
