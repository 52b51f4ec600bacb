/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_PHANTOM_H
#define LR_PHANTOM_H

#include <lr/grid.h>
#include <lr/lors.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Phantoms are images of relative activity, at most 1. Each voxel has the mean over subsamples^3 points. A phantom's
 * axis runs along z through the grid's centre.
 *
 * "derenzo": rods of activity 1 along the whole grid, without background; six wedges of 60 degrees hold
 *            rods of 1.2, 1.6, 2.4, 3.2, 4.0 and 4.8 mm, counted from +x towards +y, on triangular
 *            lattices spaced by twice their diameter. Needs a radius of at least 9.6 mm.
 * "spheres": a cylinder of activity 0.25 along the whole grid; in its middle plane six spheres of
 *            activity 1 (a contrast of 4 to 1, as in NEMA NU 2) on a circle of half the radius,
 *            60 degrees apart, the smallest on +x. If the cylinder has a diameter of 228.8 mm, those of
 *            the spheres are 10, 13, 17, 22, 28 and 37 mm; they grow in proportion to the cylinder.
 *            Parts beyond the grid are not drawn.
 * "six-spheres": a cylinder along the whole grid and, in its middle plane, six equal spheres of
 *            activity 1, 60 degrees apart from +x; with a radius of 175 mm the spheres have a
 *            diameter of 10 mm and lie 75 mm from the axis, as in paper 1 of lr/direct.h.
 * "cylinder": activity 1 within the radius, along the whole grid.
 * "line": activity 1 in the voxels along z through `at_mm`.
 * "point": activity 1 in the voxel nearest to `at_mm` (the lower voxel on a tie); 0 elsewhere. at_mm NULL: the
 *            scanner's centre, or the grid's middle if the scanner's centre is outside of the grid. */
typedef struct lr_phantom_params {
    const char *name;
    double radius_mm; /* radius of the outer cylinder; 0 = 0.46 of the smaller transaxial grid extent */
    int subsamples;   /* per axis; 0 = 4 */
    double contrast;  /* activity of the spheres divided by the activity of the cylinder, above 1; 0 = 4 for spheres, 6
                         for six-spheres. Not used by other phantoms */
    const lr_log *log;
    const lr_progress *progress;
    const double *at_mm; /* [3] place of "line" (x and y) and "point", in the scanner's frame */
    double value;        /* factor for every voxel, such as 0.0096 for a mu-map of water; 0 = 1 */
} lr_phantom_params;

/* Draws a phantom. errors: NULL, logged, for an unknown name or a phantom that does not fit; LR_CANCELLED. */
LR_SIZED(lr_phantom_params, lr_image *, lr_phantom_create, (const lr_phantom_params *params, const lr_grid *grid),
         (params, grid));

/* A brain phantom from a label image. Labels 0 (air), 1 (soft tissue), 2 (white matter), 3 (grey matter) and 4 (CSF)
 * have the activities 0, 0.1, 0.25, 1 and 0.05. The label image is centred on the scanner's centre and is air beyond
 * its edges. Each voxel of the grid has the mean over its volume. errors: NULL, logged: LR_BAD_INPUT for other
 * labels. */
LR_API lr_image *lr_phantom_from_labels(const lr_image *labels, const lr_grid *grid, const lr_log *log);

/* Names that lr_phantom_create knows, NULL at the end. */
LR_API const char *const *lr_phantom_names(void);

/* Streams of random numbers, one for each purpose. The streams of one seed are independent. */
typedef enum lr_random_stream {
    LR_RANDOM_COUNTS = 0,    /* simulated counts */
    LR_RANDOM_EVENTS = 1,    /* order and times of events made of counts */
    LR_RANDOM_PHOTONS = 2,   /* photon pairs */
    LR_RANDOM_REPLICATE = 3, /* bootstrap replicates of counts, prompts and their weights */
    LR_RANDOM_DELAYEDS = 4,  /* bootstrap replicates of delayeds counted separately */
    LR_RANDOM_RANDOMS = 5,   /* randoms among photon pairs */
    LR_NUM_RANDOM_STREAMS
} lr_random_stream;

/* Replaces each value, an expectation >= 0, by a Poisson count from the stream LR_RANDOM_COUNTS. The draw of element i
 * depends only on seed and i (Philox4x32-10 of Random123, key = seed, counter = i and the stream). Any number of
 * threads and any order therefore give the same counts. errors: LR_BAD_INPUT for a negative or non-finite value. */
LR_API lr_status lr_poisson(float *values, int64_t count, uint64_t seed, const lr_log *log);

/* The stream for a part of a longer array: values[k] is element first + k of that array. */
typedef struct lr_poisson_stream {
    uint64_t seed;
    lr_random_stream purpose;
    int64_t first;
} lr_poisson_stream;
/* Draws Poisson counts for a part of the values, in place. */
LR_API lr_status lr_poisson_part(float *values, int64_t count, const lr_poisson_stream *stream, const lr_log *log);

#ifdef __cplusplus
}
#endif

#endif
