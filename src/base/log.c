/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static void write_formatted(const lr_log *log, lr_log_level level, lr_status status,
                            const char *format, va_list arguments)
{
    if (log == NULL || log->write == NULL) {
        return;
    }
    char sentence[1024];
    const int length = vsnprintf(sentence, sizeof(sentence), format, arguments);
    log->write(log->user, level, status, length < 0 ? format : sentence);
}

void lr_log_write(const lr_log *log, lr_log_level level, lr_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_formatted(log, level, status, format, arguments);
    va_end(arguments);
}

lr_status lr_error(const lr_log *log, lr_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_formatted(log, LR_LOG_ERROR, status, format, arguments);
    va_end(arguments);
    return status;
}

lr_status lr_progress_report(const lr_progress *progress, const char *what, double done,
                             double total)
{
    if (progress == NULL || progress->report == NULL) {
        return LR_OK;
    }
    return progress->report(progress->user, what, done, total) ? LR_OK : LR_CANCELLED;
}

const char *lr_status_name(lr_status status)
{
    switch (status) {
    case LR_OK:
        return "done";
    case LR_FAILED:
        return "failed";
    case LR_USAGE:
        return "usage";
    case LR_BAD_INPUT:
        return "bad input";
    case LR_NO_DEVICE:
        return "no device";
    case LR_CANCELLED:
        return "cancelled";
    }
    return "unknown status";
}

const char *lr_version(void)
{
    return LR_VERSION_STRING;
}
