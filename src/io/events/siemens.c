/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Siemens 32-bit list mode (PETLINK bin addresses): little-endian words. If bit 31 is 0, the word is an event. Bit
 * 30 is 1 for a prompt and 0 for a delayed; bits 0 to 29 are the address (plane * views + view) * bins + bin in an
 * uncompressed sinogram. If bit 31 is 1 and bits 30 and 29 are 0, the word is a time mark with milliseconds in bits
 * 0 to 28. Bins follow from crystals by STIR's numbering for sinograms without arc correction
 * (docs/formats/events.md). */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/events/event_stream.h"
#include "io/files/keyed_text.h"
#include "io/files/number_type.h"
#include "io/files/regular_file.h"
#include "io/lor_data/sinogram.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 4096 };

/* Values of a header; -1 = not given. */
struct siemens_header {
    char *path; /* owned; NULL = no header */
    int64_t word_bits, axial_compression, max_ring_difference;
    int64_t bins, views, rings; /* tangential bins and views of a sinogram, crystal rings */
    int64_t tof_bins, offset_bytes, num_words;
};

/* Keys in InterfileHeaderSiemens.cxx of STIR 6.2 and in headers of a Biograph mMR. Keys for the scanner's dimensions
 * are not used, because the user must name the scanner. */
static const struct lr_known_key known_keys[] = {
    {LR_KEY_READ,
     "name of data file|data format|data offset in bytes|lm event and tag words format (bits)|"
     "axial compression|maximum ring difference|number of projections|number of views|"
     "number of rings|number of tof time bins|total listmode word counts",
     NULL, NULL},
    {LR_KEY_REFUSED, "type of data", "PET", "only data of PET can be read"},
    {LR_KEY_WARNED, "sms-mi header name space", "PETLINK bin address", "its words are taken for addresses of bins"},
    {LR_KEY_WARNED, "pet data type", "Emission", "its events are taken for coincidences of emitted photons"},
    {LR_KEY_WARNED, "pet scanner type", "cylindrical", "its crystals are taken to stand in full rings"},
    {LR_KEY_WARNED, "patient orientation", "hfs", LR_PATIENT_AXES},
    {LR_KEY_WARNED, "start horizontal bed position (mm)|bed zero offset (mm)", "0",
     "images are where the scanner is: move them along z by it"},
    {LR_KEY_WARNED, "start vertical bed position (mm)", "0",
     "images are where the scanner is: move them along y by it"},
    {LR_KEY_WARNED, "gantry tilt angle (degrees)", "0", "images stand as the scanner does"},
    {LR_KEY_WARNED, "septa state", "none|retracted|out",
     "septa between rings are not computed: efficiencies have to hold what they stop"},
    {LR_KEY_IDLE,
     LR_INTERFILE_IDLE_KEYS
     "|version of keys|process status|originating system|radiopharmaceutical|relative time of tracer injection (sec)|"
     "tracer activity at time of injection (bq)|injected volume (ml)|tracer injection date*|tracer injection time*|"
     "horizontal bed translation|end horizontal bed position (mm)|coincidence window width (ns)|"
     "transaxial fov diameter (cm)|distance between rings (cm)|gantry crystal radius (cm)|bin size (cm)|"
     "tof mashing factor|number of segments|segment table|number of buckets|bucket singles rate|"
     "total number of singles blocks|singles polling method|singles polling interval (sec)|singles scale factor|"
     "timing tagwords interval (msec)|time sync|preset type|preset value|preset unit|decay correction*|"
     "total uncorrected singles rate|total prompts*|total randoms|total net trues|"
     "image duration from timing tags (msec)|gim loss fraction|pdr loss fraction|detector block singles|"
     "listmode header file|listmode data file|compressor version",
     NULL, NULL},
};
const struct lr_known_keys lr_siemens_keys = {.format = "Siemens' headers of list mode", LR_KNOWN_ROWS(known_keys)};

/* All kinds of words, by their highest bits. Source: the list of PETLINK's tags in hugolinder/odlpet, format32.py. */
static const struct lr_known_key known_words[] = {
    {LR_KEY_READ, "0 event|100 time", NULL, NULL},
    {LR_KEY_WARNED, "110 place of gantry or bed", "unchanged", "events are taken where they were measured"},
    {LR_KEY_IDLE, "101 dead time|1110 gating|1111 control", NULL, NULL},
};
const struct lr_known_keys lr_siemens_words = {.format = "Siemens' words of list mode", LR_KNOWN_ROWS(known_words)};

static const struct siemens_header empty = {NULL, -1, -1, -1, -1, -1, -1, -1, -1, -1};

/* --- the header --- */

/* Copies the values of a header's keys. errors: LR_BAD_INPUT, logged, if the file is no list-mode header. */
static lr_status take_header(const struct lr_keyed_text *file, struct siemens_header *header)
{
    *header = empty;
    if (!file->has_start) {
        return lr_error(file->log, LR_BAD_INPUT, "%s: does not begin with '!INTERFILE', so it is no Siemens header",
                        file->path);
    }
    const char *format = lr_interfile_text(file, "data format", 0);
    if (format != NULL && strcmp(format, "CoincidenceList") != 0) {
        return lr_error(file->log, LR_BAD_INPUT, "%s:%d: the header describes '%.64s', not list mode (CoincidenceList)",
                        file->path, lr_interfile_find(file, "data format", 0)->number, format);
    }

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
        const char *key = known[k].key;
        LR_TRY(lr_interfile_integer(file, key, 0, known[k].value));
        const char *value = lr_interfile_text(file, key, 0);
        if (value != NULL && *known[k].value < 0) {
            return lr_error(file->log, LR_BAD_INPUT, "%s:%d: '%s' must be a whole number, found '%.64s'", file->path,
                            lr_interfile_find(file, key, 0)->number, key, value);
        }
    }
    return LR_OK;
}

/* Reads the header at `companion`. If `companion` is NULL, reads EVENTS.hdr beside the events. If that file is missing,
 * reads the only list-mode header in the folder that has ".hdr" in its name and names the events as its `name of data
 * file`. header->path stays NULL if no header is found. errors: LR_BAD_INPUT for a missing file, a file that is no
 * list-mode header, or several headers. */
static lr_status read_header(const char *companion, const char *events, struct siemens_header *header,
                             const lr_log *log)
{
    *header = empty;
    char own[MAX_NAME];
    snprintf(own, sizeof(own), "%s.hdr", lr_path_name(events));
    char *found = companion == NULL ? lr_path_beside(events, own, log) : NULL;
    if (companion == NULL && found == NULL) return LR_FAILED;
    FILE *file = found != NULL ? lr_file_open(found, "", NULL) : NULL;
    DIR *folder = NULL;
    if (file != NULL) {
        fclose(file);
    } else if (companion == NULL) {
        free(found);
        found = NULL;
        char *path = lr_path_beside(events, "./", log);
        if (path == NULL) return LR_FAILED;
        folder = opendir(path); /* no header is found in a folder that cannot be listed */
        free(path);
    }

    lr_status status = LR_OK;
    const struct dirent *item;
    while (folder != NULL && status == LR_OK && (item = readdir(folder)) != NULL) {
        const char *part = strstr(item->d_name, ".hdr");
        if (part == NULL || (part[4] != '\0' && part[4] != '.')) continue;
        char *path = lr_path_beside(events, item->d_name, log);
        struct lr_keyed_text text;
        bool belongs = false;
        status = path != NULL ? LR_OK : LR_FAILED;
        if (path != NULL && lr_keyed_text_read(&text, path, &lr_interfile_dialect, NULL) == LR_OK) {
            const char *name = lr_interfile_text(&text, "name of data file", 0);
            belongs = name != NULL && strcmp(name, lr_path_name(events)) == 0 && take_header(&text, header) == LR_OK;
            lr_keyed_text_finish(&text);
        }
        if (belongs && found == NULL) {
            found = path;
            continue;
        }
        if (belongs) {
            status = lr_error(log, LR_BAD_INPUT, "%s: more than one header names it, %s and %s: name the one to use",
                              events, found, path);
        }
        free(path);
    }
    if (folder != NULL) closedir(folder);

    *header = empty;
    const char *chosen = companion != NULL ? companion : found;
    struct lr_keyed_text text;
    if (status == LR_OK && chosen != NULL) status = lr_keyed_text_read(&text, chosen, &lr_interfile_dialect, log);
    if (status == LR_OK && chosen != NULL) {
        status = take_header(&text, header);
        if (status == LR_OK) status = lr_keyed_text_judge(&text, &lr_siemens_keys);
        header->path = status == LR_OK ? lr_copy_string(chosen, log) : NULL;
        if (status == LR_OK && header->path == NULL) status = LR_FAILED;
        lr_keyed_text_finish(&text);
    }
    free(found);
    return status;
}

enum { WORD_BYTES = 4, WORDS_PER_READ = 16384 };

/* Sinogram dimensions of a Biograph mMR, for files without a header. */
enum { MMR_CRYSTALS_AROUND = 504, MMR_RINGS = 64, MMR_BINS = 344, MMR_RING_DIFFERENCE = 60 };

static const int64_t words_per_note = INT64_C(1) << 28; /* one message per GiB */
static const char header_text[] = "!INTERFILE";

/* Layout of the sinogram whose bins are addressed by the words of the list. */
struct layout {
    struct lr_sinogram_rings sinogram;
    int bins, views, max_ring_difference;
    int64_t num_planes;
    int32_t (*ring_of)[2]; /* owned [num_planes], rings of det1 and det2 in the file's numbering */
};

struct reader {
    const char *path;
    const lr_scanner *scanner;
    const lr_log *log;
    struct siemens_header header;
    struct layout layout;
    struct lr_event_stream *stream;
    lr_event_counts counts;
    struct lr_event_times times;
    uint32_t time_ms; /* time of the last time mark */
    int64_t num_words;
    uint32_t first_places[32];  /* first word of each kind that gives a position of gantry or bed; 0 = none */
    int64_t num_moves;          /* number of words whose position of gantry or bed differs from the first one */
    uint32_t first_unknown;     /* first event that names no crystals */
    int64_t first_unknown_word; /* index of this event's word in the file */
};

/* --- the sinogram --- */

/* Refuses a header in which a number differs from the scanner's number. */
static lr_status disagree(const struct reader *reader, const char *what, int64_t header, int64_t scanner)
{
    return lr_error(reader->log, LR_BAD_INPUT,
                    "%s: the header gives %lld %s where %s has %lld: it belongs to another scanner",
                    reader->header.path, (long long)header, what, reader->scanner->name, (long long)scanner);
}

/* Finds the sizes of the sinogram from header and scanner, and lists the rings of each plane. */
static lr_status make_layout(struct reader *reader)
{
    /* One virtual crystal precedes each module. Place 0 is the first place of the module at position 0. */
    const struct lr_sinogram_gaps gaps = {1, 0};
    const lr_scanner *scanner = reader->scanner;
    const struct siemens_header *header = &reader->header;
    struct layout *layout = &reader->layout;
    struct lr_sinogram_rings *sinogram = &layout->sinogram;
    LR_TRY(lr_sinogram_rings_create(sinogram, scanner, &gaps, reader->path, reader->log));
    if (sinogram->around != scanner->num_positions * (scanner->modules[0].crystals[0] + 1)) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s: Siemens list mode numbers the crystals of a ring with one module at "
                        "each place, and %s is not one: it has panels of several blocks",
                        reader->path, scanner->name);
    }

    if (header->word_bits >= 0 && header->word_bits != 32) {
        return lr_error(reader->log, LR_BAD_INPUT, "%s: words of %lld bits: only list mode of 32 bits can be read",
                        header->path, (long long)header->word_bits);
    }
    if (header->axial_compression > 1) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s: planes are compressed axially by %lld, so that crystals cannot be "
                        "told: only list mode with axial compression 1 can be read",
                        header->path, (long long)header->axial_compression);
    }
    if (header->tof_bins > 1) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s: %lld time-of-flight bins: only list mode without time of flight can be read", header->path,
                        (long long)header->tof_bins);
    }

    layout->views = sinogram->around / 2;
    if (header->rings >= 0 && header->rings != sinogram->rings)
        return disagree(reader, "rings", header->rings, sinogram->rings);
    if (header->views >= 0 && header->views != layout->views)
        return disagree(reader, "views", header->views, layout->views);
    const bool is_mmr = sinogram->around == MMR_CRYSTALS_AROUND && sinogram->rings == MMR_RINGS;
    if (header->bins < 0 && !is_mmr) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s: how many bins a projection of %s has is not known: name the header "
                        "that belongs to it, with its 'number of projections'",
                        reader->path, reader->scanner->name);
    }
    const int64_t bins = header->bins >= 0 ? header->bins : MMR_BINS;
    if (bins < 1 || bins > sinogram->around) return disagree(reader, "bins a projection", bins, sinogram->around);
    layout->bins = (int)bins;

    const int64_t usual = is_mmr ? MMR_RING_DIFFERENCE : sinogram->rings - 1;
    const int64_t most = header->max_ring_difference >= 0 ? header->max_ring_difference : usual;
    if (most >= sinogram->rings) return disagree(reader, "as largest ring difference", most, sinogram->rings);
    layout->max_ring_difference = (int)most;

    /* Planes are in the order of segments 0, -1, +1, -2 ... The segment is the ring of det2 minus the ring of det1. */
    const int largest = layout->max_ring_difference;
    layout->num_planes = (2 * (int64_t)largest + 1) * sinogram->rings - largest * (largest + 1);
    layout->ring_of = lr_alloc(layout->num_planes, sizeof(*layout->ring_of), "sinogram planes", reader->log);
    if (layout->ring_of == NULL) return LR_FAILED;
    int64_t plane = 0;
    for (int k = 0; k <= 2 * largest; k++) {
        const int apart = (k + 1) / 2;
        const int lead = k % 2 == 1 ? apart : 0, lag = apart - lead; /* odd k = negative segments */
        for (int a = 0; a < sinogram->rings - apart; a++, plane++) {
            layout->ring_of[plane][0] = (int32_t)(a + lead);
            layout->ring_of[plane][1] = (int32_t)(a + lag);
        }
    }
    return LR_OK;
}

/* --- words --- */

static lr_status take_words(struct reader *reader, const unsigned char *bytes, size_t length)
{
    const struct layout *layout = &reader->layout;
    const uint32_t num_bins = (uint32_t)layout->bins, num_views = (uint32_t)layout->views;
    if (reader->num_words == 0 && length >= sizeof(header_text) - 1 &&
        memcmp(bytes, header_text, sizeof(header_text) - 1) == 0) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s: this is a header: name the list mode (.l) and give this as its header", reader->path);
    }
    for (size_t at = 0; at + WORD_BYTES <= length; at += WORD_BYTES) {
        const uint32_t word = lr_word_at(bytes + at);
        const int64_t number = reader->num_words++;
        if (word >> 31 != 0) {
            if ((word >> 29 & 3) == 0) {
                reader->counts.time_marks++;
                reader->time_ms = word & 0x1fffffff;
                lr_event_times_add(&reader->times, reader->time_ms);
            } else {
                reader->counts.other_words++;
                if (word >> 29 == 6) {
                    uint32_t *first = &reader->first_places[word >> 24 & 31];
                    reader->num_moves += *first != 0 && *first != word;
                    *first = *first != 0 ? *first : word;
                }
            }
            continue;
        }

        /* Crystals are -1 if they are virtual or if the plane does not exist. */
        const uint32_t address = word & 0x3fffffff;
        const bool is_delayed = (word >> 30 & 1) == 0;
        const int64_t plane = address / num_bins / num_views;
        lr_event event = {{-1, -1}, 0, 1, reader->time_ms, is_delayed};
        if (plane < layout->num_planes) {
            const struct lr_sinogram_bin bin = {(int)(address / num_bins % num_views),
                                                (int)(address % num_bins) - layout->bins / 2};
            int places[2];
            lr_sinogram_places(layout->sinogram.around, &bin, places);
            lr_sinogram_crystals(&layout->sinogram, places, layout->ring_of[plane], event.crystals);
        }
        *(is_delayed ? &reader->counts.delayeds : &reader->counts.prompts) += 1;
        if (event.crystals[0] >= 0 && event.crystals[1] >= 0) {
            LR_TRY(lr_event_stream_add(reader->stream, &event));
        } else if (reader->counts.unknown_crystals++ == 0) {
            reader->first_unknown = word;
            reader->first_unknown_word = number;
        }
    }

    if (reader->num_words % words_per_note == 0 && reader->num_words > 0)
        lr_info(reader->log, "%s: %lld GiB read", reader->path, (long long)(reader->num_words / words_per_note));
    return LR_OK;
}

static lr_status read_from(struct reader *reader, FILE *file)
{
    const int64_t offset = reader->header.offset_bytes > 0 ? reader->header.offset_bytes : 0;
    if (offset > INT32_MAX || (offset > 0 && fseek(file, (long)offset, SEEK_SET) != 0)) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s: the %lld bytes before the words that its header tells of cannot be skipped", reader->path,
                        (long long)offset);
    }
    if (reader->stream->sink == NULL) return LR_OK;
    unsigned char bytes[WORD_BYTES * WORDS_PER_READ];
    size_t length;
    do {
        LR_TRY(lr_event_stream_report_place(reader->stream, file));
        length = fread(bytes, 1, sizeof(bytes), file);
        LR_TRY(take_words(reader, bytes, length));
    } while (length == sizeof(bytes));
    LR_TRY(lr_file_check_read(file, reader->path, reader->log));
    const size_t rest = length % WORD_BYTES;
    if (rest != 0) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s: is truncated: word %lld, at byte %lld, has %zu of %d bytes: copy it again", reader->path,
                        (long long)reader->num_words, (long long)(offset + WORD_BYTES * reader->num_words), rest,
                        WORD_BYTES);
    }
    if (reader->num_words == 0)
        return lr_error(reader->log, LR_BAD_INPUT, "%s: holds no words: copy it again", reader->path);
    if (reader->header.num_words > reader->num_words) {
        lr_warn(reader->log, "%s: holds %lld words where its header tells of %lld: it is a part of the acquisition",
                reader->path, (long long)reader->num_words, (long long)reader->header.num_words);
    }

    LR_TRY(lr_event_stream_flush(reader->stream));

    char moves[48] = "";
    struct lr_keyed_line line = {"110 place of gantry or bed", moves, 0, 0};
    if (reader->num_moves > 0) snprintf(moves, sizeof(moves), "another in %lld words", (long long)reader->num_moves);
    LR_TRY(lr_keyed_text_judge(
        &(struct lr_keyed_text){.path = reader->path, .log = reader->log, .lines = &line, .count = 1},
        &lr_siemens_words));

    /* A file in which every event names an unknown crystal belongs to another scanner. */
    const lr_event_counts *counts = &reader->counts;
    const int64_t events = counts->prompts + counts->delayeds;
    if (events == 0) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s: none of its %lld words is an event: it is no Siemens list mode of 32 bits", reader->path,
                        (long long)reader->num_words);
    }
    char first[80];
    snprintf(first, sizeof(first), "word %lld, at byte %lld (0x%08x)", (long long)reader->first_unknown_word,
             (long long)(offset + WORD_BYTES * reader->first_unknown_word), (unsigned)reader->first_unknown);
    return lr_events_judge_unknown(reader->stream->source, counts, first);
}

static lr_status read_events(const lr_events_source *source, struct lr_event_stream *stream)
{
    struct reader reader = {.path = source->path, .scanner = source->scanner, .log = source->log, .stream = stream};
    LR_TRY(lr_events_need_scanner(source, &lr_siemens_format));
    FILE *file = lr_file_open(reader.path, "", reader.log);
    lr_status status = file != NULL ? LR_OK : LR_BAD_INPUT;
    if (status == LR_OK) status = read_header(source->companion, reader.path, &reader.header, reader.log);
    if (status == LR_OK) status = make_layout(&reader);
    if (status == LR_OK) status = read_from(&reader, file);
    if (file != NULL) fclose(file);
    stream->info->counts = reader.counts;
    stream->info->duration_s = 1e-3 * (double)(reader.times.last_ms - reader.times.first_ms);
    free(reader.header.path);
    lr_sinogram_rings_finish(&reader.layout.sinogram);
    free(reader.layout.ring_of);
    return status;
}

const struct lr_event_format lr_siemens_format = {"Siemens", ".l", NULL, read_events, NULL};
