/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The sensitivity of list mode, which does not depend on the events. A CUDA device computes it while processors read
 * and arrange the events. The device is also initialised in this time, which takes some tenths of a second. */
#ifndef LR_CLI_RECON_EARLY_SENSITIVITY_H
#define LR_CLI_RECON_EARLY_SENSITIVITY_H

#include "base/parallel.h"

#include <lr/listmode.h>
#include <semaphore.h>
#include <stdatomic.h>

/* Zero is valid: nothing has begun. It must not move from begin to finish. Only one thread may call the functions. */
struct early_sensitivity {
    struct lr_background working;
    sem_t is_made, is_over; /* is_made: posted when the operator exists or has failed; is_over: posted at the end */
    bool has_begun, only_wakes, is_waited_for;
    lr_listmode_params params; /* the operator's parameters */
    lr_event line;             /* the operator's only event; an operator needs at least one */
    lr_operator *op;           /* owned; NULL = there is none */
    lr_log log;                /* the operator's log */
    lr_progress progress;      /* the operator's progress */
    const lr_log *to;          /* receives messages after the wait; NULL before */
    const lr_progress *shown;  /* shows progress after the wait; NULL before */
    char sentence[256];        /* the last information before the wait ended */
    atomic_bool is_unwanted;
    atomic_llong done, total; /* number of lines */
};

/* Begins if backend "auto" or "cuda" is requested without a limit of the device's memory. params: the parameters of
 * the operators that will take the sensitivity, apart from their events; all data that they point to must outlive
 * this struct. only_wakes: true if the factors are not known yet; the device is then only initialised. If there is
 * no device, no message is given and nothing is computed. */
void early_sensitivity_begin(struct early_sensitivity *early, const lr_listmode_params *params, bool only_wakes);

/* The operator that computes the sensitivity, for lr_listmode_params.sensitivity_of; NULL if there is none. Waits until
 * the device is initialised. Operators that take the sensitivity must ask for its values only after
 * early_sensitivity_wait. */
lr_operator *early_sensitivity_of(struct early_sensitivity *early);

/* Waits until the sensitivity has been computed, and shows its progress. If the computation failed, the operators
 * that take the sensitivity compute it themselves with `log` and `progress`, which must outlive this struct. errors:
 * LR_CANCELLED. */
lr_status early_sensitivity_wait(struct early_sensitivity *early, const lr_progress *progress, const lr_log *log);

/* Stops work that is still in progress and no longer needed. */
void early_sensitivity_give_up(struct early_sensitivity *early);

/* Frees the operator. The operators that took the sensitivity must have been destroyed before. */
void early_sensitivity_finish(struct early_sensitivity *early);

#endif
