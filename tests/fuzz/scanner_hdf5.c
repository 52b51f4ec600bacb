/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are an HDF5 file with a scanner or one sentence about bad input. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    return fuzz_scanner(lr_scanner_read_hdf5(fuzz_file("a.h5", bytes, count), &fuzz_log));
}
