#version 450 core
// variants: REAL=double
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Sums over a vector x and another vector.
//
// reads:     x, other
// writes:    for each group: sum of x, of x times other, of (x - other)^2, number of x that are
//            not finite, largest x, largest -x. Sums and maxima leave out numbers that are not
//            finite
// shape:     each thread takes every n-th element
// invariant: terms are added in a fixed order
#include "vector/vector_sums.glsl"

layout(std430, binding = LR_BIND_VECTOR_Y) readonly buffer X
{
    REAL x[];
};
layout(std430, binding = LR_BIND_VECTOR_IN) readonly buffer Other
{
    REAL other[];
};

void main()
{
    double sum = 0.0lf, product = 0.0lf, difference = 0.0lf, wrong = 0.0lf;
    double largest = packDouble2x32(uvec2(0u, 0xfff00000u)); // -infinity
    double largest_negated = largest;
    for (uint k = gl_GlobalInvocationID.x; k < count; k += num_threads()) {
        double a = double(x[first.x + k]), b = double(other[first.y + k]);
        if (!is_finite(a)) {
            wrong += 1.0lf;
            continue;
        }
        sum += a;
        product += a * b;
        difference += (a - b) * (a - b);
        largest = max(largest, a);
        largest_negated = max(largest_negated, -a);
    }
    write_sum(0u, sum, false);
    write_sum(1u, product, false);
    write_sum(2u, difference, false);
    write_sum(3u, wrong, false);
    write_sum(4u, largest, true);
    write_sum(5u, largest_negated, true);
}
