/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Curves of a run of recon, by what its --json has told, below those of the live reconstruction. */
#ifndef LR_VIEWER_RECORD_TOOL_H
#define LR_VIEWER_RECORD_TOOL_H

#include "io/sessions/run_record.h"

struct app;

enum { RECORD_PATH = 1024, RECORD_PLACES = 256 };

/* Zero is valid: no record is open. */
struct record_tool {
    struct lr_run_record record; /* owned */
    char path[RECORD_PATH];
    int shown;                                 /* of its images */
    bool by_seconds;                           /* not by iterations */
    float timed[LR_RUN_CURVES][RECORD_PLACES]; /* the curves at like steps of time */
};

/* Turns to the tool Reconstruction, where its curves are. errors: of lr_run_record_read, said to the user
 * too; what was open stays. */
lr_status record_tool_open(struct app *app, const char *path);
void record_tool_close(struct app *app);

/* Of the run's images that one, from 1. errors: LR_USAGE where there is none of that number, said to the user. */
lr_status record_tool_show(struct app *app, int number);

/* Nothing where no record is open. */
void record_tool_panel(struct app *app);

#endif
