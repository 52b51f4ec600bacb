/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_CRYSTALS_H
#define LR_CRYSTALS_H

#include <lr/scanner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One entry of another program's list of crystals. Coordinates are in the scanner's frame (lr/scanner.h). */
typedef struct lr_crystal {
    double centre_mm[3]; /* centre of the crystal's volume */
    double axes[3][3];   /* unit vectors along u, v and depth, of either sign; a zero vector = not known */
    double size_mm[3];   /* along u, v and depth; 0 = not known */
    int group;           /* number of the unit to which the crystal belongs, such as a PETSIRD module or a CASToR
                            rsector; -1 = not known. Crystals of different groups are never put into one module */
    int layer;           /* layer in depth, 0 in front (lr/scanner.h) */
} lr_crystal;

/* A list of all crystals of a scanner, and its other properties. Zero fields are defaults. */
typedef struct lr_crystal_list {
    const lr_crystal *crystals; /* [num_crystals] */
    int num_crystals;
    const char *name;  /* name of the scanner */
    double face_mm[2]; /* face of crystals whose size_mm is 0; 0 = the pitch found from the positions */
    double depth_mm;   /* depth of crystals whose size_mm is 0; must be above 0 if there are any */
    lr_coincidence coincidence;
    double detection_depth_mm, tof_resolution_ps, crystal_mu_per_mm;
    const char *source;
    double tolerance_mm; /* largest distance between a crystal and its position in a module; 0 = 0.05 */
    bool infers_sizes;   /* true: a crystal of unknown width, without a neighbour along an axis of its panel, gets a
                            width along this axis. The width is the space that the nearest crystal of another panel
                            leaves or, if there is none, the list's spacing. Crystals too long for the gap between
                            panels are shortened around their centres with a warning, to no less than half their length.
                            false: such crystals, and crystals too long for the gap, are errors */
    bool finds_layers;   /* true: a module directly behind another one, at most one crystal depth away, becomes a layer
                            of the same block; for lists that do not state layers */
    const lr_log *log;
} lr_crystal_list;

/* Makes flat, uniform modules from a crystal list. Crystals that are arranged like a grid form a panel. Panels, and the
 * axes and pitches of their grids, are found from the positions. A panel is cut into blocks where gaps between crystals
 * are wider. If the modules form rings of at least three positions, `position` and `ring` of the modules are set.
 * Position 0 has the list's first crystal, and an axial gap of at least a pitch separates rings.
 *
 * Rings become exactly regular if their panels differ by no more than the list's rounding or noise.
 *
 * Crystals without known axes face the scanner's axis if their panel is one crystal wide. Crystals with different known
 * axes are never in one module. A curved panel therefore becomes modules of one column if the axes of each column are
 * known, and is refused otherwise.
 *
 * Each layer becomes separate modules. In the scanner's order, modules of deeper layers follow the modules in front of
 * them. Modules have positions around the ring if all layers have the same number of positions.
 *
 * crystal_of: [num_crystals], the scanner's number of each crystal of the list; may be NULL. residual_mm: the largest
 * distance between a crystal of the list and its position in a module; may be NULL. residual_mm is set even if this
 * distance exceeds the tolerance.
 * errors: NULL (LR_BAD_INPUT) if no modules agree with the list within the tolerance. The message names the crystals
 * that are farthest from their positions, and the distance. */
LR_API lr_scanner *lr_scanner_from_crystals(const lr_crystal_list *list, int *crystal_of, double *residual_mm);

/* Typical distance between a crystal of a list and its nearest neighbour, mm: the median over a sample of the crystals;
 * 1 if the list is empty. */
LR_API double lr_crystals_spacing_mm(const lr_crystal_list *list);

#ifdef __cplusplus
}
#endif

#endif
