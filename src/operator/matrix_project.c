/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Both projections with a stored matrix. */
#include "operator/matrix.h"

#include "base/mem.h"
#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of partial sums that a back-projection keeps at a time. */
#define PARTIAL_BYTES ((int64_t)64 << 20)

enum { ROWS_PER_SHARE = 512 };

static inline double read_value(const struct lr_matrix_vector *vector, int64_t at)
{
    return vector->is_double ? ((const double *)vector->values)[at]
                             : ((const float *)vector->values)[at];
}

static inline void write_value(const struct lr_matrix_vector *vector, int64_t at, double value)
{
    if (vector->is_double) {
        ((double *)vector->values)[at] = value;
    } else {
        ((float *)vector->values)[at] = (float)value;
    }
}

struct forward {
    const struct lr_matrix *matrix;
    struct lr_matrix_vector image, data;
    double *windows; /* [workers][longest] sums of the range at hand */
    int64_t longest;
};

static void spread_tile(const struct lr_matrix_chunk *chunk, int64_t range,
                        const struct lr_matrix_vector *image, double *window, uint32_t begin)
{
    const uint32_t *split = chunk->split + range * chunk->num_rows;
    for (int64_t r = 0; r < chunk->num_rows; r++) {
        const double activity = read_value(image, chunk->first_row + r);
        if (activity == 0.0) {
            continue;
        }
        for (uint32_t k = split[r]; k < split[r + 1]; k++) {
            window[chunk->lor[k] - begin] += chunk->value[k] * activity;
        }
    }
}

static void forward_ranges(void *user, int64_t begin, int64_t end, int worker)
{
    const struct forward *forward = user;
    const struct lr_matrix *matrix = forward->matrix;
    double *window = forward->windows + worker * forward->longest;
    for (int64_t g = begin; g < end; g++) {
        const int64_t first = matrix->range_begin[g];
        const int64_t length = matrix->range_begin[g + 1] - first;
        memset(window, 0, (size_t)length * sizeof(*window));
        for (int64_t c = 0; c < matrix->num_chunks; c++) {
            spread_tile(&matrix->chunks[c], g, &forward->image, window, (uint32_t)first);
        }
        for (int64_t k = 0; k < length; k++) {
            write_value(&forward->data, first + k, window[k]);
        }
    }
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

lr_status lr_matrix_forward(const struct lr_matrix *matrix, int threads,
                            struct lr_matrix_vector image, struct lr_matrix_vector data)
{
    const int workers = threads < matrix->num_ranges ? threads : matrix->num_ranges;
    struct forward forward = {matrix, image, data, NULL, longest_range(matrix)};
    forward.windows = lr_alloc(workers * forward.longest, sizeof(*forward.windows),
                               "sums of a forward projection", matrix->log);
    if (forward.windows == NULL) {
        return LR_FAILED;
    }
    lr_parallel_for(workers, matrix->num_ranges, 1, forward_ranges, &forward);
    free(forward.windows);
    return LR_OK;
}

struct back {
    const struct lr_matrix *matrix;
    struct lr_matrix_vector data, image;
    double *partial;                 /* [num_ranges][num_rows of the panel] */
    int64_t first_chunk, last_chunk; /* the panel: chunks first <= c < last */
    int64_t first_row, num_rows;     /* of the panel */
};

static void gather_tile_f32(const struct lr_matrix_chunk *chunk, int64_t range, const float *data,
                            double *sums)
{
    const uint32_t *split = chunk->split + range * chunk->num_rows;
    for (int64_t r = 0; r < chunk->num_rows; r++) {
        double sum = 0.0;
        for (uint32_t k = split[r]; k < split[r + 1]; k++) {
            sum += (double)chunk->value[k] * data[chunk->lor[k]];
        }
        sums[r] = sum;
    }
}

static void gather_tile_f64(const struct lr_matrix_chunk *chunk, int64_t range, const double *data,
                            double *sums)
{
    const uint32_t *split = chunk->split + range * chunk->num_rows;
    for (int64_t r = 0; r < chunk->num_rows; r++) {
        double sum = 0.0;
        for (uint32_t k = split[r]; k < split[r + 1]; k++) {
            sum += chunk->value[k] * data[chunk->lor[k]];
        }
        sums[r] = sum;
    }
}

static void back_ranges(void *user, int64_t begin, int64_t end, int worker)
{
    const struct back *back = user;
    (void)worker;
    for (int64_t g = begin; g < end; g++) {
        double *panel = back->partial + g * back->num_rows;
        for (int64_t c = back->first_chunk; c < back->last_chunk; c++) {
            const struct lr_matrix_chunk *chunk = &back->matrix->chunks[c];
            double *sums = panel + (chunk->first_row - back->first_row);
            if (back->data.is_double) {
                gather_tile_f64(chunk, g, back->data.values, sums);
            } else {
                gather_tile_f32(chunk, g, back->data.values, sums);
            }
        }
    }
}

static void add_partial(void *user, int64_t begin, int64_t end, int worker)
{
    const struct back *back = user;
    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        double sum = 0.0;
        for (int64_t g = 0; g < back->matrix->num_ranges; g++) {
            sum += back->partial[g * back->num_rows + r];
        }
        write_value(&back->image, back->first_row + r, sum);
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
    for (back->first_chunk = 0; back->first_chunk < back->matrix->num_chunks;
         back->first_chunk = back->last_chunk) {
        choose_panel(back, most);
        longest = back->num_rows > longest ? back->num_rows : longest;
    }
    return longest;
}

lr_status lr_matrix_back(const struct lr_matrix *matrix, int threads, struct lr_matrix_vector data,
                         struct lr_matrix_vector image)
{
    const int64_t most = PARTIAL_BYTES / (matrix->num_ranges * (int64_t)sizeof(double));
    struct back back = {.matrix = matrix, .data = data, .image = image};
    back.partial = lr_alloc(longest_panel(&back, most) * matrix->num_ranges, sizeof(*back.partial),
                            "sums of a back-projection", matrix->log);
    if (back.partial == NULL) {
        return LR_FAILED;
    }
    for (back.first_chunk = 0; back.first_chunk < matrix->num_chunks;
         back.first_chunk = back.last_chunk) {
        choose_panel(&back, most);
        lr_parallel_for(threads, matrix->num_ranges, 1, back_ranges, &back);
        lr_parallel_for(threads, back.num_rows, ROWS_PER_SHARE, add_partial, &back);
    }
    free(back.partial);
    return LR_OK;
}
