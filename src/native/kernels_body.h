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
    cells[0] = (int)lr_native_clamp(low / axial->pitch_a, 0.0f, num);
    cells[1] = (int)lr_native_clamp(high / axial->pitch_a + 1.0f, 0.0f, num) - 1;
}

static int round_up(int count)
{
    return (count + LR_NATIVE_LANES - 1) & ~(LR_NATIVE_LANES - 1);
}

/* The first cell of the secondary that each primary cell from `begin` on may be seen through.
 * Returns how many more there are at most. */
static int find_secondary_cells(const struct lr_native_strip *strip,
                                const struct lr_native_axial *axial,
                                const struct lr_native_starts *starts, const int cells[2],
                                int32_t *restrict first)
{
    const float bend = 0.5f * fabsf(strip->dtau), half = axial->half_a;
    const float near = 1.0f / lr_native_most(strip->tau - bend, 1e-6f * strip->tau), far = 1.0f / (strip->tau + bend);
    const float scale = 1.0f / axial->pitch_b, pitch = axial->pitch_a;
    const float middle_a = axial->middle_a;
    const float start_a = starts->a, start_b = starts->b, last = (float)(axial->num_b - 1);
    const int begin = cells[0], count = round_up(cells[1] - cells[0] + 1);
    int32_t most = 0;
    for (int m = 0; m < count; m++) {
        const float middle = start_a + ((float)(begin + m) * pitch + middle_a);
        const float low = middle - half, high = middle + half;
        const float from = (-high * (high > 0.0f ? near : far) - start_b) * scale;
        const float to = (-low * (low > 0.0f ? far : near) - start_b) * scale;
        const int32_t one = (int32_t)lr_native_clamp(from - 1e-3f, 0.0f, last);
        const int32_t end = (int32_t)lr_native_clamp(to + 1e-3f, 0.0f, last);
        first[m] = one;
        most = end - one > most ? end - one : most;
    }
    return most;
}

static int exact(const struct lr_native_strip *strip_at, const struct lr_native_axial *axial_at,
                 const struct lr_native_starts *starts_at, const struct lr_native_slots *slots)
{
    const struct lr_native_strip strip = *strip_at;
    const struct lr_native_axial axial = *axial_at;
    const struct lr_native_starts starts = *starts_at;
    int cells[2];
    primary_cells(&strip, &axial, &starts, cells);
    if (cells[1] < cells[0]) {
        return 0;
    }
    const int32_t *restrict first = slots->scratch;
    const int extra = find_secondary_cells(&strip, &axial, &starts, cells, slots->scratch);
    const int begin = cells[0], end = cells[1], count = round_up(end - begin + 1);
    const int last = axial.num_b - 1;
    const float thin = LR_NATIVE_THIN * axial.half_a;
    for (int n = 0; n <= extra; n++) {
        float *restrict weight = slots->weight + n * count;
        int32_t *restrict offset = slots->offset + n * count;
        for (int m = 0; m < count; m++) {
            const int q = begin + m, s = first[m] + n;
            const float at[2] = {(float)q * axial.pitch_a + axial.middle_a,
                                 (float)s * axial.pitch_b + axial.gap_b};
            const struct lr_native_overlap overlap =
                lr_native_bent_overlap(&strip, &axial, &starts, at);
            const float found = lr_native_weight(&strip, &overlap);
            const float kept = overlap.height > thin ? found : 0.0f;
            weight[m] = q <= end && s <= last ? kept : 0.0f;
            offset[m] = (q < end ? q : end) * axial.stride_a + (s < last ? s : last) * axial.stride_b;
        }
    }
    return (extra + 1) * count;
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
