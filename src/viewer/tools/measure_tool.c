/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The tool Measure: statistics of the image on the slices, of all its voxels and of a region of interest, and the values
 * along a line. */
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "viewer/app.h"
#include "viewer/study/survey.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROFILE_MOST = 512, /* values of a profile; the steps along a long line are so large that this number suffices */
    PIECE_VOXELS = 1 << 22, /* voxels that are counted in one frame */
};

/* The shape that a drag in a pane draws while this tool is in front. */
enum hand { HAND_CROSS = 0, HAND_ELLIPSOID, HAND_BOX, HAND_LINE };

/* A survey, and the image for which it was begun. */
struct surveyed {
    struct survey survey;
    enum draw_image image;
    int64_t change; /* draw->changes of the image when the survey was begun */
};

struct measure_state {
    struct surveyed whole, inside; /* the whole image; the region of interest */
    float *slices;                 /* owned: slices that were read from the device */
    int64_t room;                  /* number of values for which `slices` has memory */

    enum hand hand;
    bool is_dragging;
    int pane;          /* the pane in which the drag began */
    double from_mm[3]; /* the point at which the drag began */

    bool has_line;
    double ends_mm[2][3];
    float profile[PROFILE_MOST]; /* values of the voxels along the line; NaN outside the image */
    int count;                   /* 0: the profile must be read again */
    enum draw_image image;       /* the image from which the profile was read */
    int64_t change;              /* draw->changes of this image when the profile was read */
};

/* --- numbers --- */

/* The values of the image on the slices, as its file has them: [z][y][x]. NULL: only the device has the values. */
static const float *host_values(const struct app *app)
{
    const lr_image *const images[DRAW_NUM_IMAGES] = {
        [DRAW_IMAGE] = app->open.image, [DRAW_MU] = app->open.mu, [DRAW_SECOND] = app->open.second};
    const lr_image *image = images[app->slices.image];
    return image != NULL ? image->values : NULL;
}

/* Starts a new survey if the image or the region has changed. Then adds some slices to the survey. */
static lr_status advance(struct app *app, struct surveyed *surveyed, const struct draw_region *region)
{
    struct measure_state *tool = app_state(app, &measure_tool);
    struct survey *survey = &surveyed->survey;
    const enum draw_image image = app->slices.image;
    const struct gl_texture *texture = app->draw->images[image];
    if (texture == NULL) {
        *surveyed = (struct surveyed){.survey.is_done = true};
        return LR_OK;
    }
    const lr_grid *grid = draw_get_grid(app->draw, image);
    const struct draw_region *begun = &survey->region;
    if (surveyed->image != image || surveyed->change != app->draw->changes[image] || begun->shape != region->shape ||
        memcmp(begun->middle_mm, region->middle_mm, sizeof(begun->middle_mm)) != 0 ||
        memcmp(begun->half_mm, region->half_mm, sizeof(begun->half_mm)) != 0 ||
        memcmp(begun->range, region->range, sizeof(begun->range)) != 0) {
        surveyed->image = image;
        surveyed->change = app->draw->changes[image];
        survey_begin(survey, grid, region);
    }
    if (survey->is_done) return LR_OK;
    const int64_t slice = (int64_t)grid->size[0] * grid->size[1], fitting = PIECE_VOXELS / slice;
    const int left = survey->end - survey->next, count = fitting < 1 ? 1 : fitting < left ? (int)fitting : left;
    const float *values = host_values(app);
    if (values != NULL) {
        survey_add(survey, values + survey->next * slice, count);
        return LR_OK;
    }
    if (tool->room < count * slice) {
        free(tool->slices);
        tool->slices = lr_alloc(count * slice, sizeof(*tool->slices), "slices to be measured", &app->log);
        tool->room = tool->slices != NULL ? count * slice : 0;
        if (tool->slices == NULL) return LR_FAILED;
    }
    LR_TRY(gl_texture_read(texture, &(struct gl_box){0, 0, survey->next, grid->size[0], grid->size[1], count},
                           tool->slices));
    survey_add(survey, tool->slices, count);
    return LR_OK;
}

static lr_status update(struct app *app)
{
    static const struct draw_region everywhere = {.shape = DRAW_EVERYWHERE, .range = {-INFINITY, INFINITY}};
    struct measure_state *tool = app_state(app, &measure_tool);
    LR_TRY(advance(app, &tool->whole, &everywhere));
    if (tool->whole.survey.is_done) app->whole = tool->whole.survey;
    LR_TRY(advance(app, &tool->inside, &app->slices.region));

    /* Reads the voxels along the line, in steps of at most half a voxel if PROFILE_MOST values are enough for that. */
    const enum draw_image image = app->slices.image;
    const lr_grid *grid = draw_get_grid(app->draw, image);
    const float *values = host_values(app);
    const bool is_old = tool->image != image || tool->change != app->draw->changes[image] || tool->count == 0;
    if (tool->is_dragging || !tool->has_line || grid == NULL || app->draw->images[image] == NULL || !is_old)
        return LR_OK;
    double steps = 1.0;
    for (int k = 0; k < 3; k++)
        steps = fmax(steps, 2.0 * fabs(tool->ends_mm[1][k] - tool->ends_mm[0][k]) / grid->voxel_mm[k]);
    tool->count = (int)fmin(ceil(steps) + 1.0, PROFILE_MOST);
    tool->image = image;
    tool->change = app->draw->changes[image];
    for (int n = 0; n < tool->count; n++) {
        double point_mm[3];
        int voxel[3];
        for (int k = 0; k < 3; k++)
            point_mm[k] = tool->ends_mm[0][k] + (tool->ends_mm[1][k] - tool->ends_mm[0][k]) * n / (tool->count - 1);
        if (!pick_voxel(grid, point_mm, voxel))
            tool->profile[n] = NAN;
        else if (values != NULL)
            tool->profile[n] = values[voxel[0] + grid->size[0] * (voxel[1] + (int64_t)grid->size[1] * voxel[2])];
        else
            tool->profile[n] = (float)draw_get_voxel(app->draw, image, voxel);
    }
    return LR_OK;
}

static bool is_busy(const struct app *app)
{
    const struct measure_state *tool = app_state(app, &measure_tool);
    return !tool->whole.survey.is_done || !tool->inside.survey.is_done;
}

static double line_mm(const struct measure_state *tool)
{
    double along[3];
    vec_sub(tool->ends_mm[1], tool->ends_mm[0], along);
    return vec_length(along);
}

int measure_tool_profile(const struct app *app, const float **values, double *length_mm)
{
    const struct measure_state *tool = app_state(app, &measure_tool);
    *values = tool->profile;
    *length_mm = line_mm(tool);
    return tool->has_line ? tool->count : 0;
}

static void set_line(struct measure_state *tool, const double from_mm[3], const double to_mm[3])
{
    memcpy(tool->ends_mm[0], from_mm, sizeof(tool->ends_mm[0]));
    memcpy(tool->ends_mm[1], to_mm, sizeof(tool->ends_mm[1]));
    tool->has_line = true;
    tool->count = 0;
}

/* --- the mouse --- */

static bool take(struct app *app, const struct input_event *event)
{
    struct measure_state *tool = app_state(app, &measure_tool);
    struct draw_region *region = &app->slices.region;
    double point_mm[3];
    const bool is_press = event->kind == INPUT_BUTTON && event->is_down;
    const bool is_release = event->kind == INPUT_BUTTON && !event->is_down;
    if (!tool->is_dragging) {
        const bool is_free = app->held_button < 0 && !app->holds_pane && !app->ui->wants_mouse;
        if (!is_press || event->button != INPUT_LEFT || !is_free || app->tool != &measure_tool ||
            tool->hand == HAND_CROSS || (event->modifiers & INPUT_SHIFT) != 0)
            return false;
        tool->pane = panes_point(app, event->at, tool->from_mm);
        tool->is_dragging = tool->pane >= 0;
        return tool->is_dragging;
    }
    if (is_release && event->button == INPUT_LEFT) {
        tool->is_dragging = false;
        return true;
    }
    if (event->kind != INPUT_MOVE) return is_press || event->kind == INPUT_SCROLL || event->kind == INPUT_KEY;
    panes_point_in(app, tool->pane, event->at, point_mm);
    if (tool->hand == HAND_LINE) {
        set_line(tool, tool->from_mm, point_mm);
        return true;
    }
    /* A drag goes from the region's middle to its rim. The region's half size along the third axis is the larger of the
     * other two half sizes. */
    region->shape = tool->hand == HAND_BOX ? DRAW_BOX : DRAW_ELLIPSOID;
    memcpy(region->middle_mm, tool->from_mm, sizeof(region->middle_mm));
    for (int k = 0; k < 3; k++) region->half_mm[k] = fabs(point_mm[k] - tool->from_mm[k]);
    const int *axes = lr_slice_axes[tool->pane];
    region->half_mm[tool->pane] = fmax(region->half_mm[axes[0]], region->half_mm[axes[1]]);
    return true;
}

static void mark(struct app *app)
{
    const struct measure_state *tool = app_state(app, &measure_tool);
    const double scale = app->window->scale;
    for (int axis = 0; axis < PANE_SCENE && tool->has_line; axis++) {
        const struct app_pane *pane = &app->panes[axis];
        const struct flat_view flat = panes_flat(app, axis);
        double ends[2][2];
        if (pane->size[0] < 1.0) continue;
        for (int n = 0; n < 2; n++) {
            flat_place(&flat, tool->ends_mm[n], ends[n]);
            for (int c = 0; c < 2; c++) ends[n][c] = (pane->at[c] + ends[n][c]) / scale;
        }
        ui_clip((double[2]){pane->at[0] / scale, pane->at[1] / scale},
                (double[2]){pane->size[0] / scale, pane->size[1] / scale});
        ui_stroke(ends[0], ends[1], 0xff9f1cff);
        ui_unclip();
    }
}

/* --- the panel --- */

static void show_region(struct app *app)
{
    static const char *const shapes[] = {"none", "box", "ellipsoid", "whole image"};
    struct measure_state *tool = app_state(app, &measure_tool);
    struct draw_region *region = &app->slices.region;
    const struct survey *survey = &tool->inside.survey;
    int shape = (int)region->shape;
    double range[2] = {region->range[0], region->range[1]};
    if (ui_choose("region", &shape, shapes, 4)) region->shape = (enum draw_shape)shape;
    ui_hint("the region of interest: voxels whose middle is in the shape, and whose value is in the range; its voxels "
            "are tinted");
    if (region->shape == DRAW_NO_REGION) return;
    if (region->shape != DRAW_EVERYWHERE) {
        double middle_mm[3], half_mm[3];
        memcpy(middle_mm, region->middle_mm, sizeof(middle_mm));
        memcpy(half_mm, region->half_mm, sizeof(half_mm));
        if (ui_reals("middle (mm)", middle_mm, 3)) memcpy(region->middle_mm, middle_mm, sizeof(middle_mm));
        ui_hint("x, y, z of the region's middle");
        if (ui_reals("half size (mm)", half_mm, 3))
            for (int k = 0; k < 3; k++) region->half_mm[k] = fabs(half_mm[k]);
        ui_hint("from the middle to the rim along x, y, z");
    }
    if (ui_reals("values from, to", range, 2) && range[0] <= range[1]) memcpy(region->range, range, sizeof(range));
    ui_hint("the threshold: voxels with other values are left out");
    if (ui_button("all values", true)) {
        region->range[0] = -INFINITY;
        region->range[1] = INFINITY;
    }
    ui_hint("no threshold");
    ui_beside();
    if (ui_button("from 41 % of the largest", survey->is_done && survey->voxels > 0))
        region->range[0] = 0.41 * survey->largest;
    ui_hint("leaves out what is below 41 %% of the region's largest value, as is usual for tumours");
    if (!survey->is_done) {
        ui_toned(UI_DIM, "counting");
    } else if (ui_table("region", 2)) {
        const lr_grid *grid = &survey->grid;
        const double voxel_mm3 = grid->voxel_mm[0] * grid->voxel_mm[1] * grid->voxel_mm[2];
        ui_field("voxels", "%lld", (long long)survey->voxels);
        ui_field("volume", "%.6g ml", 1e-3 * voxel_mm3 * (double)survey->voxels);
        if (survey->voxels > 0) {
            ui_field("mean", "%.7g", survey->mean);
            ui_field("standard deviation", "%.7g", survey->deviation);
            ui_field("total", "%.7g", survey->total);
            ui_field("smallest", "%.7g", survey->smallest);
            ui_field("largest", "%.7g", survey->largest);
        }
        ui_table_end();
    }
}

static void show_panel(struct app *app)
{
    static const char *const hands[] = {"moves the cross-hair", "draws an ellipsoid", "draws a box", "draws a line"};
    struct measure_state *tool = app_state(app, &measure_tool);
    int hand = (int)tool->hand;
    if (app->draw->images[app->slices.image] == NULL) {
        ui_toned(UI_DIM, "open an image first");
        return;
    }
    if (ui_choose("drag in a pane", &hand, hands, 4)) tool->hand = (enum hand)hand;
    ui_hint("what the left button does in the panes while this tab is in front");
    ui_line();
    show_region(app);
    ui_line();
    if (!tool->has_line) {
        ui_toned(UI_DIM, "no line is drawn");
        return;
    }
    double ends_mm[2][3];
    memcpy(ends_mm, tool->ends_mm, sizeof(ends_mm));
    bool is_changed = ui_reals("line from (mm)", ends_mm[0], 3);
    ui_hint("x, y, z of the line's first end");
    is_changed = ui_reals("to (mm)", ends_mm[1], 3) || is_changed;
    ui_hint("x, y, z of its second end");
    if (is_changed) set_line(tool, ends_mm[0], ends_mm[1]);
    ui_text("length %.2f mm", line_mm(tool));
    const struct ui_curve curve = {.values = tool->profile,
                                   .count = tool->count,
                                   .x = {0.0, line_mm(tool)},
                                   .height = 154.0,
                                   .title = scene_images[app->slices.image].name,
                                   .x_label = "along the line (mm)"};
    app_take_reading(app, ui_curve("##profile of the image", &curve));
    if (ui_button("remove the line", true)) tool->has_line = false;
    ui_hint("its profile goes with it");
}

/* --- scripts --- */

static lr_status act_region(struct app *app, const struct command_words *words)
{
    static const char *const shapes[] = {"off", "box", "ellipsoid", "threshold", NULL};
    struct draw_region region = {.range = {-INFINITY, INFINITY}};
    double values[8];
    int shape = 0;
    LR_TRY(command_choice(&app->log, words, 1, shapes, &shape));
    const int least = shape == DRAW_NO_REGION ? 0 : shape == DRAW_EVERYWHERE ? 1 : 6;
    const int given = words->count - 2, most = shape == DRAW_NO_REGION ? 0 : shape == DRAW_EVERYWHERE ? 2 : 8;
    if (given < least || given > most)
        return lr_error(&app->log, LR_BAD_INPUT,
                        "a region needs a middle and half sizes, X Y Z HX HY HZ, and may have "
                        "values FROM TO; a threshold has only these");
    for (int k = 0; k < given; k++) LR_TRY(command_real(&app->log, words, 2 + k, &values[k]));
    region.shape = (enum draw_shape)shape;
    for (int k = 0; k < 3 && least == 6; k++) {
        region.middle_mm[k] = values[k];
        region.half_mm[k] = fabs(values[3 + k]);
    }
    for (int k = 0; k < 2; k++) {
        const int at = (least == 6 ? 6 : 0) + k;
        if (at < given) region.range[k] = values[at];
    }
    memcpy(&app->slices.region, &region, sizeof(region));
    return LR_OK;
}

static lr_status act_line(struct app *app, const struct command_words *words)
{
    struct measure_state *tool = app_state(app, &measure_tool);
    double values[6];
    if (words->count == 2 && strcmp(words->words[1], "off") == 0) {
        tool->has_line = false;
        return LR_OK;
    }
    if (words->count != 7) return lr_error(&app->log, LR_BAD_INPUT, "a line has two ends: X Y Z X Y Z, or is off");
    LR_TRY(command_reals(&app->log, words, values));
    set_line(tool, &values[0], &values[3]);
    return LR_OK;
}

static lr_status act_hand(struct app *app, const struct command_words *words)
{
    static const char *const hands[] = {"cross", "ellipsoid", "box", "line", NULL};
    struct measure_state *tool = app_state(app, &measure_tool);
    int hand = 0;
    LR_TRY(command_choice(&app->log, words, 1, hands, &hand));
    tool->hand = (enum hand)hand;
    app_choose(app, &measure_tool);
    return LR_OK;
}

static bool get_value(struct app *app, const char *name, struct command_value *value)
{
    const struct measure_state *tool = app_state(app, &measure_tool);
    const struct survey *survey = &tool->inside.survey, *whole = &app->whole;
    const lr_grid *grid = &survey->grid;
    const bool is_empty = survey->voxels == 0, has_image = whole->voxels > 0;
    const struct command_number numbers[] = {
        {"region.voxels", (double)survey->voxels},
        {"region.ml", 1e-3 * grid->voxel_mm[0] * grid->voxel_mm[1] * grid->voxel_mm[2] * (double)survey->voxels},
        {"region.mean", is_empty ? NAN : survey->mean},
        {"region.deviation", is_empty ? NAN : survey->deviation},
        {"region.total", survey->total},
        {"region.smallest", is_empty ? NAN : survey->smallest},
        {"region.largest", is_empty ? NAN : survey->largest},
        {"shown.mean", has_image ? whole->mean : NAN},
        {"shown.smallest", has_image ? whole->smallest : NAN},
        {"shown.largest", has_image ? whole->largest : NAN},
        {"line.mm", tool->has_line ? line_mm(tool) : NAN},
        {0},
    };
    char middle[COMMAND_TEXT], half[COMMAND_TEXT];
    const struct command_text texts[] = {
        {"region.middle_mm", command_write_place(app->slices.region.middle_mm, middle)},
        {"region.half_mm", command_write_place(app->slices.region.half_mm, half)},
        {0},
    };
    return command_pick(numbers, texts, name, value);
}

static lr_status open_measure(struct app *app)
{
    struct measure_state *tool = app_state(app, &measure_tool);
    app->slices.region.range[0] = -INFINITY;
    app->slices.region.range[1] = INFINITY;
    tool->whole.survey.is_done = tool->inside.survey.is_done = true;
    return LR_OK;
}

static void close_measure(struct app *app)
{
    struct measure_state *tool = app_state(app, &measure_tool);
    free(tool->slices);
}

static const struct command commands[] = {
    {"region", "off | threshold FROM [TO] | box|ellipsoid X Y Z HX HY HZ [FROM [TO]]", 1, 9, .act = act_region},
    {"line", "off | X Y Z X Y Z", 1, 6, .act = act_line},
    {"hand", "cross|ellipsoid|box|line", 1, 1, .act = act_hand},
    {0},
};

const struct viewer_tool measure_tool = {.name = "Measure",
                                         .word = "measure",
                                         .mode = LR_SESSION_MEASURE,
                                         .state_bytes = sizeof(struct measure_state),
                                         .open = open_measure,
                                         .close = close_measure,
                                         .update = update,
                                         .panel = show_panel,
                                         .take = take,
                                         .mark = mark,
                                         .is_busy = is_busy,
                                         .commands = commands,
                                         .get_value = get_value};
