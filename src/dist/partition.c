/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Which rank has which pairs of modules. */
#include "base/log.h"
#include "base/mem.h"

#include <lr/comm.h>
#include <stdlib.h>

/* Pieces of a subset for each rank, as far as there are pairs. */
enum { PIECES_OF_RANK = 8 };

struct deal {
    const lr_partition_params *params;
    double *load;   /* [ranks] of all subsets so far */
    double *within; /* [ranks] of the current subset */
    int64_t *held;  /* [ranks] pairs */
    int32_t *rank_of;
};

static double cost_of(const lr_partition_params *params, int64_t pair)
{
    return params->costs != NULL ? params->costs[pair]
                                 : (double)(params->lors->offsets[pair + 1] - params->lors->offsets[pair]);
}

static void deal_subset(struct deal *deal, int subset, int64_t num_pairs, double cost)
{
    const lr_partition_params *params = deal->params;
    const int64_t wanted = (int64_t)params->ranks * PIECES_OF_RANK;
    const double piece = cost / (double)wanted;
    double left = 0.0;
    int rank = 0;
    for (int r = 0; r < params->ranks; r++) deal->within[r] = 0.0;
    for (int64_t pair = 0; pair < params->lors->num_pairs; pair++) {
        if (params->subset_of[pair] != subset) continue;
        if (left <= 0.0 || num_pairs <= wanted) {
            /* The rank with the least to do of the subset, then of all; one without any pair goes before others
             * that have no more. */
            int best = 0;
            for (int r = 1; r < deal->params->ranks; r++) {
                const double a[3] = {deal->within[r], deal->load[r], (double)deal->held[r]};
                const double b[3] = {deal->within[best], deal->load[best], (double)deal->held[best]};
                const int k = a[0] != b[0] ? 0 : a[1] != b[1] ? 1 : 2;
                best = a[k] < b[k] ? r : best;
            }
            rank = best;

            left += piece;
        }
        const double own = cost_of(params, pair);
        left -= own;
        deal->within[rank] += own;
        deal->load[rank] += own;
        deal->held[rank]++;
        deal->rank_of[pair] = rank;
    }
}

static lr_status check_held(const struct deal *deal)
{
    const lr_partition_params *params = deal->params;
    for (int r = 0; r < params->ranks; r++) {
        if (deal->held[r] == 0) {
            return lr_error(params->log, LR_USAGE,
                            "%d ranks for %lld %s: rank %d would have nothing to do: start fewer "
                            "ranks",
                            params->ranks, (long long)params->lors->num_pairs,
                            params->lors->scanner != NULL ? "pairs of modules" : "views", r);
        }
    }
    return LR_OK;
}

static void deal_all(struct deal *deal)
{
    const lr_partition_params *params = deal->params;
    for (int subset = 0; subset < params->subsets; subset++) {
        int64_t num_pairs = 0;
        double cost = 0.0;
        for (int64_t pair = 0; pair < params->lors->num_pairs; pair++) {
            num_pairs += params->subset_of[pair] == subset;
            cost += params->subset_of[pair] == subset ? cost_of(params, pair) : 0.0;
        }
        deal_subset(deal, subset, num_pairs, cost);
    }
}

lr_status lr_partition(const lr_partition_params *params, int32_t *rank_of)
{
    struct deal deal = {.params = params, .rank_of = rank_of};
    if (params->ranks < 1 || params->subsets < 1) {
        return lr_error(params->log, LR_USAGE, "%d ranks and %d subsets: give at least 1 of each", params->ranks,
                        params->subsets);
    }
    deal.load = lr_alloc(params->ranks, sizeof(*deal.load), "shares of ranks", params->log);
    deal.within = lr_alloc(params->ranks, sizeof(*deal.within), "shares of ranks", params->log);
    deal.held = lr_alloc(params->ranks, sizeof(*deal.held), "shares of ranks", params->log);
    lr_status status = deal.load != NULL && deal.within != NULL && deal.held != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) {
        deal_all(&deal);
        status = check_held(&deal);
    }
    free(deal.load);
    free(deal.within);
    free(deal.held);
    return status;
}
