/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * NumPy array files, format version 1.0 (numpy.org, "A simple file format for NumPy arrays"). */
#include "io/files/npy.h"
#include "base/log.h"
#include "io/files/output.h"

#include <lr/io.h>

#include <stdio.h>
#include <string.h>

enum { max_dims = 32, alignment = 64, prefix_bytes = 10, piece = 4096 };

/* Number of elements, or -1 when a size is negative or the product cannot be held. */
static int64_t num_elements(const int64_t *shape, int num_dims)
{
    int64_t count = 1;
    for (int k = 0; k < num_dims; k++) {
        if (shape[k] < 0 || (shape[k] > 0 && count > INT64_MAX / 8 / shape[k])) {
            return -1;
        }
        count *= shape[k];
    }
    return count;
}

size_t lr_npy_header(unsigned char header[lr_npy_header_bytes], const char *type,
                     const int64_t *shape, int num_dims)
{
    char *text = (char *)header + prefix_bytes;
    const size_t room = lr_npy_header_bytes - prefix_bytes;
    size_t used =
        (size_t)snprintf(text, room, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
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

static lr_status write_values(struct lr_output *output, const float *values, int64_t count)
{
    unsigned char bytes[4 * piece];
    for (int64_t start = 0; start < count; start += piece) {
        const int num = count - start < piece ? (int)(count - start) : piece;
        for (int k = 0; k < num; k++) {
            uint32_t bits;
            memcpy(&bits, &values[start + k], 4);
            for (int b = 0; b < 4; b++) {
                bytes[4 * k + b] = (unsigned char)(bits >> (8 * b));
            }
        }
        LR_TRY(lr_output_write(output, bytes, 4 * (size_t)num));
    }
    return LR_OK;
}

lr_status lr_npy_write(const char *path, const lr_array *array, const lr_log *log)
{
    const int num_dims = array->num_dims;
    if (num_dims < 0 || num_dims > max_dims || (num_dims > 0 && array->shape == NULL)) {
        return lr_error(log, LR_USAGE, "an .npy array has 0 to %d dimensions, not %d", max_dims,
                        num_dims);
    }
    const int64_t count = num_elements(array->shape, num_dims);
    if (count < 0 || (count > 0 && array->values == NULL)) {
        return lr_error(log, LR_USAGE, "the shape of the array for %s is negative or too large",
                        path ? path : "an .npy file");
    }
    unsigned char header[lr_npy_header_bytes];
    const size_t header_bytes = lr_npy_header(header, "<f4", array->shape, num_dims);
    struct lr_output output;
    LR_TRY(lr_output_open(&output, path, log));
    if (lr_output_write(&output, header, header_bytes) == LR_OK) {
        (void)write_values(&output, array->values, count); /* finish reports a failure */
    }
    return lr_output_finish(&output);
}
