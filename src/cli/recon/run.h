/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A reconstruction. One process or several ranks make an image (scheme.c). After a failure, a run can be resumed from a
 * checkpoint (checkpoint.c). report.c reports progress and results. */
#pragma once

#include "cli/recon/measurement.h"

/* A frame of recon --operator listmode --frames, which makes an image for each interval. Events are read only once, and
 * the sensitivity is computed only once. A frame has the events, delayeds and subsets that a file of its interval would
 * give. */
struct recon_frame {
    char *output;          /* owned */
    lr_iteration *history; /* owned [iterations] */
    int num_done;
    double image_sum;
    lr_image *image; /* owned; used with --frames-in-one; NULL = none */
};

/* The checkpoints of a run. The caller sets the first two members. */
struct recon_checkpoint {
    const struct measurement *measured;
    bool resumes;       /* true if the run is resumed from the file */
    int begun_after;    /* number of iterations that made the initial image */
    int saved;          /* number of iterations at the last checkpoint */
    bool is_lacking;    /* true if the last checkpoint could not be written */
    lr_checkpoint read; /* the checkpoint from which this run is resumed */
    const float *start; /* initial image of the operator, in `read`; NULL = none */
};

/* Writes a checkpoint if one is due after file->iterations. file: the state, without images. images: [count] images of
 * the operator. If `images` is NULL, `file` already has the images of --combine paper, and a checkpoint is always
 * written. Errors become warnings. */
lr_status checkpoint_save(struct recon_checkpoint *checkpoint, lr_checkpoint *file, const lr_vector *const *images,
                          int count);

/* Reads the checkpoint from which the run is resumed; the operator must exist. *iterations becomes the number that is
 * left to do, and *iterations_before the number that has been done. */
lr_status checkpoint_resume(struct recon_checkpoint *checkpoint, int *iterations, int *iterations_before);

/* Finds the frame with which the run begins. The frame's data are not needed yet. frames: [num_intervals] */
lr_status checkpoint_find_frame(const struct recon_checkpoint *checkpoint, const struct recon_frame *frames,
                                int64_t *first);

/* Frees the checkpoint that was read, and resets `start` and `saved`, before the next image begins. */
void checkpoint_forget(struct recon_checkpoint *checkpoint);

/* Numbers about the image of an iteration, in addition to lr_iteration. */
struct recon_step {
    double elapsed_s;   /* time from the beginning of iterations */
    double image_error; /* relative error against the true image; -1 = not known */
    double *weights;    /* owned, for --combine paper: weights of `composition`; NULL = none */
    lr_composition composition;
};

/* A reconstruction. A struct of zeros is valid. The struct must not move. */
struct recon_run {
    struct measurement *measured;
    struct recon_checkpoint checkpoint;
    const lr_progress *progress; /* progress of steps */
    const char *output;
    int iterations, iterations_before; /* iterations: number to do; iterations_before: number that made the initial
                                          image */
    lr_image *image;                   /* the result */
    lr_iteration *history;             /* [iterations] without images */
    struct recon_step *steps;          /* [iterations] in the order of `history`; NULL with frames */
    int num_done;
    double start_s; /* start time of the verb */
    double iterating_s, noting_s;
    lr_traffic traffic; /* traffic from the beginning to the last iteration */
};

/* Makes run->image by the scheme that --combine names. */
lr_status recon_iterate(struct recon_run *run);

/* Lists what can leave out counts in this run besides a grid that is too small, with numbers where they are known.
 * measured: the struct measurement. This is report_causes.list. */
void recon_list_causes(const void *measured, char *text, size_t size);

/* Prints a line that names what the image is corrected for, and what it is not. The data must be open. */
void recon_say_corrections(const struct measurement *measured);

/* Checks the image. It is an error if the image is useless. Warns if the image is not converged, or if its scale is
 * unexpected. */
lr_status recon_check_image(const struct recon_run *run);

/* Writes a PNG with three slices through the centre of the activity. */
lr_status recon_draw(const struct recon_run *run);

/* Prints the result on standard output: one line or, with --json, a JSON object. With --json and frames, prints
   nothing, because recon_report_frames prints the object. */
void recon_report(const struct recon_run *run, bool stopped);

/* Prints a JSON object about all frames on standard output. */
void recon_report_frames(const struct recon_run *run, const struct recon_frame *frames, bool stopped);
