/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include <lr/picture.h>

#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { max_side = 65536 };

lr_picture *lr_picture_create(const int size[2], const lr_log *log)
{
    if (size[0] <= 0 || size[1] <= 0 || size[0] > max_side || size[1] > max_side) {
        (void)lr_error(log, LR_USAGE, "a picture of %d x %d pixels is not between 1 and %d a side", size[0], size[1],
                       max_side);
        return NULL;
    }
    lr_picture *picture = lr_alloc(1, sizeof(*picture), "a picture", log);
    if (picture == NULL) return NULL;
    picture->size[0] = size[0];
    picture->size[1] = size[1];
    picture->rgb = lr_alloc((int64_t)size[0] * size[1], 3, "a picture", log);
    if (picture->rgb == NULL) {
        free(picture);
        return NULL;
    }
    return picture;
}

void lr_picture_destroy(lr_picture *picture)
{
    if (picture != NULL) {
        free(picture->rgb);
        free(picture);
    }
}

static uint8_t *pixel_at(lr_picture *picture, int x, int y)
{
    return picture->rgb + 3 * ((size_t)y * (size_t)picture->size[0] + (size_t)x);
}

static void set_pixel(lr_picture *picture, int64_t x, int64_t y, lr_colour colour)
{
    if (x >= 0 && y >= 0 && x < picture->size[0] && y < picture->size[1]) {
        uint8_t *pixel = pixel_at(picture, (int)x, (int)y);
        pixel[0] = colour.r;
        pixel[1] = colour.g;
        pixel[2] = colour.b;
    }
}

/* The part of [corner, corner + size) that lies in [0, limit). */
static void cut(int corner, int size, int limit, int range[2])
{
    const int64_t end = (int64_t)corner + size;
    range[0] = corner > 0 ? corner : 0;
    range[1] = end < limit ? (int)(end > 0 ? end : 0) : limit;
}

void lr_picture_fill(lr_picture *picture, const int corner[2], const int size[2], lr_colour colour)
{
    int x[2], y[2];
    cut(corner[0], size[0], picture->size[0], x);
    cut(corner[1], size[1], picture->size[1], y);
    for (int row = y[0]; row < y[1]; row++)
        for (int column = x[0]; column < x[1]; column++) set_pixel(picture, column, row, colour);
}

void lr_picture_frame(lr_picture *picture, const int corner[2], const int size[2], lr_colour colour)
{
    if (size[0] <= 0 || size[1] <= 0) return;
    const int far[2] = {corner[0] + size[0] - 1, corner[1] + size[1] - 1};
    const int across[2] = {size[0], 1}, down[2] = {1, size[1]};
    lr_picture_fill(picture, corner, across, colour);
    lr_picture_fill(picture, corner, down, colour);
    lr_picture_fill(picture, (int[2]){corner[0], far[1]}, across, colour);
    lr_picture_fill(picture, (int[2]){far[0], corner[1]}, down, colour);
}

void lr_picture_line(lr_picture *picture, const int from[2], const int to[2], lr_colour colour)
{
    const int64_t dx = (int64_t)to[0] - from[0], dy = (int64_t)to[1] - from[1];
    const int64_t steps = llabs(dx) > llabs(dy) ? llabs(dx) : llabs(dy);
    for (int64_t n = 0; n <= steps; n++) {
        const double t = steps == 0 ? 0.0 : (double)n / (double)steps;
        const double x = from[0] + t * (double)dx, y = from[1] + t * (double)dy;
        set_pixel(picture, (int64_t)(x + (x < 0.0 ? -0.5 : 0.5)), (int64_t)(y + (y < 0.0 ? -0.5 : 0.5)), colour);
    }
}

void lr_picture_paste(lr_picture *picture, const int corner[2], const lr_picture *source)
{
    int x[2], y[2];
    cut(corner[0], source->size[0], picture->size[0], x);
    cut(corner[1], source->size[1], picture->size[1], y);
    for (int row = y[0]; row < y[1] && x[0] < x[1]; row++) {
        const size_t from = (size_t)(row - corner[1]) * (size_t)source->size[0] + (size_t)(x[0] - corner[0]);
        memcpy(pixel_at(picture, x[0], row), source->rgb + 3 * from, 3 * (size_t)(x[1] - x[0]));
    }
}
