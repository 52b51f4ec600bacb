/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Dense or sparse LOR data, read at ascending LORs. */
#ifndef LR_RECON_LOR_CURSOR_H
#define LR_RECON_LOR_CURSOR_H

#include <lr/lors.h>
#include <stddef.h>

struct lr_lor_cursor {
    const lr_lor_data *data; /* NULL = zero everywhere */
    int64_t next;            /* sparse: the first entry not behind */
};

/* From a LOR on. */
static inline struct lr_lor_cursor lr_lor_cursor_at(const lr_lor_data *data, int64_t lor)
{
    struct lr_lor_cursor cursor = {data, 0};
    int64_t end = data != NULL && data->index != NULL ? data->count : 0;
    while (cursor.next < end) {
        const int64_t middle = cursor.next + (end - cursor.next) / 2;
        if (data->index[middle] < lor)
            cursor.next = middle + 1;
        else
            end = middle;
    }
    return cursor;
}

static inline double lr_lor_cursor_read(struct lr_lor_cursor *cursor, int64_t lor)
{
    const lr_lor_data *data = cursor->data;
    if (data == NULL) return 0.0;
    if (data->index == NULL) return data->values[lor];
    while (cursor->next < data->count && data->index[cursor->next] < lor) cursor->next++;
    const bool is_listed = cursor->next < data->count && data->index[cursor->next] == lor;
    return is_listed ? data->values[cursor->next] : 0.0;
}

#endif
