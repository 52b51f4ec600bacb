/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/listmode/plan.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "listmode/line.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    JOBS_PER_PROCESSOR = 4,       /* usual number of jobs, so large that no processor waits long for another one */
    EXACT_JOBS_PER_PROCESSOR = 8, /* usual number for exact elements, whose jobs have more work */
    JOBS_OF_REST = 2,             /* if the device has reordered the events: the next job gets the remaining work /
                                     (this number times the processors) */
    LEAST_JOBS = 16,              /* a job has at least the launch's work / (this number times the processors) */
    EXACT_LEAST_JOBS = 64,        /* LEAST_JOBS for exact elements */
    LONGEST_CHUNK = 1 << 16,
    LEAST_SLICES = 2, /* smallest number of slices of a slab; with fewer, finding each line again takes too long */
    LEAST_PLANES = 4, /* smallest number of planes of sample points in a slab of exact elements */
    LEAST_WINDOW = 4, /* smallest window that the kernels for tubes have code for */
    LINE_WORK = 8,    /* work of finding a line, in slices */
    EXACT_WORK = 2    /* work of finding a line for exact elements, in steps */
};

/* The largest number of sums of a launch. They take 256 MiB. */
static const int64_t usual_partial = INT64_C(1) << 26;

/* --- frames --- */

static int32_t slices_of_slab(const lr_cuda_list_frame *frame, int64_t shared_room)
{
    const int64_t cells = shared_room / (int64_t)sizeof(float) - frame->tail - 3;
    const int64_t slices = cells > 0 ? cells / frame->plane : 0;
    return (int32_t)(slices < frame->slices ? slices : frame->slices);
}

/* Adds the parameters of projections to a frame whose layout is known. */
static void init_frame(const struct lr_cuda_list_plan_params *params, lr_cuda_list_frame *frame)
{
    const struct lr_listmode_model *model = params->model;
    const struct lr_listmode_events *events = params->events;
    const int axes[3] = {frame->axis, frame->across[0], frame->across[1]};
    frame->has_events = lr_listmode_has_axis(events, frame->axis);
    for (int k = 0; k < 3; k++) {
        frame->voxel_mm[k] = model->grid.voxel_mm[axes[k]];
        frame->origin_mm[k] = model->grid.origin_mm[axes[k]];
        frame->per_voxel[k] = 1.0 / frame->voxel_mm[k];
    }
    for (int tof = 0; tof < 2; tof++)
        frame->most[tof] = (float)lr_listmode_largest_element(model, events, frame->axis, tof != 0);

    /* Sets the sample points of exact elements. */
    lr_cuda_list_points *points = &frame->points;
    double all = 1;
    for (int k = 0; k < 3; k++) {
        const int samples = model->samples[axes[k]];
        points->samples[k] = samples;
        points->points[k] = (int32_t)(model->grid.size[axes[k]] * (int64_t)samples);
        points->step_mm[k] = frame->voxel_mm[k] / samples;
        points->per_step[k] = samples / frame->voxel_mm[k];
        points->first_mm[k] = frame->origin_mm[k] - 0.5 * (frame->voxel_mm[k] - points->step_mm[k]);
        points->per_sample[k] = (float)(1.0 / samples);
        all *= samples;
    }
    points->share = (float)(0.15915494309189535 / all);

    /* Tiling costs time, because each line must be found again in each slab. A frame is tiled only if a slab has enough
     * slices, or has all slices of the image. */
    const int samples = model->samples[frame->axis];
    const int32_t least =
        model->kernel == LR_LISTMODE_EXACT ? (LEAST_PLANES + samples - 1) / samples : (int32_t)LEAST_SLICES;
    const int32_t slices = slices_of_slab(frame, params->shared_room);
    frame->is_tiled = slices >= least || slices == frame->slices;
}

/* Sets the frame's axes and sizes. The size of a plane is a multiple of 16 bytes. Rows have odd lengths, so that voxels
 * on one side of the image, where many lines leave it, are spread over all banks of shared memory. */
static lr_status lay_out_frame(const struct lr_listmode_model *model, int axis, int64_t begin, const lr_log *log,
                               lr_cuda_list_frame *frame)
{
    const int *size = model->grid.size;
    const int across[2] = {axis == 0 ? 1 : 0, axis == 2 ? 1 : 2};
    *frame = (lr_cuda_list_frame){.axis = axis, .slices = size[axis], .begin = begin};
    for (int k = 0; k < 2; k++) {
        frame->across[k] = across[k];
        frame->size[k] = size[across[k]];
        frame->window[k] = 2; /* largest number of voxels, along this axis, that the shares of a line span */
        if (model->kernel == LR_LISTMODE_TUBE) {
            const double reach = sqrt(2.0 * lr_listmode_rim(&model->tube)) / model->grid.voxel_mm[across[k]];
            const int width = (int)(2.0 * reach + 0.01) + 1;
            frame->window[k] = width < LEAST_WINDOW ? LEAST_WINDOW : width;
        }
        frame->reach[k] = frame->size[k] + frame->window[k] - 1;
    }
    const int64_t pitch = ((int64_t)frame->size[1] + frame->window[1] - 1) | 1;
    const int64_t plane = (pitch * (frame->size[0] + frame->window[0] - 1) + 3) / 4 * 4;
    const int64_t tail = pitch * (frame->window[0] - 1) + frame->window[1];
    if (plane * frame->slices + tail > INT_MAX) {
        return lr_error(log, LR_USAGE,
                        "list mode on a CUDA device takes images of fewer than 2^31 voxels: take "
                        "larger voxels, or a smaller grid");
    }
    frame->pitch = (int32_t)pitch;
    frame->plane = (int32_t)plane;
    frame->tail = (int32_t)tail;
    return LR_OK;
}

int64_t lr_cuda_list_most_numbers(const struct lr_listmode_model *model)
{
    int64_t numbers = 0;
    for (int axis = 0; axis < LR_CUDA_LIST_AXES; axis++) {
        lr_cuda_list_frame frame;
        if (lay_out_frame(model, axis, 0, NULL, &frame) != LR_OK) return INT64_MAX;
        numbers += (lr_cuda_list_cells(&frame, frame.slices) + 3) / 4 * 4;
    }
    return numbers;
}

/* --- chunks --- */

struct planning {
    struct lr_cuda_list_plan *plan;
    const struct lr_cuda_list_plan_params *params;
    int64_t jobs;      /* approximate number of jobs per launch */
    int64_t most_sums; /* approximate largest number of sums of a launch */
    struct lr_listmode_cut cut;
    int64_t chunk_events; /* number of events of a chunk of the current range */
    int64_t launch_work;  /* if the device has reordered the events: work of each launch of the current range */
    int64_t dealt_work;   /* work assigned to the current launch so far */
};

/* Returns the largest number of slices of a slab of a frame. */
static int32_t slab_of(const struct planning *planning, const lr_cuda_list_frame *frame)
{
    return frame->is_tiled ? slices_of_slab(frame, planning->params->shared_room) : frame->slices;
}

static lr_status open_batch(struct planning *planning, int64_t begin)
{
    struct lr_cuda_list_plan *plan = planning->plan;
    const struct lr_items items = {sizeof(*plan->batches), "launches", planning->params->log};
    LR_TRY(lr_grow(&plan->batches, &plan->batch_room, plan->num_batches + 1, &items));
    plan->batches[plan->num_batches++] =
        (struct lr_cuda_list_batch){.begin = begin, .chunk = plan->num_chunks, .job = plan->num_jobs};
    planning->dealt_work = 0;
    return LR_OK;
}

/* Adds the portion to the last batch: as a chunk, with a job for each slab. */
static lr_status add_chunk(struct planning *planning, int group, const struct lr_listmode_portion *portion)
{
    struct lr_cuda_list_plan *plan = planning->plan;
    const struct lr_items chunks = {sizeof(*plan->chunks), "blocks of events", planning->params->log};
    const struct lr_items jobs = {sizeof(*plan->jobs), "blocks of events", planning->params->log};
    const int axis = lr_listmode_group_axis(group);
    const lr_cuda_list_frame *frame = &plan->frames[axis];
    const int64_t length = portion->slices[1] - portion->slices[0];
    struct lr_cuda_list_batch *batch = &plan->batches[plan->num_batches - 1];
    planning->cut.slab = slab_of(planning, frame);
    const int32_t slabs = lr_listmode_slabs(&planning->cut, (int32_t)length);
    const lr_cuda_list_chunk chunk = {.begin = portion->events[0] - batch->begin,
                                      .count = (int32_t)(portion->events[1] - portion->events[0]),
                                      .axis = axis,
                                      .has_tof = lr_listmode_group_has_tof(group),
                                      .slabs = slabs,
                                      .partial = batch->num_partial,
                                      .warp = batch->num_warps};
    LR_TRY(lr_grow(&plan->chunks, &plan->chunk_room, plan->num_chunks + 1, &chunks));
    LR_TRY(lr_grow(&plan->jobs, &plan->job_room, plan->num_jobs + slabs, &jobs));
    for (int32_t slab = 0; slab < slabs; slab++) {
        lr_cuda_list_job *job = &plan->jobs[plan->num_jobs++];
        *job = (lr_cuda_list_job){.chunk = batch->num_chunks, .slab = slab};
        lr_listmode_slab(portion, slabs, slab, job->slices);
        job->work = lr_listmode_work(&planning->cut, portion, job->slices);
    }
    plan->chunks[plan->num_chunks++] = chunk;

    const int64_t most = (length + slabs - 1) / slabs; /* slices of a slab */
    const int64_t bytes = (lr_cuda_list_cells(frame, most) + 3) / 4 * 4 * (int64_t)sizeof(float);
    plan->shared_bytes = frame->is_tiled ? lr_larger(plan->shared_bytes, bytes) : plan->shared_bytes;
    batch->num_jobs += slabs;
    batch->num_chunks++;
    batch->longest_chunk = (int32_t)lr_larger(batch->longest_chunk, chunk.count);
    batch->num_warps += (chunk.count + LR_CUDA_LIST_WARP - 1) / LR_CUDA_LIST_WARP;
    batch->num_partial += (int64_t)slabs * chunk.count;
    batch->num_events += chunk.count;
    plan->most_partial = lr_larger(plan->most_partial, batch->num_partial);
    return LR_OK;
}

/* Takes the next events of a group, in the device's order. */
static struct lr_listmode_portion next_ordered(struct planning *planning, int64_t r, int group, int64_t first)
{
    const struct lr_listmode_pieces *order = planning->params->order;
    const int64_t *ends = &planning->params->events->groups[r][group];

    /* If the caller sets the number of jobs, all jobs have equal work. Otherwise, the first jobs are long, because
     * beginning and ending a slab takes time, and later jobs are shorter, so that processors finish at about the same
     * time. */
    const struct lr_cuda_list_plan_params *params = planning->params;
    const bool is_exact = params->model->kernel == LR_LISTMODE_EXACT;
    const int64_t least = planning->launch_work / ((is_exact ? EXACT_LEAST_JOBS : LEAST_JOBS) * params->processors);
    const int64_t rest = planning->launch_work - planning->dealt_work;
    planning->cut.job_work = 1 + (params->jobs_each > 0 ? planning->launch_work / planning->jobs
                                                        : lr_larger(rest / (JOBS_OF_REST * params->processors), least));
    planning->cut.slab = slab_of(planning, &planning->plan->frames[lr_listmode_group_axis(group)]);
    return lr_listmode_next_portion(&planning->cut,
                                    order->list + order->first[r * LR_LISTMODE_GROUPS + group] +
                                        (first - ends[0]) / LR_CUDA_LIST_PIECE,
                                    (const int64_t[2]){first, ends[1]});
}

static lr_status plan_group(struct planning *planning, int64_t r, int group)
{
    const int axis = lr_listmode_group_axis(group);
    const int64_t *ends = &planning->params->events->groups[r][group];
    for (int64_t first = ends[0]; first < ends[1];) {
        struct lr_listmode_portion portion = {.events = {first, lr_smaller(first + planning->chunk_events, ends[1])},
                                              .slices = {0, planning->plan->frames[axis].slices}};
        if (planning->params->order != NULL)
            portion = next_ordered(planning, r, group, first);
        else if (lr_listmode_group_has_tof(group)) /* events sorted by their centres: finds the slices that these lines
                                                      may cross */
            lr_listmode_range_slices(planning->params->model, planning->params->events, portion.events, axis,
                                     portion.slices);
        first = portion.events[1];
        const int64_t more = portion.events[1] - portion.events[0];
        const struct lr_cuda_list_batch *batch = &planning->plan->batches[planning->plan->num_batches - 1];
        const int64_t most_events = planning->params->most_events;

        if (batch->num_partial > planning->most_sums ||
            (most_events > 0 && batch->num_events > 0 && batch->num_events + more > most_events))
            LR_TRY(open_batch(planning, portion.events[0]));
        LR_TRY(add_chunk(planning, group, &portion));
        planning->dealt_work +=
            portion.pieces != NULL ? lr_listmode_work(&planning->cut, &portion, lr_listmode_all) : 0;
    }
    return LR_OK;
}

/* Sorts jobs by their work, the longest first, so that none of the long jobs runs alone at the end. */
static int compare_jobs(const void *a, const void *b)
{
    const lr_cuda_list_job *left = a, *right = b;
    if (left->work != right->work) return left->work > right->work ? -1 : 1;
    return left->chunk != right->chunk ? (left->chunk < right->chunk ? -1 : 1) : left->slab - right->slab;
}

lr_status lr_cuda_list_plan_init(struct lr_cuda_list_plan *plan, const struct lr_cuda_list_plan_params *params)
{
    const struct lr_listmode_model *model = params->model;
    *plan = (struct lr_cuda_list_plan){0};
    for (int axis = 0; axis < LR_CUDA_LIST_AXES; axis++) {
        lr_cuda_list_frame *frame = &plan->frames[axis];
        LR_TRY(lay_out_frame(model, axis, plan->num_numbers, params->log, frame));
        init_frame(params, frame);
        if (frame->has_events) plan->num_numbers += (lr_cuda_list_cells(frame, frame->slices) + 3) / 4 * 4;
    }
    if (model->kernel != LR_LISTMODE_TUBE) return LR_OK;

    const lr_listmode_tube *tube = &model->tube;
    const double rim = lr_listmode_rim(tube), half = 0.5 * tube->width_mm;
    const double unit = tube->table != NULL ? 1.0 : 4.0 / (tube->fwhm_mm * tube->fwhm_mm);
    const double per_square = (1.0 + LR_LISTMODE_RIM) / (LR_LISTMODE_RIM * rim);
    const float fall = (float)(per_square / unit);
    plan->tube = (lr_cuda_list_tube){.reach_mm = sqrt(rim),
                                     .half = (float)(half * half * unit),
                                     .rim = (float)((double)fall * unit * rim),
                                     .fall = fall};
    for (int axis = 0; axis < LR_CUDA_LIST_AXES; axis++) {
        /* Scales distances across a frame's axis to the tube's unit. */
        lr_cuda_list_frame *frame = &plan->frames[axis];
        frame->uu = unit * frame->voxel_mm[1] * frame->voxel_mm[1];
        frame->uv = -2.0 * unit * frame->voxel_mm[1] * frame->voxel_mm[2];
        frame->vv = unit * frame->voxel_mm[2] * frame->voxel_mm[2];
    }
    if (tube->table != NULL) {
        plan->tube.last = tube->table_count - 1;
        plan->tube.entries = (float)(plan->tube.last / half);
    }
    return LR_OK;
}

lr_status lr_cuda_list_plan_deal(struct lr_cuda_list_plan *plan, const struct lr_cuda_list_plan_params *params)
{
    const bool is_exact = params->model->kernel == LR_LISTMODE_EXACT;
    const int64_t usual = is_exact ? EXACT_JOBS_PER_PROCESSOR : JOBS_PER_PROCESSOR;
    const struct lr_listmode_pieces *order = params->order;
    const int64_t num_ranges = params->events->layout.num_pairs, most = params->most_events;
    struct planning planning = {.plan = plan,
                                .params = params,
                                .jobs = (params->jobs_each > 0 ? params->jobs_each : usual) * params->processors,
                                .most_sums = params->most_partial > 0 ? params->most_partial : usual_partial,
                                .cut = {.each = LR_CUDA_LIST_PIECE,
                                        .line_work = is_exact ? EXACT_WORK : LINE_WORK,
                                        .most_events = LONGEST_CHUNK}};
    plan->range_batches = lr_alloc(num_ranges + 1, sizeof(*plan->range_batches), "ranges of events", params->log);
    if (plan->range_batches == NULL) return LR_FAILED;
    for (int64_t r = 0; r < num_ranges; r++) {
        const int64_t *groups = params->events->groups[r], *offsets = params->events->offsets;
        plan->range_batches[r] = plan->num_batches;
        if (groups[0] == groups[LR_LISTMODE_GROUPS]) continue;

        int64_t sums = 0; /* estimated number of sums for all events and slabs of the range */
        for (int g = 0; g < LR_LISTMODE_GROUPS; g++) {
            const lr_cuda_list_frame *frame = &plan->frames[lr_listmode_group_axis(g)];
            const double reach = lr_listmode_reach_slices(params->model, params->events, frame->axis);
            const double slices = 2.0 * reach + 1.0; /* slices that an event with time of flight reaches */
            const bool is_short = lr_listmode_group_has_tof(g) && slices < frame->slices;
            planning.cut.slab = slab_of(&planning, frame);
            sums += (groups[g + 1] - groups[g]) *
                    lr_listmode_slabs(&planning.cut, is_short ? (int32_t)slices : frame->slices);
        }

        /* A chunk has whole pieces. There are so many chunks that a launch has work for all processors. */
        const int64_t all = offsets[r + 1] - offsets[r];
        const int64_t launches = most > 0 ? (all + most - 1) / most : 1;
        const int64_t events = sums / launches / planning.jobs + 1;
        const int64_t longest = most > 0 ? lr_smaller(most, LONGEST_CHUNK) : LONGEST_CHUNK;
        const int64_t pieces = (events + LR_CUDA_LIST_PIECE - 1) / LR_CUDA_LIST_PIECE;
        planning.chunk_events = lr_smaller(pieces, longest / LR_CUDA_LIST_PIECE) * LR_CUDA_LIST_PIECE;

        /* Finds the approximate work of each launch, if the device has reordered the events. */
        int64_t work = 0;
        for (int g = 0; order != NULL && g < LR_LISTMODE_GROUPS; g++) {
            const struct lr_listmode_portion group = {.events = {groups[g], groups[g + 1]},
                                                      .pieces = order->list + order->first[r * LR_LISTMODE_GROUPS + g]};
            work += lr_listmode_work(&planning.cut, &group, lr_listmode_all);
        }
        planning.launch_work = work / ((sums + planning.most_sums - 1) / planning.most_sums);

        LR_TRY(open_batch(&planning, groups[0]));
        for (int group = 0; group < LR_LISTMODE_GROUPS; group++) LR_TRY(plan_group(&planning, r, group));
        for (int64_t k = plan->range_batches[r]; k < plan->num_batches; k++) {
            const struct lr_cuda_list_batch *batch = &plan->batches[k];
            qsort(plan->jobs + batch->job, (size_t)batch->num_jobs, sizeof(*plan->jobs), compare_jobs);
        }
    }
    plan->range_batches[num_ranges] = plan->num_batches;
    return LR_OK;
}

void lr_cuda_list_plan_finish(struct lr_cuda_list_plan *plan)
{
    lr_free_all(plan->chunks, plan->jobs, plan->batches, plan->range_batches);
    *plan = (struct lr_cuda_list_plan){0};
}
