/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct_strips.h"

#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)LR_CUDA_OUTPUTS == (int)LR_LATTICE_OUTPUTS, "a thread's outputs");

enum {
    J = LR_LATTICE_OUTPUTS,
    ONE = 65536,           /* of a slope */
    ROOM_BYTES = 75 * 1024 /* three blocks on a multiprocessor */
};

/* What is only known while a plan is made. */
struct planner {
    struct lr_cuda_strip_plan *plan;
    const struct lr_cuda_strip_params *params;
    struct lr_lattice lattice;
    int64_t (*slabs)[2]; /* owned [lattice.count]: slab, number of the step */
};

/* Along the lattice's rows and across them. */
static void place_column(const struct planner *planner, const int32_t column[2], int at[2])
{
    double exact[2];
    lr_lattice_place(&planner->lattice, (double[2]){column[0], column[1]}, exact);
    at[0] = (int)lround(exact[0]);
    at[1] = (int)lround(exact[1]);
}

static int floor_div(int number, int by)
{
    return number >= 0 ? number / by : -((by - 1 - number) / by);
}

static int drift(const lr_cuda_strips *pass, int l)
{
    return floor_div(pass->slope * l, ONE);
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
    const double slope = fabs(at[1]) < fabs(at[0]) ? at[1] / at[0] : 0;
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
        place_column(planner, planner->lattice.steps[k].column, at);
        planner->slabs[k][0] = at[0];
        planner->slabs[k][1] = k;
    }
    qsort(planner->slabs, (size_t)count, sizeof(*planner->slabs), compare_slabs);
    return LR_OK;
}

static lr_status list_steps(struct planner *planner)
{
    struct lr_cuda_strip_plan *plan = planner->plan;
    lr_cuda_strips *pass = &plan->pass;
    const int count = planner->lattice.count;
    pass->least = (int32_t)planner->slabs[0][0];
    pass->num_slabs = (int32_t)(planner->slabs[count - 1][0] - pass->least) + 1;
    plan->steps =
        lr_alloc(count + 1, sizeof(*plan->steps), "steps of a view", planner->params->log);
    plan->first = lr_alloc(pass->num_slabs + 1, sizeof(*plan->first), "steps of a view",
                           planner->params->log);
    if (plan->steps == NULL || plan->first == NULL) {
        return LR_FAILED;
    }
    for (int k = 0; k < count; k++) {
        const struct lr_lattice_step *from = &planner->lattice.steps[planner->slabs[k][1]];
        int at[2];
        place_column(planner, from->column, at);
        plan->steps[k] = (lr_cuda_strip_step){
            .source = from->quad, .place = at[1], .kind = 4 * (count_taps(from) - 1) + from->shift};
        plan->first[at[0] - pass->least + 1] = k + 1;
    }
    for (int c = 1; c <= pass->num_slabs; c++) {
        plan->first[c] = plan->first[c] > plan->first[c - 1] ? plan->first[c] : plan->first[c - 1];
    }
    return LR_OK;
}

/* --- entries: what outputs of several steps share is in the list of weights once --- */

struct use {
    bool is_single;
    int32_t offsets[LR_LATTICE_TAPS], step, output;
};

static int compare_entries(const struct use *one, const struct use *other)
{
    return one->is_single != other->is_single
               ? (int)one->is_single - (int)other->is_single
               : memcmp(one->offsets, other->offsets, sizeof(one->offsets));
}

static int compare_uses(const void *a, const void *b)
{
    const struct use *one = a, *other = b;
    const int entries = compare_entries(one, other);
    return entries != 0               ? entries
           : one->step != other->step ? (one->step < other->step ? -1 : 1)
                                      : one->output - other->output;
}

static int64_t list_uses(const struct planner *planner, struct use *uses)
{
    int64_t count = 0;
    for (int k = 0; k < planner->lattice.count; k++) {
        const struct lr_lattice_step *from = &planner->lattice.steps[planner->slabs[k][1]];
        for (int j = 0; j < J; j++) {
            planner->plan->steps[k].entries[j] = -1;
            if ((from->mask >> j & 1) != 0) {
                struct use *use = &uses[count++];
                *use = (struct use){
                    .is_single = planner->plan->steps[k].kind < 4, .step = k, .output = j};
                memcpy(use->offsets, from->offsets[j], sizeof(use->offsets));
            }
        }
    }
    return count;
}

static lr_status too_many_weights(const struct planner *planner)
{
    return lr_error(planner->params->log, LR_FAILED,
                    "a view has more than %d weights: take a larger epsilon, a smaller support or "
                    "backend cpu",
                    INT32_MAX);
}

static lr_status number_uses(const struct planner *planner, const struct use *uses, int64_t count)
{
    struct lr_cuda_strip_plan *plan = planner->plan;
    plan->entries =
        lr_alloc(count, sizeof(*plan->entries), "weights of a view", planner->params->log);
    if (plan->entries == NULL) {
        return LR_FAILED;
    }
    int32_t last = -1;
    for (int64_t n = 0; n < count; n++) {
        if (n == 0 || compare_entries(&uses[n - 1], &uses[n]) != 0) {
            last++;
            if ((int64_t)(last + 1) * plan->pass.num_rows > INT32_MAX) {
                return too_many_weights(planner);
            }
            memcpy(plan->entries[last], uses[n].offsets, sizeof(*plan->entries));
            *(uses[n].is_single ? &plan->pass.num_singles : &plan->pass.num_entries) += 1;
        }
        plan->steps[uses[n].step].entries[uses[n].output] =
            plan->pass.num_rows * (last - (uses[n].is_single ? plan->pass.num_entries : 0));
    }
    return LR_OK;
}

static lr_status list_entries(const struct planner *planner)
{
    struct use *uses = lr_alloc((int64_t)planner->lattice.count * J, sizeof(*uses),
                                "weights of a view", planner->params->log);
    if (uses == NULL) {
        return LR_FAILED;
    }
    const int64_t count = list_uses(planner, uses);
    qsort(uses, (size_t)count, sizeof(*uses), compare_uses);
    const lr_status status = number_uses(planner, uses, count);
    free(uses);
    return status;
}

/* --- blocks --- */

/* What a thread reads of a column of sources, in quads from its first on. */
static void find_quads(struct lr_cuda_strip_plan *plan)
{
    lr_cuda_strips *pass = &plan->pass;
    int low = 0, high = 0;
    for (int k = 0; k < plan->first[pass->num_slabs]; k++) {
        const lr_cuda_strip_step *step = &plan->steps[k];
        const int taps = step->kind / 4 + 1, shift = step->kind % 4;
        const int end = step->source + (shift + LR_CUDA_STRIP_SLICES + taps - 1 + 3) / 4;
        low = step->source < low ? step->source : low;
        high = end > high ? end : high;
    }
    pass->low = -low;
    pass->quads = pass->low + (LR_CUDA_STRIP_PIECES - 1) * LR_CUDA_STRIP_SLICES / 4 + high;
    pass->pitch = pass->quads | 1;
}

/* Columns of a slab: those of all steps, wherever drifts are rounded down to. */
static void find_width(struct lr_cuda_strip_plan *plan)
{
    lr_cuda_strips *pass = &plan->pass;
    double least = 0, most = 0;
    for (int c = 0; c < pass->num_slabs; c++) {
        for (int k = plan->first[c]; k < plan->first[c + 1]; k++) {
            const double off = plan->steps[k].place - (double)pass->slope * (pass->least + c) / ONE;
            least = off < least ? off : least;
            most = off > most ? off : most;
        }
    }
    pass->lead = (int32_t)ceil(1 - least);
    pass->width = pass->sides * LR_CUDA_STRIP_ROWS + pass->lead + (int32_t)ceil(most + 1);
}

static void set_block(struct lr_cuda_strip_plan *plan, int groups)
{
    lr_cuda_strips *pass = &plan->pass;
    pass->groups = groups;
    pass->sides = LR_CUDA_STRIP_WARPS / groups;
    find_width(plan);
    pass->slots = J * (groups - 1) + 2;
    pass->bytes = pass->slots * pass->width * (pass->pitch * 16 + 2);
}

/* From the window's quad alone to where that lies in shared memory. */
static void place_sources(struct lr_cuda_strip_plan *plan)
{
    for (int k = 0; k < plan->first[plan->pass.num_slabs]; k++) {
        plan->steps[k].source += plan->steps[k].place * plan->pass.pitch;
    }
}

/* Warps one behind the other read the fewest slabs; side by side they hold the fewest. */
static void choose_block(struct lr_cuda_strip_plan *plan, int room_bytes)
{
    find_quads(plan);
    place_sources(plan);
    set_block(plan, 2);
    if (plan->pass.bytes > (room_bytes > 0 ? room_bytes : ROOM_BYTES)) {
        set_block(plan, 1);
    }
}

/* --- tiles --- */

/* Rows that hold columns of the grid, for each group of a block's own: without their drift. */
struct area {
    int least_group, num_groups; /* in groups of blocks */
    int32_t (*rows)[2];          /* owned [num_groups]: least and most */
};

/* The columns along the lattice that the grid has: from least to most. */
static void find_columns(const struct planner *planner, int range[2])
{
    const int *size = planner->plan->pass.layout.size;
    range[0] = range[1] = 0; /* of the first column; those of the other corners: */
    for (int corner = 1; corner < 4; corner++) {
        const int32_t column[2] = {corner & 1 ? size[0] - 1 : 0, corner & 2 ? size[1] - 1 : 0};
        int at[2];
        place_column(planner, column, at);
        range[0] = at[0] < range[0] ? at[0] : range[0];
        range[1] = at[0] > range[1] ? at[0] : range[1];
    }
}

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
    const lr_cuda_strips *pass = &planner->plan->pass;
    const int group = floor_div(l, J);
    int32_t *rows = area->rows[floor_div(group, pass->groups) - area->least_group];
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
    const int columns_of_block = J * planner->plan->pass.groups;
    int columns[2];
    find_columns(planner, columns);
    area->least_group = floor_div(columns[0], columns_of_block);
    area->num_groups = floor_div(columns[1], columns_of_block) - area->least_group + 1;
    area->rows =
        lr_alloc(area->num_groups, sizeof(*area->rows), "blocks of a view", planner->params->log);
    if (area->rows == NULL) {
        return LR_FAILED;
    }
    for (int k = 0; k < area->num_groups; k++) {
        area->rows[k][0] = INT32_MAX;
        area->rows[k][1] = INT32_MIN;
    }
    for (int l = columns[0]; l <= columns[1]; l++) {
        add_column(planner, l, area);
    }
    return LR_OK;
}

/* Counts the blocks, and writes them where the plan has room for them. */
static int32_t write_tiles(struct lr_cuda_strip_plan *plan, const struct area *area)
{
    const int width = plan->pass.sides * LR_CUDA_STRIP_ROWS;
    int32_t count = 0;
    for (int k = 0; k < area->num_groups; k++) {
        for (int64_t row = area->rows[k][0]; row <= area->rows[k][1]; row += width) {
            if (plan->tiles != NULL) {
                plan->tiles[count][0] = plan->pass.groups * (area->least_group + k);
                plan->tiles[count][1] = (int32_t)row;
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
    plan->pass.num_tiles = write_tiles(plan, &area);
    plan->tiles = lr_alloc(plan->pass.num_tiles, sizeof(*plan->tiles), "blocks of a view",
                           planner->params->log);
    if (plan->tiles != NULL) {
        write_tiles(plan, &area);
    }
    free(area.rows);
    return plan->tiles != NULL ? LR_OK : LR_FAILED;
}

/* --- the plan --- */

static lr_status make_plan(struct planner *planner)
{
    lr_cuda_strips *pass = &planner->plan->pass;
    for (int k = 0; k < 2; k++) {
        pass->next[k] = planner->lattice.next[k];
        pass->across[k] = planner->lattice.across[k];
    }
    pass->slope = find_slope(planner);
    LR_TRY(sort_steps(planner));
    LR_TRY(list_steps(planner));
    LR_TRY(list_entries(planner));
    choose_block(planner->plan, planner->params->room_bytes);
    return list_tiles(planner);
}

lr_status lr_cuda_strip_plan_init(struct lr_cuda_strip_plan *plan,
                                  const struct lr_cuda_strip_params *params)
{
    struct planner planner = {.plan = plan, .params = params};
    *plan =
        (struct lr_cuda_strip_plan){.pass = {.layout = *params->layout, .num_rows = params->rows}};
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
    free(plan->entries);
    free(plan->tiles);
    free(plan->first);
    free(plan->steps);
    *plan = (struct lr_cuda_strip_plan){0};
}
