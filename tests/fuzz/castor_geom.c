/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: CASToR's generated geometry. Not part of CTest; scanner_yaml.c says how to
 * build it. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    return fuzz_scanner(lr_geom_read(fuzz_file("x.geom", bytes, count), &fuzz_log));
}
