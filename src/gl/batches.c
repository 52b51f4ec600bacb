/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The answer to one question, in a file of its own, so that test programs can link another answer (tests/batches.h). */
#include "gl/context_private.h"

bool gl_takes_small_batches(bool is_software)
{
    return is_software;
}
