/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Opening of regular files, messages about files that cannot be opened, and suggestions of similar words. */
#define _XOPEN_SOURCE 700 /* realpath, strerror_r */
#include "io/files/regular_file.h"

#include "base/log.h"
#include "base/path.h"
#include "io/files/file_kind.h"
#include "io/files/output.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- words that are near --- */

enum { LONGEST = 63 };

/* Returns the length of a word without the unit at its end. The unit says little about the meaning. */
static size_t length_without_unit(const char *word)
{
    static const char *const units[] = {"_mm", "_deg", "_ps"};
    const size_t length = strnlen(word, LONGEST);
    for (size_t k = 0; k < sizeof(units) / sizeof(units[0]); k++) {
        const size_t unit = strlen(units[k]);
        if (length > unit && memcmp(word + length - unit, units[k], unit) == 0) return length - unit;
    }
    return length;
}

/* Returns the Levenshtein distance of two words, without regard to capitals. `row` is one row of the distance table. */
static size_t letters_to_change(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t row[LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++) row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const size_t replaced = diagonal + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
            diagonal = row[j];
            const size_t other = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            row[j] = replaced < other ? replaced : other;
        }
    }
    return row[b_length];
}

const char *lr_nearest_word(const char *word, const char *const *words, size_t num_words)
{
    const size_t length = length_without_unit(word);
    const char *best = NULL;
    double best_share = 0.5;
    for (size_t k = 0; k < num_words; k++) {
        for (const char *at = words[k]; length >= 3 && *at != '\0'; at++)
            if (strncasecmp(at, word, strlen(word)) == 0) return words[k];
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

/* MOST_NAMES: names of a folder that are compared. Further names are ignored. */
enum { MOST_NAMES = 20000, LONGEST_PATH = 300 };

/* A name is suggested if the fraction of letters to change, relative to the longer name, is less than this. */
static const double most_changed = 0.4;

const char *lr_open_failure(const char *path, int error, char text[LR_OPEN_FAILURE])
{
    char words[128], folder[LONGEST_PATH], nearest[LR_FILE_NAME] = "";
    struct stat facts;
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    snprintf(folder, sizeof(folder), "%.*s", slash == NULL || slash == path ? 1 : (int)(slash - path),
             slash == NULL ? "." : path);
    if (error == ENOENT && stat(folder, &facts) != 0) {
        snprintf(text, LR_OPEN_FAILURE, "No such file, for there is no folder %s", folder);
    } else if (error == ENOENT) {
        const bool is_here = strcmp(folder, ".") == 0, is_root = strcmp(folder, "/") == 0;
        /* The name in the folder that is most like `name`. */
        double least = most_changed;
        DIR *open = opendir(folder);
        const size_t length = strnlen(name, LONGEST), stem = strcspn(name, ".");
        int left = open != NULL && name[0] != '\0' ? MOST_NAMES : 0;
        for (const struct dirent *entry = NULL; left > 0; left--) {
            entry = readdir(open);
            if (entry == NULL) break;
            /* The number of letters to change, divided by the length of the longer name. A different ending counts
             * little. */
            const char *other = entry->d_name;
            const size_t others = strnlen(other, LONGEST), longer = length > others ? length : others;
            double share = longer > 0 ? (double)letters_to_change(name, length, other, others) / (double)longer : 1;
            if (stem >= 2 && strncmp(name, other, stem) == 0 && (other[stem] == '.' || other[stem] == '\0'))
                share = 0.5 * share * most_changed;
            if (other[0] == '.') share = 1;
            /* If names are equally near, the first in the alphabet is taken, since the order of a folder is
             * arbitrary. */
            if (share < least || (share == least && nearest[0] != '\0' && strcmp(other, nearest) < 0)) {
                least = share;
                snprintf(nearest, sizeof(nearest), "%s", other);
            }
        }
        if (open != NULL) closedir(open);
        if (nearest[0] == '\0') {
            snprintf(text, LR_OPEN_FAILURE, "No such file in %s, nor a name like it", is_here ? "this folder" : folder);
        } else {
            snprintf(text, LR_OPEN_FAILURE, "No such file in %s" LR_OPEN_HINT " %s%s%s?",
                     is_here ? "this folder" : folder, is_here ? "" : folder, is_here || is_root ? "" : "/", nearest);
        }
    } else if (error == ENOTDIR) {
        snprintf(text, LR_OPEN_FAILURE, "%s is a file and no folder", folder);
    } else if (error == EACCES) {
        snprintf(text, LR_OPEN_FAILURE, "the right to read it is missing: chmod, or a copy of your own, helps");
    } else {
        snprintf(text, LR_OPEN_FAILURE, "%s", lr_error_text(error, words));
    }
    return text;
}

/* --- opening --- */

const char *lr_error_text(int error, char text[128])
{
    if (strerror_r(error, text, 128) != 0) snprintf(text, 128, "system error %d", error);
    return text;
}

/* The kind of the file is checked before opening, since opening some devices has effects. The kind is checked again
 * afterwards, since another file may have got the name in between. */
FILE *lr_file_open(const char *path, const char *what, const lr_log *log)
{
    struct stat facts;
    const bool is_there = stat(path, &facts) == 0;
    bool is_regular = is_there && S_ISREG(facts.st_mode);
    const int number = is_regular ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    int error = errno;
    if (number >= 0) {
        is_regular = fstat(number, &facts) == 0 && S_ISREG(facts.st_mode);
        FILE *file = is_regular ? fdopen(number, "rb") : NULL;
        if (file != NULL) return file;
        error = errno;
        close(number);
    }
    if (is_there && !is_regular) {
        error = S_ISDIR(facts.st_mode) ? EISDIR : EINVAL;
        (void)lr_error(log, LR_BAD_INPUT, "%s: %sis %s: give a file", path, what,
                       S_ISDIR(facts.st_mode) ? "a folder" : "no regular file");
    } else {
        char text[LR_OPEN_FAILURE];
        (void)lr_error(log, error == ENOMEM ? LR_FAILED : LR_BAD_INPUT, "%s: %scannot be opened: %s", path, what,
                       lr_open_failure(path, error, text));
    }
    errno = error;
    return NULL;
}

lr_status lr_file_check_read(FILE *file, const char *path, const lr_log *log)
{
    return ferror(file) ? lr_error(log, LR_BAD_INPUT, "%s: cannot be read: %s", path, strerror(errno)) : LR_OK;
}

lr_status lr_file_truncated(FILE *file, const char *path, const lr_log *log)
{
    LR_TRY(lr_file_check_read(file, path, log));
    return lr_error(log, LR_BAD_INPUT, "%s: is truncated: copy it again", path);
}

FILE *lr_file_open_text(const char *path, const char *what, int64_t most, const lr_log *log)
{
    struct stat facts;
    FILE *file = lr_file_open(path, what, log);
    if (file != NULL && (fstat(fileno(file), &facts) != 0 || facts.st_size > most)) {
        (void)lr_error(log, LR_BAD_INPUT, "%s: %sis larger than the %lld bytes that it can need", path, what,
                       (long long)most);
        fclose(file);
        return NULL;
    }
    return file;
}

/* --- logs for files that a header names --- */

static void write_discreetly(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const struct lr_discreet_log *discreet = user;
    (void)sentence;
    if (status == LR_FAILED || level < LR_LOG_WARNING) {
        lr_log_write(discreet->to, level, status, "%s", sentence);
    } else if (level == LR_LOG_ERROR) {
        lr_log_write(discreet->to, level, status,
                     "%s, which %s names, is not what it must be; it lies outside of that file's "
                     "folder, and nothing it holds is shown: copy it there to see more",
                     discreet->path, discreet->header);
    }
}

/* Leaves out the hint. The author of a header could otherwise learn the names of other files in the missing file's
 * folder. */
static void write_without_hint(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const struct lr_discreet_log *discreet = user;
    const char *hint = strstr(sentence, LR_OPEN_HINT);
    const int length = hint != NULL ? (int)(hint - sentence) : (int)strlen(sentence);
    lr_log_write(discreet->to, level, status, "%.*s", length, sentence);
}

void lr_log_discreet(struct lr_discreet_log *discreet, const char *path, const char *header, const lr_log *to)
{
    *discreet = (struct lr_discreet_log){{NULL, discreet}, to, path, header};
    FILE *file = lr_file_open(path, "", NULL);
    const bool is_missing = file == NULL;
    if (!is_missing) fclose(file);

    /* Errors may describe a file that is in the header's folder or below it. */
    char here[PATH_MAX], there[PATH_MAX];
    bool may_tell = !is_missing && realpath(header, here) != NULL && realpath(path, there) != NULL;
    if (may_tell) {
        const size_t length = (size_t)(strrchr(here, '/') - here);
        may_tell = strncmp(here, there, length) == 0 && there[length] == '/';
    }
    discreet->log =
        may_tell && to != NULL ? *to : (lr_log){is_missing ? write_without_hint : write_discreetly, discreet};
}

void lr_file_head_read(const char *path, struct lr_file_head *head)
{
    struct stat facts;
    head->path = path;
    head->count = 0;
    const bool regular = stat(path, &facts) == 0 && S_ISREG(facts.st_mode); /* a pipe would block */
    FILE *file = regular ? fopen(path, "rb") : NULL;
    if (file != NULL) {
        head->count = fread(head->bytes, 1, LR_FILE_HEAD_BYTES, file);
        if (head->count >= 3 && memcmp(head->bytes, "\xef\xbb\xbf", 3) == 0) {
            head->count -= 3;
            memmove(head->bytes, head->bytes + 3, head->count);
        }
        fclose(file);
    }
    head->bytes[head->count] = '\0';
}

bool lr_head_begins(const struct lr_file_head *head, const char *start, size_t count)
{
    return head->count >= count && memcmp(head->bytes, start, count) == 0;
}

bool lr_head_is_hdf5(const struct lr_file_head *head)
{
    return lr_head_begins(head, "\x89HDF\r\n\x1a\n", 8);
}

bool lr_head_holds(const struct lr_file_head *head, const char *part, size_t count)
{
    for (size_t at = 0; at + count <= head->count; at++)
        if (memcmp(head->bytes + at, part, count) == 0) return true;
    return false;
}
