/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Deposition of list-mode events in histo-images, in double, one event after the other (paper 1 of lr/direct.h,
 * sections 1 and 6.1). */
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "direct/backend.h"

#include <math.h>
#include <stdlib.h>

struct cpu_deposit {
    struct lr_deposit_backend_params params;
    lr_deposit_counts counts;
};

/* Row of a voxel. An index beyond the grid is replaced by the nearest one within the grid. */
static int64_t row_of(const lr_grid *grid, const int index[3])
{
    int64_t row = 0;
    for (int k = 2; k >= 0; k--) {
        const int last = grid->size[k] - 1;
        row = row * grid->size[k] + (index[k] < 0 ? 0 : index[k] > last ? last : index[k]);
    }
    return row;
}

static lr_status take(void *self, const lr_event *events, int64_t count)
{
    struct cpu_deposit *deposit = self;
    const struct lr_deposit_backend_params *params = &deposit->params;
    const lr_grid *grid = &params->images->grid;
    for (int64_t n = 0; n < count; n++) {
        const lr_event *event = &events[n];
        double a_mm[3], along[3];
        lr_scanner_hit_centre(params->scanner, event->crystals[0], a_mm);
        lr_scanner_hit_centre(params->scanner, event->crystals[1], along);
        vec_sub(along, a_mm, along);
        const double length_mm = vec_length(along);
        const int view = length_mm > 0 ? lr_view_set_find(&params->set, along) : -1;
        if (view < 0) {
            deposit->counts.too_tilted++;
            continue;
        }

        /* The time bin is divided into parts of equal weight. */
        float *histo = params->images->values + view * lr_grid_num_voxels(grid);
        const float weight = event->weight / (float)params->parts;
        int num_inside = 0;
        for (int part = 0; part < params->parts; part++) {
            const double off_mm = ((part + 0.5) / params->parts - 0.5) * params->bin_mm;
            const double tof_mm = (double)event->tof_mm + off_mm;
            double point_mm[3], place[3]; /* place: relative to the centre of voxel (0, 0, 0), in voxels */
            vec_add_scaled(a_mm, 0.5 + tof_mm / length_mm, along, point_mm);
            bool is_inside = true;
            for (int k = 0; k < 3; k++) {
                place[k] = (point_mm[k] - grid->origin_mm[k]) / grid->voxel_mm[k];
                is_inside = is_inside && place[k] >= -0.5 && place[k] < grid->size[k] - 0.5;
            }
            if (!is_inside) continue;
            num_inside++;
            if (params->rule == LR_DEPOSIT_NEAREST) {
                const int nearest[3] = {(int)floor(place[0] + 0.5), (int)floor(place[1] + 0.5),
                                        (int)floor(place[2] + 0.5)};
                histo[row_of(grid, nearest)] += weight;
                continue;
            }
            for (int corner = 0; corner < 8; corner++) { /* trilinear shares of the voxels around the point */
                double share = (double)weight;
                int index[3];
                for (int k = 0; k < 3; k++) {
                    const int upper = corner >> k & 1;
                    const double low = floor(place[k]), within = place[k] - low;
                    index[k] = (int)low + upper;
                    share *= upper ? within : 1 - within;
                }
                histo[row_of(grid, index)] += (float)share;
            }
        }
        deposit->counts.deposited += num_inside > 0;
        deposit->counts.outside_grid += num_inside == 0;
        deposit->counts.weight += (double)num_inside * (double)weight;
    }
    return LR_OK;
}

static lr_status finish(void *self, lr_deposit_counts *counts)
{
    *counts = ((const struct cpu_deposit *)self)->counts;
    return LR_OK;
}

lr_status lr_deposit_cpu_create(const struct lr_deposit_backend_params *params, struct lr_deposit_backend *backend)
{
    static const struct lr_deposit_backend_fns fns = {.name = "cpu", .take = take, .finish = finish, .destroy = free};
    struct cpu_deposit *deposit = lr_alloc(1, sizeof(*deposit), "a deposition", params->log);
    if (deposit == NULL) return LR_FAILED;
    deposit->params = *params;
    *backend = (struct lr_deposit_backend){.fns = &fns, .self = deposit, .device = "CPU"};
    return LR_OK;
}
