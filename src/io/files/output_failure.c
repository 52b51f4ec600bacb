/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#define _XOPEN_SOURCE 700 /* strerror_r */
#include "io/files/output.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *lr_error_text(int error, char text[128])
{
    if (strerror_r(error, text, 128) != 0) snprintf(text, 128, "system error %d", error);
    return text;
}

lr_status lr_output_fail(struct lr_output *output, int error)
{
    if (output->error != 0) return LR_FAILED;
    output->error = error != 0 ? error : EIO;
    const bool leaves = output->stays || output->source_stays;
    const char *path = output->path, *rest = leaves ? "" : "; nothing was left behind";
    char text[128];
    switch (output->error) {
    case ENOSPC:
        return lr_error(output->log, LR_FAILED,
                        "cannot write %s: the disk is full: free some space there or choose "
                        "another place%s",
                        path, rest);
    case EDQUOT:
        return lr_error(output->log, LR_FAILED,
                        "cannot write %s: your disk quota is used up: free some space or choose "
                        "another place%s",
                        path, rest);
    case EFBIG:
        return lr_error(output->log, LR_FAILED,
                        "cannot write %s: it grew beyond the largest file allowed here (ulimit -f, "
                        "or the file system): raise the limit or choose another place%s",
                        path, rest);
    default: return lr_error(output->log, LR_FAILED, "cannot write %s: %s", path, lr_error_text(output->error, text));
    }
}
