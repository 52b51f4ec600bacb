/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The steps from a list of crystals to modules (lr/crystals.h). Crystals that are arranged like a grid form a panel.
 * A panel is fitted by a plane, two axes and two pitches, and cut into uniform blocks. Blocks that form rings are
 * numbered like in lr_scanner_create_ring. */
#pragma once

#include "model/scanner/point_hash.h"

#include <lr/crystals.h>

#include <stddef.h>

/* Largest number of modules. The table of module pairs grows with the square of this number. */
#define LR_MAX_CRYSTAL_MODULES 65536

/* Size of the hash's cells divided by the list's spacing (lr_crystals_spacing_mm). */
#define LR_CELLS_PER_SPACING 1.25
#define LR_FAR_CELLS 4

/* The panel of each crystal, and its place in the panel's grid. */
struct lr_crystal_growth {
    const lr_crystal_list *list;
    struct lr_point_hash hash;
    struct lr_point_hash far; /* cells that are LR_FAR_CELLS times as long, for crystals without near neighbours */
    int *panel;               /* [num_crystals]; -1 = none yet */
    int (*places)[2];         /* [num_crystals] places in the panel's grid, along its two directions; the origin is
                                 arbitrary */
    int *block;               /* [num_crystals] index of the crystal's block, set when its panel has been fitted */
    int num_panels;
    int64_t seen; /* number of crystals examined so far; a limit of this number bounds the time */
};

/* A uniform piece of a panel. */
struct lr_crystal_block {
    int first_listed; /* lowest index of the block's crystals in the list; blocks are sorted by this index */
    lr_module module; /* the module; its normal is set */
    int first[2];     /* place of the module's crystal (0, 0) */
    int appended;     /* index of the block in the order of appending, as in lr_crystal_growth.block */
};

struct lr_crystal_blocks {
    struct lr_crystal_block *items;
    int count;
    int64_t room;
};

/* The residuals of a panel's fit to a flat grid, and the crystals that lie farthest from their places. */
struct lr_crystal_misfit {
    bool fits;
    bool filled;     /* false if the crystals do not fill the grid of places */
    int grid[2];     /* numbers of places */
    int crystals[3]; /* -1 = none */
    double off_mm[3];
};

/* The crystals of a panel. */
struct lr_crystal_panel {
    struct lr_crystal_growth *growth;
    const int *members; /* [count] crystals */
    int count;
    double tolerance_mm;
};

/* Fits one panel and appends its blocks. Places of its crystals are rotated and shifted so that they begin at 0 and run
 * along u and v. If the panel does not fit within the tolerance, misfit->fits is false and nothing is appended.
 * errors: LR_BAD_INPUT if sizes or axes contradict each other. */
lr_status lr_crystal_panel_fit(const struct lr_crystal_panel *panel, struct lr_crystal_blocks *blocks,
                               struct lr_crystal_misfit *misfit);

/* Sorts the blocks. If they form rings, the places around the ring, the rings and the crystal rings are numbered. The
 * blocks then get the order of lr_scanner_create_ring, starting at the place of the list's first crystal. Otherwise the
 * blocks get the order in which their first crystals are in the list. An axial gap of a pitch or more separates rings;
 * a smaller gap separates blocks of one ring. num_positions: places around the ring, 0 = no ring. */
lr_status lr_crystal_blocks_arrange(struct lr_crystal_blocks *blocks, double tolerance_mm, int *num_positions,
                                    const lr_log *log);

/* The largest distance found so far between a crystal and its place, and the limit of this distance. */
struct lr_crystal_bounds {
    double off_mm, tolerance_mm;
};

/* Makes the arranged blocks of a ring exactly equal, if this increases the largest distance between a crystal and its
 * place by little (share_more, mm_more and line_more in crystal_rings.c). Otherwise the blocks are not changed. */
lr_status lr_crystal_blocks_idealise(struct lr_crystal_blocks *blocks, int num_positions,
                                     const struct lr_crystal_growth *growth, struct lr_crystal_bounds *bounds);

/* Like lr_scanner_from_crystals, but all crystals are treated as one layer; layers in the list are ignored. */
lr_scanner *lr_scanner_from_one_layer(const lr_crystal_list *list, int *crystal_of, double *residual_mm);
