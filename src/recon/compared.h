/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What estimates are compared with: the measured counts and the additive term of a subset, in the
 * order of its values, where reconstruction has them. */
#ifndef LR_RECON_COMPARED_H
#define LR_RECON_COMPARED_H

#include "recon/subsets.h"

struct lr_compared {
    const struct lr_subsets *subsets;
    lr_place *place;      /* where values are; NULL = the host */
    lr_vector *measured;  /* [subsets] held; zero where they are gathered when asked for */
    lr_vector *additive;  /* alike; and zero where there is none */
    lr_vector scratch[2]; /* on the host: measured, additive, of the subset at hand */
    bool has_additive;
};

/* Sparse data, and all data at a device, are held; dense data on the host are the caller's where a subset's
 * values stand in one piece, else gathered when asked for. errors: LR_FAILED without memory; LR_BAD_INPUT for an
 * additive value that is negative or not finite. Finish in any case. */
lr_status lr_compared_init(struct lr_compared *compared, const struct lr_subsets *subsets, lr_place *place);
void lr_compared_finish(struct lr_compared *compared);

/* Of subset k, until the next call; additive is zero where there is none. */
struct lr_compared_values {
    lr_vector measured, additive;
};
lr_status lr_compared_get(struct lr_compared *compared, int k, struct lr_compared_values *values);

#endif
