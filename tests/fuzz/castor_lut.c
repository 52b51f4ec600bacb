/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: CASToR's look-up tables. The first zero byte of the input parts the header from
 * the table. Not part of CTest; scanner_yaml.c says how to build it. */
#include "io/scanners/scanner_formats.h"
#include "scanner_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const uint8_t *zero = count > 0 ? memchr(bytes, 0, count) : NULL;
    const size_t header = zero != NULL ? (size_t)(zero - bytes) : count;
    const char *table = fuzz_path(".lut");
    fuzz_write(table, zero != NULL ? zero + 1 : bytes, zero != NULL ? count - header - 1 : 0);
    const char *path = fuzz_path(".hscan");
    fuzz_write(path, bytes, header);
    fuzz_read(path, lr_hscan_read);
    return 0;
}
