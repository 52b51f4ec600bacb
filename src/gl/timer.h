/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#pragma once

#include "gl/context.h"

/* A stopwatch adds up the device time of many intervals, without the time between them. The time of an interval is read
 * long after its end, while newer intervals are queued, so that neither the host nor the device waits. A NULL stopwatch
 * measures nothing. */
struct gl_stopwatch;

struct gl_stopwatch *gl_stopwatch_create(struct gl_context *ctx, const char *label);
void gl_stopwatch_destroy(struct gl_stopwatch *watch); /* NULL is allowed */

/* Resets the sum to zero, without waiting for any interval. */
void gl_stopwatch_reset(struct gl_stopwatch *watch);

/* Intervals do not overlap: an interval must end before the next one begins. */
void gl_stopwatch_begin(struct gl_stopwatch *watch);
void gl_stopwatch_end(struct gl_stopwatch *watch);

/* Returns the time of all intervals since the reset, s. Waits until the device has finished them. */
double gl_stopwatch_seconds(struct gl_stopwatch *watch);

/* Returns the time of all intervals since the stopwatch was made, s. Waits until the device has finished them. */
double gl_stopwatch_total(struct gl_stopwatch *watch);
