/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The time-critical loops, compiled for several instruction sets. All give the same bits: no multiplication is fused
 * with an addition, and sums always have eight lanes. */
#ifndef LR_CORRESPONDENCE_NATIVE_KERNELS_H
#define LR_CORRESPONDENCE_NATIVE_KERNELS_H

#include "correspondence/native/scene.h"

#include <math.h>

/* The number of slots is a multiple of LR_NATIVE_LANES. The last slots are filled up with weights of 0. */
enum { LR_NATIVE_LANES = 16 };

/* The cells of primary (a) and secondary (b) along the axis. */
struct lr_native_axial {
    float pitch_a;
    float half_a;   /* half of the primary face, or of the part of the face that is looked at */
    float middle_a; /* middle of the face, or of its part, in the first cell */
    float pitch_b, face_b;
    float gap_b; /* from the edge of a cell to its face */
    int num_a, num_b;
    int stride_a, stride_b; /* step in a block of values from cell to cell */
    double exact_pitch_a, exact_face_a, exact_pitch_b, exact_face_b;
    int rays; /* for sampled mode */
};

/* The modules along the axis as a point sees them. */
struct lr_native_starts {
    double exact_a, exact_b; /* from the point to the first cell's edge */
    float a, b;
    float base; /* place of b's first edge on a, from a's first edge */
};

/* Elements of a strip and a point: weights, and offsets of their values in the block. */
struct lr_native_slots {
    float *weight;
    int32_t *offset;
    int64_t capacity; /* slots */
    int32_t *scratch; /* working memory, [3][capacity] */
    float *overlaps;  /* working memory, [4][capacity] */
};

struct lr_native_kernels {
    const char *name;
    /* Each function returns the number of slots filled. exact: for modules that are not parallel across. */
    int (*exact)(const struct lr_native_strip *strip, const struct lr_native_axial *axial,
                 const struct lr_native_starts *starts, const struct lr_native_slots *slots);
    int (*sampled)(const struct lr_native_strip *strip, const struct lr_native_axial *axial,
                   const struct lr_native_starts *starts, const struct lr_native_slots *slots);
    /* Weights of overlaps without moment, [count] each. */
    void (*straight)(const struct lr_native_strip *strip, const float *overlaps[2], int count, float *weight);
    float (*sum)(const float *weight, int count);
    float (*dot)(const float *weight, const int32_t *offset, int count, const float *block);
};

/* The kernels that this processor can run, the best first; NULL after the last. */
const struct lr_native_kernels *lr_native_kernels_at(int index);

/* Restricts the view to one of several equal parts of each primary face. */
static inline void lr_native_look_at(struct lr_native_axial *axial, int part, int parts)
{
    const double offset = (part + 0.5) / parts - 0.5;
    axial->half_a = (float)(0.5 * axial->exact_face_a / parts);
    axial->middle_a = (float)(0.5 * axial->exact_pitch_a + offset * axial->exact_face_a);
}

static inline struct lr_native_starts lr_native_start(const struct lr_native_strip *strip, const double starts[2])
{
    return (struct lr_native_starts){starts[0], starts[1], (float)starts[0], (float)starts[1],
                                     (float)(-starts[1] * strip->tau_exactly - starts[0])};
}

/* --- the arithmetic of one element along the axis (docs/method/correspondence.md, "Columns in
 * native"), in single precision and without branches, so that loops over it become vector code.
 * Every kernel and every sum over single LORs uses these functions, and so gives the same bits --- */

/* Share of a cell below which the thickness of an overlap is rounding. */
#define LR_NATIVE_THIN 1e-6f

/* The overlap of a primary cell and the shadow of a secondary cell: its middle and height along the axis. Its two edges
 * have first moments over the width of the strip: taper is their difference, skew their sum. */
struct lr_native_overlap {
    float y, height, taper, skew;
};

static inline float lr_native_most(float a, float b)
{
    return a > b ? a : b;
}

static inline float lr_native_clamp(float x, float low, float high)
{
    const float above = lr_native_most(x, low);
    return above < high ? above : high;
}

/* The mean of a line over the strip, clamped to -half .. half, and its first moment over the width (-1/2 .. 1/2).
 * middle: position of the line at the strip's middle; rise: change from one end to the other. */
static inline void lr_native_clamped_line(float middle, float rise, float half, float out[2])
{
    const float steep = fabsf(rise);
    const float inverse = 1.0f / lr_native_most(steep, 1e-20f);
    const float above = middle + half, over = middle - half;
    /* shares of the width over which the line lies above -half, and above half */
    const float f = lr_native_clamp(above * inverse + 0.5f, 0.0f, 1.0f);
    const float g = lr_native_clamp(over * inverse + 0.5f, 0.0f, 1.0f);
    const float ff = f * f, gg = g * g, bend = 0.5f * steep;
    out[0] = lr_native_most(above - bend, 0.0f) - lr_native_most(over - bend, 0.0f) + bend * (ff - gg) - half;
    out[1] = rise * (1.0f / 12.0f) * (ff * (3.0f - 2.0f * f) - gg * (3.0f - 2.0f * g));
}

/* q_middle: middle of the primary cell, from the module's start. below: lower edge of the secondary cell, from its
 * module's start. base: position of the secondary's start on the primary, from the primary's start. */
static inline struct lr_native_overlap lr_native_bent_overlap(const struct lr_native_strip *strip,
                                                              const struct lr_native_axial *axial,
                                                              const struct lr_native_starts *starts, const float at[2])
{
    const float q_middle = at[0], below = at[1], above = below + axial->face_b;
    float upper[2], lower[2];
    lr_native_clamped_line(starts->base - below * strip->tau - q_middle, -(starts->b + below) * strip->dtau,
                           axial->half_a, upper);
    lr_native_clamped_line(starts->base - above * strip->tau - q_middle, -(starts->b + above) * strip->dtau,
                           axial->half_a, lower);
    return (struct lr_native_overlap){starts->a + q_middle + 0.5f * (upper[0] + lower[0]), upper[0] - lower[0],
                                      upper[1] - lower[1], upper[1] + lower[1]};
}

/* The overlap of modules that are parallel across: the shadow is a rectangle. */
static inline struct lr_native_overlap lr_native_straight_overlap(const struct lr_native_strip *strip,
                                                                  const struct lr_native_axial *axial,
                                                                  const struct lr_native_starts *starts,
                                                                  const float at[2])
{
    const float q_middle = at[0], below = at[1], above = below + axial->face_b;
    const float half = axial->half_a;
    const float upper = lr_native_clamp(starts->base - below * strip->tau - q_middle, -half, half);
    const float lower = lr_native_clamp(starts->base - above * strip->tau - q_middle, -half, half);
    return (struct lr_native_overlap){starts->a + q_middle + 0.5f * (upper + lower), upper - lower, 0.0f, 0.0f};
}

/* Solid angle / 2 pi of an overlap: its area times the density at its middle, with the second-order terms. Edges are
 * taken as the straight lines with the same moments. */
static inline float lr_native_weight(const struct lr_native_strip *strip, const struct lr_native_overlap *overlap)
{
    const float y = overlap->y, height = overlap->height, slant = strip->slant;
    const float taper = overlap->taper, skew = overlap->skew, width = strip->width;
    const float inverse = 1.0f / (y * y + strip->squared);
    const float bend_u = (15.0f * slant * slant * inverse - 3.0f) * (width * width);
    const float spread = height * height + 36.0f * (skew * skew + taper * taper);
    const float bend_v = (15.0f * y * y * inverse - 3.0f) * spread;
    const float twist = 7.5f * slant * y * inverse * (width * skew);
    const float bent = height * (1.0f + ((bend_u + bend_v) * (1.0f / 24.0f) + twist) * inverse) -
                       (3.0f * slant * width + 18.0f * y * skew) * inverse * taper;
    return strip->share * inverse * sqrtf(inverse) * bent;
}

/* lr_native_weight of an overlap whose taper and skew are 0. */
static inline float lr_native_straight_weight(const struct lr_native_strip *strip, float y, float height)
{
    const float slant = strip->slant, width = strip->width;
    const float inverse = 1.0f / (y * y + strip->squared);
    const float bend_u = (15.0f * slant * slant * inverse - 3.0f) * (width * width);
    const float bend_v = (15.0f * y * y * inverse - 3.0f) * (height * height);
    const float bent = height * (1.0f + (bend_u + bend_v) * (1.0f / 24.0f) * inverse);
    return strip->share * inverse * sqrtf(inverse) * bent;
}

/* The coordinate, from the point, at which line `ray` of primary cell q starts in sampled mode. It is computed in
 * double, because it decides which crystal a line hits. */
static inline double lr_native_line_start(const struct lr_native_axial *axial, double start_a, int q, int ray)
{
    return start_a + (q + 0.5) * axial->exact_pitch_a + ((ray + 0.5) / axial->rays - 0.5) * axial->exact_face_a;
}

/* The coordinate at which the line from y hits the secondary, in cells from the secondary's start. */
static inline double lr_native_line_place(const struct lr_native_strip *strip, const struct lr_native_axial *axial,
                                          double start_b, double y)
{
    return (-y / strip->tau_exactly - start_b) / axial->exact_pitch_b;
}

/* True if the coordinate `place`, in cells from the secondary's start, is on the face of cell s. */
static inline bool lr_native_line_meets(const struct lr_native_axial *axial, double place, int s)
{
    return fabs(place - s - 0.5) * axial->exact_pitch_b <= 0.5 * axial->exact_face_b;
}

/* The line's weight per mm of the primary's face along the axis. */
static inline float lr_native_line_weight(const struct lr_native_strip *strip, float y)
{
    const float inverse = 1.0f / (y * y + strip->squared);
    return strip->share * inverse * sqrtf(inverse);
}

/* The kernels of each instruction set. LR_NATIVE_AVX2 is defined if the compiler makes kernels for AVX2
 * (CMakeLists.txt). */
extern const struct lr_native_kernels lr_native_kernels_baseline;
extern const struct lr_native_kernels lr_native_kernels_avx2;
/* True if this processor and system have AVX2. Defined only in builds with LR_NATIVE_AVX2. */
bool lr_native_has_avx2(void);

#endif
