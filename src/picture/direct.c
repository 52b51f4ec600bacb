/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LORmap, mSR and mSRval as pictures. */
#include "base/mem.h"
#include "picture/axes.h"

#include <lr/picture.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUM_TILES = 6, PANEL = 260, GAP = 12, LEAST_BAR = 110 };

struct sheet {
    const lr_direct_tables *tables;
    const lr_direct_tables_info *info;
    const lr_log *log;
    lr_tile tiles[NUM_TILES];
    char captions[NUM_TILES][96];
    int num_tiles;
};

/* A map of numbers, for one tile. */
struct panel {
    const float *values; /* [size[1]][size[0]] */
    int size[2];
    struct lr_axis x, up;
    lr_colour_map colours;
    const char *unit;
};

/* Adds a tile with a map of numbers, its axes and its colour bar. The caption comes from the sheet. */
static bool add_map(struct sheet *sheet, const struct panel *panel)
{
    const int *size = panel->size;
    const int longer = size[0] > size[1] ? size[0] : size[1];
    const int zoom = longer >= PANEL ? 1 : PANEL / longer;
    double high = 0;
    for (int k = 0; k < size[0] * size[1]; k++) high = fmax(high, (double)panel->values[k]);
    const struct lr_axis *x = &panel->x; /* x grows to the left, as in all pictures of slices */
    struct lr_axes axes = {
        .size = {zoom * size[0], zoom * size[1]}, .across = {x->high, x->low, x->name, false}, .up = panel->up};
    const struct lr_margins margins = lr_axes_margins(&axes);
    const lr_bar_params bar = {.size = {0, axes.size[1] > LEAST_BAR ? axes.size[1] : LEAST_BAR},
                               .high = high > 0 ? high : 1,
                               .colours = panel->colours,
                               .unit = panel->unit};
    const int right = margins.left + axes.size[0] + (margins.right > GAP ? margins.right : GAP);
    const int below = margins.bottom > margins.top ? margins.bottom : margins.top;
    const int whole[2] = {right + lr_picture_bar_width(&bar), margins.top + bar.size[1] + below};
    lr_picture *picture = lr_picture_create(whole, sheet->log);
    sheet->tiles[sheet->num_tiles].picture = picture;
    sheet->tiles[sheet->num_tiles].caption = sheet->captions[sheet->num_tiles];
    sheet->num_tiles++;
    if (picture == NULL) return false;
    axes.corner[0] = margins.left;
    axes.corner[1] = margins.top;
    lr_picture_fill(picture, (const int[2]){0, 0}, picture->size, (lr_colour){255, 255, 255});
    lr_picture_map(picture, axes.corner,
                   &(lr_map_params){.values = panel->values + size[0] - 1,
                                    .size = {size[0], size[1]},
                                    .stride = {-1, size[0]},
                                    .drawn_size = {axes.size[0], axes.size[1]},
                                    .high = bar.high,
                                    .colours = bar.colours});
    lr_axes_draw(picture, &axes);
    lr_picture_bar(picture, (const int[2]){right, margins.top}, &bar);
    return true;
}

/* Adds a map of offsets in x and `up` (1 = y, 2 = z). Without a kernel, the map shows how many offsets there are along
 * the third axis. With a kernel, the map shows the kernel's values in the slice z = 0. */
static bool add_offsets(struct sheet *sheet, int up, const double *kernel)
{
    const int *half = sheet->info->half;
    const int size[2] = {2 * half[0] + 1, 2 * half[up] + 1};
    const int32_t(*offsets)[3] = lr_direct_tables_offsets(sheet->tables);
    float *values = lr_alloc((int64_t)size[0] * size[1], sizeof(*values), "a picture", sheet->log);
    for (int64_t i = 0; values != NULL && i < sheet->info->num_offsets; i++) {
        float *value = &values[offsets[i][0] + half[0] + size[0] * (offsets[i][up] + half[up])];
        if (kernel == NULL)
            *value += 1;
        else if (offsets[i][2] == 0)
            *value += (float)kernel[i];
    }
    /* The axes run from the lowest to the highest offset. */
    const double *voxel_mm = sheet->info->grid.voxel_mm;
    const double x_mm = (half[0] + 0.5) * voxel_mm[0], up_mm = (half[up] + 0.5) * voxel_mm[up];
    const struct panel panel = {.values = values,
                                .size = {size[0], size[1]},
                                .x = {-x_mm, x_mm, "x (mm)", false},
                                .up = {-up_mm, up_mm, up == 1 ? "y (mm)" : "z (mm)", false},
                                .colours = kernel != NULL ? LR_COLOURS_INVERSE_GREY : LR_COLOURS_PERCEPTUAL,
                                .unit = kernel != NULL ? "weight of an offset" : "offsets in a column"};
    const bool done = values != NULL && add_map(sheet, &panel);
    free(values);
    return done;
}

lr_picture *lr_picture_direct_tables(const lr_direct_tables *tables, const lr_log *log)
{
    const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
    const lr_grid *grid = &info->grid;
    const int *size = grid->size, last = info->num_identifiers - 1;
    const int64_t count = (int64_t)size[0] * size[1];
    struct sheet *sheet = lr_alloc(1, sizeof(*sheet), "a picture", log);
    if (sheet == NULL) return NULL;
    sheet->tables = tables;
    sheet->info = info;
    sheet->log = log;
    float *values = lr_alloc(count, sizeof(*values), "a picture", log);
    for (int64_t k = 0; values != NULL && k < count; k++) values[k] = (float)lr_direct_tables_map(tables)[k];
    snprintf(sheet->captions[0], sizeof(sheet->captions[0]), "LORmap: %d kernels, epsilon %g mm", info->num_kernels,
             info->epsilon_mm);
    const struct panel panel = {.values = values,
                                .size = {size[0], size[1]},
                                .x = lr_grid_axis(grid, 0),
                                .up = lr_grid_axis(grid, 1),
                                .colours = LR_COLOURS_PERCEPTUAL,
                                .unit = "number of the kernel"};
    bool done = values != NULL && add_map(sheet, &panel);
    free(values);

    snprintf(sheet->captions[1], sizeof(sheet->captions[1]), "mSR seen along z: %lld offsets",
             (long long)info->num_offsets);
    snprintf(sheet->captions[2], sizeof(sheet->captions[2]), "mSR seen along y");
    done = done && add_offsets(sheet, 1, NULL) && add_offsets(sheet, 2, NULL);
    const int kernels[3] = {0, last / 2, last};
    for (int k = 0; k < 3 && done; k++) {
        snprintf(sheet->captions[sheet->num_tiles], sizeof(sheet->captions[0]),
                 "mSRval of identifier %d, z = 0: %g to %g mm", kernels[k], kernels[k] * info->epsilon_mm,
                 (kernels[k] + 1) * info->epsilon_mm);
        done = add_offsets(sheet, 1, lr_direct_tables_values(tables, kernels[k]));
    }

    lr_picture *picture = NULL;
    if (done) {
        char title[96];
        snprintf(title, sizeof(title), "Look-up tables: azimuth %g°, tilt %g°", info->view.azimuth_deg,
                 info->view.tilt_deg);
        picture = lr_picture_mosaic(&(lr_mosaic_params){
            .tiles = sheet->tiles, .num_tiles = sheet->num_tiles, .columns = 3, .title = title, .log = log});
    }
    for (int k = 0; k < sheet->num_tiles; k++) lr_picture_destroy((lr_picture *)(uintptr_t)sheet->tiles[k].picture);
    free(sheet);
    return picture;
}
