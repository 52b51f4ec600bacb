/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_COMPARE_H
#define LR_COMPARE_H

#include <lr/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Differences between two computations of a matrix row, such as sampled and exact. Plain functions of their
 * arguments; any thread. */

/* Result of lr_row_compare. Ratios to a reference that is zero are NaN. */
typedef struct lr_row_error {
    int64_t num_elements;   /* non-zeros of the reference */
    double sum;             /* of the reference */
    double largest;         /* element of the reference */
    double relative_l2;     /* |row - reference| / |reference|, over elements */
    double sum_error;       /* (sum of row - sum) / sum: the error of the sensitivity */
    double largest_error;   /* largest |row - reference| of an element / largest */
    int64_t num_missed;     /* non-zeros of the reference that the row lacks */
    double missed_weight;   /* their part of `sum` */
    int64_t num_unexpected; /* non-zeros of the row that the reference lacks */
} lr_row_error;

/* Compares two rows of the same point or voxel; lr_row.row is ignored. */
LR_API lr_row_error lr_row_compare(const lr_row *row, const lr_row *reference);

/* The primary of a LOR's two modules for a point: the one whose centre on the detection plane is farther
 * (docs/method/correspondence.md, "Roles"). 0 <= lor < lors->count. */
LR_API int lr_lors_primary(const lr_lors *lors, int64_t lor, const double point_mm[3]);

#ifdef __cplusplus
}
#endif

#endif
