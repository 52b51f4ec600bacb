/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/cloud.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "direct/resolution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void distances(const struct lr_direct_shape *shape, const int32_t *offset, double along[3])
{
    const double *voxel_mm = shape->info.grid.voxel_mm;
    const double d[3] = {offset[0] * voxel_mm[0], offset[1] * voxel_mm[1], offset[2] * voxel_mm[2]};
    for (int k = 0; k < 3; k++) along[k] = vec_dot(d, shape->axes[k]);
}

double lr_cuda_cloud_factor(const struct lr_direct_shape *shape, const int32_t offset[3])
{
    double d[3];
    distances(shape, offset, d);
    const double t = d[0] / shape->info.sigma_mm[0], a = d[2] / shape->info.sigma_mm[2];
    return exp(-0.5 * (t * t + a * a));
}

/* --- projection mask --- */

/* Lists go along the axis nearer to the line of response, and step aside where the line does. */
static lr_status make_mask(struct lr_cuda_cloud_tables *tables, const struct lr_direct_shape *shape, const lr_log *log)
{
    lr_cuda_cloud *pass = &tables->pass;
    const double *line = shape->axes[0];
    const double *voxel_mm = shape->info.grid.voxel_mm;
    pass->along = fabs(line[0]) * voxel_mm[1] >= fabs(line[1]) * voxel_mm[0] ? 0 : 1;
    const int a = pass->along, b = 1 - a;
    const double slope = line[b] / voxel_mm[b] / (line[a] / voxel_mm[a]);
    tables->shift = lr_alloc(pass->layout.extent[1 + a], sizeof(*tables->shift), "a projection mask", log);
    if (tables->shift == NULL) return LR_FAILED;
    int least = INT32_MAX, most = INT32_MIN;
    for (int k = 0; k < pass->layout.extent[1 + a]; k++) {
        const int place = k - pass->layout.margin[1 + a];
        tables->shift[k] = (int32_t)lround(place * slope);
        if (place >= 0 && place < pass->layout.size[a]) {
            least = tables->shift[k] < least ? tables->shift[k] : least;
            most = tables->shift[k] > most ? tables->shift[k] : most;
        }
    }
    pass->least_list = -most;
    pass->num_lists = pass->layout.size[b] + most - least;
    return LR_OK;
}

/* How far sources are away from outputs. */
static void find_reach(struct lr_cuda_cloud_tables *tables, const struct lr_direct_shape *shape)
{
    lr_cuda_cloud *pass = &tables->pass;
    const int a = pass->along, b = 1 - a, margin = pass->layout.margin[1 + a];
    int lists = 0;
    for (int64_t i = 0; i < shape->info.num_offsets; i++) {
        const int32_t *d = shape->offsets[i];
        for (int place = 0; place < pass->layout.size[a]; place++) {
            const int list = d[b] - tables->shift[place + d[a] + margin] + tables->shift[place + margin];
            lists = abs(list) > lists ? abs(list) : lists;
        }
    }
    pass->reach[0] = shape->info.half[a];
    pass->reach[1] = lists;
    pass->reach[2] = shape->info.half[2] / 4 + 1;
}

/* --- cloud --- */

struct point {
    int32_t offset[3], column;
    double along, factor;
};

/* Along the line, then as mSR has them. */
static int compare_points(const void *a, const void *b)
{
    const struct point *one = a, *other = b;
    if (one->along != other->along) return one->along < other->along ? -1 : 1;
    return memcmp(one->offset, other->offset, sizeof(one->offset));
}

/* Columns of mSR are numbered as they come, so that the last is the mirror image of the first. */
static struct point *list_points(struct lr_cuda_cloud_tables *tables, const struct lr_direct_shape *shape,
                                 const lr_log *log)
{
    const lr_direct_tables_info *info = &shape->info;
    struct point *points = lr_alloc(info->num_offsets, sizeof(*points), "a cloud", log);
    int column = -1;
    for (int64_t i = 0; points != NULL && i < info->num_offsets; i++) {
        const int32_t *offset = shape->offsets[i];
        double d[3];
        column += i == 0 || offset[0] != shape->offsets[i - 1][0] || offset[1] != shape->offsets[i - 1][1];
        distances(shape, offset, d);
        points[i] =
            (struct point){{offset[0], offset[1], offset[2]}, column, d[0], lr_cuda_cloud_factor(shape, offset)};
    }
    tables->pass.num_columns = column + 1;
    tables->pass.num_points = (int32_t)info->num_offsets;
    return points;
}

static void fill_profile(struct lr_cuda_cloud_tables *tables, const struct lr_direct_shape *shape,
                         const struct point *points, int row)
{
    const double distance_mm = lr_direct_kernel_distance_mm(shape, row);
    const double side = lr_direct_kernel_is_mirrored(shape, row) ? -1 : 1;
    float *profile = tables->profiles + (int64_t)row * tables->pass.num_columns;
    double sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < tables->pass.num_points; i++) {
            double d[3];
            distances(shape, points[i].offset, d);
            const double value = lr_resolution_profile(&shape->resolution, distance_mm, side * d[1]);
            if (pass == 0)
                sum += value * points[i].factor;
            else
                profile[points[i].column] = (float)(value / sum);
        }
    }
}

static lr_status make_cloud(struct lr_cuda_cloud_tables *tables, const struct lr_direct_shape *shape, const lr_log *log)
{
    lr_cuda_cloud *pass = &tables->pass;
    struct point *points = list_points(tables, shape, log);
    tables->points = lr_alloc(pass->num_points, sizeof(*tables->points), "a cloud", log);
    tables->factors = lr_alloc(pass->num_points, sizeof(*tables->factors), "a cloud", log);
    tables->profiles =
        lr_alloc((int64_t)pass->num_rows * pass->num_columns, sizeof(*tables->profiles), "profiles", log);
    const bool done = points && tables->points && tables->factors && tables->profiles;
    if (done) {
        qsort(points, (size_t)pass->num_points, sizeof(*points), compare_points);
        for (int32_t i = 0; i < pass->num_points; i++) {
            memcpy(tables->points[i], points[i].offset, sizeof(points[i].offset));
            tables->points[i][3] = points[i].column;
            tables->factors[i] = (float)points[i].factor;
        }
        for (int row = 0; row < pass->num_rows; row++) fill_profile(tables, shape, points, row);
    }
    free(points);
    return done ? LR_OK : LR_FAILED;
}

lr_status lr_cuda_cloud_init(struct lr_cuda_cloud_tables *tables, const struct lr_direct_shape *shape,
                             const lr_cuda_layout *layout, int rows, const lr_log *log)
{
    *tables = (struct lr_cuda_cloud_tables){.pass = {.layout = *layout, .num_rows = rows}};
    lr_status status = make_mask(tables, shape, log);
    if (status == LR_OK) {
        find_reach(tables, shape);
        status = make_cloud(tables, shape, log);
    }
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
