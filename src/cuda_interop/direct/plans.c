/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/plans.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "direct/tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VIEWS_OF_THREAD = 10 }; /* minimum views of a thread, because threads start slowly */

/* --- one view --- */

static lr_status plan_view(struct lr_cuda_view_plan *plan, const struct lr_cuda_plan_params *params, int view,
                           const lr_log *log)
{
    const struct lr_direct_backend_params *backend = params->backend;
    *plan = (struct lr_cuda_view_plan){0};
    LR_TRY(lr_direct_shape_init(&plan->shape, &(lr_direct_tables_params){.grid = &backend->grid,
                                                                         .view = backend->views[view],
                                                                         .kernel = backend->kernel,
                                                                         .log = log}));
    plan->num_rows = lr_direct_count_rows(&plan->shape);
    const struct lr_direct_shape *shape = &plan->shape;
    const int64_t count = shape->info.num_offsets, rows = plan->num_rows;
    plan->offsets = lr_alloc(count, sizeof(*plan->offsets), "mSR", log);
    plan->kernels = lr_alloc(rows, sizeof(*plan->kernels), "kernels", log);
    plan->samples = lr_alloc(rows * lr_direct_count_samples(shape), sizeof(*plan->samples), "measured profiles", log);
    if (plan->offsets == NULL || plan->kernels == NULL || plan->samples == NULL) return LR_FAILED;
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < 3; k++) plan->offsets[i][k] = shape->offsets[i][k];
    for (int row = 0; row < rows; row++) lr_direct_describe_kernel(shape, row, plan->kernels[row]);
    lr_direct_list_samples(shape, plan->samples);

    switch (backend->variant) {
    case LR_DIRECT_BANDS:
        if (params->bands_work) {
            LR_TRY(lr_cuda_band_plan_init(&plan->bands, shape, &params->layout, plan->num_rows, log));
            plan->has_bands = lr_cuda_band_plan_fits(&plan->bands, params->shared_room);
        }
        plan->has_columns = !plan->has_bands; /* a slab may be too wide */
        break;
    case LR_DIRECT_COLUMNS: plan->has_columns = true; break;
    case LR_DIRECT_SHARED_MEMORY:
    case LR_DIRECT_TEXTURE_CACHE: plan->has_cloud = true; break;
    case LR_DIRECT_THREADS:
    case LR_DIRECT_INSTRUCTIONS:
    case LR_DIRECT_FASTEST: /* the backend has replaced it by another variant */ break;
    }
    return plan->has_columns ? lr_cuda_column_plan_init(&plan->columns, shape, &params->layout, plan->num_rows, log)
           : plan->has_cloud ? lr_cuda_cloud_init(&plan->cloud, shape, &params->layout, plan->num_rows, log)
                             : LR_OK;
}

/* --- several views --- */

/* The reason why a view failed. It is logged later, because views are planned in several threads, and a log accepts one
 * message at a time. */
struct reason {
    lr_status status;
    char message[512];
};

struct planning {
    struct lr_cuda_view_plan *plans;
    const struct lr_cuda_plan_params *params;
    const int *views;
    struct reason *reasons; /* reason of each view */
};

static void plan_views(void *user, int64_t begin, int64_t end, int worker)
{
    const struct planning *planning = user;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        struct reason *reason = &planning->reasons[k];
        struct lr_kept_error kept;
        lr_log_keep_error(&kept, reason->message, sizeof(reason->message));
        reason->status = plan_view(&planning->plans[k], planning->params, planning->views[k], &kept.log);
    }
}

lr_cuda_layout lr_cuda_layout_of(const struct lr_direct_compute *compute)
{
    const struct lr_direct_layout *from = &compute->layout;
    lr_cuda_layout layout = {.quads = from->quads};
    for (int k = 0; k < 3; k++) {
        layout.size[k] = from->size[k];
        layout.margin[k] = from->margin[k];
        layout.extent[k] = (k == 0 ? from->quads : from->size[k - 1]) + 2 * from->margin[k];
    }
    return layout;
}

lr_status lr_cuda_view_plans_init(struct lr_cuda_view_plan *plans, const struct lr_cuda_plan_params *params,
                                  const int *views, int num_views)
{
    const struct lr_direct_backend_params *backend = params->backend;
    struct planning planning = {.plans = plans,
                                .params = params,
                                .views = views,
                                .reasons = lr_alloc(num_views, sizeof(*planning.reasons), "plans", backend->log)};
    if (planning.reasons == NULL) return LR_FAILED;
    const int useful = (num_views + VIEWS_OF_THREAD - 1) / VIEWS_OF_THREAD;
    lr_parallel_for(backend->threads < useful ? backend->threads : useful, num_views, 1, plan_views, &planning);
    int failed = 0; /* the first view without a plan */
    while (failed < num_views && planning.reasons[failed].status == LR_OK) failed++;
    const struct reason *reason = &planning.reasons[failed];
    const lr_status status = failed < num_views ? lr_error(backend->log, reason->status, "%s", reason->message) : LR_OK;
    if (status != LR_OK) lr_cuda_view_plans_finish(plans, num_views);
    free(planning.reasons);
    return status;
}

void lr_cuda_view_plans_finish(struct lr_cuda_view_plan *plans, int num_views)
{
    for (int k = 0; k < num_views; k++) {
        struct lr_cuda_view_plan *plan = &plans[k];
        lr_cuda_cloud_finish(&plan->cloud);
        lr_cuda_column_plan_finish(&plan->columns);
        lr_cuda_band_plan_finish(&plan->bands);
        free(plan->samples);
        free(plan->kernels);
        free(plan->offsets);
        lr_direct_shape_finish(&plan->shape);
        *plan = (struct lr_cuda_view_plan){0};
    }
}

/* Distances of an offset in mm along the three axes of a view's kernel. */
static void distances(const struct lr_direct_shape *shape, const int32_t *offset, double along[3])
{
    const double *voxel_mm = shape->info.grid.voxel_mm;
    const double d[3] = {offset[0] * voxel_mm[0], offset[1] * voxel_mm[1], offset[2] * voxel_mm[2]};
    for (int k = 0; k < 3; k++) along[k] = vec_dot(d, shape->axes[k]);
}

/* --- cloud --- */

struct point {
    int32_t offset[3], column;
    double along, factor;
};

/* Sorts points along the line, then in the order of mSR. */
static int compare_points(const void *a, const void *b)
{
    const struct point *one = a, *other = b;
    if (one->along != other->along) return one->along < other->along ? -1 : 1;
    return memcmp(one->offset, other->offset, sizeof(one->offset));
}

/* Lists the points, sorted along the line, and their profiles. */
static lr_status make_cloud(struct lr_cuda_cloud_tables *tables, const struct lr_direct_shape *shape, const lr_log *log)
{
    lr_cuda_cloud *pass = &tables->pass;
    const lr_direct_tables_info *info = &shape->info;
    struct point *points = lr_alloc(info->num_offsets, sizeof(*points), "a cloud", log);
    double d[3];
    int column = -1; /* columns are numbered in the order of mSR, so that the last mirrors the first */
    for (int64_t i = 0; points != NULL && i < info->num_offsets; i++) {
        const int32_t *offset = shape->offsets[i];
        column += i == 0 || offset[0] != shape->offsets[i - 1][0] || offset[1] != shape->offsets[i - 1][1];
        distances(shape, offset, d);
        const double t = d[0] / info->sigma_mm[0], a = d[2] / info->sigma_mm[2];
        points[i] = (struct point){{offset[0], offset[1], offset[2]}, column, d[0], exp(-0.5 * (t * t + a * a))};
    }
    pass->num_columns = column + 1;
    pass->num_points = (int32_t)info->num_offsets;
    tables->points = lr_alloc(pass->num_points, sizeof(*tables->points), "a cloud", log);
    tables->factors = lr_alloc(pass->num_points, sizeof(*tables->factors), "a cloud", log);
    tables->profiles =
        lr_alloc((int64_t)pass->num_rows * pass->num_columns, sizeof(*tables->profiles), "profiles", log);
    const bool done = points && tables->points && tables->factors && tables->profiles;
    if (done) qsort(points, (size_t)pass->num_points, sizeof(*points), compare_points);
    for (int32_t i = 0; done && i < pass->num_points; i++) {
        memcpy(tables->points[i], points[i].offset, sizeof(points[i].offset));
        tables->points[i][3] = points[i].column;
        tables->factors[i] = (float)points[i].factor;
    }
    for (int row = 0; done && row < pass->num_rows; row++) {
        /* The first run sums the row's kernel over all points; the second divides the profile by this sum. */
        const double distance_mm = lr_direct_kernel_distance_mm(shape, row);
        const double side = lr_direct_kernel_is_mirrored(shape, row) ? -1 : 1;
        float *profile = tables->profiles + (int64_t)row * pass->num_columns;
        double sum = 0;
        for (int run = 0; run < 2; run++) {
            for (int32_t i = 0; i < pass->num_points; i++) {
                distances(shape, points[i].offset, d);
                const double value = lr_resolution_profile(&shape->resolution, distance_mm, side * d[1]);
                if (run == 0)
                    sum += value * points[i].factor;
                else
                    profile[points[i].column] = (float)(value / sum);
            }
        }
    }
    free(points);
    return done ? LR_OK : LR_FAILED;
}

lr_status lr_cuda_cloud_init(struct lr_cuda_cloud_tables *tables, const struct lr_direct_shape *shape,
                             const lr_cuda_layout *layout, int rows, const lr_log *log)
{
    *tables = (struct lr_cuda_cloud_tables){.pass = {.layout = *layout, .num_rows = rows}};

    /* The projection mask: lists run along the axis nearer to the line of response, and shift sideways as the line
     * does. */
    lr_cuda_cloud *pass = &tables->pass;
    const double *line = shape->axes[0];
    const double *voxel_mm = shape->info.grid.voxel_mm;
    pass->along = fabs(line[0]) * voxel_mm[1] >= fabs(line[1]) * voxel_mm[0] ? 0 : 1;
    const int a = pass->along, b = 1 - a, margin = layout->margin[1 + a];
    const double slope = line[b] / voxel_mm[b] / (line[a] / voxel_mm[a]);
    tables->shift = lr_alloc(layout->extent[1 + a], sizeof(*tables->shift), "a projection mask", log);
    if (tables->shift == NULL) {
        lr_cuda_cloud_finish(tables);
        return LR_FAILED;
    }
    int least = INT32_MAX, most = INT32_MIN;
    for (int k = 0; k < layout->extent[1 + a]; k++) {
        const int place = k - margin;
        tables->shift[k] = (int32_t)lround(place * slope);
        if (place >= 0 && place < layout->size[a]) {
            least = tables->shift[k] < least ? tables->shift[k] : least;
            most = tables->shift[k] > most ? tables->shift[k] : most;
        }
    }
    pass->least_list = -most;
    pass->num_lists = layout->size[b] + most - least;

    /* The largest distance of sources from outputs. */
    int lists = 0;
    for (int64_t i = 0; i < shape->info.num_offsets; i++) {
        const int32_t *d = shape->offsets[i];
        for (int place = 0; place < layout->size[a]; place++) {
            const int list = d[b] - tables->shift[place + d[a] + margin] + tables->shift[place + margin];
            lists = abs(list) > lists ? abs(list) : lists;
        }
    }
    pass->reach[0] = shape->info.half[a];
    pass->reach[1] = lists;
    pass->reach[2] = shape->info.half[2] / 4 + 1;
    const lr_status status = make_cloud(tables, shape, log);
    if (status != LR_OK) lr_cuda_cloud_finish(tables);
    return status;
}

void lr_cuda_cloud_finish(struct lr_cuda_cloud_tables *tables)
{
    free(tables->shift);
    free(tables->profiles);
    free(tables->factors);
    free(tables->points);
    *tables = (struct lr_cuda_cloud_tables){0};
}

_Static_assert((int)LR_CUDA_OUTPUTS == (int)LR_LATTICE_OUTPUTS && (int)LR_CUDA_CLASSES == (int)LR_LATTICE_CLASSES,
               "the device's numbers are the lattice's");

enum { MOST_NEXT = 2 }; /* largest number in the lattice's directions */

void lr_cuda_column_margins(const struct lr_direct_shape *shape, int margin[3])
{
    const int beyond = (LR_CUDA_OUTPUTS - 1) * MOST_NEXT;
    margin[0] = shape->info.half[2] / 4 + 1 + (LR_CUDA_SLICES + LR_LATTICE_TAPS + 3) / 4;
    margin[1] = shape->info.half[0] + beyond;
    margin[2] = shape->info.half[1] + beyond;
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

    plan->steps = lr_alloc(lattice.count, sizeof(*plan->steps), "steps of a view", log);
    plan->indices = lr_alloc((int64_t)lattice.count * LR_CUDA_OUTPUTS, LR_LATTICE_TAPS * sizeof(*plan->indices),
                             "steps of a view", log);
    lr_status status = plan->steps != NULL && plan->indices != NULL ? LR_OK : LR_FAILED;
    for (int k = 0; status == LR_OK && k < lattice.count; k++) {
        const struct lr_lattice_step *step = &lattice.steps[k];
        const int *extent = layout->extent;
        const int map = step->column[0] + extent[1] * step->column[1];
        plan->steps[k] = (lr_cuda_column_step){.source = step->quad + extent[0] * map,
                                               .weights = (int32_t)plan->num_weights,
                                               .mask = step->mask,
                                               .map = map};

        plan->num_weights += step->taps == 1 ? (LR_CUDA_OUTPUTS * rows + 3) / 4 : LR_CUDA_OUTPUTS * rows;
        memcpy(plan->indices + (int64_t)k * LR_CUDA_OUTPUTS * LR_LATTICE_TAPS, step->offsets, sizeof(step->offsets));
    }
    if (plan->num_weights > INT32_MAX) {
        status = lr_error(log, LR_FAILED,
                          "the weights of a view take %lld GiB: take a larger epsilon, a smaller "
                          "support or backend cpu",
                          (long long)(plan->num_weights >> 26));
    }
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
