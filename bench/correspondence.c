/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * bench correspondence: measures the time of the matrix on each backend, and its accuracy.
 *
 * A combination that cannot be measured becomes a line with the reason, and the program goes on. The exit code is then
 * not 0 if the user named the combination. Backends that come from defaults are left out if they find no device, lack
 * the exact mode, or do not support the scanner. */
#include "bench.h"
#include "cli/stop.h"
#include "cli/verbs.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const lr_mode mode_values[BENCH_NUM_MODES] = {LR_MODE_SAMPLED, LR_MODE_EXACT};

/* Marks in `chosen` each word of the list "A,B". */
static void read_words(struct cli_args *args, const char *name, const char *const *words, bool *chosen)
{
    char word[64];
    for (const char *at = args_text(args, name); at != NULL;) {
        const size_t length = strcspn(at, ",");
        int found = -1;
        snprintf(word, sizeof(word), "%.*s", (int)length, at);
        for (int k = 0; words[k] != NULL; k++) found = strcmp(words[k], word) == 0 ? k : found;
        if (found < 0) {
            char list[256] = "";
            for (int w = 0; words[w] != NULL; w++) {
                const size_t used = strlen(list);
                snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? ", " : "", words[w]);
            }
            const char *nearest = args_nearest(word, words);
            args_complain(args, "%s %s: must be one or more of %s, with commas between%s%s%s", name, word, list,
                          nearest ? ": did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");

            return;
        }
        chosen[found] = true;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
}

static struct bench_wish read_wish(struct cli_args *args)
{
    static const int64_t repeats[2] = {1, BENCH_MAX_REPEAT}, subsets[2] = {1, 100000};
    struct bench_wish wish = {
        .size = (enum bench_size)args_word(args, "--size", NULL, BENCH_SIZE_AUTO),
        .rays = (int)args_int(args, "--rays", 4, args_from_1),
        .repeat = (int)args_int(args, "--repeat", 5, repeats),
        .subsets = (int)args_int(args, "--updates", 0, subsets),
        .seconds = args_number(args, "--seconds", 10, true),
        .seed = (uint64_t)args_int(args, "--seed", 1, args_from_0),
        .threads = (int)args_int(args, "--threads", 0, args_from_0),
        .device = (int)args_int(args, "--device", 0, args_from_0),
        .max_memory_bytes = args_bytes(args, "--max-memory", 0),
    };
    const char *names[BENCH_NUM_WORKLOADS + 1] = {0};
    for (int k = 0; k < BENCH_NUM_WORKLOADS; k++) names[k] = bench_workloads[k].name;
    read_words(args, "--workload", names, wish.workloads);
    for (int k = 0; k < 4 && !args_has(args, "--workload"); k++)
        wish.workloads[k] = true; /* the default workloads: pair, angled, tilted, vista */

    wish.names_backends = args_has(args, "--backend");
    wish.names_modes = args_has(args, "--mode");
    read_words(args, "--backend", bench_backends, wish.backends);
    read_words(args, "--mode", bench_modes, wish.modes);
    for (int b = 0; b < BENCH_NUM_BACKENDS && !wish.names_backends; b++) wish.backends[b] = true;
    for (int b = 0; b < BENCH_NUM_MODES && !wish.names_modes; b++) wish.modes[b] = true;

    /* The part must lie within the grids of all requested workloads. */
    const int count = args_sizes(args, "--grid", wish.grid);
    if (count == 1)
        args_complain(args, "--grid %s: three numbers are needed, such as --grid 16,16,16", args_text(args, "--grid"));
    for (int w = 0; w < BENCH_NUM_WORKLOADS && count == 3; w++) {
        const struct bench_workload *workload = &bench_workloads[w];
        for (int axis = 0; axis < 3 && wish.workloads[w]; axis++) {
            if (wish.grid[axis] > workload->size[axis]) {
                args_complain(args, "--grid %s is no part of the %d x %d x %d voxels of %s", args_text(args, "--grid"),
                              workload->size[0], workload->size[1], workload->size[2], workload->name);
            }
        }
    }
    if (count > 0 && args_has(args, "--size")) args_complain(args, "--grid and --size exclude each other");

    return wish;
}

/* --- measuring --- */

enum { MAX_DEVICES = 32 };

struct bench {
    struct report *report;
    struct bench_wish wish;
    bool has_device; /* there is a device with OpenGL */
    lr_device device;
    struct heading {
        const struct bench_workload *workload;
        char scanner[128];
        int64_t num_lors;
        double elements, elements_error; /* figures of the whole grid */
        int elements_voxels;
    } headings[BENCH_NUM_WORKLOADS];
    int num_headings;
    struct bench_result results[BENCH_NUM_WORKLOADS * BENCH_NUM_BACKENDS * BENCH_NUM_MODES];
    int num_results;
};

/* Finds the usable device that has the number of --device. */
static void find_device(struct bench *bench)
{
    lr_device devices[MAX_DEVICES];
    const int count = lr_device_list(devices, MAX_DEVICES, &bench->report->log);
    int usable = 0;
    for (int d = 0; d < count && d < MAX_DEVICES && !bench->has_device; d++) {
        bench->has_device = devices[d].usable && usable++ == bench->wish.device;
        bench->device = devices[d];
    }
}

/* Reports a result during a long run. */
static void tell(const struct bench *bench, const struct bench_result *result)
{
    const char *workload = result->workload->name, *mode = bench_mode_name(result->mode);
    report_clear(bench->report);
    if (result->outcome == BENCH_MEASURED) {
        report_info(bench->report, "%s, %s on %s: %.4g ms forward, %.4g ms back", workload, mode, result->backend,
                    1e3 * bench_seconds(&result->directions[0]), 1e3 * bench_seconds(&result->directions[1]));
    } else {
        report_info(bench->report, "%s, %s on %s: %s: %s", workload, mode, result->backend,
                    result->outcome == BENCH_SKIPPED ? "not here" : "failed", result->reason);
    }
}

static lr_status measure_subject(struct bench *bench, struct bench_subject *subject)
{
    struct heading *heading = &bench->headings[bench->num_headings++];
    heading->workload = subject->workload;
    heading->num_lors = subject->lors->count;
    heading->elements = subject->whole.mean;
    heading->elements_error = subject->whole.mean_error;
    heading->elements_voxels = subject->whole.num_voxels;
    snprintf(heading->scanner, sizeof(heading->scanner), "%s", subject->scanner->name);

    for (int backend = 0; backend < BENCH_NUM_BACKENDS; backend++) {
        for (int mode = 0; mode < BENCH_NUM_MODES; mode++)
            if (bench->wish.backends[backend] && bench->wish.modes[mode]) {
                struct bench_result *result = &bench->results[bench->num_results];
                *result = (struct bench_result){
                    .workload = subject->workload, .backend = bench_backends[backend], .mode = mode_values[mode]};
                CLI_TRY(bench_measure(subject, &bench->wish, bench->report, result));
                /* The backend lacks exact mode if it refused exact mode with LR_USAGE, but not sampled mode. */
                const struct bench_result *before = result - 1;
                if (bench->num_results > 0 && result->outcome == BENCH_SKIPPED &&
                    before->workload == result->workload && before->backend == result->backend &&
                    before->outcome == BENCH_FAILED && before->status == result->status)
                    result->outcome = BENCH_FAILED;

                bench->num_results++;
                tell(bench, result);
            }
    }
    return LR_OK;
}

static void direction_json(struct json *json, const struct bench_result *result, int direction)
{
    const struct bench_direction *found = &result->directions[direction];
    const double voxels = (double)result->num_voxels, rate = voxels / bench_seconds(found);
    struct bench_ceiling ceilings[BENCH_MAX_CEILINGS];
    json_open(json, direction == 0 ? "forward" : "back", '{');
    json_int(json, "runs", found->runs);
    json_bool(json, "first_run", found->first_run);
    bench_json_seconds(json, found->wall_s, found->device_s);
    json_number(json, "wall_spread_seconds", found->wall_spread_s);
    json_number(json, "wall_us_per_voxel", 1e6 * found->wall_s / voxels);
    json_number(json, "device_us_per_voxel", bench_unless_zero(1e6 * found->device_s / voxels));
    json_text(json, "rates_from", found->device_s > 0 ? "device" : "wall");
    json_number(json, "rays_per_second", bench_unless_zero(rate * result->lines));
    json_number(json, "elements_per_second", rate * result->elements);
    json_open(json, "device_passes", '[');
    for (int k = 0; k < found->num_passes; k++) {
        json_open(json, NULL, '{');
        json_text(json, "name", found->passes[k].name);
        json_number(json, "seconds", found->passes[k].seconds);
        json_close(json, '}');
    }
    json_close(json, ']');

    bench_json_ceilings(json, ceilings, bench_model_ceilings(result, direction, ceilings));
    json_close(json, '}');
}

static void write_figures(const void *user, struct json *json)
{
    const struct bench *bench = user;
    if (bench->has_device) {
        json_open(json, "device", '{');
        json_text(json, "renderer", bench->device.renderer);
        json_text(json, "vendor", bench->device.vendor);
        json_text(json, "opengl", bench->device.version);
        json_bool(json, "software", bench->device.software);
        json_close(json, '}');
    } else {
        json_text(json, "device", NULL);
    }
    json_int(json, "seed", (int64_t)bench->wish.seed);
    json_number(json, "seconds", bench->wish.seconds);
    json_int(json, "repeat", bench->wish.repeat);
    json_open(json, "workloads", '[');
    for (int k = 0; k < bench->num_headings; k++) {
        const struct heading *heading = &bench->headings[k];
        const lr_grid grid = lr_grid_centred(heading->workload->size, heading->workload->voxel_mm);
        json_open(json, NULL, '{');
        json_text(json, "workload", heading->workload->name);
        json_text(json, "description", heading->workload->description);
        json_text(json, "scanner", heading->scanner);
        json_int(json, "num_lors", heading->num_lors);
        common_json_grid(json, "grid", &grid);
        json_number(json, "elements_per_voxel", heading->elements);
        json_number(json, "elements_standard_error", heading->elements_error);
        json_int(json, "elements_voxels", heading->elements_voxels);
        json_close(json, '}');
    }

    json_close(json, ']');
    json_open(json, "results", '[');
    for (int k = 0; k < bench->num_results; k++) {
        const struct bench_result *result = &bench->results[k];
        static const char *const outcomes[] = {"measured", "skipped", "failed"};
        json_open(json, NULL, '{');
        json_text(json, "workload", result->workload->name);
        json_text(json, "backend", result->backend);
        json_text(json, "mode", bench_mode_name(result->mode));
        json_text(json, "outcome", outcomes[result->outcome]);
        if (result->outcome == BENCH_MEASURED) {
            json_text(json, "device", result->device);
            json_int(json, "rays", result->rays);
            json_int(json, "threads", result->threads);
            common_json_grid(json, "grid", &result->grid);
            json_bool(json, "is_part", result->is_part);
            json_int(json, "num_voxels", result->num_voxels);
            json_number(json, "elements_per_voxel", result->elements);
            json_number(json, "elements_standard_error", result->elements_error);
            json_int(json, "elements_voxels", result->elements_voxels);
            json_number(json, "rays_per_voxel", bench_unless_zero(result->lines));
            json_bool(json, "is_oracle", result->is_oracle);
            json_number(json, "matrix_error", result->accuracy.error);
            json_number(json, "elements_missed", result->accuracy.missed);
            json_int(json, "error_voxels", result->accuracy.num_voxels);
            json_number(json, "adjoint_error", result->adjoint_error);
            direction_json(json, result, 0);
            direction_json(json, result, 1);
            if (result->updates.subsets > 0) {
                json_open(json, "update", '{');
                json_int(json, "subsets", result->updates.subsets);
                bench_json_seconds(json, result->updates.wall_s, result->updates.device_s);
                json_close(json, '}');
            }
        } else
            json_text(json, "reason", result->reason);
        json_close(json, '}');
    }

    json_close(json, ']');
}

/* Only failures of combinations that the user named decide the exit code. If all these failures have the same status,
 * this status decides. */
static lr_status conclude(const struct bench *bench)
{
    const struct bench_result *results = bench->results;
    const struct bench_result *last = NULL;
    int failed = 0, measured = 0;
    bool same = true;
    for (int k = 0; k < bench->num_results; k++) {
        measured += results[k].outcome == BENCH_MEASURED;
        if (results[k].outcome == BENCH_FAILED) {
            same = same && (last == NULL || last->status == results[k].status);
            last = &results[k];
            failed++;
        }
    }
    if (failed == 0 && measured > 0) return LR_OK;
    if (last == NULL)
        return report_error(bench->report, LR_NO_DEVICE, "nothing could be measured here: %s", results[0].reason);
    return report_error(bench->report, same && measured == 0 ? last->status : LR_FAILED,
                        "%d of %d combinations could not be measured; %s, %s on %s: %s", failed, bench->num_results,
                        last->workload->name, bench_mode_name(last->mode), last->backend, last->reason);
}

static lr_status run(struct cli_args *args)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    if (bench == NULL) return report_error(args->report, LR_FAILED, "no memory for the figures");
    const lr_log *log = &args->report->log;
    bench->report = args->report;
    bench->wish = read_wish(args);
    lr_status status = args->status;
    if (status != LR_OK) goto finish;
    find_device(bench);
    for (int k = 0; status == LR_OK && k < BENCH_NUM_WORKLOADS; k++) {
        const struct bench_workload *workload = &bench_workloads[k];
        if (!bench->wish.workloads[k]) continue;
        const lr_grid grid = lr_grid_centred(workload->size, workload->voxel_mm);
        struct bench_subject subject = {.workload = workload, .scanner = bench_scanner(workload, log)};
        if (subject.scanner != NULL)
            subject.lors = lr_lors_create_watched(subject.scanner, &args->report->progress, log);
        const struct bench_draw draw = {subject.lors, workload->error_voxels, bench->wish.seed, bench->wish.threads};
        status = subject.lors != NULL ? bench_sample_take(&subject.whole, &draw, &grid, args->report)
                                      : report_reason(args->report);
        if (status == LR_OK) status = measure_subject(bench, &subject);
        bench_sample_finish(&subject.whole);
        bench_sample_finish(&subject.part);
        lr_lors_destroy(subject.lors);
        lr_scanner_destroy(subject.scanner);
    }

    if (status == LR_OK) status = bench_write(args, write_figures, bench);
    if (status == LR_OK) status = conclude(bench);

finish:
    free(bench);
    return status;
}

static const struct cli_option options[] = {
    {"--workload", "NAME[,NAME]", "pair, angled, tilted, vista, penn, mmr; default the first four", NULL},
    {"--backend", "NAME[,NAME]", "compute, raster, native, cpu; default all that work here", NULL},
    {"--mode", "NAME[,NAME]", "sampled, exact; default both where there are", NULL},
    {"--rays", "R", "R x R lines over each crystal face; default 4", NULL},
    {"--size", "NAME", "full, small, or auto: a central part where the whole is too slow",
     CLI_WORDS("auto", "full", "small")},
    {"--grid", "NX,NY,NZ", "a central part of that many voxels", NULL},
    {0},
};

static const struct cli_option clock_options[] = {
    {"--repeat", "N", "projections that the median is of; default 5", NULL},
    {"--updates", "M", "also time updates of OSEM with M subsets; default: not", NULL},
    {"--seconds", "S", "for one direction: fewer projections where they take longer; default 10", NULL},
    {"--seed", "N", "of the images, the data and the voxels looked at; default 1", NULL},
    {COMMON_DEVICE_OPTION},
    {"--threads", "N", "default 0: all processors", NULL},
    {"--max-memory", "SIZE", "limit on the device, such as 512M or 4G", NULL},
    {BENCH_OUTPUT_OPTION},
    {0},
};

const struct cli_verb verb_bench_correspondence = {
    .name = "bench correspondence",
    .summary = VERB_BENCH_CORRESPONDENCE,
    .example = "loraster bench correspondence --workload pair,vista --mode exact -o bench.json",
    .outputs = {{"-o", common_json_endings}},
    .groups = {{"what", options}, {"how", clock_options}},
    .run = run,
};
