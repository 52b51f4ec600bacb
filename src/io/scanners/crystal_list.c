/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystals that a file lists one by one, and the scanner that they make. */
#include "io/scanners/scanner_formats.h"

#include "base/grow.h"
#include "base/log.h"

lr_status lr_listed_crystals_check(double count, const char *path, const lr_log *log)
{
    if (count > LR_MAX_LISTED_CRYSTALS) {
        return lr_error(log, LR_BAD_INPUT, "%s: describes %.10g crystals: at most %d are supported", path, count,
                        LR_MAX_LISTED_CRYSTALS);
    }
    return LR_OK;
}

lr_status lr_listed_crystals_add(struct lr_listed_crystals *list, const lr_crystal *crystal, const char *path,
                                 const lr_log *log)
{
    LR_TRY(lr_listed_crystals_check((double)list->count + 1, path, log));
    LR_TRY(
        lr_grow(&list->items, &list->room, list->count + 1, &(struct lr_items){sizeof(*list->items), "crystals", log}));
    list->items[list->count++] = *crystal;
    return LR_OK;
}

static void write_but_errors(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const lr_crystal_list *list = user;
    if (level != LR_LOG_ERROR) lr_log_write(list->log, level, status, "%s", sentence);
}

lr_scanner *lr_listed_crystals_try(const lr_crystal_list *list, int *crystal_of)
{
    lr_crystal_list kept = *list, trial = *list;
    const lr_log log = {write_but_errors, &kept};
    trial.log = &log;
    return lr_scanner_from_crystals(&trial, crystal_of, NULL);
}
