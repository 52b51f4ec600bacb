/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A verb that several processes run together, started by mpirun. Rank 0 alone reports progress and writes
 * results; errors are printed by one rank, which names itself. */
#ifndef LR_CLI_CLUSTER_H
#define LR_CLI_CLUSTER_H

#include "common.h"

#include <lr/comm.h>

/* Zero is one process. */
struct cluster {
    lr_comm *comm; /* NULL before it is open, and if there is one process */
    int rank, size;
    double *peaks; /* owned [size] bytes of memory that each rank has taken at most; NULL = not asked */
};

/* Opens the communicator, if there are several ranks. */
lr_status cluster_open(struct cluster *cluster, struct report *report, lr_exchange exchange);

/* --exchange, of verbs that ranks run: its option, and what it says. */
#define CLUSTER_EXCHANGE_OPTION                                                                                        \
    {                                                                                                                  \
        "--exchange", "WAY",                                                                                           \
            "how images get from GPU to GPU: nccl, mpi (one that takes memory of CUDA) or host; "                      \
            "default auto, the first that works",                                                                      \
            false                                                                                                      \
    }
lr_exchange cluster_read_exchange(struct cli_args *args);

/* Exchanges how the verb has ended on each rank, returns the status of all, and closes the communicator. */
lr_status cluster_close(struct cluster *cluster, struct report *report, lr_status status);

/* Unless the command line names them: the device that is local to this rank, and its share of the
 * machine's processors. */
void cluster_choose(const struct cluster *cluster, const struct cli_args *args, lr_operator_params *params);

/* Asks all ranks how much memory they have taken so far; nothing of one process. */
lr_status cluster_note_memory(struct cluster *cluster, struct report *report);

/* "ranks" of JSON: how many, and by what they exchange numbers; nothing of one process. */
void cluster_json(const struct cluster *cluster, struct json *json);

#endif
