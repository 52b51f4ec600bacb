/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Waits for work that the window's thread polls once a frame, and studies with open files. */
#ifndef LR_TESTS_VIEWER_WAITS_H
#define LR_TESTS_VIEWER_WAITS_H

#include "cases.h"

#include "viewer/frame/job.h"
#include "viewer/study/voxel.h"

#include <time.h>

static inline void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static inline enum job_state job_wait(struct job *job)
{
    while (job_poll(job) == JOB_RUNNING) nap();
    return job_poll(job);
}

static inline enum job_state task_runner_wait(struct task_runner *runner)
{
    while (task_runner_poll(runner) == JOB_RUNNING) nap();
    return runner->report.state;
}

static inline enum job_state study_wait(struct study *study, struct job_report *report)
{
    (void)study_poll(study, report);
    while (study_is_busy(study)) {
        nap();
        (void)study_poll(study, report);
    }
    return study_poll(study, report);
}

static inline enum job_state voxel_wait(struct voxel *voxel, struct job_report *report)
{
    while (voxel_poll(voxel, report) == JOB_RUNNING) nap();
    return voxel_poll(voxel, report);
}

/* Opens the files of a wish, and then gives the view the study's new contents. */
static inline void study_reopen(struct study *study, struct study_view *view, const struct study_wish *wish)
{
    struct job_report report;
    assert_int_equal(study_open(study, wish), LR_OK);
    if (study_wait(study, &report) != JOB_DONE) fail_msg("%s", report.error);
    study_view_release(view);
    *view = study_take(study);
}

static inline struct study *study_opened(struct study_view *view, const struct study_wish *wish)
{
    struct study *study = study_create(NULL);
    assert_non_null(study);
    *view = (struct study_view){0};
    study_reopen(study, view, wish);
    return study;
}

static inline void study_close(struct study *study, struct study_view *view)
{
    study_view_release(view);
    study_destroy(study);
}

#endif
