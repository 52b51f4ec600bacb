/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "verbs.h"

#include "base/path.h"
#include "common.h"
#include "stop.h"

#include <errno.h>
#include <limits.h>
#include <lr/lr.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_VERBS = 40 };

/* Returns true if the word is the first one of a verb that has two words. */
static bool is_family(const char *word)
{
    return strcmp(word, "scanner") == 0 || strcmp(word, "events") == 0 || strcmp(word, "bench") == 0 ||
           strcmp(word, "direct") == 0 || strcmp(word, "sample") == 0;
}

/* Flushes standard output. If this fails, the results are lost, and the verb has failed. It is no error if the reader
 * of a pipe, such as head, has closed the pipe because it needs no more output. */
static lr_status flush_output(struct report *report, lr_status status)
{
    if ((fflush(stdout) == 0 && !ferror(stdout)) || status != LR_OK) return status;
    const int error = errno;
    struct pollfd pipe = {.fd = STDOUT_FILENO, .events = POLLOUT};
    const bool has_no_reader = poll(&pipe, 1, 0) > 0 && (pipe.revents & POLLERR) != 0;
    if (has_no_reader) return LR_OK;
    return report_error(report, LR_FAILED, "standard output cannot be written: %s", strerror(error));
}

/* Checks all outputs on the command line, then runs the verb. */
static lr_status run_checked(struct cli_args *args)
{
    const lr_status status = outputs_check(args);
    return status == LR_OK ? args->verb->run(args) : status;
}

static int run_verb(struct report *report, const struct cli_verb *verb, char *const *argv)
{
    struct cli_args args;
    int rank = 0;
    const int size = lr_comm_started(&rank);
    if (size > 1) report_join_ranks(report, rank, size);
    lr_status status = args_parse(&args, verb, report, argv);
    report->args = &args;
    const bool is_own = !verb->takes_ranks && args_has(&args, "--part");
    if (size > 1 && is_own) {
        report_join_ranks(report, 0, 1); /* under mpirun, each process works alone on its own --part */
    } else if (size > 1 && !verb->takes_ranks && status == LR_OK && !args.help) {
        status = report_error(report, LR_USAGE,
                              "%s does not share its work: each of the %d ranks would do all of it "
                              "and write the same files: start it without mpirun or srun, or once "
                              "(-n 1); recon and bench cluster share theirs",
                              verb->name, size);
    }
    report->quiet = args_has(&args, "--quiet");
    report->verbose = args_has(&args, "--verbose");
    report->json = args_has(&args, "--json");
    if (args.help)
        rank == 0 ? args_print_help(verb) : (void)0;
    else if (status == LR_OK)
        status = run_checked(&args);
    report->args = NULL;
    free(args.given);
    status = flush_output(report, status);
    stop_end(); /* the work is done, so signals may no longer change the exit code */
    if (status == LR_OK && stop_is_asked())
        report_info(report, "the signal to stop came when the work was done: it is complete");
    return report_exit_code(report, status);
}

/* Finds the verb at the beginning of the words; NULL = there is none. *num_words: number of words of its name. */
static const struct cli_verb *find_verb(const struct cli_verb *const *verbs, char *const *words, int *num_words)
{
    for (int k = 0; words[0] != NULL && verbs[k] != NULL; k++) {
        const char *name = verbs[k]->name, *space = strchr(name, ' ');
        const size_t length = space != NULL ? (size_t)(space - name) : strlen(name);
        *num_words = space != NULL ? 2 : 1;
        if (strlen(words[0]) == length && strncmp(words[0], name, length) == 0 &&
            (space == NULL || (words[1] != NULL && strcmp(words[1], space + 1) == 0)))
            return verbs[k];
    }
    return NULL;
}

static const struct cli_verb *const *all_verbs; /* the table that program_main received */

lr_status program_run(struct report *report, char *const *words)
{
    const struct cli_args *outer = report->args;
    struct cli_args args;
    int num_words = 0;
    const struct cli_verb *verb = find_verb(all_verbs, words, &num_words);
    if (verb == NULL || verb->run == NULL) return report_error(report, LR_USAGE, "there is no verb %s here", words[0]);
    lr_status status = args_parse(&args, verb, report, words + num_words);
    report->args = &args;
    if (status == LR_OK) status = run_checked(&args);
    report->args = outer;
    free(args.given);
    return status;
}

/* Replaces this program by the one that has the verb. Words, standard files and signals stay the same. */
static int start_program(struct report *report, const struct cli_verb *verb, char *const *argv)
{
    char path[PATH_MAX];
    if (lr_helper_find(verb->program, path)) {
        stop_hold_signals(true); /* signals wait until the other program catches them */
        if (stop_is_asked()) return report_exit_code(report, LR_CANCELLED);
        execv(path, argv);
        report_error(report, LR_FAILED, "%s cannot be started: %s", path, strerror(errno));
        return CLI_FAILED;
    }
    report_error(report, LR_FAILED,
                 "%s is done by the program %s, which is not installed and %s: build it with cmake --build BUILD "
                 "--target %s, and set LORASTER_LIBEXEC to the whole path of that folder BUILD",
                 verb->name, verb->program, path, verb->program);
    return CLI_FAILED;
}

static const char last_sentences[] =
    "loraster VERB --help shows its options and an example; loraster --version the version.\n"
    "Lengths are mm, z runs along the scanner's axis, the origin is its centre.\n"
    "Exit codes: 0 done, 1 failed or stopped, 2 usage, 3 bad input, 4 device missing.\n";

/* Writes manual pages into a folder: loraster.1, and loraster-VERB.1 for each verb of this program. The build runs
 * `loraster --manuals`. */
static lr_status write_manuals(struct report *report, const struct cli_verb *const *verbs, const char *folder)
{
    char path[PATH_MAX];
    struct common_text page;
    CLI_TRY(common_make_folder(report, folder));
    for (int k = 0; verbs[k] != NULL; k++) {
        if (verbs[k]->program != NULL) continue;
        snprintf(path, sizeof(path), "%s/loraster-%s.1", folder, verbs[k]->name);
        for (char *c = path + strlen(folder); *c != '\0'; c++) *c = *c == ' ' ? '-' : *c;
        common_text_begin(&page);
        if (page.stream != NULL) args_print_manual(page.stream, verbs[k]);
        CLI_TRY(common_text_write(&page, report, path));
    }
    common_text_begin(&page);
    if (page.stream != NULL) {
        args_print_title(page.stream, "loraster", "renders PET system matrices");
        fprintf(page.stream, "VERB [options]\n.SH VERBS\n");
        for (int k = 0; verbs[k] != NULL; k++)
            fprintf(page.stream, ".TP\n.B %s\n%s\n", verbs[k]->name, verbs[k]->summary);
        fprintf(page.stream,
                ".SH NOTES\nloraster-VERB(1), such as loraster-matrix-verify(1), has its options. Those of bench are "
                "shown by --help only.\n%s",
                last_sentences);
    }
    snprintf(path, sizeof(path), "%s/loraster.1", folder);
    return common_text_write(&page, report, path);
}

/* Prints words that complete the first word of a verb or, if the first word is complete, the second word. */
static void complete(const struct cli_verb *const *verbs, char *const *words)
{
    const char *first = words[0];
    char word[64], last[64] = "";
    for (int k = 0; first != NULL && verbs[k] != NULL; k++) {
        const struct cli_verb *verb = verbs[k];
        const char *space = strchr(verb->name, ' ');
        const size_t length = space != NULL ? (size_t)(space - verb->name) : strlen(verb->name);
        snprintf(word, sizeof(word), "%.*s", (int)length, verb->name);
        if (words[1] == NULL && strcmp(word, last) != 0)
            args_offer(word, first, space == NULL ? verb->summary : "");
        else if (words[1] != NULL && words[2] == NULL && space != NULL && strcmp(word, first) == 0)
            args_offer(space + 1, words[1], verb->summary);
        strcpy(last, word);
    }
}

/* Runs the verb of a command line. argv[0] is the name of the program. */
static int run(struct report *report, const struct cli_verb *const *verbs, char *const *argv)
{
    const char *first = argv[1], *second = first != NULL ? argv[2] : NULL;
    if (first == NULL) {
        report_error(report, LR_USAGE, "which verb? See loraster --help");
        return CLI_USAGE;
    }
    if (strcmp(first, "--version") == 0) {
        printf("loraster %s\n", lr_version());
        return report_exit_code(report, flush_output(report, LR_OK));
    }
    if (strcmp(first, "help") == 0 && second != NULL) { /* "help recon" is "recon --help" */
        int num_words = 0;
        const struct cli_verb *verb = find_verb(verbs, argv + 2, &num_words);
        static char *const help[] = {"--help", NULL};
        if (verb != NULL && verb->program == NULL) return run_verb(report, verb, help);
    }
    const bool family_help = is_family(first) && second != NULL && strcmp(second, "--help") == 0;
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0 || family_help) {
        printf("LORaster %s renders PET system matrices.\n\nusage: loraster VERB [options]\n\n", lr_version());
        for (int k = 0; verbs[k] != NULL; k++) printf("  %-20s %s\n", verbs[k]->name, verbs[k]->summary);
        printf("\n%s", last_sentences);
        return report_exit_code(report, flush_output(report, LR_OK));
    }
    if (strcmp(first, "--manuals") == 0 && second != NULL)
        return report_exit_code(report, write_manuals(report, verbs, second));
    const bool completes = strcmp(first, "--complete") == 0;
    char *const *words = argv + 1 + completes;
    int num_words = 0;
    const struct cli_verb *verb = find_verb(verbs, words, &num_words);
    const char *program = verb != NULL ? verb->program : NULL;
    if (completes && (program == NULL || words[num_words] == NULL)) {
        complete(verbs, words);
        if (verb != NULL && words[num_words] != NULL) args_complete(verb, words + num_words);
        return report_exit_code(report, flush_output(report, LR_OK));
    }
    if (program != NULL) return start_program(report, verb, argv);
    if (verb != NULL) return run_verb(report, verb, words + num_words);

    const char *names[MOST_VERBS + 1] = {0};
    char asked[128] = "";
    const bool family = is_family(first);
    if (family && second == NULL) {
        const size_t length = strlen(first);
        for (int k = 0; verbs[k] != NULL; k++) { /* lists verbs like "list, show, check" */
            const char *name = verbs[k]->name;
            const size_t used = strlen(asked);
            if (strncmp(name, first, length) == 0 && name[length] == ' ')
                snprintf(asked + used, sizeof(asked) - used, "%s%s", used > 0 ? ", " : "", name + length + 1);
        }
        report_error(report, LR_USAGE, "%s needs one of %s: see loraster --help", first, asked);
        return CLI_USAGE;
    }
    for (int k = 0; k < MOST_VERBS && verbs[k] != NULL; k++) names[k] = verbs[k]->name;
    snprintf(asked, sizeof(asked), "%s%s%s", first, family ? " " : "", family ? second : "");
    const char *nearest = args_nearest(asked, names);
    const bool has_show = strcmp(first, "scanner") == 0 || strcmp(first, "events") == 0;
    if (has_show && nearest == NULL && second != NULL && access(second, F_OK) == 0) {
        report_error(report, LR_USAGE, "there is no verb %s: did you mean %s show %s?", asked, first, second);
        return CLI_USAGE;
    }
    report_error(report, LR_USAGE, "there is no verb %s: %s%s%s", asked,
                 nearest ? "did you mean " : "see loraster --help", nearest ? nearest : "", nearest ? "?" : "");
    return CLI_USAGE;
}

static bool has_ended;

/* HDF5 calls exit(-1) if memory runs out. No verb ends with the exit code 255, so this function replaces the code
   255. */
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
    struct report report;
    all_verbs = verbs;
    stop_catch_signals();
    report_init(&report);
    atexit(catch_exit);
    const int code = run(&report, verbs, argv[0] != NULL ? argv : nothing);
    has_ended = true;
    return code;
}
