/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the verbs matrix and matrix verify share: which rows and LORs are meant, and the factors of LORs. */
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

/* The format that the name of a file stands for; text where it stands for none. */
lr_matrix_format matrix_format_of(const char *path);

/* --threshold, 0 to 1; 0 = not given. */
double matrix_read_threshold(struct cli_args *args);

/* Reads the image that --region names, if it names one. Its grid may stand for --grid. */
lr_status matrix_choice_open(struct matrix_choice *choice, struct setup *setup, struct cli_args *args);

/* Fills in rows and LORs, with the setup's scanner and grid. */
lr_status matrix_choice_complete(struct matrix_choice *choice, const struct setup *setup);

void matrix_choice_finish(struct matrix_choice *choice);

/* Factors of LORs, and how a matrix file tells of them. Zero is valid. */
struct matrix_factors {
    char words[2 * PATH_MAX + 64]; /* what they are, for the file; "none" */
    lr_matrix_input inputs[5];     /* the values behind them, as long as the setup lives */
    int num_inputs;
};

extern const struct cli_option matrix_factor_options[];

/* Reads --efficiencies and --mu-as, and hands what they give to setup->params. The setup has its
 * scanner and its map. */
lr_status matrix_factors_read(struct matrix_factors *factors, struct cli_args *args, struct setup *setup);

#endif
