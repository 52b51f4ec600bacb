/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are LOR data in HDF5 or one sentence about bad input. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    lr_lor_data *data = lr_lor_data_read(fuzz_file("a.h5", bytes, count), fuzz_lors(), &fuzz_log);
    fuzz_expect(data != NULL);
    lr_lor_data_destroy(data);
    return 0;
}
