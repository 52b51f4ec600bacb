/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Messages, and the last error of each thread. */
#include "base/log.h"

#include "base/clean_text.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* --- the last error of each thread --- */

static _Thread_local struct lr_thread_errors here = {.own = {.mutex = PTHREAD_MUTEX_INITIALIZER}};

static struct lr_thread_errors *find_here(void)
{
    return &here;
}

static _Atomic(lr_thread_errors_fn *) other; /* NULL: this copy of log.c keeps errors itself */

lr_thread_errors_fn *lr_errors_in_use(void)
{
    lr_thread_errors_fn *find = atomic_load(&other);
    return find != NULL ? find : find_here;
}

void lr_errors_use(lr_thread_errors_fn *find)
{
    atomic_store(&other, find);
}

struct lr_error_record *lr_errors_record(void)
{
    struct lr_thread_errors *errors = lr_errors_in_use()();
    return errors->employer != NULL ? errors->employer : &errors->own;
}

void lr_errors_work_for(struct lr_error_record *employer)
{
    lr_errors_in_use()()->employer = employer;
}

static void keep(lr_status status, const char *sentence)
{
    struct lr_error_record *record = lr_errors_record();
    pthread_mutex_lock(&record->mutex);
    record->status = status;
    snprintf(record->sentence, sizeof(record->sentence), "%s", sentence);
    pthread_mutex_unlock(&record->mutex);
}

const char *lr_last_error(lr_status *status)
{
    const struct lr_error_record *record = lr_errors_record();
    if (status != NULL) *status = record->status;
    return record->sentence;
}

/* --- messages --- */

static void write_formatted(const lr_log *log, lr_log_level level, lr_status status, const char *format,
                            va_list arguments)
{
    const bool is_heard = log != NULL && log->write != NULL;
    if (!is_heard && level != LR_LOG_ERROR) return;
    char sentence[LR_SENTENCE_BYTES];
    if (vsnprintf(sentence, sizeof(sentence), format, arguments) < 0)
        snprintf(sentence, sizeof(sentence), "%s", format);
    lr_clean_text_but(sentence, "\n\t"); /* texts from files must not control terminals */
    if (level == LR_LOG_ERROR) keep(status, sentence);
    if (is_heard) log->write(log->user, level, status, sentence);
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

static void write_named(void *user, lr_log_level level, lr_status status, const char *message)
{
    /* The search leaves out the ending of the path, because a message about the header scan.mhd may name its data file
     * scan.raw. A dot must follow, so that the "a" of a.mhd is not found in a word. */
    const struct lr_named_log *named = user;
    const char *path = named->path, *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    const bool has_ending = dot != NULL && dot > path && (slash == NULL || dot > slash + 1);
    char stem[1024];
    snprintf(stem, sizeof(stem), "%.*s", has_ending ? (int)(dot - path) + 1 : (int)strlen(path), path);
    const bool is_named = level < LR_LOG_WARNING || strstr(message, stem) != NULL;
    lr_log_write(named->to, level, status, "%s%s%s", is_named ? "" : path, is_named ? "" : ": ", message);
}

void lr_log_name(struct lr_named_log *named, const char *path, const lr_log *to)
{
    *named = (struct lr_named_log){{write_named, named}, to, path != NULL ? path : ""};
}

static void write_watched(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct lr_watched_log *watch = user;
    if (level == LR_LOG_ERROR) watch->status = status;
    lr_log_write(watch->to, level, status, "%s", sentence);
}

void lr_log_watch(struct lr_watched_log *watch, const lr_log *to)
{
    *watch = (struct lr_watched_log){{write_watched, watch}, to, LR_FAILED};
}

static void write_kept(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const struct lr_kept_error *kept = user;
    (void)status;
    if (level == LR_LOG_ERROR) snprintf(kept->text, kept->size, "%s", sentence);
}

void lr_log_keep_error(struct lr_kept_error *kept, char *text, size_t size)
{
    *kept = (struct lr_kept_error){{write_kept, kept}, text, size};
}

lr_status lr_progress_report(const lr_progress *progress, const char *what, double done, double total)
{
    if (progress == NULL || progress->report == NULL) return LR_OK;
    if (progress->report(progress->user, what, done, total)) return LR_OK;
    keep(LR_CANCELLED, "the work was stopped where it reported its progress");
    return LR_CANCELLED;
}

const char *lr_status_name(lr_status status)
{
    switch (status) {
    case LR_OK: return "done";
    case LR_FAILED: return "failed";
    case LR_USAGE: return "usage";
    case LR_BAD_INPUT: return "bad input";
    case LR_NO_DEVICE: return "no device";
    case LR_CANCELLED: return "cancelled";
    }
    return "unknown status";
}

const char *lr_version(void)
{
    return LR_VERSION_STRING;
}
