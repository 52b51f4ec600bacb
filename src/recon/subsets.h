/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Data divided into subsets, and the properties of each subset. */
#ifndef LR_RECON_SUBSETS_H
#define LR_RECON_SUBSETS_H

#include <lr/lors.h>
#include <lr/recon.h>
#include <lr/vector.h>
#include <stddef.h>

/* --- reading LOR data --- */

/* Reads dense or sparse LOR data at ascending LORs. */

struct lr_lor_cursor {
    const lr_lor_data *data; /* NULL = zero everywhere */
    int64_t next;            /* sparse: index of the first entry at or after the LOR */
};

/* Starts reading at a LOR. */
static inline struct lr_lor_cursor lr_lor_cursor_at(const lr_lor_data *data, int64_t lor)
{
    struct lr_lor_cursor cursor = {data, 0};
    int64_t end = data != NULL && data->index != NULL ? data->count : 0;
    while (cursor.next < end) {
        const int64_t middle = cursor.next + (end - cursor.next) / 2;
        if (data->index[middle] < lor)
            cursor.next = middle + 1;
        else
            end = middle;
    }
    return cursor;
}

static inline double lr_lor_cursor_read(struct lr_lor_cursor *cursor, int64_t lor)
{
    const lr_lor_data *data = cursor->data;
    if (data == NULL) return 0.0;
    if (data->index == NULL) return data->values[lor];
    while (cursor->next < data->count && data->index[cursor->next] < lor) cursor->next++;
    const bool is_listed = cursor->next < data->count && data->index[cursor->next] == lor;
    return is_listed ? data->values[cursor->next] : 0.0;
}

/* --- voxels that LORs see --- */

/* Marks the voxels with a sensitivity above 0 in voxels [count]. Earlier marks stay. sensitivity: on the host, in
 * floats. Returns the sum of the sensitivity, which does not depend on the number of threads. */
double lr_seen_note(const lr_vector *sensitivity, bool *voxels, int threads);

/* LORs first .. first + count - 1. Their values begin at place `begin` of the subset's values. */
struct lr_lor_run {
    int64_t first, begin, count;
};

struct lr_subset {
    lr_selection pairs;      /* module pairs, with the interleave of their LORs; all zero for the only subset */
    lr_selection projected;  /* LORs to project; sparse data: only LORs with counts; dense data: all LORs of `pairs` */
    int64_t num_values;      /* number of values, including interleaved LORs of other subsets */
    double counts;           /* sum of y, of all ranks */
    double share;            /* this subset's share of the values of all subsets and ranks */
    float *measured;         /* sparse: y in the order of the values; else NULL */
    float *additive;         /* sparse: b of these LORs; NULL = none */
    struct lr_lor_run *runs; /* dense: [num_runs]; NULL for the only subset */
    int64_t num_runs;
    int32_t *pair_list; /* owned by the first of interleaved subsets, all of which point to it */
    int64_t *lor_list;
};

struct lr_subsets {
    const lr_recon_params *params; /* checked */
    const lr_lors *lors;
    int count, interleave;  /* subset k is part k % interleave of the LORs of group k / interleave */
    struct lr_subset *list; /* [count] */
    int32_t *order;         /* [count] order in which subsets are visited */
    bool is_sparse;         /* true if the data are sparse */
    double counts;          /* sum of y, of all ranks */
    double own_counts;      /* sum of y, of this rank */
    double additive_counts; /* sparse, interleaved and events: sum of b over all LORs */
    int64_t most_values;    /* largest num_values */
};

/* Divides params->data, which is checked, into params->subsets. Call the finish function in any case.
 * errors: LR_FAILED if memory runs out; LR_USAGE if a subset would be empty; LR_BAD_INPUT for a value of the
 * additive source that is not finite or negative; errors of the source. */
lr_status lr_subsets_init(struct lr_subsets *subsets, const lr_recon_params *params);
void lr_subsets_finish(struct lr_subsets *subsets);

/* --- the data that estimates are compared with --- */

/* The measured counts and the additive term of each subset, in the order of its values. */

struct lr_compared {
    const struct lr_subsets *subsets;
    lr_place *place;      /* the place of the values; NULL = the host */
    lr_vector *measured;  /* [subsets] zero for values that lr_compared_get gathers */
    lr_vector *additive;  /* [subsets] the same for the additive term; zero if there is none */
    lr_vector scratch[2]; /* on the host: measured counts and additive term of the current subset */
    bool has_additive;
};

/* Stores sparse data, and all data if they are at a device. Dense data on the host stay in the caller's array if a
 * subset's values are contiguous there. Otherwise lr_compared_get gathers them. Call the finish function in any
 * case.
 * errors: LR_FAILED if memory runs out; LR_BAD_INPUT for an additive value that is negative or not finite. */
lr_status lr_compared_init(struct lr_compared *compared, const struct lr_subsets *subsets, lr_place *place);
void lr_compared_finish(struct lr_compared *compared);

/* Values of subset k, valid until the next call. additive is zero if there is none. */
struct lr_compared_values {
    lr_vector measured, additive;
};
lr_status lr_compared_get(struct lr_compared *compared, int k, struct lr_compared_values *values);

/* Finds the value of the uniform start image. The image gives the counts minus the additive term, but at least a
 * hundredth of the counts. Without an additive term, EM finds the size of an image in one update. With one it does
 * not: if an image explains few of the counts, an update multiplies it by at most the ratio of counts to additive
 * term. Steps of limited length do not find it either if a voxel's sensitivity is small.
 * seen_counts: counts that an image of ones gives, the same on all ranks. level: 1 if there are no counts. Warns if
 * the additive term is larger than the counts. */
lr_status lr_find_level(struct lr_compared *compared, double seen_counts, double *level);

#endif
