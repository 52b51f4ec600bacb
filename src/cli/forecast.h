/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A forecast of the memory and disk that work takes, before it begins, and a check that the disk has room. Times are
 * not forecast: progress bars show them by what the run has measured. */
#ifndef LR_CLI_FORECAST_H
#define LR_CLI_FORECAST_H

#include "common.h"

#define FORECAST_DRY_RUN                                                                                               \
    {                                                                                                                  \
        "--dry-run", NULL, "only say what it would take: memory and disk", false                                       \
    }

/* Projections, and what is written of them. */
struct forecast_projections {
    double projections;  /* of all LORs, forward or back */
    double array_bytes;  /* of the verb's own images and LOR data */
    const char *output;  /* NULL = nothing */
    double output_bytes; /* of the file */
};

/* Refuses with LR_FAILED what does not fit on the disk. Says what the work is going to take with --verbose,
 * with --dry-run, and for a large file. *goes_on: false with --dry-run. */
lr_status forecast_projections(struct setup *setup, const struct forecast_projections *work, bool *goes_on);

/* The same of matrix rows; sample: the size of the file is said by it. Nothing is refused where
 * rows are few. */
struct forecast_rows {
    lr_rows_work work;
    lr_matrix_writer_params file;
    double bytes_there; /* of the file, by an earlier run */
};
lr_status forecast_rows(struct setup *setup, const struct forecast_rows *rows, double *elements, bool *goes_on);

#endif
