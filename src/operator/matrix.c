/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/matrix.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/parallel.h"
#include "base/units.h"
#include "model/lors/place.h"
#include "model/lors/selection.h"
#include "operator/facade.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_RANGES = 256,
    ELEMENTS_PER_SEGMENT = 8, /* intended mean number of elements of a row in a range */
    SPREAD = 4,               /* largest length of a range, in units of the mean length */
    CHUNK_ELEMENTS = 1 << 22,
    CHUNK_ROWS = 1 << 14,
    SHARE_ROWS = 16, /* number of rows that a thread takes at a time */
    ELEMENT_BYTES = sizeof(uint32_t) + sizeof(float)
};

/* Adds ranges of at most `longest` LORs up to LOR `end`. */
static void add_ranges(struct lr_matrix *matrix, int64_t end, int64_t longest)
{
    int64_t begin = matrix->range_begin[matrix->num_ranges];
    while (begin < end) {
        const int64_t length = end - begin > longest ? longest : end - begin;
        matrix->longest_range = length > matrix->longest_range ? length : matrix->longest_range;
        begin += length;
        matrix->range_begin[++matrix->num_ranges] = begin;
    }
}

static void free_staging(struct lr_matrix *matrix)
{
    lr_free_all(matrix->staging.row_begin, matrix->staging.lor, matrix->staging.value);
    matrix->staging = (struct lr_matrix_staging){0};
}

static void free_chunk(struct lr_matrix_chunk *chunk)
{
    lr_free_all(chunk->split, chunk->lor, chunk->value);
}

lr_status lr_matrix_init(struct lr_matrix *matrix, int64_t num_lors, struct lr_matrix_sample *sample, const lr_log *log)
{
    const int64_t mean = sample->num_rows > 0 ? sample->num_elements / sample->num_rows : 0;
    int64_t ranges = mean / ELEMENTS_PER_SEGMENT;
    ranges = ranges > MAX_RANGES ? MAX_RANGES : ranges;
    ranges = ranges > num_lors ? num_lors : ranges;
    const int wanted = ranges < 1 ? 1 : (int)ranges;
    const int64_t longest = num_lors / wanted * SPREAD + SPREAD;

    *matrix = (struct lr_matrix){.num_lors = num_lors, .log = log};
    struct lr_matrix_staging *staging = &matrix->staging;
    staging->row_capacity = CHUNK_ROWS;
    staging->element_capacity = CHUNK_ELEMENTS;
    matrix->range_begin =
        lr_alloc(wanted + num_lors / longest + 2, sizeof(*matrix->range_begin), "ranges of LORs", log);
    if (matrix->range_begin == NULL) goto failed;
    staging->row_begin = lr_alloc(CHUNK_ROWS + 1, sizeof(*staging->row_begin), "rows of the matrix", log);
    staging->lor = lr_alloc(CHUNK_ELEMENTS, sizeof(*staging->lor), "rows of the matrix", log);
    staging->value = lr_alloc(CHUNK_ELEMENTS, sizeof(*staging->value), "rows of the matrix", log);
    if (staging->row_begin == NULL || staging->lor == NULL || staging->value == NULL) goto failed;

    /* Ranges end at quantiles of the sample, or earlier if they would be longer than `longest`. */
    if (sample->num_elements > 0) {
        qsort(sample->lor, (size_t)sample->num_elements, sizeof(*sample->lor), lr_compare_uints);
        for (int g = 1; g < wanted; g++) add_ranges(matrix, sample->lor[sample->num_elements * g / wanted], longest);
    }
    add_ranges(matrix, num_lors, longest);
    return LR_OK;

failed:
    lr_matrix_finish(matrix);
    return LR_FAILED;
}

void lr_matrix_finish(struct lr_matrix *matrix)
{
    free_staging(matrix);
    for (int64_t k = 0; k < matrix->num_chunks; k++) free_chunk(&matrix->chunks[k]);
    lr_free_all(matrix->chunks, matrix->range_begin);
    *matrix = (struct lr_matrix){0};
}

static int64_t split_bytes(const struct lr_matrix *matrix, int64_t num_rows)
{
    return (matrix->num_ranges * num_rows + 1) * (int64_t)sizeof(uint32_t);
}

/* Staged rows that are being moved into a chunk. */
struct move {
    const struct lr_matrix *matrix;
    struct lr_matrix_chunk *chunk;
};

/* Sets split[g * num_rows + r] to the number of elements of staged row r in range g. */
static void count_segments(void *user, int64_t begin, int64_t end_row)
{
    const struct move *move = user;
    const struct lr_matrix *matrix = move->matrix;
    const struct lr_matrix_chunk *chunk = move->chunk;
    const struct lr_matrix_staging *staging = &matrix->staging;
    for (int64_t r = begin; r < end_row; r++) {
        int64_t at = staging->row_begin[r];
        for (int64_t g = 0; g < matrix->num_ranges; g++) {
            const int64_t end = at + lr_first_uint_at_least(staging->lor + at, staging->row_begin[r + 1] - at,
                                                            matrix->range_begin[g + 1]);
            chunk->split[g * chunk->num_rows + r] = (uint32_t)(end - at);
            at = end;
        }
    }
}

static void copy_segments(void *user, int64_t begin, int64_t end_row)
{
    const struct move *move = user;
    const struct lr_matrix *matrix = move->matrix;
    const struct lr_matrix_chunk *chunk = move->chunk;
    const struct lr_matrix_staging *staging = &matrix->staging;
    for (int64_t r = begin; r < end_row; r++) {
        int64_t from = staging->row_begin[r];
        for (int64_t g = 0; g < matrix->num_ranges; g++) {
            const uint32_t *split = &chunk->split[g * chunk->num_rows + r];
            const size_t count = split[1] - split[0];
            memcpy(chunk->lor + split[0], staging->lor + from, count * sizeof(*chunk->lor));
            memcpy(chunk->value + split[0], staging->value + from, count * sizeof(*chunk->value));
            from += (int64_t)count;
        }
    }
}

static lr_status move_staged(struct lr_matrix *matrix)
{
    struct lr_matrix_staging *staging = &matrix->staging;
    if (staging->num_rows == 0) return LR_OK;
    LR_TRY(lr_grow(&matrix->chunks, &matrix->chunk_capacity, matrix->num_chunks + 1,
                   &(struct lr_items){sizeof(*matrix->chunks), "the list of matrix chunks", matrix->log}));
    struct lr_matrix_chunk *chunk = &matrix->chunks[matrix->num_chunks];
    chunk->num_rows = staging->num_rows;
    chunk->first_row = matrix->num_rows - staging->num_rows;
    chunk->split =
        lr_alloc(matrix->num_ranges * staging->num_rows + 1, sizeof(*chunk->split), "the stored matrix", matrix->log);
    chunk->lor = lr_alloc(staging->num_elements, sizeof(*chunk->lor), "the stored matrix", matrix->log);
    chunk->value = lr_alloc(staging->num_elements, sizeof(*chunk->value), "the stored matrix", matrix->log);
    if (chunk->split == NULL || chunk->lor == NULL || chunk->value == NULL) {
        free_chunk(chunk);
        return LR_FAILED;
    }
    struct move move = {matrix, chunk};
    lr_parallel_for(matrix->threads, chunk->num_rows, SHARE_ROWS, count_segments, &move);
    uint32_t begin = 0;
    for (int64_t k = 0; k < matrix->num_ranges * chunk->num_rows; k++) {
        const uint32_t count = chunk->split[k];
        chunk->split[k] = begin;
        begin += count;
    }
    chunk->split[matrix->num_ranges * chunk->num_rows] = begin;

    lr_parallel_for(matrix->threads, chunk->num_rows, SHARE_ROWS, copy_segments, &move);
    matrix->num_chunks++;
    matrix->memory_bytes += split_bytes(matrix, chunk->num_rows);
    staging->num_rows = 0;
    staging->num_elements = 0;
    return LR_OK;
}

lr_status lr_matrix_append(struct lr_matrix *matrix, const lr_row *row)
{
    struct lr_matrix_staging *staging = &matrix->staging;
    if (staging->num_rows == staging->row_capacity || staging->num_elements + row->count > staging->element_capacity)
        LR_TRY(move_staged(matrix));
    if (row->count > staging->element_capacity) {
        uint32_t *longer_lor = lr_resize(staging->lor, row->count, sizeof(*longer_lor), "a matrix row", matrix->log);
        if (longer_lor == NULL) return LR_FAILED;
        staging->lor = longer_lor;
        float *longer_value = lr_resize(staging->value, row->count, sizeof(*longer_value), "a matrix row", matrix->log);
        if (longer_value == NULL) return LR_FAILED;
        staging->value = longer_value;
        staging->element_capacity = row->count;
    }

    uint32_t *lor = staging->lor + staging->num_elements;
    float *value = staging->value + staging->num_elements;
    int64_t count = 0; /* number of elements that a float can hold */
    for (int64_t k = 0; k < row->count; k++) {
        lor[k] = (uint32_t)row->lor[k];
        value[k] = (float)row->probability[k];
        count += value[k] > 0.0f;
    }
    if (count < row->count) {
        int64_t to = 0;
        for (int64_t k = 0; k < row->count; k++) {
            if (value[k] > 0.0f) {
                lor[to] = lor[k];
                value[to++] = value[k];
            }
        }
    }

    matrix->num_elements += count;
    matrix->memory_bytes += count * ELEMENT_BYTES;
    staging->num_elements += count;
    staging->row_begin[++staging->num_rows] = staging->num_elements;
    matrix->num_rows++;
    return LR_OK;
}

/* The rows of a block that threads copy to the staged rows. */
struct staging_rows {
    struct lr_matrix_staging *staging;
    const struct lr_packed_element *elements; /* elements of the first row */
    atomic_bool has_zeros;
};

static void stage_rows(void *user, int64_t begin, int64_t end)
{
    struct staging_rows *rows = user;
    const struct lr_matrix_staging *staging = rows->staging;
    const int64_t *row_begin = staging->row_begin + staging->num_rows;
    const int64_t first = row_begin[begin], count = row_begin[end] - first;
    const struct lr_packed_element *from = rows->elements + (first - row_begin[0]);
    uint32_t *lor = staging->lor + first;
    float *value = staging->value + first;
    int64_t num_zeros = 0;
    for (int64_t k = 0; k < count; k++) {
        lor[k] = from[k].lor;
        value[k] = from[k].value;
        num_zeros += !(from[k].value > 0.0f);
    }
    if (num_zeros > 0) atomic_store(&rows->has_zeros, true);
}

static lr_status append_one(void *user, const lr_row *row)
{
    return lr_matrix_append(user, row);
}

lr_status lr_matrix_append_block(struct lr_matrix *matrix, const struct lr_row_block *block)
{
    struct lr_matrix_staging *staging = &matrix->staging;
    struct staging_rows rows = {.staging = staging, .elements = block->elements};
    const lr_row_sink one_by_one = {append_one, matrix};
    for (int64_t first = 0, num; first < block->num_rows; first += num) {
        /* Assigns positions to rows until the staging is full. */
        int64_t *row_begin = staging->row_begin + staging->num_rows;
        int64_t num_elements = 0;
        for (num = 0; first + num < block->num_rows && staging->num_rows + num < staging->row_capacity; num++) {
            const int64_t count = block->rows[first + num].count;
            if (row_begin[num] + count > staging->element_capacity) break;
            row_begin[num + 1] = row_begin[num] + count;
            num_elements += count;
        }

        lr_parallel_for(matrix->threads, num, SHARE_ROWS, stage_rows, &rows);
        const bool is_one = num == 0 || atomic_exchange(&rows.has_zeros, false);
        num = num == 0 ? 1 : num;
        if (is_one) { /* rows are appended one by one if there is no room, or if zeros must be dropped */
            const struct lr_row_block part = {
                .rows = block->rows + first, .num_rows = num, .elements = rows.elements, .threads = block->threads};
            LR_TRY(lr_row_block_unpack(&part, &one_by_one, matrix->log));
            num_elements = num == 1 ? block->rows[first].count : num_elements;
        } else {
            staging->num_rows += num;
            staging->num_elements += num_elements;
            matrix->num_rows += num;
            matrix->num_elements += num_elements;
            matrix->memory_bytes += num_elements * ELEMENT_BYTES;
        }
        rows.elements += num_elements;
    }
    return LR_OK;
}

lr_status lr_matrix_complete(struct lr_matrix *matrix)
{
    const lr_status status = move_staged(matrix);
    free_staging(matrix);
    return status;
}

lr_status lr_matrix_row(const struct lr_matrix *matrix, int64_t row, struct lr_owned_row *copy)
{
    int64_t first = 0, last = matrix->num_chunks - 1;
    while (first < last) {
        const int64_t middle = (first + last + 1) / 2;
        if (matrix->chunks[middle].first_row <= row)
            first = middle;
        else
            last = middle - 1;
    }
    const struct lr_matrix_chunk *chunk = &matrix->chunks[first];

    copy->count = 0;
    for (int64_t g = 0; g < matrix->num_ranges; g++) {
        const uint32_t *split = &chunk->split[g * chunk->num_rows + row - chunk->first_row];
        LR_TRY(lr_owned_row_reserve(copy, copy->count + split[1] - split[0], matrix->log));
        for (uint32_t k = split[0]; k < split[1]; k++) lr_owned_row_put(copy, chunk->lor[k], chunk->value[k]);
    }
    return LR_OK;
}

/* --- projections --- */

/* Limit for the memory of the partial sums of a back-projection, bytes. Groups of chunks, called panels, are small
 * enough for this limit. */
#define PARTIAL_BYTES ((int64_t)64 << 20)

enum { ROWS_PER_SHARE = 512 };

/* Returns a walk over the selected LORs of one range. */
static struct lr_selection_walk walk_range(const struct lr_matrix *matrix, int64_t range,
                                           const struct lr_stored_lors *part)
{
    return (struct lr_selection_walk){.lors = part->lors,
                                      .selection = part->selection,
                                      .begin = matrix->range_begin[range],
                                      .end = matrix->range_begin[range + 1]};
}

struct forward {
    const struct lr_matrix *matrix;
    const struct lr_stored_lors *part; /* NULL = all LORs */
    lr_vector image, data;
    double *windows; /* [workers][longest_range] sums of the current range */
};

static void forward_ranges(void *user, int64_t begin_range, int64_t end_range, int worker)
{
    const struct forward *forward = user;
    const struct lr_matrix *matrix = forward->matrix;
    double *window = forward->windows + worker * matrix->longest_range;
    for (int64_t g = begin_range; g < end_range; g++) {
        const int64_t first = matrix->range_begin[g];
        const int64_t length = matrix->range_begin[g + 1] - first;
        struct lr_selection_walk walk = {0};
        if (forward->part != NULL) {
            walk = walk_range(matrix, g, forward->part);
            if (!lr_selection_next(&walk)) continue;
        }
        memset(window, 0, (size_t)length * sizeof(*window));
        for (int64_t c = 0; c < matrix->num_chunks; c++) {
            const struct lr_matrix_chunk *chunk = &matrix->chunks[c];
            const uint32_t begin = (uint32_t)first;
            const uint32_t *split = chunk->split + g * chunk->num_rows;
            for (int64_t r = 0; r < chunk->num_rows; r++) {
                const double activity = lr_number_get(&forward->image, chunk->first_row + r);
                if (activity == 0.0) continue;
                for (uint32_t n = split[r]; n < split[r + 1]; n++)
                    window[chunk->lor[n] - begin] += chunk->value[n] * activity;
            }
        }

        if (forward->part == NULL) {
            for (int64_t k = 0; k < length; k++) lr_number_put(&forward->data, first + k, window[k]);
            continue;
        }
        do {
            const lr_lor_span *span = &walk.span;
            for (int64_t k = 0; k < span->count; k++)
                lr_number_put(&forward->data, walk.position + k, window[lr_span_lor(span, k) - first]);
        } while (lr_selection_next(&walk));
    }
}

lr_status lr_matrix_forward(const struct lr_matrix *matrix, const struct lr_stored_lors *part, const lr_vector *image,
                            lr_vector *data)
{
    struct forward forward = {.matrix = matrix, .part = part, .image = *image, .data = *data};
    const int threads = matrix->threads > 0 ? matrix->threads : 1;
    const int workers = threads < matrix->num_ranges ? threads : matrix->num_ranges;
    forward.windows = lr_alloc(workers * matrix->longest_range, sizeof(*forward.windows),
                               "sums of a forward projection", matrix->log);
    if (forward.windows == NULL) return LR_FAILED;
    lr_parallel_workers(workers, matrix->num_ranges, 1, forward_ranges, &forward);
    free(forward.windows);
    return LR_OK;
}

struct back {
    const struct lr_matrix *matrix;
    const struct lr_stored_lors *part; /* NULL = all LORs */
    lr_vector data, image;
    double *partial;                 /* [num_ranges][num_rows of the panel] */
    int64_t first_chunk, last_chunk; /* the panel: chunks first_chunk <= c < last_chunk */
    int64_t first_row, num_rows;     /* rows of the panel */
    double *windows;                 /* [workers][longest_range]: data of the current range; only for parts */
};

static void gather_tile_f32(const struct lr_matrix_chunk *chunk, int64_t range, const float *data, double *sums)
{
    const uint32_t *split = chunk->split + range * chunk->num_rows;
    for (int64_t r = 0; r < chunk->num_rows; r++) {
        double sum = 0.0;
        for (uint32_t k = split[r]; k < split[r + 1]; k++) sum += (double)chunk->value[k] * data[chunk->lor[k]];
        sums[r] = sum;
    }
}

/* data: values of LORs, from LOR `begin` on. */
static void gather_tile_f64(const struct lr_matrix_chunk *chunk, int64_t range, const double *data, uint32_t begin,
                            double *sums)
{
    const uint32_t *split = chunk->split + range * chunk->num_rows;
    for (int64_t r = 0; r < chunk->num_rows; r++) {
        double sum = 0.0;
        for (uint32_t k = split[r]; k < split[r + 1]; k++) sum += chunk->value[k] * data[chunk->lor[k] - begin];
        sums[r] = sum;
    }
}

static void back_ranges(void *user, int64_t begin, int64_t end, int worker)
{
    const struct back *back = user;
    const struct lr_matrix *matrix = back->matrix;
    double *window = back->part != NULL ? back->windows + worker * matrix->longest_range : NULL;
    for (int64_t g = begin; g < end; g++) {
        double *panel = back->partial + g * back->num_rows;
        const int64_t first = matrix->range_begin[g];
        if (window != NULL) {
            struct lr_selection_walk walk = walk_range(matrix, g, back->part);
            if (!lr_selection_next(&walk)) {
                memset(panel, 0, (size_t)back->num_rows * sizeof(*panel));
                continue;
            }
            /* The data of the range are copied. LORs outside the selection get 0. */
            memset(window, 0, (size_t)(matrix->range_begin[g + 1] - first) * sizeof(*window));
            do {
                const lr_lor_span *span = &walk.span;
                for (int64_t k = 0; k < span->count; k++) {
                    const bool is_one = back->data.values == NULL;
                    window[lr_span_lor(span, k) - first] = is_one ? 1.0 : lr_number_get(&back->data, walk.position + k);
                }
            } while (lr_selection_next(&walk));
        }

        for (int64_t c = back->first_chunk; c < back->last_chunk; c++) {
            const struct lr_matrix_chunk *chunk = &matrix->chunks[c];
            double *sums = panel + (chunk->first_row - back->first_row);
            if (window != NULL)
                gather_tile_f64(chunk, g, window, (uint32_t)first, sums);
            else if (back->data.precision == LR_FLOAT64)
                gather_tile_f64(chunk, g, back->data.values, 0, sums);
            else
                gather_tile_f32(chunk, g, back->data.values, sums);
        }
    }
}

static void add_partial(void *user, int64_t begin, int64_t end)
{
    const struct back *back = user;
    for (int64_t r = begin; r < end; r++) {
        double sum = 0.0;
        for (int64_t g = 0; g < back->matrix->num_ranges; g++) sum += back->partial[g * back->num_rows + r];
        lr_number_put(&back->image, back->first_row + r, sum);
    }
}

/* Chooses the panel. The panel begins at first_chunk, and has as many chunks as fit into `most` rows, but at least one.
 * Panels depend only on the matrix. */
static void choose_panel(struct back *back, int64_t most)
{
    const struct lr_matrix *matrix = back->matrix;
    back->first_row = matrix->chunks[back->first_chunk].first_row;
    back->num_rows = 0;
    back->last_chunk = back->first_chunk;
    do {
        back->num_rows += matrix->chunks[back->last_chunk++].num_rows;
    } while (back->last_chunk < matrix->num_chunks &&
             back->num_rows + matrix->chunks[back->last_chunk].num_rows <= most);
}

lr_status lr_matrix_back(const struct lr_matrix *matrix, const struct lr_stored_lors *part, const lr_vector *data,
                         lr_vector *image)
{
    struct back back = {.matrix = matrix, .part = part, .data = data != NULL ? *data : (lr_vector){0}, .image = *image};
    const int threads = matrix->threads > 0 ? matrix->threads : 1;
    if (part != NULL) {
        back.windows = lr_alloc(threads * matrix->longest_range, sizeof(*back.windows), "the data of a back-projection",
                                matrix->log);
        if (back.windows == NULL) return LR_FAILED;
    }
    const int64_t most = PARTIAL_BYTES / (matrix->num_ranges * (int64_t)sizeof(double));
    int64_t longest_panel = 0;
    for (; back.first_chunk < matrix->num_chunks; back.first_chunk = back.last_chunk) {
        choose_panel(&back, most);
        longest_panel = back.num_rows > longest_panel ? back.num_rows : longest_panel;
    }
    back.partial =
        lr_alloc(longest_panel * matrix->num_ranges, sizeof(*back.partial), "sums of a back-projection", matrix->log);
    const lr_status status = back.partial != NULL ? LR_OK : LR_FAILED;

    for (back.first_chunk = 0; status == LR_OK && back.first_chunk < matrix->num_chunks;
         back.first_chunk = back.last_chunk) {
        choose_panel(&back, most);
        lr_parallel_workers(threads, matrix->num_ranges, 1, back_ranges, &back);
        lr_parallel_for(threads, back.num_rows, ROWS_PER_SHARE, add_partial, &back);
    }
    lr_free_all(back.partial, back.windows);
    return status;
}

/* ---- a backend that stores another backend's matrix ---- */

enum { SAMPLE_ROWS = 48 };

/* Least number of projections for which LR_STORE_AUTO stores the matrix of a backend that runs on processors
 * (lr_stored_pays). */
#define LEAST_BY_ROWS 2.0
#define LEAST_BY_COLUMNS 3.0

struct stored {
    struct lr_backend inner;
    const struct lr_backend_params *params;
    struct lr_matrix matrix;
    struct lr_backend_fns fns; /* functions of this file, with the name of the inner backend */
};

static lr_status stored_project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in,
                                lr_vector *out)
{
    const struct stored *stored = self;
    const struct lr_stored_lors lors = {stored->params->lors, part};
    LR_TRY(lr_progress_report(stored->params->progress, is_forward ? "projecting" : "back-projecting", 0.0, 1.0));
    return (is_forward ? lr_matrix_forward : lr_matrix_back)(&stored->matrix, part != NULL ? &lors : NULL, in, out);
}

static lr_status stored_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink)
{
    const struct stored *stored = self;
    if (rows->grid == NULL) return stored->inner.fns->rows(stored->inner.self, rows, sink);
    struct lr_owned_row copy = {0};
    lr_status status = LR_OK;
    for (int64_t row = rows->begin; status == LR_OK && row < rows->end; row++) {
        status = lr_matrix_row(&stored->matrix, row, &copy);
        const lr_row view = lr_owned_row_view(&copy, row);
        status = status == LR_OK ? sink->take(sink->user, &view) : status;
    }
    lr_owned_row_finish(&copy);
    return status;
}

static lr_status stored_picture(void *self, const double point_mm[3], int module, lr_pixel *pixels)
{
    const struct stored *stored = self;
    return stored->inner.fns->picture(stored->inner.self, point_mm, module, pixels);
}

static void stored_destroy(void *self)
{
    struct stored *stored = self;
    stored->inner.fns->destroy(stored->inner.self);
    lr_matrix_finish(&stored->matrix);
    free(stored);
}

int64_t lr_stored_memory_limit(const struct lr_backend_params *params)
{
    return params->max_memory_bytes > 0 ? params->max_memory_bytes : lr_physical_memory() / 2;
}

/* --- the sample --- */

struct sampling {
    struct lr_matrix_sample sample;
    const lr_log *log;
};

static lr_status take_sample(void *user, const lr_row *row)
{
    struct sampling *sampling = user;
    struct lr_matrix_sample *sample = &sampling->sample;
    uint32_t *lor = lr_resize(sample->lor, sample->num_elements + row->count + 1, sizeof(*lor),
                              "a sample of the matrix", sampling->log);
    if (lor == NULL) return LR_FAILED;
    sample->lor = lor;
    for (int64_t k = 0; k < row->count; k++) lor[sample->num_elements++] = (uint32_t)row->lor[k];
    sample->num_rows++;
    return LR_OK;
}

/* --- the matrix --- */

struct generation {
    struct lr_matrix *matrix;
    const struct lr_backend_params *params;
    struct lr_progress_filter *progress_filter;
    int64_t num_rows;
    bool too_large;
};

/* Stops if the matrix has become larger than the limit. last_row: the row appended last. */
static lr_status judge(struct generation *generation, int64_t last_row)
{
    if (generation->matrix->memory_bytes > lr_stored_memory_limit(generation->params)) {
        generation->too_large = true;
        return LR_FAILED;
    }
    return lr_progress_filter_report(generation->progress_filter, "rendering the matrix", (double)(last_row + 1),
                                     (double)generation->num_rows);
}

static lr_status take_row(void *user, const lr_row *row)
{
    struct generation *generation = user;
    LR_TRY(lr_matrix_append(generation->matrix, row));
    return judge(generation, row->row);
}

static lr_status take_block(void *user, const struct lr_row_block *block)
{
    struct generation *generation = user;
    LR_TRY(lr_matrix_append_block(generation->matrix, block));
    return judge(generation, block->rows[block->num_rows - 1].row);
}

/* Reports that the matrix is not stored. This is an error if the matrix is required, and information otherwise. what:
 * text that ends with "... needs". */
static lr_status decline(const struct lr_backend_params *params, const struct lr_stored_wish *wish, const char *what,
                         int64_t bytes)
{
    char needed[32], limit[32];
    lr_bytes_text((double)bytes, needed);
    lr_bytes_text((double)lr_stored_memory_limit(params), limit);
    if (wish->required) {
        return lr_error(params->log, LR_FAILED,
                        "%s %s of memory, more than the limit of %s: raise the memory limit, take a coarser grid, or "
                        "do not store the matrix",
                        what, needed, limit);
    }
    lr_info(params->log, "the matrix is computed anew in every projection: %s %s of memory, more than the limit of %s",
            what, needed, limit);
    return LR_OK;
}

/* Makes a matrix whose ranges are balanced for the sample, and replaces the backend by one that has this matrix. */
static lr_status fill(struct lr_backend *backend, const struct lr_backend_params *params,
                      const struct lr_stored_wish *wish, struct lr_matrix_sample *sample, struct lr_stored_size *size)
{
    struct lr_matrix matrix;
    LR_TRY(lr_matrix_init(&matrix, params->lors->count, sample, params->log));
    matrix.threads = params->threads;

    struct generation generation = {.matrix = &matrix,
                                    .params = params,
                                    .progress_filter = wish->progress_filter,
                                    .num_rows = lr_grid_num_voxels(params->grid)};
    lr_status status;
    /* The estimate is the memory of all rows, if they are like those of the sample, plus staging memory for the last
     * rows. */
    const double share = sample->num_rows > 0 ? (double)generation.num_rows / (double)sample->num_rows : 0.0;
    const double elements = (double)sample->num_elements * share;
    const double staged = elements < CHUNK_ELEMENTS ? elements : CHUNK_ELEMENTS;
    const int64_t estimate = (int64_t)((elements + staged) * ELEMENT_BYTES) + split_bytes(&matrix, generation.num_rows);
    if (estimate > lr_stored_memory_limit(params)) {
        status = decline(params, wish, "storing it needs an estimated", estimate);
        goto done;
    }

    struct lr_rows rows = lr_rows_of_voxels(params, 0, generation.num_rows);
    const struct lr_row_block_sink blocks = {take_block, &generation};
    const lr_row_sink sink = {take_row, &generation};
    rows.blocks = &blocks;
    status = backend->fns->rows(backend->self, &rows, &sink);
    if (status == LR_OK) status = lr_matrix_complete(&matrix);
    if (generation.too_large)
        status = decline(params, wish, "storing only a part of it already takes", matrix.memory_bytes);
    if (status != LR_OK || generation.too_large) goto done;

    struct stored *stored = lr_alloc(1, sizeof(*stored), "a stored matrix", params->log);
    status = stored != NULL ? LR_OK : LR_FAILED;
    if (stored == NULL) goto done;
    stored->inner = *backend;
    stored->params = params;
    stored->matrix = matrix;
    stored->fns = (struct lr_backend_fns){
        .name = backend->fns->name,
        .computes_in_double = backend->fns->computes_in_double,
        .voxel_bytes = backend->fns->voxel_bytes,
        .project = stored_project,
        .rows = stored_rows,
        .picture = backend->fns->picture != NULL ? stored_picture : NULL,
        .has_parts = true,
        .destroy = stored_destroy,
    };
    backend->fns = &stored->fns;
    backend->place = NULL; /* the matrix is on the host */
    backend->self = stored;
    *size = (struct lr_stored_size){true, matrix.num_elements, matrix.memory_bytes};
    return LR_OK;

done:
    lr_matrix_finish(&matrix);
    return status;
}

bool lr_stored_pays(const struct lr_backend *backend, double projections)
{
    if (backend->is_gpu || backend->fns->is_never_kept) return false;
    if (projections == 0.0) return true;
    if (backend->is_emulated) return false;
    return projections >= (backend->fns->projects_by_rows ? LEAST_BY_ROWS : LEAST_BY_COLUMNS);
}

lr_status lr_stored_wrap(struct lr_backend *backend, const struct lr_backend_params *params,
                         const struct lr_stored_wish *wish, struct lr_stored_size *size)
{
    *size = (struct lr_stored_size){0};
    if (params->lors->count >= LR_STORED_MOST_LORS) {
        const long long count = (long long)params->lors->count;
        if (wish->required) {
            return lr_error(params->log, LR_FAILED,
                            "a matrix over %lld LORs cannot be stored, the most is 4294967296: tighten the coincidence "
                            "rules, or do not store the matrix",
                            count);
        }
        lr_info(
            params->log,
            "the matrix is computed anew in every projection: it has %lld LORs, and at most 4294967296 can be stored",
            count);
        return LR_OK;
    }

    struct sampling sampling = {.log = params->log};
    wish->progress_filter->is_silent = true;
    /* A small grid is sampled completely, a larger grid at some evenly spread rows. */
    const int64_t num_rows = lr_grid_num_voxels(params->grid);
    const int64_t count = num_rows < SAMPLE_ROWS ? num_rows : SAMPLE_ROWS;
    const lr_row_sink sink = {take_sample, &sampling};
    lr_status status = LR_OK;
    for (int64_t k = 0; status == LR_OK && k < count; k++) {
        const double turns = ((double)k + 0.5) * LR_GOLDEN_SHARE;
        const double share = turns - (double)(int64_t)turns;
        const int64_t row = count == num_rows ? k : (int64_t)(share * (double)num_rows);
        const struct lr_rows rows = lr_rows_of_voxels(params, row, row + 1);
        status = lr_progress_filter_report(wish->progress_filter, "estimating the matrix", (double)k, (double)count);
        if (status == LR_OK) status = backend->fns->rows(backend->self, &rows, &sink);
    }
    if (status == LR_OK) status = fill(backend, params, wish, &sampling.sample, size);
    wish->progress_filter->is_silent = false;
    free(sampling.sample.lor);
    return status;
}
