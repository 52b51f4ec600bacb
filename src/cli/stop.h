/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The program's reaction to Ctrl-C, SIGTERM and SIGHUP (closed terminal). Work is asked to stop at its next progress
 * report. If no report comes within 1.25 s, the program ends with the same message and exit code. Incomplete files have
 * no name yet, so they leave nothing behind. */
#pragma once

#include <stdbool.h>

/* The first signal asks the work to stop; a second signal of the same kind ends the program at once. */
void stop_catch_signals(void);

/* Blocks the signals, or lets them through again. Signals that come while they are blocked reach a program that
 * replaces this one (execv). */
void stop_hold_signals(bool holds);

/* Names all outputs, before the work begins. Once all outputs are in place, the countdown has no effect, so that a
 * complete result is never called stopped. paths: [count], at most CLI_MAX_OUTPUTS; the names must stay valid until the
 * next call. */
void stop_expect_outputs(const char *const *paths, int count);

/* True if a signal came. */
bool stop_is_asked(void);

/* Stops the countdown that would end the program, so that it can write the results that it has. */
void stop_wait_for_results(void);

/* Ends the reaction to signals. From now on, signals have no effect, and a countdown that has begun does not end the
   program. */
void stop_end(void);
