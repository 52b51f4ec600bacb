/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/guesses_tool.h"

#include "base/log.h"
#include "base/mem.h"
#include "gl/resource.h"
#include "viewer/frame/legend.h"
#include "viewer/frame/panels.h"

#include <lr/picture.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 3, GAP = 6 };

static const double width_units = 376.0;

lr_status guesses_tool_set(struct app *app, int guesses, int local_iterations)
{
    if (guesses < 0 || guesses > LIVE_MOST_GUESSES || local_iterations < 1) {
        return lr_error(&app->log, LR_BAD_INPUT,
                        "%d guesses of %d iterations: take 2 to %d guesses, 0 for none, of 1 "
                        "iteration or more",
                        guesses, local_iterations, LIVE_MOST_GUESSES);
    }
    app->live.request.guesses = guesses;
    app->live.request.local_iterations = local_iterations;
    return LR_OK;
}

/* --- what comes --- */

static void forget(struct guesses_tool *tool)
{
    struct gl_texture *texture = tool->texture;
    free(tool->images);
    *tool = (struct guesses_tool){.texture = texture};
}

void guesses_tool_start(struct app *app)
{
    struct guesses_tool *tool = &app->live.guesses;
    const int guesses = app->live.request.guesses;
    forget(tool);
    tool->asked = guesses > 1 ? guesses : 0;
}

void guesses_tool_close(struct app *app)
{
    struct guesses_tool *tool = &app->live.guesses;
    forget(tool);
    gl_texture_destroy(tool->texture);
    tool->texture = NULL;
}

static lr_status make_room(struct app *app)
{
    struct guesses_tool *tool = &app->live.guesses;
    tool->grid = live_grid(app->live.live);
    const int64_t num_voxels = lr_grid_num_voxels(&tool->grid);
    tool->images = lr_alloc(tool->asked * num_voxels, sizeof(*tool->images), "guesses", &app->log);
    tool->count = tool->images != NULL ? tool->asked : 0;
    tool->asked = tool->count;
    return tool->images != NULL ? LR_OK : LR_FAILED;
}

static void take_rounds(struct app *app)
{
    struct guesses_tool *tool = &app->live.guesses;
    struct live_round next;
    while (live_copy_rounds(app->live.live, tool->rounds, &next, 1) > tool->rounds) {
        const int n = tool->rounds++;
        tool->last = next;
        if (n >= GUESSES_HISTORY) continue;
        for (int k = 0; k < next.count; k++) tool->residuals[k][n] = (float)next.residuals[k];
        tool->composed[n] = (float)next.residual;
        tool->clipped[n] = (float)next.clipped_residual;
        tool->condition[n] = (float)log10(next.condition);
    }
}

/* --- slices --- */

static int find_slice(const struct app *app, const lr_grid *grid)
{
    const double place = floor((app->slices.at_mm[2] - grid->origin_mm[2]) / grid->voxel_mm[2] + 0.5);
    return (int)fmin(fmax(place, 0.0), grid->size[2] - 1.0);
}

/* Pixels of a slice on the screen, and of what stands above it. */
struct tiles {
    int size[2], title, gap;
    int count, columns;
    int all[2];
};

static struct tiles lay_out(const struct app *app)
{
    const struct guesses_tool *tool = &app->live.guesses;
    const lr_grid *grid = &tool->grid;
    const double scale = window_scale(app->window);
    const lr_text_style style = {.size_px = (int)(12.0 * scale)};
    struct tiles tiles = {.title = lr_picture_text_height(&style) + 2,
                          .gap = (int)(GAP * scale),
                          .count = tool->count + 1,
                          .columns = tool->count + 1 < COLUMNS ? tool->count + 1 : COLUMNS};
    tiles.size[0] = (int)((width_units * scale - (COLUMNS - 1) * tiles.gap) / COLUMNS);
    const double shape = grid->size[1] * grid->voxel_mm[1] / (grid->size[0] * grid->voxel_mm[0]);
    tiles.size[1] = (int)fmin(fmax(tiles.size[0] * shape, 1.0), 2.0 * tiles.size[0]);
    const int rows = (tiles.count + tiles.columns - 1) / tiles.columns;
    tiles.all[0] = tiles.columns * (tiles.size[0] + tiles.gap) - tiles.gap;
    tiles.all[1] = rows * (tiles.size[1] + tiles.title + tiles.gap) - tiles.gap;
    return tiles;
}

static void find_corner(const struct tiles *tiles, int k, int corner[2])
{
    corner[0] = k % tiles->columns * (tiles->size[0] + tiles->gap);
    corner[1] = k / tiles->columns * (tiles->size[1] + tiles->title + tiles->gap);
}

/* The last one is the composed image. */
static const float *values_of(const struct app *app, int k)
{
    const struct guesses_tool *tool = &app->live.guesses;
    return k < tool->count           ? tool->images + k * lr_grid_num_voxels(&tool->grid)
           : tool->rounds == 0       ? NULL
           : app->live.image != NULL ? app->live.image->values
                                     : NULL;
}

static void name_tile(const struct guesses_tool *tool, int k, char text[64])
{
    if (k == tool->count)
        snprintf(text, 64, "composed");
    else if (tool->rounds == 0)
        snprintf(text, 64, "guess %d", k + 1);
    else
        snprintf(text, 64, "guess %d, \u03b1 %.3f", k + 1, tool->last.weights[k]);
}

static void paint_tile(const struct app *app, const struct tiles *tiles, const struct guesses_look *look, int k,
                       lr_picture *picture)
{
    const struct guesses_tool *tool = &app->live.guesses;
    const lr_grid *grid = &tool->grid;
    const bool is_negative = k < tool->count && tool->rounds > 0 && tool->last.weights[k] < 0.0;
    const lr_text_style style = {.colour = is_negative ? (lr_colour){237, 120, 51} : (lr_colour){225, 226, 230},
                                 .size_px = (int)(12.0 * window_scale(app->window)),
                                 .most_px = tiles->size[0]};
    const float *values = values_of(app, k);
    char text[64];
    int corner[2];
    find_corner(tiles, k, corner);
    name_tile(tool, k, text);
    lr_picture_text(picture, corner, text, &style);
    corner[1] += tiles->title;
    lr_picture_fill(picture, corner, tiles->size, (lr_colour){38, 40, 46});
    if (values != NULL) {
        const lr_map_params map = {.values = values + (int64_t)look->slice * grid->size[0] * grid->size[1],
                                   .size = {grid->size[0], grid->size[1]},
                                   .drawn_size = {tiles->size[0], tiles->size[1]},
                                   .low = look->range[0],
                                   .high = look->range[1],
                                   .colours = (lr_colour_map)look->colours};
        lr_picture_map(picture, corner, &map);
    }
}

static lr_status upload(struct app *app, const lr_picture *picture)
{
    struct guesses_tool *tool = &app->live.guesses;
    const int64_t count = (int64_t)picture->size[0] * picture->size[1];
    uint8_t *texels = lr_alloc(count, 4, "slices of guesses", &app->log);
    if (texels == NULL) return LR_FAILED;
    for (int64_t n = 0; n < count; n++) {
        memcpy(&texels[4 * n], &picture->rgb[3 * n], 3);
        texels[4 * n + 3] = 255;
    }
    const struct gl_texture *old = tool->texture;
    if (old == NULL || old->size[0] != picture->size[0] || old->size[1] != picture->size[1]) {
        gl_texture_destroy(tool->texture);
        tool->texture = gl_texture_create(app->ctx, &(struct gl_texture_params){.label = "guesses",
                                                                                .format = GL_RGBA8,
                                                                                .width = picture->size[0],
                                                                                .height = picture->size[1]});
    }
    const lr_status status = tool->texture != NULL ? gl_texture_upload(tool->texture, texels) : LR_FAILED;
    free(texels);
    return status;
}

static lr_status paint(struct app *app, const struct tiles *tiles, const struct guesses_look *look)
{
    lr_picture *picture = lr_picture_create(tiles->all, &app->log);
    if (picture == NULL) return LR_FAILED;
    lr_picture_fill(picture, (int[]){0, 0}, picture->size, (lr_colour){22, 23, 28});
    for (int k = 0; k < tiles->count; k++) paint_tile(app, tiles, look, k, picture);
    const lr_status status = upload(app, picture);
    lr_picture_destroy(picture);
    return status;
}

static struct guesses_look find_look(const struct app *app, const struct tiles *tiles)
{
    const struct guesses_tool *tool = &app->live.guesses;
    const double *range = app->ranges[DRAW_LIVE];
    struct guesses_look look = {.image = app->live.serial + tool->rounds,
                                .slice = find_slice(app, &tool->grid),
                                .size = {tiles->all[0], tiles->all[1]},
                                .range = {range[0], fmax(range[1], range[0] + 1e-30)},
                                .colours = (int)app->slices.colours};
    for (int k = 0; k < tool->count; k++) look.serials += tool->serials[k];
    return look;
}

static bool same_look(const struct guesses_look *a, const struct guesses_look *b)
{
    return a->serials == b->serials && a->image == b->image && a->slice == b->slice && a->size[0] == b->size[0] &&
           a->size[1] == b->size[1] && a->range[0] == b->range[0] && a->range[1] == b->range[1] &&
           a->colours == b->colours;
}

lr_status guesses_tool_update(struct app *app)
{
    struct guesses_tool *tool = &app->live.guesses;
    if (tool->asked == 0) return LR_OK;
    if (tool->count == 0) LR_TRY(make_room(app));
    take_rounds(app);
    const int64_t num_voxels = lr_grid_num_voxels(&tool->grid);
    for (int k = 0; k < tool->count; k++)
        (void)live_copy_guess(app->live.live, k, &tool->serials[k], tool->images + k * num_voxels);
    const struct tiles tiles = lay_out(app);
    const struct guesses_look look = find_look(app, &tiles);
    if (app->tool != TOOL_LIVE || look.serials == 0 || same_look(&look, &tool->painted)) return LR_OK;
    tool->painted = look;
    return paint(app, &tiles, &look);
}

/* --- its panel --- */

void guesses_tool_choose(struct app *app)
{
    static const int most[2] = {0, LIVE_MOST_GUESSES}, local[2] = {1, 50};
    struct live_request *request = &app->live.request;
    if (request->family != LIVE_CORRESPONDENCE) return;
    ui_slide("guesses", &request->guesses, most);
    ui_hint("each is made of its own share of the LORs, as by the ranks of a cluster; then they are "
            "composed: x = sum of \u03b1 x[g], with the least residual over all LORs. 0: none");
    if (request->guesses > 1) {
        ui_slide("iterations alone", &request->local_iterations, local);
        ui_hint("of each guess before they are composed");
    }
}

/* What is under the mouse on the picture of slices. */
static void tell_voxel(const struct app *app, const struct tiles *tiles, const double at[2])
{
    const struct guesses_tool *tool = &app->live.guesses;
    const lr_grid *grid = &tool->grid;
    for (int k = 0; k < tiles->count; k++) {
        int corner[2], voxel[3] = {0, 0, tool->painted.slice};
        double mm[3], share[2];
        char name[64];
        find_corner(tiles, k, corner);
        share[0] = (at[0] * tiles->all[0] - corner[0]) / tiles->size[0];
        share[1] = 1.0 - (at[1] * tiles->all[1] - corner[1] - tiles->title) / tiles->size[1];
        const float *values = values_of(app, k);
        if (values == NULL || share[0] < 0.0 || share[0] >= 1.0 || share[1] < 0.0 || share[1] >= 1.0) continue;
        for (int a = 0; a < 3; a++) {
            voxel[a] = a < 2 ? (int)(share[a] * grid->size[a]) : voxel[a];
            mm[a] = grid->origin_mm[a] + voxel[a] * grid->voxel_mm[a];
        }
        name_tile(tool, k, name);
        const struct ui_part part = {{at[0] - 0.02, at[1] - 0.02}, {at[0] + 0.02, at[1] + 0.02}};
        ui_tooltip(&part, "%s: %.6g emissions\nvoxel (%d, %d, %d) at (%.2f, %.2f, %.2f) mm", name,
                   (double)values[(int64_t)voxel[2] * grid->size[0] * grid->size[1] +
                                  (int64_t)voxel[1] * grid->size[0] + voxel[0]],
                   voxel[0], voxel[1], voxel[2], mm[0], mm[1], mm[2]);
    }
}

static void show_slices(struct app *app)
{
    const struct guesses_tool *tool = &app->live.guesses;
    const struct tiles tiles = lay_out(app);
    if (tool->texture == NULL || tool->painted.serials == 0) return;
    const double z_mm = tool->grid.origin_mm[2] + tool->painted.slice * tool->grid.voxel_mm[2];
    ui_text("transaxial slices at z = %.2f mm, x to the right, y upwards", z_mm);
    const double scale = window_scale(app->window);
    const struct ui_image image = {
        .texture = tool->texture, .size = {tiles.all[0] / scale, tiles.all[1] / scale}, .is_top_down = true};
    const struct ui_touch touch = ui_image("##guesses", &image);
    if (touch.is_over) tell_voxel(app, &tiles, touch.at);
    const struct ui_bar bar =
        legend_bar((lr_colour_map)tool->painted.colours, tool->painted.range, "all of them (emissions per voxel)");
    ui_bar(&bar);
}

static void show_weights(const struct guesses_tool *tool)
{
    const struct live_round *last = &tool->last;
    const struct ui_bars bars = {.values = last->weights,
                                 .count = last->count,
                                 .height = 130.0,
                                 .title = "weights \u03b1 of the guesses (their sum is 1)",
                                 .x_label = "guess"};
    ui_bars("##weights", &bars);
}

static void show_residuals(struct app *app)
{
    const struct guesses_tool *tool = &app->live.guesses;
    const int shown = tool->rounds < GUESSES_HISTORY ? tool->rounds : GUESSES_HISTORY;
    struct ui_series series[LIVE_MOST_GUESSES + 1];
    for (int k = 0; k < tool->count; k++)
        series[k] = (struct ui_series){k == 0 ? "guess" : NULL, tool->residuals[k], 0x8a8f99ff};
    series[tool->count] = (struct ui_series){"clipped", tool->clipped, 0x56b4e9ff};
    const struct ui_curve curve = {.values = tool->composed,
                                   .count = shown,
                                   .beside = series,
                                   .num_beside = tool->count + 1,
                                   .name = "composed",
                                   .colour = 0xf0e442ff,
                                   .x = {1.0, shown},
                                   .is_counted = true,
                                   .height = 170.0,
                                   .title = "|y \u2212 b \u2212 Ax|\u00b2 (counts\u00b2)",
                                   .x_label = "composition"};
    panels_take_reading(app, ui_curve("##residuals", &curve));
    const struct ui_curve condition = {.values = tool->condition,
                                       .count = shown,
                                       .x = {1.0, shown},
                                       .is_counted = true,
                                       .height = 110.0,
                                       .title = "log10 of the condition number",
                                       .x_label = "composition"};
    panels_take_reading(app, ui_curve("##condition", &condition));
}

static void show_numbers(const struct guesses_tool *tool)
{
    const struct live_round *last = &tool->last;
    double best = HUGE_VAL;
    for (int k = 0; k < last->count; k++) best = fmin(best, last->residuals[k]);
    if (!ui_table("composition", 2)) return;
    ui_field("composition", "%d, after %d iterations of each guess", tool->rounds, last->iterations);
    ui_field("residual", "%.9g counts\u00b2", last->residual);
    ui_field("of the best guess", "%.9g counts\u00b2", best);
    if (isfinite(last->condition))
        ui_field("condition", "%.4g", last->condition);
    else
        ui_field("condition", "singular: weights of least norm");
    ui_field("clipped", "%lld voxels below 0, %.4g emissions", (long long)last->negative_voxels, last->negative_sum);
    ui_field("residual then", "%.9g counts\u00b2", last->clipped_residual);
    ui_table_end();
}

void guesses_tool_panel(struct app *app)
{
    const struct guesses_tool *tool = &app->live.guesses;
    if (tool->count == 0) return;
    if (tool->rounds > 0) {
        show_numbers(tool);
        show_weights(tool);
    }
    show_slices(app);
    if (tool->rounds > 0) show_residuals(app);
}
