/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The sensitivity image, and LOR data as pictures. */
#pragma once

#include "viewer/study/study.h"

/* --- sensitivity: A^T 1 on the study's grid --- */

/* Zero fields mean the defaults of lr_operator_params. */
struct sensitivity_request {
    int samples;
    const char *backend; /* NULL = "auto" */
};

/* A sensitivity task and its result in one struct. task_runner.result points to the newest result. */
struct sensitivity_result {
    struct study_view study;            /* a reference is held */
    struct sensitivity_request request; /* the request, with the number of samples that was used */
    lr_mode mode;
    lr_image *image;      /* owned */
    double largest, mean; /* mean over all voxels */
    double seconds;
};

extern const struct task_kind sensitivity_kind;

/* Requests a sensitivity image; the newest request replaces earlier ones. errors: LR_USAGE without a scanner. */
lr_status sensitivity_ask(struct task_runner *runner, const struct study_view *study,
                          const struct sensitivity_request *request, const lr_log *log);

/* --- LORs of a module pair --- */

/* Values of all LORs of two modules. A row is crystal q * nu + p of the lower module; a column is crystal s * nu + r
 * of the higher module. */
struct pair_image {
    int modules[2]; /* ascending */
    int size[2];    /* columns, rows */
    float *values;  /* owned [size[1]][size[0]] */
    double sum, largest;
};

void pair_image_finish(struct pair_image *image); /* a struct of zeros is allowed */

/* Makes the image either from data or from a row of the matrix; one of these two arguments must be NULL. modules: in
 * any order. The previous content of `image` is overwritten; call pair_image_finish in the end. errors: LR_USAGE
 * without a scanner, or if the modules have no LOR; LR_FAILED if memory runs out. */
lr_status pair_image_make(const struct study_view *study, const int modules[2], const lr_lor_data *data,
                          const lr_row *row, struct pair_image *image, const lr_log *log);

/* The LOR of a pixel; -1 outside the image. */
int64_t pair_image_lor(const struct study_view *study, const struct pair_image *image, int column, int row);

struct lor_value {
    int64_t lor;
    double value;
};

/* Lists the largest values above 0, in descending order; among equal values, the lowest LOR comes first. At most
 * `capacity` entries are filled in. Returns the number of entries. */
int highest_of_data(const lr_lor_data *data, struct lor_value *highest, int capacity);
