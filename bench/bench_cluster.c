/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * bench cluster: measures iterations by all ranks that mpirun has started, with each scheme that combines the work of
 * the ranks into one image. The results are the times of the parts, and the errors of the images. */
#include "bench.h"
#include "cli/cluster.h"
#include "cli/direct.h"
#include "cli/verbs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum cluster_scheme { CLUSTER_EXACT, CLUSTER_PAPER, CLUSTER_DISTRIBUTED, CLUSTER_NUM_SCHEMES };

/* An image after some iterations. */
struct cluster_step {
    int number; /* iterations that each rank has made so far */
    double elapsed_s, log_likelihood, image_error;
};

/* Times are means over the ranks. */
struct cluster_outcome {
    enum cluster_scheme scheme;
    double seconds; /* time of the slowest rank, including sensitivities */
    double project_s, most_project_s, exchange_s, waiting_s, combine_s;
    double sent_bytes;          /* bytes sent by each rank */
    double memory_bytes;        /* memory of the largest rank so far */
    struct cluster_step *steps; /* owned */
    int num_steps;
};

struct cluster_bench {
    struct report *report;
    struct cluster cluster;
    bool schemes[CLUSTER_NUM_SCHEMES], is_weak;
    int iterations, local_iterations, voxels;
    double counts, voxel_mm;
    lr_operator_params params;
    lr_scanner *scanner;
    lr_lors *all, *lors; /* all: LORs of the scanner; lors: LORs of this rank */
    int32_t *pairs;      /* this rank's pairs by their numbers in `all`; has room for all pairs */
    lr_grid grid;
    lr_operator *op;
    lr_lor_data *data;
    lr_image *truth, *image;
    double setup_s, begin_s, noting_s;
    struct cluster_outcome *at_hand;
    struct cluster_outcome outcomes[CLUSTER_NUM_SCHEMES];
    int num_outcomes;
};

static const char *const scheme_names[CLUSTER_NUM_SCHEMES + 1] = {"exact", "paper", "distributed", NULL};

static lr_status keep(struct cluster_bench *bench, struct cluster_step step, const lr_vector *image)
{
    lr_vector host = lr_image_vector(bench->image);
    struct cluster_outcome *outcome = bench->at_hand;
    step.elapsed_s = report_seconds() - bench->begin_s - bench->noting_s;
    const double begin_s = report_seconds();
    CLI_TRY(lr_vector_copy(image, &host));
    double apart = 0, all = 0;
    for (int64_t v = 0; v < lr_grid_num_voxels(&bench->grid); v++) {
        const double t = bench->truth->values[v], difference = bench->image->values[v] - t;
        apart += difference * difference;
        all += t * t;
    }
    step.image_error = all > 0 ? sqrt(apart / all) : 0;

    bench->noting_s += report_seconds() - begin_s;
    outcome->steps[outcome->num_steps++] = step;
    return LR_OK;
}

static lr_status on_iteration(void *user, const lr_iteration *done)
{
    struct cluster_bench *bench = user;
    bench->at_hand->project_s += done->project_seconds;
    return keep(bench, (struct cluster_step){.number = done->number, .log_likelihood = done->log_likelihood},
                done->image);
}

/* Records the local image of this rank. */
static lr_status on_local(void *user, const lr_iteration *done)
{
    struct cluster_bench *bench = user;
    bench->at_hand->project_s += done->project_seconds;
    return LR_OK;
}

static lr_status on_composed(void *user, const lr_composition *done)
{
    struct cluster_bench *bench = user;
    bench->at_hand->combine_s += done->compose_seconds;
    return keep(bench, (struct cluster_step){.number = done->iterations, .log_likelihood = done->fit.log_likelihood},
                done->image);
}

static lr_status measure(struct cluster_bench *bench, enum cluster_scheme scheme)
{
    struct cluster_outcome *outcome = &bench->outcomes[bench->num_outcomes];
    const lr_comm_info before = lr_comm_get_info(bench->cluster.comm);
    const lr_vector counts = lr_lor_data_vector(bench->data);
    const lr_recon_params params = {.op = bench->op,
                                    .data = &counts,
                                    .data_lors = bench->data->index,
                                    .iterations = bench->iterations,
                                    .subsets = 1,
                                    .iteration = on_iteration,
                                    .user = bench,
                                    .comm = bench->cluster.comm,
                                    .log = &bench->report->log,
                                    .progress = &bench->report->progress};
    *outcome = (struct cluster_outcome){.scheme = scheme};
    outcome->steps = calloc((size_t)bench->iterations, sizeof(*outcome->steps));
    if (outcome->steps == NULL) return report_error(bench->report, LR_FAILED, "no memory for the figures");
    bench->num_outcomes++;
    bench->at_hand = outcome;
    CLI_TRY(lr_comm_barrier(bench->cluster.comm));
    bench->begin_s = report_seconds();
    bench->noting_s = 0;
    lr_vector image = lr_image_vector(bench->image);
    if (scheme == CLUSTER_EXACT) {
        CLI_TRY(lr_recon(&params, &image));
    } else if (scheme == CLUSTER_DISTRIBUTED) {
        const lr_distributed_params all = {.recon = params, .local_iterations = bench->local_iterations};
        CLI_TRY(lr_recon_distributed(&all, &image));
    } else {
        lr_compose_params all = {.local = params,
                                 .comm = bench->cluster.comm,
                                 .local_iterations = bench->local_iterations,
                                 .composed = on_composed,
                                 .user = bench};
        all.local.iteration = on_local;
        CLI_TRY(lr_compose(&all, &image));
    }
    outcome->seconds = report_seconds() - bench->begin_s - bench->noting_s;
    const lr_comm_info after = lr_comm_get_info(bench->cluster.comm);
    outcome->exchange_s = after.moving_s - before.moving_s;
    outcome->waiting_s = after.waiting_s - before.waiting_s;
    outcome->sent_bytes = after.sent_bytes - before.sent_bytes;
    /* Means and maxima over the ranks. */
    double *const found[] = {&outcome->project_s, &outcome->exchange_s, &outcome->waiting_s, &outcome->combine_s,
                             &outcome->sent_bytes};
    double numbers[5], most[5];
    for (int k = 0; k < 5; k++) numbers[k] = most[k] = *found[k];
    CLI_TRY(lr_comm_sum_numbers(bench->cluster.comm, numbers, 5));
    CLI_TRY(lr_comm_most(bench->cluster.comm, most, 5));
    for (int k = 0; k < 5; k++) *found[k] = numbers[k] / bench->cluster.size;
    outcome->most_project_s = most[0];
    outcome->memory_bytes = (double)common_peak_memory();
    CLI_TRY(lr_comm_most(bench->cluster.comm, &outcome->memory_bytes, 1));
    return lr_comm_most(bench->cluster.comm, &outcome->seconds, 1);
}

static void write_figures(const void *user, struct json *json)
{
    const struct cluster_bench *bench = user;
    const lr_operator_info *info = lr_operator_get_info(bench->op);
    json_text(json, "scanner", bench->scanner->name);
    common_json_grid(json, "grid", &bench->grid);
    json_int(json, "num_lors", bench->all->count);
    json_text(json, "backend", info->backend);
    json_text(json, "device", info->device);
    json_int(json, "threads", info->threads);
    json_text(json, "scaling", bench->is_weak ? "weak" : "strong");
    json_number(json, "counts", bench->counts);
    json_int(json, "local_iterations", bench->local_iterations);
    json_int(json, "rank_count", bench->cluster.size);
    cluster_json(&bench->cluster, json);
    json_number(json, "setup_seconds", bench->setup_s);
    json_open(json, "results", '[');
    for (int n = 0; n < bench->num_outcomes; n++) {
        const struct cluster_outcome *outcome = &bench->outcomes[n];
        json_open(json, NULL, '{');
        json_text(json, "scheme", scheme_names[outcome->scheme]);
        json_number(json, "seconds", outcome->seconds);
        json_number(json, "project_seconds", outcome->project_s);
        json_number(json, "most_project_seconds", outcome->most_project_s);
        json_number(json, "exchange_seconds", outcome->exchange_s);
        json_number(json, "waiting_seconds", outcome->waiting_s);
        json_number(json, "compose_seconds", outcome->combine_s);
        json_number(json, "sent_bytes", outcome->sent_bytes);
        json_number(json, "peak_memory_bytes", outcome->memory_bytes);
        json_open(json, "iterations", '[');
        for (int k = 0; k < outcome->num_steps; k++) {
            const struct cluster_step *step = &outcome->steps[k];
            json_open(json, NULL, '{');
            json_int(json, "number", step->number);
            json_number(json, "elapsed_seconds", step->elapsed_s);
            json_number(json, "log_likelihood", step->log_likelihood);
            json_number(json, "image_error", step->image_error);
            json_close(json, '}');
        }
        json_close(json, ']');
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* --- the verb --- */

static void read_wish(struct cluster_bench *bench, struct cli_args *args)
{
    const int voxels = (int)args_int(args, "--voxels", 32, args_from_1);
    const int scheme = args_word(args, "--combine", NULL, -1);
    const double voxel_mm = args_number(args, "--voxel-mm", 64.0 / voxels, true);
    for (int k = 0; k < CLUSTER_NUM_SCHEMES; k++) bench->schemes[k] = scheme < 0 || k == scheme;
    bench->is_weak = args_has(args, "--weak");
    bench->iterations = (int)args_int(args, "--iterations", 8, args_from_1);
    bench->local_iterations = (int)args_int(args, "--local-iterations", 4, args_from_1);
    bench->counts = args_number(args, "--counts", 1e6, true);
    bench->voxels = voxels;
    bench->voxel_mm = voxel_mm;
    bench->params = (lr_operator_params){
        .backend = args_chosen(args, "--backend"),
        .threads = (int)args_int(args, "--threads", 0, args_from_1),
        .device = (int)args_int(args, "--device", 0, args_from_0),
        .store = args_has(args, "--store") ? LR_STORE_YES : LR_STORE_NO,
        .log = &bench->report->log,
    };
}

/* Opens this rank's part of the problem. Each rank sees the image from all directions. */
static lr_status open_all(struct cluster_bench *bench, const char *name)
{
    const lr_log *log = &bench->report->log;
    bench->scanner = lr_scanner_read(name, log);
    lr_lors *all = bench->all = bench->scanner != NULL ? lr_lors_create(bench->scanner, log) : NULL;
    if (all == NULL) return report_reason(bench->report);
    /* For weak scaling, the number of layers grows with the number of ranks, so that each rank has the same work. */
    const int n = bench->voxels, ranks = bench->is_weak ? bench->cluster.size : 1;
    const int size[3] = {n, n, n * ranks};
    const double voxel_mm[3] = {bench->voxel_mm, bench->voxel_mm, bench->voxel_mm / ranks};
    bench->grid = lr_grid_centred(size, voxel_mm);

    int32_t *rank_of = calloc((size_t)all->num_pairs, sizeof(*rank_of));
    bench->pairs = calloc((size_t)all->num_pairs, sizeof(*bench->pairs));
    lr_selection own = {.pairs = bench->pairs};
    lr_status status = LR_OK;
    if (rank_of == NULL || bench->pairs == NULL) {
        status = report_error(bench->report, LR_FAILED, "no memory for the pairs of modules");
    } else if (bench->cluster.size > all->num_pairs) {
        status = report_error(bench->report, LR_USAGE, "%d ranks for %lld pairs of modules: start fewer ranks",
                              bench->cluster.size, (long long)all->num_pairs);
    } else {
        status = lr_osem_subsets(all, bench->cluster.size, rank_of, log);
    }
    for (int64_t pair = 0; status == LR_OK && pair < all->num_pairs; pair++)
        if (rank_of[pair] == bench->cluster.rank) bench->pairs[own.num_pairs++] = (int32_t)pair;
    free(rank_of);
    CLI_TRY(status);
    bench->lors = lr_lors_create_part(all, &own, log);
    if (bench->lors == NULL) return report_reason(bench->report);

    lr_operator_params params = bench->params;
    params.lors = bench->lors;
    params.grid = &bench->grid;
    params.projections = 2.0 * bench->iterations * CLUSTER_NUM_SCHEMES;
    bench->op = lr_operator_create(&params);
    if (bench->op == NULL) return report_reason(bench->report);
    bench->truth = lr_phantom_create(&(lr_phantom_params){.name = "spheres", .log = log}, &bench->grid);
    lr_lor_data *data = bench->data = lr_lor_data_create(bench->lors, log);
    bench->image = lr_image_create(&bench->grid, log);
    if (bench->truth == NULL || data == NULL || bench->image == NULL) return report_reason(bench->report);
    const lr_vector truth = lr_image_vector(bench->truth);
    lr_vector values = lr_lor_data_vector(data);
    CLI_TRY(lr_operator_forward(bench->op, NULL, &truth, &values));

    /* Draws the counts of all ranks. The counts of a pair do not depend on the number of ranks. */
    double sum = common_sum(data->values, data->count);
    CLI_TRY(lr_comm_sum_numbers(bench->cluster.comm, &sum, 1));
    const double scale = sum > 0 ? bench->counts / sum : 0;
    common_scale(data->values, data->count, scale);
    common_scale(bench->truth->values, lr_grid_num_voxels(&bench->grid), scale);
    for (int64_t k = 0; k < bench->lors->num_pairs; k++) {
        const int64_t begin = bench->lors->offsets[k];
        CLI_TRY(
            lr_poisson(data->values + begin, bench->lors->offsets[k + 1] - begin, (uint64_t)bench->pairs[k] + 1, log));
    }
    return LR_OK;
}

static lr_status measure_all(struct cluster_bench *bench, const struct cli_args *args)
{
    const char *name = args_text(args, "--scanner");
    const double begin_s = report_seconds();
    cluster_choose(&bench->cluster, args, &bench->params);
    CLI_TRY(open_all(bench, name != NULL ? name : "cluster-paper-32"));
    bench->setup_s = report_seconds() - begin_s;
    for (int k = 0; k < CLUSTER_NUM_SCHEMES; k++) {
        const bool is_possible = k == CLUSTER_EXACT || bench->cluster.size > 1;
        CLI_TRY(bench->schemes[k] && is_possible ? measure(bench, (enum cluster_scheme)k) : LR_OK);
    }
    return bench->cluster.rank == 0 && bench->num_outcomes > 0 ? bench_write(args, write_figures, bench) : LR_OK;
}

static lr_status run(struct cli_args *args)
{
    struct cluster_bench bench = {.report = args->report};
    read_wish(&bench, args);
    const lr_exchange exchange = (lr_exchange)args_word(args, "--exchange", NULL, LR_EXCHANGE_AUTO);
    lr_status status = args->status;
    status = status == LR_OK ? cluster_open(&bench.cluster, args->report, exchange) : status;
    status = status == LR_OK ? measure_all(&bench, args) : status;
    status = cluster_close(&bench.cluster, args->report, status);
    for (int k = 0; k < bench.num_outcomes; k++) free(bench.outcomes[k].steps);
    lr_image_destroy(bench.truth);
    lr_image_destroy(bench.image);
    lr_lor_data_destroy(bench.data);
    lr_operator_destroy(bench.op);
    lr_lors_destroy(bench.lors);
    lr_lors_destroy(bench.all);
    lr_scanner_destroy(bench.scanner);
    free(bench.pairs);

    return status;
}

static const struct cli_option options[] = {
    {"--scanner", "NAME|FILE", "default cluster-paper-32", NULL},
    {"--voxels", "N", "N x N x N of them; default 32", NULL},
    {"--voxel-mm", "MM", "their edge; default 64 / N", NULL},
    {"--weak", NULL, "as many times more layers of voxels as there are ranks", NULL},
    {"--counts", "N", "photon pairs of the phantom; default 1000000", NULL},
    {"--iterations", "N", "default 8", NULL},
    {"--combine", "HOW", "exact, paper or distributed; default all", CLI_WORDS_OF(scheme_names)},
    {"--local-iterations", "N", "paper, distributed: between two exchanges; default 4", NULL},
    {CLUSTER_EXCHANGE_OPTION},
    {"--backend", "NAME", "cpu, raster, compute or native; default auto",
     CLI_WORDS("auto", "cpu", "raster", "compute", "native")},
    {"--store", NULL, "keep the matrix in memory", NULL},
    {"--device", "N", "which usable device; default: that of the rank", COMMON_DEVICE_NUMBER},
    {"--threads", "N", "of each rank; default: its share of the processors", NULL},
    {BENCH_OUTPUT_OPTION},
    {0},
};

const struct cli_verb verb_bench_cluster = {
    .name = "bench cluster",
    .summary = VERB_BENCH_CLUSTER,
    .example = "mpirun -n 2 loraster bench cluster --voxels 64",
    .takes_ranks = true,
    .outputs = {{"-o", common_json_endings}},
    .groups = {{"ranks", options}},
    .run = run,
};
