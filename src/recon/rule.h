/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Update rules: the parts of the loop in recon.c that differ between EM, RAMLA and BSREM. A rule has no state. */
#pragma once

#include <lr/recon.h>

/* --- the penalty, which is subtracted from the log-likelihood, and the preconditioner of the gradient. Source: Ahn and
 * Fessler, Globally Convergent Image Reconstruction for Emission Tomography Using Relaxed Ordered Subsets Algorithms,
 * IEEE Trans. Med. Imag. 22 (2003). docs/method/priors.md --- */

/* Number of images that a penalty keeps at the place of the reconstruction. */
enum { LR_PENALTY_VECTORS = 2 };

struct lr_penalty {
    const lr_rdp *prior;                 /* NULL = none */
    lr_relative_differences differences; /* all members except `what`, x, y and scale are set */
    lr_vector kappa;                     /* [num_voxels]; zero without a kappa image */
    lr_vector scale; /* [num_voxels] preconditioner: subsets / (sensitivity + the prior's term); 0 for voxels that no
                        LOR sees */
    double floor;    /* the preconditioner replaces lower voxel values by this one */
};

/* params: checked by the caller. The penalty must not move in memory. Call lr_penalty_finish even after an error.
 * errors: LR_FAILED if memory runs out. */
lr_status lr_penalty_init(struct lr_penalty *penalty, const lr_recon_params *params, lr_place *place);
void lr_penalty_finish(struct lr_penalty *penalty);

/* The data from which the preconditioner is made. */
struct lr_penalty_base {
    const lr_vector *sensitivity; /* sensitivity of all subsets, at the penalty's place */
    lr_vector *scratch;           /* [num_voxels] at the same place; overwritten */
    int num_subsets;
    double level; /* value of the uniform start image (lr_find_level) */
    const lr_log *log;
};

/* Makes the preconditioner. Warns if the prior outweighs the data by far, so that the image becomes flat. */
lr_status lr_penalty_start(struct lr_penalty *penalty, const struct lr_penalty_base *base);

/* Computes the penalty beta R(image). scratch: [num_voxels] at the image's place, overwritten. */
lr_status lr_penalty_value(const struct lr_penalty *penalty, const lr_vector *image, lr_vector *scratch, double *value);

/* errors: LR_USAGE for numbers that are negative or not finite. */
lr_status lr_rdp_check(const lr_rdp *prior, int64_t num_voxels, const lr_log *log);

/* An update by one subset. All vectors are at one place and have num_voxels numbers. */
struct lr_update_step {
    const lr_recon_params *params;
    int iteration; /* from 0, including earlier runs */
    double scale;  /* scale that the rule's `start` found for this subset; if voxels have different steps, the scale of
                      the largest step */
    int num_subsets;
    const struct lr_penalty *penalty; /* the penalty, for rules that have one */
    const lr_vector *image;           /* x, the image before the update */
    const lr_vector *ratios;          /* A^T (y / (A x + b)) over the subset */
    const lr_vector *sensitivity;     /* A^T 1 over the subset */
    const lr_vector *own_scale;       /* step of each voxel, if voxels have different steps; else NULL */
    lr_vector *next;                  /* x after the update; may be the ratios */
};

struct lr_update_rule {
    const char *name;   /* name used in messages */
    bool is_penalised;  /* true if its updates subtract a penalty; no backend then does whole updates */
    const char *remedy; /* advice in the error message about voxels that have become too large */
    /* errors: LR_USAGE for params that the rule does not support or that are out of range. */
    lr_status (*check)(const lr_recon_params *params);
    /* Finds the scale of a subset. Called once for each subset. NULL = the rule has none. */
    lr_status (*start)(const lr_vector *sensitivity, double *scale);
    lr_status (*update)(const struct lr_update_step *step);
    /* Returns the step length without reading any vector. NULL = the rule has none. */
    double (*lambda)(const struct lr_update_step *step);
    /* Returns the largest possible sum of an image after an update by a subset with these counts. total: sum before the
     * update. No vector is read. NULL = there is no bound. */
    double (*most)(const struct lr_update_step *step, double total, double counts);
};

extern const struct lr_update_rule lr_rule_em, lr_rule_ramla, lr_rule_bsrem;
