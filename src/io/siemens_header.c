/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/siemens_header.h"

#include "base/log.h"
#include "base/mem.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 4096, MAX_LINES = 10000 };

/* A header being read. */
struct draft {
    const char *path;
    const lr_log *log;
    struct lr_siemens_header *header;
    char data_file[MAX_LINE]; /* "" = not named */
    int line;
};

/* --- keys --- */

/* Keys are compared without case, and runs of blanks, '_', '!' and '%' count as one blank. */
static void normalise(const char *text, const char *end, char out[MAX_LINE])
{
    size_t used = 0;
    for (; text < end && used + 1 < MAX_LINE; text++) {
        const bool blank = isspace((unsigned char)*text) || strchr("_!%", *text) != NULL;
        if (!blank) {
            out[used++] = (char)tolower((unsigned char)*text);
        } else if (used > 0 && out[used - 1] != ' ') {
            out[used++] = ' ';
        }
    }
    used -= used > 0 && out[used - 1] == ' ';
    out[used] = '\0';
}

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) {
        text[--length] = '\0';
    }
    return text;
}

/* Where the number of that key goes; NULL for keys that do not matter here. */
static int64_t *number_of(struct lr_siemens_header *header, const char *key)
{
    const struct {
        const char *key;
        int64_t *value;
    } known[] = {
        {"lm event and tag words format (bits)", &header->word_bits},
        {"axial compression", &header->axial_compression},
        {"maximum ring difference", &header->max_ring_difference},
        {"number of projections", &header->bins},
        {"number of views", &header->views},
        {"number of rings", &header->rings},
        {"number of tof time bins", &header->tof_bins},
        {"data offset in bytes", &header->offset_bytes},
        {"total listmode word counts", &header->num_words},
    };
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
        if (strcmp(key, known[k].key) == 0) {
            return known[k].value;
        }
    }
    return NULL;
}

static lr_status take_number(const struct draft *draft, const char *key, const char *value,
                             int64_t *number)
{
    char *end = NULL;
    errno = 0;
    const long long found = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0 || found < 0) {
        return lr_error(draft->log, LR_BAD_INPUT, "%s:%d: '%s' must be a whole number, found '%s'",
                        draft->path, draft->line, key, value);
    }
    *number = found;
    return LR_OK;
}

static lr_status take_line(struct draft *draft, char *line)
{
    char key[MAX_LINE];
    char *sign = strstr(line, ":=");
    if (sign == NULL || *line == ';') {
        return LR_OK;
    }
    normalise(line, sign, key);
    const char *value = trim(sign + 2);
    int64_t *number = number_of(draft->header, key);
    if (number != NULL) {
        return take_number(draft, key, value, number);
    }
    if (strcmp(key, "name of data file") == 0) {
        snprintf(draft->data_file, sizeof(draft->data_file), "%s", value);
    } else if (strcmp(key, "data format") == 0 && strcmp(value, "CoincidenceList") != 0) {
        return lr_error(draft->log, LR_BAD_INPUT,
                        "%s:%d: the header describes '%s', not list mode (CoincidenceList)",
                        draft->path, draft->line, value);
    }
    return LR_OK;
}

/* --- one file --- */

static lr_status read_lines(struct draft *draft, FILE *file)
{
    char line[MAX_LINE], key[MAX_LINE];
    while (fgets(line, sizeof(line), file) != NULL) {
        draft->line++;
        normalise(line, line + strcspn(line, ":="), key);
        if (draft->line == 1 && strcmp(key, "interfile") != 0) {
            return lr_error(draft->log, LR_BAD_INPUT,
                            "%s: does not begin with '!INTERFILE', so it is no Siemens header",
                            draft->path);
        }
        if (strlen(line) + 1 == sizeof(line) || draft->line > MAX_LINES) {
            return lr_error(draft->log, LR_BAD_INPUT,
                            "%s:%d: lines go on and on: this is no Siemens header", draft->path,
                            draft->line);
        }
        LR_TRY(take_line(draft, line));
    }
    if (ferror(file)) {
        return lr_error(draft->log, LR_BAD_INPUT, "%s: cannot be read: %s", draft->path,
                        strerror(errno));
    }
    if (draft->line == 0) {
        return lr_error(draft->log, LR_BAD_INPUT, "%s: the header is empty: copy it again",
                        draft->path);
    }
    return LR_OK;
}

static lr_status read_draft(struct draft *draft)
{
    *draft->header = (struct lr_siemens_header){NULL, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    FILE *file = fopen(draft->path, "rb");
    if (file == NULL) {
        return lr_error(draft->log, LR_BAD_INPUT, "%s: the header cannot be opened: %s",
                        draft->path, strerror(errno));
    }
    const lr_status status = read_lines(draft, file);
    fclose(file);
    return status;
}

static lr_status read_named(const char *path, struct lr_siemens_header *header, const lr_log *log)
{
    struct draft draft = {.path = path, .log = log, .header = header};
    LR_TRY(read_draft(&draft));
    header->path = lr_copy_string(path, log);
    return header->path != NULL ? LR_OK : LR_FAILED;
}

/* --- beside the events --- */

/* A search through the folder of the events. */
struct search {
    const char *events, *name; /* path, and its last part */
    char *folder;              /* with the slash; "" = here */
    char *found;
    const lr_log *log;
};

static char *join(const struct search *search, const char *name)
{
    const size_t bytes = strlen(search->folder) + strlen(name) + 1;
    char *path = lr_alloc((int64_t)bytes, 1, "a path", search->log);
    if (path != NULL) {
        snprintf(path, bytes, "%s%s", search->folder, name);
    }
    return path;
}

/* Whether that file is a header and names the events. Others are passed over without a word. */
static bool belongs(const struct search *search, const char *path)
{
    struct lr_siemens_header header;
    struct draft draft = {.path = path, .header = &header};
    return read_draft(&draft) == LR_OK && strcmp(draft.data_file, search->name) == 0;
}

static bool is_header_name(const char *name)
{
    const char *part = strstr(name, ".hdr");
    return part != NULL && (part[4] == '\0' || part[4] == '.');
}

/* Takes a file of the folder when it is the one; a second one is an error. */
static lr_status consider(struct search *search, const char *name)
{
    if (!is_header_name(name)) {
        return LR_OK;
    }
    char *path = join(search, name);
    if (path == NULL) {
        return LR_FAILED;
    }
    if (!belongs(search, path)) {
        free(path);
        return LR_OK;
    }
    if (search->found != NULL) {
        const lr_status status = lr_error(search->log, LR_BAD_INPUT,
                                          "%s: more than one header names it, %s and %s: name the "
                                          "one to use",
                                          search->events, search->found, path);
        free(path);
        return status;
    }
    search->found = path;
    return LR_OK;
}

static lr_status search_folder(struct search *search)
{
    DIR *folder = opendir(*search->folder != '\0' ? search->folder : ".");
    lr_status status = LR_OK;
    if (folder == NULL) {
        return LR_OK; /* a folder that may not be listed has no header that could be found */
    }
    const struct dirent *item;
    while (status == LR_OK && (item = readdir(folder)) != NULL) {
        status = consider(search, item->d_name);
    }
    closedir(folder);
    return status;
}

/* EVENTS.hdr goes before all others. */
static lr_status search_beside(struct search *search)
{
    char own[MAX_LINE];
    snprintf(own, sizeof(own), "%s.hdr", search->name);
    search->found = join(search, own);
    if (search->found == NULL) {
        return LR_FAILED;
    }
    FILE *file = fopen(search->found, "rb");
    if (file != NULL) {
        fclose(file);
        return LR_OK;
    }
    free(search->found);
    search->found = NULL;
    return search_folder(search);
}

static lr_status find_beside(struct search *search)
{
    const char *slash = strrchr(search->events, '/');
    search->name = slash != NULL ? slash + 1 : search->events;
    search->folder = lr_copy_string(search->events, search->log);
    if (search->folder == NULL) {
        return LR_FAILED;
    }
    search->folder[search->name - search->events] = '\0';
    return search_beside(search);
}

lr_status lr_siemens_header_read(const char *path, const char *events,
                                 struct lr_siemens_header *header, const lr_log *log)
{
    *header = (struct lr_siemens_header){NULL, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    if (path != NULL) {
        return read_named(path, header, log);
    }
    struct search search = {.events = events, .log = log};
    lr_status status = find_beside(&search);
    if (status == LR_OK && search.found != NULL) {
        status = read_named(search.found, header, log);
    }
    free(search.folder);
    free(search.found);
    return status;
}

void lr_siemens_header_finish(struct lr_siemens_header *header)
{
    free(header->path);
    *header = (struct lr_siemens_header){0};
}
