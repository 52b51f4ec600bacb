/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/background.h"

static void *call(void *user)
{
    const struct lr_background *background = user;
    background->body(background->user);
    return NULL;
}

void lr_background_start(struct lr_background *background, void (*body)(void *user), void *user)
{
    background->body = body;
    background->user = user;
    background->is_running = pthread_create(&background->thread, NULL, call, background) == 0;
    if (!background->is_running) body(user);
}

void lr_background_wait(struct lr_background *background)
{
    if (background->is_running) pthread_join(background->thread, NULL);
    background->is_running = false;
}
