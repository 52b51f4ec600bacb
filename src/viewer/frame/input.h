/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a person or a script does to the window. */
#ifndef LR_VIEWER_INPUT_H
#define LR_VIEWER_INPUT_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
