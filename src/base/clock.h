/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Clocks. */
#ifndef LR_BASE_CLOCK_H
#define LR_BASE_CLOCK_H

/* Seconds on a clock that never goes back. */
double lr_clock_seconds(void);

#endif
