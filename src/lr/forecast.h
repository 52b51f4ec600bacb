/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_FORECAST_H
#define LR_FORECAST_H

#include <lr/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Forecast of the size of a computation with an operator. If rows are similar, the forecast is accurate to about 10 %.
 * Fields without a meaning for this computation are zero. */
typedef struct lr_forecast {
    double rows;          /* number of rows expected */
    double elements;      /* elements of all rows */
    double kept_elements; /* elements that are at least `threshold` times the largest of their row */
    double memory_bytes;  /* memory that the call uses, in addition to the caller's arrays */
    double matrix_bytes;  /* the part of memory_bytes that is a stored matrix; 0 = none is stored */
} lr_forecast;

/* The rows to compute: the LORs of choice.part if by_lor is true (lr_operator_lor_rows), otherwise the rows of `choice`
 * (lr_operator_rows_part). */
typedef struct lr_rows_work {
    lr_row_choice choice;
    bool by_lor;
    double threshold; /* 0 .. 1, as lr_matrix_writer_params.threshold; unused if by_lor */
} lr_rows_work;

/* Makes a forecast from a sample of the rows. The sample takes 0.5 s, or up to about 2 s if it would have too few rows;
 * slow rows may take longer.
 * errors: as lr_operator_rows_part; LR_CANCELLED. */
LR_API lr_status lr_operator_forecast_rows(lr_operator *op, const lr_rows_work *work, lr_forecast *forecast);

/* Forecast for projections of all LORs, forward or back. projections: 1 for a sensitivity, 2 for an iteration of ML-EM
 * with dense data. `store`: the setting of the operator that will do the work; `op` itself may have another setting.
 * The memory of a stored matrix is estimated from a sample of rows. errors: LR_CANCELLED; LR_FAILED for a grid whose
 * projections would need more memory than is free; LR_USAGE for an operator of the family direct. */
LR_API lr_status lr_operator_forecast_projections(lr_operator *op, double projections, lr_store store,
                                                  lr_forecast *forecast);

/* Divides the indices 0 .. num - 1 into part[1] consecutive ranges with costs as equal as possible. Sets `range` to
 * range number part[0], counted from 1: range[0] <= n < range[1]. Every range has at least one index. 1 <= part[0] <=
 * part[1] <= num. costs: [num], at least 0. The same costs give the same ranges on every machine. */
LR_API void lr_share_range(const double *costs, int64_t num, const int64_t part[2], int64_t range[2]);

/* One of several parts of the rows, for independent runs on other machines or at other times. */
typedef struct lr_rows_share {
    lr_rows_work work;     /* which rows; choice.part NULL = all LORs */
    int64_t number, parts; /* part `number` of `parts`, 1 <= number <= parts */
    const lr_log *log;
} lr_rows_share;

/* The range of a part, range[0] <= n < range[1]. For voxels, n counts the rows of the choice. For LORs, n counts the
 * entries of a list: the LORs or the module pairs that choice.part lists, or else all module pairs.
 * Parts are consecutive, have at least one row each, and take about the same work. The work of a voxel's row is
 * estimated from the number of LORs through a few points of the grid. The work of a LOR's row is estimated from the
 * length of its line in the grid. No times are measured, so that parts are the same in every run and for every backend.
 * errors: LR_USAGE if the number is out of range, or if there are more parts than entries; LR_FAILED, no memory. */
LR_API lr_status lr_rows_share_range(const lr_lors *lors, const lr_grid *grid, const lr_rows_share *share,
                                     int64_t range[2]);

#ifdef __cplusplus
}
#endif

#endif
