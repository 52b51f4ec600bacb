/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Measured against estimated data. */
#ifndef LR_RECON_LIKELIHOOD_H
#define LR_RECON_LIKELIHOOD_H

#include <lr/lors.h>
#include <stddef.h>

/* Sums over LORs, y measured, e = yhat + b estimated. LORs with y > 0 and e = 0 are left out
 * of the first three. */
struct lr_fit {
    double log_likelihood;   /* y ln e - e */
    double measured_counts;  /* y where e > 0 */
    double estimated_counts; /* e */
    int64_t left_out_lors;   /* y > 0 where e = 0 */
    double left_out_counts;
};

/* LORs first .. first + count - 1, whose values begin at `begin` of the array of values. Short
 * enough to be one share of work: at most LR_RUN_LENGTH LORs. */
struct lr_lor_run {
    int64_t first, begin, count;
};

enum { LR_RUN_LENGTH = 1 << 16 };

/* What lr_fit_ratio works on. */
struct lr_fit_input {
    const lr_lor_data *measured;   /* y, checked */
    const lr_lor_data *additive;   /* b, checked; NULL = none, or: */
    const float *additive_values;  /* b in the order of the values; NULL = none */
    const struct lr_lor_run *runs; /* [num_runs] ascending; NULL = LORs 0 .. num_lors - 1 */
    int64_t num_runs;
    int64_t num_lors; /* without runs */
    int threads;
    const lr_log *log;
};

/* Replaces yhat by y / (yhat + b) where y > 0 and yhat + b > 0, and by 0 elsewhere, and sums up
 * the fit. values: of the LORs of the runs. Sums are in double over the runs: the same bits
 * whatever the number of threads. A ratio that exceeds what a back-projection in float can sum is
 * cut there. errors: LR_FAILED without memory. */
lr_status lr_fit_ratio(const struct lr_fit_input *input, float *values, struct lr_fit *fit);

/* sum += part. */
void lr_fit_add(struct lr_fit *sum, const struct lr_fit *part);

/* Reads dense or sparse data at ascending LORs, from a LOR on. */
struct lr_lor_cursor {
    const lr_lor_data *data; /* NULL = zero everywhere */
    int64_t next;            /* sparse: the first entry not behind */
};

struct lr_lor_cursor lr_lor_cursor_at(const lr_lor_data *data, int64_t lor);

static inline double lr_lor_cursor_read(struct lr_lor_cursor *cursor, int64_t lor)
{
    const lr_lor_data *data = cursor->data;
    if (data == NULL) {
        return 0.0;
    }
    if (data->index == NULL) {
        return data->values[lor];
    }
    while (cursor->next < data->count && data->index[cursor->next] < lor) {
        cursor->next++;
    }
    const bool is_listed = cursor->next < data->count && data->index[cursor->next] == lor;
    return is_listed ? data->values[cursor->next] : 0.0;
}

#endif
