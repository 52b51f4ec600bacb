/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One line of progress for a whole reconstruction: a bar, which iteration and subset it is at, and
 * how long it will take yet. Joins what the algorithm tells of its steps with what the operator tells of
 * its projections within them. */
#ifndef LR_CLI_RUN_BAR_H
#define LR_CLI_RUN_BAR_H

#include "report.h"

/* Must not move. */
struct run_bar {
    struct report *report;
    const char *name;   /* "recon" */
    lr_progress steps;  /* for lr_recon_params */
    lr_progress within; /* for lr_operator_params */
    double before;      /* weight of the sensitivities, 1 = a projection of all LORs */
    double each;        /* of an iteration */
    int iterations, subsets;
    int calls;           /* projections in the step at hand that came to an end; */
    int calls_in_step;   /* of so many */
    double begin, step;  /* weight before the step, and of it; step 0: none has begun */
    double call;         /* share of the projection at hand */
    char what[96];       /* the step */
    double pace_begin_s; /* since when the kind of step at hand is timed, */
    double pace_begin;   /* and the weight then */
    bool iterates;
};

/* name, before, each, iterations and subsets are set by the caller after it. */
void run_bar_init(struct run_bar *bar, struct report *report);

#endif
