/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Which of a program's calls is to fail. Its surroundings say so:
 *   INJECT_KIND   "gl", "cuda", "allocs" or "threads": whose calls are counted; others go through
 *   INJECT_NAME   a function: only its calls are counted; all functions' without it
 *   INJECT_AT     the number of the call that fails, from 1 on; none without it
 *   INJECT_EVER   set: so do all that follow
 *   INJECT_CALLS  a file that gets the calls, in their order, when the program ends: a line each, name
 *                 and a digest of the functions that it came through, alike in every run
 *   INJECT_DEPTH  how many of these functions count, from the innermost on; all without it */
#ifndef LR_TESTS_INJECT_H
#define LR_TESTS_INJECT_H

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
    const char *wanted = getenv("INJECT_KIND"), *at = getenv("INJECT_AT");
    const char *depth = getenv("INJECT_DEPTH");
    inject.is_known = true;
    inject.is_counted = wanted != NULL && strcmp(wanted, kind) == 0;
    inject.name = getenv("INJECT_NAME");
    inject.is_ever = getenv("INJECT_EVER") != NULL;
    inject.at = at != NULL ? strtol(at, NULL, 10) : 0;
    inject.depth = depth != NULL ? strtol(depth, NULL, 10) : INJECT_MOST_FRAMES;
    inject.is_written = inject.is_counted && getenv("INJECT_CALLS") != NULL;
    if (inject.is_written) atexit(inject_write_names);
}

/* FNV-1a over the places in their libraries that the caller's functions return to. */
static uint64_t inject_way(void)
{
    static _Thread_local bool is_inside; /* the first backtrace allocates */
    void *frames[INJECT_MOST_FRAMES];
    uint64_t digest = 14695981039346656037u;
    if (is_inside) return 0;
    is_inside = true;
    const int count = backtrace(frames, INJECT_MOST_FRAMES);
    /* This function, those that count, and what fails. */
    for (int k = 3; k < count && k < 3 + inject.depth; k++) {
        Dl_info where;
        const bool is_named = dladdr(frames[k], &where) != 0;
        digest = (digest ^ (is_named ? (uint64_t)((char *)frames[k] - (char *)where.dli_fbase) : 0)) * 1099511628211u;
    }
    is_inside = false;
    return digest;
}

/* Counts a call and says whether it fails. */
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

#endif
