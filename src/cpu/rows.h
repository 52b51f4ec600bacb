/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows of the matrix, computed block by block: the rows of a block in parallel, each by one worker
 * from start to end, then handed over in ascending order. So nothing depends on the number of
 * threads. */
#ifndef LR_CPU_ROWS_H
#define LR_CPU_ROWS_H

#include "cpu/scene.h"
#include "model/lors/elements.h"

struct lr_cpu_worker; /* working memory of one thread */

/* The whole backend: what `self` is. */
struct lr_cpu {
    struct lr_cpu_scene scene;
    int num_workers;
    struct lr_cpu_worker *workers; /* [num_workers] */
    int block_rows;
    struct lr_elements *block; /* [block_rows] elements of the rows at hand */
};

lr_status lr_cpu_init(struct lr_cpu *cpu, const struct lr_backend_params *params);
void lr_cpu_finish(struct lr_cpu *cpu);

/* The view of worker 0, for work outside rows. */
struct lr_cpu_view *lr_cpu_first_view(struct lr_cpu *cpu);

/* The rows of all voxels of the backend's grid. */
struct lr_rows lr_cpu_grid_rows(const struct lr_cpu *cpu);

/* Takes the finished rows first .. first + num_rows - 1, cpu->block[0 .. num_rows - 1]: sorted by
 * LOR, without repeats, positive. */
typedef lr_status lr_cpu_take(void *user, struct lr_cpu *cpu, int64_t first, int num_rows);

/* How lr_cpu_each_block goes about it. */
struct lr_cpu_walk {
    const char *what;    /* for the progress report */
    const double *image; /* rows of voxels that are 0 here are left empty; NULL = all rows */
    lr_cpu_take *take;
    void *user;
};

/* Computes the rows block by block and has each taken, reporting progress.
 * errors: LR_FAILED, out of memory, logged; LR_CANCELLED; what take returned. */
lr_status lr_cpu_each_block(struct lr_cpu *cpu, const struct lr_rows *rows, const struct lr_cpu_walk *walk);

#endif
