/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a scanner measures of all lines in one direction: a table across the direction for each view that
 * the lines' LORs belong to (docs/method/direct.md, "Factors of a scanner"). */
#ifndef LR_DIRECT_FACTOR_TABLE_H
#define LR_DIRECT_FACTOR_TABLE_H

#include "model/lors/attenuation.h"
#include "model/simulate/rays.h"

#include <lr/direct.h>

/* A crystal as LORs need it. */
struct lr_factor_crystal {
    double hit_mm[3]; /* where hits are read */
    int module;
    float efficiency;
};

/* What is the same for all directions. Zero is valid and finishes to nothing. */
struct lr_factor_scene {
    const lr_lors *lors;
    lr_grid grid;
    lr_view_set set;                    /* complete */
    struct lr_factor_crystal *crystals; /* owned [num_crystals] */
    struct lr_mu_lines mu;              /* where has_mu */
    bool has_mu;
    double mu_step_mm;     /* between lines that it is integrated along */
    double outer_mm;       /* no crystal is farther from the axis */
    double cell_mm[2];     /* of tables, along the radial and the axial axis */
    int lines_per_cell[2]; /* alike */
    int most_size[2];      /* that a table may have */
};

struct lr_factor_direction {
    double axes[3][3]; /* tof, radial, axial, as of a view */
    double weight;     /* its share of the solid angle that views have in the mean */
    double shift[2];   /* of the lattice of lines, 0 .. 1 of its step */
    int view;          /* whose intervals hold it; -1: beyond the acceptance */
};

/* Values of lines, by the view of their LOR. Zero is valid and finishes to nothing. */
struct lr_factor_table {
    double first_mm[2]; /* middle of the first cell */
    int size[2];        /* cells; voxel centres are at least one cell within the outermost middles */
    int num_planes;
    struct lr_factor_plane {
        int view;
        int low[2], high[2]; /* cells beyond these are 0 */
        float *cells;        /* owned [size[1]][size[0]] */
    } * planes;              /* owned */
};

/* What a thread needs. Zero is valid and finishes to nothing. */
struct lr_factor_worker {
    struct lr_bundle bundle;
    double *integrals; /* owned: of mu, on a lattice mu_step_mm wide; NaN = not known yet */
};

lr_status lr_factor_worker_init(struct lr_factor_worker *worker, const struct lr_factor_scene *scene,
                                const lr_log *log);
void lr_factor_worker_finish(struct lr_factor_worker *worker);

/* Overwrites the table, which was finished. errors: LR_FAILED without memory, not logged. */
lr_status lr_factor_table_fill(struct lr_factor_table *table, const struct lr_factor_scene *scene,
                               const struct lr_factor_direction *direction, struct lr_factor_worker *worker);
void lr_factor_table_finish(struct lr_factor_table *table);

#endif
