#version 450 core
// variants: HAS_ADDITIVE=1
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Divides the measured counts y by their estimate e = values + b. EM projects this ratio back.
//
// reads:     values, y, and b if there is an additive term
// writes:    values: y / e if both are positive, else 0; for each group: sum of y ln e - e, of y,
//            of e, LORs and counts left out (y > 0 and e = 0); the last sum is 0
// shape:     each thread takes every n-th element
// invariant: terms are added in a fixed order
#include "vector/vector_sums.glsl"

#include "kernels/vector.glsl"

layout(std430, binding = LR_BIND_VECTOR_Y) buffer Values
{
    float values[];
};
layout(std430, binding = LR_BIND_VECTOR_IN) readonly buffer Measured
{
    float measured[];
};
layout(std430, binding = LR_BIND_VECTOR_IN + 1) readonly buffer Additive
{
    float additive[];
};

// Natural logarithm of a normal number x > 0: the series of 2 artanh((m - 1) / (m + 1)) for m in sqrt(1/2) .. sqrt(2).
// Terms that are left out are below 1e-15. OpenGL's own log is not used, because it has only single precision.
double natural_log(double x)
{
    uvec2 bits = unpackDouble2x32(x);
    int exponent = int(bits.y >> 20u) - 1023;
    double m = packDouble2x32(uvec2(bits.x, (bits.y & 0x000fffffu) | 0x3ff00000u));
    if (m > 1.4142135623730951lf) {
        m *= 0.5lf;
        exponent++;
    }
    double t = (m - 1.0lf) / (m + 1.0lf), tt = t * t, sum = 0.0lf;
    for (int n = 19; n >= 1; n -= 2) sum = sum * tt + 1.0lf / double(n);
    return 2.0lf * t * sum + double(exponent) * 0.6931471805599453lf;
}

void main()
{
    double likelihood = 0.0lf, counts = 0.0lf, estimates = 0.0lf;
    double left_lors = 0.0lf, left_counts = 0.0lf;
    for (uint k = gl_GlobalInvocationID.x; k < count; k += num_threads()) {
        double y = double(measured[first.y + k]), e = double(values[first.x + k]);
#ifdef HAS_ADDITIVE
        e += double(additive[first.z + k]);
#endif
        if (is_left_out(y, e)) {
            left_lors += 1.0lf;
            left_counts += y;
        } else {
            estimates += e;
            likelihood -= e;
            if (y > 0.0lf) {
                counts += y;
                likelihood += y * natural_log(e);
            }
        }
        values[first.x + k] = float(poisson_ratio(y, e));
    }
    write_sum(0u, likelihood, false);
    write_sum(1u, counts, false);
    write_sum(2u, estimates, false);
    write_sum(3u, left_lors, false);
    write_sum(4u, left_counts, false);
    write_sum(5u, 0.0lf, false);
}
