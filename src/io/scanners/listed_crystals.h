/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the readers of crystal lists share. */
#ifndef LR_IO_LISTED_CRYSTALS_H
#define LR_IO_LISTED_CRYSTALS_H

#include <lr/crystals.h>

/* More crystals than this are refused in files that spell out or describe them; the largest scanner
 * there is has 564,480. */
#define LR_MAX_LISTED_CRYSTALS 2000000

/* A growing list. Zero is valid. */
struct lr_listed_crystals {
    lr_crystal *items; /* owned */
    int count;
    int64_t room;
};

/* errors: LR_FAILED without memory, LR_BAD_INPUT beyond LR_MAX_LISTED_CRYSTALS; logged with
 *         `path`. */
lr_status lr_listed_crystals_add(struct lr_listed_crystals *list, const lr_crystal *crystal, const char *path,
                                 const lr_log *log);

/* Refuses a count that a header claims. */
lr_status lr_listed_crystals_check(double count, const char *path, const lr_log *log);

/* lr_scanner_from_crystals, without a sentence where it fails: for a list that may be read in
 * another way. Warnings go to the list's log. */
lr_scanner *lr_listed_crystals_try(const lr_crystal_list *list, int *crystal_of);

#endif
