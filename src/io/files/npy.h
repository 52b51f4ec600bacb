/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Heads of NumPy array files. Versions 1.0 to 3.0 are read, and version 1.0 is written. */
#pragma once

#include "io/files/number_type.h"

#include <lr/log.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { LR_NPY_MAX_DIMS = 32 };

struct lr_npy_header {
    struct lr_number_type type; /* invalid if the elements are not numbers */
    bool fortran_order;
    int num_dims;
    int64_t shape[LR_NPY_MAX_DIMS];
    int64_t count;        /* product of the shape */
    int64_t offset_bytes; /* position of the first element */
};

/* Reads a head, which is at the beginning of the file, and stops before the elements. errors: LR_BAD_INPUT, logged with
 * the path. */
lr_status lr_npy_header_read(FILE *file, const char *path, struct lr_npy_header *header, const lr_log *log);

enum { lr_npy_header_bytes = 1024 };

/* Makes the head of an .npy array in C order. Returns its length, a multiple of 64 bytes, so that the elements are
 * aligned. type: in NumPy's notation, such as "<f4". num_dims: at most 32. */
size_t lr_npy_header(unsigned char header[lr_npy_header_bytes], const char *type, const int64_t *shape, int num_dims);
