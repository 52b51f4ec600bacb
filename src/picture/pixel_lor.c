/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "picture/pixel_lor.h"

int64_t lr_pixel_lor(const struct lr_pixel_window *window, int x, int y)
{
    const lr_scanner *scanner = window->lors->scanner;
    const lr_module *primary = &scanner->modules[window->module];
    const lr_pixel *pixel = &window->pixels[(int64_t)y * primary->crystals[0] * window->rays + x];
    const int other = (int)pixel->module;
    if (!(pixel->weight > 0.0f) || other < 0 || other >= scanner->num_modules) return -1;
    const int here = y / window->rays * primary->crystals[0] + x / window->rays;
    const int there = (int)pixel->s * scanner->modules[other].crystals[0] + (int)pixel->r;
    return lr_lors_number(window->lors, scanner->first_crystal[window->module] + here,
                          scanner->first_crystal[other] + there);
}

double lr_row_element(const lr_row *row, int64_t lor)
{
    int64_t low = 0, high = row->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (row->lor[middle] < lor)
            low = middle + 1;
        else
            high = middle;
    }
    return low < row->count && row->lor[low] == lor ? row->probability[low] : 0.0;
}
