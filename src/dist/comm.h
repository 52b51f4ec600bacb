/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The inside of a communicator, for the files of this folder. */
#ifndef LR_DIST_COMM_H
#define LR_DIST_COMM_H

#include "dist/fns.h"

struct lr_comm {
    const struct lr_comm_fns *fns; /* NULL: one process */
    const lr_log *log;
    struct lr_comm_facts facts;
    int failed_rank;
    lr_status failed_status; /* LR_OK = none has failed */
    double sent_bytes, moving_s, waiting_s;
    lr_vector staging;         /* on the host, for vectors at a device */
    void *pieces;              /* what others send, [size] pieces of one sum */
    int64_t piece_numbers;     /* of the longest precision, in each of them */
    void *little;              /* [size] of the longest little message */
    struct lr_messages arrays; /* [size] each; counts unused */
};

/* The longest of lr_comm_same, and of others. */
enum { LR_COMM_LITTLE = 512 };

/* What all are about to do, so that it can be seen that they do the same. */
enum lr_comm_step {
    LR_COMM_STEP_FAIL = 1,
    LR_COMM_STEP_BARRIER,
    LR_COMM_STEP_SUM,
    LR_COMM_STEP_GATHER,
    LR_COMM_STEP_BROADCAST,
    LR_COMM_STEP_NUMBERS,
    LR_COMM_STEP_SAME
};

static inline bool lr_comm_is_single(const lr_comm *comm)
{
    return comm == NULL || comm->facts.size == 1;
}

/* Waits for all, and learns whether one has failed. Before each exchange of a communicator that is not
 * single. */
lr_status lr_comm_meet(lr_comm *comm, enum lr_comm_step step, int64_t count);

/* Turns what a function of the table says into a status, with its sentence. */
lr_status lr_comm_check(lr_comm *comm, lr_status status);

#endif
