/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/parallel.h"
#include "native/listmode/project.h"

/* So that no thread waits long for another. */
enum { SLABS_PER_THREAD = 2 };

struct slabs {
    const struct lr_native_listmode_chunk *chunk;
    int slices[2]; /* that the chunk's events may meet */
    int num;
};

/* The slice in which time of flight puts an event; it may be beyond the grid. */
static double centre_slice(const struct lr_native_listmode_job *job, int64_t k)
{
    const int axis = job->frame->axis;
    const lr_grid *grid = &job->model->grid;
    struct lr_listmode_line line;
    lr_listmode_line_of(job->events, k, axis, &line);
    const double centre = line.middle[axis] + line.tof_mm * line.direction[axis];
    return (centre - grid->origin_mm[axis]) / grid->voxel_mm[axis];
}

/* Slices from its centre in which an event may have elements, with one for rounding. */
static double reach(const struct lr_native_listmode_job *job)
{
    const double longest = job->events->reach_mm + job->model->reach_mm;
    return longest / job->model->grid.voxel_mm[job->frame->axis] + 1.5;
}

/* The first event of the chunk whose centre is not below a slice; they ascend. */
static int64_t first_from(const struct lr_native_listmode_chunk *chunk, double slice)
{
    int64_t low = chunk->begin, high = chunk->end;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (centre_slice(chunk->job, middle) < slice)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void find_slices(struct slabs *slabs)
{
    const struct lr_native_listmode_chunk *chunk = slabs->chunk;
    const int size = chunk->job->frame->slices;
    slabs->slices[0] = 0;
    slabs->slices[1] = size;
    if (chunk->has_tof) {
        const double low = floor(centre_slice(chunk->job, chunk->begin) - reach(chunk->job));
        const double high = ceil(centre_slice(chunk->job, chunk->end - 1) + reach(chunk->job));
        slabs->slices[0] = (int)fmin(fmax(low, 0.0), size);
        slabs->slices[1] = (int)fmax(fmin(high, size), slabs->slices[0]);
    }
}

static int slab_begin(const struct slabs *slabs, int64_t slab)
{
    const int64_t size = slabs->slices[1] - slabs->slices[0];
    return slabs->slices[0] + (int)(size * slab / slabs->num);
}

static void work_slabs(void *user, int64_t begin, int64_t end, int worker)
{
    const struct slabs *slabs = user;
    const struct lr_native_listmode_chunk *chunk = slabs->chunk;
    for (int64_t k = begin; k < end; k++) {
        const int slab[2] = {slab_begin(slabs, k), slab_begin(slabs, k + 1)};
        int64_t range[2] = {chunk->begin, chunk->end};
        if (chunk->has_tof) {
            range[0] = first_from(chunk, slab[0] - reach(chunk->job));
            range[1] = first_from(chunk, slab[1] + reach(chunk->job));
        }
        chunk->native->kernels->back(chunk->job, range, slab, lr_native_listmode_memory(chunk->native, worker));
    }
}

void lr_native_listmode_back_slabs(const struct lr_native_listmode_chunk *chunk)
{
    const int threads = chunk->native->params.threads;
    struct slabs slabs = {.chunk = chunk, .num = threads > 1 ? SLABS_PER_THREAD * threads : 1};
    find_slices(&slabs);
    lr_parallel_for(threads, slabs.num, 1, work_slabs, &slabs);
}
