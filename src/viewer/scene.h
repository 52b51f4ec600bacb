/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scene's own words: what is under the mouse, what its colours stand for, its axes. */
#ifndef LR_VIEWER_SCENE_H
#define LR_VIEWER_SCENE_H

#include "viewer/app.h"

/* The nearest module or slice under the mouse, without values. */
struct probe scene_probe(const struct app *app);

/* Once a frame, before it is drawn: app->probe. */
void scene_update_probe(struct app *app);

/* "image 0.25, voxel (12, 30, 4), (1.20, 3.40, 5.00) mm, transaxial slice"; "" where there is
 * nothing. */
void scene_describe_probe(const struct app *app, char *text, size_t size);

/* "reconstruction", "emissions per voxel" */
const char *scene_image_name(enum draw_image which);

/* A bar of the map's colours over that range, as wide as bars are in panels. */
struct ui_bar scene_bar(lr_colour_map colours, const double range[2], const char *title);

/* Over the scene: names of its axes, and in its lower left corner bars of what it shows in colours. */
void scene_show_labels(struct app *app);

#endif
