/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The loops that take the time, compiled for several instruction sets. All give the same bits:
 * nothing is fused, and sums have eight lanes everywhere. */
#ifndef LR_NATIVE_KERNELS_H
#define LR_NATIVE_KERNELS_H

#include "native/strip.h"

/* Slots come in multiples of this, the last ones filled up with weights of 0. */
enum { LR_NATIVE_LANES = 16 };

/* The cells of primary (a) and secondary (b) along the axis. */
struct lr_native_axial {
    float pitch_a;
    float half_a;   /* half the face, or the part of it that is looked at */
    float middle_a; /* of that, in the first cell */
    float pitch_b, face_b;
    float gap_b; /* from a cell's edge to its face */
    int num_a, num_b;
    int stride_a, stride_b; /* of values, from cell to cell */
    double exact_pitch_a, exact_face_a, exact_pitch_b, exact_face_b;
    int rays; /* sampled mode */
};

/* The modules along the axis as a point sees them. */
struct lr_native_starts {
    double exact_a, exact_b; /* from the point to the first cell's edge */
    float a, b;
    float base; /* where b's first edge stands on a, from a's first edge */
};

/* Elements that a strip and a point share: weights and where in the block their values stand. */
struct lr_native_slots {
    float *weight;
    int32_t *offset;
    int64_t capacity; /* slots */
    int32_t *scratch; /* working memory, [3][capacity] */
    float *overlaps;  /* likewise, [4][capacity] */
};

struct lr_native_kernels {
    const char *name;
    /* Each returns the number of slots filled. exact: modules that are not parallel across. */
    int (*exact)(const struct lr_native_strip *strip, const struct lr_native_axial *axial,
                 const struct lr_native_starts *starts, const struct lr_native_slots *slots);
    int (*sampled)(const struct lr_native_strip *strip, const struct lr_native_axial *axial,
                   const struct lr_native_starts *starts, const struct lr_native_slots *slots);
    /* Weights of overlaps without moment, [count] each. */
    void (*straight)(const struct lr_native_strip *strip, const float *overlaps[2], int count, float *weight);
    float (*sum)(const float *weight, int count);
    float (*dot)(const float *weight, const int32_t *offset, int count, const float *block);
};

/* Those that this processor runs, the best first; NULL behind the last. */
const struct lr_native_kernels *lr_native_kernels_at(int index);

/* Slots that one strip and point may fill. */
int64_t lr_native_max_slots(const struct lr_native_scene *scene);

/* Looks at one of several equal parts of each primary face. */
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

#endif
