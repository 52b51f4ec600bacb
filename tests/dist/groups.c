/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Run by mpirun, in a program that uses MPI itself: communicators of LORaster among groups of its processes, and
 * calls in which one rank passes something wrong. */
#include "fixtures.h"

#include <lr/comm.h>
#include <lr/recon.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Sums a number over all processes of a group, and checks the result. */
static void check_group(const lr_comm_params *params, int step)
{
    lr_comm *comm = lr_comm_open(params);
    const lr_comm_info info = lr_comm_get_info(comm);
    double number = rank, expected = 0;
    for (int k = rank % step; k < size; k += step) expected += k;
    expect(comm != NULL && info.rank == rank / step, "the rank in the group");
    expect(info.size == (size - rank % step + step - 1) / step, "the size of the group");
    expect(lr_comm_sum(comm, vector_of(&number, 1)) == LR_OK && number == expected, "the sum over the group");
    expect(lr_comm_barrier(comm) == LR_OK, "the barrier");
    lr_comm_close(comm);
}

/* --- mistakes of the last rank --- */

enum by { RECON, OSEM, DISTRIBUTED, COMPOSED };
enum what {
    NO_OPERATOR,
    NO_DATA,
    NO_IMAGE,
    NEGATIVE_ITERATIONS,
    OTHER_ITERATIONS,
    OTHER_ALGORITHM,
    NO_ALGORITHM,
    A_PRIOR,
    OTHER_SIZE,
    NEGATIVE_COUNTS,
    NO_SUBSET
};

/* `sentence`: the error on the last rank, which makes the mistake; the errors on the other ranks name that rank. */
static const struct mistake {
    enum by by;
    enum what what;
    const char *sentence;
} wrong[] = {{RECON, NO_OPERATOR, "needs an operator"},
             {RECON, NO_DATA, "needs an operator, data"},
             {RECON, NO_IMAGE, "an image to go to"},
             {RECON, NEGATIVE_ITERATIONS, "-1 iterations"},
             {RECON, OTHER_ITERATIONS, "another reconstruction than that of rank 0"},
             {RECON, OTHER_ALGORITHM, "another reconstruction than that of rank 0"},
             {RECON, NO_ALGORITHM, "algorithm 99 does not exist"},
             {RECON, A_PRIOR, "a prior belongs to BSREM"},
             {RECON, OTHER_SIZE, "values"},
             {RECON, NEGATIVE_COUNTS, "is -1"},
             {RECON, NO_SUBSET, "subset"},
             {OSEM, OTHER_ALGORITHM, "OSEM is asked for algorithm"},
             {DISTRIBUTED, NO_DATA, "data"},
             {DISTRIBUTED, A_PRIOR, "nor a prior"},
             {COMPOSED, NO_OPERATOR, "operator"},
             {COMPOSED, NEGATIVE_COUNTS, "is -1"}};

static void check_mistake(const struct mistake *mistake, lr_operator *op)
{
    static const int32_t seven = 7;
    const lr_rdp prior = {.beta = 1.0, .gamma = 2.0};
    const lr_operator_info *info = lr_operator_get_info(op);
    float *image = calloc((size_t)info->num_voxels, sizeof(*image));
    float *data = calloc((size_t)info->num_lors, sizeof(*data)), one = 1.0f;
    for (int64_t lor = 0; lor < info->num_lors; lor++) data[lor] = 1.0f;
    lr_comm *comm = lr_comm_open(&(lr_comm_params){.kind = LR_COMM_MPI});
    lr_vector x = lr_vector_of_floats(image, info->num_voxels), y = lr_vector_of_floats(data, info->num_lors),
              few = lr_vector_of_floats(&one, 1);
    lr_recon_params params = {.op = op, .data = &y, .iterations = 2, .subsets = 1, .comm = comm};
    if (rank == size - 1) {
        switch (mistake->what) {
        case NO_OPERATOR: params.op = NULL; break;
        case NO_DATA: params.data = NULL; break;
        case NO_IMAGE: x = (lr_vector){0}; break;
        case NEGATIVE_ITERATIONS: params.iterations = -1; break;
        case OTHER_ITERATIONS: params.iterations = 3; break;
        case OTHER_ALGORITHM: params.algorithm = LR_ALGORITHM_RAMLA; break;
        case NO_ALGORITHM: params.algorithm = (lr_recon_algorithm)99; break;
        case A_PRIOR: params.prior = &prior; break;
        case OTHER_SIZE: params.data = &few; break;
        case NEGATIVE_COUNTS: data[0] = -1.0f; break;
        case NO_SUBSET: params.subset_of = &seven; break; /* the operator has one pair */
        }
    }
    lr_compose_params compose = {.local = params, .comm = comm};
    compose.local.comm = NULL;
    const lr_status status = mistake->by == RECON  ? lr_recon(&params, &x)
                             : mistake->by == OSEM ? lr_osem(&params, &x)
                             : mistake->by == DISTRIBUTED
                                 ? lr_recon_distributed(&(lr_distributed_params){.recon = params}, &x)
                                 : lr_compose(&compose, &x);
    const char *said = lr_last_error(NULL);
    char text[200];
    snprintf(text, sizeof(text), "rank %d of %d has failed or was stopped", size - 1, size);
    const bool is_said = strstr(said, rank == size - 1 ? mistake->sentence : text) != NULL;
    snprintf(text, sizeof(text), "%s (%s): %.150s", mistake->sentence, lr_status_name(status), said);
    expect((status == LR_USAGE || status == LR_BAD_INPUT) && is_said, text);
    expect(lr_comm_get_info(comm).failed_rank == size - 1, text);
    lr_comm_close(comm);
    free(data);
    free(image);
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
    struct fixture fixture;
    fixture_init(&fixture, FIXTURE_OPPOSED);
    const lr_operator_params params = fixture_params(&fixture, "cpu", NULL);
    lr_operator *op = fixture_operator(&params);
    for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) check_mistake(&wrong[k], op);
    lr_operator_destroy(op);
    fixture_finish(&fixture);
    /* One rank fails while the other ranks have succeeded and close the communicator. */
    lr_comm *comm = lr_comm_open(&(lr_comm_params){.kind = LR_COMM_MPI});
    if (rank == 0) expect(lr_comm_fail(comm, LR_FAILED) == LR_FAILED, "a failure at the end");
    lr_comm_close(comm);

    /* MPI still works after LORaster has closed its communicators. */
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(sum == size * (size - 1) / 2, "a sum after LORaster's");
    MPI_Finalize();
    expect_refused(&(lr_comm_params){.kind = LR_COMM_MPI}, "was closed");
    return mistakes > 0;
}
