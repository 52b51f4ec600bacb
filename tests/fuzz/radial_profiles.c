/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are measured profiles or one sentence about bad input. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const lr_grid grid = lr_grid_centred((const int[3]){9, 9, 9}, (const double[3]){4, 4, 4});
    lr_radial_profiles profiles;
    if (lr_radial_profiles_read(fuzz_file("profiles.yaml", bytes, count), &profiles, &fuzz_log) != LR_OK) {
        if (fuzz_status != LR_BAD_INPUT) abort();
        return 0;
    }
    const lr_resolution resolution = {.tof_ps = 40, .model = LR_RADIAL_MEASURED, .axial_mm = 4, .measured = &profiles};
    lr_direct_tables *tables = lr_direct_tables_create(
        &(lr_direct_tables_params){.grid = &grid, .kernel = {.resolution = resolution}, .log = &fuzz_log});
    if (tables == NULL && fuzz_status == LR_OK) abort();
    lr_direct_tables_destroy(tables);
    lr_radial_profiles_finish(&profiles);
    return 0;
}
