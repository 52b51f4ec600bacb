/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What lies under the mouse in the scene: the nearest of modules and slices, and what the slice
 * shows there. */
#ifndef LR_VIEWER_PROBE_H
#define LR_VIEWER_PROBE_H

#include "viewer/frame/pick.h"

#include <stddef.h>

struct app;

struct probe {
    struct pick_hit hit; /* of a module; module -1: none, or a slice is nearer */
    int axis;            /* the slice across it; -1: none, or a module is nearer */
    double point_mm[3];  /* on the slice */
    int voxel[3];        /* of the image that the slices show, that holds the point */
    double value;        /* of that voxel, as the device has it */
    double tube;         /* of the tube that is laid over it; NaN: none is */
};

/* What is nearest, without values. */
struct probe probe_find(const struct app *app);

/* Once a frame, before it is drawn: app->probe and where modules are hovered. */
void probe_update(struct app *app);

/* "image 0.25, voxel (12, 30, 4), (1.20, 3.40, 5.00) mm, transaxial slice"; "" where there is
 * nothing. */
void probe_describe(const struct app *app, char *text, size_t size);

#endif
