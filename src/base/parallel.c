/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/parallel.h"

#include "base/cgroup.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct loop {
    atomic_llong next_share;
    int64_t num_shares, count, grain;
    lr_parallel_body *body;
    void *user;
};

struct helper {
    pthread_t thread;
    struct loop *loop;
    int worker;
};

static void work(struct loop *loop, int worker)
{
    for (;;) {
        const int64_t share = atomic_fetch_add(&loop->next_share, 1);
        if (share >= loop->num_shares) {
            return;
        }
        const int64_t begin = share * loop->grain;
        const int64_t left = loop->count - begin;
        loop->body(loop->user, begin, begin + (left < loop->grain ? left : loop->grain), worker);
    }
}

static void *help(void *user)
{
    const struct helper *helper = user;
    work(helper->loop, helper->worker);
    return NULL;
}

/* The C library keeps stacks for the next threads as long as they are 40 MB in all. Others are mapped and unmapped by
 * each loop, which holds up all threads that touch new memory. */
enum { STACK_BYTES = 1 << 20 };

/* Returns how many could be started. */
static int start_helpers(struct helper *helpers, int num_helpers, struct loop *loop)
{
    pthread_attr_t small, *attributes = pthread_attr_init(&small) == 0 ? &small : NULL;
    int started = 0;
    if (attributes != NULL) {
        (void)pthread_attr_setstacksize(attributes,
                                        STACK_BYTES); /* else they have the usual ones */
    }
    for (; started < num_helpers; started++) {
        struct helper *helper = &helpers[started];
        helper->loop = loop;
        helper->worker = started + 1;
        if (pthread_create(&helper->thread, attributes, help, helper) != 0) {
            break;
        }
    }
    if (attributes != NULL) {
        pthread_attr_destroy(attributes);
    }
    return started;
}

void lr_parallel_for(int threads, int64_t count, int64_t grain, lr_parallel_body *body, void *user)
{
    if (count <= 0) {
        return;
    }
    grain = grain < 1 ? 1 : grain;
    struct loop loop = {.num_shares = (count - 1) / grain + 1,
                        .count = count,
                        .grain = grain,
                        .body = body,
                        .user = user};
    atomic_init(&loop.next_share, 0);
    const int64_t useful = loop.num_shares < threads ? loop.num_shares : threads;
    struct helper *helpers = useful > 1 ? calloc((size_t)useful - 1, sizeof(*helpers)) : NULL;
    const int started = helpers ? start_helpers(helpers, (int)useful - 1, &loop) : 0;
    work(&loop, 0);
    for (int k = 0; k < started; k++) {
        pthread_join(helpers[k].thread, NULL);
    }
    free(helpers);
}

/* Processors in the affinity mask, which Linux prints as hexadecimal words; 0 = not known. */
static int count_allowed(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL) {
        return 0;
    }
    char line[1024];
    int allowed = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        char digits[1024];
        if (sscanf(line, "Cpus_allowed: %1023[0-9a-f,]", digits) != 1) {
            continue;
        }
        for (const char *at = digits; *at != '\0'; at++) {
            const int digit = *at == ',' ? 0 : *at <= '9' ? *at - '0' : *at - 'a' + 10;
            allowed += (digit & 1) + (digit >> 1 & 1) + (digit >> 2 & 1) + (digit >> 3 & 1);
        }
    }
    fclose(file);
    return allowed;
}

static void lower_to_quota(void *user, const char *folder)
{
    double *processors = user;
    double quota[2] = {0.0, 100000.0}; /* microseconds of processor time per period */
    if (!lr_cgroup_read(folder, "cpu.max", 2, quota) &&
        !(lr_cgroup_read(folder, "cpu.cfs_quota_us", 1, &quota[0]) &&
          lr_cgroup_read(folder, "cpu.cfs_period_us", 1, &quota[1]))) {
        return;
    }
    if (quota[0] > 0.0 && quota[1] > 0.0) {
        *processors = fmin(*processors, ceil(quota[0] / quota[1]));
    }
}

int lr_num_processors(void)
{
    double processors = (double)sysconf(_SC_NPROCESSORS_ONLN);
    const int allowed = count_allowed();
    if (allowed > 0) {
        processors = fmin(processors, allowed);
    }
    lr_cgroup_visit("cpu", lower_to_quota, &processors);
    return processors < 1.0 ? 1 : (int)processors;
}
