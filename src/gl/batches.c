/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Decides whether a device gets work in small batches. The function has its own file, so that a test program can
 * replace it (tests/batches.h). */
#include "gl/context_private.h"

bool gl_takes_small_batches(bool is_software)
{
    return is_software;
}
