/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The division of each range's work among blocks: chunks of arranged events, times slabs of the slices that their
 * lines may cross. This file uses no CUDA. */
#ifndef LR_CUDA_INTEROP_LISTMODE_PLAN_H
#define LR_CUDA_INTEROP_LISTMODE_PLAN_H

#include "cuda_interop/listmode/passes.h"
#include "listmode/backend.h"
#include "listmode/schedule.h"

/* The device sorts the events of each group by four keys: first by the size of their windows, then by the first slice
 * and by the last slice that their lines cross, then by their number of steps. Pieces of this order have
 * LR_CUDA_LIST_PIECE events. */

struct lr_cuda_list_plan_params {
    const struct lr_listmode_model *model;
    const struct lr_listmode_events *events;
    int processors;                         /* processors of the device */
    int jobs_each;                          /* approximate jobs per processor; 0 = the usual number */
    int64_t shared_room;                    /* bytes that a block may have; 0 = nothing is tiled */
    int64_t most_events;                    /* events of a launch, at least LR_CUDA_LIST_PIECE; 0 = any number */
    int64_t most_partial;                   /* approximate sums of a launch; 0 = the usual number */
    const struct lr_listmode_pieces *order; /* the device's order of events; NULL = the order of `events` */
    const lr_log *log;
};

/* The work of one launch. In the batch's jobs, the index of a chunk is relative to the batch's first chunk. */
struct lr_cuda_list_batch {
    int64_t begin;      /* its first event */
    int64_t chunk, job; /* its first chunk and job */
    int32_t num_chunks, num_jobs;
    int32_t longest_chunk;
    int32_t num_warps;
    int64_t num_partial; /* sums */
    int64_t num_events;
};

struct lr_cuda_list_plan {
    lr_cuda_list_frame frames[LR_CUDA_LIST_AXES];
    lr_cuda_list_tube tube; /* tube without its table */
    int64_t num_numbers;    /* how many floats all frames hold together */
    int64_t shared_bytes;   /* bytes that a block takes */
    int64_t most_partial;
    lr_cuda_list_chunk *chunks; /* owned, as are the three members below */
    lr_cuda_list_job *jobs;
    struct lr_cuda_list_batch *batches;
    int64_t *range_batches; /* [num_ranges + 1]: the first batch of each range */
    int64_t num_chunks, num_jobs, num_batches;
    int64_t chunk_room, job_room, batch_room;
};

/* Count of numbers in all frames, for events of all axes; INT64_MAX if the backend refuses the image. */
int64_t lr_cuda_list_most_numbers(const struct lr_listmode_model *model);

/* Sets up the frames and the tube. Finish the plan in any case. errors: LR_USAGE if the image has too many voxels. */
lr_status lr_cuda_list_plan_init(struct lr_cuda_list_plan *plan, const struct lr_cuda_list_plan_params *params);

/* Divides the work into chunks, jobs and batches; call it after the init. errors: LR_FAILED if memory runs out. */
lr_status lr_cuda_list_plan_deal(struct lr_cuda_list_plan *plan, const struct lr_cuda_list_plan_params *params);
void lr_cuda_list_plan_finish(struct lr_cuda_list_plan *plan);

#endif
