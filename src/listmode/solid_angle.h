/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The solid angle of a LOR, by which elements of tubes, thin lines and blobs are multiplied so that images count
 * emissions (docs/method/listmode.md, "Solid angle"). */
#pragma once

#include "base/vec.h"

/* The faces of all crystals. A struct of zeros stands for LORs that are not weighted. */
struct lr_listmode_faces {
    double (*areas_mm2)[3]; /* owned, [num_crystals] the module's inward normal times the area of the crystal's face */
    double per_voxel;       /* 1 / (2 pi volume of a voxel), 1/mm^3 */
};

/* Returns G in 1/mm: times the length of a line in a voxel, G is the probability that an emission there is detected by
 * the crystals a and b. 0 if one of the faces looks away. hits: centres of the crystals on the detection plane,
 * mm. */
static inline double lr_listmode_solid_angle(const struct lr_listmode_faces *faces, const double (*hits)[3], int a,
                                             int b)
{
    double along[3];
    vec_sub(hits[b], hits[a], along);
    const double square = vec_dot(along, along);
    const double seen_a = vec_dot(faces->areas_mm2[a], along), seen_b = -vec_dot(faces->areas_mm2[b], along);
    return seen_a > 0 && seen_b > 0 ? faces->per_voxel * seen_a * seen_b / (square * square) : 0.0;
}
