/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanner, grid and COUNT random events of a test program. The file that includes this header defines COUNT. */
#pragma once

#include "listmode/cases.h"

static lr_lors lors; /* only the scanner is set; list mode needs no more */
static lr_grid grid;
static lr_event *events;

static int set_up(void **state)
{
    uint64_t seed = test_seed();
    lors = (lr_lors){.scanner = case_scanner()};
    grid = case_grid();
    events = case_events(COUNT, &seed);
    return 0;
}

static lr_listmode_params params_of(int model, const lr_events_info *info)
{
    lr_listmode_params params = {
        .lors = &lors, .grid = &grid, .events = events, .count = COUNT, .info = info, .threads = 2};
    case_kernel(&params, (enum case_model)model);
    return params;
}
