/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Work in the background. A job is one thread, which the window's thread watches and stops. A task runner runs the
 * newest requested task; tools compute with it. */
#pragma once

#include <lr/log.h>
#include <pthread.h>

enum { JOB_WARNINGS = 8, JOB_SENTENCE = 1024 };

enum job_state { JOB_IDLE = 0, JOB_RUNNING, JOB_DONE, JOB_FAILED, JOB_CANCELLED };

struct job_params {
    lr_status (*run)(void *user, const lr_log *log, const lr_progress *progress);
    void *user;       /* while the job runs, only the job uses this */
    const char *what; /* shown until the work reports progress, for example "opening the scanner"; copied */
};

/* A copy of the progress and outcome of a job. */
struct job_report {
    enum job_state state;
    lr_status status; /* return value of `run`, or the log's reason if it is more specific */
    double share;     /* 0 .. 1 */
    char doing[128];
    char error[JOB_SENTENCE]; /* the last error; "" = none */
    int num_warnings;         /* number of all warnings; only the first JOB_WARNINGS are kept */
    char warnings[JOB_WARNINGS][JOB_SENTENCE];
};

/* All members are private. The functions below must not be called by two threads at the same time. */
struct job {
    pthread_mutex_t mutex; /* protects all members below */
    pthread_t thread;
    struct job_params params;
    struct job_report report;
    lr_status reason; /* status of the last error */
    bool is_cancelled, has_ended, needs_join;
};

/* The struct must not move in memory until job_finish. */
void job_init(struct job *job);

/* Starts the work on a new thread. errors: LR_USAGE if the job is running; LR_FAILED, also in the report, if no thread
 * can be created. */
lr_status job_start(struct job *job, const struct job_params *params);

/* job_poll returns the job's state, and job_get_report copies the full report. Neither function waits for the work. The
 * results of the work may be read once the state is not JOB_RUNNING. */
enum job_state job_poll(struct job *job);
void job_get_report(struct job *job, struct job_report *report);

/* Asks the work to stop: its progress callback returns false from now on. Does not wait. */
void job_cancel(struct job *job);

/* Cancels, waits for the end and frees what the job holds. */
void job_finish(struct job *job);

/* --- task runners --- */

/* A task is an object that the caller defines. The task holds the inputs and, after it has run, the results. */
struct task_kind {
    const char *what; /* shown until the task reports progress, for example "drawing the correspondence image" */
    lr_status (*run)(void *task, const lr_log *log, const lr_progress *progress);
    void (*destroy)(void *task);
};

/* While one task runs, at most one other waits; a newer task replaces the waiting one. */
struct task_runner {
    const struct task_kind *kind;
    struct job job;
    struct job_report report;         /* report of the running task, otherwise of the last task; updated when a task
                                       * is requested and at each poll */
    void *running, *waiting, *result; /* owned tasks; result: the newest one, valid until the next poll; NULL = none */
    int64_t serial, taken;            /* number of results so far, and how many of them task_runner_take has reported */
    bool has_failed;                  /* the last task failed, and task_runner_take_failure has not reported it yet */
};

/* The struct must not move in memory until task_runner_finish. */
void task_runner_init(struct task_runner *runner, const struct task_kind *kind);

/* Cancels, waits, and destroys all tasks. A zero struct is allowed. */
void task_runner_finish(struct task_runner *runner);

/* Takes ownership of a task and runs it as soon as possible. A running task is asked to stop. Does not wait. */
void task_runner_ask(struct task_runner *runner, void *task);

/* Called once a frame: makes a finished task the result and starts the waiting one. A failed task leaves the result
 * unchanged; its error is in the report. Returns JOB_RUNNING while a task runs or waits. */
enum job_state task_runner_poll(struct task_runner *runner);

/* Stops the running task and drops the waiting one. */
void task_runner_cancel(struct task_runner *runner);

/* task_runner_take returns true once for each new result. task_runner_take_failure returns true once for each
 * failure. */
bool task_runner_take(struct task_runner *runner);
bool task_runner_take_failure(struct task_runner *runner);
