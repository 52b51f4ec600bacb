/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The order in which a device projects one view. A thread computes several neighbouring columns of output voxels in one
 * row of the grid's lattice. The row runs nearly along the line of response. Most outputs of the thread therefore need
 * the same source columns, and the thread reads each source column once. */
#pragma once

#include "direct/tables.h"

enum {
    LR_LATTICE_OUTPUTS = 4, /* columns of a thread */
    LR_LATTICE_TAPS = 4,    /* largest number of offsets of a step along a column */
    LR_LATTICE_SHAPES = 3,  /* number of shapes of steps: one tap, three taps or four taps */
    LR_LATTICE_CANDIDATES = 8,
    LR_LATTICE_CLASSES = LR_LATTICE_SHAPES * 4 * 2
};

/* number / by, rounded down. */
static inline int lr_floor_div(int number, int by)
{
    return number >= 0 ? number / by : -((by - 1 - number) / by);
}

/* A step of a thread. For each output, the thread reads the slices quad * 4 + shift + r, r < taps, of one source
 * column. The column's position is relative to the thread's first output, and the slices are relative to the output's
 * slice. */
struct lr_lattice_step {
    int32_t column[2]; /* x, y */
    int32_t quad, shift, taps;
    int32_t mask;                                         /* bit j: output j has an offset in this step */
    int32_t offsets[LR_LATTICE_OUTPUTS][LR_LATTICE_TAPS]; /* indices into mSR; -1 = none */
};

/* The output columns of a thread are first + j * next, for j < LR_LATTICE_OUTPUTS. Each thread has its own integers p
 * and q, and its first column is p * LR_LATTICE_OUTPUTS * next + q * across. */
struct lr_lattice {
    int next[2], across[2];
    int count;
    struct lr_lattice_step *steps;     /* owned [count], sorted by class */
    int first[LR_LATTICE_CLASSES + 1]; /* steps of class c are first[c] .. first[c + 1] - 1 */
};

/* Lists the lattices whose rows are close enough to the line of response for a cheap gather. Sets next and across, but
 * no steps. Returns the number of lattices. */
int lr_lattice_candidates(const struct lr_direct_shape *shape, struct lr_lattice candidates[LR_LATTICE_CANDIDATES]);

/* Finds the lattice that needs the fewest instructions, and its steps. errors: LR_FAILED; *lattice is empty then. */
lr_status lr_lattice_init(struct lr_lattice *lattice, const struct lr_direct_shape *shape, const lr_log *log);
void lr_lattice_finish(struct lr_lattice *lattice);

/* Coordinates `at` of a grid column along the lattice's rows and across them: column = at[0] next + at[1] across. */
void lr_lattice_place_column(const struct lr_lattice *lattice, const int32_t column[2], int at[2]);

/* The smallest and the largest coordinates of a grid's columns, along the lattice's rows and across them. */
void lr_lattice_extent(const struct lr_lattice *lattice, const int size[2], int least[2], int most[2]);

/* The smallest and the largest p and q (struct lr_lattice) of the threads that cover a grid. */
void lr_lattice_range(const struct lr_lattice *lattice, const int size[2], int least[2], int most[2]);
