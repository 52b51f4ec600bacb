/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Operators for jobs, either new or cached from an earlier job. */
#pragma once

#include "viewer/study/study.h"

#include <pthread.h>
#include <stdatomic.h>

/* Calls lr_operator_create for a job. errors: LR_CANCELLED if the job was stopped; LR_FAILED, logged. */
lr_status operator_create(const lr_operator_params *params, lr_operator **op);

/* Returns the name of the backend to use, a static string: `wished` if this is the name of a backend, otherwise
 * `usual`. wished: NULL is allowed. */
const char *backend_name(const char *wished, const char *usual);

/* One operator or none. An operator stays open with its context and shaders until work needs other settings. Backend
 * cpu is not cached, because it opens quickly and may only stand in for a backend that could not run. All members are
 * private. */
struct cached_operator {
    pthread_mutex_t mutex; /* locked while the operator is made or used */
    lr_operator *op;       /* NULL: none */
    lr_operator_params params;
    lr_grid grid;                    /* the grid that params points to */
    struct opened *scanner, *mu;     /* references are held */
    lr_log log;                      /* the operator's log, which forwards to job_log */
    const lr_log *job_log;           /* log of the current work */
    lr_progress progress;            /* the operator's progress, which forwards to job_progress */
    const lr_progress *job_progress; /* progress of the current work */
    bool is_second_hand;             /* the operator was made for earlier work */
    atomic_int num_made;             /* number of operators made so far */
};

/* The struct must not move in memory until cached_operator_finish. */
void cached_operator_init(struct cached_operator *cached);
void cached_operator_finish(struct cached_operator *cached); /* call it only when no thread uses the operator */

/* Work, and the operator that it needs. */
struct operator_work {
    const struct study_view *study;                /* the study whose LORs and mu-map are in params */
    lr_operator_params params;                     /* `factors`, `deterministic` and `shared` are not set */
    lr_status (*run)(void *user, lr_operator *op); /* may be run twice (see cached_operator_run) */
    void *user;
};

/* Runs the work with the cached operator if its settings fit, otherwise with a new one. Waits for other users of the
 * operator. If the device of a cached operator turns out to be lost, the work is run again with a new operator. May
 * be called on any thread. errors: those of operator_create and of `run`; the operator is then not kept in the
 * cache. */
lr_status cached_operator_run(struct cached_operator *cached, const struct operator_work *work);
