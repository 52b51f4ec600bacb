/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/list_tables.h"

#include "base/log.h"

lr_status lr_cuda_place_columns(struct lr_cuda_memory *memory, const struct lr_cuda_column_plan *plan,
                                struct lr_cuda_tables *tables, const int32_t **indices)
{
    const int64_t steps = plan->pass.first[LR_CUDA_CLASSES];
    const lr_cuda_column_step *list = lr_cuda_place(memory, steps * (int64_t)sizeof(*plan->steps), plan->steps);
    *indices = lr_cuda_place(memory, steps * LR_CUDA_OUTPUTS * 4 * (int64_t)sizeof(**indices), plan->indices);
    for (int forward = 0; forward < 2; forward++) {
        lr_cuda_columns *pass = &tables->columns[forward];
        *pass = plan->pass;
        pass->steps = list;
        pass->map = tables->map;
        pass->weights = lr_cuda_place(memory, plan->num_weights * 4 * (int64_t)sizeof(float), NULL);
        if (list == NULL || *indices == NULL || pass->weights == NULL) return LR_FAILED;
    }
    return LR_OK;
}

lr_status lr_cuda_place_cloud(struct lr_cuda_memory *memory, const struct lr_cuda_cloud_tables *host,
                              struct lr_cuda_tables *tables)
{
    lr_cuda_cloud *pass = &tables->cloud;
    *pass = host->pass;
    pass->points = lr_cuda_place(memory, pass->num_points * 4 * (int64_t)sizeof(int32_t), host->points);
    pass->factors = lr_cuda_place(memory, pass->num_points * (int64_t)sizeof(float), host->factors);
    pass->profiles =
        lr_cuda_place(memory, (int64_t)pass->num_rows * pass->num_columns * (int64_t)sizeof(float), host->profiles);
    pass->shift = lr_cuda_place(memory, pass->layout.extent[1 + pass->along] * (int64_t)sizeof(int32_t), host->shift);
    return pass->points && pass->factors && pass->profiles && pass->shift ? LR_OK : LR_FAILED;
}
