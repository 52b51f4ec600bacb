/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What live reconstruction has beside the rest where it composes guesses: LORs, data and projector of each.
 * docs/method/cluster.md, "paper"; the ranks of the cluster are guesses of one process here. */
#ifndef LR_VIEWER_LIVE_COMPOSE_H
#define LR_VIEWER_LIVE_COMPOSE_H

#include <lr/lr.h>

struct live_compose;

struct live_guess {
    struct live_compose *compose;
    int number; /* from 0 */
    lr_lors *lors;
    lr_lor_data *data;
    lr_operator *op;
    lr_crystal_product randoms; /* of its LORs */
    lr_progress progress;       /* says which guess is meant */
};

/* Zero is valid. Must not move while it is open. */
struct live_compose {
    int count;
    struct live_guess *guesses; /* owned [count] */
    lr_recon_params *params;    /* owned [count], for lr_compose */
    const lr_progress *progress;
    lr_status (*iteration)(void *user, int guess, const lr_iteration *done);
    void *user;
};

/* Lives until live_compose_finish. */
struct live_compose_setup {
    int count;
    const lr_lors *lors;         /* all */
    const lr_lor_data *data;     /* of all */
    const lr_randoms *randoms;   /* of all; NULL = none */
    lr_operator_params operator; /* of each guess, but for its LORs */
    lr_recon_params recon;       /* of each guess, but for operator, data and additive term */
    /* After an iteration of a guess by itself. */
    lr_status (*iteration)(void *user, int guess, const lr_iteration *done);
    void *user;
};

/* Deals the pairs of modules as the cluster does (lr_osem_subsets), and makes a projector of each share; the
 * first one's backend is that of all. errors: LR_USAGE for more guesses than pairs; LR_CANCELLED; LR_FAILED. Finish
 * in any case. */
lr_status live_compose_open(struct live_compose *compose, const struct live_compose_setup *setup);
void live_compose_finish(struct live_compose *compose);

#endif
