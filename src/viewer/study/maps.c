/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/maps.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "viewer/study/operators.h"

#include <math.h>
#include <stdlib.h>

/* --- sensitivity --- */

static void destroy_sensitivity(void *object)
{
    struct sensitivity_result *task = object;
    lr_image_destroy(task->image);
    study_view_release(&task->study);
    free(task);
}

static lr_status run_sensitivity(void *object, const lr_log *log, const lr_progress *progress)
{
    struct sensitivity_result *task = object;
    struct sensitivity_request *request = &task->request;
    lr_operator_params params = {.lors = task->study.lors,
                                 .grid = &task->study.grid,
                                 .backend = request->backend,
                                 .mu = task->study.mu,
                                 .store = LR_STORE_NO,
                                 .log = log,
                                 .progress = progress};
    const double start = lr_clock_seconds();
    lr_operator *op = NULL;
    task->image = lr_image_create(&task->study.grid, log);
    if (task->image == NULL) return LR_FAILED;
    if (request->samples > 0) lr_grid_split_samples(&task->study.grid, request->samples, params.samples);
    LR_TRY(operator_create(&params, &op));
    const lr_operator_info *info = lr_operator_get_info(op);
    task->mode = info->mode;
    request->samples = info->samples[0] * info->samples[1] * info->samples[2];

    lr_vector image = lr_image_vector(task->image);
    const lr_status status = lr_operator_sensitivity(op, NULL, &image);
    lr_operator_destroy(op);
    LR_TRY(status);
    const int64_t count = lr_grid_num_voxels(&task->image->grid);
    double sum = 0;
    for (int64_t v = 0; v < count; v++) {
        sum += task->image->values[v];
        task->largest = fmax(task->largest, task->image->values[v]);
    }
    task->mean = sum / (double)count;

    task->seconds = lr_clock_seconds() - start;
    return LR_OK;
}

const struct task_kind sensitivity_kind = {"computing the sensitivity", run_sensitivity, destroy_sensitivity};

lr_status sensitivity_ask(struct task_runner *runner, const struct study_view *study,
                          const struct sensitivity_request *request, const lr_log *log)
{
    LR_TRY(study_check_module(study, 0, log));
    struct sensitivity_result *task = lr_alloc(1, sizeof(*task), "a sensitivity image", log);
    if (task == NULL) return LR_FAILED;
    task->study = study_view_hold(study);
    task->request = *request;
    task->request.backend = backend_name(request->backend, "auto");
    task_runner_ask(runner, task);
    return LR_OK;
}

/* --- LOR data as pictures --- */

void pair_image_finish(struct pair_image *image)
{
    free(image->values);
    *image = (struct pair_image){0};
}

lr_status pair_image_make(const struct study_view *study, const int modules[2], const lr_lor_data *data,
                          const lr_row *row, struct pair_image *image, const lr_log *log)
{
    const int64_t *lors = row != NULL ? row->lor : data->index; /* ascending; NULL = all LORs in order */
    const int64_t count = row != NULL ? row->count : data->count;
    const lr_scanner *scanner = study->scanner;
    *image = (struct pair_image){0};
    for (int k = 0; k < 2; k++) LR_TRY(study_check_module(study, modules[k], log));
    const int64_t pair = lr_lors_pair(study->lors, modules[0], modules[1]);
    if (pair < 0) return lr_error(log, LR_USAGE, "modules %d and %d are not in coincidence", modules[0], modules[1]);
    for (int k = 0; k < 2; k++) {
        image->modules[k] = study->lors->pairs[pair][k];
        image->size[1 - k] = scanner->first_crystal[image->modules[k] + 1] - scanner->first_crystal[image->modules[k]];
    }
    image->values = lr_alloc((int64_t)image->size[0] * image->size[1], sizeof(*image->values), "a LOR image", log);
    if (image->values == NULL) return LR_FAILED;

    /* Finds the first LOR in the list whose number is at least that of the pair's first LOR. */
    const int64_t first = study->lors->offsets[pair], end = study->lors->offsets[pair + 1];
    for (int64_t k = lors != NULL ? lr_first_at_least(lors, count, first) : first;
         k < count && (lors != NULL ? lors[k] : k) < end; k++) {
        const double value = row != NULL ? row->probability[k] : (double)data->values[k];
        image->values[(lors != NULL ? lors[k] : k) - first] = (float)value;
        image->sum += value;
        image->largest = fmax(image->largest, value);
    }
    return LR_OK;
}

int64_t pair_image_lor(const struct study_view *study, const struct pair_image *image, int column, int row)
{
    if (image->values == NULL || column < 0 || row < 0 || column >= image->size[0] || row >= image->size[1]) return -1;
    return lr_lors_number(study->lors, study->scanner->first_crystal[image->modules[0]] + row,
                          study->scanner->first_crystal[image->modules[1]] + column);
}

int highest_of_data(const lr_lor_data *data, struct lor_value *highest, int capacity)
{
    int count = 0;
    for (int64_t k = 0; capacity > 0 && k < data->count; k++) {
        const struct lor_value value = {data->index != NULL ? data->index[k] : k, (double)data->values[k]};
        if (value.value > 0 && (count < capacity || value.value > highest[count - 1].value)) {
            int place = count < capacity ? count++ : count - 1;
            for (; place > 0 && highest[place - 1].value < value.value; place--) highest[place] = highest[place - 1];
            highest[place] = value;
        }
    }
    return count;
}
