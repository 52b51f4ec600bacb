/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are numbers per crystal (.npy, text, PETSIRD), or one sentence
 * about bad input. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    float values[162];
    const lr_scanner *scanner = fuzz_lors()->scanner;
    const bool is_petsird = count > 5 && memcmp(bytes, "yardl", 5) == 0;
    const char *name = count > 0 && bytes[0] == 0x93 ? "a.npy" : is_petsird ? "a.petsird" : "a.txt";
    if (scanner->num_crystals != 162) abort();
    fuzz_expect(lr_crystal_values_read(fuzz_file(name, bytes, count), scanner, values, &fuzz_log) == LR_OK);
    return 0;
}
