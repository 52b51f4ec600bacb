/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sampled mode: lines through a point and rays x rays points of each primary face, followed to the
 * first module on the other side. docs/method/correspondence.md, "First hit"; the paper's section
 * II. */
#ifndef LR_CPU_TRACE_H
#define LR_CPU_TRACE_H

#include "cpu/scene.h"
#include "model/lors/elements.h"

/* Distinct crystals hit by the lines of one primary crystal. */
struct lr_cpu_tally {
    struct lr_cpu_tally_entry {
        struct lr_cpu_crystal crystal;
        double weight;
    } * entries; /* [count], capacity rays * rays * layers */
    int count;
};

lr_status lr_cpu_tally_init(struct lr_cpu_tally *tally, const struct lr_cpu_scene *scene);
void lr_cpu_tally_finish(struct lr_cpu_tally *tally);

/* Adds what the placed view's point gives to each LOR in coincidence; a LOR may occur twice. */
lr_status lr_cpu_trace(struct lr_cpu_view *view, struct lr_cpu_tally *tally, struct lr_elements *elements);

/* The placed view's correspondence image with one primary: see lr_operator_picture. */
void lr_cpu_trace_picture(struct lr_cpu_view *view, int primary, lr_pixel *pixels);

#endif
