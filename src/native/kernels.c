/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "native/kernels.h"

#include "native/kernels_list.h"

const struct lr_native_kernels *lr_native_kernels_at(int index)
{
#ifdef LR_NATIVE_AVX2
    if (__builtin_cpu_supports("avx2"))
        return index == 0 ? &lr_native_kernels_avx2 : index == 1 ? &lr_native_kernels_baseline : NULL;
#endif
    return index == 0 ? &lr_native_kernels_baseline : NULL;
}

int64_t lr_native_max_slots(const struct lr_native_scene *scene)
{
    int64_t cells = 0;
    for (int m = 0; m < scene->params.scanner->num_modules; m++)
        cells = scene->modules[m].num_cells > cells ? scene->modules[m].num_cells : cells;
    const int64_t lanes = cells + LR_NATIVE_LANES;
    const int64_t turns = scene->params.mode == LR_MODE_EXACT ? cells : scene->params.rays;
    const int64_t bent = lanes * turns;
    const int64_t flat = 2 * cells * (LR_NATIVE_MAX_PARTS + 1) + LR_NATIVE_LANES;
    return bent > flat ? bent : flat;
}
