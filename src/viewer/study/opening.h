/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Reading what a study is made of, on a job's thread. */
#ifndef LR_VIEWER_OPENING_H
#define LR_VIEWER_OPENING_H

#include "viewer/frame/shared.h"

#include <lr/lr.h>

enum study_part { PART_SCANNER = 0, PART_DIAGNOSIS, PART_IMAGE, PART_MU, PART_DATA, NUM_PARTS };
enum study_path { PATH_SCANNER = 0, PATH_IMAGE, PATH_MU, PATH_DATA, NUM_PATHS };

/* The objects behind the parts; a diagnosis is an lr_diagnosis. */
struct opened_scanner {
    char *path;
    lr_scanner *scanner;
    lr_lors *lors;
    lr_scanner_draft *draft;
};
struct opened_image {
    char *path;
    lr_image *image;
    float largest;  /* value */
    int num_frames; /* of its file; the path then ends in the frame's number: "pet.nii:3" */
};
struct opened_data {
    char *path;
    lr_lor_data *prompts, *delayeds;
    bool are_events; /* the file is list mode */
};

struct study_content {
    struct shared *parts[NUM_PARTS];
    lr_grid grid;   /* size 0: none */
    lr_grid chosen; /* by a wish; size 0: none */
};

/* The content once more, with one holder more of each part. */
struct study_content study_content_hold(const struct study_content *content);
void study_content_release(struct study_content *content);

/* The grid that follows from the other fields. */
void study_content_settle_grid(struct study_content *content);

/* What is to be read and what has come of it. */
struct opening {
    char *paths[NUM_PATHS];       /* owned; NULL = leave */
    lr_grid grid;                 /* size 0 = leave */
    struct study_content content; /* begins with what is open */
    lr_scanner_draft *refused;    /* of a scanner file that is wrong, with: */
    lr_diagnosis *why;
};

void opening_finish(struct opening *opening); /* zero is allowed */

/* Reads it all into `content`. user: the opening. For job_params. */
lr_status opening_run(void *user, const lr_log *log, const lr_progress *progress);

#endif
