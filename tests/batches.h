/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Forces small or large batches of work on any device. A program that includes this file gets the function of
 * src/gl/batches.c from here. */
#pragma once

#include "gl/context_private.h"

#include <stdlib.h>
#include <string.h>

/* LR_TEST_BATCHES: small or large; with any other value, the device decides. */
bool gl_takes_small_batches(bool is_software)
{
    const char *batches = getenv("LR_TEST_BATCHES");
    if (batches == NULL || (strcmp(batches, "small") != 0 && strcmp(batches, "large") != 0)) return is_software;
    return strcmp(batches, "small") == 0;
}
