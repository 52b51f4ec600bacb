/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_NPY_H
#define LR_IO_NPY_H

#include <stddef.h>
#include <stdint.h>

enum { lr_npy_header_bytes = 1024 };

/* Fills the head of an .npy array in C order and returns its bytes, a multiple of 64 so that the data
 * is aligned. type: as NumPy writes it, "<f4"; num_dims: at most 32. */
size_t lr_npy_header(unsigned char header[lr_npy_header_bytes], const char *type,
                     const int64_t *shape, int num_dims);

#endif
