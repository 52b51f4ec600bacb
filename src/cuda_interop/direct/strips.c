/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/strips.h"

#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/direct/cloud.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)LR_CUDA_OUTPUTS == (int)LR_LATTICE_OUTPUTS, "a thread's outputs");

enum {
    J = LR_LATTICE_OUTPUTS,
    ONE = 65536,                       /* of a slope */
    MOST_BYTES = 227 * 1024,           /* of a block's shared memory */
    ROOM_BYTES = MOST_BYTES / 3 - 1024 /* where a multiprocessor has three */
};

/* What is only known while a plan is made. */
struct planner {
    struct lr_cuda_strip_plan *plan;
    const struct lr_cuda_strip_params *params;
    struct lr_lattice lattice;
    int64_t (*slabs)[2]; /* owned [lattice.count]: slab, number of the step */
    int most_steps;      /* of a slab */
    lr_cuda_strips pass; /* what blocks of all shapes have */
};

static int drift(const lr_cuda_strips *pass, int l)
{
    return lr_floor_div(pass->slope * l, ONE);
}

/* --- steps --- */

/* How fast the line of response leaves a row of the lattice. */
static int32_t find_slope(const struct planner *planner)
{
    const double *voxel_mm = planner->params->shape->info.grid.voxel_mm,
                 *tof = planner->params->shape->axes[0];
    double at[2];
    lr_lattice_place(&planner->lattice, (double[2]){tof[0] / voxel_mm[0], tof[1] / voxel_mm[1]},
                     at);
    /* at 45 degrees, whatever rounding says, the rows of the lattice are as good as any other */
    const double slope = fabs(at[1]) < fabs(at[0]) * (1 - LR_DIRECT_TIE) ? at[1] / at[0] : 0;
    return (int32_t)lround(slope * ONE);
}

/* The least number that has all of a step's offsets: a step of the lattice may hold fewer. */
static int count_taps(const struct lr_lattice_step *step)
{
    int taps = 1;
    for (int j = 0; j < J; j++) {
        for (int r = 0; r < LR_LATTICE_TAPS; r++) {
            taps = step->offsets[j][r] >= 0 && r + 1 > taps ? r + 1 : taps;
        }
    }
    return taps;
}

static int compare_slabs(const void *a, const void *b)
{
    const int64_t *one = a, *other = b;
    const int k = one[0] != other[0] ? 0 : 1;
    return one[k] < other[k] ? -1 : one[k] > other[k];
}

static lr_status sort_steps(struct planner *planner)
{
    const int count = planner->lattice.count;
    planner->slabs =
        lr_alloc(count, sizeof(*planner->slabs), "steps of a view", planner->params->log);
    if (planner->slabs == NULL) {
        return LR_FAILED;
    }
    for (int k = 0; k < count; k++) {
        int at[2];
        lr_lattice_place_column(&planner->lattice, planner->lattice.steps[k].column, at);
        planner->slabs[k][0] = at[0];
        planner->slabs[k][1] = k;
    }
    qsort(planner->slabs, (size_t)count, sizeof(*planner->slabs), compare_slabs);
    return LR_OK;
}

/* The first slice, and the one after the last, that a step takes of those above an output. */
static void slices_of(const struct lr_lattice_step *step, int slices[2])
{
    slices[0] = 4 * step->quad + step->shift;
    slices[1] = slices[0] + count_taps(step);
}

static const struct lr_lattice_step *step_of(const struct planner *planner, int k)
{
    return &planner->lattice.steps[planner->slabs[k][1]];
}

/* Rows of the lattice from a thread's to the source of step k. */
static int place_of(const struct planner *planner, int k)
{
    int at[2];
    lr_lattice_place_column(&planner->lattice, step_of(planner, k)->column, at);
    return at[1];
}

/* Rows of mSRval from that of a thread's first output to that of the source of step k. */
static int rows_to(const struct planner *planner, int k)
{
    const int32_t *column = step_of(planner, k)->column, *pitch = planner->pass.row_pitch;
    return column[0] * pitch[0] + column[1] * pitch[1];
}

/* The steps of each slab, and where it begins along the slices. */
static lr_status list_slabs(struct planner *planner)
{
    struct lr_cuda_strip_plan *plan = planner->plan;
    lr_cuda_strips *pass = &planner->pass;
    const int count = planner->lattice.count;
    pass->least = (int32_t)planner->slabs[0][0];
    pass->num_slabs = (int32_t)(planner->slabs[count - 1][0] - pass->least) + 1;
    plan->num_slabs = pass->num_slabs;
    plan->slabs =
        lr_alloc(plan->num_slabs, sizeof(*plan->slabs), "steps of a view", planner->params->log);
    if (plan->slabs == NULL) {
        return LR_FAILED;
    }
    for (int k = 0; k < count; k++) {
        lr_cuda_slab *slab = &plan->slabs[planner->slabs[k][0] - pass->least];
        int slices[2];
        slices_of(step_of(planner, k), slices);
        const int low = 4 * lr_floor_div(slices[0], 4);
        slab->first = slab->count == 0 ? k : slab->first;
        slab->row = rows_to(planner, slab->first);
        slab->low = slab->count == 0 || low < slab->low ? low : slab->low;
        slab->count++;
        planner->most_steps = slab->count > planner->most_steps ? slab->count : planner->most_steps;
    }
    return LR_OK;
}

/* lr_cuda_strip_step. */
static int32_t pairs_of(const struct lr_lattice_step *step)
{
    int32_t pairs = 0;
    for (int j = 0; j < J; j++) {
        for (int tap = 0; tap < LR_LATTICE_TAPS; tap++) {
            pairs |= step->offsets[j][tap] >= 0 ? 1 << (2 * tap + j / 2) : 0;
        }
    }
    return pairs;
}

/* Step k; returns how many slices blocks see of its column. */
static int list_step(const struct planner *planner, int k)
{
    const struct lr_lattice_step *from = step_of(planner, k);
    const lr_cuda_slab *slab = &planner->plan->slabs[planner->slabs[k][0] - planner->pass.least];
    int slices[2];
    slices_of(from, slices);
    const int shift = slices[0] - slab->low;
    const bool is_last = k + 1 == slab->first + slab->count;
    planner->plan->steps[k] = (lr_cuda_strip_step){.source = shift / 4,
                                                   .after = rows_to(planner, is_last ? k : k + 1),
                                                   .shift = shift % 4,
                                                   .pairs = pairs_of(from)};
    return shift + LR_CUDA_STRIP_PIECES * LR_CUDA_STRIP_SLICES + slices[1] - slices[0] - 1;
}

/* A source: quads from those of the thread's row, which are the first of a column. */
static lr_status list_steps(struct planner *planner)
{
    struct lr_cuda_strip_plan *plan = planner->plan;
    int slices = 0;
    plan->num_steps = planner->pass.num_steps = planner->lattice.count;
    plan->steps =
        lr_alloc(plan->num_steps, sizeof(*plan->steps), "steps of a view", planner->params->log);
    if (plan->steps == NULL) {
        return LR_FAILED;
    }
    for (int k = 0; k < plan->num_steps; k++) {
        const int reach = list_step(planner, k);
        slices = reach > slices ? reach : slices;
    }
    planner->pass.pitch = ((slices + 3) / 4) | 1;
    for (int k = 0; k < plan->num_steps; k++) {
        plan->steps[k].source += place_of(planner, k) * planner->pass.pitch;
    }
    return LR_OK;
}

/* --- tables --- */

/* Columns of mSR, numbered as they come, so that the last is the mirror image of the first; and what
 * time of flight and slice give. */
static void list_columns(const struct planner *planner)
{
    struct lr_cuda_strip_plan *plan = planner->plan;
    const struct lr_direct_shape *shape = planner->params->shape;
    int column = -1;
    for (int64_t i = 0; i < shape->info.num_offsets; i++) {
        const int32_t *offset = shape->offsets[i];
        const bool is_first = i == 0 || offset[0] != shape->offsets[i - 1][0] ||
                              offset[1] != shape->offsets[i - 1][1];
        column += is_first;
        plan->columns[i] = column;
        plan->factors[i] = (float)lr_cuda_cloud_factor(shape, offset);
        if (is_first || plan->factors[i] > plan->factors[plan->peaks[column]]) {
            plan->peaks[column] = (int32_t)i;
        }
    }
    plan->num_columns = column + 1;
}

static lr_status list_offsets(const struct planner *planner)
{
    struct lr_cuda_strip_plan *plan = planner->plan;
    const lr_log *log = planner->params->log;
    const int64_t count = planner->params->shape->info.num_offsets;
    plan->offsets =
        lr_alloc(planner->lattice.count, sizeof(*plan->offsets), "weights of a view", log);
    plan->factors = lr_alloc(count, sizeof(*plan->factors), "weights of a view", log);
    plan->columns = lr_alloc(count, sizeof(*plan->columns), "weights of a view", log);
    plan->peaks = lr_alloc(count, sizeof(*plan->peaks), "weights of a view", log);
    if (!plan->offsets || !plan->factors || !plan->columns || !plan->peaks) {
        return LR_FAILED;
    }
    plan->num_offsets = (int32_t)count;
    for (int k = 0; k < planner->lattice.count; k++) {
        memcpy(plan->offsets[k], step_of(planner, k)->offsets, sizeof(plan->offsets[k]));
    }
    list_columns(planner);
    return LR_OK;
}

/* --- blocks --- */

/* Columns of a slab: those of all steps, wherever drifts are rounded down to. */
static void find_width(const struct planner *planner, lr_cuda_strips *pass)
{
    const struct lr_cuda_strip_plan *plan = planner->plan;
    double least = 0, most = 0;
    for (int c = 0; c < plan->num_slabs; c++) {
        for (int k = 0; k < plan->slabs[c].count; k++) {
            const double off = place_of(planner, plan->slabs[c].first + k) -
                               (double)pass->slope * (pass->least + c) / ONE;
            least = off < least ? off : least;
            most = off > most ? off : most;
        }
    }
    pass->lead = (int32_t)ceil(1 - least);
    pass->width = pass->sides * LR_CUDA_STRIP_ROWS + pass->lead + (int32_t)ceil(most + 1);
}

/* Room for so many steps: as few copies as there can be, which are hardly larger than they must. */
static void set_boxes(int steps, lr_cuda_strips *pass)
{
    const int boxes = (steps + LR_CUDA_STRIP_MOST - 1) / LR_CUDA_STRIP_MOST;
    const int least = (steps + boxes - 1) / boxes;
    pass->box_steps = (least + 3) / 4 * 4; /* copies begin at 128 bytes */
    pass->room_steps = boxes * pass->box_steps;
}

/* What a block holds: slabs of columns and their steps; the list of slabs; barriers. Sums of warps
 * that share their outputs take the same place at last. */
static int32_t count_bytes(const lr_cuda_strips *pass)
{
    const int32_t slots = pass->splits * pass->depth;
    const int32_t steps = (pass->holds_steps ? 1 : slots) * pass->room_steps;
    const int32_t lists = slots * pass->slab_quads * 16 + steps * (int)sizeof(lr_cuda_strip_step) +
                          pass->num_slabs * (int)sizeof(lr_cuda_slab);
    const int32_t sums = pass->splits == 1
                             ? 0
                             : pass->sides * pass->splits * LR_CUDA_STRIP_ROWS *
                                   LR_CUDA_STRIP_PIECES * J * LR_CUDA_STRIP_SLICES * 4;
    return LR_CUDA_STRIP_BARRIERS + (lists > sums ? lists : sums);
}

static void set_block(const struct planner *planner, const int shape[2], lr_cuda_strips *pass)
{
    *pass = planner->pass;
    pass->sides = shape[0];
    pass->splits = shape[1];
    find_width(planner, pass);
    pass->slab_quads = (pass->width * pass->pitch + 7) / 8 * 8; /* copies begin at 128 bytes */
    /* from what is fastest to what takes the least room */
    for (int k = 0; k == 0 || (k < 4 && pass->bytes > ROOM_BYTES); k++) {
        pass->holds_steps = k < 2;
        pass->depth = 3 - k % 2;
        set_boxes(pass->holds_steps ? pass->num_steps : planner->most_steps, pass);
        pass->bytes = count_bytes(pass);
    }
}

/* The first shape of blocks that three of a multiprocessor's have the room for; then the one that shares
 * slabs most, if one block has; then the smallest. */
static void choose_block(const struct planner *planner, int which)
{
    enum { CHOICES = 4 };
    static const struct {
        int shape[2];
        int32_t room_bytes;
    } choices[LR_CUDA_STRIPS_SHAPES][CHOICES] = {
        {{{1, 4}, ROOM_BYTES}, {{2, 2}, ROOM_BYTES}, {{4, 1}, MOST_BYTES}, {{1, 1}, INT32_MAX}},
        {{{2, 2}, ROOM_BYTES}, {{4, 1}, MOST_BYTES}, {{1, 1}, INT32_MAX}, {{1, 1}, INT32_MAX}}};
    const int wish[2] = {planner->params->sides, planner->params->splits};
    lr_cuda_strips *pass = &planner->plan->passes[which];
    if (wish[0] > 0) {
        set_block(planner, wish, pass);
        return;
    }
    int k = 0;
    do {
        set_block(planner, choices[which][k].shape, pass);
    } while (pass->bytes > choices[which][k].room_bytes && ++k < CHOICES);
}

static bool fits(const lr_cuda_strips *pass, int64_t room_bytes)
{
    return pass->bytes <= room_bytes && pass->width <= LR_CUDA_STRIP_MOST &&
           4 * pass->pitch <= LR_CUDA_STRIP_MOST;
}

bool lr_cuda_strip_plan_fits(const struct lr_cuda_strip_plan *plan, int64_t room_bytes)
{
    return fits(&plan->passes[LR_CUDA_STRIPS_ALONE], room_bytes) &&
           fits(&plan->passes[LR_CUDA_STRIPS_BESIDE], room_bytes);
}

/* --- tiles --- */

/* Rows that hold columns of the grid, for each group of a block's columns: without their drift. */
struct area {
    int least_group, num_groups;
    int32_t (*rows)[2]; /* owned [num_groups]: least and most */
};

/* Keeps the rows r of a range for which 0 <= first + r step < size; step is -1, 0 or 1. */
static void clip(int first, int step, int size, int range[2])
{
    int least = step == 0 ? range[0] : step > 0 ? -first : first - size + 1;
    const int most = step == 0 ? range[1] : step > 0 ? size - 1 - first : first;
    if (step == 0 && (first < 0 || first >= size)) {
        least = INT32_MAX;
    }
    range[0] = least > range[0] ? least : range[0];
    range[1] = most < range[1] ? most : range[1];
}

/* The rows of column l that the grid has, into those of the blocks that have this column. */
static void add_column(const struct planner *planner, int l, struct area *area)
{
    const lr_cuda_strips *pass = &planner->pass;
    const int group = lr_floor_div(l, J);
    int32_t *rows = area->rows[group - area->least_group];
    int range[2] = {-(1 << 28), 1 << 28};
    for (int k = 0; k < 2; k++) {
        clip(l * pass->next[k], pass->across[k], pass->layout.size[k], range);
    }
    if (range[0] > range[1]) {
        return;
    }
    const int drifted = drift(pass, J * group);
    rows[0] = range[0] - drifted < rows[0] ? range[0] - drifted : rows[0];
    rows[1] = range[1] - drifted > rows[1] ? range[1] - drifted : rows[1];
}

static lr_status find_area(const struct planner *planner, struct area *area)
{
    int least[2], most[2];
    lr_lattice_extent(&planner->lattice, planner->pass.layout.size, least, most);
    area->least_group = lr_floor_div(least[0], J);
    area->num_groups = lr_floor_div(most[0], J) - area->least_group + 1;
    area->rows =
        lr_alloc(area->num_groups, sizeof(*area->rows), "blocks of a view", planner->params->log);
    if (area->rows == NULL) {
        return LR_FAILED;
    }
    for (int k = 0; k < area->num_groups; k++) {
        area->rows[k][0] = INT32_MAX;
        area->rows[k][1] = INT32_MIN;
    }
    for (int l = least[0]; l <= most[0]; l++) {
        add_column(planner, l, area);
    }
    return LR_OK;
}

/* Counts the blocks of that many rows, and writes them where there is room for them. */
static int32_t write_tiles(const struct area *area, int rows, int32_t (*tiles)[2])
{
    int32_t count = 0;
    for (int k = 0; k < area->num_groups; k++) {
        for (int64_t row = area->rows[k][0]; row <= area->rows[k][1]; row += rows) {
            if (tiles != NULL) {
                tiles[count][0] = J * (area->least_group + k);
                tiles[count][1] = (int32_t)row;
            }
            count++;
        }
    }
    return count;
}

static lr_status list_tiles(const struct planner *planner)
{
    struct lr_cuda_strip_plan *plan = planner->plan;
    struct area area;
    LR_TRY(find_area(planner, &area));
    lr_status status = LR_OK;
    for (int which = 0; status == LR_OK && which < LR_CUDA_STRIPS_SHAPES; which++) {
        lr_cuda_strips *pass = &plan->passes[which];
        const int rows = pass->sides * LR_CUDA_STRIP_ROWS;
        pass->num_tiles = write_tiles(&area, rows, NULL);
        plan->tiles[which] = lr_alloc(pass->num_tiles, sizeof(*plan->tiles[which]),
                                      "blocks of a view", planner->params->log);
        status = plan->tiles[which] != NULL ? LR_OK : LR_FAILED;
        write_tiles(&area, rows, plan->tiles[which]);
    }
    free(area.rows);
    return status;
}

/* --- the plan --- */

static void describe_lattice(struct planner *planner)
{
    lr_cuda_strips *pass = &planner->pass;
    const bool is_along_x = planner->lattice.across[0] != 0;
    for (int k = 0; k < 2; k++) {
        pass->next[k] = planner->lattice.next[k];
        pass->across[k] = planner->lattice.across[k];
    }
    pass->row_pitch[0] = is_along_x ? 1 : pass->layout.extent[2];
    pass->row_pitch[1] = is_along_x ? pass->layout.extent[1] : 1;
    pass->slope = find_slope(planner);
}

static lr_status make_plan(struct planner *planner)
{
    describe_lattice(planner);
    LR_TRY(sort_steps(planner));
    LR_TRY(list_slabs(planner));
    LR_TRY(list_steps(planner));
    LR_TRY(list_offsets(planner));
    for (int which = 0; which < LR_CUDA_STRIPS_SHAPES; which++) {
        choose_block(planner, which);
    }
    return list_tiles(planner);
}

lr_status lr_cuda_strip_plan_init(struct lr_cuda_strip_plan *plan,
                                  const struct lr_cuda_strip_params *params)
{
    struct planner planner = {.plan = plan,
                              .params = params,
                              .pass = {.layout = *params->layout, .num_rows = params->rows}};
    *plan = (struct lr_cuda_strip_plan){0};
    LR_TRY(lr_lattice_init(&planner.lattice, params->shape, params->log));
    const lr_status status = make_plan(&planner);
    free(planner.slabs);
    lr_lattice_finish(&planner.lattice);
    if (status != LR_OK) {
        lr_cuda_strip_plan_finish(plan);
    }
    return status;
}

void lr_cuda_strip_plan_finish(struct lr_cuda_strip_plan *plan)
{
    for (int which = 0; which < LR_CUDA_STRIPS_SHAPES; which++) {
        free(plan->tiles[which]);
    }
    free(plan->peaks);
    free(plan->columns);
    free(plan->factors);
    free(plan->offsets);
    free(plan->slabs);
    free(plan->steps);
    *plan = (struct lr_cuda_strip_plan){0};
}
