/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_FORECAST_H
#define LR_FORECAST_H

#include <lr/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The room that work with an operator is going to take: to the nearest tenth or so where rows are much
 * alike. Zero where a number does not apply. */
typedef struct lr_forecast {
    double rows;          /* that there are going to be */
    double elements;      /* of them all */
    double kept_elements; /* of them, at least `threshold` of their row's largest */
    double memory_bytes;  /* that the call works with, beside the caller's arrays */
} lr_forecast;

/* Which rows: those of `choice`, as lr_operator_rows_part gives them, or by_lor those of
 * choice->part, as lr_operator_lor_rows does. */
typedef struct lr_rows_work {
    lr_row_choice choice;
    bool by_lor;
    double threshold; /* 0 .. 1, as that of a matrix file; unused by_lor */
} lr_rows_work;

/* Computes a few rows spread over those of the work, for 0.5 s where that shows enough of
 * them and about 2 s at most, a few rows that take longer excepted; and no more than there are.
 * errors: as lr_operator_rows_part; LR_CANCELLED. */
LR_API lr_status lr_operator_forecast_rows(lr_operator *op, const lr_rows_work *work, lr_forecast *forecast);

/* The same of projections of all LORs, forward or back: 1 for a sensitivity, 2 for an iteration of
 * ML-EM with dense data. `store`: whether the operator that does the work is to keep its matrix, so that one which
 * keeps none can tell the memory it takes, by a sample of its rows.
 * errors: LR_CANCELLED; LR_FAILED for a grid whose projections need more memory than is free, which
 * they answer too; LR_USAGE for an operator of the family direct. */
LR_API lr_status lr_operator_forecast_projections(lr_operator *op, double projections, lr_store store,
                                                  lr_forecast *forecast);

/* Cuts 0 .. num - 1 into part[1] runs whose costs (at least 0, num of them) come nearest to equal, each
 * of one number at least, and gives the part[0]-th, 1 <= part[0] <= part[1] <= num, which ends before
 * range[1]. The same numbers give the same runs everywhere. */
LR_API void lr_share_range(const double *costs, int64_t num, const int64_t part[2], int64_t range[2]);

/* One of several parts that rows are cut into for runs that know nothing of each other: on other
 * machines, at other times. */
typedef struct lr_rows_share {
    lr_rows_work work;     /* which rows; choice.part NULL = all LORs */
    int64_t number, parts; /* the number-th of so many, 1 <= number <= parts */
    const lr_log *log;
} lr_rows_share;

/* Where that part begins and ends (range[1] is not in it). Of voxels: places among the rows of the
 * choice, counted from 0. Of LORs: entries of the list of the selection, LORs or module pairs, or of
 * all pairs where it has none. Each part has a row at least, follows the one before, and takes about
 * the same work: rows of voxels are weighed by how many LORs pass through a few points of the grid, by
 * lines in double precision, rows of LORs by how long their lines run through it. Nothing is timed:
 * the parts are the same in every run of the program, whatever the backend.
 * errors: LR_USAGE for a number out of range, and more parts than rows, LORs or pairs; LR_FAILED,
 * no memory. */
LR_API lr_status lr_rows_share_range(const lr_lors *lors, const lr_grid *grid, const lr_rows_share *share,
                                     int64_t range[2]);

#ifdef __cplusplus
}
#endif

#endif
