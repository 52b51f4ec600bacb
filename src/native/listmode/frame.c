/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "native/listmode/frame.h"

#include "base/parallel.h"
#include "listmode/tube.h"

double lr_native_listmode_reach(const struct lr_listmode_model *model, int axis)
{
    return model->kernel != LR_LISTMODE_TUBE ? 1.0
                                             : sqrt(2.0 * lr_listmode_rim(&model->tube)) / model->grid.voxel_mm[axis];
}

/* Voxels that stand behind the image for shares that begin at its last one. */
static int behind(const struct lr_listmode_model *model, int axis)
{
    const int width = (int)(2.0 * lr_native_listmode_reach(model, axis)) + 1;
    return model->kernel != LR_LISTMODE_TUBE ? 2 : 2 + width;
}

void lr_native_frame_init(struct lr_native_frame *frame, const struct lr_listmode_model *model, int axis)
{
    const int across[2] = {axis == 0 ? 1 : 0, axis == 2 ? 1 : 2};
    int64_t length[2];
    for (int k = 0; k < 2; k++) {
        const double reach = lr_native_listmode_reach(model, across[k]);
        frame->across[k] = across[k];
        frame->size[k] = model->grid.size[across[k]];
        frame->border[k] = (int)(2.0 * (reach + LR_NATIVE_LISTMODE_SLACK));
        length[k] = frame->border[k] + frame->size[k] + behind(model, across[k]);
    }
    frame->axis = axis;
    frame->slices = model->grid.size[axis];
    frame->row = length[0];
    frame->plane = length[0] * length[1];
}

/* One row of voxels along across[0]: where it begins in the grid's order and in the frame. */
struct row {
    int64_t voxel, step, number;
};

static struct row row_at(const struct lr_native_framing *framing, int64_t index)
{
    const struct lr_native_frame *frame = framing->frame;
    const int *size = framing->grid->size;
    const int64_t steps[3] = {1, size[0], (int64_t)size[0] * size[1]};
    const int64_t slice = index / frame->size[1], v = index % frame->size[1];
    return (struct row){.voxel = slice * steps[frame->axis] + v * steps[frame->across[1]],
                        .step = steps[frame->across[0]],
                        .number = slice * frame->plane + (v + frame->border[1]) * frame->row + frame->border[0]};
}

struct transfer {
    const struct lr_native_framing *framing;
    const float *image;
    float *numbers;
    const double *sums;
    double *total;
};

static void fill_rows(void *user, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    const struct transfer *transfer = user;
    const int count = transfer->framing->frame->size[0];
    for (int64_t index = begin; index < end; index++) {
        const struct row row = row_at(transfer->framing, index);
        for (int u = 0; u < count; u++) transfer->numbers[row.number + u] = transfer->image[row.voxel + u * row.step];
    }
}

static void add_rows(void *user, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    const struct transfer *transfer = user;
    const int count = transfer->framing->frame->size[0];
    for (int64_t index = begin; index < end; index++) {
        const struct row row = row_at(transfer->framing, index);
        for (int u = 0; u < count; u++) transfer->total[row.voxel + u * row.step] += transfer->sums[row.number + u];
    }
}

static void each_row(struct transfer *transfer, lr_parallel_body *body)
{
    const struct lr_native_frame *frame = transfer->framing->frame;
    lr_parallel_for(transfer->framing->threads, (int64_t)frame->slices * frame->size[1], 256, body, transfer);
}

void lr_native_frame_fill(const struct lr_native_framing *framing, const float *image, float *numbers)
{
    struct transfer transfer = {.framing = framing, .image = image, .numbers = numbers};
    each_row(&transfer, fill_rows);
}

void lr_native_frame_add(const struct lr_native_framing *framing, const double *numbers, double *total)
{
    struct transfer transfer = {.framing = framing, .sums = numbers, .total = total};
    each_row(&transfer, add_rows);
}
