/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include <lr/events.h>

#include "base/parallel.h"
#include "model/lors/place.h"
#include "model/scanner/coincidence.h"

#include <stdatomic.h>
#include <stdlib.h>

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

/* What two modules have: no LORs, one for each two crystals, or those of pair FIRST_PAIR + n that its mask lets
 * count. So events are looked up in two small tables. */
enum { NONE_JOINED = 0, ALL_JOINED, FIRST_PAIR, MOST_MODULES = 1 << 13 };

struct joining {
    const lr_lors *lors;
    const lr_event *events;
    int32_t *module_of; /* owned [num_crystals] */
    int32_t *pairs;     /* owned [num_modules][num_modules] */
    atomic_llong joined;
};

/* Crystals of the lower and the higher module of a pair. */
static bool is_allowed(const lr_lors *lors, int64_t pair, int32_t low, int32_t high)
{
    const lr_scanner *scanner = lors->scanner;
    const int i = lors->pairs[pair][0], j = lors->pairs[pair][1];
    const int a = low - scanner->first_crystal[i], b = high - scanner->first_crystal[j];
    const int nu_i = scanner->modules[i].crystals[0], nu_j = scanner->modules[j].crystals[0];
    return lr_coincidence_allows(lors, pair, a % nu_i, a / nu_i, b % nu_j, b / nu_j);
}

static bool is_joined(const struct joining *joining, const int32_t crystals[2])
{
    const lr_scanner *scanner = joining->lors->scanner;
    const int32_t a = crystals[0], b = crystals[1];
    if (joining->pairs == NULL) {
        return lr_place_joined(joining->lors, crystals) >= 0;
    }
    if (a < 0 || b < 0 || a >= scanner->num_crystals || b >= scanner->num_crystals) {
        return false;
    }
    const int64_t row = (int64_t)joining->module_of[a] * scanner->num_modules;
    const int found = joining->pairs[row + joining->module_of[b]];
    return found >= FIRST_PAIR
               ? is_allowed(joining->lors, found - FIRST_PAIR, a < b ? a : b, a < b ? b : a)
               : found == ALL_JOINED;
}

static void count_share(void *user, int64_t begin, int64_t end, int worker)
{
    struct joining *joining = user;
    int64_t joined = 0;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        joined += is_joined(joining, joining->events[k].crystals);
    }
    atomic_fetch_add(&joining->joined, joined);
}

/* Without memory for tables, or with far too many modules, there are none. */
static void open_joining(struct joining *joining)
{
    const lr_lors *lors = joining->lors;
    const lr_scanner *scanner = lors->scanner;
    const int64_t modules = scanner != NULL ? scanner->num_modules : 0;
    if (modules == 0 || modules > MOST_MODULES || lors->num_pairs > INT32_MAX - FIRST_PAIR) {
        return;
    }
    joining->module_of = malloc((size_t)scanner->num_crystals * sizeof(*joining->module_of));
    joining->pairs = joining->module_of != NULL
                         ? calloc((size_t)modules * (size_t)modules, sizeof(*joining->pairs))
                         : NULL;
    if (joining->pairs == NULL) {
        return;
    }
    for (int m = 0; m < scanner->num_modules; m++) {
        for (int c = scanner->first_crystal[m]; c < scanner->first_crystal[m + 1]; c++) {
            joining->module_of[c] = m;
        }
    }
    for (int64_t pair = 0; pair < lors->num_pairs; pair++) {
        const int64_t i = lors->pairs[pair][0], j = lors->pairs[pair][1];
        const bool all = lors->masks->pairs[pair].kind == LR_MASK_ALL;
        joining->pairs[i * modules + j] = joining->pairs[j * modules + i] =
            all ? ALL_JOINED : (int32_t)pair + FIRST_PAIR;
    }
}

int64_t lr_events_count_joined(const lr_lors *lors, const lr_event_span *span)
{
    struct joining joining = {.lors = lors, .events = span->events};
    const int threads = span->threads > 0 ? span->threads : lr_num_processors();
    atomic_init(&joining.joined, 0);
    open_joining(&joining);
    lr_parallel_for(threads, span->count, AT_ONCE, count_share, &joining);
    free(joining.module_of);
    free(joining.pairs);
    return atomic_load(&joining.joined);
}

/* --- weights --- */

static void weigh_share(void *user, int64_t begin, int64_t end, int worker)
{
    const struct work *work = user;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        work->weights[k] = work->events[k].weight;
    }
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
