/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Work of a live reconstruction on its job's thread: projector, data, iterations. */
#ifndef LR_VIEWER_LIVE_WORK_H
#define LR_VIEWER_LIVE_WORK_H

#include "viewer/study/live.h"

/* --- family direct: views, and counts from the open histo-images --- */

/* Copies of the request's views and counts, because the request may be freed before the job ends. */
struct live_direct {
    lr_view *views; /* owned [num_views] */
    int num_views;
    lr_lor_data *data; /* owned; NULL = counts must be drawn */
    lr_direct_kernel kernel;
    const char *backend;
};

/* Copies views and counts. errors: LR_USAGE for an invalid set of views; LR_FAILED. */
lr_status live_direct_take(struct live_direct *direct, const struct live_request *request, const lr_log *log);

/* --- family listmode: events, and the randoms expected for each event --- */

/* Zero is valid. */
struct live_listmode {
    lr_event_list *list;             /* owned: only prompts in coincidence */
    lr_lor_data *weights, *additive; /* owned [events]; additive: NULL = none */
    double additive_sum;
    bool has_tof;
};

/* --- guesses, which one process makes and composes as ranks of a cluster do: docs/method/cluster.md, "paper" --- */

struct live_work;

struct live_guess {
    struct live_work *work;
    int number; /* counted from 0 */
    lr_lors *lors;
    lr_lor_data *data;
    lr_vector counts; /* the values of data */
    lr_operator *op;
    lr_crystal_product randoms; /* randoms of its LORs */
    lr_progress progress;       /* adds the guess's number */
};

/* --- the reconstruction --- */

/* The reconstruction. Only the job's thread uses it from start to end. */
struct live_work {
    const lr_log *log; /* the job's log, while it runs */
    const lr_progress *progress;
    struct study_view study; /* held */
    struct live_request request;
    lr_image *reference;           /* owned, or NULL */
    lr_lor_data *simulated;        /* owned, or NULL */
    lr_randoms *randoms;           /* owned, or NULL */
    struct live_direct direct;     /* family direct */
    struct live_listmode listmode; /* family listmode */
    int num_guesses;               /* number of guesses to compose; 0 = none */
    struct live_guess *guesses;    /* owned [num_guesses]; must not move while they are open */
    lr_recon_params *guess_params; /* owned [num_guesses] */
    lr_operator *op;               /* owned */
    bool is_on_device;             /* images can be shown at the place of computation */
    lr_traffic traffic;            /* traffic of the operator's place, after the last iteration */
    char why[LIVE_WHY];            /* reason if the image is not on the device */
    lr_vector there;               /* copy of the reference at the images' place; zero before it is made */
    float *image;                  /* owned: the finished reconstruction */
    lr_status (*iteration)(void *user, const lr_iteration *done);
    lr_status (*guessed)(void *user, int guess, const lr_iteration *done);
    lr_status (*composed)(void *user, const lr_composition *done);
    void *user;
};

void live_work_finish(struct live_work *work);

/* Makes the projector, takes or draws the data, and iterates. errors: LR_CANCELLED; those of lr_recon. */
lr_status live_work_run(struct live_work *work, const lr_log *log, const lr_progress *progress);

#endif
