/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Every element of a pair of modules and a column of sample points, handed over in the same order
 * and with the same bits whoever asks: forward, back and rows differ in what they do with them. */
#ifndef LR_NATIVE_VISIT_H
#define LR_NATIVE_VISIT_H

#include "native/kernels.h"

#include <stdatomic.h>

/* A column of sample points. */
struct lr_native_column {
    double point[2];     /* across */
    const double *along; /* [count] */
    int count;
    const float *wanted; /* [count] points where this is 0 are passed over; NULL = none */
};

/* The elements of point k and the crystal columns of a block (native/scene.h), whose value at
 * offset[n] has the weight[n]; some weights are 0. count is a multiple of LR_NATIVE_LANES. */
struct lr_native_part {
    int64_t block;
    int ci, cj;
    int k;
    int count;
    const float *weight;
    const int32_t *offset;
};

struct lr_native_visit {
    int64_t pair;
    struct lr_native_range range;
    lr_status (*take)(void *user, const struct lr_native_part *part);
    void *user;
};

/* What the overlaps of parallel modules with a column depend on. */
struct lr_native_flat_key {
    int64_t pair; /* -1: of none */
    bool i_is_primary;
    double tau;
    int parts;
    const double *along; /* [count] points */
    int count;
    double starts[2];
};

/* Overlaps of parallel modules, the same for every strip, with every point of a column. */
struct lr_native_flat {
    struct lr_native_flat_key key;
    int64_t capacity, num_points;
    float *y, *height;
    int32_t *offset;
    int32_t *begin; /* [key.count + 1] */
};

/* How far jobs are that several threads do, and whether they are to go on. */
struct lr_native_watch {
    const struct lr_native_run_state *run;
    atomic_llong num_begun, num_done;
    atomic_int status; /* the first that is not LR_OK */
    double next_s;     /* when to report again; of the thread that began the work */
};

/* Working memory of one thread. */
struct lr_native_view {
    struct lr_native_watch *watch; /* NULL while no jobs are done */
    bool reports;                  /* the thread that began the work, which reports progress */
    const struct lr_native_scene *scene;
    const struct lr_native_kernels *kernels;
    struct lr_native_strip *strips;
    struct lr_native_slots slots;
    void *memory; /* of the slots */
    struct lr_native_flat flat;
};

lr_status lr_native_view_init(struct lr_native_view *view, const struct lr_native_scene *scene);
void lr_native_view_finish(struct lr_native_view *view);

/* Whether to go on, for loops within a job that can take long: LR_OK, or why not. */
lr_status lr_native_ask(struct lr_native_view *view);

/* errors: what take returns; LR_FAILED, out of memory, logged. */
lr_status lr_native_visit_column(struct lr_native_view *view, const struct lr_native_visit *visit,
                                 const struct lr_native_column *column);

/* All crystal columns of a pair that have LORs of the part; NULL: all. */
struct lr_native_range lr_native_whole_pair(const struct lr_native_scene *scene, int64_t pair,
                                            const lr_selection *part);

/* Forward sums are floats, as vectors of them are fast, and a float loses more and more of what is added to it. So
 * they go on to doubles behind some columns of points: each one where cells are few, and so have many terms,
 * else those at the end of some rows. The same for whole pairs and single LORs, which have the same bits. */
bool lr_native_sums_each_column(const struct lr_native_scene *scene, int64_t pair);
bool lr_native_sums_row(int y);

/* The cells of a pair in the given roles. */
struct lr_native_axial lr_native_make_axial(const struct lr_native_scene *scene, int64_t pair, bool i_is_primary);

/* Whether module i is the primary of a point in sampled mode: its centre is farther, or as far. */
bool lr_native_farther_is_i(const struct lr_native_scene *scene, int64_t pair, const double point[2], double along);

/* --- parallel modules --- */

/* Computes what the key asks for, unless it is there. axials: of the parts. */
lr_status lr_native_flat_fill(struct lr_native_flat *flat, const struct lr_native_flat_key *key,
                              const struct lr_native_axial *axials, const lr_log *log);
void lr_native_flat_finish(struct lr_native_flat *flat);

/* Weights, to the view's slots, of a strip with point k; *offset says where their values stand.
 * Returns how many. */
int lr_native_flat_weigh(const struct lr_native_view *view, const struct lr_native_strip *strip, int k,
                         const int32_t **offset);

/* --- where columns lie that may see a pair --- */

/* Between two segments. */
struct lr_native_hull {
    double corner[4][2];
};

struct lr_native_hull lr_native_make_hull(const struct lr_native_scene *scene, int64_t pair,
                                          const struct lr_native_range *range);

/* Rows of sample points (across axis 1) that the hull may meet: begin, end. */
void lr_native_hull_rows(const struct lr_native_scene *scene, const struct lr_native_hull *hull, int rows[2]);

/* Columns of one such row: begin, end. */
void lr_native_hull_columns(const struct lr_native_scene *scene, const struct lr_native_hull *hull, int row,
                            int columns[2]);

#endif
