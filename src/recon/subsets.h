/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The voxels that each rank updates, and the division of data into subsets. */
#pragma once

#include <lr/comm.h>
#include <lr/lors.h>
#include <lr/recon.h>
#include <lr/vector.h>
#include <stddef.h>

/* --- the voxels that each rank updates: a range of voxels, called a slab. If the update rule depends on neighbouring
 * voxels, each rank updates the whole image. docs/method/cluster.md. --- */

struct lr_ranks {
    lr_comm *comm; /* NULL = one process */
    int size;
    int64_t *offsets;   /* owned [size + 1] voxels of each rank */
    int64_t begin, end; /* this rank's range */
    bool has_slabs;     /* true if each rank updates its slab; false if each updates the whole image */
};

/* The caller frees `offsets` even after an error. errors: LR_FAILED if memory runs out. */
lr_status lr_ranks_init(struct lr_ranks *ranks, lr_comm *comm, int64_t num_voxels, const lr_log *log);

/* Returns the voxels of an image that this rank updates. */
lr_vector lr_ranks_slab(const struct lr_ranks *ranks, const lr_vector *image);

/* Adds up the fits of all ranks: `fit` becomes the fit of all data. The sums of slabs before and after an update travel
 * in the same message and become sums of the whole image. `before` and `after` may be NULL. */
lr_status lr_ranks_add_update(const struct lr_ranks *ranks, lr_poisson_fit *fit, lr_vector_sums *before,
                              lr_vector_sums *after);

/* --- vectors of the caller --- */

/* Finds the first number that is negative, not finite, or beyond the range of float. *at: its index, or -1 if all
 * numbers are valid. A device's numbers are copied to the host only if some number is invalid. errors: LR_FAILED;
 * LR_NO_DEVICE. */
lr_status lr_find_invalid(const lr_vector *numbers, int64_t *at, double *value);

/* Checks the sizes and numbers of data, additive term and initial image. errors: LR_USAGE for sizes; LR_BAD_INPUT for
 * numbers. */
lr_status lr_recon_check_vectors(const lr_recon_params *params);

/* Replaces a sensitivity by the start image: `value` in voxels that LORs see, 0 in all other voxels. scratch:
 * [num_voxels] at the sensitivity's place, overwritten. */
lr_status lr_start_seen(lr_vector *sensitivity, lr_vector *scratch, double value);

/* Multiplies an image by the initial image, at the place of the image. On entry, the image is 1 in voxels that may be
 * above 0, and 0 in all other voxels. */
lr_status lr_start_from(const lr_vector *initial, lr_vector *image, const lr_log *log);

/* Returns true if the additive term has values only for the LORs in data_lors. */
bool lr_additive_is_listed(const lr_recon_params *params);

/* A run of consecutive LORs, first .. first + count - 1. The first one's value has index `begin` among the values of
 * the subset. */
struct lr_lor_run {
    int64_t first, begin, count;
};

struct lr_subset {
    lr_selection pairs;      /* module pairs and interleave of the LORs; all zero if there is only one subset */
    lr_selection projected;  /* LORs to project: LORs with counts (sparse data), or all LORs of `pairs` (dense data) */
    int64_t num_values;      /* number of values, including those of interleaved LORs in other subsets */
    double counts;           /* sum of y of all ranks, set by lr_compared_init */
    double share;            /* this subset's share of the values of all subsets and ranks */
    float *measured;         /* sparse data: y in the order of the values; dense data: NULL */
    float *additive;         /* sparse data: b in the order of the values; NULL = none */
    struct lr_lor_run *runs; /* dense data: [num_runs]; NULL if there is only one subset */
    int64_t num_runs;
    int32_t *pair_list; /* list of module pairs; interleaved subsets share a list, which belongs to the first of them */
    int64_t *lor_list;
};

struct lr_subsets {
    const lr_recon_params *params; /* params that have been checked */
    const lr_lors *lors;
    int count, interleave;  /* subset k is part k % interleave of the LORs of group k / interleave */
    struct lr_subset *list; /* [count] */
    int32_t *order;         /* [count] order in which subsets are visited */
    bool is_sparse;         /* true if the data are sparse */
    double counts;          /* sum of y of all ranks, set by lr_compared_init */
    double own_counts;      /* sum of y of this rank, set by lr_compared_init */
    double additive_counts; /* sum of b over all LORs; for sparse data, interleaved subsets and events, else 0 */
    int64_t most_values;    /* largest num_values */
};

/* Divides the LORs of params->data, which have been checked, into params->subsets. Sparse data are copied to the host.
 * Call lr_subsets_finish even after an error. errors: LR_FAILED if memory runs out; LR_USAGE if a subset would be
 * empty; LR_BAD_INPUT if the additive source gives a negative or not finite value; errors of the source. */
lr_status lr_subsets_init(struct lr_subsets *subsets, const lr_recon_params *params);
void lr_subsets_finish(struct lr_subsets *subsets);

/* --- the data that estimates are compared with --- */

/* The measured counts and the additive term of each subset, in the order of the subset's LORs. */
struct lr_compared {
    struct lr_subsets *subsets;
    lr_place *place; /* the place of the values; NULL = the host */
    bool is_kept;    /* true if a device keeps the values of all subsets; false if it keeps only those of the current
                        subset */
    /* Measured counts and additive term of dense data, in single precision, on the host or at the place. The vectors
     * are the caller's, or copies, or zero if there are no such data. */
    lr_vector from[2];
    lr_vector *held[2];   /* [subsets] values of each subset; zero if lr_compared_get must gather them */
    lr_vector scratch[2]; /* at the place: gathered values of the current subset */
    lr_vector staged;     /* on the host: values that are sent to a device next */
    bool has_additive;
};

/* Finds the values of each subset, and sets the counts of the subsets. Values are used without a copy if they are one
 * range of the caller's vector, in single precision, and on the side where they are needed (host or device). Other
 * values are copied: with is_kept, all of them now; otherwise one subset's values in each call of lr_compared_get. Call
 * lr_compared_finish even after an error. errors: LR_FAILED if memory runs out; LR_BAD_INPUT for an additive value that
 * is negative or not finite. */
lr_status lr_compared_init(struct lr_compared *compared, struct lr_subsets *subsets, lr_place *place, bool is_kept);
void lr_compared_finish(struct lr_compared *compared);

/* Returns the number of values that lr_compared_init copies to a device. */
double lr_compared_count(const struct lr_subsets *subsets, const lr_place *place);

/* The values of subset k, valid until the next call of lr_compared_get. additive: zero if there is no additive term. */
struct lr_compared_values {
    lr_vector measured, additive;
};
lr_status lr_compared_get(struct lr_compared *compared, int k, struct lr_compared_values *values);

/* Finds the value of the uniform start image. The projection of this image explains the counts minus the additive term,
 * or a hundredth of the counts if that is more. Too low a value makes convergence slow: one EM update can multiply an
 * image that explains few counts by at most counts / additive term, and the steps of RAMLA and BSREM are limited, too.
 * Without an additive term, EM finds the correct scale in one update. seen_counts: counts that an image of ones gives,
 * equal on all ranks. level: 1 if there are no counts. Warns if the additive term is larger than the counts. */
lr_status lr_find_level(struct lr_compared *compared, double seen_counts, double *level);
