/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Functions that begin or continue a matrix store, fill and read it, and end it. */
#include "io/matrix/store.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "io/checkpoints/key.h"
#include "io/files/output.h"
#include "io/files/regular_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
    BLOCK = lr_store_block_elements,
    HEAD = lr_store_head_bytes,
    MAGIC_BYTES = 16,
    SUMS = 8,
    MOST_COUNTS = 1 << 20, /* largest number of rows between two checkpoints */
    GRAIN = 4              /* number of pieces that a thread takes at a time */
};

/* `magic` begins TARGET.part-rows. `part_magic` ends the head of TARGET.part, where HDF5 writes nothing. The first
 * COMMON_MAGIC and COMMON_PART_MAGIC bytes are the same in all versions of this program. */
static const char magic[8] = "LRrows2";
static const char part_magic[MAGIC_BYTES] = "LORaster rows 2";
enum { COMMON_MAGIC = 6, PART_MAGIC = HEAD - MAGIC_BYTES, COMMON_PART_MAGIC = 14 };

struct head {
    char magic[8];
    int64_t wide;
    int64_t key_bytes; /* length of the key, which follows the head without a zero byte */
};

/* TARGET.part-rows holds a head, the key, then segments. Each checkpoint adds a segment: totals, the number of elements
 * of each row since the previous checkpoint, and a checksum. A segment with a wrong checksum is ignored. */
struct segment {
    int64_t num_counts; /* numbers that follow */
    struct lr_matrix_totals totals;
    uint64_t check; /* checksum of the fields above and of the counts */
};

/* Seconds between two checkpoints. */
#define CHECKPOINT_S 15.0

static uint64_t check_of(const struct segment *segment, const int64_t *counts)
{
    uLong check = crc32(0, (const Bytef *)segment, offsetof(struct segment, check));
    const unsigned char *bytes = (const unsigned char *)counts;
    check = crc32_z(check, bytes, (size_t)segment->num_counts * sizeof(*counts));
    return check;
}

/* --- bytes --- */

static lr_status write_at(struct lr_matrix_store *store, int file, const void *from, size_t bytes, int64_t place)
{
    const unsigned char *at = from;
    LR_TRY(store->output.error == 0 ? LR_OK : LR_FAILED);
    while (bytes > 0) {
        const ssize_t done = pwrite(file, at, bytes, (off_t)place);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return lr_output_fail(&store->output, done < 0 ? errno : ENOSPC);
        at += done;
        place += done;
        bytes -= (size_t)done;
    }
    return LR_OK;
}

/* Returns the number of bytes read. This number is smaller than requested at the end of the file (errno is 0) or after
 * an error. */
static size_t read_at(int file, void *to, size_t bytes, int64_t place)
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
        if (done <= 0) break;
        got += (size_t)done;
    }
    return got;
}

static size_t column_bytes(const struct lr_matrix_store *store)
{
    return store->params.wide ? sizeof(int64_t) : sizeof(int32_t);
}

/* Returns the offset of a block's columns in TARGET.part. The values of the block follow its columns. */
static int64_t block_place(const struct lr_matrix_store *store, int64_t block)
{
    return HEAD + block * BLOCK * (int64_t)(column_bytes(store) + sizeof(float));
}

/* Writes the first `count` elements in memory to the block with the number `block`. */
static lr_status write_block(struct lr_matrix_store *store, int64_t block, int64_t count)
{
    const int64_t place = block_place(store, block);
    const size_t bytes = column_bytes(store);
    LR_TRY(write_at(store, store->output.file, store->columns, (size_t)count * bytes, place));
    return write_at(store, store->output.file, store->values, (size_t)count * sizeof(float),
                    place + BLOCK * (int64_t)bytes);
}

/* --- checkpoints --- */

static lr_status sync_data(struct lr_matrix_store *store, int file)
{
    return fdatasync(file) == 0 || errno == EINVAL ? LR_OK : lr_output_fail(&store->output, errno);
}

lr_status lr_matrix_store_checkpoint(struct lr_matrix_store *store)
{
    store->checkpoint_s = lr_clock_seconds();
    LR_TRY(write_block(store, store->totals.elements / BLOCK, store->totals.elements % BLOCK));
    if (store->num_counts == 0) return LR_OK;
    LR_TRY(sync_data(store, store->output.file));
    struct segment segment = {.num_counts = store->num_counts, .totals = store->totals};
    segment.check = check_of(&segment, store->counts);
    const size_t bytes = (size_t)store->num_counts * sizeof(*store->counts);
    LR_TRY(write_at(store, store->rows_file, &segment, sizeof(segment), store->next_segment));
    LR_TRY(write_at(store, store->rows_file, store->counts, bytes, store->next_segment + (int64_t)sizeof(segment)));
    LR_TRY(sync_data(store, store->rows_file));
    if (store->saved_rows == 0 && !lr_place_sync_folder(store->output.target))
        return lr_output_fail(&store->output, errno);
    store->saved_rows = store->totals.rows;
    store->next_segment += (int64_t)(sizeof(segment) + bytes);
    store->num_counts = 0;
    return LR_OK;
}

lr_status lr_matrix_store_trim(struct lr_matrix_store *store)
{
    static const unsigned char zeros[HEAD - MAGIC_BYTES];
    const int64_t block = store->totals.elements / BLOCK, rest = store->totals.elements % BLOCK;
    const int64_t bytes = rest * (int64_t)sizeof(float) + BLOCK * (int64_t)column_bytes(store);
    LR_TRY(write_at(store, store->output.file, zeros, sizeof(zeros), 0));
    const off_t end = (off_t)(block_place(store, block) + (rest > 0 ? bytes : 0));
    return ftruncate(store->output.file, end) == 0 ? LR_OK : lr_output_fail(&store->output, errno);
}

/* --- appending row by row --- */

/* Ends a row of `count` elements and makes a checkpoint when one is due. */
static lr_status end_row(struct lr_matrix_store *store, int64_t count)
{
    store->counts[store->num_counts++] = count;
    store->totals.rows++;
    const bool is_due = store->num_counts == MOST_COUNTS ||
                        (store->totals.rows % 64 == 0 && lr_clock_seconds() - store->checkpoint_s > CHECKPOINT_S);
    return is_due ? lr_matrix_store_checkpoint(store) : LR_OK;
}

/* Counts elements that were put into the block in memory, and writes the block when it is full. */
static lr_status end_elements(struct lr_matrix_store *store, int64_t count, double sum)
{
    store->totals.sum += sum;
    store->totals.elements += count;
    return store->totals.elements % BLOCK == 0 ? write_block(store, store->totals.elements / BLOCK - 1, BLOCK) : LR_OK;
}

/* Adds up in several partial sums at once. With a single sum, each addition would wait for the one before. */
static double add_up(const double *values, int64_t count)
{
    double sums[SUMS] = {0.0}, sum = 0.0;
    const int64_t even = count - count % SUMS;
    for (int64_t n = 0; n < even; n += SUMS)
        for (int k = 0; k < SUMS; k++) sums[k] += values[n + k];
    for (int64_t n = even; n < count; n++) sum += values[n];
    for (int k = 0; k < SUMS; k++) sum += sums[k];
    return sum;
}

lr_status lr_matrix_store_append(struct lr_matrix_store *store, const lr_row *row, double least)
{
    const int64_t before = store->totals.elements;
    for (int64_t next = 0, count; next < row->count; next += count) {
        /* The longest run of elements that are all kept or all dropped. */
        const double *from = row->probability + next;
        const bool is_kept = !(from[0] < least);
        const int64_t left = row->count - next;
        count = least > -INFINITY ? 1 : left;
        while (count < left && !(from[count] < least) == is_kept) count++;
        if (!is_kept) {
            store->totals.dropped_elements += count;
            store->totals.dropped_sum += add_up(from, count);
            continue;
        }

        /* The block takes as many of these elements as it has room for. */
        const int64_t at = store->totals.elements % BLOCK;
        count = count < BLOCK - at ? count : BLOCK - at;
        for (int64_t n = 0; n < count; n++) store->values[at + n] = (float)from[n];
        if (store->params.wide) {
            memcpy((int64_t *)store->columns + at, row->lor + next, (size_t)count * sizeof(*row->lor));
        } else {
            int32_t *narrow = (int32_t *)store->columns + at;
            for (int64_t n = 0; n < count; n++) narrow[n] = (int32_t)row->lor[next + n];
        }
        LR_TRY(end_elements(store, count, add_up(from, count)));
    }
    return end_row(store, store->totals.elements - before);
}

lr_status lr_matrix_store_pass(struct lr_matrix_store *store, int64_t rows)
{
    while (store->totals.rows < rows) LR_TRY(end_row(store, 0));
    return LR_OK;
}

/* --- appending rows that come together --- */

/* Elements of a row that lie in one block of the file. A row that goes beyond the end of a block has several pieces. */
struct row_piece {
    int64_t row;  /* index of the row among the rows that are appended together */
    int64_t from; /* index of the piece's first element among the elements of these rows */
    int64_t count;
    double sum;
    bool is_wrong;
};

/* Rows that several threads append. */
struct appending {
    struct lr_matrix_store *store;
    const struct lr_row_block *block;
    int64_t num_columns;
    int64_t before; /* elements in the store before these rows */
    struct row_piece *pieces;
};

/* Checks that the columns of a row ascend, even across pieces, and that values are finite. Adds up values in the order
 * in which add_up does. */
static void check_pieces(void *user, int64_t begin, int64_t end)
{
    const struct appending *appending = user;
    for (struct row_piece *piece = appending->pieces + begin; piece < appending->pieces + end; piece++) {
        const struct lr_packed_element *from = appending->block->elements + piece->from;
        const bool goes_on = piece > appending->pieces && piece[-1].row == piece->row;
        bool is_right = from[piece->count - 1].lor < appending->num_columns && (!goes_on || from[-1].lor < from[0].lor);
        for (int64_t n = 0; n + 1 < piece->count; n++) is_right &= from[n].lor < from[n + 1].lor;
        for (int64_t n = 0; n < piece->count; n++) is_right &= isfinite(from[n].value) != 0;
        piece->is_wrong = !is_right;

        double sums[SUMS] = {0.0}, sum = 0.0;
        const int64_t even = piece->count - piece->count % SUMS;
        for (int64_t n = 0; n < even; n += SUMS)
            for (int k = 0; k < SUMS; k++) sums[k] += (double)from[n + k].value;
        for (int64_t n = even; n < piece->count; n++) sum += (double)from[n].value;
        for (int k = 0; k < SUMS; k++) sum += sums[k];
        piece->sum = sum;
    }
}

/* Copies pieces into the memory of the current block of the file. */
static void copy_pieces(void *user, int64_t begin, int64_t end)
{
    const struct appending *appending = user;
    struct lr_matrix_store *store = appending->store;
    for (const struct row_piece *piece = appending->pieces + begin; piece < appending->pieces + end; piece++) {
        const int64_t at = (appending->before + piece->from) % BLOCK;
        const struct lr_packed_element *from = appending->block->elements + piece->from;
        if (store->params.wide) {
            int64_t *wide = (int64_t *)store->columns + at;
            for (int64_t n = 0; n < piece->count; n++) wide[n] = from[n].lor;
        } else {
            uint32_t *narrow = (uint32_t *)store->columns + at;
            for (int64_t n = 0; n < piece->count; n++) narrow[n] = from[n].lor;
        }
        for (int64_t n = 0; n < piece->count; n++) store->values[at + n] = from[n].value;
    }
}

lr_status lr_matrix_store_append_block(struct lr_matrix_store *store, const struct lr_row_block *block,
                                       int64_t num_columns, bool *is_wrong)
{
    const int64_t most = block->num_rows + block->num_elements / BLOCK + 2;
    struct row_piece *pieces = lr_alloc(most, sizeof(*pieces), "matrix rows", store->params.log);
    if (pieces == NULL) return LR_FAILED;
    struct appending appending = {store, block, num_columns, store->totals.elements, pieces};
    /* Cuts each row into pieces where blocks of the file end. */
    int64_t from = 0, num = 0;
    for (int64_t row = 0; row < block->num_rows; row++) {
        for (int64_t left = block->rows[row].count, count; left > 0; left -= count) {
            const int64_t room = BLOCK - (appending.before + from) % BLOCK;
            count = left < room ? left : room;
            pieces[num++] = (struct row_piece){.row = row, .from = from, .count = count};
            from += count;
        }
    }

    lr_parallel_for(block->threads, num, GRAIN, check_pieces, &appending);
    *is_wrong = false;
    for (int64_t k = 0; k < num; k++) *is_wrong = *is_wrong || pieces[k].is_wrong;
    if (*is_wrong) {
        free(pieces);
        return LR_OK;
    }

    /* Copies the pieces, one block of the file after the other, and counts the elements row by row. */
    lr_status status = LR_OK;
    int64_t next = 0, copied = 0;
    for (int64_t row = 0; row < block->num_rows && status == LR_OK; row++) {
        for (; next < num && pieces[next].row == row && status == LR_OK; next++) {
            if (next == copied) {
                const int64_t file_block = store->totals.elements / BLOCK;
                while (copied < num && (appending.before + pieces[copied].from) / BLOCK == file_block) copied++;
                appending.pieces = pieces + next;
                lr_parallel_for(block->threads, copied - next, GRAIN, copy_pieces, &appending);
            }
            status = end_elements(store, pieces[next].count, pieces[next].sum);
        }
        if (status == LR_OK) status = end_row(store, block->rows[row].count);
    }
    free(pieces);
    return status;
}

/* --- ends --- */

void lr_matrix_store_leave(struct lr_matrix_store *store)
{
    lr_output_leave(&store->output);
    if (store->rows_file >= 0) close(store->rows_file);
    store->rows_file = -1;
    lr_free_all(store->part_path, store->rows_path, store->columns, store->values, store->counts);
    store->part_path = store->rows_path = NULL;
    store->columns = NULL;
    store->values = NULL;
    store->counts = NULL;
}

void lr_matrix_store_remove(struct lr_matrix_store *store)
{
    if (store->rows_file >= 0) unlink(store->rows_path);
    if (store->output.file >= 0 && store->output.temporary != NULL) unlink(store->output.temporary);
    lr_matrix_store_leave(store);
}

void lr_matrix_store_abandon(struct lr_matrix_store *store)
{
    if (store->saved_rows > 0 && store->output.file >= 0 && store->output.error == 0)
        (void)lr_matrix_store_checkpoint(store);
    if (store->saved_rows == 0 || access(store->part_path, F_OK) != 0) {
        lr_matrix_store_remove(store);
        return;
    }
    lr_warn(store->params.log, "%lld of %lld rows are kept in %s and %s: resuming goes on with them",
            (long long)store->saved_rows, (long long)store->params.num_rows, store->part_path, store->rows_path);
    lr_matrix_store_leave(store);
}

/* --- reading --- */

/* Reports that reading failed or, if errno is 0, that the file has become shorter. */
static lr_status complain_read(struct lr_matrix_store *store, const char *path)
{
    char text[128];
    if (errno != 0) {
        return lr_error(store->params.log, LR_FAILED,
                        "%s, which %s is made of, cannot be read: %s: is its drive there?", path, store->params.path,
                        lr_error_text(errno, text));
    }
    return lr_error(store->params.log, LR_FAILED,
                    "%s has lost elements that were written: the disk or another program has changed it: begin anew",
                    path);
}

lr_status lr_matrix_store_read(struct lr_matrix_store *store, const struct lr_matrix_piece *piece)
{
    const int64_t block = piece->begin / BLOCK, inside = piece->begin % BLOCK;
    const size_t bytes = column_bytes(store), count = (size_t)piece->count;
    const int64_t place = block_place(store, block);
    const int file = store->output.file;
    if (piece->columns != NULL) {
        if (read_at(file, piece->columns, count * bytes, place + inside * (int64_t)bytes) != count * bytes)
            return complain_read(store, store->part_path);
        /* Converts int32 to int64 or back within the caller's array. If numbers become wider, the conversion begins at
         * the end. */
        char *at = piece->columns;
        for (int64_t n = 0; n < piece->count && piece->is_wide != store->params.wide; n++) {
            const int64_t k = piece->is_wide ? piece->count - 1 - n : n;
            int32_t narrow;
            int64_t wide;
            if (piece->is_wide) {
                memcpy(&narrow, at + k * (int64_t)sizeof(narrow), sizeof(narrow));
                wide = narrow;
                memcpy(at + k * (int64_t)sizeof(wide), &wide, sizeof(wide));
            } else {
                memcpy(&wide, at + k * (int64_t)sizeof(wide), sizeof(wide));
                narrow = (int32_t)wide;
                memcpy(at + k * (int64_t)sizeof(narrow), &narrow, sizeof(narrow));
            }
        }
    }
    const int64_t values = place + BLOCK * (int64_t)bytes + inside * (int64_t)sizeof(float);
    if (piece->values != NULL && read_at(file, piece->values, count * sizeof(float), values) != count * sizeof(float))
        return complain_read(store, store->part_path);
    return LR_OK;
}

lr_status lr_matrix_counts_read(struct lr_matrix_counts *counts, int64_t room, int64_t *numbers, int64_t *num)
{
    struct lr_matrix_store *store = counts->store;
    *num = 0;
    if (counts->next_segment == 0) counts->next_segment = store->segments_begin;
    while (*num < room && (counts->left > 0 || counts->next_segment < store->next_segment)) {
        if (counts->left == 0) {
            struct segment segment;
            if (read_at(store->rows_file, &segment, sizeof(segment), counts->next_segment) != sizeof(segment))
                return complain_read(store, store->rows_path);
            counts->segment = counts->next_segment + (int64_t)sizeof(segment);
            counts->left = segment.num_counts;
            counts->next_segment = counts->segment + counts->left * (int64_t)sizeof(*numbers);
        }
        const int64_t taken = counts->left < room - *num ? counts->left : room - *num;
        const size_t bytes = (size_t)taken * sizeof(*numbers);
        if (read_at(store->rows_file, numbers + *num, bytes, counts->segment) != bytes)
            return complain_read(store, store->rows_path);
        counts->segment += (int64_t)bytes;
        counts->left -= taken;
        *num += taken;
    }
    return LR_OK;
}

/* --- continuing --- */

/* Reports that reading failed or, if errno is 0, that the files have unexpected contents. */
static lr_status refuse_rows(const struct lr_matrix_store *store)
{
    char text[128];
    if (errno != 0) {
        return lr_error(store->params.log, LR_FAILED, "cannot go on with %s and %s: %s", store->part_path,
                        store->rows_path, lr_error_text(errno, text));
    }
    return lr_error(store->params.log, LR_USAGE,
                    "there is nothing to go on with: %s and %s of an earlier run are missing, or "
                    "were not begun by this version: leave out resuming",
                    store->part_path, store->rows_path);
}

/* True if the file has these bytes (at most 16) at the offset `place`. */
static bool has_bytes(int file, const char *bytes, size_t count, int64_t place)
{
    char found[MAGIC_BYTES];
    return read_at(file, found, count, place) == count && memcmp(found, bytes, count) == 0;
}

static lr_status make_memory(struct lr_matrix_store *store)
{
    store->columns = lr_alloc(BLOCK, column_bytes(store), "matrix elements", store->params.log);
    store->values = lr_alloc(BLOCK, sizeof(*store->values), "matrix elements", store->params.log);
    return store->columns != NULL && store->values != NULL ? LR_OK : LR_FAILED;
}

static lr_status resume(struct lr_matrix_store *store)
{
    struct head head;
    if (!has_bytes(store->output.file, part_magic, sizeof(part_magic), PART_MAGIC) ||
        read_at(store->rows_file, &head, sizeof(head), 0) != sizeof(head) ||
        memcmp(head.magic, magic, sizeof(magic)) != 0 || head.key_bytes < 0)
        return refuse_rows(store);

    const size_t ours = strlen(store->params.key);
    const size_t most = ours + (1 << 16); /* a limit on memory, for heads that are damaged */
    const size_t wanted = head.key_bytes < (int64_t)most ? (size_t)head.key_bytes : most;
    char *found = lr_alloc((int64_t)wanted + 1, 1, "a file's head", store->params.log);
    if (found == NULL) return LR_FAILED;
    lr_status status = LR_OK;
    if (read_at(store->rows_file, found, wanted, sizeof(struct head)) != wanted) {
        status = refuse_rows(store);
    } else if (wanted != ours || memcmp(found, store->params.key, ours) != 0) {
        status = lr_key_check(store->part_path, (const char *[2]){found, store->params.key}, store->params.log);
        errno = 0;
        status = status == LR_OK ? refuse_rows(store) : status; /* lr_key_check ignores characters after a zero */
    }
    free(found);
    LR_TRY(status);

    store->params.wide = head.wide != 0;
    /* Takes the totals of the last complete segment. Bytes after that segment will be overwritten. */
    for (;;) {
        struct segment segment;
        const int64_t place = store->next_segment, behind = place + (int64_t)sizeof(segment);
        if (read_at(store->rows_file, &segment, sizeof(segment), place) != sizeof(segment)) break;
        if (segment.num_counts <= 0 || segment.num_counts > MOST_COUNTS ||
            segment.totals.rows != store->totals.rows + segment.num_counts ||
            segment.totals.rows > store->params.num_rows || segment.totals.elements < store->totals.elements)
            break;
        const size_t bytes = (size_t)segment.num_counts * sizeof(*store->counts);
        if (read_at(store->rows_file, store->counts, bytes, behind) != bytes ||
            check_of(&segment, store->counts) != segment.check)
            break;
        store->totals = segment.totals;
        store->next_segment = behind + (int64_t)bytes;
    }
    store->saved_rows = store->totals.rows;
    LR_TRY(make_memory(store));
    const int64_t rest = store->totals.elements % BLOCK;
    const struct lr_matrix_piece piece = {store->totals.elements - rest, rest, store->params.wide, store->columns,
                                          store->values};
    return lr_matrix_store_read(store, &piece);
}

/* --- opening --- */

/* Locks TARGET.part-rows too, because the lock on TARGET.part ends when that file becomes the target. */
static lr_status open_files(struct lr_matrix_store *store)
{
    const lr_log *log = store->params.log;
    const bool resumes = store->params.resumes;
    const size_t bytes = strlen(store->output.temporary) + sizeof("-rows");
    store->counts = lr_alloc(MOST_COUNTS, sizeof(int64_t), "matrix rows", log);
    store->part_path = lr_copy_string(store->output.temporary, log);
    store->rows_path = lr_alloc((int64_t)bytes, 1, "a file name", log);
    if (store->counts == NULL || store->part_path == NULL || store->rows_path == NULL) return LR_FAILED;
    snprintf(store->rows_path, bytes, "%s-rows", store->part_path);
    const mode_t mode = resumes ? 0 : lr_place_mode(store->output.target);
    const enum lr_hold hold = lr_hold_open(store->rows_path, mode, &store->rows_file);
    if (hold == LR_HOLD_REFUSED && errno == ENOENT && resumes) {
        errno = 0;
        return refuse_rows(store);
    }
    if (hold != LR_HELD) return lr_hold_complain(hold, store->rows_path, store->params.path, log);
    store->segments_begin = (int64_t)(sizeof(struct head) + strlen(store->params.key));
    store->next_segment = store->segments_begin;
    if (resumes) return resume(store);

    /* Begins anew. Both files must be empty or come from an earlier run, of any version. */
    const int part = store->output.file, rows = store->rows_file;
    const int64_t part_bytes = lseek(part, 0, SEEK_END), rows_bytes = lseek(rows, 0, SEEK_END);
    errno = 0;
    const bool is_part = part_bytes == 0 || has_bytes(part, part_magic, COMMON_PART_MAGIC, PART_MAGIC);
    if (!is_part || !(rows_bytes == 0 || has_bytes(rows, magic, COMMON_MAGIC, 0))) {
        if (errno != 0) return lr_output_fail(&store->output, errno);
        return lr_error(log, LR_FAILED,
                        "cannot write %s: %s is there, and no run of this program has left it: move it "
                        "away, or choose another name",
                        store->params.path, is_part ? store->rows_path : store->part_path);
    }
    if (part_bytes > 0) {
        lr_warn(log, "%s was left by a run that was stopped, and is begun anew: resuming would have gone on with it",
                store->part_path);
    }
    store->is_new = true;
    const size_t key_bytes = strlen(store->params.key);
    struct head head = {.wide = store->params.wide, .key_bytes = (int64_t)key_bytes};
    memcpy(head.magic, magic, sizeof(magic));
    if (ftruncate(part, 0) != 0 || ftruncate(rows, 0) != 0) return lr_output_fail(&store->output, errno);
    LR_TRY(write_at(store, part, part_magic, sizeof(part_magic), PART_MAGIC));
    LR_TRY(write_at(store, rows, &head, sizeof(head), 0));
    LR_TRY(write_at(store, rows, store->params.key, key_bytes, sizeof(head)));
    return make_memory(store);
}

lr_status lr_matrix_store_open(struct lr_matrix_store *store, const struct lr_matrix_store_params *params)
{
    *store = (struct lr_matrix_store){.params = *params, .rows_file = -1};
    LR_TRY(lr_output_open_named(&store->output, params->path, "part", params->log));
    store->checkpoint_s = lr_clock_seconds();
    const lr_status status = open_files(store);
    if (status == LR_OK) return LR_OK;

    /* Removes the files that this call began, or that are still empty. */
    if (store->is_new) {
        lr_matrix_store_remove(store);
        return status;
    }
    if (store->rows_file >= 0 && lseek(store->rows_file, 0, SEEK_END) == 0) unlink(store->rows_path);
    if (lseek(store->output.file, 0, SEEK_END) == 0) unlink(store->output.temporary);
    lr_matrix_store_leave(store);
    return status;
}
