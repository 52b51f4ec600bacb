/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows from a list of elements, image by image. */
#include "render/points/points.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "render/penetration.h"
#include "render/row_batches.h"

#include <stdlib.h>
#include <string.h>

/* One entry of the list, as shaders/points/rows.comp writes it. */
struct entry {
    uint32_t image, lor;
    float weight;
    uint32_t thread; /* of the group */
};
_Static_assert(sizeof(struct entry) == 16, "uvec4");

/* The list's head holds its count. ROOM: elements that a crystal has room for on average; seen
 * through a far larger one it has less than one, through far smaller ones more than this. */
enum { HEAD_BYTES = 16, ROOM = 12, MOST_ENTRIES = 1 << 24 };

/* With penetration each line has elements of its own: of a few crystals at one end with a few at the
 * other. Lines along a module have more, lines that end nowhere none. */
enum { ROOM_PER_LINE = 12 };

/* State of one call of lr_points_read_rows. */
struct listing {
    struct lr_points *points;
    struct lr_plan *plan; /* of batches that the list surely has room for */
    double factor;        /* 1 / points per row */
    int num_images;
    struct gl_buffer *list;
    int64_t capacity;      /* entries */
    struct entry *entries; /* [capacity], as they came */
    struct entry *sorted;  /* [capacity], by image */
    uint32_t *image_begin; /* [max_images + 1] */
};

/* Brings the elements of each thread together, in the order in which it found them: with
 * penetration the repeats of a LOR come from several threads, and the order of their sum must not
 * depend on which was first. */
static void sort_by_thread(struct listing *listing, uint32_t count)
{
    uint32_t begin[LR_GROUP_SIZE + 1] = {0};
    for (uint32_t k = 0; k < count; k++) begin[listing->entries[k].thread + 1]++;
    for (int thread = 0; thread < LR_GROUP_SIZE; thread++) begin[thread + 1] += begin[thread];
    for (uint32_t k = 0; k < count; k++) listing->sorted[begin[listing->entries[k].thread]++] = listing->entries[k];
    struct entry *swapped = listing->entries;
    listing->entries = listing->sorted;
    listing->sorted = swapped;
}

/* Sorts by image and keeps the order of coming within one: repeats of a LOR come from one thread,
 * so their order, and with it the sum's last bit, is always the same. */
static void sort_by_image(struct listing *listing, uint32_t count)
{
    uint32_t *begin = listing->image_begin;
    memset(begin, 0, ((size_t)listing->num_images + 1) * sizeof(*begin));
    for (uint32_t k = 0; k < count; k++) begin[listing->entries[k].image + 1]++;
    for (int image = 0; image < listing->num_images; image++) begin[image + 1] += begin[image];
    for (uint32_t k = 0; k < count; k++) listing->sorted[begin[listing->entries[k].image]++] = listing->entries[k];
    for (int image = listing->num_images; image > 0; image--) begin[image] = begin[image - 1];
    begin[0] = 0;
}

static lr_status read_list(struct listing *listing)
{
    uint32_t count;
    LR_TRY(gl_buffer_read(listing->list, 0, sizeof(count), &count));
    if (count > listing->capacity) {
        return lr_error(listing->points->params.log, LR_FAILED,
                        "%u matrix elements do not fit the list of %lld: the crystals of one "
                        "module are far smaller than another's; use backend cpu",
                        count, (long long)listing->capacity);
    }
    LR_TRY(gl_buffer_read(listing->list, HEAD_BYTES, count * (int64_t)sizeof(struct entry), listing->entries));
    if (listing->points->params.penetration) sort_by_thread(listing, count);
    sort_by_image(listing, count);
    return LR_OK;
}

static bool next_batch(void *user, const struct lr_rows *rows, struct lr_plan_cursor *cursor, struct lr_batch *batch)
{
    const struct listing *listing = user;
    return lr_row_batches_plan(listing->plan, rows, cursor, batch);
}

static lr_status fetch_batch(void *user, const struct lr_batch *batch)
{
    static const uint32_t zero[HEAD_BYTES / 4] = {0};
    struct listing *listing = user;
    const struct lr_points_output output = {
        .buffer = listing->list, .num_lors = listing->points->params.lors->count, .capacity = listing->capacity};
    listing->num_images = batch->num_images;
    LR_TRY(lr_points_upload(listing->points, batch));
    LR_TRY(gl_buffer_upload(listing->list, 0, HEAD_BYTES, zero));
    LR_TRY(lr_points_run(listing->points, LR_POINTS_ROWS, batch, &output));
    return read_list(listing);
}

static lr_status fill_row(void *user, const struct lr_plan_row *row, struct lr_elements *list)
{
    const struct listing *listing = user;
    for (uint32_t k = listing->image_begin[row->first_image]; k < listing->image_begin[row->end_image]; k++) {
        const struct entry *entry = &listing->sorted[k];
        LR_TRY(lr_elements_add(list, entry->lor, listing->factor * (double)entry->weight, listing->points->params.log));
    }
    return LR_OK;
}

static int64_t largest_module(const lr_scanner *scanner)
{
    int64_t largest = 1;
    for (int m = 0; m < scanner->num_modules; m++) {
        const int64_t crystals = (int64_t)scanner->modules[m].crystals[0] * scanner->modules[m].crystals[1];
        largest = crystals > largest ? crystals : largest;
    }
    return largest;
}

/* Images of one batch at most: what the rows can need, and what a batch holds. */
static int64_t most_images(const struct lr_points *points, const struct lr_rows *rows)
{
    const int64_t modules = points->params.scanner->num_modules;
    const int64_t wanted = (rows->end - rows->begin) * lr_rows_per_row(rows);
    const int64_t batch = points->plan->max_images;
    return wanted < batch / modules ? (wanted > 0 ? wanted : 1) * modules : batch;
}

/* Elements that an image has room for. */
static int64_t image_room(const struct lr_points *points)
{
    const struct lr_backend_params *params = &points->params;
    return params->penetration ? ROOM_PER_LINE * lr_penetration_most_lines(params->scanner, params->rays)
                               : ROOM * largest_module(params->scanner);
}

/* As many images in a batch as the list surely has room for. */
static struct lr_plan *make_plan(const struct listing *listing)
{
    const struct lr_plan *plan = listing->points->plan;
    const int64_t fitting = listing->capacity / image_room(listing->points);
    return lr_plan_create(
        &(struct lr_plan_params){.lors = plan->lors,
                                 .rays = plan->rays,
                                 .max_images = (int)(fitting < plan->max_images ? fitting : plan->max_images),
                                 .penetration = plan->penetration,
                                 .image_crystals = plan->image_crystals,
                                 .log = listing->points->params.log});
}

static lr_status make_list(struct listing *listing, const struct lr_rows *rows)
{
    const int64_t wanted = image_room(listing->points) * most_images(listing->points, rows);
    const lr_log *log = listing->points->params.log;
    const int64_t most =
        (gl_context_limits(listing->points->ctx)->max_storage_bytes - HEAD_BYTES) / (int64_t)sizeof(struct entry);
    listing->capacity = most < MOST_ENTRIES ? most : MOST_ENTRIES;
    listing->capacity = wanted < listing->capacity ? wanted : listing->capacity;
    listing->list = gl_buffer_create(
        listing->points->ctx,
        &(struct gl_buffer_params){.label = "matrix elements",
                                   .size_bytes = HEAD_BYTES + listing->capacity * (int64_t)sizeof(struct entry)});
    listing->entries = lr_alloc(listing->capacity, sizeof(*listing->entries), "matrix elements", log);
    listing->sorted = lr_alloc(listing->capacity, sizeof(*listing->sorted), "matrix elements", log);
    listing->image_begin =
        lr_alloc(listing->points->plan->max_images + 1, sizeof(*listing->image_begin), "images", log);
    return listing->list && listing->entries && listing->sorted && listing->image_begin ? LR_OK : LR_FAILED;
}

lr_status lr_points_read_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink)
{
    struct lr_points *points = self;
    const struct lr_pair_window all = lr_pair_window_all(points->params.lors);
    LR_TRY(lr_scene_set_window(&points->scene, &all));
    struct listing listing = {.points = points, .factor = 1.0 / lr_rows_per_row(rows)};
    lr_status status = make_list(&listing, rows);
    if (status == LR_OK) {
        listing.plan = make_plan(&listing);
        status = listing.plan ? LR_OK : LR_FAILED;
    }
    if (status == LR_OK) {
        const struct lr_row_batches batches = {.source = {next_batch, fetch_batch, fill_row, &listing},
                                               .num_lors = points->params.lors->count,
                                               .max_rows = listing.plan->max_images,
                                               .threads = points->params.threads,
                                               .log = points->params.log,
                                               .progress = points->params.progress};
        status = lr_row_batches_deliver(&batches, rows, sink);
    }
    lr_plan_destroy(listing.plan);
    gl_buffer_destroy(listing.list);
    free(listing.image_begin);
    free(listing.sorted);
    free(listing.entries);
    return status;
}
