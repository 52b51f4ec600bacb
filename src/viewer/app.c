/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/app.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "io/files/keyed_text.h"
#include "io/files/output.h"
#include "model/scanner/scanner.h"

#include <lr/io.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- tools --- */

void *app_state(const struct app *app, const struct viewer_tool *tool)
{
    for (int k = 0; app->tools[k] != NULL; k++)
        if (app->tools[k] == tool) return app->states[k];
    return NULL;
}

void app_choose(struct app *app, const struct viewer_tool *tool)
{
    app->tool = tool;
    app->wants_tool = true;
}

void app_unfold(struct app *app, int side)
{
    app->folds[side] = false;
    app->folds[1 - side] = app->folds[1 - side] || app->is_narrow;
}

bool app_is_busy(const struct app *app)
{
    bool is_busy = study_is_busy(app->study);
    for (int k = 0; k < DRAW_NUM_IMAGES; k++) is_busy = is_busy || app->draw->coming[k].texture != NULL;
    for (int k = 0; k < app->num_runners; k++) is_busy = is_busy || app->runners[k]->report.state == JOB_RUNNING;
    for (int k = 0; app->tools[k] != NULL; k++)
        is_busy = is_busy || (app->tools[k]->is_busy != NULL && app->tools[k]->is_busy(app));
    return is_busy;
}

void app_click(struct app *app)
{
    const struct probe probe = scene_probe(app);
    bool is_used = false;
    for (int k = 0; app->tools[k] != NULL && !is_used; k++)
        is_used = app->tools[k]->click != NULL && app->tools[k]->click(app, &probe);
}

static const struct viewer_tool *find_reader(const struct app *app, enum lr_file_kind kind)
{
    for (int k = 0; app->tools[k] != NULL; k++)
        if (app->tools[k]->open_file != NULL && app->tools[k]->opens == kind) return app->tools[k];
    return NULL;
}

lr_status app_open_file(struct app *app, enum lr_file_kind kind, const char *path)
{
    const struct viewer_tool *reader = find_reader(app, kind);
    return reader != NULL ? reader->open_file(app, path) : study_open_file(app->study, path);
}

void app_drop(struct app *app, const char *path)
{
    const enum lr_file_kind kind = lr_file_kind_of(path);
    const struct viewer_tool *reader = find_reader(app, kind);
    (void)app_open_file(app, kind, path);
    if (reader != NULL && reader->panel != NULL) app_choose(app, reader);
}

/* --- messages --- */

void app_keep_message(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct app *app = user;
    if (level != LR_LOG_DEBUG) {
        struct app_message *message = &app->messages[app->num_messages++ % APP_MESSAGES];
        message->level = level;
        snprintf(message->text, sizeof(message->text), "%s", sentence);
    }
    if (app->params->log != NULL && app->params->log->write != NULL)
        app->params->log->write(app->params->log->user, level, status, sentence);
}

void app_say(struct app *app, lr_log_level level, const char *format, ...)
{
    char sentence[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof(sentence), format, list);
    va_end(list);
    app_keep_message(app, level, level == LR_LOG_ERROR ? LR_FAILED : LR_OK, sentence);
}

void app_take_failure(struct app *app, const struct job_report *report, bool is_expected)
{
    app_keep_message(app, LR_LOG_ERROR, report->status, report->error);
    if (!is_expected && app->failure == LR_OK) app->failure = report->status;
}

void app_take_reading(struct app *app, struct ui_reading reading)
{
    if (reading.index >= 0) app->reading = reading;
}

/* --- notes --- */

enum { NOTE_BYTES = 1 << 14 };

char *app_read_note(const struct app *app, const char *name)
{
    char path[1024], *text = NULL;
    int64_t count = 0;
    if (app->window->is_seen && lr_notes_place(name, path, sizeof(path)) && access(path, R_OK) == 0)
        (void)lr_file_bytes("", path, NOTE_BYTES, &count, &text, NULL);
    return text;
}

void app_write_note(const struct app *app, const char *name, const char *text)
{
    char path[1024];
    struct lr_output output;
    if (!app->window->is_seen || !lr_notes_place(name, path, sizeof(path)) ||
        lr_output_open(&output, path, NULL) != LR_OK)
        return;
    (void)lr_output_write(&output, text, strlen(text));
    (void)lr_output_finish(&output);
}

/* --- the scene --- */

void app_fit(struct app *app)
{
    const lr_scanner *scanner = app->open.scanner;
    double reach = 0.0;
    if (scanner == NULL) return;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        reach = fmax(reach, vec_length(module->centre_mm) + lr_module_radius_mm(module));
    }
    camera_fit(&app->camera, reach, app->scene_size[0] / app->scene_size[1]);
}

void app_put_image(struct app *app, enum draw_image which, const lr_image *image, double largest)
{
    app->ranges[which][1] = fmax(largest, 1e-30);
    if (draw_set_image(app->draw, which, image) != LR_OK) {
        draw_set_image(app->draw, which, NULL);
        app->failure = app->failure == LR_OK ? LR_FAILED : app->failure;
    }
}

void app_show_image(struct app *app, enum draw_image which)
{
    struct draw_slices *slices = &app->slices;
    const lr_grid *grid = draw_get_grid(app->draw, which);
    if (grid == NULL) return;
    slices->image = which;
    slices->low = app->ranges[which][0];
    slices->high = app->ranges[which][1];
    if (slices->is_shown[0] || slices->is_shown[1] || slices->is_shown[2]) return;
    for (int k = 0; k < 3; k++) { /* shows all three slices, through the middle of the grid */
        slices->is_shown[k] = true;
        slices->at_mm[k] = grid->origin_mm[k] + (grid->size[k] / 2) * grid->voxel_mm[k];
    }
}

void app_set_window(struct app *app, double low, double high)
{
    app->slices.low = app->ranges[app->slices.image][0] = low;
    app->slices.high = app->ranges[app->slices.image][1] = high;
}

const char *app_choose_path(struct app *app, const char *ending)
{
    int number = 0;
    do {
        snprintf(app->saved_path, sizeof(app->saved_path), "loraster-view-%d%s", ++number, ending);
    } while (number < 9999 && access(app->saved_path, F_OK) == 0);
    return app->saved_path;
}

lr_status app_check_output(const struct app *app, const char *path)
{
    const struct study_view *open = &app->open;
    const char *paths[5 + APP_TOOLS] = {open->scanner_path, open->image_path, open->mu_path, open->second_path,
                                        open->data_path};
    for (int k = 0; app->tools[k] != NULL; k++)
        paths[5 + k] = app->tools[k]->input != NULL ? app->tools[k]->input(app) : NULL;
    for (int k = 0; k < 5 + APP_TOOLS; k++) {
        if (paths[k] == NULL) continue;
        const lr_file_uses uses = {
            .read = &paths[k], .num_read = 1, .written = &path, .num_written = 1, .log = &app->log};
        LR_TRY(lr_files_check(&uses));
    }
    return LR_OK;
}

lr_status app_write_target(struct app *app, const struct gl_target *target, const char *path)
{
    const int *size = target->size;
    lr_picture *picture = lr_picture_create(size, &app->log);
    uint8_t *texels = lr_alloc((int64_t)size[0] * size[1], 4, "a picture", &app->log);
    lr_status status = picture != NULL && texels != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) status = gl_texture_read(target->colours[0], NULL, texels);
    for (int64_t k = 0; status == LR_OK && k < (int64_t)size[0] * size[1]; k++) {
        const int64_t from = (size[1] - 1 - k / size[0]) * size[0] + k % size[0];
        for (int c = 0; c < 3; c++) picture->rgb[3 * k + c] = texels[4 * from + c];
    }
    if (status == LR_OK) status = lr_png_write(path, picture->rgb, size, &app->log);
    free(texels);
    lr_picture_destroy(picture);
    return status;
}

lr_status app_write_picture(struct app *app, const char *path)
{
    if (app->target == NULL) return lr_error(&app->log, LR_USAGE, "nothing has been drawn yet that could be saved");
    LR_TRY(app_check_output(app, path));
    return app_write_target(app, app->target, path);
}

struct draw_params scene_draw_params(const struct app *app)
{
    const double *second_range = app->ranges[app->slices.second];
    return (struct draw_params){.hides_scanner = app->hides_scanner,
                                .hides_lors = app->hides_lors,
                                .hovered_module = app->probe.hit.module,
                                .slices = app->slices,
                                .second_range = {second_range[0], second_range[1]},
                                .has_volume = app->has_volume};
}

const char *const scene_image_words[] = {"image",  "mu",    "tube",   "sensitivity", "live",
                                         "kernel", "histo", "second", NULL};
const char *const scene_plane_names[3] = {"sagittal", "coronal", "transaxial"};

/* --- under the mouse --- */

const struct probe scene_no_probe = {
    .pane = -1, .hit = {.module = -1}, .axis = -1, .value = NAN, .tube = NAN, .second = NAN};

/* Finds the voxel of an image that a pane shows at a point: the voxel in the slice, or the voxel with the largest value
 * along the axis. Returns false if there is none. */
static bool find_shown(const struct app *app, enum draw_image which, int axis, const double point_mm[3], int voxel[3])
{
    const struct gl_texture *texture = app->draw->images[which];
    const lr_grid *grid = draw_get_grid(app->draw, which);
    double first_mm[3] = {point_mm[0], point_mm[1], point_mm[2]};
    if (texture == NULL) return false;
    if (!app->slices.is_projected) return pick_voxel(grid, point_mm, voxel);
    first_mm[axis] = grid->origin_mm[axis];
    if (!pick_voxel(grid, first_mm, voxel)) return false;
    float *column = lr_alloc(grid->size[axis], sizeof(*column), "a column of voxels", &app->log);
    int sizes[3] = {1, 1, 1}, most = 0;
    sizes[axis] = grid->size[axis];
    const struct gl_box box = {voxel[0], voxel[1], voxel[2], sizes[0], sizes[1], sizes[2]};
    if (column != NULL && gl_texture_read(texture, &box, column) == LR_OK)
        for (int k = 1; k < grid->size[axis]; k++) most = column[k] > column[most] ? k : most;
    free(column);
    voxel[axis] = most;
    return true;
}

struct probe scene_probe(const struct app *app)
{
    struct probe probe = scene_no_probe;
    const struct draw_slices *slices = &app->slices;
    const lr_grid *grid = draw_get_grid(app->draw, slices->image);
    probe.pane = panes_at(app, (double[2]){app->mouse[0] + 0.5, app->mouse[1] + 0.5});
    const bool is_flat = probe.pane >= 0 && probe.pane != PANE_SCENE;
    if (probe.pane == PANE_SCENE) {
        struct pick_ray ray;
        double place[2], point[3];
        for (int k = 0; k < 2; k++) place[k] = (app->mouse[k] + 0.5 - app->scene_at[k]) / app->scene_size[k];
        camera_ray(&app->seen, place, ray.direction);
        for (int k = 0; k < 3; k++) ray.from_mm[k] = (double)app->seen.eye_mm[k];
        if (!app->hides_scanner) probe.hit = pick_module(app->drawn, &ray);

        /* A slice that is nearer to the eye replaces the module. */
        double nearest = probe.hit.module >= 0 ? probe.hit.share : HUGE_VAL;
        for (int axis = 0; axis < 3 && app->draw->images[slices->image] != NULL; axis++) {
            const double share = (slices->at_mm[axis] - ray.from_mm[axis]) / ray.direction[axis];
            if (!slices->is_shown[axis] || !pick_slice(grid, &ray, axis, slices->at_mm[axis], point) ||
                !(share < nearest))
                continue;
            nearest = share;
            probe.axis = axis;
            memcpy(probe.point_mm, point, sizeof(point));
        }
        if (probe.axis >= 0) (void)pick_voxel(grid, probe.point_mm, probe.voxel);
    }
    if (is_flat && panes_point(app, app->mouse, probe.point_mm) >= 0 &&
        find_shown(app, slices->image, probe.pane, probe.point_mm, probe.voxel)) {
        probe.axis = probe.pane;
        if (slices->is_projected)
            probe.point_mm[probe.axis] =
                grid->origin_mm[probe.axis] + probe.voxel[probe.axis] * grid->voxel_mm[probe.axis];
    }
    if (probe.axis >= 0) {
        const lr_grid *tube = draw_get_grid(app->draw, DRAW_TUBE), *second = draw_get_grid(app->draw, slices->second);
        int voxel[3];
        probe.hit.module = -1;
        probe.value = draw_get_voxel(app->draw, slices->image, probe.voxel);
        if (slices->overlay_high > 0.0 && !app->hides_lors && !(is_flat && slices->is_projected) &&
            slices->image != DRAW_TUBE && grid != NULL && tube != NULL &&
            memcmp(grid->size, tube->size, sizeof(grid->size)) == 0)
            probe.tube = draw_get_voxel(app->draw, DRAW_TUBE, probe.voxel);
        if (slices->mix != DRAW_MIX_NONE && second != NULL &&
            (is_flat ? find_shown(app, slices->second, probe.axis, probe.point_mm, voxel)
                     : pick_voxel(second, probe.point_mm, voxel)))
            probe.second = draw_get_voxel(app->draw, slices->second, voxel);
    }
    return probe;
}

void scene_describe_probe(const struct app *app, char *text, size_t size)
{
    const struct probe *probe = &app->probe;
    const struct pick_hit *hit = &probe->hit;
    const double *at = hit->module >= 0 ? hit->point_mm : probe->point_mm;
    const int *voxel = probe->voxel;
    char crystal[64] = "gap between crystals", layer[32] = "", tube[48] = "", second[96] = "";
    const struct draw_slices *slices = &app->slices;
    text[0] = '\0';
    if (hit->module >= 0) {
        const lr_module *module = &app->drawn->modules[hit->module];
        if (hit->crystal[0] >= 0 && hit->crystal[1] >= 0)
            snprintf(crystal, sizeof(crystal), "crystal p = %d, q = %d", hit->crystal[0], hit->crystal[1]);
        if (module->block > 0) snprintf(layer, sizeof(layer), ", layer %d", module->layer);
        snprintf(text, size, "module %d (ring %d, position %d%s), %s at (%.1f, %.1f, %.1f) mm", hit->module,
                 module->ring, module->position, layer, crystal, at[0], at[1], at[2]);
    } else if (probe->axis >= 0) {
        if (!isnan(probe->tube)) snprintf(tube, sizeof(tube), ", tube of response %.6g", probe->tube);
        if (!isnan(probe->second)) {
            const bool is_ratio = slices->mix == DRAW_MIX_RATIO, is_difference = slices->mix == DRAW_MIX_DIFFERENCE;
            const int length =
                snprintf(second, sizeof(second), ", %s %.6g", scene_images[slices->second].name, probe->second);
            if (is_ratio || is_difference) {
                snprintf(second + length, sizeof(second) - (size_t)length, ", %s %.6g",
                         is_ratio ? "ratio" : "difference",
                         is_ratio ? probe->value / probe->second : probe->value - probe->second);
            }
        }
        snprintf(text, size, "%s %.7g%s%s, voxel (%d, %d, %d), (%.2f, %.2f, %.2f) mm, %s %s",
                 scene_images[slices->image].name, probe->value, second, tube, voxel[0], voxel[1], voxel[2], at[0],
                 at[1], at[2], scene_plane_names[probe->axis],
                 probe->pane != PANE_SCENE && slices->is_projected ? "projection" : "slice");
    }
}

/* --- colours --- */

static const double bar_width = 300.0, scene_bar_width = 230.0, margin = 14.0;

const struct scene_image scene_images[DRAW_NUM_IMAGES] = {
    [DRAW_IMAGE] = {"image", "in the unit of its file"},
    [DRAW_MU] = {"mu-map", "1/mm"},
    [DRAW_TUBE] = {"tube of response", "detections per emission"},
    [DRAW_SENSITIVITY] = {"sensitivity", "detections per emission"},
    [DRAW_LIVE] = {"reconstruction", "emissions per voxel"},
    [DRAW_KERNEL] = {"DIRECT kernel", "share of the voxel's counts"},
    [DRAW_HISTO] = {"histo-image", "counts per voxel"},
    [DRAW_SECOND] = {"second image", "in the unit of its file"},
};

struct ui_bar scene_bar(int colours, const double range[2], const char *title)
{
    struct ui_bar bar = {.low = range[0], .high = range[1], .width = bar_width};
    snprintf(bar.title, sizeof(bar.title), "%s", title);
    for (int k = 0; k < UI_BAR_COLOURS; k++) {
        const double t = k / (UI_BAR_COLOURS - 1.0);
        const lr_colour colour =
            colours == DRAW_NUM_MAPS ? draw_tube_colour(t) : lr_colour_of((lr_colour_map)colours, t);
        bar.colours[k] = (uint32_t)colour.r << 24 | (uint32_t)colour.g << 16 | (uint32_t)colour.b << 8 | 0xff;
    }
    return bar;
}

/* --- in the scene --- */

static struct ui_bar image_bar(const struct app *app, enum draw_image which, int colours, const double range[2])
{
    char title[96];
    snprintf(title, sizeof(title), "%s (%s)", scene_images[which].name,
             app->units[which] != NULL ? app->units[which] : scene_images[which].unit);
    return scene_bar(colours, range, title);
}

void scene_show_labels(struct app *app)
{
    static const char *const names[3] = {"x", "y", "z (bed)"};
    const double scale = app->window->scale;
    ui_clip((double[2]){app->scene_at[0] / scale, app->scene_at[1] / scale},
            (double[2]){app->scene_size[0] / scale, app->scene_size[1] / scale});
    for (int k = 0; k < 3 && app->drawn != NULL && app->panes[PANE_SCENE].size[0] > 0.0; k++) {
        double end[3] = {0.0, 0.0, 0.0}, place[2];
        end[k] = 0.52 * app->camera.reach_mm;
        if (camera_project(&app->seen, end, place) && fmin(place[0], place[1]) >= 0.0 &&
            fmax(place[0], place[1]) <= 1.0) {
            ui_label((double[2]){(app->scene_at[0] + place[0] * app->scene_size[0]) / scale + 3.0,
                                 (app->scene_at[1] + place[1] * app->scene_size[1]) / scale - 7.0},
                     draw_axis_colours[k], names[k]);
        }
    }

    ui_unclip();

    struct ui_bar bars[6];
    const struct app_pane *pane =
        &app->panes[app->panes[PANE_SCENE].size[0] > 0.0 || app->alone < 0 ? PANE_SCENE : app->alone];
    const bool is_scene = pane == &app->panes[PANE_SCENE];
    /* In a slice's pane the bars end before the letter at the middle of its lower edge. */
    const double width = pane->size[0] / scale * (is_scene ? 1.0 : 0.5) - 2.0 * margin;
    /* The colour bars. A person chooses the colour map of slices; volumes and overlays have fixed maps. */
    const struct draw_slices *slices = &app->slices;
    const bool has_image = app->draw->images[slices->image] != NULL;
    const bool has_slices =
        has_image && (app->alone != PANE_SCENE || slices->is_shown[0] || slices->is_shown[1] || slices->is_shown[2]);
    const double range[2] = {slices->low, slices->high};
    int count = 0;
    const double crystals = app->draw->crystals_largest;
    if (crystals > 0.0 && !app->hides_scanner && app->panes[PANE_SCENE].size[0] > 0.0) {
        bars[count++] =
            scene_bar(LR_COLOURS_PERCEPTUAL, (double[2]){0.0, crystals}, "crystals (detections per emission)");
    }
    if (has_slices && slices->overlay_high > 0.0 && !app->hides_lors && slices->image != DRAW_TUBE &&
        app->draw->images[DRAW_TUBE] != NULL)
        bars[count++] = image_bar(app, DRAW_TUBE, DRAW_NUM_MAPS, (double[2]){0.0, slices->overlay_high});
    if (has_image && app->has_volume) {
        bars[count] = image_bar(app, slices->image, LR_COLOURS_PERCEPTUAL, range);
        count += !has_slices || slices->colours != LR_COLOURS_PERCEPTUAL;
    }

    const bool has_second = has_image && slices->mix != DRAW_MIX_NONE && app->draw->images[slices->second] != NULL;
    const double span = slices->high - slices->low;
    if (has_slices && !(has_second && (slices->mix == DRAW_MIX_DIFFERENCE || slices->mix == DRAW_MIX_RATIO)))
        bars[count++] = image_bar(app, slices->image, (int)slices->colours, range);
    if (has_second && slices->mix == DRAW_MIX_DIFFERENCE)
        bars[count++] = scene_bar(LR_COLOURS_DIVERGING, (double[2]){-span, span}, "difference: first - second");
    else if (has_second && slices->mix == DRAW_MIX_RATIO)
        bars[count++] = scene_bar(LR_COLOURS_DIVERGING, (double[2]){-1.0, 1.0}, "ratio: log2(first / second)");
    else if (has_second)
        bars[count++] = image_bar(app, slices->second, (int)slices->second_colours, app->ranges[slices->second]);

    double at[2] = {pane->at[0] / scale + margin, (pane->at[1] + pane->size[1]) / scale};
    for (int k = count - 1; k >= 0 && width > 60.0; k--) {
        bars[k].width = fmin(scene_bar_width, width);
        at[1] -= ui_bar_height(&bars[k]) + 8.0;
        if (k < count - 1 && at[1] < (pane->at[1] + 0.45 * pane->size[1]) / scale)
            break; /* the bars cover at most half of the pane */
        ui_bar(&bars[k], at);
    }
}
