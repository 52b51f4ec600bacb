/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon of counts per LOR. The counts are read from a file or counted from events. If there are several ranks, each
 * rank has some whole module pairs and stores only the data of these pairs. */
#include "cli/recon/measurement.h"

#include <stdlib.h>
#include <string.h>

/* Estimates randoms by fan sums of measured->delayeds or, if `ends` is not NULL, by the number of delayeds at each
 * crystal. */
static lr_status estimate_randoms(struct measurement *measured, const double *ends, double prompts)
{
    struct report *report = measured->setup.report;
    const lr_lors *lors = measured->setup.lors;
    measured->randoms = ends != NULL ? lr_randoms_of_ends(lors, ends, &report->log)
                                     : lr_randoms_estimate(lors, measured->delayeds, &report->log);
    if (measured->randoms == NULL) return report_reason(report);
    report_info(report, "randoms by fan sums of the delayeds, %d crystals to each: %.6g in all, %.2f %% of the prompts",
                measured->randoms->pooled, measured->randoms->delayeds,
                prompts > 0 ? 100 * measured->randoms->delayeds / prompts : 0);
    return LR_OK;
}

static void say_binned(struct measurement *measured, const lr_events_info *info)
{
    measured->events = info->counts;
    if (info->has_tof) {
        report_info(measured->setup.report, "%s: its times of flight are not used: --operator listmode uses them",
                    measured->request->events);
    }
    measurement_say_events(measured);
}

/* Makes a digest of the data and additive term of all ranks. The digest is a sum over LORs with counts, so that it does
 * not depend on how LORs are stored and divided among ranks. part: this rank's LORs, which are some of the setup's
 * LORs. */
static lr_status digest_data(struct measurement *measured, const lr_lors *part)
{
    enum { BITS = 22, MASK = (1 << BITS) - 1 };
    const lr_lor_data *const both[2] = {measured->data, measured->additive};
    const lr_lors *lors = measured->setup.lors;
    uint64_t sums[2];
    for (int n = 0; n < 2; n++) {
        const lr_lor_data *data = both[n];
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
            sum += lr_split_mix(lr_split_mix((uint64_t)(lor + shift) + 1, 0) + bits, 0);
        }
        /* The sum over ranks is taken modulo 2^64. Pieces of 22 bits are added up separately, because a double holds
         * their sums exactly. */
        double pieces[3] = {(double)(sum & MASK), (double)(sum >> BITS & MASK), (double)(sum >> 2 * BITS)};
        CLI_TRY(lr_comm_sum_numbers(measured->cluster.comm, pieces, 3));
        sums[n] = (uint64_t)pieces[0] + ((uint64_t)pieces[1] << BITS) + ((uint64_t)pieces[2] << 2 * BITS);
    }
    measured->digest = recon_digest(0, sums, sizeof(sums));
    return LR_OK;
}

/* --- several ranks --- */

/* LOR data that are divided among ranks. They come from a file, or from memory if the whole file had to be read. */
struct data_share {
    struct measurement *measured;
    const char *path; /* the file; NULL = none */
    bool draws;       /* true with --bootstrap: counts are drawn while they are read */
    bool is_surveyed, is_sparse;
    int64_t count;       /* number of values in the file */
    int64_t *entries;    /* owned [num_pairs] number of entries of each module pair; for sparse data only */
    uint64_t digests[2]; /* [0]: digest of the values; [1]: digest of the LORs */
    double sums[2];      /* sum of the counts; [0]: before drawing, [1]: after */
    float *drawn;        /* owned [room] */
    int64_t room;
    int64_t pair;          /* module pair of the last value */
    int64_t kept_room;     /* room in `to`, for sparse data */
    const int64_t *places; /* [num_pairs] where the pair's LORs begin among this rank's LORs; -1 = the pair belongs to
                              another rank */
    lr_lor_data *to;       /* owned: this rank's data */
};

static lr_status refuse_memory(const struct measurement *measured)
{
    return report_error(measured->setup.report, LR_FAILED, "no memory for the data of a rank");
}

/* Returns the values or, with --bootstrap, counts drawn from them. Returns NULL after an error, which is reported. */
static const float *draw(struct data_share *data, const lr_lor_data *some, int64_t first)
{
    const struct measurement *measured = data->measured;
    const lr_poisson_stream stream = {
        .seed = measured->request->bootstrap_seed, .purpose = LR_RANDOM_REPLICATE, .first = first};
    if (!data->draws) return some->values;
    if (some->count > data->room) {
        free(data->drawn);
        data->drawn = malloc((size_t)some->count * sizeof(*data->drawn));
        data->room = data->drawn != NULL ? some->count : 0;
    }
    if (data->drawn == NULL) {
        (void)refuse_memory(measured);
        return NULL;
    }
    memcpy(data->drawn, some->values, (size_t)some->count * sizeof(*data->drawn));
    return lr_poisson_part(data->drawn, some->count, &stream, &measured->setup.report->log) == LR_OK ? data->drawn
                                                                                                     : NULL;
}

/* Finds the module pair of a LOR. In one pass, LORs must ascend from call to call. */
static int64_t find_pair(struct data_share *data, int64_t lor)
{
    const lr_lors *lors = data->measured->setup.lors;
    while (lor >= lors->offsets[data->pair + 1]) data->pair++;
    return data->pair;
}

static lr_status survey(void *user, const lr_lor_data *some, int64_t first)
{
    struct data_share *data = user;
    const float *values = draw(data, some, first);
    if (values == NULL) return report_reason(data->measured->setup.report);
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

static lr_status refuse_changed(const struct data_share *data)
{
    return report_error(data->measured->setup.report, LR_BAD_INPUT, "%s: has changed while it was read", data->path);
}

static lr_status keep(void *user, const lr_lor_data *some, int64_t first)
{
    struct data_share *data = user;
    const bool is_other = (some->index != NULL) != data->is_sparse;
    if (some->count > 0 && (is_other || first + some->count > data->count)) return refuse_changed(data);
    const float *values = draw(data, some, first);
    if (values == NULL) return report_reason(data->measured->setup.report);
    if (data->is_sparse) {
        const int64_t *begins = data->measured->setup.lors->offsets;
        for (int64_t k = 0; k < some->count; k++) {
            const int64_t of = find_pair(data, some->index[k]);
            if (data->places[of] >= 0 && data->to->count < data->kept_room) {
                data->to->index[data->to->count] = data->places[of] + (some->index[k] - begins[of]);
                data->to->values[data->to->count++] = values[k];
            }
        }
    } else {
        /* The LORs of a pair are consecutive and are copied together. */
        const int64_t count = some->count;
        const int64_t *offsets = data->measured->setup.lors->offsets;
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

    return LR_OK;
}

static lr_status walk(struct data_share *data, const lr_lor_data *whole,
                      lr_status (*take)(void *user, const lr_lor_data *some, int64_t first))
{
    const struct measurement *measured = data->measured;
    const lr_lor_data_sink sink = {.take = take, .user = data};
    data->pair = 0;
    if (whole != NULL) return take(data, whole, 0);
    return data->path != NULL ? lr_lor_data_scan(data->path, measured->setup.lors, &sink, &measured->setup.report->log)
                              : LR_OK;
}

static lr_status survey_data(struct data_share *data, const lr_lor_data *whole)
{
    const struct measurement *measured = data->measured;
    data->entries = calloc((size_t)measured->setup.lors->num_pairs, sizeof(*data->entries));
    if (data->entries == NULL) return refuse_memory(measured);
    CLI_TRY(walk(data, whole, survey));
    data->is_surveyed = whole != NULL || data->path != NULL;
    data->is_sparse = data->is_sparse || data->count == 0; /* without values there is nothing to keep */
    if (data->draws) measurement_say_replicate(measured, data->sums[0], data->sums[1]);
    return data->is_surveyed ? measurement_compare_numbers(measured, "measurement",
                                                           data->digests[0] ^ (data->digests[1] << 1), data->count)
                             : LR_OK;
}

static lr_status keep_data(struct data_share *data, const lr_lor_data *whole, const lr_lors *part)
{
    const struct measurement *measured = data->measured;
    int64_t count = 0;
    if (!data->is_surveyed) return LR_OK;
    for (int64_t pair = 0; pair < measured->setup.lors->num_pairs; pair++)
        count += data->places[pair] >= 0 ? data->entries[pair] : 0;
    count = data->is_sparse ? count : part->count;
    data->to = calloc(1, sizeof(*data->to));
    if (data->to == NULL) return refuse_memory(measured);
    data->to->values = calloc((size_t)count + 1, sizeof(*data->to->values));
    data->to->index = data->is_sparse ? calloc((size_t)count + 1, sizeof(*data->to->index)) : NULL;
    if (data->to->values == NULL || (data->is_sparse && data->to->index == NULL)) return refuse_memory(measured);
    data->to->count = data->is_sparse ? 0 : count;
    data->kept_room = count;
    CLI_TRY(walk(data, whole, keep));
    return data->to->count == count ? LR_OK : refuse_changed(data);
}

static void finish_data(struct data_share *data)
{
    free(data->entries);
    free(data->drawn);
    lr_lor_data_destroy(data->to);
}

/* The numbers of events of each module pair, and of delayeds at each crystal. Pairs are divided among ranks by their
 * numbers of events. */
struct event_counts {
    struct measurement *measured;
    double *costs, *ends; /* costs: [num_pairs] events of each pair; ends: [num_crystals] delayeds at each crystal */
    double delayeds;
    uint64_t digest;
    int64_t kept, left_out;
    int64_t *lors; /* owned [room] LORs of the current events */
    int64_t room;
};

static lr_status count_events(void *user, const lr_event *events, int64_t count)
{
    struct event_counts *counts = user;
    const struct setup *setup = &counts->measured->setup;
    const lr_lors *lors = setup->lors;
    if (count > counts->room) {
        free(counts->lors);
        counts->lors = malloc((size_t)count * sizeof(*counts->lors));
        counts->room = counts->lors != NULL ? count : 0;
        if (counts->lors == NULL) return refuse_memory(counts->measured);
    }
    lr_events_lors(lors, &(lr_event_span){events, count, setup->params.threads}, counts->lors);
    for (int64_t k = 0; k < count; k++) {
        const int32_t *crystals = events[k].crystals;
        const int64_t lor = counts->lors[k];
        if (lor < 0) {
            counts->left_out++;
        } else if (events[k].is_delayed) {
            counts->delayeds += events[k].weight;
            counts->ends[crystals[0]] += events[k].weight;
            counts->ends[crystals[1]] += events[k].weight;
        } else {
            int64_t low = 0, high = lors->num_pairs; /* a search finds the module pair of the LOR */
            while (high - low > 1) {
                const int64_t middle = low + (high - low) / 2;
                *(lor < lors->offsets[middle] ? &high : &low) = middle;
            }
            counts->kept++;
            counts->costs[low] += 1;
            recon_digest_event(&counts->digest, &events[k]);
        }
    }
    return LR_OK;
}

/* Counts the events of the file without storing them. costs: [num_pairs] */
static lr_status survey_events(struct measurement *measured, double *costs)
{
    struct event_counts counts = {.measured = measured, .costs = costs};
    const lr_event_sink sink = {.take = count_events, .user = &counts};
    const lr_events_source source = measurement_events_source(measured);
    lr_events_info info;
    counts.ends = calloc((size_t)measured->setup.scanner->num_crystals, sizeof(*counts.ends));
    if (counts.ends == NULL) return refuse_memory(measured);
    lr_status status = lr_events_read(&source, &sink, &info);
    if (status == LR_OK) {
        info.counts.not_in_coincidence = counts.left_out;
        say_binned(measured, &info);
        status = measurement_compare_numbers(measured, "list of events", counts.digest, counts.kept);
    }
    lr_events_info_finish(&info);
    const bool estimates = measured->request->randoms == RECON_RANDOMS_AUTO && measured->request->additive == NULL;
    if (status == LR_OK && estimates && counts.delayeds > 0)
        status = estimate_randoms(measured, counts.ends, (double)counts.kept);
    free(counts.ends);
    free(counts.lors);
    return status;
}

/* Assigns each module pair to a rank, by its cost, and to a group of subsets. Returns the LORs of this rank's pairs;
 * NULL after an error, which is reported. places: [num_pairs] where each pair's LORs begin among this rank's LORs; -1 =
 * the pair belongs to another rank. */
static lr_lors *choose_pairs(struct measurement *measured, const double *costs, int64_t *places)
{
    const lr_lors *lors = measured->setup.lors;
    const lr_log *log = &measured->setup.report->log;
    const int ranks = measured->cluster.size;
    int32_t *pairs = calloc((size_t)lors->num_pairs, sizeof(*pairs));
    int32_t *rank_of = calloc((size_t)lors->num_pairs, sizeof(*rank_of));
    lr_selection own = {.pairs = pairs};
    lr_lors *part = NULL;
    lr_status status = LR_OK;
    if (pairs == NULL || rank_of == NULL) {
        status = refuse_memory(measured);
    } else if (measured->request->combine != RECON_EXACT && ranks > lors->num_pairs) {
        status = report_error(measured->setup.report, LR_USAGE,
                              "%d ranks: they have whole module pairs, of which %s has %lld in "
                              "coincidence; start as many at most",
                              ranks, measured->setup.scanner->name, (long long)lors->num_pairs);
    } else if (measured->request->combine != RECON_EXACT) {
        /* Each rank makes a guess of the image from its own LORs. These LORs must have all directions, so the pairs are
           divided among ranks as they are divided into ordered subsets. */
        status = lr_osem_subsets(lors, ranks, rank_of, log);
    } else {
        status = lr_osem_interleave(lors, measured->subsets, &measured->interleave, log);
        const int groups = status == LR_OK ? measured->subsets / measured->interleave : 1;
        const lr_partition_params partition = {.lors = lors,
                                               .ranks = ranks,
                                               .subsets = groups,
                                               .subset_of = measured->subset_of,
                                               .costs = costs,
                                               .log = log};
        if (status == LR_OK) status = lr_osem_subsets(lors, groups, measured->subset_of, log);
        if (status == LR_OK) status = lr_partition(&partition, rank_of);
    }
    if (status == LR_OK) {
        for (int64_t pair = 0; pair < lors->num_pairs; pair++) {
            places[pair] = -1;
            if (rank_of[pair] == measured->cluster.rank) {
                measured->subset_of[own.num_pairs] = measured->subset_of[pair];
                pairs[own.num_pairs++] = (int32_t)pair;
            }
        }
        part = lr_lors_create_part(lors, &own, log);
    }
    for (int64_t k = 0; part != NULL && k < own.num_pairs; k++) places[pairs[k]] = part->offsets[k];
    if (part != NULL) {
        report_info(measured->setup.report, "rank 0 has %lld of %lld pairs of modules", (long long)own.num_pairs,
                    (long long)lors->num_pairs);
    }
    free(rank_of);
    free(pairs);
    return part;
}

/* Reads the data of this rank's module pairs, or takes them from measured->data if these exist. */
static lr_status read_own_pairs(struct measurement *measured)
{
    const struct recon_request *request = measured->request;
    struct setup *setup = &measured->setup;
    const lr_lors *lors = setup->lors;
    struct data_share data = {
        .measured = measured, .path = request->data, .draws = request->bootstraps && measured->data == NULL};
    struct data_share additive = {.measured = measured, .path = request->additive};
    double *costs = calloc((size_t)lors->num_pairs, sizeof(*costs));
    int64_t *places = calloc((size_t)lors->num_pairs, sizeof(*places));
    measured->subset_of = calloc((size_t)lors->num_pairs, sizeof(*measured->subset_of));
    const bool has_room = costs != NULL && places != NULL && measured->subset_of != NULL;
    const bool has_data = data.path != NULL || measured->data != NULL;
    lr_status status = !has_room  ? refuse_memory(measured)
                       : has_data ? survey_data(&data, measured->data)
                                  : survey_events(measured, costs);
    if (status == LR_OK) status = survey_data(&additive, NULL);
    if (status != LR_OK) goto finish;

    /* If only LORs with counts are projected, the cost of a pair is about the number of these LORs. */
    for (int64_t pair = 0; pair < lors->num_pairs; pair++) {
        const double all = (double)(lors->offsets[pair + 1] - lors->offsets[pair]);
        const double counted = data.is_surveyed ? (double)data.entries[pair] : costs[pair];
        costs[pair] = data.is_surveyed && !data.is_sparse ? all : counted + 1e-3 * all;
    }
    lr_lors *part = choose_pairs(measured, costs, places);
    status = part != NULL ? LR_OK : report_reason(setup->report);
    if (status != LR_OK) goto finish;
    data.places = additive.places = places;
    status = keep_data(&data, measured->data, part);
    if (status == LR_OK) status = keep_data(&additive, NULL, part);
    if (status == LR_OK) {
        if (data.to != NULL) {
            lr_lor_data_destroy(measured->data);
            measured->data = data.to;
            data.to = NULL;
        }
        measured->additive = additive.to;
        additive.to = NULL;
        lr_lor_data_destroy(measured->delayeds);
        measured->delayeds = NULL;
    }
    if (status == LR_OK && !data.is_surveyed) {
        /* This pass counts the events of this rank's LORs. Warnings about the file were printed in the first pass. */
        lr_log log = report_errors_alone(measured->setup.report);
        lr_events_source source = measurement_events_source(measured);
        lr_prompts_delayeds found;
        source.log = &log;
        status = lr_events_bin(&source, part, &found, NULL);
        if (status == LR_OK) {
            measured->data = found.prompts;
            lr_lor_data_destroy(found.delayeds);
        }
    }
    if (status == LR_OK) status = digest_data(measured, part);

    /* The setup now gets only the LORs of this rank's pairs. */
    if (measured->randoms != NULL) measured->randoms->product.lors = part;
    lr_lors_destroy(setup->lors);
    setup->lors = part;
    setup->params.lors = part;

finish:
    finish_data(&data);
    finish_data(&additive);
    free(costs);
    free(places);
    return status;
}

static lr_status open(struct measurement *measured, struct cli_args *args)
{
    const struct recon_request *request = measured->request;
    struct report *report = args->report;
    const bool is_shared = measured->cluster.comm != NULL;
    CLI_TRY(measurement_open_scanner(measured, args));
    const lr_lors *lors = measured->setup.lors;

    /* A scanner with few pairs of modules may allow fewer subsets than the usual number. */
    if (!request->has_subsets && lors->num_pairs < measured->subsets) {
        int most = measured->subsets, interleave;
        while (most > 1 && lr_osem_interleave(lors, most, &interleave, NULL) == LR_USAGE) most--;
        measurement_limit_subsets(measured, most);
    }

    /* A replicate of counts per LOR depends on the LORs' positions in the whole list. Each rank therefore counts all
     * events. */
    const bool reads_all = !is_shared || (request->bootstraps && request->events != NULL);
    if (reads_all && request->data != NULL) {
        measured->data = lr_lor_data_read(request->data, lors, &report->log);
        if (measured->data == NULL) return report_reason(report);
    } else if (reads_all) {
        const lr_events_source source = measurement_events_source(measured);
        lr_prompts_delayeds found;
        lr_events_info info;
        const lr_status status = lr_events_bin(&source, lors, &found, &info);
        if (status == LR_OK) {
            measured->data = found.prompts;
            measured->delayeds = found.delayeds;
            say_binned(measured, &info);
        }
        lr_events_info_finish(&info);
        CLI_TRY(status);
    }
    if (reads_all) CLI_TRY(measurement_bootstrap(measured));
    if (!is_shared && request->additive != NULL) {
        measured->additive = lr_lor_data_read(request->additive, lors, &report->log);
        if (measured->additive == NULL) return report_reason(report);
    }
    const bool has_delayeds = measured->delayeds != NULL && measured->delayeds->count > 0;
    if (reads_all && request->additive == NULL && request->randoms == RECON_RANDOMS_AUTO && has_delayeds)
        CLI_TRY(estimate_randoms(measured, NULL, common_sum(measured->data->values, measured->data->count)));

    if (is_shared)
        CLI_TRY(read_own_pairs(measured));
    else if (request->checkpoint != NULL)
        CLI_TRY(digest_data(measured, lors));
    CLI_TRY(measurement_read_factors(measured));
    return measurement_read_images(measured);
}

const struct measurement_kind histogram_kind = {.open = open};
