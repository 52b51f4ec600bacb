/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * direct factors: what a scanner measures of each view, as histo-images of factors. */
#include "direct.h"
#include "verbs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

/* Zero is valid; nothing in it may move. */
struct work {
    struct cli_args *args;
    struct direct_setup setup;
    lr_histo_images *histo;
    int directions;
    double seconds;
};

static void report_result(const struct work *work)
{
    const struct cli_args *args = work->args;
    const lr_histo_images *histo = work->histo;
    const lr_lor_data data = direct_data(histo);
    const double mean = common_sum(data.values, data.count) / (double)data.count;
    double low = INFINITY, high = 0;
    for (int64_t k = 0; k < data.count; k++) {
        low = fmin(low, data.values[k]);
        high = fmax(high, data.values[k]);
    }
    report_clear(args->report);
    if (!args->report->json) {
        printf("%s: factors of %d views, %.6g to %.6g, mean %.6g\n", args_text(args, "-o"), histo->num_views, low, high,
               mean);
        return;
    }
    struct json json = common_json_begin(args->syntax->verb);
    json_text(&json, "output", args_text(args, "-o"));
    json_text(&json, "scanner", work->setup.grid.scanner->name);
    common_json_grid(&json, "grid", &histo->grid);
    json_int(&json, "views", histo->num_views);
    json_int(&json, "directions", work->directions);
    json_text(&json, "efficiencies", args_text(args, "--efficiencies"));
    json_text(&json, "mu", args_text(args, "--mu"));
    json_number(&json, "low", low);
    json_number(&json, "high", high);
    json_number(&json, "mean", mean);
    json_number(&json, "seconds", work->seconds);
    common_json_end(&json);
}

static lr_status compute(struct work *work)
{
    struct setup *setup = &work->setup.grid;
    struct report *report = setup->report;
    const double begin = report_seconds();
    work->histo = lr_direct_factors_create(&(lr_direct_factors_params){.lors = setup->lors,
                                                                       .grid = &setup->grid,
                                                                       .set = work->setup.set,
                                                                       .efficiencies = setup->factors.efficiencies,
                                                                       .mu = setup->mu,
                                                                       .directions = work->directions,
                                                                       .threads = setup->params.threads,
                                                                       .log = &report->log,
                                                                       .progress = &report->progress});
    if (work->histo == NULL) return report_reason(report);
    work->seconds = report_seconds() - begin;
    const lr_lor_data data = direct_data(work->histo);
    return common_check_result(report,
                               &(struct common_result){.output = args_text(work->args, "-o"),
                                                       .values = data.values,
                                                       .count = data.count,
                                                       .causes = "does the grid miss the scanner (--origin-mm), "
                                                                 "are the efficiencies all 0, or does the "
                                                                 "attenuation map stop everything (--mu-unit)?"});
}

static lr_status run_with(struct work *work)
{
    static const int64_t directions[2] = {1, 1 << 20};
    struct cli_args *args = work->args;
    struct setup *setup = &work->setup.grid;
    const char *output = args_required(args, "-o");
    const char *efficiencies = args_text(args, "--efficiencies");
    work->directions = (int)args_int(args, "--directions", 32, directions);
    setup->report = args->report;
    CLI_TRY(direct_read_views(&work->setup, args));
    CLI_TRY(setup_scanner(setup, args, LR_STORE_NO));
    CLI_TRY(setup_grid(setup, args,
                       setup->mu != NULL && !args_has(args, "--grid") && !args_has(args, "--like") ? &setup->mu->grid
                                                                                                   : NULL));
    if (efficiencies != NULL) CLI_TRY(lor_factors_efficiencies(setup, efficiencies));
    CLI_TRY(compute(work));
    CLI_TRY(lr_histo_images_write(output, work->histo, &args->report->log));
    report_result(work);
    return LR_OK;
}

static lr_status run(struct cli_args *args)
{
    struct work work = {.args = args};
    const lr_status status = run_with(&work);
    lr_histo_images_destroy(work.histo);
    direct_finish(&work.setup);
    return status;
}

static const struct cli_option options[] = {
    {"--efficiencies", "FILE", "one number per crystal (.npy, text or .petsird), multiplied in", false},
    {"--mu", "IMAGE", "attenuation map: the share of pairs that survive it, multiplied in", false},
    {"--mu-unit", "UNIT", "of the map: 1/mm, 1/cm or hu (CT); default: 1/mm or 1/cm by its largest value", false},
    {"--directions", "N", "lines through each voxel in each view; default 32", false},
    {"--threads", "N", "default: all processors; the factors are the same", false},
    {"-o", "FILE", "histo-images of factors to write (HDF5), for recon --factors", false},
    {0},
};

static const struct cli_syntax syntax = {
    .verb = "direct factors",
    .summary = "Writes what a scanner measures of each view, for recon --factors.",
    .example = "loraster direct factors --scanner penn-labr3 --grid 144,144,48 --voxel-mm 4 "
               "-o n.h5",
    .outputs = {{"-o", common_hdf5_endings}},
    .groups = {{"factors and output", options},
               DIRECT_VIEW_GROUP,
               COMMON_SCANNER_GROUP,
               COMMON_GRID_GROUP,
               COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_direct_factors = {&syntax, run};
