/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_CASTOR_TABLE_H
#define LR_IO_CASTOR_TABLE_H

#include <lr/scanner.h>

/* Reads the look-up table (.lut, .glut) of a scanner of CASToR's and finds each of its crystals in
 * ours: order[k] = our number of crystal k, -1 where ours has none within 0.1 mm, which is told in
 * a warning. The table's frame is left-handed: its x is ours reversed. Memory: 1.2 times the file.
 *
 * order: set to an array, to be freed; NULL on failure.
 * errors: LR_BAD_INPUT for a table that is none, and one of which no crystal is found. */
lr_status lr_castor_table_match(const char *path, const lr_scanner *scanner, int **order,
                                int *count, const lr_log *log);

#endif
