/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/listmode/tables.h"

#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/lend.h"

#include <stdlib.h>
#include <string.h>

enum { EVENT_BYTES = 16 };

/* Copies the events to the device, as records or as arrays. order: [count] indices of the arranged events in the order
 * that the step needs. */
static lr_status upload_events(struct lr_cuda_list_steps *steps, const int64_t *order,
                               struct lr_cuda_list_memory *memory)
{
    const struct lr_listmode_events *from = steps->params->events;
    const void *const arrays[] = {from->crystals[0], from->crystals[1], from->tof_mm, from->number};
    enum { NUM_ARRAYS = sizeof(arrays) / sizeof(arrays[0]) };
    const int64_t count = from->layout.count, words = steps->params->variant == LR_LISTMODE_SIMPLE ? NUM_ARRAYS : 1;
    int32_t *host = lr_alloc(count * words, sizeof(*host), "events", memory->log);
    void *uploaded[NUM_ARRAYS] = {NULL};
    lr_status status = host != NULL ? LR_OK : LR_FAILED;
    for (int64_t array = 0; status == LR_OK && array < NUM_ARRAYS; array += words) {
        for (int64_t k = 0; k < count * words; k++)
            memcpy(&host[k], (const int32_t *)arrays[array + k % words] + order[k / words], sizeof(*host));
        uploaded[array] = lr_cuda_list_allocate(memory, "events", host, count * words * (int64_t)sizeof(*host));
        const lr_status waited = lr_cuda_check((int)cudaStreamSynchronize(memory->stream), "events", memory->log);
        status = memory->failed ? LR_FAILED : waited;
    }
    free(host);
    if (words > 1) {
        steps->records = uploaded[0];
    } else {
        steps->events.crystals[0] = uploaded[0];
        steps->events.crystals[1] = uploaded[1];
        steps->events.tof_mm = uploaded[2];
        steps->events.number = uploaded[3];
    }
    return status;
}

lr_status lr_cuda_list_steps_init(struct lr_cuda_list_steps *steps, struct lr_cuda_list_memory *memory)
{
    const struct lr_listmode_backend_params *params = steps->params;
    const struct lr_listmode_events *events = params->events;
    const int64_t count = events->layout.count;
    steps->events = steps->pass->events;
    for (int axis = 0; axis < LR_CUDA_LIST_AXES; axis++) {
        const int64_t bytes = steps->pass->frames[axis].pitch * (int64_t)sizeof(float);
        const int most = (int)steps->tile_bytes;
        if (lr_cuda_list_steps_are_cached(params->variant) && bytes > steps->tile_bytes) {
            return lr_error(params->log, LR_USAGE,
                            "a row of the image across axis %c takes %lld bytes of shared memory, "
                            "and a block has %d: take a smaller grid, or name no variant",
                            "xyz"[axis], (long long)bytes, most);
        }
    }
    if (count * EVENT_BYTES > lr_cuda_list_budget(params)) {
        return lr_error(params->log, LR_USAGE,
                        "%lld events do not fit in %.4g MiB of the device's memory, where the "
                        "paper's variants have all of them: take fewer, or name no variant",
                        (long long)count, (double)lr_cuda_list_budget(params) / 0x1p20);
    }
    int64_t longest = 0;
    for (int64_t r = 0; r < events->layout.num_pairs; r++) {
        const int64_t in_range = events->offsets[r + 1] - events->offsets[r];
        longest = in_range > longest ? in_range : longest;
    }
    int64_t *order = lr_alloc(count, sizeof(*order), "events in another order", params->log);
    /* Finds the arranged event for each number of a range. */
    int64_t *numbers = lr_alloc(longest, sizeof(*numbers), "events in another order", params->log);
    lr_status status = order != NULL && numbers != NULL ? LR_OK : LR_FAILED;
    for (int64_t r = 0; status == LR_OK && r < events->layout.num_pairs; r++) {
        const int64_t begin = events->offsets[r], end = events->offsets[r + 1];
        if (params->variant >= LR_LISTMODE_SORTED) {
            for (int64_t k = begin; k < end; k++) order[k] = k;
            continue;
        }
        /* Restores the caller's order in the whole range, or within each group. */
        int64_t next[LR_LISTMODE_GROUPS + 1];
        memcpy(next, events->groups[r], sizeof(next));
        for (int64_t k = begin; k < end; k++) numbers[events->number[k]] = k;
        for (int64_t k = begin; k < end; k++) {
            const int64_t from = numbers[k - begin];
            int group = 0;
            while (from >= events->groups[r][group + 1]) group++;
            const int64_t to = params->variant == LR_LISTMODE_PARTITIONED ? next[group]++ : k;
            order[to] = from;
        }
    }
    if (status == LR_OK) status = upload_events(steps, order, memory);
    lr_free_all(order, numbers);
    return status;
}

/* --- projections --- */

lr_status lr_cuda_list_steps_project(const struct lr_cuda_list_steps *steps, const lr_cuda_list_pass *pass, int64_t r,
                                     float *image, bool is_back)
{
    const lr_listmode_variant variant = steps->params->variant;
    const bool by_groups = variant >= LR_LISTMODE_PARTITIONED; /* true = one launch for each group; false = a single
                                                                  launch */
    const int64_t *groups = steps->params->events->groups[r];
    for (int g = 0; g < (by_groups ? LR_LISTMODE_GROUPS : 1); g++) {
        const int64_t begin = groups[g], end = groups[by_groups ? g + 1 : LR_LISTMODE_GROUPS];
        lr_cuda_list_step step = {.pass = *pass,
                                  .count = (int32_t)(end - begin),
                                  .axis = by_groups ? lr_listmode_group_axis(g) : -1,
                                  .is_cached = lr_cuda_list_steps_are_cached(variant),
                                  .skips = variant >= LR_LISTMODE_SORTED,
                                  .is_fast = variant == LR_LISTMODE_FASTMATH,
                                  .tile_bytes = steps->tile_bytes,
                                  .image = by_groups ? NULL : image};
        if (step.count == 0) continue;
        if (steps->records != NULL) step.records = steps->records + begin;
        step.pass.events = steps->records != NULL ? steps->events : lr_cuda_list_events_from(&steps->events, begin);
        memcpy(step.size, steps->params->model->grid.size, sizeof(step.size));
        LR_TRY(lr_cuda_check(lr_cuda_launch_list_step(&step, is_back), "projecting events", steps->params->log));
    }
    return LR_OK;
}
