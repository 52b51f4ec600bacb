/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Waits for work that the window's thread polls once a frame. */
#ifndef LR_TESTS_VIEWER_WAITS_H
#define LR_TESTS_VIEWER_WAITS_H

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

#endif
