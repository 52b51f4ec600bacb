/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Numbers of mathematics and physics. */
#pragma once

#define LR_PI 3.14159265358979323846

/* A degree in radian. */
#define LR_DEGREE (LR_PI / 180)

/* The golden ratio minus 1. Its multiples, modulo one, are spread evenly and have no period in common with a grid. */
#define LR_GOLDEN_SHARE 0.6180339887498949

/* Full width at half maximum of a Gaussian divided by its standard deviation, 2 sqrt(2 ln 2). */
#define LR_FWHM_PER_SIGMA 2.3548200450309493

/* Half of the distance that light travels in 1 ps. A difference of 1 ps between the arrival times at a LOR's ends moves
 * the annihilation by this many mm along the LOR. */
#define LR_MM_PER_PS 0.149896229
