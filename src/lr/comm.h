/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_COMM_H
#define LR_COMM_H

#include <lr/lors.h>
#include <lr/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A communicator: processes that work together through MPI, on one machine or several, as ranks 0 .. size - 1. A single
 * process can use the same functions; it may pass NULL as its communicator. All functions below are collective, except
 * for lr_comm_get_info: every rank makes the same calls in the same order. Each call first checks all ranks. If a rank
 * has failed (lr_comm_fail), all calls on all ranks return its status from then on, so that no rank waits forever.
 * Threads: one at a time.
 *
 * Vectors are on the host or on a device. Vectors on devices are exchanged directly or through the host (lr_exchange).
 * Sums are computed in double in the order of the ranks and rounded once. Runs with the same number of ranks therefore
 * give the same bits for every method of exchange. */
typedef struct lr_comm lr_comm;

/* The connection between the ranks of a communicator. */
typedef enum lr_comm_kind {
    LR_COMM_AUTO = 0, /* MPI if mpirun or srun started several processes or mpi_comm is given, else single */
    LR_COMM_SINGLE,
    LR_COMM_MPI
} lr_comm_kind;

/* Method that sends vectors on devices from rank to rank. All ranks choose the same method at the first exchange of a
 * vector on a device. */
typedef enum lr_exchange {
    LR_EXCHANGE_AUTO = 0, /* the first method below that all ranks support */
    LR_EXCHANGE_NCCL,     /* NVIDIA's library, loaded from the file in the environment variable LORASTER_NCCL, or from
                             libnccl.so.2. Needs a CUDA device per rank. Vectors go from device to device; OpenGL
                             vectors are first copied to CUDA memory of the same device */
    LR_EXCHANGE_MPI,      /* through an MPI that accepts CUDA memory */
    LR_EXCHANGE_HOST      /* through pinned host memory */
} lr_exchange;

/* Parameters of lr_comm_open. Zero fields are defaults. */
typedef struct lr_comm_params {
    lr_comm_kind kind;
    lr_exchange exchange; /* a method that is not available makes the first exchange fail with LR_NO_DEVICE */
    const lr_log *log;    /* kept; must outlive the communicator */

    /* The time in seconds that a failed rank waits for the other ranks; 0 = 20. Other ranks do not notice the failure
     * while their devices wait for the device of this rank. If some rank has made no call after this time, the failed
     * rank calls `stranded` (NULL = none) from a separate thread, and ends all ranks. */
    double patience_s;
    void (*stranded)(void *user);
    void *user;

    /* Address of an MPI_Comm, as mpi4py's MPI._addressof returns it; NULL = MPI_COMM_WORLD. The processes of this
     * MPI_Comm are the ranks. lr_comm_open duplicates the MPI_Comm, which need not outlive the call. If MPI is already
     * initialised, lr_comm_close does not finalise MPI. */
    const void *mpi_comm;
} lr_comm_params;

/* Facts about a communicator, and totals of its exchanges so far. Strings live as long as the communicator. */
typedef struct lr_comm_info {
    int rank, size;
    int local_rank, local_size;  /* this rank's number among the ranks of this machine, and how many there are */
    const char *machine;         /* host name of this rank's machine */
    const char *way;             /* what connects the ranks: "one process", "Open MPI 4.1.4" */
    bool is_cuda_aware;          /* MPI accepts CUDA memory */
    const char *exchange;        /* "NCCL 2.21.5", "CUDA-aware MPI", "host memory"; "" = no vector on a device has been
                                    exchanged yet */
    const char *exchange_reason; /* why NCCL is not used; "" = NCCL is used, or nothing has been exchanged yet */
    int failed_rank;             /* lowest rank that has failed; -1 = none */
    lr_status failed_status;
    double sent_bytes; /* bytes this rank sent to others */
    double moving_s;   /* time spent in exchanges; for NCCL by the device's clock */
    double waiting_s;  /* time this rank waited for slower ranks before exchanges */
} lr_comm_info;

/* The number of processes that mpirun or srun has started together, including this one; 1 = only this one. The number
 * comes from environment variables, without MPI. *rank: rank of this process; may be NULL. */
LR_API int lr_comm_started(int *rank);

/* Support for several processes on this machine. */
typedef struct lr_comm_support {
    char library[96];      /* "Open MPI v4.1.4" */
    bool is_cuda_aware;    /* MPI accepts CUDA memory */
    bool can_compose;      /* LAPACKE, which lr_compose needs, is there */
    char nccl[48];         /* "NCCL 2.21.5"; "" = no NCCL, or no CUDA device */
    char nccl_reason[384]; /* why NCCL cannot be used; "" = NCCL can be used */
} lr_comm_support;

/* Finds the support for several processes without starting any. errors: LR_NO_DEVICE, logged, if LORaster was built
 * without MPI or MPI is not installed. */
LR_API lr_status lr_comm_probe(lr_comm_support *support, const lr_log *log);

/* Opens a communicator. If ranks have different versions of LORaster, the first rank that differs from rank 0 logs the
 * difference, and counts as failed (lr_comm_info.failed_rank).
 * errors: NULL, logged: LR_NO_DEVICE if LORaster was built without MPI, or if its plugin or MPI's library is missing;
 * LR_USAGE if params->mpi_comm belongs to an MPI that is not initialised or is not the library of the plugin; LR_USAGE
 * if MPI has been finalised, because it cannot be initialised again. */
LR_SIZED(lr_comm_params, lr_comm *, lr_comm_open, (const lr_comm_params *params), (params));

/* Frees the communicator. If no rank has failed, the function first waits until all ranks have called it. NULL is
 * allowed. */
LR_API void lr_comm_close(lr_comm *comm);

/* Returns the facts and the totals up to now, as a copy that later exchanges do not change. */
LR_API lr_comm_info lr_comm_get_info(const lr_comm *comm);

/* The number of threads that this rank should use, if the ranks of a machine share its processors. This is the number
 * of processors that the process may use, but at most the rank's share of all processors, and at least 1. */
LR_API int lr_comm_threads(const lr_comm *comm);

/* Marks this rank as failed. The other ranks notice this in their next call. Returns `status`, which must not be LR_OK.
 * If another rank failed before this one, the function only makes lr_last_error name the other rank. */
LR_API lr_status lr_comm_fail(lr_comm *comm, lr_status status);

/* Waits until all ranks have called this function. */
LR_API lr_status lr_comm_barrier(lr_comm *comm);

/* --- vectors --- */

/* A vector can be divided into shares, one for each rank. Rank r has the numbers offsets[r] .. offsets[r + 1] - 1.
 * offsets: [size + 1], from 0 to the vector's count. */

/* Sets `offsets` so that the shares are as equal as possible. */
LR_API void lr_comm_shares(const lr_comm *comm, int64_t count, int64_t *offsets);

/* Replaces the vector of each rank by the sum of the vectors of all ranks. */
LR_API lr_status lr_comm_sum(lr_comm *comm, lr_vector *vector);

/* Adds up vectors like lr_comm_sum, but each rank gets only its share of the sum. The rest of its vector is undefined
 * afterwards. */
LR_API lr_status lr_comm_sum_shares(lr_comm *comm, const int64_t *offsets, lr_vector *vector);

/* Each rank sends its share of the vector and receives the shares of all other ranks. */
LR_API lr_status lr_comm_gather(lr_comm *comm, const int64_t *offsets, lr_vector *vector);

/* Copies the vector of rank `from` to all ranks. */
LR_API lr_status lr_comm_broadcast(lr_comm *comm, int from, lr_vector *vector);

/* --- some numbers --- */

/* Each function replaces each number by the sum, the smallest or the largest number over all ranks. */
LR_API lr_status lr_comm_sum_numbers(lr_comm *comm, double *numbers, int count);
LR_API lr_status lr_comm_least(lr_comm *comm, double *numbers, int count);
LR_API lr_status lr_comm_most(lr_comm *comm, double *numbers, int count);

/* Sets *value to true on all ranks if it is true on any rank. */
LR_API lr_status lr_comm_any(lr_comm *comm, bool *value);

/* Checks that the first 255 bytes of `text` are the same on all ranks. errors: LR_BAD_INPUT on all ranks. The first
 * rank that differs from rank 0 counts as failed, and logs "rank 2 of 5 has another WHAT: ... where rank 0 has ...",
 * with `what` in place of WHAT. */
LR_API lr_status lr_comm_same(lr_comm *comm, const char *what, const char *text);

/* --- division of work --- */

/* Parameters of lr_partition, which assigns module pairs (or views, or ranges of events) to ranks. The pairs of each
 * subset are cut into pieces of neighbouring pairs. Each piece goes to the rank that has the least work in this subset
 * so far. */
typedef struct lr_partition_params {
    const lr_lors *lors;
    int ranks, subsets;
    const int32_t *subset_of; /* [num_pairs] 0 .. subsets - 1 */
    const double *costs;      /* [num_pairs] work of each pair, >= 0; NULL = number of its LORs */
    const lr_log *log;
} lr_partition_params;

/* rank_of: [num_pairs], overwritten. Every rank gets the same result. errors: LR_USAGE for more ranks than
 * pairs; LR_FAILED if memory runs out. */
LR_SIZED(lr_partition_params, lr_status, lr_partition, (const lr_partition_params *params, int32_t *rank_of),
         (params, rank_of));

#ifdef __cplusplus
}
#endif

#endif
