/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Other settings for list mode's shaders: another size of groups, fewer jobs, and lines that each projection computes
 * again. A program that includes this file gets the functions of src/listmode/compute/settings.c from here. */
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

int lr_listmode_job_threads(bool forward)
{
    return forward ? setting_of("LR_TEST_LISTMODE_FORWARD_THREADS", MOST_THREADS, LR_EVENTS_SLAB_GROUP)
                   : setting_of("LR_TEST_LISTMODE_THREADS", MOST_THREADS, LR_EVENTS_GROUP);
}

int lr_listmode_most_jobs(int most)
{
    return setting_of("LR_TEST_LISTMODE_BLOCKS", 1 << 20, most);
}

bool lr_listmode_adds_zeros(const struct lr_listmode_compute *compute)
{
    const char *const asked = getenv("LR_TEST_LISTMODE_ZEROS");
    return asked != NULL ? strcmp(asked, "added") == 0 : !gl_context_limits(compute->ctx)->software;
}

bool lr_listmode_finds_lines(void)
{
    const char *const asked = getenv("LR_TEST_LISTMODE_LINES");
    return asked != NULL && strcmp(asked, "found") == 0;
}
