/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/columns.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)LR_CUDA_OUTPUTS == (int)LR_LATTICE_OUTPUTS && (int)LR_CUDA_CLASSES == (int)LR_LATTICE_CLASSES,
               "the device's numbers are the lattice's");

enum { MOST_NEXT = 2 }; /* of the lattice's directions */

void lr_cuda_column_margins(const struct lr_direct_shape *shape, int margin[3])
{
    const int beyond = (LR_CUDA_OUTPUTS - 1) * MOST_NEXT;
    margin[0] = shape->info.half[2] / 4 + 1 + (LR_CUDA_SLICES + LR_LATTICE_TAPS + 3) / 4;
    margin[1] = shape->info.half[0] + beyond;
    margin[2] = shape->info.half[1] + beyond;
}

static lr_cuda_column_step make_step(const struct lr_lattice_step *from, const lr_cuda_layout *layout, int64_t weights)
{
    const int *extent = layout->extent;
    const int map = from->column[0] + extent[1] * from->column[1];
    return (lr_cuda_column_step){
        .source = from->quad + extent[0] * map, .weights = (int32_t)weights, .mask = from->mask, .map = map};
}

static lr_status list_steps(struct lr_cuda_column_plan *plan, const struct lr_lattice *lattice, const lr_log *log)
{
    const int rows = plan->pass.num_rows;
    plan->steps = lr_alloc(lattice->count, sizeof(*plan->steps), "steps of a view", log);
    plan->indices = lr_alloc((int64_t)lattice->count * LR_CUDA_OUTPUTS, LR_LATTICE_TAPS * sizeof(*plan->indices),
                             "steps of a view", log);
    if (plan->steps == NULL || plan->indices == NULL) return LR_FAILED;
    for (int k = 0; k < lattice->count; k++) {
        const struct lr_lattice_step *step = &lattice->steps[k];
        plan->steps[k] = make_step(step, &plan->pass.layout, plan->num_weights);
        plan->num_weights += step->taps == 1 ? (LR_CUDA_OUTPUTS * rows + 3) / 4 : LR_CUDA_OUTPUTS * rows;
        memcpy(plan->indices + (int64_t)k * LR_CUDA_OUTPUTS * LR_LATTICE_TAPS, step->offsets, sizeof(step->offsets));
    }
    return plan->num_weights <= INT32_MAX
               ? LR_OK
               : lr_error(log, LR_FAILED,
                          "the weights of a view take %lld GiB: take a larger epsilon, a smaller "
                          "support or backend cpu",
                          (long long)(plan->num_weights >> 26));
}

lr_status lr_cuda_column_plan_init(struct lr_cuda_column_plan *plan, const struct lr_direct_shape *shape,
                                   const lr_cuda_layout *layout, int rows, const lr_log *log)
{
    struct lr_lattice lattice;
    int most[2];
    *plan = (struct lr_cuda_column_plan){.pass = {.layout = *layout, .num_rows = rows}};
    LR_TRY(lr_lattice_init(&lattice, shape, log));
    lr_cuda_columns *pass = &plan->pass;
    memcpy(pass->first, lattice.first, sizeof(pass->first));
    lr_lattice_range(&lattice, layout->size, pass->least, most);
    for (int k = 0; k < 2; k++) {
        pass->next[k] = lattice.next[k];
        pass->across[k] = lattice.across[k];
        pass->num_places[k] = most[k] - pass->least[k] + 1;
    }
    const lr_status status = list_steps(plan, &lattice, log);
    lr_lattice_finish(&lattice);
    if (status != LR_OK) lr_cuda_column_plan_finish(plan);
    return status;
}

void lr_cuda_column_plan_finish(struct lr_cuda_column_plan *plan)
{
    free(plan->indices);
    free(plan->steps);
    *plan = (struct lr_cuda_column_plan){0};
}
