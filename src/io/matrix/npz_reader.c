/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * .npz of scipy.sparse.save_npz(..., compressed=False): the archive's directory at its end (PKWARE's
 * APPNOTE 6.3, sections 4.3.12 and 4.3.16), stored members, .npy heads. */
#include "base/log.h"
#include "base/mem.h"
#include "io/files/output.h"
#include "io/files/regular_file.h"
#include "io/matrix/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CENTRAL_BYTES = 46, LOCAL_BYTES = 30, END_BYTES = 22, MOST_COMMENT = 65535 };
enum { MOST_DIRECTORY = 1 << 16, MOST_HEAD = 4096, PIECE = 4096 };

enum { NUM_NEEDED = 5, SHARE = NUM_NEEDED, NUM_MEMBERS, MOST_SHARE = 1 << 15 };
static const char *const names[NUM_MEMBERS] = {"indptr.npy", "indices.npy", "data.npy",
                                               "shape.npy",  "format.npy",  "part.npy"};

/* A member's array: where its numbers begin, and what they are. */
struct array {
    int64_t begin, bytes; /* of the member's data in the file; begin 0 = not found */
    int64_t count;
    char kind; /* 'i', 'u', 'f' or 'S' */
    int size;
};

struct npz {
    const char *path;
    const lr_log *log;
    int file;
    int64_t file_bytes;
    struct array arrays[NUM_MEMBERS];
    char share[MOST_SHARE + 1];
};

static lr_status refuse(const struct npz *npz, const char *what)
{
    return lr_error(npz->log, LR_BAD_INPUT, "%s: %s", npz->path, what);
}

static lr_status read_bytes(const struct npz *npz, int64_t place, void *to, size_t bytes)
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

static int64_t whole_at(const unsigned char *bytes, int size)
{
    const uint64_t number = number_at(bytes, size);
    return size == 4 ? (int64_t)(int32_t)(uint32_t)number : (int64_t)number;
}

static double real_at(const unsigned char *bytes, int size)
{
    const uint64_t bits = number_at(bytes, size);
    const uint32_t low = (uint32_t)bits;
    float single;
    double number;
    memcpy(&single, &low, sizeof(single));
    memcpy(&number, &bits, sizeof(number));
    return size == 4 ? (double)single : number;
}

static lr_status read_numbers(void *self, enum lr_matrix_array which, const int64_t range[2], void *numbers)
{
    const struct npz *npz = self;
    const struct array *array = &npz->arrays[which];
    unsigned char bytes[8 * PIECE];
    int64_t *whole = numbers;
    double *real = numbers;
    for (int64_t at = 0; at < range[1]; at += PIECE) {
        const int64_t left = range[1] - at, num = left < PIECE ? left : PIECE;
        LR_TRY(read_bytes(npz, array->begin + (range[0] + at) * array->size, bytes, (size_t)num * (size_t)array->size));
        for (int64_t k = 0; k < num; k++) {
            const unsigned char *number = bytes + k * array->size;
            if (which == LR_ARRAY_VALUES)
                real[at + k] = real_at(number, array->size);
            else
                whole[at + k] = whole_at(number, array->size);
        }
    }
    return LR_OK;
}

static void close_file(void *self)
{
    struct npz *npz = self;
    close(npz->file);
    free(npz);
}

/* --- .npy heads --- */

/* What follows "'key': " in the head. */
static const char *find_value(const char *head, const char *key)
{
    const char *at = strstr(head, key);
    return at != NULL ? at + strlen(key) : NULL;
}

/* "(3,)" or "()"; -1 for anything else. */
static int64_t parse_shape(const char *text)
{
    char *end = NULL;
    if (strncmp(text, "()", 2) == 0) return 1;
    const long long count = *text == '(' ? strtoll(text + 1, &end, 10) : -1;
    return end != NULL && end != text + 1 && strncmp(end, ",)", 2) == 0 && count >= 0 ? count : -1;
}

static lr_status parse_head(const struct npz *npz, const char *head, const char *name, struct array *array)
{
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
    return LR_OK;
}

/* The member's head is at array->begin; moves that to the numbers. */
static lr_status read_head(const struct npz *npz, const char *name, struct array *array)
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
    LR_TRY(parse_head(npz, head, name, array));
    const int64_t room = array->bytes - prefix - length;
    if (array->count > room / array->size || array->count * array->size != room) {
        return lr_error(npz->log, LR_BAD_INPUT, "%s: %s is to have %lld numbers of %d bytes, and there are %lld bytes",
                        npz->path, name, (long long)array->count, array->size, (long long)room);
    }
    array->begin += prefix + length;
    return LR_OK;
}

/* --- the archive --- */

static lr_status find_member(struct npz *npz, const unsigned char *entry, const char *name, struct array *array)
{
    unsigned char local[LOCAL_BYTES];
    const int64_t packed = (int64_t)number_at(entry + 20, 4);
    const int64_t plain = (int64_t)number_at(entry + 24, 4);
    const int64_t place = (int64_t)number_at(entry + 42, 4);
    if (number_at(entry + 10, 2) != 0 || packed != plain) {
        return lr_error(npz->log, LR_BAD_INPUT,
                        "%s: %s is compressed: save it with scipy.sparse.save_npz(..., "
                        "compressed=False)",
                        npz->path, name);
    }
    LR_TRY(read_bytes(npz, place, local, sizeof(local)));
    if (memcmp(local, "PK\3\4", 4) != 0) return refuse(npz, "the directory of the archive is damaged");
    array->begin = place + LOCAL_BYTES + (int64_t)number_at(local + 26, 2) + (int64_t)number_at(local + 28, 2);
    array->bytes = plain;
    if (array->begin > npz->file_bytes || array->bytes > npz->file_bytes - array->begin)
        return refuse(npz, "it is truncated: get the file again");
    return read_head(npz, name, array);
}

static lr_status read_entry(struct npz *npz, const unsigned char *entry, const char *name, size_t name_bytes)
{
    for (int k = 0; k < NUM_MEMBERS; k++)
        if (strlen(names[k]) == name_bytes && memcmp(name, names[k], name_bytes) == 0)
            return find_member(npz, entry, names[k], &npz->arrays[k]);
    return LR_OK;
}

static lr_status read_directory(struct npz *npz, const unsigned char *end)
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

static lr_status read_archive(struct npz *npz)
{
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
    return status;
}

static lr_status read_info(struct npz *npz, lr_matrix_file_info *info)
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
    struct npz *npz = lr_alloc(1, sizeof(*npz), "a matrix file", source->log);
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
    lr_status status = read_archive(npz);
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
