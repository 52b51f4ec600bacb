/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/places.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/lors/selection.h"

#include <stdlib.h>
#include <string.h>

static lr_status map_numbers(struct lr_listmode_places *places, const lr_lor_span *span, const int64_t range[2],
                             const lr_log *log)
{
    const int64_t size = range[1] - range[0];
    if (places->room < size) {
        int32_t *larger = lr_resize(places->owned, size, sizeof(*larger), "a part of the events", log);
        if (larger == NULL) return LR_FAILED;
        places->owned = larger;
        places->room = size;
    }
    memset(places->owned, -1, (size_t)size * sizeof(*places->owned));
    for (int64_t k = 0; k < span->count; k++) places->owned[span->numbers[k] - range[0]] = (int32_t)k;
    places->map = places->owned;
    return LR_OK;
}

lr_status lr_listmode_places_find(struct lr_listmode_places *places, const struct lr_listmode_events *events,
                                  const lr_selection *selection, int64_t r, const lr_log *log)
{
    const int64_t *range = &events->offsets[r];
    struct lr_selection_walk walk = {
        .lors = &events->layout, .selection = selection, .begin = range[0], .end = range[1]};
    places->map = NULL;
    places->count = 0;
    if (range[1] == range[0] || !lr_selection_next(&walk)) return LR_OK;
    places->count = walk.span.count;
    places->share = (double)walk.span.count / (double)(range[1] - range[0]);
    places->position = walk.position;
    places->first = walk.span.first - range[0];
    return walk.span.numbers != NULL ? map_numbers(places, &walk.span, range, log) : LR_OK;
}

void lr_listmode_places_finish(struct lr_listmode_places *places)
{
    free(places->owned);
    *places = (struct lr_listmode_places){0};
}
