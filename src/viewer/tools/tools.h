/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the viewer does with what is open: between the models, which compute, and the scene, which
 * is drawn. */
#ifndef LR_VIEWER_TOOLS_H
#define LR_VIEWER_TOOLS_H

#include "viewer/frame/app.h"

lr_status tools_open(struct app *app); /* begins to open what the params name */
void tools_close(struct app *app);

/* Once a frame: puts what has become ready into the scene. */
lr_status tools_update(struct app *app);
bool tools_are_busy(const struct app *app);
void tools_cancel(struct app *app);

/* What is drawn: a refused file's modules, else the open scanner's. NULL: none. */
const lr_scanner *tools_scanner(const struct app *app);

/* Takes an image into the scene; one that the device cannot hold is told of and not shown. */
void tools_put_image(struct app *app, enum draw_image which, const lr_image *image);

/* Puts an image on the slices, with its range. */
void tools_show_image(struct app *app, enum draw_image which);

void tools_fit(struct app *app);                    /* the camera, to what is open */
void tools_drop(struct app *app, const char *path); /* opens a file of any kind */
void tools_click(struct app *app);                  /* at the mouse, in the scene */
void tools_move_slice(struct app *app, int steps);  /* the transaxial one, by voxels */

/* Numbers of the pixel under the mouse, else of the crystal, to the clipboard. */
void tools_copy(struct app *app);

void tools_save_view(struct app *app); /* what was drawn last, under a name that is not taken yet */
void tools_save_session(struct app *app);

#endif
