/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are a CASToR header, or one sentence about bad input; its data are
 * the same bytes. Not part of CTest: as tests/fuzz/scanner_yaml.c. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    fuzz_file("a.Cdf", bytes, count);
    return fuzz_events((lr_events_source){.path = fuzz_file("a.Cdh", bytes, count), .format = LR_EVENTS_CASTOR});
}
