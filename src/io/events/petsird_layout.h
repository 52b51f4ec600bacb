/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A scanner as PETSIRD lays it out: modules sorted into types of equal ones, crystals numbered
 * within their type. */
#ifndef LR_IO_PETSIRD_LAYOUT_H
#define LR_IO_PETSIRD_LAYOUT_H

#include "io/files/output.h"

#include <lr/events.h>

/* Time-of-flight bins of events whose a and b are of two kinds. */
struct lr_petsird_bins {
    float *edges_mm; /* owned [num_edges]; 2 = no time of flight */
    int num_edges;
    double resolution_mm; /* FWHM; 0 = none */
    bool is_given;        /* by the source, so that an event's place is the middle of a bin */
    bool is_mirrored;     /* those of b and a are these mirrored, to 1e-3 mm */
};

/* Kinds are those of the source's crystals (lr_event_kinds); one where they are all alike. */
struct lr_petsird_layout {
    const lr_lors *lors;
    int num_types;
    int *type_of;  /* owned [num_modules] */
    int *index_of; /* owned [num_modules] place of a module within its type */
    int *example;  /* owned [num_types] first module of a type */
    int *count;    /* owned [num_types] modules */
    int *kind_of;  /* owned [num_types] */
    int num_kinds;
    struct lr_petsird_bins *bins; /* owned [num_kinds][num_kinds] */
    double (*energy_kev)[2];      /* owned [num_kinds] */
    int minor;                    /* schema: 9 or 10 */
};

/* errors: LR_USAGE for more than 64 types of modules; LR_BAD_INPUT for a module with crystals of two
 * kinds; LR_FAILED without memory. Finish it in any case. */
lr_status lr_petsird_layout_init(struct lr_petsird_layout *layout, const lr_events_writer_params *params);
void lr_petsird_layout_finish(struct lr_petsird_layout *layout);

/* Bins of two module types of the file. */
const struct lr_petsird_bins *lr_petsird_layout_bins(const struct lr_petsird_layout *layout, int a, int b);

/* Writes magic, version, schema and header. */
void lr_petsird_put_header(const struct lr_petsird_layout *layout, struct lr_output *output);

#endif
