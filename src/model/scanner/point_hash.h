/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystal centres hashed by cubic cells, to find those near a point. */
#ifndef LR_MODEL_POINT_HASH_H
#define LR_MODEL_POINT_HASH_H

#include <lr/crystals.h>

struct lr_point_hash {
    const lr_crystal *crystals; /* the caller's [count] */
    int count;
    double cell_mm;
    uint64_t num_heads; /* a power of 2 */
    int *heads;         /* [num_heads] first crystal of a bucket, -1 = none */
    int *next;          /* [count] */
};

/* On failure (no memory, logged) *hash holds nothing. Centres are below 1e6 mm, the cell at least
 * 1e-3 mm. */
lr_status lr_point_hash_init(struct lr_point_hash *hash, const lr_crystal *crystals, int count,
                             double cell_mm, const lr_log *log);
void lr_point_hash_finish(struct lr_point_hash *hash);

/* Where the crystals within a reach of a point are handed to; `distance2` in mm^2. */
struct lr_point_visit {
    void (*take)(void *user, int crystal, double distance2);
    void *user;
};

/* Visits the crystals within reach_mm of a point, in no order. Time goes with the cells in reach and
 * the crystals in them; returns how many that were. */
int64_t lr_point_hash_visit(const struct lr_point_hash *hash, const double point_mm[3],
                            double reach_mm, const struct lr_point_visit *visit);

#endif
