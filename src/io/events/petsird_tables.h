/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Fields of a PETSIRD header that are tables over module types or pairs of them. Each taker is a
 * lr_yardl_field's, with the lr_petsird as its user; a table that has not the types' number of
 * entries is refused, since which entry is whose would be a guess. */
#ifndef LR_IO_PETSIRD_TABLES_H
#define LR_IO_PETSIRD_TABLES_H

#include "io/events/petsird.h"

/* Reads `count` finite floats. */
lr_status lr_petsird_read_floats(struct lr_yardl_input *input, const struct lr_yardl_type *item, int64_t count,
                                 float *values);

/* A list of floats of any length. */
struct lr_petsird_floats {
    struct lr_petsird *petsird;
    float **values; /* owned by the caller; replaced */
    int64_t count;
};
lr_status lr_petsird_take_floats(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type);

/* [type1][type2], or the lower triangle of that. Where rows of the resolutions are too long, none
 * of them is known: lr_petsird.odd_resolutions. */
lr_status lr_petsird_take_tof_bins(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type);
lr_status lr_petsird_take_resolutions(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type);
lr_status lr_petsird_take_masks(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type);

/* [type] */
lr_status lr_petsird_take_energies(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type);

#endif
