/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/event_list.h"

#include "base/mem.h"

#include <stdlib.h>

enum { FIRST_ROOM = 8192 };

lr_status lr_event_list_add(struct lr_event_list *list, int64_t lor, const lr_log *log)
{
    if (list->count == list->room) {
        const int64_t room = list->room + list->room / 2 + FIRST_ROOM;
        void *lors = lr_resize(list->lors, room, sizeof(*list->lors), "events", log);
        if (lors == NULL) {
            return LR_FAILED;
        }
        list->lors = lors;
        list->room = room;
    }
    list->lors[list->count++] = lor;
    return LR_OK;
}

void lr_event_list_finish(struct lr_event_list *list)
{
    free(list->lors);
    *list = (struct lr_event_list){0};
}
