/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * NumPy array files (numpy.org, "A simple file format for NumPy arrays"). Heads of versions 1.0 to 3.0 are read, and
 * files of version 1.0 are written. */
#include "io/files/npy.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/files/output.h"
#include "io/files/regular_file.h"

#include <lr/io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 65536, MAGIC_BYTES = 6 };

static const char magic[] = "\x93NUMPY";

/* Returns the value of a key of the header without leading blanks, or NULL if the key is missing. */
static const char *value_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    if (at == NULL) return NULL;
    at += strlen(key);
    return at + strspn(at, " :");
}

static lr_status parse(const char *text, const char *path, struct lr_npy_header *header, const lr_log *log)
{
    /* A type is "'<f4'": byte order, kind, number of bytes. */
    const char *descr = value_of(text, "'descr'");
    header->type = (struct lr_number_type){LR_KIND_NONE, 0, false};
    if (descr != NULL && strlen(descr) >= 5 && descr[0] == '\'' && descr[4] == '\'' &&
        strchr("<>|=", descr[1]) != NULL) {
        const char kind = descr[2];
        header->type.kind = kind == 'f'   ? LR_KIND_FLOAT
                            : kind == 'i' ? LR_KIND_SIGNED
                            : kind == 'u' ? LR_KIND_UNSIGNED
                                          : LR_KIND_NONE;
        header->type.bytes = descr[3] - '0';
        header->type.big_endian = descr[1] == '>';
    }
    if (!lr_number_type_is_valid(&header->type)) return LR_OK; /* the caller reports the type that it needs */

    /* A shape is "(2, 3)". */
    const char *shape = value_of(text, "'shape'"), *order = value_of(text, "'fortran_order'");
    bool is_good = shape != NULL && *shape == '(' && order != NULL;
    header->count = 1;
    header->num_dims = 0;
    for (const char *at = is_good ? shape + 1 : ")"; is_good && *at != ')'; at += strspn(at, " ,")) {
        char *end = NULL;
        const long long size = strtoll(at, &end, 10);
        is_good = end != at && size >= 0 && size <= INT32_MAX && header->count <= INT64_MAX / (size + 1) &&
                  header->num_dims < LR_NPY_MAX_DIMS;
        if (!is_good) break;
        header->shape[header->num_dims++] = size;
        header->count *= size;
        at = end;
    }
    if (!is_good) return lr_error(log, LR_BAD_INPUT, "%s: its header is damaged: copy it again", path);
    header->fortran_order = strncmp(order, "False", 5) != 0;
    return LR_OK;
}

lr_status lr_npy_header_read(FILE *file, const char *path, struct lr_npy_header *header, const lr_log *log)
{
    *header = (struct lr_npy_header){0};
    unsigned char bytes[MAGIC_BYTES + 6]; /* magic, version, then two or four bytes */
    const unsigned char *at = bytes + MAGIC_BYTES;
    if (fread(bytes, 1, MAGIC_BYTES + 4, file) != MAGIC_BYTES + 4 || memcmp(bytes, magic, MAGIC_BYTES) != 0)
        return lr_file_truncated(file, path, log);
    const int version = at[0];
    const bool has_all = version == 1 || fread(bytes + MAGIC_BYTES + 4, 1, 2, file) == 2;
    if (version < 1 || version > 3) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s: is of version %d of NumPy's format, and 1 to 3 are read: write it with numpy.save", path,
                        version);
    }
    if (!has_all) return lr_file_truncated(file, path, log);
    int64_t length = at[2] | at[3] << 8;
    if (version > 1) length |= (int64_t)at[4] << 16 | (int64_t)at[5] << 24;
    if (length > MAX_HEADER) return lr_file_truncated(file, path, log);
    header->offset_bytes = MAGIC_BYTES + (version == 1 ? 4 : 6) + length;

    char *text = lr_alloc(length + 1, 1, "a header", log);
    if (text == NULL) return LR_FAILED;
    const bool is_whole = fread(text, 1, (size_t)length, file) == (size_t)length;
    const lr_status status = is_whole ? parse(text, path, header, log) : lr_file_truncated(file, path, log);
    free(text);
    return status;
}

/* --- writing --- */

enum { max_dims = 32, alignment = 64, prefix_bytes = 10, piece = 4096 };

size_t lr_npy_header(unsigned char header[lr_npy_header_bytes], const char *type, const int64_t *shape, int num_dims)
{
    char *text = (char *)header + prefix_bytes;
    const size_t room = lr_npy_header_bytes - prefix_bytes;
    size_t used = (size_t)snprintf(text, room, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int k = 0; k < num_dims; k++) {
        used += (size_t)snprintf(text + used, room - used, "%lld%s", (long long)shape[k],
                                 k + 1 < num_dims ? ", "
                                 : num_dims == 1  ? ","
                                                  : "");
    }
    used += (size_t)snprintf(text + used, room - used, "), }");
    const size_t total = (prefix_bytes + used + 1 + alignment - 1) / alignment * alignment;
    memset(text + used, ' ', total - prefix_bytes - used);
    header[total - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (unsigned char)((total - prefix_bytes) & 0xff);
    header[9] = (unsigned char)((total - prefix_bytes) >> 8);
    return total;
}

lr_status lr_npy_write(const char *path, const lr_array *array, const lr_log *log)
{
    const int num_dims = array->num_dims;
    if (num_dims < 0 || num_dims > max_dims || (num_dims > 0 && array->shape == NULL))
        return lr_error(log, LR_USAGE, "an .npy array has 0 to %d dimensions, not %d", max_dims, num_dims);
    int64_t count = 1; /* -1 = a size is negative, or the product is too large */
    for (int k = 0; k < num_dims && count >= 0; k++) {
        const int64_t size = array->shape[k];
        count = size < 0 || (size > 0 && count > INT64_MAX / 8 / size) ? -1 : count * size;
    }
    if (count < 0 || (count > 0 && array->values == NULL)) {
        return lr_error(log, LR_USAGE, "the shape of the array for %s is negative or too large",
                        path ? path : "an .npy file");
    }
    unsigned char header[lr_npy_header_bytes];
    const size_t header_bytes = lr_npy_header(header, "<f4", array->shape, num_dims);
    struct lr_output output;
    LR_TRY(lr_output_open(&output, path, log));
    (void)lr_output_write(&output, header, header_bytes); /* finish reports a failure */
    unsigned char bytes[4 * piece];
    for (int64_t start = 0; start < count && output.error == 0; start += piece) {
        const int num = count - start < piece ? (int)(count - start) : piece;
        for (int k = 0; k < num; k++) lr_put_float(bytes + 4 * k, array->values[start + k]);
        (void)lr_output_write(&output, bytes, 4 * (size_t)num);
    }
    return lr_output_finish(&output);
}
