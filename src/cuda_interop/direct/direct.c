/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `cuda` backend of the family `direct`: images are those of render/, on which CUDA projects and
 * updates in place. */
#include "render/direct/direct.h"
#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/direct/passes.h"
#include "cuda_interop/direct/plans.h"
#include "cuda_interop/direct/tables.h"
#include "cuda_interop/lend.h"
#include "direct/lattice.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

/* --- streams for passes that need not wait for each other: between fork and join they are dealt out in turn, and to
 * the default stream all that lies between is one piece of work --- */

enum { MOST_STREAMS = 8 };

/* Zero is valid: no streams. */
struct streams {
    cudaStream_t streams[MOST_STREAMS]; /* owned, as the events are */
    cudaEvent_t forked, joined[MOST_STREAMS];
    unsigned next;
};

static cudaError_t create_event(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDisableTiming);
}

/* errors: LR_FAILED, here and below. */
static lr_status streams_init(struct streams *streams, const lr_log *log)
{
    *streams = (struct streams){0};
    cudaError_t error = create_event(&streams->forked);
    for (int k = 0; error == cudaSuccess && k < MOST_STREAMS; k++) {
        error = cudaStreamCreateWithFlags(&streams->streams[k], cudaStreamNonBlocking);
        error = error == cudaSuccess ? create_event(&streams->joined[k]) : error;
    }
    return lr_cuda_check((int)error, "streams", log);
}

static void streams_finish(struct streams *streams)
{
    for (int k = 0; k < MOST_STREAMS; k++) {
        if (streams->joined[k] != NULL) cudaEventDestroy(streams->joined[k]);
        if (streams->streams[k] != NULL) cudaStreamDestroy(streams->streams[k]);
    }
    if (streams->forked != NULL) cudaEventDestroy(streams->forked);
    *streams = (struct streams){0};
}

/* Work queued on the streams from now on runs after everything queued on the default stream so far. */
static lr_status streams_fork(struct streams *streams, const lr_log *log)
{
    cudaError_t error = cudaEventRecord(streams->forked, NULL);
    for (int k = 0; error == cudaSuccess && k < MOST_STREAMS; k++)
        error = cudaStreamWaitEvent(streams->streams[k], streams->forked, 0);
    return lr_cuda_check((int)error, "streams", log);
}

/* Work queued on the default stream from now on runs after everything queued on the streams so far. */
static lr_status streams_join(struct streams *streams, const lr_log *log)
{
    cudaError_t error = cudaSuccess;
    for (int k = 0; error == cudaSuccess && k < MOST_STREAMS; k++) {
        error = cudaEventRecord(streams->joined[k], streams->streams[k]);
        error = error == cudaSuccess ? cudaStreamWaitEvent(NULL, streams->joined[k], 0) : error;
    }
    return lr_cuda_check((int)error, "streams", log);
}

/* --- the device's clock: time that it takes for what its default stream is given between begin and end, summed over
 * laps: a gl_stopwatch (gl/timer.h) for CUDA --- */

/* Measured intervals that may be in flight; more than the views of an iteration. */
enum { MOST_LAPS = 256 };

/* Zero is valid: no intervals. */
struct watch {
    cudaEvent_t events[MOST_LAPS][2]; /* owned; made when an interval first needs them */
    int64_t begun, read;              /* intervals begun; intervals added to `seconds` */
    double seconds;
};

static cudaEvent_t *lap_of(struct watch *watch, int64_t lap)
{
    return watch->events[lap % MOST_LAPS];
}

static void record(cudaEvent_t *event, const lr_log *log)
{
    cudaError_t error = *event == NULL ? cudaEventCreate(event) : cudaSuccess;
    error = error == cudaSuccess ? cudaEventRecord(*event, NULL) : error;
    (void)lr_cuda_check((int)error, "a clock", log);
}

static void read_lap(struct watch *watch, const lr_log *log)
{
    const cudaEvent_t *lap = lap_of(watch, watch->read++);
    float milliseconds = 0;
    cudaError_t error = cudaEventSynchronize(lap[1]);
    error = error == cudaSuccess ? cudaEventElapsedTime(&milliseconds, lap[0], lap[1]) : error;
    if (lr_cuda_check((int)error, "a clock", log) == LR_OK) watch->seconds += 1e-3 * (double)milliseconds;
}

static void watch_finish(struct watch *watch)
{
    for (int k = 0; k < MOST_LAPS; k++) {
        for (int end = 0; end < 2; end++)
            if (watch->events[k][end] != NULL) cudaEventDestroy(watch->events[k][end]);
    }
    *watch = (struct watch){0};
}

/* Intervals do not overlap: each ends before the next begins. Neither call waits, unless the device is MOST_LAPS
 * behind. A failure is logged, and its interval counts as zero. */
static void watch_begin(struct watch *watch, const lr_log *log)
{
    if (watch->begun - watch->read == MOST_LAPS) read_lap(watch, log);
    record(&lap_of(watch, watch->begun++)[0], log);
}

static void watch_end(struct watch *watch, const lr_log *log)
{
    record(&lap_of(watch, watch->begun - 1)[1], log);
}

/* Returns the seconds of all intervals since its last call. Waits until the device has finished them. */
static double watch_read(struct watch *watch, const lr_log *log)
{
    while (watch->read < watch->begun) read_lap(watch, log);
    const double seconds = watch->seconds;
    watch->seconds = 0;
    return seconds;
}

/* --- updates: as in render/direct/direct.h, on images that stay out; they neither wait nor copy --- */

enum { MOST_IMAGES = 4 };

/* Takes and describes some images. Images that are NULL or absent become zero. */
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

/* --- sources of gathers by bands, sorted along lattices, in memory that stays allocated: one after the other, or an
 * image that is projected to view after view, which is sorted once for all views of a lattice as long as it stays the
 * same --- */

/* Zero is valid: no memory. */
struct room {
    void *memory; /* owned, on the device */
    int64_t bytes;
    struct sorted_lattice {
        int32_t next[2], across[2];
    } lattice;     /* lattice that it was last sorted along */
    bool is_clear; /* numbers beyond the grid's columns are zero; false = never sorted */
};

/* An image sorted along lattices. Zero is valid: no image. */
struct sorted_image {
    uint64_t number; /* number of the image, as lr_cuda_taking returns it; 0 = no image */
    struct sorted_copy {
        struct room room;
        struct sorted_lattice lattice;
        bool is_there;
    } copies[LR_LATTICE_CANDIDATES];
};

static void room_finish(struct room *room)
{
    if (room->memory != NULL) /* there may be no device to ask */
        cudaFree(room->memory);
    *room = (struct room){0};
}

/* Makes room for this many bytes, unless there is enough. It then waits for all launched work, which may use the
 * former memory. errors: LR_FAILED, here and below. */
static lr_status room_make(struct room *room, int64_t bytes, const lr_log *log)
{
    if (room->bytes >= bytes) return LR_OK;
    cudaDeviceSynchronize();
    room_finish(room);
    LR_TRY(lr_cuda_check((int)cudaMalloc(&room->memory, (size_t)bytes), "a sorted image", log));
    room->bytes = bytes;
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

/* Sorts images->source into a room, on images->stream, and sets images->sorted. All views along a lattice skip the
 * same places of a room, which stay zero. */
static lr_status sort_into(const lr_cuda_bands *pass, struct room *room, lr_cuda_images *images, const lr_log *log)
{
    LR_TRY(room_make(room, lr_cuda_band_source_bytes(pass), log));
    images->sorted = lr_cuda_band_source_at(pass, room->memory);
    images->sorted.is_clear = room->is_clear && is_along(&room->lattice, pass);
    room->is_clear = false;
    LR_TRY(lr_cuda_check(lr_cuda_launch_sort(pass, images), "sorting an image", log));
    room->lattice = lattice_of(pass);
    room->is_clear = true;
    return LR_OK;
}

/* The copy along the pass's lattice, or else an unused one. There are as many copies as lattices. */
static struct sorted_copy *find_copy(struct sorted_image *sorted, const lr_cuda_bands *pass)
{
    struct sorted_copy *copy = sorted->copies;
    struct sorted_copy *const last = sorted->copies + LR_LATTICE_CANDIDATES - 1;
    while (copy < last && copy->room.memory != NULL && !is_along(&copy->lattice, pass)) copy++;
    return copy;
}

/* Makes room for a copy along the pass's lattice. */
static lr_status make_sorted_room(struct sorted_image *sorted, const lr_cuda_bands *pass, const lr_log *log)
{
    struct sorted_copy *copy = find_copy(sorted, pass);
    if (!is_along(&copy->lattice, pass)) {
        copy->is_there = false;
        copy->lattice = lattice_of(pass);
    }
    return room_make(&copy->room, lr_cuda_band_source_bytes(pass), log);
}

/* Sorts the image that has this number, unless that has been done for the pass's lattice, and sets images->sorted. The
 * stream has to come after the one that it was sorted on. */
static lr_status sort_once(struct sorted_image *sorted, const lr_cuda_bands *pass, uint64_t number,
                           lr_cuda_images *images, const lr_log *log)
{
    LR_TRY(make_sorted_room(sorted, pass, log));
    struct sorted_copy *copy = find_copy(sorted, pass);
    if (number == 0 || sorted->number != number) {
        for (int k = 0; k < LR_LATTICE_CANDIDATES; k++) sorted->copies[k].is_there = false;
        sorted->number = number;
    }
    if (copy->is_there) {
        images->sorted = lr_cuda_band_source_at(pass, copy->room.memory);
        return LR_OK;
    }
    LR_TRY(sort_into(pass, &copy->room, images, log));
    copy->is_there = true;
    return LR_OK;
}

/* --- the backend --- */

/* Streams of a back projection, each with its own sorted source. With this many, sources are still in the cache when
 * they are read. */
enum { SORTING_STREAMS = 4 };

struct cuda_direct {
    struct lr_direct_compute *compute;
    struct lr_cuda_table_set tables;
    int device; /* -1 until there is one */
    struct streams streams;
    /* one for each stream that sorts, and one for the default stream: a sorted source, until the stream's passes are
     * done */
    struct room rooms[SORTING_STREAMS + 1];
    struct sorted_image sorted;
    struct watch projections, updates;
    char name[256];
};

static const lr_log *log_of(const struct cuda_direct *cuda)
{
    return cuda->compute->params.log;
}

/* Makes the device current on this thread, because threads start with the first device. */
static struct cuda_direct *enter(void *self)
{
    struct cuda_direct *cuda = self;
    if (cuda->device >= 0 && cudaSetDevice(cuda->device) != cudaSuccess)
        (void)cudaGetLastError(); /* the next call reports the error */
    return cuda;
}

/* --- projections --- */

/* True if the view has bands. Otherwise columns are used: a slab may be too wide, or the device too old. */
static bool has_bands(const struct lr_cuda_tables *tables)
{
    return tables->bands[0][0].num_tiles > 0;
}

/* Sources are sorted in the same way for all shapes and in both directions. */
static const lr_cuda_bands *sorting_of(const struct lr_cuda_tables *tables)
{
    return &tables->bands[0][LR_CUDA_BANDS_ALONE];
}

/* Number of the current loan of an image that is an array. */
static uint64_t number_of(const struct lr_direct_image *image)
{
    return lr_cuda_taking(&(struct lr_cuda_object){.buffer = image->buffer});
}

/* Called whenever an image changes. */
static void forget_sorted(struct cuda_direct *cuda, const struct lr_direct_image *image)
{
    if (image->buffer != NULL && cuda->sorted.number == number_of(image)) cuda->sorted.number = 0;
}

/* Sorts the image, which is projected forward view by view. */
static lr_status sort_image(struct cuda_direct *cuda, const struct lr_cuda_tables *tables,
                            const struct lr_direct_image *image, lr_cuda_images *images)
{
    return has_bands(tables) ? sort_once(&cuda->sorted, sorting_of(tables), number_of(image), images, log_of(cuda))
                             : LR_OK;
}

enum { DEFAULT_STREAM = SORTING_STREAMS };

/* Sorts a view's own source for a back projection. stream: number of the stream. */
static lr_status sort_source(struct cuda_direct *cuda, const struct lr_cuda_tables *tables, int stream,
                             lr_cuda_images *images)
{
    return has_bands(tables) ? sort_into(sorting_of(tables), &cuda->rooms[stream], images, log_of(cuda)) : LR_OK;
}

static lr_status launch(struct cuda_direct *cuda, const struct lr_cuda_tables *tables, bool forward,
                        const lr_cuda_images *images)
{
    const struct lr_direct_backend_params *params = &cuda->compute->params;
    const bool is_shared = params->variant == LR_DIRECT_SHARED_MEMORY;
    const int64_t bytes = is_shared ? lr_cuda_shared_bytes(&tables->cloud) : 0;
    const int64_t most = is_shared ? lr_cuda_shared_room() : 0;
    /* The texture cache gathers over the same tables as shared memory. */
    const lr_direct_variant variant =
        bytes > most && params->may_change_variant ? LR_DIRECT_TEXTURE_CACHE : params->variant;
    int error = 0;
    switch (variant) {
    case LR_DIRECT_FASTEST: /* has been chosen */
    case LR_DIRECT_THREADS:
    case LR_DIRECT_INSTRUCTIONS:
        error = lr_cuda_launch_gather(variant == LR_DIRECT_THREADS ? LR_CUDA_VOXELS : LR_CUDA_TEXELS, forward,
                                      &tables->gather, images);
        break;
    case LR_DIRECT_SHARED_MEMORY:
        if (most < 0)
            return lr_error(log_of(cuda), LR_FAILED, "CUDA does not tell how much shared memory %s has", cuda->name);
        if (bytes > most)
            return lr_error(log_of(cuda), LR_USAGE,
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

/* True if views run concurrently, because their order does not matter. */
static bool overlaps(const struct cuda_direct *cuda, const lr_direct_task *task)
{
    return cuda->compute->is_unordered && task->num_views > 1;
}

/* Streams that the views of a task are spread over. */
static int count_streams(const struct cuda_direct *cuda, const lr_direct_task *task)
{
    const bool sorts = cuda->compute->params.variant == LR_DIRECT_BANDS && task->work == LR_DIRECT_WORK_BACK;
    return sorts ? (int)SORTING_STREAMS : (int)MOST_STREAMS;
}

/* The tables of a task's k-th view. If they must be made, the tables of the task's next views are made too. */
static const struct lr_cuda_tables *open_tables(struct cuda_direct *cuda, const lr_direct_task *task, int k)
{
    const int *views = task->views + k, left = task->num_views - k;
    const bool is_one = task->num_views == 1; /* an algorithm may ask for one view and need others next */
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
    const unsigned next = is_beside ? cuda->streams.next++ : 0;
    const int stream = is_beside ? (int)(next % (unsigned)count_streams(cuda, task)) : DEFAULT_STREAM;
    images->map = tables->map;
    images->stream = is_beside ? cuda->streams.streams[stream] : NULL;
    LR_TRY(forward ? sort_image(cuda, tables, source, images) : sort_source(cuda, tables, stream, images));
    return launch(cuda, tables, forward, images);
}

/* The k-th view to be launched. For back projection, each stream takes consecutive views: most lie along the same
 * lattice, and so does the stream's memory. If tables of some views must be dropped for others, views come in their
 * own order. */
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
    /* Sorts the image for all views of a task before they run side by side. */
    for (int k = 0; fork && task->work == LR_DIRECT_WORK_FORWARD && k < task->num_views; k++) {
        const struct lr_cuda_tables *tables = open_tables(cuda, task, k);
        LR_TRY(tables != NULL ? sort_image(cuda, tables, source, images) : LR_FAILED);
    }
    lr_status status = fork ? streams_fork(&cuda->streams, log_of(cuda)) : LR_OK;
    for (int k = 0; status == LR_OK && k < task->num_views; k++)
        status = launch_view(cuda, task, place_in_turn(cuda, task, k), source, images);
    const lr_status joined = fork ? streams_join(&cuda->streams, log_of(cuda)) : LR_OK;
    return status != LR_OK ? status : joined;
}

static lr_status time_task(void *self, const lr_direct_task *task, const struct lr_direct_image *source,
                           const struct lr_direct_image *target, double *device_seconds)
{
    struct cuda_direct *cuda = enter(self);
    lr_cuda_images images;
    LR_TRY(open_images(cuda, source, target, &images));

    /* Rooms for sorted sources are allocated before the clock runs. */
    const bool is_beside = overlaps(cuda, task);
    const int first = is_beside ? 0 : DEFAULT_STREAM, end = is_beside ? SORTING_STREAMS : DEFAULT_STREAM + 1;
    for (int k = 0; k < task->num_views; k++) {
        const struct lr_cuda_tables *tables = open_tables(cuda, task, k);
        if (tables == NULL) return LR_FAILED;
        if (!has_bands(tables)) continue;
        const lr_cuda_bands *pass = sorting_of(tables);
        if (task->work == LR_DIRECT_WORK_FORWARD) LR_TRY(make_sorted_room(&cuda->sorted, pass, log_of(cuda)));
        for (int stream = first; task->work != LR_DIRECT_WORK_FORWARD && stream < end; stream++)
            LR_TRY(room_make(&cuda->rooms[stream], lr_cuda_band_source_bytes(pass), log_of(cuda)));
    }
    if (cuda->compute->is_unordered) /* a measurement counts it each time */
        forget_sorted(cuda, source);
    watch_begin(&cuda->projections, log_of(cuda));
    const lr_status status = launch_task(cuda, task, source, &images);
    watch_end(&cuda->projections, log_of(cuda));
    *device_seconds = watch_read(&cuda->projections, log_of(cuda));
    forget_sorted(cuda, target);
    return status;
}

/* Measures from the device's first command. The device waits for the host's preparation, unless it was busy
 * meanwhile. */
static lr_status time_tables(void *self, const lr_direct_task *task, double *device_seconds)
{
    struct cuda_direct *cuda = enter(self);
    lr_status status = LR_OK;
    for (int k = 0; k < task->num_views; k++) lr_cuda_forget_tables(&cuda->tables, task->views[k]);
    watch_begin(&cuda->projections, log_of(cuda));
    for (int k = 0; status == LR_OK && k < task->num_views; k++)
        status = lr_cuda_make_tables(&cuda->tables, task->views + k, task->num_views - k);
    watch_end(&cuda->projections, log_of(cuda));
    *device_seconds = watch_read(&cuda->projections, log_of(cuda));
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
    if (status == LR_OK) status = lr_cuda_check(lr_cuda_launch_discrepancy(&pass), "a discrepancy", log_of(cuda));
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
    if (status == LR_OK) status = lr_cuda_check(lr_cuda_launch_change(&pass), "an update", log_of(cuda));
    forget_sorted(cuda, image);
    return status;
}

static void begin_lap(void *self)
{
    struct cuda_direct *cuda = enter(self);
    watch_begin(&cuda->updates, log_of(cuda));
}

static void end_lap(void *self)
{
    struct cuda_direct *cuda = enter(self);
    watch_end(&cuda->updates, log_of(cuda));
}

static double read_laps(void *self)
{
    struct cuda_direct *cuda = enter(self);
    return watch_read(&cuda->updates, log_of(cuda));
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
    for (int k = 0; k <= SORTING_STREAMS; k++) room_finish(&cuda->rooms[k]);
    for (int k = 0; k < LR_LATTICE_CANDIDATES; k++) room_finish(&cuda->sorted.copies[k].room);
    watch_finish(&cuda->updates);
    watch_finish(&cuda->projections);
    streams_finish(&cuda->streams);
    free(cuda);
}

static void *create(struct lr_direct_compute *compute)
{
    struct cuda_direct *cuda = lr_alloc(1, sizeof(*cuda), "the cuda backend", compute->params.log);
    if (cuda == NULL) return NULL;
    cuda->compute = compute;
    cuda->device = -1;
    lr_status status = lr_cuda_open(compute->ctx, cuda->name);
    if (status == LR_OK) status = lr_cuda_check((int)cudaGetDevice(&cuda->device), "the device", log_of(cuda));
    if (status == LR_OK) status = lr_cuda_table_set_init(&cuda->tables, compute);
    if (status == LR_OK) status = streams_init(&cuda->streams, log_of(cuda));
    if (status != LR_OK) {
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
