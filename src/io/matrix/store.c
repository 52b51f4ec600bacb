/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/output_place.h"
#include "io/matrix/store_files.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = lr_store_block_elements };

/* Seconds between two checkpoints. */
#define CHECKPOINT_S 15.0

uint64_t lr_store_check(const struct lr_store_segment *segment, const int64_t *counts)
{
    uLong check = crc32(0, (const Bytef *)segment, offsetof(struct lr_store_segment, check));
    const unsigned char *bytes = (const unsigned char *)counts;
    check = crc32_z(check, bytes, (size_t)segment->num_counts * sizeof(*counts));
    return check;
}

/* --- bytes --- */

lr_status lr_store_write_at(struct lr_matrix_store *store, int file, const void *from, size_t bytes,
                            int64_t place)
{
    const unsigned char *at = from;
    while (bytes > 0 && store->output.error == 0) {
        const ssize_t done = pwrite(file, at, bytes, (off_t)place);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return lr_output_fail(&store->output, done < 0 ? errno : ENOSPC);
        }
        at += done;
        place += done;
        bytes -= (size_t)done;
    }
    return store->output.error == 0 ? LR_OK : LR_FAILED;
}

size_t lr_store_read_at(int file, void *to, size_t bytes, int64_t place)
{
    unsigned char *at = to;
    size_t got = 0;
    errno = 0;
    while (got < bytes) {
        const ssize_t done = pread(file, at + got, bytes - got, (off_t)place + (off_t)got);
        if (done < 0 && errno == EINTR) {
            errno = 0;
            continue;
        }
        if (done <= 0) {
            break;
        }
        got += (size_t)done;
    }
    return got;
}

static size_t column_bytes(const struct lr_matrix_store *store)
{
    return store->params.wide ? sizeof(int64_t) : sizeof(int32_t);
}

/* Where a block's columns begin; its values follow. */
static int64_t block_place(const struct lr_matrix_store *store, int64_t block)
{
    return lr_store_head_bytes + block * BLOCK * (int64_t)(column_bytes(store) + sizeof(float));
}

/* Writes the first `count` elements of the block at hand, which is the `block`-th. */
static lr_status write_block(struct lr_matrix_store *store, int64_t block, int64_t count)
{
    const int64_t place = block_place(store, block);
    const size_t bytes = column_bytes(store);
    LR_TRY(
        lr_store_write_at(store, store->output.file, store->columns, (size_t)count * bytes, place));
    return lr_store_write_at(store, store->output.file, store->values,
                             (size_t)count * sizeof(float), place + BLOCK * (int64_t)bytes);
}

/* --- checkpoints --- */

static lr_status settle(struct lr_matrix_store *store, int file)
{
    return fdatasync(file) == 0 || errno == EINVAL ? LR_OK : lr_output_fail(&store->output, errno);
}

lr_status lr_matrix_store_checkpoint(struct lr_matrix_store *store)
{
    const int64_t in_block = store->totals.elements % BLOCK;
    store->checkpoint_s = lr_clock_seconds();
    LR_TRY(write_block(store, store->totals.elements / BLOCK, in_block));
    if (store->num_counts == 0) {
        return LR_OK;
    }
    LR_TRY(settle(store, store->output.file));
    struct lr_store_segment segment = {.num_counts = store->num_counts, .totals = store->totals};
    segment.check = lr_store_check(&segment, store->counts);
    const size_t bytes = (size_t)store->num_counts * sizeof(*store->counts);
    LR_TRY(
        lr_store_write_at(store, store->rows_file, &segment, sizeof(segment), store->next_segment));
    LR_TRY(lr_store_write_at(store, store->rows_file, store->counts, bytes,
                             store->next_segment + (int64_t)sizeof(segment)));
    LR_TRY(settle(store, store->rows_file));
    if (store->kept_rows == 0 && !lr_place_sync_folder(store->output.target)) {
        return lr_output_fail(&store->output, errno);
    }
    store->kept_rows = store->totals.rows;
    store->next_segment += (int64_t)(sizeof(segment) + bytes);
    store->num_counts = 0;
    return LR_OK;
}

lr_status lr_matrix_store_trim(struct lr_matrix_store *store)
{
    static const unsigned char nothing[lr_store_head_bytes - lr_store_magic_bytes];
    const int64_t block = store->totals.elements / BLOCK, rest = store->totals.elements % BLOCK;
    const int64_t bytes = rest * (int64_t)sizeof(float) + BLOCK * (int64_t)column_bytes(store);
    LR_TRY(lr_store_write_at(store, store->output.file, nothing, sizeof(nothing), 0));
    const off_t end = (off_t)(block_place(store, block) + (rest > 0 ? bytes : 0));
    return ftruncate(store->output.file, end) == 0 ? LR_OK : lr_output_fail(&store->output, errno);
}

/* --- appending --- */

static lr_status count_row(struct lr_matrix_store *store, int64_t count)
{
    store->counts[store->num_counts++] = count;
    store->totals.rows++;
    const bool is_due =
        store->num_counts == lr_store_most_counts ||
        (store->totals.rows % 64 == 0 && lr_clock_seconds() - store->checkpoint_s > CHECKPOINT_S);
    return is_due ? lr_matrix_store_checkpoint(store) : LR_OK;
}

/* As many elements of the row, from *next on, as the block at hand has room for. */
static void fill_block(struct lr_matrix_store *store, const lr_row *row, double least,
                       int64_t *next)
{
    int64_t at = store->totals.elements % BLOCK;
    const int64_t before = at;
    int64_t n = *next;
    int32_t *narrow = store->columns;
    int64_t *wide = store->columns;
    for (; n < row->count && at < BLOCK; n++) {
        const double value = row->probability[n];
        if (value < least) {
            store->totals.dropped_elements++;
            store->totals.dropped_sum += value;
            continue;
        }
        if (store->params.wide) {
            wide[at] = row->lor[n];
        } else {
            narrow[at] = (int32_t)row->lor[n];
        }
        store->values[at++] = (float)value;
        store->totals.sum += value;
    }
    *next = n;
    store->totals.elements += at - before;
}

lr_status lr_matrix_store_append(struct lr_matrix_store *store, const lr_row *row, double least)
{
    const int64_t before = store->totals.elements;
    for (int64_t next = 0; next < row->count;) {
        const int64_t elements = store->totals.elements;
        fill_block(store, row, least, &next);
        if (store->totals.elements % BLOCK == 0 && store->totals.elements > elements) {
            LR_TRY(write_block(store, store->totals.elements / BLOCK - 1, BLOCK));
        }
    }
    return count_row(store, store->totals.elements - before);
}

lr_status lr_matrix_store_pass(struct lr_matrix_store *store, int64_t rows)
{
    while (store->totals.rows < rows) {
        LR_TRY(count_row(store, 0));
    }
    return LR_OK;
}

/* --- ends --- */

static void release(struct lr_matrix_store *store)
{
    if (store->rows_file >= 0) {
        close(store->rows_file);
    }
    store->rows_file = -1;
    free(store->part_path);
    free(store->rows_path);
    free(store->columns);
    free(store->values);
    free(store->counts);
    store->part_path = NULL;
    store->rows_path = NULL;
    store->columns = NULL;
    store->values = NULL;
    store->counts = NULL;
}

void lr_matrix_store_leave(struct lr_matrix_store *store)
{
    lr_output_leave(&store->output);
    release(store);
}

/* The names go while the locks are held. */
void lr_matrix_store_remove(struct lr_matrix_store *store)
{
    if (store->rows_file >= 0) {
        unlink(store->rows_path);
    }
    if (store->output.file >= 0 && store->output.temporary != NULL) {
        unlink(store->output.temporary);
    }
    lr_matrix_store_leave(store);
}

void lr_matrix_store_abandon(struct lr_matrix_store *store)
{
    if (store->kept_rows > 0 && store->output.file >= 0 && store->output.error == 0) {
        (void)lr_matrix_store_checkpoint(store);
    }
    if (store->kept_rows == 0 || access(store->part_path, F_OK) != 0) {
        lr_matrix_store_remove(store);
        return;
    }
    lr_warn(store->params.log,
            "%lld of %lld rows are kept in %s and %s: resuming (--resume) goes on with them",
            (long long)store->kept_rows, (long long)store->params.num_rows, store->part_path,
            store->rows_path);
    lr_matrix_store_leave(store);
}

/* --- reading --- */

/* After a read that failed, or found less than there was (errno 0). */
static lr_status complain_read(struct lr_matrix_store *store, const char *path)
{
    char text[128];
    if (errno != 0) {
        return lr_error(store->params.log, LR_FAILED,
                        "%s, which %s is made of, cannot be read: %s: is its drive there?", path,
                        store->params.path, lr_error_text(errno, text));
    }
    return lr_error(store->params.log, LR_FAILED,
                    "%s has lost elements that were written: the disk or another program has "
                    "changed it: begin anew",
                    path);
}

/* Makes int64 of int32, from the end on, in place. */
static void widen(int64_t *columns, int64_t count)
{
    const int32_t *narrow = (const int32_t *)(const void *)columns;
    for (int64_t k = count - 1; k >= 0; k--) {
        int32_t column;
        memcpy(&column, narrow + k, sizeof(column));
        columns[k] = column;
    }
}

static void narrow_down(int64_t *columns, int64_t count)
{
    char *bytes = (char *)columns;
    for (int64_t k = 0; k < count; k++) {
        int64_t column;
        memcpy(&column, bytes + k * (int64_t)sizeof(int64_t), sizeof(column));
        const int32_t narrow = (int32_t)column;
        memcpy(bytes + k * (int64_t)sizeof(int32_t), &narrow, sizeof(narrow));
    }
}

lr_status lr_matrix_store_read(struct lr_matrix_store *store, const struct lr_matrix_piece *piece)
{
    const int64_t block = piece->begin / BLOCK, inside = piece->begin % BLOCK;
    const size_t bytes = column_bytes(store), count = (size_t)piece->count;
    const int64_t place = block_place(store, block);
    const int file = store->output.file;
    if (piece->columns != NULL) {
        if (lr_store_read_at(file, piece->columns, count * bytes,
                             place + inside * (int64_t)bytes) != count * bytes) {
            return complain_read(store, store->part_path);
        }
        if (piece->is_wide && !store->params.wide) {
            widen(piece->columns, piece->count);
        } else if (!piece->is_wide && store->params.wide) {
            narrow_down(piece->columns, piece->count);
        }
    }
    const int64_t values = place + BLOCK * (int64_t)bytes + inside * (int64_t)sizeof(float);
    if (piece->values != NULL && lr_store_read_at(file, piece->values, count * sizeof(float),
                                                  values) != count * sizeof(float)) {
        return complain_read(store, store->part_path);
    }
    return LR_OK;
}

lr_status lr_matrix_counts_read(struct lr_matrix_counts *counts, int64_t room, int64_t *numbers,
                                int64_t *num)
{
    struct lr_matrix_store *store = counts->store;
    *num = 0;
    if (counts->next_segment == 0) {
        counts->next_segment = store->segments_begin;
    }
    while (*num < room && (counts->left > 0 || counts->next_segment < store->next_segment)) {
        if (counts->left == 0) {
            struct lr_store_segment segment;
            if (lr_store_read_at(store->rows_file, &segment, sizeof(segment),
                                 counts->next_segment) != sizeof(segment)) {
                return complain_read(store, store->rows_path);
            }
            counts->segment = counts->next_segment + (int64_t)sizeof(segment);
            counts->left = segment.num_counts;
            counts->next_segment = counts->segment + counts->left * (int64_t)sizeof(*numbers);
        }
        const int64_t taken = counts->left < room - *num ? counts->left : room - *num;
        const size_t bytes = (size_t)taken * sizeof(*numbers);
        if (lr_store_read_at(store->rows_file, numbers + *num, bytes, counts->segment) != bytes) {
            return complain_read(store, store->rows_path);
        }
        counts->segment += (int64_t)bytes;
        counts->left -= taken;
        *num += taken;
    }
    return LR_OK;
}
