/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a person looked at, written to a file and taken up again. */
#ifndef LR_VIEWER_SESSION_TOOL_H
#define LR_VIEWER_SESSION_TOOL_H

#include <lr/log.h>

struct app;

lr_status session_tool_write(struct app *app, const char *path);

/* Begins to open what it names; the rest is taken up when that is there. */
lr_status session_tool_read(struct app *app, const char *path);

/* Once a new study is in place: camera, voxel and ranges of the session that was read. */
void session_tool_take_study(struct app *app);
void session_tool_close(struct app *app);

#endif
