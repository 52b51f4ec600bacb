/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/pick.h"

#include "base/vec.h"

#include <math.h>

static int crystal_at(double place, int count, double pitch, double face)
{
    const double cell = floor(place / pitch + 0.5 * count);
    const double middle = (cell + 0.5 - 0.5 * count) * pitch;
    return cell >= 0.0 && cell < count && fabs(place - middle) <= 0.5 * face ? (int)cell : -1;
}

static bool meets(const lr_module *module, const struct pick_ray *ray, struct pick_hit *hit)
{
    double to_centre[3], on_face[3];
    double depth = 0.0, approach = 0.0, u = 0.0, v = 0.0;
    for (int k = 0; k < 3; k++) {
        to_centre[k] = module->centre_mm[k] - ray->from_mm[k];
        depth += to_centre[k] * module->normal[k];
        approach += ray->way[k] * module->normal[k];
    }
    if (depth >= 0.0 || approach >= 0.0) return false;
    hit->share = depth / approach;
    for (int k = 0; k < 3; k++) {
        hit->point_mm[k] = ray->from_mm[k] + hit->share * ray->way[k];
        on_face[k] = hit->point_mm[k] - module->centre_mm[k];
        u += on_face[k] * module->u[k];
        v += on_face[k] * module->v[k];
    }
    hit->crystal[0] = crystal_at(u, module->crystals[0], module->pitch_mm[0], module->face_mm[0]);
    hit->crystal[1] = crystal_at(v, module->crystals[1], module->pitch_mm[1], module->face_mm[1]);
    return 2.0 * fabs(u) <= module->crystals[0] * module->pitch_mm[0] &&
           2.0 * fabs(v) <= module->crystals[1] * module->pitch_mm[1];
}

struct pick_hit pick_module(const lr_scanner *scanner, const struct pick_ray *ray)
{
    struct pick_hit nearest = {.module = -1, .share = HUGE_VAL};
    for (int m = 0; scanner != NULL && m < scanner->num_modules; m++) {
        struct pick_hit hit = {.module = m};
        if (meets(&scanner->modules[m], ray, &hit) && hit.share < nearest.share) nearest = hit;
    }
    return nearest;
}

bool pick_voxel(const lr_grid *grid, const double point_mm[3], int voxel[3])
{
    for (int k = 0; k < 3; k++) {
        const double place = floor((point_mm[k] - grid->origin_mm[k]) / grid->voxel_mm[k] + 0.5);
        if (!(place >= 0.0 && place < grid->size[k])) return false;
        voxel[k] = (int)place;
    }
    return true;
}

bool pick_slice(const lr_grid *grid, const struct pick_ray *ray, int axis, double at_mm, double point_mm[3])
{
    int voxel[3];
    if (fabs(ray->way[axis]) < 1e-12) return false;
    const double share = (at_mm - ray->from_mm[axis]) / ray->way[axis];
    for (int k = 0; k < 3; k++) point_mm[k] = k == axis ? at_mm : ray->from_mm[k] + share * ray->way[k];
    return share > 0.0 && pick_voxel(grid, point_mm, voxel);
}
