/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Log messages, errors and progress. */
#ifndef LR_BASE_LOG_H
#define LR_BASE_LOG_H

#include <lr/log.h>
#include <pthread.h>

enum { LR_SENTENCE_BYTES = 1024 };

/* Formats one message and passes it to the log (NULL: dropped). Errors are kept for lr_last_error, too. At most 1,023
 * bytes. */
void lr_log_write(const lr_log *log, lr_log_level level, lr_status status, const char *format, ...) LR_PRINTF(4, 5);

#define lr_debug(log, ...) lr_log_write((log), LR_LOG_DEBUG, LR_OK, __VA_ARGS__)
#define lr_info(log, ...) lr_log_write((log), LR_LOG_INFO, LR_OK, __VA_ARGS__)
#define lr_warn(log, ...) lr_log_write((log), LR_LOG_WARNING, LR_OK, __VA_ARGS__)

/* Logs the message as an error and returns the status:
 * `return lr_error(log, LR_BAD_INPUT, "...")`. */
lr_status lr_error(const lr_log *log, lr_status status, const char *format, ...) LR_PRINTF(3, 4);

/* A log whose warnings and errors name the file that they are about, unless they do so anyway: for
 * readers that hand numbers of a file to code that knows no files. Pass &named.log; lives as long as
 * `to` and `path`. */
struct lr_named_log {
    lr_log log;
    const lr_log *to;
    const char *path;
};
void lr_log_name(struct lr_named_log *named, const char *path, const lr_log *to);

/* A log that keeps the status of the last error, for callers that only see a NULL result. Pass &watch.log. It must
 * outlive every object that has it. */
struct lr_watched_log {
    lr_log log;
    const lr_log *to;
    lr_status status; /* LR_FAILED before the first */
};
void lr_log_watch(struct lr_watched_log *watch, const lr_log *to);

/* --- the last error of each thread --- */

struct lr_error_record {
    pthread_mutex_t mutex; /* several threads that work for one write to its record */
    lr_status status;
    char sentence[LR_SENTENCE_BYTES];
};

struct lr_thread_errors {
    struct lr_error_record own;
    struct lr_error_record *employer; /* record of the thread that this one works for; NULL = none */
};

/* Finds the errors of the calling thread. The library and each plugin have a copy of this file; plugins use the
 * library's function, so that a thread has one record. */
typedef struct lr_thread_errors *lr_thread_errors_fn(void);
lr_thread_errors_fn *lr_errors_in_use(void);

/* Lets this copy find errors by that function from now on. */
void lr_errors_use(lr_thread_errors_fn *find);

/* The record to which errors of the calling thread go. */
struct lr_error_record *lr_errors_record(void);

/* From now on the calling thread works for the thread of that record; NULL = for itself. */
void lr_errors_work_for(struct lr_error_record *employer);

/* Returns early from a function of type lr_status. */
#define LR_TRY(call)                                                                                                   \
    do {                                                                                                               \
        const lr_status try_status_ = (call);                                                                          \
        if (try_status_ != LR_OK) return try_status_;                                                                  \
    } while (0)

/* LR_OK, or LR_CANCELLED when the callback asks to stop; lr_last_error then says so. */
lr_status lr_progress_report(const lr_progress *progress, const char *what, double done, double total);

#endif
