/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The division of a slice's factor among its voxels, as the work of one thread. Tests also run this code on the
 * processor. The receiver of elements is a type with
 *   void take<U, V>(shares, scale, at, pitch)   the element of number at + u pitch + v is scale shares[u][v]
 *   void take_one(element, at)                  one element; line_reader, which reads numbers, has no take_one */
#pragma once

#include "cuda_interop/listmode/lanes.cuh"
#include "cuda_interop/listmode/slice_factors.cuh"

/* The voxels of a slice that a line may see. */
struct share_window {
    float off[2];  /* distance from the crossing to the first voxel, in voxels */
    float span[2]; /* distance from the first voxel to the end of the shares, in voxels */
    int at;        /* index of the first voxel in the receiver's numbers */
    int place[2];  /* the first voxel's row and column, margins included */
};

/* --- the tube's function of the squared distance, in the tube's unit --- */

struct gaussian_share {
    __host__ __device__ static float of(const lr_cuda_list_tube &tube, float square)
    {
        return power_of_two(-fminf(square, tube.half)) * between_0_and_1(tube.rim - tube.fall * square);
    }
};

/* The table lies in a texture or in linear memory. A texture's own interpolation is not used, because it rounds the
 * weights of the two entries to 8 bits. */
template <bool InTexture> struct table_share {
    __host__ __device__ static float entry(const lr_cuda_list_tube &tube, int k)
    {
#ifdef __CUDA_ARCH__
        if (InTexture) return tex1Dfetch<float>(tube.texture, k);
#endif
        return tube.table[k];
    }
    __host__ __device__ static float of(const lr_cuda_list_tube &tube, float square)
    {
        const float at = fminf(sqrtf(fmaxf(square, 0.0f)) * tube.entries, (float)tube.last);
        const int k = (int)at;
        const float low = entry(tube, k), high = entry(tube, k + 1);
        return (low + (at - (float)k) * (high - low)) * between_0_and_1(tube.rim - tube.fall * square);
    }
};

/* --- tubes --- */

template <class Share, class Taker> struct tube_sharer {
    const lr_cuda_list_pass &pass;
    const lr_cuda_list_frame &frame;
    int pitch;
    float uu, uv, vv;

    __host__ __device__ tube_sharer(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame,
                                    const line_walk &walk)
        : pass(pass), frame(frame), pitch(frame.pitch), uu(walk.uu), uv(walk.uv), vv(walk.vv)
    {
    }

    __host__ __device__ float scale(float factor, float sum) const
    {
        return pass.as_paper ? factor : sum > 0.0f ? quotient_of(factor, sum) : 0.0f;
    }

    /* Computes the shares of a window of up to U by V voxels at once. */
    template <int U, int V> __host__ __device__ void share(const share_window &window, float factor, Taker &taker) const
    {
        float shares[U][V], v[V], of_v[V], sum = 0;
#pragma unroll
        for (int j = 0; j < V; j++) {
            v[j] = window.off[1] + (float)j;
            of_v[j] = vv * v[j] * v[j];
        }
#pragma unroll
        for (int i = 0; i < U; i++) {
            const float u = window.off[0] + (float)i;
            const float of_u = uu * u * u, lean = uv * u;
#pragma unroll
            for (int j = 0; j < V; j++) {
                shares[i][j] = Share::of(pass.tube, v[j] * lean + of_u + of_v[j]);
                sum += shares[i][j];
            }
        }
        taker.template take<U, V>(shares, scale(factor, sum), window.at, pitch);
    }

    /* Calls each(share, at) for each voxel of a window. at: the voxel's index in the receiver's array. */
    template <class Each> __host__ __device__ void each_share(const share_window &window, Each &&each) const
    {
        const int own[2] = {(int)window.span[0] + 1, (int)window.span[1] + 1};
        const int rows = own[0] < frame.window[0] ? own[0] : frame.window[0];
        const int columns = own[1] < frame.window[1] ? own[1] : frame.window[1];
        for (int i = 0; i < rows; i++) {
            const float u = window.off[0] + (float)i;
            const float of_u = uu * u * u, lean = uv * u;
            for (int j = 0; j < columns; j++) {
                const float v = window.off[1] + (float)j;
                each(Share::of(pass.tube, v * (vv * v + lean) + of_u), window.at + i * pitch + j);
            }
        }
    }

    /* Computes the shares of a window of any size. Each share is computed twice, because a receiver that writes needs
     * the sum of the shares first. */
    __host__ __device__ void share_any(const share_window &window, float factor, Taker &taker) const
    {
        float sum = 0;
        if constexpr (Taker::reads) {
            float slice = 0;
            each_share(window, [&](float share, int at) {
                sum += share;
                slice += share * taker.tile.load(at);
            });
            taker.sum += scale(factor, sum) * slice;
        } else {
            each_share(window, [&](float share, int) { sum += share; });
            const float scaled = scale(factor, sum);
            each_share(window, [&](float share, int at) { taker.take_one(scaled * share, at); });
        }
    }

    /* All lanes of a warp use the same window size: the smallest that has room for the window of every lane. */
    __host__ __device__ void operator()(const share_window &window, float factor, Taker &taker) const
    {
        const float span = fmaxf(window.span[0], window.span[1]);
        if (!any_lane_of(span >= 4.0f))
            share<4, 4>(window, factor, taker);
        else if (any_lane_of(span >= 5.0f))
            share_any(window, factor, taker);
        else if (!any_lane_of(window.span[0] >= 4.0f))
            share<4, 5>(window, factor, taker);
        else if (!any_lane_of(window.span[1] >= 4.0f))
            share<5, 4>(window, factor, taker);
        else
            share<5, 5>(window, factor, taker);
    }
};

/* --- thin lines --- */

/* The four voxels around the crossing share the factor by bilinear interpolation. */
template <class Taker> struct line_sharer {
    int pitch;

    __host__ __device__ line_sharer(const lr_cuda_list_pass &, const lr_cuda_list_frame &frame, const line_walk &)
        : pitch(frame.pitch)
    {
    }
    __host__ __device__ void operator()(const share_window &window, float factor, Taker &taker) const
    {
        const float u = -window.off[0], v = -window.off[1];
        const float shares[2][2] = {{(1.0f - u) * (1.0f - v), (1.0f - u) * v}, {u * (1.0f - v), u * v}};
        taker.template take<2, 2>(shares, factor, window.at, pitch);
    }
};

/* --- slice by slice --- */

/* The crossings of a line with one slice after the other. Coordinates include the margins. The unit is a voxel / 2^32.
 * Steps are added without rounding, so that positions are as accurate as floats between 0 and 1. */
struct crossings {
    int64_t at[2], step[2];

    __host__ __device__ crossings(const lr_cuda_list_frame &frame, const line_walk &walk)
    {
        constexpr double parts = 4294967296.0;
        for (int c = 0; c < 2; c++) {
            const double first = walk.position[c] + walk.slices[0] * walk.step[c];
            at[c] = (int64_t)((first + (frame.window[c] - 1)) * parts);
            step[c] = (int64_t)(walk.step[c] * parts);
        }
    }

    __host__ __device__ explicit crossings(const lr_cuda_list_line &line)
        : at{line.at[0], line.at[1]}, step{line.step[0], line.step[1]}
    {
    }

    __host__ __device__ void go_on(int slices = 1)
    {
        at[0] += slices * step[0];
        at[1] += slices * step[1];
    }

    /* Finds the window of a slice; returns false if the window has no voxel of the image. The first voxel is the lowest
     * one that is not below crossing - half. If rounding selects the neighbour of this voxel instead, the neighbour has
     * the share 0. */
    __host__ __device__ bool open(const lr_cuda_list_frame &frame, const line_walk &walk, share_window &window) const
    {
        unsigned place[2];
        bool is_inside = true;
        for (int c = 0; c < 2; c++) {
            const float part = (float)((uint32_t)at[c] >> 8) * (1.0f / 16777216);
            int low;
            window.off[c] = nearest_whole(part - (walk.half[c] - 0.5f), &low) - part;
            window.span[c] = walk.half[c] - window.off[c];
            place[c] = (unsigned)((int)(at[c] >> 32) + low);
            is_inside = is_inside && place[c] < (unsigned)frame.reach[c];
        }
        window.at = (int)place[0] * frame.pitch + (int)place[1];
        window.place[0] = (int)place[0];
        window.place[1] = (int)place[1];
        return is_inside;
    }
};

/* Visits the slices of a walk. first: the receiver's numbers begin with the plane of this slice. */
template <class Sharer, class Factors, class Taker>
__host__ __device__ void share_slices(const lr_cuda_list_frame &frame, const line_walk &walk, const Sharer &sharer,
                                      const Factors &factor_of, crossings &crossing, int first, Taker &taker)
{
    int plane = (walk.slices[0] - first) * frame.plane;
    for (int slice = walk.slices[0]; slice < walk.slices[1]; slice++) {
        share_window window;
        const float factor = factor_of(slice);
        if (crossing.open(frame, walk, window) && factor > 0.0f) {
            window.at += plane;
            sharer(window, factor, taker);
        }
        crossing.go_on();
        plane += frame.plane;
    }
}

/* Divides the factors of a walk's slices among their voxels. */
template <class Sharer, bool InBins, class Taker>
__host__ __device__ void share_walk(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame,
                                    const line_walk &walk, int first, Taker &taker)
{
    if (walk.slices[0] >= walk.slices[1]) return;
    const Sharer sharer(pass, frame, walk);
    const slice_factors<InBins> factors(pass, walk);
    crossings crossing(frame, walk);
    share_slices(
        frame, walk, sharer, [&](int slice) { return factors.at(pass, walk, slice); }, crossing, first, taker);
}

/* --- lines that are stored on the device --- */

/* Computes the line of arranged event k that will be stored. Stored lines can be used if slices are short compared with
 * a standard deviation, but not for elements as in the paper. */
__host__ __device__ inline void make_line(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame, bool has_tof,
                                          int64_t k, lr_cuda_list_line &line)
{
    const int32_t all[2] = {0, frame.slices};
    const line_walk walk = find_walk(pass, frame, has_tof, k, all);
    const crossings crossing(frame, walk);
    const double first = walk.place + walk.slices[0] * walk.chord;
    const double zero = has_tof ? walk.tof : first;
    const double unit = has_tof ? walk.per_sigma : 1.0 / walk.chord;
    for (int c = 0; c < 2; c++) {
        line.at[c] = crossing.at[c];
        line.step[c] = crossing.step[c];
        line.half[c] = walk.half[c];
        line.slices[c] = walk.slices[c];
    }
    line.uu = walk.uu;
    line.uv = walk.uv;
    line.vv = walk.vv;
    line.place = (float)((first - zero) * unit);
    line.step_along = has_tof ? (float)(walk.chord * unit) : 1.0f;
    line.begin = (float)((walk.begin - zero) * unit);
    line.end = (float)((walk.end - zero) * unit);
    line.peak = has_tof ? walk.half_bin : (float)walk.chord;
}

/* Does the same as share_walk for slices limits[0] .. limits[1] - 1 of a stored line. */
template <class Sharer, bool InBins, class Taker>
__host__ __device__ void share_line(const lr_cuda_list_pass &pass, const lr_cuda_list_frame &frame,
                                    const lr_cuda_list_line &line, bool has_tof, const int32_t limits[2], Taker &taker)
{
    line_walk walk = {};
    walk.slices[0] = line.slices[0] > limits[0] ? line.slices[0] : limits[0];
    walk.slices[1] = line.slices[1] < limits[1] ? line.slices[1] : limits[1];
    if (walk.slices[0] >= walk.slices[1]) return;
    walk.uu = line.uu;
    walk.uv = line.uv;
    walk.vv = line.vv;
    walk.half[0] = line.half[0];
    walk.half[1] = line.half[1];
    const Sharer sharer(pass, frame, walk);
    crossings crossing(line);
    crossing.go_on(walk.slices[0] - line.slices[0]);
    share_slices(
        frame, walk, sharer, [&](int slice) { return factor_of_line<InBins>(line, has_tof, slice - line.slices[0]); },
        crossing, limits[0], taker);
}

/* --- receivers of elements --- */

/* Reads or adds numbers. The type Tile has load(at) to read, or add(at, number) to add. The function add is also called
 * with zeros. */
template <class Tile> struct line_reader {
    static constexpr bool reads = true;
    Tile tile;
    float sum;

    template <int U, int V> __host__ __device__ void take(const float (&shares)[U][V], float scale, int at, int pitch)
    {
        float slice = 0;
#pragma unroll
        for (int i = 0; i < U; i++) {
#pragma unroll
            for (int j = 0; j < V; j++) slice += shares[i][j] * tile.load(at + i * pitch + j);
        }
        sum += scale * slice;
    }
};

template <class Tile> struct line_writer {
    static constexpr bool reads = false;
    Tile tile;
    float value;

    template <int U, int V> __host__ __device__ void take(const float (&shares)[U][V], float scale, int at, int pitch)
    {
        const float scaled = value * scale;
#pragma unroll
        for (int i = 0; i < U; i++) {
#pragma unroll
            for (int j = 0; j < V; j++) tile.add(at + i * pitch + j, scaled * shares[i][j]);
        }
    }
    __host__ __device__ void take_one(float element, int at)
    {
        tile.add(at, value * element);
    }
};
