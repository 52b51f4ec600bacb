/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The kernels themselves: a file per instruction set includes this and names the table KERNELS. */
#include "native/element.h"

/* Cells of the primary that the whole secondary is seen through: first, last. */
static void primary_cells(const struct lr_native_strip *strip, const struct lr_native_axial *axial,
                          const struct lr_native_starts *starts, int cells[2])
{
    const float end = (float)axial->num_b * axial->pitch_b;
    const float bend = 0.5f * fabsf(strip->dtau);
    const float low = starts->base - end * strip->tau - bend * fabsf(starts->b + end);
    const float high = starts->base + bend * fabsf(starts->b);
    const float num = (float)axial->num_a;
    cells[0] = (int)lr_native_clamp(low / axial->pitch_a - 1e-3f, 0.0f, num);
    cells[1] = (int)lr_native_clamp(high / axial->pitch_a + 1.001f, 0.0f, num) - 1;
}

static int round_up(int count)
{
    return (count + LR_NATIVE_LANES - 1) & ~(LR_NATIVE_LANES - 1);
}

/* Loops run over this many cells at a time. */
enum { GROUP = 8 };

/* The first cell of the secondary that each primary cell from `begin` on may be seen through.
 * Returns how many more there are at most. */
static inline int find_secondary_cells(const struct lr_native_strip *strip,
                                       const struct lr_native_axial *axial,
                                       const struct lr_native_starts *starts, int begin,
                                       int32_t first[GROUP])
{
    const float bend = 0.5f * fabsf(strip->dtau), half = axial->half_a;
    const float near = 1.0f / lr_native_most(strip->tau - bend, 1e-6f * strip->tau);
    const float far = 1.0f / (strip->tau + bend), scale = 1.0f / axial->pitch_b;
    const float last = (float)(axial->num_b - 1);
    int32_t most = 0, more[GROUP];
    for (int m = 0; m < GROUP; m++) {
        const float middle = starts->a + ((float)(begin + m) * axial->pitch_a + axial->middle_a);
        const float low = middle - half, high = middle + half;
        const float from = (-high * (high > 0.0f ? near : far) - starts->b) * scale;
        const float to = (-low * (low > 0.0f ? far : near) - starts->b) * scale;
        const int32_t one = (int32_t)lr_native_clamp(from - 1e-3f, 0.0f, last);
        const int32_t end = (int32_t)lr_native_clamp(to + 1e-3f, 0.0f, last);
        first[m] = one;
        more[m] = end - one;
    }
    for (int m = 0; m < GROUP; m++) {
        most = more[m] > most ? more[m] : most;
    }
    return most;
}

/* Cells begin .. begin + GROUP - 1 of the primary, those up to `end`, with the n-th after their
 * first ones of the secondary. */
static inline void weigh_group(const struct lr_native_strip *strip,
                               const struct lr_native_axial *axial,
                               const struct lr_native_starts *starts, const int at[3],
                               const int32_t first[GROUP], float *restrict weight,
                               int32_t *restrict offset)
{
    const int begin = at[0], end = at[1], n = at[2], last = axial->num_b - 1;
    const float thin = LR_NATIVE_THIN * axial->half_a;
    for (int m = 0; m < GROUP; m++) {
        const int q = begin + m, s = first[m] + n;
        const float place[2] = {(float)q * axial->pitch_a + axial->middle_a,
                                (float)s * axial->pitch_b + axial->gap_b};
        const struct lr_native_overlap overlap =
            lr_native_bent_overlap(strip, axial, starts, place);
        const float found = lr_native_weight(strip, &overlap);
        const float kept = overlap.height > thin ? found : 0.0f;
        weight[m] = q <= end && s <= last ? kept : 0.0f;
        offset[m] = (q < end ? q : end) * axial->stride_a + (s < last ? s : last) * axial->stride_b;
    }
}

static int exact(const struct lr_native_strip *strip_at, const struct lr_native_axial *axial_at,
                 const struct lr_native_starts *starts_at, const struct lr_native_slots *slots)
{
    const struct lr_native_strip strip = *strip_at;
    const struct lr_native_axial axial = *axial_at;
    const struct lr_native_starts starts = *starts_at;
    int cells[2], count = 0;
    primary_cells(&strip, &axial, &starts, cells);
    for (int begin = cells[0]; begin <= cells[1]; begin += GROUP) {
        int32_t first[GROUP];
        const int extra = find_secondary_cells(&strip, &axial, &starts, begin, first);
        for (int n = 0; n <= extra; n++, count += GROUP) {
            weigh_group(&strip, &axial, &starts, (const int[3]){begin, cells[1], n}, first,
                        slots->weight + count, slots->offset + count);
        }
    }
    return count;
}

static int sampled(const struct lr_native_strip *strip_at, const struct lr_native_axial *axial_at,
                   const struct lr_native_starts *starts_at, const struct lr_native_slots *slots)
{
    const struct lr_native_strip strip = *strip_at;
    const struct lr_native_axial axial = *axial_at;
    int cells[2];
    primary_cells(&strip, &axial, starts_at, cells);
    if (cells[1] < cells[0]) {
        return 0;
    }
    const int begin = cells[0], end = cells[1], count = round_up(end - begin + 1);
    const double num = axial.num_b;
    const float share = (float)(axial.exact_face_a / axial.rays);
    for (int ray = 0; ray < axial.rays; ray++) {
        float *restrict weight = slots->weight + ray * count;
        int32_t *restrict offset = slots->offset + ray * count;
        for (int m = 0; m < count; m++) {
            const int q = begin + m;
            const double y = lr_native_line_start(&axial, starts_at->exact_a, q, ray);
            const double place = lr_native_line_place(&strip, &axial, starts_at->exact_b, y);
            const double within = place > 0.0 ? (place < num ? place : num - 0.5) : 0.0;
            const int s = (int)within;
            const bool met = lr_native_line_meets(&axial, place, s);
            const float found = share * lr_native_line_weight(&strip, (float)y);
            weight[m] = q <= end && met ? found : 0.0f;
            offset[m] = (q < end ? q : end) * axial.stride_a + s * axial.stride_b;
        }
    }
    return axial.rays * count;
}

static void straight(const struct lr_native_strip *strip_at, const float *overlaps[2], int count,
                     float *restrict weight)
{
    const struct lr_native_strip strip = *strip_at;
    const float *restrict y = overlaps[0], *restrict height = overlaps[1];
    const int whole = count & ~(LR_NATIVE_LANES - 1);
    for (int m = 0; m < whole; m++) {
        weight[m] = lr_native_straight_weight(&strip, y[m], height[m]);
    }
}

/* Always the same order, whatever the width of vectors. */
static float add_lanes(const float lanes[8])
{
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

static float sum(const float *restrict weight, int count)
{
    float lanes[8] = {0.0f};
    for (int m = 0; m < count; m += 8) {
        for (int k = 0; k < 8; k++) {
            lanes[k] += weight[m + k];
        }
    }
    return add_lanes(lanes);
}

static float dot(const float *restrict weight, const int32_t *restrict offset, int count,
                 const float *restrict block)
{
    float lanes[8] = {0.0f};
    for (int m = 0; m < count; m += 8) {
        for (int k = 0; k < 8; k++) {
            lanes[k] += weight[m + k] * block[offset[m + k]];
        }
    }
    return add_lanes(lanes);
}

const struct lr_native_kernels KERNELS = {KERNELS_NAME, exact, sampled, straight, sum, dot};
