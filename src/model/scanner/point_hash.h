/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Points, for example centres of crystals, hashed by cubic cells, to find the points near a position. */
#pragma once

#include <lr/log.h>
#include <stddef.h>

/* Points in an array of any structs. The caller owns the array. */
struct lr_points {
    const double *first_mm; /* [3] coordinates of the first point */
    size_t bytes;           /* bytes from one point to the next */
    int count;
};

struct lr_point_hash {
    struct lr_points points;
    double cell_mm;
    uint64_t num_heads; /* a power of 2 */
    int *begins;        /* [num_heads + 1] index in `sorted` at which each bucket begins */
    struct lr_hashed {
        double at_mm[3];
        int point;
    } * sorted; /* [count] sorted by bucket: points that are near in space are near in memory */
};

/* errors: LR_FAILED, out of memory, logged; *hash then owns nothing. Coordinates must be below 1e6 mm. A cell_mm below
 * 1e-3 counts as 1e-3. */
lr_status lr_point_hash_init(struct lr_point_hash *hash, const struct lr_points *points, double cell_mm,
                             const lr_log *log);
void lr_point_hash_finish(struct lr_point_hash *hash);

/* The function that receives each point within reach, with the squared distance of the point, mm^2. */
struct lr_point_visit {
    void (*take)(void *user, int point, double distance2);
    void *user;
};

static inline const double *lr_point_at(const struct lr_points *points, int k)
{
    return (const double *)((const char *)points->first_mm + (size_t)k * points->bytes);
}

/* Visits the points within reach_mm of a position, in any order. Returns the number of points in all cells that are
 * within reach; the time is proportional to this number. */
int64_t lr_point_hash_visit(const struct lr_point_hash *hash, const double point_mm[3], double reach_mm,
                            const struct lr_point_visit *visit);
