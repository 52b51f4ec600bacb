/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Work in the background. A job is one thread, watched and stopped from the window's thread; a task runner runs the
 * newest of the tasks that it is asked for, which is how tools compute. */
#ifndef LR_VIEWER_JOB_H
#define LR_VIEWER_JOB_H

#include <lr/log.h>
#include <pthread.h>

enum { JOB_WARNINGS = 8, JOB_SENTENCE = 1024 };

enum job_state { JOB_IDLE = 0, JOB_RUNNING, JOB_DONE, JOB_FAILED, JOB_CANCELLED };

struct job_params {
    lr_status (*run)(void *user, const lr_log *log, const lr_progress *progress);
    void *user;       /* the job's alone while it runs */
    const char *what; /* "opening the scanner": shown until the work reports itself; copied */
};

/* Progress and outcome of a job: a copy. */
struct job_report {
    enum job_state state;
    lr_status status; /* what `run` returned, or why it failed where the log knows better */
    double share;     /* 0 .. 1 */
    char doing[128];
    char error[JOB_SENTENCE]; /* the last; "" = none */
    int num_warnings;         /* ever; the first JOB_WARNINGS are there */
    char warnings[JOB_WARNINGS][JOB_SENTENCE];
};

/* Everything in it is the job's own. The functions below are not called by two threads at once. */
struct job {
    pthread_mutex_t mutex; /* of all that follows */
    pthread_t thread;
    struct job_params params;
    struct job_report report;
    lr_status reason; /* of the last error */
    bool is_cancelled, has_ended, needs_join;
};

/* Must not move in memory until job_finish. */
void job_init(struct job *job);

/* Starts the work on a thread of its own. errors: LR_USAGE while the job runs; LR_FAILED when no
 * thread can be had, which the report says too. */
lr_status job_start(struct job *job, const struct job_params *params);

/* The state alone, and all of it. Neither waits for the work. Once the state is no longer
 * JOB_RUNNING, what the work wrote can be read. */
enum job_state job_poll(struct job *job);
void job_get_report(struct job *job, struct job_report *report);

/* Asks the work to stop: its progress callback returns false from now on. Does not wait. */
void job_cancel(struct job *job);

/* Cancels, waits for the end and frees what the job holds. */
void job_finish(struct job *job);

/* Waits for the end without cancelling: for programs without a window. */
enum job_state job_wait(struct job *job);

/* --- tasks of which only the newest counts --- */

/* A task is an object of the caller's with its inputs, and with its results once it has run. */
struct task_kind {
    const char *what; /* "drawing the correspondence image" */
    lr_status (*run)(void *task, const lr_log *log, const lr_progress *progress);
    void (*destroy)(void *task);
};

/* While one task runs, at most one waits, and a newer one takes its place. */
struct task_runner {
    const struct task_kind *kind;
    struct job job;
    struct job_report report;         /* of the task that runs, else of the last one; as of the last ask or poll */
    void *running, *waiting, *result; /* tasks, owned */
    int64_t serial, taken;            /* counts results so far, and those that task_runner_take has seen */
    bool has_failed;                  /* the last task, and task_runner_take_failure has not seen it */
};

/* Must not move in memory until task_runner_finish. */
void task_runner_init(struct task_runner *runner, const struct task_kind *kind);

/* Cancels, waits, and destroys all tasks. Zero is allowed. */
void task_runner_finish(struct task_runner *runner);

/* Takes a task over. One that runs is asked to stop. Does not wait. */
void task_runner_ask(struct task_runner *runner, void *task);

/* Once a frame: puts a task that has succeeded in place, and starts the one that waits. One that failed leaves the
 * result as it is, and its error in the report. Returns JOB_RUNNING while anything runs or waits. */
enum job_state task_runner_poll(struct task_runner *runner);

/* The same until nothing runs or waits: for programs without a window. */
enum job_state task_runner_wait(struct task_runner *runner);

/* Stops what runs and drops what waits. */
void task_runner_cancel(struct task_runner *runner);

/* True once for each new result, and once for each failure. */
bool task_runner_take(struct task_runner *runner);
bool task_runner_take_failure(struct task_runner *runner);

#endif
