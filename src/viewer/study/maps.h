/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The sensitivity image, and LOR data as pictures. */
#ifndef LR_VIEWER_MAPS_H
#define LR_VIEWER_MAPS_H

#include "viewer/study/study.h"

/* --- sensitivity: A^T 1 on the study's grid --- */

/* Zero fields are defaults, those of lr_operator_params. */
struct sensitivity_request {
    lr_mode mode;
    int rays, samples, mu_steps;
    bool without_mu;
    const char *backend; /* NULL = "auto" */
};

struct sensitivity_result {
    struct sensitivity_request request; /* mode, R, N and K filled in; backend is NULL */
    bool has_mu;
    const lr_image *image;
    double largest, mean; /* mean over all voxels */
    double seconds;
};

/* The kind of its tasks, for task_runner_init. */
extern const struct task_kind sensitivity_kind;

/* Asks for another image; of several the newest wins. errors: LR_USAGE without a scanner. */
lr_status sensitivity_ask(struct task_runner *runner, const struct study_view *study,
                          const struct sensitivity_request *request, const lr_log *log);

/* The newest image, until the next poll; NULL = none. */
const struct sensitivity_result *sensitivity_result(const struct task_runner *runner);

/* --- LORs of a module pair --- */

/* Values of all LORs of two modules. Rows are crystals of the lower module, q * nu + p; columns
 * those of the higher one, s * nu + r. */
struct pair_image {
    int modules[2]; /* ascending */
    int size[2];    /* columns, rows */
    float *values;  /* owned [size[1]][size[0]] */
    double sum, largest;
};

void pair_image_finish(struct pair_image *image); /* zero is allowed */

/* Makes the image from data, or from a row of the matrix; the other is NULL. modules: in either order. The image is
 * overwritten; finish it. errors: LR_USAGE without a scanner, or for modules that have no LOR; LR_FAILED if
 * memory runs out. */
lr_status pair_image_make(const struct study_view *study, const int modules[2], const lr_lor_data *data,
                          const lr_row *row, struct pair_image *image, const lr_log *log);

/* LOR of a pixel of the image; -1 outside. */
int64_t pair_image_lor(const struct study_view *study, const struct pair_image *image, int column, int row);

/* A LOR and its value. */
struct lor_value {
    int64_t lor;
    double value;
};

/* The largest values that are above 0, largest first, of equals the lowest LOR first. Fills at
 * most `capacity`; returns how many. */
int highest_of_data(const lr_lor_data *data, struct lor_value *highest, int capacity);

#endif
