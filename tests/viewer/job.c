/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Background jobs: what the caller can see of their state, and that no call blocks the caller. */
#include "waits.h"

#include "base/log.h"

#include <stdatomic.h>

/* Work that continues until the test lets it end, or until it is stopped. */
struct work {
    atomic_bool may_end, is_deaf;
    atomic_int steps;
    lr_status result;
    int num_warnings;
};

static lr_status work(void *user, const lr_log *log, const lr_progress *progress)
{
    struct work *w = user;
    for (int n = 0; n < w->num_warnings; n++) lr_warn(log, "warning %d", n);
    while (!w->may_end) {
        w->steps++;
        if (!w->is_deaf) LR_TRY(lr_progress_report(progress, "walking", 1, 4));
        nap();
    }
    return w->result == LR_OK ? LR_OK : lr_error(log, w->result, "it went wrong at step 7");
}

static void start(struct job *job, struct work *w)
{
    const struct job_params params = {.run = work, .user = w, .what = "starting"};
    assert_ok(job_start(job, &params));
}

static void an_idle_job_can_be_asked_and_finished(void **state)
{
    struct job job;
    job_init(&job);
    assert_ints(job_poll(&job), JOB_IDLE, job_wait(&job), JOB_IDLE);
    job_cancel(&job);
    job_finish(&job);
}

static void progress_is_seen_while_it_runs(void **state)
{
    struct job job;
    struct work w = {0};
    struct job_report report;
    job_init(&job);
    start(&job, &w);
    while (w.steps < 2) nap();
    job_get_report(&job, &report);
    assert_int_equal(report.state, JOB_RUNNING);
    assert_string_equal(report.doing, "walking");
    assert_true(report.share == 0.25);
    assert_int_equal(job_start(&job, &(struct job_params){work, &w, "again"}), LR_USAGE);
    w.may_end = true;
    assert_int_equal(job_wait(&job), JOB_DONE);
    job_get_report(&job, &report);
    assert_true(report.share == 1.0);
    assert_string_equal(report.error, "");
    job_finish(&job);
}

static void errors_and_warnings_stay(void **state)
{
    struct job job;
    struct work w = {.may_end = true, .result = LR_BAD_INPUT, .num_warnings = JOB_WARNINGS + 3};
    struct job_report report;
    job_init(&job);
    start(&job, &w);
    assert_int_equal(job_wait(&job), JOB_FAILED);
    job_get_report(&job, &report);
    assert_int_equal(report.status, LR_BAD_INPUT);
    assert_string_equal(report.error, "it went wrong at step 7");
    assert_int_equal(report.num_warnings, JOB_WARNINGS + 3);
    assert_string_equal(report.warnings[JOB_WARNINGS - 1], "warning 7");
    /* The next start clears the error and the warnings. */
    w.result = LR_OK;
    w.num_warnings = 0;
    start(&job, &w);
    assert_int_equal(job_wait(&job), JOB_DONE);
    job_get_report(&job, &report);
    assert_string_equal(report.error, "");
    assert_int_equal(report.num_warnings, 0);
    job_finish(&job);
}

/* job_cancel and job_poll return at once: this work ends only after both calls have returned. */
static void cancelling_does_not_wait(void **state)
{
    struct job job;
    struct work w = {.is_deaf = true};
    job_init(&job);
    start(&job, &w);
    while (w.steps < 1) nap();
    job_cancel(&job);
    assert_int_equal(job_poll(&job), JOB_RUNNING);
    w.is_deaf = false;
    assert_int_equal(job_wait(&job), JOB_CANCELLED);
    /* The job can be started again; the earlier cancellation has no effect on the new work. */
    w.steps = 0;
    start(&job, &w);
    while (w.steps < 3) nap();
    assert_int_equal(job_poll(&job), JOB_RUNNING);
    job_finish(&job); /* stops it */
}

/* Work that neither reports progress nor checks for cancellation ends as done, even if it was cancelled. */
static lr_status deaf(void *user, const lr_log *log, const lr_progress *progress)
{
    nap();
    *(int *)user += 1;
    return LR_OK;
}

static void deaf_work_is_done(void **state)
{
    struct job job;
    int count = 0;
    job_init(&job);
    for (int n = 0; n < 50; n++) {
        assert_ok(job_start(&job, &(struct job_params){deaf, &count, NULL}));
        job_cancel(&job);
        assert_int_equal(job_wait(&job), JOB_DONE);
    }
    assert_int_equal(count, 50);
    job_finish(&job);
}

test_main("viewer_job", cmocka_unit_test(an_idle_job_can_be_asked_and_finished),
          cmocka_unit_test(progress_is_seen_while_it_runs), cmocka_unit_test(errors_and_warnings_stay),
          cmocka_unit_test(cancelling_does_not_wait), cmocka_unit_test(deaf_work_is_done))
