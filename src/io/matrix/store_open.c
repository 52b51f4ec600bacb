/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A matrix store begun, or taken up where another run has left it. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/files/output_place.h"
#include "io/matrix/store_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = lr_store_block_elements, HEAD = lr_store_head_bytes };

/* Of TARGET.part-rows, whose first six bytes are those of every version, and of TARGET.part, at the
 * end of its head, where HDF5 puts nothing. */
static const char magic[8] = "LRrows2";
static const char part_magic[lr_store_magic_bytes] = "LORaster rows 2";
enum { COMMON_MAGIC = 6, PART_MAGIC = HEAD - lr_store_magic_bytes, COMMON_PART_MAGIC = 14 };

struct head {
    char magic[8];
    int64_t wide;
    int64_t key_bytes; /* of the key, which follows without a zero */
};

/* --- heads and keys --- */

/* Length of the part of a key that begins here, and of what stands before its digest. */
static int part_length(const char *part, bool without_digest)
{
    const int length = (int)strcspn(part, ";");
    const char *digest = strstr(part, LR_MATRIX_KEY_CONTENTS);
    const int named =
        without_digest && digest != NULL && digest - part < length ? (int)(digest - part) : length;
    return named < 300 ? named : 300;
}

/* Names the first part that differs. */
static lr_status refuse_key(const struct lr_matrix_store *store, const char *found)
{
    const char *ours = store->params.key;
    const lr_log *log = store->params.log;
    size_t k = 0;
    while (ours[k] != '\0' && ours[k] == found[k]) {
        k++;
    }
    while (k > 0 && ours[k - 1] != ';') {
        k--;
    }
    ours += k + strspn(ours + k, " ");
    found += k + strspn(found + k, " ");
    const int length[2] = {part_length(found, true), part_length(ours, true)};
    if (length[0] == length[1] && strncmp(ours, found, (size_t)length[0]) == 0) {
        return lr_error(log, LR_USAGE,
                        "cannot go on with %s: it was begun with other contents of: %.*s: give the "
                        "same files and options, or begin anew without resuming",
                        store->part_path, length[0], found);
    }
    return lr_error(log, LR_USAGE,
                    "cannot go on with %s: it was begun with %.*s, and now it is %.*s: give the "
                    "same options, or begin anew without resuming",
                    store->part_path, part_length(found, true), found, part_length(ours, true),
                    ours);
}

/* After a read that failed, or of something else than expected (errno 0). */
static lr_status refuse_rows(const struct lr_matrix_store *store)
{
    char text[128];
    if (errno != 0) {
        return lr_error(store->params.log, LR_FAILED, "cannot go on with %s and %s: %s",
                        store->part_path, store->rows_path, lr_error_text(errno, text));
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
    if (found == NULL) {
        return LR_FAILED;
    }
    lr_status status = LR_OK;
    if (lr_store_read_at(store->rows_file, found, wanted, sizeof(struct head)) != wanted) {
        status = refuse_rows(store);
    } else if (wanted != ours || memcmp(found, store->params.key, ours) != 0) {
        status = refuse_key(store, found);
    }
    free(found);
    return status;
}

static bool is_part(int file)
{
    char found[sizeof(part_magic)];
    return lr_store_read_at(file, found, sizeof(found), PART_MAGIC) == sizeof(found) &&
           memcmp(found, part_magic, sizeof(found)) == 0;
}

static lr_status read_head(struct lr_matrix_store *store)
{
    struct head head;
    if (!is_part(store->output.file) ||
        lr_store_read_at(store->rows_file, &head, sizeof(head), 0) != sizeof(head) ||
        memcmp(head.magic, magic, sizeof(magic)) != 0 || head.key_bytes < 0) {
        return refuse_rows(store);
    }
    LR_TRY(check_key(store, head.key_bytes));
    store->params.wide = head.wide != 0;
    return LR_OK;
}

static bool makes_sense(const struct lr_matrix_store *store, const struct lr_store_segment *segment,
                        int64_t rows)
{
    return segment->num_counts > 0 && segment->num_counts <= lr_store_most_counts &&
           segment->totals.rows == rows + segment->num_counts &&
           segment->totals.rows <= store->params.num_rows &&
           segment->totals.elements >= store->totals.elements;
}

/* Goes through the whole segments; what follows them is overwritten. */
static void find_end(struct lr_matrix_store *store)
{
    struct lr_store_segment segment;
    store->next_segment = store->segments_begin;
    for (;;) {
        const int64_t place = store->next_segment;
        if (lr_store_read_at(store->rows_file, &segment, sizeof(segment), place) !=
                sizeof(segment) ||
            !makes_sense(store, &segment, store->totals.rows)) {
            return;
        }
        const size_t bytes = (size_t)segment.num_counts * sizeof(*store->counts);
        const int64_t behind = place + (int64_t)sizeof(segment);
        if (lr_store_read_at(store->rows_file, store->counts, bytes, behind) != bytes ||
            lr_store_check(&segment, store->counts) != segment.check) {
            return;
        }
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
    const struct lr_matrix_piece piece = {whole, store->totals.elements - whole, store->params.wide,
                                          store->columns, store->values};
    return lr_matrix_store_read(store, &piece);
}

/* Whether a file may be emptied: it is empty, or of an earlier run, of whatever version. */
static bool is_ours(int file, const char *begin, size_t bytes, int64_t place)
{
    char found[16];
    return lseek(file, 0, SEEK_END) == 0 || (lr_store_read_at(file, found, bytes, place) == bytes &&
                                             memcmp(found, begin, bytes) == 0);
}

static lr_status check_ours(struct lr_matrix_store *store)
{
    errno = 0;
    const bool part = is_ours(store->output.file, part_magic, COMMON_PART_MAGIC, PART_MAGIC);
    if (part && is_ours(store->rows_file, magic, COMMON_MAGIC, 0)) {
        return LR_OK;
    }
    if (errno != 0) {
        return lr_output_fail(&store->output, errno);
    }
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
    if (ftruncate(store->output.file, 0) != 0 || ftruncate(store->rows_file, 0) != 0) {
        return lr_output_fail(&store->output, errno);
    }
    LR_TRY(
        lr_store_write_at(store, store->output.file, part_magic, sizeof(part_magic), PART_MAGIC));
    LR_TRY(lr_store_write_at(store, store->rows_file, &head, sizeof(head), 0));
    return lr_store_write_at(store, store->rows_file, store->params.key, key_bytes, sizeof(head));
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
    if (store->part_path == NULL || store->rows_path == NULL) {
        return LR_FAILED;
    }
    snprintf(store->rows_path, bytes, "%s-rows", store->part_path);
    const mode_t mode = resumes ? 0 : lr_place_mode(store->output.target);
    const enum lr_hold hold = lr_hold_open(store->rows_path, mode, &store->rows_file);
    if (hold == LR_HELD) {
        return LR_OK;
    }
    if (hold == LR_HOLD_REFUSED && errno == ENOENT && resumes) {
        errno = 0;
        return refuse_rows(store);
    }
    return lr_hold_complain(hold, store->rows_path, store->params.path, store->params.log);
}

static lr_status make_buffers(struct lr_matrix_store *store)
{
    const lr_log *log = store->params.log;
    store->columns = lr_alloc(BLOCK, sizeof(int64_t), "matrix elements", log);
    store->values = lr_alloc(BLOCK, sizeof(float), "matrix elements", log);
    store->counts = lr_alloc(lr_store_most_counts, sizeof(int64_t), "matrix rows", log);
    return store->columns && store->values && store->counts ? LR_OK : LR_FAILED;
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
    LR_TRY(make_buffers(store));
    LR_TRY(open_rows(store));
    store->segments_begin = (int64_t)(sizeof(struct head) + strlen(store->params.key));
    store->next_segment = store->segments_begin;
    if (store->params.resumes) {
        return take_up(store);
    }
    LR_TRY(check_ours(store));
    warn_of_part(store);
    store->is_new = true;
    return begin_anew(store);
}

static void remove_empty(int file, const char *name)
{
    if (file >= 0 && lseek(file, 0, SEEK_END) == 0) {
        unlink(name);
    }
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

lr_status lr_matrix_store_open(struct lr_matrix_store *store,
                               const struct lr_matrix_store_params *params)
{
    *store = (struct lr_matrix_store){.params = *params, .rows_file = -1};
    LR_TRY(lr_output_open_named(&store->output, params->path, "part", params->log));
    store->checkpoint_s = lr_clock_seconds();
    const lr_status status = open_parts(store);
    if (status != LR_OK) {
        undo_open(store);
    }
    return status;
}
