/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/sheet.h"

#include "base/mem.h"

#include <lr/picture.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 1 };

const char *const sheet_names[SHEET_NUM_KINDS] = {"crystals", "weight", "sampled", "exact", "sampled - exact"};

static const lr_colour no_value = {38, 40, 46};

/* Finds the texel of a window's lower left pixel. */
static void find_corner(const struct sheet *sheet, int window, int corner[2])
{
    const int row = window / sheet->columns;
    corner[0] = window % sheet->columns * (sheet->tile[0] + GAP);
    corner[1] = sheet->size[1] - (row + 1) * (sheet->tile[1] + GAP) + GAP;
}

static lr_colour pixel_colour(const struct sheet *sheet, const lr_scanner *scanner, enum sheet_kind kind,
                              const struct voxel_window *window, int64_t k)
{
    if (kind == SHEET_CRYSTALS) {
        const lr_pixel *pixel = &window->pixels[k];
        if (pixel->module < 0.0f) return no_value;
        const lr_module *module = &scanner->modules[(int)pixel->module];
        return (lr_colour){(uint8_t)(255.0f * (pixel->r + 1.0f) / (float)module->crystals[0]),
                           (uint8_t)(255.0f * (pixel->s + 1.0f) / (float)module->crystals[1]), 0};
    }
    const float *const values = kind == SHEET_WEIGHTS   ? window->weight
                                : kind == SHEET_SAMPLED ? window->sampled
                                : kind == SHEET_EXACT   ? window->exact
                                                        : window->difference;
    if (values == NULL || isnan(values[k]) || (kind == SHEET_WEIGHTS && window->lors[k] < 0)) return no_value;
    const double share = (double)values[k] / sheet->high;
    return kind == SHEET_DIFFERENCE ? lr_colour_of(LR_COLOURS_DIVERGING, 0.5 + 0.5 * share)
                                    : lr_colour_of(LR_COLOURS_PERCEPTUAL, share);
}

lr_status sheet_draw(struct sheet *sheet, struct gl_context *ctx, const struct voxel_result *result,
                     const lr_scanner *scanner, enum sheet_kind kind)
{
    const float high = kind == SHEET_WEIGHTS      ? result->high_weight
                       : kind == SHEET_DIFFERENCE ? result->high_difference
                                                  : result->high_element;
    sheet->high = fmax((double)high, 1e-30);

    /* The number of columns makes the sheet about as wide as high. */
    sheet->tile[0] = sheet->tile[1] = 1;
    sheet->num_windows = result->num_windows;
    for (int n = 0; n < result->num_windows; n++) {
        for (int k = 0; k < 2; k++) {
            const int size = result->windows[n].size[k];
            sheet->tile[k] = size > sheet->tile[k] ? size : sheet->tile[k];
        }
    }
    const double shape = (double)sheet->tile[1] / sheet->tile[0];
    const int most = (int)ceil(sqrt(fmax(result->num_windows, 1) * shape));
    sheet->columns = most < result->num_windows ? most : result->num_windows;
    sheet->columns = sheet->columns > 0 ? sheet->columns : 1;
    const int rows = (result->num_windows + sheet->columns - 1) / sheet->columns;
    sheet->size[0] = sheet->columns * (sheet->tile[0] + GAP) - GAP;
    sheet->size[1] = (rows > 0 ? rows : 1) * (sheet->tile[1] + GAP) - GAP;

    const struct gl_texture *old = sheet->texture;
    if (old == NULL || old->size[0] != sheet->size[0] || old->size[1] != sheet->size[1]) {
        gl_texture_destroy(sheet->texture);
        sheet->texture = gl_texture_create(
            ctx, &(struct gl_texture_params){
                     .label = "windows", .format = GL_RGBA8, .width = sheet->size[0], .height = sheet->size[1]});
    }
    lr_status status = sheet->texture != NULL ? LR_OK : LR_FAILED;
    uint8_t *texels = lr_alloc((int64_t)sheet->size[0] * sheet->size[1], 4, "windows to show", gl_context_log(ctx));
    if (status == LR_OK && texels != NULL) {
        for (int w = 0; w < sheet->num_windows; w++) {
            const struct voxel_window *window = &result->windows[w];
            int corner[2];
            find_corner(sheet, w, corner);
            for (int y = 0; y < window->size[1]; y++) {
                for (int x = 0; x < window->size[0]; x++) {
                    const lr_colour colour =
                        pixel_colour(sheet, scanner, kind, window, (int64_t)y * window->size[0] + x);
                    const int64_t at = (int64_t)(corner[1] + y) * sheet->size[0] + corner[0] + x;
                    memcpy(&texels[4 * at], (uint8_t[4]){colour.r, colour.g, colour.b, 255}, 4);
                }
            }
        }

        status = gl_texture_upload(sheet->texture, texels);
    }
    free(texels);
    return texels != NULL ? status : LR_FAILED;
}

bool sheet_pixel(const struct sheet *sheet, const double at[2], int *window, int place[2])
{
    const int x = (int)floor(at[0] * sheet->size[0]), y = (int)floor(at[1] * sheet->size[1]);
    if (at[0] < 0.0 || at[1] < 0.0 || x >= sheet->size[0] || y >= sheet->size[1]) return false;
    const int column = x / (sheet->tile[0] + GAP), row = y / (sheet->tile[1] + GAP);
    place[0] = x % (sheet->tile[0] + GAP);
    place[1] = sheet->tile[1] - 1 - y % (sheet->tile[1] + GAP);
    *window = row * sheet->columns + column;
    return place[0] < sheet->tile[0] && place[1] >= 0 && *window < sheet->num_windows;
}

void sheet_corners(const struct sheet *sheet, int window, const double place[2], double at[2])
{
    int corner[2];
    find_corner(sheet, window, corner);
    at[0] = (corner[0] + place[0]) / sheet->size[0];
    at[1] = 1.0 - (corner[1] + place[1]) / sheet->size[1];
}
