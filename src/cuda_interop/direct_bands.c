/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct_bands.h"

#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    K = LR_CUDA_OCTET,
    I = LR_CUDA_BAND_ROWS,
    BLOCK_ROWS = I * LR_CUDA_BAND_PAIRS,
    BLOCK_OCTETS = LR_CUDA_BAND_SIDES,
    MOST_ENTRIES = 1 << 25 /* of spans: 256 MiB */
};

/* The places that a row of the lattice has in the kernel, from an output on: first > last: none. */
struct span {
    int first, last;
};

/* The kernel by rows of the lattice: those at a row offset d and a slice offset. */
struct rows {
    struct lr_lattice lattice;
    int least[2], count[2]; /* row offsets, slice offsets */
    struct span *spans;     /* owned [count[0]][count[1]] */
};

/* What is only known while a plan is made. */
struct planner {
    struct lr_cuda_band_plan *plan;
    const struct lr_direct_shape *shape;
    struct rows rows;
    int32_t *numbers; /* owned [spans]: of those that there are, from 1 on */
    const lr_log *log;
};

static int floor_div(int number, int by)
{
    return number >= 0 ? number / by : -((by - 1 - number) / by);
}

/* Along the lattice's rows and across them: lr_lattice_place in whole numbers. */
static void place_column(const struct lr_lattice *lattice, const int32_t column[2], int at[2])
{
    const int *e = lattice->next, *a = lattice->across;
    const int det = e[0] * a[1] - e[1] * a[0]; /* 1 or -1 */
    at[0] = (column[0] * a[1] - column[1] * a[0]) * det;
    at[1] = (e[0] * column[1] - e[1] * column[0]) * det;
}

/* --- the kernel's rows --- */

static struct span *span_at(const struct rows *rows, int d, int slice)
{
    return &rows->spans[(int64_t)d * rows->count[1] + slice];
}

/* Octets of sources that have weights for an octet of outputs. */
static void octets_of(const struct span *span, int octets[2])
{
    octets[0] = floor_div(span->first, K);
    octets[1] = floor_div(span->last + K - 1, K);
}

static bool is_empty(const struct span *span)
{
    return span->first > span->last;
}

/* An ellipsoid's rows have no holes. */
static void fill_spans(struct rows *rows, const struct lr_direct_shape *shape)
{
    for (int64_t i = 0; i < shape->info.num_offsets; i++) {
        const int32_t *offset = shape->offsets[i];
        int at[2];
        place_column(&rows->lattice, offset, at);
        struct span *span = span_at(rows, at[1] - rows->least[0], offset[2] - rows->least[1]);
        span->first = at[0] < span->first ? at[0] : span->first;
        span->last = at[0] > span->last ? at[0] : span->last;
    }
}

/* All row and slice offsets that there may be. */
static lr_status find_rows(struct rows *rows, const struct lr_direct_shape *shape,
                           const lr_log *log)
{
    const int *half = shape->info.half, *e = rows->lattice.next;
    const int reach = abs(e[0]) * half[1] + abs(e[1]) * half[0];
    rows->least[0] = -reach;
    rows->least[1] = -half[2];
    rows->count[0] = 2 * reach + 1;
    rows->count[1] = 2 * half[2] + 1;
    const int64_t count = (int64_t)rows->count[0] * rows->count[1];
    rows->spans = lr_alloc(count, sizeof(*rows->spans), "rows of a kernel", log);
    if (rows->spans == NULL) {
        return LR_FAILED;
    }
    for (int64_t k = 0; k < count; k++) {
        rows->spans[k] = (struct span){INT32_MAX, INT32_MIN};
    }
    fill_spans(rows, shape);
    return LR_OK;
}

static bool is_row_empty(const struct rows *rows, int d)
{
    for (int slice = 0; slice < rows->count[1]; slice++) {
        if (!is_empty(span_at(rows, d, slice))) {
            return false;
        }
    }
    return true;
}

/* Rows at both ends that no offset lies on are left out: as many at one end as at the other. */
static void trim_rows(struct rows *rows)
{
    int empty = 0;
    while (2 * empty + 1 < rows->count[0] && is_row_empty(rows, empty)) {
        empty++;
    }
    rows->least[0] += empty;
    rows->count[0] -= 2 * empty;
    memmove(rows->spans, span_at(rows, empty, 0),
            (size_t)rows->count[0] * (size_t)rows->count[1] * sizeof(*rows->spans));
}

/* --- halves of steps --- */

/* An octet of sources at a slice offset. */
struct half {
    int octet, slice;
};

/* Lists of steps, one for each row offset that a warp's first row may have. */
static int count_lists(const struct rows *rows)
{
    return rows->count[0] + I - 1;
}

/* Row i's span where the first row has row offset d; NULL: it has none. */
static const struct span *span_of(const struct rows *rows, int d, int i, int slice)
{
    const bool is_there = d - i >= 0 && d - i < rows->count[0];
    const struct span *span = is_there ? span_at(rows, d - i, slice) : NULL;
    return is_there && !is_empty(span) ? span : NULL;
}

/* Whether row i has weights for it. */
static bool has_half(const struct rows *rows, int d, int i, const struct half *half)
{
    const struct span *span = span_of(rows, d, i, half->slice);
    int octets[2];
    if (span == NULL) {
        return false;
    }
    octets_of(span, octets);
    return half->octet >= octets[0] && half->octet <= octets[1];
}

static bool is_needed(const struct rows *rows, int d, const struct half *half)
{
    for (int i = 0; i < I; i++) {
        if (has_half(rows, d, i, half)) {
            return true;
        }
    }
    return false;
}

/* Octets of sources that a list's steps have: from the first to the last; last < first: none. */
static void range_of(const struct rows *rows, int d, int range[2])
{
    range[0] = INT32_MAX;
    range[1] = INT32_MIN;
    for (int k = 0; k < I * rows->count[1]; k++) {
        const struct span *span = span_of(rows, d, k % I, k / I);
        int octets[2];
        if (span != NULL) {
            octets_of(span, octets);
            range[0] = octets[0] < range[0] ? octets[0] : range[0];
            range[1] = octets[1] > range[1] ? octets[1] : range[1];
        }
    }
}

/* Counts the halves of a list, and writes them where there is room for them: those of an octet
 * follow each other. */
static int list_halves(const struct rows *rows, int d, struct half *halves)
{
    int range[2], count = 0;
    range_of(rows, d, range);
    for (int octet = range[0]; octet <= range[1]; octet++) {
        for (int slice = 0; slice < rows->count[1]; slice++) {
            const struct half half = {octet, slice};
            if (!is_needed(rows, d, &half)) {
                continue;
            }
            if (halves != NULL) {
                halves[count] = half;
            }
            count++;
        }
    }
    return count;
}

static int most_halves(const struct rows *rows)
{
    int most = 0;
    for (int d = 0; d < count_lists(rows); d++) {
        const int count = list_halves(rows, d, NULL);
        most = count > most ? count : most;
    }
    return most;
}

/* --- the grid's rows --- */

/* Keeps the places l of a range for which 0 <= first + l step < size. */
static void clip(int first, int step, int size, int range[2])
{
    int least = range[0], most = range[1];
    if (step > 0) {
        least = floor_div(-first + step - 1, step);
        most = floor_div(size - 1 - first, step);
    } else if (step < 0) {
        least = floor_div(first - size + 1 - step - 1, -step);
        most = floor_div(first, -step);
    } else if (first < 0 || first >= size) {
        most = least - 1;
    }
    range[0] = least > range[0] ? least : range[0];
    range[1] = most < range[1] ? most : range[1];
}

/* The octets of a row that the grid has columns on: the first, and the one after the last. */
static void find_octets(const struct lr_lattice *lattice, const int32_t size[2], int row,
                        int32_t octets[2])
{
    int range[2] = {-(1 << 20), 1 << 20};
    for (int k = 0; k < 2; k++) {
        clip(row * lattice->across[k], lattice->next[k], size[k], range);
    }
    octets[0] = floor_div(range[0], K);
    octets[1] = range[0] <= range[1] ? floor_div(range[1], K) + 1 : octets[0];
}

/* The rows that the grid has columns on. */
static void find_row_range(const struct lr_lattice *lattice, const int32_t size[2], int range[2])
{
    range[0] = range[1] = 0; /* of the first column; those of the other corners: */
    for (int corner = 1; corner < 4; corner++) {
        const int32_t column[2] = {corner & 1 ? size[0] - 1 : 0, corner & 2 ? size[1] - 1 : 0};
        int at[2];
        place_column(lattice, column, at);
        range[0] = at[1] < range[0] ? at[1] : range[0];
        range[1] = at[1] > range[1] ? at[1] : range[1];
    }
}

static int64_t count_octets(const struct lr_lattice *lattice, const int32_t size[2])
{
    int range[2];
    int64_t count = 0;
    find_row_range(lattice, size, range);
    for (int row = range[0]; row <= range[1]; row++) {
        int32_t octets[2];
        find_octets(lattice, size, row, octets);
        count += octets[1] - octets[0];
    }
    return count;
}

/* --- the lattice --- */

/* Steps of a warp. */
static int64_t count_steps(const struct rows *rows)
{
    int64_t count = 0;
    for (int d = 0; d < count_lists(rows); d++) {
        count += (list_halves(rows, d, NULL) + 1) / 2;
    }
    return count;
}

static lr_status weigh(struct planner *planner, const struct lr_lattice *candidate, int64_t *least)
{
    struct rows rows = {.lattice = *candidate};
    LR_TRY(find_rows(&rows, planner->shape, planner->log));
    trim_rows(&rows);
    const int64_t cost =
        count_steps(&rows) * count_octets(candidate, planner->plan->pass.layout.size);
    if (cost < *least) {
        const struct rows former = planner->rows;
        *least = cost;
        planner->rows = rows;
        rows = former;
    }
    free(rows.spans);
    return LR_OK;
}

static lr_status choose_lattice(struct planner *planner)
{
    struct lr_lattice candidates[LR_LATTICE_CANDIDATES];
    const int count = lr_lattice_candidates(planner->shape, candidates);
    int64_t least = INT64_MAX;
    lr_status status = LR_OK;
    for (int k = 0; status == LR_OK && k < count; k++) {
        status = weigh(planner, &candidates[k], &least);
    }
    return status;
}

/* --- slabs --- */

/* Octets that slab c of a block has: all that steps of its warps take. */
static void find_slab(const struct rows *rows, int c, int range[2])
{
    range[0] = INT32_MAX;
    range[1] = INT32_MIN;
    for (int pair = 0; pair < LR_CUDA_BAND_PAIRS; pair++) {
        const int d = c - I * pair;
        int own[2];
        if (d < 0 || d >= count_lists(rows)) {
            continue;
        }
        range_of(rows, d, own);
        own[1] += own[0] <= own[1] ? BLOCK_OCTETS - 1 : 0;
        range[0] = own[0] < range[0] ? own[0] : range[0];
        range[1] = own[1] > range[1] ? own[1] : range[1];
    }
}

/* The octet that slab c begins with. */
static int find_low(const struct rows *rows, int c)
{
    int range[2];
    find_slab(rows, c, range);
    return range[0] <= range[1] ? range[0] : 0;
}

/* --- steps --- */

/* Numbers the spans, and finds where their octets lie in the list of offsets: before the first and after
 * the last there is room for an octet that has none. */
static lr_status number_spans(struct planner *planner)
{
    const struct rows *rows = &planner->rows;
    struct lr_cuda_band_plan *plan = planner->plan;
    const int64_t count = (int64_t)rows->count[0] * rows->count[1];
    planner->numbers =
        lr_alloc(count, sizeof(*planner->numbers), "weights of a view", planner->log);
    plan->ranges = lr_alloc(count + 1, sizeof(*plan->ranges), "weights of a view", planner->log);
    if (planner->numbers == NULL || plan->ranges == NULL) {
        return LR_FAILED;
    }
    int32_t next = 2 * K, most = 0, number = 1;
    for (int64_t k = 0; k < count; k++) {
        int octets[2];
        if (is_empty(&rows->spans[k])) {
            continue;
        }
        octets_of(&rows->spans[k], octets);
        const int32_t places = K * (octets[1] - octets[0] + 1);
        planner->numbers[k] = number;
        plan->ranges[number][0] = next;
        plan->ranges[number][1] = places;
        most = places > most ? places : most;
        next += places;
        number++;
    }
    plan->num_places = next + K;
    plan->pass.num_spans = number;
    plan->pass.span_pitch = most + 2 * LR_CUDA_BAND_MARGIN;
    return LR_OK;
}

/* A row's span for a half of a step; 0: it has none. octet: of the half, from the span's first. */
static int32_t find_span(const struct planner *planner, const struct half *half, const int at[2],
                         int *octet)
{
    const struct rows *rows = &planner->rows;
    if (half == NULL || !has_half(rows, at[0], at[1], half)) {
        *octet = 0;
        return 0;
    }
    const struct span *span = span_of(rows, at[0], at[1], half->slice);
    int octets[2];
    octets_of(span, octets);
    *octet = half->octet - octets[0];
    return planner->numbers[span - rows->spans];
}

/* Where a row's weights for a half begin: in the list of offsets, where K has none; and among spans'. at:
 * list and row. */
static void find_weights(const struct planner *planner, const struct half *half, const int at[2],
                         int32_t found[2])
{
    const lr_cuda_bands *pass = &planner->plan->pass;
    int octet;
    const int32_t number = find_span(planner, half, at, &octet);
    found[0] = number == 0 ? K : planner->plan->ranges[number][0] + K * octet;
    found[1] = number * pass->num_rows * pass->span_pitch + LR_CUDA_BAND_MARGIN + K * octet;
}

/* halves[1] = NULL: there is none, and the first comes again, without weights. */
static void add_step(const struct planner *planner, int d, const struct half *const halves[2])
{
    struct lr_cuda_band_plan *plan = planner->plan;
    const int32_t row = plan->pass.width / K, k = plan->num_steps++;
    for (int h = 0; h < 2; h++) {
        const struct half *half = halves[h] != NULL ? halves[h] : halves[0];
        plan->steps[k].source[h] = half->slice * row + half->octet;
        plan->steps[k].octet[h] = half->octet;
        for (int i = 0; i < I; i++) {
            int32_t found[2];
            find_weights(planner, halves[h], (const int[2]){d, i}, found);
            plan->places[k][i][h] = found[0];
            plan->spots[k][i][h] = found[1];
        }
    }
}

static void list_row_steps(const struct planner *planner, int d, const struct half *halves,
                           int count)
{
    for (int k = 0; k < count; k += 2) {
        const struct half *const both[2] = {&halves[k], k + 1 < count ? &halves[k + 1] : NULL};
        add_step(planner, d, both);
    }
}

static lr_status list_steps(struct planner *planner)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    const struct rows *rows = &planner->rows;
    const int lists = plan->pass.num_lists, most = most_halves(rows);
    const int64_t steps = (int64_t)lists * (most / 2 + 1) + 2;
    plan->lists = lr_alloc(lists, sizeof(*plan->lists), "steps of a view", planner->log);
    plan->steps = lr_alloc(steps, sizeof(*plan->steps), "steps of a view", planner->log);
    plan->places = lr_alloc(steps, sizeof(*plan->places), "steps of a view", planner->log);
    plan->spots = lr_alloc(steps, sizeof(*plan->spots), "steps of a view", planner->log);
    struct half *halves = lr_alloc(most, sizeof(*halves), "steps of a view", planner->log);
    const bool is_there = plan->lists && plan->steps && plan->places && plan->spots && halves;
    for (int d = 0; is_there && d < lists; d++) {
        plan->lists[d][0] = plan->num_steps;
        list_row_steps(planner, d, halves, list_halves(rows, d, halves));
        plan->lists[d][1] = plan->num_steps;
        for (int pair = 0; pair < LR_CUDA_BAND_PAIRS; pair++) {
            plan->lists[d][2 + pair] = find_low(rows, d + I * pair);
        }
    }
    for (int k = 0; is_there && k < 2 * 2 * I; k++) { /* of steps that are only looked ahead to */
        (&plan->spots[plan->num_steps][0][0])[k] = LR_CUDA_BAND_MARGIN;
    }
    free(halves);
    return is_there ? LR_OK : LR_FAILED;
}

/* --- blocks --- */

static void find_width(const struct rows *rows, lr_cuda_bands *pass)
{
    int most = 1;
    pass->num_slabs = rows->count[0] + BLOCK_ROWS - 1;
    for (int c = 0; c < pass->num_slabs; c++) {
        int range[2];
        find_slab(rows, c, range);
        most = range[0] <= range[1] && range[1] - range[0] >= most ? range[1] - range[0] + 1 : most;
    }
    pass->width = K * (most | 1); /* so that eight slices lie in different banks */
}

/* Products above each other: as few layers of blocks as can be, of equal height. */
static void set_height(lr_cuda_bands *pass)
{
    const int products = (pass->layout.size[2] + LR_CUDA_BAND_SLICES - 1) / LR_CUDA_BAND_SLICES;
    const int layers = (products + LR_CUDA_BAND_HEIGHT - 1) / LR_CUDA_BAND_HEIGHT;
    pass->height = (products + layers - 1) / layers;
}

/* What a block holds beside slabs: barriers, lists and units. */
static int32_t count_list_bytes(const lr_cuda_bands *pass)
{
    const int32_t bytes = LR_CUDA_BAND_BARRIERS + pass->num_lists * 16 + pass->num_slabs * 4;
    return (bytes + 127) / 128 * 128; /* copies begin there */
}

static void set_block(lr_cuda_bands *pass)
{
    pass->slices = LR_CUDA_BAND_SLICES * pass->height - 2 * pass->low_slice;
    pass->slab_bytes = (2 * pass->slices * pass->width * 2 + 127) / 128 * 128;
    pass->list_bytes = count_list_bytes(pass);
    pass->depth = 3; /* one that some warps are still at, one that others are, and what comes */
    pass->bytes = pass->list_bytes + pass->depth * pass->slab_bytes;
}

bool lr_cuda_band_plan_fits(const struct lr_cuda_band_plan *plan, int64_t room_bytes)
{
    const lr_cuda_bands *pass = &plan->pass;
    const int64_t entries = (int64_t)pass->num_spans * pass->num_rows * pass->span_pitch;
    return (pass->num_rows == 1 || entries <= MOST_ENTRIES) && pass->bytes <= room_bytes &&
           pass->width <= LR_CUDA_BAND_MOST && pass->slices <= LR_CUDA_BAND_MOST;
}

/* --- the grid --- */

static lr_status list_bases(struct planner *planner)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    lr_cuda_bands *pass = &plan->pass;
    int range[2], most = 0;
    find_row_range(&planner->rows.lattice, pass->layout.size, range);
    pass->least_row = range[0];
    pass->num_lattice_rows = range[1] - range[0] + 1;
    plan->bases =
        lr_alloc(pass->num_lattice_rows, sizeof(*plan->bases), "rows of a view", planner->log);
    if (plan->bases == NULL) {
        return LR_FAILED;
    }
    for (int k = 0; k < pass->num_lattice_rows; k++) {
        int32_t *octets = plan->bases[k];
        find_octets(&planner->rows.lattice, pass->layout.size, pass->least_row + k, octets);
        most = octets[1] - octets[0] > most ? octets[1] - octets[0] : most;
    }
    pass->pitch = K * most;
    /* from one row to the next, the first octet is off by one place at most */
    pass->kernel_margin = pass->width + K * ((pass->num_slabs + 2 * K - 1) / K);
    pass->kernel_pitch = pass->pitch + 2 * pass->kernel_margin;
    return LR_OK;
}

/* The octets that some rows from row k on have: the first, and the one after the last. */
static void find_tile_octets(const struct lr_cuda_band_plan *plan, int k, int octets[2])
{
    octets[0] = INT32_MAX;
    octets[1] = INT32_MIN;
    for (int row = k; row < k + BLOCK_ROWS && row < plan->pass.num_lattice_rows; row++) {
        octets[0] = plan->bases[row][0] < octets[0] ? plan->bases[row][0] : octets[0];
        octets[1] = plan->bases[row][1] > octets[1] ? plan->bases[row][1] : octets[1];
    }
}

/* Counts the blocks, and writes them where there is room for them. */
static int32_t write_tiles(const struct lr_cuda_band_plan *plan, int32_t (*tiles)[2])
{
    int32_t count = 0;
    for (int k = 0; k < plan->pass.num_lattice_rows; k += BLOCK_ROWS) {
        int octets[2];
        find_tile_octets(plan, k, octets);
        for (int octet = octets[0]; octet < octets[1]; octet += BLOCK_OCTETS) {
            if (tiles != NULL) {
                tiles[count][0] = octet;
                tiles[count][1] = plan->pass.least_row + k;
            }
            count++;
        }
    }
    return count;
}

static lr_status list_tiles(struct planner *planner)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    plan->pass.num_tiles = write_tiles(plan, NULL);
    plan->tiles =
        lr_alloc(plan->pass.num_tiles, sizeof(*plan->tiles), "blocks of a view", planner->log);
    if (plan->tiles == NULL) {
        return LR_FAILED;
    }
    write_tiles(plan, plan->tiles);
    return LR_OK;
}

/* --- tables --- */

static void list_offset(const struct planner *planner, int64_t i)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    const struct rows *rows = &planner->rows;
    const int32_t *offset = planner->shape->offsets[i];
    int at[2], octets[2];
    place_column(&rows->lattice, offset, at);
    const struct span *span = span_at(rows, at[1] - rows->least[0], offset[2] - rows->least[1]);
    octets_of(span, octets);
    const int32_t *range = plan->ranges[planner->numbers[span - rows->spans]];
    plan->offsets[range[0] + at[0] - K * octets[0]] = (int32_t)i;
}

static lr_status list_offsets(const struct planner *planner)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    plan->offsets =
        lr_alloc(plan->num_places, sizeof(*plan->offsets), "weights of a view", planner->log);
    if (plan->offsets == NULL) {
        return LR_FAILED;
    }
    memset(plan->offsets, 0xff, (size_t)plan->num_places * sizeof(*plan->offsets)); /* -1 */
    for (int64_t i = 0; i < planner->shape->info.num_offsets; i++) {
        list_offset(planner, i);
    }
    return LR_OK;
}

/* --- the plan --- */

static lr_status make_plan(struct planner *planner)
{
    lr_cuda_bands *pass = &planner->plan->pass;
    LR_TRY(choose_lattice(planner));
    const struct rows *rows = &planner->rows;
    for (int k = 0; k < 2; k++) {
        pass->next[k] = rows->lattice.next[k];
        pass->across[k] = rows->lattice.across[k];
    }
    pass->least_offset = rows->least[0];
    pass->num_offsets = rows->count[0];
    pass->low_slice = rows->least[1];
    set_height(pass);
    pass->num_lists = count_lists(rows);
    find_width(rows, pass);
    set_block(pass);
    LR_TRY(number_spans(planner));
    LR_TRY(list_steps(planner));
    LR_TRY(list_bases(planner));
    LR_TRY(list_tiles(planner));
    return list_offsets(planner);
}

lr_status lr_cuda_band_plan_init(struct lr_cuda_band_plan *plan,
                                 const struct lr_direct_shape *shape, const lr_cuda_layout *layout,
                                 int rows, const lr_log *log)
{
    struct planner planner = {.plan = plan, .shape = shape, .log = log};
    *plan = (struct lr_cuda_band_plan){.pass = {.layout = *layout, .num_rows = rows}};
    const lr_status status = make_plan(&planner);
    free(planner.numbers);
    free(planner.rows.spans);
    if (status != LR_OK) {
        lr_cuda_band_plan_finish(plan);
    }
    return status;
}

void lr_cuda_band_plan_finish(struct lr_cuda_band_plan *plan)
{
    free(plan->offsets);
    free(plan->ranges);
    free(plan->bases);
    free(plan->tiles);
    free(plan->lists);
    free(plan->places);
    free(plan->spots);
    free(plan->steps);
    *plan = (struct lr_cuda_band_plan){0};
}

/* --- sorted sources --- */

static int64_t count_numbers(const lr_cuda_bands *pass)
{
    return (int64_t)2 * pass->num_lattice_rows * pass->layout.size[2] * pass->pitch;
}

int64_t lr_cuda_band_source_bytes(const lr_cuda_bands *pass)
{
    return count_numbers(pass) * (int64_t)sizeof(uint16_t) +
           pass->num_lattice_rows * (int64_t)sizeof(float);
}

lr_cuda_band_source lr_cuda_band_source_at(const lr_cuda_bands *pass, void *memory)
{
    uint16_t *numbers = memory;
    return (lr_cuda_band_source){numbers, (float *)(numbers + count_numbers(pass))};
}
