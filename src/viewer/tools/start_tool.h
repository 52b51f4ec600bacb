/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a window shows in which nothing is open yet: the scanners there are to choose from. */
#ifndef LR_VIEWER_START_TOOL_H
#define LR_VIEWER_START_TOOL_H

#include <stdbool.h>

struct app;

enum { START_MOST = 64, START_NAME = 80 };

struct start_row {
    const char *preset;
    char name[START_NAME]; /* the scanner's own */
    int num_modules, num_crystals;
    double diameter_mm, length_mm; /* between the nearest front faces; along the axis */
    double tof_ps;                 /* resolution; 0 = none */
};

struct start_tool {
    bool is_read;
    int count;
    struct start_row rows[START_MOST];
};

/* While neither a scanner nor an image is open. */
bool start_tool_is_shown(const struct app *app);
void start_tool_panel(struct app *app);

#endif
