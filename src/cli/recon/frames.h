/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon --operator listmode --frames: an image for each of some intervals. Events are read once, and the sensitivity is
 * computed once; each frame has the events, the delayeds and the subsets that a file of its interval alone would
 * have. Here are their names and what came of them. */
#ifndef LR_CLI_RECON_FRAMES_H
#define LR_CLI_RECON_FRAMES_H

#include "cli/recon/measurement.h"

struct recon_frame {
    char *output;          /* owned */
    lr_iteration *history; /* owned [iterations] */
    int num_done;
    double image_sum;
};

/* Zero is valid: there are none. */
struct recon_frames {
    int count;
    struct recon_frame *list; /* owned [count] */
};

/* Refuses images of frames or iterations, whose names follow from -o, that would overwrite what is read. */
lr_status recon_frames_check_names(struct cli_args *args, const struct recon_request *request);

lr_status recon_frames_init(struct recon_frames *frames, const struct measurement *measured);
void recon_frames_finish(struct recon_frames *frames);

#endif
