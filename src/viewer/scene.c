/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/scene.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const plane_names[3] = {"sagittal", "coronal", "transaxial"};

/* --- under the mouse --- */

/* The share of the ray's direction at which it crosses a slice, comparable with pick_hit.share. */
static double share_of(const struct pick_ray *ray, int axis, double at_mm)
{
    return (at_mm - ray->from_mm[axis]) / ray->direction[axis];
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

struct probe scene_probe(const struct app *app)
{
    struct probe probe = {.hit = {.module = -1}, .axis = -1, .value = NAN, .tube = NAN};
    struct pick_ray ray;
    double place[2];
    for (int k = 0; k < 2; k++) place[k] = (app->mouse[k] + 0.5 - app->scene_at[k]) / app->scene_size[k];
    camera_ray(&app->seen, place, ray.direction);
    for (int k = 0; k < 3; k++) ray.from_mm[k] = (double)app->seen.eye_mm[k];

    if (!app->hides_scanner) probe.hit = pick_module(app->drawn, &ray);
    find_slice(app, &ray, &probe);
    return probe;
}

/* --- values --- */

void scene_update_probe(struct app *app)
{
    struct probe *probe = &app->probe;
    *probe = (struct probe){.hit = {.module = -1}, .axis = -1, .value = NAN, .tube = NAN};
    if (app->held_button < 0 && !ui_wants_mouse(app->ui)) *probe = scene_probe(app);
    if (probe->axis >= 0) {
        probe->value = draw_get_voxel(app->draw, app->slices.image, probe->voxel);
        const lr_grid *shown = draw_get_grid(app->draw, app->slices.image);
        const lr_grid *tube = draw_get_grid(app->draw, DRAW_TUBE);
        if (app->slices.overlay_high > 0.0 && app->slices.image != DRAW_TUBE && shown != NULL && tube != NULL &&
            memcmp(shown->size, tube->size, sizeof(shown->size)) == 0)
            probe->tube = draw_get_voxel(app->draw, DRAW_TUBE, probe->voxel);
    }
}

/* --- words --- */

static void describe_module(const struct app *app, const struct pick_hit *hit, char *text, size_t size)
{
    const lr_module *module = &app->drawn->modules[hit->module];
    const double *at = hit->point_mm;
    char crystal[64] = "gap between crystals";
    if (hit->crystal[0] >= 0 && hit->crystal[1] >= 0)
        snprintf(crystal, sizeof(crystal), "crystal p = %d, q = %d", hit->crystal[0], hit->crystal[1]);
    char layer[32] = "";
    if (module->block > 0) snprintf(layer, sizeof(layer), ", layer %d", module->layer);
    snprintf(text, size, "module %d (ring %d, position %d%s), %s at (%.1f, %.1f, %.1f) mm", hit->module, module->ring,
             module->position, layer, crystal, at[0], at[1], at[2]);
}

void scene_describe_probe(const struct app *app, char *text, size_t size)
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
                 scene_image_name(app->slices.image), probe->value, tube, voxel[0], voxel[1], voxel[2], at[0], at[1],
                 at[2], plane_names[probe->axis]);
    }
}

/* --- colours --- */

static const double bar_width = 300.0, scene_bar_width = 230.0, margin = 14.0;

static const struct {
    const char *name, *unit;
} images[DRAW_NUM_IMAGES] = {
    [DRAW_IMAGE] = {"image", "in the unit of its file"},
    [DRAW_MU] = {"mu-map", "1/mm"},
    [DRAW_TUBE] = {"tube of response", "detections per emission"},
    [DRAW_SENSITIVITY] = {"sensitivity", "detections per emission"},
    [DRAW_LIVE] = {"reconstruction", "emissions per voxel"},
    [DRAW_KERNEL] = {"DIRECT kernel", "share of the voxel's counts"},
    [DRAW_HISTO] = {"histo-image", "counts per voxel"},
};

const char *scene_image_name(enum draw_image which)
{
    return images[which].name;
}

struct ui_bar scene_bar(lr_colour_map colours, const double range[2], const char *title)
{
    struct ui_bar bar = {.low = range[0], .high = range[1], .width = bar_width};
    snprintf(bar.title, sizeof(bar.title), "%s", title);
    for (int k = 0; k < UI_BAR_COLOURS; k++) {
        const lr_colour colour = lr_colour_of(colours, k / (UI_BAR_COLOURS - 1.0));
        bar.colours[k] = (uint32_t)colour.r << 24 | (uint32_t)colour.g << 16 | (uint32_t)colour.b << 8 | 0xff;
    }
    return bar;
}

/* --- in the scene --- */

static struct ui_bar image_bar(const struct app *app, enum draw_image which, lr_colour_map colours,
                               const double range[2])
{
    char title[96];
    snprintf(title, sizeof(title), "%s (%s)", images[which].name,
             app->units[which] != NULL ? app->units[which] : images[which].unit);
    return scene_bar(colours, range, title);
}

/* Slices have a map that a person chooses, volumes and what is laid over slices one of their own. */
static int find_bars(const struct app *app, struct ui_bar bars[4])
{
    const struct draw_slices *slices = &app->slices;
    const bool has_image = draw_get_image(app->draw, slices->image) != NULL;
    const bool has_slices = has_image && (slices->is_shown[0] || slices->is_shown[1] || slices->is_shown[2]);
    const double range[2] = {slices->low, slices->high};
    int count = 0;
    const double crystals = draw_get_crystals_largest(app->draw);
    if (crystals > 0.0 && !app->hides_scanner) {
        bars[count++] =
            scene_bar(LR_COLOURS_PERCEPTUAL, (double[2]){0.0, crystals}, "crystals (detections per emission)");
    }
    if (has_slices && slices->overlay_high > 0.0 && slices->image != DRAW_TUBE &&
        draw_get_image(app->draw, DRAW_TUBE) != NULL)
        bars[count++] = image_bar(app, DRAW_TUBE, LR_COLOURS_PERCEPTUAL, (double[2]){0.0, slices->overlay_high});
    if (has_image && app->has_volume) {
        bars[count] = image_bar(app, slices->image, LR_COLOURS_PERCEPTUAL, (double[2]){0.0, slices->high});
        count += !has_slices || slices->colours != LR_COLOURS_PERCEPTUAL || slices->low != 0.0;
    }
    if (has_slices) bars[count++] = image_bar(app, slices->image, slices->colours, range);
    return count;
}

static void label_axes(struct app *app)
{
    static const char *const names[3] = {"x", "y", "z (bed)"};
    static const uint32_t colours[3] = {0xe0643cff, 0x22b384ff, 0x4f9be8ff};
    for (int k = 0; k < 3; k++) {
        double end[3] = {0.0, 0.0, 0.0}, place[2];
        end[k] = 0.52 * app->camera.reach_mm;
        if (camera_project(&app->seen, end, place) && fmin(place[0], place[1]) >= 0.0 &&
            fmax(place[0], place[1]) <= 1.0) {
            const double scale = window_scale(app->window);
            ui_label((double[2]){(app->scene_at[0] + place[0] * app->scene_size[0]) / scale + 3.0,
                                 (app->scene_at[1] + place[1] * app->scene_size[1]) / scale - 7.0},
                     colours[k], names[k]);
        }
    }
}

void scene_show_labels(struct app *app)
{
    if (app->drawn != NULL) label_axes(app);
    struct ui_bar bars[4];
    const double scale = window_scale(app->window);
    const double width = app->scene_size[0] / scale - 2.0 * margin;
    const int count = find_bars(app, bars);
    double at[2] = {app->scene_at[0] / scale + margin, (app->scene_at[1] + app->scene_size[1]) / scale};
    for (int k = count - 1; k >= 0 && width > 60.0; k--) {
        bars[k].width = fmin(scene_bar_width, width);
        at[1] -= ui_bar_height(&bars[k]) + 8.0;
        if (at[1] > 0.0) ui_bar_at(&bars[k], at);
    }
}
