/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon --checkpoint: what is needed to go on after the machine has failed. */
#ifndef LR_CLI_RECON_CHECKPOINT_H
#define LR_CLI_RECON_CHECKPOINT_H

#include "cli/recon/frames.h"

/* Its first two members are set by the caller. */
struct recon_checkpoint {
    const struct measurement *measured;
    bool resumes;       /* from the file, where it is there */
    int begun_after;    /* iterations that made the initial image */
    int saved;          /* iterations when a checkpoint was written last */
    bool is_lacking;    /* the last one that was due could not be written */
    lr_checkpoint read; /* that this run goes on from */
    const float *start; /* in it: the operator's image to begin with; NULL = there is none */
};

/* Writes one if it is due: --combine exact and distributed; and always: paper. What cannot be written is a warning. */
lr_status checkpoint_save_iteration(struct recon_checkpoint *checkpoint, const lr_iteration *done);
lr_status checkpoint_save_state(struct recon_checkpoint *checkpoint, const lr_distributed_state *state);
lr_status checkpoint_save_guesses(struct recon_checkpoint *checkpoint, const lr_guesses *guesses);

/* Reads the one to go on from, once the operator is there. iterations: to make, of which those that are made are
 * taken; iterations_before: those that are made. */
lr_status checkpoint_resume(struct recon_checkpoint *checkpoint, int *iterations, int *iterations_before);

/* Sets *first to the frame to begin with, before its data are there. */
lr_status checkpoint_find_frame(const struct recon_checkpoint *checkpoint, const struct recon_frames *frames,
                                int64_t *first);

/* Ends with one image, and begins with the next. */
void checkpoint_forget(struct recon_checkpoint *checkpoint);

#endif
