/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "correspondence/cpu/elements.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "base/vec.h"

#include <string.h>

/* Two hits count as equally far if the relative difference of their distances is below this. */
#define SAME_DISTANCE 1e-12

/* One line from a point of the primary through the eye. */
struct line {
    double plane[2]; /* plane coordinates of the point where the line hits the primary */
    double ray[3];   /* from the eye to this point */
};

/* The end of a line beyond the eye, as seen from the primary. */
struct hit {
    const struct lr_cpu_sighting *met; /* NULL = the line hits no module */
    double t;                          /* position of the hit: eye - t ray */
    double plane[2];
};

/* Makes line (a, b) of a primary crystal, where a and b are sample numbers along u and v, 0 .. rays - 1. */
static void make_line(const struct lr_cpu_view *view, const struct lr_cpu_crystal *from, int a, int b,
                      struct line *line)
{
    const struct lr_cpu_module *module = &view->scene->modules[from->module];
    const double rays = view->scene->params.rays, part[2] = {(a + 0.5) / rays, (b + 0.5) / rays};
    for (int axis = 0; axis < 2; axis++)
        line->plane[axis] = lr_cpu_face_centre(module, axis, from->at[axis]) + (part[axis] - 0.5) * module->face[axis];
    vec_add_scaled(view->toward[from->module].offset, line->plane[0], module->u, line->ray);
    vec_add_scaled(line->ray, line->plane[1], module->v, line->ray);
}

static bool is_in_box(const struct lr_cpu_sighting *sighting, const struct line *line)
{
    const double x = line->plane[0], y = line->plane[1];
    return x >= sighting->low[0] && x <= sighting->high[0] && y >= sighting->low[1] && y <= sighting->high[1];
}

/* Finds the first module of a layer that the line hits beyond the eye. Modules are visited in ascending order, so the
 * lower index wins if two modules are at the same distance. */
static void follow(const struct lr_cpu_view *view, int layer, const struct line *line, struct hit *hit)
{
    hit->met = NULL;
    hit->t = INFINITY;
    for (int k = 0; k < view->num_opposite; k++) {
        const struct lr_cpu_sighting *sighting = &view->opposite[k];
        const struct lr_cpu_module *module = &view->scene->modules[sighting->module];
        const struct lr_cpu_toward *toward = &view->toward[sighting->module];
        if (module->layer != layer || !is_in_box(sighting, line)) continue;
        const double approach = vec_dot(module->normal, line->ray);
        if (!(approach > 0 || (approach < 0 && toward->height < 0))) continue;
        const double t = toward->height / approach;
        if (!(t > 0 && t < hit->t * (1 - SAME_DISTANCE))) continue;
        const double x = toward->foot[0] - t * vec_dot(module->u, line->ray);
        const double y = toward->foot[1] - t * vec_dot(module->v, line->ray);
        if (fabs(x) <= module->half[0] && fabs(y) <= module->half[1])
            *hit = (struct hit){.met = sighting, .t = t, .plane = {x, y}};
    }
}

/* Returns true if another module stops the line before the primary. */
static bool is_stopped(const struct lr_cpu_view *view, int primary, const struct line *line)
{
    for (int k = 0; k < view->num_before; k++) {
        const struct lr_cpu_sighting *sighting = &view->before[k];
        const struct lr_cpu_module *module = &view->scene->modules[sighting->module];
        const struct lr_cpu_toward *toward = &view->toward[sighting->module];
        if (!is_in_box(sighting, line)) continue;
        /* The line hits the module's plane at eye + s ray, and the primary at s = 1. */
        const double s = -toward->height / vec_dot(module->normal, line->ray);
        const double end = sighting->module < primary ? 1 + SAME_DISTANCE : 1 - SAME_DISTANCE;
        if (s > 0 && s < end && fabs(toward->foot[0] + s * vec_dot(module->u, line->ray)) <= module->half[0] &&
            fabs(toward->foot[1] + s * vec_dot(module->v, line->ray)) <= module->half[1])
            return true;
    }
    return false;
}

/* Finds the crystal that the line hits. Returns false if the line hits a gap between crystals. */
static bool find_crystal(const struct lr_cpu_view *view, const struct hit *hit, struct lr_cpu_crystal *crystal)
{
    const struct lr_cpu_module *module = &view->scene->modules[hit->met->module];
    bool is_face = true;
    crystal->module = hit->met->module;
    for (int axis = 0; axis < 2; axis++) {
        const int size = module->crystals[axis];
        /* Coordinates are negative only by rounding, so truncation gives the same result as floor(). */
        const int cell = (int)(hit->plane[axis] / module->pitch[axis] + 0.5 * size);
        const int index = cell < size ? cell : size - 1;
        const double from_centre = hit->plane[axis] - lr_cpu_face_centre(module, axis, index);
        is_face = is_face && index >= 0 && fabs(from_centre) <= 0.5 * module->face[axis];
        crystal->at[axis] = index;
    }
    return is_face;
}

/* Returns the weight of a line: its absorption factor P_abs times its solid angle / 2 pi. */
static double weigh(const struct lr_cpu_view *view, int primary, const struct line *line, const struct hit *hit)
{
    const struct lr_backend_params *params = &view->scene->params;
    const struct lr_cpu_module *module = &view->scene->modules[primary];
    const double distance2 = vec_dot(line->ray, line->ray);
    const double cosine = view->toward[primary].height / sqrt(distance2);
    const double area = module->face[0] * module->face[1] / ((double)params->rays * params->rays);
    double weight = area * cosine / distance2 / (2 * LR_PI);
    if (params->mu != NULL) {
        double y1[3], y2[3];
        vec_add_scaled(view->point, 1, line->ray, y1);
        vec_add_scaled(view->point, -hit->t, line->ray, y2);
        weight *= lr_cpu_absorption(params->mu, params->mu_steps, y1, y2);
    }
    return weight;
}

lr_status lr_cpu_trace(struct lr_cpu_view *view, struct lr_cpu_tally *tally, struct lr_elements *elements)
{
    const struct lr_cpu_scene *scene = view->scene;
    const int rays = scene->params.rays, num_layers = scene->num_layers;
    for (int primary = 0; primary < scene->num_modules; primary++) {
        const int *size = scene->modules[primary].crystals;
        lr_cpu_view_look(view, primary);
        if (view->num_opposite == 0) continue;
        for (int number = 0; number < size[0] * size[1]; number++) {
            /* Finds the crystals that the lines of a primary crystal hit, separately for each layer of the other
             * modules. */
            const struct lr_cpu_crystal from = {primary, {number % size[0], number / size[0]}};
            tally->count = 0;
            for (int k = 0; k < rays * rays * num_layers; k++) {
                const int layer = k % num_layers, sample = k / num_layers;
                struct line line;
                struct hit hit;
                struct lr_cpu_crystal struck;
                make_line(view, &from, sample % rays, sample / rays, &line);
                follow(view, layer, &line, &hit);
                if (hit.met == NULL || !hit.met->detects || !find_crystal(view, &hit, &struck) ||
                    (view->num_before > 0 && is_stopped(view, primary, &line)))
                    continue;
                const double weight = weigh(view, primary, &line, &hit);
                int n = tally->count - 1;
                while (n >= 0 && memcmp(&tally->entries[n].crystal, &struck, sizeof(struck)) != 0) n--;
                if (n >= 0)
                    tally->entries[n].weight += weight;
                else
                    tally->entries[tally->count++] = (struct lr_cpu_tally_entry){struck, weight};
            }

            for (int k = 0; k < tally->count; k++) {
                const struct lr_cpu_tally_entry *entry = &tally->entries[k];
                const int64_t lor = lr_cpu_scene_lor(scene, &from, &entry->crystal);
                if (lor >= 0) LR_TRY(lr_elements_add(elements, lor, entry->weight, scene->params.log));
            }
        }
    }
    return LR_OK;
}

void lr_cpu_trace_picture(struct lr_cpu_view *view, int primary, lr_pixel *pixels)
{
    const struct lr_cpu_module *module = &view->scene->modules[primary];
    const int rays = view->scene->params.rays, width = module->crystals[0] * rays, height = module->crystals[1] * rays;
    lr_cpu_view_look(view, primary);
    for (int pixel = 0; pixel < width * height; pixel++) {
        const int x = pixel % width, y = pixel / width;
        const struct lr_cpu_crystal from = {primary, {x / rays, y / rays}};
        struct line line;
        struct hit hit; /* the hit on a module of the primary's layer */
        struct lr_cpu_crystal struck;
        make_line(view, &from, x % rays, y % rays, &line);
        follow(view, module->layer, &line, &hit);
        const bool is_front = hit.met != NULL && view->toward[hit.met->module].height > 0;
        if (!is_front || !find_crystal(view, &hit, &struck) || is_stopped(view, primary, &line)) {
            pixels[pixel] = (lr_pixel){.module = -1, .r = -1, .s = -1};
            continue;
        }
        const bool counts = hit.met->detects && lr_cpu_scene_lor(view->scene, &from, &struck) >= 0;
        pixels[pixel] = (lr_pixel){
            .module = (float)hit.met->module,
            .r = (float)struck.at[0],
            .s = (float)struck.at[1],
            .weight = counts ? (float)weigh(view, primary, &line, &hit) : 0,
            .path_mm = (float)((1 + hit.t) * vec_length(line.ray)),
        };
    }
}
