/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the passes point by point keep on the device. */
#include "render/points/points.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "render/penetration.h"

#include <stdlib.h>
#include <string.h>

/* Images in a batch: enough groups to fill a device. */
enum { BATCH_IMAGES = 16384, BATCH_IMAGES_SOFTWARE = 2048 };

static struct gl_buffer *make_buffer(const struct lr_points *points, const char *label, int64_t bytes)
{
    return gl_buffer_create(points->ctx, &(struct gl_buffer_params){.label = label, .size_bytes = bytes});
}

static lr_status make_buffers(struct lr_points *points)
{
    const struct lr_plan *plan = points->plan;
    points->images =
        make_buffer(points, "images of the batch", plan->max_images * (int64_t)sizeof(struct lr_plan_image));
    points->draws = make_buffer(points, "draws of the batch", plan->max_draws * (int64_t)sizeof(struct lr_plan_draw));
    points->rows = make_buffer(points, "rows of the batch", plan->max_images * (int64_t)sizeof(struct lr_plan_row));
    points->sums = make_buffer(points, "sums of images", plan->max_images * (int64_t)sizeof(float));
    return points->images && points->draws && points->rows && points->sums ? LR_OK : LR_FAILED;
}

static lr_status build(struct lr_points *points)
{
    const struct lr_backend_params *params = &points->params;
    const struct gl_limits *limits = gl_context_limits(points->ctx);
    points->plan = lr_plan_create(&(struct lr_plan_params){
        .lors = params->lors,
        .rays = params->rays,
        .max_images = limits->small_batches ? BATCH_IMAGES_SOFTWARE : BATCH_IMAGES,
        .penetration = params->penetration,
        .image_crystals = limits->software ? LR_GROUP_SIZE : 0,
        .log = params->log,
    });
    if (points->plan == NULL) return LR_FAILED;
    LR_TRY(lr_scene_init(&points->scene, points->ctx, params->lors,
                         &(struct lr_scene_absorption){params->mu, params->mu_steps}));
    LR_TRY(make_buffers(points));
    if (points->plan->hiding && limits->software) {
        points->cut_short = make_buffer(points, "loops cut short", sizeof(uint32_t));
        LR_TRY(points->cut_short ? LR_OK : LR_FAILED);
    }
    if (params->penetration) {
        points->boxes = lr_penetration_boxes(points->ctx, params->scanner, params->rays);
        LR_TRY(points->boxes ? LR_OK : LR_FAILED);
    }
    return LR_OK;
}

struct lr_points *lr_points_create(const struct lr_method_params *params)
{
    struct lr_points *points = lr_alloc(1, sizeof(*points), "projections point by point", params->backend->log);
    if (points == NULL) return NULL;
    points->params = *params->backend;
    points->ctx = params->ctx;
    points->max_window = params->max_window;
    if (build(points) != LR_OK) {
        lr_points_destroy(points);
        return NULL;
    }
    return points;
}

void lr_points_destroy(struct lr_points *points)
{
    if (points == NULL) return;
    gl_buffer_destroy(points->boxes);
    gl_buffer_destroy(points->cut_short);
    gl_buffer_destroy(points->sums);
    gl_buffer_destroy(points->rows);
    gl_buffer_destroy(points->draws);
    gl_buffer_destroy(points->images);
    gl_program_destroy(points->collect);
    for (int k = 0; k < LR_NUM_POINTS_PASSES; k++) gl_program_destroy(points->programs[k]);
    lr_scene_finish(&points->scene);
    lr_plan_destroy(points->plan);
    free(points);
}

/* --- the method --- */

static bool serves(const struct lr_method_params *params, enum lr_method_work work)
{
    (void)params;
    (void)work;
    return true;
}

static void *create(const struct lr_method_params *params)
{
    return lr_points_create(params);
}

static void destroy(void *self)
{
    lr_points_destroy(self);
}

/* Where results are the same bits each time without whole numbers, forward goes by rows. */
static lr_status prepare(void *self, bool lists)
{
    (void)lists;
    const struct lr_points *points = self;
    LR_TRY(lr_points_start(self, LR_POINTS_BACK));
    return points->params.deterministic ? LR_OK : lr_points_start(self, LR_POINTS_FORWARD);
}

static double device_seconds(const void *self)
{
    (void)self;
    return 0.0;
}

const struct lr_method lr_points_method = {
    .name = "points",
    .serves = serves,
    .create = create,
    .destroy = destroy,
    .prepare = prepare,
    .forward = lr_points_forward,
    .back = lr_points_back,
    .rows = lr_points_read_rows,
    .device_seconds = device_seconds,
};
