/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Mouse, keys, marks and scripts of the three slice panes. All panes have the same scale and middle. The cross-hair of a
 * pane marks the planes of the other two panes. */
#include "base/log.h"
#include "viewer/app.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const pane_names[] = {"sagittal", "coronal", "transaxial", "scene", "four", NULL};

/* The quantity that a drag in a pane changes. */
enum pane_drag { DRAG_NOTHING = 0, DRAG_CROSS, DRAG_WINDOW, DRAG_MIDDLE };

struct panes_state {
    enum pane_drag drag;
    int pane, button;    /* the pane in which the button was pressed, and the button */
    double from[2];      /* the place at which the button was pressed */
    double window[2];    /* lowest and highest value shown when the button was pressed */
    double offset_mm[3]; /* app->pane_offset_mm when the button was pressed */
    bool has_moved;      /* the mouse has moved since the button was pressed */
    double pressed_s;    /* time of the last press; two presses in a short time enlarge the pane */
};

static const double zoom_most = 64.0, zoom_step = 1.1;
static const double double_click_s = 0.4;

/* --- mouse and keys --- */

/* Moves the cross-hair by voxels along an axis. */
static void step(struct app *app, int axis, double voxels)
{
    const lr_grid *shown = panes_grid(app), *grid = shown != NULL ? shown : &app->open.grid;
    double point_mm[3];
    memcpy(point_mm, app->slices.at_mm, sizeof(point_mm));
    point_mm[axis] += voxels * grid->voxel_mm[axis];
    panes_cross(app, point_mm);
}

static void follow_drag(struct app *app, const double at[2])
{
    struct panes_state *tool = app_state(app, &panes_tool);
    const double right = at[0] - tool->from[0], down = at[1] - tool->from[1];
    const double scale = app->window->scale;
    double point_mm[3];
    if (tool->drag == DRAG_CROSS) {
        panes_point_in(app, tool->pane, at, point_mm);
        panes_cross(app, point_mm);
    } else if (tool->drag == DRAG_WINDOW) { /* a drag to the right widens the window; a drag upwards raises its level */
        const double width = tool->window[1] - tool->window[0];
        const double level = 0.5 * (tool->window[0] + tool->window[1]) - down / (200.0 * scale) * width;
        const double half = 0.5 * width * exp2(right / (100.0 * scale));
        app_set_window(app, level - half, level + half);
    } else if (tool->drag == DRAG_MIDDLE) {
        const double pixel_mm = panes_flat(app, tool->pane).pixel_mm;
        for (int c = 0; c < 2; c++) {
            const int axis = lr_slice_axes[tool->pane][c];
            app->pane_offset_mm[axis] = tool->offset_mm[axis] + (c == 0 ? right : down) * pixel_mm;
        }
    }
}

/* Shows one pane or the scene alone; if a part is already alone, shows all four parts again. */
static void enlarge(struct app *app, int pane)
{
    app->alone = app->alone == PANE_FOUR ? pane : PANE_FOUR;
}

static bool take_button(struct app *app, const struct input_event *event)
{
    struct panes_state *tool = app_state(app, &panes_tool);
    if (!event->is_down) {
        const bool is_mine = tool->drag != DRAG_NOTHING && event->button == tool->button;
        if (is_mine && tool->drag == DRAG_CROSS && !tool->has_moved) app_click(app);
        if (is_mine) tool->drag = DRAG_NOTHING;
        app->holds_pane = app->holds_pane && !is_mine;
        return is_mine;
    }
    const int pane = panes_at(app, event->at);
    const double now_s = app->window->is_seen ? app->now_s : (double)app->num_frames / 60.0;
    if (pane < 0 || pane == PANE_SCENE || app->ui->wants_mouse || app->held_button >= 0 || tool->drag != DRAG_NOTHING)
        return false;
    const bool is_left = event->button == INPUT_LEFT;
    if (is_left && now_s - tool->pressed_s < double_click_s && pane == tool->pane &&
        hypot(event->at[0] - tool->from[0], event->at[1] - tool->from[1]) < 4.0) {
        enlarge(app, pane);
        tool->pressed_s = -1.0;
        return true;
    }
    *tool = (struct panes_state){.pane = pane, .button = event->button, .pressed_s = is_left ? now_s : -1.0};
    tool->drag = event->button == INPUT_MIDDLE                      ? DRAG_MIDDLE
                 : is_left && (event->modifiers & INPUT_SHIFT) == 0 ? DRAG_CROSS
                                                                    : DRAG_WINDOW;
    app->holds_pane = true;
    tool->window[0] = app->slices.low;
    tool->window[1] = app->slices.high;
    memcpy(tool->from, event->at, sizeof(tool->from));
    memcpy(tool->offset_mm, app->pane_offset_mm, sizeof(tool->offset_mm));
    if (tool->drag == DRAG_CROSS) follow_drag(app, event->at);
    return true;
}

static bool take(struct app *app, const struct input_event *event)
{
    struct panes_state *tool = app_state(app, &panes_tool);
    const bool is_key = event->kind == INPUT_KEY && event->is_down && !app->ui->wants_keys;
    const int at = panes_at(app, event->kind == INPUT_KEY ? app->mouse : event->at), under = at == PANE_SCENE ? -1 : at;
    if (event->kind == INPUT_BUTTON) return take_button(app, event);
    if (event->kind == INPUT_MOVE && tool->drag != DRAG_NOTHING) {
        tool->has_moved = tool->has_moved || hypot(event->at[0] - tool->from[0], event->at[1] - tool->from[1]) > 0.0;
        if (tool->has_moved) follow_drag(app, event->at);
        return true;
    }
    if (event->kind == INPUT_SCROLL && under >= 0 && !app->ui->wants_mouse) {
        if ((event->modifiers & INPUT_CONTROL) != 0)
            app->pane_zoom = fmin(fmax(app->pane_zoom * pow(zoom_step, event->by[1]), 1.0 / zoom_most), zoom_most);
        else
            step(app, under, event->by[1] > 0.0 ? ceil(event->by[1]) : floor(event->by[1]));
        return true;
    }
    if (!is_key || (event->modifiers & INPUT_CONTROL) != 0) return false;
    const int pane = under >= 0 ? under : 2;
    switch (event->key) {
    case INPUT_KEY_PAGE_UP: step(app, pane, 1.0); return true;
    case INPUT_KEY_PAGE_DOWN: step(app, pane, -1.0); return true;
    case INPUT_KEY_LEFT: step(app, lr_slice_axes[pane][0], 1.0); return true;
    case INPUT_KEY_RIGHT: step(app, lr_slice_axes[pane][0], -1.0); return true;
    case INPUT_KEY_UP: step(app, lr_slice_axes[pane][1], 1.0); return true;
    case INPUT_KEY_DOWN: step(app, lr_slice_axes[pane][1], -1.0); return true;
    case 'T': enlarge(app, under >= 0 ? under : PANE_SCENE); return true;
    default: return false;
    }
}

/* --- marks --- */

static const uint32_t letter_colour = 0xf2f2f2ff, scale_colour = 0xd8d8d8ff;

/* Letters at the ends of each axis, for a patient who lies on the back, head first: the letter where the axis begins,
 * and the letter where it ends. */
static const char *const letters[3][2] = {{"L", "R"}, {"P", "A"}, {"I", "S"}};

/* Marks of a pane, in units of the screen. */
static void mark_pane(struct app *app, int axis)
{
    const struct draw_slices *slices = &app->slices;
    const struct app_pane *pane = &app->panes[axis];
    const struct flat_view flat = panes_flat(app, axis);
    const lr_grid *grid = panes_grid(app);
    const double scale = app->window->scale, letter = 14.0, edge = 20.0, at_mm = slices->at_mm[axis];
    const double at[2] = {pane->at[0] / scale, pane->at[1] / scale};
    const double size[2] = {pane->size[0] / scale, pane->size[1] / scale};
    double cross[2];
    char text[96];
    flat_place(&flat, slices->at_mm, cross);
    ui_clip(at, size);
    for (int c = 0; c < 2; c++) { /* each line shows the plane of the slice in another pane */
        const double hole = 6.0, top = c == 0 ? edge + 16.0 : edge, place = at[c] + cross[c] / scale,
                     middle = at[1 - c] + cross[1 - c] / scale;
        const uint32_t colour = (draw_axis_colours[lr_slice_axes[axis][c]] & 0xffffff00u) | 0xb0;
        const double ends[4] = {at[1 - c] + top, middle - hole, middle + hole, at[1 - c] + size[1 - c] - edge};
        for (int n = 0; n < 4; n += 2) {
            if (ends[n] >= ends[n + 1]) continue;
            double from[2], to[2];
            from[c] = to[c] = place;
            from[1 - c] = ends[n];
            to[1 - c] = ends[n + 1];
            ui_stroke(from, to, colour);
        }
    }
    const char *const *across = letters[lr_slice_axes[axis][0]], *const *upwards = letters[lr_slice_axes[axis][1]];
    ui_label((double[2]){at[0] + 4.0, at[1] + 0.5 * (size[1] - letter)}, letter_colour, across[1]);
    ui_label((double[2]){at[0] + size[0] - 12.0, at[1] + 0.5 * (size[1] - letter)}, letter_colour, across[0]);
    ui_label((double[2]){at[0] + 0.5 * size[0] - 4.0, at[1] + letter + 6.0}, letter_colour, upwards[1]);
    ui_label((double[2]){at[0] + 0.5 * size[0] - 4.0, at[1] + size[1] - letter - 5.0}, letter_colour, upwards[0]);

    if (slices->is_projected)
        snprintf(text, sizeof(text), "%s, maximum", pane_names[axis]);
    else
        snprintf(text, sizeof(text), "%s %.0f: %c = %.2f mm", pane_names[axis], pick_index(grid, axis, at_mm),
                 "xyz"[axis], at_mm);
    ui_label((double[2]){at[0] + 6.0, at[1] + 3.0}, draw_axis_colours[axis], text);

    /* A scale bar of 1, 2 or 5 times a power of ten mm, at most a third of the pane's width. */
    const double most_mm = size[0] / 3.0 * flat.pixel_mm * scale;
    const struct ticks ticks = ticks_make((double[2]){0.0, most_mm}, 3, false);
    if (ticks.count > 1) {
        const double mm = ticks.values[1], length = mm / (flat.pixel_mm * scale), y = at[1] + size[1] - 8.0;
        const double right = at[0] + size[0] - 8.0, left = right - length;
        snprintf(text, sizeof(text), "%g mm", mm);
        ui_stroke((double[2]){left, y}, (double[2]){right, y}, scale_colour);
        ui_stroke((double[2]){left, y - 4.0}, (double[2]){left, y}, scale_colour);
        ui_stroke((double[2]){right, y - 4.0}, (double[2]){right, y}, scale_colour);
        double wide[2];
        ui_text_size(text, 0.0, wide);
        ui_label((double[2]){right - wide[0], y - letter - 5.0}, scale_colour, text);
    }
    ui_unclip();
}

static void mark(struct app *app)
{
    for (int k = 0; k < PANE_SCENE; k++)
        if (app->panes[k].size[0] > 0.0) mark_pane(app, k);
}

/* --- scripts --- */

static lr_status act_panes(struct app *app, const struct command_words *words)
{
    int which = 0;
    LR_TRY(command_choice(&app->log, words, 1, pane_names, &which));
    app->alone = which == NUM_PANES ? PANE_FOUR : which;
    panes_arrange(app);
    return LR_OK;
}

static lr_status act_cross(struct app *app, const struct command_words *words)
{
    double point_mm[3];
    LR_TRY(command_reals(&app->log, words, point_mm));
    panes_cross(app, point_mm);
    return LR_OK;
}

static lr_status act_combine(struct app *app, const struct command_words *words)
{
    int way = 0, second = (int)app->slices.second;
    double opacity = app->slices.opacity;
    LR_TRY(command_choice(&app->log, words, 1, lr_session_mixes, &way));
    if (words->count > 2) LR_TRY(command_choice(&app->log, words, 2, scene_image_words, &second));
    if (words->count > 3) LR_TRY(command_real(&app->log, words, 3, &opacity));
    if (way > 0 && app->draw->images[second] == NULL)
        return lr_error(&app->log, LR_FAILED, "there is no %s to combine with: open it first",
                        scene_image_words[second]);
    if (!(opacity >= 0.0 && opacity <= 1.0))
        return lr_error(&app->log, LR_BAD_INPUT, "opacity is from 0 to 1, not %g", opacity);
    app->slices.opacity = opacity;
    app->slices.mix = (enum draw_mix)way;
    app->slices.second = (enum draw_image)second;
    return LR_OK;
}

static bool get_value(struct app *app, const char *name, struct command_value *value)
{
    const struct draw_slices *slices = &app->slices;
    const lr_grid *grid = panes_grid(app);
    const struct flat_view flat = panes_flat(app, 0);
    int voxel[3] = {-1, -1, -1};
    const bool is_inside = grid != NULL && pick_voxel(grid, slices->at_mm, voxel);
    char cross[COMMAND_TEXT] = "none", middle[COMMAND_TEXT], boxes[NUM_PANES][COMMAND_TEXT];
    if (is_inside) snprintf(cross, sizeof(cross), "%d,%d,%d", voxel[0], voxel[1], voxel[2]);
    for (int k = 0; k < NUM_PANES; k++) {
        const struct app_pane *pane = &app->panes[k];
        snprintf(boxes[k], COMMAND_TEXT, "%.10g,%.10g,%.10g,%.10g", pane->at[0], pane->at[1], pane->size[0],
                 pane->size[1]);
    }
    const struct command_number numbers[] = {
        {"cross.value", is_inside ? draw_get_voxel(app->draw, slices->image, voxel) : NAN},
        {"panes.pixel_mm", flat.pixel_mm},
        {"window.low", slices->low},
        {"window.high", slices->high},
        {0},
    };
    const struct command_text texts[] = {
        {"cross.voxel", cross},
        {"panes", pane_names[app->alone == PANE_FOUR ? NUM_PANES : app->alone]},
        {"panes.middle_mm", command_write_place(flat.middle_mm, middle)},
        {"panes.sagittal", boxes[0]},
        {"panes.coronal", boxes[1]},
        {"panes.transaxial", boxes[2]},
        {"panes.scene", boxes[PANE_SCENE]},
        {"hover.pane", app->probe.pane >= 0 ? pane_names[app->probe.pane] : "none"},
        {0},
    };
    return command_pick(numbers, texts, name, value);
}

static const struct command commands[] = {
    {"panes", "four|scene|transaxial|coronal|sagittal", 1, 1, .act = act_panes},
    {"cross", "X Y Z", 3, 3, .act = act_cross},
    {"combine",
     "none|fused|difference|ratio|checkerboard [image|mu|tube|sensitivity|live|kernel|histo|second [OPACITY]]", 1, 3,
     .act = act_combine},
    {0},
};

const struct viewer_tool panes_tool = {.state_bytes = sizeof(struct panes_state),
                                       .take = take,
                                       .mark = mark,
                                       .commands = commands,
                                       .get_value = get_value};
