/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The method by pairs: its use, and its buffers. */
#include "correspondence/compute/pairs/pairs.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "gl/vectors.h"
#include "model/scanner/coincidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool serves(const struct lr_method_params *params, enum lr_method_work work)
{
    const struct lr_backend_params *backend = params->backend;
    (void)work;
    return !params->may_hide && backend->mode == LR_MODE_EXACT && backend->mu == NULL && !backend->penetration;
}

void *lr_pairs_create(const struct lr_method_params *params)
{
    const int64_t bytes = lr_grid_num_voxels(params->backend->grid) * (int64_t)sizeof(float);
    struct lr_pairs *pairs = lr_alloc(1, sizeof(*pairs), "projections by pairs", params->backend->log);
    if (pairs == NULL) return NULL;
    pairs->params = *params->backend;
    pairs->ctx = params->ctx;
    pairs->max_window = params->max_window;
    pairs->image = lr_data_buffer(pairs->ctx, "image", bytes, NULL);
    pairs->state = lr_data_buffer(pairs->ctx, "state of pairs", 16, NULL);
    pairs->timer = gl_timer_create(pairs->ctx, "passes by pairs");
    if (!pairs->image || !pairs->state || !pairs->timer || lr_pairs_upload_scene(pairs) != LR_OK) {
        lr_pairs_destroy(pairs);
        return NULL;
    }
    return pairs;
}

void lr_pairs_destroy(void *self)
{
    struct lr_pairs *pairs = self;
    if (pairs == NULL) return;
    for (int k = 0; k < LR_NUM_PAIRS_PROGRAMS; k++) gl_program_destroy(pairs->programs[k]);
    lr_merge_programs_finish(&pairs->merge);
    gl_timer_destroy(pairs->timer);
    gl_buffer_destroy(pairs->state);
    gl_buffer_destroy(pairs->image);
    gl_buffer_destroy(pairs->mask_words);
    gl_buffer_destroy(pairs->mask_entries);
    gl_buffer_destroy(pairs->modules);
    free(pairs);
}

/* --- the method --- */

static lr_status prepare(void *self, bool lists)
{
    (void)lists;
    const bool both = lr_pairs_program(self, LR_PAIRS_BACK) != NULL && lr_pairs_program(self, LR_PAIRS_FORWARD) != NULL;
    return both ? LR_OK : LR_FAILED;
}

/* The image has the grid's order on the device, too. */
static lr_status take_image(void *self, const lr_vector *image)
{
    const struct lr_pairs *pairs = self;
    return lr_values_put(image, pairs->image, 0);
}

static lr_status give_image(void *self, lr_vector *image)
{
    const struct lr_pairs *pairs = self;
    return lr_values_get(pairs->image, 0, image);
}

static double device_seconds(const void *self)
{
    return ((const struct lr_pairs *)self)->device_seconds;
}

const struct lr_method lr_pairs_method = {
    .name = "pairs",
    .serves = serves,
    .create = lr_pairs_create,
    .destroy = lr_pairs_destroy,
    .prepare = prepare,
    .forward = lr_pairs_forward,
    .back = lr_pairs_back,
    .forward_lors = lr_pairs_forward_lors,
    .back_lors = lr_pairs_back_lors,
    .take_image = take_image,
    .give_image = give_image,
    .rows = lr_pairs_read_rows,
    .device_seconds = device_seconds,
};
