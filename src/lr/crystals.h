/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_CRYSTALS_H
#define LR_CRYSTALS_H

#include <lr/scanner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A scanner as other programs list it: crystal by crystal. Our frame, millimetres. */
typedef struct lr_crystal {
    double centre_mm[3]; /* centre of the crystal's volume */
    double axes[3][3];   /* unit vectors along u, v and depth; a zero vector = not known. Their
                            signs mean nothing */
    double size_mm[3];   /* along u, v and depth; 0 = not known */
    int group;           /* crystals of one group are known to belong together (a PETSIRD module, a
                            CASToR rsector); -1 = not known. Groups never share a module */
    int layer;           /* layer in depth, 0 in front (lr/scanner.h) */
} lr_crystal;

/* Zero fields are defaults. */
typedef struct lr_crystal_list {
    const lr_crystal *crystals; /* [num_crystals] */
    int num_crystals;
    const char *name;  /* name of the scanner */
    double face_mm[2]; /* face of crystals of unknown size; 0 = the pitch found */
    double depth_mm;   /* depth of crystals of unknown size; 0 is an error if one has none */
    lr_coincidence coincidence;
    double detection_depth_mm, tof_resolution_ps, crystal_mu_per_mm;
    const char *source;
    double tolerance_mm; /* largest distance of a crystal from its place; 0 = 0.05 */
    bool infers_sizes;   /* true: a crystal without a neighbour across gets the width that the next crystal leaves
                            free (the list's spacing if there is no other), and crystals too long for the gap between
                            panels are shortened around their centres, to half at most, with a warning. false: both
                            are errors */
    bool finds_layers;   /* true if the list has no layers: a module directly behind another, at most one crystal
                          * depth away, becomes a layer of it */
    const lr_log *log;
} lr_crystal_list;

/* Turns a crystal list back into flat, uniform modules: finds panels, the axes and pitches of
 * their grids, and cuts a panel into blocks where gaps between crystals are wider. Places around
 * the ring and rings are filled in where the modules form rings of three places or more: the first
 * place is that of the list's first crystal, and an axial gap of a pitch or more separates rings.
 *
 * Rings whose panels differ by no more than the list's rounding or noise become exactly regular.
 *
 * Crystals without known axes face the scanner's axis where their panel is one crystal wide.
 * Crystals whose known axes differ are never in one module, so a curved panel that says where each
 * column looks becomes modules of one column; without that it is refused.
 *
 * Layers are turned into modules one by one, and stand behind those in front of them in the scanner's
 * order. They keep places around the ring where all layers have as many.
 *
 * crystal_of: [num_crystals], the scanner's number of each crystal of the list; may be NULL.
 * residual_mm: the largest distance between a crystal of the list and its place, also where that
 *              is the reason of refusal; may be NULL.
 * errors: NULL (LR_BAD_INPUT) where no such modules lie within the tolerance: the message names the crystals that are
 * farthest from their places, and the distance. */
LR_API lr_scanner *lr_scanner_from_crystals(const lr_crystal_list *list, int *crystal_of, double *residual_mm);

/* Typical distance of crystals of a list from their nearest neighbours, mm: the median over some of them; 1 if
 * there are none. */
LR_API double lr_crystals_spacing_mm(const lr_crystal_list *list);

#ifdef __cplusplus
}
#endif

#endif
