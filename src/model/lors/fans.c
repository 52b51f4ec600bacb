/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/lors/fans.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "model/scanner/coincidence.h"

#include <stdlib.h>

static bool bit(const uint32_t *set, int64_t n)
{
    return set[n / 32] >> (n % 32) & 1u;
}

static int64_t count_bits(const uint32_t *set, int64_t num_bits)
{
    int64_t ones = 0;
    for (int64_t n = 0; n < num_bits; n++) ones += bit(set, n);
    return ones;
}

int64_t lr_pair_num_coincidences(const lr_lors *lors, int64_t pair)
{
    const struct lr_pair_mask *mask = &lors->masks->pairs[pair];
    const int64_t all = lors->offsets[pair + 1] - lors->offsets[pair];
    const uint32_t *set = lors->masks->words + mask->offset_a;
    if (mask->kind == LR_MASK_ALL) return all;
    if (mask->kind == LR_MASK_FULL) return count_bits(set, all);
    const int *i = lors->scanner->modules[lors->pairs[pair][0]].crystals;
    const int *j = lors->scanner->modules[lors->pairs[pair][1]].crystals;
    return count_bits(set, (int64_t)i[0] * j[0]) *
           count_bits(lors->masks->words + mask->offset_b, (int64_t)i[1] * j[1]);
}

/* One module pair seen from one of its modules, `near`: what the other one, `far`, adds to the fans
 * of its crystals. */
struct side {
    const struct lr_pair_mask *mask;
    const uint32_t *words;
    bool near_is_lower;
    const int *near, *far; /* crystals along u and v */
    const double *values;  /* of far's crystals */
    double *fans;          /* of near's crystals */
    double *sums;          /* [far u][near v] */
};

/* Whether entry `near` along an axis goes with entry `far`, in a set made for (lower, higher). */
static bool allowed(const struct side *side, uint32_t offset, const int64_t at[2], const int64_t size[2])
{
    const int64_t n = side->near_is_lower ? at[0] * size[1] + at[1] : at[1] * size[0] + at[0];
    return bit(side->words + offset, n);
}

static void add_all(const struct side *side)
{
    double sum = 0.0;
    for (int64_t d = 0; d < (int64_t)side->far[0] * side->far[1]; d++) sum += side->values[d];
    for (int64_t c = 0; c < (int64_t)side->near[0] * side->near[1]; c++) side->fans[c] += sum;
}

static void add_full(const struct side *side)
{
    const int64_t size[2] = {(int64_t)side->near[0] * side->near[1], (int64_t)side->far[0] * side->far[1]};
    for (int64_t c = 0; c < size[0]; c++) {
        for (int64_t d = 0; d < size[1]; d++)
            if (allowed(side, side->mask->offset_a, (int64_t[2]){c, d}, size)) side->fans[c] += side->values[d];
    }
}

/* sums[r][q] = the far crystals of column r that ring q may be in coincidence with. */
static void sum_rings(const struct side *side)
{
    const int64_t rings[2] = {side->near[1], side->far[1]};
    for (int64_t k = 0; k < side->far[0] * rings[0]; k++) side->sums[k] = 0.0;
    for (int64_t q = 0; q < rings[0]; q++) {
        for (int64_t s = 0; s < rings[1]; s++) {
            if (!allowed(side, side->mask->offset_b, (int64_t[2]){q, s}, rings)) continue;
            for (int64_t r = 0; r < side->far[0]; r++)
                side->sums[r * rings[0] + q] += side->values[s * side->far[0] + r];
        }
    }
}

static void add_separable(const struct side *side)
{
    const int64_t columns[2] = {side->near[0], side->far[0]};
    sum_rings(side);
    for (int64_t p = 0; p < columns[0]; p++) {
        for (int64_t r = 0; r < columns[1]; r++) {
            if (!allowed(side, side->mask->offset_a, (int64_t[2]){p, r}, columns)) continue;
            for (int64_t q = 0; q < side->near[1]; q++)
                side->fans[q * columns[0] + p] += side->sums[r * side->near[1] + q];
        }
    }
}

struct fan_loop {
    const lr_lors *lors;
    const double *values;
    double *fans;
    double *sums; /* [threads][sums_size] */
    int64_t sums_size;
};

static void add_module(const struct fan_loop *loop, int near, int far, double *sums)
{
    const lr_lors *lors = loop->lors;
    const lr_scanner *scanner = lors->scanner;
    const int64_t pair = lr_lors_pair(lors, near, far);
    if (pair < 0) return;
    const struct side side = {.mask = &lors->masks->pairs[pair],
                              .words = lors->masks->words,
                              .near_is_lower = near < far,
                              .near = scanner->modules[near].crystals,
                              .far = scanner->modules[far].crystals,
                              .values = loop->values + scanner->first_crystal[far],
                              .fans = loop->fans + scanner->first_crystal[near],
                              .sums = sums};
    if (side.mask->kind == LR_MASK_ALL)
        add_all(&side);
    else if (side.mask->kind == LR_MASK_FULL)
        add_full(&side);
    else
        add_separable(&side);
}

/* A module's crystals are written by one worker only. */
static void fan_modules(void *user, int64_t begin, int64_t end, int worker)
{
    const struct fan_loop *loop = user;
    const lr_scanner *scanner = loop->lors->scanner;
    for (int64_t near = begin; near < end; near++) {
        for (int c = scanner->first_crystal[near]; c < scanner->first_crystal[near + 1]; c++) loop->fans[c] = 0.0;
        for (int far = 0; far < scanner->num_modules; far++)
            add_module(loop, (int)near, far, loop->sums + worker * loop->sums_size);
    }
}

lr_status lr_crystal_fans(const lr_lors *lors, const double *values, double *fans, int threads, const lr_log *log)
{
    const lr_scanner *scanner = lors->scanner;
    int64_t most[2] = {1, 1};
    for (int m = 0; m < scanner->num_modules; m++) {
        for (int k = 0; k < 2; k++) {
            const int size = scanner->modules[m].crystals[k];
            most[k] = size > most[k] ? size : most[k];
        }
    }
    threads = threads > 0 ? threads : lr_num_processors();
    struct fan_loop loop = {lors, values, fans, NULL, most[0] * most[1]};
    loop.sums = lr_alloc(threads * loop.sums_size, sizeof(double), "sums over fans", log);
    if (loop.sums == NULL) return LR_FAILED;
    lr_parallel_for(threads, scanner->num_modules, 1, fan_modules, &loop);
    free(loop.sums);
    return LR_OK;
}
