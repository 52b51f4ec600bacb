/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The sum of a sample of LORs, which are projected back as events without time of flight, batch by batch
 * (docs/method/listmode.md, "Sensitivity"). */
#ifndef LR_OPERATOR_LISTMODE_LINES_H
#define LR_OPERATOR_LISTMODE_LINES_H

#include "listmode/events.h"
#include "listmode/region.h"
#include "operator/families.h"

/* LORs stored as events. numbers: the LORs' numbers, if factors are looked up by them; else NULL. */
struct lr_drawn_lines {
    lr_event *events;
    int64_t *numbers;
};

struct lr_line_sum;

/* Lines of one group that are projected together. */
struct lr_line_batch {
    struct lr_line_sum *sum;
    int group;
    int64_t first, end; /* range in the group */
    struct lr_listmode_sample sample;
    bool is_drawn;                /* true if packed has the LORs; false if the device will draw them */
    struct lr_drawn_lines packed; /* [at_once] the LORs, ascending */
    int64_t count;
    struct lr_listmode_events lines;
    lr_status status; /* status of making `lines` */
};

/* A sample of LORs, which are called lines here. Lines are numbered, and consecutive lines are in different groups,
 * which are projected one after the other. The scatter of the groups' sums gives the error. */
struct lr_line_sum {
    struct lr_operator *op;
    struct lr_listmode_family *family;
    const lr_lors *lors;                     /* LORs from which lines are drawn */
    const struct lr_listmode_region *region; /* only lines near it are used; NULL = all lines */
    double reach_mm;                         /* largest distance from the region */
    uint64_t seed;
    int64_t num_lines;
    double stride; /* LORs per line */
    int num_groups;
    bool has_scatter;
    double *total;                   /* [num_voxels] */
    double *group, *squares;         /* [num_voxels] sum of the group; squared sums of groups; NULL without scatter */
    int64_t at_once;                 /* most lines of a batch */
    struct lr_drawn_lines drawn;     /* [at_once] as threads draw them, with gaps */
    struct lr_line_batch batches[2]; /* the current batch and the next one, alternately */
    float *factors;                  /* [at_once] factors of the LORs; NULL = all are 1 */
    lr_vector image;                 /* image in the backend's precision */
    bool by_device;                  /* the device draws LORs, if it has the memory */
};

/* sum: op, family, lors, seed, num_lines, num_groups and has_scatter are filled in. Close it in any case. */
lr_status lr_line_sum_open(struct lr_line_sum *sum);
void lr_line_sum_close(struct lr_line_sum *sum);

/* Projects all lines back. sum->total becomes the sum of all groups, sum->squares the sum of the groups' squares.
 * errors: LR_CANCELLED; errors of backends. */
lr_status lr_line_sum_run(struct lr_line_sum *sum);

/* The variance of a voxel's total, by the scatter of its groups. */
double lr_line_sum_variance(const struct lr_line_sum *sum, int64_t v);

#endif
