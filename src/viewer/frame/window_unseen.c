/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A surface that nobody sees: EGL without a display, and input from scripts only. */
#include "base/mem.h"
#include "gl/resource.h"
#include "viewer/frame/window_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct unseen {
    struct window window;
    char clipboard[WINDOW_CLIPBOARD];
};

static void unseen_close(struct window *window)
{
    gl_context_release(window->ctx);
    gl_context_destroy(window->ctx);
}

static void unseen_poll(struct window *window, double seconds)
{
    const struct timespec pause = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    (void)window;
    if (seconds > 0.0) nanosleep(&pause, NULL);
}

static void unseen_resize(struct window *window, const int size[2])
{
    window->size[0] = size[0];
    window->size[1] = size[1];
    window_add(window, &(struct input_event){.kind = INPUT_SIZE});
}

static void unseen_copy(struct window *window, const char *text)
{
    struct unseen *unseen = (struct unseen *)window;
    snprintf(unseen->clipboard, sizeof(unseen->clipboard), "%s", text);
}

static const char *unseen_pasted(struct window *window)
{
    return ((struct unseen *)window)->clipboard;
}

static const struct window_fns fns = {
    .close = unseen_close,
    .poll = unseen_poll,
    .resize = unseen_resize,
    .copy = unseen_copy,
    .pasted = unseen_pasted,
};

struct window *window_open_unseen(const struct window_params *params)
{
    struct unseen *unseen = lr_alloc(1, sizeof(*unseen), "a surface to draw on", params->log);
    if (unseen == NULL) return NULL;
    struct window *window = &unseen->window;
    window->fns = &fns;
    window->log = params->log;
    window->size[0] = params->size[0];
    window->size[1] = params->size[1];
    window->scale = 1.0;
    window->ctx = gl_context_create(&(struct gl_context_params){.device = params->device, .log = params->log});
    if (window->ctx == NULL || gl_context_make_current(window->ctx) != LR_OK) {
        gl_context_destroy(window->ctx);
        free(unseen);
        return NULL;
    }
    return window;
}
