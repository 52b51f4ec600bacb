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
#include "plugin/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The way that vectors at devices go, chosen by all ranks together out of what each of them has. */

/* CUDA devices that are tried for the one that OpenGL draws on. */
enum { MOST_DEVICES = 16 };

/* Ranks that do not meet go by the host. */
static const double patience_s = 120.0;

/* The means of exchange that a rank offers. */
struct offer {
    int32_t wish;      /* lr_exchange */
    int32_t has_place; /* its vectors are at a CUDA place, or can be there */
    int32_t has_nccl;
    int32_t is_cuda_aware;
    struct lr_link_facts facts;
    char machine[64];
    char reason[256]; /* why it has not what is wished for */
};

/* --- a log that keeps the last sentence --- */

struct ear {
    lr_log log;
    char *text;
    size_t size;
};

static void hear(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const struct ear *ear = user;
    (void)status;
    if (level == LR_LOG_ERROR) snprintf(ear->text, ear->size, "%s", sentence);
}

static void listen(struct ear *ear, char *text, size_t size)
{
    *ear = (struct ear){{hear, ear}, text, size};
}

/* --- places --- */

static lr_place_kind kind_of(const lr_vector *vector)
{
    return vector->place != NULL ? vector->place->kind : LR_PLACE_HOST;
}

static lr_place *find_place(const lr_vector *vector)
{
    if (kind_of(vector) == LR_PLACE_GL) {
        /* The CUDA place of a device that can link ranks; NULL where there is none. */
        const struct lr_cuda_plugin *cuda = lr_plugin_cuda(NULL);
        for (int device = 0; cuda != NULL && device < MOST_DEVICES; device++) {
            lr_place *place = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .device = device});
            if (place == NULL) return NULL; /* devices have numbers without gaps */
            if (place->fns->link != NULL && place->fns->link->draws(place, vector->place)) return place;
            lr_place_close(place);
        }
        return NULL;
    }

    const bool can_link = kind_of(vector) == LR_PLACE_CUDA && vector->place->fns->link != NULL;
    return can_link ? lr_place_keep(vector->place) : NULL;
}

/* --- offers --- */

static void make_offer(lr_comm *comm, const lr_vector *vector, struct offer *offer)
{
    struct ear ear;
    struct lr_comm_ways *ways = &comm->ways;
    *offer = (struct offer){.wish = (int32_t)comm->exchange, .is_cuda_aware = comm->facts.is_cuda_aware};
    snprintf(offer->machine, sizeof(offer->machine), "%s", comm->facts.machine);
    listen(&ear, offer->reason, sizeof(offer->reason));
    if (comm->exchange == LR_EXCHANGE_HOST) {
        snprintf(offer->reason, sizeof(offer->reason), "it was asked to exchange by the host");
        return;
    }
    ways->place = find_place(vector);
    offer->has_place = ways->place != NULL;
    if (ways->place == NULL) {
        snprintf(offer->reason, sizeof(offer->reason), "its images are on no CUDA device that OpenGL draws on");
        return;
    }
    ways->fns = ways->place->fns->link;
    offer->has_nccl = ways->fns->find(ways->place, &offer->facts, &ear.log) == LR_OK;
    snprintf(ways->device, sizeof(ways->device), "%s", offer->facts.device);
}

/* --- the choice, the same on all ranks --- */

static const char *describe_rank(char text[96], int rank, const struct offer *offer)
{
    snprintf(text, 96, "rank %d on %.64s", rank, offer->machine);
    return text;
}

/* True if NCCL takes all ranks; else `why` says why not. */
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

/* LR_NO_DEVICE if the way asked for is impossible, which rank 0 logs. */
static lr_status judge(lr_comm *comm, const struct offer *all)
{
    struct lr_comm_ways *ways = &comm->ways;
    const int size = comm->facts.size;
    const lr_exchange wish = (lr_exchange)all[0].wish;
    char without[sizeof(ways->reason)] = "";
    ways->way = LR_WAY_HOST;
    if (wish == LR_EXCHANGE_HOST) {
        snprintf(ways->reason, sizeof(ways->reason), "so it was asked for");
        return LR_OK;
    }
    if (wish != LR_EXCHANGE_MPI && judge_nccl(all, size, ways->reason, sizeof(ways->reason))) {
        ways->way = LR_WAY_NCCL;
        return LR_OK;
    }
    if (wish != LR_EXCHANGE_NCCL && judge_mpi(all, size, without, sizeof(without))) {
        ways->way = LR_WAY_MPI;
        return LR_OK;
    }
    if (wish == LR_EXCHANGE_MPI) memcpy(ways->reason, without, sizeof(without));
    return wish == LR_EXCHANGE_AUTO ? LR_OK : LR_NO_DEVICE;
}

/* wish: rank 0's, as all judge by it. */
static lr_status refuse(lr_comm *comm, lr_exchange wish)
{
    const bool is_nccl = wish == LR_EXCHANGE_NCCL;
    comm->failed_rank = 0;
    comm->failed_status = LR_NO_DEVICE;
    return comm->facts.rank > 0 ? LR_NO_DEVICE
                                : lr_error(comm->log, LR_NO_DEVICE,
                                           "images cannot be exchanged by %s, as was asked for (%s): leave the "
                                           "choice to the library",
                                           is_nccl ? "NCCL" : "an MPI that takes memory of CUDA", comm->ways.reason);
}

/* --- linking ranks --- */

static void drop_link(struct lr_comm_ways *ways, bool is_whole)
{
    if (ways->link != NULL) {
        ways->fns->close(ways->link, is_whole);
        ways->link = NULL;
    }
}

/* The state of each rank's link, exchanged until all are linked or one has failed, which is logged. */
struct linking {
    int32_t status, is_ready;
    char key[LR_LINK_KEY_BYTES];
    char reason[256];
};

static void keep_or_tell(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct lr_comm_ways *ways = user;
    if (ways->to == NULL)
        snprintf(ways->kept, sizeof(ways->kept), "%s", sentence);
    else if (ways->to->write != NULL)
        ways->to->write(ways->to->user, level, status, sentence);
}

/* The first that has failed; -1 = none. */
static int find_failed(const lr_comm *comm, const struct linking *all, bool *are_ready)
{
    *are_ready = true;
    for (int r = 0; r < comm->facts.size; r++) {
        if (all[r].status != LR_OK) return r;
        *are_ready = *are_ready && all[r].is_ready;
    }
    return -1;
}

static lr_status tell_linking(lr_comm *comm, struct linking *own)
{
    snprintf(own->reason, sizeof(own->reason), "%s", comm->ways.kept);
    LR_TRY(lr_comm_meet(comm, LR_COMM_STEP_LINK, 0));
    return lr_comm_check(comm, comm->fns->gather_little(own, comm->little, sizeof(*own)));
}

/* Rank 0 makes a key, by which all meet. *failed: the rank by which it came to nothing; -1 = none. */
static lr_status link_ranks(lr_comm *comm, int *failed)
{
    struct linking own = {0};
    struct lr_comm_ways *ways = &comm->ways;
    const struct linking *all = comm->little;
    const double begin = lr_clock_seconds();
    bool are_ready = false;
    if (comm->facts.rank == 0) own.status = (int32_t)ways->fns->make_key(own.key, &ways->log);
    LR_TRY(tell_linking(comm, &own));
    const struct linking first = all[0];
    const struct lr_link_params params = {
        .key = first.key, .rank = comm->facts.rank, .size = comm->facts.size, .log = &ways->log};
    if (first.status == LR_OK) own.status = (int32_t)ways->fns->begin(ways->place, &params, &ways->link);

    for (*failed = find_failed(comm, all, &are_ready); *failed < 0 && !are_ready;
         *failed = find_failed(comm, all, &are_ready)) {
        bool is_ready = false;
        if (own.status == LR_OK && !own.is_ready) {
            own.status = (int32_t)ways->fns->look(ways->link, &is_ready);
            own.is_ready = is_ready;
        }

        if (own.status == LR_OK && lr_clock_seconds() - begin > patience_s) {
            snprintf(ways->kept, sizeof(ways->kept), "ranks have not met within %.0f s", patience_s);
            own.status = LR_FAILED;
        }
        LR_TRY(tell_linking(comm, &own));
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    return LR_OK;
}

static lr_status try_link(lr_comm *comm, const struct offer *all)
{
    int failed = -1;
    char name[96], why[sizeof(comm->ways.reason)];
    struct lr_comm_ways *ways = &comm->ways;
    ways->log = (lr_log){keep_or_tell, ways};
    ways->to = NULL;
    LR_TRY(link_ranks(comm, &failed));
    ways->to = comm->log;
    if (failed < 0) return LR_OK;
    const struct linking *linking = comm->little;
    snprintf(ways->reason, sizeof(ways->reason), "%s: %s", describe_rank(name, failed, &all[failed]),
             linking[failed].reason);
    drop_link(ways, false);
    ways->way = judge_mpi(all, comm->facts.size, why, sizeof(why)) ? LR_WAY_MPI : LR_WAY_HOST;
    return LR_OK;
}

/* --- the interface --- */

static lr_status choose(lr_comm *comm, const struct offer *all)
{
    struct lr_comm_ways *ways = &comm->ways;
    const lr_exchange wish = (lr_exchange)all[0].wish;
    if (judge(comm, all) != LR_OK) return refuse(comm, wish);
    LR_TRY(ways->way == LR_WAY_NCCL ? try_link(comm, all) : LR_OK);
    if (ways->way != LR_WAY_NCCL && wish == LR_EXCHANGE_NCCL) return refuse(comm, wish);
    const struct offer *first = &all[0];
    const char *names[] = {
        [LR_WAY_HOST] = "host memory", [LR_WAY_MPI] = "CUDA-aware MPI", [LR_WAY_NCCL] = first->facts.library};
    snprintf(ways->name, sizeof(ways->name), "%s", names[ways->way]);

    return LR_OK;
}

static lr_status choose_for(lr_comm *comm, const lr_vector *vector)
{
    struct offer own;
    make_offer(comm, vector, &own);
    const int size = comm->facts.size;
    LR_TRY(lr_comm_check(comm, comm->fns->gather_little(&own, comm->little, sizeof(own))));
    struct offer *all = lr_alloc(size, sizeof(*all), "what ranks can do", comm->log);
    lr_status status = all != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) memcpy(all, comm->little, (size_t)size * sizeof(*all));
    status = lr_comm_settle(comm, LR_COMM_STEP_READY, status);
    status = status == LR_OK ? choose(comm, all) : status;
    if (status == LR_OK) {
        const struct lr_comm_ways *ways = &comm->ways;
        if (ways->way == LR_WAY_NCCL || kind_of(vector) != LR_PLACE_CUDA) {
            lr_debug(comm->log, "ranks exchange images by %s%s%s%s", ways->name, ways->reason[0] != '\0' ? " (" : "",
                     ways->reason, ways->reason[0] != '\0' ? ")" : "");
        } else {
            lr_info(comm->log, "ranks exchange images by %s, not by NCCL: %s", ways->name, ways->reason);
        }
    }

    if (comm->ways.way == LR_WAY_HOST) {
        lr_place_close(comm->ways.place);
        comm->ways.place = NULL;
    }
    free(all);
    return status;
}

static bool is_of_device(const lr_comm *comm, const lr_vector *vector)
{
    const struct lr_comm_ways *ways = &comm->ways;
    struct lr_link_facts facts;
    if (vector->place == ways->place) return true;
    if (kind_of(vector) == LR_PLACE_GL) return ways->fns->draws(ways->place, vector->place);
    if (vector->place->fns->link == NULL) return false;
    (void)ways->fns->find(vector->place, &facts, NULL);
    return strcmp(facts.device, ways->device) == 0;
}

static enum lr_comm_way way_of(const lr_comm *comm, const lr_vector *vector)
{
    const enum lr_comm_way way = comm->ways.way;
    if (vector->values != NULL || kind_of(vector) == LR_PLACE_HOST) return LR_WAY_PLAIN;
    if (way == LR_WAY_OPEN || way == LR_WAY_HOST) return way;
    return is_of_device(comm, vector) ? way : LR_WAY_HOST;
}

/* lr_comm_meet for a vector; *way: that by which all exchange it. The first time that all have theirs at
 * devices they choose one. */
static lr_status comm_meet_for(lr_comm *comm, enum lr_comm_step step, const lr_vector *vector, enum lr_comm_way *way)
{
    *way = way_of(comm, vector);
    LR_TRY(lr_comm_meet_by(comm, step, vector->count, way));
    if (*way != LR_WAY_OPEN) return LR_OK;
    LR_TRY(choose_for(comm, vector));
    *way = way_of(comm, vector);
    return lr_comm_meet_by(comm, step, vector->count, way);
}

/* The place of the chosen way becomes that of the vector, of the same device. */
static lr_status comm_follow(lr_comm *comm, const lr_vector *vector)
{
    struct lr_comm_ways *ways = &comm->ways;
    if (kind_of(vector) == LR_PLACE_GL || vector->place == ways->place) return LR_OK;
    LR_TRY(ways->fns->wait(ways->place));
    lr_vector_destroy(&ways->pieces);
    lr_vector_destroy(&ways->copy);
    lr_place_close(ways->place);
    ways->place = lr_place_keep(vector->place);
    return LR_OK;
}

void lr_comm_close_ways(lr_comm *comm, bool is_whole)
{
    struct lr_comm_ways *ways = &comm->ways;
    if (comm->pinned != NULL) {
        comm->pinned->fns->link->unpin(comm->pinned, comm->staging.values);
        lr_place_close(comm->pinned);
        comm->pinned = NULL;
    }
    const bool is_well = is_whole && !ways->is_broken;
    if (ways->link != NULL && is_well) (void)ways->fns->wait(ways->place);
    drop_link(ways, is_well);
    lr_vector_destroy(&ways->pieces);
    lr_vector_destroy(&ways->copy);
    lr_place_close(ways->place);
    ways->place = NULL;
    lr_vector_destroy(&comm->staging);
    lr_vector_destroy(&comm->pieces);
}

void lr_comm_probe_nccl(lr_comm_support *support)
{
    struct ear ear;
    struct lr_link_facts facts = {.library = ""};
    listen(&ear, support->nccl_reason, sizeof(support->nccl_reason));
    lr_place *place = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .log = &ear.log});
    if (place == NULL) return;
    if (place->fns->link != NULL && place->fns->link->find(place, &facts, &ear.log) == LR_OK)
        snprintf(support->nccl, sizeof(support->nccl), "%s", facts.library);
    lr_place_close(place);
}

/* --- moves --- */

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

/* --- copies of vectors --- */

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
        if (comm->pinned != NULL) {
            comm->pinned->fns->link->unpin(comm->pinned, comm->staging.values);
            lr_place_close(comm->pinned);
            comm->pinned = NULL;
        }
        lr_vector_destroy(&comm->staging);

        LR_TRY(make_room(comm, NULL, vector->count, vector, &comm->staging));
        /* Memory of the host that CUDA copies from and to directly is several times faster. */
        lr_place *place = vector->place;
        if (place->kind == LR_PLACE_CUDA && place->fns->link != NULL && comm->pinned == NULL &&
            place->fns->link->pin(place, comm->staging.values, comm->staging.count * size_of(&comm->staging)))
            comm->pinned = lr_place_keep(place);
    }
    move->there = lr_vector_part(&comm->staging, 0, vector->count);
    return LR_OK;
}

/* Room for the pieces of one sum that other ranks send. */
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

/* True if nothing is left to do, and to fail, before messages of a vector on the host. All ranks have made the
 * same moves before, so that they find the same. */
static bool is_ready(const struct move *move, int64_t most)
{
    const lr_vector needed = describe_pieces(move, most);
    return move->way == LR_WAY_PLAIN && (most == 0 || is_room_for(&move->comm->pieces, &needed));
}

static lr_status take_place(struct move *move)
{
    const lr_vector *vector = move->vector;
    move->there = *vector;
    move->there.is_part = true;
    if (is_on_device(move)) LR_TRY(comm_follow(move->comm, vector));
    const bool is_there = is_on_device(move) ? vector->place == move->comm->ways.place : vector->values != NULL;
    if (is_there) return LR_OK;
    LR_TRY(find_room(move));
    const lr_vector from = lr_vector_part(move->vector, move->begin, move->end - move->begin);
    lr_vector to = lr_vector_part(&move->there, move->begin, move->end - move->begin);
    return lr_vector_copy(&from, &to);
}

/* Ranks meet, agree on a way, and have their numbers where that begins. most: numbers of a piece. */
static lr_status begin_move(struct move *move, enum lr_comm_step step, int64_t most)
{
    lr_comm *comm = move->comm;
    LR_TRY(comm_meet_for(comm, step, move->vector, &move->way));
    move->begin_s = lr_clock_seconds();
    const bool is_sure = is_ready(move, most);
    lr_status status = take_place(move);
    status = status == LR_OK && most > 0 ? make_pieces(move, most) : status;
    return is_sure ? status : lr_comm_settle(comm, LR_COMM_STEP_READY, status);
}

/* Copies what has arrived into the vector. */
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

/* Numbers of a rank's share that are moved in a step that begins `at` numbers into every share. */
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

/* Numbers moved at once, at most those of the longest share. */
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
    if (move->way == LR_WAY_NCCL) {
        /* The other ranks learn at once if NCCL was refused, and give up what they began. */
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

/* Sends to each rank by itself. */
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
