/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Parameters of the size that the caller's headers give them (LR_SIZED of lr/log.h). */
#ifndef LR_BASE_SIZED_H
#define LR_BASE_SIZED_H

#include <stddef.h>
#include <string.h>

/* Declares `params`, which points to a copy of the caller's parameters and lives as long as the block. Fields that the
 * caller's headers do not have are 0. */
#define LR_TAKE(type, params, given, bytes)                                                                            \
    type params##_taken = {0};                                                                                         \
    memcpy(&params##_taken, given, (bytes) < sizeof(type) ? (bytes) : sizeof(type));                                   \
    const type *const params = &params##_taken

#endif
