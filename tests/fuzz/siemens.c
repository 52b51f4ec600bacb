/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are words of Siemens list mode or one sentence about bad input; the
 * header is a good one (siemens_header.c has others). */
#include "files.h"

static const char header[] =
    "!INTERFILE:=\ndata format := CoincidenceList\nnumber of rings:=4\n%number of projections:=20\n"
    "%number of views := 16\n%maximum ring difference:=2\n%axial_compression:=1\n"
    "%LM event and tag words format (bits):=32\n";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const char *text = fuzz_file("a.l.hdr", header, strlen(header)), *words = fuzz_file("a.l", bytes, count);
    lr_events_source source = {.path = words, .format = LR_EVENTS_SIEMENS, .companion = text};
    source.scanner = fuzz_ring(FUZZ_OCTAGON);
    return fuzz_events(source);
}
