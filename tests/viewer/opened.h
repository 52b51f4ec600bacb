/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Studies with open files. */
#ifndef LR_TESTS_VIEWER_OPENED_H
#define LR_TESTS_VIEWER_OPENED_H

#include "cases.h"

#include "waits.h"

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
