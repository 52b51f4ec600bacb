/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanner, and the modules as a sample point, the eye, sees them: docs/method/correspondence.md, "Matrix element".
 * Millimetres, the scanner's frame, double.
 *
 * Three methods to compute the elements of a sample point, each with the working memory of one worker. All methods add
 * the element of the placed view's point and each LOR in coincidence. errors: LR_FAILED, out of memory, logged; if init
 * failed, finish is not needed. */
#ifndef LR_CORRESPONDENCE_CPU_ELEMENTS_H
#define LR_CORRESPONDENCE_CPU_ELEMENTS_H

#include "correspondence/cpu/polygon.h"
#include "model/lors/elements.h"
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

/* --- sampled mode: lines through the point and rays x rays points of each primary face, followed to the first module
 * on the other side (docs/method/correspondence.md, "First hit"; the paper's section II) --- */

/* Distinct crystals hit by the lines of one primary crystal. */
struct lr_cpu_tally {
    struct lr_cpu_tally_entry {
        struct lr_cpu_crystal crystal;
        double weight;
    } * entries; /* [count], capacity rays * rays * layers */
    int count;
};

/* Adds the element of the placed view's point and each LOR in coincidence. A LOR may occur twice. */
lr_status lr_cpu_trace(struct lr_cpu_view *view, struct lr_cpu_tally *tally, struct lr_elements *elements);

/* The placed view's correspondence image with one primary: see lr_operator_picture. */
void lr_cpu_trace_picture(struct lr_cpu_view *view, int primary, lr_pixel *pixels);

/* --- exact mode: the solid angle of the part of each primary face seen through each secondary face
 * (docs/method/correspondence.md, "Exact mode") --- */

/* The outline of a module that hides part of a pair of modules. */
struct lr_cpu_blocker {
    struct lr_cpu_polygon outline; /* on the primary's plane, counter-clockwise */
    struct lr_cpu_rectangle box;   /* bounding box of the outline */
};

/* Working memory of one worker. */
struct lr_cpu_exact {
    struct lr_cpu_projected *corners; /* secondary face corners: [2 nv][2 nu] of the largest */
    struct lr_cpu_blocker *blockers;  /* [num_blockers], capacity 2 num_modules */
    int num_blockers;
};

lr_status lr_cpu_exact_init(struct lr_cpu_exact *exact, const struct lr_cpu_scene *scene);
void lr_cpu_exact_finish(struct lr_cpu_exact *exact);

/* Adds the element of the placed view's point and each LOR in coincidence. */
lr_status lr_cpu_exact_elements(struct lr_cpu_view *view, struct lr_cpu_exact *exact, struct lr_elements *elements);

/* The element of the placed view's point and the LOR of two crystals of different modules, in coincidence or not. If no
 * module can hide another, it is enough to place the view for these two modules. */
double lr_cpu_exact_element(struct lr_cpu_view *view, struct lr_cpu_exact *exact,
                            const struct lr_cpu_crystal crystals[2]);

/* --- crystal penetration: lines through the point spend a length in each crystal they cross and are stopped along it
 * (docs/method/correspondence.md, "Penetration") --- */

struct lr_cpu_box; /* the space that a module's crystals fill */

/* A crystal that a line crosses, and the probability that the crystal stops the photon. */
struct lr_cpu_crossing {
    struct lr_cpu_crystal crystal;
    double depth, probability; /* attenuation times length */
};

struct lr_cpu_crossings {
    struct lr_cpu_crossing *list; /* [count], in the order in which the photon crosses them */
    int count;
    int64_t capacity;
};

/* A module that lines of a primary may cross, and the entry of the current line. */
struct lr_cpu_candidate {
    int module;
    double entry;
};

/* Working memory of one worker. */
struct lr_cpu_penetration {
    struct lr_cpu_box *boxes;          /* [num_modules], each with the placed view's point in its coordinates */
    struct lr_cpu_candidate *before;   /* modules that may lie in front of the primary */
    struct lr_cpu_candidate *opposite; /* modules on the other side of the point */
    struct lr_cpu_candidate *met;      /* modules of `opposite` that the current line crosses */
    int num_before, num_opposite, num_met;
    int64_t many;                    /* number of elements at which repeats are merged next */
    struct lr_cpu_crossings ends[2]; /* crystals on the current line: in the primary, on the other side */
};

/* errors: LR_USAGE for exact mode; LR_FAILED, out of memory; both logged. Finish is not needed then. */
lr_status lr_cpu_penetration_init(struct lr_cpu_penetration *work, const struct lr_cpu_scene *scene);
void lr_cpu_penetration_finish(struct lr_cpu_penetration *work);

/* Adds the element of the placed view's point and each LOR in coincidence. A LOR may occur many times. elements: the
 * current row's elements; repeats are merged once there are many. errors: LR_FAILED, out of memory, logged. */
lr_status lr_cpu_penetration_elements(struct lr_cpu_view *view, struct lr_cpu_penetration *work,
                                      struct lr_elements *elements);

#endif
