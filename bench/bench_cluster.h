/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What `loraster bench cluster` works on, and what it finds. */
#ifndef LR_BENCH_CLUSTER_H
#define LR_BENCH_CLUSTER_H

#include "cli/cluster.h"

enum cluster_scheme { CLUSTER_EXACT, CLUSTER_PAPER, CLUSTER_DISTRIBUTED, CLUSTER_NUM_SCHEMES };

/* An image on the way. */
struct cluster_step {
    int number; /* iterations of each rank so far */
    double elapsed_s, log_likelihood, image_error;
};

/* Times are means over the ranks. */
struct cluster_outcome {
    enum cluster_scheme scheme;
    double seconds; /* of the slowest rank, sensitivities included */
    double project_s, most_project_s, exchange_s, waiting_s, combine_s;
    double sent_bytes;          /* by a rank */
    double memory_bytes;        /* of the largest rank so far */
    struct cluster_step *steps; /* owned */
    int num_steps;
};

struct cluster_bench {
    struct report *report;
    struct cluster cluster;
    bool schemes[CLUSTER_NUM_SCHEMES], is_weak;
    int iterations, local_iterations, voxels;
    double counts, voxel_mm;
    lr_operator_params params;
    lr_scanner *scanner;
    lr_lors *all, *lors; /* the rank's own */
    int32_t *pairs;      /* [pairs of `all`] the rank's, as `all` numbers them */
    lr_grid grid;
    lr_operator *op;
    lr_lor_data *data;
    lr_image *truth, *image;
    double setup_s, begin_s, noting_s;
    struct cluster_outcome *at_hand;
    struct cluster_outcome outcomes[CLUSTER_NUM_SCHEMES];
    int num_outcomes;
};

#endif
