/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The native backend of the family `listmode` (docs/method/listmode.md, "Backend native"). The backend projects axis by
 * axis. Results have the same bits for any number of threads. */
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "correspondence/native/kernels.h"
#include "listmode/line.h"
#include "listmode/native/kernels.h"
#include "listmode/rows.h"
#include "model/lors/selection.h"

#include <stdlib.h>
#include <string.h>

/* --- frames: images that are stored slice by slice across an axis --- */

/* Returns the largest distance, along an axis, between a line's crossing of a slice and a voxel with a share, in
 * voxels. */
static double share_reach(const struct lr_listmode_model *model, int axis)
{
    return model->kernel != LR_LISTMODE_TUBE ? 1.0
                                             : sqrt(2.0 * lr_listmode_rim(&model->tube)) / model->grid.voxel_mm[axis];
}

static void frame_init(struct lr_native_frame *frame, const struct lr_listmode_model *model, int axis)
{
    const int across[2] = {axis == 0 ? 1 : 0, axis == 2 ? 1 : 2};
    int64_t length[2];
    for (int k = 0; k < 2; k++) {
        const double reach = share_reach(model, across[k]);
        frame->across[k] = across[k];
        frame->size[k] = model->grid.size[across[k]];
        frame->border[k] = (int)(2.0 * (reach + LR_NATIVE_LISTMODE_SLACK));
        /* The border after the image. It holds shares of tubes whose first voxel is the image's last one. */
        const int width = model->kernel == LR_LISTMODE_TUBE ? (int)(2.0 * reach) + 1 : 0;
        length[k] = frame->border[k] + frame->size[k] + 2 + width;
    }
    frame->axis = axis;
    frame->slices = model->grid.size[axis];
    frame->row = length[0];
    frame->plane = length[0] * length[1];
}

/* A copy between an image in the grid's order and a frame. If `sums` is NULL, the image is copied to `numbers`;
 * otherwise the sums are added to an image. */
struct transfer {
    const struct lr_native_frame *frame;
    const lr_grid *grid;
    const float *image;
    float *numbers;
    const double *sums; /* sums of the frame; NULL = copy from `image` to `numbers` */
    double *total;
};

static void transfer_rows(void *user, int64_t begin, int64_t end)
{
    const struct transfer *transfer = user;
    const struct lr_native_frame *frame = transfer->frame;
    const int *size = transfer->grid->size;
    const int64_t steps[3] = {1, size[0], (int64_t)size[0] * size[1]};
    const int64_t step = steps[frame->across[0]];
    for (int64_t index = begin; index < end; index++) {
        /* The first voxel of a row along across[0], in the grid's order and in the frame. */
        const int64_t slice = index / frame->size[1], v = index % frame->size[1];
        const int64_t voxel = slice * steps[frame->axis] + v * steps[frame->across[1]];
        const int64_t number = slice * frame->plane + (v + frame->border[1]) * frame->row + frame->border[0];
        if (transfer->sums != NULL)
            for (int u = 0; u < frame->size[0]; u++) transfer->total[voxel + u * step] += transfer->sums[number + u];
        else
            for (int u = 0; u < frame->size[0]; u++) transfer->numbers[number + u] = transfer->image[voxel + u * step];
    }
}

static void transfer_all(const struct lr_native_listmode *native, struct transfer *transfer)
{
    const struct lr_native_frame *frame = transfer->frame;
    transfer->grid = &native->params.model->grid;
    lr_parallel_for(native->params.threads, (int64_t)frame->slices * frame->size[1], 256, transfer_rows, transfer);
}

/* The number of table entries of a Gaussian tube. Linear interpolation between them has an error of at most 1e-6 of the
 * peak, for widths of up to 9 FWHM. */
enum { GAUSSIAN_ENTRIES = 4096 };

/* --- chunks of events --- */

/* LINES, TUBES, EXACT: number of events of a chunk; progress is reported after each chunk. Chunks of thin lines are
 * long, so that their events with time of flight are spread over many slabs. GRAIN, EXACT_GRAIN: number of events that
 * a thread takes at once in forward projection. */
enum { LINES = 1 << 18, TUBES = 1 << 15, EXACT = 1 << 13, GRAIN = 512, EXACT_GRAIN = 32 };

struct chunk {
    const struct lr_native_listmode *native;
    const struct lr_native_listmode_job *job;
    int64_t begin, end;
    bool has_tof;
};

static float *memory_of(const struct lr_native_listmode *native, int worker)
{
    return native->memory + worker * 5 * native->tube.capacity;
}

/* A projection of some events, axis by axis. */
struct project {
    const struct lr_native_listmode *native;
    const lr_selection *part;
    const char *what;
    void (*take)(const struct chunk *chunk);
    struct lr_native_frame frame; /* frame of the current axis */
    struct lr_native_listmode_job job;
    double done, total; /* numbers of events: projected so far, and selected */
};

static struct project begin(const struct lr_native_listmode *native, const lr_selection *part)
{
    return (struct project){
        .native = native,
        .part = part,
        .total = (double)lr_selection_count(&native->params.events->layout, part),
        .job = {.model = native->params.model, .events = native->params.events, .tube = &native->tube}};
}

/* Projects the selected events of the current axis, chunk by chunk. */
static lr_status take_axis(struct project *project)
{
    const struct lr_listmode_backend_params *params = &project->native->params;
    const lr_listmode_kernel kernel = params->model->kernel;
    const int64_t most = kernel == LR_LISTMODE_LINE ? LINES : kernel == LR_LISTMODE_TUBE ? TUBES : EXACT;
    struct lr_listmode_places places = {0};
    lr_status status = LR_OK;
    project->job.frame = &project->frame;
    project->job.places = &places;
    for (int64_t r = 0; status == LR_OK && r < params->events->layout.num_pairs; r++) {
        status = lr_listmode_places_find(&places, params->events, project->part, r, params->log);
        for (int side = 0; status == LR_OK && places.count > 0 && side < 2; side++) {
            const int group = 2 * project->frame.axis + side;
            const int64_t *ends = &params->events->groups[r][group];
            for (int64_t first = ends[0]; first < ends[1]; first += most) {
                const struct chunk chunk = {.native = project->native,
                                            .job = &project->job,
                                            .begin = first,
                                            .end = first + most < ends[1] ? first + most : ends[1],
                                            .has_tof = lr_listmode_group_has_tof(group)};
                status = lr_progress_report(params->progress, project->what, project->done, project->total);
                if (status != LR_OK) break;
                project->take(&chunk);
                project->done += places.share * (double)(chunk.end - chunk.begin);
            }
        }
    }
    lr_listmode_places_finish(&places);
    return status;
}

/* --- forward --- */

static void forward_events(void *user, int64_t first, int64_t last, int worker)
{
    const struct chunk *chunk = user;
    const int64_t range[2] = {chunk->begin + first, chunk->begin + last};
    chunk->native->kernels->forward(chunk->job, range, memory_of(chunk->native, worker));
}

static void take_forward(const struct chunk *chunk)
{
    const bool is_exact = chunk->job->model->kernel == LR_LISTMODE_EXACT;
    lr_parallel_workers(chunk->native->params.threads, chunk->end - chunk->begin, is_exact ? EXACT_GRAIN : GRAIN,
                        forward_events, (void *)(uintptr_t)chunk);
}

static lr_status forward(const struct lr_native_listmode *native, const lr_selection *part, const lr_vector *image,
                         lr_vector *values)
{
    struct project project = begin(native, part);
    project.what = "projecting";
    project.take = take_forward;
    project.job.to = values->values;
    const struct lr_native_frame *frame = &project.frame;
    for (int axis = 0; axis < 3; axis++) {
        if (!lr_listmode_has_axis(native->params.events, axis)) continue;
        frame_init(&project.frame, project.job.model, axis);
        float *numbers =
            lr_alloc(frame->slices * frame->plane, sizeof(*numbers), "an image in slices", native->params.log);
        if (numbers == NULL) return LR_FAILED;
        /* The borders of `numbers` stay zero. */
        transfer_all(native, &(struct transfer){.frame = frame, .image = image->values, .numbers = numbers});
        project.job.image = numbers;
        const lr_status status = take_axis(&project);
        free(numbers);
        LR_TRY(status);
    }
    return LR_OK;
}

/* --- back --- */

/* There are more slabs than threads, so that no thread waits long for the others. */
enum { SLABS_PER_THREAD = 2 };

struct slabs {
    const struct chunk *chunk;
    int slices[2]; /* slices that the chunk's events may cross */
    int num;
};

/* Finds the first event of the chunk whose centre is in this slice or above. Events are sorted by their centres. */
static int64_t first_from(const struct chunk *chunk, double slice)
{
    const struct lr_native_listmode_job *job = chunk->job;
    int64_t low = chunk->begin, high = chunk->end;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (lr_listmode_centre_slice(job->model, job->events, middle, job->frame->axis) < slice)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void work_slabs(void *user, int64_t begin, int64_t end, int worker)
{
    const struct slabs *slabs = user;
    const struct chunk *chunk = slabs->chunk;
    const struct lr_native_listmode_job *job = chunk->job;
    const double reach = lr_listmode_reach_slices(job->model, job->events, job->frame->axis);
    const int64_t size = slabs->slices[1] - slabs->slices[0];
    for (int64_t k = begin; k < end; k++) {
        const int slab[2] = {slabs->slices[0] + (int)(size * k / slabs->num),
                             slabs->slices[0] + (int)(size * (k + 1) / slabs->num)};
        int64_t range[2] = {chunk->begin, chunk->end};
        if (chunk->has_tof) {
            range[0] = first_from(chunk, slab[0] - reach);
            range[1] = first_from(chunk, slab[1] + reach);
        }
        chunk->native->kernels->back(chunk->job, range, slab, memory_of(chunk->native, worker));
    }
}

/* Adds the elements of a chunk to job->sums. Threads work on slabs of slices. In each voxel, elements are added in the
   order of the events. */
static void take_back(const struct chunk *chunk)
{
    const struct lr_native_listmode_job *job = chunk->job;
    const int threads = chunk->native->params.threads, axis = job->frame->axis;
    const int64_t range[2] = {chunk->begin, chunk->end};
    struct slabs slabs = {
        .chunk = chunk, .slices = {0, job->frame->slices}, .num = threads > 1 ? SLABS_PER_THREAD * threads : 1};
    if (chunk->has_tof) lr_listmode_range_slices(job->model, job->events, range, axis, slabs.slices);
    lr_parallel_workers(threads, slabs.num, 1, work_slabs, &slabs);
}

static lr_status back(const struct lr_native_listmode *native, const lr_selection *part, const lr_vector *values,
                      lr_vector *image)
{
    const int64_t count = lr_grid_num_voxels(&native->params.model->grid);
    float *out = image->values;
    struct project project = begin(native, part);
    project.what = "back-projecting";
    project.take = take_back;
    project.job.from = values != NULL ? values->values : NULL;
    const struct lr_native_frame *frame = &project.frame;
    double *total = lr_alloc(count, sizeof(*total), "an image", native->params.log);
    lr_status status = total != NULL ? LR_OK : LR_FAILED;
    for (int axis = 0; status == LR_OK && axis < 3; axis++) {
        if (!lr_listmode_has_axis(native->params.events, axis)) continue;
        frame_init(&project.frame, project.job.model, axis);
        double *sums = lr_alloc(frame->slices * frame->plane, sizeof(*sums), "an image in slices", native->params.log);
        project.job.sums = sums;
        status = sums != NULL ? take_axis(&project) : LR_FAILED;
        if (status == LR_OK) transfer_all(native, &(struct transfer){.frame = frame, .sums = sums, .total = total});
        free(sums);
    }
    for (int64_t k = 0; status == LR_OK && k < count; k++) out[k] = (float)total[k];
    free(total);
    return status;
}

static lr_status project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in, lr_vector *out)
{
    return (is_forward ? forward : back)(self, part, in, out);
}

/* --- rows --- */

struct source {
    const struct lr_native_listmode *native;
    struct lr_native_frame frames[3];
};

static void visit(const void *self, int64_t k, int axis, const struct lr_listmode_visitor *visitor)
{
    const struct source *source = self;
    const struct lr_native_listmode *native = source->native;
    const struct lr_native_listmode_job job = {.model = native->params.model,
                                               .events = native->params.events,
                                               .frame = &source->frames[axis],
                                               .tube = &native->tube};
    native->kernels->list(&job, k, visitor, memory_of(native, 0));
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    const struct lr_native_listmode *native = self;
    struct source source = {.native = native};
    for (int axis = 0; axis < 3; axis++) frame_init(&source.frames[axis], native->params.model, axis);
    const struct lr_listmode_row_source rows_of = {.events = native->params.events,
                                                   .visit = visit,
                                                   .self = &source,
                                                   .log = native->params.log,
                                                   .progress = native->params.progress};
    return lr_listmode_rows(&rows_of, wanted, sink);
}

/* --- creation --- */

const struct lr_native_listmode_kernels *lr_native_listmode_kernels_at(int index)
{
#ifdef LR_NATIVE_AVX2
    if (lr_native_has_avx2())
        return index == 0 ? &lr_native_listmode_avx2 : index == 1 ? &lr_native_listmode_baseline : NULL;
#endif
    return index == 0 ? &lr_native_listmode_baseline : NULL;
}

static void destroy(void *self)
{
    struct lr_native_listmode *native = self;
    lr_free_all(native->tube.table, native->memory, native);
}

lr_status lr_listmode_native_create(const struct lr_listmode_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {
        .name = "native", .has_parts = true, .voxel_bytes = 24, .project = project, .rows = rows, .destroy = destroy};
    struct lr_native_listmode *native = lr_alloc(1, sizeof(*native), "the native backend", params->log);
    if (native == NULL) return LR_FAILED;
    native->params = *params;
    native->kernels =
        params->model->kernel == LR_LISTMODE_EXACT ? &lr_native_listmode_exact : lr_native_listmode_kernels_at(0);
    bool has_memory = true;
    const struct lr_listmode_model *model = params->model;
    if (model->kernel == LR_LISTMODE_TUBE) { /* for other kernels, the tube stays zero */
        struct lr_native_tube *tube = &native->tube;
        const double half = 0.5 * model->tube.width_mm;
        tube->last = (model->tube.table != NULL ? model->tube.table_count : GAUSSIAN_ENTRIES) - 1;
        tube->rim = (float)lr_listmode_rim(&model->tube);
        tube->fall = (float)((1.0 + LR_LISTMODE_RIM) / (LR_LISTMODE_RIM * lr_listmode_rim(&model->tube)));
        tube->scale = (float)(tube->last / half);
        for (int axis = 0; axis < 3; axis++) {
            int64_t shares = 1; /* largest number of shares of a slice across this axis */
            for (int k = 0; k < 3; k++) shares *= k != axis ? (int64_t)(2.0 * share_reach(model, k)) + 1 : 1;
            tube->capacity = shares > tube->capacity ? shares : tube->capacity;
        }
        tube->capacity += LR_NATIVE_LISTMODE_LANES;
        tube->table = lr_alloc((int64_t)tube->last + 2, sizeof(*tube->table), "the tube's table", params->log);
        has_memory = tube->table != NULL;
        for (int k = 0; has_memory && k <= tube->last + 1; k++)
            tube->table[k] = (float)lr_listmode_tube_value(&model->tube, half * k / tube->last);
    }
    if (has_memory) {
        native->memory = lr_alloc(params->threads * 5 * native->tube.capacity, sizeof(*native->memory),
                                  "shares of tubes", params->log);
    }
    if (native->memory == NULL) {
        destroy(native);
        return LR_FAILED;
    }
    lr_backend_on_host(backend, &fns, native, params->threads, native->kernels->name);
    return LR_OK;
}
