/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The dialog that opens files: one folder at a time, and what is chosen in it. */
#ifndef LR_VIEWER_OPENER_H
#define LR_VIEWER_OPENER_H

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
extern const char *const opener_kinds[OPENER_NUM_KINDS]; /* for people */

struct opener_entry {
    char name[OPENER_NAME];
    bool is_folder;
};

struct opener {
    bool is_shown;
    char folder[OPENER_PATH];     /* that is listed; "" before the first time */
    char path[OPENER_PATH];       /* typed, or of the entry that was pressed */
    int kind;                     /* enum opener_kind */
    struct opener_entry *entries; /* owned: folders first, each by name; without hidden ones */
    int count;
    char error[OPENER_PATH + 128]; /* of the last step; "" = none */
};

/* Lists a folder, ".." included; where it cannot be read, `error` says so and the old list stays. */
void opener_list(struct opener *opener, const char *folder);

/* A press on an entry: a folder is listed, a file's path is taken. */
void opener_press(struct opener *opener, int entry);

/* Whether the path is the entry's. */
bool opener_is_chosen(const struct opener *opener, int entry);

/* Goes into the path's folder, or begins to open its file and closes the dialog. */
void opener_go(struct app *app);

void opener_finish(struct opener *opener); /* zero is allowed */

#endif
