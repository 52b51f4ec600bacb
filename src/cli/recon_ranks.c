/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon by several ranks: which pairs of modules, views or events are this rank's. */
#include "recon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct cli_option recon_ranks_options[] = {
    {"--combine", "HOW",
     "exact (the images of one process), paper (guesses of the ranks, composed), or distributed; "
     "default exact",
     false},
    {"--local-iterations", "N",
     "paper, distributed: of each rank between two exchanges; default: paper all, distributed 4", false},
    CLUSTER_EXCHANGE_OPTION,
    {0},
};

const char *const recon_schemes[] = {
    [RECON_EXACT] = "exact", [RECON_PAPER] = "paper", [RECON_DISTRIBUTED] = "distributed", NULL};

void recon_read_ranks(struct cli_args *args, struct recon_request *request)
{
    static const int64_t range[2] = {1, 1000000};
    request->combine = (enum recon_combine)args_word(args, "--combine", recon_schemes, 0);
    request->exchange = cluster_read_exchange(args);
    request->local_iterations =
        (int)args_int(args, "--local-iterations", request->combine == RECON_PAPER ? request->iterations : 4, range);
    if (request->combine == RECON_EXACT && args_has(args, "--local-iterations"))
        args_complain(args, "--local-iterations belongs to --combine paper or distributed");
    if (request->combine == RECON_PAPER && request->family == RECON_LISTMODE) {
        args_complain(args, "--combine paper weighs guesses by the counts of all LORs, also those "
                            "without any, and list mode has only events: take --combine exact or "
                            "distributed");
    }
    if (request->combine == RECON_PAPER && request->algorithm == RECON_BSREM) {
        args_complain(args, "--combine paper composes guesses of mlem, osem or ramla: the least "
                            "squares of its weights know of no prior");
    }
    if (request->combine == RECON_PAPER && request->save_every > 0) {
        args_complain(args, "--save-every belongs to --combine exact or distributed: the guesses "
                            "of ranks are no images of all counts");
    }
    if (request->combine == RECON_DISTRIBUTED && request->algorithm != RECON_MLEM) {
        args_complain(args, "--combine distributed maximises the likelihood by updates of its own: "
                            "take --algorithm mlem");
    }
}

lr_status recon_compare_ranks(const struct recon *recon, const char *what, uint64_t digest, int64_t count)
{
    char text[64];
    snprintf(text, sizeof(text), "%lld numbers, digest %016llx", (long long)count, (unsigned long long)digest);
    return lr_comm_same(recon->cluster.comm, what, text);
}

/* --- what all must have alike --- */

/* Options that a rank may have of its own: where it computes, what it says, what rank 0 alone writes. */
static bool is_own(const char *name)
{
    static const char *const own[] = {"--device",  "--threads",    "--max-memory", "-o",     "--png",
                                      "--verbose", "--checkpoint", "--quiet",      "--json", NULL};
    int k = 0;
    while (own[k] != NULL && strcmp(own[k], name) != 0) k++;
    return own[k] != NULL;
}

/* The part of an option that must be alike. Files may have other names on other machines: their contents are
 * compared when they have been read. */
static void tell_option(const struct cli_args *args, const struct cli_option *option, char text[256])
{
    const char *kind = option->metavar != NULL ? option->metavar : "";
    const bool is_file = strstr(kind, "FILE") != NULL || strstr(kind, "IMAGE") != NULL;
    const char *value = is_file ? NULL : args_text(args, option->name);
    const char *otherwise = args_has(args, option->name) ? "given" : "none";
    snprintf(text, 256, "%s", value != NULL ? value : otherwise);
}

/* One digest first; where it differs, option by option, so that one is named. */
lr_status recon_compare_options(const struct recon *recon, const struct cli_args *args)
{
    lr_comm *comm = recon->cluster.comm;
    for (int pass = 0; comm != NULL && pass < 2; pass++) {
        uint64_t digest = 0;
        for (int g = 0; g < CLI_MAX_GROUPS && args->syntax->groups[g].title != NULL; g++) {
            const struct cli_option *option = args->syntax->groups[g].options;
            for (; option->name != NULL; option++) {
                char text[256];
                tell_option(args, option, text);
                digest = recon_digest(digest, text, is_own(option->name) ? 0 : (int64_t)strlen(text) + 1);
                CLI_TRY(pass == 1 && !is_own(option->name) ? lr_comm_same(comm, option->name, text) : LR_OK);
            }
        }
        const double number = (double)(digest >> 12);
        double ends[2] = {number, -number};
        CLI_TRY(lr_comm_least(comm, ends, 2));
        if (ends[0] == -ends[1]) break;
    }
    return LR_OK;
}

lr_status recon_compare_contents(const struct recon *recon, const char *what, uint64_t digest)
{
    char text[64];
    snprintf(text, sizeof(text), digest != 0 ? "one with digest %016llx" : "none", (unsigned long long)digest);
    return lr_comm_same(recon->cluster.comm, what, text);
}

/* --- pairs of modules --- */

/* Guesses need LORs of all directions: ranks have what else are ordered subsets of whole pairs. */
lr_status recon_deal_pairs(struct recon *recon, const double *costs, int32_t *subset_of, int32_t *rank_of)
{
    const lr_lors *lors = recon->setup.lors;
    const lr_log *log = &recon->setup.report->log;
    if (recon->request.combine != RECON_EXACT) {
        const int ranks = recon->cluster.size;
        return ranks <= lors->num_pairs
                   ? lr_osem_subsets(lors, ranks, rank_of, log)
                   : report_error(recon->setup.report, LR_USAGE,
                                  "%d ranks: they have whole module pairs, of which %s has %lld in "
                                  "coincidence; start as many at most",
                                  ranks, recon->setup.scanner->name, (long long)lors->num_pairs);
    }
    CLI_TRY(lr_osem_interleave(lors, recon->request.subsets, &recon->share.interleave, log));
    const int groups = recon->request.subsets / recon->share.interleave;
    CLI_TRY(lr_osem_subsets(lors, groups, subset_of, log));
    return lr_partition(&(lr_partition_params){.lors = lors,
                                               .ranks = recon->cluster.size,
                                               .subsets = groups,
                                               .subset_of = subset_of,
                                               .costs = costs,
                                               .log = log},
                        rank_of);
}

void recon_finish_share(struct recon *recon)
{
    free(recon->share.subset_of);
    free(recon->share.ranges);
    recon->share = (struct recon_share){0};
}

/* --- all --- */

void recon_ranks_json(const struct recon *recon, struct json *json)
{
    if (recon->cluster.comm == NULL) return;
    json_text(json, "combine", recon_schemes[recon->request.combine]);
    if (recon->request.combine != RECON_EXACT) json_int(json, "local_iterations", recon->request.local_iterations);
}

/* Results that all share come from like models. */
lr_status recon_compare_operators(const struct recon *recon)
{
    char text[160];
    const lr_operator_info *info = lr_operator_get_info(recon->setup.op);
    if (recon->cluster.comm == NULL) return LR_OK;
    snprintf(text, sizeof(text), "%s, %s, %d rays, %d x %d x %d samples, %lld voxels", info->backend,
             info->mode == LR_MODE_EXACT ? "exact" : "sampled", info->rays, info->samples[0], info->samples[1],
             info->samples[2], (long long)info->num_voxels);
    return lr_comm_same(recon->cluster.comm, "backend or model", text);
}
