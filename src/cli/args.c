/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "args.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAMES = 128, FEW_POSITIONALS = 4 };

void args_complain(struct cli_args *args, const char *format, ...)
{
    char sentence[900];
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof(sentence), format, list);
    va_end(list);
    if (args->status == LR_OK) args->status = report_error(args->report, LR_USAGE, "%s", sentence);
}

/* --- nearest word --- */

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static int lower(char letter)
{
    return tolower((unsigned char)letter);
}

/* Levenshtein's distance, one row of the table at a time; capitals are as good as small letters. */
static int edit_distance(const char *a, const char *b)
{
    int row[64];
    const int columns = (int)strlen(b);
    if (columns >= 64) return 64;
    for (int j = 0; j <= columns; j++) row[j] = j;
    for (int i = 0; a[i] != '\0'; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < columns; j++) {
            const int replaced = diagonal + (lower(a[i]) != lower(b[j]));
            diagonal = row[j + 1];
            row[j + 1] = smaller(replaced, smaller(row[j], row[j + 1]) + 1);
        }
    }
    return row[columns];
}

/* Whether one is the other's beginning, of three letters at least: "iter", "reconstruct". */
static bool begins_alike(const char *a, const char *b)
{
    int same = 0;
    while (a[same] != '\0' && lower(a[same]) == lower(b[same])) same++;
    return same >= 3 && (a[same] == '\0' || b[same] == '\0');
}

/* The letters of an option's name. */
static const char *undashed(const char *text)
{
    return text + strspn(text, "-");
}

const char *args_nearest(const char *text, const char *const *words)
{
    const char *letters = undashed(text);
    const char *nearest = NULL, *begun = NULL;
    int least = (2 + (int)strlen(letters)) / 3; /* a third of the letters may be wrong */
    for (int k = 0; words[k] != NULL; k++) {
        const char *word = undashed(words[k]);
        const int distance = edit_distance(letters, word);
        const bool is_letter = strlen(word) == 1 && strlen(letters) == 1;
        if (distance <= least && !is_letter && (nearest == NULL || distance < least)) {
            nearest = words[k];
            least = distance;
        }
        if (begun == NULL && begins_alike(letters, word)) begun = words[k];
    }
    return nearest != NULL && (least <= 1 || begun == NULL) ? nearest : begun;
}

/* --- parsing --- */

/* A verb may fill the array: then nothing marks its end. */
static const struct cli_group *groups_end(const struct cli_syntax *syntax)
{
    int k = 0;
    while (k < CLI_MAX_GROUPS && syntax->groups[k].title != NULL) k++;
    return &syntax->groups[k];
}

static const struct cli_option *find_option(const struct cli_syntax *syntax, const char *name, size_t length)
{
    for (const struct cli_group *group = syntax->groups; group != groups_end(syntax); group++) {
        for (const struct cli_option *option = group->options; option->name != NULL; option++)
            if (strlen(option->name) == length && strncmp(option->name, name, length) == 0) return option;
    }
    return NULL;
}

/* What other programs call it; the first that the verb has is meant. */
static const struct {
    const char *other, *ours;
} synonyms[] = {
    {"output", "-o"},
    {"out", "-o"},
    {"input", "--image"},
    {"input", "--data"},
    {"input", "--histo"},
    {"in", "--image"},
    {"in", "--data"},
    {"in", "--histo"},
    {"data", "--image"},
    {"data", "--histo"},
    {"image", "--data"},
    {"image", "--histo"},
    {"attenuation", "--mu"},
    {"umap", "--mu"},
    {"mumap", "--mu"},
    {"mu-map", "--mu"},
    {"ctac", "--mu"},
    {"voxel-size", "--voxel-mm"},
    {"voxels", "--grid"},
    {"size", "--grid"},
    {"matrix-size", "--grid"},
    {"dim", "--grid"},
    {"dims", "--grid"},
    {"fov", "--grid"},
    {"listmode", "--events"},
    {"list-mode", "--events"},
    {"lm", "--events"},
    {"randoms", "--additive"},
    {"scatter", "--additive"},
    {"norm", "--efficiencies"},
    {"normalization", "--efficiencies"},
    {"normalisation", "--efficiencies"},
    {"tof", "--tof-ps"},
    {"gpu", "--device"},
    {"it", "--iterations"},
    {"niter", "--iterations"},
    {"n", "--iterations"},
    {"i", "--image"},
    {"i", "--data"},
    {"s", "--scanner"},
    {"position", "--at"},
    {"point", "--at"},
    {"verbosity", "--verbose"},
};

static const char *find_synonym(const struct cli_syntax *syntax, const char *text)
{
    for (size_t k = 0; k < sizeof(synonyms) / sizeof(synonyms[0]); k++) {
        const char *ours = synonyms[k].ours;
        if (edit_distance(undashed(text), synonyms[k].other) == 0 && find_option(syntax, ours, strlen(ours)) != NULL)
            return ours;
    }
    return NULL;
}

static const char *find_nearest_option(const struct cli_syntax *syntax, const char *text)
{
    const char *names[MAX_NAMES] = {0};
    int count = 0;
    for (const struct cli_group *group = syntax->groups; group != groups_end(syntax); group++) {
        for (const struct cli_option *option = group->options; option->name != NULL; option++)
            if (count < MAX_NAMES - 1) names[count++] = option->name;
    }
    return args_nearest(text, names);
}

static void complain_unknown(struct cli_args *args, const char *text, size_t length)
{
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)length, text);
    const char *verb = args->syntax->verb;
    const char *meant = find_synonym(args->syntax, name);
    if (meant == NULL) meant = find_nearest_option(args->syntax, name);
    if (meant != NULL)
        args_complain(args, "%s has no option %s: did you mean %s?", verb, name, meant);
    else
        args_complain(args, "%s has no option %s: see loraster %s --help", verb, name, verb);
}

static void add_given(struct cli_args *args, const struct cli_option *option, const char *value)
{
    if (!option->repeats && args_has(args, option->name)) {
        args_complain(args, "%s is given twice", option->name);
    } else if (args->num_given == CLI_MAX_GIVEN) {
        args_complain(args, "more than %d options", CLI_MAX_GIVEN);
    } else if (value != NULL && value[0] == '\0') {
        args_complain(args, "%s is followed by nothing: give %s %s (is a variable of the shell empty?)", option->name,
                      option->name, option->metavar);
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
        if (equals != NULL) args_complain(args, "%s takes no value", option->name);
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

static bool is_number(const char *text)
{
    char *end = NULL;
    (void)strtod(text, &end);
    return end != text && (*end == '\0' || (*end == ',' && end[1] == '\0'));
}

/* "--at 5 0 2": what follows a value that should have held it, after a comma. */
static bool complain_blanks(struct cli_args *args, char *const *rest)
{
    const struct cli_given *last = args->num_given > 0 ? &args->given[args->num_given - 1] : NULL;
    if (last == NULL || last->value == NULL || !is_number(rest[0]) || !is_number(last->value) ||
        strchr(last->option->metavar, ',') == NULL)
        return false;
    char list[160];
    size_t used = (size_t)snprintf(list, sizeof(list), "%.30s", last->value);
    for (int k = 0; k < 3 && rest[k] != NULL && is_number(rest[k]); k++) {
        const bool has_comma = list[used - 1] == ',';
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%.30s", has_comma ? "" : ",", rest[k]);
    }
    args_complain(args, "%s %s is followed by \"%s\": put commas between numbers, and no blanks: %s %s",
                  last->option->name, last->value, rest[0], last->option->name, list);
    return true;
}

/* The option that a file's name without one may belong to. */
static const char *option_of_file(const struct cli_syntax *syntax, const char *name)
{
    static const struct {
        const char *ending, *option;
    } known[] = {{".yaml", "--scanner"},   {".yml", "--scanner"}, {".geom", "--scanner"}, {".hscan", "--scanner"},
                 {".petsird", "--events"}, {".Cdh", "--events"},  {".l", "--events"},     {".safir", "--events"},
                 {".BLF", "--events"},     {".nii", "--image"},   {".nii.gz", "--image"}, {".h5", "--data"},
                 {".h5", "--histo"},       {".hs", "--data"}};
    const size_t length = strlen(name);
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
        const size_t tail = strlen(known[k].ending);
        if (length > tail && strcmp(name + length - tail, known[k].ending) == 0 &&
            find_option(syntax, known[k].option, strlen(known[k].option)) != NULL)
            return known[k].option;
    }
    return NULL;
}

static void complain_stray(struct cli_args *args, char *const *rest)
{
    const char *option = option_of_file(args->syntax, rest[0]);
    if (complain_blanks(args, rest)) return;
    if (option != NULL && !args_has(args, option))
        args_complain(args, "what is \"%s\" for? Did you mean %s %s?", rest[0], option, rest[0]);
    else
        args_complain(args, "what is \"%s\" for? See loraster %s --help", rest[0], args->syntax->verb);
}

static void take_positional(struct cli_args *args, char *const *rest)
{
    const int asked = args->syntax->most_positionals;
    const int most = asked > 0 && asked <= CLI_MAX_POSITIONAL ? asked : FEW_POSITIONALS;
    if (args->syntax->positionals == NULL || args->num_positional == most)
        complain_stray(args, rest);
    else
        args->positional[args->num_positional++] = rest[0];
}

static bool asks_for_help(const char *text)
{
    return strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0;
}

lr_status args_parse(struct cli_args *args, const struct cli_syntax *syntax, struct report *report, char *const *argv)
{
    *args = (struct cli_args){.syntax = syntax, .report = report};
    args->given = calloc(CLI_MAX_GIVEN, sizeof(*args->given));
    if (args->given == NULL) return args->status = report_error(report, LR_FAILED, "no memory for the command line");
    for (int k = 0; argv[k] != NULL; k++) args->help = args->help || asks_for_help(argv[k]);
    for (int k = 0; argv[k] != NULL && !args->help && args->status == LR_OK;)
        if (argv[k][0] == '-' && argv[k][1] != '\0' && !is_number(argv[k]))
            k += take_option(args, argv + k);
        else
            take_positional(args, argv + k++);
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
    for (const struct cli_group *group = syntax->groups; group != groups_end(syntax); group++) {
        printf("\n%s\n", group->title);
        for (const struct cli_option *option = group->options; option->name != NULL; option++) print_option(option);
    }
    printf("\nexample\n  %s\n", syntax->example);
}

/* --- reading values --- */

static const struct cli_given *find_given(const struct cli_args *args, const char *name, int k)
{
    for (int n = 0; n < args->num_given; n++)
        if (strcmp(args->given[n].option->name, name) == 0 && k-- == 0) return &args->given[n];
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
    while (find_given(args, name, count) != NULL) count++;
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
