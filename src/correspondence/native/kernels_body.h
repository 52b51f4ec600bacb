/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The kernels. The file of each instruction set defines KERNELS as the name of its table, and includes this file. */
#include "correspondence/native/kernels.h"

/* Finds the first and the last primary cell through which a part of the secondary may be visible. */
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
    return count <= 0 ? 0 : (count + LR_NATIVE_LANES - 1) & ~(LR_NATIVE_LANES - 1);
}

/* The number of cells of a group. Loops run over whole groups, so that they fill vectors. */
enum { GROUP = 8 };

/* Finds, for each primary cell from cells[0] to cells[1], the first and the last secondary cell that may be visible
 * through it. ends: numbers of the first cells, and of the last cells. */
static void find_secondary_cells(const struct lr_native_strip *strip, const struct lr_native_axial *axial,
                                 const struct lr_native_starts *starts, const int cells[2], int32_t *restrict ends[2])
{
    const float bend = 0.5f * fabsf(strip->dtau), half = axial->half_a;
    const float near = 1.0f / lr_native_most(strip->tau - bend, 1e-6f * strip->tau);
    const float far = 1.0f / (strip->tau + bend), scale = 1.0f / axial->pitch_b;
    const float pitch = axial->pitch_a, start_a = starts->a + axial->middle_a;
    const float start_b = starts->b, last_cell = (float)(axial->num_b - 1);
    const int begin = cells[0], count = round_up(cells[1] - cells[0] + 1);
    int32_t *restrict first = ends[0], *restrict last = ends[1];
    for (int m = 0; m < count; m++) {
        const float middle = start_a + (float)(begin + m) * pitch;
        const float low = middle - half, high = middle + half;
        const float from = (-high * (high > 0.0f ? near : far) - start_b) * scale;
        const float to = (-low * (low > 0.0f ? far : near) - start_b) * scale;
        first[m] = (int32_t)lr_native_clamp(from - 1e-3f, 0.0f, last_cell);
        last[m] = (int32_t)lr_native_clamp(to + 1e-3f, 0.0f, last_cell);
    }
}

/* The arrays of exact mode, [slots] each. Several short loops over these arrays are faster than one long loop, because
 * a processor works on more iterations of a short loop at the same time. */
struct exact_lists {
    int32_t *q, *s; /* numbers of the primary and secondary cells; unused slots of a group have cells that do not
                       exist */
    float *y, *height, *taper, *skew;
};

/* Lists the cells of the primary in groups. Each cell is listed with its first secondary cell and those that follow.
 * All cells of a group have the same number of secondary cells: the largest that one of them needs. Returns the number
 * of slots. */
static int list_cells(const int cells[2], const int32_t *restrict first, const int32_t *restrict last,
                      const struct exact_lists *lists)
{
    int32_t *restrict q = lists->q, *restrict s = lists->s;
    int count = 0;
    for (int at = 0; at <= cells[1] - cells[0]; at += GROUP) {
        int32_t extra = 0; /* largest number of secondary cells after the first, over all members of the group */
        for (int m = at; m < at + GROUP; m++) extra = last[m] - first[m] > extra ? last[m] - first[m] : extra;
        for (int n = 0; n <= extra; n++, count += GROUP) {
            for (int m = 0; m < GROUP; m++) {
                q[count + m] = cells[0] + at + m;
                s[count + m] = first[at + m] + n;
            }
        }
    }
    return count;
}

static void overlap_cells(const struct lr_native_strip *strip_at, const struct lr_native_axial *axial_at,
                          const struct lr_native_starts *starts_at, const struct exact_lists *lists, int count)
{
    const struct lr_native_strip strip = *strip_at;
    const struct lr_native_axial axial = *axial_at;
    const struct lr_native_starts starts = *starts_at;
    const int32_t *restrict q = lists->q, *restrict s = lists->s;
    float *restrict y = lists->y, *restrict height = lists->height;
    float *restrict taper = lists->taper, *restrict skew = lists->skew;
    for (int m = 0; m < count; m++) {
        const float at[2] = {(float)q[m] * axial.pitch_a + axial.middle_a, (float)s[m] * axial.pitch_b + axial.gap_b};
        const struct lr_native_overlap overlap = lr_native_bent_overlap(&strip, &axial, &starts, at);
        y[m] = overlap.y;
        height[m] = overlap.height;
        taper[m] = overlap.taper;
        skew[m] = overlap.skew;
    }
}

static void weigh_overlaps(const struct lr_native_strip *strip_at, float thin, const struct exact_lists *lists,
                           int count, float *restrict weight)
{
    const struct lr_native_strip strip = *strip_at;
    const float *restrict y = lists->y, *restrict height = lists->height;
    const float *restrict taper = lists->taper, *restrict skew = lists->skew;
    for (int m = 0; m < count; m++) {
        const struct lr_native_overlap overlap = {y[m], height[m], taper[m], skew[m]};
        const float counts = height[m] > thin ? 1.0f : 0.0f;
        weight[m] = lr_native_weight(&strip, &overlap) * counts;
    }
}

/* Finds the position of each slot's value. A slot whose cells do not exist gets the position of another slot, and
 * weight 0. */
static void place_cells(const struct lr_native_axial *axial, int end, const struct exact_lists *lists, int count,
                        const struct lr_native_slots *slots)
{
    const int32_t *restrict q = lists->q, *restrict s = lists->s;
    const int32_t last = axial->num_b - 1;
    const int32_t stride_a = axial->stride_a, stride_b = axial->stride_b;
    int32_t *restrict offset = slots->offset;
    float *restrict weight = slots->weight;
    for (int m = 0; m < count; m++) {
        const int32_t on_a = q[m] < end ? q[m] : end, on_b = s[m] < last ? s[m] : last;
        offset[m] = on_a * stride_a + on_b * stride_b;
        weight[m] *= ((on_a == q[m]) & (on_b == s[m])) ? 1.0f : 0.0f;
    }
}

static int exact(const struct lr_native_strip *strip, const struct lr_native_axial *axial,
                 const struct lr_native_starts *starts, const struct lr_native_slots *slots)
{
    const int64_t step = slots->capacity;
    int32_t *cell_lists = slots->scratch + step;
    float *overlaps = slots->overlaps;
    const struct exact_lists lists = {cell_lists,      cell_lists + step,   overlaps,
                                      overlaps + step, overlaps + 2 * step, overlaps + 3 * step};
    int32_t *ends[2] = {slots->scratch, slots->scratch + round_up(axial->num_a)};
    int cells[2];
    primary_cells(strip, axial, starts, cells);
    find_secondary_cells(strip, axial, starts, cells, ends);
    /* The count is a multiple of GROUP. The mask tells this to the compiler. */
    const int count = list_cells(cells, ends[0], ends[1], &lists) & ~(GROUP - 1);
    overlap_cells(strip, axial, starts, &lists, count);
    weigh_overlaps(strip, LR_NATIVE_THIN * axial->half_a, &lists, count, slots->weight);
    place_cells(axial, cells[1], &lists, count, slots);
    return count;
}

static int sampled(const struct lr_native_strip *strip_at, const struct lr_native_axial *axial_at,
                   const struct lr_native_starts *starts_at, const struct lr_native_slots *slots)
{
    const struct lr_native_strip strip = *strip_at;
    const struct lr_native_axial axial = *axial_at;
    int cells[2];
    primary_cells(&strip, &axial, starts_at, cells);
    if (cells[1] < cells[0]) return 0;
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
    for (int m = 0; m < whole; m++) weight[m] = lr_native_straight_weight(&strip, y[m], height[m]);
}

/* Keeps the compiler from merging iterations of the outer loop, whose inner loop already fills one vector. */
#define ONE_BY_ONE __asm__ volatile("")

/* The sum of the lanes, in the same order for every vector width. */
static float add_lanes(const float lanes[8])
{
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

static float sum(const float *restrict weight, int count)
{
    float lanes[8] = {0.0f};
    for (int m = 0; m < count; m += 8) {
        for (int k = 0; k < 8; k++) lanes[k] += weight[m + k];
        ONE_BY_ONE;
    }
    return add_lanes(lanes);
}

static float dot(const float *restrict weight, const int32_t *restrict offset, int count, const float *restrict block)
{
    float lanes[8] = {0.0f};
    for (int m = 0; m < count; m += 8) {
        float values[8];
        for (int k = 0; k < 8; k++) values[k] = block[offset[m + k]];
        for (int k = 0; k < 8; k++) lanes[k] += weight[m + k] * values[k];
        ONE_BY_ONE;
    }
    return add_lanes(lanes);
}

const struct lr_native_kernels KERNELS = {KERNELS_NAME, exact, sampled, straight, sum, dot};
