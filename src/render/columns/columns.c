/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/columns/columns.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "model/scanner/arrangement.h"
#include "render/columns/image.h"
#include "render/columns/scene.h"
#include "render/columns/stacks.h"
#include "render/columns/window.h"
#include "render/loop_limit.h"
#include "render/raster/correspondence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Threads of a group: of those that reorder, and at most. Strips that a group holds at most. */
enum {
    GROUP = LR_GROUP_SIZE,
    MAX_FORWARD_GROUP = 256,
    MAX_EXACT_FORWARD_GROUP = 384,
    MAX_BACK_GROUP = 128,
    MAX_STRIPS = 256,
    MAX_HELD_STRIPS = 256
};

/* Cells along a column whose places fit what every device shares within a group. */
enum { MAX_CELLS = 1500 };

/* A dispatch is to be large enough to fill a device, and short enough that a projection can be
 * stopped and shows progress. */
enum { GROUPS_OF_A_PART = 1 << 17, PARTS_SOFTWARE = 64 };

/* Sample points of a voxel across that a thread visits in one dispatch. */
enum { POINTS_OF_A_PART = 4 };

/* --- passes --- */

void lr_columns_bind_scene(const struct lr_columns *columns, struct gl_pass *pass)
{
    pass->buffers[LR_BIND_COLUMN_MODULES].buffer = columns->modules;
    pass->buffers[LR_BIND_COLUMN_POINTS].buffer = columns->points;
    pass->buffers[LR_BIND_MASK_ENTRIES].buffer = columns->mask_entries;
    pass->buffers[LR_BIND_MASK_WORDS].buffer = columns->mask_words;
    pass->buffers[LR_BIND_COLUMN_MIDDLES].buffer = columns->cells;
}

static void bind_window(const struct lr_window *window, struct gl_pass *pass)
{
    lr_columns_bind_scene(window->columns, pass);
    pass->buffers[LR_BIND_COLUMN_PAIRS].buffer = window->pairs;
    pass->buffers[LR_BIND_COLUMN_IMAGE].buffer = window->columns->image;
    pass->buffers[LR_BIND_COLUMN_STACKS].buffer = window->stacks.pairs;
    pass->buffers[LR_BIND_COLUMN_LIST].buffer = window->stacks.members;
}

/* What one dispatch does: how many groups, what their numbers begin with, and for back the points
 * across of each voxel. */
struct step {
    int groups[3], first[2];
    int first_point, end_point;
};

static lr_status run_pass(const struct lr_window *window, enum lr_columns_program which,
                          const struct step *step)
{
    struct gl_program *program = lr_columns_program(window->columns, which);
    if (program == NULL) {
        return LR_FAILED;
    }
    struct lr_columns_pass uniforms = lr_columns_uniforms(window->columns);
    uniforms.first[0] = step->first[0];
    uniforms.first[1] = step->first[1];
    uniforms.first[2] = step->first_point;
    uniforms.count[0] = window->stacks.pairs != NULL
                            ? window->stacks.num_pairs
                            : (int32_t)(window->part.end - window->part.begin);
    uniforms.count[1] = step->end_point;
    uniforms.count[2] = window->columns->shares;
    uniforms.count[3] = (int32_t)lr_grid_num_voxels(window->columns->params.grid);
    struct gl_pass pass = {.label = gl_program_label(program),
                           .program = program,
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .groups = {step->groups[0], step->groups[1], step->groups[2]},
                           .barriers =
                               GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    bind_window(window, &pass);
    const bool to_file = which == LR_COLUMNS_TO_FILE || which == LR_COLUMNS_STACKS_TO_FILE;
    pass.buffers[LR_BIND_SUMS].buffer = to_file ? window->column : window->file;
    pass.buffers[LR_BIND_OUTPUT].buffer = to_file ? window->file : window->column;
    if (which == LR_COLUMNS_PACK) {
        pass.buffers[LR_BIND_OUTPUT].buffer = window->columns->packed;
    } else if (which == LR_COLUMNS_FORWARD_EXACT && window->columns->packed != NULL) {
        pass.buffers[LR_BIND_SUMS].buffer = window->columns->packed;
    }
    gl_stopwatch_begin(window->columns->watch);
    const lr_status status = gl_pass_run(window->columns->ctx, &pass);
    gl_stopwatch_end(window->columns->watch);
    return status;
}

static int divide_up(int64_t count, int64_t size)
{
    return (int)((count + size - 1) / size);
}

static lr_status reorder(const struct lr_window *window, enum lr_columns_program which)
{
    const int most = window->most_across * window->most_along;
    const int pairs = (int)(window->part.end - window->part.begin);
    const struct step step = {.groups = {divide_up(most, 16 * GROUP), 1, pairs}};
    return run_pass(window, which, &step);
}

/* A pass in parts of one of its dimensions, `count` long. */
struct parts {
    enum lr_columns_program which;
    const char *what; /* for the progress */
    int groups[3];    /* the divided one is replaced */
    int divided;      /* dimension: 1 or 2 */
    int first;        /* which of the pass's `first` counts it */
    int count;
    int points; /* across, of a voxel */
};

static lr_status report(const struct lr_window *window, const char *what, double share)
{
    const int64_t all = window->part.num_pairs;
    const double done =
        (double)window->part.begin + share * (double)(window->part.end - window->part.begin);
    return lr_progress_report(window->columns->params.progress, what, done / (double)all, 1.0);
}

static int part_size(const struct lr_window *window, const struct parts *parts)
{
    if (gl_context_limits(window->columns->ctx)->small_batches) {
        return divide_up(parts->count, PARTS_SOFTWARE);
    }
    const int64_t groups = (int64_t)parts->groups[0] * parts->groups[1] * parts->groups[2] *
                           lr_columns_work_of_thread(window->columns);
    return divide_up(GROUPS_OF_A_PART, groups > 0 ? groups : 1);
}

/* Some points across at a time; one by one where a thread would else turn too often. */
static lr_status run_part(const struct lr_window *window, const struct parts *parts,
                          struct step *step)
{
    const bool small = gl_context_limits(window->columns->ctx)->small_batches;
    const int most = small ? 1 : POINTS_OF_A_PART;
    for (int point = 0; point < parts->points; point += most) {
        step->first_point = point;
        step->end_point = parts->points - point < most ? parts->points : point + most;
        LR_TRY(run_pass(window, parts->which, step));
    }
    return LR_OK;
}

static lr_status run_parts(const struct lr_window *window, const struct parts *parts)
{
    const int size = part_size(window, parts);
    for (int begin = 0; begin < parts->count; begin += size) {
        struct step step = {.groups = {parts->groups[0], parts->groups[1], parts->groups[2]}};
        step.groups[parts->divided] = parts->count - begin < size ? parts->count - begin : size;
        step.first[parts->first] = begin;
        LR_TRY(run_part(window, parts, &step));
        LR_TRY(report(window, parts->what,
                      (double)(begin + step.groups[parts->divided]) / parts->count));
    }
    return LR_OK;
}

static lr_status forward_pass(const struct lr_window *window)
{
    const struct lr_columns *columns = window->columns;
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    const int along = !exact                 ? window->most_along
                      : columns->is_mirrored ? (window->most_stacked + 1) / 2
                                             : window->most_stacked;
    const struct parts parts = {
        .which = exact ? LR_COLUMNS_FORWARD_EXACT : LR_COLUMNS_FORWARD,
        .what = "projecting forward",
        .groups = {window->most_across, divide_up(along, columns->forward_group), 1},
        .divided = 2,
        .first = 0,
        .count = exact ? window->stacks.num_pairs : (int)(window->part.end - window->part.begin),
        .points = 1};
    return run_parts(window, &parts);
}

static lr_status back_pass(const struct lr_window *window, enum lr_columns_program which)
{
    const struct lr_columns *columns = window->columns;
    const int *size = columns->params.grid->size, *samples = columns->params.samples;
    const int points = columns->is_mirrored                    ? 4 * columns->back_group
                       : columns->params.mode == LR_MODE_EXACT ? 2 * columns->back_group
                                                               : columns->back_group;
    const int voxels = points / samples[columns->axis];
    const struct parts parts = {
        .which = which,
        .what = "projecting back",
        .groups = {divide_up(size[columns->across[0]], columns->back_columns), 1,
                   columns->shares * divide_up(size[columns->axis], voxels)},
        .divided = 1,
        .first = 1,
        .count = which == LR_COLUMNS_BACK_HALF_TURN ? (size[columns->across[1]] + 1) / 2
                                                    : size[columns->across[1]],
        .points = samples[columns->across[0]] * samples[columns->across[1]]};
    return run_parts(window, &parts);
}

/* Turns of a thread at a pair in LR_COLUMNS_ROWS, at most. */
static int64_t turns_of_rows(const struct lr_columns *columns, int pair)
{
    const int32_t *modules = columns->params.lors->pairs[pair];
    int i[2], j[2];
    lr_columns_count_crystals(columns, modules[0], i);
    lr_columns_count_crystals(columns, modules[1], j);
    const int strips = i[0] + j[0];
    return 4 + divide_up(strips, columns->strips) + divide_up(strips, GROUP) +
           divide_up(i[0], GROUP) * (int64_t)(1 + j[0]) +
           divide_up((int64_t)strips * i[1], GROUP) * (int64_t)(1 + j[1]);
}

int lr_columns_rows_pairs(const struct lr_columns *columns, int begin)
{
    const int num_pairs = (int)columns->params.lors->num_pairs;
    if (!gl_context_limits(columns->ctx)->small_batches) {
        return num_pairs;
    }
    int64_t turns = 0;
    int end = begin;
    while (end < num_pairs && (end == begin || turns <= LR_MOST_TURNS_SOFTWARE)) {
        turns += turns_of_rows(columns, end++);
    }
    return end;
}

/* --- projections --- */

/* Each voxel together with its images, so that forward needs one read for all of them. */
static lr_status pack_image(const struct lr_window *window)
{
    const struct lr_columns *columns = window->columns;
    const int64_t voxels = lr_grid_num_voxels(columns->params.grid);
    const struct step step = {.groups = {divide_up(voxels, GROUP), 1, 1}};
    return columns->packed != NULL ? run_pass(window, LR_COLUMNS_PACK, &step) : LR_OK;
}

static lr_status forward_window(struct lr_window *window, const lr_vector *data)
{
    const bool exact = window->columns->params.mode == LR_MODE_EXACT;
    LR_TRY(lr_columns_start_forward(window->columns));
    LR_TRY(exact ? lr_window_open_stacks(window, NULL, true) : lr_window_open(window, NULL));
    LR_TRY(exact ? pack_image(window) : LR_OK);
    LR_TRY(forward_pass(window));
    LR_TRY(reorder(window, exact ? LR_COLUMNS_STACKS_TO_FILE : LR_COLUMNS_TO_FILE));
    return lr_window_read(window, data);
}

static lr_status forward_windows(struct lr_window *window, const lr_vector *data)
{
    while (lr_window_next(window)) {
        const lr_status status = forward_window(window, data);
        lr_window_close(window);
        LR_TRY(status);
    }
    return LR_OK;
}

/* In exact mode pairs are handled stack by stack. */
static lr_status order_pairs(const struct lr_columns *columns, const struct lr_pair_list *list,
                             struct lr_stack_order *order)
{
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    return exact ? lr_columns_order_by_stacks(columns, list, order) : LR_OK;
}

lr_status lr_columns_forward(struct lr_columns *columns, const struct lr_pair_list *list,
                             const float *image, lr_vector *data)
{
    struct lr_stack_order order = {0};
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    gl_stopwatch_reset(columns->watch);
    LR_TRY(image != NULL ? lr_columns_upload_image(columns, image) : LR_OK);
    LR_TRY(order_pairs(columns, list, &order));
    struct lr_window window = lr_window_begin(columns, list, exact ? &order : NULL);
    const lr_status status = forward_windows(&window, data);
    columns->device_seconds = gl_stopwatch_seconds(columns->watch);
    lr_stack_order_finish(&order);
    return status == LR_OK && exact ? lr_columns_clear_left_out(columns, list, data) : status;
}

/* The sum is then the first share, and the others begin at zero again. */
static lr_status sum_shares(const struct lr_window *window)
{
    struct lr_columns *columns = window->columns;
    const int64_t voxels = lr_grid_num_voxels(columns->params.grid);
    const struct step step = {.groups = {divide_up(voxels, GROUP), 1, 1}};
    return columns->shares > 1 ? run_pass(window, LR_COLUMNS_SUM, &step) : LR_OK;
}

static lr_status back_sampled(struct lr_window *window, const lr_vector *data)
{
    LR_TRY(lr_columns_start_back(window->columns, data == NULL, false));
    LR_TRY(lr_window_open(window, data));
    if (data != NULL) {
        LR_TRY(reorder(window, LR_COLUMNS_FROM_FILE));
    }
    LR_TRY(back_pass(window, data == NULL ? LR_COLUMNS_ONES : LR_COLUMNS_BACK));
    return LR_OK;
}

static lr_status back_exact(struct lr_window *window, const lr_vector *data)
{
    LR_TRY(lr_window_open_stacks(window, data, false));
    LR_TRY(lr_columns_start_back(window->columns, data == NULL, window->stacks.has_half_turn));
    LR_TRY(reorder(window, data == NULL ? LR_COLUMNS_ONES_TO_STACKS : LR_COLUMNS_TO_STACKS));
    LR_TRY(back_pass(window, window->stacks.has_half_turn ? LR_COLUMNS_BACK_HALF_TURN
                                                          : LR_COLUMNS_BACK_EXACT));
    LR_TRY(sum_shares(window));
    return LR_OK;
}

static bool has_small_windows(const struct lr_columns *columns)
{
    const struct gl_limits *limits = gl_context_limits(columns->ctx);
    return limits->software || limits->small_batches;
}

/* Which of a small window's stacks have their images with them turns out later. */
lr_status lr_columns_prepare_back(struct lr_columns *columns)
{
    const bool has_images = columns->stacks->has_half_turn;
    return has_images && has_small_windows(columns)
               ? LR_OK
               : lr_columns_start_back(columns, false, has_images);
}

static lr_status back_windows(struct lr_window *window, const lr_vector *data)
{
    struct lr_columns *columns = window->columns;
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    if (has_small_windows(columns)) { /* a thread visits all pairs of the window */
        window->most_turns = LR_MOST_TURNS_SOFTWARE;
    }
    while (lr_window_next(window)) {
        const lr_status status = exact ? back_exact(window, data) : back_sampled(window, data);
        lr_window_close(window);
        LR_TRY(status);
    }
    return LR_OK;
}

lr_status lr_columns_back(struct lr_columns *columns, const struct lr_pair_list *list,
                          const lr_vector *data, float *image)
{
    struct lr_stack_order order = {0};
    const bool exact = columns->params.mode == LR_MODE_EXACT;
    gl_stopwatch_reset(columns->watch);
    gl_buffer_clear(columns->image, 0);
    LR_TRY(order_pairs(columns, list, &order));
    struct lr_window window = lr_window_begin(columns, list, exact ? &order : NULL);
    const lr_status status = back_windows(&window, data);
    columns->device_seconds = gl_stopwatch_seconds(columns->watch);
    lr_stack_order_finish(&order);
    return status == LR_OK && image != NULL ? lr_columns_read_image(columns, image) : status;
}

/* --- life --- */

bool lr_columns_serve(const struct lr_backend_params *params)
{
    const int axis = lr_lors_axial_axis(params->lors);
    return axis >= 0 && params->samples[axis] <= MAX_BACK_GROUP &&
           lr_columns_most_cells(params->scanner) <= MAX_CELLS;
}

/* --- groups --- */

/* Points of a column that programs are made for: a trial's are those of what it stands for, but where it
 * has more of its own. */
static int points_to_serve(const struct lr_columns *columns)
{
    const struct lr_backend_params *whole = columns->params.stands_for;
    const int own = lr_columns_num_points(columns, columns->axis);
    const int wanted =
        whole != NULL ? whole->grid->size[columns->axis] * whole->samples[columns->axis] : 0;
    return own > wanted ? own : wanted;
}

bool lr_columns_has_one_point(const struct lr_columns *columns)
{
    const struct lr_backend_params *whole = columns->params.stands_for;
    return columns->params.samples[columns->axis] == 1 &&
           (whole == NULL || whole->samples[columns->axis] == 1);
}

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
    const int64_t threads = (int64_t)divide_up(size[columns->across[0]], columns->back_columns) *
                            size[columns->across[1]] * columns->back_group;
    const int64_t shares = THREADS_WANTED / (threads > 0 ? threads : 1);
    const int64_t most = columns->params.lors->num_pairs < MOST_SHARES
                             ? columns->params.lors->num_pairs
                             : MOST_SHARES;
    if (gl_context_limits(columns->ctx)->small_batches || shares < 1) {
        return 1;
    }
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

/* Whether halves of columns are taken as mirror images: four points a thread, a column a group. What
 * is near has a closed form that is not the same bits when it is turned round. */
static bool is_mirrored(const struct lr_columns *columns)
{
    return columns->params.mode == LR_MODE_EXACT && !columns->may_be_near &&
           points_to_serve(columns) <= 4 * MAX_BACK_GROUP && lr_columns_are_mirrored(columns);
}

/* A thread has two points of a column, or of half a column, which are its slot. A group that is much
 * larger than a column's slots has several columns. */
static void size_back_groups(struct lr_columns *columns, int slots)
{
    const int least = round_to_group(slots, MAX_BACK_GROUP);
    const int most = 2 * least < MAX_BACK_GROUP ? 2 * least : MAX_BACK_GROUP;
    const int group = fitting_group(slots, most, true);
    columns->back_group = group > least ? group : least;
    const int fit =
        columns->back_group / (slots < columns->back_group ? slots : columns->back_group);
    const int held = MAX_HELD_STRIPS / columns->strips;
    columns->back_columns = fit < held ? fit : held;
}

static void size_exact_groups(struct lr_columns *columns)
{
    const int points = points_to_serve(columns);
    const int halves = columns->is_mirrored ? 2 : 1;
    const int64_t cells = (int64_t)columns->stacks->most_cells * columns->stacks->most_cells;
    columns->forward_group =
        fitting_group((cells + halves - 1) / halves, MAX_EXACT_FORWARD_GROUP, false);
    size_back_groups(columns, (divide_up(points, halves) + 1) / 2);
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
    columns->back_group = round_to_group(points_to_serve(columns), MAX_BACK_GROUP);
    columns->back_columns = 1;
    columns->shares = 1;
}

static int64_t packed_bytes(const lr_grid *grid)
{
    return 4 * (int64_t)sizeof(float) * lr_grid_num_voxels(grid);
}

static bool can_pack(const struct lr_columns *columns)
{
    const struct gl_limits *limits = gl_context_limits(columns->ctx);
    const struct lr_backend_params *whole = columns->params.stands_for;
    return columns->params.mode == LR_MODE_EXACT && columns->stacks->has_half_turn &&
           packed_bytes(columns->params.grid) <= limits->max_storage_bytes &&
           (whole == NULL || packed_bytes(whole->grid) <= limits->max_storage_bytes);
}

static lr_status init(struct lr_columns *columns)
{
    columns->stacks =
        lr_alloc(1, sizeof(*columns->stacks), "stacks of modules", columns->params.log);
    if (columns->stacks == NULL) {
        return LR_FAILED;
    }
    LR_TRY(lr_columns_stacks_init(columns->stacks, columns));
    columns->is_mirrored = is_mirrored(columns);
    columns->cells = lr_columns_upload_cells(columns);
    if (columns->cells == NULL) {
        return LR_FAILED;
    }
    size_groups(columns);
    columns->image = gl_buffer_create(
        columns->ctx, &(struct gl_buffer_params){.label = "image in columns",
                                                 .size_bytes = columns->shares *
                                                               lr_columns_image_bytes(columns)});
    if (can_pack(columns)) {
        columns->packed = gl_buffer_create(
            columns->ctx,
            &(struct gl_buffer_params){.label = "image with its images",
                                       .size_bytes = packed_bytes(columns->params.grid)});
        if (columns->packed == NULL) {
            return LR_FAILED;
        }
    }
    columns->watch = gl_stopwatch_create(columns->ctx, "column passes");
    if (columns->image == NULL || columns->watch == NULL) {
        return LR_FAILED;
    }
    return lr_columns_upload_scene(columns);
}

struct lr_columns *lr_columns_create(struct gl_context *ctx, const struct lr_backend_params *params,
                                     int64_t max_window)
{
    struct lr_columns *columns =
        lr_alloc(1, sizeof(*columns), "projections by columns", params->log);
    if (columns == NULL) {
        return NULL;
    }
    columns->params = *params;
    columns->ctx = ctx;
    columns->axis = lr_lors_axial_axis(params->lors);
    columns->across[0] = columns->axis == 0 ? 1 : 0;
    columns->across[1] = columns->axis == 2 ? 1 : 2;
    columns->max_window = max_window;
    columns->may_be_near = params->mode == LR_MODE_EXACT && lr_columns_may_be_near(columns);
    if (init(columns) != LR_OK) {
        lr_columns_destroy(columns);
        return NULL;
    }
    return columns;
}

void lr_columns_destroy(struct lr_columns *columns)
{
    if (columns == NULL) {
        return;
    }
    for (int k = 0; k < LR_NUM_COLUMNS_PROGRAMS; k++) {
        gl_program_destroy(columns->programs[k]);
    }
    if (columns->stacks != NULL) {
        lr_columns_stacks_finish(columns->stacks);
        free(columns->stacks);
    }
    gl_stopwatch_destroy(columns->watch);
    gl_buffer_destroy(columns->image);
    gl_buffer_destroy(columns->mask_words);
    gl_buffer_destroy(columns->mask_entries);
    gl_buffer_destroy(columns->points);
    gl_buffer_destroy(columns->cells);
    gl_buffer_destroy(columns->packed);
    gl_buffer_destroy(columns->modules);
    free(columns);
}
