/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The inside of a communicator, for the files of this folder. */
#ifndef LR_DIST_COMM_H
#define LR_DIST_COMM_H

#include "vector/kinds.h"

#include <lr/comm.h>

/* --- the few functions of a communicator, of which comm.c makes the rest --- */

/* Facts of a communicator, found when it is opened. */
struct lr_comm_facts {
    int rank, size, local_rank, local_size;
    char machine[64], way[96];
    bool is_cuda_aware; /* transfer and broadcast take memory of CUDA devices */
};

struct lr_comm_fns {
    /* Once in a process. Errors go to the log. */
    lr_status (*open)(const lr_log *log, struct lr_comm_facts *facts);
    /* Fills in the facts known without opening: way, is_cuda_aware. */
    void (*describe)(struct lr_comm_facts *facts);
    /* All of them arrive before it returns. */
    lr_status (*transfer)(const struct lr_messages *messages);
    /* all: [size][bytes], of every rank. */
    lr_status (*gather_little)(const void *own, void *all, int bytes);
    lr_status (*broadcast)(int from, void *bytes, int count);
    void (*abort)(int code);
    void (*close)(bool is_whole); /* whether all ranks come here */
    const char *mistake;          /* the error if a function above fails */
};

/* The place of a rank's vector, and the way by which it would exchange it. Values are sent to other ranks. */
enum lr_comm_way {
    LR_WAY_PLAIN = 0, /* it is on the host */
    LR_WAY_OPEN,      /* at a device, and no way has been chosen yet */
    LR_WAY_HOST,      /* at a device, and copied to the host and back */
    LR_WAY_MPI,       /* MPI takes it from the device */
    LR_WAY_NCCL
};

/* The exchange of vectors at devices, which all ranks have settled together (moves.c). */
struct lr_comm_route {
    enum lr_comm_way way; /* OPEN before, then HOST, MPI or NCCL */
    lr_place *place;      /* MPI, NCCL: the CUDA place; kept */
    const struct lr_link_fns *fns;
    struct lr_link *link; /* NCCL */
    bool is_broken;       /* a transfer has failed on some rank */
    char device[48];
    char name[96], reason[384];
    lr_log log;       /* of the link: keeps messages while ranks are being linked, and passes them on later */
    const lr_log *to; /* NULL = they are kept */
    char last_text[256];
    lr_vector pieces; /* at the place: what others send of one sum */
    lr_vector copy;   /* of a vector in OpenGL's memory */
};

struct lr_comm {
    const struct lr_comm_fns *fns; /* NULL: one process */
    const lr_log *log;
    lr_exchange exchange; /* that the caller asks for */
    double patience_s;
    void (*stranded)(void *user);
    void *user;
    struct lr_comm_facts facts;
    struct lr_comm_route route;
    int failed_rank;
    lr_status failed_status; /* LR_OK = none has failed */
    double sent_bytes, moving_s, waiting_s;
    lr_vector staging;         /* on the host, for vectors at a device */
    lr_place *pinned;          /* the place that has pinned it; kept */
    lr_vector pieces;          /* on the host: what others send of one sum */
    void *little;              /* [size] of the longest little message */
    struct lr_messages arrays; /* [size] each; counts unused */
};

/* The longest of lr_comm_same, and of others. */
enum { LR_COMM_LITTLE = 512 };

/* The step that a rank is about to take; all must take the same. */
enum lr_comm_step {
    LR_COMM_STEP_FAIL = 1,
    LR_COMM_STEP_BARRIER,
    LR_COMM_STEP_SUM,
    LR_COMM_STEP_GATHER,
    LR_COMM_STEP_BROADCAST,
    LR_COMM_STEP_NUMBERS,
    LR_COMM_STEP_SAME,
    LR_COMM_STEP_READY,
    LR_COMM_STEP_SENT,
    LR_COMM_STEP_LINK
};

static inline bool lr_comm_is_single(const lr_comm *comm)
{
    return comm == NULL || comm->facts.size == 1;
}

/* Waits for all, and learns whether one has failed. Before each exchange of a communicator that is not
 * single. */
lr_status lr_comm_meet(lr_comm *comm, enum lr_comm_step step, int64_t count);

/* The same, after work that may have failed on this rank, which the others learn. */
lr_status lr_comm_settle(lr_comm *comm, enum lr_comm_step step, lr_status status);

/* lr_comm_meet; *way becomes LR_WAY_HOST unless it is the same on all ranks. */
lr_status lr_comm_meet_by(lr_comm *comm, enum lr_comm_step step, int64_t count, enum lr_comm_way *way);

/* Ends what was chosen. is_whole: all ranks come here. */
void lr_comm_close_route(lr_comm *comm, bool is_whole);

/* Notes and logs a failure of a function of the table; returns the status. */
lr_status lr_comm_check(lr_comm *comm, lr_status status);

#endif
