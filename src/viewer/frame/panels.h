/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a person reads and presses. Each reads the app's plain fields and changes them. */
#ifndef LR_VIEWER_PANELS_H
#define LR_VIEWER_PANELS_H

#include "viewer/frame/app.h"

/* All of them, in a frame. */
void panels_show(struct app *app);

/* Sets what they leave of the window for the scene: at least one pixel. */
void panels_leave(struct app *app);

/* One each, in files of their names. */
void panel_study(struct app *app);
void panel_voxel(struct app *app);
void panel_lor(struct app *app);
void panel_maps(struct app *app);
void panel_live(struct app *app);
void panel_doctor(struct app *app);
void panel_direct(struct app *app);
void panel_start(struct app *app);
void panel_opener(struct app *app);

/* Keeps what a curve tells of the mouse, where it is on that curve. */
void panels_take_reading(struct app *app, struct ui_reading reading);

/* While nothing is open. */
bool panel_start_is_shown(const struct app *app);

#endif
