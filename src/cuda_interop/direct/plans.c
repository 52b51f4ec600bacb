/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/plans.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "cuda_interop/direct/tables.h"
#include "direct/tables.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- plans of gathers by bands. A plan divides a kernel and a grid into rows of a lattice, and rows into octets --- */

/* The places of a lattice row that the kernel covers, relative to an output; first > last if there are none. octets:
 * the first and the last octet of sources with weights for an octet of outputs. */
struct band_span {
    int first, last;
    int octets[2];
};

/* The kernel, divided into rows of the lattice: one span for each row offset d and slice offset. */
struct band_rows {
    struct lr_lattice lattice;
    int least[2], count[2];  /* [0]: row offsets; [1]: slice offsets */
    struct band_span *spans; /* owned [count[0]][count[1]] */
};

/* An octet of sources at a slice offset. */
struct band_half {
    int octet, slice;
};

enum { OCTET = LR_CUDA_OCTET, ROWS = LR_CUDA_BAND_ROWS };

/* --- the kernel's rows --- */

/* d: number of the row offset; slice: number of the slice offset. Number 0 is the smallest offset. */
static struct band_span *band_span_at(const struct band_rows *rows, int d, int slice)
{
    return &rows->spans[(int64_t)d * rows->count[1] + slice];
}

/* --- halves of steps --- */

/* The span of a warp's row i in list d; NULL if the row has none. */
static const struct band_span *band_span_of(const struct band_rows *rows, int d, int i, int slice)
{
    if (d - i < 0 || d - i >= rows->count[0]) return NULL;
    const struct band_span *span = band_span_at(rows, d - i, slice);
    return span->first <= span->last ? span : NULL;
}

/* True if row i has weights for a half. */
static bool band_has_half(const struct band_rows *rows, int d, int i, const struct band_half *half)
{
    const struct band_span *span = band_span_of(rows, d, i, half->slice);
    return span != NULL && half->octet >= span->octets[0] && half->octet <= span->octets[1];
}

/* Sets range to the first and the last octet of sources that the steps of list d read. If the steps read no octet,
 * range[1] < range[0]. */
static void band_range(const struct band_rows *rows, int d, int range[2])
{
    range[0] = INT32_MAX;
    range[1] = INT32_MIN;
    for (int k = 0; k < ROWS * rows->count[1]; k++) {
        const struct band_span *span = band_span_of(rows, d, k % ROWS, k / ROWS);
        if (span != NULL) {
            range[0] = span->octets[0] < range[0] ? span->octets[0] : range[0];
            range[1] = span->octets[1] > range[1] ? span->octets[1] : range[1];
        }
    }
}

/* Number of halves of a list. A half is an octet of sources with weights for one row of outputs, or for both rows. */
static int band_count_halves(const struct band_rows *rows, int d)
{
    _Static_assert((int)ROWS == 2, "rows a and b below");
    int count = 0;
    for (int slice = 0; slice < rows->count[1]; slice++) {
        const struct band_span *a = band_span_of(rows, d, 0, slice), *b = band_span_of(rows, d, 1, slice);
        count += a != NULL ? a->octets[1] - a->octets[0] + 1 : 0;
        count += b != NULL ? b->octets[1] - b->octets[0] + 1 : 0;
        if (a != NULL && b != NULL) {
            const int first = a->octets[0] > b->octets[0] ? a->octets[0] : b->octets[0];
            const int last = a->octets[1] < b->octets[1] ? a->octets[1] : b->octets[1];
            count -= last >= first ? last - first + 1 : 0;
        }
    }
    return count;
}

/* --- the grid's rows --- */

/* A faster lr_floor_div: the compiler knows the divisor, because lattices have steps of one or two. */
static int divide(int number, int by)
{
    return by == 1 ? number : by == 2 ? lr_floor_div(number, 2) : lr_floor_div(number, by);
}

/* The part of a row that lies in the grid. found[0 .. 1]: the first octet, and the one after the last. found[2 .. 3]:
 * the first place, and the one after the last, counted from the first octet's first place. */
static void band_grid_row(const struct lr_lattice *lattice, const int32_t size[2], int row, int32_t found[4])
{
    int range[2] = {-(1 << 20), 1 << 20}; /* places l for which 0 <= first + l step < size, along x and y */
    for (int k = 0; k < 2; k++) {
        const int first = row * lattice->across[k], step = lattice->next[k];
        int least = range[0], most = range[1];
        if (step > 0) {
            least = divide(-first + step - 1, step);
            most = divide(size[k] - 1 - first, step);
        } else if (step < 0) {
            least = divide(first - size[k] + 1 - step - 1, -step);
            most = divide(first, -step);
        } else if (first < 0 || first >= size[k]) {
            most = least - 1;
        }
        range[0] = least > range[0] ? least : range[0];
        range[1] = most < range[1] ? most : range[1];
    }
    const bool is_empty = range[0] > range[1];
    found[0] = is_empty ? 0 : lr_floor_div(range[0], OCTET);
    found[1] = is_empty ? 0 : lr_floor_div(range[1], OCTET) + 1;
    found[2] = is_empty ? 0 : range[0] - OCTET * found[0];
    found[3] = is_empty ? 0 : range[1] + 1 - OCTET * found[0];
}

/* --- plans --- */

enum {
    K = LR_CUDA_OCTET,
    I = LR_CUDA_BAND_ROWS,
    BLOCK_ROWS = I * LR_CUDA_BAND_PAIRS,
    MOST_SIDES = LR_CUDA_BAND_SIDES,
    FEW_SIDES = LR_CUDA_BAND_FEW_SIDES,
    FEW_STEPS = 256,        /* limit on the steps of a view that gets small blocks */
    CROWD_BYTES = 56 << 10, /* bytes of shared memory of a block; with compute capability 9.0, a multiprocessor has room
                               for four such blocks */
    MOST_ENTRIES = 1 << 25  /* entries of spans: 256 MiB for both directions */
};

/* Data that exist only while a plan is made. */
struct planner {
    struct lr_cuda_band_plan *plan;
    lr_cuda_bands *pass; /* pass of the plan's first shape, with the values that all shapes share */
    const struct lr_direct_shape *shape;
    struct band_rows rows;
    int (*ranges)[2]; /* owned [lists]: octets of each list's steps */
    int32_t *numbers; /* owned [spans]: numbers of existing spans, from 1 */
    const lr_log *log;
};

/* --- the lattice --- */

/* Divides the kernel into rows of a candidate lattice, and takes the candidate if it costs less than *least. */
static lr_status weigh(struct planner *planner, const struct lr_lattice *candidate, int64_t *least)
{
    const struct lr_direct_shape *shape = planner->shape;
    const int32_t *size = planner->pass->layout.size;
    const int *half = shape->info.half, *e = candidate->next;
    const int reach = abs(e[0]) * half[1] + abs(e[1]) * half[0];
    struct band_rows rows = {
        .lattice = *candidate, .least = {-reach, -half[2]}, .count = {2 * reach + 1, 2 * half[2] + 1}};
    int64_t count = (int64_t)rows.count[0] * rows.count[1];
    rows.spans = lr_alloc(count, sizeof(*rows.spans), "rows of a kernel", planner->log);
    if (rows.spans == NULL) return LR_FAILED;
    for (int64_t k = 0; k < count; k++) rows.spans[k] = (struct band_span){INT32_MAX, INT32_MIN, {0, 0}};

    /* The rows of an ellipsoid have no holes. */
    const int32_t(*offsets)[3] = (const int32_t(*)[3])shape->offsets;
    int at[2] = {0, 0};
    for (int64_t i = 0; i < shape->info.num_offsets; i++) {
        if (i == 0 || offsets[i][0] != offsets[i - 1][0] || offsets[i][1] != offsets[i - 1][1])
            lr_lattice_place_column(candidate, offsets[i], at);
        struct band_span *span = band_span_at(&rows, at[1] - rows.least[0], offsets[i][2] - rows.least[1]);
        span->first = at[0] < span->first ? at[0] : span->first;
        span->last = at[0] > span->last ? at[0] : span->last;
    }

    /* Empty rows at the ends are dropped, the same number at both ends. */
    int64_t filled = 0; /* the first span that is not empty */
    while (filled < count && rows.spans[filled].first > rows.spans[filled].last) filled++;
    const int before = (int)(filled / rows.count[1]), most = (rows.count[0] - 1) / 2;
    const int empty = before < most ? before : most;
    rows.least[0] += empty;
    rows.count[0] -= 2 * empty;
    count = (int64_t)rows.count[0] * rows.count[1];
    memmove(rows.spans, band_span_at(&rows, empty, 0), (size_t)count * sizeof(*rows.spans));
    for (int64_t k = 0; k < count; k++) {
        struct band_span *span = &rows.spans[k];
        if (span->first <= span->last) {
            span->octets[0] = lr_floor_div(span->first, OCTET);
            span->octets[1] = lr_floor_div(span->last + OCTET - 1, OCTET);
        }
    }

    int64_t steps = 0; /* steps of a warp */
    for (int d = 0; d < rows.count[0] + ROWS - 1; d++) steps += (band_count_halves(&rows, d) + 1) / 2;

    const int64_t least_octets = (int64_t)size[0] * size[1] / K; /* smallest number of octets that a lattice can have */
    int64_t cost = *least;
    if (steps * least_octets < *least) {
        int first[2], last[2];
        int64_t octets = 0; /* octets of all rows that contain grid columns */
        lr_lattice_extent(candidate, size, first, last);
        for (int row = first[1]; row <= last[1]; row++) {
            int32_t found[4];
            band_grid_row(candidate, size, row, found);
            octets += found[1] - found[0];
        }
        cost = steps * octets;
    }
    if (cost < *least) {
        const struct band_rows former = planner->rows;
        *least = cost;
        planner->rows = rows;
        rows = former;
    }
    free(rows.spans);
    return LR_OK;
}

/* --- slabs --- */

/* Range of octets that slab c holds in a block that is one warp wide. It covers the octets of every step in the
 * slab. */
static void find_slab(const struct planner *planner, int c, int range[2])
{
    const int lists = planner->pass->num_lists;
    range[0] = INT32_MAX;
    range[1] = INT32_MIN;
    for (int pair = 0; pair < LR_CUDA_BAND_PAIRS; pair++) {
        const int d = c - I * pair;
        if (d < 0 || d >= lists) continue;
        const int *own = planner->ranges[d];
        range[0] = own[0] < range[0] ? own[0] : range[0];
        range[1] = own[1] > range[1] ? own[1] : range[1];
    }
}

static lr_status list_bases(struct planner *planner)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    lr_cuda_bands *pass = planner->pass;
    int least[2], last[2], most = 0;
    lr_lattice_extent(&planner->rows.lattice, pass->layout.size, least, last);
    pass->least_row = least[1];
    pass->num_lattice_rows = last[1] - least[1] + 1;
    plan->bases = lr_alloc(pass->num_lattice_rows, sizeof(*plan->bases), "rows of a view", planner->log);
    if (plan->bases == NULL) return LR_FAILED;
    for (int k = 0; k < pass->num_lattice_rows; k++) {
        int32_t *octets = plan->bases[k];
        band_grid_row(&planner->rows.lattice, pass->layout.size, pass->least_row + k, octets);
        most = octets[1] - octets[0] > most ? octets[1] - octets[0] : most;
    }
    pass->pitch = K * most;

    /* The table `kernels` covers all places that a block can reach if it begins in the grid. */
    const int margin = -pass->least_octet + MOST_SIDES;
    const int first = lr_floor_div(least[0], K) - margin;
    const int last_offset = pass->least_offset + pass->num_lists;
    pass->first_kernel[0] = K * first;
    pass->first_kernel[1] = pass->least_row + (pass->least_offset < 0 ? pass->least_offset : 0);
    pass->kernel_pitch = K * (lr_floor_div(last[0], K) + margin + 1 - first);
    pass->num_kernel_rows = pass->least_row + pass->num_lattice_rows + BLOCK_ROWS +
                            (last_offset > 0 ? last_offset : 0) - pass->first_kernel[1];
    return LR_OK;
}

/* --- steps --- */

/* Numbers the spans and finds their octets in the list of offsets. The list has an empty octet before the first span
 * and after the last one. */
static lr_status number_spans(struct planner *planner)
{
    const struct band_rows *rows = &planner->rows;
    struct lr_cuda_band_plan *plan = planner->plan;
    const int64_t count = (int64_t)rows->count[0] * rows->count[1];
    planner->numbers = lr_alloc(count, sizeof(*planner->numbers), "weights of a view", planner->log);
    plan->ranges = lr_alloc(count + 1, sizeof(*plan->ranges), "weights of a view", planner->log);
    if (planner->numbers == NULL || plan->ranges == NULL) return LR_FAILED;
    int32_t next = 2 * K, most = 0, number = 1;
    for (int64_t k = 0; k < count; k++) {
        const int *octets = rows->spans[k].octets;
        if (rows->spans[k].first > rows->spans[k].last) continue;
        const int32_t places = K * (octets[1] - octets[0] + 1);
        planner->numbers[k] = number;
        plan->ranges[number][0] = next;
        plan->ranges[number][1] = places;
        most = places > most ? places : most;
        next += places;
        number++;
    }
    plan->num_places = next + K;
    planner->pass->num_spans = number;
    planner->pass->span_pitch = most + 2 * LR_CUDA_BAND_MARGIN;
    return LR_OK;
}

/* Appends the steps of the plan's list d, and the positions at which the list is cut. halves: working memory for the
 * halves of the steps. */
static void list_steps_of(const struct planner *planner, int d, struct band_half *halves)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    const lr_cuda_bands *pass = planner->pass;
    const struct band_rows *rows = &planner->rows;
    const int32_t octet_slices = 2 * pass->slices; /* slices of an octet, counted for both parts */
    plan->lists[d][0] = plan->num_steps;

    /* All halves of an octet follow each other. */
    int range[2], count = 0;
    band_range(rows, d, range);
    for (int octet = range[0]; octet <= range[1]; octet++) {
        for (int slice = 0; slice < rows->count[1]; slice++) {
            const struct band_half half = {octet, slice};
            if (band_has_half(rows, d, 0, &half) || band_has_half(rows, d, 1, &half)) halves[count++] = half;
        }
    }

    for (int n = 0; n < count; n += 2) {
        const int32_t k = plan->num_steps++;
        for (int h = 0; h < 2; h++) {
            /* If the number of halves is odd, the last step repeats its first half without weights. */
            const bool is_there = n + h < count;
            const struct band_half *half = is_there ? &halves[n + h] : &halves[n];
            plan->steps[k + 1].source[h] = half->octet * octet_slices + half->slice;
            plan->steps[k].kernel[h] = (pass->least_offset + d) * pass->kernel_pitch + K * half->octet;
            for (int i = 0; i < I; i++) {
                int32_t number = 0; /* number of the row's span for the half; 0 = none */
                int octet = 0;      /* octet of the half, counted from the span's first octet */
                if (is_there && band_has_half(rows, d, i, half)) {
                    const struct band_span *span = band_span_of(rows, d, i, half->slice);
                    octet = half->octet - span->octets[0];
                    number = planner->numbers[span - rows->spans];
                }
                /* places: the index of the first weight in the list of offsets; K if the row has no span, because the
                 * octet at K has no weights. spots: the weight's position in the table of spans. */
                plan->places[k][i][h] = number == 0 ? K : plan->ranges[number][0] + K * octet;
                plan->spots[k][i][h] = (int32_t)((int64_t)number * pass->num_rows * pass->span_pitch +
                                                 LR_CUDA_BAND_MARGIN + K * octet); /* if this overflows, the plan does
                                                                                      not fit */
            }
        }
    }

    plan->lists[d][1] = plan->num_steps;
    for (int pair = 0; pair < LR_CUDA_BAND_PAIRS; pair++) {
        /* The octet at which the list's slab begins. */
        int slab[2];
        find_slab(planner, d + I * pair, slab);
        plan->lists[d][2 + pair] = slab[0] <= slab[1] ? slab[0] : 0;
    }

    /* Cuts of each octet of sources: the first step with sources of this octet or a later one, and the first step after
     * all steps with sources of an earlier octet. */
    int32_t cut[2] = {plan->lists[d][0], plan->lists[d][0]};
    for (int k = 0; k < pass->num_cuts; k++) {
        const int32_t source = (pass->least_octet + k) * octet_slices; /* offset of the octet's first slice */
        for (int h = 0; h < 2; h++) {
            while (cut[h] < plan->lists[d][1] && plan->steps[cut[h] + 1].source[1 - h] < source) cut[h]++;
            plan->cuts[d * pass->num_cuts + k][h] = cut[h];
        }
    }
}

static lr_status list_steps(struct planner *planner)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    const int lists = planner->pass->num_lists;
    int most = 0; /* largest number of halves of a list */
    for (int d = 0; d < lists; d++) {
        const int count = band_count_halves(&planner->rows, d);
        most = count > most ? count : most;
    }
    const int64_t steps = (int64_t)lists * (most / 2 + 1) + 2;
    plan->lists = lr_alloc(lists, sizeof(*plan->lists), "steps of a view", planner->log);
    plan->cuts =
        lr_alloc((int64_t)lists * planner->pass->num_cuts, sizeof(*plan->cuts), "steps of a view", planner->log);
    plan->steps = lr_alloc(steps + 1, sizeof(*plan->steps), "steps of a view", planner->log);
    plan->places = lr_alloc(steps, sizeof(*plan->places), "steps of a view", planner->log);
    plan->spots = lr_alloc(steps, sizeof(*plan->spots), "steps of a view", planner->log);
    struct band_half *halves = lr_alloc(most, sizeof(*halves), "steps of a view", planner->log);
    const bool is_there = plan->lists && plan->cuts && plan->steps && plan->places && plan->spots && halves;
    for (int d = 0; is_there && d < lists; d++) list_steps_of(planner, d, halves);
    for (int k = 0; is_there && k < 2 * 2 * I; k++) /* two more steps, which kernels load but never use */
        (&plan->spots[plan->num_steps][0][0])[k] = LR_CUDA_BAND_MARGIN;
    free(halves);
    return is_there ? LR_OK : LR_FAILED;
}

/* --- blocks --- */

/* Sizes a block's shared memory. width: octets of the widest slab of a block that is one warp wide. */
static void set_block(lr_cuda_bands *pass, int32_t width, int32_t sides)
{
    pass->sides = sides;
    pass->width = width + sides - 1;
    pass->slab_bytes = (pass->width * 2 * pass->slices * K * 2 + 127) / 128 * 128;
    /* Bytes of a block besides slabs: barriers and lists. */
    const int32_t of_step = pass->num_rows > 1 ? 32 : 16;
    const int32_t warps = pass->sides * LR_CUDA_BAND_PAIRS;
    const int32_t bytes = LR_CUDA_BAND_BARRIERS + warps * (pass->num_lists + 1) * 16 +
                          (pass->held_steps > 0 ? pass->held_steps + 3 : 0) * of_step + pass->num_slabs * 8;
    pass->list_bytes = (bytes + 127) / 128 * 128; /* slabs begin here; copies need a multiple of 128 */

    /* A block holds three slabs: the slab on which slow warps still work, the slab on which the other warps work, and
     * the next slab. On a crowded multiprocessor, another block works while one block waits. Two slabs are then enough
     * if there is one kernel, or if a third slab would leave space for fewer blocks. Blocks of the greatest height
     * always hold three slabs. */
    const bool is_low = pass->is_crowded && pass->height < LR_CUDA_BAND_HEIGHT;
    const bool is_large = pass->list_bytes + 3 * pass->slab_bytes > CROWD_BYTES;
    pass->depth = is_low && (pass->num_rows == 1 || is_large) ? 2 : 3;

    pass->bytes = pass->list_bytes + pass->depth * pass->slab_bytes;
}

bool lr_cuda_band_plan_fits(const struct lr_cuda_band_plan *plan, int64_t room_bytes)
{
    for (int which = 0; which < LR_CUDA_BANDS_SHAPES; which++) {
        const lr_cuda_bands *pass = &plan->passes[which];
        const int64_t entries = (int64_t)pass->num_spans * pass->num_rows * pass->span_pitch;
        if ((pass->num_rows > 1 && entries > MOST_ENTRIES) || pass->bytes > room_bytes ||
            pass->width > LR_CUDA_BAND_MOST || pass->slices > LR_CUDA_BAND_MOST)
            return false;
    }
    return true;
}

/* --- tiles --- */

/* Returns the number of blocks of a pass, and writes them if tiles is not NULL. */
static int32_t write_tiles(struct lr_cuda_band_plan *plan, const lr_cuda_bands *pass, int32_t (*tiles)[2])
{
    int32_t count = 0;
    for (int k = 0; k < pass->num_lattice_rows; k += BLOCK_ROWS) {
        int32_t octets[2] = {INT32_MAX, INT32_MIN}; /* octets of the block's rows: first, and one after the last */
        for (int row = k; row < k + BLOCK_ROWS && row < pass->num_lattice_rows; row++) {
            octets[0] = plan->bases[row][0] < octets[0] ? plan->bases[row][0] : octets[0];
            octets[1] = plan->bases[row][1] > octets[1] ? plan->bases[row][1] : octets[1];
        }
        for (int octet = octets[0]; octet < octets[1]; octet += pass->sides) {
            if (tiles != NULL) {
                tiles[count][0] = octet;
                tiles[count][1] = pass->least_row + k;
            }
            count++;
        }
    }
    return count;
}

/* --- the plan --- */

static lr_status make_plan(struct planner *planner)
{
    lr_cuda_bands *pass = planner->pass;
    struct lr_cuda_band_plan *plan = planner->plan;
    struct lr_lattice candidates[LR_LATTICE_CANDIDATES];
    const int num_candidates = lr_lattice_candidates(planner->shape, candidates);
    int64_t least = INT64_MAX;
    for (int k = 0; k < num_candidates; k++) LR_TRY(weigh(planner, &candidates[k], &least));
    const struct band_rows *rows = &planner->rows;
    for (int k = 0; k < 2; k++) {
        pass->next[k] = rows->lattice.next[k];
        pass->across[k] = rows->lattice.across[k];
    }
    pass->least_offset = rows->least[0];
    pass->low_slice = rows->least[1];
    /* Chooses the layers of blocks: as few as possible, of equal height. Layers are lower if a slab would be too
     * high for a copy. */
    const int products = (pass->layout.size[2] + LR_CUDA_BAND_SLICES - 1) / LR_CUDA_BAND_SLICES;
    const int layers = (products + LR_CUDA_BAND_HEIGHT - 1) / LR_CUDA_BAND_HEIGHT;
    pass->height = (products + layers - 1) / layers;
    const int reach_slices = -2 * pass->low_slice; /* slices of sources beyond the outputs, on both sides together */
    while (pass->height > 1 && LR_CUDA_BAND_SLICES * pass->height + reach_slices > LR_CUDA_BAND_MOST) pass->height--;
    pass->slices = LR_CUDA_BAND_SLICES * pass->height + reach_slices;

    pass->num_lists = rows->count[0] + ROWS - 1; /* one for each row offset of a warp's first row */
    pass->num_slabs = rows->count[0] + BLOCK_ROWS - 1;
    planner->ranges = lr_alloc(pass->num_lists, sizeof(*planner->ranges), "steps of a view", planner->log);
    if (planner->ranges == NULL) return LR_FAILED;
    for (int d = 0; d < pass->num_lists; d++) band_range(rows, d, planner->ranges[d]);

    /* Cuts cover the octets of sources from -reach to reach + 1, counted from the outputs' octet. */
    int reach = 0;
    for (int d = 0; d < pass->num_lists; d++) {
        const int *range = planner->ranges[d];
        reach = range[0] <= range[1] && -range[0] > reach ? -range[0] : reach;
        reach = range[0] <= range[1] && range[1] > reach ? range[1] : reach;
    }
    pass->least_octet = -reach;
    pass->num_cuts = 2 * reach + 2;
    LR_TRY(list_bases(planner));
    LR_TRY(number_spans(planner));
    LR_TRY(list_steps(planner));
    /* A pass that has the device alone is fastest in few blocks with many warps. A pass beside other passes is fastest
     * in many blocks with few warps, because one block computes while another begins. Many blocks gain nothing if each
     * block has very much to compute. Blocks of the greatest height have registers for few warps. */
    lr_cuda_bands *passes = plan->passes;
    const lr_cuda_bands common = *pass;
    int32_t width = 1; /* octets of the widest slab, of a block that is one warp wide */
    for (int c = 0; c < pass->num_slabs; c++) {
        int range[2];
        find_slab(planner, c, range);
        width = range[0] <= range[1] && range[1] - range[0] >= width ? range[1] - range[0] + 1 : width;
    }
    const int32_t most = common.height == LR_CUDA_BAND_HEIGHT ? FEW_SIDES : MOST_SIDES;
    const bool is_long = plan->num_steps > FEW_STEPS;
    passes[LR_CUDA_BANDS_BESIDE] = common;
    passes[LR_CUDA_BANDS_BESIDE].is_crowded = !is_long;
    passes[LR_CUDA_BANDS_BESIDE].held_steps = is_long ? 0 : plan->num_steps;
    set_block(&passes[LR_CUDA_BANDS_ALONE], width, most);
    set_block(&passes[LR_CUDA_BANDS_BESIDE], width, is_long ? most : FEW_SIDES);

    for (int which = 0; which < LR_CUDA_BANDS_SHAPES; which++) {
        passes[which].num_tiles = write_tiles(plan, &passes[which], NULL);
        plan->num_tiles += passes[which].num_tiles;
    }
    plan->tiles = lr_alloc(plan->num_tiles, sizeof(*plan->tiles), "blocks of a view", planner->log);
    if (plan->tiles == NULL) return LR_FAILED;
    int32_t(*next)[2] = plan->tiles;
    for (int which = 0; which < LR_CUDA_BANDS_SHAPES; which++) next += write_tiles(plan, &passes[which], next);

    plan->offsets = lr_alloc(plan->num_places, sizeof(*plan->offsets), "weights of a view", planner->log);
    if (plan->offsets == NULL) return LR_FAILED;
    memset(plan->offsets, 0xff, (size_t)plan->num_places * sizeof(*plan->offsets)); /* -1 */
    for (int64_t i = 0; i < planner->shape->info.num_offsets; i++) {
        const int32_t *offset = planner->shape->offsets[i];
        int at[2];
        lr_lattice_place_column(&rows->lattice, offset, at);
        const struct band_span *span = band_span_at(rows, at[1] - rows->least[0], offset[2] - rows->least[1]);
        const int32_t *range = plan->ranges[planner->numbers[span - rows->spans]];
        plan->offsets[range[0] + at[0] - K * span->octets[0]] = (int32_t)i;
    }
    return LR_OK;
}

lr_status lr_cuda_band_plan_init(struct lr_cuda_band_plan *plan, const struct lr_direct_shape *shape,
                                 const lr_cuda_layout *layout, int rows, const lr_log *log)
{
    struct planner planner = {.plan = plan, .pass = &plan->passes[LR_CUDA_BANDS_ALONE], .shape = shape, .log = log};
    *plan = (struct lr_cuda_band_plan){.passes = {{.layout = *layout, .num_rows = rows}}};
    const lr_status status = make_plan(&planner);
    lr_free_all(planner.numbers, planner.ranges, planner.rows.spans);
    if (status != LR_OK) lr_cuda_band_plan_finish(plan);
    return status;
}

void lr_cuda_band_plan_finish(struct lr_cuda_band_plan *plan)
{
    lr_free_all(plan->offsets, plan->ranges, plan->bases, plan->tiles, plan->cuts, plan->lists, plan->places,
                plan->spots, plan->steps);
    *plan = (struct lr_cuda_band_plan){0};
}

/* --- sorted sources --- */

int64_t lr_cuda_band_source_bytes(const lr_cuda_bands *pass)
{
    const int64_t numbers = (int64_t)2 * pass->num_lattice_rows * pass->layout.size[2] * pass->pitch;
    return numbers * (int64_t)sizeof(uint16_t) + pass->num_lattice_rows * (int64_t)sizeof(float);
}

lr_cuda_band_source lr_cuda_band_source_at(const lr_cuda_bands *pass, void *memory)
{
    float *end = (float *)(void *)((char *)memory + lr_cuda_band_source_bytes(pass));
    return (lr_cuda_band_source){memory, end - pass->num_lattice_rows, false};
}

enum { VIEWS_OF_THREAD = 10 }; /* fewest views of a thread, because threads start slowly */

/* --- one view --- */

static lr_status plan_view(struct lr_cuda_view_plan *plan, const struct lr_cuda_plan_params *params, int view,
                           const lr_log *log)
{
    const struct lr_direct_backend_params *backend = params->backend;
    *plan = (struct lr_cuda_view_plan){0};
    LR_TRY(lr_direct_shape_init(&plan->shape, &(lr_direct_tables_params){.grid = &backend->grid,
                                                                         .view = backend->views[view],
                                                                         .kernel = backend->kernel,
                                                                         .log = log}));
    plan->num_rows = lr_direct_count_rows(&plan->shape);
    const struct lr_direct_shape *shape = &plan->shape;
    const int64_t count = shape->info.num_offsets, rows = plan->num_rows;
    plan->offsets = lr_alloc(count, sizeof(*plan->offsets), "mSR", log);
    plan->kernels = lr_alloc(rows, sizeof(*plan->kernels), "kernels", log);
    plan->samples = lr_alloc(rows * lr_direct_count_samples(shape), sizeof(*plan->samples), "measured profiles", log);
    if (plan->offsets == NULL || plan->kernels == NULL || plan->samples == NULL) return LR_FAILED;
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < 3; k++) plan->offsets[i][k] = shape->offsets[i][k];
    for (int row = 0; row < rows; row++) lr_direct_describe_kernel(shape, row, plan->kernels[row]);
    lr_direct_list_samples(shape, plan->samples);

    switch (backend->variant) {
    case LR_DIRECT_BANDS:
        if (params->bands_work) {
            LR_TRY(lr_cuda_band_plan_init(&plan->bands, shape, &params->layout, plan->num_rows, log));
            plan->has_bands = lr_cuda_band_plan_fits(&plan->bands, params->shared_room);
        }
        plan->has_columns = !plan->has_bands; /* the device may lack bands, or the plan may not fit */
        break;
    case LR_DIRECT_COLUMNS: plan->has_columns = true; break;
    case LR_DIRECT_SHARED_MEMORY:
    case LR_DIRECT_TEXTURE_CACHE: plan->has_cloud = true; break;
    case LR_DIRECT_THREADS:
    case LR_DIRECT_INSTRUCTIONS:
    case LR_DIRECT_FASTEST: /* the backend has already replaced it by another variant */ break;
    }
    return plan->has_columns ? lr_cuda_column_plan_init(&plan->columns, shape, &params->layout, plan->num_rows, log)
           : plan->has_cloud ? lr_cuda_cloud_init(&plan->cloud, shape, &params->layout, plan->num_rows, log)
                             : LR_OK;
}

/* --- several views --- */

/* The reason why a view failed. It is logged later: views are planned in several threads, and a log accepts one
 * message at a time. */
struct reason {
    lr_status status;
    char message[512];
};

struct planning {
    struct lr_cuda_view_plan *plans;
    const struct lr_cuda_plan_params *params;
    const int *views;
    struct reason *reasons;
};

static void plan_views(void *user, int64_t begin, int64_t end)
{
    const struct planning *planning = user;
    for (int64_t k = begin; k < end; k++) {
        struct reason *reason = &planning->reasons[k];
        struct lr_kept_error kept;
        lr_log_keep_error(&kept, reason->message, sizeof(reason->message));
        reason->status = plan_view(&planning->plans[k], planning->params, planning->views[k], &kept.log);
    }
}

lr_cuda_layout lr_cuda_layout_of(const struct lr_direct_compute *compute)
{
    const struct lr_direct_layout *from = &compute->layout;
    lr_cuda_layout layout = {.quads = from->quads};
    for (int k = 0; k < 3; k++) {
        layout.size[k] = from->size[k];
        layout.margin[k] = from->margin[k];
        layout.extent[k] = (k == 0 ? from->quads : from->size[k - 1]) + 2 * from->margin[k];
    }
    return layout;
}

lr_status lr_cuda_view_plans_init(struct lr_cuda_view_plan *plans, const struct lr_cuda_plan_params *params,
                                  const int *views, int num_views)
{
    const struct lr_direct_backend_params *backend = params->backend;
    struct planning planning = {.plans = plans,
                                .params = params,
                                .views = views,
                                .reasons = lr_alloc(num_views, sizeof(*planning.reasons), "plans", backend->log)};
    if (planning.reasons == NULL) return LR_FAILED;
    const int useful = (num_views + VIEWS_OF_THREAD - 1) / VIEWS_OF_THREAD;
    lr_parallel_for(backend->threads < useful ? backend->threads : useful, num_views, 1, plan_views, &planning);
    int failed = 0; /* the first view without a plan */
    while (failed < num_views && planning.reasons[failed].status == LR_OK) failed++;
    const struct reason *reason = &planning.reasons[failed];
    const lr_status status = failed < num_views ? lr_error(backend->log, reason->status, "%s", reason->message) : LR_OK;
    if (status != LR_OK) lr_cuda_view_plans_finish(plans, num_views);
    free(planning.reasons);
    return status;
}

void lr_cuda_view_plans_finish(struct lr_cuda_view_plan *plans, int num_views)
{
    for (int k = 0; k < num_views; k++) {
        struct lr_cuda_view_plan *plan = &plans[k];
        lr_cuda_cloud_finish(&plan->cloud);
        lr_cuda_column_plan_finish(&plan->columns);
        lr_cuda_band_plan_finish(&plan->bands);
        lr_free_all(plan->samples, plan->kernels, plan->offsets);
        lr_direct_shape_finish(&plan->shape);
        *plan = (struct lr_cuda_view_plan){0};
    }
}

/* Distances of an offset in mm along the three axes of a view's kernel. */
static void distances(const struct lr_direct_shape *shape, const int32_t *offset, double along[3])
{
    const double *voxel_mm = shape->info.grid.voxel_mm;
    const double d[3] = {offset[0] * voxel_mm[0], offset[1] * voxel_mm[1], offset[2] * voxel_mm[2]};
    for (int k = 0; k < 3; k++) along[k] = vec_dot(d, shape->axes[k]);
}

/* --- cloud --- */

struct point {
    int32_t offset[3], column;
    double along, factor;
};

/* Sorts points along the line, then in the order of mSR. */
static int compare_points(const void *a, const void *b)
{
    const struct point *one = a, *other = b;
    if (one->along != other->along) return one->along < other->along ? -1 : 1;
    return memcmp(one->offset, other->offset, sizeof(one->offset));
}

/* Lists the points, sorted along the line, and their profiles. */
static lr_status make_cloud(struct lr_cuda_cloud_tables *tables, const struct lr_direct_shape *shape, const lr_log *log)
{
    lr_cuda_cloud *pass = &tables->pass;
    const lr_direct_tables_info *info = &shape->info;
    struct point *points = lr_alloc(info->num_offsets, sizeof(*points), "a cloud", log);
    double d[3];
    int column = -1; /* columns are numbered in the order of mSR, so that the last column mirrors the first */
    for (int64_t i = 0; points != NULL && i < info->num_offsets; i++) {
        const int32_t *offset = shape->offsets[i];
        column += i == 0 || offset[0] != shape->offsets[i - 1][0] || offset[1] != shape->offsets[i - 1][1];
        distances(shape, offset, d);
        const double t = d[0] / info->sigma_mm[0], a = d[2] / info->sigma_mm[2];
        points[i] = (struct point){{offset[0], offset[1], offset[2]}, column, d[0], exp(-0.5 * (t * t + a * a))};
    }
    pass->num_columns = column + 1;
    pass->num_points = (int32_t)info->num_offsets;
    tables->points = lr_alloc(pass->num_points, sizeof(*tables->points), "a cloud", log);
    tables->factors = lr_alloc(pass->num_points, sizeof(*tables->factors), "a cloud", log);
    tables->profiles =
        lr_alloc((int64_t)pass->num_rows * pass->num_columns, sizeof(*tables->profiles), "profiles", log);
    const bool done = points && tables->points && tables->factors && tables->profiles;
    if (done) qsort(points, (size_t)pass->num_points, sizeof(*points), compare_points);
    for (int32_t i = 0; done && i < pass->num_points; i++) {
        memcpy(tables->points[i], points[i].offset, sizeof(points[i].offset));
        tables->points[i][3] = points[i].column;
        tables->factors[i] = (float)points[i].factor;
    }
    for (int row = 0; done && row < pass->num_rows; row++) {
        /* The first round sums the row's kernel over all points. The second round divides the profile by this sum. */
        const double distance_mm = lr_direct_kernel_distance_mm(shape, row);
        const double side = lr_direct_kernel_is_mirrored(shape, row) ? -1 : 1;
        float *profile = tables->profiles + (int64_t)row * pass->num_columns;
        double sum = 0;
        for (int run = 0; run < 2; run++) {
            for (int32_t i = 0; i < pass->num_points; i++) {
                distances(shape, points[i].offset, d);
                const double value = lr_resolution_profile(&shape->resolution, distance_mm, side * d[1]);
                if (run == 0)
                    sum += value * points[i].factor;
                else
                    profile[points[i].column] = (float)(value / sum);
            }
        }
    }
    free(points);
    return done ? LR_OK : LR_FAILED;
}

lr_status lr_cuda_cloud_init(struct lr_cuda_cloud_tables *tables, const struct lr_direct_shape *shape,
                             const lr_cuda_layout *layout, int rows, const lr_log *log)
{
    *tables = (struct lr_cuda_cloud_tables){.pass = {.layout = *layout, .num_rows = rows}};

    /* The projection mask: lists run along the axis nearer to the line of response, and shift sideways as the line
     * does. */
    lr_cuda_cloud *pass = &tables->pass;
    const double *line = shape->axes[0];
    const double *voxel_mm = shape->info.grid.voxel_mm;
    pass->along = fabs(line[0]) * voxel_mm[1] >= fabs(line[1]) * voxel_mm[0] ? 0 : 1;
    const int a = pass->along, b = 1 - a, margin = layout->margin[1 + a];
    const double slope = line[b] / voxel_mm[b] / (line[a] / voxel_mm[a]);
    tables->shift = lr_alloc(layout->extent[1 + a], sizeof(*tables->shift), "a projection mask", log);
    if (tables->shift == NULL) {
        lr_cuda_cloud_finish(tables);
        return LR_FAILED;
    }
    int least = INT32_MAX, most = INT32_MIN;
    for (int k = 0; k < layout->extent[1 + a]; k++) {
        const int place = k - margin;
        tables->shift[k] = (int32_t)lround(place * slope);
        if (place >= 0 && place < layout->size[a]) {
            least = tables->shift[k] < least ? tables->shift[k] : least;
            most = tables->shift[k] > most ? tables->shift[k] : most;
        }
    }
    pass->least_list = -most;
    pass->num_lists = layout->size[b] + most - least;

    /* The largest distance of sources from outputs. */
    int lists = 0;
    for (int64_t i = 0; i < shape->info.num_offsets; i++) {
        const int32_t *d = shape->offsets[i];
        for (int place = 0; place < layout->size[a]; place++) {
            const int list = d[b] - tables->shift[place + d[a] + margin] + tables->shift[place + margin];
            lists = abs(list) > lists ? abs(list) : lists;
        }
    }
    pass->reach[0] = shape->info.half[a];
    pass->reach[1] = lists;
    pass->reach[2] = shape->info.half[2] / 4 + 1;
    const lr_status status = make_cloud(tables, shape, log);
    if (status != LR_OK) lr_cuda_cloud_finish(tables);
    return status;
}

void lr_cuda_cloud_finish(struct lr_cuda_cloud_tables *tables)
{
    lr_free_all(tables->shift, tables->profiles, tables->factors, tables->points);
    *tables = (struct lr_cuda_cloud_tables){0};
}

_Static_assert((int)LR_CUDA_OUTPUTS == (int)LR_LATTICE_OUTPUTS && (int)LR_CUDA_CLASSES == (int)LR_LATTICE_CLASSES,
               "the device's numbers are the lattice's");

enum { MOST_NEXT = 2 }; /* largest step of a lattice */

void lr_cuda_column_margins(const struct lr_direct_shape *shape, int margin[3])
{
    const int beyond = (LR_CUDA_OUTPUTS - 1) * MOST_NEXT;
    margin[0] = shape->info.half[2] / 4 + 1 + (LR_CUDA_SLICES + LR_LATTICE_TAPS + 3) / 4;
    margin[1] = shape->info.half[0] + beyond;
    margin[2] = shape->info.half[1] + beyond;
}

lr_status lr_cuda_column_plan_init(struct lr_cuda_column_plan *plan, const struct lr_direct_shape *shape,
                                   const lr_cuda_layout *layout, int rows, const lr_log *log)
{
    struct lr_lattice lattice;
    int most[2];
    *plan = (struct lr_cuda_column_plan){.pass = {.layout = *layout, .num_rows = rows}};
    LR_TRY(lr_lattice_init(&lattice, shape, log));
    lr_cuda_columns *pass = &plan->pass;
    memcpy(pass->first, lattice.first, sizeof(pass->first));
    lr_lattice_range(&lattice, layout->size, pass->least, most);
    for (int k = 0; k < 2; k++) {
        pass->next[k] = lattice.next[k];
        pass->across[k] = lattice.across[k];
        pass->num_places[k] = most[k] - pass->least[k] + 1;
    }

    plan->steps = lr_alloc(lattice.count, sizeof(*plan->steps), "steps of a view", log);
    plan->indices = lr_alloc((int64_t)lattice.count * LR_CUDA_OUTPUTS, LR_LATTICE_TAPS * sizeof(*plan->indices),
                             "steps of a view", log);
    lr_status status = plan->steps != NULL && plan->indices != NULL ? LR_OK : LR_FAILED;
    for (int k = 0; status == LR_OK && k < lattice.count; k++) {
        const struct lr_lattice_step *step = &lattice.steps[k];
        const int *extent = layout->extent;
        const int map = step->column[0] + extent[1] * step->column[1];
        plan->steps[k] = (lr_cuda_column_step){.source = step->quad + extent[0] * map,
                                               .weights = (int32_t)plan->num_weights,
                                               .mask = step->mask,
                                               .map = map};

        plan->num_weights += step->taps == 1 ? (LR_CUDA_OUTPUTS * rows + 3) / 4 : LR_CUDA_OUTPUTS * rows;
        memcpy(plan->indices + (int64_t)k * LR_CUDA_OUTPUTS * LR_LATTICE_TAPS, step->offsets, sizeof(step->offsets));
    }
    if (plan->num_weights > INT32_MAX) {
        status = lr_error(log, LR_FAILED,
                          "the weights of a view take %lld GiB: take a larger epsilon, a smaller "
                          "support or backend cpu",
                          (long long)(plan->num_weights >> 26));
    }
    lr_lattice_finish(&lattice);
    if (status != LR_OK) lr_cuda_column_plan_finish(plan);
    return status;
}

void lr_cuda_column_plan_finish(struct lr_cuda_column_plan *plan)
{
    lr_free_all(plan->indices, plan->steps);
    *plan = (struct lr_cuda_column_plan){0};
}

/* ---- the lists in device memory ---- */

enum { ALIGNMENT = 256 };

void *lr_cuda_place(struct lr_cuda_memory *memory, int64_t bytes, const void *data)
{
    int64_t *const taken = data != NULL ? &memory->copied_bytes : &memory->filled_bytes;
    const int64_t at = *taken;
    /* Bytes from one list to the next. */
    *taken += ((bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (memory->device == NULL) return memory;
    if (data != NULL) {
        if (memory->copied_bytes > memory->copied_room) return NULL;
        if (bytes > 0) memcpy(memory->host + at, data, (size_t)bytes);
        return memory->device + at;
    }

    return *taken <= memory->filled_room ? memory->device + memory->copied_room + at : NULL;
}

enum { MOST_ROWS = 8, FEW_ROWS = 2, FEW_OFFSETS = 1024 };

lr_status lr_cuda_place_values(struct lr_cuda_memory *memory, const struct lr_cuda_view_plan *plan,
                               const lr_cuda_layout *layout, lr_cuda_view_fill *fill)
{
    static const float none = 0;
    const struct lr_direct_shape *shape = &plan->shape;
    const lr_direct_tables_info *info = &shape->info;
    const lr_resolution *resolution = &shape->resolution;
    lr_cuda_map_fill *map = &fill->map;
    lr_cuda_value_fill *values = &fill->values;
    *map = (lr_cuda_map_fill){
        .epsilon_mm = info->epsilon_mm,
        .tie = LR_DIRECT_TIE,
        .layout = *layout,
        .mirrored = info->num_kernels > info->num_identifiers ? info->num_identifiers : 0,
    };
    for (int k = 0; k < 2; k++) {
        map->origin_mm[k] = info->grid.origin_mm[k];
        map->voxel_mm[k] = info->grid.voxel_mm[k];
        map->radial[k] = shape->axes[1][k];
    }

    /* Rows of a block lie side by side in memory, so blocks with several rows write longer runs. With few offsets,
     * longer runs gain nothing. */
    int32_t block_rows = info->num_offsets > FEW_OFFSETS ? MOST_ROWS : FEW_ROWS;
    while (block_rows / 2 >= plan->num_rows) block_rows /= 2;
    *values = (lr_cuda_value_fill){
        .second_width = resolution->asymmetric ? resolution->second_width : 0,
        .second_shift = resolution->second_shift,
        .num_offsets = (int32_t)info->num_offsets,
        .num_rows = plan->num_rows,
        .block_rows = block_rows,
        .num_samples = lr_direct_count_samples(shape),
    };
    for (int k = 0; k < 3; k++) {
        const double voxel_mm = info->grid.voxel_mm[k];
        values->tof[k] = shape->axes[0][k] * voxel_mm / info->sigma_mm[0];
        values->radial[k] = shape->axes[1][k] * voxel_mm;
        values->axial[k] = shape->axes[2][k] * voxel_mm / info->sigma_mm[2];
    }
    if (values->num_samples > 0) {
        values->first_sample_mm = resolution->measured->first_offset_mm;
        values->sample_step_mm = resolution->measured->offset_step_mm;
    }

    const int64_t number = sizeof(float), rows = values->num_rows;
    map->map = lr_cuda_place(memory, (int64_t)layout->extent[1] * layout->extent[2] * (int64_t)sizeof(*map->map), NULL);
    values->offsets = lr_cuda_place(memory, values->num_offsets * 4 * number, plan->offsets);
    values->kernels = lr_cuda_place(memory, rows * (int64_t)sizeof(*plan->kernels), plan->kernels);
    values->samples = lr_cuda_place(memory, rows * values->num_samples * number, plan->samples);
    values->values = lr_cuda_place(memory, rows * values->num_offsets * number, NULL);
    values->peak = lr_cuda_place(memory, number, &none);
    return map->map && values->offsets && values->kernels && values->samples && values->values && values->peak
               ? LR_OK
               : LR_FAILED;
}

/* --- sizes of launches --- */

lr_cuda_fill_sizes lr_cuda_fill_sizes_of(const lr_cuda_view_fill *views, int num_views)
{
    lr_cuda_fill_sizes sizes = {.num_views = num_views};
    for (int k = 0; k < num_views; k++) {
        const lr_cuda_layout *layout = &views[k].map.layout;
        const lr_cuda_value_fill *values = &views[k].values;
        const lr_cuda_bands *pass = &views[k].bands[0];
        const int64_t blocks = (values->num_rows + values->block_rows - 1) / values->block_rows;
        sizes.map = lr_larger(sizes.map, (int64_t)layout->extent[1] * layout->extent[2]);
        sizes.value_blocks = (int32_t)lr_larger(sizes.value_blocks, blocks);
        if (pass->num_tiles > 0 && pass->num_rows == 1) {
            const int64_t steps = views[k].band_fills[0].num_steps + 1;
            sizes.weights = lr_larger(sizes.weights, steps * LR_CUDA_BAND_ROWS * LR_CUDA_BAND_BLOCK);
        } else if (pass->num_tiles > 0) {
            sizes.spans = lr_larger(sizes.spans, (int64_t)pass->num_spans * pass->num_rows * pass->span_pitch);
            sizes.kernels = lr_larger(sizes.kernels, (int64_t)pass->num_kernel_rows * pass->kernel_pitch);
        }
    }
    return sizes;
}

enum { NUMBER = sizeof(int32_t) };

lr_status lr_cuda_place_bands(struct lr_cuda_memory *memory, const struct lr_cuda_band_plan *plan,
                              lr_cuda_view_fill *fill, lr_cuda_bands bands[2][LR_CUDA_BANDS_SHAPES])
{
    lr_cuda_bands lists = plan->passes[LR_CUDA_BANDS_ALONE];
    /* Lists that are read by blocks of all shapes, in forward and in back projections. */
    const int64_t steps = plan->num_steps + 2;
    lists.steps = lr_cuda_place(memory, (steps + 1) * (int64_t)sizeof(*plan->steps), plan->steps);
    lists.spots = lr_cuda_place(memory, steps * (int64_t)sizeof(*plan->spots), plan->spots);
    lists.lists = lr_cuda_place(memory, lists.num_lists * 4 * NUMBER, plan->lists);
    lists.cuts = lr_cuda_place(memory, lists.num_lists * lists.num_cuts * 2 * NUMBER, plan->cuts);
    lists.tiles = lr_cuda_place(memory, plan->num_tiles * 2 * NUMBER, plan->tiles);
    lists.bases = lr_cuda_place(memory, lists.num_lattice_rows * 4 * NUMBER, plan->bases);
    LR_TRY(lists.steps && lists.spots && lists.lists && lists.cuts && lists.tiles && lists.bases ? LR_OK : LR_FAILED);

    /* Lists that the device fills in, for forward and for back projections, and the sources of these lists. */
    const int64_t kernels = (int64_t)lists.num_kernel_rows * lists.kernel_pitch;
    lr_cuda_band_fill both = {.values = fill->values.values,
                              .map = fill->map.map,
                              .peak = fill->values.peak,
                              .num_steps = plan->num_steps,
                              .num_offsets = fill->values.num_offsets};
    both.places = lr_cuda_place(memory, plan->num_steps * (int64_t)sizeof(*plan->places), plan->places);
    both.ranges = lr_cuda_place(memory, lists.num_spans * 2 * NUMBER, plan->ranges);
    both.offsets = lr_cuda_place(memory, plan->num_places * NUMBER, plan->offsets);
    both.kernels = lr_cuda_place(memory, lists.num_rows > 1 ? kernels * NUMBER : 0, NULL);
    LR_TRY(both.places && both.ranges && both.offsets && both.kernels ? LR_OK : LR_FAILED);

    for (int forward = 0; forward < 2; forward++) {
        /* The weights of one direction are stored as blocks if num_rows is 1, otherwise as spans. */
        const int64_t blocks = (int64_t)(plan->num_steps + 1) * LR_CUDA_BAND_ROWS;
        const int64_t entries = (int64_t)lists.num_spans * lists.num_rows * lists.span_pitch;
        void *const weights =
            lr_cuda_place(memory, (lists.num_rows == 1 ? blocks * LR_CUDA_BAND_BLOCK * 4 : entries) * NUMBER, NULL);
        lr_cuda_band_fill *own = &fill->band_fills[forward];
        *own = both;
        own->weights = weights;
        own->spans = weights;
        LR_TRY(weights != NULL ? LR_OK : LR_FAILED);

        const int32_t *tiles = (const int32_t *)lists.tiles; /* the tiles of all shapes follow each other */
        for (int which = 0; which < LR_CUDA_BANDS_SHAPES; which++) {
            lr_cuda_bands *pass = &bands[forward][which];
            *pass = plan->passes[which];
            pass->steps = lists.steps;
            pass->spots = lists.spots;
            pass->lists = lists.lists;
            pass->cuts = lists.cuts;
            pass->tiles = (const int2 *)tiles;
            pass->bases = lists.bases;
            pass->weights = own->weights;
            pass->spans = own->spans;
            pass->kernels = own->kernels;
            pass->peak = own->peak;
            tiles += 2 * (int64_t)pass->num_tiles;
        }
        fill->bands[forward] = bands[forward][LR_CUDA_BANDS_ALONE];
    }
    return LR_OK;
}
