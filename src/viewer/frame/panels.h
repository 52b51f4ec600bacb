/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a person reads and presses, of all tools. Each panel reads the app's plain fields and changes them. */
#ifndef LR_VIEWER_PANELS_H
#define LR_VIEWER_PANELS_H

#include "viewer/frame/app.h"

/* All of them, in a frame. */
void panels_show(struct app *app);

/* Sets what they leave of the window for the scene: at least one pixel. */
void panels_leave(struct app *app);

/* Keeps what a curve tells of the mouse, where it is on that curve. */
void panels_take_reading(struct app *app, struct ui_reading reading);

/* Where a curve of log-likelihoods of iterations begins: 1 where the first would hide the rest, else 0. */
int panels_find_first(const float *likelihood, int count);

#endif
