/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/castor_header.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/c_locale.h"
#include "io/clean_text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_TEXT = 1 << 16, MAX_LINE = 4096 };

/* A header's text. */
struct text {
    const char *path;
    const lr_log *log;
    char *bytes; /* owned, zero terminated */
};

bool lr_castor_header_is(const char *start, size_t length)
{
    static const char key[] = "Data filename";
    if (length == 0 || memchr(start, '\0', length) != NULL) {
        return false;
    }
    for (size_t k = 0; k + sizeof(key) - 1 <= length; k++) {
        if (memcmp(start + k, key, sizeof(key) - 1) == 0) {
            return true;
        }
    }
    return false;
}

/* --- the text --- */

static lr_status read_file(struct text *text, FILE *file)
{
    text->bytes = lr_alloc(MAX_TEXT + 1, 1, "a header", text->log);
    if (text->bytes == NULL) {
        return LR_FAILED;
    }
    const size_t length = fread(text->bytes, 1, MAX_TEXT + 1, file);
    if (ferror(file)) {
        return lr_error(text->log, LR_BAD_INPUT, "%s: cannot be read: %s", text->path,
                        strerror(errno));
    }
    const size_t checked = length < MAX_TEXT ? length : MAX_TEXT;
    if (length > MAX_TEXT || !lr_castor_header_is(text->bytes, checked)) {
        return lr_error(text->log, LR_BAD_INPUT,
                        "%s: is no CASToR data header, a text with 'Data filename'%s", text->path,
                        length == 0 ? ": it is empty" : "");
    }
    text->bytes[checked] = '\0';
    return LR_OK;
}

static lr_status read_text(struct text *text)
{
    struct stat facts;
    if (stat(text->path, &facts) != 0) {
        return lr_error(text->log, LR_BAD_INPUT, "%s: cannot be opened: %s", text->path,
                        strerror(errno));
    }
    if (!S_ISREG(facts.st_mode)) {
        return lr_error(text->log, LR_BAD_INPUT, "%s: is %s: give a CASToR data header", text->path,
                        S_ISDIR(facts.st_mode) ? "a folder" : "no regular file");
    }
    FILE *file = fopen(text->path, "rb");
    if (file == NULL) {
        return lr_error(text->log, LR_BAD_INPUT, "%s: cannot be opened: %s", text->path,
                        strerror(errno));
    }
    const lr_status status = read_file(text, file);
    fclose(file);
    return status;
}

/* Copies the value of a key, without blanks around it; false where there is none. */
static bool find(const struct text *text, const char *key, char value[MAX_LINE])
{
    for (const char *line = text->bytes; *line != '\0';) {
        const size_t whole = strcspn(line, "\r\n"), length = strcspn(line, "#\r\n");
        const char *colon = memchr(line, ':', length);
        const char *at = strstr(line, key);
        if (colon != NULL && at != NULL && at < colon) {
            const char *from = colon + 1;
            size_t count = length - (size_t)(from - line);
            while (count > 0 && strchr(" \t", *from) != NULL) {
                from++;
                count--;
            }
            while (count > 0 && strchr(" \t", from[count - 1]) != NULL) {
                count--;
            }
            count = count < MAX_LINE - 1 ? count : MAX_LINE - 1;
            memcpy(value, from, count);
            value[count] = '\0';
            return true;
        }
        line += whole;
        line += strspn(line, "\r\n");
    }
    return false;
}

/* --- values --- */

static lr_status number(const struct text *text, const char *key, double *value)
{
    char found[MAX_LINE], *end;
    if (!find(text, key, found)) {
        return LR_OK;
    }
    const double read = strtod(found, &end);
    if (end == found || *end != '\0' || !isfinite(read)) {
        return lr_error(text->log, LR_BAD_INPUT, "%s: '%s: %.60s' is no number", text->path, key,
                        found);
    }
    *value = read;
    return LR_OK;
}

static lr_status whole(const struct text *text, const char *key, const int64_t range[2],
                       int64_t *value)
{
    double read = (double)*value;
    LR_TRY(number(text, key, &read));
    if (!(read >= (double)range[0] && read <= (double)range[1]) || read != floor(read)) {
        return lr_error(text->log, LR_BAD_INPUT, "%s: '%s' is %g: it must be whole, %lld to %lld",
                        text->path, key, read, (long long)range[0], (long long)range[1]);
    }
    *value = (int64_t)read;
    return LR_OK;
}

static lr_status flag(const struct text *text, const char *key, bool *value)
{
    static const int64_t range[2] = {0, 1};
    int64_t read = 0;
    LR_TRY(whole(text, key, range, &read));
    *value = read != 0;
    return LR_OK;
}

static lr_status read_mode(const struct text *text, struct lr_castor_header *header)
{
    char mode[MAX_LINE] = "", type[MAX_LINE] = "PET";
    (void)find(text, "Data type", type);
    if (!find(text, "Data mode", mode)) {
        return lr_error(text->log, LR_BAD_INPUT, "%s: has no 'Data mode'", text->path);
    }
    if (strcmp(type, "PET") != 0 && strcmp(type, "0") != 0) {
        return lr_error(text->log, LR_BAD_INPUT, "%s: data of type '%.40s': only PET can be read",
                        text->path, type);
    }
    const bool list = strcmp(mode, "list-mode") == 0 || strcmp(mode, "listmode") == 0 ||
                      strcmp(mode, "list") == 0 || strcmp(mode, "0") == 0;
    const bool histogram =
        strcmp(mode, "histogram") == 0 || strcmp(mode, "histo") == 0 || strcmp(mode, "1") == 0;
    if (!list && !histogram) {
        return lr_error(text->log, LR_BAD_INPUT,
                        "%s: data mode '%.40s': only list mode and histograms can be read",
                        text->path, mode);
    }
    header->mode = list ? LR_CASTOR_LIST : LR_CASTOR_HISTOGRAM;
    return LR_OK;
}

static lr_status read_flags(const struct text *text, struct lr_castor_header *header)
{
    LR_TRY(flag(text, "Attenuation correction flag", &header->has_attenuation));
    LR_TRY(flag(text, "Normalization correction flag", &header->has_normalization));
    LR_TRY(flag(text, "Scatter correction flag", &header->has_scatter));
    LR_TRY(flag(text, "Random correction flag", &header->has_randoms));
    LR_TRY(flag(text, "TOF information flag", &header->has_tof));
    return flag(text, "Coincidence kind flag", &header->has_kind);
}

static lr_status read_tof(const struct text *text, struct lr_castor_header *header)
{
    static const int64_t range[2] = {1, LR_CASTOR_MAX_TOF_BINS};
    int64_t bins = 1;
    LR_TRY(number(text, "TOF resolution (ps)", &header->tof_resolution_ps));
    LR_TRY(number(text, "List TOF measurement range (ps)", &header->tof_range_ps));
    LR_TRY(number(text, "List TOF quantization bin size (ps)", &header->tof_quantisation_ps));
    LR_TRY(number(text, "Histo TOF bin size (ps)", &header->tof_bin_ps));
    LR_TRY(whole(text, "Histo TOF number of bins", range, &bins));
    header->num_tof_bins = (int)bins;
    if (header->mode == LR_CASTOR_HISTOGRAM && bins > 1 && !(header->tof_bin_ps > 0)) {
        return lr_error(text->log, LR_BAD_INPUT,
                        "%s: has %d time-of-flight bins and no 'Histo TOF bin size (ps)'",
                        text->path, header->num_tof_bins);
    }
    return LR_OK;
}

/* What makes events longer in ways that are not read. */
static lr_status check_rest(const struct text *text)
{
    static const int64_t lines_range[2] = {1, INT32_MAX};
    int64_t lines = 1;
    bool point = false;
    char poi[MAX_LINE];
    LR_TRY(whole(text, "Maximum number of lines per event", lines_range, &lines));
    if (lines > 1) {
        return lr_error(text->log, LR_BAD_INPUT,
                        "%s: events of up to %lld lines: only those of one pair of crystals can be "
                        "read",
                        text->path, (long long)lines);
    }
    LR_TRY(flag(text, "Emission point flag", &point));
    if (point || (find(text, "POI", poi) && strpbrk(poi, "123456789") != NULL)) {
        return lr_error(text->log, LR_BAD_INPUT,
                        "%s: events with points of interaction or emission cannot be read",
                        text->path);
    }
    return LR_OK;
}

static lr_status find_data(const struct text *text, struct lr_castor_header *header)
{
    char name[MAX_LINE] = "";
    const char *slash = strrchr(text->path, '/');
    if (!find(text, "Data filename", name) || name[0] == '\0') {
        return lr_error(text->log, LR_BAD_INPUT, "%s: names no data file ('Data filename')",
                        text->path);
    }
    const int lead = name[0] != '/' && slash != NULL ? (int)(slash - text->path) + 1 : 0;
    const size_t bytes = (size_t)lead + strlen(name) + 1;
    header->data_path = lr_alloc((int64_t)bytes, 1, "a path", text->log);
    if (header->data_path == NULL) {
        return LR_FAILED;
    }
    snprintf(header->data_path, bytes, "%.*s%s", lead, text->path, name);
    return LR_OK;
}

static lr_status read_header(const struct text *text, struct lr_castor_header *header)
{
    static const int64_t range[2] = {0, INT64_C(1) << 52};
    char name[MAX_LINE] = "";
    if (find(text, "Scanner name", name)) {
        snprintf(header->scanner, sizeof(header->scanner), "%.63s", name);
        lr_clean_text(header->scanner);
    }
    header->num_events = -1;
    if (!find(text, "Number of events", name)) {
        return lr_error(text->log, LR_BAD_INPUT, "%s: has no 'Number of events'", text->path);
    }
    LR_TRY(whole(text, "Number of events", range, &header->num_events));
    LR_TRY(number(text, "Start time (s)", &header->start_s));
    LR_TRY(number(text, "Duration (s)", &header->duration_s));
    LR_TRY(read_mode(text, header));
    LR_TRY(read_flags(text, header));
    LR_TRY(read_tof(text, header));
    LR_TRY(check_rest(text));
    return find_data(text, header);
}

lr_status lr_castor_header_read(const char *path, struct lr_castor_header *header,
                                const lr_log *log)
{
    struct text text = {path, log, NULL};
    const struct lr_c_locale locale = lr_c_locale_enter();
    *header = (struct lr_castor_header){0};
    lr_status status = read_text(&text);
    if (status == LR_OK) {
        status = read_header(&text, header);
    }
    free(text.bytes);
    lr_c_locale_leave(locale);
    return status;
}

void lr_castor_header_finish(struct lr_castor_header *header)
{
    free(header->data_path);
    *header = (struct lr_castor_header){0};
}

int64_t lr_castor_event_bytes(const struct lr_castor_header *header)
{
    const int terms = header->has_attenuation + header->has_normalization + header->has_randoms;
    const int64_t ids_and_time = 3 * 4;
    if (header->mode == LR_CASTOR_LIST) {
        return ids_and_time + 4 * (terms + header->has_scatter + header->has_tof) +
               (header->has_kind ? 1 : 0);
    }
    return ids_and_time + 4 * terms +
           (int64_t)4 * header->num_tof_bins * (header->has_scatter ? 2 : 1);
}
