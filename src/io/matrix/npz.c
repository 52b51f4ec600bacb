/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows in the layout of scipy.sparse.save_npz(..., compressed=False), which is a zip archive of .npy arrays.
 * Sizes and offsets in the archive have 32 bits (PKWARE's APPNOTE 6.3, sections 4.3.7, 4.3.12 and 4.3.16). */
#include "base/log.h"
#include "base/mem.h"
#include "io/files/npy.h"
#include "io/files/number_type.h"
#include "io/files/output.h"
#include "io/files/regular_file.h"
#include "io/matrix/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* Largest number of bytes of the arrays in a plain zip archive. 64 KiB are left for the heads. */
#define MOST_NPZ_BYTES ((int64_t)UINT32_MAX - 65536)

enum { BLOCK = lr_store_block_elements, LOCAL_BYTES = 30, CENTRAL_BYTES = 46, END_BYTES = 22 };

/* The arrays of an archive. All but SHARE are in every archive. */
enum {
    STARTS = LR_ARRAY_STARTS,
    COLUMNS = LR_ARRAY_COLUMNS,
    VALUES = LR_ARRAY_VALUES,
    SHAPE,
    FORMAT,
    SHARE,
    NUM_ARRAYS
};
static const char *const names[NUM_ARRAYS] = {"indptr.npy", "indices.npy", "data.npy",
                                              "shape.npy",  "format.npy",  "part.npy"};

/* An array that is being written to an archive. */
struct member {
    int array;
    const char *type;
    int64_t shape;         /* length of the array; -1: it has no dimensions */
    size_t bytes;          /* length of the data */
    uint32_t check, place; /* check: CRC-32; place: offset of the local head */
    size_t total;          /* length of the data and the array's head */
};

struct npz {
    const struct lr_matrix_content *content;
    struct lr_output output;
    bool wide;
    bool writes;    /* false: bytes only enter the checksum */
    uint32_t check; /* CRC-32 of the bytes put so far */
    void *buffer;   /* [BLOCK] numbers of 8 bytes */
};

/* Writes bytes to the file, or adds them to the checksum. */
static lr_status emit(struct npz *npz, const void *bytes, size_t count)
{
    if (npz->writes) return lr_output_write(&npz->output, bytes, count);
    npz->check = (uint32_t)crc32_z(npz->check, bytes, count);
    return LR_OK;
}

/* Emits numbers, after converting them in place to little-endian byte order. */
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

/* Puts the data of an array. In the archive, the data follow the array's head. */
static lr_status put_array(struct npz *npz, int array)
{
    const struct lr_matrix_content *content = npz->content;
    struct lr_matrix_store *store = content->store;
    const int width = npz->wide ? 8 : 4;
    if (array == FORMAT) return emit(npz, "csr", 3);
    if (array == SHARE) return emit(npz, content->share, strlen(content->share));
    if (array == SHAPE) return emit_numbers(npz, (int64_t[2]){content->num_rows, content->num_columns}, 2, 8);
    if (array == STARTS) {
        struct lr_matrix_counts counts = {.store = store};
        int64_t *numbers = npz->buffer;
        int32_t *narrow = npz->buffer;
        int64_t start = 0, num = 1;
        LR_TRY(emit(npz, "\0\0\0\0\0\0\0\0", (size_t)width));
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
            LR_TRY(emit_numbers(npz, npz->buffer, num, width));
        }
        return LR_OK;
    }

    const int64_t total = store->totals.elements;
    for (int64_t at = 0; at < total; at += BLOCK) {
        const struct lr_matrix_piece piece = {.begin = at,
                                              .count = total - at < BLOCK ? total - at : BLOCK,
                                              .is_wide = npz->wide,
                                              .columns = array == COLUMNS ? npz->buffer : NULL,
                                              .values = array == COLUMNS ? NULL : npz->buffer};
        LR_TRY(lr_matrix_store_read(store, &piece));
        LR_TRY(emit_numbers(npz, npz->buffer, piece.count, array == COLUMNS ? width : 4));
    }
    return LR_OK;
}

/* Fills the fields that local and central heads have in common. The first field is the version that is needed to read
 * the archive. */
static void format_common(const struct member *member, unsigned char *bytes)
{
    lr_put_whole(bytes, 20, 2);
    lr_put_whole(bytes + 8, 0x21, 2); /* the date is always 1980-01-01, so that equal rows give equal files */
    lr_put_whole(bytes + 10, member->check, 4);
    lr_put_whole(bytes + 14, member->total, 4);
    lr_put_whole(bytes + 18, member->total, 4);
    lr_put_whole(bytes + 22, strlen(names[member->array]), 2);
}

static lr_status write_archive(struct npz *npz)
{
    const struct lr_matrix_content *content = npz->content;
    const int64_t elements = content->store->totals.elements, starts = content->num_rows + 1;
    const char *type = npz->wide ? "<i8" : "<i4";
    const size_t width = npz->wide ? 8 : 4;
    const size_t share_bytes = content->share != NULL ? strlen(content->share) : 0;
    const int num = content->share != NULL ? NUM_ARRAYS : NUM_ARRAYS - 1;
    struct member members[NUM_ARRAYS] = {
        {.array = COLUMNS, .type = type, .shape = elements, .bytes = (size_t)elements * width},
        {.array = STARTS, .type = type, .shape = starts, .bytes = (size_t)starts * width},
        {.array = FORMAT, .type = "|S3", .shape = -1, .bytes = 3},
        {.array = SHAPE, .type = "<i8", .shape = 2, .bytes = 16},
        {.array = VALUES, .type = "<f4", .shape = elements, .bytes = (size_t)elements * 4},
        {.array = SHARE, .type = "|u1", .shape = (int64_t)share_bytes, .bytes = share_bytes},
    };

    size_t place = 0; /* offset in the archive */
    for (int k = 0; k < num; k++) {
        struct member *member = &members[k];
        unsigned char head[lr_npy_header_bytes], local[LOCAL_BYTES] = {'P', 'K', 3, 4};
        const size_t head_bytes = lr_npy_header(head, member->type, &member->shape, member->shape < 0 ? 0 : 1);
        const size_t name_bytes = strlen(names[member->array]);
        member->total = head_bytes + member->bytes;
        member->place = (uint32_t)place;
        /* The checksum precedes the data in the archive. put_array therefore runs twice, first to compute the checksum
         * and then to write the data. */
        npz->writes = false;
        npz->check = 0;
        LR_TRY(emit(npz, head, head_bytes));
        LR_TRY(put_array(npz, member->array));
        member->check = npz->check;
        npz->writes = true;
        format_common(member, local + 4);
        LR_TRY(emit(npz, local, sizeof(local)));
        LR_TRY(emit(npz, names[member->array], name_bytes));
        LR_TRY(emit(npz, head, head_bytes));
        LR_TRY(put_array(npz, member->array));
        place += sizeof(local) + name_bytes + member->total;
    }

    unsigned char end[END_BYTES] = {'P', 'K', 5, 6};
    size_t bytes = 0;
    for (int k = 0; k < num; k++) {
        const char *name = names[members[k].array];
        unsigned char central[CENTRAL_BYTES] = {'P', 'K', 1, 2};
        lr_put_whole(central + 4, 20, 2);
        format_common(&members[k], central + 6);
        lr_put_whole(central + 42, members[k].place, 4);
        LR_TRY(emit(npz, central, sizeof(central)));
        LR_TRY(emit(npz, name, strlen(name)));
        bytes += sizeof(central) + strlen(name);
    }
    lr_put_whole(end + 8, (size_t)num, 2);
    lr_put_whole(end + 10, (size_t)num, 2);
    lr_put_whole(end + 12, bytes, 4);
    lr_put_whole(end + 16, place, 4);
    return emit(npz, end, sizeof(end));
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

/* --- reading --- */

enum { MOST_COMMENT = 65535, MOST_DIRECTORY = 1 << 16, MOST_HEAD = 4096, PIECE = 4096, MOST_SHARE = 1 << 15 };

/* An array in a file: the offset and type of its numbers. */
struct array {
    int64_t begin, bytes; /* range of the array in the file; begin 0 = not found */
    int64_t count;
    char kind; /* 'i', 'u', 'f' or 'S' */
    int size;
};

struct npz_source {
    const char *path;
    const lr_log *log;
    int file;
    int64_t file_bytes;
    struct array arrays[NUM_ARRAYS];
    char share[MOST_SHARE + 1];
};

static lr_status refuse(const struct npz_source *npz, const char *what)
{
    return lr_error(npz->log, LR_BAD_INPUT, "%s: %s", npz->path, what);
}

static lr_status read_bytes(const struct npz_source *npz, int64_t place, void *to, size_t bytes)
{
    unsigned char *at = to;
    while (bytes > 0) {
        const ssize_t got = pread(npz->file, at, bytes, (off_t)place);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            char text[128];
            return lr_error(npz->log, LR_BAD_INPUT, "%s cannot be read: %s: is its drive there?", npz->path,
                            lr_error_text(errno, text));
        }
        if (got == 0) return refuse(npz, "it is truncated: get the file again");
        at += got;
        place += got;
        bytes -= (size_t)got;
    }
    return LR_OK;
}

static lr_status read_numbers(void *self, enum lr_matrix_array which, const int64_t range[2], void *numbers)
{
    const struct npz_source *npz = self;
    const struct array *array = &npz->arrays[which];
    unsigned char bytes[8 * PIECE];
    int64_t *whole = numbers;
    double *real = numbers;
    for (int64_t at = 0; at < range[1]; at += PIECE) {
        const int64_t left = range[1] - at, num = left < PIECE ? left : PIECE;
        LR_TRY(read_bytes(npz, array->begin + (range[0] + at) * array->size, bytes, (size_t)num * (size_t)array->size));
        for (int64_t k = 0; k < num; k++) {
            const uint64_t bits = lr_whole_at(bytes + k * array->size, array->size);
            const uint32_t low = (uint32_t)bits;
            if (which != LR_ARRAY_VALUES)
                whole[at + k] = array->size == 4 ? (int64_t)(int32_t)low : (int64_t)bits;
            else if (array->size == 4)
                real[at + k] = (double)lr_float_at(bytes + k * array->size);
            else
                memcpy(&real[at + k], &bits, sizeof(bits));
        }
    }
    return LR_OK;
}

static void close_file(void *self)
{
    struct npz_source *npz = self;
    close(npz->file);
    free(npz);
}

/* Reads the .npy head at array->begin, and moves array->begin to the numbers behind the head. */
static lr_status read_head(struct npz_source *npz, int which)
{
    struct array *array = &npz->arrays[which];
    unsigned char start[12];
    char head[MOST_HEAD + 1];
    if (array->bytes < 12) return refuse(npz, "an array in it is too short");
    LR_TRY(read_bytes(npz, array->begin, start, sizeof(start)));
    const int version = start[6];
    const int64_t prefix = version == 1 ? 10 : 12;
    const int64_t length = (int64_t)lr_whole_at(start + 8, version == 1 ? 2 : 4);
    if (memcmp(start, "\x93NUMPY", 6) != 0 || version < 1 || version > 3 || length > MOST_HEAD ||
        prefix + length > array->bytes)
        return refuse(npz, "an array in it has no head as NumPy writes it");
    LR_TRY(read_bytes(npz, array->begin + prefix, head, (size_t)length));
    head[length] = '\0';
    static const char type_key[] = "'descr': '", shape_key[] = "'shape': ";
    const char *type = strstr(head, type_key), *shape = strstr(head, shape_key);
    if (type == NULL || shape == NULL || strlen(type + strlen(type_key)) < 3)
        return refuse(npz, "an array in it has no head as NumPy writes it");
    type += strlen(type_key);
    shape += strlen(shape_key);
    array->kind = type[1];
    array->size = type[2] - '0';
    /* A shape is "(3,)" for an array of three numbers, or "()" for one number. Any other shape counts as -1. */
    char *end = NULL;
    const long long count = *shape == '(' ? strtoll(shape + 1, &end, 10) : -1;
    const bool is_row = end != NULL && end != shape + 1 && strncmp(end, ",)", 2) == 0 && count >= 0;
    array->count = strncmp(shape, "()", 2) == 0 ? 1 : is_row ? count : -1;
    const bool is_text = which == FORMAT, is_real = which == VALUES, is_share = which == SHARE;
    const bool good = is_share  ? array->kind == 'u' && array->size == 1
                      : is_text ? array->kind == 'S' && array->size == 3
                      : is_real ? array->kind == 'f' && (array->size == 4 || array->size == 8)
                                : array->kind == 'i' && (array->size == 4 || array->size == 8);
    if (!good || type[3] != '\'' || (type[0] != '<' && !is_text && !is_share) || array->count < 0) {
        return lr_error(npz->log, LR_BAD_INPUT, "%s: %s must be one row of little-endian %s: it is of type %.4s",
                        npz->path, names[which], is_real ? "float32 or float64" : "int32 or int64", type);
    }
    const int64_t room = array->bytes - prefix - length;
    if (array->count > room / array->size || array->count * array->size != room) {
        return lr_error(npz->log, LR_BAD_INPUT, "%s: %s is to have %lld numbers of %d bytes, and there are %lld bytes",
                        npz->path, names[which], (long long)array->count, array->size, (long long)room);
    }
    array->begin += prefix + length;
    return LR_OK;
}

/* Reads the archive's directory, and the head of each array in it. The end of the file gives the offset of the
 * directory. */
static lr_status read_directory(struct npz_source *npz)
{
    const int64_t most = END_BYTES + MOST_COMMENT;
    const int64_t tail_bytes = npz->file_bytes < most ? npz->file_bytes : most;
    unsigned char tail[END_BYTES + MOST_COMMENT], directory[MOST_DIRECTORY];
    LR_TRY(read_bytes(npz, npz->file_bytes - tail_bytes, tail, (size_t)tail_bytes));
    int64_t end = tail_bytes - END_BYTES;
    while (end >= 0 && memcmp(tail + end, "PK\5\6", 4) != 0) end--;
    if (end < 0) return refuse(npz, "the end of the archive is missing: get the file again");
    const int64_t bytes = (int64_t)lr_whole_at(tail + end + 12, 4);
    const int64_t begin = (int64_t)lr_whole_at(tail + end + 16, 4);
    if (bytes > MOST_DIRECTORY || begin > npz->file_bytes || bytes > npz->file_bytes - begin)
        return refuse(npz, "the directory of the archive is damaged, or it is larger than 4 GiB");
    LR_TRY(read_bytes(npz, begin, directory, (size_t)bytes));

    for (int64_t at = 0; at + CENTRAL_BYTES <= bytes;) {
        const unsigned char *entry = directory + at, *name = entry + CENTRAL_BYTES;
        const int64_t name_bytes = (int64_t)lr_whole_at(entry + 28, 2);
        if (memcmp(entry, "PK\1\2", 4) != 0 || at + CENTRAL_BYTES + name_bytes > bytes)
            return refuse(npz, "the directory of the archive is damaged");
        at += CENTRAL_BYTES + name_bytes + (int64_t)lr_whole_at(entry + 30, 2) + (int64_t)lr_whole_at(entry + 32, 2);
        int k = 0;
        while (k < NUM_ARRAYS &&
               ((int64_t)strlen(names[k]) != name_bytes || memcmp(name, names[k], (size_t)name_bytes) != 0))
            k++;
        if (k == NUM_ARRAYS) continue;

        struct array *array = &npz->arrays[k];
        unsigned char local[LOCAL_BYTES];
        const int64_t packed = (int64_t)lr_whole_at(entry + 20, 4);
        const int64_t plain = (int64_t)lr_whole_at(entry + 24, 4);
        const int64_t place = (int64_t)lr_whole_at(entry + 42, 4);
        if (lr_whole_at(entry + 10, 2) != 0 || packed != plain) {
            return lr_error(npz->log, LR_BAD_INPUT,
                            "%s: %s is compressed: save it with scipy.sparse.save_npz(..., compressed=False)",
                            npz->path, names[k]);
        }
        LR_TRY(read_bytes(npz, place, local, sizeof(local)));
        if (memcmp(local, "PK\3\4", 4) != 0) return refuse(npz, "the directory of the archive is damaged");
        array->begin = place + LOCAL_BYTES + (int64_t)lr_whole_at(local + 26, 2) + (int64_t)lr_whole_at(local + 28, 2);
        array->bytes = plain;
        if (array->begin > npz->file_bytes || array->bytes > npz->file_bytes - array->begin)
            return refuse(npz, "it is truncated: get the file again");
        LR_TRY(read_head(npz, k));
    }
    return LR_OK;
}

static lr_status read_info(struct npz_source *npz, lr_matrix_file_info *info)
{
    char format[3];
    int64_t shape[2];
    for (int k = 0; k < SHARE; k++) {
        if (npz->arrays[k].begin == 0) {
            return lr_error(npz->log, LR_BAD_INPUT, "%s is no sparse matrix of scipy: it lacks %s", npz->path,
                            names[k]);
        }
    }
    LR_TRY(read_bytes(npz, npz->arrays[FORMAT].begin, format, sizeof(format)));
    if (memcmp(format, "csr", 3) != 0 || npz->arrays[SHAPE].count != 2)
        return refuse(npz, "its matrix is not in CSR format");
    LR_TRY(read_numbers(npz, (enum lr_matrix_array)SHAPE, (int64_t[2]){0, 2}, shape));
    *info = (lr_matrix_file_info){.num_rows = shape[0],
                                  .num_columns = shape[1],
                                  .num_elements = npz->arrays[VALUES].count,
                                  .backend = "",
                                  .description = "",
                                  .factors = "none",
                                  .share = npz->share};
    if (shape[0] < 0 || shape[1] < 0 || npz->arrays[STARTS].count - 1 != shape[0] ||
        npz->arrays[COLUMNS].count != info->num_elements)
        return refuse(npz, "the sizes of its arrays do not go together");
    const struct array *share = &npz->arrays[SHARE];
    if (share->count > MOST_SHARE)
        return refuse(npz, "what it says of the part that it is is longer than this program writes");
    return share->begin > 0 ? read_bytes(npz, share->begin, npz->share, (size_t)share->count) : LR_OK;
}

lr_status lr_matrix_npz_open(struct lr_matrix_source *source)
{
    struct npz_source *npz = lr_alloc(1, sizeof(*npz), "a matrix file", source->log);
    if (npz == NULL) return LR_FAILED;
    npz->path = source->path;
    npz->log = source->log;
    npz->file = open(source->path, O_RDONLY | O_CLOEXEC);
    if (npz->file < 0) {
        const int error = errno;
        char text[LR_OPEN_FAILURE];
        free(npz);
        return lr_error(source->log, LR_BAD_INPUT, "cannot open %s: %s", source->path,
                        lr_open_failure(source->path, error, text));
    }
    npz->file_bytes = (int64_t)lseek(npz->file, 0, SEEK_END);
    source->self = npz;
    source->read = read_numbers;
    source->close = close_file;
    LR_TRY(read_directory(npz));
    return read_info(npz, &source->info);
}
