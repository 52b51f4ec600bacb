/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanner in the cpu backend, and the modules as a sample point, the eye, sees them: docs/method/correspondence.md,
 * "Matrix element". Millimetres, the scanner's frame, double. */
#ifndef LR_CORRESPONDENCE_CPU_SCENE_H
#define LR_CORRESPONDENCE_CPU_SCENE_H

#include "operator/backend.h"

/* A module's rectangle on the detection plane. Plane coordinates are (u . (y - centre),
 * v . (y - centre)). */
struct lr_cpu_module {
    double centre[3], u[3], v[3], normal[3];
    int crystals[2];
    double pitch[2], face[2];
    double half[2]; /* half sizes of the pitch rectangle */
    double radius;  /* from centre to corner */
    int layer;
};

/* The scanner. Immutable once made; shared by all workers. Pointers in params are borrowed. */
struct lr_cpu_scene {
    struct lr_backend_params params;
    int num_modules;
    struct lr_cpu_module *modules; /* [num_modules] */
    bool may_hide;                 /* lr_modules_may_hide */
    int num_layers;
};

/* One crystal: column at[0] and row at[1] of a module. */
struct lr_cpu_crystal {
    int module, at[2];
};

/* A module that a line through the point and the primary's rectangle may hit. */
struct lr_cpu_sighting {
    int module;
    bool detects; /* the module faces the point and is nearer to it than the primary */
    double low[2],
        high[2]; /* bounding box of its rectangle, projected through the point onto the primary's plane, in plane
                    coordinates; infinite if the rectangle reaches behind the eye */
};

/* A sample point and the modules around it. One per worker. */
struct lr_cpu_view {
    const struct lr_cpu_scene *scene;
    double point[3];
    struct lr_cpu_toward {
        double offset[3]; /* centre - point */
        double distance2;
        double height;                /* normal . (point - centre): > 0 when the module faces the point */
        double foot[2];               /* plane coordinates of the point's foot on the plane */
        double direction[3];          /* unit offset */
        double sine, cosine;          /* sine and cosine of the half angle of the cone around the bounding sphere */
    } * toward;                       /* [num_modules] */
    struct lr_cpu_sighting *opposite; /* [num_opposite], capacity num_modules: on the opposite side of the point from
                                         the primary */
    struct lr_cpu_sighting *before;   /* [num_before], capacity num_modules: of the primary's layer, on its side of the
                                         point, not wholly behind its plane */
    int num_opposite, num_before;
};

/* errors: LR_FAILED, out of memory, logged; finish is not needed then. */
lr_status lr_cpu_scene_init(struct lr_cpu_scene *scene, const struct lr_backend_params *params);
void lr_cpu_scene_finish(struct lr_cpu_scene *scene);

/* Centre of face `index` along an axis (0 = u, 1 = v), in plane coordinates. */
static inline double lr_cpu_face_centre(const struct lr_cpu_module *module, int axis, int index)
{
    return (index - 0.5 * (module->crystals[axis] - 1)) * module->pitch[axis];
}

/* LOR of two crystals of different modules in either order, or -1 if it is not in coincidence. */
int64_t lr_cpu_scene_lor(const struct lr_cpu_scene *scene, const struct lr_cpu_crystal *a,
                         const struct lr_cpu_crystal *b);

lr_status lr_cpu_view_init(struct lr_cpu_view *view, const struct lr_cpu_scene *scene);
void lr_cpu_view_finish(struct lr_cpu_view *view);

/* Puts the eye at a point. The view then has only the two modules of `pair`, or all modules if `pair` is NULL. */
void lr_cpu_view_place(struct lr_cpu_view *view, const double point[3], const int pair[2]);

/* True if module `primary` is the primary of the pair of modules `primary` and `other`. */
bool lr_cpu_view_is_primary(const struct lr_cpu_view *view, int primary, int other);

/* Lists the modules opposite to one primary and in front of it, in ascending order. It lists none if the primary does
 * not face the point. If modules cannot hide each other, it lists only opposite modules that detect. The list is
 * conservative: a listed module may turn out not to be hit. */
void lr_cpu_view_look(struct lr_cpu_view *view, int primary);

/* Probability that neither photon is absorbed between y1 and y2: docs/method/common.md,
 * "Attenuation", with K = num_steps midpoints. mu in 1/mm; NULL gives 1. */
double lr_cpu_absorption(const lr_image *mu, int num_steps, const double y1[3], const double y2[3]);

#endif
