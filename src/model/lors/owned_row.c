/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/lors/owned_row.h"

#include "base/grow.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

lr_status lr_owned_row_reserve(struct lr_owned_row *row, int64_t room, const lr_log *log)
{
    static const char what[] = "a matrix row";
    if (room <= row->room) return LR_OK;
    int64_t both = row->room;
    LR_TRY(lr_grow(&row->lor, &both, room, &(struct lr_items){sizeof(*row->lor), what, log}));
    return lr_grow(&row->probability, &row->room, room, &(struct lr_items){sizeof(*row->probability), what, log});
}

lr_status lr_owned_row_copy(struct lr_owned_row *row, const lr_row *from, const lr_log *log)
{
    LR_TRY(lr_owned_row_reserve(row, from->count, log));
    row->count = from->count;
    if (row->count > 0) {
        memcpy(row->lor, from->lor, (size_t)row->count * sizeof(*row->lor));
        memcpy(row->probability, from->probability, (size_t)row->count * sizeof(*row->probability));
    }
    return LR_OK;
}

void lr_owned_row_finish(struct lr_owned_row *row)
{
    free(row->lor);
    free(row->probability);
    *row = (struct lr_owned_row){0};
}
