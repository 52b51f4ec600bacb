/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Programs that LORaster starts: what reads HDF5 files, and `loraster bench`. They are looked for in
 * the folder that LORASTER_LIBEXEC names; where that is not set, beside the running program, in
 * ../libexec/loraster from there, and where they were to be installed. */
#ifndef LR_BASE_HELPER_H
#define LR_BASE_HELPER_H

#include <limits.h>
#include <stdbool.h>

/* Fills in the program's path; where there is none, the folder that it should be in. */
bool lr_helper_find(const char *name, char path[PATH_MAX]);

#endif
