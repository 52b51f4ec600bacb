/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Three methods to compute the elements of a sample point, each with the working memory of one worker. All add the
 * element of the placed view's point and each LOR in coincidence. errors: LR_FAILED, out of memory, logged; if init
 * failed, finish is not needed. */
#ifndef LR_CORRESPONDENCE_CPU_ELEMENTS_H
#define LR_CORRESPONDENCE_CPU_ELEMENTS_H

#include "correspondence/cpu/polygon.h"
#include "correspondence/cpu/scene.h"
#include "model/lors/elements.h"

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
