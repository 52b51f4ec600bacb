/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Ends the program when the server of its window has gone away. Xlib does so too, but only when it
 * is asked for events: the software renderer's driver can go on for ever in the call that shows a
 * frame, once its connection is broken. */
#ifndef LR_VIEWER_SCREEN_WATCH_H
#define LR_VIEWER_SCREEN_WATCH_H

#include <pthread.h>
#include <stdbool.h>

struct screen_watch {
    pthread_t thread;
    int screen;  /* the connection's descriptor, which stays the caller's */
    int ends[2]; /* of a pipe; closing the second one stops the thread */
    bool is_running;
};

/* From here on the program ends with exit code 1 and a sentence when the other side of `screen`, a
 * socket, is closed. screen < 0, or no thread to be had: nothing is watched. Must not move in memory
 * until screen_watch_stop. */
void screen_watch_start(struct screen_watch *watch, int screen);

/* Before the caller closes the connection. May be called without a start, of zeroed memory. */
void screen_watch_stop(struct screen_watch *watch);

#endif
