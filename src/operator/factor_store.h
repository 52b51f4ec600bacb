/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Factors per LOR of the selections that were projected, where the projections are: attenuation is an
 * integral along each LOR, and a reconstruction asks for the same ones in every iteration. */
#ifndef LR_OPERATOR_FACTOR_STORE_H
#define LR_OPERATOR_FACTOR_STORE_H

#include <lr/lors.h>
#include <lr/vector.h>

struct lr_stored_factors;

/* Zero is an empty one. */
struct lr_factor_store {
    struct lr_stored_factors *list; /* owned [count] */
    int count;
    double bytes; /* of all factors and lists of LORs */
};

/* Those of a selection (NULL = all LORs), at the place and in the precision of `like`; NULL = there are
 * none. They live as long as the store. */
const lr_vector *lr_factor_store_find(const struct lr_factor_store *store, const lr_selection *selection,
                                      const lr_vector *like);

/* Whether there is room for as many more as `like` has, at its place and in its precision: a quarter of
 * the memory that is free, or an eighth of a device's, and at most `limit_bytes` where that is not 0. */
bool lr_factor_store_has_room(const struct lr_factor_store *store, const lr_vector *like, int64_t limit_bytes);

/* The factors are the store's from now on; the selection is copied.
 * errors: LR_FAILED without memory, logged; they are the caller's then as before. */
lr_status lr_factor_store_add(struct lr_factor_store *store, const lr_selection *selection, const lr_vector *factors,
                              const lr_log *log);

void lr_factor_store_finish(struct lr_factor_store *store);

#endif
