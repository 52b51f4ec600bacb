/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The weight that time of flight gives to each slice of a line, called the slice's factor: T of lr/listmode.h. Without
 * time of flight, the factor is the length of the line within the slice. */
#pragma once

#include "cuda_interop/listmode/walk.cuh"
#include "kernels/times.glsl"

/* The kinds of kernels. There are kinds without bins, because bins take time. */
enum list_times { NO_TIMES, TIMES, TIMES_IN_BINS };

__host__ __device__ inline enum list_times times_of(const lr_cuda_list_events &events, bool has_tof)
{
    return !has_tof ? NO_TIMES : events.bin_mm == nullptr ? TIMES : TIMES_IN_BINS;
}

/* The factors of a walk's slices: T of lr/listmode.h. For a whole slice that is short compared with a standard
 * deviation, derivatives of the Gaussian's integral at the slice's middle are used, with an accuracy of 1e-6. Without
 * time of flight, the factor is the chord. If events have bins, no slice counts as whole. */
template <bool InBins> struct slice_factors {
    int first, number;   /* the slices that count as whole: the first one, and their number */
    float z, step;       /* position of the middle of the walk's first slice in standard deviations, and its increase
                            per slice */
    float peak, even[3]; /* the integral around z is peak 2^(-z^2 log2(e) / 2) times a polynomial */

    __host__ __device__ slice_factors(const lr_cuda_list_pass &pass, const line_walk &walk)
    {
        const bool has_tof = walk.per_sigma > 0;
        const double per_chord = 1.0 / walk.chord;
        const double low = ceil((walk.begin - walk.place) * per_chord + 0.5);
        const double high = floor((walk.end - walk.place) * per_chord + 0.5);
        first = (int)fmin(fmax(low, -1.0), 1e9);
        number = (int)fmin(fmax(high, -1.0), 1e9) - first;
        z = (float)((walk.place + walk.slices[0] * walk.chord - walk.tof) * walk.per_sigma);
        step = (float)(walk.chord * walk.per_sigma);
        if (pass.as_paper || !(step < 0.5f) || number < 0 || (InBins && walk.half_bin > 0.0f)) number = 0;
        const float second = step * step * (1.0f / 24), fourth = step * step * step * step / 1920;
        peak = has_tof ? step * (float)(LR_TIMES_DENSITY / LR_TIMES_HELD) : (float)walk.chord;
        even[0] = 1.0f - second + 3.0f * fourth;
        even[1] = second - 6.0f * fourth;
        even[2] = fourth;
    }

    template <class Math = fast_math>
    __host__ __device__ float at(const lr_cuda_list_pass &pass, const line_walk &walk, int slice) const
    {
        if ((unsigned)(slice - first) >= (unsigned)number) return at_end<Math>(pass, walk, slice);
        const float off = z + (float)(slice - walk.slices[0]) * step, y = off * off;
        return peak * Math::power(y * -0.72134752f) * (even[0] + y * (even[1] + y * even[2]));
    }

    /* Returns the factor of a slice outside `first` .. first + number - 1. If `number` is 0, that is every slice. */
    template <class Math>
    __host__ __device__ float at_end(const lr_cuda_list_pass &pass, const line_walk &walk, int slice) const
    {
        if (pass.as_paper) {
            const double middle = walk.place + slice * walk.chord;
            const double off = (middle - walk.tof) * walk.per_sigma;
            if (middle < walk.begin || middle > walk.end) return 0.0f;
            if (!InBins || walk.half_bin <= 0.0f) return expf((float)(-0.5 * off * off));
            const float held = normal_from_0(within_cut((float)off + walk.half_bin)) -
                               normal_from_0(within_cut((float)off - walk.half_bin));
            return (float)(0.5 / LR_TIMES_DENSITY) * held / walk.half_bin;
        }
        if (walk.per_sigma > 0 && (step < 0.5f || (InBins && walk.half_bin > 0.0f)))
            return of_part<Math>(walk, z + (float)(slice - walk.slices[0]) * step);
        const double held = walk.per_sigma > 0 ? (normal(walk, slice + 1) - normal(walk, slice)) / LR_TIMES_HELD
                                               : bound(walk, slice + 1) - bound(walk, slice);
        return fmaxf((float)held, 0.0f);
    }

    /* Returns the factor of the part within the walk. middle: position of the slice's middle. */
    template <class Math> __host__ __device__ float of_part(const line_walk &walk, float middle) const
    {
        const float begin = (float)((walk.begin - walk.tof) * walk.per_sigma);
        const float end = (float)((walk.end - walk.tof) * walk.per_sigma);
        const float low = fmaxf(middle - 0.5f * step, begin);
        const float high = fminf(middle + 0.5f * step, end);
        const float width = high - low, off = 0.5f * (low + high), y = off * off;
        if (InBins && walk.half_bin > 0.0f) return width > 0.0f ? held_of_bin(off, 0.5f * width, walk.half_bin) : 0.0f;
        const float second = width * width * (1.0f / 24), fourth = second * second * 0.3f;
        const float even = 1.0f + second * (y - 1.0f) + fourth * (y * (y - 6.0f) + 3.0f);
        return width > 0.0f ? (float)(LR_TIMES_DENSITY / LR_TIMES_HELD) * width * Math::power(y * -0.72134752f) * even
                            : 0.0f;
    }

    __host__ __device__ static double bound(const line_walk &walk, int slice)
    {
        const double at = walk.place + (slice - 0.5) * walk.chord;
        return fmax(fmin(at, walk.end), walk.begin);
    }
    __host__ __device__ static double normal(const line_walk &walk, int slice)
    {
        const double z = (bound(walk, slice) - walk.tof) * walk.per_sigma;
        return z * normal_over_z(z * z);
    }
};

/* The factor of a stored line's slice. number: the slice, counted from the line's first slice. The result is that of
 * slice_factors, but whole slices and cut slices have the same formula here. */
template <bool InBins> __host__ __device__ float factor_of_line(const lr_cuda_list_line &line, bool has_tof, int number)
{
    const float middle = line.place + (float)number * line.step_along;
    const float half = 0.5f * line.step_along;
    const float low = fmaxf(middle - half, line.begin), high = fminf(middle + half, line.end);
    const bool is_whole = middle - half >= line.begin && middle + half <= line.end;
    const float width = is_whole ? line.step_along : fmaxf(high - low, 0.0f);
    if (!has_tof) return line.peak * width;
    const float off = is_whole ? middle : 0.5f * (low + high), y = off * off;
    if (InBins && line.peak > 0.0f) return held_of_bin(off, 0.5f * width, line.peak);
    const float second = width * width * (1.0f / 24), fourth = second * second * 0.3f;
    const float even = 1.0f + second * (y - 1.0f) + fourth * (y * (y - 6.0f) + 3.0f);
    return (float)(LR_TIMES_DENSITY / LR_TIMES_HELD) * width * gaussian_of(y) * even;
}
