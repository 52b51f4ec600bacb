/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The papers' tables, and what the same quantities are here. Paper 1: Ha, Ispiryan, Matej, Mueller,
 * GPU-Based spatially variant SR kernel modeling and projections in 3D DIRECT TOF PET Reconstruction.
 * Paper 2: Ha, Matej, Mueller, Efficiently GPU-Accelerating Long Kernel Convolutions in 3-D DIRECT
 * TOF PET Reconstruction via Memory Cache Optimization. */
#include "direct.h"

#include <stdio.h>
#include <string.h>

enum { VIEWS = 120, ITERATIONS = 20, NUM_STAGES = 8, NUM_MODELS = 4 };

/* Paper 1, table II: seconds of one view on a GeForce GTX 285, forward and back. */
static const double table2_s[2][2] = {{4.94, 4.37}, {2.59, 2.56}};
static const char *const table2_names[2] = {"paper 1, threads (GTX 285)", "paper 1, instructions (GTX 285)"};

/* Paper 1, table III: seconds of one iteration; the first one by Fourier transforms. */
static const double table3_s[1 + NUM_MODELS] = {21.48, 15.63, 22.43, 25.66, 24.68};

/* Paper 1, table IV: seconds of 20 iterations, invariant and variant1, and the sum. */
static const char *const stage_names[NUM_STAGES] = {"to_device_forward", "forward", "to_host_forward", "discrepancy",
                                                    "to_device_back",    "back",    "to_host_back",    "update"};
static const double table4_s[2][NUM_STAGES + 1] = {
    {7.53, 105.27, 2.85, 0.32, 7.59, 103.18, 2.85, 12.59, 311.97},
    {7.55, 172.88, 2.86, 0.32, 7.59, 169.81, 2.85, 12.58, 446.21},
};

/* Paper 2, table 2: seconds of one view on a GTX 480; iterations of 120 views, by its texture method
 * and by Fourier transforms; what any other stage, of which tables are one, takes. */
static const double caches_s[2][2] = {{0.16213, 0.14077}, {0.10932, 0.07612}};
static const char *const caches_names[2] = {"paper 2, shared memory (GTX 480)", "paper 2, texture cache (GTX 480)"};
static const double caches_iteration_s[2] = {24, 40};
static const double caches_tables_s = 0.00003;

/* --- finding what has been measured --- */

static const char *const model_names[] = {"invariant 5.8 mm", "variant 1", "variant 2", "variant 3"};

const char *direct_case_name(const struct direct_case *what)
{
    return what->name != NULL ? what->name : model_names[what->resolution.model];
}

double direct_seconds(const struct direct_measured *measured)
{
    return measured->device_s > 0 ? measured->device_s : measured->wall_s;
}

/* Number `nth` of the outcomes of a workload and variant, or NULL. */
static const struct direct_outcome *find(const struct direct_bench *bench, int variant, const char *workload, int nth)
{
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct direct_outcome *outcome = &bench->outcomes[k];
        if (outcome->variant == bench->variants[variant] && strcmp(outcome->what->workload, workload) == 0 &&
            nth-- == 0)
            return outcome;
    }
    return NULL;
}

static double iteration_s(const struct direct_outcome *outcome, bool *is_estimate)
{
    *is_estimate = !(outcome->ramla_s > 0);
    return *is_estimate ? VIEWS * (direct_seconds(&outcome->batch[0]) + direct_seconds(&outcome->batch[1]))
                        : outcome->ramla_s;
}

/* By the device's clock, if there is one. */
static double peer_s(const struct fft_timing *timing)
{
    return timing->device_s > 0 ? timing->device_s : timing->wall_s;
}

/* Time of one volume by the fastest library, without zeros around it; 0: none. */
static double transform_s(const struct direct_bench *bench, const struct direct_case *what)
{
    double fastest = 0;
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct direct_outcome *outcome = &bench->outcomes[k];
        for (int n = 0; outcome->what == what && n < outcome->num_peers; n++) {
            const double seconds = peer_s(&outcome->peers[n].single);
            if (!outcome->peers[n].is_padded && (!(fastest > 0) || seconds < fastest)) fastest = seconds;
        }
    }
    return fastest;
}

/* 20 iterations in the order of stage_names, and their sum. */
static void list_stages(const struct direct_stages *stages, double seconds[NUM_STAGES + 1])
{
    const double each[NUM_STAGES] = {stages->to_device[0], stages->project[0], stages->to_host[0], stages->discrepancy,
                                     stages->to_device[1], stages->project[1], stages->to_host[1], stages->update};
    seconds[NUM_STAGES] = 0;
    for (int k = 0; k < NUM_STAGES; k++) {
        seconds[k] = ITERATIONS * VIEWS * each[k];
        seconds[NUM_STAGES] += seconds[k];
    }
}

/* A row of table III: an iteration by Fourier transforms, and with each model. 0 = not measured */
static void find_table3(const struct direct_bench *bench, int variant, double seconds[1 + NUM_MODELS],
                        bool are_estimates[1 + NUM_MODELS])
{
    for (int k = 0; k <= NUM_MODELS; k++) {
        const struct direct_outcome *outcome = find(bench, variant, "clinical", k == 0 ? 0 : k - 1);
        seconds[k] = 0;
        are_estimates[k] = true;
        if (outcome != NULL && k == 0) seconds[k] = 2 * VIEWS * transform_s(bench, outcome->what);
        if (outcome != NULL && k > 0) seconds[k] = iteration_s(outcome, &are_estimates[k]);
    }
}

void direct_print_peers(const struct direct_bench *bench)
{
    bool has_heading = false;
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct direct_outcome *outcome = &bench->outcomes[k];
        for (int n = 0; n < outcome->num_peers; n++) {
            if (!has_heading) {
                printf("\nBy Fourier transforms: there, times the kernel's spectrum, and back; ms a "
                       "volume, by the device's clock where there is one. The kernel is that of the "
                       "centre everywhere; error: relative L2 against our projection with it. Without "
                       "zeros around it ends meet.\n\n"
                       "| case | library | voxels | one volume | of a batch | error |\n"
                       "|---|---|---|---|---|---|\n");
            }
            has_heading = true;
            const struct fft_result *peer = &outcome->peers[n];
            printf("| %s, %s | %s | %d x %d x %d%s | %.4g | %.4g (%d) | %.2g |\n", outcome->what->workload,
                   direct_case_name(outcome->what), peer->name, peer->size[0], peer->size[1], peer->size[2],
                   peer->is_padded ? ", zeros around" : "", 1e3 * peer_s(&peer->single), 1e3 * peer_s(&peer->batch),
                   peer->volumes, peer->error);
        }
    }
}

static void json_timing(struct json *json, const char *key, const struct fft_timing *timing)
{
    json_open(json, key, '{');
    json_number(json, "wall_s", timing->wall_s);
    json_number(json, "device_s", timing->device_s);
    json_close(json, '}');
}

void direct_json_peers(const struct direct_outcome *outcome, struct json *json)
{
    json_open(json, "fft", '[');
    for (int n = 0; n < outcome->num_peers; n++) {
        const struct fft_result *peer = &outcome->peers[n];
        json_open(json, NULL, '{');
        json_text(json, "library", peer->library->name);
        json_text(json, "name", peer->name);
        json_bool(json, "padded", peer->is_padded);
        json_ints(json, "size", peer->size, 3);
        json_timing(json, "single", &peer->single);
        json_timing(json, "batch", &peer->batch);
        json_int(json, "volumes", peer->volumes);
        json_number(json, "error", peer->error);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* --- the papers' tables --- */

static void print_table3(const struct direct_bench *bench)
{
    printf("\nTable III of paper 1: one RAMLA iteration of 40 x 3 views, 144 x 144 x 48; seconds. "
           "~: projections alone, from the views that there was time for. The paper's read the data "
           "and take images to and fro; ours have the data on the device. Fourier: by the fastest "
           "library.\n\n"
           "| | Fourier, invariant | invariant | variant 1 | variant 2 | variant 3 |\n"
           "|---|---|---|---|---|---|\n| paper 1 | ");
    for (int k = 0; k <= NUM_MODELS; k++) printf("%.2f | ", table3_s[k]);
    printf("\n");
    for (int v = 0; v < bench->num_variants; v++) {
        double seconds[1 + NUM_MODELS];
        bool are_estimates[1 + NUM_MODELS];
        find_table3(bench, v, seconds, are_estimates);
        printf("| %s | ", bench->variants[v]->name);
        for (int k = 0; k <= NUM_MODELS; k++)
            printf(seconds[k] > 0 ? (are_estimates[k] ? "~%.4g | " : "%.4g | ") : "- | ", seconds[k]);
        printf("\n");
    }
    for (int v = 0; v < bench->num_variants; v++) {
        const struct direct_outcome *outcome = find(bench, v, "clinical", 0);
        if (outcome != NULL && outcome->load_s > 0)
            printf("\n%s: loading all views once takes %.3g s.\n", bench->variants[v]->name, outcome->load_s);
    }
}

static void print_stages(const char *name, const char *model, const char *how, const double seconds[NUM_STAGES + 1])
{
    printf("| %s, %s%s | ", name, model, how);
    for (int k = 0; k <= NUM_STAGES; k++) printf("%.4g | ", seconds[k]);
    printf("\n");
}

static void print_table4(const struct direct_bench *bench)
{
    static const char *const models[2] = {"invariant", "variant 1"};
    double seconds[NUM_STAGES + 1];
    printf("\nTable IV of paper 1: stages of 20 iterations of 40 x 3 views; seconds. As the paper: "
           "every projection by itself, discrepancy and update on the host, scaled from the views "
           "that there was time for. Resident: 20 of our iterations; update is all that is no "
           "projection. The paper's totals hold more than its stages.\n\n"
           "| | to device | forward | to host | discrepancy | to device | back | to host | update | "
           "total |\n|---|---|---|---|---|---|---|---|---|---|\n");
    for (int m = 0; m < 2; m++) {
        print_stages("paper 1", models[m], "", table4_s[m]);
        for (int v = 0; v < bench->num_variants; v++) {
            const struct direct_outcome *outcome = find(bench, v, "clinical", m);
            char how[64];
            if (outcome != NULL && outcome->stages.views > 0) {
                snprintf(how, sizeof(how), ", as the paper (%d views)", outcome->stages.views);
                list_stages(&outcome->stages, seconds);
                print_stages(bench->variants[v]->name, models[m], how, seconds);
            }
            if (outcome != NULL && outcome->ramla_s > 0) {
                /* The same with everything left on the device: what is no projection is discrepancy and update. */
                const double whole = ITERATIONS * outcome->ramla_s;
                memset(seconds, 0, (NUM_STAGES + 1) * sizeof(*seconds));
                seconds[1] = ITERATIONS * VIEWS * direct_seconds(&outcome->batch[0]);
                seconds[5] = ITERATIONS * VIEWS * direct_seconds(&outcome->batch[1]);
                const double rest = whole - seconds[1] - seconds[5];
                seconds[7] = rest > 0 ? rest : 0;
                seconds[NUM_STAGES] = whole;

                print_stages(bench->variants[v]->name, models[m], ", resident", seconds);
            }
        }
    }
}

static void print_figure4(const struct direct_bench *bench)
{
    printf("\nFigure 4 of paper 1: one view, invariant kernels; ms. The paper draws bars without "
           "numbers; its text: at 375 ps and 4 mm its projection takes half of the transform's time, "
           "at 2 mm 2.7 times as much; from 4 to 2 mm it takes 54.3 times as long, the transform "
           "9.4 times. Fourier: by the fastest library.\n\n| | Fourier | ");
    for (int v = 0; v < bench->num_variants; v++)
        printf("%s: forward | back | forward / Fourier | ", bench->variants[v]->name);
    printf("\n|---|---|");
    for (int v = 0; v < bench->num_variants; v++) printf("---|---|---|");
    for (int n = 0; find(bench, 0, "figure4", n) != NULL; n++) {
        const struct direct_case *what = find(bench, 0, "figure4", n)->what;
        const double transform = transform_s(bench, what);
        printf(transform > 0 ? "\n| %s | %.4g | " : "\n| %s | - | ", direct_case_name(what), 1e3 * transform);
        for (int v = 0; v < bench->num_variants; v++) {
            const struct direct_outcome *outcome = find(bench, v, "figure4", n);
            const double forward = outcome != NULL ? direct_seconds(&outcome->single[0]) : 0;
            const double back = outcome != NULL ? direct_seconds(&outcome->single[1]) : 0;
            printf("%.4g | %.4g | %.3g | ", 1e3 * forward, 1e3 * back, transform > 0 ? forward / transform : 0);
        }
    }
    printf("\n");
}

static void print_caches(const struct direct_bench *bench)
{
    printf("\nTable 2 of paper 2: one view, 144 x 144 x 62, 45 mm along the line, 5 to 6 mm across; "
           "seconds. Iteration: 120 views forward and back (paper 2: Fourier transforms %g s on a "
           "processor).\n\n| | forward | back | tables | iteration |\n|---|---|---|---|---|\n",
           caches_iteration_s[1]);
    for (int k = 0; k < 2; k++) {
        printf("| %s | %.5f | %.5f | %.5f | ", caches_names[k], caches_s[k][0], caches_s[k][1], caches_tables_s);
        printf(k == 1 ? "%g |\n" : "- |\n", caches_iteration_s[0]);
    }
    for (int v = 0; v < bench->num_variants; v++) {
        const struct direct_outcome *outcome = find(bench, v, "caches", 0);
        if (outcome != NULL) {
            bool unused;
            printf("| %s | %.4g | %.4g | %.4g | %.4g |\n", bench->variants[v]->name,
                   direct_seconds(&outcome->single[0]), direct_seconds(&outcome->single[1]),
                   direct_seconds(&outcome->single[2]), iteration_s(outcome, &unused));
        }
    }
}

/* --- table II of paper 1: what CUDA kernels take of the device --- */

/* On a GeForce GTX 285. Registers: forward, back. */
static const struct {
    const char *name;
    int constant_bytes, local_bytes, shared_bytes, threads, registers[2], occupancy_percent;
} table2[2] = {
    {"paper 1, threads (GTX 285)", 36, 0, 64, 512, {14, 13}, 100},
    {"paper 1, instructions (GTX 285)", 36, 0, 64, 384, {42, 42}, 38},
};

static const char *const directions[2] = {"forward", "back"};

void direct_print_paper(const struct direct_bench *bench)
{
    if (bench->chosen[2]) {
        printf("\nTable II of paper 1: one view, 900 ps, 10 to 100 mm, axial 10 mm, 144 x 144 x 48; "
               "seconds. Ours: one view by itself, and the mean of views in a row.\n\n"
               "| | forward | back |\n|---|---|---|\n");
        for (int k = 0; k < 2; k++) printf("| %s | %.2f | %.2f |\n", table2_names[k], table2_s[k][0], table2_s[k][1]);
        for (int v = 0; v < bench->num_variants; v++) {
            const struct direct_outcome *outcome = find(bench, v, "large", 0);
            if (outcome != NULL) {
                printf("| %s, one view | %.4g | %.4g |\n| %s, of %d views | %.4g | %.4g |\n", bench->variants[v]->name,
                       direct_seconds(&outcome->single[0]), direct_seconds(&outcome->single[1]),
                       bench->variants[v]->name, outcome->batch[0].views, direct_seconds(&outcome->batch[0]),
                       direct_seconds(&outcome->batch[1]));
            }
        }

        printf("\nTable II of paper 1: what kernels take, by the driver's own query; registers of the "
               "paper are those of forward and back.\n\n"
               "| | constant memory, bytes | local memory of a thread, bytes | shared memory of a "
               "block, bytes | threads of a block | registers of a thread | occupancy, %% |\n"
               "|---|---|---|---|---|---|---|\n");
        for (int k = 0; k < 2; k++) {
            printf("| %s | %d | %d | %d | %d | %d, %d | %d |\n", table2[k].name, table2[k].constant_bytes,
                   table2[k].local_bytes, table2[k].shared_bytes, table2[k].threads, table2[k].registers[0],
                   table2[k].registers[1], table2[k].occupancy_percent);
        }
        for (int k = 0; k < bench->num_outcomes; k++) {
            const struct direct_outcome *outcome = &bench->outcomes[k];
            const bool is_case = strcmp(outcome->what->workload, "large") == 0;
            for (int back = 0; is_case && outcome->has_attributes && back < 2; back++) {
                const lr_direct_attributes *found = &outcome->attributes[back];
                printf("| %s, %s | %lld | %lld | %lld | %d | %d | %.0f |\n", outcome->variant->name, directions[back],
                       (long long)found->constant_bytes, (long long)found->local_bytes, (long long)found->shared_bytes,
                       found->threads, found->registers, 100.0 * found->occupancy);
            }
        }
    }
    if (bench->chosen[0]) {
        print_table3(bench);
        print_table4(bench);
    }
    if (bench->chosen[3]) print_figure4(bench);
    if (bench->chosen[1]) print_caches(bench);
}

/* --- JSON: the papers' numbers, and those of ours that the cases have not --- */

static void json_stages(struct json *json, const double seconds[NUM_STAGES + 1])
{
    for (int k = 0; k < NUM_STAGES; k++) json_number(json, stage_names[k], seconds[k]);
    json_number(json, "total", seconds[NUM_STAGES]);
}

static void json_pairs(struct json *json, const char *const names[2], const double seconds[2][2])
{
    for (int k = 0; k < 2; k++) json_numbers(json, names[k], seconds[k], 2);
}

void direct_json_paper(const struct direct_bench *bench, struct json *json)
{
    static const char *const models[2] = {"invariant", "variant1"};
    json_open(json, "paper", '{');
    json_open(json, "table2", '{');
    json_pairs(json, table2_names, table2_s);
    json_close(json, '}');
    json_open(json, "table3", '{');
    json_numbers(json, "paper", table3_s, 1 + NUM_MODELS);
    json_open(json, "here", '[');
    for (int v = 0; v < bench->num_variants; v++) {
        double seconds[1 + NUM_MODELS];
        bool are_estimates[1 + NUM_MODELS];
        find_table3(bench, v, seconds, are_estimates);
        json_open(json, NULL, '{');
        json_text(json, "variant", bench->variants[v]->name);
        json_numbers(json, "seconds", seconds, 1 + NUM_MODELS);
        json_close(json, '}');
    }
    json_close(json, ']');

    json_close(json, '}');
    json_open(json, "table4", '{');
    for (int m = 0; m < 2; m++) {
        json_open(json, models[m], '{');
        json_open(json, "paper", '{');
        json_stages(json, table4_s[m]);
        json_close(json, '}');
        json_open(json, "here", '[');
        for (int v = 0; v < bench->num_variants; v++) {
            const struct direct_outcome *outcome = find(bench, v, "clinical", m);
            if (outcome == NULL || outcome->stages.views <= 0) continue;
            double stages[NUM_STAGES + 1];
            json_open(json, NULL, '{');
            json_text(json, "variant", bench->variants[v]->name);
            json_int(json, "views", outcome->stages.views);
            list_stages(&outcome->stages, stages);
            json_stages(json, stages);
            json_close(json, '}');
        }
        json_close(json, ']');
        json_close(json, '}');
    }
    json_close(json, '}');
    json_open(json, "caches", '{');
    json_pairs(json, caches_names, caches_s);
    json_numbers(json, "iteration_s", caches_iteration_s, 2);
    json_number(json, "tables_s", caches_tables_s);
    json_close(json, '}');
    json_close(json, '}');
}
