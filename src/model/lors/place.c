/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/lors/place.h"

int64_t lr_place_pair(const lr_lors *lors, int64_t lor)
{
    int64_t low = 0, high = lors->num_pairs;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (lors->offsets[middle] <= lor)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void enter_pair(struct lr_place *place, int64_t pair)
{
    const lr_scanner *scanner = place->lors->scanner;
    const int i = place->lors->pairs[pair][0], j = place->lors->pairs[pair][1];
    place->pair = pair;
    place->first_i = scanner->first_crystal[i];
    place->first_j = scanner->first_crystal[j];
    place->crystals_j = scanner->first_crystal[j + 1] - place->first_j;
    place->nu_j = scanner->modules[j].crystals[0];
}

void lr_place_seek_row(struct lr_place *place, int64_t lor)
{
    const lr_lors *lors = place->lors;
    if (place->crystals_j == 0 || lor < lors->offsets[place->pair] || lor >= lors->offsets[place->pair + 1])
        enter_pair(place, lr_place_pair(lors, lor));
    const int64_t begin = lors->offsets[place->pair];
    const int nu_i = lors->scanner->modules[lors->pairs[place->pair][0]].crystals[0];
    place->a = (int)((lor - begin) / place->crystals_j);
    place->row = begin + (int64_t)place->a * place->crystals_j;
    place->p = place->a % nu_i;
    place->q = place->a / nu_i;
}

bool lr_span_fits(const lr_lors *lors, const lr_lor_span *span)
{
    if (span->count == 0) return true;
    const int64_t first = lr_span_lor(span, 0), last = lr_span_lor(span, span->count - 1);
    return span->count > 0 && first >= 0 && last >= first && last < lors->count;
}
