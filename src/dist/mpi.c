/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The MPI plugin: the only file that includes mpi.h and lapacke.h. */
#include "dist/comm.h"
#include "plugin/plugin.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"

#if defined(LR_HAS_LAPACKE)
#include <lapacke.h>
#endif
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

/* MPI returns errors as codes. All codes lead to the same message, `mistake` in `fns`. */
static lr_status check(int code)
{
    return code == MPI_SUCCESS ? LR_OK : LR_FAILED;
}

/* Asks the library at run time, because it may be built differently from the one with the headers. */
static bool is_cuda_aware(void)
{
#if defined(MPIX_CUDA_AWARE_SUPPORT)
    return MPIX_Query_cuda_support() == 1;
#else
    return false;
#endif
}

static void describe(struct lr_comm_facts *facts)
{
    /* The text is "Open MPI v4.1.4, package: ...". Only the part before the first comma is kept. */
    const size_t size = sizeof(facts->way);
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "MPI";
    int length = 0;
    MPI_Get_library_version(text, &length);
    snprintf(facts->way, size, "%.*s", (int)strcspn(text, ",\n"), text);

    facts->is_cuda_aware = is_cuda_aware();
}

static lr_status open_mpi(const lr_log *log, struct lr_comm_facts *facts)
{
    int level = 0, is_open = 0, length = 0;
    char machine[MPI_MAX_PROCESSOR_NAME] = "";
    MPI_Initialized(&is_open);
    if (is_open) return lr_error(log, LR_USAGE, "MPI is open already: a process can open it once");
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return lr_error(log, LR_FAILED, "MPI cannot be started");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &facts->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &facts->size);
    MPI_Get_processor_name(machine, &length);
    snprintf(facts->machine, sizeof(facts->machine), "%.*s", length, machine);
    describe(facts);
    MPI_Comm local;
    facts->local_size = 1;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local) == MPI_SUCCESS) {
        MPI_Comm_rank(local, &facts->local_rank);
        MPI_Comm_size(local, &facts->local_size);
        MPI_Comm_free(&local);
    }

    return LR_OK;
}

static lr_status transfer(const struct lr_messages *messages)
{
    const int count = messages->num_sent + messages->num_received;
    MPI_Request *requests = malloc(sizeof(*requests) * (size_t)(count > 0 ? count : 1));
    int code = requests != NULL ? MPI_SUCCESS : MPI_ERR_NO_MEM, made = 0;
    for (int k = 0; code == MPI_SUCCESS && k < messages->num_received; k++) {
        const struct lr_message *message = &messages->received[k];
        code = MPI_Irecv(message->bytes, (int)message->count, MPI_BYTE, message->peer, 0, MPI_COMM_WORLD,
                         &requests[made++]);
    }
    for (int k = 0; code == MPI_SUCCESS && k < messages->num_sent; k++) {
        const struct lr_message *message = &messages->sent[k];
        code = MPI_Isend(message->bytes, (int)message->count, MPI_BYTE, message->peer, 0, MPI_COMM_WORLD,
                         &requests[made++]);
    }
    code = code == MPI_SUCCESS ? MPI_Waitall(made, requests, MPI_STATUSES_IGNORE) : code;
    free(requests);
    return check(code);
}

static lr_status gather_little(const void *own, void *all, int bytes)
{
    return check(MPI_Allgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD));
}

static lr_status broadcast(int from, void *bytes, int count)
{
    return check(MPI_Bcast(bytes, count, MPI_BYTE, from, MPI_COMM_WORLD));
}

static void abort_all(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

static void close_mpi(bool is_whole)
{
    if (is_whole) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

static const struct lr_comm_fns fns = {
    .open = open_mpi,
    .describe = describe,
    .transfer = transfer,
    .gather_little = gather_little,
    .broadcast = broadcast,
    .abort = abort_all,
    .close = close_mpi,
    .mistake = "MPI could not exchange data among the ranks: has one of them been lost?",
};

#if defined(LR_HAS_LAPACKE)
/* LAPACK returns eigenvectors in columns in column-major order, which are rows in C. The matrix itself is symmetric, so
 * its order does not matter. */
static lr_status eigen_lapacke(double *matrix, double *values, int size)
{
    return LAPACKE_dsyev(LAPACK_COL_MAJOR, 'V', 'U', size, matrix, size, values) == 0 ? LR_OK : LR_FAILED;
}
#endif

const struct lr_mpi_plugin lr_mpi_plugin = {
    .plugin = {lr_plugin_build, lr_pool_use, lr_errors_use},
    .fns = &fns,
#if defined(LR_HAS_LAPACKE)
    .eigen = eigen_lapacke,
#endif
};
