/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are a header of Siemens list mode or one sentence about bad input. */
#include "io/events/siemens_header.h"
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[64];
    lr_status status = LR_OK;
    const lr_log log = {fuzz_note, &status};
    struct lr_siemens_header header;
    fuzz_write(path, "a.hdr", bytes, count);
    if (lr_siemens_header_read(path, "a.l", &header, &log) != status) abort();
    lr_siemens_header_finish(&header);
    return 0;
}
