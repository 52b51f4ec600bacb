/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A CUDA device that wakes up while files are read: what a process does there first takes some tenths of a
 * second, whenever it comes. */
#ifndef LR_CLI_EARLY_PLACE_H
#define LR_CLI_EARLY_PLACE_H

#include "base/background.h"

#include <lr/operator.h>

/* Zero is valid: none has begun. Must not move in between. */
struct early_place {
    struct lr_background waking;
    int device;
};

/* Where a CUDA backend may come of params. Nothing is said where there is no device: who needs it says so. */
void early_place_begin(struct early_place *early, const lr_operator_params *params);

/* Waits until the device is there; before the process uses it, and before it ends. */
void early_place_end(struct early_place *early);

#endif
