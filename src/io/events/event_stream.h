/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The stream of events from a file to a sink, shared by all readers of list mode. */
#ifndef LR_IO_EVENT_STREAM_H
#define LR_IO_EVENT_STREAM_H

#include "base/units.h"
#include "io/files/keyed_text.h"
#include "io/files/regular_file.h"

#include <lr/events.h>
#include <stdio.h>

enum { LR_EVENTS_AT_ONCE = 1 << 16 };

/* Collects events and gives them to the sink in portions. Only one thread may use it. */
struct lr_event_stream {
    const lr_events_source *source;
    const lr_event_sink *sink; /* NULL = only the information before the events is read */
    lr_events_info *info;      /* never NULL; the reader updates its counts */
    int64_t num_added;         /* number of events so far */
    bool is_refused;           /* true if the sink has ended the reading */
    double reported, total;    /* the last report of progress */
    int waiting;
    lr_event events[LR_EVENTS_AT_ONCE];
};

/* Adds one event of a file. errors: the sink's status, which ends the reading. */
lr_status lr_event_stream_add(struct lr_event_stream *stream, const lr_event *event);

/* True if the source's `skips` asks to skip the next portion of events. Call this function once per portion. */
static inline bool lr_event_stream_skips(const struct lr_event_stream *stream)
{
    const lr_events_source *source = stream->source;
    return source->skips != NULL && !source->until_damage && source->skips(source->user);
}

/* Gives the waiting events to the sink, then `count` events of weight 1 in one call. */
lr_status lr_event_stream_add_many(struct lr_event_stream *stream, const lr_event *events, int64_t count);

/* Gives the waiting events to the sink. */
lr_status lr_event_stream_flush(struct lr_event_stream *stream);

/* Reports that `done` of `total` bytes or events are read. At most a thousand reports per file are passed on. errors:
 * LR_CANCELLED. */
lr_status lr_event_stream_report(struct lr_event_stream *stream, double done, double total);

/* Reports the file's current position and its size. errors: LR_CANCELLED. */
lr_status lr_event_stream_report_place(struct lr_event_stream *stream, FILE *file);

/* First and last time of a file's events. Their difference is the duration if the file does not state one. All zero =
 * no time yet. */
struct lr_event_times {
    bool any;
    uint64_t first_ms, last_ms;
};

static inline void lr_event_times_add(struct lr_event_times *times, uint64_t time_ms)
{
    if (!times->any) {
        times->any = true;
        times->first_ms = times->last_ms = time_ms;
    }
    times->first_ms = time_ms < times->first_ms ? time_ms : times->first_ms;
    times->last_ms = time_ms > times->last_ms ? time_ms : times->last_ms;
}

/* Recognises a format by the first bytes, else by the name. */
lr_events_format lr_events_head_format(const struct lr_file_head *head);

/* True if the file begins like SAFIR list mode. */
bool lr_safir_recognises(const struct lr_file_head *head);

extern const struct lr_known_keys lr_castor_header_keys, lr_siemens_keys, lr_siemens_words, lr_safir_fields, lr_ge_keys;

/* The readers, one per format. A reader fills in the stream's info, then gives events to the stream and counts them. It
 * flushes the stream before it judges the file as a whole. */
lr_status lr_safir_events(const lr_events_source *source, struct lr_event_stream *stream);
lr_status lr_siemens_events(const lr_events_source *source, struct lr_event_stream *stream);
lr_status lr_petsird_events(const lr_events_source *source, struct lr_event_stream *stream);
lr_status lr_castor_events(const lr_events_source *source, struct lr_event_stream *stream);
lr_status lr_ge_events(const lr_events_source *source, struct lr_event_stream *stream);

/* Warns about events whose crystals the scanner lacks. errors: LR_BAD_INPUT if the scanner lacks a crystal of every
 * event. */
lr_status lr_events_judge_unknown(const lr_events_source *source, const lr_event_counts *counts, const char *first);

/* Checks that the source names a scanner. Formats that do not store places of crystals need one. errors: LR_USAGE if
 * there is no scanner; LR_BAD_INPUT if, moreover, the file cannot be opened. */
lr_status lr_events_need_scanner(const lr_events_source *source);

/* The writers that lr_events_writer calls, one per format. create returns NULL after a logged error. take is a function
 * of an lr_event_sink. finish and abandon free the writer. */

struct lr_petsird_writer;
struct lr_petsird_writer *lr_petsird_writer_create(const lr_events_writer_params *params);
lr_status lr_petsird_writer_take(void *writer, const lr_event *events, int64_t count);
lr_status lr_petsird_writer_finish(struct lr_petsird_writer *writer);
void lr_petsird_writer_abandon(struct lr_petsird_writer *writer);

struct lr_castor_writer;
struct lr_castor_writer *lr_castor_writer_create(const lr_events_writer_params *params);
lr_status lr_castor_writer_take(void *writer, const lr_event *events, int64_t count);
lr_status lr_castor_writer_finish(struct lr_castor_writer *writer);
void lr_castor_writer_abandon(struct lr_castor_writer *writer);

/* Gives the number of times that list mode repeats an event, which is the event's weight. errors: LR_USAGE if the
 * weight is not a whole number. */
lr_status lr_event_repeats(const lr_event *event, const char *path, int64_t *repeats, const lr_log *log);

#endif
