/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The program's messages on standard error, progress, and JSON. */
#ifndef LR_CLI_REPORT_H
#define LR_CLI_REPORT_H

#include <lr/log.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes of the program. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_BAD_INPUT = 3, CLI_NO_DEVICE = 4 };

struct cli_args;

/* Processes that run a verb together. */
struct report_ranks {
    int rank, size;         /* size 0 or 1: this process alone */
    int speaker;            /* the rank that prints its error */
    char name[96];          /* "rank 2 of 5 on node7: "; "" before it is known */
    char first_error[2048]; /* which is printed at the end */
    bool has_printed;
};

/* One per run of the program; `log` and `progress` point back to it, so it must not move. */
struct report {
    lr_log log;
    lr_progress progress;
    bool quiet;       /* drop information and progress, keep warnings and errors */
    bool verbose;     /* debugging messages too, with the seconds since the start */
    bool json;        /* stdout carries one JSON object */
    bool terminal;    /* stderr is one: draw progress */
    lr_status status; /* of the last error */
    double start_s, phase_start_s, drawn_s, last_done;
    char phase[96];
    bool line_drawn;
    struct report_ranks ranks;
    const struct cli_args *args; /* the command line that the verb is running with; NULL = none yet */
};

void report_init(struct report *report);

/* A log that passes on errors alone. */
lr_log report_errors_alone(struct report *report);

/* Messages, without a newline. report_error returns `status`, and remembers it. */
void report_info(struct report *report, const char *format, ...) LR_PRINTF(2, 3);
void report_warn(struct report *report, const char *format, ...) LR_PRINTF(2, 3);
lr_status report_error(struct report *report, lr_status status, const char *format, ...) LR_PRINTF(3, 4);

/* The status of a constructor that gave NULL: the last error's, or LR_FAILED. */
lr_status report_reason(const struct report *report);

/* The exit code for how a verb ended; says "stopped" when Ctrl-C ended it. */
int report_exit_code(struct report *report, lr_status status);

/* Lets rank 0 alone print messages, except for errors: each rank keeps its first one, and when the verb has ended
 * (report_exit_code) the speaker, rank 0 unless another has been named, prints its own. */
void report_join_ranks(struct report *report, int rank, int size);
void report_name_rank(struct report *report, int rank, int size, const char *machine);
/* The speaker prints its error now: if the first process has ended with one, mpirun ends the others. */
void report_speak(struct report *report, int speaker, lr_status status);

/* Removes the progress line. */
void report_clear(struct report *report);

/* "12 s", "3 min 20 s", "2 h 5 min" */
const char *report_duration(char text[32], double seconds);

/* Seconds on a clock that never goes back. */
double report_seconds(void);

/* --- advice (advice.c): what the program adds to messages of the library, which does not know its options and verbs --- */

enum { ADVICE_BYTES = 2048 };

/* The message with advice, in `text` if there is any. args: the command line; NULL = not known */
const char *advice_on(const struct cli_args *args, lr_status status, const char *sentence, char text[ADVICE_BYTES]);

struct json {
    FILE *stream;
    bool wrote; /* something in the innermost open bracket */
};

void json_open(struct json *json, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *json, char bracket);                 /* '}' or ']' */

/* NULL text becomes null, and so does a number that is not finite. */
void json_text(struct json *json, const char *key, const char *text);
void json_number(struct json *json, const char *key, double number);
void json_int(struct json *json, const char *key, int64_t number);
void json_bool(struct json *json, const char *key, bool value);
void json_numbers(struct json *json, const char *key, const double *numbers, int count);
void json_ints(struct json *json, const char *key, const int *numbers, int count);

/* Must not move. */
struct run_bar {
    struct report *report;
    const char *name;   /* "recon" */
    lr_progress steps;  /* for lr_recon_params */
    lr_progress within; /* for lr_operator_params */
    double before;      /* weight of the sensitivities, 1 = a projection of all LORs */
    double each;        /* of an iteration */
    int iterations, subsets;
    int calls;           /* projections of the current step that have ended */
    int calls_in_step;   /* all projections of a step */
    double begin, step;  /* weight before the step, and of it; step 0: none has begun */
    double call;         /* share of the current projection that is done */
    char what[96];       /* the step */
    double pace_begin_s; /* when the current kind of step began */
    double pace_begin;   /* the weight at that time */
    bool iterates;
};

/* name, before, each, iterations and subsets are set by the caller after it. */
void run_bar_init(struct run_bar *bar, struct report *report);

#endif
