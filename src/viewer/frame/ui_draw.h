/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Draws lists of triangles with the library's passes. */
#ifndef LR_VIEWER_UI_DRAW_H
#define LR_VIEWER_UI_DRAW_H

#include <lr/log.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ui_draw;
struct gl_context;
struct gl_texture;
struct gl_target;

/* font: [height][width] coverage. */
struct ui_draw *ui_draw_create(struct gl_context *ctx, const uint8_t *font, const int font_size[2]);
void ui_draw_destroy(struct ui_draw *draw); /* NULL is allowed */
const struct gl_texture *ui_draw_font(const struct ui_draw *draw);

/* Corners of five words (place, texture coordinates, colour) and indices of all that follows. */
struct ui_batch {
    const void *corners;
    const uint32_t *indices;
    int num_corners, num_indices;
};
lr_status ui_draw_load(struct ui_draw *draw, const struct ui_batch *batch);

/* Indices first_index .. first_index + num_indices - 1, counted from first_corner. */
struct ui_piece {
    const struct gl_texture *texture;
    int first_index, num_indices, first_corner;
    double clip[4];            /* from the upper left: left, top, right, bottom */
    double origin[2], size[2]; /* of the whole picture */
};
lr_status ui_draw_piece(struct ui_draw *draw, struct gl_target *target,
                        const struct ui_piece *piece);

#ifdef __cplusplus
}
#endif

#endif
