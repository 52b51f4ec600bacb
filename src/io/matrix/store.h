/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The store keeps matrix rows until the target can be written: the elements in TARGET.part, and the number of elements
 * of each row in TARGET.part-rows. Once all rows are there, the program makes the target from these two files. If the
 * program is killed earlier, another run can continue the two files. Only tab-separated text and STIR's files are
 * written row by row, without a store.
 *
 * The target's own format could not serve as the checkpoint. npz and Matrix Market state sizes before the rows, when
 * the sizes are not yet known. HDF5 rewrites its index and superblock in place, so a kill at that moment would leave an
 * unreadable file. An HDF5 target needs no second copy of the elements: TARGET.part becomes the target (hdf5.c).
 *
 * TARGET.part begins with lr_store_head_bytes bytes, the last 16 of which identify the file. Blocks follow. A block
 * holds the column numbers of lr_store_block_elements elements (int32, or int64 if `wide`), then the values of these
 * elements (float32), in the machine's byte order. The last block need not be full. */
#pragma once

#include "io/files/output.h"
#include "model/lors/rows.h"

enum { lr_store_head_bytes = 4096, lr_store_block_elements = 1 << 20 };

/* Sums over all appended rows. */
struct lr_matrix_totals {
    int64_t rows, elements, dropped_elements;
    double sum, dropped_sum; /* sum: over the elements kept; dropped_sum: over the elements dropped */
};

struct lr_matrix_store_params {
    const char *path;
    const char *key; /* names everything that the rows depend on (writer.c); a run that resumes needs an
                        equal key */
    int64_t num_rows;
    bool wide;
    bool resumes; /* true: continue at the end of TARGET.part; false: begin anew */
    const lr_log *log;
};

struct lr_matrix_store {
    struct lr_matrix_store_params params;
    struct lr_output output; /* TARGET.part, which HDF5 may turn into the target */
    char *part_path;         /* TARGET.part, even after that file has become the target */
    char *rows_path;         /* TARGET.part-rows */
    int rows_file;           /* -1 = closed */
    int64_t segments_begin;  /* offset of the first segment in rows_file */
    bool is_new;             /* begun by this run */
    struct lr_matrix_totals totals;
    void *columns; /* owned [block_elements], columns of the block being filled */
    float *values;
    int64_t *counts; /* elements of rows since the last checkpoint */
    int64_t num_counts;
    int64_t saved_rows; /* rows saved at checkpoints of this run and of earlier runs */
    double checkpoint_s;
    int64_t next_segment; /* offset of the next segment */
};

/* Opens a store. errors: as lr_output_open for a NULL path, the disk and memory; LR_USAGE if params->resumes and there
 * is nothing to continue, or the files have another key; LR_FAILED if one of the two files was not made by this
 * program, or is open in another run. On failure nothing is open, and existing files stay. */
lr_status lr_matrix_store_open(struct lr_matrix_store *store, const struct lr_matrix_store_params *params);

/* Appends the elements of the next row that are at least `least`. Smaller elements are dropped and counted. */
lr_status lr_matrix_store_append(struct lr_matrix_store *store, const lr_row *row, double least);

/* Appends the next rows with all their elements, on block->threads threads. The file becomes the same as if
 * lr_matrix_store_append took the rows one by one. *is_wrong: true if a column is out of order, a column is num_columns
 * or larger, or a value is not finite; nothing was appended then. */
lr_status lr_matrix_store_append_block(struct lr_matrix_store *store, const struct lr_row_block *block,
                                       int64_t num_columns, bool *is_wrong);

/* Appends rows without elements until the store has `rows` rows. */
lr_status lr_matrix_store_pass(struct lr_matrix_store *store, int64_t rows);

/* Saves everything so far, so that another run can continue from here. */
lr_status lr_matrix_store_checkpoint(struct lr_matrix_store *store);

/* Removes everything from TARGET.part except for the elements and the identification. A run that was killed while it
 * turned the file into HDF5 may have left other bytes. */
lr_status lr_matrix_store_trim(struct lr_matrix_store *store);

/* Closes both files, which stay. */
void lr_matrix_store_leave(struct lr_matrix_store *store);
/* Closes both files. If rows have been saved, the files stay and a warning says so; otherwise they are removed. */
void lr_matrix_store_abandon(struct lr_matrix_store *store);
/* Removes both files, except a TARGET.part that has become the target. */
void lr_matrix_store_remove(struct lr_matrix_store *store);

/* --- reading, after a checkpoint --- */

/* Elements begin .. begin + count - 1, all in one block. Columns are int64 if is_wide, else int32. Columns or values
 * may be NULL. */
struct lr_matrix_piece {
    int64_t begin, count;
    bool is_wide;
    void *columns;
    float *values;
};
lr_status lr_matrix_store_read(struct lr_matrix_store *store, const struct lr_matrix_piece *piece);

/* Reads how many elements each row has, row after row. All fields but `store` begin as zero. */
struct lr_matrix_counts {
    struct lr_matrix_store *store;
    int64_t segment, left; /* segment: offset of the next number; left: numbers left in its segment */
    int64_t next_segment;
};
/* Reads at most `room` numbers; *num = 0 at the end. */
lr_status lr_matrix_counts_read(struct lr_matrix_counts *counts, int64_t room, int64_t *numbers, int64_t *num);
