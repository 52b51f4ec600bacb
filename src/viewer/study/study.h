/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The open files: a scanner, and images and data that belong to it. Files are opened in the background. The old
 * content is replaced only if all files were read. */
#pragma once

#include "viewer/frame/job.h"

#include <lr/lr.h>

/* A part of the open content, with a count of references. Several threads may read it; the last holder of a
 * reference frees it. */
struct opened;

/* Add and remove a reference. NULL is allowed. May be called on any thread. */
struct opened *opened_hold(struct opened *opened); /* returns `opened` */
void opened_release(struct opened *opened);

enum study_part { PART_SCANNER = 0, PART_DIAGNOSIS, PART_IMAGE, PART_MU, PART_SECOND, PART_DATA, NUM_PARTS };

/* --- the study --- */

/* A snapshot of the open content. A snapshot never changes, and exists until it is released, even if the study changes.
 * NULL and 0 mean that a part is not open. All fields may be read except `held`, which only the functions below use. */
struct study_view {
    int64_t serial;  /* grows with every change of the study; 0 = no file has been opened */
    int64_t endings; /* number of openings that have ended, with or without success */
    lr_grid grid;    /* grid of the image, else the requested one, else the scanner's default; size 0: none of these */
    const lr_scanner *scanner;
    const lr_lors *lors;
    const lr_diagnosis *diagnosis;                               /* diagnosis of the scanner and the grid */
    const lr_image *image;                                       /* activity */
    const lr_image *mu;                                          /* 1/mm */
    const lr_image *second;                                      /* another image, to be compared with the first */
    double image_largest, mu_largest, second_largest;            /* largest voxels; 0 without an image or map */
    const lr_lor_data *data;                                     /* measured or simulated prompts */
    const lr_lor_data *delayeds;                                 /* delayeds, if list mode has any */
    int num_frames;                                              /* volumes in the image's file; 0 without an image */
    bool data_are_events;                                        /* the data's file is list mode */
    const char *scanner_path, *image_path, *mu_path, *data_path; /* paths as given when opened */
    const char *second_path;
    struct opened *held[NUM_PARTS];
};

struct study;

/* errors: NULL, out of memory. */
struct study *study_create(const lr_log *log);

/* Cancels the current opening. Held views remain valid. NULL is allowed. */
void study_destroy(struct study *study);

/* A request to open files. NULL leaves a part unchanged, except that a new scanner closes the data of the old one.
 * Strings are copied. */
struct study_wish {
    const char *scanner; /* preset, or a file in any format of lr_scanner_read */
    const char *image;   /* read by lr_image_read; a .npy file lies on the grid */
    const char *mu;      /* read like an image; the unit is HU if any value is below -100, else 1/cm if any value
                            exceeds 0.05, else 1/mm */
    const char *data;    /* LOR data or list mode; if no scanner is given, the scanner in an HDF5 or PETSIRD file is
                            opened too */
    const lr_grid *grid; /* used if the image does not define the grid */
    const char *second;  /* read like an image; may have any grid */
};

/* Begins to open files and does not wait. A running opening is cancelled if the new request replaces all of its
 * files; otherwise it completes first. */
lr_status study_open(struct study *study, const struct study_wish *wish);

/* Opens a dropped file according to its kind (io/files/file_kind.h). errors: LR_USAGE for a kind that the study does
 * not open; the message is in the report. The caller must open session files. */
lr_status study_open_file(struct study *study, const char *path);

/* study_poll, called once a frame, makes newly read content the open content, and begins the next opening. It returns
 * the state of the last opening; report may be NULL. */
enum job_state study_poll(struct study *study, struct job_report *report);

/* True while an opening runs or waits. */
bool study_is_busy(const struct study *study);

void study_cancel(struct study *study);

/* The paths that will be open after all openings have ended; NULL = not open. The paths are valid until the next poll
 * or opening. */
struct study_wish study_awaited(const struct study *study);

/* errors, logged: LR_USAGE if no scanner is open, or if it has no module with that number. */
lr_status study_check_module(const struct study_view *study, int module, const lr_log *log);

/* Takes a snapshot, which the caller must release. Several snapshots may exist. Call it on the window's thread. */
struct study_view study_take(const struct study *study);

/* Adds a reference, so that another thread can use the view. */
struct study_view study_view_hold(const struct study_view *view);
void study_view_release(struct study_view *view); /* may be called on any thread; a struct of zeros is allowed */

/* Results for the last scanner file, if this file could not be opened: the findings of the geometry doctor, and the
 * scanner as the file describes it. Returns NULL if the file could be opened. Both results are valid until the next
 * opening. */
const lr_diagnosis *study_refused(const struct study *study, const lr_scanner_draft **draft);

/* A grid of about 64 x 64 x n nearly cubic voxels that fill the field of view. If the scanner gives no field of view,
 * the voxels fill the space that the modules enclose. */
lr_grid study_default_grid(const lr_scanner *scanner);
