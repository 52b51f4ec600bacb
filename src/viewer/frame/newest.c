/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/newest.h"

void newest_init(struct newest *newest, const struct newest_kind *kind)
{
    *newest = (struct newest){.kind = kind};
    job_init(&newest->job);
}

static void discard(struct newest *newest, void **task)
{
    if (*task != NULL) {
        newest->kind->destroy(*task);
        *task = NULL;
    }
}

void newest_finish(struct newest *newest)
{
    job_finish(&newest->job);
    discard(newest, &newest->running);
    discard(newest, &newest->waiting);
    discard(newest, &newest->current);
}

/* Puts away what has ended. */
static void collect(struct newest *newest, enum job_state state)
{
    if (newest->running == NULL || state == JOB_RUNNING) return;
    job_get_report(&newest->job, &newest->report);
    if (state == JOB_DONE) {
        discard(newest, &newest->current);
        newest->current = newest->running;
        newest->running = NULL;
        newest->serial++;
    }
    discard(newest, &newest->running);
}

static void start_waiting(struct newest *newest)
{
    if (newest->running != NULL || newest->waiting == NULL) return;
    newest->running = newest->waiting;
    newest->waiting = NULL;
    const struct job_params params = {newest->kind->run, newest->running, newest->kind->what};
    (void)job_start(&newest->job, &params); /* the next poll sees what fails */
}

void newest_ask(struct newest *newest, void *task)
{
    discard(newest, &newest->waiting);
    newest->waiting = task;
    if (newest->running != NULL)
        job_cancel(&newest->job);
    else
        start_waiting(newest);
}

enum job_state newest_poll(struct newest *newest, struct job_report *report)
{
    collect(newest, job_poll(&newest->job));
    start_waiting(newest);
    if (newest->running != NULL) {
        job_get_report(&newest->job, &newest->report);
        newest->report.state = JOB_RUNNING; /* until it is collected */
    }
    if (report != NULL) *report = newest->report;
    return newest->report.state;
}

enum job_state newest_wait(struct newest *newest, struct job_report *report)
{
    while (newest_poll(newest, report) == JOB_RUNNING) (void)job_wait(&newest->job);
    return newest->report.state;
}

void newest_cancel(struct newest *newest)
{
    discard(newest, &newest->waiting);
    job_cancel(&newest->job);
}

void *newest_current(const struct newest *newest)
{
    return newest->current;
}

int64_t newest_serial(const struct newest *newest)
{
    return newest->serial;
}
