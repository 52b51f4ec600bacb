/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Poisson counts, bootstrap replicates of list mode, and events from counts.
 *
 * Replicates follow Efron: Bootstrap methods: another look at the jackknife, Ann. Stat. 7 (1979) 1-26. Poisson numbers
 * replace multinomial numbers, so that events are drawn one by one. Events from counts have a random order (Fisher and
 * Yates). Their times are those of a Poisson process with the same number of events. These times are sums of
 * exponential gaps, scaled to the duration. */
#include "base/units.h"
#include "model/simulate/random.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"

#include <lr/events.h>
#include <lr/phantom.h>
#include <math.h>
#include <stdlib.h>

/* Least mean for which rejection is used. Inversion is used for smaller means. */
#define LARGE_MEAN 10.0
/* Largest count considered for means below LARGE_MEAN. The probability of reaching this count is below 1e-150. */
#define MAX_SMALL_COUNT 200
/* Number of counts that a worker draws at a time. */
#define SHARE 4096

/* Inversion: the first count whose cumulated probability exceeds a uniform number. */
static double draw_small(double mean, const struct lr_random *at)
{
    double uniform[2];
    lr_random_pair(at, uniform);
    double probability = exp(-mean);
    double cumulated = probability;
    int count = 0;
    while (uniform[0] > cumulated && count < MAX_SMALL_COUNT) {
        count++;
        probability *= mean / count;
        cumulated += probability;
    }
    return count;
}

/* The logarithm of the Poisson probability of k: -stirling - deviance - ln(2 pi k) / 2. */
static double log_probability(double k, double mean)
{
    if (k == 0.0) return -mean;

    /* stirling = ln k! - ((k + 1/2) ln k - k + ln(2 pi) / 2), the error of Stirling's formula. */
    const double inverse2 = 1.0 / (k * k);
    double stirling = (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - inverse2 / 1680) * inverse2) * inverse2) / k;
    if (k < 10.0) {
        double factorial = 1.0;
        for (double n = 2.0; n <= k; n += 1.0) factorial *= n;
        stirling = log(factorial) - (k + 0.5) * log(k) + k - 0.5 * log(2 * LR_PI);
    }

    /* deviance = k ln(k / mean) - (k - mean). Near k = mean, this difference would lose digits. Instead, ln(k / mean) =
     * 2 artanh v, with v = (k - mean) / (k + mean), is expanded in a series. The first term of the series is combined
     * with k - mean exactly. */
    const double v = (k - mean) / (k + mean), v2 = v * v;
    double deviance;
    if (fabs(v) > 0.1) {
        deviance = k * log(k / mean) - (k - mean);
    } else {
        double power = v * v2, sum = 0.0;
        for (int n = 3; n <= 17; n += 2, power *= v2) sum += power / n;
        deviance = (k - mean) * v + 2.0 * k * sum;
    }
    return -stirling - deviance - 0.5 * log(2 * LR_PI * k);
}

/* Algorithm PTRS of Hormann: The transformed rejection method for generating Poisson random
 * variables, Insurance: Mathematics and Economics 12 (1993) 39-45, for means of 10 and more. */
static double draw_large(double mean, struct lr_random *at)
{
    const double b = 0.931 + 2.53 * sqrt(mean);
    const double a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    const double v_r = 0.9277 - 3.6224 / (b - 2.0);
    for (;; at->draw++) {
        double uniform[2];
        lr_random_pair(at, uniform);
        const double u = uniform[0] - 0.5, v = uniform[1];
        const double us = 0.5 - fabs(u);
        const double k = floor((2.0 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= v_r) return k;
        if (k < 0.0 || (us < 0.013 && v > us)) continue;
        if (log(v * inverse_alpha / (a / (us * us) + b)) <= log_probability(k, mean)) return k;
    }
}

struct job {
    float *values;
    lr_poisson_stream stream;
};

static void draw_share(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    for (int64_t k = begin; k < end; k++) {
        struct lr_random at = {
            .seed = job->stream.seed, .element = (uint64_t)(job->stream.first + k), .stream = job->stream.purpose};
        const double mean = job->values[k];
        job->values[k] = (float)(mean < LARGE_MEAN ? draw_small(mean, &at) : draw_large(mean, &at));
    }
}

lr_status lr_poisson(float *values, int64_t count, uint64_t seed, const lr_log *log)
{
    return lr_poisson_part(values, count, &(lr_poisson_stream){.seed = seed}, log);
}

lr_status lr_poisson_part(float *values, int64_t count, const lr_poisson_stream *stream, const lr_log *log)
{
    for (int64_t k = 0; k < count; k++) {
        if (!isfinite(values[k]) || values[k] < 0.0f) {
            return lr_error(log, LR_BAD_INPUT,
                            "expectation %lld is %.6g: a Poisson count needs a finite one that is not negative",
                            (long long)(stream->first + k), (double)values[k]);
        }
    }
    struct job job = {.values = values, .stream = *stream};
    lr_parallel_for(lr_num_processors(), count, SHARE, draw_share, &job);
    return LR_OK;
}

/* --- bootstrap replicates --- */

lr_status lr_event_list_bootstrap(lr_event_list *list, uint64_t seed, const lr_log *log)
{
    const lr_poisson_stream stream = {.seed = seed, .purpose = LR_RANDOM_REPLICATE};
    float *times = lr_alloc(list->count > 0 ? list->count : 1, sizeof(*times), "a replicate", log);
    if (times == NULL) return LR_FAILED;
    for (int64_t k = 0; k < list->count; k++) times[k] = list->events[k].weight;
    const lr_status status = lr_poisson_part(times, list->count, &stream, log);
    if (status != LR_OK) {
        free(times);
        return status;
    }

    /* A prompt that occurs several times becomes one event with a weight. A delayed that occurs several times becomes
     * several events. */
    lr_event_counts counts = list->info.counts;
    int64_t left = 0;
    counts.prompts = counts.delayeds = 0;
    for (int64_t k = 0; k < list->count; k++) {
        const bool is_delayed = list->events[k].is_delayed;
        const int64_t num = (int64_t)times[k];
        left += is_delayed ? num : num > 0;
        counts.prompts += is_delayed ? 0 : num;
        counts.delayeds += is_delayed ? num : 0;
    }
    lr_event *events = lr_alloc(left > 0 ? left : 1, sizeof(*events), "events", log);
    if (events == NULL) {
        free(times);
        return LR_FAILED;
    }
    int64_t next = 0;
    for (int64_t k = 0; k < list->count; k++) {
        lr_event event = list->events[k];
        const int64_t num = (int64_t)times[k], copies = event.is_delayed ? num : num > 0;
        event.weight = event.is_delayed ? 1.0f : times[k];
        for (int64_t n = 0; n < copies; n++) events[next++] = event;
    }
    lr_free_all(times, list->events);
    list->events = events;
    list->count = left;
    list->info.counts = counts;
    list->info.weight = (double)(counts.prompts + counts.delayeds);
    return LR_OK;
}

/* --- events from counts --- */

enum { AT_ONCE = 1024 };

static const double usual_duration_s = 60;

enum purpose { ORDER = 1, GAPS = 2 };

/* The random number of an event, uniform in (0, 1). */
static double uniform(uint64_t seed, int64_t event, enum purpose purpose)
{
    double numbers[2];
    const struct lr_random at = {seed, (uint64_t)event, (uint32_t)purpose, LR_RANDOM_EVENTS};
    lr_random_pair(&at, numbers);
    return numbers[0];
}

lr_status lr_events_from_counts_sized(size_t given_bytes, const lr_list_params *given, const lr_event_sink *sink)
{
    LR_TAKE(lr_list_params, params, given, given_bytes);
    const lr_lor_data *data = params->data;
    int64_t count = 0;
    for (int64_t k = 0; k < data->count; k++) {
        const double value = data->values[k];
        if (!(value >= 0 && value <= 0x1.0p24) || value != floor(value)) {
            return lr_error(params->log, LR_BAD_INPUT,
                            "LOR %lld has %g counts: events are made of whole ones, at least 0",
                            (long long)(data->index != NULL ? data->index[k] : k), value);
        }
        count += (int64_t)value;
    }
    int64_t *lors = lr_alloc(count, sizeof(*lors), "events", params->log);
    if (lors == NULL) return LR_FAILED;
    int64_t next = 0;
    for (int64_t k = 0; k < data->count; k++)
        for (int64_t n = (int64_t)data->values[k]; n > 0; n--) lors[next++] = data->index != NULL ? data->index[k] : k;

    /* Fisher and Yates' shuffle. */
    for (int64_t k = count - 1; k > 0; k--) {
        const int64_t other = (int64_t)(uniform(params->seed, k, ORDER) * (double)(k + 1));
        const int64_t swapped = lors[k];
        lors[k] = lors[other];
        lors[other] = swapped;
    }

    /* Times are sums of exponential gaps, scaled to the duration. */
    const double duration_s = params->duration_s > 0 ? params->duration_s : usual_duration_s;
    lr_event events[AT_ONCE];
    double whole = -log(uniform(params->seed, count, GAPS)), until = 0;
    lr_status status = LR_OK;
    for (int64_t k = 0; k < count; k++) whole += -log(uniform(params->seed, k, GAPS));
    for (int64_t first = 0; first < count && status == LR_OK; first += AT_ONCE) {
        const int num = count - first < AT_ONCE ? (int)(count - first) : AT_ONCE;
        for (int k = 0; k < num; k++) {
            until += -log(uniform(params->seed, first + k, GAPS));
            const double time_ms = 1e3 * duration_s * (until / whole);
            events[k] = (lr_event){.weight = 1, .time_ms = (uint32_t)fmin(time_ms, UINT32_MAX)};
            lr_lors_crystals(params->lors, lors[first + k], events[k].crystals);
        }
        status = sink->take(sink->user, events, num);
    }
    free(lors);
    return status;
}
