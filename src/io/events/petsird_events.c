/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The events of a PETSIRD file: time blocks, in them lists of coincidences for each pair of module
 * types. detectionBin = energy + energies * (element + elements * module); the position of
 * tofIdx's bin is c/2 (t1 - t2) in mm, negative where the first crystal was hit first
 * (model/DetectorInformation.yml, model/ScannerInformation.yml, helpers/petsird_helpers.h). */
#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "io/events/event_stream.h"
#include "io/events/petsird.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- batches of events --- */

/* Events, many at a time. While one thread reads the file's structure, it finds where lists of events end by
 * counting the bytes that end numbers; several threads then make events of them. Memory: at most about twice
 * EVENTS_PER_BATCH events and twice MOST_BYTES of the file; less for short files, so that the ranks' memory falls
 * with their number. */

enum {
    EVENTS_PER_BATCH = 1 << 20,
    MOST_BYTES = 1 << 23,
    PIECES = 64, /* of a file, at least, as long as they are larger than LEAST_BYTES */
    LEAST_BYTES = 1 << 16,
    EVENTS_PER_SHARE = 1 << 13, /* events that a thread takes at a time, about */
    MAX_VALUES = 16
};

/* Crystals that the bins of events belong to. */
struct file_crystals {
    const struct lr_petsird *petsird;
    int32_t *crystal_of; /* owned [num_crystals] the scanner's number, -1 = it has none */
    bool has_mask;       /* of modules that are out of coincidence */
};

/* Properties that the events of a list share. */
struct event_list {
    const struct lr_yardl_type *item; /* an event */
    int types[2];                     /* of modules */
    const struct lr_petsird_pair *pair;
    double sign; /* of time of flight, as lr_petsird_tof has it */
    uint32_t start_ms;
    bool is_delayed;
};

/* An event as it stands in the file. */
struct coincidence {
    int64_t bins[2], tof;
};

enum fate {
    TAKEN,
    UNKNOWN, /* has a crystal that the scanner lacks, which is -1 */
    DAMAGED  /* has a bin of time of flight that the file does not know */
};

/* Numbers of an event that are all in base 128: where among them are the two bins and the time of flight
 * (-1 = nowhere). */
struct plan {
    int num_values, at[3];
    bool is_signed[3];
};

/* Events of one list, one after the other. */
struct span {
    struct event_list list;
    const unsigned char *bytes, *end;
    int64_t count, first;        /* events; of the batch before them */
    int64_t time_marks;          /* of the file so far */
    struct lr_event_times times; /* the same */
};

/* Spans of a thread, and what it found. */
struct share {
    int64_t begin, end;    /* spans */
    int64_t first, kept;   /* events, from where in the batch */
    int64_t found[2];      /* prompts and delayeds */
    int64_t damaged;       /* the first span with a damage, of which nothing is kept; -1 = none */
    int64_t num_unknown;   /* events */
    int64_t num_excluded;  /* events */
    int64_t unknown_span;  /* the first event with an unknown crystal */
    int unknown_end;       /* which of its ends that is */
    int64_t unknown_bin;   /* and its detection bin */
    int64_t excluded_span; /* the first event out of coincidence */
    int64_t excluded[2];   /* and its modules */
};

struct batch {
    const struct file_crystals *crystals;
    struct plan plan;
    int threads;
    const lr_event_sink *sink; /* looks at events as they are made; NULL = none */
    struct span *spans;        /* owned [num_spans] */
    int64_t num_spans, room_for_spans;
    struct share *shares; /* owned [num_shares] */
    int64_t num_shares, room_for_shares;
    lr_event *events; /* [num_events] where they go */
    lr_event *own;    /* owned [room_for_events] */
    int64_t num_events, room_for_events;
    struct lr_parallel decoding;
};

/* --- one event --- */

/* A place within the crystal of a bin, counted in crystals. It is so far from either end that rounding changes
 * neither the crystal's number nor that of its module. Divisions would take longer. */
static inline double place_of_bin(const struct lr_petsird_type *type, int64_t bin)
{
    return type->num_energies == 1 ? (double)bin + 0.5 : ((double)bin + 0.5) * type->per_energy;
}

static inline int32_t crystal_of_bin(const struct file_crystals *crystals, int type, int64_t bin)
{
    const struct lr_petsird_type *found = &crystals->petsird->types[type];
    const double place = place_of_bin(found, bin);
    const bool is_known = place >= 0.0 && place < (double)(found->num_elements * found->num_modules);
    return is_known ? crystals->crystal_of[found->first_crystal + (int64_t)place] : -1;
}

static inline enum fate event_of(const struct file_crystals *crystals, const struct event_list *list,
                                 const struct coincidence *from, lr_event *event)
{
    /* A single bin means that there is no time of flight; then all events are in bin 0. */
    const int bins = list->pair->num_edges > 1 ? list->pair->num_edges - 1 : 1;
    if (from->tof < 0 || from->tof >= bins) return DAMAGED;
    const float middle = bins > 1 ? list->pair->middles_mm[from->tof] : 0.0f;
    const int32_t a = crystal_of_bin(crystals, list->types[0], from->bins[0]);
    const int32_t b = crystal_of_bin(crystals, list->types[1], from->bins[1]);
    *event = (lr_event){.crystals = {a, b},
                        .tof_mm = list->sign < 0 ? -middle : middle,
                        .weight = 1,
                        .time_ms = list->start_ms,
                        .is_delayed = list->is_delayed};
    return (a | b) < 0 ? UNKNOWN : TAKEN;
}

/* Gives the modules of an event whose crystals are known; true if the file's own table has them in coincidence. */
static bool is_in_mask(const struct file_crystals *crystals, const struct event_list *list,
                       const struct coincidence *from, int64_t modules[2])
{
    for (int k = 0; k < 2; k++) {
        const struct lr_petsird_type *type = &crystals->petsird->types[list->types[k]];
        modules[k] = (int32_t)(place_of_bin(type, from->bins[k]) * type->per_element);
    }
    return lr_petsird_allows(crystals->petsird, list->types, modules);
}

/* --- where numbers stand --- */

static bool is_whole(const struct lr_yardl_type *type)
{
    return type != NULL && (type->kind == LR_YARDL_UNSIGNED || type->kind == LR_YARDL_SIGNED);
}

/* Number of whole numbers in a field; 0 for fields without any, or with others. */
static int64_t count_values(const struct lr_yardl_type *type)
{
    if (is_whole(type)) return 1;
    if (type == NULL || type->kind != LR_YARDL_LIST || !type->is_fixed || !is_whole(type->item)) return 0;
    int64_t count = 1;
    for (int k = 0; k < type->rank && count <= MAX_VALUES; k++)
        count = type->dims[k] <= MAX_VALUES ? count * type->dims[k] : 0;
    return count;
}

/* False for types of events that have other values, too. */
static bool make_plan(const struct lr_yardl_type *type, struct plan *plan)
{
    *plan = (struct plan){.at = {-1, -1, -1}};
    for (int k = 0; type->kind == LR_YARDL_RECORD && k < type->num_parts; k++) {
        const struct lr_yardl_part *part = &type->parts[k];
        const int64_t count = count_values(part->type);
        if (count < 1 || plan->num_values + count > MAX_VALUES) return false;
        if (strcmp(part->name, "detectionBins") == 0 && count == 2) {
            plan->at[0] = plan->num_values;
            plan->at[1] = plan->num_values + 1;
            plan->is_signed[0] = plan->is_signed[1] = part->type->item->kind == LR_YARDL_SIGNED;
        } else if (strcmp(part->name, "tofIdx") == 0 && is_whole(part->type)) {
            plan->at[2] = plan->num_values;
            plan->is_signed[2] = part->type->kind == LR_YARDL_SIGNED;
        } else if (strcmp(part->name, "tofIdx") == 0 || strcmp(part->name, "detectionBins") == 0) {
            return false;
        }
        plan->num_values += (int)count;
    }
    return plan->at[0] >= 0;
}

/* Counts the bytes that end a number among eight. */
static int count_ends(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return (int)(((~word >> 7 & UINT64_C(0x0101010101010101)) * UINT64_C(0x0101010101010101)) >> 56);
}

enum { BLOCK_WORDS = 32, BLOCK_BYTES = 8 * BLOCK_WORDS };

/* Counts the same in a block; each byte of the sum counts one column, which compilers vectorise. */
static int count_ends_of_block(const unsigned char *bytes)
{
    uint64_t sums = 0;
    for (int k = 0; k < BLOCK_WORDS; k++) {
        uint64_t word;
        memcpy(&word, bytes + 8 * k, sizeof(word));
        sums += ~word >> 7 & UINT64_C(0x0101010101010101);
    }
    int count = 0;
    for (int shift = 0; shift < 64; shift += 8) count += (int)(sums >> shift & 0xff);
    return count;
}

/* Bytes that the first `count` events take, or -1 where the buffered bytes end before. */
static int64_t measure_events(const struct plan *plan, const unsigned char *bytes, int64_t buffered, int64_t count)
{
    int64_t left = count * plan->num_values, at = 0;
    while (left >= BLOCK_BYTES && buffered - at >= BLOCK_BYTES) {
        left -= count_ends_of_block(bytes + at);
        at += BLOCK_BYTES;
    }
    while (left >= 8 && buffered - at >= 8) {
        left -= count_ends(bytes + at);
        at += 8;
    }
    while (left > 0 && at < buffered) left -= bytes[at++] < 0x80;
    return left == 0 ? at : -1;
}

/* --- a batch --- */

/* Decodes byte by byte. Returns what follows; NULL for a number of more than 64 bits. */
static const unsigned char *take_long(const unsigned char *at, uint64_t *value)
{
    uint64_t found = *at & 0x7f;
    for (int shift = 7; *at++ & 0x80; shift += 7) {
        if (shift == 63 && *at > 1) return NULL;
        found |= (uint64_t)(*at & 0x7f) << shift;
    }
    *value = found;
    return at;
}

/* Decodes numbers of at most four bytes without branches, since their lengths cannot be predicted. */
static inline const unsigned char *take_value(const unsigned char *at, const unsigned char *end, uint64_t *value)
{
    const uint64_t word =
        end - at >= 8 ? ((uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 |
                         (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56)
                      : UINT64_MAX;
    const uint64_t ends = ~word & 0x80808080u;
    if (ends == 0) return take_long(at, value);
    const uint64_t upto = ends ^ (ends - 1); /* all bits up to the first end */
    const uint64_t digits = word & upto & 0x7f7f7f7fu;
    *value = (digits & 0x7f) | (digits >> 1 & 0x3f80) | (digits >> 2 & 0x1fc000) | (digits >> 3 & 0xfe00000);
    const uint64_t lengths = upto & 0x01010101u; /* a bit for each byte */
    return at + (lengths * 0x01010101u >> 24 & 0xff);
}

/* Decodes a number as lr_yardl_integer does. */
static int64_t whole_number(uint64_t number, bool is_signed)
{
    if (is_signed) return number & 1 ? -(int64_t)(number >> 1) - 1 : (int64_t)(number >> 1);
    return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

static inline const unsigned char *take_coincidence(const struct plan *plan, const unsigned char *at,
                                                    const unsigned char *end, struct coincidence *coincidence)
{
    uint64_t values[MAX_VALUES];
    for (int k = 0; k < plan->num_values; k++) {
        at = take_value(at, end, &values[k]);
        if (at == NULL) return NULL;
    }
    for (int k = 0; k < 2; k++) coincidence->bins[k] = whole_number(values[plan->at[k]], plan->is_signed[k]);
    coincidence->tof = plan->at[2] >= 0 ? whole_number(values[plan->at[2]], plan->is_signed[2]) : 0;
    return at;
}

/* Returns false for a damaged span. */
static bool decode_span(const struct batch *batch, struct share *share, int64_t number)
{
    const struct span *span = &batch->spans[number];
    const unsigned char *at = span->bytes;
    lr_event *events = batch->events + share->first;
    for (int64_t k = 0; k < span->count; k++) {
        struct coincidence coincidence;
        at = take_coincidence(&batch->plan, at, span->end, &coincidence);
        if (at == NULL) return false;
        lr_event *event = &events[share->kept];
        const enum fate fate = event_of(batch->crystals, &span->list, &coincidence, event);
        if (fate == DAMAGED) return false;
        if (fate == UNKNOWN) {
            const int end = event->crystals[0] >= 0;
            if (share->num_unknown++ == 0) {
                share->unknown_span = number;
                share->unknown_end = end;
                share->unknown_bin = coincidence.bins[end];
            }

            continue;
        }
        if (batch->crystals->has_mask) {
            int64_t modules[2];
            if (!is_in_mask(batch->crystals, &batch->spans[number].list, &coincidence, modules) &&
                share->num_excluded++ == 0) {
                share->excluded_span = number;
                memcpy(share->excluded, modules, sizeof(modules));
            }
        }

        share->kept++;
    }
    share->found[span->list.is_delayed ? 1 : 0] += span->count;
    return true;
}

static void decode_share(struct batch *batch, struct share *share)
{
    share->damaged = -1;
    for (int64_t k = share->begin; k < share->end; k++) {
        const struct share before = *share;
        if (!decode_span(batch, share, k)) {
            *share = before;
            share->damaged = k;
            break;
        }
    }
    if (batch->sink != NULL && batch->sink->look != NULL)
        batch->sink->look(batch->sink->user, batch->events + share->first, share->kept);
}

static void decode_shares(void *user, int64_t begin, int64_t end, int worker)
{
    struct batch *batch = user;
    (void)worker;
    for (int64_t k = begin; k < end; k++) decode_share(batch, &batch->shares[k]);
}

static lr_status make_own_room(struct batch *batch)
{
    const int64_t most = batch->num_events;
    if (most > batch->room_for_events) {
        free(batch->own);
        batch->room_for_events = 0;
        batch->own = lr_resize(NULL, most, sizeof(*batch->own), "events", batch->crystals->petsird->log);
        if (batch->own == NULL) return LR_FAILED;
        batch->room_for_events = most;
    }
    return LR_OK;
}

/* Takes part in making the events, and waits. */
static void end_batch(struct batch *batch)
{
    lr_parallel_end(&batch->decoding);
}

/* --- the reader --- */

/* Events that other threads decode while the file is read on. */
struct decoding {
    struct batch *batch; /* NULL = nothing is in progress */
    const void *buffer;  /* of the input, where their bytes stand */
};

struct reader {
    struct lr_petsird petsird;
    const lr_events_source *source;
    struct lr_event_stream *stream;
    struct file_crystals crystals;
    struct batch batches[2], *batch; /* batch: the one that is collected */
    struct decoding decoding;
    bool is_reading_again; /* what is damaged; others wait until it is known */
    lr_event_counts *counts;
    struct lr_event_times times;
    int64_t other_blocks, moves, singles;
    struct event_list list;
    int64_t bytes_at_once;
    int64_t longest_span; /* events of whatever numbers that fit so many bytes */
    bool is_planned;      /* whether the batch has a plan for it */
    bool may_repeat;      /* whether rows of lists may stand in the file twice */
    bool is_repeat;       /* whether that being read does */
    uint64_t digest;      /* of the row of lists being read */
    struct coincidence coincidence;
    char first_unknown[96], first_excluded[96];
};

/* --- crystals --- */

/* Numbers the crystals by the scanner; without one they keep the file's numbers. */
static lr_status number_crystals(struct reader *reader)
{
    const int64_t count = reader->petsird.num_crystals;
    int32_t *numbers = lr_alloc(count, sizeof(*numbers), "numbers of crystals", reader->petsird.log);
    reader->crystals.crystal_of = numbers;
    if (numbers == NULL) return LR_FAILED;
    if (reader->source->scanner == NULL) {
        for (int64_t k = 0; k < count; k++) numbers[k] = (int32_t)k;
        return LR_OK;
    }
    return lr_petsird_match(&reader->petsird, reader->source->scanner, numbers);
}

/* --- one event --- */

static void count_unknown(struct reader *reader, const struct event_list *list, int end, int64_t bin)
{
    if (reader->counts->unknown_crystals++ == 0) {
        snprintf(reader->first_unknown, sizeof(reader->first_unknown), "detection bin %lld of module type %d at %u ms",
                 (long long)bin, list->types[end], (unsigned)list->start_ms);
    }
}

static lr_status refuse_bin(struct reader *reader)
{
    const struct event_list *list = &reader->list;
    const int bins = list->pair->num_edges > 1 ? list->pair->num_edges - 1 : 1;
    return lr_yardl_error(reader->petsird.input,
                          "an event of module types %d and %d has time-of-flight bin %lld of %d: "
                          "the file is damaged",
                          list->types[0], list->types[1], (long long)reader->coincidence.tof, bins);
}

/* Counts an event whose modules the file's own table puts out of coincidence. */
static void count_excluded(struct reader *reader, const struct event_list *list, const int64_t modules[2])
{
    if (reader->counts->excluded_pairs++ == 0) {
        snprintf(reader->first_excluded, sizeof(reader->first_excluded),
                 "module %lld of type %d with module %lld of type %d", (long long)modules[0], list->types[0],
                 (long long)modules[1], list->types[1]);
    }
}

static void digest(struct reader *reader, int64_t number)
{
    reader->digest = (reader->digest ^ (uint64_t)number) * UINT64_C(0x100000001b3);
    reader->digest ^= reader->digest >> 29;
}

static lr_status take_event(struct reader *reader)
{
    const struct file_crystals *crystals = &reader->crystals;
    const struct event_list *list = &reader->list;
    const struct coincidence *coincidence = &reader->coincidence;
    lr_event event;
    int64_t modules[2];
    digest(reader, coincidence->bins[0]);
    digest(reader, coincidence->bins[1]);
    digest(reader, coincidence->tof);
    if (reader->is_repeat) {
        reader->counts->repeated++;
        return LR_OK;
    }
    *(list->is_delayed ? &reader->counts->delayeds : &reader->counts->prompts) += 1;
    switch (event_of(crystals, list, coincidence, &event)) {
    case DAMAGED: return refuse_bin(reader);
    case UNKNOWN:
        count_unknown(reader, list, event.crystals[0] >= 0, coincidence->bins[event.crystals[0] >= 0]);
        return LR_OK;
    default: break;
    }
    if (crystals->has_mask && !is_in_mask(crystals, list, coincidence, modules)) count_excluded(reader, list, modules);
    return lr_event_stream_add(reader->stream, &event);
}

static lr_status take_bins(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct reader *reader = user;
    struct lr_yardl_list list;
    LR_TRY(lr_yardl_list(input, type, &list));
    if (list.count != 2) return lr_yardl_error(input, "a coincidence has %lld ends", (long long)list.count);
    LR_TRY(lr_yardl_integer(input, list.item, &reader->coincidence.bins[0]));
    return lr_yardl_integer(input, list.item, &reader->coincidence.bins[1]);
}

static lr_status take_tof(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    return lr_yardl_integer(input, type, &((struct reader *)user)->coincidence.tof);
}

/* Reads one number after the other. */
static lr_status take_one_by_one(struct reader *reader, const struct lr_yardl_type *type, int64_t count)
{
    static const struct lr_yardl_field fields[] = {
        {"detectionBins", true, take_bins, NULL}, {"tofIdx", false, take_tof, NULL}, {0}};
    reader->coincidence.tof = 0;
    for (int64_t k = 0; k < count; k++) {
        LR_TRY(lr_yardl_record(reader->petsird.input, type, fields, reader));
        LR_TRY(take_event(reader));
    }
    return LR_OK;
}

/* --- many events at a time --- */

/* Reads a span again by itself, which logs what is wrong with it. */
static lr_status take_damaged(struct reader *reader, const struct span *span)
{
    struct lr_yardl_input *input = reader->petsird.input;
    const struct event_list list = reader->list;
    const struct lr_event_times times = reader->times;
    const int64_t time_marks = reader->counts->time_marks;
    int64_t left;
    const int64_t back = lr_yardl_buffered(input, &left) - span->bytes;
    reader->list = span->list;
    reader->times = span->times;
    reader->counts->time_marks = span->time_marks;
    lr_yardl_move(input, -back);
    LR_TRY(take_one_by_one(reader, span->list.item, span->count));
    int64_t after;
    (void)lr_yardl_buffered(input, &after);
    lr_yardl_move(input, after - left);
    reader->list = list;
    reader->times = times;
    reader->counts->time_marks = time_marks;
    return LR_OK;
}

/* Adds up what shares have found, up to the first damage. Returns the number of events at the begin of the batch. */
static int64_t gather_shares(struct reader *reader, struct batch *batch, const struct share **damaged)
{
    int64_t count = 0;
    *damaged = NULL;
    for (int64_t k = 0; k < batch->num_shares && *damaged == NULL; k++) {
        const struct share *share = &batch->shares[k];
        const struct span *spans = batch->spans;
        lr_event_counts *counts = reader->counts;
        counts->prompts += share->found[0];
        counts->delayeds += share->found[1];
        if (share->num_unknown > 0) {
            count_unknown(reader, &spans[share->unknown_span].list, share->unknown_end, share->unknown_bin);
            counts->unknown_crystals += share->num_unknown - 1;
        }
        if (share->num_excluded > 0) {
            count_excluded(reader, &spans[share->excluded_span].list, share->excluded);
            counts->excluded_pairs += share->num_excluded - 1;
        }

        if (share->first > count)
            memmove(batch->events + count, batch->events + share->first, (size_t)share->kept * sizeof(*batch->events));
        count += share->kept;
        *damaged = share->damaged >= 0 ? share : NULL;
    }
    return count;
}

/* Reads the spans from a damaged one on again, in the buffer that has them; those behind it may turn out to be good. */
static lr_status take_rest(struct reader *reader, const struct batch *batch, int64_t begin)
{
    struct lr_yardl_input *input = reader->petsird.input;
    const bool is_before = reader->decoding.buffer != lr_yardl_buffer(input);
    lr_status status = LR_OK;
    if (is_before) lr_yardl_swap(input);
    reader->is_reading_again = true;
    for (int64_t k = begin; k < batch->num_spans && status == LR_OK; k++)
        status = take_damaged(reader, &batch->spans[k]);
    reader->is_reading_again = false;
    if (is_before) lr_yardl_swap(input);
    return status;
}

static lr_status hand_decoded(struct reader *reader, struct batch *batch)
{
    const struct share *damaged;
    const int64_t count = gather_shares(reader, batch, &damaged);
    LR_TRY(lr_event_stream_hand(reader->stream, batch->events, count));
    return damaged != NULL ? take_rest(reader, batch, damaged->damaged) : LR_OK;
}

static void forget(struct batch *batch)
{
    batch->num_spans = batch->num_shares = batch->num_events = 0;
}

/* Waits for the events that are being decoded, and gives them to the sink. */
static lr_status finish_decoding(struct reader *reader)
{
    struct batch *batch = reader->decoding.batch;
    if (batch == NULL) return LR_OK;
    end_batch(batch);
    reader->decoding.batch = NULL; /* what follows may come here again */
    const lr_status status = hand_decoded(reader, batch);
    forget(batch);
    return status;
}

/* Gives the events that are being decoded to the sink, and starts to decode those that wait. */
static lr_status next_batch(void *user)
{
    struct reader *reader = user;
    LR_TRY(finish_decoding(reader));
    if (reader->is_reading_again || reader->batch->num_spans == 0) return LR_OK;
    LR_TRY(lr_event_stream_flush(reader->stream));
    if (lr_event_stream_skips(reader->stream)) {
        forget(reader->batch);
        return LR_OK;
    }
    struct batch *batch = reader->batch;
    lr_event *room;
    LR_TRY(lr_event_stream_room(reader->stream, batch->num_events, &room));
    /* The threads make events of all spans; those of a share are stored from its `first` on. */
    LR_TRY(room == NULL ? make_own_room(batch) : LR_OK);
    batch->events = room != NULL ? room : batch->own;
    batch->decoding = (struct lr_parallel){
        .threads = batch->threads, .count = batch->num_shares, .grain = 1, .body = decode_shares, .user = batch};
    lr_parallel_begin(&batch->decoding);

    reader->decoding = (struct decoding){.batch = batch, .buffer = lr_yardl_buffer(reader->petsird.input)};
    reader->batch = batch == &reader->batches[0] ? &reader->batches[1] : &reader->batches[0];
    reader->batch->plan = batch->plan;
    return LR_OK;
}

/* Gives all events to the sink. */
static lr_status hand_on(void *user)
{
    LR_TRY(next_batch(user));
    return finish_decoding(user);
}

/* Adds a span of the next events that stand whole in the buffer, at most `most`. */
static lr_status add_span(struct reader *reader, int64_t most, int64_t *count)
{
    struct lr_yardl_input *input = reader->petsird.input;
    struct batch *batch = reader->batch;
    struct span span = {.list = reader->list,
                        .count = most < reader->longest_span ? most : reader->longest_span,
                        .time_marks = reader->counts->time_marks,
                        .times = reader->times};
    int64_t buffered;
    bool any = true;
    span.bytes = lr_yardl_buffered(input, &buffered);
    int64_t bytes = measure_events(&batch->plan, span.bytes, buffered, span.count);
    while (bytes < 0 && any) {
        LR_TRY(lr_yardl_more(input, &any));
        batch = reader->batch;
        span.bytes = lr_yardl_buffered(input, &buffered);
        bytes = measure_events(&batch->plan, span.bytes, buffered, span.count);
    }
    *count = bytes < 0 ? 0 : span.count;
    if (bytes < 0) return LR_OK;
    span.end = span.bytes + bytes;

    /* Shares begin after a number of events, so that threads have equal work. */
    const lr_log *log = batch->crystals->petsird->log;
    LR_TRY(lr_grow(&batch->spans, &batch->room_for_spans, batch->num_spans + 1,
                   &(struct lr_items){sizeof(*batch->spans), "lists of events", log}));
    if (batch->num_shares == 0 || batch->num_events - batch->shares[batch->num_shares - 1].first >= EVENTS_PER_SHARE) {
        LR_TRY(lr_grow(&batch->shares, &batch->room_for_shares, batch->num_shares + 1,
                       &(struct lr_items){sizeof(*batch->shares), "lists of events", log}));
        batch->shares[batch->num_shares++] = (struct share){.begin = batch->num_spans, .first = batch->num_events};
    }
    batch->spans[batch->num_spans] = span;
    batch->spans[batch->num_spans++].first = batch->num_events;
    batch->num_events += span.count;
    batch->shares[batch->num_shares - 1].end = batch->num_spans;

    lr_yardl_move(input, bytes);
    return batch->num_events >= EVENTS_PER_BATCH ? next_batch(reader) : LR_OK;
}

static lr_status take_many(struct reader *reader, int64_t *left)
{
    int64_t count = *left;
    while (*left > 0 && count > 0) {
        LR_TRY(add_span(reader, *left, &count));
        *left -= count;
    }
    return LR_OK;
}

/* --- time blocks --- */

/* Reads the events of a list. Those that the file does not hold whole are read one by one, up to the error. */
static lr_status take_events(struct reader *reader, const struct lr_yardl_list *list)
{
    int64_t left = list->count;
    reader->list.pair = lr_petsird_tof(&reader->petsird, reader->list.types, &reader->list.sign);
    if (reader->list.item != list->item) {
        /* Prompts and delayeds have types of their own, which are mostly equal. */
        struct plan plan;
        reader->is_planned = make_plan(list->item, &plan);
        bool same = plan.num_values == reader->batch->plan.num_values;
        for (int k = 0; k < 3; k++)
            same = same && plan.at[k] == reader->batch->plan.at[k] &&
                   plan.is_signed[k] == reader->batch->plan.is_signed[k];

        if (!same) {
            LR_TRY(hand_on(reader));
            reader->batch->plan = plan;
        }
        if (reader->is_planned) {
            const int64_t most = reader->bytes_at_once / (LR_YARDL_LONGEST * plan.num_values);
            reader->longest_span = most < EVENTS_PER_SHARE ? most : EVENTS_PER_SHARE;
        }
        reader->list.item = list->item;
    }

    if (reader->is_planned && !reader->may_repeat) LR_TRY(take_many(reader, &left));
    if (left == 0) return LR_OK;
    LR_TRY(hand_on(reader));
    return take_one_by_one(reader, list->item, left);
}

/* Returns the module type of a row of lists. Where there are more rows than types, each row stands there as often as
 * it has entries, or the last one is repeated: PETSIRD's Python generator adds a row with every entry that it fills. */
static int type_of_row(int64_t row, int64_t rows, int num_types)
{
    const int64_t n = num_types;
    if (rows == n * n) return (int)(row / n);
    if (rows == n * (n + 1) / 2) {
        int64_t type = 0;
        while ((type + 1) * (type + 2) / 2 <= row) type++;
        return (int)type;
    }
    return (int)(row < n ? row : n - 1);
}

/* Reads the lists [type1][type2]. */
static lr_status take_lists(struct reader *reader, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct lr_yardl_list rows;
    uint64_t before = 0;
    int row = -1;
    LR_TRY(lr_yardl_list(input, type, &rows));
    reader->may_repeat = rows.count > reader->petsird.num_types;
    for (int64_t i = 0; i < rows.count; i++) {
        const int of = reader->may_repeat ? type_of_row(i, rows.count, reader->petsird.num_types) : (int)i;
        reader->is_repeat = of == row;
        reader->digest = 0;
        struct lr_yardl_list columns, list;
        const int num_types = reader->petsird.num_types;
        LR_TRY(lr_yardl_list(input, rows.item, &columns));
        digest(reader, columns.count);
        for (int64_t j = 0; j < columns.count; j++) {
            LR_TRY(lr_yardl_list(input, columns.item, &list));
            digest(reader, list.count);
            if (j >= num_types && list.count > 0) {
                return lr_yardl_error(input, "%lld events of module types %d and %lld, and there are %d types",
                                      (long long)list.count, of, (long long)j, num_types);
            }
            if (list.count > 0) {
                reader->list.types[0] = of;
                reader->list.types[1] = (int)j;
                LR_TRY(take_events(reader, &list));
            }
        }

        if (reader->is_repeat && reader->digest != before) {
            return lr_yardl_error(input,
                                  "%lld rows of event lists for %d types of modules, of which row "
                                  "%lld repeats none: which types it is of is not known",
                                  (long long)rows.count, reader->petsird.num_types, (long long)i);
        }
        before = reader->digest;
        row = of;
    }
    return LR_OK;
}

static lr_status take_prompts(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct reader *reader = user;
    reader->list.is_delayed = false;
    return take_lists(reader, input, type);
}

static lr_status take_delayeds(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct reader *reader = user;
    reader->list.is_delayed = true;
    return take_lists(reader, input, type);
}

static lr_status take_start(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct reader *reader = user;
    int64_t value;
    LR_TRY(lr_yardl_integer(input, type, &value));
    reader->list.start_ms = value > UINT32_MAX ? UINT32_MAX : value < 0 ? 0 : (uint32_t)value;
    lr_event_times_add(&reader->times, reader->list.start_ms);
    return LR_OK;
}

static lr_status take_stop(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct reader *reader = user;
    int64_t value;
    LR_TRY(lr_yardl_integer(input, type, &value));
    lr_event_times_add(&reader->times, value > UINT32_MAX ? UINT32_MAX : (uint64_t)value);
    return LR_OK;
}

static const struct lr_yardl_field interval_fields[] = {
    {"start", true, take_start, NULL}, {"stop", false, take_stop, NULL}, {0}};

static lr_status count_singles(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct reader *reader = user;
    struct lr_yardl_list list, singles;
    LR_TRY(lr_yardl_list(input, type, &list));
    for (int64_t k = 0; k < list.count; k++) {
        LR_TRY(lr_yardl_list(input, list.item, &singles));
        reader->singles += singles.count;
        for (int64_t m = 0; m < singles.count; m++) LR_TRY(lr_yardl_skip(input, singles.item));
    }
    return LR_OK;
}

/* Notes the names of the fields of blocks and of the events in them, which a version may have added. */
static void note_names(struct lr_petsird *petsird, const struct lr_yardl_type *type)
{
    for (int depth = 0; depth < 8 && type != NULL && type->kind != LR_YARDL_RECORD; depth++) {
        const bool is_union = type->kind == LR_YARDL_UNION && type->num_parts > 0;
        type = is_union ? type->parts[type->num_parts - 1].type : type->item;
    }
    for (int k = 0; type != NULL && type->kind == LR_YARDL_RECORD && k < type->num_parts; k++) {
        lr_petsird_note(petsird, type->parts[k].name, "given");
        if (strcmp(type->parts[k].name, "promptEvents") == 0) note_names(petsird, type->parts[k].type);
    }
}

static lr_status take_block(struct reader *reader, const struct lr_yardl_type *type)
{
    static const struct lr_yardl_field fields[] = {{"timeInterval", true, NULL, interval_fields},
                                                   {"singleEvents", false, count_singles, NULL},
                                                   {"promptEvents", true, take_prompts, NULL},
                                                   {"delayedEvents", false, take_delayeds, NULL},
                                                   {0}};
    struct lr_yardl_part part;
    LR_TRY(lr_yardl_case(reader->petsird.input, type, &part));
    if (part.type == NULL) return LR_OK;
    if (strcmp(part.name, "EventTimeBlock") == 0 || part.name[0] == '\0') {
        if (reader->counts->time_marks++ == 0) note_names(&reader->petsird, part.type);
        return lr_yardl_record(reader->petsird.input, part.type, fields, reader);
    }
    reader->other_blocks++;
    if (strstr(part.name, "Movement") != NULL)
        reader->moves++;
    else
        lr_petsird_note(&reader->petsird, part.name, "given");
    return lr_yardl_skip(reader->petsird.input, part.type);
}

/* --- what is known --- */

static bool is_one(const struct lr_petsird_range *range)
{
    return range->count == 0 || (range->low == 1 && range->high == 1);
}

/* Warns, before the events, of what in the header has no place in the model. */
static lr_status warn_header(struct lr_petsird *petsird)
{
    const struct lr_petsird_range *bins = &petsird->bin_efficiencies;
    const struct lr_petsird_range *pairs = &petsird->pair_efficiencies;
    if (!is_one(bins)) {
        lr_warn(petsird->log,
                "%s: efficiencies of detection bins (%lld numbers, %g to %g) are passed over: give "
                "them beside the file",
                petsird->path, (long long)bins->count, bins->low, bins->high);
    }
    if (!is_one(pairs)) {
        lr_warn(petsird->log, "%s: efficiencies of crystal pairs (%lld numbers, %g to %g) are passed over",
                petsird->path, (long long)pairs->count, pairs->low, pairs->high);
    }
    for (int t = 0; t < petsird->num_types; t++) {
        if (petsird->types[t].num_energies > 1) {
            lr_warn(petsird->log, "%s: module type %d has %lld energy bins: events of all are taken", petsird->path, t,
                    (long long)petsird->types[t].num_energies);
        }
    }
    if (petsird->odd_resolutions) {
        lr_warn(petsird->log,
                "%s: its table of time resolutions has more entries than pairs of module types, so "
                "that they are not known",
                petsird->path);
    }
    return lr_petsird_tell_notes(petsird);
}

static lr_status warn_blocks(struct reader *reader)
{
    struct lr_petsird *petsird = &reader->petsird;
    if (reader->moves > 0) {
        lr_warn(petsird->log,
                "%s: tells %lld times of movements of bed or gantry, which are "
                "passed over",
                petsird->path, (long long)reader->moves);
    }
    if (reader->other_blocks > reader->moves) {
        lr_info(petsird->log, "%s: %lld time blocks without events passed over", petsird->path,
                (long long)(reader->other_blocks - reader->moves));
    }
    if (reader->singles > 0)
        lr_info(petsird->log, "%s: %lld single events passed over", petsird->path, (long long)reader->singles);
    return lr_petsird_tell_notes(petsird);
}

static int64_t bytes_at_once(const struct lr_yardl_input *input)
{
    const int64_t bytes = lr_yardl_left(input) / PIECES;
    return bytes < LEAST_BYTES ? LEAST_BYTES : bytes > MOST_BYTES ? MOST_BYTES : bytes;
}

static lr_status read_all(struct reader *reader)
{
    LR_TRY(lr_petsird_open(&reader->petsird, reader->source->path, reader->source->log));
    const bool is_asked = reader->stream->sink != NULL;
    if (is_asked || lr_petsird_has_kinds(&reader->petsird)) LR_TRY(number_crystals(reader));
    lr_events_info *info = reader->stream->info;
    const struct lr_petsird *petsird = &reader->petsird;
    const lr_scanner *scanner = reader->source->scanner;
    snprintf(info->version, sizeof(info->version), "%s", petsird->version);
    snprintf(info->scanner, sizeof(info->scanner), "%s", petsird->name);
    LR_TRY(lr_petsird_fill_info(petsird, info));
    LR_TRY(lr_petsird_has_kinds(petsird)
               ? lr_petsird_fill_kinds(petsird, reader->crystals.crystal_of,
                                       scanner != NULL ? scanner->num_crystals : (int)petsird->num_crystals, info)
               : LR_OK);

    if (!is_asked) return LR_OK;
    LR_TRY(warn_header(&reader->petsird));
    reader->crystals.has_mask = lr_petsird_has_mask(&reader->petsird);
    const int threads = reader->source->threads;
    for (int k = 0; k < 2; k++) {
        reader->batches[k].crystals = &reader->crystals;
        reader->batches[k].sink = reader->stream->sink;
        reader->batches[k].threads = threads > 0 ? threads : lr_num_processors();
    }
    reader->batch = &reader->batches[0];

    reader->bytes_at_once = bytes_at_once(reader->petsird.input);
    LR_TRY(lr_yardl_widen(reader->petsird.input, reader->bytes_at_once));
    lr_yardl_listen(reader->petsird.input, hand_on, next_batch, reader);
    struct lr_yardl_input *input = reader->petsird.input;
    struct lr_yardl_list list;
    do {
        LR_TRY(lr_yardl_list(input, reader->petsird.blocks, &list));
        for (int64_t k = 0; k < list.count; k++) LR_TRY(take_block(reader, list.item));
    } while (list.count > 0);
    LR_TRY(hand_on(reader));
    LR_TRY(lr_yardl_left(input) == 0 ? LR_OK
                                     : lr_yardl_error(input,
                                                      "%lld bytes follow after the last time block: the file is "
                                                      "damaged",
                                                      (long long)lr_yardl_left(input)));

    LR_TRY(lr_event_stream_flush(reader->stream));
    const lr_event_counts *counts = reader->counts;
    if (counts->repeated > 0) {
        lr_warn(petsird->log,
                "%s: rows of its event lists stand there more than once: %lld repeated events are "
                "left out",
                petsird->path, (long long)counts->repeated);
    }
    if (counts->excluded_pairs > 0) {
        lr_warn(petsird->log,
                "%s: %lld of its %lld events are of pairs of modules that its own table puts out "
                "of coincidence, first %s",
                petsird->path, (long long)counts->excluded_pairs, (long long)(counts->prompts + counts->delayeds),
                reader->first_excluded);
    }

    LR_TRY(warn_blocks(reader));
    return lr_events_judge_unknown(reader->source, reader->counts, reader->first_unknown);
}

lr_status lr_petsird_events(const lr_events_source *source, struct lr_event_stream *stream)
{
    struct reader reader = {.source = source, .stream = stream, .counts = &stream->info->counts};
    reader.crystals.petsird = &reader.petsird;
    const lr_status status = read_all(&reader);
    stream->info->duration_s = 1e-3 * (double)(reader.times.last_ms - reader.times.first_ms);
    free(reader.crystals.crystal_of);
    if (reader.decoding.batch != NULL) /* of a reading that has failed */
        end_batch(reader.decoding.batch);
    for (int k = 0; k < 2; k++) {
        struct batch *batch = &reader.batches[k];
        free(batch->spans);
        free(batch->shares);
        free(batch->own);
    }

    lr_petsird_close(&reader.petsird);
    return status;
}
