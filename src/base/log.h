/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Log messages, errors and progress; parameters from callers of another version. */
#pragma once

#include <lr/log.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

enum { LR_SENTENCE_BYTES = 1024 };

/* Formats a message, cuts it to 1,023 bytes and passes it to the log, if there is one. An error is also kept for
 * lr_last_error. */
void lr_log_write(const lr_log *log, lr_log_level level, lr_status status, const char *format, ...) LR_PRINTF(4, 5);

#define lr_debug(log, ...) lr_log_write((log), LR_LOG_DEBUG, LR_OK, __VA_ARGS__)
#define lr_info(log, ...) lr_log_write((log), LR_LOG_INFO, LR_OK, __VA_ARGS__)
#define lr_warn(log, ...) lr_log_write((log), LR_LOG_WARNING, LR_OK, __VA_ARGS__)

/* Logs the message as an error and returns the status:
 * `return lr_error(log, LR_BAD_INPUT, "...")`. */
lr_status lr_error(const lr_log *log, lr_status status, const char *format, ...) LR_PRINTF(3, 4);

/* A log that puts a file's name before warnings and errors that do not contain this name. Readers of files pass
 * &named.log to code that checks the numbers of a file but does not know its name. `to` and `path` must outlive this
 * log. */
struct lr_named_log {
    lr_log log;
    const lr_log *to;
    const char *path;
};
void lr_log_name(struct lr_named_log *named, const char *path, const lr_log *to);

/* A log that keeps the status of the last error, for callers that see only a NULL result. Functions get the address
 * of `log`. The struct must outlive every object that keeps this log. */
struct lr_watched_log {
    lr_log log;
    const lr_log *to;
    lr_status status; /* LR_FAILED before the first error */
};
void lr_log_watch(struct lr_watched_log *watch, const lr_log *to);

/* A log that keeps the sentence of the last error, and drops all other messages. Pass &kept.log on. */
struct lr_kept_error {
    lr_log log;
    char *text; /* [size]; unchanged if there is no error */
    size_t size;
};
void lr_log_keep_error(struct lr_kept_error *kept, char *text, size_t size);

/* --- the last error of each thread --- */

struct lr_error_record {
    pthread_mutex_t mutex; /* several threads may work for one thread, and write to its record */
    lr_status status;
    char sentence[LR_SENTENCE_BYTES];
};

struct lr_thread_errors {
    struct lr_error_record own;
    struct lr_error_record *employer; /* record of the thread for which this thread works; NULL = none */
};

/* Finds the errors of the calling thread. The library and each plugin contain a copy of log.c. Plugins use the
 * library's function, so that each thread has only one record. */
typedef struct lr_thread_errors *lr_thread_errors_fn(void);
lr_thread_errors_fn *lr_errors_in_use(void);

/* Makes this copy of log.c use `find` from now on. */
void lr_errors_use(lr_thread_errors_fn *find);

/* Returns the record to which errors of the calling thread go. */
struct lr_error_record *lr_errors_record(void);

/* Makes errors of the calling thread go to the record `employer` of another thread; NULL = to the thread's own
 * record. */
void lr_errors_work_for(struct lr_error_record *employer);

/* Makes the calling function return the status of `call`, unless it is LR_OK. */
#define LR_TRY(call)                                                                                                   \
    do {                                                                                                               \
        const lr_status try_status_ = (call);                                                                          \
        if (try_status_ != LR_OK) return try_status_;                                                                  \
    } while (0)

/* Reports progress to the callback. errors: LR_CANCELLED, noted for lr_last_error, if the callback asks to stop. */
lr_status lr_progress_report(const lr_progress *progress, const char *what, double done, double total);

/* --- parameters from callers whose headers are of another version, with shorter or longer structs --- */

/* Declares `params`, which points to a copy of the caller's parameters. Fields that the caller's headers lack are 0.
 * The copy lives as long as the block in which LR_TAKE stands. */
#define LR_TAKE(type, params, given, bytes)                                                                            \
    type params##_taken = {0};                                                                                         \
    memcpy(&params##_taken, given, (bytes) < sizeof(type) ? (bytes) : sizeof(type));                                   \
    const type *const params = &params##_taken
