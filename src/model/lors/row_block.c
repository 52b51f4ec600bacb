/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/lors/row_block.h"

#include "base/log.h"
#include "model/lors/owned_row.h"

static lr_status enter(void *user, const lr_row *row)
{
    const struct lr_row_entry *entry = user;
    return entry->rows.take(entry->rows.user, row);
}

lr_row_sink lr_row_entry_sink(struct lr_row_entry *entry)
{
    return (lr_row_sink){enter, entry};
}

const struct lr_row_block_sink *lr_row_entry_of(const lr_row_sink *sink)
{
    const struct lr_row_entry *entry = sink->take == enter ? sink->user : NULL;
    return entry != NULL ? &entry->blocks : NULL;
}

lr_status lr_row_block_unpack(const struct lr_row_block *block, const lr_row_sink *sink, const lr_log *log)
{
    struct lr_owned_row row = {0};
    const struct lr_packed_element *from = block->elements;
    lr_status status = LR_OK;
    for (int64_t r = 0; r < block->num_rows && status == LR_OK; r++) {
        const struct lr_row_extent *extent = &block->rows[r];
        status = lr_owned_row_reserve(&row, extent->count, log);
        if (status == LR_OK) {
            row.count = 0;
            for (int64_t k = 0; k < extent->count; k++) lr_owned_row_put(&row, from[k].lor, (double)from[k].value);
            from += extent->count;
            const lr_row view = lr_owned_row_view(&row, extent->row);
            status = sink->take(sink->user, &view);
        }
    }
    lr_owned_row_finish(&row);
    return status;
}
