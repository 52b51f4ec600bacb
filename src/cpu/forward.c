/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cpu/forward.h"

#include "base/parallel.h"

#include <string.h>

struct shoot {
    struct lr_cpu *cpu;
    const double *image;
    double *data;
    int64_t first;
    int num_rows;
};

/* LORs begin <= lor < end belong to one worker, which adds all rows in order. */
static void add_rows(void *user, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    const struct shoot *shoot = user;
    for (int k = 0; k < shoot->num_rows; k++) {
        const struct lr_elements *row = &shoot->cpu->block[k];
        const double value = shoot->image[shoot->first + k];
        for (int64_t n = lr_elements_find(row, begin); n < row->count && row->list[n].lor < end; n++)
            shoot->data[row->list[n].lor] += row->list[n].value * value;
    }
}

static lr_status take(void *user, struct lr_cpu *cpu, int64_t first, int num_rows)
{
    struct shoot *shoot = user;
    shoot->first = first;
    shoot->num_rows = num_rows;
    const int64_t num_lors = cpu->scene.params.lors->count;
    lr_parallel_for(cpu->num_workers, num_lors, num_lors / cpu->num_workers + 1, add_rows, shoot);
    return LR_OK;
}

lr_status lr_cpu_forward(struct lr_cpu *cpu, const double *image, double *data)
{
    struct shoot shoot = {.cpu = cpu, .image = image, .data = data};
    const struct lr_rows rows = lr_cpu_grid_rows(cpu);
    const struct lr_cpu_walk walk = {"projecting", image, take, &shoot};
    memset(data, 0, (size_t)cpu->scene.params.lors->count * sizeof(*data));
    return lr_cpu_each_block(cpu, &rows, &walk);
}
