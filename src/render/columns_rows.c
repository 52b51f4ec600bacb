/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/columns_rows.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "render/columns_scene.h"
#include "render/row_batches.h"

#include <stdlib.h>
#include <string.h>

/* One entry of the list, as shaders/columns_rows.comp writes it. */
struct entry {
    uint32_t point, lor;
    float weight;
    uint32_t unused;
};
_Static_assert(sizeof(struct entry) == 16, "uvec4");

/* A point as the shader sees it: two coordinates across and one along, each a float and what its
 * rounding left over. */
typedef float point_parts[3][2];

/* The list's head holds its count. ROOM: elements per crystal of the scanner that a point has room
 * for; equal crystals that face each other at half a pitch's offset make two. A batch that needs
 * more is done in halves. */
enum { HEAD_BYTES = 16, ROOM = 3, MOST_POINTS = 4096, FEWEST_ENTRIES = 1024 };
enum { MOST_ENTRIES = 1 << 24 };

/* Runs of consecutive module pairs that are asked for one by one; scattered ones are computed with
 * those between them. */
enum { MOST_RUNS = 64 };

/* State of one call of lr_columns_read_rows. */
struct listing {
    struct lr_columns *columns;
    int runs[MOST_RUNS][2]; /* pairs begin .. end-1 */
    int num_runs;
    enum lr_columns_program which;
    double factor;  /* 1 / points per row */
    int max_points; /* of a batch */
    point_parts *points;
    struct lr_plan_row *rows;
    struct gl_buffer *pair_buffer, *point_buffer, *list;
    int64_t capacity;      /* of the list, entries */
    struct entry *entries; /* of the batch, as they came */
    struct entry *sorted;  /* [num_entries], by point */
    int64_t num_entries, max_entries, max_sorted;
    int64_t *point_begin; /* [max_points + 1] */
};

static const lr_log *log_of(const struct listing *listing)
{
    return listing->columns->params.log;
}

/* --- batches of points --- */

static void take_points(struct listing *listing, const struct lr_rows *rows,
                        const struct lr_plan_row *row, int first_point)
{
    const struct lr_columns *columns = listing->columns;
    const int axes[3] = {columns->across[0], columns->across[1], columns->axis};
    for (uint32_t n = row->first_image; n < row->end_image; n++) {
        double point_mm[3];
        lr_rows_point(rows, rows->begin + row->row, first_point + (int)(n - row->first_image),
                      point_mm);
        for (int k = 0; k < 3; k++) {
            lr_split_float(point_mm[axes[k]], &listing->points[n][k][0], &listing->points[n][k][1]);
        }
    }
}

/* As many points as a batch holds; an image is a point here. */
static bool next_points(void *user, const struct lr_rows *rows, struct lr_plan_cursor *cursor,
                        struct lr_batch *batch)
{
    struct listing *listing = user;
    const int per_row = lr_rows_per_row(rows);
    *batch = (struct lr_batch){.rows = listing->rows};
    while (cursor->row < rows->end - rows->begin && batch->num_images < listing->max_points) {
        const int room = listing->max_points - batch->num_images;
        const int left = per_row - cursor->point;
        const int taken = left < room ? left : room;
        struct lr_plan_row *row = &listing->rows[batch->num_rows++];
        *row = (struct lr_plan_row){.first_image = (uint32_t)batch->num_images,
                                    .end_image = (uint32_t)(batch->num_images + taken),
                                    .row = (uint32_t)cursor->row};
        take_points(listing, rows, row, cursor->point);
        batch->num_images += taken;
        cursor->point = taken < left ? cursor->point + taken : 0;
        cursor->row += taken < left ? 0 : 1;
    }
    return batch->num_images > 0;
}

/* --- the list on the device --- */

static int64_t most_capacity(const struct listing *listing)
{
    const struct gl_limits *limits = gl_context_limits(listing->columns->ctx);
    return (limits->max_storage_bytes - HEAD_BYTES) / (int64_t)sizeof(struct entry);
}

static lr_status make_list(struct listing *listing, int64_t capacity)
{
    gl_buffer_destroy(listing->list);
    listing->capacity = capacity;
    listing->list =
        gl_buffer_create(listing->columns->ctx,
                         &(struct gl_buffer_params){
                             .label = "matrix elements",
                             .size_bytes = HEAD_BYTES + capacity * (int64_t)sizeof(struct entry)});
    return listing->list ? LR_OK : LR_FAILED;
}

/* Points first .. end-1 with pairs begin_pair .. end_pair-1. */
struct share {
    int first_point, end_point;
    int begin_pair, end_pair;
};

static lr_status run_share(const struct listing *listing, const struct share *share)
{
    struct lr_columns *columns = listing->columns;
    struct gl_program *program = lr_columns_program(columns, listing->which);
    if (program == NULL) {
        return LR_FAILED;
    }
    struct lr_columns_pass uniforms = lr_columns_uniforms(columns);
    for (int k = 0; k < 3; k++) {
        uniforms.num_points[k] = uniforms.num_samples[k] = 1;
    }
    uniforms.first[0] = share->begin_pair;
    uniforms.first[1] = share->first_point;
    uniforms.count[0] = share->end_pair;
    uniforms.count[1] = (int32_t)listing->capacity;
    struct gl_pass pass = {.label = gl_program_label(program),
                           .program = program,
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .groups = {share->end_point - share->first_point, 1, 1},
                           .barriers =
                               GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    lr_columns_bind_scene(columns, &pass);
    pass.buffers[LR_BIND_COLUMN_PAIRS].buffer = listing->pair_buffer;
    pass.buffers[LR_BIND_COLUMN_POINTS].buffer = listing->point_buffer;
    pass.buffers[LR_BIND_OUTPUT].buffer = listing->list;
    return gl_pass_run(columns->ctx, &pass);
}

static lr_status run_pairs(const struct listing *listing, struct share *share, const int run[2])
{
    share->end_pair = run[0];
    while (share->end_pair < run[1]) {
        share->begin_pair = share->end_pair;
        const int end = lr_columns_rows_pairs(listing->columns, share->begin_pair);
        share->end_pair = end < run[1] ? end : run[1];
        LR_TRY(run_share(listing, share));
    }
    return LR_OK;
}

/* Lists the elements of some points with the pairs that are wanted. */
static lr_status run_points(const struct listing *listing, int first_point, int end_point)
{
    static const uint32_t zero[HEAD_BYTES / 4] = {0};
    struct share share = {.first_point = first_point, .end_point = end_point};
    LR_TRY(gl_buffer_upload(listing->list, 0, HEAD_BYTES, zero));
    for (int k = 0; k < listing->num_runs; k++) {
        LR_TRY(run_pairs(listing, &share, listing->runs[k]));
    }
    return LR_OK;
}

static lr_status reserve(struct entry **entries, int64_t *room, int64_t needed, const lr_log *log)
{
    if (needed > *room) {
        struct entry *grown = lr_resize(*entries, needed, sizeof(*grown), "matrix elements", log);
        if (grown == NULL) {
            return LR_FAILED;
        }
        *entries = grown;
        *room = needed;
    }
    return LR_OK;
}

static lr_status read_list(struct listing *listing, uint32_t count)
{
    const int64_t needed = listing->num_entries + count;
    LR_TRY(reserve(&listing->entries, &listing->max_entries, needed, log_of(listing)));
    LR_TRY(gl_buffer_read(listing->list, HEAD_BYTES, count * (int64_t)sizeof(struct entry),
                          listing->entries + listing->num_entries));
    listing->num_entries = needed;
    return LR_OK;
}

/* A list that holds one point, whatever it needs. */
static lr_status grow_list(struct listing *listing, uint32_t count)
{
    if (count > most_capacity(listing)) {
        return lr_error(log_of(listing), LR_FAILED,
                        "%u matrix elements of one point are more than the device's buffers hold "
                        "(%lld): use backend cpu",
                        count, (long long)most_capacity(listing));
    }
    return make_list(listing, count);
}

/* Where the list is too short: first one half of the points, then the other. */
static lr_status list_points(struct listing *listing, int first_point, int end_point)
{
    uint32_t count;
    LR_TRY(run_points(listing, first_point, end_point));
    LR_TRY(gl_buffer_read(listing->list, 0, sizeof(count), &count));
    if (count <= listing->capacity) {
        return read_list(listing, count);
    }
    if (end_point - first_point == 1) {
        LR_TRY(grow_list(listing, count));
        return list_points(listing, first_point, end_point);
    }
    const int middle = first_point + (end_point - first_point) / 2;
    LR_TRY(list_points(listing, first_point, middle));
    return list_points(listing, middle, end_point);
}

/* --- rows --- */

static lr_status sort_by_point(struct listing *listing, int num_points)
{
    int64_t *begin = listing->point_begin;
    LR_TRY(reserve(&listing->sorted, &listing->max_sorted, listing->num_entries, log_of(listing)));
    memset(begin, 0, ((size_t)num_points + 1) * sizeof(*begin));
    for (int64_t k = 0; k < listing->num_entries; k++) {
        begin[listing->entries[k].point + 1]++;
    }
    for (int point = 0; point < num_points; point++) {
        begin[point + 1] += begin[point];
    }
    for (int64_t k = 0; k < listing->num_entries; k++) {
        listing->sorted[begin[listing->entries[k].point]++] = listing->entries[k];
    }
    memmove(begin + 1, begin, (size_t)num_points * sizeof(*begin));
    begin[0] = 0;
    return LR_OK;
}

static lr_status fetch_batch(void *user, const struct lr_batch *batch)
{
    struct listing *listing = user;
    listing->num_entries = 0;
    LR_TRY(gl_buffer_upload(listing->point_buffer, 0,
                            batch->num_images * (int64_t)sizeof(*listing->points),
                            listing->points));
    LR_TRY(list_points(listing, 0, batch->num_images));
    return sort_by_point(listing, batch->num_images);
}

/* A point has a LOR once at most, so the order in which its elements came does not matter; points
 * are added up in their order. */
static lr_status fill_row(void *user, const struct lr_plan_row *row, struct lr_elements *list)
{
    const struct listing *listing = user;
    for (int64_t k = listing->point_begin[row->first_image];
         k < listing->point_begin[row->end_image]; k++) {
        const struct entry *entry = &listing->sorted[k];
        LR_TRY(lr_elements_add(list, entry->lor, listing->factor * (double)entry->weight,
                               log_of(listing)));
    }
    return LR_OK;
}

/* --- life of a listing --- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Points of a batch, and the list that they need by estimate. */
static lr_status size_batches(struct listing *listing, const struct lr_rows *rows)
{
    const struct lr_columns *columns = listing->columns;
    const lr_scanner *scanner = columns->params.scanner;
    const int64_t per_point = ROOM * (int64_t)scanner->first_crystal[scanner->num_modules];
    const int64_t budget =
        columns->max_window * (int64_t)sizeof(float) / (int64_t)sizeof(struct entry);
    const int64_t most = smaller(smaller(most_capacity(listing), MOST_ENTRIES),
                                 budget > FEWEST_ENTRIES ? budget : FEWEST_ENTRIES);
    const int64_t wanted = (rows->end - rows->begin) * lr_rows_per_row(rows);
    const int64_t points = smaller(smaller(most / per_point, MOST_POINTS), wanted);
    listing->max_points = points > 0 ? (int)points : 1;
    return make_list(listing, smaller(most, listing->max_points * per_point));
}

static void find_runs(struct listing *listing, const struct lr_rows *rows)
{
    int(*runs)[2] = listing->runs;
    const int64_t num = rows->num_pairs;
    if (rows->pairs == NULL) {
        runs[0][1] = (int)listing->columns->params.lors->num_pairs;
        listing->num_runs = 1;
        return;
    }
    for (int64_t k = 0; k < num; k++) {
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

static lr_status open_listing(struct listing *listing, const struct lr_rows *rows)
{
    struct lr_columns *columns = listing->columns;
    const struct lr_pair_list all = {0};
    find_runs(listing, rows);
    LR_TRY(size_batches(listing, rows));
    const int64_t points = listing->max_points;
    listing->pair_buffer =
        lr_columns_upload_pairs(columns, &all, 0, columns->params.lors->num_pairs);
    listing->point_buffer = gl_buffer_create(
        columns->ctx,
        &(struct gl_buffer_params){.label = "points of the batch",
                                   .size_bytes = points * (int64_t)sizeof(point_parts)});
    listing->points = lr_alloc(points, sizeof(*listing->points), "points", log_of(listing));
    listing->rows = lr_alloc(points, sizeof(*listing->rows), "rows", log_of(listing));
    listing->point_begin =
        lr_alloc(points + 1, sizeof(*listing->point_begin), "points", log_of(listing));
    return listing->pair_buffer && listing->point_buffer && listing->points && listing->rows &&
                   listing->point_begin
               ? LR_OK
               : LR_FAILED;
}

static void close_listing(struct listing *listing)
{
    gl_buffer_destroy(listing->list);
    gl_buffer_destroy(listing->point_buffer);
    gl_buffer_destroy(listing->pair_buffer);
    free(listing->point_begin);
    free(listing->sorted);
    free(listing->entries);
    free(listing->rows);
    free(listing->points);
}

lr_status lr_columns_read_rows(struct lr_columns *columns, const struct lr_rows *rows,
                               const lr_row_sink *sink)
{
    struct listing listing = {.columns = columns,
                              .which = rows->grid ? LR_COLUMNS_ROWS : LR_COLUMNS_POINT_ROWS,
                              .factor = 1.0 / lr_rows_per_row(rows)};
    lr_status status = open_listing(&listing, rows);
    if (status == LR_OK) {
        const struct lr_row_batches batches = {
            .source = {next_points, fetch_batch, fill_row, &listing},
            .num_lors = columns->params.lors->count,
            .max_rows = listing.max_points,
            .threads = columns->params.threads,
            .log = columns->params.log,
            .progress = columns->params.progress};
        status = lr_row_batches_deliver(&batches, rows, sink);
    }
    close_listing(&listing);
    return status;
}
