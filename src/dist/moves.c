/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sums and shares of vectors, by messages from each rank to each other: as many bytes as a ring moves,
 * and every number is added up at one rank, in the order of the ranks. Messages are out of the host's
 * memory or out of a device's, and are the same in either. */
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

/* A vector on its way. */
struct move {
    lr_comm *comm;
    lr_vector *vector;
    enum lr_comm_way way;
    lr_vector there;    /* what messages are of: the vector, or a copy of it */
    int64_t begin, end; /* that of it which the vector gives at first */
    double begin_s;
};

static int64_t size_of(const lr_vector *vector)
{
    return lr_vector_size(vector);
}

static bool is_on_device(const struct move *move)
{
    return move->way == LR_WAY_MPI || move->way == LR_WAY_NCCL;
}

static bool is_copy(const struct move *move)
{
    return move->there.values != move->vector->values || move->there.storage != move->vector->storage;
}

/* --- copies of vectors --- */

/* Memory of the host that CUDA copies from and to directly is several times faster. */
static void pin_staging(lr_comm *comm, const lr_vector *vector)
{
    lr_place *place = vector->place;
    if (place->kind == LR_PLACE_CUDA && place->fns->link != NULL && comm->pinned == NULL &&
        place->fns->link->pin(place, comm->staging.values, comm->staging.count * size_of(&comm->staging)))
        comm->pinned = lr_place_keep(place);
}

static void drop_staging(lr_comm *comm)
{
    if (comm->pinned != NULL) {
        comm->pinned->fns->link->unpin(comm->pinned, comm->staging.values);
        lr_place_close(comm->pinned);
        comm->pinned = NULL;
    }
    lr_vector_destroy(&comm->staging);
}

static bool is_room_for(const lr_vector *room, const lr_vector *vector)
{
    return (room->values != NULL || room->storage != NULL) && room->count >= vector->count &&
           room->precision == vector->precision;
}

static lr_status make_room(lr_comm *comm, lr_place *place, int64_t count, const lr_vector *like, lr_vector *room)
{
    lr_vector_destroy(room);
    return lr_vector_create(&(lr_vector_params){.place = place,
                                                .count = count,
                                                .precision = like->precision,
                                                .name = "what ranks exchange",
                                                .log = comm->log},
                            room);
}

static lr_status find_room(struct move *move)
{
    lr_comm *comm = move->comm;
    struct lr_comm_ways *ways = &comm->ways;
    const lr_vector *vector = move->vector;
    if (is_on_device(move)) {
        LR_TRY(is_room_for(&ways->copy, vector) ? LR_OK
                                                : make_room(comm, ways->place, vector->count, vector, &ways->copy));
        move->there = lr_vector_part(&ways->copy, 0, vector->count);
        return LR_OK;
    }
    if (!is_room_for(&comm->staging, vector)) {
        drop_staging(comm);
        LR_TRY(make_room(comm, NULL, vector->count, vector, &comm->staging));
        pin_staging(comm, vector);
    }
    move->there = lr_vector_part(&comm->staging, 0, vector->count);
    return LR_OK;
}

/* What others send of one sum, a piece each. */
static lr_vector describe_pieces(const struct move *move, int64_t most)
{
    return (lr_vector){.count = most * move->comm->facts.size, .precision = move->vector->precision};
}

/* place: NULL = the host. */
static lr_status make_pieces(struct move *move, int64_t most)
{
    lr_comm *comm = move->comm;
    const bool on_device = is_on_device(move);
    lr_vector *pieces = on_device ? &comm->ways.pieces : &comm->pieces;
    const lr_vector needed = describe_pieces(move, most);
    return is_room_for(pieces, &needed)
               ? LR_OK
               : make_room(comm, on_device ? comm->ways.place : NULL, needed.count, &needed, pieces);
}

/* Whether nothing is left to be done, and to fail, before messages of a vector on the host. All ranks have
 * made the same moves before, so that they find the same. */
static bool is_ready(const struct move *move, int64_t most)
{
    const lr_vector needed = describe_pieces(move, most);
    return move->way == LR_WAY_PLAIN && (most == 0 || is_room_for(&move->comm->pieces, &needed));
}

static lr_status copy_in(struct move *move)
{
    const lr_vector from = lr_vector_part(move->vector, move->begin, move->end - move->begin);
    lr_vector to = lr_vector_part(&move->there, move->begin, move->end - move->begin);
    return lr_vector_copy(&from, &to);
}

static lr_status take_place(struct move *move)
{
    const lr_vector *vector = move->vector;
    move->there = *vector;
    move->there.is_part = true;
    if (is_on_device(move)) LR_TRY(lr_comm_follow(move->comm, vector));
    const bool is_there = is_on_device(move) ? vector->place == move->comm->ways.place : vector->values != NULL;
    if (is_there) return LR_OK;
    LR_TRY(find_room(move));
    return copy_in(move);
}

/* Ranks meet, agree on a way, and have their numbers where that begins. most: numbers of a piece. */
static lr_status begin_move(struct move *move, enum lr_comm_step step, int64_t most)
{
    lr_comm *comm = move->comm;
    LR_TRY(lr_comm_meet_for(comm, step, move->vector, &move->way));
    move->begin_s = lr_clock_seconds();
    const bool is_sure = is_ready(move, most);
    lr_status status = take_place(move);
    status = status == LR_OK && most > 0 ? make_pieces(move, most) : status;
    return is_sure ? status : lr_comm_settle(comm, LR_COMM_STEP_READY, status);
}

/* What has arrived is the vector's. */
static lr_status end_move(struct move *move, int64_t begin, int64_t end)
{
    lr_status status = LR_OK;
    if (is_copy(move)) {
        const lr_vector from = lr_vector_part(&move->there, begin, end - begin);
        lr_vector to = lr_vector_part(move->vector, begin, end - begin);
        status = lr_vector_copy(&from, &to);
    }
    if (move->way != LR_WAY_NCCL) move->comm->moving_s += lr_clock_seconds() - move->begin_s;
    return status;
}

/* --- shares --- */

void lr_comm_shares(const lr_comm *comm, int64_t count, int64_t *offsets)
{
    const int size = comm != NULL ? comm->facts.size : 1;
    for (int r = 0; r <= size; r++) offsets[r] = count / size * r + (count % size < r ? count % size : r);
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

/* Of the longest share, where that is less. */
static int64_t numbers_at_once(const lr_comm *comm, const int64_t *offsets)
{
    const int64_t longest = longest_share(comm, offsets);
    int64_t numbers = NUMBERS_AT_ONCE / comm->facts.size;
    numbers = numbers > LEAST_AT_ONCE ? numbers : LEAST_AT_ONCE;
    return numbers < longest ? numbers : longest > 0 ? longest : 1;
}

static char *number_at(const lr_vector *vector, int64_t k)
{
    char *first =
        vector->values != NULL ? vector->values : (char *)vector->storage->block + vector->begin * size_of(vector);
    return first + k * size_of(vector);
}

static void post(struct lr_message *list, int *count, struct lr_message message)
{
    if (message.count > 0) list[(*count)++] = message;
}

/* Of NCCL the others learn at once where it was refused, and give up what they began. */
static lr_status transfer_linked(lr_comm *comm, const struct lr_messages *messages)
{
    struct lr_comm_ways *ways = &comm->ways;
    const lr_status status =
        lr_comm_settle(comm, LR_COMM_STEP_SENT, ways->fns->transfer(ways->link, ways->place, messages));
    if (status != LR_OK) {
        ways->is_broken = true;
        ways->fns->close(ways->link, false);
        ways->link = NULL;
    }
    return status;
}

/* MPI knows of no stream: what is sent must be there, and what was received before be read. */
static lr_status wait_for_device(const struct move *move)
{
    const struct lr_comm_ways *ways = &move->comm->ways;
    return move->way == LR_WAY_MPI ? ways->fns->wait(ways->place) : LR_OK;
}

static lr_status transfer(const struct move *move, struct lr_messages *messages)
{
    lr_comm *comm = move->comm;
    for (int k = 0; k < messages->num_sent; k++) comm->sent_bytes += (double)messages->sent[k].count;
    if (move->way == LR_WAY_NCCL) return transfer_linked(comm, messages);
    LR_TRY(wait_for_device(move));
    return lr_comm_check(comm, comm->fns->transfer(messages));
}

/* --- sums --- */

static lr_status add_pieces(const struct move *move, int64_t begin, int64_t count, int64_t most)
{
    const lr_comm *comm = move->comm;
    const lr_vector *pieces = is_on_device(move) ? &comm->ways.pieces : &comm->pieces;
    lr_vector own = lr_vector_part(&move->there, begin, count);
    return lr_vector_add_terms(&(struct lr_vector_terms){
        .y = &own, .pieces = pieces, .stride = most, .own = comm->facts.rank, .num = comm->facts.size});
}

static lr_status sum_step(const struct move *move, const int64_t *offsets, int64_t at, int64_t most)
{
    lr_comm *comm = move->comm;
    struct lr_messages messages = comm->arrays;
    const lr_vector *pieces = is_on_device(move) ? &comm->ways.pieces : &comm->pieces;
    const int64_t size = size_of(move->vector);
    const int rank = comm->facts.rank;
    const int64_t own = left_of(offsets, rank, at, most);
    for (int r = 0; r < comm->facts.size; r++) {
        if (r == rank) continue;
        const int64_t theirs = left_of(offsets, r, at, most);
        post(messages.sent, &messages.num_sent,
             (struct lr_message){r, number_at(&move->there, offsets[r] + at), theirs * size});
        post(messages.received, &messages.num_received,
             (struct lr_message){r, number_at(pieces, r * most), own * size});
    }
    LR_TRY(transfer(move, &messages));
    return add_pieces(move, offsets[rank] + at, own, most);
}

/* --- the others' shares --- */

static lr_status gather_step(const struct move *move, const int64_t *offsets, int64_t at, int64_t most)
{
    lr_comm *comm = move->comm;
    struct lr_messages messages = comm->arrays;
    const int64_t size = size_of(move->vector);
    const int rank = comm->facts.rank;
    for (int r = 0; r < comm->facts.size; r++) {
        if (r == rank) continue;
        post(messages.sent, &messages.num_sent,
             (struct lr_message){r, number_at(&move->there, offsets[rank] + at),
                                 left_of(offsets, rank, at, most) * size});
        post(messages.received, &messages.num_received,
             (struct lr_message){r, number_at(&move->there, offsets[r] + at), left_of(offsets, r, at, most) * size});
    }
    return transfer(move, &messages);
}

typedef lr_status step_fn(const struct move *move, const int64_t *offsets, int64_t at, int64_t most);

static lr_status in_steps(const struct move *move, const int64_t *offsets, step_fn *step)
{
    const lr_comm *comm = move->comm;
    const int64_t longest = longest_share(comm, offsets), most = numbers_at_once(comm, offsets);
    lr_status status = LR_OK;
    for (int64_t at = 0; status == LR_OK && at < longest; at += most) status = step(move, offsets, at, most);
    return status;
}

/* --- the interface --- */

lr_status lr_comm_sum_shares(lr_comm *comm, const int64_t *offsets, lr_vector *vector)
{
    struct move move = {.comm = comm, .vector = vector, .end = vector->count};
    if (lr_comm_is_single(comm)) return LR_OK;
    const int rank = comm->facts.rank;
    LR_TRY(begin_move(&move, LR_COMM_STEP_SUM, numbers_at_once(comm, offsets)));
    LR_TRY(in_steps(&move, offsets, sum_step));
    return end_move(&move, offsets[rank], offsets[rank + 1]);
}

lr_status lr_comm_gather(lr_comm *comm, const int64_t *offsets, lr_vector *vector)
{
    struct move move = {.comm = comm, .vector = vector};
    if (lr_comm_is_single(comm)) return LR_OK;
    move.begin = offsets[comm->facts.rank];
    move.end = offsets[comm->facts.rank + 1];
    LR_TRY(begin_move(&move, LR_COMM_STEP_GATHER, 0));
    LR_TRY(in_steps(&move, offsets, gather_step));
    return end_move(&move, 0, vector->count);
}

lr_status lr_comm_sum(lr_comm *comm, lr_vector *vector)
{
    if (lr_comm_is_single(comm)) return LR_OK;
    int64_t *offsets = lr_alloc((int64_t)comm->facts.size + 1, sizeof(*offsets), "shares of ranks", comm->log);
    lr_status status = lr_comm_fail(comm, offsets != NULL ? LR_OK : LR_FAILED);
    if (status == LR_OK) {
        lr_comm_shares(comm, vector->count, offsets);
        status = lr_comm_sum_shares(comm, offsets, vector);
    }
    status = status == LR_OK ? lr_comm_gather(comm, offsets, vector) : status;
    free(offsets);
    return status;
}

static lr_status broadcast_host(const struct move *move, int from)
{
    lr_comm *comm = move->comm;
    const int64_t bytes = move->vector->count * size_of(move->vector);
    LR_TRY(wait_for_device(move));
    for (int64_t at = 0; at < bytes; at += BROADCAST_BYTES) {
        const int64_t left = bytes - at;
        const int count = (int)(left < BROADCAST_BYTES ? left : BROADCAST_BYTES);
        LR_TRY(lr_comm_check(comm, comm->fns->broadcast(from, number_at(&move->there, 0) + at, count)));
        comm->sent_bytes += from == comm->facts.rank ? count : 0;
    }
    return LR_OK;
}

/* To each by itself. */
static lr_status broadcast_linked(const struct move *move, int from)
{
    lr_comm *comm = move->comm;
    const int64_t bytes = move->vector->count * size_of(move->vector);
    for (int64_t at = 0; at < bytes; at += BROADCAST_BYTES) {
        struct lr_messages messages = comm->arrays;
        const int64_t left = bytes - at;
        struct lr_message message = {from, number_at(&move->there, 0) + at,
                                     left < BROADCAST_BYTES ? left : BROADCAST_BYTES};
        if (comm->facts.rank != from) post(messages.received, &messages.num_received, message);
        for (int r = 0; r < comm->facts.size && comm->facts.rank == from; r++) {
            message.peer = r;
            message.count = r != from ? message.count : 0;
            post(messages.sent, &messages.num_sent, message);
            message.count = left < BROADCAST_BYTES ? left : BROADCAST_BYTES;
        }
        LR_TRY(transfer(move, &messages));
    }
    return LR_OK;
}

lr_status lr_comm_broadcast(lr_comm *comm, int from, lr_vector *vector)
{
    struct move move = {.comm = comm, .vector = vector};
    if (lr_comm_is_single(comm)) return LR_OK;
    const bool has_it = comm->facts.rank == from;
    move.end = has_it ? vector->count : 0;
    LR_TRY(begin_move(&move, LR_COMM_STEP_BROADCAST, 0));
    LR_TRY((move.way == LR_WAY_NCCL ? broadcast_linked : broadcast_host)(&move, from));
    return has_it ? LR_OK : end_move(&move, 0, vector->count);
}
