/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Selects which of a program's calls is to fail, by environment variables:
 *   INJECT_KIND   "gl", "cuda", "allocs" or "threads": the kind of calls that are counted; others are not affected
 *   INJECT_NAME   name of the function whose calls are counted; if unset, calls of all functions
 *   INJECT_AT     number of the call that fails, from 1 on; if unset, none fails
 *   INJECT_EVER   if set, all later calls fail, too
 *   INJECT_CALLS  file to which the calls are written in their order when the program ends: a line for each with the
 *                 name and a digest of the functions on the stack, which is the same in every run
 *   INJECT_DEPTH  number of these functions in the digest, from the innermost on; if unset, all */
#pragma once

#include <dlfcn.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INJECT_MOST_CALLS = 1 << 18, INJECT_MOST_FRAMES = 64 };

struct inject {
    bool is_known, is_counted, is_ever, is_written;
    const char *name;
    long at, depth;
    atomic_long count;
    const char *names[INJECT_MOST_CALLS]; /* which live as long as the program */
    uint64_t ways[INJECT_MOST_CALLS];     /* digests of the stacks */
};

static struct inject inject;

static void inject_write_names(void)
{
    FILE *file = fopen(getenv("INJECT_CALLS"), "w");
    const long count = atomic_load(&inject.count);
    for (long k = 0; file != NULL && k < count && k < INJECT_MOST_CALLS; k++) {
        fprintf(file, "%s %016llx\n", inject.names[k] != NULL ? inject.names[k] : "?",
                (unsigned long long)inject.ways[k]);
    }
    if (file != NULL) fclose(file);
}

/* The first call is made by the thread that starts all others. */
static void inject_look_around(const char *kind)
{
    const char *wanted = getenv("INJECT_KIND"), *at = getenv("INJECT_AT"), *depth = getenv("INJECT_DEPTH");
    inject.is_known = true;
    inject.is_counted = wanted != NULL && strcmp(wanted, kind) == 0;
    inject.name = getenv("INJECT_NAME");
    inject.is_ever = getenv("INJECT_EVER") != NULL;
    inject.at = at != NULL ? strtol(at, NULL, 10) : 0;
    inject.depth = depth != NULL ? strtol(depth, NULL, 10) : INJECT_MOST_FRAMES;
    inject.is_written = inject.is_counted && getenv("INJECT_CALLS") != NULL;
    if (inject.is_written) atexit(inject_write_names);
}

/* FNV-1a hash of the return addresses on the caller's stack, each relative to its library. */
static uint64_t inject_way(void)
{
    static _Thread_local bool is_inside; /* the first backtrace allocates */
    void *frames[INJECT_MOST_FRAMES];
    uint64_t digest = 14695981039346656037u;
    if (is_inside) return 0;
    is_inside = true;
    const int count = backtrace(frames, INJECT_MOST_FRAMES);
    /* The first three frames are this function, the counting function, and the failing one. */
    for (int k = 3; k < count && k < 3 + inject.depth; k++) {
        Dl_info where;
        const bool is_named = dladdr(frames[k], &where) != 0;
        digest = (digest ^ (is_named ? (uint64_t)((char *)frames[k] - (char *)where.dli_fbase) : 0)) * 1099511628211u;
    }
    is_inside = false;
    return digest;
}

/* Counts a call and returns true if it must fail. */
static bool inject_fails(const char *kind, const char *name)
{
    if (!inject.is_known) inject_look_around(kind);
    if (!inject.is_counted || (inject.name != NULL && strcmp(inject.name, name) != 0)) return false;
    const long number = atomic_fetch_add(&inject.count, 1) + 1;
    if (number <= INJECT_MOST_CALLS) {
        inject.names[number - 1] = name;
        inject.ways[number - 1] = inject.is_written ? inject_way() : 0;
    }
    return inject.at > 0 && (inject.is_ever ? number >= inject.at : number == inject.at);
}
