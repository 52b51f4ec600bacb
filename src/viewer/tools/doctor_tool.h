/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the geometry doctor found, on the modules it concerns; also of a scanner that could not be
 * opened. */
#ifndef LR_VIEWER_DOCTOR_TOOL_H
#define LR_VIEWER_DOCTOR_TOOL_H

#include <lr/doctor.h>
#include <lr/scanner.h>

struct app;

struct doctor_tool {
    const lr_diagnosis *diagnosis; /* the study's: of what is open, or was refused; NULL = none */
    lr_scanner refused;            /* as a file describes it: modules and first_crystal are owned */
    int chosen;                    /* finding; -1: all */
};

void doctor_tool_close(struct app *app);

/* With what is open now: looks at the scene's modules, or at those of a refused file. */
lr_status doctor_tool_take_study(struct app *app);

void doctor_tool_panel(struct app *app);

#endif
