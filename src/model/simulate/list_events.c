/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Counts per LOR as events one by one: a random order (Fisher and Yates) and the times of a Poisson
 * process with as many events, which are sums of exponential gaps brought to the duration. */
#include "base/log.h"
#include "base/mem.h"
#include "model/simulate/random.h"

#include <lr/events.h>
#include <math.h>
#include <stdlib.h>

enum { AT_ONCE = 1024 };

static const double usual_duration_s = 60;

/* What a random number is for. */
enum purpose { ORDER = 1, GAPS = 2 };

/* The number of an event, uniform in (0, 1). */
static double uniform(uint64_t seed, int64_t event, enum purpose purpose)
{
    double numbers[2];
    const struct lr_random at = {seed, (uint64_t)event, (uint32_t)purpose, LR_RANDOM_EVENTS};
    lr_random_pair(&at, numbers);
    return numbers[0];
}

static lr_status count_events(const lr_list_params *params, int64_t *count)
{
    const lr_lor_data *data = params->data;
    *count = 0;
    for (int64_t k = 0; k < data->count; k++) {
        const double value = data->values[k];
        if (!(value >= 0 && value <= 0x1.0p24) || value != floor(value)) {
            return lr_error(params->log, LR_BAD_INPUT,
                            "LOR %lld has %g counts: events are made of whole ones, at least 0",
                            (long long)(data->index != NULL ? data->index[k] : k), value);
        }
        *count += (int64_t)value;
    }
    return LR_OK;
}

static void list_lors(const lr_lor_data *data, int64_t *lors)
{
    for (int64_t k = 0; k < data->count; k++)
        for (int64_t n = (int64_t)data->values[k]; n > 0; n--) *lors++ = data->index != NULL ? data->index[k] : k;
}

static void shuffle(int64_t *lors, int64_t count, uint64_t seed)
{
    for (int64_t k = count - 1; k > 0; k--) {
        const int64_t other = (int64_t)(uniform(seed, k, ORDER) * (double)(k + 1));
        const int64_t kept = lors[k];
        lors[k] = lors[other];
        lors[other] = kept;
    }
}

static double gap(uint64_t seed, int64_t event)
{
    return -log(uniform(seed, event, GAPS));
}

static lr_status hand_out(const lr_list_params *params, const int64_t *lors, int64_t count, const lr_event_sink *sink)
{
    const double duration_s = params->duration_s > 0 ? params->duration_s : usual_duration_s;
    lr_event events[AT_ONCE];
    double whole = gap(params->seed, count), until = 0;
    for (int64_t k = 0; k < count; k++) whole += gap(params->seed, k);
    for (int64_t first = 0; first < count; first += AT_ONCE) {
        const int num = count - first < AT_ONCE ? (int)(count - first) : AT_ONCE;
        for (int k = 0; k < num; k++) {
            until += gap(params->seed, first + k);
            events[k] = (lr_event){
                .weight = 1,
                .time_ms = (uint32_t)fmin(1e3 * duration_s * (until / whole), UINT32_MAX),
            };
            lr_lors_crystals(params->lors, lors[first + k], events[k].crystals);
        }
        LR_TRY(sink->take(sink->user, events, num));
    }
    return LR_OK;
}

lr_status lr_events_from_counts(const lr_list_params *params, const lr_event_sink *sink)
{
    int64_t count;
    LR_TRY(count_events(params, &count));
    int64_t *lors = lr_alloc(count, sizeof(*lors), "events", params->log);
    if (lors == NULL) return LR_FAILED;
    list_lors(params->data, lors);
    shuffle(lors, count, params->seed);
    const lr_status status = hand_out(params, lors, count, sink);
    free(lors);
    return status;
}
