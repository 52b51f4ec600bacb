/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "verbs.h"

#include "base/helper.h"
#include "common.h"
#include "stop.h"

#include <errno.h>
#include <limits.h>
#include <lr/lr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_VERBS = 40 };

/* The program under way. */
struct program {
    struct report report;
    const struct cli_verb *const *verbs;
    char *const *argv; /* from the program's name on */
};

static void print_help(const struct cli_verb *const *verbs)
{
    printf("LORaster %s renders PET system matrices.\n\nusage: loraster VERB [options]\n\n", lr_version());
    for (int k = 0; verbs[k] != NULL; k++) printf("  %-20s %s\n", verbs[k]->syntax->verb, verbs[k]->syntax->summary);
    printf("\nloraster VERB --help shows its options and an example; loraster --version the "
           "version.\nLengths are mm, z runs along the scanner's axis, the origin is its centre.\n"
           "Exit codes: 0 done, 1 failed or stopped, 2 usage, 3 bad input, 4 device missing.\n");
}

/* Number of words at argv that name this verb: 0, 1 or 2. */
static int match_verb(const struct cli_verb *verb, char *const *argv)
{
    const char *name = verb->syntax->verb;
    const char *space = strchr(name, ' ');
    if (space == NULL) return strcmp(argv[0], name) == 0 ? 1 : 0;
    const size_t first = (size_t)(space - name);
    const bool same = strlen(argv[0]) == first && strncmp(argv[0], name, first) == 0;
    return same && argv[1] != NULL && strcmp(argv[1], space + 1) == 0 ? 2 : 0;
}

/* The first word alone of a verb that has two. */
static bool is_family(const char *word)
{
    return strcmp(word, "scanner") == 0 || strcmp(word, "events") == 0 || strcmp(word, "bench") == 0 ||
           strcmp(word, "direct") == 0;
}

/* "list, show, check": the second words that go with the first. */
static void list_family(const struct cli_verb *const *verbs, const char *word, char *text, size_t size)
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

static int complain_verb(struct program *program)
{
    const struct cli_verb *const *verbs = program->verbs;
    struct report *report = &program->report;
    char *const *argv = program->argv + 1;
    const char *names[MOST_VERBS + 1] = {0};
    char asked[128];
    for (int k = 0; k < MOST_VERBS && verbs[k] != NULL; k++) names[k] = verbs[k]->syntax->verb;
    const bool family = is_family(argv[0]);
    if (family && argv[1] == NULL) {
        list_family(verbs, argv[0], asked, sizeof(asked));
        report_error(report, LR_USAGE, "%s needs one of %s: see loraster --help", argv[0], asked);
        return CLI_USAGE;
    }
    snprintf(asked, sizeof(asked), "%s%s%s", argv[0], family ? " " : "", family ? argv[1] : "");
    const char *nearest = args_nearest(asked, names);
    report_error(report, LR_USAGE, "there is no verb %s: %s%s%s", asked,
                 nearest ? "did you mean " : "see loraster --help", nearest ? nearest : "", nearest ? "?" : "");
    return CLI_USAGE;
}

/* Results that did not reach standard output are a failure like any other. */
static lr_status flush_output(struct report *report, lr_status status)
{
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == LR_OK)
        return report_error(report, LR_FAILED, "standard output cannot be written: %s", strerror(errno));
    return status;
}

static int run_verb(struct report *report, const struct cli_verb *verb, char *const *argv)
{
    struct cli_args args;
    int rank = 0;
    const int size = lr_comm_started(&rank);
    if (size > 1) report_join_ranks(report, rank, size);
    lr_status status = args_parse(&args, verb->syntax, report, argv);
    report->args = &args;
    const bool is_own = !verb->syntax->takes_ranks && args_has(&args, "--part");
    if (size > 1 && is_own) {
        report_join_ranks(report, 0, 1); /* a part each, as the shell that mpirun started numbers them */
    } else if (size > 1 && !verb->syntax->takes_ranks && status == LR_OK && !args.help) {
        status = report_error(report, LR_USAGE,
                              "%s does not share its work: each of the %d ranks would do all of it "
                              "and write the same files: start it without mpirun or srun, or once "
                              "(-n 1); recon and bench cluster share theirs",
                              verb->syntax->verb, size);
    }
    report->quiet = args_has(&args, "--quiet");
    report->verbose = args_has(&args, "--verbose");
    report->json = args_has(&args, "--json");
    if (args.help) {
        rank == 0 ? args_print_help(verb->syntax) : (void)0;
    } else if (status == LR_OK) {
        status = outputs_check(&args);
        status = status == LR_OK ? verb->run(&args) : status;
    }
    report->args = NULL;
    args_finish(&args);
    status = flush_output(report, status);
    if (status == LR_OK && stop_is_asked())
        report_info(report, "the signal to stop came when the work was done: it is complete");
    return report_exit_code(report, status);
}

/* The same words for the verb's own program, which has this one's standard files and signals. */
static int become_program(struct program *program, const struct cli_verb *verb)
{
    char path[PATH_MAX];
    if (lr_helper_find(verb->syntax->program, path)) {
        stop_hold_signals();
        if (stop_is_asked()) return report_exit_code(&program->report, LR_CANCELLED);
        execv(path, program->argv);
        report_error(&program->report, LR_FAILED, "%s cannot be started: %s", path, strerror(errno));
        return CLI_FAILED;
    }
    report_error(&program->report, LR_FAILED,
                 "%s is done by the program %s, which is not installed and %s: build it with cmake "
                 "--build BUILD --target %s, and set LORASTER_LIBEXEC to the whole path of that "
                 "folder BUILD",
                 verb->syntax->verb, verb->syntax->program, path, verb->syntax->program);
    return CLI_FAILED;
}

static int run(struct program *program)
{
    struct report *report = &program->report;
    char *const *argv = program->argv + 1;
    if (argv[0] == NULL) {
        report_error(report, LR_USAGE, "which verb? See loraster --help");
        return CLI_USAGE;
    }
    if (strcmp(argv[0], "--version") == 0) {
        printf("loraster %s\n", lr_version());
        return report_exit_code(report, flush_output(report, LR_OK));
    }
    const bool family_help = is_family(argv[0]) && argv[1] != NULL && strcmp(argv[1], "--help") == 0;
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "help") == 0 || family_help) {
        print_help(program->verbs);
        return report_exit_code(report, flush_output(report, LR_OK));
    }
    for (int k = 0; program->verbs[k] != NULL; k++) {
        const struct cli_verb *verb = program->verbs[k];
        const int words = match_verb(verb, argv);
        if (words > 0)
            return verb->syntax->program != NULL ? become_program(program, verb) : run_verb(report, verb, argv + words);
    }
    return complain_verb(program);
}

static bool has_ended;

/* HDF5 leaves by exit(-1) where it gets no memory; 255 is none of our codes. */
static void catch_exit(void)
{
    if (!has_ended) {
        fputs("loraster: error: a library has ended the program, perhaps for want of memory\n", stderr);
        _exit(CLI_FAILED);
    }
}

int program_main(const struct cli_verb *const *verbs, char *const *argv)
{
    static char *const nothing[] = {NULL, NULL};
    struct program program = {.verbs = verbs, .argv = argv[0] != NULL ? argv : nothing};
    stop_catch_signals();
    report_init(&program.report);
    atexit(catch_exit);
    const int code = run(&program);
    has_ended = true;
    return code;
}
