/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "demo.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUM_VOXELS = 3, PICTURE_RAYS = 16 };

static const double water_per_mm = 0.0096;    /* at 511 keV */
static const double phantom_share = 0.46;     /* the phantom's radius over the grid's width */
static const double pixels_per_mm = 4 / 0.45; /* whole pixels per voxel at both scales */

/* --- the absorber --- */

/* A cylinder of water as wide as the phantom and as long as the scanner. */
static lr_image *draw_water(const struct demo *demo)
{
    static const int size[3] = {48, 48, 48};
    static const double voxel_mm[3] = {1, 1, 1};
    const lr_grid grid = lr_grid_centred(size, voxel_mm);
    const double radius_mm = phantom_share * demo->scale->grid[0] * demo->scale->voxel_mm;
    lr_image *water = lr_image_create(&grid, &demo->setup.report->log);
    const int64_t count = lr_grid_num_voxels(&grid);
    for (int64_t row = 0; water != NULL && row < count; row++) {
        double centre_mm[3];
        lr_grid_voxel_centre(&grid, row, centre_mm);
        const bool inside = hypot(centre_mm[0], centre_mm[1]) < radius_mm;
        water->values[row] = inside ? (float)water_per_mm : 0;
    }
    return water;
}

/* --- correspondence images --- */

/* A setup that borrows the demo's scanner and LORs; only its operator is its own. */
static lr_status open_setup(struct demo *demo, const lr_image *mu, struct setup *setup)
{
    *setup = (struct setup){.report = demo->setup.report,
                            .scanner = demo->setup.scanner,
                            .lors = demo->setup.lors,
                            .params = demo->setup.params};
    setup_point_grid(setup);
    setup->params.rays = PICTURE_RAYS;
    setup->params.store = LR_STORE_NO;
    setup->params.mu = mu;
    setup->params.backend = shot_backends;
    setup->op = lr_operator_create(&setup->params);
    return setup->op != NULL ? LR_OK : report_reason(setup->report);
}

/* Three voxels: amid the grid, beside the axis, and near the phantom's rim. */
static void choose_voxel(const struct demo *demo, int which, double centre_mm[3])
{
    static const double places[NUM_VOXELS][3] = {{0.5, 0.5, 0.5}, {0.75, 0.5, 0.5}, {0.3, 0.85, 0.9}};
    const int *size = demo->setup.grid.size;
    int64_t index[3];
    for (int k = 0; k < 3; k++) index[k] = (int64_t)(places[which][k] * size[k]);
    lr_grid_voxel_centre(&demo->setup.grid, index[0] + size[0] * (index[1] + size[1] * index[2]), centre_mm);
}

static lr_status add_picture(const struct demo *demo, struct album *album, lr_picture *picture, int which,
                             const char *what, const char *caption)
{
    char path[PATH_MAX], name[64];
    CLI_TRY(album_add(album, picture, "%s", caption));
    snprintf(name, sizeof(name), "voxel_%d_%s.png", which + 1, what);
    return album_write_last(album, demo_path(demo, name, path, sizeof(path)));
}

/* Draws one voxel's shots; both weights on one scale. */
static lr_status draw_voxel(const struct demo *demo, struct album *album, const struct setup setups[2],
                            const struct shot shots[2], int which)
{
    char caption[96];
    const double high = shots[0].highest;
    double point_mm[3];
    choose_voxel(demo, which, point_mm);
    snprintf(caption, sizeof(caption), "(%.1f, %.1f, %.1f) mm, module %d", point_mm[0], point_mm[1], point_mm[2],
             shots[0].module);
    CLI_TRY(add_picture(demo, album, shot_draw(&setups[0], &shots[0], LR_VIEW_CRYSTALS, 0), which, "colour", caption));
    snprintf(caption, sizeof(caption), "weight, sum %.3g", shots[0].weight);
    CLI_TRY(
        add_picture(demo, album, shot_draw(&setups[0], &shots[0], LR_VIEW_WEIGHTS, high), which, "weight", caption));
    snprintf(caption, sizeof(caption), "with absorption, sum %.3g", shots[1].weight);
    return add_picture(demo, album, shot_draw(&setups[1], &shots[1], LR_VIEW_WEIGHTS, high), which, "weight_absorbed",
                       caption);
}

static lr_status add_voxel(const struct demo *demo, struct album *album, struct setup setups[2], int which)
{
    struct shot shots[2] = {{0}, {0}};
    double point_mm[3];
    choose_voxel(demo, which, point_mm);
    lr_status status = shot_take_brightest(&setups[0], point_mm, &shots[0]);
    if (status == LR_OK) status = shot_take(&setups[1], point_mm, shots[0].module, &shots[1]);
    if (status == LR_OK) status = draw_voxel(demo, album, setups, shots, which);
    shot_finish(&shots[0]);
    shot_finish(&shots[1]);
    return status;
}

static void note_backend(struct demo *demo, const struct setup *setup)
{
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    shot_note_init(&demo->drawn, info);
    shot_note_say(&demo->drawn, info, demo->setup.report);
    snprintf(demo->drawn_by, sizeof(demo->drawn_by), "%s", info->backend);
}

static lr_status draw_voxels(struct demo *demo, struct album *album, struct setup setups[2], const lr_image *water)
{
    char path[PATH_MAX];
    CLI_TRY(open_setup(demo, NULL, &setups[0]));
    note_backend(demo, &setups[0]);
    CLI_TRY(open_setup(demo, water, &setups[1]));
    CLI_TRY(common_make_folder(demo->setup.report, demo->folder)); /* what is asked makes sense */
    for (int which = 0; which < NUM_VOXELS; which++) CLI_TRY(add_voxel(demo, album, setups, which));
    return album_write(album, demo_path(demo, "correspondence.png", path, sizeof(path)), 3,
                       "Correspondence images of three voxels");
}

lr_status demo_correspondence(struct demo *demo)
{
    struct setup setups[2] = {{0}, {0}};
    struct album album = {.report = demo->setup.report, .note = demo->drawn.text};
    lr_image *water = draw_water(demo);
    report_info(demo->setup.report, "drawing correspondence images of three voxels");
    const lr_status status =
        water != NULL ? draw_voxels(demo, &album, setups, water) : report_reason(demo->setup.report);
    album_finish(&album);
    lr_operator_destroy(setups[0].op);
    lr_operator_destroy(setups[1].op);
    lr_image_destroy(water);
    return status;
}

/* --- the panel --- */

static double highest_activity(const lr_image *truth)
{
    double highest = 0;
    const int64_t count = lr_grid_num_voxels(&truth->grid);
    for (int64_t k = 0; k < count; k++) highest = fmax(highest, (double)truth->values[k]);
    return highest;
}

lr_status demo_add_slice(struct demo *demo, const lr_image *image, const char *unit, const char *caption)
{
    const bool activity = unit == NULL;
    const lr_slice_params params = {
        .image = image,
        .plane = LR_PLANE_TRANSAXIAL,
        .pixels_per_mm = pixels_per_mm,
        .high = activity ? 1.2 * highest_activity(demo->truth) : 0,
        .colours = activity ? LR_COLOURS_INVERSE_GREY : LR_COLOURS_PERCEPTUAL,
        .axes = true,
        .colour_bar = true,
        .unit = activity ? "emissions per voxel" : unit,
        .log = &demo->setup.report->log,
    };
    return album_add(&demo->panel, lr_picture_slice(&params), "%s", caption);
}

lr_status demo_write_panel(struct demo *demo)
{
    char path[PATH_MAX], title[128];
    snprintf(title, sizeof(title), "Derenzo phantom in the %s: %.3g million counts", demo->setup.scanner->name,
             1e-6 * demo->counts);
    return album_write(&demo->panel, demo_path(demo, "panel.png", path, sizeof(path)), 3, title);
}
