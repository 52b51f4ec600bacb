/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are measured profiles or one sentence about bad input. */
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[64];
    lr_status status = LR_OK;
    const lr_log log = {fuzz_note, &status};
    const lr_grid grid = lr_grid_centred((const int[3]){9, 9, 9}, (const double[3]){4, 4, 4});
    lr_radial_profiles profiles;
    fuzz_write(path, "profiles.yaml", bytes, count);
    if (lr_radial_profiles_read(path, &profiles, &log) != LR_OK) {
        if (status != LR_BAD_INPUT) abort();
        return 0;
    }
    const lr_resolution resolution = {.tof_ps = 40, .model = LR_RADIAL_MEASURED, .axial_mm = 4, .measured = &profiles};
    lr_direct_tables *tables = lr_direct_tables_create(
        &(lr_direct_tables_params){.grid = &grid, .kernel = {.resolution = resolution}, .log = &log});
    if (tables == NULL && status == LR_OK) abort();
    lr_direct_tables_destroy(tables);
    lr_radial_profiles_finish(&profiles);
    return 0;
}
