/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/plan_hiding.h"

#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

/* Modules that only touch, or lie in a plane with the point, hide nothing: relative to lengths. */
static const double touching = 1e-9;

/* A module's rectangle from the point: the pyramid of the rays that meet it. */
struct view {
    double corners[4][3]; /* from the point */
    double sides[4][3];   /* unit normals of the planes through the point and an edge, inwards */
    double towards[3];    /* unit, to the centre */
    double sine, cosine;  /* of the angle under which the sphere around the rectangle is seen */
    double height;        /* n . (w - c) */
    double reach;         /* to the farthest corner */
    bool inside;          /* the point lies within the sphere */
    bool flat;            /* the point lies in the rectangle's plane: no line meets it */
};

struct lr_plan_hiding {
    const lr_scanner *scanner;
    int num_words;
    struct view *views;      /* [num_modules] */
    uint64_t *hiders;        /* [num_modules][num_words] */
    uint64_t *candidates;    /* [num_modules][num_words]: which others a module may hide from points
                             that it faces, as they stand partly behind its plane */
    double (*corners)[4][3]; /* [num_modules], in the scanner's frame */
};

static void set_bit(uint64_t *words, int bit)
{
    words[bit / 64] |= (uint64_t)1 << bit % 64;
}

static bool get_bit(const uint64_t *words, int bit)
{
    return (words[bit / 64] >> bit % 64 & 1) != 0;
}

static void find_corners(const lr_scanner *scanner, int index, double corners[4][3])
{
    const lr_module *module = &scanner->modules[index];
    double centre[3];
    lr_scanner_detection_centre(scanner, index, centre);
    for (int k = 0; k < 4; k++) {
        const double a = (k == 1 || k == 2 ? 0.5 : -0.5) * module->crystals[0];
        const double b = (k >= 2 ? 0.5 : -0.5) * module->crystals[1];
        vec_add_scaled(centre, a * module->pitch_mm[0], module->u, corners[k]);
        vec_add_scaled(corners[k], b * module->pitch_mm[1], module->v, corners[k]);
    }
}

/* Whether some corner of `other` is farther than touching along a direction from a corner of
 * `module`'s rectangle. */
static bool reaches(const struct lr_plan_hiding *hiding, int module, int other, double sign)
{
    const lr_module *plane = &hiding->scanner->modules[module];
    for (int k = 0; k < 4; k++) {
        double offset[3];
        vec_sub(hiding->corners[other][k], hiding->corners[module][0], offset);
        if (sign * vec_dot(plane->normal, offset) > touching * vec_length(offset)) return true;
    }
    return false;
}

static void find_candidates(struct lr_plan_hiding *hiding)
{
    const int num_modules = hiding->scanner->num_modules;
    for (int k = 0; k < num_modules; k++) {
        for (int a = 0; a < num_modules; a++)
            if (a != k && reaches(hiding, k, a, -1.0)) set_bit(&hiding->candidates[(int64_t)k * hiding->num_words], a);
    }
}

struct lr_plan_hiding *lr_plan_hiding_create(const lr_scanner *scanner, const lr_log *log)
{
    const int64_t num_modules = scanner->num_modules;
    struct lr_plan_hiding *hiding = lr_alloc(1, sizeof(*hiding), "modules that hide others", log);
    if (hiding == NULL) return NULL;
    hiding->scanner = scanner;
    hiding->num_words = (int)((num_modules + 63) / 64);
    const int64_t words = num_modules * hiding->num_words;
    hiding->views = lr_alloc(num_modules, sizeof(*hiding->views), "views of modules", log);
    hiding->corners = lr_alloc(num_modules, sizeof(*hiding->corners), "corners of modules", log);
    hiding->hiders = lr_alloc(words, sizeof(uint64_t), "modules that hide others", log);
    hiding->candidates = lr_alloc(words, sizeof(uint64_t), "modules that hide others", log);
    if (!hiding->views || !hiding->corners || !hiding->hiders || !hiding->candidates) {
        lr_plan_hiding_destroy(hiding);
        return NULL;
    }
    for (int m = 0; m < num_modules; m++) find_corners(scanner, m, hiding->corners[m]);
    find_candidates(hiding);
    return hiding;
}

void lr_plan_hiding_destroy(struct lr_plan_hiding *hiding)
{
    if (hiding == NULL) return;
    free(hiding->views);
    free(hiding->corners);
    free(hiding->hiders);
    free(hiding->candidates);
    free(hiding);
}

/* A side whose edge points at the point keeps no ray out: its normal is 0. */
static void find_sides(struct view *view, const double middle[3])
{
    for (int k = 0; k < 4; k++) {
        double *side = view->sides[k];
        const double *from = view->corners[k], *to = view->corners[(k + 1) % 4];
        vec_cross(from, to, side);
        const double length = vec_length(side);
        double factor = length > touching * vec_length(from) * vec_length(to) ? 1.0 / length : 0.0;
        factor = vec_dot(side, middle) < 0.0 ? -factor : factor;
        for (int axis = 0; axis < 3; axis++) side[axis] *= factor;
    }
}

static void see(const struct lr_plan_hiding *hiding, int module, const double point_mm[3], struct view *view)
{
    double middle[3] = {0, 0, 0}, radius = 0.0;
    *view = (struct view){0};
    for (int k = 0; k < 4; k++) {
        vec_sub(hiding->corners[module][k], point_mm, view->corners[k]);
        vec_add_scaled(middle, 0.25, view->corners[k], middle);
        view->reach = fmax(view->reach, vec_length(view->corners[k]));
    }
    for (int k = 0; k < 4; k++) {
        double arm[3];
        vec_sub(view->corners[k], middle, arm);
        radius = fmax(radius, vec_length(arm));
    }
    const double distance = vec_length(middle);
    view->height = -vec_dot(hiding->scanner->modules[module].normal, middle);
    view->flat = fabs(view->height) <= touching * view->reach;
    view->inside = distance <= radius;
    if (!view->inside) {
        view->sine = radius / distance;
        view->cosine = sqrt(1.0 - view->sine * view->sine);
        vec_add_scaled(view->towards, 1.0 / distance, middle, view->towards);
    }
    find_sides(view, middle);
}

static bool spheres_share_ray(const struct view *a, const struct view *b, double mirror)
{
    return a->inside || b->inside ||
           mirror * vec_dot(a->towards, b->towards) >= a->cosine * b->cosine - a->sine * b->sine - touching;
}

/* Whether all of b lies outside of one side of a's pyramid. */
static bool side_parts(const struct view *a, const struct view *b, double mirror)
{
    for (int side = 0; side < 4; side++) {
        double most = -INFINITY;
        for (int k = 0; k < 4; k++) most = fmax(most, mirror * vec_dot(a->sides[side], b->corners[k]));
        if (vec_dot(a->sides[side], a->sides[side]) > 0.5 && most <= touching * b->reach) return true;
    }
    return false;
}

/* mirror -1: b seen through the point. */
static bool share_ray(const struct view *a, const struct view *b, double mirror)
{
    return !a->flat && !b->flat && spheres_share_ray(a, b, mirror) && !side_parts(a, b, mirror) &&
           !side_parts(b, a, mirror);
}

/* Where k hides a, a part of k lies on the point's side of a's plane, and one of a beyond k's; and
 * both are of one layer. */
static bool may_hide(const struct lr_plan_hiding *hiding, int k, int a)
{
    const struct view *near = &hiding->views[k], *far = &hiding->views[a];
    return hiding->scanner->modules[k].layer == hiding->scanner->modules[a].layer && share_ray(near, far, 1.0) &&
           reaches(hiding, a, k, far->height > 0.0 ? 1.0 : -1.0) &&
           reaches(hiding, k, a, near->height > 0.0 ? -1.0 : 1.0);
}

void lr_plan_hiding_look(struct lr_plan_hiding *hiding, const double point_mm[3])
{
    const int num_modules = hiding->scanner->num_modules, num_words = hiding->num_words;
    memset(hiding->hiders, 0, (size_t)num_modules * (size_t)num_words * sizeof(uint64_t));
    for (int m = 0; m < num_modules; m++) see(hiding, m, point_mm, &hiding->views[m]);
    for (int k = 0; k < num_modules; k++) {
        const uint64_t *candidates = &hiding->candidates[(int64_t)k * num_words];
        const bool facing = hiding->views[k].height > 0.0;
        for (int a = 0; a < num_modules; a++) {
            if (facing && a % 64 == 0 && candidates[a / 64] == 0) {
                a += 63;
                continue;
            }
            if (a != k && (!facing || get_bit(candidates, a)) && may_hide(hiding, k, a))
                set_bit(&hiding->hiders[(int64_t)a * num_words], k);
        }
    }
}

const uint64_t *lr_plan_hiders(const struct lr_plan_hiding *hiding, int module)
{
    return &hiding->hiders[(int64_t)module * hiding->num_words];
}

int lr_plan_hiding_words(const struct lr_plan_hiding *hiding)
{
    return hiding->num_words;
}

bool lr_plan_opposite(const struct lr_plan_hiding *hiding, int a, int b)
{
    return share_ray(&hiding->views[a], &hiding->views[b], -1.0);
}
