/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * render --compare: sampled against exact elements of one point or voxel and primary module. */
#ifndef LR_CLI_COMPARE_H
#define LR_CLI_COMPARE_H

#include "held_row.h"
#include "shot.h"

enum { COMPARE_MOST_RAYS = 16 };

/* One R. */
struct compare_sampled {
    int rays;
    char backend[32];
    struct held_row row; /* of the module */
    lr_row_error error;  /* of the module's elements */
    lr_row_error all;    /* of the elements of all primaries */
};

/* A comparison under way; zero is valid, compare_finish frees it. */
struct compare {
    struct setup setup; /* its operator is the exact one, its grid the voxel or point */
    bool voxel;         /* whether the grid's voxel is meant, or only its centre */
    int module;         /* -1 = not chosen yet */
    const char *folder;
    struct held_row whole, exact; /* of all primaries, of the module */
    struct compare_sampled sampled[COMPARE_MOST_RAYS];
    int num_sampled;
    lr_pixel *pixels; /* owned [pixel_rays nv][pixel_rays nu]: where the elements lie */
    int pixel_rays;
    struct shot_note note; /* what drew the pixels */
};

/* The verb, from its arguments on. */
lr_status compare_run(struct cli_args *args);

/* Writes the picture and the arrays into the folder. */
lr_status compare_write(struct compare *compare);

/* The table, or its JSON. */
void compare_report(const struct compare *compare);

#endif
