// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Operations on vectors, element by element, in double. A NaN remains a NaN, so that sums over the image reveal it.
#ifndef LR_KERNELS_VECTOR
#define LR_KERNELS_VECTOR
#include "kernels/language.glsl"

// Operations that replace each element of y by a function of this element and of the inputs' elements.
#define LR_VECTOR_CONVERT 0      // in[0], converted from the other precision
#define LR_VECTOR_MULTIPLY 1     // in[0] in[1]
#define LR_VECTOR_DIVIDE 2       // y / in[0] if in[0] is positive, else scalar
#define LR_VECTOR_ADD_SCALED 3   // y + scalar in[0]
#define LR_VECTOR_UPDATE_EM 4    // in[0] / in[2] in[1] if in[2] is positive, else in[0]
#define LR_VECTOR_UPDATE_RAMLA 5 // in[0] max(0, 1 + scalar (in[1] - in[2])) if in[2] is positive, else in[0]
#define LR_VECTOR_UPDATE_BSREM 6 // max(0, in[0] + scalar max(in[0], lowest) in[1] in[2]) if in[2] > 0, else in[0]
#define LR_NUM_VECTOR_OPS 7
#define LR_EACH_VECTOR_OP(USE)                                                                                         \
    USE(LR_VECTOR_CONVERT)                                                                                             \
    USE(LR_VECTOR_MULTIPLY)                                                                                            \
    USE(LR_VECTOR_DIVIDE)                                                                                              \
    USE(LR_VECTOR_ADD_SCALED)                                                                                          \
    USE(LR_VECTOR_UPDATE_EM)                                                                                           \
    USE(LR_VECTOR_UPDATE_RAMLA)                                                                                        \
    USE(LR_VECTOR_UPDATE_BSREM)

// True if the operation reads y. Reading y takes as long as writing y, so other operations do not read it.
LR_KERNEL bool vector_reads(int op)
{
    return op == LR_VECTOR_DIVIDE || op == LR_VECTOR_ADD_SCALED;
}

LR_KERNEL double vector_result(int op, double y, double x, double by, double sensitivity, double scalar, double lowest)
{
    switch (op) {
    case LR_VECTOR_MULTIPLY: return x * by;
    case LR_VECTOR_DIVIDE: return x > 0.0 ? y / x : scalar;
    case LR_VECTOR_ADD_SCALED: {
        LR_PRECISE double sum = y + scalar * x;
        return sum;
    }
    case LR_VECTOR_UPDATE_EM: return sensitivity > 0.0 ? x / sensitivity * by : x;
    case LR_VECTOR_UPDATE_RAMLA: {
        LR_PRECISE double factor = 1.0 + scalar * (by - sensitivity);
        return sensitivity > 0.0 ? x * (factor < 0.0 ? 0.0 : factor) : x;
    }
    case LR_VECTOR_UPDATE_BSREM: { // `sensitivity` is the scale
        LR_PRECISE double next = x + scalar * (x > lowest ? x : lowest) * (by * sensitivity);
        return sensitivity > 0.0 ? (next < 0.0 ? 0.0 : next) : x;
    }
    default: return x;
    }
}

// --- the relative-differences prior (lr_relative_differences in lr/vector.h): Nuyts, Beque, Dupont and Mortelmans,
// IEEE Trans. Nucl. Sci. 49 (2002), equations 5 to 7 ---

#ifdef GL_core_profile // lr_differences of lr/vector.h
#define LR_DIFFERENCES_VALUE 0
#define LR_DIFFERENCES_GRADIENT 1
#define LR_DIFFERENCES_WEIGHTS 2
#endif

// The term of a number x and a neighbour, without the factors weight and kappa.
LR_KERNEL double difference_term(int what, double x, double neighbour, double gamma, double epsilon)
{
    double d = x - neighbour, size = d < 0.0 ? -d : d, n = x + neighbour + gamma * size + epsilon;
    if (what == LR_DIFFERENCES_WEIGHTS) return 1.0;
    if (!(n > 0.0)) return n == 0.0 ? 0.0 : n;
    return what == LR_DIFFERENCES_VALUE ? 0.5 * d * d / n
                                        : d * (gamma * size + x + 3.0 * neighbour + 2.0 * epsilon) / (n * n);
}

// --- counts and their estimates ---

// True if the estimate is 0 and there are counts. No image can explain such a LOR, so it is left out.
LR_KERNEL bool is_left_out(double measured, double estimated)
{
    return measured > 0.0 && !(estimated > 0.0);
}

// The ratio that is projected back, at most half of the largest float. The probabilities of a voxel sum to at most 1,
// so the sums of ratios are then finite.
LR_KERNEL double poisson_ratio(double measured, double estimated)
{
    double ratio = measured > 0.0 && estimated > 0.0 ? measured / estimated : 0.0;
    return ratio < 1.7014117331926443e38 ? ratio : 1.7014117331926443e38;
}
#endif
