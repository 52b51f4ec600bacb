/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The choice of rows and LORs, factors per LOR, and rows kept in memory, for the verbs that compute rows. */
#pragma once

#include "common.h"

#include <limits.h>

/* Choice of rows and LORs on the command line. A struct of zeros means all voxels and all LORs. */
struct matrix_choice {
    bool by_lor;
    const char *rows, *region, *pairs, *lors; /* the options' texts; NULL = not given */
    int64_t begin, end;                       /* voxels begin <= row < end, unless `voxels` is given */
    int64_t *voxels;                          /* owned [num_voxels]; a list of voxels */
    int64_t num_voxels;
    lr_image *mask; /* the image of --region */
    lr_selection part;
    int32_t *part_pairs; /* owned; `part` points to it */
    int64_t *part_lors;
};

/* Reads the options as texts. matrix_choice_open parses them when the scanner is known. */
void matrix_choice_read(struct cli_args *args, struct matrix_choice *choice);

/* Sorts numbers, removes repeated ones, and returns how many are left. */
int64_t matrix_sort_numbers(int64_t *numbers, int64_t count);

/* The format of a matrix file, by its name's ending; text if the ending is unknown. */
lr_matrix_format matrix_format_of(const char *path);

/* Reads --threshold, 0 to 1; 0 = not given. */
double matrix_read_threshold(struct cli_args *args);

/* Reads the image of --region, if the option names one, and the setup's grid. The grid is that of the image if neither
 * --grid nor --like is given. Parses rows and LORs. The setup must have its scanner. */
lr_status matrix_choice_open(struct matrix_choice *choice, struct setup *setup, struct cli_args *args);

void matrix_choice_finish(struct matrix_choice *choice);

/* Factors per LOR, as a matrix file describes them. A struct of zeros is valid. */
struct matrix_factors {
    char words[2 * PATH_MAX + 64]; /* the description in the file, or "none" */
    lr_matrix_input inputs[5];     /* the factors' values; they live as long as the setup */
    int num_inputs;
};

extern const struct cli_option matrix_factor_options[];

/* Reads --efficiencies and --mu-as, and passes their factors to setup->params. The setup must have its scanner and
 * its mu-map. */
lr_status matrix_factors_read(struct matrix_factors *factors, struct cli_args *args, struct setup *setup);

/* --- matrix rows that are kept in memory --- */

/* A row that is kept in memory. A struct of zeros is an empty row. */
struct retained_row {
    int64_t count, room;
    int64_t *lor;        /* owned [room] */
    double *probability; /* owned [room] */
};

/* Adds an element. errors: LR_FAILED if memory runs out, reported. */
lr_status retained_row_add(struct report *report, struct retained_row *row, int64_t lor, double probability);

/* Computes the row of the only voxel of the setup's grid, with `op`. errors: reported; the row is empty then. */
lr_status retained_row_take(const struct setup *setup, lr_operator *op, struct retained_row *row);

/* Copies the elements of `whole` whose LORs have the primary module `module`, as seen from the setup's only voxel. */
lr_status retained_row_restrict(const struct setup *setup, const struct retained_row *whole, int module,
                                struct retained_row *row);

/* Returns an lr_row that points into `row`. */
lr_row retained_row_view(const struct retained_row *row);

void retained_row_finish(struct retained_row *row);
