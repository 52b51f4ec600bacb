/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/voxel_task.h"

#include "base/log.h"
#include "base/mem.h"
#include "picture/pixel_lor.h"
#include "viewer/study/operators.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const voxel_backends[] = {"raster", "compute", "cpu", NULL};

/* Of all windows together: some 3 GB. */
static const double most_pixels = 64e6;

/* --- the request --- */

static lr_status check(const struct study_view *study, const struct voxel_request *request,
                       const lr_log *log)
{
    if (study->scanner == NULL) {
        return lr_error(log, LR_USAGE, "there is no scanner: open one first");
    }
    if (!request->all_primaries &&
        (request->primary < 0 || request->primary >= study->scanner->num_modules)) {
        return lr_error(log, LR_USAGE, "module %d does not exist: the scanner has modules 0 to %d",
                        request->primary, study->scanner->num_modules - 1);
    }
    for (int k = 0; k < 3; k++) {
        if (!isfinite(request->point_mm[k])) {
            return lr_error(log, LR_USAGE, "the point's %c is not a finite number", "xyz"[k]);
        }
    }
    return LR_OK;
}

/* The voxel of the study's grid that holds the point, else one like it about the point. */
static void find_voxel(struct voxel_task *task)
{
    const lr_grid *grid = &task->study.grid;
    const double *point_mm = task->result.request.point_mm;
    lr_grid *voxel = &task->result.voxel;
    int64_t row = 0, stride = 1;
    for (int k = 0; k < 3; k++) {
        const double place = floor((point_mm[k] - grid->origin_mm[k]) / grid->voxel_mm[k] + 0.5);
        const bool inside = row >= 0 && place >= 0 && place < grid->size[k];
        row = inside ? row + stride * (int64_t)place : -1;
        stride *= grid->size[k];
        voxel->size[k] = 1;
        voxel->voxel_mm[k] = grid->voxel_mm[k];
        voxel->origin_mm[k] = point_mm[k];
    }
    task->result.voxel_row = row;
    if (row >= 0) {
        lr_grid_voxel_centre(grid, row, voxel->origin_mm);
    }
}

static lr_status make_windows(struct voxel_task *task, const lr_log *log)
{
    struct voxel_result *result = &task->result;
    const struct voxel_request *request = &result->request;
    const int count = request->all_primaries ? task->study.scanner->num_modules : 1;
    task->windows = lr_alloc(count, sizeof(*task->windows), "windows", log);
    task->arrays = lr_alloc(count, sizeof(*task->arrays), "windows", log);
    if (task->windows == NULL || task->arrays == NULL) {
        return LR_FAILED;
    }
    result->num_windows = count;
    result->windows = task->windows;
    for (int k = 0; k < count; k++) {
        task->windows[k].module = request->all_primaries ? k : request->primary;
    }
    return LR_OK;
}

static void voxel_arrays_finish(struct voxel_arrays *arrays)
{
    free(arrays->pixels);
    free(arrays->lors);
    free(arrays->weight);
    free(arrays->sampled);
    free(arrays->exact);
    free(arrays->difference);
}

static void destroy(void *object)
{
    struct voxel_task *task = object;
    for (int k = 0; k < task->result.num_windows; k++) {
        voxel_arrays_finish(&task->arrays[k]);
    }
    for (int k = 0; k < NUM_VOXEL_ROWS; k++) {
        row_copy_finish(&task->rows[k]);
    }
    free(task->windows);
    free(task->arrays);
    study_view_release(&task->study);
    free(task);
}

lr_status voxel_task_create(const struct study_view *study, const struct voxel_request *request,
                            const lr_log *log, struct voxel_task **task)
{
    *task = NULL;
    LR_TRY(check(study, request, log));
    struct voxel_task *made = lr_alloc(1, sizeof(*made), "a voxel's picture", log);
    if (made == NULL) {
        return LR_FAILED;
    }
    made->study = study_view_hold(study);
    made->request = *request;
    made->request.backend = backend_name(request->backend, voxel_backends[0]);
    made->result.request = *request;
    made->result.request.backend = NULL; /* may be gone before the job ends */
    made->result.has_exact = request->mode != LR_MODE_SAMPLED;
    made->result.has_mu = study->mu != NULL && !request->without_mu;
    find_voxel(made);
    if (make_windows(made, log) != LR_OK) {
        destroy(made);
        return LR_FAILED;
    }
    *task = made;
    return LR_OK;
}

/* --- operators and rows --- */

/* What an operator is for. */
enum purpose { FOR_WINDOWS, FOR_SAMPLED, FOR_EXACT };

/* In the order in which they are tried. native computes what it can as fast as a processor does. */
static const char *backends_for(const struct voxel_request *request, enum purpose purpose)
{
    if (strcmp(request->backend, "cpu") == 0) {
        return "cpu";
    }
    const bool computes = strcmp(request->backend, "compute") == 0;
    if (purpose == FOR_EXACT && !computes) {
        return request->on_graphics ? "compute,native,cpu" : "native,cpu";
    }
    return computes && purpose != FOR_WINDOWS ? "compute,cpu" : "raster,cpu";
}

/* params: log and progress. */
static lr_status create_operator(const struct voxel_task *task, enum purpose purpose,
                                 lr_operator_params params, lr_operator **op)
{
    const struct voxel_request *request = &task->request;
    const lr_mode mode = purpose == FOR_EXACT ? LR_MODE_EXACT : LR_MODE_SAMPLED;
    params.lors = task->study.lors;
    params.grid = &task->result.voxel;
    params.backend = backends_for(request, purpose);
    params.mode = mode;
    params.rays = mode == LR_MODE_EXACT ? 0 : request->rays;
    params.mu = task->result.has_mu ? task->study.mu : NULL;
    params.mu_steps = task->result.has_mu ? request->mu_steps : 0;
    params.store = LR_STORE_NO;
    if (request->samples > 0) {
        lr_grid_split_samples(&task->result.voxel, request->samples, params.samples);
    }
    return operator_create(&params, op);
}

static lr_status compute_row(struct voxel_task *task, lr_operator *op, enum voxel_row_kind kind,
                             const lr_log *log)
{
    const double(*point)[3] = (const double(*)[3])task->request.point_mm;
    struct row_copier copier = {&task->rows[kind], log};
    const lr_row_sink sink = row_copier_sink(&copier);
    return kind == ROW_POINT_SAMPLED || kind == ROW_POINT_EXACT
               ? lr_operator_point_rows(op, point, 1, &sink)
               : lr_operator_rows(op, 0, 1, &sink);
}

/* Why cpu does what another was asked for. */
static void note_passed_over(struct voxel_result *result, const lr_operator_info *info)
{
    if (info->passed_over != NULL && strcmp(info->backend, "cpu") == 0) {
        snprintf(result->why_not, sizeof(result->why_not), "%s", info->passed_over);
    }
}

static void note_elements(struct voxel_result *result, enum purpose purpose,
                          const lr_operator_info *info)
{
    const char *name = backend_name(info->backend, "");
    if (purpose == FOR_EXACT) {
        result->exact_by = name;
    } else {
        result->sampled_by = name;
        note_passed_over(result, info);
    }
}

/* A row by an operator of its own. */
static lr_status compute_alone(struct voxel_task *task, enum purpose purpose,
                               enum voxel_row_kind kind, const lr_operator_params *params)
{
    lr_operator *op = NULL;
    LR_TRY(create_operator(task, purpose, *params, &op));
    note_elements(&task->result, purpose, lr_operator_get_info(op));
    const lr_status status = compute_row(task, op, kind, params->log);
    lr_operator_destroy(op);
    return status;
}

static struct voxel_row look_at(const struct row_copy *copy)
{
    const struct lr_owned_row *row = &copy->row;
    return (struct voxel_row){row->count, row->lor, row->probability, copy->order, copy->sum};
}

/* --- windows --- */

static lr_status allocate(struct voxel_window *window, struct voxel_arrays *arrays, bool has_exact,
                          const lr_log *log)
{
    static const char what[] = "a correspondence image";
    const int64_t count = (int64_t)window->size[0] * window->size[1];
    arrays->pixels = lr_alloc(count, sizeof(*arrays->pixels), what, log);
    arrays->lors = lr_alloc(count, sizeof(*arrays->lors), what, log);
    arrays->weight = lr_alloc(count, sizeof(*arrays->weight), what, log);
    arrays->sampled = lr_alloc(count, sizeof(*arrays->sampled), what, log);
    if (has_exact) {
        arrays->exact = lr_alloc(count, sizeof(*arrays->exact), what, log);
        arrays->difference = lr_alloc(count, sizeof(*arrays->difference), what, log);
    }
    window->pixels = arrays->pixels;
    window->lors = arrays->lors;
    window->weight = arrays->weight;
    window->sampled = arrays->sampled;
    window->exact = arrays->exact;
    window->difference = arrays->difference;
    const bool complete = arrays->pixels && arrays->lors && arrays->weight && arrays->sampled &&
                          (!has_exact || (arrays->exact && arrays->difference));
    return complete ? LR_OK : LR_FAILED;
}

static lr_status size_windows(struct voxel_task *task, const lr_log *log)
{
    struct voxel_result *result = &task->result;
    const int rays = result->request.rays;
    double total = 0;
    for (int k = 0; k < result->num_windows; k++) {
        const int *crystals = task->study.scanner->modules[task->windows[k].module].crystals;
        total += (double)crystals[0] * crystals[1] * rays * rays;
    }
    if (total > most_pixels) {
        return lr_error(log, LR_USAGE,
                        "R = %d gives %.3g pixels: choose a smaller R, or one primary module", rays,
                        total);
    }
    for (int k = 0; k < result->num_windows; k++) {
        struct voxel_window *window = &task->windows[k];
        const int *crystals = task->study.scanner->modules[window->module].crystals;
        window->size[0] = crystals[0] * rays;
        window->size[1] = crystals[1] * rays;
        LR_TRY(allocate(window, &task->arrays[k], result->has_exact, log));
    }
    return LR_OK;
}

static lr_status draw_windows(struct voxel_task *task, lr_operator *op, const lr_progress *progress)
{
    struct voxel_result *result = &task->result;
    for (int k = 0; k < result->num_windows; k++) {
        LR_TRY(
            lr_progress_report(progress, "drawing correspondence images", k, result->num_windows));
        LR_TRY(lr_operator_picture(op, result->request.point_mm, task->windows[k].module,
                                   task->arrays[k].pixels));
    }
    return LR_OK;
}

static void fill_pixel(struct voxel_task *task, int k, int64_t n, const lr_row rows[2])
{
    struct voxel_result *result = &task->result;
    struct voxel_arrays *arrays = &task->arrays[k];
    const struct voxel_window *window = &task->windows[k];
    const struct lr_pixel_window pixels = {task->study.lors, window->module, result->request.rays,
                                           window->pixels};
    const int64_t lor =
        lr_pixel_lor(&pixels, (int)(n % window->size[0]), (int)(n / window->size[0]));
    const double sampled = lor >= 0 ? lr_row_element(&rows[0], lor) : NAN;
    arrays->lors[n] = lor;
    arrays->weight[n] = arrays->pixels[n].weight;
    arrays->sampled[n] = (float)sampled;
    result->high_weight = fmaxf(result->high_weight, arrays->weight[n]);
    result->high_element = fmaxf(result->high_element, arrays->sampled[n]); /* passes over NaN */
    if (result->has_exact) {
        const double exact = lor >= 0 ? lr_row_element(&rows[1], lor) : NAN;
        arrays->exact[n] = (float)exact;
        arrays->difference[n] = (float)(sampled - exact);
        result->high_element = fmaxf(result->high_element, arrays->exact[n]);
        result->high_difference = fmaxf(result->high_difference, fabsf(arrays->difference[n]));
    }
}

static lr_status fill_windows(struct voxel_task *task, const lr_progress *progress)
{
    const lr_row rows[2] = {lr_owned_row_view(&task->rows[ROW_POINT_SAMPLED].row, 0),
                            lr_owned_row_view(&task->rows[ROW_POINT_EXACT].row, 0)};
    for (int k = 0; k < task->result.num_windows; k++) {
        const struct voxel_window *window = &task->windows[k];
        const int64_t count = (int64_t)window->size[0] * window->size[1];
        LR_TRY(lr_progress_report(progress, "colouring", k, task->result.num_windows));
        for (int64_t n = 0; n < count; n++) {
            fill_pixel(task, k, n, rows);
        }
    }
    return LR_OK;
}

/* --- all of it --- */

static void note_settings(struct voxel_task *task, const lr_operator *op)
{
    const lr_operator_info *info = lr_operator_get_info(op);
    task->result.request.rays = info->rays;
    task->result.request.mu_steps = task->result.has_mu ? info->mu_steps : 0;
    task->result.request.samples = info->samples[0] * info->samples[1] * info->samples[2];
    memcpy(task->result.samples, info->samples, sizeof(task->result.samples));
}

static void note_drawing(struct voxel_result *result, const lr_operator_info *info)
{
    result->drawn_by = backend_name(info->backend, "");
    snprintf(result->drawn_on, sizeof(result->drawn_on), "%s", info->device);
    note_passed_over(result, info);
}

/* Windows, and by the same operator the row that goes with them, where one does both. */
static lr_status run_sampled(struct voxel_task *task, lr_operator *op,
                             const lr_operator_params *params)
{
    const bool does_both = strcmp(task->request.backend, "compute") != 0;
    note_settings(task, op);
    note_drawing(&task->result, lr_operator_get_info(op));
    LR_TRY(size_windows(task, params->log));
    LR_TRY(draw_windows(task, op, params->progress));
    if (!does_both) {
        return compute_alone(task, FOR_SAMPLED, ROW_POINT_SAMPLED, params);
    }
    note_elements(&task->result, FOR_SAMPLED, lr_operator_get_info(op));
    return compute_row(task, op, ROW_POINT_SAMPLED, params->log);
}

static lr_status run_windows(void *object, const lr_log *log, const lr_progress *progress)
{
    struct voxel_task *task = object;
    struct voxel_result *result = &task->result;
    const lr_operator_params params = {.log = log, .progress = progress};
    lr_operator *op = NULL;
    LR_TRY(create_operator(task, FOR_WINDOWS, params, &op));
    const lr_status status = run_sampled(task, op, &params);
    lr_operator_destroy(op);
    LR_TRY(status);
    if (result->has_exact) {
        LR_TRY(compute_alone(task, FOR_EXACT, ROW_POINT_EXACT, &params));
    }
    result->point_sampled = look_at(&task->rows[ROW_POINT_SAMPLED]);
    result->point_exact = look_at(&task->rows[ROW_POINT_EXACT]);
    return fill_windows(task, progress);
}

static lr_status run_means(void *object, const lr_log *log, const lr_progress *progress)
{
    struct voxel_task *task = object;
    struct voxel_result *result = &task->result;
    const lr_operator_params params = {.log = log, .progress = progress};
    LR_TRY(compute_alone(task, FOR_SAMPLED, ROW_VOXEL_SAMPLED, &params));
    if (result->has_exact) {
        LR_TRY(compute_alone(task, FOR_EXACT, ROW_VOXEL_EXACT, &params));
    }
    result->voxel_sampled = look_at(&task->rows[ROW_VOXEL_SAMPLED]);
    result->voxel_exact = look_at(&task->rows[ROW_VOXEL_EXACT]);
    return LR_OK;
}

const struct newest_kind voxel_windows_kind = {"drawing correspondence images", run_windows,
                                               destroy};
const struct newest_kind voxel_means_kind = {"averaging over the voxel", run_means, destroy};
