/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the environment may set, for measurements. */
#include "common/bindings.h"
#include "render/listmode/listmode.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 1024 };

/* Of a variable; `usual`: it is not there, or no such number. */
static int number_asked(const char *name, int most, int usual)
{
    const char *const asked = getenv(name);
    const long number = asked != NULL ? strtol(asked, NULL, 10) : 0;
    return number > 0 && number <= most ? (int)number : usual;
}

int lr_listmode_kept_threads(bool forward)
{
    return forward ? number_asked("LORASTER_LISTMODE_FORWARD_THREADS", MOST_THREADS, LR_EVENTS_SLAB_GROUP)
                   : number_asked("LORASTER_LISTMODE_THREADS", MOST_THREADS, LR_EVENTS_GROUP);
}

int lr_listmode_most_jobs(int most)
{
    return number_asked("LORASTER_LISTMODE_BLOCKS", 1 << 20, most);
}

/* A processor takes longer for an addition than for a branch. */
bool lr_listmode_adds_zeros(const struct lr_listmode_compute *compute)
{
    const char *const asked = getenv("LORASTER_LISTMODE_ZEROS");
    return asked != NULL ? strcmp(asked, "added") == 0 : !gl_context_limits(compute->ctx)->software;
}

bool lr_listmode_finds_lines(void)
{
    const char *const asked = getenv("LORASTER_LISTMODE_LINES");
    return asked != NULL && strcmp(asked, "found") == 0;
}
