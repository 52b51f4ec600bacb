/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The rank of each pair of modules. */
#include "base/log.h"
#include "base/mem.h"

#include <lr/comm.h>
#include <stdlib.h>

/* A subset is cut into this number of pieces per rank, if it has enough pairs. */
enum { PIECES_OF_RANK = 8 };

static double cost_of(const lr_partition_params *params, int64_t pair)
{
    return params->costs != NULL ? params->costs[pair]
                                 : (double)(params->lors->offsets[pair + 1] - params->lors->offsets[pair]);
}

lr_status lr_partition_sized(size_t given_bytes, const lr_partition_params *given, int32_t *rank_of)
{
    LR_TAKE(lr_partition_params, params, given, given_bytes);
    const int ranks = params->ranks;
    const int64_t num_pieces = (int64_t)ranks * PIECES_OF_RANK;
    if (ranks < 1 || params->subsets < 1) {
        return lr_error(params->log, LR_USAGE, "%d ranks and %d subsets: give at least 1 of each", ranks,
                        params->subsets);
    }
    double *load = lr_alloc(ranks, sizeof(*load), "shares of ranks", params->log);      /* cost of all subsets so far */
    double *within = lr_alloc(ranks, sizeof(*within), "shares of ranks", params->log);  /* cost of the current subset */
    int64_t *counts = lr_alloc(ranks, sizeof(*counts), "shares of ranks", params->log); /* number of pairs */
    lr_status status = load != NULL && within != NULL && counts != NULL ? LR_OK : LR_FAILED;
    for (int subset = 0; status == LR_OK && subset < params->subsets; subset++) {
        int64_t num_pairs = 0;
        double cost = 0.0, left = 0.0;
        int rank = 0;
        for (int64_t pair = 0; pair < params->lors->num_pairs; pair++) {
            num_pairs += params->subset_of[pair] == subset;
            cost += params->subset_of[pair] == subset ? cost_of(params, pair) : 0.0;
        }
        for (int r = 0; r < ranks; r++) within[r] = 0.0;
        for (int64_t pair = 0; pair < params->lors->num_pairs; pair++) {
            if (params->subset_of[pair] != subset) continue;
            if (left <= 0.0 || num_pairs <= num_pieces) {
                /* The next piece goes to the rank with the lowest cost in this subset. If costs are equal, the lowest
                 * cost of all subsets decides, and then the lowest number of pairs. */
                rank = 0;
                for (int r = 1; r < ranks; r++) {
                    const double a[3] = {within[r], load[r], (double)counts[r]};
                    const double b[3] = {within[rank], load[rank], (double)counts[rank]};
                    const int k = a[0] != b[0] ? 0 : a[1] != b[1] ? 1 : 2;
                    rank = a[k] < b[k] ? r : rank;
                }
                left += cost / (double)num_pieces;
            }
            const double own = cost_of(params, pair);
            left -= own;
            within[rank] += own;
            load[rank] += own;
            counts[rank]++;
            rank_of[pair] = rank;
        }
    }
    for (int r = 0; status == LR_OK && r < ranks; r++) {
        if (counts[r] == 0) {
            status = lr_error(params->log, LR_USAGE,
                              "%d ranks for %lld %s: rank %d would have nothing to do: start fewer ranks", ranks,
                              (long long)params->lors->num_pairs,
                              params->lors->scanner != NULL ? "pairs of modules" : "views", r);
        }
    }
    lr_free_all(load, within, counts);
    return status;
}
