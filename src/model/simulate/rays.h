/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The modules and crystals that rays hit. */
#pragma once

#include <lr/scanner.h>
#include <stdint.h>

/* --- one ray, whose modules are found by the azimuths at which it leaves two cylinders --- */

enum { LR_SIGHT_SECTORS = 64 };

/* Modules sorted into sectors. A zeroed struct is valid, and lr_sight_finish then does nothing. */
struct lr_sight {
    const struct lr_scanner *scanner;
    double radius_mm[2], axial_mm[2]; /* ranges that contain all detection planes */
    bool is_open;                     /* true if the axis is free of detection planes */
    int first[LR_SIGHT_SECTORS + 1];  /* index of the first module of each sector */
    int *modules;                     /* owned, ascending in each sector */
};

/* errors: LR_FAILED if memory runs out. */
lr_status lr_sight_init(struct lr_sight *sight, const struct lr_scanner *scanner, const lr_log *log);
void lr_sight_finish(struct lr_sight *sight);

/* Range of sectors whose modules a ray may hit: first .. last in the direction of increasing azimuth, which may cross
 * azimuth 0. last < first = none. */
struct lr_sight_sectors {
    int first, last;
};

/* Finds the sectors whose modules a ray may hit. direction: unit vector. */
struct lr_sight_sectors lr_sight_find(const struct lr_sight *sight, const double point_mm[3],
                                      const double direction[3]);

/* --- parallel lines: modules are drawn one after the other on a lattice across the lines --- */

/* A lattice of lines with the direction `along`. Line (i, k) passes through (first_mm[0] + i step_mm[0]) across[0] +
 * (first_mm[1] + k step_mm[1]) across[1]. The three axes are orthogonal unit vectors. */
struct lr_bundle_lines {
    double along[3], across[2][3];
    double first_mm[2], step_mm[2];
    int size[2];
};

/* A bundle of parallel lines. A zeroed struct is valid, and lr_bundle_finish then does nothing. Each thread needs its
 * own bundle. */
struct lr_bundle {
    const lr_scanner *scanner;
    int num_layers;
    int64_t num_lines;         /* lines of the current bundle */
    double (*detection_mm)[3]; /* owned [num_modules]: centres of the detection planes */
    float *distance_mm;        /* owned [num_layers][2][num_lines], from the line's point nearest to the scanner's
                                  axis */
    int32_t *crystals;         /* owned [num_layers][2][num_lines]: crystals hit; second index: 0 = in direction
                                  -`along`, 1 = in direction `along` */
};

/* room: number of lines of the largest lattice. errors: LR_FAILED, out of memory. */
lr_status lr_bundle_init(struct lr_bundle *bundle, const lr_scanner *scanner, int64_t room, const lr_log *log);
void lr_bundle_finish(struct lr_bundle *bundle);

/* Follows lines in both directions from their points nearest to the axis. In each direction and layer, the first module
 * on the line counts. Its crystal is recorded if the line hits the crystal's face from the front, as in
 * lr_events_from_activity. */
void lr_bundle_follow(struct lr_bundle *bundle, const struct lr_bundle_lines *lines);

/* The crystal of a layer that each line hits, [size[1]][size[0]]; -1 = none, or a gap. side: 0 = in direction -`along`,
 * 1 = in direction `along`. */
const int32_t *lr_bundle_crystals(const struct lr_bundle *bundle, int layer, int side);
