/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A surface to draw on with its context and what is done to it: a window on the screen, or none at
 * all, for scripts. One thread uses it. */
#ifndef LR_VIEWER_WINDOW_H
#define LR_VIEWER_WINDOW_H

#include "viewer/frame/input.h"

#include <lr/log.h>

#ifdef __cplusplus
extern "C" {
#endif

struct window;
struct gl_context;
struct gl_target;

struct window_params {
    int size[2]; /* wanted, in screen units */
    const char *title;
    int device;        /* without a window: the Nth usable way to OpenGL */
    const lr_log *log; /* outlives the window */
};

/* A window on the screen, or a surface that nobody sees.
 * errors: NULL; LR_NO_DEVICE without a screen or OpenGL 4.5, with what to do. */
struct window *window_open(const struct window_params *params);
struct window *window_open_unseen(const struct window_params *params);
void window_close(struct window *window); /* NULL is allowed */

/* The window's; current while it is open. */
struct gl_context *window_context(struct window *window);

/* Size of the framebuffer in pixels; 0 x 0 while it is iconified. And pixels per unit of length
 * that a person has set for the screen: 1, 1.5, 2. */
void window_size(const struct window *window, int size[2]);
double window_scale(const struct window *window);

/* Takes the next event; false where there is none. Waits up to `seconds` for one. */
bool window_next(struct window *window, struct input_event *event);
void window_wait(struct window *window, double seconds);

/* Puts an event behind those that wait, as if a person had made it. INPUT_SIZE: gives a surface
 * that nobody sees the size in `at`; a window is asked for it. */
void window_push(struct window *window, const struct input_event *event);

/* Shows colour 0 of a target of the window's size. */
void window_show(struct window *window, const struct gl_target *target);

void window_copy(struct window *window, const char *text); /* to the clipboard */
const char *window_pasted(struct window *window);          /* lives until the next call */
bool window_is_seen(const struct window *window);

#ifdef __cplusplus
}
#endif

#endif
