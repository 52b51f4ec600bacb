/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_HDF5_DRIVER_H
#define LR_IO_HDF5_DRIVER_H

#include "io/output.h"

#include <hdf5.h>

/* Registers a virtual file driver and tells the file access list to write through `output`, which
 * must outlive the file. A write that fails is logged by the output; from then on all writes are
 * dropped and reported to HDF5 as done. Unregister the driver with H5FDunregister once the file is
 * closed. Negative when HDF5 refuses. */
hid_t lr_hdf5_driver_set(hid_t access, struct lr_output *output);

#endif
