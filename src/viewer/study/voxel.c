/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/voxel.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "picture/pixel_lor.h"
#include "viewer/study/operators.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- matrix rows that stay --- */

/* One element on its way through qsort, which takes no pointer of ours. */
struct entry {
    double probability;
    int64_t place;
};

static int compare(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    if (left->probability != right->probability) return left->probability > right->probability ? -1 : 1;
    return left->place < right->place ? -1 : left->place > right->place;
}

static lr_status sort(struct row_copy *copy, const lr_log *log)
{
    const int64_t count = copy->row.count;
    struct entry *entries = lr_alloc(count, sizeof(*entries), "a matrix row", log);
    copy->order = lr_alloc(count, sizeof(*copy->order), "a matrix row", log);
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

static lr_status take(void *user, const lr_row *row)
{
    const struct row_copier *copier = user;
    struct row_copy *copy = copier->copy;
    row_copy_finish(copy);
    LR_TRY(lr_owned_row_copy(&copy->row, row, copier->log));
    for (int64_t k = 0; k < row->count; k++) copy->sum += row->probability[k];
    return copier->has_order ? sort(copy, copier->log) : LR_OK;
}

lr_row_sink row_copier_sink(struct row_copier *copier)
{
    return (lr_row_sink){take, copier};
}

void row_copy_finish(struct row_copy *copy)
{
    lr_owned_row_finish(&copy->row);
    free(copy->order);
    *copy = (struct row_copy){0};
}

/* --- tasks --- */

#define PI 3.14159265358979323846

/* One window's arrays, owned. */
struct voxel_arrays {
    lr_pixel *pixels;
    int64_t *lors;
    float *weight, *sampled, *exact, *difference;
};

enum voxel_row_kind { ROW_POINT_SAMPLED = 0, ROW_POINT_EXACT, ROW_VOXEL_SAMPLED, ROW_VOXEL_EXACT, NUM_VOXEL_ROWS };

/* What an operator is for. */
enum purpose { FOR_WINDOWS, FOR_SAMPLED, FOR_EXACT, NUM_PURPOSES };

struct voxel_task {
    struct study_view study;      /* held */
    struct kept_operator *kept;   /* [NUM_PURPOSES], of voxel mode */
    struct voxel_request request; /* as asked for, but for the backend, whose name is kept here */
    int64_t id;                   /* of the request */
    struct voxel_result result;
    struct voxel_window *windows; /* [result.num_windows] */
    struct voxel_arrays *arrays;  /* [result.num_windows] */
    int32_t *pairs;               /* owned [result.num_pairs] */
    struct row_copy rows[NUM_VOXEL_ROWS];
};

const char *const voxel_backends[] = {"raster", "compute", "cpu", NULL};

/* Of all windows together: some 3 GB. */
static const double most_pixels = 64e6;

/* --- the request --- */

static lr_status check(const struct study_view *study, const struct voxel_request *request, const lr_log *log)
{
    if (study->scanner == NULL) return lr_error(log, LR_USAGE, "there is no scanner: open one first");
    if (!request->all_primaries && (request->primary < 0 || request->primary >= study->scanner->num_modules)) {
        return lr_error(log, LR_USAGE, "module %d does not exist: the scanner has modules 0 to %d", request->primary,
                        study->scanner->num_modules - 1);
    }
    for (int k = 0; k < 3; k++)
        if (!isfinite(request->point_mm[k]))
            return lr_error(log, LR_USAGE, "the point's %c is not a finite number", "xyz"[k]);
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
    if (row >= 0) lr_grid_voxel_centre(grid, row, voxel->origin_mm);
}

static lr_status make_windows(struct voxel_task *task, const lr_log *log)
{
    struct voxel_result *result = &task->result;
    const struct voxel_request *request = &result->request;
    const int count = request->all_primaries ? task->study.scanner->num_modules : 1;
    task->windows = lr_alloc(count, sizeof(*task->windows), "windows", log);
    task->arrays = lr_alloc(count, sizeof(*task->arrays), "windows", log);
    if (task->windows == NULL || task->arrays == NULL) return LR_FAILED;
    result->num_windows = count;
    result->windows = task->windows;
    for (int k = 0; k < count; k++) task->windows[k].module = request->all_primaries ? k : request->primary;
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
    for (int k = 0; k < task->result.num_windows; k++) voxel_arrays_finish(&task->arrays[k]);
    for (int k = 0; k < NUM_VOXEL_ROWS; k++) row_copy_finish(&task->rows[k]);
    free(task->windows);
    free(task->arrays);
    free(task->pairs);
    study_view_release(&task->study);
    free(task);
}

/* Checks the request and holds the study. errors: see voxel_ask; *task is NULL then. */
static lr_status create_task(const struct study_view *study, const struct voxel_request *request, const lr_log *log,
                             struct voxel_task **task)
{
    *task = NULL;
    LR_TRY(check(study, request, log));
    struct voxel_task *made = lr_alloc(1, sizeof(*made), "a voxel's picture", log);
    if (made == NULL) return LR_FAILED;
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

/* What draws windows samples elements, too, unless compute is to do that. */
static enum purpose sampler_of(const struct voxel_request *request)
{
    return strcmp(request->backend, "compute") == 0 ? FOR_SAMPLED : FOR_WINDOWS;
}

/* In the order in which they are tried. native computes what it can as fast as a processor does. */
static const char *backends_for(const struct voxel_request *request, enum purpose purpose)
{
    if (strcmp(request->backend, "cpu") == 0) return "cpu";
    const bool computes = sampler_of(request) == FOR_SAMPLED;
    if (purpose == FOR_EXACT && !computes) return request->on_graphics ? "compute,native,cpu" : "native,cpu";
    return computes && purpose != FOR_WINDOWS ? "compute,cpu" : "raster,cpu";
}

/* What a task does with an operator, and what it says meanwhile. */
struct step {
    struct voxel_task *task;
    enum purpose purpose;
    enum voxel_row_kind kind;
    const lr_log *log;
    const lr_progress *progress;
};

/* The grid is the study's, so that one operator serves all its voxels; a point beside it has a voxel
 * of its own. */
static lr_status run_step(struct step *step, lr_status (*run)(void *user, lr_operator *op))
{
    const struct voxel_task *task = step->task;
    const struct voxel_request *request = &task->request;
    const bool is_exact = step->purpose == FOR_EXACT;
    struct operator_work work = {.study = &task->study, .run = run, .user = step, .params.store = LR_STORE_NO};
    lr_operator_params *params = &work.params;
    params->lors = task->study.lors;
    params->grid = task->result.voxel_row >= 0 ? &task->study.grid : &task->result.voxel;
    params->backend = backends_for(request, step->purpose);
    params->mode = is_exact ? LR_MODE_EXACT : LR_MODE_SAMPLED;
    params->rays = is_exact ? 0 : request->rays;
    params->layers_alone = true; /* as pictures show them */
    params->mu = task->result.has_mu ? task->study.mu : NULL;
    params->mu_steps = task->result.has_mu ? request->mu_steps : 0;
    params->log = step->log;
    params->progress = step->progress;
    if (request->samples > 0) lr_grid_split_samples(&task->result.voxel, request->samples, params->samples);
    return kept_operator_run(&task->kept[step->purpose], &work);
}

static lr_status compute_row(struct voxel_task *task, lr_operator *op, enum voxel_row_kind kind, const lr_log *log)
{
    const double(*point)[3] = (const double(*)[3])task->request.point_mm;
    const int64_t voxel = task->result.voxel_row >= 0 ? task->result.voxel_row : 0;
    const bool is_point = kind == ROW_POINT_SAMPLED || kind == ROW_POINT_EXACT;
    struct row_copier copier = {&task->rows[kind], log, is_point};
    const lr_row_sink sink = row_copier_sink(&copier);
    const lr_selection part = {.pairs = task->pairs, .num_pairs = task->result.num_pairs};
    const lr_row_choice choice = {.begin = voxel, .end = voxel + 1, .part = task->result.is_part ? &part : NULL};
    return is_point ? lr_operator_point_rows(op, point, 1, &sink) : lr_operator_rows_part(op, &choice, &sink);
}

/* Why cpu does what another was asked for. */
static void note_passed_over(struct voxel_result *result, const lr_operator_info *info)
{
    if (info->passed_over != NULL && strcmp(info->backend, "cpu") == 0)
        snprintf(result->why_not, sizeof(result->why_not), "%s", info->passed_over);
}

static void note_elements(struct voxel_result *result, enum purpose purpose, const lr_operator_info *info)
{
    const char *name = backend_name(info->backend, "");
    if (purpose == FOR_EXACT) {
        result->exact_by = name;
    } else {
        result->sampled_by = name;
        note_passed_over(result, info);
    }
}

static lr_status run_row(void *user, lr_operator *op)
{
    const struct step *step = user;
    note_elements(&step->task->result, step->purpose, lr_operator_get_info(op));
    return compute_row(step->task, op, step->kind, step->log);
}

/* A row and nothing else. step: with log and progress. */
static lr_status compute_alone(struct step step, enum purpose purpose, enum voxel_row_kind kind)
{
    step.purpose = purpose;
    step.kind = kind;
    return run_step(&step, run_row);
}

static struct voxel_row look_at(const struct row_copy *copy)
{
    const struct lr_owned_row *row = &copy->row;
    return (struct voxel_row){row->count, row->lor, row->probability, copy->order, copy->sum};
}

/* --- windows --- */

static lr_status allocate(struct voxel_window *window, struct voxel_arrays *arrays, bool has_exact, const lr_log *log)
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
        return lr_error(log, LR_USAGE, "R = %d gives %.3g pixels: choose a smaller R, or one primary module", rays,
                        total);
    }
    for (int k = 0; k < result->num_windows; k++) {
        struct voxel_window *window = &task->windows[k];
        const int *crystals = task->study.scanner->modules[window->module].crystals;
        window->size[0] = crystals[0] * rays;
        window->size[1] = crystals[1] * rays;
        voxel_arrays_finish(&task->arrays[k]); /* of a device that was lost */
        LR_TRY(allocate(window, &task->arrays[k], result->has_exact, log));
    }
    return LR_OK;
}

static lr_status draw_windows(struct voxel_task *task, lr_operator *op, const lr_progress *progress)
{
    struct voxel_result *result = &task->result;
    for (int k = 0; k < result->num_windows; k++) {
        LR_TRY(lr_progress_report(progress, "drawing correspondence images", k, result->num_windows));
        LR_TRY(lr_operator_picture(op, result->request.point_mm, task->windows[k].module, task->arrays[k].pixels));
    }
    return LR_OK;
}

static void colour_pixel(struct voxel_task *task, int k, int64_t n, const lr_row rows[2])
{
    struct voxel_result *result = &task->result;
    struct voxel_arrays *arrays = &task->arrays[k];
    const struct voxel_window *window = &task->windows[k];
    const struct lr_pixel_window pixels = {task->study.lors, window->module, result->request.rays, window->pixels};
    const int64_t lor = lr_pixel_lor(&pixels, (int)(n % window->size[0]), (int)(n / window->size[0]));
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
        for (int64_t n = 0; n < count; n++) colour_pixel(task, k, n, rows);
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
static lr_status run_sampled(void *user, lr_operator *op)
{
    struct step *step = user;
    struct voxel_task *task = step->task;
    note_settings(task, op);
    note_drawing(&task->result, lr_operator_get_info(op));
    LR_TRY(size_windows(task, step->log));
    LR_TRY(draw_windows(task, op, step->progress));
    if (sampler_of(&task->request) != FOR_WINDOWS) return LR_OK;
    note_elements(&task->result, FOR_WINDOWS, lr_operator_get_info(op));
    return compute_row(task, op, ROW_POINT_SAMPLED, step->log);
}

static lr_status run_windows(void *object, const lr_log *log, const lr_progress *progress)
{
    struct voxel_task *task = object;
    struct voxel_result *result = &task->result;
    struct step step = {.task = task, .purpose = FOR_WINDOWS, .log = log, .progress = progress};
    LR_TRY(run_step(&step, run_sampled));
    if (sampler_of(&task->request) != FOR_WINDOWS) LR_TRY(compute_alone(step, FOR_SAMPLED, ROW_POINT_SAMPLED));
    if (result->has_exact) LR_TRY(compute_alone(step, FOR_EXACT, ROW_POINT_EXACT));
    result->point_sampled = look_at(&task->rows[ROW_POINT_SAMPLED]);
    result->point_exact = look_at(&task->rows[ROW_POINT_EXACT]);
    return fill_windows(task, progress);
}

/* --- which LORs of the voxel --- */

/* Of a voxel's row, about: seconds to compute. */
static const double most_elements = 4e6;

/* The points of a voxel see other LORs than each other, mostly. */
static bool is_cheap(const struct voxel_result *windows)
{
    const struct voxel_row *row =
        windows->has_exact && windows->point_exact.count > 0 ? &windows->point_exact : &windows->point_sampled;
    return (double)row->count * windows->request.samples <= most_elements;
}

static int32_t pair_of(const lr_lors *lors, int64_t lor)
{
    const lr_lor place = lr_lors_describe(lors, lor);
    return (int32_t)lr_lors_pair(lors, place.module_i, place.module_j);
}

/* Those that windows show. */
static lr_status list_pairs(const struct voxel_task *windows, struct voxel_task *means)
{
    const lr_lors *lors = windows->study.lors;
    const int64_t num_pairs = lors->num_pairs;
    bool *is_seen = lr_alloc(num_pairs, sizeof(*is_seen), "pairs of modules", NULL);
    int64_t count = 0;
    for (int w = 0; is_seen != NULL && w < windows->result.num_windows; w++) {
        const struct voxel_window *window = &windows->windows[w];
        for (int64_t n = 0; n < (int64_t)window->size[0] * window->size[1]; n++) {
            const int64_t lor = window->lors[n];
            const int32_t pair = lor >= 0 ? pair_of(lors, lor) : 0;
            count += lor >= 0 && !is_seen[pair];
            is_seen[pair] = is_seen[pair] || lor >= 0;
        }
    }
    means->pairs = lr_alloc(count + 1, sizeof(*means->pairs), "pairs of modules", NULL);
    means->result.is_part = true;
    for (int64_t pair = 0; is_seen != NULL && means->pairs != NULL && pair < num_pairs; pair++)
        if (is_seen[pair]) means->pairs[means->result.num_pairs++] = (int32_t)pair;
    free(is_seen);
    return is_seen != NULL && means->pairs != NULL ? LR_OK : LR_FAILED;
}

static lr_status run_means(void *object, const lr_log *log, const lr_progress *progress)
{
    struct voxel_task *task = object;
    struct voxel_result *result = &task->result;
    const struct step step = {.task = task, .log = log, .progress = progress};
    if (result->is_part && result->num_pairs == 0) return LR_OK; /* empty windows */
    LR_TRY(compute_alone(step, sampler_of(&task->request), ROW_VOXEL_SAMPLED));
    if (result->has_exact) LR_TRY(compute_alone(step, FOR_EXACT, ROW_VOXEL_EXACT));
    result->voxel_sampled = look_at(&task->rows[ROW_VOXEL_SAMPLED]);
    result->voxel_exact = look_at(&task->rows[ROW_VOXEL_EXACT]);
    return LR_OK;
}

/* Windows with the point's rows; and the voxel's rows, which take as many times as long as it has
 * points. */
static const struct task_kind windows_kind = {"drawing correspondence images", run_windows, destroy};
static const struct task_kind means_kind = {"averaging over the voxel", run_means, destroy};

/* --- voxel mode --- */

struct voxel {
    struct task_runner windows, means;
    struct kept_operator kept[NUM_PURPOSES];
    int64_t num_asked;          /* requests so far; the last one's number */
    int64_t means_for;          /* the request whose voxel rows have been asked for */
    struct voxel_result result; /* both put together */
};

struct voxel *voxel_create(const lr_log *log)
{
    struct voxel *voxel = lr_alloc(1, sizeof(*voxel), "voxel mode", log);
    if (voxel != NULL) {
        task_runner_init(&voxel->windows, &windows_kind);
        task_runner_init(&voxel->means, &means_kind);
        for (int k = 0; k < NUM_PURPOSES; k++) kept_operator_init(&voxel->kept[k]);
    }
    return voxel;
}

void voxel_destroy(struct voxel *voxel)
{
    if (voxel != NULL) {
        task_runner_cancel(&voxel->means);
        task_runner_finish(&voxel->windows);
        task_runner_finish(&voxel->means);
        for (int k = 0; k < NUM_PURPOSES; k++) kept_operator_finish(&voxel->kept[k]);
        free(voxel);
    }
}

lr_status voxel_ask(struct voxel *voxel, const struct study_view *study, const struct voxel_request *request,
                    const lr_log *log)
{
    struct voxel_task *task = NULL;
    LR_TRY(create_task(study, request, log, &task));
    task->id = ++voxel->num_asked;
    task->kept = voxel->kept;
    task_runner_cancel(&voxel->means);
    task_runner_ask(&voxel->windows, task);
    return LR_OK;
}

/* --- both put together --- */

static const struct voxel_task *windows_task(const struct voxel *voxel)
{
    return voxel->windows.result;
}

/* The voxel's rows of the result at hand, or NULL. */
static const struct voxel_task *means_task(const struct voxel *voxel)
{
    const struct voxel_task *windows = windows_task(voxel), *means = voxel->means.result;
    return windows != NULL && means != NULL && means->id == windows->id ? means : NULL;
}

/* Once there are windows, and no newer ones are on their way. */
static void ask_for_means(struct voxel *voxel, enum job_state windows_state)
{
    const struct voxel_task *windows = windows_task(voxel);
    struct voxel_task *task = NULL;
    if (windows_state != JOB_DONE || windows == NULL || windows->id == voxel->means_for) return;
    voxel->means_for = windows->id;
    if (create_task(&windows->study, &windows->request, NULL, &task) == LR_OK) {
        task->id = windows->id;
        task->kept = voxel->kept;
        if (!windows->request.wants_whole && !is_cheap(&windows->result) && list_pairs(windows, task) != LR_OK) {
            destroy(task);
            return;
        }
        task_runner_ask(&voxel->means, task);
    }
}

static void put_together(struct voxel *voxel)
{
    const struct voxel_task *windows = windows_task(voxel), *means = means_task(voxel);
    if (windows == NULL) return;
    voxel->result = windows->result;
    voxel->result.has_means = means != NULL;
    if (means != NULL) {
        voxel->result.voxel_sampled = means->result.voxel_sampled;
        voxel->result.voxel_exact = means->result.voxel_exact;
        voxel->result.is_part = means->result.is_part;
        voxel->result.num_pairs = means->result.num_pairs;
        voxel->result.pairs = means->pairs;
    }
}

enum job_state voxel_poll(struct voxel *voxel, struct job_report *report)
{
    const enum job_state first = task_runner_poll(&voxel->windows);
    ask_for_means(voxel, first);
    const bool is_first = first != JOB_DONE || voxel->means_for == 0;
    const enum job_state second = task_runner_poll(&voxel->means);
    put_together(voxel);
    if (report != NULL) *report = is_first ? voxel->windows.report : voxel->means.report;
    return is_first ? first : second;
}

struct task_runner *voxel_runner(struct voxel *voxel, int k)
{
    return k == 0 ? &voxel->windows : &voxel->means;
}

enum job_state voxel_wait(struct voxel *voxel, struct job_report *report)
{
    while (voxel_poll(voxel, report) == JOB_RUNNING) {
        (void)task_runner_wait(&voxel->windows);
        (void)task_runner_wait(&voxel->means);
    }
    return voxel_poll(voxel, report);
}

const struct voxel_result *voxel_result(const struct voxel *voxel, int64_t *serial)
{
    if (serial != NULL) *serial = voxel->windows.serial + voxel->means.serial;
    return windows_task(voxel) != NULL ? &voxel->result : NULL;
}

const struct study_view *voxel_study(const struct voxel *voxel)
{
    const struct voxel_task *task = windows_task(voxel);
    return task != NULL ? &task->study : NULL;
}

/* --- under the cursor --- */

static const struct voxel_window *find_window(const struct voxel_task *task, int module)
{
    for (int k = 0; task != NULL && k < task->result.num_windows; k++)
        if (task->result.windows[k].module == module) return &task->result.windows[k];
    return NULL;
}

/* Of the part of the crystal's face that the pixel's line stands for, as the line weighs it: its
 * area, times the cosine to the face's normal, over the square of the distance. */
static double line_solid_angle(const struct voxel_task *task, const struct voxel_pixel *pixel, const int place[2])
{
    const lr_module *module = &task->study.scanner->modules[pixel->module];
    const int rays = task->result.request.rays;
    const int crystal[2] = {pixel->p, pixel->q};
    double at_mm[3], to_face[3];
    lr_scanner_detection_centre(task->study.scanner, pixel->module, at_mm);
    for (int k = 0; k < 2; k++) {
        const double cell_mm = (crystal[k] - 0.5 * (module->crystals[k] - 1)) * module->pitch_mm[k];
        const double part_mm = ((place[k] % rays + 0.5) / rays - 0.5) * module->face_mm[k];
        vec_add_scaled(at_mm, cell_mm + part_mm, k == 0 ? module->u : module->v, at_mm);
    }
    vec_sub(at_mm, task->result.request.point_mm, to_face);
    const double distance = vec_length(to_face);
    const double area = module->face_mm[0] * module->face_mm[1] / ((double)rays * rays);
    return area * fabs(vec_dot(to_face, module->normal)) / (distance * distance * distance);
}

/* NaN without the task that has the row, or for a row it was not asked for. */
static double element(const struct voxel_task *task, enum voxel_row_kind kind, int64_t lor)
{
    const bool exact = kind == ROW_POINT_EXACT || kind == ROW_VOXEL_EXACT;
    if (lor < 0 || task == NULL || (exact && !task->result.has_exact)) return NAN;
    const lr_row row = lr_owned_row_view(&task->rows[kind].row, 0);
    return lr_row_element(&row, lor);
}

static void fill_pixel(const struct voxel_task *task, const struct voxel_window *window, const int place[2],
                       struct voxel_pixel *pixel)
{
    const int64_t n = (int64_t)place[1] * window->size[0] + place[0];
    const lr_pixel *line = &window->pixels[n];
    const int64_t lor = window->lors[n];
    const int rays = task->result.request.rays;
    *pixel = (struct voxel_pixel){
        .module = window->module,
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
    };
    pixel->solid_angle_sr = line_solid_angle(task, pixel, place);
    pixel->survival = lor < 0 ? NAN : !task->result.has_mu ? 1.0 : pixel->weight * 2 * PI / pixel->solid_angle_sr;
}

lr_status voxel_at(const struct voxel *voxel, int module, const int place[2], struct voxel_pixel *pixel)
{
    const struct voxel_task *task = windows_task(voxel), *means = means_task(voxel);
    const struct voxel_window *window = find_window(task, module);
    if (window == NULL || place[0] < 0 || place[1] < 0 || place[0] >= window->size[0] || place[1] >= window->size[1])
        return LR_USAGE;
    fill_pixel(task, window, place, pixel);
    pixel->voxel_sampled = element(means, ROW_VOXEL_SAMPLED, pixel->lor);
    pixel->voxel_exact = element(means, ROW_VOXEL_EXACT, pixel->lor);
    return LR_OK;
}

int voxel_num_operators(const struct voxel *voxel)
{
    int count = 0;
    for (int k = 0; k < NUM_PURPOSES; k++) count += atomic_load(&voxel->kept[k].num_made);
    return count;
}

/* --- windows without LORs --- */

static bool is_empty(const struct voxel_window *window)
{
    for (int64_t k = 0; k < (int64_t)window->size[0] * window->size[1]; k++)
        if (window->lors[k] >= 0) return false;
    return true;
}

/* LORs of the row that end in the module, and those of them whose farther end it is. */
struct share {
    int64_t ends, primary;
};

static struct share count_share(const struct voxel_row *row, const lr_lors *lors, int module, const double point_mm[3])
{
    struct share share = {0};
    for (int64_t k = 0; k < row->count; k++) {
        const lr_lor lor = lr_lors_describe(lors, row->lor[k]);
        if (lor.module_i == module || lor.module_j == module) {
            share.ends++;
            share.primary += lr_lors_primary(lors, row->lor[k], point_mm) == module;
        }
    }
    return share;
}

static void explain(const struct voxel_result *result, const struct voxel_window *window, const struct share *share,
                    struct voxel_gap *gap)
{
    const int module = window->module, rays = result->request.rays;
    if (gap->better < 0) {
        snprintf(gap->why, sizeof(gap->why),
                 "no LOR passes through the point: the scanner does not see it; choose another "
                 "point");
    } else if (share->ends == 0) {
        snprintf(gap->why, sizeof(gap->why), "module %d has no window: no LOR through the point ends in it", module);
    } else if (share->primary == 0) {
        snprintf(gap->why, sizeof(gap->why),
                 "module %d has no window: it is the nearer end of all %lld LORs through the point "
                 "that end in it, and windows are drawn on the farther end",
                 module, (long long)share->ends);
    } else {
        snprintf(gap->why, sizeof(gap->why),
                 "module %d has no window at R = %d: its %d x %d lines a crystal meet none of its "
                 "%lld LORs; raise R",
                 module, rays, rays, rays, (long long)share->primary);
    }
}

struct voxel_gap voxel_gap_find(const struct voxel_result *result, const lr_lors *lors,
                                const struct voxel_window *window)
{
    const double *point_mm = result->request.point_mm;
    const struct voxel_row *row = result->has_exact ? &result->point_exact : &result->point_sampled;
    struct voxel_gap gap = {.better = -1};
    if (!is_empty(window)) return gap;
    if (row->count > 0) gap.better = lr_lors_primary(lors, row->lor[row->order[0]], point_mm);
    const struct share share = count_share(row, lors, window->module, point_mm);
    explain(result, window, &share, &gap);
    return gap;
}
