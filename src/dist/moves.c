/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sums and shares of vectors, by messages from each rank to each other: as many bytes as a ring moves,
 * and every number is added up at one rank, in the order of the ranks. */
#include "dist/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Numbers that all ranks together send a rank at a time, and those of one rank at least. */
enum { NUMBERS_AT_ONCE = 1 << 22, LEAST_AT_ONCE = 1 << 12 };

/* Bytes of a broadcast at a time. */
enum { BROADCAST_BYTES = 1 << 26 };

static int64_t size_of(const lr_vector *vector)
{
    return vector->precision == LR_FLOAT64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
}

/* --- vectors at a device --- */

static bool is_staging_for(const lr_comm *comm, const lr_vector *vector)
{
    return comm->staging.values != NULL && comm->staging.count >= vector->count &&
           comm->staging.precision == vector->precision;
}

/* *host: numbers on the host, which are the vector's, or room for them. */
static lr_status borrow(lr_comm *comm, const lr_vector *vector, lr_vector *host)
{
    if (vector->values != NULL) {
        *host = *vector;
        return LR_OK;
    }
    if (!is_staging_for(comm, vector)) {
        lr_vector_destroy(&comm->staging);
        LR_TRY(lr_vector_create(&(lr_vector_params){.count = vector->count,
                                                    .precision = vector->precision,
                                                    .name = "what ranks exchange",
                                                    .log = comm->log},
                                &comm->staging));
    }
    *host = lr_vector_part(&comm->staging, 0, vector->count);
    return LR_OK;
}

static lr_status take(lr_comm *comm, const lr_vector *vector, lr_vector *host)
{
    LR_TRY(borrow(comm, vector, host));
    return vector->values == NULL ? lr_vector_copy(vector, host) : LR_OK;
}

static lr_status bring_part(const lr_vector *host, lr_vector *vector, int64_t begin, int64_t end)
{
    const lr_vector from = lr_vector_part(host, begin, end - begin);
    lr_vector to = lr_vector_part(vector, begin, end - begin);
    return vector->values == NULL ? lr_vector_copy(&from, &to) : LR_OK;
}

/* --- shares --- */

void lr_comm_shares(const lr_comm *comm, int64_t count, int64_t *offsets)
{
    const int size = comm != NULL ? comm->facts.size : 1;
    for (int r = 0; r <= size; r++) {
        offsets[r] = count / size * r + (count % size < r ? count % size : r);
    }
}

/* How much of a rank's share is moved in a step that begins `at` numbers into every share. */
static int64_t left_of(const int64_t *offsets, int rank, int64_t at, int64_t most)
{
    const int64_t left = offsets[rank + 1] - offsets[rank] - at;
    return left < 0 ? 0 : left < most ? left : most;
}

static int64_t longest_share(const lr_comm *comm, const int64_t *offsets)
{
    int64_t longest = 0;
    for (int r = 0; r < comm->facts.size; r++) {
        const int64_t share = offsets[r + 1] - offsets[r];
        longest = share > longest ? share : longest;
    }
    return longest;
}

static int64_t numbers_at_once(const lr_comm *comm)
{
    const int64_t numbers = NUMBERS_AT_ONCE / comm->facts.size;
    return numbers > LEAST_AT_ONCE ? numbers : LEAST_AT_ONCE;
}

static char *number_at(const lr_vector *host, int64_t k)
{
    return (char *)host->values + k * size_of(host);
}

static void post(struct lr_message *list, int *count, struct lr_message message)
{
    if (message.count > 0) {
        list[(*count)++] = message;
    }
}

static lr_status transfer(lr_comm *comm, struct lr_messages *messages)
{
    for (int k = 0; k < messages->num_sent; k++) {
        comm->sent_bytes += (double)messages->sent[k].count;
    }
    return lr_comm_check(comm, comm->fns->transfer(messages));
}

/* --- sums --- */

/* own = the sum over the ranks, of which the others' pieces lie one after the other. */
#define ADD_PIECES(type)                                                                           \
    do {                                                                                           \
        type *sums = (type *)own;                                                                  \
        const type *pieces = comm->pieces;                                                         \
        for (int64_t k = 0; k < count; k++) {                                                      \
            double sum = 0.0;                                                                      \
            for (int r = 0; r < comm->facts.size; r++) {                                           \
                sum += r == comm->facts.rank ? sums[k] : pieces[r * comm->piece_numbers + k];      \
            }                                                                                      \
            sums[k] = (type)sum;                                                                   \
        }                                                                                          \
    } while (0)

static void add_pieces(const lr_comm *comm, lr_precision precision, void *own, int64_t count)
{
    if (precision == LR_FLOAT64) {
        ADD_PIECES(double);
    } else {
        ADD_PIECES(float);
    }
}

static lr_status make_pieces(lr_comm *comm)
{
    if (comm->pieces == NULL) {
        comm->piece_numbers = numbers_at_once(comm);
        comm->pieces = lr_alloc(comm->piece_numbers * comm->facts.size, sizeof(double),
                                "what ranks send", comm->log);
    }
    return comm->pieces != NULL ? LR_OK : LR_FAILED;
}

static lr_status sum_step(lr_comm *comm, const int64_t *offsets, const lr_vector *host, int64_t at)
{
    struct lr_messages messages = comm->arrays;
    const int64_t size = size_of(host), most = comm->piece_numbers;
    const int rank = comm->facts.rank;
    const int64_t own = left_of(offsets, rank, at, most);
    for (int r = 0; r < comm->facts.size; r++) {
        if (r == rank) {
            continue;
        }
        const int64_t theirs = left_of(offsets, r, at, most);
        post(messages.sent, &messages.num_sent,
             (struct lr_message){r, number_at(host, offsets[r] + at), theirs * size});
        post(messages.received, &messages.num_received,
             (struct lr_message){r, (char *)comm->pieces + r * most * size, own * size});
    }
    LR_TRY(transfer(comm, &messages));
    add_pieces(comm, host->precision, number_at(host, offsets[rank] + at), own);
    return LR_OK;
}

static lr_status sum_host(lr_comm *comm, const int64_t *offsets, const lr_vector *host)
{
    const int64_t longest = longest_share(comm, offsets);
    for (int64_t at = 0; at < longest; at += comm->piece_numbers) {
        LR_TRY(sum_step(comm, offsets, host, at));
    }
    return LR_OK;
}

/* --- the others' shares --- */

static lr_status gather_host(lr_comm *comm, const int64_t *offsets, const lr_vector *host)
{
    const int64_t longest = longest_share(comm, offsets), most = numbers_at_once(comm);
    const int64_t size = size_of(host);
    const int rank = comm->facts.rank;
    for (int64_t at = 0; at < longest; at += most) {
        struct lr_messages messages = comm->arrays;
        for (int r = 0; r < comm->facts.size; r++) {
            if (r == rank) {
                continue;
            }
            post(messages.sent, &messages.num_sent,
                 (struct lr_message){r, number_at(host, offsets[rank] + at),
                                     left_of(offsets, rank, at, most) * size});
            post(messages.received, &messages.num_received,
                 (struct lr_message){r, number_at(host, offsets[r] + at),
                                     left_of(offsets, r, at, most) * size});
        }
        LR_TRY(transfer(comm, &messages));
    }
    return LR_OK;
}

/* --- the interface --- */

lr_status lr_comm_sum_shares(lr_comm *comm, const int64_t *offsets, lr_vector *vector)
{
    lr_vector host;
    if (lr_comm_is_single(comm)) {
        return LR_OK;
    }
    const int rank = comm->facts.rank;
    lr_status status = make_pieces(comm);
    status = status == LR_OK ? take(comm, vector, &host) : status;
    LR_TRY(lr_comm_fail(comm, status));
    LR_TRY(lr_comm_meet(comm, LR_COMM_STEP_SUM, vector->count));
    const double begin = lr_clock_seconds();
    LR_TRY(sum_host(comm, offsets, &host));
    LR_TRY(bring_part(&host, vector, offsets[rank], offsets[rank + 1]));
    comm->moving_s += lr_clock_seconds() - begin;
    return LR_OK;
}

lr_status lr_comm_gather(lr_comm *comm, const int64_t *offsets, lr_vector *vector)
{
    lr_vector host;
    if (lr_comm_is_single(comm)) {
        return LR_OK;
    }
    const int rank = comm->facts.rank;
    const int64_t begin_of = offsets[rank], own = offsets[rank + 1] - begin_of;
    lr_status status = borrow(comm, vector, &host);
    if (status == LR_OK && vector->values == NULL) {
        const lr_vector from = lr_vector_part(vector, begin_of, own);
        lr_vector to = lr_vector_part(&host, begin_of, own);
        status = lr_vector_copy(&from, &to);
    }
    LR_TRY(lr_comm_fail(comm, status));
    LR_TRY(lr_comm_meet(comm, LR_COMM_STEP_GATHER, vector->count));
    const double begin = lr_clock_seconds();
    LR_TRY(gather_host(comm, offsets, &host));
    LR_TRY(bring_part(&host, vector, 0, vector->count));
    comm->moving_s += lr_clock_seconds() - begin;
    return LR_OK;
}

lr_status lr_comm_sum(lr_comm *comm, lr_vector *vector)
{
    if (lr_comm_is_single(comm)) {
        return LR_OK;
    }
    int64_t *offsets =
        lr_alloc((int64_t)comm->facts.size + 1, sizeof(*offsets), "shares of ranks", comm->log);
    lr_status status = lr_comm_fail(comm, offsets != NULL ? LR_OK : LR_FAILED);
    if (status == LR_OK) {
        lr_comm_shares(comm, vector->count, offsets);
        status = lr_comm_sum_shares(comm, offsets, vector);
    }
    status = status == LR_OK ? lr_comm_gather(comm, offsets, vector) : status;
    free(offsets);
    return status;
}

static lr_status broadcast_host(lr_comm *comm, int from, const lr_vector *host)
{
    const int64_t bytes = host->count * size_of(host);
    for (int64_t at = 0; at < bytes; at += BROADCAST_BYTES) {
        const int64_t left = bytes - at;
        const int count = (int)(left < BROADCAST_BYTES ? left : BROADCAST_BYTES);
        LR_TRY(lr_comm_check(comm, comm->fns->broadcast(from, (char *)host->values + at, count)));
        comm->sent_bytes += from == comm->facts.rank ? count : 0;
    }
    return LR_OK;
}

lr_status lr_comm_broadcast(lr_comm *comm, int from, lr_vector *vector)
{
    lr_vector host;
    if (lr_comm_is_single(comm)) {
        return LR_OK;
    }
    const bool has_it = comm->facts.rank == from;
    LR_TRY(lr_comm_fail(comm, (has_it ? take : borrow)(comm, vector, &host)));
    LR_TRY(lr_comm_meet(comm, LR_COMM_STEP_BROADCAST, vector->count));
    const double begin = lr_clock_seconds();
    LR_TRY(broadcast_host(comm, from, &host));
    LR_TRY(has_it ? LR_OK : bring_part(&host, vector, 0, vector->count));
    comm->moving_s += lr_clock_seconds() - begin;
    return LR_OK;
}
