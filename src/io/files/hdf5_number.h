/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Types of numbers in memory. HDF5 converts numbers of a file to these types. */
#ifndef LR_IO_HDF5_NUMBER_H
#define LR_IO_HDF5_NUMBER_H

#include <stdint.h>

enum lr_hdf5_number { LR_HDF5_INT32, LR_HDF5_INT64, LR_HDF5_FLOAT, LR_HDF5_DOUBLE };

static inline int64_t lr_hdf5_number_bytes(enum lr_hdf5_number number)
{
    return number == LR_HDF5_INT64 || number == LR_HDF5_DOUBLE ? 8 : 4;
}

#endif
