/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_LORS_H
#define LR_LORS_H

#include <lr/scanner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The lines of response of a scanner, numbered.
 *
 * A LOR is an unordered pair of crystals in two modules i < j. Pairs of modules that have a LOR in
 * coincidence are listed sorted by (i, j), whatever the image grid. Within pair k, crystal a of
 * module i and crystal b of module j (numbers within the module, q * nu + p) have the LOR number
 *
 *     offsets[k] + a * crystals_of(j) + b
 *
 * so offsets[num_pairs] = count counts every crystal pair of the listed module pairs, also those
 * the coincidence rules exclude: their matrix elements are zero. This is the column order of every
 * exported matrix and the order of every data file.
 *
 * Immutable; may be shared between threads. The scanner must outlive it. */
typedef struct lr_lors {
    const lr_scanner *scanner;
    int64_t num_pairs;
    const int32_t (*pairs)[2]; /* [num_pairs] */
    const int64_t *offsets;    /* [num_pairs + 1] */
    int64_t count;
    const int32_t *pair_of; /* [num_modules][num_modules], symmetric; -1 = not in coincidence */
    const struct lr_coincidence_masks *masks; /* internal */
} lr_lors;

typedef struct lr_lor { /* one LOR, spelled out */
    int module_i, p, q; /* lower module */
    int module_j, r, s;
} lr_lor;

/* errors: NULL when no pair of modules is in coincidence, or memory is short. */
LR_API lr_lors *lr_lors_create(const lr_scanner *scanner, const lr_log *log);
/* Destroying NULL is allowed. */
LR_API void lr_lors_destroy(lr_lors *lors);

/* LOR of two crystals numbered over the whole scanner, in either order; -1 when their modules are
 * the same or have no LOR in coincidence. The LOR itself may still be out of coincidence. */
LR_API int64_t lr_lors_number(const lr_lors *lors, int crystal_a, int crystal_b);

/* The other way round: 0 <= lor < count. */
LR_API lr_lor lr_lors_describe(const lr_lors *lors, int64_t lor);

/* Whether the coincidence rules let this LOR count. */
LR_API bool lr_lors_in_coincidence(const lr_lors *lors, int64_t lor);

/* One number per LOR, dense or sparse.
 * dense:  index == NULL, count == lors->count.
 * sparse: index[count] sorted, without repeats; LORs not listed are zero. */
typedef struct lr_lor_data {
    int64_t count;
    int64_t *index; /* owned; NULL = dense */
    float *values;  /* owned [count] */
} lr_lor_data;

/* Zeroed dense data for all LORs, or NULL. */
LR_API lr_lor_data *lr_lor_data_create(const lr_lors *lors, const lr_log *log);

/* Counts how often each LOR occurs in `events` (LOR numbers, any order; negative ones are
 * skipped). The result is sparse. */
LR_API lr_lor_data *lr_lor_data_bin(const int64_t *events, int64_t num_events, const lr_log *log);

/* A dense copy. */
LR_API lr_lor_data *lr_lor_data_expand(const lr_lor_data *data, const lr_lors *lors,
                                       const lr_log *log);

/* Destroying NULL is allowed. */
LR_API void lr_lor_data_destroy(lr_lor_data *data);

#ifdef __cplusplus
}
#endif

#endif
