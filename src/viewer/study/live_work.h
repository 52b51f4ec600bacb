/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The reconstruction behind live.h, on the job's thread. */
#ifndef LR_VIEWER_LIVE_WORK_H
#define LR_VIEWER_LIVE_WORK_H

#include "viewer/study/live.h"

/* Belongs to the job's thread from its start to its end. */
struct live_work {
    struct study_view study; /* held */
    struct live_request request;
    lr_image *reference;    /* owned, or NULL */
    lr_lor_data *simulated; /* owned, or NULL */
    lr_randoms *randoms;    /* owned, or NULL */
    lr_operator *op;        /* owned */
    bool is_on_device;      /* images can be shown where they are computed */
    char why[LIVE_WHY];     /* the image is not on the device */
    lr_vector there;        /* the reference, where images are shown from; zero until then */
    float *image;           /* owned: the reconstruction, when it is done */
    lr_status (*iteration)(void *user, const lr_iteration *done);
    void *user;
};

void live_work_finish(struct live_work *work); /* zero is allowed */

/* Makes the projector, takes or draws the data, and iterates. */
lr_status live_work_run(struct live_work *work, const lr_log *log, const lr_progress *progress);

/* After an iteration: the image goes to the handover, or, where that cannot be, to work->image.
 * *is_shown: it went to the handover. *difference: |image - reference| / |reference| over all voxels;
 * NaN without a reference, or one that is zero. */
lr_status live_work_take(struct live_work *work, const lr_vector *image, bool *is_shown,
                         double *difference);

#endif
