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

/* Maps a code of MPI to a status. The message of all errors is fns.mistake. */
static lr_status check(int code)
{
    return code == MPI_SUCCESS ? LR_OK : LR_FAILED;
}

static void describe(struct lr_comm_facts *facts)
{
    /* The text is "Open MPI v4.1.4, package: ...". Only the part before the first comma is kept. */
    const size_t size = sizeof(facts->way);
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "MPI";
    int length = 0;
    MPI_Get_library_version(text, &length);
    snprintf(facts->way, size, "%.*s", (int)strcspn(text, ",\n"), text);

    /* MPI's library is asked at run time, since it may have been built differently from the library of the headers. */
    facts->is_cuda_aware = false;
#if defined(MPIX_CUDA_AWARE_SUPPORT)
    facts->is_cuda_aware = MPIX_Query_cuda_support() == 1;
#endif
}

struct lr_comm_group {
    MPI_Comm comm; /* a duplicate of the caller's communicator, so that their messages do not mix */
    bool has_opened_mpi;
};

static struct lr_comm_group *open_mpi(const void *caller, const lr_log *log, struct lr_comm_facts *facts)
{
    int level = 0, is_open = 0, is_closed = 0, length = 0;
    char machine[MPI_MAX_PROCESSOR_NAME] = "";
    MPI_Initialized(&is_open);
    MPI_Finalized(&is_closed);
    describe(facts);
    if (is_closed || (caller != NULL && !is_open)) {
        lr_error(log, LR_USAGE,
                 is_closed ? "MPI was closed: a process can open it once"
                           : "the communicator given is of an MPI that is not open, or of another library than the %s "
                             "that LORaster was built with",
                 facts->way);
        return NULL;
    }
    if (!is_open && MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) {
        lr_error(log, LR_FAILED, "MPI cannot be started");
        return NULL;
    }
    struct lr_comm_group *group = lr_alloc(1, sizeof(*group), "a communicator", log);
    const MPI_Comm all = caller != NULL ? *(const MPI_Comm *)caller : MPI_COMM_WORLD;
    if (group == NULL || MPI_Comm_dup(all, &group->comm) != MPI_SUCCESS) {
        if (group != NULL) lr_error(log, LR_FAILED, "MPI cannot duplicate a communicator");
        free(group);
        return NULL;
    }
    group->has_opened_mpi = !is_open;
    MPI_Comm_set_errhandler(group->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(group->comm, &facts->rank);
    MPI_Comm_size(group->comm, &facts->size);
    MPI_Get_processor_name(machine, &length);
    snprintf(facts->machine, sizeof(facts->machine), "%.*s", length, machine);
    MPI_Comm local;
    facts->local_size = 1;
    if (MPI_Comm_split_type(group->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local) == MPI_SUCCESS) {
        MPI_Comm_rank(local, &facts->local_rank);
        MPI_Comm_size(local, &facts->local_size);
        MPI_Comm_free(&local);
    }
    return group;
}

static lr_status transfer(struct lr_comm_group *group, const struct lr_messages *messages)
{
    const int count = messages->num_sent + messages->num_received;
    MPI_Request *requests = malloc(sizeof(*requests) * (size_t)(count > 0 ? count : 1));
    int code = requests != NULL ? MPI_SUCCESS : MPI_ERR_NO_MEM, made = 0;
    for (; code == MPI_SUCCESS && made < count; made++) {
        const int sent = made - messages->num_received;
        const struct lr_message *message = sent < 0 ? &messages->received[made] : &messages->sent[sent];
        const int bytes = (int)message->count, peer = message->peer;
        code = sent < 0 ? MPI_Irecv(message->bytes, bytes, MPI_BYTE, peer, 0, group->comm, &requests[made])
                        : MPI_Isend(message->bytes, bytes, MPI_BYTE, peer, 0, group->comm, &requests[made]);
    }
    code = code == MPI_SUCCESS ? MPI_Waitall(made, requests, MPI_STATUSES_IGNORE) : code;
    free(requests);
    return check(code);
}

static lr_status gather_little(struct lr_comm_group *group, const void *own, void *all, int bytes)
{
    return check(MPI_Allgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, group->comm));
}

static lr_status broadcast(struct lr_comm_group *group, int from, void *bytes, int count)
{
    return check(MPI_Bcast(bytes, count, MPI_BYTE, from, group->comm));
}

static void abort_all(struct lr_comm_group *group, int code)
{
    MPI_Abort(group->comm, code);
}

static bool is_mpi_open(void)
{
    int is_closed = 0;
    MPI_Finalized(&is_closed);
    return !is_closed;
}

static void close_mpi(struct lr_comm_group *group, bool is_whole)
{
    if (is_mpi_open()) { /* the caller may have finalised MPI */
        if (is_whole) MPI_Barrier(group->comm);
        MPI_Comm_free(&group->comm);
        if (group->has_opened_mpi) MPI_Finalize();
    }
    free(group);
}

static const struct lr_comm_fns fns = {
    .open = open_mpi,
    .describe = describe,
    .transfer = transfer,
    .gather_little = gather_little,
    .broadcast = broadcast,
    .abort = abort_all,
    .is_open = is_mpi_open,
    .close = close_mpi,
    .mistake = "MPI could not exchange data among the ranks: has one of them been lost?",
};

#if defined(LR_HAS_LAPACKE)
/* LAPACK returns eigenvectors as columns of a matrix in column-major order. In C, these columns are rows. The given
 * matrix is symmetric, so its order does not matter. */
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
