/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * However quickly tasks are requested, the newest is run and most others are skipped. Tasks end when the test allows
 * it, so that the test does not depend on the machine's speed. */
#include "waits.h"

#include "base/log.h"

#include <stdatomic.h>

/* Variables that the tasks share with the test. */
static atomic_bool may_end;
static atomic_int runs, living;

struct task {
    int number;
    bool is_deaf, fails;
};

static lr_status run(void *self, const lr_log *log, const lr_progress *progress)
{
    const struct task *task = self;
    runs++;
    while (!may_end) {
        if (!task->is_deaf) LR_TRY(lr_progress_report(progress, "waiting", 0, 1));
        nap();
    }
    return task->fails ? lr_error(log, LR_FAILED, "task %d fails", task->number) : LR_OK;
}

static void destroy(void *self)
{
    free(self);
    living--;
}

static void *task_of(struct task task)
{
    struct task *own = malloc(sizeof(*own));
    assert_non_null(own);
    *own = task;
    living++;
    return own;
}

static void begin(struct task_runner *runner)
{
    static const struct task_kind kind = {"a test", run, destroy};
    may_end = false;
    runs = living = 0;
    task_runner_init(runner, &kind);
}

static void finish(struct task_runner *runner)
{
    task_runner_finish(runner);
    assert_int_equal(living, 0);
}

static int current(const struct task_runner *runner)
{
    const struct task *task = runner->result;
    return task != NULL ? task->number : -1;
}

/* A running task that ignores the request to stop delays the others: of 200 tasks only the last one remains. */
static void only_the_newest_waits(void **state)
{
    struct task_runner runner;
    begin(&runner);
    for (int n = 0; n < 200; n++) {
        task_runner_ask(&runner, task_of((struct task){.number = n, .is_deaf = true}));
        assert_ints(task_runner_poll(&runner), JOB_RUNNING, current(&runner), -1);
        assert_true(living <= 2);
    }
    may_end = true;
    assert_ints(task_runner_wait(&runner), JOB_DONE, current(&runner), 199, runs, 2);
    assert_int_equal(runner.serial, 2); /* the first task had run to its end */
    finish(&runner);
}

/* A task that obeys the request to stop is dropped, and the next one begins at once. */
static void what_runs_is_stopped(void **state)
{
    struct task_runner runner;
    begin(&runner);
    task_runner_ask(&runner, task_of((struct task){.number = 1}));
    task_runner_ask(&runner, task_of((struct task){.number = 2}));
    while (runs < 2) assert_int_equal(task_runner_poll(&runner), JOB_RUNNING);
    may_end = true;
    assert_ints(task_runner_wait(&runner), JOB_DONE, current(&runner), 2, runner.serial, 1);
    finish(&runner);
}

static void failures_leave_the_one_before(void **state)
{
    struct task_runner runner;
    begin(&runner);
    may_end = true;
    task_runner_ask(&runner, task_of((struct task){.number = 1}));
    assert_int_equal(task_runner_wait(&runner), JOB_DONE);
    task_runner_ask(&runner, task_of((struct task){.number = 2, .fails = true}));
    assert_int_equal(task_runner_wait(&runner), JOB_FAILED);
    assert_string_equal(runner.report.error, "task 2 fails");
    assert_ints(current(&runner), 1, runner.serial, 1);
    finish(&runner);
}

static void cancelling_drops_what_waits(void **state)
{
    struct task_runner runner;
    begin(&runner);
    task_runner_ask(&runner, task_of((struct task){.number = 1, .is_deaf = true}));
    task_runner_ask(&runner, task_of((struct task){.number = 2}));
    task_runner_cancel(&runner);
    assert_int_equal(living, 1);
    may_end = true;
    (void)task_runner_wait(&runner);
    assert_int_equal(runs, 1);
    /* The runner is finished while one task runs and another one waits. */
    may_end = false;
    task_runner_ask(&runner, task_of((struct task){.number = 3}));
    task_runner_ask(&runner, task_of((struct task){.number = 4}));
    finish(&runner);
}

test_main("viewer_task_runner", cmocka_unit_test(only_the_newest_waits), cmocka_unit_test(what_runs_is_stopped),
          cmocka_unit_test(failures_leave_the_one_before), cmocka_unit_test(cancelling_drops_what_waits))
