/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections point by point, in windows of LORs and batches of images. */
#include "render/points/points.h"

#include "base/log.h"
#include "render/sweep.h"

#include <string.h>

/* A buffer of floats on the device, for LOR values and voxel sums. */
static struct gl_buffer *make_values(const struct lr_points *points, const char *label, int64_t count)
{
    return gl_buffer_create(points->ctx,
                            &(struct gl_buffer_params){.label = label, .size_bytes = count * (int64_t)sizeof(float)});
}

/* What a batch of a projection works with. */
struct projection {
    struct lr_points *points;
    struct lr_points_output output; /* LOR values, of either direction */
    const struct gl_buffer *voxels; /* back only */
};

static lr_status forward_batch(void *user, const struct lr_batch *batch)
{
    const struct projection *at = user;
    LR_TRY(lr_points_upload(at->points, batch));
    return lr_points_run(at->points, LR_POINTS_FORWARD, batch, &at->output);
}

static lr_status forward_window(struct lr_points *points, const struct lr_plan_work *work,
                                const struct lr_points_output *output)
{
    struct projection at = {.points = points, .output = *output};
    const struct lr_sweep sweep = {.params = &points->params,
                                   .plan = points->plan,
                                   .what = "projecting forward",
                                   .batch = forward_batch,
                                   .user = &at};
    return lr_sweep_run(&sweep, work);
}

static lr_status forward_floats(struct lr_points *points, const struct lr_plan_work *work, float *values)
{
    const int64_t count = work->window.num_values;
    const struct lr_points_output output = {.buffer = make_values(points, "LOR values", count), .num_lors = count};
    lr_status status = output.buffer ? forward_window(points, work, &output) : LR_FAILED;
    if (status == LR_OK) status = gl_buffer_read(output.buffer, 0, count * (int64_t)sizeof(float), values);
    gl_buffer_destroy((struct gl_buffer *)(uintptr_t)output.buffer);
    return status;
}

static lr_status forward_windows(struct lr_points *points, const float *image, float *data)
{
    const struct lr_rows rows = lr_sweep_voxels(&points->params);
    struct lr_plan_work work = {
        .rows = &rows, .window = lr_pair_window_begin(points->params.lors, NULL, 0), .emission = image};
    while (lr_pair_window_next(&work.window, points->max_window)) {
        float *values = data + work.window.first_value;
        LR_TRY(lr_scene_set_window(&points->scene, &work.window));
        LR_TRY(forward_floats(points, &work, values));
    }
    return LR_OK;
}

/* --- the same bits each time: rows, added on the host in the order of the voxels --- */

struct ordered_sum {
    const float *image;
    float *data;
};

static lr_status add_row(void *user, const lr_row *row)
{
    const struct ordered_sum *sum = user;
    const double emission = (double)sum->image[row->row];
    for (int64_t k = 0; k < row->count; k++) sum->data[row->lor[k]] += (float)(emission * row->probability[k]);
    return LR_OK;
}

static lr_status forward_in_order(struct lr_points *points, const float *image, float *data)
{
    const lr_lors *lors = points->params.lors;
    const struct lr_rows rows = lr_sweep_voxels(&points->params);
    struct ordered_sum sum = {image, data};
    memset(data, 0, (size_t)lors->count * sizeof(*data));
    return lr_points_read_rows(points, &rows, &(lr_row_sink){add_row, &sum});
}

lr_status lr_points_forward(void *self, const struct lr_pair_list *list, const float *image, lr_vector *values)
{
    struct lr_points *points = self;
    (void)list; /* all of them */
    return points->params.deterministic ? forward_in_order(points, image, values->values)
                                        : forward_windows(points, image, values->values);
}

static lr_status back_batch(void *user, const struct lr_batch *batch)
{
    const struct projection *at = user;
    LR_TRY(lr_points_upload(at->points, batch));
    LR_TRY(lr_points_run(at->points, LR_POINTS_BACK, batch, &at->output));
    return lr_points_collect(at->points, batch, at->voxels);
}

static lr_status back_window(struct lr_points *points, const struct lr_plan_work *work, const struct gl_buffer *lors,
                             const struct gl_buffer *voxels)
{
    struct projection at = {
        .points = points, .output = {.buffer = lors, .num_lors = work->window.num_values}, .voxels = voxels};
    const struct lr_sweep sweep = {
        .params = &points->params, .plan = points->plan, .what = "projecting back", .batch = back_batch, .user = &at};
    return lr_sweep_run(&sweep, work);
}

static lr_status back_windows(struct lr_points *points, const float *data, const struct gl_buffer *voxels)
{
    const struct lr_rows rows = lr_sweep_voxels(&points->params);
    struct lr_plan_work work = {.rows = &rows, .window = lr_pair_window_begin(points->params.lors, NULL, 0)};
    while (lr_pair_window_next(&work.window, points->max_window)) {
        LR_TRY(lr_scene_set_window(&points->scene, &work.window));
        struct gl_buffer *lors = gl_buffer_create(
            points->ctx, &(struct gl_buffer_params){.label = "LOR values",
                                                    .size_bytes = work.window.num_values * (int64_t)sizeof(float),
                                                    .data = data + work.window.first_value});
        const lr_status status = lors ? back_window(points, &work, lors, voxels) : LR_FAILED;
        gl_buffer_destroy(lors);
        LR_TRY(status);
    }
    return LR_OK;
}

lr_status lr_points_back(void *self, const struct lr_pair_list *list, const lr_vector *values, float *image)
{
    struct lr_points *points = self;
    (void)list;
    const int64_t num_voxels = lr_grid_num_voxels(points->params.grid);
    struct gl_buffer *voxels = make_values(points, "voxel sums", num_voxels);
    lr_status status = voxels ? back_windows(points, values->values, voxels) : LR_FAILED;
    if (status == LR_OK) status = gl_buffer_read(voxels, 0, num_voxels * (int64_t)sizeof(float), image);
    gl_buffer_destroy(voxels);
    return status;
}
