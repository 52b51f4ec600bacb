/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "correspondence/cpu/elements.h"

#include "base/mem.h"
#include "base/vec.h"
#include "model/scanner/coincidence.h"
#include "model/scanner/scanner.h"

#include <stdlib.h>

/* Two modules count as equally far if the relative difference of their squared distances is below this. */
#define TIE 1e-9

/* The relative tolerance of tests that exclude modules. Rounding errors are about 1e-15. */
#define SLACK 1e-9

lr_status lr_cpu_scene_init(struct lr_cpu_scene *scene, const struct lr_backend_params *params)
{
    const lr_scanner *scanner = params->scanner;
    struct lr_cpu_module *modules = lr_alloc(scanner->num_modules, sizeof(*modules), "the modules", params->log);
    if (modules == NULL) return LR_FAILED;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        struct lr_cpu_module *out = &modules[m];
        lr_scanner_detection_centre(scanner, m, out->centre);
        for (int k = 0; k < 3; k++) {
            out->u[k] = module->u[k];
            out->v[k] = module->v[k];
            out->normal[k] = module->normal[k];
        }
        for (int axis = 0; axis < 2; axis++) {
            out->crystals[axis] = module->crystals[axis];
            out->pitch[axis] = module->pitch_mm[axis];
            out->face[axis] = module->face_mm[axis];
            out->half[axis] = 0.5 * module->crystals[axis] * module->pitch_mm[axis];
        }
        out->layer = module->layer;
        out->radius = sqrt(out->half[0] * out->half[0] + out->half[1] * out->half[1]);
    }
    *scene = (struct lr_cpu_scene){
        .params = *params,
        .num_modules = scanner->num_modules,
        .modules = modules,
        .may_hide = lr_modules_may_hide(scanner),
        .num_layers = lr_scanner_num_layers(scanner),
    };
    return LR_OK;
}

void lr_cpu_scene_finish(struct lr_cpu_scene *scene)
{
    free(scene->modules);
    scene->modules = NULL;
}

int64_t lr_cpu_scene_lor(const struct lr_cpu_scene *scene, const struct lr_cpu_crystal *a,
                         const struct lr_cpu_crystal *b)
{
    const lr_lors *lors = scene->params.lors;
    const int64_t pair = lr_lors_pair(lors, a->module, b->module);
    const struct lr_cpu_crystal *i = a->module < b->module ? a : b;
    const struct lr_cpu_crystal *j = a->module < b->module ? b : a;
    if (pair < 0 || !lr_coincidence_allows(lors, pair, i->at[0], i->at[1], j->at[0], j->at[1])) return -1;
    const int *size_i = scene->modules[i->module].crystals;
    const int *size_j = scene->modules[j->module].crystals;
    const int64_t number_i = (int64_t)i->at[1] * size_i[0] + i->at[0];
    const int64_t number_j = (int64_t)j->at[1] * size_j[0] + j->at[0];
    return lors->offsets[pair] + number_i * ((int64_t)size_j[0] * size_j[1]) + number_j;
}

lr_status lr_cpu_view_init(struct lr_cpu_view *view, const struct lr_cpu_scene *scene)
{
    const lr_log *log = scene->params.log;
    *view = (struct lr_cpu_view){.scene = scene};
    view->toward = lr_alloc(scene->num_modules, sizeof(*view->toward), "a view", log);
    view->opposite = lr_alloc(scene->num_modules, sizeof(*view->opposite), "a view", log);
    view->before = lr_alloc(scene->num_modules, sizeof(*view->before), "a view", log);
    if (view->toward == NULL || view->opposite == NULL || view->before == NULL) {
        lr_cpu_view_finish(view);
        return LR_FAILED;
    }
    return LR_OK;
}

void lr_cpu_view_finish(struct lr_cpu_view *view)
{
    lr_free_all(view->opposite, view->before, view->toward);
    *view = (struct lr_cpu_view){0};
}

void lr_cpu_view_place(struct lr_cpu_view *view, const double point[3], const int pair[2])
{
    for (int k = 0; k < 3; k++) view->point[k] = point[k];
    for (int n = 0; n < (pair != NULL ? 2 : view->scene->num_modules); n++) {
        const int m = pair != NULL ? pair[n] : n;
        const struct lr_cpu_module *module = &view->scene->modules[m];
        struct lr_cpu_toward *toward = &view->toward[m];
        vec_sub(module->centre, view->point, toward->offset);
        toward->distance2 = vec_dot(toward->offset, toward->offset);
        toward->height = -vec_dot(module->normal, toward->offset);
        toward->foot[0] = -vec_dot(module->u, toward->offset);
        toward->foot[1] = -vec_dot(module->v, toward->offset);
        const double distance = sqrt(toward->distance2);
        const bool is_within = distance <= module->radius;
        for (int k = 0; k < 3; k++) toward->direction[k] = distance > 0 ? toward->offset[k] / distance : 0;
        /* A point within the sphere sees the module in all directions. A cone with a half angle of 90 degrees has this
         * effect in the tests. */
        toward->sine = is_within ? 1 : module->radius / distance;
        toward->cosine = is_within ? 0 : sqrt(1 - toward->sine * toward->sine);
    }
}

bool lr_cpu_view_is_primary(const struct lr_cpu_view *view, int primary, int other)
{
    const double a = view->toward[primary].distance2;
    const double b = view->toward[other].distance2;
    if (fabs(a - b) <= TIE * fmax(a, b)) return primary < other;
    return a > b;
}

/* The factors for the two sides of the point on which modules are searched. opposite_side: the side without the
 * primary, where rectangles are mirrored in the point. same_side: the side with the primary. */
static const double opposite_side = 1, same_side = -1;

/* Lists a module on one side of the point if a line through the point and the primary may hit the module. */
static void add_if_seen(struct lr_cpu_view *view, int primary, double side, struct lr_cpu_sighting sighting)
{
    /* Tests if the bounding spheres of both modules may overlap as seen from the point. If the modules are on opposite
     * sides of the point, one sphere is mirrored in the point. */
    const struct lr_cpu_toward *toward = &view->toward[primary], *other = &view->toward[sighting.module];
    const bool may_meet = toward->cosine == 0 || other->cosine == 0 ||
                          -side * vec_dot(toward->direction, other->direction) >=
                              toward->cosine * other->cosine - toward->sine * other->sine - SLACK;
    if (!may_meet) return;

    /* Finds the box around the module's rectangle after projection onto the primary's plane. */
    const struct lr_cpu_module *near = &view->scene->modules[sighting.module], *far = &view->scene->modules[primary];
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    int num_behind = 0, num_near_horizon = 0, num_beyond = 0;
    for (int corner = 0; corner < 4; corner++) {
        double ray[3]; /* from the point to the corner */
        vec_add_scaled(other->offset, corner & 1 ? near->half[0] : -near->half[0], near->u, ray);
        vec_add_scaled(ray, corner & 2 ? near->half[1] : -near->half[1], near->v, ray);
        const double depth = side * vec_dot(far->normal, ray);
        num_behind += depth <= 0;
        num_beyond += depth > toward->height * (1 + SLACK);
        if (depth <= SLACK * vec_length(ray)) {
            num_near_horizon++;
            continue;
        }
        const double scale = side * toward->height / depth;
        const double at[2] = {toward->foot[0] - scale * vec_dot(far->u, ray),
                              toward->foot[1] - scale * vec_dot(far->v, ray)};
        for (int axis = 0; axis < 2; axis++) {
            low[axis] = fmin(low[axis], at[axis]);
            high[axis] = fmax(high[axis], at[axis]);
        }
    }
    bool is_visible = num_behind < 4 && (side == opposite_side || num_beyond < 4);
    for (int axis = 0; axis < 2; axis++) {
        const double half = far->half[axis];
        sighting.low[axis] = num_near_horizon > 0 ? -INFINITY : low[axis] - SLACK * (half + fabs(low[axis]));
        sighting.high[axis] = num_near_horizon > 0 ? INFINITY : high[axis] + SLACK * (half + fabs(high[axis]));
        is_visible = is_visible && sighting.low[axis] <= half && sighting.high[axis] >= -half;
    }
    if (!is_visible) return;

    if (side == opposite_side)
        view->opposite[view->num_opposite++] = sighting;
    else
        view->before[view->num_before++] = sighting;
}

void lr_cpu_view_look(struct lr_cpu_view *view, int primary)
{
    const bool may_hide = view->scene->may_hide;
    view->num_opposite = view->num_before = 0;
    if (!(view->toward[primary].height > 0)) return;
    for (int m = 0; m < view->scene->num_modules; m++) {
        const double height = view->toward[m].height;
        const struct lr_cpu_sighting sighting = {.module = m,
                                                 .detects = height > 0 && lr_cpu_view_is_primary(view, primary, m)};
        /* A line through the point hits no module in whose plane the point is. */
        if (m == primary || !(may_hide ? height != 0 : sighting.detects)) continue;
        add_if_seen(view, primary, opposite_side, sighting);
        if (may_hide && view->scene->modules[m].layer == view->scene->modules[primary].layer)
            add_if_seen(view, primary, same_side, sighting);
    }
}

/* --- attenuation --- */

/* Interpolates linearly between voxel centres. at: position relative to the centre of the first voxel, in voxels. */
static double interpolate(const lr_image *mu, const double at[3])
{
    const int *size = mu->grid.size;
    int low[3];
    double part[3];
    for (int k = 0; k < 3; k++) {
        if (!(at[k] > -1 && at[k] < size[k])) return 0;
        const double floored = floor(at[k]);
        low[k] = (int)floored;
        part[k] = at[k] - floored;
    }
    double sum = 0;
    for (int corner = 0; corner < 8; corner++) {
        int64_t index[3];
        double weight = 1;
        bool inside = true;
        for (int k = 0; k < 3; k++) {
            const int step = (corner >> k) & 1;
            index[k] = (int64_t)low[k] + step;
            weight *= step ? part[k] : 1 - part[k];
            inside = inside && index[k] >= 0 && index[k] < size[k];
        }
        if (inside) sum += weight * (double)mu->values[index[0] + size[0] * (index[1] + size[1] * index[2])];
    }
    return sum;
}

double lr_cpu_absorption(const lr_image *mu, int num_steps, const double y1[3], const double y2[3])
{
    if (mu == NULL) return 1;
    double along[3], start[3], step[3];
    vec_sub(y2, y1, along);
    for (int k = 0; k < 3; k++) {
        step[k] = along[k] / (num_steps * mu->grid.voxel_mm[k]);
        start[k] = (y1[k] - mu->grid.origin_mm[k]) / mu->grid.voxel_mm[k] + 0.5 * step[k];
    }

    /* Finds the steps that may be inside the image, and one more step on each side. */
    double low = 0, high = (double)num_steps;
    for (int k = 0; k < 3; k++) {
        if (step[k] == 0) continue;
        const double a = (-1 - start[k]) / step[k], b = (mu->grid.size[k] - start[k]) / step[k];
        low = fmax(low, fmin(a, b) - 1);
        high = fmin(high, fmax(a, b) + 2);
    }
    const int64_t begin = low < high ? (int64_t)low : 0, end = low < high ? (int64_t)high : 0;
    double sum = 0;
    for (int64_t n = begin; n < end; n++) {
        double at[3];
        vec_add_scaled(start, (double)n, step, at);
        sum += interpolate(mu, at);
    }
    return exp(-vec_length(along) / num_steps * sum);
}
