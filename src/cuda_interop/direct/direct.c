/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `cuda` backend of the family `direct`. Its images are those of direct/compute/; CUDA projects and updates them
 * in place. */
#include "direct/compute/direct.h"
#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/device.h"
#include "cuda_interop/direct/passes.h"
#include "cuda_interop/direct/plans.h"
#include "cuda_interop/direct/tables.h"
#include "cuda_interop/lend.h"
#include "direct/lattice.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STREAMS = 8 };

/* Streams for those passes of a task that need not wait for each other. Passes are assigned to the streams in turn. The
 * streams start after the default stream's earlier work; the default stream's later work starts after the work of the
 * streams. */

/* A struct of zeros is valid: no streams. */
struct streams {
    cudaStream_t streams[MOST_STREAMS]; /* owned, like `forked` and `joined` */
    cudaEvent_t forked, joined[MOST_STREAMS];
    unsigned next;
};

/* --- the device's clock --- */

/* Returns the seconds of all intervals since the last call of this function. Waits until the device has finished these
 * intervals. A failure is logged, and the failed interval counts as 0 s. A failure while an interval is marked is
 * handled in the same way. */
static double take_seconds(struct lr_cuda_watch *watch)
{
    (void)lr_cuda_watch_read(watch, true);
    const double seconds = watch->all_s;
    watch->all_s = 0;
    return seconds;
}

/* --- images of updates (direct/compute/direct.h), on which CUDA works in place --- */

enum { MOST_IMAGES = 4 };

/* Takes some images from OpenGL and describes them. If a pointer is NULL or its image does not exist, the description
   is zero. */
static lr_status open_update_images(const struct lr_direct_compute *compute,
                                    const struct lr_direct_image *const from[MOST_IMAGES],
                                    lr_cuda_image images[MOST_IMAGES])
{
    struct lr_cuda_object objects[MOST_IMAGES];
    int count = 0;
    for (int k = 0; k < MOST_IMAGES; k++)
        if (from[k] != NULL && lr_direct_image_exists(from[k]))
            objects[count++] = (struct lr_cuda_object){from[k]->texture, from[k]->buffer};
    LR_TRY(lr_cuda_take(objects, count, compute->ctx));
    const struct lr_direct_layout *layout = &compute->layout;
    for (int k = 0; k < MOST_IMAGES; k++) {
        lr_cuda_image *image = &images[k];
        *image = (lr_cuda_image){0};
        if (from[k] == NULL || !lr_direct_image_exists(from[k])) continue;
        const struct lr_cuda_object object = {from[k]->texture, from[k]->buffer};
        for (int axis = 0; from[k]->has_margins && axis < 3; axis++) image->margin[axis] = layout->margin[axis];
        image->extent[0] = layout->quads + 2 * image->margin[0];
        image->extent[1] = layout->size[0] + 2 * image->margin[1];
        if (from[k]->buffer != NULL)
            image->texels = lr_cuda_address(&object, compute->params.log);
        else
            image->surface = lr_cuda_surface(&object, compute->params.log);
        LR_TRY(image->texels != NULL || image->surface != 0 ? LR_OK : LR_FAILED);
    }
    return LR_OK;
}

/* --- sources of gathers by bands, sorted along lattices --- */

/* Memory for a sorted source, which stays allocated. A struct of zeros is valid: no memory. */
struct room {
    struct lr_cuda_block block; /* owned */
    struct sorted_lattice {
        int32_t next[2], across[2];
    } lattice;     /* lattice along which the source was last sorted */
    bool is_clear; /* numbers beyond the grid's columns are zero; false = never sorted */
};

/* An image that is projected forward, one view after the other. For each lattice, the image is sorted once for all
 * views along this lattice; the copy is used until the image changes. A struct of zeros is valid: no image. */
struct sorted_image {
    uint64_t number; /* number of the image, as lr_cuda_taking returns it; 0 = no image */
    struct sorted_copy {
        struct room room;
        struct sorted_lattice lattice;
        bool is_there;
    } copies[LR_LATTICE_CANDIDATES];
};

/* Makes the memory of a room at least `bytes` large. If the memory has to grow, the function first waits for all
 * launched work, which may use the old memory. errors: LR_FAILED, here and below. */
static lr_status room_make(struct room *room, int64_t bytes, const lr_log *log)
{
    if (room->block.bytes >= bytes) return LR_OK;
    cudaDeviceSynchronize();
    lr_cuda_block_free(&room->block);
    *room = (struct room){0};
    LR_TRY(lr_cuda_check((int)cudaMalloc(&room->block.memory, (size_t)bytes), "a sorted image", log));
    room->block.bytes = bytes;
    return LR_OK;
}

static struct sorted_lattice lattice_of(const lr_cuda_bands *pass)
{
    struct sorted_lattice lattice;
    memcpy(lattice.next, pass->next, sizeof(lattice.next));
    memcpy(lattice.across, pass->across, sizeof(lattice.across));
    return lattice;
}

static bool is_along(const struct sorted_lattice *lattice, const lr_cuda_bands *pass)
{
    return memcmp(lattice->next, pass->next, sizeof(pass->next)) == 0 &&
           memcmp(lattice->across, pass->across, sizeof(pass->across)) == 0;
}

/* Sorts images->source into a room, on images->stream, and sets images->sorted. All views along the same lattice leave
 * out the same places of a room, and these places stay zero. */
static lr_status sort_into(const lr_cuda_bands *pass, struct room *room, lr_cuda_images *images, const lr_log *log)
{
    LR_TRY(room_make(room, lr_cuda_band_source_bytes(pass), log));
    images->sorted = lr_cuda_band_source_at(pass, room->block.memory);
    images->sorted.is_clear = room->is_clear && is_along(&room->lattice, pass);
    room->is_clear = false;
    LR_TRY(lr_cuda_check(lr_cuda_launch_sort(pass, images), "sorting an image", log));
    room->lattice = lattice_of(pass);
    room->is_clear = true;
    return LR_OK;
}

/* Finds memory for a copy along the pass's lattice: the existing copy along this lattice, or an unused one. There
 * are as many copies as lattices. */
static lr_status make_sorted_room(struct sorted_image *sorted, const lr_cuda_bands *pass, struct sorted_copy **copy,
                                  const lr_log *log)
{
    struct sorted_copy *const last = sorted->copies + LR_LATTICE_CANDIDATES - 1;
    struct sorted_copy *found = sorted->copies;
    while (found < last && found->room.block.memory != NULL && !is_along(&found->lattice, pass)) found++;
    if (!is_along(&found->lattice, pass)) {
        found->is_there = false;
        found->lattice = lattice_of(pass);
    }
    *copy = found;
    return room_make(&found->room, lr_cuda_band_source_bytes(pass), log);
}

/* --- the backend --- */

/* Number of streams of a back projection. Each stream has its own sorted source. With more streams, a source would
 * leave the cache before a gather reads it. */
enum { SORTING_STREAMS = 4 };

struct cuda_direct {
    struct lr_direct_compute *compute;
    const lr_log *log;
    struct lr_cuda_table_set tables;
    int device; /* -1 until the device is known */
    struct streams streams;
    struct room rooms[SORTING_STREAMS + 1]; /* sorted source of each stream that sorts, and of the default stream */
    struct sorted_image sorted;
    struct lr_cuda_watch projections, updates;
    char name[256];
};

/* Makes the device current on this thread, because every thread starts with the first device. */
static struct cuda_direct *enter(void *self)
{
    struct cuda_direct *cuda = self;
    if (cuda->device >= 0 && cudaSetDevice(cuda->device) != cudaSuccess)
        (void)cudaGetLastError(); /* the next call of CUDA then fails, and its result is checked */
    return cuda;
}

/* --- projections --- */

/* True if the view has bands. The view has columns instead if a slab is too wide or the device too old. */
static bool has_bands(const struct lr_cuda_tables *tables)
{
    return tables->bands[0][0].num_tiles > 0;
}

/* Forgets the sorted copies of an image. Call this function whenever an image changes. */
static void forget_sorted(struct cuda_direct *cuda, const struct lr_direct_image *image)
{
    const struct lr_cuda_object object = {.buffer = image->buffer};
    if (image->buffer != NULL && cuda->sorted.number == lr_cuda_taking(&object)) cuda->sorted.number = 0;
}

enum { DEFAULT_STREAM = SORTING_STREAMS };

/* Sorts the source of a view that has bands, and sets images->sorted. image: an image that is projected forward view by
 * view, which is sorted once per lattice. image = NULL: a back projection, whose views each have their own source.
 * stream: number of the memory for a view's own source; not used if there is an image. images->stream must wait for the
 * stream on which the image was sorted. */
static lr_status sort_source(struct cuda_direct *cuda, const struct lr_cuda_tables *tables,
                             const struct lr_direct_image *image, int stream, lr_cuda_images *images)
{
    struct sorted_image *sorted = &cuda->sorted;
    /* Sources are sorted in the same way for all shapes of blocks, and for both directions. */
    const lr_cuda_bands *pass = &tables->bands[0][LR_CUDA_BANDS_ALONE];
    if (!has_bands(tables)) return LR_OK;
    if (image == NULL) return sort_into(pass, &cuda->rooms[stream], images, cuda->log);

    const uint64_t number = lr_cuda_taking(&(struct lr_cuda_object){.buffer = image->buffer});
    struct sorted_copy *copy;
    LR_TRY(make_sorted_room(sorted, pass, &copy, cuda->log));
    if (number == 0 || sorted->number != number) {
        for (int k = 0; k < LR_LATTICE_CANDIDATES; k++) sorted->copies[k].is_there = false;
        sorted->number = number;
    }
    if (copy->is_there) {
        images->sorted = lr_cuda_band_source_at(pass, copy->room.block.memory);
        return LR_OK;
    }
    LR_TRY(sort_into(pass, &copy->room, images, cuda->log));
    copy->is_there = true;
    return LR_OK;
}

static lr_status launch(struct cuda_direct *cuda, const struct lr_cuda_tables *tables, bool forward,
                        lr_cuda_images *images)
{
    const struct lr_direct_backend_params *params = &cuda->compute->params;
    const bool is_shared = params->variant == LR_DIRECT_SHARED_MEMORY;
    const int64_t bytes = is_shared ? lr_cuda_shared_bytes(&tables->cloud) : 0;
    const int64_t most = is_shared ? lr_cuda_shared_room() : 0;
    /* The variant for the texture cache reads the same tables as the variant for shared memory. */
    const lr_direct_variant variant =
        bytes > most && params->may_change_variant ? LR_DIRECT_TEXTURE_CACHE : params->variant;
    int error = 0;
    images->map = tables->map;
    images->tables = tables->textures;
    switch (variant) {
    case LR_DIRECT_FASTEST: /* the backend has already chosen another variant */
    case LR_DIRECT_THREADS:
    case LR_DIRECT_INSTRUCTIONS:
        error = lr_cuda_launch_gather(variant == LR_DIRECT_THREADS ? LR_CUDA_VOXELS : LR_CUDA_TEXELS, forward,
                                      &tables->gather, images);
        break;
    case LR_DIRECT_SHARED_MEMORY:
        if (most < 0)
            return lr_error(cuda->log, LR_FAILED, "CUDA does not tell how much shared memory %s has", cuda->name);
        if (bytes > most)
            return lr_error(cuda->log, LR_USAGE,
                            "a block of the shared-memory scheme needs %lld KiB and %s has "
                            "%lld: take another variant for so long a kernel",
                            (long long)(bytes >> 10), cuda->name, (long long)(most >> 10));
        error = lr_cuda_launch_cloud(true, forward, &tables->cloud, images);
        break;
    case LR_DIRECT_TEXTURE_CACHE: error = lr_cuda_launch_cloud(false, forward, &tables->cloud, images); break;
    case LR_DIRECT_BANDS:
        if (has_bands(tables)) {
            const int shape = images->stream != NULL ? LR_CUDA_BANDS_BESIDE : LR_CUDA_BANDS_ALONE;
            error = lr_cuda_launch_bands(forward, &tables->bands[forward][shape], images);
        } else {
            error = lr_cuda_launch_columns(forward, &tables->columns[forward], images);
        }
        break;
    case LR_DIRECT_COLUMNS: error = lr_cuda_launch_columns(forward, &tables->columns[forward], images); break;
    }
    return lr_cuda_check(error, forward ? "a forward projection" : "a back projection", cuda->log);
}

static lr_status open_images(const struct cuda_direct *cuda, const struct lr_direct_image *source,
                             const struct lr_direct_image *target, lr_cuda_images *images)
{
    const lr_log *log = cuda->log;
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
    forget_sorted(cuda, target);
    LR_TRY(sort_source(cuda, tables, forward ? source : NULL, DEFAULT_STREAM, &images));
    return launch(cuda, tables, forward, &images);
}

/* The tables of a task's k-th view. If these tables do not exist yet, the tables of the task's next views are made
 * together with them. */
static const struct lr_cuda_tables *open_tables(struct cuda_direct *cuda, const lr_direct_task *task, int k)
{
    const int *views = task->views + k, left = task->num_views - k;
    const bool is_one = task->num_views == 1; /* an algorithm may request the views one at a time */
    return is_one || lr_cuda_make_tables(&cuda->tables, views, left) == LR_OK
               ? lr_cuda_open_tables(&cuda->tables, views[0])
               : NULL;
}

/* is_beside: views run side by side on several streams, because their order does not matter. */
static lr_status launch_task(struct cuda_direct *cuda, const lr_direct_task *task, const struct lr_direct_image *source,
                             lr_cuda_images *images, bool is_beside)
{
    struct streams *streams = &cuda->streams;
    const bool forward = task->work == LR_DIRECT_WORK_FORWARD;
    const bool sorts = cuda->compute->params.variant == LR_DIRECT_BANDS && task->work == LR_DIRECT_WORK_BACK;
    const int num_streams = sorts ? (int)SORTING_STREAMS : (int)MOST_STREAMS;
    const struct lr_direct_image *const kept = forward ? source : NULL;
    const struct lr_cuda_tables *tables;
    /* An image is sorted for all views of a task before the views run side by side. */
    for (int k = 0; is_beside && forward && k < task->num_views; k++) {
        tables = open_tables(cuda, task, k);
        LR_TRY(tables != NULL ? sort_source(cuda, tables, kept, DEFAULT_STREAM, images) : LR_FAILED);
    }

    /* Work that is queued on the streams from here on runs after all work that is on the default stream so far. */
    cudaError_t error = is_beside ? cudaEventRecord(streams->forked, NULL) : cudaSuccess;
    for (int k = 0; is_beside && error == cudaSuccess && k < MOST_STREAMS; k++)
        error = cudaStreamWaitEvent(streams->streams[k], streams->forked, 0);
    lr_status status = lr_cuda_check((int)error, "streams", cuda->log);

    for (int n = 0; status == LR_OK && n < task->num_views; n++) {
        /* Each stream of a back projection takes consecutive views. Most of these views lie along the same lattice, so
         * the stream's memory was last sorted along this lattice. If memory has no room for the tables of all views,
         * the views keep their order in the task. */
        int k = n;
        if (is_beside && !cuda->tables.is_tight && !forward) {
            const int stream = n % num_streams;
            const int whole = task->num_views / num_streams, more = task->num_views % num_streams;
            k = stream * whole + (stream < more ? stream : more) + n / num_streams;
        }
        tables = open_tables(cuda, task, k);
        if (tables == NULL) {
            status = LR_FAILED;
            break;
        }
        const unsigned next = is_beside ? streams->next++ : 0;
        const int stream = is_beside ? (int)(next % (unsigned)num_streams) : DEFAULT_STREAM;
        images->stream = is_beside ? streams->streams[stream] : NULL;
        status = sort_source(cuda, tables, kept, stream, images);
        if (status == LR_OK) status = launch(cuda, tables, forward, images);
    }

    /* Work that is queued on the default stream from here on runs after all work that is on the streams so far. */
    error = cudaSuccess;
    for (int k = 0; is_beside && error == cudaSuccess && k < MOST_STREAMS; k++) {
        error = cudaEventRecord(streams->joined[k], streams->streams[k]);
        error = error == cudaSuccess ? cudaStreamWaitEvent(NULL, streams->joined[k], 0) : error;
    }
    const lr_status joined = lr_cuda_check((int)error, "streams", cuda->log);
    return status != LR_OK ? status : joined;
}

static lr_status time_task(void *self, const lr_direct_task *task, const struct lr_direct_image *source,
                           const struct lr_direct_image *target, double *device_seconds)
{
    struct cuda_direct *cuda = enter(self);
    lr_cuda_images images;
    LR_TRY(open_images(cuda, source, target, &images));

    /* Memory for sorted sources is allocated before the clock runs. */
    const bool is_beside = cuda->compute->is_unordered && task->num_views > 1;
    const int first = is_beside ? 0 : DEFAULT_STREAM, end = is_beside ? SORTING_STREAMS : DEFAULT_STREAM + 1;
    for (int k = 0; k < task->num_views; k++) {
        const struct lr_cuda_tables *tables = open_tables(cuda, task, k);
        if (tables == NULL) return LR_FAILED;
        if (!has_bands(tables)) continue;
        const lr_cuda_bands *pass = &tables->bands[0][LR_CUDA_BANDS_ALONE];
        struct sorted_copy *copy;
        if (task->work == LR_DIRECT_WORK_FORWARD) LR_TRY(make_sorted_room(&cuda->sorted, pass, &copy, cuda->log));
        for (int stream = first; task->work != LR_DIRECT_WORK_FORWARD && stream < end; stream++)
            LR_TRY(room_make(&cuda->rooms[stream], lr_cuda_band_source_bytes(pass), cuda->log));
    }
    if (cuda->compute->is_unordered) /* when projections are timed, each time must include the sorting */
        forget_sorted(cuda, source);
    (void)lr_cuda_watch_mark(&cuda->projections, 0, NULL);
    const lr_status status = launch_task(cuda, task, source, &images, is_beside);
    (void)lr_cuda_watch_mark(&cuda->projections, 1, NULL);
    *device_seconds = take_seconds(&cuda->projections);
    forget_sorted(cuda, target);
    return status;
}

/* Makes the tables of a task again, and measures the time from the end of the device's earlier work to its last
 * command. The time includes the host's preparation as far as the device waits for it. */
static lr_status time_tables(void *self, const lr_direct_task *task, double *device_seconds)
{
    struct cuda_direct *cuda = enter(self);
    lr_status status = LR_OK;
    for (int k = 0; k < task->num_views; k++) lr_cuda_forget_tables(&cuda->tables, task->views[k]);
    (void)lr_cuda_watch_mark(&cuda->projections, 0, NULL);
    for (int k = 0; status == LR_OK && k < task->num_views; k++)
        status = lr_cuda_make_tables(&cuda->tables, task->views + k, task->num_views - k);
    (void)lr_cuda_watch_mark(&cuda->projections, 1, NULL);
    *device_seconds = take_seconds(&cuda->projections);
    return status;
}

/* --- updates --- */

static lr_status find_discrepancy(void *self, int what, const struct lr_direct_view_data *data,
                                  const struct lr_direct_image *histo)
{
    struct cuda_direct *cuda = enter(self);
    const struct lr_direct_image *const from[MOST_IMAGES] = {histo, &data->counts, &data->additive, &data->factors};
    lr_cuda_image images[MOST_IMAGES] = {0};
    lr_status status = open_update_images(cuda->compute, from, images);
    const lr_cuda_discrepancy pass = {.layout = lr_cuda_layout_of(cuda->compute),
                                      .what = what,
                                      .histo = images[0],
                                      .counts = images[1],
                                      .additive = images[2],
                                      .factors = images[3]};
    if (status == LR_OK) status = lr_cuda_check(lr_cuda_launch_discrepancy(&pass), "a discrepancy", cuda->log);
    forget_sorted(cuda, histo);
    return status;
}

static lr_status change_image(void *self, const struct lr_direct_change *change, const struct lr_direct_image *image)
{
    struct cuda_direct *cuda = enter(self);
    const struct lr_direct_image *const from[MOST_IMAGES] = {image, change->by, change->sensitivity};
    lr_cuda_image images[MOST_IMAGES] = {0};
    lr_status status = open_update_images(cuda->compute, from, images);
    const lr_cuda_change pass = {.layout = lr_cuda_layout_of(cuda->compute),
                                 .what = change->what,
                                 .lambda = change->lambda,
                                 .image = images[0],
                                 .by = images[1],
                                 .sensitivity = images[2]};
    if (status == LR_OK) status = lr_cuda_check(lr_cuda_launch_change(&pass), "an update", cuda->log);
    forget_sorted(cuda, image);
    return status;
}

static void mark_lap(void *self, bool ends)
{
    struct cuda_direct *cuda = enter(self);
    (void)lr_cuda_watch_mark(&cuda->updates, ends, NULL);
}

static double read_laps(void *self)
{
    return take_seconds(&enter(self)->updates);
}

/* --- the rest --- */

static lr_status find_attributes(void *self, lr_direct_attributes *attributes)
{
    return lr_cuda_find_attributes(attributes, enter(self)->log);
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
    for (int k = 0; k <= SORTING_STREAMS; k++) lr_cuda_block_free(&cuda->rooms[k].block);
    for (int k = 0; k < LR_LATTICE_CANDIDATES; k++) lr_cuda_block_free(&cuda->sorted.copies[k].room.block);
    lr_cuda_watch_finish(&cuda->updates);
    lr_cuda_watch_finish(&cuda->projections);
    struct streams *streams = &cuda->streams;
    for (int k = 0; k < MOST_STREAMS; k++) {
        if (streams->joined[k] != NULL) cudaEventDestroy(streams->joined[k]);
        if (streams->streams[k] != NULL) cudaStreamDestroy(streams->streams[k]);
    }
    if (streams->forked != NULL) cudaEventDestroy(streams->forked);
    free(cuda);
}

static void *create(struct lr_direct_compute *compute)
{
    struct cuda_direct *cuda = lr_alloc(1, sizeof(*cuda), "the cuda backend", compute->params.log);
    if (cuda == NULL) return NULL;
    cuda->compute = compute;
    cuda->log = compute->params.log;
    cuda->device = -1;
    cuda->projections = cuda->updates =
        (struct lr_cuda_watch){.what = "a clock", .log = cuda->log, .most_laps = LR_CUDA_MOST_LAPS};
    lr_status status = lr_cuda_open(compute->ctx, cuda->name);
    if (status == LR_OK) status = lr_cuda_check((int)cudaGetDevice(&cuda->device), "the device", cuda->log);
    if (status == LR_OK) status = lr_cuda_table_set_init(&cuda->tables, compute);
    if (status == LR_OK) {
        struct streams *streams = &cuda->streams;
        cudaError_t error = cudaEventCreateWithFlags(&streams->forked, cudaEventDisableTiming);
        for (int k = 0; error == cudaSuccess && k < MOST_STREAMS; k++) {
            error = cudaStreamCreateWithFlags(&streams->streams[k], cudaStreamNonBlocking);
            if (error == cudaSuccess) error = cudaEventCreateWithFlags(&streams->joined[k], cudaEventDisableTiming);
        }
        status = lr_cuda_check((int)error, "streams", cuda->log);
    }
    if (status != LR_OK) {
        destroy(cuda);
        return NULL;
    }
    return cuda;
}

lr_status lr_direct_cuda_create(const struct lr_direct_backend_params *params, struct lr_backend *backend)
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
        .mark_lap = mark_lap,
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
                        "the variants bands and columns of cuda work on buffers, not on textures: keep images in "
                        "buffers, take threads, instructions, shared-memory or texture-cache, or name no variant");
    }
    return lr_direct_compute_create_with(&chosen, &functions, backend);
}
