/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows on their way to a file: the elements in TARGET.part, how many each row has in
 * TARGET.part-rows, in a form that another run of the program can go on with. Formats are made of it
 * when all rows are there; HDF5 takes the elements where they lie.
 *
 * TARGET.part: head_bytes, of which the last 16 say what it is, then blocks, each the column numbers of block_elements elements
 * (int32, or int64 where `wide`) and then their values (float32), as the machine has them. The last
 * block is written as far as it goes. */
#ifndef LR_IO_MATRIX_STORE_H
#define LR_IO_MATRIX_STORE_H

#include "io/files/output.h"
#include "io/files/write_behind.h"
#include "model/lors/rows.h"

enum {
    lr_store_head_bytes = 4096,
    lr_store_block_elements = 1 << 20,
    lr_store_most_slots = 16,
    lr_store_most_together = 6 << 20 /* elements that are taken as a block of rows */
};

/* Memory of a block of the file. */
struct lr_store_slot {
    void *columns; /* owned [block_elements]; NULL before the first use */
    float *values;
    struct lr_write_behind behind; /* writes what was full */
};

/* Elements of a row that lie in one block of the file. */
struct lr_store_piece {
    int64_t row;  /* of those that came together */
    int64_t from; /* its first element among theirs */
    int64_t count;
    double sum;
    bool is_wrong; /* a column that does not ascend or is none, or a value that is not finite */
};

/* What has been taken. */
struct lr_matrix_totals {
    int64_t rows, elements, dropped_elements;
    double sum, dropped_sum; /* of the elements kept, and of those dropped */
};

struct lr_matrix_store_params {
    const char *path;
    const char *key; /* says everything the rows depend on, of any length, as lr_matrix_key makes
                        it; another run must have the same */
    int64_t num_rows;
    bool wide;
    bool resumes; /* go on where TARGET.part ends; else begin anew */
    const lr_log *log;
};

/* Must not move while open. */
struct lr_matrix_store {
    struct lr_matrix_store_params params;
    struct lr_output output; /* of TARGET.part, which takes the place of TARGET in the end */
    char *part_path;         /* TARGET.part, also when the output no longer has that name */
    char *rows_path;         /* TARGET.part-rows */
    int rows_file;           /* -1 = closed */
    int64_t segments_begin;  /* place of the first segment in that file */
    bool is_new;             /* begun by this run */
    struct lr_matrix_totals totals;
    struct lr_store_slot slots[lr_store_most_slots]; /* in turn */
    bool by_maps;                                    /* blocks are written through maps of the file */
    int num_slots, slot;                             /* in use; that of the block at hand, whose write is over */
    struct lr_store_piece *pieces;                   /* owned: of rows that came together */
    int64_t max_pieces;
    int64_t *counts; /* elements of rows since the last checkpoint */
    int64_t num_counts;
    int64_t kept_rows; /* written down at checkpoints, of this run and those before */
    double checkpoint_s;
    int64_t next_segment; /* place to write the next one at */
};

/* errors: NULL file names, disk and memory as lr_output_open; LR_USAGE when `resumes` and there is
 * nothing to go on with, or it was made with another key; LR_FAILED when what has one of the two
 * names was not made by a run of this program, or another one has it open. On failure nothing is
 * open; what another run had left stays, and so does whatever else has those names. */
lr_status lr_matrix_store_open(struct lr_matrix_store *store, const struct lr_matrix_store_params *params);

/* Appends the next row: elements of at least `least` (-INFINITY: all of them); the others are dropped and
 * counted. */
lr_status lr_matrix_store_append(struct lr_matrix_store *store, const lr_row *row, double least);

/* Appends the next rows, of lr_store_most_together elements at most and all of them kept, by
 * block->threads threads. The same file as row by row.
 * *is_wrong: something is wrong with an element, and nothing was appended; columns end before num_columns. */
lr_status lr_matrix_store_append_block(struct lr_matrix_store *store, const struct lr_row_block *block,
                                       int64_t num_columns, bool *is_wrong);

/* Appends rows without elements until there are `rows`. */
lr_status lr_matrix_store_pass(struct lr_matrix_store *store, int64_t rows);

/* Writes down everything so far, so that another run can go on from here. */
lr_status lr_matrix_store_checkpoint(struct lr_matrix_store *store);

/* Leaves nothing in TARGET.part but the elements and what says what it is: for who adds the rest of a
 * format around them, and may have tried before. */
lr_status lr_matrix_store_trim(struct lr_matrix_store *store);

/* Ends. Leaves both files; */
void lr_matrix_store_leave(struct lr_matrix_store *store);
/* leaves them where rows have been written down, with a warning that says so, and else removes them; */
void lr_matrix_store_abandon(struct lr_matrix_store *store);
/* removes them, but for a TARGET.part that has become the target. */
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

/* Reads the rows' counts one after the other. Zero but for `store`. */
struct lr_matrix_counts {
    struct lr_matrix_store *store;
    int64_t segment, left; /* place of the next number, and how many the segment still has */
    int64_t next_segment;
};
/* At most `room` numbers; *num = 0 at the end. */
lr_status lr_matrix_counts_read(struct lr_matrix_counts *counts, int64_t room, int64_t *numbers, int64_t *num);

#endif
