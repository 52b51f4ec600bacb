/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What is open, and what of it is shown in the scene. */
#ifndef LR_VIEWER_STUDY_TOOL_H
#define LR_VIEWER_STUDY_TOOL_H

struct app;

void study_tool_panel(struct app *app);

#endif
