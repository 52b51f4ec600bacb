/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A sparse matrix in memory, laid out so that both projections read it as a stream.
 *
 * The LORs are cut into ranges of about equal numbers of elements, the rows into chunks as they
 * come. Within a chunk elements are sorted by (range, row, LOR): a tile, the elements of one range
 * in one chunk, is contiguous, and all that a tile touches of the data vector is one range, which
 * stays in the cache. A projection goes through the tiles of one range in the order of the chunks
 * on one worker, so the order of every sum is fixed by the matrix alone. */
#ifndef LR_OPERATOR_MATRIX_H
#define LR_OPERATOR_MATRIX_H

#include "model/lors/elements.h"
#include "model/lors/rows.h"

struct lr_matrix_chunk {
    int64_t first_row;
    int64_t num_rows;
    uint32_t *split; /* [num_ranges * num_rows + 1]: elements of row first_row + r in range g are
                        split[g * num_rows + r] up to split[g * num_rows + r + 1] */
    uint32_t *lor;   /* [split's last] */
    float *value;    /* [split's last] */
};

struct lr_matrix {
    int64_t num_rows; /* appended so far */
    int64_t num_lors;
    int64_t num_elements;
    int64_t memory_bytes; /* memory of chunks, and of the rows not yet in one */
    int num_ranges;
    int64_t *range_begin; /* [num_ranges + 1] */
    int64_t num_chunks, chunk_capacity;
    struct lr_matrix_chunk *chunks;
    struct lr_matrix_staging { /* rows not yet in a chunk */
        int64_t num_rows, num_elements, row_capacity, element_capacity;
        int64_t *row_begin; /* [row_capacity + 1] */
        uint32_t *lor;      /* [element_capacity] */
        float *value;
    } staging;
    int threads; /* of appending and projecting: set after lr_matrix_init; 0 = only the calling thread */
    const lr_log *log;
};

/* A sample of a matrix's rows, taken before it is made. */
struct lr_matrix_sample {
    int64_t num_rows;     /* rows of the sample */
    int64_t num_elements; /* elements of these rows */
    uint32_t *lor;        /* [num_elements], any order; sorted by lr_matrix_init */
};

/* An empty matrix whose ranges balance the sample. num_lors <= 2^32. On failure nothing is held. */
lr_status lr_matrix_init(struct lr_matrix *matrix, int64_t num_lors, struct lr_matrix_sample *sample,
                         const lr_log *log);
void lr_matrix_finish(struct lr_matrix *matrix);

/* Bytes that num_rows rows take if they are like the sample, with the last staging. */
int64_t lr_matrix_estimate(const struct lr_matrix *matrix, const struct lr_matrix_sample *sample, int64_t num_rows);

/* Takes the next row (row->row is not read). Elements too small for a float are dropped. */
lr_status lr_matrix_append(struct lr_matrix *matrix, const lr_row *row);

/* Takes the next rows, by matrix->threads threads: the same matrix. */
lr_status lr_matrix_append_block(struct lr_matrix *matrix, const struct lr_row_block *block);

/* Call it after the last row. It moves what is staged into a chunk and frees the staging. */
lr_status lr_matrix_complete(struct lr_matrix *matrix);

/* LORs of a selection (model/lors/selection.h), whose values stand in its order. Ranges of the matrix without any
 * of them are not read. */
struct lr_stored_lors {
    const lr_lors *lors;
    const lr_selection *selection; /* checked */
};

/* data = A image, image = A^T data, of the LORs of a part or of all (NULL); the output is overwritten. Vectors are
 * on the host: an image [num_rows], data [num_lors]. Data NULL, with a part only: 1 for every LOR. Sums are in double.
 * Rows whose image value is 0 are not read.
 * errors: LR_FAILED if memory runs out. */
lr_status lr_matrix_forward(const struct lr_matrix *matrix, const struct lr_stored_lors *part, const lr_vector *image,
                            lr_vector *data);
lr_status lr_matrix_back(const struct lr_matrix *matrix, const struct lr_stored_lors *part, const lr_vector *data,
                         lr_vector *image);

/* Copies a row out, sorted by LOR.
 * errors: LR_FAILED if memory runs out, logged. */
lr_status lr_matrix_row(const struct lr_matrix *matrix, int64_t row, struct lr_owned_row *copy);

#endif
