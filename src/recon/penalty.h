/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What is subtracted from the log-likelihood, and the preconditioner of its ascent. Source: Ahn and
 * Fessler, Globally Convergent Image Reconstruction for Emission Tomography Using Relaxed Ordered
 * Subsets Algorithms, IEEE Trans. Med. Imag. 22 (2003). docs/method/priors.md. */
#ifndef LR_RECON_PENALTY_H
#define LR_RECON_PENALTY_H

#include <lr/recon.h>

/* Images that a penalty holds at the place of the reconstruction. */
enum { LR_PENALTY_VECTORS = 2 };

struct lr_penalty {
    const lr_rdp *prior; /* NULL = none */
    const lr_log *log;
    lr_relative_differences differences; /* except for what is found, and of what */
    lr_vector sensitivity;               /* [num_voxels] on the host: of all subsets */
    lr_vector kappa;                     /* [num_voxels]; zero where there is none */
    lr_vector scale; /* [num_voxels] subsets / (sensitivity + the prior's share); 0 where none sees */
    double floor;    /* of what voxels count for in the preconditioner */
};

/* The params are checked. Finish in any case.
 * errors: LR_FAILED if memory runs out. */
lr_status lr_penalty_init(struct lr_penalty *penalty, const lr_recon_params *params, lr_place *place);
void lr_penalty_finish(struct lr_penalty *penalty);

/* sensitivity: of a subset, on the host. */
lr_status lr_penalty_add(struct lr_penalty *penalty, const lr_vector *sensitivity);

/* Call it after the last subset's sensitivity is added. level: the uniform image to start from (lr_find_level). */
lr_status lr_penalty_start(struct lr_penalty *penalty, int num_subsets, double level);

/* beta R of the image; scratch, of the same place, is overwritten. */
lr_status lr_penalty_value(const struct lr_penalty *penalty, const lr_vector *image, lr_vector *scratch, double *value);

/* gradient - share beta dR / dx of the image. */
lr_status lr_penalty_subtract(const struct lr_penalty *penalty, const lr_vector *image, double share,
                              lr_vector *gradient);

/* errors: LR_USAGE for numbers that are negative or not finite. */
lr_status lr_rdp_check(const lr_rdp *prior, int64_t num_voxels, const lr_log *log);

#endif
