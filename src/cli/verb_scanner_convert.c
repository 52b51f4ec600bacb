/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "common.h"
#include "scanner_summary.h"
#include "verbs.h"

#include <stdio.h>

static void tell(const struct setup *setup, const struct cli_args *args, const struct scanner_summary *summary)
{
    const char *input = args->positional[0], *output = args->positional[1];
    if (args->report->json) {
        struct json json = common_json_begin("scanner convert");
        json_text(&json, "input", input);
        json_text(&json, "output", output);
        scanner_summary_json(setup->scanner, summary, &json);
        common_json_end(&json);
    } else {
        report_info(args->report, "%s: %s, %d modules, %d crystals", output, setup->scanner->name,
                    setup->scanner->num_modules, setup->scanner->num_crystals);
    }
}

static lr_status convert(struct setup *setup, struct cli_args *args)
{
    setup->report = args->report;
    setup->scanner = lr_scanner_read(args->positional[0], &args->report->log);
    if (setup->scanner == NULL) return report_reason(args->report);
    struct scanner_summary summary;
    CLI_TRY(scanner_summarise(setup->scanner, args->report, &summary));
    CLI_TRY(lr_scanner_write(args->positional[1], setup->scanner, &args->report->log));
    tell(setup, args, &summary);
    return LR_OK;
}

static lr_status run_convert(struct cli_args *args)
{
    struct setup setup = {0};
    if (args->num_positional != 2) {
        args_complain(args, "%s needs %s", args->syntax->verb, args->syntax->positionals);
        return args->status;
    }
    const lr_status status = convert(&setup, args);
    setup_finish(&setup);
    return status;
}

static const char *const endings[] = {".yaml", ".yml", ".geom", ".hscan", ".petsird", NULL};

static const struct cli_syntax convert_syntax = {
    .verb = "scanner convert",
    .positionals = "NAME|FILE OUT",
    .summary = "Reads a scanner of any known format (YAML, CASToR .geom and .hscan, STIR crystal "
               "map and header) and writes .yaml, .geom or .hscan with its .lut.",
    .example = "loraster scanner convert scanner.hscan my-scanner.yaml",
    .outputs = {{CLI_SECOND_WORD, endings}},
    .groups = {COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_scanner_convert = {&convert_syntax, run_convert};
