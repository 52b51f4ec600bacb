/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * List-mode events into histo-images in double, one after the other (paper 1 of lr/direct.h, sections
 * 1 and 6.1). */
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

/* Coordinates in voxels from the centre of voxel (0, 0, 0). False if the point is outside the grid. */
static bool find_place(const lr_grid *grid, const double point_mm[3], double place[3])
{
    bool inside = true;
    for (int k = 0; k < 3; k++) {
        place[k] = (point_mm[k] - grid->origin_mm[k]) / grid->voxel_mm[k];
        inside = inside && place[k] >= -0.5 && place[k] < grid->size[k] - 0.5;
    }
    return inside;
}

static int64_t row_of(const lr_grid *grid, const int index[3])
{
    int64_t row = 0;
    for (int k = 2; k >= 0; k--) {
        const int last = grid->size[k] - 1;
        row = row * grid->size[k] + (index[k] < 0 ? 0 : index[k] > last ? last : index[k]);
    }
    return row;
}

static void add_nearest(const lr_grid *grid, const double place[3], float weight, float *histo)
{
    const int index[3] = {(int)floor(place[0] + 0.5), (int)floor(place[1] + 0.5), (int)floor(place[2] + 0.5)};
    histo[row_of(grid, index)] += weight;
}

static void add_trilinear(const lr_grid *grid, const double place[3], float weight, float *histo)
{
    for (int corner = 0; corner < 8; corner++) {
        double share = (double)weight;
        int index[3];
        for (int k = 0; k < 3; k++) {
            const int upper = corner >> k & 1;
            const double low = floor(place[k]), part = place[k] - low;
            index[k] = (int)low + upper;
            share *= upper ? part : 1 - part;
        }
        histo[row_of(grid, index)] += (float)share;
    }
}

static void deposit_event(struct cpu_deposit *deposit, const lr_event *event)
{
    const struct lr_deposit_backend_params *params = &deposit->params;
    const lr_histo_images *images = params->images;
    double a_mm[3], along[3], point_mm[3], place[3];
    lr_scanner_hit_centre(params->scanner, event->crystals[0], a_mm);
    lr_scanner_hit_centre(params->scanner, event->crystals[1], along);
    vec_sub(along, a_mm, along);
    const double length_mm = vec_length(along);
    const int view = length_mm > 0 ? lr_view_set_find(&params->set, along) : -1;
    if (view < 0) {
        deposit->counts.too_tilted++;
        return;
    }
    float *histo = images->values + view * lr_grid_num_voxels(&images->grid);
    const float weight = event->weight / (float)params->parts;
    int inside = 0;
    for (int k = 0; k < params->parts; k++) {
        const double off_mm = ((k + 0.5) / params->parts - 0.5) * params->bin_mm;
        const double tof_mm = (double)event->tof_mm + off_mm;
        vec_add_scaled(a_mm, 0.5 + tof_mm / length_mm, along, point_mm);
        if (find_place(&images->grid, point_mm, place)) {
            (params->rule == LR_DEPOSIT_NEAREST ? add_nearest : add_trilinear)(&images->grid, place, weight, histo);
            inside++;
        }
    }
    deposit->counts.deposited += inside > 0;
    deposit->counts.outside_grid += inside == 0;
    deposit->counts.weight += (double)inside * (double)weight;
}

static lr_status take(void *self, const lr_event *events, int64_t count)
{
    for (int64_t k = 0; k < count; k++) deposit_event(self, &events[k]);
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
