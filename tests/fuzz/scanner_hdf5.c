/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are an HDF5 file with a scanner or one sentence about bad input. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[64];
    lr_status status = LR_OK;
    const lr_log log = {fuzz_note, &status};
    fuzz_write(path, "a.h5", bytes, count);
    lr_scanner *scanner = lr_scanner_read_hdf5(path, &log);
    fuzz_expect(scanner != NULL, status);
    lr_scanner_destroy(scanner);
    return 0;
}
