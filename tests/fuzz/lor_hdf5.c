/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are LOR data in HDF5 or one sentence about bad input. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[64];
    lr_status status = LR_OK;
    const lr_log log = {fuzz_note, &status};
    fuzz_write(path, "a.h5", bytes, count);
    lr_lor_data *data = lr_lor_data_read(path, fuzz_lors(), &log);
    fuzz_expect(data != NULL, status);
    lr_lor_data_destroy(data);
    return 0;
}
