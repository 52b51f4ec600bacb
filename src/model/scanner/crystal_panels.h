/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The way from a list of crystals to modules (lr/crystals.h), step by step: crystals that follow
 * each other like a grid form a panel; a panel is fitted by a plane, two axes and two pitches, and
 * cut into uniform blocks; blocks that form rings are numbered as lr_scanner_create_ring does. */
#ifndef LR_MODEL_CRYSTAL_PANELS_H
#define LR_MODEL_CRYSTAL_PANELS_H

#include "model/scanner/point_hash.h"

#include <lr/crystals.h>

#include <stddef.h>

/* More modules than this are refused: the table of module pairs grows with their square. */
#define LR_MAX_CRYSTAL_MODULES 65536

/* Size of the hash's cells over the list's spacing (lr_crystals_spacing_mm). */
#define LR_CELLS_PER_SPACING 1.25
#define LR_FAR_CELLS 4

/* The panel of each crystal, and its place in the panel's grid. */
struct lr_crystal_growth {
    const lr_crystal_list *list;
    struct lr_point_hash hash;
    struct lr_point_hash far; /* cells LR_FAR_CELLS times as long, for crystals without near neighbours */
    int *panel;               /* [num_crystals]; -1 = none yet */
    int (*places)[2];         /* [num_crystals] along the panel's two directions, any origin */
    int *block;               /* [num_crystals] index in the blocks, once its panel is fitted */
    int num_panels;
    int64_t seen; /* crystals looked at so far: what bounds the time */
};

/* A uniform piece of a panel. */
struct lr_crystal_block {
    lr_module module; /* normal set */
    int first[2];     /* places of its crystal (0, 0) */
    int first_listed; /* least number in the list of its crystals */
    int appended;     /* how many blocks came before it; lr_crystal_growth.block */
};

struct lr_crystal_blocks {
    struct lr_crystal_block *items;
    int count;
    int64_t room;
};

/* The fit of a panel to a flat grid, and the crystals that lie farthest from their places. */
struct lr_crystal_misfit {
    bool fits;
    bool filled;     /* false: the crystals do not fill the grid of places */
    int grid[2];     /* places */
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

/* Fits one panel and appends its blocks. Places of its crystals are turned to begin at 0 and run along u and v. If
 * the panel does not fit within the tolerance, misfit->fits is false and nothing is appended. errors: LR_BAD_INPUT
 * if sizes or axes contradict each other. */
lr_status lr_crystal_panel_fit(const struct lr_crystal_panel *panel, struct lr_crystal_blocks *blocks,
                               struct lr_crystal_misfit *misfit);

/* Numbers places around the ring, rings and crystal rings if the blocks form rings, and sorts them as
 * lr_scanner_create_ring has them, from the place of the list's first crystal on; else sorts them by their first
 * crystals in the list. An axial gap of a pitch or more separates rings, a smaller one the blocks of a ring.
 * num_positions: places around the ring, 0 = no ring. */
lr_status lr_crystal_blocks_arrange(struct lr_crystal_blocks *blocks, double tolerance_mm, int *num_positions,
                                    const lr_log *log);

/* The largest distance of a crystal from its place so far, and its limit. */
struct lr_crystal_bounds {
    double off_mm, tolerance_mm;
};

/* Makes the arranged blocks of a ring exactly equal if the crystals then lie hardly farther off
 * their places (half more, and 1e-4 mm); else leaves them as they are. */
lr_status lr_crystal_blocks_idealise(struct lr_crystal_blocks *blocks, int num_positions,
                                     const struct lr_crystal_growth *growth, struct lr_crystal_bounds *bounds);

/* The modules that become a scanner, and what they may be changed by: the detection depth and the tolerance. */
struct lr_crystal_room {
    const char *title;
    lr_module *modules; /* [num_modules] normals set */
    int num_modules;
    double *detection_depth_mm;
    double tolerance_mm;
    const lr_log *log;
};

/* Does lr_scanner_from_crystals for crystals that are all in one layer, whatever the list says. */
lr_scanner *lr_scanner_from_one_layer(const lr_crystal_list *list, int *crystal_of, double *residual_mm);

#endif
