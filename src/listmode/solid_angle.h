/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The solid angle of a LOR, by which elements of tubes, thin lines and blobs are multiplied so that images count
 * emissions (docs/method/listmode.md, "Solid angle"). */
#pragma once

/* The same text is compiled for the host and for CUDA devices. */
#ifdef __CUDACC__
#define LR_HOST_AND_DEVICE __host__ __device__
#else
#define LR_HOST_AND_DEVICE
#endif

/* The faces of all crystals. A struct of zeros stands for LORs that are not weighted. */
struct lr_listmode_faces {
    double (*areas_mm2)[3]; /* owned, [num_crystals] the module's inward normal times the area of the crystal's face */
    double per_voxel;       /* 1 / (2 pi volume of a voxel), 1/mm^3 */
};

/* Returns a cos(alpha) b cos(beta) / L^2, in mm^2, for the line from a to b, the centres of two crystals on the detection
 * plane, mm. 0 if one of the faces looks away. area_a, area_b: as in lr_listmode_faces. */
static inline LR_HOST_AND_DEVICE double lr_listmode_face_product(const double area_a[3], const double area_b[3],
                                                                 const double a[3], const double b[3])
{
    double square = 0, seen_a = 0, seen_b = 0;
    for (int k = 0; k < 3; k++) {
        const double along = b[k] - a[k];
        square += along * along;
        seen_a += area_a[k] * along;
        seen_b -= area_b[k] * along;
    }
    return seen_a > 0 && seen_b > 0 ? seen_a * seen_b / (square * square) : 0;
}

/* Returns G in 1/mm: times the length of a line in a voxel, G is the probability that an emission there is detected by
 * the crystals a and b. hits: centres of the crystals on the detection plane, mm. */
static inline double lr_listmode_solid_angle(const struct lr_listmode_faces *faces, const double (*hits)[3], int a,
                                             int b)
{
    return faces->per_voxel * lr_listmode_face_product(faces->areas_mm2[a], faces->areas_mm2[b], hits[a], hits[b]);
}
