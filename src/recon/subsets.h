/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The voxels that each rank updates; data divided into subsets, and the properties of each subset. */
#ifndef LR_RECON_SUBSETS_H
#define LR_RECON_SUBSETS_H

#include <lr/comm.h>
#include <lr/lors.h>
#include <lr/recon.h>
#include <lr/vector.h>
#include <stddef.h>

/* --- the voxels that each of several ranks updates: a slab of the image, which is a range of voxels. If the update
 * rule depends on neighbouring voxels, each rank updates the whole image. docs/method/cluster.md. --- */

struct lr_ranks {
    lr_comm *comm; /* NULL = one process */
    int size;
    int64_t *offsets;   /* owned [size + 1] voxels of each rank */
    int64_t begin, end; /* this rank's range */
    bool has_slabs;     /* each rank updates a slab; if false, the whole image */
};

/* The caller frees `offsets` in any case. errors: LR_FAILED if memory runs out. */
lr_status lr_ranks_init(struct lr_ranks *ranks, lr_comm *comm, int64_t num_voxels, const lr_log *log);

/* Returns the slab: the voxels of an image that this rank updates. */
lr_vector lr_ranks_slab(const struct lr_ranks *ranks, const lr_vector *image);

/* Adds up the fits of all ranks, so that `fit` becomes the fit of all data. The same message also adds up the sums
 * of the ranks' slabs before and after an update, unless they are NULL. They become sums of the image. */
lr_status lr_ranks_add_update(const struct lr_ranks *ranks, lr_poisson_fit *fit, lr_vector_sums *before,
                              lr_vector_sums *after);

/* --- vectors of the caller --- */

/* Finds the first number that is negative, not finite, or beyond the range of float. *at: its index; -1 if there is
 * none. Numbers of a device are copied to the host only if there is one. errors: LR_FAILED; LR_NO_DEVICE. */
lr_status lr_find_invalid(const lr_vector *numbers, int64_t *at, double *value);

/* Checks the sizes and numbers of data, additive term and initial image. errors: LR_USAGE for sizes; LR_BAD_INPUT for
 * numbers. */
lr_status lr_recon_check_vectors(const lr_recon_params *params);

/* Replaces a sensitivity by an image with one value in voxels that LORs see, and 0 in others. scratch: [num_voxels] at
 * the sensitivity's place, overwritten. */
lr_status lr_start_seen(lr_vector *sensitivity, lr_vector *scratch, double value);

/* Multiplies an image, which is 1 in voxels that may be above 0, by the initial image, at the place of the image. */
lr_status lr_start_from(const lr_vector *initial, lr_vector *image, const lr_log *log);

/* Returns true if the additive term has values of data_lors alone. */
bool lr_additive_is_listed(const lr_recon_params *params);

/* A run of consecutive LORs, first .. first + count - 1. Their values begin at index `begin` of the subset's values. */
struct lr_lor_run {
    int64_t first, begin, count;
};

struct lr_subset {
    lr_selection pairs;      /* module pairs, with the interleave of their LORs; all zero for the only subset */
    lr_selection projected;  /* LORs to project; sparse data: only LORs with counts; dense data: all LORs of `pairs` */
    int64_t num_values;      /* number of values, including interleaved LORs of other subsets */
    double counts;           /* sum of y of all ranks, set by lr_compared_init */
    double share;            /* this subset's share of the values of all subsets and ranks */
    float *measured;         /* sparse: y in the order of the values; else NULL */
    float *additive;         /* sparse: b of these LORs; NULL = none */
    struct lr_lor_run *runs; /* dense: [num_runs]; NULL for the only subset */
    int64_t num_runs;
    int32_t *pair_list; /* list of module pairs. Interleaved subsets share one list, which the first of them owns */
    int64_t *lor_list;
};

struct lr_subsets {
    const lr_recon_params *params; /* checked */
    const lr_lors *lors;
    int count, interleave;  /* subset k is part k % interleave of the LORs of group k / interleave */
    struct lr_subset *list; /* [count] */
    int32_t *order;         /* [count] order in which subsets are visited */
    bool is_sparse;         /* true if the data are sparse */
    double counts;          /* sum of y of all ranks, set by lr_compared_init */
    double own_counts;      /* sum of y of this rank, set by lr_compared_init */
    double additive_counts; /* sum of b over all LORs, for sparse data, interleaved subsets and events */
    int64_t most_values;    /* largest num_values */
};

/* Divides the LORs of params->data, which is checked, into params->subsets; sparse data are copied to the host. Call
 * the finish function in any case.
 * errors: LR_FAILED if memory runs out; LR_USAGE if a subset would be empty; LR_BAD_INPUT for a value of the
 * additive source that is not finite or negative; errors of the source. */
lr_status lr_subsets_init(struct lr_subsets *subsets, const lr_recon_params *params);
void lr_subsets_finish(struct lr_subsets *subsets);

/* --- the data that estimates are compared with --- */

/* The measured counts and the additive term of each subset, in the order of the subset's values. */
struct lr_compared {
    struct lr_subsets *subsets;
    lr_place *place; /* the place of the values; NULL = the host */
    bool is_kept;    /* a device keeps the values of all subsets; if false, only those of the current subset */
    /* Dense measured counts and additive term: the caller's vectors or copies, in single precision, on the host or at
     * the place; zero if there are none */
    lr_vector from[2];
    lr_vector *held[2];   /* [subsets] zero for values that lr_compared_get gathers */
    lr_vector scratch[2]; /* at the place: gathered values of the current subset */
    lr_vector staged;     /* on the host: values for a device */
    bool has_additive;
};

/* Finds the values of each subset, and sets the counts of the subsets. A subset's values are used without a copy if
 * they are consecutive in the caller's vector, in single precision, and on the required side (host or device). Other
 * values are copied: if is_kept, the values of all subsets now; else the values of one subset in each call of
 * lr_compared_get. Call the finish function in any case.
 * errors: LR_FAILED if memory runs out; LR_BAD_INPUT for an additive value that is negative or not finite. */
lr_status lr_compared_init(struct lr_compared *compared, struct lr_subsets *subsets, lr_place *place, bool is_kept);
void lr_compared_finish(struct lr_compared *compared);

/* Returns how many numbers lr_compared_init copies to a device. */
double lr_compared_count(const struct lr_subsets *subsets, const lr_place *place);

/* Values of subset k, valid until the next call. additive is zero if there is none. */
struct lr_compared_values {
    lr_vector measured, additive;
};
lr_status lr_compared_get(struct lr_compared *compared, int k, struct lr_compared_values *values);

/* Finds the value of the uniform start image. The image explains the counts minus the additive term, but at least a
 * hundredth of the counts. A value that is too low slows convergence: with an additive term, an EM update multiplies an
 * image that explains few of the counts by at most the ratio of counts to additive term. RAMLA and BSREM limit their
 * steps, too. Without an additive term, EM reaches the correct scale in one update from any value.
 * seen_counts: counts that an image of ones gives, the same on all ranks. level: 1 if there are no counts. Warns if
 * the additive term is larger than the counts. */
lr_status lr_find_level(struct lr_compared *compared, double seen_counts, double *level);

#endif
