/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are STIR's projection data for a small ring or one sentence about bad
 * input. The bytes are the header, the bins where it names "data", and the crystal map where it
 * names that. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static lr_lors *lors;
    const char *ring = "name: ring\nring: {radius_mm: 20, modules: 8, first_angle_deg: 90}\n"
                       "module: {crystals: [2, 2], pitch_mm: [4, 4], face_mm: [4, 4], depth_mm: 10}\n";
    if (lors == NULL && (lors = lr_lors_create(fuzz_ring(ring), NULL)) == NULL) abort();
    fuzz_file("data", bytes, count);
    lr_lor_data *data = lr_lor_data_read(fuzz_file("a.hs", bytes, count), lors, &fuzz_log);
    if (data == NULL && fuzz_status != LR_BAD_INPUT) abort();
    lr_lor_data_destroy(data);
    return 0;
}
