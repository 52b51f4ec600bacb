/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A file of its own, so that test programs can link another answer in its place (tests/batches.h). */
#include "gl/context_private.h"

bool gl_takes_small_batches(bool is_software)
{
    return is_software;
}
