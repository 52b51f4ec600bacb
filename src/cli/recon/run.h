/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One reconstruction in progress. One process or several ranks make an image (scheme.c). Checkpoints allow a run to
 * resume after a failure (checkpoint.c). report.c reports progress and results. */
#ifndef LR_CLI_RECON_RUN_H
#define LR_CLI_RECON_RUN_H

#include "cli/recon/measurement.h"

/* A frame of recon --operator listmode --frames, which makes one image for each interval. Events are read once, and the
 * sensitivity is computed once. A frame has the same events, delayeds and subsets as a file that covers only its
 * interval. */
struct recon_frame {
    char *output;          /* owned */
    lr_iteration *history; /* owned [iterations] */
    int num_done;
    double image_sum;
    lr_image *image; /* owned; --frames-in-one; NULL = none */
};

/* The checkpoints of a run. The caller sets the first two members. */
struct recon_checkpoint {
    const struct measurement *measured;
    bool resumes;       /* the run resumes from the file */
    int begun_after;    /* iterations that made the initial image */
    int saved;          /* number of iterations when the last checkpoint was written */
    bool is_lacking;    /* the last checkpoint that was due could not be written */
    lr_checkpoint read; /* the checkpoint that this run resumes from */
    const float *start; /* points into `read`: the operator's initial image; NULL = none */
};

/* Writes a checkpoint if one is due after file->iterations. file: the state without the images. images: [count] images
 * of the operator; if NULL, `file` already has the images of --combine paper, and is always written. A write error is
 * only a warning. */
lr_status checkpoint_save(struct recon_checkpoint *checkpoint, lr_checkpoint *file, const lr_vector *const *images,
                          int count);

/* Reads the checkpoint to resume from; the operator must exist. Subtracts the iterations that have been made from
 * *iterations, and sets *iterations_before to their number. */
lr_status checkpoint_resume(struct recon_checkpoint *checkpoint, int *iterations, int *iterations_before);

/* Sets *first to the frame to begin with; the frame's data are not needed yet. frames: [num_intervals] */
lr_status checkpoint_find_frame(const struct recon_checkpoint *checkpoint, const struct recon_frame *frames,
                                int64_t *first);

/* Ends the checkpoints of one image, so that the next image can begin. */
void checkpoint_forget(struct recon_checkpoint *checkpoint);

/* Figures of an iteration's image that lr_iteration lacks. */
struct recon_step {
    double elapsed_s;   /* time since iterations began */
    double image_error; /* error relative to the truth; -1 = not known */
    double *weights;    /* owned; --combine paper: `composition` points to it; NULL = none */
    lr_composition composition;
};

/* A reconstruction in progress. Zero is valid. It must not move. */
struct recon_run {
    struct measurement *measured;
    struct recon_checkpoint checkpoint;
    const lr_progress *progress; /* progress of steps */
    const char *output;
    int iterations, iterations_before; /* iterations: number to make; iterations_before: number that made the initial
                                          image */
    lr_image *image;                   /* the result */
    lr_iteration *history;             /* [iterations], without images */
    struct recon_step *steps;          /* [iterations], in the same order; NULL with frames */
    int num_done;
    double start_s; /* start time of the verb */
    double iterating_s, noting_s;
    lr_traffic traffic; /* traffic up to the last iteration */
};

/* Makes run->image by the scheme that --combine names. */
lr_status recon_iterate(struct recon_run *run);

/* Refuses useless images; warns of images that are not converged or have an unexpected scale. */
lr_status recon_check_image(const struct recon_run *run);

/* Writes a PNG of three slices through the centre of the image's activity. */
lr_status recon_draw(const struct recon_run *run);

/* Prints the result on standard output: a line or, without frames, a JSON object. */
void recon_report(const struct recon_run *run, bool stopped);

/* Prints a JSON object on standard output that describes all frames. */
void recon_report_frames(const struct recon_run *run, const struct recon_frame *frames, bool stopped);

#endif
