/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are a scanner or one sentence about bad input. Not part of CTest:
 *     clang -fsanitize=fuzzer,address,undefined tests/fuzz/scanner_yaml.c, with the library's
 *     sources and src/ as include folder; then run it on assets/scanners. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    fuzz_status = LR_OK;
    return fuzz_scanner(lr_scanner_parse(lr_yaml_parse("fuzz.yaml", (const char *)bytes, (int64_t)count, &fuzz_log)));
}
