/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/listmode/tables.h"

#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/lend.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { EVENT_BYTES = 16 };

/* --- the events in an order --- */

struct ordering {
    const struct lr_listmode_events *events;
    lr_listmode_variant variant;
    int64_t *order; /* [count] indices of the arranged events, in the order that the step requires */
};

/* --- on the device --- */

static void *upload(struct lr_cuda_list_memory *memory, const void *from, int64_t bytes)
{
    void *to = lr_cuda_list_allocate(memory, &(struct lr_cuda_list_block){"events", from, bytes});
    const lr_status status = lr_cuda_check((int)cudaStreamSynchronize(memory->stream), "events", memory->log);
    return status == LR_OK ? to : NULL;
}

/* Uploads one member of all records. */
static void *upload_member(struct lr_cuda_list_memory *memory, const lr_cuda_list_record *records, size_t offset,
                           const struct ordering *ordering)
{
    int32_t *spare = (int32_t *)ordering->order; /* the order is no longer needed, and its array is large enough */
    const int64_t count = ordering->events->layout.count;
    for (int64_t k = 0; k < count; k++) memcpy(&spare[k], (const char *)&records[k] + offset, sizeof(*spare));
    return upload(memory, spare, count * (int64_t)sizeof(*spare));
}

static lr_status upload_events(struct lr_cuda_list_steps *steps, const struct ordering *ordering,
                               struct lr_cuda_list_memory *memory)
{
    const struct lr_listmode_events *from = ordering->events;
    const int64_t count = from->layout.count;
    lr_cuda_list_record *records = lr_alloc(count, sizeof(*records), "events", memory->log);
    for (int64_t k = 0; records != NULL && k < count; k++) {
        const int64_t at = ordering->order[k];
        records[k] =
            (lr_cuda_list_record){from->crystals[0][at], from->crystals[1][at], from->tof_mm[at], from->number[at]};
    }
    lr_cuda_list_events *events = &steps->events;
    bool has_all = records != NULL;
    if (has_all && ordering->variant == LR_LISTMODE_SIMPLE) {
        steps->records = upload(memory, records, count * (int64_t)sizeof(*records));
        has_all = steps->records != NULL;
    } else if (has_all) {
        events->crystals[0] = upload_member(memory, records, offsetof(lr_cuda_list_record, a), ordering);
        events->crystals[1] = upload_member(memory, records, offsetof(lr_cuda_list_record, b), ordering);
        events->tof_mm = upload_member(memory, records, offsetof(lr_cuda_list_record, tof_mm), ordering);
        events->number = upload_member(memory, records, offsetof(lr_cuda_list_record, number), ordering);
        has_all = events->crystals[0] && events->crystals[1] && events->tof_mm && events->number;
    }
    free(records);
    return has_all ? LR_OK : LR_FAILED;
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
    struct ordering ordering = {.events = events,
                                .variant = params->variant,
                                .order =
                                    lr_alloc(count, sizeof(*ordering.order), "events in another order", params->log)};
    /* The arranged event of each number of a range. */
    int64_t *numbers = lr_alloc(longest, sizeof(*numbers), "events in another order", params->log);
    lr_status status = ordering.order != NULL && numbers != NULL ? LR_OK : LR_FAILED;
    for (int64_t r = 0; status == LR_OK && r < events->layout.num_pairs; r++) {
        const int64_t begin = events->offsets[r], end = events->offsets[r + 1];
        if (params->variant >= LR_LISTMODE_SORTED) {
            for (int64_t k = begin; k < end; k++) ordering.order[k] = k;
            continue;
        }
        /* Restores the caller's order, of the range or within each group. */
        int64_t next[LR_LISTMODE_GROUPS + 1];
        memcpy(next, events->groups[r], sizeof(next));
        for (int64_t k = begin; k < end; k++) numbers[events->number[k]] = k;
        for (int64_t k = begin; k < end; k++) {
            const int64_t from = numbers[k - begin];
            int group = 0;
            while (from >= events->groups[r][group + 1]) group++;
            const int64_t to = params->variant == LR_LISTMODE_PARTITIONED ? next[group]++ : k;
            ordering.order[to] = from;
        }
    }
    if (status == LR_OK) status = upload_events(steps, &ordering, memory);
    free(ordering.order);
    free(numbers);
    return status;
}

/* --- projections --- */

lr_status lr_cuda_list_steps_project(const struct lr_cuda_list_steps *steps, const lr_cuda_list_pass *pass, int64_t r,
                                     float *image, bool is_back)
{
    const lr_listmode_variant variant = steps->params->variant;
    const bool by_groups = variant >= LR_LISTMODE_PARTITIONED; /* one launch for each group; false: a single launch */
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
        step.pass.events = steps->events;
        if (steps->records != NULL) {
            step.records = steps->records + begin;
        } else {
            step.pass.events.crystals[0] += begin;
            step.pass.events.crystals[1] += begin;
            step.pass.events.tof_mm += begin;
            step.pass.events.number += begin;
        }
        memcpy(step.size, steps->params->model->grid.size, sizeof(step.size));
        LR_TRY(lr_cuda_check(lr_cuda_launch_list_step(&step, is_back), "projecting events", steps->params->log));
    }
    return LR_OK;
}
