/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/start_tool.h"

#include "base/vec.h"
#include "viewer/tools/tools.h"

#include <lr/io.h>
#include <math.h>
#include <stdio.h>

static void measure(const lr_scanner *scanner, struct start_row *row)
{
    double low = HUGE_VAL, high = -HUGE_VAL, nearest = HUGE_VAL;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double half = 0.5 * (module->crystals[0] * module->pitch_mm[0] * fabs(module->u[2]) +
                                   module->crystals[1] * module->pitch_mm[1] * fabs(module->v[2]));
        nearest = fmin(nearest, fabs(vec_dot(module->normal, module->centre_mm)));
        low = fmin(low, module->centre_mm[2] - half);
        high = fmax(high, module->centre_mm[2] + half);
    }
    row->diameter_mm = 2.0 * nearest;
    row->length_mm = high - low;
}

/* Reads the presets, some milliseconds for all of them. Those that cannot be read are left out. */
static void read_presets(struct start_tool *tool)
{
    const char *const *presets = lr_scanner_presets();
    tool->is_read = true;
    tool->count = 0;
    for (int k = 0; presets[k] != NULL && tool->count < START_MOST; k++) {
        lr_scanner *scanner = lr_scanner_read(presets[k], NULL);
        if (scanner != NULL) {
            struct start_row *row = &tool->rows[tool->count++];
            *row = (struct start_row){.preset = presets[k],
                                      .num_modules = scanner->num_modules,
                                      .num_crystals = scanner->num_crystals,
                                      .tof_ps = scanner->tof_resolution_ps};
            snprintf(row->name, sizeof(row->name), "%s", scanner->name);
            measure(scanner, row);
        }
        lr_scanner_destroy(scanner);
    }
}

/* --- its panel --- */

static const double least_width = 300.0, most_width = 560.0, most_height = 460.0, margin = 12.0;

bool start_tool_is_shown(const struct app *app)
{
    bool has_image = false;
    for (int k = 0; k < DRAW_NUM_IMAGES; k++) has_image = has_image || draw_has_image(app->draw, (enum draw_image)k);
    return tools_scanner(app) == NULL && !has_image && !study_is_busy(app->study);
}

static void show_row(struct app *app, const struct start_row *row)
{
    ui_cell();
    if (ui_row(row->preset, false)) study_open(app->study, &(struct study_wish){.scanner = row->preset});
    ui_hint("%s: %d modules", row->name, row->num_modules);
    ui_cell();
    ui_text("%d", row->num_crystals);
    ui_cell();
    ui_text("%.0f mm", row->diameter_mm);
    ui_cell();
    ui_text("%.0f mm", row->length_mm);
    ui_cell();
    if (row->tof_ps > 0.0)
        ui_text("%.4g ps", row->tof_ps);
    else
        ui_toned(UI_DIM, "none");
}

static void show_presets(struct app *app)
{
    static const char *const heads[] = {"scanner", "crystals", "diameter", "length", "time of flight"};
    if (!ui_table("presets", (int)(sizeof(heads) / sizeof(heads[0])))) return;
    for (size_t k = 0; k < sizeof(heads) / sizeof(heads[0]); k++) {
        ui_cell();
        ui_toned(UI_DIM, "%s", heads[k]);
    }
    for (int k = 0; k < app->start.count; k++) show_row(app, &app->start.rows[k]);
    ui_table_end();
}

static void show_other(struct app *app)
{
    ui_space(8.0);
    if (ui_button("open a file...##start", true)) app->opener.is_shown = true;
    ui_beside();
    ui_text("or drop one on this window, or press O");
    ui_toned(UI_DIM, "Scanners as YAML or of other programs, images, LOR data, list mode, sessions.");
}

void start_tool_panel(struct app *app)
{
    const double scale = window_scale(app->window);
    double left = app->scene_at[0] / scale;
    double room[2] = {app->scene_size[0] / scale - 2.0 * margin, app->scene_size[1] / scale - 2.0 * margin};
    if (room[0] < least_width) { /* over the panels, which have nothing to show yet */
        double screen[2];
        ui_screen(screen);
        left = 0.0;
        room[0] = screen[0] - 2.0 * margin;
    }
    const double size[2] = {fmin(room[0], most_width), fmin(room[1], most_height)};
    const struct ui_place place = {.at = {left + margin + 0.5 * (room[0] - size[0]),
                                          app->scene_at[1] / scale + margin + 0.3 * (room[1] - size[1])},
                                   .size = {size[0], size[1]},
                                   .is_fixed = true};
    if (size[0] < 40.0 || size[1] < 40.0) return;
    if (!app->start.is_read) read_presets(&app->start);
    if (ui_panel("Choose a scanner", &place, NULL)) {
        show_presets(app);
        show_other(app);
    }
    ui_panel_end();
}
