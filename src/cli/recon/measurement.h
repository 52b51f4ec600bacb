/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The measured data with their operator: counts per LOR (histogram.c), histo-images (views.c) or single events
 * (events.c). With several ranks, each rank has a share of the data. */
#ifndef LR_CLI_RECON_MEASUREMENT_H
#define LR_CLI_RECON_MEASUREMENT_H

#include "base/parallel.h"
#include "cli/cluster.h"
#include "cli/direct.h"
#include "cli/recon/early_sensitivity.h"
#include "cli/recon/request.h"

/* The events of a frame, or of the whole list, and this rank's share. */
struct event_share_frame {
    int64_t prompts;  /* prompts in the file, including those out of coincidence */
    int64_t kept;     /* prompts in coincidence, of all ranks */
    int64_t left_out; /* prompts out of coincidence */
    int64_t first;    /* index of this rank's first event of the frame in its list */
    int64_t *ranges;  /* owned [subsets + 1] ranges of this rank's events, from the frame's first; NULL = not
                         requested */
    int64_t *begins;  /* owned [subsets + 1] ranges of all ranks' events */
    int64_t *from;    /* owned [subsets] begin of this rank's slice of each range in `begins` */
    uint64_t digest;  /* digest of the kept events */
    double *ends;     /* owned [num_crystals] ends of delayeds in coincidence; NULL = none */
    int64_t seen;     /* number of kept events so far, while the file is read */
    int subset;       /* the range that the next event belongs to */
};

/* The numbers of events that the reader handed on together, for lists without frames. */
struct event_share_batch {
    int64_t handed, kept;
};

/* The events of a file, as seen by all ranks. Zero means that one process has all events. */
struct event_share {
    struct event_share_frame *frames; /* owned [num_frames]; one if the list has no frames */
    int num_frames;
    int64_t handed;                    /* number of events in the file */
    struct event_share_batch *batches; /* owned [num_batches] the batches in which events were handed on */
    int64_t num_batches, room_for_batches;
    double times_s[2]; /* times of the first and the last event */
    double duration_s; /* duration that the file states */
};

struct measurement;

/* One of the three kinds of data. */
struct measurement_kind {
    /* Reads scanner, grid, data, factors and images, and makes the operator; for histograms setup_operator makes it
     * later. With frames, open_frame opens data and operator. */
    lr_status (*open)(struct measurement *measured, struct cli_args *args);

    /* Opens data and operator of frame k, which are valid until close_frame. NULL: the kind has no frames. */
    lr_status (*open_frame)(struct measurement *measured, int k);
    void (*close_frame)(struct measurement *measured);

    /* Writes the kernel's settings for the key of checkpoints, like snprintf. NULL: the operator already describes all
     * of them. */
    int (*describe)(const struct measurement *measured, char *text, size_t size);
};
extern const struct measurement_kind histogram_kind, views_kind, events_kind;

/* Zero is valid, measurement_finish frees it. It must not move: operators and sources point into it. */
struct measurement {
    const struct measurement_kind *kind;
    const struct recon_request *request;
    struct setup setup; /* includes the operator */
    struct cluster cluster;
    const lr_progress *progress; /* progress of projections */
    int subsets;

    lr_lor_data *data, *delayeds, *additive; /* delayeds: NULL if the data have none */
    lr_randoms *randoms;
    double counts;       /* counts of all ranks, without delayeds */
    double additive_sum; /* list mode: sum of the additive term over all LORs, if known */

    /* This rank's share of the data; NULL and 0 mean all of the data. */
    int32_t *subset_of; /* owned [pairs, views or ranges] */
    int interleave;     /* subsets in each group that subset_of numbers */

    lr_image *initial, *kappa, *truth;
    int iterations_before; /* iterations that made the initial image */

    uint64_t digest; /* digest of the measured data of all ranks; 0 = no data */
    uint64_t beside; /* digest of corrections, time resolutions and the additive term of events */

    /* List mode, including list mode that is counted per LOR. */
    lr_event_counts events;
    lr_events_format events_format;

    /* Single events. */
    lr_event_list *list; /* prompts of this rank, in the current frame */
    int64_t *ranges;     /* owned [subsets + 1] ranges of this rank's events; NULL = cut evenly */
    lr_listmode_params listmode;
    lr_blobs blobs; /* `listmode` points to it if the image consists of blobs */
    bool has_tof;
    struct early_sensitivity early;
    struct event_share share;          /* used with several ranks */
    struct lr_background freeing;      /* frees the list's events in the background */
    lr_event_corrections *corrections; /* corrections of the list's events */
    lr_lor_source sensitivity_factors; /* factors of the sensitivity, from the corrections */

    /* Frames of list mode. */
    lr_event_list *all_events; /* the whole file's events */
    int64_t *frame_prompts;    /* owned [num_intervals] */
    int64_t frame_range[2];    /* frames of this run: the first, and the one after the last */
    int frame;                 /* the current frame */
    lr_operator *first_op;     /* the operator whose sensitivity all frames share; NULL before it is made */

    /* Histo-images. */
    struct direct_setup direct;      /* its operator is not used */
    lr_histo_images *direct_factors; /* owned; NULL = none */
};

void measurement_drop_data(struct measurement *measured);
void measurement_finish(struct measurement *measured);

/* Adds up the counts of all ranks, and refuses data without counts. */
lr_status measurement_count(struct measurement *measured);

/* True if image values are emissions; false if they have a scale that the operator defines. The operator must exist. */
bool measurement_counts_emissions(const struct measurement *measured);

/* The blobs that the operator's image consists of; NULL if it consists of voxels. */
const lr_blobs *measurement_blobs(const struct measurement *measured);

/* Evaluates the operator's image, of voxels or blobs, on the voxels of `to`. */
lr_status measurement_take_image(const struct measurement *measured, const lr_vector *image, lr_image *to);

/* --- functions that several kinds of data share --- */

/* Opens --scanner, or the scanner that the crystal map or the events describe; reads --grid; and chooses this rank's
 * device and threads. */
lr_status measurement_open_scanner(struct measurement *measured, struct cli_args *args);

/* Reads factors per LOR into setup.params. */
lr_status measurement_read_factors(struct measurement *measured);

/* Reads the initial image, the prior's weights and the true image, if they are given. */
lr_status measurement_read_images(struct measurement *measured);

/* The list-mode source that the command line names. */
lr_events_source measurement_events_source(const struct measurement *measured);

/* Takes at most `most` subsets, unless a number of them is asked for. */
void measurement_limit_subsets(struct measurement *measured, int64_t most);

/* True if consecutive events go to different subsets, because the file is not ordered by time. */
bool measurement_interleaves_events(const struct measurement *measured);

/* Reports the numbers of events in the file. */
void measurement_say_events(const struct measurement *measured);

/* Replaces data and delayeds by counts drawn from them, if --bootstrap is given. */
lr_status measurement_bootstrap(struct measurement *measured);
void measurement_say_replicate(const struct measurement *measured, double before, double after);

/* Continues a digest (FNV-1a of 64 bits) with more bytes. digest: the value so far, or 0. */
uint64_t recon_digest(uint64_t digest, const void *bytes, int64_t count);
void recon_digest_event(uint64_t *digest, const lr_event *event);
uint64_t recon_digest_scanner(const lr_scanner *scanner);
uint64_t recon_digest_image(const lr_image *image);

/* --- several ranks --- */

/* Each function compares one thing between ranks: their options, the contents of one input (digest 0 = none), or the
 * numbers in a file. errors: ranks differ. */
lr_status measurement_compare_options(const struct measurement *measured, const struct cli_args *args);
lr_status measurement_compare_contents(const struct measurement *measured, const char *what, uint64_t digest);
lr_status measurement_compare_numbers(const struct measurement *measured, const char *what, uint64_t digest,
                                      int64_t count);

/* --- several ranks: this rank's part of a list of events (event_share.c) --- */

/* Makes the first of two passes through the file. It counts and digests the events of each frame; the counts decide how
 * events are shared out. errors: also if the ranks' files differ. */
lr_status event_share_survey(struct measurement *measured);

/* Makes the second pass, which keeps only this rank's events. measured->list and the corrections then have the rank's
 * slice of each subset, for each requested frame. Batches without an event of this rank are passed over. */
lr_status event_share_take(struct measurement *measured);

/* Sets up `measured` for the current frame or the whole list: counts and delayeds of all ranks, and the ranges of
 * subsets in this rank's list. */
lr_status event_share_open(struct measurement *measured);

#endif
