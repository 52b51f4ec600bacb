/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are histo-images, or one sentence about bad input. */
#include "files.h"

#include <lr/direct.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    lr_histo_images *histo = lr_histo_images_read(fuzz_file("histo.h5", bytes, count), &fuzz_log);
    fuzz_expect(histo != NULL);
    lr_histo_images_destroy(histo);
    return 0;
}
