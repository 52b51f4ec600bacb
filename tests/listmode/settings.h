/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Other settings for list mode's shaders: another size of groups, fewer jobs, and lines that each projection computes
 * again. A program that includes this file gets the function of src/listmode/compute/settings.c from here. */
#pragma once

#include "common/bindings.h"
#include "listmode/compute/listmode.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 1024 };

/* The number in an environment variable; `usual` if it is not set or is no valid number. */
static int setting_of(const char *name, int most, int usual)
{
    const char *const asked = getenv(name);
    const long number = asked != NULL ? strtol(asked, NULL, 10) : 0;
    return number > 0 && number <= most ? (int)number : usual;
}

struct lr_listmode_settings lr_listmode_settings_of(const struct lr_listmode_compute *compute)
{
    const char *const zeros = getenv("LR_TEST_LISTMODE_ZEROS"), *const lines = getenv("LR_TEST_LISTMODE_LINES");
    return (struct lr_listmode_settings){
        .forward_threads = setting_of("LR_TEST_LISTMODE_FORWARD_THREADS", MOST_THREADS, LR_EVENTS_SLAB_GROUP),
        .back_threads = setting_of("LR_TEST_LISTMODE_THREADS", MOST_THREADS, LR_EVENTS_GROUP),
        .most_jobs = setting_of("LR_TEST_LISTMODE_BLOCKS", 1 << 20, 0),
        .adds_zeros = zeros != NULL ? strcmp(zeros, "added") == 0 : !gl_context_limits(compute->ctx)->software,
        .finds_lines = lines != NULL && strcmp(lines, "found") == 0};
}
