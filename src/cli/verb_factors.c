/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Writes the factors of the matrix's LORs, or the expected randoms, as LOR data. */
#include "common.h"
#include "verbs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { AT_ONCE = 1 << 22 };

/* Estimates expected randoms by fan sums of the delayeds in --events (`source`) or, without these, --delayeds. */
static lr_status estimate_randoms(const struct setup *setup, const struct cli_args *args,
                                  const lr_events_source *source, lr_randoms **randoms)
{
    const lr_log *log = &setup->report->log;
    lr_prompts_delayeds found = {0};
    if (source->path != NULL) {
        CLI_TRY(lr_events_bin(source, setup->lors, &found, NULL));
        lr_lor_data_destroy(found.prompts);
    } else {
        found.delayeds = lr_lor_data_read(args_text(args, "--delayeds"), setup->lors, log);
    }
    if (found.delayeds != NULL) *randoms = lr_randoms_estimate(setup->lors, found.delayeds, log);
    lr_lor_data_destroy(found.delayeds);
    if (*randoms == NULL) return report_reason(setup->report);
    report_info(setup->report, "randoms by fan sums of %.9g delayeds, %d crystals to each", (*randoms)->delayeds,
                (*randoms)->pooled);
    return LR_OK;
}

static lr_status write_factors(struct cli_args *args, const struct setup *setup, const lr_lor_source *source)
{
    const char *output = args_text(args, "-o");
    const lr_progress *progress = &setup->report->progress;
    lr_lor_data *data = lr_lor_data_create(setup->lors, &setup->report->log);
    if (data == NULL) return report_reason(setup->report);
    lr_status status = LR_OK;
    for (int64_t first = 0; status == LR_OK && first < data->count; first += AT_ONCE) {
        const int64_t left = data->count - first;
        const lr_lor_span span = {.first = first, .count = left < AT_ONCE ? left : AT_ONCE};
        if (source->get(source->user, &span, data->values + first) != LR_OK)
            status = report_error(setup->report, LR_FAILED, "no memory for factors of LORs");
        else if (!progress->report(progress->user, "factors of LORs", (double)(first + span.count),
                                   (double)data->count))
            status = LR_CANCELLED;
    }
    if (status == LR_OK) {
        status = common_check_result(
            setup->report, &(struct common_result){.output = output,
                                                   .values = data->values,
                                                   .count = data->count,
                                                   .causes = "are the efficiencies all 0, or does the attenuation "
                                                             "map stop everything (--mu-unit)?"});
    }
    if (status == LR_OK) status = lr_lor_data_write(output, setup->lors, data, &setup->report->log);
    if (status != LR_OK) goto finish;

    /* The figures cover LORs in coincidence; other LORs have 0. */
    int64_t count = 0;
    double sum = 0, low = INFINITY, high = 0;
    for (int64_t k = 0; k < data->count; k++) {
        if (lr_lors_in_coincidence(setup->lors, k)) {
            count++;
            sum += data->values[k];
            low = fmin(low, data->values[k]);
            high = fmax(high, data->values[k]);
        }
    }
    const char *events = args_text(args, "--events"), *delayeds = args_text(args, "--delayeds");
    const bool adds = events != NULL || delayeds != NULL;
    report_clear(setup->report);
    if (setup->report->json) {
        struct json json = common_json_begin(stdout, args->verb->name);
        json_text(&json, "scanner", setup->scanner->name);
        json_text(&json, "output", output);
        json_text(&json, "mu", args_text(args, "--mu"));
        json_text(&json, "efficiencies", args_text(args, "--efficiencies"));
        json_text(&json, "randoms", events != NULL ? events : delayeds);
        json_int(&json, "num_lors", setup->lors->count);
        json_int(&json, "in_coincidence", count);
        json_number(&json, "sum", sum);
        json_number(&json, "mean", sum / (double)count);
        json_number(&json, "low", low);
        json_number(&json, "high", high);
        common_json_end(&json);
    } else {
        printf("%s: %s of %lld LORs in coincidence, %.6g to %.6g, mean %.9g, sum %.9g\n", output,
               adds ? "expected randoms" : "factors", (long long)count, low, high, sum / (double)count, sum);
    }

finish:
    lr_lor_data_destroy(data);
    return status;
}

static lr_status run(struct cli_args *args)
{
    struct setup setup = {0};
    lr_randoms *randoms = NULL;
    lr_lor_source source = {0};
    args_required(args, "-o");
    const char *efficiencies = args_text(args, "--efficiencies");
    const bool has_events = args_has(args, "--events"), has_delayeds = args_has(args, "--delayeds");
    const bool multiplies = efficiencies != NULL || args_has(args, "--mu"), adds = has_events || has_delayeds;
    if (!multiplies && !adds)
        args_complain(args, "factors needs --mu or --efficiencies, or for randoms --events or --delayeds");
    if (multiplies && adds)
        args_complain(args, "randoms are added and the other factors multiplied: write them to files of their own");
    if (has_events && has_delayeds) args_complain(args, "--events brings its own delayeds: leave out --delayeds");
    if (!has_events && (args_has(args, "--crystal-map") || args_has(args, "--header")))
        args_complain(args, "--crystal-map and --header belong to --events");
    lr_events_source events = {.path = NULL};
    if (has_events) events = common_events_source(args, args_text(args, "--events"));
    lr_status status = args->status == LR_OK ? setup_scanner(&setup, args, LR_STORE_NO, NULL) : args->status;
    if (status == LR_OK && adds) {
        status = estimate_randoms(&setup, args, &events, &randoms);
        if (status == LR_OK) source = lr_crystal_product_source(&randoms->product);
    } else if (status == LR_OK) {
        if (efficiencies != NULL) status = lor_factors_efficiencies(&setup, efficiencies);
        if (status == LR_OK && setup.mu != NULL) status = lor_factors_attenuate(&setup);
        source = lr_source_product_source(&setup.factors.sources);
    }
    if (status == LR_OK) status = write_factors(args, &setup, &source);
    lr_randoms_destroy(randoms);
    setup_finish(&setup);
    return status;
}

static const struct cli_option output_options[] = {
    {"-o", "FILE", "LOR data to write (HDF5, or STIR's .hs)", NULL},
    {0},
};

static const struct cli_option factor_options[] = {
    {"--mu", "IMAGE", "attenuation map: each LOR's share of pairs that survive it", NULL},
    {COMMON_MU_UNIT_OPTION},
    {"--efficiencies", "FILE", "one number per crystal (.npy, text or .petsird), multiplied in", NULL},
    {"--threads", "N", "default 0: all processors", NULL},
    {0},
};

static const struct cli_option randoms_options[] = {
    {"--events", "FILE", "list mode with delayeds: PETSIRD, SAFIR, Siemens (.l)", NULL},
    {"--crystal-map", "FILE", "of SAFIR (*crystal_map.txt); default: the one beside", NULL},
    {"--header", "FILE", "of Siemens events; default: the *.hdr* beside that names them", NULL},
    {COMMON_UNTIL_DAMAGE_OPTION},
    {"--delayeds", "FILE", "or delayeds as LOR data (HDF5, or STIR's .hs)", NULL},
    {0},
};

const struct cli_verb verb_factors = {
    .name = "factors",
    .summary = "Writes what recon multiplies each LOR by, attenuation and efficiencies, or the "
               "randoms that it expects.",
    .example = "loraster factors --scanner ge-explore-vista-dr --mu mu.nii.gz -o survival.h5",
    .outputs = {{"-o", common_data_endings}},
    .groups = {{"output", output_options},
               {"factors", factor_options},
               {"expected randoms instead", randoms_options},
               {COMMON_SCANNER_GROUP},
               {"grid of a --mu without one (.npy)", common_grid_options}},
    .run = run,
};
