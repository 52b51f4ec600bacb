/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The command line as a table: each verb declares its options, and everything else (parsing,
 * "did you mean", help) follows from the declarations. */
#ifndef LR_CLI_ARGS_H
#define LR_CLI_ARGS_H

#include "report.h"

#include <stddef.h>

/* One option. Names begin with dashes ("--rays", "-o"). */
struct cli_option {
    const char *name;
    const char *metavar; /* "N", "X,Y,Z"; "[N]" = may be left out; NULL = a flag without value */
    const char *help;    /* one line, lower case, no full stop */
    bool repeats;        /* may be given more than once */
};

/* A named run of options that several verbs share. An option of NULL name ends `options`. */
struct cli_group {
    const char *title;
    const struct cli_option *options;
};

enum { CLI_MAX_GROUPS = 13, CLI_MAX_GIVEN = 4096, CLI_MAX_POSITIONAL = 4096, CLI_MAX_OUTPUTS = 4 };

/* An output: the file that an option of that name gives, which ends in one of these. NULL ends the list, ""
 * stands for names without one, such as names of devices and pipes. All other words that name files are read. */
struct cli_output {
    const char *name;
    const char *const *endings;
};

/* The name of an output without an option: the second positional. */
#define CLI_SECOND_WORD "OUT"

/* Syntax of a verb. Groups end at the first NULL title, or with the array. */
struct cli_syntax {
    const char *verb;        /* "recon" */
    const char *positionals; /* "NAME|FILE"; NULL = none taken */
    int most_positionals;    /* 0 = 4 */
    const char *summary;     /* one sentence */
    const char *example;     /* one complete command */
    bool takes_ranks;        /* processes that mpirun has started do it together */
    const char *program;     /* another program that has the verb: name and summary are enough here */
    struct cli_output outputs[CLI_MAX_OUTPUTS]; /* end at the first NULL name, or with the array */
    struct cli_group groups[CLI_MAX_GROUPS];
};

struct cli_given {
    const struct cli_option *option;
    const char *value; /* NULL for a flag */
};

/* A parsed command line. The strings are argv's.
 * The getters below never stop: the first value that makes no sense is reported, kept in `status`
 * as LR_USAGE, and the getter returns its fallback. A verb reads all it needs, then asks once. */
struct cli_args {
    const struct cli_syntax *syntax;
    struct report *report;
    struct cli_given *given; /* owned [num_given] */
    int num_given;
    const char *positional[CLI_MAX_POSITIONAL];
    int num_positional;
    bool help;
    lr_status status;
};

/* Parses what follows the verb. errors: LR_USAGE, reported, with the nearest known option.
 * args_finish must follow in either case. */
lr_status args_parse(struct cli_args *args, const struct cli_syntax *syntax, struct report *report, char *const *argv);
void args_finish(struct cli_args *args);

/* Prints the verb's help to stdout. */
void args_print_help(const struct cli_syntax *syntax);

bool args_has(const struct cli_args *args, const char *name);

/* The option's text, or NULL. */
const char *args_text(const struct cli_args *args, const char *name);

/* Like args_text, but absence is an error, and returns "". */
const char *args_required(struct cli_args *args, const char *name);

/* The number of times that an option was given, and its k-th text. */
int args_count(const struct cli_args *args, const char *name);
const char *args_nth(const struct cli_args *args, const char *name, int k);

/* A whole number in [least, most]. */
int64_t args_int(struct cli_args *args, const char *name, int64_t fallback, const int64_t range[2]);

/* A finite number; `positive`: above 0. */
double args_number(struct cli_args *args, const char *name, double fallback, bool positive);

/* Exactly three finite numbers "1,2,3"; with `spread`, one number stands for all three.
 * Returns whether `values` was filled in. */
bool args_triple(struct cli_args *args, const char *name, bool spread, double values[3]);
bool args_triple_text(struct cli_args *args, const char *name, const char *text, double values[3]);

/* Three whole numbers in [1, 2^31 - 1]; `count` says whether one or three were given. */
int args_sizes(struct cli_args *args, const char *name, int values[3]);

/* One to `most` whole numbers in [1, 2^31 - 1], "1,2,4"; returns how many, 0 when there are none. */
int args_ints(struct cli_args *args, const char *name, int *values, int most);

/* "k/N", the k-th of N parts, 1 <= k <= N. Returns whether it was given and makes sense. */
bool args_share(struct cli_args *args, const char *name, int64_t *number, int64_t *parts);

/* Bytes: 4096, 512K, 512M, 4G, 1.5G (powers of 1024; "GiB" and "GB" are understood too). */
int64_t args_bytes(struct cli_args *args, const char *name, int64_t fallback);

/* Index of the option's text in `words` (NULL at the end), capitals or not, or the fallback. */
int args_word(struct cli_args *args, const char *name, const char *const *words, int fallback);

/* Reports that the command line makes no sense and marks it so. */
void args_complain(struct cli_args *args, const char *format, ...) LR_PRINTF(2, 3);

/* The word of `words` (NULL at the end) nearest to `text`, or NULL when none is near. Dashes in
 * front and capitals do not matter. */
const char *args_nearest(const char *text, const char *const *words);

#endif
