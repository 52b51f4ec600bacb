/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Merging of listed elements by hash tables (shaders/correspondence/rows/collect.comp). The merged rows are sorted by a
 * radix sort that begins with the least significant digit. */
#include "correspondence/compute/rows/merge.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "common/bindings.h"
#include "gl/pass.h"

#include <stdlib.h>
#include <string.h>

/* SHARE_SLOTS: number of slots of a table that one thread reads. COLLECT_GROUPS: largest number of workgroups that put
 * elements of the list into tables. */
enum { SHARE_SLOTS = LR_MERGE_LEAST_SLOTS, COLLECT_GROUPS = 1 << 13 };
/* PLACE_THREADS: largest number of threads that turn counts into positions. LEAST_NUMBERS: smallest number of counts
 * per thread. */
enum { PLACE_THREADS = 1 << 12, LEAST_NUMBERS = 16 };

/* MOST_VALUES: largest number of values that one thread adds up, so that threads have similar run times, and loops have
 * far fewer rounds than software renderers allow. LEAST_GATHERED: smallest number of slots that a thread reads, even if
 * they have more values than MOST_VALUES. */
enum { MOST_VALUES = 1 << 13, LEAST_GATHERED = 4 };

/* The alignment of ranges of buffers, bytes. All devices accept this value, and it is a multiple of the host's cache
 * lines. */
enum { ALIGNMENT = 256 };

/* The uniform block of shaders/correspondence/rows/rows.glsl. */
struct block {
    uint32_t total, share, num_shares, row_shares;
    uint32_t slot_bits, num_points, per_row, first_point;
    uint32_t shift, unused[3];
};

/* `define`: a name that the shader is compiled with; NULL = none. `repeats`: true if REPEATS takes the place of
 * `define` when a LOR may be listed several times. */
static const struct {
    const char *shader, *label, *define;
    bool repeats;
} descriptions[LR_NUM_MERGE_PROGRAMS] = {
    [LR_MERGE_COLLECT] = {"correspondence/rows/collect.comp", "matrix elements to tables", NULL, true},
    [LR_MERGE_COUNT] = {"correspondence/rows/gather.comp", "lengths of matrix rows", "COUNT", false},
    [LR_MERGE_GATHER] = {"correspondence/rows/gather.comp", "tables to matrix rows", NULL, true},
    [LR_MERGE_SUM] = {"correspondence/rows/sum.comp", "sums of numbers", NULL, false},
    [LR_MERGE_PLACE] = {"correspondence/rows/place.comp", "places of numbers", NULL, false},
    [LR_MERGE_DIGITS] = {"correspondence/rows/digits.comp", "digits of matrix rows", NULL, false},
    [LR_MERGE_SCATTER] = {"correspondence/rows/scatter.comp", "matrix rows by a digit", NULL, false},
};

void lr_merge_programs_finish(struct lr_merge_programs *programs)
{
    for (int k = 0; k < LR_NUM_MERGE_PROGRAMS; k++) gl_program_destroy(programs->list[k]);
    *programs = (struct lr_merge_programs){0};
}

/* --- memory --- */

static lr_status make_buffer(const struct lr_merge *merge, struct gl_buffer **buffer, const char *label, int64_t bytes)
{
    const int64_t most = gl_context_limits(merge->ctx)->max_storage_bytes;
    gl_buffer_destroy(*buffer);
    *buffer = NULL;
    if (bytes > most) {
        return lr_error(merge->log, LR_FAILED,
                        "%lld bytes for the matrix elements of a few points are more than the "
                        "device's buffers hold (%lld): use backend cpu",
                        (long long)bytes, (long long)most);
    }
    *buffer = gl_buffer_create(merge->ctx, &(struct gl_buffer_params){.label = label, .size_bytes = bytes});
    return *buffer != NULL ? LR_OK : LR_FAILED;
}

static int64_t value_bytes(const struct lr_merge *merge)
{
    return merge->repeats ? 8 : 4;
}

/* Returns the size of half a list, bytes. Each half has room for all merged elements, because a merged element is half
 * as large as a listed one. */
static int64_t half_list_bytes(const struct lr_merge *merge)
{
    const int64_t bytes = (LR_LIST_HEAD_BYTES + merge->capacity * LR_LIST_ELEMENT_BYTES) / 2;
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

int lr_merge_num_rows(const struct lr_merge *merge, int num_points)
{
    return gl_divide_up(num_points, merge->per_row);
}

int64_t lr_merge_tally_bytes(int num_rows)
{
    return (int64_t)sizeof(struct lr_merge_tally) + 4 * ((int64_t)num_rows + 1);
}

static int64_t place_bytes(int64_t slots)
{
    return slots / SHARE_SLOTS * (4 << LR_SORT_BITS);
}

int64_t lr_merge_point_bytes(const struct lr_merge *merge, int64_t elements_of_point)
{
    return elements_of_point * LR_LIST_ELEMENT_BYTES + value_bytes(merge) * merge->slots +
           (4 * merge->slots + place_bytes(merge->slots)) / merge->per_row;
}

lr_status lr_merge_grow_list(struct lr_merge *merge, int64_t capacity)
{
    merge->capacity = capacity;
    return make_buffer(merge, &merge->list, "matrix elements", 2 * half_list_bytes(merge));
}

/* Makes tables with `slots` slots and room for `values` values in total. */
static lr_status make_tables(struct lr_merge *merge, int64_t slots, int64_t values)
{
    merge->all_slots = slots;
    merge->all_values = values;
    LR_TRY(make_buffer(merge, &merge->keys, "LORs of matrix rows", 4 * slots));
    LR_TRY(make_buffer(merge, &merge->values, "values of matrix rows", 8 + values * value_bytes(merge)));
    return make_buffer(merge, &merge->places, "places of matrix elements", place_bytes(slots));
}

/* Returns the number of slots of a row's table for a part of `num_points` points. The number is a power of two. */
static int64_t count_slots(const struct lr_merge *merge, int num_points)
{
    const int rows = lr_merge_num_rows(merge, num_points);
    int64_t slots = merge->slots;
    while (slots > LR_MERGE_LEAST_SLOTS && (slots * rows > merge->all_slots || slots * num_points > merge->all_values))
        slots /= 2;
    return slots;
}

lr_status lr_merge_grow_tables(struct lr_merge *merge, int num_points, bool *fits)
{
    const int64_t before = count_slots(merge, num_points);
    const int64_t most = gl_context_limits(merge->ctx)->max_storage_bytes;
    const bool may_double = 8 + 2 * merge->all_values * value_bytes(merge) <= most;
    const bool is_alone = num_points == 1 || (num_points <= merge->per_row && may_double);

    merge->slots *= 2;
    const bool has_grown = count_slots(merge, num_points) > before;
    *fits = has_grown || is_alone;
    return !has_grown && is_alone ? make_tables(merge, 2 * merge->all_slots, 2 * merge->all_values) : LR_OK;
}

lr_status lr_merge_open(struct lr_merge *merge)
{
    const int rows = lr_merge_num_rows(merge, merge->max_points);
    if (merge->list_only) return lr_merge_grow_list(merge, merge->capacity);
    for (int k = 0; k < LR_NUM_MERGE_PROGRAMS; k++) {
        struct gl_program **program = &merge->programs->list[k];
        struct gl_define defines[3] = {{descriptions[k].define, NULL}};
        if (descriptions[k].repeats && merge->repeats) defines[0].name = "REPEATS";
        if (*program == NULL)
            *program = gl_program_start(merge->ctx, &(struct gl_program_params){.compute = descriptions[k].shader,
                                                                                .defines = defines,
                                                                                .label = descriptions[k].label});
        LR_TRY(*program != NULL ? LR_OK : LR_FAILED);
    }

    LR_TRY(make_buffer(merge, &merge->sums, "sums of numbers", 4 * PLACE_THREADS));
    LR_TRY(make_buffer(merge, &merge->tally, "begins of matrix rows", lr_merge_tally_bytes(rows)));
    LR_TRY(make_tables(merge, rows * merge->slots, merge->max_points * merge->slots));
    return lr_merge_grow_list(merge, merge->capacity);
}

void lr_merge_finish(struct lr_merge *merge)
{
    gl_buffers_destroy(merge->tally, merge->sums, merge->places, merge->values, merge->keys, merge->list);
}

/* --- passes --- */

/* Runs a pass that reads one half of the list and writes to the half with number `to`. */
static lr_status run(const struct lr_merge *merge, enum lr_merge_program which, const struct block *block, int to)
{
    struct gl_program *program = merge->programs->list[which];
    const int64_t half = half_list_bytes(merge);
    const int groups = which == LR_MERGE_COLLECT ? (int)(block->total < COLLECT_GROUPS * LR_GROUP_SIZE
                                                             ? gl_divide_up(block->total, LR_GROUP_SIZE)
                                                             : COLLECT_GROUPS)
                                                 : gl_divide_up(block->num_shares, LR_SORT_GROUP);
    struct gl_pass pass = gl_pass_compute(program, block, sizeof(*block), (const int[3]){groups, 1, 1});
    if (which == LR_MERGE_COLLECT) {
        pass.buffers[LR_BIND_ROWS_LIST].buffer = merge->list;
    } else {
        pass.buffers[LR_BIND_ROWS_FROM] = (struct gl_range){merge->list, (1 - to) * half, half};
        pass.buffers[LR_BIND_ROWS_TO] = (struct gl_range){merge->list, to * half, half};
    }
    gl_pass_bind(&pass, {LR_BIND_ROWS_KEYS, merge->keys}, {LR_BIND_ROWS_VALUES, merge->values},
                 {LR_BIND_ROWS_PLACES, merge->places}, {LR_BIND_ROWS_SUMS, merge->sums},
                 {LR_BIND_ROWS_STARTS, merge->tally});
    return gl_pass_run(merge->ctx, &pass);
}

/* Replaces each of the first `count` numbers of merge->places by the sum of all numbers before it. */
static lr_status make_places(const struct lr_merge *merge, int64_t count)
{
    const int64_t share = gl_divide_up(count, PLACE_THREADS);
    struct block block = {.total = (uint32_t)count, .share = (uint32_t)(share > LEAST_NUMBERS ? share : LEAST_NUMBERS)};
    block.num_shares = (uint32_t)gl_divide_up(count, block.share);
    LR_TRY(run(merge, LR_MERGE_SUM, &block, 0));
    return run(merge, LR_MERGE_PLACE, &block, 0);
}

/* Returns the number of passes of the sort, one for each digit. */
static int num_digits(const struct lr_merge *merge)
{
    int digits = 0;
    while ((merge->num_lors - 1) >> (digits * LR_SORT_BITS) > 0) digits++;
    return digits;
}

lr_status lr_merge_run(const struct lr_merge *merge, const struct lr_merge_part *part)
{
    static const struct lr_merge_tally none = {0};
    static const uint32_t zero = 0;
    const int rows = lr_merge_num_rows(merge, part->num_points);
    const int64_t slots = count_slots(merge, part->num_points);
    struct block block = {.total = (uint32_t)merge->capacity,
                          .share = SHARE_SLOTS,
                          .row_shares = (uint32_t)(slots / SHARE_SLOTS),
                          .num_points = (uint32_t)(part->num_points / rows),
                          .per_row = (uint32_t)merge->per_row,
                          .first_point = (uint32_t)part->first_point};
    block.num_shares = (uint32_t)rows * block.row_shares;
    while ((int64_t)1 << block.slot_bits < slots) block.slot_bits++;

    /* The tables are emptied, then filled with the listed elements. */
    const struct gl_buffer_range keys = {.to = merge->keys, .bytes = 4 * slots * rows};
    const struct gl_buffer_range values = {.to = merge->values,
                                           .bytes = 8 + value_bytes(merge) * slots * part->num_points};
    LR_TRY(gl_buffer_fill_range(&keys, &zero, 1));
    LR_TRY(gl_buffer_fill_range(&values, &zero, 1));
    LR_TRY(gl_buffer_upload(merge->tally, 0, sizeof(none), &none));
    LR_TRY(run(merge, LR_MERGE_COLLECT, &block, 0));

    /* The elements of the tables are written to their rows, in any order. */
    struct block gathering = block;
    while (gathering.share > LEAST_GATHERED && gathering.share * gathering.num_points > MOST_VALUES) {
        gathering.share /= 2;
        gathering.row_shares *= 2;
        gathering.num_shares *= 2;
    }
    LR_TRY(run(merge, LR_MERGE_COUNT, &gathering, 0));
    LR_TRY(make_places(merge, gathering.num_shares));
    LR_TRY(run(merge, LR_MERGE_GATHER, &gathering, 0));

    /* The rows are sorted by one stable pass for each digit. */
    for (int digit = 0; digit < num_digits(merge); digit++) {
        const int to = 1 - digit % 2;
        block.shift = (uint32_t)(digit * LR_SORT_BITS);
        LR_TRY(run(merge, LR_MERGE_DIGITS, &block, to));
        LR_TRY(make_places(merge, (int64_t)block.num_shares << LR_SORT_BITS));
        LR_TRY(run(merge, LR_MERGE_SCATTER, &block, to));
    }
    return LR_OK;
}

/* --- by the host --- */

/* The arguments of merge_rows for one part. */
struct merging {
    struct lr_host_merge *merge;
    const struct lr_merge *list;
    const struct lr_merge_part *part;
};

void lr_host_merge_finish(struct lr_host_merge *merge)
{
    for (int64_t k = 0; k < merge->max_rows; k++) lr_elements_finish(&merge->rows[k]);
    lr_free_all(merge->rows, merge->begin, merge->sorted, merge->listed);
}

/* Merges rows. The elements of a point are in the order in which one thread listed them, and points are added in
 * ascending order. The sums therefore have the same bits in every run. */
static void merge_rows(void *user, int64_t begin, int64_t end)
{
    const struct merging *merging = user;
    const struct lr_host_merge *merge = merging->merge;
    const int64_t per_row = merging->list->per_row, num_points = merging->part->num_points;
    const double factor = 1.0 / (double)per_row;
    for (int64_t row = begin; row < end; row++) {
        const int64_t first = row * per_row, last = first + per_row < num_points ? first + per_row : num_points;
        struct lr_elements *elements = &merge->rows[row];
        lr_status status = LR_OK;
        elements->count = 0;
        for (int64_t k = merge->begin[first]; status == LR_OK && k < merge->begin[last]; k++) {
            const struct lr_listed *listed = &merge->sorted[k];
            status = lr_elements_add(elements, listed->lor, factor * (double)listed->weight, merge->log);
        }
        if (status == LR_OK && last - first == per_row)
            status = lr_elements_merge(elements, merging->list->num_lors, merge->log);
        if (status != LR_OK) elements->count = -1; /* marks a failure, which has been logged */
    }
}

lr_status lr_host_merge_run(struct lr_host_merge *merge, const struct lr_merge *list, const struct lr_merge_part *part,
                            uint32_t *listed)
{
    const int num_rows = lr_merge_num_rows(list, part->num_points);
    LR_TRY(gl_buffer_read(list->list, 0, sizeof(*listed), listed));
    if (*listed > list->capacity) return LR_OK;
    struct merging merging = {merge, list, part};
    const int64_t count = *listed;

    const lr_log *log = merge->log;
    const struct lr_items items = {sizeof(*merge->listed), "matrix elements", log};
    const int64_t max_rows = merge->max_rows;
    LR_TRY(lr_grow(&merge->listed, &merge->max_listed, count, &items));
    LR_TRY(lr_grow(&merge->sorted, &merge->max_sorted, count, &items));
    LR_TRY(lr_grow(&merge->begin, &merge->max_points, part->num_points + 1,
                   &(struct lr_items){sizeof(*merge->begin), "points", log}));
    LR_TRY(lr_grow(&merge->rows, &merge->max_rows, part->num_points,
                   &(struct lr_items){sizeof(*merge->rows), "matrix rows", log}));
    for (int64_t k = max_rows; k < merge->max_rows; k++) merge->rows[k] = (struct lr_elements){0};

    LR_TRY(gl_buffer_read(list->list, LR_LIST_HEAD_BYTES, count * LR_LIST_ELEMENT_BYTES, merge->listed));

    /* Elements are sorted by point; elements of one point keep their order. */
    int64_t *begin = merge->begin;
    const uint32_t first = (uint32_t)part->first_point;
    memset(begin, 0, ((size_t)part->num_points + 1) * sizeof(*begin));
    for (int64_t k = 0; k < count; k++) begin[merge->listed[k].point - first + 1]++;
    for (int point = 0; point < part->num_points; point++) begin[point + 1] += begin[point];
    for (int64_t k = 0; k < count; k++) merge->sorted[begin[merge->listed[k].point - first]++] = merge->listed[k];
    memmove(begin + 1, begin, (size_t)part->num_points * sizeof(*begin));
    begin[0] = 0;

    lr_parallel_for(merge->threads, num_rows, 1, merge_rows, &merging);
    for (int row = 0; row < num_rows; row++) LR_TRY(merge->rows[row].count >= 0 ? LR_OK : LR_FAILED);
    return LR_OK;
}

/* ---- delivery ---- */

/* Numbers of elements that fit into the host's caches. MOST_AT_ONCE: elements that are converted together, unless a
 * single row has more. SHARE: elements that one thread converts. MOST_OF_BLOCK: elements of a block of rows. The
 * receiver of a block (lr_row_block_sink) converts the block's elements itself. */
enum { MOST_AT_ONCE = 1 << 20, MOST_OF_BLOCK = 1 << 22, SHARE = 1 << 15 };

struct conversion {
    const struct lr_packed_element *from;
    struct lr_owned_row *to;
};

void lr_deliverer_finish(struct lr_deliverer *deliverer)
{
    lr_owned_row_finish(&deliverer->delivery.row);
    lr_elements_finish(&deliverer->carried);
    lr_owned_row_finish(&deliverer->numbers);
    lr_free_all(deliverer->parts, deliverer->extents, deliverer->elements);
}

lr_status lr_deliverer_add(struct lr_deliverer *deliverer, const struct lr_row_part *part,
                           const struct lr_packed_element *elements)
{
    const int64_t num_elements = elements != NULL ? part->count : 0;
    LR_TRY(lr_grow(&deliverer->parts, &deliverer->max_parts, deliverer->num_parts + 1,
                   &(struct lr_items){sizeof(*deliverer->parts), "matrix rows", deliverer->log}));
    LR_TRY(lr_grow(&deliverer->elements, &deliverer->max_elements, deliverer->num_elements + num_elements,
                   &(struct lr_items){sizeof(*elements), "matrix elements", deliverer->log}));
    deliverer->parts[deliverer->num_parts++] = *part;
    if (num_elements > 0)
        memcpy(deliverer->elements + deliverer->num_elements, elements, (size_t)num_elements * sizeof(*elements));
    deliverer->num_elements += num_elements;
    return LR_OK;
}

static void convert_share(void *user, int64_t begin, int64_t end)
{
    const struct conversion *conversion = user;
    const struct lr_packed_element *from = conversion->from;
    int64_t *lor = conversion->to->lor;
    double *probability = conversion->to->probability;
    for (int64_t k = begin; k < end; k++) {
        lor[k] = from[k].lor;
        probability[k] = (double)from[k].value;
    }
}

/* Delivers the row whose first parts were kept until its last part arrived. */
static lr_status end_carried(struct lr_deliverer *deliverer, const struct lr_row_part *part)
{
    struct lr_elements *carried = &deliverer->carried;
    if (!part->ends) return LR_OK;
    LR_TRY(lr_elements_merge(carried, deliverer->num_lors, deliverer->log));
    return lr_row_deliver(&deliverer->delivery, part->row, carried);
}

lr_status lr_deliverer_take(struct lr_deliverer *deliverer, const struct lr_row_part *part,
                            const struct lr_elements *elements)
{
    struct lr_elements *carried = &deliverer->carried;
    if (part->begins && part->ends) return lr_row_deliver(&deliverer->delivery, part->row, elements);
    carried->count = part->begins ? 0 : carried->count;
    for (int64_t k = 0; k < elements->count; k++) {
        const struct lr_element *element = &elements->list[k];
        LR_TRY(lr_elements_add(carried, element->lor, element->value, deliverer->log));
    }
    return end_carried(deliverer, part);
}

static bool goes_in_block(const struct lr_deliverer *deliverer, const struct lr_row_part *part)
{
    return deliverer->blocks != NULL && part->begins && part->ends;
}

lr_status lr_deliverer_deliver(struct lr_deliverer *deliverer)
{
    const struct lr_packed_element *all = deliverer->borrowed != NULL ? deliverer->borrowed : deliverer->elements;
    int64_t end = 0, first = 0, count = 0; /* end of the current parts, and the range of their elements */
    for (int64_t begin = 0; begin < deliverer->num_parts; begin = end, first += count) {
        const struct lr_row_part *parts = deliverer->parts + begin;
        const struct lr_packed_element *elements = all + first;
        const bool in_block = goes_in_block(deliverer, parts);
        const int64_t most = in_block ? MOST_OF_BLOCK : MOST_AT_ONCE, left = deliverer->num_parts - begin;
        int64_t num_parts = 1;
        count = parts[0].count;
        while (num_parts < left && count + parts[num_parts].count <= most &&
               goes_in_block(deliverer, &parts[num_parts]) == in_block)
            count += parts[num_parts++].count;
        end = begin + num_parts;

        if (in_block) {
            LR_TRY(lr_grow(&deliverer->extents, &deliverer->max_extents, num_parts,
                           &(struct lr_items){sizeof(*deliverer->extents), "matrix rows", deliverer->log}));
            for (int64_t k = 0; k < num_parts; k++)
                deliverer->extents[k] = (struct lr_row_extent){parts[k].row, parts[k].count};
            const struct lr_row_block block = {.rows = deliverer->extents,
                                               .num_rows = num_parts,
                                               .num_elements = count,
                                               .elements = elements,
                                               .threads = deliverer->threads};
            LR_TRY(deliverer->blocks->take(deliverer->blocks->user, &block));
            continue;
        }
        struct conversion conversion = {elements, &deliverer->numbers};
        LR_TRY(lr_owned_row_reserve(&deliverer->numbers, count, deliverer->log));
        lr_parallel_for(deliverer->threads, count, SHARE, convert_share, &conversion);
        const lr_row_sink *sink = deliverer->delivery.sink;
        const int64_t *lor = deliverer->numbers.lor;
        const double *probability = deliverer->numbers.probability;
        for (const struct lr_row_part *part = parts; part < parts + num_parts; part++) {
            struct lr_elements *carried = &deliverer->carried;
            if (part->begins && part->ends) {
                LR_TRY(sink->take(sink->user, &(lr_row){part->row, part->count, lor, probability}));
            } else {
                /* The parts of a row arrive in the order of the row's points. */
                carried->count = part->begins ? 0 : carried->count;
                for (int64_t k = 0; k < part->count; k++)
                    LR_TRY(lr_elements_add(carried, lor[k], probability[k], deliverer->log));
                LR_TRY(end_carried(deliverer, part));
            }
            lor += part->count;
            probability += part->count;
        }
    }
    deliverer->num_parts = deliverer->num_elements = 0;
    deliverer->borrowed = NULL;
    return LR_OK;
}

/* --- receiving --- */

/* When a copy to the host is queued, the number of elements is not known yet. It is estimated from the previous part.
 * If the estimate is too small, all elements are copied again. */

void lr_receiver_close(struct lr_receiver *receiver)
{
    for (int k = 0; k < 2; k++) gl_readback_finish(&receiver->readbacks[k]);
}

/* Returns the offset of the elements in a readback, bytes. The tally precedes them. */
static int64_t elements_offset(int num_rows)
{
    return (lr_merge_tally_bytes(num_rows) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Queues the copy of the tally and of the first `count` merged elements to the host's memory. */
static lr_status send(struct lr_receiver *receiver, const struct lr_merge *merge, int num_rows, int64_t count)
{
    struct gl_readback *readback = &receiver->readbacks[receiver->current];
    const struct gl_buffer_range tally = {.from = merge->tally, .bytes = lr_merge_tally_bytes(num_rows)};
    /* After the last pass of the sort, the elements of all rows are in one half of the list, row by row. */
    const struct gl_buffer_range elements = {.from = merge->list,
                                             .from_offset = num_digits(merge) % 2 * half_list_bytes(merge),
                                             .to_offset = elements_offset(num_rows),
                                             .bytes = count * (int64_t)sizeof(struct lr_packed_element)};
    /* If a readback has to grow, it gets a quarter more than needed, because later parts may be larger. */
    const int64_t bytes = elements.to_offset + elements.bytes;
    readback->ctx = receiver->ctx;
    readback->label = "received matrix rows";
    if (bytes > readback->size_bytes) LR_TRY(gl_readback_reserve(readback, bytes + bytes / 4));

    LR_TRY(gl_readback_copy(readback, &tally));
    LR_TRY(gl_readback_copy(readback, &elements));
    gl_readback_send(readback);
    receiver->num_sent = count;
    return LR_OK;
}

lr_status lr_receiver_start(struct lr_receiver *receiver, const struct lr_merge *merge,
                            const struct lr_merge_part *part)
{
    const int num_rows = lr_merge_num_rows(merge, part->num_points);
    const double per_point = receiver->elements_of_point > 0.0 ? 1.1 * receiver->elements_of_point
                                                               : (double)merge->capacity / merge->max_points;
    const int64_t guess = 1024 + (int64_t)(per_point * part->num_points);
    LR_TRY(lr_merge_run(merge, part));
    return send(receiver, merge, num_rows, guess < merge->capacity ? guess : merge->capacity);
}

lr_status lr_receiver_finish(struct lr_receiver *receiver, const struct lr_merge *merge,
                             const struct lr_merge_part *part, struct lr_received *received)
{
    const int num_rows = lr_merge_num_rows(merge, part->num_points);
    for (;;) {
        struct gl_readback *readback = &receiver->readbacks[receiver->current];
        LR_TRY(gl_readback_wait(readback));
        received->tally = (const void *)readback->mapped;
        received->elements = (const void *)(readback->mapped + elements_offset(num_rows));
        const struct lr_merge_tally *tally = received->tally;
        const int64_t count = tally->starts[num_rows];
        if (tally->listed > merge->capacity || tally->misfits > 0) return LR_OK;
        receiver->elements_of_point = (double)count / part->num_points;
        if (count <= receiver->num_sent) return LR_OK;
        LR_TRY(send(receiver, merge, num_rows, count)); /* the estimate was too small */
    }
}
