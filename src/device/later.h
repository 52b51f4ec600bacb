/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Work at a place without a wait for each piece: the host queues work, which the device does later in that order.
 * Pending sums have slots, which the caller assigns, LR_LATER_SLOTS in each turn. The sums of one turn are waited for
 * together, while work queued after them goes on. */
#ifndef LR_DEVICE_LATER_H
#define LR_DEVICE_LATER_H

#include "common/bindings.h"
#include "device/vector.h"

enum { LR_LATER_TURNS = 2, LR_LATER_SLOTS = 3, LR_NUM_LATER = LR_LATER_TURNS * LR_LATER_SLOTS };

/* The fit of divided counts, which is known once place is NULL. */
struct lr_later_fit {
    int slot; /* below LR_NUM_LATER */
    lr_poisson_fit fit;
    lr_place *place;
};

/* lr_vector_divide_counts, which does not wait for the fit at a device. The caller sets later->slot. */
lr_status lr_vector_divide_counts_later(const lr_poisson_ratio *ratio, struct lr_later_fit *later);
lr_status lr_later_fit_finish(struct lr_later_fit *later);

/* Sums of vectors, which are known once place is NULL. */
struct lr_later_sums {
    int slot; /* below LR_NUM_LATER */
    lr_vector_sums sums;
    lr_place *place;
};

/* lr_vector_add_up, which does not wait at a device. The caller sets later->slot. */
lr_status lr_vector_add_up_later(const lr_vector *x, const lr_vector *y, struct lr_later_sums *later);
lr_status lr_later_sums_finish(struct lr_later_sums *later);

/* Submits the queued work to a device and marks the end of a turn, so that finishing one of its slots waits for no
 * later work. Unmarked, finishing waits for all work. Nothing is done on the host, or if place is NULL. */
lr_status lr_later_send(lr_place *place, int turn);

/* --- sums of a device by their names --- */

static inline lr_vector_sums lr_vector_name_sums(const double sums[LR_VECTOR_NUM_SUMS])
{
    return (lr_vector_sums){.sum = sums[0],
                            .product = sums[1],
                            .difference = sums[2],
                            .largest = sums[LR_VECTOR_LARGEST],
                            .smallest = -sums[LR_VECTOR_LARGEST + 1],
                            .not_finite = (int64_t)sums[3]};
}

static inline lr_poisson_fit lr_vector_name_fit(const double sums[LR_VECTOR_NUM_SUMS])
{
    return (lr_poisson_fit){.log_likelihood = sums[0],
                            .measured_counts = sums[1],
                            .estimated_counts = sums[2],
                            .left_out_lors = (int64_t)sums[3],
                            .left_out_counts = sums[4]};
}

#endif
