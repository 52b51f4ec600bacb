/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Clocks. */
#ifndef LR_BASE_CLOCK_H
#define LR_BASE_CLOCK_H

/* Seconds on a clock that never goes back. */
double lr_clock_seconds(void);

/* Seconds that this thread has been ready to run while others held the processors; 0 where the
 * system does not say. */
double lr_clock_waited_seconds(void);

#endif
