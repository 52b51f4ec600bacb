/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A kernel and a grid by rows of a lattice and octets of these, for gathers by bands. No CUDA in it. */
#ifndef LR_CUDA_BAND_ROWS_H
#define LR_CUDA_BAND_ROWS_H

#include "cuda_interop/direct/passes.h"
#include "direct/lattice.h"

/* The places that a row of the lattice has in the kernel, from an output on: first > last: none. octets:
 * the first and the last octet of sources that have weights for an octet of outputs. */
struct lr_band_span {
    int first, last;
    int octets[2];
};

/* The kernel by rows of the lattice: those at a row offset d and a slice offset. */
struct lr_band_rows {
    struct lr_lattice lattice;
    int least[2], count[2];     /* row offsets, slice offsets */
    struct lr_band_span *spans; /* owned [count[0]][count[1]] */
};

/* An octet of sources at a slice offset. */
struct lr_band_half {
    int octet, slice;
};

/* errors: LR_FAILED; *rows holds nothing then. */
lr_status lr_band_rows_init(struct lr_band_rows *rows, const struct lr_lattice *lattice,
                            const struct lr_direct_shape *shape, const lr_log *log);
void lr_band_rows_finish(struct lr_band_rows *rows);

/* d, slice: from the least on. */
struct lr_band_span *lr_band_span_at(const struct lr_band_rows *rows, int d, int slice);
bool lr_band_is_empty(const struct lr_band_span *span);

/* --- a warp's lists of steps: one for each row offset d that its first row may have --- */

int lr_band_count_lists(const struct lr_band_rows *rows);

/* The span of a warp's row i in list d; NULL: it has none. */
const struct lr_band_span *lr_band_span_of(const struct lr_band_rows *rows, int d, int i, int slice);

/* Whether row i has weights for a half. */
bool lr_band_has_half(const struct lr_band_rows *rows, int d, int i, const struct lr_band_half *half);

/* Octets of sources that a list's steps have: from the first to the last; last < first: none. */
void lr_band_range(const struct lr_band_rows *rows, int d, int range[2]);

/* Halves of a list. */
int lr_band_count_halves(const struct lr_band_rows *rows, int d);

/* Writes them, those of an octet one after the other, and returns how many there are. */
int lr_band_list_halves(const struct lr_band_rows *rows, int d, struct lr_band_half *halves);

/* --- the grid's rows --- */

/* What the grid has of a row: the first octet, and the one after the last; the first place, from that of
 * the first octet, and the one after the last. */
void lr_band_grid_row(const struct lr_lattice *lattice, const int32_t size[2], int row, int32_t found[4]);

/* Of all rows that the grid has columns on. */
int64_t lr_band_count_octets(const struct lr_lattice *lattice, const int32_t size[2]);

#endif
