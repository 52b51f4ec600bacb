/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanner inside an HDF5 file: group /scanner, and /lor/pairs and /lor/offsets. Layout:
 * docs/formats/hdf5.md. */
#ifndef LR_IO_HDF5_SCANNER_H
#define LR_IO_HDF5_SCANNER_H

#include "io/files/hdf5_file.h"
#include "io/files/hdf5_input.h"

#include <lr/lors.h>

/* Writes the group /scanner. Returns false if HDF5 refuses. */
bool lr_hdf5_put_scanner(const struct lr_hdf5_output *out, const lr_scanner *scanner);

/* Writes /lor with pairs, offsets and the attribute order. Returns the open group; negative if HDF5 refuses. */
lr_hdf5_id lr_hdf5_put_lors(const struct lr_hdf5_output *out, const lr_lors *lors);

/* Compares a file's /scanner (if there is one), /lor/pairs and /lor/offsets with `lors`. errors: LR_BAD_INPUT, with the
 * first difference. Differing coincidence rules are only a warning. */
lr_status lr_hdf5_check_scanner(const struct lr_hdf5_input *in, const lr_lors *lors);

#endif
