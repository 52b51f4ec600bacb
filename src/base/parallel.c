/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Threads: a pool, loops that several threads share, the number of processors, calls in a separate thread, and
 * watches. */
#include "base/parallel.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* --- threads that wait --- */

/* The C library keeps the stacks of ended threads for later threads, up to 40 MB. It maps and unmaps all further stacks
 * each time, which delays all threads that need new memory. Stacks are therefore small. */
enum { STACK_BYTES = 1 << 20, WAITS_SECONDS = 1 };

enum { IDLE = 0, ASKED, WORKING, TO_END };

struct lr_pool_thread {
    const struct lr_pool *pool; /* the pool that started this thread */
    atomic_int state;
    struct lr_pool_task task;
    struct lr_error_record *employer; /* the record of the thread that gave the task; the task's errors go there */
    sem_t asked;                      /* the semaphore may still be posted for a task that was cancelled */
    sem_t done;
    pthread_t id;
    bool is_waiting; /* `lock` guards this field and `next` */
    struct lr_pool_thread *next;
};

static struct lr_pool_thread *start(const struct lr_pool_task *task);
static void finish(struct lr_pool_thread *thread);
static const struct lr_pool own_pool = {start, finish};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lr_pool_thread *waiting; /* threads that are free for a task; `lock` guards both lists */
static struct lr_pool_thread *ended;   /* threads that have ended and must be joined */

/* A thread of the pool does one task after another, and ends after WAITS_SECONDS without a task. */
static void *live(void *user)
{
    struct lr_pool_thread *thread = user;
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += WAITS_SECONDS;
        int result;
        do {
            result = sem_timedwait(&thread->asked, &until);
        } while (result != 0 && errno == EINTR);
        int expected = ASKED;
        if (atomic_load(&thread->state) == TO_END) return NULL;
        if (atomic_compare_exchange_strong(&thread->state, &expected, WORKING)) {
            lr_errors_work_for(thread->employer);
            thread->task.body(thread->task.user, thread->task.worker);
            sem_post(&thread->done);
        } else if (result != 0) {
            /* The thread has had no task for a long time. It leaves the pool, unless a caller has just reserved it. */
            pthread_mutex_lock(&lock);
            const bool may_leave = thread->is_waiting;
            if (may_leave) {
                struct lr_pool_thread **at = &waiting;
                while (*at != thread) at = &(*at)->next;
                *at = thread->next;
                thread->next = ended;
                ended = thread;
            }
            pthread_mutex_unlock(&lock);
            if (may_leave) return NULL;
        }
    }
}

static void destroy(struct lr_pool_thread *thread)
{
    sem_destroy(&thread->asked);
    sem_destroy(&thread->done);
    free(thread);
}

/* Joins all threads of a list, and empties the list. */
static void join_all(struct lr_pool_thread **list)
{
    pthread_mutex_lock(&lock);
    struct lr_pool_thread *thread = *list;
    *list = NULL;
    for (struct lr_pool_thread *each = thread; each != NULL && list == &waiting; each = each->next) {
        each->is_waiting = false;
        atomic_store(&each->state, TO_END);
        sem_post(&each->asked);
    }
    pthread_mutex_unlock(&lock);
    while (thread != NULL) {
        struct lr_pool_thread *const next = thread->next;
        pthread_join(thread->id, NULL);
        destroy(thread);
        thread = next;
    }
}

/* Runs when the process ends or the library is unloaded, so that no thread runs code that is no longer in memory. */
__attribute__((destructor)) static void end_all(void)
{
    join_all(&waiting);
    join_all(&ended);
}

/* A child of fork() has none of its parent's threads. */
static void forget(void)
{
    waiting = NULL;
    ended = NULL;
    pthread_mutex_init(&lock, NULL);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget);
}

static struct lr_pool_thread *start(const struct lr_pool_task *task)
{
    (void)pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    struct lr_pool_thread *thread = waiting;
    if (thread != NULL) {
        waiting = thread->next;
        thread->is_waiting = false;
    }
    pthread_mutex_unlock(&lock);
    if (thread == NULL) {
        thread = calloc(1, sizeof(*thread));
        join_all(&ended);
        if (thread == NULL) return NULL;
        thread->pool = &own_pool;
        atomic_init(&thread->state, IDLE);
        (void)sem_init(&thread->asked, 0, 0); /* cannot fail for the value 0 */
        (void)sem_init(&thread->done, 0, 0);
        pthread_attr_t attributes;
        bool is_there = pthread_attr_init(&attributes) == 0;
        if (is_there) {
            (void)pthread_attr_setstacksize(&attributes, STACK_BYTES); /* if this fails, the stack has the default
                                                                          size */
            is_there = pthread_create(&thread->id, &attributes, live, thread) == 0;
            pthread_attr_destroy(&attributes);
        }
        if (!is_there) {
            destroy(thread);
            return NULL;
        }
    }
    thread->task = *task;
    thread->employer = lr_errors_record();
    atomic_store(&thread->state, ASKED);
    sem_post(&thread->asked);
    return thread;
}

static void finish(struct lr_pool_thread *thread)
{
    int expected = ASKED;
    if (!atomic_compare_exchange_strong(&thread->state, &expected, IDLE)) {
        while (sem_wait(&thread->done) != 0 && errno == EINTR) {
        }
        atomic_store(&thread->state, IDLE);
    }
    pthread_mutex_lock(&lock);
    thread->is_waiting = true;
    thread->next = waiting;
    waiting = thread;
    pthread_mutex_unlock(&lock);
}

/* --- the pool of the process --- */

static _Atomic(const struct lr_pool *) other_pool; /* NULL: this copy of the file uses own_pool */

const struct lr_pool *lr_pool_in_use(void)
{
    const struct lr_pool *pool = atomic_load(&other_pool);
    return pool != NULL ? pool : &own_pool;
}

void lr_pool_use(const struct lr_pool *pool)
{
    atomic_store(&other_pool, pool);
}

/* --- loops --- */

static void work(void *user, int worker)
{
    struct lr_parallel *loop = user;
    for (;;) {
        const int64_t share = atomic_fetch_add(&loop->next_share, 1);
        if (share >= loop->num_shares) return;
        const int64_t begin = share * loop->grain;
        const int64_t left = loop->count - begin, end = begin + (left < loop->grain ? left : loop->grain);
        if (loop->body != NULL)
            loop->body(loop->user, begin, end, worker);
        else
            loop->plain_body(loop->user, begin, end);
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
    const struct lr_pool *pool = lr_pool_in_use();
    while (loop->helpers != NULL && loop->num_helpers < useful - 1) {
        struct lr_pool_thread *helper = pool->start(&(struct lr_pool_task){work, loop, loop->num_helpers + 1});
        if (helper == NULL) break; /* the threads started so far do all the work */
        loop->helpers[loop->num_helpers++] = helper;
    }
}

void lr_parallel_end(struct lr_parallel *loop)
{
    work(loop, 0);
    for (int k = 0; k < loop->num_helpers; k++) loop->helpers[k]->pool->finish(loop->helpers[k]);
    free(loop->helpers);
    loop->helpers = NULL;
    loop->num_helpers = 0;
}

static void run_loop(struct lr_parallel *loop)
{
    if (loop->count <= 0) return;
    lr_parallel_begin(loop);
    lr_parallel_end(loop);
}

void lr_parallel_for(int threads, int64_t count, int64_t grain, lr_parallel_body *body, void *user)
{
    run_loop(&(struct lr_parallel){threads, count, grain, .user = user, .plain_body = body});
}

void lr_parallel_workers(int threads, int64_t count, int64_t grain, lr_worker_body *body, void *user)
{
    run_loop(&(struct lr_parallel){threads, count, grain, .body = body, .user = user});
}

/* --- processors --- */

static void lower_to_quota(void *user, const char *folder)
{
    double *processors = user;
    double quota[2] = {0.0, 100000.0}; /* processor time per period, and length of a period, in microseconds */
    if (!lr_cgroup_read(folder, "cpu.max", 2, quota) && !(lr_cgroup_read(folder, "cpu.cfs_quota_us", 1, &quota[0]) &&
                                                          lr_cgroup_read(folder, "cpu.cfs_period_us", 1, &quota[1])))
        return;
    if (quota[0] > 0.0 && quota[1] > 0.0) *processors = fmin(*processors, ceil(quota[0] / quota[1]));
}

int lr_num_processors(void)
{
    static atomic_int known; /* kept, because several files must be read to find this number */
    int processors = atomic_load(&known);
    if (processors == 0) {
        double least = (double)sysconf(_SC_NPROCESSORS_ONLN);
        /* Processors in the affinity mask, which Linux prints as hexadecimal words; 0 = not known. */
        FILE *file = fopen("/proc/self/status", "r");
        char line[1024], digits[1024];
        int allowed = 0;
        while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
            if (sscanf(line, "Cpus_allowed: %1023[0-9a-f,]", digits) != 1) continue;
            for (const char *at = digits; *at != '\0'; at++) {
                const int digit = *at == ',' ? 0 : *at <= '9' ? *at - '0' : *at - 'a' + 10;
                allowed += (digit & 1) + (digit >> 1 & 1) + (digit >> 2 & 1) + (digit >> 3 & 1);
            }
        }
        if (file != NULL) fclose(file);
        if (allowed > 0) least = fmin(least, allowed);
        lr_cgroup_visit("cpu", lower_to_quota, &least);
        processors = least < 1.0 ? 1 : (int)least;
        atomic_store(&known, processors);
    }
    return processors;
}

/* --- calls in a separate thread --- */

static void *call(void *user)
{
    const struct lr_background *background = user;
    lr_errors_work_for(background->employer);
    background->body(background->user);
    return NULL;
}

void lr_background_start(struct lr_background *background, void (*body)(void *user), void *user)
{
    background->body = body;
    background->user = user;
    background->employer = lr_errors_record();
    background->is_running = pthread_create(&background->thread, NULL, call, background) == 0;
    if (!background->is_running) body(user);
}

void lr_background_wait(struct lr_background *background)
{
    if (background->is_running) pthread_join(background->thread, NULL);
    background->is_running = false;
}

/* --- watches --- */

static void *wait_and_act(void *user)
{
    struct lr_watch *watch = user;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const long nanoseconds = until.tv_nsec + (long)(1e9 * (watch->patience_s - (double)(long)watch->patience_s));
    until.tv_sec += (time_t)watch->patience_s + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    int result = 0;
    pthread_mutex_lock(&watch->mutex);
    while (!watch->is_over && result == 0) result = pthread_cond_timedwait(&watch->changed, &watch->mutex, &until);
    const bool is_over = watch->is_over;
    pthread_mutex_unlock(&watch->mutex);
    if (!is_over) watch->act(watch->user);
    return NULL;
}

void lr_watch_begin(struct lr_watch *watch)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_cond_init(&watch->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    watch->is_over = false;
    watch->is_running = pthread_create(&watch->thread, NULL, wait_and_act, watch) == 0;
}

void lr_watch_end(struct lr_watch *watch)
{
    pthread_mutex_lock(&watch->mutex);
    watch->is_over = true;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->mutex);
    if (watch->is_running) pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->mutex);
}
