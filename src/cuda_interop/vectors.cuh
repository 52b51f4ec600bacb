/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Operations on vectors for one thread each. Written for the device, and for the processor too, as
 * gathers.cuh. Numbers are worked on in double and rounded once. */
#ifndef LR_CUDA_VECTORS_CUH
#define LR_CUDA_VECTORS_CUH

#include "cuda_interop/vector_passes.h"

#include <cmath>

/* A thread of a pass, and how many there are. */
struct vector_thread {
    int64_t number, of;
};

struct vector_sums {
    double values[LR_VECTOR_NUM_SUMS];
};

template <class Real> __device__ double number_of(const void *numbers, int64_t k)
{
    return numbers != nullptr ? (double)static_cast<const Real *>(numbers)[k] : 0.0;
}

/* --- element by element --- */

static_assert(LR_NUM_VECTOR_OPS == 7, "each operation has its case below");

/* Not read where it has no influence: that takes as long as to write it. */
__device__ inline bool reads_y(enum lr_vector_op op)
{
    return op == LR_VECTOR_MULTIPLY || op == LR_VECTOR_DIVIDE || op == LR_VECTOR_ADD_SCALED;
}

__device__ inline double ramla_factor(double scalar, double by, double sensitivity)
{
    const double factor = 1.0 + scalar * (by - sensitivity);
    return factor < 0.0 ? 0.0 : factor;
}

__device__ inline double update_bsrem(const lr_cuda_vector_pass &pass, double x, double step)
{
    const double next = x + pass.scalar * (x > pass.lowest ? x : pass.lowest) * step;
    return next < 0.0 ? 0.0 : next;
}

__device__ inline double work_out(const lr_cuda_vector_pass &pass, double y, const double in[LR_VECTOR_INPUTS])
{
    const double x = in[0];
    switch (pass.op) {
    case LR_VECTOR_MULTIPLY: return y * x;
    case LR_VECTOR_DIVIDE: return x > 0.0 ? y / x : pass.scalar;
    case LR_VECTOR_ADD_SCALED: return y + pass.scalar * x;
    case LR_VECTOR_UPDATE_EM: return in[2] > 0.0 ? x / in[2] * in[1] : x;
    case LR_VECTOR_UPDATE_RAMLA: return in[2] > 0.0 ? x * ramla_factor(pass.scalar, in[1], in[2]) : x;
    case LR_VECTOR_UPDATE_BSREM: return in[2] > 0.0 ? update_bsrem(pass, x, in[1] * in[2]) : x;
    default: /* LR_VECTOR_CONVERT */ return x;
    }
}

template <class Real, class Other>
__device__ void apply_operation(const lr_cuda_vector_pass &pass, const vector_thread &thread)
{
    Real *const y = static_cast<Real *>(pass.y);
    const bool reads = reads_y(pass.op);
    for (int64_t k = thread.number; k < pass.count; k += thread.of) {
        double in[LR_VECTOR_INPUTS];
        for (int n = 0; n < LR_VECTOR_INPUTS; n++) in[n] = number_of<Other>(pass.in[n], k);
        y[k] = (Real)work_out(pass, reads ? (double)y[k] : 0.0, in);
    }
}

template <class Real> __device__ void fill_numbers(const lr_cuda_vector_pass &pass, const vector_thread &thread)
{
    for (int64_t k = thread.number; k < pass.count; k += thread.of) static_cast<Real *>(pass.y)[k] = (Real)pass.scalar;
}

/* --- relative differences --- */

__device__ inline double difference_term(const lr_cuda_differences_pass &pass, double x, double other)
{
    const double d = x - other, size = fabs(d);
    const double n = x + other + pass.gamma * size + pass.epsilon;
    if (pass.what == LR_DIFFERENCES_WEIGHTS) return 1.0;
    if (!(n > 0.0)) return n == 0.0 ? 0.0 : n;
    return pass.what == LR_DIFFERENCES_VALUE ? 0.5 * d * d / n
                                             : d * (pass.gamma * size + x + 3.0 * other + 2.0 * pass.epsilon) / (n * n);
}

/* Differences of the number at this place, in the order of the host's sum. */
template <class Real> __device__ double add_differences(const lr_cuda_differences_pass &pass, const int64_t at[3])
{
    const int64_t nx = pass.size[0], ny = pass.size[1], nz = pass.size[2];
    const int64_t own = at[0] + nx * (at[1] + ny * at[2]);
    const double x = number_of<Real>(pass.x, own);
    const double kappa = pass.kappa != nullptr ? number_of<Real>(pass.kappa, own) : 1.0;
    double sum = 0.0;
    for (int k = 0; k < 27; k++) {
        const int dx = k % 3 - 1, dy = k / 3 % 3 - 1, dz = k / 9 - 1;
        const int64_t to[3] = {at[0] + dx, at[1] + dy, at[2] + dz};
        const bool is_inside = to[0] >= 0 && to[0] < nx && to[1] >= 0 && to[1] < ny && to[2] >= 0 && to[2] < nz;
        if (k == 13 || !is_inside) continue;
        const int64_t other = to[0] + nx * (to[1] + ny * to[2]);
        const double v = pass.weights[dx * dx + 2 * dy * dy + 4 * dz * dz] * kappa *
                         (pass.kappa != nullptr ? number_of<Real>(pass.kappa, other) : 1.0);
        sum += v > 0.0 ? v * difference_term(pass, x, number_of<Real>(pass.x, other)) : 0.0;
    }
    return sum;
}

template <class Real>
__device__ void find_differences(const lr_cuda_differences_pass &pass, const vector_thread &thread)
{
    const int64_t nx = pass.size[0], plane = nx * pass.size[1], count = plane * pass.size[2];
    Real *const y = static_cast<Real *>(pass.y);
    for (int64_t k = thread.number; k < count; k += thread.of) {
        const int64_t at[3] = {k % nx, k % plane / nx, k / plane};
        const double sum = add_differences<Real>(pass, at);
        y[k] = (Real)(pass.what == LR_DIFFERENCES_GRADIENT ? (double)y[k] + pass.scale * sum : sum);
    }
}

/* --- convolutions --- */

template <class Real> __device__ void convolve_numbers(const lr_cuda_convolve_pass &pass, const vector_thread &thread)
{
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

template <class Real> __device__ void add_terms(const lr_cuda_terms_pass &pass, const vector_thread &thread)
{
    Real *const y = static_cast<Real *>(pass.y);
    for (int64_t k = thread.number; k < pass.count; k += thread.of) {
        double sum = 0.0;
        for (int r = 0; r < pass.num; r++)
            sum += r == pass.own ? (double)y[k] : number_of<Real>(pass.pieces, r * pass.stride + k);
        y[k] = (Real)sum;
    }
}

/* --- sums --- */

/* Sums of two threads; has_largest: one of them is the largest number instead. */
__device__ inline void join_sums(vector_sums &a, const vector_sums &b, bool has_largest)
{
    for (int k = 0; k < LR_VECTOR_NUM_SUMS; k++) {
        a.values[k] =
            has_largest && k == LR_VECTOR_LARGEST ? fmax(a.values[k], b.values[k]) : a.values[k] + b.values[k];
    }
}

/* A thread's part of the groups: every n-th. */
__device__ inline vector_sums join_groups(const lr_cuda_join_pass &pass, const vector_thread &thread)
{
    vector_sums sums = {};
    sums.values[LR_VECTOR_LARGEST] = pass.has_largest ? -HUGE_VAL : 0.0;
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
    double sum = 0, product = 0, difference = 0, wrong = 0, largest = -HUGE_VAL;
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
    }
    return {{sum, product, difference, largest, wrong}};
}

/* Sums of such ratios stay finite in float. */
constexpr double largest_ratio = 0.5 * 3.4028234663852886e38;

/* Adds a LOR to the fit and returns its ratio. */
__device__ inline double divide_lor(double (&fit)[LR_VECTOR_NUM_SUMS], double measured, double estimated)
{
    if (measured > 0.0 && !(estimated > 0.0)) {
        fit[3] += 1.0;
        fit[4] += measured;
        return 0.0;
    }
    fit[2] += estimated;
    fit[0] -= estimated;
    if (!(measured > 0.0)) return 0.0;
    fit[1] += measured;
    fit[0] += measured * log(estimated);
    return fmin(measured / estimated, largest_ratio);
}

__device__ inline vector_sums divide_numbers(const lr_cuda_vector_pass &pass, const vector_thread &thread)
{
    vector_sums fit = {};
    float *const values = static_cast<float *>(pass.y);
    for (int64_t k = thread.number; k < pass.count; k += thread.of) {
        const double estimated = (double)values[k] + number_of<float>(pass.in[1], k);
        values[k] = (float)divide_lor(fit.values, number_of<float>(pass.in[0], k), estimated);
    }
    return fit;
}

#endif
