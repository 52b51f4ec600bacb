/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

static void print_backend(const struct listmode_outcome *outcome)
{
    const lr_listmode_variant variant = outcome->way.variant;
    const bool is_step = variant != LR_LISTMODE_FASTEST;
    printf("%s%s%s | ", outcome->backend, is_step ? ", " : "",
           is_step ? common_listmode_variants[variant - LR_LISTMODE_SIMPLE] : "");
}

/* Also of the paper's figure 6. */
static void print_kernel(const struct listmode_way *way)
{
    printf("%s%s", listmode_kernels[way->kernel], way->has_tof ? ", TOF" : "");
    if (way->threads > 0) printf(", %d x %d threads", way->blocks, way->threads);
    printf(" | ");
}

static void print_rates(const struct listmode_outcome *outcome)
{
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
}

static void print_paper(const struct listmode_outcome *outcome)
{
    if (paper_ms(outcome) > 0) printf("%.0f", paper_ms(outcome));
    printf(" | ");
}

void listmode_print(const struct listmode_bench *bench, const struct listmode_outcome *outcome)
{
    const struct listmode_case *what = outcome->way.what;
    (void)bench;
    printf("| %s | %d x %d x %d | %d | %lld | ", what->table, what->size[0], what->size[1], what->size[2], what->width,
           (long long)outcome->lines);
    print_kernel(&outcome->way);
    print_backend(outcome);
    printf("%.4g | %.4g | %.4g | ", ms_a_million(outcome, listmode_best(&outcome->forward)),
           ms_a_million(outcome, listmode_best(&outcome->back)), ms_a_million(outcome, outcome->iteration.wall));
    print_paper(outcome);
    print_rates(outcome);
    printf("%.3g | %.3g | %.3g |\n", ms_a_million(outcome, outcome->partition_s),
           ms_a_million(outcome, outcome->sort_s), outcome->prepare_s);
    fflush(stdout);
}

/* --- T = a N + b --- */

static bool is_alike(const struct listmode_outcome *one, const struct listmode_outcome *other)
{
    const char *table = one->way.what->table;
    return (strcmp(table, "lines") == 0 || strcmp(table, "linear") == 0) &&
           strcmp(table, other->way.what->table) == 0 && one->way.variant == other->way.variant &&
           one->way.kernel == other->way.kernel && one->way.has_tof == other->way.has_tof &&
           strcmp(one->backend, other->backend) == 0;
}

/* Of all outcomes alike to the first, by least squares: ms a million lines, and ms. false: fewer than two. */
static bool fit_line(const struct listmode_bench *bench, int first, double *slope, double *constant)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (int k = first; k < bench->num_outcomes; k++) {
        const struct listmode_outcome *outcome = &bench->outcomes[k];
        if (is_alike(&bench->outcomes[first], outcome)) {
            const double at = 1e-6 * (double)outcome->lines, ms = 1e3 * outcome->iteration.wall;
            n += 1, x += at, y += ms, xx += at * at, xy += at * ms;
        }
    }
    const double spread = n * xx - x * x;
    *slope = spread > 0 ? (n * xy - x * y) / spread : 0;
    *constant = spread > 0 ? (y - *slope * x) / n : 0;
    return spread > 0;
}

static bool is_first(const struct listmode_bench *bench, int number)
{
    for (int k = 0; k < number; k++)
        if (is_alike(&bench->outcomes[k], &bench->outcomes[number])) return false;
    return true;
}

/* A reconstruction's iterations, where one is meant. */
static void print_reconstruction(const struct listmode_bench *bench, const struct listmode_outcome *outcome)
{
    const struct listmode_case *what = outcome->way.what;
    if (what->iterations > 0) {
        printf("\n%s%s, %s: %d iterations of %d subsets of %lld events take %.4g s.\n",
               listmode_kernels[outcome->way.kernel], outcome->way.has_tof ? " with TOF" : "", outcome->backend,
               what->iterations, listmode_subsets(bench, what), (long long)outcome->lines,
               what->iterations * outcome->iteration.wall);
    }
}

void listmode_print_fits(const struct listmode_bench *bench)
{
    /* Figure 5: milliseconds for N million lines on the paper's card. */
    static const double paper[2] = {95, 60};
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct listmode_outcome *outcome = &bench->outcomes[k];
        double slope, constant;
        print_reconstruction(bench, outcome);
        if (is_first(bench, k) && fit_line(bench, k, &slope, &constant)) {
            printf("\n%s%s, %s: T = %.4g ms N %c %.3g ms, N million lines (the paper: about %.0f ms "
                   "N).\n",
                   listmode_kernels[outcome->way.kernel], outcome->way.has_tof ? " with TOF" : "", outcome->backend,
                   slope, constant < 0 ? '-' : '+', fabs(constant), paper[outcome->way.has_tof]);
        }
    }
}

/* --- JSON --- */

static void json_seconds(struct json *json, const char *key, const struct listmode_seconds *seconds)
{
    json_open(json, key, '{');
    json_number(json, "wall_s", seconds->wall);
    json_number(json, "device_s", seconds->device);
    json_close(json, '}');
}

static void json_outcome(const struct listmode_bench *bench, struct json *json, const struct listmode_outcome *outcome)
{
    struct bench_ceiling ceilings[3];
    json_open(json, NULL, '{');
    json_text(json, "table", outcome->way.what->table);
    json_ints(json, "size", outcome->way.what->size, 3);
    json_int(json, "width_voxels", outcome->way.what->width);
    json_int(json, "lines", outcome->lines);
    json_text(json, "kernel", listmode_kernels[outcome->way.kernel]);
    json_bool(json, "tof", outcome->way.has_tof);
    json_text(json, "backend", outcome->backend);
    json_text(json, "device", outcome->device);
    json_text(json, "variant",
              outcome->way.variant != LR_LISTMODE_FASTEST
                  ? common_listmode_variants[outcome->way.variant - LR_LISTMODE_SIMPLE]
                  : NULL);
    json_int(json, "subsets", listmode_subsets(bench, outcome->way.what));
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
    json_int(json, "block_threads", outcome->way.threads);
    json_int(json, "blocks", outcome->way.blocks);
    json_number(json, "collisions", outcome->collisions.share);
    json_int(json, "most_collisions", outcome->collisions.most);
    json_number(json, "paper_ms", paper_ms(outcome));
    json_close(json, '}');
}

void listmode_json(const struct listmode_bench *bench, struct json *json)
{
    json_text(json, "commit", bench_commit);
    json_number(json, "tof_ps", bench->tof_ps);
    json_open(json, "cases", '[');
    for (int k = 0; k < bench->num_outcomes; k++) json_outcome(bench, json, &bench->outcomes[k]);
    json_close(json, ']');
    listmode_json_peers(bench, json);
}
