/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * How fast backends are on a problem, by a short trial whose result is kept between runs. */
#ifndef LR_OPERATOR_MEASURE_H
#define LR_OPERATOR_MEASURE_H

#include "operator/facade.h"

/* One backend's result. The caller sets `choice`, lr_measure_speeds the rest. */
struct lr_speed {
    const struct lr_backend_choice *choice;
    double voxel_us;    /* one voxel forward and back, on average over the grid; 0 = not timed */
    int standing;       /* who is timed only where none of a lower standing runs: 0 = a graphics
                           processor, or the processor's vector units; 1 = what a processor does in
                           place of a graphics processor, and the reference */
    bool is_emulated;   /* as in struct lr_backend */
    bool is_remembered; /* from an earlier run */
    bool is_out;        /* it answers LR_NO_DEVICE or LR_USAGE, with this reason */
    char reason[1024];
};

/* Tries backends on the operator's scanner and settings, with few sample points spread over its
 * grid, more of them (at most 64 x 64 x 16) while that takes no time, and stops each projection after
 * a fraction of a second, when it has told by its progress how far it is. Backends of one device,
 * scanner and setting are tried once; from then on the file of io/files/notes.h knows, unless other
 * programs held the processor meanwhile. With one backend of the lowest standing nothing is timed;
 * nor is it for a `deterministic` operator, which only hears who runs.
 *
 * The caller's log hears of errors only. speeds: [count].
 * errors: LR_CANCELLED; what a backend says, except for is_out. */
lr_status lr_measure_speeds(struct lr_operator *op, struct lr_speed *speeds, int count);

/* The same for op->choice alone, into op->voxel_us, unless that is known. */
lr_status lr_measure_speed(struct lr_operator *op);

#endif
