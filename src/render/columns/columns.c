/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Where columns serve, and how large the groups are that do. */
#include "render/columns/columns.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/scanner/arrangement.h"
#include "render/method.h"

#include <math.h>
#include <stdlib.h>

/* --- groups --- */

/* Threads of a group at most; strips that a group holds at most. */
enum {
    MAX_FORWARD_GROUP = 256,
    MAX_EXACT_FORWARD_GROUP = 384,
    MAX_BACK_GROUP = 128,
    MAX_STRIPS = 256,
    MAX_HELD_STRIPS = 256
};

/* Cells along a column whose places fit what every device shares within a group. */
enum { MAX_CELLS = 1500 };

static bool serves(const struct lr_method_params *params, enum lr_method_work work)
{
    const struct lr_backend_params *backend = params->backend;
    const int axis = lr_lors_axial_axis(backend->lors);
    return !params->may_hide && backend->mu == NULL && !backend->penetration &&
           (work == LR_METHOD_PROJECTIONS || backend->mode == LR_MODE_EXACT) && axis >= 0 &&
           backend->samples[axis] <= MAX_BACK_GROUP && lr_columns_most_cells(backend->scanner) <= MAX_CELLS;
}

/* --- groups --- */

static int round_to_group(int64_t count, int most)
{
    const int64_t rounded = (count + 31) / 32 * 32;
    return (int)(rounded < most ? rounded : most);
}

/* Threads that keep a large device busy, and the most shares worth their adding up. */
enum { THREADS_WANTED = 1 << 20, MOST_SHARES = 8 };

static int count_shares(const struct lr_columns *columns)
{
    const int *size = columns->params.grid->size;
    const int64_t threads = (int64_t)gl_divide_up(size[columns->across[0]], columns->back_columns) *
                            size[columns->across[1]] * columns->back_group;
    const int64_t shares = THREADS_WANTED / (threads > 0 ? threads : 1);
    const int64_t most = columns->params.lors->num_pairs < MOST_SHARES ? columns->params.lors->num_pairs : MOST_SHARES;
    if (gl_context_limits(columns->ctx)->small_batches || shares < 1) return 1;
    return (int)(shares < most ? shares : most);
}

/* Threads of a group, at most `most`, so that most of them have work. shared: threads that are left
 * over do the same for a neighbour, and a small group serves as well as a large one. */
static int fitting_group(int64_t work, int most, bool shared)
{
    double best = 0.0;
    int group = 32;
    for (int size = 32; size <= most; size += 32) {
        const int64_t rounds = (work + size - 1) / size;
        const int64_t times = shared && work < size ? size / work : 1;
        const double used = (double)(times * work) / (double)(rounds * size);
        if (used > best || (used == best && !shared)) {
            best = used;
            group = size;
        }
    }
    return group;
}

/* True if halves of columns are taken as mirror images: four points a thread, a column a group. What
 * is near has a closed form that is not the same bits when it is turned round. */
static bool is_mirrored(const struct lr_columns *columns)
{
    return columns->params.mode == LR_MODE_EXACT && !columns->may_be_near &&
           lr_columns_num_points(columns, columns->axis) <= 4 * MAX_BACK_GROUP && lr_columns_are_mirrored(columns);
}

static void size_exact_groups(struct lr_columns *columns)
{
    const int points = lr_columns_num_points(columns, columns->axis);
    const int halves = columns->is_mirrored ? 2 : 1;
    const int64_t cells = (int64_t)columns->stacks->most_cells * columns->stacks->most_cells;
    columns->forward_group = fitting_group((cells + halves - 1) / halves, MAX_EXACT_FORWARD_GROUP, false);
    /* A thread has two points of a column, or of half a column, which are its slot. A group that is much
     * larger than a column's slots has several columns. */
    const int slots = (gl_divide_up(points, halves) + 1) / 2;
    const int least = round_to_group(slots, MAX_BACK_GROUP);
    const int most = 2 * least < MAX_BACK_GROUP ? 2 * least : MAX_BACK_GROUP;
    const int group = fitting_group(slots, most, true);
    columns->back_group = group > least ? group : least;
    const int fit = columns->back_group / (slots < columns->back_group ? slots : columns->back_group);
    const int held = MAX_HELD_STRIPS / columns->strips;
    columns->back_columns = fit < held ? fit : held;

    columns->shares = count_shares(columns);
}

/* Groups as large as what they work on. */
static void size_groups(struct lr_columns *columns)
{
    const lr_scanner *scanner = columns->params.scanner;
    int most[2] = {1, 1}, counts[2];
    for (int m = 0; m < scanner->num_modules; m++) {
        lr_columns_count_crystals(columns, m, counts);
        most[0] = counts[0] > most[0] ? counts[0] : most[0];
        most[1] = counts[1] > most[1] ? counts[1] : most[1];
    }
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    const int64_t strips = exact ? 2 * (int64_t)most[0] : most[0] * (int64_t)columns->params.rays;
    columns->strips = round_to_group(strips, MAX_STRIPS);
    if (exact) {
        size_exact_groups(columns);
        return;
    }
    columns->forward_group = round_to_group((int64_t)most[1] * most[1], MAX_FORWARD_GROUP);
    columns->back_group = round_to_group(lr_columns_num_points(columns, columns->axis), MAX_BACK_GROUP);
    columns->back_columns = 1;
    columns->shares = 1;
}

static int64_t packed_bytes(const lr_grid *grid)
{
    return 4 * (int64_t)sizeof(float) * lr_grid_num_voxels(grid);
}

/* --- loops that a renderer in software ends --- */

/* Along a strip the ratio of the distances to both faces changes by its width over the smaller distance, and a piece
 * (count_pieces of shaders/columns/columns.glsl) is so wide that this moves a line by one cell along. */
static lr_status init_rounds(struct lr_columns *columns)
{
    enum { TRIANGLES = 8 }; /* of near_weight in shaders/columns/exact.glsl */
    const lr_scanner *scanner = columns->params.scanner;
    columns->most_rounds = lr_columns_ends_loops(columns) ? LR_MOST_ROUNDS_SOFTWARE : INT64_MAX;
    columns->element_rounds = 1;
    if (columns->params.mode == LR_MODE_EXACT) {
        double widest = 0.0;
        for (int m = 0; m < scanner->num_modules; m++) {
            const double *face = scanner->modules[m].face_mm;
            widest = fmax(widest, hypot(face[0], face[1]));
        }
        const double change = fmin(widest / fmax(lr_columns_nearest_mm(columns), 1e-6), 1.0);
        const int pieces = 1 + (int)ceil(change * columns->stacks->most_cells);
        columns->element_rounds = columns->may_be_near ? (1 + TRIANGLES) * pieces : pieces;
    }
    if (!gl_context_limits(columns->ctx)->software) return LR_OK;
    const uint32_t none = 0;
    columns->state = gl_buffer_create(
        columns->ctx, &(struct gl_buffer_params){.label = "loops ended", .size_bytes = sizeof(none), .data = &none});
    return columns->state != NULL ? LR_OK : LR_FAILED;
}

static lr_status init(struct lr_columns *columns)
{
    columns->stacks = lr_alloc(1, sizeof(*columns->stacks), "stacks of modules", columns->params.log);
    if (columns->stacks == NULL) return LR_FAILED;
    LR_TRY(lr_columns_stacks_init(columns->stacks, columns));
    LR_TRY(init_rounds(columns));
    columns->is_mirrored = is_mirrored(columns);
    columns->cells = lr_columns_upload_cells(columns);
    if (columns->cells == NULL) return LR_FAILED;
    size_groups(columns);
    columns->image = gl_buffer_create(
        columns->ctx, &(struct gl_buffer_params){.label = "image in columns",
                                                 .size_bytes = columns->shares * lr_columns_image_bytes(columns)});
    const struct gl_limits *limits = gl_context_limits(columns->ctx);

    if (columns->params.mode == LR_MODE_EXACT && columns->stacks->has_half_turn &&
        packed_bytes(columns->params.grid) <= limits->max_storage_bytes) {
        columns->packed = gl_buffer_create(
            columns->ctx, &(struct gl_buffer_params){.label = "image with its images",
                                                     .size_bytes = packed_bytes(columns->params.grid)});
        if (columns->packed == NULL) return LR_FAILED;
    }
    columns->watch = gl_stopwatch_create(columns->ctx, "column passes");
    if (columns->image == NULL || columns->watch == NULL) return LR_FAILED;
    return lr_columns_upload_scene(columns);
}

/* Each thread follows the lines of a module's crystals, about half as often as this says. */
static lr_status check_lines(const struct lr_columns *columns)
{
    const struct lr_backend_params *params = &columns->params;
    const int64_t rays = params->mode == LR_MODE_SAMPLED ? params->rays : 0;
    int64_t crystals = 0;
    for (int m = 0; m < params->scanner->num_modules; m++) {
        const int *size = params->scanner->modules[m].crystals;
        const int64_t count = (int64_t)size[0] * size[1];
        crystals = count > crystals ? count : crystals;
    }
    if (!gl_context_limits(columns->ctx)->software || 4 * rays * (rays + 3) * crystals <= 2 * LR_MOST_ROUNDS_SOFTWARE)
        return LR_OK;
    return lr_error(params->log, LR_USAGE,
                    "%d x %d lines a crystal are too many for the software renderer, which ends a "
                    "shader's loops after 65,535 rounds: use fewer rays, backend native or cpu, or "
                    "a graphics processor",
                    params->rays, params->rays);
}

struct lr_columns *lr_columns_create(const struct lr_method_params *params)
{
    const struct lr_backend_params *backend = params->backend;
    struct lr_columns *columns = lr_alloc(1, sizeof(*columns), "projections by columns", backend->log);
    if (columns == NULL) return NULL;
    columns->params = *backend;
    columns->ctx = params->ctx;
    columns->axis = lr_lors_axial_axis(backend->lors);
    columns->across[0] = columns->axis == 0 ? 1 : 0;
    columns->across[1] = columns->axis == 2 ? 1 : 2;
    columns->max_window = params->max_window;
    columns->may_be_near = backend->mode == LR_MODE_EXACT && lr_columns_may_be_near(columns);
    if (check_lines(columns) != LR_OK || init(columns) != LR_OK) {
        lr_columns_destroy(columns);
        return NULL;
    }
    return columns;
}

void lr_columns_destroy(struct lr_columns *columns)
{
    if (columns == NULL) return;
    for (int k = 0; k < LR_NUM_COLUMNS_PROGRAMS; k++) gl_program_destroy(columns->programs[k]);
    lr_merge_programs_finish(&columns->merge);
    if (columns->stacks != NULL) {
        lr_columns_stacks_finish(columns->stacks);
        free(columns->stacks);
    }
    gl_stopwatch_destroy(columns->watch);
    gl_buffer_destroy(columns->state);
    gl_buffer_destroy(columns->image);
    gl_buffer_destroy(columns->mask_words);
    gl_buffer_destroy(columns->mask_entries);
    gl_buffer_destroy(columns->points);
    gl_buffer_destroy(columns->cells);
    gl_buffer_destroy(columns->packed);
    gl_buffer_destroy(columns->modules);
    free(columns);
}

/* --- the method --- */

static void *create(const struct lr_method_params *params)
{
    return lr_columns_create(params);
}

static void destroy(void *self)
{
    lr_columns_destroy(self);
}

static lr_status take_image(void *self, const lr_vector *image)
{
    return lr_columns_take_image(self, image);
}

static lr_status give_image(void *self, lr_vector *image)
{
    return lr_columns_give_image(self, image);
}

static double device_seconds(const void *self)
{
    return gl_stopwatch_seconds(((const struct lr_columns *)self)->watch);
}

static double device_clock(const void *self)
{
    return gl_stopwatch_total(((const struct lr_columns *)self)->watch);
}

static bool leaves_out(const void *self)
{
    const struct lr_columns *columns = self;
    return columns->has_angles;
}

const struct lr_method lr_columns_method = {
    .name = "columns",
    .serves = serves,
    .create = create,
    .destroy = destroy,
    .prepare = lr_columns_prepare,
    .forward = lr_columns_forward,
    .back = lr_columns_back,
    .forward_lors = lr_columns_forward_lors,
    .back_lors = lr_columns_back_lors,
    .take_image = take_image,
    .give_image = give_image,
    .rows = lr_columns_read_rows,
    .leaves_out = leaves_out,
    .device_seconds = device_seconds,
    .device_clock = device_clock,
};
