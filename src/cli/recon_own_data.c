/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Several ranks: which pairs of modules, or views, are this rank's, and their numbers alone. */
#include "recon.h"

#include <stdlib.h>
#include <string.h>

/* LOR data on their way from a file, or from memory where they had to be read whole. */
struct own_data {
    struct recon *recon;
    const char *path; /* NULL = there are none */
    bool draws;       /* of --bootstrap, as they come */
    bool is_surveyed, is_sparse;
    int64_t count;       /* numbers of the file */
    int64_t *entries;    /* owned [num_pairs] of sparse data, of each pair of modules */
    uint64_t digests[2]; /* of values and of LORs */
    double sums[2];      /* before they are drawn, and after */
    float *drawn;        /* owned [room] */
    int64_t room;
    int64_t pair;          /* that of the last number */
    int64_t kept_room;     /* of `to`, where data are sparse */
    const int64_t *places; /* [num_pairs] where LORs of the pair begin in this rank's; -1 = another's */
    lr_lor_data *to;       /* owned: this rank's */
};

static lr_status refuse_memory(const struct recon *recon)
{
    return report_error(recon->setup.report, LR_FAILED, "no memory for the data of a rank");
}

static void finish_data(struct own_data *data)
{
    free(data->entries);
    free(data->drawn);
    lr_lor_data_destroy(data->to);
}

/* --- reading --- */

/* The values, drawn again where that is asked for; NULL without memory, logged. */
static const float *draw(struct own_data *data, const lr_lor_data *some, int64_t first)
{
    const struct recon *recon = data->recon;
    const lr_poisson_stream stream = {
        .seed = recon->request.bootstrap_seed, .purpose = LR_RANDOM_REPLICATE, .first = first};
    if (!data->draws) return some->values;
    if (some->count > data->room) {
        free(data->drawn);
        data->drawn = malloc((size_t)some->count * sizeof(*data->drawn));
        data->room = data->drawn != NULL ? some->count : 0;
    }
    if (data->drawn == NULL) {
        (void)refuse_memory(recon);
        return NULL;
    }
    memcpy(data->drawn, some->values, (size_t)some->count * sizeof(*data->drawn));
    return lr_poisson_part(data->drawn, some->count, &stream, &recon->setup.report->log) == LR_OK ? data->drawn : NULL;
}

/* The pair of modules of a LOR that is not before the last one asked for. */
static int64_t find_pair(struct own_data *data, int64_t lor)
{
    const lr_lors *lors = data->recon->setup.lors;
    while (lor >= lors->offsets[data->pair + 1]) data->pair++;
    return data->pair;
}

static lr_status survey(void *user, const lr_lor_data *some, int64_t first)
{
    struct own_data *data = user;
    const float *values = draw(data, some, first);
    if (values == NULL) return report_reason(data->recon->setup.report);
    data->is_sparse = some->index != NULL;
    data->count += some->count;
    data->digests[0] = recon_digest(data->digests[0], values, some->count * (int64_t)sizeof(*values));
    data->sums[0] += common_sum(some->values, some->count);
    data->sums[1] += common_sum(values, some->count);
    if (some->index == NULL) return LR_OK;
    data->digests[1] = recon_digest(data->digests[1], some->index, some->count * (int64_t)sizeof(*some->index));
    for (int64_t k = 0; k < some->count; k++) data->entries[find_pair(data, some->index[k])]++;
    return LR_OK;
}

static lr_status refuse_changed(const struct own_data *data)
{
    return report_error(data->recon->setup.report, LR_BAD_INPUT, "%s: has changed while it was read", data->path);
}

/* Runs of LORs: pair by pair. */
static void keep_dense(struct own_data *data, const float *values, int64_t first, int64_t count)
{
    const int64_t *offsets = data->recon->setup.lors->offsets;
    for (int64_t lor = first; lor < first + count;) {
        const int64_t pair = find_pair(data, lor);
        const int64_t end = offsets[pair + 1] < first + count ? offsets[pair + 1] : first + count;
        if (data->places[pair] >= 0) {
            memcpy(data->to->values + data->places[pair] + (lor - offsets[pair]), values + (lor - first),
                   (size_t)(end - lor) * sizeof(*values));
        }
        lor = end;
    }
}

static void keep_sparse(struct own_data *data, const float *values, const lr_lor_data *some)
{
    const int64_t *offsets = data->recon->setup.lors->offsets;
    for (int64_t k = 0; k < some->count; k++) {
        const int64_t pair = find_pair(data, some->index[k]);
        if (data->places[pair] >= 0 && data->to->count < data->kept_room) {
            data->to->index[data->to->count] = data->places[pair] + (some->index[k] - offsets[pair]);
            data->to->values[data->to->count++] = values[k];
        }
    }
}

static lr_status keep(void *user, const lr_lor_data *some, int64_t first)
{
    struct own_data *data = user;
    const bool is_other = (some->index != NULL) != data->is_sparse;
    if (some->count > 0 && (is_other || first + some->count > data->count)) return refuse_changed(data);
    const float *values = draw(data, some, first);
    if (values == NULL) return report_reason(data->recon->setup.report);
    if (data->is_sparse)
        keep_sparse(data, values, some);
    else
        keep_dense(data, values, first, some->count);
    return LR_OK;
}

/* --- from what: a file, or data that had to be read whole --- */

static lr_status walk(struct own_data *data, const lr_lor_data *whole,
                      lr_status (*take)(void *user, const lr_lor_data *some, int64_t first))
{
    const struct recon *recon = data->recon;
    const lr_lor_data_sink sink = {take, data};
    data->pair = 0;
    if (whole != NULL) return take(data, whole, 0);
    return data->path != NULL ? lr_lor_data_scan(data->path, recon->setup.lors, &sink, &recon->setup.report->log)
                              : LR_OK;
}

static lr_status survey_data(struct own_data *data, const lr_lor_data *whole)
{
    const struct recon *recon = data->recon;
    data->entries = calloc((size_t)recon->setup.lors->num_pairs, sizeof(*data->entries));
    if (data->entries == NULL) return refuse_memory(recon);
    CLI_TRY(walk(data, whole, survey));
    data->is_surveyed = whole != NULL || data->path != NULL;
    data->is_sparse = data->is_sparse || data->count == 0; /* a file without numbers is not read to the end */
    if (data->draws) recon_say_replicate(recon, data->sums[0], data->sums[1]);
    return data->is_surveyed
               ? recon_compare_ranks(recon, "measurement", data->digests[0] ^ (data->digests[1] << 1), data->count)
               : LR_OK;
}

static lr_status keep_data(struct own_data *data, const lr_lor_data *whole, const lr_lors *part)
{
    const struct recon *recon = data->recon;
    int64_t count = 0;
    if (!data->is_surveyed) return LR_OK;
    for (int64_t pair = 0; pair < recon->setup.lors->num_pairs; pair++)
        count += data->places[pair] >= 0 ? data->entries[pair] : 0;
    count = data->is_sparse ? count : part->count;
    data->to = calloc(1, sizeof(*data->to));
    if (data->to == NULL) return refuse_memory(recon);
    data->to->values = calloc((size_t)count + 1, sizeof(*data->to->values));
    data->to->index = data->is_sparse ? calloc((size_t)count + 1, sizeof(*data->to->index)) : NULL;
    if (data->to->values == NULL || (data->is_sparse && data->to->index == NULL)) return refuse_memory(recon);
    data->to->count = data->is_sparse ? 0 : count;
    data->kept_room = count;
    CLI_TRY(walk(data, whole, keep));
    return data->to->count == count ? LR_OK : refuse_changed(data);
}

/* --- digests --- */

/* SplitMix64's last step (Steele, Lea and Flood 2014). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A sum over LORs with counts, so that it is the same however they are kept and dealt. */
static uint64_t digest_numbers(const lr_lors *lors, const lr_lors *part, const lr_lor_data *data)
{
    uint64_t sum = 0;
    int64_t pair = 0, before = -1, shift = 0;
    for (int64_t k = 0; data != NULL && k < data->count; k++) {
        const int64_t lor = data->index != NULL ? data->index[k] : k;
        uint32_t bits;
        if (data->values[k] == 0.0f) continue;
        while (lor >= part->offsets[pair + 1]) pair++;
        if (pair != before) {
            const int32_t *modules = part->pairs[pair];
            shift = lors->offsets[lr_lors_pair(lors, modules[0], modules[1])] - part->offsets[pair];
            before = pair;
        }
        memcpy(&bits, &data->values[k], sizeof(bits));
        sum += mix(mix((uint64_t)(lor + shift) + 1) + bits);
    }
    return sum;
}

/* Over ranks, modulo 2^64: doubles hold sums of 22 bits exactly. */
static lr_status add_up(const struct recon *recon, uint64_t *sum)
{
    enum { BITS = 22, MASK = (1 << BITS) - 1 };
    double pieces[3] = {(double)(*sum & MASK), (double)(*sum >> BITS & MASK), (double)(*sum >> 2 * BITS)};
    CLI_TRY(lr_comm_sum_numbers(recon->cluster.comm, pieces, 3));
    *sum = (uint64_t)pieces[0] + ((uint64_t)pieces[1] << BITS) + ((uint64_t)pieces[2] << 2 * BITS);
    return LR_OK;
}

lr_status recon_digest_data(struct recon *recon, const lr_lors *part)
{
    const lr_lors *lors = recon->setup.lors;
    uint64_t sums[2] = {digest_numbers(lors, part, recon->inputs.data),
                        digest_numbers(lors, part, recon->inputs.additive)};
    CLI_TRY(add_up(recon, &sums[0]));
    CLI_TRY(add_up(recon, &sums[1]));
    recon->digest = recon_digest(0, sums, sizeof(sums));
    return LR_OK;
}

/* --- events that are counted --- */

struct own_counts {
    struct recon *recon;
    double *costs, *ends; /* [num_pairs] events of each; [num_crystals] of delayeds */
    double delayeds;
    uint64_t digest;
    int64_t kept, left_out;
    int64_t *lors; /* owned [room] of the events at hand */
    int64_t room;
};

static lr_status make_room_for_lors(struct own_counts *counts, int64_t count)
{
    if (count <= counts->room) return LR_OK;
    free(counts->lors);
    counts->lors = malloc((size_t)count * sizeof(*counts->lors));
    counts->room = counts->lors != NULL ? count : 0;
    return counts->lors != NULL ? LR_OK : refuse_memory(counts->recon);
}

/* The pair of modules that has a LOR. */
static int64_t pair_of(const lr_lors *lors, int64_t lor)
{
    int64_t low = 0, high = lors->num_pairs;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        *(lor < lors->offsets[middle] ? &high : &low) = middle;
    }
    return low;
}

static lr_status count_events(void *user, const lr_event *events, int64_t count)
{
    struct own_counts *counts = user;
    const struct setup *setup = &counts->recon->setup;
    const lr_lors *lors = setup->lors;
    CLI_TRY(make_room_for_lors(counts, count));
    lr_events_lors(lors, &(lr_event_span){events, count, setup->params.threads}, counts->lors);
    for (int64_t k = 0; k < count; k++) {
        const int32_t *crystals = events[k].crystals;
        const int64_t lor = counts->lors[k];
        const bool is_kept = lor >= 0;
        counts->left_out += !is_kept;
        if (is_kept && events[k].is_delayed) {
            counts->delayeds += events[k].weight;
            counts->ends[crystals[0]] += events[k].weight;
            counts->ends[crystals[1]] += events[k].weight;
        } else if (is_kept) {
            counts->kept++;
            counts->costs[pair_of(lors, lor)] += 1;
            recon_digest_event(&counts->digest, &events[k]);
        }
    }
    return LR_OK;
}

static lr_status survey_events(struct own_counts *counts)
{
    struct recon *recon = counts->recon;
    const lr_event_sink sink = {.take = count_events, .user = counts};
    const lr_events_source source = recon_events_source(recon);
    lr_events_info info;
    lr_status status = lr_events_read(&source, &sink, &info);
    if (status == LR_OK) {
        info.counts.not_in_coincidence = counts->left_out;
        recon_say_binned(recon, &info);
        status = recon_compare_ranks(recon, "list of events", counts->digest, counts->kept);
    }
    lr_events_info_finish(&info);
    CLI_TRY(status);
    const bool wanted = recon->request.randoms == RECON_RANDOMS_AUTO && recon->request.additive == NULL;
    return wanted && counts->delayeds > 0 ? recon_estimate_randoms(recon, counts->ends, (double)counts->kept) : LR_OK;
}

/* Those of this rank's pairs. What was said of the file is not said again. */
static lr_status bin_events(struct recon *recon, const lr_lors *part)
{
    lr_log log = recon_quiet_log(recon);
    lr_events_source source = recon_events_source(recon);
    lr_prompts_delayeds found;
    source.log = &log;
    CLI_TRY(lr_events_bin(&source, part, &found, NULL));
    recon->inputs.data = found.prompts;
    lr_lor_data_destroy(found.delayeds);
    return LR_OK;
}

/* --- who has what --- */

/* From here on the setup has the LORs of these pairs alone. */
static void take_lors(struct recon *recon, lr_lors *part)
{
    struct setup *setup = &recon->setup;
    if (recon->inputs.randoms != NULL) recon->inputs.randoms->product.lors = part;
    lr_lors_destroy(setup->lors);
    setup->lors = part;
    setup->params.lors = part;
}

/* places: where LORs of each pair begin in the part. */
static lr_lors *make_part(struct recon *recon, const int32_t *rank_of, int64_t *places)
{
    const lr_lors *lors = recon->setup.lors;
    int32_t *pairs = calloc((size_t)lors->num_pairs, sizeof(*pairs));
    lr_selection own = {.pairs = pairs};
    for (int64_t pair = 0; pairs != NULL && pair < lors->num_pairs; pair++) {
        places[pair] = -1;
        if (rank_of[pair] == recon->cluster.rank) {
            recon->share.subset_of[own.num_pairs] = recon->share.subset_of[pair];
            pairs[own.num_pairs++] = (int32_t)pair;
        }
    }
    lr_lors *part = pairs != NULL ? lr_lors_create_part(lors, &own, &recon->setup.report->log) : NULL;
    for (int64_t k = 0; part != NULL && k < own.num_pairs; k++) places[pairs[k]] = part->offsets[k];
    if (part != NULL) {
        report_info(recon->setup.report, "rank 0 has %lld of %lld pairs of modules", (long long)own.num_pairs,
                    (long long)lors->num_pairs);
    }
    free(pairs);
    return part;
}

/* What a pair costs where LORs with counts alone are projected: about as many as there are. */
static void find_costs(const struct own_data *data, double *costs)
{
    const lr_lors *lors = data->recon->setup.lors;
    for (int64_t pair = 0; pair < lors->num_pairs; pair++) {
        const double all = (double)(lors->offsets[pair + 1] - lors->offsets[pair]);
        const double counted = data->is_surveyed ? (double)data->entries[pair] : costs[pair];
        costs[pair] = data->is_surveyed && !data->is_sparse ? all : counted + 1e-3 * all;
    }
}

/* Arrays of one number for each pair. */
struct of_pairs {
    double *costs;    /* owned */
    int32_t *rank_of; /* owned */
    int64_t *places;  /* owned */
};

static void keep_taken(struct recon *recon, struct own_data *data, struct own_data *additive)
{
    if (data->to != NULL) {
        lr_lor_data_destroy(recon->inputs.data);
        recon->inputs.data = data->to;
        data->to = NULL;
    }
    recon->inputs.additive = additive->to;
    additive->to = NULL;
    lr_lor_data_destroy(recon->inputs.delayeds);
    recon->inputs.delayeds = NULL;
}

static lr_status share_out(struct recon *recon, struct own_data *data, struct own_data *additive, struct of_pairs *of)
{
    find_costs(data, of->costs);
    CLI_TRY(recon_deal_pairs(recon, of->costs, recon->share.subset_of, of->rank_of));
    lr_lors *part = make_part(recon, of->rank_of, of->places);
    if (part == NULL) return report_reason(recon->setup.report);
    data->places = additive->places = of->places;
    lr_status status = keep_data(data, recon->inputs.data, part);
    status = status == LR_OK ? keep_data(additive, NULL, part) : status;
    if (status == LR_OK) {
        keep_taken(recon, data, additive);
        status = data->is_surveyed ? LR_OK : bin_events(recon, part);
    }
    if (status == LR_OK) status = recon_digest_data(recon, part);
    take_lors(recon, part);
    return status;
}

static lr_status survey_all(struct recon *recon, struct own_data *data, struct own_data *additive, double *costs)
{
    if (data->path != NULL || recon->inputs.data != NULL) {
        CLI_TRY(survey_data(data, recon->inputs.data));
    } else {
        struct own_counts counts = {.recon = recon, .costs = costs};
        counts.ends = calloc((size_t)recon->setup.scanner->num_crystals, sizeof(*counts.ends));
        const lr_status status = counts.ends != NULL ? survey_events(&counts) : refuse_memory(recon);
        free(counts.ends);
        free(counts.lors);
        CLI_TRY(status);
    }
    return survey_data(additive, NULL);
}

lr_status recon_own_pairs(struct recon *recon)
{
    const struct recon_request *request = &recon->request;
    const size_t num_pairs = (size_t)recon->setup.lors->num_pairs;
    struct own_data data = {
        .recon = recon, .path = request->data, .draws = request->bootstraps && recon->inputs.data == NULL};
    struct own_data additive = {.recon = recon, .path = request->additive};
    struct of_pairs of = {calloc(num_pairs, sizeof(*of.costs)), calloc(num_pairs, sizeof(*of.rank_of)),
                          calloc(num_pairs, sizeof(*of.places))};
    recon->share.subset_of = calloc(num_pairs, sizeof(*recon->share.subset_of));
    const bool has_all = of.costs != NULL && of.rank_of != NULL && of.places != NULL && recon->share.subset_of != NULL;
    lr_status status = has_all ? survey_all(recon, &data, &additive, of.costs) : refuse_memory(recon);
    status = status == LR_OK ? share_out(recon, &data, &additive, &of) : status;
    finish_data(&data);
    finish_data(&additive);
    free(of.costs);
    free(of.rank_of);
    free(of.places);
    return status;
}
