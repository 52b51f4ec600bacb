/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cpu/back.h"

struct gather {
    const double *data;
    double *image;
};

static lr_status take(void *user, struct lr_cpu *cpu, int64_t first, int num_rows)
{
    const struct gather *gather = user;
    for (int k = 0; k < num_rows; k++) {
        const struct lr_elements *row = &cpu->block[k];
        double sum = 0;
        for (int64_t n = 0; n < row->count; n++) sum += row->list[n].value * gather->data[row->list[n].lor];
        gather->image[first + k] = sum;
    }
    return LR_OK;
}

lr_status lr_cpu_back(struct lr_cpu *cpu, const double *data, double *image)
{
    struct gather gather = {data, image};
    const struct lr_rows rows = lr_cpu_grid_rows(cpu);
    const struct lr_cpu_walk walk = {.what = "back-projecting", .take = take, .user = &gather};
    return lr_cpu_each_block(cpu, &rows, &walk);
}
