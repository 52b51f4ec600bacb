/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LORmap, mSR and mSRval as pictures. */
#include "base/mem.h"

#include <lr/picture.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUM_TILES = 6, PANEL = 260, BAR_ROOM = 90 };

struct sheet {
    const lr_direct_tables *tables;
    const lr_direct_tables_info *info;
    const lr_log *log;
    lr_tile tiles[NUM_TILES];
    char captions[NUM_TILES][96];
    int num_tiles;
};

/* A map of numbers with its bar, as wide as a panel. */
static lr_picture *draw_map(const struct sheet *sheet, const float *values, const int size[2],
                            lr_colour_map colours)
{
    const int longer = size[0] > size[1] ? size[0] : size[1];
    const int zoom = longer >= PANEL ? 1 : PANEL / longer;
    const int drawn[2] = {zoom * size[0], zoom * size[1]};
    double high = 0;
    for (int k = 0; k < size[0] * size[1]; k++) {
        high = fmax(high, (double)values[k]);
    }
    const int height = drawn[1] > 70 ? drawn[1] : 70;
    lr_picture *picture =
        lr_picture_create((const int[2]){drawn[0] + BAR_ROOM, height}, sheet->log);
    if (picture == NULL) {
        return NULL;
    }
    lr_picture_fill(picture, (const int[2]){0, 0}, picture->size, (lr_colour){255, 255, 255});
    lr_picture_map(picture, (const int[2]){0, 0},
                   &(lr_map_params){.values = values,
                                    .size = {size[0], size[1]},
                                    .drawn_size = {drawn[0], drawn[1]},
                                    .low = 0,
                                    .high = high > 0 ? high : 1,
                                    .colours = colours});
    lr_picture_bar(
        picture, (const int[2]){drawn[0] + 8, 8},
        &(lr_bar_params){
            .size = {10, height - 16}, .low = 0, .high = high > 0 ? high : 1, .colours = colours});
    return picture;
}

/* Adds a tile; its caption is written already. */
static bool add_map(struct sheet *sheet, const float *values, const int size[2],
                    lr_colour_map colours)
{
    lr_picture *picture = draw_map(sheet, values, size, colours);
    sheet->tiles[sheet->num_tiles].picture = picture;
    sheet->tiles[sheet->num_tiles].caption = sheet->captions[sheet->num_tiles];
    sheet->num_tiles++;
    return picture != NULL;
}

static char *next_caption(struct sheet *sheet)
{
    return sheet->captions[sheet->num_tiles];
}

static bool add_lor_map(struct sheet *sheet)
{
    const int *size = sheet->info->grid.size;
    const int64_t count = (int64_t)size[0] * size[1];
    float *values = lr_alloc(count, sizeof(*values), "a picture", sheet->log);
    for (int64_t k = 0; values != NULL && k < count; k++) {
        values[k] = (float)lr_direct_tables_map(sheet->tables)[k];
    }
    snprintf(next_caption(sheet), 96, "LORmap: %d kernels, epsilon %g mm", sheet->info->num_kernels,
             sheet->info->epsilon_mm);
    const bool done = values != NULL && add_map(sheet, values, size, LR_COLOURS_PERCEPTUAL);
    free(values);
    return done;
}

/* Sums of the offsets over the axis that is not shown: ones, or a kernel's values in slice z = 0. */
static bool add_offsets(struct sheet *sheet, int up, const double *kernel)
{
    const int *half = sheet->info->half;
    const int size[2] = {2 * half[0] + 1, 2 * half[up] + 1};
    const int32_t(*offsets)[3] = lr_direct_tables_offsets(sheet->tables);
    float *values = lr_alloc((int64_t)size[0] * size[1], sizeof(*values), "a picture", sheet->log);
    for (int64_t i = 0; values != NULL && i < sheet->info->num_offsets; i++) {
        float *value = &values[offsets[i][0] + half[0] + size[0] * (offsets[i][up] + half[up])];
        if (kernel == NULL) {
            *value += 1;
        } else if (offsets[i][2] == 0) {
            *value += (float)kernel[i];
        }
    }
    const bool done =
        values != NULL && add_map(sheet, values, size,
                                  kernel != NULL ? LR_COLOURS_INVERSE_GREY : LR_COLOURS_PERCEPTUAL);
    free(values);
    return done;
}

static bool add_kernel(struct sheet *sheet, int identifier)
{
    snprintf(next_caption(sheet), 96, "mSRval of identifier %d: %g to %g mm", identifier,
             identifier * sheet->info->epsilon_mm, (identifier + 1) * sheet->info->epsilon_mm);
    return add_offsets(sheet, 1, lr_direct_tables_values(sheet->tables, identifier));
}

static bool add_all(struct sheet *sheet)
{
    const lr_direct_tables_info *info = sheet->info;
    const int last = info->num_identifiers - 1;
    if (!add_lor_map(sheet)) {
        return false;
    }
    snprintf(next_caption(sheet), 96, "mSR along z: %lld offsets", (long long)info->num_offsets);
    if (!add_offsets(sheet, 1, NULL)) {
        return false;
    }
    snprintf(next_caption(sheet), 96, "mSR along y");
    return add_offsets(sheet, 2, NULL) && add_kernel(sheet, 0) && add_kernel(sheet, last / 2) &&
           add_kernel(sheet, last);
}

lr_picture *lr_picture_direct_tables(const lr_direct_tables *tables, const lr_log *log)
{
    struct sheet *sheet = lr_alloc(1, sizeof(*sheet), "a picture", log);
    lr_picture *picture = NULL;
    if (sheet == NULL) {
        return NULL;
    }
    sheet->tables = tables;
    sheet->info = lr_direct_tables_get_info(tables);
    sheet->log = log;
    if (add_all(sheet)) {
        char title[96];
        snprintf(title, sizeof(title), "azimuth %g, tilt %g degrees", sheet->info->view.azimuth_deg,
                 sheet->info->view.tilt_deg);
        picture = lr_picture_mosaic(&(lr_mosaic_params){.tiles = sheet->tiles,
                                                        .num_tiles = sheet->num_tiles,
                                                        .columns = 3,
                                                        .title = title,
                                                        .log = log});
    }
    for (int k = 0; k < sheet->num_tiles; k++) {
        lr_picture_destroy((lr_picture *)(uintptr_t)sheet->tiles[k].picture);
    }
    free(sheet);
    return picture;
}
