/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are STIR's projection data for a small ring or one sentence about bad
 * input. The bytes are the header, the bins where it names "data", and the crystal map where it
 * names that. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static lr_lors *make_lors(void)
{
    const int crystals = 2;
    const lr_ring ring = {.radius_mm = 20,
                          .modules = 8,
                          .first_angle_deg = 90,
                          .block_crystals = {&crystals, &crystals},
                          .pitch_mm = {4, 4},
                          .face_mm = {4, 4},
                          .depth_mm = 10};
    const lr_scanner *scanner = lr_scanner_create_ring(&(lr_scanner_params){.name = "ring"}, &ring);
    return scanner != NULL ? lr_lors_create(scanner, NULL) : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static lr_lors *lors;
    char path[64];
    lr_status status = LR_OK;
    const lr_log log = {fuzz_note, &status};
    if (lors == NULL && (lors = make_lors()) == NULL) abort();
    fuzz_write(path, "data", bytes, count);
    fuzz_write(path, "a.hs", bytes, count);
    lr_lor_data *data = lr_lor_data_read(path, lors, &log);
    if (data == NULL && status != LR_BAD_INPUT) abort();
    lr_lor_data_destroy(data);
    return 0;
}
