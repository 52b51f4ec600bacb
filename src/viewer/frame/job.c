/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/job.h"

#include "base/log.h"

#include <stdio.h>

void job_init(struct job *job)
{
    *job = (struct job){0};
    pthread_mutex_init(&job->mutex, NULL);
}

/* --- on the job's thread --- */

static void write_message(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct job *job = user;
    struct job_report *report = &job->report;
    pthread_mutex_lock(&job->mutex);
    if (level == LR_LOG_ERROR) {
        job->reason = status;
        snprintf(report->error, sizeof(report->error), "%s", sentence);
    } else if (level == LR_LOG_WARNING) {
        if (report->num_warnings < JOB_WARNINGS)
            snprintf(report->warnings[report->num_warnings], JOB_SENTENCE, "%s", sentence);
        report->num_warnings++;
    }
    pthread_mutex_unlock(&job->mutex);
}

static bool note_progress(void *user, const char *what, double done, double total)
{
    struct job *job = user;
    pthread_mutex_lock(&job->mutex);
    const bool goes_on = !job->is_cancelled;
    snprintf(job->report.doing, sizeof(job->report.doing), "%s", what);
    job->report.share = total > 0 ? done / total : 0;
    pthread_mutex_unlock(&job->mutex);
    return goes_on;
}

static void *run_job(void *user)
{
    struct job *job = user;
    const lr_log log = {write_message, job};
    const lr_progress progress = {note_progress, job};
    const lr_status status = job->params.run(job->params.user, &log, &progress);
    pthread_mutex_lock(&job->mutex);
    /* A failed constructor returns only NULL. The status of the last logged error is then more specific. */
    job->report.status = status == LR_FAILED && job->reason != LR_OK ? job->reason : status;
    /* Work that was asked to stop counts as done if it completed before it noticed the request. */
    job->report.state = status == LR_OK ? JOB_DONE : status == LR_CANCELLED ? JOB_CANCELLED : JOB_FAILED;
    job->report.share = status == LR_OK ? 1 : job->report.share;
    job->has_ended = true;
    pthread_mutex_unlock(&job->mutex);
    return NULL;
}

/* --- on the window's thread --- */

/* Joins the job's thread. Waits if the thread has not ended. */
static void join(struct job *job)
{
    if (job->needs_join) {
        pthread_join(job->thread, NULL);
        job->needs_join = false;
    }
}

lr_status job_start(struct job *job, const struct job_params *params)
{
    if (job_poll(job) == JOB_RUNNING) return LR_USAGE;
    job->params = *params;
    job->report = (struct job_report){.state = JOB_RUNNING};
    snprintf(job->report.doing, sizeof(job->report.doing), "%s", params->what ? params->what : "");
    job->is_cancelled = job->has_ended = false;
    job->reason = LR_OK;
    job->params.what = NULL; /* the text may be freed before the job ends */
    if (pthread_create(&job->thread, NULL, run_job, job) != 0) {
        job->report.state = JOB_FAILED;
        job->report.status = LR_FAILED;
        snprintf(job->report.error, JOB_SENTENCE,
                 "the system has no thread left for %s: close other programs and try again",
                 job->report.doing[0] != '\0' ? job->report.doing : "this");
        return LR_FAILED;
    }
    job->needs_join = true;
    return LR_OK;
}

enum job_state job_poll(struct job *job)
{
    pthread_mutex_lock(&job->mutex);
    const enum job_state state = job->report.state;
    const bool has_ended = job->has_ended;
    pthread_mutex_unlock(&job->mutex);
    if (has_ended) join(job);
    return state;
}

void job_get_report(struct job *job, struct job_report *report)
{
    pthread_mutex_lock(&job->mutex);
    *report = job->report;
    pthread_mutex_unlock(&job->mutex);
}

void job_cancel(struct job *job)
{
    pthread_mutex_lock(&job->mutex);
    job->is_cancelled = true;
    pthread_mutex_unlock(&job->mutex);
}

void job_finish(struct job *job)
{
    job_cancel(job);
    join(job);
    pthread_mutex_destroy(&job->mutex);
}

/* --- task runners --- */

void task_runner_init(struct task_runner *runner, const struct task_kind *kind)
{
    *runner = (struct task_runner){.kind = kind};
    job_init(&runner->job);
}

static void discard(struct task_runner *runner, void **task)
{
    if (*task != NULL) {
        runner->kind->destroy(*task);
        *task = NULL;
    }
}

void task_runner_finish(struct task_runner *runner)
{
    if (runner->kind == NULL) return;
    job_finish(&runner->job);
    discard(runner, &runner->running);
    discard(runner, &runner->waiting);
    discard(runner, &runner->result);
}

static void start_waiting(struct task_runner *runner)
{
    if (runner->running != NULL || runner->waiting == NULL) return;
    runner->running = runner->waiting;
    runner->waiting = NULL;
    const struct job_params params = {runner->kind->run, runner->running, runner->kind->what};
    (void)job_start(&runner->job, &params); /* an error appears at the next poll */
}

void task_runner_ask(struct task_runner *runner, void *task)
{
    discard(runner, &runner->waiting);
    runner->waiting = task;
    runner->has_failed = false;
    runner->report.state = JOB_RUNNING; /* the report shows the new task even before the next poll */
    if (runner->running != NULL)
        job_cancel(&runner->job);
    else
        start_waiting(runner);
}

enum job_state task_runner_poll(struct task_runner *runner)
{
    const enum job_state state = job_poll(&runner->job);
    if (runner->running != NULL && state != JOB_RUNNING) {
        job_get_report(&runner->job, &runner->report);
        runner->has_failed = state == JOB_FAILED;
        if (state == JOB_DONE) {
            discard(runner, &runner->result);
            runner->result = runner->running;
            runner->running = NULL;
            runner->serial++;
        }
        discard(runner, &runner->running);
    }
    start_waiting(runner);
    if (runner->running != NULL) {
        job_get_report(&runner->job, &runner->report);
        runner->report.state = JOB_RUNNING; /* a task counts as running until a poll has seen its end */
        runner->has_failed = false;
    }
    return runner->report.state;
}

void task_runner_cancel(struct task_runner *runner)
{
    discard(runner, &runner->waiting);
    job_cancel(&runner->job);
}

bool task_runner_take(struct task_runner *runner)
{
    const bool is_new = runner->serial != runner->taken;
    runner->taken = runner->serial;
    return is_new;
}

bool task_runner_take_failure(struct task_runner *runner)
{
    const bool has_failed = runner->has_failed;
    runner->has_failed = false;
    return has_failed;
}
