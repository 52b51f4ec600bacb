/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "native/listmode/project.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>

/* Events between two reports of progress, and those that a thread takes forward at a time. Of thin lines
 * with time of flight many, which cover more slabs than each of them reaches. */
enum { LINES = 1 << 18, TUBES = 1 << 15, EXACT = 1 << 13, GRAIN = 512, EXACT_GRAIN = 32 };

struct project {
    const struct lr_native_listmode *native;
    const lr_selection *part;
    const char *what;
    void (*take)(const struct lr_native_listmode_chunk *chunk);
    struct lr_native_frame frame; /* of the axis at hand */
    struct lr_native_listmode_job job;
    double done, total; /* selected events */
};

static struct project begin(const struct lr_native_listmode *native, const lr_selection *part)
{
    return (struct project){
        .native = native,
        .part = part,
        .total = (double)lr_selection_count(&native->params.events->layout, part),
        .job = {.model = native->params.model, .events = native->params.events, .tube = &native->tube}};
}

static struct lr_native_framing framing_of(const struct project *project)
{
    return (struct lr_native_framing){&project->frame, &project->native->params.model->grid,
                                      project->native->params.threads};
}

/* Whether any event has this axis. */
static bool has_events(const struct project *project, int axis)
{
    const struct lr_listmode_events *events = project->native->params.events;
    bool has = false;
    for (int64_t r = 0; r < events->layout.num_pairs; r++)
        has = has || events->groups[r][2 * axis] < events->groups[r][2 * axis + 2];
    return has;
}

static int64_t most_at_once(lr_listmode_kernel kernel)
{
    return kernel == LR_LISTMODE_LINE ? LINES : kernel == LR_LISTMODE_TUBE ? TUBES : EXACT;
}

static lr_status take_group(struct project *project, int64_t r, int group)
{
    const struct lr_listmode_backend_params *params = &project->native->params;
    const int64_t *ends = &params->events->groups[r][group];
    const int64_t most = most_at_once(params->model->kernel);
    for (int64_t first = ends[0]; first < ends[1]; first += most) {
        const struct lr_native_listmode_chunk chunk = {.native = project->native,
                                                       .job = &project->job,
                                                       .begin = first,
                                                       .end = first + most < ends[1] ? first + most : ends[1],
                                                       .has_tof = lr_listmode_group_has_tof(group)};
        LR_TRY(lr_progress_report(params->progress, project->what, project->done, project->total));
        project->take(&chunk);
        project->done += project->job.places->share * (double)(chunk.end - chunk.begin);
    }
    return LR_OK;
}

/* The selected events of an axis. */
static lr_status take_axis(struct project *project)
{
    const struct lr_listmode_backend_params *params = &project->native->params;
    struct lr_listmode_places places = {0};
    lr_status status = LR_OK;
    project->job.frame = &project->frame;
    project->job.places = &places;
    for (int64_t r = 0; status == LR_OK && r < params->events->layout.num_pairs; r++) {
        status = lr_listmode_places_find(&places, params->events, project->part, r, params->log);
        for (int side = 0; status == LR_OK && places.count > 0 && side < 2; side++)
            status = take_group(project, r, 2 * project->frame.axis + side);
    }
    lr_listmode_places_finish(&places);
    return status;
}

/* --- forward --- */

static void forward_events(void *user, int64_t first, int64_t last, int worker)
{
    const struct lr_native_listmode_chunk *chunk = user;
    const int64_t range[2] = {chunk->begin + first, chunk->begin + last};
    chunk->native->kernels->forward(chunk->job, range, lr_native_listmode_memory(chunk->native, worker));
}

static void take_forward(const struct lr_native_listmode_chunk *chunk)
{
    const bool is_exact = chunk->job->model->kernel == LR_LISTMODE_EXACT;
    lr_parallel_for(chunk->native->params.threads, chunk->end - chunk->begin, is_exact ? EXACT_GRAIN : GRAIN,
                    forward_events, (void *)(uintptr_t)chunk);
}

static lr_status forward_axis(struct project *project, int axis, const float *image)
{
    const struct lr_native_framing framing = framing_of(project);
    lr_native_frame_init(&project->frame, project->job.model, axis);
    float *numbers = lr_alloc(lr_native_frame_count(&project->frame), sizeof(*numbers), "an image in slices",
                              project->native->params.log);
    if (numbers == NULL) return LR_FAILED;
    lr_native_frame_fill(&framing, image, numbers);
    project->job.image = numbers;
    const lr_status status = take_axis(project);
    free(numbers);
    return status;
}

lr_status lr_native_listmode_forward(const struct lr_native_listmode *native, const lr_selection *part,
                                     const float *image, float *values)
{
    struct project project = begin(native, part);
    project.what = "projecting";
    project.take = take_forward;
    project.job.to = values;
    for (int axis = 0; axis < 3; axis++)
        if (has_events(&project, axis)) LR_TRY(forward_axis(&project, axis, image));
    return LR_OK;
}

/* --- back --- */

static lr_status back_axis(struct project *project, int axis, double *total)
{
    const struct lr_native_framing framing = framing_of(project);
    lr_native_frame_init(&project->frame, project->job.model, axis);
    double *sums = lr_alloc(lr_native_frame_count(&project->frame), sizeof(*sums), "an image in slices",
                            project->native->params.log);
    if (sums == NULL) return LR_FAILED;
    project->job.sums = sums;
    const lr_status status = take_axis(project);
    lr_native_frame_add(&framing, sums, total);
    free(sums);
    return status;
}

static lr_status back_all(struct project *project, double *total, float *image)
{
    for (int axis = 0; axis < 3; axis++)
        if (has_events(project, axis)) LR_TRY(back_axis(project, axis, total));
    const int64_t count = lr_grid_num_voxels(&project->job.model->grid);
    for (int64_t k = 0; k < count; k++) image[k] = (float)total[k];
    return LR_OK;
}

lr_status lr_native_listmode_back(const struct lr_native_listmode *native, const lr_selection *part,
                                  const float *values, float *image)
{
    struct project project = begin(native, part);
    project.what = "back-projecting";
    project.take = lr_native_listmode_back_slabs;
    project.job.from = values;
    double *total =
        lr_alloc(lr_grid_num_voxels(&native->params.model->grid), sizeof(*total), "an image", native->params.log);
    const lr_status status = total != NULL ? back_all(&project, total, image) : LR_FAILED;
    free(total);
    return status;
}
