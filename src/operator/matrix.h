/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A sparse matrix in memory, laid out so that both projections read it as a stream.
 *
 * LORs are cut into ranges of about equal numbers of elements, and rows into chunks in the order in which they
 * arrive. A tile is the elements of one range in one chunk. Elements of a chunk are sorted by (range, row, LOR), so
 * a tile is contiguous. A tile uses only one range of the data vector, which stays in the cache. A projection
 * computes the tiles of a range on one worker, in the order of the chunks. The order of every sum thus depends on
 * the matrix alone. */
#ifndef LR_OPERATOR_MATRIX_H
#define LR_OPERATOR_MATRIX_H

#include "model/lors/elements.h"
#include "model/lors/rows.h"

struct lr_matrix_chunk {
    int64_t first_row;
    int64_t num_rows;
    /* [num_ranges * num_rows + 1]: in range g, row first_row + r has the elements split[g * num_rows + r] up to
     * split[g * num_rows + r + 1]. */
    uint32_t *split;
    uint32_t *lor; /* [split's last] */
    float *value;  /* [split's last] */
};

struct lr_matrix {
    int64_t num_rows; /* rows appended so far */
    int64_t num_lors;
    int64_t num_elements;
    int64_t memory_bytes; /* memory of chunks and of rows not yet in a chunk */
    int num_ranges;
    int64_t *range_begin;  /* [num_ranges + 1] */
    int64_t longest_range; /* LORs of the longest range */
    int64_t num_chunks, chunk_capacity;
    struct lr_matrix_chunk *chunks;
    struct lr_matrix_staging { /* rows not yet in a chunk */
        int64_t num_rows, num_elements, row_capacity, element_capacity;
        int64_t *row_begin; /* [row_capacity + 1] */
        uint32_t *lor;      /* [element_capacity] */
        float *value;
    } staging;
    int threads; /* threads for appending and projecting: set after lr_matrix_init; 0 = only the calling thread */
    const lr_log *log;
};

/* A sample of the rows of a matrix, taken before the matrix is made. */
struct lr_matrix_sample {
    int64_t num_rows;     /* rows of the sample */
    int64_t num_elements; /* elements of these rows */
    uint32_t *lor;        /* [num_elements], any order; sorted by lr_matrix_init */
};

/* An empty matrix whose ranges balance the sample. num_lors <= 2^32. On failure nothing is held. */
lr_status lr_matrix_init(struct lr_matrix *matrix, int64_t num_lors, struct lr_matrix_sample *sample,
                         const lr_log *log);
void lr_matrix_finish(struct lr_matrix *matrix);

/* Bytes of num_rows rows if they are like the sample, including the last staging. */
int64_t lr_matrix_estimate(const struct lr_matrix *matrix, const struct lr_matrix_sample *sample, int64_t num_rows);

/* Takes the next row (row->row is not read). Elements too small for a float are dropped. */
lr_status lr_matrix_append(struct lr_matrix *matrix, const lr_row *row);

/* Takes the next rows with matrix->threads threads. The matrix does not depend on their number. */
lr_status lr_matrix_append_block(struct lr_matrix *matrix, const struct lr_row_block *block);

/* Call it after the last row. It moves staged rows into a chunk and frees the staging. */
lr_status lr_matrix_complete(struct lr_matrix *matrix);

/* LORs of a selection (model/lors/selection.h). Their values are in its order. Ranges of the matrix without any of
 * these LORs are not read. */
struct lr_stored_lors {
    const lr_lors *lors;
    const lr_selection *selection; /* checked */
};

/* data = A image, image = A^T data, for the LORs of a part or for all (part NULL). The output is overwritten.
 * Vectors are on the host: an image [num_rows], data [num_lors]. Data may be NULL if there is a part: 1 for every
 * LOR. Sums are in double. Rows whose image value is 0 are not read.
 * errors: LR_FAILED if memory runs out. */
lr_status lr_matrix_forward(const struct lr_matrix *matrix, const struct lr_stored_lors *part, const lr_vector *image,
                            lr_vector *data);
lr_status lr_matrix_back(const struct lr_matrix *matrix, const struct lr_stored_lors *part, const lr_vector *data,
                         lr_vector *image);

/* Copies a row, sorted by LOR. errors: LR_FAILED if memory runs out, logged. */
lr_status lr_matrix_row(const struct lr_matrix *matrix, int64_t row, struct lr_owned_row *copy);

#endif
