/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Linked in place of pthread_create in our own objects (--wrap): lets a start of a thread fail as
 * if there were too many (inject.h). */
#include "inject.h"

#include <errno.h>
#include <pthread.h>

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *user);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *user);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *user)
{
    if (inject_fails("threads", "pthread_create")) return EAGAIN;
    return __real_pthread_create(thread, attributes, start, user);
}
