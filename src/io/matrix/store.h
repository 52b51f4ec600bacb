/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows on their way to a file that is not written row by row: elements in TARGET.part, the length of each row in
 * TARGET.part-rows. Every format but text and STIR's is made of these two once all rows are there, and another run of
 * the program can continue them after a kill.
 *
 * They are raw because no format can be the checkpoint: npz and Matrix Market state sizes before the rows that decide
 * them, and HDF5 rewrites its index and superblock in place, so that a kill while it does leaves nothing readable. HDF5
 * costs no second copy all the same: it adopts the elements where they lie (hdf5.c).
 *
 * TARGET.part: head_bytes, the last 16 of which identify it, then blocks. A block is the column numbers of
 * block_elements elements (int32, or int64 where `wide`), then their values (float32), in the machine's byte order. The
 * last block is written as far as it is filled. */
#ifndef LR_IO_MATRIX_STORE_H
#define LR_IO_MATRIX_STORE_H

#include "io/files/output.h"
#include "model/lors/rows.h"

enum { lr_store_head_bytes = 4096, lr_store_block_elements = 1 << 20 };

/* Sums over all rows appended. */
struct lr_matrix_totals {
    int64_t rows, elements, dropped_elements;
    double sum, dropped_sum; /* over the elements kept, and those dropped */
};

struct lr_matrix_store_params {
    const char *path;
    const char *key; /* names everything the rows depend on, of any length, made by writer.c; a run
                        that resumes must have the same */
    int64_t num_rows;
    bool wide;
    bool resumes; /* continue at the end of TARGET.part; else begin anew */
    const lr_log *log;
};

struct lr_matrix_store {
    struct lr_matrix_store_params params;
    struct lr_output output; /* TARGET.part, which HDF5 may turn into the target */
    char *part_path;         /* TARGET.part, also when the output no longer has that name */
    char *rows_path;         /* TARGET.part-rows */
    int rows_file;           /* -1 = closed */
    int64_t segments_begin;  /* place of the first segment in that file */
    bool is_new;             /* begun by this run */
    struct lr_matrix_totals totals;
    void *columns; /* owned [block_elements] of the block being filled */
    float *values;
    int64_t *counts; /* elements of rows since the last checkpoint */
    int64_t num_counts;
    int64_t saved_rows; /* rows saved at checkpoints of this run and of earlier runs */
    double checkpoint_s;
    int64_t next_segment; /* place of the next segment */
};

/* errors: NULL file names, disk and memory as lr_output_open; LR_USAGE when `resumes` and there is
 * nothing to continue, or it was made with another key; LR_FAILED when a file of one of the two
 * names was not made by a run of this program, or another one has it open. On failure nothing is
 * open, and all files that were there stay. */
lr_status lr_matrix_store_open(struct lr_matrix_store *store, const struct lr_matrix_store_params *params);

/* Appends the next row: elements of at least `least` (-INFINITY = all of them). The others are dropped and counted. */
lr_status lr_matrix_store_append(struct lr_matrix_store *store, const lr_row *row, double least);

/* Appends the next rows, all elements of them, by block->threads threads. The file is the same as row by row.
 * *is_wrong: an element is out of order, out of range or not finite, and nothing was appended; columns end before
 * num_columns. */
lr_status lr_matrix_store_append_block(struct lr_matrix_store *store, const struct lr_row_block *block,
                                       int64_t num_columns, bool *is_wrong);

/* Appends rows without elements until there are `rows`. */
lr_status lr_matrix_store_pass(struct lr_matrix_store *store, int64_t rows);

/* Saves everything so far, so that another run can continue from here. */
lr_status lr_matrix_store_checkpoint(struct lr_matrix_store *store);

/* Removes everything from TARGET.part but the elements and the identification, also what an earlier attempt to
 * add the rest of a format around them has left. */
lr_status lr_matrix_store_trim(struct lr_matrix_store *store);

/* Ends and leaves both files; */
void lr_matrix_store_leave(struct lr_matrix_store *store);
/* leaves them if rows have been saved, with a warning that says so, and else removes them; */
void lr_matrix_store_abandon(struct lr_matrix_store *store);
/* removes them, except a TARGET.part that has become the target. */
void lr_matrix_store_remove(struct lr_matrix_store *store);

/* --- reading, after a checkpoint --- */

/* Elements begin .. begin + count - 1, within one block: columns as int32 or int64 (is_wide), values
 * as float; either may be NULL. */
struct lr_matrix_piece {
    int64_t begin, count;
    bool is_wide;
    void *columns;
    float *values;
};
lr_status lr_matrix_store_read(struct lr_matrix_store *store, const struct lr_matrix_piece *piece);

/* Reads the rows' counts one after the other. Zero except for `store`. */
struct lr_matrix_counts {
    struct lr_matrix_store *store;
    int64_t segment, left; /* place of the next number, and how many the segment still has */
    int64_t next_segment;
};
/* Reads at most `room` numbers; *num = 0 at the end. */
lr_status lr_matrix_counts_read(struct lr_matrix_counts *counts, int64_t room, int64_t *numbers, int64_t *num);

#endif
