/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * bench listmode: the figures next to those of the paper and of other projectors, as tables and JSON. The paper's
 * table II and figures 3 and 6 have rows in table I, too. */
#include "listmode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const listmode_kernels[LISTMODE_NUM_KERNELS + 1] = {"tube", "line", "exact", NULL};

int listmode_subsets(const struct listmode_bench *bench, const struct listmode_case *what)
{
    const int own = what->subsets > 0 ? what->subsets : 1;
    return bench->subsets > 0 ? bench->subsets : own;
}

double listmode_best(const struct listmode_seconds *seconds)
{
    return seconds->device > 0 ? seconds->device : seconds->wall;
}

/* Compares an outcome of fast math to the step before it, if both were measured (table II). */
static void print_fastmath(const struct listmode_bench *bench, int number)
{
    /* Indexed by the tube's width of 3, 5 and 7 voxels. */
    static const double paper[3][3] = {{27, 30.7, 1.7e-6}, {56, 30.4, 1.3e-6}, {106, 31.9, 0.7e-6}};
    const struct listmode_outcome *fast = &bench->outcomes[number], *plain = NULL;
    const struct listmode_case *what = fast->way.what;
    for (int k = 0; plain == NULL && k < number; k++) {
        const struct listmode_outcome *outcome = &bench->outcomes[k];
        if (fast->way.variant == LR_LISTMODE_FASTMATH && fast->image != NULL && outcome->image != NULL &&
            outcome->way.what == what && outcome->way.variant == LR_LISTMODE_SORTED)
            plain = outcome;
    }
    if (plain == NULL) return;

    /* Root mean square of the difference over the range of the plain image's values. */
    const int64_t count = (int64_t)what->size[0] * what->size[1] * what->size[2];
    double square = 0, least = INFINITY, most = -INFINITY;
    for (int64_t k = 0; k < count; k++) {
        const double difference = (double)plain->image[k] - (double)fast->image[k];
        square += difference * difference;
        least = fmin(least, plain->image[k]);
        most = fmax(most, plain->image[k]);
    }
    const double deviation = most > least ? sqrt(square / (double)count) / (most - least) : 0.0;
    const double *known = paper[(what->width - 3) / 2];
    const double saved = plain->iteration.wall - fast->iteration.wall;
    printf("\nFast math (table II), tube of %d voxels: %.3g ms of an iteration saved, %.1f %%; images "
           "%.2g apart (the paper: %.0f ms, %.1f %%, %.2g).\n",
           what->width, 1e3 * saved, 100 * saved / plain->iteration.wall, deviation, known[0], known[1], known[2]);
}

static void print_peak(const struct listmode_bench *bench, int has_tof)
{
    /* Millions of lines a second of a GTX 480, with 15 blocks of 1024 threads. */
    static const double paper[2] = {10.5, 16.5};
    const struct listmode_outcome *best = NULL;
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct listmode_outcome *outcome = &bench->outcomes[k];
        const bool is_meant = outcome->way.threads > 0 && outcome->way.has_tof == (has_tof != 0);
        if (is_meant && (best == NULL || outcome->iteration.wall < best->iteration.wall)) best = outcome;
    }
    if (best != NULL) {
        printf("\nBlocks (figure 6), %s TOF: the most are %.4g million lines a second, with blocks of "
               "%d threads, about %d for each multiprocessor (the paper: %.1f).\n",
               has_tof ? "with" : "without", 1e-6 * (double)best->lines / best->iteration.wall, best->way.threads,
               best->way.blocks, paper[has_tof]);
    }
}

void listmode_print_paper(const struct listmode_bench *bench)
{
    for (int k = 0; k < bench->num_outcomes; k++) {
        print_fastmath(bench, k);
        const struct listmode_outcome *outcome = &bench->outcomes[k];
        if (outcome->collisions.most > 0) {
            printf("\nCollisions (figure 3), %s, %s TOF: of 32 lines drawn one after the other %.2g %% of "
                   "the writes are to a voxel that another one of them writes to, at most %d of them to "
                   "one (the paper: 0.2 %% at the same time, at most 3); back takes %.3g times as long as "
                   "forward (the paper: atomic writes cost less than 10 %%).\n",
                   outcome->backend, outcome->way.has_tof ? "with" : "without", 100 * outcome->collisions.share,
                   outcome->collisions.most, listmode_best(&outcome->back) / listmode_best(&outcome->forward));
        }
    }
    print_peak(bench, 0);
    print_peak(bench, 1);
}

/* --- what other projectors reach with a million random lines and 75 x 75 x 26 voxels --- */

#define PEERS_SOURCE "one NVIDIA H200, driver 580, 2026-11-20, by CUDA's events: design notes"

/* Forward, back and both with the update, without and with time of flight. */
static const struct peer {
    const char *name;
    double visits[2], ms[2][3];
} peers[] = {
    {"libparallelproj 2.0.8, Joseph", {252, 105}, {{0.715, 2.828, 3.55}, {0.414, 1.283, 1.71}}},
    {"parallelproj 1.10.2, Joseph", {252, 105}, {{0.807, 2.931, 3.75}, {1.035, 1.270, 2.31}}},
    {"YRT-PET, Siddon", {93, 40}, {{0.892, 1.048, 1.95}, {0.425, 0.467, 0.90}}},
    {"YRT-PET, distance-driven, 2 voxels", {573, 245}, {{4.83, 6.60, 11.4}, {2.35, 2.85, 5.21}}},
    {"OMEGA, orthogonal tube, 3 voxels", {485, 485}, {{5.27, 5.73, 11.0}, {8.63, 11.0, 19.7}}},
    {"OMEGA, Siddon", {94, 94}, {{0.426, 1.083, 1.52}, {2.62, 2.78, 5.41}}},
};

enum { NUM_PEERS = sizeof(peers) / sizeof(peers[0]) };

static double ms_per_million(const struct listmode_outcome *outcome, double seconds)
{
    return 1e9 * seconds / (double)outcome->lines;
}

void listmode_print_peers(const struct listmode_bench *bench)
{
    bool has_heading = false;
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct listmode_outcome *outcome = &bench->outcomes[k];
        static const int size[3] = {75, 75, 26}; /* of the peers' image */
        if (!(strcmp(outcome->way.what->table, "first") == 0 &&
              memcmp(outcome->way.what->size, size, sizeof(size)) == 0))
            continue;
        if (!has_heading) {
            printf("\nPeers (%s), and ours here; ms for a million lines.\n\n"
                   "| projector | TOF | voxels a line | forward | back | iteration |\n"
                   "|---|---|---|---|---|---|\n",
                   PEERS_SOURCE);
            for (int p = 0; p < 2 * NUM_PEERS; p++) {
                const double *ms = peers[p / 2].ms[p % 2];
                printf("| %s | %s | %.0f | %.3g | %.3g | %.3g |\n", peers[p / 2].name, p % 2 ? "yes" : "no",
                       peers[p / 2].visits[p % 2], ms[0], ms[1], ms[2]);
            }
            has_heading = true;
        }
        printf("| LORaster, %s, %s | %s | %.0f | %.3g | %.3g | %.3g |\n", listmode_kernels[outcome->way.kernel],
               outcome->backend, outcome->way.has_tof ? "yes" : "no", outcome->visits,
               ms_per_million(outcome, listmode_best(&outcome->forward)),
               ms_per_million(outcome, listmode_best(&outcome->back)),
               ms_per_million(outcome, outcome->iteration.wall));
    }
}

/* Shares that the visited voxels are of what a device reaches: fills at most 3, and returns how many; 0
 * if that is not known. */
static int listmode_ceilings(const struct listmode_outcome *outcome, struct bench_ceiling ceilings[3])
{
    /* Each event's crystals, time and number, and its value, which is read and written. */
    const double bytes = 2 * (16 + 4), lines = (double)outcome->lines;
    const double visits = lines * outcome->visits;
    return bench_visit_ceilings(outcome->device,
                                &(struct bench_visits){visits / listmode_best(&outcome->forward),
                                                       visits / listmode_best(&outcome->back),
                                                       lines * bytes / outcome->iteration.wall},
                                ceilings);
}

/* --- tables --- */

/* Milliseconds for the paper's million lines. */
static double ms_a_million(const struct listmode_outcome *outcome, double seconds)
{
    return 1e3 * seconds * 1e6 * outcome->way.what->millions / (double)outcome->lines;
}

static double paper_ms(const struct listmode_outcome *outcome)
{
    return outcome->way.what->paper_ms[outcome->way.has_tof];
}

void listmode_print_heading(const struct listmode_bench *bench)
{
    printf("Commit %s. Random lines, %lld for each million of the paper's; times are for the "
           "paper's number of them. ms: forward and back by the device's clock where it has one; "
           "iteration (both, ratio and update) by the wall; events partitioned (the paper: 12 ms a "
           "million) and sorted where they have TOF (64 ms, and 262 ms for 5 million) once. Loads and "
           "adds: "
           "voxels of lines, forward as a share of the loads of shared memory that the device "
           "reaches, back of its integer atomics there. J: of an iteration, where a driver tells it "
           "(NVML: the card; RAPL: the processors).\n\n",
           bench_commit, (long long)bench->lines);
    printf("| table | image | width | lines | kernel | backend | forward | back | iteration | "
           "paper | 10^6 lines/s | 10^9 voxels/s | loads | adds | J | partition | sort | prepared, "
           "s |\n"
           "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

void listmode_print(const struct listmode_bench *bench, const struct listmode_outcome *outcome)
{
    const struct listmode_case *what = outcome->way.what;
    (void)bench;
    printf("| %s | %d x %d x %d | %d | %lld | ", what->table, what->size[0], what->size[1], what->size[2], what->width,
           (long long)outcome->lines);
    /* Also of the paper's figure 6. */
    printf("%s%s", listmode_kernels[outcome->way.kernel], outcome->way.has_tof ? ", TOF" : "");
    if (outcome->way.threads > 0) printf(", %d x %d threads", outcome->way.blocks, outcome->way.threads);
    printf(" | ");

    const lr_listmode_variant variant = outcome->way.variant;
    const bool is_step = variant != LR_LISTMODE_FASTEST;
    printf("%s%s%s | ", outcome->backend, is_step ? ", " : "",
           is_step ? common_listmode_variants[variant - LR_LISTMODE_SIMPLE] : "");

    printf("%.4g | %.4g | %.4g | ", ms_a_million(outcome, listmode_best(&outcome->forward)),
           ms_a_million(outcome, listmode_best(&outcome->back)), ms_a_million(outcome, outcome->iteration.wall));
    if (paper_ms(outcome) > 0) printf("%.0f", paper_ms(outcome));
    printf(" | ");

    struct bench_ceiling ceilings[3];
    const double rate = (double)outcome->lines / outcome->iteration.wall;
    printf("%.4g | %.4g | ", 1e-6 * rate, 2e-9 * rate * outcome->visits);
    if (listmode_ceilings(outcome, ceilings) > 0)
        printf("%.2g %% | %.2g %% | ", 100 * ceilings[0].fraction, 100 * ceilings[1].fraction);
    else
        printf("not known | not known | ");
    if (outcome->joules > 0)
        printf("%.3g, %s | ", outcome->joules, outcome->energy_source);
    else
        printf("not told | ");

    printf("%.3g | %.3g | %.3g |\n", ms_a_million(outcome, outcome->partition_s),
           ms_a_million(outcome, outcome->sort_s), outcome->prepare_s);
    fflush(stdout);
}

static bool is_alike(const struct listmode_outcome *one, const struct listmode_outcome *other)
{
    const char *table = one->way.what->table;
    return (strcmp(table, "lines") == 0 || strcmp(table, "linear") == 0) &&
           strcmp(table, other->way.what->table) == 0 && one->way.variant == other->way.variant &&
           one->way.kernel == other->way.kernel && one->way.has_tof == other->way.has_tof &&
           strcmp(one->backend, other->backend) == 0;
}

void listmode_print_fits(const struct listmode_bench *bench)
{
    /* Figure 5: milliseconds for N million lines on the paper's card. */
    static const double paper[2] = {95, 60};
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct listmode_outcome *outcome = &bench->outcomes[k];
        const struct listmode_case *what = outcome->way.what;
        if (what->iterations > 0) { /* a reconstruction is meant */
            printf("\n%s%s, %s: %d iterations of %d subsets of %lld events take %.4g s.\n",
                   listmode_kernels[outcome->way.kernel], outcome->way.has_tof ? " with TOF" : "", outcome->backend,
                   what->iterations, listmode_subsets(bench, what), (long long)outcome->lines,
                   what->iterations * outcome->iteration.wall);
        }

        /* Least squares over all outcomes of a kind, at the first of them. */
        bool is_first = true;
        double n = 0, x = 0, y = 0, xx = 0, xy = 0;
        for (int l = 0; l < bench->num_outcomes; l++) {
            const struct listmode_outcome *other = &bench->outcomes[l];
            if (!is_alike(outcome, other)) continue;
            const double at = 1e-6 * (double)other->lines, ms = 1e3 * other->iteration.wall;
            is_first = is_first && l >= k;
            n += 1, x += at, y += ms, xx += at * at, xy += at * ms;
        }
        const double spread = n * xx - x * x;
        if (is_first && spread > 0) {
            const double slope = (n * xy - x * y) / spread, constant = (y - slope * x) / n;
            printf("\n%s%s, %s: T = %.4g ms N %c %.3g ms, N million lines (the paper: about %.0f ms "
                   "N).\n",
                   listmode_kernels[outcome->way.kernel], outcome->way.has_tof ? " with TOF" : "", outcome->backend,
                   slope, constant < 0 ? '-' : '+', fabs(constant), paper[outcome->way.has_tof]);
        }
    }
}

static void json_seconds(struct json *json, const char *key, const struct listmode_seconds *seconds)
{
    json_open(json, key, '{');
    json_number(json, "wall_s", seconds->wall);
    json_number(json, "device_s", seconds->device);
    json_close(json, '}');
}

void listmode_json(const struct listmode_bench *bench, struct json *json)
{
    json_text(json, "commit", bench_commit);
    json_number(json, "tof_ps", bench->tof_ps);
    json_open(json, "cases", '[');
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct listmode_outcome *outcome = &bench->outcomes[k];
        const struct listmode_way *way = &outcome->way;
        const bool is_step = way->variant != LR_LISTMODE_FASTEST;
        struct bench_ceiling ceilings[3];
        json_open(json, NULL, '{');
        json_text(json, "table", way->what->table);
        json_ints(json, "size", way->what->size, 3);
        json_int(json, "width_voxels", way->what->width);
        json_int(json, "lines", outcome->lines);
        json_text(json, "kernel", listmode_kernels[way->kernel]);
        json_bool(json, "tof", way->has_tof);
        json_text(json, "backend", outcome->backend);
        json_text(json, "device", outcome->device);
        json_text(json, "variant", is_step ? common_listmode_variants[way->variant - LR_LISTMODE_SIMPLE] : NULL);
        json_int(json, "subsets", listmode_subsets(bench, way->what));
        json_number(json, "partition_s", outcome->partition_s);
        json_number(json, "sort_s", outcome->sort_s);
        json_number(json, "prepare_s", outcome->prepare_s);
        json_seconds(json, "forward", &outcome->forward);
        json_seconds(json, "back", &outcome->back);
        json_seconds(json, "iteration", &outcome->iteration);
        json_number(json, "visits_a_line", outcome->visits);
        json_number(json, "voxels_per_s", 2 * outcome->visits * (double)outcome->lines / outcome->iteration.wall);
        bench_ceilings_json(json, ceilings, listmode_ceilings(outcome, ceilings));
        json_number(json, "joules", outcome->joules);
        json_text(json, "energy_source", outcome->joules > 0 ? outcome->energy_source : NULL);
        json_int(json, "block_threads", way->threads);
        json_int(json, "blocks", way->blocks);
        json_number(json, "collisions", outcome->collisions.share);
        json_int(json, "most_collisions", outcome->collisions.most);
        json_number(json, "paper_ms", paper_ms(outcome));
        json_close(json, '}');
    }
    json_close(json, ']');

    json_open(json, "peers", '[');
    for (int p = 0; p < 2 * NUM_PEERS; p++) {
        const struct peer *peer = &peers[p / 2];
        json_open(json, NULL, '{');
        json_text(json, "name", peer->name);
        json_text(json, "source", PEERS_SOURCE);
        json_bool(json, "tof", p % 2 != 0);
        json_number(json, "visits_a_line", peer->visits[p % 2]);
        json_numbers(json, "forward_back_iteration_ms", peer->ms[p % 2], 3);
        json_close(json, '}');
    }
    json_close(json, ']');
}
