/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/scanners/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { LONGEST = 63 };

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool ends_with(const char *word, size_t length, const char *end)
{
    const size_t end_length = strlen(end);
    return length > end_length && memcmp(word + length - end_length, end, end_length) == 0;
}

/* Units tell little about what was meant. */
static size_t length_without_unit(const char *word)
{
    static const char *const units[] = {"_mm", "_deg", "_ps"};
    const size_t length = min_size(strlen(word), LONGEST);
    for (size_t k = 0; k < sizeof(units) / sizeof(units[0]); k++)
        if (ends_with(word, length, units[k])) return length - strlen(units[k]);
    return length;
}

static int lower(char letter)
{
    return tolower((unsigned char)letter);
}

static bool holds(const char *whole, const char *part)
{
    const size_t length = strlen(part);
    for (const char *at = whole; *at != '\0'; at++) {
        size_t same = 0;
        while (same < length && at[same] != '\0' && lower(at[same]) == lower(part[same])) same++;
        if (same == length) return true;
    }
    return false;
}

/* Levenshtein distance, one row of the table at a time; capitals or not. */
static size_t letters_to_change(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t row[LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++) row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const size_t replaced = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
            diagonal = row[j];
            row[j] = min_size(replaced, min_size(row[j], row[j - 1]) + 1);
        }
    }
    return row[b_length];
}

double lr_share_to_change(const char *word, const char *other)
{
    const size_t length = min_size(strlen(word), LONGEST), others = min_size(strlen(other), LONGEST);
    const size_t longer = length > others ? length : others;
    return longer > 0 ? (double)letters_to_change(word, length, other, others) / (double)longer : 1;
}

const char *lr_nearest_word(const char *word, const char *const *words, size_t num_words)
{
    const size_t length = length_without_unit(word);
    const char *best = NULL;
    double best_share = 0.5;
    for (size_t k = 0; k < num_words; k++) {
        if (length >= 3 && holds(words[k], word)) return words[k];
        const size_t other = length_without_unit(words[k]);
        const size_t longer = length > other ? length : other;
        const size_t changes = letters_to_change(word, length, words[k], other);
        const double share = longer > 0 ? (double)changes / (double)longer : 1;
        if (share < best_share || (share == best_share && best == NULL)) {
            best = words[k];
            best_share = share;
        }
    }
    return best;
}
