/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The cpu backend of the family `direct`. It computes the sums over voxels of paper 1, figure 2 (lr/direct.h), voxel by
 * voxel in double. It also deposits list-mode events in histo-images, one after the other (paper 1, sections 1 and
 * 6.1). */
#include "direct/backend.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/vec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct direct_cpu {
    struct lr_direct_backend_params params;
    struct lr_direct_views views;
    lr_direct_tables **tables; /* [num_views] tables, each made at its first use; NULL = tables are not kept */
    int64_t bytes_kept;
};

/* One projection. */
struct gather {
    const struct lr_direct_backend_params *params;
    const lr_direct_tables *tables;
    bool is_forward;
    const double *source;
    double *target;
};

/* Computes some image lines along x. Each voxel is a weighted sum over the voxels around it. A back-projection takes
 * the weights of this voxel; a forward projection takes the mirrored weights of the voxels around it. */
static void gather_lines(void *user, int64_t begin, int64_t end)
{
    const struct gather *gather = user;
    const lr_direct_tables *tables = gather->tables;
    const bool is_forward = gather->is_forward;
    const int *size = gather->params->grid.size;
    const int64_t count = lr_direct_tables_get_info(tables)->num_offsets, slice = (int64_t)size[0] * size[1];
    const int32_t(*offsets)[3] = lr_direct_tables_offsets(tables);
    const int32_t *map = lr_direct_tables_map(tables);
    for (int64_t voxel = begin * size[0]; voxel < end * size[0]; voxel++) {
        const int at[3] = {(int)(voxel % size[0]), (int)(voxel / size[0] % size[1]), (int)(voxel / slice)};
        const double *values = lr_direct_tables_values(tables, map[voxel % slice]);
        double sum = 0;
        for (int64_t i = 0; i < count; i++) {
            bool is_inside = true;
            int64_t row = 0;
            for (int k = 2; k >= 0 && is_inside; k--) {
                const int index = at[k] + offsets[i][k];
                is_inside = index >= 0 && index < size[k];
                row = row * size[k] + index;
            }
            if (!is_inside) continue;
            if (is_forward) values = lr_direct_tables_values(tables, map[row % slice]);
            sum += values[is_forward ? count - 1 - i : i] * gather->source[row];
        }
        gather->target[voxel] = sum;
    }
}

static lr_status project(void *self, const struct lr_direct_projection *projection)
{
    struct direct_cpu *cpu = self;
    const int view = projection->view, *size = cpu->params.grid.size;
    lr_direct_tables *tables = cpu->tables[view];
    if (tables == NULL) {
        tables = lr_direct_tables_create(&(lr_direct_tables_params){.grid = &cpu->params.grid,
                                                                    .view = cpu->params.views[view],
                                                                    .kernel = cpu->params.kernel,
                                                                    .log = cpu->params.log});
        if (tables == NULL) return LR_FAILED;
        const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
        const int64_t bytes = info->num_offsets * (info->num_kernels * (int64_t)sizeof(double) + 12) +
                              (int64_t)info->grid.size[0] * info->grid.size[1] * 4;
        if (cpu->bytes_kept + bytes <= cpu->params.max_memory_bytes) {
            cpu->tables[view] = tables;
            cpu->bytes_kept += bytes;
        }
    }

    struct gather gather = {.params = &cpu->params,
                            .tables = tables,
                            .is_forward = projection->is_forward,
                            .source = projection->in,
                            .target = projection->out};
    lr_parallel_for(cpu->params.threads, (int64_t)size[1] * size[2], 4, gather_lines, &gather);
    if (cpu->tables[view] == NULL) lr_direct_tables_destroy(tables);
    return LR_OK;
}

static void destroy(void *self)
{
    struct direct_cpu *cpu = ((struct lr_direct_views *)self)->self;
    for (int view = 0; cpu->tables != NULL && view < cpu->params.num_views; view++)
        lr_direct_tables_destroy(cpu->tables[view]);
    free(cpu->tables);
    lr_direct_views_finish(&cpu->views);
    free(cpu);
}

lr_status lr_direct_cpu_create(const struct lr_direct_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {.name = "cpu",
                                              .computes_in_double = true,
                                              .has_parts = true,
                                              .project = lr_direct_views_project,
                                              .rows = lr_direct_views_rows,
                                              .destroy = destroy};
    struct direct_cpu *cpu = lr_alloc(1, sizeof(*cpu), "the cpu backend", params->log);
    if (cpu == NULL) return LR_FAILED;
    cpu->params = *params;
    if (cpu->params.max_memory_bytes == 0) cpu->params.max_memory_bytes = lr_physical_memory() / 4;
    cpu->views = (struct lr_direct_views){.params = &cpu->params, .in_double = true, .project = project, .self = cpu};
    cpu->tables = lr_alloc(params->num_views, sizeof(lr_direct_tables *), "look-up tables", params->log);
    if (cpu->tables == NULL || lr_direct_views_init(&cpu->views) != LR_OK) {
        destroy(&cpu->views);
        return LR_FAILED;
    }
    lr_backend_on_host(backend, &fns, &cpu->views, params->threads, NULL);
    return LR_OK;
}

struct cpu_deposit {
    struct lr_deposit_backend_params params;
    lr_deposit_counts counts;
};

/* Returns the row of a voxel. An index outside the grid is replaced by the nearest one inside. */
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

        /* The TOF bin is divided into parts of equal weight. */
        float *histo = params->images->values + view * lr_grid_num_voxels(grid);
        const float weight = event->weight / (float)params->parts;
        int num_inside = 0;
        for (int part = 0; part < params->parts; part++) {
            const double off_mm = ((part + 0.5) / params->parts - 0.5) * params->bin_mm;
            const double tof_mm = (double)event->tof_mm + off_mm;
            double point_mm[3], place[3]; /* point in mm, and relative to the centre of voxel (0, 0, 0) in voxels */
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
            for (int corner = 0; corner < 8; corner++) { /* trilinear weights of the voxels around the point */
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
