/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What both kinds of window share. */
#ifndef LR_VIEWER_WINDOW_PRIVATE_H
#define LR_VIEWER_WINDOW_PRIVATE_H

#include "viewer/frame/window.h"

enum { WINDOW_EVENTS = 1024, WINDOW_CLIPBOARD = 4096 };

struct window_fns {
    void (*close)(struct window *window);
    void (*poll)(struct window *window, double seconds); /* pushes what has come */
    void (*resize)(struct window *window, const int size[2]);
    void (*show)(struct window *window);
    void (*copy)(struct window *window, const char *text);
    const char *(*pasted)(struct window *window);
};

/* The first part of each kind's struct. */
struct window {
    const struct window_fns *fns;
    const lr_log *log;
    struct gl_context *ctx;
    int size[2];
    double scale;
    struct input_event events[WINDOW_EVENTS]; /* a ring */
    int first, count;
};

/* Adds an event; moves that follow each other become one. When the ring is full the event is
 * dropped. */
void window_add(struct window *window, const struct input_event *event);

#endif
