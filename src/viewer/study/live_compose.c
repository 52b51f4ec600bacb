/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/live_compose.h"

#include "base/log.h"
#include "base/mem.h"
#include "viewer/study/operators.h"

#include <stdio.h>
#include <stdlib.h>

/* --- what a guess tells --- */

static bool report(void *user, const char *what, double done, double total)
{
    const struct live_guess *guess = user;
    char text[256];
    snprintf(text, sizeof(text), "guess %d of %d: %s", guess->number + 1, guess->compose->count, what);
    return lr_progress_report(guess->compose->progress, text, done, total) == LR_OK;
}

static lr_status after_iteration(void *user, const lr_iteration *done)
{
    const struct live_guess *guess = user;
    return guess->compose->iteration(guess->compose->user, guess->number, done);
}

/* --- its share of the LORs --- */

static lr_status check_count(const struct live_compose_setup *setup)
{
    return setup->count <= setup->lors->num_pairs
               ? LR_OK
               : lr_error(setup->operator.log, LR_USAGE,
                          "%d guesses: each has whole pairs of modules, of which %s has %lld in "
                          "coincidence; take at most so many",
                          setup->count, setup->lors->scanner->name, (long long)setup->lors->num_pairs);
}

/* guess_of: [num_pairs] */
static lr_status take_lors(struct live_guess *guess, const struct live_compose_setup *setup, const int32_t *guess_of)
{
    const lr_log *log = setup->operator.log;
    const int64_t num_pairs = setup->lors->num_pairs;
    int32_t *pairs = lr_alloc(num_pairs, sizeof(*pairs), "pairs of a guess", log);
    lr_selection own = {.pairs = pairs};
    for (int64_t pair = 0; pairs != NULL && pair < num_pairs; pair++)
        if (guess_of[pair] == guess->number) pairs[own.num_pairs++] = (int32_t)pair;
    guess->lors = pairs != NULL ? lr_lors_create_part(setup->lors, &own, log) : NULL;
    free(pairs);
    guess->data = guess->lors != NULL ? lr_lor_data_take(setup->data, setup->lors, guess->lors, log) : NULL;
    return guess->data != NULL ? LR_OK : LR_FAILED;
}

static lr_status open_guess(struct live_compose *compose, const struct live_compose_setup *setup,
                            const int32_t *guess_of, int k)
{
    struct live_guess *guess = &compose->guesses[k];
    lr_operator_params params = setup->operator;
    lr_recon_params *recon = &compose->params[k];
    *guess = (struct live_guess){.compose = compose, .number = k, .progress = {report, guess}};
    LR_TRY(take_lors(guess, setup, guess_of));
    params.lors = guess->lors;
    params.progress = &guess->progress;
    params.backend = k > 0 ? lr_operator_get_info(compose->guesses[0].op)->backend : params.backend;
    LR_TRY(operator_create(&params, &guess->op));
    *recon = setup->recon;
    recon->op = guess->op;
    recon->data = guess->data;
    recon->progress = &guess->progress;
    recon->iteration = after_iteration;
    recon->user = guess;
    if (setup->randoms != NULL) {
        guess->randoms = setup->randoms->product;
        guess->randoms.lors = guess->lors;
        recon->additive_source = lr_crystal_product_source(&guess->randoms);
    }
    return LR_OK;
}

lr_status live_compose_open(struct live_compose *compose, const struct live_compose_setup *setup)
{
    const lr_log *log = setup->operator.log;
    *compose =
        (struct live_compose){.progress = setup->operator.progress, .iteration = setup->iteration, .user = setup->user};
    LR_TRY(check_count(setup));
    compose->guesses = lr_alloc(setup->count, sizeof(*compose->guesses), "guesses", log);
    compose->params = lr_alloc(setup->count, sizeof(*compose->params), "guesses", log);
    int32_t *guess_of = lr_alloc(setup->lors->num_pairs, sizeof(*guess_of), "pairs of guesses", log);
    lr_status status = compose->guesses != NULL && compose->params != NULL && guess_of != NULL
                           ? lr_osem_subsets(setup->lors, setup->count, guess_of, log)
                           : LR_FAILED;
    compose->count = status == LR_OK ? setup->count : 0;
    for (int k = 0; k < setup->count && status == LR_OK; k++) status = open_guess(compose, setup, guess_of, k);
    free(guess_of);
    return status;
}

void live_compose_finish(struct live_compose *compose)
{
    for (int k = 0; k < compose->count; k++) {
        struct live_guess *guess = &compose->guesses[k];
        lr_operator_destroy(guess->op);
        lr_lor_data_destroy(guess->data);
        lr_lors_destroy(guess->lors);
    }
    free(compose->guesses);
    free(compose->params);
    *compose = (struct live_compose){0};
}
