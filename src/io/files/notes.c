/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/notes.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/files/c_locale.h"
#include "io/files/output.h"
#include "io/files/regular_file.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LINE_CHARS = LR_NOTE_CHARS + 64, MAX_LINES = 1000 };

static const char file_name[] = "speeds.txt";
static const char first_line[] =
    "# Microseconds that a sample point takes, forward and back; delete to measure again\n";

/* --- the place --- */

/* The folder, or false when nothing is to be kept. */
static bool find_folder(char folder[PATH_MAX])
{
    const char *own = getenv("LORASTER_CACHE");
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int length = 0;
    if (own != NULL && own[0] != '\0')
        length = strcmp(own, "off") == 0 ? PATH_MAX : snprintf(folder, PATH_MAX, "%s", own);
    else if (cache != NULL && cache[0] == '/')
        length = snprintf(folder, PATH_MAX, "%s/loraster", cache);
    else if (home != NULL && home[0] == '/')
        length = snprintf(folder, PATH_MAX, "%s/.cache/loraster", home);
    return length > 0 && length < PATH_MAX - (int)sizeof(file_name) - 1;
}

static void name_file(char folder[PATH_MAX])
{
    strcat(folder, "/");
    strcat(folder, file_name);
}

/* Makes a folder and those above it. What fails shows when the file is opened. */
static void make_folder(char folder[PATH_MAX])
{
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0777);
        *slash = '/';
    }
    mkdir(folder, 0777);
}

/* --- lines --- */

/* The key as it stands in a line. */
static void clean_key(const char *key, char clean[LR_NOTE_CHARS + 1])
{
    size_t length = 0;
    for (; key[length] != '\0' && length < LR_NOTE_CHARS; length++) {
        const unsigned char c = (unsigned char)key[length];
        clean[length] = c < ' ' || c == 127 ? ' ' : key[length];
    }
    clean[length] = '\0';
}

/* Parses "VALUE KEY\n". Any other line is skipped, so that a damaged file is as good as none. */
static bool parse_line(char *line, double *value, const char **key)
{
    char *end = strchr(line, '\n');
    if (end == NULL) return false;
    *end = '\0';
    char *after;
    *value = strtod(line, &after);
    *key = after + 1;
    return after != line && *after == ' ' && *value > 0.0 && *value < LR_NOTE_LARGEST;
}

static FILE *open_notes(const lr_log *log)
{
    char path[PATH_MAX];
    if (!find_folder(path)) return NULL;
    name_file(path);
    FILE *file = lr_file_open(path, "", NULL);
    if (file == NULL && errno != ENOENT) {
        char text[128];
        lr_debug(log, "%s is not read: %s", path, lr_error_text(errno, text));
    }
    return file;
}

void lr_notes_find(struct lr_note *notes, int count, const lr_log *log)
{
    char line[LINE_CHARS];
    FILE *file = open_notes(log);
    if (file == NULL) return;
    const struct lr_c_locale locale = lr_c_locale_enter();
    for (int read = 0; read < MAX_LINES && fgets(line, sizeof(line), file) != NULL; read++) {
        double value;
        const char *key;
        if (!parse_line(line, &value, &key)) continue;
        for (int k = 0; k < count; k++) {
            struct lr_note *note = &notes[k];
            char clean[LR_NOTE_CHARS + 1];
            clean_key(note->key, clean);
            if (clean[0] != '\0' && strcmp(clean, key) == 0) {
                note->value = value;
                note->is_known = true;
            }
        }
    }
    lr_c_locale_leave(locale);
    fclose(file);
}

/* --- writing --- */

static bool is_replaced(const struct lr_note *notes, int count, const char *key)
{
    char clean[LR_NOTE_CHARS + 1];
    for (int k = 0; k < count; k++) {
        clean_key(notes[k].key, clean);
        if (notes[k].is_known && strcmp(clean, key) == 0) return true;
    }
    return false;
}

static void write_note(struct lr_output *output, double value, const char *key)
{
    char line[LINE_CHARS];
    const int length = snprintf(line, sizeof(line), "%.6g %s\n", value, key);
    (void)lr_output_write(output, line, (size_t)length);
}

/* Writes errors as debugging: notes are no result. */
static void write_debug(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    (void)level;
    (void)status;
    lr_debug(user, "%s", sentence);
}

void lr_notes_keep(const struct lr_note *notes, int count, const lr_log *log)
{
    char path[PATH_MAX];
    struct lr_output output;
    const lr_log quiet = {write_debug, (void *)(uintptr_t)log};
    if (!find_folder(path)) return;
    make_folder(path);
    name_file(path);
    if (lr_output_open(&output, path, &quiet) != LR_OK) return;
    const struct lr_c_locale locale = lr_c_locale_enter();
    (void)lr_output_write(&output, first_line, strlen(first_line));
    for (int k = 0; k < count; k++) {
        char clean[LR_NOTE_CHARS + 1];
        clean_key(notes[k].key, clean);
        if (notes[k].is_known && clean[0] != '\0') write_note(&output, notes[k].value, clean);
    }
    /* Lines of the old file that stay. */
    char line[LINE_CHARS];
    FILE *file = open_notes(NULL);
    for (int read = 0; file != NULL && read < MAX_LINES - count && fgets(line, sizeof(line), file) != NULL; read++) {
        double value;
        const char *key;
        if (parse_line(line, &value, &key) && !is_replaced(notes, count, key)) write_note(&output, value, key);
    }
    if (file != NULL) fclose(file);

    lr_c_locale_leave(locale);

    (void)lr_output_finish(&output);
}

bool lr_notes_place(const char *name, char *path, size_t size)
{
    char folder[PATH_MAX];
    if (!find_folder(folder)) return false;
    make_folder(folder);
    const int length = snprintf(path, size, "%s/%s", folder, name);
    return length > 0 && (size_t)length < size;
}
