/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A matrix store: begun, or taken up where another run has left it; filled; settled. */
#include "io/matrix/store.h"

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "io/checkpoints/key.h"
#include "io/files/output.h"
#include "io/files/regular_file.h"
#include "io/matrix/writer.h"

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
    MOST_COUNTS = 1 << 20, /* rows between two checkpoints, at most */
    PIECES = 4,            /* that a thread takes at a time */
    FEWEST_SLOTS = 2       /* one is filled while the other is written */
};

/* Of TARGET.part-rows, whose first six bytes are those of every version, and of TARGET.part, at the
 * end of its head, where HDF5 puts nothing. */
static const char magic[8] = "LRrows2";
static const char part_magic[MAGIC_BYTES] = "LORaster rows 2";
enum { COMMON_MAGIC = 6, PART_MAGIC = HEAD - MAGIC_BYTES, COMMON_PART_MAGIC = 14 };

struct head {
    char magic[8];
    int64_t wide;
    int64_t key_bytes; /* of the key, which follows without a zero */
};

/* TARGET.part-rows: a head, the key, then segments. A segment is what a checkpoint adds: totals, the
 * counts of its rows, and a checksum without which it does not count. */
struct segment {
    int64_t num_counts; /* that follow */
    struct lr_matrix_totals totals;
    uint64_t check; /* of the fields above and the counts */
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
    const struct lr_written_piece piece = {from, bytes, place};
    LR_TRY(store->output.error == 0 ? LR_OK : LR_FAILED);
    const int error = lr_write_piece(file, &piece);
    return error == 0 ? LR_OK : lr_output_fail(&store->output, error);
}

/* All blocks before are in the file when this returns. */
static lr_status wait_behind(struct lr_matrix_store *store)
{
    lr_status status = LR_OK;
    for (int k = 0; k < lr_store_most_slots; k++) {
        const int error = lr_write_behind_wait(&store->slots[k].behind);
        status = error == 0 ? status : lr_output_fail(&store->output, error);
    }
    return status;
}

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

/* Where a block's columns begin; its values follow. */
static int64_t block_place(const struct lr_matrix_store *store, int64_t block)
{
    return lr_store_head_bytes + block * BLOCK * (int64_t)(column_bytes(store) + sizeof(float));
}

/* The slot that many turns after that of the block at hand. */
static struct lr_store_slot *slot_after(struct lr_matrix_store *store, int turns)
{
    return &store->slots[(store->slot + turns) % store->num_slots];
}

/* Waits until what was in a slot has been written, and makes its memory where it has none. */
static lr_status ready_slot(struct lr_matrix_store *store, struct lr_store_slot *slot)
{
    const lr_log *log = store->params.log;
    const int error = lr_write_behind_wait(&slot->behind);
    LR_TRY(error == 0 ? LR_OK : lr_output_fail(&store->output, error));
    if (slot->columns == NULL) slot->columns = lr_alloc(BLOCK, column_bytes(store), "matrix elements", log);
    if (slot->values == NULL) slot->values = lr_alloc(BLOCK, sizeof(float), "matrix elements", log);
    return slot->columns != NULL && slot->values != NULL ? LR_OK : LR_FAILED;
}

/* Writes the first `count` elements of the block at hand, which is the `block`-th. */
static lr_status write_block(struct lr_matrix_store *store, int64_t block, int64_t count)
{
    const int64_t place = block_place(store, block);
    const size_t bytes = column_bytes(store);
    const struct lr_store_slot *slot = slot_after(store, 0);
    LR_TRY(wait_behind(store));
    LR_TRY(write_at(store, store->output.file, slot->columns, (size_t)count * bytes, place));
    return write_at(store, store->output.file, slot->values, (size_t)count * sizeof(float),
                    place + BLOCK * (int64_t)bytes);
}

/* Leaves a full block to be written while the next one is filled. */
static lr_status pass_block_on(struct lr_matrix_store *store, int64_t block)
{
    const int64_t place = block_place(store, block);
    const size_t bytes = BLOCK * column_bytes(store);
    struct lr_store_slot *slot = slot_after(store, 0);
    const struct lr_written_piece pieces[LR_MOST_WRITTEN_PIECES] = {
        {slot->columns, bytes, place}, {slot->values, BLOCK * sizeof(*slot->values), place + (int64_t)bytes}};
    LR_TRY(store->output.error == 0 ? LR_OK : LR_FAILED);
    slot->behind.by_maps = store->by_maps;
    lr_write_behind_start(&slot->behind, store->output.file, pieces);
    store->slot = (store->slot + 1) % store->num_slots;
    return ready_slot(store, slot_after(store, 0));
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
    if (store->num_counts == 0) return LR_OK;
    LR_TRY(settle(store, store->output.file));
    struct segment segment = {.num_counts = store->num_counts, .totals = store->totals};
    segment.check = check_of(&segment, store->counts);
    const size_t bytes = (size_t)store->num_counts * sizeof(*store->counts);
    LR_TRY(write_at(store, store->rows_file, &segment, sizeof(segment), store->next_segment));
    LR_TRY(write_at(store, store->rows_file, store->counts, bytes, store->next_segment + (int64_t)sizeof(segment)));
    LR_TRY(settle(store, store->rows_file));
    if (store->kept_rows == 0 && !lr_place_sync_folder(store->output.target))
        return lr_output_fail(&store->output, errno);
    store->kept_rows = store->totals.rows;
    store->next_segment += (int64_t)(sizeof(segment) + bytes);
    store->num_counts = 0;
    return LR_OK;
}

lr_status lr_matrix_store_trim(struct lr_matrix_store *store)
{
    static const unsigned char nothing[lr_store_head_bytes - MAGIC_BYTES];
    const int64_t block = store->totals.elements / BLOCK, rest = store->totals.elements % BLOCK;
    const int64_t bytes = rest * (int64_t)sizeof(float) + BLOCK * (int64_t)column_bytes(store);
    LR_TRY(write_at(store, store->output.file, nothing, sizeof(nothing), 0));
    const off_t end = (off_t)(block_place(store, block) + (rest > 0 ? bytes : 0));
    return ftruncate(store->output.file, end) == 0 ? LR_OK : lr_output_fail(&store->output, errno);
}

/* --- appending --- */

static lr_status count_row(struct lr_matrix_store *store, int64_t count)
{
    store->counts[store->num_counts++] = count;
    store->totals.rows++;
    const bool is_due = store->num_counts == MOST_COUNTS ||
                        (store->totals.rows % 64 == 0 && lr_clock_seconds() - store->checkpoint_s > CHECKPOINT_S);
    return is_due ? lr_matrix_store_checkpoint(store) : LR_OK;
}

/* Adds up in several sums, since the processor would wait for one sum after each element. */
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

/* Copies elements behind those of the block at hand, which has room for them. */
static void take_elements(struct lr_matrix_store *store, const lr_row *part)
{
    const int64_t at = store->totals.elements % BLOCK;
    struct lr_store_slot *slot = slot_after(store, 0);
    int32_t *narrow = (int32_t *)slot->columns + at;
    int64_t *wide = (int64_t *)slot->columns + at;
    float *values = slot->values + at;
    for (int64_t n = 0; n < part->count; n++) values[n] = (float)part->probability[n];
    for (int64_t n = 0; n < part->count && !store->params.wide; n++) narrow[n] = (int32_t)part->lor[n];
    if (store->params.wide) memcpy(wide, part->lor, (size_t)part->count * sizeof(*wide));
    store->totals.sum += add_up(part->probability, part->count);
    store->totals.elements += part->count;
}

/* How many elements follow each other that are kept, or dropped: all those from the first one on that are
 * alike. */
static int64_t count_alike(const lr_row *part, double least, bool *is_kept)
{
    int64_t n = 1;
    *is_kept = !(part->probability[0] < least);
    while (n < part->count && !(part->probability[n] < least) == *is_kept) n++;
    return n;
}

static void drop_elements(struct lr_matrix_store *store, const lr_row *part)
{
    store->totals.dropped_elements += part->count;
    store->totals.dropped_sum += add_up(part->probability, part->count);
}

/* As many elements of the row, from *next on, as the block at hand has room for. */
static void fill_block(struct lr_matrix_store *store, const lr_row *row, double least, int64_t *next)
{
    int64_t room = BLOCK - store->totals.elements % BLOCK;
    while (*next < row->count && room > 0) {
        lr_row part = {row->row, row->count - *next, row->lor + *next, row->probability + *next};
        bool is_kept = true;
        part.count = least > -INFINITY ? count_alike(&part, least, &is_kept) : part.count;
        if (!is_kept) {
            drop_elements(store, &part);
        } else {
            part.count = part.count < room ? part.count : room;
            take_elements(store, &part);
            room -= part.count;
        }
        *next += part.count;
    }
}

lr_status lr_matrix_store_append(struct lr_matrix_store *store, const lr_row *row, double least)
{
    const int64_t before = store->totals.elements;
    for (int64_t next = 0; next < row->count;) {
        const int64_t elements = store->totals.elements;
        fill_block(store, row, least, &next);
        if (store->totals.elements % BLOCK == 0 && store->totals.elements > elements)
            LR_TRY(pass_block_on(store, store->totals.elements / BLOCK - 1));
    }
    return count_row(store, store->totals.elements - before);
}

/* --- appending rows that came together --- */

/* Rows that are being taken, by several threads. */
struct taking {
    struct lr_matrix_store *store;
    const struct lr_row_block *block;
    int64_t num_columns, num_pieces;
};

/* Cuts the rows where blocks of the file end. */
static lr_status cut_rows(struct taking *taking)
{
    struct lr_matrix_store *store = taking->store;
    const struct lr_row_block *block = taking->block;
    const int64_t before = store->totals.elements;
    int64_t from = 0;
    LR_TRY(lr_grow(&store->pieces, &store->max_pieces, block->num_rows + block->num_elements / BLOCK + 2,
                   &(struct lr_items){sizeof(*store->pieces), "matrix rows", store->params.log}));
    for (int64_t row = 0; row < block->num_rows; row++) {
        int64_t left = block->rows[row].count;
        while (left > 0) {
            const int64_t room = BLOCK - (before + from) % BLOCK;
            const int64_t count = left < room ? left : room;
            store->pieces[taking->num_pieces++] = (struct lr_store_piece){.row = row, .from = from, .count = count};
            from += count;
            left -= count;
        }
    }
    return LR_OK;
}

/* Whether the columns of a piece ascend, from behind the one before on, and its values are finite. */
static bool is_right(const struct taking *taking, const struct lr_store_piece *piece)
{
    const struct lr_packed_element *from = taking->block->elements + piece->from;
    const bool goes_on = piece > taking->store->pieces && piece[-1].row == piece->row;
    bool is_right = from[piece->count - 1].lor < taking->num_columns && (!goes_on || from[-1].lor < from[0].lor);
    for (int64_t n = 0; n + 1 < piece->count; n++) is_right &= from[n].lor < from[n + 1].lor;
    for (int64_t n = 0; n < piece->count; n++) is_right &= isfinite(from[n].value) != 0;
    return is_right;
}

/* What add_up gives of the same values. */
static double add_up_packed(const struct lr_packed_element *from, int64_t count)
{
    double sums[SUMS] = {0.0}, sum = 0.0;
    const int64_t even = count - count % SUMS;
    for (int64_t n = 0; n < even; n += SUMS)
        for (int k = 0; k < SUMS; k++) sums[k] += (double)from[n + k].value;
    for (int64_t n = even; n < count; n++) sum += (double)from[n].value;
    for (int k = 0; k < SUMS; k++) sum += sums[k];
    return sum;
}

/* To the slot that the piece's block of the file has. */
static void copy_piece(const struct taking *taking, const struct lr_store_piece *piece)
{
    struct lr_matrix_store *store = taking->store;
    const int64_t place = store->totals.elements + piece->from, at = place % BLOCK;
    const struct lr_store_slot *slot = slot_after(store, (int)(place / BLOCK - store->totals.elements / BLOCK));
    const struct lr_packed_element *from = taking->block->elements + piece->from;
    float *values = slot->values + at;
    if (store->params.wide) {
        int64_t *wide = (int64_t *)slot->columns + at;
        for (int64_t n = 0; n < piece->count; n++) wide[n] = from[n].lor;
    } else {
        uint32_t *narrow = (uint32_t *)slot->columns + at;
        for (int64_t n = 0; n < piece->count; n++) narrow[n] = from[n].lor;
    }
    for (int64_t n = 0; n < piece->count; n++) values[n] = from[n].value;
}

static void take_pieces(void *user, int64_t begin, int64_t end, int worker)
{
    const struct taking *taking = user;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        struct lr_store_piece *piece = &taking->store->pieces[k];
        piece->is_wrong = !is_right(taking, piece);
        copy_piece(taking, piece);
        piece->sum = add_up_packed(taking->block->elements + piece->from, piece->count);
    }
}

/* Counts what has been copied, row by row; blocks of the file that are full go on their way. */
static lr_status count_pieces(const struct taking *taking)
{
    struct lr_matrix_store *store = taking->store;
    const struct lr_store_piece *piece = store->pieces, *end = piece + taking->num_pieces;
    for (int64_t row = 0; row < taking->block->num_rows; row++) {
        for (; piece < end && piece->row == row; piece++) {
            store->totals.sum += piece->sum;
            store->totals.elements += piece->count;
            if (store->totals.elements % BLOCK == 0) LR_TRY(pass_block_on(store, store->totals.elements / BLOCK - 1));
        }
        LR_TRY(count_row(store, taking->block->rows[row].count));
    }
    return LR_OK;
}

lr_status lr_matrix_store_append_block(struct lr_matrix_store *store, const struct lr_row_block *block,
                                       int64_t num_columns, bool *is_wrong)
{
    struct taking taking = {store, block, num_columns, 0};
    const int64_t in_block = store->totals.elements % BLOCK;
    store->num_slots = lr_store_most_slots;
    for (int k = 0; k <= (in_block + block->num_elements) / BLOCK; k++) LR_TRY(ready_slot(store, slot_after(store, k)));
    LR_TRY(cut_rows(&taking));
    lr_parallel_for(block->threads, taking.num_pieces, PIECES, take_pieces, &taking);
    *is_wrong = false;
    for (int64_t k = 0; k < taking.num_pieces; k++) *is_wrong = *is_wrong || store->pieces[k].is_wrong;
    return *is_wrong ? LR_OK : count_pieces(&taking);
}

lr_status lr_matrix_store_pass(struct lr_matrix_store *store, int64_t rows)
{
    while (store->totals.rows < rows) LR_TRY(count_row(store, 0));
    return LR_OK;
}

/* --- ends --- */

static void release(struct lr_matrix_store *store)
{
    if (store->rows_file >= 0) close(store->rows_file);
    store->rows_file = -1;
    free(store->part_path);
    free(store->rows_path);
    for (int k = 0; k < lr_store_most_slots; k++) {
        free(store->slots[k].columns);
        free(store->slots[k].values);
        store->slots[k] = (struct lr_store_slot){0};
    }
    free(store->pieces);
    free(store->counts);
    store->part_path = NULL;
    store->rows_path = NULL;
    store->pieces = NULL;
    store->counts = NULL;
}

void lr_matrix_store_leave(struct lr_matrix_store *store)
{
    for (int k = 0; k < lr_store_most_slots; k++) (void)lr_write_behind_wait(&store->slots[k].behind);
    lr_output_leave(&store->output);
    release(store);
}

/* The names go while the locks are held. */
void lr_matrix_store_remove(struct lr_matrix_store *store)
{
    if (store->rows_file >= 0) unlink(store->rows_path);
    if (store->output.file >= 0 && store->output.temporary != NULL) unlink(store->output.temporary);
    lr_matrix_store_leave(store);
}

void lr_matrix_store_abandon(struct lr_matrix_store *store)
{
    if (store->kept_rows > 0 && store->output.file >= 0 && store->output.error == 0)
        (void)lr_matrix_store_checkpoint(store);
    if (store->kept_rows == 0 || access(store->part_path, F_OK) != 0) {
        lr_matrix_store_remove(store);
        return;
    }
    lr_warn(store->params.log, "%lld of %lld rows are kept in %s and %s: resuming goes on with them",
            (long long)store->kept_rows, (long long)store->params.num_rows, store->part_path, store->rows_path);
    lr_matrix_store_leave(store);
}

/* --- reading --- */

/* After a read that failed, or found less than there was (errno 0). */
static lr_status complain_read(struct lr_matrix_store *store, const char *path)
{
    char text[128];
    if (errno != 0) {
        return lr_error(store->params.log, LR_FAILED,
                        "%s, which %s is made of, cannot be read: %s: is its drive there?", path, store->params.path,
                        lr_error_text(errno, text));
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
        if (read_at(file, piece->columns, count * bytes, place + inside * (int64_t)bytes) != count * bytes)
            return complain_read(store, store->part_path);
        if (piece->is_wide && !store->params.wide)
            widen(piece->columns, piece->count);
        else if (!piece->is_wide && store->params.wide)
            narrow_down(piece->columns, piece->count);
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

/* --- heads and keys --- */

/* After a read that failed, or of something else than expected (errno 0). */
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

/* Both keys are compared whole. */
static lr_status check_key(const struct lr_matrix_store *store, int64_t key_bytes)
{
    const size_t ours = strlen(store->params.key);
    const size_t most = ours + (1 << 16); /* enough to tell a longer one, whatever the head says */
    const size_t wanted = key_bytes < (int64_t)most ? (size_t)key_bytes : most;
    char *found = lr_alloc((int64_t)wanted + 1, 1, "a file's head", store->params.log);
    if (found == NULL) return LR_FAILED;
    lr_status status = LR_OK;
    if (read_at(store->rows_file, found, wanted, sizeof(struct head)) != wanted) {
        status = refuse_rows(store);
    } else if (wanted != ours || memcmp(found, store->params.key, ours) != 0) {
        status = lr_key_check(store->part_path, (const char *[2]){found, store->params.key}, store->params.log);
        errno = 0;
        status = status == LR_OK ? refuse_rows(store) : status; /* zeros among the characters */
    }
    free(found);
    return status;
}

static bool is_part(int file)
{
    char found[sizeof(part_magic)];
    return read_at(file, found, sizeof(found), PART_MAGIC) == sizeof(found) &&
           memcmp(found, part_magic, sizeof(found)) == 0;
}

static lr_status read_head(struct lr_matrix_store *store)
{
    struct head head;
    if (!is_part(store->output.file) || read_at(store->rows_file, &head, sizeof(head), 0) != sizeof(head) ||
        memcmp(head.magic, magic, sizeof(magic)) != 0 || head.key_bytes < 0)
        return refuse_rows(store);
    LR_TRY(check_key(store, head.key_bytes));
    store->params.wide = head.wide != 0;
    return LR_OK;
}

static bool makes_sense(const struct lr_matrix_store *store, const struct segment *segment, int64_t rows)
{
    return segment->num_counts > 0 && segment->num_counts <= MOST_COUNTS &&
           segment->totals.rows == rows + segment->num_counts && segment->totals.rows <= store->params.num_rows &&
           segment->totals.elements >= store->totals.elements;
}

/* Goes through the whole segments; what follows them is overwritten. */
static void find_end(struct lr_matrix_store *store)
{
    struct segment segment;
    store->next_segment = store->segments_begin;
    for (;;) {
        const int64_t place = store->next_segment;
        if (read_at(store->rows_file, &segment, sizeof(segment), place) != sizeof(segment) ||
            !makes_sense(store, &segment, store->totals.rows))
            return;
        const size_t bytes = (size_t)segment.num_counts * sizeof(*store->counts);
        const int64_t behind = place + (int64_t)sizeof(segment);
        if (read_at(store->rows_file, store->counts, bytes, behind) != bytes ||
            check_of(&segment, store->counts) != segment.check)
            return;
        store->totals = segment.totals;
        store->next_segment = behind + (int64_t)bytes;
    }
}

static lr_status take_up(struct lr_matrix_store *store)
{
    LR_TRY(read_head(store));
    find_end(store);
    store->kept_rows = store->totals.rows;
    const int64_t whole = store->totals.elements / BLOCK * BLOCK;
    struct lr_store_slot *slot = slot_after(store, 0);
    LR_TRY(ready_slot(store, slot));
    const struct lr_matrix_piece piece = {whole, store->totals.elements - whole, store->params.wide, slot->columns,
                                          slot->values};
    return lr_matrix_store_read(store, &piece);
}

/* Whether a file may be emptied: it is empty, or of an earlier run, of whatever version. */
static bool is_ours(int file, const char *begin, size_t bytes, int64_t place)
{
    char found[16];
    return lseek(file, 0, SEEK_END) == 0 ||
           (read_at(file, found, bytes, place) == bytes && memcmp(found, begin, bytes) == 0);
}

static lr_status check_ours(struct lr_matrix_store *store)
{
    errno = 0;
    const bool part = is_ours(store->output.file, part_magic, COMMON_PART_MAGIC, PART_MAGIC);
    if (part && is_ours(store->rows_file, magic, COMMON_MAGIC, 0)) return LR_OK;
    if (errno != 0) return lr_output_fail(&store->output, errno);
    return lr_error(store->params.log, LR_FAILED,
                    "cannot write %s: %s is there, and no run of this program has left it: move it "
                    "away, or choose another name",
                    store->params.path, part ? store->rows_path : store->part_path);
}

static lr_status begin_anew(struct lr_matrix_store *store)
{
    const size_t key_bytes = strlen(store->params.key);
    struct head head = {.wide = store->params.wide, .key_bytes = (int64_t)key_bytes};
    memcpy(head.magic, magic, sizeof(magic));
    if (ftruncate(store->output.file, 0) != 0 || ftruncate(store->rows_file, 0) != 0)
        return lr_output_fail(&store->output, errno);
    LR_TRY(write_at(store, store->output.file, part_magic, sizeof(part_magic), PART_MAGIC));
    LR_TRY(write_at(store, store->rows_file, &head, sizeof(head), 0));
    LR_TRY(write_at(store, store->rows_file, store->params.key, key_bytes, sizeof(head)));
    return ready_slot(store, slot_after(store, 0));
}

/* --- opening --- */

/* Its name, and the file of that name; the lock on it outlasts that of TARGET.part, which ends when
 * that has become the target. */
static lr_status open_rows(struct lr_matrix_store *store)
{
    const size_t bytes = strlen(store->output.temporary) + sizeof("-rows");
    const bool resumes = store->params.resumes;
    store->part_path = lr_copy_string(store->output.temporary, store->params.log);
    store->rows_path = lr_alloc((int64_t)bytes, 1, "a file name", store->params.log);
    if (store->part_path == NULL || store->rows_path == NULL) return LR_FAILED;
    snprintf(store->rows_path, bytes, "%s-rows", store->part_path);
    const mode_t mode = resumes ? 0 : lr_place_mode(store->output.target);
    const enum lr_hold hold = lr_hold_open(store->rows_path, mode, &store->rows_file);
    if (hold == LR_HELD) return LR_OK;
    if (hold == LR_HOLD_REFUSED && errno == ENOENT && resumes) {
        errno = 0;
        return refuse_rows(store);
    }
    return lr_hold_complain(hold, store->rows_path, store->params.path, store->params.log);
}

/* What another run left is lost when this one does not go on with it. */
static void warn_of_part(const struct lr_matrix_store *store)
{
    if (lseek(store->output.file, 0, SEEK_END) > 0) {
        lr_warn(store->params.log,
                "%s was left by a run that was stopped, and is begun anew: resuming would have "
                "gone on with it",
                store->part_path);
    }
}

static lr_status open_parts(struct lr_matrix_store *store)
{
    store->num_slots = FEWEST_SLOTS;
    store->by_maps = lr_is_for_maps(store->output.file);
    store->counts = lr_alloc(MOST_COUNTS, sizeof(int64_t), "matrix rows", store->params.log);
    LR_TRY(store->counts != NULL ? LR_OK : LR_FAILED);
    LR_TRY(open_rows(store));
    store->segments_begin = (int64_t)(sizeof(struct head) + strlen(store->params.key));
    store->next_segment = store->segments_begin;
    if (store->params.resumes) return take_up(store);
    LR_TRY(check_ours(store));
    warn_of_part(store);
    store->is_new = true;
    return begin_anew(store);
}

static void remove_empty(int file, const char *name)
{
    if (file >= 0 && lseek(file, 0, SEEK_END) == 0) unlink(name);
}

/* Without what this call has made: what it began, or files that are still empty. */
static void undo_open(struct lr_matrix_store *store)
{
    if (store->is_new) {
        lr_matrix_store_remove(store);
        return;
    }
    remove_empty(store->rows_file, store->rows_path);
    remove_empty(store->output.file, store->output.temporary);
    lr_matrix_store_leave(store);
}

lr_status lr_matrix_store_open(struct lr_matrix_store *store, const struct lr_matrix_store_params *params)
{
    *store = (struct lr_matrix_store){.params = *params, .rows_file = -1};
    LR_TRY(lr_output_open_named(&store->output, params->path, "part", params->log));
    store->checkpoint_s = lr_clock_seconds();
    const lr_status status = open_parts(store);
    if (status != LR_OK) undo_open(store);
    return status;
}
