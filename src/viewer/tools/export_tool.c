/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Slices as pictures and as tables, the profile of the line as a table, and pictures of the scene as it turns. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/output.h"
#include "viewer/app.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXPORT_PATH = 1024, TURN_FRAMES = 36, TURN_MOST = 3600, PICTURE_PIXELS = 512 };

struct export_state {
    int axis; /* slice that the panel saves */

    /* the turning scene: pictures PREFIX-001.png, PREFIX-002.png and so on, one in each frame of the window */
    char prefix[EXPORT_PATH];
    int count, next;          /* count 0: no turn */
    struct camera camera;     /* the camera of the next picture */
    struct gl_target *target; /* owned: as large as the scene was at the start */
};

/* --- pictures --- */

static struct gl_target *create_target(struct app *app, int width, int height)
{
    return gl_target_create(app->ctx, &(struct gl_target_params){.label = "picture to be saved",
                                                                 .width = width,
                                                                 .height = height,
                                                                 .colour_formats = {GL_RGBA8},
                                                                 .depth = true});
}

/* Settings of a picture that fills its target. No module is highlighted. */
static struct draw_params picture_params(const struct app *app, const struct gl_target *target,
                                         const struct camera_view *view)
{
    struct draw_params params = scene_draw_params(app);
    params.view = view;
    params.hovered_module = -1;
    memcpy(&params.viewport[2], target->size, sizeof(target->size));
    return params;
}

/* Writes a slice as its pane shows it, without marks and without the colour of the region. The shorter side of a voxel is a whole number of pixels. */
static lr_status write_slice_picture(struct app *app, int axis, const char *path)
{
    const lr_grid *grid = panes_grid(app);
    struct flat_view flat = {.axis = axis, .pixel_mm = HUGE_VAL};
    struct camera_view view;
    int size[2], most = 1;
    for (int c = 0; c < 2; c++) {
        flat.pixel_mm = fmin(flat.pixel_mm, grid->voxel_mm[lr_slice_axes[axis][c]]);
        most = grid->size[lr_slice_axes[axis][c]] > most ? grid->size[lr_slice_axes[axis][c]] : most;
    }
    flat.pixel_mm /= fmax(floor((double)PICTURE_PIXELS / most), 1.0);
    for (int k = 0; k < 3; k++) flat.middle_mm[k] = grid->origin_mm[k] + 0.5 * (grid->size[k] - 1) * grid->voxel_mm[k];
    for (int c = 0; c < 2; c++) {
        const int side = lr_slice_axes[axis][c];
        flat.size[c] = fmax(floor(grid->size[side] * grid->voxel_mm[side] / flat.pixel_mm + 0.5), 1.0);
        size[c] = (int)fmin(flat.size[c], 16384.0);
        flat.size[c] = size[c];
    }
    flat_camera(&flat, &view);
    struct gl_target *target = create_target(app, size[0], size[1]);
    if (target == NULL) return LR_FAILED;
    struct draw_params params = picture_params(app, target, &view);
    params.slices.region.shape = DRAW_NO_REGION;
    lr_status status = draw_pane(app->draw, target, &params, axis);
    if (status == LR_OK) status = app_write_target(app, target, path);
    gl_target_destroy(target);
    return status;
}

/* --- tables --- */

/* Writes the values of a slice in the orientation of its pane: the first row is the uppermost row. Row 0 and column 0
 * contain the positions of the voxels in mm. */
static lr_status write_slice_table(struct app *app, int axis, const char *path)
{
    const enum draw_image image = app->slices.image;
    const lr_grid *grid = panes_grid(app);
    const int across = lr_slice_axes[axis][0], upwards = lr_slice_axes[axis][1];
    const int columns = grid->size[across], rows = grid->size[upwards];
    const bool is_projected = app->slices.is_projected;
    int first[3] = {0}, size[3];
    memcpy(size, grid->size, sizeof(size));
    if (!is_projected) {
        const double slice = pick_index(grid, axis, app->slices.at_mm[axis]);
        if (!(slice >= 0.0 && slice < grid->size[axis]))
            return lr_error(&app->log, LR_USAGE, "the %s slice is outside of the image: move the cross-hair into it",
                            scene_plane_names[axis]);
        first[axis] = (int)slice;
        size[axis] = 1;
    }
    const struct gl_box box = {first[0], first[1], first[2], size[0], size[1], size[2]};
    const int64_t stride[3] = {1, size[0], (int64_t)size[0] * size[1]};
    float *values = lr_alloc(stride[2] * size[2], sizeof(*values), "a slice to be saved", &app->log);
    struct lr_output output;
    lr_status status = values != NULL ? gl_texture_read(app->draw->images[image], &box, values) : LR_FAILED;
    if (status == LR_OK) status = lr_output_open(&output, path, &app->log);
    const bool is_open = status == LR_OK;
    for (int row = -1; row < rows && status == LR_OK; row++) {
        for (int column = -1; column < columns && status == LR_OK; column++) {
            char text[48];
            const int i = columns - 1 - column, j = rows - 1 - row; /* voxel indices grow to the left and upwards */
            double number = grid->origin_mm[across] + i * grid->voxel_mm[across];
            if (row >= 0 && column >= 0) {
                const float *voxel = values + i * stride[across] + j * stride[upwards];
                float most = voxel[0];
                for (int k = 1; k < size[axis]; k++) most = fmaxf(most, voxel[k * stride[axis]]);
                number = (double)most;
            } else if (row >= 0) {
                number = grid->origin_mm[upwards] + j * grid->voxel_mm[upwards];
            }
            int length = snprintf(text, sizeof(text), "%.9g", number);
            if (row < 0 && column < 0)
                length = snprintf(text, sizeof(text), "%c mm \\ %c mm", "xyz"[upwards], "xyz"[across]);
            text[length++] = column + 1 < columns ? ',' : '\n';
            status = lr_output_write(&output, text, (size_t)length);
        }
    }
    if (is_open) status = lr_output_finish(&output);
    free(values);
    return status;
}

static lr_status write_profile(struct app *app, const char *path)
{
    const float *values;
    double length_mm;
    const int count = measure_tool_profile(app, &values, &length_mm);
    struct lr_output output;
    if (count == 0) return lr_error(&app->log, LR_USAGE, "there is no line: draw one with the tool Measure");
    LR_TRY(lr_output_open(&output, path, &app->log));
    (void)lr_output_write(&output, "mm,value\n", 9); /* lr_output_finish reports a failure */
    for (int k = 0; k < count; k++) {
        char text[64];
        const int length = isnan(values[k]) ? snprintf(text, sizeof(text), "%.9g,\n", length_mm * k / (count - 1))
                                            : snprintf(text, sizeof(text), "%.9g,%.9g\n", length_mm * k / (count - 1),
                                                       (double)values[k]);
        (void)lr_output_write(&output, text, (size_t)length);
    }
    return lr_output_finish(&output);
}

/* --- saving --- */

/* Writes a picture or a table, as the ending of the path requires. what: 0 .. 2 = the slice across x, y or z; 3 = the
 * profile. */
static lr_status save(struct app *app, int what, const char *path)
{
    const bool is_picture = lr_path_ends(path, ".png");
    if (panes_grid(app) == NULL || app->draw->images[app->slices.image] == NULL)
        return lr_error(&app->log, LR_USAGE, "there is no image to save: open one first");
    if (!lr_path_ends(path, ".csv") && (!is_picture || what == 3))
        return lr_error(&app->log, LR_USAGE, "%s: a slice is saved as .png or .csv, a profile as .csv", path);
    LR_TRY(app_check_output(app, path));
    LR_TRY(what == 3    ? write_profile(app, path)
           : is_picture ? write_slice_picture(app, what, path)
                        : write_slice_table(app, what, path));
    app_say(app, LR_LOG_INFO, "saved: %s", path);
    return LR_OK;
}

static void end_turn(struct app *app)
{
    struct export_state *tool = app_state(app, &export_tool);
    gl_target_destroy(tool->target);
    tool->target = NULL;
    tool->count = 0;
}

static lr_status begin_turn(struct app *app, const char *prefix, int count)
{
    struct export_state *tool = app_state(app, &export_tool);
    if (count < 1 || count > TURN_MOST)
        return lr_error(&app->log, LR_BAD_INPUT, "a turn has 1 to %d pictures, not %d", TURN_MOST, count);
    if (strlen(prefix) + 16 > EXPORT_PATH)
        return lr_error(&app->log, LR_BAD_INPUT, "the name of the pictures is too long: %s", prefix);
    if (app->area_size[0] < 1.0) return lr_error(&app->log, LR_USAGE, "nothing has been drawn yet that could be saved");
    end_turn(app);
    tool->target = create_target(app, (int)app->area_size[0], (int)app->area_size[1]);
    if (tool->target == NULL) return LR_FAILED;
    snprintf(tool->prefix, sizeof(tool->prefix), "%s", prefix);
    tool->count = count;
    tool->next = 0;
    tool->camera = app->camera;
    return LR_OK;
}

/* Writes the next picture of the turning scene, with the turn's own copy of the scene's camera. */
static lr_status update(struct app *app)
{
    struct export_state *tool = app_state(app, &export_tool);
    if (tool->count == 0) return LR_OK;
    const int *size = tool->target->size;
    struct camera_view view;
    char path[EXPORT_PATH + 16];
    camera_view(&tool->camera, (double)size[0] / size[1], &view);
    tool->camera.turn_deg += 360.0 / tool->count;
    snprintf(path, sizeof(path), "%.1008s-%03d.png", tool->prefix, ++tool->next);
    lr_status status = app_check_output(app, path);
    const struct draw_params params = picture_params(app, tool->target, &view);
    if (status == LR_OK) status = draw_scene(app->draw, tool->target, &params);
    if (status == LR_OK) status = app_write_target(app, tool->target, path);
    if (status != LR_OK) app->failure = app->failure == LR_OK ? status : app->failure;
    if (status == LR_OK && tool->next == tool->count)
        app_say(app, LR_LOG_INFO, "saved: %d pictures, %s last", tool->count, path);
    if (status != LR_OK || tool->next == tool->count) end_turn(app);
    return LR_OK;
}

static bool is_busy(const struct app *app)
{
    const struct export_state *tool = app_state(app, &export_tool);
    return tool->count > 0;
}

/* --- the panel --- */

void export_tool_panel(struct app *app)
{
    static const char *const whats[] = {"sagittal slice", "coronal slice", "transaxial slice", "profile of the line"};
    struct export_state *tool = app_state(app, &export_tool);
    ui_choose("what", &tool->axis, whats, 4);
    ui_hint("which numbers are saved, of the image that is shown; at the cross-hair");
    if (ui_button("save as PNG", tool->axis < 3)) (void)save(app, tool->axis, app_choose_path(app, ".png"));
    ui_hint("a picture of the slice as its pane shows it, without marks, in the working folder");
    ui_beside();
    if (ui_button("save as CSV", true)) (void)save(app, tool->axis, app_choose_path(app, ".csv"));
    ui_hint("a table of the values with their places in mm, in the working folder");
    if (tool->count > 0) {
        ui_progress((double)tool->next / tool->count, "the scene turns");
    } else if (ui_button("save the turning scene", true)) {
        char prefix[EXPORT_PATH];
        const char *first = app_choose_path(app, "-001.png");
        snprintf(prefix, sizeof(prefix), "%.*s", (int)(strlen(first) - strlen("-001.png")), first);
        (void)begin_turn(app, prefix, TURN_FRAMES);
    }
    ui_hint("%d pictures of the scene while it turns once, of which other programs make a film", TURN_FRAMES);
}

/* --- scripts --- */

static lr_status act_export(struct app *app, const struct command_words *words)
{
    static const char *const names[] = {"sagittal", "coronal", "transaxial", "line", NULL};
    int what = 0;
    LR_TRY(command_choice(&app->log, words, 1, names, &what));
    return save(app, what, words->words[2]);
}

static lr_status act_turn(struct app *app, const struct command_words *words)
{
    int count = 0;
    LR_TRY(command_integer(&app->log, words, 2, &count));
    return begin_turn(app, words->words[1], count);
}

static const struct command commands[] = {
    {"export", "sagittal|coronal|transaxial|line FILE.png|FILE.csv", 2, 2, .act = act_export, .looks = true},
    {"turn", "PREFIX COUNT", 2, 2, .act = act_turn},
    {0},
};

const struct viewer_tool export_tool = {.state_bytes = sizeof(struct export_state),
                                        .update = update,
                                        .is_busy = is_busy,
                                        .close = end_turn,
                                        .cancel = end_turn,
                                        .commands = commands};
