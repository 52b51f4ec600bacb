/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The program's answer to Ctrl-C, SIGTERM and SIGHUP (a terminal that is closed). Work is asked to stop at its
 * next progress report; if none comes within 1.5 s the program ends all the same, with the same message and exit
 * code. Files that are not complete have no name and leave nothing. */
#ifndef LR_CLI_STOP_H
#define LR_CLI_STOP_H

#include <stdbool.h>

/* Makes the first signal ask to stop; a second of its kind ends the program at once. */
void stop_catch_signals(void);

/* Signals wait from here on, until a program that takes this one's place catches them. */
void stop_hold_signals(void);

/* True if a signal came. */
bool stop_is_asked(void);

/* The work has stopped, and what it has made so far is now written, however long that takes. */
void stop_wait_for_results(void);

#endif
