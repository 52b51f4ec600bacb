// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Integrals of the normal distribution, for events' times of flight. Lengths are in standard deviations. Distributions
// are cut off at three standard deviations.
#ifndef LR_KERNELS_TIMES
#define LR_KERNELS_TIMES
#include "kernels/language.glsl"

// The integral of the normal distribution within the cut, 1 / this integral, and the density at 0.
#define LR_TIMES_HELD 0.99730020393673981
#define LR_TIMES_PER_HELD 1.0027071046938556
#define LR_TIMES_DENSITY 0.39894228040143268

#ifndef GL_core_profile
// The integral from 0 to z divided by z, as a function of y = z^2, for 0 <= z <= 3. The error is 1.2e-9. The polynomial
// interpolates at the roots of a Chebyshev polynomial.
LR_KERNEL double normal_over_z(double y)
{
    double sum = 7.265240938010537e-13;
    sum = sum * y - 4.9351281427964255e-11;
    sum = sum * y + 1.646896334987382e-09;
    sum = sum * y - 3.7063257709655425e-08;
    sum = sum * y + 6.474043354947225e-07;
    sum = sum * y - 9.390115464063845e-06;
    sum = sum * y + 0.00011533315099385993;
    sum = sum * y - 0.0011872166848502176;
    sum = sum * y + 0.009973493641516347;
    sum = sum * y - 0.06649036592480707;
    return sum * y + 0.39894227987633807;
}
#endif

#if defined(GL_core_profile) || defined(__cplusplus) // C++ has power_of_two for the code below
// The integral from 0 to z, for |z| <= 3, with an error of 1e-8. In single precision, powers of t lose less accuracy
// than powers of z.
LR_KERNEL float normal_from_0(float z)
{
    float t = z * z * (1.0f / 4.5f) - 1.0f;
    float sum = -1.24917115e-05f;
    sum = sum * t + 5.83428409e-05f;
    sum = sum * t - 0.000217263485f;
    sum = sum * t + 0.000812567188f;
    sum = sum * t - 0.00272948085f;
    sum = sum * t + 0.00802339986f;
    sum = sum * t - 0.0205710717f;
    sum = sum * t + 0.0459720045f;
    sum = sum * t - 0.0928324834f;
    return z * (sum * t + 0.227713168f);
}

LR_KERNEL float within_cut(float z)
{
    return fminf(fmaxf(z, -3.0f), 3.0f);
}

// e^(-y / 2)
LR_KERNEL float gaussian_of(float y)
{
    return power_of_two(y * -0.72134752f);
}

// The integral over an interval around a centre, for half_width <= 0.5: the Gaussian's series around the centre, with
// Hermite polynomials as terms. The relative error is 3e-8. A difference of two integrals would have a larger error.
LR_KERNEL float normal_around(float centre, float half_width)
{
    float y = centre * centre, q = half_width * half_width;
    float of_8 = (((y - 28.0f) * y + 210.0f) * y - 420.0f) * y + 105.0f;
    float of_6 = ((y - 15.0f) * y + 45.0f) * y - 15.0f, of_4 = (y - 6.0f) * y + 3.0f;
    float sum = of_6 * (1.0f / 5040.0f) + q * of_8 * (1.0f / 362880.0f);
    sum = 1.0f + q * ((y - 1.0f) * (1.0f / 6.0f) + q * (of_4 * (1.0f / 120.0f) + q * sum));
    return 2.0f * float(LR_TIMES_DENSITY) * half_width * gaussian_of(y) * sum;
}

// The integral of normal_from_0 over an interval around a centre. normal_from_0 is constant beyond |z| = 3. For a short
// interval, derivatives at the middle of the interval's part within |z| <= 3 are used, with an error of 1e-6 of the
// result. For a longer interval, the result is the difference of an antiderivative between the interval's ends.
LR_KERNEL float normal_sum_around(float centre, float half_width)
{
    float low = centre - half_width, high = centre + half_width;
    float from = within_cut(low), to = within_cut(high);
    float beyond = float(0.5 * LR_TIMES_HELD) * ((fabsf(high) - fabsf(to)) - (fabsf(low) - fabsf(from)));
    if (half_width < 0.35f) {
        float half_held = 0.5f * (to - from), middle = 0.5f * (to + from);
        float y = middle * middle, q = half_held * half_held;
        float density = float(LR_TIMES_DENSITY) * gaussian_of(y);
        float bend = q * (1.0f / 6.0f + q * (y - 3.0f) * (1.0f / 120.0f));
        return beyond + 2.0f * half_held * (normal_from_0(middle) - middle * density * bend);
    }
    float fall = gaussian_of(to * to) - gaussian_of(from * from);
    return beyond + to * normal_from_0(to) - from * normal_from_0(from) + float(LR_TIMES_DENSITY) * fall;
}

// The integral over an interval around a middle, averaged over a bin that reaches half_bin to either side. Both half
// lengths are below 0.35. The result is the Gaussian's series around the middle, with moments of the sum of two uniform
// distributions. The relative error is 3e-7. A difference of integrals would be less accurate far from the event's
// middle.
LR_KERNEL float normal_around_bin(float middle, float half_width, float half_bin)
{
    float y = middle * middle, q = half_width * half_width, p = half_bin * half_bin, both = q * p;
    float squares = q * q + p * p;
    float moment_4 = squares * (1.0f / 5.0f) + both * (2.0f / 3.0f);
    float moment_6 = (q + p) * ((squares - both) * (1.0f / 7.0f) + both);
    float moment_8 =
        (squares * squares - 2.0f * both * both) * (1.0f / 9.0f) + both * (squares * (4.0f / 3.0f) + both * 2.8f);
    float of_8 = (((y - 28.0f) * y + 210.0f) * y - 420.0f) * y + 105.0f;
    float of_6 = ((y - 15.0f) * y + 45.0f) * y - 15.0f;
    float of_4 = (y - 6.0f) * y + 3.0f;
    float high = of_6 * moment_6 * (1.0f / 720.0f) + of_8 * moment_8 * (1.0f / 40320.0f);
    float sum = 1.0f + ((q + p) * (y - 1.0f) * (1.0f / 6.0f) + (of_4 * moment_4 * (1.0f / 24.0f) + high));
    return 2.0f * float(LR_TIMES_DENSITY) * half_width * gaussian_of(y) * sum;
}

// The share of an event's time of flight that lies within half_width of a middle. The event's bin extends by half_bin
// to either side of 0. The interval and the bin can be exchanged in the formula, so the difference is taken between the
// two ends of the longer one.
LR_KERNEL float held_of_bin(float middle, float half_width, float half_bin)
{
    float longer = fmaxf(half_width, half_bin), shorter = fminf(half_width, half_bin);
    if (longer < 0.35f && fabsf(middle) + longer + shorter <= 3.0f)
        return normal_around_bin(middle, half_width, half_bin) * float(LR_TIMES_PER_HELD);
    return float(0.5 * LR_TIMES_PER_HELD) / half_bin *
           (normal_sum_around(middle + longer, shorter) - normal_sum_around(middle - longer, shorter));
}
#endif
#endif
