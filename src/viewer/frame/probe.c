/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/probe.h"

#include "viewer/frame/app.h"
#include "viewer/frame/app_input.h"
#include "viewer/frame/legend.h"
#include "viewer/tools/tools.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const plane_names[3] = {"sagittal", "coronal", "transaxial"};

/* --- finding --- */

/* As a share of the ray's way, which modules are measured by, too. */
static double share_of(const struct pick_ray *ray, int axis, double at_mm)
{
    return (at_mm - ray->from_mm[axis]) / ray->way[axis];
}

static void find_slice(const struct app *app, const struct pick_ray *ray, struct probe *probe)
{
    const struct draw_slices *slices = &app->slices;
    const lr_grid *grid = draw_get_grid(app->draw, slices->image);
    double nearest = probe->hit.module >= 0 ? probe->hit.share : HUGE_VAL, point[3];
    if (draw_get_image(app->draw, slices->image) == NULL) return;
    for (int axis = 0; axis < 3; axis++) {
        if (slices->is_shown[axis] && pick_slice(grid, ray, axis, slices->at_mm[axis], point) &&
            share_of(ray, axis, slices->at_mm[axis]) < nearest) {
            nearest = share_of(ray, axis, slices->at_mm[axis]);
            probe->axis = axis;
            memcpy(probe->point_mm, point, sizeof(point));
        }
    }
    if (probe->axis >= 0) {
        probe->hit.module = -1;
        (void)pick_voxel(grid, probe->point_mm, probe->voxel);
    }
}

struct probe probe_find(const struct app *app)
{
    struct probe probe = {.hit = {.module = -1}, .axis = -1, .value = NAN, .tube = NAN};
    const struct pick_ray ray = app_input_ray(app);
    if (!app->hides_scanner) probe.hit = pick_module(tools_scanner(app), &ray);
    find_slice(app, &ray, &probe);
    return probe;
}

/* --- values --- */

static bool has_tube(const struct app *app)
{
    const lr_grid *shown = draw_get_grid(app->draw, app->slices.image);
    const lr_grid *tube = draw_get_grid(app->draw, DRAW_TUBE);
    return app->slices.overlay_high > 0.0 && app->slices.image != DRAW_TUBE && shown != NULL && tube != NULL &&
           memcmp(shown->size, tube->size, sizeof(shown->size)) == 0;
}

void probe_update(struct app *app)
{
    struct probe *probe = &app->probe;
    *probe = (struct probe){.hit = {.module = -1}, .axis = -1, .value = NAN, .tube = NAN};
    if (app->held_button < 0 && !ui_wants_mouse(app->ui)) *probe = probe_find(app);
    if (probe->axis >= 0) {
        probe->value = draw_get_voxel(app->draw, app->slices.image, probe->voxel);
        probe->tube = has_tube(app) ? draw_get_voxel(app->draw, DRAW_TUBE, probe->voxel) : NAN;
    }
}

/* --- words --- */

static void describe_module(const struct app *app, const struct pick_hit *hit, char *text, size_t size)
{
    const lr_module *module = &tools_scanner(app)->modules[hit->module];
    const double *at = hit->point_mm;
    char crystal[64] = "gap between crystals";
    if (hit->crystal[0] >= 0 && hit->crystal[1] >= 0)
        snprintf(crystal, sizeof(crystal), "crystal p = %d, q = %d", hit->crystal[0], hit->crystal[1]);
    char layer[32] = "";
    if (module->block > 0) snprintf(layer, sizeof(layer), ", layer %d", module->layer);
    snprintf(text, size, "module %d (ring %d, position %d%s), %s at (%.1f, %.1f, %.1f) mm", hit->module, module->ring,
             module->position, layer, crystal, at[0], at[1], at[2]);
}

void probe_describe(const struct app *app, char *text, size_t size)
{
    const struct probe *probe = &app->probe;
    const double *at = probe->point_mm;
    const int *voxel = probe->voxel;
    char tube[48] = "";
    text[0] = '\0';
    if (probe->hit.module >= 0) {
        describe_module(app, &probe->hit, text, size);
    } else if (probe->axis >= 0) {
        if (!isnan(probe->tube)) snprintf(tube, sizeof(tube), ", tube of response %.6g", probe->tube);
        snprintf(text, size, "%s %.7g%s, voxel (%d, %d, %d), (%.2f, %.2f, %.2f) mm, %s slice",
                 legend_image_name(app->slices.image), probe->value, tube, voxel[0], voxel[1], voxel[2], at[0], at[1],
                 at[2], plane_names[probe->axis]);
    }
}
