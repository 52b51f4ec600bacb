/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Linked in place of the allocation functions in our own objects (--wrap): lets one allocation fail as if there were
 * no memory (inject.h). Allocations of other libraries are not affected. */
#include "inject.h"

#include <lr/log.h>
#include <stddef.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__real_lr_alloc(int64_t count, size_t size, const char *what, const lr_log *log);
void *__real_lr_resize(void *block, int64_t count, size_t size, const char *what, const lr_log *log);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_lr_alloc(int64_t count, size_t size, const char *what, const lr_log *log);
void *__wrap_lr_resize(void *block, int64_t count, size_t size, const char *what, const lr_log *log);

int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);

/* Allocations before main() are those of linked libraries, and do not count. */
static bool has_begun;

int __wrap_main(int argc, char **argv)
{
    has_begun = true;
    return __real_main(argc, argv);
}

/* The purpose of an allocation, if the code states one; copied, since some of these texts are on stacks. */
static _Thread_local char purpose[128];

static bool fails(const char *function)
{
    const char *name = function;
    if (!has_begun) return false;
    if (purpose[0] != '\0') {
        char *copy = __real_malloc(sizeof(purpose));
        name = copy != NULL ? strcpy(copy, purpose) : function;
    }
    return inject_fails("allocs", name);
}

void *__wrap_malloc(size_t bytes)
{
    return fails("malloc") ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails("calloc") ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *block, size_t bytes)
{
    return fails("realloc") ? NULL : __real_realloc(block, bytes);
}

void *__wrap_lr_alloc(int64_t count, size_t size, const char *what, const lr_log *log)
{
    snprintf(purpose, sizeof(purpose), "%s", what);
    void *block = __real_lr_alloc(count, size, what, log);
    purpose[0] = '\0';
    return block;
}

void *__wrap_lr_resize(void *block, int64_t count, size_t size, const char *what, const lr_log *log)
{
    snprintf(purpose, sizeof(purpose), "%s", what);
    void *bigger = __real_lr_resize(block, count, size, what, log);
    purpose[0] = '\0';
    return bigger;
}
