/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The division of each range's work among blocks. The work is cut into chunks of arranged events, and each chunk into
 * slabs of the slices that its lines may cross. This file uses no CUDA. */
#pragma once

#include "cuda_interop/listmode/passes.h"
#include "listmode/backend.h"
#include "listmode/schedule.h"

/* The device sorts the events of each group by four keys: first by the size of their windows, then by the first slice
 * and by the last slice that their lines cross, then by their number of steps. This order is cut into pieces of
 * LR_CUDA_LIST_PIECE events. */

struct lr_cuda_list_plan_params {
    const struct lr_listmode_model *model;
    const struct lr_listmode_events *events;
    int processors;                         /* number of the device's multiprocessors */
    int jobs_each;                          /* approximate number of jobs per multiprocessor; 0 = the usual number */
    int64_t shared_room;                    /* shared memory that a block may have, bytes; 0 = no frame is tiled */
    int64_t most_events;                    /* largest number of events of a launch, at least LR_CUDA_LIST_PIECE; 0 =
                                               any number */
    int64_t most_partial;                   /* approximate largest number of sums of a launch; 0 = the usual number */
    const struct lr_listmode_pieces *order; /* the device's order of events; NULL = the order of `events` */
    const lr_log *log;
};

/* The work of one launch. In the batch's jobs, chunks are numbered from the batch's first chunk. */
struct lr_cuda_list_batch {
    int64_t begin;      /* number of the batch's first event */
    int64_t chunk, job; /* numbers of the batch's first chunk and of its first job */
    int32_t num_chunks, num_jobs;
    int32_t longest_chunk;
    int32_t num_warps;
    int64_t num_partial; /* number of partial sums of the launch */
    int64_t num_events;
};

struct lr_cuda_list_plan {
    lr_cuda_list_frame frames[LR_CUDA_LIST_AXES];
    lr_cuda_list_tube tube; /* the tube, without its table */
    int64_t num_numbers;    /* count of numbers in all frames */
    int64_t shared_bytes;   /* shared memory of a block, bytes */
    int64_t most_partial;
    lr_cuda_list_chunk *chunks; /* owned, like the three members below */
    lr_cuda_list_job *jobs;
    struct lr_cuda_list_batch *batches;
    int64_t *range_batches; /* [num_ranges + 1]: the first batch of each range */
    int64_t num_chunks, num_jobs, num_batches;
    int64_t chunk_room, job_room, batch_room;
};

/* Returns the count of numbers in all frames, if there are events of all axes; INT64_MAX if the image is too large for
 * the backend. */
int64_t lr_cuda_list_most_numbers(const struct lr_listmode_model *model);

/* Sets up the frames and the tube. Call the finish function even after an error. errors: LR_USAGE if the image has too
 * many voxels. */
lr_status lr_cuda_list_plan_init(struct lr_cuda_list_plan *plan, const struct lr_cuda_list_plan_params *params);

/* Divides the work into chunks, jobs and batches. Call this function after lr_cuda_list_plan_init. errors: LR_FAILED if
 * memory runs out. */
lr_status lr_cuda_list_plan_deal(struct lr_cuda_list_plan *plan, const struct lr_cuda_list_plan_params *params);
void lr_cuda_list_plan_finish(struct lr_cuda_list_plan *plan);
