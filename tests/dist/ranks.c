/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Run by mpirun: tests communicators against the results that each rank computes itself, as it knows the numbers of
 * all ranks. */
#include <lr/comm.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, mistakes;

static void expect(bool is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "rank %d of %d: %s\n", rank, size, what);
        mistakes++;
    }
}

static void hear(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    (void)user;
    (void)status;
    if (level >= LR_LOG_WARNING) fprintf(stdout, "rank %d: %s\n", rank, sentence);
}

/* Numbers whose floating-point sum depends on the order. */
static double value_of(int r, int64_t k)
{
    return 1.0 / (3.0 + r) + (double)(k % 1000) * (r + 1);
}

/* Sum over the ranks, in their order, of numbers that are stored as floats or doubles. */
static double sum_of(int64_t k, bool is_float)
{
    double sum = 0;
    for (int r = 0; r < size; r++) sum += is_float ? (double)(float)value_of(r, k) : value_of(r, k);
    return sum;
}

static lr_vector make(lr_place *place, int64_t count)
{
    lr_vector vector;
    expect(lr_vector_create(&(lr_vector_params){.place = place, .count = count}, &vector) == LR_OK, "memory");
    return vector;
}

/* Vectors are at `place`, and their numbers are checked on the host. */
static void fill(float *numbers, lr_vector *vector)
{
    const lr_vector host = lr_vector_of_floats(numbers, vector->count);
    for (int64_t k = 0; k < vector->count; k++) numbers[k] = (float)value_of(rank, k);
    expect(lr_vector_copy(&host, vector) == LR_OK, "a copy to the place");
}

static void look(const lr_vector *vector, float *numbers)
{
    lr_vector host = lr_vector_of_floats(numbers, vector->count);
    expect(lr_vector_copy(vector, &host) == LR_OK, "a copy from the place");
}

/* Equal bit for bit, because ranks are added in their order. */
static void check_shares(lr_comm *comm, lr_vector *vector, float *numbers, const int64_t *offsets)
{
    int64_t wrong = 0;
    fill(numbers, vector);
    expect(lr_comm_sum_shares(comm, offsets, vector) == LR_OK, "sum of shares");
    look(vector, numbers);
    for (int64_t k = 0; k < vector->count; k++) {
        const bool own = k >= offsets[rank] && k < offsets[rank + 1];
        wrong += own && numbers[k] != (float)sum_of(k, true);
        numbers[k] = own ? numbers[k] : -1.0f;
    }
    expect(wrong == 0, "a share is not the sum");
    const lr_vector host = lr_vector_of_floats(numbers, vector->count);
    expect(lr_vector_copy(&host, vector) == LR_OK, "a copy to the place");
    expect(lr_comm_gather(comm, offsets, vector) == LR_OK, "gather");
    look(vector, numbers);
    for (int64_t k = 0; k < vector->count; k++) wrong += numbers[k] != (float)sum_of(k, true);
    expect(wrong == 0, "shares of others have not arrived");
}

static void check_sums(lr_comm *comm, lr_place *place, int64_t count)
{
    int64_t *offsets = calloc((size_t)size + 1, sizeof(*offsets)), wrong = 0;
    float *numbers = calloc((size_t)count, sizeof(*numbers));
    lr_vector vector = make(place, count);
    fill(numbers, &vector);
    expect(lr_comm_sum(comm, &vector) == LR_OK, "sum");
    look(&vector, numbers);
    for (int64_t k = 0; k < count; k++) wrong += numbers[k] != (float)sum_of(k, true);
    expect(wrong == 0, "a sum over the ranks is not that in their order");
    /* Shares that differ: rank r has about (r + 1) parts, and rank 1 none. */
    const int64_t parts = (int64_t)size * (size + 1) / 2;
    offsets[0] = 0;
    for (int r = 0; r < size; r++) {
        const int64_t share = r == size - 1 ? count - offsets[r] : count * (r + 1) / parts;
        offsets[r + 1] = offsets[r] + (r == 1 && size > 2 ? 0 : share);
    }
    offsets[size] = count;
    check_shares(comm, &vector, numbers, offsets);
    fill(numbers, &vector);
    expect(lr_comm_broadcast(comm, size - 1, &vector) == LR_OK, "broadcast");
    look(&vector, numbers);
    for (int64_t k = 0; k < count; k++) wrong += numbers[k] != (float)value_of(size - 1, k);
    expect(wrong == 0, "a broadcast differs from what was sent");
    lr_vector_destroy(&vector);
    free(numbers);
    free(offsets);
}

static void check_doubles(lr_comm *comm, lr_place *place)
{
    double numbers[1000];
    lr_vector host = lr_vector_of_doubles(numbers, 1000), vector;
    const lr_vector_params params = {.place = place, .count = 1000, .precision = LR_FLOAT64};
    expect(lr_vector_create(&params, &vector) == LR_OK, "memory");
    for (int k = 0; k < 1000; k++) numbers[k] = value_of(rank, k);
    expect(lr_vector_copy(&host, &vector) == LR_OK, "a copy to the place");
    expect(lr_comm_sum(comm, &vector) == LR_OK, "sum of doubles");
    expect(lr_vector_copy(&vector, &host) == LR_OK, "a copy from the place");
    for (int k = 0; k < 1000; k++) expect(numbers[k] == sum_of(k, false), "a sum of doubles");
    lr_vector_destroy(&vector);
}

static void check_numbers(lr_comm *comm)
{
    double sums[200], least[2] = {rank, -rank}, most[2] = {rank, -rank};
    bool any = rank == size - 1, none = false;
    for (int k = 0; k < 200; k++) sums[k] = value_of(rank, k);
    expect(lr_comm_sum_numbers(comm, sums, 200) == LR_OK, "sum of numbers");
    for (int k = 0; k < 200; k++) expect(sums[k] == sum_of(k, false), "a sum of numbers");
    expect(lr_comm_least(comm, least, 2) == LR_OK && least[0] == 0 && least[1] == 1 - size, "least");
    expect(lr_comm_most(comm, most, 2) == LR_OK && most[0] == size - 1 && most[1] == 0, "most");
    expect(lr_comm_any(comm, &any) == LR_OK && any, "any of them");
    expect(lr_comm_any(comm, &none) == LR_OK && !none, "none of them");
    expect(lr_comm_same(comm, "word", "the same") == LR_OK, "the same text");
}

static void check_moves(lr_comm *comm, lr_place *place)
{
    check_sums(comm, place, 1);
    check_sums(comm, place, 1000);
    check_sums(comm, place, 1234567);
    check_doubles(comm, place);
}

static void say_way(const lr_comm *comm)
{
    const lr_comm_info info = lr_comm_get_info(comm);
    if (rank == 0) printf("by %s: %s\n", info.exchange, info.exchange_reason);
}

/* Vectors are at a place of this kind, then at another place of the same device, then on the host. Prints the number
 * of bytes copied. */
static void check_device(lr_comm *comm, lr_place_kind kind)
{
    for (int turn = 0; turn < 2; turn++) {
        lr_place *place = lr_place_open(&(lr_place_params){.kind = kind});
        if (place == NULL) {
            expect(false, "there is no such place");
            return;
        }
        check_moves(comm, place);
        lr_place_close(place);
    }
    check_moves(comm, NULL);
    say_way(comm);
}

/* If ranks exchange directly, summing a vector copies none of its numbers to the host. */
static void check_traffic(lr_comm *comm)
{
    lr_place *place = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA});
    lr_vector vector = make(place, 100000);
    expect(lr_comm_sum(comm, &vector) == LR_OK, "sum");
    const lr_traffic traffic = lr_place_get_info(place).traffic;
    const bool is_direct = strcmp(lr_comm_get_info(comm).exchange, "host memory") != 0;
    expect((traffic.to_host + traffic.to_device == 0) == is_direct, "bytes that cross");
    lr_vector_destroy(&vector);
    lr_place_close(place);
}

static void say_stranded(void *user)
{
    (void)user;
    printf("rank %d is alone\n", rank);
    fflush(stdout);
}

static lr_exchange exchange_named(const char *name)
{
    return strcmp(name, "nccl") == 0   ? LR_EXCHANGE_NCCL
           : strcmp(name, "mpi") == 0  ? LR_EXCHANGE_MPI
           : strcmp(name, "host") == 0 ? LR_EXCHANGE_HOST
                                       : LR_EXCHANGE_AUTO;
}

/* Adds up over all ranks until a sum fails; every rank must then know that rank 1 failed. */
static void check_broken(lr_comm *comm)
{
    float number = 1;
    lr_vector host = lr_vector_of_floats(&number, 1);
    lr_place *place = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA});
    lr_vector vector = make(place, 1);
    lr_status status = LR_OK;
    for (int k = 0; status == LR_OK && k < 100; k++) status = lr_comm_sum(comm, &vector);
    expect(status == LR_FAILED && lr_comm_get_info(comm).failed_rank == 1, "which rank has failed");
    expect(lr_comm_sum(comm, &vector) == LR_FAILED, "calls after a failure");
    expect(lr_vector_copy(&vector, &host) == LR_OK, "the place after a failure");
    lr_vector_destroy(&vector);
    lr_place_close(place);
}

int main(int argc, char **argv)
{
    const lr_log log = {hear, NULL};
    lr_comm *comm = lr_comm_open(&(lr_comm_params){
        .exchange = exchange_named(argc > 2 ? argv[2] : ""), .log = &log, .patience_s = 1, .stranded = say_stranded});
    if (comm == NULL) return 1;
    const lr_comm_info info = lr_comm_get_info(comm);
    const char *topic = argc > 1 ? argv[1] : "moves";
    rank = info.rank;
    size = info.size;
    int started_rank = -1;
    const bool is_other = rank == size - 1 && size > 1;
    float numbers[2] = {1, 0};
    lr_vector one = lr_vector_of_floats(numbers, 1);
    expect(lr_comm_started(&started_rank) == size && started_rank == rank, "the environment");
    expect(info.local_rank == rank && info.local_size == size, "all are on this machine");
    if (strcmp(topic, "failure") == 0) {
        /* The last rank fails while the others add up: no rank waits for ever, and all know which one has failed. */
        lr_status status = LR_FAILED;
        if (rank == size - 1)
            lr_comm_fail(comm, LR_FAILED);
        else
            status = lr_comm_sum(comm, &one);
        expect(status == LR_FAILED, "the failure of another rank");
        expect(lr_comm_get_info(comm).failed_rank == (size > 1 ? size - 1 : -1), "which rank has failed");
        expect(size == 1 || lr_comm_barrier(comm) == LR_FAILED, "calls after a failure");
    } else if (strcmp(topic, "difference") == 0) {
        /* One rank has another file name; only that rank reports it. */
        expect(lr_comm_same(comm, "file", is_other ? "b.h5" : "a.h5") == (size > 1 ? LR_BAD_INPUT : LR_OK),
               "ranks with another file");
        expect(lr_comm_get_info(comm).failed_rank == (size > 1 ? size - 1 : -1), "which one differs");
    } else if (strcmp(topic, "mismatch") == 0) {
        /* One rank adds up more numbers than the others. */
        one.count = is_other ? 2 : 1;
        expect(lr_comm_sum(comm, &one) == (size > 1 ? LR_BAD_INPUT : LR_OK), "vectors of other lengths");
    } else if (strcmp(topic, "device") == 0) {
        check_device(comm, LR_PLACE_CUDA);
        check_traffic(comm);
    } else if (strcmp(topic, "which") == 0) {
        check_traffic(comm);
        say_way(comm);
    } else if (strcmp(topic, "drawn") == 0) {
        check_device(comm, LR_PLACE_GL);
    } else if (strcmp(topic, "broken") == 0) {
        check_broken(comm);
    } else {
        check_moves(comm, NULL);
        check_numbers(comm);
    }
    if (rank == 0 && size > 1) {
        const lr_comm_info after = lr_comm_get_info(comm);
        printf("%s of %d ranks by %s: %.0f bytes sent\n", topic, size, after.way, after.sent_bytes);
    }
    lr_comm_close(comm);
    return mistakes > 0;
}
