/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#define _XOPEN_SOURCE 700 /* needed for realpath */
#include "base/mem.h"
#include "base/path.h"
#include "base/vec.h"
#include "model/scanner/scanner.h"
#include "viewer/app.h"

#include <lr/io.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OPENER_PATH = 1024, OPENER_NAME = 256, OPENER_MOST = 4096, START_MOST = 64, START_NAME = 80 };
enum { RECENT_MOST = 6, RECENT_PARTS = 5 };

struct opener_entry {
    char name[OPENER_NAME];
    bool is_folder;
};

/* The dialog: a folder and the chosen entry. */
struct opener {
    char folder[OPENER_PATH];     /* the listed folder; "" before the first listing */
    char path[OPENER_PATH];       /* typed by a person, or taken from the clicked entry */
    struct opener_entry *entries; /* owned: folders first, then files, each sorted by name; hidden ones are left out */
    int count;
    char error[OPENER_PATH + 128]; /* error of the last step; "" = none */
};

struct start_row {
    const char *preset;
    char name[START_NAME]; /* name from the scanner's file */
    int num_modules, num_crystals;
    double diameter_mm, length_mm; /* diameter between the nearest front faces; length along the axis */
    double tof_ps;                 /* time resolution; 0 = none */
};

/* The start screen, which lists scanners to choose from. */
struct start {
    bool is_read;
    int count;
    struct start_row rows[START_MOST];
};

struct opener_state {
    struct opener opener;
    struct start start;
    char recent[RECENT_MOST][OPENER_PATH]; /* files that people have opened, the most recent one first; "" = none */
    char open[RECENT_PARTS][OPENER_PATH];  /* files that are open; "" = none */
};

_Static_assert((int)OPENER_NAME == (int)LR_FILE_NAME, "names are as long as folders have them");

static const char *const kind_names[OPENER_NUM_KINDS] = {"what the file says", "a scanner",      "an image",
                                                         "a mu-map",           "a second image", "data or list mode"};

/* --- folders --- */

/* Joins two parts of a path: "/a/b" and "c" to "/a/b/c". Returns false if the path is too long. */
static bool join(const char *folder, const char *name, char path[OPENER_PATH])
{
    const size_t length = strlen(folder);
    const char *between = length > 0 && folder[length - 1] == '/' ? "" : "/";
    return snprintf(path, OPENER_PATH, "%s%s%s", folder, between, name) < OPENER_PATH;
}

static int compare_entries(const void *one, const void *other)
{
    const struct opener_entry *a = one, *b = other;
    return a->is_folder != b->is_folder ? (int)b->is_folder - (int)a->is_folder : strcmp(a->name, b->name);
}

/* Lists a folder, including "..". If the folder cannot be read, sets `error` and keeps the old list. */
static void list_folder(struct opener *opener, const char *folder)
{
    char(*names)[LR_FILE_NAME] = malloc((size_t)OPENER_MOST * LR_FILE_NAME);
    if (opener->entries == NULL) opener->entries = malloc((size_t)OPENER_MOST * sizeof(*opener->entries));
    const bool has_memory = names != NULL && opener->entries != NULL;
    char *whole = realpath(folder, NULL);
    const bool fits = has_memory && whole != NULL && strlen(whole) < OPENER_PATH;
    const int count = fits ? lr_file_names(whole, names, OPENER_MOST) : 0;
    opener->error[0] = '\0';
    if (count > 0) { /* a readable folder has at least the entry "." */
        snprintf(opener->folder, sizeof(opener->folder), "%s", whole);
        opener->path[0] = '\0';
        opener->count = 0;
        for (int k = 0; k < count; k++) {
            char path[OPENER_PATH];
            if ((names[k][0] == '.' && strcmp(names[k], "..") != 0) || !join(opener->folder, names[k], path)) continue;
            struct opener_entry *entry = &opener->entries[opener->count++];
            memcpy(entry->name, names[k], OPENER_NAME);
            struct stat about;
            entry->is_folder = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
        }
        qsort(opener->entries, (size_t)opener->count, sizeof(*opener->entries), compare_entries);
    } else {
        snprintf(opener->error, sizeof(opener->error),
                 "%s cannot be read: choose another folder, or ask its owner for access", folder);
    }
    if (count == OPENER_MOST) {
        snprintf(opener->error, sizeof(opener->error),
                 "the folder holds more than is listed here: type the file's path");
    }
    lr_free_all(whole, names);
}

/* --- recent files --- */

/* If the window is visible, adds newly opened files to the recent files. Frames that the slider opens are not added. */
static lr_status take_study(struct app *app, bool is_new)
{
    struct opener_state *tool = app_state(app, &opener_tool);
    const struct study_view *open = &app->open;
    const char *const paths[RECENT_PARTS] = {open->scanner_path, open->data_path, open->mu_path, open->second_path,
                                             open->image_path};
    char list[RECENT_MOST * (OPENER_PATH + 1)] = "";
    if (!is_new || !app->window->is_seen) return LR_OK;
    for (int k = 0; k < RECENT_PARTS; k++) {
        char file[OPENER_PATH];
        snprintf(file, sizeof(file), "%s", paths[k] != NULL ? paths[k] : "");
        (void)lr_path_cut_frame(file);
        const bool is_old = strcmp(file, tool->open[k]) == 0;
        memcpy(tool->open[k], file, sizeof(file));
        if (is_old || (paths[k] == open->image_path && app->is_next_frame)) continue;
        char *whole = realpath(file, NULL); /* NULL for names of presets, and if nothing is open */
        int at = 0;
        const bool fits = whole != NULL && strlen(whole) < OPENER_PATH && strchr(whole, '\n') == NULL;
        while (fits && at < RECENT_MOST - 1 && strcmp(tool->recent[at], whole) != 0) at++;
        for (; fits && at > 0; at--) memcpy(tool->recent[at], tool->recent[at - 1], OPENER_PATH);
        if (fits) snprintf(tool->recent[0], OPENER_PATH, "%s", whole);
        free(whole);
    }
    for (int k = 0, length = 0; k < RECENT_MOST && tool->recent[k][0] != '\0'; k++)
        length += snprintf(list + length, sizeof(list) - (size_t)length, "%s\n", tool->recent[k]);
    app_write_note(app, "recent.txt", list);
    return LR_OK;
}

static lr_status open_opener(struct app *app)
{
    struct opener_state *tool = app_state(app, &opener_tool);
    char *list = app_read_note(app, "recent.txt");
    const char *line = list;
    for (int k = 0; line != NULL && k < RECENT_MOST && *line != '\0'; k++) {
        const size_t length = strcspn(line, "\n");
        snprintf(tool->recent[k], OPENER_PATH, "%.*s", (int)(length < OPENER_PATH ? length : 0), line);
        line += length + (line[length] == '\n');
    }
    free(list);
    return LR_OK;
}

/* Lists the recent files. A click on a file opens it according to its kind. Returns true if a file was opened. */
static bool show_recent(struct app *app)
{
    struct opener_state *tool = app_state(app, &opener_tool);
    char chosen[OPENER_PATH] = "";
    for (int k = 0; k < RECENT_MOST && tool->recent[k][0] != '\0'; k++) {
        char label[OPENER_PATH + 16];
        snprintf(label, sizeof(label), "%s##recent %d", lr_path_name(tool->recent[k]), k);
        if (k == 0) ui_toned(UI_DIM, "opened before:");
        if (ui_item(label, false)) memcpy(chosen, tool->recent[k], OPENER_PATH);
        ui_hint("%s", tool->recent[k]);
    }
    if (chosen[0] != '\0') app_drop(app, chosen);
    return chosen[0] != '\0';
}

/* --- the start screen --- */

static const double least_width = 440.0, most_width = 560.0, most_height = 460.0, margin = 12.0;

/* True while neither a scanner nor an image is open. */
static bool shows_start(const struct app *app)
{
    bool has_image = false;
    for (int k = 0; k < DRAW_NUM_IMAGES; k++) has_image |= draw_get_grid(app->draw, (enum draw_image)k) != NULL;
    return app->drawn == NULL && !has_image && !study_is_busy(app->study);
}

static void show_start(struct app *app)
{
    struct opener_state *tool = app_state(app, &opener_tool);
    const double scale = app->window->scale;
    double left = app->scene_at[0] / scale;
    double room[2] = {app->scene_size[0] / scale - 2.0 * margin, app->scene_size[1] / scale - 2.0 * margin};
    if (room[0] < least_width) { /* draws over the panels, which have no contents yet */
        double screen[2];
        ui_screen(screen);
        left = 0.0;
        room[0] = screen[0] - 2.0 * margin;
    }
    int count = 0;
    while (count < RECENT_MOST && tool->recent[count][0] != '\0') count++;
    const double height = most_height + (count > 0 ? 18.0 * (count + 1) : 0.0);
    const double size[2] = {fmin(room[0], most_width), fmin(room[1], height)};
    const struct ui_place place = {.at = {left + margin + 0.5 * (room[0] - size[0]),
                                          app->scene_at[1] / scale + margin + 0.3 * (room[1] - size[1])},
                                   .size = {size[0], size[1]},
                                   .is_fixed = true};
    if (size[0] < 40.0 || size[1] < 40.0) return;
    struct start *start = &tool->start;
    if (!start->is_read) { /* takes some milliseconds; presets that cannot be read are left out */
        const char *const *presets = lr_scanner_presets();
        start->is_read = true;
        for (int k = 0; presets[k] != NULL && start->count < START_MOST; k++) {
            lr_scanner *scanner = lr_scanner_read(presets[k], NULL);
            if (scanner != NULL) {
                struct start_row *row = &start->rows[start->count++];
                *row = (struct start_row){.preset = presets[k],
                                          .num_modules = scanner->num_modules,
                                          .num_crystals = scanner->num_crystals,
                                          .tof_ps = scanner->tof_resolution_ps};
                snprintf(row->name, sizeof(row->name), "%s", scanner->name);
                double low = HUGE_VAL, high = -HUGE_VAL, nearest = HUGE_VAL;
                for (int m = 0; m < scanner->num_modules; m++) {
                    const lr_module *module = &scanner->modules[m];
                    const double half = lr_module_half_mm(module, 2);
                    nearest = fmin(nearest, fabs(vec_dot(module->normal, module->centre_mm)));
                    low = fmin(low, module->centre_mm[2] - half);
                    high = fmax(high, module->centre_mm[2] + half);
                }
                row->diameter_mm = 2.0 * nearest;
                row->length_mm = high - low;
            }
            lr_scanner_destroy(scanner);
        }
    }
    if (ui_panel("Choose a scanner", &place, NULL)) {
        static const char *const heads[] = {"scanner", "crystals", "diameter", "length", "time of flight"};
        if (ui_table("presets", (int)(sizeof(heads) / sizeof(heads[0])))) {
            for (size_t k = 0; k < sizeof(heads) / sizeof(heads[0]); k++) {
                ui_cell();
                ui_toned(UI_DIM, "%s", heads[k]);
            }
            for (int k = 0; k < start->count; k++) {
                const struct start_row *row = &start->rows[k];
                ui_cell();
                if (ui_item(row->preset, false)) study_open(app->study, &(struct study_wish){.scanner = row->preset});
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

            ui_table_end();
        }

        ui_space(8.0);
        if (ui_button("open a file...##start", true)) app->shows_opener = true;
        ui_hint("a dialog that opens any file, as O does");
        ui_beside();
        ui_text("or drop one on this window, or press O");
        ui_toned(UI_DIM, "Scanners as YAML or of other programs, images, LOR data, list mode, sessions.");
        ui_space(6.0);
        (void)show_recent(app);
    }
    ui_panel_end();
}

/* --- the dialog --- */

static const double dialog_size[2] = {520.0, 430.0}, list_height = 270.0;

void opener_tool_panels(struct app *app)
{
    struct opener_state *tool = app_state(app, &opener_tool);
    if (shows_start(app)) show_start(app);
    if (!app->shows_opener) return;
    struct opener *opener = &tool->opener;
    char path[OPENER_PATH];
    double screen[2];
    ui_screen(screen);
    const struct ui_place place = {
        .at = {0.5 * (screen[0] - dialog_size[0]), 0.5 * (screen[1] - dialog_size[1]) - 40.0},
        .size = {dialog_size[0], dialog_size[1]}};
    if (opener->folder[0] == '\0') list_folder(opener, ".");
    if (ui_panel("Open a file", &place, &app->shows_opener)) {
        bool goes = false;
        int pressed = -1;
        ui_toned(UI_DIM, "%s", opener->folder);
        ui_list("##files", list_height);
        for (int k = 0; k < opener->count; k++) {
            const struct opener_entry *entry = &opener->entries[k];
            char label[OPENER_NAME + 32];
            snprintf(label, sizeof(label), "%s%s##%d", entry->name, entry->is_folder ? "/" : "", k);
            /* The entry that matches the typed or chosen path is highlighted. */
            const bool is_marked = join(opener->folder, entry->name, path) && strcmp(path, opener->path) == 0;
            if (ui_item(label, is_marked)) pressed = k;
            goes = goes || (is_marked && ui_is_double_click());
            ui_hint(entry->is_folder ? "a click lists this folder" : "a click chooses this file, two open it");
        }
        ui_list_end();

        /* A folder is listed; a file's path is copied into the field. */
        if (pressed >= 0 && join(opener->folder, opener->entries[pressed].name, path)) {
            if (opener->entries[pressed].is_folder) {
                list_folder(opener, path);
            } else {
                memcpy(opener->path, path, sizeof(path));
                opener->error[0] = '\0';
            }
        }
        goes = ui_write("path", opener->path, sizeof(opener->path)) || goes;
        ui_hint("of a file, or of a folder to be listed; Enter opens it");
        ui_choose("opened as", &app->opener_kind, kind_names, OPENER_NUM_KINDS);
        ui_hint("what the file is taken for: a mu-map and a second image look like any image");
        goes = ui_button("open the file", opener->path[0] != '\0') || goes;
        ui_hint("as Enter and a double click do");
        ui_beside();
        if (ui_button("cancel##file", true)) app->shows_opener = false;
        ui_hint("as Esc does");
        if (goes && opener->path[0] != '\0') { /* a folder is listed; a file is opened, and the dialog closes */
            struct stat about;
            if (opener->path[0] == '/' || !join(opener->folder, opener->path, path))
                memcpy(path, opener->path, sizeof(path));
            if (stat(path, &about) != 0) {
                snprintf(opener->error, sizeof(opener->error),
                         "there is no file %s: choose one from the list, or correct its path", path);
            } else if (S_ISDIR(about.st_mode)) {
                list_folder(opener, path);
            } else {
                opener->error[0] = '\0';
                app->shows_opener = false;
                const struct study_wish wishes[OPENER_NUM_KINDS] = {
                    [OPENER_SCANNER] = {.scanner = path}, [OPENER_IMAGE] = {.image = path}, [OPENER_MU] = {.mu = path},
                    [OPENER_SECOND] = {.second = path},   [OPENER_DATA] = {.data = path},
                };
                if (app->opener_kind == OPENER_ANY)
                    app_drop(app, path);
                else
                    (void)study_open(app->study, &wishes[app->opener_kind]);
            }
        }
        if (opener->error[0] != '\0') ui_toned(UI_BAD, "%s", opener->error);
        ui_space(4.0);
        if (show_recent(app)) app->shows_opener = false;
    }
    ui_panel_end();
}

static void close_opener(struct app *app)
{
    struct opener_state *tool = app_state(app, &opener_tool);
    free(tool->opener.entries);
}

static bool get_value(struct app *app, const char *name, struct command_value *value)
{
    struct opener_state *tool = app_state(app, &opener_tool);
    const struct opener *opener = &tool->opener;
    char folder[COMMAND_TEXT], error[COMMAND_TEXT];
    snprintf(folder, sizeof(folder), "%.255s", app->shows_opener ? opener->folder : "none");
    snprintf(error, sizeof(error), "%.255s", opener->error[0] != '\0' ? opener->error : "none");
    char recent[COMMAND_TEXT];
    snprintf(recent, sizeof(recent), "%.255s", tool->recent[0][0] != '\0' ? tool->recent[0] : "none");
    const struct command_number numbers[] = {{"start", shows_start(app)}, {0}};
    const struct command_text texts[] = {{"open.folder", folder}, {"open.error", error}, {"open.recent", recent}, {0}};
    return command_pick(numbers, texts, name, value);
}

const struct viewer_tool opener_tool = {.state_bytes = sizeof(struct opener_state),
                                        .open = open_opener,
                                        .take_study = take_study,
                                        .close = close_opener,
                                        .get_value = get_value};
