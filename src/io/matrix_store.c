/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * TARGET.part-rows: a head, then segments. A segment is what a checkpoint adds: totals, the counts of
 * its rows, and a checksum without which it does not count. */
#include "io/matrix_store.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = lr_store_block_elements, HEAD = lr_store_head_bytes, KEY_BYTES = 4080 };

/* Rows, and seconds, between two checkpoints. */
enum { CHECKPOINT_ROWS = 1 << 20 };
#define CHECKPOINT_S 15.0

static const char magic[8] = "LRrows1";

struct head {
    char magic[8];
    int64_t wide;
    char key[KEY_BYTES];
};

struct segment {
    int64_t num_counts; /* that follow */
    struct lr_matrix_totals totals;
    uint64_t check; /* of the fields above and the counts */
};

static uint64_t check_of(const struct segment *segment, const int64_t *counts)
{
    uLong check = crc32(0, (const Bytef *)segment, offsetof(struct segment, check));
    const unsigned char *bytes = (const unsigned char *)counts;
    check = crc32_z(check, bytes, (size_t)segment->num_counts * sizeof(*counts));
    return check;
}

/* --- bytes --- */

static lr_status write_at(struct lr_matrix_store *store, int file, const void *from, size_t bytes,
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

/* How many bytes there were. */
static size_t read_at(int file, void *to, size_t bytes, int64_t place)
{
    unsigned char *at = to;
    size_t got = 0;
    while (got < bytes) {
        const ssize_t done = pread(file, at + got, bytes - got, (off_t)place + (off_t)got);
        if (done < 0 && errno == EINTR) {
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
    return HEAD + block * BLOCK * (int64_t)(column_bytes(store) + sizeof(float));
}

/* Writes the first `count` elements of the block at hand, which is the `block`-th. */
static lr_status write_block(struct lr_matrix_store *store, int64_t block, int64_t count)
{
    const int64_t place = block_place(store, block);
    const size_t bytes = column_bytes(store);
    LR_TRY(write_at(store, store->output.file, store->columns, (size_t)count * bytes, place));
    return write_at(store, store->output.file, store->values, (size_t)count * sizeof(float),
                    place + BLOCK * (int64_t)bytes);
}

/* --- checkpoints --- */

lr_status lr_matrix_store_checkpoint(struct lr_matrix_store *store)
{
    const int64_t in_block = store->totals.elements % BLOCK;
    store->checkpoint_s = lr_clock_seconds();
    LR_TRY(write_block(store, store->totals.elements / BLOCK, in_block));
    if (store->num_counts == 0) {
        return LR_OK;
    }
    if (fdatasync(store->output.file) != 0 && errno != EINVAL) {
        return lr_output_fail(&store->output, errno);
    }
    struct segment segment = {.num_counts = store->num_counts, .totals = store->totals};
    segment.check = check_of(&segment, store->counts);
    const size_t bytes = (size_t)store->num_counts * sizeof(*store->counts);
    LR_TRY(write_at(store, store->rows_file, &segment, sizeof(segment), store->next_segment));
    LR_TRY(write_at(store, store->rows_file, store->counts, bytes,
                    store->next_segment + (int64_t)sizeof(segment)));
    store->next_segment += (int64_t)(sizeof(segment) + bytes);
    store->num_counts = 0;
    return LR_OK;
}

/* --- appending --- */

static lr_status count_row(struct lr_matrix_store *store, int64_t count)
{
    store->counts[store->num_counts++] = count;
    store->totals.rows++;
    const bool is_due =
        store->num_counts == CHECKPOINT_ROWS ||
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

/* --- opening --- */

static lr_status refuse_key(const struct lr_matrix_store *store, const char *found)
{
    const char *ours = store->params.key;
    int k = 0;
    while (ours[k] != '\0' && ours[k] == found[k]) {
        k++;
    }
    while (k > 0 && ours[k - 1] != ';') {
        k--;
    }
    const char *from[2] = {found + k, ours + k};
    int length[2];
    for (int n = 0; n < 2; n++) {
        while (*from[n] == ' ') {
            from[n]++;
        }
        length[n] = (int)strcspn(from[n], ";");
    }
    return lr_error(store->params.log, LR_USAGE,
                    "cannot go on with %s: it was begun with %.*s, and now it is %.*s: give the "
                    "same options, or begin anew without resuming",
                    store->output.temporary, length[0], from[0], length[1], from[1]);
}

static lr_status read_head(struct lr_matrix_store *store, struct head *head)
{
    const size_t got = read_at(store->rows_file, head, sizeof(*head), 0);
    if (got != sizeof(*head) || memcmp(head->magic, magic, sizeof(magic)) != 0) {
        return lr_error(store->params.log, LR_USAGE,
                        "there is nothing to go on with: %s of an earlier run is missing or was "
                        "not begun: leave out resuming",
                        store->rows_path);
    }
    head->key[KEY_BYTES - 1] = '\0';
    if (strncmp(head->key, store->params.key, KEY_BYTES - 1) != 0) {
        return refuse_key(store, head->key);
    }
    store->params.wide = head->wide != 0;
    return LR_OK;
}

static bool makes_sense(const struct lr_matrix_store *store, const struct segment *segment,
                        int64_t rows)
{
    return segment->num_counts > 0 && segment->num_counts <= CHECKPOINT_ROWS &&
           segment->totals.rows == rows + segment->num_counts &&
           segment->totals.rows <= store->params.num_rows &&
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
            !makes_sense(store, &segment, store->totals.rows)) {
            return;
        }
        const size_t bytes = (size_t)segment.num_counts * sizeof(*store->counts);
        const int64_t behind = place + (int64_t)sizeof(segment);
        if (read_at(store->rows_file, store->counts, bytes, behind) != bytes ||
            check_of(&segment, store->counts) != segment.check) {
            return;
        }
        store->totals = segment.totals;
        store->next_segment = behind + (int64_t)bytes;
    }
}

static lr_status take_up(struct lr_matrix_store *store)
{
    struct head *head = lr_alloc(1, sizeof(*head), "a file's head", store->params.log);
    if (head == NULL) {
        return LR_FAILED;
    }
    const lr_status status = read_head(store, head);
    free(head);
    LR_TRY(status);
    find_end(store);
    const int64_t whole = store->totals.elements / BLOCK * BLOCK;
    const struct lr_matrix_piece piece = {whole, store->totals.elements - whole, store->params.wide,
                                          store->columns, store->values};
    return lr_matrix_store_read(store, &piece);
}

static lr_status begin_anew(struct lr_matrix_store *store)
{
    struct head *head = lr_alloc(1, sizeof(*head), "a file's head", store->params.log);
    if (head == NULL) {
        return LR_FAILED;
    }
    memcpy(head->magic, magic, sizeof(magic));
    head->wide = store->params.wide;
    snprintf(head->key, sizeof(head->key), "%s", store->params.key);
    const lr_status status = write_at(store, store->rows_file, head, sizeof(*head), 0);
    store->next_segment = store->segments_begin;
    free(head);
    return status;
}

static lr_status open_rows(struct lr_matrix_store *store)
{
    const size_t bytes = strlen(store->output.temporary) + sizeof("-rows");
    const bool resumes = store->params.resumes;
    store->rows_path = lr_alloc((int64_t)bytes, 1, "a file name", store->params.log);
    if (store->rows_path == NULL) {
        return LR_FAILED;
    }
    snprintf(store->rows_path, bytes, "%s-rows", store->output.temporary);
    store->rows_file =
        open(store->rows_path, O_RDWR | O_CLOEXEC | (resumes ? 0 : O_CREAT | O_TRUNC), 0666);
    if (store->rows_file < 0 && resumes) {
        return lr_error(store->params.log, LR_USAGE,
                        "there is nothing to go on with: no unfinished %s beside %s: leave out "
                        "resuming",
                        store->rows_path, store->params.path);
    }
    return store->rows_file >= 0 ? LR_OK : lr_output_fail(&store->output, errno);
}

static lr_status make_buffers(struct lr_matrix_store *store)
{
    const lr_log *log = store->params.log;
    store->columns = lr_alloc(BLOCK, sizeof(int64_t), "matrix elements", log);
    store->values = lr_alloc(BLOCK, sizeof(float), "matrix elements", log);
    store->counts = lr_alloc(CHECKPOINT_ROWS, sizeof(int64_t), "matrix rows", log);
    return store->columns && store->values && store->counts ? LR_OK : LR_FAILED;
}

static void release(struct lr_matrix_store *store)
{
    if (store->rows_file >= 0) {
        close(store->rows_file);
    }
    store->rows_file = -1;
    free(store->rows_path);
    free(store->columns);
    free(store->values);
    free(store->counts);
    store->rows_path = NULL;
    store->columns = NULL;
    store->values = NULL;
    store->counts = NULL;
}

/* What another run left is lost when this one does not go on with it. */
static lr_status empty_part(struct lr_matrix_store *store)
{
    const int file = store->output.file;
    if (lseek(file, 0, SEEK_END) > 0) {
        lr_warn(store->params.log,
                "%s was left by a run that was stopped, and is begun anew: resuming would have "
                "gone on with it",
                store->output.temporary);
    }
    return ftruncate(file, 0) == 0 ? LR_OK : lr_output_fail(&store->output, errno);
}

/* Without what this call has made: an empty TARGET.part where there was none. */
static void undo_open(struct lr_matrix_store *store, bool had_part)
{
    if (had_part) {
        lr_matrix_store_leave(store);
    } else {
        lr_matrix_store_abandon(store);
    }
}

lr_status lr_matrix_store_open(struct lr_matrix_store *store,
                               const struct lr_matrix_store_params *params)
{
    *store = (struct lr_matrix_store){
        .params = *params, .rows_file = -1, .segments_begin = sizeof(struct head)};
    LR_TRY(lr_output_open_named(&store->output, params->path, "part", params->log));
    store->checkpoint_s = lr_clock_seconds();
    const bool had_part = params->resumes && lseek(store->output.file, 0, SEEK_END) > 0;
    lr_status status = params->resumes ? LR_OK : empty_part(store);
    if (status == LR_OK) {
        status = make_buffers(store);
    }
    if (status == LR_OK) {
        status = open_rows(store);
    }
    if (status == LR_OK) {
        status = params->resumes ? take_up(store) : begin_anew(store);
    }
    if (status != LR_OK) {
        undo_open(store, had_part);
    }
    return status;
}

/* --- ends --- */

void lr_matrix_store_leave(struct lr_matrix_store *store)
{
    lr_output_leave(&store->output);
    release(store);
}

void lr_matrix_store_detach(struct lr_matrix_store *store)
{
    if (store->rows_path != NULL && store->rows_file >= 0) {
        unlink(store->rows_path);
    }
    release(store);
}

void lr_matrix_store_abandon(struct lr_matrix_store *store)
{
    lr_matrix_store_detach(store);
    lr_output_abandon(&store->output);
}

/* --- reading --- */

static lr_status complain_read(struct lr_matrix_store *store, const char *path)
{
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
        if (read_at(file, piece->columns, count * bytes, place + inside * (int64_t)bytes) !=
            count * bytes) {
            return complain_read(store, store->output.temporary);
        }
        if (piece->is_wide && !store->params.wide) {
            widen(piece->columns, piece->count);
        } else if (!piece->is_wide && store->params.wide) {
            narrow_down(piece->columns, piece->count);
        }
    }
    const int64_t values = place + BLOCK * (int64_t)bytes + inside * (int64_t)sizeof(float);
    if (piece->values != NULL &&
        read_at(file, piece->values, count * sizeof(float), values) != count * sizeof(float)) {
        return complain_read(store, store->output.temporary);
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
            struct segment segment;
            if (read_at(store->rows_file, &segment, sizeof(segment), counts->next_segment) !=
                sizeof(segment)) {
                return complain_read(store, store->rows_path);
            }
            counts->segment = counts->next_segment + (int64_t)sizeof(segment);
            counts->left = segment.num_counts;
            counts->next_segment = counts->segment + counts->left * (int64_t)sizeof(*numbers);
        }
        const int64_t taken = counts->left < room - *num ? counts->left : room - *num;
        const size_t bytes = (size_t)taken * sizeof(*numbers);
        if (read_at(store->rows_file, numbers + *num, bytes, counts->segment) != bytes) {
            return complain_read(store, store->rows_path);
        }
        counts->segment += (int64_t)bytes;
        counts->left -= taken;
        *num += taken;
    }
    return LR_OK;
}
