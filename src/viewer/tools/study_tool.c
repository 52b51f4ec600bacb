/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "viewer/app.h"

#include <ctype.h>
#include <lr/io.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const map_names[] = {"grey", "inverse grey", "perceptual", "diverging"};

enum { FRAMES_PATH = 4096, FRAMES_MOST = 10000, MOST_PRESETS = 64 };

/* Frames. The open image may be one of the files NAME-1.nii, NAME-2.nii and so on, which `recon --frames` writes. It
 * may also be one volume of a file; its path is then NAME.nii:1, NAME.nii:2 and so on. */
struct frames {
    char path[FRAMES_PATH]; /* path of the image that was checked last */
    int before, after;      /* lengths of two parts of the path: up to the number, and up to the number's end */
    int number;             /* number of the open frame, from 1; 0 = the image is not a frame */
    int wanted;             /* number of the frame that was requested last */
    int count;              /* consecutively numbered frames in the folder; 0 = the image is not a frame */
};

struct study_state {
    struct frames frames;
    int64_t endings; /* number of openings that have been handled */
};

/* --- frames --- */

/* Makes the path of a frame. Returns false if it is too long. */
static bool name_frame(const struct frames *frames, int number, char path[FRAMES_PATH])
{
    return snprintf(path, FRAMES_PATH, "%.*s%d%s", frames->before, frames->path, number, frames->path + frames->after) <
           FRAMES_PATH;
}

/* Begins to open a frame. errors: LR_USAGE, logged, if there is no frame with that number. */
static lr_status open_frame(struct app *app, int number)
{
    struct study_state *tool = app_state(app, &study_tool);
    struct frames *frames = &tool->frames;
    char path[FRAMES_PATH];
    if (number < 1 || number > frames->count || !name_frame(frames, number, path))
        return lr_error(&app->log, LR_USAGE, "there is no frame %d: %d are there", number, frames->count);
    frames->wanted = number;
    return number == frames->number && !study_is_busy(app->study)
               ? LR_OK
               : study_open(app->study, &(struct study_wish){.image = path});
}

/* --- opened files --- */

/* Begins to show an image. One piece is uploaded in each frame; the study holds the image meanwhile. */
static void begin_image(struct app *app, enum draw_image which, const lr_image *image, double largest)
{
    app->ranges[which][1] = image != NULL ? fmax(largest, 1e-30) : 0.0;
    if (image == NULL) {
        draw_set_image(app->draw, which, NULL);
    } else if (draw_begin_image(app->draw, which, image, largest) != LR_OK) {
        draw_set_image(app->draw, which, NULL);
        app->failure = app->failure == LR_OK ? LR_FAILED : app->failure;
    }
}

/* Takes the open study and puts its new parts into the scene. */
static lr_status take_opened(struct app *app)
{
    struct study_view before = app->open;
    app->open = study_take(app->study);
    if (app->drawn == before.scanner) app->drawn = app->open.scanner;
    const struct study_view *open = &app->open;
    lr_status status = LR_OK;
    if (open->scanner != before.scanner) {
        static const enum draw_image computed[] = {DRAW_TUBE, DRAW_SENSITIVITY}; /* made for the old scanner */
        static const enum draw_lines drawn[] = {DRAW_LORS, DRAW_LOR, DRAW_CURSOR};
        status = draw_set_scanner(app->draw, open->scanner);
        const bool is_other = status == LR_OK && before.scanner != NULL;
        for (int k = 0; is_other && k < 2; k++) {
            if (app->draw->images[computed[k]] != NULL) draw_set_image(app->draw, computed[k], NULL);
            if (app->slices.image == computed[k]) app_show_image(app, DRAW_IMAGE);
        }
        for (int k = 0; is_other && k < 3 && status == LR_OK; k++)
            status = draw_set_lines(app->draw, drawn[k], NULL, 0);
        app_fit(app);
        if (status == LR_OK)
            status = draw_set_cross(app->draw, DRAW_AXES, (double[3]){0.0}, 0.5 * app->camera.reach_mm);
    }

    /* If the new image is another frame of the same series, the settings of the previous frame are kept. */
    struct study_state *tool = app_state(app, &study_tool);
    struct frames *frames = &tool->frames;
    const char *path = open->image_path != NULL ? open->image_path : "";
    bool is_frame = false;
    if (strcmp(path, frames->path) != 0) {
        char own[FRAMES_PATH];
        is_frame = frames->wanted > 0 && name_frame(frames, frames->wanted, own) && strcmp(path, own) == 0;
        if (strlen(path) >= FRAMES_PATH) path = "";
        snprintf(frames->path, sizeof(frames->path), "%s", path);
        if (open->num_frames > 1) { /* volumes in one file: "NAME.nii:12" */
            const char *colon = strrchr(frames->path, ':');
            frames->before = colon != NULL ? (int)(colon + 1 - frames->path) : 0;
            frames->after = (int)strlen(frames->path);
            frames->number = colon != NULL ? (int)strtol(colon + 1, NULL, 10) : 0;
            frames->count = open->num_frames;
        } else {
            /* A file's frame number, as in "folder/NAME-12.nii.gz"; 0 = the file has none. */
            const char *slash = strrchr(frames->path, '/');
            frames->number = 0;
            for (const char *at = slash != NULL ? slash : frames->path;
                 frames->number == 0 && (at = strchr(at, '-')) != NULL; at++) {
                char *end;
                if (!isdigit((unsigned char)at[1])) continue;
                const long number = strtol(at + 1, &end, 10);
                if (number > FRAMES_MOST || *end != '.' || at[1] == '0') continue;
                frames->before = (int)(at + 1 - frames->path);
                frames->after = (int)(end - frames->path);
                frames->number = (int)number;
            }
            int count = 0;
            while (!is_frame && frames->number > 0 && count < FRAMES_MOST && name_frame(frames, count + 1, own) &&
                   access(own, F_OK) == 0)
                count++;
            frames->count = is_frame ? frames->count : count;
        }
        if (frames->number < 1 || frames->number > frames->count || frames->count < 2)
            frames->number = frames->count = 0;
        frames->wanted = frames->number;
        app->is_next_frame = is_frame;
    }
    if (status == LR_OK && is_frame && open->mu == before.mu) {
        const double high = app->ranges[DRAW_IMAGE][1];
        begin_image(app, DRAW_IMAGE, open->image, open->image_largest);
        app->ranges[DRAW_IMAGE][1] = high;
    } else if (status == LR_OK && (open->image != before.image || open->mu != before.mu)) {
        begin_image(app, DRAW_IMAGE, open->image, open->image_largest);
        begin_image(app, DRAW_MU, open->mu, open->mu_largest);
        if (open->image != NULL || open->mu != NULL) {
            for (int k = 0; k < 3; k++) app->slices.is_shown[k] = false;
            app_show_image(app, open->image != NULL ? DRAW_IMAGE : DRAW_MU);
        }
    }
    const bool has_first = open->image != NULL || open->mu != NULL;
    const bool had_first = before.image != NULL || before.mu != NULL;
    const bool is_second = open->second != before.second;
    if (status == LR_OK && is_second) begin_image(app, DRAW_SECOND, open->second, open->second_largest);
    if (status == LR_OK && open->second != NULL && (is_second || has_first != had_first)) {
        if (!has_first) {
            app_show_image(app, DRAW_SECOND);
        } else if (app->slices.mix == DRAW_MIX_NONE) {
            app->slices.mix = DRAW_MIX_FUSED;
            app->slices.second = DRAW_SECOND;
        }
    }
    if (status == LR_OK) status = draw_set_grid(app->draw, &open->grid);
    study_view_release(&before);
    return status;
}

static lr_status update(struct app *app)
{
    struct study_state *tool = app_state(app, &study_tool);
    const struct job_report *report = &app->opening;
    study_poll(app->study, &app->opening);
    struct study_view now = study_take(app->study);
    const bool is_new = now.serial != app->open.serial, has_ended = now.endings != tool->endings;
    tool->endings = now.endings;
    study_view_release(&now);
    if (has_ended) {
        for (int k = 0; k < report->num_warnings && k < JOB_WARNINGS; k++)
            app_say(app, LR_LOG_WARNING, "%s", report->warnings[k]);
        if (report->state == JOB_FAILED) app_take_failure(app, report, study_refused(app->study, NULL) != NULL);
    }
    if (is_new) LR_TRY(take_opened(app));
    /* The function take_study of each tool is called after failed openings, too, because the findings of a refused file
     * may have been freed. */
    for (int k = 0; app->tools[k] != NULL && (has_ended || is_new); k++)
        if (app->tools[k]->take_study != NULL) LR_TRY(app->tools[k]->take_study(app, is_new));
    draw_advance(app->draw);
    return LR_OK;
}

/* --- the panel --- */

static void show_slices(struct app *app)
{
    struct study_state *tool = app_state(app, &study_tool);
    const char *images[DRAW_NUM_IMAGES];
    struct draw_slices *slices = &app->slices;
    for (int k = 0; k < DRAW_NUM_IMAGES; k++) images[k] = scene_images[k].name;
    int map = (int)slices->colours, image = (int)slices->image;
    const struct frames *frames = &tool->frames;
    int number = frames->wanted;
    if (frames->count >= 2) {
        const int range[2] = {1, frames->count};
        if (ui_slide("frame", &number, range) && number != frames->wanted) (void)open_frame(app, number);
        ui_hint("%d images of one measurement after the other: volumes of a file, or files NAME-1, "
                "NAME-2 ... beside each other",
                frames->count);
    }

    static const char *const layouts[] = {"sagittal", "coronal", "transaxial", "scene", "all four"};
    static const char *const mixes[] = {"alone", "fused", "difference", "ratio", "checkerboard"};
    int layout = app->alone == PANE_FOUR ? NUM_PANES : app->alone, mix = (int)slices->mix, second = (int)slices->second;
    double cross_mm[3];
    memcpy(cross_mm, slices->at_mm, sizeof(cross_mm));
    if (ui_choose("panes", &layout, layouts, NUM_PANES + 1)) app->alone = layout == NUM_PANES ? PANE_FOUR : layout;
    ui_hint("what the middle of the window shows; a double click or T enlarges a pane, or shows all four again");
    if (ui_reals("cross-hair", cross_mm, 3)) panes_cross(app, cross_mm);
    ui_hint("x, y, z in mm; a drag in a pane moves it, the wheel goes through slices");
    for (int k = 0; k < 3; k++) {
        if (k > 0) ui_beside();
        ui_check(scene_plane_names[k], &slices->is_shown[k]);
        ui_hint("the %s slice in the scene", scene_plane_names[k]);
    }
    if (ui_choose("shown", &image, images, DRAW_NUM_IMAGES)) app_show_image(app, (enum draw_image)image);
    ui_hint("which image panes and slices show");
    if (ui_choose("colours", &map, map_names, 4)) slices->colours = (lr_colour_map)map;
    ui_hint(
        "perceptual has equal steps of lightness, inverse grey is usual in nuclear medicine, diverging is for signed "
        "numbers");
    double ends[2] = {slices->low, slices->high};
    if (ui_reals("from, to", ends, 2) && ends[0] < ends[1]) app_set_window(app, ends[0], ends[1]);
    ui_hint("lowest and highest value shown; or drag with the right button in a pane: to the right for more contrast "
            "steps, upwards for a higher level");
    const struct survey *whole = &app->whole;
    if (whole->voxels > 0) {
        const struct ui_histogram histogram = {whole->bins, SURVEY_BINS, {whole->smallest, whole->largest}};
        if (ui_histogram("##histogram", &histogram, ends)) app_set_window(app, ends[0], ends[1]);
        ui_hint("how many voxels have which value (logarithm); drag the ends of what is shown, or both");
    }
    ui_check("smooth", &slices->is_smooth);
    ui_hint("interpolates between voxels; values under the mouse stay those of voxels");
    ui_beside();
    ui_check("maximum projection", &slices->is_projected);
    ui_hint("panes show the largest value along their axis");
    if (ui_choose("combined", &mix, mixes, 5)) slices->mix = (enum draw_mix)mix;
    ui_hint("with a second image: fused, their difference or ratio, or fields of each in turn");
    if (slices->mix != DRAW_MIX_NONE) {
        const double shares[2] = {0.0, 1.0};
        int second_map = (int)slices->second_colours;
        if (ui_choose("with", &second, images, DRAW_NUM_IMAGES)) slices->second = (enum draw_image)second;
        ui_hint("the second image, which may have a grid of its own");
        if (slices->mix == DRAW_MIX_FUSED) {
            ui_slide_real("opacity", &slices->opacity, shares);
            ui_hint("0: the first image alone, 1: the second alone");
        }
        if (slices->mix == DRAW_MIX_FUSED || slices->mix == DRAW_MIX_CHECKERED) {
            if (ui_choose("its colours", &second_map, map_names, 4)) slices->second_colours = (lr_colour_map)second_map;
            ui_hint("colours of the second image");
            double *range = app->ranges[slices->second], second_ends[2] = {range[0], range[1]};
            if (ui_reals("its from, to", second_ends, 2) && second_ends[0] < second_ends[1])
                memcpy(range, second_ends, sizeof(second_ends));
            ui_hint("lowest and highest value shown of the second image");
        }
    }
}

void study_tool_panel(struct app *app)
{
    const char *const *presets = lr_scanner_presets();
    const char *path = app->open.scanner_path, *names[MOST_PRESETS + 1];
    int count = 0, chosen = -1;
    while (presets[count] != NULL && count < MOST_PRESETS) {
        chosen = path != NULL && strcmp(path, presets[count]) == 0 ? count : chosen;
        names[count] = presets[count];
        count++;
    }
    if (path != NULL && chosen < 0) { /* show a file by its name */
        const char *slash = strrchr(path, '/');
        names[count] = slash != NULL ? slash + 1 : path;
        chosen = count++;
    }
    if (ui_choose("##preset", &chosen, names, count) && presets[chosen] != NULL)
        study_open(app->study, &(struct study_wish){.scanner = names[chosen]});
    ui_hint("scanners that LORaster knows");
    ui_beside();
    if (ui_button("open...", true)) app->shows_opener = true;
    ui_hint("a dialog that opens any file, as O does");
    const struct job_report *report = &app->opening;
    if (report->state == JOB_RUNNING) {
        ui_progress(report->share, report->doing);
        if (ui_button("stop opening", true)) study_cancel(app->study);
        ui_hint("as Esc does");
    } else if (report->state == JOB_FAILED) {
        ui_toned(UI_BAD, "%s", report->error);
    }

    const lr_scanner *scanner = app->open.scanner;
    if (scanner != NULL)
        ui_text("%s", scanner->name);
    else
        ui_toned(UI_DIM, "no scanner is open: choose one, or drop its file on the window");
    if (scanner != NULL && ui_table("scanner", 2)) {
        ui_field("modules", "%d", scanner->num_modules);
        ui_field("crystals", "%d", scanner->num_crystals);
        ui_field("LORs", "%.4g", app->open.lors != NULL ? (double)app->open.lors->count : 0.0);
        if (scanner->tof_resolution_ps > 0.0)
            ui_field("time of flight", "%.0f ps", scanner->tof_resolution_ps);
        else
            ui_field("time of flight", "none");
        ui_table_end();
    }

    const lr_grid *grid = &app->open.grid;
    if (grid->size[0] > 0) {
        ui_toned(UI_PLAIN, "grid %d x %d x %d of %.4g x %.4g x %.4g mm", grid->size[0], grid->size[1], grid->size[2],
                 grid->voxel_mm[0], grid->voxel_mm[1], grid->voxel_mm[2]);
    }

    if (ui_section("Scene", true)) {
        bool shows = !app->hides_scanner;
        ui_check("crystals", &shows);
        ui_hint("the modules and their crystals");
        app->hides_scanner = !shows;
        ui_beside();
        ui_check("volume", &app->has_volume);
        ui_hint("the image glows in the haze of the mu-map");
        ui_beside();
        bool has_lors = !app->hides_lors;
        ui_check("LORs", &has_lors);
        app->hides_lors = !has_lors;
        ui_hint("lines of the voxel's LORs, spread over its row, the brightest with the largest "
                "element; or the line of the LOR tool");
        if (ui_button("fit the scanner", true)) app_fit(app);
        ui_hint("moves the camera so that the whole scanner is seen, as F does; X, Y and Z look along an axis");
        ui_beside();
        if (ui_check("light panels", &app->is_light)) {
            ui_set_look(app->is_light);
            app_write_note(app, "look.txt", app->is_light ? "light\n" : "dark\n");
        }
        ui_hint("dark text on a light ground; the scene and the panes stay dark");
    }

    if (app->draw->images[app->slices.image] != NULL && ui_section("Slices", true)) show_slices(app);
    if (app->draw->images[app->slices.image] != NULL && ui_section("Save", false)) export_tool_panel(app);
    ui_space(6.0);
    ui_toned(UI_DIM, "%.0f frames a second", app->frame_s > 0.0 ? 1.0 / app->frame_s : 0.0);
}

/* --- scripts --- */

static lr_status act_open(struct app *app, const struct command_words *words)
{
    static const char *const kinds[] = {"scanner", "image", "mu", "data", "session", "histo", "file", "second", NULL};
    const char *path = words->words[2];
    int kind = 0;
    LR_TRY(command_choice(&app->log, words, 1, kinds, &kind));
    const struct study_wish wishes[8] = {
        {.scanner = path}, {.image = path}, {.mu = path}, {.data = path}, [7] = {.second = path}};
    if (kind == 4) return app_open_file(app, LR_FILE_SESSION, path);
    if (kind == 5) return app_open_file(app, LR_FILE_HISTO, path);
    if (kind != 6) return study_open(app->study, &wishes[kind]);
    app_drop(app, path);
    return LR_OK;
}

static const char *const settings[] = {"frame", NULL};

static lr_status set(struct app *app, const struct command_words *words, int setting)
{
    int number = 0;
    (void)setting;
    LR_TRY(command_integer(&app->log, words, 2, &number));
    return open_frame(app, number);
}

static bool get_value(struct app *app, const char *name, struct command_value *value)
{
    struct study_state *tool = app_state(app, &study_tool);
    const lr_scanner *scanner = app->open.scanner;
    const char *image = app->open.image_path;
    const struct command_number numbers[] = {
        {"image.frame", tool->frames.number},
        {"image.frames", tool->frames.count},
        {"scanner.modules", scanner != NULL ? scanner->num_modules : 0},
        {0},
    };
    const struct command_text texts[] = {
        {"scanner.name", scanner != NULL ? scanner->name : "none"},
        {"image.path", image != NULL ? image : "none"},
        {0},
    };
    return command_pick(numbers, texts, name, value);
}

static const struct command commands[] = {
    {"open", "scanner|image|mu|second|data|session|histo|file PATH", 2, 2, .act = act_open},
    {0},
};

const struct viewer_tool study_tool = {.state_bytes = sizeof(struct study_state),
                                       .update = update,
                                       .commands = commands,
                                       .settings = settings,
                                       .set = set,
                                       .get_value = get_value};
