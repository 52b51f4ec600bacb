/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Events as a structure of arrays. Each range is partitioned by predominant direction and sorted by the events' centres
 * of time of flight (the paper, II.B.1, II.B.3 and II.B.7). An event takes 16 bytes. The ends of its line are read from
 * a table of crystals, which fits into the caches. If lines are given by their ends (lr_lines), the table has these
 * ends instead: line n joins the points 2 n and 2 n + 1. Events do not change, except for arrays on a device, so
 * threads can share them. */
#pragma once

#include <lr/listmode.h>
#include <lr/lors.h>
#include <stdint.h>
#include <string.h>

/* --- sorting by keys --- */

/* An event's number, with the key by which events are sorted. */
struct lr_listmode_ticket {
    int32_t number; /* chosen by the caller of the sort */
    uint32_t key;
};

/* Sorts in place, ascending by key. Equal keys keep their order for any number of threads. spare: [count]. */
void lr_listmode_sort_tickets(struct lr_listmode_ticket *tickets, struct lr_listmode_ticket *spare, int64_t count,
                              int threads);

/* --- samples of LORs --- */

/* A sample is spread evenly over all LORs. The LORs are divided into strides of equal length. From each stride, one LOR
 * is drawn at random. This LOR is a line of the sample, and represents the whole stride. */

/* Some lines of a sample: numbers first + step * k, 0 <= k < count. The struct is plain data. lors must outlive it. */
struct lr_listmode_sample {
    const lr_lors *lors;
    double stride; /* number of LORs of a stride; 1 = line n is LOR n */
    uint64_t seed;
    int64_t first, step, count;
    const struct lr_listmode_faces *faces; /* faces from which solid angles are computed; NULL = lines have none */
    float *weights; /* [count] memory of the device that draws the lines, which receives solid angles; NULL = none */
};

/* Returns the LOR of line k, which may not be in coincidence. The result depends only on seed and line. */
int64_t lr_listmode_sample_lor(const struct lr_listmode_sample *sample, int64_t k);

/* A range has two groups of events for each axis of the grid: first events without time of flight, in the caller's
 * order, then events with time of flight, sorted by the coordinate of the event's centre along the axis. */
enum { LR_LISTMODE_GROUPS = 6 };

static inline int lr_listmode_group_axis(int group)
{
    return group / 2;
}

static inline bool lr_listmode_group_has_tof(int group)
{
    return group % 2 != 0;
}

/* Events of the caller, in the caller's order. They are fields of records, or columns. A step is the number of bytes
 * from an event's value to the value of the next event. */
struct lr_listmode_input {
    const char *crystals; /* int32_t [2]; NULL = event n joins the points 2 n and 2 n + 1 */
    const char *tof_mm;   /* float; NULL = 0 */
    size_t crystals_step, tof_step;
};

static inline void lr_listmode_input_crystals(const struct lr_listmode_input *input, int64_t number,
                                              int32_t crystals[2])
{
    const int32_t points[2] = {(int32_t)(2 * number), (int32_t)(2 * number + 1)};
    const bool has_crystals = input->crystals != NULL;
    memcpy(crystals, has_crystals ? input->crystals + (size_t)number * input->crystals_step : (const char *)points,
           sizeof(points));
}

static inline float lr_listmode_input_tof(const struct lr_listmode_input *input, int64_t number)
{
    float tof_mm = 0.0f;
    if (input->tof_mm != NULL) memcpy(&tof_mm, input->tof_mm + (size_t)number * input->tof_step, sizeof(tof_mm));
    return tof_mm;
}

struct lr_listmode_events;

/* Arranged arrays on a device, which are kept as long as the events exist. Only one backend uses the arrays, and it can
 * reorder the events within each group. */
struct lr_listmode_held {
    void *arrays[4]; /* [count] crystals a and b, tof_mm, number */
    /* Copies the arranged events into the host's arrays of `events` (lr_listmode_events_make_arrays). errors:
     * LR_FAILED, logged. */
    lr_status (*fetch)(const struct lr_listmode_held *held, struct lr_listmode_events *events, const lr_log *log);
    void (*destroy)(struct lr_listmode_held *held);
};

struct lr_listmode_events {
    lr_lors layout;                            /* LORs without a scanner: each pair of modules is a range, each LOR an
                                                  event */
    int64_t *offsets;                          /* owned [num_ranges + 1], used by the layout */
    int64_t (*groups)[LR_LISTMODE_GROUPS + 1]; /* owned [num_ranges]: index in the arrays of each group's first event */
    struct lr_listmode_input from;             /* [count] events of the caller, which are needed until a backend is open
                                                  for them */
    const struct lr_listmode_sample *sample;   /* lines that replace the events of `from`; NULL = none */
    bool are_lines;                            /* true if events are lines given by their ends */
    bool are_checked;                          /* all events have passed the checks */
    int32_t *crystals[2];                      /* owned [count] a and b; NULL until the host's arrays are made */
    float *tof_mm;                             /* owned [count] as in lr_event; NULL whenever crystals is NULL */
    int32_t *number;                           /* owned [count] number of the event in its range, in the caller's order;
                                                  NULL whenever crystals is NULL */
    int num_crystals;                          /* number of the scanner's crystals, or of the lines' ends */
    double (*hits)[3];                         /* owned [num_crystals] ends of lines, mm */
    unsigned char *kind_of;                    /* owned [num_crystals]; NULL = all are of kind 0 */
    int num_kinds;
    double *sigma_mm;              /* owned [num_kinds][num_kinds] standard deviation of tof_mm; 0 = no time of
                                    * flight */
    double *bin_mm;                /* owned [num_kinds][num_kinds] width of the bins of tof_mm; NULL = there are no
                                    * bins */
    double reach_mm;               /* largest distance along the line between an event's tof_mm and its elements; 0 = no
                                      event has time of flight */
    bool is_arranged;              /* the host's arrays hold the arranged events */
    struct lr_listmode_held *held; /* owned: arranged events on a device; NULL = none */
    double partition_seconds, sort_seconds; /* time for arranging, by the device's clock if a device did it */
};

/* Events are opened, then arranged. Opening sets up everything except the events, which the caller must keep until they
 * are arranged. Arranging checks and sorts the events on the host, unless a device has already arranged them. Call the
 * finish function even after an error. params->count is the number of events, also for columns and lines. Vectors of
 * lines are on the host: ends in either precision, other vectors in float32.
 *
 * sample: lines without time of flight that replace the events of params; it must outlive the events; NULL = none. A
 * device draws the lines while it arranges them, and skips lines that are not in coincidence. The host cannot arrange a
 * sample. Positions of crystals are not compared, because modules in coincidence do not overlap.
 *
 * errors: LR_USAGE if there are no events or if ranges are invalid; LR_BAD_INPUT for a crystal that the scanner lacks,
 * two crystals that are equal or at the same position, an end of a line that is not finite, or a time of flight that is
 * not finite or has no resolution; LR_FAILED if memory runs out. */
lr_status lr_listmode_events_open(struct lr_listmode_events *events, const lr_listmode_params *params,
                                  const struct lr_listmode_sample *sample);
lr_status lr_listmode_events_arrange(struct lr_listmode_events *events, const lr_listmode_params *params);
void lr_listmode_events_finish(struct lr_listmode_events *events);

/* Checks all events. The caller must call this before it uses the events' crystals as indices of any table. errors:
 * LR_BAD_INPUT as above. */
lr_status lr_listmode_events_check(struct lr_listmode_events *events, int threads, const lr_log *log);

/* Events begin .. end - 1 in the caller's order, and the arrays to which they are copied, of length end - begin. */
struct lr_listmode_piece {
    int64_t begin, end;
    int threads;
    int32_t *crystals[2];
    float *tof_mm;
};

/* Checks and copies a piece in one pass, because memory access takes most of the time. errors: LR_BAD_INPUT as
 * above. */
lr_status lr_listmode_events_take(const struct lr_listmode_events *events, const struct lr_listmode_piece *piece,
                                  const lr_log *log);

/* Makes the host's arrays if there are none.
 * errors: LR_FAILED if memory runs out. */
lr_status lr_listmode_events_make_arrays(struct lr_listmode_events *events, const lr_log *log);

/* Frees the arrays on a device. Events are then arranged only if the host's arrays hold them. */
void lr_listmode_events_release(struct lr_listmode_events *events);

/* lr_listmode_has_group: returns true if any range has events in this group. lr_listmode_has_axis: the same for the two
 * groups of an axis. The events must be arranged. */
bool lr_listmode_has_group(const struct lr_listmode_events *events, int group);
static inline bool lr_listmode_has_axis(const struct lr_listmode_events *events, int axis)
{
    return lr_listmode_has_group(events, 2 * axis) || lr_listmode_has_group(events, 2 * axis + 1);
}

/* Returns the number of events in the largest group of any range. The events must be arranged. */
int64_t lr_listmode_longest_group(const struct lr_listmode_events *events);

/* Returns the index into sigma_mm and bin_mm for two crystals; -1 if they have no time of flight. */
static inline int lr_listmode_kinds(const struct lr_listmode_events *events, const int32_t crystals[2])
{
    if (events->kind_of == NULL) return 0;
    const int a = events->kind_of[crystals[0]], b = events->kind_of[crystals[1]];
    return a < events->num_kinds && b < events->num_kinds ? a * events->num_kinds + b : -1;
}

/* Returns the standard deviation of an event's time of flight in mm; 0 if the event has no time of flight. */
static inline double lr_listmode_sigma(const struct lr_listmode_events *events, const int32_t crystals[2])
{
    const int kinds = lr_listmode_kinds(events, crystals);
    return kinds >= 0 ? events->sigma_mm[kinds] : 0.0;
}

/* Returns the width of the bin of an event's tof_mm, in mm; 0 = tof_mm is exact. */
static inline double lr_listmode_bin(const struct lr_listmode_events *events, const int32_t crystals[2])
{
    const int kinds = events->bin_mm != NULL ? lr_listmode_kinds(events, crystals) : -1;
    return kinds >= 0 ? events->bin_mm[kinds] : 0.0;
}
