/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Lines of the scene that stand for something: the grid's box, the axes. */
#ifndef LR_VIEWER_SCENE_LINES_H
#define LR_VIEWER_SCENE_LINES_H

#include "viewer/frame/draw.h"

/* The outer faces' edges. */
lr_status scene_lines_grid(struct draw *draw, const lr_grid *grid);

/* The axes from the scanner's centre, x red, y green, z blue, that long. */
lr_status scene_lines_axes(struct draw *draw, double length_mm);

/* A cross at a point. */
lr_status scene_lines_cursor(struct draw *draw, const double point_mm[3], double size_mm);

#endif
