/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/npy_header.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 65536, MAGIC_BYTES = 6 };

static const char magic[] = "\x93NUMPY";

bool lr_npy_begins(FILE *file)
{
    char start[MAGIC_BYTES];
    rewind(file);
    const size_t length = fread(start, 1, sizeof(start), file);
    const bool found = length == sizeof(start) && memcmp(start, magic, sizeof(start)) == 0;
    if (!ferror(file)) {
        rewind(file);
    }
    return found;
}

static lr_status truncated(FILE *file, const char *path, const lr_log *log)
{
    if (ferror(file)) {
        return lr_error(log, LR_BAD_INPUT, "%s: cannot be read: %s", path, strerror(errno));
    }
    return lr_error(log, LR_BAD_INPUT, "%s: is truncated: copy it again", path);
}

/* Length of the header's text; -1 when the file ends before. *version: 1 to 3 are known. */
static int64_t header_length(FILE *file, int64_t *offset_bytes, int *version)
{
    unsigned char bytes[MAGIC_BYTES + 6]; /* magic, version, then two or four bytes */
    if (fread(bytes, 1, MAGIC_BYTES + 4, file) != MAGIC_BYTES + 4 ||
        memcmp(bytes, magic, MAGIC_BYTES) != 0) {
        return -1;
    }
    const unsigned char *at = bytes + MAGIC_BYTES;
    *offset_bytes = MAGIC_BYTES + 4;
    *version = at[0];
    if (at[0] == 1) {
        return at[2] | at[3] << 8;
    }
    *offset_bytes += 2;
    if (fread(bytes + MAGIC_BYTES + 4, 1, 2, file) != 2) {
        return -1;
    }
    return (int64_t)at[2] | (int64_t)at[3] << 8 | (int64_t)at[4] << 16 | (int64_t)at[5] << 24;
}

/* What follows a key of the header, blanks skipped; NULL when it is missing. */
static const char *value_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    if (at == NULL) {
        return NULL;
    }
    at += strlen(key);
    return at + strspn(at, " :");
}

/* "(2, 3)"; false for anything else. */
static bool scan_shape(const char *text, struct lr_npy_header *header)
{
    header->count = 1;
    header->num_dims = 0;
    if (text == NULL || *text != '(') {
        return false;
    }
    for (text++; *text != ')'; text += strspn(text, " ,")) {
        char *end = NULL;
        const long long size = strtoll(text, &end, 10);
        if (end == text || size < 0 || size > INT32_MAX || header->count > INT64_MAX / (size + 1) ||
            header->num_dims == LR_NPY_MAX_DIMS) {
            return false;
        }
        header->shape[header->num_dims++] = size;
        header->count *= size;
        text = end;
    }
    return true;
}

/* "'<f4'": byte order, kind, bytes. */
static struct lr_number_type scan_type(const char *descr)
{
    struct lr_number_type type = {LR_KIND_NONE, 0, false};
    if (descr == NULL || strlen(descr) < 5 || descr[0] != '\'' || descr[4] != '\'' ||
        strchr("<>|=", descr[1]) == NULL) {
        return type;
    }
    const char kind = descr[2];
    type.kind = kind == 'f' ? LR_KIND_FLOAT : kind == 'i' ? LR_KIND_SIGNED : LR_KIND_NONE;
    type.kind = kind == 'u' ? LR_KIND_UNSIGNED : type.kind;
    type.bytes = descr[3] - '0';
    type.big_endian = descr[1] == '>';
    return type;
}

static lr_status parse(const char *text, const char *path, struct lr_npy_header *header,
                       const lr_log *log)
{
    const char *order = value_of(text, "'fortran_order'");
    header->type = scan_type(value_of(text, "'descr'"));
    if (!lr_number_type_is_valid(&header->type)) {
        return LR_OK; /* the caller says what it wants */
    }
    if (!scan_shape(value_of(text, "'shape'"), header) || order == NULL) {
        return lr_error(log, LR_BAD_INPUT, "%s: its header is damaged: copy it again", path);
    }
    header->fortran_order = strncmp(order, "False", 5) != 0;
    return LR_OK;
}

lr_status lr_npy_header_read(FILE *file, const char *path, struct lr_npy_header *header,
                             const lr_log *log)
{
    *header = (struct lr_npy_header){0};
    int version = 1;
    const int64_t length = header_length(file, &header->offset_bytes, &version);
    if (version < 1 || version > 3) {
        return lr_error(
            log, LR_BAD_INPUT,
            "%s: is of version %d of NumPy's format, and 1 to 3 are read: write it with "
            "numpy.save",
            path, version);
    }
    if (length < 0 || length > MAX_HEADER) {
        return truncated(file, path, log);
    }
    char *text = lr_alloc(length + 1, 1, "a header", log);
    if (text == NULL) {
        return LR_FAILED;
    }
    lr_status status = LR_OK;
    if (fread(text, 1, (size_t)length, file) != (size_t)length) {
        status = truncated(file, path, log);
    } else {
        status = parse(text, path, header, log);
    }
    header->offset_bytes += length;
    free(text);
    return status;
}
