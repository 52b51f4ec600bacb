/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/point_lists.h"

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "render/row_batches.h"

#include <stdlib.h>
#include <string.h>

/* One element of the list. */
struct entry {
    uint32_t point, lor;
    float weight;
    uint32_t unused;
};
_Static_assert(sizeof(struct entry) == 16, "uvec4");

/* The list's head holds its count. ROOM: elements per crystal of the scanner that a point has room
 * for; equal crystals that face each other at half a pitch's offset make two. A batch that needs
 * more is done in halves. */
enum { HEAD_BYTES = 16, ROOM = 3, MOST_POINTS = 4096, FEWEST_ENTRIES = 1024 };
enum { MOST_ENTRIES = 1 << 24, FIRST_POINTS = 64 };

/* How long a batch may take: between two of them is asked whether to stop. */
#define BATCH_SECONDS 0.25

/* State of one call. */
struct listing {
    const struct lr_point_lister *lister;
    double factor;  /* 1 / points per row */
    int max_points; /* of a batch */
    int points_now; /* of the next one: renderers in software take seconds for all of them */
    double begun_s; /* when the last one began; 0 = none has */
    char *points;   /* [max_points] */
    struct lr_plan_row *rows;
    struct gl_buffer *point_buffer, *list;
    int64_t capacity;      /* of the list, entries */
    struct entry *entries; /* of the batch, as they came */
    struct entry *sorted;  /* [num_entries], by point */
    int64_t num_entries, max_entries, max_sorted;
    int64_t *point_begin; /* [max_points + 1] */
};

static const lr_log *log_of(const struct listing *listing)
{
    return listing->lister->params->log;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- batches of points --- */

static void take_points(struct listing *listing, const struct lr_rows *rows,
                        const struct lr_plan_row *row, int first_point)
{
    const struct lr_point_lister *lister = listing->lister;
    for (uint32_t n = row->first_image; n < row->end_image; n++) {
        double point_mm[3];
        lr_rows_point(rows, rows->begin + row->row, first_point + (int)(n - row->first_image),
                      point_mm);
        lister->place(lister->user, point_mm, listing->points + n * lister->point_bytes);
    }
}

static void choose_points(struct listing *listing)
{
    const double now_s = lr_clock_seconds(), taken_s = now_s - listing->begun_s;
    if (listing->begun_s > 0.0 && taken_s < 0.4 * BATCH_SECONDS) {
        listing->points_now = (int)smaller(2 * (int64_t)listing->points_now, listing->max_points);
    } else if (listing->begun_s > 0.0 && taken_s > BATCH_SECONDS && listing->points_now > 1) {
        listing->points_now /= 2;
    }
    listing->begun_s = now_s;
}

/* As many points as a batch is to have; an image is a point here. */
static bool next_points(void *user, const struct lr_rows *rows, struct lr_plan_cursor *cursor,
                        struct lr_batch *batch)
{
    struct listing *listing = user;
    const int per_row = lr_rows_per_row(rows);
    *batch = (struct lr_batch){.rows = listing->rows};
    choose_points(listing);
    while (cursor->row < rows->end - rows->begin && batch->num_images < listing->points_now) {
        const int room = listing->points_now - batch->num_images;
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
    const struct gl_limits *limits = gl_context_limits(listing->lister->ctx);
    return (limits->max_storage_bytes - HEAD_BYTES) / (int64_t)sizeof(struct entry);
}

static lr_status make_list(struct listing *listing, int64_t capacity)
{
    gl_buffer_destroy(listing->list);
    listing->capacity = capacity;
    listing->list =
        gl_buffer_create(listing->lister->ctx,
                         &(struct gl_buffer_params){
                             .label = "matrix elements",
                             .size_bytes = HEAD_BYTES + capacity * (int64_t)sizeof(struct entry)});
    return listing->list ? LR_OK : LR_FAILED;
}

/* Lists the elements of some points. */
static lr_status run_points(const struct listing *listing, int first_point, int end_point)
{
    static const uint32_t zero[HEAD_BYTES / 4] = {0};
    const struct lr_point_list list = {.points = listing->point_buffer,
                                       .list = listing->list,
                                       .capacity = listing->capacity,
                                       .first_point = first_point,
                                       .end_point = end_point};
    LR_TRY(gl_buffer_upload(listing->list, 0, HEAD_BYTES, zero));
    return listing->lister->run(listing->lister->user, &list);
}

static lr_status read_list(struct listing *listing, uint32_t count)
{
    const int64_t needed = listing->num_entries + count;
    const struct lr_items items = {sizeof(*listing->entries), "matrix elements", log_of(listing)};
    LR_TRY(lr_grow(&listing->entries, &listing->max_entries, needed, &items));
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
    const struct lr_items items = {sizeof(*listing->sorted), "matrix elements", log_of(listing)};
    LR_TRY(lr_grow(&listing->sorted, &listing->max_sorted, listing->num_entries, &items));
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
                            batch->num_images * listing->lister->point_bytes, listing->points));
    LR_TRY(list_points(listing, 0, batch->num_images));
    return sort_by_point(listing, batch->num_images);
}

/* Repeats of a LOR in a point came in the order of their thread, and points are added up in theirs:
 * the sum is always the same. */
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

/* Points of a batch, and the list that they need by estimate. */
static lr_status size_batches(struct listing *listing, const struct lr_rows *rows)
{
    const lr_scanner *scanner = listing->lister->params->scanner;
    const int64_t per_point = ROOM * (int64_t)scanner->first_crystal[scanner->num_modules];
    const int64_t budget =
        listing->lister->max_window * (int64_t)sizeof(float) / (int64_t)sizeof(struct entry);
    const int64_t most = smaller(smaller(most_capacity(listing), MOST_ENTRIES),
                                 budget > FEWEST_ENTRIES ? budget : FEWEST_ENTRIES);
    const int64_t wanted = (rows->end - rows->begin) * lr_rows_per_row(rows);
    const int64_t points = smaller(smaller(most / per_point, MOST_POINTS), wanted);
    listing->max_points = points > 0 ? (int)points : 1;
    listing->points_now = (int)smaller(listing->max_points, FIRST_POINTS);
    return make_list(listing, smaller(most, listing->max_points * per_point));
}

static lr_status open_listing(struct listing *listing, const struct lr_rows *rows)
{
    const int64_t point_bytes = listing->lister->point_bytes;
    LR_TRY(size_batches(listing, rows));
    const int64_t points = listing->max_points;
    listing->point_buffer = gl_buffer_create(
        listing->lister->ctx, &(struct gl_buffer_params){.label = "points of the batch",
                                                         .size_bytes = points * point_bytes});
    listing->points = lr_alloc(points, (size_t)point_bytes, "points", log_of(listing));
    listing->rows = lr_alloc(points, sizeof(*listing->rows), "rows", log_of(listing));
    listing->point_begin =
        lr_alloc(points + 1, sizeof(*listing->point_begin), "points", log_of(listing));
    return listing->point_buffer && listing->points && listing->rows && listing->point_begin
               ? LR_OK
               : LR_FAILED;
}

static void close_listing(struct listing *listing)
{
    gl_buffer_destroy(listing->list);
    gl_buffer_destroy(listing->point_buffer);
    free(listing->point_begin);
    free(listing->sorted);
    free(listing->entries);
    free(listing->rows);
    free(listing->points);
}

lr_status lr_point_lists_read_rows(const struct lr_point_lister *lister, const struct lr_rows *rows,
                                   const lr_row_sink *sink)
{
    struct listing listing = {.lister = lister, .factor = 1.0 / lr_rows_per_row(rows)};
    lr_status status = open_listing(&listing, rows);
    if (status == LR_OK) {
        const struct lr_row_batches batches = {
            .source = {next_points, fetch_batch, fill_row, &listing},
            .num_lors = lister->params->lors->count,
            .max_rows = listing.max_points,
            .threads = lister->params->threads,
            .log = lister->params->log,
            .progress = lister->params->progress};
        status = lr_row_batches_deliver(&batches, rows, sink);
    }
    close_listing(&listing);
    return status;
}
