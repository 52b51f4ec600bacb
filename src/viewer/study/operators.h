/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Operators of jobs: made for one, or cached for the next. */
#ifndef LR_VIEWER_OPERATORS_H
#define LR_VIEWER_OPERATORS_H

#include "viewer/study/study.h"

#include <pthread.h>
#include <stdatomic.h>

/* lr_operator_create for a job. errors: LR_CANCELLED where it was stopped; LR_FAILED, logged. */
lr_status operator_create(const lr_operator_params *params, lr_operator **op);

/* A backend's name that lives on: one of those there are, or `usual` for NULL and other words. */
const char *backend_name(const char *wished, const char *usual);

/* One operator at most, which stays open with its context and shaders until work asks for other
 * settings. Backend cpu opens at once, and may stand in for another: it is not cached. Everything in
 * it is its own. */
struct cached_operator {
    pthread_mutex_t mutex;     /* taken while the operator is made or used */
    lr_operator *op;           /* NULL: none */
    lr_operator_params params; /* that it was made with, and what they point to: */
    lr_grid grid;
    struct opened *scanner, *mu;     /* held */
    lr_log log;                      /* the operator's, which passes on to the job's: */
    const lr_log *job_log;           /* of the work that runs */
    lr_progress progress;            /* the operator's, which passes on to the job's: */
    const lr_progress *job_progress; /* of the work that runs */
    bool is_second_hand;             /* it was there before the work that runs */
    atomic_int num_made;             /* so far */
};

/* Must not move in memory until cached_operator_finish. */
void cached_operator_init(struct cached_operator *cached);
void cached_operator_finish(struct cached_operator *cached); /* while nobody uses it */

/* Work, and the operator that it needs. */
struct operator_work {
    const struct study_view *study;                /* whose LORs and mu-map the params have */
    lr_operator_params params;                     /* without factors, `deterministic` and `shared` */
    lr_status (*run)(void *user, lr_operator *op); /* may be run twice, see below */
    void *user;
};

/* Runs the work with the cached operator, where that is as wanted, else with a new one. Waits
 * for whoever uses it. Where a device turns out to be lost that the operator had before, the work is
 * run once more with a new operator. From any thread.
 * errors: those of operator_create and of `run`; the operator is not cached then. */
lr_status cached_operator_run(struct cached_operator *cached, const struct operator_work *work);

#endif
