/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Which crystals parallel lines meet at both ends: modules are drawn one after the other on a lattice across
 * the lines, instead of asking each line for its modules. */
#ifndef LR_MODEL_SIMULATE_BUNDLE_H
#define LR_MODEL_SIMULATE_BUNDLE_H

#include <lr/scanner.h>
#include <stdint.h>

/* Lines along `along`: line (i, k) passes through the sum over the two axes `across` of
 * (first_mm + step_mm times i or k) times the axis. All three axes are unit and orthogonal. */
struct lr_bundle_lines {
    double along[3], across[2][3];
    double first_mm[2], step_mm[2];
    int size[2];
};

/* Zero is valid and finishes to nothing. Threads: one bundle each. */
struct lr_bundle {
    const lr_scanner *scanner;
    int num_layers;
    int64_t num_lines;         /* at hand */
    double (*detection_mm)[3]; /* owned [num_modules]: centres of the detection planes */
    float *distance_mm;        /* owned [num_layers][2][num_lines], from the line's point nearest to the
                                  scanner's axis */
    int32_t *crystals;         /* owned, alike: what is met against `along`, then along it */
};

/* room: lines of the largest lattice. errors: LR_FAILED without memory. */
lr_status lr_bundle_init(struct lr_bundle *bundle, const lr_scanner *scanner, int64_t room, const lr_log *log);
void lr_bundle_finish(struct lr_bundle *bundle);

/* Follows lines both ways from their points nearest to the axis: the first module of a layer on either side
 * must be hit on a crystal's face, from the front, as in lr_events_from_activity. */
void lr_bundle_follow(struct lr_bundle *bundle, const struct lr_bundle_lines *lines);

/* Crystals by line, [size[1]][size[0]], of a layer on side 0 (against `along`) or 1; -1: none, or a gap. */
const int32_t *lr_bundle_crystals(const struct lr_bundle *bundle, int layer, int side);

#endif
