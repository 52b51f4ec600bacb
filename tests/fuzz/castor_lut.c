/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: CASToR's look-up tables. The first zero byte of the input parts the header from
 * the table. Not part of CTest; scanner_yaml.c says how to build it. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const uint8_t *zero = count > 0 ? memchr(bytes, 0, count) : NULL;
    const size_t header = zero != NULL ? (size_t)(zero - bytes) : count;
    fuzz_file("x.lut", zero != NULL ? zero + 1 : bytes, zero != NULL ? count - header - 1 : 0);
    return fuzz_scanner(lr_hscan_read(fuzz_file("x.hscan", bytes, header), &fuzz_log));
}
