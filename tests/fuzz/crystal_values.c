/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are numbers per crystal (.npy, text, PETSIRD), or one sentence
 * about bad input. */
#include "files.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[64];
    lr_status status = LR_OK;
    float values[162];
    const lr_log log = {fuzz_note, &status};
    const lr_scanner *scanner = fuzz_lors()->scanner;
    const bool is_petsird = count > 5 && memcmp(bytes, "yardl", 5) == 0;
    if (scanner->num_crystals != 162) abort();
    fuzz_write(path, count > 0 && bytes[0] == 0x93 ? "a.npy" : is_petsird ? "a.petsird" : "a.txt", bytes, count);
    fuzz_expect(lr_crystal_values_read(path, scanner, values, &log) == LR_OK, status);
    return 0;
}
