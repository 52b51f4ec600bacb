/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows by the arithmetic of the projections by pairs. */
#include "render/pairs/pairs.h"

#include "base/log.h"
#include "common/bindings.h"
#include "render/pairs/scene.h"
#include "render/rows/point_lists.h"

#include <string.h>

/* A point as the shader sees it: dvec4. */
typedef double point_place[4];

/* Pairs of one dispatch: a device takes that many groups along each dimension. */
enum { MOST_PAIRS = 1 << 15 };

/* State of one call. */
struct listing {
    struct lr_pairs *pairs;
    enum lr_pairs_program which;
    struct gl_buffer *modules; /* all pairs of them */
};

static void place_point(void *user, const double point_mm[3], void *point)
{
    (void)user;
    memcpy(point, (point_place){point_mm[0], point_mm[1], point_mm[2], 0.0}, sizeof(point_place));
}

/* Pairs range[0] .. range[1] - 1, rows range[2] .. range[3] - 1. */
static lr_status run_range(const struct listing *listing, const struct lr_point_list *list, const int range[4])
{
    struct lr_pairs *pairs = listing->pairs;
    struct gl_program *program = lr_pairs_program(pairs, listing->which);
    if (program == NULL) return LR_FAILED;
    struct lr_pairs_pass uniforms = lr_pairs_uniforms(pairs);
    memcpy(uniforms.range, range, sizeof(uniforms.range));
    uniforms.list[0] = list->first_point;
    uniforms.list[1] = list->end_point;
    uniforms.list[2] = (int32_t)list->capacity;
    const int points = list->end_point - list->first_point;
    struct gl_pass pass = {.label = gl_program_label(program),
                           .program = program,
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .groups = {gl_divide_up(points, LR_GROUP_SIZE), range[1] - range[0], 1},
                           .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    lr_pairs_bind_scene(pairs, &pass);
    pass.buffers[LR_BIND_PAIR_LIST].buffer = listing->modules;
    pass.buffers[LR_BIND_PAIR_POINTS].buffer = list->points;
    pass.buffers[LR_BIND_OUTPUT].buffer = list->list;
    return gl_pass_run(pairs->ctx, &pass);
}

static lr_status run_points(void *user, const struct lr_point_list *list)
{
    const struct listing *listing = user;
    const int num_pairs = (int)listing->pairs->params.lors->num_pairs;
    int height = 1;
    const int rows = lr_pairs_rows_at_once(listing->pairs, &height);
    for (int begin = 0; begin < num_pairs; begin += MOST_PAIRS) {
        const int end = begin + MOST_PAIRS < num_pairs ? begin + MOST_PAIRS : num_pairs;
        for (int row = 0; row < height; row += rows)
            LR_TRY(run_range(listing, list, (const int[4]){begin, end, row, row + rows}));
    }
    return LR_OK;
}

lr_status lr_pairs_read_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink)
{
    struct lr_pairs *pairs = self;
    const struct lr_pair_list all = {0};
    const int64_t range[2] = {0, pairs->params.lors->num_pairs};
    struct listing listing = {.pairs = pairs, .which = rows->grid ? LR_PAIRS_ROWS : LR_PAIRS_POINT_ROWS};
    const struct lr_point_lister lister = {.ctx = pairs->ctx,
                                           .params = &pairs->params,
                                           .merge = &pairs->merge,
                                           .max_window = pairs->max_window,
                                           .point_bytes = sizeof(point_place),
                                           .repeats = true,
                                           .place = place_point,
                                           .run = run_points,
                                           .user = &listing};
    listing.modules = lr_pairs_upload_list(pairs, &all, range);
    lr_status status = listing.modules != NULL ? lr_point_lists_read_rows(&lister, rows, sink) : LR_FAILED;
    gl_buffer_destroy(listing.modules);
    return status == LR_OK ? lr_pairs_check_finished(pairs) : status;
}
