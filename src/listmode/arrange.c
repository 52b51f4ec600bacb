/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Events by groups, and sorted. Threads take parts of a range that follow each other, and the order is the same
 * for any number of them. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "listmode/events.h"
#include "listmode/line.h"
#include "listmode/tickets.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_PARTS = 64,
    LEAST_PART = 1 << 14, /* smaller ones are not worth a thread */
    COPIED_AT_ONCE = 1 << 16
};

/* A range on its way into order. */
struct arranging {
    struct lr_listmode_events *events;
    const lr_event *range; /* as the caller has it */
    int r;
    int64_t first, count, part; /* part: events of each but the last */
    int threads;
    struct lr_listmode_ticket *tickets[2];
    int64_t places[MOST_PARTS][LR_LISTMODE_GROUPS]; /* how many, then where the next one goes */
};

/* --- partition --- */

/* Numbers in the order of floats. */
static uint32_t ascending(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static int group_of(const struct lr_listmode_events *events, const lr_event *event)
{
    const int axis = lr_listmode_axis(events->hits[event->crystals[0]], events->hits[event->crystals[1]]);
    return 2 * axis + (lr_listmode_sigma(events, event->crystals) > 0 ? 1 : 0);
}

/* The coordinate of an event's centre along an axis. */
static float centre_of(const struct lr_listmode_events *events, const lr_event *event, int axis)
{
    const double *a = events->hits[event->crystals[0]], *b = events->hits[event->crystals[1]];
    double along[3];
    vec_sub(b, a, along);
    return (float)(0.5 * (a[axis] + b[axis]) + (double)event->tof_mm * along[axis] / vec_length(along));
}

/* Leaves the group in place of the number, and counts. */
static void find_groups(void *user, int64_t begin, int64_t end, int worker)
{
    struct arranging *arranging = user;
    int64_t *places = arranging->places[begin / arranging->part];
    (void)worker;
    memset(places, 0, sizeof(arranging->places[0]));
    for (int64_t k = begin; k < end; k++) {
        const lr_event *event = &arranging->range[k];
        const int group = group_of(arranging->events, event);
        const float centre = lr_listmode_group_has_tof(group)
                                 ? centre_of(arranging->events, event, lr_listmode_group_axis(group))
                                 : 0.0f;
        arranging->tickets[1][k] = (struct lr_listmode_ticket){group, ascending(centre)};
        places[group]++;
    }
}

/* Says where each group begins. */
static void find_places(struct arranging *arranging)
{
    int64_t *groups = arranging->events->groups[arranging->r], sum = 0;
    const int64_t parts = (arranging->count + arranging->part - 1) / arranging->part;
    for (int g = 0; g < LR_LISTMODE_GROUPS; g++) {
        groups[g] = arranging->first + sum;
        for (int64_t part = 0; part < parts; part++) {
            const int64_t here = arranging->places[part][g];
            arranging->places[part][g] = sum;
            sum += here;
        }
    }
    groups[LR_LISTMODE_GROUPS] = arranging->first + sum;
}

static void move_to_groups(void *user, int64_t begin, int64_t end, int worker)
{
    struct arranging *arranging = user;
    int64_t *places = arranging->places[begin / arranging->part];
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        const struct lr_listmode_ticket found = arranging->tickets[1][k];
        arranging->tickets[0][places[found.number]++] = (struct lr_listmode_ticket){(int32_t)k, found.key};
    }
}

static void partition(struct arranging *arranging)
{
    lr_parallel_for(arranging->threads, arranging->count, arranging->part, find_groups, arranging);
    find_places(arranging);
    lr_parallel_for(arranging->threads, arranging->count, arranging->part, move_to_groups, arranging);
}

/* --- the rest --- */

static void sort_groups(const struct arranging *arranging)
{
    const int64_t *groups = arranging->events->groups[arranging->r];
    for (int g = 0; g < LR_LISTMODE_GROUPS; g++) {
        if (lr_listmode_group_has_tof(g)) {
            lr_listmode_sort_tickets(arranging->tickets[0] + (groups[g] - arranging->first), arranging->tickets[1],
                                     groups[g + 1] - groups[g], arranging->threads);
        }
    }
}

static void copy_events(void *user, int64_t begin, int64_t end, int worker)
{
    const struct arranging *arranging = user;
    struct lr_listmode_events *events = arranging->events;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        const int32_t number = arranging->tickets[0][k].number;
        const lr_event *event = &arranging->range[number];
        const int64_t at = arranging->first + k;
        events->crystals[0][at] = event->crystals[0];
        events->crystals[1][at] = event->crystals[1];
        events->tof_mm[at] = event->tof_mm;
        events->number[at] = number;
    }
}

/* Adds to *seconds what went by since *start, from when on the next time counts. */
static void add_seconds(double *start, double *seconds)
{
    const double now = lr_clock_seconds();
    *seconds += now - *start;
    *start = now;
}

static void arrange_range(struct arranging *arranging)
{
    double start = lr_clock_seconds();
    partition(arranging);
    add_seconds(&start, &arranging->events->partition_seconds);
    sort_groups(arranging);
    add_seconds(&start, &arranging->events->sort_seconds);
    lr_parallel_for(arranging->threads, arranging->count, COPIED_AT_ONCE, copy_events, arranging);
}

/* --- all ranges --- */

static void begin_range(struct arranging *arranging, const lr_event *all, int r)
{
    const int64_t *offsets = arranging->events->offsets;
    arranging->r = r;
    arranging->first = offsets[r];
    arranging->count = offsets[r + 1] - offsets[r];
    arranging->range = all + offsets[r];
    const int64_t parts = arranging->count / LEAST_PART;
    const int64_t most = parts < MOST_PARTS ? (parts > 1 ? parts : 1) : MOST_PARTS;
    arranging->part = arranging->count > 0 ? (arranging->count + most - 1) / most : 1;
}

static int64_t longest_range(const struct lr_listmode_events *events)
{
    int64_t longest = 0;
    for (int64_t r = 0; r < events->layout.num_pairs; r++) {
        const int64_t size = events->offsets[r + 1] - events->offsets[r];
        longest = size > longest ? size : longest;
    }
    return longest;
}

static void arrange_all(struct arranging *arranging, const lr_event *all)
{
    for (int r = 0; r < arranging->events->layout.num_pairs; r++) {
        begin_range(arranging, all, r);
        arrange_range(arranging);
    }
}

lr_status lr_listmode_events_arrange(struct lr_listmode_events *events, const lr_listmode_params *params)
{
    if (events->is_arranged) return LR_OK;

    const int64_t longest = longest_range(events);
    struct arranging arranging; /* large, and not to be cleared as a whole */
    arranging.events = events;
    arranging.threads = params->threads > 0 ? params->threads : lr_num_processors();
    LR_TRY(lr_listmode_events_check(events, arranging.threads, params->log));
    LR_TRY(lr_listmode_events_make_arrays(events, params->log));
    for (int k = 0; k < 2; k++)
        arranging.tickets[k] = lr_alloc(longest, sizeof(*arranging.tickets[k]), "sorting events", params->log);
    events->is_arranged = arranging.tickets[0] != NULL && arranging.tickets[1] != NULL;
    if (events->is_arranged) arrange_all(&arranging, events->from);
    free(arranging.tickets[0]);
    free(arranging.tickets[1]);
    return events->is_arranged ? LR_OK : LR_FAILED;
}

lr_status lr_listmode_events_init(struct lr_listmode_events *events, const lr_listmode_params *params)
{
    LR_TRY(lr_listmode_events_open(events, params));
    return lr_listmode_events_arrange(events, params);
}
