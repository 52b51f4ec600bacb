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
     "paper, distributed: of each rank between two exchanges; default: paper all, distributed 4",
     false},
    CLUSTER_EXCHANGE_OPTION,
    {0},
};

void recon_read_ranks(struct cli_args *args, struct recon_request *request)
{
    static const char *const names[] = {"exact", "paper", "distributed", NULL};
    static const int64_t range[2] = {1, 1000000};
    request->combine = (enum recon_combine)args_word(args, "--combine", names, 0);
    request->exchange = cluster_read_exchange(args);
    request->local_iterations =
        (int)args_int(args, "--local-iterations",
                      request->combine == RECON_PAPER ? request->iterations : 4, range);
    if (request->combine == RECON_EXACT && args_has(args, "--local-iterations")) {
        args_complain(args, "--local-iterations belongs to --combine paper or distributed");
    }
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

static lr_status refuse_memory(const struct recon *recon)
{
    return report_error(recon->setup.report, LR_FAILED, "no memory for the shares of the ranks");
}

/* subset_of: numbers of subsets become places in the order of visits. */
static lr_status number_visits(const struct recon *recon, int32_t *subset_of, int64_t count)
{
    const int subsets = recon->request.subsets;
    int32_t *order = calloc((size_t)subsets, sizeof(*order));
    int32_t *visit_of = calloc((size_t)subsets, sizeof(*visit_of));
    if (order != NULL && visit_of != NULL) {
        lr_osem_visits(subsets, order);
        for (int n = 0; n < subsets; n++) {
            visit_of[order[n]] = n;
        }
        for (int64_t k = 0; k < count; k++) {
            subset_of[k] = visit_of[subset_of[k]];
        }
    }
    const bool is_done = order != NULL && visit_of != NULL;
    free(order);
    free(visit_of);
    return is_done ? LR_OK : refuse_memory(recon);
}

/* Whether all ranks have the same, by a digest (Fowler, Noll and Vo's, 64 bits). */
lr_status recon_compare_ranks(struct recon *recon, const char *what, const void *bytes,
                              int64_t count)
{
    char text[64];
    if (recon->cluster.comm == NULL && recon->request.checkpoint == NULL) {
        return LR_OK;
    }
    recon_digest(recon, bytes, count);
    snprintf(text, sizeof(text), "%lld bytes, digest %016llx", (long long)count,
             (unsigned long long)recon->digest);
    return lr_comm_same(recon->cluster.comm, what, text);
}

/* --- pairs of modules --- */

static int64_t entries_before(const lr_lor_data *data, int64_t lor)
{
    int64_t low = 0, high = data->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (data->index[middle] < lor) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* What a pair costs where LORs with counts alone are projected: about as many as there are. */
static double *find_costs(const struct recon *recon)
{
    const lr_lors *lors = recon->setup.lors;
    const lr_lor_data *data = recon->inputs.data;
    double *costs = calloc((size_t)lors->num_pairs, sizeof(*costs));
    for (int64_t pair = 0; costs != NULL && pair < lors->num_pairs; pair++) {
        const double begin = (double)lors->offsets[pair], end = (double)lors->offsets[pair + 1];
        costs[pair] = data->index == NULL ? end - begin
                                          : (double)(entries_before(data, lors->offsets[pair + 1]) -
                                                     entries_before(data, lors->offsets[pair])) +
                                                1e-3 * (end - begin);
    }
    return costs;
}

/* Guesses need LORs of all directions: ranks have what else are ordered subsets. */
static lr_status deal_pairs(const struct recon *recon, int32_t *subset_of, int32_t *rank_of)
{
    const lr_lors *lors = recon->setup.lors;
    const lr_log *log = &recon->setup.report->log;
    const bool is_exact = recon->request.combine == RECON_EXACT;
    const int subsets = is_exact ? recon->request.subsets : recon->cluster.size;
    if (subsets > lors->num_pairs) {
        return report_error(recon->setup.report, LR_USAGE,
                            "%d %s: they are made of whole module pairs, of which %s has %lld in "
                            "coincidence; give 1 to that many",
                            subsets, is_exact ? "subsets" : "ranks", recon->setup.scanner->name,
                            (long long)lors->num_pairs);
    }
    CLI_TRY(lr_osem_subsets(lors, subsets, is_exact ? subset_of : rank_of));
    if (!is_exact) {
        return LR_OK;
    }
    double *costs = find_costs(recon);
    if (costs == NULL) {
        return refuse_memory(recon);
    }
    const lr_partition_params params = {.lors = lors,
                                        .ranks = recon->cluster.size,
                                        .subsets = subsets,
                                        .subset_of = subset_of,
                                        .costs = costs,
                                        .log = log};
    const lr_status status = lr_partition(&params, rank_of);
    free(costs);
    return status == LR_OK ? number_visits(recon, subset_of, lors->num_pairs) : status;
}

static lr_status take_data(struct recon *recon, lr_lor_data **data, const lr_lors *part)
{
    if (*data == NULL) {
        return LR_OK;
    }
    lr_lor_data *taken =
        lr_lor_data_take(*data, recon->setup.lors, part, &recon->setup.report->log);
    lr_lor_data_destroy(*data);
    *data = taken;
    return taken != NULL ? LR_OK : report_reason(recon->setup.report);
}

/* From here on the setup has the LORs of these pairs alone. */
static lr_status keep_pairs(struct recon *recon, const lr_selection *own)
{
    struct setup *setup = &recon->setup;
    lr_lors *part = lr_lors_create_part(setup->lors, own, &setup->report->log);
    if (part == NULL) {
        return report_reason(setup->report);
    }
    lr_status status = take_data(recon, &recon->inputs.data, part);
    status = status == LR_OK ? take_data(recon, &recon->inputs.additive, part) : status;
    lr_lor_data_destroy(recon->inputs.delayeds);
    recon->inputs.delayeds = NULL;
    if (recon->inputs.randoms != NULL) {
        recon->inputs.randoms->product.lors = part;
    }
    lr_lors_destroy(setup->lors);
    setup->lors = part;
    setup->params.lors = part;
    return status;
}

static lr_status take_pairs(struct recon *recon, int32_t *pairs, int32_t *rank_of)
{
    const int64_t num_pairs = recon->setup.lors->num_pairs;
    lr_selection own = {.pairs = pairs};
    CLI_TRY(deal_pairs(recon, recon->share.subset_of, rank_of));
    for (int64_t pair = 0; pair < num_pairs; pair++) {
        if (rank_of[pair] == recon->cluster.rank) {
            recon->share.subset_of[own.num_pairs] = recon->share.subset_of[pair];
            pairs[own.num_pairs++] = (int32_t)pair;
        }
    }
    report_info(recon->setup.report, "rank 0 has %lld of %lld pairs of modules",
                (long long)own.num_pairs, (long long)num_pairs);
    return keep_pairs(recon, &own);
}

static lr_status compare_data(struct recon *recon, const lr_lor_data *data)
{
    if (data == NULL) {
        return LR_OK;
    }
    CLI_TRY(recon_compare_ranks(recon, "measurement", data->values,
                                data->count * (int64_t)sizeof(*data->values)));
    return data->index == NULL ? LR_OK
                               : recon_compare_ranks(recon, "measurement", data->index,
                                                     data->count * (int64_t)sizeof(*data->index));
}

lr_status recon_share_pairs(struct recon *recon)
{
    CLI_TRY(compare_data(recon, recon->inputs.data));
    CLI_TRY(compare_data(recon, recon->inputs.additive));
    if (recon->cluster.comm == NULL) {
        return LR_OK;
    }
    const size_t num_pairs = (size_t)recon->setup.lors->num_pairs;
    int32_t *pairs = calloc(num_pairs, sizeof(*pairs));
    int32_t *rank_of = calloc(num_pairs, sizeof(*rank_of));
    recon->share.subset_of = calloc(num_pairs, sizeof(*recon->share.subset_of));
    const bool has_all = pairs != NULL && rank_of != NULL && recon->share.subset_of != NULL;
    const lr_status status = has_all ? take_pairs(recon, pairs, rank_of) : refuse_memory(recon);
    free(pairs);
    free(rank_of);
    return status;
}

/* --- views --- */

/* Views go to ranks in turn, subset by subset. */
static int list_views(const struct recon *recon, int num_views, int32_t *views, int32_t *subset_of)
{
    const int subsets = recon->request.combine == RECON_EXACT ? recon->request.subsets : 1;
    int count = 0, dealt = 0;
    for (int k = 0; k < num_views; k++) {
        views[k] = -1;
    }
    for (int s = 0; s < subsets; s++) {
        for (int k = s; k < num_views; k += subsets, dealt++) {
            views[k] = dealt % recon->cluster.size == recon->cluster.rank ? s : -1;
        }
    }
    for (int k = 0; k < num_views; k++) {
        if (views[k] >= 0) {
            subset_of[count] = views[k];
            views[count++] = k;
        }
    }
    return count;
}

static lr_histo_images *copy_views(const struct recon *recon, const lr_histo_images *histo,
                                   const int32_t *views, int count)
{
    const size_t num_voxels = (size_t)lr_grid_num_voxels(&histo->grid);
    lr_view *own = calloc((size_t)count + 1, sizeof(*own));
    for (int k = 0; own != NULL && k < count; k++) {
        own[k] = histo->views[views[k]];
    }
    lr_histo_images *taken =
        own != NULL ? lr_histo_images_create(&histo->grid, own, count, &recon->setup.report->log)
                    : NULL;
    for (int k = 0; taken != NULL && k < count; k++) {
        memcpy(taken->values + (size_t)k * num_voxels,
               histo->values + (size_t)views[k] * num_voxels, num_voxels * sizeof(float));
    }
    free(own);
    return taken;
}

static lr_status check_views(const struct recon *recon, int num_views)
{
    if (num_views < recon->cluster.size) {
        return report_error(recon->setup.report, LR_USAGE,
                            "%d ranks for %d views: start fewer ranks", recon->cluster.size,
                            num_views);
    }
    if (recon->request.subsets > num_views) {
        return report_error(recon->setup.report, LR_USAGE,
                            "%d subsets: they are made of views, of which there are %d; give 1 to "
                            "that many",
                            recon->request.subsets, num_views);
    }
    return LR_OK;
}

lr_status recon_share_views(struct recon *recon, lr_histo_images **histo)
{
    const int num_views = (*histo)->num_views;
    CLI_TRY(recon_compare_ranks(recon, "file of histo-images", (*histo)->values,
                                num_views * lr_grid_num_voxels(&(*histo)->grid) *
                                    (int64_t)sizeof(float)));
    if (recon->cluster.comm == NULL) {
        return LR_OK;
    }
    CLI_TRY(check_views(recon, num_views));
    free(recon->share.subset_of);
    int32_t *views = calloc((size_t)num_views, sizeof(*views));
    recon->share.subset_of = calloc((size_t)num_views, sizeof(*recon->share.subset_of));
    if (views == NULL || recon->share.subset_of == NULL) {
        free(views);
        return refuse_memory(recon);
    }
    const int count = list_views(recon, num_views, views, recon->share.subset_of);
    lr_histo_images *taken = copy_views(recon, *histo, views, count);
    free(views);
    if (taken == NULL) {
        return report_reason(recon->setup.report);
    }
    lr_histo_images_destroy(*histo);
    *histo = taken;
    return recon->request.combine == RECON_EXACT
               ? number_visits(recon, recon->share.subset_of, count)
               : LR_OK;
}

/* --- events --- */

/* Range r of a list, and of that this rank's slice. */
static int64_t cut_evenly(int64_t count, int64_t parts, int64_t k)
{
    return count / parts * k + (count % parts < k ? count % parts : k);
}

static void keep_slices(struct recon *recon, int num_ranges)
{
    lr_event_list *list = recon->inputs.list;
    const int64_t all = list->count;
    int64_t kept = 0;
    for (int r = 0; r < num_ranges; r++) {
        const int64_t begin = cut_evenly(all, num_ranges, r);
        const int64_t count = cut_evenly(all, num_ranges, r + 1) - begin;
        const int64_t from = begin + cut_evenly(count, recon->cluster.size, recon->cluster.rank);
        const int64_t to = begin + cut_evenly(count, recon->cluster.size, recon->cluster.rank + 1);
        recon->share.ranges[r] = kept;
        for (int64_t k = from; k < to; k++) {
            recon_keep_event(&recon->inputs, k, kept++);
        }
    }
    recon->share.ranges[num_ranges] = kept;
    list->count = kept;
}

lr_status recon_share_events(struct recon *recon)
{
    const int num_ranges = recon->request.subsets;
    lr_event_list *list = recon->inputs.list;
    if (recon->cluster.comm != NULL || recon->request.checkpoint != NULL) {
        recon_digest_events(recon);
    }
    CLI_TRY(recon_compare_ranks(recon, "list of events", &list->count, sizeof(list->count)));
    if (recon->cluster.comm == NULL) {
        return LR_OK;
    }
    if (list->count / num_ranges < recon->cluster.size) {
        return report_error(recon->setup.report, LR_USAGE,
                            "%d ranks for %lld events in %d subsets: some would have none: start "
                            "fewer ranks, or take fewer subsets",
                            recon->cluster.size, (long long)list->count, num_ranges);
    }
    recon_finish_share(recon);
    recon->share.subset_of = calloc((size_t)num_ranges, sizeof(*recon->share.subset_of));
    recon->share.ranges = calloc((size_t)num_ranges + 1, sizeof(*recon->share.ranges));
    if (recon->share.subset_of == NULL || recon->share.ranges == NULL) {
        return refuse_memory(recon);
    }
    keep_slices(recon, num_ranges);
    for (int r = 0; r < num_ranges; r++) {
        recon->share.subset_of[r] = r;
    }
    return number_visits(recon, recon->share.subset_of, num_ranges);
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
    static const char *const names[] = {"exact", "paper", "distributed"};
    if (recon->cluster.comm == NULL) {
        return;
    }
    json_text(json, "combine", names[recon->request.combine]);
    if (recon->request.combine != RECON_EXACT) {
        json_int(json, "local_iterations", recon->request.local_iterations);
    }
}

/* Results that all share come from like models. */
lr_status recon_compare_operators(const struct recon *recon)
{
    char text[160];
    const lr_operator_info *info = lr_operator_get_info(recon->setup.op);
    if (recon->cluster.comm == NULL) {
        return LR_OK;
    }
    snprintf(text, sizeof(text), "%s, %s, %d rays, %d x %d x %d samples, %lld voxels",
             info->backend, info->mode == LR_MODE_EXACT ? "exact" : "sampled", info->rays,
             info->samples[0], info->samples[1], info->samples[2], (long long)info->num_voxels);
    return lr_comm_same(recon->cluster.comm, "backend or model", text);
}
