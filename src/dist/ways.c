/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Which way vectors at devices go, chosen by all ranks together out of what each of them has. */
#include "dist/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "plugin/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* CUDA devices that are tried for the one that OpenGL draws on. */
enum { MOST_DEVICES = 16 };

/* Ranks that do not meet go by the host. */
static const double patience_s = 120.0;

/* What a rank has for a way. */
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

/* The CUDA place of a device that can link ranks; NULL where there is none. */
static lr_place *open_where_drawn(const lr_place *gl)
{
    const struct lr_cuda_plugin *cuda = lr_plugin_cuda(NULL);
    for (int device = 0; cuda != NULL && device < MOST_DEVICES; device++) {
        lr_place *place = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .device = device});
        if (place == NULL) return NULL; /* devices have numbers without gaps */
        if (place->fns->link != NULL && place->fns->link->draws(place, gl)) return place;
        lr_place_close(place);
    }
    return NULL;
}

static lr_place *find_place(const lr_vector *vector)
{
    if (kind_of(vector) == LR_PLACE_GL) return open_where_drawn(vector->place);
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

/* Whether NCCL takes them all; else why not. */
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

/* Where a way is asked for that cannot be, LR_NO_DEVICE; rank 0 speaks. */
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

/* What each has come to, in turn until all are linked or one has failed; it is heard why. */
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

static void begin_link(lr_comm *comm, const struct linking *first, struct linking *own)
{
    struct lr_comm_ways *ways = &comm->ways;
    const struct lr_link_params params = {
        .key = first->key, .rank = comm->facts.rank, .size = comm->facts.size, .log = &ways->log};
    if (first->status == LR_OK) own->status = (int32_t)ways->fns->begin(ways->place, &params, &ways->link);
}

static void look_at_link(lr_comm *comm, struct linking *own)
{
    bool is_ready = false;
    struct lr_comm_ways *ways = &comm->ways;
    if (own->status == LR_OK && !own->is_ready) {
        own->status = (int32_t)ways->fns->look(ways->link, &is_ready);
        own->is_ready = is_ready;
    }
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
    begin_link(comm, &first, &own);
    for (*failed = find_failed(comm, all, &are_ready); *failed < 0 && !are_ready;
         *failed = find_failed(comm, all, &are_ready)) {
        look_at_link(comm, &own);
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

static void tell_choice(const lr_comm *comm, const lr_vector *vector)
{
    const struct lr_comm_ways *ways = &comm->ways;
    if (ways->way == LR_WAY_NCCL || kind_of(vector) != LR_PLACE_CUDA) {
        lr_debug(comm->log, "ranks exchange images by %s%s%s%s", ways->name, ways->reason[0] != '\0' ? " (" : "",
                 ways->reason, ways->reason[0] != '\0' ? ")" : "");
    } else {
        lr_info(comm->log, "ranks exchange images by %s, not by NCCL: %s", ways->name, ways->reason);
    }
}

static void name_way(struct lr_comm_ways *ways, const struct offer *first)
{
    const char *names[] = {
        [LR_WAY_HOST] = "host memory", [LR_WAY_MPI] = "CUDA-aware MPI", [LR_WAY_NCCL] = first->facts.library};
    snprintf(ways->name, sizeof(ways->name), "%s", names[ways->way]);
}

static lr_status choose(lr_comm *comm, const struct offer *all)
{
    struct lr_comm_ways *ways = &comm->ways;
    const lr_exchange wish = (lr_exchange)all[0].wish;
    if (judge(comm, all) != LR_OK) return refuse(comm, wish);
    LR_TRY(ways->way == LR_WAY_NCCL ? try_link(comm, all) : LR_OK);
    if (ways->way != LR_WAY_NCCL && wish == LR_EXCHANGE_NCCL) return refuse(comm, wish);
    name_way(ways, &all[0]);
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
    if (status == LR_OK) tell_choice(comm, vector);
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

lr_status lr_comm_meet_for(lr_comm *comm, enum lr_comm_step step, const lr_vector *vector, enum lr_comm_way *way)
{
    *way = way_of(comm, vector);
    LR_TRY(lr_comm_meet_by(comm, step, vector->count, way));
    if (*way != LR_WAY_OPEN) return LR_OK;
    LR_TRY(choose_for(comm, vector));
    *way = way_of(comm, vector);
    return lr_comm_meet_by(comm, step, vector->count, way);
}

lr_status lr_comm_follow(lr_comm *comm, const lr_vector *vector)
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
