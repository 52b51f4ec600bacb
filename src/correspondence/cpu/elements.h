/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanner and its modules as seen from a sample point, which is called the eye: docs/method/correspondence.md,
 * "Matrix element". Coordinates are in the scanner's frame, mm, double.
 *
 * There are three methods to compute the elements of a sample point. Each worker has its own working memory for one
 * method. A method computes the elements of one sample point for all LORs in coincidence, and appends them to a list.
 * errors: LR_FAILED, logged, if memory runs out. If init failed, finish is not needed. */
#pragma once

#include "correspondence/cpu/polygon.h"
#include "model/lors/rows.h"
#include "operator/backend.h"

/* The rectangle of a module in the detection plane. A point y of this plane has the plane coordinates (u . (y -
 * centre), v . (y - centre)). */
struct lr_cpu_module {
    double centre[3], u[3], v[3], normal[3];
    int crystals[2];
    double pitch[2], face[2];
    double half[2]; /* half the edges of the rectangle: crystals * pitch / 2 */
    double radius;  /* distance from the centre to a corner */
    int layer;
};

/* The scanner, which does not change after init and is shared by all workers. params: not owned. */
struct lr_cpu_scene {
    struct lr_backend_params params;
    int num_modules;
    struct lr_cpu_module *modules; /* [num_modules] */
    bool may_hide;                 /* the result of lr_modules_may_hide */
    int num_layers;
};

/* One crystal: column at[0] and row at[1] of a module. */
struct lr_cpu_crystal {
    int module, at[2];
};

/* A module that a line through the sample point and the primary's rectangle may hit. */
struct lr_cpu_sighting {
    int module;
    bool detects; /* true if the module faces the point and is nearer to it than the primary */
    double low[2],
        high[2]; /* bounding box, in plane coordinates, of the module's rectangle after projection through the point
                    onto the primary's plane; infinite if a part of the rectangle is behind the eye */
};

/* A sample point and the modules around it. Each worker has one view. */
struct lr_cpu_view {
    const struct lr_cpu_scene *scene;
    double point[3];
    struct lr_cpu_toward {
        double offset[3]; /* centre - point */
        double distance2;
        double height;                /* normal . (point - centre): > 0 if the module faces the point */
        double foot[2];               /* plane coordinates of the point's projection onto the plane */
        double direction[3];          /* unit vector along `offset` */
        double sine, cosine;          /* sine and cosine of half the opening angle of the cone that encloses the
                                         module's bounding sphere */
    } * toward;                       /* [num_modules] */
    struct lr_cpu_sighting *opposite; /* [num_opposite], capacity num_modules: modules that lie beyond the point, as
                                         seen from the primary */
    struct lr_cpu_sighting *before;   /* [num_before], capacity num_modules: modules of the primary's layer, on the same
                                         side of the point, that are at least partly in front of the primary's plane */
    int num_opposite, num_before;
};

/* Prepares the scanner's modules. errors: LR_FAILED, logged, if memory runs out; finish is not needed then. */
lr_status lr_cpu_scene_init(struct lr_cpu_scene *scene, const struct lr_backend_params *params);
void lr_cpu_scene_finish(struct lr_cpu_scene *scene);

/* The centre of face `index` along an axis (0 = u, 1 = v), in plane coordinates. */
static inline double lr_cpu_face_centre(const struct lr_cpu_module *module, int axis, int index)
{
    return (index - 0.5 * (module->crystals[axis] - 1)) * module->pitch[axis];
}

/* Returns the LOR of two crystals of different modules, in either order; -1 if the crystals are not in coincidence. */
int64_t lr_cpu_scene_lor(const struct lr_cpu_scene *scene, const struct lr_cpu_crystal *a,
                         const struct lr_cpu_crystal *b);

lr_status lr_cpu_view_init(struct lr_cpu_view *view, const struct lr_cpu_scene *scene);
void lr_cpu_view_finish(struct lr_cpu_view *view);

/* Places the eye at a point. pair: the view has only these two modules; NULL = the view has all modules. */
void lr_cpu_view_place(struct lr_cpu_view *view, const double point[3], const int pair[2]);

/* Returns true if `primary` is the primary of the two modules `primary` and `other`. */
bool lr_cpu_view_is_primary(const struct lr_cpu_view *view, int primary, int other);

/* Lists, in ascending order, the modules opposite to a primary and those in front of it. Both lists are empty if the
 * primary does not face the point. If modules cannot hide each other, only opposite modules that detect are listed. The
 * lists can contain modules that no line hits. */
void lr_cpu_view_look(struct lr_cpu_view *view, int primary);

/* Returns the probability that no photon of the pair is absorbed between y1 and y2: docs/method/common.md,
 * "Attenuation", with K = num_steps midpoints. mu: 1/mm; NULL = the probability is 1. */
double lr_cpu_absorption(const lr_image *mu, int num_steps, const double y1[3], const double y2[3]);

/* --- sampled mode: lines through the point and through rays x rays points of each primary face are followed to the
 * first module on the other side (docs/method/correspondence.md, "First hit"; the paper's section II) --- */

/* The crystals that the lines of one primary crystal hit, each listed once. */
struct lr_cpu_tally {
    struct lr_cpu_tally_entry {
        struct lr_cpu_crystal crystal;
        double weight;
    } * entries; /* [count], capacity rays * rays * layers */
    int count;
};

/* Adds the elements of the view's point for all LORs in coincidence. A LOR can be added twice. */
lr_status lr_cpu_trace(struct lr_cpu_view *view, struct lr_cpu_tally *tally, struct lr_elements *elements);

/* Makes the correspondence image of the view's point with one primary: see lr_operator_picture. */
void lr_cpu_trace_picture(struct lr_cpu_view *view, int primary, lr_pixel *pixels);

/* --- exact mode: the solid angle of the part of each primary face that is seen through each secondary face
 * (docs/method/correspondence.md, "Exact mode") --- */

/* The outline of a module that hides a part of the primary or of the secondary. */
struct lr_cpu_blocker {
    struct lr_cpu_polygon outline; /* on the primary's plane, counter-clockwise */
    struct lr_cpu_rectangle box;   /* bounding box of the outline */
};

/* Working memory of one worker. */
struct lr_cpu_exact {
    struct lr_cpu_projected *corners; /* corners of the secondary's faces: [2 nv][2 nu] of the largest module */
    struct lr_cpu_blocker *blockers;  /* [num_blockers], capacity 2 num_modules */
    int num_blockers;
};

lr_status lr_cpu_exact_init(struct lr_cpu_exact *exact, const struct lr_cpu_scene *scene);
void lr_cpu_exact_finish(struct lr_cpu_exact *exact);

/* Adds the elements of the view's point for all LORs in coincidence. */
lr_status lr_cpu_exact_elements(struct lr_cpu_view *view, struct lr_cpu_exact *exact, struct lr_elements *elements);

/* Returns the element of the view's point for the LOR of two crystals of different modules, even if they are not in
 * coincidence. If no module can hide another, the view needs only these two modules. */
double lr_cpu_exact_element(struct lr_cpu_view *view, struct lr_cpu_exact *exact,
                            const struct lr_cpu_crystal crystals[2]);

/* --- crystal penetration: a photon can be stopped anywhere along its path through a crystal
 * (docs/method/correspondence.md, "Penetration") --- */

struct lr_cpu_box; /* the box that a module's crystals fill */

/* A crystal that a line crosses, and the probability that the crystal stops the photon. */
struct lr_cpu_crossing {
    struct lr_cpu_crystal crystal;
    double depth, probability; /* depth: attenuation times length */
};

struct lr_cpu_crossings {
    struct lr_cpu_crossing *list; /* [count], in the order in which the photon crosses them */
    int count;
    int64_t capacity;
};

/* A module that lines of a primary may cross, and where the current line enters it. */
struct lr_cpu_candidate {
    int module;
    double entry;
};

/* Working memory of one worker. */
struct lr_cpu_penetration {
    struct lr_cpu_box *boxes;          /* [num_modules], each with the view's point in the coordinates of the box */
    struct lr_cpu_candidate *before;   /* modules that may be in front of the primary */
    struct lr_cpu_candidate *opposite; /* modules on the other side of the point */
    struct lr_cpu_candidate *met;      /* modules of `opposite` that the current line crosses */
    int num_before, num_opposite, num_met;
    int64_t many;                    /* number of elements above which repeated LORs are merged */
    struct lr_cpu_crossings ends[2]; /* crystals on the current line: ends[0] in the primary, ends[1] beyond the
                                        point */
};

/* errors: LR_USAGE for exact mode; LR_FAILED if memory runs out. Both are logged. Finish is not needed after an
 * error. */
lr_status lr_cpu_penetration_init(struct lr_cpu_penetration *work, const struct lr_cpu_scene *scene);
void lr_cpu_penetration_finish(struct lr_cpu_penetration *work);

/* Adds the elements of the view's point for all LORs in coincidence. elements: the list of the current row. A LOR can
 * be added many times; repeated LORs are merged when the list is long. errors: LR_FAILED, logged, if memory runs
 * out. */
lr_status lr_cpu_penetration_elements(struct lr_cpu_view *view, struct lr_cpu_penetration *work,
                                      struct lr_elements *elements);
