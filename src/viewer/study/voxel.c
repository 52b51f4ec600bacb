/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/voxel.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/units.h"
#include "base/vec.h"
#include "picture/pixel_lor.h"
#include "viewer/frame/draw.h"

#include <lr/picture.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- copies of matrix rows --- */

/* An element, in the form that qsort sorts. */
struct entry {
    double probability;
    int64_t place;
};

static int compare(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    return lr_order_then(lr_order(right->probability, left->probability), lr_order_whole(left->place, right->place));
}

lr_status row_copier_take(void *user, const lr_row *row)
{
    const struct row_copier *copier = user;
    struct row_copy *copy = copier->copy;
    const int64_t count = row->count;
    row_copy_finish(copy);
    LR_TRY(lr_owned_row_copy(&copy->row, row, copier->log));
    for (int64_t k = 0; k < count; k++) copy->sum += row->probability[k];
    if (!copier->has_order) return LR_OK;

    struct entry *entries = lr_alloc(count, sizeof(*entries), "a matrix row", copier->log);
    copy->order = lr_alloc(count, sizeof(*copy->order), "a matrix row", copier->log);
    if (entries == NULL || copy->order == NULL) {
        free(entries);
        return LR_FAILED;
    }
    for (int64_t k = 0; k < count; k++) entries[k] = (struct entry){copy->row.probability[k], k};
    qsort(entries, (size_t)count, sizeof(*entries), compare);
    for (int64_t k = 0; k < count; k++) copy->order[k] = entries[k].place;
    free(entries);
    return LR_OK;
}

void row_copy_finish(struct row_copy *copy)
{
    lr_owned_row_finish(&copy->row);
    free(copy->order);
    *copy = (struct row_copy){0};
}

/* --- tasks --- */

enum voxel_row_kind { ROW_POINT_SAMPLED = 0, ROW_POINT_EXACT, ROW_VOXEL_SAMPLED, ROW_VOXEL_EXACT, NUM_VOXEL_ROWS };

struct voxel_task {
    struct study_view study;        /* a reference is held */
    struct cached_operator *cached; /* [VOXEL_NUM_PURPOSES] owned by voxel mode */
    struct voxel_request request;   /* the request, with a static string as backend */
    enum voxel_purpose sampler; /* operator that samples elements; it is VOXEL_SAMPLED only if compute is requested */
    int64_t id;                 /* number of the request */
    struct voxel_result result;
    struct voxel_window *windows; /* owned [result.num_windows], including the windows' arrays */
    int32_t *pairs;               /* owned [result.num_pairs] */
    struct row_copy rows[NUM_VOXEL_ROWS];
};

const char *const voxel_backends[] = {"raster", "compute", "cpu", NULL};

/* Limit for the pixels of all windows together. 64 million pixels take about 3 GB. */
static const double most_pixels = 64e6;

/* --- the request --- */

static void finish_window(struct voxel_window *window)
{
    lr_free_all(window->pixels, window->lors, window->weight, window->sampled, window->exact, window->difference);
}

static void destroy(void *object)
{
    struct voxel_task *task = object;
    for (int k = 0; k < task->result.num_windows; k++) finish_window(&task->windows[k]);
    for (int k = 0; k < NUM_VOXEL_ROWS; k++) row_copy_finish(&task->rows[k]);
    lr_free_all(task->windows, task->pairs);
    study_view_release(&task->study);
    free(task);
}

/* Checks the request and holds the study. errors: see voxel_ask; *task is then NULL. */
static lr_status create_task(const struct study_view *study, const struct voxel_request *request, const lr_log *log,
                             struct voxel_task **task)
{
    *task = NULL;
    LR_TRY(study_check_module(study, request->all_primaries ? 0 : request->primary, log));
    for (int k = 0; k < 3; k++)
        if (!isfinite(request->point_mm[k]))
            return lr_error(log, LR_USAGE, "the point's %c is not a finite number", "xyz"[k]);

    struct voxel_task *made = lr_alloc(1, sizeof(*made), "a voxel's picture", log);
    if (made == NULL) return LR_FAILED;
    struct voxel_result *result = &made->result;
    made->study = study_view_hold(study);
    made->request = *request;
    made->request.backend = backend_name(request->backend, voxel_backends[0]);
    made->sampler = strcmp(made->request.backend, "compute") == 0 ? VOXEL_SAMPLED : VOXEL_WINDOWS;
    result->study = &made->study;
    result->request = *request;
    result->request.backend = NULL; /* the text may be freed before the job ends */
    result->has_exact = request->mode != LR_MODE_SAMPLED;
    result->has_mu = study->mu != NULL && !request->without_mu;

    /* The voxel of the study's grid that contains the point; outside the grid, a voxel of the same size centred on
     * the point. */
    const lr_grid *grid = &study->grid;
    int64_t row = 0, stride = 1;
    for (int k = 0; k < 3; k++) {
        const double place = pick_index(grid, k, request->point_mm[k]);
        const bool inside = row >= 0 && place >= 0 && place < grid->size[k];
        row = inside ? row + stride * (int64_t)place : -1;
        stride *= grid->size[k];
        result->voxel.size[k] = 1;
        result->voxel.voxel_mm[k] = grid->voxel_mm[k];
        result->voxel.origin_mm[k] = request->point_mm[k];
    }
    result->voxel_row = row;
    if (row >= 0) lr_grid_voxel_centre(grid, row, result->voxel.origin_mm);

    const int count = request->all_primaries ? study->scanner->num_modules : 1;
    result->windows = made->windows = lr_alloc(count, sizeof(*made->windows), "windows", log);
    if (made->windows == NULL) {
        destroy(made);
        return LR_FAILED;
    }
    result->num_windows = count;
    for (int k = 0; k < count; k++) made->windows[k].module = request->all_primaries ? k : request->primary;
    *task = made;
    return LR_OK;
}

/* --- operators and rows --- */

/* One use of an operator by a task: to draw the windows, to compute a row, or both. */
struct step {
    struct voxel_task *task;
    enum voxel_purpose purpose;
    bool draws;
    enum voxel_row_kind kind; /* NUM_VOXEL_ROWS: no row is computed */
    const lr_log *log;
    const lr_progress *progress;
};

/* Records the backend that did part of the work, and the reason if cpu replaced the requested one. by: the result's
 * field for the backend. */
static void note_backend(struct voxel_result *result, const char **by, const lr_operator_info *info)
{
    *by = backend_name(info->backend, "");
    if (by != &result->exact_by && info->passed_over != NULL && strcmp(info->backend, "cpu") == 0)
        snprintf(result->why_not, sizeof(result->why_not), "%s", info->passed_over);
}

static lr_status use_operator(void *user, lr_operator *op)
{
    const struct step *step = user;
    struct voxel_task *task = step->task;
    struct voxel_result *result = &task->result;
    const lr_operator_info *info = lr_operator_get_info(op);
    if (step->draws) {
        result->request.rays = info->rays;
        result->request.mu_steps = result->has_mu ? info->mu_steps : 0;
        result->request.samples = info->samples[0] * info->samples[1] * info->samples[2];
        memcpy(result->samples, info->samples, sizeof(result->samples));
        note_backend(result, &result->drawn_by, info);
        snprintf(result->drawn_on, sizeof(result->drawn_on), "%s", info->device);

        /* Allocates the windows. If a first attempt lost the device, it has left windows, which are freed first. */
        const int rays = result->request.rays;
        double total = 0;
        for (int k = 0; k < result->num_windows; k++) {
            const int *crystals = task->study.scanner->modules[task->windows[k].module].crystals;
            total += (double)crystals[0] * crystals[1] * rays * rays;
        }
        if (total > most_pixels) {
            return lr_error(step->log, LR_USAGE, "R = %d gives %.3g pixels: choose a smaller R, or one primary module",
                            rays, total);
        }
        for (int k = 0; k < result->num_windows; k++) {
            static const char what[] = "a correspondence image";
            struct voxel_window *window = &task->windows[k];
            const int *crystals = task->study.scanner->modules[window->module].crystals;
            const int64_t count = (int64_t)crystals[0] * crystals[1] * rays * rays;
            finish_window(window);
            *window = (struct voxel_window){.module = window->module, .size = {crystals[0] * rays, crystals[1] * rays}};
            window->pixels = lr_alloc(count, sizeof(*window->pixels), what, step->log);
            window->lors = lr_alloc(count, sizeof(*window->lors), what, step->log);
            window->weight = lr_alloc(count, sizeof(*window->weight), what, step->log);
            window->sampled = lr_alloc(count, sizeof(*window->sampled), what, step->log);
            if (window->pixels == NULL || window->lors == NULL || window->weight == NULL || window->sampled == NULL)
                return LR_FAILED;
            if (!result->has_exact) continue;
            window->exact = lr_alloc(count, sizeof(*window->exact), what, step->log);
            window->difference = lr_alloc(count, sizeof(*window->difference), what, step->log);
            if (window->exact == NULL || window->difference == NULL) return LR_FAILED;
        }

        for (int k = 0; k < result->num_windows; k++) {
            LR_TRY(lr_progress_report(step->progress, "drawing correspondence images", k, result->num_windows));
            LR_TRY(lr_operator_picture(op, result->request.point_mm, task->windows[k].module, task->windows[k].pixels));
        }
    }
    if (step->kind == NUM_VOXEL_ROWS) return LR_OK;

    const double(*point)[3] = (const double(*)[3])task->request.point_mm;
    const int64_t voxel = result->voxel_row >= 0 ? result->voxel_row : 0;
    const bool is_point = step->kind == ROW_POINT_SAMPLED || step->kind == ROW_POINT_EXACT;
    struct row_copier copier = {&task->rows[step->kind], step->log, is_point};
    const lr_row_sink sink = {row_copier_take, &copier};
    const lr_selection part = {.pairs = task->pairs, .num_pairs = result->num_pairs};
    const lr_row_choice choice = {.begin = voxel, .end = voxel + 1, .part = result->is_part ? &part : NULL};
    note_backend(result, step->purpose == VOXEL_EXACT ? &result->exact_by : &result->sampled_by, info);
    return is_point ? lr_operator_point_rows(op, point, 1, &sink) : lr_operator_rows_part(op, &choice, &sink);
}

/* Runs a step with an operator on the study's grid; one operator serves all voxels of this grid. A point outside the
 * grid gets an operator on a grid of one voxel. Backends are tried in the order of their names below. Of the backends
 * that run on processors, native is the fastest. */
static lr_status run_step(struct step step)
{
    const struct voxel_task *task = step.task;
    const struct voxel_request *request = &task->request;
    const bool is_exact = step.purpose == VOXEL_EXACT, computes = task->sampler == VOXEL_SAMPLED;
    struct operator_work work = {.study = &task->study, .run = use_operator, .user = &step};
    work.params = (lr_operator_params){.lors = task->study.lors,
                                       .grid = task->result.voxel_row >= 0 ? &task->study.grid : &task->result.voxel,
                                       .backend = strcmp(request->backend, "cpu") == 0            ? "cpu"
                                                  : is_exact && !computes && request->on_graphics ? "compute,native,cpu"
                                                  : is_exact && !computes                         ? "native,cpu"
                                                  : computes && step.purpose != VOXEL_WINDOWS     ? "compute,cpu"
                                                                                                  : "raster,cpu",
                                       .mode = is_exact ? LR_MODE_EXACT : LR_MODE_SAMPLED,
                                       .rays = is_exact ? 0 : request->rays,
                                       .layers_alone = true, /* pictures treat layers in this way, too */
                                       .mu = task->result.has_mu ? task->study.mu : NULL,
                                       .mu_steps = task->result.has_mu ? request->mu_steps : 0,
                                       .store = LR_STORE_NO,
                                       .log = step.log,
                                       .progress = step.progress};
    if (request->samples > 0) lr_grid_split_samples(&task->result.voxel, request->samples, work.params.samples);
    return cached_operator_run(&task->cached[step.purpose], &work);
}

static struct voxel_row look_at(const struct row_copy *copy)
{
    const struct lr_owned_row *row = &copy->row;
    return (struct voxel_row){row->count, row->lor, row->probability, copy->order, copy->sum};
}

static lr_status run_windows(void *object, const lr_log *log, const lr_progress *progress)
{
    struct voxel_task *task = object;
    struct voxel_result *result = &task->result;
    const bool samples = task->sampler == VOXEL_WINDOWS;
    LR_TRY(run_step(
        (struct step){task, VOXEL_WINDOWS, true, samples ? ROW_POINT_SAMPLED : NUM_VOXEL_ROWS, log, progress}));
    if (!samples) LR_TRY(run_step((struct step){task, VOXEL_SAMPLED, false, ROW_POINT_SAMPLED, log, progress}));
    if (result->has_exact) LR_TRY(run_step((struct step){task, VOXEL_EXACT, false, ROW_POINT_EXACT, log, progress}));
    result->point_sampled = look_at(&task->rows[ROW_POINT_SAMPLED]);
    result->point_exact = look_at(&task->rows[ROW_POINT_EXACT]);

    const lr_row rows[2] = {lr_owned_row_view(&task->rows[ROW_POINT_SAMPLED].row, 0),
                            lr_owned_row_view(&task->rows[ROW_POINT_EXACT].row, 0)};
    for (int k = 0; k < result->num_windows; k++) {
        struct voxel_window *window = &task->windows[k];
        const int64_t count = (int64_t)window->size[0] * window->size[1];
        LR_TRY(lr_progress_report(progress, "colouring", k, result->num_windows));
        for (int64_t n = 0; n < count; n++) {
            const struct lr_pixel_window pixels = {task->study.lors, window->module, result->request.rays,
                                                   window->pixels};
            const int64_t lor = lr_pixel_lor(&pixels, (int)(n % window->size[0]), (int)(n / window->size[0]));
            const double sampled = lor >= 0 ? lr_row_element(&rows[0], lor) : NAN;
            window->lors[n] = lor;
            window->weight[n] = window->pixels[n].weight;
            window->sampled[n] = (float)sampled;
            result->high_weight = fmaxf(result->high_weight, window->weight[n]);
            result->high_element = fmaxf(result->high_element, window->sampled[n]); /* fmaxf ignores NaN */
            if (result->has_exact) {
                const double exact = lor >= 0 ? lr_row_element(&rows[1], lor) : NAN;
                window->exact[n] = (float)exact;
                window->difference[n] = (float)(sampled - exact);
                result->high_element = fmaxf(result->high_element, window->exact[n]);
                result->high_difference = fmaxf(result->high_difference, fabsf(window->difference[n]));
            }
        }
    }
    return LR_OK;
}

/* --- the voxel's rows --- */

/* Limit for the number of elements of a voxel's row. If a row has more elements, it would take too long to compute all
 * LORs. Only the LORs of the module pairs that the windows show are then computed, unless all LORs are requested. */
static const double most_elements = 4e6;

static lr_status run_means(void *object, const lr_log *log, const lr_progress *progress)
{
    struct voxel_task *task = object;
    struct voxel_result *result = &task->result;
    if (result->is_part && result->num_pairs == 0) return LR_OK; /* all windows are empty */
    LR_TRY(run_step((struct step){task, task->sampler, false, ROW_VOXEL_SAMPLED, log, progress}));
    if (result->has_exact) LR_TRY(run_step((struct step){task, VOXEL_EXACT, false, ROW_VOXEL_EXACT, log, progress}));
    result->voxel_sampled = look_at(&task->rows[ROW_VOXEL_SAMPLED]);
    result->voxel_exact = look_at(&task->rows[ROW_VOXEL_EXACT]);
    return LR_OK;
}

/* There are two kinds of tasks. The first kind makes the windows and the rows of the point. The second kind makes the
 * rows of the voxel, which takes longer: with n points per voxel, n times as long as for one point. */
static const struct task_kind windows_kind = {"drawing correspondence images", run_windows, destroy};
static const struct task_kind means_kind = {"averaging over the voxel", run_means, destroy};

/* --- voxel mode --- */

struct voxel *voxel_create(const lr_log *log)
{
    struct voxel *voxel = lr_alloc(1, sizeof(*voxel), "voxel mode", log);
    if (voxel != NULL) {
        task_runner_init(&voxel->windows, &windows_kind);
        task_runner_init(&voxel->means, &means_kind);
        for (int k = 0; k < VOXEL_NUM_PURPOSES; k++) cached_operator_init(&voxel->cached[k]);
    }
    return voxel;
}

void voxel_destroy(struct voxel *voxel)
{
    if (voxel != NULL) {
        task_runner_cancel(&voxel->means);
        task_runner_finish(&voxel->windows);
        task_runner_finish(&voxel->means);
        for (int k = 0; k < VOXEL_NUM_PURPOSES; k++) cached_operator_finish(&voxel->cached[k]);
        free(voxel);
    }
}

lr_status voxel_ask(struct voxel *voxel, const struct study_view *study, const struct voxel_request *request,
                    const lr_log *log)
{
    struct voxel_task *task = NULL;
    LR_TRY(create_task(study, request, log, &task));
    task->id = ++voxel->num_asked;
    task->cached = voxel->cached;
    task_runner_cancel(&voxel->means);
    task_runner_ask(&voxel->windows, task);
    return LR_OK;
}

/* --- results of both tasks --- */

/* The task with the voxel's rows if it belongs to the same request as the windows; otherwise NULL. */
static const struct voxel_task *means_task(const struct voxel *voxel)
{
    const struct voxel_task *windows = voxel->windows.result, *means = voxel->means.result;
    return windows != NULL && means != NULL && means->id == windows->id ? means : NULL;
}

/* Starts the voxel's rows if the windows exist and no newer windows are being drawn. */
static void ask_for_means(struct voxel *voxel, enum job_state windows_state)
{
    const struct voxel_task *windows = voxel->windows.result;
    struct voxel_task *task = NULL;
    if (windows_state != JOB_DONE || windows == NULL || windows->id == voxel->means_for) return;
    voxel->means_for = windows->id;
    if (create_task(&windows->study, &windows->request, NULL, &task) != LR_OK) return;
    task->id = windows->id;
    task->cached = voxel->cached;

    /* The points of a voxel see mostly different LORs. The number of elements can therefore be estimated from one
     * point. */
    const struct voxel_result *shown = &windows->result;
    const struct voxel_row *row =
        shown->has_exact && shown->point_exact.count > 0 ? &shown->point_exact : &shown->point_sampled;
    task->result.is_part = !windows->request.wants_whole && (double)row->count * shown->request.samples > most_elements;
    if (!task->result.is_part) {
        task_runner_ask(&voxel->means, task);
        return;
    }

    /* The voxel's rows are restricted to pairs of modules whose LORs the windows show. */
    const lr_lors *lors = windows->study.lors;
    const int64_t num_pairs = lors->num_pairs;
    bool *is_seen = lr_alloc(num_pairs, sizeof(*is_seen), "pairs of modules", NULL);
    int64_t count = 0;
    for (int w = 0; is_seen != NULL && w < shown->num_windows; w++) {
        const struct voxel_window *window = &windows->windows[w];
        for (int64_t n = 0; n < (int64_t)window->size[0] * window->size[1]; n++) {
            const int64_t lor = window->lors[n];
            if (lor < 0) continue;
            const lr_lor place = lr_lors_describe(lors, lor);
            const int64_t pair = lr_lors_pair(lors, place.module_i, place.module_j);
            count += !is_seen[pair];
            is_seen[pair] = true;
        }
    }
    task->pairs = lr_alloc(count + 1, sizeof(*task->pairs), "pairs of modules", NULL);
    const bool is_listed = is_seen != NULL && task->pairs != NULL;
    for (int64_t pair = 0; is_listed && pair < num_pairs; pair++)
        if (is_seen[pair]) task->pairs[task->result.num_pairs++] = (int32_t)pair;
    free(is_seen);
    if (is_listed)
        task_runner_ask(&voxel->means, task);
    else
        destroy(task);
}

enum job_state voxel_poll(struct voxel *voxel, struct job_report *report)
{
    const enum job_state first = task_runner_poll(&voxel->windows);
    ask_for_means(voxel, first);
    const bool is_first = first != JOB_DONE || voxel->means_for == 0;
    const enum job_state second = task_runner_poll(&voxel->means);
    if (report != NULL) *report = is_first ? voxel->windows.report : voxel->means.report;

    const struct voxel_task *windows = voxel->windows.result, *means = means_task(voxel);
    if (windows != NULL) {
        voxel->result = windows->result;
        voxel->result.has_means = means != NULL;
    }
    if (means != NULL) {
        voxel->result.voxel_sampled = means->result.voxel_sampled;
        voxel->result.voxel_exact = means->result.voxel_exact;
        voxel->result.is_part = means->result.is_part;
        voxel->result.num_pairs = means->result.num_pairs;
        voxel->result.pairs = means->pairs;
    }
    return is_first ? first : second;
}

const struct voxel_result *voxel_result(const struct voxel *voxel, int64_t *serial)
{
    if (serial != NULL) *serial = voxel->windows.serial + voxel->means.serial;
    return voxel->windows.result != NULL ? &voxel->result : NULL;
}

/* --- the pixel under the mouse --- */

/* An element of a row. NaN if there is no task, or if the task does not have this row. */
static double element(const struct voxel_task *task, enum voxel_row_kind kind, int64_t lor)
{
    const bool exact = kind == ROW_POINT_EXACT || kind == ROW_VOXEL_EXACT;
    if (lor < 0 || task == NULL || (exact && !task->result.has_exact)) return NAN;
    const lr_row row = lr_owned_row_view(&task->rows[kind].row, 0);
    return lr_row_element(&row, lor);
}

lr_status voxel_at(const struct voxel *voxel, int number, const int place[2], struct voxel_pixel *pixel)
{
    const struct voxel_task *task = voxel->windows.result, *means = means_task(voxel);
    const struct voxel_window *window = NULL;
    for (int k = 0; task != NULL && window == NULL && k < task->result.num_windows; k++)
        if (task->windows[k].module == number) window = &task->windows[k];
    if (window == NULL || place[0] < 0 || place[1] < 0 || place[0] >= window->size[0] || place[1] >= window->size[1])
        return LR_USAGE;

    const int64_t n = (int64_t)place[1] * window->size[0] + place[0], lor = window->lors[n];
    const lr_pixel *line = &window->pixels[n];
    const int rays = task->result.request.rays;
    *pixel = (struct voxel_pixel){
        .module = number,
        .p = place[0] / rays,
        .q = place[1] / rays,
        .other = (int)line->module,
        .r = (int)line->r,
        .s = (int)line->s,
        .lor = lor,
        .weight = line->weight,
        .distance_mm = line->module >= 0 ? line->path_mm : NAN,
        .point_sampled = element(task, ROW_POINT_SAMPLED, lor),
        .point_exact = element(task, ROW_POINT_EXACT, lor),
        .voxel_sampled = element(means, ROW_VOXEL_SAMPLED, lor),
        .voxel_exact = element(means, ROW_VOXEL_EXACT, lor),
    };

    /* Solid angle of the part of the crystal's face that the pixel's line represents: area times the cosine of the
     * angle to the face's normal, divided by the squared distance. The line's weight uses the same formula. */
    const lr_module *module = &task->study.scanner->modules[number];
    double at_mm[3], to_face[3];
    lr_scanner_detection_centre(task->study.scanner, number, at_mm);
    for (int k = 0; k < 2; k++) {
        const double cell_mm = (place[k] / rays - 0.5 * (module->crystals[k] - 1)) * module->pitch_mm[k];
        const double part_mm = ((place[k] % rays + 0.5) / rays - 0.5) * module->face_mm[k];
        vec_add_scaled(at_mm, cell_mm + part_mm, k == 0 ? module->u : module->v, at_mm);
    }
    vec_sub(at_mm, task->result.request.point_mm, to_face);
    const double distance = vec_length(to_face);
    const double area = module->face_mm[0] * module->face_mm[1] / ((double)rays * rays);
    pixel->solid_angle_sr = area * fabs(vec_dot(to_face, module->normal)) / (distance * distance * distance);
    pixel->survival = lor < 0 ? NAN : !task->result.has_mu ? 1.0 : pixel->weight * 2 * LR_PI / pixel->solid_angle_sr;
    return LR_OK;
}

/* --- windows without LORs --- */

const struct voxel_row *voxel_best_row(const struct voxel_result *result)
{
    return result->has_exact ? &result->point_exact : &result->point_sampled;
}

struct voxel_gap voxel_gap_find(const struct voxel_result *result, const struct voxel_window *window)
{
    const lr_lors *lors = result->study->lors;
    const double *point_mm = result->request.point_mm;
    const struct voxel_row *row = voxel_best_row(result);
    const int module = window->module, rays = result->request.rays;
    struct voxel_gap gap = {.better = -1};
    for (int64_t k = 0; k < (int64_t)window->size[0] * window->size[1]; k++)
        if (window->lors[k] >= 0) return gap;
    if (row->count > 0) gap.better = lr_lors_primary(lors, row->lor[row->order[0]], point_mm);

    /* ends: number of the row's LORs that end in the module. primary: number of those LORs that have this module as
       their primary. */
    int64_t ends = 0, primary = 0;
    for (int64_t k = 0; k < row->count; k++) {
        const lr_lor lor = lr_lors_describe(lors, row->lor[k]);
        if (lor.module_i == module || lor.module_j == module) {
            ends++;
            primary += lr_lors_primary(lors, row->lor[k], point_mm) == module;
        }
    }
    if (gap.better < 0) {
        snprintf(gap.why, sizeof(gap.why),
                 "no LOR passes through the point: the scanner does not see it; choose another point");
    } else if (ends == 0) {
        snprintf(gap.why, sizeof(gap.why), "module %d has no window: no LOR through the point ends in it", module);
    } else if (primary == 0) {
        snprintf(gap.why, sizeof(gap.why),
                 "module %d has no window: it is the nearer end of all %lld LORs through the point "
                 "that end in it, and windows are drawn on the farther end",
                 module, (long long)ends);
    } else {
        snprintf(gap.why, sizeof(gap.why),
                 "module %d has no window at R = %d: its %d x %d lines a crystal meet none of its %lld LORs; raise R",
                 module, rays, rays, rays, (long long)primary);
    }
    return gap;
}

/* --- windows of primary modules as one picture --- */

enum { GAP = 1 };

const char *const sheet_names[SHEET_NUM_KINDS] = {"crystals", "weight", "sampled", "exact", "sampled - exact"};

static const lr_colour no_value = {112, 114, 120};

/* Finds the texel of a window's lower left pixel. */
static void find_corner(const struct sheet *sheet, int window, int corner[2])
{
    const int row = window / sheet->columns;
    corner[0] = window % sheet->columns * (sheet->tile[0] + GAP);
    corner[1] = sheet->size[1] - (row + 1) * (sheet->tile[1] + GAP) + GAP;
}

static lr_colour pixel_colour(const struct sheet *sheet, const lr_scanner *scanner, enum sheet_kind kind,
                              const struct voxel_window *window, int64_t k)
{
    if (kind == SHEET_CRYSTALS) {
        const lr_pixel *pixel = &window->pixels[k];
        if (pixel->module < 0.0f) return no_value;
        const lr_module *module = &scanner->modules[(int)pixel->module];
        return (lr_colour){(uint8_t)(255.0f * (pixel->r + 1.0f) / (float)module->crystals[0]),
                           (uint8_t)(255.0f * (pixel->s + 1.0f) / (float)module->crystals[1]), 0};
    }
    const float *const values = kind == SHEET_WEIGHTS   ? window->weight
                                : kind == SHEET_SAMPLED ? window->sampled
                                : kind == SHEET_EXACT   ? window->exact
                                                        : window->difference;
    if (values == NULL || isnan(values[k]) || (kind == SHEET_WEIGHTS && window->lors[k] < 0)) return no_value;
    const double share = (double)values[k] / sheet->high;
    return kind == SHEET_DIFFERENCE ? lr_colour_of(LR_COLOURS_DIVERGING, 0.5 + 0.5 * share)
                                    : lr_colour_of(LR_COLOURS_PERCEPTUAL, share);
}

lr_status sheet_draw(struct sheet *sheet, struct gl_context *ctx, const struct voxel_result *result,
                     enum sheet_kind kind)
{
    const float high = kind == SHEET_WEIGHTS      ? result->high_weight
                       : kind == SHEET_DIFFERENCE ? result->high_difference
                                                  : result->high_element;
    sheet->high = fmax((double)high, 1e-30);

    /* The number of columns is chosen so that the sheet is about as wide as high. */
    sheet->tile[0] = sheet->tile[1] = 1;
    sheet->num_windows = result->num_windows;
    for (int n = 0; n < result->num_windows; n++) {
        for (int k = 0; k < 2; k++) {
            const int size = result->windows[n].size[k];
            sheet->tile[k] = size > sheet->tile[k] ? size : sheet->tile[k];
        }
    }
    const double shape = (double)sheet->tile[1] / sheet->tile[0];
    const int most = (int)ceil(sqrt(fmax(result->num_windows, 1) * shape));
    sheet->columns = most < result->num_windows ? most : result->num_windows;
    sheet->columns = sheet->columns > 0 ? sheet->columns : 1;
    const int rows = (result->num_windows + sheet->columns - 1) / sheet->columns;
    sheet->size[0] = sheet->columns * (sheet->tile[0] + GAP) - GAP;
    sheet->size[1] = (rows > 0 ? rows : 1) * (sheet->tile[1] + GAP) - GAP;

    uint8_t *texels = lr_alloc((int64_t)sheet->size[0] * sheet->size[1], 4, "windows to show", gl_context_log(ctx));
    if (texels == NULL) return LR_FAILED;
    for (int w = 0; w < sheet->num_windows; w++) {
        const struct voxel_window *window = &result->windows[w];
        int corner[2];
        find_corner(sheet, w, corner);
        for (int y = 0; y < window->size[1]; y++) {
            for (int x = 0; x < window->size[0]; x++) {
                const lr_colour colour =
                    pixel_colour(sheet, result->study->scanner, kind, window, (int64_t)y * window->size[0] + x);
                const int64_t at = (int64_t)(corner[1] + y) * sheet->size[0] + corner[0] + x;
                memcpy(&texels[4 * at], (uint8_t[4]){colour.r, colour.g, colour.b, 255}, 4);
            }
        }
    }
    const lr_status status = draw_set_picture(&sheet->texture, ctx, "windows", sheet->size, texels);
    free(texels);
    return status;
}

bool sheet_pixel(const struct sheet *sheet, const double at[2], int *window, int place[2])
{
    const int x = (int)floor(at[0] * sheet->size[0]), y = (int)floor(at[1] * sheet->size[1]);
    if (at[0] < 0.0 || at[1] < 0.0 || x >= sheet->size[0] || y >= sheet->size[1]) return false;
    const int column = x / (sheet->tile[0] + GAP), row = y / (sheet->tile[1] + GAP);
    place[0] = x % (sheet->tile[0] + GAP);
    place[1] = sheet->tile[1] - 1 - y % (sheet->tile[1] + GAP);
    *window = row * sheet->columns + column;
    return place[0] < sheet->tile[0] && place[1] >= 0 && *window < sheet->num_windows;
}

void sheet_corners(const struct sheet *sheet, int window, const double place[2], double at[2])
{
    int corner[2];
    find_corner(sheet, window, corner);
    at[0] = (corner[0] + place[0]) / sheet->size[0];
    at[1] = 1.0 - (corner[1] + place[1]) / sheet->size[1];
}
