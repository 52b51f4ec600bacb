/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystal penetration: lines through a point spend a length in each crystal they cross and are
 * stopped along it. docs/method/correspondence.md, "Penetration". */
#ifndef LR_CPU_PENETRATION_H
#define LR_CPU_PENETRATION_H

#include "cpu/scene.h"
#include "model/lors/elements.h"

struct lr_cpu_box; /* the space that a module's crystals fill */

/* A crystal on a line's way, and the probability that it stops the photon. */
struct lr_cpu_crossing {
    struct lr_cpu_crystal crystal;
    double depth, probability; /* attenuation times length */
};

struct lr_cpu_crossings {
    struct lr_cpu_crossing *list; /* [count], in the order in which the photon meets them */
    int count;
    int64_t capacity;
};

/* A module that lines of a primary may cross, and where the line at hand enters it. */
struct lr_cpu_candidate {
    int module;
    double entry;
};

/* Working memory of one worker. */
struct lr_cpu_penetration {
    struct lr_cpu_box *boxes;          /* [num_modules], with the placed view's point */
    struct lr_cpu_candidate *before;   /* modules that may stand before the primary */
    struct lr_cpu_candidate *opposite; /* modules on the other side of the point */
    struct lr_cpu_candidate *met;      /* those of `opposite` that the line at hand meets */
    int num_before, num_opposite, num_met;
    int64_t many;                    /* elements at which repeats are merged next */
    struct lr_cpu_crossings ends[2]; /* of the line at hand: in the primary, on the other side */
};

/* errors: LR_USAGE for exact mode; LR_FAILED, out of
 * memory; logged. Then nothing needs to be finished. */
lr_status lr_cpu_penetration_init(struct lr_cpu_penetration *work, const struct lr_cpu_scene *scene);
void lr_cpu_penetration_finish(struct lr_cpu_penetration *work);

/* Adds what the placed view's point gives to each LOR in coincidence; a LOR may occur many times.
 * elements: those of the row at hand; repeats among them are merged when they grow many.
 * errors: LR_FAILED, out of memory, logged. */
lr_status lr_cpu_penetration_elements(struct lr_cpu_view *view, struct lr_cpu_penetration *work,
                                      struct lr_elements *elements);

#endif
