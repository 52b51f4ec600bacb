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

static const lr_colour nothing = {38, 40, 46};

/* --- colours --- */

static lr_colour value_colour(lr_colour_map map, double share)
{
    return isnan(share) ? nothing : lr_colour_of(map, share);
}

struct painter {
    const struct voxel_result *result;
    const lr_scanner *scanner;
    enum sheet_kind kind;
    double high;
};

static lr_colour pixel_colour(const struct painter *painter, const struct voxel_window *window, int64_t k)
{
    switch (painter->kind) {
    case SHEET_CRYSTALS: {
        const lr_pixel *pixel = &window->pixels[k];
        if (pixel->module < 0.0f) return nothing;
        const lr_module *module = &painter->scanner->modules[(int)pixel->module];
        return (lr_colour){(uint8_t)(255.0f * (pixel->r + 1.0f) / (float)module->crystals[0]),
                           (uint8_t)(255.0f * (pixel->s + 1.0f) / (float)module->crystals[1]), 0};
    }

    case SHEET_WEIGHTS:
        return window->lors[k] < 0 ? nothing
                                   : value_colour(LR_COLOURS_PERCEPTUAL, (double)window->weight[k] / painter->high);
    case SHEET_SAMPLED: return value_colour(LR_COLOURS_PERCEPTUAL, (double)window->sampled[k] / painter->high);
    case SHEET_EXACT:
        return window->exact == NULL ? nothing
                                     : value_colour(LR_COLOURS_PERCEPTUAL, (double)window->exact[k] / painter->high);
    default:
        return window->difference == NULL
                   ? nothing
                   : value_colour(LR_COLOURS_DIVERGING, 0.5 + 0.5 * (double)window->difference[k] / painter->high);
    }
}

static double highest(const struct voxel_result *result, enum sheet_kind kind)
{
    const float high = kind == SHEET_WEIGHTS      ? result->high_weight
                       : kind == SHEET_DIFFERENCE ? result->high_difference
                                                  : result->high_element;
    return fmax((double)high, 1e-30);
}

/* --- the picture --- */

/* Chooses the columns that make the sheet about as wide as high. */
static void arrange(struct sheet *sheet, const struct voxel_result *result)
{
    sheet->tile[0] = sheet->tile[1] = 1;
    sheet->num_windows = result->num_windows;
    for (int w = 0; w < result->num_windows; w++) {
        for (int k = 0; k < 2; k++) {
            const int size = result->windows[w].size[k];
            sheet->tile[k] = size > sheet->tile[k] ? size : sheet->tile[k];
        }
    }
    const double shape = (double)sheet->tile[1] / sheet->tile[0];
    const int columns = (int)ceil(sqrt(fmax(result->num_windows, 1) * shape));
    sheet->columns = columns < result->num_windows ? columns : result->num_windows;
    sheet->columns = sheet->columns > 0 ? sheet->columns : 1;
    const int rows = (result->num_windows + sheet->columns - 1) / sheet->columns;
    sheet->size[0] = sheet->columns * (sheet->tile[0] + GAP) - GAP;
    sheet->size[1] = (rows > 0 ? rows : 1) * (sheet->tile[1] + GAP) - GAP;
}

/* The texel of a window's lower left pixel. */
static void find_corner(const struct sheet *sheet, int window, int corner[2])
{
    const int row = window / sheet->columns;
    corner[0] = window % sheet->columns * (sheet->tile[0] + GAP);
    corner[1] = sheet->size[1] - (row + 1) * (sheet->tile[1] + GAP) + GAP;
}

lr_status sheet_draw(struct sheet *sheet, struct gl_context *ctx, const struct voxel_result *result,
                     const lr_scanner *scanner, enum sheet_kind kind)
{
    const struct painter painter = {result, scanner, kind, highest(result, kind)};
    arrange(sheet, result);
    sheet->high = painter.high;
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
            const struct voxel_window *window = &painter.result->windows[w];
            int corner[2];
            find_corner(sheet, w, corner);
            for (int y = 0; y < window->size[1]; y++) {
                for (int x = 0; x < window->size[0]; x++) {
                    const lr_colour colour = pixel_colour(&painter, window, (int64_t)y * window->size[0] + x);
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

void sheet_finish(struct sheet *sheet)
{
    gl_texture_destroy(sheet->texture);
    *sheet = (struct sheet){0};
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
