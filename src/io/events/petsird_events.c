/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The events of a PETSIRD file. Time blocks contain lists of coincidences for each pair of module types. detectionBin =
 * energy + num_energies * (element + num_elements * module). The bin tofIdx gives the position c/2 (t1 - t2) in mm. The
 * position is negative if the first crystal was hit first (model/DetectorInformation.yml, model/ScannerInformation.yml,
 * helpers/petsird_helpers.h). */
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "io/events/event_stream.h"
#include "io/events/petsird.h"
#include "io/files/number_type.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- batches of events --- */

/* One thread reads the file's structure. Numbers have variable lengths, and their last bytes are marked, so that this
 * thread finds the end of an event list by counting marked bytes. Several threads then decode the events. Memory: at
 * most about twice EVENTS_PER_BATCH events and twice MOST_BYTES of the file. Short files take less memory. Ranks that
 * share a file skip the batches of other ranks. */

enum {
    EVENTS_PER_BATCH = 1 << 20,
    MOST_BYTES = 1 << 23,
    PIECES = 64, /* least number of pieces of a file, unless a piece would be smaller than LEAST_BYTES */
    LEAST_BYTES = 1 << 16,
    EVENTS_PER_SHARE = 1 << 13, /* approximate number of events that a thread decodes at once */
    MAX_VALUES = 16
};

/* The scanner's crystals for the file's detection bins. */
struct file_crystals {
    const struct lr_petsird *petsird;
    int32_t *crystal_of; /* owned [num_crystals], numbers in the scanner, -1 = missing */
    bool has_mask;       /* the file has a mask of module pairs */
};

/* Properties that the events of a list share. */
struct event_list {
    const struct lr_yardl_type *item; /* the schema's type of an event */
    int types[2];                     /* types of the modules */
    const struct lr_petsird_pair *pair;
    double sign; /* sign of the time of flight, from lr_petsird_tof */
    uint32_t start_ms;
    bool is_delayed;
};

/* An event in the file's numbers. */
struct coincidence {
    int64_t bins[2], tof;
};

enum fate {
    TAKEN,
    UNKNOWN, /* the scanner lacks a crystal; its number is -1 */
    DAMAGED  /* the file does not define the time-of-flight bin */
};

/* Layout of an event whose numbers are all in base 128. */
struct plan {
    int num_values;
    int at[3]; /* positions of the two bins and the time of flight among the values, -1 = missing */
    bool is_signed[3];
};

/* Consecutive events of one list. */
struct span {
    struct event_list list;
    const unsigned char *bytes, *end;
    int64_t count, first;        /* count: events in the span; first: events before the span in the batch */
    int64_t time_marks;          /* number of time marks in the file before the span */
    struct lr_event_times times; /* first and last time in the file before the span */
};

/* Spans that one thread decodes, and the results. */
struct share {
    int64_t begin, end;    /* range of spans */
    int64_t first, count;  /* first: index of the first event in the batch; count: decoded events */
    int64_t found[2];      /* [0]: number of prompts; [1]: number of delayeds */
    int64_t damaged;       /* first damaged span, all of whose events are dropped; -1 = none */
    int64_t num_unknown;   /* number of events with an unknown crystal */
    int64_t num_excluded;  /* number of events out of coincidence */
    int64_t unknown_span;  /* span of the first event with an unknown crystal */
    int unknown_end;       /* index of the unknown crystal in this event, 0 or 1 */
    int64_t unknown_bin;   /* detection bin of the unknown crystal */
    int64_t excluded_span; /* span of the first event out of coincidence */
    int64_t excluded[2];   /* modules of the first event out of coincidence */
};

struct batch {
    const struct file_crystals *crystals;
    struct plan plan;
    int threads;
    const lr_event_sink *sink; /* `look` gets the events of each share; NULL = none */
    struct span *spans;        /* owned [num_spans] */
    int64_t num_spans, room_for_spans;
    struct share *shares; /* owned [num_shares] */
    int64_t num_shares, room_for_shares;
    lr_event *events; /* [num_events] decoded, in the sink's memory or in `own` */
    lr_event *own;    /* owned [room_for_events] */
    int64_t num_events, room_for_events;
    struct lr_parallel decoding;
};

/* --- one event --- */

/* Returns the position of a bin in units of crystals. The position is far enough from both ends of its crystal that
 * rounding changes neither the crystal's number nor the module's number. The function multiplies by per_energy, because
 * a division would take longer. */
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
    /* A single bin means no time of flight. All events are then in bin 0. */
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

/* Finds the modules of an event with known crystals. True if the file's mask allows their coincidence. */
static bool is_in_mask(const struct file_crystals *crystals, const struct event_list *list,
                       const struct coincidence *from, int64_t modules[2])
{
    for (int k = 0; k < 2; k++) {
        const struct lr_petsird_type *type = &crystals->petsird->types[list->types[k]];
        modules[k] = (int32_t)(place_of_bin(type, from->bins[k]) * type->per_element);
    }
    return lr_petsird_allows(crystals->petsird, list->types, modules);
}

/* --- the layout of an event --- */

/* Finds the layout of the events of a type. False if the type has values other than integers. */
static bool make_plan(const struct lr_yardl_type *type, struct plan *plan)
{
    *plan = (struct plan){.at = {-1, -1, -1}};
    for (int k = 0; type->kind == LR_YARDL_RECORD && k < type->num_parts; k++) {
        const struct lr_yardl_part *part = &type->parts[k];
        const bool is_list = part->type != NULL && part->type->kind == LR_YARDL_LIST && part->type->is_fixed;
        const struct lr_yardl_type *item = is_list ? part->type->item : part->type;
        int64_t count = 1;
        for (int d = 0; is_list && d < part->type->rank && count <= MAX_VALUES; d++)
            count = part->type->dims[d] <= MAX_VALUES ? count * part->type->dims[d] : 0;
        if (item == NULL || (item->kind != LR_YARDL_UNSIGNED && item->kind != LR_YARDL_SIGNED)) return false;
        if (count < 1 || plan->num_values + count > MAX_VALUES) return false;

        const bool is_signed = item->kind == LR_YARDL_SIGNED;
        if (strcmp(part->name, "detectionBins") == 0) {
            if (count != 2) return false;
            plan->at[0] = plan->num_values;
            plan->at[1] = plan->num_values + 1;
            plan->is_signed[0] = plan->is_signed[1] = is_signed;
        } else if (strcmp(part->name, "tofIdx") == 0) {
            if (is_list) return false;
            plan->at[2] = plan->num_values;
            plan->is_signed[2] = is_signed;
        }
        plan->num_values += (int)count;
    }
    return plan->at[0] >= 0;
}

/* Returns the length in bytes of the first `count` events, or -1 if the buffer ends first. The function counts the ends
 * of numbers. The last byte of a number has a top bit of 0. */
static int64_t measure_events(const struct plan *plan, const unsigned char *bytes, int64_t buffered, int64_t count)
{
    enum { BLOCK_WORDS = 32, BLOCK_BYTES = 8 * BLOCK_WORDS };
    const uint64_t ones = UINT64_C(0x0101010101010101);
    int64_t left = count * plan->num_values, at = 0;
    uint64_t word;
    while (left >= BLOCK_BYTES && buffered - at >= BLOCK_BYTES) {
        /* Byte k of `sums` counts the numbers that end in byte k of a word. Compilers can vectorise such a loop. */
        uint64_t sums = 0;
        for (int k = 0; k < BLOCK_WORDS; k++) {
            memcpy(&word, bytes + at + 8 * k, sizeof(word));
            sums += ~word >> 7 & ones;
        }
        for (int shift = 0; shift < 64; shift += 8) left -= (int)(sums >> shift & 0xff);
        at += BLOCK_BYTES;
    }
    while (left >= 8 && buffered - at >= 8) {
        memcpy(&word, bytes + at, sizeof(word));
        left -= (int)(((~word >> 7 & ones) * ones) >> 56);
        at += 8;
    }
    while (left > 0 && at < buffered) left -= bytes[at++] < 0x80;
    return left == 0 ? at : -1;
}

/* --- decoding a batch --- */

/* Decodes a number. Returns the address after it, or NULL if it has more than 64 bits. Numbers of up to four bytes are
 * decoded without branches, because their lengths are unpredictable. */
static inline const unsigned char *take_value(const unsigned char *at, const unsigned char *end, uint64_t *value)
{
    const uint64_t word = end - at >= 8 ? (uint64_t)lr_word_at(at) | (uint64_t)lr_word_at(at + 4) << 32 : UINT64_MAX;
    const uint64_t ends = ~word & 0x80808080u;
    if (ends == 0) {
        uint64_t found = *at & 0x7f;
        for (int shift = 7; *at++ & 0x80; shift += 7) {
            if (shift == 63 && *at > 1) return NULL;
            found |= (uint64_t)(*at & 0x7f) << shift;
        }
        *value = found;
        return at;
    }
    const uint64_t upto = ends ^ (ends - 1); /* all bits up to the number's end */
    const uint64_t digits = word & upto & 0x7f7f7f7fu;
    *value = (digits & 0x7f) | (digits >> 1 & 0x3f80) | (digits >> 2 & 0x1fc000) | (digits >> 3 & 0xfe00000);
    const uint64_t lengths = upto & 0x01010101u; /* one bit per byte */
    return at + (lengths * 0x01010101u >> 24 & 0xff);
}

/* The value of a number, as lr_yardl_integer gives it. */
static int64_t whole_number(uint64_t number, bool is_signed)
{
    if (is_signed) return number & 1 ? -(int64_t)(number >> 1) - 1 : (int64_t)(number >> 1);
    return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

/* Decodes the events of a span. False if the span is damaged. */
static bool decode_span(const struct batch *batch, struct share *share, int64_t number)
{
    const struct span *span = &batch->spans[number];
    const struct plan *plan = &batch->plan;
    const unsigned char *at = span->bytes;
    lr_event *events = batch->events + share->first;
    for (int64_t k = 0; k < span->count; k++) {
        uint64_t values[MAX_VALUES];
        for (int v = 0; v < plan->num_values; v++) {
            at = take_value(at, span->end, &values[v]);
            if (at == NULL) return false;
        }
        const struct coincidence coincidence = {
            .bins = {whole_number(values[plan->at[0]], plan->is_signed[0]),
                     whole_number(values[plan->at[1]], plan->is_signed[1])},
            .tof = plan->at[2] >= 0 ? whole_number(values[plan->at[2]], plan->is_signed[2]) : 0};

        lr_event *event = &events[share->count];
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
            if (!is_in_mask(batch->crystals, &span->list, &coincidence, modules) && share->num_excluded++ == 0) {
                share->excluded_span = number;
                memcpy(share->excluded, modules, sizeof(modules));
            }
        }
        share->count++;
    }
    share->found[span->list.is_delayed ? 1 : 0] += span->count;
    return true;
}

static void decode_shares(void *user, int64_t begin, int64_t end)
{
    struct batch *batch = user;
    for (int64_t s = begin; s < end; s++) {
        struct share *share = &batch->shares[s];
        share->damaged = -1;
        for (int64_t k = share->begin; k < share->end && share->damaged < 0; k++) {
            const struct share before = *share;
            if (!decode_span(batch, share, k)) {
                *share = before;
                share->damaged = k;
            }
        }
        if (batch->sink != NULL && batch->sink->look != NULL)
            batch->sink->look(batch->sink->user, batch->events + share->first, share->count);
    }
}

/* --- the reader --- */

struct reader {
    struct lr_petsird petsird;
    const lr_events_source *source;
    struct lr_event_stream *stream;
    double num_bytes; /* bytes of the file after its header */
    struct file_crystals crystals;
    struct batch batches[2];
    struct batch *batch;    /* batch being collected */
    struct batch *decoding; /* batch that other threads are decoding; NULL = none */
    const void *buffer;     /* input buffer that holds the bytes of `decoding` */
    bool is_reading_again;  /* damaged spans are being read again; no batch is decoded at this time */
    lr_event_counts *counts;
    struct lr_event_times times;
    int64_t other_blocks, moves, singles;
    struct event_list list;
    int64_t bytes_at_once;
    int64_t longest_span; /* number of events that fit into bytes_at_once even if all numbers are as long as possible */
    bool is_planned;      /* the layout of the list's events is known */
    bool may_repeat;      /* the file has more rows of event lists than types of modules, so a row may be a copy */
    bool is_repeat;       /* the current row is a copy of the previous row */
    uint64_t digest;      /* digest of the current row */
    struct coincidence coincidence;
    char first_unknown[96], first_excluded[96];
};

/* --- events one by one --- */

static void count_unknown(struct reader *reader, const struct event_list *list, int end, int64_t bin)
{
    if (reader->counts->unknown_crystals++ == 0) {
        snprintf(reader->first_unknown, sizeof(reader->first_unknown), "detection bin %lld of module type %d at %u ms",
                 (long long)bin, list->types[end], (unsigned)list->start_ms);
    }
}

/* Counts an event whose modules the file's mask excludes. */
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
    reader->digest = lr_hash_add(reader->digest, (uint64_t)number);
    reader->digest ^= reader->digest >> 29;
}

/* Reads the two bins of an event, or its time of flight. */
static lr_status take_numbers(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct coincidence *coincidence = &((struct reader *)user)->coincidence;
    struct lr_yardl_list list;
    if (strcmp(input->field, "tofIdx") == 0) return lr_yardl_integer(input, type, &coincidence->tof);
    LR_TRY(lr_yardl_list(input, type, &list));
    if (list.count != 2) return lr_yardl_error(input, "a coincidence has %lld ends", (long long)list.count);
    LR_TRY(lr_yardl_integer(input, list.item, &coincidence->bins[0]));
    return lr_yardl_integer(input, list.item, &coincidence->bins[1]);
}

/* Reads events number by number, so that any damage is logged. */
static lr_status take_one_by_one(struct reader *reader, const struct lr_yardl_type *type, int64_t count)
{
    static const struct lr_yardl_field fields[] = {
        {"detectionBins", true, take_numbers, NULL}, {"tofIdx", false, take_numbers, NULL}, {0}};
    const struct file_crystals *crystals = &reader->crystals;
    const struct event_list *list = &reader->list;
    struct coincidence *coincidence = &reader->coincidence;
    coincidence->tof = 0;
    for (int64_t k = 0; k < count; k++) {
        LR_TRY(lr_yardl_record(reader->petsird.input, type, fields, reader));
        digest(reader, coincidence->bins[0]);
        digest(reader, coincidence->bins[1]);
        digest(reader, coincidence->tof);
        if (reader->is_repeat) {
            reader->counts->repeated++;
            continue;
        }

        *(list->is_delayed ? &reader->counts->delayeds : &reader->counts->prompts) += 1;
        lr_event event;
        int64_t modules[2];
        const enum fate fate = event_of(crystals, list, coincidence, &event);
        if (fate == DAMAGED) {
            return lr_yardl_error(reader->petsird.input,
                                  "an event of module types %d and %d has time-of-flight bin %lld of %d: "
                                  "the file is damaged",
                                  list->types[0], list->types[1], (long long)coincidence->tof,
                                  list->pair->num_edges > 1 ? list->pair->num_edges - 1 : 1);
        }
        if (fate == UNKNOWN) {
            count_unknown(reader, list, event.crystals[0] >= 0, coincidence->bins[event.crystals[0] >= 0]);
            continue;
        }
        if (crystals->has_mask && !is_in_mask(crystals, list, coincidence, modules))
            count_excluded(reader, list, modules);
        LR_TRY(lr_event_stream_add(reader->stream, &event));
    }
    return LR_OK;
}

/* --- events in batches --- */

/* Waits for the batch that is being decoded, and gives its events to the sink. */
static lr_status finish_decoding(struct reader *reader)
{
    struct batch *batch = reader->decoding;
    if (batch == NULL) return LR_OK;
    lr_parallel_end(&batch->decoding);
    reader->decoding = NULL; /* set first, because the calls below may call this function */

    /* Adds up the results of the shares up to the first damage, and moves their events to the front. */
    lr_event_counts *counts = reader->counts;
    const struct span *spans = batch->spans;
    int64_t count = 0, damaged = -1;
    for (int64_t k = 0; k < batch->num_shares && damaged < 0; k++) {
        const struct share *share = &batch->shares[k];
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
            memmove(batch->events + count, batch->events + share->first, (size_t)share->count * sizeof(*batch->events));
        count += share->count;
        damaged = share->damaged;
    }

    lr_status status = lr_event_stream_add_many(reader->stream, batch->events, count);
    if (status == LR_OK && damaged >= 0) {
        /* Reads the spans again event by event, beginning with the damaged one. Spans after the damaged one may be
         * good. */
        struct lr_yardl_input *input = reader->petsird.input;
        const bool is_before = reader->buffer != input->now.buffer;
        if (is_before) lr_yardl_swap(input);
        reader->is_reading_again = true;
        for (int64_t k = damaged; k < batch->num_spans && status == LR_OK; k++) {
            const struct span *span = &spans[k];
            const struct event_list list = reader->list;
            const struct lr_event_times times = reader->times;
            const int64_t time_marks = counts->time_marks;
            int64_t left, after;
            const int64_t back = lr_yardl_buffered(input, &left) - span->bytes;
            reader->list = span->list;
            reader->times = span->times;
            counts->time_marks = span->time_marks;
            lr_yardl_move(input, -back);
            status = take_one_by_one(reader, span->list.item, span->count);
            if (status != LR_OK) break;

            (void)lr_yardl_buffered(input, &after);
            lr_yardl_move(input, after - left);
            reader->list = list;
            reader->times = times;
            counts->time_marks = time_marks;
        }
        reader->is_reading_again = false;
        if (is_before) lr_yardl_swap(input);
    }
    batch->num_spans = batch->num_shares = batch->num_events = 0;
    return status;
}

/* Finishes the batch that is being decoded, and starts to decode the collected batch. */
static lr_status next_batch(void *user)
{
    struct reader *reader = user;
    const double left = (double)lr_yardl_left(reader->petsird.input);
    LR_TRY(lr_event_stream_report(reader->stream, reader->num_bytes - left, reader->num_bytes));
    LR_TRY(finish_decoding(reader));
    if (reader->is_reading_again || reader->batch->num_spans == 0) return LR_OK;
    LR_TRY(lr_event_stream_flush(reader->stream));
    struct batch *batch = reader->batch;
    if (lr_event_stream_skips(reader->stream)) {
        batch->num_spans = batch->num_shares = batch->num_events = 0;
        return LR_OK;
    }

    /* If the sink offers memory, the events of all spans are decoded into it. */
    const lr_event_sink *sink = reader->stream->sink;
    if (sink->room != NULL) {
        batch->events = sink->room(sink->user, batch->num_events);
    } else {
        if (batch->num_events > batch->room_for_events) {
            free(batch->own);
            batch->room_for_events = 0;
            batch->own = lr_resize(NULL, batch->num_events, sizeof(*batch->own), "events", reader->petsird.log);
            if (batch->own != NULL) batch->room_for_events = batch->num_events;
        }
        batch->events = batch->own;
    }
    if (batch->events == NULL) return LR_FAILED;
    batch->decoding = (struct lr_parallel){
        .threads = batch->threads, .count = batch->num_shares, .grain = 1, .plain_body = decode_shares, .user = batch};
    lr_parallel_begin(&batch->decoding);

    reader->decoding = batch;
    reader->buffer = reader->petsird.input->now.buffer;
    reader->batch = batch == &reader->batches[0] ? &reader->batches[1] : &reader->batches[0];
    reader->batch->plan = batch->plan;
    return LR_OK;
}

/* Gives all events that were read to the sink. */
static lr_status finish_batches(void *user)
{
    LR_TRY(next_batch(user));
    return finish_decoding(user);
}

/* Adds a span of the next events, at most `most`, if the buffer holds all their bytes. *count: events added. */
static lr_status add_span(struct reader *reader, int64_t most, int64_t *count)
{
    struct lr_yardl_input *input = reader->petsird.input;
    struct span span = {.list = reader->list,
                        .count = most < reader->longest_span ? most : reader->longest_span,
                        .time_marks = reader->counts->time_marks,
                        .times = reader->times};
    struct batch *batch;
    int64_t buffered, bytes;
    bool any = true;
    *count = 0;
    for (;;) {
        batch = reader->batch; /* lr_yardl_more may have started a new batch */
        span.bytes = lr_yardl_buffered(input, &buffered);
        bytes = measure_events(&batch->plan, span.bytes, buffered, span.count);
        if (bytes >= 0) break;
        if (!any) return LR_OK;
        LR_TRY(lr_yardl_more(input, &any));
    }
    *count = span.count;
    span.end = span.bytes + bytes;

    /* A new share begins after EVENTS_PER_SHARE events, so that threads have equal work. */
    const lr_log *log = batch->crystals->petsird->log;
    LR_TRY(lr_grow(&batch->spans, &batch->room_for_spans, batch->num_spans + 1,
                   &(struct lr_items){sizeof(*batch->spans), "lists of events", log}));
    if (batch->num_shares == 0 || batch->num_events - batch->shares[batch->num_shares - 1].first >= EVENTS_PER_SHARE) {
        LR_TRY(lr_grow(&batch->shares, &batch->room_for_shares, batch->num_shares + 1,
                       &(struct lr_items){sizeof(*batch->shares), "lists of events", log}));
        batch->shares[batch->num_shares++] = (struct share){.begin = batch->num_spans, .first = batch->num_events};
    }
    span.first = batch->num_events;
    batch->spans[batch->num_spans++] = span;
    batch->num_events += span.count;
    batch->shares[batch->num_shares - 1].end = batch->num_spans;

    lr_yardl_move(input, bytes);
    return batch->num_events >= EVENTS_PER_BATCH ? next_batch(reader) : LR_OK;
}

/* --- time blocks --- */

/* Reads the events of a list. If the file ends within the list, the list's events are read one by one, up to the
   error. */
static lr_status take_events(struct reader *reader, const struct lr_yardl_list *list)
{
    int64_t left = list->count;
    reader->list.pair = lr_petsird_tof(&reader->petsird, reader->list.types, &reader->list.sign);
    if (reader->list.item != list->item) {
        /* Prompts and delayeds have different types, but usually the same layout. */
        struct plan plan;
        reader->is_planned = make_plan(list->item, &plan);
        bool same = plan.num_values == reader->batch->plan.num_values;
        for (int k = 0; k < 3; k++)
            same = same && plan.at[k] == reader->batch->plan.at[k] &&
                   plan.is_signed[k] == reader->batch->plan.is_signed[k];

        if (!same) {
            LR_TRY(finish_batches(reader));
            reader->batch->plan = plan;
        }
        if (reader->is_planned) {
            const int64_t most = reader->bytes_at_once / (LR_YARDL_LONGEST * plan.num_values);
            reader->longest_span = most < EVENTS_PER_SHARE ? most : EVENTS_PER_SHARE;
        }
        reader->list.item = list->item;
    }

    int64_t count = reader->is_planned && !reader->may_repeat ? left : 0;
    while (left > 0 && count > 0) {
        LR_TRY(add_span(reader, left, &count));
        left -= count;
    }
    if (left == 0) return LR_OK;
    LR_TRY(finish_batches(reader));
    return take_one_by_one(reader, list->item, left);
}

/* Reads the lists [type1][type2] of prompts or delayeds. There may be more rows than types, because PETSIRD's Python
 * generator adds a row for every entry that it fills. The number of rows shows which rows are repeated. n is the number
 * of types.
 * n * n rows: each row occurs n times.
 * n * (n + 1) / 2 rows: row k occurs k + 1 times.
 * Any other number above n: only the last row is repeated. */
static lr_status take_lists(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct reader *reader = user;
    const int num_types = reader->petsird.num_types;
    const int64_t n = num_types;
    struct lr_yardl_list rows, columns, list;
    uint64_t before = 0;
    int64_t row = -1, of = -1;
    reader->list.is_delayed = strcmp(input->field, "delayedEvents") == 0;
    LR_TRY(lr_yardl_list(input, type, &rows));
    reader->may_repeat = rows.count > n;
    for (int64_t i = 0; i < rows.count; i++) {
        if (rows.count == n * n && reader->may_repeat)
            of = i / n;
        else if (rows.count == n * (n + 1) / 2 && reader->may_repeat)
            of += (of + 1) * (of + 2) / 2 <= i;
        else
            of = i < n || !reader->may_repeat ? i : n - 1;
        reader->is_repeat = of == row;
        reader->digest = 0;
        LR_TRY(lr_yardl_list(input, rows.item, &columns));
        digest(reader, columns.count);
        for (int64_t j = 0; j < columns.count; j++) {
            LR_TRY(lr_yardl_list(input, columns.item, &list));
            digest(reader, list.count);
            if (j >= n && list.count > 0) {
                return lr_yardl_error(input, "%lld events of module types %d and %lld, and there are %d types",
                                      (long long)list.count, (int)of, (long long)j, num_types);
            }
            if (list.count > 0) {
                reader->list.types[0] = (int)of;
                reader->list.types[1] = (int)j;
                LR_TRY(take_events(reader, &list));
            }
        }

        if (reader->is_repeat && reader->digest != before) {
            return lr_yardl_error(input,
                                  "%lld rows of event lists for %d types of modules, of which row "
                                  "%lld repeats none: which types it is of is not known",
                                  (long long)rows.count, num_types, (long long)i);
        }
        before = reader->digest;
        row = of;
    }
    return LR_OK;
}

/* Reads the start or stop of a time block. */
static lr_status take_time(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct reader *reader = user;
    const bool is_start = strcmp(input->field, "start") == 0;
    int64_t value;
    LR_TRY(lr_yardl_integer(input, type, &value));
    if (value > UINT32_MAX) value = UINT32_MAX;
    if (is_start) reader->list.start_ms = value < 0 ? 0 : (uint32_t)value;
    lr_event_times_add(&reader->times, is_start ? reader->list.start_ms : (uint64_t)value);
    return LR_OK;
}

static const struct lr_yardl_field interval_fields[] = {
    {"start", true, take_time, NULL}, {"stop", false, take_time, NULL}, {0}};

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

/* Notes the names of the fields of blocks and of their events, because newer versions may have more fields. */
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
                                                   {"promptEvents", true, take_lists, NULL},
                                                   {"delayedEvents", false, take_lists, NULL},
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

/* --- the file --- */

static lr_status read_header(struct reader *reader)
{
    struct lr_petsird *petsird = &reader->petsird;
    const lr_events_source *source = reader->source;
    lr_events_info *info = reader->stream->info;
    LR_TRY(lr_petsird_open(petsird, source->path, source->log));
    if (reader->stream->sink != NULL || source->scanner != NULL || lr_petsird_compare(petsird).has_kinds) {
        int32_t *numbers = lr_alloc(petsird->num_crystals, sizeof(*numbers), "numbers of crystals", petsird->log);
        reader->crystals.crystal_of = numbers;
        if (numbers == NULL) return LR_FAILED;
        if (source->scanner != NULL)
            LR_TRY(lr_petsird_match(petsird, source->scanner, numbers));
        else
            for (int64_t k = 0; k < petsird->num_crystals; k++) numbers[k] = (int32_t)k;
    }

    snprintf(info->version, sizeof(info->version), "%s", petsird->version);
    snprintf(info->scanner, sizeof(info->scanner), "%s", petsird->name);
    const int count = source->scanner != NULL ? source->scanner->num_crystals : (int)petsird->num_crystals;
    LR_TRY(lr_petsird_fill_info(petsird, reader->crystals.crystal_of, count, info));
    if (reader->stream->sink == NULL) return LR_OK;
    if (source->scanner != NULL) lr_petsird_warn_apart(petsird, source->scanner, reader->crystals.crystal_of);

    /* Before the events are read, warns about properties of the header that the model lacks. */
    const struct lr_petsird_range *bins = &petsird->bin_efficiencies;
    const struct lr_petsird_range *pairs = &petsird->pair_efficiencies;
    if (bins->count > 0 && (bins->low != 1 || bins->high != 1)) {
        lr_warn(petsird->log,
                "%s: efficiencies of detection bins (%lld numbers, %g to %g) are passed over: give "
                "them beside the file",
                petsird->path, (long long)bins->count, bins->low, bins->high);
    }
    if (pairs->count > 0 && (pairs->low != 1 || pairs->high != 1)) {
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
    return lr_petsird_log_notes(petsird);
}

static lr_status read_events(struct reader *reader)
{
    struct lr_petsird *petsird = &reader->petsird;
    struct lr_yardl_input *input = petsird->input;
    reader->crystals.has_mask = lr_petsird_has_mask(petsird);
    const int threads = reader->source->threads;
    for (int k = 0; k < 2; k++) {
        reader->batches[k].crystals = &reader->crystals;
        reader->batches[k].sink = reader->stream->sink;
        reader->batches[k].threads = threads > 0 ? threads : lr_num_processors();
    }
    reader->batch = &reader->batches[0];

    reader->num_bytes = (double)lr_yardl_left(input);
    const int64_t piece = lr_yardl_left(input) / PIECES;
    reader->bytes_at_once = piece < LEAST_BYTES ? LEAST_BYTES : piece > MOST_BYTES ? MOST_BYTES : piece;
    LR_TRY(lr_yardl_widen(input, reader->bytes_at_once, finish_batches, next_batch, reader));
    struct lr_yardl_list list;
    do {
        LR_TRY(lr_yardl_list(input, petsird->blocks, &list));
        for (int64_t k = 0; k < list.count; k++) LR_TRY(take_block(reader, list.item));
    } while (list.count > 0);
    LR_TRY(finish_batches(reader));
    if (lr_yardl_left(input) > 0) {
        return lr_yardl_error(input, "%lld bytes follow after the last time block: the file is damaged",
                              (long long)lr_yardl_left(input));
    }
    LR_TRY(lr_event_stream_flush(reader->stream));

    const lr_event_counts *counts = reader->counts;
    if (counts->repeated > 0) {
        lr_warn(petsird->log,
                "%s: rows of its event lists stand there more than once: %lld repeated events are left out",
                petsird->path, (long long)counts->repeated);
    }
    if (counts->excluded_pairs > 0) {
        lr_warn(petsird->log,
                "%s: %lld of its %lld events are of pairs of modules that its own table puts out "
                "of coincidence, first %s",
                petsird->path, (long long)counts->excluded_pairs, (long long)(counts->prompts + counts->delayeds),
                reader->first_excluded);
    }
    if (reader->moves > 0) {
        lr_warn(petsird->log, "%s: tells %lld times of movements of bed or gantry, which are passed over",
                petsird->path, (long long)reader->moves);
    }
    if (reader->other_blocks > reader->moves) {
        lr_info(petsird->log, "%s: %lld time blocks without events passed over", petsird->path,
                (long long)(reader->other_blocks - reader->moves));
    }
    if (reader->singles > 0)
        lr_info(petsird->log, "%s: %lld single events passed over", petsird->path, (long long)reader->singles);
    LR_TRY(lr_petsird_log_notes(petsird));
    return lr_events_judge_unknown(reader->source, counts, reader->first_unknown);
}

static bool recognises(const struct lr_file_head *head)
{
    return lr_head_begins(head, "yardl", 5);
}

static lr_status read_file(const lr_events_source *source, struct lr_event_stream *stream)
{
    struct reader reader = {.source = source, .stream = stream, .counts = &stream->info->counts};
    reader.crystals.petsird = &reader.petsird;
    lr_status status = read_header(&reader);
    if (status == LR_OK && stream->sink != NULL) status = read_events(&reader);
    stream->info->duration_s = 1e-3 * (double)(reader.times.last_ms - reader.times.first_ms);
    free(reader.crystals.crystal_of);
    if (reader.decoding != NULL)
        lr_parallel_end(&reader.decoding->decoding); /* after a failure, a batch may still be being decoded */
    for (int k = 0; k < 2; k++) {
        struct batch *batch = &reader.batches[k];
        lr_free_all(batch->spans, batch->shares, batch->own);
    }

    lr_petsird_close(&reader.petsird);
    return status;
}

const struct lr_event_format lr_petsird_format = {"PETSIRD", ".petsird", recognises, read_file, &lr_petsird_writing};
