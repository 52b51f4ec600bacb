/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "native/listmode/kernels.h"

const struct lr_native_listmode_kernels *lr_native_listmode_kernels_at(int index)
{
#ifdef LR_NATIVE_AVX2
    if (__builtin_cpu_supports("avx2"))
        return index == 0 ? &lr_native_listmode_avx2 : index == 1 ? &lr_native_listmode_baseline : NULL;
#endif
    return index == 0 ? &lr_native_listmode_baseline : NULL;
}
