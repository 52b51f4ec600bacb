/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * SAFIR list mode: 32 bytes that begin with a signature, then little-endian 64-bit records. An event holds, from the
 * lowest bit, ringA:8 ringB:8 detA:16 detB:16 layerA:4 layerB:4 reserved:6 delayed:1 type:1. NeuroLF's files have
 * layers of 3 bits and 8 reserved bits. A time mark (type 1) holds milliseconds in bits 0 to 47. Sources: STIR's
 * CListRecordSAFIR.h and SAFIRCListmodeInputFileFormat.h. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/events/event_stream.h"
#include "io/files/number_type.h"
#include "io/files/regular_file.h"
#include "io/scanners/crystal_map.h"
#include "io/scanners/scanner_formats.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIGNATURE_BYTES = 32, RECORD_BYTES = 8, RECORDS_PER_READ = 8192 };

/* The zero byte at the signature's end and the bytes after it, up to byte 31, are ignored. */
static const struct signature {
    const char *text;
    unsigned layer_bits;
} signatures[] = {
    {"SAFIR CListModeData", 4},
    {"MUPET CListModeData", 4},
    {"NeuroLF CListModeData", 3},
};
enum { NUM_SIGNATURES = sizeof(signatures) / sizeof(signatures[0]) };

/* All fields of a file's first bytes and of its records. */
static const struct lr_known_key known_fields[] = {
    {LR_KEY_READ, "signature|type|isDelayed|ringA|ringB|detA|detB|layerA|layerB|time", NULL, NULL},
    {LR_KEY_WARNED, "reserved", "0", "what they mean is not known, and they are passed over"},
    {LR_KEY_IDLE, "signature's rest", NULL, NULL},
};
const struct lr_known_keys lr_safir_fields = {.format = "SAFIR's records", LR_KNOWN_ROWS(known_fields)};

/* A file being read. */
struct reader {
    const char *path;
    const lr_log *log;
    struct lr_crystal_map map;
    struct lr_event_stream *stream;
    lr_event_counts counts;
    struct lr_event_times times;
    unsigned layer_bits;
    uint64_t time_ms;  /* time of the last time mark */
    uint64_t reserved; /* reserved bits that are set in at least one record */
    int64_t num_records;
    uint64_t first_unknown;       /* first event that names an unknown crystal */
    int64_t first_unknown_record; /* number of this event's record */
};

/* Finds the only crystal map in the folder of the events. Returns its path, to be freed, or NULL, logged. */
static char *find_map(const char *path, const lr_log *log)
{
    static const char end[] = "crystal_map.txt";
    char *name = lr_path_beside(path, "./", log);
    if (name == NULL) return NULL;
    DIR *folder = opendir(name);
    if (folder == NULL) lr_error(log, LR_BAD_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    free(name);
    if (folder == NULL) return NULL;

    char *found = NULL;
    bool failed = false;
    const struct dirent *item;
    while (!failed && (item = readdir(folder)) != NULL) {
        const size_t length = strlen(item->d_name);
        if (length < sizeof(end) - 1 || strcmp(item->d_name + length - (sizeof(end) - 1), end) != 0) continue;
        if (found == NULL) {
            found = lr_path_beside(path, item->d_name, log);
            failed = found == NULL;
        } else {
            lr_error(log, LR_BAD_INPUT, "%s: more than one crystal map lies beside it, %s and %s: name the one to use",
                     path, lr_path_name(found), item->d_name);
            failed = true;
        }
    }
    closedir(folder);
    if (found == NULL && !failed)
        lr_error(log, LR_BAD_INPUT, "%s: no crystal map (*crystal_map.txt) lies beside it: name one", path);
    if (!failed) return found;
    free(found);
    return NULL;
}

lr_scanner *lr_safir_scanner_read(const char *path, const lr_log *log)
{
    char *map = find_map(path, log);
    lr_scanner *scanner = map != NULL ? lr_stir_map_read(map, log) : NULL;
    free(map);
    return scanner;
}

/* --- records --- */

static uint32_t key_of(const struct reader *reader, uint64_t record, bool is_b)
{
    const unsigned bits = reader->layer_bits;
    const unsigned ring = (unsigned)(record >> (is_b ? 8 : 0)) & 0xff;
    const unsigned detector = (unsigned)(record >> (is_b ? 32 : 16)) & 0xffff;
    const unsigned layer = (unsigned)(record >> (is_b ? 48 + bits : 48)) & ((1u << bits) - 1);
    return lr_crystal_key(ring, detector, layer);
}

/* Returns the signature at the beginning of a file, or NULL. A short file needs to match only the signature's first
 * bytes. */
static const struct signature *find_signature(const char *start, size_t length)
{
    for (int k = 0; k < NUM_SIGNATURES; k++) {
        const size_t whole = strlen(signatures[k].text) + 1;
        if (length > 0 && memcmp(start, signatures[k].text, length < whole ? length : whole) == 0)
            return &signatures[k];
    }
    return NULL;
}

bool lr_safir_recognises(const struct lr_file_head *head)
{
    const struct signature *found = find_signature(head->bytes, head->count);
    return found != NULL && head->count > strlen(found->text);
}

/* Reads the records up to the end of the file, then checks the length of the file, reserved bits and unknown
 * crystals. */
static lr_status read_records(struct reader *reader, FILE *file)
{
    unsigned char bytes[RECORD_BYTES * RECORDS_PER_READ];
    size_t length;
    do {
        LR_TRY(lr_event_stream_report_place(reader->stream, file));
        length = fread(bytes, 1, sizeof(bytes), file);
        for (size_t at = 0; at + RECORD_BYTES <= length; at += RECORD_BYTES) {
            const uint64_t record = lr_whole_at(bytes + at, RECORD_BYTES);
            const int64_t number = reader->num_records++;
            if (record >> 63 & 1) {
                reader->counts.time_marks++;
                reader->time_ms = record & UINT64_C(0xffffffffffff);
                reader->reserved |= record >> 48 & 0x7fff;
                lr_event_times_add(&reader->times, reader->time_ms);
                continue;
            }
            const bool is_delayed = (record >> 62 & 1) != 0;
            reader->reserved |= (record & ((UINT64_C(1) << 62) - 1)) >> (48 + 2 * reader->layer_bits);
            const int a = lr_crystal_map_find(&reader->map, key_of(reader, record, false));
            const int b = lr_crystal_map_find(&reader->map, key_of(reader, record, true));
            const lr_event event = {{a, b}, 0, 1, (uint32_t)reader->time_ms, is_delayed};
            *(is_delayed ? &reader->counts.delayeds : &reader->counts.prompts) += 1;
            if (a >= 0 && b >= 0) {
                LR_TRY(lr_event_stream_add(reader->stream, &event));
            } else if (reader->counts.unknown_crystals++ == 0) {
                reader->first_unknown = record;
                reader->first_unknown_record = number;
            }
        }
    } while (length == sizeof(bytes));
    LR_TRY(lr_file_check_read(file, reader->path, reader->log));
    if (length % RECORD_BYTES != 0) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s: is truncated: record %lld, at byte %lld, has %zu of %d bytes: copy it again", reader->path,
                        (long long)reader->num_records,
                        (long long)(SIGNATURE_BYTES + RECORD_BYTES * reader->num_records), length % RECORD_BYTES,
                        RECORD_BYTES);
    }
    if (reader->num_records == 0) {
        return lr_error(reader->log, LR_BAD_INPUT, "%s: holds no records after its signature: copy it again",
                        reader->path);
    }
    LR_TRY(lr_event_stream_flush(reader->stream));

    char reserved[32];
    struct lr_keyed_line line = {"reserved", reserved, 0, 0};
    snprintf(reserved, sizeof(reserved), "%llu", (unsigned long long)reader->reserved);
    LR_TRY(lr_keyed_text_judge(
        &(struct lr_keyed_text){.path = reader->path, .log = reader->log, .lines = &line, .count = 1},
        &lr_safir_fields));

    /* The message names the first crystal that the map lacks. */
    const lr_event_counts *counts = &reader->counts;
    if (counts->unknown_crystals == 0) return LR_OK;
    const int64_t events = counts->prompts + counts->delayeds;
    const bool is_b = lr_crystal_map_find(&reader->map, key_of(reader, reader->first_unknown, false)) >= 0;
    const uint32_t key = key_of(reader, reader->first_unknown, is_b);
    const bool all = counts->unknown_crystals == events;
    lr_log_write(reader->log, all ? LR_LOG_ERROR : LR_LOG_WARNING, all ? LR_BAD_INPUT : LR_OK,
                 "%s: %lld of %lld %s name crystals that the crystal map lacks, first record "
                 "%lld, at byte %lld, with ring %u, detector %u, layer %u: %s",
                 reader->path, (long long)counts->unknown_crystals, (long long)events,
                 counts->delayeds > 0 ? "events" : "prompts", (long long)reader->first_unknown_record,
                 (long long)(SIGNATURE_BYTES + RECORD_BYTES * reader->first_unknown_record), (unsigned)(key >> 20),
                 (unsigned)(key >> 4 & 0xffff), (unsigned)(key & 15),
                 all ? "the map belongs to another scanner" : "they are left out");
    return all ? LR_BAD_INPUT : LR_OK;
}

static lr_status read_events(const lr_events_source *source, struct lr_event_stream *stream)
{
    struct reader reader = {.path = source->path, .log = source->log, .stream = stream};
    LR_TRY(lr_events_need_scanner(source, &lr_safir_format));
    const struct lr_c_locale locale = lr_c_locale_enter();
    lr_status status = LR_BAD_INPUT;
    char start[SIGNATURE_BYTES], *found_map = NULL;
    FILE *file = lr_file_open(source->path, "", source->log);
    if (file == NULL) goto done;
    const size_t length = fread(start, 1, sizeof(start), file);
    if (lr_file_check_read(file, source->path, source->log) != LR_OK) goto done;
    const struct signature *signature = find_signature(start, length);
    if (signature == NULL) {
        lr_error(source->log, LR_BAD_INPUT, "%s: does not begin with '%s', '%s' or '%s', so it is no SAFIR list mode%s",
                 source->path, signatures[0].text, signatures[1].text, signatures[2].text,
                 length == 0 ? ": the file is empty" : "");
        goto done;
    }
    if (length < sizeof(start)) {
        lr_error(source->log, LR_BAD_INPUT, "%s: ends after %zu of the %d bytes before its first record: copy it again",
                 source->path, length, SIGNATURE_BYTES);
        goto done;
    }
    reader.layer_bits = signature->layer_bits;

    if (source->companion == NULL) found_map = find_map(source->path, source->log);
    const char *map_path = source->companion != NULL ? source->companion : found_map;
    if (map_path == NULL) goto done;
    status = lr_crystal_map_read(map_path, source->scanner, &reader.map, source->log);
    if (status == LR_OK && stream->sink != NULL) status = read_records(&reader, file);

done:
    free(found_map);
    if (file != NULL) fclose(file);
    stream->info->counts = reader.counts;
    stream->info->duration_s = 1e-3 * (double)(reader.times.last_ms - reader.times.first_ms);
    lr_crystal_map_finish(&reader.map);
    lr_c_locale_leave(locale);
    return status;
}

const struct lr_event_format lr_safir_format = {"SAFIR", ".safir", lr_safir_recognises, read_events, NULL};
