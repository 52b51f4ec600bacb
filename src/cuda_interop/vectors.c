/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Vectors in the memory of a CUDA device. Transfers from and to the host are plain asynchronous copies, followed by a
 * wait. The driver copies pageable memory in pieces, as fast as a thread of the library could do this. It copies
 * page-locked memory of the caller directly. */
#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/lend.h"
#include "cuda_interop/vector_passes.h"
#include "device/kinds.h"
#include "device/vector.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After the sums of the groups, there is one row of sums for each slot (device/vector.h). */
enum {
    ROW_BYTES = LR_VECTOR_NUM_SUMS * (int)sizeof(double),
    SUMS_BYTES = (LR_CUDA_VECTOR_GROUPS + LR_NUM_SLOTS) * ROW_BYTES
};

struct lr_cuda_place {
    int device;
    int before; /* the thread's previous device, which leave() makes current again */
    cudaStream_t stream;
    bool owns_stream;
    cudaEvent_t event;                       /* used to make one stream wait for another */
    cudaEvent_t sent[LR_LATER_TURNS];        /* recorded after the sums of each turn */
    bool is_sent[LR_NUM_TURNS];              /* true if an event has been recorded after all sums of the turn */
    double (*sums)[LR_VECTOR_NUM_SUMS];      /* [LR_CUDA_VECTOR_GROUPS + LR_NUM_SLOTS] on the device */
    double (*host_sums)[LR_VECTOR_NUM_SUMS]; /* [LR_NUM_SLOTS], page-locked */
    bool is_under_way[LR_NUM_SLOTS];         /* true while the copy to the slot's host_sums may still be in progress */
};

/* --- functions for the place's device --- */

static lr_status check(cudaError_t error, const char *what, const lr_place *place)
{
    return lr_cuda_check((int)error, what, &place->log);
}

static lr_status enter(const lr_place *place)
{
    struct lr_cuda_place *cuda = place->cuda;
    LR_TRY(lr_driver_check(&place->cuda_owner, "CUDA", &place->log));
    LR_TRY(check(cudaGetDevice(&cuda->before), "the current device", place));
    return cuda->before != cuda->device ? check(cudaSetDevice(cuda->device), place->device, place) : LR_OK;
}

static lr_status leave(const lr_place *place, lr_status status)
{
    const struct lr_cuda_place *cuda = place->cuda;
    if (cuda->before != cuda->device) cudaSetDevice(cuda->before);
    return status;
}

static lr_status wait(const lr_place *place, const char *what)
{
    return check(cudaStreamSynchronize(place->cuda->stream), what, place);
}

/* --- places --- */

/* Finds the name of the place's device, and makes everything that work on vectors needs: the stream, the events and the
 * memory for sums. The caller closes these even after a failure. */
static lr_status open_work(lr_place *place, void *stream)
{
    struct lr_cuda_place *cuda = place->cuda;
    struct cudaDeviceProp properties;
    LR_TRY(check(cudaGetDeviceProperties(&properties, cuda->device), "a CUDA device", place));
    snprintf(place->device, sizeof(place->device), "%.*s", (int)sizeof(place->device) - 1, properties.name);
    place->memory_bytes = (int64_t)properties.totalGlobalMem;
    const cudaError_t error = (cudaError_t)lr_cuda_try_vectors();
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
        return lr_error(&place->log, LR_NO_DEVICE,
                        "%s, of compute capability %d.%d, does not run this build's kernels (%s): build "
                        "with a CMAKE_CUDA_ARCHITECTURES that has it, or choose another device",
                        place->device, properties.major, properties.minor, cudaGetErrorString(error));
    }

    cuda->stream = stream;
    if (stream == NULL) {
        LR_TRY(check(cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking), "a stream for vectors", place));
        cuda->owns_stream = true;
    }
    LR_TRY(check(cudaEventCreateWithFlags(&cuda->event, cudaEventDisableTiming), "an event for vectors", place));
    for (int turn = 0; turn < LR_LATER_TURNS; turn++) {
        LR_TRY(
            check(cudaEventCreateWithFlags(&cuda->sent[turn], cudaEventDisableTiming), "an event for vectors", place));
    }
    LR_TRY(check(cudaMalloc((void **)&cuda->sums, SUMS_BYTES), "sums of vectors", place));
    LR_TRY(check(cudaMallocHost((void **)&cuda->host_sums, LR_NUM_SLOTS * ROW_BYTES), "sums of vectors", place));
    place->cuda_stream = cuda->stream;
    return LR_OK;
}

static void close_work(struct lr_cuda_place *cuda)
{
    if (cuda->host_sums != NULL) cudaFreeHost(cuda->host_sums);
    if (cuda->sums != NULL) cudaFree(cuda->sums);
    for (int turn = 0; turn < LR_LATER_TURNS; turn++)
        if (cuda->sent[turn] != NULL) cudaEventDestroy(cuda->sent[turn]);
    if (cuda->event != NULL) cudaEventDestroy(cuda->event);
    if (cuda->owns_stream) cudaStreamDestroy(cuda->stream);
}

static lr_status open_place(const lr_place_params *params, lr_place *place)
{
    static lr_driver_owner owner; /* the process that was the first to ask CUDA for devices */
    int count = 0;
    LR_TRY(lr_driver_claim(&owner, "CUDA", params->log));
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) {
        (void)cudaGetLastError();
        return lr_error(params->log, LR_NO_DEVICE,
                        "no CUDA: there is no device or its driver is too old (%s): install NVIDIA's "
                        "driver (in a container, start it with --gpus all), or leave the choice to the "
                        "library: OpenGL or the processor do it",
                        cudaGetErrorString(error));
    }
    if (params->device >= count) {
        return lr_error(params->log, LR_USAGE,
                        "there is no CUDA device %d: devices are numbered from 0, and there %s %d", params->device,
                        count == 1 ? "is" : "are", count);
    }

    place->cuda = lr_alloc(1, sizeof(*place->cuda), "a place for vectors", params->log);
    if (place->cuda == NULL) return LR_FAILED;
    (void)lr_driver_claim(&place->cuda_owner, "CUDA", params->log); /* cannot fail, because the place has no owner
                                                                       yet */
    place->cuda->device = params->device;
    place->cuda_device = params->device;
    snprintf(place->device, sizeof(place->device), "CUDA device %d", params->device);
    lr_status status = enter(place);
    if (status == LR_OK) {
        status = open_work(place, params->cuda_stream);
        if (status != LR_OK) close_work(place->cuda);
        status = leave(place, status);
    }
    if (status != LR_OK) {
        free(place->cuda);
        place->cuda = NULL;
    }
    return status;
}

static void close_place(lr_place *place)
{
    if (lr_driver_is_own(&place->cuda_owner) && enter(place) == LR_OK) {
        (void)wait(place, "work on vectors");
        close_work(place->cuda);
        (void)leave(place, LR_OK);
    }
    free(place->cuda);
}

/* --- creation --- */

static char *address_of(const lr_vector *vector)
{
    return (char *)vector->storage->block + vector->begin * lr_vector_size(vector);
}

static size_t bytes_of(const lr_vector *vector)
{
    return (size_t)(vector->count * lr_vector_size(vector));
}

static lr_status create(const lr_vector_params *params, int64_t bytes, lr_vector *vector)
{
    const lr_place *place = params->place;
    const size_t room = bytes > 0 ? (size_t)bytes : sizeof(double);
    LR_TRY(enter(place));
    vector->storage = lr_alloc(1, sizeof(*vector->storage), "a vector", params->log);
    if (vector->storage == NULL) return leave(place, LR_FAILED);

    void **block = &vector->storage->block;
    lr_status status = LR_OK;
    const cudaError_t error = cudaMalloc(block, room);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        status = lr_error(params->log, LR_FAILED,
                          "%s: no memory for %.4g MiB on %s: close other programs that use it, or make "
                          "the work smaller or split it",
                          params->name != NULL ? params->name : "a vector", (double)bytes / 0x1p20, place->device);
    } else {
        status = check(error, "a vector", place);
    }
    if (status == LR_OK) {
        status = check(cudaMemsetAsync(*block, 0, room, place->cuda->stream), "a vector", place);
        if (status != LR_OK) cudaFree(*block);
    }
    if (status != LR_OK) free(vector->storage);
    return leave(place, status);
}

static void destroy(lr_vector *vector)
{
    struct lr_storage *storage = vector->storage;
    if (!storage->is_wrapped && lr_driver_is_own(&vector->place->cuda_owner) && enter(vector->place) == LR_OK) {
        (void)wait(vector->place, "work on a vector");
        cudaFree(storage->block);
        (void)leave(vector->place, LR_OK);
    }
    free(storage);
}

static lr_status wrap(const lr_vector_params *params, void *memory, lr_vector *vector)
{
    const lr_place *place = params->place;
    if (vector->count > 0) {
        const int64_t size = lr_vector_size(vector);
        struct cudaPointerAttributes attributes = {0};
        LR_TRY(enter(place));
        LR_TRY(leave(place, check(cudaPointerGetAttributes(&attributes, memory), "memory of the caller's", place)));
        const bool is_device = attributes.type == cudaMemoryTypeDevice;
        if (attributes.type != cudaMemoryTypeManaged && !(is_device && attributes.device == place->cuda->device)) {
            return lr_error(params->log, LR_USAGE,
                            "the memory at %p is not of CUDA device %d (%s) but of %s: copy the numbers "
                            "there, or open a place where they are",
                            memory, place->cuda->device, place->device, is_device ? "another device" : "the host");
        }
        if ((uintptr_t)memory % (uintptr_t)size != 0) {
            return lr_error(params->log, LR_USAGE,
                            "numbers of %d bytes cannot begin at %p: their address must be a multiple of their size",
                            (int)size, memory);
        }
    }
    vector->storage = lr_alloc(1, sizeof(*vector->storage), "a vector", params->log);
    if (vector->storage == NULL) return LR_FAILED;
    *vector->storage = (struct lr_storage){.block = memory, .is_wrapped = true};
    return LR_OK;
}

/* --- copies --- */

static lr_status copy_bytes(const lr_place *place, void *to, const void *from, size_t bytes)
{
    return check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, place->cuda->stream), "a copy of a vector", place);
}

static lr_status copy_and_wait(const lr_place *place, void *to, const void *from, size_t bytes)
{
    LR_TRY(enter(place));
    lr_status status = copy_bytes(place, to, from, bytes);
    status = status == LR_OK ? wait(place, "a copy of a vector") : status;
    return leave(place, status);
}

static lr_status write(lr_vector *vector, const void *numbers)
{
    vector->place->traffic.to_device += (int64_t)bytes_of(vector);
    return copy_and_wait(vector->place, address_of(vector), numbers, bytes_of(vector));
}

static lr_status read(const lr_vector *vector, void *numbers)
{
    vector->place->traffic.to_host += (int64_t)bytes_of(vector);
    return copy_and_wait(vector->place, numbers, address_of(vector), bytes_of(vector));
}

static lr_status copy(const lr_vector *from, lr_vector *to)
{
    if (address_of(from) == address_of(to)) return LR_OK;
    LR_TRY(enter(to->place));
    return leave(to->place, copy_bytes(to->place, address_of(to), address_of(from), bytes_of(to)));
}

/* --- operations --- */

static lr_cuda_vector_pass describe(const lr_vector *y, const lr_vector *const *in, int num_inputs)
{
    lr_cuda_vector_pass pass = {.precision = y->precision,
                                .other = y->precision,
                                .y = address_of(y),
                                .count = y->count,
                                .sums = y->place->cuda->sums};
    for (int k = 0; k < num_inputs; k++) {
        if (in[k] != NULL) {
            pass.in[k] = address_of(in[k]);
            pass.other = in[k]->precision;
        }
    }
    return pass;
}

static lr_status run_alone(const lr_place *place, enum lr_cuda_vector_work work, const lr_cuda_vector_pass *pass)
{
    LR_TRY(enter(place));
    const cudaError_t error = (cudaError_t)lr_cuda_launch_vector(work, pass, place->cuda->stream);
    return leave(place, check(error, "work on a vector", place));
}

static lr_status fill(lr_vector *vector, double value)
{
    lr_cuda_vector_pass pass = describe(vector, NULL, 0);
    pass.scalar = value;
    return run_alone(vector->place, LR_CUDA_VECTOR_FILL, &pass);
}

static lr_status apply(const struct lr_vector_task *task)
{
    lr_cuda_vector_pass pass = describe(&task->y, task->in, LR_VECTOR_INPUTS);
    pass.op = task->op;
    pass.scalar = task->scalar;
    pass.lowest = task->floor;
    return run_alone(task->y.place, LR_CUDA_VECTOR_APPLY, &pass);
}

static lr_status relative_differences(const lr_relative_differences *differences)
{
    const lr_place *place = differences->y->place;
    lr_cuda_differences_pass pass = {.what = differences->what,
                                     .precision = differences->y->precision,
                                     .y = address_of(differences->y),
                                     .x = address_of(differences->x),
                                     .kappa = differences->kappa != NULL ? address_of(differences->kappa) : NULL,
                                     .gamma = differences->gamma,
                                     .epsilon = differences->epsilon,
                                     .scale = differences->scale};
    memcpy(pass.size, differences->size, sizeof(pass.size));
    memcpy(pass.weights, differences->weights, sizeof(pass.weights));
    LR_TRY(enter(place));
    return leave(place, check((cudaError_t)lr_cuda_launch_differences(&pass, place->cuda->stream),
                              "relative differences", place));
}

static lr_status convolve(const lr_convolution *convolution)
{
    const lr_place *place = convolution->y->place;
    lr_cuda_convolve_pass pass = {.precision = convolution->y->precision,
                                  .y = address_of(convolution->y),
                                  .x = address_of(convolution->x),
                                  .axis = convolution->axis,
                                  .reach = convolution->reach};
    memcpy(pass.size, convolution->size, sizeof(pass.size));
    memcpy(pass.weights, convolution->weights, (size_t)(convolution->reach + 1) * sizeof(*pass.weights));
    LR_TRY(enter(place));
    return leave(place,
                 check((cudaError_t)lr_cuda_launch_convolve(&pass, place->cuda->stream), "a convolution", place));
}

static lr_status add_terms(const struct lr_vector_terms *terms)
{
    const lr_place *place = terms->y->place;
    const lr_cuda_terms_pass pass = {.precision = terms->y->precision,
                                     .y = address_of(terms->y),
                                     .pieces = address_of(terms->pieces),
                                     .count = terms->y->count,
                                     .stride = terms->stride,
                                     .own = terms->own,
                                     .num = terms->num};
    LR_TRY(enter(place));
    return leave(place, check((cudaError_t)lr_cuda_launch_terms(&pass, place->cuda->stream), "sums over ranks", place));
}

/* Adds up the groups on the device and copies the sums to the host. An event that was recorded earlier for the slot's
 * turn does not include these sums, so it is no longer used. */
static lr_status send_sums(lr_place *place, enum lr_cuda_vector_work work, const lr_cuda_vector_pass *pass, int slot)
{
    struct lr_cuda_place *cuda = place->cuda;
    const lr_cuda_join_pass join = {.groups = pass->sums,
                                    .sums = cuda->sums + LR_CUDA_VECTOR_GROUPS + slot,
                                    .num_groups = lr_cuda_vector_groups(pass->count),
                                    .has_largest = work == LR_CUDA_VECTOR_SUMS};
    cuda->is_sent[slot / LR_LATER_SLOTS] = false;
    LR_TRY(enter(place));
    lr_status status = check((cudaError_t)lr_cuda_launch_vector(work, pass, cuda->stream), "work on a vector", place);
    if (status == LR_OK)
        status = check((cudaError_t)lr_cuda_launch_vector_join(&join, cuda->stream), "sums of vectors", place);
    if (status == LR_OK) status = copy_bytes(place, cuda->host_sums + slot, join.sums, ROW_BYTES);
    if (status == LR_OK) {
        place->traffic.to_host += ROW_BYTES;
        cuda->is_under_way[slot] = true;
    }
    return leave(place, status);
}

static lr_status send_later(lr_place *place, int turn)
{
    struct lr_cuda_place *cuda = place->cuda;
    LR_TRY(enter(place));
    const lr_status status = check(cudaEventRecord(cuda->sent[turn], cuda->stream), "sums of vectors", place);
    cuda->is_sent[turn] = status == LR_OK;
    return leave(place, status);
}

static lr_status finish_later(lr_place *place, int slot, double *sums)
{
    struct lr_cuda_place *cuda = place->cuda;
    const int turn = slot / LR_LATER_SLOTS;
    const bool is_sent = cuda->is_sent[turn];
    LR_TRY(enter(place));
    if (cuda->is_under_way[slot]) {
        const lr_status status = is_sent ? check(cudaEventSynchronize(cuda->sent[turn]), "sums of vectors", place)
                                         : wait(place, "sums of vectors");
        if (status != LR_OK) return leave(place, status);
        /* Without an event, the function has waited for the whole stream, so the sums of all slots have arrived. */
        for (int k = 0; k < LR_NUM_SLOTS; k++) cuda->is_under_way[k] &= is_sent && k / LR_LATER_SLOTS != turn;
    }
    memcpy(sums, cuda->host_sums[slot], ROW_BYTES);
    return leave(place, LR_OK);
}

static lr_status begin_sums(const lr_vector *x, const lr_vector *y, int slot)
{
    const lr_cuda_vector_pass pass = describe(x, &y, 1);
    return send_sums(x->place, LR_CUDA_VECTOR_SUMS, &pass, slot);
}

static lr_status begin_fit(const lr_poisson_ratio *ratio, int slot)
{
    const lr_vector *const in[] = {ratio->measured, ratio->additive};
    const lr_cuda_vector_pass pass = describe(ratio->values, in, 2);
    return send_sums(ratio->values->place, LR_CUDA_VECTOR_DIVIDE, &pass, slot);
}

/* --- copies from and to OpenGL --- */

/* Makes the later work on one stream wait for the earlier work on another. A buffer lent by OpenGL belongs to the
 * default stream, NULL (lend.h). */
static lr_status wait_for(const lr_place *place, cudaStream_t before, cudaStream_t after)
{
    cudaError_t error = cudaEventRecord(place->cuda->event, before);
    error = error == cudaSuccess ? cudaStreamWaitEvent(after, place->cuda->event, 0) : error;
    return check(error, "the order of streams", place);
}

static lr_status copy_lent(const lr_vector *gl, const lr_vector *cuda, bool to_cuda)
{
    const struct lr_vector_range range = lr_vector_gl_range(gl);
    const struct lr_cuda_object object = {.buffer = range.buffer};
    const lr_place *place = cuda->place;
    const cudaStream_t stream = place->cuda->stream;
    char *const own = address_of(cuda);
    LR_TRY(lr_cuda_take(&object, 1, gl->place->ctx));
    char *const address = lr_cuda_address(&object, &place->log);
    char *const buffer = address != NULL ? address + range.offset : NULL;
    lr_status status = address != NULL ? wait_for(place, NULL, stream) : LR_FAILED;
    if (status == LR_OK) status = copy_bytes(place, to_cuda ? own : buffer, to_cuda ? buffer : own, bytes_of(cuda));
    if (status == LR_OK) {
        status = wait_for(place, stream, NULL);
        if (status != LR_OK)
            (void)wait(place, "a copy of a vector"); /* the copy must end before OpenGL gets the buffer
                                                                         back */
    }
    const lr_status given = lr_cuda_give(&object, 1, gl->place->ctx);
    return status != LR_OK ? status : given;
}

static lr_status exchange(const lr_vector *from, lr_vector *to, bool *is_done)
{
    const bool to_cuda = to->place->kind == LR_PLACE_CUDA;
    if (from->place->kind == to->place->kind) {
        /* Both vectors are in CUDA memory. The copy runs after earlier work of both streams, and before later work of
         * both. */
        const cudaStream_t source = from->place->cuda->stream, target = to->place->cuda->stream;
        *is_done = true;
        LR_TRY(enter(to->place));
        lr_status copied = wait_for(from->place, source, target);
        if (copied == LR_OK) copied = copy_bytes(to->place, address_of(to), address_of(from), bytes_of(to));
        if (copied == LR_OK) copied = wait_for(to->place, target, source);
        return leave(to->place, copied);
    }
    const lr_vector *gl = to_cuda ? from : to, *cuda = to_cuda ? to : from;
    *is_done = false;
    LR_TRY(gl_context_make_current(gl->place->ctx));
    lr_status status = enter(cuda->place);
    if (status == LR_OK) {
        *is_done = lr_cuda_renders(cuda->place->cuda->device);
        status = leave(cuda->place, *is_done ? copy_lent(gl, cuda, to_cuda) : LR_OK);
    }
    return gl_context_leave(gl->place->ctx, status);
}

const struct lr_place_fns lr_place_cuda_fns = {
    .open = open_place,
    .close = close_place,
    .vectors = {.create = create,
                .destroy = destroy,
                .write = write,
                .read = read,
                .copy = copy,
                .fill = fill,
                .apply = apply,
                .begin_fit = begin_fit,
                .begin_sums = begin_sums,
                .send_later = send_later,
                .finish_later = finish_later,
                .relative_differences = relative_differences,
                .convolve = convolve,
                .add_terms = add_terms},
    .wrap = wrap,
    .exchange = exchange,
    .link = &lr_cuda_link_fns,
};
