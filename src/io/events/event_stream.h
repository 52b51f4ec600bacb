/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the readers of list mode share: events on their way from a file to a sink. */
#ifndef LR_IO_EVENT_STREAM_H
#define LR_IO_EVENT_STREAM_H

#include "io/files/keyed_text.h"
#include "io/files/regular_file.h"

#include <lr/events.h>

enum { LR_EVENTS_AT_ONCE = 1 << 16 };

/* Events, collected and given to the sink some at a time. One thread. */
struct lr_event_stream {
    const lr_events_source *source;
    const lr_event_sink *sink; /* NULL = only the information before the events is wanted */
    lr_events_info *info;      /* never NULL; its counts are the reader's to keep */
    int64_t num_added;         /* events so far */
    bool is_refused;           /* whether the sink has ended the reading */
    int waiting;
    lr_event events[LR_EVENTS_AT_ONCE];
};

/* Adds one event of a file; a status other than LR_OK is the sink's and ends the reading. */
lr_status lr_event_stream_add(struct lr_event_stream *stream, const lr_event *event);

/* True if the next events are not wanted; asks the source once for each time that events would go to the sink. */
static inline bool lr_event_stream_skips(const struct lr_event_stream *stream)
{
    const lr_events_source *source = stream->source;
    return source->skips != NULL && !source->until_damage && source->skips(source->user);
}

/* Asks the sink for memory for the next events, so that giving them to it copies nothing: *room is [count], or NULL
 * where the sink has none. errors: LR_FAILED if memory runs out. */
lr_status lr_event_stream_room(struct lr_event_stream *stream, int64_t count, lr_event **room);

/* Gives many events of weight 1 to the sink at once, behind those that wait. */
lr_status lr_event_stream_hand(struct lr_event_stream *stream, const lr_event *events, int64_t count);

/* Gives the events that wait to the sink. */
lr_status lr_event_stream_flush(struct lr_event_stream *stream);

/* First and last time, for a duration that the file does not give. Zero has no time yet. */
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

/* Recognises a format by the first bytes, or else by the name. */
lr_events_format lr_events_head_format(const struct lr_file_head *head);

/* True if the file begins as SAFIR list mode does. */
bool lr_safir_recognises(const struct lr_file_head *head);

/* True for HDF5 that holds GE's list mode. */
bool lr_ge_recognises(const struct lr_file_head *head);

bool lr_castor_header_recognises(const struct lr_file_head *head);

extern const struct lr_known_keys lr_castor_header_keys, lr_siemens_keys;

/* The readers, one per format: fill in the stream's info, then give the events to the stream and count them. Each
 * flushes the stream before it judges the file as a whole. */
lr_status lr_safir_events(const lr_events_source *source, struct lr_event_stream *stream);
lr_status lr_siemens_events(const lr_events_source *source, struct lr_event_stream *stream);
lr_status lr_petsird_events(const lr_events_source *source, struct lr_event_stream *stream);
lr_status lr_castor_events(const lr_events_source *source, struct lr_event_stream *stream);
lr_status lr_ge_events(const lr_events_source *source, struct lr_event_stream *stream);

/* Warns of events whose crystals the scanner lacks; LR_BAD_INPUT where all events are such. */
lr_status lr_events_judge_unknown(const lr_events_source *source, const lr_event_counts *counts, const char *first);

/* Makes sure that a scanner is there, for formats whose crystals mean nothing without one. */
lr_status lr_events_need_scanner(const lr_events_source *source);

/* The writers behind lr_events_writer, one per format: create returns NULL, logged; take is a sink's; finish and
 * abandon free the writer. */

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

/* Gives how often an event is written: its weight, which must be whole. errors: LR_USAGE. */
lr_status lr_event_repeats(const lr_event *event, const char *path, int64_t *repeats, const lr_log *log);

/* Half of the distance that light travels in a picosecond: mm along a line for each ps between the arrivals at its
 * ends. */
#define LR_MM_PER_PS (0.5 * 0.299792458)

#endif
