// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The time-of-flight weights of an event's exact elements: the mean of the Gaussian over a voxel's extent along the
// line, per mm. Lengths are in standard deviations.
#ifndef LR_KERNELS_EXACT_TIME
#define LR_KERNELS_EXACT_TIME
#include "kernels/numbers.glsl"
#include "kernels/times.glsl"

// place: distance from the centre of the time of flight to the middle of the voxel's extent, in the first plane, for a
// point in the middle of its voxel. step: increase of this distance per plane. gain: increase of this distance per
// point along p, u and v.
struct exact_time {
    float place, step, half_extent, half_bin, gain[3];
    float per_mm;  // 1 / extent in 1/mm, divided by the integral of the Gaussian within the cut
    float whole;   // if a voxel's middle is at most this far away, the voxel is short and entirely within the cut at
                   // three standard deviations
    float even[4]; // the mean over a short voxel is 2^(-middle^2 log2(e) / 2) times this polynomial of middle^2
};

// Finds `whole` and `even` from the other members. They describe the series of the Gaussian around the middle of the
// extent, if half of the extent is below a quarter of a standard deviation. The terms are Hermite polynomials; the
// first omitted term is below 3e-8. A bin of up to about one standard deviation changes the terms; the first omitted
// term is then below 3e-6.
LR_KERNEL exact_time with_series(exact_time given)
{
    exact_time time = given;
    float extent = time.half_extent, q = extent * extent, p = time.half_bin * time.half_bin;
    float of_2 = (q + p) * (1.0f / 6.0f);
    float of_4 = (q * q + p * p) * (1.0f / 120.0f) + q * p * (1.0f / 36.0f);
    float of_6 = (q * q * q + p * p * p) * (1.0f / 5040.0f) + (q + p) * q * p * (1.0f / 720.0f);
    float peak = 0.79788456f * extent * time.per_mm;
    time.whole = extent < 0.25f && q + p < 0.3f ? 3.0f - extent - time.half_bin : -1.0f;
    time.even[0] = peak * (1.0f - of_2 + 3.0f * of_4 - 15.0f * of_6);
    time.even[1] = peak * (of_2 - 6.0f * of_4 + 45.0f * of_6);
    time.even[2] = peak * (of_4 - 15.0f * of_6);
    time.even[3] = peak * of_6;
    return time;
}

LR_KERNEL float weight_of_whole(exact_time time, float middle)
{
    float y = middle * middle;
    return gaussian_of(y) * (time.even[0] + y * (time.even[1] + y * (time.even[2] + y * time.even[3])));
}

// The weight of a voxel that is long, or that extends beyond the cut of the Gaussian. The event must not have a bin.
LR_KERNEL float weight_of_part(exact_time time, float middle)
{
    float low = fmaxf(middle - time.half_extent, -3.0f), high = fminf(middle + time.half_extent, 3.0f);
    float half_width = 0.5f * (high - low);
    if (!(half_width > 0.0f)) return 0.0f;
    return (half_width < 0.5f ? normal_around(0.5f * (low + high), half_width)
                              : normal_from_0(high) - normal_from_0(low)) *
           time.per_mm;
}
#endif
