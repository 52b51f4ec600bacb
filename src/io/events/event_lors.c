/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include <lr/events.h>

#include "base/parallel.h"
#include "io/events/event_joining.h"
#include "model/lors/place.h"

#include <stdatomic.h>

/* Events that a thread takes at a time. */
enum { AT_ONCE = 1 << 13 };

struct work {
    const lr_lors *lors;
    const lr_event *events;
    int64_t *numbers;
    atomic_llong *joined; /* events that have a LOR */
    float *weights;
};

static void number_share(void *user, int64_t begin, int64_t end, int worker)
{
    const struct work *work = user;
    int64_t joined = 0;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        work->numbers[k] = lr_place_joined(work->lors, work->events[k].crystals);
        joined += work->numbers[k] >= 0;
    }
    atomic_fetch_add(work->joined, joined);
}

/* --- how many are joined --- */

struct counting {
    struct lr_joining joining;
    const lr_event *events;
    atomic_llong joined;
};

static void count_share(void *user, int64_t begin, int64_t end, int worker)
{
    struct counting *counting = user;
    (void)worker;
    atomic_fetch_add(&counting->joined, lr_joining_count(&counting->joining, counting->events + begin, end - begin));
}

int64_t lr_events_count_joined(const lr_lors *lors, const lr_event_span *span)
{
    struct counting counting = {.events = span->events};
    const int threads = span->threads > 0 ? span->threads : lr_num_processors();
    atomic_init(&counting.joined, 0);
    lr_joining_open(&counting.joining, lors);
    lr_parallel_for(threads, span->count, AT_ONCE, count_share, &counting);
    lr_joining_finish(&counting.joining);
    return atomic_load(&counting.joined);
}

/* --- weights --- */

static void weigh_share(void *user, int64_t begin, int64_t end, int worker)
{
    const struct work *work = user;
    (void)worker;
    for (int64_t k = begin; k < end; k++) work->weights[k] = work->events[k].weight;
}

static void run(const lr_event_span *span, lr_parallel_body *body, struct work *work)
{
    const bool is_long = span->count > AT_ONCE;
    const int threads = !is_long ? 1 : span->threads > 0 ? span->threads : lr_num_processors();
    work->events = span->events;
    lr_parallel_for(threads, span->count, AT_ONCE, body, work);
}

int64_t lr_events_lors(const lr_lors *lors, const lr_event_span *span, int64_t *numbers)
{
    atomic_llong joined;
    atomic_init(&joined, 0);
    run(span, number_share, &(struct work){.lors = lors, .numbers = numbers, .joined = &joined});
    return atomic_load(&joined);
}

void lr_events_weights(const lr_event_span *span, float *weights)
{
    run(span, weigh_share, &(struct work){.weights = weights});
}
