/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Parameters from callers that were built with headers of another version, in which the structs are shorter or longer
 * (LR_SIZED in lr/log.h). */
#ifndef LR_BASE_SIZED_H
#define LR_BASE_SIZED_H

#include <stddef.h>
#include <string.h>

/* Declares `params`, which points to a copy of the caller's parameters. Fields that the caller's headers lack are 0.
 * The copy lives as long as the block in which LR_TAKE stands. */
#define LR_TAKE(type, params, given, bytes)                                                                            \
    type params##_taken = {0};                                                                                         \
    memcpy(&params##_taken, given, (bytes) < sizeof(type) ? (bytes) : sizeof(type));                                   \
    const type *const params = &params##_taken

#endif
