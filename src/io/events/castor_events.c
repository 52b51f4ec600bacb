/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * CASToR's PET data (.Cdf), packed little endian. A list-mode event: time in ms, [attenuation
 * factor], [kind, one byte], [scatter rate], [randoms rate], [normalization factor], [time of flight
 * in ps], two crystal numbers. A histogram's: time, [attenuation], [randoms], [normalization], for
 * each time-of-flight bin the counts and [scatter], two crystal numbers. Time of flight is the time
 * of arrival at the first crystal less that at the second: positive nearer to the second. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/events/castor_header.h"
#include "io/events/event_stream.h"
#include "io/files/light.h"
#include "io/files/regular_file.h"
#include "io/scanners/castor_order.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 16 };

struct reader {
    const lr_events_source *source;
    const lr_log *log;
    struct lr_event_stream *stream;
    struct lr_castor_header header;
    int num_crystals; /* of the file's scanner, where order is there */
    int *order;       /* owned [num_crystals] our number of theirs, -1 = none; NULL = kept */
    lr_event_counts *counts;
    struct lr_event_times times;
    int64_t number; /* of the event */
    char first_unknown[96];
};

static uint32_t word_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static float float_at(const unsigned char *bytes)
{
    const uint32_t bits = word_at(bytes);
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* --- one event --- */

/* Their number in ours; -1, and counted, for one that the scanner lacks. */
static bool take_crystals(struct reader *reader, const unsigned char *ids, lr_event *event)
{
    for (int k = 0; k < 2; k++) {
        const uint32_t id = word_at(ids + 4 * k);
        const bool kept = reader->order == NULL && id <= INT32_MAX;
        const bool found = reader->order != NULL && id < (uint32_t)reader->num_crystals && reader->order[id] >= 0;
        if (!kept && !found) {
            if (reader->counts->unknown_crystals++ == 0) {
                snprintf(reader->first_unknown, sizeof(reader->first_unknown), "event %lld with crystal %u",
                         (long long)reader->number, (unsigned)id);
            }
            return false;
        }
        event->crystals[k] = kept ? (int32_t)id : reader->order[id];
    }
    return true;
}

static lr_status refuse(const struct reader *reader, const char *what, double value)
{
    return lr_error(reader->log, LR_BAD_INPUT,
                    "%s: event %lld, at byte %lld, has %s %g: it is damaged, or the header belongs to "
                    "other data",
                    reader->header.data_path, (long long)reader->number,
                    (long long)(reader->number * lr_castor_event_bytes(&reader->header)), what, value);
}

static lr_status take_list_event(struct reader *reader, const unsigned char *bytes)
{
    const struct lr_castor_header *header = &reader->header;
    const unsigned char *at = bytes + 4 + 4 * header->has_attenuation + header->has_kind +
                              4 * (header->has_scatter + header->has_randoms) + 4 * header->has_normalization;
    lr_event event = {.time_ms = word_at(bytes), .weight = 1};
    reader->counts->prompts++;
    lr_event_times_add(&reader->times, event.time_ms);
    if (header->has_tof) {
        const float tof_ps = float_at(at);
        at += 4;
        if (!isfinite(tof_ps)) return refuse(reader, "the time of flight", tof_ps);
        event.tof_mm = (float)(LR_MM_PER_PS * tof_ps);
    }
    return take_crystals(reader, at, &event) ? lr_event_stream_add(reader->stream, &event) : LR_OK;
}

/* One event for each bin with counts. */
static lr_status take_histogram_event(struct reader *reader, const unsigned char *bytes)
{
    const struct lr_castor_header *header = &reader->header;
    const int step = header->has_scatter ? 8 : 4, bins = header->num_tof_bins;
    const unsigned char *at =
        bytes + 4 + 4 * (header->has_attenuation + header->has_randoms + header->has_normalization);
    lr_event event = {.time_ms = word_at(bytes)};
    reader->counts->prompts++;
    if (!take_crystals(reader, at + step * bins, &event)) return LR_OK;
    for (int b = 0; b < bins; b++) {
        event.weight = float_at(at + step * b);
        event.tof_mm = (float)(LR_MM_PER_PS * header->tof_bin_ps * (b - 0.5 * (bins - 1)));
        if (!isfinite(event.weight)) return refuse(reader, "the counts", event.weight);
        if (event.weight != 0) LR_TRY(lr_event_stream_add(reader->stream, &event));
    }
    return LR_OK;
}

/* --- the data --- */

static lr_status refuse_short(const struct reader *reader, int64_t bytes)
{
    const struct lr_castor_header *header = &reader->header;
    const int64_t each = lr_castor_event_bytes(header);
    return lr_error(reader->log, LR_BAD_INPUT,
                    "%s: is truncated: it ends at byte %lld, within event %lld of the %lld of %lld "
                    "bytes that its header %s tells of: copy it again",
                    header->data_path, (long long)bytes, (long long)(bytes / each), (long long)header->num_events,
                    (long long)each, reader->source->path);
}

/* Asked of the path, for opening a pipe would wait for its other end. */
static lr_status check_size(const struct reader *reader)
{
    struct stat facts;
    const struct lr_castor_header *header = &reader->header;
    const int64_t each = lr_castor_event_bytes(header);
    if (stat(header->data_path, &facts) != 0) {
        return lr_error(reader->log, LR_BAD_INPUT, "%s, which %s names, cannot be opened: %s", header->data_path,
                        reader->source->path, strerror(errno));
    }
    if (!S_ISREG(facts.st_mode))
        return lr_error(reader->log, LR_BAD_INPUT, "%s: is no regular file: give a CASToR .Cdf", header->data_path);
    const int64_t bytes = facts.st_size, there = bytes / each;
    if (there < header->num_events)
        return reader->source->until_damage && there > 0 ? LR_OK : refuse_short(reader, bytes);
    if (there != header->num_events || bytes % each != 0) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s: has %lld bytes, and %lld events of %lld bytes, as its header %s tells, "
                        "are not as long: they belong to other data",
                        header->data_path, (long long)bytes, (long long)header->num_events, (long long)each,
                        reader->source->path);
    }
    return LR_OK;
}

static lr_status read_events(struct reader *reader, FILE *file)
{
    const int64_t each = lr_castor_event_bytes(&reader->header);
    const int64_t at_once = each < BUFFER_BYTES ? BUFFER_BYTES / each : 1;
    unsigned char *bytes = lr_alloc(at_once, (size_t)each, "events", reader->log);
    lr_status status = bytes != NULL ? LR_OK : LR_FAILED;
    size_t got = 1;
    while (status == LR_OK && got > 0) {
        got = fread(bytes, (size_t)each, (size_t)at_once, file);
        for (size_t k = 0; k < got && status == LR_OK; k++, reader->number++) {
            const unsigned char *event = bytes + k * (size_t)each;
            status = reader->header.mode == LR_CASTOR_LIST ? take_list_event(reader, event)
                                                           : take_histogram_event(reader, event);
        }
    }
    free(bytes);
    if (status == LR_OK && ferror(file))
        return lr_error(reader->log, LR_BAD_INPUT, "%s: cannot be read: %s", reader->header.data_path, strerror(errno));
    return status == LR_OK && reader->number < reader->header.num_events ? refuse_short(reader, (int64_t)ftell(file))
                                                                         : status;
}

static lr_status read_data(struct reader *reader)
{
    LR_TRY(check_size(reader));
    if (reader->stream->sink == NULL) return LR_OK;
    FILE *file = lr_file_open(reader->header.data_path, "", reader->log);
    if (file == NULL) return LR_BAD_INPUT;
    struct lr_discreet_log discreet;
    const lr_log *log = reader->log;
    lr_log_discreet(&discreet, reader->header.data_path, reader->source->path, log);
    reader->log = &discreet.log;
    const lr_status status = read_events(reader, file);
    reader->log = log;
    fclose(file);
    return status;
}

/* --- the whole --- */

static void warn_terms(const struct reader *reader)
{
    const struct lr_castor_header *header = &reader->header;
    char terms[128] = "";
    const char *const names[] = {header->has_attenuation ? "attenuation factors" : NULL,
                                 header->has_normalization ? "normalization factors" : NULL,
                                 header->has_scatter ? "scatter rates" : NULL,
                                 header->has_randoms ? "randoms rates" : NULL};
    for (int k = 0; k < 4; k++) {
        const size_t used = strlen(terms);
        if (names[k] != NULL) snprintf(terms + used, sizeof(terms) - used, "%s%s", used > 0 ? ", " : "", names[k]);
    }
    if (terms[0] != '\0') {
        lr_warn(reader->log,
                "%s: the %s of its events are passed over: give what they stand for as "
                "attenuation, efficiencies and additive terms",
                reader->source->path, terms);
    }
}

static lr_status fill_info(const struct reader *reader, lr_events_info *info)
{
    const struct lr_castor_header *header = &reader->header;
    const bool list = header->mode == LR_CASTOR_LIST;
    const int bins = header->num_tof_bins;
    snprintf(info->version, sizeof(info->version), list ? "list mode" : "histogram");
    snprintf(info->scanner, sizeof(info->scanner), "%s", header->scanner);
    info->has_tof = list ? header->has_tof : bins > 1;
    info->tof_resolution_ps = info->has_tof ? header->tof_resolution_ps : 0;
    info->duration_s = header->duration_s;
    info->tof_range_mm = info->has_tof && list ? LR_MM_PER_PS * header->tof_range_ps : 0;
    info->tof_bin_mm = info->has_tof && list ? LR_MM_PER_PS * header->tof_quantisation_ps : 0;
    if (list || bins < 2) return LR_OK;
    info->tof_edges_mm = lr_alloc(bins + 1, sizeof(*info->tof_edges_mm), "edges", reader->log);
    if (info->tof_edges_mm == NULL) return LR_FAILED;
    info->num_tof_bins = bins;
    for (int k = 0; k <= bins; k++)
        info->tof_edges_mm[k] = (float)(LR_MM_PER_PS * header->tof_bin_ps * (k - 0.5 * bins));
    return LR_OK;
}

/* The file beside the header that has the scanner's name and this ending; NULL, to be freed. */
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

/* The order is that of CASToR's scanner file that is named or lies beside the header, else lr_castor_order's. */
static lr_status number_crystals(struct reader *reader)
{
    const lr_scanner *scanner = reader->source->scanner;
    const char *given = reader->source->companion;
    if (scanner == NULL) return LR_OK;
    char *found = given == NULL ? find_scanner_file(reader, ".lut") : NULL;
    if (given == NULL && found == NULL && scanner->castor_order == NULL) found = find_scanner_file(reader, ".geom");
    if (given != NULL || found != NULL) {
        const lr_status status = lr_castor_file_match(given != NULL ? given : found, scanner, &reader->order,
                                                      &reader->num_crystals, reader->log);
        free(found);
        return status;
    }
    reader->num_crystals = scanner->num_crystals;
    reader->order = lr_alloc(scanner->num_crystals, sizeof(*reader->order), "crystal numbers", reader->log);
    return reader->order != NULL ? lr_castor_order(scanner, reader->order, reader->log) : LR_FAILED;
}

static lr_status read_all(struct reader *reader)
{
    LR_TRY(lr_castor_header_read(reader->source->path, &reader->header, reader->log));
    LR_TRY(fill_info(reader, reader->stream->info));
    LR_TRY(number_crystals(reader));
    LR_TRY(read_data(reader));
    if (reader->stream->sink == NULL) return LR_OK;
    LR_TRY(lr_event_stream_flush(reader->stream));
    warn_terms(reader);
    return lr_events_judge_unknown(reader->source, reader->counts, reader->first_unknown);
}

lr_status lr_castor_events(const lr_events_source *source, struct lr_event_stream *stream)
{
    struct reader reader = {.source = source, .log = source->log, .stream = stream, .counts = &stream->info->counts};
    const lr_status status = read_all(&reader);
    const bool is_short = reader.number < reader.header.num_events;
    if (!(stream->info->duration_s > 0) || (stream->sink != NULL && is_short))
        stream->info->duration_s = 1e-3 * (double)(reader.times.last_ms - reader.times.first_ms);
    free(reader.order);
    lr_castor_header_finish(&reader.header);
    return status;
}
