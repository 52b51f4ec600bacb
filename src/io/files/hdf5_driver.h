/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_HDF5_DRIVER_H
#define LR_IO_HDF5_DRIVER_H

#include "io/files/output.h"

#include <hdf5.h>
#include <stdbool.h>

/* Bytes that are in the file before HDF5 is: HDF5 puts its own before and behind them, and while
 * `places` is set the storage of chunks among them, without writing it. */
struct lr_hdf5_layout {
    haddr_t begin, end; /* taken bytes; HDF5 has its first 96 below `begin` */
    bool places;        /* storage of just chunk_bytes is at `next`, the one after a stride on */
    haddr_t next, stride, chunk_bytes;
};

/* Registers a virtual file driver and tells the file access list to write through `output`, which
 * must outlive the file. A write that fails is logged by the output; from then on all writes are
 * dropped and reported to HDF5 as done. layout: NULL = an empty file; else it must outlive the file
 * too. Unregister the driver with H5FDunregister once the file is
 * closed. Negative when HDF5 refuses. */
hid_t lr_hdf5_driver_set(hid_t access, struct lr_output *output, struct lr_hdf5_layout *layout);

#endif
