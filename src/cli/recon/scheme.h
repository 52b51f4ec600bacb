/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One reconstruction in progress: the schemes by which one process, or several ranks, make an image of a measurement;
 * and how far images are from the truth, where that is known. */
#ifndef LR_CLI_RECON_SCHEME_H
#define LR_CLI_RECON_SCHEME_H

#include "cli/recon/checkpoint.h"

/* Figures of an image beside those of the iteration that made it. */
struct recon_step {
    double elapsed_s;   /* since iterations began */
    double image_error; /* from the truth; -1 = not known */
    double *weights;    /* owned; of --combine paper: what composition points to. NULL = none */
    lr_composition composition;
};

/* Zero is valid. Must not move. */
struct recon_run {
    struct measurement *measured;
    struct recon_checkpoint checkpoint;
    const lr_progress *progress; /* of steps */
    void (*say)(struct recon_run *run, const lr_iteration *done);
    const char *output;
    int iterations, iterations_before; /* to make, and those that made the image to start from */
    lr_image *image;                   /* what it becomes */
    lr_iteration *history;             /* [iterations], without images */
    struct recon_step *steps;          /* [iterations] beside history; NULL with frames */
    int num_done;
    double start_s; /* of the verb */
    double iterating_s, noting_s;
    lr_traffic traffic; /* up to the last iteration */
};

/* Makes run->image by the scheme of --combine. */
lr_status recon_iterate(struct recon_run *run);

#endif
