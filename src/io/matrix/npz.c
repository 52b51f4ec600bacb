/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows as scipy.sparse.save_npz lays them out: a zip archive of .npy arrays, not compressed.
 * Zip: PKWARE's APPNOTE 6.3, sections 4.3.7, 4.3.12 and 4.3.16, without its 64-bit extension. */
#include "base/log.h"
#include "base/mem.h"
#include "io/files/npy.h"
#include "io/matrix/writer.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* What a plain zip archive holds, less its heads. */
#define MOST_NPZ_BYTES ((int64_t)UINT32_MAX - 65536)

enum { BLOCK = lr_store_block_elements, NUM_MEMBERS = 5, MOST_MEMBERS = 6, MAX_NAME = 16 };
enum { LOCAL_BYTES = 30, CENTRAL_BYTES = 46, END_BYTES = 22 };

struct npz;

/* One array of the archive. `put` hands its bytes after the head to emit, piece by piece. */
struct member {
    const char *name, *type;
    int64_t shape; /* -1: no dimensions */
    size_t bytes;  /* of the data */
    lr_status (*put)(struct npz *npz);
    uint32_t check, place; /* CRC-32; where its local head stands */
    size_t total;          /* bytes, the array's head included */
};

struct npz {
    const struct lr_matrix_content *content;
    struct lr_output output;
    bool wide;
    bool writes;    /* else bytes are only counted into `check` */
    uint32_t check; /* of what has been put */
    void *buffer;   /* [BLOCK] numbers of 8 bytes */
    size_t place;   /* in the archive */
};

static void put16(unsigned char *bytes, unsigned number)
{
    bytes[0] = (unsigned char)(number & 0xff);
    bytes[1] = (unsigned char)(number >> 8 & 0xff);
}

static void put32(unsigned char *bytes, uint32_t number)
{
    put16(bytes, number & 0xffff);
    put16(bytes + 2, number >> 16);
}

static lr_status emit(struct npz *npz, const void *bytes, size_t count)
{
    if (npz->writes) return lr_output_write(&npz->output, bytes, count);
    npz->check = (uint32_t)crc32_z(npz->check, bytes, count);
    return LR_OK;
}

/* Numbers of this machine as little-endian ones. */
static lr_status emit_numbers(struct npz *npz, void *numbers, int64_t count, int size)
{
    unsigned char *bytes = numbers;
    const uint16_t one = 1;
    if (*(const unsigned char *)&one == 0) {
        for (int64_t k = 0; k < count; k++) {
            for (int n = 0; n < size / 2; n++) {
                const unsigned char byte = bytes[k * size + n];
                bytes[k * size + n] = bytes[k * size + size - 1 - n];
                bytes[k * size + size - 1 - n] = byte;
            }
        }
    }
    return emit(npz, bytes, (size_t)count * (size_t)size);
}

/* --- the arrays --- */

static lr_status put_format(struct npz *npz)
{
    return emit(npz, "csr", 3);
}

static lr_status put_share(struct npz *npz)
{
    return emit(npz, npz->content->share, strlen(npz->content->share));
}

static lr_status put_shape(struct npz *npz)
{
    int64_t shape[2] = {npz->content->num_rows, npz->content->num_columns};
    return emit_numbers(npz, shape, 2, 8);
}

static lr_status put_elements(struct npz *npz, bool columns)
{
    struct lr_matrix_store *store = npz->content->store;
    const int64_t total = store->totals.elements;
    for (int64_t at = 0; at < total; at += BLOCK) {
        const struct lr_matrix_piece piece = {.begin = at,
                                              .count = total - at < BLOCK ? total - at : BLOCK,
                                              .is_wide = npz->wide,
                                              .columns = columns ? npz->buffer : NULL,
                                              .values = columns ? NULL : npz->buffer};
        LR_TRY(lr_matrix_store_read(store, &piece));
        LR_TRY(emit_numbers(npz, npz->buffer, piece.count, columns && npz->wide ? 8 : 4));
    }
    return LR_OK;
}

static lr_status put_data(struct npz *npz)
{
    return put_elements(npz, false);
}

static lr_status put_indices(struct npz *npz)
{
    return put_elements(npz, true);
}

static lr_status put_starts(struct npz *npz)
{
    struct lr_matrix_counts counts = {.store = npz->content->store};
    int64_t *numbers = npz->buffer;
    int32_t *narrow = npz->buffer;
    int64_t start = 0, num = 1;
    LR_TRY(emit(npz, "\0\0\0\0\0\0\0\0", npz->wide ? 8 : 4));
    while (num > 0) {
        LR_TRY(lr_matrix_counts_read(&counts, BLOCK, numbers, &num));
        for (int64_t k = 0; k < num; k++) {
            start += numbers[k];
            if (npz->wide) {
                numbers[k] = start;
            } else {
                const int32_t short_start = (int32_t)start;
                memcpy(narrow + k, &short_start, sizeof(short_start));
            }
        }
        LR_TRY(emit_numbers(npz, npz->buffer, num, npz->wide ? 8 : 4));
    }
    return LR_OK;
}

/* --- the archive --- */

static size_t head_of(const struct member *member, unsigned char head[lr_npy_header_bytes])
{
    return lr_npy_header(head, member->type, &member->shape, member->shape < 0 ? 0 : 1);
}

/* Members are read twice: their checksums stand before them. */
static lr_status check_member(struct npz *npz, struct member *member)
{
    unsigned char head[lr_npy_header_bytes];
    const size_t head_bytes = head_of(member, head);
    npz->writes = false;
    npz->check = 0;
    member->total = head_bytes + member->bytes;
    LR_TRY(emit(npz, head, head_bytes));
    LR_TRY(member->put(npz));
    member->check = npz->check;
    return LR_OK;
}

/* The fields that local and central heads share, from the version needed on. */
static void format_common(const struct member *member, unsigned char *bytes)
{
    put16(bytes, 20);
    put16(bytes + 8, 0x21); /* 1980-01-01: the same rows give the same bytes */
    put32(bytes + 10, member->check);
    put32(bytes + 14, (uint32_t)member->total);
    put32(bytes + 18, (uint32_t)member->total);
    put16(bytes + 22, (unsigned)strlen(member->name));
}

static lr_status write_member(struct npz *npz, struct member *member)
{
    unsigned char head[lr_npy_header_bytes], local[LOCAL_BYTES] = {'P', 'K', 3, 4};
    const size_t head_bytes = head_of(member, head), name_bytes = strlen(member->name);
    LR_TRY(check_member(npz, member));
    npz->writes = true;
    member->place = (uint32_t)npz->place;
    format_common(member, local + 4);
    LR_TRY(emit(npz, local, sizeof(local)));
    LR_TRY(emit(npz, member->name, name_bytes));
    LR_TRY(emit(npz, head, head_bytes));
    LR_TRY(member->put(npz));
    npz->place += sizeof(local) + name_bytes + member->total;
    return LR_OK;
}

static lr_status write_directory(struct npz *npz, const struct member *members, int num)
{
    unsigned char end[END_BYTES] = {'P', 'K', 5, 6};
    size_t bytes = 0;
    for (int k = 0; k < num; k++) {
        unsigned char central[CENTRAL_BYTES] = {'P', 'K', 1, 2};
        put16(central + 4, 20);
        format_common(&members[k], central + 6);
        put32(central + 42, members[k].place);
        LR_TRY(emit(npz, central, sizeof(central)));
        LR_TRY(emit(npz, members[k].name, strlen(members[k].name)));
        bytes += sizeof(central) + strlen(members[k].name);
    }
    put16(end + 8, (unsigned)num);
    put16(end + 10, (unsigned)num);
    put32(end + 12, (uint32_t)bytes);
    put32(end + 16, (uint32_t)npz->place);
    return emit(npz, end, sizeof(end));
}

static lr_status write_archive(struct npz *npz)
{
    const struct lr_matrix_content *content = npz->content;
    const int64_t elements = content->store->totals.elements, starts = content->num_rows + 1;
    const char *type = npz->wide ? "<i8" : "<i4";
    const size_t width = npz->wide ? 8 : 4;
    const size_t share_bytes = content->share != NULL ? strlen(content->share) : 0;
    const int num = content->share != NULL ? MOST_MEMBERS : NUM_MEMBERS;
    struct member members[MOST_MEMBERS] = {
        {.name = "indices.npy", .type = type, .shape = elements, .put = put_indices, .bytes = (size_t)elements * width},
        {.name = "indptr.npy", .type = type, .shape = starts, .put = put_starts, .bytes = (size_t)starts * width},
        {.name = "format.npy", .type = "|S3", .shape = -1, .put = put_format, .bytes = 3},
        {.name = "shape.npy", .type = "<i8", .shape = 2, .put = put_shape, .bytes = 16},
        {.name = "data.npy", .type = "<f4", .shape = elements, .put = put_data, .bytes = (size_t)elements * 4},
        {.name = "part.npy", .type = "|u1", .shape = (int64_t)share_bytes, .put = put_share, .bytes = share_bytes},
    };
    for (int k = 0; k < num; k++) LR_TRY(write_member(npz, &members[k]));
    return write_directory(npz, members, num);
}

lr_status lr_matrix_npz_check(const struct lr_matrix_content *content, int64_t elements)
{
    const int64_t width = content->num_columns > content->index_limit ? 8 : 4;
    if (elements * (width + 4) + (content->num_rows + 1) * width <= MOST_NPZ_BYTES) return LR_OK;
    return lr_error(content->params->log, LR_USAGE,
                    "%s: %lld rows and %lld elements are more than the 4 GiB that a plain zip "
                    "archive holds: write HDF5 (.h5) instead",
                    content->params->path, (long long)content->num_rows, (long long)elements);
}

lr_status lr_matrix_npz_write(const struct lr_matrix_content *content)
{
    const lr_matrix_writer_params *params = content->params;
    struct npz npz = {
        .content = content,
        .wide = lr_matrix_is_wide(content->num_columns, content->store->totals.elements, content->index_limit)};
    npz.buffer = lr_alloc(BLOCK, sizeof(int64_t), "matrix elements", params->log);
    if (npz.buffer == NULL) return LR_FAILED;
    lr_status status = lr_output_open(&npz.output, params->path, params->log);
    if (status == LR_OK) {
        npz.output.source_stays = true;
        status = write_archive(&npz);
        if (status == LR_OK)
            status = lr_output_finish(&npz.output);
        else
            lr_output_abandon(&npz.output);
    }
    free(npz.buffer);
    return status;
}
