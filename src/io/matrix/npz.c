/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows as scipy.sparse.save_npz lays them out: a zip archive of .npy arrays, not compressed.
 * Zip: PKWARE's APPNOTE 6.3, sections 4.3.7, 4.3.12 and 4.3.16, without its 64-bit extension. */
#include "base/log.h"
#include "base/mem.h"
#include "io/files/npy.h"
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

/* Capacity of a plain zip archive, less its heads. */
#define MOST_NPZ_BYTES ((int64_t)UINT32_MAX - 65536)

enum { BLOCK = lr_store_block_elements, NUM_MEMBERS = 5, MOST_MEMBERS = 6, MAX_NAME = 16 };
enum { LOCAL_BYTES = 30, CENTRAL_BYTES = 46, END_BYTES = 22 };

struct npz;

/* One array of the archive. `put` hands its bytes after the head to emit, piece by piece. */
struct member {
    const char *name, *type;
    int64_t shape; /* -1: no dimensions */
    size_t bytes;  /* length of the data */
    lr_status (*put)(struct npz *npz);
    uint32_t check, place; /* CRC-32; offset of its local head */
    size_t total;          /* bytes, the array's head included */
};

struct npz {
    const struct lr_matrix_content *content;
    struct lr_output output;
    bool wide;
    bool writes;    /* false: bytes are only counted into `check` */
    uint32_t check; /* CRC-32 of the bytes put so far */
    void *buffer;   /* [BLOCK] numbers of 8 bytes */
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

/* Puts numbers in little-endian byte order. */
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

/* Fills the fields that local and central heads share, beginning with the version needed. */
static void format_common(const struct member *member, unsigned char *bytes)
{
    put16(bytes, 20);
    put16(bytes + 8, 0x21); /* 1980-01-01: the same rows give the same bytes */
    put32(bytes + 10, member->check);
    put32(bytes + 14, (uint32_t)member->total);
    put32(bytes + 18, (uint32_t)member->total);
    put16(bytes + 22, (unsigned)strlen(member->name));
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

    size_t place = 0; /* in the archive */
    for (int k = 0; k < num; k++) {
        struct member *member = &members[k];
        unsigned char head[lr_npy_header_bytes], local[LOCAL_BYTES] = {'P', 'K', 3, 4};
        const size_t head_bytes = lr_npy_header(head, member->type, &member->shape, member->shape < 0 ? 0 : 1);
        const size_t name_bytes = strlen(member->name);
        member->total = head_bytes + member->bytes;
        member->place = (uint32_t)place;
        /* The checksum precedes the data in the archive, so all data is read twice. */
        npz->writes = false;
        npz->check = 0;
        LR_TRY(emit(npz, head, head_bytes));
        LR_TRY(member->put(npz));
        member->check = npz->check;
        npz->writes = true;
        format_common(member, local + 4);
        LR_TRY(emit(npz, local, sizeof(local)));
        LR_TRY(emit(npz, member->name, name_bytes));
        LR_TRY(emit(npz, head, head_bytes));
        LR_TRY(member->put(npz));
        place += sizeof(local) + name_bytes + member->total;
    }

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
    put32(end + 16, (uint32_t)place);
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

/* .npz of scipy.sparse.save_npz(..., compressed=False): the archive's directory at its end (PKWARE's
 * APPNOTE 6.3, sections 4.3.12 and 4.3.16), stored members, .npy heads. */

enum { MOST_COMMENT = 65535, MOST_DIRECTORY = 1 << 16, MOST_HEAD = 4096, PIECE = 4096 };

enum { NUM_NEEDED = 5, SHARE = NUM_NEEDED, NUM_READ, MOST_SHARE = 1 << 15 };
static const char *const names[NUM_READ] = {"indptr.npy", "indices.npy", "data.npy",
                                            "shape.npy",  "format.npy",  "part.npy"};

/* The array of a member: the place of its numbers, and their type. */
struct array {
    int64_t begin, bytes; /* range of the member's data in the file; begin 0 = not found */
    int64_t count;
    char kind; /* 'i', 'u', 'f' or 'S' */
    int size;
};

struct npz_source {
    const char *path;
    const lr_log *log;
    int file;
    int64_t file_bytes;
    struct array arrays[NUM_READ];
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

static uint64_t number_at(const unsigned char *bytes, int size)
{
    uint64_t number = 0;
    for (int k = size - 1; k >= 0; k--) number = number << 8 | bytes[k];
    return number;
}

/* --- numbers --- */

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
            const uint64_t bits = number_at(bytes + k * array->size, array->size);
            const uint32_t low = (uint32_t)bits;
            float single;
            memcpy(&single, &low, sizeof(single));
            if (which != LR_ARRAY_VALUES)
                whole[at + k] = array->size == 4 ? (int64_t)(int32_t)low : (int64_t)bits;
            else if (array->size == 4)
                real[at + k] = (double)single;
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

/* --- .npy heads --- */

/* Returns the text that follows "'key': " in the head, or NULL. */
static const char *find_value(const char *head, const char *key)
{
    const char *at = strstr(head, key);
    return at != NULL ? at + strlen(key) : NULL;
}

/* Returns the count of a shape "(3,)", or 1 for "()"; -1 for anything else. */
static int64_t parse_shape(const char *text)
{
    char *end = NULL;
    if (strncmp(text, "()", 2) == 0) return 1;
    const long long count = *text == '(' ? strtoll(text + 1, &end, 10) : -1;
    return end != NULL && end != text + 1 && strncmp(end, ",)", 2) == 0 && count >= 0 ? count : -1;
}

/* Reads the head at array->begin and moves begin to the numbers. */
static lr_status read_head(const struct npz_source *npz, const char *name, struct array *array)
{
    unsigned char start[12];
    char head[MOST_HEAD + 1];
    if (array->bytes < 12) return refuse(npz, "an array in it is too short");
    LR_TRY(read_bytes(npz, array->begin, start, sizeof(start)));
    const int version = start[6];
    const int64_t prefix = version == 1 ? 10 : 12;
    const int64_t length = (int64_t)number_at(start + 8, version == 1 ? 2 : 4);
    if (memcmp(start, "\x93NUMPY", 6) != 0 || version < 1 || version > 3 || length > MOST_HEAD ||
        prefix + length > array->bytes)
        return refuse(npz, "an array in it has no head as NumPy writes it");
    LR_TRY(read_bytes(npz, array->begin + prefix, head, (size_t)length));
    head[length] = '\0';
    const char *type = find_value(head, "'descr': '"), *shape = find_value(head, "'shape': ");
    if (type == NULL || shape == NULL || strlen(type) < 3)
        return refuse(npz, "an array in it has no head as NumPy writes it");
    array->kind = type[1];
    array->size = type[2] - '0';
    array->count = parse_shape(shape);
    const bool is_text = strcmp(name, "format.npy") == 0;
    const bool is_real = strcmp(name, "data.npy") == 0;
    const bool is_share = strcmp(name, names[SHARE]) == 0;
    const bool good = is_share  ? array->kind == 'u' && array->size == 1
                      : is_text ? array->kind == 'S' && array->size == 3
                      : is_real ? array->kind == 'f' && (array->size == 4 || array->size == 8)
                                : array->kind == 'i' && (array->size == 4 || array->size == 8);
    if (!good || type[3] != '\'' || (type[0] != '<' && !is_text && !is_share) || array->count < 0) {
        return lr_error(npz->log, LR_BAD_INPUT, "%s: %s must be one row of little-endian %s: it is of type %.4s",
                        npz->path, name, is_real ? "float32 or float64" : "int32 or int64", type);
    }
    const int64_t room = array->bytes - prefix - length;
    if (array->count > room / array->size || array->count * array->size != room) {
        return lr_error(npz->log, LR_BAD_INPUT, "%s: %s is to have %lld numbers of %d bytes, and there are %lld bytes",
                        npz->path, name, (long long)array->count, array->size, (long long)room);
    }
    array->begin += prefix + length;
    return LR_OK;
}

/* --- the archive --- */

static lr_status read_entry(struct npz_source *npz, const unsigned char *entry, const char *name, size_t name_bytes)
{
    for (int k = 0; k < NUM_READ; k++)
        if (strlen(names[k]) == name_bytes && memcmp(name, names[k], name_bytes) == 0) {
            struct array *array = &npz->arrays[k];
            unsigned char local[LOCAL_BYTES];
            const int64_t packed = (int64_t)number_at(entry + 20, 4);
            const int64_t plain = (int64_t)number_at(entry + 24, 4);
            const int64_t place = (int64_t)number_at(entry + 42, 4);
            if (number_at(entry + 10, 2) != 0 || packed != plain) {
                return lr_error(npz->log, LR_BAD_INPUT,
                                "%s: %s is compressed: save it with scipy.sparse.save_npz(..., "
                                "compressed=False)",
                                npz->path, names[k]);
            }
            LR_TRY(read_bytes(npz, place, local, sizeof(local)));
            if (memcmp(local, "PK\3\4", 4) != 0) return refuse(npz, "the directory of the archive is damaged");
            array->begin = place + LOCAL_BYTES + (int64_t)number_at(local + 26, 2) + (int64_t)number_at(local + 28, 2);
            array->bytes = plain;
            if (array->begin > npz->file_bytes || array->bytes > npz->file_bytes - array->begin)
                return refuse(npz, "it is truncated: get the file again");
            return read_head(npz, names[k], array);
        }

    return LR_OK;
}

static lr_status read_directory(struct npz_source *npz, const unsigned char *end)
{
    const int64_t bytes = (int64_t)number_at(end + 12, 4);
    const int64_t place = (int64_t)number_at(end + 16, 4);
    if (bytes > MOST_DIRECTORY || place > npz->file_bytes || bytes > npz->file_bytes - place)
        return refuse(npz, "the directory of the archive is damaged, or it is larger than 4 GiB");
    unsigned char *directory = lr_alloc(bytes, 1, "an archive's directory", npz->log);
    lr_status status = directory != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) status = read_bytes(npz, place, directory, (size_t)bytes);
    for (int64_t at = 0; status == LR_OK && at + CENTRAL_BYTES <= bytes;) {
        const unsigned char *entry = directory + at;
        const int64_t name_bytes = (int64_t)number_at(entry + 28, 2);
        if (memcmp(entry, "PK\1\2", 4) != 0 || at + CENTRAL_BYTES + name_bytes > bytes) {
            status = refuse(npz, "the directory of the archive is damaged");
            break;
        }
        status = read_entry(npz, entry, (const char *)entry + CENTRAL_BYTES, (size_t)name_bytes);
        at += CENTRAL_BYTES + name_bytes + (int64_t)number_at(entry + 30, 2) + (int64_t)number_at(entry + 32, 2);
    }
    free(directory);
    return status;
}

static lr_status read_info(struct npz_source *npz, lr_matrix_file_info *info)
{
    char format[3];
    int64_t shape[2];
    for (int k = 0; k < NUM_NEEDED; k++) {
        if (npz->arrays[k].begin == 0) {
            return lr_error(npz->log, LR_BAD_INPUT, "%s is no sparse matrix of scipy: it lacks %s", npz->path,
                            names[k]);
        }
    }
    LR_TRY(read_bytes(npz, npz->arrays[4].begin, format, sizeof(format)));
    if (memcmp(format, "csr", 3) != 0 || npz->arrays[3].count != 2)
        return refuse(npz, "its matrix is not in CSR format");
    LR_TRY(read_numbers(npz, (enum lr_matrix_array)3, (int64_t[2]){0, 2}, shape));
    *info = (lr_matrix_file_info){.num_rows = shape[0],
                                  .num_columns = shape[1],
                                  .num_elements = npz->arrays[LR_ARRAY_VALUES].count,
                                  .backend = "",
                                  .description = "",
                                  .factors = "none",
                                  .share = npz->share};
    if (shape[0] < 0 || shape[1] < 0 || npz->arrays[LR_ARRAY_STARTS].count - 1 != shape[0] ||
        npz->arrays[LR_ARRAY_COLUMNS].count != info->num_elements)
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

    /* The end of the archive, which names the place of its directory. */
    const int64_t most = END_BYTES + MOST_COMMENT;
    const int64_t bytes = npz->file_bytes < most ? npz->file_bytes : most;
    unsigned char *tail = lr_alloc(bytes + 1, 1, "an archive's end", npz->log);
    lr_status status = tail != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) status = read_bytes(npz, npz->file_bytes - bytes, tail, (size_t)bytes);
    int64_t at = bytes - END_BYTES;
    while (status == LR_OK && at >= 0 && memcmp(tail + at, "PK\5\6", 4) != 0) at--;
    if (status == LR_OK) {
        status = at >= 0 ? read_directory(npz, tail + at)
                         : refuse(npz, "the end of the archive is missing: get the file again");
    }
    free(tail);
    if (status == LR_OK) status = read_info(npz, &source->info);
    if (status != LR_OK) {
        close_file(npz);
        return status;
    }
    source->self = npz;
    source->read = read_numbers;
    source->close = close_file;
    return LR_OK;
}
