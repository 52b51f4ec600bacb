/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_RECON_H
#define LR_RECON_H

#include <lr/factors.h>
#include <lr/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum-likelihood expectation maximisation (Shepp and Vardi 1982; the cluster paper's
 * equation 3), with an additive term b:
 *
 *     x <- x / (A^T 1) * A^T ( y / (A x + b) )
 *
 * Images count emissions per voxel during the acquisition. */

/* What one iteration did. With one subset, all sums are over all LORs and the log-likelihood
 * sum y ln(yhat + b) - (yhat + b) is that of the image before its update. With more, each subset
 * adds its LORs' part, estimated from the image before that subset's update: the log-likelihood
 * then belongs to the images that the iteration went through, not to any one of them (one more
 * iteration of lr_mlem from an image tells its own). */
typedef struct lr_iteration {
    int number; /* from 1 */
    double log_likelihood;
    double measured_counts;  /* sum of y over LORs with yhat + b > 0 */
    double estimated_counts; /* sum of yhat + b */
    int64_t left_out_lors;   /* y > 0 where yhat + b = 0 */
    double left_out_counts;
    double sensitive_counts; /* sum over subsets and voxels of the subset's sensitivity * x after
                                its update; = measured_counts where b = 0 */
    double seconds;
    const float *image; /* [num_voxels] after the last update; lives during the call. NULL where it
                           is kept on the device (lr_osem_params.keeps_image) */
} lr_iteration;

typedef struct lr_mlem_params {
    lr_operator *op;             /* required */
    const lr_lor_data *data;     /* required; y >= 0 */
    const lr_lor_data *additive; /* b >= 0; NULL = none */
    const float *initial;        /* [num_voxels]; NULL = ones where the sensitivity is positive */
    int iterations;              /* 0 = 10 */
    lr_status (*iteration)(void *user, const lr_iteration *done); /* after each; may be NULL */
    void *user;
    const lr_log *log;
    const lr_progress *progress;
} lr_mlem_params;

/* lr_osem with one subset.
 *
 * image: [num_voxels], overwritten; on LR_CANCELLED it holds the last finished iteration.
 * errors: LR_BAD_INPUT for negative or non-finite data; LR_USAGE for sizes that do not match. */
LR_API lr_status lr_mlem(const lr_mlem_params *params, float *image);

/* Ordered subsets of the same (Hudson and Larkin 1994): the update above with the LORs of one
 * subset after the other, each with its own sensitivity. A subset is a set of whole module pairs;
 * subsets are balanced: LORs and directions are spread evenly. One subset gives ML-EM.
 *
 * Voxels that a subset does not see keep their value in it. A subset whose counts the image does
 * not reach, or that has none, is passed over, with a warning.
 *
 * With sparse data nothing as long as all LORs is held: estimates are computed where counts are,
 * and only the sensitivities visit every LOR, once. With dense data an array as long as the
 * largest subset is held, and a second one with an additive source, which is asked in every
 * iteration. */
typedef struct lr_osem_params {
    lr_operator *op;               /* required */
    const lr_lor_data *data;       /* required; y >= 0, sparse or dense */
    const lr_lor_data *additive;   /* b >= 0; NULL = none, or: */
    lr_lor_source additive_source; /* b >= 0 where additive is NULL; get == NULL = none */
    double additive_sum;           /* of additive_source over all LORs in coincidence; 0 = it is
                                      summed up, which visits every LOR once. Unused with dense
                                      data */
    const float *initial;          /* as in lr_mlem_params */
    int iterations;                /* 0 = 3 */
    int subsets;                   /* 0 = 1 */
    bool keeps_image; /* where lr_operator_keeps_images, the image changes on the device and is
                         copied to the host at the end alone. Slots 0 .. subsets of the operator
                         are used: 0 has the image, also during `iteration` */
    lr_status (*iteration)(void *user, const lr_iteration *done); /* after all subsets */
    void *user;
    const lr_log *log;
    const lr_progress *progress;
} lr_osem_params;

/* image: [num_voxels], overwritten; on LR_CANCELLED it holds the last finished subset. progress is
 * asked before each subset, in iterations done of all.
 * errors: as lr_mlem; LR_USAGE for more subsets than module pairs or an additive term of both
 * kinds; LR_BAD_INPUT when no counts are reached in a whole iteration. */
LR_API lr_status lr_osem(const lr_osem_params *params, float *image);

/* Subset of each module pair: subset_of[lors->num_pairs], 0 .. subsets-1. The same in every run.
 * Neighbouring subsets see from neighbouring directions; lr_osem visits them in the order of their
 * numbers' bits read backwards: 0 4 2 6 1 5 3 for seven. docs/method.md, section 6, says how they
 * are made. Views of histo-images go to the subsets in turn: view k to subset k mod subsets.
 * errors: LR_USAGE for fewer than 1 or more than num_pairs subsets; LR_FAILED without
 * memory. */
LR_API lr_status lr_osem_subsets(const lr_lors *lors, int subsets, int32_t *subset_of);

#ifdef __cplusplus
}
#endif

#endif
