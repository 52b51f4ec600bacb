/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon by several ranks: the part of a file that is this rank's. Files are read twice, in pieces: to learn what
 * there is, by which it is dealt, and to keep what is this rank's own. */
#ifndef LR_CLI_RECON_EVENT_SHARE_H
#define LR_CLI_RECON_EVENT_SHARE_H

#include <lr/events.h>

struct measurement;

/* Events of a frame, or of the whole list. */
struct event_share_frame {
    int64_t prompts;  /* in the file, also those out of coincidence */
    int64_t kept;     /* of them in coincidence, of all ranks */
    int64_t left_out; /* the others */
    int64_t first;    /* of this rank's, in its list */
    int64_t *ranges;  /* owned [subsets + 1] of this rank's, from the frame's first; NULL = not asked for */
    int64_t *begins;  /* owned [subsets + 1] of the ranges of all ranks */
    int64_t *from;    /* owned [subsets] where this rank's slice of each begins among them */
    uint64_t digest;  /* of those that are kept */
    double *ends;     /* owned [num_crystals] of delayeds in coincidence; NULL = there are none */
    int64_t seen;     /* while the file is read: those kept so far */
    int subset;       /* and the range that the next one belongs to */
};

/* Events that were handed on together, of a list without frames. */
struct event_share_batch {
    int64_t handed, kept;
};

/* The events that a file holds, as all ranks see it. Zero: there is one process, which has them all. */
struct event_share {
    struct event_share_frame *frames; /* owned [num_frames]; of a list without frames one */
    int num_frames;
    int64_t handed;                    /* events of the file */
    struct event_share_batch *batches; /* owned [num_batches] how they were handed on */
    int64_t num_batches, room_for_batches;
    double times_s[2]; /* of the first and the last event */
    double duration_s; /* as the file tells */
};

/* First pass over the file: counts and digests the events of each frame. errors: also if the ranks' files differ. */
lr_status event_share_survey(struct measurement *measured);

/* Second reading: measured->list, and what corrections say of its events, become this rank's: of each
 * frame that is asked for the slice of each subset. Batches of which no event is this rank's are passed
 * over. */
lr_status event_share_take(struct measurement *measured);

/* Makes the current frame, or the list, known as if it were read alone: counts and delayeds of all
 * ranks, ranges of subsets in this rank's list. */
lr_status event_share_open(struct measurement *measured);

void event_share_finish(struct event_share *own);

#endif
