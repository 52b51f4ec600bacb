/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/point_hash.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>

/* Cells of places that are farther away are taken together: files may hold any number. */
static const double most = 1e12;

static int64_t cell_of(const struct lr_point_hash *hash, double coordinate)
{
    return (int64_t)floor(fmin(fmax(coordinate / hash->cell_mm, -most), most));
}

static uint64_t head_of(const struct lr_point_hash *hash, const int64_t cell[3])
{
    uint64_t h = (uint64_t)cell[0] * 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 29) ^ (uint64_t)cell[1]) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 32) ^ (uint64_t)cell[2]) * 0x94d049bb133111ebu;
    return (h ^ (h >> 31)) & (hash->num_heads - 1);
}

lr_status lr_point_hash_init(struct lr_point_hash *hash, const struct lr_points *points,
                             double cell_mm, const lr_log *log)
{
    *hash = (struct lr_point_hash){*points, fmax(cell_mm, 1e-3), 1024, NULL, NULL};
    while (hash->num_heads < (uint64_t)points->count) {
        hash->num_heads *= 2;
    }
    hash->heads =
        lr_alloc((int64_t)hash->num_heads, sizeof(*hash->heads), "an index of crystals", log);
    hash->next = lr_alloc(points->count, sizeof(*hash->next), "an index of crystals", log);
    if (hash->heads == NULL || hash->next == NULL) {
        lr_point_hash_finish(hash);
        return LR_FAILED;
    }
    for (uint64_t h = 0; h < hash->num_heads; h++) {
        hash->heads[h] = -1;
    }
    for (int c = points->count - 1; c >= 0; c--) {
        const double *at = lr_point_at(points, c);
        const int64_t cell[3] = {cell_of(hash, at[0]), cell_of(hash, at[1]), cell_of(hash, at[2])};
        const uint64_t head = head_of(hash, cell);
        hash->next[c] = hash->heads[head];
        hash->heads[head] = c;
    }
    return LR_OK;
}

void lr_point_hash_finish(struct lr_point_hash *hash)
{
    free(hash->heads);
    free(hash->next);
    *hash = (struct lr_point_hash){0};
}

/* A bucket may hold points of other cells: only the cell's own count, so that none comes
 * twice. */
static int64_t visit_cell(const struct lr_point_hash *hash, const int64_t cell[3],
                          const double point_mm[3], double reach_mm,
                          const struct lr_point_visit *visit)
{
    int64_t seen = 0;
    for (int c = hash->heads[head_of(hash, cell)]; c >= 0; c = hash->next[c], seen++) {
        const double *at = lr_point_at(&hash->points, c);
        if (cell_of(hash, at[0]) != cell[0] || cell_of(hash, at[1]) != cell[1] ||
            cell_of(hash, at[2]) != cell[2]) {
            continue;
        }
        double way[3];
        vec_sub(at, point_mm, way);
        if (vec_dot(way, way) <= reach_mm * reach_mm) {
            visit->take(visit->user, c, vec_dot(way, way));
        }
    }
    return seen;
}

int64_t lr_point_hash_visit(const struct lr_point_hash *hash, const double point_mm[3],
                            double reach_mm, const struct lr_point_visit *visit)
{
    int64_t low[3], high[3], seen = 0;
    for (int k = 0; k < 3; k++) {
        low[k] = cell_of(hash, point_mm[k] - reach_mm);
        high[k] = cell_of(hash, point_mm[k] + reach_mm);
    }
    for (int64_t z = low[2]; z <= high[2]; z++) {
        for (int64_t y = low[1]; y <= high[1]; y++) {
            for (int64_t x = low[0]; x <= high[0]; x++) {
                const int64_t cell[3] = {x, y, z};
                seen += visit_cell(hash, cell, point_mm, reach_mm, visit);
            }
        }
    }
    return seen;
}
