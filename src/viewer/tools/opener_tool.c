/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#define _XOPEN_SOURCE 700 /* realpath */
#include "viewer/tools/opener_tool.h"

#include "io/files/file_kind.h"
#include "viewer/frame/app.h"
#include "viewer/tools/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert((int)OPENER_NAME == (int)LR_FILE_NAME, "names are as long as folders have them");

static const char *const kind_names[OPENER_NUM_KINDS] = {"what the file says", "a scanner", "an image", "a mu-map",
                                                         "data or list mode"};

/* --- folders --- */

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* "/a/b" and "c" make "/a/b/c"; false: that is too long. */
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

static int take_entries(struct opener_tool *opener, char (*names)[LR_FILE_NAME], int count)
{
    int kept = 0;
    for (int k = 0; k < count; k++) {
        char path[OPENER_PATH];
        if ((names[k][0] != '.' || strcmp(names[k], "..") == 0) && join(opener->folder, names[k], path)) {
            struct opener_entry *entry = &opener->entries[kept++];
            memcpy(entry->name, names[k], OPENER_NAME);
            entry->is_folder = is_folder(path);
        }
    }
    qsort(opener->entries, (size_t)kept, sizeof(*opener->entries), compare_entries);
    return kept;
}

/* Without "." and "..", as a person knows it. */
static bool find_whole(const char *folder, char whole[OPENER_PATH])
{
    char *found = realpath(folder, NULL);
    const bool fits = found != NULL && strlen(found) < OPENER_PATH;
    if (fits) snprintf(whole, OPENER_PATH, "%s", found);
    free(found);
    return fits;
}

/* ".." included; where it cannot be read, `error` says so and the old list stays. */
static void list_folder(struct opener_tool *opener, const char *folder)
{
    char whole[OPENER_PATH];
    char(*names)[LR_FILE_NAME] = malloc((size_t)OPENER_MOST * LR_FILE_NAME);
    if (opener->entries == NULL) opener->entries = malloc((size_t)OPENER_MOST * sizeof(*opener->entries));
    const bool has_memory = names != NULL && opener->entries != NULL;
    const int count = has_memory && find_whole(folder, whole) ? lr_file_names(whole, names, OPENER_MOST) : 0;
    opener->error[0] = '\0';
    if (count > 0) { /* every folder that can be read holds itself */
        memcpy(opener->folder, whole, sizeof(whole));
        opener->path[0] = '\0';
        opener->count = take_entries(opener, names, count);
    } else {
        snprintf(opener->error, sizeof(opener->error),
                 "%s cannot be read: choose another folder, or ask its owner for access", folder);
    }
    if (count == OPENER_MOST) {
        snprintf(opener->error, sizeof(opener->error),
                 "the folder holds more than is listed here: type the file's path");
    }
    free(names);
}

/* A folder is listed, a file's path is taken. */
static void press_entry(struct opener_tool *opener, int entry)
{
    char path[OPENER_PATH];
    if (entry < 0 || entry >= opener->count || !join(opener->folder, opener->entries[entry].name, path)) return;
    if (opener->entries[entry].is_folder) {
        list_folder(opener, path);
    } else {
        memcpy(opener->path, path, sizeof(path));
        opener->error[0] = '\0';
    }
}

/* Whether the path is the entry's. */
static bool is_chosen(const struct opener_tool *opener, int entry)
{
    char path[OPENER_PATH];
    return join(opener->folder, opener->entries[entry].name, path) && strcmp(path, opener->path) == 0;
}

void opener_tool_finish(struct opener_tool *opener)
{
    free(opener->entries);
    *opener = (struct opener_tool){0};
}

/* --- opening --- */

static void begin(struct app *app, const char *path)
{
    const struct study_wish wishes[OPENER_NUM_KINDS] = {
        [OPENER_SCANNER] = {.scanner = path},
        [OPENER_IMAGE] = {.image = path},
        [OPENER_MU] = {.mu = path},
        [OPENER_DATA] = {.data = path},
    };
    if (app->opener.kind == OPENER_ANY)
        tools_drop(app, path);
    else
        (void)study_open(app->study, &wishes[app->opener.kind]);
}

/* Goes into the path's folder, or begins to open its file and closes the dialog. */
static void follow_path(struct app *app)
{
    struct opener_tool *opener = &app->opener;
    struct stat about;
    char path[OPENER_PATH];
    if (opener->path[0] == '\0') return;
    if (opener->path[0] == '/' || !join(opener->folder, opener->path, path)) memcpy(path, opener->path, sizeof(path));
    if (is_folder(path)) {
        list_folder(opener, path);
    } else if (stat(path, &about) != 0) {
        snprintf(opener->error, sizeof(opener->error),
                 "there is no file %s: choose one from the list, or correct its path", path);
    } else {
        opener->error[0] = '\0';
        opener->is_shown = false;
        begin(app, path);
    }
}

/* --- its panel --- */

static const double size[2] = {520.0, 430.0}, list_height = 270.0;

/* Which entry was pressed; -1: none. is_double: the one that is chosen was pressed twice. */
static int show_entries(const struct opener_tool *opener, bool *is_double)
{
    int pressed = -1;
    ui_list("##files", list_height);
    for (int k = 0; k < opener->count; k++) {
        const struct opener_entry *entry = &opener->entries[k];
        char label[OPENER_NAME + 32];
        snprintf(label, sizeof(label), "%s%s##%d", entry->name, entry->is_folder ? "/" : "", k);
        const bool is_marked = is_chosen(opener, k);
        if (ui_item(label, is_marked)) pressed = k;
        *is_double = *is_double || (is_marked && ui_is_double_click());
    }
    ui_list_end();
    return pressed;
}

static void show_dialog(struct app *app)
{
    struct opener_tool *opener = &app->opener;
    bool is_double = false;
    ui_toned(UI_DIM, "%s", opener->folder);
    const int pressed = show_entries(opener, &is_double);
    press_entry(opener, pressed);
    bool goes = ui_write("path", opener->path, sizeof(opener->path)) || is_double;
    ui_choose("opened as", &opener->kind, kind_names, OPENER_NUM_KINDS);
    goes = ui_button("open##file", opener->path[0] != '\0') || goes;
    ui_beside();
    if (ui_button("cancel##file", true)) opener->is_shown = false;
    if (goes) follow_path(app);
    if (opener->error[0] != '\0') ui_toned(UI_BAD, "%s", opener->error);
}

void opener_tool_panel(struct app *app)
{
    double screen[2];
    ui_screen(screen);
    const struct ui_place place = {.at = {0.5 * (screen[0] - size[0]), 0.5 * (screen[1] - size[1]) - 40.0},
                                   .size = {size[0], size[1]}};
    if (app->opener.folder[0] == '\0') list_folder(&app->opener, ".");
    if (ui_panel("Open a file", &place, &app->opener.is_shown)) show_dialog(app);
    ui_panel_end();
}
