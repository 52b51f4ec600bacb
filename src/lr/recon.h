/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_RECON_H
#define LR_RECON_H

#include <lr/comm.h>
#include <lr/factors.h>
#include <lr/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reconstruction of an image x from measured counts y per LOR, whose expectation is A x + b with an additive term b.
 * Maximum-likelihood expectation maximisation (Shepp and Vardi 1982; the cluster paper's equation 3) is
 *
 *     x <- x / (A^T 1) * A^T ( y / (A x + b) )
 *
 * The unit of images is emissions per voxel during the acquisition. */

/* Result of one iteration. yhat = A x are the estimated counts. Sums are over all LORs. With one subset, the
 * log-likelihood, the sum of y ln(yhat + b) - (yhat + b), is that of the image before the update. With several subsets,
 * the terms of a subset's LORs are computed from the image before the update by this subset. The log-likelihood then
 * mixes several images and is not exact for any of them. The exact log-likelihood of an image can be found by one more
 * iteration of lr_mlem from this image. */
typedef struct lr_iteration {
    int number;   /* number of the iteration; the first one has iterations_before + 1 */
    bool has_fit; /* true if the fields from here to sensitive_counts are known; else they are 0 */
    double log_likelihood;
    double measured_counts;  /* sum of y over LORs with yhat + b > 0 */
    double estimated_counts; /* sum of yhat + b */
    int64_t left_out_lors;   /* LORs with y > 0 but yhat + b = 0 */
    double left_out_counts;
    /* beta R (lr_rdp) of the image before the iteration; 0 = no prior. BSREM with one subset maximises log_likelihood -
     * penalty */
    double penalty;
    /* sum over subsets and voxels of the subset's sensitivity times x after the subset's update; with EM and b = 0 this
     * sum equals measured_counts */
    double sensitive_counts;
    double seconds;
    double project_seconds;  /* part of `seconds` spent in projections */
    double exchange_seconds; /* several ranks: time of exchanges */
    double waiting_seconds;  /* time this rank waited for slower ranks */
    double sent_bytes;       /* bytes this rank sent to others */
    lr_traffic traffic;      /* traffic between the operator's place and the host */
    double device_seconds;   /* time of projections or whole updates by the device's clock; 0 = not measured */
    const lr_vector *image;  /* [num_voxels] image after the last update, at the operator's place or on the host; lives
                                during the call */
} lr_iteration;

/* Updates of an image by one subset of the LORs i. Sums over the subset: s_j = sum_i a_ij and r_j = sum_i a_ij y_i /
 * (A x + b)_i. */
typedef enum lr_recon_algorithm {
    LR_ALGORITHM_OSEM = 0, /* x_j <- x_j r_j / s_j: ordered subsets (Hudson and Larkin 1994); with one subset this is
                              ML-EM */
    /* x_j <- x_j (1 + lambda (r_j - s_j)): block RAMLA (Browne and De Pierro, IEEE Trans. Med. Imag. 15, 1996), with
     * lambda = relaxation / (1 + relaxation_fall n) / max_j s_j in iteration n = 0, 1, ... With a relaxation of at most
     * 1, no voxel becomes negative. With a larger relaxation, negative values are set to 0 */
    LR_ALGORITHM_RAMLA,
    LR_ALGORITHM_BSREM /* x_j <- max(0, x_j + a_n D_j (r_j - s_j - beta / M dR / dx_j)) with M
                              subsets: block sequential regularised EM (Ahn and Fessler, IEEE Trans.
                              Med. Imag. 22, 2003), which maximises the log-likelihood - beta R (lr_rdp).
                              a_n = relaxation / (1 + relaxation_fall n),
                              D_j = M max(x_j, floor) / (sum of all s_j + 2 beta kappa_j sum_k w_jk kappa_k);
                              with one subset, beta = 0 and a_n = 1 it is ML-EM */
} lr_recon_algorithm;

/* The relative difference prior (Nuyts et al., IEEE Trans. Nucl. Sci. 49, 2002), as defined in STIR and in the
 * PETRIC challenge. Each voxel j is paired with its 26 neighbours k:
 *
 *     R = 1/2 sum_j sum_k w_jk kappa_j kappa_k (x_j - x_k)^2 / (x_j + x_k + gamma |x_j - x_k| + epsilon)
 *
 * with w_jk = edge of a voxel along x / distance of the voxels' centres. Neighbours outside the grid are left out.
 * Voxels that no LOR sees have x = 0. docs/method/priors.md. */
typedef struct lr_rdp {
    double beta;            /* strength of the prior; 0 = the prior is computed but has no effect */
    double gamma;           /* strength of edge preservation; 2 is usual */
    double epsilon;         /* in units of the image; 0 = a hundredth of the voxel value of the default image
                               (lr_recon_params.initial) */
    const lr_vector *kappa; /* [num_voxels], >= 0, at any place and in either precision; NULL = 1 */
} lr_rdp;

/* R of an image on the grid, and the gradient of R, both without the factor beta. gradient is overwritten. All vectors
 * except kappa are at one place, in either precision; a kappa elsewhere is copied to this place. Here, epsilon has no
 * default: 0 means 0. errors: LR_USAGE for a vector whose size differs from the grid's, or parameters of the prior that
 * are negative or not finite; LR_BAD_INPUT for values of kappa that are negative or not finite; LR_FAILED if memory
 * runs out. */
LR_API lr_status lr_rdp_value(const lr_rdp *prior, const lr_grid *grid, const lr_vector *image, double *value);
LR_API lr_status lr_rdp_gradient(const lr_rdp *prior, const lr_grid *grid, const lr_vector *image, lr_vector *gradient);

/* Zero fields are defaults. data, additive, initial and prior->kappa may each be at any place and in either precision.
 * These vectors are read after all queued work at their place, and are never written. */
typedef struct lr_recon_params {
    lr_operator *op;           /* required */
    const lr_vector *data;     /* required; y >= 0, [num_lors], or sparse: [number of data_lors] */
    const int64_t *data_lors;  /* [data->count] ascending numbers of the LORs of sparse data; y = 0 for all others. NULL
                                  = dense data */
    const lr_vector *additive; /* b >= 0, [num_lors]; with data_lors it may have values for these LORs only; NULL =
                                  none, or additive_source */
    lr_lor_source additive_source; /* b >= 0, used if additive is NULL; get == NULL = none */
    /* sum of the additive term over all LORs in coincidence; 0 = the sum is computed by visiting every LOR once. A
     * value is required if the additive term has values for data_lors only. With dense data this sum is used only in
     * list mode (lr/listmode.h), because the additive terms of events do not add up to this sum */
    double additive_sum;
    const lr_vector *initial; /* [num_voxels]; NULL = a uniform image in all voxels with positive sensitivity, scaled to
                                 the counts minus the additive term */
    int iterations;           /* number of iterations; 0 = 3 */
    int iterations_before; /* number of iterations that made `initial`, from which numbering and relaxation continue; 0
                              = none */
    int subsets;           /* number of subsets; 0 counts as 1 */
    /* [pairs of the operator's layout] the subset of each pair, 0 .. subsets - 1. No subset is empty; subsets are
     * visited in ascending order. NULL = subsets made by lr_osem_interleave and lr_osem_subsets, visited in the order
     * of lr_osem_visits */
    const int32_t *subset_of;
    /* with subset_of: 0 = not interleaved. If above 0, subset_of gives the group of each pair, 0 .. subsets /
     * interleave - 1. Subset k has the LORs of group k / interleave whose lr_lors_turn is k % interleave. Subsets are
     * visited in the order of lr_osem_visits. Without subset_of: what lr_osem_interleave has found; 0 = it is called */
    int interleave;
    /* true: iterations need not report the fit (lr_iteration.has_fit), and a device that can do whole updates by itself
     * does so */
    bool without_fit;
    lr_recon_algorithm algorithm;
    /* RAMLA, BSREM: relaxation of the first iteration; 0 = lr_ramla_relaxation(subsets), or 1 for BSREM */
    double relaxation;
    /* RAMLA, BSREM: iteration n uses relaxation / (1 + fall n). BSREM with several subsets reaches the maximum only
     * if the fall is above 0 */
    double relaxation_fall;
    /* RAMLA: the step of each voxel is scaled by its own largest subset sensitivity, instead of the largest over all
     * voxels. No device then does whole updates by itself */
    bool own_steps;
    const lr_rdp *prior;                                          /* BSREM; NULL = none */
    lr_status (*iteration)(void *user, const lr_iteration *done); /* after all subsets; may be NULL */
    void *user;
    lr_comm *comm; /* ranks that reconstruct one image together ("Several ranks" below); NULL = one process */
    const lr_log *log;
    const lr_progress *progress;
} lr_recon_params;

/* Updates the image with one subset of LORs after another. Each subset has its own sensitivity. The subsets are chosen
 * so that each sees the object evenly (lr_osem_interleave).
 *
 * A subset leaves voxels that it does not see unchanged. A subset is skipped with a warning if it has no counts, or if
 * the estimate is 0 on all its LORs with counts.
 *
 * Images are at the operator's place if they fit half of its memory, or the operator's max_memory_bytes; otherwise they
 * are on the host. With dense data, the same applies to measured and estimated values. Vectors at the operator's place
 * are not copied through the host during an iteration. Sparse data need no array over all LORs: estimates are computed
 * only for LORs with counts, and only the sensitivities visit every LOR, once. With dense data, the array of estimates
 * has the length of the largest subset; so has the array of measured values if there are several subsets. An additive
 * source is then called in every iteration.
 *
 * Dense data and additive terms in float32 at the operator's place are used without a copy if the LORs of a subset are
 * consecutive; otherwise a subset's values are gathered at this place. Vectors in float64, or at the place of another
 * device, are first copied to the operator's place, once; lr_vector_copy says which of these copies pass through the
 * host. Sparse data, and data for operators without a place (lr_operator_place), are copied to the host once.
 * Sensitivities and the start image are computed at the operator's place. Two kinds of sensitivities pass through the
 * host: that of a scanner's events, once for each operator, and those for RAMLA's own_steps.
 *
 * With without_fit and dense data, backends compute and cuda of the family `direct` keep image, data, factors and
 * sensitivities on the device in their own layout, if they fit half of its memory. The host does not wait for them
 * within an iteration. Subsets without counts are skipped as above, but counts on LORs with an estimate of 0 are not
 * detected.
 *
 * image: [num_voxels], at any place, overwritten; after LR_CANCELLED it is the image after the last finished subset.
 * progress is first called for each sensitivity, with `done` in subsets. progress is then called before each subset,
 * with `done` in iterations and the text "iteration 3 of 8, subset 2 of 4".
 * errors: LR_FAILED for an image that exceeds the largest float, or (RAMLA) whose sum exceeds the bound that the counts
 * give; LR_BAD_INPUT for numbers of data, additive term, initial image or kappa that are negative or not finite;
 * LR_BAD_INPUT if every LOR with counts has an estimate of 0 in a whole iteration; LR_USAGE for sizes that do not
 * match, too many subsets for the LORs, a pair whose subset does not exist, a subset without pairs, an additive term of
 * both kinds, a relaxation that is negative or not finite, or a relaxation or prior with an algorithm that does not use
 * it. */
LR_SIZED(lr_recon_params, lr_status, lr_recon, (const lr_recon_params *params, lr_vector *image), (params, image));

/* RAMLA's default relaxation: 1 with one subset, else 10 / (9 + subsets). One pass over all subsets then changes the
 * image about as much as ten iterations of ML-EM, for any number of subsets. A pass reduces a voxel by a factor of
 * exp(-10) at most. docs/method/common.md, "Block RAMLA". */
LR_API double lr_ramla_relaxation(int subsets);

/* Several ranks (lr_recon_params.comm): each rank has an operator, data, factors and additive term for its own LORs,
 * views or events (lr_partition). Together the ranks cover all of them. Everything else in the params is the same on
 * all ranks; additive_sum is the sum over all ranks. subset_of lists the pairs of this rank; a rank may lack some
 * subsets. List-mode operators share the sensitivity (lr_listmode_params.sensitivity_parts). Back-projections are
 * summed over the ranks, each rank updates its slab of the image, and all ranks receive the whole image. The
 * iterates equal those of one process except for the rounding of sums. With BSREM every rank updates the whole
 * image, because the prior uses neighbouring voxels. The numbers in lr_iteration are totals over all ranks, except
 * for the seconds. errors: also those of another rank, with its status. */

/* A composition: the image made from the guesses of several ranks. A guess is the image that a rank reconstructs from
 * its own LORs. */
typedef struct lr_composition {
    int iterations;                /* iterations of each guess so far */
    int count;                     /* number of guesses, one per rank */
    const double *weights;         /* [count] weights alpha; their sum is 1 */
    const double *guess_residuals; /* [count] squared residual |y - b - A x_g|^2 of each guess, over all LORs */
    /* condition number of the system for the weights; infinite if the guesses do not determine the weights, which
     * then have minimum norm */
    double condition;
    /* squared residual of the composed image, negative voxels included; never above a guess's residual */
    double residual;
    double clipped_residual; /* squared residual after negative voxels were set to 0 */
    int64_t negative_voxels;
    double negative_sum;
    lr_poisson_fit fit;                 /* fit of the image, with negative voxels set to 0 */
    double seconds;                     /* time since the start */
    double compose_seconds, sent_bytes; /* time of this composition, and bytes that this rank sent for it */
    const lr_vector *image;             /* on the host; lives during the call */
    const float *guesses;               /* [count][num_voxels] all guesses; they live during the call */
} lr_composition;

/* Guesses from which ranks can continue, one per rank. Directly after a composition, each guess is the composed image;
 * voxels that are 0 in the composed image keep the value of the rank's earlier guess. */
typedef struct lr_guesses {
    int iterations;       /* total number, including those before this call */
    int guess_iterations; /* iterations of each guess since the last composition; 0 = directly after a composition */
    int count;            /* number of guesses, one per rank */
    int64_t num_voxels;
    const float *values; /* [count][num_voxels]; lives during the call */
} lr_guesses;

/* Parameters of lr_compose. Zero fields are defaults. */
typedef struct lr_compose_params {
    /* params of this rank's guess, with operator, data and additive term of the rank's own LORs. `iterations` is the
     * total number of iterations; comm and additive_sum are not read */
    lr_recon_params local;
    lr_comm *comm; /* required, except if `guesses` is set */
    /* [num_guesses] params of all guesses, if one process makes them one after another; else NULL. comm is then NULL,
     * and `local` is not read. The first entry sets the number of iterations. The callback `iteration` of an entry is
     * called for the iterations of its guess */
    const lr_recon_params *guesses;
    int num_guesses;      /* 0 = one guess per rank */
    int local_iterations; /* iterations of each guess before a composition; 0 = all */
    /* value of lr_guesses.guess_iterations if the run continues from lr_guesses, and each rank has its own guess as
     * local.initial; else 0 */
    int guess_iterations;
    lr_status (*composed)(void *user, const lr_composition *done); /* may be NULL */
    /* number of iterations between calls of `keep`; 0 = `keep` is never called. All ranks call `keep` together. If one
     * process makes several guesses, `keep` is called only at compositions */
    int keep_every;
    lr_status (*keep)(void *user, const lr_guesses *guesses);
    void *user;
} lr_compose_params;

/* Toth, Magdics and Szirmay-Kalos, Fast System Matrix Generation on a GPU Cluster, section V: every rank reconstructs a
 * guess x_g from its own LORs alone. The composed image is x = sum over ranks of alpha_g x_g. The weights alpha_g,
 * whose sum is 1, give the least squares solution of A x = y - b over all LORs. Voxels that become negative are set to
 * 0. If iterations remain, every rank continues from the composed image. Voxels that are 0 in the composed image start
 * from the rank's own guess.
 * image: [num_voxels], overwritten, the same on all ranks; on LR_CANCELLED image is the last composed image, if there
 * is one. errors: as lr_recon; LR_USAGE in list mode, because LORs without events have no values there; LR_USAGE if
 * params have both a comm and several guesses of one process; LR_NO_DEVICE without LAPACKE. */
LR_SIZED(lr_compose_params, lr_status, lr_compose, (const lr_compose_params *params, lr_vector *image),
         (params, image));

/* State from which distributed ML-EM can continue. The state is the same on all ranks. */
typedef struct lr_distributed_state {
    int iterations;                 /* total number, including those before this call */
    int local_iterations;           /* largest number of iterations before the next exchange */
    double log_likelihood;          /* log-likelihood of the previous image; if that of `image` is lower, of_em replaces
                              `image` */
    const lr_vector *image, *of_em; /* the next image, and the ML-EM image that replaces it if necessary; at any
                                       place */
} lr_distributed_state;

/* Parameters of lr_recon_distributed. Zero fields are defaults. */
typedef struct lr_distributed_params {
    /* params as for several ranks (above), with one subset and no prior. `iterations` counts the passes of each rank
     * over its data. `iteration` is called after each exchange, with the log-likelihood of the image before the
     * exchange */
    lr_recon_params recon;
    /* largest number of passes between two exchanges; 0 = 4. The number is smaller at the start, and after the
     * likelihood would have fallen */
    int local_iterations;
    const lr_distributed_state *from; /* state to continue from; recon.initial is then ignored. NULL = none */
    lr_status (*keep)(void *user, const lr_distributed_state *state); /* after each exchange, with recon.user,
                                                                         before `iteration`; may be NULL */
} lr_distributed_params;

/* ML-EM on several ranks that exchange two images after every local_iterations passes over their data. Between
 * exchanges each rank iterates alone, as if its data represented all data. The likelihood never falls, and the
 * iterates converge to the same limit as ML-EM. The scheme is our own, inspired by Cui, Pratx, Meng and Levin,
 * Distributed MLEM, IEEE Trans. Med. Imag. 32 (2013); docs/method/cluster.md. image, errors: as lr_recon. */
LR_SIZED(lr_distributed_params, lr_status, lr_recon_distributed,
         (const lr_distributed_params *params, lr_vector *image), (params, image));

/* Parameters of lr_osem, which is lr_recon with LR_ALGORITHM_OSEM. errors: also LR_USAGE for another algorithm. */
typedef lr_recon_params lr_osem_params;
/* Expectation maximisation by ordered subsets. image: receives the result. */
LR_SIZED(lr_osem_params, lr_status, lr_osem, (const lr_osem_params *params, lr_vector *image), (params, image));

/* Parameters of lr_mlem. Zero fields are defaults. */
typedef struct lr_mlem_params {
    lr_operator *op;       /* required */
    const lr_vector *data; /* required; data, data_lors and initial as in lr_recon_params */
    const int64_t *data_lors;
    const lr_vector *additive; /* b >= 0, [num_lors]; NULL = none */
    const lr_vector *initial;
    int iterations;                                               /* number of iterations; 0 = 10 */
    lr_status (*iteration)(void *user, const lr_iteration *done); /* after each; may be NULL */
    void *user;
    const lr_log *log;
    const lr_progress *progress;
} lr_mlem_params;

/* ML-EM, that is lr_osem with one subset. image, errors: as lr_recon. */
LR_SIZED(lr_mlem_params, lr_status, lr_mlem, (const lr_mlem_params *params, lr_vector *image), (params, image));

/* Finds the number of parts into which LORs must be divided by their angle (lr_lors_turn) so that subsets see the
 * object evenly. The number of parts is a divisor of the number of subsets. 1 means that subsets can have whole module
 * pairs; for histo-images the number is always 1. The number is computed from lines through points between the modules,
 * and logged. docs/method/common.md, "Subsets". errors, logged: LR_USAGE if a subset would have no LOR; LR_FAILED if
 * memory runs out. */
LR_API lr_status lr_osem_interleave(const lr_lors *lors, int subsets, int *interleave, const lr_log *log);

/* The time that a projection of all subsets takes, relative to a projection of all LORs. The result is 1, or up to 4 if
 * subsets are interleaved and the scanner has too few crystals around the axis to give every subset its own angles. */
LR_API double lr_osem_cost(const lr_lors *lors, int interleave);

/* Assigns whole module pairs to subsets: subset_of[lors->num_pairs], 0 .. subsets-1. The result is the same in every
 * run. Subsets with neighbouring numbers see the object from neighbouring directions. docs/method/common.md,
 * "Subsets", describes the method. View k of histo-images belongs to subset k mod subsets. errors, logged: LR_USAGE
 * for fewer than 1 or more than num_pairs subsets; LR_FAILED if memory runs out. */
LR_API lr_status lr_osem_subsets(const lr_lors *lors, int subsets, int32_t *subset_of, const lr_log *log);

/* The order in which subsets are visited. order: [subsets]; subset order[n] is the n-th. Each subset is far from the
 * subsets visited before it, as Herman and Meyer recommend (Algebraic reconstruction techniques can be made
 * computationally efficient, IEEE Trans. Med. Imag. 12, 1993). The step from subset to subset is the golden section of
 * their number, rounded to the nearest step that visits every subset. The order in their paper, by prime factors, has
 * two drawbacks: a prime number of subsets is visited in sequence, and all subsets of even angles come before the odd
 * ones. */
LR_API void lr_osem_visits(int subsets, int32_t *order);

#ifdef __cplusplus
}
#endif

#endif
