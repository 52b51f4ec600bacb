/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * CASToR's PET data (.Cdf), packed little endian. Values in brackets are optional. An event in list mode: time in ms,
 * [attenuation factor], [kind, one byte], [scatter rate], [randoms rate], [normalization factor], [time of flight in
 * ps], two crystal numbers. An event in a histogram: time, [attenuation], [randoms], [normalization], counts and
 * [scatter] for each time-of-flight bin, two crystal numbers. The time of flight is the arrival time at the first
 * crystal minus the arrival time at the second. The time of flight is positive if the annihilation is nearer to the
 * second crystal. */
#include "base/clean_text.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/events/event_stream.h"
#include "io/files/keyed_text.h"
#include "io/files/number_type.h"
#include "io/files/regular_file.h"
#include "io/scanners/castor_order.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum castor_mode { MODE_LIST, MODE_HISTOGRAM };

enum { MAX_TOF_BINS = 4096 };

struct castor_header {
    char *data_path; /* owned; path of the .Cdf, relative to the header's folder */
    char scanner[64];
    enum castor_mode mode;
    int64_t num_events;
    double duration_s;
    bool has_attenuation, has_normalization, has_scatter, has_randoms, has_tof, has_kind;
    double tof_resolution_ps, tof_range_ps, tof_quantisation_ps, tof_bin_ps;
    int num_tof_bins; /* number of bins in a histogram, at least 1 */
};

/* Keys in vDataFile.cc and iDataFilePET.cc of CASToR 3.1.1. */
static const struct lr_known_key known_keys[] = {
    {LR_KEY_READ,
     "data filename|number of events|data mode|scanner name|duration (s)|attenuation correction flag|"
     "normalization correction flag|scatter correction flag|random correction flag|coincidence kind flag|"
     "tof information flag|tof resolution (ps)|list tof measurement range (ps)|list tof quantization bin size (ps)|"
     "histo tof number of bins|histo tof bin size (ps)",
     NULL, NULL},
    {LR_KEY_REFUSED, "data type", "PET|0", "only PET can be read"},
    {LR_KEY_REFUSED, "maximum number of lines per event", "1", "only events of one pair of crystals can be read"},
    {LR_KEY_REFUSED, "poi capability|poi correction flag|poi *", "0|-1|none|no",
     "events with points of interaction or emission cannot be read"},
    {LR_KEY_REFUSED, "emission point flag", "0", "events with points of interaction or emission cannot be read"},
    {LR_KEY_WARNED, "gate duration (s)", "0", "events of all gates are taken together"},
    {LR_KEY_WARNED, "calibration factor", "1", "images are counts, and are not multiplied by it"},
    {LR_KEY_WARNED, "horizontal bed relative position (mm)", "0",
     "images are where the scanner is: move them along z by it"},
    {LR_KEY_WARNED, "maximum axial difference mm", "-1|0",
     "pairs of crystals farther apart along the axis count as measured without counts: give the "
     "scanner's max_ring_difference"},
    {LR_KEY_IDLE, "start time (s)|isotope", NULL, NULL},
};
const struct lr_known_keys lr_castor_header_keys = {
    .format = "CASToR's data headers", LR_KNOWN_ROWS(known_keys), .finds_parts = true};

/* --- values --- */

static lr_status whole(const struct lr_keyed_text *text, struct lr_keyed_number number, int64_t *value)
{
    double read = (double)*value;
    number.whole = true;
    LR_TRY(lr_keyed_text_number(text, &number, 0, &read));
    *value = (int64_t)read;
    return LR_OK;
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcasecmp(word, *words) == 0) return true;
    return false;
}

/* Reads and checks a header. errors: LR_BAD_INPUT for a file that is no header, and for data that are not supported:
 * normalization files, events of several lines, emission points. */
static lr_status read_header(const struct lr_keyed_text *text, struct castor_header *header)
{
    const struct lr_keyed_number events = {.key = "number of events", .most = 0x1p52, .required = true};
    const struct lr_keyed_line *data = lr_keyed_text_find(text, "data filename");
    const struct lr_keyed_line *scanner = lr_keyed_text_find(text, "scanner name");
    if (data == NULL) return lr_keyed_text_error(text, NULL, "is no CASToR data header, a text with 'Data filename'");
    LR_TRY(lr_keyed_text_judge(text, &lr_castor_header_keys));
    snprintf(header->scanner, sizeof(header->scanner), "%.63s", scanner != NULL ? scanner->value : "");
    lr_clean_text(header->scanner);
    LR_TRY(whole(text, events, &header->num_events));
    struct lr_keyed_number any = {.key = "duration (s)", .least = -1e300, .most = 1e300};
    LR_TRY(lr_keyed_text_number(text, &any, 0, &header->duration_s));
    static const char *const lists[] = {"list-mode", "listmode", "list", "0", NULL};
    static const char *const histograms[] = {"histogram", "histo", "1", NULL};
    const struct lr_keyed_line *line = lr_keyed_text_find(text, "data mode");
    if (line == NULL) return lr_keyed_text_error(text, NULL, "has no 'Data mode'");
    const bool is_list = is_one_of(line->value, lists);
    if (!is_list && !is_one_of(line->value, histograms)) {
        return lr_keyed_text_error(text, line, "data mode '%.40s': only list mode and histograms can be read",
                                   line->value);
    }
    header->mode = is_list ? MODE_LIST : MODE_HISTOGRAM;

    const struct {
        const char *key;
        bool *value;
    } flags[] = {{"attenuation correction flag", &header->has_attenuation},
                 {"normalization correction flag", &header->has_normalization},
                 {"scatter correction flag", &header->has_scatter},
                 {"random correction flag", &header->has_randoms},
                 {"tof information flag", &header->has_tof},
                 {"coincidence kind flag", &header->has_kind}};
    for (size_t k = 0; k < sizeof(flags) / sizeof(flags[0]); k++) {
        int64_t read = 0;
        LR_TRY(whole(text, (struct lr_keyed_number){.key = flags[k].key, .most = 1}, &read));
        *flags[k].value = read != 0;
    }

    const struct {
        const char *key;
        double *value;
    } numbers[] = {{"tof resolution (ps)", &header->tof_resolution_ps},
                   {"list tof measurement range (ps)", &header->tof_range_ps},
                   {"list tof quantization bin size (ps)", &header->tof_quantisation_ps},
                   {"histo tof bin size (ps)", &header->tof_bin_ps}};
    for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
        any.key = numbers[k].key;
        LR_TRY(lr_keyed_text_number(text, &any, 0, numbers[k].value));
    }
    const struct lr_keyed_number range = {.key = "histo tof number of bins", .least = 1, .most = MAX_TOF_BINS};
    int64_t bins = 1;
    LR_TRY(whole(text, range, &bins));
    header->num_tof_bins = (int)bins;
    if (header->mode == MODE_HISTOGRAM && bins > 1 && !(header->tof_bin_ps > 0)) {
        return lr_keyed_text_error(text, NULL, "has %d time-of-flight bins and no 'Histo TOF bin size (ps)'",
                                   header->num_tof_bins);
    }

    if (data->value[0] == '\0') return lr_keyed_text_error(text, NULL, "names no data file ('Data filename')");
    header->data_path = lr_path_beside(text->path, data->value, text->log);
    return header->data_path != NULL ? LR_OK : LR_FAILED;
}

/* Size of an event in the data, bytes. */
static int64_t bytes_per_event(const struct castor_header *header)
{
    const int terms = header->has_attenuation + header->has_normalization + header->has_randoms;
    const int64_t ids_and_time = 3 * 4;
    if (header->mode == MODE_LIST)
        return ids_and_time + 4 * (terms + header->has_scatter + header->has_tof) + (header->has_kind ? 1 : 0);
    return ids_and_time + 4 * terms + (int64_t)4 * header->num_tof_bins * (header->has_scatter ? 2 : 1);
}

enum { BUFFER_BYTES = 1 << 16 };

struct reader {
    const lr_events_source *source;
    const lr_log *log;
    struct lr_event_stream *stream;
    struct castor_header header;
    int num_crystals; /* number of crystals of the file's scanner, if `order` is given */
    int *order; /* owned [num_crystals]: scanner's number of each crystal of the file, -1 = none; NULL = same numbers */
    lr_event_counts *counts;
    struct lr_event_times times;
    int64_t number; /* number of the current event, from 0 */
    char first_unknown[96];
};

/* --- one event --- */

/* Converts crystal numbers of the file to numbers of the scanner. If the scanner lacks a crystal, counts the event and
 * returns false. */
static bool take_crystals(struct reader *reader, const unsigned char *ids, lr_event *event)
{
    for (int k = 0; k < 2; k++) {
        const uint32_t id = lr_word_at(ids + 4 * k);
        const bool is_same = reader->order == NULL && id <= INT32_MAX;
        const bool found = reader->order != NULL && id < (uint32_t)reader->num_crystals && reader->order[id] >= 0;
        if (!is_same && !found) {
            if (reader->counts->unknown_crystals++ == 0) {
                snprintf(reader->first_unknown, sizeof(reader->first_unknown), "event %lld with crystal %u",
                         (long long)reader->number, (unsigned)id);
            }
            return false;
        }
        event->crystals[k] = is_same ? (int32_t)id : reader->order[id];
    }
    return true;
}

static lr_status refuse(const struct reader *reader, const char *what, double value)
{
    return lr_error(reader->log, LR_BAD_INPUT,
                    "%s: event %lld, at byte %lld, has %s %g: it is damaged, or the header belongs to other data",
                    reader->header.data_path, (long long)reader->number,
                    (long long)(reader->number * bytes_per_event(&reader->header)), what, value);
}

/* Adds an event of list mode, or one event for each time-of-flight bin of a histogram entry that has counts. */
static lr_status take_event(struct reader *reader, const unsigned char *bytes)
{
    const struct castor_header *header = &reader->header;
    const unsigned char *at =
        bytes + 4 + 4 * (header->has_attenuation + header->has_randoms + header->has_normalization);
    lr_event event = {.time_ms = lr_word_at(bytes), .weight = 1};
    reader->counts->prompts++;
    if (header->mode == MODE_LIST) {
        at += header->has_kind + 4 * header->has_scatter;
        lr_event_times_add(&reader->times, event.time_ms);
        if (header->has_tof) {
            const float tof_ps = lr_float_at(at);
            at += 4;
            if (!isfinite(tof_ps)) return refuse(reader, "the time of flight", tof_ps);
            event.tof_mm = (float)(LR_MM_PER_PS * tof_ps);
        }
        return take_crystals(reader, at, &event) ? lr_event_stream_add(reader->stream, &event) : LR_OK;
    }

    const int step = header->has_scatter ? 8 : 4, bins = header->num_tof_bins;
    if (!take_crystals(reader, at + step * bins, &event)) return LR_OK;
    for (int b = 0; b < bins; b++) {
        event.weight = lr_float_at(at + step * b);
        event.tof_mm = (float)(LR_MM_PER_PS * header->tof_bin_ps * (b - 0.5 * (bins - 1)));
        if (!isfinite(event.weight)) return refuse(reader, "the counts", event.weight);
        if (event.weight != 0) LR_TRY(lr_event_stream_add(reader->stream, &event));
    }
    return LR_OK;
}

/* --- the data --- */

static lr_status refuse_short(const struct reader *reader, int64_t bytes)
{
    const struct castor_header *header = &reader->header;
    const int64_t each = bytes_per_event(header);
    return lr_error(reader->log, LR_BAD_INPUT,
                    "%s: is truncated: it ends at byte %lld, within event %lld of the %lld of %lld "
                    "bytes that its header %s tells of: copy it again",
                    header->data_path, (long long)bytes, (long long)(bytes / each), (long long)header->num_events,
                    (long long)each, reader->source->path);
}

static lr_status read_data(struct reader *reader)
{
    const struct castor_header *header = &reader->header;
    const int64_t each = bytes_per_event(header);

    /* The kind and size of the file are checked before opening, because opening a pipe would wait for its other end. */
    struct stat facts;
    if (stat(header->data_path, &facts) != 0) {
        return lr_error(reader->log, LR_BAD_INPUT, "%s, which %s names, cannot be opened: %s", header->data_path,
                        reader->source->path, strerror(errno));
    }
    if (!S_ISREG(facts.st_mode))
        return lr_error(reader->log, LR_BAD_INPUT, "%s: is no regular file: give a CASToR .Cdf", header->data_path);
    const int64_t there = facts.st_size / each;
    if (there < header->num_events && !(reader->source->until_damage && there > 0))
        return refuse_short(reader, facts.st_size);
    if (there > header->num_events || (there == header->num_events && facts.st_size % each != 0)) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s: has %lld bytes, and %lld events of %lld bytes, as its header %s tells, "
                        "are not as long: they belong to other data",
                        header->data_path, (long long)facts.st_size, (long long)header->num_events, (long long)each,
                        reader->source->path);
    }
    if (reader->stream->sink == NULL) return LR_OK;

    FILE *file = lr_file_open(header->data_path, "", reader->log);
    if (file == NULL) return LR_BAD_INPUT;
    struct lr_discreet_log discreet;
    const lr_log *log = reader->log;
    lr_log_discreet(&discreet, header->data_path, reader->source->path, log);
    reader->log = &discreet.log;
    const int64_t at_once = each < BUFFER_BYTES ? BUFFER_BYTES / each : 1;
    unsigned char *bytes = lr_alloc(at_once, (size_t)each, "events", reader->log);
    lr_status status = bytes != NULL ? LR_OK : LR_FAILED;
    size_t got = 1;
    while (status == LR_OK && got > 0) {
        status = lr_event_stream_report_place(reader->stream, file);
        got = fread(bytes, (size_t)each, (size_t)at_once, file);
        for (size_t k = 0; k < got && status == LR_OK; k++, reader->number++)
            status = take_event(reader, bytes + k * (size_t)each);
    }
    free(bytes);
    if (status == LR_OK) status = lr_file_check_read(file, header->data_path, reader->log);
    if (status == LR_OK && reader->number < header->num_events) status = refuse_short(reader, (int64_t)ftell(file));
    reader->log = log;
    fclose(file);
    return status;
}

/* --- the whole file --- */

/* Finds the file next to the header that has the scanner's name and the given ending. Returns its path, to be freed, or
 * NULL. */
static char *find_scanner_file(const struct reader *reader, const char *ending)
{
    char name[sizeof(reader->header.scanner) + sizeof(".geom")];
    const char *scanner = reader->header.scanner;
    if (scanner[0] == '\0' || strchr(scanner, '/') != NULL) return NULL;
    snprintf(name, sizeof(name), "%s%s", scanner, ending);
    char *path = lr_path_beside(reader->source->path, name, reader->log);
    if (path != NULL && access(path, F_OK) != 0) {
        free(path);
        return NULL;
    }
    return path;
}

static lr_status read_all(struct reader *reader)
{
    struct castor_header *header = &reader->header;
    static const struct lr_keyed_dialect dialect = {.separator = ":", .comment = '#', .what = "a CASToR data header"};
    struct lr_keyed_text text;
    const struct lr_c_locale locale = lr_c_locale_enter();
    lr_status status = lr_keyed_text_read(&text, reader->source->path, &dialect, reader->log);
    if (status == LR_OK) {
        status = read_header(&text, header);
        lr_keyed_text_finish(&text);
    }
    lr_c_locale_leave(locale);
    LR_TRY(status);

    lr_events_info *info = reader->stream->info;
    const bool list = header->mode == MODE_LIST;
    const int bins = header->num_tof_bins;
    snprintf(info->version, sizeof(info->version), list ? "list mode" : "histogram");
    snprintf(info->scanner, sizeof(info->scanner), "%s", header->scanner);
    info->has_tof = list ? header->has_tof : bins > 1;
    info->tof_resolution_ps = info->has_tof ? header->tof_resolution_ps : 0;
    info->duration_s = header->duration_s;
    info->tof_range_mm = info->has_tof && list ? LR_MM_PER_PS * header->tof_range_ps : 0;
    info->tof_bin_mm = info->has_tof && list ? LR_MM_PER_PS * header->tof_quantisation_ps : 0;
    if (!list && bins > 1) {
        info->tof_edges_mm = lr_alloc(bins + 1, sizeof(*info->tof_edges_mm), "edges", reader->log);
        if (info->tof_edges_mm == NULL) return LR_FAILED;
        info->num_tof_bins = bins;
        for (int k = 0; k <= bins; k++)
            info->tof_edges_mm[k] = (float)(LR_MM_PER_PS * header->tof_bin_ps * (k - 0.5 * bins));
    }

    /* A scanner file of CASToR defines the numbers of the crystals. This file is given by the caller, or is next to the
     * header. Without such a file, lr_castor_order defines the numbers. */
    const lr_scanner *scanner = reader->source->scanner;
    const char *given = reader->source->companion;
    char *found = scanner != NULL && given == NULL ? find_scanner_file(reader, ".lut") : NULL;
    if (scanner != NULL && given == NULL && found == NULL && scanner->castor_order == NULL)
        found = find_scanner_file(reader, ".geom");
    if (scanner != NULL && (given != NULL || found != NULL)) {
        status = lr_castor_file_match(given != NULL ? given : found, scanner, &reader->order, &reader->num_crystals,
                                      reader->log);
    } else if (scanner != NULL) {
        reader->num_crystals = scanner->num_crystals;
        reader->order = lr_alloc(scanner->num_crystals, sizeof(*reader->order), "crystal numbers", reader->log);
        status = reader->order != NULL ? lr_castor_order(scanner, reader->order, reader->log) : LR_FAILED;
    }
    free(found);
    LR_TRY(status);
    LR_TRY(read_data(reader));
    if (reader->stream->sink == NULL) return LR_OK;
    LR_TRY(lr_event_stream_flush(reader->stream));

    char terms[128] = "";
    const char *const names[] = {header->has_attenuation ? "attenuation factors" : NULL,
                                 header->has_normalization ? "normalization factors" : NULL,
                                 header->has_scatter ? "scatter rates" : NULL,
                                 header->has_randoms ? "randoms rates" : NULL};
    for (int k = 0; k < 4; k++)
        if (names[k] != NULL) lr_names_add(terms, sizeof(terms), names[k]);
    if (terms[0] != '\0') {
        lr_warn(reader->log,
                "%s: the %s of its events are passed over: give what they stand for as "
                "attenuation, efficiencies and additive terms",
                reader->source->path, terms);
    }
    return lr_events_judge_unknown(reader->source, reader->counts, reader->first_unknown);
}

static bool recognises(const struct lr_file_head *head)
{
    return strlen(head->bytes) == head->count && strstr(head->bytes, "Data filename") != NULL;
}

static lr_status read_events(const lr_events_source *source, struct lr_event_stream *stream)
{
    struct reader reader = {.source = source, .log = source->log, .stream = stream, .counts = &stream->info->counts};
    const lr_status status = read_all(&reader);
    const bool is_short = reader.number < reader.header.num_events;
    if (!(stream->info->duration_s > 0) || (stream->sink != NULL && is_short))
        stream->info->duration_s = 1e-3 * (double)(reader.times.last_ms - reader.times.first_ms);
    lr_free_all(reader.order, reader.header.data_path);
    return status;
}

const struct lr_event_format lr_castor_format = {"CASToR", ".Cdh", recognises, read_events, &lr_castor_writing};
