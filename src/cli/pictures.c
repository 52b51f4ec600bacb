/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "pictures.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

lr_status picture_sheet_add(struct picture_sheet *sheet, lr_picture *picture, const char *format, ...)
{
    char text[128];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (picture == NULL) return report_reason(sheet->report);
    char *caption = malloc(strlen(text) + 1);
    if (caption == NULL || !common_grow(&sheet->tiles, &sheet->room, sheet->num_tiles + 1, sizeof(*sheet->tiles))) {
        free(caption);
        lr_picture_destroy(picture);
        return report_error(sheet->report, LR_FAILED, "no memory for the picture \"%s\"", text);
    }
    strcpy(caption, text);
    sheet->tiles[sheet->num_tiles++] = (lr_tile){picture, caption};
    return LR_OK;
}

lr_status picture_sheet_write(const struct picture_sheet *sheet, const char *path, int first, int columns,
                              const char *title)
{
    lr_picture *mosaic = lr_picture_mosaic(&(lr_mosaic_params){.tiles = sheet->tiles + first,
                                                               .num_tiles = sheet->num_tiles - first,
                                                               .columns = columns,
                                                               .title = title,
                                                               .subtitle = sheet->note,
                                                               .log = &sheet->report->log});
    if (mosaic == NULL) return report_reason(sheet->report);
    const lr_status status = lr_png_write(path, mosaic->rgb, mosaic->size, &sheet->report->log);
    lr_picture_destroy(mosaic);
    return status;
}

void picture_sheet_finish(struct picture_sheet *sheet)
{
    for (int k = 0; k < sheet->num_tiles; k++) {
        /* The sheet owns its pictures and captions, although a tile's pointers are to const. */
        lr_picture_destroy((lr_picture *)sheet->tiles[k].picture);
        free((char *)sheet->tiles[k].caption);
    }
    free(sheet->tiles);
    *sheet = (struct picture_sheet){0};
}

lr_status picture_write_slices(struct report *report, const char *path, const struct picture_slices *slices)
{
    static const char *const names[] = {"transaxial, z", "coronal, y", "sagittal, x"};
    static const lr_plane planes[] = {LR_PLANE_TRANSAXIAL, LR_PLANE_CORONAL, LR_PLANE_SAGITTAL};
    const lr_image *image = slices->image;
    const lr_grid *grid = &image->grid;
    const int64_t count = lr_grid_num_voxels(grid);
    char note[256];
    struct picture_sheet sheet = {.report = report, .note = note};
    double longest_mm = 0, sum = 0, moment[3] = {0}, low = 0, high = -INFINITY;
    int slice[3];
    for (int64_t row = 0; row < count; row++) {
        double at[3];
        lr_grid_voxel_centre(grid, row, at);
        sum += image->values[row];
        for (int axis = 0; axis < 3; axis++) moment[axis] += image->values[row] * at[axis];
    }
    for (int axis = 0; axis < 3; axis++) {
        const int last = grid->size[axis] - 1;
        const double place = sum > 0 ? (moment[axis] / sum - grid->origin_mm[axis]) / grid->voxel_mm[axis] : 0.5 * last;
        slice[axis] = (int)fmin(fmax(round(place), 0), last); /* negative values may put it outside the grid */
        longest_mm = fmax(longest_mm, grid->size[axis] * grid->voxel_mm[axis]);
    }
    /* The three slices have one range of colours, as in viewers, so that a colour is the same value in each. */
    for (int64_t row = 0; row < count; row++) {
        const int64_t line = row / grid->size[0];
        if (row % grid->size[0] != slice[0] && line % grid->size[1] != slice[1] && line / grid->size[1] != slice[2])
            continue;
        low = fmin(low, image->values[row]);
        high = fmax(high, image->values[row]);
    }
    if (!(high > low)) high = low + 1;
    snprintf(note, sizeof(note), "%s; colours from %.4g to %.4g (%s) in all slices", slices->note, low, high,
             slices->unit);

    lr_status status = LR_OK;
    for (int k = 0; status == LR_OK && k < 3; k++) {
        /* The caption names the middle of the slice that is drawn. */
        const int axis = 2 - k;
        const double position_mm = grid->origin_mm[axis] + slice[axis] * grid->voxel_mm[axis];
        const lr_slice_params params = {
            .image = image,
            .plane = planes[k],
            .position_mm = position_mm,
            .low = low,
            .high = high,
            .pixels_per_mm = 400 / longest_mm, /* the scale is the same for all three slices */
            .colours = slices->colours,
            .axes = true,
            .colour_bar = true,
            .unit = slices->unit,
            .log = &report->log,
        };
        /* -0 becomes 0, because its sign would be printed. */
        status = picture_sheet_add(&sheet, lr_picture_slice(&params), "%s = %.2f mm", names[k],
                                   0.01 * round(100.0 * position_mm) + 0.0);
    }
    if (status == LR_OK) status = picture_sheet_write(&sheet, path, 0, 3, slices->title);
    picture_sheet_finish(&sheet);
    return status;
}

/* --- bitmaps --- */

const char bitmap_backends[] = "raster,cpu";

void bitmap_note_make(struct bitmap_note *note, const lr_operator_info *info, struct report *report)
{
    const char *why = info->passed_over;
    snprintf(note->text, sizeof(note->text), "drawn by backend %s on %s, R = %d%s%s", info->backend, info->device,
             info->rays, why != NULL ? "; " : "", why != NULL ? why : "");
    (why != NULL ? report_warn : report_info)(report, "correspondence images are %s", note->text);
}

lr_status bitmap_take(struct setup *setup, const double point_mm[3], int module, struct bitmap *bitmap)
{
    const lr_module *shape = &setup->scanner->modules[module];
    const int rays = lr_operator_get_info(setup->op)->rays;
    *bitmap = (struct bitmap){.module = module, .size = {rays * shape->crystals[0], rays * shape->crystals[1]}};
    bitmap->pixels = calloc((size_t)bitmap->size[0] * (size_t)bitmap->size[1], sizeof(*bitmap->pixels));
    if (bitmap->pixels == NULL) {
        return report_error(setup->report, LR_FAILED, "no memory for a picture of %d x %d", bitmap->size[0],
                            bitmap->size[1]);
    }
    const lr_status status = lr_operator_picture(setup->op, point_mm, module, bitmap->pixels);
    if (status != LR_OK) {
        bitmap_finish(bitmap);
        return status;
    }
    const int64_t count = (int64_t)bitmap->size[0] * bitmap->size[1];
    for (int64_t k = 0; k < count; k++) {
        bitmap->num_hits += bitmap->pixels[k].module >= 0;
        bitmap->weight += (double)bitmap->pixels[k].weight;
        bitmap->highest = fmax(bitmap->highest, (double)bitmap->pixels[k].weight);
    }

    return LR_OK;
}

lr_picture *bitmap_draw(const struct setup *setup, const struct bitmap *bitmap, lr_correspondence_view view,
                        double high)
{
    const lr_correspondence_params params = {
        .pixels = bitmap->pixels,
        .scanner = setup->scanner,
        .module = bitmap->module,
        .rays = lr_operator_get_info(setup->op)->rays,
        .view = view,
        .high = high,
        .crystal_grid = true,
        .labelled = true,
        .log = &setup->report->log,
    };
    return lr_picture_correspondence(&params);
}

void bitmap_finish(struct bitmap *bitmap)
{
    free(bitmap->pixels);
    *bitmap = (struct bitmap){0};
}

lr_status bitmap_take_brightest(struct setup *setup, const double point_mm[3], struct bitmap *bitmap)
{
    *bitmap = (struct bitmap){0};
    for (int m = 0; m < setup->scanner->num_modules; m++) {
        struct bitmap next;
        const lr_status status = bitmap_take(setup, point_mm, m, &next);
        if (status != LR_OK) {
            bitmap_finish(bitmap);
            return status;
        }
        if (bitmap->pixels == NULL || next.weight > bitmap->weight) {
            bitmap_finish(bitmap);
            *bitmap = next;
        } else {
            bitmap_finish(&next);
        }
    }
    return LR_OK;
}
