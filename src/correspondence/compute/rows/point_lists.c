/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "correspondence/compute/rows/merge.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "gl/vectors.h"

#include <stdlib.h>
#include <string.h>

/* ROOM: number of elements of a point for which the list has room, per crystal of the scanner. A crystal has two
 * elements if crystals of equal size face each other with an offset of half a pitch. SLOTS: slots of a row's table per
 * crystal; tables work best if half of their slots are empty. A batch that needs more room is split into halves. */
enum { ROOM = 3, SLOTS = 4, MOST_POINTS = 4096, FEWEST_ENTRIES = 1024, FIRST_POINTS = 64 };

/* The largest memory on the device for all points of a batch, bytes. */
#define MOST_BYTES ((int64_t)1 << 29)

/* The longest time of a batch, s. Cancellation is checked between two batches. */
#define BATCH_SECONDS 0.25

/* State of a call of lr_point_lists_read_rows. Points are numbered from the first point of the first row. */
struct listing {
    const struct lr_point_lister *lister;
    const struct lr_rows *rows;
    int per_row;      /* points of a row */
    int max_points;   /* largest number of points of a batch */
    int least_points; /* smallest number of points of a batch: a row or, if a row has more, max_points; 1 if the host
                         merges */
    int points_now;   /* number of points of the next batch; less than max_points if a batch of max_points takes too
                         long */
    double begun_s;   /* start of the last batch; 0 = none */
    double started_s, waited_s, delivered_s; /* times of all batches for starting them, for waiting for the device, and
                                                for delivering rows, s */
    int64_t num_batches, num_again;          /* number of batches; number of times that points had to be listed again */
    int64_t num_elements;                    /* number of elements of all batches */
    char *points;                            /* [max_points] */
    struct gl_buffer *point_buffer;
    int64_t begin, end; /* points of the batch */
    int64_t num_points; /* points of all rows */
    struct lr_merge merge;
    struct lr_host_merge host; /* used if the device is the processor */
    struct lr_receiver receiver;
    struct lr_deliverer deliverer; /* has the rows of the previous batch while the device works on the next one */
};

/* --- batches of points --- */

/* Chooses the range of the next batch: several whole rows, or a part of one row that has more points than a batch can
 * have. */
static bool next_batch(struct listing *listing)
{
    const double now_s = lr_clock_seconds(), taken_s = now_s - listing->begun_s;
    if (listing->begun_s > 0.0 && taken_s < 0.4 * BATCH_SECONDS)
        listing->points_now = (int)lr_smaller(2 * (int64_t)listing->points_now, listing->max_points);
    else if (listing->begun_s > 0.0 && taken_s > BATCH_SECONDS)
        listing->points_now = (int)lr_larger(listing->points_now / 2, listing->least_points);
    listing->begun_s = now_s;

    const int per_row = listing->per_row, points = listing->points_now;
    const int64_t begin = listing->end;
    const int64_t row_end = begin - begin % per_row + per_row;
    const int64_t whole = points >= per_row ? points - points % per_row : points;
    listing->begin = begin;
    listing->end = lr_smaller(begin % per_row > 0 || points < per_row ? row_end : INT64_MAX,
                              lr_smaller(begin + whole, listing->num_points));
    return listing->end > begin;
}

/* --- the list on the device --- */

static int64_t most_capacity(const struct listing *listing)
{
    const struct gl_limits *limits = gl_context_limits(listing->lister->ctx);
    return (limits->max_storage_bytes - LR_LIST_HEAD_BYTES) / LR_LIST_ELEMENT_BYTES;
}

/* Lists the elements of some points of the batch, and queues the merge of the list. */
static lr_status run_points(struct listing *listing, const int range[2])
{
    static const uint32_t zero[LR_LIST_HEAD_BYTES / 4] = {0};
    const struct lr_merge_part part = {range[1] - range[0], range[0]};
    struct gl_buffer *list = listing->merge.list;
    const struct lr_point_list points = {.points = listing->point_buffer,
                                         .list = list,
                                         .capacity = listing->merge.capacity,
                                         .first_point = range[0],
                                         .end_point = range[1]};
    LR_TRY(gl_buffer_upload(list, 0, sizeof(zero), zero));
    LR_TRY(listing->lister->run(listing->lister->user, &points));
    return listing->merge.list_only ? LR_OK : lr_receiver_start(&listing->receiver, &listing->merge, &part);
}

/* --- the rows of a list --- */

/* Takes the rows for a range of points. rows: the rows, merged by the device; NULL = the host has merged the rows, and
 * the sink receives them now. If the device's rows are a whole batch, they stay in the receiver until they are
 * delivered. */
static lr_status take_rows(struct listing *listing, const int range[2], const struct lr_received *rows)
{
    struct lr_deliverer *deliverer = &listing->deliverer;
    const int64_t per_row = listing->per_row;
    const int64_t points[2] = {listing->begin + range[0], listing->begin + range[1]};
    const int64_t first = points[0] / per_row;
    const bool is_batch = points[0] == listing->begin && points[1] == listing->end;
    if (rows != NULL && is_batch) deliverer->borrowed = rows->elements;
    for (int64_t row = first; row * per_row < points[1]; row++) {
        const struct lr_elements *elements = rows == NULL ? &listing->host.rows[row - first] : NULL;
        const uint32_t *start = rows != NULL ? rows->tally->starts + (row - first) : NULL;
        const struct lr_row_part part = {.row = listing->rows->begin + row,
                                         .count = rows != NULL ? start[1] - start[0] : elements->count,
                                         .begins = points[0] <= row * per_row,
                                         .ends = points[1] >= (row + 1) * per_row};
        listing->num_elements += part.count;
        /* The elements of a part of the batch are copied, because the next part will overwrite the
         * receiver's memory. */
        const struct lr_packed_element *copied = rows != NULL && !is_batch ? rows->elements + start[0] : NULL;
        LR_TRY(rows != NULL ? lr_deliverer_add(deliverer, &part, copied)
                            : lr_deliverer_take(deliverer, &part, elements));
    }
    return LR_OK;
}

static lr_status list_points(struct listing *listing, const int range[2]);

/* Takes the rows of points whose elements were listed. If the list had too little room, the points are listed again, in
 * a larger list or in halves. */
static lr_status read_points(struct listing *listing, const int range[2])
{
    const int num_points = range[1] - range[0];
    const struct lr_merge_part part = {num_points, range[0]};
    const bool on_host = listing->merge.list_only;
    struct lr_received rows;
    uint32_t listed = 0;
    bool fits = num_points == 1;
    if (on_host) {
        LR_TRY(lr_host_merge_run(&listing->host, &listing->merge, &part, &listed));
    } else {
        LR_TRY(lr_receiver_finish(&listing->receiver, &listing->merge, &part, &rows));
        listed = rows.tally->listed;
    }
    if (listed > listing->merge.capacity) {
        if (fits && listed > most_capacity(listing))
            return lr_error(listing->lister->params->log, LR_FAILED,
                            "%u matrix elements of one point are more than the device's buffers hold "
                            "(%lld): use backend cpu",
                            listed, (long long)most_capacity(listing));
        if (fits) LR_TRY(lr_merge_grow_list(&listing->merge, listed));
    } else if (!on_host && rows.tally->misfits > 0) {
        LR_TRY(lr_merge_grow_tables(&listing->merge, num_points, &fits));
    } else {
        return take_rows(listing, range, on_host ? NULL : &rows);
    }
    if (fits) return list_points(listing, range);

    /* Later batches are made smaller, too, because they would probably have to be split as well. */
    listing->max_points = (int)lr_larger(lr_smaller(listing->max_points, num_points / 2), listing->least_points);
    listing->points_now = (int)lr_smaller(listing->points_now, listing->max_points);

    /* If there are several rows, the first half is made of whole rows. */
    const int half = num_points / 2;
    const int middle = range[0] + (half >= listing->per_row ? half - half % listing->per_row : half);
    LR_TRY(list_points(listing, (const int[2]){range[0], middle}));
    return list_points(listing, (const int[2]){middle, range[1]});
}

static lr_status list_points(struct listing *listing, const int range[2])
{
    listing->num_again++;
    LR_TRY(run_points(listing, range));
    return read_points(listing, range);
}

/* --- rows --- */

static lr_status deliver_batch(struct listing *listing, int64_t end)
{
    const int64_t per_row = listing->per_row;
    const double begin_s = lr_clock_seconds();
    LR_TRY(lr_deliverer_deliver(&listing->deliverer));
    listing->delivered_s += lr_clock_seconds() - begin_s;
    return lr_progress_report(listing->lister->params->progress, "rendering the matrix", (double)(end / per_row),
                              (double)(listing->num_points / per_row));
}

static lr_status read_all(struct listing *listing)
{
    const struct lr_point_lister *lister = listing->lister;
    const struct lr_rows *rows = listing->rows;
    const double begin_s = lr_clock_seconds();
    while (next_batch(listing)) {
        /* Queues the passes of the batch. The rows of the previous batch are delivered while the device works. */
        const int num_points = (int)(listing->end - listing->begin);
        const double starting_s = lr_clock_seconds();
        listing->num_batches++;
        for (int64_t n = listing->begin; n < listing->end; n++) {
            double point_mm[3];
            lr_rows_point(rows, rows->begin + n / listing->per_row, (int)(n % listing->per_row), point_mm);
            lister->place(lister->user, point_mm, listing->points + (n - listing->begin) * lister->point_bytes);
        }
        LR_TRY(gl_buffer_upload(listing->point_buffer, 0, num_points * lister->point_bytes, listing->points));
        listing->receiver.current = 1 - listing->receiver.current;
        LR_TRY(run_points(listing, (const int[2]){0, num_points}));
        listing->started_s += lr_clock_seconds() - starting_s;

        LR_TRY(deliver_batch(listing, listing->begin));
        const double waiting_s = lr_clock_seconds();
        LR_TRY(read_points(listing, (const int[2]){0, num_points}));
        listing->waited_s += lr_clock_seconds() - waiting_s;
    }
    LR_TRY(deliver_batch(listing, listing->end));
    /* These times show if the device or the sink takes longer. */
    const double seconds = lr_clock_seconds() - begin_s;
    if (seconds > BATCH_SECONDS) {
        lr_debug(lister->params->log,
                 "%lld matrix rows of %lld elements in %.3g s: %.3g s of starting %lld batches, %.3g "
                 "s of waiting for the device (%lld lists made again), %.3g s of handing them over",
                 (long long)(listing->num_points / listing->per_row), (long long)listing->num_elements, seconds,
                 listing->started_s, (long long)listing->num_batches, listing->waited_s, (long long)listing->num_again,
                 listing->delivered_s);
    }
    return LR_OK;
}

lr_status lr_point_lists_read_rows(const struct lr_point_lister *lister, const struct lr_rows *rows,
                                   const lr_row_sink *sink)
{
    const int per_row = lr_rows_per_row(rows);
    const struct lr_backend_params *params = lister->params;
    struct listing listing = {.lister = lister,
                              .rows = rows,
                              .per_row = per_row,
                              .num_points = (rows->end - rows->begin) * per_row,
                              .merge = {.ctx = lister->ctx,
                                        .log = params->log,
                                        .programs = lister->merge,
                                        .list_only = gl_context_limits(lister->ctx)->small_batches,
                                        .repeats = lister->repeats,
                                        .num_lors = params->lors->count,
                                        .per_row = per_row},
                              .receiver = {.ctx = lister->ctx},
                              .host = {.threads = params->threads, .log = params->log},
                              .deliverer = {.num_lors = params->lors->count,
                                            .threads = params->threads,
                                            .log = params->log,
                                            .blocks = rows->blocks,
                                            .delivery = {.sink = sink, .log = params->log}}};

    const int64_t largest = gl_context_limits(lister->ctx)->max_storage_bytes;
    const int64_t budget = lr_smaller(lister->max_window * (int64_t)sizeof(float), MOST_BYTES);
    /* The numbers of elements and of slots for one point are estimated from the number of crystals. Both are halved
     * until the memory limit has room for a point. */
    const lr_scanner *scanner = params->scanner;
    const int64_t crystals = scanner->first_crystal[scanner->num_modules];
    int64_t elements = ROOM * crystals;
    listing.merge.slots = LR_MERGE_LEAST_SLOTS;
    while (listing.merge.slots < SLOTS * crystals) listing.merge.slots *= 2;
    while (listing.merge.slots > LR_MERGE_LEAST_SLOTS && lr_merge_point_bytes(&listing.merge, elements) > budget) {
        listing.merge.slots /= 2;
        elements /= 2;
    }
    const int64_t per_point = elements > FEWEST_ENTRIES ? elements : FEWEST_ENTRIES;
    const int64_t point_bytes = lr_merge_point_bytes(&listing.merge, per_point);
    const int64_t fitting = lr_smaller(
        budget / point_bytes, lr_smaller(most_capacity(&listing) / per_point, largest / (8 * listing.merge.slots) - 1));
    const int64_t points = lr_smaller(lr_smaller(fitting, MOST_POINTS), listing.num_points);
    listing.max_points = points > 0 ? (int)points : 1;
    listing.least_points = listing.merge.list_only ? 1 : (int)lr_smaller(listing.max_points, listing.per_row);
    listing.points_now = (int)lr_larger(lr_smaller(listing.max_points, FIRST_POINTS), listing.least_points);
    listing.merge.max_points = listing.max_points;
    listing.merge.capacity = lr_smaller(most_capacity(&listing), listing.max_points * per_point);

    lr_status status = lr_merge_open(&listing.merge);
    if (status == LR_OK) {
        listing.point_buffer =
            gl_data_buffer(lister->ctx, "points of the batch", listing.max_points * lister->point_bytes, NULL);
        listing.points = lr_alloc(listing.max_points, (size_t)lister->point_bytes, "points", params->log);
        status = listing.point_buffer && listing.points ? read_all(&listing) : LR_FAILED;
    }

    lr_deliverer_finish(&listing.deliverer);
    lr_host_merge_finish(&listing.host);
    lr_merge_finish(&listing.merge);
    lr_receiver_close(&listing.receiver);
    gl_buffer_destroy(listing.point_buffer);
    free(listing.points);
    return status;
}
