/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/camera.h"

#include "base/units.h"

#include <cglm/cglm.h>
#include <math.h>
#include <string.h>

static const double view_deg = 30.0; /* vertical angle of view */

void camera_fit(struct camera *camera, double reach_mm, double aspect)
{
    const double narrow = aspect < 1.0 ? aspect : 1.0;
    *camera = (struct camera){.distance_mm = 1.08 * reach_mm / sin(atan(narrow * tan(0.5 * view_deg * LR_DEGREE))),
                              .turn_deg = -60.0,
                              .height_deg = 20.0,
                              .reach_mm = reach_mm};
}

void camera_orbit(struct camera *camera, double right, double down)
{
    camera->turn_deg = remainder(camera->turn_deg - 180.0 * right, 360.0);
    camera->height_deg = fmin(fmax(camera->height_deg + 180.0 * down, -89.9), 89.9);
}

void camera_pan(struct camera *camera, double right, double down)
{
    struct camera_view view;
    camera_view(camera, 1.0, &view);
    const double size_mm = 2.0 * view.tangent * camera->distance_mm;
    for (int k = 0; k < 3; k++) {
        camera->at_mm[k] += size_mm * (down * (double)view.up[k] - right * (double)view.right[k]);
        camera->at_mm[k] = fmin(fmax(camera->at_mm[k], -10.0 * camera->reach_mm), 10.0 * camera->reach_mm);
    }
}

void camera_zoom(struct camera *camera, double steps)
{
    const double distance = camera->distance_mm * pow(0.9, steps);
    camera->distance_mm = fmin(fmax(distance, 0.02 * camera->reach_mm), 40.0 * camera->reach_mm);
}

void camera_along(struct camera *camera, int axis)
{
    camera->turn_deg = axis == 0 ? 0.0 : -90.0;
    camera->height_deg = axis == 2 ? 89.9 : 0.0;
}

void camera_view(const struct camera *camera, double aspect, struct camera_view *view)
{
    const double turn = LR_DEGREE * camera->turn_deg, height = LR_DEGREE * camera->height_deg;
    const double way[3] = {cos(height) * cos(turn), cos(height) * sin(turn), sin(height)};
    vec3 eye, at, up = {0.0f, 0.0f, 1.0f};
    mat4 world, clip, both;
    for (int k = 0; k < 3; k++) {
        at[k] = (float)camera->at_mm[k];
        eye[k] = (float)(camera->at_mm[k] + camera->distance_mm * way[k]);
    }
    glm_lookat(eye, at, up, world);
    const double far = camera->distance_mm + 12.0 * camera->reach_mm;
    const double near = fmax(camera->distance_mm - 4.0 * camera->reach_mm, 2e-4 * far);
    glm_perspective((float)(view_deg * LR_DEGREE), (float)aspect, (float)near, (float)far, clip);
    glm_mat4_mul(clip, world, both);
    memcpy(view->clip_of_world, both, sizeof(view->clip_of_world));
    for (int k = 0; k < 3; k++) {
        view->eye_mm[k] = eye[k];
        view->right[k] = world[k][0];
        view->up[k] = world[k][1];
        view->forward[k] = -world[k][2];
    }
    view->tangent = tan(0.5 * view_deg * LR_DEGREE);
    view->aspect = aspect;
}

void camera_ray(const struct camera_view *view, const double place[2], double direction[3])
{
    const double x = (2.0 * place[0] - 1.0) * view->tangent * view->aspect;
    const double y = (1.0 - 2.0 * place[1]) * view->tangent;
    for (int k = 0; k < 3; k++)
        direction[k] = (double)view->forward[k] + x * (double)view->right[k] + y * (double)view->up[k];
}

bool camera_project(const struct camera_view *view, const double point_mm[3], double place[2])
{
    double right = 0.0, up = 0.0, depth = 0.0;
    for (int k = 0; k < 3; k++) {
        const double way = point_mm[k] - (double)view->eye_mm[k];
        right += way * (double)view->right[k];
        up += way * (double)view->up[k];
        depth += way * (double)view->forward[k];
    }
    if (depth <= 0.0) return false;
    place[0] = 0.5 + 0.5 * right / (depth * view->tangent * view->aspect);
    place[1] = 0.5 - 0.5 * up / (depth * view->tangent);
    return true;
}

/* --- panes --- */

void flat_camera(const struct flat_view *flat, struct camera_view *view)
{
    *view = (struct camera_view){.clip_of_world = {[15] = 1.0f}};
    for (int k = 0; k < 2; k++) {
        const int axis = lr_slice_axes[flat->axis][k];
        const double scale = (k == 0 ? -2.0 : 2.0) / (flat->pixel_mm * flat->size[k]);
        view->clip_of_world[4 * axis + k] = (float)scale;
        view->clip_of_world[12 + k] = (float)(-scale * flat->middle_mm[axis]);
    }
}

void flat_point(const struct flat_view *flat, const double place[2], double depth_mm, double point_mm[3])
{
    point_mm[flat->axis] = depth_mm;
    for (int k = 0; k < 2; k++) {
        const int axis = lr_slice_axes[flat->axis][k];
        point_mm[axis] = flat->middle_mm[axis] + (0.5 * flat->size[k] - place[k]) * flat->pixel_mm;
    }
}

void flat_place(const struct flat_view *flat, const double point_mm[3], double place[2])
{
    for (int k = 0; k < 2; k++) {
        const int axis = lr_slice_axes[flat->axis][k];
        place[k] = 0.5 * flat->size[k] - (point_mm[axis] - flat->middle_mm[axis]) / flat->pixel_mm;
    }
}

/* --- rays --- */

struct pick_hit pick_module(const lr_scanner *scanner, const struct pick_ray *ray)
{
    struct pick_hit nearest = {.module = -1, .share = HUGE_VAL};
    for (int m = 0; scanner != NULL && m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const int *crystals = module->crystals;
        struct pick_hit hit = {.module = m};
        double depth = 0.0, approach = 0.0, on_face[2] = {0.0, 0.0}; /* on_face: mm along u and v */
        for (int k = 0; k < 3; k++) {
            depth += (module->centre_mm[k] - ray->from_mm[k]) * module->normal[k];
            approach += ray->direction[k] * module->normal[k];
        }
        if (depth >= 0.0 || approach >= 0.0) continue; /* only front sides are hit */
        hit.share = depth / approach;
        for (int k = 0; k < 3; k++) {
            hit.point_mm[k] = ray->from_mm[k] + hit.share * ray->direction[k];
            const double from_centre = hit.point_mm[k] - module->centre_mm[k];
            on_face[0] += from_centre * module->u[k];
            on_face[1] += from_centre * module->v[k];
        }
        bool is_hit = true;
        for (int k = 0; k < 2; k++) {
            const double pitch = module->pitch_mm[k], cell = floor(on_face[k] / pitch + 0.5 * crystals[k]);
            const double middle = (cell + 0.5 - 0.5 * crystals[k]) * pitch;
            const bool is_on_crystal =
                cell >= 0.0 && cell < crystals[k] && fabs(on_face[k] - middle) <= 0.5 * module->face_mm[k];
            hit.crystal[k] = is_on_crystal ? (int)cell : -1;
            is_hit = is_hit && 2.0 * fabs(on_face[k]) <= crystals[k] * pitch;
        }
        if (is_hit && hit.share < nearest.share) nearest = hit;
    }
    return nearest;
}

double pick_index(const lr_grid *grid, int axis, double at_mm)
{
    return floor((at_mm - grid->origin_mm[axis]) / grid->voxel_mm[axis] + 0.5);
}

bool pick_voxel(const lr_grid *grid, const double point_mm[3], int voxel[3])
{
    for (int k = 0; k < 3; k++) {
        const double place = pick_index(grid, k, point_mm[k]);
        if (!(place >= 0.0 && place < grid->size[k])) return false;
        voxel[k] = (int)place;
    }
    return true;
}

bool pick_slice(const lr_grid *grid, const struct pick_ray *ray, int axis, double at_mm, double point_mm[3])
{
    int voxel[3];
    if (fabs(ray->direction[axis]) < 1e-12) return false;
    const double share = (at_mm - ray->from_mm[axis]) / ray->direction[axis];
    for (int k = 0; k < 3; k++) point_mm[k] = k == axis ? at_mm : ray->from_mm[k] + share * ray->direction[k];
    return share > 0.0 && pick_voxel(grid, point_mm, voxel);
}
