/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Exact mode: the solid angle of the part of each primary face seen through each secondary face.
 * docs/method/correspondence.md, "Exact mode". */
#ifndef LR_CPU_EXACT_H
#define LR_CPU_EXACT_H

#include "cpu/polygon.h"
#include "cpu/scene.h"
#include "model/lors/elements.h"

/* What hides part of a pair of modules. */
struct lr_cpu_blocker {
    struct lr_cpu_polygon outline; /* on the primary's plane, counter-clockwise */
    struct lr_cpu_rectangle box;   /* around it */
};

/* Working memory of one worker. */
struct lr_cpu_exact {
    struct lr_cpu_projected *corners; /* secondary face corners: [2 nv][2 nu] of the largest */
    struct lr_cpu_blocker *blockers;  /* [num_blockers], capacity 2 num_modules */
    int num_blockers;
};

lr_status lr_cpu_exact_init(struct lr_cpu_exact *exact, const struct lr_cpu_scene *scene);
void lr_cpu_exact_finish(struct lr_cpu_exact *exact);

/* Adds what the placed view's point gives to each LOR in coincidence. */
lr_status lr_cpu_exact_elements(struct lr_cpu_view *view, struct lr_cpu_exact *exact, struct lr_elements *elements);

/* What the point gives to the LOR of two crystals of different modules, in coincidence or not. The view
 * is placed; where no module can hide another, for these two modules is enough. */
double lr_cpu_exact_element(struct lr_cpu_view *view, struct lr_cpu_exact *exact,
                            const struct lr_cpu_crystal crystals[2]);

#endif
