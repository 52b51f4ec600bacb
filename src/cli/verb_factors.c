/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the matrix's LORs are multiplied by, or the randoms that are added to them, as LOR data. */
#include "common.h"
#include "verbs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { AT_ONCE = 1 << 22 };

/* Zero is valid; sources point into it: it must not move. */
struct work {
    struct cli_args *args;
    struct setup setup;
    lr_lor_data *delayeds;
    lr_randoms *randoms;
    const char *output, *efficiencies, *events, *delayeds_path;
};

/* --- the command line --- */

static void read_request(struct work *work)
{
    struct cli_args *args = work->args;
    work->output = args_required(args, "-o");
    work->efficiencies = args_text(args, "--efficiencies");
    work->events = args_text(args, "--events");
    work->delayeds_path = args_text(args, "--delayeds");
    const bool multiplies = work->efficiencies != NULL || args_has(args, "--mu");
    const bool adds = work->events != NULL || work->delayeds_path != NULL;
    if (!multiplies && !adds) {
        args_complain(args, "factors needs --mu or --efficiencies, or for randoms --events or "
                            "--delayeds");
    }
    if (multiplies && adds) {
        args_complain(args, "randoms are added and the other factors multiplied: write them to "
                            "files of their own");
    }
    if (work->events != NULL && work->delayeds_path != NULL)
        args_complain(args, "--events brings its own delayeds: leave out --delayeds");
    if (work->events == NULL && (args_has(args, "--crystal-map") || args_has(args, "--header")))
        args_complain(args, "--crystal-map and --header belong to --events");
    if (args_has(args, "--crystal-map") && args_has(args, "--header")) {
        args_complain(args, "--header is of Siemens list mode and --crystal-map of SAFIR's: give "
                            "one of them");
    }
}

/* --- randoms --- */

static lr_status bin_events(struct work *work)
{
    const char *header = args_text(work->args, "--header");
    const char *map = args_text(work->args, "--crystal-map");
    const bool is_map = map != NULL && lr_events_recognise(work->events) != LR_EVENTS_CASTOR;
    const lr_events_source source = {
        .path = work->events,
        .format = header != NULL ? LR_EVENTS_SIEMENS
                  : is_map       ? LR_EVENTS_SAFIR
                                 : LR_EVENTS_UNKNOWN,
        .companion = header != NULL ? header : map,
        .until_damage = args_has(work->args, COMMON_UNTIL_DAMAGE),
        .log = &work->setup.report->log,
    };
    lr_prompts_delayeds found;
    CLI_TRY(lr_events_bin(&source, work->setup.lors, &found, NULL));
    lr_lor_data_destroy(found.prompts);
    work->delayeds = found.delayeds;
    return LR_OK;
}

static lr_status estimate_randoms(struct work *work, lr_lor_source *source)
{
    struct report *report = work->setup.report;
    if (work->events != NULL)
        CLI_TRY(bin_events(work));
    else
        work->delayeds = lr_lor_data_read(work->delayeds_path, work->setup.lors, &report->log);
    work->randoms = work->delayeds != NULL ? lr_randoms_estimate(work->setup.lors, work->delayeds, &report->log) : NULL;
    if (work->randoms == NULL) return report_reason(report);
    report_info(report, "randoms by fan sums of %.9g delayeds, %d crystals to each", work->randoms->delayeds,
                work->randoms->pooled);
    *source = lr_crystal_product_source(&work->randoms->product);
    return LR_OK;
}

/* --- factors --- */

static lr_status make_source(struct work *work, lr_lor_source *source)
{
    if (work->events != NULL || work->delayeds_path != NULL) return estimate_randoms(work, source);
    if (work->efficiencies != NULL) CLI_TRY(lor_factors_efficiencies(&work->setup, work->efficiencies));
    if (work->setup.mu != NULL) CLI_TRY(lor_factors_attenuate(&work->setup));
    *source = lr_source_product_source(&work->setup.factors.sources);
    return LR_OK;
}

static lr_status fill(struct work *work, const lr_lor_source *source, lr_lor_data *data)
{
    const lr_progress *progress = &work->setup.report->progress;
    for (int64_t first = 0; first < data->count; first += AT_ONCE) {
        const int64_t left = data->count - first;
        const lr_lor_span span = {.first = first, .count = left < AT_ONCE ? left : AT_ONCE};
        if (source->get(source->user, &span, data->values + first) != LR_OK)
            return report_error(work->setup.report, LR_FAILED, "no memory for factors of LORs");
        if (!progress->report(progress->user, "factors of LORs", (double)(first + span.count), (double)data->count))
            return LR_CANCELLED;
    }
    return LR_OK;
}

/* Figures of the LORs in coincidence; others have 0. */
struct summary {
    int64_t count;
    double sum, low, high;
};

static void report_result(const struct work *work, const struct summary *found)
{
    const bool adds = work->randoms != NULL;
    report_clear(work->setup.report);
    if (!work->setup.report->json) {
        printf("%s: %s of %lld LORs in coincidence, %.6g to %.6g, mean %.9g, sum %.9g\n", work->output,
               adds ? "expected randoms" : "factors", (long long)found->count, found->low, found->high,
               found->sum / (double)found->count, found->sum);
        return;
    }
    struct json json = common_json_begin(work->args->syntax->verb);
    json_text(&json, "scanner", work->setup.scanner->name);
    json_text(&json, "output", work->output);
    json_text(&json, "mu", args_text(work->args, "--mu"));
    json_text(&json, "efficiencies", work->efficiencies);
    json_text(&json, "randoms", work->events != NULL ? work->events : work->delayeds_path);
    json_int(&json, "num_lors", work->setup.lors->count);
    json_int(&json, "in_coincidence", found->count);
    json_number(&json, "sum", found->sum);
    json_number(&json, "mean", found->sum / (double)found->count);
    json_number(&json, "low", found->low);
    json_number(&json, "high", found->high);
    common_json_end(&json);
}

static lr_status write_factors(struct work *work)
{
    struct setup *setup = &work->setup;
    lr_lor_source source = {0};
    CLI_TRY(setup_scanner(setup, work->args, LR_STORE_NO));
    CLI_TRY(make_source(work, &source));
    lr_lor_data *data = lr_lor_data_create(setup->lors, &setup->report->log);
    if (data == NULL) return report_reason(setup->report);
    lr_status status = fill(work, &source, data);
    if (status == LR_OK) {
        status = common_check_result(
            setup->report, &(struct common_result){.output = work->output,
                                                   .values = data->values,
                                                   .count = data->count,
                                                   .causes = "are the efficiencies all 0, or does the attenuation "
                                                             "map stop everything (--mu-unit)?"});
    }
    if (status == LR_OK) {
        struct summary found = {.low = INFINITY};
        for (int64_t k = 0; k < data->count; k++) {
            if (lr_lors_in_coincidence(setup->lors, k)) {
                found.count++;
                found.sum += data->values[k];
                found.low = fmin(found.low, data->values[k]);
                found.high = fmax(found.high, data->values[k]);
            }
        }

        status = lr_lor_data_write(work->output, setup->lors, data, &setup->report->log);
        if (status == LR_OK) report_result(work, &found);
    }
    lr_lor_data_destroy(data);
    return status;
}

static lr_status run(struct cli_args *args)
{
    struct work work = {.args = args};
    read_request(&work);
    const lr_status status = args->status == LR_OK ? write_factors(&work) : args->status;
    lr_randoms_destroy(work.randoms);
    lr_lor_data_destroy(work.delayeds);
    setup_finish(&work.setup);
    return status;
}

static const struct cli_option output_options[] = {
    {"-o", "FILE", "LOR data to write (HDF5, or STIR's .hs)", false},
    {0},
};

static const struct cli_option factor_options[] = {
    {"--mu", "IMAGE", "attenuation map: each LOR's share of pairs that survive it", false},
    {"--mu-unit", "UNIT", "of the map: 1/mm, 1/cm or hu (CT); default: 1/mm or 1/cm by its largest value", false},
    {"--efficiencies", "FILE", "one number per crystal (.npy, text or .petsird), multiplied in", false},
    {"--threads", "N", "default: all processors", false},
    {0},
};

static const struct cli_option randoms_options[] = {
    {"--events", "FILE", "list mode with delayeds: PETSIRD, SAFIR, Siemens (.l)", false},
    {"--crystal-map", "FILE", "of SAFIR (*crystal_map.txt); default: the one beside", false},
    {"--header", "FILE", "of Siemens events; default: the *.hdr* beside that names them", false},
    COMMON_UNTIL_DAMAGE_OPTION,
    {"--delayeds", "FILE", "or delayeds as LOR data (HDF5, or STIR's .hs)", false},
    {0},
};

static const struct cli_syntax syntax = {
    .verb = "factors",
    .summary = "Writes what recon multiplies each LOR by, attenuation and efficiencies, or the "
               "randoms that it expects.",
    .example = "loraster factors --scanner ge-explore-vista-dr --mu mu.nii.gz -o survival.h5",
    .outputs = {{"-o", common_data_endings}},
    .groups = {{"output", output_options},
               {"factors", factor_options},
               {"expected randoms instead", randoms_options},
               COMMON_SCANNER_GROUP,
               {"grid of a --mu without one (.npy)", common_grid_options},
               COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_factors = {&syntax, run};
