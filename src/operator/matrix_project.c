/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Both projections with a stored matrix. */
#include "operator/matrix.h"

#include "base/mem.h"
#include "base/parallel.h"
#include "model/lors/selection.h"
#include "operator/numbers.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of partial sums that a back-projection keeps at a time. */
#define PARTIAL_BYTES ((int64_t)64 << 20)

enum { ROWS_PER_SHARE = 512 };

/* The selected LORs of one range. */
static struct lr_selection_walk walk_range(const struct lr_matrix *matrix, int64_t range,
                                           const struct lr_stored_lors *part)
{
    return (struct lr_selection_walk){.lors = part->lors,
                                      .selection = part->selection,
                                      .begin = matrix->range_begin[range],
                                      .end = matrix->range_begin[range + 1]};
}

static bool has_selected(const struct lr_matrix *matrix, int64_t range, const struct lr_stored_lors *part)
{
    struct lr_selection_walk walk = walk_range(matrix, range, part);
    return lr_selection_next(&walk);
}

static inline int64_t span_lor(const lr_lor_span *span, int64_t k)
{
    return span->numbers != NULL ? span->numbers[k] : span->first + k;
}

struct forward {
    const struct lr_matrix *matrix;
    const struct lr_stored_lors *part; /* NULL = all LORs */
    lr_vector image, data;
    double *windows; /* [workers][longest] sums of the range at hand */
    int64_t longest;
};

static void spread_tile(const struct lr_matrix_chunk *chunk, int64_t range, const lr_vector *image, double *window,
                        uint32_t begin)
{
    const uint32_t *split = chunk->split + range * chunk->num_rows;
    for (int64_t r = 0; r < chunk->num_rows; r++) {
        const double activity = lr_number_get(image, chunk->first_row + r);
        if (activity == 0.0) continue;
        for (uint32_t k = split[r]; k < split[r + 1]; k++) window[chunk->lor[k] - begin] += chunk->value[k] * activity;
    }
}

static void pick(const struct forward *forward, int64_t range, const double *window)
{
    const int64_t first = forward->matrix->range_begin[range];
    struct lr_selection_walk walk = walk_range(forward->matrix, range, forward->part);
    while (lr_selection_next(&walk))
        for (int64_t k = 0; k < walk.span.count; k++)
            lr_number_put(&forward->data, walk.position + k, window[span_lor(&walk.span, k) - first]);
}

static void forward_range(const struct forward *forward, int64_t range, double *window)
{
    const struct lr_matrix *matrix = forward->matrix;
    const int64_t first = matrix->range_begin[range];
    const int64_t length = matrix->range_begin[range + 1] - first;
    if (forward->part != NULL && !has_selected(matrix, range, forward->part)) return;
    memset(window, 0, (size_t)length * sizeof(*window));
    for (int64_t c = 0; c < matrix->num_chunks; c++)
        spread_tile(&matrix->chunks[c], range, &forward->image, window, (uint32_t)first);
    if (forward->part != NULL) {
        pick(forward, range, window);
        return;
    }
    for (int64_t k = 0; k < length; k++) lr_number_put(&forward->data, first + k, window[k]);
}

static void forward_ranges(void *user, int64_t begin, int64_t end, int worker)
{
    const struct forward *forward = user;
    for (int64_t g = begin; g < end; g++) forward_range(forward, g, forward->windows + worker * forward->longest);
}

static int64_t longest_range(const struct lr_matrix *matrix)
{
    int64_t longest = 0;
    for (int g = 0; g < matrix->num_ranges; g++) {
        const int64_t length = matrix->range_begin[g + 1] - matrix->range_begin[g];
        longest = length > longest ? length : longest;
    }
    return longest;
}

static lr_status run_forward(struct forward *forward, int threads)
{
    const struct lr_matrix *matrix = forward->matrix;
    const int workers = threads < matrix->num_ranges ? threads : matrix->num_ranges;
    forward->longest = longest_range(matrix);
    forward->windows =
        lr_alloc(workers * forward->longest, sizeof(*forward->windows), "sums of a forward projection", matrix->log);
    if (forward->windows == NULL) return LR_FAILED;
    lr_parallel_for(workers, matrix->num_ranges, 1, forward_ranges, forward);
    free(forward->windows);
    return LR_OK;
}

lr_status lr_matrix_forward(const struct lr_matrix *matrix, int threads, const lr_vector *image, lr_vector *data)
{
    struct forward forward = {.matrix = matrix, .image = *image, .data = *data};
    return run_forward(&forward, threads);
}

lr_status lr_matrix_forward_part(const struct lr_matrix *matrix, int threads, const struct lr_stored_lors *part,
                                 const lr_vector vectors[2])
{
    struct forward forward = {.matrix = matrix, .part = part, .image = vectors[0], .data = vectors[1]};
    return run_forward(&forward, threads);
}

struct back {
    const struct lr_matrix *matrix;
    const struct lr_stored_lors *part; /* NULL = all LORs */
    lr_vector data, image;
    double *partial;                 /* [num_ranges][num_rows of the panel] */
    int64_t first_chunk, last_chunk; /* the panel: chunks first <= c < last */
    int64_t first_row, num_rows;     /* of the panel */
    double *windows;                 /* [workers][longest] data of the range at hand; of parts */
    int64_t longest;
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

/* data: of LORs from `begin` on. */
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

/* The data of one range, zero where nothing is selected. */
static void expand(const struct back *back, int64_t range, double *window)
{
    const int64_t first = back->matrix->range_begin[range];
    const int64_t length = back->matrix->range_begin[range + 1] - first;
    struct lr_selection_walk walk = walk_range(back->matrix, range, back->part);
    memset(window, 0, (size_t)length * sizeof(*window));
    while (lr_selection_next(&walk)) {
        for (int64_t k = 0; k < walk.span.count; k++) {
            const bool is_one = back->data.values == NULL;
            window[span_lor(&walk.span, k) - first] = is_one ? 1.0 : lr_number_get(&back->data, walk.position + k);
        }
    }
}

static void back_range_part(const struct back *back, int64_t range, double *panel, double *window)
{
    if (!has_selected(back->matrix, range, back->part)) {
        memset(panel, 0, (size_t)back->num_rows * sizeof(*panel));
        return;
    }
    expand(back, range, window);
    for (int64_t c = back->first_chunk; c < back->last_chunk; c++) {
        const struct lr_matrix_chunk *chunk = &back->matrix->chunks[c];
        gather_tile_f64(chunk, range, window, (uint32_t)back->matrix->range_begin[range],
                        panel + (chunk->first_row - back->first_row));
    }
}

static void back_ranges(void *user, int64_t begin, int64_t end, int worker)
{
    const struct back *back = user;
    for (int64_t g = begin; g < end; g++) {
        double *panel = back->partial + g * back->num_rows;
        if (back->part != NULL) {
            back_range_part(back, g, panel, back->windows + worker * back->longest);
            continue;
        }
        for (int64_t c = back->first_chunk; c < back->last_chunk; c++) {
            const struct lr_matrix_chunk *chunk = &back->matrix->chunks[c];
            double *sums = panel + (chunk->first_row - back->first_row);
            if (back->data.precision == LR_FLOAT64)
                gather_tile_f64(chunk, g, back->data.values, 0, sums);
            else
                gather_tile_f32(chunk, g, back->data.values, sums);
        }
    }
}

static void add_partial(void *user, int64_t begin, int64_t end, int worker)
{
    const struct back *back = user;
    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        double sum = 0.0;
        for (int64_t g = 0; g < back->matrix->num_ranges; g++) sum += back->partial[g * back->num_rows + r];
        lr_number_put(&back->image, back->first_row + r, sum);
    }
}

/* Takes chunks from first_chunk on until the panel has `most` rows, at least one chunk. Panels
 * depend on the matrix alone. */
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

static int64_t longest_panel(struct back *back, int64_t most)
{
    int64_t longest = 0;
    for (back->first_chunk = 0; back->first_chunk < back->matrix->num_chunks; back->first_chunk = back->last_chunk) {
        choose_panel(back, most);
        longest = back->num_rows > longest ? back->num_rows : longest;
    }
    return longest;
}

static lr_status run_back(struct back *back, int threads)
{
    const struct lr_matrix *matrix = back->matrix;
    const int64_t most = PARTIAL_BYTES / (matrix->num_ranges * (int64_t)sizeof(double));
    back->partial = lr_alloc(longest_panel(back, most) * matrix->num_ranges, sizeof(*back->partial),
                             "sums of a back-projection", matrix->log);
    if (back->partial == NULL) return LR_FAILED;
    for (back->first_chunk = 0; back->first_chunk < matrix->num_chunks; back->first_chunk = back->last_chunk) {
        choose_panel(back, most);
        lr_parallel_for(threads, matrix->num_ranges, 1, back_ranges, back);
        lr_parallel_for(threads, back->num_rows, ROWS_PER_SHARE, add_partial, back);
    }
    free(back->partial);
    return LR_OK;
}

lr_status lr_matrix_back(const struct lr_matrix *matrix, int threads, const lr_vector *data, lr_vector *image)
{
    struct back back = {.matrix = matrix, .data = *data, .image = *image};
    return run_back(&back, threads);
}

lr_status lr_matrix_back_part(const struct lr_matrix *matrix, int threads, const struct lr_stored_lors *part,
                              const lr_vector vectors[2])
{
    struct back back = {.matrix = matrix, .part = part, .data = vectors[0], .image = vectors[1]};
    back.longest = longest_range(matrix);
    back.windows =
        lr_alloc(threads * back.longest, sizeof(*back.windows), "the data of a back-projection", matrix->log);
    const lr_status status = back.windows != NULL ? run_back(&back, threads) : LR_FAILED;
    free(back.windows);
    return status;
}
