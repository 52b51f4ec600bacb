/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The program's messages on standard error, progress, and JSON. */
#pragma once

#include <lr/log.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* Exit codes of the program. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_BAD_INPUT = 3, CLI_NO_DEVICE = 4 };

struct cli_args;

/* Processes that run a verb together. */
struct report_ranks {
    int rank, size;         /* size 0 or 1: this process is alone */
    int speaker;            /* the rank that prints its error */
    char name[96];          /* "rank 2 of 5 on node7: "; "" until it is known */
    char first_error[2048]; /* the first error, printed at the end */
    bool has_printed;
};

/* list: writes the reasons for which the running reconstruction may leave out counts; NULL = no reconstruction runs. */
struct report_causes {
    void (*list)(const void *user, char *text, size_t size);
    const void *user;
};

/* The program has one such struct per run. The struct must not move, because `log` and `progress` point back to it. */
struct report {
    lr_log log;
    lr_progress progress;
    bool quiet;       /* omit information and progress, print warnings and errors */
    bool verbose;     /* debugging messages too, with the seconds since the start */
    bool json;        /* stdout is one JSON object */
    bool terminal;    /* stderr is a terminal: draw progress */
    lr_status status; /* status of the last error */
    double start_s, phase_start_s, drawn_s, last_done;
    char phase[96];
    bool line_drawn;
    double next_word_s; /* seconds after the start at which the log next gets a message about the remaining time */
    struct report_ranks ranks;
    const struct cli_args *args; /* the command line of the running verb; NULL = none yet */
    struct report_causes causes;
};

void report_init(struct report *report);

/* A log that passes on only errors. */
lr_log report_errors_alone(struct report *report);

/* Each function prints a message and a newline. report_error stores `status` in the report and returns it. */
void report_info(struct report *report, const char *format, ...) LR_PRINTF(2, 3);
void report_warn(struct report *report, const char *format, ...) LR_PRINTF(2, 3);
lr_status report_error(struct report *report, lr_status status, const char *format, ...) LR_PRINTF(3, 4);

/* The status to return if a constructor has returned NULL: the status of the last error, or LR_FAILED. */
lr_status report_reason(const struct report *report);

/* The exit code for a status; prints "stopped" if Ctrl-C ended the verb. */
int report_exit_code(struct report *report, lr_status status);

/* After this call, only rank 0 prints messages other than errors. Each rank stores its first error. When the verb has
 * ended (report_exit_code), one rank, the speaker, prints its first error. The speaker is rank 0 unless report_speak
 * names another rank. */
void report_join_ranks(struct report *report, int rank, int size);

/* Makes the rank `speaker` print its first error now, because mpirun ends all other ranks when a rank ends. */
void report_speak(struct report *report, int speaker, lr_status status);

/* Removes the progress line. */
void report_clear(struct report *report);

/* Writes a duration into `text`, such as "12 s", "3 min 20 s" or "2 h 5 min", and returns `text`. */
const char *report_duration(char text[32], double seconds);

/* Seconds on a clock that never goes back. */
static inline double report_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* --- advice (advice.c): additions to messages of the library, which knows neither options nor verbs --- */

enum { ADVICE_BYTES = 2048 };

/* Returns `sentence` with advice added, written into `text`; or `sentence` itself if there is no advice. */
const char *advice_on(const struct report *report, lr_status status, const char *sentence, char text[ADVICE_BYTES]);

struct json {
    FILE *stream;
    bool wrote; /* the innermost open bracket is not empty */
};

void json_open(struct json *json, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *json, char bracket);                 /* '}' or ']' */

/* NULL text and numbers that are not finite become null. */
void json_text(struct json *json, const char *key, const char *text);
void json_number(struct json *json, const char *key, double number);
void json_int(struct json *json, const char *key, int64_t number);
void json_bool(struct json *json, const char *key, bool value);
void json_numbers(struct json *json, const char *key, const double *numbers, int count);
void json_ints(struct json *json, const char *key, const int *numbers, int count);

/* The progress bar of a reconstruction. The struct must not move, because `steps` and `within` point back to it. */
struct run_bar {
    struct report *report;
    const char *name;   /* "recon" */
    lr_progress steps;  /* callback for lr_recon_params */
    lr_progress within; /* callback for lr_operator_params */
    double before;      /* weight of the sensitivities; 1 = a projection of all LORs, or of one line with of_lines */
    double each;        /* weight of one iteration */
    bool of_lines;      /* list mode: weights are numbers of lines, and the sensitivity reports how many it has */
    int iterations, subsets;
    int calls;           /* projections of the current step that have ended */
    int calls_in_step;   /* number of projections in a step */
    double begin, step;  /* begin: weight before the current step; step: weight of this step, 0 = no step has begun */
    double call;         /* share of the current projection that is done */
    char what[96];       /* name of the step */
    double pace_begin_s; /* time when the current kind of step began */
    double pace_begin;   /* the weight at that time */
    bool iterates;
};

/* Initialises the bar. The caller then sets name, before, each, of_lines, iterations and subsets. */
void run_bar_init(struct run_bar *bar, struct report *report);
