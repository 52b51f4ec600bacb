/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Bootstrap replicates of list mode: Efron: Bootstrap methods: another look at the jackknife, Ann. Stat. 7
 * (1979) 1-26, with Poisson numbers in place of multinomial ones, so that events are drawn one by one. */
#include "base/log.h"
#include "base/mem.h"

#include <lr/events.h>
#include <lr/phantom.h>
#include <stdlib.h>

/* How often each event is drawn. */
static lr_status draw(const lr_event_list *list, uint64_t seed, float *times, const lr_log *log)
{
    for (int64_t k = 0; k < list->count; k++) times[k] = list->events[k].weight;
    const lr_poisson_stream stream = {.seed = seed, .purpose = LR_RANDOM_REPLICATE};
    return lr_poisson_part(times, list->count, &stream, log);
}

/* How many events are left, and what they count as. */
static int64_t count_left(const lr_event_list *list, const float *times, lr_event_counts *counts)
{
    int64_t left = 0;
    counts->prompts = counts->delayeds = 0;
    for (int64_t k = 0; k < list->count; k++) {
        const bool is_delayed = list->events[k].is_delayed;
        const int64_t num = (int64_t)times[k];
        left += is_delayed ? num : num > 0;
        counts->prompts += is_delayed ? 0 : num;
        counts->delayeds += is_delayed ? num : 0;
    }
    return left;
}

static void take(const lr_event_list *list, const float *times, lr_event *events)
{
    for (int64_t k = 0; k < list->count; k++) {
        lr_event event = list->events[k];
        const int64_t num = (int64_t)times[k];
        event.weight = event.is_delayed ? 1.0f : times[k];
        const int64_t copies = event.is_delayed ? num : num > 0;
        for (int64_t n = 0; n < copies; n++) *events++ = event;
    }
}

/* The events that were drawn take the place of the list's. */
static lr_status replace(lr_event_list *list, const float *times, const lr_log *log)
{
    lr_event_counts counts = list->info.counts;
    const int64_t left = count_left(list, times, &counts);
    lr_event *events = lr_alloc(left > 0 ? left : 1, sizeof(*events), "events", log);
    if (events == NULL) return LR_FAILED;
    take(list, times, events);
    free(list->events);
    list->events = events;
    list->count = left;
    list->info.counts = counts;
    list->info.weight = (double)(counts.prompts + counts.delayeds);
    return LR_OK;
}

lr_status lr_event_list_bootstrap(lr_event_list *list, uint64_t seed, const lr_log *log)
{
    float *times = lr_alloc(list->count > 0 ? list->count : 1, sizeof(*times), "a replicate", log);
    lr_status status = times != NULL ? draw(list, seed, times, log) : LR_FAILED;
    status = status == LR_OK ? replace(list, times, log) : status;
    free(times);
    return status;
}
