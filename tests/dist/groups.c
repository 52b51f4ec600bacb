/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Run by mpirun, with an MPI of its own: communicators of LORaster among groups of its processes. */
#include <lr/comm.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, size, mistakes;

static void expect(bool is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "process %d of %d: %s\n", rank, size, what);
        mistakes++;
    }
}

static void expect_refused(const lr_comm_params *params, const char *why)
{
    lr_status status;
    expect(lr_comm_open(params) == NULL, "it is opened");
    expect(strstr(lr_last_error(&status), why) != NULL && status == LR_USAGE, lr_last_error(NULL));
}

/* The sum of all processes' numbers that are in the same group. */
static void check_group(const lr_comm_params *params, int step)
{
    lr_comm *comm = lr_comm_open(params);
    const lr_comm_info info = lr_comm_get_info(comm);
    double number = rank, expected = 0;
    lr_vector vector = lr_vector_of_doubles(&number, 1);
    for (int k = rank % step; k < size; k += step) expected += k;
    expect(comm != NULL && info.rank == rank / step, "the rank in the group");
    expect(info.size == (size - rank % step + step - 1) / step, "the size of the group");
    expect(lr_comm_sum(comm, &vector) == LR_OK && number == expected, "the sum over the group");
    expect(lr_comm_barrier(comm) == LR_OK, "the barrier");
    lr_comm_close(comm);
}

int main(void)
{
    MPI_Comm group = MPI_COMM_NULL;
    expect_refused(&(lr_comm_params){.mpi_comm = &group}, "not open");
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &group);
    check_group(&(lr_comm_params){.mpi_comm = &group}, 2);
    check_group(&(lr_comm_params){.kind = LR_COMM_MPI}, 1);
    MPI_Comm_free(&group);

    /* MPI is as it was. */
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(sum == size * (size - 1) / 2, "a sum after LORaster's");
    MPI_Finalize();
    expect_refused(&(lr_comm_params){.kind = LR_COMM_MPI}, "was closed");
    return mistakes > 0;
}
