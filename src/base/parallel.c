/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/parallel.h"

#include "base/cgroup.h"
#include "base/pool.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void work(void *user, int worker)
{
    struct lr_parallel *loop = user;
    for (;;) {
        const int64_t share = atomic_fetch_add(&loop->next_share, 1);
        if (share >= loop->num_shares) return;
        const int64_t begin = share * loop->grain;
        const int64_t left = loop->count - begin;
        loop->body(loop->user, begin, begin + (left < loop->grain ? left : loop->grain), worker);
    }
}

void lr_parallel_begin(struct lr_parallel *loop)
{
    loop->grain = loop->grain < 1 ? 1 : loop->grain;
    loop->num_shares = loop->count > 0 ? (loop->count - 1) / loop->grain + 1 : 0;
    atomic_init(&loop->next_share, 0);
    const int64_t useful = loop->num_shares < loop->threads ? loop->num_shares : loop->threads;
    loop->helpers = useful > 1 ? malloc(((size_t)useful - 1) * sizeof(struct lr_pool_thread *)) : NULL;
    loop->num_helpers = 0;
    while (loop->helpers != NULL && loop->num_helpers < useful - 1) {
        struct lr_pool_thread *helper = lr_pool_start(&(struct lr_pool_task){work, loop, loop->num_helpers + 1});
        if (helper == NULL) break; /* those that there are do all */
        loop->helpers[loop->num_helpers++] = helper;
    }
}

void lr_parallel_end(struct lr_parallel *loop)
{
    work(loop, 0);
    for (int k = 0; k < loop->num_helpers; k++) lr_pool_finish(loop->helpers[k]);
    free(loop->helpers);
    loop->helpers = NULL;
    loop->num_helpers = 0;
}

void lr_parallel_for(int threads, int64_t count, int64_t grain, lr_parallel_body *body, void *user)
{
    struct lr_parallel loop = {.threads = threads, .count = count, .grain = grain, .body = body, .user = user};
    if (count > 0) {
        lr_parallel_begin(&loop);
        lr_parallel_end(&loop);
    }
}

/* Processors in the affinity mask, which Linux prints as hexadecimal words; 0 = not known. */
static int count_allowed(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL) return 0;
    char line[1024];
    int allowed = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        char digits[1024];
        if (sscanf(line, "Cpus_allowed: %1023[0-9a-f,]", digits) != 1) continue;
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
    if (!lr_cgroup_read(folder, "cpu.max", 2, quota) && !(lr_cgroup_read(folder, "cpu.cfs_quota_us", 1, &quota[0]) &&
                                                          lr_cgroup_read(folder, "cpu.cfs_period_us", 1, &quota[1])))
        return;
    if (quota[0] > 0.0 && quota[1] > 0.0) *processors = fmin(*processors, ceil(quota[0] / quota[1]));
}

static int find_processors(void)
{
    double processors = (double)sysconf(_SC_NPROCESSORS_ONLN);
    const int allowed = count_allowed();
    if (allowed > 0) processors = fmin(processors, allowed);
    lr_cgroup_visit("cpu", lower_to_quota, &processors);
    return processors < 1.0 ? 1 : (int)processors;
}

int lr_num_processors(void)
{
    static atomic_int known; /* looked up once: it takes reading several files */
    int processors = atomic_load(&known);
    if (processors == 0) {
        processors = find_processors();
        atomic_store(&known, processors);
    }
    return processors;
}
