/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "args.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <lr/lr.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

static int lower(char letter)
{
    return tolower((unsigned char)letter);
}

/* Returns the Levenshtein distance of two words, ignoring case. Only one row of the algorithm's table is in memory. */
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
            const int changed = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = replaced < changed ? replaced : changed;
        }
    }
    return row[columns];
}

const char *args_nearest(const char *text, const char *const *words)
{
    const char *letters = text + strspn(text, "-");
    const char *nearest = NULL, *begun = NULL;
    int least = (2 + (int)strlen(letters)) / 3; /* a third of the letters may be wrong */
    for (int k = 0; words[k] != NULL; k++) {
        const char *word = words[k] + strspn(words[k], "-");
        const int distance = edit_distance(letters, word);
        const bool is_letter = strlen(word) == 1 && strlen(letters) == 1;
        if (distance <= least && !is_letter && (nearest == NULL || distance < least)) {
            nearest = words[k];
            least = distance;
        }
        /* A word is also near if it begins with the text, or the text with the word. The shorter of the two must have
           at least three letters. */
        int same = 0;
        while (letters[same] != '\0' && lower(letters[same]) == lower(word[same])) same++;
        if (begun == NULL && same >= 3 && (letters[same] == '\0' || word[same] == '\0')) begun = words[k];
    }
    return nearest != NULL && (least <= 1 || begun == NULL) ? nearest : begun;
}

/* --- parsing --- */

static const struct cli_option general_options[] = {
    {"--json", NULL, "one JSON object on standard output", NULL},
    {"--quiet", NULL, "only warnings and errors", NULL},
    {"--verbose", NULL, "also what the drivers and shaders say, with the seconds", NULL},
    {"--help", NULL, "this page", NULL},
    {0},
};

/* Returns group number k of a verb; NULL = there is none. The group of general options follows the verb's own groups.
 */
static const struct cli_group *find_group(const struct cli_verb *verb, int k)
{
    static const struct cli_group general = {"general", general_options};
    int own = 0;
    while (own < CLI_MAX_GROUPS && verb->groups[own].title != NULL) own++;
    return k < own ? &verb->groups[k] : k == own ? &general : NULL;
}

const struct cli_option *args_option(const struct cli_verb *verb, int n)
{
    const struct cli_group *group;
    for (int k = 0; (group = find_group(verb, k)) != NULL; k++)
        for (const struct cli_option *option = group->options; option->name != NULL; option++)
            if (n-- == 0) return option;
    return NULL;
}

static const struct cli_option *find_option(const struct cli_verb *verb, const char *name, size_t length)
{
    const struct cli_option *option;
    for (int n = 0; (option = args_option(verb, n)) != NULL; n++)
        if (strlen(option->name) == length && strncmp(option->name, name, length) == 0) break;
    return option;
}

/* Options of other programs, and this program's names for them. The first name that the verb has is suggested. */
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
    {"seed", "--bootstrap SEED"},
    {"position", "--at"},
    {"point", "--at"},
    {"verbosity", "--verbose"},
};

/* Options that a verb lacks although users expect them, and what to do instead. */
#define PHANTOM_FIRST(words)                                                                                           \
    "make the phantom first (loraster phantom " words " --grid ... -o p.nii), and give it as --image p.nii"
static const struct {
    const char *verb, *option, *words;
} elsewhere[] = {
    {"simulate", "--scatter",
     "scatter is not simulated: GATE's list mode has it (docs/guide/gate.md), and recon --additive takes its estimate"},
    {"simulate", "--radius-mm", PHANTOM_FIRST("cylinder --radius-mm 20")},
    {"simulate", "--contrast", PHANTOM_FIRST("spheres --contrast 4")},
    {"simulate", "--at", PHANTOM_FIRST("point --at 10,0,0")},
    {"simulate", "--value", PHANTOM_FIRST("cylinder --value 2")},
    {"phantom", "--name", "its name stands alone (loraster phantom derenzo)"},
    {"phantom", "--phantom", "its name stands alone (loraster phantom derenzo)"},
};

/* Reads one option and its value from argv, and returns the number of words that were read. The error about an unknown
 * option suggests the option that was probably meant. */
static int take_option(struct cli_args *args, char *const *argv)
{
    const char *text = argv[0];
    const char *equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
    const size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const struct cli_option *option = find_option(args->verb, text, length);
    if (option == NULL) {
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)length, text);
        const char *verb = args->verb->name, *meant = NULL;
        for (size_t k = 0; k < sizeof(elsewhere) / sizeof(elsewhere[0]); k++) {
            if (strcmp(verb, elsewhere[k].verb) == 0 && edit_distance(name, elsewhere[k].option) == 0) {
                args_complain(args, "%s has no option %s: %s", verb, name, elsewhere[k].words);
                return 1;
            }
        }
        for (size_t k = 0; meant == NULL && k < sizeof(synonyms) / sizeof(synonyms[0]); k++) {
            const char *ours = synonyms[k].ours;
            if (edit_distance(name + strspn(name, "-"), synonyms[k].other) == 0 &&
                find_option(args->verb, ours, strcspn(ours, " ")) != NULL)
                meant = ours;
        }
        if (name[0] == '-' && isalpha((unsigned char)name[1]) && name[2] == '\0') {
            /* Suggests the first two long options that begin with the letter. */
            char list[96] = "";
            int found = 0;
            for (int n = 0; found < 2 && (option = args_option(args->verb, n)) != NULL; n++) {
                if (strncmp(option->name, "--", 2) != 0 || lower(option->name[2]) != lower(name[1])) continue;
                const size_t used = strlen(list);
                snprintf(list + used, sizeof(list) - used, "%s%s", found++ > 0 ? " or " : "", option->name);
            }
            if (found == 0) snprintf(list, sizeof(list), "%s", meant != NULL ? meant : "--help");
            args_complain(args, "%s has no option %s: there are no short options but -o: did you mean %s?", verb, name,
                          list);
            return 1;
        }
        if (meant == NULL) {
            const char *names[MAX_NAMES] = {0};
            for (int n = 0; n < MAX_NAMES - 1 && (option = args_option(args->verb, n)) != NULL; n++)
                names[n] = option->name;
            meant = args_nearest(name, names);
        }
        if (meant != NULL)
            args_complain(args, "%s has no option %s: did you mean %s?", verb, name, meant);
        else
            args_complain(args, "%s has no option %s: see loraster %s --help", verb, name, verb);
        return 1;
    }
    const bool has_value = option->metavar != NULL, may_lack = has_value && option->metavar[0] == '[';
    const bool is_option =
        argv[1] != NULL && (strncmp(argv[1], "--", may_lack ? 1 : 2) == 0 ||
                            (argv[1][0] == '-' && find_option(args->verb, argv[1], strlen(argv[1])) != NULL));
    const bool is_next = has_value && equals == NULL && argv[1] != NULL && !is_option;
    const char *value = is_next ? argv[1] : has_value && equals != NULL ? equals + 1 : NULL;
    const char *repeated = args->verb->repeated;
    if (!has_value && equals != NULL) {
        args_complain(args, "%s takes no value", option->name);
    } else if (has_value && !may_lack && value == NULL) {
        args_complain(args, "%s needs a value: %s %s", option->name, option->name, option->metavar);
    } else if (args_has(args, option->name) && (repeated == NULL || strcmp(repeated, option->name) != 0)) {
        args_complain(args, "%s is given twice", option->name);
    } else if (args->num_given == CLI_MAX_GIVEN) {
        args_complain(args, "more than %d options", CLI_MAX_GIVEN);
    } else if (value != NULL && value[0] == '\0') {
        args_complain(args, "%s is followed by nothing: give %s %s (is a variable of the shell empty?)", option->name,
                      option->name, option->metavar);
    } else {
        args->given[args->num_given++] = (struct cli_given){option, value};
    }
    return is_next ? 2 : 1;
}

static bool is_number(const char *text)
{
    char *end = NULL;
    (void)strtod(text, &end);
    return end != text && (*end == '\0' || (*end == ',' && end[1] == '\0'));
}

lr_status args_parse(struct cli_args *args, const struct cli_verb *verb, struct report *report, char *const *argv)
{
    *args = (struct cli_args){.verb = verb, .report = report};
    args->given = calloc(CLI_MAX_GIVEN, sizeof(*args->given));
    if (args->given == NULL) return args->status = report_error(report, LR_FAILED, "no memory for the command line");
    for (int k = 0; argv[k] != NULL; k++)
        args->help = args->help || (strcmp(argv[k], "--help") == 0 || strcmp(argv[k], "-h") == 0);
    /* Word processors replace two hyphens by a dash, and a hyphen before a number by a minus sign. */
    for (int k = 0; argv[k] != NULL && !args->help && args->status == LR_OK; k++) {
        const char *minus = strstr(argv[k], "\xe2\x88\x92");
        if (strncmp(argv[k], "\xe2\x80\x93", 3) == 0 || strncmp(argv[k], "\xe2\x80\x94", 3) == 0)
            args_complain(args, "%s begins with a dash: type two hyphens: --%s", argv[k],
                          argv[k] + 3 + strspn(argv[k] + 3, "-"));
        else if (minus != NULL && isdigit((unsigned char)minus[3]) && (minus == argv[k] || minus[-1] == ','))
            args_complain(args, "%s has the sign \xe2\x88\x92: type a hyphen before a negative number: -%.8s", argv[k],
                          minus + 3);
    }
    char *const *stray = NULL; /* the first word that fits neither an option nor the positionals */
    const int most = verb->most_positionals > 0 ? verb->most_positionals : FEW_POSITIONALS;
    for (int k = 0; argv[k] != NULL && !args->help && args->status == LR_OK && stray == NULL;)
        if (argv[k][0] == '-' && argv[k][1] != '\0' && !is_number(argv[k]))
            k += take_option(args, argv + k);
        else if (verb->positionals == NULL || args->num_positional == most)
            stray = argv + k;
        else
            args->positional[args->num_positional++] = argv[k++];
    if (stray == NULL) return args->status;

    /* A stray word is often part of a list written with blanks ("--at 5 0 2"), or the name of a file without its
       option. known: options for each lr_file_kind. */
    static const char *const known[LR_FILE_SESSION + 1][2] = {[LR_FILE_SCANNER] = {"--scanner"},
                                                              [LR_FILE_IMAGE] = {"--image"},
                                                              [LR_FILE_DATA] = {"--data", "--histo"},
                                                              [LR_FILE_EVENTS] = {"--events"},
                                                              [LR_FILE_PETSIRD] = {"--events", "--scanner"},
                                                              [LR_FILE_HISTO] = {"--histo"}};
    const struct cli_given *last = args->num_given > 0 ? &args->given[args->num_given - 1] : NULL;
    if (last != NULL && last->value != NULL && is_number(stray[0]) && is_number(last->value) &&
        strchr(last->option->metavar, ',') != NULL) {
        char list[160];
        size_t used = (size_t)snprintf(list, sizeof(list), "%.30s", last->value);
        for (int k = 0; k < 3 && stray[k] != NULL && is_number(stray[k]); k++) {
            const bool has_comma = list[used - 1] == ',';
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%.30s", has_comma ? "" : ",", stray[k]);
        }
        args_complain(args, "%s %s is followed by \"%s\": put commas between numbers, and no blanks: %s %s",
                      last->option->name, last->value, stray[0], last->option->name, list);
        return args->status;
    }
    const char *option = NULL, *const *likely = known[lr_file_kind_of(stray[0])];
    for (int k = 0; k < 2 && likely[k] != NULL && option == NULL; k++)
        if (find_option(verb, likely[k], strlen(likely[k])) != NULL) option = likely[k];
    if (option != NULL && !args_has(args, option))
        args_complain(args, "what is \"%s\" for? Did you mean %s %s?", stray[0], option, stray[0]);
    else
        args_complain(args, "what is \"%s\" for? See loraster %s --help", stray[0], verb->name);
    return args->status;
}

/* --- help, manual pages and completion --- */

/* Writes an option with the name of its value, such as "--rays R". Returns words to append to the option's help. */
static const char *write_option(char text[64], const struct cli_verb *verb, const struct cli_option *option)
{
    snprintf(text, 64, "%s%s%s", option->name, option->metavar ? " " : "", option->metavar ? option->metavar : "");
    return verb->repeated != NULL && strcmp(verb->repeated, option->name) == 0 ? " (may be repeated)" : "";
}

void args_print_help(const struct cli_verb *verb)
{
    char left[64];
    printf("usage: loraster %s%s%s [options]\n\n%s\n", verb->name, verb->positionals ? " " : "",
           verb->positionals ? verb->positionals : "", verb->summary);
    const struct cli_group *group;
    for (int k = 0; (group = find_group(verb, k)) != NULL; k++) {
        printf("\n%s\n", group->title);
        for (const struct cli_option *option = group->options; option->name != NULL; option++) {
            const char *after = write_option(left, verb, option);
            printf("  %-26s %s%s\n", left, option->help, after);
        }
    }
    printf("\nexample\n  %s\n", verb->example);
}

/* Writes a line of troff. troff would interpret backslashes, hyphens, and a dot at the beginning of the line, so they
 * are escaped. */
static void put_troff(FILE *stream, const char *text, const char *more)
{
    fputs(text[0] == '.' || text[0] == '\'' ? "\\&" : "", stream);
    for (; *text != '\0'; text++)
        *text == '\\' ? fputs("\\e", stream) : *text == '-' ? fputs("\\-", stream) : fputc(*text, stream);
    fprintf(stream, "%s\n", more);
}

void args_print_title(FILE *stream, const char *name, const char *summary)
{
    char page[64];
    snprintf(page, sizeof(page), "%s", name);
    for (char *space = strchr(page, ' '); space != NULL; space = strchr(space, ' ')) *space = '-';
    fprintf(stream, ".TH %s 1 \"\" \"LORaster %s\" \"LORaster\"\n.SH NAME\n%s \\- ", page, lr_version(), page);
    put_troff(stream, summary, "");
    fprintf(stream, ".SH SYNOPSIS\n.B %s\n", name);
}

void args_print_manual(FILE *stream, const struct cli_verb *verb)
{
    char text[64];
    snprintf(text, sizeof(text), "loraster %s", verb->name);
    args_print_title(stream, text, verb->summary);
    if (verb->positionals != NULL) put_troff(stream, verb->positionals, "");
    fputs("[options]\n.SH OPTIONS\n", stream);
    const struct cli_group *group;
    for (int k = 0; (group = find_group(verb, k)) != NULL; k++) {
        fputs(".SS ", stream);
        put_troff(stream, group->title, "");
        for (const struct cli_option *option = group->options; option->name != NULL; option++) {
            const char *after = write_option(text, verb, option);
            fputs(".TP\n.B ", stream);
            put_troff(stream, text, "");
            put_troff(stream, option->help, after);
        }
    }
    fputs(".SH EXAMPLE\n", stream);
    put_troff(stream, verb->example, "\n.SH SEE ALSO\n.BR loraster (1)");
}

void args_offer(const char *word, const char *typed, const char *sentence)
{
    if (strncmp(word, typed, strlen(typed)) == 0) printf("%s\t%s\n", word, sentence);
}

void args_complete(const struct cli_verb *verb, char *const *words)
{
    static const char scanner[] = "NAME|FILE"; /* a verb with this positional argument accepts a preset */
    const struct cli_option *open = NULL;      /* the option whose value is typed next */
    for (; words[1] != NULL; words++) {
        if (strcmp(words[0], "=") == 0) continue; /* bash splits --mode=exact into three words */
        const struct cli_option *option = open == NULL ? find_option(verb, words[0], strlen(words[0])) : NULL;
        open = option != NULL && option->metavar != NULL ? option : NULL;
    }
    const char *typed = strcmp(words[0], "=") == 0 ? "" : words[0];
    const char *metavar = open != NULL ? open->metavar : typed[0] != '-' ? verb->positionals : NULL;
    const char *const *values = metavar != NULL && strcmp(metavar, scanner) == 0 ? lr_scanner_presets()
                                : open != NULL && open->values != NULL           ? open->values->words
                                                                                 : NULL;
    for (int k = 0; values != NULL && values[k] != NULL; k++) args_offer(values[k], typed, "");
    const struct cli_option *option;
    for (int n = 0; metavar == NULL && (option = args_option(verb, n)) != NULL; n++)
        args_offer(option->name, typed, option->help);
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
    if (text != NULL) return text;
    const bool is_bare = args->num_given == 0 && args->num_positional == 0; /* if nothing was given, the error also
                                                                               shows an example */
    const bool is_forecast = strcmp(name, "-o") == 0 && args_has(args, "--dry-run");
    args_complain(
        args, "%s needs %s %s%s%s%s", args->verb->name, name, find_option(args->verb, name, strlen(name))->metavar,
        is_bare ? " and more: " : "", is_bare ? args->verb->example : "",
        is_forecast ? ", which --dry-run does not write: the forecast depends on its format and its disk" : "");
    return "";
}

/* --- numbers and words --- */

const int64_t args_from_0[2] = {0, INT_MAX}, args_from_1[2] = {1, INT_MAX}, args_seeds[2] = {0, INT64_MAX};

/* Returns the number that messages about an option suggest. */
static const char *such_as(const struct cli_args *args, const char *name, const char *usual)
{
    const struct cli_values *values = find_option(args->verb, name, strlen(name))->values;
    return values != NULL && values->such_as != NULL ? values->such_as : usual;
}

int64_t args_int(struct cli_args *args, const char *name, int64_t fallback, const int64_t range[2])
{
    const char *text = args_text(args, name);
    char *end = NULL;
    if (text == NULL) return fallback;
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    bool is_good = end != text && errno == 0 && !isspace((unsigned char)text[0]);
    if (is_good && *end != '\0') { /* 2e7 is a whole number, too */
        const double number = strtod(text, &end);
        is_good = strspn(text, "+-.0123456789eE") == strlen(text) && *end == '\0' && floor(number) == number &&
                  fabs(number) <= 0x1p53;
        if (is_good) value = (int64_t)number;
    }
    if (!is_good) {
        args_complain(args, "%s %s: a whole number is needed, such as %s %s", name, text, name,
                      such_as(args, name, range[1] > INT_MAX ? "20 or 2e6" : "20"));
        return fallback;
    }
    if (value >= range[0] && value <= range[1]) return value;
    if (value < range[0] && range[1] >= INT_MAX) {
        args_complain(args, "%s %s: must be at least %lld", name, text, (long long)range[0]);
    } else {
        args_complain(args, "%s %s: must be at least %lld and at most %lld", name, text, (long long)range[0],
                      (long long)range[1]);
    }
    return fallback;
}

double args_number(struct cli_args *args, const char *name, double fallback, bool positive)
{
    const char *text = args_text(args, name);
    char *end = NULL;
    if (text == NULL) return fallback;
    const double value = strtod(text, &end);
    const bool is_decimal = end != text && *end == ',' && isdigit((unsigned char)end[1]);
    if (end != text && strcmp(end + strspn(end, " "), "%") == 0)
        args_complain(args, "%s %s: a number without a unit is needed: %g %% is %g", name, text, value, value / 100);
    else if (is_decimal && strspn(end + 1, "0123456789") == strlen(end + 1))
        args_complain(args, "%s %s: decimals have a point: %.*s.%s", name, text, (int)(end - text), text, end + 1);
    else if (end == text || *end != '\0' || !isfinite(value))
        args_complain(args, "%s %s: a number without a unit is needed", name, text);
    else if (positive && !(value > 0))
        args_complain(args, "%s %s: it must be positive", name, text);
    else
        return value;
    return fallback;
}

/* Reads one to three numbers with commas between them, and returns their count; -1 if the text has any other form. */
static int read_list(const char *text, double values[3])
{
    int count = 0;
    for (const char *at = text; count < 3; at++) {
        char *end = NULL;
        values[count] = strtod(at, &end);
        if (end == at || isspace((unsigned char)*at) || !isfinite(values[count])) return -1;
        count++;
        at = end;
        if (*at == '\0') return count;
        if (*at != ',') return -1;
    }
    return -1;
}

static void complain_list(struct cli_args *args, const char *name, const char *text, const char *needed)
{
    /* If the text has nothing but numbers in a wrong form ("5 0 2", "5; 0; 2", "6x5x3" or "(5, 0, 2)"), the error
     * suggests "5,0,2". */
    char repaired[128] = "";
    double values[3];
    int count = 0;
    size_t used = 0;
    bool is_list = true;
    for (const char *at = text; is_list && *at != '\0' && used < 96;) {
        const size_t between = strspn(at, " \t,;xX*()[]");
        const size_t length = strspn(at + between, "+-.0123456789eE");
        is_list = between > 0 || length > 0;
        if (length > 0 && length < 30) {
            used += (size_t)snprintf(repaired + used, 128 - used, "%s%.*s", count > 0 ? "," : "", (int)length,
                                     at + between);
            count++;
        }
        at += between + length;
    }
    is_list = is_list && count > 1 && read_list(repaired, values) == count && strcmp(repaired, text) != 0;

    /* In a text such as "3mm" or "3,3,4mm", only the unit is wrong. */
    const size_t numbers = strspn(text, "+-.,0123456789");
    const size_t letters = strspn(text + numbers, "abcdefghijklmnopqrstuvwxyz");
    if (is_list)
        args_complain(args, "%s %s: put commas between numbers, and no blanks: %s %s", name, text, name, repaired);
    else if (numbers > 0 && letters > 0 && text[numbers + letters] == '\0')
        args_complain(args, "%s %s: leave out the unit, lengths are in mm: %s", name, text, needed);
    else
        args_complain(args, "%s %s: %s", name, text, needed);
}

double args_tof_ps(struct cli_args *args)
{
    static const double least_ps = 5;
    const double tof_ps = args_number(args, "--tof-ps", 0, true);
    if (tof_ps > 0 && tof_ps < least_ps) {
        args_complain(args, "--tof-ps %s: beyond any scanner: it looks like ns: give %g (ps, FWHM)",
                      args_text(args, "--tof-ps"), 1000 * tof_ps);
    }
    return tof_ps;
}

bool args_triple_text(struct cli_args *args, const char *name, const char *text, bool spread, double values[3])
{
    char needed[160];
    const int count = read_list(text, values);
    if (spread && count == 1) values[1] = values[2] = values[0];
    if (count == 3 || (spread && count == 1)) return true;
    int used = snprintf(needed, sizeof(needed), "three numbers are needed, %ssuch as %s %s",
                        spread ? "or one for all, " : "", name, spread ? "2,2,2.5" : "1,2.5,-3");
    const size_t whole = strspn(text, "0123456789");
    if (spread && count == 2 && whole > 0 && text[whole] == ',' && strchr(text, '.') == NULL && used < 80) {
        snprintf(needed + used, sizeof(needed) - (size_t)used, "; decimals have a point: %.*s.%.8s", (int)whole, text,
                 text + whole + 1);
    }
    complain_list(args, name, text, needed);
    return false;
}

bool args_triple(struct cli_args *args, const char *name, bool spread, double values[3])
{
    const char *text = args_text(args, name);
    return text != NULL && args_triple_text(args, name, text, spread, values);
}

int args_sizes(struct cli_args *args, const char *name, int values[3])
{
    const char *text = args_text(args, name);
    double numbers[3];
    char needed[96];
    if (text == NULL) return 0;
    const int count = read_list(text, numbers);
    bool whole = count == 1 || count == 3;
    for (int k = 0; whole && k < count; k++) {
        whole = numbers[k] >= 1 && numbers[k] <= INT_MAX && floor(numbers[k]) == numbers[k];
        values[k] = whole ? (int)numbers[k] : 0;
    }
    if (!whole) {
        if (count == 2)
            snprintf(needed, sizeof(needed), "three numbers are needed, such as %s %.40s,%s", name, text,
                     such_as(args, name, "1"));
        else
            snprintf(needed, sizeof(needed), "whole numbers of at least 1 are needed, such as %s 2,2,1", name);
        complain_list(args, name, text, needed);
        return 0;
    }
    return count;
}

int args_ints(struct cli_args *args, const char *name, int *values, int most)
{
    const char *text = args_text(args, name);
    int count = 0;
    for (const char *at = text; at != NULL; at++) {
        char *end = NULL;
        errno = 0;
        const long long value = strtoll(at, &end, 10);
        const bool whole = isdigit((unsigned char)*at) && errno == 0 && value >= 1 && value <= INT_MAX &&
                           (*end == ',' || *end == '\0');
        if (!whole || count == most) {
            args_complain(args, "%s %s: %s", name, text,
                          whole ? "too many numbers" : "whole numbers of at least 1 are needed, such as 1,2,4");
            return 0;
        }
        values[count++] = (int)value;
        if (*end == '\0') break;
        at = end;
    }
    return count;
}

bool args_share(struct cli_args *args, const char *name, int64_t *number, int64_t *parts)
{
    const char *text = args_text(args, name);
    char *slash = NULL, *end = NULL;
    if (text == NULL) return false;
    errno = 0;
    const long long k = strtoll(text, &slash, 10);
    const long long num = slash != text && *slash == '/' ? strtoll(slash + 1, &end, 10) : 0;
    if (end == NULL || end == slash + 1 || *end != '\0' || errno != 0 || k < 1 || num < k) {
        args_complain(args, "%s %s: k/N is needed, the k-th of N parts, such as 1/4 to 4/4", name, text);
        return false;
    }
    *number = k;
    *parts = num;
    return true;
}

int64_t args_bytes(struct cli_args *args, const char *name, int64_t fallback)
{
    static const char units[] = "KMGT"; /* B or iB may follow */
    const char *text = args_text(args, name);
    if (text == NULL) return fallback;
    char *end = NULL;
    const double number = strtod(text, &end);
    double bytes = end != text ? number : 0;
    if (*end != '\0') {
        const char *letter = strchr(units, toupper((unsigned char)*end)), *rest = end + 1;
        const bool is_unit = letter != NULL && (*rest == '\0' || strcmp(rest, "B") == 0 || strcmp(rest, "iB") == 0);
        bytes = is_unit ? ldexp(bytes, 10 * (int)(letter - units + 1)) : 0;
    }
    if (!(bytes >= 1 && bytes < 0x1p62))
        args_complain(args, "%s %s: an amount of memory is needed, such as 512M or 4G", name, text);
    else if (bytes < 1024)
        args_complain(args, "%s %s: that is %.0f bytes: give a unit, such as %sG", name, text, bytes, text);
    else
        return (int64_t)bytes;
    return fallback;
}

int args_word(struct cli_args *args, const char *name, const char *const *words, int fallback)
{
    const char *text = args_text(args, name);
    char list[256] = "";
    if (text == NULL) return fallback;
    if (words == NULL) words = find_option(args->verb, name, strlen(name))->values->words;
    for (int k = 0; words[k] != NULL; k++) {
        if (strcasecmp(words[k], text) == 0) return k;
        const size_t used = strlen(list);
        if (used + strlen(words[k]) + 3 < sizeof(list)) {
            strcpy(list + used, used > 0 ? ", " : "");
            strcat(list, words[k]);
        }
    }
    const char *nearest = args_nearest(text, words);
    args_complain(args, "%s %s: must be one of %s%s%s", name, text, list, nearest != NULL ? ": did you mean " : "",
                  nearest != NULL ? nearest : "");
    return fallback;
}

const char *args_chosen(struct cli_args *args, const char *name)
{
    const struct cli_option *option = find_option(args->verb, name, strlen(name));
    return option != NULL ? option->values->words[args_word(args, name, NULL, 0)] : NULL;
}
