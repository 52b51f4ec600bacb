/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * bench direct: projections of the family `direct` in the cases of its papers, beside their figures. */
#include "direct.h"

#include "cli/direct.h"
#include "cli/verbs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLINICAL(model_, edge_s)                                                                                       \
    {                                                                                                                  \
        "clinical", NULL, {144, 144, 48}, 4, {.tof_ps = 400, .model = model_}, 40, 3, {0, 0}, edge_s                   \
    }
/* The caption of figure 4 keeps 144 x 144 x 48 voxels of any size; its text has eight times as many of
 * 2 mm as of 4, without which it could not find 64 times the work: the same extent here. */
#define FIGURE4(name_, voxel, tof, radial, axial)                                                                      \
    {                                                                                                                  \
        "figure4", name_, {576 / (voxel), 576 / (voxel), 192 / (voxel)}, voxel,                                        \
            {.tof_ps = tof, .radial_mm = radial, .axial_mm = axial}, 40, 1, {0, 0}, 0                                  \
    }

static const struct direct_case cases[DIRECT_NUM_CASES] = {
    CLINICAL(LR_RADIAL_INVARIANT, 15.63),
    CLINICAL(LR_RADIAL_VARIANT1, 22.43),
    CLINICAL(LR_RADIAL_VARIANT2, 25.66),
    CLINICAL(LR_RADIAL_VARIANT3, 24.68),
    {"caches",
     "300 ps, 5 to 6 mm, axial 5 mm",
     {144, 144, 62},
     4,
     {.tof_ps = 300, .model = LR_RADIAL_LINEAR, .radial_mm = 5, .radial_edge_mm = 6, .axial_mm = 5},
     120,
     1,
     {0.10932, 0.07612},
     0},
    {"large",
     "900 ps, 10 to 100 mm, axial 10 mm",
     {144, 144, 48},
     4,
     {.tof_ps = 900, .model = LR_RADIAL_LINEAR, .radial_mm = 10, .radial_edge_mm = 100, .axial_mm = 10},
     40,
     1,
     {2.59, 2.56},
     0},
    FIGURE4("300 ps, 10 mm", 4, 300, 10, 5),
    FIGURE4("600 ps, 10 mm", 4, 600, 10, 5),
    FIGURE4("900 ps, 10 mm", 4, 900, 10, 5),
    FIGURE4("1200 ps, 10 mm", 4, 1200, 10, 5),
    FIGURE4("300 ps, 5 mm", 4, 300, 5, 5),
    FIGURE4("300 ps, 15 mm", 4, 300, 15, 5),
    FIGURE4("300 ps, 20 mm", 4, 300, 20, 5),
    FIGURE4("375 ps, 6.5 mm", 4, 375, 6.5, 6.5),
    FIGURE4("375 ps, 6.5 mm, 3 mm voxels", 3, 375, 6.5, 6.5),
    FIGURE4("375 ps, 6.5 mm, 2 mm voxels", 2, 375, 6.5, 6.5),
};

/* Of --seconds, that a view by backend cpu may take where others are measured, too. */
enum { MOST_CPU_TIMES = 5 };

static const char *const workload_names[] = {"clinical", "caches", "large", "figure4", NULL};
static const char *const model_names[] = {"invariant 5.8 mm", "variant 1", "variant 2", "variant 3"};

const char *direct_case_name(const struct direct_case *what)
{
    return what->name != NULL ? what->name : model_names[what->resolution.model];
}

/* --- measuring --- */

static int compare_seconds(const void *a, const void *b)
{
    const lr_direct_timing *left = a, *right = b;
    const double l = left->device_s > 0 ? left->device_s : left->wall_s;
    const double r = right->device_s > 0 ? right->device_s : right->wall_s;
    return (l > r) - (l < r);
}

/* The median of as many runs as there is time for. */
static lr_status measure(const struct direct_bench *bench, lr_operator *op, const lr_direct_task *task,
                         struct direct_measured *measured)
{
    lr_direct_timing timings[DIRECT_MOST_REPEATS];
    double spent_s = 0;
    int runs = 0;
    while (runs < bench->repeat && (runs == 0 || spent_s < bench->seconds)) {
        CLI_TRY(lr_direct_time(op, task, &timings[runs]));
        spent_s += timings[runs++].wall_s;
    }
    qsort(timings, (size_t)runs, sizeof(timings[0]), compare_seconds);
    const lr_direct_timing *median = &timings[runs / 2];
    measured->views = task->num_views;
    measured->wall_s = median->wall_s / task->num_views;
    measured->device_s = median->device_s / task->num_views;
    measured->offsets = (double)median->num_offsets / task->num_views;
    return LR_OK;
}

/* One view; the first run counts where there is no time for others. */
static lr_status measure_one(const struct direct_bench *bench, lr_operator *op, const lr_direct_task *task,
                             struct direct_measured *measured)
{
    lr_direct_timing first;
    CLI_TRY(lr_direct_time(op, task, &first));
    *measured = (struct direct_measured){1, first.wall_s, first.device_s, (double)first.num_offsets};
    return first.wall_s < bench->seconds ? measure(bench, op, task, measured) : LR_OK;
}

/* How many views a batch may have within the time. */
static int batch_size(const struct direct_bench *bench, const struct direct_measured *single, int views)
{
    const double fit = bench->seconds / (single->wall_s > 0 ? single->wall_s : 1e-9);
    return fit < 1 ? 1 : fit < views ? (int)fit : views;
}

/* The image is taken to the device once. */
static lr_status take_image(lr_operator *op, const float *image)
{
    static const int first_view = 0;
    const lr_vector x = lr_vector_of_floats(image, lr_operator_get_info(op)->num_voxels);
    return lr_direct_time(op, &(lr_direct_task){LR_DIRECT_WORK_READING, &first_view, 1, &x}, &(lr_direct_timing){0});
}

static lr_status measure_works(const struct direct_bench *bench, lr_operator *op, struct direct_outcome *outcome)
{
    const int num_views = lr_direct_get_info(op)->num_views;
    int *views = calloc((size_t)num_views, sizeof(*views));
    lr_status status = views != NULL ? LR_OK : LR_FAILED;
    for (int k = 0; status == LR_OK && k < num_views; k++) views[k] = k;
    for (int work = 0; status == LR_OK && work < DIRECT_NUM_WORKS; work++) {
        lr_direct_task task = {.work = (lr_direct_work)work, .views = views, .num_views = 1};
        status = measure_one(bench, op, &task, &outcome->single[work]);
        task.num_views = batch_size(bench, &outcome->single[work], num_views);
        outcome->batch[work] = outcome->single[work];
        if (status == LR_OK && task.num_views > 1) /* once to build its tables */
            status = lr_direct_time(op, &task, &(lr_direct_timing){0});
        if (status == LR_OK && task.num_views > 1) status = measure(bench, op, &task, &outcome->batch[work]);
    }
    free(views);
    return status;
}

/* An iteration finds everything built but the first. */
static lr_status keep_seconds(void *user, const lr_iteration *done)
{
    struct direct_outcome *outcome = user;
    if (done->number == 1) /* load_s was when it began */
        outcome->load_s = report_seconds() - done->seconds - outcome->load_s;
    outcome->ramla_s = done->seconds;
    outcome->ramla_device_s = done->device_seconds;
    return LR_OK;
}

static lr_status iterate(const struct direct_bench *bench, lr_operator *op, lr_lor_data *data,
                         struct direct_outcome *outcome)
{
    const int num_views = lr_direct_get_info(op)->num_views;
    int32_t *subset_of = calloc((size_t)num_views, sizeof(*subset_of));
    lr_vector image = {0};
    lr_status status =
        lr_vector_create(&(lr_vector_params){.count = data->count / num_views, .log = &bench->report->log}, &image);
    for (int view = 0; subset_of != NULL && view < num_views; view++) subset_of[view] = view;
    outcome->load_s = report_seconds();
    if (status == LR_OK) {
        status = subset_of != NULL ? lr_recon(&(lr_recon_params){.op = op,
                                                                 .data = data,
                                                                 .iterations = 2,
                                                                 .subsets = num_views,
                                                                 .subset_of = subset_of,
                                                                 .algorithm = LR_ALGORITHM_RAMLA,
                                                                 .without_fit = true,
                                                                 .iteration = keep_seconds,
                                                                 .user = outcome,
                                                                 .log = &bench->report->log,
                                                                 .progress = &bench->report->progress},
                                              &image)
                                   : LR_FAILED;
    }
    lr_vector_destroy(&image);
    free(subset_of);
    return status;
}

/* Two iterations of all views, each with the same counts, where there is time for them. */
static lr_status measure_ramla(const struct direct_bench *bench, lr_operator *op, const float *image,
                               struct direct_outcome *outcome)
{
    const int num_views = lr_direct_get_info(op)->num_views;
    const int64_t count = lr_operator_get_info(op)->num_voxels;
    const double view_s = outcome->single[0].wall_s + outcome->single[1].wall_s;
    if (!(outcome->what->paper_ramla_s > 0) || 2 * view_s * num_views > 2 * bench->seconds) return LR_OK;
    lr_lor_data data = {.count = count * num_views,
                        .values = common_floats(bench->report, count * num_views, "counts")};
    if (data.values == NULL) return LR_FAILED;
    for (int view = 0; view < num_views; view++)
        memcpy(data.values + view * count, image, (size_t)count * sizeof(*image));
    const lr_status status = iterate(bench, op, &data, outcome);
    free(data.values);
    return status;
}

lr_operator *direct_open_case(const struct direct_bench *bench, const struct direct_outcome *outcome,
                              const lr_resolution *resolution, int view)
{
    const struct direct_case *what = outcome->what;
    const double voxel_mm[3] = {what->voxel_mm, what->voxel_mm, what->voxel_mm};
    const lr_grid grid = lr_grid_centred(what->size, voxel_mm);
    lr_view views[120];
    lr_view_set set;
    const lr_view_set wanted = {what->azimuths, what->tilts, 0};
    if (lr_view_set_complete(&wanted, &set, &bench->report->log) != LR_OK) return NULL;
    for (int k = 0; k < lr_view_set_count(&set); k++) views[k] = lr_view_set_at(&set, k);
    return lr_direct_create(
        &(lr_direct_params){.grid = &grid,
                            .views = view < 0 ? views : views + view,
                            .num_views = view < 0 ? lr_view_set_count(&set) : 1,
                            .kernel = {.resolution = resolution != NULL ? *resolution : what->resolution},
                            .backend = outcome->variant->backend,
                            .threads = bench->threads,
                            .device = bench->device,
                            .storage = outcome->variant->storage,
                            .variant = outcome->variant->way,
                            .log = &bench->report->log});
}

/* Fourier transforms are measured once a case. */
static bool was_measured(const struct direct_bench *bench, const struct direct_case *what)
{
    for (int k = 0; k < bench->num_outcomes; k++)
        if (bench->outcomes[k].what == what) return true;
    return false;
}

/* What goes on beside projections, each where it belongs. */
static lr_status measure_more(const struct direct_bench *bench, lr_operator *op, float *image,
                              struct direct_outcome *outcome)
{
    if (bench->has_peers && !was_measured(bench, outcome->what)) CLI_TRY(direct_measure_peers(bench, image, outcome));
    CLI_TRY(measure_ramla(bench, op, image, outcome));
    const bool has_stages = outcome->what->paper_ramla_s > 0 && outcome->what->resolution.model <= LR_RADIAL_VARIANT1;
    return bench->is_paper && has_stages ? direct_measure_stages(bench, op, image, outcome) : LR_OK;
}

static lr_status measure_open(const struct direct_bench *bench, lr_operator *op, struct direct_outcome *outcome)
{
    const lr_operator_info *info = lr_operator_get_info(op);
    float *image = malloc((size_t)info->num_voxels * sizeof(*image));
    if (image == NULL) return report_error(bench->report, LR_FAILED, "no memory for an image");
    snprintf(outcome->device, sizeof(outcome->device), "%s", info->device);
    for (int64_t k = 0; k < info->num_voxels; k++) image[k] = (float)(0.5 + common_random(1, k));
    lr_status status = take_image(op, image);
    if (status == LR_OK) status = measure_works(bench, op, outcome);
    if (status == LR_OK) status = measure_more(bench, op, image, outcome);
    if (status == LR_OK && bench->is_paper) status = direct_measure_attributes(op, image, outcome);
    free(image);
    return status;
}

/* --- what is said --- */

double direct_seconds(const struct direct_measured *measured)
{
    return measured->device_s > 0 ? measured->device_s : measured->wall_s;
}

static double flop_share(const struct direct_outcome *outcome, const struct direct_measured *measured)
{
    const struct direct_case *what = outcome->what;
    const double ceiling = bench_flop_ceiling(outcome->device);
    const double voxels = (double)what->size[0] * what->size[1] * what->size[2];
    return ceiling > 0 ? 2 * voxels * measured->offsets / direct_seconds(measured) / ceiling : 0;
}

static void print_heading(const struct direct_outcome *outcome)
{
    printf("Backend on %s, commit %s. Times are the device's where it has a clock; ms a view; "
           "share: of the fused multiply-add ceiling, 2 operations an offset and voxel.\n\n",
           outcome->device, bench_commit);
    printf("| case | offsets | direction | one view | of a batch | share | paper | tables, one view "
           "| of a batch | RAMLA iteration, device / wall | paper |\n"
           "|---|---|---|---|---|---|---|---|---|---|---|\n");
}

static void print_outcome(const struct direct_outcome *outcome)
{
    const struct direct_case *what = outcome->what;
    for (int work = 0; work < 2; work++) {
        const struct direct_measured *single = &outcome->single[work], *batch = &outcome->batch[work];
        printf("| %s, %s; %s | %.0f | %s | %.4g | %.4g (%d) | ", what->workload, direct_case_name(what),
               outcome->variant->name, batch->offsets, work == 0 ? "forward" : "back", 1e3 * direct_seconds(single),
               1e3 * direct_seconds(batch), batch->views);
        const double share = flop_share(outcome, batch);
        printf(share > 0 ? "%.3f | " : "| ", share);
        printf(what->paper_s[work] > 0 ? "%.4g | " : "| ", 1e3 * what->paper_s[work]);
        if (work == 0) {
            printf("%.4g | %.4g | ", 1e3 * direct_seconds(&outcome->single[2]),
                   1e3 * direct_seconds(&outcome->batch[2]));
        } else {
            printf("| | ");
        }
        if (work == 0 && outcome->ramla_s > 0) {
            printf("%.4g / %.4g | %.0f |\n", 1e3 * outcome->ramla_device_s, 1e3 * outcome->ramla_s,
                   1e3 * what->paper_ramla_s);
        } else {
            printf("| |\n");
        }
    }
    fflush(stdout);
}

static void json_measured(struct json *json, const char *key, const struct direct_measured *measured)
{
    json_open(json, key, '{');
    json_int(json, "views", measured->views);
    json_number(json, "wall_s", measured->wall_s);
    json_number(json, "device_s", measured->device_s);
    json_close(json, '}');
}

static void json_outcome(struct json *json, const struct direct_outcome *outcome)
{
    static const char *const names[DIRECT_NUM_WORKS][2] = {
        {"forward", "forward_batch"}, {"back", "back_batch"}, {"tables", "tables_batch"}};
    json_open(json, NULL, '{');
    json_text(json, "workload", outcome->what->workload);
    json_text(json, "case", direct_case_name(outcome->what));
    json_text(json, "variant", outcome->variant->name);
    json_text(json, "device", outcome->device);
    json_number(json, "offsets", outcome->batch[0].offsets);
    for (int work = 0; work < DIRECT_NUM_WORKS; work++) {
        json_measured(json, names[work][0], &outcome->single[work]);
        json_measured(json, names[work][1], &outcome->batch[work]);
    }
    json_number(json, "forward_flop_share", flop_share(outcome, &outcome->batch[0]));
    json_number(json, "back_flop_share", flop_share(outcome, &outcome->batch[1]));
    json_number(json, "ramla_s", outcome->ramla_s);
    json_number(json, "ramla_device_s", outcome->ramla_device_s);
    json_number(json, "load_s", outcome->load_s);
    direct_json_peers(outcome, json);
    direct_json_attributes(outcome, json);
    json_close(json, '}');
}

/* --- the verb --- */

/* Another backend may have come in the place of the one that was named, and cpu has no textures. */
static bool is_variant(const lr_operator *op, const struct direct_variant *variant)
{
    const char *backend = lr_operator_get_info(op)->backend;
    return variant->backend != NULL ? strcmp(backend, variant->backend) == 0
                                    : variant->storage == LR_DIRECT_BUFFERS || strcmp(backend, "cpu") != 0;
}

static bool is_cuda(const struct direct_variant *variant)
{
    return variant->backend != NULL && strcmp(variant->backend, "cuda") == 0;
}

static void tell_skipped(const struct direct_bench *bench, const struct direct_variant *variant, lr_status status)
{
    const char *lacks = is_cuda(variant) ? "no CUDA device" : "no device";
    report_info(bench->report, "%s is skipped: %s", variant->name,
                status == LR_NO_DEVICE ? lacks : "not with this kernel");
}

/* A device that one variant of CUDA lacks all lack, in all cases. */
static bool is_skipped(const struct direct_bench *bench, const struct direct_case *what,
                       const struct direct_variant *variant)
{
    const bool lacks = bench->without_cuda != NULL && is_cuda(variant);
    if (lacks && bench->without_cuda == what) tell_skipped(bench, variant, LR_NO_DEVICE);
    return lacks;
}

static double work_of(const struct direct_outcome *outcome)
{
    const int *size = outcome->what->size;
    return outcome->batch[0].offsets * (double)size[0] * size[1] * size[2];
}

/* What a view of a case takes backend cpu, by a case that it has done and another backend's figures of this one;
 * 0 = not known. */
static double expect_cpu_s(const struct direct_bench *bench, const struct direct_case *what)
{
    double second_work = 0, work = 0;
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct direct_outcome *outcome = &bench->outcomes[k];
        const char *backend = outcome->variant->backend;
        if (backend != NULL && strcmp(backend, "cpu") == 0)
            second_work = direct_seconds(&outcome->single[0]) / work_of(outcome);
        else if (outcome->what == what)
            work = work_of(outcome);
    }
    return second_work * work;
}

/* Beside other backends cpu does not hold up the rest for long. */
static bool is_too_long(const struct direct_bench *bench, const struct direct_case *what,
                        const struct direct_variant *variant)
{
    const bool is_cpu = variant->backend != NULL && strcmp(variant->backend, "cpu") == 0;
    const double expected_s = is_cpu ? expect_cpu_s(bench, what) : 0;
    const bool is_long = expected_s > MOST_CPU_TIMES * bench->seconds;
    if (is_long) {
        report_info(bench->report, "%s, cpu is skipped: a view would take about %.0f s (--backend cpu times it)",
                    direct_case_name(what), expected_s);
    }
    return is_long;
}

static lr_status measure_case(struct direct_bench *bench, const struct direct_case *what,
                              const struct direct_variant *variant)
{
    struct direct_outcome *outcome = &bench->outcomes[bench->num_outcomes];
    *outcome = (struct direct_outcome){.what = what, .variant = variant};
    lr_operator *op = direct_open_case(bench, outcome, NULL, -1);
    const bool is_other = op != NULL && !is_variant(op, variant);
    const lr_status status = is_other     ? LR_NO_DEVICE
                             : op != NULL ? measure_open(bench, op, outcome)
                                          : report_reason(bench->report);
    lr_operator_destroy(op);
    if ((status == LR_NO_DEVICE || status == LR_USAGE) && (is_other || bench->num_variants > 1)) {
        tell_skipped(bench, variant, status);
        if (status == LR_NO_DEVICE && is_cuda(variant)) bench->without_cuda = what;
        return LR_OK;
    }
    CLI_TRY(status);
    report_clear(bench->report);
    if (!bench->report->json) {
        if (bench->num_outcomes == 0) print_heading(outcome);
        print_outcome(outcome);
    }
    bench->num_outcomes++;
    return LR_OK;
}

static bool is_chosen(const struct direct_bench *bench, const struct direct_case *what)
{
    if (bench->name != NULL && strstr(direct_case_name(what), bench->name) == NULL) return false;
    for (int w = 0; workload_names[w] != NULL; w++)
        if (bench->chosen[w] && strcmp(what->workload, workload_names[w]) == 0) return true;
    return false;
}

static void write_json(const struct direct_bench *bench, FILE *stream)
{
    struct json json = {stream, false};
    common_json_open(&json, "bench direct");
    json_text(&json, "commit", bench_commit);
    json_open(&json, "cases", '[');
    for (int k = 0; k < bench->num_outcomes; k++) json_outcome(&json, &bench->outcomes[k]);
    json_close(&json, ']');
    if (bench->is_paper) direct_json_paper(bench, &json);
    common_json_end(&json);
}

static lr_status write_file(const struct direct_bench *bench)
{
    struct common_text text;
    common_text_begin(&text);
    if (text.stream != NULL) write_json(bench, text.stream);
    return common_text_write(&text, bench->report, bench->path);
}

static lr_status run_bench(struct direct_bench *bench)
{
    for (int k = 0; k < DIRECT_NUM_CASES; k++) {
        for (int n = 0; is_chosen(bench, &cases[k]) && n < bench->num_variants; n++) {
            const struct direct_variant *variant = bench->variants[n];
            if (!is_skipped(bench, &cases[k], variant) && !is_too_long(bench, &cases[k], variant))
                CLI_TRY(measure_case(bench, &cases[k], variant));
        }
    }
    if (bench->report->json)
        write_json(bench, stdout);
    else
        direct_print_peers(bench);
    if (bench->is_paper && !bench->report->json) direct_print_paper(bench);
    return bench->path != NULL ? write_file(bench) : LR_OK;
}

/* The cases that --workload and --case name. */
static void choose_cases(struct direct_bench *bench, struct cli_args *args)
{
    const int only = args_word(args, "--workload", workload_names, -1);
    bool has_any = false;
    bench->name = args_text(args, "--case");
    if (bench->name != NULL && bench->is_paper)
        args_complain(args, "--paper needs all cases of a workload: leave --case out");
    for (int w = 0; w < 4; w++) bench->chosen[w] = only < 0 ? w < 3 || bench->is_paper : w == only;
    for (int k = 0; k < DIRECT_NUM_CASES; k++) has_any = has_any || is_chosen(bench, &cases[k]);
    if (!has_any) {
        args_complain(args,
                      "--case %s: no name of a case has this in it; loraster bench direct "
                      "prints them, such as \"variant 2\"",
                      bench->name);
    }
}

static lr_status run_chosen(struct direct_bench *bench, struct cli_args *args)
{
    static const int64_t at_least_one[2] = {1, INT_MAX}, at_least_zero[2] = {0, INT_MAX};
    static const int64_t repeats[2] = {1, DIRECT_MOST_REPEATS};
    bench->report = args->report;
    bench->is_paper = args_has(args, "--paper");
    bench->has_peers = !args_has(args, "--no-fourier");
    bench->path = args_text(args, "-o");
    direct_choose_variants(bench, args);
    choose_cases(bench, args);
    bench->device = (int)args_int(args, "--device", 0, at_least_zero);
    bench->threads = (int)args_int(args, "--threads", 0, at_least_one);
    bench->repeat = (int)args_int(args, "--repeat", 11, repeats);
    bench->seconds = args_number(args, "--seconds", 10, true);
    CLI_TRY(args->status);
    return run_bench(bench);
}

static lr_status run(struct cli_args *args)
{
    struct direct_bench *bench = calloc(1, sizeof(*bench));
    if (bench == NULL) return report_error(args->report, LR_FAILED, "no memory for the figures");
    const lr_status status = run_chosen(bench, args);
    free(bench);
    return status;
}

static const struct cli_option options[] = {
    {"--workload", "NAME", "clinical, caches, large or figure4; default the first three", false},
    {"--case", "TEXT", "only cases that have this in their names, such as \"variant 2\"", false},
    {"--paper", NULL, "also the papers' tables and figure 4, beside what is measured here", false},
    {"--no-fourier", NULL, "no Fourier transforms beside the cases", false},
    {"--backend", "NAME", "cpu, compute, cuda, or all of them; default auto", false},
    {"--storage", "NAME",
     "compute and cuda: images in buffers, textures, or both, one after the other; default "
     "buffers, both with --backend all",
     false},
    {"--variant", "NAME",
     "cuda: bands, columns (from buffers), threads, instructions, shared-memory or "
     "texture-cache (from buffers or textures); default all that the storage can have",
     false},
    {"--repeat", "N", "runs that the median is of; default 11", false},
    {"--seconds", "S", "for one figure: fewer runs and views where they take longer; default 10", false},
    {"--device", "N", "which usable device of loraster info; default 0", false},
    {"--threads", "N", "default: all processors", false},
    {"-o", "FILE", "JSON of all figures, beside the tables", false},
    {0},
};

static const struct cli_syntax syntax = {
    .verb = "bench direct",
    .summary = VERB_BENCH_DIRECT,
    .example = "loraster bench direct --workload clinical --backend compute",
    .outputs = {{"-o", common_json_endings}},
    .groups = {{"what and how", options}, COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_bench_direct = {&syntax, run};
