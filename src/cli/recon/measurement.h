/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What was measured, with the operator that it is of: counts per LOR (histogram.c), histo-images (views.c) or
 * events one by one (events.c). Of several ranks each has a share of the data. */
#ifndef LR_CLI_RECON_MEASUREMENT_H
#define LR_CLI_RECON_MEASUREMENT_H

#include "base/background.h"
#include "cli/cluster.h"
#include "cli/direct.h"
#include "cli/recon/early_sensitivity.h"
#include "cli/recon/request.h"

/* Events of a frame, or of the whole list. */
struct event_share_frame {
    int64_t prompts;  /* in the file, also those out of coincidence */
    int64_t kept;     /* of them in coincidence, of all ranks */
    int64_t left_out; /* the others */
    int64_t first;    /* of this rank's, in its list */
    int64_t *ranges;  /* owned [subsets + 1] of this rank's, from the frame's first; NULL = not asked for */
    int64_t *begins;  /* owned [subsets + 1] of the ranges of all ranks */
    int64_t *from;    /* owned [subsets] begin of this rank's slice of each among them */
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
    double duration_s; /* by the file */
};

struct measurement;

/* One of the three kinds. */
struct measurement_kind {
    /* Reads scanner, grid, data, factors and images. Histograms leave the operator to setup_operator. With frames
     * there are neither data nor operator afterwards, but what open_frame needs. */
    lr_status (*open)(struct measurement *measured, struct cli_args *args);

    /* Data and operator of frame k, until close_frame. NULL: the kind has no frames. */
    lr_status (*open_frame)(struct measurement *measured, int k);
    void (*close_frame)(struct measurement *measured);

    /* Waits until iterations may begin. NULL: they may. */
    lr_status (*wait)(struct measurement *measured);

    /* The kernel's settings for the key of checkpoints, as snprintf. NULL: the operator has all of them. */
    int (*describe)(const struct measurement *measured, char *text, size_t size);

    /* Frees what is the kind's own; the operator is gone. NULL: nothing. */
    void (*finish)(struct measurement *measured);
};
extern const struct measurement_kind histogram_kind, views_kind, events_kind;

/* Zero is valid, measurement_finish frees it. It must not move: operators and sources point into it. */
struct measurement {
    const struct measurement_kind *kind;
    const struct recon_request *request;
    struct setup setup; /* with the operator */
    struct cluster cluster;
    const lr_progress *progress; /* of projections */
    int subsets;

    lr_lor_data *data, *delayeds, *additive; /* delayeds: NULL if the data have none */
    lr_randoms *randoms;
    double counts;       /* of all ranks, without delayeds */
    double additive_sum; /* of list mode: over all LORs, if it is known */

    /* This rank's share of the data; NULL and 0: all. */
    int32_t *subset_of; /* owned [pairs, views or ranges] */
    int interleave;     /* subsets in each group that subset_of numbers */

    lr_image *initial, *kappa, *truth;
    int iterations_before; /* that made the initial image */

    uint64_t digest; /* of what was measured, of all ranks; 0 = of nothing */
    uint64_t beside; /* of what else is known of events */

    /* List mode, also if it is counted per LOR. */
    lr_event_counts events;
    lr_events_format events_format;

    /* Events one by one. */
    lr_event_list *list; /* prompts alone, of this rank; of the current frame */
    int64_t *ranges;     /* owned [subsets + 1] of this rank's events; NULL: cut evenly */
    lr_listmode_params listmode;
    lr_blobs blobs; /* that listmode points to if the image is of blobs */
    bool has_tof;
    struct early_sensitivity early;
    struct event_share share;          /* of several ranks */
    struct lr_background freeing;      /* of the list's events */
    lr_event_corrections *corrections; /* of the list's events */
    lr_lor_source sensitivity_factors; /* of them */

    /* Frames of list mode. */
    lr_event_list *all_events; /* of the file, as it was read */
    int64_t *frame_prompts;    /* owned [num_intervals] */
    int64_t frame_range[2];    /* frames of this run, the second not in it */
    int frame;                 /* the current one */
    lr_operator *first_op;     /* whose sensitivity all take; NULL before it is made */

    /* Histo-images. */
    struct direct_setup direct;      /* without its operator */
    lr_histo_images *direct_factors; /* owned; NULL = none */
};

void measurement_drop_data(struct measurement *measured);
void measurement_finish(struct measurement *measured);

/* Sums up the counts, and refuses data without any. */
lr_status measurement_count(struct measurement *measured);

/* True if images are emissions, and not of a scale of their own; once there is the operator. */
bool measurement_counts_emissions(const struct measurement *measured);

/* The blobs that the operator's image consists of; NULL: voxels. */
const lr_blobs *measurement_blobs(const struct measurement *measured);

/* Evaluates an image of the operator, of voxels or blobs, on the voxels of `to`. */
lr_status measurement_take_image(const struct measurement *measured, const lr_vector *image, lr_image *to);

/* --- parts of open, which kinds share --- */

/* Opens --scanner, or the one that the crystal map or the events describe, reads --grid, and chooses this rank's
 * device and threads. */
lr_status measurement_open_scanner(struct measurement *measured, struct cli_args *args);

/* Factors per LOR, handed to setup.params. */
lr_status measurement_read_factors(struct measurement *measured);

/* The image to start from, the prior's weights and the true image, if they are given. */
lr_status measurement_read_images(struct measurement *measured);

/* The list mode that the command line names. */
lr_events_source measurement_events_source(const struct measurement *measured);

/* True if events of subsets are dealt in turn, because the file does not have them in the order of time. */
bool measurement_interleaves_events(const struct measurement *measured);

/* Reports what events the file held. */
void measurement_say_events(const struct measurement *measured);

/* --bootstrap of counts: draws data and delayeds again. */
lr_status measurement_bootstrap(struct measurement *measured);
void measurement_say_replicate(const struct measurement *measured, double before, double after);

/* FNV-1a of 64 bits. digest: so far, or 0. */
uint64_t recon_digest(uint64_t digest, const void *bytes, int64_t count);
void recon_digest_event(uint64_t *digest, const lr_event *event);
uint64_t recon_digest_scanner(const lr_scanner *scanner);
uint64_t recon_digest_image(const lr_image *image);

/* --- several ranks: errors if they differ --- */

/* Options, contents of one kind (0 = there are none), and a file's numbers. */
lr_status measurement_compare_options(const struct measurement *measured, const struct cli_args *args);
lr_status measurement_compare_contents(const struct measurement *measured, const char *what, uint64_t digest);
lr_status measurement_compare_numbers(const struct measurement *measured, const char *what, uint64_t digest,
                                      int64_t count);

/* --- several ranks: this rank's part of a list of events (event_share.c) --- */

/* Files are read twice, in pieces. The first pass counts and digests the events of each frame, by which they are dealt.
 * errors: also if the ranks' files differ. */
lr_status event_share_survey(struct measurement *measured);

/* The second pass keeps what is this rank's own: measured->list, and what corrections say of its events, become the
 * slice of each subset, of each frame that is asked for. Batches without an event of this rank are passed over. */
lr_status event_share_take(struct measurement *measured);

/* Makes measured describe the current frame, or the list: counts and delayeds of all ranks, ranges of subsets in this
 * rank's list. */
lr_status event_share_open(struct measurement *measured);

void event_share_finish(struct event_share *own);

#endif
