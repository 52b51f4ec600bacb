/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystals' faces as devices have them for exact elements (docs/method/listmode.md, "Exact elements"). */
#ifndef LR_LISTMODE_FACES_H
#define LR_LISTMODE_FACES_H

#include <lr/scanner.h>

/* Axes of a module's faces. Where all modules have an axis along the same one of the grid, `along` is that
 * one of each. */
struct lr_listmode_module {
    double across[4], along[4]; /* the fourth is half of a face along it, mm */
    double normal[4];           /* inward; the fourth is 0 */
};

/* Whether there is no such axis. */
bool lr_listmode_is_leaning(const lr_scanner *scanner);

/* [num_modules], the caller's to free; NULL without memory, logged. */
struct lr_listmode_module *lr_listmode_modules(const lr_scanner *scanner, const lr_log *log);

#endif
