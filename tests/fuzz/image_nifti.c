/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are a NIfTI image, compressed or not, or one sentence about bad input. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const bool packed = count > 1 && bytes[0] == 0x1f && bytes[1] == 0x8b;
    return fuzz_image(packed ? "a.nii.gz" : "a.nii", bytes, count);
}
