/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "args.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAMES = 128 };

void args_complain(struct cli_args *args, const char *format, ...)
{
    char sentence[900];
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof(sentence), format, list);
    va_end(list);
    if (args->status == LR_OK) {
        args->status = report_error(args->report, LR_USAGE, "%s", sentence);
    }
}

/* --- nearest word --- */

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Levenshtein's distance, one row of the table at a time. */
static int edit_distance(const char *a, const char *b)
{
    int row[64];
    const int columns = (int)strlen(b);
    if (columns >= 64) {
        return 64;
    }
    for (int j = 0; j <= columns; j++) {
        row[j] = j;
    }
    for (int i = 0; a[i] != '\0'; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < columns; j++) {
            const int replaced = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = smaller(replaced, smaller(row[j], row[j + 1]) + 1);
        }
    }
    return row[columns];
}

const char *args_nearest(const char *text, const char *const *words)
{
    const char *nearest = NULL;
    int least = 1 + (int)strlen(text) / 3; /* a third of the letters may be wrong */
    for (int k = 0; words[k] != NULL; k++) {
        const int distance = edit_distance(text, words[k]);
        if (distance <= least && (nearest == NULL || distance < least)) {
            nearest = words[k];
            least = distance;
        }
    }
    return nearest;
}

/* --- parsing --- */

static const struct cli_option *find_option(const struct cli_syntax *syntax, const char *name,
                                            size_t length)
{
    for (const struct cli_group *group = syntax->groups; group->title != NULL; group++) {
        for (const struct cli_option *option = group->options; option->name != NULL; option++) {
            if (strlen(option->name) == length && strncmp(option->name, name, length) == 0) {
                return option;
            }
        }
    }
    return NULL;
}

static void complain_unknown(struct cli_args *args, const char *text, size_t length)
{
    const char *names[MAX_NAMES] = {0};
    int count = 0;
    for (const struct cli_group *group = args->syntax->groups; group->title != NULL; group++) {
        for (const struct cli_option *option = group->options; option->name != NULL; option++) {
            if (count < MAX_NAMES - 1) {
                names[count++] = option->name;
            }
        }
    }
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)length, text);
    const char *nearest = args_nearest(name, names);
    const char *verb = args->syntax->verb;
    if (nearest != NULL) {
        args_complain(args, "%s has no option %s: did you mean %s?", verb, name, nearest);
    } else {
        args_complain(args, "%s has no option %s: see loraster %s --help", verb, name, verb);
    }
}

static void add_given(struct cli_args *args, const struct cli_option *option, const char *value)
{
    if (!option->repeats && args_has(args, option->name)) {
        args_complain(args, "%s is given twice", option->name);
    } else if (args->num_given == CLI_MAX_GIVEN) {
        args_complain(args, "more than %d options", CLI_MAX_GIVEN);
    } else {
        args->given[args->num_given++] = (struct cli_given){option, value};
    }
}

/* Takes one option with its value; returns how many arguments that used. */
static int take_option(struct cli_args *args, char *const *argv)
{
    const char *text = argv[0];
    const char *equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
    const size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const struct cli_option *option = find_option(args->syntax, text, length);
    if (option == NULL) {
        complain_unknown(args, text, length);
        return 1;
    }
    if (option->metavar == NULL) {
        if (equals != NULL) {
            args_complain(args, "%s takes no value", option->name);
        }
        add_given(args, option, NULL);
        return 1;
    }
    if (equals != NULL) {
        add_given(args, option, equals + 1);
        return 1;
    }
    const bool may_lack = option->metavar[0] == '[';
    if (may_lack && (argv[1] == NULL || argv[1][0] == '-')) {
        add_given(args, option, NULL);
        return 1;
    }
    if (argv[1] == NULL || strncmp(argv[1], "--", 2) == 0) {
        args_complain(args, "%s needs a value: %s %s", option->name, option->name, option->metavar);
        return 1;
    }
    add_given(args, option, argv[1]);
    return 2;
}

static void take_positional(struct cli_args *args, const char *text)
{
    if (args->syntax->positionals == NULL || args->num_positional == CLI_MAX_POSITIONAL) {
        args_complain(args, "what is \"%s\" for? See loraster %s --help", text, args->syntax->verb);
    } else {
        args->positional[args->num_positional++] = text;
    }
}

static bool asks_for_help(const char *text)
{
    return strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0;
}

lr_status args_parse(struct cli_args *args, const struct cli_syntax *syntax, struct report *report,
                     char *const *argv)
{
    *args = (struct cli_args){.syntax = syntax, .report = report};
    args->given = calloc(CLI_MAX_GIVEN, sizeof(*args->given));
    if (args->given == NULL) {
        return args->status = report_error(report, LR_FAILED, "no memory for the command line");
    }
    for (int k = 0; argv[k] != NULL; k++) {
        args->help = args->help || asks_for_help(argv[k]);
    }
    for (int k = 0; argv[k] != NULL && !args->help && args->status == LR_OK;) {
        if (argv[k][0] == '-' && argv[k][1] != '\0') {
            k += take_option(args, argv + k);
        } else {
            take_positional(args, argv[k++]);
        }
    }
    return args->status;
}

void args_finish(struct cli_args *args)
{
    free(args->given);
    args->given = NULL;
}

/* --- help --- */

static void print_option(const struct cli_option *option)
{
    char left[64];
    snprintf(left, sizeof(left), "%s%s%s", option->name, option->metavar ? " " : "",
             option->metavar ? option->metavar : "");
    printf("  %-26s %s%s\n", left, option->help, option->repeats ? " (may be repeated)" : "");
}

void args_print_help(const struct cli_syntax *syntax)
{
    printf("usage: loraster %s%s%s [options]\n\n%s\n", syntax->verb, syntax->positionals ? " " : "",
           syntax->positionals ? syntax->positionals : "", syntax->summary);
    for (const struct cli_group *group = syntax->groups; group->title != NULL; group++) {
        printf("\n%s\n", group->title);
        for (const struct cli_option *option = group->options; option->name != NULL; option++) {
            print_option(option);
        }
    }
    printf("\nexample\n  %s\n", syntax->example);
}

/* --- reading values --- */

static const struct cli_given *find_given(const struct cli_args *args, const char *name, int k)
{
    for (int n = 0; n < args->num_given; n++) {
        if (strcmp(args->given[n].option->name, name) == 0 && k-- == 0) {
            return &args->given[n];
        }
    }
    return NULL;
}

bool args_has(const struct cli_args *args, const char *name)
{
    return find_given(args, name, 0) != NULL;
}

const char *args_text(const struct cli_args *args, const char *name)
{
    return args_nth(args, name, 0);
}

const char *args_nth(const struct cli_args *args, const char *name, int k)
{
    const struct cli_given *given = find_given(args, name, k);
    return given != NULL ? given->value : NULL;
}

int args_count(const struct cli_args *args, const char *name)
{
    int count = 0;
    while (find_given(args, name, count) != NULL) {
        count++;
    }
    return count;
}

const char *args_required(struct cli_args *args, const char *name)
{
    const char *text = args_text(args, name);
    if (text == NULL) {
        const struct cli_option *option = find_option(args->syntax, name, strlen(name));
        args_complain(args, "%s needs %s %s", args->syntax->verb, name, option->metavar);
        return "";
    }
    return text;
}
