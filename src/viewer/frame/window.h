/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A surface to draw on with its context, and the input that it takes: a window on the screen, or none at all, for
 * scripts. One thread uses it. */
#ifndef LR_VIEWER_WINDOW_H
#define LR_VIEWER_WINDOW_H

#include <lr/log.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- input of a person or a script --- */

enum input_kind {
    INPUT_NONE = 0,
    INPUT_MOVE,   /* the mouse is at `at` */
    INPUT_BUTTON, /* `button` goes down or up at `at` */
    INPUT_SCROLL, /* `by` lines, to the right and upwards */
    INPUT_KEY,    /* `key` goes down or up */
    INPUT_TEXT,   /* a letter, `code` in Unicode */
    INPUT_SIZE,   /* the window has another size */
    INPUT_DROP,   /* a file was dropped on it: `path` */
    INPUT_CLOSE
};

enum input_button { INPUT_LEFT = 0, INPUT_RIGHT, INPUT_MIDDLE, INPUT_NUM_BUTTONS };

/* Keys that print something are their character, letters in capitals. */
enum input_key {
    INPUT_KEY_ESCAPE = 256,
    INPUT_KEY_ENTER,
    INPUT_KEY_TAB,
    INPUT_KEY_BACKSPACE,
    INPUT_KEY_DELETE,
    INPUT_KEY_LEFT,
    INPUT_KEY_RIGHT,
    INPUT_KEY_UP,
    INPUT_KEY_DOWN,
    INPUT_KEY_PAGE_UP,
    INPUT_KEY_PAGE_DOWN,
    INPUT_KEY_HOME,
    INPUT_KEY_END,
    INPUT_KEY_F1,
    INPUT_NUM_KEYS
};

enum input_modifier { INPUT_SHIFT = 1, INPUT_CONTROL = 2, INPUT_ALT = 4 };

enum { INPUT_PATH = 1024 };

/* Places are in pixels of the framebuffer, from its upper left corner. */
struct input_event {
    enum input_kind kind;
    double at[2];
    double by[2];
    int button, key;
    bool is_down;
    unsigned modifiers;
    uint32_t code;
    char path[INPUT_PATH];
};

/* --- the window --- */

struct window;
struct gl_context;
struct gl_target;

struct window_params {
    int size[2]; /* wanted, in screen units */
    const char *title;
    int device;        /* without a window: the Nth usable device of OpenGL */
    const lr_log *log; /* outlives the window */
};

/* A window on the screen, or a surface that nobody sees.
 * errors: NULL; LR_NO_DEVICE without a screen or OpenGL 4.5, with what to do. */
struct window *window_open(const struct window_params *params);
struct window *window_open_unseen(const struct window_params *params);
void window_close(struct window *window); /* NULL is allowed */

/* The window's; current while it is open. */
struct gl_context *window_context(struct window *window);

/* Size of the framebuffer in pixels, 0 x 0 while it is iconified; and pixels per unit of length that a person has set
 * for the screen: 1, 1.5, 2. */
void window_size(const struct window *window, int size[2]);
double window_scale(const struct window *window);

/* Takes the next event; false where there is none. Waits up to `seconds` for one. */
bool window_next(struct window *window, struct input_event *event);
void window_wait(struct window *window, double seconds);

/* Puts an event after those that wait, as if a person had made it. INPUT_SIZE: gives a surface
 * that nobody sees the size in `at`; a window is asked for it. */
void window_push(struct window *window, const struct input_event *event);

/* Shows colour 0 of a target of the window's size. */
void window_show(struct window *window, const struct gl_target *target);

void window_copy(struct window *window, const char *text); /* to the clipboard */
const char *window_pasted(struct window *window);          /* lives until the next call */
bool window_is_seen(const struct window *window);

/* --- the screen --- */

/* Ends the program when the server of its window has gone away. Xlib does so too, but only when it is asked for
 * events: the software renderer's driver can go on for ever in the call that shows a frame, once its connection is
 * broken. */
struct screen_watch {
    pthread_t thread;
    int screen;  /* the connection's descriptor, which stays the caller's */
    int ends[2]; /* of a pipe; closing the second one stops the thread */
    bool is_running;
};

/* Ends the program with exit code 1 and a message once the other side of `screen`, a socket, is closed. screen < 0, or
 * no thread to be had: nothing is watched. Must not move in memory until screen_watch_stop. */
void screen_watch_start(struct screen_watch *watch, int screen);

/* The caller stops it before closing the connection. Zeroed memory is allowed without a start. */
void screen_watch_stop(struct screen_watch *watch);

#ifdef __cplusplus
}
#endif

#endif
