/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Checks of values per LOR, with error messages. */
#ifndef LR_MODEL_LOR_CHECK_H
#define LR_MODEL_LOR_CHECK_H

#include <lr/lors.h>

/* Checks the LOR numbers of sparse data: they must be ascending, from 0 to lors->count - 1. errors: LR_BAD_INPUT. */
lr_status lr_lor_index_check(const int64_t *index, int64_t count, const lr_lors *lors, const char *name,
                             const lr_log *log);

/* Name of a LOR or voxel, for messages: "LOR 17 (crystal 1, 2 of module 3 with crystal 4, 5 of module 6)", "voxel 17 of
 * view 3". */
const char *lr_lor_name(const lr_lors *lors, int64_t lor, char text[160]);

/* Reports a value that is not finite and at least 0. */
lr_status lr_lor_report_value(const lr_lors *lors, int64_t lor, double value, const char *name, const lr_log *log);

#endif
