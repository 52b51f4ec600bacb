/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are PETSIRD events and a scanner, or one sentence about bad input.
 * Half of the inputs get magic, version and the schema v0.9.1 put before them, so that what stands
 * behind it is reached. Not part of CTest: as tests/fuzz/scanner_yaml.c; run it on PETSIRD files. */
#include "io/events/petsird.h"

#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const char *schema = lr_petsird_schema_text("0.9.1"), *path;
    const unsigned length = (unsigned)strlen(schema); /* two digits in base 128 */
    if (count > 0 && bytes[0] % 2 == 0 && bytes[0] != 'y') {
        const uint8_t begin[11] = {
            'y', 'a', 'r', 'd', 'l', 1, 0, 0, 0, (uint8_t)(length % 128 + 128), (uint8_t)(length / 128)};
        uint8_t *whole = malloc(sizeof(begin) + length + count);
        if (whole == NULL) abort();
        memcpy(whole, begin, sizeof(begin));
        memcpy(whole + sizeof(begin), schema, length);
        memcpy(whole + sizeof(begin) + length, bytes + 1, count - 1);
        path = fuzz_file("a.petsird", whole, sizeof(begin) + length + count - 1);
        free(whole);
    } else {
        path = fuzz_file("a.petsird", bytes, count);
    }
    fuzz_events((lr_events_source){.path = path, .format = LR_EVENTS_PETSIRD});
    fuzz_status = LR_OK;
    return fuzz_scanner(lr_scanner_read(path, &fuzz_log));
}
