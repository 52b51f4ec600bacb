/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The getters of args.h that turn an option's text into numbers. */
#include "args.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Whole numbers, also in the form 2e7. */
static bool read_int(const char *text, int64_t *value)
{
    char *end = NULL;
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (end == text || errno != 0 || isspace((unsigned char)text[0])) return false;
    if (*end == '\0') return true;
    const double number = strtod(text, &end);
    const bool plain = strspn(text, "+-.0123456789eE") == strlen(text);
    if (!plain || *end != '\0' || floor(number) != number || fabs(number) > 0x1p53) return false;
    *value = (int64_t)number;
    return true;
}

int64_t args_int(struct cli_args *args, const char *name, int64_t fallback, const int64_t range[2])
{
    const char *text = args_text(args, name);
    int64_t value = 0;
    if (text == NULL) return fallback;
    if (!read_int(text, &value)) {
        args_complain(args, "%s %s: a whole number is needed, such as %s 20%s", name, text, name,
                      range[1] > INT_MAX ? " or 2e6" : "");
        return fallback;
    }
    if (value < range[0] && range[1] >= INT_MAX) {
        args_complain(args, "%s %s: must be at least %lld", name, text, (long long)range[0]);
        return fallback;
    }
    if (value < range[0] || value > range[1]) {
        args_complain(args, "%s %s: must be at least %lld and at most %lld", name, text, (long long)range[0],
                      (long long)range[1]);
        return fallback;
    }
    return value;
}

double args_number(struct cli_args *args, const char *name, double fallback, bool positive)
{
    const char *text = args_text(args, name);
    char *end = NULL;
    if (text == NULL) return fallback;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value)) {
        args_complain(args, "%s %s: a number without a unit is needed", name, text);
        return fallback;
    }
    if (positive && !(value > 0)) {
        args_complain(args, "%s %s: it must be positive", name, text);
        return fallback;
    }
    return value;
}

/* Reads numbers separated by commas; returns how many, or -1. */
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

/* Writes "5,0,2" for "5 0 2", "5; 0; 2", "6x5x3" or "(5, 0, 2)": the numbers of a text that holds
 * nothing else that tells. Returns how many. */
static int repair_list(const char *text, char repaired[128])
{
    double values[3];
    int count = 0;
    size_t used = 0;
    repaired[0] = '\0';
    for (const char *at = text; *at != '\0' && used < 96;) {
        const size_t between = strspn(at, " \t,;xX*()[]");
        const size_t length = strspn(at + between, "+-.0123456789eE");
        if (between == 0 && length == 0) return 0;
        if (length > 0 && length < 30) {
            used += (size_t)snprintf(repaired + used, 128 - used, "%s%.*s", count > 0 ? "," : "", (int)length,
                                     at + between);
            count++;
        }
        at += between + length;
    }
    return read_list(repaired, values) == count ? count : 0;
}

/* Whether only the unit is too much: "3mm", "3,3,4mm". */
static bool ends_in_letters(const char *text)
{
    const size_t numbers = strspn(text, "+-.,0123456789");
    const size_t letters = strspn(text + numbers, "abcdefghijklmnopqrstuvwxyz");
    return numbers > 0 && letters > 0 && text[numbers + letters] == '\0';
}

static void complain_list(struct cli_args *args, const char *name, const char *text, const char *needed)
{
    char repaired[128];
    const int count = repair_list(text, repaired);
    if (count > 1 && count <= 3 && strcmp(repaired, text) != 0)
        args_complain(args, "%s %s: put commas between numbers, and no blanks: %s %s", name, text, name, repaired);
    else if (ends_in_letters(text))
        args_complain(args, "%s %s: leave out the unit, lengths are in mm: %s", name, text, needed);
    else
        args_complain(args, "%s %s: %s", name, text, needed);
}

bool args_triple_text(struct cli_args *args, const char *name, const char *text, double values[3])
{
    char needed[96];
    if (read_list(text, values) == 3) return true;
    snprintf(needed, sizeof(needed), "three numbers are needed, such as %s 1,2.5,-3", name);
    complain_list(args, name, text, needed);
    return false;
}

bool args_triple(struct cli_args *args, const char *name, bool spread, double values[3])
{
    const char *text = args_text(args, name);
    char needed[96];
    if (text == NULL) return false;
    const int count = read_list(text, values);
    if (spread && count == 1) values[1] = values[2] = values[0];
    if (count == 3 || (spread && count == 1)) return true;
    if (!spread) return args_triple_text(args, name, text, values);
    snprintf(needed, sizeof(needed), "three numbers are needed, or one for all, such as %s 2,2,2.5", name);
    complain_list(args, name, text, needed);
    return false;
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

/* The factor of a unit: "", K, M, G, T with an optional B or iB; 0 when it is none. */
static double unit_factor(const char *unit)
{
    static const char letters[] = "KMGT";
    if (*unit == '\0') return 1;
    const char *letter = strchr(letters, toupper((unsigned char)*unit));
    const char *rest = unit + 1;
    if (letter == NULL || (*rest != '\0' && strcmp(rest, "B") != 0 && strcmp(rest, "iB") != 0)) return 0;
    return ldexp(1, 10 * (int)(letter - letters + 1));
}

int64_t args_bytes(struct cli_args *args, const char *name, int64_t fallback)
{
    const char *text = args_text(args, name);
    if (text == NULL) return fallback;
    char *end = NULL;
    const double number = strtod(text, &end);
    const double bytes = end != text ? number * unit_factor(end) : 0;
    if (!(bytes >= 1 && bytes < 0x1p62)) {
        args_complain(args, "%s %s: an amount of memory is needed, such as 512M or 4G", name, text);
        return fallback;
    }
    if (bytes < 1024) {
        args_complain(args, "%s %s: that is %.0f bytes: give a unit, such as %sG", name, text, bytes, text);
        return fallback;
    }
    return (int64_t)bytes;
}

int args_word(struct cli_args *args, const char *name, const char *const *words, int fallback)
{
    const char *text = args_text(args, name);
    char list[256] = "";
    if (text == NULL) return fallback;
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
