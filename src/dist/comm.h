/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The members and inner functions of a communicator, for the files of src/dist. */
#pragma once

#include "device/kinds.h"

#include <lr/comm.h>

/* --- functions of the MPI plugin --- */

/* Facts of a communicator, found when it is opened. */
struct lr_comm_facts {
    int rank, size, local_rank, local_size;
    char machine[64], way[96];
    bool is_cuda_aware; /* transfer and broadcast accept memory of CUDA devices */
};

/* An open communicator of the plugin. */
struct lr_comm_group;

struct lr_comm_fns {
    /* Opens a group, which the caller owns. Returns NULL on failure, and logs the reason. caller: address of the
     * caller's MPI communicator; NULL = all processes. */
    struct lr_comm_group *(*open)(const void *caller, const lr_log *log, struct lr_comm_facts *facts);
    /* Sets `way` and `is_cuda_aware`, which are known before a group is opened. */
    void (*describe)(struct lr_comm_facts *facts);
    /* Returns after all messages have arrived. */
    lr_status (*transfer)(struct lr_comm_group *group, const struct lr_messages *messages);
    /* Gathers `bytes` bytes of every rank on every rank. all: [size][bytes]. */
    lr_status (*gather_little)(struct lr_comm_group *group, const void *own, void *all, int bytes);
    lr_status (*broadcast)(struct lr_comm_group *group, int from, void *bytes, int count);
    void (*abort)(struct lr_comm_group *group, int code);
    bool (*is_open)(void);                                     /* false if the caller has finalised MPI */
    void (*close)(struct lr_comm_group *group, bool is_whole); /* is_whole: true if all ranks make this call */
    const char *mistake;                                       /* error message if a function above fails */
};

/* The place of a rank's vector, and the method of exchange. Ranks send these numbers to each other. */
enum lr_comm_way {
    LR_WAY_PLAIN = 0, /* the vector is on the host */
    LR_WAY_OPEN,      /* the vector is on a device; the method of exchange is not chosen yet */
    LR_WAY_HOST,      /* the vector is on a device; it is copied to the host and back */
    LR_WAY_MPI,       /* the vector is on a device; MPI accesses device memory */
    LR_WAY_NCCL
};

/* The exchange of vectors on devices, which all ranks have chosen together (moves.c). */
struct lr_comm_route {
    enum lr_comm_way way; /* LR_WAY_OPEN until a method is chosen */
    lr_place *place;      /* CUDA place for MPI or NCCL; a reference is kept */
    const struct lr_link_fns *fns;
    struct lr_link *link; /* the link of NCCL */
    bool is_broken;       /* a transfer has failed on some rank */
    char device[48];
    char name[96], reason[384];
    lr_log log;       /* for NCCL's link: messages go to last_text while ranks are being linked, and later to `to` */
    const lr_log *to; /* NULL = messages go to last_text */
    char last_text[256];
    lr_vector pieces; /* on `place`: the parts of a sum that other ranks have sent */
    lr_vector copy;   /* copy of a vector in OpenGL's memory */
};

struct lr_comm {
    const struct lr_comm_fns *fns; /* NULL = one process */
    struct lr_comm_group *group;   /* owned; NULL = one process */
    const lr_log *log;
    lr_exchange exchange; /* the caller's choice */
    double patience_s;
    void (*stranded)(void *user);
    void *user;
    struct lr_comm_facts facts;
    struct lr_comm_route route;
    int failed_rank;
    lr_status failed_status; /* LR_OK = no rank has failed */
    bool has_failed_too;     /* this rank has reported a failure of its own */
    double sent_bytes, moving_s, waiting_s;
    lr_vector staging;         /* on the host: copy of a vector on a device */
    lr_place *pinned;          /* the place that has pinned `staging`; a reference is kept */
    lr_vector pieces;          /* on the host: the parts of a sum that other ranks have sent */
    void *little;              /* [size][LR_COMM_LITTLE] bytes */
    struct lr_messages arrays; /* room for [size] messages of each kind; both counts stay 0 */
};

/* Largest number of bytes that a rank sends by gather_little. */
enum { LR_COMM_LITTLE = 512 };

/* The step of a collective call that a rank is about to take. All ranks must take the same step. */
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
    LR_COMM_STEP_LINK,
    LR_COMM_STEP_CLOSE
};

static inline bool lr_comm_is_single(const lr_comm *comm)
{
    return comm == NULL || comm->facts.size == 1;
}

/* Returns the status of the failed rank. If this rank has not failed itself, its lr_last_error now names the failed
 * rank. Only the failed rank writes to its log. */
lr_status lr_comm_tell_failure(const lr_comm *comm);

/* Waits for all ranks. Fails if a rank has failed or takes another step. Every exchange among several ranks begins with
 * this call. */
lr_status lr_comm_meet(lr_comm *comm, enum lr_comm_step step, int64_t count);

/* Waits as lr_comm_meet does, after work that may have failed on some ranks. All ranks learn of a failure. */
lr_status lr_comm_settle(lr_comm *comm, enum lr_comm_step step, lr_status status);

/* Waits as lr_comm_meet does, and compares *way, which becomes LR_WAY_HOST if ranks differ. */
lr_status lr_comm_meet_by(lr_comm *comm, enum lr_comm_step step, int64_t count, enum lr_comm_way *way);

/* Ends the chosen exchange and frees its memory. is_whole: true if all ranks make this call. */
void lr_comm_close_route(lr_comm *comm, bool is_whole);

/* Records and logs a failure of a function in lr_comm_fns. Returns the status. */
lr_status lr_comm_check(lr_comm *comm, lr_status status);
