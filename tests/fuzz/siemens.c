/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are words of Siemens list mode or one sentence about bad input; the
 * header is a good one (siemens_header.c has others). */
#include "files.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static const char header[] = "!INTERFILE:=\n"
                             "data format := CoincidenceList\n"
                             "number of rings:=4\n"
                             "%number of projections:=20\n"
                             "%number of views := 16\n"
                             "%maximum ring difference:=2\n"
                             "%axial_compression:=1\n"
                             "%LM event and tag words format (bits):=32\n";

static lr_status drop(void *user, const lr_event *events, int64_t count)
{
    (void)events;
    *(int64_t *)user += count;
    return LR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static lr_scanner *scanner;
    char words[64], text[64];
    lr_status status = LR_OK;
    int64_t events = 0;
    const lr_log log = {fuzz_note, &status};
    const lr_event_sink sink = {.take = drop, .user = &events};
    scanner = scanner != NULL ? scanner : fuzz_octagon();
    fuzz_write(text, "a.l.hdr", (const uint8_t *)header, strlen(header));
    fuzz_write(words, "a.l", bytes, count);
    const lr_events_source source = {
        .path = words, .format = LR_EVENTS_SIEMENS, .companion = text, .scanner = scanner, .log = &log};
    fuzz_expect(lr_events_read(&source, &sink, NULL) == LR_OK, status);
    return 0;
}
