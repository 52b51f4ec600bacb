/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Functions by which all ranks learn of failures, join numbers, and check that texts are equal on all ranks. */
#include "dist/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "plugin/plugin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBERS = LR_COMM_LITTLE / sizeof(double) };

/* Largest count of numbers that fit into the message with which ranks synchronise. More numbers need further
   messages. */
enum { NUMBERS_ALONG = 12 };

lr_status lr_comm_check(lr_comm *comm, lr_status status)
{
    if (status == LR_OK || comm->failed_status != LR_OK) return status;
    comm->failed_status = status;
    comm->failed_rank = comm->facts.rank;
    return lr_error(comm->log, status, "%s", comm->fns->mistake);
}

/* The message that each rank sends when ranks synchronise. Its length never changes, so that ranks of different
 * versions understand each other. */
struct state {
    int32_t status, step;
    int64_t count;
    int64_t way; /* the method of exchange (enum lr_comm_way) */
    double numbers[NUMBERS_ALONG];
};

/* Aborts all ranks when a failed rank has waited too long for the others. The device of the failed rank may be lost.
 * Devices of other ranks may then wait for its data without end, and these ranks never arrive. A cancelled rank has
 * sent all the data that others wait for, and never aborts. */
static void end_all(void *user)
{
    lr_comm *comm = user;
    if (comm->stranded != NULL) comm->stranded(comm->user);
    comm->fns->abort(comm->group, 1);
}

lr_status lr_comm_tell_failure(const lr_comm *comm)
{
    if (comm->failed_rank != comm->facts.rank && !comm->has_failed_too) {
        (void)lr_error(NULL, LR_FAILED,
                       "rank %d of %d has failed or was stopped, and says why: nothing was wrong with rank %d",
                       comm->failed_rank, comm->facts.size, comm->facts.rank);
    }
    return comm->failed_status;
}

/* Sends this rank's state to all ranks and compares the states of all. Afterwards comm->little holds the states. */
static lr_status meet(lr_comm *comm, const struct state *own)
{
    const double begin = lr_clock_seconds();
    const struct state *all = comm->little;
    if (comm->failed_status != LR_OK) return lr_comm_tell_failure(comm);
    comm->has_failed_too = own->status != LR_OK;
    const bool is_by_device = comm->route.link != NULL || comm->route.way == LR_WAY_MPI;
    const bool may_strand = own->status != LR_OK && own->status != LR_CANCELLED && is_by_device;
    struct lr_watch watch = {.patience_s = comm->patience_s, .act = end_all, .user = comm};
    if (may_strand) lr_watch_begin(&watch);
    const lr_status status = comm->fns->gather_little(comm->group, own, comm->little, sizeof(*own));
    if (may_strand) lr_watch_end(&watch);
    LR_TRY(lr_comm_check(comm, status));
    comm->waiting_s += lr_clock_seconds() - begin;

    for (int r = 0; r < comm->facts.size; r++) {
        if (all[r].status != LR_OK) {
            comm->failed_rank = r;
            comm->failed_status = (lr_status)all[r].status;
            return lr_comm_tell_failure(comm);
        }
    }
    for (int r = 1; r < comm->facts.size; r++) {
        if (all[r].step == all[0].step && all[r].count == all[0].count) continue;
        comm->failed_rank = r;
        comm->failed_status = LR_BAD_INPUT;
        if (r == comm->facts.rank) {
            lr_error(comm->log, LR_BAD_INPUT,
                     "this rank works on something else than rank 0 (step %d of %lld numbers, where rank 0 is at step "
                     "%d of %lld): give all ranks the same command and the same files",
                     (int)all[r].step, (long long)all[r].count, (int)all[0].step, (long long)all[0].count);
        }
        return lr_comm_tell_failure(comm);
    }
    return LR_OK;
}

lr_status lr_comm_meet(lr_comm *comm, enum lr_comm_step step, int64_t count)
{
    return meet(comm, &(struct state){.step = (int32_t)step, .count = count});
}

lr_status lr_comm_settle(lr_comm *comm, enum lr_comm_step step, lr_status status)
{
    const lr_status all = meet(comm, &(struct state){(int32_t)status, .step = (int32_t)step});
    return status != LR_OK ? status : all;
}

lr_status lr_comm_meet_by(lr_comm *comm, enum lr_comm_step step, int64_t count, enum lr_comm_way *way)
{
    LR_TRY(meet(comm, &(struct state){.step = (int32_t)step, .count = count, .way = *way}));
    const struct state *all = comm->little;
    bool agree = true; /* false = all exchange through the host */
    for (int r = 1; r < comm->facts.size; r++) agree = agree && all[r].way == all[0].way;
    *way = agree ? (enum lr_comm_way)all[0].way : LR_WAY_HOST;
    return LR_OK;
}

lr_status lr_comm_fail(lr_comm *comm, lr_status status)
{
    if (!lr_comm_is_single(comm) && status != LR_OK)
        (void)meet(comm, &(struct state){(int32_t)status, .step = LR_COMM_STEP_FAIL});
    return status;
}

lr_status lr_comm_barrier(lr_comm *comm)
{
    return lr_comm_is_single(comm) ? LR_OK : lr_comm_meet(comm, LR_COMM_STEP_BARRIER, 0);
}

/* --- numbers --- */

static double add(double a, double b)
{
    return a + b;
}

/* Joins the numbers of all ranks by `join`, in the order of the ranks. The numbers of rank r begin at all[r *
 * stride]. */
static void join_all(lr_comm *comm, const double *all, int64_t stride, double *numbers, int count,
                     double (*join)(double a, double b))
{
    for (int k = 0; k < count; k++) {
        numbers[k] = all[k];
        for (int r = 1; r < comm->facts.size; r++) numbers[k] = join(numbers[k], all[r * stride + k]);
    }
    comm->sent_bytes += (double)count * sizeof(*numbers) * (comm->facts.size - 1);
}

static lr_status combine(lr_comm *comm, double *numbers, int count, double (*join)(double a, double b))
{
    if (lr_comm_is_single(comm)) return LR_OK;
    if (count <= NUMBERS_ALONG) {
        struct state own = {.step = LR_COMM_STEP_NUMBERS, .count = count};
        memcpy(own.numbers, numbers, (size_t)count * sizeof(*numbers));
        LR_TRY(meet(comm, &own));
        const struct state *all = comm->little;
        join_all(comm, all->numbers, sizeof(*all) / sizeof(double), numbers, count, join);
        return LR_OK;
    }
    LR_TRY(lr_comm_meet(comm, LR_COMM_STEP_NUMBERS, count));
    for (int k = 0; k < count; k += MOST_NUMBERS) {
        const double begin = lr_clock_seconds();
        const int left = count - k, some = left < MOST_NUMBERS ? left : MOST_NUMBERS;
        LR_TRY(lr_comm_check(
            comm, comm->fns->gather_little(comm->group, numbers + k, comm->little, some * (int)sizeof(*numbers))));
        join_all(comm, comm->little, some, numbers + k, some, join);
        comm->moving_s += lr_clock_seconds() - begin;
    }
    return LR_OK;
}

lr_status lr_comm_sum_numbers(lr_comm *comm, double *numbers, int count)
{
    return combine(comm, numbers, count, add);
}

lr_status lr_comm_least(lr_comm *comm, double *numbers, int count)
{
    return combine(comm, numbers, count, fmin);
}

lr_status lr_comm_most(lr_comm *comm, double *numbers, int count)
{
    return combine(comm, numbers, count, fmax);
}

lr_status lr_comm_any(lr_comm *comm, bool *value)
{
    double number = *value ? 1.0 : 0.0;
    LR_TRY(lr_comm_most(comm, &number, 1));
    *value = number > 0.0;
    return LR_OK;
}

/* --- texts --- */

struct named_text {
    char text[256];
    char machine[64];
};

lr_status lr_comm_same(lr_comm *comm, const char *what, const char *text)
{
    struct named_text own = {0};
    if (lr_comm_is_single(comm)) return LR_OK;
    snprintf(own.text, sizeof(own.text), "%s", text);
    snprintf(own.machine, sizeof(own.machine), "%s", comm->facts.machine);
    LR_TRY(lr_comm_meet(comm, LR_COMM_STEP_SAME, 0));
    LR_TRY(lr_comm_check(comm, comm->fns->gather_little(comm->group, &own, comm->little, sizeof(own))));
    const struct named_text *all = comm->little;
    for (int r = 1; r < comm->facts.size; r++) {
        if (strcmp(all[r].text, all[0].text) == 0) continue;
        comm->failed_rank = r;
        comm->failed_status = LR_BAD_INPUT;
        if (r == comm->facts.rank) {
            lr_error(comm->log, LR_BAD_INPUT,
                     "another %s than that of rank 0: %s here, where %s has %s: give all ranks the same", what,
                     all[r].text, all[0].machine, all[0].text);
        }
        return lr_comm_tell_failure(comm);
    }
    return LR_OK;
}
