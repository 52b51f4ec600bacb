/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The sensitivity of list mode does not depend on the events. A CUDA device computes the sensitivity while processors
 * read and arrange the events. Meanwhile, the device is also initialised, which takes some tenths of a second. */
#pragma once

#include "base/parallel.h"

#include <lr/listmode.h>
#include <semaphore.h>
#include <stdatomic.h>

/* A struct of zeros is valid: nothing has begun. From begin to finish the struct must not move. Only one thread may
 * call the functions. */
struct early_sensitivity {
    struct lr_background working;
    sem_t is_made, is_over; /* is_made: posted when the operator exists or has failed; is_over: posted at the end */
    bool has_begun, only_wakes, is_waited_for;
    lr_listmode_params params; /* parameters of the operator */
    lr_event line;             /* the operator's only event, because an operator needs at least one */
    lr_operator *op;           /* owned; NULL = there is none */
    lr_log log;                /* the operator's log */
    lr_progress progress;      /* the operator's progress */
    const lr_log *to;          /* receives messages after the wait; NULL until then */
    const lr_progress *shown;  /* shows progress after the wait; NULL until then */
    char sentences[2][1024];   /* warnings, and the last message of level LR_LOG_INFO, before the wait */
    atomic_bool is_unwanted;
    atomic_llong done, total; /* numbers of lines: projected so far, and in all */
};

/* Begins to initialise the device and to compute the sensitivity if the backend is "auto" or "cuda". If only_wakes is
 * true, or if the user has set a memory limit, the device is only initialised. params: the parameters, without events,
 * of the operators that will use the sensitivity. All data to which params points must outlive this struct. only_wakes:
 * true if the factors are not known yet. If there is no device, nothing is computed and no message is printed. */
void early_sensitivity_begin(struct early_sensitivity *early, const lr_listmode_params *params, bool only_wakes);

/* Returns the operator that computes the sensitivity, for lr_listmode_params.sensitivity_of; NULL if there is none.
 * Waits until the device is initialised. Other operators may ask for the values of the sensitivity only after
 * early_sensitivity_wait. */
lr_operator *early_sensitivity_of(struct early_sensitivity *early);

/* Waits until the sensitivity has been computed, and shows the progress. If the computation failed, the other operators
 * compute the sensitivity themselves, with `log` and `progress`, which must outlive this struct. errors:
 * LR_CANCELLED. */
lr_status early_sensitivity_wait(struct early_sensitivity *early, const lr_progress *progress, const lr_log *log);

/* Stops the computation if it is unfinished and no longer needed. */
void early_sensitivity_give_up(struct early_sensitivity *early);

/* Frees the operator. Operators that use its sensitivity must be destroyed first. */
void early_sensitivity_finish(struct early_sensitivity *early);
