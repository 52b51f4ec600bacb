/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/shared.h"

#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>

struct shared {
    atomic_int holders;
    void *object;
    void (*destroy)(void *object);
};

struct shared *shared_create(void *object, void (*destroy)(void *object), const lr_log *log)
{
    struct shared *shared = object != NULL ? lr_alloc(1, sizeof(*shared), "what is shown", log) : NULL;
    if (shared == NULL) {
        if (object != NULL) destroy(object);
        return NULL;
    }
    shared->object = object;
    shared->destroy = destroy;
    atomic_init(&shared->holders, 1);
    return shared;
}

struct shared *shared_hold(struct shared *shared)
{
    if (shared != NULL) atomic_fetch_add(&shared->holders, 1);
    return shared;
}

void shared_release(struct shared *shared)
{
    if (shared != NULL && atomic_fetch_sub(&shared->holders, 1) == 1) {
        shared->destroy(shared->object);
        free(shared);
    }
}

void *shared_object(const struct shared *shared)
{
    return shared != NULL ? shared->object : NULL;
}
