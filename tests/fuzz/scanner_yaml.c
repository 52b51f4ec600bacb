/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are a scanner or one sentence about bad input. Not part of CTest:
 *     clang -fsanitize=fuzzer,address,undefined tests/fuzz/scanner_yaml.c, with the library's
 *     sources and src/ as include folder; then run it on assets/scanners. */
#include "io/files/yaml.h"
#include "io/scanners/scanner_formats.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void note_error(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    (void)sentence;
    if (level == LR_LOG_ERROR) *(lr_status *)user = status;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    lr_status status = LR_OK;
    const lr_log log = {note_error, &status};
    lr_scanner *scanner = lr_scanner_parse(lr_yaml_parse("fuzz.yaml", (const char *)bytes, (int64_t)count, &log));
    if ((scanner == NULL) != (status == LR_BAD_INPUT)) abort();
    lr_scanner_destroy(scanner);
    return 0;
}
