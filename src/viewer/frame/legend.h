/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What colours stand for: names and units of all that is shown, and the colour bars in the scene. */
#ifndef LR_VIEWER_LEGEND_H
#define LR_VIEWER_LEGEND_H

#include "viewer/frame/draw.h"
#include "viewer/frame/ui.h"
#include "viewer/study/sheet.h"

struct app;

/* "reconstruction", "emissions per voxel" */
const char *legend_image_name(enum draw_image which);
const char *legend_image_unit(const struct app *app, enum draw_image which);

/* Element of the matrix; what a window of the voxel tool shows. */
extern const char *const legend_element_unit;
const char *legend_sheet_title(enum sheet_kind kind);

/* A bar of the map's colours over that range, as wide as bars are in panels. */
struct ui_bar legend_bar(lr_colour_map colours, const double range[2], const char *title);

/* Bars of what the scene shows in colours, in its lower left corner. */
void legend_show(struct app *app);

#endif
