/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Parts that all passes of the columns method share: programs, the check that the device has ended no loop too early,
 * the scanner, and images. */
#include "correspondence/compute/columns/columns.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "common/bindings.h"
#include "correspondence/compute/method.h"
#include "correspondence/plan.h"
#include "device/place.h"
#include "model/lors/place.h"
#include "model/scanner/coincidence.h"
#include "model/scanner/scanner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *shader, *define, *label;
} descriptions[LR_NUM_COLUMNS_PROGRAMS] = {
    [LR_COLUMNS_FORWARD] = {"correspondence/columns/forward.comp", NULL, "forward by columns"},
    [LR_COLUMNS_PACK] = {"correspondence/columns/pack.comp", NULL, "image with its images"},
    [LR_COLUMNS_FORWARD_EXACT] = {"correspondence/columns/forward_exact.comp", NULL, "forward by stacks"},
    [LR_COLUMNS_BACK] = {"correspondence/columns/back.comp", NULL, "back by columns"},
    [LR_COLUMNS_ONES] = {"correspondence/columns/back.comp", "ONES", "sensitivity by columns"},
    [LR_COLUMNS_BACK_EXACT] = {"correspondence/columns/back_exact.comp", NULL, "back by stacks"},
    [LR_COLUMNS_BACK_HALF_TURN] = {"correspondence/columns/back_exact.comp", "HALF_TURN",
                                   "back by stacks and their images"},
    [LR_COLUMNS_TO_STACKS] = {"correspondence/columns/stack_order.comp", NULL, "values to stack order"},
    [LR_COLUMNS_ONES_TO_STACKS] = {"correspondence/columns/stack_order.comp", "ONES", "ones in stack order"},
    [LR_COLUMNS_STACKS_TO_LOR_ORDER] = {"correspondence/columns/stack_order.comp", "TO_LOR_ORDER",
                                        "values of stacks to LOR order"},
    [LR_COLUMNS_SUM] = {"correspondence/columns/sum.comp", NULL, "sum of shares"},
    [LR_COLUMNS_TO_LOR_ORDER] = {"correspondence/columns/order.comp", "TO_LOR_ORDER", "values to LOR order"},
    [LR_COLUMNS_FROM_LOR_ORDER] = {"correspondence/columns/order.comp", NULL, "values to column order"},
    [LR_COLUMNS_ROWS] = {"correspondence/columns/rows.comp", NULL, "matrix elements by columns"},
    [LR_COLUMNS_POINT_ROWS] = {"correspondence/columns/rows.comp", NULL, "matrix elements of points"},
    [LR_COLUMNS_LIST_FORWARD] = {"correspondence/columns/list_forward.comp", NULL, "forward by LORs"},
    [LR_COLUMNS_TAKE_SUMS] = {"correspondence/columns/take_sums.comp", NULL, "sums by LORs"},
    [LR_COLUMNS_TAKE_IMAGE] = {"correspondence/columns/image_order.comp", NULL, "image to columns"},
    [LR_COLUMNS_GIVE_IMAGE] = {"correspondence/columns/image_order.comp", "TO_GRID", "image to the grid's order"},
    [LR_COLUMNS_LIST_BACK] = {"correspondence/columns/list_back.comp", NULL, "back by LORs"},
};

struct gl_program *lr_columns_program(struct lr_columns *columns, enum lr_columns_program which)
{
    char rays[16], group[16], strips[16], cells[16], across[16];
    struct gl_define list[15] = {{"RAYS", rays},
                                 {"COLUMN_GROUP", group},
                                 {"COLUMN_STRIPS", strips},
                                 {"COLUMN_COLUMNS", across},
                                 {"COLUMN_CELLS", cells}};
    int next = 5;
    if (columns->programs[which] != NULL) return columns->programs[which];
    const bool is_forward = which == LR_COLUMNS_FORWARD || which == LR_COLUMNS_FORWARD_EXACT;
    const bool is_back = which == LR_COLUMNS_BACK || which == LR_COLUMNS_ONES || which == LR_COLUMNS_BACK_EXACT ||
                         which == LR_COLUMNS_BACK_HALF_TURN;
    snprintf(rays, sizeof(rays), "%d", columns->params.rays);
    snprintf(group, sizeof(group), "%d",
             is_forward ? columns->forward_group
             : is_back  ? columns->back_group
                        : LR_GROUP_SIZE);
    snprintf(strips, sizeof(strips), "%d", columns->strips);
    snprintf(cells, sizeof(cells), "%d", columns->stacks->most_cells + 2);
    snprintf(across, sizeof(across), "%d", columns->back_columns);
    if (columns->params.mode == LR_MODE_EXACT) list[next++].name = "EXACT";
    if (columns->may_be_near || which == LR_COLUMNS_POINT_ROWS) list[next++].name = "NEAR";
    if (columns->masks.any) list[next++].name = "MASKS";
    if (columns->is_mirrored) list[next++].name = "MIRROR";
    if (columns->packed != NULL) list[next++].name = "PACKED";
    if (which == LR_COLUMNS_FORWARD_EXACT && columns->stacks->has_half_turn) list[next++].name = "HALF_TURN";
    if (columns->params.samples[columns->axis] == 1) list[next++].name = "ONE_POINT_ALONG";
    if (gl_context_limits(columns->ctx)->software) list[next++].name = "LIMITED_LOOPS";
    list[next].name = descriptions[which].define;
    columns->programs[which] = gl_program_start(
        columns->ctx, &(struct gl_program_params){
                          .compute = descriptions[which].shader, .defines = list, .label = descriptions[which].label});
    return columns->programs[which];
}

static lr_status start(struct lr_columns *columns, const enum lr_columns_program *list, int count)
{
    for (int k = 0; k < count; k++) LR_TRY(lr_columns_program(columns, list[k]) != NULL ? LR_OK : LR_FAILED);
    return LR_OK;
}

/* The programs that take longest to build are started first, because the driver builds several at the same time. */
lr_status lr_columns_start_projection(struct lr_columns *columns, bool is_forward, bool is_sensitivity, bool has_images)
{
    const enum lr_columns_program lists[4][3] = {
        {LR_COLUMNS_FORWARD, LR_COLUMNS_TO_LOR_ORDER},
        {LR_COLUMNS_FORWARD_EXACT, LR_COLUMNS_STACKS_TO_LOR_ORDER, LR_COLUMNS_PACK},
        {is_sensitivity ? LR_COLUMNS_ONES : LR_COLUMNS_BACK, LR_COLUMNS_FROM_LOR_ORDER},
        {has_images ? LR_COLUMNS_BACK_HALF_TURN : LR_COLUMNS_BACK_EXACT,
         is_sensitivity ? LR_COLUMNS_ONES_TO_STACKS : LR_COLUMNS_TO_STACKS, LR_COLUMNS_SUM}};
    const int counts[4] = {2, columns->packed != NULL ? 3 : 2, is_sensitivity ? 1 : 2, columns->shares > 1 ? 3 : 2};
    const int which = (is_forward ? 0 : 2) + (columns->params.mode == LR_MODE_EXACT ? 1 : 0);
    return start(columns, lists[which], counts[which]);
}

/* If the device ends long loops early, each window decides whether its back-projection uses the symmetry under half a
 * turn. If this symmetry exists, the programs of back-projections are therefore started later. */
lr_status lr_columns_prepare(void *self, bool lists)
{
    static const enum lr_columns_program list[] = {LR_COLUMNS_LIST_FORWARD, LR_COLUMNS_LIST_BACK, LR_COLUMNS_TAKE_SUMS};
    struct lr_columns *columns = self;
    const bool has_images = columns->stacks->has_half_turn;
    if (!has_images || !lr_columns_ends_loops(columns)) {
        LR_TRY(lr_columns_start_projection(columns, false, true, has_images));
        LR_TRY(lists ? LR_OK : lr_columns_start_projection(columns, false, false, has_images));
    }
    return lists ? start(columns, list, 3) : lr_columns_start_projection(columns, true, false, false);
}

bool lr_columns_ends_loops(const struct lr_columns *columns)
{
    const struct gl_limits *limits = gl_context_limits(columns->ctx);
    return limits->software || limits->small_batches;
}

lr_status lr_columns_check_loops(const struct lr_columns *columns)
{
    uint32_t were_ended = 0;
    if (columns->state == NULL) return LR_OK;
    LR_TRY(gl_buffer_read(columns->state, 0, sizeof(were_ended), &were_ended));
    if (were_ended == 0) return LR_OK;
    gl_buffer_clear(columns->state, 0);
    return lr_error(columns->params.log, LR_USAGE,
                    "crystals are too large beside the voxels, or too near to them, for the software renderer, which "
                    "ends a shader's loops after 65,535 rounds: use backend native or cpu, or a graphics processor");
}

lr_status lr_columns_check_pairs(struct lr_columns *columns, const lr_selection *list, bool is_back)
{
    enum { NUM_KEYS = sizeof(columns->ended_well) / sizeof(columns->ended_well[0]) };
    const int64_t head[] = {is_back, list->interleave, list->interleave_turn, list->num_pairs};
    uint64_t key = LR_HASH_BEGIN;
    if (columns->state == NULL) return LR_OK;
    for (size_t k = 0; k < sizeof(head) / sizeof(head[0]); k++) key = lr_hash_add(key, (uint64_t)head[k]);
    for (int64_t k = 0; list->pairs != NULL && k < list->num_pairs; k++)
        key = lr_hash_add(key, (uint64_t)list->pairs[k]);
    for (int k = 0; k < NUM_KEYS; k++)
        if (columns->ended_well[k] == key) return LR_OK;
    LR_TRY(lr_columns_check_loops(columns));
    columns->ended_well[columns->next_ended] = key;
    columns->next_ended = (columns->next_ended + 1) % NUM_KEYS;
    return LR_OK;
}

/* `struct ColumnModule` of shaders/correspondence/columns/scene.glsl. */
struct column_module {
    float centre[3], sign;
    float rest[3], first_cell;
    float tangent[2], normal[2];
    float pitch_across, face_across, pitch_along, face_along;
    int32_t count_across, count_along, step_across, step_along;
    int32_t first_around, step_around, unused[2];
};
_Static_assert(sizeof(struct column_module) == 96, "the shaders' layout");

/* `struct ColumnPair` of shaders/correspondence/columns/scene.glsl. */
struct column_pair {
    uint32_t i, j, first, mask, swapped;
    uint32_t unused[3];
    double closer[4];
};
_Static_assert(sizeof(struct column_pair) == 64, "the shaders' layout");

static struct column_module describe_module(const struct lr_columns *columns, int index)
{
    const lr_scanner *scanner = columns->params.scanner;
    const lr_module *module = &scanner->modules[index];
    const int along = lr_module_axial(module, columns->axis) == 0 ? 0 : 1, over = 1 - along;
    const double *tangent = over == 0 ? module->u : module->v;
    const double *axial = along == 0 ? module->u : module->v;
    struct column_module out = {
        .sign = axial[columns->axis] > 0.0 ? 1.0f : -1.0f,
        .pitch_across = (float)module->pitch_mm[over],
        .face_across = (float)module->face_mm[over],
        .pitch_along = (float)module->pitch_mm[along],
        .face_along = (float)module->face_mm[along],
        .count_across = module->crystals[over],
        .count_along = module->crystals[along],
        .step_across = over == 0 ? 1 : module->crystals[0],
        .step_along = along == 0 ? 1 : module->crystals[0],
    };

    const struct lr_columns_stacks *stacks = columns->stacks;
    out.first_cell =
        (float)(stacks->first_cell[stacks->stack_of[index]] + stacks->place_of[index] * module->crystals[along]);
    if (columns->params.lors->angles != NULL) {
        const struct lr_module_places *places = &columns->params.lors->angles->modules[index];
        out.first_around = places->first;
        out.step_around = places->is_v == (over == 1) ? places->step : 0;
    }
    double centre[3];
    lr_scanner_detection_centre(scanner, index, centre);
    for (int k = 0; k < 2; k++) {
        lr_split_float(centre[columns->across[k]], &out.centre[k], &out.rest[k]);
        out.tangent[k] = (float)tangent[columns->across[k]];
        out.normal[k] = (float)module->normal[columns->across[k]];
    }
    lr_split_float(centre[columns->axis], &out.centre[2], &out.rest[2]);
    return out;
}

double lr_columns_nearest_mm(const struct lr_columns *columns)
{
    const lr_scanner *scanner = columns->params.scanner;
    const lr_grid *grid = columns->params.grid;
    double nearest_mm = HUGE_VAL;
    for (int m = 0; m < scanner->num_modules; m++) {
        const double *normal = scanner->modules[m].normal;
        double centre[3], height = 0.0; /* height of the grid's corner that is nearest to the module's plane */
        lr_scanner_detection_centre(scanner, m, centre);
        for (int k = 0; k < 3; k++) {
            const double low = grid->origin_mm[k] - 0.5 * grid->voxel_mm[k];
            const double high = low + grid->size[k] * grid->voxel_mm[k];
            const double nearest = normal[k] > 0.0 ? low : high;
            height += normal[k] * (nearest - centre[k]);
        }
        nearest_mm = fmin(nearest_mm, fmax(height, 0.0));
    }
    return nearest_mm;
}

static struct gl_buffer *upload_modules(struct lr_columns *columns)
{
    const lr_scanner *scanner = columns->params.scanner;
    const struct lr_columns_stacks *stacks = columns->stacks;
    const int count = scanner->num_modules;
    struct column_module *modules = lr_alloc(count, sizeof(*modules), "the scanner's modules", columns->params.log);
    if (modules == NULL) return NULL;
    for (int m = 0; m < count; m++) {
        const bool fits = lr_module_axial(&scanner->modules[m], columns->axis) >= 0;
        modules[m] = fits ? describe_module(columns, m) : (struct column_module){0};
        if (!stacks->has_half_turn || stacks->stack_of[m] < 0) continue;

        /* If module m is the image of an earlier module after half a turn, its numbers are computed by turning the
         * numbers of that earlier module. The numbers of both modules then have the same bits. */
        int image = 0;
        while (stacks->stack_of[image] != stacks->image[stacks->stack_of[m]] ||
               stacks->place_of[image] != stacks->place_of[m])
            image++;
        if (image >= m) continue;
        const struct column_module own = modules[m];
        double centre[3];
        lr_scanner_detection_centre(scanner, image, centre);
        modules[m] = modules[image];
        for (int k = 0; k < 2; k++) {
            const int axis = columns->across[k];
            const double turned = 2.0 * lr_columns_middle(columns, axis) - centre[axis];
            lr_split_float(turned, &modules[m].centre[k], &modules[m].rest[k]);
            modules[m].tangent[k] = -modules[m].tangent[k];
            modules[m].normal[k] = -modules[m].normal[k];
        }
        modules[m].first_cell = own.first_cell;
        modules[m].first_around = own.first_around;
        modules[m].step_around = own.step_around;
    }

    /* True if all modules of a stack are at the same angle around the scanner. Passes can then find the angle of a LOR
     * from the columns of its crystals alone. */
    columns->has_angles = true;
    for (int m = 0; m < count && columns->has_angles; m++) {
        const int stack = stacks->stack_of[m];
        columns->has_angles = stack >= 0 && modules[m].step_around != 0 &&
                              modules[m].first_around == modules[stacks->first[stack]].first_around;
    }
    struct gl_buffer *buffer =
        gl_data_buffer(columns->ctx, "column modules", count * (int64_t)sizeof(*modules), modules);
    free(modules);
    return buffer;
}

/* If voxels have more sample points than this, dispatches are made shorter. */
enum { FEW_POINTS = 64 };

int lr_columns_work_of_thread(const struct lr_columns *columns)
{
    const int *samples = columns->params.samples;
    const int64_t points = (int64_t)samples[0] * samples[1] * samples[2];
    return (int)((points + FEW_POINTS - 1) / FEW_POINTS);
}

lr_status lr_columns_upload_scene(struct lr_columns *columns)
{
    columns->modules = upload_modules(columns);
    if (columns->modules == NULL) return LR_FAILED;

    /* The coordinates of sample points are listed axis by axis. Each coordinate is two floats. */
    const int axes[3] = {columns->across[0], columns->across[1], columns->axis};
    const int num_along = lr_columns_num_points(columns, columns->axis);
    int64_t count = num_along;
    for (int k = 0; k < 3; k++) count += lr_columns_num_points(columns, axes[k]);
    float(*points)[2] = lr_alloc(count, sizeof(*points), "the coordinates of sample points", columns->params.log);
    if (points == NULL) return LR_FAILED;
    int64_t next = 0;
    for (int a = 0; a < 3; a++)
        for (int k = 0; k < lr_columns_num_points(columns, axes[a]); k++, next++)
            lr_split_float(lr_columns_coordinate(columns, axes[a], k), &points[next][0], &points[next][1]);
    float origin[2];
    lr_split_float(lr_columns_middle(columns, columns->axis), &origin[0], &origin[1]);
    /* The last part of the table has the axial coordinates relative to the middle. Passes over single points do not
     * read this table: `difference` of the shaders computes numbers with the same bits. */
    for (; next < count; next++) {
        const float leading = points[next - num_along][0] - origin[0];
        const float trailing = points[next - num_along][1] - origin[1];
        points[next][0] = leading + trailing;
    }

    columns->points = gl_data_buffer(columns->ctx, "column points", count * (int64_t)sizeof(*points), points);
    free(points);
    if (columns->points == NULL) return LR_FAILED;

    return lr_scene_masks_init(&columns->masks, columns->ctx, columns->params.lors);
}

struct gl_buffer *lr_columns_upload_pairs(const struct lr_columns *columns, const lr_selection *list, int64_t begin,
                                          int64_t end, const int64_t *first_values)
{
    const lr_lors *lors = columns->params.lors;
    const int axes[3] = {columns->across[0], columns->across[1], columns->axis};
    const int *stack_of = columns->stacks->stack_of;
    struct column_pair *pairs = lr_alloc(end - begin, sizeof(*pairs), "pairs of modules", columns->params.log);
    if (pairs == NULL) return NULL;
    /* In exact mode, the primary of a pair is the module whose stack has the lower number. */
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    int64_t first = 0;
    for (int64_t k = begin; k < end; k++) {
        const int64_t pair = list->pairs != NULL ? list->pairs[k] : k;
        struct column_pair *out = &pairs[k - begin];
        const int i = lors->pairs[pair][0], j = lors->pairs[pair][1];
        const bool is_masked = lors->masks->pairs[pair].kind != LR_MASK_ALL;
        *out = (struct column_pair){.i = (uint32_t)i,
                                    .j = (uint32_t)j,
                                    .first = (uint32_t)(first_values ? first_values[k] : first),
                                    .mask = is_masked ? (uint32_t)pair : LR_NONE,
                                    .swapped = exact && stack_of[i] > stack_of[j]};
        /* A point x is nearer to centre a than to centre b if |a|² - |b|² - 2 (a - b) . x < 0. This is |a - x|² < |b -
         * x|². */
        double a[3], b[3];
        lr_scanner_detection_centre(columns->params.scanner, i, a);
        lr_scanner_detection_centre(columns->params.scanner, j, b);
        for (int axis = 0; axis < 3; axis++) out->closer[axis] = -2.0 * (a[axes[axis]] - b[axes[axis]]);
        out->closer[3] = vec_dot(a, a) - vec_dot(b, b);
        first += lors->offsets[pair + 1] - lors->offsets[pair];
    }
    struct gl_buffer *buffer =
        gl_data_buffer(columns->ctx, "column pairs", (end - begin) * (int64_t)sizeof(*pairs), pairs);
    free(pairs);
    return buffer;
}

enum { CHECK_ROUNDS = 8 };

struct lr_columns_pass lr_columns_uniforms(const struct lr_columns *columns)
{
    const int axes[3] = {columns->across[0], columns->across[1], columns->axis};
    struct lr_columns_pass pass = {0};
    pass.num_samples[3] = CHECK_ROUNDS;
    for (int k = 0; k < 3; k++) {
        pass.num_points[k] = lr_columns_num_points(columns, axes[k]);
        pass.num_samples[k] = columns->params.samples[axes[k]];
        pass.spacing_mm[k] = (float)(columns->params.grid->voxel_mm[axes[k]] / columns->params.samples[axes[k]]);
    }
    lr_split_float(lr_columns_middle(columns, columns->axis), &pass.origin[0], &pass.origin[1]);
    return pass;
}

void lr_columns_bind_scene(const struct lr_columns *columns, struct gl_pass *pass)
{
    gl_pass_bind(pass, {LR_BIND_COLUMN_MODULES, columns->modules}, {LR_BIND_COLUMN_POINTS, columns->points},
                 {LR_BIND_MASK_ENTRIES, columns->masks.entries}, {LR_BIND_MASK_WORDS, columns->masks.words},
                 {LR_BIND_COLUMN_MIDDLES, columns->cells}, {LR_BIND_COLUMN_STATE, columns->state});
}

/* --- images --- */

/* Copies an image between the grid's order and the order of columns. to_columns: true = into the order of columns. */
static void reorder_image(const struct lr_columns *columns, float *grid_order, float *column_order, bool to_columns)
{
    const int *size = columns->params.grid->size;
    const int64_t strides[3] = {1, size[0], (int64_t)size[0] * size[1]};
    const int a = columns->across[0], b = columns->across[1], c = columns->axis;
    float *next = column_order;
    for (int y = 0; y < size[b]; y++) {
        for (int x = 0; x < size[a]; x++) {
            float *voxel = grid_order + x * strides[a] + y * strides[b];
            for (int z = 0; z < size[c]; z++, next++, voxel += strides[c])
                if (to_columns)
                    *next = *voxel;
                else
                    *voxel = *next;
        }
    }
}

/* Converts sums in fixed point to an image in columns->image, on the device. */
static lr_status take_sums(struct lr_columns *columns, const struct lr_fixed *sums)
{
    struct gl_program *program = lr_columns_program(columns, LR_COLUMNS_TAKE_SUMS);
    struct lr_columns_pass uniforms = lr_columns_uniforms(columns);
    uniforms.count[3] = (int32_t)sums->count;
    uniforms.origin[3] = (float)sums->unit;
    if (program == NULL) return LR_FAILED;
    struct gl_pass pass = gl_pass_compute(program, &uniforms, sizeof(uniforms),
                                          (const int[3]){gl_groups_in_turn(sums->count, LR_GROUP_SIZE), 1, 1});
    gl_pass_bind(&pass, {LR_BIND_COLUMN_LIST, sums->buffer}, {LR_BIND_COLUMN_IMAGE, columns->image});
    return gl_pass_run(columns->ctx, &pass);
}

enum { MOST_GROUPS = 1024 };

/* The uniform block of shaders/correspondence/columns/image_order.comp. */
struct order_pass {
    uint32_t extent[4], strides[4];
};
_Static_assert(sizeof(struct order_pass) == 32, "the shaders' layout");

static lr_status reorder_at_place(struct lr_columns *columns, const lr_vector *image, enum lr_columns_program which)
{
    const struct lr_vector_range range = lr_vector_gl_range(image);
    const int64_t alignment = gl_context_limits(columns->ctx)->storage_alignment;
    const int64_t aligned = range.offset / alignment * alignment;
    const int *size = columns->params.grid->size;
    const int order[3] = {columns->axis, columns->across[0], columns->across[1]}; /* axes, the fastest first */
    struct order_pass uniforms = {0};
    uint32_t stride = 1;
    for (int k = 0; k < 3; k++) {
        uniforms.extent[k] = (uint32_t)size[k];
        uniforms.strides[order[k]] = stride;
        stride *= (uint32_t)size[order[k]];
    }
    uniforms.extent[3] = stride;

    struct gl_program *program = lr_columns_program(columns, which);
    if (program == NULL) return LR_FAILED;
    uniforms.strides[3] = (uint32_t)((range.offset - aligned) / (int64_t)sizeof(float));
    const int groups = gl_divide_up(uniforms.extent[3], LR_GROUP_SIZE);
    struct gl_pass pass = gl_pass_compute(program, &uniforms, sizeof(uniforms),
                                          (const int[3]){groups < MOST_GROUPS ? groups : MOST_GROUPS, 1, 1});
    pass.buffers[LR_BIND_ORDER_GRID] = (struct gl_range){range.buffer, aligned, range.offset - aligned + range.bytes};
    pass.buffers[LR_BIND_ORDER_PROJECTOR].buffer = columns->image;
    return gl_pass_run(columns->ctx, &pass);
}

lr_status lr_columns_copy_image(struct lr_columns *columns, const lr_vector *image, const struct lr_fixed *sums,
                                bool to_columns)
{
    if (image->values == NULL) {
        LR_TRY(sums != NULL ? take_sums(columns, sums) : LR_OK);
        return reorder_at_place(columns, image, to_columns ? LR_COLUMNS_TAKE_IMAGE : LR_COLUMNS_GIVE_IMAGE);
    }
    const int64_t voxels = lr_grid_num_voxels(columns->params.grid), bytes = voxels * (int64_t)sizeof(float);
    float *staging = lr_alloc(voxels, sizeof(*staging), "an image in columns", columns->params.log);
    if (staging == NULL) return LR_FAILED;
    if (to_columns) reorder_image(columns, image->values, staging, true);
    const lr_status status = to_columns     ? gl_buffer_upload(columns->image, 0, bytes, staging)
                             : sums != NULL ? lr_fixed_read(sums, staging)
                                            : gl_buffer_read(columns->image, 0, bytes, staging);
    if (!to_columns && status == LR_OK) reorder_image(columns, image->values, staging, false);
    free(staging);
    return status;
}
