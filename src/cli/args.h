/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The command line as a table: each verb declares its options, and everything else (parsing, "did you mean", help,
 * manual pages, completion by a shell) follows from the declarations. */
#pragma once

#include "report.h"

#include <stddef.h>
#include <stdio.h>

/* The values of an option. */
struct cli_values {
    const char *const *words; /* all values that are allowed, NULL at the end; NULL = any value */
    const char *such_as;      /* the number that a message suggests for a wrong or missing one; NULL = a usual number */
};

/* One option. Names begin with dashes ("--rays", "-o"). */
struct cli_option {
    const char *name;
    const char *metavar;             /* "N", "X,Y,Z"; "[N]" = optional; NULL = a flag without value */
    const char *help;                /* one line, lower case, no full stop */
    const struct cli_values *values; /* NULL = any value */
};

/* Values of an option: words, the words of an array, or any number. */
#define CLI_WORDS(...) CLI_WORDS_OF(((const char *const[]){__VA_ARGS__, NULL}))
#define CLI_WORDS_OF(array) (&(const struct cli_values){.words = (array)})
#define CLI_SUCH_AS(number) (&(const struct cli_values){.such_as = (number)})

/* A named list of options that several verbs share. An option with name NULL ends `options`. */
struct cli_group {
    const char *title;
    const struct cli_option *options;
};

enum { CLI_MAX_GROUPS = 12, CLI_MAX_GIVEN = 4096, CLI_MAX_POSITIONAL = 4096, CLI_MAX_OUTPUTS = 4 };

/* An output: the option that names the file, and the endings that the file's name may have. In a list of outputs, NULL
 * ends the list. The ending "" allows names without an ending, such as devices and pipes. All other words of the
 * command line that name files are inputs. */
struct cli_output {
    const char *name;
    const char *const *endings;
};

/* Value of cli_output.name for an output without an option. The second word after the verb then names the output's
   file. */
#define CLI_SECOND_WORD "OUT"

struct cli_args;

/* A verb: its syntax, and the function that runs it. The function's messages go to args->report. The groups end at the
 * first NULL title or at the end of the array. Every verb also has a group of general options after its own groups. */
struct cli_verb {
    const char *name;        /* "recon" */
    const char *positionals; /* "NAME|FILE"; NULL = none */
    int most_positionals;    /* 0 means 4 */
    const char *summary;     /* one sentence that says what the verb does */
    const char *example;     /* one complete command */
    const char *repeated;    /* the option that may be given more than once; NULL = none */
    bool takes_ranks;        /* several processes, started by mpirun, can run the verb together */
    const char *program;     /* another program that runs the verb; only name and summary are needed then */
    struct cli_output outputs[CLI_MAX_OUTPUTS]; /* the list ends at the first NULL name or at the end of the array */
    struct cli_group groups[CLI_MAX_GROUPS];
    lr_status (*run)(struct cli_args *args);
};

struct cli_given {
    const struct cli_option *option;
    const char *value; /* NULL for a flag */
};

/* A parsed command line. It points to the strings of argv.
 *
 * The getters below never stop the program. The first invalid value is reported, `status` becomes LR_USAGE, and the
 * getter returns its fallback. A verb reads all its options first and then checks `status` once. */
struct cli_args {
    const struct cli_verb *verb;
    struct report *report;
    struct cli_given *given; /* owned [num_given] */
    int num_given;
    const char *positional[CLI_MAX_POSITIONAL];
    int num_positional;
    bool help;
    lr_status status;
};

/* Parses the words after the verb. errors: LR_USAGE; the message suggests the nearest known option. The caller frees
 * args->given, also after an error. */
lr_status args_parse(struct cli_args *args, const struct cli_verb *verb, struct report *report, char *const *argv);

/* Prints the verb's help to stdout. */
void args_print_help(const struct cli_verb *verb);

/* Writes the head of a manual page, in troff: its title, and the summary. name: "loraster" or "loraster VERB". */
void args_print_title(FILE *stream, const char *name, const char *summary);

/* Writes the verb's manual page. */
void args_print_manual(FILE *stream, const struct cli_verb *verb);

/* Prints the completions of the last of `words`, which may be typed only in part. Each line has a word, a tab and a
 * sentence. The shell itself completes the names of files. */
void args_complete(const struct cli_verb *verb, char *const *words);

/* Prints one line of completion if `word` begins with the text `typed`. */
void args_offer(const char *word, const char *typed, const char *sentence);

/* Option number n of the verb's options, in the order of its help; NULL after the last. */
const struct cli_option *args_option(const struct cli_verb *verb, int n);

bool args_has(const struct cli_args *args, const char *name);

/* The option's text, or NULL. */
const char *args_text(const struct cli_args *args, const char *name);

/* The text of an option that must be given. If it is not given, an error is reported and "" returned. */
const char *args_required(struct cli_args *args, const char *name);

/* The number of times that an option was given, and its k-th text. */
int args_count(const struct cli_args *args, const char *name);
const char *args_nth(const struct cli_args *args, const char *name, int k);

/* args_from_0: 0 to INT_MAX. args_from_1: 1 to INT_MAX. args_seeds: 0 to INT64_MAX. */
extern const int64_t args_from_0[2], args_from_1[2], args_seeds[2];

/* A whole number in [least, most]. */
int64_t args_int(struct cli_args *args, const char *name, int64_t fallback, const int64_t range[2]);

/* A finite number; it must be above 0 if `positive` is true. */
double args_number(struct cli_args *args, const char *name, double fallback, bool positive);

/* The time resolution --tof-ps, FWHM; 0 if the option is not given. A value that is smaller than any scanner's is
 * refused, because a person who types 0.4 means 400. */
double args_tof_ps(struct cli_args *args);

/* Exactly three finite numbers "1,2,3". If `spread` is true, a single number is used for all three. Returns true if
 * `values` was filled in. */
bool args_triple(struct cli_args *args, const char *name, bool spread, double values[3]);
bool args_triple_text(struct cli_args *args, const char *name, const char *text, bool spread, double values[3]);

/* Three whole numbers in [1, 2^31 - 1]; the result is 1 or 3, the number of values given. */
int args_sizes(struct cli_args *args, const char *name, int values[3]);

/* One to `most` whole numbers in [1, 2^31 - 1], "1,2,4"; returns their count, or 0 if there are none. */
int args_ints(struct cli_args *args, const char *name, int *values, int most);

/* "k/N", the k-th of N parts, 1 <= k <= N. Returns true if the option was given and is valid. */
bool args_share(struct cli_args *args, const char *name, int64_t *number, int64_t *parts);

/* A size in bytes: 4096, 512K, 512M, 4G, 1.5G (powers of 1024; "GiB" and "GB" are accepted too). */
int64_t args_bytes(struct cli_args *args, const char *name, int64_t fallback);

/* Index of the option's text in `words`, ignoring case; the fallback if the option is not given. words: NULL = the
 * words with which the option is declared. */
int args_word(struct cli_args *args, const char *name, const char *const *words, int fallback);

/* The word that was given for the option, in the spelling of the option's declaration. If the option is not given,
 * returns the first declared word. If the verb has no such option, returns NULL. */
const char *args_chosen(struct cli_args *args, const char *name);

/* Reports an error of the command line and sets `status` to LR_USAGE. */
void args_complain(struct cli_args *args, const char *format, ...) LR_PRINTF(2, 3);

/* The entry of `words` (NULL at the end) that is most similar to `text`, or NULL if none is similar. Leading dashes
 * and capitals are ignored. */
const char *args_nearest(const char *text, const char *const *words);
