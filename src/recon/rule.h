/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Update rules: what EM, RAMLA and BSREM do differently in the loop of recon.c. A rule keeps nothing itself. */
#ifndef LR_RECON_RULE_H
#define LR_RECON_RULE_H

#include "recon/penalty.h"

/* An update by one subset. Vectors: [num_voxels], of one place. */
struct lr_update_step {
    const lr_recon_params *params;
    int iteration; /* from 0, those before included */
    double scale;  /* what the rule's start found for this subset; of own steps the largest */
    int num_subsets;
    const struct lr_penalty *penalty; /* of rules that are penalised */
    const lr_vector *image;           /* x */
    const lr_vector *ratios;          /* A^T (y / (A x + b)) over the subset */
    const lr_vector *sensitivity;     /* A^T 1 over the subset */
    const lr_vector *own_scale;       /* of each voxel, where steps are its own; else NULL */
    lr_vector *next;                  /* x after the update; may be the ratios */
};

struct lr_update_rule {
    const char *name;   /* in sentences */
    bool is_penalised;  /* needs a penalty, which the loop makes; no backend does its updates whole */
    const char *remedy; /* what to do where voxels grow beyond the largest number */
    /* errors: LR_USAGE for params that the rule has not, or that are out of range. */
    lr_status (*check)(const lr_recon_params *params);
    /* Finds what it needs of a subset, once; NULL = nothing. */
    lr_status (*start)(const lr_vector *sensitivity, double *scale);
    lr_status (*update)(const struct lr_update_step *step);
    /* The step length, of which no vector is needed; NULL = there is none. */
    double (*lambda)(const struct lr_update_step *step);
    /* The most that the image's sum can be after the update of an image with the sum `total` by a subset with so
     * many counts, whatever they are; NULL = there is no such bound. No vector is needed. */
    double (*most)(const struct lr_update_step *step, double total, double counts);
};

extern const struct lr_update_rule lr_rule_em, lr_rule_ramla, lr_rule_bsrem;

/* --- checking a request --- */

#endif
