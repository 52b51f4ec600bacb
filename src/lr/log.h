/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_LOG_H
#define LR_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* LR_API marks what the library exports; everything else is hidden. */
#if defined(__GNUC__)
#define LR_API __attribute__((visibility("default")))
/* Lets the compiler check a format string against its arguments. */
#define LR_PRINTF(string, first) __attribute__((format(printf, string, first)))
#else
#define LR_API
#define LR_PRINTF(string, first)
#endif

/* Removes the parentheses from a list: `LR_LIST (a, b)` becomes `a, b`. */
#define LR_LIST(...) __VA_ARGS__

/* Declares a function with parameters in a struct, which may get more fields at its end in a later version:
 *
 *     LR_SIZED(type, result, name, (const type *params, ...), (params, ...));
 *
 * declares `result name(const type *params, ...)`. This function passes the size of the struct in the caller's headers
 * to the library. For a program compiled with older headers, the library sets newer fields to 0. */
#define LR_SIZED(type, result, name, list, names)                                                                      \
    LR_API result name##_sized(size_t bytes, LR_LIST list);                                                            \
    static inline result name list                                                                                     \
    {                                                                                                                  \
        return name##_sized(sizeof(type), LR_LIST names);                                                              \
    }                                                                                                                  \
    LR_API result name##_sized(size_t bytes, LR_LIST list)

#ifdef __cplusplus
extern "C" {
#endif

/* Result of every function that is not a constructor. Constructors return a pointer or NULL. In both cases the error
 * message has already been written to the log. */
typedef enum lr_status {
    LR_OK = 0,
    LR_FAILED,    /* the work could not be done: disk full, out of memory, no convergence */
    LR_USAGE,     /* the caller asked for something that makes no sense: rays = -1 */
    LR_BAD_INPUT, /* a file or array is wrong: truncated, NaN, overlapping modules */
    LR_NO_DEVICE, /* OpenGL or the device is missing or was lost */
    LR_CANCELLED  /* the progress callback asked to stop */
} lr_status;

/* The importance of a message. */
typedef enum lr_log_level { LR_LOG_DEBUG = 0, LR_LOG_INFO, LR_LOG_WARNING, LR_LOG_ERROR } lr_log_level;

/* Receiver of messages.
 *
 * write: called with one complete sentence, no newline at its end. status: for an error, the status of
 *        the function that failed, even if this is a constructor; otherwise LR_OK.
 * threads: `write` may be called from any thread of the library, one call at a time per operator.
 * A NULL `lr_log *` is valid everywhere and silent. */
typedef struct lr_log {
    void (*write)(void *user, lr_log_level level, lr_status status, const char *sentence);
    void *user;
} lr_log;

/* Receiver of progress reports of long work. The receiver can stop the work.
 *
 * report: called from the thread that started the work. what: name of the current step, in lower case without full stop
 *         ("rendering the matrix"); progress: 0 <= done <= total. If report returns false, the work stops with
 *         LR_CANCELLED.
 * A NULL `lr_progress *` is valid everywhere. */
typedef struct lr_progress {
    bool (*report)(void *user, const char *what, double done, double total);
    void *user;
} lr_progress;

/* The words for a status: "done", "failed", "usage", "bad input", "no device", "cancelled". */
LR_API const char *lr_status_name(lr_status status);

/* The sentence of the last error in a call of this thread. The sentence is kept even if the call had no log, or if the
 * error was in a thread of the library. The sentence has a meaning only directly after a call has failed, because a
 * successful call may have tried something that failed. After a call that a progress callback has stopped, the status
 * is LR_CANCELLED. The text lives until the thread's next failure.
 * status: receives the status, LR_OK if nothing has failed yet; may be NULL. Returns "" if nothing has failed yet. */
LR_API const char *lr_last_error(lr_status *status);

/* Version of the library, "major.minor.patch". */
LR_API const char *lr_version(void);

#ifdef __cplusplus
}
#endif

#endif
