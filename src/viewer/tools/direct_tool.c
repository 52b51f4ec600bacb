/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "viewer/app.h"
#include "viewer/frame/camera.h"
#include "viewer/frame/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct direct_request {
    lr_view view;
    lr_direct_kernel kernel; /* measured profiles are not available */
    double point_mm[3];      /* a point in the voxel whose kernel is requested */
};

/* Look-up tables of a view, and the kernel of one voxel. The same struct is the task and its result. */
struct direct_result {
    lr_grid grid;
    struct direct_request request;
    lr_direct_tables *tables;
    bool is_inside;   /* the point is in the grid; only then the members below are valid */
    int voxel[3];     /* the voxel that contains the point */
    int kernel;       /* identifier of the voxel's kernel in the view (the value of LORmap) */
    double radial_mm; /* distance of the voxel's centre from the axis, along the view's radial direction */
    lr_image *cloud;  /* the kernel's values (mSRval) at its offsets (mSR) around the voxel, 0 elsewhere; offsets that
                         lead outside the grid are left out */
    double largest;   /* largest value of the kernel */
};

enum { DIRECT_PATH = 1024 };

static const char *const models[] = {"invariant", "variant1", "variant2", "variant3", NULL};

struct direct_state {
    struct task_runner tables, histo;
    struct direct_request request;
    bool has_tof;  /* a person has set the time resolution; otherwise it is the scanner's */
    bool is_asked; /* after the first request, each change of the settings requests new tables */
    bool has_tables;
    int offset[3]; /* offset whose value is shown */
    struct gl_texture *map;
    int view;               /* view of the histo-images */
    double counts;          /* counts in that view */
    char path[DIRECT_PATH]; /* file to open */
};

/* --- tables --- */

static void destroy_tables(void *object)
{
    struct direct_result *result = object;
    lr_direct_tables_destroy(result->tables);
    lr_image_destroy(result->cloud);
    free(result);
}

static lr_status run_tables(void *object, const lr_log *log, const lr_progress *progress)
{
    struct direct_result *result = object;
    const lr_grid *grid = &result->grid;
    const int *voxel = result->voxel;
    LR_TRY(lr_progress_report(progress, "building look-up tables", 0, 1));
    result->tables = lr_direct_tables_create(&(lr_direct_tables_params){
        .grid = grid, .view = result->request.view, .kernel = result->request.kernel, .log = log});
    result->cloud = lr_image_create(grid, log);
    if (result->tables == NULL || result->cloud == NULL) return LR_FAILED;
    result->is_inside = pick_voxel(grid, result->request.point_mm, result->voxel);
    if (!result->is_inside) return LR_OK;

    double axes[3][3];
    result->kernel = lr_direct_tables_map(result->tables)[voxel[1] * grid->size[0] + voxel[0]];
    lr_view_axes(&result->request.view, axes);
    for (int k = 0; k < 3; k++) result->radial_mm += axes[1][k] * (grid->origin_mm[k] + voxel[k] * grid->voxel_mm[k]);

    /* Draws the kernel around the voxel; it is cut off at the edge of the grid. */
    const int32_t(*offsets)[3] = lr_direct_tables_offsets(result->tables);
    const double *values = lr_direct_tables_values(result->tables, result->kernel);
    const int64_t count = lr_direct_tables_get_info(result->tables)->num_offsets;
    for (int64_t n = 0; n < count; n++) {
        int64_t row = 0;
        for (int k = 2; k >= 0; k--) {
            const int at = voxel[k] + offsets[n][k];
            row = row >= 0 && at >= 0 && at < grid->size[k] ? row * grid->size[k] + at : -1;
        }
        result->largest = fmax(result->largest, values[n]);
        if (row >= 0) result->cloud->values[row] = (float)values[n];
    }
    return LR_OK;
}

/* The kernel's value (mSRval) at an offset in voxels; 0 if the offset is not in the list mSR. */
static double direct_kernel_value(const struct direct_result *result, const int offset[3])
{
    const int32_t(*offsets)[3] = lr_direct_tables_offsets(result->tables);
    const double *values = lr_direct_tables_values(result->tables, result->kernel);
    const int64_t count = lr_direct_tables_get_info(result->tables)->num_offsets;
    for (int64_t k = 0; k < count; k++)
        if (offsets[k][0] == offset[0] && offsets[k][1] == offset[1] && offsets[k][2] == offset[2]) return values[k];
    return 0.0;
}

/* --- histo-images --- */

struct histo_task {
    char *path;
    lr_histo_images *histo;
};

static void destroy_histo(void *object)
{
    struct histo_task *task = object;
    lr_histo_images_destroy(task->histo);
    lr_free_all(task->path, task);
}

static lr_status run_histo(void *object, const lr_log *log, const lr_progress *progress)
{
    struct histo_task *task = object;
    LR_TRY(lr_progress_report(progress, "reading histo-images", 0, 1));
    task->histo = lr_histo_images_read(task->path, log);
    return task->histo != NULL ? LR_OK : LR_FAILED;
}

static const struct task_kind direct_tables_kind = {"building look-up tables", run_tables, destroy_tables};
static const struct task_kind direct_histo_kind = {"reading histo-images", run_histo, destroy_histo};

/* --- opening and closing --- */

static const double usual_tof_ps = 400.0;

static lr_status open_direct(struct app *app)
{
    struct direct_state *tool = app_state(app, &direct_tool);
    task_runner_init(&tool->tables, &direct_tables_kind);
    task_runner_init(&tool->histo, &direct_histo_kind);
    app->runners[app->num_runners++] = &tool->tables;
    app->runners[app->num_runners++] = &tool->histo;
    tool->request.kernel.resolution.tof_ps = usual_tof_ps;
    return LR_OK;
}

static void close_direct(struct app *app)
{
    struct direct_state *tool = app_state(app, &direct_tool);
    gl_texture_destroy(tool->map);
    task_runner_finish(&tool->tables);
    task_runner_finish(&tool->histo);
}

const lr_histo_images *direct_tool_histo(const struct app *app)
{
    struct direct_state *tool = app_state(app, &direct_tool);
    const struct histo_task *task = tool->histo.result;
    return task != NULL ? task->histo : NULL;
}

static const char *histo_path(const struct app *app)
{
    struct direct_state *tool = app_state(app, &direct_tool);
    const struct histo_task *task = tool->histo.result;
    return task != NULL ? task->path : NULL;
}

/* --- requests --- */

const lr_direct_kernel *direct_tool_kernel(struct app *app)
{
    struct direct_state *tool = app_state(app, &direct_tool);
    const lr_scanner *scanner = app->open.scanner;
    if (!tool->has_tof && scanner != NULL && scanner->tof_resolution_ps > 0.0)
        tool->request.kernel.resolution.tof_ps = scanner->tof_resolution_ps;
    return &tool->request.kernel;
}

static void ask(struct app *app)
{
    struct direct_state *tool = app_state(app, &direct_tool);
    (void)direct_tool_kernel(app);
    memcpy(tool->request.point_mm, app->point_mm, sizeof(tool->request.point_mm));
    const lr_histo_images *histo = direct_tool_histo(app);
    const lr_grid *grid = histo != NULL ? &histo->grid : &app->open.grid;
    struct direct_result *task = NULL;
    if (grid->size[0] > 0)
        task = lr_alloc(1, sizeof(*task), "look-up tables", &app->log);
    else
        lr_error(&app->log, LR_USAGE, "there is no grid: open a scanner or an image first");
    tool->is_asked = task != NULL;
    if (task == NULL) return;
    task->grid = *grid;
    task->request = tool->request;
    task_runner_ask(&tool->tables, task);
}

static lr_status open_histo(struct app *app, const char *path)
{
    struct direct_state *tool = app_state(app, &direct_tool);
    struct histo_task *task = lr_alloc(1, sizeof(*task), "histo-images", &app->log);
    if (task != NULL) task->path = lr_copy_string(path, &app->log);
    if (task != NULL && task->path != NULL)
        task_runner_ask(&tool->histo, task);
    else
        free(task);
    return LR_OK;
}

static void show_view(struct app *app, int view)
{
    struct direct_state *tool = app_state(app, &direct_tool);
    const lr_histo_images *histo = direct_tool_histo(app);
    if (histo == NULL || view < 0 || view >= histo->num_views) return;
    const int64_t count = lr_grid_num_voxels(&histo->grid);
    const lr_image image = {.grid = histo->grid, .values = histo->values + view * count};
    double most = 0.0;
    tool->view = view;
    tool->counts = 0.0;
    for (int64_t v = 0; v < count; v++) {
        most = fmax(most, (double)image.values[v]);
        tool->counts += image.values[v];
    }
    app_put_image(app, DRAW_HISTO, &image, most);
    app_show_image(app, DRAW_HISTO);
    tool->request.view = histo->views[view];
    if (tool->is_asked) ask(app);
}

/* --- results --- */

static lr_status update(struct app *app)
{
    struct direct_state *tool = app_state(app, &direct_tool);
    if (task_runner_take_failure(&tool->tables)) {
        app_take_failure(app, &tool->tables.report, false);
        tool->is_asked = false;
    }
    if (task_runner_take_failure(&tool->histo)) app_take_failure(app, &tool->histo.report, false);
    if (task_runner_take(&tool->histo)) show_view(app, 0);
    if (task_runner_take(&tool->tables)) {
        const struct direct_result *result = tool->tables.result;
        const bool is_first = !tool->has_tables;
        tool->has_tables = true;
        const lr_direct_tables_info *info = lr_direct_tables_get_info(result->tables);
        const int32_t *map = lr_direct_tables_map(result->tables);
        const int64_t across = info->grid.size[0], count = across * info->grid.size[1];
        uint8_t *texels = lr_alloc(count, 4, "a LORmap to show", &app->log);
        for (int64_t k = 0; texels != NULL && k < count; k++) {
            const lr_colour colour = lr_colour_of(LR_COLOURS_PERCEPTUAL, (map[k] + 0.5) / info->num_kernels);
            const int64_t texel = k + across - 1 - 2 * (k % across); /* x grows to the left, as in the panes */
            memcpy(&texels[4 * texel], (uint8_t[4]){colour.r, colour.g, colour.b, 255}, 4);
        }
        if (texels != NULL) (void)draw_set_picture(&tool->map, app->ctx, "LORmap", info->grid.size, texels);
        free(texels);

        /* The scene shows the chosen voxel. The lines of the voxel tool and of the LOR tool are hidden. */
        if (app->tool == &direct_tool) {
            (void)draw_set_lines(app->draw, DRAW_LORS, NULL, 0);
            (void)draw_set_lines(app->draw, DRAW_LOR, NULL, 0);
            (void)draw_set_crystal_values(app->draw, NULL, 0.0);
            (void)draw_set_cross(app->draw, DRAW_CURSOR, result->request.point_mm, 0.04 * app->camera.reach_mm);
        }

        app_put_image(app, DRAW_KERNEL, result->is_inside ? result->cloud : NULL, result->largest);
        if (is_first || app->slices.image == DRAW_KERNEL) app_show_image(app, DRAW_KERNEL);
    }

    if (tool->is_asked && memcmp(tool->request.point_mm, app->point_mm, sizeof(tool->request.point_mm)) != 0) ask(app);
    return LR_OK;
}

/* --- the panel --- */

static const double picture_width = 370.0, most_height = 260.0;

static void show_panel(struct app *app)
{
    struct direct_state *tool = app_state(app, &direct_tool);
    const struct direct_result *result = tool->tables.result;
    lr_resolution *resolution = &tool->request.kernel.resolution;
    double angles[2] = {tool->request.view.azimuth_deg, tool->request.view.tilt_deg};
    int model = (int)resolution->model;
    bool has_changed = false;
    if (ui_reals("azimuth, tilt (deg)", angles, 2)) {
        tool->request.view = (lr_view){angles[0], angles[1]};
        has_changed = true;
    }
    ui_hint("the direction of the view: about the axis, and out of the plane across it");
    if (ui_reals("time resolution (ps)", &resolution->tof_ps, 1)) has_changed = tool->has_tof = true;
    ui_hint("full width at half maximum of the times of flight");
    if (ui_choose("width across", &model, models, 4)) {
        resolution->model = (lr_radial_model)model;
        has_changed = true;
    }
    ui_hint("how the kernel's width depends on the distance from the axis, as --model of loraster direct lut");
    has_changed |= ui_check("asymmetric", &resolution->asymmetric);
    ui_hint("the kernel is wider towards the outside, where photons enter crystals from the side");
    if (!tool->is_asked) {
        if (ui_button("compute the tables", app->open.grid.size[0] > 0)) has_changed = tool->is_asked = true;
        ui_hint("the look-up tables of this view; later changes compute them anew");
    }
    if (has_changed && tool->is_asked) ask(app);
    if (tool->tables.report.state == JOB_RUNNING) ui_progress(tool->tables.report.share, tool->tables.report.doing);

    if (result != NULL && tool->map != NULL) {
        const lr_direct_tables_info *info = lr_direct_tables_get_info(result->tables);
        const lr_grid *grid = &info->grid;
        const double scale = fmin(picture_width / grid->size[0], most_height / grid->size[1]);
        const struct ui_image image = {.texture = tool->map, .size = {scale * grid->size[0], scale * grid->size[1]}};
        const struct ui_touch touch = ui_image("##LORmap", &image);
        if (touch.is_over) { /* the mouse is over the map; a click moves the chosen point within its slice */
            const int x = (int)fmin(fmax((1.0 - touch.at[0]) * grid->size[0], 0.0), grid->size[0] - 1.0);
            const int y = (int)fmin(fmax((1.0 - touch.at[1]) * grid->size[1], 0.0), grid->size[1] - 1.0);
            const int kernel = lr_direct_tables_map(result->tables)[y * grid->size[0] + x];
            const int identifier = kernel % info->num_identifiers;
            const struct ui_part part = {{1.0 - (x + 1.0) / grid->size[0], 1.0 - (y + 1.0) / grid->size[1]},
                                         {1.0 - (double)x / grid->size[0], 1.0 - (double)y / grid->size[1]}};
            ui_tooltip(&part, "voxel (%d, %d) at (%.2f, %.2f) mm: kernel %d\n%.4g to %.4g mm from the axis", x, y,
                       grid->origin_mm[0] + x * grid->voxel_mm[0], grid->origin_mm[1] + y * grid->voxel_mm[1], kernel,
                       identifier * info->epsilon_mm, (identifier + 1) * info->epsilon_mm);
            if (touch.is_pressed) {
                const double point_mm[3] = {grid->origin_mm[0] + x * grid->voxel_mm[0],
                                            grid->origin_mm[1] + y * grid->voxel_mm[1], app->point_mm[2]};
                voxel_tool_set_point(app, point_mm);
            }
        }
        const struct ui_bar bar = scene_bar(LR_COLOURS_PERCEPTUAL, (double[2]){0.0, info->num_kernels},
                                            "LORmap: number of the voxel's kernel");
        if (result->is_inside) {
            const double at[2] = {1.0 - (result->voxel[0] + 0.5) / grid->size[0],
                                  1.0 - (result->voxel[1] + 0.5) / grid->size[1]};
            const double half[2] = {0.5 / grid->size[0], 0.5 / grid->size[1]};
            ui_mark((const double[2]){at[0] - half[0], at[1] - half[1]},
                    (const double[2]){at[0] + half[0], at[1] + half[1]}, true, 0xffffffff);
        }
        ui_bar(&bar, NULL);

        ui_text("%d identifiers of %.4g mm; %lld offsets in mSR", info->num_identifiers, info->epsilon_mm,
                (long long)info->num_offsets);
        ui_toned(UI_DIM, "sigma %.4g mm along the line, up to %.4g across, %.4g axially", info->sigma_mm[0],
                 info->sigma_mm[1], info->sigma_mm[2]);
        if (!result->is_inside) {
            ui_toned(UI_DIM, "the chosen point is outside the grid");
        } else {
            ui_text("voxel (%d, %d, %d), %.4g mm from the axis: kernel %d", result->voxel[0], result->voxel[1],
                    result->voxel[2], result->radial_mm, result->kernel);
            ui_integers("offset", tool->offset, 3);
            ui_hint("in voxels along x, y and z");
            ui_text("value %.8g, the largest is %.8g", direct_kernel_value(result, tool->offset), result->largest);
            if (ui_button("show the kernel", true)) app_show_image(app, DRAW_KERNEL);
            ui_hint("on the slices and as a volume, about the chosen voxel");
        }
    }

    ui_line();
    ui_text("histo-images");
    const lr_histo_images *histo = direct_tool_histo(app);
    ui_write("##histo path", tool->path, sizeof(tool->path));
    ui_hint("path of a file of histo-images");
    ui_beside();
    if (ui_button("open them", tool->path[0] != '\0')) open_histo(app, tool->path);
    ui_hint("histo-images (HDF5), as loraster direct deposit writes them");
    if (tool->histo.report.state == JOB_RUNNING) ui_progress(tool->histo.report.share, tool->histo.report.doing);
    if (histo == NULL) return;
    int view = tool->view;
    if (ui_slide("view", &view, (const int[2]){0, histo->num_views - 1}) && view != tool->view) show_view(app, view);
    ui_hint("the histo-image that is shown, and whose tables are above");
    ui_text("azimuth %.4g, tilt %.4g degrees: %.6g counts", histo->views[tool->view].azimuth_deg,
            histo->views[tool->view].tilt_deg, tool->counts);
    if (ui_button("show the histo-image", true)) app_show_image(app, DRAW_HISTO);
    ui_hint("on the slices, in counts per voxel");
}

/* --- scripts --- */

static lr_status act_direct(struct app *app, const struct command_words *words)
{
    struct direct_state *tool = app_state(app, &direct_tool);
    lr_resolution *resolution = &tool->request.kernel.resolution;
    int model = (int)resolution->model;
    LR_TRY(command_real(&app->log, words, 1, &tool->request.view.azimuth_deg));
    LR_TRY(command_real(&app->log, words, 2, &tool->request.view.tilt_deg));
    if (words->count > 3) {
        LR_TRY(command_real(&app->log, words, 3, &resolution->tof_ps));
        tool->has_tof = true;
    }
    if (words->count > 4) {
        LR_TRY(command_choice(&app->log, words, 4, models, &model));
        resolution->model = (lr_radial_model)model;
    }
    ask(app);
    return tool->is_asked ? LR_OK : LR_USAGE;
}

static lr_status act_histo(struct app *app, const struct command_words *words)
{
    const lr_histo_images *histo = direct_tool_histo(app);
    int view = 0;
    LR_TRY(command_integer(&app->log, words, 1, &view));
    if (histo == NULL || view < 0 || view >= histo->num_views) {
        return lr_error(&app->log, LR_USAGE, "there is no histo-image %d: %d are open", view,
                        histo != NULL ? histo->num_views : 0);
    }
    show_view(app, view);
    return LR_OK;
}

static lr_status act_offset(struct app *app, const struct command_words *words)
{
    struct direct_state *tool = app_state(app, &direct_tool);
    for (int k = 0; k < 3; k++) LR_TRY(command_integer(&app->log, words, 1 + k, &tool->offset[k]));
    return LR_OK;
}

static bool get_value(struct app *app, const char *name, struct command_value *value)
{
    const struct direct_state *tool = app_state(app, &direct_tool);
    const struct direct_result *result = tool->tables.result;
    const lr_direct_tables_info *info = result != NULL ? lr_direct_tables_get_info(result->tables) : NULL;
    const bool is_inside = result != NULL && result->is_inside;
    const struct command_number numbers[] = {
        {"direct.identifiers", info != NULL ? info->num_identifiers : 0},
        {"direct.offsets", info != NULL ? (double)info->num_offsets : 0.0},
        {"direct.kernel", is_inside ? result->kernel : -1},
        {"direct.value", is_inside ? direct_kernel_value(result, tool->offset) : 0.0},
        {"direct.counts", tool->counts},
        {0},
    };
    return command_pick(numbers, &(struct command_text){0}, name, value);
}

static const struct command commands[] = {
    {"direct", "AZIMUTH_DEG TILT_DEG [TOF_PS [MODEL]]", 2, 4, .act = act_direct},
    {"histo", "VIEW", 1, 1, .act = act_histo},
    {"offset", "DX DY DZ", 3, 3, .act = act_offset},
    {0},
};

const struct viewer_tool direct_tool = {.name = "DIRECT",
                                        .word = "direct",
                                        .mode = LR_SESSION_DIRECT,
                                        .state_bytes = sizeof(struct direct_state),
                                        .opens = LR_FILE_HISTO,
                                        .open_file = open_histo,
                                        .input = histo_path,
                                        .open = open_direct,
                                        .close = close_direct,
                                        .update = update,
                                        .panel = show_panel,
                                        .commands = commands,
                                        .get_value = get_value};
