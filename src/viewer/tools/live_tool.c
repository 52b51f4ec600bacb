/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "gl/resource.h"
#include "viewer/app.h"
#include "viewer/study/live.h"

#include <lr/picture.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIVE_HISTORY = 512, GUESSES_HISTORY = 256 };

/* Names in scripts, in the order of the enums. */
static const char *const algorithm_names[] = {"osem", "ramla", NULL};
static const char *const family_names[] = {"correspondence", "direct", "listmode", NULL};
static const char *const element_names[] = {"tube", "line", "exact", NULL};

/* All inputs of the picture of slices. The picture is painted again when one of them changes. */
struct guesses_look {
    int64_t serials; /* sum of the serial numbers of all guesses */
    int64_t image;   /* serial number of the composed image */
    int slice, size[2];
    double range[2];
    int colours;
};

/* Guesses as they arrive from the reconstruction. A zero struct has no guesses. */
struct guesses {
    int count;  /* guesses of the shown reconstruction; 0 = none are composed */
    int asked;  /* guesses requested at the last start */
    int rounds; /* number of compositions so far */
    struct live_round last;
    float residuals[LIVE_MOST_GUESSES][GUESSES_HISTORY]; /* residuals of the first compositions */
    float composed[GUESSES_HISTORY], clipped[GUESSES_HISTORY], condition[GUESSES_HISTORY];
    lr_grid grid;
    float *images; /* owned [count][num_voxels] */
    int64_t serials[LIVE_MOST_GUESSES];
    struct gl_texture *texture; /* owned */
    struct guesses_look painted;
};

struct live_tool_state {
    struct live *live;
    struct live_request request;
    bool on_device; /* the image stays on the device, if possible */
    struct live_where where;
    struct handover *handover; /* owned; the scene borrows its texture */
    bool compares;             /* compares measured data with the open image */
    enum live_state state;
    lr_image *image; /* owned: the newest image on the host */
    int64_t serial;
    int num_iterations;
    struct live_iteration last;
    float likelihood[LIVE_HISTORY], difference[LIVE_HISTORY]; /* values of the first iterations */
    char scanner[128];                                        /* the scanner that was open at the start */
    char error[JOB_SENTENCE];
    struct guesses guesses; /* used if the image is composed of guesses */
};

/* --- guesses that are composed, their weights, residuals and slices --- */

enum { COLUMNS = 3, GAP = 6 };

static const double width_units = 376.0;

/* Sizes of a slice and of its title on the screen, in pixels. */
struct tiles {
    int size[2], title, gap;
    int count, columns;
    int all[2];
};

static struct tiles lay_out(const struct app *app)
{
    struct live_tool_state *state = app_state(app, &live_tool);
    const struct guesses *tool = &state->guesses;
    const lr_grid *grid = &tool->grid;
    const double scale = app->window->scale;
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

/* Tile k: a guess, or the composed image, which is the last tile. */
struct tile {
    int corner[2];       /* upper left corner of the title, in pixels */
    char name[64];       /* the title */
    const float *values; /* NULL = no image yet */
};

static struct tile tile_at(const struct app *app, const struct tiles *tiles, int k)
{
    const struct live_tool_state *live = app_state(app, &live_tool);
    const struct guesses *tool = &live->guesses;
    struct tile tile = {.corner = {k % tiles->columns * (tiles->size[0] + tiles->gap),
                                   k / tiles->columns * (tiles->size[1] + tiles->title + tiles->gap)}};
    if (k == tool->count) {
        snprintf(tile.name, sizeof(tile.name), "composed");
        tile.values = tool->rounds > 0 && live->image != NULL ? live->image->values : NULL;
    } else {
        tile.values = tool->images + k * lr_grid_num_voxels(&tool->grid);
        if (tool->rounds == 0)
            snprintf(tile.name, sizeof(tile.name), "guess %d", k + 1);
        else
            snprintf(tile.name, sizeof(tile.name), "guess %d, \u03b1 %.3f", k + 1, tool->last.weights[k]);
    }
    return tile;
}

static lr_status update_guesses(struct app *app)
{
    struct live_tool_state *live = app_state(app, &live_tool);
    struct guesses *tool = &live->guesses;
    if (tool->asked == 0) return LR_OK;
    if (tool->count == 0) {
        tool->grid = live->where.grid;
        tool->images =
            lr_alloc(tool->asked * lr_grid_num_voxels(&tool->grid), sizeof(*tool->images), "guesses", &app->log);
        tool->count = tool->asked = tool->images != NULL ? tool->asked : 0;
        if (tool->images == NULL) return LR_FAILED;
    }
    struct live_round next;
    while (live_copy_round(live->live, tool->rounds, &next)) {
        const int n = tool->rounds++;
        tool->last = next;
        if (n >= GUESSES_HISTORY) continue;
        for (int k = 0; k < next.count; k++) tool->residuals[k][n] = (float)next.residuals[k];
        tool->composed[n] = (float)next.residual;
        tool->clipped[n] = (float)next.clipped_residual;
        tool->condition[n] = (float)log10(next.condition);
    }

    /* The picture of the slices is painted again if something that it shows has changed. */
    const lr_grid *grid = &tool->grid;
    const struct tiles tiles = lay_out(app);
    const double *range = app->ranges[DRAW_LIVE];
    const double place = pick_index(grid, 2, app->slices.at_mm[2]);
    struct guesses_look look = {.image = live->serial + tool->rounds,
                                .slice = (int)fmin(fmax(place, 0.0), grid->size[2] - 1.0),
                                .size = {tiles.all[0], tiles.all[1]},
                                .range = {range[0], fmax(range[1], range[0] + 1e-30)},
                                .colours = (int)app->slices.colours};
    for (int k = 0; k < tool->count; k++) {
        (void)live_copy_guess(live->live, k, &tool->serials[k], tool->images + k * lr_grid_num_voxels(grid));
        look.serials += tool->serials[k];
    }
    const struct guesses_look *painted = &tool->painted;
    if (app->tool != &live_tool || look.serials == 0 ||
        (look.serials == painted->serials && look.image == painted->image && look.slice == painted->slice &&
         look.size[0] == painted->size[0] && look.size[1] == painted->size[1] && look.range[0] == painted->range[0] &&
         look.range[1] == painted->range[1] && look.colours == painted->colours))
        return LR_OK;
    tool->painted = look;
    const int64_t count = (int64_t)tiles.all[0] * tiles.all[1];
    lr_picture *picture = lr_picture_create(tiles.all, &app->log);
    uint8_t *texels = lr_alloc(count, 4, "slices of guesses", &app->log);
    lr_status status = picture != NULL && texels != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) {
        lr_picture_fill(picture, (int[]){0, 0}, picture->size, (lr_colour){22, 23, 28});
        for (int k = 0; k < tiles.count; k++) {
            const bool is_negative = k < tool->count && tool->rounds > 0 && tool->last.weights[k] < 0.0;
            const lr_text_style style = {.colour = is_negative ? (lr_colour){237, 120, 51} : (lr_colour){225, 226, 230},
                                         .size_px = (int)(12.0 * app->window->scale),
                                         .most_px = tiles.size[0]};
            struct tile tile = tile_at(app, &tiles, k);
            lr_picture_text(picture, tile.corner, tile.name, &style);
            tile.corner[1] += tiles.title;
            lr_picture_fill(picture, tile.corner, tiles.size, (lr_colour){38, 40, 46});
            if (tile.values != NULL) {
                lr_map_params map = lr_slice_map(grid, tile.values, 2, look.slice);
                memcpy(map.drawn_size, tiles.size, sizeof(map.drawn_size));
                map.low = look.range[0];
                map.high = look.range[1];
                map.colours = (lr_colour_map)look.colours;
                lr_picture_map(picture, tile.corner, &map);
            }
        }

        for (int64_t n = 0; n < count; n++) {
            memcpy(&texels[4 * n], &picture->rgb[3 * n], 3);
            texels[4 * n + 3] = 255;
        }
        status = draw_set_picture(&tool->texture, app->ctx, "guesses", tiles.all, texels);
    }
    free(texels);
    lr_picture_destroy(picture);
    return status;
}

static void show_guesses(struct app *app)
{
    struct live_tool_state *state = app_state(app, &live_tool);
    const struct guesses *tool = &state->guesses;
    const struct live_round *last = &tool->last;
    if (tool->count == 0) return;

    if (tool->rounds > 0) {
        double best = HUGE_VAL;
        for (int k = 0; k < last->count; k++) best = fmin(best, last->residuals[k]);
        if (ui_table("composition", 2)) {
            ui_field("composition", "%d, after %d iterations of each guess", tool->rounds, last->iterations);
            ui_field("residual", "%.9g counts\u00b2", last->residual);
            ui_field("of the best guess", "%.9g counts\u00b2", best);
            if (isfinite(last->condition))
                ui_field("condition", "%.4g", last->condition);
            else
                ui_field("condition", "singular: weights of least norm");
            ui_field("clipped", "%lld voxels below 0, %.4g emissions", (long long)last->negative_voxels,
                     last->negative_sum);
            ui_field("residual then", "%.9g counts\u00b2", last->clipped_residual);
            ui_table_end();
        }
        const struct ui_bars bars = {.values = last->weights,
                                     .count = last->count,
                                     .height = 130.0,
                                     .title = "weights \u03b1 of the guesses (their sum is 1)",
                                     .x_label = "guess"};
        ui_bars("##weights", &bars);
    }

    const struct tiles tiles = lay_out(app);
    const lr_grid *grid = &tool->grid;
    if (tool->texture != NULL && tool->painted.serials != 0) {
        const double z_mm = grid->origin_mm[2] + tool->painted.slice * grid->voxel_mm[2];
        ui_text("transaxial slices at z = %.2f mm, x to the left, y upwards", z_mm);
        const double scale = app->window->scale;
        const struct ui_image image = {
            .texture = tool->texture, .size = {tiles.all[0] / scale, tiles.all[1] / scale}, .is_top_down = true};
        const struct ui_touch touch = ui_image("##guesses", &image);

        for (int k = 0; k < tiles.count && touch.is_over; k++) {
            const double *at = touch.at;
            int voxel[3] = {0, 0, tool->painted.slice};
            double mm[3], share[2];
            const struct tile tile = tile_at(app, &tiles, k);
            share[0] = 1.0 - (at[0] * tiles.all[0] - tile.corner[0]) / tiles.size[0];
            share[1] = 1.0 - (at[1] * tiles.all[1] - tile.corner[1] - tiles.title) / tiles.size[1];
            if (tile.values == NULL || share[0] < 0.0 || share[0] >= 1.0 || share[1] < 0.0 || share[1] >= 1.0) continue;
            for (int a = 0; a < 3; a++) {
                voxel[a] = a < 2 ? (int)(share[a] * grid->size[a]) : voxel[a];
                mm[a] = grid->origin_mm[a] + voxel[a] * grid->voxel_mm[a];
            }
            const struct ui_part part = {{at[0] - 0.02, at[1] - 0.02}, {at[0] + 0.02, at[1] + 0.02}};
            ui_tooltip(&part, "%s: %.6g emissions\nvoxel (%d, %d, %d) at (%.2f, %.2f, %.2f) mm", tile.name,
                       (double)tile.values[(int64_t)voxel[2] * grid->size[0] * grid->size[1] +
                                           (int64_t)voxel[1] * grid->size[0] + voxel[0]],
                       voxel[0], voxel[1], voxel[2], mm[0], mm[1], mm[2]);
        }
        const struct ui_bar bar =
            scene_bar((lr_colour_map)tool->painted.colours, tool->painted.range, "all of them (emissions per voxel)");
        ui_bar(&bar, NULL);
    }
    if (tool->rounds == 0) return;

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
    app_take_reading(app, ui_curve("##residuals", &curve));
    const struct ui_curve condition = {.values = tool->condition,
                                       .count = shown,
                                       .x = {1.0, shown},
                                       .is_counted = true,
                                       .height = 110.0,
                                       .title = "log10 of the condition number",
                                       .x_label = "composition"};
    app_take_reading(app, ui_curve("##condition", &condition));
}

/* --- opening and starting --- */

static lr_status open_live(struct app *app)
{
    struct live_tool_state *tool = app_state(app, &live_tool);
    tool->live = live_create(&app->log);
    if (tool->live == NULL) return LR_FAILED;
    tool->request.subsets = 4;
    tool->request.iterations = 10;
    tool->request.counts = 1e6;
    tool->request.seed = 1;
    tool->request.local_iterations = 2;
    (void)lr_view_set_complete(&(lr_view_set){0}, &tool->request.views, &app->log);
    tool->where = live_get_where(tool->live);
    tool->on_device = !gl_context_limits(app->ctx)->software;
    return LR_OK;
}

static void close_live(struct app *app)
{
    struct live_tool_state *tool = app_state(app, &live_tool);
    live_destroy(tool->live);
    free(tool->guesses.images);
    gl_texture_destroy(tool->guesses.texture);
    if (app->draw != NULL && app->draw->images[DRAW_LIVE] != NULL) draw_set_image(app->draw, DRAW_LIVE, NULL);
    handover_destroy(tool->handover);
    lr_image_destroy(tool->image);
}

static void start(struct app *app)
{
    struct live_tool_state *tool = app_state(app, &live_tool);
    struct lr_kept_error last;
    lr_log_keep_error(&last, tool->error, sizeof(tool->error));
    tool->error[0] = '\0';
    tool->num_iterations = 0;
    struct live_request *request = &tool->request;
    request->simulates = false;
    request->histo = direct_tool_histo(app);
    request->kernel = *direct_tool_kernel(app);
    const bool is_measured = live_is_measured(&app->open, request);
    request->simulates = !is_measured;
    request->reference = is_measured && tool->compares ? app->open.image : NULL;

    struct handover *before = tool->handover;
    const lr_grid grid = live_grid_for(&app->open, request);
    const bool is_wanted = tool->on_device && grid.size[0] > 0;
    tool->handover = is_wanted ? handover_create(app->ctx, &grid) : NULL;

    tool->request.handover = tool->handover;
    if (live_start(tool->live, &app->open, &tool->request, &last.log) != LR_OK) {
        handover_destroy(tool->handover);
        tool->handover = before; /* a running reconstruction may still use the old handover */
        return;
    }
    snprintf(tool->scanner, sizeof(tool->scanner), "%s", app->open.scanner != NULL ? app->open.scanner->name : "");
    free(tool->guesses.images);
    tool->guesses = (struct guesses){.texture = tool->guesses.texture,
                                     .asked = tool->request.guesses > 1 ? tool->request.guesses : 0};
    if (before != NULL) {
        draw_set_image(app->draw, DRAW_LIVE, NULL);
        handover_destroy(before);
    }
}

/* Sets the relaxation for the next start. errors: LR_BAD_INPUT, logged, if relaxation is not above 0 or fall is
 * below 0. */
static lr_status relax(struct app *app, double relaxation, double fall)
{
    struct live_tool_state *tool = app_state(app, &live_tool);
    if (!(relaxation >= 0.0) || !(fall >= 0.0)) {
        return lr_error(&app->log, LR_BAD_INPUT,
                        "relaxation %g, fall %g: the relaxation must be above 0, or 0 for the "
                        "default, its fall 0 or more",
                        relaxation, fall);
    }
    tool->request.relaxation = relaxation;
    tool->request.relaxation_fall = fall;
    return LR_OK;
}

/* Sets the views of simulated counts for the next start of family direct. errors, logged: LR_BAD_INPUT for numbers
 * below 1, LR_USAGE for too many. */
static lr_status choose_views(struct app *app, int azimuths, int tilts)
{
    struct live_tool_state *tool = app_state(app, &live_tool);
    const lr_view_set wished = {azimuths, tilts, tool->request.views.acceptance_deg};
    if (azimuths < 1 || tilts < 1)
        return lr_error(&app->log, LR_BAD_INPUT, "%d azimuths, %d tilts: give 1 of each or more", azimuths, tilts);
    return lr_view_set_complete(&wished, &tool->request.views, &app->log);
}

static lr_status update(struct app *app)
{
    struct live_tool_state *tool = app_state(app, &live_tool);
    struct job_report report;
    const enum live_state before = tool->state;
    tool->state = live_poll(tool->live, &report);
    if (tool->state == LIVE_FAILED && before != LIVE_FAILED)
        snprintf(tool->error, sizeof(tool->error), "%s", report.error);
    /* Histo-images have no factors here, so their images are not in emissions. */
    app->units[DRAW_LIVE] = tool->request.family == LIVE_DIRECT ? "of its own scale" : NULL;

    struct live_iteration next;
    while (live_copy_history(tool->live, tool->num_iterations, &next, 1) > tool->num_iterations) {
        if (tool->num_iterations < LIVE_HISTORY) {
            tool->likelihood[tool->num_iterations] = (float)next.log_likelihood;
            tool->difference[tool->num_iterations] = (float)next.difference;
        }
        tool->last = next;
        tool->num_iterations++;
    }

    /* If the image is on the device, the scene uses its texture without owning it. If the image is on the host, the
     * scene copies it. */
    tool->where = live_get_where(tool->live);
    const lr_grid grid = tool->where.grid;
    double largest = 0.0;
    bool is_new = false, is_first = false;
    if (tool->where.is_on_device) {
        is_new = handover_take(tool->handover);
        is_first = app->draw->images[DRAW_LIVE] == NULL;
        if (is_new) {
            const struct handover *handover = tool->handover;
            largest = handover->largest[handover->shown];
            draw_lend_image(app->draw, DRAW_LIVE, handover->textures[handover->shown], &handover->grid, largest);
        }
    } else if (grid.size[0] != 0) {
        if (tool->image == NULL || memcmp(&tool->image->grid, &grid, sizeof(grid)) != 0) {
            lr_image_destroy(tool->image);
            tool->image = lr_image_create(&grid, &app->log);
        }
        if (tool->image == NULL) return LR_FAILED;
        is_first = tool->serial == 0;
        is_new = live_copy_image(tool->live, &tool->serial, tool->image->values);
        for (int64_t v = 0; is_new && v < lr_grid_num_voxels(&grid); v++)
            largest = fmax(largest, (double)tool->image->values[v]);
        if (is_new) app_put_image(app, DRAW_LIVE, tool->image, largest);
    }
    if (is_new) {
        app->ranges[DRAW_LIVE][1] = fmax(largest, 1e-30);
        if (is_first || app->slices.image == DRAW_LIVE) app_show_image(app, DRAW_LIVE);
    }
    return tool->where.is_on_device ? LR_OK : update_guesses(app);
}

/* --- the panel --- */

static void choose_data(struct app *app)
{
    struct live_tool_state *tool = app_state(app, &live_tool);
    struct live_request *request = &tool->request;
    int seed = (int)request->seed;
    const enum live_family family = request->family;
    const lr_histo_images *histo = family == LIVE_DIRECT ? direct_tool_histo(app) : NULL;
    const bool has_data =
        family != LIVE_DIRECT && app->open.data != NULL && (family != LIVE_LISTMODE || app->open.data_are_events);
    if (histo != NULL)
        ui_toned(UI_DIM, "measured counts: the %d histo-images that are open", histo->num_views);
    else if (has_data)
        ui_toned(UI_DIM, family == LIVE_LISTMODE ? "measured events: %s" : "measured data: %s", app->open.data_path);
    if (histo != NULL || has_data) {
        if (app->open.image != NULL) {
            ui_check("compare with the open image", &tool->compares);
            ui_hint("the distance to it is told after each iteration; it must lie on the same grid");
        }
        return;
    }

    static const char *const missing[] = {"data are", "histo-images are", "list mode is"};
    ui_toned(UI_DIM, "no %s open: counts are drawn from the image", missing[request->family]);
    if (request->family == LIVE_LISTMODE) {
        if (ui_button("open events...", true)) {
            app->opener_kind = OPENER_DATA;
            app->shows_opener = true;
        }
        ui_hint("a list-mode file of this scanner");
    }
    ui_reals("counts", &request->counts, 1);
    ui_hint("number of photon pairs that are drawn");
    if (ui_integers("seed", &seed, 1) && seed >= 0) request->seed = (uint64_t)seed;
    ui_hint("the same seed draws the same counts");
    bool has_noise = !request->without_noise;
    ui_check("Poisson noise", &has_noise);
    ui_hint("else each LOR has its expected count");
    request->without_noise = !has_noise;
}

static void choose_method(struct app *app)
{
    struct live_tool_state *state = app_state(app, &live_tool);
    static const char *const families[] = {"correspondence", "DIRECT", "list mode"};
    static const char *const algorithms[] = {"OSEM", "block RAMLA"};
    static const int subsets[2] = {1, 32}, iterations[2] = {0, 200}, local[2] = {1, 50};
    static const int samples[2] = {0, 64}, guesses[2] = {0, LIVE_MOST_GUESSES};
    struct live_request *request = &state->request;
    int family = (int)request->family, algorithm = (int)request->algorithm;
    if (ui_choose("family", &family, families, 3)) request->family = (enum live_family)family;
    ui_hint("DIRECT reconstructs histo-images, with the kernel of its tool; list mode events one by "
            "one, with their times of flight");
    if (request->family == LIVE_LISTMODE) {
        static const char *const elements[] = {"tubes of response", "thin lines", "exact"};
        int kernel = (int)request->elements;
        if (ui_choose("elements", &kernel, elements, 3)) request->elements = (lr_listmode_kernel)kernel;
        ui_hint("of events: shares of a tube around the line, of a thin ray, or solid angles, which take long");
    }
    if (request->family == LIVE_DIRECT && direct_tool_histo(app) == NULL) {
        static const int azimuths[2] = {1, 120}, tilts[2] = {1, 16};
        int views[2] = {request->views.azimuths, request->views.tilts};
        const bool has_azimuths = ui_slide("azimuths", &views[0], azimuths);
        ui_hint("directions about the axis in which counts are drawn");
        const bool has_tilts = ui_slide("tilts", &views[1], tilts);
        ui_hint("directions out of the plane across the axis");
        if (has_azimuths || has_tilts) (void)choose_views(app, views[0], views[1]);
    }

    if (ui_choose("algorithm", &algorithm, algorithms, 2)) request->algorithm = (lr_recon_algorithm)algorithm;
    ui_hint("OSEM multiplies by the ratio of measured to estimated counts; block RAMLA relaxes that step");
    if (request->algorithm == LR_ALGORITHM_RAMLA) {
        double values[2] = {request->relaxation, request->relaxation_fall};
        if (ui_reals("relaxation, fall", values, 2)) (void)relax(app, values[0], values[1]);
        ui_hint("L and F: iteration n = 0, 1, ... goes L / (1 + F n) of the way that keeps every voxel "
                "positive; L = 0 is 10 / (9 + subsets)");
    }
    ui_slide("subsets", &request->subsets, subsets);
    ui_hint("OSEM with one subset is ML-EM");
    ui_slide("iterations", &request->iterations, iterations);
    ui_hint("0: until stopped");
    if (request->family == LIVE_CORRESPONDENCE) {
        ui_slide("points a voxel", &request->samples, samples);
        ui_hint("N, points of each voxel that its elements are averaged over; 0: by the crystals' pitch");
        ui_slide("guesses", &request->guesses, guesses);
        ui_hint("each is made of its own share of the LORs, as by the ranks of a cluster; then they are "
                "composed: x = sum of \u03b1 x[g], with the least residual over all LORs. 0: none");
        if (request->guesses > 1) {
            ui_slide("iterations alone", &request->local_iterations, local);
            ui_hint("of each guess before they are composed");
        }
    }
}

static void show_panel(struct app *app)
{
    static const char *const states[] = {"ready", "preparing", "running", "paused", "done", "failed"};
    struct job_report report;
    struct live_tool_state *tool = app_state(app, &live_tool);
    choose_method(app);
    if (tool->request.family != LIVE_LISTMODE) { /* list-mode images always pass through the host */
        ui_check("image stays on the device", &tool->on_device);
        ui_hint("it changes there and is shown from there, by backend compute, of DIRECT by cuda where "
                "that is; else the backend that auto takes computes, and the image passes through the host");
    }

    choose_data(app);

    const bool runs = tool->state == LIVE_RUNNING || tool->state == LIVE_PREPARING;
    const bool is_paused = tool->state == LIVE_PAUSED;
    const bool has_scanner = app->open.scanner != NULL || tool->request.family == LIVE_DIRECT;
    if (ui_button("start", !runs && !is_paused && has_scanner)) start(app);
    ui_hint("reconstructs from a uniform image on; it is shown as it grows");
    ui_beside();
    if (ui_button(is_paused ? "go on" : "pause", runs || is_paused))
        live_control(tool->live, is_paused ? LIVE_RESUME : LIVE_PAUSE);
    ui_hint("waits after the iteration that runs, or goes on");
    ui_beside();
    if (ui_button("one step", runs || is_paused)) live_control(tool->live, LIVE_STEP);
    ui_hint("one more iteration, then a pause");
    ui_beside();
    if (ui_button("stop##live", runs || is_paused)) live_control(tool->live, LIVE_STOP);
    ui_hint("ends it; the image stays");

    live_poll(tool->live, &report);
    if (tool->state == LIVE_PREPARING || tool->state == LIVE_RUNNING)
        ui_progress(report.share, report.doing);
    else
        ui_toned(UI_DIM, "%s", states[tool->state]);
    if (tool->error[0] != '\0') ui_toned(UI_BAD, "%s", tool->error);
    const char *shown = tool->scanner;
    const char *open = app->open.scanner != NULL ? app->open.scanner->name : "";
    if (tool->state != LIVE_IDLE && shown[0] != '\0' && strncmp(shown, open, 127) != 0)
        ui_toned(UI_WARNING, "all below is of %s, which is not open any more", shown);

    show_guesses(app);
    const int count = tool->num_iterations < LIVE_HISTORY ? tool->num_iterations : LIVE_HISTORY;
    const struct live_iteration *last = &tool->last;
    if (count > 0) {
        /* The curve's first value belongs to the uniform first image. This value may be so small that the curve of the
         * other values would look flat. The curve then begins with the second iteration. */
        const float *likelihood = tool->likelihood;
        enum { FEW = 5 };
        static const double most = 20.0;
        float highest = -HUGE_VALF;
        for (int k = 1; k < count; k++) highest = fmaxf(highest, likelihood[k]);
        const double rise = count > FEW ? (double)highest - likelihood[1] : 0.0;
        const int first = rise > 0.0 && (double)likelihood[1] - likelihood[0] > most * rise ? 1 : 0;

        struct ui_curve curve = {.values = tool->likelihood + first,
                                 .count = count - first,
                                 .x = {1.0 + first, count},
                                 .is_counted = true,
                                 .height = 144.0,
                                 .title = first > 0 ? "log-likelihood, from the second on" : "log-likelihood",
                                 .x_label = tool->guesses.count > 0 ? "composition" : "iteration"};
        ui_text("iteration %d, %.2f s, log-likelihood %.9g", last->number, last->seconds, last->log_likelihood);
        app_take_reading(app, ui_curve("##likelihood", &curve));
        if (isfinite(last->difference)) {
            curve.values = tool->difference;
            curve.count = count;
            curve.x[0] = 1.0;
            curve.height = 124.0;
            curve.title = "distance to the reference over its norm";
            app_take_reading(app, ui_curve("##difference", &curve));
        }
        ui_text("measured %.6g, estimated %.6g counts", last->measured_counts, last->estimated_counts);
    }

    const lr_traffic *traffic = &last->traffic;
    if (tool->num_iterations > 0 && traffic->to_device + traffic->to_host == 0 && !tool->where.is_on_device &&
        tool->where.why[0] == '\0') {
        ui_toned(UI_DIM, "backend %s, on the host, where the image is", tool->where.backend);
    } else if (tool->num_iterations > 0) {
        ui_toned(UI_DIM, "backend %s; %lld bytes to the device and %lld back in iteration %d", tool->where.backend,
                 (long long)traffic->to_device, (long long)traffic->to_host, last->number);
        ui_toned(UI_DIM, "%s",
                 tool->where.is_on_device     ? "the image is on the device"
                 : tool->where.why[0] != '\0' ? tool->where.why
                                              : "the image passes through the host");
    }

    if (app->draw->images[DRAW_LIVE] == NULL) return;
    if (ui_button("show the reconstruction", true)) app_show_image(app, DRAW_LIVE);
    ui_hint("on the slices and in the panes");
}

/* --- sessions --- */

static void write_session(const struct app *app, struct lr_view_session *session)
{
    struct live_tool_state *tool = app_state(app, &live_tool);
    const struct live_request *request = &tool->request;
    session->has_recon = true;
    session->recon_family = (int)request->family;
    session->recon_algorithm = (int)request->algorithm;
    session->recon_elements = (int)request->elements;
    session->recon_subsets = request->subsets;
}

static void read_session(struct app *app, const struct lr_view_session *session)
{
    struct live_tool_state *tool = app_state(app, &live_tool);
    struct live_request *request = &tool->request;
    if (!session->has_recon) return;
    request->family = (enum live_family)session->recon_family;
    request->algorithm = (lr_recon_algorithm)session->recon_algorithm;
    request->elements = (lr_listmode_kernel)session->recon_elements;
    request->subsets = session->recon_subsets > 0 ? session->recon_subsets : request->subsets;
}

/* --- scripts --- */

static lr_status act_recon(struct app *app, const struct command_words *words)
{
    static const char *const names[] = {"start", "pause", "resume", "step", "stop", "device", "host", NULL};
    struct live_tool_state *tool = app_state(app, &live_tool);
    struct live_request *request = &tool->request;
    int what = 0;
    LR_TRY(command_choice(&app->log, words, 1, names, &what));
    for (int k = 2; k < words->count; k++) {
        int *const numbers[] = {&request->subsets, &request->iterations, &request->samples};
        LR_TRY(command_integer(&app->log, words, k, numbers[k - 2]));
    }
    if (request->samples < 0) {
        request->samples = 0;
        return lr_error(&app->log, LR_BAD_INPUT, "a voxel has 1 point or more; 0 chooses by the crystals' pitch");
    }
    switch (what) {
    case 0: start(app); break;
    case 1: live_control(tool->live, LIVE_PAUSE); break;
    case 2: live_control(tool->live, LIVE_RESUME); break;
    case 3: live_control(tool->live, LIVE_STEP); break;
    case 4: live_control(tool->live, LIVE_STOP); break;
    default: tool->on_device = what == 5; break;
    }
    return LR_OK;
}

static const char *const settings[] = {"algorithm", "family", "elements", "relaxation", "fall", "counts",
                                       "azimuths",  "tilts",  "guesses",  "local",      NULL};

static lr_status set(struct app *app, const struct command_words *words, int setting)
{
    static const char *const *const choices[] = {algorithm_names, family_names, element_names};
    struct live_tool_state *tool = app_state(app, &live_tool);
    struct live_request *request = &tool->request;
    double real = 0.0;
    int value = 0;
    LR_TRY(setting < 3   ? command_choice(&app->log, words, 2, choices[setting], &value)
           : setting < 6 ? command_real(&app->log, words, 2, &real)
                         : command_integer(&app->log, words, 2, &value));
    switch (setting) { /* counted in the order of the names above */
    case 0: request->algorithm = (lr_recon_algorithm)value; return LR_OK;
    case 1: request->family = (enum live_family)value; return LR_OK;
    case 2: request->elements = (lr_listmode_kernel)value; return LR_OK;
    case 3: return relax(app, real, request->relaxation_fall);
    case 4: return relax(app, request->relaxation, real);
    case 5:
        if (!(real >= 1)) return lr_error(&app->log, LR_BAD_INPUT, "%s counts: give 1 or more", words->words[2]);
        request->counts = real;
        return LR_OK;
    case 6: return choose_views(app, value, request->views.tilts);
    case 7: return choose_views(app, request->views.azimuths, value);
    default: break;
    }
    const int guesses = setting == 8 ? value : request->guesses;
    const int local = setting == 9 ? value : request->local_iterations;
    if (guesses < 0 || guesses > LIVE_MOST_GUESSES || local < 1) {
        return lr_error(&app->log, LR_BAD_INPUT,
                        "%d guesses of %d iterations: take 2 to %d guesses, 0 for none, of 1 iteration or more",
                        guesses, local, LIVE_MOST_GUESSES);
    }
    request->guesses = guesses;
    request->local_iterations = local;
    return LR_OK;
}

/* Writes "1.5,2.25", or "none" if there are no numbers. */
static const char *write_numbers(const double *numbers, int count, char text[COMMAND_TEXT])
{
    size_t length = 0;
    snprintf(text, COMMAND_TEXT, "none");
    for (int k = 0; k < count; k++) {
        length += (size_t)snprintf(text + length, COMMAND_TEXT - length, "%s%.*g", k > 0 ? "," : "",
                                   count > 12 ? 8 : 10, numbers[k]);
        length = length < COMMAND_TEXT ? length : COMMAND_TEXT - 1;
    }
    return text;
}

static bool get_value(struct app *app, const char *name, struct command_value *value)
{
    const struct live_tool_state *tool = app_state(app, &live_tool);
    const struct guesses *guesses = &tool->guesses;
    const struct live_round *round = guesses->rounds > 0 ? &guesses->last : NULL;
    const bool has_last = tool->num_iterations > 0;
    char error[COMMAND_TEXT], weights[COMMAND_TEXT], residuals[COMMAND_TEXT];
    snprintf(error, sizeof(error), "%.255s", tool->error[0] != '\0' ? tool->error : "none");
    const struct command_number numbers[] = {
        {"live.iterations", tool->num_iterations},
        {"live.log_likelihood", has_last ? tool->last.log_likelihood : 0.0},
        {"live.on_device", tool->where.is_on_device},
        {"live.to_device", has_last ? (double)tool->last.traffic.to_device : 0.0},
        {"live.to_host", has_last ? (double)tool->last.traffic.to_host : 0.0},
        {"compose.rounds", guesses->rounds},
        {"compose.condition", round != NULL ? round->condition : NAN},
        {"compose.residual", round != NULL ? round->residual : NAN},
        {"compose.clipped_residual", round != NULL ? round->clipped_residual : NAN},
        {"compose.negative_voxels", round != NULL ? (double)round->negative_voxels : NAN},
        {0},
    };
    const struct command_text texts[] = {
        {"live.backend", tool->where.backend},
        {"live.error", error},
        {"compose.weights", write_numbers(guesses->last.weights, round != NULL ? round->count : 0, weights)},
        {"compose.residuals", write_numbers(guesses->last.residuals, round != NULL ? round->count : 0, residuals)},
        {0},
    };
    return command_pick(numbers, texts, name, value);
}

static const struct command commands[] = {
    {"recon", "start|pause|resume|step|stop|device|host [SUBSETS [ITERATIONS [N]]]", 1, 4, .act = act_recon},
    {0},
};

static bool is_busy(const struct app *app)
{
    struct live_tool_state *tool = app_state(app, &live_tool);
    return tool->state == LIVE_PREPARING || tool->state == LIVE_RUNNING;
}

static void cancel(struct app *app)
{
    struct live_tool_state *tool = app_state(app, &live_tool);
    live_control(tool->live, LIVE_STOP);
}

const struct viewer_tool live_tool = {.name = "Recon",
                                      .word = "live",
                                      .mode = LR_SESSION_RECON,
                                      .state_bytes = sizeof(struct live_tool_state),
                                      .open = open_live,
                                      .close = close_live,
                                      .update = update,
                                      .panel = show_panel,
                                      .is_busy = is_busy,
                                      .cancel = cancel,
                                      .write_session = write_session,
                                      .read_session = read_session,
                                      .commands = commands,
                                      .settings = settings,
                                      .set = set,
                                      .get_value = get_value};
