/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A sparse matrix in memory. Its layout lets both projections read the matrix as a stream.
 *
 * LORs are divided into ranges with about equal numbers of elements, and rows into chunks, in the order of their
 * arrival. A tile has the elements of one range in one chunk. The elements of a chunk are sorted by (range, row, LOR),
 * so that each tile is contiguous. A tile needs only one range of the data vector, which stays in the cache. One worker
 * computes all tiles of a range, in the order of the chunks. The order of every sum therefore depends only on the
 * matrix. */
#pragma once

#include "model/lors/rows.h"
#include "operator/backend.h"
#include "operator/facade.h"

struct lr_matrix_chunk {
    int64_t first_row;
    int64_t num_rows;
    /* [num_ranges * num_rows + 1]: in range g, row first_row + r has the elements
     * split[g * num_rows + r] to split[g * num_rows + r + 1] - 1. */
    uint32_t *split;
    uint32_t *lor; /* [last number in split] */
    float *value;  /* [last number in split] */
};

struct lr_matrix {
    int64_t num_rows; /* rows appended so far */
    int64_t num_lors;
    int64_t num_elements;
    int64_t memory_bytes; /* memory of chunks and of staged rows */
    int num_ranges;
    int64_t *range_begin;  /* [num_ranges + 1] */
    int64_t longest_range; /* number of LORs of the longest range */
    int64_t num_chunks, chunk_capacity;
    struct lr_matrix_chunk *chunks;
    struct lr_matrix_staging { /* rows that are not in a chunk yet */
        int64_t num_rows, num_elements, row_capacity, element_capacity;
        int64_t *row_begin; /* [row_capacity + 1] */
        uint32_t *lor;      /* [element_capacity] */
        float *value;
    } staging;
    int threads; /* threads for appending and projecting, set by the caller after lr_matrix_init; 0 = only the calling
                  * thread */
    const lr_log *log;
};

/* A sample of a matrix's rows, taken before the matrix is made. */
struct lr_matrix_sample {
    int64_t num_rows;     /* rows of the sample */
    int64_t num_elements; /* elements of these rows */
    uint32_t *lor;        /* [num_elements] in any order; lr_matrix_init sorts this array */
};

/* Makes an empty matrix, whose ranges balance the elements of the sample. num_lors: at most 2^32. After an error
 * *matrix holds no memory. */
lr_status lr_matrix_init(struct lr_matrix *matrix, int64_t num_lors, struct lr_matrix_sample *sample,
                         const lr_log *log);
void lr_matrix_finish(struct lr_matrix *matrix);

/* Appends the next row; row->row is not read. Elements too small for a float are dropped. */
lr_status lr_matrix_append(struct lr_matrix *matrix, const lr_row *row);

/* Appends the next rows on matrix->threads threads. The matrix does not depend on the number of threads. */
lr_status lr_matrix_append_block(struct lr_matrix *matrix, const struct lr_row_block *block);

/* Moves staged rows into a chunk and frees the staging memory. The caller calls this after the last row. */
lr_status lr_matrix_complete(struct lr_matrix *matrix);

/* The LORs of a selection (model/lors/selection.h), whose values are in its order. Ranges of the matrix without any of
 * these LORs are not read. */
struct lr_stored_lors {
    const lr_lors *lors;
    const lr_selection *selection; /* checked */
};

/* Each function computes data = A image, or image = A^T data, for the LORs of a part; part NULL = all LORs. The output
 * is overwritten. Vectors are on the host: image [num_rows], data [num_lors]. With a part, data NULL stands for 1 for
 * every LOR. Sums are in double. Rows whose image value is 0 are not read. errors: LR_FAILED if memory runs out. */
lr_status lr_matrix_forward(const struct lr_matrix *matrix, const struct lr_stored_lors *part, const lr_vector *image,
                            lr_vector *data);
lr_status lr_matrix_back(const struct lr_matrix *matrix, const struct lr_stored_lors *part, const lr_vector *data,
                         lr_vector *image);

/* Copies a row, sorted by LOR. errors: LR_FAILED if memory runs out, logged. */
lr_status lr_matrix_row(const struct lr_matrix *matrix, int64_t row, struct lr_owned_row *copy);

/* --- a backend that stores another backend's matrix and projects from memory --- */

struct lr_stored_size {
    bool stored;
    int64_t num_elements, memory_bytes;
};

struct lr_stored_wish {
    bool required;                              /* true if a matrix without room in memory is an error */
    struct lr_progress_filter *progress_filter; /* the filter to which params->progress belongs */
};

/* LR_STORED_MOST_LORS: largest number of LORs, because elements store LOR numbers of 32 bits. LR_STORED_ELEMENT_BYTES:
 * size of an element. */
#define LR_STORED_MOST_LORS ((int64_t)1 << 32)
#define LR_STORED_ELEMENT_BYTES 8.0

/* Returns the memory limit of a matrix, bytes: params->max_memory_bytes, or half of the machine's memory. */
int64_t lr_stored_memory_limit(const struct lr_backend_params *params);

/* Returns true if LR_STORE_AUTO stores the matrix, provided that memory has room. projections: how often all LORs will
 * be projected; 0 = not known, or to be ignored. The rules, in this order:
 * - With a graphics processor, the matrix is not stored. The host would store it, and the device computes elements
 *   faster than the host reads them. On an H200, eight iterations of eXplore Vista took 0.6 s without the matrix and 46
 *   s with it (docs/performance.md). With a backend that has is_never_kept, the matrix is not stored either.
 * - If the number of projections is not known, the matrix is stored.
 * - With a software renderer, it is not stored, because its rows take as long as 50 projections or more.
 * - On processors, the number of projections decides. A backend that computes all rows in every projection (cpu) stores
 *   the matrix from 2 projections on, because making the matrix takes longer than one projection. Other backends
 *   (native) store it from 3 projections on, which is an ML-EM of one iteration: making the matrix takes as long as one
 *   or two projections.
 *
 * No rule depends on timing, so the same call computes the same numbers in every run. */
bool lr_stored_pays(const struct lr_backend *backend, double projections);

/* Generates the matrix of *backend from its rows, and replaces *backend by a new backend, which owns the old one and
 * projects from the matrix. Elements are in float, arrays in the precision of the old backend, and sums in double.
 * Results have the same bits for any params->threads. The new backend reads rows of voxels from the matrix. Rows of
 * points and pictures still come from the old one.
 *
 * The matrix is stored if two conditions hold: it has fewer than 2^32 LORs, because elements store 32-bit numbers, and
 * its size is at most params->max_memory_bytes (0 = half of the machine's memory). The size is first estimated from a
 * few dozen rows, and then checked while the matrix grows. If the matrix is too large, the result is LR_FAILED if
 * wish->required is true. Otherwise *backend does not change, size->stored is false, and the log gives the size as
 * information.
 *
 * params: must live as long as the backend. */
lr_status lr_stored_wrap(struct lr_backend *backend, const struct lr_backend_params *params,
                         const struct lr_stored_wish *wish, struct lr_stored_size *size);
