/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/direct_model.h"

#include "base/log.h"
#include "base/mem.h"
#include "viewer/frame/camera.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- tables --- */

struct tables_task {
    lr_grid grid;
    struct direct_result result;
    lr_direct_tables *tables;
    lr_image *cloud;
};

static void destroy_tables(void *object)
{
    struct tables_task *task = object;
    lr_direct_tables_destroy(task->tables);
    lr_image_destroy(task->cloud);
    free(task);
}

static lr_status run_tables(void *object, const lr_log *log, const lr_progress *progress)
{
    struct tables_task *task = object;
    struct direct_result *result = &task->result;
    LR_TRY(lr_progress_report(progress, "building look-up tables", 0, 1));
    task->tables = lr_direct_tables_create(&(lr_direct_tables_params){
        .grid = &task->grid, .view = result->request.view, .kernel = result->request.kernel, .log = log});
    task->cloud = lr_image_create(&task->grid, log);
    if (task->tables == NULL || task->cloud == NULL) return LR_FAILED;
    result->tables = task->tables;
    result->cloud = task->cloud;
    result->is_inside = pick_voxel(&task->grid, result->request.point_mm, result->voxel);
    if (!result->is_inside) return LR_OK;

    const lr_grid *grid = &task->grid;
    const int *voxel = result->voxel;
    double axes[3][3];
    result->kernel = lr_direct_tables_map(task->tables)[voxel[1] * grid->size[0] + voxel[0]];
    lr_view_axes(&result->request.view, axes);
    for (int k = 0; k < 3; k++) result->radial_mm += axes[1][k] * (grid->origin_mm[k] + voxel[k] * grid->voxel_mm[k]);

    /* The kernel about the voxel, as far as the grid goes. */
    const int32_t(*offsets)[3] = lr_direct_tables_offsets(task->tables);
    const double *values = lr_direct_tables_values(task->tables, result->kernel);
    const int64_t count = lr_direct_tables_get_info(task->tables)->num_offsets;
    for (int64_t n = 0; n < count; n++) {
        int64_t row = 0;
        for (int k = 2; k >= 0; k--) {
            const int at = voxel[k] + offsets[n][k];
            row = row >= 0 && at >= 0 && at < grid->size[k] ? row * grid->size[k] + at : -1;
        }
        result->largest = fmax(result->largest, values[n]);
        if (row >= 0) task->cloud->values[row] = (float)values[n];
    }
    return LR_OK;
}

double direct_kernel_value(const struct direct_result *result, const int offset[3])
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
    free(task->path);
    free(task);
}

static lr_status run_histo(void *object, const lr_log *log, const lr_progress *progress)
{
    struct histo_task *task = object;
    LR_TRY(lr_progress_report(progress, "reading histo-images", 0, 1));
    task->histo = lr_histo_images_read(task->path, log);
    return task->histo != NULL ? LR_OK : LR_FAILED;
}

const struct task_kind direct_tables_kind = {"building look-up tables", run_tables, destroy_tables};
const struct task_kind direct_histo_kind = {"reading histo-images", run_histo, destroy_histo};

lr_status direct_tables_ask(struct task_runner *runner, const lr_grid *grid, const struct direct_request *request,
                            const lr_log *log)
{
    if (grid->size[0] == 0) return lr_error(log, LR_USAGE, "there is no grid: open a scanner or an image first");
    struct tables_task *task = lr_alloc(1, sizeof(*task), "look-up tables", log);
    if (task == NULL) return LR_FAILED;
    task->grid = *grid;
    task->result.request = *request;
    task_runner_ask(runner, task);
    return LR_OK;
}

const struct direct_result *direct_tables_result(const struct task_runner *runner)
{
    const struct tables_task *task = runner->result;
    return task != NULL ? &task->result : NULL;
}

lr_status direct_histo_ask(struct task_runner *runner, const char *path, const lr_log *log)
{
    struct histo_task *task = lr_alloc(1, sizeof(*task), "histo-images", log);
    if (task != NULL) task->path = lr_copy_string(path, log);
    if (task == NULL || task->path == NULL) {
        free(task);
        return LR_FAILED;
    }
    task_runner_ask(runner, task);
    return LR_OK;
}

const lr_histo_images *direct_histo_result(const struct task_runner *runner)
{
    const struct histo_task *task = runner->result;
    return task != NULL ? task->histo : NULL;
}
