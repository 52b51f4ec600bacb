/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sums and shares of vectors by messages between all ranks. Each number is summed on one rank, in the order of the
 * ranks. Every rank sends as many bytes as in a ring algorithm. Ranks send the same messages from host memory and from
 * device memory. */
#include "dist/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "device/place.h"
#include "plugin/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- offers of the ranks, from which all choose one method of exchange --- */

/* Number of CUDA devices that are searched for the device that OpenGL draws on. */
enum { MOST_DEVICES = 16 };

/* Seconds after which an attempt to link ranks by NCCL is given up. Ranks then exchange by MPI or through the host. */
static const double patience_s = 120.0;

/* The methods of exchange that a rank offers. */
struct offer {
    int32_t wish;      /* the method that the caller asks for (lr_exchange) */
    int32_t has_place; /* the rank's vectors can be on a CUDA place */
    int32_t has_nccl;
    int32_t is_cuda_aware;
    struct lr_link_facts facts;
    char machine[64];
    char reason[256]; /* why the requested method is not available */
};

static void make_offer(lr_comm *comm, const lr_vector *vector, struct offer *offer)
{
    struct lr_comm_route *route = &comm->route;
    *offer = (struct offer){.wish = (int32_t)comm->exchange, .is_cuda_aware = comm->facts.is_cuda_aware};
    struct lr_kept_error last;
    lr_log_keep_error(&last, offer->reason, sizeof(offer->reason));
    snprintf(offer->machine, sizeof(offer->machine), "%s", comm->facts.machine);
    if (comm->exchange == LR_EXCHANGE_HOST) {
        snprintf(offer->reason, sizeof(offer->reason), "it was asked to exchange by the host");
        return;
    }
    /* The place of the exchange is the vector's place, or a CUDA place on the device that OpenGL draws on. The place of
     * the exchange must be able to link ranks. */
    route->place = NULL;
    if (lr_vector_kind(vector) == LR_PLACE_GL) {
        const struct lr_cuda_plugin *cuda = lr_plugin_cuda(NULL);
        for (int device = 0; cuda != NULL && route->place == NULL && device < MOST_DEVICES; device++) {
            lr_place *place = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .device = device});
            if (place == NULL) break; /* device numbers have no gaps */
            if (place->fns->link != NULL && place->fns->link->draws(place, vector->place))
                route->place = place;
            else
                lr_place_close(place);
        }
    } else if (lr_vector_kind(vector) == LR_PLACE_CUDA && vector->place->fns->link != NULL) {
        route->place = lr_place_keep(vector->place);
    }
    offer->has_place = route->place != NULL;
    if (route->place == NULL) {
        snprintf(offer->reason, sizeof(offer->reason), "its images are on no CUDA device that OpenGL draws on");
        return;
    }
    route->fns = route->place->fns->link;
    offer->has_nccl = route->fns->find(route->place, &offer->facts, &last.log) == LR_OK;
    snprintf(route->device, sizeof(route->device), "%s", offer->facts.device);
}

/* --- the choice, the same on all ranks --- */

static const char *describe_rank(char text[96], int rank, const struct offer *offer)
{
    snprintf(text, 96, "rank %d on %.64s", rank, offer->machine);
    return text;
}

/* Returns true if NCCL can link all ranks; otherwise sets `why` to the reason. */
static bool judge_nccl(const struct offer *all, int size, char *why, size_t room)
{
    char name[96];
    for (int r = 0; r < size; r++) {
        if (!all[r].has_nccl) {
            snprintf(why, room, "%s: %s", describe_rank(name, r, &all[r]), all[r].reason);
            return false;
        }
        if (strcmp(all[r].facts.library, all[0].facts.library) != 0) {
            snprintf(why, room, "%s has %s, and rank 0 has %s", describe_rank(name, r, &all[r]), all[r].facts.library,
                     all[0].facts.library);
            return false;
        }
        for (int s = 0; s < r; s++) {
            if (strcmp(all[r].machine, all[s].machine) == 0 && strcmp(all[r].facts.device, all[s].facts.device) == 0) {
                snprintf(why, room, "ranks %d and %d share the GPU %s of %s, and NCCL takes one rank a GPU", s, r,
                         all[r].facts.device, all[r].machine);
                return false;
            }
        }
    }
    return true;
}

static bool judge_mpi(const struct offer *all, int size, char *why, size_t room)
{
    char name[96];
    for (int r = 0; r < size; r++) {
        if (!all[r].has_place || !all[r].is_cuda_aware) {
            snprintf(why, room, "%s: %s", describe_rank(name, r, &all[r]),
                     all[r].has_place ? "its MPI takes no memory of CUDA" : all[r].reason);
            return false;
        }
    }
    return true;
}

/* --- linking ranks --- */

static void drop_link(struct lr_comm_route *route, bool is_whole)
{
    if (route->link != NULL) {
        route->fns->close(route->link, is_whole);
        route->link = NULL;
    }
}

/* The state of a rank's link to the other ranks. Ranks exchange these states until all are linked or one has failed. */
struct linking {
    int32_t status, is_ready;
    char key[LR_LINK_KEY_BYTES];
    char reason[256];
};

static void keep_or_pass(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct lr_comm_route *route = user;
    if (route->to == NULL)
        snprintf(route->last_text, sizeof(route->last_text), "%s", sentence);
    else if (route->to->write != NULL)
        route->to->write(route->to->user, level, status, sentence);
}

static lr_status send_linking(lr_comm *comm, struct linking *own)
{
    snprintf(own->reason, sizeof(own->reason), "%s", comm->route.last_text);
    LR_TRY(lr_comm_meet(comm, LR_COMM_STEP_LINK, 0));
    return lr_comm_check(comm, comm->fns->gather_little(comm->group, own, comm->little, sizeof(*own)));
}

/* Links ranks by NCCL, with a key that rank 0 makes. If linking fails, ranks exchange by MPI or through the host. */
static lr_status link_ranks(lr_comm *comm, const struct offer *offers)
{
    struct linking own = {0};
    struct lr_comm_route *route = &comm->route;
    const struct linking *all = comm->little;
    const double begin = lr_clock_seconds();
    route->log = (lr_log){keep_or_pass, route};
    route->to = NULL;
    if (comm->facts.rank == 0) own.status = (int32_t)route->fns->make_key(own.key, &route->log);
    LR_TRY(send_linking(comm, &own));
    const struct linking first = all[0];
    const struct lr_link_params params = {
        .key = first.key, .rank = comm->facts.rank, .size = comm->facts.size, .log = &route->log};
    if (first.status == LR_OK) own.status = (int32_t)route->fns->begin(route->place, &params, &route->link);

    int failed = -1; /* the first rank that has failed; -1 = none */
    for (;;) {
        bool are_ready = true;
        for (int r = 0; failed < 0 && r < comm->facts.size; r++) {
            if (all[r].status != LR_OK) failed = r;
            are_ready = are_ready && all[r].is_ready;
        }
        if (failed >= 0 || are_ready) break;
        bool is_ready = false;
        if (own.status == LR_OK && !own.is_ready) {
            own.status = (int32_t)route->fns->look(route->link, &is_ready);
            own.is_ready = is_ready;
        }
        if (own.status == LR_OK && lr_clock_seconds() - begin > patience_s) {
            snprintf(route->last_text, sizeof(route->last_text), "ranks have not met within %.0f s", patience_s);
            own.status = LR_FAILED;
        }
        LR_TRY(send_linking(comm, &own));
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    route->to = comm->log;
    if (failed >= 0) {
        char name[96], why[sizeof(route->reason)];
        snprintf(route->reason, sizeof(route->reason), "%s: %s", describe_rank(name, failed, &offers[failed]),
                 all[failed].reason);
        drop_link(route, false);
        route->way = judge_mpi(offers, comm->facts.size, why, sizeof(why)) ? LR_WAY_MPI : LR_WAY_HOST;
    }
    return LR_OK;
}

/* --- the interface --- */

/* Chooses the method of exchange, the same on all ranks. If the requested method is impossible, all ranks return
 * LR_NO_DEVICE, and rank 0 logs the reason. */
static lr_status choose(lr_comm *comm, const struct offer *all)
{
    struct lr_comm_route *route = &comm->route;
    const lr_exchange wish = (lr_exchange)all[0].wish;
    const int size = comm->facts.size;
    char without[sizeof(route->reason)] = "";
    route->way = LR_WAY_HOST;
    if (wish == LR_EXCHANGE_HOST)
        snprintf(route->reason, sizeof(route->reason), "so it was asked for");
    else if (wish != LR_EXCHANGE_MPI && judge_nccl(all, size, route->reason, sizeof(route->reason)))
        route->way = LR_WAY_NCCL;
    else if (wish != LR_EXCHANGE_NCCL && judge_mpi(all, size, without, sizeof(without)))
        route->way = LR_WAY_MPI;
    else if (wish == LR_EXCHANGE_MPI)
        memcpy(route->reason, without, sizeof(without));
    if (route->way == LR_WAY_NCCL) LR_TRY(link_ranks(comm, all));

    const bool is_nccl = wish == LR_EXCHANGE_NCCL;
    if ((is_nccl && route->way != LR_WAY_NCCL) || (wish == LR_EXCHANGE_MPI && route->way != LR_WAY_MPI)) {
        comm->failed_rank = 0;
        comm->failed_status = LR_NO_DEVICE;
        if (comm->facts.rank > 0) return lr_comm_tell_failure(comm);
        return lr_error(comm->log, LR_NO_DEVICE,
                        "images cannot be exchanged by %s, as was asked for (%s): leave the choice to the library",
                        is_nccl ? "NCCL" : "an MPI that takes memory of CUDA", route->reason);
    }
    const char *names[] = {
        [LR_WAY_HOST] = "host memory", [LR_WAY_MPI] = "CUDA-aware MPI", [LR_WAY_NCCL] = all[0].facts.library};
    snprintf(route->name, sizeof(route->name), "%s", names[route->way]);
    return LR_OK;
}

static enum lr_comm_way way_of(const lr_comm *comm, const lr_vector *vector)
{
    const struct lr_comm_route *route = &comm->route;
    if (vector->values != NULL || lr_vector_kind(vector) == LR_PLACE_HOST) return LR_WAY_PLAIN;
    if (route->way == LR_WAY_OPEN || route->way == LR_WAY_HOST || vector->place == route->place) return route->way;
    bool is_same_device = false;
    if (lr_vector_kind(vector) == LR_PLACE_GL) {
        is_same_device = route->fns->draws(route->place, vector->place);
    } else if (vector->place->fns->link != NULL) {
        struct lr_link_facts facts;
        (void)route->fns->find(vector->place, &facts, NULL);
        is_same_device = strcmp(facts.device, route->device) == 0;
    }
    return is_same_device ? route->way : LR_WAY_HOST;
}

/* Waits for all ranks as lr_comm_meet does. *way: the method of exchange. Ranks choose a method the first time that all
 * have their vectors on devices. */
static lr_status comm_meet_for(lr_comm *comm, enum lr_comm_step step, const lr_vector *vector, enum lr_comm_way *way)
{
    *way = way_of(comm, vector);
    LR_TRY(lr_comm_meet_by(comm, step, vector->count, way));
    if (*way != LR_WAY_OPEN) return LR_OK;

    struct lr_comm_route *route = &comm->route;
    struct offer own;
    make_offer(comm, vector, &own);
    const int size = comm->facts.size;
    LR_TRY(lr_comm_check(comm, comm->fns->gather_little(comm->group, &own, comm->little, sizeof(own))));
    struct offer *all = lr_alloc(size, sizeof(*all), "what ranks can do", comm->log);
    lr_status status = all != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) memcpy(all, comm->little, (size_t)size * sizeof(*all));
    status = lr_comm_settle(comm, LR_COMM_STEP_READY, status);
    if (status == LR_OK) status = choose(comm, all);
    if (status == LR_OK && (route->way == LR_WAY_NCCL || lr_vector_kind(vector) != LR_PLACE_CUDA)) {
        lr_debug(comm->log, "ranks exchange images by %s%s%s%s", route->name, route->reason[0] != '\0' ? " (" : "",
                 route->reason, route->reason[0] != '\0' ? ")" : "");
    } else if (status == LR_OK) {
        lr_info(comm->log, "ranks exchange images by %s, not by NCCL: %s", route->name, route->reason);
    }
    if (route->way == LR_WAY_HOST) {
        lr_place_close(route->place);
        route->place = NULL;
    }
    free(all);
    LR_TRY(status);
    *way = way_of(comm, vector);
    return lr_comm_meet_by(comm, step, vector->count, way);
}

void lr_comm_close_route(lr_comm *comm, bool is_whole)
{
    struct lr_comm_route *route = &comm->route;
    if (comm->pinned != NULL) {
        comm->pinned->fns->link->unpin(comm->pinned, comm->staging.values);
        lr_place_close(comm->pinned);
        comm->pinned = NULL;
    }
    const bool is_well = is_whole && !route->is_broken;
    if (route->link != NULL && is_well) (void)route->fns->wait(route->place);
    drop_link(route, is_well);
    lr_vector_destroy(&route->pieces);
    lr_vector_destroy(&route->copy);
    lr_place_close(route->place);
    route->place = NULL;
    lr_vector_destroy(&comm->staging);
    lr_vector_destroy(&comm->pieces);
}

lr_status lr_comm_probe(lr_comm_support *support, const lr_log *log)
{
    struct lr_comm_facts facts = {.rank = 0};
    struct lr_link_facts link = {.library = ""};
    const struct lr_mpi_plugin *mpi = lr_plugin_mpi(log);
    *support = (lr_comm_support){.library = ""};
    struct lr_kept_error last;
    lr_log_keep_error(&last, support->nccl_reason, sizeof(support->nccl_reason));
    lr_place *place = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .log = &last.log});
    if (place != NULL && place->fns->link != NULL && place->fns->link->find(place, &link, &last.log) == LR_OK)
        snprintf(support->nccl, sizeof(support->nccl), "%s", link.library);
    lr_place_close(place);
    if (mpi == NULL) return LR_NO_DEVICE;
    mpi->fns->describe(&facts);
    snprintf(support->library, sizeof(support->library), "%s", facts.way);
    support->is_cuda_aware = facts.is_cuda_aware;
    support->can_compose = mpi->eigen != NULL;
    return LR_OK;
}

/* --- moves --- */

/* NUMBERS_AT_ONCE: how many numbers all ranks together send to one rank in a step. LEAST_AT_ONCE: the minimum that one
 * rank sends in a step. BROADCAST_BYTES: bytes in a step of a broadcast. */
enum { NUMBERS_AT_ONCE = 1 << 22, LEAST_AT_ONCE = 1 << 12, BROADCAST_BYTES = 1 << 26 };

/* A vector that ranks exchange. */
struct move {
    lr_comm *comm;
    lr_vector *vector;
    enum lr_comm_way way;
    bool on_device;     /* true if messages are sent from device memory (way is MPI or NCCL) */
    lr_vector there;    /* memory for sent and received messages: the vector or a copy of it */
    int64_t begin, end; /* range of the numbers that this rank contributes */
    double begin_s;
};

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

/* Begins a move: ranks synchronise and choose the method of exchange. Each rank prepares its memory and copies its
 * numbers to move->there. most: largest count of numbers that another rank sends at a time for a sum; 0 = no sum. */
static lr_status begin_move(struct move *move, enum lr_comm_step step, int64_t most)
{
    lr_comm *comm = move->comm;
    struct lr_comm_route *route = &comm->route;
    const lr_vector *vector = move->vector;
    LR_TRY(comm_meet_for(comm, step, vector, &move->way));
    move->begin_s = lr_clock_seconds();
    move->there = *vector;
    move->there.is_part = true;
    const bool on_device = move->on_device = move->way == LR_WAY_MPI || move->way == LR_WAY_NCCL;
    const lr_vector needed = {.count = most * comm->facts.size, .precision = vector->precision};
    lr_vector *pieces = on_device ? &route->pieces : &comm->pieces;
    const bool has_pieces = most == 0 || is_room_for(pieces, &needed);
    /* For a vector on the host (LR_WAY_PLAIN), the preparation can fail only while it allocates pieces. All ranks agree
     * on whether earlier vectors have left pieces, because earlier vectors had equal lengths on all ranks. */
    const bool is_sure = move->way == LR_WAY_PLAIN && has_pieces;

    lr_status status = LR_OK;
    if (on_device && lr_vector_kind(vector) != LR_PLACE_GL && vector->place != route->place) {
        /* The vector's place replaces the place of the exchange. Both are on the same device. */
        status = route->fns->wait(route->place);
        if (status == LR_OK) {
            lr_vector_destroy(&route->pieces);
            lr_vector_destroy(&route->copy);
            lr_place_close(route->place);
            route->place = lr_place_keep(vector->place);
        }
    }
    const bool is_there = on_device ? vector->place == route->place : vector->values != NULL;
    if (status == LR_OK && !is_there) {
        lr_vector *room = on_device ? &route->copy : &comm->staging;
        const bool is_new = !is_room_for(room, vector);
        if (is_new && !on_device && comm->pinned != NULL) {
            comm->pinned->fns->link->unpin(comm->pinned, comm->staging.values);
            lr_place_close(comm->pinned);
            comm->pinned = NULL;
        }
        if (is_new) status = make_room(comm, on_device ? route->place : NULL, vector->count, vector, room);
        /* Pinned host memory makes copies between host and device several times faster. */
        lr_place *place = vector->place;
        if (status == LR_OK && is_new && !on_device && place->kind == LR_PLACE_CUDA && place->fns->link != NULL &&
            place->fns->link->pin(place, room->values, room->count * lr_vector_size(room)))
            comm->pinned = lr_place_keep(place);
        if (status == LR_OK) move->there = lr_vector_part(room, 0, vector->count);
    }
    if (status == LR_OK && !is_there) {
        const lr_vector from = lr_vector_part(vector, move->begin, move->end - move->begin);
        lr_vector to = lr_vector_part(&move->there, move->begin, move->end - move->begin);
        status = lr_vector_copy(&from, &to);
    }
    if (status == LR_OK && most > 0 && !is_room_for(pieces, &needed))
        status = make_room(comm, on_device ? route->place : NULL, needed.count, &needed, pieces);
    return is_sure ? status : lr_comm_settle(comm, LR_COMM_STEP_READY, status);
}

/* Copies numbers begin .. end - 1 into the vector, unless the messages went into the vector itself. */
static lr_status end_move(struct move *move, int64_t begin, int64_t end)
{
    lr_status status = LR_OK;
    if (move->there.values != move->vector->values || move->there.storage != move->vector->storage) {
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

/* Returns how many numbers of a rank's share are moved in a step. The step begins at number `at` of every share. */
static int64_t left_of(const int64_t *offsets, int rank, int64_t at, int64_t most)
{
    const int64_t left = offsets[rank + 1] - offsets[rank] - at;
    return left < 0 ? 0 : left < most ? left : most;
}

/* Returns the largest count of numbers of one share that a step moves. *longest: receives the length of the longest
   share. */
static int64_t numbers_at_once(const lr_comm *comm, const int64_t *offsets, int64_t *longest)
{
    *longest = 0;
    for (int r = 0; r < comm->facts.size; r++) {
        const int64_t share = offsets[r + 1] - offsets[r];
        *longest = share > *longest ? share : *longest;
    }
    int64_t numbers = NUMBERS_AT_ONCE / comm->facts.size;
    numbers = numbers > LEAST_AT_ONCE ? numbers : LEAST_AT_ONCE;
    return numbers < *longest ? numbers : *longest > 0 ? *longest : 1;
}

static char *number_at(const lr_vector *vector, int64_t k)
{
    char *first = vector->values != NULL ? vector->values
                                         : (char *)vector->storage->block + vector->begin * lr_vector_size(vector);
    return first + k * lr_vector_size(vector);
}

static void post(struct lr_message *list, int *count, struct lr_message message)
{
    if (message.count > 0) list[(*count)++] = message;
}

static lr_status transfer(const struct move *move, struct lr_messages *messages)
{
    lr_comm *comm = move->comm;
    struct lr_comm_route *route = &comm->route;
    for (int k = 0; k < messages->num_sent; k++) comm->sent_bytes += (double)messages->sent[k].count;
    if (move->way == LR_WAY_NCCL) {
        /* All ranks learn at once if NCCL refused a transfer, and then drop their links. */
        const lr_status status =
            lr_comm_settle(comm, LR_COMM_STEP_SENT, route->fns->transfer(route->link, route->place, messages));
        if (status != LR_OK) {
            route->is_broken = true;
            drop_link(route, false);
        }
        return status;
    }

    /* MPI knows no CUDA streams. Kernels that write the data, or read data received earlier, must have ended. */
    if (move->way == LR_WAY_MPI) LR_TRY(route->fns->wait(route->place));
    return lr_comm_check(comm, comm->fns->transfer(comm->group, messages));
}

/* Exchanges the shares. If is_sum, each rank receives the sum of its own share over all ranks. Otherwise, each rank
   receives the shares of all ranks. */
static lr_status exchange_shares(const struct move *move, const int64_t *offsets, bool is_sum)
{
    lr_comm *comm = move->comm;
    const lr_vector *pieces = move->on_device ? &comm->route.pieces : &comm->pieces;
    int64_t longest;
    const int64_t most = numbers_at_once(comm, offsets, &longest);
    const int64_t size = lr_vector_size(move->vector);
    const int rank = comm->facts.rank;
    for (int64_t at = 0; at < longest; at += most) {
        struct lr_messages messages = comm->arrays;
        const int64_t own = left_of(offsets, rank, at, most);
        for (int r = 0; r < comm->facts.size; r++) {
            if (r == rank) continue;
            const int64_t theirs = left_of(offsets, r, at, most);
            char *own_at = number_at(&move->there, offsets[rank] + at),
                 *their_at = number_at(&move->there, offsets[r] + at);
            post(messages.sent, &messages.num_sent,
                 is_sum ? (struct lr_message){r, their_at, theirs * size} : (struct lr_message){r, own_at, own * size});
            post(messages.received, &messages.num_received,
                 is_sum ? (struct lr_message){r, number_at(pieces, r * most), own * size}
                        : (struct lr_message){r, their_at, theirs * size});
        }
        LR_TRY(transfer(move, &messages));
        if (!is_sum) continue;
        lr_vector sum = lr_vector_part(&move->there, offsets[rank] + at, own);
        const struct lr_vector_terms terms = {
            .y = &sum, .pieces = pieces, .stride = most, .own = rank, .num = comm->facts.size};
        LR_TRY(lr_vector_add_terms(&terms));
    }
    return LR_OK;
}

/* --- the interface --- */

lr_status lr_comm_sum_shares(lr_comm *comm, const int64_t *offsets, lr_vector *vector)
{
    struct move move = {.comm = comm, .vector = vector, .end = vector->count};
    if (lr_comm_is_single(comm)) return LR_OK;
    const int rank = comm->facts.rank;
    int64_t longest;
    LR_TRY(begin_move(&move, LR_COMM_STEP_SUM, numbers_at_once(comm, offsets, &longest)));
    LR_TRY(exchange_shares(&move, offsets, true));
    return end_move(&move, offsets[rank], offsets[rank + 1]);
}

lr_status lr_comm_gather(lr_comm *comm, const int64_t *offsets, lr_vector *vector)
{
    struct move move = {.comm = comm, .vector = vector};
    if (lr_comm_is_single(comm)) return LR_OK;
    move.begin = offsets[comm->facts.rank];
    move.end = offsets[comm->facts.rank + 1];
    LR_TRY(begin_move(&move, LR_COMM_STEP_GATHER, 0));
    LR_TRY(exchange_shares(&move, offsets, false));
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

lr_status lr_comm_broadcast(lr_comm *comm, int from, lr_vector *vector)
{
    struct move move = {.comm = comm, .vector = vector};
    if (lr_comm_is_single(comm)) return LR_OK;
    const bool has_it = comm->facts.rank == from;
    move.end = has_it ? vector->count : 0;
    LR_TRY(begin_move(&move, LR_COMM_STEP_BROADCAST, 0));
    const int64_t bytes = vector->count * lr_vector_size(vector);
    if (move.way == LR_WAY_MPI) LR_TRY(comm->route.fns->wait(comm->route.place));
    for (int64_t at = 0; at < bytes; at += BROADCAST_BYTES) {
        const int64_t left = bytes - at, count = left < BROADCAST_BYTES ? left : BROADCAST_BYTES;
        char *first = number_at(&move.there, 0) + at;
        if (move.way != LR_WAY_NCCL) {
            LR_TRY(lr_comm_check(comm, comm->fns->broadcast(comm->group, from, first, (int)count)));
            comm->sent_bytes += has_it ? (double)count : 0;
            continue;
        }
        struct lr_messages messages = comm->arrays; /* one message per rank */
        if (!has_it) post(messages.received, &messages.num_received, (struct lr_message){from, first, count});
        for (int r = 0; has_it && r < comm->facts.size; r++)
            if (r != from) post(messages.sent, &messages.num_sent, (struct lr_message){r, first, count});
        LR_TRY(transfer(&move, &messages));
    }
    return has_it ? LR_OK : end_move(&move, 0, vector->count);
}
