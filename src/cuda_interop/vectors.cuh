/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Kernels of operations on vectors, and the sums of one thread. Tests also run them on the processor. Results are
 * computed in double and rounded once. */
#pragma once

#include "cuda_interop/vector_passes.h"

#include <cmath>

/* A thread of a pass, and the number of threads. */
struct vector_thread {
    int64_t number, of;
};

struct vector_sums {
    double values[LR_VECTOR_NUM_SUMS];
};

__device__ inline vector_thread this_thread()
{
    return {(int64_t)blockIdx.x * LR_VECTOR_GROUP + threadIdx.x, (int64_t)gridDim.x * LR_VECTOR_GROUP};
}

template <class Real> __device__ double number_of(const void *numbers, int64_t k)
{
    return numbers != nullptr ? (double)static_cast<const Real *>(numbers)[k] : 0.0;
}

template <class Real> __global__ void __launch_bounds__(LR_VECTOR_GROUP) fill(lr_cuda_vector_pass pass)
{
    const vector_thread thread = this_thread();
    for (int64_t k = thread.number; k < pass.count; k += thread.of) static_cast<Real *>(pass.y)[k] = (Real)pass.scalar;
}

/* --- element by element --- */

template <class Real, class Other> __global__ void __launch_bounds__(LR_VECTOR_GROUP) apply(lr_cuda_vector_pass pass)
{
    const vector_thread thread = this_thread();
    Real *const y = static_cast<Real *>(pass.y);
    for (int64_t k = thread.number; k < pass.count; k += thread.of) {
        double in[LR_VECTOR_INPUTS];
        for (int n = 0; n < LR_VECTOR_INPUTS; n++) in[n] = number_of<Other>(pass.in[n], k);
        y[k] = (Real)vector_result(pass.op, vector_reads(pass.op) ? (double)y[k] : 0.0, in[0], in[1], in[2],
                                   pass.scalar, pass.lowest);
    }
}

/* --- volumes --- */

/* Relative differences to the 26 neighbours, in the order of the host's sum. */
template <class Real> __global__ void __launch_bounds__(LR_VECTOR_GROUP) differences(lr_cuda_differences_pass pass)
{
    const vector_thread thread = this_thread();
    const int64_t nx = pass.size[0], ny = pass.size[1], nz = pass.size[2], plane = nx * ny;
    Real *const y = static_cast<Real *>(pass.y);
    for (int64_t own = thread.number; own < plane * nz; own += thread.of) {
        const int64_t at[3] = {own % nx, own % plane / nx, own / plane};
        const double x = number_of<Real>(pass.x, own);
        const double kappa = pass.kappa != nullptr ? number_of<Real>(pass.kappa, own) : 1.0;
        double sum = 0.0;
        for (int k = 0; k < 27; k++) {
            const int dx = k % 3 - 1, dy = k / 3 % 3 - 1, dz = k / 9 - 1;
            const int64_t to[3] = {at[0] + dx, at[1] + dy, at[2] + dz};
            const bool is_inside = to[0] >= 0 && to[0] < nx && to[1] >= 0 && to[1] < ny && to[2] >= 0 && to[2] < nz;
            if (k == 13 || !is_inside) continue;
            const int64_t neighbour = to[0] + nx * (to[1] + ny * to[2]);
            const double v = pass.weights[dx * dx + 2 * dy * dy + 4 * dz * dz] * kappa *
                             (pass.kappa != nullptr ? number_of<Real>(pass.kappa, neighbour) : 1.0);
            if (!(v > 0.0)) continue;

            sum += v * difference_term((int)pass.what, x, number_of<Real>(pass.x, neighbour), pass.gamma, pass.epsilon);
        }
        y[own] = (Real)(pass.what == LR_DIFFERENCES_GRADIENT ? (double)y[own] + pass.scale * sum : sum);
    }
}

template <class Real> __global__ void __launch_bounds__(LR_VECTOR_GROUP) convolve(lr_cuda_convolve_pass pass)
{
    const vector_thread thread = this_thread();
    const int64_t nx = pass.size[0], plane = nx * pass.size[1], count = plane * pass.size[2];
    const int64_t step = pass.axis == 0 ? 1 : pass.axis == 1 ? nx : plane;
    for (int64_t k = thread.number; k < count; k += thread.of) {
        const int64_t at = pass.axis == 0 ? k % nx : pass.axis == 1 ? k % plane / nx : k / plane;
        double sum = 0.0;
        for (int to = -pass.reach; to <= pass.reach; to++)
            if (at + to >= 0 && at + to < pass.size[pass.axis])
                sum += pass.weights[to < 0 ? -to : to] * number_of<Real>(pass.x, k + to * step);
        static_cast<Real *>(pass.y)[k] = (Real)sum;
    }
}

/* --- sums over ranks --- */

template <class Real> __global__ void __launch_bounds__(LR_VECTOR_GROUP) add_terms(lr_cuda_terms_pass pass)
{
    const vector_thread thread = this_thread();
    Real *const y = static_cast<Real *>(pass.y);
    for (int64_t k = thread.number; k < pass.count; k += thread.of) {
        double sum = 0.0;
        for (int r = 0; r < pass.num; r++)
            sum += r == pass.own ? (double)y[k] : number_of<Real>(pass.pieces, r * pass.stride + k);
        y[k] = (Real)sum;
    }
}

/* --- sums --- */

/* Adds the sums of one thread to those of another. has_largest: true if sums from LR_VECTOR_LARGEST on are maxima
 * instead. */
__device__ inline void join_sums(vector_sums &a, const vector_sums &b, bool has_largest)
{
    for (int k = 0; k < LR_VECTOR_NUM_SUMS; k++) {
        a.values[k] =
            has_largest && k >= LR_VECTOR_LARGEST ? fmax(a.values[k], b.values[k]) : a.values[k] + b.values[k];
    }
}

/* Adds up the sums of some groups. With n threads, a thread takes every n-th group. */
__device__ inline vector_sums join_groups(const lr_cuda_join_pass &pass, const vector_thread &thread)
{
    vector_sums sums = {};
    for (int k = LR_VECTOR_LARGEST; k < LR_VECTOR_NUM_SUMS; k++) sums.values[k] = pass.has_largest ? -HUGE_VAL : 0.0;
    for (int64_t group = thread.number; group < pass.num_groups; group += thread.of) {
        vector_sums more;
        for (int k = 0; k < LR_VECTOR_NUM_SUMS; k++) more.values[k] = pass.groups[group][k];
        join_sums(sums, more, pass.has_largest);
    }
    return sums;
}

template <class Real>
__device__ vector_sums add_up_numbers(const lr_cuda_vector_pass &pass, const vector_thread &thread)
{
    double sum = 0, product = 0, difference = 0, wrong = 0, largest = -HUGE_VAL, largest_negated = -HUGE_VAL;
    for (int64_t k = thread.number; k < pass.count; k += thread.of) {
        const double x = number_of<Real>(pass.y, k), y = number_of<Real>(pass.in[0], k);
        if (!(fabs(x) < HUGE_VAL)) {
            wrong += 1.0;
            continue;
        }
        sum += x;
        product += x * y;
        difference += (x - y) * (x - y);
        largest = fmax(largest, x);
        largest_negated = fmax(largest_negated, -x);
    }
    return {{sum, product, difference, wrong, largest, largest_negated}};
}

/* Replaces estimates by ratios, and adds the terms of their LORs to the fit. */
__device__ inline vector_sums divide_numbers(const lr_cuda_vector_pass &pass, const vector_thread &thread)
{
    vector_sums fit = {};
    float *const values = static_cast<float *>(pass.y);
    for (int64_t k = thread.number; k < pass.count; k += thread.of) {
        const double estimated = (double)values[k] + number_of<float>(pass.in[1], k);
        const double measured = number_of<float>(pass.in[0], k);
        if (is_left_out(measured, estimated)) {
            fit.values[3] += 1.0;
            fit.values[4] += measured;
        } else {
            fit.values[2] += estimated;
            fit.values[0] -= estimated;
            fit.values[1] += measured > 0.0 ? measured : 0.0;
            fit.values[0] += measured > 0.0 ? measured * log(estimated) : 0.0;
        }
        values[k] = (float)poisson_ratio(measured, estimated);
    }
    return fit;
}
