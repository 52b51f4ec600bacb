/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The sensitivity of list mode, which a CUDA device works out while processors read and arrange events: it needs
 * none of them. The device also wakes up, which takes some tenths of a second. */
#ifndef LR_CLI_RECON_EARLY_SENSITIVITY_H
#define LR_CLI_RECON_EARLY_SENSITIVITY_H

#include "base/background.h"

#include <lr/listmode.h>
#include <semaphore.h>
#include <stdatomic.h>

/* Zero is valid: none has begun. Must not move from begin to finish. All functions are for one thread, the caller's. */
struct early_sensitivity {
    struct lr_background working;
    sem_t is_made, is_over; /* posted when there is an operator or will be none, and at the end */
    bool has_begun, only_wakes, is_waited_for;
    lr_listmode_params params; /* of the operator */
    lr_event line;             /* its only event: it has to have one */
    lr_operator *op;           /* owned; NULL = there is none */
    lr_log log;                /* of the operator */
    lr_progress progress;      /* of the operator */
    const lr_log *to;          /* who hears of it after the wait; NULL before */
    const lr_progress *shown;  /* what shows progress then */
    char sentence[256];        /* to be passed on then */
    atomic_bool is_unwanted;
    atomic_llong done, total; /* lines */
};

/* Begins if backend "auto" or "cuda" is asked for, and no limit of the device's memory. params: of operators that are
 * to take it, except for their events; all that they point to outlives this. only_wakes: its factors are not known yet,
 * so that the device only wakes up. Where there is no device, nothing is said and nothing comes of it. */
void early_sensitivity_begin(struct early_sensitivity *early, const lr_listmode_params *params, bool only_wakes);

/* The operator that has the sensitivity, or is working it out: for lr_listmode_params.sensitivity_of, of operators
 * that ask for it after early_sensitivity_wait. Waits until the device is awake. NULL if there is none. */
lr_operator *early_sensitivity_of(struct early_sensitivity *early);

/* Waits until the sensitivity has been computed, and shows its progress. If it could not be computed, operators that
 * take it compute it, and use log and progress, which outlive this. errors: LR_CANCELLED. */
lr_status early_sensitivity_wait(struct early_sensitivity *early, const lr_progress *progress, const lr_log *log);

/* Ends what is still in progress, and is not wanted any more. */
void early_sensitivity_give_up(struct early_sensitivity *early);

/* Frees it after the operators that took it. */
void early_sensitivity_finish(struct early_sensitivity *early);

#endif
