/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The measured data and their operator: counts per LOR (histogram.c), histo-images (views.c) or single events
 * (events.c). If there are several ranks, each rank has a share of the data. */
#pragma once

#include "base/parallel.h"
#include "cli/cluster.h"
#include "cli/direct.h"
#include "cli/recon/early_sensitivity.h"
#include "cli/recon/request.h"

/* The events of a frame, or of a list without frames, and this rank's share of them. */
struct event_share_frame {
    int64_t prompts;  /* number of prompts in the file, including those out of coincidence */
    int64_t kept;     /* number of prompts in coincidence, of all ranks */
    int64_t left_out; /* number of prompts out of coincidence */
    int64_t first;    /* index of the frame's first event in this rank's list */
    int64_t *ranges;  /* owned [subsets + 1] ranges of this rank's events, relative to its first event of the frame;
                         NULL = not requested */
    int64_t *begins;  /* owned [subsets + 1] ranges of all ranks' events */
    int64_t *from;    /* owned [subsets] where this rank's slice begins in each range of `begins` */
    uint64_t digest;  /* digest of the kept events */
    double *ends;     /* owned [num_crystals] number of delayeds in coincidence at each crystal; NULL = none */
    int64_t seen;     /* while the file is read: number of kept events so far */
    int subset;       /* range of the next event */
};

/* The numbers of events in one batch of the reader; for lists without frames. */
struct event_share_batch {
    int64_t handed, kept;
};

/* The events of a file, shared among the ranks. A struct of zeros: one process has all events. */
struct event_share {
    struct event_share_frame *frames; /* owned [num_frames]; a list without frames has one */
    int num_frames;
    int64_t handed;                    /* number of events in the file */
    struct event_share_batch *batches; /* owned [num_batches] batches of the reader */
    int64_t num_batches, room_for_batches;
    double times_s[2]; /* times of the first and the last event */
    double duration_s; /* duration that is stated in the file */
};

struct measurement;

/* One kind of data: histogram_kind, views_kind or events_kind. */
struct measurement_kind {
    /* Reads scanner, grid, data, factors and images, and makes the operator. Exceptions: for histograms, setup_operator
     * makes the operator later; with frames, open_frame opens data and operator. */
    lr_status (*open)(struct measurement *measured, struct cli_args *args);

    /* Opens the data and the operator of frame k. They are valid until close_frame. NULL = this kind has no frames. */
    lr_status (*open_frame)(struct measurement *measured, int k);
    void (*close_frame)(struct measurement *measured);

    /* Writes the kernel's settings into the key of checkpoints, like snprintf. NULL = the operator describes all
     * settings. */
    int (*describe)(const struct measurement *measured, char *text, size_t size);
};
extern const struct measurement_kind histogram_kind, views_kind, events_kind;

/* The measured data of a run, and their operator. A struct of zeros is valid, and measurement_finish frees the data.
 * The struct must not move, because operators and sources point into it. */
struct measurement {
    const struct measurement_kind *kind;
    const struct recon_request *request;
    struct setup setup; /* including the operator */
    struct cluster cluster;
    const lr_progress *progress; /* progress of projections */
    int subsets;

    lr_lor_data *data, *delayeds, *additive; /* delayeds: NULL if the data have no delayeds */
    lr_randoms *randoms;
    double counts;       /* counts of all ranks, without delayeds */
    double additive_sum; /* list mode: sum of the additive term over all LORs; 0 = not known */

    /* This rank's share of the data; NULL and 0 = all data. */
    int32_t *subset_of; /* owned [pairs, views or ranges] */
    int interleave;     /* subset_of numbers groups of this many subsets; 0 = single subsets. Without subset_of, the
                           library makes such groups */

    lr_image *initial, *kappa, *truth;
    int iterations_before; /* number of iterations that made the initial image */

    uint64_t digest; /* digest of the measured data of all ranks; 0 = no data */
    uint64_t beside; /* events: digest of corrections, time resolutions and the additive term */

    /* These members are for list mode, even if its events are counted per LOR. */
    lr_event_counts events;
    lr_events_format events_format;

    /* Single events. */
    lr_event_list *list; /* prompts of this rank, in the current frame */
    int64_t *ranges;     /* owned [subsets + 1] ranges of this rank's events; NULL = ranges of equal size */
    lr_listmode_params listmode;
    lr_blobs blobs; /* used by `listmode` if the image consists of blobs */
    bool has_tof;
    struct early_sensitivity early;
    struct event_share share;     /* used with several ranks */
    struct lr_background freeing; /* frees the list's events in the background */
    lr_event_corrections *corrections;
    lr_lor_source sensitivity_factors; /* factors of the sensitivity, which come from the corrections */

    /* Frames of list mode. */
    lr_event_list *all_events; /* all events of the file */
    int64_t *frame_prompts;    /* owned [num_intervals] */
    int64_t frame_range[2];    /* [0]: first frame of this run; [1]: the frame after its last */
    int frame;                 /* the current frame */
    lr_operator *first_op;     /* the operator whose sensitivity all frames use; NULL until it is made */

    /* Histo-images. */
    struct direct_setup direct;      /* its operator is not used */
    lr_histo_images *direct_factors; /* owned; NULL = none */
    int64_t blind_voxels;            /* number of voxels that have counts, but a factor of 0; of all ranks */
    double blind_counts;             /* the counts in these voxels */
};

void measurement_drop_data(struct measurement *measured);
void measurement_finish(struct measurement *measured);

/* Adds up the counts of all ranks. It is an error if there are no counts. */
lr_status measurement_count(struct measurement *measured);

/* Returns true if image values are emissions; false if the operator defines their scale. The operator must exist. */
bool measurement_counts_emissions(const struct measurement *measured);

/* Returns the blobs of the operator's image; NULL if it consists of voxels. */
const lr_blobs *measurement_blobs(const struct measurement *measured);

/* Evaluates the operator's image, which consists of voxels or blobs, at the voxels of `to`. */
lr_status measurement_take_image(const struct measurement *measured, const lr_vector *image, lr_image *to);

/* --- functions that several kinds of data share --- */

/* Opens --scanner, or the scanner described by the crystal map or the events. Reads --grid. Chooses this rank's device
 * and threads. */
lr_status measurement_open_scanner(struct measurement *measured, struct cli_args *args);

/* Reads factors per LOR into setup.params. */
lr_status measurement_read_factors(struct measurement *measured);

/* Reads the initial image, the prior's kappa image and the true image, each of them only if it is given. */
lr_status measurement_read_images(struct measurement *measured);

/* Returns the source of list mode on the command line. */
lr_events_source measurement_events_source(const struct measurement *measured);

/* Limits the number of subsets to `most`, unless the command line gives this number. */
void measurement_limit_subsets(struct measurement *measured, int64_t most);

/* True if consecutive events go to different subsets, because the file is not ordered by time. */
bool measurement_interleaves_events(const struct measurement *measured);

/* Reports the numbers of events of the file. */
void measurement_say_events(const struct measurement *measured);

/* Replaces data and delayeds by counts drawn from them, if --bootstrap is given. */
lr_status measurement_bootstrap(struct measurement *measured);
void measurement_say_replicate(const struct measurement *measured, double before, double after);

/* Continues a digest (FNV-1a of 64 bits) with further bytes. digest: the value so far, or 0. */
uint64_t recon_digest(uint64_t digest, const void *bytes, int64_t count);
void recon_digest_event(uint64_t *digest, const lr_event *event);
uint64_t recon_digest_scanner(const lr_scanner *scanner);
uint64_t recon_digest_image(const lr_image *image);

/* --- several ranks --- */

/* Each of these functions compares one thing among all ranks: the options, the contents of an input (digest 0 = none),
 * or the numbers of a file. errors: ranks differ. */
lr_status measurement_compare_options(const struct measurement *measured, const struct cli_args *args);
lr_status measurement_compare_contents(const struct measurement *measured, const char *what, uint64_t digest);
lr_status measurement_compare_numbers(const struct measurement *measured, const char *what, uint64_t digest,
                                      int64_t count);

/* --- several ranks: this rank's share of a list of events (event_share.c) --- */

/* Makes the first of two passes through the file: counts the events of each frame, and makes their digest. The counts
 * determine how events are divided among ranks. errors: also if the files of ranks differ. */
lr_status event_share_survey(struct measurement *measured);

/* Makes the second pass, which keeps only this rank's events. Afterwards, measured->list and the corrections have this
 * rank's slice of each subset, for each requested frame. Batches without an event of this rank are skipped. */
lr_status event_share_take(struct measurement *measured);

/* Sets up `measured` for the current frame or the whole list: counts and delayeds of all ranks, and the ranges of
 * subsets in this rank's list. */
lr_status event_share_open(struct measurement *measured);
