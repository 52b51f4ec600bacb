/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/resource.h"
#include "viewer/frame/window_private.h"

#include <stdlib.h>

void window_close(struct window *window)
{
    if (window != NULL) {
        window->fns->close(window);
        free(window);
    }
}

struct gl_context *window_context(struct window *window)
{
    return window->ctx;
}

void window_size(const struct window *window, int size[2])
{
    size[0] = window->size[0];
    size[1] = window->size[1];
}

double window_scale(const struct window *window)
{
    return window->scale;
}

void window_add(struct window *window, const struct input_event *event)
{
    if (window->count > 0) {
        struct input_event *last = &window->events[(window->first + window->count - 1) % WINDOW_EVENTS];
        if (event->kind == INPUT_MOVE && last->kind == INPUT_MOVE) {
            *last = *event;
            return;
        }
    }
    if (window->count < WINDOW_EVENTS) window->events[(window->first + window->count++) % WINDOW_EVENTS] = *event;
}

bool window_next(struct window *window, struct input_event *event)
{
    if (window->count == 0) window->fns->poll(window, 0.0);
    if (window->count == 0) return false;
    *event = window->events[window->first];
    window->first = (window->first + 1) % WINDOW_EVENTS;
    window->count--;
    return true;
}

void window_wait(struct window *window, double seconds)
{
    if (window->count == 0) window->fns->poll(window, seconds);
}

void window_push(struct window *window, const struct input_event *event)
{
    if (event->kind == INPUT_SIZE)
        window->fns->resize(window, (int[2]){(int)event->at[0], (int)event->at[1]});
    else
        window_add(window, event);
}

void window_show(struct window *window, const struct gl_target *target)
{
    if (window->fns->show != NULL) {
        gl_target_show(target, 0);
        window->fns->show(window);
    }
}

bool window_is_seen(const struct window *window)
{
    return window->fns->show != NULL;
}

void window_copy(struct window *window, const char *text)
{
    window->fns->copy(window, text);
}

const char *window_pasted(struct window *window)
{
    return window->fns->pasted(window);
}
