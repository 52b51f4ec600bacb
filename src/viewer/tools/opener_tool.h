/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The dialog that opens files: one folder at a time, and what is chosen in it. */
#ifndef LR_VIEWER_OPENER_TOOL_H
#define LR_VIEWER_OPENER_TOOL_H

#include <lr/log.h>
#include <stdbool.h>

struct app;

enum { OPENER_PATH = 1024, OPENER_NAME = 256, OPENER_MOST = 4096 };

enum opener_kind {
    OPENER_ANY = 0, /* what the file itself says */
    OPENER_SCANNER,
    OPENER_IMAGE,
    OPENER_MU,
    OPENER_DATA,
    OPENER_NUM_KINDS
};

struct opener_entry {
    char name[OPENER_NAME];
    bool is_folder;
};

struct opener_tool {
    bool is_shown;
    char folder[OPENER_PATH];     /* that is listed; "" before the first time */
    char path[OPENER_PATH];       /* typed, or of the entry that was pressed */
    int kind;                     /* enum opener_kind */
    struct opener_entry *entries; /* owned: folders first, each by name; without hidden ones */
    int count;
    char error[OPENER_PATH + 128]; /* of the last step; "" = none */
};

void opener_tool_finish(struct opener_tool *opener); /* zero is allowed */

void opener_tool_panel(struct app *app);

#endif
