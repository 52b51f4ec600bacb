/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Background work of which only the newest counts: while one task runs, at most one waits, and a
 * newer one takes its place. */
#ifndef LR_VIEWER_NEWEST_H
#define LR_VIEWER_NEWEST_H

#include "viewer/frame/job.h"

/* What a task is: an object of the caller's with its inputs, and its results when it has run. */
struct newest_kind {
    const char *what; /* "drawing the correspondence image" */
    lr_status (*run)(void *task, const lr_log *log, const lr_progress *progress);
    void (*destroy)(void *task);
};

struct newest {
    const struct newest_kind *kind;
    struct job job;
    struct job_report report; /* of the last task that ended, or of the one that runs */
    void *running, *waiting, *current;
    int64_t serial;
};

/* Must not move in memory until newest_finish. */
void newest_init(struct newest *newest, const struct newest_kind *kind);

/* Cancels, waits, and destroys all tasks. */
void newest_finish(struct newest *newest);

/* Takes a task over. One that runs is asked to stop. Does not wait. */
void newest_ask(struct newest *newest, void *task);

/* To be called once a frame: puts a task that has succeeded in place, and starts the one that
 * waits. One that failed leaves the current one where it is, and its error in the report. Returns
 * JOB_RUNNING while anything runs or waits. report may be NULL. */
enum job_state newest_poll(struct newest *newest, struct job_report *report);

/* The same until nothing runs or waits: for programs without a window. */
enum job_state newest_wait(struct newest *newest, struct job_report *report);

/* Stops what runs and drops what waits. */
void newest_cancel(struct newest *newest);

/* The last task that succeeded, until the next poll; NULL = none. */
void *newest_current(const struct newest *newest);

/* Counts the tasks that have been put in place. */
int64_t newest_serial(const struct newest *newest);

#endif
