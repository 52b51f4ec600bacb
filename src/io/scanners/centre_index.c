/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/scanners/centre_index.h"

#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>

/* Far from any scanner, and far from overflow. */
static int64_t cell_of(double position_mm)
{
    return (int64_t)floor(fmin(fmax(position_mm, -1e9), 1e9));
}

static uint64_t bucket_of(const struct lr_centre_index *index, const int64_t cell[3])
{
    uint64_t hash = 0;
    for (int k = 0; k < 3; k++) {
        hash = (hash ^ (uint64_t)cell[k]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash & (index->num_heads - 1);
}

static double distance(const double a[3], const double b[3])
{
    double difference[3];
    vec_sub(a, b, difference);
    return vec_length(difference);
}

static void list_centres(struct lr_centre_index *index, const lr_scanner *scanner)
{
    int crystal = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        for (int q = 0; q < module->crystals[1]; q++) {
            for (int p = 0; p < module->crystals[0]; p++) {
                lr_module_crystal_centre(module, p, q, index->centres_mm[crystal]);
                crystal++;
            }
        }
    }
}

static void fill_buckets(struct lr_centre_index *index)
{
    for (uint64_t k = 0; k < index->num_heads; k++) {
        index->heads[k] = -1;
    }
    for (int crystal = 0; crystal < index->num_crystals; crystal++) {
        const double *centre = index->centres_mm[crystal];
        const int64_t cell[3] = {cell_of(centre[0]), cell_of(centre[1]), cell_of(centre[2])};
        const uint64_t bucket = bucket_of(index, cell);
        index->next[crystal] = index->heads[bucket];
        index->heads[bucket] = crystal;
    }
}

lr_status lr_centre_index_init(struct lr_centre_index *index, const lr_scanner *scanner,
                               const lr_log *log)
{
    *index = (struct lr_centre_index){0};
    index->num_crystals = scanner->num_crystals;
    index->num_heads = 1;
    while (index->num_heads < (uint64_t)scanner->num_crystals) {
        index->num_heads *= 2;
    }
    index->centres_mm =
        lr_alloc(index->num_crystals, sizeof(*index->centres_mm), "crystal centres", log);
    index->heads =
        lr_alloc((int64_t)index->num_heads, sizeof(*index->heads), "crystal centres", log);
    index->next = lr_alloc(index->num_crystals, sizeof(*index->next), "crystal centres", log);
    if (index->centres_mm == NULL || index->heads == NULL || index->next == NULL) {
        lr_centre_index_finish(index);
        return LR_FAILED;
    }
    list_centres(index, scanner);
    fill_buckets(index);
    return LR_OK;
}

void lr_centre_index_finish(struct lr_centre_index *index)
{
    free(index->centres_mm);
    free(index->heads);
    free(index->next);
    *index = (struct lr_centre_index){0};
}

/* Looks through the bucket of one cell; better ones replace *best. */
static void search_cell(const struct lr_centre_index *index, const int64_t cell[3],
                        const double position_mm[3], double *best_mm, int *best)
{
    for (int k = index->heads[bucket_of(index, cell)]; k >= 0; k = index->next[k]) {
        const double away = distance(index->centres_mm[k], position_mm);
        if (away < *best_mm || (away == *best_mm && (*best < 0 || k < *best))) {
            *best_mm = away;
            *best = k;
        }
    }
}

int lr_centre_index_find(const struct lr_centre_index *index, const double position_mm[3],
                         double reach_mm)
{
    int64_t low[3], high[3], cell[3];
    for (int k = 0; k < 3; k++) {
        low[k] = cell_of(position_mm[k] - reach_mm);
        high[k] = cell_of(position_mm[k] + reach_mm);
    }
    double best_mm = reach_mm;
    int best = -1;
    for (cell[2] = low[2]; cell[2] <= high[2]; cell[2]++) {
        for (cell[1] = low[1]; cell[1] <= high[1]; cell[1]++) {
            for (cell[0] = low[0]; cell[0] <= high[0]; cell[0]++) {
                search_cell(index, cell, position_mm, &best_mm, &best);
            }
        }
    }
    return best;
}

double lr_centre_index_distance(const struct lr_centre_index *index, const double position_mm[3])
{
    double least = INFINITY;
    for (int k = 0; k < index->num_crystals; k++) {
        least = fmin(least, distance(index->centres_mm[k], position_mm));
    }
    return least;
}
