/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * While `recon` reads events, a CUDA device already computes the sensitivity. The result equals that of an operator
 * that computes its sensitivity itself. CUDA is replaced by the tests' stand-in, which computes on the processor. */
#include "listmode/cases.h"

#include "cli/recon/early_sensitivity.h"

static lr_lors *lors;
static lr_grid grid;
static struct early_sensitivity early;
static char told[256];

static void hear(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    if (level == LR_LOG_INFO) snprintf(told, sizeof(told), "%s", sentence);
}

static const lr_log hearing = {hear, NULL};

static int set_up(void **state)
{
    lors = lors_from(decagon(&usual_rules));
    grid = lr_grid_centred((const int[3]){14, 13, 5}, (const double[3]){4, 4, 3});
    return 0;
}

/* Params as recon has them before it has read the events. The sensitivity uses a sample of LORs, and its error is
 * reported. */
static lr_listmode_params params_of(const char *backend)
{
    lr_listmode_params params = case_params(lors, &grid, NULL, 0);
    params.tube.fwhm_mm = 5;
    params.sensitivity_lines = 2000;
    params.backend = backend;
    return params;
}

/* Sensitivity of an operator of two events, which uses that of the operator `from`; NULL: it computes its own. */
static double *found_by(lr_operator *from, lr_listmode_info *info)
{
    const lr_event events[2] = {event_of(lors, 0, false), event_of(lors, lors->count / 2, true)};
    lr_listmode_params params = params_of("cuda");
    params.events = events;
    params.count = 2;
    params.sensitivity_of = from;
    return sensitivity_by(&params, info);
}

/* Compares the sensitivity taken from another operator with that of an operator that computes its own. */
static void expect_same(lr_operator *from, lr_listmode_info *taken, lr_listmode_info *own)
{
    const int64_t count = lr_grid_num_voxels(&grid);
    double *found = found_by(from, taken), *expected = found_by(NULL, own);
    assert_true(largest_number(expected, count) > 0);
    assert_memory_equal(found, expected, (size_t)count * sizeof(*found));
}

static void test_taken(void **state)
{
    const lr_listmode_params params = params_of("auto");
    lr_listmode_info own, taken;
    test_log_init(&test_log);
    early_sensitivity_begin(&early, &params, false);
    lr_operator *from = non_null(early_sensitivity_of(&early));
    assert_ptr_equal(early_sensitivity_of(&early), from);
    assert_ok(early_sensitivity_wait(&early, NULL, &hearing));
    assert_says(told, "the sensitivity is from 2000 of");
    told[0] = '\0';
    assert_ok(early_sensitivity_wait(&early, NULL, &hearing));
    assert_string_equal(told, "");
    expect_same(from, &taken, &own);
    assert_int_equal(taken.sensitivity_lines, 2000);
    assert_all(own.sensitivity_error > 0, taken.sensitivity_error == own.sensitivity_error);
    early_sensitivity_finish(&early);
    early_sensitivity_finish(&early);
}

static bool stop(void *user, const char *what, double done, double total)
{
    *(int *)user += 1;
    return false;
}

/* Waiting is cancelled; an operator that needs the sensitivity later computes it and gets the same. */
static void test_stopped(void **state)
{
    const lr_listmode_params params = params_of("cuda");
    int calls = 0;
    const lr_progress progress = {stop, &calls};
    lr_listmode_info own, taken;
    early_sensitivity_begin(&early, &params, false);
    lr_operator *from = non_null(early_sensitivity_of(&early));
    assert_ints(early_sensitivity_wait(&early, &progress, &hearing), LR_CANCELLED, calls, 1);
    early.shown = NULL; /* which would stop the computation again */
    atomic_store(&early.is_unwanted, false);
    expect_same(from, &taken, &own);
    early_sensitivity_finish(&early);
}

static void test_given_up(void **state)
{
    const lr_listmode_params params = params_of("cuda");
    early_sensitivity_begin(&early, &params, false);
    early_sensitivity_give_up(&early);
    assert_false(early.working.is_running);
    early_sensitivity_finish(&early);
    atomic_store(&early.is_unwanted, true); /* set before the device is ready */
    early_sensitivity_begin(&early, &params, false);
    assert_all(early_sensitivity_of(&early) == NULL, atomic_load(&early.total) == 0);
    early_sensitivity_finish(&early);
}

static void test_nothing(void **state)
{
    lr_listmode_params params = params_of("cuda");
    assert_null(early_sensitivity_of(&early)); /* no computation has begun */
    assert_ok(early_sensitivity_wait(&early, NULL, NULL));

    early_sensitivity_begin(&early, &params, true); /* the factors are not known yet */
    assert_null(early_sensitivity_of(&early));
    early_sensitivity_finish(&early);

    params.max_memory_bytes = 1 << 30;
    early_sensitivity_begin(&early, &params, false);
    assert_null(early_sensitivity_of(&early));
    early_sensitivity_finish(&early);

    params = params_of("native");
    early_sensitivity_begin(&early, &params, false);
    assert_false(early.has_begun);
}

case_main("cuda", set_up, CASES(test_taken, test_stopped, test_given_up, test_nothing))
