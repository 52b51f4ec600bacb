/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Steps for the viewer from a file, one a line; docs/guide/viewer-scripts.md lists them. Words are
 * parted by blanks; "..." holds blanks; what follows # is not read. */
#ifndef LR_VIEWER_SCRIPT_H
#define LR_VIEWER_SCRIPT_H

#include <lr/log.h>
#include <stdbool.h>

struct app;
struct script;

/* Reads the steps.
 * errors: NULL; LR_BAD_INPUT with the file and line of a step that does not exist or has other
 * words than it takes. */
struct script *script_read(const char *path, const lr_log *log);
void script_destroy(struct script *script); /* NULL is allowed */

/* Before a frame: does the steps that are due. A step that waits is asked again before the next
 * frame. After the last one, and after a step that failed, the viewer ends. */
lr_status script_run(struct script *script, struct app *app);

#endif
