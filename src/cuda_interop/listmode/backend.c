/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The cuda backend of the family `listmode` (docs/method/listmode.md, "Backend cuda"). The backend works on the stream
 * and in the memory of its place. */
#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/device.h"
#include "cuda_interop/lend.h"
#include "cuda_interop/listmode/passes.h"
#include "cuda_interop/listmode/tables.h"
#include "device/place.h"
#include "listmode/hull.h"
#include "listmode/line.h"
#include "listmode/rows.h"
#include "model/lors/selection.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- tables of the scanner that the passes of exact elements need, on the host and on the device --- */

_Static_assert(sizeof(lr_cuda_list_module) == sizeof(struct lr_listmode_module), "one layout");

/* The largest number of points along an axis. With more points, single precision would not find the voxel of a point
 * reliably. */
enum { MOST_POINTS = 1 << 21 };

/* Makes the host's tables; with other kernels than the exact one, the tables are zero. Call the finish function even
 * after an error. errors: LR_USAGE for more sample points than the CUDA kernels can count; LR_FAILED if memory runs
 * out. */
static lr_status exact_init(lr_cuda_list_exact *exact, const struct lr_listmode_backend_params *params)
{
    const struct lr_listmode_model *model = params->model;
    const lr_scanner *scanner = model->scanner;
    *exact = (lr_cuda_list_exact){0};
    if (model->kernel != LR_LISTMODE_EXACT) return LR_OK;
    for (int k = 0; k < 3; k++) {
        if (model->grid.size[k] > MOST_POINTS / model->samples[k]) {
            return lr_error(params->log, LR_USAGE,
                            "exact elements on a CUDA device have at most %d sample points along "
                            "an axis, and %d voxels have %d each: take fewer samples",
                            MOST_POINTS, model->grid.size[k], model->samples[k]);
        }
    }
    exact->is_leaning = lr_listmode_shared_axis(scanner) < 0;
    exact->reach_mm = model->reach_mm;

    /* Finds upper bounds of elements, enlarged by a hundredth for rounding. */
    const double *edge = model->grid.voxel_mm;
    double area = 0, radius = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const double *face = scanner->modules[m].face_mm;
        area = fmax(area, face[0] * face[1]);
        radius = fmax(radius, 0.5 * hypot(face[0], face[1]));
    }
    exact->face = (float)(1.01 * area * 0.15915494309189535);
    exact->radius_mm = (float)radius;
    exact->per_edge = (float)(1.0 / (LR_LISTMODE_HELD * fmin(edge[0], fmin(edge[1], edge[2]))));

    int32_t *module_of = lr_alloc(scanner->num_crystals, sizeof(*module_of), "modules of crystals", params->log);
    for (int c = 0; module_of != NULL && c < scanner->num_crystals; c++)
        module_of[c] = lr_scanner_module_of(scanner, c);
    exact->module_of = module_of;
    exact->modules = (const lr_cuda_list_module *)(const void *)lr_listmode_modules(scanner, params->log);
    return exact->module_of != NULL && exact->modules != NULL ? LR_OK : LR_FAILED;
}

/* --- events that do not fit into the device's memory --- */

enum { STREAM_SLOTS = 2, STREAM_ARRAYS = 4 };

/* Batches of events are copied from the host into two slots in turn. A separate stream makes the copies, while the
 * place's stream works on the previous batch. */

/* A struct of zeros has no stream. */
struct stream {
    cudaStream_t copies; /* owned, like `memory`, `slots`, `copied` and `done` */
    struct lr_cuda_list_memory memory;
    int32_t *slots[STREAM_SLOTS][STREAM_ARRAYS];
    cudaEvent_t copied[STREAM_SLOTS], done[STREAM_SLOTS];
    const struct lr_cuda_list_batch *held[STREAM_SLOTS]; /* batch in each slot; NULL = no batch yet */
    void *pinned[STREAM_ARRAYS];                         /* arrays of the host that are pinned */
    int next;                                            /* slot for the next batch */
};

/* --- the backend --- */

/* The bytes of shared memory that a block keeps free for sums over the block. Each multiprocessor runs one block: on an
 * H200, two blocks with half a slab each are 8 % slower, and four with a quarter each are 34 % slower. */
enum { RESERVED_SHARED = 1024 };

/* LEAST_BATCH, MOST_BATCH: smallest and largest number of events of a streamed batch. The largest batch has 128 MiB,
 * which is enough for full speed of transfers. */
enum {
    EVENT_BYTES = 16,
    LEAST_BATCH = LR_CUDA_LIST_PIECE,
    MOST_BATCH = (1 << 23) / LR_CUDA_LIST_PIECE * LR_CUDA_LIST_PIECE,
    STEP_BYTES = 47 << 10 /* shared memory of a step; 1 KiB less than the device in the paper has */
};

/* The largest number of projections whose times have not been read yet. It is so large that the host never waits. */
enum { MOST_LAPS = 8 };

struct listmode_cuda {
    struct lr_listmode_backend_params params;
    int before; /* the thread's previous device, which leave() makes current again */
    cudaStream_t stream;
    struct lr_cuda_list_plan plan;
    struct lr_cuda_list_memory memory;
    struct lr_listmode_pieces order;
    struct stream streaming;
    bool are_streamed;
    struct lr_cuda_list_steps steps; /* used instead of `plan` and `order`, except for the frames of `plan` */
    lr_cuda_list_exact exact;        /* the host's tables of exact elements */
    lr_cuda_list_pass pass;          /* parameters that all passes have in common; its events, chunks and jobs are those
                                        of all batches */
    struct lr_cuda_watch projections;
    struct lr_cuda_list_memory image, values, map; /* device memory for copies of the host's vectors: one block per
                                                      vector, enlarged when necessary */
    struct lr_cuda_list_pieces pieces;
};

/* --- functions for the current device --- */

static lr_status check(const struct listmode_cuda *cuda, int error, const char *what)
{
    return lr_cuda_check(error, what, cuda->params.log);
}

static lr_status enter(struct listmode_cuda *cuda)
{
    LR_TRY(lr_driver_check(&cuda->params.place->cuda_owner, "CUDA", cuda->params.log));
    return lr_cuda_enter(cuda->params.device, &cuda->before, cuda->params.log);
}

static lr_status leave(const struct listmode_cuda *cuda, lr_status status)
{
    return lr_cuda_leave(cuda->params.device, cuda->before, status);
}

static lr_status wait(const struct listmode_cuda *cuda, const char *what)
{
    return check(cuda, (int)cudaStreamSynchronize(cuda->stream), what);
}

/* Finds the addresses of the host's arrays from event `begin` on. */
static void find_arrays(const struct lr_listmode_events *events, int64_t begin, void *arrays[STREAM_ARRAYS])
{
    arrays[0] = events->crystals[0] + begin;
    arrays[1] = events->crystals[1] + begin;
    arrays[2] = events->tof_mm + begin;
    arrays[3] = events->number + begin;
}

/* Makes slots for batches of up to most_events events. Pins the memory of the host's events, so that the host can go on
 * working during copies. If the system does not allow pinning, copies are slower. errors: LR_FAILED. */
static lr_status stream_init(struct listmode_cuda *cuda, int64_t most_events)
{
    static const char what[] = "events on their way";
    struct stream *stream = &cuda->streaming;
    *stream = (struct stream){.memory = {.stream = cuda->stream, .log = cuda->params.log}};
    LR_TRY(check(cuda, (int)cudaStreamCreateWithFlags(&stream->copies, cudaStreamNonBlocking), what));
    for (int slot = 0; slot < STREAM_SLOTS; slot++) {
        const int64_t bytes = most_events * (int64_t)sizeof(int32_t);
        for (int k = 0; k < STREAM_ARRAYS; k++)
            stream->slots[slot][k] = lr_cuda_list_allocate(&stream->memory, "events", NULL, bytes);
        LR_TRY(stream->memory.failed ? LR_FAILED : LR_OK);
        LR_TRY(check(cuda, (int)cudaEventCreateWithFlags(&stream->copied[slot], cudaEventDisableTiming), what));
        LR_TRY(check(cuda, (int)cudaEventCreateWithFlags(&stream->done[slot], cudaEventDisableTiming), what));
    }

    const size_t all_bytes = (size_t)cuda->params.events->layout.count * sizeof(int32_t);
    void *arrays[STREAM_ARRAYS];
    find_arrays(cuda->params.events, 0, arrays);
    for (int k = 0; k < STREAM_ARRAYS; k++)
        if (cudaHostRegister(arrays[k], all_bytes, cudaHostRegisterDefault) == cudaSuccess)
            stream->pinned[k] = arrays[k];
        else
            (void)cudaGetLastError(); /* later calls must not report this error */
    return LR_OK;
}

static lr_status ensure_room(const struct listmode_cuda *cuda, struct lr_cuda_list_memory *room, int64_t bytes,
                             const char *what)
{
    if (room->bytes >= bytes) return LR_OK;
    LR_TRY(wait(cuda, what));
    lr_cuda_list_free(room);
    return lr_cuda_list_allocate(room, what, NULL, bytes) != NULL ? LR_OK : LR_FAILED;
}

/* --- vectors at the place, and copies of vectors on the host --- */

static int64_t bytes_of(const lr_vector *vector)
{
    return vector->count * (int64_t)sizeof(float);
}

/* Finds device memory for a vector. address: receives the vector's own address, or the address of memory for a copy. */
static lr_status find_room(struct listmode_cuda *cuda, const lr_vector *vector, struct lr_cuda_list_memory *room,
                           float **address)
{
    if (vector->values == NULL) {
        *address = (float *)vector->storage->block + vector->begin;
        return LR_OK;
    }
    LR_TRY(ensure_room(cuda, room, bytes_of(vector), "numbers of the host"));
    *address = room->blocks[0];
    return LR_OK;
}

static lr_status copy(struct listmode_cuda *cuda, void *to, const void *from, int64_t bytes)
{
    return check(cuda, (int)cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, cuda->stream), "a copy");
}

/* Copies numbers to a vector on the host, and waits until the copy is complete. */
static lr_status take_back(struct listmode_cuda *cuda, const lr_vector *vector, const float *address)
{
    if (vector->values == NULL) return LR_OK;
    cuda->params.place->traffic.to_host += bytes_of(vector);
    LR_TRY(copy(cuda, vector->values, address, bytes_of(vector)));
    return wait(cuda, "a projection");
}

/* --- a projection --- */

struct project {
    struct listmode_cuda *cuda;
    const lr_selection *part;
    bool is_back;
    lr_cuda_list_pass pass;
    float *image;       /* image in the grid's order */
    double done, total; /* numbers of events: projected so far, and selected */
};

/* Projects a batch. A streamed batch is first copied into a slot, unless the slot already contains this batch. Before
 * the copy, the host waits until the device has finished the slot's previous batch. The host is therefore at most two
 * batches ahead of the device. */
static lr_status take_batch(struct project *project, const struct lr_cuda_list_batch *batch)
{
    static const char on_the_way[] = "events on their way";
    struct listmode_cuda *cuda = project->cuda;
    struct stream *stream = &cuda->streaming;
    lr_cuda_list_pass *pass = &project->pass;
    lr_cuda_list_events *events = &pass->events;
    if (cuda->are_streamed) {
        const bool is_held = stream->held[1 - stream->next] == batch;
        stream->next = is_held ? 1 - stream->next : stream->next;
        const int k = stream->next;
        int32_t *const *slot = stream->slots[k];
        if (stream->held[k] != batch) {
            void *arrays[STREAM_ARRAYS];
            const size_t bytes = (size_t)batch->num_events * sizeof(int32_t);
            find_arrays(cuda->params.events, batch->begin, arrays);
            if (stream->held[k] != NULL) LR_TRY(check(cuda, (int)cudaEventSynchronize(stream->done[k]), on_the_way));
            stream->held[k] = NULL;
            for (int array = 0; array < STREAM_ARRAYS; array++) {
                const cudaError_t error =
                    cudaMemcpyAsync(slot[array], arrays[array], bytes, cudaMemcpyDefault, stream->copies);
                LR_TRY(check(cuda, (int)error, on_the_way));
            }
            LR_TRY(check(cuda, (int)cudaEventRecord(stream->copied[k], stream->copies), on_the_way));
            LR_TRY(check(cuda, (int)cudaStreamWaitEvent(cuda->stream, stream->copied[k], 0), on_the_way));
        }
        events->crystals[0] = slot[0];
        events->crystals[1] = slot[1];
        events->tof_mm = (const float *)(void *)slot[2];
        events->number = slot[3];
        stream->held[k] = batch;
    } else {
        *events = lr_cuda_list_events_from(&cuda->pass.events, batch->begin);
    }
    pass->chunks = cuda->pass.chunks + batch->chunk;
    pass->jobs = cuda->pass.jobs + batch->job;
    pass->num_chunks = batch->num_chunks;
    pass->num_jobs = batch->num_jobs;
    pass->longest_chunk = batch->longest_chunk;
    pass->num_warps = batch->num_warps;

    const bool is_exact = pass->exact.modules != NULL;
    if (project->is_back) {
        const int error = is_exact ? lr_cuda_launch_exact_back(pass) : lr_cuda_launch_list_back(pass);
        LR_TRY(check(cuda, error, "back-projecting events"));
    } else if (is_exact) {
        LR_TRY(check(cuda, lr_cuda_launch_exact_forward(pass), "projecting events"));
    } else {
        LR_TRY(check(cuda, lr_cuda_launch_list_forward(pass), "projecting events"));
    }
    if (cuda->are_streamed) {
        const int slot = stream->next;
        stream->next = 1 - slot;
        LR_TRY(check(cuda, (int)cudaEventRecord(stream->done[slot], cuda->stream), on_the_way));
    }
    return LR_OK;
}

/* Returns true if images are stored in slices. */
static bool has_frames(const struct listmode_cuda *cuda)
{
    const lr_listmode_variant variant = cuda->params.variant;
    return variant == LR_LISTMODE_FASTEST || lr_cuda_list_steps_are_cached(variant);
}

static lr_status take_range(struct project *project, const struct lr_listmode_places *places, int64_t r)
{
    struct listmode_cuda *cuda = project->cuda;
    const struct lr_cuda_list_plan *plan = &cuda->plan;
    const lr_progress *progress = cuda->params.progress;
    const char *const what = project->is_back ? "back-projecting" : "projecting";
    project->pass.places =
        (lr_cuda_list_places){.position = places->position, .count = places->count, .first = places->first};
    if (places->map != NULL) {
        const int64_t *offsets = cuda->params.events->offsets;
        const int64_t bytes = (offsets[r + 1] - offsets[r]) * (int64_t)sizeof(*places->map);
        LR_TRY(ensure_room(cuda, &cuda->map, bytes, "a part of the events"));
        LR_TRY(copy(cuda, cuda->map.blocks[0], places->map, bytes));
        LR_TRY(wait(cuda, "a part of the events"));
        project->pass.places.map = cuda->map.blocks[0];
    }

    if (cuda->params.variant != LR_LISTMODE_FASTEST) {
        LR_TRY(lr_progress_report(progress, what, project->done, project->total));
        project->done += (double)places->count;
        return lr_cuda_list_steps_project(&cuda->steps, &project->pass, r, project->image, project->is_back);
    }
    for (int64_t k = plan->range_batches[r]; k < plan->range_batches[r + 1]; k++) {
        LR_TRY(lr_progress_report(progress, what, project->done, project->total));
        LR_TRY(take_batch(project, &plan->batches[k]));
        project->done += places->share * (double)plan->batches[k].num_events;
    }
    return LR_OK;
}

/* Projects the selected events. The image or the values are already on the device. The device's clock measures this
 * time. */
static lr_status run_project(struct project *project)
{
    struct listmode_cuda *cuda = project->cuda;
    const struct lr_listmode_backend_params *params = &cuda->params;
    lr_cuda_list_framing framing = {.image = project->image,
                                    .numbers = cuda->pass.numbers,
                                    .num_numbers = cuda->plan.num_numbers,
                                    .stream = cuda->stream};
    memcpy(framing.frames, cuda->plan.frames, sizeof(framing.frames));
    memcpy(framing.size, params->model->grid.size, sizeof(framing.size));

    LR_TRY(lr_cuda_watch_mark(&cuda->projections, 0, cuda->stream));
    if (project->is_back) {
        float *const sums = has_frames(cuda) ? framing.numbers : project->image;
        const int64_t num_sums = has_frames(cuda) ? framing.num_numbers : lr_grid_num_voxels(&params->model->grid);
        LR_TRY(check(cuda, (int)cudaMemsetAsync(sums, 0, (size_t)num_sums * sizeof(float), cuda->stream),
                     "an image in slices"));
    } else if (has_frames(cuda)) {
        LR_TRY(check(cuda, lr_cuda_launch_list_fill(&framing), "an image in slices"));
    }

    struct lr_listmode_places places = {0};
    lr_status status = LR_OK;
    project->total = (double)lr_selection_count(&params->events->layout, project->part);
    for (int64_t r = 0; status == LR_OK && r < params->events->layout.num_pairs; r++) {
        status = lr_listmode_places_find(&places, params->events, project->part, r, params->log);
        if (status == LR_OK && places.count > 0) status = take_range(project, &places, r);
    }
    lr_listmode_places_finish(&places);
    LR_TRY(status);

    if (project->is_back && has_frames(cuda))
        LR_TRY(check(cuda, lr_cuda_launch_list_add(&framing), "an image in slices"));
    return lr_cuda_watch_mark(&cuda->projections, 1, cuda->stream);
}

static lr_status project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in, lr_vector *out)
{
    struct listmode_cuda *cuda = self;
    struct project call = {.cuda = cuda, .part = part, .is_back = !is_forward, .pass = cuda->pass};
    float **const image = &call.image, **const values = &call.pass.values;
    *values = NULL;
    call.pass.values_are_one = in == NULL;
    LR_TRY(enter(cuda));
    lr_status status = LR_OK;
    if (in != NULL) {
        float **const address = is_forward ? image : values;
        status = find_room(cuda, in, is_forward ? &cuda->image : &cuda->values, address);
        if (status == LR_OK && in->values != NULL) {
            cuda->params.place->traffic.to_device += bytes_of(in);
            status = copy(cuda, *address, in->values, bytes_of(in));
        }
    }
    if (status == LR_OK)
        status = find_room(cuda, out, is_forward ? &cuda->values : &cuda->image, is_forward ? values : image);
    if (status == LR_OK) status = run_project(&call);
    if (status == LR_OK) status = take_back(cuda, out, is_forward ? *values : *image);
    return leave(cuda, status);
}

static bool know_times(struct listmode_cuda *cuda)
{
    return enter(cuda) == LR_OK && leave(cuda, lr_cuda_watch_read(&cuda->projections, true)) == LR_OK;
}

static double device_seconds(void *self)
{
    struct listmode_cuda *cuda = self;
    return know_times(cuda) ? cuda->projections.last_s : 0.0;
}

static double device_clock(void *self)
{
    struct listmode_cuda *cuda = self;
    return know_times(cuda) ? cuda->projections.all_s : 0.0;
}

/* --- rows: the host visits the same elements that the kernels add up --- */

struct source {
    const struct lr_listmode_events *events; /* arranged on the host */
    const struct lr_listmode_model *model;
    lr_cuda_list_pass pass;
};

static void visit(const void *self, int64_t k, int axis, const struct lr_listmode_visitor *visitor)
{
    const struct source *source = self;
    const struct lr_listmode_events *events = source->events;
    const int32_t crystals[2] = {events->crystals[0][k], events->crystals[1][k]};
    const lr_cuda_list_chunk event = {
        .begin = k, .count = 1, .axis = axis, .has_tof = lr_listmode_sigma(events, crystals) > 0};
    lr_cuda_list_visit(&source->pass, source->model->grid.size, &event, visitor);
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    const struct listmode_cuda *cuda = self;
    const struct lr_listmode_backend_params *params = &cuda->params;
    const lr_log *log = params->log;
    const lr_listmode_tube *tube = &params->model->tube;
    const struct lr_listmode_events *events = params->events;

    /* If only the device has the events, they are first copied to the host. */
    struct lr_listmode_events fetched = *events;
    lr_status status = LR_OK;
    if (!events->is_arranged) {
        fetched.crystals[0] = fetched.crystals[1] = fetched.number = NULL;
        fetched.tof_mm = NULL;
        status = lr_listmode_events_make_arrays(&fetched, log);
        if (status == LR_OK) status = events->held->fetch(events->held, &fetched, log);
    }
    if (status == LR_OK) {
        struct source source = {&fetched, params->model, cuda->pass};
        const struct lr_listmode_row_source all = {
            .events = &fetched, .visit = visit, .self = &source, .log = log, .progress = params->progress};
        lr_cuda_list_hit *hits = lr_cuda_list_hits(&fetched, log);
        float *table = tube->table != NULL ? lr_listmode_tube_table(tube, log) : NULL;
        const bool has_all = hits != NULL && (table != NULL || tube->table == NULL);
        source.pass.tube.table = table;
        source.pass.exact = cuda->exact;
        source.pass.events = (lr_cuda_list_events){.crystals = {fetched.crystals[0], fetched.crystals[1]},
                                                   .tof_mm = fetched.tof_mm,
                                                   .number = fetched.number,
                                                   .hits = hits,
                                                   .sigma_mm = fetched.sigma_mm,
                                                   .bin_mm = fetched.bin_mm,
                                                   .num_kinds = fetched.num_kinds};
        status = has_all ? lr_listmode_rows(&all, wanted, sink) : LR_FAILED;
        lr_free_all(hits, table);
    }
    if (!events->is_arranged) lr_free_all(fetched.crystals[0], fetched.crystals[1], fetched.tof_mm, fetched.number);
    return status;
}

/* --- creation --- */

static void destroy(void *self)
{
    struct listmode_cuda *cuda = self;
    if (lr_driver_is_own(&cuda->params.place->cuda_owner) && enter(cuda) == LR_OK) {
        (void)cudaStreamSynchronize(cuda->stream);
        struct stream *streaming = &cuda->streaming;
        if (streaming->copies != NULL) {
            (void)cudaStreamSynchronize(streaming->copies);
            cudaStreamDestroy(streaming->copies);
        }
        for (int k = 0; k < STREAM_ARRAYS; k++)
            if (streaming->pinned[k] != NULL) cudaHostUnregister(streaming->pinned[k]);
        for (int slot = 0; slot < STREAM_SLOTS; slot++) {
            if (streaming->copied[slot] != NULL) cudaEventDestroy(streaming->copied[slot]);
            if (streaming->done[slot] != NULL) cudaEventDestroy(streaming->done[slot]);
        }
        lr_cuda_list_free(&streaming->memory);
        lr_cuda_list_pieces_finish(&cuda->pieces);
        lr_cuda_list_free(&cuda->memory);
        lr_cuda_list_free(&cuda->image);
        lr_cuda_list_free(&cuda->values);
        lr_cuda_list_free(&cuda->map);
        lr_cuda_watch_finish(&cuda->projections);
        (void)leave(cuda, LR_OK);
    }
    lr_free_all((void *)(uintptr_t)cuda->exact.module_of, (void *)(uintptr_t)cuda->exact.modules);
    lr_cuda_list_plan_finish(&cuda->plan);
    lr_listmode_pieces_finish(&cuda->order);
    free(cuda);
}

/* Returns a setting of the environment, for tests; NULL if it is not set or if this build has no tests. */
static const char *setting(const char *name)
{
#ifdef LR_READS_SETTINGS
    return getenv(name);
#else
    (void)name;
    return NULL;
#endif
}

/* Returns a setting as a number; 0 if it is absent, or not a number from 1 to `most`. */
static int number_asked(const char *name, int most)
{
    const char *const asked = setting(name);
    const long number = asked != NULL ? strtol(asked, NULL, 10) : 0;
    return number > 0 && number <= most ? (int)number : 0;
}

enum { WARP = 32, MOST_JOBS_EACH = 1024 };

/* Asks the device for its number of multiprocessors and its shared memory per block. Chooses the threads, jobs and
 * shared memory of blocks. */
static lr_status look_at_device(struct listmode_cuda *cuda, struct lr_cuda_list_plan_params *plan)
{
    const bool is_exact = cuda->params.model->kernel == LR_LISTMODE_EXACT;
    const int device = cuda->params.device;
    int processors = 0, shared = 0;
    cudaError_t error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    error =
        error == cudaSuccess ? cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) : error;
    LR_TRY(check(cuda, (int)error, "a CUDA device"));
    plan->processors = processors;

    const int room = shared > RESERVED_SHARED ? (shared - RESERVED_SHARED) / 16 * 16 : 0;
    const int most = is_exact ? LR_CUDA_EXACT_THREADS : LR_CUDA_LIST_THREADS;
    const int slab = number_asked("LR_TEST_LISTMODE_SLAB", room) / 16 * 16;
    const int asked = number_asked("LR_TEST_LISTMODE_THREADS", most);
    const int threads = asked > 0 ? asked : cuda->params.block_threads < most ? cuda->params.block_threads : most;
    const char *const exact = setting("LR_TEST_LISTMODE_EXACT");
    const bool may_tile = !is_exact || exact == NULL || strcmp(exact, "atomics") != 0;
    plan->shared_room = !may_tile ? 0 : slab > 0 ? slab : room;
    const int jobs = number_asked("LR_TEST_LISTMODE_BLOCKS", MOST_JOBS_EACH), wanted = cuda->params.blocks_each;
    plan->jobs_each = jobs > 0 ? jobs : wanted < MOST_JOBS_EACH ? wanted : MOST_JOBS_EACH;
    cuda->pass.shared_room = room;
    cuda->pass.threads = threads >= WARP ? threads / WARP * WARP : most;
    return LR_OK;
}

/* Orders the events. ordering_bytes: the memory that ordering takes. */
static lr_status order_events(struct listmode_cuda *cuda, struct lr_cuda_list_plan_params *plan, int64_t ordering_bytes)
{
    const int64_t sums = (cuda->plan.num_numbers + plan->most_partial) * (int64_t)sizeof(float);

    /* Lines are stored if they contain everything that kernels need (make_line, find_path), and if they fit into
     * lr_cuda_list_budget() and the free memory. */
    const struct lr_listmode_model *model = cuda->params.model;
    const bool is_exact = model->kernel == LR_LISTMODE_EXACT;
    const char *const asked = setting("LR_TEST_LISTMODE_LINES");
    const double least = lr_listmode_least_sigma_mm(cuda->params.events);
    double edge = 0;
    for (int axis = 0; axis < 3; axis++) edge = fmax(edge, model->grid.voxel_mm[axis]);
    const bool has_all = is_exact || (!model->tube.as_paper && sqrt(3.0) * edge < 0.5 * least);
    const size_t each = is_exact ? sizeof(lr_cuda_list_path) : sizeof(lr_cuda_list_line);
    const int64_t more = cuda->params.events->layout.count * (int64_t)each;
    void *lines = NULL;
    if (has_all && (asked == NULL || strcmp(asked, "found") != 0) &&
        ordering_bytes + sums + more <= lr_cuda_list_budget(&cuda->params)) {
        cuda->memory.log = NULL; /* no error is logged; without stored lines, kernels find lines when needed */
        lines = lr_cuda_list_allocate(&cuda->memory, "lines", NULL, more);
        cuda->memory.log = cuda->params.log;
        cuda->memory.failed = false; /* blocks that follow can still be allocated */
    }
    const struct lr_cuda_list_order_params order = {.backend = &cuda->params,
                                                    .pass = &cuda->pass,
                                                    .lines = is_exact ? NULL : lines,
                                                    .paths = is_exact ? lines : NULL};
    plan->order = &cuda->order;
    LR_TRY(lr_cuda_list_order_init(&cuda->order, &order));
    cuda->pass.events.lines = order.lines;
    cuda->pass.events.paths = order.paths;
    return LR_OK;
}

static lr_status open_here(struct listmode_cuda *cuda)
{
    const struct lr_listmode_backend_params *params = &cuda->params;
    struct lr_cuda_list_plan_params plan = {.model = params->model, .events = params->events, .log = params->log};
    LR_TRY(look_at_device(cuda, &plan));
    LR_TRY(exact_init(&cuda->exact, params));
    LR_TRY(lr_cuda_list_plan_init(&cuda->plan, &plan));

    /* Events are streamed if the device has no memory for them beside the image and the sums. */
    const struct lr_cuda_list_shares shares = lr_cuda_list_share_memory(params, cuda->plan.num_numbers);
    plan.most_partial = shares.most_sums;
    cuda->are_streamed = params->events->layout.count * EVENT_BYTES > shares.for_events;
    if (cuda->are_streamed) {
        const int64_t each = shares.for_events / STREAM_SLOTS / EVENT_BYTES;
        const int64_t whole = (each > LEAST_BATCH ? each : LEAST_BATCH) / LR_CUDA_LIST_PIECE * LR_CUDA_LIST_PIECE;
        plan.most_events = whole < MOST_BATCH ? whole : MOST_BATCH;
    }
    const bool by_steps = params->variant != LR_LISTMODE_FASTEST;
    if (by_steps) cuda->are_streamed = true; /* steps have their own copy of the events */
    /* Streamed events come from the host. The plan reads the host's events, too, unless the device orders the events.
     * If only the device has the events, it must therefore have memory to order them. */
    const int64_t ordering_bytes = cuda->are_streamed ? INT64_MAX : lr_cuda_list_order_bytes(params->events);
    const bool may_order = ordering_bytes <= lr_cuda_list_budget(params);
    if (!params->events->is_arranged && !may_order) {
        return lr_error(params->log, LR_FAILED,
                        "events are on the CUDA device, which has no memory left to order them: allow more");
    }

    /* Sets the parameters that all passes have in common. */
    lr_cuda_list_pass *pass = &cuda->pass;
    struct lr_cuda_list_memory *memory = &cuda->memory;
    memcpy(pass->frames, cuda->plan.frames, sizeof(pass->frames));
    pass->tube = cuda->plan.tube;
    for (int g = 0; g < LR_LISTMODE_GROUPS; g++) /* index 0: without time of flight, 1: with it */
        pass->has_events[lr_listmode_group_has_tof(g)] |= lr_listmode_has_group(params->events, g);
    pass->is_line = params->model->kernel != LR_LISTMODE_TUBE;
    pass->as_paper = params->model->tube.as_paper;
    pass->stream = cuda->stream;
    LR_TRY(lr_cuda_list_tables_init(pass, params, cuda->are_streamed, memory));
    const lr_cuda_list_exact *exact = &cuda->exact;
    pass->exact = *exact;
    if (exact->modules != NULL) {
        const lr_scanner *scanner = params->model->scanner;
        pass->exact.modules = lr_cuda_list_allocate(memory, "modules", exact->modules,
                                                    scanner->num_modules * (int64_t)sizeof(*exact->modules));
        pass->exact.module_of = lr_cuda_list_allocate(memory, "modules of crystals", exact->module_of,
                                                      scanner->num_crystals * (int64_t)sizeof(*exact->module_of));
    }
    pass->numbers = lr_cuda_list_allocate(memory, "an image in slices", NULL,
                                          cuda->plan.num_numbers * (int64_t)sizeof(*pass->numbers));
    LR_TRY(memory->failed ? LR_FAILED : LR_OK);
    if (by_steps) {
        const int64_t tile_bytes = plan.shared_room < STEP_BYTES ? plan.shared_room : STEP_BYTES;
        cuda->steps = (struct lr_cuda_list_steps){.params = params, .pass = pass, .tile_bytes = (int32_t)tile_bytes};
        return lr_cuda_list_steps_init(&cuda->steps, memory);
    }
    if (may_order) LR_TRY(order_events(cuda, &plan, ordering_bytes));
    struct lr_cuda_list_plan *dealt = &cuda->plan;
    LR_TRY(lr_cuda_list_plan_deal(dealt, &plan));
    pass->chunks =
        lr_cuda_list_allocate(memory, "events", dealt->chunks, dealt->num_chunks * (int64_t)sizeof(*dealt->chunks));
    pass->jobs = lr_cuda_list_allocate(memory, "events", dealt->jobs, dealt->num_jobs * (int64_t)sizeof(*dealt->jobs));
    LR_TRY(wait(cuda, "events"));
    pass->shared_bytes = dealt->shared_bytes;
    pass->partial =
        lr_cuda_list_allocate(memory, "values of slabs", NULL, dealt->most_partial * (int64_t)sizeof(*pass->partial));
    LR_TRY(memory->failed ? LR_FAILED : LR_OK);
    return cuda->are_streamed ? stream_init(cuda, plan.most_events) : LR_OK;
}

static const struct lr_backend_fns backend_fns = {.name = "cuda",
                                                  .has_parts = true,
                                                  .voxel_bytes = 20,
                                                  .project = project,
                                                  .rows = rows,
                                                  .device_seconds = device_seconds,
                                                  .device_clock = device_clock,
                                                  .destroy = destroy};

struct lr_cuda_list_pieces *lr_cuda_list_pieces_of(const struct lr_backend *backend)
{
    return backend->fns == &backend_fns ? &((struct listmode_cuda *)backend->self)->pieces : NULL;
}

lr_status lr_listmode_cuda_create(const struct lr_listmode_backend_params *params, struct lr_backend *backend)
{
    struct listmode_cuda *cuda = lr_alloc(1, sizeof(*cuda), "the cuda backend", params->log);
    if (cuda == NULL) return LR_FAILED;
    cuda->params = *params;
    cuda->stream = params->place->cuda_stream;
    cuda->projections = (struct lr_cuda_watch){.what = "a clock", .log = params->log, .most_laps = MOST_LAPS};
    cuda->memory = (struct lr_cuda_list_memory){.stream = cuda->stream, .log = params->log};
    cuda->image = cuda->values = cuda->map = cuda->memory;
    lr_status status = enter(cuda);
    if (status == LR_OK) status = leave(cuda, open_here(cuda));
    if (status != LR_OK) {
        destroy(cuda);
        return status;
    }
    backend->fns = &backend_fns;
    backend->self = cuda;
    backend->place = params->place;
    backend->is_gpu = true;
    snprintf(backend->device, sizeof(backend->device), "%s", params->place->device);
    return LR_OK;
}
