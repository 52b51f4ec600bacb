/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Which of a program's calls is to fail. Its surroundings say so:
 *   INJECT_KIND   "gl", "cuda", "allocs" or "threads": whose calls are counted; others go through
 *   INJECT_AT     the number of the call that fails, from 1 on; none without it
 *   INJECT_EVER   set: so do all that follow
 *   INJECT_CALLS  a file that gets the names of the calls, in their order, when the program ends */
#ifndef LR_TESTS_INJECT_H
#define LR_TESTS_INJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INJECT_MOST_CALLS = 1 << 18 };

struct inject {
    bool is_known, is_counted, is_ever;
    long at;
    atomic_long count;
    const char *names[INJECT_MOST_CALLS]; /* which live as long as the program */
};

static struct inject inject;

static void inject_write_names(void)
{
    FILE *file = fopen(getenv("INJECT_CALLS"), "w");
    const long count = atomic_load(&inject.count);
    for (long k = 0; file != NULL && k < count && k < INJECT_MOST_CALLS; k++) {
        fprintf(file, "%s\n", inject.names[k] != NULL ? inject.names[k] : "?");
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* The first call is made by the thread that starts all others. */
static void inject_look_around(const char *kind)
{
    const char *wanted = getenv("INJECT_KIND"), *at = getenv("INJECT_AT");
    inject.is_known = true;
    inject.is_counted = wanted != NULL && strcmp(wanted, kind) == 0;
    inject.is_ever = getenv("INJECT_EVER") != NULL;
    inject.at = at != NULL ? strtol(at, NULL, 10) : 0;
    if (inject.is_counted && getenv("INJECT_CALLS") != NULL) {
        atexit(inject_write_names);
    }
}

/* Counts a call and says whether it fails. */
static bool inject_fails(const char *kind, const char *name)
{
    if (!inject.is_known) {
        inject_look_around(kind);
    }
    if (!inject.is_counted) {
        return false;
    }
    const long number = atomic_fetch_add(&inject.count, 1) + 1;
    if (number <= INJECT_MOST_CALLS) {
        inject.names[number - 1] = name;
    }
    return inject.at > 0 && (inject.is_ever ? number >= inject.at : number == inject.at);
}

#endif
