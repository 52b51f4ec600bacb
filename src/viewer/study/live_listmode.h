/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What live reconstruction by the family `listmode` has beside the rest: the events, and what is expected
 * of each beside the image. */
#ifndef LR_VIEWER_LIVE_LISTMODE_H
#define LR_VIEWER_LIVE_LISTMODE_H

#include "viewer/study/live.h"

/* Zero is valid. */
struct live_listmode {
    lr_event_list *list;             /* owned: prompts in coincidence */
    lr_lor_data *weights, *additive; /* owned [events]; additive NULL = none */
    double additive_sum;
    bool has_tof;
};
void live_listmode_finish(struct live_listmode *listmode);

/* Reads the events of the study's data, or draws photon pairs from its image. errors: LR_CANCELLED; as
 * the readers, logged. */
lr_status live_listmode_take(struct live_listmode *listmode, const struct study_view *study,
                             const struct live_request *request, const lr_operator_params *params);

/* The operator, with a range of events for each subset; of the params threads, log and progress are
 * read. errors: LR_CANCELLED; as lr_listmode_create, logged. */
lr_status live_listmode_create(struct live_listmode *listmode, const struct study_view *study,
                               const struct live_request *request, const lr_operator_params *params, lr_operator **op);

/* What was measured, and the additive term, as lr_recon takes them. */
lr_status live_listmode_data(struct live_listmode *listmode, const struct study_view *study, lr_recon_params *recon);

#endif
