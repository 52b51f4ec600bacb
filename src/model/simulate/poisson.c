/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Poisson counts. */
#include "base/log.h"
#include "base/parallel.h"
#include "model/simulate/random.h"

#include <math.h>

/* Means from here on are drawn by rejection, smaller ones by inversion. */
#define LARGE_MEAN 10.0
/* For means below LARGE_MEAN the probability of reaching this is below 1e-150. */
#define MAX_SMALL_COUNT 200
#define SHARE 4096

static const double two_pi = 6.28318530717958647692;

static void next_pair(struct lr_random *at, double uniform[2])
{
    lr_random_pair(at, uniform);
    at->draw++;
}

/* Inversion: the first count whose cumulated probability exceeds a uniform number. */
static double draw_small(double mean, struct lr_random *at)
{
    double uniform[2];
    next_pair(at, uniform);
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

/* ln k! less Stirling's (k + 1/2) ln k - k + ln(2 pi) / 2, k >= 1. */
static double stirling_error(double k)
{
    if (k < 10.0) {
        double factorial = 1.0;
        for (double n = 2.0; n <= k; n += 1.0) factorial *= n;
        return log(factorial) - (k + 0.5) * log(k) + k - 0.5 * log(two_pi);
    }
    const double inverse2 = 1.0 / (k * k);
    return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - inverse2 / 1680) * inverse2) * inverse2) / k;
}

/* k ln(k / mean) - (k - mean), which cancels near k = mean. With v = (k - mean) / (k + mean),
 * ln(k / mean) = 2 artanh v, of which the first term combines with k - mean exactly. */
static double deviance(double k, double mean)
{
    const double v = (k - mean) / (k + mean);
    if (fabs(v) > 0.1) return k * log(k / mean) - (k - mean);
    const double v2 = v * v;
    double power = v * v2, sum = 0.0;
    for (int n = 3; n <= 17; n += 2, power *= v2) sum += power / n;
    return (k - mean) * v + 2.0 * k * sum;
}

static double log_probability(double k, double mean)
{
    if (k == 0.0) return -mean;
    return -stirling_error(k) - deviance(k, mean) - 0.5 * log(two_pi * k);
}

/* Algorithm PTRS of Hormann: The transformed rejection method for generating Poisson random
 * variables, Insurance: Mathematics and Economics 12 (1993) 39-45, for means of 10 and more. */
static double draw_large(double mean, struct lr_random *at)
{
    const double b = 0.931 + 2.53 * sqrt(mean);
    const double a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    const double v_r = 0.9277 - 3.6224 / (b - 2.0);
    for (;;) {
        double uniform[2];
        next_pair(at, uniform);
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

static void draw_share(void *user, int64_t begin, int64_t end, int worker)
{
    const struct job *job = user;
    (void)worker;
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
                            "expectation %lld is %.6g: a Poisson count needs a finite one that is "
                            "not negative",
                            (long long)(stream->first + k), (double)values[k]);
        }
    }
    struct job job = {.values = values, .stream = *stream};
    lr_parallel_for(lr_num_processors(), count, SHARE, draw_share, &job);
    return LR_OK;
}
