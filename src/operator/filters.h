/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The log that an operator hands to its backend: passes sentences on one at a time, whatever
 * thread they come from, and can hold back refusals while another backend may still do. And the
 * progress that goes with it. */
#ifndef LR_OPERATOR_FILTERS_H
#define LR_OPERATOR_FILTERS_H

#include <lr/log.h>
#include <pthread.h>

struct lr_log_filter {
    lr_log log; /* give out &filter.log; must not move in memory */
    lr_log to;
    pthread_mutex_t mutex;
    bool holds_refusals; /* errors of status LR_NO_DEVICE and LR_USAGE go to `reason` instead */
    bool holds_errors;   /* the first error of any status goes to `reason`, others nowhere, and so
                            does information, which goes with errors */
    char reason[1024];
};

/* to: copied; NULL drops all sentences. */
void lr_log_filter_init(struct lr_log_filter *filter, const lr_log *to);
void lr_log_filter_finish(struct lr_log_filter *filter);

/* The progress that an operator hands to its backend. Who counts rows as they come silences the
 * backend's own count meanwhile, so that a person sees one. */
struct lr_progress_filter {
    lr_progress progress;  /* give out &filter.progress; must not move in memory */
    const lr_progress *to; /* the caller's; NULL = none */
    bool is_silent;        /* what the backend reports is dropped, and what was said last is said
                              again: only to ask whether to stop */
    const char *what;      /* said last by lr_progress_filter_say; NULL = nothing yet */
    double done, total;
    double from, share; /* share > 0: what is reported is this much of a whole, after `from` */
};

void lr_progress_filter_init(struct lr_progress_filter *filter, const lr_progress *to);

/* Reports in place of the silent backend. LR_OK or LR_CANCELLED. what: lives as long as the filter. */
lr_status lr_progress_filter_say(struct lr_progress_filter *filter, const char *what, double done, double total);

/* What the silent backend asks with before anything has been said: nothing is done yet. */
void lr_progress_filter_begin(struct lr_progress_filter *filter, const char *what, double total);

#endif
