/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "fake_cuda.h"

#include "base/log.h"
#include "base/parallel.h"
#include "cuda_interop/lend.h"
#include "device/kinds.h"
#include "listmode/backend.h"
#include "plugin/plugin.h"
#include "test.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

struct fake_cuda fake_cuda = {.renders = -1};
__thread int fake_current = FAKE_CURRENT;

/* Guards fake_cuda and the list of held blocks. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void add_to(int *number, int more)
{
    pthread_mutex_lock(&mutex);
    *number += more;
    pthread_mutex_unlock(&mutex);
}

int fake_fault(void)
{
    pthread_mutex_lock(&mutex);
    fake_cuda.calls++;
    const bool fails = fake_cuda.fails_in > 0 && --fake_cuda.fails_in == 0;
    pthread_mutex_unlock(&mutex);
    return fails ? cudaErrorMemoryAllocation : 0;
}

void fake_fail_in(int calls)
{
    fake_cuda.fails_in = calls;
}

/* Result of a call that has no effect if it fails. */
#define TRY_CALL()                                                                                                     \
    do {                                                                                                               \
        const int fault_ = fake_fault();                                                                               \
        if (fault_ != 0) return (cudaError_t)fault_;                                                                   \
    } while (0)

/* --- errors and devices --- */

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "no device";
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    TRY_CALL();
    *count = fake_cuda.is_absent ? 0 : FAKE_DEVICES;
    return fake_cuda.is_absent ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    TRY_CALL();
    *device = fake_current;
    return cudaSuccess;
}

/* Setting FAKE_CURRENT again never fails, so that tests can check that callers do it. */
cudaError_t cudaSetDevice(int device)
{
    assert_in_range(device, 0, FAKE_CURRENT);
    if (device != FAKE_CURRENT) TRY_CALL();
    fake_current = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    TRY_CALL();
    *properties = (struct cudaDeviceProp){.totalGlobalMem = (size_t)1 << 33, .major = 9};
    snprintf(properties->name, sizeof(properties->name), "fake device %d", device);
    return cudaSuccess;
}

/* Each process has a device of its own, unless processes are to share one; the device's number does not matter. */
cudaError_t cudaDeviceGetPCIBusId(char *name, int size, int device)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    const bool is_shared = getenv("LR_TEST_SHARED_GPU") != NULL;
    TRY_CALL();
    snprintf(name, (size_t)size, "fake:%d.%s", is_shared ? 0 : device, is_shared || rank == NULL ? "0" : rank);
    return cudaSuccess;
}

int lr_cuda_try_vectors(void)
{
    return fake_fault();
}

/* --- memory and other objects that must be given back --- */

enum { MOST_HELD = 256, OF_HOST = -1, PINNED = -2 };

static struct held {
    void *memory; /* NULL = none */
    int device;   /* OF_HOST for pinned memory, streams and events */
} all_held[MOST_HELD];

/* To be called with the mutex locked. */
static struct held *find_held(const void *memory)
{
    for (int k = 0; k < MOST_HELD; k++)
        if (all_held[k].memory == memory) return &all_held[k];
    return NULL;
}

/* True if there was room, and the object was not in the list. */
static bool add_held(void *memory, int device)
{
    pthread_mutex_lock(&mutex);
    struct held *held = find_held(NULL);
    const bool is_new = find_held(memory) == NULL && held != NULL;
    if (is_new) {
        *held = (struct held){memory, device};
        fake_cuda.held++;
    }
    pthread_mutex_unlock(&mutex);
    return is_new;
}

/* True if the object was in the list, on that device. */
static bool remove_held(void *memory, int device)
{
    pthread_mutex_lock(&mutex);
    struct held *held = find_held(memory);
    const bool was_there = memory != NULL && held != NULL && held->device == device;
    if (was_there) {
        *held = (struct held){0};
        fake_cuda.held--;
    }
    pthread_mutex_unlock(&mutex);
    return was_there;
}

/* Memory aligned as that of CUDA, filled with 0xff bytes, which no test writes. */
static void *hold(size_t bytes, int device)
{
    const size_t whole = (bytes + 255) / 256 * 256;
    void *memory = non_null(aligned_alloc(256, whole));
    memset(memory, 0xff, whole);
    assert_true(add_held(memory, device));
    return memory;
}

static void let_go(void *memory, int device)
{
    assert_true(remove_held(memory, device));
    free(memory);
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    TRY_CALL();
    if (bytes >> 33 > 0) return cudaErrorMemoryAllocation;
    *memory = hold(bytes, fake_current);
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    let_go(memory, fake_current);
    return cudaSuccess;
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *texture, const struct cudaResourceDesc *resource,
                                    const struct cudaTextureDesc *texels, const struct cudaResourceViewDesc *view)
{
    TRY_CALL();
    assert_true(resource->resType == cudaResourceTypeLinear && texels->readMode == cudaReadModeElementType && !view);
    *texture = (cudaTextureObject_t)(uintptr_t)resource->res.linear.devPtr;
    return cudaSuccess;
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture)
{
    assert_true(texture != 0);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **memory, size_t bytes)
{
    TRY_CALL();
    *memory = hold(bytes, OF_HOST);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    let_go(memory, OF_HOST);
    return cudaSuccess;
}

/* An array of the host may be pinned only once, until it is released. */
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
    assert_all(memory != NULL, bytes > 0);
    assert_int_equal(flags, cudaHostRegisterDefault);
    TRY_CALL();
    assert_true(add_held(memory, PINNED));
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory)
{
    assert_true(remove_held(memory, PINNED));
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *memory)
{
    TRY_CALL();
    const void *begin = (const void *)((uintptr_t)memory & ~(uintptr_t)255);
    pthread_mutex_lock(&mutex);
    const struct held *held = memory != NULL ? find_held(begin) : NULL;
    const int device = held != NULL ? held->device : OF_HOST;
    pthread_mutex_unlock(&mutex);
    const bool is_device = device >= 0;
    *attributes = (struct cudaPointerAttributes){is_device ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered,
                                                 is_device ? device : -1};
    return cudaSuccess;
}

/* --- streams --- */

struct fake_event {
    struct fake_stream *stream; /* in which it was last recorded; NULL = none */
    int64_t done;               /* number of the stream's steps before the event */
};

/* One of: bytes that are copied or set (from is NULL), a kernel, a function of the host, or an event to wait for. */
struct step {
    char *to;
    const char *from;
    size_t bytes;
    void (*run)(const void *pass);                         /* a kernel */
    _Alignas(16) char pass[sizeof(lr_cuda_convolve_pass)]; /* the largest pass */
    void (*call)(void *user);                              /* a function of the host */
    void *user;
    struct fake_event event;
};

enum { MOST_STEPS = 256 };

struct fake_stream {
    struct step steps[MOST_STEPS];
    int64_t told, done;
};

enum { MOST_STREAMS = 256 };

static struct fake_stream default_stream;
static struct fake_stream *streams[MOST_STREAMS] = {&default_stream}; /* existing streams; NULL = free */

static struct fake_stream *stream_of(cudaStream_t stream)
{
    return stream != NULL ? stream : &default_stream;
}

static void run_until(struct fake_stream *stream, int64_t end);

static void run_step(const struct step *step)
{
    if (step->run != NULL)
        step->run(step->pass);
    else if (step->call != NULL)
        step->call(step->user);
    else if (step->event.stream != NULL)
        run_until(step->event.stream, step->event.done);
    else if (step->from != NULL)
        memcpy(step->to, step->from, step->bytes);
    else
        memset(step->to, 0, step->bytes);
}

static void run_until(struct fake_stream *stream, int64_t end)
{
    while (stream->done < end) run_step(&stream->steps[stream->done++ % MOST_STEPS]);
}

static cudaError_t tell(cudaStream_t stream, const struct step *step)
{
    struct fake_stream *to = stream_of(stream);
    TRY_CALL();
    assert_int_not_equal(fake_current, FAKE_CURRENT);
    if (to->told - to->done == MOST_STEPS) run_until(to, to->done + 1);
    to->steps[to->told++ % MOST_STEPS] = *step;
    return cudaSuccess;
}

int fake_launch(void (*run)(const void *pass), const void *pass, size_t bytes, void *stream)
{
    struct step step = {.run = run};
    assert_true(bytes <= sizeof(step.pass));
    memcpy(step.pass, pass, bytes);
    add_to(&fake_cuda.launches, 1);
    return tell(stream, &step);
}

int fake_call(void (*call)(void *user), void *user, void *stream)
{
    return tell(stream, &(struct step){.call = call, .user = user});
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    assert_int_equal(kind, cudaMemcpyDefault);
    return tell(stream, &(struct step){.to = to, .from = from, .bytes = bytes});
}

cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream)
{
    assert_int_equal(byte, 0);
    return tell(stream, &(struct step){.to = memory, .bytes = bytes});
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    struct fake_stream *to = stream_of(stream);
    run_until(to, to->told); /* also if the call fails, since memory may be freed next */
    TRY_CALL();
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    assert_int_equal(flags, cudaStreamNonBlocking);
    TRY_CALL();
    *stream = hold(sizeof(**stream), OF_HOST);
    (*stream)->told = (*stream)->done = 0;
    pthread_mutex_lock(&mutex);
    int free_place = 0;
    while (streams[free_place] != NULL) assert_true(++free_place < MOST_STREAMS);
    streams[free_place] = *stream;
    pthread_mutex_unlock(&mutex);
    return cudaSuccess;
}

void fake_forget(void)
{
    for (int k = 0; k < MOST_HELD; k++) {
        if (all_held[k].device != PINNED) free(all_held[k].memory);
        all_held[k] = (struct held){0};
    }
    fake_cuda.held = 0;
    for (int k = 0; k < MOST_STREAMS; k++)
        if (streams[k] != &default_stream) streams[k] = NULL;
}

static void do_nothing(void *user)
{
    (void)user;
}

/* Other streams may still have to wait for events of this stream; they find the events done. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    assert_int_equal(stream->told, stream->done);
    pthread_mutex_lock(&mutex);
    for (int k = 0; k < MOST_STREAMS; k++) {
        struct fake_stream *other = streams[k];
        if (other == stream) streams[k] = NULL;
        if (other == stream || other == NULL) continue;
        for (int64_t n = other->done; n < other->told; n++)
            if (other->steps[n % MOST_STEPS].event.stream == stream)
                other->steps[n % MOST_STEPS] = (struct step){.call = do_nothing};
    }
    pthread_mutex_unlock(&mutex);
    let_go(stream, OF_HOST);
    add_to(&fake_cuda.destroyed, 1);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    assert_int_equal(flags, 0);
    return tell(stream, &(struct step){.event = *event});
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    assert_true(flags == cudaEventDisableTiming || flags == cudaEventDefault);
    TRY_CALL();
    *event = hold(sizeof(**event), OF_HOST);
    **event = (struct fake_event){0};
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    let_go(event, OF_HOST);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    TRY_CALL();
    *event = (struct fake_event){stream_of(stream), stream_of(stream)->told};
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    TRY_CALL();
    if (event->stream != NULL) /* otherwise there is no record to wait for */
        run_until(event->stream, event->done);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    (void)begin;
    (void)end;
    *milliseconds = 1;
    return cudaSuccess;
}

/* --- buffers lent by OpenGL: copies, whose contents go back to OpenGL --- */

static char *lent, *arriving; /* one at a time; NULL = none */

lr_status lr_cuda_check(int error, const char *what, const lr_log *log)
{
    return error == 0 ? LR_OK : lr_error(log, LR_FAILED, "%s: CUDA says %d", what, error);
}

bool lr_cuda_renders(int device)
{
    return fake_cuda.renders == device || (device == 0 && getenv("LR_TEST_FAKE_RENDERS") != NULL);
}

/* Fills the copy with 0xff bytes, so that later reads show. */
static void end_lending(size_t bytes)
{
    memset(lent, 0xff, bytes);
    free(lent);
    free(arriving);
    lent = arriving = NULL;
}

/* The bytes are copied when the default stream reaches this step. */
lr_status lr_cuda_take(const struct lr_cuda_object *objects, int count, struct gl_context *ctx)
{
    const struct gl_buffer *buffer = objects->buffer;
    const size_t bytes = (size_t)buffer->size_bytes;
    assert_int_equal(count, 1);
    assert_null(lent);
    lent = malloc(bytes);
    arriving = malloc(bytes);
    memset(lent, 0xff, bytes);
    assert_ok(gl_context_make_current(ctx), gl_buffer_read(buffer, 0, buffer->size_bytes, arriving));
    gl_context_release(ctx);
    lr_status status = lr_cuda_check((int)tell(NULL, &(struct step){.to = lent, .from = arriving, .bytes = bytes}),
                                     "a buffer that is lent", gl_context_log(ctx));
    if (status != LR_OK) {
        end_lending(bytes);
        return status;
    }
    add_to(&fake_cuda.lent, 1);
    return LR_OK;
}

/* OpenGL continues when the default stream has done all queued steps. The buffer goes back even if the call fails, so
 * that the next buffer can be lent. */
lr_status lr_cuda_give(const struct lr_cuda_object *objects, int count, struct gl_context *ctx)
{
    struct gl_buffer *buffer = objects->buffer;
    assert_int_equal(count, 1);
    assert_non_null(lent);
    /* Runs the steps after all steps that their events wait for; streams may run in this order. */
    for (int64_t k = default_stream.done; k < default_stream.told; k++) {
        const struct fake_event *event = &default_stream.steps[k % MOST_STEPS].event;
        if (event->stream != NULL) run_until(event->stream, event->done);
    }
    run_until(&default_stream, default_stream.told);
    assert_ok(gl_context_make_current(ctx), gl_buffer_upload(buffer, 0, buffer->size_bytes, lent));
    gl_context_release(ctx);
    end_lending((size_t)buffer->size_bytes);
    return lr_cuda_check(fake_fault(), "a buffer that is given back", gl_context_log(ctx));
}

void *lr_cuda_address(const struct lr_cuda_object *object, const lr_log *log)
{
    (void)object;
    return lr_cuda_check(fake_fault(), "a buffer that is lent", log) == LR_OK ? lent : NULL;
}

/* Tables of vectors, and of list mode if a test links it; other tables would require a device. */
const struct lr_cuda_plugin lr_cuda_plugin = {.plugin = {lr_plugin_build, lr_pool_use, lr_errors_use},
                                              .places = &lr_place_cuda_fns,
#ifdef LR_TEST_FAKE_LISTMODE
                                              .listmode = lr_listmode_cuda_create,
                                              .arrange = lr_listmode_cuda_arrange
#endif
};
