/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What mouse and keys do outside of the panels. */
#ifndef LR_VIEWER_APP_INPUT_H
#define LR_VIEWER_APP_INPUT_H

#include "viewer/frame/app.h"
#include "viewer/frame/pick.h"

/* Takes events up to and with the next press or release of a button or key: panels see one of them
 * in a frame. */
void app_input_take(struct app *app);

/* The line of sight under the mouse. */
struct pick_ray app_input_ray(const struct app *app);

/* Keys and what they do: for the list under "?". NULL ends it. */
struct app_key {
    int key;
    const char *name, *what;
    void (*run)(struct app *app);
};
extern const struct app_key app_keys[];

#endif
