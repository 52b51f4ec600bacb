/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* The C library keeps stacks for the next threads as long as they are 40 MB in all. Others are mapped and unmapped
 * each time, which holds up all threads that touch new memory. */
enum { STACK_BYTES = 1 << 20, WAITS_SECONDS = 1 };

enum { IDLE = 0, ASKED, WORKING, TO_END };

struct lr_pool_thread {
    atomic_int state;
    struct lr_pool_task task;
    sem_t asked; /* posts outlive tasks that were called off */
    sem_t done;
    pthread_t id;
    bool is_waiting; /* with the lock, as the next field */
    struct lr_pool_thread *next;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lr_pool_thread *waiting; /* those that nobody has; with the lock, as the next ones */
static struct lr_pool_thread *ended;   /* whose threads are at their end, and are to be joined */

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR) {
    }
}

/* --- in its thread --- */

/* False: nobody has asked for a long time. */
static bool wait_a_while(struct lr_pool_thread *thread)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAITS_SECONDS;
    int result;
    do {
        result = sem_timedwait(&thread->asked, &until);
    } while (result != 0 && errno == EINTR);
    return result == 0;
}

/* False: somebody has it, and is about to ask. */
static bool leave(struct lr_pool_thread *thread)
{
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
    return may_leave;
}

static void *live(void *user)
{
    struct lr_pool_thread *thread = user;
    for (;;) {
        int expected = ASKED;
        const bool is_asked = wait_a_while(thread);
        if (atomic_load(&thread->state) == TO_END) return NULL;
        if (atomic_compare_exchange_strong(&thread->state, &expected, WORKING)) {
            thread->task.body(thread->task.user, thread->task.worker);
            sem_post(&thread->done);
        } else if (!is_asked && leave(thread)) {
            return NULL;
        }
    }
}

/* --- ends --- */

/* The thread is there no more. */
static void destroy(struct lr_pool_thread *thread)
{
    sem_destroy(&thread->asked);
    sem_destroy(&thread->done);
    free(thread);
}

static void join_all(struct lr_pool_thread *thread)
{
    while (thread != NULL) {
        struct lr_pool_thread *const next = thread->next;
        pthread_join(thread->id, NULL);
        destroy(thread);
        thread = next;
    }
}

static struct lr_pool_thread *take_all(struct lr_pool_thread **list)
{
    struct lr_pool_thread *all = *list;
    *list = NULL;
    return all;
}

static void join_ended(void)
{
    pthread_mutex_lock(&lock);
    struct lr_pool_thread *all = take_all(&ended);
    pthread_mutex_unlock(&lock);
    join_all(all);
}

/* When the process or the library goes: code that threads are in must not be unloaded. */
__attribute__((destructor)) static void end_all(void)
{
    pthread_mutex_lock(&lock);
    struct lr_pool_thread *all = take_all(&waiting);
    for (struct lr_pool_thread *thread = all; thread != NULL; thread = thread->next) {
        thread->is_waiting = false;
        atomic_store(&thread->state, TO_END);
        sem_post(&thread->asked);
    }
    pthread_mutex_unlock(&lock);
    join_all(all);
    join_ended();
}

/* No thread of the parent's is in a child. */
static void forget(void)
{
    waiting = NULL;
    ended = NULL;
    pthread_mutex_init(&lock, NULL);
}

static void prepare(void)
{
    (void)pthread_atfork(NULL, NULL, forget);
}

/* --- of whoever asks --- */

static struct lr_pool_thread *take_waiting(void)
{
    pthread_mutex_lock(&lock);
    struct lr_pool_thread *thread = waiting;
    if (thread != NULL) {
        waiting = thread->next;
        thread->is_waiting = false;
    }
    pthread_mutex_unlock(&lock);
    return thread;
}

static bool start_thread(struct lr_pool_thread *thread)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES); /* or it has the usual one */
    const bool is_there = pthread_create(&thread->id, &attributes, live, thread) == 0;
    pthread_attr_destroy(&attributes);
    return is_there;
}

static struct lr_pool_thread *create(void)
{
    struct lr_pool_thread *thread = calloc(1, sizeof(*thread));
    join_ended();
    if (thread == NULL) return NULL;
    atomic_init(&thread->state, IDLE);
    (void)sem_init(&thread->asked, 0, 0); /* of 0 they cannot fail */
    (void)sem_init(&thread->done, 0, 0);
    if (!start_thread(thread)) {
        destroy(thread);
        return NULL;
    }
    return thread;
}

struct lr_pool_thread *lr_pool_start(const struct lr_pool_task *task)
{
    (void)pthread_once(&once, prepare);
    struct lr_pool_thread *thread = take_waiting();
    thread = thread != NULL ? thread : create();
    if (thread != NULL) {
        thread->task = *task;
        atomic_store(&thread->state, ASKED);
        sem_post(&thread->asked);
    }
    return thread;
}

void lr_pool_finish(struct lr_pool_thread *thread)
{
    int expected = ASKED;
    if (!atomic_compare_exchange_strong(&thread->state, &expected, IDLE)) {
        wait_for(&thread->done);
        atomic_store(&thread->state, IDLE);
    }
    pthread_mutex_lock(&lock);
    thread->is_waiting = true;
    thread->next = waiting;
    waiting = thread;
    pthread_mutex_unlock(&lock);
}
