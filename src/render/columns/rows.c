/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows of exact mode by the arithmetic of the column projections:
 * docs/method/correspondence.md, "Columns". */
#include "render/columns/columns.h"

#include "base/log.h"
#include "common/bindings.h"
#include "render/columns/programs.h"
#include "render/columns/scene.h"
#include "render/columns/turns.h"
#include "render/plan.h"
#include "render/rows/point_lists.h"

#include <string.h>

/* A point as the shader sees it: two coordinates across and one along, each a float and what its
 * rounding left over. */
typedef float point_parts[3][2];

/* Runs of consecutive module pairs that are asked for one by one; scattered ones are computed with
 * those between them. */
enum { MOST_RUNS = 64 };

/* State of one call. */
struct listing {
    struct lr_columns *columns;
    int runs[MOST_RUNS][2]; /* pairs begin .. end-1 */
    int num_runs;
    enum lr_columns_program which;
    struct gl_buffer *pairs;
};

static void place_point(void *user, const double point_mm[3], void *point)
{
    const struct lr_columns *columns = ((const struct listing *)user)->columns;
    const int axes[3] = {columns->across[0], columns->across[1], columns->axis};
    point_parts parts;
    for (int k = 0; k < 3; k++) lr_split_float(point_mm[axes[k]], &parts[k][0], &parts[k][1]);
    memcpy(point, parts, sizeof(parts));
}

/* Turns of a thread at a pair of columns/rows.comp, at most. */
static int64_t turns_of_rows(const struct lr_columns *columns, int pair)
{
    const int32_t *modules = columns->params.lors->pairs[pair];
    int i[2], j[2];
    lr_columns_count_crystals(columns, modules[0], i);
    lr_columns_count_crystals(columns, modules[1], j);
    const int strips = i[0] + j[0];
    return 4 + gl_divide_up(strips, columns->strips) + gl_divide_up(strips, LR_GROUP_SIZE) +
           gl_divide_up(i[0], LR_GROUP_SIZE) * (int64_t)(1 + j[0]) +
           gl_divide_up((int64_t)strips * i[1], LR_GROUP_SIZE) * (int64_t)(1 + j[1] * columns->element_turns);
}

/* End of the module pairs from `begin` on that one pass may visit. */
static int end_of_pairs(const struct lr_columns *columns, int begin)
{
    const int num_pairs = (int)columns->params.lors->num_pairs;
    if (!lr_columns_ends_loops(columns)) return num_pairs;
    int64_t turns = 0;
    int end = begin;
    while (end < num_pairs && (end == begin || turns <= lr_columns_most_turns(columns)))
        turns += turns_of_rows(columns, end++);
    return end;
}

/* Points of a list with pairs begin .. end-1. */
static lr_status run_share(const struct listing *listing, const struct lr_point_list *list, const int pairs[2])
{
    struct lr_columns *columns = listing->columns;
    struct gl_program *program = lr_columns_program(columns, listing->which);
    if (program == NULL) return LR_FAILED;
    struct lr_columns_pass uniforms = lr_columns_uniforms(columns);
    for (int k = 0; k < 3; k++) uniforms.num_points[k] = uniforms.num_samples[k] = 1;
    uniforms.first[0] = pairs[0];
    uniforms.first[1] = list->first_point;
    uniforms.count[0] = pairs[1];
    uniforms.count[1] = (int32_t)list->capacity;
    struct gl_pass pass = {.label = gl_program_label(program),
                           .program = program,
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .groups = {list->end_point - list->first_point, 1, 1},
                           .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    lr_columns_bind_scene(columns, &pass);
    pass.buffers[LR_BIND_COLUMN_PAIRS].buffer = listing->pairs;
    pass.buffers[LR_BIND_COLUMN_POINTS].buffer = list->points;
    pass.buffers[LR_BIND_OUTPUT].buffer = list->list;
    return gl_pass_run(columns->ctx, &pass);
}

static lr_status run_pairs(const struct listing *listing, const struct lr_point_list *list, const int run[2])
{
    int pairs[2] = {run[0], run[0]};
    while (pairs[1] < run[1]) {
        pairs[0] = pairs[1];
        const int end = end_of_pairs(listing->columns, pairs[0]);
        pairs[1] = end < run[1] ? end : run[1];
        LR_TRY(run_share(listing, list, pairs));
    }
    return LR_OK;
}

/* Lists the elements of some points with the pairs that are wanted. */
static lr_status run_points(void *user, const struct lr_point_list *list)
{
    const struct listing *listing = user;
    for (int k = 0; k < listing->num_runs; k++) LR_TRY(run_pairs(listing, list, listing->runs[k]));
    return LR_OK;
}

static void find_runs(struct listing *listing, const struct lr_rows *rows)
{
    int(*runs)[2] = listing->runs;
    if (rows->pairs == NULL) {
        runs[0][1] = (int)listing->columns->params.lors->num_pairs;
        listing->num_runs = 1;
        return;
    }
    for (int64_t k = 0; k < rows->num_pairs; k++) {
        const int pair = rows->pairs[k], last = listing->num_runs - 1;
        if (last >= 0 && (runs[last][1] == pair || last == MOST_RUNS - 1)) {
            runs[last][1] = pair + 1;
        } else {
            runs[last + 1][0] = pair;
            runs[last + 1][1] = pair + 1;
            listing->num_runs++;
        }
    }
}

lr_status lr_columns_read_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink)
{
    struct lr_columns *columns = self;
    const struct lr_pair_list all = {0};
    struct listing listing = {.columns = columns, .which = rows->grid ? LR_COLUMNS_ROWS : LR_COLUMNS_POINT_ROWS};
    const struct lr_point_lister lister = {.ctx = columns->ctx,
                                           .params = &columns->params,
                                           .merge = &columns->merge,
                                           .max_window = columns->max_window,
                                           .point_bytes = sizeof(point_parts),
                                           .place = place_point,
                                           .run = run_points,
                                           .user = &listing};
    find_runs(&listing, rows);
    listing.pairs = lr_columns_upload_pairs(columns, &all, 0, columns->params.lors->num_pairs, NULL);
    const lr_status status = listing.pairs != NULL ? lr_point_lists_read_rows(&lister, rows, sink) : LR_FAILED;
    gl_buffer_destroy(listing.pairs);
    return status == LR_OK ? lr_columns_check_turns(columns) : status;
}
