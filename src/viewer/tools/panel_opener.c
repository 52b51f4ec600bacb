/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The dialog that opens files. */
#include "viewer/frame/panels.h"

#include <stdio.h>

static const double size[2] = {520.0, 430.0}, list_height = 270.0;

/* Which entry was pressed; -1: none. is_double: the one that is chosen was pressed twice. */
static int show_entries(const struct opener *opener, bool *is_double)
{
    int pressed = -1;
    ui_list("##files", list_height);
    for (int k = 0; k < opener->count; k++) {
        const struct opener_entry *entry = &opener->entries[k];
        char label[OPENER_NAME + 32];
        snprintf(label, sizeof(label), "%s%s##%d", entry->name, entry->is_folder ? "/" : "", k);
        const bool is_chosen = opener_is_chosen(opener, k);
        if (ui_item(label, is_chosen)) {
            pressed = k;
        }
        *is_double = *is_double || (is_chosen && ui_is_double_click());
    }
    ui_list_end();
    return pressed;
}

static void show_dialog(struct app *app)
{
    struct opener *opener = &app->opener;
    bool is_double = false;
    ui_toned(UI_DIM, "%s", opener->folder);
    const int pressed = show_entries(opener, &is_double);
    opener_press(opener, pressed);
    bool goes = ui_write("path", opener->path, sizeof(opener->path)) || is_double;
    ui_choose("opened as", &opener->kind, opener_kinds, OPENER_NUM_KINDS);
    goes = ui_button("open##file", opener->path[0] != '\0') || goes;
    ui_beside();
    if (ui_button("cancel##file", true)) {
        opener->is_shown = false;
    }
    if (goes) {
        opener_go(app);
    }
    if (opener->error[0] != '\0') {
        ui_toned(UI_BAD, "%s", opener->error);
    }
}

void panel_opener(struct app *app)
{
    double screen[2];
    ui_screen(screen);
    const struct ui_place place = {
        .at = {0.5 * (screen[0] - size[0]), 0.5 * (screen[1] - size[1]) - 40.0},
        .size = {size[0], size[1]}};
    if (app->opener.folder[0] == '\0') {
        opener_list(&app->opener, ".");
    }
    if (ui_panel("Open a file", &place, &app->opener.is_shown)) {
        show_dialog(app);
    }
    ui_panel_end();
}
