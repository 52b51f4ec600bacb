/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A verb that several processes run together, started by mpirun. Only rank 0 reports progress and writes results. Only
 * one rank prints an error, and the message names this rank. */
#pragma once

#include "common.h"

#include <lr/comm.h>

/* A zero struct means one process. */
struct cluster {
    lr_comm *comm; /* NULL for one process, and before cluster_open */
    int rank, size;
    double *peaks; /* owned [size] peak memory of each rank in bytes; NULL = not collected */
};

/* Opens the communicator if there are several ranks. */
lr_status cluster_open(struct cluster *cluster, struct report *report, lr_exchange exchange);

/* The words of --exchange, indexed by lr_exchange; NULL at the end. */
extern const char *const cluster_exchanges[];

/* The option --exchange of verbs that several ranks can run. */
#define CLUSTER_EXCHANGE_OPTION                                                                                        \
    "--exchange", "WAY",                                                                                               \
        "how images get from GPU to GPU: nccl, mpi (one that takes memory of CUDA) or host; "                          \
        "default auto, the first that works",                                                                          \
        CLI_WORDS_OF(cluster_exchanges)

/* Collects the status of all ranks, returns the combined status, and closes the communicator. */
lr_status cluster_close(struct cluster *cluster, struct report *report, lr_status status);

/* Chooses a graphics processor and a number of threads for this rank, so that the ranks of a machine share its devices
 * and processors. Values of the command line are kept. */
void cluster_choose(const struct cluster *cluster, const struct cli_args *args, lr_operator_params *params);

/* Collects the peak memory of all ranks so far; does nothing for one process. */
lr_status cluster_note_memory(struct cluster *cluster, struct report *report);

/* Writes the JSON object "ranks": the number of ranks and how they exchange numbers. Writes nothing for one process. */
void cluster_json(const struct cluster *cluster, struct json *json);
