/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The choice of rows and LORs, factors of LORs, and rows that are kept, for the verbs that compute rows. */
#ifndef LR_CLI_MATRIX_H
#define LR_CLI_MATRIX_H

#include "common.h"

#include <limits.h>

/* Choice of rows and LORs on the command line. Zero: all voxels, all LORs. */
struct matrix_choice {
    bool by_lor;
    const char *rows, *region, *pairs, *lors; /* texts of the options, NULL = not given */
    int64_t begin, end;                       /* voxels begin <= row < end, or: */
    int64_t *voxels;                          /* owned [num_voxels] */
    int64_t num_voxels;
    lr_image *mask; /* of --region IMAGE */
    lr_selection part;
    int32_t *part_pairs; /* owned, what part points to */
    int64_t *part_lors;
};

/* Reads the options; texts are looked at when scanner and grid are known. */
void matrix_choice_read(struct cli_args *args, struct matrix_choice *choice);

/* The format that belongs to the ending of a name; text if there is none. */
lr_matrix_format matrix_format_of(const char *path);

/* --threshold, 0 to 1; 0 = not given. */
double matrix_read_threshold(struct cli_args *args);

/* Reads the image that --region names, if it names one. Its grid may stand for --grid. */
lr_status matrix_choice_open(struct matrix_choice *choice, struct setup *setup, struct cli_args *args);

/* Fills in rows and LORs, with the setup's scanner and grid. */
lr_status matrix_choice_complete(struct matrix_choice *choice, const struct setup *setup);

void matrix_choice_finish(struct matrix_choice *choice);

/* Factors of LORs, as a matrix file describes them. Zero is valid. */
struct matrix_factors {
    char words[2 * PATH_MAX + 64]; /* their description in the file; "none" */
    lr_matrix_input inputs[5];     /* their values; they live as long as the setup */
    int num_inputs;
};

extern const struct cli_option matrix_factor_options[];

/* Reads --efficiencies and --mu-as, and hands what they give to setup->params. The setup has its
 * scanner and its map. */
lr_status matrix_factors_read(struct matrix_factors *factors, struct cli_args *args, struct setup *setup);

/* --- a matrix row that outlives the call which delivered it --- */

/* Zero is an empty row. */
struct retained_row {
    int64_t count, room;
    int64_t *lor;        /* owned [room] */
    double *probability; /* owned [room] */
};

/* Adds an element. errors: LR_FAILED if memory runs out, reported. */
lr_status retained_row_add(struct report *report, struct retained_row *row, int64_t lor, double probability);

/* The row of the voxel that is the setup's grid, by `op`. errors: reported; the row is empty then. */
lr_status retained_row_take(const struct setup *setup, lr_operator *op, struct retained_row *row);

/* The part of `whole` whose primary module, from that point, is `module`. */
lr_status retained_row_restrict(const struct setup *setup, const struct retained_row *whole, int module,
                                struct retained_row *row);

/* The primary module that carries most of a row. */
lr_status retained_row_brightest(const struct setup *setup, const struct retained_row *row, int *module);

/* The row for the library; it lives as long as this one. */
lr_row retained_row_view(const struct retained_row *row);

void retained_row_finish(struct retained_row *row);

#endif
