/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The progress bar of a reconstruction from list mode: its weights are numbers of lines. */
#include "cases.h"
#include "cli/report.h"

enum { EVENTS = 500, ITERATIONS = 3, SUBSETS = 2 };

static void test_lines_and_events_have_one_unit(void **state)
{
    struct report report = {.quiet = true};
    struct run_bar bar;
    run_bar_init(&bar, &report);
    bar.name = "recon";
    bar.of_lines = true;
    bar.before = 1;
    bar.each = 2 * EVENTS;
    bar.iterations = ITERATIONS;
    bar.subsets = SUBSETS;
    const lr_progress *steps = &bar.steps, *within = &bar.within;
    assert_true(steps->report(steps->user, "sensitivity of subset 1 of 2", 0, SUBSETS));
    assert_true(within->report(within->user, "sensitivity", 0, 700)); /* the number of lines is not known yet */
    assert_true(within->report(within->user, "sensitivity", 250, 1000));
    assert_true(bar.before == 1000 && bar.begin + bar.step * bar.call == 250);

    /* The sensitivity of the other subset is the same one. */
    assert_true(steps->report(steps->user, "sensitivity of subset 2 of 2", 1, SUBSETS));
    assert_true(bar.begin == 1000);

    /* Iteration 2 begins after the lines of the sensitivity, and the events of a forward and a back projection. */
    assert_true(steps->report(steps->user, "iteration 2 of 3, subset 1 of 2", 1, ITERATIONS));
    assert_true(bar.begin == 1000 + 2 * EVENTS && bar.step == 2.0 * EVENTS / SUBSETS);
}

test_main("cli: weights", CASE(test_lines_and_events_have_one_unit))
