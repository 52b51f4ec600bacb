/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_GL_TIMER_H
#define LR_GL_TIMER_H

#include "gl/context.h"

/* Time that the device takes for what is issued between begin and end. Timers may overlap. */
struct gl_timer;

struct gl_timer *gl_timer_create(struct gl_context *ctx, const char *label);
void gl_timer_destroy(struct gl_timer *timer); /* NULL is allowed */

void gl_timer_begin(struct gl_timer *timer);
void gl_timer_end(struct gl_timer *timer);

/* Seconds of the last begin .. end; waits until the device is done. 0 before the first end. */
double gl_timer_seconds(struct gl_timer *timer);

#endif
