/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The events of a PETSIRD file, many at a time. While one thread reads the file's structure, it finds where
 * lists of events end by counting the bytes that end numbers; several threads then make events of them.
 * Memory: at most about twice LR_PETSIRD_BATCH events, and twice LR_PETSIRD_BYTES of the file; of
 * short files less, so that what ranks have falls with their number. */
#ifndef LR_IO_PETSIRD_BATCH_H
#define LR_IO_PETSIRD_BATCH_H

#include "base/parallel.h"
#include "io/events/event_stream.h"
#include "io/events/petsird.h"

enum {
    LR_PETSIRD_BATCH = 1 << 20,
    LR_PETSIRD_BYTES = 1 << 23,
    LR_PETSIRD_PIECES = 64, /* of a file, at least, as long as they are larger than LR_PETSIRD_LEAST */
    LR_PETSIRD_LEAST = 1 << 16,
    LR_PETSIRD_SHARE = 1 << 13, /* events that a thread takes at a time, about */
    LR_PETSIRD_MAX_VALUES = 16
};

/* What events become. */
struct lr_petsird_crystals {
    const struct lr_petsird *petsird;
    int32_t *crystal_of; /* owned [num_crystals] the scanner's number, -1 = it has none */
    bool has_mask;       /* of modules that are out of coincidence */
};

/* What the events of a list have in common. */
struct lr_petsird_list {
    const struct lr_yardl_type *item; /* an event */
    int types[2];                     /* of modules */
    const struct lr_petsird_pair *pair;
    double sign; /* of time of flight, as lr_petsird_tof has it */
    uint32_t start_ms;
    bool is_delayed;
};

/* An event as it stands in the file. */
struct lr_petsird_coincidence {
    int64_t bins[2], tof;
};

enum lr_petsird_fate {
    LR_PETSIRD_TAKEN,
    LR_PETSIRD_UNKNOWN, /* has a crystal that the scanner lacks, which is -1 */
    LR_PETSIRD_DAMAGED  /* has a bin of time of flight that the file does not know */
};

/* Fills in the event. */
enum lr_petsird_fate lr_petsird_event(const struct lr_petsird_crystals *crystals, const struct lr_petsird_list *list,
                                      const struct lr_petsird_coincidence *from, lr_event *event);

/* Modules of an event whose crystals are known; whether the file's own table has them in coincidence. */
bool lr_petsird_in_mask(const struct lr_petsird_crystals *crystals, const struct lr_petsird_list *list,
                        const struct lr_petsird_coincidence *from, int64_t modules[2]);

/* Numbers of an event that are all in base 128: where among them are the two bins and the time of flight
 * (-1 = nowhere). */
struct lr_petsird_plan {
    int num_values, at[3];
    bool is_signed[3];
};

/* False for types of events that have other values, too. */
bool lr_petsird_plan_of(const struct lr_yardl_type *type, struct lr_petsird_plan *plan);
bool lr_petsird_same_plan(const struct lr_petsird_plan *a, const struct lr_petsird_plan *b);

/* Events of one list, one after the other. */
struct lr_petsird_span {
    struct lr_petsird_list list;
    const unsigned char *bytes, *end;
    int64_t count, first;        /* events; of the batch before them */
    int64_t time_marks;          /* of the file so far */
    struct lr_event_times times; /* likewise */
};

/* Spans of a thread, and what it found. */
struct lr_petsird_share {
    int64_t begin, end;    /* spans */
    int64_t first, kept;   /* events, from where in the batch */
    int64_t found[2];      /* prompts and delayeds */
    int64_t damaged;       /* the first span with a damage, of which nothing is kept; -1 = none */
    int64_t num_unknown;   /* events */
    int64_t num_excluded;  /* likewise */
    int64_t unknown_span;  /* the first event with an unknown crystal */
    int unknown_end;       /* which of its ends that is */
    int64_t unknown_bin;   /* and its detection bin */
    int64_t excluded_span; /* the first event out of coincidence */
    int64_t excluded[2];   /* and its modules */
};

struct lr_petsird_batch {
    const struct lr_petsird_crystals *crystals;
    struct lr_petsird_plan plan;
    int threads;
    const lr_event_sink *sink;     /* looks at events as they are made; NULL = none */
    struct lr_petsird_span *spans; /* owned [num_spans] */
    int64_t num_spans, room_for_spans;
    struct lr_petsird_share *shares; /* owned [num_shares] */
    int64_t num_shares, room_for_shares;
    lr_event *events; /* [num_events] where they go */
    lr_event *own;    /* owned [room_for_events] */
    int64_t num_events, room_for_events;
    struct lr_parallel decoding;
};

/* Bytes that the first `count` events take, or -1 where the bytes at hand end before. */
int64_t lr_petsird_measure(const struct lr_petsird_plan *plan, const unsigned char *bytes, int64_t at_hand,
                           int64_t count);

/* Puts a span with list, bytes, end, count, time_marks and times behind the others. errors: LR_FAILED. */
lr_status lr_petsird_batch_add(struct lr_petsird_batch *batch, const struct lr_petsird_span *span);

/* Other threads begin to make events of all spans: those of a share stand from its first on. room: [num_events] where
 * they go; NULL = to memory of the batch's own. errors: LR_FAILED without memory. */
lr_status lr_petsird_batch_begin(struct lr_petsird_batch *batch, lr_event *room);

/* Makes the rest of them, and waits. */
void lr_petsird_batch_end(struct lr_petsird_batch *batch);

/* Frees what it owns. */
void lr_petsird_batch_finish(struct lr_petsird_batch *batch);

#endif
