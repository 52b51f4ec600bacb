/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Work at a place without a wait for each piece of it. */
#ifndef LR_VECTOR_LATER_H
#define LR_VECTOR_LATER_H

#include <lr/vector.h>

/* The fit of counts that have been divided: known where place is NULL. */
struct lr_later_fit {
    lr_poisson_fit fit;
    lr_place *place;
};

/* lr_vector_divide_counts; at a device without waiting for the fit, of which a place keeps one. */
lr_status lr_vector_divide_counts_later(const lr_poisson_ratio *ratio, struct lr_later_fit *later);

/* Waits for the fit, where it is not known yet; after lr_vector_add_up at that place it is there. */
lr_status lr_later_fit_finish(struct lr_later_fit *later);

/* Sums of vectors, known where place is NULL. slot: 0 or 1; of those that are under way a place keeps one
 * for each. */
struct lr_later_sums {
    int slot;
    lr_vector_sums sums;
    lr_place *place;
};

/* lr_vector_add_up; at a device that can, without waiting. later->slot is the caller's. */
lr_status lr_vector_add_up_later(const lr_vector *x, const lr_vector *y,
                                 struct lr_later_sums *later);
lr_status lr_later_sums_finish(struct lr_later_sums *later);

#endif
