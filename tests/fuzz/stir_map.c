/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: STIR's crystal map. Not part of CTest; scanner_yaml.c says how to
 * build it. */
#include "io/scanners/scanner_formats.h"
#include "scanner_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const char *path = fuzz_path(".txt");
    fuzz_write(path, bytes, count);
    fuzz_read(path, lr_stir_map_read);
    return 0;
}
