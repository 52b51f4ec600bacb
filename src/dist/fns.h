/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a communicator must be able to do: little, of which comm.c makes the rest. */
#ifndef LR_DIST_FNS_H
#define LR_DIST_FNS_H

#include "vector/kinds.h"

#include <lr/comm.h>

/* What a communicator is, as it finds out when it is opened. */
struct lr_comm_facts {
    int rank, size, local_rank, local_size;
    char machine[64], way[96];
    bool is_cuda_aware; /* transfer and broadcast take memory of CUDA devices */
};

struct lr_comm_fns {
    /* Once in a process. The sentence goes to the log. */
    lr_status (*open)(const lr_log *log, struct lr_comm_facts *facts);
    /* Of the facts what is known without opening: way, is_cuda_aware. */
    void (*describe)(struct lr_comm_facts *facts);
    /* All of them arrive before it returns. */
    lr_status (*transfer)(const struct lr_messages *messages);
    /* all: [size][bytes], of every rank. */
    lr_status (*gather_little)(const void *own, void *all, int bytes);
    lr_status (*broadcast)(int from, void *bytes, int count);
    void (*abort)(int code);
    void (*close)(bool is_whole); /* whether all ranks come here */
    const char *mistake;          /* what to say where the above fail */
};

#endif
