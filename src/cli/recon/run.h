/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One reconstruction in progress: the schemes by which one process, or several ranks, make an image of a measurement
 * (scheme.c); what is needed to go on after the machine has failed (checkpoint.c); and how it is reported
 * (report.c). */
#ifndef LR_CLI_RECON_RUN_H
#define LR_CLI_RECON_RUN_H

#include "cli/recon/measurement.h"

/* recon --operator listmode --frames: an image for each of some intervals. Events are read once, and the sensitivity is
 * computed once; each frame has the events, the delayeds and the subsets that a file of its interval alone would
 * have. */
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

/* Its first two members are set by the caller. */
struct recon_checkpoint {
    const struct measurement *measured;
    bool resumes;       /* from the file, if it is there */
    int begun_after;    /* iterations that made the initial image */
    int saved;          /* iterations when a checkpoint was written last */
    bool is_lacking;    /* the last one that was due could not be written */
    lr_checkpoint read; /* that this run goes on from */
    const float *start; /* in it: the operator's image to begin with; NULL = there is none */
};

/* Writes a checkpoint if one is due after file->iterations. file: what is known of its images alone, without these.
 * images: [count] of the operator; NULL: the file has images of --combine paper, and is always due. What cannot be
 * written is a warning. */
lr_status checkpoint_save(struct recon_checkpoint *checkpoint, lr_checkpoint *file, const lr_vector *const *images,
                          int count);

/* Reads the checkpoint to go on from, once the operator is there. iterations: to make, of which those that are made are
 * taken; iterations_before: those that are made. */
lr_status checkpoint_resume(struct recon_checkpoint *checkpoint, int *iterations, int *iterations_before);

/* Sets *first to the frame to begin with, before its data are there. */
lr_status checkpoint_find_frame(const struct recon_checkpoint *checkpoint, const struct recon_frames *frames,
                                int64_t *first);

/* Ends with one image, and begins with the next. */
void checkpoint_forget(struct recon_checkpoint *checkpoint);

/* More figures of an image than the iteration that made it has. */
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
    const char *output;
    int iterations, iterations_before; /* to make, and those that made the image to start from */
    lr_image *image;                   /* what it becomes */
    lr_iteration *history;             /* [iterations], without images */
    struct recon_step *steps;          /* [iterations], of the same iterations; NULL with frames */
    int num_done;
    double start_s; /* of the verb */
    double iterating_s, noting_s;
    lr_traffic traffic; /* up to the last iteration */
};

/* Makes run->image by the scheme of --combine. */
lr_status recon_iterate(struct recon_run *run);

/* One line about an iteration. */
void recon_report_iteration(struct recon_run *run, const lr_iteration *done);

/* Refuses images of no use, and warns of images that are not finished or of another scale. */
lr_status recon_check_image(const struct recon_run *run);

/* Writes a PNG of three slices through the centre of the image's activity. */
lr_status recon_draw(const struct recon_run *run);

/* Prints a line or a JSON object on standard output; with frames JSON has them all at the end. */
void recon_report(const struct recon_run *run, bool stopped);
void recon_report_frames(const struct recon_run *run, const struct recon_frames *frames, bool stopped);

#endif
