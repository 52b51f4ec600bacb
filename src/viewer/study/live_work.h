/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a live reconstruction does on the thread of its job: projector, data, iterations. */
#ifndef LR_VIEWER_LIVE_WORK_H
#define LR_VIEWER_LIVE_WORK_H

#include "viewer/study/live.h"

/* --- family direct: views, and counts of histo-images that are open --- */

/* Its own copies: what the request names may be gone before the job ends. */
struct live_direct {
    lr_view *views; /* owned [num_views] */
    int num_views;
    lr_lor_data *data; /* owned; NULL = counts are to be drawn */
    lr_direct_kernel kernel;
    const char *backend;
};

/* Takes views and counts. errors: LR_USAGE for a set of views that cannot be; LR_FAILED. */
lr_status live_direct_take(struct live_direct *direct, const struct live_request *request, const lr_log *log);

/* --- family listmode: the events, and the randoms expected of each --- */

/* Zero is valid. */
struct live_listmode {
    lr_event_list *list;             /* owned: prompts in coincidence */
    lr_lor_data *weights, *additive; /* owned [events]; additive NULL = none */
    double additive_sum;
    bool has_tof;
};

/* --- guesses that are composed; docs/method/cluster.md, "paper": ranks are guesses of one process here --- */

struct live_work;

struct live_guess {
    struct live_work *work;
    int number; /* from 0 */
    lr_lors *lors;
    lr_lor_data *data;
    lr_operator *op;
    lr_crystal_product randoms; /* of its LORs */
    lr_progress progress;       /* names the guess */
};

/* --- the reconstruction --- */

/* The reconstruction. Belongs to the job's thread from its start to its end. */
struct live_work {
    const lr_log *log; /* the job's, while it runs */
    const lr_progress *progress;
    struct study_view study; /* held */
    struct live_request request;
    lr_image *reference;           /* owned, or NULL */
    lr_lor_data *simulated;        /* owned, or NULL */
    lr_randoms *randoms;           /* owned, or NULL */
    struct live_direct direct;     /* of that family */
    struct live_listmode listmode; /* of that family */
    int num_guesses;               /* that are composed; 0 = none */
    struct live_guess *guesses;    /* owned [num_guesses]; they must not move while they are open */
    lr_recon_params *guess_params; /* owned [num_guesses] */
    lr_operator *op;               /* owned */
    bool is_on_device;             /* images can be shown where they are computed */
    lr_traffic traffic;            /* of the operator's place, after the last iteration */
    char why[LIVE_WHY];            /* the image is not on the device */
    lr_vector there;               /* the reference, where images are shown from; zero until then */
    float *image;                  /* owned: the reconstruction, when it is done */
    lr_status (*iteration)(void *user, const lr_iteration *done);
    lr_status (*guessed)(void *user, int guess, const lr_iteration *done);
    lr_status (*composed)(void *user, const lr_composition *done);
    void *user;
};

void live_work_finish(struct live_work *work);

/* Makes the projector, takes or draws the data, and iterates. errors: LR_CANCELLED; as lr_recon. */
lr_status live_work_run(struct live_work *work, const lr_log *log, const lr_progress *progress);

#endif
