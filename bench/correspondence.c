/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * bench correspondence: how long the matrix takes on each backend, and how right it is.
 *
 * A combination that cannot be measured is a line with the reason, and the rest goes on. It ends the program with an
 * exit code other than 0 unless it was only meant by a default: a backend that finds no device, lacks the exact mode,
 * or serves other scanners only, is passed over unless it was asked for by name. */
#include "bench.h"
#include "cli/stop.h"
#include "cli/verbs.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const lr_mode mode_values[BENCH_NUM_MODES] = {LR_MODE_SAMPLED, LR_MODE_EXACT};

/* Marks each word of "A,B" in `chosen`. */
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
    static const char *const sizes[] = {"auto", "full", "small", NULL};
    static const int64_t at_least_one[2] = {1, INT_MAX}, at_least_zero[2] = {0, INT_MAX};
    static const int64_t repeats[2] = {1, BENCH_MAX_REPEAT}, subsets[2] = {1, 100000};
    struct bench_wish wish = {
        .size = (enum bench_size)args_word(args, "--size", sizes, BENCH_SIZE_AUTO),
        .rays = (int)args_int(args, "--rays", 4, at_least_one),
        .repeat = (int)args_int(args, "--repeat", 5, repeats),
        .subsets = (int)args_int(args, "--updates", 0, subsets),
        .seconds = args_number(args, "--seconds", 10, true),
        .seed = (uint64_t)args_int(args, "--seed", 1, at_least_zero),
        .threads = (int)args_int(args, "--threads", 0, at_least_one),
        .device = (int)args_int(args, "--device", 0, at_least_zero),
        .max_memory_bytes = args_bytes(args, "--max-memory", 0),
    };
    const char *names[BENCH_NUM_WORKLOADS + 1] = {0};
    for (int k = 0; k < BENCH_NUM_WORKLOADS; k++) names[k] = bench_workloads[k].name;
    read_words(args, "--workload", names, wish.workloads);
    for (int k = 0; k < 4 && !args_has(args, "--workload"); k++)
        wish.workloads[k] = true; /* pair, angled, tilted, vista */

    wish.names_backends = args_has(args, "--backend");
    wish.names_modes = args_has(args, "--mode");
    read_words(args, "--backend", bench_backends, wish.backends);
    read_words(args, "--mode", bench_modes, wish.modes);
    for (int b = 0; b < BENCH_NUM_BACKENDS && !wish.names_backends; b++) wish.backends[b] = true;
    for (int b = 0; b < BENCH_NUM_MODES && !wish.names_modes; b++) wish.modes[b] = true;

    /* A part must lie within every workload that is asked for. */
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

struct bench {
    struct report *report;
    struct bench_wish wish;
    struct bench_report found;
    bool prints; /* a table on standard output */
};

static lr_status measure_subject(struct bench *bench, struct bench_subject *subject)
{
    struct bench_heading *heading = &bench->found.headings[bench->found.num_headings++];
    heading->workload = subject->workload;
    heading->num_lors = subject->lors->count;
    heading->elements = subject->whole.mean;
    heading->elements_error = subject->whole.mean_error;
    heading->elements_voxels = subject->whole.num_voxels;
    snprintf(heading->scanner, sizeof(heading->scanner), "%s", subject->scanner->name);
    report_clear(bench->report);
    if (bench->prints) bench_table_heading(heading);

    for (int backend = 0; backend < BENCH_NUM_BACKENDS; backend++) {
        for (int mode = 0; mode < BENCH_NUM_MODES; mode++)
            if (bench->wish.backends[backend] && bench->wish.modes[mode]) {
                struct bench_result *result = &bench->found.results[bench->found.num_results];
                *result = (struct bench_result){
                    .workload = subject->workload, .backend = bench_backends[backend], .mode = mode_values[mode]};
                CLI_TRY(bench_measure(subject, &bench->wish, bench->report, result));
                /* Refused as usage in exact mode: the mode is not there, unless sampled was refused just so. */
                const struct bench_result *before = result - 1;
                if (bench->found.num_results > 0 && result->outcome == BENCH_SKIPPED &&
                    before->workload == result->workload && before->backend == result->backend &&
                    before->outcome == BENCH_FAILED && before->status == result->status)
                    result->outcome = BENCH_FAILED;

                bench->found.num_results++;
                report_clear(bench->report);
                if (bench->prints) bench_table_result(result);
            }
    }
    return LR_OK;
}

static void write_json(const struct bench *bench, FILE *stream)
{
    struct json json = {stream, false};
    common_json_open(&json, "bench correspondence");
    bench_json(&bench->found, &json);
    common_json_end(&json);
}

/* Failures of what was asked for by name decide the exit code; one reason alone keeps its own. */
static lr_status conclude(const struct bench *bench)
{
    const struct bench_result *results = bench->found.results;
    const struct bench_result *last = NULL;
    int failed = 0, measured = 0;
    bool same = true;
    for (int k = 0; k < bench->found.num_results; k++) {
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
                        "%d of %d combinations could not be measured; %s, %s on %s: %s", failed,
                        bench->found.num_results, last->workload->name, bench_mode_name(last->mode), last->backend,
                        last->reason);
}

static lr_status run(struct cli_args *args)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    if (bench == NULL) return report_error(args->report, LR_FAILED, "no memory for the figures");
    const char *path = args_text(args, "-o");
    const lr_log *log = &args->report->log;
    bench->report = args->report;
    bench->prints = !args->report->json;
    bench->wish = read_wish(args);
    lr_status status = args->status;
    if (status != LR_OK) goto finish;
    bench_report_init(&bench->found, args, &bench->wish);
    if (bench->prints) bench_table_begin(&bench->found);
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

    struct common_text text;
    if (status == LR_OK && args->report->json) write_json(bench, stdout);
    if (status == LR_OK && path != NULL) {
        common_text_begin(&text);
        if (text.stream != NULL) write_json(bench, text.stream);
        status = common_text_write(&text, args->report, path);
    }
    if (status == LR_OK) status = conclude(bench);

finish:
    free(bench);
    return status;
}

static const struct cli_option options[] = {
    {"--workload", "NAME[,NAME]", "pair, angled, tilted, vista, penn, mmr; default the first four", false},
    {"--backend", "NAME[,NAME]", "compute, raster, native, cpu; default all that work here", false},
    {"--mode", "NAME[,NAME]", "sampled, exact; default both where there are", false},
    {"--rays", "R", "R x R lines over each crystal face; default 4", false},
    {"--size", "NAME", "full, small, or auto: a central part where the whole is too slow", false},
    {"--grid", "NX,NY,NZ", "a central part of that many voxels", false},
    {0},
};

static const struct cli_option clock_options[] = {
    {"--repeat", "N", "projections that the median is of; default 5", false},
    {"--updates", "M", "also time updates of OSEM with M subsets; default: not", false},
    {"--seconds", "S", "for one direction: fewer projections where they take longer; default 10", false},
    {"--seed", "N", "of the images, the data and the voxels looked at; default 1", false},
    {"--device", "N", "which usable device of loraster info; default 0", false},
    {"--threads", "N", "default: all processors", false},
    {"--max-memory", "SIZE", "limit on the device, such as 512M or 4G", false},
    {"-o", "FILE", "JSON of all figures, beside the table", false},
    {0},
};

static const struct cli_syntax syntax = {
    .verb = "bench correspondence",
    .summary = VERB_BENCH_CORRESPONDENCE,
    .example = "loraster bench correspondence --workload pair,vista --mode exact -o bench.json",
    .outputs = {{"-o", common_json_endings}},
    .groups = {{"what", options}, {"how", clock_options}, COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_bench_correspondence = {&syntax, run};
