/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/bands.h"

#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/direct/band_rows.h"

#include <stdlib.h>
#include <string.h>

enum {
    K = LR_CUDA_OCTET,
    I = LR_CUDA_BAND_ROWS,
    BLOCK_ROWS = I * LR_CUDA_BAND_PAIRS,
    MOST_SIDES = LR_CUDA_BAND_SIDES,
    FEW_SIDES = LR_CUDA_BAND_FEW_SIDES,
    FEW_STEPS = 256,        /* of a view */
    CROWD_BYTES = 56 << 10, /* of shared memory: capability 9.0 has room for four such blocks */
    MOST_ENTRIES = 1 << 25  /* of spans: 256 MiB for both ways */
};

/* What is only known while a plan is made. */
struct planner {
    struct lr_cuda_band_plan *plan;
    const struct lr_direct_shape *shape;
    struct lr_band_rows rows;
    int (*ranges)[2]; /* owned [lists]: octets that a list's steps have */
    int32_t *numbers; /* owned [spans]: of those that there are, from 1 on */
    const lr_log *log;
};

/* What is the same for all shapes. */
static lr_cuda_bands *pass_of(struct lr_cuda_band_plan *plan)
{
    return &plan->passes[LR_CUDA_BANDS_ALONE];
}

/* --- the lattice --- */

static int most_halves(const struct lr_band_rows *rows)
{
    int most = 0;
    for (int d = 0; d < lr_band_count_lists(rows); d++) {
        const int count = lr_band_count_halves(rows, d);
        most = count > most ? count : most;
    }
    return most;
}

/* Steps of a warp. */
static int64_t count_steps(const struct lr_band_rows *rows)
{
    int64_t count = 0;
    for (int d = 0; d < lr_band_count_lists(rows); d++) count += (lr_band_count_halves(rows, d) + 1) / 2;
    return count;
}

static lr_status weigh(struct planner *planner, const struct lr_lattice *candidate, int64_t *least)
{
    struct lr_band_rows rows;
    const int32_t *size = pass_of(planner->plan)->layout.size;
    LR_TRY(lr_band_rows_init(&rows, candidate, planner->shape, planner->log));
    const int64_t steps = count_steps(&rows);
    const int64_t least_octets = (int64_t)size[0] * size[1] / K; /* of any lattice */
    const int64_t cost = steps * least_octets < *least ? steps * lr_band_count_octets(candidate, size) : *least;
    if (cost < *least) {
        const struct lr_band_rows former = planner->rows;
        *least = cost;
        planner->rows = rows;
        rows = former;
    }
    lr_band_rows_finish(&rows);
    return LR_OK;
}

static lr_status choose_lattice(struct planner *planner)
{
    struct lr_lattice candidates[LR_LATTICE_CANDIDATES];
    const int count = lr_lattice_candidates(planner->shape, candidates);
    int64_t least = INT64_MAX;
    lr_status status = LR_OK;
    for (int k = 0; status == LR_OK && k < count; k++) status = weigh(planner, &candidates[k], &least);
    return status;
}

/* --- slabs --- */

static lr_status find_ranges(struct planner *planner)
{
    const int lists = lr_band_count_lists(&planner->rows);
    planner->ranges = lr_alloc(lists, sizeof(*planner->ranges), "steps of a view", planner->log);
    for (int d = 0; planner->ranges != NULL && d < lists; d++) lr_band_range(&planner->rows, d, planner->ranges[d]);
    return planner->ranges != NULL ? LR_OK : LR_FAILED;
}

/* Octets that slab c has of a block that is one warp wide: all that steps of its warps take. */
static void find_slab(const struct planner *planner, int c, int range[2])
{
    const int lists = pass_of(planner->plan)->num_lists;
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

/* The octet that slab c begins with. */
static int find_low(const struct planner *planner, int c)
{
    int range[2];
    find_slab(planner, c, range);
    return range[0] <= range[1] ? range[0] : 0;
}

/* --- the grid --- */

/* The farthest octet of sources from that of the outputs. */
static int find_reach(const struct planner *planner)
{
    int most = 0;
    for (int d = 0; d < pass_of(planner->plan)->num_lists; d++) {
        const int *range = planner->ranges[d];
        most = range[0] <= range[1] && -range[0] > most ? -range[0] : most;
        most = range[0] <= range[1] && range[1] > most ? range[1] : most;
    }
    return most;
}

/* Octets of sources, and one after them. */
static void set_cuts(const struct planner *planner)
{
    lr_cuda_bands *pass = pass_of(planner->plan);
    const int reach = find_reach(planner);
    pass->least_octet = -reach;
    pass->num_cuts = 2 * reach + 2;
}

/* As far as blocks that begin in the grid reach. extent: the least and the last place of the grid. */
static void set_kernels(const struct planner *planner, const int extent[2])
{
    lr_cuda_bands *pass = pass_of(planner->plan);
    const int margin = -pass->least_octet + MOST_SIDES;
    const int first = lr_floor_div(extent[0], K) - margin;
    const int last_offset = pass->least_offset + pass->num_lists;
    pass->first_kernel[0] = K * first;
    pass->first_kernel[1] = pass->least_row + (pass->least_offset < 0 ? pass->least_offset : 0);
    pass->kernel_pitch = K * (lr_floor_div(extent[1], K) + margin + 1 - first);
    pass->num_kernel_rows = pass->least_row + pass->num_lattice_rows + BLOCK_ROWS +
                            (last_offset > 0 ? last_offset : 0) - pass->first_kernel[1];
}

static lr_status list_bases(struct planner *planner)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    lr_cuda_bands *pass = pass_of(plan);
    int least[2], last[2], most = 0;
    lr_lattice_extent(&planner->rows.lattice, pass->layout.size, least, last);
    pass->least_row = least[1];
    pass->num_lattice_rows = last[1] - least[1] + 1;
    plan->bases = lr_alloc(pass->num_lattice_rows, sizeof(*plan->bases), "rows of a view", planner->log);
    if (plan->bases == NULL) return LR_FAILED;
    for (int k = 0; k < pass->num_lattice_rows; k++) {
        int32_t *octets = plan->bases[k];
        lr_band_grid_row(&planner->rows.lattice, pass->layout.size, pass->least_row + k, octets);
        most = octets[1] - octets[0] > most ? octets[1] - octets[0] : most;
    }
    pass->pitch = K * most;
    set_kernels(planner, (const int[2]){least[0], last[0]});
    return LR_OK;
}

/* --- steps --- */

/* Numbers the spans, and finds where their octets lie in the list of offsets: before the first and after
 * the last there is room for an octet that has none. */
static lr_status number_spans(struct planner *planner)
{
    const struct lr_band_rows *rows = &planner->rows;
    struct lr_cuda_band_plan *plan = planner->plan;
    const int64_t count = (int64_t)rows->count[0] * rows->count[1];
    planner->numbers = lr_alloc(count, sizeof(*planner->numbers), "weights of a view", planner->log);
    plan->ranges = lr_alloc(count + 1, sizeof(*plan->ranges), "weights of a view", planner->log);
    if (planner->numbers == NULL || plan->ranges == NULL) return LR_FAILED;
    int32_t next = 2 * K, most = 0, number = 1;
    for (int64_t k = 0; k < count; k++) {
        const int *octets = rows->spans[k].octets;
        if (lr_band_is_empty(&rows->spans[k])) continue;
        const int32_t places = K * (octets[1] - octets[0] + 1);
        planner->numbers[k] = number;
        plan->ranges[number][0] = next;
        plan->ranges[number][1] = places;
        most = places > most ? places : most;
        next += places;
        number++;
    }
    plan->num_places = next + K;
    pass_of(plan)->num_spans = number;
    pass_of(plan)->span_pitch = most + 2 * LR_CUDA_BAND_MARGIN;
    return LR_OK;
}

/* A row's span for a half of a step; 0: it has none. octet: of the half, from the span's first. */
static int32_t find_span(const struct planner *planner, const struct lr_band_half *half, const int at[2], int *octet)
{
    const struct lr_band_rows *rows = &planner->rows;
    if (half == NULL || !lr_band_has_half(rows, at[0], at[1], half)) {
        *octet = 0;
        return 0;
    }
    const struct lr_band_span *span = lr_band_span_of(rows, at[0], at[1], half->slice);
    *octet = half->octet - span->octets[0];
    return planner->numbers[span - rows->spans];
}

/* Where a row's weights for a half begin: in the list of offsets, where K has none; and among spans'. at:
 * list and row. */
static void find_weights(const struct planner *planner, const struct lr_band_half *half, const int at[2],
                         int32_t found[2])
{
    const lr_cuda_bands *pass = pass_of(planner->plan);
    int octet;
    const int32_t number = find_span(planner, half, at, &octet);
    found[0] = number == 0 ? K : planner->plan->ranges[number][0] + K * octet;
    found[1] = (int32_t)((int64_t)number * pass->num_rows * pass->span_pitch + LR_CUDA_BAND_MARGIN +
                         K * octet); /* what is too much does not fit */
}

/* halves[1] = NULL: there is none, and the first comes again, without weights. */
static void add_step(const struct planner *planner, int d, const struct lr_band_half *const halves[2])
{
    struct lr_cuda_band_plan *plan = planner->plan;
    const lr_cuda_bands *pass = pass_of(plan);
    const int32_t of_octet = 2 * pass->slices, k = plan->num_steps++;
    for (int h = 0; h < 2; h++) {
        const struct lr_band_half *half = halves[h] != NULL ? halves[h] : halves[0];
        plan->steps[k + 1].source[h] = half->octet * of_octet + half->slice;
        plan->steps[k].kernel[h] = (pass->least_offset + d) * pass->kernel_pitch + K * half->octet;
        for (int i = 0; i < I; i++) {
            int32_t found[2];
            find_weights(planner, halves[h], (const int[2]){d, i}, found);
            plan->places[k][i][h] = found[0];
            plan->spots[k][i][h] = found[1];
        }
    }
}

static void list_row_steps(const struct planner *planner, int d, const struct lr_band_half *halves, int count)
{
    for (int k = 0; k < count; k += 2) {
        const struct lr_band_half *const both[2] = {&halves[k], k + 1 < count ? &halves[k + 1] : NULL};
        add_step(planner, d, both);
    }
}

/* Where list d's steps are to be cut, octet by octet. */
static void list_cuts(const struct planner *planner, int d)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    const lr_cuda_bands *pass = pass_of(plan);
    int32_t cut[2] = {plan->lists[d][0], plan->lists[d][0]};
    for (int k = 0; k < pass->num_cuts; k++) {
        const int32_t source = (pass->least_octet + k) * 2 * pass->slices; /* the octet's first */
        for (int h = 0; h < 2; h++) {
            while (cut[h] < plan->lists[d][1] && plan->steps[cut[h] + 1].source[1 - h] < source) cut[h]++;
            plan->cuts[d * pass->num_cuts + k][h] = cut[h];
        }
    }
}

static void list_steps_of(const struct planner *planner, int d, struct lr_band_half *halves)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    plan->lists[d][0] = plan->num_steps;
    list_row_steps(planner, d, halves, lr_band_list_halves(&planner->rows, d, halves));
    plan->lists[d][1] = plan->num_steps;
    for (int pair = 0; pair < LR_CUDA_BAND_PAIRS; pair++) plan->lists[d][2 + pair] = find_low(planner, d + I * pair);
    list_cuts(planner, d);
}

static lr_status list_steps(struct planner *planner)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    const struct lr_band_rows *rows = &planner->rows;
    const int lists = pass_of(plan)->num_lists, most = most_halves(rows);
    const int64_t steps = (int64_t)lists * (most / 2 + 1) + 2;
    plan->lists = lr_alloc(lists, sizeof(*plan->lists), "steps of a view", planner->log);
    plan->cuts =
        lr_alloc((int64_t)lists * pass_of(plan)->num_cuts, sizeof(*plan->cuts), "steps of a view", planner->log);
    plan->steps = lr_alloc(steps + 1, sizeof(*plan->steps), "steps of a view", planner->log);
    plan->places = lr_alloc(steps, sizeof(*plan->places), "steps of a view", planner->log);
    plan->spots = lr_alloc(steps, sizeof(*plan->spots), "steps of a view", planner->log);
    struct lr_band_half *halves = lr_alloc(most, sizeof(*halves), "steps of a view", planner->log);
    const bool is_there = plan->lists && plan->cuts && plan->steps && plan->places && plan->spots && halves;
    for (int d = 0; is_there && d < lists; d++) list_steps_of(planner, d, halves);
    for (int k = 0; is_there && k < 2 * 2 * I; k++) /* of steps that are only looked ahead to */
        (&plan->spots[plan->num_steps][0][0])[k] = LR_CUDA_BAND_MARGIN;
    free(halves);
    return is_there ? LR_OK : LR_FAILED;
}

/* --- blocks --- */

/* Octets of the widest slab, of a block that is one warp wide. */
static int32_t find_width(const struct planner *planner)
{
    int32_t most = 1;
    for (int c = 0; c < pass_of(planner->plan)->num_slabs; c++) {
        int range[2];
        find_slab(planner, c, range);
        most = range[0] <= range[1] && range[1] - range[0] >= most ? range[1] - range[0] + 1 : most;
    }
    return most;
}

/* Of a slab: those of the outputs, and what the kernel reaches beyond them. */
static int32_t slices_of(const lr_cuda_bands *pass)
{
    return LR_CUDA_BAND_SLICES * pass->height - 2 * pass->low_slice;
}

/* Products above each other: as few layers of blocks as can be, of equal height, but lower ones where a
 * slab would be too high for a copy. */
static void set_height(lr_cuda_bands *pass)
{
    const int products = (pass->layout.size[2] + LR_CUDA_BAND_SLICES - 1) / LR_CUDA_BAND_SLICES;
    const int layers = (products + LR_CUDA_BAND_HEIGHT - 1) / LR_CUDA_BAND_HEIGHT;
    pass->height = (products + layers - 1) / layers;
    while (pass->height > 1 && slices_of(pass) > LR_CUDA_BAND_MOST) pass->height--;
    pass->slices = slices_of(pass);
}

/* What a block holds beside slabs: barriers and lists. */
static int32_t count_list_bytes(const lr_cuda_bands *pass)
{
    const int32_t of_step = pass->num_rows > 1 ? 32 : 16;
    const int32_t warps = pass->sides * LR_CUDA_BAND_PAIRS;
    const int32_t bytes = LR_CUDA_BAND_BARRIERS + warps * (pass->num_lists + 1) * 16 +
                          (pass->held_steps > 0 ? pass->held_steps + 3 : 0) * of_step + pass->num_slabs * 8;
    return (bytes + 127) / 128 * 128; /* copies begin there */
}

/* Slabs: one that some warps are still at, one that others are, and what comes. Where there are most blocks,
 * or would be fewer for it, others go on while one waits. */
static int32_t find_depth(const lr_cuda_bands *pass)
{
    const bool is_low = pass->is_crowded && pass->height < LR_CUDA_BAND_HEIGHT;
    const bool is_large = pass->list_bytes + 3 * pass->slab_bytes > CROWD_BYTES;
    return is_low && (pass->num_rows == 1 || is_large) ? 2 : 3;
}

/* width: octets of the widest slab, of a block that is one warp wide. */
static void set_block(lr_cuda_bands *pass, int32_t width, int32_t sides)
{
    pass->sides = sides;
    pass->width = width + sides - 1;
    pass->slab_bytes = (pass->width * 2 * pass->slices * K * 2 + 127) / 128 * 128;
    pass->list_bytes = count_list_bytes(pass);
    pass->depth = find_depth(pass);
    pass->bytes = pass->list_bytes + pass->depth * pass->slab_bytes;
}

/* Alone, few blocks with many warps take the least time, beside others many with few: one computes while
 * another begins, unless they have so much to compute that this is nothing. With the most products above
 * each other, there are registers for few. */
static void set_shapes(struct planner *planner)
{
    lr_cuda_bands *passes = planner->plan->passes;
    const lr_cuda_bands common = *pass_of(planner->plan);
    const int32_t width = find_width(planner);
    const int32_t most = common.height == LR_CUDA_BAND_HEIGHT ? FEW_SIDES : MOST_SIDES;
    const bool is_long = planner->plan->num_steps > FEW_STEPS;
    passes[LR_CUDA_BANDS_BESIDE] = common;
    passes[LR_CUDA_BANDS_BESIDE].is_crowded = !is_long;
    passes[LR_CUDA_BANDS_BESIDE].held_steps = is_long ? 0 : planner->plan->num_steps;
    set_block(&passes[LR_CUDA_BANDS_ALONE], width, most);
    set_block(&passes[LR_CUDA_BANDS_BESIDE], width, is_long ? most : FEW_SIDES);
}

static bool fits(const lr_cuda_bands *pass, int64_t room_bytes)
{
    const int64_t entries = (int64_t)pass->num_spans * pass->num_rows * pass->span_pitch;
    return (pass->num_rows == 1 || entries <= MOST_ENTRIES) && pass->bytes <= room_bytes &&
           pass->width <= LR_CUDA_BAND_MOST && pass->slices <= LR_CUDA_BAND_MOST;
}

bool lr_cuda_band_plan_fits(const struct lr_cuda_band_plan *plan, int64_t room_bytes)
{
    for (int which = 0; which < LR_CUDA_BANDS_SHAPES; which++)
        if (!fits(&plan->passes[which], room_bytes)) return false;
    return true;
}

/* --- tiles --- */

/* The octets that some rows from row k on have: the first, and the one after the last. */
static void find_tile_octets(struct lr_cuda_band_plan *plan, int k, int octets[2])
{
    octets[0] = INT32_MAX;
    octets[1] = INT32_MIN;
    for (int row = k; row < k + BLOCK_ROWS && row < pass_of(plan)->num_lattice_rows; row++) {
        octets[0] = plan->bases[row][0] < octets[0] ? plan->bases[row][0] : octets[0];
        octets[1] = plan->bases[row][1] > octets[1] ? plan->bases[row][1] : octets[1];
    }
}

/* Counts the blocks of a pass, and writes them where there is room for them. */
static int32_t write_tiles(struct lr_cuda_band_plan *plan, const lr_cuda_bands *pass, int32_t (*tiles)[2])
{
    int32_t count = 0;
    for (int k = 0; k < pass->num_lattice_rows; k += BLOCK_ROWS) {
        int octets[2];
        find_tile_octets(plan, k, octets);
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

static lr_status list_tiles(struct planner *planner)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    for (int which = 0; which < LR_CUDA_BANDS_SHAPES; which++) {
        lr_cuda_bands *pass = &plan->passes[which];
        pass->num_tiles = write_tiles(plan, pass, NULL);
        plan->num_tiles += pass->num_tiles;
    }
    plan->tiles = lr_alloc(plan->num_tiles, sizeof(*plan->tiles), "blocks of a view", planner->log);
    if (plan->tiles == NULL) return LR_FAILED;
    int32_t(*next)[2] = plan->tiles;
    for (int which = 0; which < LR_CUDA_BANDS_SHAPES; which++) next += write_tiles(plan, &plan->passes[which], next);
    return LR_OK;
}

/* --- tables --- */

static void list_offset(const struct planner *planner, int64_t i)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    const struct lr_band_rows *rows = &planner->rows;
    const int32_t *offset = planner->shape->offsets[i];
    int at[2];
    lr_lattice_place_column(&rows->lattice, offset, at);
    const struct lr_band_span *span = lr_band_span_at(rows, at[1] - rows->least[0], offset[2] - rows->least[1]);
    const int32_t *range = plan->ranges[planner->numbers[span - rows->spans]];
    plan->offsets[range[0] + at[0] - K * span->octets[0]] = (int32_t)i;
}

static lr_status list_offsets(const struct planner *planner)
{
    struct lr_cuda_band_plan *plan = planner->plan;
    plan->offsets = lr_alloc(plan->num_places, sizeof(*plan->offsets), "weights of a view", planner->log);
    if (plan->offsets == NULL) return LR_FAILED;
    memset(plan->offsets, 0xff, (size_t)plan->num_places * sizeof(*plan->offsets)); /* -1 */
    for (int64_t i = 0; i < planner->shape->info.num_offsets; i++) list_offset(planner, i);
    return LR_OK;
}

/* --- the plan --- */

static lr_status make_plan(struct planner *planner)
{
    lr_cuda_bands *pass = pass_of(planner->plan);
    LR_TRY(choose_lattice(planner));
    const struct lr_band_rows *rows = &planner->rows;
    for (int k = 0; k < 2; k++) {
        pass->next[k] = rows->lattice.next[k];
        pass->across[k] = rows->lattice.across[k];
    }
    pass->least_offset = rows->least[0];
    pass->low_slice = rows->least[1];
    set_height(pass);
    pass->num_lists = lr_band_count_lists(rows);
    pass->num_slabs = rows->count[0] + BLOCK_ROWS - 1;
    LR_TRY(find_ranges(planner));
    set_cuts(planner);
    LR_TRY(list_bases(planner));
    LR_TRY(number_spans(planner));
    LR_TRY(list_steps(planner));
    set_shapes(planner);
    LR_TRY(list_tiles(planner));
    return list_offsets(planner);
}

lr_status lr_cuda_band_plan_init(struct lr_cuda_band_plan *plan, const struct lr_direct_shape *shape,
                                 const lr_cuda_layout *layout, int rows, const lr_log *log)
{
    struct planner planner = {.plan = plan, .shape = shape, .log = log};
    *plan = (struct lr_cuda_band_plan){.passes = {{.layout = *layout, .num_rows = rows}}};
    const lr_status status = make_plan(&planner);
    free(planner.numbers);
    free(planner.ranges);
    lr_band_rows_finish(&planner.rows);
    if (status != LR_OK) lr_cuda_band_plan_finish(plan);
    return status;
}

void lr_cuda_band_plan_finish(struct lr_cuda_band_plan *plan)
{
    free(plan->offsets);
    free(plan->ranges);
    free(plan->bases);
    free(plan->tiles);
    free(plan->cuts);
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
    return count_numbers(pass) * (int64_t)sizeof(uint16_t) + pass->num_lattice_rows * (int64_t)sizeof(float);
}

lr_cuda_band_source lr_cuda_band_source_at(const lr_cuda_bands *pass, void *memory)
{
    uint16_t *numbers = memory;
    return (lr_cuda_band_source){numbers, (float *)(numbers + count_numbers(pass)), false};
}
