/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Places of the panes in the window, and the points that they show. */
#include "viewer/app.h"

#include <math.h>
#include <string.h>

static const double gap = 2.0;     /* pixels between panes */
static const double margin = 1.06; /* size of a pane, relative to the image in it */

const lr_grid *panes_grid(const struct app *app)
{
    return draw_get_grid(app->draw, app->slices.image);
}

void panes_arrange(struct app *app)
{
    const int alone = panes_grid(app) == NULL ? PANE_SCENE : app->alone;
    const double *at = app->area_at, *size = app->area_size;
    const double half[2] = {floor(0.5 * (size[0] - gap)), floor(0.5 * (size[1] - gap))};
    /* The transaxial pane is above the coronal pane, because x is horizontal in both. The sagittal pane is beside the
     * coronal pane, because z is vertical in both. */
    static const int column[NUM_PANES] = {1, 0, 0, 1}, row[NUM_PANES] = {1, 1, 0, 0};
    for (int k = 0; k < NUM_PANES; k++) {
        struct app_pane *pane = &app->panes[k];
        const int place[2] = {column[k], row[k]};
        for (int c = 0; c < 2; c++) {
            pane->at[c] = alone == PANE_FOUR ? at[c] + place[c] * (half[c] + gap) : at[c];
            pane->size[c] = fmax(alone == k ? size[c] : alone == PANE_FOUR ? half[c] : 0.0, 0.0);
        }
        if (fmin(pane->size[0], pane->size[1]) < 1.0) pane->size[0] = pane->size[1] = 0.0;
    }
    const struct app_pane *scene = &app->panes[PANE_SCENE];
    for (int c = 0; c < 2; c++) {
        app->scene_at[c] = scene->at[c];
        app->scene_size[c] = fmax(scene->size[c], 1.0);
    }
}

struct flat_view panes_flat(const struct app *app, int axis)
{
    struct flat_view flat = {.axis = axis, .pixel_mm = 1.0, .size = {1.0, 1.0}};
    const lr_grid *grid = panes_grid(app);
    double largest = 0.0; /* mm per pixel at which the image just fits into every pane */
    for (int k = 0; k < 3 && grid != NULL; k++) {
        const double *size = app->panes[k].size;
        flat.middle_mm[k] = grid->origin_mm[k] + 0.5 * (grid->size[k] - 1) * grid->voxel_mm[k] + app->pane_offset_mm[k];
        for (int c = 0; c < 2 && size[0] > 0.0; c++) {
            const int side = lr_slice_axes[k][c];
            largest = fmax(largest, grid->size[side] * grid->voxel_mm[side] / size[c]);
        }
    }
    if (largest > 0.0) flat.pixel_mm = margin * largest / app->pane_zoom;
    if (app->panes[axis].size[0] > 0.0) memcpy(flat.size, app->panes[axis].size, sizeof(flat.size));
    return flat;
}

int panes_at(const struct app *app, const double at[2])
{
    for (int k = 0; k < NUM_PANES; k++) {
        const struct app_pane *pane = &app->panes[k];
        const double right = at[0] - pane->at[0], down = at[1] - pane->at[1];
        if (fmin(right, down) >= 0.0 && right < pane->size[0] && down < pane->size[1]) return k;
    }
    return -1;
}

void panes_point_in(const struct app *app, int pane, const double at[2], double point_mm[3])
{
    const double *corner = app->panes[pane].at;
    const struct flat_view flat = panes_flat(app, pane);
    flat_point(&flat, (double[2]){at[0] + 0.5 - corner[0], at[1] + 0.5 - corner[1]}, app->slices.at_mm[pane], point_mm);
}

int panes_point(const struct app *app, const double at[2], double point_mm[3])
{
    const int axis = panes_at(app, at);
    if (axis < 0 || axis == PANE_SCENE) return -1;
    panes_point_in(app, axis, at, point_mm);
    return axis;
}

void panes_cross(struct app *app, const double point_mm[3])
{
    const lr_grid *shown = panes_grid(app), *grid = shown != NULL ? shown : &app->open.grid;
    for (int k = 0; k < 3 && grid->size[k] > 0; k++) {
        const double voxel = fmin(fmax(pick_index(grid, k, point_mm[k]), 0.0), grid->size[k] - 1.0);
        app->slices.at_mm[k] = grid->origin_mm[k] + voxel * grid->voxel_mm[k];
    }
}
