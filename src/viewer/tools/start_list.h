/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanners that LORaster knows, for a window in which nothing is open yet. */
#ifndef LR_VIEWER_START_LIST_H
#define LR_VIEWER_START_LIST_H

#include <stdbool.h>

enum { START_MOST = 64, START_NAME = 80 };

struct start_row {
    const char *preset;
    char name[START_NAME]; /* the scanner's own */
    int num_modules, num_crystals;
    double diameter_mm, length_mm; /* between the nearest front faces; along the axis */
    double tof_ps;                 /* resolution; 0 = none */
};

struct start_list {
    bool is_read;
    int count;
    struct start_row rows[START_MOST];
};

/* Reads the presets, some milliseconds for all of them. Those that cannot be read are left out. */
void start_list_read(struct start_list *list);

#endif
