/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/events/event_joining.h"

#include "model/lors/place.h"
#include "model/scanner/coincidence.h"

#include <stdlib.h>

/* What two modules have: no LORs, one for each two crystals, or those of pair FIRST_PAIR + n that its mask lets
 * count. So events are looked up in two tables. */
enum { NONE_JOINED = 0, ALL_JOINED, FIRST_PAIR, MOST_MODULES = 1 << 12 };

/* Crystals of the lower and the higher module of a pair. */
static bool is_allowed(const lr_lors *lors, int64_t pair, int32_t low, int32_t high)
{
    const lr_scanner *scanner = lors->scanner;
    const int i = lors->pairs[pair][0], j = lors->pairs[pair][1];
    const int a = low - scanner->first_crystal[i], b = high - scanner->first_crystal[j];
    const int nu_i = scanner->modules[i].crystals[0], nu_j = scanner->modules[j].crystals[0];
    return lr_coincidence_allows(lors, pair, a % nu_i, a / nu_i, b % nu_j, b / nu_j);
}

static bool is_joined(const struct lr_joining *joining, const int32_t crystals[2])
{
    const lr_scanner *scanner = joining->lors->scanner;
    const int32_t a = crystals[0], b = crystals[1];
    if (joining->pairs == NULL) return lr_place_joined(joining->lors, crystals) >= 0;
    if (a < 0 || b < 0 || a >= scanner->num_crystals || b >= scanner->num_crystals) return false;
    const int64_t row = (int64_t)joining->module_of[a] * scanner->num_modules;
    const int found = joining->pairs[row + joining->module_of[b]];
    return found >= FIRST_PAIR ? is_allowed(joining->lors, found - FIRST_PAIR, a < b ? a : b, a < b ? b : a)
                               : found == ALL_JOINED;
}

void lr_joining_open(struct lr_joining *joining, const lr_lors *lors)
{
    const lr_scanner *scanner = lors->scanner;
    *joining = (struct lr_joining){.lors = lors};
    const int64_t modules = scanner != NULL ? scanner->num_modules : 0;
    if (modules == 0 || modules > MOST_MODULES || lors->num_pairs > INT32_MAX - FIRST_PAIR) return;
    joining->module_of = malloc((size_t)scanner->num_crystals * sizeof(*joining->module_of));
    joining->pairs =
        joining->module_of != NULL ? calloc((size_t)modules * (size_t)modules, sizeof(*joining->pairs)) : NULL;
    if (joining->pairs == NULL) return;
    for (int m = 0; m < scanner->num_modules; m++)
        for (int c = scanner->first_crystal[m]; c < scanner->first_crystal[m + 1]; c++) joining->module_of[c] = m;
    for (int64_t pair = 0; pair < lors->num_pairs; pair++) {
        const int64_t i = lors->pairs[pair][0], j = lors->pairs[pair][1];
        const bool all = lors->masks->pairs[pair].kind == LR_MASK_ALL;
        joining->pairs[i * modules + j] = joining->pairs[j * modules + i] =
            all ? ALL_JOINED : (int32_t)pair + FIRST_PAIR;
    }
}

void lr_joining_finish(struct lr_joining *joining)
{
    free(joining->module_of);
    free(joining->pairs);
    *joining = (struct lr_joining){0};
}

int64_t lr_joining_count(const struct lr_joining *joining, const lr_event *events, int64_t count)
{
    int64_t joined = 0;
    for (int64_t k = 0; k < count; k++) joined += is_joined(joining, events[k].crystals);
    return joined;
}
