/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "common.h"
#include "scanner_summary.h"
#include "verbs.h"

#include <stdio.h>

/* Everything a check holds; zero is valid. */
struct check {
    lr_scanner_draft *draft;
    lr_diagnosis *diagnosis;
    struct setup setup; /* the scanner, where the draft makes one */
    bool is_usable;     /* it has LORs; then there is a summary */
    struct scanner_summary summary;
};

static void finding_json(const lr_finding *finding, struct json *json)
{
    int count = 0;
    while (count < 2 && finding->modules[count] >= 0) count++;
    json_open(json, NULL, '{');
    json_text(json, "severity", finding->severity == LR_SUSPECT ? "suspect" : "note");
    json_text(json, "kind", lr_finding_kind_name(finding->kind));
    json_ints(json, "modules", finding->modules, count);
    json_text(json, "sentence", finding->sentence);
    json_text(json, "remedy", finding->remedy[0] != '\0' ? finding->remedy : NULL);
    json_close(json, '}');
}

static void write_json(const struct check *check, const char *png)
{
    struct json json = common_json_begin("scanner check");
    json_bool(&json, "good", check->is_usable && check->diagnosis->num_suspects == 0);
    json_open(&json, "findings", '[');
    for (int k = 0; k < check->diagnosis->num_findings; k++) finding_json(&check->diagnosis->findings[k], &json);
    json_close(&json, ']');
    json_text(&json, "picture", png);
    if (check->is_usable) scanner_summary_json(check->setup.scanner, &check->summary, &json);
    common_json_end(&json);
}

/* "kind: what is suspected; the remedy" */
static void spell(const lr_finding *finding, char text[2048])
{
    const bool has_remedy = finding->remedy[0] != '\0';
    snprintf(text, 2048, "%s: %s%s%s", lr_finding_kind_name(finding->kind), finding->sentence, has_remedy ? "; " : "",
             finding->remedy);
}

/* What looks wrong goes to stderr, with all else that was found; a good scanner's notes are
 * results. */
static void print_findings(const struct check *check, const char *name)
{
    const lr_diagnosis *diagnosis = check->diagnosis;
    const lr_scanner *scanner = check->setup.scanner;
    const bool good = check->is_usable && diagnosis->num_suspects == 0;
    struct report *report = check->setup.report;
    for (int k = 0; k < diagnosis->num_findings; k++) {
        char text[2048];
        spell(&diagnosis->findings[k], text);
        if (diagnosis->findings[k].severity == LR_SUSPECT)
            report_warn(report, "suspect %s", text);
        else if (good)
            printf("note %s\n", text);
        else
            report_info(report, "note %s", text);
    }
    if (good) {
        printf("%s: good: %s, %d modules, %d crystals, %lld LORs\n", name, scanner->name, scanner->num_modules,
               scanner->num_crystals, (long long)check->summary.num_lors);
    }
}

/* The file was read before: its warnings are known. */
static void pass_errors(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const lr_log *log = user;
    if (level == LR_LOG_ERROR) log->write(log->user, level, status, sentence);
}

/* The scanner itself; where there is none, the sentence names file and line. */
static lr_status open_scanner(struct check *check, struct cli_args *args)
{
    const lr_log errors = {pass_errors, &args->report->log};
    check->setup.scanner = lr_scanner_read(args->positional[0], &errors);
    const lr_status status = check->setup.scanner != NULL
                                 ? scanner_summarise(check->setup.scanner, args->report, &check->summary)
                                 : report_reason(args->report);
    check->is_usable = status == LR_OK;
    return status;
}

/* Also of a scanner that looks wrong: that is what the picture is for. */
static lr_status draw(const struct check *check, const char *path)
{
    struct report *report = check->setup.report;
    const lr_diagnosis_params params = {
        .draft = check->draft, .diagnosis = check->diagnosis, .grid = check->setup.params.grid, .log = &report->log};
    lr_picture *picture = lr_picture_diagnosis(&params);
    if (picture == NULL) return report_reason(report);
    const lr_status status = lr_png_write(path, picture->rgb, picture->size, &report->log);
    lr_picture_destroy(picture);
    return status;
}

static lr_status examine(struct check *check, struct cli_args *args)
{
    const char *png = args_text(args, "--png");
    const bool has_grid = args_has(args, "--grid") || args_has(args, "--like") || args_has(args, "--voxel-mm") ||
                          args_has(args, "--origin-mm");
    check->setup.report = args->report;
    if (has_grid) CLI_TRY(setup_grid(&check->setup, args, NULL));
    CLI_TRY(args->status);
    check->draft = lr_scanner_draft_read(args->positional[0], &args->report->log);
    if (check->draft == NULL) return report_reason(args->report);
    check->diagnosis = lr_scanner_examine(check->draft, has_grid ? &check->setup.grid : NULL, &args->report->log);
    if (check->diagnosis == NULL) return report_reason(args->report);
    if (png != NULL) CLI_TRY(draw(check, png));
    const lr_status status = open_scanner(check, args);
    if (status == LR_FAILED || status == LR_CANCELLED) return status;
    if (args->report->json)
        write_json(check, png);
    else
        print_findings(check, args->positional[0]);
    if (status == LR_OK && check->diagnosis->num_suspects > 0) {
        return report_error(args->report, LR_BAD_INPUT, "%s: %d %s wrong", args->positional[0],
                            check->diagnosis->num_suspects,
                            check->diagnosis->num_suspects > 1 ? "things look" : "thing looks");
    }
    return status;
}

static lr_status run_check(struct cli_args *args)
{
    struct check check = {0};
    if (args->num_positional != 1) {
        args_complain(args, "%s needs one %s", args->syntax->verb, args->syntax->positionals);
        return args->status;
    }
    const lr_status status = examine(&check, args);
    lr_diagnosis_destroy(check.diagnosis);
    lr_scanner_draft_destroy(check.draft);
    setup_finish(&check.setup);
    return status;
}

static const struct cli_option check_options[] = {
    {"--png", "FILE", "also draw the modules, with what looks wrong in red", false},
    {0},
};

static const struct cli_syntax check_syntax = {
    .verb = "scanner check",
    .positionals = "NAME|FILE",
    .summary = "Looks for errors in a scanner's geometry: wrong units, a diameter for the radius, "
               "overlaps, gaps, mirrored numbering; exit code 3 when something looks wrong.",
    .example = "loraster scanner check my-scanner.yaml --grid 128,128,64 --voxel-mm 4",
    .outputs = {{"--png", common_picture_endings}},
    .groups = {COMMON_GRID_GROUP, {"output", check_options}, COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_scanner_check = {&check_syntax, run_check};
