/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A drawing surface with its context and input: a window on the screen, or an invisible surface for scripts. Only
 * one thread uses it. */
#pragma once

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
    INPUT_MOVE,   /* the mouse has moved to `at` */
    INPUT_BUTTON, /* `button` was pressed or released at `at` */
    INPUT_SCROLL, /* scrolled by `by` lines, to the right and upwards */
    INPUT_KEY,    /* `key` was pressed or released */
    INPUT_TEXT,   /* a character was typed; `code` is its Unicode number */
    INPUT_SIZE,   /* the size of the window has changed */
    INPUT_DROP,   /* the file `path` was dropped on the window */
    INPUT_CLOSE
};

enum input_button { INPUT_LEFT = 0, INPUT_RIGHT, INPUT_MIDDLE, INPUT_NUM_BUTTONS };

/* The number of a printable key is its character. The number of a letter's key is the capital letter. */
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

/* Positions are in pixels of the framebuffer, from the upper left corner. */
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

/* --- the screen --- */

/* Ends the program when the window's display server has disappeared. Xlib itself ends the program only when the program
 * asks for events. After the connection has broken, the software renderer's driver can hang in the call that shows a
 * frame, so that the program never asks. */
struct screen_watch {
    pthread_t thread;
    int screen;  /* descriptor of the connection; the caller owns it */
    int ends[2]; /* a pipe; closing the second end stops the thread */
    bool is_running;
};

/* Starts to watch. If the server closes the socket `screen`, the program ends with exit code 1 and a message.
 * Nothing is watched if screen < 0 or no thread can be created. `watch` must not move in memory until
 * screen_watch_stop. */
void screen_watch_start(struct screen_watch *watch, int screen);

/* Stops watching; call it before closing the connection. A zeroed struct that was not started is allowed. */
void screen_watch_stop(struct screen_watch *watch);

/* --- the window --- */

enum { WINDOW_EVENTS = 1024, WINDOW_CLIPBOARD = 4096 };

struct gl_context;
struct gl_target;

struct window {
    struct gl_context *ctx; /* current while the window is open */
    int size[2];            /* size of the framebuffer in pixels; 0 x 0 while the window is iconified */
    double scale;           /* pixels per screen unit, as set in the system, for example 1, 1.5 or 2 */
    bool is_seen;           /* false: an invisible surface, made by EGL without a display */

    /* the members below are private */
    struct GLFWwindow *handle;                /* NULL: an invisible surface, to which only scripts give input */
    double at[2];                             /* position of the mouse in the window */
    struct input_event events[WINDOW_EVENTS]; /* ring buffer */
    int first, count;
    char clipboard[WINDOW_CLIPBOARD]; /* clipboard of an invisible surface */
    struct screen_watch watch;
};

struct window_params {
    int size[2]; /* requested size in screen units */
    const char *title;
    int device;        /* number among usable OpenGL devices, if there is no window */
    const lr_log *log; /* must outlive the window */
};

/* Opens a window on the screen, or an invisible surface. errors: NULL; LR_NO_DEVICE if there is no screen or no OpenGL
 * 4.5. The message says what a person can do. */
struct window *window_open(const struct window_params *params);
struct window *window_open_unseen(const struct window_params *params);
void window_close(struct window *window); /* NULL is allowed */

/* window_next takes the next event; false: there is none. window_wait waits up to `seconds` for an event. */
bool window_next(struct window *window, struct input_event *event);
void window_wait(struct window *window, double seconds);

/* Adds an event to the end of the queue, as if a person had caused it. INPUT_SIZE sets an invisible surface to the size
 * in `at`; for a visible window, it asks the screen for that size. */
void window_push(struct window *window, const struct input_event *event);

/* Shows colour buffer 0 of a target that has the window's size. */
void window_show(struct window *window, const struct gl_target *target);

void window_copy(struct window *window, const char *text); /* copies to the clipboard */
const char *window_pasted(struct window *window);          /* text of the clipboard; valid until the next call */

#ifdef __cplusplus
}
#endif
