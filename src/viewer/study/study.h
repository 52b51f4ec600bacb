/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What is open: a scanner and what goes with it. Opening runs beside the window and replaces the
 * old content only when all of it has succeeded. */
#ifndef LR_VIEWER_STUDY_H
#define LR_VIEWER_STUDY_H

#include "viewer/frame/job.h"

#include <lr/lr.h>

/* A part of what is open, which several threads read and the last of them frees. */
struct opened;

/* One holder more, and one less. NULL is allowed. Any thread. */
struct opened *opened_hold(struct opened *opened); /* returns it */
void opened_release(struct opened *opened);

enum study_part { PART_SCANNER = 0, PART_DIAGNOSIS, PART_IMAGE, PART_MU, PART_DATA, NUM_PARTS };

/* --- the study --- */

/* A snapshot of what is open: it never changes, and stays alive until it is released, whatever the
 * study does meanwhile. NULL and 0 = not there. The fields after `grid` are read as they are; the
 * `held` ones are for the functions below. */
struct study_view {
    int64_t serial; /* grows with every change of the study; 0 = nothing has been opened */
    lr_grid grid;   /* the image's; else the one chosen; else a default; size 0 without scanner */
    const lr_scanner *scanner;
    const lr_lors *lors;
    const lr_diagnosis *diagnosis;                               /* of the scanner, with the grid */
    const lr_image *image;                                       /* activity */
    const lr_image *mu;                                          /* 1/mm */
    double image_largest, mu_largest;                            /* values; 0 without */
    const lr_lor_data *data;                                     /* prompts, or what was simulated */
    const lr_lor_data *delayeds;                                 /* of list mode that has them */
    int num_frames;                                              /* volumes of the image's file; 0 without */
    bool data_are_events;                                        /* the data's file is list mode */
    const char *scanner_path, *image_path, *mu_path, *data_path; /* as they were opened */
    struct opened *held[NUM_PARTS];
};

struct study;

/* errors: NULL, out of memory. */
struct study *study_create(const lr_log *log);

/* Cancels what is being opened. Views that are held stay alive. NULL is allowed. */
void study_destroy(struct study *study);

/* A wish to open files; NULL leaves what there is, but a new scanner closes the data of the old one.
 * Texts are copied. */
struct study_wish {
    const char *scanner; /* preset, or a file of any format that lr_scanner_read takes */
    const char *image;   /* lr_image_read; .npy lies on the grid */
    const char *mu;      /* the same; above 0.05 it is taken as 1/cm, as elsewhere in LORaster */
    const char *data;    /* LOR data, or list mode; without a scanner, also the scanner of an HDF5
                            or PETSIRD file */
    const lr_grid *grid; /* where the image does not say */
};

/* Begins to open. What is still being opened is cancelled where the new wish names all that it
 * names, else it comes first. Does not wait. */
lr_status study_open(struct study *study, const struct study_wish *wish);

/* Opens a file by its kind (io/files/file_kind.h): a drop. errors: LR_USAGE, with a message in the
 * report, for a file that is none of them; a session is the caller's to read. */
lr_status study_open_file(struct study *study, const char *path);

/* Puts what has been opened in place, and begins what waits; called once a frame. Returns the
 * state of the last opening; report may be NULL. study_wait is for programs without a window. */
enum job_state study_poll(struct study *study, struct job_report *report);
enum job_state study_wait(struct study *study, struct job_report *report);

/* Counts the openings that have ended, well or not, as of the last poll. */
int64_t study_endings(const struct study *study);

/* True while something is being opened, or waits for that. */
bool study_is_busy(const struct study *study);

void study_cancel(struct study *study);

/* Paths of what will be open once all openings have ended; they live until the next poll or opening; NULL = none. */
struct study_wish study_awaited(const struct study *study);

/* A snapshot, to be released. Any number of them; from the window's thread. */
struct study_view study_take(const struct study *study);

/* One holder more, for another thread. */
struct study_view study_view_hold(const struct study_view *view);
void study_view_release(struct study_view *view); /* any thread; zero is allowed */

/* Findings of the geometry doctor in the last scanner file that could not be opened, and the scanner as the file
 * describes it; NULL when the last one could. Both live until the next opening. */
const lr_diagnosis *study_refused(const struct study *study, const lr_scanner_draft **draft);

/* About 64 x 64 x n nearly cubic voxels that fill the field of view, or where the scanner names none, what
 * the modules enclose. */
lr_grid study_default_grid(const lr_scanner *scanner);

#endif
