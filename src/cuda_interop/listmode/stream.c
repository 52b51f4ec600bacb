/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/listmode/stream.h"

#include "base/log.h"
#include "cuda_interop/lend.h"

static lr_status check(const struct lr_cuda_list_stream *stream, cudaError_t error)
{
    return lr_cuda_check((int)error, "events on their way", stream->params.log);
}

/* The host's arrays, from an event on. */
static void find_arrays(const struct lr_listmode_events *events, int64_t begin, void *arrays[LR_CUDA_LIST_ARRAYS])
{
    arrays[0] = events->crystals[0] + begin;
    arrays[1] = events->crystals[1] + begin;
    arrays[2] = events->tof_mm + begin;
    arrays[3] = events->number + begin;
}

static lr_status make_slots(struct lr_cuda_list_stream *stream)
{
    const int64_t bytes = stream->params.most_events * (int64_t)sizeof(int32_t);
    for (int slot = 0; slot < LR_CUDA_LIST_SLOTS; slot++) {
        for (int k = 0; k < LR_CUDA_LIST_ARRAYS; k++) {
            stream->slots[slot][k] =
                lr_cuda_list_allocate(&stream->memory, &(struct lr_cuda_list_block){"events", NULL, bytes});
            LR_TRY(stream->slots[slot][k] != NULL ? LR_OK : LR_FAILED);
        }
        LR_TRY(check(stream, cudaEventCreateWithFlags(&stream->copied[slot], cudaEventDisableTiming)));
        LR_TRY(check(stream, cudaEventCreateWithFlags(&stream->done[slot], cudaEventDisableTiming)));
    }
    return LR_OK;
}

static void pin(struct lr_cuda_list_stream *stream)
{
    const size_t bytes = (size_t)stream->params.events->layout.count * sizeof(int32_t);
    void *arrays[LR_CUDA_LIST_ARRAYS];
    find_arrays(stream->params.events, 0, arrays);
    for (int k = 0; k < LR_CUDA_LIST_ARRAYS; k++)
        if (cudaHostRegister(arrays[k], bytes, cudaHostRegisterDefault) == cudaSuccess)
            stream->pinned[k] = arrays[k];
        else
            (void)cudaGetLastError(); /* nothing that comes after has to do with it */
}

lr_status lr_cuda_list_stream_init(struct lr_cuda_list_stream *stream, const struct lr_cuda_list_stream_params *params)
{
    *stream = (struct lr_cuda_list_stream){.params = *params, .memory = {.stream = params->work, .log = params->log}};
    LR_TRY(check(stream, cudaStreamCreateWithFlags(&stream->copies, cudaStreamNonBlocking)));
    LR_TRY(make_slots(stream));
    pin(stream);
    return LR_OK;
}

void lr_cuda_list_stream_finish(struct lr_cuda_list_stream *stream)
{
    if (stream->copies != NULL) {
        (void)cudaStreamSynchronize(stream->copies);
        cudaStreamDestroy(stream->copies);
    }
    for (int k = 0; k < LR_CUDA_LIST_ARRAYS; k++)
        if (stream->pinned[k] != NULL) cudaHostUnregister(stream->pinned[k]);
    for (int slot = 0; slot < LR_CUDA_LIST_SLOTS; slot++) {
        if (stream->copied[slot] != NULL) cudaEventDestroy(stream->copied[slot]);
        if (stream->done[slot] != NULL) cudaEventDestroy(stream->done[slot]);
    }
    lr_cuda_list_free(&stream->memory);
    *stream = (struct lr_cuda_list_stream){0};
}

static lr_status copy_batch(struct lr_cuda_list_stream *stream, const struct lr_cuda_list_batch *batch, int slot)
{
    void *arrays[LR_CUDA_LIST_ARRAYS];
    const size_t bytes = (size_t)batch->num_events * sizeof(int32_t);
    find_arrays(stream->params.events, batch->begin, arrays);
    if (stream->held[slot] != NULL) LR_TRY(check(stream, cudaEventSynchronize(stream->done[slot])));
    stream->held[slot] = NULL;
    for (int k = 0; k < LR_CUDA_LIST_ARRAYS; k++) {
        LR_TRY(check(stream,
                     cudaMemcpyAsync(stream->slots[slot][k], arrays[k], bytes, cudaMemcpyDefault, stream->copies)));
    }
    LR_TRY(check(stream, cudaEventRecord(stream->copied[slot], stream->copies)));
    return check(stream, cudaStreamWaitEvent(stream->params.work, stream->copied[slot], 0));
}

lr_status lr_cuda_list_stream_enter(struct lr_cuda_list_stream *stream, const struct lr_cuda_list_batch *batch,
                                    lr_cuda_list_events *events)
{
    const bool is_held = stream->held[1 - stream->next] == batch;
    stream->next = is_held ? 1 - stream->next : stream->next;
    if (stream->held[stream->next] != batch) LR_TRY(copy_batch(stream, batch, stream->next));
    int32_t *const *slot = stream->slots[stream->next];
    events->crystals[0] = slot[0];
    events->crystals[1] = slot[1];
    events->tof_mm = (const float *)(void *)slot[2];
    events->number = slot[3];
    stream->held[stream->next] = batch;
    return LR_OK;
}

lr_status lr_cuda_list_stream_leave(struct lr_cuda_list_stream *stream)
{
    const int slot = stream->next;
    stream->next = 1 - slot;
    return check(stream, cudaEventRecord(stream->done[slot], stream->params.work));
}
