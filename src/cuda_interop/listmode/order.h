/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The order in which the device has the events of each group: by the size of their windows, then the first
 * slice that their lines meet, then the last one, then the steps that they take. Lines of a warp then are as
 * long as each other, and blocks go through few slices. */
#ifndef LR_CUDA_LISTMODE_ORDER_H
#define LR_CUDA_LISTMODE_ORDER_H

#include "cuda_interop/listmode/plan.h"

/* Pieces of LR_CUDA_LIST_PIECE events, a group's last one shorter. Zero is none. */
struct lr_cuda_list_order {
    int64_t *first;             /* owned [num_ranges * LR_LISTMODE_GROUPS + 1] piece of each group */
    lr_cuda_list_piece *pieces; /* owned */
};

struct lr_cuda_list_order_params {
    const struct lr_listmode_backend_params *backend;
    const lr_cuda_list_pass *pass; /* frames, tube and all events */
    void *stream;                  /* a cudaStream_t */
    lr_cuda_list_line *lines;      /* [count] of the device, which are made; NULL = none */
    lr_cuda_list_sight *sights;    /* likewise */
};

/* Bytes that ordering takes for a while, beside the events. */
int64_t lr_cuda_list_order_bytes(const struct lr_listmode_events *events);

/* Orders the events that the pass names, in place, and waits. Finish it in any case. errors: LR_FAILED
 * without memory; the events are then in some order within their groups. */
lr_status lr_cuda_list_order_init(struct lr_cuda_list_order *order, const struct lr_cuda_list_order_params *params);
void lr_cuda_list_order_finish(struct lr_cuda_list_order *order);

#endif
