/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Division of a device's work on arranged events among groups of threads: portions of consecutive events, times slabs
 * of the slices that their lines cross. Events are sorted by these slices before, so that the threads of a warp have
 * about the same work, and groups go through few slices. C++ can read this header. */
#ifndef LR_LISTMODE_SCHEDULE_H
#define LR_LISTMODE_SCHEDULE_H

#include "listmode/events.h"

struct lr_listmode_backend_params;

/* The slices that the lines of a piece cross. */
struct lr_listmode_extent {
    int32_t slices[2]; /* first, and one after the last; the first is larger if no line crosses a slice */
    int32_t visits;    /* sum over all lines of the number of slices, or of the steps of exact elements if these are
                        * more */
};

/* The events of each group in pieces, in the order of a device. The last piece of a group may be shorter. Zero: there
 * are no pieces. */
struct lr_listmode_pieces {
    int32_t each;                    /* events of a piece */
    int64_t *first;                  /* owned [num_ranges * LR_LISTMODE_GROUPS + 1] first piece of each group */
    struct lr_listmode_extent *list; /* owned */
};

/* Allocates the pieces; the caller has set `each`. Finish them in any case. errors: LR_FAILED if memory runs out. */
lr_status lr_listmode_pieces_init(struct lr_listmode_pieces *pieces, const struct lr_listmode_events *events,
                                  const lr_log *log);
void lr_listmode_pieces_finish(struct lr_listmode_pieces *pieces);

/* Sorts the events of each group on the host: first by the size class of their windows (up to four voxels, up to five,
 * larger), then by their slices. order: [count] index of each event in the arrays. Fills the pieces; the number of
 * events in a piece divides 8192. There must be fewer than 2^32 events. errors: LR_FAILED if memory runs out. */
lr_status lr_listmode_order(const struct lr_listmode_backend_params *params, uint32_t *order,
                            struct lr_listmode_pieces *pieces);

/* Largest number of slices across an axis for which the keys of this order have enough bits. */
enum { LR_LISTMODE_KEY_SLICES = (1 << 15) - 1 };

/* --- portions --- */

/* Some consecutive events of a group. */
struct lr_listmode_portion {
    int64_t events[2];                       /* first, and one after the last */
    int32_t slices[2];                       /* slices that the lines may cross */
    const struct lr_listmode_extent *pieces; /* of these events; NULL = every line crosses all of the slices */
};

/* How the events of a group are divided. */
struct lr_listmode_cut {
    int32_t each;        /* events of a piece */
    int32_t line_work;   /* work of beginning a line in a slab, in slices */
    int32_t slab;        /* most slices of a slab */
    int64_t most_events; /* portions of this many events get no further piece */
    int64_t job_work;    /* approximate work of a slab of a portion */
};

/* Work of a portion in some slices: the number of slices that its lines cross, or the number of steps of exact
 * elements, plus the work of beginning the lines. */
int64_t lr_listmode_work(const struct lr_listmode_cut *cut, const struct lr_listmode_portion *portion,
                         const int32_t slices[2]);

/* All slices of any grid. */
extern const int32_t lr_listmode_all[2];

/* The number of slabs of this many slices; at least one. */
static inline int32_t lr_listmode_slabs(const struct lr_listmode_cut *cut, int32_t slices)
{
    const int32_t slabs = (slices + cut->slab - 1) / cut->slab;
    return slabs > 1 ? slabs : 1;
}

/* Slices of slab k of a portion that is cut into `slabs`. */
static inline void lr_listmode_slab(const struct lr_listmode_portion *portion, int32_t slabs, int32_t k,
                                    int32_t slices[2])
{
    const int64_t first = portion->slices[0], length = portion->slices[1] - first;
    slices[0] = (int32_t)(first + length * k / slabs);
    slices[1] = (int32_t)(first + length * (k + 1) / slabs);
}

/* Takes the next events of a group as a portion. The portion has so many events that the work of each of its slabs is
 * about that of a job, with few more slabs than necessary. pieces: the pieces of the events from ends[0] on; ends: the
 * next event, and the group's end. */
struct lr_listmode_portion lr_listmode_next_portion(const struct lr_listmode_cut *cut,
                                                    const struct lr_listmode_extent *pieces, const int64_t ends[2]);

#endif
