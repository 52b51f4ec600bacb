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

/* Images from LOR data: activity x that explains measured counts y by A x + b with an additive term b.
 * Maximum-likelihood expectation maximisation (Shepp and Vardi 1982; the cluster paper's equation 3)
 * is
 *
 *     x <- x / (A^T 1) * A^T ( y / (A x + b) )
 *
 * Images count emissions per voxel during the acquisition. */

/* Result of one iteration. With one subset, all sums are over all LORs and the log-likelihood sum y ln(yhat + b) -
 * (yhat + b) is that of the image before its update. With more, each subset adds its LORs' part, estimated from the
 * image before that subset's update: the log-likelihood then belongs to the images that the iteration went through,
 * not to any one of them (one more iteration of lr_mlem from an image gives its own). */
typedef struct lr_iteration {
    int number;   /* from iterations_before + 1 */
    bool has_fit; /* whether what follows, down to sensitive_counts, is known; else it is 0 */
    double log_likelihood;
    double measured_counts;  /* sum of y over LORs with yhat + b > 0 */
    double estimated_counts; /* sum of yhat + b */
    int64_t left_out_lors;   /* y > 0 where yhat + b = 0 */
    double left_out_counts;
    double penalty;          /* beta R of the image that the iteration began with (lr_rdp), which with one
                                subset is that of log_likelihood: their difference is what is
                                maximised. 0 = no prior */
    double sensitive_counts; /* sum over subsets and voxels of the subset's sensitivity * x after
                                its update; of EM = measured_counts where b = 0 */
    double seconds;
    double project_seconds;  /* of them, that forward and back projections took */
    double exchange_seconds; /* of several ranks: that they exchanged numbers, */
    double waiting_seconds;  /* and that this one waited for slower ones */
    double sent_bytes;       /* by this rank to others */
    lr_traffic traffic;      /* of the operator's place: what crossed between it and the host */
    double device_seconds;   /* that the device worked on projections, or whole updates, by its own
                              clock; 0 = not measured */
    const lr_vector *image;  /* [num_voxels] after the last update, where the reconstruction has it:
                               at the operator's place or on the host; lives during the call */
} lr_iteration;

/* Updates of an image by a subset of the LORs i, which have s_j = sum_i a_ij and r_j = sum_i a_ij y_i / (A x +
 * b)_i. */
typedef enum lr_recon_algorithm {
    LR_ALGORITHM_OSEM = 0, /* x_j <- x_j r_j / s_j: ordered subsets (Hudson and Larkin 1994), and
                              with one subset ML-EM */
    LR_ALGORITHM_RAMLA,    /* x_j <- x_j (1 + lambda (r_j - s_j)): block RAMLA (Browne and De
                              Pierro, IEEE Trans. Med. Imag. 15, 1996), with
                              lambda = relaxation / (1 + relaxation_fall n) / max_j s_j in iteration
                              n = 0, 1, ...: with a relaxation of at most 1 no voxel becomes
                              negative; with more, what would be negative becomes 0 */
    LR_ALGORITHM_BSREM     /* x_j <- max(0, x_j + a_n D_j (r_j - s_j - beta / M dR / dx_j)) with M
                              subsets: block sequential regularised EM (Ahn and Fessler, IEEE Trans.
                              Med. Imag. 22, 2003), which maximises the log-likelihood - beta R (lr_rdp).
                              a_n = relaxation / (1 + relaxation_fall n),
                              D_j = M max(x_j, floor) / (sum of all s_j + 2 beta kappa_j sum_k w_jk kappa_k);
                              with one subset, beta = 0 and a_n = 1 it is ML-EM */
} lr_recon_algorithm;

/* The relative difference prior (Nuyts et al., IEEE Trans. Nucl. Sci. 49, 2002), as STIR and the
 * challenge PETRIC have it: over pairs of the 26 neighbours in three dimensions
 *
 *     R = 1/2 sum_j sum_k w_jk kappa_j kappa_k (x_j - x_k)^2 / (x_j + x_k + gamma |x_j - x_k| + epsilon)
 *
 * with w_jk = edge of a voxel along x / distance of the voxels' centres. Neighbours outside of the grid
 * count for nothing; voxels that no LOR sees are 0. docs/method/priors.md. */
typedef struct lr_rdp {
    double beta;        /* strength; 0 = the prior is computed and has no effect */
    double gamma;       /* how much less edges weigh than noise; 2 is usual */
    double epsilon;     /* in units of the image; 0 = a hundredth of the uniform image that gives the counts
                           that the additive term leaves */
    const float *kappa; /* [num_voxels], >= 0; NULL = 1 */
} lr_rdp;

/* R of an image on the grid, and its gradient, which is overwritten, without beta. Vectors are at one
 * place, in either precision; kappa is copied there. epsilon 0 is 0 here. errors: LR_USAGE
 * for a vector that is not of the grid, or numbers of the prior that are negative or not finite;
 * LR_FAILED if memory runs out. */
LR_API lr_status lr_rdp_value(const lr_rdp *prior, const lr_grid *grid, const lr_vector *image, double *value);
LR_API lr_status lr_rdp_gradient(const lr_rdp *prior, const lr_grid *grid, const lr_vector *image, lr_vector *gradient);

/* Zero fields are defaults. */
typedef struct lr_recon_params {
    lr_operator *op;               /* required */
    const lr_lor_data *data;       /* required; y >= 0, sparse or dense */
    const lr_lor_data *additive;   /* b >= 0; NULL = none, or: */
    lr_lor_source additive_source; /* b >= 0 where additive is NULL; get == NULL = none */
    double additive_sum;           /* of additive_source over all LORs in coincidence; 0 = it is
                                      summed up, which visits every LOR once. Unused with dense
                                      data, but where values are of events (lr/listmode.h), whose
                                      additive terms do not add up to all that was expected */
    const float *initial;          /* [num_voxels]; NULL = the uniform image, where the sensitivity is positive, that
                                      gives the counts that an additive term leaves */
    int iterations;                /* 0 = 3 */
    int iterations_before;         /* that made `initial`: numbers count on, and relaxation falls on; 0 */
    int subsets;                   /* 0 = 1 */
    const int32_t *subset_of;      /* [pairs of the operator's layout] the subset of each, 0 .. subsets - 1,
                                 none of them empty: they are visited by their numbers then. NULL = as
                                 lr_osem_interleave and lr_osem_subsets make them, in the order of
                                 lr_osem_visits */
    int interleave;                /* where subset_of is given: above 0, it says the group of each pair, 0 .. subsets /
                       interleave - 1; subset k has the LORs of group k / interleave at the angles
                       (lr_lors_angle) k % interleave modulo that, and is visited as lr_osem_visits says */
    bool without_fit;              /* iterations need not tell how well data are explained (lr_iteration.has_fit):
                         a device that can do a whole update by itself then does */
    lr_recon_algorithm algorithm;
    double relaxation;      /* RAMLA, BSREM: of the first iteration; 0 = lr_ramla_relaxation(subsets), of
                          BSREM 1 */
    double relaxation_fall; /* RAMLA, BSREM: iteration n has relaxation / (1 + fall n). Several subsets
                               of BSREM meet the maximum only with a fall above 0 */
    bool own_steps;         /* RAMLA: each voxel's step goes by its own largest sensitivity of a subset, and
                            not by the largest of all voxels; no device does whole updates by itself */
    const lr_rdp *prior;    /* BSREM; NULL = none */
    lr_status (*iteration)(void *user, const lr_iteration *done); /* after all subsets; may be NULL */
    void *user;
    lr_comm *comm; /* ranks that reconstruct one image together, below; NULL = one process */
    const lr_log *log;
    const lr_progress *progress;
} lr_recon_params;

/* Updates the image with the LORs of one subset after the other, each with its own sensitivity. Subsets
 * see the object evenly (lr_osem_interleave).
 *
 * Voxels that a subset does not see keep their value in it. A subset whose counts the image does
 * not reach, or that has none, is passed over, with a warning.
 *
 * Images, and with dense data what is measured and estimated too, stay at the operator's place while
 * half of its memory, or the operator's max_memory_bytes, does for them; nothing of them passes through the host
 * during an iteration then. Else they are on the host: with sparse data nothing as long as all LORs is held (estimates
 * are computed where counts are, and only the sensitivities visit every LOR, once); with dense data arrays as long as
 * the largest subset, of estimates, and, with several subsets, of what they are compared with. There an additive
 * source is asked in every iteration.
 *
 * With without_fit and dense data, backends compute and cuda of the family `direct` keep image, data,
 * factors and sensitivities on the device, in their own layout, where half of its memory does for them,
 * and do not wait within an iteration. A subset without counts is passed over there, too; that the image
 * does not reach some is not seen.
 *
 * image: [num_voxels], at any place, overwritten; on LR_CANCELLED it holds the last finished subset. progress is
 * asked before each subset, with its number and the iteration's ("iteration 3 of 8, subset 2 of 4"),
 * in iterations done of all; before that for each sensitivity, in subsets.
 * errors: LR_FAILED for an image that grows beyond the largest number, or of RAMLA beyond what counts
 * explain; LR_BAD_INPUT for negative or non-finite data, or when no counts are reached in a whole
 * iteration; LR_USAGE for sizes that do not match, more subsets than there are LORs for, a pair whose subset
 * does not exist, a subset without pairs, an additive term of both kinds, a relaxation that is negative or not finite,
 * or one that the algorithm has not, or such a prior. */
LR_API lr_status lr_recon(const lr_recon_params *params, lr_vector *image);

/* RAMLA's default relaxation: 1 with one subset, else 10 / (9 + subsets). With any number of subsets, a pass over
 * all of them then goes about as far as ten iterations of ML-EM, and takes no more than a factor of exp(-10) from a
 * voxel. docs/method/common.md, "Block RAMLA". */
LR_API double lr_ramla_relaxation(int subsets);

/* Several ranks (lr_recon_params.comm): each has an operator, data, factors and additive term of LORs, views
 * or events of its own (lr_partition), which together are all; everything else of the params is the same on
 * all ranks, additive_sum too, which is of all. subset_of is of this rank's pairs; a rank may be without
 * some subset. Operators of list mode share the sensitivity
 * (lr_listmode_params.sensitivity_parts). Back-projections are summed over the ranks, each rank updates its
 * slab of the image, and all get the image: the iterates of one process except for the rounding of sums. BSREM,
 * whose prior looks at neighbours, is updated whole by every rank. Figures of an iteration are of all ranks,
 * seconds apart. errors: also those of another rank, with its status. */

/* Guesses of several ranks, composed. */
typedef struct lr_composition {
    int iterations;                /* of each guess so far */
    int count;                     /* of guesses, one of each rank */
    const double *weights;         /* [count] alpha, whose sum is 1 */
    const double *guess_residuals; /* [count] |y - b - A x_g|^2 over all LORs, of each guess alone */
    double condition;              /* of the system for the weights; infinite where guesses do not
                                     settle them, which are those of minimum norm then */
    double residual;               /* of the composed image as it comes: at most that of any guess */
    double clipped_residual;       /* with negative voxels set to 0 */
    int64_t negative_voxels;
    double negative_sum;
    lr_poisson_fit fit;                 /* of the image, with negative voxels set to 0 */
    double seconds;                     /* since the start, */
    double compose_seconds, sent_bytes; /* for this composition: all of it, and what this rank sent */
    const lr_vector *image;             /* on the host; lives during the call */
    const float *guesses;               /* [count][num_voxels] each of them; they live during the call */
} lr_composition;

/* Guesses from which ranks can continue: that of each; just after a composition the composed image, with the own
 * guess in voxels that are 0. */
typedef struct lr_guesses {
    int iterations;       /* those before included */
    int guess_iterations; /* of them, since guesses were composed last; 0 = they have just been */
    int count;            /* one of each rank */
    int64_t num_voxels;
    const float *values; /* [count][num_voxels]; lives during the call */
} lr_guesses;

typedef struct lr_compose_params {
    lr_recon_params local;          /* of this rank: operator, data and additive term of its own LORs, and how it
                              iterates on them by itself; its `iterations` are all of them, comm and
                              additive_sum are not read */
    lr_comm *comm;                  /* required, except for: */
    const lr_recon_params *guesses; /* [num_guesses] one process makes all guesses, one after the
                                       other, each as `local` says of a rank: comm is NULL then, and
                                       `local` is not read. Iterations are those of the first;
                                       `iteration` of each is called for what it does by itself */
    int num_guesses;                /* 0 = one of each rank */
    int local_iterations;           /* of each guess before it is composed; 0 = all */
    int guess_iterations;           /* that made local.initial since guesses were composed last: of a run that goes on
                             from lr_guesses, each rank from its own; 0 */
    lr_status (*composed)(void *user, const lr_composition *done); /* may be NULL */
    int keep_every; /* keep() is called, by all ranks, whenever so many iterations more are done, or at the
                       next composition after that, as of several guesses of one process; 0 = never */
    lr_status (*keep)(void *user, const lr_guesses *guesses);
    void *user;
} lr_compose_params;

/* Toth, Magdics and Szirmay-Kalos, Fast System Matrix Generation on a GPU Cluster, section V: every rank
 * reconstructs from its own LORs alone, and x = sum over ranks of alpha_g x_g, with sum alpha_g = 1, is the
 * least squares solution of A x = y - b over all LORs. Voxels that become negative are set to 0. Where
 * iterations are left, all go on from the composed image, in voxels that are 0 from their own guess.
 * image: [num_voxels], overwritten, the same on all ranks; on LR_CANCELLED it is what was composed last, if
 * anything was. errors: as lr_recon; LR_USAGE in list mode, whose values know of no LORs without events, and for
 * several guesses of one process with ranks; LR_NO_DEVICE without LAPACKE. */
LR_API lr_status lr_compose(const lr_compose_params *params, lr_vector *image);

/* State from which distributed ML-EM can continue: the same on all ranks. */
typedef struct lr_distributed_state {
    int iterations;                 /* those before included */
    int local_iterations;           /* of the next exchange, at most */
    double log_likelihood;          /* of the image before: one that explains less is given up for of_em */
    const lr_vector *image, *of_em; /* the next image, and that of ML-EM in its place: at any place */
} lr_distributed_state;

typedef struct lr_distributed_params {
    lr_recon_params recon; /* as of several ranks above; one subset, no prior. `iterations` count every
                              rank's walks over its data; `iteration` is called after each exchange, with
                              the log-likelihood of the image before it */
    int local_iterations;  /* between two exchanges; 0 = 4. Fewer at first, and where the likelihood would fall */
    const lr_distributed_state *from; /* goes on from there, and recon.initial is not read; NULL */
    lr_status (*keep)(void *user, const lr_distributed_state *state); /* after each exchange, with recon.user,
                                                                         before `iteration`; may be NULL */
} lr_distributed_params;

/* ML-EM of ranks that exchange two images every local_iterations walks over their data: between them each
 * goes on by itself, its own data standing for all. The likelihood never falls, and the limit is that of
 * ML-EM. A scheme of ours in the spirit of Cui, Pratx, Meng and Levin, Distributed MLEM, IEEE Trans. Med.
 * Imag. 32 (2013); docs/method/cluster.md. image, errors: as lr_recon. */
LR_API lr_status lr_recon_distributed(const lr_distributed_params *params, lr_vector *image);

/* lr_recon with LR_ALGORITHM_OSEM. errors: also LR_USAGE for another algorithm. */
typedef lr_recon_params lr_osem_params;
LR_API lr_status lr_osem(const lr_osem_params *params, lr_vector *image);

typedef struct lr_mlem_params {
    lr_operator *op;                                              /* required */
    const lr_lor_data *data;                                      /* required; y >= 0 */
    const lr_lor_data *additive;                                  /* b >= 0; NULL = none */
    const float *initial;                                         /* [num_voxels]; NULL = as in lr_recon_params */
    int iterations;                                               /* 0 = 10 */
    lr_status (*iteration)(void *user, const lr_iteration *done); /* after each; may be NULL */
    void *user;
    const lr_log *log;
    const lr_progress *progress;
} lr_mlem_params;

/* lr_osem with one subset. */
LR_API lr_status lr_mlem(const lr_mlem_params *params, lr_vector *image);

/* Number of times that LORs must be interleaved by their angle (lr_lors_angle) so that subsets see the object
 * evenly: a divisor of the number of subsets; 1 if whole module pairs suffice. It is found by lines through points
 * between the modules, and logged. docs/method/common.md, "Subsets". Histo-images: 1.
 * errors, logged: LR_USAGE where some subset would have no LOR; LR_FAILED if memory runs out. */
LR_API lr_status lr_osem_interleave(const lr_lors *lors, int subsets, int *interleave, const lr_log *log);

/* Deals whole module pairs: subset_of[lors->num_pairs], 0 .. subsets-1. The same in every run.
 * Neighbouring subsets see from neighbouring directions. docs/method/common.md, "Subsets", says how
 * they are made. Views of histo-images go to the subsets in turn: view k to subset k mod subsets.
 * errors, logged: LR_USAGE for fewer than 1 or more than num_pairs subsets; LR_FAILED if
 * memory runs out. */
LR_API lr_status lr_osem_subsets(const lr_lors *lors, int subsets, int32_t *subset_of, const lr_log *log);

/* The subsets in the order of visits: order[n] is visited n-th, [subsets]. Each is far from those before, as
 * Herman and Meyer ask (Algebraic reconstruction techniques can be made computationally efficient, IEEE
 * Trans. Med. Imag. 12, 1993), by steps of the golden section: the nearest number that meets all. Their own
 * order, by prime factors, takes subsets of a prime number one after the other, and those of even angles before
 * odd ones, between which they lie. */
LR_API void lr_osem_visits(int subsets, int32_t *order);

#ifdef __cplusplus
}
#endif

#endif
