/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * bench listmode: iterations over random lines in the cases of the family's paper, beside its figures. */
#include "listmode.h"

#include "cli/direct.h"
#include "cli/verbs.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

const char *const listmode_kernels[LISTMODE_NUM_KERNELS + 1] = {"tube", "line", "exact", NULL};
const char *const listmode_backends[LISTMODE_NUM_BACKENDS + 1] = {"cpu", "native", "compute", "cuda", NULL};

/* That of a case, where it is not the one at hand. */
static lr_status open_scanner(struct listmode_bench *bench, const struct listmode_case *what)
{
    if (bench->lors != NULL && bench->preset == what->preset) return LR_OK;
    lr_lors_destroy(bench->lors);
    lr_scanner_destroy(bench->scanner);
    bench->lors = NULL;
    bench->preset = what->preset;
    bench->scanner = listmode_scanner(what->preset, bench->tof_ps, &bench->report->log);
    if (bench->scanner == NULL) return report_reason(bench->report);
    bench->lors = lr_lors_create(bench->scanner, &bench->report->log);
    return bench->lors != NULL ? LR_OK : report_reason(bench->report);
}

/* A backend that is not there, or lacks the kernel, is left out of several. */
static lr_status measure(struct listmode_bench *bench, const struct listmode_way *way)
{
    struct listmode_outcome *outcome = &bench->outcomes[bench->num_outcomes];
    if (bench->num_outcomes == LISTMODE_MOST_OUTCOMES) return LR_OK;
    CLI_TRY(open_scanner(bench, way->what));
    *outcome = (struct listmode_outcome){.way = *way};
    const lr_status status = listmode_measure(bench, outcome);
    if (status != LR_OK) { /* it is not counted among those that are freed at the end */
        free(outcome->image);
        outcome->image = NULL;
    }
    if ((status == LR_NO_DEVICE || status == LR_USAGE) && bench->is_all) {
        report_info(bench->report, "%s is left out", way->backend);
        return LR_OK;
    }
    CLI_TRY(status);
    report_clear(bench->report);
    if (!bench->report->json && bench->num_outcomes == 0) listmode_print_heading(bench);
    if (!bench->report->json) listmode_print(bench, outcome);
    bench->num_outcomes++;
    return LR_OK;
}

/* The step before fast math, and that. */
static lr_status measure_fastmath(struct listmode_bench *bench, struct listmode_way *way)
{
    static const lr_listmode_variant steps[2] = {LR_LISTMODE_SORTED, LR_LISTMODE_FASTMATH};
    for (int k = 0; k < 2; k++) {
        way->variant = steps[k];
        CLI_TRY(measure(bench, way));
    }
    return LR_OK;
}

static void set_blocks(const char *name, int count)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", count);
    if (count > 0)
        (void)setenv(name, text, 1);
    else
        (void)unsetenv(name);
}

/* Blocks of several sizes, several of them for each multiprocessor: cuda reads how many when an operator is
 * made (docs/method/listmode.md, "Backend cuda"). */
static lr_status measure_blocks(struct listmode_bench *bench, struct listmode_way *way)
{
    static const int threads[] = {128, 256, 512, 768}, blocks[] = {1, 2, 4, 8};
    lr_status status = LR_OK;
    way->variant = LR_LISTMODE_FASTEST;
    for (int k = 0; status == LR_OK && k < 16; k++) {
        way->threads = threads[k / 4];
        way->blocks = blocks[k % 4];
        set_blocks("LORASTER_LISTMODE_THREADS", way->threads);
        set_blocks("LORASTER_LISTMODE_BLOCKS", way->blocks);
        status = measure(bench, way);
    }
    way->threads = way->blocks = 0;
    set_blocks("LORASTER_LISTMODE_THREADS", 0);
    set_blocks("LORASTER_LISTMODE_BLOCKS", 0);
    return status;
}

/* The paper's steps are ways of cuda. */
static lr_status measure_variants(struct listmode_bench *bench, struct listmode_way *way)
{
    if (way->what->has_fastmath || way->what->has_blocks)
        return way->what->has_fastmath ? measure_fastmath(bench, way) : measure_blocks(bench, way);
    const bool is_ladder = way->what->has_ladder && bench->variant == LR_LISTMODE_FASTEST;
    for (int variant = LR_LISTMODE_SIMPLE; is_ladder && variant <= LR_LISTMODE_FASTMATH; variant++) {
        way->variant = (lr_listmode_variant)variant;
        CLI_TRY(measure(bench, way));
    }
    way->variant = bench->variant;
    return measure(bench, way);
}

/* Exact elements, which know no width and take long on processors, come in the first table unless they are
 * asked for. */
static bool has_kernel(const struct listmode_bench *bench, int kernel, const struct listmode_case *what)
{
    const bool is_usual =
        kernel != LR_LISTMODE_EXACT || bench->is_exact_alone || strcmp(what->table, listmode_tables[0]) == 0;
    const bool is_tube_alone = what->has_fastmath || what->has_blocks || what->has_collisions;
    return bench->kernels[kernel] && is_usual && (kernel == LR_LISTMODE_TUBE || !is_tube_alone);
}

/* The paper tells what fast math does with time of flight. */
static bool has_time(const struct listmode_bench *bench, bool has_tof, const struct listmode_case *what)
{
    return has_tof ? bench->with_tof : bench->without_tof && !what->has_fastmath;
}

/* Of cuda alone. */
static bool is_of_cuda(const struct listmode_case *what)
{
    return what->has_ladder || what->has_fastmath || what->has_blocks;
}

/* With and without time of flight, by every kernel. */
static lr_status measure_kernels(struct listmode_bench *bench, struct listmode_way *way)
{
    for (int kernel = 0; kernel < LISTMODE_NUM_KERNELS; kernel++) {
        for (int has_tof = 0; has_tof < 2 && has_kernel(bench, kernel, way->what); has_tof++) {
            way->kernel = (lr_listmode_kernel)kernel;
            way->has_tof = has_tof != 0;
            if (has_time(bench, way->has_tof, way->what)) CLI_TRY(measure_variants(bench, way));
        }
    }
    return LR_OK;
}

static bool is_chosen(const struct listmode_bench *bench, const struct listmode_case *what)
{
    for (int k = 0; k < LISTMODE_NUM_TABLES; k++)
        if (bench->tables[k] && strcmp(listmode_tables[k], what->table) == 0) return true;
    return false;
}

static lr_status measure_cases(struct listmode_bench *bench)
{
    for (const struct listmode_case *what = listmode_cases; what->table != NULL; what++) {
        struct listmode_way way = {.what = what, .backend = bench->backend};
        for (int k = 0; is_chosen(bench, what) && k < (bench->is_all && !is_of_cuda(what) ? LISTMODE_NUM_BACKENDS : 1);
             k++) {
            way.backend = bench->is_all ? listmode_backends[k] : bench->backend;
            way.backend = is_of_cuda(what) ? "cuda" : way.backend;
            CLI_TRY(measure_kernels(bench, &way));
        }
    }
    return LR_OK;
}

/* --- what is said --- */

static void write_json(const struct listmode_bench *bench, FILE *stream)
{
    struct json json = {stream, false};
    common_json_open(&json, "bench listmode");
    listmode_json(bench, &json);
    common_json_end(&json);
}

static lr_status write_file(const struct listmode_bench *bench)
{
    struct common_text text;
    common_text_begin(&text);
    if (text.stream != NULL) write_json(bench, text.stream);
    return common_text_write(&text, bench->report, bench->path);
}

static lr_status say_all(const struct listmode_bench *bench)
{
    if (bench->report->json) {
        write_json(bench, stdout);
    } else {
        listmode_print_fits(bench);
        listmode_print_paper(bench);
        listmode_print_peers(bench);
    }
    return bench->path != NULL ? write_file(bench) : LR_OK;
}

/* --- the verb --- */

static void choose(struct listmode_bench *bench, struct cli_args *args)
{
    static const char *const backends[] = {"cpu", "native", "compute", "cuda", "all", NULL};
    const int table = args_word(args, "--table", listmode_tables, -1);
    const int kernel = args_word(args, "--kernel", listmode_kernels, -1);
    const int backend = args_word(args, "--backend", backends, -1);
    for (int k = 0; k < LISTMODE_NUM_TABLES; k++)
        bench->tables[k] = table < 0 ? k >= LISTMODE_FIRST_DEFAULT && k <= LISTMODE_LAST_DEFAULT : k == table;
    for (int k = 0; k < LISTMODE_NUM_KERNELS; k++) bench->kernels[k] = kernel < 0 || k == kernel;
    bench->is_exact_alone = kernel == LR_LISTMODE_EXACT;
    bench->is_all = backend == LISTMODE_NUM_BACKENDS;
    bench->backend = backend >= 0 && !bench->is_all ? backends[backend] : NULL;
    bench->without_tof = !args_has(args, "--only-tof");
    bench->with_tof = !args_has(args, "--without-tof");
    bench->variant = common_listmode_variant(args);
    if (bench->variant != LR_LISTMODE_FASTEST && (bench->backend == NULL || strcmp(bench->backend, "cuda") != 0))
        args_complain(args, "--variant is for --backend cuda");
    if (!bench->with_tof && !bench->without_tof)
        args_complain(args, "--only-tof and --without-tof contradict each other");
}

static void read_numbers(struct listmode_bench *bench, struct cli_args *args)
{
    static const int64_t at_least_one[2] = {1, INT_MAX}, at_least_zero[2] = {0, INT_MAX};
    static const int64_t repeats[2] = {1, LISTMODE_MOST_REPEATS};
    bench->lines = args_int(args, "--events", 1000000, at_least_one);
    bench->all_lines = args_int(args, "--lines", 0, at_least_one);
    bench->subsets = (int)args_int(args, "--subsets", 0, at_least_one);
    bench->max_memory_bytes = args_bytes(args, "--max-memory", 0);
    bench->tof_ps = args_number(args, "--tof-ps", 600, true);
    bench->device = (int)args_int(args, "--device", 0, at_least_zero);
    bench->threads = (int)args_int(args, "--threads", 0, at_least_one);
    bench->repeat = (int)args_int(args, "--repeat", 11, repeats);
    bench->seconds = args_number(args, "--seconds", 10, true);
    bench->seed = 1;
}

static lr_status run_chosen(struct listmode_bench *bench, struct cli_args *args)
{
    bench->report = args->report;
    bench->path = args_text(args, "-o");
    choose(bench, args);
    read_numbers(bench, args);
    CLI_TRY(args->status);
    CLI_TRY(measure_cases(bench));
    return say_all(bench);
}

static lr_status run(struct cli_args *args)
{
    struct listmode_bench *bench = calloc(1, sizeof(*bench));
    if (bench == NULL) return report_error(args->report, LR_FAILED, "no memory for the figures");
    const lr_status status = run_chosen(bench, args);
    for (int k = 0; k < bench->num_outcomes; k++) free(bench->outcomes[k].image);
    lr_lors_destroy(bench->lors);
    lr_scanner_destroy(bench->scanner);
    free(bench);
    return status;
}

static const struct cli_option options[] = {
    {"--table", "NAME",
     "the paper's lines (table I), widths (V), voxels (IV) and both (III), all of which are the "
     "default; first (75 x 75 x 26 voxels, a million lines), linear (to 100 million), ladder (the "
     "paper's steps, figure 5), public (10 million on a Discovery MI, 34 subsets), fastmath (table "
     "II), blocks (figure 6), collisions (figure 3)",
     false},
    {"--kernel", "NAME", "tube, line or exact; default all, exact in the first table only", false},
    {"--only-tof", NULL, "nothing without time of flight", false},
    {"--without-tof", NULL, "nothing with time of flight", false},
    {"--tof-ps", "PS", "time resolution, FWHM; default 600", false},
    {"--events", "N", "random lines for each million of the paper's; default 1000000", false},
    {"--lines", "N", "random lines of each case, in place of the table's number", false},
    {"--subsets", "N", "that an iteration goes through; default by the table", false},
    {"--variant", "NAME",
     "how cuda projects, by the paper's steps: simple, coalesced, cached, partitioned, sorted or "
     "fastmath; default its fastest way",
     false},
    {"--max-memory", "SIZE", "limit on a device, such as 512M or 16G; default: half", false},
    {"--backend", "NAME", "cpu, native, compute, cuda, or all of them; default auto", false},
    {"--repeat", "N", "runs that the median is of; default 11", false},
    {"--seconds", "S", "for one figure: fewer runs where they take longer; default 10", false},
    {"--device", "N", "which usable device of loraster info; default 0", false},
    {"--threads", "N", "default: all processors", false},
    {"-o", "FILE", "JSON of all figures, beside the tables", false},
    {0},
};

static const struct cli_syntax syntax = {
    .verb = "bench listmode",
    .summary = VERB_BENCH_LISTMODE,
    .example = "loraster bench listmode --table first --backend native",
    .outputs = {{"-o", common_json_endings}},
    .groups = {{"what and how", options}, COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_bench_listmode = {&syntax, run};
