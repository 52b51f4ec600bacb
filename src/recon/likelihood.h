/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Measured against estimated data. */
#ifndef LR_RECON_LIKELIHOOD_H
#define LR_RECON_LIKELIHOOD_H

#include <lr/lors.h>

/* Sums over all LORs, y measured, e = yhat + b estimated. LORs with y > 0 and e = 0 are left out
 * of the first three. */
struct lr_fit {
    double log_likelihood;   /* y ln e - e */
    double measured_counts;  /* y where e > 0 */
    double estimated_counts; /* e */
    int64_t left_out_lors;   /* y > 0 where e = 0 */
    double left_out_counts;
};

/* What lr_fit_ratio works on. */
struct lr_fit_input {
    const lr_lor_data *measured; /* y, checked */
    const lr_lor_data *additive; /* b, checked; NULL = none */
    int64_t num_lors;
    int threads;
    const lr_log *log;
};

/* Replaces yhat by y / (yhat + b) where y > 0 and yhat + b > 0, and by 0 elsewhere, and sums up
 * the fit. values: [num_lors]. Sums are in double over fixed blocks: the same bits whatever the
 * number of threads. A ratio that exceeds what a back-projection in float can sum is cut there.
 * errors: LR_FAILED without memory. */
lr_status lr_fit_ratio(const struct lr_fit_input *input, float *values, struct lr_fit *fit);

#endif
