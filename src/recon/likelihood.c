/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "recon/likelihood.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Probabilities of one voxel sum to at most 1, so ratios up to this add up to a finite float. */
#define LARGEST_RATIO (0.5 * FLT_MAX)

struct lr_lor_cursor lr_lor_cursor_at(const lr_lor_data *data, int64_t lor)
{
    struct lr_lor_cursor cursor = {data, 0};
    if (data == NULL || data->index == NULL) {
        return cursor;
    }
    int64_t end = data->count;
    while (cursor.next < end) {
        const int64_t middle = cursor.next + (end - cursor.next) / 2;
        if (data->index[middle] < lor) {
            cursor.next = middle + 1;
        } else {
            end = middle;
        }
    }
    return cursor;
}

/* One LOR: adds it to the fit and returns its ratio. */
static inline double add_lor(struct lr_fit *fit, double measured, double estimated)
{
    if (measured > 0.0 && !(estimated > 0.0)) {
        fit->left_out_lors++;
        fit->left_out_counts += measured;
        return 0.0;
    }
    fit->estimated_counts += estimated;
    fit->log_likelihood -= estimated;
    if (!(measured > 0.0)) {
        return 0.0;
    }
    fit->measured_counts += measured;
    fit->log_likelihood += measured * log(estimated);
    return fmin(measured / estimated, LARGEST_RATIO);
}

struct ratio_loop {
    const struct lr_fit_input *input;
    float *values;
    struct lr_fit *fits; /* [num_runs] */
};

static struct lr_lor_run run_of(const struct lr_fit_input *input, int64_t k)
{
    if (input->runs != NULL) {
        return input->runs[k];
    }
    const int64_t first = k * LR_RUN_LENGTH, left = input->num_lors - first;
    return (struct lr_lor_run){first, first, left < LR_RUN_LENGTH ? left : LR_RUN_LENGTH};
}

static struct lr_fit fit_run(const struct ratio_loop *loop, const struct lr_lor_run *run)
{
    const float *additive_values = loop->input->additive_values;
    struct lr_lor_cursor measured = lr_lor_cursor_at(loop->input->measured, run->first);
    struct lr_lor_cursor additive = lr_lor_cursor_at(loop->input->additive, run->first);
    struct lr_fit fit = {0};
    for (int64_t k = 0; k < run->count; k++) {
        float *value = &loop->values[run->begin + k];
        const double b = additive_values != NULL ? (double)additive_values[run->begin + k]
                                                 : lr_lor_cursor_read(&additive, run->first + k);
        *value = (float)add_lor(&fit, lr_lor_cursor_read(&measured, run->first + k), *value + b);
    }
    return fit;
}

static void fit_runs(void *user, int64_t begin, int64_t end, int worker)
{
    const struct ratio_loop *loop = user;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        const struct lr_lor_run run = run_of(loop->input, k);
        loop->fits[k] = fit_run(loop, &run);
    }
}

void lr_fit_add(struct lr_fit *sum, const struct lr_fit *part)
{
    sum->log_likelihood += part->log_likelihood;
    sum->measured_counts += part->measured_counts;
    sum->estimated_counts += part->estimated_counts;
    sum->left_out_lors += part->left_out_lors;
    sum->left_out_counts += part->left_out_counts;
}

lr_status lr_fit_ratio(const struct lr_fit_input *input, float *values, struct lr_fit *fit)
{
    const int64_t num_runs = input->runs != NULL
                                 ? input->num_runs
                                 : (input->num_lors + LR_RUN_LENGTH - 1) / LR_RUN_LENGTH;
    struct ratio_loop loop = {input, values, NULL};
    loop.fits = lr_alloc(num_runs, sizeof(*loop.fits), "sums over LORs", input->log);
    if (loop.fits == NULL) {
        return LR_FAILED;
    }
    lr_parallel_for(input->threads, num_runs, 1, fit_runs, &loop);
    *fit = (struct lr_fit){0};
    for (int64_t k = 0; k < num_runs; k++) {
        lr_fit_add(fit, &loop.fits[k]);
    }
    free(loop.fits);
    return LR_OK;
}
