/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are histo-images, or one sentence about bad input. */
#include "files.h"

#include <lr/direct.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[64];
    lr_status status = LR_OK;
    const lr_log log = {fuzz_note, &status};
    fuzz_write(path, "histo.h5", bytes, count);
    lr_histo_images *histo = lr_histo_images_read(path, &log);
    fuzz_expect(histo != NULL, status);
    lr_histo_images_destroy(histo);
    return 0;
}
