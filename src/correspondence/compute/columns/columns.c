/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The columns method: the scanners that it serves, its workgroup sizes, and its buffers. */
#include "correspondence/compute/columns/columns.h"

#include "base/log.h"
#include "base/mem.h"
#include "correspondence/compute/method.h"
#include "model/scanner/scanner.h"

#include <math.h>
#include <stdlib.h>

/* Upper limits of workgroup sizes, and of the number of strips that a workgroup has in memory at the same time. */
enum {
    MAX_FORWARD_GROUP = 256,
    MAX_EXACT_FORWARD_GROUP = 384,
    MAX_BACK_GROUP = 128,
    MAX_STRIPS = 256,
    MAX_HELD_STRIPS = 256
};

/* The largest number of cells of a stack. On every device, a workgroup's shared memory has room for the positions of
 * this many cells. */
enum { MAX_CELLS = 1500 };

static bool serves(const struct lr_method_params *params, enum lr_method_work work)
{
    const struct lr_backend_params *backend = params->backend;
    const lr_scanner *scanner = backend->scanner;
    const int axis = lr_lors_axial_axis(backend->lors);
    int64_t cells = 0; /* largest number of crystals along an edge of a module */
    for (int m = 0; m < scanner->num_modules; m++) {
        const int *crystals = scanner->modules[m].crystals;
        const int most = crystals[0] > crystals[1] ? crystals[0] : crystals[1];
        cells = most > cells ? most : cells;
    }
    const int positions = scanner->num_positions > 0 ? scanner->num_positions : 1;
    const int64_t cells_of_stack = cells * ((scanner->num_modules + positions - 1) / positions);
    return !params->may_hide && backend->mu == NULL && !backend->penetration &&
           (work == LR_METHOD_PROJECTIONS || backend->mode == LR_MODE_EXACT) && axis >= 0 &&
           backend->samples[axis] <= MAX_BACK_GROUP && cells_of_stack <= MAX_CELLS;
}

/* --- groups --- */

static int round_to_group(int64_t count, int most)
{
    const int64_t rounded = (count + 31) / 32 * 32;
    return (int)(rounded < most ? rounded : most);
}

/* THREADS_WANTED: number of threads that keep a large device busy. MOST_SHARES: largest number of shares of an image.
 * Adding up further shares would take longer than the shares save. */
enum { THREADS_WANTED = 1 << 20, MOST_SHARES = 8 };

/* Chooses a workgroup size, at most `most` threads, so that as few threads as possible have no work. If `shared` is
 * true, a workgroup with spare threads works on several columns at once. If several sizes are equally good, the
 * smallest is chosen if `shared` is true, and the largest if it is false. */
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

/* Chooses workgroup sizes that fit the numbers of crystals and points. */
static void size_groups(struct lr_columns *columns)
{
    const lr_scanner *scanner = columns->params.scanner;
    const int points = lr_columns_num_points(columns, columns->axis);
    int most[2] = {1, 1}, counts[2];
    for (int m = 0; m < scanner->num_modules; m++) {
        lr_columns_count_crystals(columns, m, counts);
        most[0] = counts[0] > most[0] ? counts[0] : most[0];
        most[1] = counts[1] > most[1] ? counts[1] : most[1];
    }
    columns->shares = 1;
    if (columns->params.mode == LR_MODE_SAMPLED) {
        columns->strips = round_to_group(most[0] * (int64_t)columns->params.rays, MAX_STRIPS);
        columns->forward_group = round_to_group((int64_t)most[1] * most[1], MAX_FORWARD_GROUP);
        columns->back_group = round_to_group(points, MAX_BACK_GROUP);
        columns->back_columns = 1;
        return;
    }
    columns->strips = round_to_group(2 * (int64_t)most[0], MAX_STRIPS);
    const int halves = columns->is_mirrored ? 2 : 1;
    const int64_t cells = (int64_t)columns->stacks->most_cells * columns->stacks->most_cells;
    columns->forward_group = fitting_group((cells + halves - 1) / halves, MAX_EXACT_FORWARD_GROUP, false);

    /* Each thread has a slot of two points of a column, or of half a column. If a workgroup has far more threads than a
     * column has slots, it works on several columns. */
    const int slots = (gl_divide_up(points, halves) + 1) / 2;
    const int least = round_to_group(slots, MAX_BACK_GROUP);
    const int limit = 2 * least < MAX_BACK_GROUP ? 2 * least : MAX_BACK_GROUP;
    const int group = fitting_group(slots, limit, true);
    columns->back_group = group > least ? group : least;
    const int fit = columns->back_group / (slots < columns->back_group ? slots : columns->back_group);
    const int held = MAX_HELD_STRIPS / columns->strips;
    columns->back_columns = fit < held ? fit : held;

    /* A large device would have too few threads for a small image. The back-projection is therefore divided into
     * shares, whose sums are added up at the end. */
    const int *size = columns->params.grid->size;
    const int64_t threads = (int64_t)gl_divide_up(size[columns->across[0]], columns->back_columns) *
                            size[columns->across[1]] * columns->back_group;
    const int64_t shares = THREADS_WANTED / (threads > 0 ? threads : 1);
    const int64_t most_shares =
        columns->params.lors->num_pairs < MOST_SHARES ? columns->params.lors->num_pairs : MOST_SHARES;
    if (!gl_context_limits(columns->ctx)->small_batches && shares >= 1)
        columns->shares = (int)(shares < most_shares ? shares : most_shares);
}

static lr_status init(struct lr_columns *columns)
{
    const struct lr_backend_params *params = &columns->params;
    const struct gl_limits *limits = gl_context_limits(columns->ctx);
    const bool exact = params->mode == LR_MODE_EXACT;
    struct lr_columns_stacks *stacks = columns->stacks =
        lr_alloc(1, sizeof(*columns->stacks), "stacks of modules", params->log);
    if (stacks == NULL) return LR_FAILED;
    LR_TRY(lr_columns_stacks_init(stacks, columns));

    /* Finds the largest number of pieces into which the shaders cut a strip (count_pieces of
     * shaders/correspondence/columns/columns.glsl). Along a strip, the ratio of the distances to both faces changes by
     * at most the strip's width divided by the smaller distance. Within a piece, this change moves a line by at most
     * one cell. */
    columns->most_rounds = lr_columns_ends_loops(columns) ? GL_MOST_ROUNDS_SOFTWARE : INT64_MAX;
    columns->element_rounds = 1;
    if (exact) {
        enum { TRIANGLES = 8 }; /* triangles of near_weight in shaders/correspondence/columns/exact.glsl */
        double widest = 0.0;
        for (int m = 0; m < params->scanner->num_modules; m++) {
            const double *face = params->scanner->modules[m].face_mm;
            widest = fmax(widest, hypot(face[0], face[1]));
        }
        const double change = fmin(widest / fmax(lr_columns_nearest_mm(columns), 1e-6), 1.0);
        const int pieces = 1 + (int)ceil(change * stacks->most_cells);
        columns->element_rounds = columns->may_be_near ? (1 + TRIANGLES) * pieces : pieces;
    }
    const uint32_t none = 0;
    if (limits->software) {
        columns->state = gl_data_buffer(columns->ctx, "loops ended", sizeof(none), &none);
        if (columns->state == NULL) return LR_FAILED;
    }

    /* If columns are mirrored, a thread works on two points of a half column and on their mirror images. Columns are
     * not mirrored if the closed form for near crystals is needed, because with this form the last bits of mirror
     * images differ. */
    columns->is_mirrored = exact && !columns->may_be_near && stacks->are_mirrored &&
                           lr_columns_num_points(columns, columns->axis) <= 4 * MAX_BACK_GROUP;
    columns->cells = lr_columns_upload_cells(columns);
    if (columns->cells == NULL) return LR_FAILED;
    size_groups(columns);
    const int64_t image_bytes = lr_grid_num_voxels(params->grid) * (int64_t)sizeof(float),
                  packed_bytes = 4 * image_bytes;
    columns->image = gl_data_buffer(columns->ctx, "image in columns", columns->shares * image_bytes, NULL);
    if (exact && stacks->has_half_turn && packed_bytes <= limits->max_storage_bytes) {
        columns->packed = gl_data_buffer(columns->ctx, "image with its images", packed_bytes, NULL);
        if (columns->packed == NULL) return LR_FAILED;
    }
    return columns->image != NULL ? lr_columns_upload_scene(columns) : LR_FAILED;
}

/* If the squared diagonal of a face divided by the squared distance between the grid and the nearest module is above
 * this limit, projections include the closed form for near crystals. Passes over single points always include it. For a
 * single overlap, NEAR_SIZE of the shaders decides. NEAR_SIZE is far smaller than this limit, because few overlaps are
 * as large as the limit allows. The benchmark grids of the mMR and the Vista have 0.006 and 0.008. Rows in the corners
 * of these grids agree with backend cpu within 3.2e-6 (relative L2 error). */
static const double near_size = 0.01;

void *lr_columns_create(const struct lr_method_params *params)
{
    const struct lr_backend_params *backend = params->backend;
    const bool exact = backend->mode == LR_MODE_EXACT;
    const int64_t rays = exact ? 0 : backend->rays;
    struct lr_columns *columns = lr_alloc(1, sizeof(*columns), "projections by columns", backend->log);
    if (columns == NULL) return NULL;
    columns->params = *backend;
    columns->ctx = params->ctx;
    columns->axis = lr_lors_axial_axis(backend->lors);
    columns->across[0] = columns->axis == 0 ? 1 : 0;
    columns->across[1] = columns->axis == 2 ? 1 : 2;
    columns->max_window = params->max_window;
    columns->watch = params->watch;

    const double nearest = lr_columns_nearest_mm(columns);
    double largest_face = 0.0; /* largest squared diagonal of a face, mm^2 */
    int64_t crystals = 0;
    for (int m = 0; m < backend->scanner->num_modules; m++) {
        const lr_module *module = &backend->scanner->modules[m];
        const double *face = module->face_mm;
        const int64_t count = (int64_t)module->crystals[0] * module->crystals[1];
        largest_face = fmax(largest_face, face[0] * face[0] + face[1] * face[1]);
        crystals = count > crystals ? count : crystals;
    }
    columns->may_be_near = exact && largest_face > near_size * nearest * nearest;

    /* A thread follows all lines of one module's crystals. Its loops need about half as many rounds as the left side of
     * this comparison, so the limit is twice the renderer's. */
    lr_status status = LR_OK;
    if (gl_context_limits(columns->ctx)->software && 4 * rays * (rays + 3) * crystals > 2 * GL_MOST_ROUNDS_SOFTWARE)
        status = lr_error(backend->log, LR_USAGE,
                          "%d x %d lines a crystal are too many for the software renderer, which ends a shader's loops "
                          "after 65,535 rounds: use fewer rays, backend native or cpu, or a graphics processor",
                          backend->rays, backend->rays);
    if (status == LR_OK) status = init(columns);
    if (status != LR_OK) {
        lr_columns_destroy(columns);
        return NULL;
    }
    return columns;
}

void lr_columns_destroy(void *self)
{
    struct lr_columns *columns = self;
    if (columns == NULL) return;
    for (int k = 0; k < LR_NUM_COLUMNS_PROGRAMS; k++) gl_program_destroy(columns->programs[k]);
    lr_merge_programs_finish(&columns->merge);
    if (columns->stacks != NULL) {
        lr_columns_stacks_finish(columns->stacks);
        free(columns->stacks);
    }
    gl_buffers_destroy(columns->state, columns->image, columns->masks.words, columns->masks.entries, columns->points,
                       columns->cells, columns->packed, columns->modules);
    free(columns);
}

/* --- the method --- */

static bool leaves_out(const void *self)
{
    const struct lr_columns *columns = self;
    return columns->has_angles;
}

const struct lr_method lr_columns_method = {
    .serves = serves,
    .create = lr_columns_create,
    .destroy = lr_columns_destroy,
    .prepare = lr_columns_prepare,
    .project = lr_columns_project,
    .project_lors = lr_columns_project_lors,
    .rows = lr_columns_read_rows,
    .leaves_out = leaves_out,
    .watch = "column passes",
    .has_clock = true,
};
