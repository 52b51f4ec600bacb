/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are a header of Siemens list mode or one sentence about bad input. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const uint8_t word[4] = {0};
    const char *words = fuzz_file("a.l", word, sizeof(word)), *text = fuzz_file("a.hdr", bytes, count);
    const lr_events_source source = {.path = words,
                                     .format = LR_EVENTS_SIEMENS,
                                     .companion = text,
                                     .scanner = fuzz_ring(FUZZ_OCTAGON),
                                     .log = &fuzz_log};
    if (lr_events_read(&source, NULL, NULL) != fuzz_status) abort();
    return 0;
}
