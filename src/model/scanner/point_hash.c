/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/point_hash.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>

/* Largest cell number along an axis. Points farther away get this number, too, because files may contain any number. */
static const double most = 1e12;

static int64_t cell_of(const struct lr_point_hash *hash, double coordinate)
{
    const double at = coordinate / hash->cell_mm;
    const double bounded = at < -most ? -most : at > most ? most : at;
    const int64_t towards_zero = (int64_t)bounded;
    return towards_zero - (bounded < (double)towards_zero);
}

static uint64_t head_of(const struct lr_point_hash *hash, const int64_t cell[3])
{
    uint64_t h = (uint64_t)cell[0] * 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 29) ^ (uint64_t)cell[1]) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 32) ^ (uint64_t)cell[2]) * 0x94d049bb133111ebu;
    return (h ^ (h >> 31)) & (hash->num_heads - 1);
}

static uint64_t head_at(const struct lr_point_hash *hash, const double at[3])
{
    const int64_t cell[3] = {cell_of(hash, at[0]), cell_of(hash, at[1]), cell_of(hash, at[2])};
    return head_of(hash, cell);
}

lr_status lr_point_hash_init(struct lr_point_hash *hash, const struct lr_points *points, double cell_mm,
                             const lr_log *log)
{
    *hash = (struct lr_point_hash){*points, fmax(cell_mm, 1e-3), 1024, NULL, NULL};
    while (hash->num_heads < (uint64_t)points->count) hash->num_heads *= 2;
    hash->begins = lr_alloc((int64_t)hash->num_heads + 1, sizeof(*hash->begins), "an index of crystals", log);
    hash->sorted = lr_alloc(points->count, sizeof(*hash->sorted), "an index of crystals", log);
    if (hash->begins == NULL || hash->sorted == NULL) {
        lr_point_hash_finish(hash);
        return LR_FAILED;
    }
    for (int c = 0; c < points->count; c++) hash->begins[head_at(hash, lr_point_at(points, c))]++;
    for (uint64_t h = 0; h < hash->num_heads; h++) hash->begins[h + 1] += hash->begins[h];
    /* At first, begins[h] is the end of bucket h. Each point that is sorted into the bucket moves begins[h] back by
     * one. In the end, begins[h] is the index of the bucket's first point. */
    for (int c = points->count - 1; c >= 0; c--) {
        const double *at = lr_point_at(points, c);
        hash->sorted[--hash->begins[head_at(hash, at)]] = (struct lr_hashed){{at[0], at[1], at[2]}, c};
    }
    return LR_OK;
}

void lr_point_hash_finish(struct lr_point_hash *hash)
{
    lr_free_all(hash->begins, hash->sorted);
    *hash = (struct lr_point_hash){0};
}

int64_t lr_point_hash_visit(const struct lr_point_hash *hash, const double point_mm[3], double reach_mm,
                            const struct lr_point_visit *visit)
{
    int64_t low[3], high[3], num_seen = 0;
    for (int k = 0; k < 3; k++) {
        low[k] = cell_of(hash, point_mm[k] - reach_mm);
        high[k] = cell_of(hash, point_mm[k] + reach_mm);
    }
    for (int64_t z = low[2]; z <= high[2]; z++) {
        for (int64_t y = low[1]; y <= high[1]; y++) {
            for (int64_t x = low[0]; x <= high[0]; x++) {
                const uint64_t head = head_of(hash, (const int64_t[3]){x, y, z});
                const int begin = hash->begins[head], end = hash->begins[head + 1];
                for (int k = begin; k < end; k++) {
                    const double *at = hash->sorted[k].at_mm;
                    double offset[3];
                    vec_sub(at, point_mm, offset);
                    const double distance2 = vec_dot(offset, offset);
                    /* A bucket may hold points of other cells. Such points are skipped, so that no point is visited
                     * twice. */
                    if (distance2 <= reach_mm * reach_mm && cell_of(hash, at[0]) == x && cell_of(hash, at[1]) == y &&
                        cell_of(hash, at[2]) == z)
                        visit->take(visit->user, hash->sorted[k].point, distance2);
                }
                num_seen += end - begin;
            }
        }
    }
    return num_seen;
}
