/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are notes of an earlier run, or none. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "io/files/notes.h"
#include "files.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[64];
    lr_status status = LR_OK;
    const lr_log log = {fuzz_note, &status};
    struct lr_note notes[2] = {{.key = "a b"}, {.key = "speed"}};
    fuzz_write(path, "speeds.txt", bytes, count);
    *strrchr(path, '/') = '\0';
    setenv("LORASTER_CACHE", path, 1);
    lr_notes_find(notes, 2, &log);
    for (int k = 0; k < 2; k++)
        if (notes[k].is_known && !(notes[k].value > 0 && notes[k].value < LR_NOTE_LARGEST)) abort();
    lr_notes_keep(&(struct lr_note){"speed", 2.0, true}, 1, &log);
    lr_notes_find(notes, 2, &log);
    if (status != LR_OK || !notes[1].is_known || !(notes[1].value >= 2.0 && notes[1].value <= 2.0)) abort();
    return 0;
}
