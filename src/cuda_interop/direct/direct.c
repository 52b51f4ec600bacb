/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `cuda` backend of the family `direct`: images are those of render/, on which CUDA projects and
 * updates in place. */
#include "render/direct/direct.h"
#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/direct/attributes.h"
#include "cuda_interop/direct/columns.h"
#include "cuda_interop/direct/launch.h"
#include "cuda_interop/direct/sorted_image.h"
#include "cuda_interop/direct/tables.h"
#include "cuda_interop/direct/updates.h"
#include "cuda_interop/lend.h"
#include "cuda_interop/streams.h"
#include "cuda_interop/watch.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

/* On the way back, each has its own sorted source: those of so many are still near when they are read. */
enum { SORTING_STREAMS = 4 };

struct cuda_direct {
    struct lr_direct_compute *compute;
    struct lr_cuda_table_set tables;
    int device; /* -1 until there is one */
    struct lr_cuda_streams streams;
    /* of each stream that sorts, and of the default one: a sorted source, until the stream's passes are
     * done */
    struct lr_cuda_room rooms[SORTING_STREAMS + 1];
    struct lr_cuda_sorted_image sorted;
    struct lr_cuda_watch projections, updates;
    char name[256];
};

static const lr_log *log_of(const struct cuda_direct *cuda)
{
    return cuda->compute->params.log;
}

/* Whatever thread this is: each has a device of its own, the first to begin with. */
static struct cuda_direct *enter(void *self)
{
    struct cuda_direct *cuda = self;
    if (cuda->device >= 0 && cudaSetDevice(cuda->device) != cudaSuccess)
        (void)cudaGetLastError(); /* what comes next says so */
    return cuda;
}

/* --- projections --- */

static lr_status check_shared(const struct cuda_direct *cuda, const lr_cuda_cloud *pass)
{
    const int64_t bytes = lr_cuda_shared_bytes(pass), most = lr_cuda_shared_room();
    if (most < 0)
        return lr_error(log_of(cuda), LR_FAILED, "CUDA does not tell how much shared memory %s has", cuda->name);
    return bytes <= most ? LR_OK
                         : lr_error(log_of(cuda), LR_USAGE,
                                    "a block of the shared-memory scheme needs %lld KiB and %s has "
                                    "%lld: take another variant for so long a kernel",
                                    (long long)(bytes >> 10), cuda->name, (long long)(most >> 10));
}

/* Or else columns do it: a slab may be too wide, the device too old. */
static bool has_bands(const struct lr_cuda_tables *tables)
{
    return tables->bands[0][0].num_tiles > 0;
}

static const lr_cuda_bands *bands_of(const struct lr_cuda_tables *tables, bool forward, const lr_cuda_images *images)
{
    const bool is_beside = images->stream != NULL;
    return &tables->bands[forward][is_beside ? LR_CUDA_BANDS_BESIDE : LR_CUDA_BANDS_ALONE];
}

/* Sources are sorted in the same way for all shapes, both ways. */
static const lr_cuda_bands *sorting_of(const struct lr_cuda_tables *tables)
{
    return &tables->bands[0][LR_CUDA_BANDS_ALONE];
}

/* Of images that are arrays, which are out. */
static uint64_t number_of(const struct lr_direct_image *image)
{
    return lr_cuda_taking(&(struct lr_cuda_object){.buffer = image->buffer});
}

/* Whenever an image changes. */
static void forget_sorted(struct cuda_direct *cuda, const struct lr_direct_image *image)
{
    if (image->buffer != NULL) lr_cuda_forget_sorted(&cuda->sorted, number_of(image));
}

/* What is projected forward is the image, view by view. */
static lr_status sort_image(struct cuda_direct *cuda, const struct lr_cuda_tables *tables,
                            const struct lr_direct_image *image, lr_cuda_images *images)
{
    return has_bands(tables)
               ? lr_cuda_sort_image(&cuda->sorted, sorting_of(tables), number_of(image), images, log_of(cuda))
               : LR_OK;
}

enum { DEFAULT_STREAM = SORTING_STREAMS };

/* On the way back, every view has a source of its own. stream: its number. */
static lr_status sort_source(struct cuda_direct *cuda, const struct lr_cuda_tables *tables, int stream,
                             lr_cuda_images *images)
{
    return has_bands(tables) ? lr_cuda_sort_source(sorting_of(tables), &cuda->rooms[stream], images, log_of(cuda))
                             : LR_OK;
}

/* The texture cache gathers over the same tables as shared memory. */
static lr_direct_variant variant_of(const struct cuda_direct *cuda, const struct lr_cuda_tables *tables)
{
    const struct lr_direct_backend_params *params = &cuda->compute->params;
    const bool fits =
        params->variant != LR_DIRECT_SHARED_MEMORY || lr_cuda_shared_bytes(&tables->cloud) <= lr_cuda_shared_room();
    return fits || !params->may_change_variant ? params->variant : LR_DIRECT_TEXTURE_CACHE;
}

static lr_status launch(struct cuda_direct *cuda, const struct lr_cuda_tables *tables, bool forward,
                        const lr_cuda_images *images)
{
    const lr_direct_variant variant = variant_of(cuda, tables);
    int error = 0;
    switch (variant) {
    case LR_DIRECT_FASTEST: /* has been chosen */
    case LR_DIRECT_THREADS:
    case LR_DIRECT_INSTRUCTIONS:
        error = lr_cuda_launch_gather(variant == LR_DIRECT_THREADS ? LR_CUDA_VOXELS : LR_CUDA_TEXELS, forward,
                                      &tables->gather, images);
        break;
    case LR_DIRECT_SHARED_MEMORY:
        LR_TRY(check_shared(cuda, &tables->cloud));
        error = lr_cuda_launch_cloud(true, forward, &tables->cloud, images);
        break;
    case LR_DIRECT_TEXTURE_CACHE: error = lr_cuda_launch_cloud(false, forward, &tables->cloud, images); break;
    case LR_DIRECT_BANDS:
        error = has_bands(tables) ? lr_cuda_launch_bands(forward, bands_of(tables, forward, images), images)
                                  : lr_cuda_launch_columns(forward, &tables->columns[forward], images);
        break;
    case LR_DIRECT_COLUMNS: error = lr_cuda_launch_columns(forward, &tables->columns[forward], images); break;
    }
    return lr_cuda_check(error, forward ? "a forward projection" : "a back projection", log_of(cuda));
}

static lr_status open_images(const struct cuda_direct *cuda, const struct lr_direct_image *source,
                             const struct lr_direct_image *target, lr_cuda_images *images)
{
    const lr_log *log = log_of(cuda);
    const struct lr_cuda_object objects[2] = {{source->texture, source->buffer}, {target->texture, target->buffer}};
    *images = (lr_cuda_images){0};
    LR_TRY(lr_cuda_take(objects, 2, cuda->compute->ctx));
    if (source->texture != NULL) {
        images->source_texture = lr_cuda_texture(&objects[0], log);
        images->target_surface = lr_cuda_surface(&objects[1], log);
        return images->source_texture && images->target_surface ? LR_OK : LR_FAILED;
    }
    images->source = lr_cuda_address(&objects[0], log);
    images->target = lr_cuda_address(&objects[1], log);
    return images->source != NULL && images->target != NULL ? LR_OK : LR_FAILED;
}

static lr_status run(void *self, bool forward, int view, const struct lr_direct_image *source,
                     const struct lr_direct_image *target)
{
    struct cuda_direct *cuda = enter(self);
    const struct lr_cuda_tables *tables = lr_cuda_open_tables(&cuda->tables, view);
    lr_cuda_images images;
    if (tables == NULL) return LR_FAILED;
    LR_TRY(open_images(cuda, source, target, &images));
    images.map = tables->map;
    forget_sorted(cuda, target);
    LR_TRY(forward ? sort_image(cuda, tables, source, &images) : sort_source(cuda, tables, DEFAULT_STREAM, &images));
    return launch(cuda, tables, forward, &images);
}

/* Views that nothing is told of the order of go on at the same time. */
static bool overlaps(const struct cuda_direct *cuda, const lr_direct_task *task)
{
    return cuda->compute->is_unordered && task->num_views > 1;
}

/* That views of a task take turns on. */
static int count_streams(const struct cuda_direct *cuda, const lr_direct_task *task)
{
    const bool sorts = cuda->compute->params.variant == LR_DIRECT_BANDS && task->work == LR_DIRECT_WORK_BACK;
    return sorts ? (int)SORTING_STREAMS : (int)LR_CUDA_STREAMS;
}

/* The tables of a task's k-th view; where they have to be made, those of the task's next ones are made
 * with them. */
static const struct lr_cuda_tables *open_tables(struct cuda_direct *cuda, const lr_direct_task *task, int k)
{
    const int *views = task->views + k, left = task->num_views - k;
    const bool is_one = task->num_views == 1; /* and may be an algorithm's, which wants others next */
    return is_one || lr_cuda_make_tables(&cuda->tables, views, left) == LR_OK
               ? lr_cuda_open_tables(&cuda->tables, views[0])
               : NULL;
}

static lr_status launch_view(struct cuda_direct *cuda, const lr_direct_task *task, int k,
                             const struct lr_direct_image *source, lr_cuda_images *images)
{
    const bool forward = task->work == LR_DIRECT_WORK_FORWARD;
    const struct lr_cuda_tables *tables = open_tables(cuda, task, k);
    if (tables == NULL) return LR_FAILED;
    const bool is_beside = overlaps(cuda, task);
    const int stream = is_beside ? lr_cuda_streams_next(&cuda->streams, count_streams(cuda, task)) : DEFAULT_STREAM;
    images->map = tables->map;
    images->stream = is_beside ? cuda->streams.streams[stream] : NULL;
    LR_TRY(forward ? sort_image(cuda, tables, source, images) : sort_source(cuda, tables, stream, images));
    return launch(cuda, tables, forward, images);
}

/* Before views go on beside each other. */
static lr_status sort_task(struct cuda_direct *cuda, const lr_direct_task *task, const struct lr_direct_image *source,
                           lr_cuda_images *images)
{
    for (int k = 0; task->work == LR_DIRECT_WORK_FORWARD && k < task->num_views; k++) {
        const struct lr_cuda_tables *tables = open_tables(cuda, task, k);
        LR_TRY(tables != NULL ? sort_image(cuda, tables, source, images) : LR_FAILED);
    }
    return LR_OK;
}

/* The k-th view to be launched. Streams take turns: on the way back each has views that follow each other,
 * which lie along the same lattice for the most part, and so has its room. Where tables of some views
 * have to go for those of others, views come as they follow each other. */
static int place_in_turn(const struct cuda_direct *cuda, const lr_direct_task *task, int k)
{
    const bool is_free = overlaps(cuda, task) && !cuda->tables.is_tight;
    if (!is_free || task->work == LR_DIRECT_WORK_FORWARD) return k;
    const int streams = count_streams(cuda, task), stream = k % streams;
    const int whole = task->num_views / streams, more = task->num_views % streams;
    return stream * whole + (stream < more ? stream : more) + k / streams;
}

static lr_status launch_task(struct cuda_direct *cuda, const lr_direct_task *task, const struct lr_direct_image *source,
                             lr_cuda_images *images)
{
    const bool fork = overlaps(cuda, task);
    LR_TRY(fork ? sort_task(cuda, task, source, images) : LR_OK);
    lr_status status = fork ? lr_cuda_streams_fork(&cuda->streams, log_of(cuda)) : LR_OK;
    for (int k = 0; status == LR_OK && k < task->num_views; k++)
        status = launch_view(cuda, task, place_in_turn(cuda, task, k), source, images);
    const lr_status joined = fork ? lr_cuda_streams_join(&cuda->streams, log_of(cuda)) : LR_OK;
    return status != LR_OK ? status : joined;
}

static lr_status make_image_room(struct cuda_direct *cuda, const struct lr_cuda_tables *tables)
{
    return has_bands(tables) ? lr_cuda_sorted_image_make_room(&cuda->sorted, sorting_of(tables), log_of(cuda)) : LR_OK;
}

static lr_status make_stream_rooms(struct cuda_direct *cuda, const lr_direct_task *task,
                                   const struct lr_cuda_tables *tables)
{
    const int first = overlaps(cuda, task) ? 0 : DEFAULT_STREAM;
    const int end = overlaps(cuda, task) ? SORTING_STREAMS : DEFAULT_STREAM + 1;
    for (int stream = first; has_bands(tables) && stream < end; stream++)
        LR_TRY(lr_cuda_room_make(&cuda->rooms[stream], lr_cuda_band_source_bytes(sorting_of(tables)), log_of(cuda)));
    return LR_OK;
}

/* So that no room is made while the clock runs. */
static lr_status make_rooms(struct cuda_direct *cuda, const lr_direct_task *task)
{
    for (int k = 0; k < task->num_views; k++) {
        const struct lr_cuda_tables *tables = open_tables(cuda, task, k);
        LR_TRY(tables != NULL ? LR_OK : LR_FAILED);
        LR_TRY(task->work == LR_DIRECT_WORK_FORWARD ? make_image_room(cuda, tables)
                                                    : make_stream_rooms(cuda, task, tables));
    }
    return LR_OK;
}

static lr_status time_task(void *self, const lr_direct_task *task, const struct lr_direct_image *source,
                           const struct lr_direct_image *target, double *device_seconds)
{
    struct cuda_direct *cuda = enter(self);
    lr_cuda_images images;
    LR_TRY(open_images(cuda, source, target, &images));
    LR_TRY(make_rooms(cuda, task));
    if (cuda->compute->is_unordered) /* a measurement, which counts it each time */
        forget_sorted(cuda, source);
    lr_cuda_watch_begin(&cuda->projections, log_of(cuda));
    const lr_status status = launch_task(cuda, task, source, &images);
    lr_cuda_watch_end(&cuda->projections, log_of(cuda));
    *device_seconds = lr_cuda_watch_read(&cuda->projections, log_of(cuda));
    forget_sorted(cuda, target);
    return status;
}

/* From the first command that the device begins with: it waits for what the host prepares, unless it was
 * busy meanwhile. */
static lr_status time_tables(void *self, const lr_direct_task *task, double *device_seconds)
{
    struct cuda_direct *cuda = enter(self);
    lr_status status = LR_OK;
    for (int k = 0; k < task->num_views; k++) lr_cuda_forget_tables(&cuda->tables, task->views[k]);
    lr_cuda_watch_begin(&cuda->projections, log_of(cuda));
    for (int k = 0; status == LR_OK && k < task->num_views; k++)
        status = lr_cuda_make_tables(&cuda->tables, task->views + k, task->num_views - k);
    lr_cuda_watch_end(&cuda->projections, log_of(cuda));
    *device_seconds = lr_cuda_watch_read(&cuda->projections, log_of(cuda));
    return status;
}

/* --- updates --- */

static lr_status find_discrepancy(void *self, int what, const struct lr_direct_view_data *data,
                                  const struct lr_direct_image *histo)
{
    struct cuda_direct *cuda = enter(self);
    const lr_status status = lr_cuda_find_discrepancy(cuda->compute, what, data, histo);
    forget_sorted(cuda, histo);
    return status;
}

static lr_status change_image(void *self, const struct lr_direct_change *change, const struct lr_direct_image *image)
{
    struct cuda_direct *cuda = enter(self);
    const lr_status status = lr_cuda_change_image(cuda->compute, change, image);
    forget_sorted(cuda, image);
    return status;
}

static void begin_lap(void *self)
{
    struct cuda_direct *cuda = enter(self);
    lr_cuda_watch_begin(&cuda->updates, log_of(cuda));
}

static void end_lap(void *self)
{
    struct cuda_direct *cuda = enter(self);
    lr_cuda_watch_end(&cuda->updates, log_of(cuda));
}

static double read_laps(void *self)
{
    struct cuda_direct *cuda = enter(self);
    return lr_cuda_watch_read(&cuda->updates, log_of(cuda));
}

/* --- the rest --- */

static lr_status find_attributes(void *self, lr_direct_attributes *attributes)
{
    return lr_cuda_find_attributes(attributes, log_of(enter(self)));
}

static lr_status give_back(void *self, const struct lr_direct_image *image)
{
    struct cuda_direct *cuda = enter(self);
    const struct lr_cuda_object object = {image->texture, image->buffer};
    return lr_cuda_give(&object, 1, cuda->compute->ctx);
}

static void destroy(void *self)
{
    struct cuda_direct *cuda = enter(self);
    lr_cuda_table_set_finish(&cuda->tables);
    for (int k = 0; k <= SORTING_STREAMS; k++) lr_cuda_room_finish(&cuda->rooms[k]);
    lr_cuda_sorted_image_finish(&cuda->sorted);
    lr_cuda_watch_finish(&cuda->updates);
    lr_cuda_watch_finish(&cuda->projections);
    lr_cuda_streams_finish(&cuda->streams);
    free(cuda);
}

static lr_status init(struct cuda_direct *cuda)
{
    LR_TRY(lr_cuda_open(cuda->compute->ctx, cuda->name));
    LR_TRY(lr_cuda_check((int)cudaGetDevice(&cuda->device), "the device", log_of(cuda)));
    LR_TRY(lr_cuda_table_set_init(&cuda->tables, cuda->compute));
    return lr_cuda_streams_init(&cuda->streams, log_of(cuda));
}

static void *create(struct lr_direct_compute *compute)
{
    struct cuda_direct *cuda = lr_alloc(1, sizeof(*cuda), "the cuda backend", compute->params.log);
    if (cuda == NULL) return NULL;
    cuda->compute = compute;
    cuda->device = -1;
    if (init(cuda) != LR_OK) {
        destroy(cuda);
        return NULL;
    }
    return cuda;
}

lr_status lr_direct_cuda_create(const struct lr_direct_backend_params *params, struct lr_direct_backend *backend)
{
    static const struct lr_direct_functions functions = {
        .name = "cuda",
        .margins = lr_cuda_column_margins,
        .create = create,
        .run = run,
        .time = time_task,
        .tables = time_tables,
        .discrepancy = find_discrepancy,
        .change = change_image,
        .give_back = give_back,
        .begin_lap = begin_lap,
        .end_lap = end_lap,
        .attributes = find_attributes,
        .read_laps = read_laps,
        .destroy = destroy,
    };
    struct lr_direct_backend_params chosen = *params;
    const bool on_buffers = params->storage == LR_DIRECT_BUFFERS;
    if (params->variant == LR_DIRECT_FASTEST) {
        chosen.variant = on_buffers ? LR_DIRECT_BANDS : LR_DIRECT_SHARED_MEMORY;
        chosen.may_change_variant = true;
    }
    if (chosen.variant <= LR_DIRECT_COLUMNS && !on_buffers) {
        return lr_error(params->log, LR_USAGE,
                        "the variants bands and columns of cuda work on buffers, not on "
                        "textures: keep images in buffers, take threads, instructions, "
                        "shared-memory or texture-cache, or name no variant");
    }
    return lr_direct_compute_create_with(&chosen, &functions, backend);
}
