/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "common.h"
#include "stop.h"
#include "verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct cli_verb *const verbs[] = {
    &verb_info,
    &verb_scanner_list,
    &verb_scanner_show,
    &verb_scanner_check,
    &verb_scanner_convert,
    &verb_render,
    &verb_matrix_verify, /* before its first word alone */
    &verb_matrix,
    &verb_project,
    &verb_backproject,
    &verb_sensitivity,
    &verb_factors,
    &verb_phantom,
    &verb_simulate,
    &verb_recon,
    &verb_events_show,
    &verb_events_convert,
    &verb_direct_lut,
    &verb_direct_deposit,
    &verb_direct_project,
    &verb_direct_recon,
    &verb_bench_correspondence,
    &verb_bench_direct,
    &verb_view,
    &verb_demo,
    NULL,
};

static void print_help(void)
{
    printf("LORaster %s renders PET system matrices.\n\nusage: loraster VERB [options]\n\n",
           lr_version());
    for (int k = 0; verbs[k] != NULL; k++) {
        printf("  %-20s %s\n", verbs[k]->syntax->verb, verbs[k]->syntax->summary);
    }
    printf("\nloraster VERB --help shows its options and an example; loraster --version the "
           "version.\nLengths are mm, z runs along the scanner's axis, the origin is its centre.\n"
           "Exit codes: 0 done, 1 failed or stopped, 2 usage, 3 bad input, 4 device missing.\n");
}

/* How many of the words at argv name this verb: 0, 1 or 2. */
static int match_verb(const struct cli_verb *verb, char *const *argv)
{
    const char *name = verb->syntax->verb;
    const char *space = strchr(name, ' ');
    if (space == NULL) {
        return strcmp(argv[0], name) == 0 ? 1 : 0;
    }
    const size_t first = (size_t)(space - name);
    const bool same = strlen(argv[0]) == first && strncmp(argv[0], name, first) == 0;
    return same && argv[1] != NULL && strcmp(argv[1], space + 1) == 0 ? 2 : 0;
}

/* The first word alone of a verb that has two. */
static bool is_family(const char *word)
{
    return strcmp(word, "scanner") == 0 || strcmp(word, "events") == 0 ||
           strcmp(word, "bench") == 0 || strcmp(word, "direct") == 0;
}

/* "list, show, check": the second words that go with the first. */
static void list_family(const char *word, char *text, size_t size)
{
    const size_t length = strlen(word);
    text[0] = '\0';
    for (int k = 0; verbs[k] != NULL; k++) {
        const char *name = verbs[k]->syntax->verb;
        if (strncmp(name, word, length) == 0 && name[length] == ' ') {
            const size_t used = strlen(text);
            snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", name + length + 1);
        }
    }
}

static int complain_verb(struct report *report, char *const *argv)
{
    const char *names[sizeof(verbs) / sizeof(verbs[0]) + 1] = {0};
    char asked[128];
    for (int k = 0; verbs[k] != NULL; k++) {
        names[k] = verbs[k]->syntax->verb;
    }
    const bool family = is_family(argv[0]);
    if (family && argv[1] == NULL) {
        list_family(argv[0], asked, sizeof(asked));
        report_error(report, LR_USAGE, "%s needs one of %s: see loraster --help", argv[0], asked);
        return CLI_USAGE;
    }
    snprintf(asked, sizeof(asked), "%s%s%s", argv[0], family ? " " : "", family ? argv[1] : "");
    const char *nearest = args_nearest(asked, names);
    report_error(report, LR_USAGE, "there is no verb %s: %s%s%s", asked,
                 nearest ? "did you mean " : "see loraster --help", nearest ? nearest : "",
                 nearest ? "?" : "");
    return CLI_USAGE;
}

/* Results that did not reach standard output are a failure like any other. */
static lr_status flush_output(struct report *report, lr_status status)
{
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == LR_OK) {
        return report_error(report, LR_FAILED, "standard output cannot be written: %s",
                            strerror(errno));
    }
    return status;
}

static int run_verb(struct report *report, const struct cli_verb *verb, char *const *argv)
{
    struct cli_args args;
    lr_status status = args_parse(&args, verb->syntax, report, argv);
    report->quiet = args_has(&args, "--quiet");
    report->verbose = args_has(&args, "--verbose");
    report->json = args_has(&args, "--json");
    if (args.help) {
        args_print_help(verb->syntax);
    } else if (status == LR_OK) {
        stop_catch_signals();
        status = verb->run(&args);
    }
    args_finish(&args);
    return report_exit_code(report, flush_output(report, status));
}

static int run(struct report *report, char *const *argv)
{
    if (argv[0] == NULL) {
        report_error(report, LR_USAGE, "which verb? See loraster --help");
        return CLI_USAGE;
    }
    if (strcmp(argv[0], "--version") == 0) {
        printf("loraster %s\n", lr_version());
        return report_exit_code(report, flush_output(report, LR_OK));
    }
    const bool family_help =
        is_family(argv[0]) && argv[1] != NULL && strcmp(argv[1], "--help") == 0;
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 ||
        strcmp(argv[0], "help") == 0 || family_help) {
        print_help();
        return report_exit_code(report, flush_output(report, LR_OK));
    }
    for (int k = 0; verbs[k] != NULL; k++) {
        const int words = match_verb(verbs[k], argv);
        if (words > 0) {
            return run_verb(report, verbs[k], argv + words);
        }
    }
    return complain_verb(report, argv);
}

static bool has_ended;

/* HDF5 leaves by exit(-1) where it gets no memory; 255 is none of our codes. */
static void catch_exit(void)
{
    if (!has_ended) {
        fputs("loraster: error: a library has ended the program, perhaps for want of memory\n",
              stderr);
        _exit(CLI_FAILED);
    }
}

int main(int argc, char **argv)
{
    struct report report;
    report_init(&report);
    static char *const nothing[] = {NULL};
    atexit(catch_exit);
    const int code = run(&report, argc > 0 ? argv + 1 : nothing);
    has_ended = true;
    return code;
}
