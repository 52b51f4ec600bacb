/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/voxel.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "picture/pixel_lor.h"
#include "viewer/study/voxel_task.h"

#include <stdlib.h>

#define PI 3.14159265358979323846

struct voxel {
    struct newest windows, means;
    int64_t num_asked;          /* requests so far; the last one's number */
    int64_t means_for;          /* the request whose voxel rows have been asked for */
    struct voxel_result result; /* both put together */
};

struct voxel *voxel_create(const lr_log *log)
{
    struct voxel *voxel = lr_alloc(1, sizeof(*voxel), "voxel mode", log);
    if (voxel != NULL) {
        newest_init(&voxel->windows, &voxel_windows_kind);
        newest_init(&voxel->means, &voxel_means_kind);
    }
    return voxel;
}

void voxel_destroy(struct voxel *voxel)
{
    if (voxel != NULL) {
        newest_cancel(&voxel->means);
        newest_finish(&voxel->windows);
        newest_finish(&voxel->means);
        free(voxel);
    }
}

lr_status voxel_ask(struct voxel *voxel, const struct study_view *study,
                    const struct voxel_request *request, const lr_log *log)
{
    struct voxel_task *task = NULL;
    LR_TRY(voxel_task_create(study, request, log, &task));
    task->id = ++voxel->num_asked;
    newest_cancel(&voxel->means);
    newest_ask(&voxel->windows, task);
    return LR_OK;
}

/* --- both put together --- */

static const struct voxel_task *windows_task(const struct voxel *voxel)
{
    return newest_current(&voxel->windows);
}

/* The voxel's rows of the result at hand, or NULL. */
static const struct voxel_task *means_task(const struct voxel *voxel)
{
    const struct voxel_task *windows = windows_task(voxel), *means = newest_current(&voxel->means);
    return windows != NULL && means != NULL && means->id == windows->id ? means : NULL;
}

/* Once there are windows, and no newer ones are on their way. */
static void ask_for_means(struct voxel *voxel, enum job_state windows_state)
{
    const struct voxel_task *windows = windows_task(voxel);
    struct voxel_task *task = NULL;
    if (windows_state != JOB_DONE || windows == NULL || windows->id == voxel->means_for) {
        return;
    }
    voxel->means_for = windows->id;
    if (voxel_task_create(&windows->study, &windows->request, NULL, &task) == LR_OK) {
        task->id = windows->id;
        newest_ask(&voxel->means, task);
    }
}

static void put_together(struct voxel *voxel)
{
    const struct voxel_task *windows = windows_task(voxel), *means = means_task(voxel);
    if (windows == NULL) {
        return;
    }
    voxel->result = windows->result;
    voxel->result.has_means = means != NULL;
    if (means != NULL) {
        voxel->result.voxel_sampled = means->result.voxel_sampled;
        voxel->result.voxel_exact = means->result.voxel_exact;
    }
}

enum job_state voxel_poll(struct voxel *voxel, struct job_report *report)
{
    const enum job_state first = newest_poll(&voxel->windows, report);
    ask_for_means(voxel, first);
    const bool is_first = first != JOB_DONE || voxel->means_for == 0;
    const enum job_state second = newest_poll(&voxel->means, is_first ? NULL : report);
    put_together(voxel);
    return is_first ? first : second;
}

enum job_state voxel_wait(struct voxel *voxel, struct job_report *report)
{
    while (voxel_poll(voxel, report) == JOB_RUNNING) {
        (void)newest_wait(&voxel->windows, NULL);
        (void)newest_wait(&voxel->means, NULL);
    }
    return voxel_poll(voxel, report);
}

void voxel_cancel(struct voxel *voxel)
{
    newest_cancel(&voxel->windows);
    newest_cancel(&voxel->means);
}

const struct voxel_result *voxel_result(const struct voxel *voxel, int64_t *serial)
{
    if (serial != NULL) {
        *serial = newest_serial(&voxel->windows) + newest_serial(&voxel->means);
    }
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
    for (int k = 0; task != NULL && k < task->result.num_windows; k++) {
        if (task->result.windows[k].module == module) {
            return &task->result.windows[k];
        }
    }
    return NULL;
}

/* Of the part of the crystal's face that the pixel's line stands for, as the line weighs it: its
 * area, times the cosine to the face's normal, over the square of the distance. */
static double line_solid_angle(const struct voxel_task *task, const struct voxel_pixel *pixel,
                               const int place[2])
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
    if (lor < 0 || task == NULL || (exact && !task->result.has_exact)) {
        return NAN;
    }
    const lr_row row = lr_owned_row_view(&task->rows[kind].row, 0);
    return lr_row_element(&row, lor);
}

static void fill_pixel(const struct voxel_task *task, const struct voxel_window *window,
                       const int place[2], struct voxel_pixel *pixel)
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
    pixel->survival = lor < 0                ? NAN
                      : !task->result.has_mu ? 1.0
                                             : pixel->weight * 2 * PI / pixel->solid_angle_sr;
}

lr_status voxel_at(const struct voxel *voxel, int module, const int place[2],
                   struct voxel_pixel *pixel)
{
    const struct voxel_task *task = windows_task(voxel), *means = means_task(voxel);
    const struct voxel_window *window = find_window(task, module);
    if (window == NULL || place[0] < 0 || place[1] < 0 || place[0] >= window->size[0] ||
        place[1] >= window->size[1]) {
        return LR_USAGE;
    }
    fill_pixel(task, window, place, pixel);
    pixel->voxel_sampled = element(means, ROW_VOXEL_SAMPLED, pixel->lor);
    pixel->voxel_exact = element(means, ROW_VOXEL_EXACT, pixel->lor);
    return LR_OK;
}
