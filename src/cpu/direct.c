/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The cpu backend of the family `direct`: the gathers of figure 2 of paper 1 (lr/direct.h), voxel by
 * voxel, in double. */
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "direct/views.h"

#include <stdio.h>
#include <stdlib.h>

struct direct_cpu {
    struct lr_direct_backend_params params;
    struct lr_direct_views views;
    lr_direct_tables **tables; /* [num_views], made when first used; NULL = not kept */
    int64_t bytes_kept;
};

/* One projection. */
struct gather {
    const struct lr_direct_backend_params *params;
    const lr_direct_tables *tables;
    const double *source;
    double *target;
};

static int64_t table_bytes(const lr_direct_tables *tables)
{
    const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
    return info->num_offsets * (info->num_kernels * (int64_t)sizeof(double) + 12) +
           (int64_t)info->grid.size[0] * info->grid.size[1] * 4;
}

/* Row of the voxel at an offset from (x, y, z), or -1 beyond the grid. */
static int64_t neighbour(const lr_grid *grid, const int at[3], const int32_t offset[3])
{
    int64_t row = 0;
    for (int k = 2; k >= 0; k--) {
        const int index = at[k] + offset[k];
        if (index < 0 || index >= grid->size[k]) return -1;
        row = row * grid->size[k] + index;
    }
    return row;
}

static double gather_back(const struct gather *gather, const int at[3])
{
    const lr_grid *grid = &gather->params->grid;
    const lr_direct_tables *tables = gather->tables;
    const int64_t count = lr_direct_tables_get_info(tables)->num_offsets;
    const int32_t(*offsets)[3] = lr_direct_tables_offsets(tables);
    const int32_t *map = lr_direct_tables_map(tables);
    const double *values = lr_direct_tables_values(tables, map[at[0] + (int64_t)grid->size[0] * at[1]]);
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = neighbour(grid, at, offsets[i]);
        sum += row >= 0 ? values[i] * gather->source[row] : 0;
    }
    return sum;
}

static double gather_forward(const struct gather *gather, const int at[3])
{
    const lr_grid *grid = &gather->params->grid;
    const lr_direct_tables *tables = gather->tables;
    const int64_t count = lr_direct_tables_get_info(tables)->num_offsets;
    const int64_t slice = (int64_t)grid->size[0] * grid->size[1];
    const int32_t(*offsets)[3] = lr_direct_tables_offsets(tables);
    const int32_t *map = lr_direct_tables_map(tables);
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = neighbour(grid, at, offsets[i]);
        if (row >= 0) {
            const double *values = lr_direct_tables_values(tables, map[row % slice]);
            sum += values[count - 1 - i] * gather->source[row];
        }
    }
    return sum;
}

static void gather_lines(const struct gather *gather, int64_t begin, int64_t end,
                         double (*voxel)(const struct gather *, const int[3]))
{
    const int *size = gather->params->grid.size;
    for (int64_t line = begin; line < end; line++) {
        int at[3] = {0, (int)(line % size[1]), (int)(line / size[1])};
        for (at[0] = 0; at[0] < size[0]; at[0]++) gather->target[line * size[0] + at[0]] = voxel(gather, at);
    }
}

static void back_lines(void *user, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    gather_lines(user, begin, end, gather_back);
}

static void forward_lines(void *user, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    gather_lines(user, begin, end, gather_forward);
}

static lr_direct_tables *open_tables(struct direct_cpu *cpu, int view)
{
    if (cpu->tables[view] != NULL) return cpu->tables[view];
    lr_direct_tables *tables = lr_direct_tables_create(&(lr_direct_tables_params){.grid = &cpu->params.grid,
                                                                                  .view = cpu->params.views[view],
                                                                                  .kernel = cpu->params.kernel,
                                                                                  .log = cpu->params.log});
    if (tables != NULL && cpu->bytes_kept + table_bytes(tables) <= cpu->params.max_memory_bytes) {
        cpu->tables[view] = tables;
        cpu->bytes_kept += table_bytes(tables);
    }
    return tables;
}

static lr_status project(void *self, const struct lr_direct_projection *projection)
{
    struct direct_cpu *cpu = self;
    const int view = projection->view, *size = cpu->params.grid.size;
    lr_direct_tables *tables = open_tables(cpu, view);
    struct gather gather = {
        .params = &cpu->params, .tables = tables, .source = projection->in, .target = projection->out};
    if (tables == NULL) return LR_FAILED;
    lr_parallel_for(cpu->params.threads, (int64_t)size[1] * size[2], 4,
                    projection->is_forward ? forward_lines : back_lines, &gather);
    if (cpu->tables[view] == NULL) lr_direct_tables_destroy(tables);
    return LR_OK;
}

static lr_status forward(void *self, const lr_selection *part, const lr_vector *image, lr_vector *values)
{
    return lr_direct_views_forward(&((struct direct_cpu *)self)->views, part, image, values);
}

static lr_status back(void *self, const lr_selection *part, const lr_vector *values, lr_vector *image)
{
    return lr_direct_views_back(&((struct direct_cpu *)self)->views, part, values, image);
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    return lr_direct_views_rows(&((struct direct_cpu *)self)->views, wanted, sink);
}

static void destroy(void *self)
{
    struct direct_cpu *cpu = self;
    for (int view = 0; cpu->tables != NULL && view < cpu->params.num_views; view++)
        lr_direct_tables_destroy(cpu->tables[view]);
    free(cpu->tables);
    lr_direct_views_finish(&cpu->views);
    free(cpu);
}

lr_status lr_direct_cpu_create(const struct lr_direct_backend_params *params, struct lr_direct_backend *backend)
{
    static const struct lr_backend_fns fns = {.name = "cpu",
                                              .computes_in_double = true,
                                              .has_parts = true,
                                              .forward = forward,
                                              .back = back,
                                              .rows = rows,
                                              .destroy = destroy};
    struct direct_cpu *cpu = lr_alloc(1, sizeof(*cpu), "the cpu backend", params->log);
    if (cpu == NULL) return LR_FAILED;
    cpu->params = *params;
    if (cpu->params.max_memory_bytes == 0) cpu->params.max_memory_bytes = lr_physical_memory() / 4;
    cpu->views = (struct lr_direct_views){.params = &cpu->params, .in_double = true, .project = project, .self = cpu};
    cpu->tables = lr_alloc(params->num_views, sizeof(lr_direct_tables *), "look-up tables", params->log);
    if (cpu->tables == NULL || lr_direct_views_init(&cpu->views) != LR_OK) {
        destroy(cpu);
        return LR_FAILED;
    }
    *backend = (struct lr_direct_backend){.common = {.fns = &fns, .self = cpu}};
    snprintf(backend->common.device, sizeof(backend->common.device), "CPU, %d thread%s", params->threads,
             params->threads == 1 ? "" : "s");
    return LR_OK;
}
