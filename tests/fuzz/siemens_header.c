/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are a header of Siemens list mode or one sentence about bad input. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static lr_scanner *scanner;
    static const uint8_t word[4] = {0};
    char words[64], text[64];
    lr_status status = LR_OK;
    const lr_log log = {fuzz_note, &status};
    scanner = scanner != NULL ? scanner : fuzz_octagon();
    fuzz_write(words, "a.l", word, sizeof(word));
    fuzz_write(text, "a.hdr", bytes, count);
    const lr_events_source source = {
        .path = words, .format = LR_EVENTS_SIEMENS, .companion = text, .scanner = scanner, .log = &log};
    if (lr_events_read(&source, NULL, NULL) != status) abort();
    return 0;
}
