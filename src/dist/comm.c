/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Opening, closing and facts of communicators. */
#include "dist/comm.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "plugin/plugin.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A failed rank waits this long for the other ranks, which may be waiting for data from its device. */
static const double default_patience_s = 20.0;

static int read_number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    char *end;
    const long number = text != NULL ? strtol(text, &end, 10) : -1;
    return text != NULL && end != text && *end == '\0' && number >= 0 && number < INT_MAX ? (int)number : otherwise;
}

/* Environment variables set by Open MPI's mpirun, by the PMI of MPICH and srun, and by srun's PMIx. */
static const struct launcher {
    const char *size, *rank;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"PMI_SIZE", "PMI_RANK"},
    {"SLURM_STEP_NUM_TASKS", "PMIX_RANK"},
};

int lr_comm_started(int *rank)
{
    for (size_t k = 0; k < sizeof(launchers) / sizeof(launchers[0]); k++) {
        const int size = read_number(launchers[k].size, 0);
        const int own = read_number(launchers[k].rank, -1);
        if (size > 1 && own >= 0 && own < size) {
            if (rank != NULL) *rank = own;
            return size;
        }
    }
    if (rank != NULL) *rank = 0;
    return 1;
}

lr_comm *lr_comm_open_sized(size_t given_bytes, const lr_comm_params *given)
{
    LR_TAKE(lr_comm_params, params, given, given_bytes);
    const bool is_several = params->mpi_comm != NULL || lr_comm_started(NULL) > 1;
    const bool is_mpi = params->kind == LR_COMM_MPI || (params->kind == LR_COMM_AUTO && is_several);
    lr_comm *comm = lr_alloc(1, sizeof(*comm), "a communicator", params->log);
    if (comm == NULL) return NULL;
    comm->log = params->log;
    comm->exchange = params->exchange;
    comm->patience_s = params->patience_s > 0.0 ? params->patience_s : default_patience_s;
    comm->stranded = params->stranded;
    comm->user = params->user;
    comm->route.way = LR_WAY_OPEN;
    comm->failed_rank = -1;
    comm->facts.size = comm->facts.local_size = 1;
    (void)gethostname(comm->facts.machine, sizeof(comm->facts.machine) - 1);
    snprintf(comm->facts.way, sizeof(comm->facts.way), "one process");

    if (!is_mpi) return comm;
    const struct lr_mpi_plugin *mpi = lr_plugin_mpi(comm->log);
    comm->group = mpi != NULL ? mpi->fns->open(params->mpi_comm, comm->log, &comm->facts) : NULL;
    if (comm->group == NULL) {
        lr_comm_close(comm);
        return NULL;
    }
    comm->fns = mpi->fns;
    const int size = comm->facts.size;
    comm->little = lr_alloc(size, LR_COMM_LITTLE, "messages of ranks", comm->log);
    comm->arrays.sent = lr_alloc(size, sizeof(*comm->arrays.sent), "messages of ranks", comm->log);
    comm->arrays.received = lr_alloc(size, sizeof(*comm->arrays.received), "messages of ranks", comm->log);
    if (comm->little == NULL || comm->arrays.sent == NULL || comm->arrays.received == NULL) {
        comm->fns->abort(comm->group, 1);
        lr_comm_close(comm);
        return NULL;
    }
    /* If versions differ, all ranks note a failure, which the next exchange returns. */
    (void)lr_comm_same(comm, "version of LORaster", lr_plugin_build);
    return comm;
}

void lr_comm_close(lr_comm *comm)
{
    if (comm == NULL) return;
    /* This rank closes even if another rank fails or makes another call. */
    if (comm->little != NULL && !lr_comm_is_single(comm) && comm->fns->is_open())
        (void)lr_comm_meet(comm, LR_COMM_STEP_CLOSE, 0);
    lr_comm_close_route(comm, comm->failed_status == LR_OK);
    if (comm->fns != NULL) comm->fns->close(comm->group, true);
    lr_free_all(comm->little, comm->arrays.sent, comm->arrays.received, comm);
}

lr_comm_info lr_comm_get_info(const lr_comm *comm)
{
    static const lr_comm none = {.facts = {.size = 1, .local_size = 1, .way = "one process"}, .failed_rank = -1};
    if (comm == NULL) comm = &none;
    const struct lr_comm_route *route = &comm->route;
    return (lr_comm_info){.rank = comm->facts.rank,
                          .size = comm->facts.size,
                          .local_rank = comm->facts.local_rank,
                          .local_size = comm->facts.local_size,
                          .machine = comm->facts.machine,
                          .way = comm->facts.way,
                          .is_cuda_aware = comm->facts.is_cuda_aware,
                          .exchange = route->name,
                          .exchange_reason = route->reason,
                          .failed_rank = comm->failed_rank,
                          .failed_status = comm->failed_status,
                          .sent_bytes = comm->sent_bytes,
                          .moving_s = comm->moving_s + (route->link != NULL ? route->fns->seconds(route->link) : 0.0),
                          .waiting_s = comm->waiting_s};
}

int lr_comm_threads(const lr_comm *comm)
{
    const int own = lr_num_processors(), all = (int)sysconf(_SC_NPROCESSORS_ONLN);
    const int share = comm != NULL ? all / comm->facts.local_size : own;
    return share < 1 ? 1 : share < own ? share : own;
}
