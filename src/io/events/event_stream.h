/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The stream of events from a file to a sink, shared by all readers of list mode. */
#pragma once

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
    lr_events_info *info;      /* never NULL; the reader of the format updates info->counts */
    int64_t num_added;         /* number of events so far */
    bool is_refused;           /* true if the sink has ended the reading */
    double reported, total;    /* `done` and `total` of the last report of progress */
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

/* Gives the waiting events to the sink. Then gives `events`, all of weight 1, to the sink in one call. */
lr_status lr_event_stream_add_many(struct lr_event_stream *stream, const lr_event *events, int64_t count);

/* Gives the waiting events to the sink. */
lr_status lr_event_stream_flush(struct lr_event_stream *stream);

/* Reports that `done` of `total` bytes or events are read. At most a thousand reports per file are passed on. errors:
 * LR_CANCELLED. */
lr_status lr_event_stream_report(struct lr_event_stream *stream, double done, double total);

/* Reports the file's current position and its size. errors: LR_CANCELLED. */
lr_status lr_event_stream_report_place(struct lr_event_stream *stream, FILE *file);

/* First and last time of a file's events. Their difference is the duration if the file does not state one. A struct of
 * zeros has no time yet. */
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

/* The writer of a format. */
struct lr_event_writing {
    void *(*create)(const lr_events_writer_params *params);                 /* NULL after a logged error */
    lr_status (*take)(void *writer, const lr_event *events, int64_t count); /* `take` of an lr_event_sink */
    lr_status (*finish)(void *writer);                                      /* also frees the writer, like abandon */
    void (*abandon)(void *writer);
};

/* A format of list mode. A new format needs a file that defines it, and a row in lr/events.h. */
struct lr_event_format {
    const char *name;                                    /* name for messages: "SAFIR" */
    const char *ending;                                  /* ending of names, used if no format fits the bytes */
    bool (*recognises)(const struct lr_file_head *head); /* recognises the format by the first bytes; NULL = only the
                                                            ending counts */
    /* Fills in the stream's info, then gives events to the stream and counts them. Flushes the stream before it checks
     * the file as a whole. NULL = the format is not read. */
    lr_status (*read)(const lr_events_source *source, struct lr_event_stream *stream);
    const struct lr_event_writing *writing; /* NULL = the format is not written */
};

#define LR_DECLARE_EVENT_FORMAT(name, reader, words) extern const struct lr_event_format lr_##reader##_format;
LR_EACH_EVENT_FORMAT(LR_DECLARE_EVENT_FORMAT)
extern const struct lr_event_writing lr_petsird_writing, lr_castor_writing;

/* Recognises a format by the first bytes or, if no format fits the bytes, by the name. */
lr_events_format lr_events_head_format(const struct lr_file_head *head);

extern const struct lr_known_keys lr_castor_header_keys, lr_siemens_keys, lr_siemens_words, lr_safir_fields, lr_ge_keys;

/* Warns about events whose crystals the scanner lacks. errors: LR_BAD_INPUT if the scanner lacks a crystal of every
 * event. */
lr_status lr_events_judge_unknown(const lr_events_source *source, const lr_event_counts *counts, const char *first);

/* Checks that the source names a scanner, which formats without crystal positions need. errors: LR_USAGE if there is no
 * scanner; LR_BAD_INPUT if there is no scanner and the file cannot be opened. */
lr_status lr_events_need_scanner(const lr_events_source *source, const struct lr_event_format *format);

/* Gives the weight of an event as the number of times that list mode repeats the event. errors: LR_USAGE if the weight
 * is not a whole number. */
lr_status lr_event_repeats(const lr_event *event, const char *path, int64_t *repeats, const lr_log *log);
